//! Python processes, which run the functions that modules of models have in Python.
//!
//! Each is a session of its own with an environment of a few variables, limited memory and, for root, no other right than to read files. It is
//! talked with over a connection that nothing inherits, and killed with all that it has started when it is not needed any more.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::geteuid;
use setpoint_cf::plugins::{BOOT, LONGEST_FRAME, Lost, PluginHost, Worker};
use setpoint_diagnostics::visible;
use setpoint_host::processes::{
    Capability, Command, Conversation, ConversationError, Environment, Limit, Processes, ProgramError,
    RunError,
};
use tokio::runtime::Runtime;
use tokio::time::Instant;

use crate::command_path::command_path;
use crate::environment;
use crate::failure::Failure;
use crate::report::Reporter;

/// The program.
const PROGRAM: &str = "python3";

/// Variables of our environment that it gets. Whoever needs others asks for them in the model, where it is seen.
const VARIABLES: [&str; 9] = [
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "PYENV_ROOT",
    "PYENV_VERSION",
    "TMPDIR",
    "TZ",
    "VIRTUAL_ENV",
];

/// Starts Python.
pub(crate) struct Python {
    /// The directory of the project, absolute.
    root: PathBuf,
    /// How long it may take for a call.
    patience: Duration,
    /// How many bytes of memory it may use.
    memory: u64,
    reporter: Reporter,
}

impl Python {
    /// For the project in this directory.
    ///
    /// # Errors
    /// When a variable that sets a limit holds none, or there is no state directory.
    pub(crate) fn new(root: &str, reporter: &Reporter) -> Result<Python, Failure> {
        let root = if root.is_empty() { "." } else { root };
        let root = std::path::absolute(root)
            .map_err(|error| Failure::io("find the directory of the project", &error))?;
        Ok(Python {
            root,
            patience: Duration::from_secs(limit("PYTHON_TIMEOUT", 60, "seconds")?),
            memory: limit("PYTHON_MEMORY", 2048, "MiB")?.saturating_mul(1 << 20),
            reporter: reporter.clone(),
        })
    }

    /// Whether functions in Python are not to be run.
    pub(crate) fn is_off() -> bool {
        environment::variable("NO_PYTHON").is_some()
    }

    fn command(&self, search_path: OsString) -> Command {
        let mut variables: BTreeMap<OsString, OsString> = VARIABLES
            .iter()
            .filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)))
            .collect();
        variables.insert("PATH".into(), search_path);
        // The order of a set's elements must not change from one run to the next.
        variables.insert("PYTHONHASHSEED".into(), "0".into());
        // Nothing of the user's own, and no files beside those of modules.
        Command::new(PROGRAM, ["-s", "-B", "-X", "utf8", "-c", BOOT])
            .directory(self.root.clone())
            .environment(Environment::Exactly(variables))
            .limits([(Limit::Core, 0), (Limit::Memory, self.memory)].into())
    }
}

/// A limit that a variable sets.
fn limit(variable: &str, otherwise: u64, unit: &str) -> Result<u64, Failure> {
    let Some(text) = environment::variable(variable) else {
        return Ok(otherwise);
    };
    match text.trim().parse() {
        Ok(limit) if (1..=1_000_000).contains(&limit) => Ok(limit),
        _ => Err(Failure::usage(format!(
            "`SETPOINT_{variable}` is `{text}`, which is no number of {unit}"
        ))),
    }
}

impl PluginHost for Python {
    fn start(&self) -> Result<Box<dyn Worker>, String> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?;
        let search_path = command_path(&self.reporter);
        let processes = Processes::new(search_path.clone());
        let command = self.command(search_path);
        let start = |command: &Command| runtime.block_on(processes.start_conversation(command));
        let started = match reading_only() {
            Some(kept) => match start(&command.clone().capabilities(Some(kept))) {
                // Where rights cannot be given up, as in some containers, there are few to begin with.
                Err(RunError::Capabilities { .. }) => start(&command),
                started => started,
            },
            None => start(&command),
        };
        let conversation = started.map_err(|error| match error {
            RunError::Program(ProgramError::NotFound { .. }) => format!("there is no `{PROGRAM}` in PATH"),
            error => error.to_string(),
        })?;
        Ok(Box::new(PythonProcess {
            conversation: Some(conversation),
            runtime,
            patience: self.patience,
            deadline: None,
        }))
    }

    fn path(&self, path: &str) -> String {
        self.root
            .join(path)
            .to_string_lossy()
            .trim_end_matches('/')
            .to_owned()
    }
}

impl fmt::Debug for Python {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Python")
            .field("root", &self.root)
            .finish_non_exhaustive()
    }
}

/// What root keeps: it may read what belongs to others, like a project in somebody's home.
fn reading_only() -> Option<Vec<Capability>> {
    let kept = |(name, capability)| (name == "CAP_DAC_READ_SEARCH").then_some(capability);
    geteuid()
        .is_root()
        .then(|| Capability::all().filter_map(kept).collect())
}

/// A process that runs.
struct PythonProcess {
    /// None once it is ended.
    conversation: Option<Conversation>,
    runtime: Runtime,
    patience: Duration,
    deadline: Option<Instant>,
}

impl PythonProcess {
    fn lost(&self, error: ConversationError) -> Lost {
        match error {
            ConversationError::TimedOut => {
                let seconds = self.patience.as_secs();
                let plural = if seconds == 1 { "" } else { "s" };
                Lost {
                    help: Some("`SETPOINT_PYTHON_TIMEOUT` sets how many seconds a call may take".to_owned()),
                    ..Lost::because(format!(
                        "it did not end within {seconds} second{plural} and was stopped"
                    ))
                }
            }
            ConversationError::TooLong(_) => Lost::because(format!(
                "the Python process answered with more than {} MiB",
                LONGEST_FRAME >> 20
            )),
            ConversationError::Ended { exit, said } => Lost {
                said: last_line(&said),
                ..Lost::because(match exit {
                    Some(exit) => format!("the Python process ended ({exit})"),
                    None => "the Python process closed its connection".to_owned(),
                })
            },
            ConversationError::System(error) => {
                Lost::because(format!("the Python process cannot be talked with: {error}"))
            }
        }
    }

    fn ended() -> Lost {
        Lost::because("the Python process has ended")
    }
}

impl Worker for PythonProcess {
    fn begin(&mut self) {
        self.deadline = Instant::now().checked_add(self.patience);
    }

    fn send(&mut self, frame: &[u8]) -> Result<(), Lost> {
        let conversation = self.conversation.as_mut().ok_or_else(Self::ended)?;
        let sent = self.runtime.block_on(conversation.send(frame, self.deadline));
        sent.map_err(|error| self.lost(error))
    }

    fn receive(&mut self) -> Result<Vec<u8>, Lost> {
        let conversation = self.conversation.as_mut().ok_or_else(Self::ended)?;
        let received = conversation.receive(LONGEST_FRAME, self.deadline);
        let received = self.runtime.block_on(received);
        received.map_err(|error| self.lost(error))
    }
}

impl Drop for PythonProcess {
    fn drop(&mut self) {
        if let Some(conversation) = self.conversation.take() {
            self.runtime.block_on(conversation.close());
        }
    }
}

/// The last line that says something, as it may be shown.
fn last_line(said: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(said);
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    let short: String = line.trim().chars().take(300).collect();
    Some(visible(&short).into_owned())
}
