//! `value`: named values of this host, which resources of the kind `value` set.

use setpoint_value::native::text;
use setpoint_value::{CallContext, CallError, Follow, Module, Timer, Type, Value, function};

pub(crate) static MODULE: Module = Module::new(
    "value",
    "Named values of this host, which the kind `value` sets.",
    &[&GET, &GET_BOOL, &GET_FLOAT, &GET_INT, &GET_STR],
);

macro_rules! get {
    ($($static:ident $signature:literal $call:literal => $result:literal;)*) => {
        $(
            /// The value of a key and whether it has one.
            ///
            /// While there is none, the value is the zero of its type.
            #[function(
                signature = $signature,
                parameters(
                    /// The name of the `value` resource that sets it. It must not change while the program runs.
                    key,
                ),
                example(call = $call, result = $result)
            )]
            static $static: Follow = Follow { read, watch, rearmed: false, keyed: true };
        )*
    };
}

get! {
    GET "func(key str) struct{value ?1; ready bool}" "value.get(\"nobody sets this\")->value + 1" => "1";
    GET_BOOL "func(key str) struct{value bool; ready bool}" "value.get_bool(\"nobody sets this\")->value" => "false";
    GET_FLOAT "func(key str) struct{value float; ready bool}" "value.get_float(\"nobody sets this\")->value" => "0.0";
    GET_INT "func(key str) struct{value int; ready bool}" "value.get_int(\"nobody sets this\")->value" => "0";
    GET_STR "func(key str) struct{value str; ready bool}" "value.get_str(\"nobody sets this\")->value" => "\"\"";
}

fn read(context: &CallContext<'_>, arguments: &[Value]) -> Result<Value, CallError> {
    let key = key(arguments)?;
    let wanted = context.result.as_struct().and_then(|ty| ty.field("value"));
    let wanted = wanted.filter(|ty| !ty.is_open());
    let wanted = wanted.ok_or_else(|| CallError::fatal("the type of the value is not known"))?;
    let stored = context.capabilities.values().and_then(|values| values.get(key));
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
        context.result.clone(),
        vec![value, Value::Bool(ready)],
    ))
}

fn zero(ty: &Type) -> Result<Value, CallError> {
    Value::zero(ty).ok_or_else(|| CallError::fatal(format!("{ty} has no zero value")))
}

fn watch(context: &CallContext<'_>, arguments: &[Value]) -> Result<Vec<Timer>, CallError> {
    let key = key(arguments)?;
    let values = context.capabilities.values();
    Ok(values
        .map(|values| values.watch(key, context.wake.clone()))
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
