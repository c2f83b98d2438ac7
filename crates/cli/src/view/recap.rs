//! How the resources stand: counted from the engine's events.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::Serialize;
use setpoint_diagnostics::visible;
use setpoint_engine::{Event, EventKind, ResourceName, RunSummary};
use setpoint_graph::ResourceId;

/// How many resources stand how. Each is counted once, by the first of these that holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) struct Counts {
    /// Could not be brought into their state.
    pub(crate) failed: usize,
    /// Could not be looked at, because something before them failed.
    pub(crate) blocked: usize,
    /// Wait for something outside this machine.
    pub(crate) waiting_for_host: usize,
    /// Have not been looked at.
    pub(crate) waiting: usize,
    /// Give no answer: what they look at hangs.
    pub(crate) unresponsive: usize,
    /// Were repaired again and again, because something else keeps undoing it.
    pub(crate) conflict: usize,
    /// Were wrong and were repaired.
    pub(crate) repaired: usize,
    /// Are wrong, and would have been repaired but for `noop`.
    pub(crate) would_repair: usize,
    /// Left the program, and what they had made of the machine is undone.
    pub(crate) undone: usize,
    /// Left the program, and would have been undone but for `noop`.
    pub(crate) would_undo: usize,
    /// Were right.
    pub(crate) right: usize,
}

impl Counts {
    /// `3 repaired, 1 failed, 12 right`; what is none is left out. Without resources it says so.
    pub(crate) fn text(self) -> String {
        let parts = [
            (self.repaired, "repaired"),
            (self.undone, "undone"),
            (self.would_undo, "would be undone"),
            (self.would_repair, "would be repaired"),
            (self.failed, "failed"),
            (self.conflict, "undone by something else"),
            (self.waiting_for_host, "waiting for other machines"),
            (self.blocked, "blocked"),
            (self.unresponsive, "unresponsive"),
            (self.waiting, "not looked at"),
            (self.right, "right"),
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

    /// All of them.
    pub(crate) fn all(self) -> usize {
        let wrong = self.failed
            + self.waiting_for_host
            + self.blocked
            + self.waiting
            + self.unresponsive
            + self.conflict;
        wrong + self.repaired + self.would_repair + self.undone + self.would_undo + self.right
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
    repaired: bool,
    would_repair: bool,
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
            Standing::Right if self.would_repair && self.is_reversal => &mut counts.would_undo,
            Standing::Right if self.would_repair => &mut counts.would_repair,
            Standing::Right if self.repaired => &mut counts.repaired,
            Standing::Right => &mut counts.right,
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
            }),
            EventKind::MemberFailed { .. } => self.note(&id, |resource| resource.blamed = true),
            EventKind::RunEnded { result, .. } => {
                let standing = match result {
                    RunSummary::Ok | RunSummary::Drift => Some(Standing::Right),
                    RunSummary::Waiting => Some(Standing::WaitingForHost),
                    RunSummary::Failed => None,
                };
                self.note_all(&id, |resource| {
                    resource.would_repair &= *result != RunSummary::Ok;
                    resource.would_repair &= resource.drifted || *result != RunSummary::Drift;
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
            EventKind::Drift { .. } => self.note(&id, |resource| {
                (resource.would_repair, resource.drifted) = (true, true);
            }),
            EventKind::Repairing { .. } => self.note(&id, |resource| resource.would_repair = false),
            EventKind::Repaired { .. } => self.note(&id, |resource| resource.repaired = true),
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
        let is_noted = |resource: Resource| resource.repaired || resource.fights;
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
                resource.repaired = false;
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
            ];
            let what = match random(10) {
                0 | 1 => EventKind::Added {
                    reversal: false,
                    members: Vec::new(),
                },
                2 => EventKind::Removed { members: Vec::new() },
                3 => EventKind::Drift {
                    field,
                    is,
                    want,
                    diff: None,
                },
                4 => EventKind::Repairing { field },
                5 => EventKind::Repaired { field, is, want },
                6 => EventKind::Conflict { field, is, want },
                7 => EventKind::GaveUp { error },
                _ => EventKind::RunEnded {
                    result: results[random(4) as usize],
                    duration: Duration::ZERO,
                    error: None,
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
                let noted = |resource: &Resource| resource.repaired || resource.fights;
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
            repaired: 3,
            failed: 1,
            right: 12,
            ..Counts::default()
        };
        assert_eq!(counts.text(), "3 repaired, 1 failed, 12 right");
        assert_eq!(counts.all(), 16);
        assert_eq!(Counts::default().text(), "no resources");
        let names: Vec<String> = "abcde".chars().map(String::from).collect();
        assert_eq!(some_of(&names), "a, b, c and 2 more");
        assert_eq!(some_of(&names[..3]), "a, b, c");
        assert_eq!(duration_text(Duration::from_millis(412)), "0.4 s");
        assert_eq!(duration_text(Duration::from_millis(41)), "41 ms");
        assert_eq!(duration_text(Duration::from_secs(7500)), "2 h 5 min");
    }
}
