//! The call protocol (function-system §3).
//!
//! [`call_typed`] is what mcl uses at run time: inference has proved arity, types and the absence of null, so that
//! unmarking, unknowns, the implementation and the check of the result remain.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::{CallError, FunctionSpec, Implementation, Marks, Type, Value};

/// Calls a pure function whose arguments are known to fit, for a decided result type.
///
/// # Errors
/// What the implementation answers; a panic in it is caught.
pub fn call_typed(spec: &FunctionSpec, arguments: &[Value], result: &Type) -> Result<Value, CallError> {
    let Implementation::Pure(implementation) = spec.implementation else {
        return Err(CallError::fatal(format!("`{spec}` cannot be called directly")));
    };
    let mut marks = Marks::none();
    let mut unknown = false;
    let mut unmarked: Option<Vec<Value>> = None;
    for (index, argument) in arguments.iter().enumerate() {
        let flags = spec.flags(index);
        if !flags.allow_marked && argument.has_marks() {
            unmarked.get_or_insert_with(|| arguments.to_vec())[index] = argument.unmark_deep(&mut marks);
        }
        unknown |= !flags.allow_unknown && argument.is_unknown();
    }
    let arguments = unmarked.as_deref().unwrap_or(arguments);
    let value = if unknown {
        Value::unknown(result.clone())
    } else {
        guarded(spec, || implementation(arguments, result))?
    };
    let value = match (&value, spec.refine) {
        (Value::Unknown(unknown), Some(refine)) if unknown.refinement == crate::Refinement::default() => {
            Value::refined(unknown.ty.clone(), refine(arguments, result))
        }
        _ => value,
    };
    Ok(value.with_marks(&marks))
}

/// Runs a piece of an implementation and turns a panic into an error that names the function.
pub(crate) fn guarded<T>(
    spec: &FunctionSpec,
    run: impl FnOnce() -> Result<T, CallError>,
) -> Result<T, CallError> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let message = panic
            .downcast_ref::<&str>()
            .map(|s| (*s).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "panic".to_owned());
        Err(CallError::Panicked {
            function: spec.to_string(),
            message,
        })
    })
}
