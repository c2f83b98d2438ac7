//! Strings with fields: `"{{x}}"` and `f"{x:>10}"`.
//!
//! Whoever executes evaluates the fields and hands their values over in the order in which they stand, those inside of a format
//! specification after the value that they format.

mod numbers;
mod specification;

use setpoint_cf_names::datum::{Datum, Unknowns};
use setpoint_cf_names::hir::{FormatPart, TextPart};
use setpoint_diagnostics::{Diagnostic, Span};
use setpoint_value::LONGEST_TEXT;

use crate::codes::{self, class};
use crate::operators::Outcome;
use crate::text::{
    Form, Naming, NoText, TextBuilder, float_representation, is_integral, write_escape, write_representation,
    write_text,
};
use numbers::{Formatted, Magnitude};
use specification::{Align, Specification};

/// The text of `"…{{x}}…"`: each place is filled once, with what the value is inside a string.
///
/// # Errors
/// A value without a text.
pub fn interpolate(
    parts: &[TextPart],
    values: &[Datum],
    span: Span,
    naming: Naming<'_>,
    unknowns: &mut Unknowns,
) -> Outcome {
    let mut text = TextBuilder::default();
    let mut values = values.iter();
    for part in parts {
        match part {
            TextPart::Text(fixed) => text.push_str(fixed),
            TextPart::Field(field) => {
                if let Some(value) = values.next() {
                    text.push(value, field.span, naming)?;
                }
            }
        }
    }
    text.check(span)?;
    Ok(text.finish(unknowns))
}

/// The text of `f"…{x:…}…"`.
///
/// # Errors
/// A field without a name, a value without a text, or one that its specification does not suit.
pub fn format(
    parts: &[FormatPart],
    values: &[Datum],
    span: Span,
    naming: Naming<'_>,
    unknowns: &mut Unknowns,
) -> Outcome {
    let mut text = TextBuilder::default();
    let mut values = values.iter();
    for part in parts {
        let (value, conversion, specification, span) = match part {
            FormatPart::Text(fixed) => {
                text.push_str(fixed);
                continue;
            }
            FormatPart::Field {
                value,
                conversion,
                specification,
                span,
            } => (value, conversion, specification, *span),
        };
        if value.is_none() {
            return Err(Box::new(positional(span)));
        }
        let Some(value) = values.next() else { continue };
        text.take_marks(value);
        let mut wanted = TextBuilder::default();
        for part in specification {
            match part {
                FormatPart::Text(fixed) => wanted.push_str(fixed),
                FormatPart::Field {
                    value: None, span, ..
                } => return Err(Box::new(positional(*span))),
                FormatPart::Field { span, .. } => {
                    if let Some(value) = values.next() {
                        text.take_marks(value);
                        wanted.push(value, *span, naming)?;
                    }
                }
            }
        }
        let Some(wanted) = wanted.known() else {
            text.set_unknown();
            continue;
        };
        let value = match value.unmarked() {
            Datum::Float(float) if is_integral(*float) => Whole::Float(*float),
            other => Whole::Datum(other),
        };
        match field(value, *conversion, &wanted, Form::Field, naming) {
            Ok(formatted) => text.push_str(&formatted),
            Err(Unformatted::NoText(NoText::Unknown)) => text.set_unknown(),
            Err(Unformatted::NoText(refused)) => {
                return Err(Box::new(
                    refused
                        .into_error(span)
                        .unwrap_or_else(|| invalid(span, "no text")),
                ));
            }
            Err(Unformatted::Specification(reason)) => return Err(Box::new(invalid(span, &reason))),
        }
        text.check(span)?;
    }
    text.check(span)?;
    Ok(text.finish(unknowns))
}

fn positional(span: Span) -> Diagnostic {
    let message = "positional substitution is not supported in f-strings";
    Diagnostic::error(&codes::FORMAT, span, message)
        .of_class(class::RUNTIME)
        .label("this field has no name")
        .help("write the name of a variable between the braces")
}

