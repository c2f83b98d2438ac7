//! `example`: for trying things out.

use std::time::Duration;

use setpoint_value::{CallContext, CallError, Class, Example, FunctionSpec, Module, Value, function};

use crate::follow::Follow;
use crate::golang::numbers;

pub(crate) mod nested;

pub(crate) static MODULE: Module = Module::new(
    "example",
    "For trying things out.",
    &[
        &ANSWER, &ERRORBOOL, &FLIPFLOP, &INT2STR, &PLUS, &STR2INT, &VUMETER,
    ],
);

/// 42.
#[function(example(call = "example.answer()", result = "42"))]
fn answer() -> i64 {
    42
}

/// Fails when it is told to.
#[function(
    environment,
    example(
        call = "example.errorbool(false)",
        result = r#""set input to true to generate an error""#
    )
)]
fn errorbool(_context: &CallContext<'_>, a: bool) -> Result<&'static str, CallError> {
    if a {
        return Err(CallError::fatal("we errored on request"));
    }
    Ok("set input to true to generate an error")
}

static FLIPFLOP: FunctionSpec = FunctionSpec::source(
    MODULE.name,
    "flipflop",
    &["func() bool"],
    Class::Source,
    &crate::test::Alternate {
        period: Duration::from_secs(5),
        values: |even| Value::Bool(even),
    },
)
.documented(
    "True, then false, in turn each 5 seconds.",
    &[Example {
        call: "example.flipflop()",
        result: "",
    }],
);

/// The number in decimal.
#[function(example(call = "example.int2str(7)", result = r#""7""#))]
fn int2str(a: i64) -> String {
    a.to_string()
}

/// One text after another.
#[function(example(call = r#"example.plus("a", "b")"#, result = r#""ab""#))]
fn plus(y: &[u8], z: &[u8]) -> Vec<u8> {
    [y, z].concat()
}

/// The number that a text spells in decimal; 0 if it spells none.
#[function(example(call = r#"example.str2int("x")"#, result = "0"))]
fn str2int(a: &[u8]) -> i64 {
    numbers::parse_int(a, 10, 64).unwrap_or(0)
}

static VUMETER: FunctionSpec = FunctionSpec::source(
    MODULE.name,
    "vumeter",
    &["func(symbol str, multiplier int, peak float) str"],
    Class::Source,
    &Follow::new(
        |_, _| Err(CallError::catchable("recording sound is not available")),
        |_, _| Ok(Vec::new()),
    ),
)
.documented("How loud it is; not available here.", &[]);
