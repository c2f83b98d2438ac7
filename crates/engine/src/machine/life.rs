//! The life of a resource in the running graph: its states, each with the data that it has and no other, and the
//! transitions between them. Nothing else changes a [`Stage`].
//!
//! ```text
//!                  ┌────────────── wait over ─────────────┐
//!                  ▼                                      │
//!  added ─▶ Initialising ── failed ──▶ InitFailed{wait} ──┘
//!                  │
//!                  ▼                                      ┌──── wait over, run ended ────┐
//!               Arming ──────────── watch failed ──▶ WatchFailed{wait, run} ◀──┐         │
//!                  │ ▲                                    │                    │         │
//!      first event │ └────────────────────────────────────┴────────────────────┼─────────┘
//!                  ▼                                                           │
//!     Watching: Clean ─ event ─▶ Due{queue} ─ its turn ─▶ Running{run} ─ watch failed
//!                  ▲                 ▲                        │
//!                  └── ok, drift ────┴─ failed, or an event ──┘
//!
//!  no tries left, from any of these ─▶ GaveUp{run} ── rechecked ──▶ Initialising, Arming
//!  leaves, from any of these ─▶ Finishing{run} ─▶ Draining ─▶ CleaningUp ─▶ gone
//! ```

use std::sync::Arc;
use std::time::Duration;

use setpoint_graph::DesiredResource;

use super::vertex::Extras;

/// What lives in a slot.
pub(super) struct Life {
    pub(super) resource: Arc<DesiredResource>,
    /// What few need.
    pub(super) extras: Option<Box<Extras>>,
    /// Tries of the watch that were used up.
    pub(super) watch_tries: u16,
    /// Failures one after the other, for the length of the back-off.
    pub(super) failures: u8,
    /// It failed, and is tried until it is right.
    pub(super) failing: bool,
    /// Its last run found that something outside this machine has not come to pass.
    pub(super) waiting_for_host: bool,
    /// It got one more run for an event that came during one that failed.
    pub(super) second_chance: bool,
    /// A run succeeded since it was added.
    pub(super) was_settled: bool,
    /// What its slot has published is its own, not that of whoever lived there before.
    pub(super) has_published: bool,
    /// It was found that no answer comes.
    pub(super) is_silent: bool,
    /// That was told.
    pub(super) is_said_silent: bool,
    /// Its last run found something wrong and was not allowed to repair it, or could not say what a repair would do.
    pub(super) would_change: bool,
    /// A swap takes it away after one run.
    realizing: bool,
    stage: Stage,
}

/// How far it has come.
#[derive(Debug)]
pub(super) enum Stage {
    /// `init` is under way. With `leaves`, it goes as soon as that has ended.
    Initialising { since: Duration, leaves: bool },
    /// `init` failed and is tried again.
    InitFailed { wait: Wait },
    /// Its watch is being armed.
    Arming { since: Duration },
    /// Its watch is armed, or it has none: it may run.
    Watching(Activity),
    /// Its watch failed, and is armed again when the wait is over and the run, which was cancelled, has ended.
    WatchFailed { wait: Option<Wait>, run: Option<Run> },
    /// No tries are left.
    GaveUp { initialised: bool, run: Option<Run> },
    /// It is going away, but its run must end first.
    Finishing { run: Run, watches: bool },
    /// It is going away; `cleanup` waits for that of its successors.
    Draining { initialised: bool },
    /// `cleanup` is under way.
    CleaningUp { since: Duration },
}

/// What a resource does whose watch is armed.
#[derive(Debug)]
pub(super) enum Activity {
    /// It was right when it ran last, and nothing has happened since.
    Clean,
    /// It must run.
    Due(Due),
    Running(Run),
}

/// A run that must be made.
#[derive(Debug)]
pub(super) struct Due {
    /// Its watch alone asks for it.
    pub(super) by_watch: bool,
    /// The vertex that failed and keeps it from running, as it was last told.
    pub(super) blocked_by: Option<u32>,
    pub(super) queue: Queue,
}

