//! What a person wants to know of an event, as lines.

mod run;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anstyle::Style;
use rustc_hash::{FxHashMap, FxHashSet};
use setpoint_diagnostics::{visible, visible_lines};
use setpoint_engine::{ActionWords, Event, EventKind, KindSpec, Level, RunSummary};
use setpoint_graph::ResourceId;
use setpoint_plan::shortened_hashes;
use setpoint_programs::report::{Importance, Said, headed};

use self::run::{Found, Run, Words};
use super::Verbosity;
use super::recap::{duration_text, some_of};

const NAME: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

/// Makes lines of events. It remembers what runs under way have found: that is told when they end, because only then is it known
/// whether it was repaired.
pub(crate) struct Narrator {
    actions: FxHashMap<&'static str, ActionWords>,
    verbosity: Verbosity,
    runs: FxHashMap<ResourceId, Run>,
    /// What waits for something outside this machine, as events name it.
    waiting_for_host: FxHashSet<String>,
    /// Those that left the program and are being undone.
    reversals: FxHashSet<ResourceId>,
    has_graph: bool,
    /// The process ends: what is taken down has not left the program.
    is_stopping: bool,
    /// Whether some events are kept from it, so that what a run did is told event by event and not gathered.
    is_partial: bool,
}

impl Narrator {
    /// With the kinds, which say how what they do is told.
    pub(crate) fn new(kinds: impl Iterator<Item = &'static KindSpec>, verbosity: Verbosity) -> Narrator {
        let actions = kinds.filter_map(|kind| Some((kind.schema.kind, kind.action?)));
        Narrator {
            actions: actions.collect(),
            waiting_for_host: FxHashSet::default(),
            verbosity,
            runs: FxHashMap::default(),
            reversals: FxHashSet::default(),
            has_graph: false,
            is_stopping: false,
            is_partial: false,
        }
    }

    /// One that is given some of the events only, and tells each by itself.
    pub(crate) fn of_some(kinds: impl Iterator<Item = &'static KindSpec>, verbosity: Verbosity) -> Narrator {
        Narrator {
            is_partial: true,
            ..Narrator::new(kinds, verbosity)
        }
    }

    /// The lines of an event that are wanted.
    pub(crate) fn take(&mut self, event: &Event) -> Vec<Said> {
        let mut said = self.said(event);
        if self.verbosity == Verbosity::Debug
            && said.is_empty()
            && let Some(step) = step(event)
        {
            let who = event.identity().as_ref().map(named);
            let text = who.map_or_else(|| step.clone(), |who| format!("{who}: {step}"));
            said.push(Said {
                importance: Importance::Debug,
                text: format!("{DIM}{text}{DIM:#}"),
            });
        }
        let least = match self.verbosity {
            Verbosity::Quiet => Importance::Warning,
            Verbosity::Normal => Importance::Notice,
            Verbosity::Verbose => Importance::Info,
            Verbosity::Debug => Importance::Debug,
        };
        // What the program wants shown, and what somebody asked to be told in order to search.
        let is_asked_for = matches!(
            &event.what,
            EventKind::Log {
                level: Level::Display | Level::Debug,
                ..
            }
        );
        said.retain(|said| said.importance <= least || is_asked_for);
        said
    }

