//! A command of the program that checks new contents of a file before they take its place.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::time::Duration;

use setpoint_engine::{Apply, Attempting, Failure, FailureReason, Identity, IfSet, Level, ParameterGroup};
use setpoint_graph::Invalid;
use setpoint_host::files::{AbsolutePath, Entry, Stat, own_uid};
use setpoint_host::processes::{Command, Environment, Finished, Preview, RunError, Stop};
use tokio::time::timeout;

use crate::sorts::PACKAGE_FILE;
use crate::time_span::TimeSpan;

/// How much is kept of what the command prints, in bytes, and how much of that is shown, in lines.
const MOST_OUTPUT: usize = 64 * 1024;
const MOST_LINES: usize = 20;

/// How long it may take if the program says nothing.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Where programs are found.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The parameters, the same for all kinds that write files.
#[derive(Debug, Clone, ParameterGroup)]
pub(crate) struct Validation {
    /// A command that checks new contents before they take the place of the old ones. If it fails, the old ones stay, and the run fails.
    ///
    /// The command is split into words at white space, without a shell, and its program is an absolute path. It sees the new contents at the final path,
    /// and the rest of the machine still sees the old ones, so it can check a whole configuration: `/usr/sbin/nginx -t`. Each `{}` in it stands for that path. It runs also under `noop`, and must have no effect.
    pub(crate) validate: String,
    /// How long `validate` may take, such as `30s`, which is the default. Then it is stopped, and the contents count as refused.
    pub(crate) validate_timeout: IfSet<TimeSpan>,
}

impl Validation {
    /// Whether new contents are checked.
    pub(crate) fn is_set(&self) -> bool {
        !self.validate.is_empty()
    }

    /// The identity of the program, so that its package is installed first.
    pub(crate) fn identities(&self) -> Vec<Identity> {
        let program = self.validate.split_whitespace().next();
        let program = program.map(|program| PACKAGE_FILE.identity(program.as_bytes()));
        program.into_iter().collect()
    }

    /// Reports parameters that are invalid.
    pub(crate) fn refused(&self, invalid: &mut Vec<Invalid>) {
        match self.validate.split_whitespace().next() {
            Some(program) if !program.starts_with('/') => {
                let message = format!("`{program}` is not an absolute path of a program");
                let help = "write it as `/usr/sbin/nginx -t`; for a shell, `/bin/sh` and a script";
                invalid.push(Invalid::parameter("validate", message).help(help));
            }
            None if self.is_set() => {
                invalid.push(Invalid::parameter("validate", "there is no command"));
            }
            None if self.validate_timeout.is_some() => {
                let message = "there is no `validate` that it could limit";
                invalid.push(Invalid::parameter("validate_timeout", message));
            }
            _ => {}
        }
    }

    /// Runs the command on new contents of the file at a path, with the owner and mode that the file has.
    ///
    /// # Errors
    /// When the contents are refused, or cannot be checked.
    pub(crate) async fn check(
        &self,
        apply: &mut Apply<'_>,
        path: &AbsolutePath,
        contents: &[u8],
    ) -> Result<(), Failure> {
        if !self.is_set() {
            return Ok(());
        }
        let found = match Entry::at(path).and_then(|entry| entry.follow()) {
            Ok(end) => end.stat()?,
            Err(error) if error.is_not_found() => None,
            Err(error) => return Err(error.into()),
        };
        let mode = found.map_or(0o600, |found| found.mode);
        self.check_with(apply, path, contents, owner(found, None, None), mode)
            .await
    }

