//! Sources that read something again whenever a timer or watch says that it may have changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::native::shown;
use crate::{
    Awaited, CallContext, CallError, CallSite, Capabilities, Source, Subscription, Timer, Type, Value, Wake,
};

/// A source made of a way to read and a way to be told.
///
/// ```
/// use setpoint_value::{CallContext, CallError, Follow, Timer, Value};
///
/// /// Whether there is a user `root`, looked at again each second.
/// static FOLLOW: Follow = Follow { read, watch, rearmed: false, keyed: false };
///
/// fn read(context: &CallContext<'_>, _: &[Value]) -> Result<Value, CallError> {
///     Ok(Value::Bool(context.capabilities.host().user_id("root").is_some()))
/// }
///
/// fn watch(context: &CallContext<'_>, _: &[Value]) -> Result<Vec<Timer>, CallError> {
///     let second = std::time::Duration::from_secs(1);
///     Ok(vec![context.capabilities.clock().every(second, context.wake.clone())])
/// }
/// ```
pub struct Follow {
    /// Reads the value for the arguments. In the background, where it may wait.
    pub read: ReadFn,
    /// Arms what tells, by the context's `wake`, when to read again. Armed before the first reading, so that no change is lost between.
    pub watch: WatchFn,
    /// Whether `watch` must be called again after each wake, because what it armed is used up or moves.
    pub rearmed: bool,
    /// Whether the first argument must stay what it was.
    pub keyed: bool,
}

type ReadFn = fn(&CallContext<'_>, &[Value]) -> Result<Value, CallError>;
type WatchFn = fn(&CallContext<'_>, &[Value]) -> Result<Vec<Timer>, CallError>;

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
            rearmed: self.rearmed,
            keyed: self.keyed,
            capabilities: context.capabilities.clone(),
            wake: context.wake.clone(),
            changed: Wake::new(move || {
                stale.store(true, Ordering::SeqCst);
                owner.wake();
            }),
            is_stale,
            site: context.site.clone(),
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
    read: ReadFn,
    watch: WatchFn,
    rearmed: bool,
    keyed: bool,
    capabilities: Arc<dyn Capabilities>,
    /// Says that there may be something to take.
    wake: Wake,
    /// What timers and watches call: there may be something to read.
    changed: Wake,
    /// Whether something may have changed since the last reading began.
    is_stale: Arc<AtomicBool>,
    site: CallSite,
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
        let must_arm = self.rearmed || self.guards.is_none();
        let (capabilities, wake) = (self.capabilities.clone(), self.changed.clone());
        let (site, result, arguments) = (self.site.clone(), self.result.clone(), self.arguments.clone());
        let work = move || {
            let context = CallContext {
                capabilities: &capabilities,
                wake,
                site,
                result: &result,
            };
            // Armed before reading, so that no change falls between.
            match must_arm.then(|| watch(&context, &arguments)).transpose() {
                Ok(guards) => (read(&context, &arguments), guards),
                Err(error) => (Err(error), None),
            }
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

    fn is_reading(&self) -> bool {
        self.reading.is_some()
    }

    fn update(&mut self, context: &CallContext<'_>, arguments: &[Value]) -> Result<(), CallError> {
        if self.arguments == arguments {
            return Ok(());
        }
        if self.keyed && self.arguments.first() != arguments.first() {
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
