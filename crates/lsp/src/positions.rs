//! Places as the protocol counts them: lines from 0, and within a line units of UTF-16 or bytes, as client and server agree.

use std::sync::Arc;

use lsp_types::{Position, Range};

/// What a client counts within a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Encoding {
    /// Bytes.
    Utf8,
    /// Units of UTF-16, which every client knows.
    #[default]
    Utf16,
}

impl Encoding {
    /// How long a text is.
    pub(crate) fn units(self, text: &str) -> u32 {
        match self {
            Encoding::Utf16 if !text.is_ascii() => text.encode_utf16().count() as u32,
            Encoding::Utf8 | Encoding::Utf16 => text.len() as u32,
        }
    }
}

/// A text and where its lines begin.
#[derive(Debug, Clone, Default)]
pub(crate) struct Text {
    text: Arc<str>,
    starts: Arc<[u32]>,
}

impl Text {
    pub(crate) fn new(text: impl Into<Arc<str>>) -> Text {
        let text: Arc<str> = text.into();
        let bytes = text.as_bytes();
        let mut starts = vec![0];
        for (at, byte) in bytes.iter().enumerate() {
            // The protocol knows three ends of a line: `\n`, `\r\n` and `\r`.
            let ends = *byte == b'\n' || *byte == b'\r' && bytes.get(at + 1) != Some(&b'\n');
            if ends {
                starts.push(at as u32 + 1);
            }
        }
        Text {
            text,
            starts: starts.into(),
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    pub(crate) fn shared(&self) -> Arc<str> {
        self.text.clone()
    }

    /// The first byte of a line.
    pub(crate) fn line_start(&self, line: u32) -> Option<u32> {
        self.starts.get(line as usize).copied()
    }

    /// The bytes of a line, without its end.
    fn line(&self, line: usize) -> std::ops::Range<usize> {
        let start = self
            .starts
            .get(line)
            .map_or(self.text.len(), |start| *start as usize);
        let end = self
            .starts
            .get(line + 1)
            .map_or(self.text.len(), |end| *end as usize);
        let content = self.text[start..end].trim_end_matches(['\n', '\r']);
        start..start + content.len()
    }

    /// The byte at a position; one past the end of a line or of the text is that end.
    pub(crate) fn offset(&self, position: Position, encoding: Encoding) -> u32 {
        let line = self.line(position.line as usize);
        let content = &self.text[line.clone()];
        let wanted = position.character as usize;
        let within = match encoding {
            Encoding::Utf8 => {
                let mut at = wanted.min(content.len());
                while !content.is_char_boundary(at) {
                    at -= 1;
                }
                at
            }
            Encoding::Utf16 => {
                let mut units = 0;
                let mut characters = content.char_indices();
                characters
                    .find(|(_, character)| {
                        units += character.len_utf16();
                        units > wanted
                    })
                    .map_or(content.len(), |(at, _)| at)
            }
        };
        (line.start + within) as u32
    }

    /// The position of a byte.
    pub(crate) fn position(&self, offset: u32, encoding: Encoding) -> Position {
        let mut offset = (offset as usize).min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let line = self.starts.partition_point(|start| *start as usize <= offset) - 1;
        let before = &self.text[self.starts[line] as usize..offset];
        Position::new(line as u32, encoding.units(before))
    }

    /// The place of some bytes.
    pub(crate) fn range(&self, start: u32, end: u32, encoding: Encoding) -> Range {
        Range::new(self.position(start, encoding), self.position(end, encoding))
    }

    /// With a part replaced.
    pub(crate) fn replaced(&self, range: Range, by: &str, encoding: Encoding) -> Text {
        let start = self.offset(range.start, encoding) as usize;
        let end = (self.offset(range.end, encoding) as usize).max(start);
        let mut text = String::with_capacity(self.text.len() + by.len());
        text.push_str(&self.text[..start]);
        text.push_str(by);
        text.push_str(&self.text[end..]);
        Text::new(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_and_bytes_lead_back_to_each_other_in_both_encodings() {
        let text = Text::new("a😀é\r\nb\rc\n");
        for encoding in [Encoding::Utf8, Encoding::Utf16] {
            for (offset, _) in text.as_str().char_indices().filter(|(_, c)| !c.is_control()) {
                let position = text.position(offset as u32, encoding);
                assert_eq!(text.offset(position, encoding), offset as u32);
            }
        }
        assert_eq!(text.position(5, Encoding::Utf16), Position::new(0, 3));
        assert_eq!(text.position(5, Encoding::Utf8), Position::new(0, 5));
        assert_eq!(text.position(9, Encoding::Utf16), Position::new(1, 0));
        assert_eq!(text.position(11, Encoding::Utf16), Position::new(2, 0));
    }

    #[test]
    fn what_lies_outside_is_the_nearest_place() {
        let text = Text::new("ab\r\ncd");
        let offset = |line, character| text.offset(Position::new(line, character), Encoding::Utf16);
        assert_eq!(offset(0, 99), 2);
        assert_eq!(offset(1, 99), 6);
        assert_eq!(offset(99, 0), 6);
        assert_eq!(Text::new("😀").offset(Position::new(0, 1), Encoding::Utf16), 0);
        assert_eq!(Text::new("é").offset(Position::new(0, 1), Encoding::Utf8), 0);
    }
}
