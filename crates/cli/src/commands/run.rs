//! `setpoint run`: keeps the machine in the state that a program describes.

mod settings;

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use setpoint_diagnostics::visible;
use setpoint_engine::machine::{ExitReason, ExitReport, StopStage};
use setpoint_engine::{Busy, Control, DebugOutput, DebugSelection, Engine, Extensions, Services, StateFiles};
use setpoint_host::state::PrefixLock;
use setpoint_model::errors::told;
use setpoint_resources::{Endpoints, Joining, ProgramExit};
use setpoint_value::{FunctionLog, FunctionSpec};
use setpoint_world::Store;
use tokio::runtime::Runtime;

use super::deploy::record_of;
use super::modules::follow_imports;
use crate::arguments::{ModuleArguments, ProgramArguments, parse_whole};
use crate::capabilities::{EtcdEndpoints, key_of};
use crate::compilation::{Compilation, ProgramSource};
use crate::control::protocol::{Hello, PROTOCOL, seconds};
use crate::control::{self, Names, Served, Server};
use crate::deploys::{Deployed, Deploys, Follower};
use crate::exit_code;
use crate::failure::Failure;
use crate::graphviz::GraphvizArguments;
use crate::imposed::Imposed;
use crate::known_files::KnownFiles;
use crate::later::RunLater;
use crate::local_machine::{LocalMachine, Presence};
use crate::membership::Reporting;
use crate::metrics::{Metrics, MetricsArguments};
use crate::model::{ModelCompilation, ModelWork};
use crate::model_run;
use crate::output::errors_first;
use crate::output::{End, Importance, Output, Said, Stood, headed};
use crate::prefix::{Prefix, PrefixArguments};
use crate::process::{harden, warn_of_foreign_text};
use crate::program_state::ProgramState;
use crate::published_facts::PublishedFacts;
use crate::reload::{Programs, Surroundings};
use crate::service_manager::ServiceManager;
use crate::session::Session;
use crate::signals::{Hangup, Request, Signals, StopSignal};
use crate::store_arguments::{NAMESPACE, StoreArguments};
use crate::view::{Reason, Verbosity, View, ViewOptions};
use settings::{Settings, raise_watch_limits};

/// More runs at a time gain nothing, and each takes memory.
const DEFAULT_JOBS: NonZeroU32 = NonZeroU32::new(4096).expect("it is not zero");

/// Keep this machine in the state that a program describes
///
/// Compiles the program, brings the machine into the state, and watches: what drifts is repaired, and when a value changes that
/// the program depends on, what follows from it changes too. Ctrl-C stops; nothing is undone.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    program: ProgramArguments,

    #[command(flatten)]
    modules: ModuleArguments,

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
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = parse_whole::<i64>)]
    converger_timeout: Option<i64>,

    /// End when converged; needs --converger-timeout
    #[arg(long)]
    converged_exit: bool,

    /// Append a line `true` or `false` to this file whenever that changes
    #[arg(long, value_name = "FILE")]
    converger_status_file: Option<PathBuf>,

    /// End with an error after so many seconds; 0: never
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = parse_whole::<u64>)]
    max_runtime: Option<u64>,

    /// Let at most N resources run at the same time, by a semaphore `:N` on each of them
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = parse_whole::<i64>)]
    sema: Option<i64>,

    /// Runs that may be under way at the same time
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = DEFAULT_JOBS, value_parser = parse_whole::<NonZeroU32>)]
    jobs: NonZeroU32,

    /// How often resources that do not say are tried again; -1: forever
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = parse_whole::<i16>)]
    meta_retry: Option<i16>,

    /// Milliseconds between the tries of resources that do not say
    #[arg(long, value_name = "MS", allow_negative_numbers = true, value_parser = parse_whole::<u64>)]
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

    /// Read the program again when its files change, as SIGHUP makes it do without a terminal
    #[arg(long, conflicts_with = "once")]
    watch: bool,

    /// Say more: what is right and why it is looked at; twice: every step
    #[arg(short, long, action = clap::ArgAction::Count)]
    verbose: u8,

    /// Say what helps to search for a mistake: of all, or of these kinds and resources; of functions (`os.readfile`) only when they are named, with what they give
    #[arg(long, value_name = "WHOM,…", num_args = 0..=1, require_equals = true, default_missing_value = "all")]
    debug: Option<DebugSelection>,

    /// Say only what goes wrong
    #[arg(short, long, conflicts_with = "verbose")]
    quiet: bool,

    /// Of a model: facts of resources from a JSON file, `{"web1": {"file[/etc/motd]": {"size": 12}}}`, which is followed. They count more
    /// than what resources publish
    #[arg(long, value_name = "FILE")]
    facts: Option<PathBuf>,

    #[command(flatten)]
    store: StoreArguments,

    /// With --seeds: keep this host by this program alone. It is not published, and what others publish is not run
    #[arg(long)]
    no_deploy: bool,

    /// Stay with the first deploy
    #[arg(long)]
    no_deploy_watch: bool,

    /// With `empty` and --seeds: do not run the deploy that is there, only those to come
    #[arg(long)]
    wait: bool,

    #[command(flatten)]
    graphviz: GraphvizArguments,

    #[command(flatten)]
    metrics: MetricsArguments,

    #[command(flatten)]
    later: RunLater,
}

