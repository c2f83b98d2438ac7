//! What a person or a program sees of a run: lines made of the engine's events.

use std::collections::{HashMap, HashSet};
use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::thread::JoinHandle;

use indicatif::{ProgressBar, ProgressStyle};
use setpoint_engine::{Engine, Event, EventKind, EventStream, RunSummary};
use setpoint_graph::ResourceId;

use crate::output;

/// A consumer of events on a thread of its own.
pub(crate) struct View(Option<JoinHandle<()>>);

impl View {
    /// Shows what happens from now on: as JSON on standard output, or as lines for people on standard error.
    pub(crate) fn start(engine: &Engine, json: bool) -> View {
        let events = engine.events();
        let show = move || if json { print_json(events) } else { talk(events) };
        View(
            std::thread::Builder::new()
                .name("view".to_owned())
                .spawn(show)
                .ok(),
        )
    }

    /// Waits until everything is shown. The engine must have ended.
    pub(crate) fn finish(mut self) {
        if let Some(thread) = self.0.take() {
            let _ = thread.join();
        }
    }
}

fn print_json(mut events: EventStream) {
    let mut stdout = std::io::stdout().lock();
    let mut lines = String::new();
    while let Some(event) = events.blocking_next() {
        lines.clear();
        let mut next = Some(event);
        // Whatever is there already goes out in one write.
        while let Some(event) = next {
            lines.push_str(&event.to_json());
            lines.push('\n');
            next = if lines.len() < 1 << 16 {
                events.try_next()
            } else {
                None
            };
        }
        if stdout
            .write_all(lines.as_bytes())
            .and_then(|()| stdout.flush())
            .is_err()
        {
            // Nobody reads any more; the machine is kept right all the same.
            return;
        }
    }
}

fn talk(mut events: EventStream) {
    let mut progress = Progress::new();
    let mut runs = Runs::default();
    while let Some(event) = events.blocking_next() {
        let mut text = String::new();
        let mut next = Some(event);
        while let Some(event) = next {
            progress.take(&event);
            for line in runs.take(&event).into_iter().chain(line(&event)) {
                text.push_str(&line);
                text.push('\n');
            }
            next = if text.len() < 1 << 16 {
                events.try_next()
            } else {
                None
            };
        }
        progress.show(&text);
    }
}

/// What runs under way have found: told when they end, because only then is it known whether it was repaired.
#[derive(Default)]
struct Runs(HashMap<ResourceId, Vec<Found>>);

struct Found {
    field: Arc<str>,
    is: Arc<str>,
    want: Arc<str>,
    may_repair: bool,
}

impl Runs {
    fn take(&mut self, event: &Event) -> Vec<String> {
        let Some(id) = event.identity() else {
            return Vec::new();
        };
        match &event.what {
            EventKind::Drift { field, is, want } => {
                let (field, is, want) = (field.clone(), is.clone(), want.clone());
                let found = Found {
                    field,
                    is,
                    want,
                    may_repair: false,
                };
                self.0.entry(id).or_default().push(found);
                Vec::new()
            }
            EventKind::Repairing { .. } => {
                if let Some(found) = self.0.get_mut(&id).and_then(|found| found.last_mut()) {
                    found.may_repair = true;
                }
                Vec::new()
            }
            EventKind::RunEnded { result, .. } => {
                let found = self.0.remove(&id).unwrap_or_default();
                found
                    .iter()
                    .filter_map(|found| found.line(&id, *result))
                    .collect()
            }
            _ => Vec::new(),
        }
    }
}

impl Found {
    fn line(&self, id: &ResourceId, result: RunSummary) -> Option<String> {
        let Found {
            field,
            is,
            want,
            may_repair,
        } = self;
        let failed = result == RunSummary::Failed;
        Some(match (&*id.kind, &**field) {
            // What a message says is shown as such.
            ("print", _) => return None,
            ("exec", "run") if failed => return None,
            ("exec", "run") if *may_repair => format!("{id}: ran {want}"),
            ("exec", "run") => format!("{id}: would run {want}"),
            _ if failed => format!("{id}: could not repair {field}: {is} -> {want}"),
            _ if *may_repair => format!("{id}: repaired {field}: {is} -> {want}"),
            _ => format!("{id}: would repair {field}: {is} -> {want}"),
        })
    }
}

