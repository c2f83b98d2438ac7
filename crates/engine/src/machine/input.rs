//! What the machine is told.

use std::sync::Arc;
use std::time::Duration;

use setpoint_graph::{DesiredGraph, DesiredResource, ResourceId};

use super::VertexId;
use crate::{Drift, ExportKey, Failure, Forecast, Level, Sent};

/// Something that happened outside, for the machine to answer.
#[derive(Debug)]
pub enum Input {
    /// Nothing but the passing of time: a deadline was reached.
    Timer,
    /// A desired graph that was decoded, validated and found free of cycles.
    NewGraph(DesiredGraph),
    /// Resources of the newest graph that manage one and the same thing, by groups; those before are void.
    Sharing(Vec<Vec<ResourceId>>),
    /// On disk are records of what undoes resources. Each is marked as a reversal; its parameters are left out. Those of earlier
    /// processes come before the first graph, those that an `init` was asked for before its answer.
    Recorded(Vec<Arc<DesiredResource>>),
    /// What undid a resource is no longer on disk.
    Forgotten(ResourceId),
    /// A desired graph was refused before it came here.
    GraphRejected {
        /// Why, as shown to the user.
        diagnostics: String,
    },
    /// A desired graph is being prepared, or no longer.
    Preparing(bool),
    /// A source of the program has a change that has not reached a graph yet, or none has any more.
    SourcesBusy(bool),
    /// Somebody holds a busy guard, or nobody does any more.
    Busy(bool),
    /// Answer to [`super::Action::Init`]. When the machine asked for arming too, [`Input::WatchArmed`] follows a success.
    InitEnded {
        /// The resource that it is about.
        vertex: VertexId,
        /// What `init` gave, or why it failed.
        result: Result<Initialised, Failure>,
    },
    /// Answer to [`super::Action::Arm`]: the watch's first event, or that it could not be armed.
    WatchArmed {
        /// The resource that it is about.
        vertex: VertexId,
        /// What arming gave, or why it failed.
        result: Result<Armed, Failure>,
    },
    /// An armed watch failed.
    WatchFailed {
        /// The resource that it is about.
        vertex: VertexId,
        /// What the watch failed with.
        failure: Failure,
    },
    /// Armed watches saw something: whose, and what in few words. What one event outside tells to several watches is one
    /// input, so that none of them runs before all are marked, and order holds between them.
    WatchEvents(Vec<(VertexId, Arc<str>)>),
    /// A watch was armed anew because received values say what is to be watched.
    Rearmed {
        /// The resource that it is about.
        vertex: VertexId,
    },
    /// A run in progress has found something wrong, and repairs it if the drift says so. Runs that are over in a moment
    /// need not tell: all drifts come with [`Input::RunEnded`] too, in the same order.
    Drift {
        /// The resource that it is about.
        vertex: VertexId,
        /// The difference, with nothing sensitive in it.
        drift: Box<Drift>,
    },
    /// Answer to [`super::Action::Run`]. When a run of a reversal has succeeded with repairs allowed, its record is erased before.
    RunEnded {
        /// The resource that it is about.
        vertex: VertexId,
        /// How the run ended, and what it leaves behind.
        result: RunResult,
    },
    /// Answer to [`super::Action::Cleanup`]; nothing of the vertex is left.
    CleanupEnded {
        /// The resource that it is about.
        vertex: VertexId,
        /// Why it failed, if it did. It is only reported.
        failure: Option<Failure>,
    },
    /// Answer to [`super::Action::Silent`], where that is worth telling.
    Unresponsive {
        /// Whose answer is missing.
        vertex: VertexId,
        /// The path at which it is at work, if that is known.
        at: Option<Arc<str>>,
    },
    /// Records that nobody exports any more have left the store.
    Unexported(Vec<ExportKey>),
    /// A line for the log.
    Log {
        /// Of which resource, if it is of one and that is not gone.
        vertex: Option<VertexId>,
        /// Of which member of it, if it is of one.
        member: Option<ResourceId>,
        /// How much it matters.
        level: Level,
        /// The text of the line, with nothing sensitive in it.
        message: String,
    },
    /// A user asks that a resource is looked at; one that gave up starts again.
    Recheck(ResourceId),
    /// No run begins any more, until [`Input::Resume`].
    Pause,
    /// Runs begin again after [`Input::Pause`].
    Resume,
    /// Stop, or go on to the next stage of it.
    Stop {
        /// The stage that is to be reached.
        stage: StopStage,
        /// Whether the next stages follow by themselves.
        escalate: bool,
    },
    /// A resource, or what belongs to a kind, ends the program.
    Exit(ExitReason),
}

