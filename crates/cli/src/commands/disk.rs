//! `setpoint disk`: tasks on the disks of this machine.

mod block_device;
mod grow;

use clap::{Args, Subcommand};
use setpoint_programs::failure::Failure;

use crate::session::Session;

/// Grow a file system to the size of its disk
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Grow(grow::Arguments),
}

pub(super) fn run(session: &Session, arguments: &Arguments) -> Result<u8, Failure> {
    match &arguments.what {
        What::Grow(arguments) => grow::run(&session.output, arguments),
    }
}
