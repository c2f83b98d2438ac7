//! The agent: what a long-lived process does with a program, an engine and its surroundings.
//!
//! - [`agent`] puts it together, and takes it down again.
//! - [`runner`] runs the program, in whichever language it is, and reads it again; [`program_state`] is how the newest one stands.
//! - An [`attachment`] follows the engine: [`control`] answers other processes, [`metrics`], [`graphviz`] and `service_manager` show how the
//!   machine stands, [`cluster`] makes this host a member.
//! - [`deploys`] and [`membership`] are what hosts share of programs and of themselves.

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
pub mod program_state;
mod proposals;
mod published_facts;
pub mod requests;
pub mod runner;
mod service_manager;
mod services;
pub mod signals;
mod surroundings;

#[doc(hidden)]
pub use control::refuse_request;
