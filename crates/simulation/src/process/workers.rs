//! What the workers of a process do: they bring resources in, watch them, run them and take them away, each with an answer in time.

use std::sync::Arc;
use std::time::Duration;

use setpoint_engine::machine::{
    Action, Armed, Check, Initialised, Input, RecordWork, RunRequest, RunResult, VertexId,
};
use setpoint_engine::{CancelCause, Drift, DriftValue, Failure, FailureReason, Sent};
use setpoint_graph::DesiredResource;

use super::{Coming, FAILING_TAKES, Part, Planned, Process, Underway, Vertex, owe, reversal, unknown};
use crate::cast::{Role, each};
use crate::host::Host;
use crate::program::{content, content_number};
use crate::rules::{Broken, Rule, hold};

impl Process {
    /// An answer of the host comes to the machine.
    pub(super) fn deliver(&mut self, host: &mut Host, coming: Coming) -> Result<(), Broken> {
        match coming {
            Coming::InitEnded {
                role,
                id,
                arms,
                fails,
                refresh,
                recorded,
            } => {
                match recorded {
                    Some(true) => self.step(host, Input::Recorded(vec![reversal(role)]))?,
                    Some(false) => self.step(host, Input::Forgotten(role.id()))?,
                    None => {}
                }
                self.init_ended(host, (role, id), arms, fails, refresh)
            }
            Coming::Armed { role, id, fails } => self.armed(host, (role, id), fails),
            Coming::Watches(roles) => self.watches_tell(host, roles),
            Coming::RunEnded { role } => self.run_ended(host, role),
            Coming::Store => {
                self.begin_store(host);
                Ok(())
            }
            Coming::Stored => self.end_store(host),
            Coming::HiddenRunEnded(vertex) => {
                let Some((exported, not_exported)) = self.end_export(vertex) else {
                    return Ok(());
                };
                let result = RunResult {
                    checked: false,
                    exported,
                    not_exported,
                    ..RunResult::ok()
                };
                self.step(host, Input::RunEnded { vertex, result })
            }
            Coming::CleanupEnded { role, id } => {
                if self.vertex_of(role, id).is_some() {
                    self.vertices[role.place()] = None;
                }
                self.step(
                    host,
                    Input::CleanupEnded {
                        vertex: id,
                        failure: None,
                    },
                )
            }
            Coming::Unresponsive(vertex) => {
                let at = Some("/somewhere".into());
                self.step(host, Input::Unresponsive { vertex, at })
            }
        }
    }

    /// What the host has of a role, unless it is another resource by now.
    fn vertex_of(&mut self, role: Role, id: VertexId) -> Option<&mut Vertex> {
        let vertex = self.vertices[role.place()].as_mut();
        vertex.filter(|vertex| vertex.id == id)
    }

    fn init_ended(
        &mut self,
        host: &mut Host,
        (role, id): (Role, VertexId),
        arms: bool,
        fails: bool,
        refresh: Vec<Role>,
    ) -> Result<(), Broken> {
        let Some(vertex) = self.vertex_of(role, id) else {
            return Ok(());
        };
        vertex.initialised = !fails;
        vertex.watching = !fails && !arms;
        let result = if fails {
            Err(Failure::new("begin"))
        } else {
            let refresh = refresh.into_iter().map(Role::id).collect();
            Ok(Initialised { refresh })
        };
        self.step(host, Input::InitEnded { vertex: id, result })
    }

    fn armed(&mut self, host: &mut Host, (role, id): (Role, VertexId), fails: bool) -> Result<(), Broken> {
        let Some(vertex) = self.vertex_of(role, id) else {
            return Ok(());
        };
        vertex.armed = !fails;
        vertex.watching = !fails;
        let result = if fails {
            Err(Failure::new("watch"))
        } else {
            Ok(Armed::default())
        };
        self.step(host, Input::WatchArmed { vertex: id, result })
    }

