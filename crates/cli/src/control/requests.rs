//! What a request is answered.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value as Json};
use setpoint_diagnostics::did_you_mean;
use setpoint_engine::machine::{Standing, StandingSet, StopStage, Summary, VertexState, VertexStatus};
use setpoint_engine::{DebugSelection, Event};
use setpoint_graph::{DesiredResource, ResourceId, json};
use tokio::sync::mpsc::Sender;
use tokio::time::timeout;

use super::events::Filter;
use super::protocol::{
    Answer, Ask, Doing, ErrorCode, HostStatus, Place, REQUESTS, Request, ResourceStatus, seconds,
};
use super::server::Shared;
use crate::program_state::{Accepted, Reloaded};
use crate::view::event_names;

/// Why nothing more is answered.
pub(super) enum Stop {
    /// The request is refused.
    Refused(Refusal),
    /// The client is gone.
    Gone,
}

/// Why a request is refused.
pub(super) struct Refusal {
    pub(super) id: Option<u64>,
    pub(super) code: ErrorCode,
    pub(super) message: String,
    pub(super) help: Option<String>,
}

impl Refusal {
    pub(super) fn new(code: ErrorCode, message: impl Into<String>) -> Refusal {
        Refusal {
            id: None,
            code,
            message: message.into(),
            help: None,
        }
    }

    pub(super) fn of(mut self, id: u64) -> Refusal {
        self.id = Some(id);
        self
    }

    fn helped(mut self, help: Option<String>) -> Refusal {
        self.help = help;
        self
    }

    pub(super) fn answer(self) -> Answer {
        Answer::Error {
            id: self.id,
            code: self.code,
            message: self.message,
            help: self.help,
        }
    }
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Stop {
        Stop::Refused(refusal)
    }
}

/// Reads a line of a client.
pub(super) fn parse(line: &[u8]) -> Result<Request, Refusal> {
    let not_one = |why: String| {
        Refusal::new(ErrorCode::NotARequest, format!("this is no request: {why}")).helped(Some(
            r#"a request is a line such as {"id":1,"request":"status"}"#.to_owned(),
        ))
    };
    let mut fields: Map<String, Json> =
        serde_json::from_slice(line).map_err(|error| not_one(error.to_string()))?;
    let id = fields.get("id").and_then(Json::as_u64);
    let id = id.ok_or_else(|| not_one("`id` must be a whole number, not negative".to_owned()))?;
    fields.remove("id");
    let name = fields.get("request").and_then(Json::as_str);
    let name = name.ok_or_else(|| not_one("`request` must be a text".to_owned()).of(id))?;
    if !REQUESTS.contains(&name) {
        let help = did_you_mean(name, REQUESTS);
        let help = help.unwrap_or_else(|| format!("there are {}", REQUESTS.join(", ")));
        let message = format!("there is no request `{name}`");
        return Err(Refusal::new(ErrorCode::UnknownRequest, message)
            .helped(Some(help))
            .of(id));
    }
    let name = name.to_owned();
    let ask = serde_json::from_value(Json::Object(fields)).map_err(|error| {
        let message = format!("the request `{name}` is wrong: {error}");
        Refusal::new(ErrorCode::Invalid, message).of(id)
    })?;
    Ok(Request { id, ask })
}

/// Rows in one line: few enough that a line is written at once.
const ROWS: usize = 256;

/// How long the engine has for an answer.
const ENGINE_ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// Bytes of an error that a row shows. The events have all of it.
const LONGEST_ERROR: usize = 4096;

