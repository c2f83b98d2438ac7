//! The agent: what a long-lived process does with a program, an engine and its surroundings.
//!
//! - [`runner`] runs the programs of a run and replaces them; [`program_state`] is how the newest one stands.
//! - [`control`] answers other processes; [`metrics`], [`graphviz`] and [`service_manager`] show how the machine stands.
//! - [`deploys`] and [`membership`] are the agent's part of a cluster.

#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    reason = "this crate is where the environment, the clock and the files are read"
)]

pub mod agent;
pub mod attachment;
pub mod cluster;
pub mod control;
pub mod deploys;
pub mod first_program;
pub mod graphviz;
pub mod health;
mod known_files;
mod limits;
pub mod line_schema;
pub mod membership;
mod messages;
pub mod metrics;
pub mod prefix;
mod program_state;
mod published_facts;
pub mod requests;
pub mod runner;
mod service_manager;
mod services;
pub mod signals;
mod surroundings;

#[doc(hidden)]
pub use control::refuse_request;