/// What a run that must be made waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Queue {
    /// That is not known yet. Between two steps nobody is here.
    Undecided,
    Time(Wait),
    /// An ancestor that is not settled.
    Ancestor(u32),
    /// Its place in the queues of its semaphores.
    Semaphores {
        ticket: u64,
    },
    /// The number of jobs, or the end of a pause.
    Turn {
        ticket: u64,
        holds_semaphores: bool,
    },
}

/// A moment that is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wait {
    pub(super) why: Why,
    pub(super) until: Duration,
}

/// Why a moment is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// It failed and waits for its next try.
    Backoff,
    /// The same, but whatever happens meanwhile ends the wait.
    Failing,
    /// Something outside this machine has not come to pass; only what happens ends the wait.
    WaitingForHost,
    /// Its events come faster than its limit allows.
    Limited,
    /// Somebody undoes its repairs, which are spaced out.
    Spaced,
}

impl Why {
    /// Whether it waits because its last run did not make it right. Otherwise only events of the watch wait.
    pub(super) fn is_failure(self) -> bool {
        matches!(self, Why::Backoff | Why::Failing | Why::WaitingForHost)
    }
}

/// A run in progress.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    pub(super) number: u64,
    pub(super) began: Duration,
    /// It may not repair.
    pub(super) noop: bool,
    /// It was caused by the watch alone.
    pub(super) by_watch: bool,
    /// It has had its time, and was told so.
    pub(super) timed_out: bool,
    /// Drifts that were told already.
    pub(super) announced: u16,
    /// Something happened since it began: it is followed by another one.
    pub(super) again: Option<Pending>,
}

/// Why something must run, and from when on it may.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pending {
    pub(super) by_watch: bool,
    pub(super) wait: Option<Wait>,
}

impl From<Pending> for Due {
    fn from(pending: Pending) -> Due {
        Due {
            by_watch: pending.by_watch,
            blocked_by: None,
            queue: pending.wait.map_or(Queue::Undecided, Queue::Time),
        }
    }
}

/// What an event means to a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attention {
    /// It becomes due by it.
    BecomesDue,
    /// It is due anyway.
    IsDue,
    /// It waits for a moment for this reason.
    Waits(Why),
    /// It is on its way in or out, or has failed.
    None,
}

/// What follows when a wait is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Initialise,
    Arm,
    /// It may run; because of a failure before.
    Retry,
    /// It may run.
    Run,
    /// Something else must end first.
    Nothing,
}

impl Life {
    /// Something that is added: its `init` begins.
    pub(super) fn new(resource: Arc<DesiredResource>, now: Duration) -> Life {
        Life {
            resource,
            extras: None,
            watch_tries: 0,
            failures: 0,
            failing: false,
            waiting_for_host: false,
            second_chance: false,
            was_settled: false,
            has_published: false,
            is_silent: false,
            is_said_silent: false,
            would_change: false,
            realizing: false,
            stage: initialising(now),
        }
    }

    // What it is.

    pub(super) fn stage(&self) -> &Stage {
        &self.stage
    }

    pub(super) fn due(&self) -> Option<&Due> {
        match &self.stage {
            Stage::Watching(Activity::Due(due)) => Some(due),
            _ => None,
        }
    }

    pub(super) fn run(&self) -> Option<&Run> {
        match &self.stage {
            Stage::Watching(Activity::Running(run)) | Stage::Finishing { run, .. } => Some(run),
            Stage::WatchFailed { run, .. } | Stage::GaveUp { run, .. } => run.as_ref(),
            _ => None,
        }
    }

    pub(super) fn run_mut(&mut self) -> Option<&mut Run> {
        match &mut self.stage {
            Stage::Watching(Activity::Running(run)) | Stage::Finishing { run, .. } => Some(run),
            Stage::WatchFailed { run, .. } | Stage::GaveUp { run, .. } => run.as_mut(),
            _ => None,
        }
    }