impl Arguments {
    fn debug_selection(&self) -> DebugSelection {
        match &self.debug {
            Some(selection) => selection.clone(),
            None if self.verbosity() == Verbosity::Debug => DebugSelection::all(),
            None => DebugSelection::default(),
        }
    }

    /// The program, and what is done about modules from elsewhere: without repairs nothing is fetched either.
    fn source(&self, session: &Session) -> Result<ProgramSource, Failure> {
        let mut modules = self.modules.policy(&session.output);
        if self.noop && modules.fetch.take().is_some() {
            session.output.warning("with `--noop` no modules are fetched");
        }
        let prefix = self.prefix.given();
        session.program(&self.program, modules, prefix, false)
    }

    /// What holds for all resources of a deploy of this command line.
    fn imposed(&self) -> Imposed {
        Imposed {
            noop: self.noop,
            sema: self.sema.and_then(|n| u32::try_from(n).ok()).filter(|n| *n > 0),
            no_autoedges: self.no_autoedges,
            no_autogroup: self.no_autogroup,
        }
    }

    fn verbosity(&self) -> Verbosity {
        match self.verbose {
            _ if self.quiet => Verbosity::Quiet,
            0 => Verbosity::Normal,
            1 => Verbosity::Verbose,
            _ => Verbosity::Debug,
        }
    }
}

pub(super) fn run(session: &Session, arguments: &Arguments) -> Result<u8, Failure> {
    let output = &session.output;
    arguments.later.check(output)?;
    if arguments.modules.only_download && arguments.program.words() != ["empty"] {
        return follow_imports(arguments.source(session)?, output);
    }
    let settings = Settings::of(arguments, output)?;
    let options = ViewOptions {
        json: arguments.json,
        verbosity: arguments.verbosity(),
        stays: !arguments.once,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::io("start", &error))?;
    // Before anybody can know that we run: who asks for a reload must not end us. The others do while nothing is made yet.
    let hangup = runtime.block_on(async { Hangup::take() })?;
    let view = View::start(&session.assembly, output, options);
    let (end, reason, code) = match keep(session, arguments, settings, &view, runtime, hangup) {
        Ok(ended) => {
            let end = End {
                said: ended.said(),
                recap: ended.recap(),
            };
            (end, ended.reason(), ended.code(arguments))
        }
        Err(failure) => {
            output.failure(&failure);
            let code = exit_code::of(&failure);
            let end = End {
                said: Vec::new(),
                recap: None,
            };
            (end, Reason::Failed, code)
        }
    };
    let is_written = view.finish(end, reason, code);
    Ok(if is_written || code != exit_code::DONE {
        code
    } else {
        exit_code::WRONG
    })
}

/// How long the end waits for what is known of files to be left for the next process.
const LEAVE_WITHIN: Duration = Duration::from_secs(5);

/// What is kept, compiled for the first time.
enum Kept {
    Program(Box<(ProgramSource, Compilation)>),
    Model(Box<(ModelWork, ModelCompilation)>),
}