/// Answers a request, line by line.
pub(super) async fn answer(
    shared: &Rc<Shared>,
    request: Request,
    lines: &Sender<String>,
) -> Result<(), Stop> {
    let at = Answering {
        shared,
        id: request.id,
        lines,
    };
    match request.ask {
        Ask::Status {
            resources,
            kinds,
            standings,
        } => at.status(&resources, kinds, standings).await,
        Ask::Graph {} => at.graph().await,
        Ask::Events {
            since,
            follow,
            resources,
            kinds,
            events,
        } => {
            let filter = at.filter(&resources, kinds, events)?;
            at.events(since, follow, &filter).await
        }
        // Whoever reads the lines does that.
        Ask::Cancel { .. } => Ok(()),
        Ask::Poke { resources } => at.poke(&resources).await,
        Ask::Pause {} => {
            let was_paused = at.summary().await?.paused;
            shared.served.engine.pause();
            at.say(&Answer::Pause {
                id: at.id,
                was_paused,
            })
            .await
        }
        Ask::Resume {} => {
            let was_paused = at.summary().await?.paused;
            shared.served.engine.resume();
            at.say(&Answer::Resume {
                id: at.id,
                was_paused,
            })
            .await
        }
        Ask::Reload {} => at.reload().await,
        Ask::Debug { on, off } => at.debug(&on, &off).await,
    }
}

struct Answering<'a> {
    shared: &'a Rc<Shared>,
    id: u64,
    lines: &'a Sender<String>,
}

