//! The `exit` kind: ends the program.

use setpoint_engine::{Apply, Effect, Failure, Resource, async_trait};
use setpoint_graph::{Invalid, MetaParameters};

use crate::ProgramExit;

/// The end of the program, in order, with a status.
///
/// Under a service manager that restarts what exits, the program will run in circles.
#[derive(Debug, Resource)]
#[resource(kind = "exit", brings = nothing)]
pub(crate) struct Exit {
    /// The exit status, 0 to 125.
    code: u8,
}

/// Higher ones mean to shells that a program could not be run, or was killed.
const HIGHEST: u8 = 125;

#[async_trait]
impl Resource for Exit {
    fn validate(&self, _: &MetaParameters, invalid: &mut Vec<Invalid>) {
        if self.code > HIGHEST {
            let message = format!("an exit status is between 0 and {HIGHEST}");
            invalid.push(Invalid::parameter("code", message));
        }
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        if apply.act(
            Effect::Run,
            "exit",
            "running",
            format!("exit with status {}", self.code),
        ) {
            apply.handle().extension::<ProgramExit>()?.request(self.code);
        }
        Ok(())
    }
}
