//! Values as text, by the rules of Go's `fmt`.

use std::io::Write;

use super::super::quoting::{self, Keep};
use super::super::text::LONGEST;
use super::datum::Datum;

/// What an action prints.
pub(super) fn print_result(value: &Datum, out: &mut Vec<u8>) {
    match value {
        Datum::Nothing => out.extend_from_slice(b"<no value>"),
        other => print_value(other, out),
    }
}

/// As `%v` prints it.
pub(super) fn print_value(value: &Datum, out: &mut Vec<u8>) {
    write_value(value, 'v', &Spec::default(), out);
}

/// As `print` does: spaces between operands neither of which is a string.
pub(super) fn print_all(values: &[Datum]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut after_text = true;
    for value in values {
        let is_text = matches!(value, Datum::Str(_));
        if !is_text && !after_text {
            out.push(b' ');
        }
        print_value(value, &mut out);
        after_text = is_text;
    }
    out
}

/// As `println` does: spaces between all operands and a newline at the end.
pub(super) fn print_line(values: &[Datum]) -> Vec<u8> {
    let mut out = Vec::new();
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            out.push(b' ');
        }
        print_value(value, &mut out);
    }
    out.push(b'\n');
    out
}

/// Flags, width and precision of a verb.
#[derive(Default, Clone)]
struct Spec {
    plus: bool,
    minus: bool,
    sharp: bool,
    space: bool,
    zero: bool,
    width: Option<usize>,
    precision: Option<usize>,
}

/// Greater widths and precisions are mistakes.
const WIDEST: usize = 1_000_000;

/// As `printf` does.
pub(super) fn format(format: &[u8], values: &[Datum]) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(format.len());
    let mut rest = format;
    let mut next = 0;
    let mut reordered = false;
    while let Some(at) = rest.iter().position(|b| *b == b'%') {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        let mut spec = Spec::default();
        rest = flags(rest, &mut spec);
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
                None => out.extend_from_slice(b"%!(BADWIDTH)"),
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
                    None => out.extend_from_slice(b"%!(BADPREC)"),
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
            out.extend_from_slice(b"%!(NOVERB)");
            break;
        };
        rest = &rest[length..];
        let mut letters = [0; 4];
        let letters = verb.encode_utf8(&mut letters).as_bytes();
        if verb == '%' {
            out.push(b'%');
        } else if !good_index {
            out.extend_from_slice(b"%!");
            out.extend_from_slice(letters);
            out.extend_from_slice(b"(BADINDEX)");
        } else if let Some(value) = values.get(next) {
            next += 1;
            write_verb(value, verb, &spec, &mut out);
        } else {
            out.extend_from_slice(b"%!");
            out.extend_from_slice(letters);
            out.extend_from_slice(b"(MISSING)");
        }
        if out.len() > LONGEST {
            return Err("the result would be too long".to_owned());
        }
    }
    out.extend_from_slice(rest);
    if !reordered && next < values.len() {
        out.extend_from_slice(b"%!(EXTRA ");
        for (index, value) in values[next..].iter().enumerate() {
            if index > 0 {
                out.extend_from_slice(b", ");
            }
            out.extend_from_slice(value.type_name().as_bytes());
            if !matches!(value, Datum::Nothing) {
                out.push(b'=');
                print_value(value, &mut out);
            }
        }
        out.push(b')');
    }
    Ok(out)
}

fn flags<'a>(mut rest: &'a [u8], spec: &mut Spec) -> &'a [u8] {
    while let Some((flag, after)) = rest.split_first() {
        match flag {
            b'#' => spec.sharp = true,
            b'0' => spec.zero = true,
            b'+' => spec.plus = true,
            b'-' => spec.minus = true,
            b' ' => spec.space = true,
            _ => break,
        }
        rest = after;
    }
    rest
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
fn write_verb(value: &Datum, verb: char, spec: &Spec, out: &mut Vec<u8>) {
    match verb {
        'T' => pad(value.type_name().as_bytes(), spec, out),
        'v' if spec.sharp => pad(&in_go(value), spec, out),
        _ => write_value(value, verb, spec, out),
    }
}

fn write_value(value: &Datum, verb: char, spec: &Spec, out: &mut Vec<u8>) {
    match value {
        Datum::Nothing if verb == 'v' => pad(b"<nil>", spec, out),
        Datum::Bool(value) if matches!(verb, 't' | 'v') => {
            let text: &[u8] = if *value { b"true" } else { b"false" };
            let spec = Spec {
                zero: false,
                ..spec.clone()
            };
            pad(text, &spec, out);
        }
        Datum::Int(int) => write_int(*int, value, verb, spec, out),
        Datum::Byte(byte) => write_int(i64::from(*byte), value, verb, spec, out),
        Datum::Float(float) => write_float(*float, value, verb, spec, out),
        Datum::Str(text) => write_text(text.as_bytes(), value, verb, spec, out),
        Datum::List(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b' ');
                }
                write_value(item, verb, spec, out);
            }
            out.push(b']');
        }
        Datum::Map(map) => {
            out.extend_from_slice(b"map[");
            for (index, (key, value)) in map.entries.iter().enumerate() {
                if index > 0 {
                    out.push(b' ');
                }
                write_value(key, verb, spec, out);
                out.push(b':');
                write_value(value, verb, spec, out);
            }
            out.push(b']');
        }
        Datum::Nothing | Datum::Bool(_) => complain(value, verb, out),
    }
}

