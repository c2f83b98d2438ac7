//! Values of the template engine as text, in the host's form, and as data.

use std::fmt::Write as _;
use std::sync::Arc;

use minijinja::value::ValueKind;
use minijinja::{AutoEscape, Error, ErrorKind, Output, State, Value, escape_formatter};
use setpoint_cf_names::datum::{Datum, Dict};

use super::filters::escaped;
use super::scope::{Entries, Instance, Items, Missing};
use crate::text::{float_representation, write_quoted};

/// Lists and dicts that nest deeper are not printed.
const DEEPEST: usize = 100;

/// Writes what `{{ value }}` stands for.
pub(super) fn write_value(
    out: &mut Output<'_>,
    state: &mut State<'_, '_>,
    value: &Value,
) -> Result<(), Error> {
    if value.downcast_object_ref::<Missing>().is_some() {
        return Ok(());
    }
    match value.kind() {
        ValueKind::String if *state.auto_escape() != AutoEscape::None && !value.is_safe() => {
            let text = escaped(value.as_str().unwrap_or_default());
            out.write_str(&text).map_err(Error::from)
        }
        // Undefined names and errors are told by the engine.
        ValueKind::Undefined | ValueKind::Invalid | ValueKind::String | ValueKind::Bytes => {
            escape_formatter(out, state, value)
        }
        _ => {
            let text = printed(value)?;
            out.write_str(&text).map_err(Error::from)
        }
    }
}

/// What `{{ value }}` writes where nothing is escaped.
pub(super) fn printed(value: &Value) -> Result<String, Error> {
    if value.downcast_object_ref::<Missing>().is_some() {
        return Ok(String::new());
    }
    if let Some(text) = value.as_str() {
        return Ok(text.to_owned());
    }
    let mut text = String::new();
    write_representation(value, &mut text, DEEPEST)?;
    Ok(text)
}

/// The form that a value has when it is printed, and inside of lists.
fn write_representation(value: &Value, out: &mut String, levels: usize) -> Result<(), Error> {
    let Some(inner) = levels.checked_sub(1) else {
        return Err(Error::new(
            ErrorKind::InvalidOperation,
            format!("lists and dicts nest deeper than {DEEPEST} levels"),
        ));
    };
    match value.kind() {
        ValueKind::None => out.push_str("None"),
        ValueKind::Bool => out.push_str(if value.is_true() { "True" } else { "False" }),
        ValueKind::Number => match number(value) {
            Some(Datum::Float(float)) => out.push_str(&float_representation(float)),
            _ => {
                let _ = write!(out, "{value}");
            }
        },
        ValueKind::String => write_quoted(value.as_str().unwrap_or_default(), out),
        ValueKind::Undefined => return Err(ErrorKind::UndefinedError.into()),
        ValueKind::Seq | ValueKind::Iterable => {
            let is_tuple = value.is_tuple();
            out.push(if is_tuple { '(' } else { '[' });
            let mut length = 0;
            for item in value.try_iter()? {
                if length > 0 {
                    out.push_str(", ");
                }
                write_representation(&item, out, inner)?;
                length += 1;
            }
            out.push_str(match (is_tuple, length) {
                (false, _) => "]",
                (true, 1) => ",)",
                (true, _) => ")",
            });
        }
        ValueKind::Map => {
            out.push('{');
            for (index, key) in value.try_iter()?.enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                write_representation(&key, out, inner)?;
                out.push_str(": ");
                write_representation(&value.get_item(&key)?, out, inner)?;
            }
            out.push('}');
        }
        _ => {
            let _ = write!(out, "{value}");
        }
    }
    Ok(())
}

/// A number of the engine.
fn number(value: &Value) -> Option<Datum> {
    if value.is_integer() {
        return value.as_i64().map(Datum::Int);
    }
    f64::try_from(value.clone()).ok().map(Datum::Float)
}

/// A value of the engine as a datum. None: it has not been read yet.
pub(super) fn to_datum(value: &Value) -> Result<Option<Datum>, Error> {
    datum_within(value, DEEPEST)
}

fn datum_within(value: &Value, levels: usize) -> Result<Option<Datum>, Error> {
    if value.downcast_object_ref::<Missing>().is_some() {
        return Ok(None);
    }
    if let Some(items) = value.downcast_object_ref::<Items>() {
        return Ok(Some(Datum::List(items.items.clone())));
    }
    if let Some(entries) = value.downcast_object_ref::<Entries>() {
        return Ok(Some(Datum::Dict(entries.dict.clone())));
    }
    if let Some(instance) = value.downcast_object_ref::<Instance>() {
        return Ok(Some(Datum::Instance(instance.instance)));
    }
    let refuse = |what: &str| {
        Err(Error::new(
            ErrorKind::InvalidOperation,
            format!("{what} cannot be given to a function"),
        ))
    };
    let Some(inner) = levels.checked_sub(1) else {
        return refuse("a value that nests so deep");
    };
    Ok(Some(match value.kind() {
        ValueKind::None => Datum::Null,
        ValueKind::Bool => Datum::Bool(value.is_true()),
        ValueKind::Number => match number(value) {
            Some(number) => number,
            None => return refuse("a number of more than 64 bits"),
        },
        ValueKind::String => Datum::text(value.as_str().unwrap_or_default()),
        ValueKind::Undefined => return Err(ErrorKind::UndefinedError.into()),
        ValueKind::Seq | ValueKind::Iterable => {
            let mut items = Vec::new();
            for item in value.try_iter()? {
                match datum_within(&item, inner)? {
                    Some(item) => items.push(item),
                    None => return Ok(None),
                }
            }
            Datum::List(items.into())
        }
        ValueKind::Map => {
            let mut entries = Vec::new();
            for key in value.try_iter()? {
                let Some(name) = key.as_str() else {
                    return refuse("a dict with keys that are no texts");
                };
                match datum_within(&value.get_item(&key)?, inner)? {
                    Some(item) => entries.push((Arc::from(name), item)),
                    None => return Ok(None),
                }
            }
            Datum::Dict(Arc::new(entries.into_iter().collect::<Dict>()))
        }
        _ => return refuse("this value"),
    }))
}
