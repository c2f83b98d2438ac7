//! `golang/html`: text in HTML.

use setpoint_value::{CallError, Module, function};

use crate::text_builder::TextBuilder;

pub(crate) static MODULE: Module = Module::new(
    "golang/html",
    "Text in HTML.",
    &[&ESCAPE_STRING, &UNESCAPE_STRING],
);

/// `& < > " '` as HTML entities.
#[function(example(call = r#"html.escape_string("a<b")"#, result = r#""a&lt;b""#))]
fn escape_string(
    /// Any text.
    s: &[u8],
) -> Result<Vec<u8>, CallError> {
    let mut out = TextBuilder::new();
    escape(s, &mut out);
    Ok(out.finish()?)
}

/// Writes a text with entities for what has a meaning in HTML.
pub(crate) fn escape(text: &[u8], out: &mut TextBuilder) {
    for byte in text {
        match byte {
            b'&' => out.push_bytes(b"&amp;"),
            b'<' => out.push_bytes(b"&lt;"),
            b'>' => out.push_bytes(b"&gt;"),
            b'"' => out.push_bytes(b"&#34;"),
            b'\'' => out.push_bytes(b"&#39;"),
            other => out.push_byte(*other),
        }
    }
}

/// HTML entities as the characters that they stand for.
#[function(example(call = r#"html.unescape_string("&eacute;&#33;")"#, result = r#""é!""#))]
fn unescape_string(
    /// Any text.
    s: &[u8],
) -> Vec<u8> {
    let mut out = Vec::with_capacity(s.len());
    let mut rest = s;
    while let Some(at) = rest.iter().position(|b| *b == b'&') {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        let length = match rest.get(1) {
            Some(b'#') => numeric(rest, &mut out),
            _ => named(rest, &mut out),
        };
        if length == 0 {
            out.push(b'&');
            rest = &rest[1..];
        } else {
            rest = &rest[length..];
        }
    }
    out.extend_from_slice(rest);
    out
}

/// `&#33;` or `&#x21;` at the beginning: writes the character and gives the length; 0 if it is none.
fn numeric(text: &[u8], out: &mut Vec<u8>) -> usize {
    let (start, radix) = match text.get(2) {
        Some(b'x' | b'X') => (3, 16),
        _ => (2, 10),
    };
    let mut code: u32 = 0;
    let mut at = start;
    while let Some(digit) = text.get(at).and_then(|b| char::from(*b).to_digit(radix)) {
        code = code.saturating_mul(radix).saturating_add(digit);
        at += 1;
    }
    if at == start {
        return 0;
    }
    if text.get(at) == Some(&b';') {
        at += 1;
    }
    // Codes 0x80 to 0x9f mean what they mean in Windows-1252, as HTML says.
    let code = match code {
        0x80..=0x9f => WINDOWS_1252[(code - 0x80) as usize],
        other => other,
    };
    let c = char::from_u32(code).filter(|c| *c != '\0').unwrap_or('\u{fffd}');
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    at
}

const WINDOWS_1252: [u32; 32] = [
    0x20ac, 0x81, 0x201a, 0x192, 0x201e, 0x2026, 0x2020, 0x2021, 0x2c6, 0x2030, 0x160, 0x2039, 0x152, 0x8d,
    0x17d, 0x8f, 0x90, 0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014, 0x2dc, 0x2122, 0x161, 0x203a,
    0x153, 0x9d, 0x17e, 0x178,
];

/// `&name;` at the beginning, of some names without the semicolon: writes what it stands for and gives the length.
fn named(text: &[u8], out: &mut Vec<u8>) -> usize {
    let letters = text[1..].iter().take_while(|b| b.is_ascii_alphanumeric()).count();
    let whole = match text.get(1 + letters) {
        Some(b';') => letters + 1,
        _ => letters,
    };
    // The longest name that is allowed without a semicolon has six letters.
    let shorter = (2..=letters.min(6)).rev();
    for length in std::iter::once(whole).chain(shorter) {
        let Ok(name) = std::str::from_utf8(&text[1..=length]) else {
            return 0;
        };
        if let Some(stands_for) = entity(name) {
            out.extend_from_slice(stands_for.as_bytes());
            return 1 + length;
        }
    }
    0
}

/// The entities of HTML 5: a line each, sorted by their bytes, with the name and its characters in hexadecimal.
const ENTITIES: &str = include_str!("html/entities.txt");

/// What an entity stands for. Its name includes the semicolon, if it has one.
fn entity(name: &str) -> Option<String> {
    if name.is_empty() {
        return None;
    }
    let mut lines = ENTITIES;
    while !lines.is_empty() {
        // Half of the text, cut at the beginning of a line.
        let middle = lines[..lines.len() / 2].rfind('\n').map_or(0, |at| at + 1);
        let (line, after) = lines[middle..].split_once('\n')?;
        let (this, characters) = line.split_once(' ')?;
        match name.cmp(this) {
            std::cmp::Ordering::Less => lines = &lines[..middle],
            std::cmp::Ordering::Greater => lines = after,
            std::cmp::Ordering::Equal => {
                let codes = characters.split(' ');
                return codes
                    .map(|c| char::from_u32(u32::from_str_radix(c, 16).ok()?))
                    .collect();
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entity_is_found() {
        for line in ENTITIES.lines() {
            let name = line.split(' ').next().unwrap_or_default();
            assert!(entity(name).is_some(), "{name}");
        }
        assert_eq!(entity("nosuch;"), None);
    }

    #[test]
    fn entities_become_characters() {
        for (text, expected) in [
            ("&lt;&gt;&amp;", "<>&"),
            ("&ampx &amp", "&x &"),
            ("&#x41;&#66;&#67", "ABC"),
            ("&#0;&#xd800;&#x80;", "\u{fffd}\u{fffd}€"),
            ("&NotEqualTilde;", "≂̸"),
            ("& &; &# &#x; &nosuch;", "& &; &# &#x; &nosuch;"),
            ("&copy2", "©2"),
        ] {
            assert_eq!(
                String::from_utf8_lossy(&unescape_string(text.as_bytes())),
                expected,
                "{text}"
            );
        }
    }
}
