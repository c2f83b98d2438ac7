//! The newest events, for those who were not there when they happened.

use std::collections::VecDeque;
use std::sync::Arc;

use setpoint_engine::{Event, EventKind, ResourceName};
use setpoint_graph::ResourceId;

use super::events::members;

/// Events that are kept at most.
const MOST_EVENTS: usize = 4096;

/// Bytes of text in them that are kept at most.
const MOST_TEXT: usize = 8 << 20;

/// The newest events, in order.
#[derive(Default)]
pub(super) struct History {
    events: VecDeque<Arc<Event>>,
    text: usize,
    newest: u64,
}

impl History {
    pub(super) fn push(&mut self, event: Arc<Event>) {
        self.newest = event.seq;
        self.text += text_of(&event);
        self.events.push_back(event);
        while self.events.len() > MOST_EVENTS || (self.text > MOST_TEXT && self.events.len() > 1) {
            if let Some(oldest) = self.events.pop_front() {
                self.text -= text_of(&oldest);
            }
        }
    }

    /// Number of the newest; 0 before the first.
    pub(super) fn newest(&self) -> u64 {
        self.newest
    }

    /// The resources that they are of, also as part of others.
    pub(super) fn identities(&self) -> impl Iterator<Item = ResourceId> {
        let members = |event: &Arc<Event>| members(event).iter().map(ResourceName::id).collect::<Vec<_>>();
        let events = self.events.iter();
        events.flat_map(move |event| members(event).into_iter().chain(event.identity()))
    }

    /// The first event after the one of this number, or the gap that is in its place.
    pub(super) fn after(&self, seq: u64) -> Option<Arc<Event>> {
        let at = self.events.partition_point(|event| event.seq <= seq);
        let next = self.events.get(at)?;
        let first = next.seq - covers(next) + 1;
        if first <= seq + 1 {
            return Some(next.clone());
        }
        Some(Arc::new(Event {
            what: EventKind::Gap {
                lost: first - 1 - seq,
            },
            time: next.time,
            seq: first - 1,
            kind: None,
            name: None,
            group: None,
        }))
    }
}

/// How many events it is in the place of, itself included.
fn covers(event: &Event) -> u64 {
    match event.what {
        EventKind::Gap { lost } => lost.max(1),
        _ => 1,
    }
}

/// How much text an event holds, about: what makes some of them large.
fn text_of(event: &Event) -> usize {
    let large = match &event.what {
        EventKind::Drift { is, want, diff, .. } => {
            is.len() + want.len() + diff.as_ref().map_or(0, |diff| diff.len())
        }
        EventKind::Repaired { is, want, .. }
        | EventKind::NotRepaired { is, want, .. }
        | EventKind::Conflict { is, want, .. } => is.len() + want.len(),
        EventKind::GraphRejected { diagnostics } => diagnostics.len(),
        EventKind::RunEnded { error, .. } => error.as_ref().map_or(0, |error| error.len()),
        EventKind::BackingOff { error, .. } | EventKind::GaveUp { error } => error.len(),
        EventKind::Log { message, .. } => message.len(),
        EventKind::Stopping { waiting_for, .. } => waiting_for.iter().map(String::len).sum(),
        _ => 0,
    };
    size_of::<Event>() + large
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use setpoint_engine::Level;

    use super::*;

    fn event(seq: u64, what: EventKind) -> Arc<Event> {
        Arc::new(Event {
            what,
            time: Duration::ZERO,
            seq,
            kind: None,
            name: None,
            group: None,
        })
    }

    #[test]
    fn whoever_comes_late_finds_a_gap_of_the_right_size() {
        let mut history = History::default();
        assert!(history.after(0).is_none());
        for seq in 1..=MOST_EVENTS as u64 + 10 {
            history.push(event(seq, EventKind::Watching));
        }
        let gap = history.after(3).unwrap();
        assert_eq!((gap.seq, &gap.what), (10, &EventKind::Gap { lost: 7 }));
        assert_eq!(history.after(gap.seq).unwrap().seq, 11);
        assert_eq!(history.after(history.newest() - 1).unwrap().seq, history.newest());
        assert!(history.after(history.newest()).is_none());
        // A gap of the engine's own is handed on as it is, also to who is amid it.
        let newest = history.newest();
        history.push(event(newest + 5, EventKind::Gap { lost: 5 }));
        assert_eq!(history.after(newest).unwrap().what, EventKind::Gap { lost: 5 });
        assert_eq!(history.after(newest + 2).unwrap().seq, newest + 5);
    }

    #[test]
    fn large_events_push_others_out() {
        let mut history = History::default();
        for seq in 1..=20 {
            let message = "x".repeat(1 << 20);
            let level = Level::Info;
            history.push(event(seq, EventKind::Log { level, message }));
        }
        assert!(history.events.len() < 9, "{}", history.events.len());
        assert!(history.text <= MOST_TEXT);
        assert_eq!(history.newest(), 20);
    }
}
