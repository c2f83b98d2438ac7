//! Commands of managers of packages, which are never asked anything and speak English.

use std::collections::BTreeMap;
use std::ffi::OsString;

use setpoint_engine::{Apply, Failure};
use setpoint_host::processes::{Command, Environment, Processes, Stop};

/// What a command came to.
pub(crate) struct Ended {
    pub(crate) is_success: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// How it ended, in words.
    pub(crate) how: String,
}

impl Ended {
    /// Whether it has printed a text.
    pub(super) fn says(&self, text: &str) -> bool {
        self.stdout.contains(text) || self.stderr.contains(text)
    }

    /// The first of these lines, which it has printed, or how it ended if there are none.
    pub(super) fn summary<'l>(&self, lines: impl IntoIterator<Item = &'l str>) -> String {
        let lines: Vec<&str> = lines.into_iter().take(6).collect();
        match lines.as_slice() {
            [] => format!("it ended with {}", self.how),
            lines => lines.join("; "),
        }
    }
}

/// Where programs of the system are.
const SEARCH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Runs a command to its end.
pub(super) async fn run(
    program: &str,
    arguments: &[&str],
    attempted: &'static str,
    apply: &Apply<'_>,
) -> Result<Ended, Failure> {
    let cancellation = apply.cancellation();
    let stop = Stop {
        cancel: cancellation.token().clone(),
        interrupt: cancellation.interrupt_token().clone(),
        ..Stop::default()
    };
    cancellation.check(attempted)?;
    let ended = to_its_end(program, arguments, attempted, apply.handle().processes(), &stop).await;
    cancellation.check(attempted)?;
    ended
}

/// The same outside of a run, for a command that only asks.
pub(super) async fn run_with(
    program: &str,
    arguments: &[&str],
    attempted: &'static str,
    processes: &Processes,
) -> Result<Ended, Failure> {
    to_its_end(program, arguments, attempted, processes, &Stop::default()).await
}

async fn to_its_end(
    program: &str,
    arguments: &[&str],
    attempted: &'static str,
    processes: &Processes,
    stop: &Stop,
) -> Result<Ended, Failure> {
    let mut environment: BTreeMap<OsString, OsString> = BTreeMap::new();
    for (name, value) in [
        ("PATH", SEARCH),
        ("LC_ALL", "C.UTF-8"),
        ("DEBIAN_FRONTEND", "noninteractive"),
        ("DEBCONF_NONINTERACTIVE_SEEN", "true"),
        ("APT_LISTCHANGES_FRONTEND", "none"),
        ("NEEDRESTART_SUSPEND", "1"),
        ("HOME", "/root"),
    ] {
        environment.insert(name.into(), value.into());
    }
    let command = Command::new(program, arguments.iter().copied());
    let command = command.environment(Environment::Exactly(environment));
    let finished = processes.run(&command, stop).await;
    let finished = finished.map_err(|error| Failure::new(attempted).because(error))?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok(Ended {
        is_success: finished.exit.is_success(),
        stdout: text(finished.output.stdout()),
        stderr: text(finished.output.stderr()),
        how: finished.exit.to_string(),
    })
}