/// Keeps the machine right until the end.
fn keep(
    session: &Session,
    arguments: &Arguments,
    settings: Settings,
    view: &View,
    runtime: Runtime,
    hangup: Hangup,
) -> Result<Ended, Failure> {
    let output = &session.output;
    let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let started = seconds(started);
    let hostname = arguments.program.hostname()?;
    harden();
    let model = session.model(&arguments.program)?;
    if arguments.facts.is_some() && model.is_none() {
        return Err(Failure::usage("`--facts` is for models"));
    }
    let program = match (arguments.program.words() == ["empty"], model) {
        (true, _) => None,
        (false, Some(mut model)) => {
            if !arguments.no_stream_watch {
                model.follow();
            }
            if let Some(facts) = &arguments.facts {
                model.take_facts(facts.clone())?;
            }
            let compilation = model.compile();
            if compilation.diagnostics.has_errors() {
                let found = errors_first(&compilation.diagnostics);
                view.reporter().diagnostics(&told(&found), &model.shown_sources());
                return Ok(Ended::of_wrong_program());
            }
            Some(Kept::Model(Box::new((model, compilation))))
        }
        (false, None) => {
            let source = arguments.source(session)?;
            let compilation = source.fetch_and_compile(output)?;
            view.reporter()
                .diagnostics(&compilation.diagnostics, &compilation.shown_sources());
            if compilation.diagnostics.has_errors() {
                return Ok(Ended::of_wrong_program());
            }
            warn_of_foreign_text(&compilation.files().unwrap_or_default(), output);
            Some(Kept::Program(Box::new((source, compilation))))
        }
    };
    let metrics = Metrics::listen(
        &arguments.metrics,
        session.assembly.all_kinds().map(|kind| kind.schema.kind),
    )?;
    let etcd = arguments.store.open_etcd(output)?;
    let store = etcd.clone().map(|etcd| Arc::new(etcd) as Arc<dyn Store>);
    let store = match &metrics {
        Some(metrics) => store.map(|store| metrics.measure(store)),
        None => store,
    };
    // Whoever only looks, or runs once, concerns this host alone: a look that all hosts followed would end their repairs.
    let concerns_all = !arguments.no_deploy && (program.is_none() || !(arguments.noop || arguments.once));
    if store.is_some() && !concerns_all && !arguments.no_deploy {
        let switch = if arguments.noop { "--noop" } else { "--once" };
        let text =
            format!("with `{switch}` the program is for this host alone; `setpoint deploy` publishes it");
        output.say(Importance::Info, text);
    }
    let deploys = store.clone().filter(|_| concerns_all).map(Deploys::new);
    let program = match (&deploys, program) {
        (Some(deploys), Some(program)) => {
            let id = runtime.block_on(publish(deploys, &program, arguments.imposed()))?;
            output.say(Importance::Info, format!("published as deploy {id}"));
            None
        }
        (_, program) => program,
    };
    // From here on signals are requests, so that whatever is made is taken down again.
    let mut signals = runtime.block_on(async { Signals::take(hangup) })?;
    let prefix = Prefix::find(&arguments.prefix, &hostname)?;
    let presence = match arguments.noop && deploys.is_none() {
        true => Presence::Onlooker,
        false => Presence::Member,
    };
    let machine = LocalMachine::open(session, &hostname, prefix.path.clone(), store.clone(), presence)?;
    // Thousands of commands at a time need descriptors; fewer only mean that they wait.
    let _ = setpoint_host::raise_open_file_limit();
    if !arguments.no_raise_limits {
        raise_watch_limits();
    }
    let drawing = arguments
        .graphviz
        .drawing(&hostname, &prefix.path, &machine.host, output)?;
    let mut engine_options = settings.engine;
    let mut state_files = open_state(&prefix, &machine)?;
    let mut listener = None;
    if let Some((socket, file)) = control::listen(&prefix.path, output) {
        state_files = state_files.with_guard(file);
        listener = Some(socket);
    }
    engine_options.state = Some(state_files);
    engine_options.exports = Some(machine.export_store());
    engine_options.on_event = metrics.as_ref().map(Metrics::event_listener);
    let facts = PublishedFacts::open(&hostname, machine.prefix.join("local/facts.json"));
    if let Some(Kept::Model(_)) = &program {
        engine_options.on_sent = Some(facts.listener(engine_options.control.clone()));
    }
    let known = KnownFiles::take_in(&prefix.directory, &machine.host);
    let kinds: Vec<_> = session.assembly.all_kinds().copied().collect();
    let debug = Arc::new(DebugOutput::of(arguments.debug_selection()));
    let endpoints = etcd.map(|etcd| Arc::new(EtcdEndpoints::new(etcd, NAMESPACE)) as Arc<dyn Endpoints>);
    let options = &engine_options.machine;
    let ends_when_idle_for = options.converge.filter(|_| options.exit_when_converged);
    let joining = Joining::new(endpoints, ends_when_idle_for);
    let services = services(&machine, engine_options.control.clone(), debug.clone(), joining);
    let engine = Engine::start(
        engine_options,
        &kinds,
        services,
        &machine.host.watches,
        runtime.handle().clone(),
    );
    view.follow(&engine);
    let state = ProgramState::new(arguments.program.words());
    let served = Served {
        engine: engine.clone(),
        program: state.clone(),
        debug: debug.clone(),
        hello: Hello {
            protocol: PROTOCOL,
            program: "setpoint".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            hostname: hostname.clone(),
            started,
        },
        names: Names::of(&session.assembly),
    };
    if let Some(manager) = ServiceManager::find() {
        let following = manager.follow(engine.clone(), state.clone(), program.is_some());
        runtime.spawn(following);
    }
    let drawing = drawing.map(|drawing| runtime.spawn(drawing.follow(engine.clone(), state.clone())));
    if let Some(metrics) = metrics {
        output.say(Importance::Notice, format!("gives figures at {}", metrics.url()));
        let probed = store.map(|store| (store, key_of(&hostname)));
        runtime.spawn(metrics.serve(engine.clone(), state.clone(), probed));
    }
    let server = listener
        .map(|listener| Server::start(listener, served))
        .transpose()?;
    let surroundings = Surroundings {
        machine: machine.clone().with_log(FunctionDebug {
            engine: engine.clone(),
            output: debug,
        }),
        engine: engine.clone(),
        reporter: view.reporter(),
        state,
        follow: !arguments.no_stream_watch,
    };
    let mut reports = None;
    let member = deploys.map(|deploys| {
        // Nothing is right before there is something to be.
        engine.sources_busy(true);
        let (begun, has_begun) = tokio::sync::oneshot::channel();
        let follower = Follower {
            deploys: deploys.clone(),
            hostname: hostname.clone(),
            directory: prefix.path.join("deploys"),
            only_later: arguments.wait,
            only_first: arguments.no_deploy_watch || arguments.once,
            only_now: arguments.once && !arguments.wait,
            output: output.clone(),
            begun: Some(begun),
        };
        let (sender, newer) = tokio::sync::mpsc::channel(1);
        let told = engine.clone();
        runtime.spawn(async move {
            if let Err(why) = follower.run(sender).await {
                told.exit(ExitReason::BackgroundFailed(why.into()));
            }
        });
        let (taken, taken_last) = tokio::sync::watch::channel(None);
        let reporting = Reporting {
            store: deploys.store(),
            hostname: hostname.clone(),
            engine: engine.clone(),
            state: surroundings.state.clone(),
            taken: taken_last,
            output: output.clone(),
            has_namesake: false,
        };
        reports = Some(runtime.spawn(async move {
            // Who counts as a member takes what is deployed from then on.
            let _ = has_begun.await;
            reporting.run().await;
        }));
        Member {
            newer,
            taken,
            session,
            surroundings: surroundings.clone(),
        }
    });
    let programs = program.map(|kept| match kept {
        Kept::Program(program) => {
            let (source, compilation) = *program;
            Programs::start(source, compilation, surroundings, arguments.watch)
        }
        Kept::Model(model) => {
            let (model, compilation) = *model;
            model_run::start(model, compilation, surroundings, facts)
        }
    });
    let ended = runtime.block_on(wait(&engine, programs, member, &mut signals, output));
    drop(server);
    drop(engine);
    runtime.block_on(async {
        machine.leave().await;
        if let Some(reports) = reports {
            // It takes its report back, unless the store keeps it waiting; then that runs out.
            let _ = tokio::time::timeout(LEAVE_WITHIN, reports).await;
        }
        if let Some(drawing) = drawing {
            // It draws what there was last, and then ends with the engine.
            let _ = tokio::time::timeout(LEAVE_WITHIN, drawing).await;
        }
    });
    runtime.shutdown_timeout(Duration::from_millis(100));
    if let Some(known) = known {
        // The prefix may lie on a file system that hangs, and nothing waits for that for long.
        let (done, ended) = channel::<()>();
        std::thread::spawn(move || {
            known.leave(&machine.host);
            drop(done);
        });
        let _ = ended.recv_timeout(LEAVE_WITHIN);
    }
    Ok(ended)
}

