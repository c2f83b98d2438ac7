//! The functions that every Go template has.

use std::cmp::Ordering;
use std::fmt::Write;

use super::super::quoting::is_printable;
use super::super::text::runes;
use super::datum::Datum;
use super::printing::{format, print_all, print_line};
use crate::text_builder::{TextBuilder, TooLong};

const NAMES: [&str; 19] = [
    "and", "call", "eq", "ge", "gt", "html", "index", "js", "le", "len", "lt", "ne", "not", "or", "print",
    "printf", "println", "slice", "urlquery",
];

/// Whether there is a function of that name.
pub(super) fn exists(name: &str) -> bool {
    NAMES.contains(&name)
}

/// Calls one; `and` and `or` are the executor's.
pub(super) fn call(name: &str, arguments: &[Datum]) -> Result<Datum, String> {
    Ok(match name {
        "call" => match arguments {
            [] => return Err("missing function".to_owned()),
            [Datum::Nothing, ..] => return Err("call of nil".to_owned()),
            [first, ..] => {
                return Err(format!("non-function of type {}", first.type_name()));
            }
        },
        "eq" => Datum::Bool(equal(arguments)?),
        "ne" => Datum::Bool(!equals(pair(arguments)?)?),
        "lt" => Datum::Bool(order(arguments)?.is_some_and(Ordering::is_lt)),
        "le" => Datum::Bool(order(arguments)?.is_some_and(Ordering::is_le)),
        "gt" => Datum::Bool(order(arguments)?.is_some_and(Ordering::is_gt)),
        "ge" => Datum::Bool(order(arguments)?.is_some_and(Ordering::is_ge)),
        "html" => Datum::str(html(&print_all(arguments)?)?),
        "js" => Datum::str(javascript(&print_all(arguments)?)?),
        "urlquery" => Datum::str(query(&print_all(arguments)?)?),
        "index" => index(arguments)?,
        "slice" => slice(arguments)?,
        "len" => Datum::Int(length(one(arguments, "len")?)?),
        "not" => Datum::Bool(!one(arguments, "not")?.is_true()),
        "print" => Datum::str(print_all(arguments)?),
        "println" => Datum::str(print_line(arguments)?),
        "printf" => match arguments {
            [Datum::Str(text), values @ ..] => Datum::str(format(text.as_bytes(), values)?),
            [] => return Err("wrong number of args for printf: want at least 1 got 0".to_owned()),
            [other, ..] => {
                return Err(format!(
                    "wrong type for value; expected string; got {}",
                    other.type_name()
                ));
            }
        },
        other => return Err(format!("function {other:?} not defined")),
    })
}

fn one<'a>(arguments: &'a [Datum], name: &str) -> Result<&'a Datum, String> {
    match arguments {
        [one] => Ok(one),
        other => Err(format!(
            "wrong number of args for {name}: want 1 got {}",
            other.len()
        )),
    }
}

fn pair(arguments: &[Datum]) -> Result<(&Datum, &Datum), String> {
    match arguments {
        [a, b] => Ok((a, b)),
        [] | [_] => Err("missing argument for comparison".to_owned()),
        more => Err(format!("wrong number of args: want 2 got {}", more.len())),
    }
}

