//! What the machine wants done.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use setpoint_graph::{DesiredResource, ResourceId, Sending};
use setpoint_value::Value;

use super::{ExitReason, RecordWork, VertexId};
use crate::{CancelCause, Event, ExportKey, MemberRequest, Received};

/// The answer to an input: to be done in this order.
///
/// A type of its own, which must be used: an answer that is dropped is an event that is lost.
#[must_use]
#[derive(Debug, Default)]
pub struct Actions {
    /// What to do.
    pub list: Vec<Action>,
    /// When [`super::Input::Timer`] is due, on the clock that `step` is given; none while nothing waits for time.
    pub deadline: Option<Duration>,
}

/// Something to be done outside.
#[derive(Debug)]
pub enum Action {
    /// Make the instance and call its `init`. Answer: [`super::Input::InitEnded`].
    Init {
        /// Where it is to live.
        vertex: VertexId,
        /// The resource, as the graph describes it.
        resource: Arc<DesiredResource>,
        /// Whether its watch is to be armed after success at once, as if [`Action::Arm`] had followed.
        arm: bool,
        /// Whether stored notifications are of interest.
        load_refresh: bool,
        /// What is to be done before about the record of what undoes it. When that fails, so does `init`.
        record: RecordWork,
    },
    /// Arm its watch. Answer: [`super::Input::WatchArmed`].
    Arm {
        /// The resource that it is about.
        vertex: VertexId,
    },
    /// End its watch. No answer.
    Disarm {
        /// The resource that it is about.
        vertex: VertexId,
    },
    /// Run it. Answer: [`super::Input::RunEnded`].
    Run {
        /// The resource that runs.
        vertex: VertexId,
        /// What the run may do, and what it is given.
        request: Box<RunRequest>,
    },
    /// Tell its run to stop.
    Cancel {
        /// The resource that it is about.
        vertex: VertexId,
        /// Why nothing is to come of the run.
        cause: CancelCause,
    },
    /// Tell its run to stop at once.
    Interrupt {
        /// The resource that it is about.
        vertex: VertexId,
    },
    /// Call its `cleanup` if its `init` succeeded, and forget it. Answer: [`super::Input::CleanupEnded`].
    Cleanup {
        /// The resource that it is about.
        vertex: VertexId,
        /// Whether there is something to clean up.
        initialised: bool,
    },
    /// Its `init`, watch, run or `cleanup` should have answered long ago. Answer, where that is no work that may take as long as
    /// it likes: [`super::Input::Unresponsive`].
    Silent {
        /// The resource that it is about.
        vertex: VertexId,
    },
    /// Stored notifications are served or void.
    ClearRefresh {
        /// Who was to be notified.
        receiver: ResourceId,
        /// Whose repairs it was to hear of.
        senders: Vec<ResourceId>,
        /// Marks that were stored by runs with a later number stay.
        up_to_run: u64,
    },
    /// The running graph has come to export these, and those no more, once for each resource that does. It comes with the first graph,
    /// whether or not that exports anything: what earlier processes left is to be looked at then. It never comes under `noop`.
    Export {
        /// Records that it has come to export.
        wanted: Vec<ExportKey>,
        /// Records that it exports no more.
        unwanted: Vec<ExportKey>,
    },
    /// The host has become quiet, or is no longer.
    Converged(bool),
    /// Publish an event.
    Emit(Arc<Event>),
    /// Everything has ended.
    Exit(Box<ExitReport>),
}