/// `%!d(string=hi)`.
fn complain(value: &Datum, verb: char, out: &mut Vec<u8>) {
    // Writing to a vector cannot fail.
    let _ = write!(out, "%!{verb}(");
    match value {
        Datum::Nothing => out.extend_from_slice(b"<nil>"),
        other => {
            let _ = write!(out, "{}=", other.type_name());
            print_value(other, out);
        }
    }
    out.push(b')');
}

fn write_int(int: i64, value: &Datum, verb: char, spec: &Spec, out: &mut Vec<u8>) {
    let size = int.unsigned_abs();
    let (digits, prefix) = match verb {
        'd' | 'v' => (size.to_string(), ""),
        'b' => (format!("{size:b}"), "0b"),
        'o' => (format!("{size:o}"), "0"),
        'O' => (format!("{size:o}"), "0o"),
        'x' => (format!("{size:x}"), "0x"),
        'X' => (format!("{size:X}"), "0X"),
        'c' | 'q' | 'U' => {
            let c = u32::try_from(int)
                .ok()
                .and_then(char::from_u32)
                .unwrap_or('\u{fffd}');
            match verb {
                'c' => pad(c.encode_utf8(&mut [0; 4]).as_bytes(), spec, out),
                'q' => pad(quoted_character(c, spec).as_bytes(), spec, out),
                _ => {
                    let mut text = format!("U+{:0width$X}", int, width = spec.precision.unwrap_or(4).max(4));
                    if spec.sharp && is_shown(c) {
                        text.push_str(&format!(" '{c}'"));
                    }
                    pad(text.as_bytes(), spec, out);
                }
            }
            return;
        }
        _ => return complain(value, verb, out),
    };
    let prefix = if verb == 'O' || spec.sharp && verb != 'd' && verb != 'v' {
        prefix
    } else {
        ""
    };
    let digits = match spec.precision {
        Some(0) if int == 0 => String::new(),
        Some(precision) => format!("{digits:0>precision$}"),
        None => digits,
    };
    let sign = sign(int < 0, spec);
    let mut number = format!("{prefix}{digits}");
    if spec.zero
        && !spec.minus
        && spec.precision.is_none()
        && let Some(width) = spec.width
    {
        let width = width.saturating_sub(sign.len());
        let digits_width = width.saturating_sub(prefix.len());
        number = format!("{prefix}{digits:0>digits_width$}");
    }
    let spec = Spec {
        zero: false,
        ..spec.clone()
    };
    pad(format!("{sign}{number}").as_bytes(), &spec, out);
}

fn is_shown(c: char) -> bool {
    quoting::is_printable(c)
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

fn sign(negative: bool, spec: &Spec) -> &'static str {
    if negative {
        "-"
    } else if spec.plus {
        "+"
    } else if spec.space {
        " "
    } else {
        ""
    }
}

fn write_float(float: f64, value: &Datum, verb: char, spec: &Spec, out: &mut Vec<u8>) {
    let size = float.abs();
    let digits = match verb {
        'v' | 'g' | 'G' => general(size, spec.precision, spec.sharp && verb != 'v'),
        'e' | 'E' => exponent(&format!("{size:.*e}", spec.precision.unwrap_or(6))),
        'f' | 'F' => format!("{size:.*}", spec.precision.unwrap_or(6)),
        'b' => {
            let bits = size.to_bits();
            let stored = i64::try_from(bits >> 52).unwrap_or(0);
            let fraction = bits & ((1 << 52) - 1);
            let (mantissa, power) = if stored == 0 {
                (fraction, -1074)
            } else {
                (fraction | 1 << 52, stored - 1075)
            };
            format!("{mantissa}p{power:+}")
        }
        'x' | 'X' => hexadecimal(size, spec.precision),
        _ => return complain(value, verb, out),
    };
    let digits = if size.is_infinite() {
        "Inf".to_owned()
    } else if size.is_nan() {
        "NaN".to_owned()
    } else if verb.is_uppercase() && verb != 'F' {
        digits.to_uppercase()
    } else {
        digits
    };
    let negative = float.is_sign_negative() && !float.is_nan();
    let sign = if size.is_infinite() && !negative && !spec.space {
        "+"
    } else {
        sign(negative, spec)
    };
    let mut text = format!("{sign}{digits}");
    let zero = spec.zero && !spec.minus && size.is_finite();
    if zero && let Some(width) = spec.width {
        let width = width.saturating_sub(sign.len());
        text = format!("{sign}{digits:0>width$}");
    }
    let spec = Spec {
        zero: false,
        ..spec.clone()
    };
    pad(text.as_bytes(), &spec, out);
}

