//! The fields of an f-string: `{name.attr!r:>10}`.
//!
//! The text is split as Python's format strings are: a doubled brace is a brace, the name of a field ends at the first `}`, `:` or `!` outside
//! of square brackets, and a specification may hold fields of its own. What the parts mean is known when the string is made.

use std::ops::Range;
use std::sync::Arc;

use setpoint_diagnostics::Diagnostic;

use crate::ast::{FormatPart, FormatValue};
use crate::errors;
use crate::strings::{self, Decoded};

/// Splits a text of which escapes have been processed.
pub(super) fn parts(decoded: &Decoded, name: &mut dyn FnMut(&str) -> Arc<str>) -> Result<Vec<FormatPart>> {
    let whole = 0..decoded.text.len();
    Splitter { decoded, name }.split(whole, true)
}

struct Splitter<'d, 'n> {
    decoded: &'d Decoded,
    name: &'n mut dyn FnMut(&str) -> Arc<str>,
}

type Result<T> = std::result::Result<T, Box<Diagnostic>>;

impl Splitter<'_, '_> {
    fn byte(&self, at: usize, end: usize) -> Option<u8> {
        (at < end).then(|| self.decoded.text.as_bytes()[at])
    }

    fn failed<T>(&self, reason: &str, range: Range<usize>) -> Result<T> {
        let at = self.decoded.span(range.start, range.end);
        Err(Box::new(errors::bad_format_string(reason, at)))
    }

    /// Texts and fields, in turn. Fields in a specification, which are not `outer`, have none of their own.
    fn split(&mut self, range: Range<usize>, outer: bool) -> Result<Vec<FormatPart>> {
        let mut parts = Vec::new();
        let mut text = String::new();
        let mut position = range.start;
        while position < range.end {
            let rest = &self.decoded.text[position..range.end];
            let plain = rest.find(['{', '}']).unwrap_or(rest.len());
            text.push_str(&rest[..plain]);
            position += plain;
            let Some(brace) = self.byte(position, range.end) else {
                break;
            };
            if self.byte(position + 1, range.end) == Some(brace) {
                text.push(char::from(brace));
                position += 2;
                continue;
            }
            if brace == b'}' {
                return self.failed("this `}` closes nothing", position..position + 1);
            }
            if !text.is_empty() {
                parts.push(FormatPart::Text(std::mem::take(&mut text).into()));
            }
            let (field, end) = self.field(position, range.end, outer)?;
            parts.push(field);
            position = end;
        }
        if !text.is_empty() {
            parts.push(FormatPart::Text(text.into()));
        }
        Ok(parts)
    }

    /// The field that begins with the brace at `start`, and where it ends.
    fn field(&mut self, start: usize, end: usize, outer: bool) -> Result<(FormatPart, usize)> {
        let open = start..start + 1;
        let unclosed = "this `{` is not closed";
        let (value, mut position) = self.value(start + 1, end)?;
        let mut conversion = None;
        if self.byte(position, end) == Some(b'!') {
            let Some(character) = self.decoded.text[position + 1..end].chars().next() else {
                return self.failed("`r`, `s` or `a` must follow the `!`", position..position + 1);
            };
            conversion = Some(character);
            position += 1 + character.len_utf8();
            match self.byte(position, end) {
                Some(b'}' | b':') => {}
                Some(_) => {
                    return self.failed(
                        "`:` or `}` must follow the conversion",
                        position - character.len_utf8()..position,
                    );
                }
                None => return self.failed(unclosed, open),
            }
        }
        let mut specification = Vec::new();
        if self.byte(position, end) == Some(b':') {
            let inside = position + 1;
            let Some(closing) = self.closing_brace(inside, end) else {
                return self.failed(unclosed, open);
            };
            if !outer {
                return self.failed(
                    "a field in a specification has no specification of its own",
                    position..closing,
                );
            }
            specification = self.split(inside..closing, false)?;
            position = closing;
        }
        if self.byte(position, end) != Some(b'}') {
            return self.failed(unclosed, open);
        }
        let field = FormatPart::Field {
            value,
            conversion,
            specification,
            span: self.decoded.span(start, position + 1),
        };
        Ok((field, position + 1))
    }

    /// What a field formats, and where that ends.
    fn value(&mut self, start: usize, end: usize) -> Result<(FormatValue, usize)> {
        let mut position = start;
        let mut in_brackets = false;
        while let Some(byte) = self.byte(position, end) {
            match byte {
                b']' => in_brackets = false,
                _ if in_brackets => {}
                b'[' => in_brackets = true,
                b'{' => {
                    return self.failed(
                        "a `{` cannot stand in the name of a field",
                        position..position + 1,
                    );
                }
                b'}' | b':' | b'!' => break,
                _ => {}
            }
            position += 1;
        }
        let written = &self.decoded.text[start..position];
        let first = written.split('.').next().unwrap_or("").trim();
        let is_position = first.bytes().all(|byte| byte.is_ascii_digit());
        let value = if is_position {
            FormatValue::Positional
        } else {
            let leading = written.len() - written.trim_start().len();
            let length = written.trim().len();
            let range = start + leading..start + leading + length;
            FormatValue::Reference(strings::dotted(self.decoded, range, self.name))
        };
        Ok((value, position))
    }

    /// The brace that closes the field whose specification begins at `start`.
    fn closing_brace(&self, start: usize, end: usize) -> Option<usize> {
        let mut open = 1_usize;
        for (at, byte) in self.decoded.text.as_bytes()[start..end].iter().enumerate() {
            match byte {
                b'{' => open += 1,
                b'}' => open -= 1,
                _ => {}
            }
            if open == 0 {
                return Some(start + at);
            }
        }
        None
    }
}