    /// Something happened to these; those that are watched report it.
    fn watches_tell(&mut self, host: &mut Host, roles: Vec<Role>) -> Result<(), Broken> {
        let mut events: Vec<(VertexId, Arc<str>)> = Vec::new();
        for role in roles {
            if let Some(vertex) = self.with_part(role)
                && vertex.watching
                && !events.iter().any(|(id, _)| *id == vertex.id)
                && vertex.resource.meta.poll == 0
            {
                vertex.clean = false;
                vertex.dirtied = true;
                vertex.unanswered = !vertex.going;
                events.push((vertex.id, "it".into()));
            }
        }
        if events.is_empty() {
            Ok(())
        } else {
            self.step(host, Input::WatchEvents(events))
        }
    }

    fn run_ended(&mut self, host: &mut Host, role: Role) -> Result<(), Broken> {
        let notified = self.notified[role.place()];
        let running = self.vertices[role.place()]
            .as_ref()
            .filter(|vertex| vertex.run.is_some());
        let Some(id) = running.map(|vertex| vertex.id) else {
            return Ok(());
        };
        let Some((exported, not_exported)) = self.end_export(id) else {
            return Ok(());
        };
        let Some(vertex) = &mut self.vertices[role.place()] else {
            return Ok(());
        };
        let Some(run) = vertex.run.take() else {
            return Ok(());
        };
        let succeeded = run.outcome == Planned::Succeeds && not_exported.is_none();
        vertex.clean = succeeded && !vertex.dirtied;
        if run.repairs() {
            for part in &run.parts {
                host.content[part.role.place()] = part.wanted;
            }
            owe(host, role, run.marked & notified);
            self.statistics.repairs += 1;
        }
        if vertex.resource.meta.is_reversal && succeeded && run.checked && !run.noop {
            self.statistics.undone += 1;
            let record = host.records[role.place()].take();
            let wanted = run.parts[0].wanted;
            let right = record == Some(wanted);
            hold(Rule::Undone, right, || {
                format!("{role} is undone to {wanted}, its record says {record:?}")
            })?;
        }
        if succeeded && run.refresh && run.checked && !run.noop {
            host.owed[role.place()] &= !run.serves;
            self.statistics.refreshes += 1;
        }
        let id = vertex.id;
        for part in run.parts.iter().filter(|_| run.checked) {
            if self.program.wanted(part.role).is_some() {
                self.published[part.role.place()] = Some(part.sends);
            }
        }
        let fails = match run.outcome {
            Planned::Succeeds => Ok(()),
            Planned::FailsBeforeRepair => Err(Failure::new("write: the disk is full")),
            Planned::FailsAfterRepair => Err(Failure::new("tell others")),
            Planned::Waits => Err(Failure::waiting("nobody has come yet")),
            Planned::Cancelled { timeout: false } => Err(Failure::cancelled("wait")),
            Planned::Cancelled { timeout: true } => {
                Err(Failure::new("wait").reasoned(FailureReason::Cancelled))
            }
        };
        let result = RunResult {
            sent_by_members: match run.checked {
                true => run.parts[1..]
                    .iter()
                    .map(|part| (part.role.id(), part.sent()))
                    .collect(),
                false => Vec::new(),
            },
            failed_members: match run.outcome {
                // Of some failures it is said whom to blame.
                Planned::FailsBeforeRepair => run.parts[1..]
                    .iter()
                    .map(|part| (part.role.id(), Failure::new("write")))
                    .take(1)
                    .collect(),
                _ => Vec::new(),
            },
            drifts: run.drifts(),
            outcome: fails,
            sent: run.checked.then(|| run.parts[0].sent()),
            checked: run.checked,
            exported,
            not_exported,
            ..RunResult::ok()
        };
        if run.repairs() && host.faults[role.place()].echoes {
            self.later(host.now, Coming::Watches(vec![role]));
        }
        self.step(host, Input::RunEnded { vertex: id, result })
    }

