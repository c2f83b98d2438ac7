//! `setpoint setup`: what is done once on a machine, so that it can be kept by Setpoint.

mod dependencies;
mod firstboot;
mod given_store;
mod pkg;
mod svc;
mod unit;
mod unit_words;

use clap::{Args, Subcommand};
use setpoint_programs::failure::Failure;

pub(super) use dependencies::packages_of;

use crate::session::Session;

/// Prepare a machine: packages, service unit, first-boot scripts
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Pkg(pkg::Arguments),
    Svc(Box<svc::Arguments>),
    Firstboot(firstboot::Arguments),
}

pub(super) fn run(session: &Session, arguments: &Arguments) -> Result<u8, Failure> {
    match &arguments.what {
        What::Pkg(arguments) => pkg::run(&session.output, arguments),
        What::Svc(arguments) => svc::run(&session.output, arguments),
        What::Firstboot(arguments) => firstboot::run(&session.output, arguments),
    }
}