    fn said(&mut self, event: &Event) -> Vec<Said> {
        // Of a run that finds everything right, most events are of no interest: no text is made of them.
        if self.verbosity < Verbosity::Verbose && self.is_detail(&event.what) {
            return Vec::new();
        }
        let id = event.identity();
        let who = id.as_ref().map(named).unwrap_or_default();
        match &event.what {
            EventKind::GraphAccepted { .. }
            | EventKind::Stopping { .. }
            | EventKind::Paused
            | EventKind::Resumed
            | EventKind::Gap { .. } => self.of_engine(event),
            EventKind::Drift { .. }
            | EventKind::Repairing { .. }
            | EventKind::Repaired { .. }
            | EventKind::NotRepaired { .. }
            | EventKind::RunEnded { .. } => match self.is_partial {
                true => self.of_step(event, id, who),
                false => self.of_run(event, id, who),
            },
            EventKind::BackingOff { .. }
            | EventKind::GaveUp { .. }
            | EventKind::Unresponsive { .. }
            | EventKind::Conflict { .. } => of_trouble(event, &who),
            EventKind::Tick
            | EventKind::Dirty { .. }
            | EventKind::WaitingForHost { .. }
            | EventKind::BlockedBy { .. }
            | EventKind::WaitingForSemaphore { .. }
            | EventKind::LimitedUntil { .. } => self.of_next_run(event, id, &who),
            EventKind::Added { .. } | EventKind::Removed { .. } | EventKind::Undone => {
                self.of_membership(event, id, &who)
            }
            EventKind::Received { .. } | EventKind::Exported { .. } | EventKind::Unexported { .. } => {
                of_exchange(event, &who)
            }
            EventKind::Log { level, message } => self.logged(&who, event.applied(), *level, message),
            EventKind::GraphSwapped { .. }
            | EventKind::GraphRejected { .. }
            | EventKind::MemberFailed { .. }
            | EventKind::Watching
            | EventKind::StartedRun { .. }
            | EventKind::Finishing
            | EventKind::Sent { .. }
            | EventKind::RefreshPending { .. }
            | EventKind::RefreshConsumed { .. }
            | EventKind::Converged
            | EventKind::Unconverged => Vec::new(),
        }
    }

    /// An event of the engine, which is about no resource.
    fn of_engine(&mut self, event: &Event) -> Vec<Said> {
        match &event.what {
            EventKind::GraphAccepted {
                added,
                removed,
                changed,
                kept,
            } => {
                let text = format!("graph: {}", graph_text(*added, *changed, *removed, *kept));
                // The first graph is what was asked for; that a later one differs is news.
                let is_first = !std::mem::replace(&mut self.has_graph, true);
                if is_first || added + changed + removed == 0 {
                    info(text)
                } else {
                    notice(text)
                }
            }
            EventKind::Stopping { stage, waiting_for } => {
                self.is_stopping = true;
                let names: Vec<String> = waiting_for
                    .iter()
                    .map(|name| visible(name).into_owned())
                    .collect();
                match (*stage, names.as_slice()) {
                    (_, []) => info("stopping".to_owned()),
                    (1, names) => notice(format!("stopping: waiting for {}", some_of(names))),
                    (2, names) => notice(format!("stopping: cancelling {}", some_of(names))),
                    (_, names) => notice(format!("stopping: killing {}", some_of(names))),
                }
            }
            EventKind::Paused => notice("paused".to_owned()),
            EventKind::Resumed => notice("resumed".to_owned()),
            EventKind::Gap { lost } => problem(
                Importance::Warning,
                format!("{lost} events came too fast to be shown"),
            ),
            _ => Vec::new(),
        }
    }

    /// An event of a run whose other events may be missing, so that it stands alone.
    fn of_step(&mut self, event: &Event, id: Option<ResourceId>, who: String) -> Vec<Said> {
        match &event.what {
            EventKind::Drift { .. } => Vec::new(),
            EventKind::Repaired {
                field,
                effect,
                later,
                is,
                want,
            } => {
                let found = Found {
                    who,
                    field: field.clone(),
                    effect: *effect,
                    later: *later,
                    is: is.clone(),
                    want: want.clone(),
                    diff: None,
                    attributes: String::new(),
                    may_repair: true,
                };
                Run::of(found).said(self.words(id.as_ref()), RunSummary::Drift)
            }
            EventKind::NotRepaired { field, .. } => {
                info(format!("{who}: could not repair {}", one_line(field)))
            }
            EventKind::RunEnded { result, .. } if *result != RunSummary::Ok => {
                let text = match result {
                    RunSummary::Ok | RunSummary::Drift => "differed from the program",
                    RunSummary::Unsure => "cannot be planned before an earlier resource has run",
                    RunSummary::Failed => "could not be brought into its state",
                    RunSummary::Waiting => "waits for something outside this machine",
                };
                info(format!("{who}: {text}"))
            }
            _ => self.of_run(event, id, who),
        }
    }

