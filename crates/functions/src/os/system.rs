//! `os.system`: the newest line that a command prints.

use setpoint_value::native::text;
use setpoint_value::{CallContext, CallError, RunningCommand, Source, Subscription, Value, function};

use super::MODULE;

/// The newest line that a shell command has printed, without its newline.
///
/// There is no value before the first line. After the command's end the last line stays. A command that ends without a
/// line is an error that `<|>` catches. Another `cmd` ends the running one.
#[function(
    runs_commands,
    signature = "func(cmd str) str",
    parameters(
        /// The command for `/bin/sh -c`.
        cmd,
    ),
    example(call = r#"os.system("echo hello")"#, result = "")
)]
pub(super) static SYSTEM: System = System;

pub(super) struct System;

impl Source for System {
    fn open(
        &self,
        context: &CallContext<'_>,
        arguments: &[Value],
    ) -> Result<Box<dyn Subscription>, CallError> {
        let command = text(arguments, 0)?.to_owned();
        let commands = context.capabilities.commands();
        Ok(Box::new(Following {
            running: commands.map(|commands| commands.run_shell(&command, context.wake.clone())),
            command,
            has_answered: false,
        }))
    }
}

struct Following {
    command: String,
    /// None where no command may run.
    running: Option<Box<dyn RunningCommand>>,
    /// Whether the command that is wanted has given a value or an error.
    has_answered: bool,
}

impl Subscription for Following {
    fn take(&mut self) -> Option<Result<Value, CallError>> {
        let Some(running) = &mut self.running else {
            let refusal = CallError::catchable("commands run only while the program is applied");
            return (!std::mem::replace(&mut self.has_answered, true)).then_some(Err(refusal));
        };
        let answer = match running.lines() {
            Ok((mut lines, end)) => match (lines.pop(), end) {
                (Some(line), _) => Ok(Value::str(line)),
                (None, Some(end)) if !self.has_answered => Err(CallError::catchable(format!(
                    "the command ended without printing a line ({end})"
                ))),
                (None, _) => return None,
            },
            Err(error) => Err(CallError::catchable(format!("cannot run the command: {error}"))),
        };
        self.has_answered = true;
        Some(answer)
    }

    fn update(&mut self, _: &CallContext<'_>, arguments: &[Value]) -> Result<(), CallError> {
        let command = text(arguments, 0)?;
        if command != self.command {
            command.clone_into(&mut self.command);
            if let Some(running) = &mut self.running {
                running.replace(command);
                self.has_answered = false;
            }
        }
        Ok(())
    }
}