impl Answering<'_> {
    async fn say(&self, answer: &Answer) -> Result<(), Stop> {
        // Its maps have texts for keys, so it can be written.
        let line = serde_json::to_string(answer).unwrap_or_default();
        self.lines.send(line).await.map_err(|_| Stop::Gone)
    }

    fn refuse(&self, code: ErrorCode, message: impl Into<String>) -> Stop {
        Stop::Refused(Refusal::new(code, message).of(self.id))
    }

    /// What the engine answers, if it does in time.
    async fn asked<T>(&self, answer: impl Future<Output = Option<T>>) -> Result<T, Stop> {
        match timeout(ENGINE_ANSWERS_WITHIN, answer).await {
            Ok(Some(answer)) => Ok(answer),
            Ok(None) => Err(self.refuse(ErrorCode::Ended, "the engine has ended")),
            Err(_) => Err(self.refuse(ErrorCode::NotAnswering, "the engine gives no answer")),
        }
    }

    async fn summary(&self) -> Result<Summary, Stop> {
        self.asked(self.shared.served.engine.summary()).await
    }

    async fn status(
        &self,
        resources: &[String],
        kinds: Vec<String>,
        standings: Option<Vec<Standing>>,
    ) -> Result<(), Stop> {
        let engine = &self.shared.served.engine;
        self.known(&kinds)?;
        let kinds: BTreeSet<String> = kinds.into_iter().collect();
        let standings: StandingSet = match standings {
            Some(standings) => standings.into_iter().collect(),
            None => StandingSet::ALL,
        };
        let program = self.shared.served.program.get();
        let is_wanted = |status: &VertexStatus| {
            standings.contains(status.standing) && (kinds.is_empty() || kinds.contains(&*status.id.kind))
        };
        if resources.is_empty() {
            let mut place = (standings != StandingSet::NONE).then_some(0);
            while let Some(from) = place {
                let part = self.asked(engine.status_from(from, standings)).await?;
                place = part.next;
                let mut vertices = part.vertices;
                vertices.retain(is_wanted);
                self.rows(&vertices, program.accepted.as_ref()).await?;
            }
        } else {
            let ids = self.named(resources)?;
            let mut vertices = self.asked(engine.status_of(ids.clone())).await?;
            let there: BTreeSet<&ResourceId> = vertices.iter().map(|status| &status.id).collect();
            if let Some(missing) = ids.iter().find(|id| !there.contains(id)) {
                return Err(self.unknown(missing).await?.into());
            }
            vertices.retain(is_wanted);
            self.rows(&vertices, program.accepted.as_ref()).await?;
        }
        let summary = self.summary().await?;
        let status = HostStatus {
            time: seconds(summary.now),
            counts: summary.counts,
            converged: summary.converged,
            paused: summary.paused,
            noop: summary.noop,
            new_graph: summary.new_graph,
            busy: summary.busy,
            stopping: summary.stopping.map(StopStage::number),
            program_since: program.accepted.as_ref().map(|accepted| seconds(accepted.since)),
            program: program.program,
            program_wrong: program.wrong,
            generation: summary.generation,
            graph_since: summary.swapped.map(seconds),
            repairs: summary.repairs,
            repaired: summary.repaired.map(seconds),
            newest_event: summary.newest_event,
        };
        let status = Box::new(status);
        self.say(&Answer::Status { id: self.id, status }).await
    }

    async fn rows(&self, vertices: &[VertexStatus], accepted: Option<&Accepted>) -> Result<(), Stop> {
        for some in vertices.chunks(ROWS) {
            let resources = some.iter().map(|status| row(status, accepted)).collect();
            self.say(&Answer::Resources {
                id: self.id,
                resources,
            })
            .await?;
        }
        Ok(())
    }

    /// What the names of resources mean.
    fn named(&self, names: &[String]) -> Result<Vec<ResourceId>, Stop> {
        let read = names.iter().map(|name| {
            resource_named(name).ok_or_else(|| {
                let message = format!("`{name}` is no resource: one is written `KIND[NAME]`");
                let refusal = Refusal::new(ErrorCode::Invalid, message).of(self.id);
                let accepted = self.shared.served.program.get().accepted;
                let mut ids = accepted
                    .iter()
                    .flat_map(|accepted| accepted.graph.resources.keys());
                let meant = ids.find(|id| *id.name == **name);
                let help = match (meant, self.shared.served.names.find_kind(&name.to_lowercase())) {
                    (Some(id), _) => Some(format!("did you mean `{id}`?")),
                    (None, Ok(())) => Some(format!(
                        "`{name}` is a kind: one of its resources is `{name}[NAME]`"
                    )),
                    (None, Err(_)) => None,
                };
                Stop::Refused(refusal.helped(help))
            })
        });
        read.collect()
    }

    /// Refuses kinds that there are none of.
    fn known(&self, kinds: &[String]) -> Result<(), Stop> {
        for kind in kinds {
            if let Err(help) = self.shared.served.names.find_kind(kind) {
                let refusal = Refusal::new(ErrorCode::Invalid, format!("there is no kind `{kind}`"));
                return Err(refusal.helped(help).of(self.id).into());
            }
        }
        Ok(())
    }

    /// Says that a resource is not there.
    async fn unknown(&self, id: &ResourceId) -> Result<Refusal, Stop> {
        // As the program has it: a running graph has one resource for all that are applied together.
        let graph = match self.shared.served.program.get().accepted {
            Some(accepted) => accepted.graph.clone(),
            None => {
                let running = self.asked(self.shared.served.engine.graph()).await?;
                running.unwrap_or_default()
            }
        };
        let of_kind = || graph.resources.keys().filter(|other| other.kind == id.kind);
        let help = match of_kind().next() {
            Some(_) => {
                let found = setpoint_diagnostics::closest(&id.name, of_kind().map(|other| &*other.name));
                found.map(|name| format!("did you mean `{}[{name}]`?", id.kind))
            }
            None => {
                let kinds: BTreeSet<&str> = graph.resources.keys().map(|other| &*other.kind).collect();
                let close = setpoint_diagnostics::closest(&id.kind, kinds.iter().copied());
                let meant = close.filter(|kind| graph.resource(kind, &id.name).is_some());
                match (meant, close) {
                    (Some(kind), _) => Some(format!("did you mean `{kind}[{}]`?", id.name)),
                    (None, Some(kind)) => Some(format!("did you mean the kind `{kind}`?")),
                    (None, None) => None,
                }
            }
        };
        let message = format!("there is no resource {id}");
        Ok(Refusal::new(ErrorCode::UnknownResource, message)
            .helped(help)
            .of(self.id))
    }

    async fn graph(&self) -> Result<(), Stop> {
        let running = self
            .asked(self.shared.served.engine.graph())
            .await?
            .unwrap_or_default();
        // What the program gave, as far as it is known: places in its text are those of its newest version.
        let accepted = self.shared.served.program.get().accepted;
        let graph = accepted.as_ref().map_or(&running, |accepted| &accepted.graph);
        let place = |resource: &DesiredResource| {
            let (file, position) = accepted.as_ref()?.places.place(resource.span)?;
            Some((file, position))
        };
        let id = self.id;
        let hidden = graph.hidden.values().flatten();
        let undone = running.resources.values();
        let undone = undone.filter(|resource| resource.meta.is_reversal && accepted.is_some());
        let resources = graph.resources.values().chain(hidden);
        let mut resources = resources.chain(undone).peekable();
        while resources.peek().is_some() {
            let rows = resources.by_ref().take(ROWS);
            let resources = rows
                .map(|resource| json::resource_at_json(resource, place(resource)))
                .collect();
            self.say(&Answer::GraphResources { id, resources }).await?;
        }
        // Of those that are applied together, the edges that they bring.
        let automatic = running.edges.values().flat_map(|edge| match edge.parts() {
            [] => std::slice::from_ref(edge),
            parts => parts,
        });
        let automatic = automatic.filter(|edge| graph.edge(&edge.from, &edge.to).is_none());
        let mut edges = graph
            .edges
            .values()
            .map(|edge| json::edge_json(edge))
            .chain(automatic.map(|edge| {
                let mut edge = json::edge_json(edge);
                edge["auto"] = true.into();
                edge
            }))
            .peekable();
        while edges.peek().is_some() {
            let edges = edges.by_ref().take(ROWS).collect();
            self.say(&Answer::GraphEdges { id, edges }).await?;
        }
        let generation = running.generation;
        self.say(&Answer::Graph { id, generation }).await
    }

    fn filter(&self, resources: &[String], kinds: Vec<String>, events: Vec<String>) -> Result<Filter, Stop> {
        let known = if events.is_empty() {
            Vec::new()
        } else {
            event_names()
        };
        if let Some(event) = events.iter().find(|event| !known.contains(event)) {
            let message = format!("there is no event `{event}`");
            let help = did_you_mean(event, known.iter().map(String::as_str));
            return Err(Refusal::new(ErrorCode::Invalid, message)
                .helped(help)
                .of(self.id)
                .into());
        }
        self.known(&kinds)?;
        Ok(Filter {
            resources: self.named(resources)?.into_iter().collect(),
            kinds: kinds.into_iter().collect(),
            events: events.into_iter().collect(),
        })
    }

    async fn events(&self, since: Option<u64>, follow: bool, filter: &Filter) -> Result<(), Stop> {
        let newest = || self.shared.history.borrow().newest();
        // What has happened until now belongs to the answer, although it may not be here yet.
        let happened = match follow && since.is_none() {
            true => newest(),
            false => newest().max(self.summary().await?.newest_event),
        };
        let mut at = match since {
            Some(since) if since > happened => {
                let message = format!("there is no event {since} yet: the newest is {happened}");
                return Err(self.refuse(ErrorCode::UnknownEvent, message));
            }
            Some(since) => since,
            None if follow => newest(),
            None => 0,
        };
        loop {
            let changed = self.shared.news.notified();
            tokio::pin!(changed);
            // Before looking, so that nothing that comes meanwhile is missed.
            changed.as_mut().enable();
            loop {
                let next = self.shared.history.borrow().after(at);
                let Some(event) = next else { break };
                at = event.seq;
                if filter.wants(&event) {
                    self.event(&event).await?;
                }
            }
            if (!follow && newest() >= happened) || self.shared.has_ended.get() {
                return self
                    .say(&Answer::Events {
                        id: self.id,
                        newest: at,
                    })
                    .await;
            }
            changed.await;
        }
    }

    async fn event(&self, event: &Arc<Event>) -> Result<(), Stop> {
        let line = format!(
            r#"{{"answer":"event","id":{},"event":{}}}"#,
            self.id,
            event.to_json()
        );
        self.lines.send(line).await.map_err(|_| Stop::Gone)
    }

    async fn poke(&self, names: &[String]) -> Result<(), Stop> {
        let engine = &self.shared.served.engine;
        let ids = self.named(names)?;
        let there = self.asked(engine.status_of(ids.clone())).await?;
        let there: BTreeSet<ResourceId> = there.into_iter().map(|status| status.id).collect();
        if let Some(missing) = ids.iter().find(|id| !there.contains(id)) {
            return Err(self.unknown(missing).await?.into());
        }
        for id in ids {
            engine.poke(id);
        }
        let paused = self.summary().await?.paused;
        self.say(&Answer::Poke { id: self.id, paused }).await
    }

    async fn reload(&self) -> Result<(), Stop> {
        let nothing = || {
            self.refuse(
                ErrorCode::NoProgram,
                "there is no program that could be read again",
            )
        };
        let answered = self.shared.served.program.reload().ok_or_else(nothing)?;
        let wrong = match answered.await {
            Ok(Reloaded::Accepted) => None,
            Ok(Reloaded::Rejected(why)) => Some(why),
            Ok(Reloaded::NotAFile) => {
                let message = "the program was not given as a file, so it cannot be read again";
                return Err(self.refuse(ErrorCode::NoProgram, message));
            }
            Err(_) => return Err(self.refuse(ErrorCode::Ended, "the process is ending")),
        };
        self.say(&Answer::Reload { id: self.id, wrong }).await
    }

    async fn debug(&self, on: &[String], off: &[String]) -> Result<(), Stop> {
        let read = |words: &[String]| -> Result<DebugSelection, Stop> {
            let mut all = DebugSelection::default();
            for word in words {
                let selection: DebugSelection =
                    word.parse().map_err(|error: setpoint_engine::NotSelected| {
                        self.refuse(ErrorCode::Invalid, error.to_string())
                    })?;
                all.add(selection);
            }
            Ok(all)
        };
        let (on, off) = (read(on)?, read(off)?);
        let served = &self.shared.served;
        let wanted = on.names().map(str::to_owned);
        let kinds = on.resources().map(|id| id.kind.to_string());
        for name in wanted.chain(kinds) {
            if let Err(help) = served.names.find(&name) {
                let message = format!("there is neither a kind nor a function `{name}`");
                let refusal = Refusal::new(ErrorCode::Invalid, message).helped(help);
                return Err(refusal.of(self.id).into());
            }
        }
        served.debug.change(|selection| {
            selection.remove(&off);
            selection.add(on);
        });
        let on = served.debug.selection().words();
        self.say(&Answer::Debug { id: self.id, on }).await
    }
}