/// How `run` came to its end.
struct Ended {
    /// How the engine ended; none if it never began.
    report: Option<ExitReport>,
    /// Whether the program is wrong, which was told.
    program_is_wrong: bool,
    /// The first signal that asked for the end.
    signal: Option<StopSignal>,
}

impl Ended {
    fn of_wrong_program() -> Ended {
        Ended {
            report: None,
            program_is_wrong: true,
            signal: None,
        }
    }

    fn reason(&self) -> Reason {
        let report = self.report.as_ref().map(|report| &report.reason);
        match report {
            _ if self.program_is_wrong => Reason::ProgramWrong,
            None | Some(ExitReason::BackgroundFailed(_)) => Reason::Failed,
            Some(ExitReason::Stopped) => Reason::Signal,
            Some(ExitReason::Converged) => Reason::Converged,
            Some(ExitReason::MaxRuntime) => Reason::MaxRuntime,
            Some(ExitReason::Requested(_)) => Reason::Requested,
        }
    }

    fn code(&self, arguments: &Arguments) -> u8 {
        if self.program_is_wrong {
            return exit_code::WRONG;
        }
        let Some(report) = &self.report else {
            return exit_code::WRONG;
        };
        match (
            report.code(arguments.detailed_exitcode),
            &report.reason,
            self.signal,
        ) {
            // What was to be done was not done.
            (exit_code::DONE, ExitReason::Stopped, Some(signal)) if arguments.once => {
                exit_code::SIGNAL + signal.number()
            }
            (code, ..) => code,
        }
    }

