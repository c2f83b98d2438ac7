//! `setpoint run`: keeps the machine in the state that a program describes.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use setpoint_engine::machine::{ExitReason, ExitReport, Options, StopStage};
use setpoint_engine::{
    Busy, EmptyGraph, Engine, EngineOptions, ExitRequest, FileValues, Services, StateFiles,
};
use setpoint_host::Host;
use setpoint_host::files::{AbsolutePath, Entry};
use setpoint_host::state::PrefixLock;
use tokio::signal::unix::{SignalKind, signal};

use crate::arguments::{ProgramArguments, environment};
use crate::capabilities::{LocalWorld, ProgramFiles, RealCapabilities, RealEffects};
use crate::compilation::Compilation;
use crate::failure::{Failure, exit_code};
use crate::later::RunLater;
use crate::prefix::{Prefix, PrefixArguments};
use crate::program::Program;
use crate::view::View;
use crate::{Assembly, output};

/// Keep this machine in the state that a program describes
///
/// Compiles the program, brings the machine into the state, and watches: what drifts is repaired, and when a value changes that
/// the program depends on, what follows from it changes too. Ctrl-C stops; nothing is undone.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    program: ProgramArguments,

    #[command(flatten)]
    prefix: PrefixArguments,

    /// Repair nothing, only say what would be repaired
    #[arg(long)]
    noop: bool,

    /// End as soon as the machine is right, or cannot be made so
    #[arg(long, conflicts_with_all = ["converger_timeout", "converged_exit"])]
    once: bool,

    /// With --once: end with code 2 when something was repaired, or under --noop would have been
    #[arg(long, requires = "once")]
    detailed_exitcode: bool,

    /// Seconds without activity after which the machine counts as converged; -1: never [default: -1]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    converger_timeout: Option<i64>,

    /// End when converged; needs --converger-timeout
    #[arg(long)]
    converged_exit: bool,

    /// Append a line `true` or `false` to this file whenever that changes
    #[arg(long, value_name = "FILE")]
    converger_status_file: Option<PathBuf>,

    /// End with an error after so many seconds; 0: never
    #[arg(long, value_name = "N")]
    max_runtime: Option<u64>,

    /// Let at most N resources run at the same time, by a semaphore `:N` on each of them
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    sema: Option<i64>,

    /// Runs that may be under way at the same time
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..))]
    jobs: u32,

    /// How often resources that do not say are tried again; -1: forever
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    meta_retry: Option<i16>,

    /// Milliseconds between the tries of resources that do not say
    #[arg(long, value_name = "MS")]
    meta_delay: Option<u64>,

    /// Make no automatic edges
    #[arg(long)]
    no_autoedges: bool,

    /// Group nothing
    #[arg(long)]
    no_autogroup: bool,

    /// Stay with the first graph: changed values make no new one
    #[arg(long, alias = "no-watch")]
    no_stream_watch: bool,

    /// Run this command with `true` or `false` as its argument whenever that changes
    #[arg(long, value_name = "CMD")]
    converger_command: Option<String>,

    /// Leave the kernel's limits for watching files as they are
    #[arg(long)]
    no_raise_limits: bool,

    /// Print everything that happens as JSON, one object a line
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    later: RunLater,
}