/// How many of the resources that came have been looked at: a bar on a terminal, nothing elsewhere.
struct Progress {
    bar: Option<ProgressBar>,
    /// Resources that came and have not run yet.
    open: HashSet<ResourceId>,
    /// How many came since there were none open.
    all: usize,
}

impl Progress {
    fn new() -> Progress {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::no_length();
            if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos} of {len} resources") {
                bar.set_style(style);
            }
            bar
        });
        Progress {
            bar,
            open: HashSet::new(),
            all: 0,
        }
    }

    fn take(&mut self, event: &Event) {
        if self.bar.is_none() {
            return;
        }
        let Some(id) = event.identity() else { return };
        match event.what {
            EventKind::Added => {
                self.all = if self.open.is_empty() { 1 } else { self.all + 1 };
                self.open.insert(id);
            }
            EventKind::RunEnded { .. } | EventKind::Removed | EventKind::BlockedBy { .. } => {
                self.open.remove(&id);
            }
            _ => {}
        }
    }

    /// Says a text above the bar, which is there while something is open.
    fn show(&self, text: &str) {
        match &self.bar {
            Some(bar) if !text.is_empty() => bar.suspend(|| output::talk(text)),
            None if !text.is_empty() => output::talk(text),
            _ => {}
        }
        let Some(bar) = &self.bar else { return };
        if self.open.is_empty() {
            bar.finish_and_clear();
        } else {
            // A bar that was finished begins anew with the next graph; drawing is limited to some times a second.
            if bar.is_finished() {
                bar.reset();
            }
            bar.set_length(self.all as u64);
            bar.set_position((self.all - self.open.len()) as u64);
        }
    }
}

/// What a person wants to know of an event; none for the many that say that all is well.
fn line(event: &Event) -> Option<String> {
    let who = event.identity().map(|id| id.to_string()).unwrap_or_default();
    Some(match &event.what {
        EventKind::GraphAccepted {
            added,
            removed,
            changed,
            kept,
        } => {
            format!("graph: {added} new, {changed} changed, {removed} gone, {kept} as before")
        }
        EventKind::BackingOff {
            error, tries_left, ..
        } => match tries_left {
            Some(left) => {
                format!("{who}: failed to {error}; will be tried again, and {left} times after that")
            }
            None => format!("{who}: failed to {error}; will be tried again"),
        },
        EventKind::FailedForGood { error } => format!("{who}: failed for good to {error}"),
        EventKind::BlockedBy { by } => format!("{who}: waits, because {by} failed"),
        EventKind::Fighting { field, is, want } => {
            format!(
                "{who}: something keeps changing {field} to {is}, and it shall be {want}; repairs are spaced out"
            )
        }
        EventKind::Converged => "converged".to_owned(),
        EventKind::Stopping { stage, waiting_for } => match waiting_for.as_slice() {
            [] => "stopping".to_owned(),
            waiting => {
                let how = ["waiting for", "cancelling", "killing"][usize::from((*stage).clamp(1, 3)) - 1];
                format!("stopping: {how} {}", waiting.join(", "))
            }
        },
        EventKind::Log { level, message } if &**level == "display" => format!("{who}: {message}"),
        EventKind::Log { level, message } if matches!(&**level, "warning" | "error") => {
            format!("{who}: {level}: {message}")
        }
        EventKind::Paused => "paused".to_owned(),
        EventKind::Resumed => "resumed".to_owned(),
        EventKind::Gap { lost } => format!("({lost} events are not shown)"),
        EventKind::Drift { .. }
        | EventKind::Repairing { .. }
        | EventKind::Repaired { .. }
        | EventKind::NotRepaired { .. }
        | EventKind::Tick
        | EventKind::GraphSwapped { .. }
        | EventKind::GraphRejected { .. }
        | EventKind::Added
        | EventKind::Watching
        | EventKind::Dirty { .. }
        | EventKind::StartedRun { .. }
        | EventKind::Finishing
        | EventKind::RunEnded { .. }
        | EventKind::Sent { .. }
        | EventKind::Received { .. }
        | EventKind::RefreshPending { .. }
        | EventKind::RefreshConsumed { .. }
        | EventKind::LimitedUntil { .. }
        | EventKind::WaitingForSemaphore { .. }
        | EventKind::Removed
        | EventKind::Unconverged
        | EventKind::Log { .. } => return None,
    })
}
