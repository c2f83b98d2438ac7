//! What people see of a run, on standard error.

use std::time::{Duration, Instant};

use setpoint_engine::{Event, EventKind, EventStream};
use tokio::sync::mpsc::Receiver;

use super::journal::{About, Journal, Subjects};
use super::json::next;
use super::lines::Narrator;
use super::progress::Progress;
use super::recap::{Counts, Recap, duration_text};
use super::{Verbosity, ViewOptions, Written};
use crate::Assembly;
use crate::output::{End, Importance, Output, Prefix, Said, ToView, headed, lines};

/// Makes text of events and messages.
pub(super) struct Screen {
    narrator: Narrator,
    progress: Progress,
    recap: Recap,
    options: ViewOptions,
    prefix: Prefix,
    /// The system's log, if that is where the lines go.
    journal: Option<Journal>,
    begun: Instant,
    about: Subjects,
    /// The counts that were told last, when the machine came to rest.
    told: Option<Counts>,
}

impl Screen {
    pub(super) fn new(assembly: &Assembly, options: ViewOptions, prefix: Prefix) -> Screen {
        Screen {
            narrator: Narrator::new(assembly.all_kinds(), options.verbosity),
            progress: Progress::new(options.verbosity > Verbosity::Quiet),
            recap: Recap::default(),
            options,
            prefix,
            journal: (prefix == Prefix::Priority).then(Journal::open).flatten(),
            begun: Instant::now(),
            about: Subjects::default(),
            told: None,
        }
    }

    fn take(&mut self, event: &Event, text: &mut String) {
        self.progress.take(event);
        self.recap.take(event);
        let mut said = self.narrator.take(event);
        if matches!(event.what, EventKind::Converged) {
            said.extend(self.at_rest());
        }
        let about = self.about.of(event);
        self.say(&said, &about, text);
    }

    /// Tells lines to the system's log, or adds them to the text that is to be written.
    fn say(&self, said: &[Said], about: &About, text: &mut String) {
        for said in said {
            let is_logged = self
                .journal
                .as_ref()
                .is_some_and(|journal| journal.log(said, about));
            if !is_logged {
                text.push_str(&lines(std::slice::from_ref(said), self.prefix));
            }
        }
    }

    /// What a run that stays says when nothing is left to do: once, and again when it differs.
    fn at_rest(&mut self) -> Option<Said> {
        let counts = self.recap.counts();
        if !self.options.stays || self.options.verbosity == Verbosity::Quiet {
            return None;
        }
        self.recap.begin_anew();
        // Whatever was repaired is right now.
        let standing = Counts {
            right: counts.right + counts.repaired,
            repaired: 0,
            ..counts
        };
        if self.told.replace(standing) == Some(standing) {
            return None;
        }
        let text = match standing.all() - standing.right {
            0 => format!("right: {}, watching", resources(standing.right)),
            _ => format!("watching: {}", standing.text()),
        };
        let importance = Importance::Notice;
        Some(Said { importance, text })
    }

    /// The last lines.
    fn end(&mut self, end: End) -> String {
        self.progress.clear();
        let mut said = end.said;
        // With `--json` it has seen no events, and the recap is one itself.
        if let Some(before) = end.recap
            && !self.options.json
            && self.options.verbosity > Verbosity::Quiet
        {
            let counts = self.recap.counts();
            let failed = match self.recap.failed() {
                names if names.is_empty() => String::new(),
                names => format!("; failed: {names}"),
            };
            let took = duration_text(self.begun.elapsed());
            said.push(Said {
                importance: Importance::Notice,
                text: format!("{before}{} in {took}{failed}", counts.text()),
            });
        }
        let mut text = String::new();
        self.say(&said, &About::default(), &mut text);
        text
    }
}

fn resources(count: usize) -> String {
    match count {
        1 => "1 resource".to_owned(),
        count => format!("{count} resources"),
    }
}

/// Writes what it is told, until the end.
pub(super) fn show(mut told: Receiver<ToView>, output: &Output, mut screen: Screen, written: &Written) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
    else {
        return written.fail();
    };
    let mut events: Option<EventStream> = None;
    let mut end = None;
    runtime.block_on(async {
        while end.is_none() || events.is_some() {
            let mut text = String::new();
            tokio::select! {
                message = told.recv(), if end.is_none() => match message {
                    Some(ToView::Say(said)) => screen.say(&said, &About::default(), &mut text),
                    Some(ToView::Follow(stream)) => events = Some(stream),
                    Some(ToView::End(last)) => end = Some(last),
                    None => end = Some(End { said: Vec::new(), recap: None }),
                },
                event = next(&mut events) => match event {
                    None => events = None,
                    Some(event) => {
                        screen.take(&event, &mut text);
                        // Whatever is there already goes out in one write.
                        while text.len() < 1 << 16
                            && let Some(event) = events.as_mut().and_then(EventStream::try_next)
                        {
                            screen.take(&event, &mut text);
                        }
                    }
                },
                () = tokio::time::sleep(Duration::from_millis(250)), if screen.progress.is_open() => {}
            }
            let lost = output.take_lost();
            if lost > 0 {
                let importance = Importance::Warning;
                let said = Said {
                    importance,
                    text: headed(
                        importance,
                        &format!("{lost} messages found no room and are not shown"),
                    ),
                };
                text.push_str(&lines(&[said], screen.prefix));
            }
            screen.progress.write(&text);
            written.count();
        }
    });
    if let Some(end) = end {
        let text = screen.end(end);
        screen.progress.write(&text);
        written.count();
    }
}
