//! How values read as text. A marked value never shows what it holds.

use std::fmt::{self, Write};

use crate::{Mark, Value};

impl fmt::Display for Value {
    /// The form that `%v` prints for containers and floats; strings are quoted.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bool(value) => write!(f, "{value}"),
            Value::Int(value) => write!(f, "{value}"),
            Value::Float(value) => f.write_str(&format_float(value.0)),
            Value::Str(value) => f.write_str(&quote(value.as_bytes())),
            Value::List(list) => sequence(f, "[", list.iter(), "]"),
            Value::Set(set) => sequence(f, "set[", set.iter(), "]"),
            Value::Tuple(items) => sequence(f, "(", items.iter(), ")"),
            Value::Map(map) => {
                f.write_char('{')?;
                for (i, (key, value)) in map.iter().enumerate() {
                    write!(f, "{}{key}: {value}", if i == 0 { "" } else { ", " })?;
                }
                f.write_char('}')
            }
            Value::Struct(s) => {
                f.write_str("struct{")?;
                for (i, (name, value)) in s.iter().enumerate() {
                    write!(f, "{}{name}: {value}", if i == 0 { "" } else { "; " })?;
                }
                f.write_char('}')
            }
            Value::Func(func) => write!(f, "func({})", func.ty()),
            Value::Null(_) => f.write_str("null"),
            Value::Unknown(unknown) => write!(f, "(unknown {})", unknown.ty),
            Value::Opaque(opaque) => write!(f, "opaque({})", opaque.name()),
            Value::Marked(inner) if inner.1.contains(&Mark::Sensitive) => f.write_str("(sensitive)"),
            Value::Marked(inner) => write!(f, "{}", inner.0),
        }
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn sequence<'a>(
    f: &mut fmt::Formatter<'_>,
    open: &str,
    items: impl Iterator<Item = &'a Value>,
    close: &str,
) -> fmt::Result {
    f.write_str(open)?;
    for (i, item) in items.enumerate() {
        write!(f, "{}{item}", if i == 0 { "" } else { ", " })?;
    }
    f.write_str(close)
}

/// The shortest decimal that reads back exactly, never with an exponent and without a trailing `.0`; `NaN`, `+Inf`,
/// `-Inf`.
///
/// ```
/// use setpoint_value::format_float;
/// assert_eq!(format_float(42.0), "42");
/// assert_eq!(format_float(1e21), "1000000000000000000000");
/// assert_eq!(format_float(-0.0), "-0");
/// ```
#[must_use]
pub fn format_float(value: f64) -> String {
    if value.is_nan() {
        "NaN".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned()
    } else {
        // Rust prints floats in full, without an exponent, and whole ones without a point.
        format!("{value}")
    }
}

/// Double quotes with escapes as Go's `%q` writes them: `\a \b \f \n \r \t \v \\ \"`, `\xNN` for bytes that are not
/// UTF-8 and for control characters, `\uNNNN` and `\UNNNNNNNN` for other characters that do not print.
///
/// ```
/// use setpoint_value::quote;
/// assert_eq!(quote("a\"é\u{200b}\n\0".as_bytes()), r#""a\"é\u200b\n\x00""#);
/// assert_eq!(quote(b"\xff"), r#""\xff""#);
/// ```
#[must_use]
pub fn quote(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() + 2);
    out.push('"');
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            quote_char(c, &mut out);
        }
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out.push('"');
    out
}

fn quote_char(c: char, out: &mut String) {
    match c {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\x07' => out.push_str("\\a"),
        '\x08' => out.push_str("\\b"),
        '\x0c' => out.push_str("\\f"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\x0b' => out.push_str("\\v"),
        ' '..='~' => out.push(c),
        c if (c as u32) < 0x20 || c == '\x7f' => {
            let _ = write!(out, "\\x{:02x}", c as u32);
        }
        c if is_printable(c) => out.push(c),
        c if (c as u32) < 0x10000 => {
            let _ = write!(out, "\\u{:04x}", c as u32);
        }
        c => {
            let _ = write!(out, "\\U{:08x}", c as u32);
        }
    }
}

/// Whether a character is a letter, mark, number, punctuation or symbol. `char::escape_debug` escapes what does not print
/// and also grapheme extenders, which do print after another character.
fn is_printable(c: char) -> bool {
    if c.is_whitespace() || c.is_control() {
        return false;
    }
    let mut debug = format!("a{c}").escape_debug().to_string();
    debug.remove(0);
    !debug.starts_with("\\u") && !matches!(c as u32, 0xe000..=0xf8ff | 0xf0000..)
}
