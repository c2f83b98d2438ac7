//! `golang/strconv`: between text and the simple types, as in Go.

use setpoint_value::{CallError, Module, function};

use super::numbers::{self, NumberError};
use super::quoting::{self, Keep};

pub(crate) static MODULE: Module = Module::new(
    "golang/strconv",
    "Between text and the simple types, as in Go's package `strconv`.",
    &[
        &APPEND_BOOL,
        &APPEND_INT,
        &APPEND_QUOTE,
        &APPEND_QUOTE_TO_ASCII,
        &APPEND_QUOTE_TO_GRAPHIC,
        &ATOI,
        &CAN_BACKQUOTE,
        &FORMAT_BOOL,
        &FORMAT_INT,
        &ITOA,
        &PARSE_BOOL,
        &PARSE_FLOAT,
        &PARSE_INT,
        &QUOTE,
        &QUOTE_TO_ASCII,
        &QUOTE_TO_GRAPHIC,
        &QUOTED_PREFIX,
        &UNQUOTE,
    ],
);

/// `dst` with `true` or `false` after it.
#[function(example(call = r#"strconv.append_bool("is ", true)"#, result = r#""is true""#))]
fn append_bool(
    /// The text to append to.
    dst: &[u8],
    /// The value to append.
    b: bool,
) -> Vec<u8> {
    [dst, format_bool(b).as_bytes()].concat()
}

/// `dst` with a number in some base after it.
#[function(example(call = r#"strconv.append_int("0x", 255, 16)"#, result = r#""0xff""#))]
fn append_int(
    /// The text to append to.
    dst: &[u8],
    /// The value to append.
    i: i64,
    /// The base, 2 to 36.
    base: i64,
) -> Result<Vec<u8>, CallError> {
    Ok([dst, format_int(i, base)?.as_bytes()].concat())
}

/// `dst` with a quoted text after it.
#[function(example(call = r#"strconv.append_quote("say ", "hi")"#, result = r#""say \"hi\"""#))]
fn append_quote(
    /// The text to append to.
    dst: &[u8],
    /// The text to quote.
    s: &[u8],
) -> Vec<u8> {
    [dst, quoting::quote(s, Keep::Printable).as_bytes()].concat()
}

/// `dst` with a text quoted in ASCII after it.
#[function(example(
    call = r#"strconv.append_quote_to_ascii("", "é")"#,
    result = r#""\"\\u00e9\"""#
))]
fn append_quote_to_ascii(
    /// The text to append to.
    dst: &[u8],
    /// The text to quote.
    s: &[u8],
) -> Vec<u8> {
    [dst, quoting::quote(s, Keep::Ascii).as_bytes()].concat()
}

/// `dst` with a quoted text after it, blanks of all kinds as they are.
#[function(example(call = r#"strconv.append_quote_to_graphic("", "é")"#, result = r#""\"é\"""#))]
fn append_quote_to_graphic(
    /// The text to append to.
    dst: &[u8],
    /// The text to quote.
    s: &[u8],
) -> Vec<u8> {
    [dst, quoting::quote(s, Keep::Graphic).as_bytes()].concat()
}

/// The int that a text spells in decimal.
///
/// Any other text fails in a way that `<|>` catches.
#[function(example(call = r#"strconv.atoi("-7")"#, result = "-7"))]
fn atoi(
    /// Digits, with an optional sign.
    s: &[u8],
) -> Result<i64, CallError> {
    numbers::parse_int(s, 10, 64).map_err(|error| failure("Atoi", s, error))
}

/// Whether a text can stand between back quotes.
#[function(example(call = r#"strconv.can_backquote("a\tb")"#, result = "true"))]
fn can_backquote(
    /// Any text.
    s: &[u8],
) -> bool {
    quoting::can_backquote(s)
}

/// `true` or `false`.
#[function(example(call = "strconv.format_bool(true)", result = r#""true""#))]
fn format_bool(
    /// The bool to format.
    b: bool,
) -> &'static str {
    if b { "true" } else { "false" }
}

/// A number in a base from 2 to 36.
#[function(example(call = "strconv.format_int(-255, 16)", result = r#""-ff""#))]
fn format_int(
    /// The number to format.
    i: i64,
    /// The base, 2 to 36.
    base: i64,
) -> Result<String, CallError> {
    let radix = u64::try_from(base).ok().filter(|base| (2..=36).contains(base));
    let radix = radix.ok_or_else(|| CallError::fatal("illegal base in a conversion"))?;
    let mut digits = Vec::new();
    let mut rest = i.unsigned_abs();
    loop {
        let digit = u32::try_from(rest % radix).unwrap_or(0);
        digits.push(char::from_digit(digit, 36).unwrap_or('0'));
        rest /= radix;
        if rest == 0 {
            break;
        }
    }
    if i < 0 {
        digits.push('-');
    }
    Ok(digits.into_iter().rev().collect())
}

