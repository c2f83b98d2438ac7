//! The desired graph: what the machine shall be, as pure data, and the description of what it can be made of.
//!
//! - [`KindSchema`] describes a kind of resource: parameters with their native types, what it sends, its checks. [`Library`]
//!   is everything a language is given: functions, kinds, constants, embedded modules.
//! - [`ResourceStatement`] and [`EdgeStatement`] are what a program says; `build` turns one with its current values
//!   into [`DesiredResource`]s.
//! - `Assembler` keeps the [`DesiredGraph`] of all statements: it merges duplicates, matches edges, finds cycles, and
//!   touches only what a change touches.
//! - `json` and `dot` print a graph; `diff` compares two.

#![forbid(unsafe_code)]

mod desired;
mod kind;
mod library;
mod meta;
mod native;
mod statement;

pub use desired::{DesiredEdge, DesiredGraph, DesiredResource, Parameters, ResourceId};
pub use kind::{Constant, ConstantValue, Invalid, KindSchema, ParameterSchema, SendKey};
pub use library::Library;
pub use meta::{MetaName, MetaParameters};
pub use native::{Misfit, Native};
pub use statement::{
    EdgeHalf, EdgeItem, EdgeProperty, EdgeStatement, FieldItem, MetaItem, ResourceStatement, StatementOutput,
};
