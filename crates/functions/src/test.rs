//! `test`: sources and functions for tests of the language itself.

use std::sync::Arc;
use std::time::Duration;

use setpoint_value::{
    CallContext, CallError, Capabilities, Class, Example, FunctionSpec, Map, Module, Source, Subscription,
    Timer, Type, Value,
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

static FASTCOUNT: FunctionSpec = FunctionSpec::source(
    MODULE.name,
    "fastcount",
    &["func() int"],
    Class::Source,
    &FastCount,
)
.documented(
    "Counts up from 0 as fast as it can.",
    &[Example {
        call: "test.fastcount()",
        result: "",
    }],
);

static FORKVLOOP: FunctionSpec = FunctionSpec::source(
    MODULE.name,
    "forkvloop",
    &["func() map{str: str}"],
    Class::Source,
    &Alternate {
        period: Duration::from_secs(5),
        values: |even| {
            let (key, value) = if even { ("foo", "bar") } else { ("bar", "baz") };
            Value::Map(Map::new(
                Type::Str,
                Type::Str,
                [(Value::str(key), Value::str(value))],
            ))
        },
    },
)
.documented(
    "A map that is another one each 5 seconds.",
    &[Example {
        call: "test.forkvloop()",
        result: "",
    }],
);

static FORLOOP: FunctionSpec = FunctionSpec::source(
    MODULE.name,
    "forloop",
    &["func() []str"],
    Class::Source,
    &Alternate {
        period: Duration::from_secs(5),
        values: |even| Value::strings([if even { "foo" } else { "bar" }]),
    },
)
.documented(
    "A list that is another one each 5 seconds.",
    &[Example {
        call: "test.forloop()",
        result: "",
    }],
);

macro_rules! one_instance {
    ($($static:ident $name:literal $class:ident,)*) => {
        $(static $static: FunctionSpec = FunctionSpec::source(
            MODULE.name,
            $name,
            &["func() str"],
            Class::$class,
            &setpoint_value::ReadOnce {
                read: |_, _| Ok(Value::str("hello")),
                reads_module_directory: false,
            },
        )
        .documented(
            "A text, for tests of how often a call is made.",
            &[Example { call: concat!("test.", $name, "()"), result: "\"hello\"" }],
        );)*
    };
}

one_instance! {
    ONE_INSTANCE_A "one_instance_a" Source,
    ONE_INSTANCE_B "one_instance_b" Environment,
    ONE_INSTANCE_C "one_instance_c" Source,
    ONE_INSTANCE_D "one_instance_d" Environment,
    ONE_INSTANCE_E "one_instance_e" Source,
    ONE_INSTANCE_F "one_instance_f" Environment,
    ONE_INSTANCE_G "one_instance_g" Source,
    ONE_INSTANCE_H "one_instance_h" Environment,
}

static ONE_STREAM: FunctionSpec = FunctionSpec::source(
    MODULE.name,
    "one_stream",
    &["func(count int) str"],
    Class::Source,
    &OneStream,
)
.documented(
    "So many `x`; its argument must not change.",
    &[Example {
        call: "test.one_stream(3)",
        result: "\"xxx\"",
    }],
);

static SLOW_STRING: FunctionSpec = FunctionSpec::source(
    MODULE.name,
    "slow_string",
    &["func() str"],
    Class::Source,
    &SlowString,
)
.documented(
    "A text after 5 seconds.",
    &[Example {
        call: "test.slow_string()",
        result: "",
    }],
);

/// Two values in turn.
pub(crate) struct Alternate {
    /// How long each holds.
    pub period: Duration,
    /// The first for true, the second for false.
    pub values: fn(bool) -> Value,
}

impl Source for Alternate {
    fn open(&self, context: &CallContext<'_>, _: &[Value]) -> Result<Box<dyn Subscription>, CallError> {
        let clock = context.capabilities.clock();
        Ok(Box::new(Alternating {
            values: self.values,
            period: self.period,
            start: clock.now(),
            capabilities: context.capabilities.clone(),
            _timer: clock.every(self.period, context.wake.clone()),
            last: None,
        }))
    }
}

struct Alternating {
    values: fn(bool) -> Value,
    period: Duration,
    start: Duration,
    capabilities: Arc<dyn Capabilities>,
    _timer: Timer,
    last: Option<bool>,
}

impl Subscription for Alternating {
    fn take(&mut self) -> Option<Result<Value, CallError>> {
        let since = self.capabilities.clock().now().saturating_sub(self.start);
        let even = (since.as_nanos() / self.period.as_nanos().max(1)).is_multiple_of(2);
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
