//! The call protocol.
//!
//! [`call`] is the whole of it, for languages that check while they run. [`call_typed`] is what mcl uses at run time:
//! inference has proved arity, types and the absence of null, so that unmarking, unknowns, the implementation and the
//! check of the result remain. [`prepare`] is the part before the implementation, for whoever runs that himself.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::conformance::{Matching, Mismatch, plain};
use crate::{
    ArgumentError, CallError, FunctionSpec, Implementation, Marks, Signature, Type, Value, check_size,
    value_conforms,
};

/// A call whose arguments have been checked: steps 1 to 4.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// The arguments as the implementation may see them: without marks, where its parameter does not allow them.
    pub arguments: Vec<Value>,
    /// The marks that were taken off, for the result.
    pub marks: Marks,
    /// The decided type of the result.
    pub result: Type,
    /// Whether the result is unknown and the implementation must not run.
    pub unknown: bool,
}

impl FunctionSpec {
    /// Calls it as a function over values, everything checked; see [`call`].
    ///
    /// # Errors
    /// An argument that does not fit, or what the function answers.
    pub fn call(&self, arguments: &[Value]) -> Result<Value, CallError> {
        call(self, arguments)
    }
}

/// Calls a pure function, checking everything.
///
/// # Errors
/// An argument that does not fit, what the implementation answers, a panic in it, or a result that is not what the
/// function promised.
pub fn call(spec: &FunctionSpec, arguments: &[Value]) -> Result<Value, CallError> {
    let Implementation::Pure(implementation) = &spec.implementation else {
        return Err(CallError::fatal(format!("`{spec}` cannot be called directly")));
    };
    let prepared = prepare(spec, arguments)?;
    let value = if prepared.unknown {
        Value::unknown(prepared.result.clone())
    } else {
        guarded(spec, || implementation.run(&prepared.arguments, &prepared.result))
            .map_err(|error| refused(spec, without_secrets(spec, error, arguments), arguments.len()))?
    };
    finish(
        spec,
        value,
        &prepared.arguments,
        &prepared.result,
        &prepared.marks,
    )
}

/// The call of an unpredictable function: everything is checked, and the result is unknown.
///
/// # Errors
/// An argument that does not fit.
pub fn call_unpredictable(spec: &FunctionSpec, arguments: &[Value]) -> Result<Value, CallError> {
    let mut prepared = prepare(spec, arguments)?;
    for argument in &prepared.arguments {
        argument.collect_marks(&mut prepared.marks);
    }
    let value = Value::unknown(prepared.result.clone());
    finish(
        spec,
        value,
        &prepared.arguments,
        &prepared.result,
        &prepared.marks,
    )
}

/// The type of the result for arguments of these types; `dynamic` when they do not decide it.
///
/// # Errors
/// An argument that does not fit.
pub fn return_type(spec: &FunctionSpec, types: &[Type]) -> Result<Type, CallError> {
    let arguments: Vec<Value> = types.iter().map(|ty| Value::unknown(ty.clone())).collect();
    return_type_for_values(spec, &arguments)
}

/// The type of the result for these arguments, which may be unknown; `dynamic` when they do not decide it.
///
/// # Errors
/// An argument that does not fit.
pub fn return_type_for_values(spec: &FunctionSpec, arguments: &[Value]) -> Result<Type, CallError> {
    prepare(spec, arguments).map(|prepared| prepared.result)
}

/// Checks the arguments and decides the type of the result: arity, types, type function, unknowns.
///
/// # Errors
/// An argument that does not fit.
pub fn prepare(spec: &FunctionSpec, arguments: &[Value]) -> Result<Prepared, CallError> {
    if !spec
        .alternatives()
        .iter()
        .any(|s| s.accepts_count(arguments.len()))
    {
        return Err(wrong_count(spec, arguments.len()).into());
    }
    let mut marks = Marks::none();
    let mut dynamic = false;
    let mut unknown = false;
    let mut seen = Vec::with_capacity(arguments.len());
    for (index, argument) in arguments.iter().enumerate() {
        let flags = spec.flags(index);
        let argument = if flags.allow_marked {
            argument.clone()
        } else {
            argument.unmark_deep(&mut marks)
        };
        if let Some(is) = argument.as_unknown() {
            dynamic |= is.ty == Type::Dynamic && !flags.allow_dynamic;
            unknown |= !flags.allow_unknown;
        }
        seen.push(argument);
    }
    let decided = select(spec, &seen)?;
    let result = match &spec.result_type {
        _ if dynamic => Type::Dynamic,
        Some(type_function) => guarded(spec, || Ok(type_function.run(&seen)?))
            .map_err(|error| without_secrets(spec, error, arguments))
            .map_err(|error| named(spec, error, arguments.len()))?,
        None => decided,
    };
    let unknown = unknown || dynamic;
    if unknown {
        // Arguments that keep their marks are not looked at by an implementation either.
        for argument in &seen {
            argument.collect_marks(&mut marks);
        }
    }
    Ok(Prepared {
        arguments: seen,
        marks,
        result,
        unknown,
    })
}

