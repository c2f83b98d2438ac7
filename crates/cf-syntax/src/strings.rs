//! What texts say: escapes, and the `{{…}}` that other values are put in place of.
//!
//! Escapes come first, fields are looked for in what they make. So that a place in the made text can be shown in the
//! file, the two are kept side by side where they part.

use std::sync::Arc;

use setpoint_diagnostics::{Diagnostic, FileId, Span};

use crate::ast::{Name, Path, Reference, TextPart};
use crate::errors;

/// A text with its escapes processed.
pub(super) struct Decoded {
    pub(super) text: String,
    file: FileId,
    /// Where the inside begins in the file.
    start: u32,
    /// Behind each place in `text` (first) what stands in the file goes on at another one (second), both in bytes from their starts.
    jumps: Vec<(u32, u32)>,
}

impl Decoded {
    /// The place in the file of a range of the text.
    pub(super) fn span(&self, start: usize, end: usize) -> Span {
        Span::new(self.file, self.source(start), self.source(end))
    }

    fn source(&self, at: usize) -> u32 {
        let at = at as u32;
        let before = self.jumps.partition_point(|(made, _)| *made <= at);
        let inside = match before.checked_sub(1) {
            Some(jump) => self.jumps[jump].1 + (at - self.jumps[jump].0),
            None => at,
        };
        self.start + inside
    }
}

/// Takes a text as it is written, but for line ends, which are all `\n`.
pub(super) fn raw(inside: &str, start: u32, file: FileId) -> Decoded {
    decode_with(inside, start, file, false, &mut Vec::new(), Span::new(file, 0, 0))
}

/// Processes escapes. What is wrong with them is said once for each token, `token`: a warning for unknown ones, which stay.
pub(super) fn decode(
    inside: &str,
    start: u32,
    file: FileId,
    token: Span,
    found: &mut Vec<Diagnostic>,
) -> Decoded {
    decode_with(inside, start, file, true, found, token)
}

fn decode_with(
    inside: &str,
    start: u32,
    file: FileId,
    escapes: bool,
    found: &mut Vec<Diagnostic>,
    token: Span,
) -> Decoded {
    let is_special = |byte: &u8| *byte == b'\r' || (escapes && *byte == b'\\');
    let mut decoded = Decoded {
        text: String::with_capacity(inside.len()),
        file,
        start,
        jumps: Vec::new(),
    };
    let mut warned = false;
    let mut position = 0;
    while let Some(plain) = inside.as_bytes()[position..].iter().position(is_special) {
        decoded.text.push_str(&inside[position..position + plain]);
        position += plain;
        let rest = &inside[position..];
        let length = if rest.starts_with('\r') {
            decoded.text.push('\n');
            if rest.starts_with("\r\n") { 2 } else { 1 }
        } else {
            let (length, outcome) = escape(rest);
            let at = |length: usize| {
                let start = start + position as u32;
                Span::new(file, start, start + length as u32)
            };
            match outcome {
                Escape::Character(character) => decoded.text.push(character),
                Escape::Nothing => {}
                Escape::Unknown => {
                    decoded.text.push_str(&rest[..length]);
                    if !warned {
                        warned = true;
                        found.push(errors::unknown_escape(&rest[..length], token, at(length)));
                    }
                }
                Escape::Malformed(reason) => {
                    decoded.text.push(char::REPLACEMENT_CHARACTER);
                    found.push(errors::malformed_escape(
                        &rest[..length],
                        reason,
                        token,
                        at(length),
                    ));
                }
            }
            length
        };
        position += length;
        decoded.jumps.push((decoded.text.len() as u32, position as u32));
    }
    decoded.text.push_str(&inside[position..]);
    decoded
}

enum Escape {
    Character(char),
    /// A backslash at the end of a line.
    Nothing,
    Unknown,
    Malformed(&'static str),
}

/// What the escape at the start of `text` is, and how long.
fn escape(text: &str) -> (usize, Escape) {
    let bytes = text.as_bytes();
    let character = |length, character| (length, Escape::Character(character));
    match bytes.get(1) {
        None => (1, Escape::Malformed("nothing follows the backslash")),
        Some(b'\\') => character(2, '\\'),
        Some(b'\'') => character(2, '\''),
        Some(b'"') => character(2, '"'),
        Some(b'a') => character(2, '\u{7}'),
        Some(b'b') => character(2, '\u{8}'),
        Some(b'f') => character(2, '\u{c}'),
        Some(b'n') => character(2, '\n'),
        Some(b'r') => character(2, '\r'),
        Some(b't') => character(2, '\t'),
        Some(b'v') => character(2, '\u{b}'),
        Some(b'\n') => (2, Escape::Nothing),
        Some(b'\r') => (2 + usize::from(bytes.get(2) == Some(&b'\n')), Escape::Nothing),
        Some(b'0'..=b'7') => {
            let digits = bytes[1..]
                .iter()
                .take(3)
                .take_while(|byte| matches!(byte, b'0'..=b'7'))
                .count();
            let value = bytes[1..=digits]
                .iter()
                .fold(0, |value, digit| value * 8 + u32::from(digit - b'0'));
            character(
                1 + digits,
                char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER),
            )
        }
        Some(b'x') => hexadecimal(bytes, 2),
        Some(b'u') => hexadecimal(bytes, 4),
        Some(b'U') => hexadecimal(bytes, 8),
        Some(b'N') => named(text),
        Some(_) => (
            1 + text[1..].chars().next().map_or(0, char::len_utf8),
            Escape::Unknown,
        ),
    }
}

