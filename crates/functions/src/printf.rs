//! How `Printf`'s verbs write numbers and fill texts up: one engine for the templates' `printf` and for `cty.format`.
//!
//! Each of them reads its own formats and decides what a verb takes; what a number then looks like is decided here.

use crate::text_builder::TextBuilder;

/// Flags, width and precision of a verb.
#[derive(Debug, Default, Clone)]
pub(crate) struct Spec {
    /// `+`: a sign also before what is not negative.
    pub plus: bool,
    /// `-`: blanks go behind.
    pub minus: bool,
    /// `#`: the alternate form.
    pub sharp: bool,
    /// A blank where a sign would be.
    pub space: bool,
    /// `0`: zeros instead of blanks before it.
    pub zero: bool,
    /// The least number of characters.
    pub width: Option<usize>,
    /// What follows the point.
    pub precision: Option<usize>,
}

impl Spec {
    /// Reads the flags at the beginning; gives their number.
    pub(crate) fn read_flags(&mut self, text: &[u8]) -> usize {
        let mut count = 0;
        for byte in text {
            let flag = match byte {
                b'+' => &mut self.plus,
                b'-' => &mut self.minus,
                b'#' => &mut self.sharp,
                b' ' => &mut self.space,
                b'0' => &mut self.zero,
                _ => break,
            };
            *flag = true;
            count += 1;
        }
        count
    }

    /// Fills up with blanks, never with zeros.
    pub(crate) fn with_blanks(&self) -> Spec {
        Spec {
            zero: false,
            ..self.clone()
        }
    }

    fn sign(&self, negative: bool) -> &'static str {
        match () {
            () if negative => "-",
            () if self.plus => "+",
            () if self.space => " ",
            () => "",
        }
    }
}

/// A number that a verb writes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Number {
    /// Written exactly, also by the verbs for floats.
    Int(i64),
    /// Any float.
    Float(f64),
}

/// Writes a text of so many characters as wide as it shall be.
pub(crate) fn pad(text: &[u8], characters: usize, spec: &Spec, out: &mut TextBuilder) {
    let missing = spec.width.unwrap_or(0).saturating_sub(characters);
    if spec.minus {
        out.push_bytes(text);
        out.push_repeated(b" ", missing);
    } else {
        out.push_repeated(if spec.zero { b"0" } else { b" " }, missing);
        out.push_bytes(text);
    }
}

/// Writes an int by `d`, `b`, `o`, `O`, `x` or `X`; answers whether the verb is one of them.
pub(crate) fn write_int(int: i64, verb: char, spec: &Spec, out: &mut TextBuilder) -> bool {
    let size = int.unsigned_abs();
    let (digits, prefix) = match verb {
        'd' => (size.to_string(), ""),
        'b' => (format!("{size:b}"), "0b"),
        'o' => (format!("{size:o}"), "0"),
        'O' => (format!("{size:o}"), "0o"),
        'x' => (format!("{size:x}"), "0x"),
        'X' => (format!("{size:X}"), "0X"),
        _ => return false,
    };
    let prefix = if verb == 'O' || spec.sharp { prefix } else { "" };
    let digits = match spec.precision {
        Some(0) if int == 0 => String::new(),
        Some(least) => format!("{digits:0>least$}"),
        None => digits,
    };
    let sign = format!("{}{prefix}", spec.sign(int < 0));
    // A precision says how many zeros there are; a width then adds blanks.
    let zeros = spec.zero && spec.precision.is_none();
    write_number(&sign, &digits, zeros, spec, out);
    true
}

/// Writes a number by `e`, `E`, `f`, `F`, `g`, `G`, `b`, `x` or `X`; answers whether the verb is one of them.
pub(crate) fn write_float(number: Number, verb: char, spec: &Spec, out: &mut TextBuilder) -> bool {
    let float = match number {
        Number::Int(int) => int as f64,
        Number::Float(float) => float,
    };
    let size = float.abs();
    let digits = match (verb, number) {
        ('g' | 'G', number) => general(number, spec.precision, spec.sharp),
        ('e' | 'E', number) => exponential(number, Some(spec.precision.unwrap_or(6))),
        ('f' | 'F', number) => decimals(number, spec.precision.unwrap_or(6)),
        ('b', _) => binary(size),
        ('x' | 'X', _) => hexadecimal(size, spec.precision),
        _ => return false,
    };
    let negative = match number {
        Number::Int(int) => int < 0,
        Number::Float(float) => float.is_sign_negative() && !float.is_nan(),
    };
    if !size.is_finite() {
        let sign = match spec.sign(negative) {
            "" if size.is_infinite() => "+",
            sign => sign,
        };
        let name = if size.is_nan() { "NaN" } else { "Inf" };
        write_number(sign, name, false, spec, out);
        return true;
    }
    let digits = if verb.is_uppercase() && verb != 'F' {
        digits.to_uppercase()
    } else {
        digits
    };
    write_number(spec.sign(negative), &digits, spec.zero, spec, out);
    true
}

