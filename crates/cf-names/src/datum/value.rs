//! Data as values of the shared library, and back.
//!
//! A list becomes a list if its elements have a type in common, else a tuple; a dict becomes a map, else a struct. Instances are opaque to the
//! library.

use std::sync::Arc;

use setpoint_value::{Opaque, Type, Value, convert, unify};

use super::{Datum, Dict, InstanceId, Unknowns};

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

/// Whether a conversion between two types changes no number, bool or text.
fn keeps_scalars(from: &Type, to: &Type) -> bool {
    match (from, to) {
        (Type::Dynamic, _) => true,
        (Type::List(from), Type::List(to)) => keeps_scalars(from, to),
        (Type::Map(from), Type::Map(to)) => keeps_scalars(&from.1, &to.1),
        (Type::Tuple(from), Type::List(to)) => from.iter().all(|from| keeps_scalars(from, to)),
        (Type::Struct(from), Type::Map(to)) => {
            from.fields.iter().all(|field| keeps_scalars(&field.ty, &to.1))
        }
        (from, to) => from == to,
    }
}

/// The type that all have, and all of them of that type. Values of different types have none: nothing in a list or dict becomes another
/// kind of value on its way into the library.
fn common_type<'a>(values: impl Iterator<Item = &'a Value> + Clone) -> Option<(Type, Vec<Value>)> {
    let types: Vec<Type> = values.clone().map(Value::ty).collect();
    let ty = unify(&types).ok()?;
    if !types.iter().all(|own| keeps_scalars(own, &ty)) {
        return None;
    }
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
