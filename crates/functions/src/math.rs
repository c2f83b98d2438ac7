//! `math`: numbers, with errors where the mathematics has no answer.

use setpoint_value::{CallError, Module, Type, Value, function};

pub(crate) static MODULE: Module = Module::new(
    "math",
    "Arithmetic beyond the operators.",
    &[&FORTYTWO, &MINUS1, &MOD, &POW, &SQRT],
);

/// 42 or 42.0, whichever is wanted.
#[function(
    raw,
    signature = "func() int",
    signature = "func() float",
    example(call = "1 + math.fortytwo()", result = "43")
)]
fn fortytwo(_: &[Value], ty: &Type) -> Result<Value, CallError> {
    match ty {
        Type::Int => Ok(Value::Int(42)),
        Type::Float => Ok(Value::float(42.0)),
        _ => Err(CallError::fatal("the result is an int or a float")),
    }
}

/// One less.
#[function(example(call = "math.minus1(43)", result = "42"))]
fn minus1(
    /// Any int.
    x: i64,
) -> Result<i64, CallError> {
    x.checked_sub(1)
        .ok_or_else(|| CallError::catchable("the result does not fit an int"))
}

/// The remainder of a division, with the sign of the dividend.
///
/// A divisor of zero fails in a way that `<|>` catches.
#[function(
    name = "mod",
    signature = "func(x ?1: int | float, y ?1) ?1",
    example(call = "math.mod(-7, 3)", result = "-1"),
    example(call = "math.mod(7.5, 2.0)", result = "1.5")
)]
fn r#mod(
    /// The dividend.
    x: &Value,
    /// The divisor, not zero.
    y: &Value,
) -> Result<Value, CallError> {
    match (x, y) {
        (Value::Int(_), Value::Int(0)) => Err(CallError::catchable("result is not a number")),
        // The smallest int by −1 has no quotient, but its remainder is 0.
        (Value::Int(x), Value::Int(y)) => Ok(Value::Int(x.wrapping_rem(*y))),
        (Value::Float(x), Value::Float(y)) => finite(x.0 % y.0).map(Value::float),
        _ => Err(CallError::fatal("the operand types do not fit")),
    }
}

/// `x` to the power of `y`.
///
/// A result that is infinite or no number fails in a way that `<|>` catches.
#[function(
    example(call = "math.pow(2.0, 10.0)", result = "1024.0"),
    example(call = "math.pow(0.0, -1.0) <|> 0.0", result = "0.0")
)]
fn pow(
    /// The base.
    x: f64,
    /// The exponent.
    y: f64,
) -> Result<f64, CallError> {
    finite(x.powf(y))
}

/// The square root.
///
/// That of a negative number fails in a way that `<|>` catches.
#[function(
    example(call = "math.sqrt(9.0)", result = "3.0"),
    example(call = "math.sqrt(-1.0) <|> 0.0", result = "0.0")
)]
fn sqrt(
    /// Any number that is not negative.
    x: f64,
) -> Result<f64, CallError> {
    finite(x.sqrt())
}

fn finite(result: f64) -> Result<f64, CallError> {
    let problem = if result.is_nan() {
        "result is not a number"
    } else if result == f64::INFINITY {
        "result is positive infinity"
    } else if result == f64::NEG_INFINITY {
        "result is negative infinity"
    } else {
        return Ok(result);
    };
    Err(CallError::catchable(problem))
}
