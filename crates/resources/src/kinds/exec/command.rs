//! How the commands of an `exec` are made, run and stopped.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use setpoint_engine::{
    Apply, CancelCause, Cancellation, Failure, FailureReason, Handle, Parameter, ParameterGroup, Text,
};
use setpoint_graph::{ParameterType, TypeMismatch};
use setpoint_host::processes::{Capability, Command, Environment, Finished, Limit, RunError, Signal, Stop};
use setpoint_value::Value;
use tokio_util::sync::CancellationToken;

use super::Exec;
use crate::command_rights::CommandRights;

/// How long a command that was asked to stop may take, unless it is the program that stops: then the user decides.
pub(super) const GRACE: Duration = Duration::from_secs(15);

/// A command of an `exec` as its parameters say it.
#[derive(Debug, Clone, ParameterGroup)]
pub(super) struct CommandParameters {
    /// The program and its arguments, or a text for the shell.
    pub(super) cmd: String,
    /// Its working directory; unset means ours.
    pub(super) cwd: String,
    /// Runs it as a text of this shell.
    pub(super) shell: String,
}

impl CommandParameters {
    /// The command, if it is set.
    pub(super) fn line(&self) -> Option<CommandLine<'_>> {
        (!self.cmd.is_empty()).then_some(CommandLine {
            text: &self.cmd,
            arguments: &[],
            directory: &self.cwd,
            shell: &self.shell,
        })
    }
}

/// Whose rights all commands have, and how much they may use.
#[derive(Debug, Clone, ParameterGroup)]
pub(super) struct RightsParameters {
    /// Who runs all the commands, by name or number, with the groups of that user. They can gain no other rights.
    pub(super) user: String,
    /// The group that runs all the commands, by name or number, instead of the groups of `user`.
    pub(super) group: String,
    /// The most that each command may use.
    ///
    /// As setrlimit(2) has them: bytes of a core dump, seconds of processor time, bytes of a written file, open files, bytes of
    /// address space, processes of the user.
    pub(super) limits: BTreeMap<Limit, u64>,
    /// The only capabilities that the commands can have. Unset: those of the user.
    pub(super) capabilities: Option<Vec<Capability>>,
}

/// The name of an environment variable.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Variable(String);

impl Parameter for Variable {
    const TYPE: ParameterType = ParameterType::Str;
    const FORM: Option<fn() -> String> = Some(|| "a name like `LANG`".to_owned());

    fn decode(value: &Value) -> Result<Variable, TypeMismatch> {
        let name = String::decode(value)?;
        let is_letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
        let starts_well = name.bytes().next().is_some_and(is_letter);
        if starts_well && name.bytes().all(|byte| is_letter(byte) || byte.is_ascii_digit()) {
            Ok(Variable(name))
        } else {
            let message = format!("`{name}` is not a name of an environment variable");
            Err(TypeMismatch::new(message).help("such a name is made of letters, digits and `_`"))
        }
    }

    fn encode(&self) -> Value {
        self.0.encode()
    }
}

/// A command of an `exec` as it is run.
pub(super) struct CommandLine<'a> {
    pub(super) text: &'a str,
    pub(super) arguments: &'a [Text],
    pub(super) directory: &'a str,
    pub(super) shell: &'a str,
}

impl fmt::Display for CommandLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text)?;
        for argument in self.arguments {
            write!(f, " {}", String::from_utf8_lossy(argument.as_bytes()))?;
        }
        Ok(())
    }
}

impl<'a> CommandLine<'a> {
    /// What is started: the shell, or the first word.
    pub(super) fn program(&self) -> Option<&'a str> {
        if self.shell.is_empty() {
            self.text.split_whitespace().next()
        } else {
            Some(self.shell)
        }
    }

    /// Whether a shell leaves the last command running in the background.
    pub(super) fn continues_in_the_background(&self) -> bool {
        let text = self.text.trim_end();
        !self.shell.is_empty() && text.ends_with('&') && !text.ends_with("&&")
    }

    /// The first word that only a shell would understand, where there is none.
    pub(super) fn word_for_a_shell(&self) -> Option<&'a str> {
        let mut words = self.text.split_whitespace();
        let means_a_shell = |word: &&str| {
            let redirects = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '&');
            matches!(*word, "|" | "||" | "&" | "&&" | ";")
                || redirects.starts_with(['<', '>'])
                || word.starts_with(['\'', '"', '`'])
                || word.starts_with("$(")
                || (word.ends_with(';') && *word != "\\;")
        };
        words.find(means_a_shell).filter(|_| self.shell.is_empty())
    }

    /// A failure about it, which names it unless something about it is secret.
    pub(super) fn failed(&self, attempted: &'static str, secret: bool) -> Failure {
        let failure = Failure::new(attempted);
        if secret {
            failure.on("(sensitive)")
        } else {
            failure.on(format_args!("`{self}`"))
        }
    }
}