/// A number in decimal.
#[function(example(call = "strconv.itoa(7)", result = r#""7""#))]
fn itoa(
    /// The number to format.
    i: i64,
) -> String {
    i.to_string()
}

/// The bool that a text names: `1 t T TRUE true True` or `0 f F FALSE false False`.
///
/// Any other text fails in a way that `<|>` catches.
#[function(example(call = r#"strconv.parse_bool("t")"#, result = "true"))]
fn parse_bool(
    /// One of these words.
    #[name = "str"]
    text: &[u8],
) -> Result<bool, CallError> {
    numbers::parse_bool(text).ok_or_else(|| failure("ParseBool", text, NumberError::Syntax))
}

/// The float that a text spells.
///
/// Any other text fails in a way that `<|>` catches.
#[function(example(call = r#"strconv.parse_float("1e3", 64)"#, result = "1000.0"))]
fn parse_float(
    /// A number: `2`, `-0.5`, `1e6`, `0x1p-2`, `inf`.
    s: &[u8],
    /// 32 to round to a 32-bit float, otherwise 64.
    #[name = "bitSize"]
    bit_size: i64,
) -> Result<f64, CallError> {
    numbers::parse_float(s, bit_size).map_err(|error| failure("ParseFloat", s, error))
}

/// The int that a text spells in a base, within so many bits. Base 0 goes by the prefix.
///
/// Any other text fails in a way that `<|>` catches.
#[function(example(call = r#"strconv.parse_int("0xff", 0, 64)"#, result = "255"))]
fn parse_int(
    /// Digits, with an optional sign.
    s: &[u8],
    /// The base, 2 to 36; or 0 to go by the prefix: `0b`, `0o`, `0x`, or none for 10.
    base: i64,
    /// The number of bits that the number must fit into, 0 to 64; 0 means 64.
    #[name = "bitSize"]
    bit_size: i64,
) -> Result<i64, CallError> {
    numbers::parse_int(s, base, bit_size).map_err(|error| failure("ParseInt", s, error))
}

/// A text in quotes, with escapes for what does not print.
#[function(example(call = r#"strconv.quote("a\n")"#, result = r#""\"a\\n\"""#))]
fn quote(
    /// Any text.
    s: &[u8],
) -> String {
    quoting::quote(s, Keep::Printable)
}

/// A text in quotes, with escapes for what is not printable ASCII.
#[function(example(call = r#"strconv.quote_to_ascii("é")"#, result = r#""\"\\u00e9\"""#))]
fn quote_to_ascii(
    /// Any text.
    s: &[u8],
) -> String {
    quoting::quote(s, Keep::Ascii)
}

/// A text in quotes, with blanks of all kinds as they are.
#[function(example(call = r#"strconv.quote_to_graphic("é")"#, result = r#""\"é\"""#))]
fn quote_to_graphic(
    /// Any text.
    s: &[u8],
) -> String {
    quoting::quote(s, Keep::Graphic)
}

/// The quoted text, with its quotes, that another one begins with.
///
/// A text that does not begin so fails in a way that `<|>` catches.
#[function(example(call = r#"strconv.quoted_prefix("\"a\" b")"#, result = r#""\"a\"""#))]
fn quoted_prefix(
    /// Text that begins with a quote.
    s: &[u8],
) -> Result<Vec<u8>, CallError> {
    let (_, length) = quoting::unquote_prefix(s).ok_or_else(invalid_syntax)?;
    Ok(s[..length].to_vec())
}

/// What a quoted text stands for.
///
/// A text that is not quoted fails in a way that `<|>` catches.
#[function(example(call = r#"strconv.unquote("`a`")"#, result = r#""a""#))]
fn unquote(
    /// Text between double, single or back quotes.
    s: &[u8],
) -> Result<Vec<u8>, CallError> {
    quoting::unquote(s).ok_or_else(invalid_syntax)
}

fn invalid_syntax() -> CallError {
    CallError::catchable("invalid syntax")
}

fn failure(function: &str, text: &[u8], error: NumberError) -> CallError {
    let problem = match error {
        NumberError::Syntax => "invalid syntax".to_owned(),
        NumberError::Range => "value out of range".to_owned(),
        NumberError::Base(base) => format!("invalid base {base}"),
        NumberError::BitSize(size) => format!("invalid bit size {size}"),
    };
    let text = setpoint_value::quote(text);
    CallError::catchable(format!("strconv.{function}: parsing {text}: {problem}"))
}