    /// Does what the machine wants done, if that is right.
    pub(super) fn act(&mut self, host: &mut Host, action: Action) -> Result<(), Broken> {
        match action {
            Action::Emit(event) => self.note(&event),
            Action::Silent { vertex } => {
                self.later(host.now, Coming::Unresponsive(vertex));
                Ok(())
            }
            Action::Init {
                vertex,
                resource,
                arm,
                load_refresh,
                record,
            } => {
                let recorded = self.record(host, &resource, &record)?;
                self.bring_in(host, vertex, resource, arm, load_refresh, recorded)
            }
            Action::Arm { vertex } => {
                let Some((role, known)) = self.vertex(vertex) else {
                    return unknown("armed");
                };
                hold(Rule::Alone, known.run.is_none(), || {
                    format!("{role} is armed while it runs")
                })?;
                self.arm(host, role);
                Ok(())
            }
            Action::Disarm { vertex } => {
                let Some((_, known)) = self.vertex(vertex) else {
                    return unknown("disarmed");
                };
                known.armed = false;
                known.watching = false;
                // The host says nothing any more of a watch that was ended.
                self.coming
                    .retain(|_, coming| !matches!(coming, Coming::Armed { id, .. } if *id == vertex));
                Ok(())
            }
            Action::Run { vertex, request } => self.run(host, vertex, *request),
            Action::Cancel { vertex, cause } => {
                let timeout = matches!(cause, CancelCause::Timeout(_));
                self.cancel_export(host, vertex);
                if let Some((role, _)) = self.vertex(vertex)
                    && !host.faults[role.place()].stubborn
                {
                    self.end_early(host, role, timeout);
                }
                Ok(())
            }
            Action::Interrupt { vertex } => {
                self.cancel_export(host, vertex);
                if let Some((role, _)) = self.vertex(vertex) {
                    self.end_early(host, role, false);
                }
                Ok(())
            }
            Action::Cleanup { vertex, initialised } => {
                let Some((role, known)) = self.vertex(vertex) else {
                    return unknown("taken away");
                };
                let idle =
                    known.run.is_none() && (!known.armed || known.resource.meta.poll != 0) && !known.going;
                hold(Rule::Alone, idle, || format!("{role} is taken away too early"))?;
                hold(Rule::Consistent, known.initialised == initialised, || {
                    format!("{role} is taken away as if it had been brought in, or the contrary")
                })?;
                known.going = true;
                known.watching = false;
                known.unanswered = false;
                self.later(host.now, Coming::CleanupEnded { role, id: vertex });
                Ok(())
            }
            Action::ClearRefresh {
                receiver,
                senders,
                up_to_run,
            } => {
                for sender in &senders {
                    if let (Some(receiver), Some(sender)) = (Role::of(&receiver), Role::of(sender))
                        && host
                            .marks
                            .get(&(receiver, sender))
                            .is_some_and(|run| *run <= up_to_run)
                    {
                        host.marks.remove(&(receiver, sender));
                    }
                }
                Ok(())
            }
            Action::Export { wanted, unwanted } => self.retarget(host, wanted, unwanted),
            Action::Converged(_) => Ok(()),
            Action::Exit(_) => {
                hold(Rule::Stops, !self.exited, || "the process ends twice".to_owned())?;
                self.exited = true;
                Ok(())
            }
        }
    }

