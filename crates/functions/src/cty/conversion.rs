//! Conversion between types, safe or not, and functions made unpredictable.

use setpoint_value::{
    ArgumentError, CallError, FunctionSpec, InferArguments, Inferred, Type, Value, call, conversion, convert,
    converted_type, function,
};

use super::{DYNAMIC, MODULE, not_null, type_at};

/// A number, bool or str as text.
#[function(
    signature = "func(v dynamic) str",
    flags = DYNAMIC,
    result_type = |arguments| convertible(arguments, &Type::Str),
    refine = not_null,
    example(call = "cty.to_str(1.5)", result = r#""1.5""#),
    example(call = "cty.to_str(true)", result = r#""true""#)
)]
pub fn to_str(
    /// A number, bool or text.
    v: &Value,
) -> Result<Value, CallError> {
    converted(v, &Type::Str)
}

/// The number that a text spells.
///
/// An int where it is written as one, else a float; in mcl a text gives a float in any case. Other text is an error.
#[function(
    signature = "func(v dynamic) dynamic",
    flags = DYNAMIC,
    result_type = number_type,
    infer = infer_number,
    refine = not_null,
    example(call = r#"cty.to_number("1.5")"#, result = "1.5"),
    example(call = "cty.to_number(3)", result = "3")
)]
pub fn to_number(
    /// A number, or a text that spells one.
    v: &Value,
) -> Result<Value, CallError> {
    converted(v, &Type::Number)
}

fn number_type(arguments: &[Value]) -> Result<Type, ArgumentError> {
    convertible(arguments, &Type::Number)?;
    match arguments.first() {
        Some(value @ Value::Str(_)) => convert(value, &Type::Number)
            .map(|number| number.ty())
            .map_err(|error| error.at_argument(0)),
        _ => Ok(converted_type(&type_at(arguments, 0), &Type::Number)),
    }
}

/// What a text spells is not known while compiling, and what it is then must not depend on that.
fn infer_number(arguments: &InferArguments<'_>) -> Result<Inferred, ArgumentError> {
    match arguments.types {
        [Some(Type::Str)] => Ok(Inferred {
            signature: Type::func([("v", Type::Str)], Type::Float),
        }),
        _ => Err(ArgumentError::whole("the type follows from the argument")),
    }
}

/// The bool that `"true"`, `"false"`, `"1"` or `"0"` spells.
#[function(
    signature = "func(v dynamic) bool",
    flags = DYNAMIC,
    result_type = |arguments| convertible(arguments, &Type::Bool),
    refine = not_null,
    example(call = r#"cty.to_bool("1")"#, result = "true")
)]
pub fn to_bool(
    /// A bool, or one of these texts.
    v: &Value,
) -> Result<Value, CallError> {
    converted(v, &Type::Bool)
}

/// A set in sorted order, or the elements of a tuple as one type, as a list.
#[function(
    signature = "func(v []?1) []?1",
    signature = "func(v dynamic) []dynamic",
    flags = DYNAMIC,
    result_type = |arguments| convertible(arguments, &Type::list(Type::Dynamic)),
    refine = not_null,
    example(call = r#"cty.to_list(cty.to_set(["b", "a", "b"]))"#, result = r#"["a", "b"]"#)
)]
pub fn to_list(
    /// A list, set or tuple.
    v: &Value,
) -> Result<Value, CallError> {
    converted(v, &Type::list(Type::Dynamic))
}

/// The distinct elements of a list or tuple; in mcl they are a sorted list.
#[function(
    signature = "func(v []?1) []?1",
    signature = "func(v dynamic) set{dynamic}",
    flags = DYNAMIC,
    result_type = |arguments| convertible(arguments, &Type::set(Type::Dynamic)),
    refine = not_null,
    example(call = "cty.to_set([3, 1, 3, 2])", result = "[1, 2, 3]")
)]
pub fn to_set(
    /// A list, set or tuple.
    v: &Value,
) -> Result<Value, CallError> {
    converted(v, &Type::set(Type::Dynamic))
}

/// The fields of a struct as a map, their values as one type.
#[function(
    signature = "func(v map{str: ?1}) map{str: ?1}",
    signature = "func(v dynamic) map{str: dynamic}",
    flags = DYNAMIC,
    result_type = |arguments| convertible(arguments, &Type::map(Type::Str, Type::Dynamic)),
    refine = not_null,
    example(call = "cty.to_map(struct{a => 1, b => 2})", result = r#"{"a" => 1, "b" => 2}"#)
)]
pub fn to_map(
    /// A map or struct.
    v: &Value,
) -> Result<Value, CallError> {
    converted(v, &Type::map(Type::Str, Type::Dynamic))
}

/// A call whose arguments are checked and whose result is unknown: what a function answers whose value cannot be said
/// beforehand.
///
/// # Errors
/// An argument that does not fit.
pub fn unpredictable(spec: &FunctionSpec, arguments: &[Value]) -> Result<Value, CallError> {
    call::call_unpredictable(spec, arguments)
}

fn convertible(arguments: &[Value], to: &Type) -> Result<Type, ArgumentError> {
    let from = type_at(arguments, 0);
    if conversion(&from, to).is_none() {
        return Err(ArgumentError::at(0, format!("{from} does not convert to {to}")));
    }
    Ok(match &from {
        // What is not known yet may become anything that fits.
        Type::Dynamic => to.clone(),
        _ => converted_type(&from, to),
    })
}

fn converted(value: &Value, to: &Type) -> Result<Value, CallError> {
    convert(value, to).map_err(|error| error.at_argument(0).into())
}
