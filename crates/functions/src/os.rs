//! `os`: the operating system.

use setpoint_value::native::text;
use setpoint_value::{CallContext, CallError, HostFact, Module, Timer, Type, Value, WatchDepth, function};

mod readfile;
mod system;

pub(crate) static MODULE: Module = Module::new(
    "os",
    "The operating system.",
    &[
        &ARGS,
        &EXPAND_HOME,
        &FAMILY,
        &FILE_EXISTS,
        &HOME,
        &IS_FAMILY_ARCHLINUX,
        &IS_FAMILY_DEBIAN,
        &IS_FAMILY_REDHAT,
        &IS_VIRTUAL,
        &MODINFO_LOADED,
        &PARSE_DISTRO_UID,
        &readfile::READFILE,
        &RELEASE,
        &system::SYSTEM,
        &UID,
        &USER_EXISTS,
    ],
)
.with_variables(&[
    ("family_redhat", REDHAT.0),
    ("family_debian", DEBIAN.0),
    ("family_archlinux", ARCHLINUX.0),
]);

/// A family's name and the file by which it is known.
const REDHAT: (&str, &str) = ("redhat", "/etc/redhat-release");
const DEBIAN: (&str, &str) = ("debian", "/etc/debian_version");
const ARCHLINUX: (&str, &str) = ("archlinux", "/etc/arch-release");

/// The process's arguments, the program's name first.
#[function(environment, example(call = "os.args()", result = ""))]
fn args(context: &CallContext<'_>) -> Vec<String> {
    context.capabilities.host().arguments()
}

/// The path with `~` or `~name` at its beginning replaced by the home directory.
#[function(
    environment,
    example(call = r#"os.expand_home("/tmp/x")"#, result = r#""/tmp/x""#)
)]
fn expand_home(
    context: &CallContext<'_>,
    /// Any path.
    path: &str,
) -> Result<String, CallError> {
    let Some(rest) = path.strip_prefix('~') else {
        return Ok(path.to_owned());
    };
    let (user, rest) = match rest.find('/') {
        Some(slash) => rest.split_at(slash),
        None => (rest, ""),
    };
    let home = context.capabilities.host().home(user);
    let home = home.ok_or_else(|| CallError::fatal(unknown_user(user)))?;
    Ok(format!("{}{rest}", home.trim_end_matches('/')))
}

/// The family of distributions that the machine runs: `redhat`, `debian`, `archlinux`, or empty.
///
/// `$os.family_redhat` and its kin are the names to compare with.
#[function(environment, example(call = "os.family()", result = ""))]
fn family(context: &CallContext<'_>) -> &'static str {
    [REDHAT, DEBIAN, ARCHLINUX]
        .into_iter()
        .find(|(_, file)| context.capabilities.files().exists(file))
        .map_or("", |(name, _)| name)
}

/// Whether something is at a path, links followed.
///
/// A path that is not absolute fails in a way that `<|>` catches.
#[function(
    watch = watch_argument,
    example(call = r#"os.file_exists("/no/such/file")"#, result = "false")
)]
fn file_exists(
    context: &CallContext<'_>,
    /// An absolute path.
    filename: &str,
) -> bool {
    context.capabilities.files().exists(filename)
}

fn watch_argument(context: &CallContext<'_>, arguments: &[Value]) -> Result<Vec<Timer>, CallError> {
    watch_path(context, text(arguments, 0)?)
}

/// The home directory of a user, with a `/` at the end.
///
/// An unknown user fails in a way that `<|>` catches.
#[function(
    environment,
    example(call = r#"os.home("no such user") <|> "none""#, result = r#""none""#)
)]
fn home(
    context: &CallContext<'_>,
    /// The user's name.
    user: &str,
) -> Result<String, CallError> {
    let home = context
        .capabilities
        .host()
        .home(user)
        .filter(|_| !user.is_empty());
    let home = home.ok_or_else(|| CallError::catchable(unknown_user(user)))?;
    Ok(format!("{}/", home.trim_end_matches('/')))
}