/// What a run is given.
#[derive(Debug, Clone)]
pub struct RunRequest {
    /// Its number; later runs have higher ones.
    pub run: u64,
    /// The vertex's distance to the end of the graph: the higher, the more urgent.
    pub priority: u32,
    /// Whether repairs are forbidden.
    pub noop: bool,
    /// Whether `check_apply` is called.
    pub check: Check,
    /// Whose notifications wait, for a kind that cares.
    pub refresh: Vec<ResourceId>,
    /// Whether they may not come in the end: in a plan, if it is not certain that a sender would change anything.
    pub refresh_is_doubtful: bool,
    /// Values for parameters, to be set before anything else; none sets back to what the program says.
    pub transfer: Vec<(&'static str, Option<Value>)>,
    /// All received parameters, and which of them changed since the last successful run.
    pub received: Vec<Received>,
    /// The same for members, sorted by their identity; those that receive nothing are not in it.
    pub members: Vec<MemberRequest>,
    /// The direct predecessors, in a plan.
    pub before: Vec<ResourceId>,
    /// Parameters whose value is not known: the sender has not run, or the program does not say it in a plan.
    pub unknown: Vec<UnknownParameter>,
    /// Who is notified by a repair: to be stored as *perhaps* before the first one.
    pub notifies: Vec<ResourceId>,
    /// What is exported with it: the resource, and members, as they are now, with what they received.
    pub exports: Vec<Arc<DesiredResource>>,
}

/// A parameter whose value is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownParameter {
    /// The member whose parameter it is, if it is one of a member.
    pub member: Option<ResourceId>,
    /// The parameter that takes the value.
    pub parameter: &'static str,
    /// The event that makes it known.
    pub known_by: KnownBy,
}

/// The event that makes a value known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KnownBy {
    /// A run of its sender.
    Sender {
        /// The sender.
        from: ResourceId,
        /// Under which send key.
        key: Arc<str>,
    },
    /// The evaluation of the program when it is applied.
    Program {
        /// The text with which the value begins, as far as that is known.
        prefix: Arc<str>,
    },
}

impl UnknownParameter {
    /// The parameter of a resource that takes a sent value.
    pub(super) fn of(
        sending: Sending<'_>,
        member: Option<&ResourceId>,
        parameter: &'static str,
    ) -> UnknownParameter {
        UnknownParameter {
            member: member.cloned(),
            parameter,
            known_by: KnownBy::Sender {
                from: sending.from.clone(),
                key: sending.key.clone(),
            },
        }
    }

    /// The parameters of a resource and its members that the program leaves unknown.
    pub(super) fn all_of(resource: &DesiredResource) -> Vec<UnknownParameter> {
        let own = std::iter::once((None, resource));
        let members = resource.members.all();
        let members = members.iter().map(|member| (Some(&member.id), &***member));
        let all = own.chain(members).flat_map(|(member, of)| {
            let unknown = of.parameters.iter().filter(|(_, value)| !value.is_wholly_known());
            unknown.map(move |(parameter, value)| UnknownParameter {
                member: member.cloned(),
                parameter,
                known_by: KnownBy::Program {
                    prefix: prefix_of(value),
                },
            })
        });
        all.collect()
    }
}

/// The known beginning of an unknown text that is not sensitive.
fn prefix_of(value: &Value) -> Arc<str> {
    let prefix = match value.unmarked() {
        Value::Unknown(unknown) if !value.is_sensitive() => unknown.refinement.prefix.as_ref(),
        _ => None,
    };
    prefix
        .and_then(|prefix| prefix.as_str())
        .unwrap_or_default()
        .into()
}

/// Whether a run calls `check_apply`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// It does: the resource is looked at, and repaired if that is allowed.
    Call,
    /// It does not and counts as *ok*: the resource is hidden.
    SkipAsOk,
}

/// How the engine ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExitReport {
    /// What ended it.
    pub reason: ExitReason,
    /// Resources that gave up, with the error.
    pub failed: BTreeMap<ResourceId, Arc<str>>,
    /// What could not run, with what it was blocked by.
    pub blocked: BTreeMap<ResourceId, ResourceId>,
    /// How many runs repaired something.
    pub repaired: u64,
    /// How many runs would have repaired something but for noop.
    pub would_change: u64,
    /// What did not end in time when the engine stopped, with the path at which it was at work, where that is known.
    pub hung: BTreeMap<ResourceId, Option<Arc<str>>>,
}

impl ExitReport {
    /// The exit code of the process.
    #[must_use]
    pub fn code(&self, detailed: bool) -> u8 {
        if !self.hung.is_empty() {
            return 1;
        }
        match &self.reason {
            ExitReason::Stopped => 0,
            ExitReason::MaxRuntime | ExitReason::BackgroundFailed(_) => 1,
            ExitReason::Requested(code) => *code,
            ExitReason::Converged if !self.failed.is_empty() || !self.blocked.is_empty() => 1,
            ExitReason::Converged if detailed && self.repaired + self.would_change > 0 => 2,
            ExitReason::Converged => 0,
        }
    }
}