    /// The moment that it waits for, if it waits for one.
    pub(super) fn wait(&self) -> Option<Wait> {
        match &self.stage {
            Stage::InitFailed { wait } => Some(*wait),
            Stage::WatchFailed { wait, .. } => *wait,
            Stage::Watching(Activity::Due(Due {
                queue: Queue::Time(wait),
                ..
            })) => Some(*wait),
            Stage::Watching(Activity::Running(run)) => run.again?.wait,
            _ => None,
        }
    }

    /// Since when an answer of its workers is waited for, if one is.
    pub(super) fn waits_since(&self) -> Option<Duration> {
        match &self.stage {
            Stage::Initialising { since, .. } | Stage::Arming { since } | Stage::CleaningUp { since } => {
                Some(*since)
            }
            _ => self.run().map(|run| run.began),
        }
    }

    pub(super) fn is_running(&self) -> bool {
        self.run().is_some()
    }

    pub(super) fn is_watching(&self) -> bool {
        matches!(self.stage, Stage::Watching(_))
    }

    /// Whether it is going away, perhaps after one more run.
    pub(super) fn is_leaving(&self) -> bool {
        self.realizing
            || matches!(
                self.stage,
                Stage::Initialising { leaves: true, .. }
                    | Stage::Finishing { .. }
                    | Stage::Draining { .. }
                    | Stage::CleaningUp { .. }
            )
    }

    pub(super) fn is_realizing(&self) -> bool {
        self.realizing
    }

    /// Whether a watch was asked for and not ended, if it has one at all.
    pub(super) fn is_armed(&self) -> bool {
        matches!(
            self.stage,
            Stage::Arming { .. } | Stage::Watching(_) | Stage::Finishing { watches: true, .. }
        )
    }

    /// Whether it is settled if its predecessors are.
    pub(super) fn is_locally_settled(&self) -> bool {
        matches!(self.stage, Stage::Watching(Activity::Clean)) && !self.realizing
    }

    /// Whether it must run and nobody has looked yet what it waits for.
    pub(super) fn is_undecided(&self) -> bool {
        self.due().is_some_and(|due| due.queue == Queue::Undecided)
    }

    pub(super) fn is_failed_for_good(&self) -> bool {
        matches!(self.stage, Stage::GaveUp { .. })
    }

    /// Whether it has failed, for good or until it is tried again.
    pub(super) fn has_failed(&self) -> bool {
        (self.is_failed_for_good() || self.failing) && !self.is_leaving()
    }

    /// Whether it has failed, and rests until its next try.
    pub(super) fn has_failed_and_rests(&self) -> bool {
        let queue = self.due().map(|due| due.queue);
        let rests = self.is_failed_for_good() || matches!(queue, Some(Queue::Time(_)));
        self.has_failed() && rests && !self.is_running()
    }

    /// Whether what depends on it waits for something that may never come.
    pub(super) fn obstructs_others(&self) -> bool {
        let is_awaiting = self.waiting_for_host && !self.is_leaving();
        self.has_failed() || is_awaiting || (self.is_spaced() && !self.realizing)
    }

    fn is_spaced(&self) -> bool {
        let queue = self.due().map(|due| due.queue);
        matches!(queue, Some(Queue::Time(wait)) if wait.why == Why::Spaced)
    }

    /// What something else does again and again to what it repairs, if that goes on.
    pub(super) fn fight(&self) -> Option<&Arc<str>> {
        self.extras.as_ref()?.fight.as_ref()?.about()
    }

