//! The conversation with a worker: one for each compilation. Here modules are loaded; calls are made by `setpoint-cf-functions`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};

use super::signature::{FoundFunction, ImportFailure};
use super::wire::Given;
use super::{LONGEST_FRAME, Lost, PROGRAM, PluginHost, Worker};

/// So many bytes of what plugins print are kept.
const MOST_PRINTED: usize = 16 << 20;

/// A worker, once somebody needs it, and what it was given.
pub struct Conversation {
    host: Arc<dyn PluginHost>,
    surroundings: Surroundings,
    session: Mutex<Session>,
}

/// The project and its modules, for functions in Python. Paths are as the loader knows them.
#[derive(Debug)]
pub(super) struct Surroundings {
    /// The name of the project.
    pub(super) project: Arc<str>,
    /// Directories of the Python of modules that the model imports, by the name of the module.
    pub(super) directories: BTreeMap<Arc<str>, Arc<str>>,
    /// Directories of other modules, which Python can import.
    pub(super) module_path: Vec<String>,
}

/// State of a conversation.
#[derive(Default)]
pub struct Session {
    worker: Option<Box<dyn Worker>>,
    /// Why there is no worker any more, and will be none.
    lost: Option<Lost>,
    /// What the worker was given.
    pub given: Given,
    /// What was printed while no call was there to take it.
    printed: Vec<String>,
    /// How many bytes were printed.
    print_length: usize,
}

/// What a worker says of a module.
#[derive(Debug, Deserialize)]
pub(super) struct LoadAnswer {
    pub(super) functions: Vec<FoundFunction>,
    pub(super) failed: Vec<ImportFailure>,
}

/// What a worker says while it imports.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum LoadMessage {
    Print { print: String },
    Loaded(LoadAnswer),
}

impl Conversation {
    pub(super) fn new(host: Arc<dyn PluginHost>, surroundings: Surroundings) -> Conversation {
        Conversation {
            host,
            surroundings,
            session: Mutex::default(),
        }
    }

    /// Imports what a module has in Python.
    pub(super) fn load(&self, module: &str) -> Result<LoadAnswer, Lost> {
        let mut session = self.session();
        let result = self.ask_for_module(&mut session, module);
        let what = format!("the functions of module `{module}` were imported");
        result.map_err(|lost| session.give_up(lost, &what))
    }

    fn ask_for_module(&self, session: &mut Session, module: &str) -> Result<LoadAnswer, Lost> {
        self.start(session)?;
        session.send(&json!({ "load": module }))?;
        loop {
            match session.receive::<LoadMessage>()? {
                LoadMessage::Print { print } => {
                    if let Some(line) = session.printed(print) {
                        session.printed.push(line);
                    }
                }
                LoadMessage::Loaded(mut answer) => {
                    for failed in &mut answer.failed {
                        failed.name_file(|path| self.loaded_path(path));
                    }
                    return Ok(answer);
                }
            }
        }
    }

    /// Ends the worker.
    pub(super) fn end(&self) {
        let mut session = self.session();
        session.worker = None;
        session
            .lost
            .get_or_insert_with(|| Lost::because("the model has been executed"));
    }

    /// Starts the worker, unless it runs.
    fn start(&self, session: &mut Session) -> Result<(), Lost> {
        if let Some(lost) = &session.lost {
            return Err(lost.clone());
        }
        if session.worker.is_none() {
            let worker = self.host.start().map_err(|reason| {
                let lost = Lost::because(reason);
                session.lost = Some(lost.clone());
                lost
            })?;
            session.worker.insert(worker).begin();
            session.send(&json!(PROGRAM))?;
            let Surroundings {
                project,
                directories,
                module_path,
            } = &self.surroundings;
            let directories = directories.iter();
            let directories: serde_json::Map<String, Json> = directories
                .map(|(module, directory)| (module.to_string(), self.host.path(directory).into()))
                .collect();
            let module_path = module_path.iter().map(|entry| self.host.path(entry));
            session.send(&json!({
                "directory": self.host.path(""),
                "name": &**project,
                "modules": directories,
                "module_path": module_path.collect::<Vec<_>>(),
            }))?;
        }
        if let Some(worker) = &mut session.worker {
            worker.begin();
        }
        Ok(())
    }

    /// A file that the worker names, as the loader knows it.
    #[must_use]
    pub fn loaded_path(&self, path: &str) -> String {
        for directory in self.surroundings.directories.values() {
            let there = self.host.path(directory);
            let below = path.strip_prefix(&there).filter(|below| below.starts_with('/'));
            if let Some(below) = below {
                return format!("{directory}{below}");
            }
        }
        path.to_owned()
    }

    /// Locks the conversation.
    pub fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    /// Gives the worker the time of one request.
    ///
    /// # Errors
    /// The worker is lost.
    pub fn begin(&mut self) -> Result<(), Lost> {
        if let Some(lost) = &self.lost {
            return Err(lost.clone());
        }
        if let Some(worker) = &mut self.worker {
            worker.begin();
        }
        Ok(())
    }

    /// Sends a message.
    ///
    /// # Errors
    /// The worker is lost, or the message is too long.
    pub fn send(&mut self, message: &Json) -> Result<(), Lost> {
        let frame = message.to_string();
        if frame.len() > LONGEST_FRAME {
            let most = LONGEST_FRAME >> 20;
            return Err(Lost::because(format!(
                "what it was to be given is longer than {most} MiB"
            )));
        }
        let worker = self.worker.as_mut().ok_or_else(Lost::nonsense)?;
        worker.send(frame.as_bytes())
    }

    /// Waits for a message.
    ///
    /// # Errors
    /// The worker is lost, or its answer is not a message.
    pub fn receive<T: DeserializeOwned>(&mut self) -> Result<T, Lost> {
        let worker = self.worker.as_mut().ok_or_else(Lost::nonsense)?;
        let frame = worker.receive()?;
        serde_json::from_slice(&frame).map_err(|_| Lost::nonsense())
    }

    /// What was printed while no call was there to take it.
    pub fn take_printed(&mut self) -> Vec<String> {
        std::mem::take(&mut self.printed)
    }

    /// Ends the worker because of an error. Later requests fail with the reason and what was being done (`doing`).
    pub fn give_up(&mut self, lost: Lost, doing: &str) -> Lost {
        self.worker = None;
        if self.lost.is_none() {
            let reason = format!("Python is no longer run since {doing}, when {}", lost.reason);
            self.lost = Some(Lost {
                reason,
                ..lost.clone()
            });
        }
        lost
    }

    /// A line that is printed; none beyond what is kept.
    pub fn printed(&mut self, line: String) -> Option<String> {
        let before = self.print_length;
        self.print_length = before.saturating_add(line.len() + 1);
        if self.print_length <= MOST_PRINTED {
            return Some(line);
        }
        let most = MOST_PRINTED >> 20;
        let last = format!("(what functions in Python print beyond {most} MiB is left out)");
        (before <= MOST_PRINTED).then_some(last)
    }
}

impl fmt::Debug for Conversation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conversation")
            .field("host", &self.host)
            .field("surroundings", &self.surroundings)
            .finish_non_exhaustive()
    }
}
