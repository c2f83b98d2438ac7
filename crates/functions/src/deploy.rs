//! `deploy`: the files that the program came with.
//!
//! *Base* is the directory of the module whose text contains the call; nearly all of these read from there.

use std::collections::BTreeSet;

use setpoint_value::native::{shown, text};
use setpoint_value::{CallContext, CallError, Effects, Files, Module, Value, function};

pub(crate) static MODULE: Module = Module::new(
    "deploy",
    "The files that the program came with.",
    &[
        &ABSPATH,
        &BINARY_PATH,
        &BOOTSTRAP_PACKAGES,
        &DIRECTORY,
        &FILE_EXISTS,
        &READFILE,
        &READFILEABS,
    ],
);

/// The path inside the deploy of a path that begins at the module's own directory.
///
/// The empty path is that directory itself.
#[function(
    environment,
    module_directory,
    signature = "func(path str) str",
    example(call = r#"deploy.abspath("")"#, result = "")
)]
fn abspath(
    context: &CallContext<'_>,
    /// A path that begins with `/`, which stands for the directory of the module that calls; or empty.
    path: &Value,
) -> Result<String, CallError> {
    let given = text(std::slice::from_ref(path), 0)?;
    if given.is_empty() {
        return Ok(context.site.module_directory.to_string());
    }
    in_base(context, path)
}

/// Path of the running program.
#[function(environment, example(call = "deploy.binary_path()", result = ""))]
fn binary_path(context: &CallContext<'_>) -> Result<String, CallError> {
    let path = context.capabilities.host().executable();
    path.ok_or_else(|| CallError::fatal("the program's path is not known"))
}

/// The packages that a distribution needs before the tool itself runs.
///
/// A distribution that is not known fails in a way that `<|>` catches.
#[function(
    signature = "func(distro str) []str",
    example(call = r#"deploy.bootstrap_packages("no such") <|> []"#, result = "[]")
)]
fn bootstrap_packages(
    /// `debian` or `fedora`.
    distro: &[u8],
) -> Result<Vec<&'static str>, CallError> {
    match distro {
        b"debian" => Ok(vec!["libaugeas-dev", "libvirt-dev", "packagekit-tools"]),
        b"fedora" => Ok(vec!["augeas-devel", "libvirt-devel", "PackageKit"]),
        _ => Err(CallError::catchable("missing distro")),
    }
}

/// Copies a directory of the deploy to the local disk and gives its path there.
///
/// The copy becomes what the deploy holds: files that are gone there are removed here. The directory is given from
/// the module's own and begins and ends with `/`, and so does the path.
#[function(
    environment,
    module_directory,
    signature = "func(directory str) str",
    example(call = r#"deploy.directory("/files/")"#, result = "")
)]
fn directory(
    context: &CallContext<'_>,
    /// A path that begins and ends with `/`, seen from the directory of the module that calls.
    directory: &Value,
) -> Result<String, CallError> {
    let source = in_base(context, directory)?;
    if !source.ends_with('/') {
        return Err(CallError::fatal("a directory must end with `/`"));
    }
    if source.split('/').any(|element| element == "..") {
        return Err(CallError::fatal("a directory must not contain `..`"));
    }
    let deploy = context.capabilities.deploy();
    let target = format!("{}vardir/directory{source}", deploy.state_directory());
    if let Some(effects) = context.capabilities.effects() {
        mirror(context, effects, &source, &target)
            .map_err(|problem| CallError::fatal(format!("can't copy `{}`: {problem}", shown(directory))))?;
    }
    Ok(target)
}

/// Whether a file is in the deploy, seen from the module's own directory or else from the root.
#[function(
    environment,
    module_directory,
    signature = "func(filename str) bool",
    example(call = r#"deploy.file_exists("/no/such/file")"#, result = "false")
)]
fn file_exists(
    context: &CallContext<'_>,
    /// A path that begins with `/`.
    filename: &Value,
) -> Result<bool, CallError> {
    let path = in_base(context, filename)?;
    let deploy = context.capabilities.deploy();
    let from_root = text(std::slice::from_ref(filename), 0)?;
    Ok(deploy.exists(&path) || deploy.exists(from_root))
}

