//! Plans of random programs, compared with the runs that follow.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests say what they expect"
)]

mod host;
mod kinds;
mod play;
mod programs;
mod properties;
