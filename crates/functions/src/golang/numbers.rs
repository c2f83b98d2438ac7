//! Reading bools and numbers as Go's `strconv` does.

/// Why a text is not a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NumberError {
    /// It is not spelt like one.
    Syntax,
    /// It is too big.
    Range,
    /// The base is none.
    Base(i64),
    /// The size in bits is none.
    BitSize(i64),
}

impl NumberError {
    /// A message about `text`, which should have been a `wanted`.
    pub(crate) fn describe(self, wanted: &str, text: &[u8]) -> String {
        let text = setpoint_value::quote(text);
        match self {
            NumberError::Syntax => format!("{text} is not {} {wanted}", article(wanted)),
            NumberError::Range => format!("{text} does not fit {} {wanted}", article(wanted)),
            NumberError::Base(base) => format!("invalid base {base}"),
            NumberError::BitSize(size) => format!("invalid bit size {size}"),
        }
    }
}

fn article(word: &str) -> &'static str {
    if word.starts_with(['a', 'e', 'i', 'o', 'u']) {
        "an"
    } else {
        "a"
    }
}

/// `1 t T TRUE true True` or `0 f F FALSE false False`.
pub(crate) fn parse_bool(text: &[u8]) -> Option<bool> {
    match text {
        b"1" | b"t" | b"T" | b"TRUE" | b"true" | b"True" => Some(true),
        b"0" | b"f" | b"F" | b"FALSE" | b"false" | b"False" => Some(false),
        _ => None,
    }
}

