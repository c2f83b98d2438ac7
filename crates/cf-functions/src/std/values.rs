//! Functions over values of any sort and over instances.

use std::fmt::Write as _;
use std::sync::Arc;

use setpoint_cf_names::datum::{Datum, Dict};
use setpoint_value::{LONGEST_TEXT, Mark, Marks};

use super::{Call, unusable, validators};
use crate::context::{Failure, Read};
use crate::equality::{is_same, write_key};
use crate::text::{Form, NoText, float_representation, text, write_separated};

type Answer = Result<Datum, Failure>;

pub(super) fn print(call: &mut Call<'_>) -> Answer {
    let message = call.arguments.first().cloned().unwrap_or(Datum::Null);
    let mut marks = Marks::none();
    message.collect_marks(&mut marks);
    let line = if marks.contains(&Mark::Sensitive) {
        "(sensitive)".to_owned()
    } else {
        match text(&message, Form::Printed, call.naming()) {
            Ok(line) => line,
            Err(NoText::Unknown) => return Err(Failure::Unknown),
            Err(refused) => match refused.into_error(call.span) {
                Some(error) => return Err(error.into()),
                None => return Err(Failure::Unknown),
            },
        }
    };
    call.context.print(line);
    Ok(Datum::Null)
}

pub(super) fn is_unknown(call: &mut Call<'_>) -> Answer {
    Ok(Datum::Bool(matches!(call.argument(0), Datum::Unknown(_))))
}

pub(super) fn is_instance(call: &mut Call<'_>) -> Answer {
    let name = call.text(1)?;
    let Some(entity) = call.context.entity_named(&name) else {
        return Err(Failure::Other(format!("could not find type `{name}`")));
    };
    Ok(Datum::Bool(match call.argument(0) {
        Datum::Instance(instance) => {
            let of = call.context.entity(*instance);
            call.context.model().is_below(of, entity)
        }
        _ => false,
    }))
}

pub(super) fn isset(call: &mut Call<'_>) -> Answer {
    Ok(Datum::Bool(!matches!(call.argument(0), Datum::Null)))
}

pub(super) fn getattr(call: &mut Call<'_>) -> Answer {
    let name = call.text(1)?;
    let no_unknown = call.bool(3)?;
    let default = call.arguments.get(2).cloned().unwrap_or(Datum::Null);
    let instance = match call.argument(0) {
        Datum::Instance(instance) => *instance,
        Datum::Unknown(_) if no_unknown => return Ok(default),
        other => return Err(unusable(other, call.span)),
    };
    match call.context.attribute(instance, &name) {
        Read::Value(value) if no_unknown && matches!(value.unmarked(), Datum::Unknown(_)) => Ok(default),
        Read::Value(value) => Ok(value),
        Read::NotFound => Ok(default),
        Read::Unset(cell) => Err(Failure::Unset(cell)),
        Read::Absent => Err(call.absent(instance, &name).into()),
    }
}

pub(super) fn attr(call: &mut Call<'_>) -> Answer {
    let name = call.text(1)?;
    let instance = call.instance(call.argument(0))?;
    call.attribute(instance, &name)
}

pub(super) fn objid(call: &mut Call<'_>) -> Answer {
    let mut key = String::new();
    write_key(call.argument(0), &mut key);
    Ok(Datum::text(key))
}

pub(super) fn no_type(_: &mut Call<'_>) -> Answer {
    Err(Failure::Other(
        "there is no value whose type it answers".to_owned(),
    ))
}

pub(super) fn assert(call: &mut Call<'_>) -> Answer {
    if call.bool(0)? {
        return Ok(Datum::Null);
    }
    let message = call.text(1)?;
    Err(Failure::Other(if message.is_empty() {
        "assertion failed".to_owned()
    } else {
        format!("assertion failed: {message}")
    }))
}

pub(super) fn equals(call: &mut Call<'_>) -> Answer {
    let (left, right) = (call.argument(0), call.argument(1));
    if is_same(left, right) {
        return Ok(Datum::Null);
    }
    let mut message = format!("`{}` is not equal to `{}`", call.shown(left), call.shown(right));
    if let Datum::Text(description) = call.argument(2) {
        let _ = write!(message, ": {description}");
    }
    Err(Failure::Other(message))
}

pub(super) fn inlineif(call: &mut Call<'_>) -> Answer {
    let chosen = if call.bool(0)? { 1 } else { 2 };
    Ok(call.argument(chosen).clone())
}

pub(super) fn invert(call: &mut Call<'_>) -> Answer {
    Ok(Datum::Bool(!call.bool(0)?))
}

