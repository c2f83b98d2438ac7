//! Whether the machine's state is one that it may be in: written from the rules, not from the code that keeps them.

use std::collections::BTreeMap;

use super::edges::Refresh;
use super::vertex::{Hold, NONE, Phase};
use super::{Machine, VertexId};

impl Machine {
    /// Looks at everything, between two steps. For tests and simulation: the cost is that of the whole graph.
    ///
    /// # Errors
    /// What is not as it must be.
    pub fn check(&self) -> Result<(), String> {
        self.check_counts()?;
        self.check_edges()?;
        for slot in 0..self.vertices.len() as u32 {
            self.check_vertex(slot)
                .map_err(|error| format!("{} ({slot}): {error}", self.show(slot)))?;
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
            ("running", self.running, count(&|v| v.flags.running)),
            ("alive", self.alive, count(&|v| v.live.is_some())),
            ("busy", self.busy, count(&|v| v.is_busy())),
            ("blocked", self.blocked, count(&|v| v.blocked_by != NONE)),
            (
                "failed",
                self.failed.len(),
                count(&|v| (v.phase == Phase::Failed || v.flags.failing) && !v.flags.leaving),
            ),
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
        for vertex in self.vertices.iter().filter(|v| v.flags.holding) {
            let Some(resource) = &vertex.live else {
                return Err("a vertex that is gone holds semaphores".to_owned());
            };
            let mut ids: Vec<String> = resource.meta.sema.clone();
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

    fn check_edges(&self) -> Result<(), String> {
        for (index, edge) in self.edges.iter() {
            let there = self.vertex(edge.from).outgoing.contains(&index)
                && self.vertex(edge.to).incoming.contains(&index)
                && self.edges.find(edge.from, edge.to) == Some(index);
            if !there {
                return Err(format!("edge {index} is not at both its ends"));
            }
            if edge.refresh == Refresh::Taken && !self.vertex(edge.to).flags.running {
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
        let flags = vertex.flags;
        if flags.touched {
            return Err("not looked at after it changed".to_owned());
        }
        if vertex.live.is_none() && vertex.wanted.is_none() {
            let clean = vertex.phase == Phase::Absent && !flags.running && vertex.incoming.is_empty();
            // At the end edges stay in place, for the order of cleaning up.
            return if clean || self.stopping.is_some() {
                Ok(())
            } else {
                Err("free but not empty".to_owned())
            };
        }
        if flags.locally_settled != vertex.is_locally_settled() {
            return Err("settled by itself or not, others believe the contrary".to_owned());
        }
        if flags.running && vertex.live.is_none() {
            return Err("runs but does not live".to_owned());
        }
        let known = &mut BTreeMap::new();
        if vertex.settled_epoch == self.epoch
            && !(vertex.is_locally_settled() && self.predecessors_settled(slot, known))
        {
            return Err("remembered as settled but is not".to_owned());
        }
        if vertex.live.is_some() {
            let same = match (&vertex.live, &vertex.wanted) {
                (Some(live), Some(wanted)) => live.is_equal(wanted),
                _ => false,
            };
            if !same && !flags.leaving {
                return Err("lives on although something else is wanted".to_owned());
            }
        }
        if flags.ready && flags.queued {
            return Err("waits both for jobs and for semaphores".to_owned());
        }
        self.check_no_lost_wakeup(slot)
    }

    /// A dirty vertex waits for something that will come.
    fn check_no_lost_wakeup(&self, slot: u32) -> Result<(), String> {
        let vertex = self.vertex(slot);
        let flags = vertex.flags;
        if vertex.hold != Hold::None && vertex.hold_until < self.now {
            return Err("held beyond its time".to_owned());
        }
        if vertex.phase != Phase::Watching || !flags.dirty || flags.running {
            return Ok(());
        }
        if flags.leaving && !flags.realizing {
            return Err("leaves but nothing is done about it".to_owned());
        }
        if let Some(on) = super::some(vertex.waiting_on) {
            let listed = self.waiters.get(&on).is_some_and(|list| list.contains(&slot));
            if !listed || self.vertex(on).is_locally_settled() {
                return Err("waits for what has come".to_owned());
            }
            if vertex.blocked_by != self.vertex(on).obstructs {
                return Err("blocked by something else than what it waits for".to_owned());
            }
            return Ok(());
        }
        if flags.ready {
            let full = self.running >= self.options.jobs.max(1);
            if !self.paused && !full {
                return Err("ready but not started".to_owned());
            }
            return Ok(());
        }
        if flags.queued || vertex.hold != Hold::None {
            return Ok(());
        }
        Err("dirty but waits for nothing".to_owned())
    }
}
