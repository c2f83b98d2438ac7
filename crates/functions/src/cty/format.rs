//! `format` and `format_list`: text by a pattern with verbs, as Go's `Printf` has them.

use std::borrow::Cow;

use setpoint_value::{
    CallError, ParameterFlags, Refinement, Type, Value, convert, format_float, function, whole,
};
use unicode_segmentation::UnicodeSegmentation;

use super::encoding::{write_json, write_string};
use super::{MODULE, elements, flags, not_null, plain, refuse, text};
use crate::printf::{self, Number, Spec};
use crate::text_builder::TextBuilder;

const ANY_ARGUMENTS: &[ParameterFlags] = &[flags(""), flags("!?~")];

/// More digits or blanks than this are a mistake.
const WIDEST: usize = 1000;

/// A text in which verbs stand for the arguments.
///
/// `%v` a value as it reads, `%#v` as JSON, `%t` a bool, `%b %d %o %x %X` a whole number, `%e %E %f %g %G` a number, `%s` a
/// text, `%q` a text in quotes, `%%` a percent sign. Between `%` and the letter stand flags (`+ - space 0 #`), a width, a
/// precision after a point, and `[n]` for the argument at a position, counted from 1.
///
/// A mistake in the format is an error that `<|>` does not catch; an argument that its verb does not take is one that it does.
#[function(
    raw,
    signature = "func(format str, args dynamic…) str",
    parameters(
        /// Text with verbs.
        format,
        /// The values for the verbs.
        args,
    ),
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
    raw,
    signature = "func(format str, args dynamic…) []str",
    parameters(
        /// Text with verbs.
        format,
        /// The values for the verbs: lists, or single values for every result.
        args,
    ),
    flags = ANY_ARGUMENTS,
    refine = not_null,
    example(call = r#"cty.format_list("%s-%d", ["a", "b"], 1)"#, result = r#"["a-1", "b-1"]"#)
)]
pub fn format_list(arguments: &[Value], ty: &Type) -> Result<Value, CallError> {
    let pattern = text(arguments, 0)?;
    let mut length: Option<usize> = None;
    let mut open = false;
    for (index, argument) in arguments.iter().enumerate().skip(1) {
        let ty = argument.ty();
        open |= argument.is_unknown()
            && matches!(
                plain(&ty),
                Type::List(_) | Type::Set(_) | Type::Tuple(_) | Type::Dynamic
            );
        // How many there are is known of a tuple that is not known itself, too.
        let found = match plain(&ty) {
            Type::Tuple(types) => types.len(),
            _ => match elements(argument) {
                Some(items) => items.len(),
                None => continue,
            },
        };
        if let Some(length) = length.filter(|length| *length != found) {
            let message = format!("has {found} elements where another has {length}");
            return refuse(index, message);
        }
        length = Some(found);
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
struct Verb {
    letter: char,
    spec: Spec,
    /// The argument that is named explicitly, from 1.
    position: Option<usize>,
}

fn formatted(pattern: &str, args: &[&Value]) -> Result<Value, CallError> {
    let mut out = TextBuilder::new();
    let mut rest = pattern;
    let mut next = 0;
    let mut explicit = false;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let verb = parse_verb(&mut rest).map_err(CallError::fatal)?;
        if verb.letter == '%' {
            out.push_byte(b'%');
            continue;
        }
        if let Some(position) = verb.position {
            explicit = true;
            next = position - 1;
        }
        let Some(value) = args.get(next) else {
            let message = format!("`%{}` wants argument {} of {}", verb.letter, next + 1, args.len());
            return Err(CallError::fatal(message));
        };
        next += 1;
        if !value.is_wholly_known() {
            let prefix = out.finish()?;
            return Ok(Value::refined(
                Type::Str,
                Refinement::not_null().with_prefix(prefix),
            ));
        }
        write_value(&verb, value, &mut out).or_else(|problem| refuse(next, problem))?;
    }
    out.push_str(rest);
    if !explicit && next < args.len() {
        return Err(CallError::fatal(format!(
            "the number of arguments is {}, and the format has verbs for {next}",
            args.len()
        )));
    }
    Ok(Value::str(out.finish()?))
}

fn parse_verb(rest: &mut &str) -> Result<Verb, String> {
    let mut spec = Spec::default();
    let mut text = *rest;
    text = &text[spec.read_flags(text.as_bytes())..];
    // What is filled up behind is filled with blanks.
    spec.zero &= !spec.minus;
    spec.width = number(&mut text)?;
    if let Some(after) = text.strip_prefix('.') {
        text = after;
        spec.precision = Some(number(&mut text)?.unwrap_or(0));
    }
    let mut position = None;
    if let Some(after) = text.strip_prefix('[') {
        text = after;
        let number = number(&mut text)?.filter(|n| *n > 0);
        text = text
            .strip_prefix(']')
            .ok_or("`[` is not closed by a number and `]`")?;
        position = Some(number.ok_or("positions of arguments begin at 1")?);
    }
    let Some(letter) = text.chars().next() else {
        return Err("the format ends inside a verb".to_owned());
    };
    if !"vtbdoxXeEfgGsq%".contains(letter) {
        return Err(format!("there is no verb `%{letter}`"));
    }
    *rest = &text[letter.len_utf8()..];
    Ok(Verb {
        letter,
        spec,
        position,
    })
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

fn write_value(verb: &Verb, value: &Value, out: &mut TextBuilder) -> Result<(), String> {
    if value.is_null() && verb.letter != 'v' {
        return Err(format!("null has no form for `%{}`", verb.letter));
    }
    let spec = &verb.spec;
    let as_type = |ty: &Type| convert(value, ty).map_err(|error| error.to_string());
    match verb.letter {
        'v' if !spec.sharp => match value {
            Value::Str(_) => pad(spec, as_text(value)?, out),
            Value::Int(int) => {
                printf::write_int(*int, 'd', &number_as_it_reads(spec), out);
            }
            Value::Float(float) if !spec.zero || !float.0.is_finite() => {
                pad(&spec.with_blanks(), &format_float(float.0), out);
            }
            Value::Float(float) => {
                let text = format_float(float.0);
                let digits = text.trim_start_matches('-');
                let sign = &text[..text.len() - digits.len()];
                out.push_str(sign);
                let rest = Spec {
                    width: spec.width.map(|width| width.saturating_sub(sign.len())),
                    ..spec.clone()
                };
                pad(&rest, digits, out);
            }
            other => pad_json(spec, other, out)?,
        },
        'v' => pad_json(spec, value, out)?,
        't' => {
            let value = as_type(&Type::Bool)?;
            let text = if value.as_bool() == Some(true) {
                "true"
            } else {
                "false"
            };
            pad(spec, text, out);
        }
        's' => {
            let value = as_type(&Type::Str)?;
            pad(spec, &truncated(spec, as_text(&value)?), out);
        }
        'q' => {
            let value = as_type(&Type::Str)?;
            let mut quoted = TextBuilder::new();
            write_string(&truncated(spec, as_text(&value)?), &mut quoted);
            let quoted = quoted.finish()?;
            pad(spec, &String::from_utf8_lossy(&quoted), out);
        }
        'b' | 'd' | 'o' | 'x' | 'X' => {
            let int = match as_type(&Type::Number)? {
                Value::Int(int) => Some(int),
                Value::Float(float) => whole(float.0),
                _ => None,
            };
            let int = int.ok_or_else(|| {
                format!(
                    "`%{}` takes a whole number that fits an int, and this is {}",
                    verb.letter,
                    shown(value)
                )
            })?;
            printf::write_int(int, verb.letter, spec, out);
        }
        letter => {
            let number = match as_type(&Type::Number)? {
                Value::Int(int) => Number::Int(int),
                Value::Float(float) => Number::Float(float.0),
                _ => return Err("is not a number".to_owned()),
            };
            let spec = Spec {
                sharp: false,
                ..spec.clone()
            };
            printf::write_float(number, letter, &spec, out);
        }
    }
    Ok(())
}

/// As `%v` writes a number: without a sign that is not needed, and with all of its digits.
fn number_as_it_reads(spec: &Spec) -> Spec {
    Spec {
        plus: false,
        space: false,
        precision: None,
        ..spec.clone()
    }
}

/// A number for a message.
fn shown(value: &Value) -> String {
    match value {
        Value::Float(float) => format_float(float.0),
        other => other.to_string(),
    }
}

fn as_text(value: &Value) -> Result<&str, String> {
    value
        .as_str()
        .and_then(|text| text.as_str())
        .ok_or_else(|| "is not valid UTF-8".to_owned())
}

/// At most as many characters as the precision says.
fn truncated<'a>(spec: &Spec, text: &'a str) -> Cow<'a, str> {
    match spec.precision {
        Some(length) => Cow::Owned(text.graphemes(true).take(length).collect()),
        None => Cow::Borrowed(text),
    }
}

fn pad_json(spec: &Spec, value: &Value, out: &mut TextBuilder) -> Result<(), String> {
    let mut json = TextBuilder::new();
    write_json(value, &mut json)?;
    let json = json.finish()?;
    pad(spec, &String::from_utf8_lossy(&json), out);
    Ok(())
}

/// Fills a text up to the width, counted in what a reader takes for characters.
fn pad(spec: &Spec, text: &str, out: &mut TextBuilder) {
    let characters = match spec.width {
        Some(_) => text.graphemes(true).count(),
        None => 0,
    };
    printf::pad(text.as_bytes(), characters, spec, out);
}
