//! JSON and CSV.

use std::fmt::Write;

use setpoint_value::{ArgumentError, CallError, Refinement, Type, Value, format_float, function};

use super::{MODULE, argument, flags, not_null, plain, refuse};
use crate::text_builder::TextBuilder;

/// A value as JSON on one line, fields and keys sorted.
///
/// Sets become sorted arrays. Functions and opaque values have no JSON, nor have NaN and infinities.
#[function(
    signature = "func(val dynamic) str",
    flags = &[flags("!?~")],
    refine = not_null,
    example(call = r#"cty.json_encode([1, 2])"#, result = r#""[1,2]""#),
    example(call = r#"cty.json_encode(struct{b => "x", a => true})"#, result = r#""{\"a\":true,\"b\":\"x\"}""#)
)]
pub fn json_encode(
    /// Any value that JSON has a form for.
    val: &Value,
) -> Result<Value, CallError> {
    if !val.is_wholly_known() {
        let first = first_byte(val).unwrap_or_default();
        return Ok(Value::refined(
            Type::Str,
            Refinement::not_null().with_prefix(first),
        ));
    }
    let mut out = TextBuilder::new();
    write_json(val, &mut out).or_else(|problem| refuse(0, problem))?;
    Ok(Value::str(out.finish()?))
}

/// What the JSON of a value begins with, where its type decides that.
fn first_byte(value: &Value) -> Option<&'static str> {
    let not_null = value
        .as_unknown()
        .is_none_or(|unknown| unknown.refinement.not_null);
    match plain(&value.ty()) {
        _ if !not_null => None,
        Type::Str => Some("\""),
        Type::List(_) | Type::Set(_) | Type::Tuple(_) => Some("["),
        Type::Map(_) | Type::Struct(_) => Some("{"),
        _ => None,
    }
}

/// Writes a wholly known value.
pub(super) fn write_json(value: &Value, out: &mut TextBuilder) -> Result<(), String> {
    match value.unmarked() {
        Value::Null(_) => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Int(value) => {
            let _ = write!(out, "{value}");
        }
        Value::Float(value) if value.0.is_finite() => out.push_str(&format_float(value.0)),
        Value::Float(_) => return Err("JSON has neither NaN nor infinities".to_owned()),
        Value::Str(text) => match text.as_str() {
            Some(text) => write_string(text, out),
            None => return Err("a string is not valid UTF-8".to_owned()),
        },
        Value::List(list) => write_array(&mut list.iter(), out)?,
        Value::Set(set) => write_array(&mut set.iter(), out)?,
        Value::Tuple(items) => write_array(&mut items.iter(), out)?,
        Value::Struct(s) => {
            let mut fields: Vec<_> = s.iter().map(|(name, value)| (name.to_owned(), value)).collect();
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            write_object(fields, out)?;
        }
        Value::Map(map) => {
            let mut entries = Vec::with_capacity(map.len());
            for (key, value) in map.iter() {
                let key = setpoint_value::convert(key, &Type::Str).ok();
                let Some(key) = key.as_ref().and_then(|k| k.as_str()?.as_str()) else {
                    return Err("a key is not a text".to_owned());
                };
                entries.push((key.to_owned(), value));
            }
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            write_object(entries, out)?;
        }
        other @ (Value::Func(_) | Value::Opaque(_)) => return Err(format!("{} has no JSON", other.ty())),
        Value::Unknown(_) | Value::Marked(_) => return Err("a part is not known".to_owned()),
    }
    Ok(())
}

fn write_array(items: &mut dyn Iterator<Item = &Value>, out: &mut TextBuilder) -> Result<(), String> {
    out.push_byte(b'[');
    for (index, item) in items.enumerate() {
        // Values may share their parts, so that there is far more to write than is stored.
        if out.is_full() {
            break;
        }
        if index > 0 {
            out.push_byte(b',');
        }
        write_json(item, out)?;
    }
    out.push_byte(b']');
    Ok(())
}

fn write_object(fields: Vec<(String, &Value)>, out: &mut TextBuilder) -> Result<(), String> {
    out.push_byte(b'{');
    for (index, (name, value)) in fields.into_iter().enumerate() {
        if out.is_full() {
            break;
        }
        if index > 0 {
            out.push_byte(b',');
        }
        write_string(&name, out);
        out.push_byte(b':');
        write_json(value, out)?;
    }
    out.push_byte(b'}');
    Ok(())
}

/// A JSON string, with the characters escaped that would end a script in a web page, as Go's encoder does.
pub(super) fn write_string(text: &str, out: &mut TextBuilder) {
    out.push_byte(b'"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push_char(c),
        }
    }
    out.push_byte(b'"');
}

/// The value that a text of JSON spells: structs, tuples, and numbers as they are written.
///
/// In mcl the text is known while compiling, because it decides the type. A JSON `null` has no value there.
#[function(
    signature = "func(str str) dynamic",
    result_type = |arguments| match known_text(arguments) {
        Some(text) => Ok(decode_json(text).map_err(|problem| ArgumentError::at(0, problem))?.ty()),
        None => json_type_by_beginning(arguments).map_err(|problem| ArgumentError::at(0, problem)),
    },
    // Only `null` is null.
    refine = |_, ty| match ty {
        Type::Dynamic => Refinement::default(),
        _ => Refinement::not_null(),
    },
    example(call = r#"cty.json_decode("{\"a\": [1, 2], \"b\": \"x\"}")"#, result = r#"struct{a => [1, 2], b => "x"}"#)
)]
pub fn json_decode(
    /// Text of JSON.
    str: &str,
) -> Result<Value, CallError> {
    decode_json(str).or_else(|problem| refuse(0, problem))
}