/// The resource that is written so, `KIND[NAME]`.
pub(crate) fn resource_named(text: &str) -> Option<ResourceId> {
    let (kind, rest) = text.split_once('[')?;
    let name = rest.strip_suffix(']')?;
    let is_one = !kind.is_empty() && !name.is_empty() && !kind.contains(char::is_whitespace);
    is_one.then(|| ResourceId::new(kind.to_lowercase(), name))
}

fn row(status: &VertexStatus, accepted: Option<&Accepted>) -> ResourceStatus {
    let wanted = accepted.and_then(|accepted| {
        let graph = &accepted.graph;
        let visible = graph.resources.get(&status.id).filter(|_| !status.hidden);
        visible.or_else(|| graph.hidden.get(&status.id)?.first())
    });
    let place = wanted.and_then(|wanted| {
        let (file, position) = accepted?.places.place(wanted.span)?;
        Some(Place {
            file: file.to_owned(),
            line: position.line,
            col: position.column,
        })
    });
    let (mut until, mut behind, mut semaphores) = (None, None, Vec::new());
    let does = match &status.state {
        VertexState::WaitingToBeAdded => Doing::WaitingToBeAdded,
        VertexState::Starting => Doing::Starting,
        VertexState::Clean => Doing::Watching,
        VertexState::WaitingFor(other) | VertexState::BlockedBy(other) => {
            behind = Some(other.to_string());
            Doing::WaitingForAnother
        }
        VertexState::Awaiting => Doing::Awaiting,
        VertexState::Ready => Doing::Ready,
        VertexState::WaitingForSemaphore => {
            semaphores = wanted.map(|wanted| wanted.meta.sema.clone()).unwrap_or_default();
            Doing::WaitingForSemaphore
        }
        VertexState::LimitedUntil(moment) => {
            until = Some(seconds(*moment));
            Doing::Limited
        }
        VertexState::BackingOffUntil(moment) => {
            until = Some(seconds(*moment));
            Doing::BackingOff
        }
        VertexState::Running(_) => Doing::Running,
        VertexState::FailedForGood => Doing::Failed,
        VertexState::Finishing => Doing::Finishing,
    };
    ResourceStatus {
        kind: status.id.kind.to_string(),
        name: status.id.name.to_string(),
        group: status.group.as_ref().map(ToString::to_string),
        standing: status.standing,
        since: seconds(status.since),
        does,
        error: status.error.as_deref().map(shortened),
        until,
        behind,
        semaphores,
        noop: status.noop,
        hidden: status.hidden,
        reversal: status.reversal,
        refresh_pending: status.refresh_pending,
        place,
    }
}

