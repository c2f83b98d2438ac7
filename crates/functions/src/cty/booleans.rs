//! Logic.

use setpoint_value::{CallError, Type, Value, function};

use super::{MODULE, flags, not_null, outer_marks, refuse};

/// `true` for `false` and the other way round.
#[function(
    signature = "func(val bool) bool",
    flags = &[flags("!#")],
    refine = not_null,
    example(call = "cty.not(true)", result = "false")
)]
pub fn not(
    /// The bool to negate.
    val: &Value,
) -> Result<Value, CallError> {
    match val.as_bool() {
        Some(value) => Ok(Value::Bool(!value).with_marks(&outer_marks([val]))),
        None => refuse(0, "is not bool"),
    }
}

/// Whether both are true. One known `false` decides.
#[function(
    signature = "func(a bool, b bool) bool",
    flags = &[flags("~!#")],
    refine = not_null,
    example(call = "cty.and(true, false)", result = "false"),
    example(call = "cty.and(true, true)", result = "true")
)]
pub fn and(
    /// One side.
    a: &Value,
    /// The other side.
    b: &Value,
) -> Value {
    decided_by([a, b], false)
}

/// Whether one of them is true. One known `true` decides.
#[function(
    signature = "func(a bool, b bool) bool",
    flags = &[flags("~!#")],
    refine = not_null,
    example(call = "cty.or(true, false)", result = "true"),
    example(call = "cty.or(false, false)", result = "false")
)]
pub fn or(
    /// One side.
    a: &Value,
    /// The other side.
    b: &Value,
) -> Value {
    decided_by([a, b], true)
}

fn decided_by(arguments: [&Value; 2], decisive: bool) -> Value {
    let sides = arguments.map(Value::as_bool);
    let result = if sides.contains(&Some(decisive)) {
        Value::Bool(decisive)
    } else if sides.contains(&None) {
        Value::unknown(Type::Bool)
    } else {
        Value::Bool(!decisive)
    };
    result.with_marks(&outer_marks(arguments))
}
