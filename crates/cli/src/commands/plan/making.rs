//! Making a plan: a run that repairs nothing, from the first look at the state directory to the last row.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hmac::{Hmac, KeyInit, Mac};
use rustc_hash::FxHashSet;
use setpoint_agent::agent::{self, AgentOptions};
use setpoint_agent::attachment::{AgentHandle, Attached, Attachment};
use setpoint_agent::first_program::FirstProgram;
use setpoint_agent::prefix::{Prefix, PrefixChoice};
use setpoint_agent::program_state::{Accepted, ProgramState};
use setpoint_agent::signals::Hangup;
use setpoint_diagnostics::Span;
use setpoint_engine::machine::{Options, StopStage};
use setpoint_engine::{DebugSelection, EngineOptions, Event, EventKind, Level};
use setpoint_graph::ResourceId;
use setpoint_host::sync::Mutex;
use setpoint_plan::{
    Action, Builder, FORMAT, Host, Known, Place, Plan, PlanOptions, Program, ProgramFile, Row, Summary,
    VERSION,
};
use setpoint_programs::SourceAccess;
use setpoint_programs::failure::Failure;
use setpoint_programs::module_policy::ModulePolicy;
use setpoint_programs::program_input::{ProgramInput, ProgramLanguage};
use setpoint_world::EtcdStore;
use sha2::{Digest, Sha256};
use tokio::runtime::Runtime;

use super::super::run::settings::{ANSWER_WITHIN, seed};
use super::super::run::{DEFAULT_JOBS, MOST_BLOCKED};
use super::running::RunningAgent;
use super::unknown;
use crate::exit_code;
use crate::first_program::{Compiled, ModelReading, first_program};
use crate::output::Output;
use crate::prefix_arguments::state_directory;
use crate::process::harden;
use crate::session::Session;

/// After a resource has given no answer, the others have so long to come to their end.
const LEFT_FOR_OTHERS: Duration = Duration::from_secs(5);

/// The program of a plan, and how it is read.
pub(in crate::commands) struct Request {
    pub(in crate::commands) input: ProgramInput,
    pub(in crate::commands) modules: ModulePolicy,
    /// As the command line names it.
    pub(in crate::commands) state_dir: Option<PathBuf>,
    pub(in crate::commands) store: Option<EtcdStore>,
    pub(in crate::commands) facts: Option<PathBuf>,
    /// The time that sources have for their first values.
    pub(in crate::commands) timeout: Duration,
    /// Whether the commands of the program's functions run for a plan.
    pub(in crate::commands) runs_commands: bool,
}

impl Request {
    /// The state directory of the run.
    pub(in crate::commands) fn state_directory(&self) -> PrefixChoice {
        state_directory(&self.input.argument, self.state_dir.clone())
    }

    /// Compiles the program. None if it is wrong, which was reported.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(in crate::commands) fn compile(
        &mut self,
        session: &Session,
    ) -> Result<Option<FirstProgram>, Failure> {
        let output = &session.output;
        let reading = ModelReading {
            facts: self.facts.as_ref(),
            follows: false,
        };
        let mut modules = self.modules.clone();
        if modules.fetch.take().is_some() {
            output.warning("a plan fetches no modules");
        }
        let state_dir = self.state_dir.clone();
        let source = || session.program(&self.input, modules, state_dir, false);
        match first_program(session, &self.input, source, &reading)? {
            Some(Compiled::Right(program)) => Ok(Some(program)),
            Some(Compiled::Wrong) => Ok(None),
            None => Err(Failure::usage("a program is needed")),
        }
    }
}

/// Makes the plan of a program. None if the program is wrong, which was reported.
///
/// # Errors
/// Why no plan can be made.
pub(in crate::commands) fn make(session: &Session, request: &mut Request) -> Result<Option<Plan>, Failure> {
    let output = &session.output;
    harden();
    let Some(program) = request.compile(session)? else {
        return Ok(None);
    };
    let made_of = program_of(&request.input, &program)?;
    let collected = Arc::new(Collected::default());
    let options = looking(session, request, collected.clone());
    let runtime = runtime()?;
    let hangup = runtime.block_on(async { Hangup::take() })?;
    let ended = agent::run(options, Some(program), output, runtime, hangup)?;
    if ended.program_is_wrong {
        return Ok(None);
    }
    if let Some(signal) = ended.signal {
        return Err(Failure::wrong(format!("interrupted by {}", signal.name())));
    }
    for (level, line) in std::mem::take(&mut *collected.log.lock()) {
        match level {
            Level::Error => output.error(line),
            _ => output.warning(line),
        }
    }
    finish(request, made_of, &collected, ended.lacks_collected, output).map(Some)
}

