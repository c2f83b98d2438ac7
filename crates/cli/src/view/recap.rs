//! How the resources stand: counted from the engine's events.

use std::collections::HashMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use setpoint_diagnostics::visible;
use setpoint_engine::{Event, EventKind, RunSummary};
use setpoint_graph::ResourceId;

/// How many resources stand how. Each is counted once, by the first of these that holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) struct Counts {
    /// Could not be brought into their state.
    pub(crate) failed: usize,
    /// Could not be looked at, because something before them failed.
    pub(crate) blocked: usize,
    /// Have not been looked at.
    pub(crate) waiting: usize,
    /// Give no answer: what they look at hangs.
    pub(crate) silent: usize,
    /// Were repaired again and again, because something else keeps undoing it.
    pub(crate) fighting: usize,
    /// Were wrong and were repaired.
    pub(crate) repaired: usize,
    /// Are wrong, and would have been repaired but for `noop`.
    pub(crate) would_repair: usize,
    /// Were right.
    pub(crate) right: usize,
}

impl Counts {
    /// `3 repaired, 1 failed, 12 right`; what is none is left out. Without resources it says so.
    pub(crate) fn text(self) -> String {
        let parts = [
            (self.repaired, "repaired"),
            (self.would_repair, "would be repaired"),
            (self.failed, "failed"),
            (self.fighting, "undone by something else"),
            (self.blocked, "blocked"),
            (self.silent, "not answering"),
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
        let wrong = self.failed + self.blocked + self.waiting + self.silent + self.fighting;
        wrong + self.repaired + self.would_repair + self.right
    }
}

/// The resources of the running graph, and how each stands.
#[derive(Debug, Default)]
pub(crate) struct Recap {
    resources: HashMap<ResourceId, Resource>,
    /// When the engine stops, all resources leave; what counts is how they stood before.
    is_stopping: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Resource {
    standing: Standing,
    fights: bool,
    repaired: bool,
    would_repair: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Standing {
    #[default]
    Waiting,
    Right,
    Failed,
    Blocked,
    Silent,
}

impl Recap {
    /// Takes note of an event.
    pub(crate) fn take(&mut self, event: &Event) {
        if matches!(event.what, EventKind::Stopping { .. }) {
            self.is_stopping = true;
        }
        let Some(id) = event.identity() else { return };
        match &event.what {
            EventKind::Added => {
                self.resources.entry(id).or_default().standing = Standing::Waiting;
            }
            EventKind::Removed if !self.is_stopping => {
                self.resources.remove(&id);
            }
            EventKind::RunEnded { result, .. } => self.note(&id, |resource| {
                resource.would_repair &= *result != RunSummary::Ok;
                resource.standing = match result {
                    RunSummary::Ok | RunSummary::Drift => Standing::Right,
                    RunSummary::Failed => Standing::Failed,
                };
            }),
            EventKind::FailedForGood { .. } | EventKind::BackingOff { .. } => self.set(&id, Standing::Failed),
            EventKind::BlockedBy { .. } => self.set(&id, Standing::Blocked),
            EventKind::NotAnswering { .. } => self.set(&id, Standing::Silent),
            // What may be repaired says so next; what was repaired, at the end.
            EventKind::Drift { .. } => self.note(&id, |resource| resource.would_repair = true),
            EventKind::Repairing { .. } => self.note(&id, |resource| resource.would_repair = false),
            EventKind::Repaired { .. } => self.note(&id, |resource| resource.repaired = true),
            EventKind::Fighting { .. } => self.note(&id, |resource| resource.fights = true),
            _ => {}
        }
    }

    fn set(&mut self, id: &ResourceId, standing: Standing) {
        self.note(id, |resource| resource.standing = standing);
    }

    fn note(&mut self, id: &ResourceId, change: impl FnOnce(&mut Resource)) {
        if let Some(resource) = self.resources.get_mut(id) {
            change(resource);
        }
    }

    /// How they stand now.
    pub(crate) fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        // In whatever order: they are only counted.
        self.resources.values().for_each(|resource| {
            let count = match resource.standing {
                Standing::Failed => &mut counts.failed,
                Standing::Blocked => &mut counts.blocked,
                Standing::Waiting => &mut counts.waiting,
                Standing::Silent => &mut counts.silent,
                Standing::Right if resource.fights => &mut counts.fighting,
                Standing::Right if resource.would_repair => &mut counts.would_repair,
                Standing::Right if resource.repaired => &mut counts.repaired,
                Standing::Right => &mut counts.right,
            };
            *count += 1;
        });
        counts
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

    /// Forgets what was repaired, so that the next recap only tells of what comes.
    pub(crate) fn begin_anew(&mut self) {
        self.resources.values_mut().for_each(|resource| {
            resource.repaired = false;
            resource.fights = false;
        });
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
pub(super) fn duration_text(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0 if duration.as_millis() < 100 => format!("{} ms", duration.as_millis()),
        0..60 => format!("{:.1} s", duration.as_secs_f64()),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