    /// Whether it keeps the host from being quiet.
    pub(super) fn is_busy(&self) -> bool {
        // What nobody may ever mend does not.
        let may_never_end =
            |wait: &Wait| matches!(wait.why, Why::Failing | Why::Spaced | Why::WaitingForHost);
        match &self.stage {
            _ if self.realizing => true,
            Stage::Watching(Activity::Clean) | Stage::GaveUp { run: None, .. } => false,
            Stage::Watching(Activity::Due(due)) => match &due.queue {
                Queue::Time(wait) => !may_never_end(wait),
                _ => due.blocked_by.is_none(),
            },
            Stage::InitFailed { wait } => !may_never_end(wait),
            Stage::WatchFailed { wait, run } => run.is_some() || !wait.as_ref().is_some_and(may_never_end),
            Stage::Watching(Activity::Running(_))
            | Stage::GaveUp { run: Some(_), .. }
            | Stage::Initialising { .. }
            | Stage::Arming { .. }
            | Stage::Finishing { .. }
            | Stage::Draining { .. }
            | Stage::CleaningUp { .. } => true,
        }
    }

    /// What an event means to it.
    pub(super) fn attention(&self) -> Attention {
        match &self.stage {
            Stage::Watching(Activity::Clean) => Attention::BecomesDue,
            Stage::Watching(Activity::Running(run)) if run.again.is_none() => Attention::BecomesDue,
            Stage::Watching(_) | Stage::InitFailed { .. } | Stage::WatchFailed { .. } => self
                .wait()
                .map_or(Attention::IsDue, |wait| Attention::Waits(wait.why)),
            _ => Attention::None,
        }
    }

    // Coming in.

    /// `init` is tried again.
    pub(super) fn initialise(&mut self, now: Duration) {
        self.is_silent = false;
        self.is_said_silent = false;
        self.stage = initialising(now);
    }

    /// The watch is being armed: after `init`, after it failed, after a user asked for it. What is still running must end
    /// first. Answers whether it is.
    pub(super) fn arm(&mut self, now: Duration) -> bool {
        if let Some(run) = self.run().copied() {
            self.stage = Stage::WatchFailed {
                wait: None,
                run: Some(run),
            };
            return false;
        }
        self.is_silent = false;
        self.is_said_silent = false;
        self.stage = Stage::Arming { since: now };
        true
    }

    /// The first event of its watch: it must run.
    pub(super) fn begin_watching(&mut self, pending: Pending) {
        self.stage = Stage::Watching(Activity::Due(pending.into()));
    }

    // Running.

    /// It must run, or run again. Only for whom [`Life::attention`] says that it becomes due.
    pub(super) fn become_due(&mut self, pending: Pending) {
        match &mut self.stage {
            Stage::Watching(Activity::Running(run)) => run.again = Some(pending),
            Stage::Watching(activity) => *activity = Activity::Due(pending.into()),
            _ => {}
        }
    }

    /// Waits elsewhere for its run.
    pub(super) fn enter(&mut self, queue: Queue) {
        if let Stage::Watching(Activity::Due(due)) = &mut self.stage {
            due.queue = queue;
        }
    }

    pub(super) fn block(&mut self, by: Option<u32>) {
        if let Stage::Watching(Activity::Due(due)) = &mut self.stage {
            due.blocked_by = by;
        }
    }

    /// Its run begins.
    pub(super) fn start(&mut self, number: u64, began: Duration, noop: bool) {
        let by_watch = self.due().is_some_and(|due| due.by_watch);
        self.is_silent = false;
        self.is_said_silent = false;
        self.stage = Stage::Watching(Activity::Running(Run {
            number,
            began,
            noop,
            by_watch,
            timed_out: false,
            announced: 0,
            again: None,
        }));
    }

    /// Its run has ended: it is clean, or due if something happened meanwhile. What is finishing goes on with
    /// [`Life::go`].
    pub(super) fn end_run(&mut self) -> Option<Run> {
        match &mut self.stage {
            Stage::Watching(activity) => {
                let Activity::Running(run) = activity else {
                    return None;
                };
                let run = *run;
                *activity = run
                    .again
                    .map_or(Activity::Clean, |pending| Activity::Due(pending.into()));
                Some(run)
            }
            Stage::WatchFailed { run, .. } | Stage::GaveUp { run, .. } => run.take(),
            Stage::Finishing { run, .. } => Some(*run),
            _ => None,
        }
    }