    /// How the resources stand; none if that says nothing.
    fn recap(&self) -> Option<Stood> {
        let report = self.report.as_ref().filter(|_| !self.program_is_wrong)?;
        Some(Stood {
            before: match &report.reason {
                ExitReason::Stopped => "stopped: ",
                _ => "",
            },
            failed: report.failed.len(),
            blocked: report.blocked.len(),
        })
    }

    /// What went wrong with the run as a whole.
    fn said(&self) -> Vec<Said> {
        let Some(report) = &self.report else {
            return Vec::new();
        };
        let mut said = Vec::new();
        let mut error = |text: &str| {
            let importance = Importance::Error;
            said.push(Said {
                importance,
                text: headed(importance, &visible(text)),
            });
        };
        match &report.reason {
            ExitReason::MaxRuntime => error("it ran for as long as `--max-runtime` allows"),
            ExitReason::BackgroundFailed(why) => error(why),
            ExitReason::Stopped | ExitReason::Converged | ExitReason::Requested(_) => {}
        }
        for (id, at) in &report.hung {
            let place = match at.as_deref().filter(|at| **at != *id.name) {
                Some(at) => format!(", at {at},"),
                None => String::new(),
            };
            error(&format!("{id}{place} did not end in time and was left behind"));
        }
        said
    }
}

/// Publishes a program that was compiled.
async fn publish(deploys: &Deploys, program: &Kept, imposed: Imposed) -> Result<u64, Failure> {
    let compilation = match program {
        Kept::Program(program) => &program.1,
        Kept::Model(_) => {
            let failure = Failure::usage("models cannot be deployed yet");
            return Err(failure.hint("with `--no-deploy` it is run on this host alone"));
        }
    };
    let failed =
        |error: &dyn std::fmt::Display| Failure::wrong("the program cannot be published").because(error);
    let upload = deploys.begin_upload().await.map_err(|error| failed(&error))?;
    let record = record_of(deploys, compilation, imposed).await?;
    let added = deploys.add_next(&record, &upload).await;
    added.map_err(|error| failed(&error))
}

/// What a member of a cluster runs.
struct Member<'a> {
    newer: tokio::sync::mpsc::Receiver<Deployed>,
    /// Where it is told which is the newest that was taken.
    taken: tokio::sync::watch::Sender<Option<u64>>,
    session: &'a Session,
    surroundings: Surroundings,
}

impl Member<'_> {
    /// Runs a deploy: in the place of the one before, once it has given a graph, or as the first one.
    fn run(&self, deployed: &Deployed, programs: &mut Option<Programs>) {
        self.taken.send_replace(Some(deployed.id));
        let source = deployed.source(self.session, &self.surroundings.machine.hostname);
        let reporter = &self.surroundings.reporter;
        reporter
            .output
            .say(Importance::Notice, format!("deploy {}", deployed.id));
        if let Some(programs) = programs {
            programs.take(source);
            return;
        }
        let compilation = source.compile();
        reporter.diagnostics(&compilation.diagnostics, &compilation.shown_sources());
        if compilation.diagnostics.has_errors() {
            let messages: Vec<&str> = compilation
                .diagnostics
                .iter()
                .map(|found| found.message.as_str())
                .collect();
            self.surroundings.state.set_wrong(Some(messages.join("\n")));
        } else {
            *programs = Some(Programs::start(
                source,
                compilation,
                self.surroundings.clone(),
                false,
            ));
        }
    }
}

