//! Text that functions make, of bounded length.
//!
//! A few nested calls can ask for more text than there is memory. So whatever multiplies its input is built here: what goes
//! beyond the bound is not kept, and the end says so.

use std::fmt;

use setpoint_value::CallError;

/// No function makes a longer text than this, in bytes; a program that asks for one is mistaken.
pub(crate) const LONGEST: usize = setpoint_value::LONGEST_TEXT;

/// Collects bytes up to [`LONGEST`].
#[derive(Debug, Default)]
pub(crate) struct TextBuilder {
    bytes: Vec<u8>,
    is_full: bool,
}

/// The text would have been longer than [`LONGEST`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLong;

impl TextBuilder {
    /// An empty text.
    pub(crate) fn new() -> TextBuilder {
        TextBuilder::default()
    }

    /// Appends bytes; nothing more once there was too much.
    pub(crate) fn push_bytes(&mut self, bytes: &[u8]) {
        self.is_full |= bytes.len() > LONGEST - self.bytes.len();
        if !self.is_full {
            self.bytes.extend_from_slice(bytes);
        }
    }

    /// Appends a text.
    pub(crate) fn push_str(&mut self, text: &str) {
        self.push_bytes(text.as_bytes());
    }

    /// Appends one byte.
    pub(crate) fn push_byte(&mut self, byte: u8) {
        self.push_bytes(&[byte]);
    }

    /// Appends one character.
    pub(crate) fn push_char(&mut self, c: char) {
        self.push_bytes(c.encode_utf8(&mut [0; 4]).as_bytes());
    }

    /// Appends a text so many times.
    pub(crate) fn push_repeated(&mut self, bytes: &[u8], count: usize) {
        let fits = bytes
            .len()
            .checked_mul(count)
            .is_some_and(|length| length <= LONGEST - self.bytes.len());
        self.is_full |= !fits;
        if !self.is_full {
            match bytes {
                // Nothing, however often.
                [] => {}
                [byte] => self.bytes.resize(self.bytes.len() + count, *byte),
                bytes => self.bytes.extend_from_slice(&bytes.repeat(count)),
            }
        }
    }

    /// Whether there was too much already, so that going on is in vain.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }

    /// The text so far.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The whole text.
    ///
    /// # Errors
    /// There was more than [`LONGEST`].
    pub(crate) fn finish(self) -> Result<Vec<u8>, TooLong> {
        if self.is_full {
            Err(TooLong)
        } else {
            Ok(self.bytes)
        }
    }
}

impl fmt::Write for TextBuilder {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push_str(text);
        // Whatever is being printed need not go on.
        if self.is_full { Err(fmt::Error) } else { Ok(()) }
    }
}

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the result would be longer than {} MiB", LONGEST >> 20)
    }
}

impl From<TooLong> for CallError {
    fn from(error: TooLong) -> CallError {
        CallError::catchable(error.to_string())
    }
}

impl From<TooLong> for String {
    fn from(error: TooLong) -> String {
        error.to_string()
    }
}

/// The parts with a separator between them.
///
/// # Errors
/// The whole would be too long.
pub(crate) fn join<'a>(
    parts: impl IntoIterator<Item = &'a [u8]>,
    separator: &[u8],
) -> Result<Vec<u8>, TooLong> {
    let mut out = TextBuilder::new();
    for (index, part) in parts.into_iter().enumerate() {
        if index > 0 {
            out.push_bytes(separator);
        }
        out.push_bytes(part);
        if out.is_full() {
            break;
        }
    }
    out.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_exactly_is_kept_and_one_byte_more_is_not() {
        let mut exact = TextBuilder::new();
        exact.push_repeated(b"ab", LONGEST / 2);
        assert!(!exact.is_full());
        exact.push_repeated(b"", usize::MAX);
        let mut more = TextBuilder::new();
        more.push_repeated(b"ab", LONGEST / 2);
        more.push_byte(b'c');
        assert_eq!(exact.finish().map(|text| text.len()), Ok(LONGEST));
        assert_eq!(more.finish(), Err(TooLong));
        let mut overflowing = TextBuilder::new();
        overflowing.push_repeated(b"ab", usize::MAX);
        assert!(overflowing.is_full() && overflowing.as_bytes().is_empty());
    }
}