    /// Does what is to be done about the record of what undoes a resource, and answers whether there is one now, if that changed.
    fn record(
        &self,
        host: &mut Host,
        resource: &DesiredResource,
        work: &RecordWork,
    ) -> Result<Option<bool>, Broken> {
        let Some(role) = Role::of(&resource.id) else {
            return unknown("recorded");
        };
        let record = &mut host.records[role.place()];
        let noop = self.options.noop || resource.meta.noop;
        let (right, changed) = match work {
            RecordWork::None => {
                let keeps = resource.meta.reverse && resource.schema.reversible;
                (noop || (record.is_none() && !keeps), None)
            }
            RecordWork::Keep { .. } => (!noop && resource.meta.reverse && record.is_some(), None),
            RecordWork::Serve => (resource.meta.is_reversal && record.is_some(), None),
            RecordWork::Write { .. } => {
                let before = record.replace(host.content[role.place()]);
                (!noop && resource.meta.reverse && before.is_none(), Some(true))
            }
            RecordWork::Erase => {
                let before = record.take();
                (!noop && !resource.meta.reverse && before.is_some(), Some(false))
            }
        };
        hold(Rule::Undone, right, || {
            format!("{role} is brought in with {work:?}")
        })?;
        Ok(changed)
    }

    fn bring_in(
        &mut self,
        host: &mut Host,
        id: VertexId,
        resource: Arc<DesiredResource>,
        arms: bool,
        load_refresh: bool,
        recorded: Option<bool>,
    ) -> Result<(), Broken> {
        let Some(role) = Role::of(&resource.id) else {
            return unknown("brought in");
        };
        self.judge_bringing_in(role, id, &resource)?;
        let fault = host.fault(role);
        let fails = fault.init > 0;
        fault.init = fault.init.saturating_sub(1);
        let refresh = if load_refresh {
            let marks = host.marks.keys().filter(|(receiver, _)| *receiver == role);
            marks.map(|(_, sender)| *sender).collect()
        } else {
            Vec::new()
        };
        let parts = parts_of(host, role, &resource);
        for part in &parts {
            // What the one before it sent is not its own.
            self.published[part.role.place()] = None;
        }
        self.vertices[role.place()] = Some(Vertex {
            id,
            resource,
            parts,
            initialised: false,
            armed: false,
            watching: false,
            run: None,
            leaving: false,
            going: false,
            clean: false,
            dirtied: false,
            unanswered: false,
        });
        let takes = if fails { FAILING_TAKES } else { Duration::ZERO };
        self.later(
            host.now + takes,
            Coming::InitEnded {
                role,
                id,
                arms,
                fails,
                refresh,
                recorded,
            },
        );
        if arms && !fails {
            self.arm(host, role);
        }
        Ok(())
    }

    /// Whether a resource may be brought in now.
    fn judge_bringing_in(&self, role: Role, id: VertexId, resource: &DesiredResource) -> Result<(), Broken> {
        let there = &self.vertices[role.place()];
        let members = resource.members.all();
        let parts = members.iter().map(|member| Role::of(&member.id));
        for part in parts.chain([Some(role)]) {
            let Some(part) = part else {
                return unknown("brought in");
            };
            let mut others = self.vertices.iter().flatten().filter(|other| other.id != id);
            let other = others.any(|other| other.parts.iter().any(|known| known.role == part));
            hold(Rule::Unique, !other, || {
                format!("{part} is brought in while the old one is there")
            })?;
        }
        let wanted = match (self.graph.resources.get(&resource.id), resource.meta.is_reversal) {
            (wanted, true) => wanted.is_none(),
            (wanted, false) => wanted.is_some_and(|wanted| wanted.is_unchanged(resource)),
        };
        let again = there.is_some();
        hold(Rule::Newest, wanted || again, || {
            format!("{role} is brought in but not wanted")
        })?;
        // One that failed to begin may try again meanwhile.
        if role.is_exclusive() && !again {
            let old = Role::all().find(|other| {
                *other != role
                    && other.is_exclusive()
                    && self.program.wanted(*other).is_none()
                    && self.vertices[other.place()]
                        .as_ref()
                        .is_some_and(|there| !there.resource.meta.is_reversal)
            });
            hold(Rule::Port, old.is_none(), || {
                format!("{role} is brought in while {old:?} still goes")
            })?;
        }
        Ok(())
    }

