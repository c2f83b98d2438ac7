//! Parts that run beside the engine and show or share how the machine stands: metrics, drawings, the control socket, the member of a cluster.

use setpoint_engine::Engine;
use setpoint_programs::failure::Failure;
use setpoint_programs::local_machine::LocalMachine;
use setpoint_programs::report::Reporter;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::program_state::ProgramState;

/// A part that runs beside the engine.
pub trait Attachment {
    /// Starts when the engine has been started and before a program is.
    ///
    /// # Errors
    /// Why the agent cannot run without it.
    fn start(self: Box<Self>, agent: &AgentHandle) -> Result<Attached, Failure>;
}

/// What an attachment is given of the agent.
pub struct AgentHandle {
    /// Where its tasks run.
    pub runtime: Handle,
    /// The engine.
    pub engine: Engine,
    /// How the program stands.
    pub state: ProgramState,
    /// This machine.
    pub machine: LocalMachine,
    /// Where it reports what goes wrong.
    pub reporter: Reporter,
}

/// An attachment that was started.
pub enum Attached {
    /// Ends with the engine; nobody waits for it.
    EndsWithEngine,
    /// Has something left to do when the engine has ended. The agent waits for it, but not for long.
    Finishes(JoinHandle<()>),
    /// Ends when it is dropped, which is the first thing at the end.
    Guard(Box<dyn Send>),
}
