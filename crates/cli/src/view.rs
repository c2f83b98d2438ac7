//! What a person or a program sees of a run: lines made of the engine's events.

use std::collections::HashSet;
use std::io::{IsTerminal, Write};
use std::thread::JoinHandle;

use indicatif::{ProgressBar, ProgressStyle};
use setpoint_engine::{Engine, Event, EventStream, RunSummary, What};
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
    while let Some(event) = events.blocking_next() {
        let mut text = String::new();
        let mut next = Some(event);
        while let Some(event) = next {
            progress.take(&event);
            if let Some(line) = line(&event) {
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
            let bar = ProgressBar::new(0);
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
            What::Added => {
                self.all = if self.open.is_empty() { 1 } else { self.all + 1 };
                self.open.insert(id);
            }
            What::RunEnded { .. } | What::Removed | What::BlockedBy { .. } => {
                self.open.remove(&id);
            }
            _ => {}
        }
    }

    /// Says a text above the bar, which is there while something is open.
    fn show(&self, text: &str) {
        let talk = || {
            if !text.is_empty() {
                output::talk(text);
            }
        };
        let Some(bar) = &self.bar else { return talk() };
        bar.suspend(talk);
        if self.open.is_empty() {
            bar.finish_and_clear();
        } else {
            bar.set_length(self.all as u64);
            bar.set_position((self.all - self.open.len()) as u64);
        }
    }
}

/// What a person wants to know of an event; none for the many that say that all is well.
fn line(event: &Event) -> Option<String> {
    let who = event.identity().map(|id| id.to_string()).unwrap_or_default();
    Some(match &event.what {
        What::GraphAccepted {
            added,
            removed,
            changed,
            kept,
        } => {
            format!("graph: {added} new, {changed} changed, {removed} gone, {kept} as before")
        }
        What::Drift {
            field,
            is,
            want,
            repaired,
        } => {
            let verb = if *repaired { "repaired" } else { "would repair" };
            format!("{who}: {verb} {field}: {is} -> {want}")
        }
        What::RunEnded {
            result: RunSummary::Failed,
            error,
            ..
        } => {
            format!("{who}: failed to {}", error.as_deref().unwrap_or("run"))
        }
        What::BackingOff { tries_left, .. } => match tries_left {
            Some(left) => format!("{who}: will be tried again, {left} more after that"),
            None => format!("{who}: will be tried again"),
        },
        What::FailedForGood { error } => format!("{who}: failed for good: {error}"),
        What::BlockedBy { by } => format!("{who}: waits, because {by} failed"),
        What::Fighting { field, is, want } => {
            format!(
                "{who}: something keeps changing {field} to {is}, and it shall be {want}; repairs are spaced out"
            )
        }
        What::Converged => "converged".to_owned(),
        What::Stopping { stage, waiting_for } => match waiting_for.as_slice() {
            [] => "stopping".to_owned(),
            waiting => {
                let how = ["waiting for", "cancelling", "killing"][usize::from((*stage).clamp(1, 3)) - 1];
                format!("stopping: {how} {}", waiting.join(", "))
            }
        },
        What::Log { level, message } if &**level == "display" => format!("{who}: {message}"),
        What::Log { level, message } if matches!(&**level, "warning" | "error") => {
            format!("{who}: {level}: {message}")
        }
        What::Paused => "paused".to_owned(),
        What::Resumed => "resumed".to_owned(),
        What::Gap { lost } => format!("({lost} events are not shown)"),
        What::GraphSwapped { .. }
        | What::GraphRejected { .. }
        | What::Added
        | What::Watching
        | What::Dirty { .. }
        | What::StartedRun { .. }
        | What::Finishing
        | What::RunEnded { .. }
        | What::Sent { .. }
        | What::Received { .. }
        | What::RefreshPending { .. }
        | What::RefreshConsumed { .. }
        | What::LimitedUntil { .. }
        | What::WaitingForSemaphore { .. }
        | What::Removed
        | What::Unconverged
        | What::Log { .. } => return None,
    })
}
