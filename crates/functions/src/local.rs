//! `local`: what a program keeps on this host.

use std::collections::BTreeSet;
use std::io;

use setpoint_value::native::text;
use setpoint_value::{CallContext, CallError, Effects, Module, Value, function};

pub(crate) static MODULE: Module =
    Module::new("local", "What a program keeps on this host.", &[&POOL, &VARDIR]);

/// A number from 1 up that belongs to a name, distinct from those of other names in the namespace.
///
/// It is kept on the local disk, so that it stays over restarts.
#[function(
    environment,
    signature = "func(namespace str, uid str) int",
    example(call = r#"local.pool("machines", "a") > 0"#, result = "true")
)]
fn pool(
    context: &CallContext<'_>,
    /// The purpose of the numbers.
    namespace: &Value,
    /// The owner of the number.
    uid: &Value,
) -> Result<i64, CallError> {
    let namespace = name(namespace, "namespace")?;
    let uid = name(uid, "uid")?;
    let directory = format!(
        "{}pool/{namespace}",
        context.capabilities.deploy().state_directory()
    );
    let files = context.capabilities.files();
    let path = format!("{directory}/{uid}.uid");
    let number_in = |path: &str| -> Option<i64> {
        let content = files.read(path).ok()?;
        std::str::from_utf8(&content).ok()?.trim().parse().ok()
    };
    let own = || number_in(&path).filter(|number| *number > 0);
    if let Some(number) = own() {
        return Ok(number);
    }
    let given = || {
        let names = files.list(&directory).unwrap_or_default();
        let given = names.iter().filter(|name| name.ends_with(".uid"));
        given
            .filter_map(|name| number_in(&format!("{directory}/{name}")))
            .collect::<BTreeSet<i64>>()
    };
    let mut number = given().last().copied().unwrap_or(0).max(0) + 1;
    let Some(effects) = context.capabilities.effects() else {
        return Ok(number);
    };
    let keep = |error: io::Error| CallError::fatal(format!("can't keep the number: {error}"));
    effects.create_directory(&directory, 0o750).map_err(keep)?;
    // Others may be looking for a number at the same time: who can make the claim has it, once it turns out that nobody has
    // got it between looking and claiming. A claim that was left behind costs a number, no more.
    let claim = loop {
        let claim = format!("{directory}/.{number}.claim");
        match effects.create_new(&claim, b"") {
            Ok(()) if !given().contains(&number) => break claim,
            Ok(()) => effects.remove(&claim).map_err(keep)?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(keep(error)),
        }
        number += 1;
    };
    let content = format!("{number}\n");
    let kept = match effects.create_new(&path, content.as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => match own() {
            // Somebody was faster for the same name.
            Some(theirs) => {
                number = theirs;
                Ok(())
            }
            // What is there was no number.
            None => effects.write_file(&path, content.as_bytes(), 0o640),
        },
        kept => kept,
    };
    let released = effects.remove(&claim);
    kept.and(released).map_err(keep)?;
    Ok(number)
}

/// A directory on the local disk for the program's own files; made if it is missing.
///
/// The path is relative and ends with `/`; the same path is the same directory wherever it is asked for.
#[function(
    environment,
    signature = "func(path str) str",
    example(call = r#"local.vardir("demo/")"#, result = "")
)]
fn vardir(
    context: &CallContext<'_>,
    /// A relative path that ends with `/`.
    path: &Value,
) -> Result<String, CallError> {
    let path = text(std::slice::from_ref(path), 0)?;
    if path.starts_with('/') || !path.ends_with('/') {
        return Err(CallError::fatal("the path must be relative and end with `/`"));
    }
    if path.split('/').any(|element| element == "..") {
        return Err(CallError::fatal("the path must not contain `..`"));
    }
    let state = context.capabilities.deploy().state_directory();
    let directory = format!("{state}vardir/functions/{path}");
    if let Some(effects) = context.capabilities.effects() {
        make(effects, &directory)?;
    }
    Ok(directory)
}

fn make(effects: &dyn Effects, directory: &str) -> Result<(), CallError> {
    effects
        .create_directory(directory, 0o750)
        .map_err(|error| CallError::fatal(format!("can't make the directory: {error}")))
}

/// An argument that becomes the name of a file.
fn name<'a>(value: &'a Value, what: &str) -> Result<&'a str, CallError> {
    let name = text(std::slice::from_ref(value), 0)?;
    if name.is_empty() || name.contains('/') || name.contains('\0') || matches!(name, "." | "..") {
        return Err(CallError::fatal(format!(
            "the {what} must not be empty, contain `/`, or be a directory"
        )));
    }
    Ok(name)
}