/// Whether the machine runs Arch Linux or one of its kin.
#[function(environment, example(call = "os.is_family_archlinux()", result = ""))]
fn is_family_archlinux(context: &CallContext<'_>) -> bool {
    context.capabilities.files().exists(ARCHLINUX.1)
}

/// Whether the machine runs Debian or one of its kin.
#[function(environment, example(call = "os.is_family_debian()", result = ""))]
fn is_family_debian(context: &CallContext<'_>) -> bool {
    context.capabilities.files().exists(DEBIAN.1)
}

/// Whether the machine runs Red Hat Linux or one of its kin.
#[function(environment, example(call = "os.is_family_redhat()", result = ""))]
fn is_family_redhat(context: &CallContext<'_>) -> bool {
    context.capabilities.files().exists(REDHAT.1)
}

/// Whether the machine is a virtual one.
#[function(environment, example(call = "os.is_virtual()", result = ""))]
fn is_virtual(context: &CallContext<'_>) -> Result<bool, CallError> {
    const FILES: [&str; 5] = [
        "product_name",
        "sys_vendor",
        "board_vendor",
        "bios_vendor",
        "product_version",
    ];
    const VENDORS: [&str; 14] = [
        "Amazon EC2",
        "Apple Virtualization",
        "BHYVE",
        "Bochs",
        "Google Computer Engine",
        "Hyper-V",
        "innotek GmbH",
        "KubeVirt",
        "KVM",
        "OpenStack",
        "Oracle Corporation",
        "Parallels",
        "QEMU",
        "VMware",
    ];
    let files = context.capabilities.files();
    let mut failure = None;
    let mut content_of = |path: &str| match files.read(path) {
        Ok(content) => String::from_utf8_lossy(&content).into_owned(),
        Err(error) => {
            if error.kind() != std::io::ErrorKind::NotFound || path == "/proc/cpuinfo" {
                failure.get_or_insert_with(|| format!("can't read `{path}`: {error}"));
            }
            String::new()
        }
    };
    if content_of("/proc/cpuinfo").contains("hypervisor") {
        return Ok(true);
    }
    for file in FILES {
        let content = content_of(&format!("/sys/class/dmi/id/{file}"));
        if VENDORS
            .iter()
            .chain(&["Xen"])
            .any(|vendor| content.contains(vendor))
        {
            return Ok(true);
        }
    }
    match failure {
        Some(failure) => Err(CallError::fatal(failure)),
        None => Ok(false),
    }
}

/// Whether a kernel module is loaded.
#[function(
    watch = watch_modules,
    example(call = r#"os.modinfo_loaded("no_such_module")"#, result = "false")
)]
fn modinfo_loaded(
    context: &CallContext<'_>,
    /// The module's name, as `lsmod` shows it.
    module: &str,
) -> Result<bool, CallError> {
    let content = match context.capabilities.files().read(MODULES_FILE) {
        Ok(content) => content,
        // A kernel without modules has loaded none.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(CallError::fatal(format!("can't read `{MODULES_FILE}`: {error}"))),
    };
    let content = String::from_utf8_lossy(&content);
    let mut names = content.lines().filter_map(|line| line.split_whitespace().next());
    Ok(names.any(|name| name == module))
}

fn watch_modules(context: &CallContext<'_>, _: &[Value]) -> Result<Vec<Timer>, CallError> {
    // Where the kernel's events are not heard (in a container), only looking again helps: its files send none.
    let clock = context.capabilities.clock();
    let host = context.capabilities.host();
    let mut guards = watch_path(context, MODULES_FILE)?;
    guards.extend(host.watch(HostFact::Modules, context.wake.clone()));
    guards.push(clock.every(std::time::Duration::from_secs(5), context.wake.clone()));
    Ok(guards)
}

const MODULES_FILE: &str = "/proc/modules";

