//! Values as text, by the rules of Go's `fmt`.

use std::fmt::Write;

use super::super::quoting::{self, Keep};
use super::datum::Datum;
use crate::printf::{self, Number, Spec};
use crate::text_builder::{TextBuilder, TooLong};

/// What an action prints.
pub(super) fn print_result(value: &Datum, out: &mut TextBuilder) {
    match value {
        Datum::Nothing => out.push_bytes(b"<no value>"),
        other => print_value(other, out),
    }
}

/// As `%v` prints it.
pub(super) fn print_value(value: &Datum, out: &mut TextBuilder) {
    write_value(value, 'v', &Spec::default(), out);
}

/// As `print` does: spaces between operands neither of which is a string.
pub(super) fn print_all(values: &[Datum]) -> Result<Vec<u8>, TooLong> {
    let mut out = TextBuilder::new();
    let mut after_text = true;
    for value in values {
        let is_text = matches!(value, Datum::Str(_));
        if !is_text && !after_text {
            out.push_byte(b' ');
        }
        print_value(value, &mut out);
        after_text = is_text;
    }
    out.finish()
}

/// As `println` does: spaces between all operands and a newline at the end.
pub(super) fn print_line(values: &[Datum]) -> Result<Vec<u8>, TooLong> {
    let mut out = TextBuilder::new();
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            out.push_byte(b' ');
        }
        print_value(value, &mut out);
    }
    out.push_byte(b'\n');
    out.finish()
}

/// Greater widths and precisions are mistakes.
const WIDEST: usize = 1_000_000;

/// As `printf` does.
pub(super) fn format(format: &[u8], values: &[Datum]) -> Result<Vec<u8>, String> {
    let mut out = TextBuilder::new();
    let mut rest = format;
    let mut next = 0;
    let mut reordered = false;
    while let Some(at) = rest.iter().position(|b| *b == b'%') {
        out.push_bytes(&rest[..at]);
        rest = &rest[at + 1..];
        let mut spec = Spec::default();
        rest = &rest[spec.read_flags(rest)..];
        let mut good_index = true;
        rest = argument_index(rest, values.len(), &mut next, &mut reordered, &mut good_index);
        if let Some(after) = rest.strip_prefix(b"*") {
            rest = after;
            match star(values, &mut next) {
                Some(width) => {
                    spec.minus |= width < 0;
                    spec.zero &= width >= 0;
                    spec.width = usize::try_from(width.unsigned_abs()).ok();
                }
                None => out.push_bytes(b"%!(BADWIDTH)"),
            }
        } else {
            rest = number(rest, &mut spec.width);
        }
        if let Some(after) = rest.strip_prefix(b".") {
            rest = after;
            rest = argument_index(rest, values.len(), &mut next, &mut reordered, &mut good_index);
            if let Some(after) = rest.strip_prefix(b"*") {
                rest = after;
                match star(values, &mut next).and_then(|p| usize::try_from(p).ok()) {
                    Some(precision) => spec.precision = Some(precision),
                    None => out.push_bytes(b"%!(BADPREC)"),
                }
            } else {
                spec.precision = Some(0);
                rest = number(rest, &mut spec.precision);
            }
        }
        if spec.width.is_some_and(|w| w > WIDEST) || spec.precision.is_some_and(|p| p > WIDEST) {
            return Err(format!("a width of more than {WIDEST} is too much"));
        }
        rest = argument_index(rest, values.len(), &mut next, &mut reordered, &mut good_index);
        let Some((verb, length)) = super::super::text::first_rune(rest) else {
            out.push_bytes(b"%!(NOVERB)");
            break;
        };
        rest = &rest[length..];
        let mut letters = [0; 4];
        let letters = verb.encode_utf8(&mut letters).as_bytes();
        if verb == '%' {
            out.push_byte(b'%');
        } else if !good_index {
            out.push_bytes(b"%!");
            out.push_bytes(letters);
            out.push_bytes(b"(BADINDEX)");
        } else if let Some(value) = values.get(next) {
            next += 1;
            write_verb(value, verb, &spec, &mut out);
        } else {
            out.push_bytes(b"%!");
            out.push_bytes(letters);
            out.push_bytes(b"(MISSING)");
        }
        if out.is_full() {
            break;
        }
    }
    out.push_bytes(rest);
    if !reordered && next < values.len() {
        out.push_bytes(b"%!(EXTRA ");
        for (index, value) in values[next..].iter().enumerate() {
            if index > 0 {
                out.push_bytes(b", ");
            }
            out.push_bytes(value.type_name().as_bytes());
            if !matches!(value, Datum::Nothing) {
                out.push_byte(b'=');
                print_value(value, &mut out);
            }
        }
        out.push_byte(b')');
    }
    Ok(out.finish()?)
}