    /// An event of a run: what it finds is remembered until it ends.
    fn of_run(&mut self, event: &Event, id: Option<ResourceId>, who: String) -> Vec<Said> {
        match &event.what {
            EventKind::Drift {
                field,
                effect,
                later,
                is,
                want,
                diff,
                attributes,
                ..
            } => {
                if let Some(id) = event.applied() {
                    self.runs.entry(id).or_default().found.push(Found {
                        who,
                        field: field.clone(),
                        effect: *effect,
                        later: *later,
                        is: is.clone(),
                        want: want.clone(),
                        diff: diff.clone(),
                        attributes: listed(attributes),
                        may_repair: false,
                    });
                }
                Vec::new()
            }
            EventKind::Repairing { .. } => {
                let run = event.applied().and_then(|id| self.runs.get_mut(&id));
                if let Some(found) = run.and_then(|run| run.found.last_mut()) {
                    found.may_repair = true;
                }
                Vec::new()
            }
            EventKind::RunEnded {
                result,
                duration,
                foreseen,
                ..
            } => {
                let unsure = foreseen.as_ref().and_then(|foreseen| foreseen.unsure.as_ref());
                match unsure {
                    Some(unsure) => {
                        id.and_then(|id| self.runs.remove(&id));
                        notice(run::unsure(&who, unsure))
                    }
                    None => self.run_ended(*result, *duration, id.as_ref(), &who),
                }
            }
            _ => Vec::new(),
        }
    }

    fn run_ended(
        &mut self,
        result: RunSummary,
        duration: Duration,
        id: Option<&ResourceId>,
        who: &str,
    ) -> Vec<Said> {
        let run = id.and_then(|id| self.runs.remove(id)).unwrap_or_default();
        if !self.waiting_for_host.is_empty()
            && result != RunSummary::Waiting
            && id.is_some_and(|id| self.waiting_for_host.remove(&id.to_string()))
            && matches!(result, RunSummary::Ok | RunSummary::Drift)
        {
            return notice(format!("{who}: waits no longer"));
        }
        match result {
            RunSummary::Ok => info(format!(
                "{who}: unchanged, checked in {}",
                duration_text(duration)
            )),
            RunSummary::Drift | RunSummary::Failed | RunSummary::Waiting | RunSummary::Unsure => {
                run.said(self.words(id), result)
            }
        }
    }

    /// How what a run of a resource does is told.
    fn words(&self, id: Option<&ResourceId>) -> Words {
        Words {
            action: id.and_then(|id| self.actions.get(&*id.kind)).copied(),
            is_reversal: id.is_some_and(|id| self.reversals.contains(id)),
        }
    }

    /// An event about when, or whether, a resource runs next.
    fn of_next_run(&mut self, event: &Event, id: Option<ResourceId>, who: &str) -> Vec<Said> {
        match &event.what {
            EventKind::Tick => info(format!("{who}: its interval has passed")),
            EventKind::Dirty { cause } => info(format!(
                "{who}: will be checked ({})",
                visible(&cause.to_string())
            )),
            EventKind::WaitingForHost { missing } => {
                let is_new = id.is_some_and(|id| self.waiting_for_host.insert(id.to_string()));
                let text = format!("{who}: waits, because {}", one_line(missing));
                match is_new {
                    true => notice(text),
                    false => info(text),
                }
            }
            EventKind::BlockedBy { by } if self.waiting_for_host.contains(by) => {
                info(format!("{who}: waits for {}", visible(by)))
            }
            EventKind::BlockedBy { by } => problem(
                Importance::Warning,
                format!("{who}: could not run, because {} failed", visible(by)),
            ),
            EventKind::WaitingForSemaphore { semaphores } => {
                let names: Vec<String> = semaphores.iter().map(|name| visible(name).into_owned()).collect();
                info(format!("{who}: waits for the semaphores {}", names.join(", ")))
            }
            EventKind::LimitedUntil { until } => {
                let left = duration_text(until.saturating_sub(event.time));
                info(format!(
                    "{who}: its events come faster than its limit; waits {left}"
                ))
            }
            _ => Vec::new(),
        }
    }

