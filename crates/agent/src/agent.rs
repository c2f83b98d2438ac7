//! The agent: an engine with its surroundings, from the first look at the state directory to the last.
//!
//! ```text
//!  options ──▶ Setup: state directory, this machine, control socket
//!                 ▼
//!              engine ──▶ attachments, in the order of a list ──▶ programs ──▶ wait for signals and deploys ──▶ end, in reverse
//! ```

use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::time::{Duration, SystemTime};

use setpoint_diagnostics::visible;
use setpoint_engine::{DebugOutput, DebugSelection, Engine, EngineOptions, StateFiles};
use setpoint_host::files::FileError;
use setpoint_host::state::PrefixLock;
use setpoint_programs::capabilities::{EtcdEndpoints, key_of};
use setpoint_programs::failure::Failure;
use setpoint_programs::local_machine::{LocalMachine, Presence};
use setpoint_programs::report::Reporter;
use setpoint_programs::{Assembly, SourceAccess};
use setpoint_resources::{Endpoints, Joining};
use setpoint_world::{EtcdStore, Store};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::attachment::{AgentHandle, Attached, Attachment};
use crate::cluster::{ClusterOptions, DeployQueue, HostReport, Membership, publish};
use crate::control::{self, ControlSocket};
use crate::deploys::Deploys;
use crate::first_program::FirstProgram;
use crate::graphviz::Drawing;
use crate::known_files::KnownFiles;
use crate::limits::{raise_open_file_limit, raise_watch_limits};
use crate::metrics::{Metrics, MetricsServer};
use crate::prefix::{Owner, Prefix, PrefixChoice, WatchedPrefix};
use crate::program_state::ProgramState;
use crate::proposals::Proposals;
use crate::published_facts::PublishedFacts;
use crate::requests::{Ended, Requests};
use crate::service_manager::ServiceManager;
use crate::services::{FunctionDebug, services};
use crate::signals::{Hangup, Signals};
use crate::surroundings::Surroundings;

/// The default prefix of all keys in the store.
pub const NAMESPACE: &str = "/setpoint";

/// How long the end waits for each attachment that still has work.
const LEAVE_WITHIN: Duration = Duration::from_secs(5);

/// The options of an agent.
pub struct AgentOptions {
    /// Kinds, functions and constants for programs.
    pub assembly: Assembly,
    /// The name of this host.
    pub hostname: String,
    /// When the process began.
    pub started: SystemTime,
    /// The program as the user named it, for `status`.
    pub program: String,
    /// The options of the engine. The agent adds state, stores and listeners.
    pub engine: EngineOptions,
    /// The kinds, resources and functions whose debug output is shown.
    pub debug: DebugSelection,
    /// The state directory.
    pub prefix: PrefixChoice,
    /// Whether the program takes over the state directory of another program.
    pub replaces: bool,
    /// The store that hosts share. Without one, a file of this host takes its place.
    pub store: Option<EtcdStore>,
    /// The options of a cluster member. They need a store.
    pub cluster: Option<ClusterOptions>,
    /// The access of the program's sources to the machine. If they may not change it, the agent changes no shared data either. A cluster
    /// member does in any case.
    pub access: SourceAccess,
    /// It ends when all is right, and so waits for no store that is away.
    pub ends_soon: bool,
    /// Whether the kernel's limits for watching files may be raised.
    pub raise_watch_limits: bool,
    /// Whether changed values make new graphs.
    pub follow_values: bool,
    /// The time that the sources of a program have for their first values; without it, as long as they take.
    pub first_values_within: Option<Duration>,
    /// Whether the program is read again when its files change.
    pub watch_program: bool,
    /// Metrics, if they are wanted.
    pub metrics: Option<Metrics>,
    /// Drawings, if they are wanted.
    pub drawing: Option<Drawing>,
    /// The attachment that starts first.
    pub view: Box<dyn Attachment>,
}

impl AgentOptions {
    /// Whether the agent changes nothing.
    fn only_looks(&self) -> bool {
        self.access != SourceAccess::Change
    }
}

