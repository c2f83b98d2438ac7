//! `test`: sources and functions for tests of the language itself.

use std::sync::Arc;
use std::time::Duration;

use setpoint_value::{
    CallContext, CallError, Capabilities, Map, Module, Source, Subscription, Timer, Type, Value, function,
};

pub(crate) static MODULE: Module = Module::new(
    "test",
    "For tests of the language itself.",
    &[
        &FASTCOUNT,
        &FORKVLOOP,
        &FORLOOP,
        &ONE_INSTANCE_A,
        &ONE_INSTANCE_B,
        &ONE_INSTANCE_C,
        &ONE_INSTANCE_D,
        &ONE_INSTANCE_E,
        &ONE_INSTANCE_F,
        &ONE_INSTANCE_G,
        &ONE_INSTANCE_H,
        &ONE_STREAM,
        &SLOW_STRING,
    ],
);

/// Counts up from 0 as fast as it can.
#[function(signature = "func() int", example(call = "test.fastcount()", result = ""))]
static FASTCOUNT: FastCount = FastCount;

/// A map that is another one each 5 seconds.
#[function(
    signature = "func() map{str: str}",
    example(call = "test.forkvloop()", result = "")
)]
static FORKVLOOP: Alternate = Alternate(|even| {
    let (key, value) = if even { ("foo", "bar") } else { ("bar", "baz") };
    Value::Map(Map::new(
        Type::Str,
        Type::Str,
        [(Value::str(key), Value::str(value))],
    ))
});

/// A list that is another one each 5 seconds.
#[function(signature = "func() []str", example(call = "test.forloop()", result = ""))]
static FORLOOP: Alternate = Alternate(|even| Value::strings([if even { "foo" } else { "bar" }]));

macro_rules! one_instance {
    ($($name:ident $class:ident $call:literal,)*) => {
        $(
            /// A text, for tests of how often a call is made.
            #[function($class, example(call = $call, result = "\"hello\""))]
            fn $name(_context: &CallContext<'_>) -> &'static str {
                "hello"
            }
        )*
    };
}

one_instance! {
    one_instance_a source "test.one_instance_a()",
    one_instance_b environment "test.one_instance_b()",
    one_instance_c source "test.one_instance_c()",
    one_instance_d environment "test.one_instance_d()",
    one_instance_e source "test.one_instance_e()",
    one_instance_f environment "test.one_instance_f()",
    one_instance_g source "test.one_instance_g()",
    one_instance_h environment "test.one_instance_h()",
}

/// So many `x`.
#[function(
    signature = "func(count int) str",
    parameters(
        /// The count. It must not change while the program runs.
        count,
    ),
    example(call = "test.one_stream(3)", result = "\"xxx\"")
)]
static ONE_STREAM: OneStream = OneStream;

/// A text after 5 seconds.
#[function(signature = "func() str", example(call = "test.slow_string()", result = ""))]
static SLOW_STRING: SlowString = SlowString;

/// Two values in turn, the first for true and the second for false, each for [`PERIOD`].
pub(crate) struct Alternate(pub fn(bool) -> Value);

const PERIOD: Duration = Duration::from_secs(5);

impl Source for Alternate {
    fn open(&self, context: &CallContext<'_>, _: &[Value]) -> Result<Box<dyn Subscription>, CallError> {
        let clock = context.capabilities.clock();
        Ok(Box::new(Alternating {
            values: self.0,
            start: clock.now(),
            capabilities: context.capabilities.clone(),
            _timer: clock.every(PERIOD, context.wake.clone()),
            last: None,
        }))
    }
}

struct Alternating {
    values: fn(bool) -> Value,
    start: Duration,
    capabilities: Arc<dyn Capabilities>,
    _timer: Timer,
    last: Option<bool>,
}

impl Subscription for Alternating {
    fn take(&mut self) -> Option<Result<Value, CallError>> {
        let since = self.capabilities.clock().now().saturating_sub(self.start);
        let even = (since.as_nanos() / PERIOD.as_nanos()).is_multiple_of(2);
        (self.last.replace(even) != Some(even)).then(|| Ok((self.values)(even)))
    }

    fn update(&mut self, _: &CallContext<'_>, _: &[Value]) -> Result<(), CallError> {
        Ok(())
    }
}

struct FastCount;

impl Source for FastCount {
    fn open(&self, context: &CallContext<'_>, _: &[Value]) -> Result<Box<dyn Subscription>, CallError> {
        let timer = context
            .capabilities
            .clock()
            .every(Duration::ZERO, context.wake.clone());
        Ok(Box::new(FastCounting {
            next: 0,
            _timer: timer,
        }))
    }
}

struct FastCounting {
    next: i64,
    _timer: Timer,
}

impl Subscription for FastCounting {
    fn take(&mut self) -> Option<Result<Value, CallError>> {
        let value = self.next;
        self.next = value.wrapping_add(1);
        Some(Ok(Value::Int(value)))
    }

    fn update(&mut self, _: &CallContext<'_>, _: &[Value]) -> Result<(), CallError> {
        Ok(())
    }
}

struct SlowString;

impl Source for SlowString {
    fn open(&self, context: &CallContext<'_>, _: &[Value]) -> Result<Box<dyn Subscription>, CallError> {
        const DELAY: Duration = Duration::from_secs(5);
        let clock = context.capabilities.clock();
        Ok(Box::new(SlowAnswer {
            due: clock.now() + DELAY,
            given: false,
            capabilities: context.capabilities.clone(),
            _timer: clock.after(DELAY, context.wake.clone()),
        }))
    }
}

struct SlowAnswer {
    due: Duration,
    given: bool,
    capabilities: Arc<dyn Capabilities>,
    _timer: Timer,
}

impl Subscription for SlowAnswer {
    fn take(&mut self) -> Option<Result<Value, CallError>> {
        if self.given || self.capabilities.clock().now() < self.due {
            return None;
        }
        self.given = true;
        Some(Ok(Value::str("five seconds has elapsed")))
    }

    fn update(&mut self, _: &CallContext<'_>, _: &[Value]) -> Result<(), CallError> {
        Ok(())
    }
}

struct OneStream;

impl Source for OneStream {
    fn open(&self, _: &CallContext<'_>, arguments: &[Value]) -> Result<Box<dyn Subscription>, CallError> {
        let count = count(arguments)?;
        let length = usize::try_from(count).unwrap_or(0);
        let answer = crate::golang::text::repeat(b"x", length).map(Value::str);
        Ok(Box::new(OneStreaming {
            count,
            answer: Some(answer),
        }))
    }
}

struct OneStreaming {
    count: i64,
    answer: Option<Result<Value, CallError>>,
}

impl Subscription for OneStreaming {
    fn take(&mut self) -> Option<Result<Value, CallError>> {
        self.answer.take()
    }

    fn update(&mut self, _: &CallContext<'_>, arguments: &[Value]) -> Result<(), CallError> {
        if count(arguments)? == self.count {
            Ok(())
        } else {
            Err(CallError::fatal("can't change the argument of a single stream"))
        }
    }
}

fn count(arguments: &[Value]) -> Result<i64, CallError> {
    let count = arguments.first().and_then(Value::as_int);
    count.ok_or_else(|| CallError::fatal("the count is not known"))
}