/// The content of a file of the deploy, seen from the module's own directory.
#[function(
    environment,
    module_directory,
    signature = "func(filename str) str",
    example(call = r#"deploy.readfile("/files/motd")"#, result = "")
)]
fn readfile(
    context: &CallContext<'_>,
    /// A path that begins with `/`, which stands for the directory of the module that calls.
    filename: &Value,
) -> Result<Vec<u8>, CallError> {
    let path = in_base(context, filename)?;
    read(context, filename, &path)
}

/// The content of a file of the deploy, seen from its root.
#[function(
    environment,
    signature = "func(filename str) str",
    example(call = r#"deploy.readfileabs("/main.mcl")"#, result = "")
)]
fn readfileabs(
    context: &CallContext<'_>,
    /// A path that begins with `/`, which stands for the root of the deploy.
    filename: &Value,
) -> Result<Vec<u8>, CallError> {
    let path = absolute(filename)?.to_owned();
    read(context, filename, &path)
}

fn absolute(path: &Value) -> Result<&str, CallError> {
    let given = text(std::slice::from_ref(path), 0)?;
    if given.starts_with('/') {
        Ok(given)
    } else {
        Err(CallError::fatal("the path must begin with `/`"))
    }
}

/// The path inside the deploy of a path that begins with `/` and means the module's own directory by it.
fn in_base(context: &CallContext<'_>, path: &Value) -> Result<String, CallError> {
    let path = absolute(path)?;
    Ok(format!(
        "{}{path}",
        context.site.module_directory.trim_end_matches('/')
    ))
}

fn read(context: &CallContext<'_>, filename: &Value, path: &str) -> Result<Vec<u8>, CallError> {
    let deploy = context.capabilities.deploy();
    deploy.read(path).map_err(|problem| {
        let place = if filename.is_sensitive() {
            "(sensitive)"
        } else {
            path
        };
        let hint = if deploy.is_plain_file() {
            "; the program was given as a plain file, and `files/` comes along only with a `metadata.yaml`"
        } else {
            ""
        };
        CallError::fatal(format!(
            "can't read file `{}` ({place}): {problem}{hint}",
            shown(filename)
        ))
    })
}

/// Makes the target what the source is.
fn mirror(
    context: &CallContext<'_>,
    effects: &dyn Effects,
    source: &str,
    target: &str,
) -> Result<(), String> {
    let deploy = context.capabilities.deploy();
    let files = context.capabilities.files();
    effects
        .create_directory(target, 0o755)
        .map_err(|e| e.to_string())?;
    // Everything that belongs there, as paths below the target.
    let mut wanted: BTreeSet<String> = BTreeSet::new();
    for path in deploy.list(source) {
        let Some(relative) = path.strip_prefix(source) else {
            continue;
        };
        let mut parents = relative;
        while let Some((up, _)) = parents.rsplit_once('/') {
            if wanted.insert(up.to_owned()) {
                effects
                    .create_directory(&format!("{target}{up}"), 0o755)
                    .map_err(|e| e.to_string())?;
            }
            parents = up;
        }
        wanted.insert(relative.to_owned());
        let content = deploy.read(&path)?;
        let destination = format!("{target}{relative}");
        let is_same = files.read(&destination).is_ok_and(|there| there == content);
        if !is_same {
            effects
                .write_file(&destination, &content, deploy.mode(&path))
                .map_err(|e| e.to_string())?;
        }
    }
    remove_others(files, effects, target, "", &wanted)
}

/// Removes what is below `target` and not wanted, from the leaves up.
fn remove_others(
    files: &dyn Files,
    effects: &dyn Effects,
    target: &str,
    below: &str,
    wanted: &BTreeSet<String>,
) -> Result<(), String> {
    let names = files.list(&format!("{target}{below}")).unwrap_or_default();
    for name in names {
        let relative = format!("{below}{name}");
        let path = format!("{target}{relative}");
        // A link is removed as it is, never followed.
        let is_link = files.read_link(&path).is_ok();
        if !is_link && files.list(&path).is_ok() {
            remove_others(files, effects, target, &format!("{relative}/"), wanted)?;
        }
        if !wanted.contains(&relative) {
            effects.remove(&path).map_err(|e| e.to_string())?;
        }
    }
    Ok(())
}
