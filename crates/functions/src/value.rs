//! `value`: named values of this host, which resources of the kind `value` set.

use setpoint_value::{CallError, Class, Example, FunctionSpec, Module, Timer, Type, Value};

use crate::follow::{Follow, Reading, Watching, text};

pub(crate) static MODULE: Module = Module::new(
    "value",
    "Named values of this host, which the kind `value` sets.",
    &[&GET, &GET_BOOL, &GET_FLOAT, &GET_INT, &GET_STR],
);

static FOLLOW: Follow = Follow::new(read, watch).keyed();

const DOC: &str = "The value of a key and whether it has one. It follows changes.\n\nWhile there is none, the value is \
                   the zero of its type.";

macro_rules! get {
    ($($static:ident $name:literal $ty:literal $use:literal => $result:literal;)*) => {
        $(static $static: FunctionSpec = FunctionSpec::source(
            MODULE.name,
            $name,
            &[concat!("func(key str) struct{value ", $ty, "; ready bool}")],
            Class::Source,
            &FOLLOW,
        )
        .documented(DOC, &[Example {
            call: concat!("value.", $name, "(\"nobody sets this\")->value", $use),
            result: $result,
        }]);)*
    };
}

get! {
    GET "get" "?1" " + 1" => "1";
    GET_BOOL "get_bool" "bool" "" => "false";
    GET_FLOAT "get_float" "float" "" => "0.0";
    GET_INT "get_int" "int" "" => "0";
    GET_STR "get_str" "str" "" => "\"\"";
}

fn read(reading: &Reading<'_>, arguments: &[Value]) -> Result<Value, CallError> {
    let key = key(arguments)?;
    let wanted = reading.result.as_struct().and_then(|ty| ty.field("value"));
    let wanted = wanted.filter(|ty| !ty.is_open());
    let wanted = wanted.ok_or_else(|| CallError::fatal("the type of the value is not known"))?;
    let stored = reading.capabilities.values().and_then(|values| values.get(key));
    let (value, ready) = match stored {
        Some(value) if value.ty() == *wanted => (value, true),
        Some(value) => {
            return Err(CallError::fatal(format!(
                "the value is of type {}, not {wanted}",
                value.ty()
            )));
        }
        None => (zero(wanted)?, false),
    };
    Ok(Value::structure(
        reading.result.clone(),
        vec![value, Value::Bool(ready)],
    ))
}

fn zero(ty: &Type) -> Result<Value, CallError> {
    Value::zero(ty).ok_or_else(|| CallError::fatal(format!("{ty} has no zero value")))
}

fn watch(watching: &Watching<'_>, arguments: &[Value]) -> Result<Vec<Timer>, CallError> {
    let key = key(arguments)?;
    let values = watching.capabilities.values();
    Ok(values
        .map(|values| values.watch(key, watching.wake.clone()))
        .into_iter()
        .collect())
}

fn key(arguments: &[Value]) -> Result<&str, CallError> {
    let key = text(arguments, 0)?;
    if key.is_empty() {
        return Err(CallError::fatal("the key must not be empty"));
    }
    Ok(key)
}
