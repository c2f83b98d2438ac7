//! Collections of any kind: their length, what is at an index, the first that is there.

use setpoint_value::{
    ArgumentError, Bound, CallError, Refinement, Type, Value, convert, function, length_range, unify, whole,
};

use super::{MODULE, count, flags, not_null, outer_marks, plain, refuse, type_at};

/// How many elements a list, set, map or tuple, or fields a struct has.
#[function(
    signature = "func(value dynamic) int",
    flags = &[flags("!~#")],
    result_type = length_type,
    refine = not_null,
    example(call = "cty.length([1, 2, 3])", result = "3"),
    example(call = r#"cty.length({"a" => 1})"#, result = "1")
)]
pub fn length(
    /// A list, set, map, tuple or struct.
    value: &Value,
) -> Value {
    let length = match length_range(value.unmarked()) {
        Some((least, Some(most))) if least == most => count(least),
        range => {
            let (least, most) = range.unwrap_or((0, None));
            let refinement = Refinement::not_null().with_lower(Bound::inclusive(least as f64));
            Value::refined(
                Type::Int,
                match most {
                    Some(most) => refinement.with_upper(Bound::inclusive(most as f64)),
                    None => refinement,
                },
            )
        }
    };
    length.with_marks(&outer_marks([value]))
}

fn length_type(arguments: &[Value]) -> Result<Type, ArgumentError> {
    match type_at(arguments, 0) {
        Type::List(_) | Type::Set(_) | Type::Map(_) | Type::Tuple(_) | Type::Struct(_) | Type::Dynamic => {
            Ok(Type::Int)
        }
        other => Err(ArgumentError::at(0, format!("{other} has no length"))),
    }
}

/// Whether a list or tuple has an index, a map a key, or a struct a field.
#[function(
    signature = "func(collection dynamic, key dynamic) bool",
    flags = &[flags("!~#")],
    result_type = has_index_type,
    refine = not_null,
    example(call = r#"cty.has_index(["a"], 1)"#, result = "false"),
    example(call = r#"cty.has_index({"a" => 1}, "a")"#, result = "true")
)]
pub fn has_index(
    /// A list, tuple, map or struct.
    collection: &Value,
    /// An index counted from 0, a key, or the name of a field.
    key: &Value,
) -> Value {
    let marks = outer_marks([collection, key]);
    let (collection, key) = (collection.unmarked(), key.unmarked());
    let has = if collection.is_unknown() || key.is_unknown() {
        has_for_unknown(collection, key)
    } else {
        Some(part(collection, key).is_some())
    };
    has.map_or_else(|| Value::unknown(Type::Bool), Value::Bool)
        .with_marks(&marks)
}

/// The answer for unknown values, if their types decide it.
fn has_for_unknown(collection: &Value, key: &Value) -> Option<bool> {
    let (whole, of_key) = (collection.ty(), key.ty());
    let of_key = plain(&of_key);
    let is_number = matches!(of_key, Type::Int | Type::Float | Type::Number);
    match plain(&whole) {
        Type::Dynamic => None,
        _ if *of_key == Type::Dynamic => None,
        Type::List(_) | Type::Tuple(_) if !is_number => Some(false),
        Type::Tuple(types) if !key.is_unknown() => {
            Some(position(key).is_some_and(|index| index < types.len()))
        }
        Type::List(_) if !key.is_unknown() && position(key).is_none() => Some(false),
        Type::Struct(_) if *of_key != Type::Str => Some(false),
        Type::Struct(fields) if !key.is_unknown() => {
            let name = key.as_str().and_then(|name| name.as_str());
            Some(name.is_some_and(|name| fields.index(name).is_some()))
        }
        Type::Map(kv) if *of_key != kv.0 => Some(false),
        _ if length_range(collection).is_some_and(|(_, most)| most == Some(0)) => Some(false),
        _ => None,
    }
}

fn has_index_type(arguments: &[Value]) -> Result<Type, ArgumentError> {
    match type_at(arguments, 0) {
        Type::List(_) | Type::Tuple(_) | Type::Map(_) | Type::Struct(_) | Type::Dynamic => Ok(Type::Bool),
        other => Err(ArgumentError::at(0, format!("{other} has no indexes"))),
    }
}

/// What is at an index of a list or tuple, at a key of a map or in a field of a struct.
///
/// What is not there fails in a way that `<|>` catches. The index of a tuple and the field of a struct decide the type.
#[function(
    signature = "func(collection []?1, key int) ?1",
    signature = "func(collection map{?1: ?2}, key ?1) ?2",
    signature = "func(collection dynamic, key dynamic) dynamic",
    flags = &[flags("!#")],
    result_type = index_type,
    example(call = r#"cty.index(["a", "b"], 1)"#, result = r#""b""#),
    example(call = r#"cty.index({"a" => 1}, "a")"#, result = "1")
)]
pub fn index(
    /// A list, tuple, map or struct.
    collection: &Value,
    /// An index counted from 0, a key, or the name of a field.
    key: &Value,
) -> Result<Value, CallError> {
    let marks = outer_marks([collection, key]);
    part(collection.unmarked(), key.unmarked())
        .map(|found| found.clone().with_marks(&marks))
        .ok_or_else(|| CallError::catchable(format!("there is nothing at {key}")))
}