/// The runtime of a plan, and of the run that applies it.
///
/// # Errors
/// When no thread can be started.
pub(in crate::commands) fn runtime() -> Result<Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(MOST_BLOCKED)
        .enable_all()
        .build()
        .map_err(|error| Failure::io("start", &error))
}

/// The options of a single run of a program: of the one that makes a plan, and of the one that applies it.
pub(in crate::commands) fn single_run(
    session: &Session,
    request: &Request,
    view: Box<dyn Attachment>,
) -> AgentOptions {
    let machine = Options {
        seed: seed(),
        jobs: DEFAULT_JOBS.get() as usize,
        keep_trying: false,
        converge: Some(Duration::ZERO),
        answer_within: Some(ANSWER_WITHIN),
        exit_when_converged: true,
        ..Options::default()
    };
    AgentOptions {
        assembly: session.assembly.clone(),
        hostname: request.input.hostname.clone(),
        started: SystemTime::now(),
        program: request.input.argument.clone(),
        engine: EngineOptions {
            machine,
            ..EngineOptions::default()
        },
        debug: DebugSelection::default(),
        prefix: request.state_directory(),
        replaces: false,
        cluster: None,
        store: request.store.clone(),
        first_values_within: None,
        access: SourceAccess::Change,
        ends_soon: true,
        raise_watch_limits: true,
        follow_values: true,
        watch_program: false,
        metrics: None,
        drawing: None,
        view,
    }
}

/// The options of the run that makes a plan: it changes nothing, and watches nothing.
fn looking(session: &Session, request: &Request, collected: Arc<Collected>) -> AgentOptions {
    let listener = collected.clone();
    let view = PlanView { collected };
    let mut options = single_run(session, request, Box::new(view));
    options.engine.machine.noop = true;
    options.engine.on_event = Some(Arc::new(move |event| listener.take(event)));
    options.engine.watches = false;
    options.first_values_within = Some(request.timeout);
    options.prefix.read_only = true;
    options.access = match request.runs_commands {
        true => SourceAccess::RunCommands,
        false => SourceAccess::Read,
    };
    options.raise_watch_limits = false;
    options
}

/// The events and messages of the run that makes a plan.
#[derive(Default)]
struct Collected {
    builder: Mutex<Builder>,
    /// Warnings and errors of kinds.
    log: Mutex<Vec<(Level, String)>>,
    program: Mutex<Option<ProgramState>>,
    /// Wakes the task that ends a run with an unresponsive resource.
    unresponsive: tokio::sync::Notify,
}

impl Collected {
    fn take(&self, event: &Event) {
        match &event.what {
            EventKind::Log { level, message } if matches!(level, Level::Warning | Level::Error) => {
                let who = event.identity().map(|id| format!("{id}: ")).unwrap_or_default();
                let line = setpoint_diagnostics::visible(&format!("{who}{message}")).into_owned();
                self.log.lock().push((*level, line));
            }
            EventKind::Unresponsive { .. } => self.unresponsive.notify_one(),
            _ => {}
        }
        self.builder.lock().take(event);
    }
}

/// Gives the run to the plan, and ends it when it waits for an answer that does not come.
struct PlanView {
    collected: Arc<Collected>,
}

impl Attachment for PlanView {
    fn start(self: Box<Self>, agent: &AgentHandle) -> Result<Attached, Failure> {
        let engine = agent.engine.clone();
        *self.collected.program.lock() = Some(agent.state.clone());
        agent.runtime.spawn(async move {
            self.collected.unresponsive.notified().await;
            tokio::time::sleep(LEFT_FOR_OTHERS).await;
            engine.stop(StopStage::Interrupt, true);
        });
        Ok(Attached::EndsWithEngine)
    }
}

