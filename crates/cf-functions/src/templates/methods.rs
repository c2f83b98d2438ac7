//! Methods of texts, lists and dicts. The engine's own go last.

use minijinja::value::{Tuple, ValueKind};
use minijinja::{Error, ErrorKind, State, Value};
use minijinja_contrib::pycompat::unknown_method_callback;
use setpoint_value::LONGEST_TEXT;

use super::filters::centered;
use super::parameters::{Parameters, wrong};

/// Calls a method of a value.
pub(super) fn call(
    state: &mut State<'_, '_>,
    value: &Value,
    name: &str,
    arguments: &[Value],
) -> Result<Value, Error> {
    let own = match (value.kind(), value.as_str()) {
        (ValueKind::String, Some(text)) => of_text(text, name, arguments)?,
        (ValueKind::Seq, _) if name == "index" => Some(index_in_list(value, arguments)?),
        (ValueKind::Seq, _)
            if matches!(
                name,
                "append" | "extend" | "insert" | "pop" | "remove" | "clear" | "sort" | "reverse"
            ) =>
        {
            return Err(unchangeable("a list", name));
        }
        (ValueKind::Map, _) if matches!(name, "update" | "pop" | "popitem" | "clear" | "setdefault") => {
            return Err(unchangeable("a dict", name));
        }
        _ => None,
    };
    match own {
        Some(result) => Ok(result),
        None => unknown_method_callback(state, value, name, arguments),
    }
}

fn unchangeable(what: &str, name: &str) -> Error {
    wrong(format!(
        "`{name}` would change {what}, and templates change nothing: make a new one with `+`, or use a `namespace`"
    ))
}

fn of_text(text: &str, name: &str, arguments: &[Value]) -> Result<Option<Value>, Error> {
    Ok(Some(match name {
        "casefold" => Value::from(text.to_lowercase()),
        "center" | "ljust" | "rjust" => aligned(text, name, arguments)?,
        "expandtabs" => {
            let parameters = Parameters::bound(arguments, ["tabsize"])?;
            Value::from(without_tabs(text, parameters.count(0, 8)?)?)
        }
        "index" | "rindex" => {
            let parameters = Parameters::bound(arguments, ["sub"])?;
            let wanted = parameters.required_text(0)?;
            let found = if name == "index" {
                text.find(wanted)
            } else {
                text.rfind(wanted)
            };
            let at = found.ok_or_else(|| wrong(format!("`{wanted}` is not in `{text}`")))?;
            Value::from(text[..at].chars().count())
        }
        "partition" | "rpartition" => {
            let parameters = Parameters::bound(arguments, ["sep"])?;
            let separator = parameters.required_text(0)?;
            if separator.is_empty() {
                return Err(wrong("the separator is empty"));
            }
            let parts = match name {
                "partition" => text.split_once(separator),
                _ => text.rsplit_once(separator),
            };
            let parts = match parts {
                Some((before, after)) => [before, separator, after],
                None if name == "partition" => [text, "", ""],
                None => ["", "", text],
            };
            Value::from(Tuple::new(parts.map(Value::from).to_vec()))
        }
        "removeprefix" | "removesuffix" => {
            let parameters = Parameters::bound(arguments, ["part"])?;
            let part = parameters.required_text(0)?;
            let rest = match name {
                "removeprefix" => text.strip_prefix(part),
                _ => text.strip_suffix(part),
            };
            Value::from(rest.unwrap_or(text))
        }
        "rsplit" => split_from_the_right(text, arguments)?,
        "swapcase" => Value::from(text.chars().flat_map(swapped).collect::<String>()),
        "zfill" => {
            let parameters = Parameters::bound(arguments, ["width"])?;
            let missing = parameters.count(0, 0)?.saturating_sub(text.chars().count());
            let (sign, digits) = text.split_at(usize::from(text.starts_with(['+', '-'])));
            Value::from(format!("{sign}{}{digits}", "0".repeat(missing)))
        }
        _ => return Ok(None),
    }))
}

fn aligned(text: &str, name: &str, arguments: &[Value]) -> Result<Value, Error> {
    let parameters = Parameters::bound(arguments, ["width", "fillchar"])?;
    let width = parameters.count(0, 0)?;
    let fill = parameters.text(1, " ")?;
    let mut chars = fill.chars();
    let (Some(fill), None) = (chars.next(), chars.next()) else {
        return Err(wrong("the fill character must be exactly one character long"));
    };
    let missing = width.saturating_sub(text.chars().count());
    let filled = || std::iter::repeat_n(fill, missing);
    Ok(Value::from(match name {
        "ljust" => text.chars().chain(filled()).collect::<String>(),
        "rjust" => filled().chain(text.chars()).collect(),
        _ => centered(text, width, fill),
    }))
}

fn without_tabs(text: &str, size: usize) -> Result<String, Error> {
    let mut out = String::with_capacity(text.len());
    let mut column = 0;
    for c in text.chars() {
        match c {
            '\t' if size == 0 => {}
            '\t' => {
                let blanks = size - column % size;
                out.extend(std::iter::repeat_n(' ', blanks));
                column += blanks;
            }
            c => {
                out.push(c);
                column = if matches!(c, '\n' | '\r') { 0 } else { column + 1 };
            }
        }
        if out.len() > LONGEST_TEXT {
            return Err(wrong("the text becomes too long"));
        }
    }
    Ok(out)
}

fn swapped(c: char) -> Vec<char> {
    match c.is_uppercase() {
        true => c.to_lowercase().collect(),
        false => c.to_uppercase().collect(),
    }
}

fn split_from_the_right(text: &str, arguments: &[Value]) -> Result<Value, Error> {
    let parameters = Parameters::bound(arguments, ["sep", "maxsplit"])?;
    let most = match parameters.value(1).and_then(Value::as_i64) {
        Some(most) => usize::try_from(most).unwrap_or(usize::MAX),
        None => usize::MAX,
    };
    let mut parts: Vec<&str> = Vec::new();
    match parameters.value(0).filter(|value| !value.is_none()) {
        Some(_) => {
            let separator = parameters.required_text(0)?;
            if separator.is_empty() {
                return Err(wrong("the separator is empty"));
            }
            parts.extend(text.rsplitn(most.saturating_add(1), separator));
        }
        None => {
            let mut rest = text.trim_end();
            while !rest.is_empty() {
                let last = rest
                    .rsplit_once(char::is_whitespace)
                    .filter(|_| parts.len() < most);
                let (before, word) = last.unwrap_or(("", rest));
                parts.push(word);
                rest = before.trim_end();
            }
        }
    }
    parts.reverse();
    Ok(parts.into_iter().map(Value::from).collect())
}

fn index_in_list(list: &Value, arguments: &[Value]) -> Result<Value, Error> {
    let parameters = Parameters::bound(arguments, ["value"])?;
    let Some(wanted) = parameters.value(0) else {
        return Err(ErrorKind::MissingArgument.into());
    };
    let position = list.try_iter()?.position(|item| item == *wanted);
    position
        .map(Value::from)
        .ok_or_else(|| wrong("the value is not in the list"))
}
