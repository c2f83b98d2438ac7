//! `history`: a value as it was a while ago.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use setpoint_value::{
    CallContext, CallError, Capabilities, Source, Subscription, Timer, Value, Wake, function,
};

use super::MODULE;

/// The value of the first argument `index` milliseconds ago.
///
/// Until so much time has passed, the oldest value there is. It changes by itself, when a value becomes old enough.
#[function(
    stateful,
    signature = "func(value ?1, index int) ?1",
    parameters(
        /// The value to remember, usually one that changes on its own.
        value,
        /// The age of the value in milliseconds; not negative.
        index,
    ),
    example(call = "history(42, 1000)", result = "42")
)]
pub(super) static HISTORY: History = History;

/// However often the value changes, no more than this many of its values are remembered, evenly spread over the time.
const RESOLUTION: u32 = 10_000;

pub(super) struct History;

impl Source for History {
    fn open(
        &self,
        context: &CallContext<'_>,
        arguments: &[Value],
    ) -> Result<Box<dyn Subscription>, CallError> {
        let (value, delay) = decode(arguments)?;
        let now = context.capabilities.clock().now();
        Ok(Box::new(Remembered {
            capabilities: context.capabilities.clone(),
            wake: context.wake.clone(),
            delay,
            values: VecDeque::from([(now, value.clone())]),
            timer: None,
            last: None,
        }))
    }
}

struct Remembered {
    capabilities: Arc<dyn Capabilities>,
    wake: Wake,
    delay: Duration,
    /// Values with the time from which on they held, oldest first. Never empty.
    values: VecDeque<(Duration, Value)>,
    /// Wakes when the second value becomes old enough.
    timer: Option<Timer>,
    last: Option<Value>,
}

impl Subscription for Remembered {
    fn take(&mut self) -> Option<Result<Value, CallError>> {
        let now = self.capabilities.clock().now();
        while self
            .values
            .get(1)
            .is_some_and(|(since, _)| *since + self.delay <= now)
        {
            self.values.pop_front();
        }
        self.timer = self.values.get(1).map(|(since, _)| {
            let delay = (*since + self.delay).saturating_sub(now);
            self.capabilities.clock().after(delay, self.wake.clone())
        });
        let (_, answer) = self.values.front()?;
        if self.last.as_ref() == Some(answer) {
            return None;
        }
        self.last = Some(answer.clone());
        Some(Ok(answer.clone()))
    }

    fn update(&mut self, context: &CallContext<'_>, arguments: &[Value]) -> Result<(), CallError> {
        let (value, delay) = decode(arguments)?;
        let now = context.capabilities.clock().now();
        if delay != self.delay {
            self.delay = delay;
            self.values.clear();
        }
        let fineness = self.delay / RESOLUTION;
        let count = self.values.len();
        match self.values.back_mut() {
            Some((_, newest)) if newest == value => {}
            Some((since, newest)) if count > 1 && now.saturating_sub(*since) < fineness => {
                *newest = value.clone();
            }
            _ => self.values.push_back((now, value.clone())),
        }
        self.last = None;
        self.wake.wake();
        Ok(())
    }
}

fn decode(arguments: &[Value]) -> Result<(&Value, Duration), CallError> {
    let [value, index] = arguments else {
        return Err(CallError::fatal("a value and an index are needed"));
    };
    let index = index
        .as_int()
        .ok_or_else(|| CallError::fatal("the index is not known"))?;
    let index =
        u64::try_from(index).map_err(|_| CallError::fatal(format!("can't use a negative index: {index}")))?;
    // The clock counts nanoseconds in 64 bits seconds; a century is as good as for ever.
    Ok((value, Duration::from_millis(index.min(100 * 366 * 86_400_000))))
}
