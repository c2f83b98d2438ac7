//! Numbers in each of the presentations that a format specification can ask for.

use super::specification::Specification;
use crate::text::{float_representation, non_finite};

/// A number to be formatted.
#[derive(Debug, Clone, Copy)]
pub(super) enum Magnitude {
    /// A whole number.
    Int(i64),
    /// A float without a fraction that stands for a whole number of any size.
    Whole(f64),
    /// A float.
    Float(f64),
}

/// A formatted number, before grouping and filling.
#[derive(Debug, Default)]
pub(super) struct Formatted {
    /// Whether it has a minus.
    pub(super) negative: bool,
    /// `0x` and the like.
    pub(super) prefix: &'static str,
    /// The digits before the point.
    pub(super) whole: String,
    /// Everything behind them.
    pub(super) rest: String,
}

/// A float has no more digits than these behind its point. More are zeros, and the standard library refuses very many.
const MOST_DIGITS: usize = 1100;

/// Formats a number. None: the presentation is not one of numbers of this type.
pub(super) fn format(number: Magnitude, wanted: &Specification) -> Result<Option<Formatted>, String> {
    let float = match number {
        Magnitude::Float(float) => float,
        _ if matches!(wanted.kind, None | Some('b' | 'c' | 'd' | 'o' | 'x' | 'X' | 'n')) => {
            return format_int(number, wanted).map(Some);
        }
        Magnitude::Int(int) => int as f64,
        Magnitude::Whole(float) => float,
    };
    Ok(format_float(float, wanted))
}

fn format_int(number: Magnitude, wanted: &Specification) -> Result<Formatted, String> {
    if wanted.precision.is_some() {
        return Err("Precision not allowed in integer format specifier".to_owned());
    }
    if wanted.no_negative_zero {
        return Err("Negative zero coercion (z) not allowed in integer format specifier".to_owned());
    }
    let negative = match number {
        Magnitude::Int(int) => int < 0,
        Magnitude::Whole(float) | Magnitude::Float(float) => float < 0.0,
    };
    let digits = |radix: u32| match number {
        Magnitude::Int(int) => in_radix(u128::from(int.unsigned_abs()), radix),
        Magnitude::Whole(float) | Magnitude::Float(float) => float_in_radix(float.abs(), radix),
    };
    let prefix = |prefix: &'static str| if wanted.alternate { prefix } else { "" };
    let (prefix, whole) = match wanted.kind {
        Some('b') => (prefix("0b"), digits(2)),
        Some('o') => (prefix("0o"), digits(8)),
        Some('x') => (prefix("0x"), digits(16)),
        Some('X') => (prefix("0X"), digits(16).to_ascii_uppercase()),
        Some('c') => {
            if wanted.sign.is_some() {
                return Err("Sign not allowed with integer format specifier 'c'".to_owned());
            }
            if wanted.alternate {
                return Err("Alternate form (#) not allowed with integer format specifier 'c'".to_owned());
            }
            let character = match number {
                Magnitude::Int(int) => u32::try_from(int).ok(),
                Magnitude::Whole(float) | Magnitude::Float(float) => {
                    (0.0..1_114_112.0).contains(&float).then_some(float as u32)
                }
            };
            let character = character
                .and_then(char::from_u32)
                .ok_or("%c arg not in range(0x110000)")?;
            // It is no digit, so that it is never grouped.
            return Ok(Formatted {
                rest: character.to_string(),
                ..Formatted::default()
            });
        }
        _ => ("", digits(10)),
    };
    Ok(Formatted {
        negative,
        prefix,
        whole,
        rest: String::new(),
    })
}

fn in_radix(mut number: u128, radix: u32) -> String {
    let radix_wide = u128::from(radix);
    let mut digits = Vec::new();
    loop {
        let digit = u32::try_from(number % radix_wide).expect("a digit is less than the radix");
        digits.push(char::from_digit(digit, radix).expect("a digit is less than the radix"));
        number /= radix_wide;
        if number == 0 {
            break;
        }
    }
    digits.into_iter().rev().collect()
}

/// The digits of a float without sign and fraction, exactly.
fn float_in_radix(float: f64, radix: u32) -> String {
    if radix == 10 {
        return format!("{float:.0}");
    }
    // 2¹²⁷
    if float < 170_141_183_460_469_231_731_687_303_715_884_105_728.0 {
        return in_radix(float as u128, radix);
    }
    // A larger one is a mantissa of 53 bits with zeros behind it.
    let bits = float.to_bits();
    let exponent = usize::try_from((bits >> 52) & 0x7ff).expect("eleven bits fit") - 1075;
    let mantissa = u128::from((bits & ((1 << 52) - 1)) | (1 << 52));
    let binary = in_radix(mantissa, 2) + &"0".repeat(exponent);
    let each = radix.trailing_zeros() as usize;
    let missing = binary.len().next_multiple_of(each) - binary.len();
    let binary = "0".repeat(missing) + &binary;
    let digit = |bits: &[u8]| {
        let value = bits
            .iter()
            .fold(0, |value, bit| value * 2 + u32::from(bit - b'0'));
        char::from_digit(value, radix).expect("so many bits are one digit")
    };
    let digits: String = binary.as_bytes().chunks(each).map(digit).collect();
    digits.trim_start_matches('0').to_owned()
}

