//! What the kinds of accounts have in common: valid names, and the tools that change the local account files.
//!
//! The files are never written here: `useradd` and its like know their locks, their backups and their neighbours (subordinate ids, mail
//! spools). They lock the files and give up after a while; whoever holds the lock is waited for, and named.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use setpoint_engine::{Apply, Attempting, Failure, Level};
use setpoint_host::files::LockHolder;
use setpoint_host::processes::{Command, Environment, Finished, Stop};
use setpoint_host::users::LocalAccounts;

/// How long between two tries while somebody else has locked the account files.
const UNTIL_NEXT_TRY: Duration = Duration::from_millis(500);

/// The file by which all tools lock the others (lckpwdf(3)).
const LOCK: &str = "/etc/.pwd.lock";

/// Why a text is not the name of an account, if it is not: `^[a-zA-Z_][a-zA-Z0-9_.-]*[$]?$`, at most 32 bytes, as useradd(8) takes it.
pub(crate) fn invalid_name(name: &str) -> Option<String> {
    // Samba's accounts of machines end in a dollar.
    let mut signs = name.strip_suffix('$').unwrap_or(name).chars();
    let first = signs
        .next()
        .is_some_and(|first| first == '_' || first.is_ascii_alphabetic());
    let rest = signs.all(|sign| matches!(sign, '_' | '-' | '.') || sign.is_ascii_alphanumeric());
    (!first || !rest || name.len() > 32).then(|| {
        format!("`{name}` is not the name of an account: letters, digits, `_`, `-` and `.`, a letter or `_` first, perhaps a `$` at the end, at most 32 of them")
    })
}

/// The accounts of the local files, as they are now.
pub(crate) async fn local(apply: &Apply<'_>) -> Result<Arc<LocalAccounts>, Failure> {
    let services = apply.handle().services().users.clone();
    let read = tokio::task::spawn_blocking(move || services.local()).await;
    let read = read.map_err(|ended| Failure::new("read the accounts").because(ended))?;
    read.attempting("read the accounts in", "/etc/passwd and /etc/group")
}

/// A program that changes accounts, with its arguments.
pub(crate) struct Tool {
    program: &'static str,
    arguments: Vec<OsString>,
    secrets: BTreeMap<OsString, OsString>,
}

impl Tool {
    pub(crate) fn new(program: &'static str) -> Tool {
        Tool {
            program,
            arguments: Vec::new(),
            secrets: BTreeMap::new(),
        }
    }

    pub(crate) fn argument(mut self, argument: impl Into<OsString>) -> Tool {
        self.arguments.push(argument.into());
        self
    }

    /// An option with its value.
    pub(crate) fn option(self, option: &'static str, value: impl Into<OsString>) -> Tool {
        self.argument(option).argument(value)
    }

    /// A variable of its environment, which unlike its arguments nobody else can read.
    pub(crate) fn secret(mut self, name: &'static str, value: impl Into<OsString>) -> Tool {
        self.secrets.insert(name.into(), value.into());
        self
    }

    /// Runs it to its end. While somebody else has locked the files it is tried again and again.
    ///
    /// # Errors
    /// What it said on standard error.
    pub(crate) async fn run(self, attempted: &'static str, apply: &Apply<'_>) -> Result<(), Failure> {
        let services = apply.handle().services();
        let _turn = services.users.turn_to_change().await;
        let mut environment: BTreeMap<OsString, OsString> = self.secrets.clone();
        environment.insert("PATH".into(), "/usr/sbin:/usr/bin:/sbin:/bin".into());
        // What it says is compared with what it says in English.
        environment.insert("LC_ALL".into(), "C".into());
        let command = Command::new(self.program, self.arguments.clone());
        let command = command.environment(Environment::Exactly(environment));
        let cancellation = apply.cancellation();
        let stop = Stop {
            cancel: cancellation.token().clone(),
            interrupt: cancellation.interrupt_token().clone(),
            ..Stop::default()
        };
        let mut is_told = false;
        loop {
            cancellation.check(attempted)?;
            let finished = services.processes.run(&command, &stop).await;
            let finished = finished.map_err(|error| Failure::new(attempted).because(error))?;
            if finished.exit.is_success() {
                return Ok(());
            }
            if !is_locked(&finished) {
                return Err(self.failed(attempted, &finished));
            }
            if !std::mem::replace(&mut is_told, true) {
                let who = LockHolder::at(Path::new(LOCK));
                apply.log(
                    Level::Warning,
                    format!("{who} has locked the account files; waits"),
                );
            }
            tokio::select! {
                () = tokio::time::sleep(UNTIL_NEXT_TRY) => {}
                () = cancellation.cancelled() => {}
            }
        }
    }

    fn failed(&self, attempted: &'static str, finished: &Finished) -> Failure {
        let said = String::from_utf8_lossy(&finished.output.stderr())
            .trim()
            .to_owned();
        let prefix = format!("{}: ", self.program);
        let said: Vec<&str> = said
            .lines()
            .map(|line| line.strip_prefix(&prefix).unwrap_or(line))
            .collect();
        let why = match said.as_slice() {
            [] => format!("`{}` ended with {}", self.program, finished.exit),
            said => format!("`{}`: {}", self.program, said.join("; ")),
        };
        Failure::new(attempted).because(why)
    }
}

fn is_locked(finished: &Finished) -> bool {
    let said = String::from_utf8_lossy(&finished.output.stderr()).into_owned();
    said.contains("cannot lock /etc/") || said.contains("try again later")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_every_tool_takes() {
        for name in ["a", "_a", "A-1_", "a.b", "a$", &"a".repeat(32)] {
            assert_eq!(invalid_name(name), None);
        }
        for name in [
            "",
            "$",
            "1a",
            "-a",
            ".a",
            "ä",
            "a b",
            "a$b",
            "a,b",
            &"a".repeat(33),
        ] {
            assert!(invalid_name(name).is_some(), "{name}");
        }
    }
}