/// What all commands of one run share.
pub(super) struct Run {
    environment: Environment,
    rights: CommandRights,
    limits: BTreeMap<Limit, u64>,
    capabilities: Option<Vec<Capability>>,
    most_output: usize,
    signal: Signal,
    secret: bool,
}

impl Exec {
    pub(super) async fn run(&self, apply: &Apply<'_>) -> Result<Run, Failure> {
        self.run_with(apply.handle(), apply.has_sensitive()).await
    }

    pub(super) async fn run_with(&self, handle: &Handle, secret: bool) -> Result<Run, Failure> {
        let variables = self.env.iter().map(|(Variable(name), value)| {
            let value: &OsStr = OsStr::from_bytes(value.as_bytes());
            (OsString::from(name), value.to_os_string())
        });
        let RightsParameters {
            user,
            group,
            limits,
            capabilities,
        } = &self.rights;
        Ok(Run {
            environment: Environment::Exactly(variables.collect()),
            rights: CommandRights::find(handle, user, group).await?,
            limits: limits.clone(),
            capabilities: capabilities.clone(),
            most_output: self.output_limit as usize,
            signal: self.sig.unwrap_or(Signal::TERM),
            secret,
        })
    }
}

impl Run {
    /// The command, ready to be started.
    pub(super) fn command(&self, line: &CommandLine<'_>) -> Result<Command, Failure> {
        let command = if !line.shell.is_empty() {
            Command::shell(line.shell, line.text)
        } else {
            let command = Command::words(line.text)
                .ok_or_else(|| Failure::new("run").because("there is no command"))?;
            if line.arguments.is_empty() {
                command
            } else {
                let arguments = line
                    .arguments
                    .iter()
                    .map(|argument| OsStr::from_bytes(argument.as_bytes()));
                command.arguments(arguments)
            }
        };
        let directory = Some(line.directory).filter(|directory| !directory.is_empty());
        Ok(self
            .rights
            .give(command)
            .directory(directory.map(PathBuf::from))
            .environment(self.environment.clone())
            .limits(self.limits.clone())
            .capabilities(self.capabilities.clone())
            .most_output(self.most_output))
    }

    /// Runs a command to its end.
    pub(super) async fn finish(
        &self,
        line: &CommandLine<'_>,
        attempted: &'static str,
        apply: &Apply<'_>,
    ) -> Result<Finished, Failure> {
        let command = self.command(line)?;
        let cancellation = apply.cancellation();
        let kill = cancellation.interrupt_token().child_token();
        let stop = Stop {
            cancel: cancellation.token().clone(),
            interrupt: kill.clone(),
            signal: self.signal,
            grace: None,
        };
        let finished = tokio::select! {
            finished = apply.handle().processes().run(&command, &stop) => finished,
            never = kill_after_grace(cancellation, &kill) => match never {},
        };
        finished.map_err(|error| {
            let failure = line.failed(attempted, self.secret);
            match error {
                RunError::Cancelled { .. } => failure.because("cancelled").reasoned(FailureReason::Cancelled),
                RunError::Interrupted { .. } if cancellation.is_interrupted() => failure
                    .because("interrupted")
                    .reasoned(FailureReason::Interrupted),
                // We killed it ourselves, after the grace.
                RunError::Interrupted { .. } => failure
                    .because("cancelled, and killed")
                    .reasoned(FailureReason::Cancelled),
                _ if self.secret => failure.because("it could not be started"),
                error => failure.because(error),
            }
        })
    }

    pub(super) fn signal(&self) -> Signal {
        self.signal
    }
}

/// Kills what was asked to stop and did not, unless the whole program is stopping.
async fn kill_after_grace(cancellation: &Cancellation, kill: &CancellationToken) -> std::convert::Infallible {
    cancellation.cancelled().await;
    if cancellation.cause() != Some(CancelCause::Stopping) {
        tokio::time::sleep(GRACE).await;
        kill.cancel();
    }
    std::future::pending().await
}