/// Waits for the end, and passes requests on on the way.
async fn wait(
    engine: &Engine,
    mut programs: Option<Programs>,
    mut member: Option<Member<'_>>,
    signals: &mut Signals,
    output: &Output,
) -> Ended {
    let mut ended = Ended {
        report: None,
        program_is_wrong: false,
        signal: None,
    };
    let mut stage: Option<StopStage> = None;
    loop {
        let request = tokio::select! {
            Some(deployed) = next_deploy(member.as_mut()) => {
                if let Some(member) = &member {
                    tokio::task::block_in_place(|| member.run(&deployed, &mut programs));
                }
                continue;
            }
            // What a cluster runs is mended by the next deploy.
            () = wrong_program(programs.as_ref()), if stage.is_none() && member.is_some() => {
                tokio::task::block_in_place(|| programs = None);
                continue;
            }
            () = wrong_program(programs.as_ref()), if stage.is_none() && member.is_none() => {
                engine.exit(ExitReason::Stopped);
                ended.program_is_wrong = true;
                ended.report = Some(engine.wait().await);
                return ended;
            }
            report = engine.wait() => {
                ended.report = Some(report);
                return ended;
            }
            request = signals.next() => request,
        };
        let signal = match (request, &programs) {
            (Request::Stop(signal), _) => signal,
            (Request::Reload, Some(programs)) => {
                programs.reload();
                continue;
            }
            (Request::Reload, None) => {
                output.warning("there is no program that could be read again");
                continue;
            }
        };
        let next = match stage {
            None => StopStage::Finish,
            Some(StopStage::Finish) => StopStage::Cancel,
            Some(StopStage::Cancel | StopStage::Interrupt) => StopStage::Interrupt,
        };
        // First what was asked for, then talk. A service manager signals only once: then the further stages follow by themselves.
        engine.stop(next, signal.comes_once());
        stage = Some(next);
        ended.signal.get_or_insert(signal);
        let what = match next {
            StopStage::Finish => "stopping",
            StopStage::Cancel => "cancelling what still runs",
            StopStage::Interrupt => "killing what still runs",
        };
        output.say(
            Importance::Notice,
            format!("{what}: interrupted by {}", signal.name()),
        );
    }
}

async fn wrong_program(programs: Option<&Programs>) {
    match programs {
        Some(programs) => programs.ended().await,
        None => std::future::pending().await,
    }
}

async fn next_deploy(member: Option<&mut Member<'_>>) -> Option<Deployed> {
    match member {
        Some(member) => member.newer.recv().await,
        None => None,
    }
}

fn open_state(prefix: &Prefix, machine: &LocalMachine) -> Result<StateFiles, Failure> {
    let lock = PrefixLock::acquire(&prefix.directory).map_err(|error| Failure::wrong(error.to_string()))?;
    StateFiles::open(&prefix.directory, lock, machine.host.committer.clone())
        .map_err(|error| Failure::wrong("the working directory cannot be used").because(error))
}

/// Debug output of those functions of whom it is wanted, among the engine's events.
struct FunctionDebug {
    engine: Engine,
    output: Arc<DebugOutput>,
}

impl FunctionLog for FunctionDebug {
    fn wants(&self, function: &FunctionSpec) -> bool {
        // Nearly always nobody is asked for.
        self.output
            .is_on_for_function(|| [function.to_string(), function.called()])
    }

    fn debug(&self, line: String) {
        self.engine.debug(line);
    }
}

fn services(machine: &LocalMachine, control: Control, debug: Arc<DebugOutput>, joining: Joining) -> Services {
    let host = &machine.host;
    let exit = ProgramExit::new(move |code| control.exit(ExitReason::Requested(code)));
    Services {
        program: "setpoint".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        hostname: machine.hostname.clone(),
        debug,
        writable: true,
        committer: host.committer.clone(),
        verified: host.verified.clone(),
        processes: host.processes.clone(),
        users: host.users.clone(),
        graph: Arc::default(),
        extensions: Extensions::default()
            .with(machine.values.clone())
            .with(Arc::new(machine.shared_store()))
            .with(Arc::new(machine.elections()))
            .with(Arc::new(joining))
            .with(Arc::new(machine.running_files.clone()))
            .with(host.buses.clone())
            .with(host.service_managers.clone())
            .with(host.network.clone())
            .with(Arc::new(exit)),
        busy: Busy::default(),
    }
}
