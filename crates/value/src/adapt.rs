//! Functions of the dynamic protocol in a statically typed language.
//!
//! mcl has no tuples, sets, null or types that are decided later. A function that has them takes part by converting: its
//! arguments to what its parameters ask for, its result to a list, struct or plain type. The type of a call is found by
//! running the type function on what is known of the arguments while compiling.

use crate::call::{self, prepare};
use crate::conformance::Matching;
use crate::{
    ArgumentError, CallError, FunctionSpec, InferArguments, Inferred, Signature, Type, Value, conforms,
    convert, converts_safely, unify,
};

/// The type that mcl uses for values of a type: lists for tuples and sets, the inner type of an optional. None when a
/// part is not decided, or a tuple's elements have no type in common.
#[must_use]
pub fn static_type(ty: &Type) -> Option<Type> {
    static_type_with(ty, &mut || None)
}

/// The same; `element` says of what type the elements of an empty tuple are, which could be any.
fn static_type_with(ty: &Type, element: &mut impl FnMut() -> Option<Type>) -> Option<Type> {
    Some(match ty {
        Type::Bool | Type::Str | Type::Int | Type::Float | Type::Opaque(_) => ty.clone(),
        Type::Optional(inner) => static_type_with(inner, element)?,
        Type::List(inner) | Type::Set(inner) => Type::list(static_type_with(inner, element)?),
        Type::Tuple(types) if types.is_empty() => Type::list(element()?),
        Type::Tuple(types) => {
            let types = types
                .iter()
                .map(|ty| static_type_with(ty, element))
                .collect::<Option<Vec<_>>>()?;
            Type::list(static_type(&unify(&types).ok()?)?)
        }
        Type::Map(kv) => Type::map(
            static_type_with(&kv.0, element)?,
            static_type_with(&kv.1, element)?,
        ),
        Type::Struct(s) => {
            let fields = s
                .fields
                .iter()
                .map(|f| Some((f.name.clone(), static_type_with(&f.ty, element)?)));
            Type::structure(fields.collect::<Option<Vec<_>>>()?)
        }
        Type::Func(f) => Type::func(
            f.parameters
                .iter()
                .map(|p| Some((p.name.clone(), static_type_with(&p.ty, element)?)))
                .collect::<Option<Vec<_>>>()?,
            static_type_with(&f.result, element)?,
        ),
        Type::Nil | Type::Variant | Type::Dynamic | Type::Number | Type::Variable(_) => return None,
    })
}

/// Types a call of a function of the dynamic protocol, for use in an inference hook.
///
/// An alternative that is written without anything mcl lacks (`func(list []?1) []?1`), and is the only one such that
/// takes what is evident of the arguments, types the call as it stands; so the call also helps to infer its arguments.
/// Otherwise the type function is asked.
///
/// # Errors
/// An argument that does not fit, or a result whose type is not decided by what is known.
pub fn infer_adapted(spec: &FunctionSpec, arguments: &InferArguments<'_>) -> Result<Inferred, ArgumentError> {
    if let Some(signature) = static_alternative(spec, arguments.types) {
        return Ok(Inferred { signature });
    }
    let count = arguments.types.len();
    let types: Vec<Option<Type>> = arguments
        .types
        .iter()
        .enumerate()
        .map(|(index, ty)| ty.clone().or_else(|| declared(spec, index, count)))
        .collect();
    let known: Vec<Value> = types
        .iter()
        .zip(arguments.values)
        .map(|(ty, value)| match (value, ty) {
            (Some(value), _) => value.clone(),
            (None, Some(ty)) => Value::unknown(without_variables(ty)),
            (None, None) => Value::unknown(Type::Dynamic),
        })
        .collect();
    let prepared = prepare(spec, &convert_arguments(spec, &known)).map_err(|error| match error {
        CallError::Argument(error) | CallError::Refused(error) => error,
        other => ArgumentError::whole(other.to_string()),
    })?;
    // Behind the variables that stand for the arguments.
    let mut variable = u32::try_from(count).unwrap_or(u32::MAX);
    let mut element = || {
        variable = variable.checked_add(1)?;
        Some(Type::Variable(variable))
    };
    let Some(result) = static_type_with(&prepared.result, &mut element) else {
        let open = types.iter().position(|ty| ty.as_ref().is_none_or(Type::is_open));
        return Err(match open {
            Some(index) => ArgumentError::at(index, "its type is not known, and the result's depends on it"),
            None if prepared.result.is_open() => {
                ArgumentError::whole("the result's type depends on a value that is not known while compiling")
            }
            None => ArgumentError::whole(format!(
                "the result has the type {}, which mcl lacks",
                prepared.result
            )),
        });
    };
    let parameters = types.iter().enumerate().map(|(index, ty)| {
        let ty = match ty {
            Some(ty) if !ty.is_open() => ty.clone(),
            _ => Type::Variable(u32::try_from(index).unwrap_or(u32::MAX - 1) + 1),
        };
        (index.to_string(), ty)
    });
    Ok(Inferred {
        signature: Type::func(parameters, result),
    })
}

