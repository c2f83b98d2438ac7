//! What the flags of `run` ask of the engine, and what happens beside it.

use std::process::Stdio;
use std::time::Duration;

use setpoint_diagnostics::visible;
use setpoint_engine::machine::Options;
use setpoint_engine::{EngineOptions, Preparation};
use setpoint_host::files::{AbsolutePath, Entry};
use setpoint_programs::environment;
use setpoint_programs::failure::{Failure, system_text};
use setpoint_programs::report::Reporter;

use super::Arguments;

/// After so long without an answer, a resource is said not to answer. A disk under load takes seconds.
pub(in crate::commands) const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// How the engine works, from the flags, which are checked against each other.
pub(super) fn engine_options(arguments: &Arguments, reporter: &Reporter) -> Result<EngineOptions, Failure> {
    let number = |name: &str| -> Result<Option<i64>, Failure> {
        let Some(text) = environment::variable(name) else {
            return Ok(None);
        };
        let parsed = text.parse().map_err(|_| {
            Failure::usage(format!(
                "the variable {name} must hold a whole number, not `{text}`"
            ))
        });
        parsed.map(Some)
    };
    let timeout = match arguments.converger_timeout {
        Some(timeout) => Some(timeout),
        None => number("CONVERGER_TIMEOUT")?,
    };
    let timeout = timeout
        .filter(|timeout| *timeout >= 0)
        .map(|timeout| Duration::from_secs(timeout.unsigned_abs()));
    if arguments.converged_exit && timeout.is_none() {
        return Err(Failure::usage(
            "--converged-exit needs --converger-timeout of 0 or more",
        ));
    }
    let max_runtime = match arguments.max_runtime {
        Some(seconds) => Some(seconds),
        None => number("MAX_RUNTIME")?.map(i64::unsigned_abs),
    };
    let (file, command) = (
        arguments.converger_status_file.clone(),
        arguments.converger_command.clone(),
    );
    let wanted = file.is_some() || command.is_some();
    let machine = Options {
        seed: seed(),
        noop: arguments.noop,
        sema: arguments
            .sema
            .and_then(|n| u32::try_from(n).ok())
            .filter(|n| *n > 0),
        jobs: arguments.jobs.get() as usize,
        retry: arguments.meta_retry,
        delay: arguments.meta_delay,
        keep_trying: !arguments.once,
        // A run that stays says when it is right, unless somebody waits for more quiet than that.
        converge: match timeout {
            Some(timeout) if !arguments.once => Some(timeout),
            // `--once` ends when it is right, whoever is told of that.
            None if wanted && !arguments.once => None,
            _ => Some(Duration::ZERO),
        },
        answer_within: Some(ANSWER_WITHIN),
        exit_when_converged: arguments.once || arguments.converged_exit,
        max_runtime: max_runtime
            .filter(|seconds| *seconds > 0)
            .map(Duration::from_secs),
        ..Options::default()
    };
    let reporter = reporter.clone();
    let on_converged = wanted.then(|| -> Box<dyn FnMut(bool) + Send> {
        Box::new(move |converged| {
            if let Some(file) = &file {
                append_status(file, converged, &reporter);
            }
            if let Some(command) = &command {
                run_converger_command(command, converged, &reporter);
            }
        })
    });
    Ok(EngineOptions {
        machine,
        preparation: Preparation {
            automatic_edges: !arguments.no_autoedges,
            grouping: !arguments.no_autogroup,
        },
        on_converged,
        ..EngineOptions::default()
    })
}

fn append_status(path: &std::path::Path, converged: bool, reporter: &Reporter) {
    let line = format!("{converged}\n");
    let written = std::path::absolute(path)
        .map_err(|error| system_text(&error))
        .and_then(|path| AbsolutePath::new(path).map_err(|error| error.to_string()))
        .and_then(|path| {
            let appended = Entry::at(&path).and_then(|entry| entry.append(line.as_bytes(), 0o600));
            appended.map_err(|error| error.to_string())
        });
    if let Err(why) = written {
        let path = path.display().to_string();
        reporter.warning(format!(
            "the status file {} cannot be written: {why}",
            visible(&path)
        ));
    }
}

fn run_converger_command(command: &str, converged: bool, reporter: &Reporter) {
    let status = std::process::Command::new("/bin/sh")
        .arg("-c")
        .arg(format!("{command} {converged}"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => reporter.warning(format!("`{command}` ended with {status}")),
        Err(error) => reporter.warning(format!("`{command}` cannot be run: {}", system_text(&error))),
    }
}

pub(in crate::commands) fn seed() -> u64 {
    let mut bytes = [0; 8];
    setpoint_value::Random::fill(&setpoint_programs::capabilities::SystemRandom, &mut bytes);
    u64::from_ne_bytes(bytes)
}
