//! Calling a pure function with known arguments allocates nothing of its own.

use setpoint_value::{FunctionSpec, Type, Value, call::call_typed};

use crate::counting_allocator::allocations;

static LENGTH: FunctionSpec = FunctionSpec::pure(
    "test",
    "length",
    &["func(list []?1, default int) int"],
    |arguments, _| Ok(Value::Int(arguments[0].as_list().map_or(0, |l| l.len() as i64))),
)
.refined_by(|_, _| setpoint_value::Refinement::not_null());

static ECHO: FunctionSpec = FunctionSpec::pure("test", "echo", &["func(list []?1) []?1"], |arguments, _| {
    Ok(arguments[0].clone())
});

#[test]
fn a_call_with_known_arguments_allocates_only_its_result() {
    let list = Value::list(Type::Int, (0..10_000).map(Value::Int));
    let arguments = [list, Value::Int(0)];
    let (value, count) = allocations(|| call_typed(&LENGTH, &arguments, &Type::Int));
    assert_eq!(value, Ok(Value::Int(10_000)));
    assert_eq!(count, 0);
    let result = Type::list(Type::Int);
    let (value, count) = allocations(|| call_typed(&ECHO, &arguments[..1], &result));
    assert_eq!(value.unwrap(), arguments[0]);
    assert_eq!(count, 0);
}