/// Whether a type has a part that mcl lacks, or that stands for several types.
fn lacking(ty: &Type) -> bool {
    ty.any_part(&mut |part| {
        matches!(
            part,
            Type::Tuple(_) | Type::Set(_) | Type::Optional(_) | Type::Dynamic | Type::Variant | Type::Number
        )
    })
}

/// The type that every alternative for so many arguments gives the parameter at a position, if it is a plain one.
fn declared(spec: &FunctionSpec, index: usize, count: usize) -> Option<Type> {
    let mut types = spec
        .alternatives()
        .iter()
        .filter(|signature| signature.accepts_count(count))
        .map(|signature| signature.parameter(index).map(|parameter| &parameter.ty));
    let first = types.next()??;
    let plain = !first.is_open() && !lacking(first) && types.all(|ty| ty == Some(first));
    plain.then(|| first.clone())
}

/// The type of the only alternative without tuples, sets, question marks and open places that takes these arguments.
fn static_alternative(spec: &FunctionSpec, types: &[Option<Type>]) -> Option<Type> {
    let mut fitting = spec.alternatives().iter().filter(|signature| {
        let mut matching = Matching::new(&signature.limits);
        signature.accepts_count(types.len())
            && !lacking(&signature.result)
            && types.iter().enumerate().all(|(index, ty)| {
                signature.parameter(index).is_some_and(|parameter| {
                    !lacking(&parameter.ty)
                        && ty
                            .as_ref()
                            .is_none_or(|ty| matching.matches(ty, &parameter.ty).is_ok())
                })
            })
    });
    let only = fitting.next()?;
    if fitting.next().is_some() || !only.limits.is_empty() {
        return None;
    }
    only.func_type(types.len())
}

/// Calls a function of the dynamic protocol with statically typed arguments, for a result type that [`infer_adapted`]
/// decided.
///
/// # Errors
/// Those of [`call::call`]; a null result is a catchable error.
pub fn call_adapted(spec: &FunctionSpec, arguments: &[Value], result: &Type) -> Result<Value, CallError> {
    let value = call::call(spec, &convert_arguments(spec, arguments))?;
    if value.is_null() && !matches!(result, Type::Optional(_)) {
        return Err(CallError::catchable(format!(
            "`{spec}` has no result for these arguments"
        )));
    }
    convert(&value, result).map_err(|error| {
        let message = format!("the result of `{spec}` is not {result}: {error}");
        if error.message == crate::convert::NULL {
            CallError::catchable(message)
        } else {
            CallError::fatal(message)
        }
    })
}

/// Converts arguments safely to the types of the parameters, where they differ and that is possible. What is not is left
/// for the call to refuse.
#[must_use]
pub fn convert_arguments(spec: &FunctionSpec, arguments: &[Value]) -> Vec<Value> {
    let candidates = || {
        spec.alternatives()
            .iter()
            .filter(|s| s.accepts_count(arguments.len()))
    };
    let fits = |signature: &Signature| {
        let mut matching = Matching::new(&signature.limits);
        arguments.iter().enumerate().all(|(index, argument)| {
            let parameter = signature.parameter(index);
            argument.is_null() || parameter.is_some_and(|p| matching.matches(&argument.ty(), &p.ty).is_ok())
        })
    };
    // What fits without conversion is not converted.
    if candidates().any(fits) {
        return arguments.to_vec();
    }
    let mut nearest = None;
    for signature in candidates() {
        let mut all = true;
        let mut convert_one = |(index, argument): (usize, &Value)| {
            let wanted = signature.parameter(index).map_or(&Type::Dynamic, |p| &p.ty);
            let ty = argument.ty();
            if argument.is_null() || conforms(&ty, wanted).is_ok() {
                return argument.clone();
            }
            let converted = converts_safely(&ty, wanted)
                .then(|| convert(argument, wanted).ok())
                .flatten();
            all &= converted.is_some();
            converted.unwrap_or_else(|| argument.clone())
        };
        let converted: Vec<Value> = arguments.iter().enumerate().map(&mut convert_one).collect();
        if all {
            return converted;
        }
        nearest.get_or_insert(converted);
    }
    nearest.unwrap_or_else(|| arguments.to_vec())
}

fn without_variables(ty: &Type) -> Type {
    ty.replace(&mut |part| matches!(part, Type::Variable(_) | Type::Variant).then_some(Type::Dynamic))
}
