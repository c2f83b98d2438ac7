//! `golang/os`: the process and its machine, read when asked for.

use setpoint_value::native::{shown, text};
use setpoint_value::{CallContext, CallError, Module, Value, function};

pub(crate) static MODULE: Module = Module::new(
    "golang/os",
    "The process and its machine, as in Go's package `os`.",
    &[
        &EXECUTABLE,
        &EXPAND_ENV,
        &GETEGID,
        &GETENV,
        &GETEUID,
        &GETGID,
        &GETPAGESIZE,
        &GETPID,
        &GETPPID,
        &GETUID,
        &GETWD,
        &HOSTNAME,
        &MKDIR_TEMP,
        &READ_FILE,
        &READLINK,
        &TEMP_DIR,
        &USER_CACHE_DIR,
        &USER_CONFIG_DIR,
        &USER_HOME_DIR,
    ],
);

/// Path of the running program.
#[function(environment, example(call = "os.executable()", result = ""))]
fn executable(context: &CallContext<'_>) -> Result<String, CallError> {
    let path = context.capabilities.host().executable();
    path.ok_or_else(|| CallError::catchable("the program's path is not known"))
}

/// The text with `$X` and `${X}` replaced by environment variables; unset ones by nothing.
#[function(
    environment,
    example(call = r#"os.expand_env("a$NO_SUCH_VARIABLE!")"#, result = r#""a!""#)
)]
fn expand_env(
    context: &CallContext<'_>,
    /// Text with names of variables in it.
    s: &[u8],
) -> Vec<u8> {
    let variables = context.capabilities.host().environment();
    expand(s, |name| {
        let name = std::str::from_utf8(name).ok()?;
        variables.get(name).map(|value| value.as_bytes().to_vec())
    })
}

/// Effective group of the process.
#[function(environment, example(call = "os.getegid()", result = ""))]
fn getegid(context: &CallContext<'_>) -> i64 {
    id(context, 3)
}

/// An environment variable; empty if it is not set.
#[function(
    environment,
    example(call = r#"os.getenv("NO_SUCH_VARIABLE")"#, result = r#""""#)
)]
fn getenv(
    context: &CallContext<'_>,
    /// The variable's name.
    key: &str,
) -> String {
    variable(context, key).unwrap_or_default()
}

/// Effective user of the process.
#[function(environment, example(call = "os.geteuid()", result = ""))]
fn geteuid(context: &CallContext<'_>) -> i64 {
    id(context, 1)
}

/// Group of the process.
#[function(environment, example(call = "os.getgid()", result = ""))]
fn getgid(context: &CallContext<'_>) -> i64 {
    id(context, 2)
}

/// Size of a page of memory in bytes.
#[function(environment, example(call = "os.getpagesize()", result = ""))]
fn getpagesize(context: &CallContext<'_>) -> i64 {
    i64::try_from(context.capabilities.host().page_size()).unwrap_or(i64::MAX)
}

/// Number of the process.
#[function(environment, example(call = "os.getpid()", result = ""))]
fn getpid(context: &CallContext<'_>) -> i64 {
    i64::from(context.capabilities.host().process_ids()[0])
}

/// Number of the parent process.
#[function(environment, example(call = "os.getppid()", result = ""))]
fn getppid(context: &CallContext<'_>) -> i64 {
    i64::from(context.capabilities.host().process_ids()[1])
}

/// User of the process.
#[function(environment, example(call = "os.getuid()", result = ""))]
fn getuid(context: &CallContext<'_>) -> i64 {
    id(context, 0)
}

/// The working directory.
#[function(environment, example(call = "os.getwd()", result = ""))]
fn getwd(context: &CallContext<'_>) -> Result<String, CallError> {
    let directory = context.capabilities.host().working_directory();
    directory.ok_or_else(|| CallError::catchable("the working directory is not known"))
}

/// The machine's host name.
#[function(environment, example(call = "os.hostname()", result = ""))]
fn hostname(context: &CallContext<'_>) -> String {
    context.capabilities.host().system_hostname()
}

/// Makes a directory with a new name and gives its path; once for each call in the text.
///
/// The last `*` of `pattern` is replaced by a random text, or that is added at the end.
#[function(
    stateful,
    unpredictable,
    example(call = r#"os.mkdir_temp("", "x*")"#, result = "")
)]
fn mkdir_temp(
    context: &CallContext<'_>,
    /// The parent directory. Empty: the directory for temporary files.
    dir: &str,
    /// A pattern for the name, without `/`.
    pattern: &str,
) -> Result<String, CallError> {
    const ATTEMPTS: usize = 1000;
    if pattern.contains('/') {
        return Err(CallError::catchable("pattern contains path separator"));
    }
    let effects = context.capabilities.effects();
    let effects = effects
        .ok_or_else(|| CallError::catchable("directories are made only while the program is applied"))?;
    let directory = match dir {
        "" => temp_dir(context),
        other => other.trim_end_matches('/').to_owned(),
    };
    let (before, after) = pattern.rsplit_once('*').unwrap_or((pattern, ""));
    for _ in 0..ATTEMPTS {
        let mut bytes = [0u8; 4];
        context.capabilities.random().fill(&mut bytes);
        let path = format!("{directory}/{before}{}{after}", u32::from_le_bytes(bytes));
        if context.capabilities.files().exists(&path) {
            continue;
        }
        return match effects.create_directory(&path, 0o700) {
            Ok(()) => Ok(path),
            Err(error) => Err(CallError::catchable(format!("can't make a directory: {error}"))),
        };
    }
    Err(CallError::catchable("no name is free"))
}

