//! `format` and `format_list`: text by a pattern with verbs, as Go's `Printf` has them.

use setpoint_value::{
    CallError, ParameterFlags, Refinement, Type, Value, convert, format_float, function, whole,
};
use unicode_segmentation::UnicodeSegmentation;

use super::encoding::{write_json, write_string};
use super::{elements, flags, not_null, plain, refuse, text};

const ANY_ARGUMENTS: &[ParameterFlags] = &[flags(""), flags("!?~")];

/// More digits or blanks than this are a mistake.
const WIDEST: usize = 1000;

/// A text in which verbs stand for the arguments.
///
/// `%v` a value as it reads, `%#v` as JSON, `%t` a bool, `%b %d %o %x %X` a whole number, `%e %E %f %g %G` a number, `%s` a
/// text, `%q` a text in quotes, `%%` a percent sign. Between `%` and the letter stand flags (`+ - space 0 #`), a width, a
/// precision after a point, and `[n]` for the argument at a position, counted from 1.
#[function(
    module = "cty",
    raw,
    signature = "func(format str, args dynamic…) str",
    flags = ANY_ARGUMENTS,
    refine = not_null,
    example(call = r#"cty.format("%s has %d (%05.1f%%)", "a", 3, 2.25)"#, result = r#""a has 3 (002.2%)""#),
    example(call = r#"cty.format("%[2]s %[1]q", "a", "b")"#, result = r#""b \"a\"""#),
    example(call = r#"cty.format("%#v", [1, 2])"#, result = r#""[1,2]""#)
)]
pub fn format(arguments: &[Value], _: &Type) -> Result<Value, CallError> {
    let args: Vec<&Value> = arguments.iter().skip(1).map(Value::unmarked).collect();
    formatted(text(arguments, 0)?, &args)
}

/// `format` for each position of the lists among the arguments; everything else is the same each time.
///
/// Lists must be equally long. A position at which something is not known is itself unknown.
#[function(
    module = "cty",
    raw,
    signature = "func(format str, args dynamic…) []str",
    flags = ANY_ARGUMENTS,
    refine = not_null,
    example(call = r#"cty.format_list("%s-%d", ["a", "b"], 1)"#, result = r#"["a-1", "b-1"]"#)
)]
pub fn format_list(arguments: &[Value], ty: &Type) -> Result<Value, CallError> {
    let pattern = text(arguments, 0)?;
    let mut length: Option<usize> = None;
    let mut open = false;
    for (index, argument) in arguments.iter().enumerate().skip(1) {
        let Some(items) = elements(argument) else {
            let ty = argument.ty();
            open |= argument.is_unknown()
                && matches!(
                    plain(&ty),
                    Type::List(_) | Type::Set(_) | Type::Tuple(_) | Type::Dynamic
                );
            continue;
        };
        if length.is_some_and(|length| length != items.len()) {
            let message = format!(
                "has {} elements where another has {}",
                items.len(),
                length.unwrap_or(0)
            );
            return refuse(index, message);
        }
        length = Some(items.len());
    }
    if open {
        let refinement = match length {
            Some(length) => Refinement::not_null().with_length(length, Some(length)),
            None => Refinement::not_null(),
        };
        return Ok(Value::refined(ty.clone(), refinement));
    }
    let columns: Vec<Option<Vec<&Value>>> = arguments.iter().skip(1).map(elements).collect();
    let row = |at: usize| {
        let args: Vec<&Value> = columns
            .iter()
            .zip(arguments.iter().skip(1))
            .map(|(column, whole)| column.as_ref().map_or(whole, |items| items[at]).unmarked())
            .collect();
        formatted(pattern, &args)
    };
    let rows = (0..length.unwrap_or(1)).map(row).collect::<Result<Vec<_>, _>>()?;
    Ok(Value::list(Type::Str, rows))
}

/// A verb with all that modifies it.
#[derive(Default)]
struct Verb {
    letter: char,
    plus: bool,
    minus: bool,
    space: bool,
    zero: bool,
    sharp: bool,
    width: Option<usize>,
    precision: Option<usize>,
    /// The argument that is named explicitly, from 1.
    position: Option<usize>,
}