/// `%g`: the shortest digits, or so many, with an exponent where it is below −4 or too great.
fn general(size: f64, precision: Option<usize>, keep_zeros: bool) -> String {
    if !size.is_finite() {
        return String::new();
    }
    let scientific = match precision {
        None => format!("{size:e}"),
        Some(precision) => format!("{size:.*e}", precision.max(1) - 1),
    };
    let (mantissa, power) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let power: i64 = power.parse().unwrap_or(0);
    let trimmed = if mantissa.contains('.') && !keep_zeros {
        mantissa.trim_end_matches('0').trim_end_matches('.')
    } else {
        mantissa
    };
    let digits = i64::try_from(trimmed.bytes().filter(u8::is_ascii_digit).count()).unwrap_or(0);
    let limit = match precision {
        None => 6,
        Some(precision) => {
            let precision = i64::try_from(precision.max(1)).unwrap_or(i64::MAX);
            if precision > digits && digits > power {
                digits
            } else {
                precision
            }
        }
    };
    if power < -4 || power >= limit {
        return exponent(&format!("{trimmed}e{power}"));
    }
    match precision {
        None => setpoint_value::format_float(size),
        Some(_) => {
            let decimals = usize::try_from((digits - 1 - power).max(0)).unwrap_or(0);
            format!("{size:.decimals$}")
        }
    }
}

/// Rust's `1.5e3` as Go's `1.5e+03`.
fn exponent(text: &str) -> String {
    let (mantissa, power) = text.split_once('e').unwrap_or((text, "0"));
    let power: i64 = power.parse().unwrap_or(0);
    let sign = if power < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", power.unsigned_abs())
}

/// `0x1.8p+01`.
fn hexadecimal(size: f64, precision: Option<usize>) -> String {
    if size == 0.0 {
        let zeros = precision
            .filter(|p| *p > 0)
            .map(|p| format!(".{}", "0".repeat(p)));
        return format!("0x0{}p+00", zeros.unwrap_or_default());
    }
    let bits = size.to_bits();
    let mut power = i64::try_from(bits >> 52).unwrap_or(0) - 1023;
    let mut fraction = bits & ((1 << 52) - 1);
    if power == -1023 {
        let shift = fraction.leading_zeros() - 11;
        fraction = fraction << shift & ((1 << 52) - 1);
        power = -1022 - i64::from(shift);
    }
    let mut mantissa = fraction | 1 << 52;
    if let Some(precision) = precision.filter(|p| *p < 13) {
        // Rounded to the nearest, ties to even.
        let drop = 52 - 4 * u32::try_from(precision).unwrap_or(0);
        let half = 1u64 << (drop - 1);
        let rest = mantissa & ((1 << drop) - 1);
        mantissa >>= drop;
        if rest > half || rest == half && mantissa & 1 == 1 {
            mantissa += 1;
        }
        mantissa <<= drop;
        if mantissa >> 53 != 0 {
            mantissa >>= 1;
            power += 1;
        }
    }
    let digits = format!("{:013x}", mantissa & ((1 << 52) - 1));
    let digits = match precision {
        Some(precision) => format!("{digits:0<precision$}")[..precision].to_owned(),
        None => digits.trim_end_matches('0').to_owned(),
    };
    let point = if digits.is_empty() { "" } else { "." };
    let sign = if power < 0 { '-' } else { '+' };
    format!("0x1{point}{digits}p{sign}{:02}", power.unsigned_abs())
}

fn write_text(text: &[u8], value: &Datum, verb: char, spec: &Spec, out: &mut Vec<u8>) {
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
fn in_go(value: &Datum) -> Vec<u8> {
    let mut out = Vec::new();
    match value {
        Datum::Nothing => out.extend_from_slice(b"<nil>"),
        Datum::Str(text) => {
            out.extend_from_slice(quoting::quote(text.as_bytes(), Keep::Printable).as_bytes());
        }
        Datum::Byte(byte) => {
            let _ = write!(out, "{byte:#x}");
        }
        Datum::List(items) => {
            out.extend_from_slice(value.type_name().as_bytes());
            out.push(b'{');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.extend_from_slice(b", ");
                }
                out.extend(in_go(item));
            }
            out.push(b'}');
        }
        Datum::Map(map) => {
            out.extend_from_slice(map.type_name.as_bytes());
            out.push(b'{');
            for (index, (key, value)) in map.entries.iter().enumerate() {
                if index > 0 {
                    out.extend_from_slice(b", ");
                }
                out.extend(in_go(key));
                out.push(b':');
                out.extend(in_go(value));
            }
            out.push(b'}');
        }
        other => print_value(other, &mut out),
    }
    out
}

/// Writes a text as wide as it shall be.
fn pad(text: &[u8], spec: &Spec, out: &mut Vec<u8>) {
    let width = super::super::text::runes(text).count();
    let missing = spec.width.unwrap_or(0).saturating_sub(width);
    if spec.minus {
        out.extend_from_slice(text);
        out.extend(std::iter::repeat_n(b' ', missing));
    } else {
        let filler = if spec.zero { b'0' } else { b' ' };
        out.extend(std::iter::repeat_n(filler, missing));
        out.extend_from_slice(text);
    }
}
