//! How the resources stand: counted from the engine's events.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::Serialize;
use setpoint_diagnostics::visible;
use setpoint_engine::{Effect, Event, EventKind, ResourceName, RunSummary};
use setpoint_graph::ResourceId;

/// How many resources stand how. Each is counted once, by the first of these that holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) struct Counts {
    /// Could not be brought into their state.
    pub(crate) failed: usize,
    /// Could not be checked, because something before them failed.
    pub(crate) blocked: usize,
    /// Wait for something outside this machine.
    pub(crate) waiting_for_host: usize,
    /// Have not been checked.
    pub(crate) waiting: usize,
    /// Give no answer: what they look at hangs.
    pub(crate) unresponsive: usize,
    /// Were repaired again and again, because something else keeps undoing it.
    pub(crate) conflict: usize,
    /// Nothing was repaired, and it cannot be said what a repair would do before an earlier resource has run.
    pub(crate) unknown: usize,
    /// Did not exist and were created.
    pub(crate) created: usize,
    /// Existed and were removed.
    pub(crate) removed: usize,
    /// Differed from the program and were changed.
    pub(crate) changed: usize,
    /// Were as they should be, then drifted, and were repaired.
    pub(crate) repaired: usize,
    /// Services that restarted.
    pub(crate) restarted: usize,
    /// Services that reloaded their configuration.
    pub(crate) reloaded: usize,
    /// Commands that ran and messages that were sent.
    pub(crate) ran: usize,
    /// Would be created without `noop`.
    pub(crate) would_create: usize,
    /// Would be removed without `noop`.
    pub(crate) would_remove: usize,
    /// Would be changed without `noop`.
    pub(crate) would_change: usize,
    /// Services that would restart without `noop`.
    pub(crate) would_restart: usize,
    /// Services that would reload their configuration without `noop`.
    pub(crate) would_reload: usize,
    /// Commands that would run and messages that would be sent without `noop`.
    pub(crate) would_run: usize,
    /// Left the program, and what they had made of the machine is undone.
    pub(crate) undone: usize,
    /// Left the program, and would have been undone without `noop`.
    pub(crate) would_undo: usize,
    /// Were as they should be.
    pub(crate) unchanged: usize,
}

impl Counts {
    /// `3 created, 1 failed, 12 unchanged`; zero counts are left out. Without resources it says so.
    pub(crate) fn text(self) -> String {
        let parts = [
            (self.created, "created"),
            (self.changed, "changed"),
            (self.removed, "removed"),
            (self.repaired, "repaired"),
            (self.ran, "ran"),
            (self.reloaded, "reloaded"),
            (self.restarted, "restarted"),
            (self.undone, "undone"),
            (self.would_create, "to create"),
            (self.would_change, "to change"),
            (self.would_remove, "to remove"),
            (self.would_run, "to run"),
            (self.would_reload, "to reload"),
            (self.would_restart, "to restart"),
            (self.would_undo, "to undo"),
            (self.unknown, "not known yet"),
            (self.failed, "failed"),
            (self.conflict, "undone by something else"),
            (self.waiting_for_host, "waiting for other machines"),
            (self.blocked, "blocked"),
            (self.unresponsive, "unresponsive"),
            (self.waiting, "not checked"),
            (self.unchanged, "unchanged"),
        ];
        let parts: Vec<String> = parts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        match parts.as_slice() {
            [] => "no resources".to_owned(),
            parts => parts.join(", "),
        }
    }

    /// How they stand when the machine is at rest: whatever was changed is as it should be now.
    pub(crate) fn at_rest(self) -> Counts {
        let done = self.created
            + self.removed
            + self.changed
            + self.repaired
            + self.restarted
            + self.reloaded
            + self.ran;
        Counts {
            created: 0,
            removed: 0,
            changed: 0,
            repaired: 0,
            restarted: 0,
            reloaded: 0,
            ran: 0,
            unchanged: self.unchanged + done,
            ..self
        }
    }

    /// All of them that are not as they should be, for counts of a machine at rest.
    pub(crate) fn not_unchanged(self) -> usize {
        let wrong = self.failed
            + self.blocked
            + self.waiting_for_host
            + self.waiting
            + self.unresponsive
            + self.conflict
            + self.unknown;
        let would = self.would_create
            + self.would_remove
            + self.would_change
            + self.would_restart
            + self.would_reload
            + self.would_run;
        wrong + would + self.undone + self.would_undo
    }
}

/// The change of a resource, or the planned change. Of several, the first in this order counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Done {
    Created,
    Removed,
    Changed,
    Repaired,
    Restarted,
    Reloaded,
    Ran,
}

