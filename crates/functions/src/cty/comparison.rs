//! Equality of anything, and order of numbers.

use setpoint_value::{Equality, ParameterFlags, Type, Value, equals, function, less};

use super::{MODULE, flags, not_null, outer_marks};

const ANYTHING: &[ParameterFlags] = &[flags("!?~")];
const NUMBERS: &[ParameterFlags] = &[flags("!~#")];

/// Whether two values are equal; values of different types are not.
#[function(
    signature = "func(a dynamic, b dynamic) bool",
    flags = ANYTHING,
    refine = not_null,
    example(call = "cty.equal([1, 2], [1, 2])", result = "true"),
    example(call = r#"cty.equal(1, "1")"#, result = "false")
)]
pub fn equal(
    /// Any value.
    a: &Value,
    /// The value to compare it with.
    b: &Value,
) -> Value {
    equality(a, b, true)
}

/// Whether two values differ.
#[function(
    signature = "func(a dynamic, b dynamic) bool",
    flags = ANYTHING,
    refine = not_null,
    example(call = r#"cty.not_equal("a", "b")"#, result = "true")
)]
pub fn not_equal(
    /// Any value.
    a: &Value,
    /// The value to compare it with.
    b: &Value,
) -> Value {
    equality(a, b, false)
}

fn equality(a: &Value, b: &Value, wanted: bool) -> Value {
    match equals(a, b) {
        Equality::Equal => Value::Bool(wanted),
        Equality::Unequal => Value::Bool(!wanted),
        Equality::Unknown => Value::unknown(Type::Bool),
    }
}

/// Whether `a` is above `b`.
#[function(
    signature = "func(a number, b number) bool",
    flags = NUMBERS,
    refine = not_null,
    example(call = "cty.greater_than(2, 1)", result = "true")
)]
pub fn greater_than(
    /// The first number.
    a: &Value,
    /// The number to compare it with.
    b: &Value,
) -> Value {
    ordered(b, a, false)
}

/// Whether `a` is `b` or above.
#[function(
    signature = "func(a number, b number) bool",
    flags = NUMBERS,
    refine = not_null,
    example(call = "cty.greater_than_or_equal_to(2, 2)", result = "true")
)]
pub fn greater_than_or_equal_to(
    /// The first number.
    a: &Value,
    /// The number to compare it with.
    b: &Value,
) -> Value {
    ordered(b, a, true)
}

/// Whether `a` is below `b`.
#[function(
    signature = "func(a number, b number) bool",
    flags = NUMBERS,
    refine = not_null,
    example(call = "cty.less_than(2, 2)", result = "false")
)]
pub fn less_than(
    /// The first number.
    a: &Value,
    /// The number to compare it with.
    b: &Value,
) -> Value {
    ordered(a, b, false)
}

/// Whether `a` is `b` or below.
#[function(
    signature = "func(a number, b number) bool",
    flags = NUMBERS,
    refine = not_null,
    example(call = "cty.less_than_or_equal_to(1.5, 1.5)", result = "true")
)]
pub fn less_than_or_equal_to(
    /// The first number.
    a: &Value,
    /// The number to compare it with.
    b: &Value,
) -> Value {
    ordered(a, b, true)
}

/// Whether `a` is below `b`.
fn ordered(a: &Value, b: &Value, or_equal: bool) -> Value {
    let decided = less(a.unmarked(), b.unmarked(), or_equal);
    let result = decided.map_or_else(|| Value::unknown(Type::Bool), Value::Bool);
    result.with_marks(&outer_marks([a, b]))
}
