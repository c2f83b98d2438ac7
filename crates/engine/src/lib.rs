//! The engine: brings a machine into the state of a desired graph, and keeps it there.
//!
//! One half faces the kinds of resources: [`Resource`] is what a kind writes, [`Apply`] and [`Handle`] what it is given,
//! [`Watch`] what it declares, [`Failure`] what it answers when the machine refuses.
//!
//! The other half runs them. [`machine`] holds the running graph and decides everything, synchronously and without a
//! clock; [`Engine`] is that with workers around it:
//!
//! | who | takes | gives |
//! |---|---|---|
//! | preparation, a blocking task while there is a graph to prepare | [`Engine::submit`] | a graph that is decoded, validated, with automatic edges |
//! | the owner, one thread | the inbox: prepared graphs, events of watches, answers, rechecks, signals | steps of the machine: jobs, tasks, [`Event`]s |
//! | the pool, a few threads and more while they wait for the disk | `init`, arming, runs that block, `cleanup`, state files | answers, into the inbox |
//! | tasks | runs that wait for others, watch loops of a kind's own, tasks of kinds | answers and events, into the inbox |
//!
//! [`StateFiles`] keeps what must outlive the process.

#![forbid(unsafe_code)]

// So that what the derives emit resolves in this crate too.
extern crate self as setpoint_engine;

mod apply;
#[cfg(test)]
mod apply_tests;
mod batch;
mod cancellation;
mod debug_output;
mod drift;
mod events;
mod exports;
mod extensions;
mod failure;
mod foresight;
mod graph_view;
mod grouping;
mod handle;
mod identity;
mod log_line;
pub mod machine;
mod panics;
pub mod parameter;
mod permits;
mod prepare;
mod resource;
mod reversals;
mod secrets;
mod sensitivity;
mod state_files;
mod transfer;
mod watch_declaration;
mod workers;

pub use apply::{Apply, MemberApply, Observer, Outcome, Replacement, RunInput};
pub use async_trait::async_trait;
pub use cancellation::{CancelCause, Cancellation};
pub use debug_output::{DebugOutput, DebugSelection, NotSelected};
pub use drift::{Drift, DriftValue, Effect};
pub use events::{Cause, Event, EventKind, EventSink, EventStream, ResourceName, RunSummary};
pub use exports::{ExportChange, ExportKey, ExportStore, Exports, Offered};
pub use extensions::Extensions;
pub use failure::{Attempting, Failure, FailureReason};
pub use foresight::{Brings, Forecast, Foreseen, Foresight, Need, Unsure};
pub use graph_view::GraphView;
pub use grouping::{GroupKey, Grouping, Member, Members};
pub use handle::{Busy, BusyGuard, Handle, Services};
pub use identity::{
    Claim, Holders, Identity, Key, Managed, Match, Relations, Sort, Stake, Wanted, WantedOrder, WantedReach,
};
pub use log_line::{Level, LogLine};
pub use parameter::{IfSet, Parameter, ParameterStruct, Sendable, Sends, Text, Withholding, Words};
pub use permits::{FoundField, Permit, Permits, PermittedField};
pub use prepare::{Additions, Preparation, additions};
pub use resource::{
    ActionWords, Background, Decode, Instance, Kind, KindSpec, KindTask, ParameterAccess, Resource, RunShape,
    check, has_doubts,
};
pub use reversals::{FoundReversals, read_reversals};
pub use setpoint_derive::{ParameterGroup, ParameterStruct, Resource, Sends};
pub use state_files::StateFiles;
pub use transfer::{MemberRequest, Received, Sent};
pub use watch_declaration::{HubGuard, HubWatch, HubWatcher, OwnWatch, Watch, WatchFuture, Watcher};
pub use workers::{Control, Engine, EngineOptions, EventListener, SentListener, StatusPart, Submitted};