    fn arm(&mut self, host: &mut Host, role: Role) {
        let fault = host.fault(role);
        let fails = fault.watch > 0;
        fault.watch = fault.watch.saturating_sub(1);
        let at = fault.watch_takes + if fails { FAILING_TAKES } else { Duration::ZERO };
        if let Some(vertex) = &mut self.vertices[role.place()] {
            vertex.armed = true;
            let id = vertex.id;
            self.later(host.now + at, Coming::Armed { role, id, fails });
        }
    }

    fn run(&mut self, host: &mut Host, id: VertexId, request: RunRequest) -> Result<(), Broken> {
        self.statistics.runs += 1;
        hold(Rule::Pause, !self.paused, || "a run starts in a pause".to_owned())?;
        if request.check == Check::SkipAsOk {
            self.judge_hidden(&request)?;
            self.begin_export(host, id, &request)?;
            self.later(host.now, Coming::HiddenRunEnded(id));
            return Ok(());
        }
        let Some((role, _)) = self.vertex(id) else {
            return unknown("run");
        };
        self.judge_start(role, &request)?;
        let notified = request
            .notifies
            .iter()
            .filter_map(Role::of)
            .fold(0, |all, role| all | role.bit());
        let run = request.run;
        let Some(vertex) = &mut self.vertices[role.place()] else {
            return unknown("run");
        };
        let own = (&vertex.resource.id, &request.transfer);
        let of_members = request
            .members
            .iter()
            .map(|member| (&member.id, &member.transfer));
        for (id, transfer) in std::iter::once(own).chain(of_members) {
            let part = vertex.parts.iter_mut().find(|part| part.role.id() == *id);
            let (Some(part), Some(desired)) = (part, vertex.resource.part(id)) else {
                return unknown("given a value");
            };
            for (_, value) in transfer {
                let program = || desired.parameters.get("content").and_then(content_number);
                part.wanted = value.as_ref().map_or_else(program, content_number).unwrap_or(0);
            }
        }
        vertex.clean = false;
        vertex.dirtied = false;
        vertex.unanswered = false;
        let checked = request.check == Check::Call;
        for part in &mut vertex.parts {
            part.drift = checked && host.content[part.role.place()] != part.wanted;
            part.sends = host.faults[part.role.place()].sends;
        }
        let drift = vertex.parts.iter().any(|part| part.drift);
        // Half of what can be notified tells that it did something.
        let passes_on =
            checked && !request.refresh.is_empty() && !request.noop && role.place().is_multiple_of(2);
        let full = host.disk_full;
        let fault = host.fault(role);
        let mut outcome = Planned::Succeeds;
        // Nobody would wake what only looks from time to time.
        let wakes = vertex.resource.meta.poll == 0;
        if fault.missing && wakes && !request.noop && checked {
            outcome = Planned::Waits;
        } else if (drift || !request.refresh.is_empty()) && !request.noop && checked {
            if full || fault.before_repair > 0 {
                fault.before_repair = fault.before_repair.saturating_sub(u8::from(!full));
                outcome = Planned::FailsBeforeRepair;
            } else if fault.after_repair > 0 {
                fault.after_repair -= 1;
                outcome = Planned::FailsAfterRepair;
            }
        }
        let mut underway = Underway {
            outcome,
            checked,
            noop: request.noop,
            refresh: !request.refresh.is_empty(),
            passes_on,
            parts: vertex.parts.clone(),
            marked: 0,
            serves: 0,
            end: None,
        };
        // What fails has taken a moment; without one, what is tried for ever without delay would stop the clock.
        let least = if outcome == Planned::Succeeds {
            Duration::ZERO
        } else {
            FAILING_TAKES
        };
        let (takes, frozen) = (fault.takes.max(least), fault.frozen);
        if underway.repairs() {
            underway.marked = notified;
            for receiver in each(notified) {
                host.marks.insert((receiver, role), run);
            }
        }
        underway.serves = host.owed[role.place()];
        if !frozen {
            self.scheduled += 1;
            let end = (host.now + takes, self.scheduled);
            underway.end = Some(end);
            self.coming.insert(end, Coming::RunEnded { role });
        }
        vertex.run = Some(underway);
        self.begin_export(host, id, &request)?;
        self.judge_running(role)
    }

