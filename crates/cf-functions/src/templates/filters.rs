//! Filters and globals of Jinja that the engine lacks, or that it has otherwise.

mod wrap;

use std::borrow::Cow;
use std::fmt::Write as _;

use minijinja::value::{Rest, Tuple, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, Value};

use super::conversion::printed;
use super::parameters::{Parameters, wrong};
use crate::std::write_json_text;
use crate::text::float_representation;

type Arguments = Rest<ValueOrKwargs>;

pub(super) fn add_to(environment: &mut Environment<'static>) {
    for name in ["escape", "e"] {
        environment.add_filter(name, |value: Value| escape(&value, false));
    }
    environment.add_filter("forceescape", |value: Value| escape(&value, true));
    environment.add_filter("center", center);
    environment.add_filter("dictsort", dictsort);
    environment.add_filter("filesizeformat", filesizeformat);
    environment.add_filter("float", float);
    environment.add_filter("indent", indent);
    environment.add_filter("int", int);
    environment.add_filter("striptags", |text: Cow<'_, str>| {
        minijinja_contrib::filters::striptags(text.into_owned())
    });
    environment.add_filter("tojson", tojson);
    environment.add_filter("truncate", truncate);
    environment.add_filter("urlencode", urlencode);
    environment.add_filter("wordcount", wordcount);
    environment.add_filter("wordwrap", wrap::wordwrap);
    environment.add_filter("xmlattr", xmlattr);
    environment.add_function("cycler", |items: Rest<Value>| {
        minijinja_contrib::globals::cycler(items.0)
    });
    environment.add_function("joiner", minijinja_contrib::globals::joiner);
    // It prints the insides of the engine.
    environment.remove_global("debug");
}

/// A text for HTML and XML.
fn escape(value: &Value, also_safe: bool) -> Result<Value, Error> {
    if value.is_safe() && !also_safe {
        return Ok(value.clone());
    }
    Ok(Value::from_safe_string(escaped(&printed(value)?)))
}

/// With the five characters replaced that mean something in HTML and XML.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&#34;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

fn center(arguments: Arguments) -> Result<String, Error> {
    let (value, parameters) = Parameters::of_filter(arguments, ["width"])?;
    Ok(centered(&printed(&value)?, parameters.count(0, 80)?, ' '))
}

/// A text in the middle of so many characters, as Python puts it there.
pub(super) fn centered(text: &str, width: usize, fill: char) -> String {
    let missing = width.saturating_sub(text.chars().count());
    let left = missing / 2 + (missing & width & 1);
    let filled = |count: usize| std::iter::repeat_n(fill, count);
    filled(left)
        .chain(text.chars())
        .chain(filled(missing - left))
        .collect()
}

fn dictsort(arguments: Arguments) -> Result<Value, Error> {
    let (dict, parameters) = Parameters::of_filter(arguments, ["case_sensitive", "by", "reverse"])?;
    if dict.kind() != ValueKind::Map {
        return Err(wrong(format!("expected a dict, not a {}", dict.kind())));
    }
    let by_value = match &*parameters.text(1, "key")? {
        "key" => false,
        "value" => true,
        _ => return Err(wrong("`by` is `key` or `value`")),
    };
    let is_sensitive = parameters.bool(0);
    let mut entries = Vec::new();
    for key in dict.try_iter()? {
        let value = dict.get_item(&key)?;
        let by = if by_value { &value } else { &key };
        let by = match by.as_str().filter(|_| !is_sensitive) {
            Some(text) => Value::from(text.to_lowercase()),
            None => by.clone(),
        };
        entries.push((by, Value::from(Tuple::from([key, value]))));
    }
    entries.sort_by(|(a, _), (b, _)| match parameters.bool(2) {
        false => a.cmp(b),
        true => b.cmp(a),
    });
    Ok(entries.into_iter().map(|(_, entry)| entry).collect())
}

fn filesizeformat(arguments: Arguments) -> Result<String, Error> {
    const UNITS: [&str; 8] = ["k", "M", "G", "T", "P", "E", "Z", "Y"];
    let (value, parameters) = Parameters::of_filter(arguments, ["binary"])?;
    let (base, end) = match parameters.bool(0) {
        false => (1000.0, "B"),
        true => (1024.0, "iB"),
    };
    let Some(bytes) = number(&value) else {
        return Err(wrong(format!("expected a number, not a {}", value.kind())));
    };
    if bytes < base {
        let bytes = bytes.trunc();
        return Ok(format!("{bytes} Byte{}", if bytes == 1.0 { "" } else { "s" }));
    }
    let mut rest = bytes / base;
    let mut units = UNITS.iter().peekable();
    while let Some(unit) = units.next() {
        if rest < base || units.peek().is_none() {
            let unit = match (*unit, parameters.bool(0)) {
                ("k", true) => "K",
                (unit, _) => unit,
            };
            return Ok(format!("{rest:.1} {unit}{end}"));
        }
        rest /= base;
    }
    Ok(String::new())
}

