//! `setpoint run`: keeps the machine in the state that a program describes.

pub(super) mod ending;
pub(super) mod settings;

use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::SystemTime;

use clap::Args;
use setpoint_agent::agent::{self, AgentOptions};
use setpoint_agent::cluster::ClusterOptions;
use setpoint_agent::metrics::Metrics;
use setpoint_agent::requests::Ended;
use setpoint_agent::signals::Hangup;
use setpoint_engine::{DebugSelection, EngineOptions};
use setpoint_programs::SourceAccess;
use setpoint_programs::failure::Failure;
use setpoint_programs::imposed::Imposed;
use setpoint_programs::languages::compilation::ProgramSource;
use setpoint_programs::program_input::ProgramInput;
use setpoint_programs::report::Importance;
use tokio::runtime::Runtime;

use super::modules::follow_imports;
use crate::arguments::{ModuleArguments, ProgramArguments, parse_whole};
use crate::attachment_arguments::{GraphvizArguments, MetricsArguments};
use crate::exit_code;
use crate::first_program::{Compiled, ModelReading, first_program};
use crate::headings;
use crate::later::RunLater;
use crate::output::End;
use crate::prefix_arguments::PrefixArguments;
use crate::process::harden;
use crate::session::Session;
use crate::store_arguments::StoreArguments;
use crate::view::{Reason, Verbosity, View, ViewOptions};
use settings::engine_options;

/// More calls that block gain nothing; only those that hang come to so many.
pub(super) const MOST_BLOCKED: usize = 64;
/// More runs at a time gain nothing, and each takes memory.
pub(super) const DEFAULT_JOBS: NonZeroU32 = NonZeroU32::new(4096).expect("it is not zero");

