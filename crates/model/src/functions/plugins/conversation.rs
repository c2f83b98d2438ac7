//! What is said to a worker, and what it answers: one conversation for a compilation.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};
use setpoint_value::Marks;

use super::signature::{FoundFunction, ImportFailure};
use super::wire::Given;
use super::{LONGEST_FRAME, Lost, PROGRAM, PluginFunction, PluginHost, Worker};
use crate::datum::{Datum, InstanceId};
use crate::functions::context::{Context, Read, UnsetCell};

/// So many bytes of what plugins print are kept.
const MOST_PRINTED: usize = 16 << 20;

/// A worker, once somebody needs it, and what it was given.
pub(super) struct Conversation {
    host: Arc<dyn PluginHost>,
    project: Arc<str>,
    /// Directories of modules with Python, as the loader knows them.
    directories: BTreeMap<Arc<str>, Arc<str>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    worker: Option<Box<dyn Worker>>,
    /// Why there is no worker any more, and will be none.
    lost: Option<Lost>,
    given: Given,
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

/// Why a call has no result.
pub(super) enum CallEnd {
    /// It needs what has no value yet.
    Unset(UnsetCell),
    /// It needs what is not known.
    Unknown,
    /// It read an optional relation that has no value.
    Absent(InstanceId, String),
    /// What crosses cannot.
    Refused(String),
    /// An exception that tells users something.
    Declared(Box<Raised>),
    /// Another exception.
    Raised(Box<Raised>),
    /// There is no worker, or none any more.
    Lost(Lost),
}

/// An exception.
#[derive(Debug, Deserialize)]
pub(super) struct Raised {
    sort: RaisedSort,
    /// Its class; empty where that says nothing.
    #[serde(rename = "type")]
    pub(super) ty: String,
    pub(super) message: String,
    /// Where it was raised, as the worker names the file.
    pub(super) file: Option<String>,
    pub(super) line: u32,
    pub(super) function: Option<String>,
    /// What it was raised because of.
    pub(super) cause: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RaisedSort {
    Unset,
    Unknown,
    Absent,
    Declared,
    Other,
}

/// What a worker says while it does something.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Message {
    Print(String),
    Read(u64, String),
    Result(Json),
    Refused(String),
    Raised(Raised),
}

/// What a worker says while it imports.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum LoadMessage {
    Print { print: String },
    Loaded(LoadAnswer),
}

/// What became known during a call.
#[derive(Default)]
struct Noted {
    unset: Option<UnsetCell>,
    absent: Option<(InstanceId, String)>,
    refused: Option<String>,
    printed: Vec<String>,
}

impl Conversation {
    pub(super) fn new(
        host: Arc<dyn PluginHost>,
        project: &str,
        directories: BTreeMap<Arc<str>, Arc<str>>,
    ) -> Conversation {
        Conversation {
            host,
            project: project.into(),
            directories,
            state: Mutex::default(),
        }
    }

    /// Imports what a module has in Python.
    pub(super) fn load(&self, module: &str) -> Result<LoadAnswer, Lost> {
        let mut state = self.state();
        let result = self.ask_for_module(&mut state, module);
        let what = format!("the functions of module `{module}` were imported");
        result.map_err(|lost| state.give_up(lost, &what))
    }

