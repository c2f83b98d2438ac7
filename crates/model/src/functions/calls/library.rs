//! Calls of functions of the shared library: data become values, and values data again.
//!
//! A list is handed over as a list if its elements have a type in common, else as a tuple; a dict as a map, else as a struct. Instances are
//! opaque to the library.

use std::sync::Arc;

use setpoint_value::{
    CallError, FunctionRef, FunctionSpec, Implementation, Opaque, Signature, Type, Value,
    call::{call, call_unpredictable},
    convert, convert_arguments, unify,
};

use super::binding::{Bound, Shape, Takes, bind};
use crate::datum::{Datum, Dict, InstanceId};
use crate::functions::context::{Arguments, Context, Failure, Unknowns};

/// Why a call has no result.
pub(super) enum Refused {
    /// Too many, too few or wrongly named arguments.
    Arguments(String),
    /// An argument or the result is of the wrong type.
    Type(String),
    /// Anything else.
    Failure(Failure),
}

/// Calls a function of the library.
pub(super) fn call_library(
    name: &str,
    function: &FunctionRef,
    arguments: Arguments,
    unknown_keywords: bool,
    context: &mut dyn Context,
) -> Result<Datum, Refused> {
    if takes_functions(function) {
        return Err(Refused::Type(format!(
            "function `{name}` takes functions, which there are none of in this language"
        )));
    }
    let arguments = arrange(name, function, arguments, unknown_keywords)?;
    if unknown_keywords {
        return Ok(context.unknowns().create());
    }
    let values = arguments
        .iter()
        .map(to_value)
        .collect::<Result<Vec<Value>, String>>()
        .map_err(|reason| Refused::Type(format!("an argument of function `{name}` {reason}")))?;
    let values = convert_arguments(function, &values);
    let result = match &function.implementation {
        _ if function.unpredictable => call_unpredictable(function, &values),
        Implementation::Pure(_) => call(function, &values),
        Implementation::Source(_) | Implementation::Shape(_) => context.source(function, &values),
    };
    match result {
        Ok(value) => to_datum(&value, context.unknowns())
            .map_err(|reason| Refused::Type(format!("the result of function `{name}` {reason}"))),
        Err(CallError::Argument(error)) if error.index.is_some() => Err(Refused::Type(format!(
            "an argument of function `{name}` has incompatible type: {error}"
        ))),
        Err(CallError::Argument(error)) => Err(Refused::Arguments(format!("{name}(): {error}"))),
        Err(error) => Err(Refused::Failure(Failure::Other(error.to_string()))),
    }
}

fn takes_functions(function: &FunctionSpec) -> bool {
    function.alternatives().iter().any(|signature| {
        let parameters = signature.parameters.iter().chain(&signature.variadic);
        parameters
            .into_iter()
            .any(|parameter| parameter.ty.contains_func())
    })
}

/// Arguments in the order of the parameters, by the first signature that takes them.
fn arrange(
    name: &str,
    function: &FunctionSpec,
    arguments: Arguments,
    unknown_keywords: bool,
) -> Result<Vec<Datum>, Refused> {
    let mut refusal = None;
    for signature in function.alternatives() {
        let shapes = shapes(signature);
        match bind(name, &shapes, arguments.clone(), unknown_keywords) {
            Ok(Bound { values, variadic, .. }) => {
                let values = values.into_iter().map(|value| value.unwrap_or(Datum::Null));
                return Ok(values.chain(variadic).collect());
            }
            Err(message) => {
                refusal.get_or_insert(message);
            }
        }
    }
    Err(Refused::Arguments(
        refusal.unwrap_or_else(|| format!("{name}() cannot be called")),
    ))
}

fn shapes(signature: &Signature) -> Vec<Shape<'_>> {
    let single = signature.parameters.iter().map(|parameter| Shape {
        name: &parameter.name,
        takes: Takes::Required,
    });
    let variadic = signature.variadic.iter().map(|parameter| Shape {
        name: &parameter.name,
        takes: Takes::Variadic,
    });
    single.chain(variadic).collect()
}

/// The name of the type of instances, as the library knows them.
const INSTANCE: &str = "instance";

