//! Calls of functions of the shared library: data become values, and values data again.

use setpoint_cf_names::datum::{Datum, to_datum, to_value};
use setpoint_value::{
    CallError, FunctionRef, FunctionSpec, Implementation, Signature, Value,
    call::{call, call_unpredictable},
    convert_arguments,
};

use crate::binding::{Bound, Shape, Takes, bind};
use crate::context::{Arguments, Context, Failure};

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