    /// An event about what belongs to the running graph.
    fn of_membership(&mut self, event: &Event, id: Option<ResourceId>, who: &str) -> Vec<Said> {
        match &event.what {
            EventKind::Added { reversal, .. } => {
                match id {
                    Some(id) if *reversal => self.reversals.insert(id),
                    Some(id) => self.reversals.remove(&id),
                    None => false,
                };
                Vec::new()
            }
            EventKind::Removed { .. } => {
                if !self.waiting_for_host.is_empty()
                    && let Some(id) = &id
                {
                    self.waiting_for_host.remove(&id.to_string());
                }
                match id.is_some_and(|id| self.reversals.remove(&id)) || self.is_stopping {
                    true => Vec::new(),
                    false => info(format!("{who}: left the program")),
                }
            }
            EventKind::Undone => info(format!(
                "{who}: is as it was before the program had it, and left to you"
            )),
            _ => Vec::new(),
        }
    }

    /// Whether an event is told only to those who want to know more, and nothing is to be remembered of it.
    fn is_detail(&self, what: &EventKind) -> bool {
        match what {
            EventKind::RunEnded { result, .. } => {
                *result == RunSummary::Ok && self.runs.is_empty() && self.waiting_for_host.is_empty()
            }
            EventKind::Added { reversal, .. } => !reversal && self.reversals.is_empty(),
            EventKind::Removed { .. } => self.reversals.is_empty() && self.waiting_for_host.is_empty(),
            EventKind::Watching | EventKind::Dirty { .. } | EventKind::StartedRun { .. } => true,
            _ => false,
        }
    }

    fn logged(&mut self, who: &str, id: Option<ResourceId>, level: Level, message: &str) -> Vec<Said> {
        let before = if who.is_empty() {
            String::new()
        } else {
            format!("{who}: ")
        };
        let lines = |importance: Importance, headed_first: bool| {
            let lines = visible_lines(message).enumerate().map(|(index, line)| {
                let text = format!("{before}{line}");
                if headed_first && index == 0 {
                    headed(importance, &text)
                } else {
                    text
                }
            });
            let text = lines.collect::<Vec<_>>().join("\n");
            vec![Said { importance, text }]
        };
        match level {
            Level::Display => {
                if let Some(id) = id {
                    self.runs.entry(id).or_default().has_displayed = true;
                }
                lines(Importance::Notice, false)
            }
            Level::Error => lines(Importance::Error, true),
            Level::Warning => lines(Importance::Warning, true),
            Level::Info => lines(Importance::Info, false),
            Level::Debug => lines(Importance::Debug, true),
        }
    }
}

/// An event about what goes wrong with a resource.
fn of_trouble(event: &Event, who: &str) -> Vec<Said> {
    match &event.what {
        EventKind::BackingOff {
            error,
            next_try,
            tries_left,
        } => {
            let next = duration_text(next_try.saturating_sub(event.time));
            let left = match tries_left {
                None => String::new(),
                Some(0) => " for the last time".to_owned(),
                Some(1) => ", then once more".to_owned(),
                Some(left) => format!(", then up to {left} times more"),
            };
            let error = one_line(error);
            problem(
                Importance::Error,
                format!("{who}: failed to {error}; next try in {next}{left}"),
            )
        }
        EventKind::GaveUp { error } => {
            problem(Importance::Error, format!("{who}: failed to {}", one_line(error)))
        }
        EventKind::Unresponsive { waited, at } => {
            let waited = duration_text(*waited);
            let place = match at.as_deref().filter(|at| event.name.as_deref() != Some(at)) {
                Some(at) => format!(" at {}", visible(at)),
                None => String::new(),
            };
            let text = format!(
                "{who}: no answer{place} for {waited}; the file system may hang. Everything else goes on"
            );
            problem(Importance::Warning, text)
        }
        EventKind::Conflict { field, is, want } => {
            let (field, is, want) = (one_line(field), one_line(is), one_line(want));
            let text = format!(
                "{who}: something else keeps changing {field} to {is}, and it shall be {want}; repairs are spaced out"
            );
            problem(Importance::Warning, text)
        }
        _ => Vec::new(),
    }
}

/// An event about what resources and hosts give each other.
fn of_exchange(event: &Event, who: &str) -> Vec<Said> {
    match &event.what {
        EventKind::Received { parameter, from, .. } => {
            info(format!("{who}: received {parameter} from {}", visible(from)))
        }
        EventKind::Exported { to } => info(format!("{who}: exported to {}", hosts(to))),
        EventKind::Unexported { to } => notice(format!("{who}: no longer exported to {}", hosts(to))),
        _ => Vec::new(),
    }
}

