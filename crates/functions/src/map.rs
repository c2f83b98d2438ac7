//! `map`: maps.

use setpoint_value::operators::{LOOKED_INTO, MAP_LOOKUP};
use setpoint_value::{CallError, List, Map, Module, Type, Value, function};

use crate::list::same_as;

pub(crate) static MODULE: Module = Module::new("map", "Maps.", &[&KEYS, &LOOKUP, &VALUES]);

/// All keys, sorted.
#[function(
    signature = "func(x map{?1: ?2}) []?1",
    example(call = r#"map.keys({"b" => 1, "a" => 2})"#, result = r#"["a", "b"]"#)
)]
fn keys(
    /// The map.
    x: &Map,
) -> List {
    List::new(x.key_type().clone(), x.iter().map(|(key, _)| key.clone()))
}

/// The value of `key`.
///
/// A missing key fails in a way that `<|>` catches.
#[function(
    raw,
    signature = "func(map map{?1: ?2}, key ?1) ?2",
    flags = LOOKED_INTO,
    parameters(
        /// The map to look into.
        map,
        /// The key to look for.
        key,
    ),
    example(call = r#"map.lookup({"a" => 1}, "a")"#, result = "1")
)]
fn lookup(arguments: &[Value], ty: &Type) -> Result<Value, CallError> {
    same_as(&MAP_LOOKUP, arguments, ty)
}

/// All values, in the order of their keys.
#[function(
    signature = "func(x map{?1: ?2}) []?2",
    flags = LOOKED_INTO,
    example(call = r#"map.values({"b" => 1, "a" => 2})"#, result = "[2, 1]")
)]
fn values(
    /// The map.
    x: &Value,
) -> Result<Value, CallError> {
    let map = x
        .as_map()
        .ok_or_else(|| CallError::fatal("only a map has values"))?;
    let values = map.iter().map(|(_, value)| value.clone());
    Ok(Value::List(List::new(map.value_type().clone(), values)).with_marks(&x.own_marks()))
}