/// The result type by the first signature that takes the arguments.
fn select(spec: &FunctionSpec, arguments: &[Value]) -> Result<Type, ArgumentError> {
    let mut decided: Option<Type> = None;
    let mut refusal: Option<ArgumentError> = None;
    for signature in spec.alternatives() {
        if !signature.accepts_count(arguments.len()) {
            continue;
        }
        match check(spec, signature, arguments) {
            Ok((result, open)) => {
                match decided {
                    // Once more is known, another alternative may be the one.
                    Some(first) if first != result => return Ok(Type::Dynamic),
                    _ => decided = Some(result),
                }
                if !open {
                    break;
                }
            }
            // The alternative that got furthest has the most to say.
            Err(error) => {
                if refusal.as_ref().is_none_or(|before| error.index > before.index) {
                    refusal = Some(error);
                }
            }
        }
    }
    match (decided, refusal) {
        (Some(result), _) => Ok(result),
        (None, Some(error)) => Err(error),
        (None, None) => Err(wrong_count(spec, arguments.len())),
    }
}

/// Checks arguments against one signature. Answers the result type, and whether a part that is not known yet was
/// accepted where another alternative might do as well.
fn check(
    spec: &FunctionSpec,
    signature: &Signature,
    arguments: &[Value],
) -> Result<(Type, bool), ArgumentError> {
    let mut matching = Matching::new(&signature.limits);
    for (index, argument) in arguments.iter().enumerate() {
        let Some(parameter) = signature.parameter(index) else {
            return Err(wrong_count(spec, arguments.len()));
        };
        let refuse = |mismatch: Mismatch| ArgumentError {
            index: Some(index),
            parameter: Some(parameter.name.clone()),
            message: mismatch.message,
            path: mismatch.path,
        };
        let ty = match argument.unmarked() {
            Value::Null(_) if !spec.flags(index).allow_null && !matches!(parameter.ty, Type::Optional(_)) => {
                return Err(refuse(Mismatch::because("must not be null")));
            }
            Value::Null(ty) => plain(ty).clone(),
            Value::Unknown(unknown) => plain(&unknown.ty).clone(),
            known => known.ty(),
        };
        matching.matches(&ty, &parameter.ty).map_err(refuse)?;
    }
    Ok((matching.resolve(&signature.result), matching.open))
}

/// Gives an error about an argument the name of its parameter.
fn named(spec: &FunctionSpec, error: CallError, count: usize) -> CallError {
    let with_name = |mut error: ArgumentError| {
        if error.parameter.is_none() {
            let signature = spec.alternatives().iter().find(|s| s.accepts_count(count));
            // Of those that share one parameter the position says which it is.
            let parameter = error.index.and_then(|index| signature?.parameters.get(index));
            error.parameter = parameter.map(|p| p.name.clone());
        }
        error
    };
    match error {
        CallError::Argument(error) => CallError::Argument(with_name(error)),
        CallError::Refused(error) => CallError::Refused(with_name(error)),
        other => other,
    }
}

/// What an implementation says about an argument is about its value: the type has been checked before.
fn refused(spec: &FunctionSpec, error: CallError, count: usize) -> CallError {
    match named(spec, error, count) {
        CallError::Argument(error) => CallError::Refused(error),
        other => other,
    }
}

fn wrong_count(spec: &FunctionSpec, given: usize) -> ArgumentError {
    let mut counts: Vec<usize> = spec.alternatives().iter().map(|s| s.parameters.len()).collect();
    counts.sort_unstable();
    counts.dedup();
    let open_ended = spec.alternatives().iter().filter(|s| s.variadic.is_some());
    let required = match (open_ended.map(|s| s.parameters.len()).min(), counts.as_slice()) {
        (Some(least), [first, ..]) => format!("at least {}", least.min(*first)),
        (_, [one]) => one.to_string(),
        (_, [others @ .., last]) => {
            let others: Vec<String> = others.iter().map(usize::to_string).collect();
            format!("{} or {last}", others.join(", "))
        }
        (_, []) => "none".to_owned(),
    };
    ArgumentError::whole(format!(
        "wrong number of arguments ({required} required; {given} given)"
    ))
}