/// `ParseInt`: an optional sign and digits of a base from 2 to 36; base 0 goes by the prefix and allows `_`.
pub(crate) fn parse_int(text: &[u8], base: i64, bit_size: i64) -> Result<i64, NumberError> {
    let (negative, digits) = match text {
        [] => return Err(NumberError::Syntax),
        [b'+', rest @ ..] => (false, rest),
        [b'-', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let magnitude = parse_magnitude(digits, base, bit_size)?;
    let bits = if bit_size == 0 { 64 } else { bit_size };
    let limit = 1u64 << (bits - 1);
    if negative {
        if magnitude > limit {
            return Err(NumberError::Range);
        }
        Ok((magnitude as i64).wrapping_neg())
    } else if magnitude >= limit {
        Err(NumberError::Range)
    } else {
        Ok(magnitude as i64)
    }
}

fn parse_magnitude(text: &[u8], base: i64, bit_size: i64) -> Result<u64, NumberError> {
    if text.is_empty() {
        return Err(NumberError::Syntax);
    }
    let (base, digits, underscores) = match base {
        2..=36 => (base as u64, text, false),
        0 => {
            let (base, digits) = match text {
                [b'0', b'b' | b'B', rest @ ..] if !rest.is_empty() => (2, rest),
                [b'0', b'o' | b'O', rest @ ..] if !rest.is_empty() => (8, rest),
                [b'0', b'x' | b'X', rest @ ..] if !rest.is_empty() => (16, rest),
                [b'0', rest @ ..] if !rest.is_empty() => (8, rest),
                other => (10, other),
            };
            (base, digits, true)
        }
        other => return Err(NumberError::Base(other)),
    };
    if !(0..=64).contains(&bit_size) {
        return Err(NumberError::BitSize(bit_size));
    }
    let mut magnitude: u64 = 0;
    let mut too_big = false;
    let mut seen_underscore = false;
    for &byte in digits {
        let digit = match byte {
            b'_' if underscores => {
                seen_underscore = true;
                continue;
            }
            b'0'..=b'9' => u64::from(byte - b'0'),
            b'a'..=b'z' => u64::from(byte - b'a') + 10,
            b'A'..=b'Z' => u64::from(byte - b'A') + 10,
            _ => return Err(NumberError::Syntax),
        };
        if digit >= base {
            return Err(NumberError::Syntax);
        }
        match magnitude.checked_mul(base).and_then(|m| m.checked_add(digit)) {
            Some(next) => magnitude = next,
            None => too_big = true,
        }
    }
    if seen_underscore && !underscores_fit(text) {
        return Err(NumberError::Syntax);
    }
    if too_big {
        return Err(NumberError::Range);
    }
    Ok(magnitude)
}

/// Whether each `_` stands between digits, or between a base prefix and a digit, as in Go's literals.
pub(crate) fn underscores_fit(text: &[u8]) -> bool {
    #[derive(PartialEq)]
    enum Last {
        Start,
        Digit,
        Underscore,
        Other,
    }
    let text = match text {
        [b'+' | b'-', rest @ ..] => rest,
        rest => rest,
    };
    let (mut last, digits, hexadecimal) = match text {
        [b'0', b'b' | b'B' | b'o' | b'O', rest @ ..] => (Last::Digit, rest, false),
        [b'0', b'x' | b'X', rest @ ..] => (Last::Digit, rest, true),
        rest => (Last::Start, rest, false),
    };
    for byte in digits {
        if byte.is_ascii_digit() || hexadecimal && byte.is_ascii_hexdigit() {
            last = Last::Digit;
        } else if *byte == b'_' {
            if last != Last::Digit {
                return false;
            }
            last = Last::Underscore;
        } else {
            if last == Last::Underscore {
                return false;
            }
            last = Last::Other;
        }
    }
    last != Last::Underscore
}

/// `ParseFloat`. A size of 32 rounds to that many bits; any other is 64.
pub(crate) fn parse_float(text: &[u8], bit_size: i64) -> Result<f64, NumberError> {
    let Ok(text) = std::str::from_utf8(text) else {
        return Err(NumberError::Syntax);
    };
    let (negative, unsigned) = match text.as_bytes() {
        [b'+', ..] => (false, &text[1..]),
        [b'-', ..] => (true, &text[1..]),
        _ => (false, text),
    };
    let lower = unsigned.to_ascii_lowercase();
    let signed = |value: f64| if negative { -value } else { value };
    match lower.as_str() {
        "inf" | "infinity" => return Ok(signed(f64::INFINITY)),
        // Only without a sign.
        "nan" if unsigned.len() == text.len() => return Ok(f64::NAN),
        _ => {}
    }
    if lower.contains('_') && !underscores_fit(text.as_bytes()) {
        return Err(NumberError::Syntax);
    }
    let digits: String = lower.chars().filter(|c| *c != '_').collect();
    let value = match digits.strip_prefix("0x") {
        Some(hexadecimal) => parse_hexadecimal(hexadecimal)?,
        None => {
            if !is_decimal(digits.as_bytes()) {
                return Err(NumberError::Syntax);
            }
            if bit_size == 32 {
                f64::from(digits.parse::<f32>().map_err(|_| NumberError::Syntax)?)
            } else {
                digits.parse::<f64>().map_err(|_| NumberError::Syntax)?
            }
        }
    };
    let value = if bit_size == 32 {
        f64::from(value as f32)
    } else {
        value
    };
    if value.is_infinite() {
        Err(NumberError::Range)
    } else {
        Ok(signed(value))
    }
}

/// Digits with a point somewhere and perhaps an exponent.
fn is_decimal(text: &[u8]) -> bool {
    let (mantissa, exponent) = match text.iter().position(|b| *b == b'e') {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let points = mantissa.iter().filter(|b| **b == b'.').count();
    let digits = mantissa.iter().filter(|b| b.is_ascii_digit()).count();
    let exponent_fits = exponent.is_none_or(|exponent| {
        let digits = match exponent {
            [b'+' | b'-', rest @ ..] => rest,
            rest => rest,
        };
        !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
    });
    points <= 1 && digits > 0 && points + digits == mantissa.len() && exponent_fits
}

/// What follows `0x`: hexadecimal digits, perhaps with a point, and `p` with a decimal exponent of two.
fn parse_hexadecimal(text: &str) -> Result<f64, NumberError> {
    let (mantissa, exponent) = text.split_once('p').ok_or(NumberError::Syntax)?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent_digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if whole.len() + fraction.len() == 0
        || exponent_digits.is_empty()
        || !exponent_digits.bytes().all(|b| b.is_ascii_digit())
    {
        return Err(NumberError::Syntax);
    }
    // Sixteen significant digits and whether anything follows decide the rounding.
    let mut bits: u128 = 0;
    let mut shift: i64 = 0;
    let mut lost = false;
    for (index, byte) in whole.bytes().chain(fraction.bytes()).enumerate() {
        let digit = char::from(byte).to_digit(16).ok_or(NumberError::Syntax)?;
        if index >= whole.len() {
            shift -= 4;
        }
        if bits >> 100 == 0 {
            bits = bits << 4 | u128::from(digit);
        } else {
            lost |= digit != 0;
            shift += 4;
        }
    }
    if bits == 0 {
        return Ok(0.0);
    }
    let negative = exponent.starts_with('-');
    let exponent: i64 = exponent_digits.parse().unwrap_or(i64::MAX / 4).min(i64::MAX / 4);
    let exponent = if negative { -exponent } else { exponent } + shift;
    Ok(scale(bits, lost, exponent))
}

/// `bits · 2^exponent`, rounded to the nearest float, ties to even; `lost` says that something follows the bits.
fn scale(bits: u128, lost: bool, exponent: i64) -> f64 {
    let top = 127 - i64::from(bits.leading_zeros());
    let highest = top + exponent;
    if highest > 1023 {
        return f64::INFINITY;
    }
    // The exponent of the last bit that is kept: 53 bits, or fewer where the float is subnormal.
    let last = (highest - 52).max(-1074);
    let drop = last - exponent;
    let kept = if drop <= 0 {
        bits << -drop
    } else if drop > 127 {
        0
    } else {
        let kept = bits >> drop;
        let rest = bits & ((1u128 << drop) - 1);
        let half = 1u128 << (drop - 1);
        let up = rest > half || rest == half && (lost || kept & 1 == 1);
        kept + u128::from(up)
    };
    // Both factors are exact, and the product is representable, so nothing is rounded twice.
    let scaled = kept as f64;
    if last >= -1022 {
        scaled * 2f64.powi(i32::try_from(last).unwrap_or(i32::MAX))
    } else {
        scaled * f64::MIN_POSITIVE * 2f64.powi(i32::try_from(last + 1022).unwrap_or(i32::MIN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_read_as_go_reads_them() {
        for (text, value) in [
            ("1.5", 1.5),
            (".5", 0.5),
            ("5.", 5.0),
            ("1e3", 1000.0),
            ("-1E-2", -0.01),
            ("+7", 7.0),
            ("0x1p-2", 0.25),
            ("0x1.8p1", 3.0),
            ("0x.8p0", 0.5),
            ("1_000.5", 1000.5),
            ("Inf", f64::INFINITY),
            ("-infinity", f64::NEG_INFINITY),
            ("1e-400", 0.0),
            ("0x1p-1074", f64::from_bits(1)),
            ("0x1p-1075", 0.0),
            ("0x1.00000000000008p0", 1.0),
            ("0x1.00000000000018p0", 1.0 + 2.0 * f64::EPSILON),
            ("0x1.fffffffffffff8p1022", f64::from_bits(0x7fe0_0000_0000_0000)),
        ] {
            assert_eq!(parse_float(text.as_bytes(), 64), Ok(value), "{text}");
        }
        assert!(parse_float(b"NaN", 64).is_ok_and(f64::is_nan));
        for text in [
            "", ".", "1e", "0x1", "1 ", " 1", "--1", "1__0", "_1", "1_", "infin", "+nan", "0x.p1", "e1",
        ] {
            assert_eq!(
                parse_float(text.as_bytes(), 64),
                Err(NumberError::Syntax),
                "{text}"
            );
        }
        for text in ["1e400", "0x1p1024", "-1e999"] {
            assert_eq!(
                parse_float(text.as_bytes(), 64),
                Err(NumberError::Range),
                "{text}"
            );
        }
        assert_eq!(parse_float(b"1e39", 32), Err(NumberError::Range));
        assert_eq!(parse_float(b"0.1", 32), Ok(f64::from(0.1f32)));
    }

    #[test]
    fn ints_are_read_as_go_reads_them() {
        for (text, base, bits, value) in [
            ("42", 10, 64, 42),
            ("-9223372036854775808", 10, 64, i64::MIN),
            ("0x_ff", 0, 64, 255),
            ("0b101", 0, 0, 5),
            ("017", 0, 64, 15),
            ("z", 36, 64, 35),
            ("-128", 10, 8, -128),
        ] {
            assert_eq!(parse_int(text.as_bytes(), base, bits), Ok(value), "{text}");
        }
        for (text, base, bits, error) in [
            ("", 10, 64, NumberError::Syntax),
            ("+", 10, 64, NumberError::Syntax),
            ("1_0", 10, 64, NumberError::Syntax),
            ("9223372036854775808", 10, 64, NumberError::Range),
            ("128", 10, 8, NumberError::Range),
            ("1", 1, 64, NumberError::Base(1)),
            ("1", 10, 65, NumberError::BitSize(65)),
            ("08", 0, 64, NumberError::Syntax),
        ] {
            assert_eq!(parse_int(text.as_bytes(), base, bits), Err(error), "{text}");
        }
    }
}