/// Runs an agent until it ends. `hangup` was taken when the process began, because a reload can be requested from then on.
///
/// # Errors
/// Why it cannot begin.
pub fn run(
    options: AgentOptions,
    program: Option<FirstProgram>,
    reporter: &Reporter,
    runtime: Runtime,
    hangup: Hangup,
) -> Result<Ended, Failure> {
    let store = options.store.clone().map(|etcd| Arc::new(etcd) as Arc<dyn Store>);
    let store = match &options.metrics {
        Some(metrics) => store.map(|store| metrics.measure(store)),
        None => store,
    };
    let deploys = store
        .clone()
        .filter(|_| options.cluster.is_some())
        .map(Deploys::new);
    let program = match (&deploys, &options.cluster, program) {
        (Some(deploys), Some(cluster), Some(program)) => {
            runtime.block_on(publish(deploys, &program, &cluster.imposed, reporter))?;
            None
        }
        (_, _, program) => program,
    };
    // From here on signals are requests, so that the end cleans up.
    let signals = runtime.block_on(async { Signals::take(hangup) })?;
    let setup = Setup::prepare(&options, store, deploys.is_none(), reporter)?;
    Agent {
        setup,
        deploys,
        reporter: reporter.clone(),
        runtime,
    }
    .run(options, program, signals)
}

/// An agent before its engine is started.
struct Agent {
    setup: Setup,
    deploys: Option<Deploys>,
    reporter: Reporter,
    runtime: Runtime,
}

impl Agent {
    fn run(
        mut self,
        mut options: AgentOptions,
        program: Option<FirstProgram>,
        signals: Signals,
    ) -> Result<Ended, Failure> {
        let facts = self.setup.machine.prefix.join("local/facts.json");
        let facts = PublishedFacts::open(&options.hostname, facts);
        if let Some(FirstProgram::Model(_)) = &program {
            options.engine.on_sent = Some(facts.listener(options.engine.control.clone()));
        }
        let debug = Arc::new(DebugOutput::of(options.debug.clone()));
        let handle = AgentHandle {
            runtime: self.runtime.handle().clone(),
            engine: self.start_engine(&mut options, &debug),
            state: ProgramState::new(&options.program),
            machine: self.setup.machine.clone(),
            reporter: self.reporter.clone(),
        };
        let lacks_collected = Arc::new(AtomicBool::new(false));
        let surroundings = Surroundings {
            lacks_collected: lacks_collected.clone(),
            machine: handle.machine.clone().with_log(FunctionDebug {
                engine: handle.engine.clone(),
                output: debug.clone(),
            }),
            engine: handle.engine.clone(),
            reporter: self.reporter.clone(),
            state: handle.state.clone(),
            follow: options.follow_values,
            access: options.access,
            first_values_within: options.first_values_within,
        };
        let (assembly, watch) = (options.assembly.clone(), options.watch_program);
        let (attachments, queue) = self.attachments(options, program.is_some(), debug);
        let attached = AllAttached::start(attachments, &handle)?;
        let requests = Requests::new(
            handle.engine,
            queue.map(|queue| queue.taken_by(assembly, surroundings.clone())),
            signals,
            self.reporter,
            lacks_collected,
        );
        let programs = program.map(|program| program.start(surroundings, watch, facts));
        let ended = self.runtime.block_on(requests.serve(programs));
        self.runtime.block_on(attached.finish(&self.setup.machine));
        self.runtime.shutdown_timeout(Duration::from_millis(100));
        self.setup.leave();
        Ok(ended)
    }