pub(super) fn run(assembly: &Assembly, arguments: &Arguments) -> Result<u8, Failure> {
    arguments.later.check()?;
    let settings = Settings::of(arguments)?;
    let hostname = arguments.program.hostname()?;
    let idle = arguments.program.words() == ["empty"];
    let compilation = match idle {
        true => None,
        false => {
            let options = arguments.program.compile_options(false)?;
            let library = assembly.library(&hostname);
            let compilation = Compilation::compile(arguments.program.input()?, &options, &library);
            compilation.talk();
            if compilation.diagnostics.has_errors() {
                return Ok(exit_code::WRONG);
            }
            Some((compilation, options))
        }
    };
    let prefix = Prefix::find(&arguments.prefix, &hostname)?;
    let host = Host::new(std::env::var_os("PATH").unwrap_or_default())
        .map_err(|error| Failure::io("prepare for watching files", &error))?;
    let host = Arc::new(host);
    // Thousands of commands at a time need descriptors; fewer only mean that they wait.
    let _ = setpoint_host::raise_open_file_limit();
    if !arguments.no_raise_limits {
        raise_watch_limits();
    }
    let state = open_state(&prefix, &host)?;
    let below = |name: &str| {
        AbsolutePath::new(prefix.path.join(name))
            .map_err(|error| Failure::Wrong(format!("the prefix cannot be used: {error}")))
    };
    let values = Arc::new(FileValues::new(below("local/value")?, host.committer.clone()));
    let names = assembly.kinds().iter().map(|kind| kind.schema.kind.to_owned());
    let world = LocalWorld::new(below("world")?, &hostname, &host, names);
    let services = services(&host, &hostname, values.clone());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::io("start", &error))?;
    let mut engine_options = settings.engine;
    engine_options.state = Some(state);
    let kinds: Vec<_> = assembly.kinds().iter().map(|kind| **kind).collect();
    let engine = Engine::start(
        engine_options,
        &kinds,
        services,
        &host.watches,
        runtime.handle().clone(),
    );
    let view = View::start(&engine, arguments.json);
    let program = match compilation {
        None => None,
        Some((compilation, options)) => {
            let Some(compiled) = &compilation.compiled else {
                return Ok(exit_code::BUG);
            };
            let state_directory = format!("{}/local/", prefix.path.display());
            let modules = options.modules_directory.as_deref();
            let files = ProgramFiles::new(compiled, &compilation.loader, modules, state_directory);
            let capabilities = RealCapabilities::new(&host, &hostname, files)
                .map_err(|error| Failure::io("start the clock", &error))?
                .with_effects(RealEffects::new(host.clone()))
                .with_values(values)
                .with_world(Arc::new(world));
            Some(Program::start(
                compilation,
                Arc::new(capabilities),
                engine.clone(),
                !arguments.no_stream_watch,
            ))
        }
    };
    let ended = runtime.block_on(wait(&engine, program.as_ref()));
    drop(program);
    let code = match ended {
        End::Program => {
            engine.exit(ExitReason::Stopped);
            runtime.block_on(engine.wait());
            exit_code::WRONG
        }
        End::Engine(report) => {
            summary(&report);
            report.code(arguments.detailed_exitcode)
        }
    };
    drop(engine);
    view.finish();
    runtime.shutdown_timeout(Duration::from_millis(100));
    prefix.leave();
    Ok(code)
}

/// How `run` came to its end.
enum End {
    /// The program is wrong; that was told.
    Program,
    /// The engine ended.
    Engine(ExitReport),
}

