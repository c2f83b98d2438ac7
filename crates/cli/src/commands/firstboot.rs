//! `setpoint firstboot`: scripts that run once, when a machine made of an image starts for the first time.
//!
//! A script counts as done when it has ended, and is taken away then. Whoever is killed before that leaves it where it is, so it runs again at the next
//! start: at least once, and never half a time for good.

mod lock;
mod log;
mod places;
mod script;

use std::ops::ControlFlow;
use std::time::Duration;

use clap::{Args, Subcommand};
use setpoint_agent::signals::{Hangup, Request, Signals, StopSignal};
use setpoint_diagnostics::{visible, without_system_numbers};
use setpoint_host::files::AbsolutePath;
use setpoint_host::processes::{Command, Exit, LineEvent, Processes, RunError, Signal};
use setpoint_programs::command_path::command_path;
use setpoint_programs::failure::Failure;
use setpoint_programs::report::Importance;
use tokio::time::timeout;

pub(super) use places::{Places, make_directory};

use crate::exit_code;
use crate::output::Output;
use crate::process::warn_of_foreign_text;
use crate::session::Session;
use lock::FileLock;
use log::Log;
use script::Script;

/// How long a script has to end after it was asked to.
const GRACE: Duration = Duration::from_secs(15);

/// Enough to hear of a signal that has come already.
const MOMENT: Duration = Duration::from_millis(1);

/// Run first-boot scripts once
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Run all scripts, one after the other, and take away those that have run
    ///
    /// They are the executable files of a directory, in the order of their names. One that fails does not stop those behind it. Beside a script may lie
    /// a `NAME.yaml` with what holds for it: `done-dir: DIR`, `keep-on-fail: true`, `no-log: true`.
    Start(StartArguments),
}

#[derive(Debug, Args)]
struct StartArguments {
    #[command(flatten)]
    places: Places,
}

pub(super) fn run(session: &Session, arguments: &Arguments) -> Result<u8, Failure> {
    match &arguments.what {
        What::Start(arguments) => start(&session.output, &arguments.places),
    }
}

/// How it went with a script.
enum Ran {
    /// It ended by itself, or could not be started.
    Ended(Result<Exit, RunError>),
    /// It was asked to end.
    Stopped(StopSignal),
}

fn start(output: &Output, places: &Places) -> Result<u8, Failure> {
    let directory = places.scripts()?;
    let log_directory = places.logging()?;
    let done = places.done()?;
    let Some(scripts) = script::find(&directory, output)? else {
        if places.names_scripts() {
            let failure = Failure::wrong(format!("there is no directory {directory}"));
            return Err(failure.hint("`setpoint setup firstboot --mkdir` makes it"));
        }
        output.say(
            Importance::Notice,
            format!("there are no scripts: {directory} is not there"),
        );
        return Ok(exit_code::DONE);
    };
    let _lock = FileLock::take(&places.lock()?)?;
    if scripts.is_empty() {
        output.say(Importance::Info, format!("there are no scripts in {directory}"));
        return Ok(exit_code::DONE);
    }
    script::check_writable(&directory)?;
    let files: Vec<_> = scripts
        .iter()
        .map(|script| script.path().as_path().to_path_buf())
        .collect();
    warn_of_foreign_text(&files, output);
    // Signals are heard on its thread, however much a script says meanwhile.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| Failure::io("start", &error))?;
    runtime.block_on(async {
        let mut start = Start {
            output,
            done: done.as_ref(),
            signals: Signals::take(Hangup::take()?)?,
            processes: Processes::new(command_path(output)),
            log: Log::in_directory(&log_directory),
            code: exit_code::DONE,
        };
        for script in scripts {
            if let ControlFlow::Break(code) = start.script(&script).await {
                return Ok(code);
            }
        }
        Ok(start.code)
    })
}

/// A start of the machine, while its scripts run.
struct Start<'a> {
    output: &'a Output,
    /// Where scripts go that have run, if nothing else is said for them.
    done: Option<&'a AbsolutePath>,
    signals: Signals,
    processes: Processes,
    log: Log,
    /// What it exits with, so far.
    code: u8,
}