    fn start_engine(&mut self, options: &mut AgentOptions, debug: &Arc<DebugOutput>) -> Engine {
        let machine = &self.setup.machine;
        let mut engine = std::mem::take(&mut options.engine);
        engine.state = self.setup.state.take();
        engine.exports = Some(machine.export_store());
        engine.keeps_former_exports = self.setup.leaves_former;
        let metrics = options.metrics.as_ref().map(Metrics::event_listener);
        engine.on_event = engine.on_event.take().or(metrics);
        let endpoints = options.store.take();
        let endpoints =
            endpoints.map(|etcd| Arc::new(EtcdEndpoints::new(etcd, NAMESPACE)) as Arc<dyn Endpoints>);
        let ends_when_idle_for = engine
            .machine
            .converge
            .filter(|_| engine.machine.exit_when_converged);
        let joining = Joining::new(endpoints, ends_when_idle_for);
        let services = services(
            machine,
            engine.control.clone(),
            debug.clone(),
            joining,
            !options.only_looks(),
        );
        let kinds: Vec<_> = options.assembly.all_kinds().copied().collect();
        Engine::start(
            engine,
            &kinds,
            services,
            &machine.host.watches,
            self.runtime.handle().clone(),
        )
    }

    /// All attachments in the order of their start, and the queue of deploys of a cluster member.
    fn attachments(
        &mut self,
        options: AgentOptions,
        has_program: bool,
        debug: Arc<DebugOutput>,
    ) -> (Vec<Box<dyn Attachment>>, Option<DeployQueue>) {
        let manager = ServiceManager::find(has_program);
        let store = self.setup.store.take();
        // A host that looks, or ends soon, is nothing that others need to know of.
        let reports = self.deploys.is_none() && !options.only_looks() && !options.ends_soon;
        let host_report = store
            .clone()
            .filter(|_| reports)
            .map(|store| HostReport { store });
        let probed = store.map(|store| (store, key_of(&options.hostname)));
        let metrics = options.metrics.map(|metrics| MetricsServer { metrics, probed });
        let control = self.setup.listener.take();
        let control =
            control.map(|listener| ControlSocket::new(listener, &options.assembly, debug, options.started));
        let deploys = self.deploys.take().zip(options.cluster);
        let proposals = deploys.as_ref().map(|(deploys, cluster)| Proposals {
            deploys: deploys.clone(),
            plan: cluster.plan.clone(),
        });
        let (membership, queue) = deploys
            .map(|(deploys, cluster)| Membership::new(deploys, cluster))
            .unzip();
        let all: [Option<Box<dyn Attachment>>; 9] = [
            Some(options.view),
            boxed((!options.prefix.read_only).then_some(WatchedPrefix)),
            boxed(manager),
            boxed(options.drawing),
            boxed(metrics),
            boxed(control),
            boxed(membership),
            boxed(proposals),
            boxed(host_report),
        ];
        (all.into_iter().flatten().collect(), queue)
    }
}

fn boxed(attachment: Option<impl Attachment + 'static>) -> Option<Box<dyn Attachment>> {
    attachment.map(|attachment| Box::new(attachment) as Box<dyn Attachment>)
}

/// The parts that the engine needs: the state directory, this machine, the control socket.
struct Setup {
    machine: LocalMachine,
    store: Option<Arc<dyn Store>>,
    state: Option<StateFiles>,
    listener: Option<UnixListener>,
    known: Option<KnownFiles>,
    /// The state directory belongs to another program, which keeps what it exports.
    leaves_former: bool,
    /// Dropping it removes a temporary directory, so it is dropped last.
    prefix: Prefix,
}

impl Setup {
    fn prepare(
        options: &AgentOptions,
        store: Option<Arc<dyn Store>>,
        is_alone: bool,
        reporter: &Reporter,
    ) -> Result<Setup, Failure> {
        let prefix = Prefix::find(&options.prefix, &options.hostname)?;
        let presence = match options.only_looks() && is_alone {
            true => Presence::Onlooker,
            false => Presence::Member,
        };
        let machine = LocalMachine::open(
            options.assembly.kind_names(),
            reporter,
            &options.hostname,
            prefix.path.clone(),
            store.clone(),
            presence,
            !options.ends_soon,
        )?;
        raise_open_file_limit();
        if options.raise_watch_limits {
            raise_watch_limits();
        }
        let mut setup = Setup {
            machine,
            store,
            state: None,
            listener: None,
            known: None,
            leaves_former: false,
            prefix,
        };
        match options.prefix.read_only {
            true => setup.read()?,
            false => setup.take(options, reporter)?,
        }
        Ok(setup)
    }

