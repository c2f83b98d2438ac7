//! Attachments: parts of an agent that follow the engine and publish its state. Examples are metrics, drawings, the control socket and cluster membership.

use setpoint_engine::Engine;
use setpoint_programs::failure::Failure;
use setpoint_programs::local_machine::LocalMachine;
use setpoint_programs::report::Reporter;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::program_state::ProgramState;

/// A part of an agent that follows the engine.
pub trait Attachment {
    /// Starts the attachment: after the engine, and before the program.
    ///
    /// # Errors
    /// Why the agent cannot run without it.
    fn start(self: Box<Self>, agent: &AgentHandle) -> Result<Attached, Failure>;
}

/// The parts of the agent that an attachment can use.
pub struct AgentHandle {
    /// Where its tasks run.
    pub runtime: Handle,
    /// The engine.
    pub engine: Engine,
    /// The state of the program.
    pub state: ProgramState,
    /// This machine.
    pub machine: LocalMachine,
    /// For warnings and errors.
    pub reporter: Reporter,
}

/// An attachment that was started.
pub enum Attached {
    /// Ends with the engine. The agent does not wait for it.
    EndsWithEngine,
    /// Still has work when the engine has ended. The agent waits a few seconds for it.
    Finishes(JoinHandle<()>),
    /// Ends when it is dropped, which the agent does first.
    Guard(Box<dyn Send>),
}