fn formatted(pattern: &str, args: &[&Value]) -> Result<Value, CallError> {
    let mut out = String::new();
    let mut rest = pattern;
    let mut next = 0;
    let mut explicit = false;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let verb = parse_verb(&mut rest).or_else(|problem| refuse(0, problem))?;
        if verb.letter == '%' {
            out.push('%');
            continue;
        }
        if let Some(position) = verb.position {
            explicit = true;
            next = position - 1;
        }
        let Some(value) = args.get(next) else {
            let message = format!("`%{}` wants argument {} of {}", verb.letter, next + 1, args.len());
            return refuse(0, message);
        };
        next += 1;
        if !value.is_wholly_known() {
            return Ok(Value::refined(Type::Str, Refinement::not_null().with_prefix(out)));
        }
        write_value(&verb, value, &mut out).or_else(|problem| refuse(next, problem))?;
    }
    out.push_str(rest);
    if !explicit && next < args.len() {
        return refuse(next + 1, format!("no verb uses it: the format has {next}"));
    }
    Ok(Value::str(out))
}

fn parse_verb(rest: &mut &str) -> Result<Verb, String> {
    let mut verb = Verb::default();
    let mut text = *rest;
    loop {
        let flag = match text.bytes().next() {
            Some(b'+') => &mut verb.plus,
            Some(b'-') => &mut verb.minus,
            Some(b' ') => &mut verb.space,
            Some(b'0') => &mut verb.zero,
            Some(b'#') => &mut verb.sharp,
            _ => break,
        };
        *flag = true;
        text = &text[1..];
    }
    verb.width = number(&mut text)?;
    if let Some(after) = text.strip_prefix('.') {
        text = after;
        verb.precision = Some(number(&mut text)?.unwrap_or(0));
    }
    if let Some(after) = text.strip_prefix('[') {
        text = after;
        let position = number(&mut text)?.filter(|n| *n > 0);
        text = text
            .strip_prefix(']')
            .ok_or("`[` is not closed by a number and `]`")?;
        verb.position = Some(position.ok_or("positions of arguments begin at 1")?);
    }
    let Some(letter) = text.chars().next() else {
        return Err("the format ends inside a verb".to_owned());
    };
    if !"vtbdoxXeEfgGsq%".contains(letter) {
        return Err(format!("there is no verb `%{letter}`"));
    }
    verb.letter = letter;
    *rest = &text[letter.len_utf8()..];
    Ok(verb)
}

fn number(text: &mut &str) -> Result<Option<usize>, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(digits);
    *text = rest;
    if digits == 0 {
        return Ok(None);
    }
    match number.parse() {
        Ok(number) if number <= WIDEST => Ok(Some(number)),
        _ => Err(format!("{number} is more than {WIDEST}")),
    }
}

fn write_value(verb: &Verb, value: &Value, out: &mut String) -> Result<(), String> {
    if value.is_null() && verb.letter != 'v' {
        return Err(format!("null has no form for `%{}`", verb.letter));
    }
    let as_type = |ty: &Type| convert(value, ty).map_err(|error| error.to_string());
    match verb.letter {
        'v' if verb.sharp => {
            let mut json = String::new();
            write_json(value, &mut json)?;
            pad(verb, &json, out);
        }
        'v' => {
            let text = match value {
                Value::Str(_) => as_text(value)?.to_owned(),
                Value::Int(int) => int.to_string(),
                Value::Float(float) => format_float(float.0),
                other => {
                    let mut json = String::new();
                    write_json(other, &mut json)?;
                    json
                }
            };
            pad(verb, &text, out);
        }
        't' => {
            let value = as_type(&Type::Bool)?;
            pad(
                verb,
                if value.as_bool() == Some(true) {
                    "true"
                } else {
                    "false"
                },
                out,
            );
        }
        's' => {
            let value = as_type(&Type::Str)?;
            pad(verb, &truncated(verb, as_text(&value)?), out);
        }
        'q' => {
            let value = as_type(&Type::Str)?;
            let mut quoted = String::new();
            write_string(&truncated(verb, as_text(&value)?), &mut quoted);
            pad(verb, &quoted, out);
        }
        'b' | 'd' | 'o' | 'x' | 'X' => {
            let int = match as_type(&Type::Number)? {
                Value::Int(int) => i128::from(int),
                Value::Float(float) => match whole(float.0.trunc()) {
                    Some(int) => i128::from(int),
                    None => return Err("is no whole number that fits an int".to_owned()),
                },
                _ => return Err("is no number".to_owned()),
            };
            write_int(verb, int, out);
        }
        _ => {
            let float = match as_type(&Type::Number)? {
                Value::Int(int) => int as f64,
                Value::Float(float) => float.0,
                _ => return Err("is no number".to_owned()),
            };
            write_float(verb, float, out);
        }
    }
    Ok(())
}

fn as_text(value: &Value) -> Result<&str, String> {
    value
        .as_str()
        .and_then(|text| text.as_str())
        .ok_or_else(|| "is not valid UTF-8".to_owned())
}

