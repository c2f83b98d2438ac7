//! Regular expressions.

use std::fmt;

/// Why a text is no regular expression: one line without a full stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadPattern(pub String);

impl fmt::Display for BadPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadPattern {}

/// A regular expression that matches at the beginning of a text.
///
/// # Errors
/// When it is malformed.
pub fn compile(pattern: &str) -> Result<fancy_regex::Regex, BadPattern> {
    let anchored = format!(r"\A(?:{pattern})");
    fancy_regex::Regex::new(&anchored).map_err(|error| BadPattern(reason(&error)))
}

/// The engine's text without its places, which count what was put around the pattern.
fn reason(error: &fancy_regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    let reason = last.rsplit_once(": ").map_or(last, |(_, reason)| reason);
    reason.trim_end_matches('.').to_lowercase()
}