/// A datum as the library knows it.
///
/// # Errors
/// What it does not know.
pub fn to_value(datum: &Datum) -> Result<Value, String> {
    Ok(match datum {
        Datum::Null => Value::Null(Type::optional(Type::Dynamic)),
        Datum::Bool(bool) => Value::Bool(*bool),
        Datum::Int(int) => Value::Int(*int),
        Datum::Float(float) => Value::float(*float),
        Datum::Text(text) => Value::str(&**text),
        Datum::Unknown(_) => Value::unknown(Type::Dynamic),
        Datum::Instance(instance) => Value::Opaque(Opaque::new(INSTANCE, Arc::new(*instance))),
        Datum::Deferred(_) => return Err("is a deferred reference, which it does not take".to_owned()),
        Datum::Marked(marked) => to_value(&marked.datum)?.with_marks(&marked.marks),
        Datum::List(items) => {
            let items = items.iter().map(to_value).collect::<Result<Vec<_>, _>>()?;
            match common_type(items.iter()) {
                Some((element, items)) => Value::list(element, items),
                None => Value::tuple(items),
            }
        }
        Datum::Dict(dict) => {
            let values = dict
                .iter()
                .map(|(_, value)| to_value(value))
                .collect::<Result<Vec<_>, _>>()?;
            let keys = dict.iter().map(|(key, _)| key);
            match common_type(values.iter()) {
                Some((ty, values)) => {
                    let keys = keys.map(|key| Value::str(&**key));
                    Value::map(Type::Str, ty, keys.zip(values))
                }
                None => Value::object(keys.cloned().zip(values)),
            }
        }
    })
}

/// The type that all convert to, and all of them converted.
fn common_type<'a>(values: impl Iterator<Item = &'a Value> + Clone) -> Option<(Type, Vec<Value>)> {
    let types: Vec<Type> = values.clone().map(Value::ty).collect();
    let ty = unify(&types).ok()?;
    let converted = values
        .map(|value| convert(value, &ty).ok())
        .collect::<Option<Vec<_>>>()?;
    Some((ty, converted))
}

/// A value of the library as a datum.
///
/// # Errors
/// What the language has no datum for.
pub fn to_datum(value: &Value, unknowns: &mut Unknowns) -> Result<Datum, String> {
    let all = |items: &mut dyn Iterator<Item = &Value>, unknowns: &mut Unknowns| {
        items
            .map(|item| to_datum(item, unknowns))
            .collect::<Result<Vec<_>, _>>()
            .map(|items| Datum::List(items.into()))
    };
    Ok(match value {
        Value::Null(_) => Datum::Null,
        Value::Bool(bool) => Datum::Bool(*bool),
        Value::Int(int) => Datum::Int(*int),
        Value::Float(float) => Datum::Float(float.0),
        Value::Str(text) => match text.as_str() {
            Some(text) => Datum::text(text),
            None => return Err("is a text that is not UTF-8".to_owned()),
        },
        Value::List(items) => all(&mut items.iter(), unknowns)?,
        Value::Set(items) => all(&mut items.iter(), unknowns)?,
        Value::Tuple(items) => all(&mut items.iter(), unknowns)?,
        Value::Map(map) => {
            let entries = map
                .iter()
                .map(|(key, value)| match key.as_str().and_then(|key| key.as_str()) {
                    Some(key) => Ok((Arc::from(key), to_datum(value, unknowns)?)),
                    None => Err("is a map with keys that are no texts".to_owned()),
                })
                .collect::<Result<Dict, String>>()?;
            Datum::Dict(Arc::new(entries))
        }
        Value::Struct(fields) => {
            let entries = fields
                .iter()
                .map(|(name, value)| Ok((Arc::from(name), to_datum(value, unknowns)?)))
                .collect::<Result<Dict, String>>()?;
            Datum::Dict(Arc::new(entries))
        }
        Value::Unknown(_) => unknowns.create(),
        Value::Marked(marked) => to_datum(&marked.0, unknowns)?.with_marks(&marked.1),
        Value::Opaque(opaque) => match opaque.content().downcast_ref::<InstanceId>() {
            Some(instance) => Datum::Instance(*instance),
            None => {
                return Err(format!(
                    "is a {}, which this language does not know",
                    opaque.name()
                ));
            }
        },
        Value::Func(_) => return Err("is a function, which this language has no values of".to_owned()),
    })
}
