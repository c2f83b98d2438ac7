//! A bar for who waits: how many of the resources that came have been looked at, and what is waited for.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use setpoint_diagnostics::visible;
use setpoint_engine::{Event, EventKind, ResourceName};
use setpoint_graph::ResourceId;

use super::lines::waiting_text;
use crate::output::write_error_stream;

/// What is over before this does not need a bar.
const SHOWN_AFTER: Duration = Duration::from_millis(500);

/// A bar on a terminal, nothing elsewhere.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    /// Resources that came and have not run yet.
    open: HashSet<ResourceId>,
    /// What is applied as part of others.
    members: HashMap<ResourceId, Vec<ResourceId>>,
    /// How many came since there were none open.
    all: usize,
    /// When the first of them came.
    since: Instant,
    /// Runs under way, the oldest first.
    running: BTreeMap<u64, (ResourceId, Instant)>,
    begun: HashMap<ResourceId, u64>,
}

impl Progress {
    pub(super) fn new(is_wanted: bool) -> Progress {
        let bar = (is_wanted && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::no_length();
            if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos} of {len} resources  {wide_msg}") {
                bar.set_style(style);
            }
            bar
        });
        Progress {
            bar,
            open: HashSet::new(),
            members: HashMap::new(),
            all: 0,
            since: Instant::now(),
            running: BTreeMap::new(),
            begun: HashMap::new(),
        }
    }

    /// Takes note of an event.
    pub(super) fn take(&mut self, event: &Event) {
        if self.bar.is_none() {
            return;
        }
        let Some(id) = event.identity() else { return };
        match &event.what {
            EventKind::Added { members, .. } => {
                if self.open.is_empty() {
                    (self.all, self.since) = (0, Instant::now());
                }
                self.all += 1 + members.len();
                let members: Vec<ResourceId> = members.iter().map(ResourceName::id).collect();
                self.open.extend(members.iter().cloned());
                self.open.insert(id.clone());
                if !members.is_empty() {
                    self.members.insert(id, members);
                }
            }
            EventKind::StartedRun { .. } => {
                self.begun.insert(id.clone(), event.seq);
                self.running.insert(event.seq, (id, Instant::now()));
            }
            EventKind::RunEnded { .. } | EventKind::Removed { .. } => {
                if let Some(begun) = self.begun.remove(&id) {
                    self.running.remove(&begun);
                }
                self.close(&id);
                if matches!(event.what, EventKind::Removed { .. }) {
                    self.members.remove(&id);
                }
            }
            EventKind::BlockedBy { .. } => self.close(&id),
            _ => {}
        }
    }

    /// A resource, and what is applied as part of it, is looked after.
    fn close(&mut self, id: &ResourceId) {
        self.open.remove(id);
        for member in self.members.get(id).into_iter().flatten() {
            self.open.remove(member);
        }
    }

    /// Whether the bar must be looked after although nothing happens.
    pub(super) fn is_open(&self) -> bool {
        self.bar.is_some() && !self.open.is_empty()
    }

    /// Writes a text above the bar, which is there while something is open.
    ///
    /// # Errors
    /// When the reader of standard error is gone, or it cannot be written.
    pub(super) fn write(&self, text: &str) -> std::io::Result<()> {
        let written = match &self.bar {
            _ if text.is_empty() => Ok(()),
            Some(bar) => bar.suspend(|| write_error_stream(text)),
            None => write_error_stream(text),
        };
        self.draw();
        written
    }

    fn draw(&self) {
        let Some(bar) = &self.bar else { return };
        if self.open.is_empty() {
            bar.finish_and_clear();
            return;
        }
        if self.since.elapsed() < SHOWN_AFTER {
            return;
        }
        // A bar that was finished begins anew with the next graph; drawing is limited to some times a second.
        if bar.is_finished() {
            bar.reset();
        }
        let names: Vec<String> = self
            .running
            .values()
            .map(|(id, _)| visible(&id.to_string()).into_owned())
            .collect();
        let oldest = self
            .running
            .values()
            .next()
            .map_or(Duration::ZERO, |(_, begun)| begun.elapsed());
        bar.set_message(waiting_text(&names, oldest));
        bar.set_length(self.all as u64);
        bar.set_position((self.all - self.open.len()) as u64);
    }

    /// Takes the bar away.
    pub(super) fn clear(&mut self) {
        self.open.clear();
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
