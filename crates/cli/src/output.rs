//! Printing: standard output is what was asked for, standard error is what is said beside it. A closed pipe ends quietly.
//!
//! Commands are given an [`Output`] and print through nothing else. While `run` is at work its [view](crate::view) writes standard
//! error on a thread of its own, and everybody else only queues there: a pipe that nobody empties, or a terminal that is held, stops
//! that thread and nothing else.

mod reports;

use std::io::{BufWriter, IsTerminal, Write};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anstream::AutoStream;
use anstyle::Style;
use setpoint_diagnostics::{Diagnostics, RenderStyle, SourceMap};
use setpoint_engine::EventStream;
use setpoint_host::sync::Mutex;
use setpoint_programs::failure::Failure;
use setpoint_programs::report::{Importance, Report, Reporter, Said};
use tokio::sync::mpsc::Sender;

use crate::view::ToJson;
use reports::reports;

/// The end of a run, as people are told of it.
#[derive(Debug)]
pub(crate) struct End {
    /// Lines of their own.
    pub(crate) said: Vec<Said>,
    /// What is known of how the resources stand; none if that is not told.
    pub(crate) recap: Option<Stood>,
}

/// How the resources stood in the end, as far as the engine says it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stood {
    /// What goes before it: `stopped`.
    pub(crate) before: &'static str,
    /// How many failed.
    pub(crate) failed: usize,
    /// How many could not be looked at because of those.
    pub(crate) blocked: usize,
}

/// What a view is told beside events.
#[derive(Debug)]
pub(crate) enum ToView {
    /// To be written as soon as possible, in one piece.
    Say(Vec<Said>),
    /// Show what this engine does.
    Follow(EventStream),
    /// Nothing follows but the events that are still on their way, and then these lines.
    End(End),
}

/// Where a command prints. Clones share everything. It is a [`Reporter`] that also prints what was asked for.
#[derive(Clone)]
pub(crate) struct Output {
    reporter: Reporter,
    errors: Arc<ErrorStream>,
}

impl Default for Output {
    fn default() -> Output {
        let errors = Arc::new(ErrorStream::default());
        Output {
            reporter: Reporter::new(errors.clone()),
            errors,
        }
    }
}

impl Deref for Output {
    type Target = Reporter;

    fn deref(&self) -> &Reporter {
        &self.reporter
    }
}

impl Output {
    /// Prints what was asked for.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn print(&self, text: &str) -> Result<(), Failure> {
        let mut stdout = std::io::stdout().lock();
        stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.flush())
            .map_err(|error| Failure::io("write to standard output", &error))
    }

    /// Prints what was asked for, with colours where they are wanted.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn print_styled(&self, text: &str) -> Result<(), Failure> {
        let choice = AutoStream::choice(&std::io::stdout());
        let mut wanted = AutoStream::new(Vec::with_capacity(text.len()), choice);
        let _ = wanted.write_all(text.as_bytes());
        self.print(&String::from_utf8_lossy(&wanted.into_inner()))
    }

    /// Prints what a function writes, as it comes.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn print_written(
        &self,
        write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
    ) -> Result<(), Failure> {
        let mut stdout = BufWriter::new(std::io::stdout().lock());
        write(&mut stdout)
            .and_then(|()| stdout.flush())
            .map_err(|error| Failure::io("write to standard output", &error))
    }

    /// From here on this view shows what is reported; without one it is written to standard error at once.
    pub(crate) fn set_view(&self, view: Option<ViewQueues>) {
        *self.errors.view.lock() = view;
    }

    /// How many messages found no room in the view's queue since this was asked last.
    pub(crate) fn take_lost(&self) -> u64 {
        self.errors.lost.swap(0, Ordering::Relaxed)
    }
}

/// Where a view takes what is reported.
pub(crate) struct ViewQueues {
    /// For people.
    pub(crate) people: Sender<ToView>,
    /// For programs, if the events are printed as JSON.
    pub(crate) json: Option<Sender<ToJson>>,
}

/// Standard error: written at once, or by the view while there is one.
#[derive(Default)]
struct ErrorStream {
    view: Mutex<Option<ViewQueues>>,
    /// Messages that found no room in the view's queue.
    lost: AtomicU64,
}

