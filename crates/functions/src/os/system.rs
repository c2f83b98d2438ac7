//! `os.system`: the newest line that a command prints.

use setpoint_value::{
    CallContext, CallError, Class, Example, FunctionSpec, RunningCommand, Source, Subscription, Value,
};

use super::MODULE;
use crate::follow::text;

pub(super) static SYSTEM: FunctionSpec = FunctionSpec::source(
    MODULE.name,
    "system",
    &["func(cmd str) str"],
    Class::Source,
    &System,
)
.documented(
    "The newest line that a shell command has printed, without its newline.\n\nThere is no value before the first \
     line; after the command's end the last line stays. Another `cmd` ends the running one.",
    &[Example {
        call: r#"os.system("echo hello")"#,
        result: "",
    }],
)
.unpredictable();

struct System;

impl Source for System {
    fn open(
        &self,
        context: &CallContext<'_>,
        arguments: &[Value],
    ) -> Result<Box<dyn Subscription>, CallError> {
        let mut following = Following {
            command: text(arguments, 0)?.to_owned(),
            running: None,
            refusal: None,
        };
        following.start(context);
        Ok(Box::new(following))
    }
}

struct Following {
    command: String,
    running: Option<Box<dyn RunningCommand>>,
    /// Why the command does not run, until it is given.
    refusal: Option<CallError>,
}

impl Following {
    fn start(&mut self, context: &CallContext<'_>) {
        // The old process group ends first: two commands must not work on the same thing at once.
        self.running = None;
        self.refusal = match context.capabilities.effects() {
            None => Some(CallError::catchable(
                "commands run only while the program is applied",
            )),
            Some(effects) => match effects.spawn_shell(&self.command, context.wake.clone()) {
                Ok(running) => {
                    self.running = Some(running);
                    None
                }
                Err(error) => Some(CallError::fatal(format!("can't run the command: {error}"))),
            },
        };
        if self.refusal.is_some() {
            context.wake.wake();
        }
    }
}

impl Subscription for Following {
    fn take(&mut self) -> Option<Result<Value, CallError>> {
        if let Some(refusal) = self.refusal.take() {
            return Some(Err(refusal));
        }
        let (lines, _) = self.running.as_mut()?.lines();
        lines.into_iter().last().map(|line| Ok(Value::str(line)))
    }

    fn update(&mut self, context: &CallContext<'_>, arguments: &[Value]) -> Result<(), CallError> {
        let command = text(arguments, 0)?;
        if command != self.command {
            command.clone_into(&mut self.command);
            self.start(context);
        }
        Ok(())
    }
}
