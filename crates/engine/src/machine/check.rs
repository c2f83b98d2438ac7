//! Whether the machine's state is one that it may be in: written from the rules, not from the code that keeps them.

use std::collections::BTreeMap;

use setpoint_graph::DesiredResource;

use super::edges::Refresh;
use super::life::{Activity, Due, Queue, Stage};
use super::{Machine, VertexId};

impl Machine {
    /// Looks at everything, between two steps. For tests and simulation: the cost is that of the whole graph.
    ///
    /// # Errors
    /// What is not as it must be.
    pub fn check(&self) -> Result<(), String> {
        self.check_counts()?;
        self.check_edges()?;
        self.check_reversals()?;
        for slot in 0..self.vertices.len() as u32 {
            self.check_vertex(slot)
                .map_err(|error| format!("{} ({slot}): {error}", self.show(slot)))?;
        }
        self.check_homes()?;
        self.check_standings()
    }

    /// Whether each member of a group is known to live where it does, and nowhere else.
    fn check_homes(&self) -> Result<(), String> {
        let mut members = 0;
        for (slot, vertex) in self.vertices.iter().enumerate() {
            let Some(life) = &vertex.life else { continue };
            for member in life.resource.members.all() {
                members += 1;
                if self.homes.get(&member.id) != Some(&(slot as u32)) {
                    return Err(format!("{} lives in {slot}, which is not known", member.id));
                }
                let alone = self.index.get(&member.id, &self.vertices).into_iter();
                let mut alone = alone
                    .map(|other| self.vertex(other))
                    .filter(|other| !other.hidden);
                if alone.any(|other| other.life.is_some()) {
                    return Err(format!("{} lives in a group and by itself", member.id));
                }
            }
        }
        if members != self.homes.len() {
            return Err("a member is known of no group that lives".to_owned());
        }
        Ok(())
    }

    fn check_standings(&self) -> Result<(), String> {
        let mut counts = super::StandingCounts::default();
        for vertex in &self.vertices {
            if let Some(standing) = vertex.standing() {
                for (standing, count) in vertex.group_size().standings(Some(standing)) {
                    *counts.count_mut(standing) += count;
                }
            }
        }
        if counts != self.counts {
            return Err(format!("they stand {counts:?}, and {:?} is counted", self.counts));
        }
        Ok(())
    }

    /// Whether a vertex is settled, found by looking at all its ancestors.
    #[must_use]
    pub fn is_settled(&self, vertex: VertexId) -> bool {
        self.slot(vertex).is_some_and(|slot| {
            let mut settled = BTreeMap::new();
            self.vertex(slot).is_locally_settled() && self.predecessors_settled(slot, &mut settled)
        })
    }

    fn predecessors_settled(&self, slot: u32, known: &mut BTreeMap<u32, bool>) -> bool {
        let mut path = vec![slot];
        let mut seen = std::collections::BTreeSet::new();
        while let Some(top) = path.pop() {
            for edge in &self.vertex(top).incoming {
                let from = self.edges.get(*edge).from;
                if self.vertex(from).is_partly_settled() && self.is_open(*edge) {
                    if seen.insert(from) {
                        path.push(from);
                    }
                    continue;
                }
                match known.get(&from) {
                    Some(true) => continue,
                    Some(false) => return false,
                    None => {}
                }
                if !self.vertex(from).is_locally_settled() {
                    known.insert(from, false);
                    return false;
                }
                if seen.insert(from) {
                    path.push(from);
                }
            }
        }
        known.insert(slot, true);
        true
    }

    fn check_counts(&self) -> Result<(), String> {
        let count = |is: &dyn Fn(&super::Vertex) -> bool| self.vertices.iter().filter(|v| is(v)).count();
        let pairs = [
            ("running", self.running, count(&|v| v.is_running())),
            ("alive", self.alive, count(&|v| v.life.is_some())),
            ("busy", self.busy, count(&|v| v.is_busy())),
            ("blocked", self.blocked, count(&|v| v.blocked_by().is_some())),
            ("failed", self.failed.len(), count(&|v| v.has_failed())),
        ];
        for (what, counted, real) in pairs {
            if counted != real {
                return Err(format!("{counted} are counted as {what}, {real} are"));
            }
        }
        if self.running > self.options.jobs.max(1) {
            return Err(format!("{} runs at once", self.running));
        }
        let mut held: BTreeMap<String, u32> = BTreeMap::new();
        for vertex in &self.vertices {
            let granted = |queue| {
                matches!(
                    queue,
                    Queue::Turn {
                        holds_semaphores: true,
                        ..
                    }
                )
            };
            let Some(life) = vertex.life.as_ref() else {
                continue;
            };
            if !vertex.is_running() && !vertex.queue().is_some_and(granted) {
                continue;
            }
            let resource = &life.resource;
            let mut ids: Vec<String> = resource.semaphores().map(str::to_owned).collect();
            ids.extend(self.options.sema.map(|count| format!(":{count}")));
            ids.sort();
            ids.dedup();
            for id in ids {
                *held.entry(id).or_default() += 1;
            }
        }
        for (id, counted, most) in self.semaphores.iter() {
            let real = held.get(&**id).copied().unwrap_or(0);
            if counted != real || real > most {
                return Err(format!(
                    "semaphore {id}: {counted} counted, {real} held, {most} allowed"
                ));
            }
        }
        Ok(())
    }

