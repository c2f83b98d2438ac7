//! Quoting and unquoting as Go's `strconv` does.

use std::fmt::Write;

use super::text;

/// Which characters stand for themselves between quotes.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Keep {
    /// Those that print.
    Printable,
    /// Those that print, and blanks of all kinds.
    Graphic,
    /// Those of ASCII that print.
    Ascii,
}

/// In double quotes.
pub(crate) fn quote(bytes: &[u8], keep: Keep) -> String {
    let mut out = String::with_capacity(bytes.len() + 2);
    out.push('"');
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            let kept = match keep {
                Keep::Printable => is_printable(c),
                Keep::Graphic => is_printable(c) || is_blank(c),
                Keep::Ascii => c.is_ascii() && is_printable(c),
            };
            match c {
                '"' | '\\' => {
                    out.push('\\');
                    out.push(c);
                }
                c if kept => out.push(c),
                '\x07' => out.push_str("\\a"),
                '\x08' => out.push_str("\\b"),
                '\x0c' => out.push_str("\\f"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\x0b' => out.push_str("\\v"),
                c => {
                    let code = c as u32;
                    // Writing to a string cannot fail.
                    let _ = match code {
                        0..=0x1f | 0x7f => write!(out, "\\x{code:02x}"),
                        0x80..=0xffff => write!(out, "\\u{code:04x}"),
                        _ => write!(out, "\\U{code:08x}"),
                    };
                }
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out.push('"');
    out
}

/// Whether a character stands for itself in a quoted string.
pub(crate) fn is_printable(c: char) -> bool {
    if c.is_ascii() {
        return matches!(c, ' '..='~');
    }
    !setpoint_value::quote(c.encode_utf8(&mut [0; 4]).as_bytes()).contains('\\')
}

/// Blanks of category Zs beyond ASCII.
fn is_blank(c: char) -> bool {
    matches!(
        c,
        '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}'
    )
}

/// Whether a text can stand between back quotes on one line.
pub(crate) fn can_backquote(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| {
        text.chars()
            .all(|c| c == '\t' || (c >= ' ' && c != '`' && c != '\x7f' && c != '\u{feff}'))
    })
}

/// The value of a quoted text that ends with its closing quote; none if it is not well-formed.
pub(crate) fn unquote(bytes: &[u8]) -> Option<Vec<u8>> {
    let (value, length) = unquote_prefix(bytes)?;
    (length == bytes.len()).then_some(value)
}

/// The value and the length of the quoted text at the beginning.
pub(crate) fn unquote_prefix(bytes: &[u8]) -> Option<(Vec<u8>, usize)> {
    let quote = *bytes.first()?;
    match quote {
        b'`' => {
            let end = 1 + bytes[1..].iter().position(|b| *b == b'`')?;
            let value = bytes[1..end].iter().copied().filter(|b| *b != b'\r').collect();
            Some((value, end + 1))
        }
        b'"' | b'\'' => {
            let mut value = Vec::new();
            let mut count = 0;
            let mut rest = &bytes[1..];
            while *rest.first()? != quote {
                // A rune literal holds exactly one character.
                if rest[0] == b'\n' || (quote == b'\'' && count > 0) {
                    return None;
                }
                rest = unquote_character(rest, quote, &mut value)?;
                count += 1;
            }
            let fits = quote == b'"' || count == 1;
            fits.then(|| (value, bytes.len() - rest.len() + 1))
        }
        _ => None,
    }
}

/// Decodes the character or escape at the beginning; gives what is left.
pub(crate) fn unquote_character<'a>(text: &'a [u8], quote: u8, out: &mut Vec<u8>) -> Option<&'a [u8]> {
    if text[0] != b'\\' {
        let (c, length) = text::first_rune(text)?;
        out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        return Some(&text[length..]);
    }
    let (kind, rest) = text[1..].split_first()?;
    let plain = match kind {
        b'a' => 7,
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 11,
        b'\\' => b'\\',
        b'\'' | b'"' if *kind == quote => *kind,
        b'x' => {
            let code = digits(rest, 2, 16)?;
            out.push(u8::try_from(code).ok()?);
            return Some(&rest[2..]);
        }
        b'u' | b'U' => {
            let length = if *kind == b'u' { 4 } else { 8 };
            let c = char::from_u32(digits(rest, length, 16)?)?;
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            return Some(&rest[length..]);
        }
        b'0'..=b'7' => {
            let code = digits(&text[1..], 3, 8)?;
            out.push(u8::try_from(code).ok()?);
            return Some(&text[4..]);
        }
        _ => return None,
    };
    out.push(plain);
    Some(rest)
}

fn digits(text: &[u8], length: usize, radix: u32) -> Option<u32> {
    let digits = text.get(..length)?;
    digits.iter().try_fold(0u32, |code, byte| {
        let digit = char::from(*byte).to_digit(radix)?;
        code.checked_mul(radix)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting_keeps_what_it_may() {
        let text = "a\"é\u{a0}\u{1f600}\n\0".as_bytes();
        assert_eq!(quote(text, Keep::Printable), "\"a\\\"é\\u00a0😀\\n\\x00\"");
        assert_eq!(quote(text, Keep::Graphic), "\"a\\\"é\u{a0}😀\\n\\x00\"");
        assert_eq!(quote(text, Keep::Ascii), r#""a\"\u00e9\u00a0\U0001f600\n\x00""#);
        assert_eq!(quote(b"\xff", Keep::Graphic), r#""\xff""#);
    }

    #[test]
    fn unquoting_undoes_quoting() {
        for (quoted, value) in [
            (r#""a\n\x41\u00e9\101\"""#, Some("a\nAéA\"")),
            ("`a\\n\r`", Some("a\\n")),
            ("'é'", Some("é")),
            (r"'\''", Some("'")),
            ("'ab'", None),
            ("''", None),
            (r#""a"#, None),
            (r#""a"b"#, None),
            (r#""\'""#, None),
            (r#""\ud800""#, None),
            ("\"a\nb\"", None),
            ("", None),
            ("a", None),
        ] {
            assert_eq!(
                unquote(quoted.as_bytes()).as_deref(),
                value.map(str::as_bytes),
                "{quoted}"
            );
        }
        assert_eq!(unquote_prefix(b"\"a\" b").map(|(_, length)| length), Some(3));
    }
}