fn invalid(span: Span, reason: &str) -> Diagnostic {
    Diagnostic::error(&codes::FORMAT, span, format!("invalid f-string: {reason}")).of_class(class::RUNTIME)
}

/// Why a field has no text.
#[derive(Debug)]
pub(crate) enum Unformatted {
    /// The value has none.
    NoText(NoText),
    /// The specification is wrong, or does not suit the value; one line.
    Specification(String),
}

impl From<NoText> for Unformatted {
    fn from(refused: NoText) -> Unformatted {
        Unformatted::NoText(refused)
    }
}

/// What is formatted.
#[derive(Clone, Copy)]
pub(crate) enum Whole<'a> {
    /// As it is.
    Datum(&'a Datum),
    /// A float without a fraction, as the whole number that it is.
    Float(f64),
}

/// Formats one value. `form` says what its text is where nothing else is said.
pub(crate) fn field(
    value: Whole<'_>,
    conversion: Option<char>,
    specification: &str,
    form: Form,
    naming: Naming<'_>,
) -> Result<String, Unformatted> {
    let converted = match (conversion, value) {
        (None, _) => None,
        (Some(_), Whole::Float(float)) => Some(format!("{:.0}", float + 0.0)),
        (Some('s'), Whole::Datum(datum)) => {
            let mut text = String::new();
            write_text(datum, form, naming, &mut text)?;
            Some(text)
        }
        (Some(conversion), Whole::Datum(datum)) => {
            let mut text = String::new();
            match datum {
                Datum::Null if form == Form::Printed => text.push_str("None"),
                datum => write_representation(datum, naming, &mut text)?,
            }
            Some(if conversion == 'a' { ascii(&text) } else { text })
        }
    };
    if let Some(text) = converted {
        return format_text(&text, specification);
    }
    match value {
        Whole::Float(float) => format_number(Magnitude::Whole(float), specification, "int"),
        Whole::Datum(datum) => format_datum(datum, specification, form, naming),
    }
}

fn format_datum(
    datum: &Datum,
    specification: &str,
    form: Form,
    naming: Naming<'_>,
) -> Result<String, Unformatted> {
    match datum.unmarked() {
        Datum::Text(text) => format_text(text, specification),
        Datum::Int(int) => format_number(Magnitude::Int(*int), specification, "int"),
        Datum::Bool(bool) if !specification.is_empty() => {
            format_number(Magnitude::Int(i64::from(*bool)), specification, "bool")
        }
        Datum::Float(float) if specification.is_empty() => Ok(float_representation(*float)),
        Datum::Float(float) => format_number(Magnitude::Float(*float), specification, "float"),
        other => {
            let mut text = String::new();
            write_text(other, form, naming, &mut text)?;
            if specification.is_empty() {
                return Ok(text);
            }
            let ty = crate::text::type_name(other, naming);
            Err(Unformatted::Specification(format!(
                "unsupported format string passed to {ty}"
            )))
        }
    }
}

fn format_text(text: &str, specification: &str) -> Result<String, Unformatted> {
    let refuse = |reason: &str| Err(Unformatted::Specification(reason.to_owned()));
    let wanted = Specification::parse(specification, "str").map_err(Unformatted::Specification)?;
    if !matches!(wanted.kind, None | Some('s')) {
        return refuse(&unknown_code(&wanted, "str"));
    }
    match wanted.sign {
        Some(' ') => return refuse("Space not allowed in string format specifier"),
        Some(_) => return refuse("Sign not allowed in string format specifier"),
        None => {}
    }
    if wanted.no_negative_zero {
        return refuse("Negative zero coercion (z) not allowed in string format specifier");
    }
    if wanted.alternate {
        return refuse("Alternate form (#) not allowed in string format specifier");
    }
    if wanted.align == Some(Align::AfterSign) {
        return refuse("'=' alignment not allowed in string format specifier");
    }
    if let Some(grouping) = wanted.grouping {
        return refuse(&format!("Cannot specify '{grouping}' with 's'."));
    }
    let cut: String = match wanted.precision {
        Some(longest) => text.chars().take(longest).collect(),
        None => text.to_owned(),
    };
    pad(&wanted, "", &cut, Align::Left)
}