fn shortened(error: &str) -> String {
    if error.len() <= LONGEST_ERROR {
        return error.to_owned();
    }
    let mut end = LONGEST_ERROR;
    while !error.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &error[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_resources_are_read_whatever_they_hold() {
        let read = |text: &str| resource_named(text).map(|id| id.to_string());
        assert_eq!(read("File[/a]").as_deref(), Some("file[/a]"));
        assert_eq!(read("exec[a[b] c]").as_deref(), Some("exec[a[b] c]"));
        for wrong in ["", "file", "file[", "[x]", "file[]", "a b[c]", "file[x] "] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_is_no_request_is_said_to_be_none() {
        let refused = |line: &str| {
            let refusal = parse(line.as_bytes()).expect_err("it is none");
            (refusal.id, refusal.code, refusal.help.unwrap_or_default())
        };
        assert_eq!(refused("garbage").1, ErrorCode::NotARequest);
        assert_eq!(refused("[1]").1, ErrorCode::NotARequest);
        assert_eq!(refused(r#"{"request":"status"}"#).1, ErrorCode::NotARequest);
        assert_eq!(
            refused(r#"{"id":-1,"request":"status"}"#).1,
            ErrorCode::NotARequest
        );
        let (id, code, help) = refused(r#"{"id":7,"request":"statsu"}"#);
        assert_eq!(
            (id, code, &*help),
            (Some(7), ErrorCode::UnknownRequest, "did you mean `status`?")
        );
        for wrong in [
            r#"{"id":7,"request":"status","kindd":[]}"#,
            r#"{"id":7,"request":"poke"}"#,
            r#"{"id":7,"request":"status","standings":["wrong"]}"#,
        ] {
            assert_eq!(
                (refused(wrong).0, refused(wrong).1),
                (Some(7), ErrorCode::Invalid),
                "{wrong}"
            );
        }
        let right = parse(br#"{"id":7,"request":"events","follow":true}"#);
        assert!(matches!(
            right,
            Ok(Request {
                id: 7,
                ask: Ask::Events {
                    follow: true,
                    since: None,
                    ..
                }
            })
        ));
    }
}