impl Report for ErrorStream {
    fn say(&self, said: Vec<Said>) {
        let view = self.view.lock();
        match &*view {
            Some(view) => {
                if view.people.try_send(ToView::Say(said)).is_err() {
                    self.lost.fetch_add(1, Ordering::Relaxed);
                }
            }
            // There is nowhere else to report that standard error is closed.
            None => drop(write_error_stream(&lines(&said, Prefix::of_error_stream()))),
        }
    }

    fn diagnostics(&self, diagnostics: &Diagnostics, shown: &SourceMap) {
        let all = reports(diagnostics, shown, terminal_style());
        if !all.is_empty() {
            self.say(all);
        }
        if let Some(ViewQueues { json: Some(json), .. }) = &*self.view.lock() {
            let rows = setpoint_graph::json::diagnostics_json(diagnostics, shown);
            if json.try_send(ToJson::Diagnostics(rows)).is_err() {
                self.lost.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// What stands before each line on standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prefix {
    Nothing,
    /// `<N>`, the priority, which the system's log takes off again.
    Priority,
    /// The time of day, for a terminal.
    Time,
    /// Date, time and zone, for a file.
    Date,
}

impl Prefix {
    /// What suits the place where standard error leads, for something that is over soon.
    pub(crate) fn of_error_stream() -> Prefix {
        if is_journal() {
            Prefix::Priority
        } else {
            Prefix::Nothing
        }
    }

    /// The same for something that stays, whose lines come at any time.
    pub(crate) fn of_staying() -> Prefix {
        if is_journal() {
            Prefix::Priority
        } else if std::io::stderr().is_terminal() {
            Prefix::Time
        } else {
            Prefix::Date
        }
    }

    fn text(self, importance: Importance) -> String {
        let now = |format: &str| jiff::Zoned::now().strftime(format).to_string();
        match self {
            Prefix::Nothing => String::new(),
            Prefix::Priority => format!("<{}>", importance as u8),
            Prefix::Time => {
                let dim = Style::new().dimmed();
                format!("{dim}{}{dim:#} ", now("%H:%M:%S"))
            }
            Prefix::Date => now("%Y-%m-%dT%H:%M:%S%:z "),
        }
    }
}

/// Whether standard error is the system's log: it says so by naming the device and inode of what it made.
fn is_journal() -> bool {
    let Some(stream) = std::env::var("JOURNAL_STREAM").ok() else {
        return false;
    };
    rustix::fs::fstat(std::io::stderr())
        .is_ok_and(|stat| stream == format!("{}:{}", stat.st_dev, stat.st_ino))
}

/// The lines as they are written, each with its prefix.
pub(crate) fn lines(said: &[Said], prefix: Prefix) -> String {
    let mut text = String::new();
    for said in said {
        let mut before = prefix.text(said.importance);
        for line in said.text.split('\n') {
            // In the log an empty line is an entry of its own.
            if line.is_empty() && prefix != Prefix::Nothing {
                continue;
            }
            text.push_str(&before);
            text.push_str(line);
            text.push('\n');
            if prefix == Prefix::Time {
                // One look is enough for what came at one time.
                before = " ".repeat("00:00:00 ".len());
            }
        }
    }
    text
}

/// Writes to standard error, in one piece: between the lines of others, ours stay together.
///
/// # Errors
/// When its reader is gone, or it cannot be written.
pub(crate) fn write_error_stream(text: &str) -> std::io::Result<()> {
    let choice = AutoStream::choice(&std::io::stderr());
    let mut wanted = AutoStream::new(Vec::with_capacity(text.len()), choice);
    let _ = wanted.write_all(text.as_bytes());
    let mut stderr = std::io::stderr().lock();
    stderr
        .write_all(&wanted.into_inner())
        .and_then(|()| stderr.flush())
}

/// How diagnostics look on standard error.
fn terminal_style() -> RenderStyle {
    let stderr = std::io::stderr();
    let is_terminal = stderr.is_terminal();
    let columns = std::env::var("COLUMNS")
        .ok()
        .and_then(|columns| columns.parse().ok());
    let measured = || {
        rustix::termios::tcgetwinsize(&stderr)
            .ok()
            .map(|size| usize::from(size.ws_col))
    };
    let width = columns
        .or_else(|| measured().filter(|_| is_terminal))
        .filter(|width| *width > 0);
    RenderStyle {
        // `anstream` takes the escapes out again where they are not wanted.
        colour: true,
        width: width.unwrap_or(RenderStyle::PLAIN.width),
        unicode: false,
    }
}