fn format_float(float: f64, wanted: &Specification) -> Option<Formatted> {
    let kind = wanted.kind;
    if !matches!(kind, None | Some('e' | 'E' | 'f' | 'F' | 'g' | 'G' | 'n' | '%')) {
        return None;
    }
    let upper = matches!(kind, Some('E' | 'F' | 'G'));
    let percent = if kind == Some('%') { "%" } else { "" };
    if !float.is_finite() {
        let text = non_finite(float.abs());
        return Some(Formatted {
            negative: float < 0.0,
            prefix: "",
            whole: if upper {
                text.to_uppercase()
            } else {
                text.to_owned()
            },
            rest: percent.to_owned(),
        });
    }
    let scaled = if kind == Some('%') { float * 100.0 } else { float };
    let magnitude = scaled.abs();
    let precision = wanted.precision.unwrap_or(6);
    let text = match kind {
        Some('e' | 'E') => scientific(magnitude, precision, wanted.alternate),
        Some('f' | 'F' | '%') => fixed(magnitude, precision, wanted.alternate),
        Some('g' | 'G' | 'n') => general(magnitude, precision, wanted.alternate, false),
        _ => match wanted.precision {
            Some(precision) => general(magnitude, precision, wanted.alternate, true),
            None => float_representation(magnitude),
        },
    };
    let zero = !text
        .split(['e', 'E'])
        .next()
        .is_some_and(|digits| digits.bytes().any(|b| (b'1'..=b'9').contains(&b)));
    let text = if upper { text.to_uppercase() } else { text };
    let split = text.find(['.', 'e', 'E']).unwrap_or(text.len());
    let (whole, rest) = text.split_at(split);
    Some(Formatted {
        negative: float.is_sign_negative() && !(wanted.no_negative_zero && zero),
        prefix: "",
        whole: whole.to_owned(),
        rest: format!("{rest}{percent}"),
    })
}

fn fixed(magnitude: f64, precision: usize, point: bool) -> String {
    let digits = precision.min(MOST_DIGITS);
    let mut text = format!("{magnitude:.digits$}");
    text.push_str(&"0".repeat(precision - digits));
    if point && precision == 0 {
        text.push('.');
    }
    text
}

fn scientific(magnitude: f64, precision: usize, point: bool) -> String {
    let (mut mantissa, exponent) = mantissa_and_exponent(magnitude, precision);
    if point && precision == 0 {
        mantissa.push('.');
    }
    format!("{mantissa}{}", exponent_text(exponent))
}

fn exponent_text(exponent: i32) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("e{sign}{:02}", exponent.abs())
}

fn mantissa_and_exponent(magnitude: f64, precision: usize) -> (String, i32) {
    let digits = precision.min(MOST_DIGITS);
    let text = format!("{magnitude:.digits$e}");
    let (mantissa, exponent) = text.split_once('e').expect("the scientific form has an exponent");
    let exponent = exponent.parse().expect("an exponent is a small number");
    (mantissa.to_owned() + &"0".repeat(precision - digits), exponent)
}

/// `g`: so many significant digits, without zeros at the end unless `#` is given. With `keep_point` there is always a digit behind the point,
/// which is what a float without a letter looks like.
fn general(magnitude: f64, precision: usize, alternate: bool, keep_point: bool) -> String {
    let precision = precision.max(1);
    let (mantissa, exponent) = mantissa_and_exponent(magnitude, precision - 1);
    let limit = i64::try_from(precision).unwrap_or(i64::MAX) - i64::from(keep_point);
    let trim = |text: String| {
        if alternate || !text.contains('.') {
            return text;
        }
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    if exponent < -4 || i64::from(exponent) >= limit {
        let mut mantissa = trim(mantissa);
        if alternate && !mantissa.contains('.') {
            mantissa.push('.');
        }
        return mantissa + &exponent_text(exponent);
    }
    let behind = i64::try_from(precision).unwrap_or(i64::MAX) - 1 - i64::from(exponent);
    let mut text = trim(fixed(magnitude, usize::try_from(behind).unwrap_or(0), false));
    if !text.contains('.') {
        match (alternate, keep_point) {
            (_, true) => text.push_str(".0"),
            (true, false) => text.push('.'),
            (false, false) => {}
        }
    }
    text
}