fn number(value: &Value) -> Option<f64> {
    match value.as_str() {
        Some(text) => python_float(text),
        None => f64::try_from(value.clone()).ok(),
    }
}

/// A text as Python's `float` reads it.
fn python_float(text: &str) -> Option<f64> {
    let text = without_underscores(text.trim())?;
    let is_number = text.chars().all(|c| c.is_ascii_digit() || "+-.eE".contains(c));
    let word = text.trim_start_matches(['+', '-']).to_ascii_lowercase();
    (is_number || matches!(&*word, "inf" | "infinity" | "nan")).then(|| text.parse().ok())?
}

/// A text as Python's `int` reads it.
fn python_int(text: &str, base: u32) -> Option<i64> {
    let text = text.trim();
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let prefix = match base {
        2 => ["0b", "0B"],
        8 => ["0o", "0O"],
        16 => ["0x", "0X"],
        _ => ["", ""],
    };
    let digits = prefix
        .iter()
        .find_map(|prefix| digits.strip_prefix(prefix))
        .unwrap_or(digits);
    let digits = without_underscores(digits).filter(|digits| !digits.starts_with(['+', '-']))?;
    i64::from_str_radix(&format!("{sign}{digits}"), base).ok()
}

/// Underscores may stand between two digits.
fn without_underscores(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('_') {
        return Some(text.into());
    }
    let is_between = !text.starts_with('_') && !text.ends_with('_') && !text.contains("__");
    is_between.then(|| text.replace('_', "").into())
}

fn float(arguments: Arguments) -> Result<Value, Error> {
    let (value, parameters) = Parameters::of_filter(arguments, ["default"])?;
    let otherwise = || parameters.value(0).cloned().unwrap_or_else(|| Value::from(0.0));
    Ok(number(&value).map_or_else(otherwise, Value::from))
}

fn int(arguments: Arguments) -> Result<Value, Error> {
    let (value, parameters) = Parameters::of_filter(arguments, ["default", "base"])?;
    let base = match parameters.count(1, 10)? {
        base @ 2..=36 => base as u32,
        _ => return Err(wrong("`base` is a number from 2 to 36")),
    };
    if value.is_integer() {
        return Ok(value);
    }
    if value.kind() == ValueKind::Bool {
        return Ok(Value::from(i64::from(value.is_true())));
    }
    let whole = value.as_str().and_then(|text| python_int(text, base));
    let cut = || {
        let number = number(&value).filter(|number| number.is_finite())?.trunc();
        (number.abs() < 9e18).then_some(number as i64)
    };
    let otherwise = || parameters.value(0).cloned().unwrap_or_else(|| Value::from(0));
    Ok(whole.or_else(cut).map_or_else(otherwise, Value::from))
}

fn indent(arguments: Arguments) -> Result<Value, Error> {
    let (value, parameters) = Parameters::of_filter(arguments, ["width", "first", "blank"])?;
    let text = printed(&value)?;
    let indentation = match parameters.value(0).and_then(Value::as_str) {
        Some(text) => text.to_owned(),
        None => " ".repeat(parameters.count(0, 4)?),
    };
    let mut out = String::with_capacity(text.len());
    for (at, line) in text.split('\n').enumerate() {
        if at > 0 {
            out.push('\n');
        }
        let line = line.strip_suffix('\r').unwrap_or(line);
        if at == 0 && parameters.bool(1) || at > 0 && (parameters.bool(2) || !line.is_empty()) {
            out.push_str(&indentation);
        }
        out.push_str(line);
        if out.len() > setpoint_value::LONGEST_TEXT {
            return Err(wrong("the text becomes too long"));
        }
    }
    Ok(match value.is_safe() {
        true => Value::from_safe_string(out),
        false => Value::from(out),
    })
}

/// JSON that may stand in HTML, with its keys in order.
fn tojson(arguments: Arguments) -> Result<Value, Error> {
    let (value, parameters) = Parameters::of_filter(arguments, ["indent"])?;
    let indent = match parameters.value(0).filter(|value| !value.is_none()) {
        Some(_) => Some(parameters.count(0, 0)?),
        None => None,
    };
    let mut out = String::new();
    write_json(&value, indent, 0, &mut out)?;
    Ok(Value::from_safe_string(out))
}

/// Values that nest deeper have no form in JSON.
const DEEPEST_JSON: usize = 100;

