//! What people see of a run, on standard error.

use std::time::{Duration, Instant};

use setpoint_engine::{Event, EventKind, EventStream};
use setpoint_programs::Assembly;
use setpoint_programs::report::{Importance, Said, headed};
use tokio::sync::mpsc::Receiver;

use super::journal::{About, Journal, Subjects};
use super::json::next;
use super::lines::Narrator;
use super::progress::Progress;
use super::recap::{Counts, Recap, duration_text};
use super::{Verbosity, ViewOptions, Written};
use crate::output::{End, Output, Prefix, Stood, ToView, lines};

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
    /// How many events were missed: what is counted from events is wrong then, and is not told.
    missed: u64,
    /// How many were when the machine came to rest last.
    missed_at_rest: u64,
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
            missed: 0,
            missed_at_rest: 0,
        }
    }

    fn take(&mut self, event: &Event, text: &mut String) {
        self.progress.take(event);
        if let EventKind::Gap { lost } = event.what {
            self.missed += lost;
        }
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
        let importance = Importance::Notice;
        if self.missed > 0 {
            let is_news = std::mem::replace(&mut self.missed_at_rest, self.missed) != self.missed;
            let text = "converged, watching; `setpoint status` shows the resources".to_owned();
            return is_news.then_some(Said { importance, text });
        }
        let standing = counts.at_rest();
        if self.told.replace(standing) == Some(standing) {
            return None;
        }
        let text = match standing.not_unchanged() {
            0 => format!("{} ok, watching", resources(standing.unchanged)),
            _ => format!("watching: {}", standing.text()),
        };
        Some(Said { importance, text })
    }

    /// A warning about pending notifications that are lost with the temporary state directory.
    fn forgotten_notifications(&self) -> Option<Said> {
        if !self.options.forgets {
            return None;
        }
        let (count, names) = self.recap.pending_notifications()?;
        let what = match count {
            1 => "1 notification is".to_owned(),
            count => format!("{count} notifications are"),
        };
        let text = format!(
            "{what} forgotten with the temporary state directory: {names}; with `--state-dir DIR` the next run serves what is pending"
        );
        let importance = Importance::Warning;
        let text = headed(importance, &text);
        Some(Said { importance, text })
    }

    /// The last lines.
    fn end(&mut self, end: End) -> String {
        self.progress.clear();
        let mut said = end.said;
        // With `--json` it has seen no events, and the recap is one itself.
        if let Some(stood) = end.recap
            && !self.options.json
            && self.options.verbosity > Verbosity::Quiet
        {
            let failed = match self.recap.failed() {
                names if names.is_empty() => String::new(),
                names => format!("; failed: {names}"),
            };
            let took = duration_text(self.begun.elapsed());
            let before = stood.before;
            let text = match self.missed {
                0 => format!("{before}{} in {took}{failed}", self.recap.counts().text()),
                _ => format!(
                    "{before}{} in {took}; too much happened to count the rest",
                    uncounted(stood)
                ),
            };
            let importance = Importance::Notice;
            said.push(Said { importance, text });
            said.extend(self.forgotten_notifications());
        }
        let mut text = String::new();
        self.say(&said, &About::default(), &mut text);
        text
    }
}

/// What is told when events were missed: what the engine itself says.
fn uncounted(stood: Stood) -> String {
    match (stood.failed, stood.blocked) {
        (0, 0) => "nothing failed".to_owned(),
        (failed, 0) => format!("{failed} failed"),
        (failed, blocked) => format!("{failed} failed, {blocked} blocked"),
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
            written.note(screen.progress.write(&text));
        }
    });
    if let Some(end) = end {
        let text = screen.end(end);
        written.note(screen.progress.write(&text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(seq: u64, what: EventKind) -> Event {
        let about = match &what {
            EventKind::Gap { .. } | EventKind::Converged => None,
            _ => Some("a"),
        };
        Event {
            what,
            time: Duration::ZERO,
            seq,
            kind: about.map(|_| "noop".into()),
            name: about.map(Into::into),
            group: None,
        }
    }

    #[test]
    fn what_was_not_seen_is_not_counted() {
        let options = ViewOptions {
            json: false,
            verbosity: Verbosity::Normal,
            forgets: false,
            stays: true,
        };
        let mut screen = Screen::new(&Assembly::standard(), options, Prefix::Nothing);
        let members = Vec::new();
        let mut text = String::new();
        let added = EventKind::Added {
            reversal: false,
            members,
        };
        screen.take(&event(1, added), &mut text);
        screen.take(&event(9, EventKind::Gap { lost: 7 }), &mut text);
        screen.take(&event(10, EventKind::Converged), &mut text);
        screen.take(&event(11, EventKind::Converged), &mut text);
        let rest = "converged, watching; `setpoint status` shows the resources\n";
        assert_eq!(text.matches(rest).count(), 1, "{text}");
        for (failed, blocked, told) in [
            (0, 0, "nothing failed"),
            (2, 0, "2 failed"),
            (2, 3, "2 failed, 3 blocked"),
        ] {
            let before = "";
            let stood = Stood {
                before,
                failed,
                blocked,
            };
            let said = screen.end(End {
                said: Vec::new(),
                recap: Some(stood),
            });
            assert!(said.starts_with(told), "{said}");
            assert!(
                said.ends_with("; too much happened to count the rest\n"),
                "{said}"
            );
        }
    }
}
