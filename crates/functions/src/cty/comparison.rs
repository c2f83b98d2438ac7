//! Equality of anything, and order of numbers.

use setpoint_value::{CallError, Equality, ParameterFlags, Type, Value, equals, function, less};

use super::{MODULE, argument, flags, not_null, outer_marks};

const ANYTHING: &[ParameterFlags] = &[flags("!?~")];
const NUMBERS: &[ParameterFlags] = &[flags("!~#")];

/// Whether two values are equal; values of different types are not.
#[function(
    raw,
    signature = "func(a dynamic, b dynamic) bool",
    parameters(
        /// Any value.
        a,
        /// What it is compared with.
        b,
    ),
    flags = ANYTHING,
    refine = not_null,
    example(call = "cty.equal([1, 2], [1, 2])", result = "true"),
    example(call = r#"cty.equal(1, "1")"#, result = "false")
)]
pub fn equal(arguments: &[Value], _: &Type) -> Result<Value, CallError> {
    equality(arguments, true)
}

/// Whether two values differ.
#[function(
    raw,
    signature = "func(a dynamic, b dynamic) bool",
    parameters(
        /// Any value.
        a,
        /// What it is compared with.
        b,
    ),
    flags = ANYTHING,
    refine = not_null,
    example(call = r#"cty.not_equal("a", "b")"#, result = "true")
)]
pub fn not_equal(arguments: &[Value], _: &Type) -> Result<Value, CallError> {
    equality(arguments, false)
}

fn equality(arguments: &[Value], wanted: bool) -> Result<Value, CallError> {
    Ok(match equals(argument(arguments, 0)?, argument(arguments, 1)?) {
        Equality::Equal => Value::Bool(wanted),
        Equality::Unequal => Value::Bool(!wanted),
        Equality::Unknown => Value::unknown(Type::Bool),
    })
}

/// Whether `a` is above `b`.
#[function(
    raw,
    signature = "func(a number, b number) bool",
    parameters(
        /// The number that the question is about.
        a,
        /// What it is compared with.
        b,
    ),
    flags = NUMBERS,
    refine = not_null,
    example(call = "cty.greater_than(2, 1)", result = "true")
)]
pub fn greater_than(arguments: &[Value], _: &Type) -> Result<Value, CallError> {
    ordered(arguments, (1, 0), false)
}

/// Whether `a` is `b` or above.
#[function(
    raw,
    signature = "func(a number, b number) bool",
    parameters(
        /// The number that the question is about.
        a,
        /// What it is compared with.
        b,
    ),
    flags = NUMBERS,
    refine = not_null,
    example(call = "cty.greater_than_or_equal_to(2, 2)", result = "true")
)]
pub fn greater_than_or_equal_to(arguments: &[Value], _: &Type) -> Result<Value, CallError> {
    ordered(arguments, (1, 0), true)
}

/// Whether `a` is below `b`.
#[function(
    raw,
    signature = "func(a number, b number) bool",
    parameters(
        /// The number that the question is about.
        a,
        /// What it is compared with.
        b,
    ),
    flags = NUMBERS,
    refine = not_null,
    example(call = "cty.less_than(2, 2)", result = "false")
)]
pub fn less_than(arguments: &[Value], _: &Type) -> Result<Value, CallError> {
    ordered(arguments, (0, 1), false)
}

/// Whether `a` is `b` or below.
#[function(
    raw,
    signature = "func(a number, b number) bool",
    parameters(
        /// The number that the question is about.
        a,
        /// What it is compared with.
        b,
    ),
    flags = NUMBERS,
    refine = not_null,
    example(call = "cty.less_than_or_equal_to(1.5, 1.5)", result = "true")
)]
pub fn less_than_or_equal_to(arguments: &[Value], _: &Type) -> Result<Value, CallError> {
    ordered(arguments, (0, 1), true)
}

fn ordered(arguments: &[Value], (a, b): (usize, usize), or_equal: bool) -> Result<Value, CallError> {
    let decided = less(argument(arguments, a)?, argument(arguments, b)?, or_equal);
    let result = decided.map_or_else(|| Value::unknown(Type::Bool), Value::Bool);
    Ok(result.with_marks(&outer_marks(arguments)))
}