/// At most as many characters as the precision says.
fn truncated(verb: &Verb, text: &str) -> String {
    match verb.precision {
        Some(length) => text.graphemes(true).take(length).collect(),
        None => text.to_owned(),
    }
}

/// Fills a text up to the width, with blanks.
fn pad(verb: &Verb, text: &str, out: &mut String) {
    let width = verb.width.unwrap_or(0);
    let missing = width.saturating_sub(text.graphemes(true).count());
    let blanks = " ".repeat(missing);
    if verb.minus {
        out.push_str(text);
        out.push_str(&blanks);
    } else {
        out.push_str(&blanks);
        out.push_str(text);
    }
}

/// Fills a number up to the width: with zeros behind the sign where the flag says so.
fn pad_number(verb: &Verb, sign: &str, digits: &str, zeros: bool, out: &mut String) {
    let length = sign.len() + digits.len();
    let width = verb.width.unwrap_or(0);
    if zeros && !verb.minus && length < width {
        out.push_str(sign);
        out.push_str(&"0".repeat(width - length));
        out.push_str(digits);
    } else {
        pad(verb, &format!("{sign}{digits}"), out);
    }
}

fn sign(verb: &Verb, negative: bool) -> &'static str {
    match () {
        () if negative => "-",
        () if verb.plus => "+",
        () if verb.space => " ",
        () => "",
    }
}

fn write_int(verb: &Verb, int: i128, out: &mut String) {
    let size = int.unsigned_abs();
    let (prefix, digits) = match verb.letter {
        'b' => ("0b", format!("{size:b}")),
        'o' => ("0", format!("{size:o}")),
        'x' => ("0x", format!("{size:x}")),
        'X' => ("0X", format!("{size:X}")),
        _ => ("", size.to_string()),
    };
    let digits = match verb.precision {
        Some(0) if int == 0 => String::new(),
        Some(least) => format!("{digits:0>least$}"),
        None => digits,
    };
    let prefix = if verb.sharp { prefix } else { "" };
    let sign = format!("{}{prefix}", sign(verb, int < 0));
    pad_number(verb, &sign, &digits, verb.zero && verb.precision.is_none(), out);
}

fn write_float(verb: &Verb, float: f64, out: &mut String) {
    let sign = sign(verb, float.is_sign_negative() && !float.is_nan());
    let size = float.abs();
    if !size.is_finite() {
        let sign = if float.is_infinite() && sign.is_empty() {
            "+"
        } else {
            sign
        };
        let name = if float.is_nan() { "NaN" } else { "Inf" };
        return pad(
            verb,
            &format!("{}{name}", if float.is_nan() { "" } else { sign }),
            out,
        );
    }
    let digits = match verb.letter {
        'f' => format!("{size:.*}", verb.precision.unwrap_or(6)),
        'e' | 'E' => exponential(size, Some(verb.precision.unwrap_or(6))),
        _ => shortest(size, verb.precision),
    };
    let digits = if verb.letter.is_ascii_uppercase() {
        digits.to_uppercase()
    } else {
        digits
    };
    pad_number(verb, sign, &digits, verb.zero, out);
}

/// `d.ddde±dd`, with as many decimals, or the fewest that tell the number from others.
fn exponential(size: f64, decimals: Option<usize>) -> String {
    let text = match decimals {
        Some(decimals) => format!("{size:.decimals$e}"),
        None => format!("{size:e}"),
    };
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    format!("{mantissa}e{sign}{exponent:0>2}")
}

/// `%g`: like `%e` for very small and big numbers, else in full; the precision counts all digits.
fn shortest(size: f64, precision: Option<usize>) -> String {
    let digits = precision.map(|p| p.max(1));
    let spelt = exponential(size, digits.map(|d| d - 1));
    let (mantissa, exponent) = spelt.split_once('e').unwrap_or((&spelt, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed = if mantissa.contains('.') {
        mantissa.trim_end_matches('0').trim_end_matches('.')
    } else {
        mantissa
    };
    let significant = trimmed.bytes().filter(u8::is_ascii_digit).count();
    let limit = match digits {
        Some(digits) if digits > significant && i32::try_from(significant).is_ok_and(|s| s > exponent) => {
            significant
        }
        Some(digits) => digits,
        None => 6,
    };
    if exponent < -4 || exponent >= i32::try_from(limit).unwrap_or(i32::MAX) {
        let (_, tail) = spelt.split_once('e').unwrap_or(("", "+00"));
        return format!("{trimmed}e{tail}");
    }
    let decimals = i64::try_from(significant).unwrap_or(0) - 1 - i64::from(exponent);
    format!("{size:.*}", usize::try_from(decimals).unwrap_or(0))
}
