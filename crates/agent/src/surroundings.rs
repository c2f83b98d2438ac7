//! What programs need to run.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use setpoint_engine::Engine;
use setpoint_programs::SourceAccess;
use setpoint_programs::local_machine::LocalMachine;
use setpoint_programs::report::Reporter;

use crate::program_state::ProgramState;

/// What programs need to run.
#[derive(Clone)]
pub(crate) struct Surroundings {
    pub(crate) machine: LocalMachine,
    pub(crate) engine: Engine,
    pub(crate) reporter: Reporter,
    /// Takes the state of the program.
    pub(crate) state: ProgramState,
    /// Whether values that change make new graphs.
    pub(crate) follow: bool,
    /// The time that sources have for their first values; without it, as long as they take.
    pub(crate) first_values_within: Option<Duration>,
    /// The access of the program's sources to the machine.
    pub(crate) access: SourceAccess,
    /// Whether the newest graph lacks resources of other hosts that cannot be collected.
    pub(crate) lacks_collected: Arc<AtomicBool>,
}