fn write_json(value: &Value, indent: Option<usize>, level: usize, out: &mut String) -> Result<(), Error> {
    if level > DEEPEST_JSON || out.len() > setpoint_value::LONGEST_TEXT {
        return Err(wrong("the value is too large for JSON"));
    }
    match value.kind() {
        ValueKind::None => out.push_str("null"),
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number if value.is_integer() => {
            let _ = write!(out, "{value}");
        }
        ValueKind::Number => out.push_str(&float_representation(number(value).unwrap_or(f64::NAN))),
        ValueKind::String => write_html_json_text(value.as_str().unwrap_or_default(), out),
        ValueKind::Seq | ValueKind::Iterable => {
            let items: Vec<Value> = value.try_iter()?.collect();
            write_parts(['[', ']'], &items, indent, level, out, |item, out| {
                write_json(item, indent, level + 1, out)
            })?;
        }
        ValueKind::Map => {
            let mut keys: Vec<Value> = value.try_iter()?.collect();
            keys.sort();
            write_parts(['{', '}'], &keys, indent, level, out, |key, out| {
                write_html_json_text(&printed(key)?, out);
                out.push_str(": ");
                write_json(&value.get_item(key)?, indent, level + 1, out)
            })?;
        }
        kind => return Err(wrong(format!("a {kind} has no form in JSON"))),
    }
    Ok(())
}

fn write_parts(
    [open, close]: [char; 2],
    parts: &[Value],
    indent: Option<usize>,
    level: usize,
    out: &mut String,
    mut write: impl FnMut(&Value, &mut String) -> Result<(), Error>,
) -> Result<(), Error> {
    let new_line = |level: usize, out: &mut String| {
        if let Some(indent) = indent.filter(|_| !parts.is_empty()) {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent.saturating_mul(level).min(1000)));
        }
    };
    out.push(open);
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            out.push_str(if indent.is_some() { "," } else { ", " });
        }
        new_line(level + 1, out);
        write(part, out)?;
    }
    new_line(level, out);
    out.push(close);
    Ok(())
}

fn write_html_json_text(text: &str, out: &mut String) {
    let mut json = String::new();
    write_json_text(text, &mut json);
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\'' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
}

fn truncate(arguments: Arguments) -> Result<String, Error> {
    let (value, parameters) = Parameters::of_filter(arguments, ["length", "killwords", "end", "leeway"])?;
    let text = printed(&value)?;
    let (length, leeway) = (parameters.count(0, 255)?, parameters.count(3, 5)?);
    let end = parameters.text(2, "...")?;
    let Some(kept) = length.checked_sub(end.chars().count()) else {
        return Err(wrong(format!("`length` is {length}, and `{end}` is longer")));
    };
    if text.chars().count() <= length.saturating_add(leeway) {
        return Ok(text);
    }
    let cut = text
        .char_indices()
        .nth(kept)
        .map_or(&*text, |(at, _)| &text[..at]);
    let cut = match cut.rsplit_once(' ') {
        Some((words, _)) if !parameters.bool(1) => words,
        _ => cut,
    };
    Ok(format!("{cut}{end}"))
}

fn urlencode(arguments: Arguments) -> Result<String, Error> {
    let (value, _) = Parameters::of_filter(arguments, [])?;
    let pair = |key: &Value, value: &Value| -> Result<String, Error> {
        let quoted = |value: &Value| Ok::<_, Error>(quoted(&printed(value)?, "").replace("%20", "+"));
        Ok(format!("{}={}", quoted(key)?, quoted(value)?))
    };
    let pairs: Result<Vec<String>, Error> = match value.kind() {
        ValueKind::Map => value
            .try_iter()?
            .map(|key| pair(&key, &value.get_item(&key)?))
            .collect(),
        ValueKind::Seq | ValueKind::Iterable => value
            .try_iter()?
            .map(|entry| pair(&entry.get_item_by_index(0)?, &entry.get_item_by_index(1)?))
            .collect(),
        _ => return Ok(quoted(&printed(&value)?, "/")),
    };
    Ok(pairs?.join("&"))
}

/// A part of a URL: other bytes than these, letters, digits and `-._~` are written with `%`.
fn quoted(text: &str, safe: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        let c = char::from(byte);
        if c.is_ascii_alphanumeric() || "-._~".contains(c) || safe.contains(c) {
            out.push(c);
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

fn wordcount(value: Value) -> Result<usize, Error> {
    let text = printed(&value)?;
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    Ok(words.filter(|word| !word.is_empty()).count())
}

fn xmlattr(arguments: Arguments) -> Result<Value, Error> {
    let (dict, parameters) = Parameters::of_filter(arguments, ["autospace"])?;
    let mut out = String::new();
    for key in dict.try_iter()? {
        let value = dict.get_item(&key)?;
        if value.is_none() || value.is_undefined() {
            continue;
        }
        let name = printed(&key)?;
        if name.contains(|c: char| c.is_whitespace() || "/>=".contains(c)) {
            return Err(wrong(format!("`{name}` is no name of an attribute")));
        }
        let text = match value.is_safe() {
            true => printed(&value)?,
            false => escaped(&printed(&value)?),
        };
        let _ = write!(out, " {}=\"{text}\"", escaped(&name));
    }
    let is_spaced = parameters.value(0).is_none_or(Value::is_true);
    Ok(Value::from_safe_string(match is_spaced {
        true => out,
        false => out.trim_start().to_owned(),
    }))
}
