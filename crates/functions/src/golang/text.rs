//! Text as Go's `strings` and `unicode` see it: bytes, decoded to characters where letters matter. A byte that is no
//! UTF-8 is a character of its own.

use std::collections::HashSet;

use bstr::ByteSlice;
use setpoint_value::CallError;

use crate::text_builder::TextBuilder;

/// Where `needle` begins first.
pub(crate) fn find(text: &[u8], needle: &[u8]) -> Option<usize> {
    text.find(needle)
}

/// Where `needle` begins last.
pub(crate) fn find_last(text: &[u8], needle: &[u8]) -> Option<usize> {
    text.rfind(needle)
}

/// The characters, each as its bytes.
pub(crate) fn characters(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    runes(text).map(move |(start, length, _)| &text[start..start + length])
}

/// The characters with their place and length in bytes. A byte that is not UTF-8 is `�`, of length 1.
pub(crate) fn runes(text: &[u8]) -> impl Iterator<Item = (usize, usize, char)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let (c, length) = first_rune(&text[at..])?;
        at += length;
        Some((at - length, length, c))
    })
}

/// The first character and its length.
pub(crate) fn first_rune(text: &[u8]) -> Option<(char, usize)> {
    if text.is_empty() {
        return None;
    }
    match bstr::decode_utf8(text) {
        (Some(c), length) => Some((c, length)),
        (None, _) => Some(('\u{fffd}', 1)),
    }
}

/// The last character and its length.
pub(crate) fn last_rune(text: &[u8]) -> Option<(char, usize)> {
    if text.is_empty() {
        return None;
    }
    match bstr::decode_last_utf8(text) {
        (Some(c), length) => Some((c, length)),
        (None, _) => Some(('\u{fffd}', 1)),
    }
}

/// The first `count` occurrences of `old`, all if negative, replaced by `new`. An empty `old` is found before each character
/// and at the end.
pub(crate) fn replace(text: &[u8], old: &[u8], new: &[u8], count: i64) -> Result<Vec<u8>, CallError> {
    let mut left = usize::try_from(count).unwrap_or(usize::MAX);
    let mut out = TextBuilder::new();
    if old.is_empty() {
        for character in characters(text) {
            if left > 0 {
                left -= 1;
                out.push_bytes(new);
            }
            out.push_bytes(character);
        }
        if left > 0 {
            out.push_bytes(new);
        }
        return Ok(out.finish()?);
    }
    let mut rest = text;
    while left > 0
        && let Some(at) = find(rest, old)
    {
        left -= 1;
        out.push_bytes(&rest[..at]);
        out.push_bytes(new);
        rest = &rest[at + old.len()..];
    }
    out.push_bytes(rest);
    Ok(out.finish()?)
}

/// `text` so many times.
pub(crate) fn repeat(text: &[u8], count: usize) -> Result<Vec<u8>, CallError> {
    let mut out = TextBuilder::new();
    out.push_repeated(text, count);
    Ok(out.finish()?)
}

/// Characters among which others are looked for.
pub(crate) struct CharacterSet(HashSet<char>);

impl CharacterSet {
    /// Those of a text.
    pub(crate) fn of(text: &[u8]) -> CharacterSet {
        CharacterSet(runes(text).map(|(_, _, c)| c).collect())
    }

    /// Whether a character is one of them.
    pub(crate) fn contains(&self, c: char) -> bool {
        self.0.contains(&c)
    }
}

/// Every character changed; bytes that are not UTF-8 become `�`.
fn map(text: &[u8], change: fn(char) -> char) -> String {
    runes(text).map(|(_, _, c)| change(c)).collect()
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

/// The title case of a character: the upper case, but for digraphs and Georgian.
pub(crate) fn title(c: char) -> char {
    match c as u32 {
        0x1c4..=0x1c6 => '\u{1c5}',
        0x1c7..=0x1c9 => '\u{1c8}',
        0x1ca..=0x1cc => '\u{1cb}',
        0x1f1..=0x1f3 => '\u{1f2}',
        0x10d0..=0x10ff => c,
        _ => upper(c),
    }
}

/// The same character for all that differ only in case.
pub(crate) fn folded(c: char) -> char {
    // The Turkish i's fold to nothing but themselves.
    match c {
        '\u{130}' | '\u{131}' => c,
        _ => lower(upper(c)),
    }
}

fn single(c: char, mut mapped: impl Iterator<Item = char>) -> char {
    match (mapped.next(), mapped.next()) {
        (Some(one), None) => one,
        _ => c,
    }
}

/// Without the characters at the beginning that are `unwanted`.
pub(crate) fn trim_start(mut text: &[u8], unwanted: impl Fn(char) -> bool) -> &[u8] {
    while let Some((c, length)) = first_rune(text)
        && unwanted(c)
    {
        text = &text[length..];
    }
    text
}

/// Without the characters at the end that are `unwanted`.
pub(crate) fn trim_end(mut text: &[u8], unwanted: impl Fn(char) -> bool) -> &[u8] {
    while let Some((c, length)) = last_rune(text)
        && unwanted(c)
    {
        text = &text[..text.len() - length];
    }
    text
}

/// Without the blanks at both ends.
pub(crate) fn trim_space(text: &[u8]) -> &[u8] {
    trim_end(trim_start(text, char::is_whitespace), char::is_whitespace)
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