impl Start<'_> {
    /// Runs a script, and takes it away. A stop ends everything, with a code of its own.
    async fn script(&mut self, script: &Script) -> ControlFlow<u8> {
        // What cannot be taken away afterwards is not run: it would be run at every start.
        let prepared = script.options().and_then(|options| {
            let leave = script.prepare(options.done_directory.as_ref().or(self.done))?;
            Ok((leave, options))
        });
        let (leave, options) = match prepared {
            Ok(prepared) => prepared,
            Err(failure) => {
                self.failed(&failure);
                return ControlFlow::Continue(());
            }
        };
        if let Ok(signal) = timeout(MOMENT, stop_request(&mut self.signals)).await {
            return ControlFlow::Break(stopped(signal, None, self.output));
        }
        let exit = match self.run(script, options.no_log).await {
            Ran::Ended(exit) => exit,
            Ran::Stopped(signal) => {
                return ControlFlow::Break(stopped(signal, Some(&script.name()), self.output));
            }
        };
        if !is_success(&exit) && options.keep_on_fail {
            let name = script.name();
            self.output.say(
                Importance::Notice,
                format!("{name}: is kept, and runs again at the next start"),
            );
        } else if let Err(failure) = leave.take_away() {
            self.failed(&failure);
        }
        ControlFlow::Continue(())
    }

    /// Runs a script, and says how it began and ended.
    async fn run(&mut self, script: &Script, no_log: bool) -> Ran {
        let (name, output) = (script.name(), self.output);
        output.say(Importance::Notice, format!("{name}: starts"));
        let mut log = (!no_log).then_some(&mut self.log);
        let begins = format!("== {name} starts at {}\n", jiff::Zoned::now());
        say_in(&mut log, begins.as_bytes(), output);
        let ran = run_script(script, &self.processes, &mut self.signals, &mut log, output).await;
        let ended = match &ran {
            Ran::Stopped(_) => {
                say_in(&mut log, format!("== {name} was stopped\n").as_bytes(), output);
                return ran;
            }
            Ran::Ended(Ok(exit)) => exit.to_string(),
            Ran::Ended(Err(error)) => match script.missing_interpreter() {
                Some(why) => format!("failed to start: {why}"),
                None => format!("failed to {}", without_system_numbers(&error.to_string())),
            },
        };
        say_in(&mut log, format!("== {name}: {ended}\n").as_bytes(), output);
        match &ran {
            Ran::Ended(exit) if is_success(exit) => output.say(Importance::Notice, format!("{name}: done")),
            _ => output.error(format!("{name}: {}", visible(&ended))),
        }
        ran
    }

    fn failed(&mut self, failure: &Failure) {
        self.output.failure(failure);
        self.code = exit_code::of(failure);
    }
}

fn is_success(exit: &Result<Exit, RunError>) -> bool {
    exit.as_ref().is_ok_and(|exit| exit.is_success())
}

/// Waits until somebody asks for the end.
async fn stop_request(signals: &mut Signals) -> StopSignal {
    loop {
        match signals.next().await {
            Request::Stop(signal) => return signal,
            // There is nothing to read or look at again.
            Request::Reload | Request::Look => {}
        }
    }
}

fn stopped(signal: StopSignal, script: Option<&str>, output: &Output) -> u8 {
    let which = script.map_or(String::new(), |name| {
        format!("; {name} runs again at the next start")
    });
    output.say(
        Importance::Notice,
        format!("stopped: interrupted by {}{which}", signal.name()),
    );
    exit_code::SIGNAL + signal.number()
}

/// Runs a script to its end, in a process group of its own.
async fn run_script(
    script: &Script,
    processes: &Processes,
    signals: &mut Signals,
    log: &mut Option<&mut Log>,
    output: &Output,
) -> Ran {
    let command =
        Command::new(script.path().as_path(), [] as [&str; 0]).directory(std::path::PathBuf::from("/"));
    let mut lines = match processes.start_lines(&command).await {
        Ok(lines) => lines,
        Err(error) => return Ran::Ended(Err(error)),
    };
    let name = script.name();
    loop {
        let event = tokio::select! {
            event = lines.next() => event,
            signal = stop_request(signals) => {
                output.say(Importance::Notice, format!("stopping {name}: interrupted by {}", signal.name()));
                tokio::select! {
                    _ = lines.stop(Signal::TERM, Some(GRACE)) => {}
                    // Whoever asks again does not want to wait, and what is given up is killed.
                    _ = stop_request(signals) => {}
                }
                return Ran::Stopped(signal);
            }
        };
        match event {
            Ok(LineEvent::Ended(exit)) => return Ran::Ended(Ok(exit)),
            Ok(LineEvent::Line(line) | LineEvent::ErrorLine(line)) => {
                // That nobody listens is no reason to stop.
                let _ = output.print(&format!("{name}: {}\n", visible(&String::from_utf8_lossy(&line))));
                say_in(log, &[&line, &b"\n"[..]].concat(), output);
            }
            Err(error) => return Ran::Ended(Err(error)),
        }
    }
}

/// Appends to the log, if there is one. That it cannot be written is said, and no reason to stop.
fn say_in(log: &mut Option<&mut Log>, text: &[u8], output: &Output) {
    if let Some(log) = log
        && let Err(why) = log.append(text)
    {
        output.warning(why);
    }
}
