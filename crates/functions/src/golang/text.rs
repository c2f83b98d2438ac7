//! Text as Go's `strings` and `unicode` see it: bytes, decoded to characters where letters matter. A byte that is no
//! UTF-8 is a character of its own.

use bstr::ByteSlice;
use setpoint_value::CallError;

/// No function makes a longer text than this; a program that asks for one is mistaken.
pub(crate) const LONGEST: usize = 1 << 28;

/// Where `needle` begins first.
pub(crate) fn find(text: &[u8], needle: &[u8]) -> Option<usize> {
    text.find(needle)
}

/// The characters, each as its bytes.
pub(crate) fn characters(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.char_indices().map(move |(start, end, _)| &text[start..end])
}

/// The first `count` occurrences of `old`, all if negative, replaced by `new`. An empty `old` is found before each character
/// and at the end.
pub(crate) fn replace(text: &[u8], old: &[u8], new: &[u8], count: i64) -> Result<Vec<u8>, CallError> {
    let mut left = usize::try_from(count).unwrap_or(usize::MAX);
    let mut out = Vec::with_capacity(text.len());
    let grow = |out: &mut Vec<u8>, part: &[u8]| {
        if out.len() + part.len() > LONGEST {
            return Err(too_long());
        }
        out.extend_from_slice(part);
        Ok(())
    };
    if old.is_empty() {
        for character in characters(text) {
            if left > 0 {
                left -= 1;
                grow(&mut out, new)?;
            }
            grow(&mut out, character)?;
        }
        if left > 0 {
            grow(&mut out, new)?;
        }
        return Ok(out);
    }
    let mut rest = text;
    while left > 0
        && let Some(at) = find(rest, old)
    {
        left -= 1;
        grow(&mut out, &rest[..at])?;
        grow(&mut out, new)?;
        rest = &rest[at + old.len()..];
    }
    grow(&mut out, rest)?;
    Ok(out)
}

/// `text` so many times.
pub(crate) fn repeat(text: &[u8], count: usize) -> Result<Vec<u8>, CallError> {
    match text.len().checked_mul(count) {
        Some(length) if length <= LONGEST => Ok(text.repeat(count)),
        _ => Err(too_long()),
    }
}

fn too_long() -> CallError {
    CallError::catchable(format!("the result would be longer than {LONGEST} bytes"))
}

/// Every character changed; bytes that are no UTF-8 become `�`.
fn map(text: &[u8], change: fn(char) -> char) -> String {
    text.chars().map(change).collect()
}

/// In lower case, a character for a character.
pub(crate) fn to_lower(text: &[u8]) -> String {
    map(text, lower)
}

/// In upper case, a character for a character.
pub(crate) fn to_upper(text: &[u8]) -> String {
    map(text, upper)
}

/// The lower case of a character by Unicode's simple mapping.
pub(crate) fn lower(c: char) -> char {
    // The one character whose full mapping is longer than its simple one.
    if c == '\u{130}' {
        return 'i';
    }
    single(c, c.to_lowercase())
}

/// The upper case of a character by Unicode's simple mapping.
pub(crate) fn upper(c: char) -> char {
    // Greek vowels with iota: the full mapping writes the iota beside them, the simple one below.
    match c as u32 {
        code @ (0x1f80..=0x1f87 | 0x1f90..=0x1f97 | 0x1fa0..=0x1fa7) => char::from_u32(code + 8).unwrap_or(c),
        0x1fb3 => '\u{1fbc}',
        0x1fc3 => '\u{1fcc}',
        0x1ff3 => '\u{1ffc}',
        _ => single(c, c.to_uppercase()),
    }
}

fn single(c: char, mut mapped: impl Iterator<Item = char>) -> char {
    match (mapped.next(), mapped.next()) {
        (Some(one), None) => one,
        _ => c,
    }
}

/// Without the blanks at both ends.
pub(crate) fn trim_space(text: &[u8]) -> &[u8] {
    text.trim_with(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_changes_character_by_character() {
        assert_eq!(to_upper("straße ŉ ᾳ ǆ".as_bytes()), "STRAßE ŉ ᾼ Ǆ");
        assert_eq!(to_lower("İÄΣ".as_bytes()), "iäσ");
        assert_eq!(to_lower(b"A\xffB"), "a\u{fffd}b");
    }

    #[test]
    fn replacing_nothing_is_between_characters() {
        assert_eq!(replace("é!".as_bytes(), b"", b"-", -1), Ok("-é-!-".into()));
        assert_eq!(replace(b"abc", b"", b"-", 2), Ok(b"-a-bc".to_vec()));
        assert_eq!(replace(b"aaa", b"a", b"b", 2), Ok(b"bba".to_vec()));
    }
}
