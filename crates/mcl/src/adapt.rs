//! Functions of the dynamic protocol in mcl.
//!
//! mcl has no tuples, sets, null or types that are decided later. A function that has them takes part by converting: its
//! arguments to what its parameters ask for, its result to a list, struct or plain type. Which functions these are follows from
//! their signatures. The type of a call is found by running the type function on what is known of the arguments while
//! compiling; what is called then is another function, made around the first.

use std::borrow::Cow;

use setpoint_value::call::prepare;
use setpoint_value::{
    ArgumentError, CallError, FunctionRef, FunctionSpec, InferArguments, Inferred, ParameterFlags,
    PureFunction, Type, Value, convert, convert_arguments, unify,
};

/// Whether a function takes part by conversion: its result's type follows from the arguments, by rules that know more types than
/// mcl does.
pub(crate) fn is_adapted(spec: &FunctionSpec) -> bool {
    let lacks = || {
        spec.alternatives().iter().any(|signature| {
            let parameters = signature.parameters.iter().chain(&signature.variadic);
            lacking(&signature.result) || parameters.into_iter().any(|parameter| lacking(&parameter.ty))
        })
    };
    spec.result_type.is_some() && lacks()
}

/// The type that mcl uses for values of a type: lists for tuples and sets, the inner type of an optional. None when a
/// part is not decided, or a tuple's elements have no type in common.
fn static_type(ty: &Type) -> Option<Type> {
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
        Type::Dynamic | Type::Number | Type::Variable(_) => return None,
    })
}

/// Types a call of a function of the dynamic protocol.
///
/// An alternative that is written without anything mcl lacks (`func(list []?1) []?1`), and is the only one such that
/// takes what is evident of the arguments, types the call as it stands; so the call also helps to infer its arguments.
/// Otherwise the type function is asked.
///
/// # Errors
/// An argument that does not fit, or a result whose type is not decided by what is known.
pub(crate) fn infer(spec: &FunctionSpec, arguments: &InferArguments<'_>) -> Result<Inferred, ArgumentError> {
    // What the function itself says of calls in a statically typed language.
    if let Some(Ok(inferred)) = spec.infer.map(|hook| hook(arguments)) {
        return Ok(inferred);
    }
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
            Type::Tuple(_) | Type::Set(_) | Type::Optional(_) | Type::Dynamic | Type::Number
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
        !lacking(&signature.result)
            && (0..types.len()).all(|index| signature.parameter(index).is_some_and(|p| !lacking(&p.ty)))
            && signature.takes(types)
    });
    let only = fitting.next()?;
    if fitting.next().is_some() || !only.limits.is_empty() {
        return None;
    }
    only.func_type(types.len())
}

/// The function that a program calls in place of one that takes part by conversion.
pub(crate) fn adapted(spec: &FunctionRef) -> FunctionRef {
    let inner = spec.clone();
    let call = move |arguments: &[Value], result: &Type| converting_call(&inner, arguments, result);
    let made = FunctionSpec::made(
        &*spec.module,
        &*spec.name,
        spec.signatures(),
        PureFunction::made(call),
    );
    let Ok(mut made) = made else {
        return spec.clone();
    };
    // The whole protocol is for the inner function to keep.
    made.parameters = Cow::Borrowed(&[ParameterFlags {
        allow_null: true,
        allow_unknown: true,
        allow_dynamic: true,
        allow_marked: true,
    }]);
    made.unpredictable = spec.unpredictable;
    made.into()
}

/// Calls a function of the dynamic protocol with statically typed arguments, for a result type that [`infer`] decided. A null
/// result is a catchable error.
fn converting_call(spec: &FunctionSpec, arguments: &[Value], result: &Type) -> Result<Value, CallError> {
    let value = spec.call(&convert_arguments(spec, arguments))?;
    if value.is_null() && !matches!(result, Type::Optional(_)) {
        return Err(CallError::catchable(format!(
            "`{spec}` has no result for these arguments"
        )));
    }
    convert(&value, result).map_err(|error| {
        let message = format!("the result of `{spec}` is not {result}: {error}");
        // Nulls come from the data, anything else from the function.
        if error.is_about_null() {
            CallError::catchable(message)
        } else {
            CallError::fatal(message)
        }
    })
}

