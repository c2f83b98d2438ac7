//! `strings`: text. By bytes, except for letters and blanks, which follow Unicode. Functions that `golang/strings` has too are defined there.

use setpoint_value::{CallError, Module, function};

use crate::golang::strings::{
    STRINGS_CONTAINS, STRINGS_HAS_PREFIX, STRINGS_HAS_SUFFIX, STRINGS_REPLACE_ALL, STRINGS_TO_LOWER,
    STRINGS_TO_UPPER, STRINGS_TRIM_SPACE,
};
use crate::golang::text;
use crate::text_builder;

pub(crate) static MODULE: Module = Module::new(
    "strings",
    "Text.",
    &[
        &STRINGS_CONTAINS,
        &STRINGS_HAS_PREFIX,
        &STRINGS_HAS_SUFFIX,
        &JOIN_NONEMPTY,
        &LEFT_PAD,
        &STRINGS_REPLACE_ALL,
        &RIGHT_PAD,
        &SPLIT,
        &SUBSTR,
        &STRINGS_TO_LOWER,
        &STRINGS_TO_UPPER,
        &STRINGS_TRIM_SPACE,
    ],
);

/// The elements that are not empty, with `sep` between them.
#[function(example(call = r#"strings.join_nonempty(["a", "", "b"], "-")"#, result = r#""a-b""#))]
fn join_nonempty(
    /// The texts to join.
    s: Vec<&[u8]>,
    /// The separator.
    sep: &[u8],
) -> Result<Vec<u8>, CallError> {
    let parts = s.into_iter().filter(|part| !part.is_empty());
    Ok(text_builder::join(parts, sep)?)
}

/// `s` with as many `pad`s before it as it takes to reach `len` bytes.
///
/// The last one is whole, so that there may be more. An empty `pad` is an error that `<|>` does not catch.
#[function(example(call = r#"strings.left_pad("7", "0", 3)"#, result = r#""007""#))]
fn left_pad(
    /// The text.
    s: &[u8],
    /// The text to pad with.
    pad: &[u8],
    /// The minimum length of the result in bytes.
    len: i64,
) -> Result<Vec<u8>, CallError> {
    let mut padded = padding(s, pad, len)?;
    padded.extend_from_slice(s);
    Ok(padded)
}

/// `s` with as many `pad`s after it as it takes to reach `len` bytes.
///
/// The last one is whole, so that there may be more. An empty `pad` is an error that `<|>` does not catch.
#[function(example(call = r#"strings.right_pad("a", "ab", 4)"#, result = r#""aabab""#))]
fn right_pad(
    /// The text.
    s: &[u8],
    /// The text to pad with.
    pad: &[u8],
    /// The minimum length of the result in bytes.
    len: i64,
) -> Result<Vec<u8>, CallError> {
    let padding = padding(s, pad, len)?;
    Ok([s, &padding].concat())
}

/// The parts of `a` between each `b`; with an empty `b` its characters.
#[function(
    example(call = r#"strings.split("a,b", ",")"#, result = r#"["a", "b"]"#),
    example(call = r#"strings.split("é!", "")"#, result = r#"["é", "!"]"#)
)]
fn split(
    /// The text.
    a: &[u8],
    /// The separator.
    b: &[u8],
) -> Vec<Vec<u8>> {
    if b.is_empty() {
        return text::characters(a).map(<[u8]>::to_vec).collect();
    }
    let mut parts = Vec::new();
    let mut rest = a;
    while let Some(at) = text::find(rest, b) {
        parts.push(rest[..at].to_vec());
        rest = &rest[at + b.len()..];
    }
    parts.push(rest.to_vec());
    parts
}

/// The bytes from `low` up to and without `high`.
///
/// Positions outside the text fail in a way that `<|>` catches.
#[function(
    example(call = r#"strings.substr("hello", 1, 3)"#, result = r#""el""#),
    example(call = r#"strings.substr("hi", 0, 9) <|> "?""#, result = r#""?""#)
)]
fn substr(
    /// The text.
    s: &[u8],
    /// The first byte to take, counted from 0.
    low: i64,
    /// The first byte to leave out.
    high: i64,
) -> Result<Vec<u8>, CallError> {
    let range = usize::try_from(low).ok().zip(usize::try_from(high).ok());
    range
        .and_then(|(low, high)| s.get(low..high))
        .map(<[u8]>::to_vec)
        .ok_or_else(|| CallError::catchable("low/high out of range"))
}

/// What must stand beside `s` so that there are at least `length` bytes.
fn padding(s: &[u8], pad: &[u8], length: i64) -> Result<Vec<u8>, CallError> {
    let length = usize::try_from(length).unwrap_or(0);
    if s.len() >= length {
        return Ok(Vec::new());
    }
    if pad.is_empty() {
        return Err(CallError::fatal("can't pad with an empty string"));
    }
    let count = (length - s.len()).div_ceil(pad.len());
    text::repeat(pad, count)
}
