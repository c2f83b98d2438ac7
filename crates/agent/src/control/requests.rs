//! What a request is answered.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use setpoint_diagnostics::did_you_mean;
use setpoint_engine::machine::{Standing, StandingSet, StopStage, Summary, VertexStatus};
use setpoint_engine::{DebugSelection, Event};
use setpoint_graph::{DesiredGraph, DesiredResource, ResourceId, json};
use tokio::sync::mpsc::Sender;
use tokio::time::timeout;

use super::events::Filter;
use super::names::{meant_instead, resource_named};
use super::protocol::{Answer, Ask, ErrorCode, HostStatus, Request, Unknown, seconds};
use super::refusal::{Refusal, Stop};
use super::row::row;
use super::server::Shared;
use crate::line_schema::event_names;
use crate::messages::Reloaded;
use crate::program_state::Accepted;

/// Rows in one line: few enough that a line is written at once.
const ROWS: usize = 256;

/// Unknown resources of one request for which it is looked up what may be meant.
const HELPED: usize = 8;

/// How long the engine has for an answer.
const ENGINE_ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// Answers a request, line by line. Of `events`, `reached` holds how far it has come.
pub(super) async fn answer(
    shared: &Rc<Shared>,
    request: Request,
    lines: &Sender<String>,
    reached: &Cell<u64>,
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
            let mut filter = at.filter(&resources, kinds, events)?;
            at.events(since, follow, &mut filter, reached).await
        }
        // Whoever reads the lines does that.
        Ask::Cancel { .. } => Ok(()),
        Ask::Recheck { resources } => at.recheck(&resources).await,
        Ask::Pause {} => {
            let was_paused = at.summary().await?.paused.is_some();
            shared.served.engine.pause();
            at.say(&Answer::Pause {
                id: at.id,
                was_paused,
            })
            .await
        }
        Ask::Resume {} => {
            let summary = at.summary().await?;
            shared.served.engine.resume();
            let paused_for = summary.paused.map(|since| summary.now.saturating_sub(since));
            at.say(&Answer::Resume {
                id: at.id,
                was_paused: paused_for.is_some(),
                paused_for: paused_for.map(seconds),
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
            Err(_) => Err(self.refuse(ErrorCode::Unresponsive, "the engine gives no answer")),
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
            let mut vertices = self.there(&ids).await?;
            vertices.retain(is_wanted);
            self.rows(&vertices, program.accepted.as_ref()).await?;
        }
        let summary = self.summary().await?;
        let status = HostStatus {
            time: seconds(summary.now),
            counts: summary.counts,
            converged: summary.converged,
            paused: summary.paused.is_some(),
            paused_since: summary.paused.map(seconds),
            noop: summary.noop,
            new_graph: summary.new_graph,
            busy: summary.busy,
            stopping: summary.stopping.map(StopStage::number),
            program_since: program.accepted.as_ref().map(|accepted| seconds(accepted.since)),
            program: program.program.or_else(|| {
                let deploy = program.accepted.as_ref().and_then(|accepted| accepted.deploy);
                deploy.map(|id| format!("deploy {id}"))
            }),
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

    /// How these resources are. One that is not there is refused.
    async fn there(&self, ids: &[ResourceId]) -> Result<Vec<VertexStatus>, Stop> {
        let vertices = self
            .asked(self.shared.served.engine.status_of(ids.to_vec()))
            .await?;
        let there: BTreeSet<&ResourceId> = vertices.iter().map(|status| &status.id).collect();
        match ids.iter().find(|id| !there.contains(id)) {
            Some(missing) => Err(self.unknown(missing).await?),
            None => Ok(vertices),
        }
    }

    /// Says that a resource is not there.
    async fn unknown(&self, id: &ResourceId) -> Result<Stop, Stop> {
        let message = format!("there is no resource {id}");
        let help = meant_instead(&self.known_graph().await?, id).await;
        let refusal = Refusal::new(ErrorCode::UnknownResource, message).helped(help);
        Ok(refusal.of(self.id).into())
    }

    /// The graph as the program has it: a running one has one resource for all that are applied together.
    async fn known_graph(&self) -> Result<DesiredGraph, Stop> {
        match self.shared.served.program.get().accepted {
            Some(accepted) => Ok(accepted.graph),
            None => {
                let running = self.asked(self.shared.served.engine.graph()).await?;
                Ok(running.unwrap_or_default())
            }
        }
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
            groups: BTreeSet::new(),
            resources: self.named(resources)?.into_iter().collect(),
            kinds: kinds.into_iter().collect(),
            events: events.into_iter().collect(),
        })
    }

    /// Tells events, and keeps in `reached` how far: the number of the newest that was told or is not wanted.
    async fn events(
        &self,
        since: Option<u64>,
        follow: bool,
        filter: &mut Filter,
        reached: &Cell<u64>,
    ) -> Result<(), Stop> {
        let newest = || self.shared.history.borrow().newest();
        // What has happened until now belongs to the answer, although it may not be here yet.
        let happened = match follow && since.is_none() {
            true => newest(),
            false => newest().max(self.summary().await?.newest_event),
        };
        let missing = self.find_groups(filter).await?;
        if !follow {
            self.have_happened(missing).await?;
        }
        match since {
            Some(since) if since > happened => {
                let message = format!("there is no event {since} yet: the newest is {happened}");
                return Err(self.refuse(ErrorCode::UnknownEvent, message));
            }
            Some(since) => reached.set(since),
            None if follow => reached.set(newest()),
            None => reached.set(0),
        }
        loop {
            let changed = self.shared.news.notified();
            tokio::pin!(changed);
            // Before looking, so that nothing that comes meanwhile is missed.
            changed.as_mut().enable();
            loop {
                let next = self.shared.history.borrow().after(reached.get());
                let Some(event) = next else { break };
                if filter.takes(&event) {
                    self.event(&event).await?;
                }
                reached.set(event.seq);
            }
            if (!follow && newest() >= happened) || self.shared.has_ended.get() {
                return self
                    .say(&Answer::Events {
                        id: self.id,
                        newest: reached.get(),
                    })
                    .await;
            }
            changed.await;
        }
    }

    /// Notes as part of whom the wanted resources are applied now. Answers those that are not there.
    async fn find_groups(&self, filter: &mut Filter) -> Result<BTreeSet<ResourceId>, Stop> {
        let mut missing = filter.resources.clone();
        if missing.is_empty() {
            return Ok(missing);
        }
        let wanted = missing.iter().cloned().collect();
        let there = self.shared.served.engine.status_of(wanted);
        for status in self.asked(there).await? {
            missing.remove(&status.id);
            filter.groups.extend(status.group);
        }
        Ok(missing)
    }

    /// Refuses resources that are not there and that no kept event is of. Whoever follows may wait for one that comes later.
    async fn have_happened(&self, mut missing: BTreeSet<ResourceId>) -> Result<(), Stop> {
        if missing.is_empty() {
            return Ok(());
        }
        for id in self.shared.history.borrow().identities() {
            missing.remove(&id);
        }
        match missing.first() {
            Some(id) => Err(self.unknown(id).await?),
            None => Ok(()),
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

    async fn recheck(&self, names: &[String]) -> Result<(), Stop> {
        let engine = &self.shared.served.engine;
        let ids = self.named(names)?;
        self.there(&ids).await?;
        for id in ids {
            engine.recheck(id);
        }
        let paused = self.summary().await?.paused.is_some();
        self.say(&Answer::Recheck { id: self.id, paused }).await
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
        let before = served.debug.selection();
        // What is on may be turned off, whatever it is called.
        let unknown_names = on
            .names()
            .chain(off.names().filter(|name| !before.has_name(name)));
        let kinds = on.resources().chain(off.resources()).map(|id| &*id.kind);
        for name in unknown_names.chain(kinds) {
            if let Err(help) = served.names.find(name) {
                let message = format!("there is neither a kind nor a function `{name}`");
                let refusal = Refusal::new(ErrorCode::Invalid, message).helped(help);
                return Err(refusal.of(self.id).into());
            }
        }
        let off_in_vain = off.resources().filter(|id| !before.has_resource(id));
        let asked = on.resources().chain(off_in_vain).cloned().collect();
        let unknown = self.not_there(asked).await?;
        served.debug.change(|selection| {
            selection.remove(&off);
            selection.add(on);
        });
        let selection = served.debug.selection();
        let still_on = selection.covered(&off);
        let on = selection.words();
        self.say(&Answer::Debug {
            id: self.id,
            on,
            still_on,
            unknown,
        })
        .await
    }

    /// Those of these resources that are not in the graph, which may be a mistake, or come later.
    async fn not_there(&self, mut ids: BTreeSet<ResourceId>) -> Result<Vec<Unknown>, Stop> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let there = self.shared.served.engine.status_of(ids.iter().cloned().collect());
        for status in self.asked(there).await? {
            ids.remove(&status.id);
        }
        let graph = self.known_graph().await?;
        let mut unknown = Vec::new();
        for (at, id) in ids.iter().enumerate() {
            let help = match at < HELPED {
                true => meant_instead(&graph, id).await,
                false => None,
            };
            let resource = id.to_string();
            unknown.push(Unknown { resource, help });
        }
        Ok(unknown)
    }
}
