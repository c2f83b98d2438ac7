//! Text from outside, made safe to show: the one place that decides which characters must not reach a terminal or a log as they are.
//!
//! Names of files, output of commands and texts of programs can be chosen by whoever wants to deceive the reader: escape sequences
//! drive a terminal, a line feed forges a line of the log, and marks of direction turn a line around.

use std::borrow::Cow;
use std::fmt::Write;

/// The text on one line, with each character that could deceive written as an escape of Rust: `\n`, `\u{1b}`.
///
/// ```
/// use setpoint_diagnostics::visible;
/// assert_eq!(visible("/tmp/é"), "/tmp/é");
/// assert_eq!(visible("a\u{1b}[31mb\nc"), r"a\u{1b}[31mb\nc");
/// ```
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(deceives) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for char in text.chars() {
        if deceives(char) {
            // Writing to a string cannot fail.
            let _ = write!(shown, "{}", char.escape_default());
        } else {
            shown.push(char);
        }
    }
    Cow::Owned(shown)
}

/// The lines of a text, each with what could deceive made visible; tabs are kept, and a line feed at the end begins no line.
///
/// ```
/// use setpoint_diagnostics::visible_lines;
/// assert_eq!(visible_lines("a\tb\r\n\u{9b}1m\n").collect::<Vec<_>>(), ["a\tb", r"\u{9b}1m"]);
/// ```
pub fn visible_lines(text: &str) -> impl Iterator<Item = Cow<'_, str>> {
    text.lines().map(|line| {
        if !line.contains('\t') {
            return visible(line);
        }
        let columns: Vec<Cow<'_, str>> = line.split('\t').map(visible).collect();
        Cow::Owned(columns.join("\t"))
    })
}

/// Whether a character acts on what shows it instead of being shown: control characters of both sets, separators of lines, and
/// marks of direction.
pub(crate) fn deceives(char: char) -> bool {
    char.is_control()
        || matches!(
            char,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}'
        )
}

/// A text without the numbers that the standard library adds to what the system says.
///
/// ```
/// use setpoint_diagnostics::without_system_numbers;
/// assert_eq!(without_system_numbers("No such file or directory (os error 2): x"), "No such file or directory: x");
/// ```
#[must_use]
pub fn without_system_numbers(text: &str) -> String {
    const BEFORE: &str = " (os error ";
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(BEFORE) {
        let number = &rest[at + BEFORE.len()..];
        let digits = number.bytes().take_while(u8::is_ascii_digit).count();
        let is_number = digits > 0 && number[digits..].starts_with(')');
        let end = if is_number { at } else { at + BEFORE.len() };
        kept.push_str(&rest[..end]);
        rest = if is_number { &number[digits + 1..] } else { number };
    }
    kept.push_str(rest);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_acts_on_a_terminal_is_left() {
        let all: String = (0..=0x2100).filter_map(char::from_u32).collect();
        let shown = visible(&all);
        assert!(!shown.chars().any(deceives));
        assert!(
            shown.contains("abc") && shown.contains('é') && shown.contains('€'),
            "the rest stays"
        );
    }
}