/// Puts arguments given by name behind those given by position.
///
/// # Errors
/// A name that no parameter has or that is given twice, or a parameter that is left out.
pub fn arrange_arguments(
    spec: &FunctionSpec,
    positional: Vec<Value>,
    named: Vec<(String, Value)>,
) -> Result<Vec<Value>, ArgumentError> {
    if named.is_empty() {
        return Ok(positional);
    }
    let mut tried = spec
        .alternatives()
        .iter()
        .map(|signature| arrange(signature, &positional, &named));
    let first = tried.next().expect("a function has a signature");
    first.or_else(|error| tried.find_map(Result::ok).ok_or(error))
}

fn arrange(
    signature: &Signature,
    positional: &[Value],
    named: &[(String, Value)],
) -> Result<Vec<Value>, ArgumentError> {
    let mut slots: Vec<Option<Value>> = positional.iter().cloned().map(Some).collect();
    slots.resize(slots.len().max(signature.parameters.len()), None);
    for (name, value) in named {
        let Some(index) = signature.parameters.iter().position(|p| p.name == *name) else {
            return Err(ArgumentError::whole(format!("there is no parameter `{name}`")));
        };
        if slots[index].is_some() {
            return Err(ArgumentError::whole(format!("`{name}` is given twice")));
        }
        slots[index] = Some(value.clone());
    }
    let missing = |index: usize| {
        let name = signature.parameter(index).map_or("", |p| p.name.as_str());
        ArgumentError::whole(format!("`{name}` is missing"))
    };
    slots
        .into_iter()
        .enumerate()
        .map(|(index, slot)| slot.ok_or_else(|| missing(index)))
        .collect()
}

/// Calls a pure function whose arguments are known to fit, for a decided result type.
///
/// # Errors
/// What the implementation answers; a panic in it is caught.
pub fn call_typed(spec: &FunctionSpec, arguments: &[Value], result: &Type) -> Result<Value, CallError> {
    let Implementation::Pure(implementation) = &spec.implementation else {
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
    let seen = unmarked.as_deref().unwrap_or(arguments);
    let value = if unknown {
        for argument in seen {
            argument.collect_marks(&mut marks);
        }
        Value::unknown(result.clone())
    } else {
        guarded(spec, || implementation.run(seen, result))
            .map_err(|error| refused(spec, without_secrets(spec, error, arguments), arguments.len()))?
    };
    finish(spec, value, seen, result, &marks)
}

/// Step 6: what is returned is what was promised, is not too large, is refined, and carries the marks.
fn finish(
    spec: &FunctionSpec,
    value: Value,
    arguments: &[Value],
    result: &Type,
    marks: &Marks,
) -> Result<Value, CallError> {
    if let Err(mismatch) = value_conforms(&value, result) {
        return Err(CallError::fatal(format!(
            "`{spec}` gave something else than it promised: {mismatch} (this is a bug in the function)"
        )));
    }
    check_size(&value)?;
    let value = match spec.refine {
        None => value,
        Some(refine) => {
            let refinement = guarded(spec, || Ok(refine(arguments, result)))?;
            value.refine(&refinement).map_err(|contradiction| {
                CallError::fatal(format!(
                    "`{spec}` gave something else than it promised: {contradiction} (this is a bug in the function)"
                ))
            })?
        }
    };
    Ok(value.with_marks(marks))
}

/// The error without its wording when that could show a sensitive argument.
fn without_secrets(spec: &FunctionSpec, error: CallError, arguments: &[Value]) -> CallError {
    if !arguments.iter().any(Value::is_sensitive) {
        return error;
    }
    let hidden = || "the reason is not shown because an argument is sensitive".to_owned();
    let without_reason = |error: ArgumentError| ArgumentError {
        message: format!("does not fit; {}", hidden()),
        path: String::new(),
        ..error
    };
    match error {
        CallError::Argument(error) => CallError::Argument(without_reason(error)),
        CallError::Refused(error) => CallError::Refused(without_reason(error)),
        CallError::Failed { catchable, .. } => CallError::Failed {
            message: format!("`{spec}` failed; {}", hidden()),
            catchable,
        },
        CallError::Panicked { function, .. } => CallError::Panicked {
            function,
            message: hidden(),
        },
    }
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
