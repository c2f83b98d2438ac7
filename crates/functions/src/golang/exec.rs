//! `golang/os/exec`: programs of the machine.

use setpoint_value::{CallContext, CallError, Module, function};

pub(crate) static MODULE: Module = Module::new("golang/os/exec", "Programs of the machine.", &[&LOOK_PATH]);

/// Where a program is found in the directories of `PATH`.
///
/// One that is not found fails in a way that `<|>` catches.
#[function(
    environment,
    example(
        call = r#"exec.look_path("no such program") <|> "none""#,
        result = r#""none""#
    )
)]
fn look_path(
    context: &CallContext<'_>,
    /// The program's name, or a path to check.
    file: &str,
) -> Result<String, CallError> {
    let files = context.capabilities.files();
    let missing = || CallError::catchable(format!("exec: {file:?}: executable file not found in $PATH"));
    if file.contains('/') {
        return if files.is_executable(file) {
            Ok(file.to_owned())
        } else {
            Err(CallError::catchable(format!(
                "exec: {file:?}: no such executable file"
            )))
        };
    }
    if file.is_empty() {
        return Err(missing());
    }
    let variables = context.capabilities.host().environment();
    let directories = variables.get("PATH").map(String::as_str).unwrap_or_default();
    // Directories that are not absolute are skipped: what they mean depends on where the process was started.
    directories
        .split(':')
        .filter(|directory| directory.starts_with('/'))
        .map(|directory| format!("{}/{file}", directory.trim_end_matches('/')))
        .find(|path| files.is_executable(path))
        .ok_or_else(missing)
}
