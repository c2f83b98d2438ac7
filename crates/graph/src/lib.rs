//! The desired graph: what the machine shall be, as pure data, and the description of what it can be made of.
//!
//! - [`KindSchema`] describes a kind of resource: parameters with their types, what it sends, its checks. [`Library`]
//!   is everything a language is given: functions, kinds, constants, embedded modules.
//! - [`ResourceStatement`] and [`EdgeStatement`] are what a program says; [`build_resource`] and [`build_edge`] turn one
//!   with its current values into [`DesiredResource`]s and [`DesiredEdge`]s.
//! - [`Assembler`] keeps the [`DesiredGraph`] of all statements: it merges duplicates, matches edges, finds cycles, and
//!   touches only what a change touches.
//! - A [`Link`] says through which includes, calls, loops and conditions a resource comes to be there.
//! - [`diff()`] compares two graphs at the cost of their difference; [`json`], [`dot`] and [`text`] print one.
//! - [`Problem`] lists what can be wrong, and a [`Language`] gives each its code.

#![forbid(unsafe_code)]

mod assemble;
mod build;
mod chain;
mod check;
mod desired;
mod diff;
pub mod dot;
mod exported;
pub mod json;
mod kind;
mod library;
mod meta;
mod parameter_type;
mod parameters;
mod printed;
mod problem;
mod statement;
pub mod text;

pub use assemble::{Assembler, assemble};
pub use build::{
    CollectRequest, CollectedResource, build_collected, build_edge, build_resource, read_collect,
};
pub use chain::{Cause, Link};
pub use check::Violation;
pub use desired::{DesiredEdge, DesiredGraph, DesiredMembers, DesiredResource, ResourceId, Sending};
pub use diff::{GraphChange, HiddenChange, diff};
pub use exported::{ENCRYPTED, ExportedText, SECRETS, build_collect, decode_exported, encode_exported};
pub use kind::{Constant, ConstantValue, Doubt, Invalid, KindSchema, ParameterSchema, Secrecy, SendKey};
pub use library::{FunctionFile, FunctionFiles, Library};
pub use meta::{Meta, MetaName, MetaParameters, Written};
pub use parameter_type::{ParameterType, TypeMismatch};
pub use parameters::Parameters;
pub use printed::PrintedGraph;
pub use problem::{CollectProblem, Finding, Language, Named, Problem};
pub use statement::{
    EdgeEndpoint, EdgeItem, EdgeProperty, EdgeStatement, FieldItem, MetaItem, ResourceStatement,
    StatementOutput, UnknownPart, UnknownWhat,
};
