//! `os.system`: the newest line that a command prints.

use setpoint_value::native::text;
use setpoint_value::{CallContext, CallError, RunningCommand, Source, Subscription, Value, function};

use super::MODULE;

/// The newest line that a shell command has printed, without its newline.
///
/// There is no value before the first line; after the command's end the last line stays. Another `cmd` ends the running
/// one.
#[function(
    unpredictable,
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
        let effects = context.capabilities.effects();
        Ok(Box::new(Following {
            running: effects.map(|effects| effects.run_shell(&command, context.wake.clone())),
            command,
            is_refused: false,
        }))
    }
}

struct Following {
    command: String,
    /// None where nothing may be changed.
    running: Option<Box<dyn RunningCommand>>,
    /// Whether it was told that nothing may be changed.
    is_refused: bool,
}

impl Subscription for Following {
    fn take(&mut self) -> Option<Result<Value, CallError>> {
        let Some(running) = &mut self.running else {
            let refusal = CallError::catchable("commands run only while the program is applied");
            return (!std::mem::replace(&mut self.is_refused, true)).then_some(Err(refusal));
        };
        match running.lines() {
            Ok((lines, _)) => lines.into_iter().last().map(|line| Ok(Value::str(line))),
            Err(error) => Some(Err(CallError::fatal(format!("can't run the command: {error}")))),
        }
    }

    fn update(&mut self, _: &CallContext<'_>, arguments: &[Value]) -> Result<(), CallError> {
        let command = text(arguments, 0)?;
        if command != self.command {
            command.clone_into(&mut self.command);
            if let Some(running) = &mut self.running {
                running.replace(command);
            }
        }
        Ok(())
    }
}