fn finish(
    request: &Request,
    program: Program,
    collected: &Collected,
    lacks_collected: bool,
    output: &Output,
) -> Result<Plan, Failure> {
    let state = collected.program.lock().take();
    let state = state.map(|state| state.get());
    let unknown = state
        .as_ref()
        .map(|state| state.unknown.clone())
        .unwrap_or_default();
    let accepted = state
        .and_then(|state| state.accepted)
        .ok_or_else(|| Failure::wrong("the program has given no graph"))?;
    let input = &request.input;
    let root = root_of(&input.argument);
    let builder = std::mem::take(&mut *collected.builder.lock());
    let (mut rows, mut summary) = builder.rows(|id| known(id, &accepted, &root));
    add_unchecked(&accepted, &mut rows, &mut summary, |id| {
        known(id, &accepted, &root).place
    });
    // A temporary directory has no agent, and no name in the plan.
    let state_dir = match request.state_directory().temporary {
        true => None,
        false => Some(Prefix::place(request.state_dir.clone())?),
    };
    let agent = state_dir.clone().and_then(|place| running_agent(place, output));
    let let_go = agent.as_ref().map(|agent| agent.let_go(&rows));
    for row in let_go.into_iter().flatten() {
        summary.let_go += 1;
        rows.push(row);
    }
    let place = |span| place_of(span, &accepted, &root);
    unknown::add_rows(&unknown, &mut rows, &mut summary, place);
    unknown::warn(&unknown, output, place);
    let fails = summary.fails() || lacks_collected;
    let exit_code = match (fails, summary.has_changes()) {
        (true, _) => exit_code::WRONG,
        (false, true) => exit_code::CHANGED,
        (false, false) => exit_code::DONE,
    };
    Ok(Plan {
        program,
        running: agent.map(|agent| agent.running),
        options: PlanOptions {
            state_dir: state_dir
                .map(|place| place.display().to_string())
                .unwrap_or_default(),
            language: input.language.map(|language| language_name(language).to_owned()),
            module_path: input.module_path.clone(),
            inputs: input.inputs.clone(),
            facts: request.facts.as_ref().map(|facts| facts.display().to_string()),
            no_python: input.no_python,
            commands: request.runs_commands,
        },
        complete: !fails && summary.unknown == 0,
        summary,
        rows,
        exit_code,
        ..empty(&input.hostname, &input.argument)
    })
}

/// The agent that uses a state directory. If it does not answer, the plan is made without it.
fn running_agent(state_dir: PathBuf, output: &Output) -> Option<RunningAgent> {
    RunningAgent::find(state_dir).unwrap_or_else(|failure| {
        output.warning(format!(
            "the agent that runs here does not answer, so the plan does not show which resources leave its program: {failure}"
        ));
        None
    })
}

/// A plan without rows.
pub(in crate::commands) fn empty(hostname: &str, program: &str) -> Plan {
    let made = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Plan {
        format: FORMAT.to_owned(),
        version: VERSION.to_owned(),
        setpoint: env!("CARGO_PKG_VERSION").to_owned(),
        made: made.as_secs(),
        host: host(hostname),
        program: Program {
            path: program.to_owned(),
            digest: String::new(),
            files: Vec::new(),
        },
        running: None,
        options: PlanOptions::default(),
        complete: true,
        summary: Summary::default(),
        rows: Vec::new(),
        exit_code: exit_code::DONE,
    }
}

/// The word for a language on the command line.
fn language_name(language: ProgramLanguage) -> &'static str {
    match language {
        ProgramLanguage::Mcl => "mcl",
        ProgramLanguage::Cf => "cf",
        ProgramLanguage::Yaml => "yaml",
    }
}

/// The program that a plan is of.
pub(in crate::commands) fn input_of(plan: &Plan) -> ProgramInput {
    let language = plan.options.language.as_deref();
    let all = [ProgramLanguage::Mcl, ProgramLanguage::Cf, ProgramLanguage::Yaml];
    ProgramInput {
        argument: plan.program.path.clone(),
        language: all
            .into_iter()
            .find(|known| Some(language_name(*known)) == language),
        hostname: plan.host.name.clone(),
        has_hostname: true,
        module_path: plan.options.module_path.clone(),
        no_python: plan.options.no_python,
        inputs: plan.options.inputs.clone(),
    }
}