/// The content of a file, read once.
#[function(
    environment,
    signature = "func(name str) str",
    example(call = r#"os.read_file("/no/such") <|> "-""#, result = r#""-""#)
)]
fn read_file(
    context: &CallContext<'_>,
    /// An absolute path.
    name: &Value,
) -> Result<Vec<u8>, CallError> {
    let path = text(std::slice::from_ref(name), 0)?;
    context.capabilities.files().read(path).map_err(|error| {
        let path = shown(name);
        CallError::catchable(format!("can't read `{path}`: {error}"))
    })
}

/// The target of a symbolic link.
#[function(
    environment,
    signature = "func(name str) str",
    example(call = r#"os.readlink("/no/such") <|> "-""#, result = r#""-""#)
)]
fn readlink(
    context: &CallContext<'_>,
    /// An absolute path.
    name: &Value,
) -> Result<String, CallError> {
    let path = text(std::slice::from_ref(name), 0)?;
    context.capabilities.files().read_link(path).map_err(|error| {
        let path = shown(name);
        CallError::catchable(format!("can't read the link `{path}`: {error}"))
    })
}

/// The directory for temporary files.
#[function(environment, example(call = "os.temp_dir()", result = ""))]
fn temp_dir(context: &CallContext<'_>) -> String {
    variable(context, "TMPDIR").unwrap_or_else(|| "/tmp".to_owned())
}

/// The user's directory for caches.
#[function(environment, example(call = "os.user_cache_dir()", result = ""))]
fn user_cache_dir(context: &CallContext<'_>) -> Result<String, CallError> {
    below_home(context, "XDG_CACHE_HOME", ".cache")
}

/// The user's directory for configuration.
#[function(environment, example(call = "os.user_config_dir()", result = ""))]
fn user_config_dir(context: &CallContext<'_>) -> Result<String, CallError> {
    below_home(context, "XDG_CONFIG_HOME", ".config")
}

/// The user's home directory.
#[function(environment, example(call = "os.user_home_dir()", result = ""))]
fn user_home_dir(context: &CallContext<'_>) -> Result<String, CallError> {
    variable(context, "HOME").ok_or_else(|| CallError::catchable("$HOME is not defined"))
}

/// A variable that is set and not empty.
fn variable(context: &CallContext<'_>, name: &str) -> Option<String> {
    let mut variables = context.capabilities.host().environment();
    variables.remove(name).filter(|value| !value.is_empty())
}

fn id(context: &CallContext<'_>, index: usize) -> i64 {
    i64::from(context.capabilities.host().ids()[index])
}

fn below_home(context: &CallContext<'_>, name: &str, directory: &str) -> Result<String, CallError> {
    match variable(context, name) {
        Some(path) if path.starts_with('/') => Ok(path),
        Some(_) => Err(CallError::catchable(format!("path in ${name} is relative"))),
        None => match variable(context, "HOME") {
            Some(home) => Ok(format!("{home}/{directory}")),
            None => Err(CallError::catchable(format!(
                "neither ${name} nor $HOME are defined"
            ))),
        },
    }
}

/// Replaces `$X` and `${X}`, by the rules of Go's `os.Expand`.
fn expand(text: &[u8], value_of: impl Fn(&[u8]) -> Option<Vec<u8>>) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.iter().position(|b| *b == b'$') {
        out.extend_from_slice(&rest[..at]);
        let after = &rest[at + 1..];
        let (name, length) = shell_name(after);
        match (name, length) {
            // Nothing that could be a name: the dollar stays.
            (b"", 0) => out.push(b'$'),
            // Bad syntax is eaten.
            (b"", _) => {}
            (name, _) => out.extend(value_of(name).unwrap_or_default()),
        }
        rest = &after[length..];
    }
    out.extend_from_slice(rest);
    out
}

/// The name after a dollar, and how much of the text it takes.
fn shell_name(text: &[u8]) -> (&[u8], usize) {
    let special = |byte: &u8| b"*#$@!?-0123456789".contains(byte);
    match text {
        [] => (b"", 0),
        [b'{', name, b'}', ..] if special(name) => (&text[1..2], 3),
        [b'{', rest @ ..] => match rest.iter().position(|b| *b == b'}') {
            Some(0) => (b"", 2),
            Some(end) => (&rest[..end], end + 2),
            None => (b"", 1),
        },
        [first, ..] if special(first) => (&text[..1], 1),
        _ => {
            let length = text
                .iter()
                .take_while(|b| b.is_ascii_alphanumeric() || **b == b'_')
                .count();
            (&text[..length], length)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_expand_as_in_go() {
        let value_of = |name: &[u8]| Some(format!("<{}>", String::from_utf8_lossy(name)).into_bytes());
        for (text, expected) in [
            ("$HOME/x", "<HOME>/x"),
            ("${HOME}x", "<HOME>x"),
            ("$12", "<1>2"),
            ("a$", "a$"),
            ("$.", "$."),
            ("${}x", "x"),
            ("${x", "x"),
            ("$$", "<$>"),
            ("${*}", "<*>"),
        ] {
            assert_eq!(
                String::from_utf8_lossy(&expand(text.as_bytes(), value_of)),
                expected,
                "{text}"
            );
        }
    }
}
