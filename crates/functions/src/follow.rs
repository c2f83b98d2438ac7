//! Sources that read something again whenever a timer or watch says that it may have changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use setpoint_value::{
    Awaited, CallContext, CallError, Capabilities, Source, Subscription, Timer, Type, Value, Wake,
};

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
        let is_stale = Arc::new(AtomicBool::new(true));
        let (stale, owner) = (is_stale.clone(), context.wake.clone());
        Ok(Box::new(Following {
            read: self.read,
            watch: self.watch,
            rearm: self.rearm,
            fixed_key: self.fixed_key,
            capabilities: context.capabilities.clone(),
            wake: context.wake.clone(),
            changed: Wake::new(move || {
                stale.store(true, Ordering::SeqCst);
                owner.wake();
            }),
            is_stale,
            result: context.result.clone(),
            arguments: arguments.to_vec(),
            guards: None,
            reading: None,
            last: None,
        }))
    }
}

/// What reading in the background gives: the answer, and what was armed for it.
type Read = (Result<Value, CallError>, Option<Vec<Timer>>);

struct Following {
    read: fn(&Reading<'_>, &[Value]) -> Result<Value, CallError>,
    watch: fn(&Watching<'_>, &[Value]) -> Result<Vec<Timer>, CallError>,
    rearm: bool,
    fixed_key: bool,
    capabilities: Arc<dyn Capabilities>,
    /// Says that there may be something to take.
    wake: Wake,
    /// What timers and watches call: there may be something to read.
    changed: Wake,
    /// Whether something may have changed since the last reading began.
    is_stale: Arc<AtomicBool>,
    result: Type,
    arguments: Vec<Value>,
    /// Timers and watches, which end when they are dropped; none before they were armed for these arguments.
    guards: Option<Vec<Timer>>,
    reading: Option<Awaited<Read>>,
    last: Option<Result<Value, CallError>>,
}

impl Following {
    /// Begins to read, and to watch where that is not done yet: reading and watching may have to wait for the machine.
    fn begin(&mut self) {
        let (read, watch) = (self.read, self.watch);
        let must_arm = self.rearm || self.guards.is_none();
        let (capabilities, changed) = (self.capabilities.clone(), self.changed.clone());
        let (result, arguments) = (self.result.clone(), self.arguments.clone());
        let work = move || {
            // Armed before reading, so that no change falls between.
            let watching = Watching {
                capabilities: &*capabilities,
                wake: &changed,
            };
            let guards = match must_arm.then(|| watch(&watching, &arguments)).transpose() {
                Ok(guards) => guards,
                Err(error) => return (Err(error), None),
            };
            let reading = Reading {
                capabilities: &*capabilities,
                result: &result,
            };
            (read(&reading, &arguments), guards)
        };
        let background = self.capabilities.background();
        self.reading = Some(Awaited::begin(background, self.wake.clone(), work));
    }
}

impl Subscription for Following {
    fn take(&mut self) -> Option<Result<Value, CallError>> {
        let mut news = None;
        loop {
            if let Some(reading) = &mut self.reading {
                let Some((answer, guards)) = reading.take() else {
                    break;
                };
                self.reading = None;
                // The new ones were armed before the old ones go here.
                self.guards = guards.or(self.guards.take());
                if self.last.as_ref() != Some(&answer) {
                    self.last = Some(answer.clone());
                    news = Some(answer);
                }
            }
            if !self.is_stale.swap(false, Ordering::SeqCst) {
                break;
            }
            self.begin();
        }
        news
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
        // What is being read for the old arguments is of no interest any more.
        self.reading = None;
        self.guards = None;
        self.changed.wake();
        Ok(())
    }
}

/// A string argument as a path or name, marks aside.
pub(crate) fn text(arguments: &[Value], index: usize) -> Result<&str, CallError> {
    use setpoint_value::native::{Undecoded, argument};
    argument(arguments, index).map_err(|error| match error {
        Undecoded::Wrong(error) => CallError::Refused(error),
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