fn number<'a>(rest: &'a [u8], value: &mut Option<usize>) -> &'a [u8] {
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    if digits > 0 {
        let text = std::str::from_utf8(&rest[..digits]).unwrap_or_default();
        *value = Some(text.parse().unwrap_or(usize::MAX));
    }
    &rest[digits..]
}

fn star(values: &[Datum], next: &mut usize) -> Option<i64> {
    let value = values.get(*next)?;
    *next += 1;
    value.as_int()
}

/// `[n]`: which argument comes next.
fn argument_index<'a>(
    rest: &'a [u8],
    count: usize,
    next: &mut usize,
    reordered: &mut bool,
    good: &mut bool,
) -> &'a [u8] {
    let Some(inner) = rest.strip_prefix(b"[") else {
        return rest;
    };
    *reordered = true;
    let Some(end) = inner.iter().position(|b| *b == b']') else {
        *good = false;
        return inner;
    };
    let text = std::str::from_utf8(&inner[..end]).unwrap_or_default();
    match text.parse::<usize>() {
        Ok(index) if (1..=count).contains(&index) => *next = index - 1,
        _ => *good = false,
    }
    &inner[end + 1..]
}

/// A value by a verb; a verb that does not fit prints as a complaint.
fn write_verb(value: &Datum, verb: char, spec: &Spec, out: &mut TextBuilder) {
    match verb {
        'T' => pad(value.type_name().as_bytes(), spec, out),
        'v' if spec.sharp => {
            let mut text = TextBuilder::new();
            write_in_go(value, &mut text);
            if text.is_full() {
                // What could not be kept is more than fits here too.
                out.push_repeated(b" ", usize::MAX);
            }
            pad(text.as_bytes(), spec, out);
        }
        'v' => {
            // A plus asks for the names of fields here, which maps have anyway, and not for signs.
            let spec = Spec {
                plus: false,
                ..spec.clone()
            };
            write_value(value, verb, &spec, out);
        }
        _ => write_value(value, verb, spec, out),
    }
}

fn write_value(value: &Datum, verb: char, spec: &Spec, out: &mut TextBuilder) {
    match value {
        Datum::Nothing if verb == 'v' => pad(b"<nil>", spec, out),
        Datum::Bool(value) if matches!(verb, 't' | 'v') => {
            let text: &[u8] = if *value { b"true" } else { b"false" };
            pad(text, &spec.with_blanks(), out);
        }
        Datum::Int(int) => write_int(*int, value, verb, spec, out),
        Datum::Byte(byte) => write_int(i64::from(*byte), value, verb, spec, out),
        Datum::Float(float) => write_float(*float, value, verb, spec, out),
        Datum::Str(text) => write_text(text.as_bytes(), value, verb, spec, out),
        Datum::List(items) => write_all(items, ["[", " ", "]"], out, |item, out| {
            write_value(item, verb, spec, out);
        }),
        Datum::Map(map) => write_all(&map.entries, ["map[", " ", "]"], out, |(key, value), out| {
            write_value(key, verb, spec, out);
            out.push_byte(b':');
            write_value(value, verb, spec, out);
        }),
        Datum::Nothing | Datum::Bool(_) => complain(value, verb, out),
    }
}

/// `%!d(string=hi)`.
fn complain(value: &Datum, verb: char, out: &mut TextBuilder) {
    // Writing to a vector cannot fail.
    let _ = write!(out, "%!{verb}(");
    match value {
        Datum::Nothing => out.push_bytes(b"<nil>"),
        other => {
            let _ = write!(out, "{}=", other.type_name());
            print_value(other, out);
        }
    }
    out.push_byte(b')');
}

fn write_int(int: i64, value: &Datum, verb: char, spec: &Spec, out: &mut TextBuilder) {
    let c = || {
        u32::try_from(int)
            .ok()
            .and_then(char::from_u32)
            .unwrap_or('\u{fffd}')
    };
    match verb {
        'v' => {
            let spec = Spec {
                sharp: false,
                ..spec.clone()
            };
            printf::write_int(int, 'd', &spec, out);
        }
        'c' => pad(c().encode_utf8(&mut [0; 4]).as_bytes(), spec, out),
        'q' => pad(quoted_character(c(), spec).as_bytes(), spec, out),
        'U' => {
            let mut text = format!("U+{:0width$X}", int, width = spec.precision.unwrap_or(4).max(4));
            if spec.sharp && quoting::is_printable(c()) {
                text.push_str(&format!(" '{}'", c()));
            }
            pad(text.as_bytes(), spec, out);
        }
        verb if printf::write_int(int, verb, spec, out) => {}
        _ => complain(value, verb, out),
    }
}