/// Apply a program and keep enforcing it
///
/// Compiles the program, brings the machine into the declared state, and watches it. Setpoint repairs drift, and evaluates the
/// program again when a value changes that it depends on. Ctrl-C stops the run and undoes nothing.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    program: ProgramArguments,

    #[command(flatten)]
    modules: ModuleArguments,

    #[command(flatten)]
    prefix: PrefixArguments,

    /// Change nothing; report what would change
    #[arg(long, help_heading = headings::RUN)]
    noop: bool,

    /// Exit when the machine has converged, or cannot converge
    #[arg(long, conflicts_with_all = ["converger_timeout", "converged_exit"], help_heading = headings::RUN)]
    once: bool,

    /// With --once: exit with code 2 if something changed
    ///
    /// With --noop, exit with code 2 if something would change.
    #[arg(long, requires = "once", help_heading = headings::RUN, hide_short_help = true)]
    detailed_exitcode: bool,

    /// Seconds without activity until converged; -1: never
    ///
    /// [default: -1]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = parse_whole::<i64>, help_heading = headings::RUN, hide_short_help = true)]
    converger_timeout: Option<i64>,

    /// Exit when converged; needs --converger-timeout
    #[arg(long, help_heading = headings::RUN, hide_short_help = true)]
    converged_exit: bool,

    /// Append `true` or `false` to this file when convergence changes
    #[arg(long, value_name = "FILE", help_heading = headings::RUN, hide_short_help = true)]
    converger_status_file: Option<PathBuf>,

    /// Exit with an error after N seconds; 0: no limit
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = parse_whole::<u64>, help_heading = headings::RUN)]
    max_runtime: Option<u64>,

    /// Maximum number of resources that run at the same time
    ///
    /// It is a semaphore `:N` on every resource.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = parse_whole::<i64>, help_heading = headings::ENGINE)]
    sema: Option<i64>,

    /// Maximum number of runs in progress
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = DEFAULT_JOBS, value_parser = parse_whole::<NonZeroU32>, help_heading = headings::ENGINE, hide_short_help = true)]
    jobs: NonZeroU32,

    /// Default for `Meta:retry`; -1: no limit
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = parse_whole::<i16>, help_heading = headings::ENGINE)]
    meta_retry: Option<i16>,

    /// Default for `Meta:delay`, in milliseconds
    #[arg(long, value_name = "MS", allow_negative_numbers = true, value_parser = parse_whole::<u64>, help_heading = headings::ENGINE)]
    meta_delay: Option<u64>,

    /// Add no automatic edges
    #[arg(long, help_heading = headings::ENGINE)]
    no_autoedges: bool,

    /// Do not group resources
    #[arg(long, help_heading = headings::ENGINE)]
    no_autogroup: bool,

    /// Keep the first graph, even if values change later
    #[arg(long, alias = "no-watch", help_heading = headings::ENGINE)]
    no_stream_watch: bool,

    /// Run this command with `true` or `false` when convergence changes
    #[arg(long, value_name = "CMD", help_heading = headings::RUN, hide_short_help = true)]
    converger_command: Option<String>,

    /// Do not raise the kernel limits for file watches
    #[arg(long, help_heading = headings::ENGINE, hide_short_help = true)]
    no_raise_limits: bool,

    /// Print events as JSON lines
    #[arg(long, help_heading = headings::OUTPUT)]
    json: bool,

    /// Reload the program when its files change
    ///
    /// SIGHUP does the same without a terminal. A model is always reloaded, unless you pass `--no-stream-watch`.
    #[arg(long, conflicts_with = "once", help_heading = headings::RUN)]
    watch: bool,

    /// Print more: unchanged resources; -vv: every step
    #[arg(short, long, action = clap::ArgAction::Count, help_heading = headings::OUTPUT)]
    verbose: u8,

    /// Print debug output for everything, or for these kinds and resources
    ///
    /// Functions (`os.readfile`) print their results only if you name them.
    #[arg(long, value_name = "WHOM,…", num_args = 0..=1, require_equals = true, default_missing_value = "all", help_heading = headings::OUTPUT)]
    debug: Option<DebugSelection>,

    /// Print warnings and errors only
    #[arg(short, long, conflicts_with = "verbose", help_heading = headings::OUTPUT)]
    quiet: bool,

    /// Facts for a model, from a JSON file
    ///
    /// For example `{"web1": {"file[/etc/motd]": {"size": 12}}}`. The file is watched. These facts override the facts that resources publish.
    #[arg(long, value_name = "FILE", help_heading = headings::PROGRAM, hide_short_help = true)]
    facts: Option<PathBuf>,

    #[command(flatten)]
    store: StoreArguments,

    /// Run only this program; publish and follow no deploys
    ///
    /// Applies with --etcd-endpoints.
    #[arg(long, help_heading = headings::CLUSTER)]
    no_deploy: bool,

    /// Keep the first deploy
    #[arg(long, help_heading = headings::CLUSTER, hide_short_help = true)]
    no_deploy_watch: bool,

    /// With `empty`: ignore the current deploy, run later ones
    ///
    /// Applies with --etcd-endpoints.
    #[arg(long, help_heading = headings::CLUSTER, hide_short_help = true)]
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
    fn source(&self, session: &Session, input: &ProgramInput) -> Result<ProgramSource, Failure> {
        let mut modules = self.modules.policy(&session.output);
        if self.noop && modules.fetch.take().is_some() {
            session.output.warning("with `--noop` no modules are fetched");
        }
        let prefix = self.prefix.given();
        session.program(input, modules, prefix, false)
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

    /// The command with which a member of the cluster plans a proposed deploy.
    fn plan_of_member(&self) -> Vec<OsString> {
        let words = ["/proc/self/exe", "plan", "--json"].map(OsString::from);
        words.into_iter().chain(self.store.words()).collect()
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
        let input = arguments.program.parse(output)?;
        return follow_imports(arguments.source(session, &input)?, output);
    }
    let engine = engine_options(arguments, output)?;
    let options = ViewOptions {
        json: arguments.json,
        verbosity: arguments.verbosity(),
        forgets: arguments.prefix.choice(&arguments.program).temporary,
        stays: !arguments.once,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(MOST_BLOCKED)
        .enable_all()
        .build()
        .map_err(|error| Failure::io("start", &error))?;
    // Before anybody can know that we run: who asks for a reload must not end us. The others do while nothing is made yet.
    let hangup = runtime.block_on(async { Hangup::take() })?;
    let view = View::start(&session.assembly, output, options);
    let (end, reason, code) = match keep(session, arguments, engine, &view, runtime, hangup) {
        Ok(ended) => {
            let end = End {
                said: ending::said(&ended),
                recap: ending::recap(&ended),
            };
            (
                end,
                ending::reason(&ended),
                ending::code(&ended, arguments.once, arguments.detailed_exitcode),
            )
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

/// Keeps the machine right until the end.
fn keep(
    session: &Session,
    arguments: &Arguments,
    engine: EngineOptions,
    view: &View,
    runtime: Runtime,
    hangup: Hangup,
) -> Result<Ended, Failure> {
    let output = &session.output;
    let started = SystemTime::now();
    let input = arguments.program.parse(output)?;
    harden();
    let reading = ModelReading {
        facts: arguments.facts.as_ref(),
        follows: !arguments.no_stream_watch,
    };
    let source = || arguments.source(session, &input);
    let program = match first_program(session, &input, source, &reading)? {
        Some(Compiled::Wrong) => return Ok(Ended::of_wrong_program()),
        Some(Compiled::Right(program)) => Some(program),
        None => None,
    };
    let metrics = match arguments.metrics.address() {
        Some(address) => {
            let kinds = session.assembly.all_kinds().map(|kind| kind.schema.kind);
            Some(Metrics::listen(address, kinds)?)
        }
        None => None,
    };
    let store = arguments.store.open_etcd(output)?;
    // Whoever only looks, or runs once, concerns this host alone: a look that all hosts followed would end their repairs.
    let concerns_all = !arguments.no_deploy && (program.is_none() || !(arguments.noop || arguments.once));
    if store.is_some() && !concerns_all && !arguments.no_deploy {
        let switch = if arguments.noop { "--noop" } else { "--once" };
        let text =
            format!("with `{switch}` the program is for this host alone; `setpoint deploy` publishes it");
        output.say(Importance::Info, text);
    }
    let options = AgentOptions {
        assembly: session.assembly.clone(),
        hostname: input.hostname.clone(),
        started,
        program: input.argument.clone(),
        engine,
        debug: arguments.debug_selection(),
        prefix: arguments.prefix.choice(&arguments.program),
        replaces: arguments.prefix.replaces(),
        cluster: (store.is_some() && concerns_all).then(|| ClusterOptions {
            only_later: arguments.wait,
            only_first: arguments.no_deploy_watch || arguments.once,
            only_now: arguments.once && !arguments.wait,
            imposed: arguments.imposed(),
            plan: arguments.plan_of_member(),
        }),
        store,
        first_values_within: None,
        access: match arguments.noop {
            true => SourceAccess::RunCommands,
            false => SourceAccess::Change,
        },
        ends_soon: arguments.once,
        raise_watch_limits: !arguments.no_raise_limits,
        follow_values: !arguments.no_stream_watch,
        watch_program: arguments.watch,
        metrics,
        drawing: arguments.graphviz.drawing(&input.hostname, output)?,
        view: Box::new(view.following()),
    };
    agent::run(options, program, output, runtime, hangup)
}