fn without_variables(ty: &Type) -> Type {
    ty.replace(&mut |part| matches!(part, Type::Variable(_)).then_some(Type::Dynamic))
}

#[cfg(test)]
mod tests {
    use setpoint_value::call::call_typed;

    use super::*;

    fn ty(text: &str) -> Type {
        Type::parse(text).unwrap()
    }

    /// A set of the elements that both lists have; its type is found while it runs.
    static COMMON: FunctionSpec = FunctionSpec::pure(
        "test",
        "common",
        &["func(a set{dynamic}, b set{dynamic}) dynamic"],
        |a, result| {
            let (Some(x), Some(y)) = (a[0].as_set(), a[1].as_set()) else {
                return Err(CallError::fatal("sets are wanted"));
            };
            if x.is_empty() {
                return Ok(Value::Null(result.clone()));
            }
            Ok(Value::set(
                result.element().unwrap().clone(),
                x.iter().filter(|v| y.contains(v)).cloned(),
            ))
        },
    )
    .typed_by(|arguments| Ok(arguments[0].ty()));

    #[test]
    fn a_statically_typed_language_calls_functions_over_sets_with_lists() {
        let strings = Some(ty("[]str"));
        assert!(is_adapted(&COMMON));
        let infer = |arguments: &InferArguments<'_>| infer(&COMMON, arguments);
        let function = adapted(&FunctionRef::from(&COMMON));
        let inferred = infer(&InferArguments {
            types: &[strings.clone(), strings],
            values: &[None, None],
        })
        .unwrap();
        assert_eq!(inferred.signature, ty("func([]str, []str) []str"));
        let arguments = [
            Value::strings(["c", "a", "b"]),
            Value::strings(["b", "c", "d"]).sensitive(),
        ];
        let result = call_typed(&function, &arguments, &ty("[]str"));
        assert_eq!(result, Ok(Value::strings(["b", "c"]).sensitive()));
        let none = [Value::strings([""; 0]), Value::strings(["b"])];
        assert!(
            call_typed(&function, &none, &ty("[]str"))
                .unwrap_err()
                .is_catchable()
        );
        let refused = infer(&InferArguments {
            types: &[Some(ty("[]str")), Some(Type::Int)],
            values: &[None, None],
        });
        assert_eq!(refused.unwrap_err().to_string(), "`b`: int is not set{dynamic}");
        let open = infer(&InferArguments {
            types: &[None, Some(ty("[]str"))],
            values: &[None, None],
        });
        assert_eq!(
            open.unwrap_err().to_string(),
            "argument 1: its type is not known, and the result's depends on it"
        );
    }

    #[test]
    fn only_what_alone_fits_and_takes_any_type_is_used_as_it_stands() {
        let found = |signatures: &[&str], types: &[Option<Type>]| {
            let implementation = PureFunction::made(|arguments, _| Ok(arguments[0].clone()));
            let signatures = signatures.iter().copied();
            let spec = FunctionSpec::made("test", "same", signatures, implementation).unwrap();
            static_alternative(&spec, types)
        };
        let string = [Some(Type::Str)];
        let plain = Some(ty("func(str) str"));
        assert_eq!(found(&["func(a str) str"], &string), plain);
        assert_eq!(found(&["func(a str) str", "func(a int) int"], &string), plain);
        assert_eq!(found(&["func(a str) str", "func(a int) int"], &[None]), None);
        assert_eq!(found(&["func(a ?1: int | float) ?1"], &[Some(Type::Int)]), None);
    }
}