fn quoted_character(c: char, spec: &Spec) -> String {
    let keep = if spec.plus { Keep::Ascii } else { Keep::Printable };
    let quoted = quoting::quote(c.encode_utf8(&mut [0; 4]).as_bytes(), keep);
    let inner = &quoted[1..quoted.len() - 1];
    match c {
        '\'' => "'\\''".to_owned(),
        '"' => "'\"'".to_owned(),
        _ => format!("'{inner}'"),
    }
}

fn write_float(float: f64, value: &Datum, verb: char, spec: &Spec, out: &mut TextBuilder) {
    let number = Number::Float(float);
    if verb == 'v' {
        let spec = Spec {
            sharp: false,
            ..spec.clone()
        };
        printf::write_float(number, 'g', &spec, out);
    } else if !printf::write_float(number, verb, spec, out) {
        complain(value, verb, out);
    }
}

fn write_text(text: &[u8], value: &Datum, verb: char, spec: &Spec, out: &mut TextBuilder) {
    let shortened = match spec.precision {
        // Characters, not bytes.
        Some(precision) if !matches!(verb, 'x' | 'X') => {
            let end = super::super::text::runes(text)
                .nth(precision)
                .map(|(at, _, _)| at);
            &text[..end.unwrap_or(text.len())]
        }
        Some(precision) => &text[..precision.min(text.len())],
        None => text,
    };
    match verb {
        's' | 'v' => pad(shortened, spec, out),
        'q' => {
            let quoted = if spec.sharp && quoting::can_backquote(shortened) {
                format!("`{}`", String::from_utf8_lossy(shortened))
            } else if spec.plus {
                quoting::quote(shortened, Keep::Ascii)
            } else {
                quoting::quote(shortened, Keep::Printable)
            };
            pad(quoted.as_bytes(), spec, out);
        }
        'x' | 'X' => {
            let mut text = String::with_capacity(2 * shortened.len());
            for (index, byte) in shortened.iter().enumerate() {
                if spec.space && index > 0 {
                    text.push(' ');
                }
                if spec.sharp && (index == 0 || spec.space) {
                    text.push_str(if verb == 'x' { "0x" } else { "0X" });
                }
                text.push_str(&if verb == 'x' {
                    format!("{byte:02x}")
                } else {
                    format!("{byte:02X}")
                });
            }
            pad(text.as_bytes(), spec, out);
        }
        _ => complain(value, verb, out),
    }
}

/// `%#v`: as it would be written in Go.
fn write_in_go(value: &Datum, out: &mut TextBuilder) {
    match value {
        Datum::Nothing => out.push_bytes(b"<nil>"),
        Datum::Str(text) => out.push_str(&quoting::quote(text.as_bytes(), Keep::Printable)),
        Datum::Byte(byte) => {
            let _ = write!(out, "{byte:#x}");
        }
        Datum::List(items) => {
            out.push_str(value.type_name());
            write_all(items, ["{", ", ", "}"], out, write_in_go);
        }
        Datum::Map(map) => {
            out.push_str(map.type_name);
            write_all(&map.entries, ["{", ", ", "}"], out, |(key, value), out| {
                write_in_go(key, out);
                out.push_byte(b':');
                write_in_go(value, out);
            });
        }
        other => print_value(other, out),
    }
}

/// Writes elements with something before, between and behind them.
fn write_all<T>(
    items: &[T],
    [before, between, behind]: [&str; 3],
    out: &mut TextBuilder,
    mut write: impl FnMut(&T, &mut TextBuilder),
) {
    out.push_str(before);
    for (index, item) in items.iter().enumerate() {
        // Values may share their parts, so that there is far more to write than is stored.
        if out.is_full() {
            break;
        }
        if index > 0 {
            out.push_str(between);
        }
        write(item, out);
    }
    out.push_str(behind);
}

/// Writes a text as wide as it shall be.
fn pad(text: &[u8], spec: &Spec, out: &mut TextBuilder) {
    printf::pad(text, super::super::text::runes(text).count(), spec, out);
}