/// How hard to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StopStage {
    /// Runs in progress finish.
    Finish,
    /// Runs in progress are cancelled.
    Cancel,
    /// Runs in progress are interrupted.
    Interrupt,
}

impl StopStage {
    /// 1, 2 or 3.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            StopStage::Finish => 1,
            StopStage::Cancel => 2,
            StopStage::Interrupt => 3,
        }
    }

    pub(super) fn next(self) -> Option<StopStage> {
        match self {
            StopStage::Finish => Some(StopStage::Cancel),
            StopStage::Cancel => Some(StopStage::Interrupt),
            StopStage::Interrupt => None,
        }
    }
}

/// Why the program ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExitReason {
    /// Somebody asked: a signal, or a front end that is done.
    Stopped,
    /// Converged, and that was all that was wanted.
    Converged,
    /// It ran as long as it was allowed to.
    MaxRuntime,
    /// An `exit` resource, with its code.
    Requested(u8),
    /// What a kind needs in the background has failed.
    BackgroundFailed(Arc<str>),
}

/// What `init` gave.
#[derive(Debug, Clone, Default)]
pub struct Initialised {
    /// Senders whose notification was stored as *perhaps* by an earlier process.
    pub refresh: Vec<ResourceId>,
}

/// What arming gave.
#[derive(Debug, Clone, Copy, Default)]
pub struct Armed {
    /// What passes between events that the machine is to make itself.
    pub interval: Option<Duration>,
    /// Whether each of these events notifies, as a repair does.
    pub ticks: bool,
}

/// How a run ended.
#[derive(Debug)]
pub struct RunResult {
    /// What was wrong, in order.
    pub drifts: Vec<Drift>,
    /// Whether it succeeded.
    pub outcome: Result<(), Failure>,
    /// What it published.
    pub sent: Option<Sent>,
    /// What members published.
    pub sent_by_members: Vec<(ResourceId, Sent)>,
    /// Members that could not be brought into their state, perhaps the resource itself among them. If there are some, it did not succeed.
    pub failed_members: Vec<(ResourceId, Failure)>,
    /// Whether all others are right, although `failed_members` failed.
    pub is_partial: bool,
    /// Whether the parameters of [`super::RunRequest::transfer`], and of members, were set and found valid.
    pub transferred: bool,
    /// Whether `check_apply` was really called.
    pub checked: bool,
    /// The forecast for a run that repairs, in a plan.
    pub forecast: Option<Box<Forecast>>,
    /// Whether the interval of its watch begins anew.
    pub restart_interval: bool,
    /// Whether the resource says that what it watches is no longer what it was.
    pub watch_anew: bool,
    /// The records that were written for it, and for members.
    pub exported: Vec<ExportKey>,
    /// Why not all of what it exports could be written. Then the run has failed, whatever it made of the machine.
    pub not_exported: Option<Failure>,
}

impl RunResult {
    /// Whether it cannot be said what the run that repairs would do.
    #[must_use]
    pub fn is_unsure(&self) -> bool {
        self.forecast
            .as_ref()
            .is_some_and(|forecast| forecast.unsure.is_some())
    }

    /// Everything was right.
    #[must_use]
    pub fn ok() -> RunResult {
        RunResult {
            drifts: Vec::new(),
            outcome: Ok(()),
            sent: None,
            sent_by_members: Vec::new(),
            failed_members: Vec::new(),
            is_partial: false,
            transferred: true,
            checked: true,
            forecast: None,
            restart_interval: false,
            watch_anew: false,
            exported: Vec::new(),
            not_exported: None,
        }
    }

    /// A run that failed, found nothing and sent nothing.
    #[must_use]
    pub fn failed(failure: Failure) -> RunResult {
        RunResult {
            outcome: Err(failure),
            ..RunResult::ok()
        }
    }
}