fn notice(text: String) -> Vec<Said> {
    vec![Said {
        importance: Importance::Notice,
        text,
    }]
}

fn info(text: String) -> Vec<Said> {
    vec![Said {
        importance: Importance::Info,
        text,
    }]
}

fn problem(importance: Importance, text: String) -> Vec<Said> {
    let text = headed(importance, &text);
    vec![Said { importance, text }]
}

/// What is only of interest to somebody who follows every step; none where other lines say it.
fn step(event: &Event) -> Option<String> {
    let text = match &event.what {
        EventKind::Added { reversal: true, .. } => "left the program, and is to be undone".to_owned(),
        EventKind::Added { members, .. } if members.is_empty() => "came into the program".to_owned(),
        EventKind::Added { members, .. } => {
            let names: Vec<String> = members.iter().map(|member| named(&member.id())).collect();
            format!("came into the program, and as parts of it {}", some_of(&names))
        }
        EventKind::MemberFailed { error } => format!("failed: {}", one_line(error)),
        EventKind::Watching => "is watched".to_owned(),
        EventKind::StartedRun { noop, refresh } => {
            let noop = if *noop { ", without repairing" } else { "" };
            let refresh = if *refresh { ", to serve a notification" } else { "" };
            format!("is checked{noop}{refresh}")
        }
        EventKind::Repairing { field } => format!("repairs {}", one_line(field)),
        EventKind::Drift { field, .. } => format!("{} differs", one_line(field)),
        EventKind::Finishing => "leaves the program as soon as it is done".to_owned(),
        EventKind::Sent { keys } => format!("sends {}", visible(&keys.join(", "))),
        EventKind::RefreshPending { by } => format!("is notified by {}", visible(by)),
        EventKind::RefreshConsumed { by } => format!("has served the notification by {}", visible(by)),
        EventKind::GraphRejected { diagnostics } => {
            format!("a new graph is rejected: {}", one_line(diagnostics))
        }
        EventKind::GraphSwapped { generation } => format!("graph {generation} is in place"),
        EventKind::Converged => "converged".to_owned(),
        EventKind::Unconverged => "no longer converged".to_owned(),
        _ => return None,
    };
    Some(text)
}

/// A resource as it is named in lines: `file[/etc/motd]`.
fn named(id: &ResourceId) -> String {
    format!("{NAME}{}{NAME:#}", visible(&id.to_string()))
}

/// A value on one line, of a length that can be read.
fn one_line(text: &str) -> String {
    const LONGEST: usize = 400;
    let shown = shortened_hashes(&visible(text));
    match shown.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &shown[..at]),
        None => shown,
    }
}

/// Properties of something new, as a person reads them: `mode 0644, owner root`.
fn listed(attributes: &BTreeMap<Arc<str>, Arc<str>>) -> String {
    let named: Vec<String> = attributes
        .iter()
        .map(|(name, value)| format!("{name} {}", one_line(value)))
        .collect();
    named.join(", ")
}

/// `3 new, 1 changed`; what is none is left out.
fn graph_text(added: usize, changed: usize, removed: usize, kept: usize) -> String {
    let parts = [
        (added, "new"),
        (changed, "changed"),
        (removed, "gone"),
        (kept, "as before"),
    ];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    if parts.is_empty() {
        "no resources".to_owned()
    } else {
        parts.join(", ")
    }
}

/// How long ago something began, for whoever waits for it; nothing for a moment.
pub(super) fn waiting_text(names: &[String], since: Duration) -> String {
    match (names, since.as_secs()) {
        ([], _) => String::new(),
        (names, 0..2) => format!("waiting for {}", some_of(names)),
        (names, _) => format!("waiting for {} ({})", some_of(names), duration_text(since)),
    }
}

/// Whom something is exported to.
fn hosts(to: &[Arc<str>]) -> String {
    let names: Vec<String> = to
        .iter()
        .map(|host| match &**host {
            "*" => "all hosts".to_owned(),
            host => visible(host).into_owned(),
        })
        .collect();
    some_of(&names)
}