    /// What has a record is in the graph: as the program has it, or else as what undoes it, alone and once.
    fn check_reversals(&self) -> Result<(), String> {
        let Some(graph) = &self.graph else {
            return Ok(());
        };
        let records = &self.reversals.records;
        for id in records.keys().filter(|_| self.stopping.is_none()) {
            if !graph.resources.contains_key(id) {
                return Err(format!("{id} has a record, but is neither wanted nor undone"));
            }
        }
        let undone = graph
            .resources
            .values()
            .filter(|resource| resource.meta.is_reversal);
        for resource in undone {
            if !records.contains_key(&resource.id) || !self.reversals.pending.contains(&resource.id) {
                return Err(format!("{} is undone without a record", resource.id));
            }
        }
        for vertex in &self.vertices {
            let lives = vertex.life.as_ref().map(|life| &life.resource);
            let is_reversal = |resource: &DesiredResource| resource.meta.is_reversal;
            let lives_on = lives
                .filter(|_| !vertex.is_leaving())
                .is_some_and(|lives| is_reversal(lives));
            let wanted = vertex.wanted.as_ref().is_some_and(|wanted| is_reversal(wanted));
            if (lives_on || wanted) && !(vertex.incoming.is_empty() && vertex.outgoing.is_empty()) {
                return Err("what undoes one that left has an edge".to_owned());
            }
        }
        Ok(())
    }

    fn check_edges(&self) -> Result<(), String> {
        for (index, edge) in self.edges.iter() {
            let there = self.vertex(edge.from).outgoing.contains(&index)
                && self.vertex(edge.to).incoming.contains(&index)
                && self.edges.find(edge.from, edge.to) == Some(index);
            if !there {
                return Err(format!("edge {index} is not at both its ends"));
            }
            if edge.refresh == Refresh::Taken && !self.vertex(edge.to).is_running() {
                return Err(format!("edge {index} is taken, but no run serves it"));
            }
            if edge.refresh != Refresh::None && !edge.notifies() {
                return Err(format!("edge {index} does not notify, but its bit is set"));
            }
        }
        let ends: usize = self
            .vertices
            .iter()
            .map(|v| v.incoming.len() + v.outgoing.len())
            .sum();
        if ends != 2 * self.edges.len() {
            return Err("a vertex has an edge that does not exist".to_owned());
        }
        // With all settled, heights must order every edge.
        if self.stopping.is_none() {
            for (index, edge) in self.edges.iter() {
                if self.vertex(edge.from).height <= self.vertex(edge.to).height {
                    return Err(format!("edge {index} does not go downwards"));
                }
            }
        }
        Ok(())
    }

    fn check_vertex(&self, slot: u32) -> Result<(), String> {
        let vertex = self.vertex(slot);
        if vertex.seen.touched {
            return Err("not looked at after it changed".to_owned());
        }
        let Some(life) = &vertex.life else {
            // At the end edges stay in place, for the order of cleaning up.
            let is_free = vertex.wanted.is_none() && self.stopping.is_none();
            return if is_free && !vertex.incoming.is_empty() {
                Err("free but not empty".to_owned())
            } else {
                Ok(())
            };
        };
        if vertex.seen.locally_settled != vertex.is_locally_settled() {
            return Err("settled by itself or not, others believe the contrary".to_owned());
        }
        let known = &mut BTreeMap::new();
        if vertex.search.settled_epoch == self.epoch
            && !(vertex.is_locally_settled() && self.predecessors_settled(slot, known))
        {
            return Err("remembered as settled but is not".to_owned());
        }
        let wanted = vertex.wanted.as_ref();
        let same = wanted.is_some_and(|wanted| life.resource.is_unchanged(wanted));
        if !same && !life.is_leaving() {
            return Err("lives on although something else is wanted".to_owned());
        }
        if life.is_realizing()
            && !matches!(
                life.stage(),
                Stage::Initialising { .. } | Stage::Arming { .. } | Stage::Watching(_)
            )
        {
            return Err("shall run before it goes, but cannot".to_owned());
        }
        if life.wait().is_some_and(|wait| wait.until < self.now) {
            return Err("waits beyond its time".to_owned());
        }
        match life.stage() {
            Stage::Watching(Activity::Due(due)) => self.check_due(slot, due),
            Stage::WatchFailed {
                wait: None,
                run: None,
            } => Err("waits for nothing".to_owned()),
            _ => Ok(()),
        }
    }

    /// What must run waits for something that will come.
    fn check_due(&self, slot: u32, due: &Due) -> Result<(), String> {
        match &due.queue {
            Queue::Undecided => Err("must run but waits for nothing".to_owned()),
            Queue::Time(_) | Queue::Semaphores { .. } => Ok(()),
            Queue::Ancestor(on) => {
                let listed = self.waiters.get(on).is_some_and(|list| list.contains(&slot));
                if !listed || self.vertex(*on).is_locally_settled() {
                    return Err("waits for what has come".to_owned());
                }
                if due.blocked_by != self.vertex(*on).seen.obstructs {
                    return Err("blocked by something else than what it waits for".to_owned());
                }
                Ok(())
            }
            Queue::Turn { .. } => {
                let full = self.running >= self.options.jobs.max(1);
                if self.paused.is_none() && !full {
                    return Err("ready but not started".to_owned());
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests;
