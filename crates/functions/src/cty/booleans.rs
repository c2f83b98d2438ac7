//! Logic.

use setpoint_value::{CallError, Type, Value, function};

use super::{MODULE, flags, not_null, outer_marks, refuse};

/// `true` for `false` and the other way round.
#[function(
    raw,
    signature = "func(val bool) bool",
    parameters(
        /// What to turn round.
        val,
    ),
    flags = &[flags("!#")],
    refine = not_null,
    example(call = "cty.not(true)", result = "false")
)]
pub fn not(arguments: &[Value], _: &Type) -> Result<Value, CallError> {
    match arguments.first().and_then(Value::as_bool) {
        Some(value) => Ok(Value::Bool(!value).with_marks(&outer_marks(arguments))),
        None => refuse(0, "is not bool"),
    }
}

/// Whether both are true. One known `false` decides.
#[function(
    raw,
    signature = "func(a bool, b bool) bool",
    parameters(
        /// One side.
        a,
        /// The other side.
        b,
    ),
    flags = &[flags("~!#")],
    refine = not_null,
    example(call = "cty.and(true, false)", result = "false"),
    example(call = "cty.and(true, true)", result = "true")
)]
pub fn and(arguments: &[Value], _: &Type) -> Result<Value, CallError> {
    decided_by(arguments, false)
}

/// Whether one of them is true. One known `true` decides.
#[function(
    raw,
    signature = "func(a bool, b bool) bool",
    parameters(
        /// One side.
        a,
        /// The other side.
        b,
    ),
    flags = &[flags("~!#")],
    refine = not_null,
    example(call = "cty.or(true, false)", result = "true"),
    example(call = "cty.or(false, false)", result = "false")
)]
pub fn or(arguments: &[Value], _: &Type) -> Result<Value, CallError> {
    decided_by(arguments, true)
}

fn decided_by(arguments: &[Value], decisive: bool) -> Result<Value, CallError> {
    let sides: Vec<Option<bool>> = arguments.iter().map(Value::as_bool).collect();
    let result = if sides.contains(&Some(decisive)) {
        Value::Bool(decisive)
    } else if sides.contains(&None) {
        Value::unknown(Type::Bool)
    } else {
        Value::Bool(!decisive)
    };
    Ok(result.with_marks(&outer_marks(arguments)))
}
