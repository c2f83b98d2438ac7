//! Whether what the machine wants done is right, and whether everything is in the end.

use setpoint_engine::machine::{RunRequest, VertexState};
use setpoint_engine::{Event, EventKind};

use super::{Part, Process, Vertex, unknown};
use crate::cast::{Role, each};
use crate::host::Host;
use crate::program::Bond;
use crate::rules::{Broken, Rule, hold};

impl Process {
    /// After a long time in which nothing went wrong: everything is settled or told as failing; with `helped` everything is right.
    pub(crate) fn look_at_the_end(&mut self, host: &Host, helped: bool) -> Result<(), Broken> {
        let status = self.machine.status();
        let undoing = status.iter().filter(|status| status.reversal).count();
        let wanted = status.len() - undoing;
        hold(Rule::Right, wanted == self.program.resources.len(), || {
            format!(
                "{} resources are wanted, {} are there",
                self.program.resources.len(),
                wanted
            )
        })?;
        for role in Role::all() {
            let id = role.id();
            let is_missing = host.records[role.place()].is_some() && !self.graph.resources.contains_key(&id);
            let waits = status.iter().any(|status| status.reversal && status.id == id);
            hold(Rule::Undone, is_missing == waits, || {
                format!("{role} is to be undone or not, and the machine believes the contrary")
            })?;
            hold(Rule::Undone, !(is_missing && helped) || self.options.noop, || {
                format!("{role} left and is not undone")
            })?;
        }
        for status in &status {
            let Some(role) = Role::of(&status.id) else {
                continue;
            };
            let failing = matches!(status.state, VertexState::GaveUp | VertexState::BlockedBy(_));
            hold(Rule::Ends, failing || status.state == VertexState::Clean, || {
                format!("{role} is still {:?}", status.state)
            })?;
            hold(Rule::Right, !(helped && failing), || {
                format!("{role} is {:?}", status.state)
            })?;
            let wanted = self.program.wanted(role);
            if status.state == VertexState::GaveUp && self.options.keep_trying {
                let written =
                    wanted.is_some_and(|w| w.meta.written.contains(setpoint_graph::MetaName::Retry));
                hold(Rule::Right, written, || format!("{role} was given up"))?;
            }
            if status.hidden {
                continue;
            }
            let Some((vertex, part)) = self.part(role) else {
                return Err(Broken {
                    rule: Rule::Consistent,
                    what: format!("{role} is {:?} but was never brought in", status.state),
                });
            };
            let right = host.content[role.place()] == part.wanted;
            hold(Rule::Told, right || failing || status.noop, || {
                format!(
                    "{role} holds {} instead of {} and is {:?}",
                    host.content[role.place()],
                    part.wanted,
                    status.state
                )
            })?;
            hold(Rule::Answered, failing || !vertex.unanswered, || {
                format!("{role} was not looked at after an event")
            })?;
            let owed = each(host.owed[role.place()]).find(|from| {
                self.program
                    .wanted(*from)
                    .is_some_and(|wanted| !wanted.meta.noop && !self.options.noop)
            });
            if let Some(from) = owed.filter(|_| helped && !status.noop) {
                return Err(Broken {
                    rule: Rule::Refresh,
                    what: format!("{role} was never notified of a repair of {from}"),
                });
            }
        }
        let is_right = |role: Role| {
            let status = status.iter().find(|status| status.id == role.id());
            status.is_some_and(|status| status.state == VertexState::Clean)
        };
        self.judge_store(host, helped, is_right)?;
        match helped {
            true => self.judge_received(host),
            false => Ok(()),
        }
    }

    /// Whether every receiver holds the value that was sent last.
    fn judge_received(&self, host: &Host) -> Result<(), Broken> {
        for arrow in self
            .program
            .arrows
            .iter()
            .filter(|arrow| arrow.bond == Bond::Send)
        {
            let Some(Some(sent)) = self.published[arrow.from.place()] else {
                continue;
            };
            // In a plan, values of a sender that would change are not known, and are not received.
            let sender = self.part(arrow.from);
            let would_change =
                sender.is_some_and(|(_, part)| host.content[arrow.from.place()] != part.wanted);
            if self.options.noop && would_change {
                continue;
            }
            if let Some((_, receiver)) = self.part(arrow.to) {
                hold(Rule::Received, receiver.wanted == sent, || {
                    format!(
                        "{} sends {sent} and {} holds {}",
                        arrow.from, arrow.to, receiver.wanted
                    )
                })?;
            }
        }
        Ok(())
    }