/// Fills a number up to the width: with zeros behind the sign, or with blanks.
fn write_number(sign: &str, digits: &str, zeros: bool, spec: &Spec, out: &mut TextBuilder) {
    let length = sign.len() + digits.len();
    let missing = spec.width.unwrap_or(0).saturating_sub(length);
    if zeros && !spec.minus {
        out.push_str(sign);
        out.push_repeated(b"0", missing);
        out.push_str(digits);
    } else {
        pad(
            format!("{sign}{digits}").as_bytes(),
            length,
            &spec.with_blanks(),
            out,
        );
    }
}

/// The size of a number with so many decimals.
fn decimals(number: Number, count: usize) -> String {
    match number {
        Number::Int(int) if count == 0 => int.unsigned_abs().to_string(),
        Number::Int(int) => format!("{}.{}", int.unsigned_abs(), "0".repeat(count)),
        Number::Float(float) => format!("{:.count$}", float.abs()),
    }
}

/// `d.ddde±dd`, with so many decimals, or with the fewest that tell the number from others.
fn exponential(number: Number, count: Option<usize>) -> String {
    let text = match (number, count) {
        (Number::Int(int), Some(count)) => format!("{:.count$e}", int.unsigned_abs()),
        (Number::Int(int), None) => format!("{:e}", int.unsigned_abs()),
        (Number::Float(float), Some(count)) => format!("{:.count$e}", float.abs()),
        (Number::Float(float), None) => format!("{:e}", float.abs()),
    };
    let (mantissa, power) = text.split_once('e').unwrap_or((&text, "0"));
    let power: i64 = power.parse().unwrap_or(0);
    format!("{mantissa}e{}", signed_exponent(power))
}

fn signed_exponent(power: i64) -> String {
    let sign = if power < 0 { '-' } else { '+' };
    format!("{sign}{:02}", power.unsigned_abs())
}

/// `%g`: the shortest digits, or so many, with an exponent where it is below −4 or too great.
fn general(number: Number, precision: Option<usize>, keep_zeros: bool) -> String {
    let precision = precision.map(|digits| digits.max(1));
    let scientific = exponential(number, precision.map(|digits| digits - 1));
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
            let precision = i64::try_from(precision).unwrap_or(i64::MAX);
            if precision > digits && digits > power {
                digits
            } else {
                precision
            }
        }
    };
    if power < -4 || power >= limit {
        return format!("{trimmed}e{}", signed_exponent(power));
    }
    // The same digits, with the point where it belongs.
    decimals(number, usize::try_from(digits - 1 - power).unwrap_or(0))
}

/// `4503599627370496p-52`.
fn binary(size: f64) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn written(number: Number, verb: char, spec: &Spec) -> String {
        let mut out = TextBuilder::new();
        let known = match number {
            Number::Int(int) if "dboOxX".contains(verb) => write_int(int, verb, spec, &mut out),
            number => write_float(number, verb, spec, &mut out),
        };
        assert!(known, "{verb}");
        String::from_utf8(out.finish().expect("short")).expect("ASCII")
    }

    #[test]
    fn numbers_are_written_as_their_verb_says() {
        use Number::{Float, Int};
        let plain = Spec::default();
        let wide = |width| Spec {
            width: Some(width),
            zero: true,
            ..Spec::default()
        };
        let precise = |precision| Spec {
            precision: Some(precision),
            ..Spec::default()
        };
        for (number, verb, spec, expected) in [
            (Int(-5), 'd', plain.clone(), "-5"),
            (Int(-5), 'd', wide(4), "-005"),
            (Int(5), 'd', precise(3), "005"),
            (Int(0), 'd', precise(0), ""),
            (
                Int(10),
                'X',
                Spec {
                    sharp: true,
                    ..wide(6)
                },
                "0X000A",
            ),
            (
                Int(i64::MIN),
                'b',
                plain.clone(),
                &format!("-1{}", "0".repeat(63)),
            ),
            (Int(i64::MAX), 'f', precise(0), "9223372036854775807"),
            (Int(i64::MAX), 'f', precise(2), "9223372036854775807.00"),
            (Int(i64::MAX), 'e', precise(18), "9.223372036854775807e+18"),
            (Int(1_234_567), 'g', plain.clone(), "1.234567e+06"),
            (Int(123_456), 'g', plain.clone(), "123456"),
            (Float(1e20), 'g', precise(21), "100000000000000000000"),
            (Float(2.5), 'f', precise(0), "2"),
            (Float(1234.5), 'e', plain.clone(), "1.234500e+03"),
            (Float(0.0001), 'g', plain.clone(), "0.0001"),
            (Float(0.00001), 'G', plain.clone(), "1E-05"),
            (
                Float(100.0),
                'g',
                Spec {
                    sharp: true,
                    ..precise(6)
                },
                "100.000",
            ),
            (Float(-0.0), 'f', precise(1), "-0.0"),
            (Float(f64::INFINITY), 'f', wide(6), "  +Inf"),
            (Float(f64::NAN), 'f', wide(6), "   NaN"),
            (
                Float(-1.5),
                'f',
                Spec {
                    precision: Some(1),
                    ..wide(6)
                },
                "-001.5",
            ),
            (Float(1.0), 'b', plain.clone(), "4503599627370496p-52"),
            (Float(3.0), 'x', plain, "0x1.8p+01"),
        ] {
            assert_eq!(written(number, verb, &spec), expected, "%{verb} of {number:?}");
        }
    }
}
