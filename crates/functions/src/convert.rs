//! `convert`: between the simple types.

use setpoint_value::{CallError, Module, function};

use crate::golang::numbers;

pub(crate) static MODULE: Module = Module::new(
    "convert",
    "Conversions between the simple types.",
    &[
        &FORMAT_BOOL,
        &INT_TO_STR,
        &PARSE_BOOL,
        &STR_TO_FLOAT,
        &STR_TO_INT,
        &TO_FLOAT,
        &TO_INT,
    ],
);

/// `true` or `false`.
#[function(example(call = "convert.format_bool(true)", result = r#""true""#))]
fn format_bool(
    /// The bool to format.
    a: bool,
) -> &'static str {
    if a { "true" } else { "false" }
}

/// The number in decimal.
#[function(example(call = "convert.int_to_str(42)", result = r#""42""#))]
fn int_to_str(
    /// The number to format.
    a: i64,
) -> String {
    a.to_string()
}

/// The bool that a text names: `1 t T TRUE true True` or `0 f F FALSE false False`.
///
/// Any other text fails in a way that `<|>` catches.
#[function(
    example(call = r#"convert.parse_bool("T")"#, result = "true"),
    example(call = r#"convert.parse_bool("yes") <|> false"#, result = "false")
)]
fn parse_bool(
    /// One of `1 t T TRUE true True 0 f F FALSE false False`.
    a: &[u8],
) -> Result<bool, CallError> {
    numbers::parse_bool(a)
        .ok_or_else(|| CallError::catchable(format!("invalid bool: `{}`", String::from_utf8_lossy(a))))
}

/// The float that a text spells, as Go reads it: `1.5`, `.5`, `1e3`, `0x1p-2`, `inf`, `nan`.
///
/// Any other text, and a number that is too big, fails in a way that `<|>` catches.
#[function(
    example(call = r#"convert.str_to_float("1e3")"#, result = "1000.0"),
    example(call = r#"convert.str_to_float("one") <|> 0.5"#, result = "0.5")
)]
fn str_to_float(
    /// A number as text: `2`, `-0.5`, `1e6`.
    a: &[u8],
) -> Result<f64, CallError> {
    numbers::parse_float(a, 64).map_err(|error| CallError::catchable(error.describe("float", a)))
}

/// The int that a text spells in decimal.
///
/// Any other text, and a number beyond 64 bits, fails in a way that `<|>` catches.
#[function(
    example(call = r#"convert.str_to_int("-42")"#, result = "-42"),
    example(call = r#"convert.str_to_int("1.0") <|> 7"#, result = "7")
)]
fn str_to_int(
    /// A whole number in decimal, as text.
    a: &[u8],
) -> Result<i64, CallError> {
    numbers::parse_int(a, 10, 64).map_err(|error| CallError::catchable(error.describe("int", a)))
}

/// The nearest float.
#[function(example(call = "convert.to_float(3)", result = "3.0"))]
fn to_float(
    /// The whole number.
    a: i64,
) -> f64 {
    a as f64
}

/// The int towards zero.
///
/// A number that no int comes near fails in a way that `<|>` catches.
#[function(
    example(call = "convert.to_int(-2.9)", result = "-2"),
    example(call = "convert.to_int(1000000000000000000000.0) <|> 0", result = "0")
)]
fn to_int(
    /// The number with a fraction.
    a: f64,
) -> Result<i64, CallError> {
    // 2^63 is exact as a float; everything below it truncates into range.
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&a) {
        Ok(a as i64)
    } else {
        Err(CallError::catchable(format!(
            "{} does not fit an int",
            setpoint_value::format_float(a)
        )))
    }
}
