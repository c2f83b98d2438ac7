//! What a run keeps: the newest good version of its program, and what is wrong with the newest one. Those who show how things are ask
//! here; the engine knows nothing of texts.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use setpoint_diagnostics::{Places, SourceMap, Span};
use setpoint_flow::PossibleResource;
use setpoint_graph::{DesiredGraph, UnknownPart};
use setpoint_host::sync::Mutex;
use tokio::sync::{oneshot, watch};

use crate::messages::{Message, Reloaded};

/// The program of a run. Clones are one and the same.
#[derive(Clone)]
pub struct ProgramState {
    state: Arc<Mutex<State>>,
    reloads: watch::Sender<Reloads>,
}

/// How often somebody has asked to read it again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Reloads {
    pub begun: u64,
    /// Whether the last time has not come to its end.
    pub(crate) is_under_way: bool,
}

/// How the program stands.
#[derive(Clone)]
pub struct State {
    /// What the command line names, as it is told; none when there is no program.
    pub program: Option<String>,
    /// The graph that was accepted last, and the places of its statements.
    pub accepted: Option<Accepted>,
    /// The parts of the program that are not known before it is applied.
    pub unknown: Unknown,
    /// What is wrong with the newest text or values, which are therefore not in use.
    pub wrong: Option<String>,
    reload: Option<Sender<Message>>,
}

/// The parts of a program that are not known before it is applied.
#[derive(Debug, Clone, Default)]
pub struct Unknown {
    /// The parts of statements.
    pub parts: Vec<UnknownPart>,
    /// The resources that its blocks may hold, each with the statement that decides it.
    pub resources: Vec<(Span, PossibleResource)>,
}

/// A graph that the engine has taken.
#[derive(Clone)]
pub struct Accepted {
    /// As the program gave it.
    pub graph: DesiredGraph,
    /// The places of its texts.
    pub places: Arc<Places>,
    /// Since when this version of the program's text is in use, since 1970 UTC.
    pub since: Duration,
    /// The deploy that it is of, if it is of one.
    pub deploy: Option<u64>,
}

impl ProgramState {
    /// Of a program that the command line names so.
    pub(crate) fn new(program: &str) -> ProgramState {
        ProgramState {
            state: Arc::new(Mutex::new(State {
                program: described(program),
                accepted: None,
                unknown: Unknown::default(),
                wrong: None,
                reload: None,
            })),
            reloads: watch::Sender::default(),
        }
    }

    /// How it stands now.
    pub fn get(&self) -> State {
        self.state.lock().clone()
    }

    /// Who reads it again when that is asked for.
    pub(crate) fn set_reload(&self, sender: Sender<Message>) {
        self.change(|state| state.reload = Some(sender));
    }

    /// The engine has taken a graph. `is_new` says that it is the first of its text, and `deploy` of which deploy it is.
    pub fn accept(&self, graph: DesiredGraph, sources: &SourceMap, is_new: bool, deploy: Option<u64>) {
        let places = Arc::new(Places::of(sources, absolute));
        self.change(|state| {
            let since = match &state.accepted {
                Some(before) if !is_new => before.since,
                _ => SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(),
            };
            state.wrong = None;
            state.accepted = Some(Accepted {
                graph,
                places,
                since,
                deploy,
            });
        });
    }

    /// Parts of the newest values are not known.
    pub(crate) fn set_unknown(&self, unknown: Unknown) {
        self.change(|state| state.unknown = unknown);
    }

    /// The newest text or values are wrong, or are right again.
    pub fn set_wrong(&self, wrong: Option<String>) {
        self.change(|state| state.wrong = wrong);
    }

    /// It is being read again, because somebody asked for it.
    pub(crate) fn begin_reload(&self) {
        self.reloads.send_modify(|reloads| {
            reloads.begun += 1;
            reloads.is_under_way = true;
        });
    }

    /// It was.
    pub(crate) fn end_reload(&self) {
        self.reloads.send_modify(|reloads| reloads.is_under_way = false);
    }

    /// Follows who asks to read it again.
    pub(crate) fn follow_reloads(&self) -> watch::Receiver<Reloads> {
        self.reloads.subscribe()
    }

    /// Reads it again; none when there is no program, or no longer.
    pub fn reload(&self) -> Option<oneshot::Receiver<Reloaded>> {
        let (answer, answered) = oneshot::channel();
        let sender = self.state.lock().reload.clone()?;
        sender.send(Message::Reload(Some(answer))).ok()?;
        Some(answered)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock());
    }
}

/// How a program is named to those who did not start it. Code on the command line is not shown: it may hold what is secret.
fn described(program: &str) -> Option<String> {
    match program {
        "" | "empty" => None,
        "-" => Some("standard input".to_owned()),
        word if Path::new(word).exists() => Some(absolute(word).to_string()),
        _ => Some("code given on the command line".to_owned()),
    }
}

/// The name of a file for those who work in another directory. What is no file keeps its name.
fn absolute(name: &str) -> Arc<str> {
    match std::path::absolute(name) {
        Ok(path) if !name.starts_with('<') && path.exists() => {
            path.to_string_lossy().trim_end_matches('/').into()
        }
        _ => name.into(),
    }
}