/// Waits for the end, and passes signals on on the way.
async fn wait(engine: &Engine, program: Option<&Program>) -> End {
    let ended = async {
        match program {
            Some(program) => program.ended().await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(ended);
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return End::Engine(engine.wait().await);
    };
    let mut stage: Option<StopStage> = None;
    loop {
        let by_itself = tokio::select! {
            _ = &mut ended, if stage.is_none() => return End::Program,
            report = engine.wait() => return End::Engine(report),
            _ = interrupt.recv() => false,
            _ = terminate.recv() => true,
        };
        let next = match stage {
            None => StopStage::Finish,
            Some(StopStage::Finish) => StopStage::Cancel,
            Some(StopStage::Cancel | StopStage::Interrupt) => StopStage::Interrupt,
        };
        output::talk(&format!(
            "interrupted by {}\n",
            if by_itself { "SIGTERM" } else { "^C" }
        ));
        // A service manager signals only once: the further stages follow by themselves.
        engine.stop(next, by_itself);
        stage = Some(next);
    }
}

/// Says what is not right at the end.
fn summary(report: &ExitReport) {
    match &report.reason {
        ExitReason::MaxRuntime => output::talk("error: the maximum time to run is over\n"),
        ExitReason::BackgroundFailed(why) => output::talk(&format!("error: {why}\n")),
        ExitReason::Stopped | ExitReason::Converged | ExitReason::Requested(_) => {}
    }
    for (id, error) in &report.failed {
        output::talk(&format!("error: {id} failed to {error}\n"));
    }
    for (id, by) in &report.blocked {
        output::talk(&format!("error: {id} could not run, because {by} failed\n"));
    }
    for id in &report.hung {
        output::talk(&format!("error: {id} did not end\n"));
    }
}

/// The flags, checked against each other.
struct Settings {
    engine: EngineOptions,
}

impl Settings {
    fn of(arguments: &Arguments) -> Result<Settings, Failure> {
        let number = |name: &str| -> Result<Option<i64>, Failure> {
            let Some(text) = environment(name) else {
                return Ok(None);
            };
            let parsed = text.parse().map_err(|_| {
                Failure::Usage(format!(
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
            return Err(Failure::Usage(
                "--converged-exit needs --converger-timeout of 0 or more".to_owned(),
            ));
        }
        let max_runtime = match arguments.max_runtime {
            Some(seconds) => Some(seconds),
            None => number("MAX_RUNTIME")?.map(i64::unsigned_abs),
        };
        let machine = Options {
            seed: seed(),
            noop: arguments.noop,
            sema: arguments
                .sema
                .and_then(|n| u32::try_from(n).ok())
                .filter(|n| *n > 0),
            jobs: arguments.jobs as usize,
            retry: arguments.meta_retry,
            delay: arguments.meta_delay,
            keep_trying: !arguments.once,
            converge: if arguments.once {
                Some(Duration::ZERO)
            } else {
                timeout
            },
            exit_when_converged: arguments.once || arguments.converged_exit,
            max_runtime: max_runtime
                .filter(|seconds| *seconds > 0)
                .map(Duration::from_secs),
            ..Options::default()
        };
        let (file, command) = (
            arguments.converger_status_file.clone(),
            arguments.converger_command.clone(),
        );
        let wanted = file.is_some() || command.is_some();
        let on_converged = wanted.then(|| -> Box<dyn FnMut(bool) + Send> {
            Box::new(move |converged| {
                if let Some(file) = &file {
                    append_status(file, converged);
                }
                if let Some(command) = &command {
                    run_converger_command(command, converged);
                }
            })
        });
        let engine = EngineOptions {
            machine,
            automatic_edges: !arguments.no_autoedges,
            on_converged,
            ..EngineOptions::default()
        };
        // Grouping changes nothing that a resource does, and there is none yet.
        let _ = arguments.no_autogroup;
        Ok(Settings { engine })
    }
}

fn append_status(path: &std::path::Path, converged: bool) {
    let line = format!("{converged}\n");
    let written = std::path::absolute(path)
        .map_err(|error| error.to_string())
        .and_then(|path| AbsolutePath::new(path).map_err(|error| error.to_string()))
        .and_then(|path| {
            let appended = Entry::at(&path).and_then(|entry| entry.append(line.as_bytes(), 0o600));
            appended.map_err(|error| error.to_string())
        });
    if let Err(error) = written {
        output::talk(&format!(
            "warning: the status file {} cannot be written: {error}\n",
            path.display()
        ));
    }
}

fn run_converger_command(command: &str, converged: bool) {
    let status = std::process::Command::new("/bin/sh")
        .arg("-c")
        .arg(format!("{command} {converged}"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => output::talk(&format!("warning: `{command}` ended with {status}\n")),
        Err(error) => output::talk(&format!("warning: `{command}` cannot be run: {error}\n")),
    }
}

/// Raises what the kernel lets one user watch, where it is lower and that is allowed. Where not, many files are too many.
fn raise_watch_limits() {
    for (name, wanted) in [("max_user_instances", 512u64), ("max_user_watches", 242_940)] {
        let path = format!("/proc/sys/fs/inotify/{name}");
        let is = std::fs::read_to_string(&path)
            .ok()
            .and_then(|text| text.trim().parse::<u64>().ok());
        if is.is_some_and(|is| is < wanted) {
            let _ = std::fs::write(&path, wanted.to_string());
        }
    }
}

fn seed() -> u64 {
    let mut bytes = [0; 8];
    setpoint_value::Random::fill(&crate::capabilities::SystemRandom, &mut bytes);
    u64::from_ne_bytes(bytes)
}

fn open_state(prefix: &Prefix, host: &Host) -> Result<StateFiles, Failure> {
    let failed =
        |error: &dyn std::fmt::Display| Failure::Wrong(format!("the prefix cannot be used: {error}"));
    let lock = PrefixLock::acquire(&prefix.directory).map_err(|error| Failure::Wrong(error.to_string()))?;
    StateFiles::open(&prefix.directory, lock, host.committer.clone()).map_err(|error| failed(&error))
}

fn services(host: &Host, hostname: &str, values: Arc<FileValues>) -> Services {
    Services {
        program: "setpoint".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        hostname: hostname.to_owned(),
        debug: false,
        writable: true,
        committer: host.committer.clone(),
        verified: host.verified.clone(),
        processes: host.processes.clone(),
        users: host.users.clone(),
        values,
        graph: Arc::new(EmptyGraph),
        exit: Arc::new(NoExit),
        busy: Busy::default(),
    }
}

/// Stands in until the engine puts its own in place.
struct NoExit;

impl ExitRequest for NoExit {
    fn request_exit(&self, _: u8) {}
}
