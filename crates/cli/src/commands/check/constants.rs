//! The part of `check` that evaluates a program without the machine, to find errors in constant values, resources and edges.

use std::time::Duration;

use setpoint_agent::prefix::Prefix;
use setpoint_diagnostics::Severity;
use setpoint_engine::Preparation;
use setpoint_programs::failure::Failure;
use setpoint_programs::languages::compilation::Compilation;
use setpoint_programs::local_machine::{LocalMachine, Presence};

use crate::desired::{Evaluating, desired};
use crate::session::Session;

/// The time that a program may take.
const LIMIT: Duration = Duration::from_secs(10);

/// Evaluates a program that compiles, and adds the errors of its values, resources and edges to its diagnostics.
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
        false,
    )?;
    let evaluating = Evaluating {
        timeout: LIMIT,
        pure: true,
        preparation: Preparation::default(),
    };
    let before = std::mem::take(&mut compilation.diagnostics);
    let is_stopped = desired(session, compilation, &machine, evaluating)?.is_stopped;
    let found = std::mem::replace(&mut compilation.diagnostics, before);
    if is_stopped {
        session.output.warning(format!(
            "the values of the program take more than {} seconds to compute, and were not checked; `setpoint graph` computes them",
            LIMIT.as_secs()
        ));
        return Ok(());
    }
    // The linter has its doubts already, and knows which of them a comment allows.
    let errors = found.iter().filter(|found| found.severity == Severity::Error);
    compilation.diagnostics.extend(errors.cloned());
    Ok(())
}