    fn ask_for_module(&self, state: &mut State, module: &str) -> Result<LoadAnswer, Lost> {
        self.start(state)?;
        state.send(&json!({ "load": module }))?;
        loop {
            match state.receive::<LoadMessage>()? {
                LoadMessage::Print { print } => {
                    if let Some(line) = state.printed(print) {
                        state.printed.push(line);
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

    /// Calls a function. Marks of what it reads are taken in.
    pub(super) fn call(
        &self,
        function: &PluginFunction,
        positional: &[Datum],
        keywords: &[(Arc<str>, Datum)],
        context: &mut dyn Context,
        marks: &mut Marks,
    ) -> Result<Datum, CallEnd> {
        let mut state = self.state();
        let mut noted = Noted::default();
        let result = state.call(function, positional, keywords, context, marks, &mut noted);
        if let Err(CallEnd::Lost(lost)) = result {
            let what = format!("`{}` was called", function.full_name);
            return Err(CallEnd::Lost(state.give_up(lost, &what)));
        }
        // Whatever a function makes of it: once the value is there, it is called again.
        if let Some(cell) = noted.unset {
            return Err(CallEnd::Unset(cell));
        }
        for line in std::mem::take(&mut state.printed)
            .into_iter()
            .chain(noted.printed)
        {
            context.print(line);
        }
        match noted.refused {
            Some(refused) => Err(CallEnd::Refused(refused)),
            None => result,
        }
    }

    /// Ends the worker.
    pub(super) fn end(&self) {
        let mut state = self.state();
        state.worker = None;
        state
            .lost
            .get_or_insert_with(|| Lost::because("the model has been executed"));
    }

    /// Starts the worker, unless it runs.
    fn start(&self, state: &mut State) -> Result<(), Lost> {
        if let Some(lost) = &state.lost {
            return Err(lost.clone());
        }
        if state.worker.is_none() {
            let worker = self.host.start().map_err(|reason| {
                let lost = Lost::because(reason);
                state.lost = Some(lost.clone());
                lost
            })?;
            state.worker.insert(worker).begin();
            state.send(&json!(PROGRAM))?;
            let directories = self.directories.iter();
            let directories: serde_json::Map<String, Json> = directories
                .map(|(module, directory)| (module.to_string(), self.host.path(directory).into()))
                .collect();
            state.send(&json!({
                "directory": self.host.path(""),
                "name": &*self.project,
                "modules": directories,
            }))?;
        }
        if let Some(worker) = &mut state.worker {
            worker.begin();
        }
        Ok(())
    }

    /// A file that the worker names, as the loader knows it.
    pub(super) fn loaded_path(&self, path: &str) -> String {
        for directory in self.directories.values() {
            let there = self.host.path(directory);
            let below = path.strip_prefix(&there).filter(|below| below.starts_with('/'));
            if let Some(below) = below {
                return format!("{directory}{below}");
            }
        }
        path.to_owned()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn call(
        &mut self,
        function: &PluginFunction,
        positional: &[Datum],
        keywords: &[(Arc<str>, Datum)],
        context: &mut dyn Context,
        marks: &mut Marks,
        noted: &mut Noted,
    ) -> Result<Datum, CallEnd> {
        let (namespace, name) = function.path();
        let refused = |what: String| CallEnd::Refused(format!("an argument {what}"));
        let positional = positional
            .iter()
            .map(|value| self.given.encode(value, context, marks));
        let positional: Vec<Json> = positional.collect::<Result<_, _>>().map_err(refused)?;
        let keywords = keywords.iter().map(|(name, value)| {
            let value = self.given.encode(value, context, marks)?;
            Ok(json!([&**name, value]))
        });
        let keywords: Vec<Json> = keywords.collect::<Result<_, _>>().map_err(refused)?;
        if let Some(lost) = &self.lost {
            return Err(CallEnd::Lost(lost.clone()));
        }
        if let Some(worker) = &mut self.worker {
            worker.begin();
        }
        self.send(&json!({"call": {
            "namespace": namespace,
            "name": name,
            "positional": positional,
            "keywords": keywords,
            "deployment": &*context.deployment().deploy,
        }}))?;
        loop {
            match self.receive::<Message>()? {
                Message::Print(line) => noted.printed.extend(self.printed(line)),
                Message::Read(number, name) => {
                    let instance = self.given.instance(number).ok_or_else(Lost::nonsense)?;
                    let answer = match context.attribute(instance, &name) {
                        Read::Value(value) => match self.given.encode(&value, context, marks) {
                            Ok(value) => json!({ "value": value }),
                            Err(what) => {
                                noted.refused.get_or_insert(format!("attribute `{name}` {what}"));
                                json!({ "missing": true })
                            }
                        },
                        Read::Unset(cell) => {
                            noted.unset.get_or_insert(cell);
                            json!({ "unset": true })
                        }
                        Read::Absent => {
                            noted.absent = Some((instance, name));
                            json!({ "absent": true })
                        }
                        Read::NotFound => json!({ "missing": true }),
                    };
                    self.send(&answer)?;
                }
                Message::Result(value) => {
                    let datum = self.given.decode(value, context.unknowns());
                    return Ok(datum.ok_or_else(Lost::nonsense)?);
                }
                Message::Refused(what) => return Err(CallEnd::Refused(format!("its result {what}"))),
                Message::Raised(raised) => {
                    return Err(match (raised.sort, noted.absent.take()) {
                        (RaisedSort::Unknown, _) => CallEnd::Unknown,
                        (RaisedSort::Absent, Some((instance, name))) => CallEnd::Absent(instance, name),
                        (RaisedSort::Declared, _) => CallEnd::Declared(Box::new(raised)),
                        // One that was made by hand says nothing of the model.
                        (RaisedSort::Unset | RaisedSort::Absent | RaisedSort::Other, _) => {
                            CallEnd::Raised(Box::new(raised))
                        }
                    });
                }
            }
        }
    }

    fn send(&mut self, message: &Json) -> Result<(), Lost> {
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

    fn receive<T: DeserializeOwned>(&mut self) -> Result<T, Lost> {
        let worker = self.worker.as_mut().ok_or_else(Lost::nonsense)?;
        let frame = worker.receive()?;
        serde_json::from_slice(&frame).map_err(|_| Lost::nonsense())
    }

    /// The worker ends. Whoever asks again, is told when that was.
    fn give_up(&mut self, lost: Lost, doing: &str) -> Lost {
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
    fn printed(&mut self, line: String) -> Option<String> {
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

impl Lost {
    /// Its answer was none.
    fn nonsense() -> Lost {
        Lost::because("the Python process answered what is no answer")
    }
}

impl From<Lost> for CallEnd {
    fn from(lost: Lost) -> CallEnd {
        CallEnd::Lost(lost)
    }
}

impl fmt::Debug for Conversation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conversation")
            .field("host", &self.host)
            .field("directories", &self.directories)
            .finish_non_exhaustive()
    }
}
