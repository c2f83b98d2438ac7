//! What a process exports: runs hand over what is to be written, and end when the store has answered.

use std::collections::BTreeSet;
use std::time::Duration;

use setpoint_engine::machine::{Input, RunRequest, VertexId};
use setpoint_engine::{ExportKey, Failure, Offered};
use setpoint_graph::DesiredResource;

use super::{Coming, FAILING_TAKES, Process};
use crate::cast::Role;
use crate::host::Host;
use crate::program::{Bond, content_number};
use crate::rules::{Broken, Rule, hold};

/// What a run exports, on its way to the store.
#[derive(Debug, Default)]
pub(super) struct Exporting {
    /// How many records are not answered yet.
    left: usize,
    written: Vec<ExportKey>,
    failed: bool,
    /// The run is over but for this.
    waits: bool,
}

/// Records that the store takes at a time.
const AT_A_TIME: usize = 3;

impl Process {
    /// A run begins to export.
    pub(super) fn begin_export(
        &mut self,
        host: &Host,
        vertex: VertexId,
        request: &RunRequest,
    ) -> Result<(), Broken> {
        let noop = request.noop && !request.exports.is_empty();
        hold(Rule::Exported, !noop, || {
            "something is exported under noop".to_owned()
        })?;
        let mut exporting = Exporting::default();
        for resource in &request.exports {
            let data = number(resource).to_string();
            for key in ExportKey::of(resource) {
                if self.exports.offer(&key, &data, (vertex, key.clone())) == Offered::Waits {
                    exporting.left += 1;
                }
            }
        }
        if exporting.left > 0 {
            self.exporting.insert(vertex, exporting);
            self.wake_store(host, Duration::ZERO);
        }
        Ok(())
    }

    /// A run is over: what came of its export; none while that is on the way, and then the run ends later.
    pub(super) fn end_export(&mut self, vertex: VertexId) -> Option<(Vec<ExportKey>, Option<Failure>)> {
        let Some(exporting) = self.exporting.get_mut(&vertex) else {
            return Some((Vec::new(), None));
        };
        if exporting.left > 0 {
            exporting.waits = true;
            return None;
        }
        let done = self.exporting.remove(&vertex).unwrap_or_default();
        Some((done.written, done.failed.then(|| Failure::new("export"))))
    }

    /// A run is told to stop: it waits for the store no longer.
    pub(super) fn cancel_export(&mut self, host: &Host, vertex: VertexId) {
        if let Some(exporting) = self
            .exporting
            .get_mut(&vertex)
            .filter(|exporting| exporting.left > 0)
        {
            exporting.left = 0;
            exporting.failed = true;
            self.go_on(host, vertex);
        }
    }

    /// A run that waited ends, if it did.
    fn go_on(&mut self, host: &Host, id: VertexId) {
        let Some(exporting) = self.exporting.get_mut(&id) else {
            return;
        };
        if exporting.left > 0 || !std::mem::take(&mut exporting.waits) {
            return;
        }
        let role = self.vertex(id).map(|(role, _)| role);
        let (at, ending) = match role {
            Some(role) => (host.now, Coming::RunEnded { role }),
            None => (host.now, Coming::HiddenRunEnded(id)),
        };
        let end = self.later(at, ending);
        let vertex = self.vertex(id);
        if let Some(run) = vertex.and_then(|(_, vertex)| vertex.run.as_mut()) {
            run.end = Some(end);
        }
    }

    /// The running graph exports other records than before.
    pub(super) fn retarget(
        &mut self,
        host: &Host,
        wanted: Vec<ExportKey>,
        unwanted: Vec<ExportKey>,
    ) -> Result<(), Broken> {
        hold(Rule::Exported, !self.options.noop, || {
            "what is exported changes under noop".to_owned()
        })?;
        for (vertex, _) in self.exports.retarget(wanted, unwanted) {
            self.answered(host, vertex, None, true);
        }
        if !std::mem::replace(&mut self.knows_former, true) {
            self.exports.found(host.store.keys().cloned());
        }
        self.wake_store(host, Duration::ZERO);
        Ok(())
    }

    fn wake_store(&mut self, host: &Host, after: Duration) {
        if self.exports.is_busy() {
            self.later(host.now + after, Coming::Store);
        }
    }

    /// The store begins with what is to be done next.
    pub(super) fn begin_store(&mut self, host: &Host) {
        let changes = self.exports.next(AT_A_TIME);
        if changes.is_empty() || !self.storing.is_empty() {
            return;
        }
        self.storing = changes;
        let fails = if host.store_fails > 0 {
            FAILING_TAKES
        } else {
            Duration::ZERO
        };
        self.later(host.now + host.store_takes + fails, Coming::Stored);
    }