    /// A run was told to stop and does.
    fn end_early(&mut self, host: &Host, role: Role, timeout: bool) {
        if host.faults[role.place()].frozen {
            return;
        }
        let Some(run) = self.vertices[role.place()]
            .as_mut()
            .and_then(|vertex| vertex.run.as_mut())
        else {
            return;
        };
        run.outcome = Planned::Cancelled { timeout };
        if let Some(end) = run.end.take() {
            self.coming.remove(&end);
        }
        self.scheduled += 1;
        let end = (host.now, self.scheduled);
        run.end = Some(end);
        self.coming.insert(end, Coming::RunEnded { role });
    }

    /// Where a resource is: by itself, or in a group.
    pub(super) fn with_part(&mut self, role: Role) -> Option<&mut Vertex> {
        let mut vertices = self.vertices.iter_mut().flatten();
        vertices.find(|vertex| vertex.parts.iter().any(|part| part.role == role))
    }

    pub(super) fn vertex(&mut self, id: VertexId) -> Option<(Role, &mut Vertex)> {
        let place = self
            .vertices
            .iter()
            .position(|v| v.as_ref().is_some_and(|v| v.id == id))?;
        Role::new(place).zip(self.vertices[place].as_mut())
    }
}

impl Underway {
    /// Whether it changes the host, now or at its end.
    pub(super) fn repairs(&self) -> bool {
        (self.passes_on || self.parts.iter().any(|part| part.drift))
            && !self.noop
            && matches!(self.outcome, Planned::Succeeds | Planned::FailsAfterRepair)
    }

    pub(super) fn drifts(&self) -> Vec<Drift> {
        let tried = self.outcome != Planned::FailsBeforeRepair;
        let drift = |member: Option<Role>, field: &'static str| Drift {
            member: member.map(Role::id),
            field: field.into(),
            effect: setpoint_engine::Effect::Change,
            attributes: Vec::new(),
            is: DriftValue::from("wrong"),
            want: DriftValue::from("right"),
            repaired: tried && !self.noop,
            is_done: false,
        };
        if self.outcome == Planned::Waits {
            return Vec::new();
        }
        let mut drifts: Vec<Drift> = Vec::new();
        for (place, part) in self.parts.iter().enumerate().filter(|(_, part)| part.drift) {
            drifts.push(drift((place > 0).then_some(part.role), "content"));
        }
        if drifts.is_empty() && self.passes_on {
            drifts.push(drift(None, "state"));
        }
        drifts
    }
}

impl Part {
    fn new(role: Role, wanted: Option<u8>) -> Part {
        Part {
            role,
            wanted: wanted.unwrap_or(0),
            sends: None,
            drift: false,
        }
    }

    fn sent(&self) -> Sent {
        Sent {
            keys: vec![("out", self.sends.map(content))],
            is_final: false,
        }
    }
}

/// A resource with the members of its group, each with what shall be in it.
fn parts_of(host: &Host, role: Role, resource: &DesiredResource) -> Vec<Part> {
    let number = match resource.meta.is_reversal {
        true => host.records[role.place()],
        false => resource.parameters.get("content").and_then(content_number),
    };
    let members = resource.members.all();
    let of_members = members.iter().filter_map(|member| {
        let number = member.parameters.get("content").and_then(content_number);
        Some((Role::of(&member.id)?, number))
    });
    let parts = std::iter::once((role, number)).chain(of_members);
    parts.map(|(role, number)| Part::new(role, number)).collect()
}
