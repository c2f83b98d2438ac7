//! Events as JSON on standard output, one object a line, from the one that says which schema they follow to the one that says how it
//! ended.

use std::io::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;
use setpoint_engine::{Event, EventKind, EventStream};
use setpoint_programs::failure::system_text;
use tokio::sync::mpsc::Receiver;

use super::Written;
use super::recap::{Counts, Recap};
use crate::output::Output;

/// Version of the lines' schema. It rises when something that a reader may rely on changes its meaning or goes away.
pub(crate) const SCHEMA: u32 = 2;

/// What the thread that writes JSON is told.
pub(crate) enum ToJson {
    /// Write the events of this engine.
    Follow(EventStream),
    /// Something is wrong with the program: rows as `check --json` has them.
    Diagnostics(Json),
    /// Nothing follows but the events that are still on their way, and then the end.
    End {
        /// Why.
        reason: Reason,
        /// The exit code.
        exit_code: u8,
    },
}

/// Why a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Reason {
    /// The machine is as it shall be, or cannot be made so, and that was all that was wanted.
    Converged,
    /// A signal asked for it.
    Signal,
    /// It ran as long as it was allowed to.
    MaxRuntime,
    /// An `exit` resource asked for it.
    Requested,
    /// The program is wrong.
    ProgramWrong,
    /// It could not begin or not go on; standard error says why.
    Failed,
}

/// Lines that are not an engine's.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "lowercase")]
pub(crate) enum OwnEvent {
    /// The first line.
    Started {
        /// Version of the schema of all lines.
        schema: u32,
        /// The program that writes them.
        program: &'static str,
        /// Its version.
        version: &'static str,
    },
    /// Something is wrong with the program.
    Diagnostic {
        /// As `check --json` has it.
        #[schemars(with = "serde_json::Map<String, Json>")]
        diagnostic: Json,
    },
    /// The last line.
    Ended {
        /// Why.
        reason: Reason,
        /// The exit code of the process, unless this line cannot be written.
        exit_code: u8,
        /// How the resources stood.
        resources: Counts,
    },
}

/// A line that is not an engine's.
#[derive(Serialize, JsonSchema)]
pub(super) struct Line<'a> {
    #[serde(flatten)]
    event: &'a OwnEvent,
    /// When, in seconds since 1970 UTC.
    time: f64,
    /// Rises by one with each line.
    seq: u64,
}

/// The lines, numbered through.
#[derive(Default)]
struct Lines {
    text: String,
    /// Number of the next line.
    next: u64,
    /// Time of the newest line, since 1970 UTC.
    newest: Duration,
    recap: Recap,
}

impl Lines {
    fn own(&mut self, event: &OwnEvent) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let line = Line {
            event,
            time: (self.time_of_line(now).as_secs_f64() * 1e6).round() / 1e6,
            seq: self.next,
        };
        // Its maps have texts for keys, so it can be written.
        if let Ok(line) = serde_json::to_string(&line) {
            self.push(&line);
        }
    }

    fn engine(&mut self, event: &Event) {
        self.recap.take(event);
        // A gap is the place of many lines.
        if let EventKind::Gap { lost } = event.what {
            self.next += lost.saturating_sub(1);
        }
        let numbered = Event {
            seq: self.next,
            time: self.time_of_line(event.time),
            ..event.clone()
        };
        self.push(&numbered.to_json());
    }

    /// The time that a line carries: the engine tells the time once for all events of a step, so a line of ours that was written
    /// meanwhile would be newer than the next event. A clock that is set back is followed.
    fn time_of_line(&mut self, time: Duration) -> Duration {
        let is_of_same_moment = time < self.newest && self.newest - time < Duration::from_secs(1);
        if !is_of_same_moment {
            self.newest = time;
        }
        self.newest
    }

    fn push(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
        self.next += 1;
    }
}

/// Writes what it is told, until the end. What cannot be written is told once.
pub(super) fn show(mut told: Receiver<ToJson>, output: &Output, written: &Written) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().build() else {
        return written.fail();
    };
    let mut lines = Lines::default();
    let mut writer = Writer {
        output,
        written,
        is_open: true,
    };
    lines.own(&OwnEvent::Started {
        schema: SCHEMA,
        program: "setpoint",
        version: env!("CARGO_PKG_VERSION"),
    });
    writer.write(&mut lines.text);
    let mut events: Option<EventStream> = None;
    let mut end = None;
    runtime.block_on(async {
        while end.is_none() || events.is_some() {
            tokio::select! {
                message = told.recv(), if end.is_none() => match message {
                    Some(ToJson::Follow(stream)) => events = Some(stream),
                    Some(ToJson::Diagnostics(rows)) => {
                        for diagnostic in rows.as_array().into_iter().flatten().cloned() {
                            lines.own(&OwnEvent::Diagnostic { diagnostic });
                        }
                    }
                    Some(ToJson::End { reason, exit_code }) => end = Some((reason, exit_code)),
                    None => end = Some((Reason::Failed, crate::exit_code::WRONG)),
                },
                event = next(&mut events) => match event {
                    None => events = None,
                    Some(event) => {
                        lines.engine(&event);
                        // Whatever is there already goes out in one write.
                        while lines.text.len() < 1 << 16
                            && let Some(event) = events.as_mut().and_then(EventStream::try_next)
                        {
                            lines.engine(&event);
                        }
                    }
                },
            }
            writer.write(&mut lines.text);
        }
    });
    if let Some((reason, exit_code)) = end {
        let resources = lines.recap.counts();
        lines.own(&OwnEvent::Ended {
            reason,
            exit_code,
            resources,
        });
        writer.write(&mut lines.text);
    }
}

/// The next event of a stream that may not be there yet.
pub(super) async fn next(events: &mut Option<EventStream>) -> Option<std::sync::Arc<Event>> {
    match events {
        Some(events) => events.next().await,
        None => std::future::pending().await,
    }
}

struct Writer<'a> {
    output: &'a Output,
    written: &'a Written,
    is_open: bool,
}

impl Writer<'_> {
    fn write(&mut self, text: &mut String) {
        if text.is_empty() {
            return;
        }
        let text = std::mem::take(text);
        if !self.is_open {
            return;
        }
        let mut stdout = std::io::stdout().lock();
        match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
            Ok(()) => self.written.count(),
            Err(error) => {
                self.is_open = false;
                self.written.fail();
                if error.kind() == std::io::ErrorKind::BrokenPipe {
                    self.output.warning(
                        "the reader of standard output is gone, so further events are lost; the run continues",
                    );
                } else {
                    let why = system_text(&error);
                    self.output
                        .error(format!("the events cannot be written to standard output: {why}"));
                }
            }
        }
    }
}