/// Whether the first argument equals any of the others.
fn equal(arguments: &[Datum]) -> Result<bool, String> {
    let [first, others @ ..] = arguments else {
        return Err("missing argument for comparison".to_owned());
    };
    if others.is_empty() {
        return Err("missing argument for comparison".to_owned());
    }
    for other in others {
        if equals((first, other))? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn equals((a, b): (&Datum, &Datum)) -> Result<bool, String> {
    match (a, b) {
        (Datum::Nothing, Datum::Nothing) => Ok(true),
        (Datum::Nothing, _) | (_, Datum::Nothing) => Ok(false),
        (Datum::Float(a), Datum::Float(b)) => Ok(a == b),
        (Datum::List(_) | Datum::Map(_), _) => Err(format!("non-comparable type {}", a.type_name())),
        (_, Datum::List(_) | Datum::Map(_)) => Err("incompatible types for comparison".to_owned()),
        (a, b) => a
            .order(b)
            .map(Ordering::is_eq)
            .ok_or_else(|| "incompatible types for comparison".to_owned()),
    }
}

/// The order of two numbers or strings; none with what is not a number.
fn order(arguments: &[Datum]) -> Result<Option<Ordering>, String> {
    let (a, b) = pair(arguments)?;
    match (a, b) {
        (Datum::Float(a), Datum::Float(b)) => Ok(a.partial_cmp(b)),
        (Datum::Nothing | Datum::Bool(_) | Datum::List(_) | Datum::Map(_), _)
        | (_, Datum::Nothing | Datum::Bool(_) | Datum::List(_) | Datum::Map(_)) => {
            Err("invalid type for comparison".to_owned())
        }
        (a, b) => match a.order(b) {
            Some(order) => Ok(Some(order)),
            None => Err("incompatible types for comparison".to_owned()),
        },
    }
}

fn length(value: &Datum) -> Result<i64, String> {
    let length = match value {
        Datum::Str(text) => text.len(),
        Datum::List(items) => items.len(),
        Datum::Map(map) => map.entries.len(),
        Datum::Nothing => return Err("len of nil pointer".to_owned()),
        other => return Err(format!("len of type {}", other.type_name())),
    };
    Ok(i64::try_from(length).unwrap_or(i64::MAX))
}

/// `x[i][j]…`.
fn index(arguments: &[Datum]) -> Result<Datum, String> {
    let [first, indexes @ ..] = arguments else {
        return Err("wrong number of args for index: want at least 1 got 0".to_owned());
    };
    let mut value = first.clone();
    for index in indexes {
        value = match &value {
            Datum::Nothing => return Err("index of untyped nil".to_owned()),
            Datum::Str(text) => Datum::Byte(text.as_bytes()[position(index, text.len(), false)?]),
            Datum::List(items) => items[position(index, items.len(), false)?].clone(),
            Datum::Map(map) => {
                if let Some((key, _)) = map.entries.first()
                    && key.order(index).is_none()
                    && !matches!(key, Datum::List(_) | Datum::Map(_))
                {
                    return Err(format!(
                        "value has type {}; should be {}",
                        index.type_name(),
                        key.type_name()
                    ));
                }
                map.get(index).unwrap_or(&map.missing).clone()
            }
            other => return Err(format!("can't index item of type {}", other.type_name())),
        };
    }
    Ok(value)
}

/// An index into something of a length; the end itself is allowed where `with_end`.
fn position(index: &Datum, length: usize, with_end: bool) -> Result<usize, String> {
    let number = match index {
        Datum::Nothing => return Err("cannot index slice/array with nil".to_owned()),
        other => other
            .as_int()
            .ok_or_else(|| format!("cannot index slice/array with type {}", other.type_name()))?,
    };
    let last = length + usize::from(with_end);
    usize::try_from(number)
        .ok()
        .filter(|at| *at < last)
        .ok_or_else(|| format!("index out of range: {number}"))
}

/// `x[i:j]`.
fn slice(arguments: &[Datum]) -> Result<Datum, String> {
    let [value, indexes @ ..] = arguments else {
        return Err("wrong number of args for slice: want at least 1 got 0".to_owned());
    };
    if indexes.len() > 3 {
        return Err(format!("too many slice indexes: {}", indexes.len()));
    }
    let length = match value {
        Datum::Str(_) if indexes.len() == 3 => return Err("cannot 3-index slice a string".to_owned()),
        Datum::Str(text) => text.len(),
        Datum::List(items) => items.len(),
        Datum::Nothing => return Err("slice of untyped nil".to_owned()),
        other => return Err(format!("can't slice item of type {}", other.type_name())),
    };
    let mut bounds = [0, length, length];
    for (bound, index) in bounds.iter_mut().zip(indexes) {
        *bound = position(index, length, true)?;
    }
    let [low, high, most] = bounds;
    if low > high {
        return Err(format!("invalid slice index: {low} > {high}"));
    }
    if high > most {
        return Err(format!("invalid slice index: {high} > {most}"));
    }
    Ok(match value {
        Datum::Str(text) => Datum::str(&text.as_bytes()[low..high]),
        Datum::List(items) => Datum::List(items[low..high].into()),
        other => other.clone(),
    })
}

fn html(text: &[u8]) -> Result<Vec<u8>, TooLong> {
    let mut out = TextBuilder::new();
    for part in text.split_inclusive(|b| *b == 0) {
        let (part, has_null) = match part.strip_suffix(b"\0") {
            Some(part) => (part, true),
            None => (part, false),
        };
        super::super::html::escape(part, &mut out);
        if has_null {
            out.push_char('\u{fffd}');
        }
    }
    out.finish()
}

fn javascript(text: &[u8]) -> Result<Vec<u8>, TooLong> {
    let mut out = TextBuilder::new();
    for (at, length, c) in runes(text) {
        let mut code = String::new();
        let escaped: &str = match c {
            '\\' => "\\\\",
            '\'' => "\\'",
            '"' => "\\\"",
            '<' | '>' | '&' | '=' | '\0'..='\x1f' => {
                // Writing to a string cannot fail.
                let _ = write!(code, "\\u{:04X}", c as u32);
                &code
            }
            c if !c.is_ascii() && !is_printable(c) => {
                let _ = write!(code, "\\u{:04X}", c as u32);
                &code
            }
            _ => {
                out.push_bytes(&text[at..at + length]);
                continue;
            }
        };
        out.push_str(escaped);
    }
    out.finish()
}

fn query(text: &[u8]) -> Result<Vec<u8>, TooLong> {
    let mut out = TextBuilder::new();
    for byte in text {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push_byte(*byte);
            }
            b' ' => out.push_byte(b'+'),
            other => {
                let _ = write!(out, "%{other:02X}");
            }
        }
    }
    out.finish()
}