/// Adds rows for resources that the run did not reach, so that the plan does not look complete.
fn add_unchecked(
    accepted: &Accepted,
    rows: &mut Vec<Row>,
    summary: &mut Summary,
    place: impl Fn(&ResourceId) -> Option<Place>,
) {
    let known: FxHashSet<ResourceId> = rows.iter().map(Row::id).collect();
    let missing = accepted.graph.resources.keys().filter(|id| !known.contains(*id));
    let missing: Vec<Row> = missing
        .map(|id| Row {
            why: Some("not checked: the plan ended before".to_owned()),
            ..Row::new(id, Action::Blocked, place(id))
        })
        .collect();
    summary.blocked += missing.len();
    rows.extend(missing);
}

/// Looks a resource up in the program.
fn known(id: &ResourceId, accepted: &Accepted, root: &Path) -> Known {
    let graph = &accepted.graph;
    let Some(resource) = graph.resources.get(id) else {
        return Known {
            is_hidden: graph.hidden.contains_key(id),
            ..Known::default()
        };
    };
    Known {
        place: place_of(resource.span, accepted, root),
        is_off: resource.meta.noop,
        is_hidden: false,
    }
}

/// A place in the texts of a program.
fn place_of(span: Span, accepted: &Accepted, root: &Path) -> Option<Place> {
    let (file, position) = accepted.places.place(span)?;
    let below = Path::new(file).strip_prefix(root).ok();
    let file = below.map_or_else(|| file.to_owned(), |below| below.display().to_string());
    Some(Place {
        file: file.into(),
        line: position.line,
        column: position.column,
    })
}

/// The directory of a program, below which its files are named.
pub(in crate::commands) fn root_of(argument: &str) -> PathBuf {
    let path = std::path::absolute(argument).unwrap_or_else(|_| PathBuf::from(argument));
    match path.is_dir() {
        true => path,
        false => path.parent().map(Path::to_path_buf).unwrap_or_default(),
    }
}

/// The program of a plan, with its files as they are.
pub(in crate::commands) fn program_of(
    input: &ProgramInput,
    program: &FirstProgram,
) -> Result<Program, Failure> {
    let root = root_of(&input.argument);
    let files: Vec<PathBuf> = match program {
        FirstProgram::Program(program) => program.1.files().unwrap_or_default(),
        FirstProgram::Model(model) => {
            let files = model.1.files().map(PathBuf::from);
            files.filter_map(|file| std::path::absolute(file).ok()).collect()
        }
    };
    let mut listed: Vec<ProgramFile> = Vec::new();
    for path in files.into_iter().filter(|path| path.is_file()) {
        let contents =
            std::fs::read(&path).map_err(|error| Failure::io(format!("read {}", path.display()), &error))?;
        let below = path.strip_prefix(&root).unwrap_or(&path);
        listed.push(ProgramFile {
            path: below.display().to_string(),
            sha256: hex(&Sha256::digest(&contents)),
            bytes: contents.len() as u64,
        });
    }
    listed.sort_by(|a, b| a.path.cmp(&b.path));
    listed.dedup_by(|a, b| a.path == b.path);
    let mut all = Sha256::new();
    if listed.is_empty() {
        all.update(&input.argument);
    }
    for file in &listed {
        all.update(format!("{} {}\n", file.sha256, file.path));
    }
    let path = match listed.is_empty() {
        true => input.argument.clone(),
        false => std::path::absolute(&input.argument)
            .map_or_else(|_| input.argument.clone(), |path| path.display().to_string()),
    };
    Ok(Program {
        path,
        digest: hex(&all.finalize()),
        files: listed,
    })
}

pub(in crate::commands) fn host(name: &str) -> Host {
    let uid = rustix::process::geteuid();
    let id = std::fs::read_to_string("/etc/machine-id").unwrap_or_default();
    let machine = match id.trim() {
        "" => String::new(),
        id => {
            let mut keyed =
                Hmac::<Sha256>::new_from_slice(b"setpoint plan").expect("a key of any length fits");
            keyed.update(id.as_bytes());
            hex(&keyed.finalize().into_bytes())[..16].to_owned()
        }
    };
    Host {
        name: name.to_owned(),
        machine,
        user: match uid.is_root() {
            true => "root".to_owned(),
            false => format!("uid {}", uid.as_raw()),
        },
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
