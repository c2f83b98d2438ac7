//! Sources that read something again whenever a timer or watch says that it may have changed.

use std::sync::Arc;

use setpoint_value::{CallContext, CallError, Capabilities, Source, Subscription, Timer, Type, Value, Wake};

/// A source made of a way to read and a way to be told.
pub(crate) struct Follow {
    /// Reads the value for the arguments.
    pub read: fn(&Reading<'_>, &[Value]) -> Result<Value, CallError>,
    /// Arms what tells when to read again. Armed before the first reading, so that no change is lost between.
    pub watch: fn(&Watching<'_>, &[Value]) -> Result<Vec<Timer>, CallError>,
    /// Whether `watch` must be called again after each wake, because what it armed is used up or moves.
    pub rearm: bool,
    /// Whether the first argument must stay what it was.
    pub fixed_key: bool,
}

/// What a reading may use.
pub(crate) struct Reading<'a> {
    /// The machine.
    pub capabilities: &'a dyn Capabilities,
    /// The decided type of the result.
    pub result: &'a Type,
}

/// What arming may use.
pub(crate) struct Watching<'a> {
    /// The machine.
    pub capabilities: &'a dyn Capabilities,
    /// To be called when there may be something new.
    pub wake: &'a Wake,
}

impl Follow {
    /// Of functions without a fixed key whose watch lasts.
    pub(crate) const fn new(
        read: fn(&Reading<'_>, &[Value]) -> Result<Value, CallError>,
        watch: fn(&Watching<'_>, &[Value]) -> Result<Vec<Timer>, CallError>,
    ) -> Follow {
        Follow {
            read,
            watch,
            rearm: false,
            fixed_key: false,
        }
    }

    /// With a watch that is armed anew after each wake.
    pub(crate) const fn rearmed(mut self) -> Follow {
        self.rearm = true;
        self
    }

    /// With a first argument that must not change.
    pub(crate) const fn keyed(mut self) -> Follow {
        self.fixed_key = true;
        self
    }
}

impl Source for Follow {
    fn open(
        &self,
        context: &CallContext<'_>,
        arguments: &[Value],
    ) -> Result<Box<dyn Subscription>, CallError> {
        let mut following = Following {
            read: self.read,
            watch: self.watch,
            rearm: self.rearm,
            fixed_key: self.fixed_key,
            capabilities: context.capabilities.clone(),
            wake: context.wake.clone(),
            result: context.result.clone(),
            arguments: arguments.to_vec(),
            guards: Vec::new(),
            armed: false,
            last: None,
        };
        following.arm()?;
        Ok(Box::new(following))
    }
}

struct Following {
    read: fn(&Reading<'_>, &[Value]) -> Result<Value, CallError>,
    watch: fn(&Watching<'_>, &[Value]) -> Result<Vec<Timer>, CallError>,
    rearm: bool,
    fixed_key: bool,
    capabilities: Arc<dyn Capabilities>,
    wake: Wake,
    result: Type,
    arguments: Vec<Value>,
    /// Timers and watches, which end when they are dropped.
    guards: Vec<Timer>,
    /// Whether the guards were made since the last reading.
    armed: bool,
    last: Option<Result<Value, CallError>>,
}

impl Following {
    fn arm(&mut self) -> Result<(), CallError> {
        let watching = Watching {
            capabilities: &*self.capabilities,
            wake: &self.wake,
        };
        // The new ones are armed before the old ones go, so that no change falls between.
        self.guards = (self.watch)(&watching, &self.arguments)?;
        self.armed = true;
        Ok(())
    }
}

impl Subscription for Following {
    fn take(&mut self) -> Option<Result<Value, CallError>> {
        if self.rearm
            && !self.armed
            && let Err(error) = self.arm()
        {
            return Some(Err(error));
        }
        self.armed = false;
        let reading = Reading {
            capabilities: &*self.capabilities,
            result: &self.result,
        };
        let answer = (self.read)(&reading, &self.arguments);
        if self.last.as_ref() == Some(&answer) {
            return None;
        }
        self.last = Some(answer.clone());
        Some(answer)
    }

    fn update(&mut self, context: &CallContext<'_>, arguments: &[Value]) -> Result<(), CallError> {
        if self.arguments == arguments {
            return Ok(());
        }
        if self.fixed_key && self.arguments.first() != arguments.first() {
            let before = self.arguments.first().map(shown).unwrap_or_default();
            return Err(CallError::fatal(format!(
                "can't change key, previously: {before}"
            )));
        }
        self.arguments = arguments.to_vec();
        self.result = context.result.clone();
        self.last = None;
        self.arm()?;
        self.wake.wake();
        Ok(())
    }
}

/// A string argument as a path or name, marks aside.
pub(crate) fn text(arguments: &[Value], index: usize) -> Result<&str, CallError> {
    use setpoint_value::native::{Undecoded, argument};
    argument(arguments, index).map_err(|error| match error {
        Undecoded::Wrong(error) => CallError::Argument(error),
        Undecoded::Unknown => CallError::fatal("the argument is not known yet"),
    })
}

/// A value for a message: never what is sensitive, strings without quotes.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::Str(text) => text.to_lossy().into_owned(),
        other => other.to_string(),
    }
}
