//! Printing: standard output is what was asked for, standard error is what is said beside it. A closed pipe ends quietly.
//!
//! Commands are given an [`Output`] and print through nothing else. While `run` is at work its [view](crate::view) writes standard
//! error on a thread of its own, and everybody else only queues there: a pipe that nobody empties, or a terminal that is held, stops
//! that thread and nothing else.

mod reports;

use std::io::{BufWriter, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anstream::AutoStream;
use anstyle::{AnsiColor, Style};
use setpoint_diagnostics::{Diagnostics, RenderStyle, SourceMap};
use setpoint_engine::EventStream;
use setpoint_host::sync::Mutex;
use tokio::sync::mpsc::Sender;

use crate::failure::Failure;
use reports::reports;

/// How much something that is said matters: the priorities of the system's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Importance {
    /// Something went wrong.
    Error = 3,
    /// Probably not as it was meant.
    Warning = 4,
    /// Something changed, or was asked for.
    Notice = 5,
    /// Worth knowing.
    Info = 6,
    /// For who searches for a mistake.
    Debug = 7,
}

/// Something to say: one or more whole lines, styled for a terminal, without the last line feed.
#[derive(Debug, Clone)]
pub(crate) struct Said {
    pub(crate) importance: Importance,
    pub(crate) text: String,
}

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

/// Where a command prints. Clones are one and the same.
#[derive(Clone, Default)]
pub(crate) struct Output(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// The view that writes standard error, while there is one.
    view: Mutex<Option<Sender<ToView>>>,
    /// What found no room in its queue.
    lost: AtomicU64,
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

    /// Says something beside. It never waits while a view is there.
    pub(crate) fn say(&self, importance: Importance, text: impl Into<String>) {
        let text = text.into();
        self.say_all(vec![Said { importance, text }]);
    }

    fn say_all(&self, said: Vec<Said>) {
        let view = self.0.view.lock();
        match &*view {
            Some(view) => {
                if view.try_send(ToView::Say(said)).is_err() {
                    self.0.lost.fetch_add(1, Ordering::Relaxed);
                }
            }
            None => write_error_stream(&lines(&said, Prefix::of_error_stream())),
        }
    }

    /// Reports why a command ends early, unless the reader of our output is gone.
    pub(crate) fn failure(&self, failure: &Failure) {
        if !failure.is_closed_pipe() {
            self.error(failure.text());
        }
    }

    /// Says what went wrong.
    pub(crate) fn error(&self, text: impl AsRef<str>) {
        self.say(Importance::Error, headed(Importance::Error, text.as_ref()));
    }

    /// Says what is probably not as it was meant.
    pub(crate) fn warning(&self, text: impl AsRef<str>) {
        self.say(Importance::Warning, headed(Importance::Warning, text.as_ref()));
    }

    /// Says what is wrong with a program, in the order in which it counts.
    pub(crate) fn diagnostics(&self, diagnostics: &Diagnostics, sources: &SourceMap) {
        let all = reports(diagnostics, sources, terminal_style());
        if !all.is_empty() {
            self.say_all(all);
        }
    }

    /// From here on this view writes what is said; without one it is written at once.
    pub(crate) fn set_view(&self, view: Option<Sender<ToView>>) {
        *self.0.view.lock() = view;
    }

    /// How many things that were said found no room in the view's queue since this was asked last.
    pub(crate) fn take_lost(&self) -> u64 {
        self.0.lost.swap(0, Ordering::Relaxed)
    }
}

/// Sorts errors before warnings, so that the first line says why a program is rejected.
pub(crate) fn errors_first(diagnostics: &Diagnostics) -> Diagnostics {
    let mut diagnostics = diagnostics.clone().into_vec();
    diagnostics.sort_by_key(|diagnostic| diagnostic.severity);
    let mut sorted = Diagnostics::new();
    sorted.extend(diagnostics);
    sorted
}

/// `error: …`, as compilers write it. The text may hold further lines.
pub(crate) fn headed(importance: Importance, text: &str) -> String {
    let (head, colour) = match importance {
        Importance::Error => ("error", AnsiColor::BrightRed),
        Importance::Warning => ("warning", AnsiColor::BrightYellow),
        Importance::Notice | Importance::Info => return text.to_owned(),
        Importance::Debug => ("debug", AnsiColor::BrightBlack),
    };
    let (head_style, bold) = (colour.on_default().bold(), Style::new().bold());
    let (first, rest) = text
        .split_once('\n')
        .map_or((text, None), |(first, rest)| (first, Some(rest)));
    let mut said = format!("{head_style}{head}{head_style:#}{bold}:{bold:#} {first}");
    if let Some(rest) = rest {
        said.push('\n');
        said.push_str(rest);
    }
    said
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

/// Writes to standard error, in one piece: between the lines of others, ours stay together. That nobody listens is no reason to
/// stop.
pub(crate) fn write_error_stream(text: &str) {
    let choice = AutoStream::choice(&std::io::stderr());
    let mut wanted = AutoStream::new(Vec::with_capacity(text.len()), choice);
    let _ = wanted.write_all(text.as_bytes());
    let mut stderr = std::io::stderr().lock();
    let _ = stderr
        .write_all(&wanted.into_inner())
        .and_then(|()| stderr.flush());
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