    /// The same with this owner, group and mode.
    ///
    /// # Errors
    /// When the contents are refused, or cannot be checked.
    pub(crate) async fn check_with(
        &self,
        apply: &mut Apply<'_>,
        path: &AbsolutePath,
        contents: &[u8],
        owner: (u32, u32),
        mode: u32,
    ) -> Result<(), Failure> {
        let words = self.words(path);
        let Some(program) = words.first().filter(|_| self.is_set()) else {
            return Ok(());
        };
        let refused = || Failure::new("validate the new contents of").on(path);
        if !exists(program) {
            let missing = format!("there is no program {}", program.display());
            if apply.may_repair() {
                return Err(refused().because(missing));
            }
            // Another resource may install the program first.
            let message = format!("the new contents are not validated: {missing}");
            apply.log(Level::Warning, message);
            return Ok(());
        }
        let scratch = apply.handle().var_path();
        let preview = Preview::new(path.as_path(), scratch.as_path(), contents);
        let preview = preview.attempting("validate the new contents of", path)?;
        let preview = preview.metadata(Some(owner), mode);
        let finished = self.run(apply, &preview.command(words), path).await?;
        let secret = apply.has_sensitive();
        let output = finished.output.combined();
        let Some(printed) = Preview::output_of_command(&output) else {
            let why = finished.output.text();
            let why = why.trim();
            let cause = match secret {
                true => "the command cannot be shown the new contents alone".to_owned(),
                false => format!("the command cannot be shown the new contents alone: {why}"),
            };
            return Err(refused().because(cause));
        };
        if finished.exit.is_success() {
            return Ok(());
        }
        if secret {
            let cause = format!("`validate` refuses them: {}", finished.exit);
            return Err(refused().because(cause));
        }
        let printed = last_lines(printed);
        if !printed.is_empty() {
            apply.log(Level::Error, format!("`validate` says: {printed}"));
        }
        let cause = format!("`{}` refuses them: {}", self.validate, finished.exit);
        Err(refused().because(cause))
    }

    /// The words of the command, with the path instead of each `{}`.
    fn words(&self, path: &AbsolutePath) -> Vec<OsString> {
        let words = self.validate.split_whitespace().map(|word| {
            let parts: Vec<&[u8]> = word.split("{}").map(str::as_bytes).collect();
            OsString::from_vec(parts.join(path.as_bytes()))
        });
        words.collect()
    }

    async fn run(
        &self,
        apply: &Apply<'_>,
        command: &Command,
        path: &AbsolutePath,
    ) -> Result<Finished, Failure> {
        let variables = [("PATH", PATH), ("LC_ALL", "C.UTF-8")];
        let variables = variables.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let command = command
            .clone()
            .environment(Environment::Exactly(variables.into_iter().collect()))
            .directory(std::path::PathBuf::from("/"))
            .most_output(MOST_OUTPUT);
        let cancellation = apply.cancellation();
        let stop = Stop {
            cancel: cancellation.token().clone(),
            interrupt: cancellation.interrupt_token().child_token(),
            ..Stop::default()
        };
        let limit = self.validate_timeout.as_ref();
        let limit = limit.map_or(TIMEOUT, TimeSpan::length);
        let failed = || Failure::new("validate the new contents of").on(path);
        // Dropping what runs kills its process group.
        match timeout(limit, apply.handle().processes().run(&command, &stop)).await {
            Ok(Ok(finished)) => Ok(finished),
            Ok(Err(RunError::Cancelled { .. })) => {
                Err(failed().because("cancelled").reasoned(FailureReason::Cancelled))
            }
            Ok(Err(RunError::Interrupted { .. })) => Err(failed()
                .because("interrupted")
                .reasoned(FailureReason::Interrupted)),
            Ok(Err(error)) => Err(failed().because(error)),
            Err(_) => {
                let cause = format!("`validate` did not end within {} s", limit.as_secs_f64());
                Err(failed().because(cause))
            }
        }
    }
}

/// Whether there is something at the path of a program.
fn exists(program: &OsStr) -> bool {
    let path = AbsolutePath::new(program).ok();
    let entry = path.and_then(|path| Entry::at(&path).ok()?.follow().ok());
    entry.is_some_and(|entry| entry.stat().is_ok_and(|stat| stat.is_some()))
}

/// The owner and the group that a file will have: the given ones, or those that it has, or ours.
pub(crate) fn owner(found: Option<Stat>, user: Option<u32>, group: Option<u32>) -> (u32, u32) {
    let user = user.or(found.map(|found| found.uid)).unwrap_or_else(own_uid);
    let group = group.or(found.map(|found| found.gid));
    (user, group.unwrap_or(0))
}

/// The last lines of an output, as text.
fn last_lines(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    let lines: Vec<&str> = text.lines().collect();
    let from = lines.len().saturating_sub(MOST_LINES);
    lines[from..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_takes_the_place_of_its_marks() {
        let validation = Validation {
            validate: "/bin/a -f {} --x={}".to_owned(),
            validate_timeout: IfSet::default(),
        };
        let path = AbsolutePath::new("/etc/b c").expect("it is absolute");
        let words = validation.words(&path);
        assert_eq!(words, ["/bin/a", "-f", "/etc/b c", "--x=/etc/b c"]);
    }
}