impl Done {
    /// The change that a repair with this effect makes; `later` if the resource was in its state before.
    fn of(effect: Effect, later: bool) -> Done {
        match effect {
            Effect::Create | Effect::Change | Effect::Remove if later => Done::Repaired,
            Effect::Create => Done::Created,
            Effect::Change => Done::Changed,
            Effect::Remove => Done::Removed,
            Effect::Run => Done::Ran,
            Effect::Reload => Done::Reloaded,
            Effect::Restart => Done::Restarted,
        }
    }

    /// The first of two.
    fn and(self, before: Option<Done>) -> Option<Done> {
        Some(before.map_or(self, |before| before.min(self)))
    }
}

/// The resources of the running graph, and how each stands.
#[derive(Debug, Default)]
pub(crate) struct Recap {
    resources: FxHashMap<ResourceId, Resource>,
    /// What is applied as part of others.
    members: FxHashMap<ResourceId, Vec<ResourceId>>,
    /// Kept as the resources change: whoever asks at every repair does not go through all of them.
    counts: Counts,
    /// Those that were repaired or fought over since [`Recap::begin_anew`].
    noted: Vec<ResourceId>,
    /// Whose notifications are pending: from whom.
    notified: BTreeMap<ResourceId, BTreeSet<String>>,
    /// When the engine stops, all resources leave; what counts is how they stood before.
    is_stopping: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Resource {
    standing: Standing,
    fights: bool,
    done: Option<Done>,
    /// The change that its last run planned.
    would: Option<Done>,
    /// It cannot be said what its last run would have done.
    unknown: bool,
    /// It undoes one that left the program.
    is_reversal: bool,
    /// Its run under way has found something wrong.
    drifted: bool,
    /// The last run failed because of it, which is applied as part of another resource.
    blamed: bool,
}

impl Resource {
    /// Where it is counted.
    fn count_in(self, counts: &mut Counts) -> &mut usize {
        match self.standing {
            Standing::Failed => &mut counts.failed,
            Standing::Blocked => &mut counts.blocked,
            Standing::WaitingForHost => &mut counts.waiting_for_host,
            Standing::Waiting => &mut counts.waiting,
            Standing::Unresponsive => &mut counts.unresponsive,
            Standing::Right if self.fights => &mut counts.conflict,
            Standing::Right if self.unknown => &mut counts.unknown,
            Standing::Right if self.would.is_some() && self.is_reversal => &mut counts.would_undo,
            Standing::Right => match (self.would, self.done) {
                (Some(Done::Created), _) => &mut counts.would_create,
                (Some(Done::Removed), _) => &mut counts.would_remove,
                (Some(Done::Changed | Done::Repaired), _) => &mut counts.would_change,
                (Some(Done::Restarted), _) => &mut counts.would_restart,
                (Some(Done::Reloaded), _) => &mut counts.would_reload,
                (Some(Done::Ran), _) => &mut counts.would_run,
                (None, Some(Done::Created)) => &mut counts.created,
                (None, Some(Done::Removed)) => &mut counts.removed,
                (None, Some(Done::Changed)) => &mut counts.changed,
                (None, Some(Done::Repaired)) => &mut counts.repaired,
                (None, Some(Done::Restarted)) => &mut counts.restarted,
                (None, Some(Done::Reloaded)) => &mut counts.reloaded,
                (None, Some(Done::Ran)) => &mut counts.ran,
                (None, None) => &mut counts.unchanged,
            },
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Standing {
    #[default]
    Waiting,
    Right,
    Failed,
    Blocked,
    WaitingForHost,
    Unresponsive,
}

impl Recap {
    /// Takes note of an event.
    pub(crate) fn take(&mut self, event: &Event) {
        if matches!(event.what, EventKind::Stopping { .. }) {
            self.is_stopping = true;
        }
        let Some(id) = event.identity() else { return };
        match &event.what {
            EventKind::Added { members, reversal } => {
                let members: Vec<ResourceId> = members.iter().map(ResourceName::id).collect();
                for id in std::iter::once(&id).chain(&members) {
                    if !self.resources.contains_key(id) {
                        self.resources.insert(id.clone(), Resource::default());
                        *Resource::default().count_in(&mut self.counts) += 1;
                    }
                    self.note(id, |resource| {
                        resource.standing = Standing::Waiting;
                        resource.is_reversal = *reversal;
                    });
                }
                if !members.is_empty() {
                    self.members.insert(id, members);
                }
            }
            EventKind::Removed { .. } if !self.is_stopping => {
                for id in self.all_of(&id) {
                    if let Some(gone) = self.resources.remove(&id) {
                        *gone.count_in(&mut self.counts) -= 1;
                    }
                }
                self.members.remove(&id);
                self.notified.remove(&id);
            }
            EventKind::StartedRun { .. } => self.note_all(&id, |resource| {
                (resource.drifted, resource.blamed) = (false, false);
                resource.unknown = false;
            }),
            EventKind::MemberFailed { .. } => self.note(&id, |resource| resource.blamed = true),
            EventKind::RunEnded { result, .. } => {
                let standing = match result {
                    RunSummary::Ok | RunSummary::Drift | RunSummary::Unsure => Some(Standing::Right),
                    RunSummary::Waiting => Some(Standing::WaitingForHost),
                    RunSummary::Failed => None,
                };
                self.note_all(&id, |resource| {
                    let is_open =
                        *result != RunSummary::Ok && (resource.drifted || *result != RunSummary::Drift);
                    resource.would = resource.would.filter(|_| is_open);
                    resource.unknown = *result == RunSummary::Unsure;
                    resource.standing = standing.unwrap_or(resource.standing);
                });
                if standing.is_none() {
                    self.set_failed(&id);
                }
            }
            EventKind::GaveUp { .. } | EventKind::BackingOff { .. } => self.set_failed(&id),
            EventKind::BlockedBy { .. } => self.set_all(&id, Standing::Blocked),
            EventKind::Unresponsive { .. } => self.set_all(&id, Standing::Unresponsive),
            // What may be repaired says so next; what was repaired, at the end.
            EventKind::Drift { effect, .. } => self.note(&id, |resource| {
                let before = resource.would.filter(|_| resource.drifted);
                resource.would = Done::of(*effect, false).and(before);
                resource.drifted = true;
            }),
            EventKind::Repairing { .. } => self.note(&id, |resource| resource.would = None),
            EventKind::Repaired { effect, later, .. } => self.note(&id, |resource| {
                resource.done = Done::of(*effect, *later).and(resource.done);
            }),
            EventKind::Conflict { .. } => self.note(&id, |resource| resource.fights = true),
            EventKind::Undone => self.counts.undone += 1,
            EventKind::RefreshPending { by } => {
                self.notified.entry(id).or_default().insert(by.clone());
            }
            EventKind::RefreshConsumed { by } => {
                if let Some(senders) = self.notified.get_mut(&id) {
                    senders.remove(by);
                    if senders.is_empty() {
                        self.notified.remove(&id);
                    }
                }
            }
            _ => {}
        }
    }

    /// A resource and what is applied as part of it.
    fn all_of(&self, id: &ResourceId) -> Vec<ResourceId> {
        let members = self.members.get(id).into_iter().flatten();
        std::iter::once(id).chain(members).cloned().collect()
    }

    fn set_all(&mut self, id: &ResourceId, standing: Standing) {
        self.note_all(id, |resource| resource.standing = standing);
    }

    /// A run failed: because of some of those that are applied as one, or as a whole.
    fn set_failed(&mut self, id: &ResourceId) {
        let all = self.all_of(id);
        let is_blamed = |id: &&ResourceId| self.resources.get(*id).is_some_and(|r| r.blamed);
        let blamed: Vec<ResourceId> = all.iter().filter(is_blamed).cloned().collect();
        for id in all {
            // What fails keeps the others from nothing.
            let is_right = !blamed.is_empty() && !blamed.contains(&id);
            let standing = if is_right {
                Standing::Right
            } else {
                Standing::Failed
            };
            self.set(&id, standing);
        }
    }

    fn note_all(&mut self, id: &ResourceId, mut change: impl FnMut(&mut Resource)) {
        if !self.members.contains_key(id) {
            return self.note(id, change);
        }
        for id in self.all_of(id) {
            self.note(&id, &mut change);
        }
    }

    fn set(&mut self, id: &ResourceId, standing: Standing) {
        self.note(id, |resource| resource.standing = standing);
    }

    fn note(&mut self, id: &ResourceId, change: impl FnOnce(&mut Resource)) {
        let Some(resource) = self.resources.get_mut(id) else {
            return;
        };
        let before = *resource;
        change(resource);
        let is_noted = |resource: Resource| resource.done.is_some() || resource.fights;
        if is_noted(*resource) && !is_noted(before) {
            self.noted.push(id.clone());
        }
        *before.count_in(&mut self.counts) -= 1;
        *resource.count_in(&mut self.counts) += 1;
    }

    /// How they stand now.
    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }

    /// Those that failed, by name, `file[/a], file[/b] and 3 more`; empty without one.
    pub(crate) fn failed(&self) -> String {
        let failed = self
            .resources
            .iter()
            .filter(|(_, resource)| resource.standing == Standing::Failed);
        let mut names: Vec<String> = failed
            .map(|(id, _)| visible(&id.to_string()).into_owned())
            .collect();
        names.sort();
        some_of(&names)
    }

    /// How many notifications are pending, and those whom they are for, by name; none without one.
    pub(crate) fn pending_notifications(&self) -> Option<(usize, String)> {
        let (counts, names): (Vec<usize>, Vec<String>) = self
            .notified
            .iter()
            .map(|(id, senders)| (senders.len(), visible(&id.to_string()).into_owned()))
            .unzip();
        (!names.is_empty()).then(|| (counts.iter().sum(), some_of(&names)))
    }

    /// Forgets what was repaired, so that the next recap only tells of what comes.
    pub(crate) fn begin_anew(&mut self) {
        for id in std::mem::take(&mut self.noted) {
            self.note(&id, |resource| {
                resource.done = None;
                resource.fights = false;
            });
        }
    }
}

/// The first few of a list: `a, b, c and 4 more`.
pub(super) fn some_of(names: &[String]) -> String {
    const SHOWN: usize = 3;
    match names.len().checked_sub(SHOWN) {
        Some(more @ 1..) => format!("{} and {more} more", names[..SHOWN].join(", ")),
        _ => names.join(", "),
    }
}

/// A time span as people say it: `0.4 s`, `3 min 20 s`, `2 h 5 min`.
pub(crate) fn duration_text(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0 if duration.as_millis() < 100 => format!("{} ms", duration.as_millis()),
        0..60 => format!("{:.1} s", duration.as_secs_f64()),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

/// A span in seconds, as it goes over the socket.
pub(crate) fn span_text(seconds: f64) -> String {
    duration_text(Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn what_is_kept_is_what_counting_all_would_give() {
        let mut recap = Recap::default();
        let mut state = 7u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        for seq in 0..5000 {
            let (field, is, want): (Arc<str>, Arc<str>, Arc<str>) = ("f".into(), "a".into(), "b".into());
            let error: Arc<str> = "e".into();
            let results = [
                RunSummary::Ok,
                RunSummary::Drift,
                RunSummary::Failed,
                RunSummary::Waiting,
                RunSummary::Unsure,
            ];
            let effects = [Effect::Create, Effect::Change, Effect::Remove, Effect::Restart];
            let effect = effects[random(4) as usize];
            let later = random(2) == 0;
            let what = match random(10) {
                0 | 1 => EventKind::Added {
                    reversal: false,
                    members: Vec::new(),
                },
                2 => EventKind::Removed { members: Vec::new() },
                3 => EventKind::Drift {
                    field,
                    effect,
                    later,
                    is,
                    want,
                    unknown: false,
                    diff: None,
                    attributes: BTreeMap::new(),
                },
                4 => EventKind::Repairing { field },
                5 => EventKind::Repaired {
                    field,
                    effect,
                    later,
                    is,
                    want,
                },
                6 => EventKind::Conflict { field, is, want },
                7 => EventKind::GaveUp { error },
                _ => EventKind::RunEnded {
                    result: results[random(5) as usize],
                    duration: Duration::ZERO,
                    error: None,
                    foreseen: None,
                },
            };
            recap.take(&Event {
                what,
                time: Duration::ZERO,
                seq,
                kind: Some("file".into()),
                name: Some(format!("/{}", random(6)).into()),
                group: None,
            });
            if random(20) == 0 {
                recap.begin_anew();
                let noted = |resource: &Resource| resource.done.is_some() || resource.fights;
                assert!(!recap.resources.values().any(noted));
            }
            let mut counted = Counts::default();
            recap
                .resources
                .values()
                .for_each(|resource| *resource.count_in(&mut counted) += 1);
            assert_eq!(recap.counts(), counted);
        }
        assert_ne!(recap.counts(), Counts::default());
    }

    #[test]
    fn a_recap_names_what_there_is() {
        let counts = Counts {
            created: 3,
            would_run: 2,
            failed: 1,
            unchanged: 12,
            ..Counts::default()
        };
        assert_eq!(counts.text(), "3 created, 2 to run, 1 failed, 12 unchanged");
        assert_eq!(counts.not_unchanged(), 3);
        assert_eq!(counts.at_rest().unchanged, 15);
        assert_eq!(Counts::default().text(), "no resources");
        let names: Vec<String> = "abcde".chars().map(String::from).collect();
        assert_eq!(some_of(&names), "a, b, c and 2 more");
        assert_eq!(some_of(&names[..3]), "a, b, c");
        assert_eq!(duration_text(Duration::from_millis(412)), "0.4 s");
        assert_eq!(duration_text(Duration::from_millis(41)), "41 ms");
        assert_eq!(duration_text(Duration::from_secs(7500)), "2 h 5 min");
    }
}