    /// The store has done it, or failed at it.
    pub(super) fn end_store(&mut self, host: &mut Host) -> Result<(), Broken> {
        let changes = std::mem::take(&mut self.storing);
        let fails = host.store_fails > 0;
        host.store_fails = host.store_fails.saturating_sub(1);
        let mut left = Vec::new();
        for (at, change) in changes.iter().enumerate() {
            // Of what fails some was made all the same.
            if fails && at > 0 {
                break;
            }
            match &change.data {
                Some(data) => drop(host.store.insert(change.key.clone(), data.to_string())),
                None => drop(host.store.remove(&change.key)),
            }
            self.statistics.exported += 1;
            if change.data.is_none() && !fails {
                left.push(change.key.clone());
            }
        }
        let results = changes.iter().map(|_| match fails {
            true => Err(Failure::new("write")),
            false => Ok(()),
        });
        for ((vertex, key), result) in self.exports.done(results.collect()) {
            self.answered(host, vertex, Some(key).filter(|_| result.is_ok()), result.is_ok());
        }
        self.wake_store(
            host,
            if fails {
                Duration::from_secs(1)
            } else {
                Duration::ZERO
            },
        );
        match left.is_empty() {
            true => Ok(()),
            false => self.step(host, Input::Unexported(left)),
        }
    }

    fn answered(&mut self, host: &Host, vertex: VertexId, written: Option<ExportKey>, succeeded: bool) {
        // Of a run that is over the answer concerns nobody.
        if let Some(exporting) = self
            .exporting
            .get_mut(&vertex)
            .filter(|exporting| exporting.left > 0)
        {
            exporting.left -= 1;
            exporting.failed |= !succeeded;
            exporting.written.extend(written);
            self.go_on(host, vertex);
        }
    }

    /// Dies: what the store was doing is found made, or not.
    pub(super) fn lose_store(&self, host: &mut Host, made: bool) {
        for change in self.storing.iter().filter(|_| made) {
            match &change.data {
                Some(data) => drop(host.store.insert(change.key.clone(), data.to_string())),
                None => drop(host.store.remove(&change.key)),
            }
        }
    }

    /// What is in the store and is not being taken back.
    pub(super) fn exported_for_good(&self, host: &Host) -> BTreeSet<ExportKey> {
        let leaving = |key: &ExportKey| {
            let mut changes = self.storing.iter();
            changes.any(|change| change.key == *key && change.data.is_none())
        };
        host.store.keys().filter(|key| !leaving(key)).cloned().collect()
    }

    /// Whether everything that was there before and is wanted is still there.
    pub(super) fn judge_kept(&self, host: &Host, before: &BTreeSet<ExportKey>) -> Result<(), Broken> {
        let wanted = self.exported_keys();
        let lost = before
            .iter()
            .find(|key| wanted.contains(key) && !host.store.contains_key(key));
        hold(Rule::Exported, lost.is_none(), || {
            format!("{} left the store because the process ended", shown(lost))
        })
    }

    /// In the end: who is right has exported what it is, and nothing else is exported.
    pub(super) fn judge_store(
        &self,
        host: &Host,
        helped: bool,
        is_right: impl Fn(Role) -> bool,
    ) -> Result<(), Broken> {
        if self.options.noop {
            return Ok(());
        }
        let wanted = self.exported_keys();
        let stale = host.store.keys().find(|key| !wanted.contains(key));
        hold(Rule::Exported, stale.is_none(), || {
            format!("{} is still exported, and nobody wants it", shown(stale))
        })?;
        for wanted in &self.program.resources {
            if wanted.meta.noop || !(helped || is_right(wanted.role)) {
                continue;
            }
            // Of what is hidden there is nothing but perhaps what undoes one that is gone.
            let part = self.part(wanted.role).filter(|_| !wanted.meta.hidden);
            let part = part.map(|(_, part)| part.wanted);
            let receives = self
                .program
                .arrows
                .iter()
                .any(|arrow| arrow.bond == Bond::Send && arrow.to == wanted.role);
            let content = match part {
                Some(content) => Some(content),
                // What it holds of what was sent is known to the machine alone.
                None if receives => None,
                None => Some(wanted.content),
            };
            for to in &wanted.meta.export {
                let key = ExportKey {
                    resource: wanted.role.id(),
                    to: to.as_str().into(),
                };
                let stored = host.store.get(&key);
                let right =
                    stored.is_some() && content.is_none_or(|content| stored == Some(&content.to_string()));
                hold(Rule::Exported, right, || {
                    format!("{} is exported as {stored:?}, and is {content:?}", wanted.role)
                })?;
            }
        }
        Ok(())
    }

    fn exported_keys(&self) -> BTreeSet<ExportKey> {
        let resources = self.program.resources.iter();
        let keys = resources.flat_map(|wanted| {
            wanted.meta.export.iter().map(|to| ExportKey {
                resource: wanted.role.id(),
                to: to.as_str().into(),
            })
        });
        keys.collect()
    }
}

/// What is in it, as it is to be exported.
fn number(resource: &DesiredResource) -> u8 {
    let content = resource.parameters.get("content");
    content.and_then(content_number).unwrap_or(0)
}

fn shown(key: Option<&ExportKey>) -> String {
    key.map_or_else(String::new, ToString::to_string)
}