fn index_type(arguments: &[Value]) -> Result<Type, ArgumentError> {
    let key = arguments.get(1).map_or(&Value::Bool(false), Value::unmarked);
    let wants = |wanted: &Type| {
        let ty = key.ty();
        let number = matches!(plain(&ty), Type::Int | Type::Float | Type::Number) && *wanted == Type::Int;
        if number || plain(&ty) == wanted || matches!(ty, Type::Dynamic) {
            Ok(())
        } else {
            Err(ArgumentError::at(1, format!("{ty} is not {wanted}")))
        }
    };
    match type_at(arguments, 0) {
        Type::List(element) => wants(&Type::Int).map(|()| (*element).clone()),
        Type::Map(kv) => wants(&kv.0).map(|()| kv.1.clone()),
        Type::Tuple(types) => {
            wants(&Type::Int)?;
            match position(key) {
                Some(index) => types
                    .get(index)
                    .cloned()
                    .ok_or_else(|| ArgumentError::at(1, "there is not such index")),
                None if key.is_unknown() => Ok(Type::Dynamic),
                None => Err(ArgumentError::at(1, "there is not such index")),
            }
        }
        Type::Struct(s) => {
            wants(&Type::Str)?;
            match key.as_str().and_then(|name| name.as_str()) {
                Some(name) => s
                    .field(name)
                    .cloned()
                    .ok_or_else(|| ArgumentError::at(1, "there is not such field")),
                None => Ok(Type::Dynamic),
            }
        }
        Type::Dynamic => Ok(Type::Dynamic),
        other => Err(ArgumentError::at(0, format!("{other} has no indexes"))),
    }
}

/// The part of a known collection at a key.
fn part<'a>(collection: &'a Value, key: &Value) -> Option<&'a Value> {
    match collection {
        Value::List(list) => list.get(position(key)?),
        Value::Tuple(items) => items.get(position(key)?),
        Value::Map(map) => map.get(key),
        Value::Struct(s) => s.get(key.as_str()?.as_str()?),
        _ => None,
    }
}

fn position(key: &Value) -> Option<usize> {
    let int = match key {
        Value::Int(int) => *int,
        Value::Float(float) => whole(float.0)?,
        _ => return None,
    };
    usize::try_from(int).ok()
}

/// The first argument that is not null, as the one type that all have in common.
#[function(
    raw,
    signature = "func(first ?1, more ?1…) ?1",
    signature = "func(first dynamic, more dynamic…) dynamic",
    parameters(
        /// The value to take if it is not null.
        first,
        /// The values to try after it, in order.
        more,
    ),
    flags = &[flags("!?~")],
    result_type = coalesce_type,
    refine = not_null,
    example(call = r#"cty.coalesce("", "b")"#, result = r#""""#)
)]
pub fn coalesce(arguments: &[Value], ty: &Type) -> Result<Value, CallError> {
    // What they have in common shows when all types are known.
    if ty.is_open() && !arguments.iter().all(Value::is_wholly_known) {
        return Ok(Value::unknown(ty.clone()));
    }
    for (index, candidate) in arguments.iter().enumerate() {
        if candidate.is_null() {
            continue;
        }
        // An unknown may still turn out to be null, and then another is the first.
        if candidate
            .as_unknown()
            .is_some_and(|unknown| !unknown.refinement.not_null)
        {
            return Ok(Value::unknown(ty.clone()));
        }
        return convert(candidate, ty).map_err(|error| error.at_argument(index).into());
    }
    Err(CallError::catchable("all arguments are null"))
}

fn coalesce_type(arguments: &[Value]) -> Result<Type, ArgumentError> {
    let mut types = Vec::with_capacity(arguments.len());
    for (index, argument) in arguments.iter().enumerate() {
        let ty = type_at(arguments, index);
        // A bare null has no type of its own.
        if !(argument.is_null() && ty == Type::Dynamic) {
            types.push(ty);
        }
    }
    unify(&types).map_err(|d| ArgumentError::whole(d.to_string()))
}

/// The value itself, of which it is then certain that it is not null.
#[function(
    signature = "func(v ?1) ?1",
    flags = &[flags("")],
    refine = not_null,
    example(call = "cty.assert_not_null(1)", result = "1")
)]
pub fn assert_not_null(
    /// The value, which must not be null.
    v: &Value,
) -> Result<Value, CallError> {
    if v.is_null() {
        return refuse(0, "must not be null");
    }
    Ok(v.clone())
}
