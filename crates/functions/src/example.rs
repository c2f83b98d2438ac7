//! `example`: for trying things out.

use setpoint_value::{CallContext, CallError, Module, Value, function};

use crate::golang::numbers;
use crate::test::Alternate;

pub(crate) mod nested;

pub(crate) static MODULE: Module = Module::new(
    "example",
    "For trying things out.",
    &[
        &ANSWER, &ERRORBOOL, &FLIPFLOP, &INT2STR, &PLUS, &STR2INT, &VUMETER,
    ],
);

/// Always 42.
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
fn errorbool(
    _context: &CallContext<'_>,
    /// Whether to fail.
    a: bool,
) -> Result<&'static str, CallError> {
    if a {
        return Err(CallError::fatal("we errored on request"));
    }
    Ok("set input to true to generate an error")
}

/// True, then false, in turn each 5 seconds.
#[function(signature = "func() bool", example(call = "example.flipflop()", result = ""))]
static FLIPFLOP: Alternate = Alternate(Value::Bool);

/// The number in decimal.
#[function(example(call = "example.int2str(7)", result = r#""7""#))]
fn int2str(
    /// The number to format.
    a: i64,
) -> String {
    a.to_string()
}

/// One text after another.
#[function(example(call = r#"example.plus("a", "b")"#, result = r#""ab""#))]
fn plus(
    /// The first text.
    y: &[u8],
    /// The second text.
    z: &[u8],
) -> Vec<u8> {
    [y, z].concat()
}

/// The number that a text spells in decimal; 0 if it spells none.
#[function(example(call = r#"example.str2int("x")"#, result = "0"))]
fn str2int(
    /// Digits, with an optional sign.
    a: &[u8],
) -> i64 {
    numbers::parse_int(a, 10, 64).unwrap_or(0)
}

/// How loud it is; not available here.
#[function(source)]
fn vumeter(
    _context: &CallContext<'_>,
    /// The symbol that bars consist of.
    symbol: &str,
    /// The number of symbols at the loudest level.
    multiplier: i64,
    /// The loudest level.
    peak: f64,
) -> Result<String, CallError> {
    let _ = (symbol, multiplier, peak);
    Err(CallError::catchable("recording sound is not available"))
}
