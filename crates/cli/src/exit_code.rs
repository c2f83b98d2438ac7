//! Exit codes of the program. No other module defines one.

use setpoint_agent::health::Health;
use setpoint_programs::failure::{Failure, FailureKind};

/// Done, also when a long-lived `run` was asked to stop.
pub const DONE: u8 = 0;
/// The input is wrong, or the machine refused, or the output could not be written.
pub const WRONG: u8 = 1;
/// Something was or would be changed: from `run` with `--detailed-exitcode`, and from `status` under `--noop`.
pub const CHANGED: u8 = 2;
/// From `status`: something is still in progress, or paused.
pub const UNDER_WAY: u8 = 3;
/// No agent is running, or it does not answer.
pub const NOT_RUNNING: u8 = 4;
/// The command line is wrong.
pub const USAGE: u8 = 64;
/// A bug in Setpoint.
pub const BUG: u8 = 70;
/// A signal interrupted the work; its number is added.
pub const SIGNAL: u8 = 128;

/// The exit code of a command that ends with this failure.
pub(crate) fn of(failure: &Failure) -> u8 {
    match failure.kind() {
        FailureKind::Usage => USAGE,
        FailureKind::Wrong => WRONG,
        FailureKind::NotRunning => NOT_RUNNING,
        FailureKind::ClosedPipe => DONE,
    }
}

/// The exit code of `status` for a machine that stands so.
pub(crate) fn of_health(health: Health) -> u8 {
    match health {
        Health::Wrong => WRONG,
        Health::UnderWay | Health::WaitingForHost => UNDER_WAY,
        Health::WouldChange => CHANGED,
        Health::Right => DONE,
    }
}
