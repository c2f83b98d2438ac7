//! What `check` finds by evaluating a program without asking the machine anything: what is constant is as it will be on every host.

use std::time::Duration;

use setpoint_agent::prefix::Prefix;
use setpoint_engine::Preparation;
use setpoint_programs::failure::Failure;
use setpoint_programs::languages::compilation::Compilation;
use setpoint_programs::local_machine::{LocalMachine, Presence};

use crate::desired::{Evaluating, desired};
use crate::session::Session;

/// How long a program may compute.
const LIMIT: Duration = Duration::from_secs(10);

/// Evaluates a program in which nothing else is wrong, and adds what is wrong with its values, resources and edges to its diagnostics.
pub(super) fn evaluate(
    session: &Session,
    compilation: &mut Compilation,
    hostname: &str,
    prefix: Option<std::path::PathBuf>,
) -> Result<(), Failure> {
    let machine = LocalMachine::open(
        session.assembly.kind_names(),
        &session.output,
        hostname,
        Prefix::place(prefix)?,
        None,
        Presence::Onlooker,
    )?;
    let evaluating = Evaluating {
        timeout: LIMIT,
        pure: true,
        preparation: Preparation::default(),
    };
    desired(session, compilation, &machine, evaluating).map(drop)
}
