//! What all functions of the library have in common, and what each group has of its own.

mod examples;
mod groups;
mod laws;

use setpoint_value::{FunctionSpec, Type, Value};

use super::MODULE;

fn spec(name: &str) -> &'static FunctionSpec {
    MODULE
        .functions
        .iter()
        .find(|spec| spec.name == name)
        .unwrap_or_else(|| panic!("there is no `{name}`"))
}

fn call(name: &str, arguments: &[Value]) -> Result<Value, String> {
    spec(name).call(arguments).map_err(|error| error.to_string())
}

fn ty(text: &str) -> Type {
    Type::parse(text).unwrap_or_else(|| panic!("`{text}` is a type"))
}

fn s(text: &str) -> Value {
    Value::str(text)
}

fn i(int: i64) -> Value {
    Value::Int(int)
}

fn f(float: f64) -> Value {
    Value::float(float)
}

fn strings(items: &[&str]) -> Value {
    Value::strings(items.iter().copied())
}

fn ints(items: &[i64]) -> Value {
    Value::list(Type::Int, items.iter().copied().map(Value::Int))
}