pub(super) fn familyof(call: &mut Call<'_>) -> Answer {
    let family = call.text(1)?;
    let mut member = call.instance(call.argument(0))?;
    let mut seen = rustc_hash::FxHashSet::default();
    // Families may go in a circle.
    while seen.insert(member) {
        let name = call.attribute(member, "name")?;
        if matches!(call.known(&name)?, Datum::Text(name) if *name == family) {
            return Ok(Datum::Bool(true));
        }
        match call.context.attribute(member, "family") {
            Read::Value(above) => member = call.instance(&above)?,
            Read::Absent | Read::NotFound => break,
            Read::Unset(cell) => return Err(Failure::Unset(cell)),
        }
    }
    Ok(Datum::Bool(false))
}

pub(super) fn json_loads(call: &mut Call<'_>) -> Answer {
    let source = call.text(0)?;
    let value =
        serde_json::from_str(&source).map_err(|error| Failure::Other(format!("this is no JSON: {error}")))?;
    match integer_beyond_64_bits(&source) {
        Some(number) => Err(Failure::Other(format!(
            "the number {number} does not fit 64 bits"
        ))),
        None => from_json(value),
    }
}

/// The first whole number in JSON that a model cannot hold. Whoever reads JSON makes a fraction of it, which is another number.
fn integer_beyond_64_bits(json: &str) -> Option<&str> {
    let mut rest = json;
    while let Some(start) = rest.find(|c: char| matches!(c, '"' | '-' | '0'..='9')) {
        rest = &rest[start..];
        if let Some(text) = rest.strip_prefix('"') {
            let mut is_escaped = false;
            let end = text.find(|c: char| {
                let is_end = c == '"' && !is_escaped;
                is_escaped = c == '\\' && !is_escaped;
                is_end
            });
            rest = end.map_or("", |end| &text[end + 1..]);
            continue;
        }
        let end = rest.find(|c: char| !matches!(c, '-' | '+' | '.' | 'e' | 'E' | '0'..='9'));
        let (number, after) = rest.split_at(end.unwrap_or(rest.len()));
        if !number.contains(['.', 'e', 'E']) && number.parse::<i64>().is_err() {
            return Some(number);
        }
        rest = after;
    }
    None
}

/// JSON nests no deeper than its reader lets it, which is less than data may.
fn from_json(value: serde_json::Value) -> Answer {
    Ok(match value {
        serde_json::Value::Null => Datum::Null,
        serde_json::Value::Bool(bool) => Datum::Bool(bool),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(int) => Datum::Int(int),
            None => Datum::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        serde_json::Value::String(text) => Datum::text(text),
        serde_json::Value::Array(items) => {
            Datum::List(items.into_iter().map(from_json).collect::<Result<_, _>>()?)
        }
        serde_json::Value::Object(entries) => {
            let entries = entries
                .into_iter()
                .map(|(key, value)| Ok((Arc::from(key), from_json(value)?)))
                .collect::<Result<Dict, Failure>>()?;
            Datum::Dict(Arc::new(entries))
        }
    })
}

pub(super) fn json_dumps(call: &mut Call<'_>) -> Answer {
    let mut out = String::new();
    write_json(call.argument(0), call, &mut out)?;
    Ok(Datum::text(out))
}

fn write_json(datum: &Datum, call: &Call<'_>, out: &mut String) -> Result<(), Failure> {
    match call.known(datum)? {
        Datum::Null => out.push_str("null"),
        Datum::Bool(bool) => out.push_str(if *bool { "true" } else { "false" }),
        Datum::Int(int) => {
            let _ = write!(out, "{int}");
        }
        Datum::Float(float) if float.is_nan() => out.push_str("NaN"),
        Datum::Float(float) if float.is_infinite() => {
            out.push_str(if *float > 0.0 { "Infinity" } else { "-Infinity" });
        }
        Datum::Float(float) => out.push_str(&float_representation(*float)),
        Datum::Text(text) => write_json_text(text, out),
        Datum::List(items) => {
            write_separated('[', items.iter(), ']', out, |item, out| {
                write_json(item, call, out)
            })?;
        }
        Datum::Dict(dict) => write_separated('{', dict.iter(), '}', out, |(key, value), out| {
            write_json_text(key, out);
            out.push_str(": ");
            write_json(value, call, out)
        })?,
        other => {
            return Err(Failure::Other(format!(
                "`{}` has no form in JSON",
                call.shown(other)
            )));
        }
    }
    if out.len() > LONGEST_TEXT {
        return Err(Failure::Other(format!(
            "the text would be longer than {} MiB",
            LONGEST_TEXT >> 20
        )));
    }
    Ok(())
}

/// A text in JSON of nothing but ASCII.
pub(crate) fn write_json_text(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='\u{7e}' => out.push(c),
            c => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out.push('"');
}

pub(super) fn validate_type(call: &mut Call<'_>) -> Answer {
    let name = call.text(0)?;
    let value = call.known(call.argument(1))?;
    let none = Arc::new(Dict::default());
    let parameters = match call.argument(2) {
        Datum::Dict(parameters) => parameters,
        _ => &none,
    };
    validators::validate(&name, value, parameters)
        .map(Datum::Bool)
        .map_err(Failure::Other)
}