fn known_text(arguments: &[Value]) -> Option<&str> {
    argument(arguments, 0).ok()?.as_str()?.as_str()
}

/// The type of a JSON text, from its beginning.
fn json_type_by_beginning(arguments: &[Value]) -> Result<Type, String> {
    let unknown = argument(arguments, 0).ok().and_then(Value::as_unknown);
    let Some(prefix) = unknown.and_then(|unknown| unknown.refinement.prefix.as_ref()) else {
        return Ok(Type::Dynamic);
    };
    match String::from_utf8_lossy(prefix.as_bytes())
        .trim_start_matches([' ', '\t', '\n', '\r'])
        .chars()
        .next()
    {
        None | Some('{' | '[' | 'n') => Ok(Type::Dynamic),
        Some('"') => Ok(Type::Str),
        Some('t' | 'f') => Ok(Type::Bool),
        Some('-' | '0'..='9') => Ok(Type::Number),
        Some(other) => Err(format!("is not JSON: no document begins with `{other}`")),
    }
}

fn decode_json(text: &str) -> Result<Value, String> {
    let json: serde_json::Value =
        serde_json::from_str(text).map_err(|error| format!("is not JSON: {error}"))?;
    decoded(json)
}

fn decoded(json: serde_json::Value) -> Result<Value, String> {
    Ok(match json {
        serde_json::Value::Null => Value::Null(Type::Dynamic),
        serde_json::Value::Bool(value) => Value::Bool(value),
        serde_json::Value::String(text) => Value::str(text),
        serde_json::Value::Number(number) => {
            let float = || number.as_f64().filter(|f| f.is_finite()).map(Value::float);
            let value = number.as_i64().map(Value::Int).or_else(float);
            value.ok_or_else(|| "a number is too big".to_owned())?
        }
        serde_json::Value::Array(items) => {
            Value::tuple(items.into_iter().map(decoded).collect::<Result<Vec<_>, _>>()?)
        }
        serde_json::Value::Object(fields) => {
            let fields = fields
                .into_iter()
                .map(|(name, value)| Ok((name, decoded(value)?)));
            Value::object(fields.collect::<Result<Vec<_>, String>>()?)
        }
    })
}

/// The rows of a text of CSV (RFC 4180), as structs whose fields are named by the first row.
///
/// In mcl the text is known while compiling, because it decides the type.
#[function(
    signature = "func(str str) []dynamic",
    result_type = |arguments| match known_text(arguments) {
        Some(text) => Ok(decode_csv(text).map_err(|problem| ArgumentError::at(0, problem))?.ty()),
        None => Ok(Type::Dynamic),
    },
    refine = not_null,
    example(call = r#"cty.csv_decode("a,b\n1,2\n")"#, result = r#"[struct{a => "1", b => "2"}]"#)
)]
pub fn csv_decode(
    /// Text of CSV, the names of the columns in its first row.
    str: &str,
) -> Result<Value, CallError> {
    decode_csv(str).or_else(|problem| refuse(0, problem))
}

fn decode_csv(text: &str) -> Result<Value, String> {
    check_quotes(text)?;
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(true)
        .from_reader(text.as_bytes());
    let headers = reader.headers().map_err(|error| csv_problem(&error))?.clone();
    if headers.is_empty() {
        return Err("a row of names is missing".to_owned());
    }
    for (index, name) in headers.iter().enumerate() {
        if headers.iter().take(index).any(|earlier| earlier == name) {
            return Err(format!("two columns have the name `{name}`"));
        }
    }
    let ty = Type::structure(headers.iter().map(|name| (name, Type::Str)));
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| csv_problem(&error))?;
        let fields: Vec<Value> = record.iter().map(Value::str).collect();
        rows.push(Value::structure(ty.clone(), fields));
    }
    Ok(Value::list(ty, rows))
}

/// The reader takes any quotes; RFC 4180 wants them around whole fields, and closed.
fn check_quotes(text: &str) -> Result<(), String> {
    let mut bytes = text.bytes().peekable();
    let mut line = 1;
    let mut at_start = true;
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' if at_start => {
                let opened = line;
                loop {
                    match bytes.next() {
                        None => return Err(format!("the quote that line {opened} opens is not closed")),
                        Some(b'\n') => line += 1,
                        Some(b'"') if bytes.next_if_eq(&b'"').is_none() => break,
                        Some(_) => {}
                    }
                }
                at_start = false;
                if !matches!(bytes.peek(), None | Some(b',' | b'\r' | b'\n')) {
                    return Err(format!("on line {line} something follows a closing quote"));
                }
            }
            b'"' => {
                return Err(format!(
                    "on line {line} a quote is inside of a field without quotes"
                ));
            }
            b'\n' => {
                line += 1;
                at_start = true;
            }
            b',' => at_start = true,
            _ => at_start = false,
        }
    }
    Ok(())
}

fn csv_problem(error: &csv::Error) -> String {
    match error.kind() {
        csv::ErrorKind::UnequalLengths {
            pos,
            expected_len,
            len,
        } => {
            let line = pos.as_ref().map_or(0, csv::Position::line);
            format!("line {line} has {len} fields where the first has {expected_len}")
        }
        _ => format!("is not CSV: {error}"),
    }
}