    /// Its run has failed: it must run again, whatever happened meanwhile.
    pub(super) fn stay_due(&mut self) {
        if let Stage::Watching(activity @ Activity::Clean) = &mut self.stage {
            let pending = Pending {
                by_watch: false,
                wait: None,
            };
            *activity = Activity::Due(pending.into());
        }
    }

    // Failing.

    /// Its watch has failed. Answers whether a run is in progress, which is to be cancelled.
    pub(super) fn lose_watch(&mut self) -> bool {
        let run = self.run().copied();
        match &mut self.stage {
            // Its last run may finish all the same.
            Stage::Finishing { watches, .. } => {
                *watches = false;
                return false;
            }
            _ => self.stage = Stage::WatchFailed { wait: None, run },
        }
        run.is_some()
    }

    /// It failed, and waits before its next try.
    pub(super) fn wait_until(&mut self, wait: Wait) {
        match &mut self.stage {
            Stage::Initialising { .. } | Stage::InitFailed { .. } => self.stage = Stage::InitFailed { wait },
            Stage::WatchFailed { wait: waits, .. } => *waits = Some(wait),
            Stage::Watching(Activity::Due(due)) => due.queue = Queue::Time(wait),
            _ => {}
        }
    }

    /// It waits no longer: the moment has come, or something happened that need not wait.
    pub(super) fn stop_waiting(&mut self) -> Next {
        let why = self.wait().map(|wait| wait.why);
        match &mut self.stage {
            Stage::InitFailed { .. } => Next::Initialise,
            Stage::WatchFailed { wait, run } => {
                *wait = None;
                if run.is_some() { Next::Nothing } else { Next::Arm }
            }
            Stage::Watching(Activity::Due(due)) if why.is_some() => {
                due.queue = Queue::Undecided;
                if why.is_some_and(Why::is_failure) {
                    Next::Retry
                } else {
                    Next::Run
                }
            }
            Stage::Watching(Activity::Running(run)) => {
                if let Some(again) = &mut run.again {
                    again.wait = None;
                }
                Next::Nothing
            }
            _ => Next::Nothing,
        }
    }

    /// No tries are left.
    pub(super) fn fail_for_good(&mut self) {
        self.failing = false;
        self.waiting_for_host = false;
        self.stage = Stage::GaveUp {
            initialised: self.was_initialised(),
            run: self.run().copied(),
        };
    }

    fn was_initialised(&self) -> bool {
        match self.stage {
            Stage::Initialising { .. } | Stage::InitFailed { .. } => false,
            Stage::GaveUp { initialised, .. } | Stage::Draining { initialised } => initialised,
            _ => true,
        }
    }

    // Going.

    /// It goes after one more run, and waits for no ancestor any longer.
    pub(super) fn realize(&mut self) {
        self.realizing = true;
        if let Some(Queue::Ancestor(_)) = self.due().map(|due| due.queue) {
            self.enter(Queue::Undecided);
        }
    }

    /// It goes as soon as nothing of it is under way. None: it will go by itself, or goes already; otherwise whether
    /// `init` had succeeded.
    pub(super) fn leave(&mut self) -> Option<bool> {
        self.realizing = false;
        match &mut self.stage {
            Stage::Initialising { leaves, .. } => {
                *leaves = true;
                return None;
            }
            Stage::Finishing { .. } | Stage::CleaningUp { .. } => return None,
            _ => {}
        }
        if let Some(run) = self.run().copied() {
            let watches = self.is_watching();
            self.stage = Stage::Finishing { run, watches };
            return None;
        }
        Some(self.was_initialised())
    }

    /// Nothing of it is under way any more: `cleanup` begins, or waits for that of successors.
    pub(super) fn go(&mut self, initialised: bool, must_drain: bool, now: Duration) {
        self.realizing = false;
        self.is_silent = false;
        self.is_said_silent = false;
        self.stage = if must_drain {
            Stage::Draining { initialised }
        } else {
            Stage::CleaningUp { since: now }
        };
    }
}

fn initialising(since: Duration) -> Stage {
    Stage::Initialising { since, leaves: false }
}
