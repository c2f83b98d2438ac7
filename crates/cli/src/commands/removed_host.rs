//! `remove HOST`, behind commands that show something of all hosts.

use setpoint_programs::failure::Failure;

/// The host to remove; none where the command shows all hosts.
///
/// # Errors
/// For other words: they are about `what`, and `hint` says what `remove HOST` does.
pub(super) fn removed_host<'a>(
    words: &'a [String],
    what: &str,
    hint: &str,
) -> Result<Option<&'a str>, Failure> {
    match words {
        [] => Ok(None),
        [remove, host] if remove == "remove" => Ok(Some(host)),
        [remove] if remove == "remove" => Err(Failure::usage("`remove` needs the name of a host")),
        [other, ..] => {
            let failure = Failure::usage(format!("`{other}` is nothing that can be done with {what}"));
            Err(failure.hint(hint.to_owned()))
        }
    }
}
