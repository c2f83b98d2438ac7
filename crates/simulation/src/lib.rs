//! For tests only: the engine's machine on a host that exists only as a script, and the rules that must hold whatever happens.
//!
//! A [`Script`] is a list of [`Step`]s: a new program, drift, a failing or frozen resource, a full disk, a crash, the passing of
//! time. It is made from a seed, and can be played again, shortened, and written by hand. [`Script::play`] drives
//! `setpoint_engine::machine::Machine` with it on a simulated clock and host; after each of the machine's steps what it wants done is
//! compared with [`Rule`]s, which are kept apart from it: they know only what the host was told and what it answered. All chance is in
//! the script, so the same script gives the same events.
//!
//! When a rule is broken the [`Violation`] says which, and has the script. [`Script::shorten`] finds a shorter one that still
//! breaks it, and [`Script::history`] tells what happened in it, event by event.

#![forbid(unsafe_code)]

mod cast;
mod host;
mod process;
mod program;
mod random;
mod rules;
mod script;
mod shorten;
mod statistics;
mod step;

pub use cast::{CAST, Role};
pub use program::{Arrow, Bond, Group, Program, Wanted};
pub use rules::Rule;
pub use script::{Script, Violation};
pub use statistics::Statistics;
pub use step::Step;