fn hexadecimal(bytes: &[u8], wanted: usize) -> (usize, Escape) {
    let digits = bytes[2..]
        .iter()
        .take(wanted)
        .take_while(|byte| byte.is_ascii_hexdigit())
        .count();
    if digits < wanted {
        return (
            2 + digits,
            Escape::Malformed(match wanted {
                2 => "`\\x` needs two hexadecimal digits",
                4 => "`\\u` needs four hexadecimal digits",
                _ => "`\\U` needs eight hexadecimal digits",
            }),
        );
    }
    let digit = |byte: &u8| char::from(*byte).to_digit(16).unwrap_or(0);
    let value = bytes[2..2 + digits]
        .iter()
        .fold(0_u32, |value, byte| (value << 4) | digit(byte));
    match char::from_u32(value) {
        Some(character) => (2 + digits, Escape::Character(character)),
        None => (
            2 + digits,
            Escape::Malformed("there is no character with this number"),
        ),
    }
}

/// `\N{NAME}`: a character by its name in the Unicode standard, in any case.
fn named(text: &str) -> (usize, Escape) {
    let inside = text[2..].strip_prefix('{');
    let Some((rest, length)) = inside.and_then(|rest| Some((rest, rest.find(['}', '"', '\'', '\n'])?)))
    else {
        return (
            2,
            Escape::Malformed("a name in braces follows `\\N`: `\\N{BULLET}`"),
        );
    };
    if !rest[length..].starts_with('}') {
        return (
            3,
            Escape::Malformed("the name of the character is not closed with `}`"),
        );
    }
    match unicode_names2::character(&rest[..length]) {
        Some(character) => (length + 4, Escape::Character(character)),
        None => (
            length + 4,
            Escape::Malformed("there is no character of this name"),
        ),
    }
}

/// The parts of a text with `{{…}}`; none if there is no such field.
///
/// A field holds letters, digits, `.`, `_` and `-`, with blanks around them. Other braces are text, also `{{}}` and `{{a::b}}`.
pub(super) fn fields(decoded: &Decoded, name: &mut dyn FnMut(&str) -> Arc<str>) -> Option<Vec<TextPart>> {
    let text = &*decoded.text;
    let mut parts = Vec::new();
    let (mut text_start, mut position) = (0, 0);
    while let Some(found) = text[position..].find("{{") {
        let start = position + found;
        let Some((reference, end)) = field(text, start) else {
            position = start + 1;
            continue;
        };
        if start > text_start {
            parts.push(TextPart::Text(text[text_start..start].into()));
        }
        parts.push(TextPart::Field(dotted(decoded, reference, name)));
        (text_start, position) = (end, end);
    }
    if parts.is_empty() {
        return None;
    }
    if text_start < text.len() {
        parts.push(TextPart::Text(text[text_start..].into()));
    }
    Some(parts)
}

/// Whether there is a `{{…}}`.
pub(super) fn has_field(text: &str) -> bool {
    let mut position = 0;
    while let Some(found) = text[position..].find("{{") {
        if field(text, position + found).is_some() {
            return true;
        }
        position += found + 1;
    }
    false
}

/// What the field that begins with the braces at `start` refers to, and where it ends.
fn field(text: &str, start: usize) -> Option<(std::ops::Range<usize>, usize)> {
    let inside = &text[start + 2..];
    let reference = inside.trim_start();
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let behind = reference.trim_start_matches(is_part);
    let length = reference.len() - behind.len();
    let closing = behind.trim_start();
    if length == 0 || !closing.starts_with("}}") {
        return None;
    }
    let reference_start = text.len() - reference.len();
    Some((
        reference_start..reference_start + length,
        text.len() - closing.len() + 2,
    ))
}

/// A variable and attributes, as they stand in a field of a text: with dots between them, and blanks around each.
pub(super) fn dotted(
    decoded: &Decoded,
    range: std::ops::Range<usize>,
    name: &mut dyn FnMut(&str) -> Arc<str>,
) -> Reference {
    let whole = decoded.span(range.start, range.end);
    let mut start = range.start;
    let mut names = decoded.text[range].split('.').map(|part| {
        let trimmed = part.trim();
        let first = start + (part.len() - part.trim_start().len());
        start += part.len() + 1;
        Name {
            text: name(trimmed),
            span: decoded.span(first, first + trimmed.len()),
        }
    });
    let first = names.next().unwrap_or_else(|| Name {
        text: "".into(),
        span: whole,
    });
    let attributes = names.collect();
    Reference {
        variable: Path {
            namespace: Vec::new(),
            span: first.span,
            name: first,
        },
        attributes,
        span: whole,
    }
}