/// The parts of a text like `fedora39-x86_64`; three empty ones if it has another form.
#[function(
    signature = "func(uid str) struct{distro str; version str; arch str}",
    example(
        call = r#"os.parse_distro_uid("fedora39-x86_64")->version"#,
        result = r#""39""#
    )
)]
fn parse_distro_uid(
    /// The name of a distribution, its version, `-` and the architecture.
    uid: &[u8],
    result: &Type,
) -> Value {
    let parts = uid.iter().position(|b| *b == b'-').and_then(|dash| {
        let (before, arch) = (&uid[..dash], &uid[dash + 1..]);
        let digits = before.iter().rev().take_while(|b| b.is_ascii_digit()).count();
        let (distro, version) = before.split_at(before.len() - digits);
        (!distro.is_empty() && !version.is_empty() && !arch.is_empty()).then_some([distro, version, arch])
    });
    let parts = parts.unwrap_or_default();
    Value::structure(result.clone(), parts.map(Value::str).to_vec())
}

/// Which distribution the machine runs, from `/etc/os-release`.
#[function(
    environment,
    signature = "func() struct{id str; variant_id str; version_id str}",
    example(call = "os.release()", result = "")
)]
fn release(context: &CallContext<'_>, result: &Type) -> Result<Value, CallError> {
    const PATH: &str = "/etc/os-release";
    let content = context
        .capabilities
        .files()
        .read(PATH)
        .map_err(|error| CallError::fatal(format!("can't read `{PATH}`: {error}")))?;
    let content = String::from_utf8_lossy(&content);
    let field = |name: &str| {
        let line = content.lines().filter_map(|line| line.trim().split_once('='));
        let value = line
            .filter(|(key, _)| *key == name)
            .map(|(_, value)| value)
            .next_back();
        Value::str(unquoted(value.unwrap_or_default()))
    };
    Ok(Value::structure(
        result.clone(),
        vec![field("ID"), field("VARIANT_ID"), field("VERSION_ID")],
    ))
}

/// The numeric id of a user, as text.
#[function(environment, example(call = r#"os.uid("root")"#, result = r#""0""#))]
fn uid(
    context: &CallContext<'_>,
    /// The user's name.
    user: &str,
) -> Result<String, CallError> {
    let id = context.capabilities.host().user_id(user);
    id.map(|id| id.to_string())
        .ok_or_else(|| CallError::fatal(unknown_user(user)))
}

/// Whether there is a user of that name.
#[function(watch = watch_users, example(call = r#"os.user_exists("no such user")"#, result = "false"))]
fn user_exists(
    context: &CallContext<'_>,
    /// The name.
    user: &str,
) -> bool {
    context.capabilities.host().user_id(user).is_some()
}

fn watch_users(context: &CallContext<'_>, _: &[Value]) -> Result<Vec<Timer>, CallError> {
    watch_path(context, "/etc/passwd")
}

/// Wakes when a path changes.
fn watch_path(context: &CallContext<'_>, path: &str) -> Result<Vec<Timer>, CallError> {
    if !path.starts_with('/') {
        return Err(CallError::catchable(if path.is_empty() {
            "the path is empty; it must be absolute".to_owned()
        } else {
            format!("the path `{path}` is not absolute")
        }));
    }
    let files = context.capabilities.files();
    let watch = files.watch(path, WatchDepth::Entry, context.wake.clone());
    let watch = watch.map_err(|error| CallError::fatal(format!("can't watch the path: {error}")))?;
    Ok(vec![watch])
}

/// A value of a shell-like file without its quotes and escapes, as os-release(5) says.
fn unquoted(text: &str) -> String {
    let text = text.trim();
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''));
    let Some(quote) = quote.filter(|q| text.len() > 1 && text.ends_with(*q)) else {
        return text.to_owned();
    };
    let inner = &text[1..text.len() - 1];
    if quote == '\'' {
        return inner.to_owned();
    }
    let mut out = String::with_capacity(inner.len());
    let mut characters = inner.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '\\' if characters.peek().is_some_and(|n| "\"$`\\".contains(*n)) => out.extend(characters.next()),
            c => out.push(c),
        }
    }
    out
}

fn unknown_user(user: &str) -> String {
    format!("there is no user `{user}`")
}