fn unknown_code(wanted: &Specification, ty: &str) -> String {
    let kind = wanted.kind.unwrap_or('s');
    format!("Unknown format code '{kind}' for object of type '{ty}'")
}

fn format_number(number: Magnitude, specification: &str, ty: &str) -> Result<String, Unformatted> {
    let mut wanted = Specification::parse(specification, ty).map_err(Unformatted::Specification)?;
    if wanted.zero {
        wanted.fill = wanted.fill.or(Some('0'));
        wanted.align = wanted.align.or(Some(Align::AfterSign));
    }
    if wanted.precision.is_some_and(|precision| precision > LONGEST_TEXT) || wanted.width > LONGEST_TEXT {
        return Err(NoText::TooLong.into());
    }
    let Formatted {
        negative,
        prefix,
        whole,
        rest,
    } = numbers::format(number, &wanted)
        .map_err(Unformatted::Specification)?
        .ok_or_else(|| Unformatted::Specification(unknown_code(&wanted, ty)))?;
    let sign = match (negative, wanted.sign) {
        (true, _) => "-",
        (false, Some('+')) => "+",
        (false, Some(' ')) => " ",
        (false, _) => "",
    };
    let before = format!("{sign}{prefix}");
    let digits = match wanted.grouping {
        None => whole,
        Some(separator) => {
            let each = match wanted.kind {
                Some('b' | 'o' | 'x' | 'X') => 4,
                _ => 3,
            };
            let zeros = wanted.fill == Some('0') && wanted.align == Some(Align::AfterSign);
            let least = if zeros {
                wanted.width.saturating_sub(before.len() + rest.len())
            } else {
                0
            };
            grouped(&whole, separator, each, least)
        }
    };
    pad(&wanted, &before, &(digits + &rest), Align::Right)
}

/// Digits in groups, with zeros before them up to a length. What is not a digit (`inf`) is not grouped.
fn grouped(digits: &str, separator: char, each: usize, least: usize) -> String {
    if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return digits.to_owned();
    }
    let mut reversed = String::new();
    let mut count = 0;
    let mut source = digits.bytes().rev();
    loop {
        let digit = match source.next() {
            Some(digit) => char::from(digit),
            None if reversed.len() < least => '0',
            None => break,
        };
        if count > 0 && count % each == 0 {
            reversed.push(separator);
        }
        reversed.push(digit);
        count += 1;
    }
    reversed.chars().rev().collect()
}

/// Fills up to the width.
fn pad(wanted: &Specification, before: &str, text: &str, natural: Align) -> Result<String, Unformatted> {
    let length = before.chars().count() + text.chars().count();
    let missing = wanted.width.saturating_sub(length);
    let fill = wanted.fill.unwrap_or(if wanted.zero { '0' } else { ' ' });
    if missing.saturating_mul(fill.len_utf8()) > LONGEST_TEXT {
        return Err(NoText::TooLong.into());
    }
    let filling = |count: usize| std::iter::repeat_n(fill, count).collect::<String>();
    Ok(match wanted.align.unwrap_or(natural) {
        Align::Left => format!("{before}{text}{}", filling(missing)),
        Align::Right => format!("{}{before}{text}", filling(missing)),
        Align::Center => {
            let left = missing / 2;
            format!("{}{before}{text}{}", filling(left), filling(missing - left))
        }
        Align::AfterSign => format!("{before}{}{text}", filling(missing)),
    })
}

/// With escapes for everything beyond ASCII.
fn ascii(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if c.is_ascii() {
            out.push(c);
        } else {
            write_escape(c, &mut out);
        }
    }
    out
}

#[cfg(test)]
mod tests;