    /// Where a resource is, by itself or in a group, and what is known of it there.
    pub(super) fn part(&self, role: Role) -> Option<(&Vertex, &Part)> {
        let mut vertices = self.vertices.iter().flatten();
        vertices.find_map(|vertex| Some((vertex, vertex.parts.iter().find(|part| part.role == role)?)))
    }

    pub(super) fn note(&mut self, event: &Event) -> Result<(), Broken> {
        if let Some(history) = &mut self.history {
            history.push(format!("             {}", event.to_json()));
        }
        self.events += 1;
        let right = event.seq == self.events && event.time >= self.last_event;
        self.last_event = event.time;
        hold(Rule::Numbered, right, || {
            format!("event {} comes as number {}", event.seq, self.events)
        })?;
        let vertex = event.identity().and_then(|id| Role::of(&id));
        let vertex = vertex.and_then(|role| self.vertices[role.place()].as_mut());
        match (&event.what, vertex) {
            (EventKind::Dirty { .. }, Some(vertex)) => {
                vertex.clean = false;
                vertex.dirtied = true;
            }
            (EventKind::GaveUp { .. }, Some(vertex)) => vertex.unanswered = false,
            _ => {}
        }
        Ok(())
    }

    /// Whether a run may start.
    pub(super) fn judge_start(&self, role: Role, request: &RunRequest) -> Result<(), Broken> {
        let Some(vertex) = &self.vertices[role.place()] else {
            return unknown("run");
        };
        hold(Rule::Alone, vertex.run.is_none() && !vertex.going, || {
            format!("{role} runs twice at once, or while it goes")
        })?;
        hold(Rule::Armed, vertex.initialised && vertex.watching, || {
            format!("{role} runs before its watch is armed")
        })?;
        let noop = self.options.noop || vertex.resource.meta.noop;
        hold(Rule::Noop, request.noop == noop, || {
            format!("{role} runs with noop {}", request.noop)
        })?;
        if vertex.leaving {
            // What is to be realized runs although it goes, under the edges that it had.
            return hold(Rule::Newest, vertex.resource.meta.realize, || {
                format!("{role} runs but is not wanted any more")
            });
        }
        if vertex.resource.meta.is_reversal {
            // It has no edges, whatever has the same name.
            return Ok(());
        }
        self.judge_settled(role)
    }

    /// Whether what is hidden may export.
    pub(super) fn judge_hidden(&self, request: &RunRequest) -> Result<(), Broken> {
        let exported = request
            .exports
            .first()
            .and_then(|resource| Role::of(&resource.id));
        let wanted = exported.filter(|role| self.graph.hidden.contains_key(&role.id()));
        wanted.map_or(Ok(()), |role| self.judge_settled(role))
    }

    fn judge_settled(&self, role: Role) -> Result<(), Broken> {
        for ancestor in each(self.ancestors[role.place()]) {
            let id = ancestor.id();
            if !self.graph.resources.contains_key(&id) {
                // Of what is hidden the host knows nothing.
                continue;
            }
            let settled = self.vertices[ancestor.place()].as_ref().is_some_and(|other| {
                !other.leaving && other.clean && other.watching && other.run.is_none() && !other.going
            });
            hold(Rule::Settled, settled, || {
                format!("{role} runs before {ancestor} is settled")
            })?;
        }
        Ok(())
    }

    /// Whether so many may run at once.
    pub(super) fn judge_running(&self, new: Role) -> Result<(), Broken> {
        let running = || {
            self.vertices
                .iter()
                .flatten()
                .filter(|vertex| vertex.run.is_some())
        };
        let count = running().count();
        hold(Rule::Jobs, count <= self.options.jobs, || {
            format!("{count} run at once, the last is {new}")
        })?;
        for (id, most) in self.program.semaphores() {
            let holders = running()
                .filter(|vertex| vertex.resource.meta.sema.iter().any(|held| held == id))
                .count();
            hold(Rule::Semaphores, holders <= most, || {
                format!("{holders} hold {id}, the last is {new}")
            })?;
        }
        Ok(())
    }
}