    /// Takes the state directory for this process.
    fn take(&mut self, options: &AgentOptions, reporter: &Reporter) -> Result<(), Failure> {
        let Some(directory) = &self.prefix.directory else {
            return Ok(());
        };
        let unusable =
            |error: &FileError| Failure::wrong("cannot use the state directory").because(error.to_string());
        let lock = PrefixLock::acquire(directory).map_err(|error| Failure::wrong(error.to_string()))?;
        let committer = self.machine.host.committer.clone();
        let mut state =
            StateFiles::open(directory, lock, committer.clone()).map_err(|error| unusable(&error))?;
        let own = Owner::of(&options.program);
        let former = Owner::read(directory, !options.only_looks()).map_err(|error| unusable(&error))?;
        let is_of_deploys = options.cluster.is_some();
        match former.filter(|former| own.as_ref() != Some(former) && !options.replaces && !is_of_deploys) {
            Some(former) => {
                let (place, former) = (self.prefix.path.display(), former.path().display());
                reporter.warning(format!(
                    "the state directory {place} belongs to the program {former}: the run undoes and withdraws none of its resources; \
                     `--replace` takes the directory over"
                ));
                state = state.without_reversals();
                self.leaves_former = true;
            }
            None if options.only_looks() || is_of_deploys => {}
            None => {
                if let Some(own) = own
                    && let Err(error) = own.write(directory, &committer)
                {
                    let text = format!("cannot note which program the state directory belongs to: {error}");
                    reporter.warning(visible(&text));
                }
            }
        }
        if let Some((socket, file)) = control::listen(&self.prefix.path, reporter) {
            state = state.with_guard(file);
            self.listener = Some(socket);
        }
        self.known = KnownFiles::take_in(directory, &self.machine.host);
        self.state = Some(state);
        Ok(())
    }

    /// Reads the state directory, which another process may be using.
    fn read(&mut self) -> Result<(), Failure> {
        let Some(directory) = &self.prefix.directory else {
            return Ok(());
        };
        let committer = self.machine.host.committer.clone();
        let state = StateFiles::reading(directory, committer);
        self.state = state
            .map_err(|error| Failure::wrong("cannot read the state directory").because(error.to_string()))?;
        KnownFiles::look_into(directory, &self.machine.host);
        Ok(())
    }

    /// Saves what this process knows about files for the next one.
    fn leave(self) {
        let Some(known) = self.known else { return };
        // The state directory can lie on a file system that hangs.
        let (done, ended) = channel::<()>();
        let machine = self.machine;
        std::thread::spawn(move || {
            known.leave(&machine.host);
            drop(done);
        });
        let _ = ended.recv_timeout(LEAVE_WITHIN);
    }
}

/// The attachments of a run.
struct AllAttached {
    guards: Vec<Box<dyn Send>>,
    finishing: Vec<JoinHandle<()>>,
}

impl AllAttached {
    fn start(attachments: Vec<Box<dyn Attachment>>, agent: &AgentHandle) -> Result<AllAttached, Failure> {
        let mut all = AllAttached {
            guards: Vec::new(),
            finishing: Vec::new(),
        };
        for attachment in attachments {
            match attachment.start(agent)? {
                Attached::EndsWithEngine => {}
                Attached::Guard(guard) => all.guards.push(guard),
                Attached::Finishes(task) => all.finishing.push(task),
            }
        }
        Ok(all)
    }

    /// Waits for the attachments that still have work when the engine has ended. If the store is unreachable, leases run out.
    async fn finish(self, machine: &LocalMachine) {
        drop(self.guards);
        machine.leave().await;
        for task in self.finishing {
            let _ = tokio::time::timeout(LEAVE_WITHIN, task).await;
        }
    }
}
