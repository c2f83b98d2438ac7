//! The formatter: one layout for every text, with the author's line breaks, blank lines and comments kept.
//!
//! A text is parsed, printed from its syntax, and the result is checked before anybody sees it: it parses, says
//! the same, has the same comments in the same order, and formatting it again changes nothing. Older spellings
//! come out as the newest ones.

mod compare;
mod expressions;
mod printer;
mod statements;
#[cfg(test)]
mod tests;

use std::fmt;

use setpoint_diagnostics::{Diagnostics, FileId, Severity};

use crate::scope::ParsedFile;
use crate::syntax::{self, Ast, Comment, Parsed};

/// Why a text was left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FormatError {
    /// It does not parse.
    Syntax(Diagnostics),
    /// What was printed is not what was read: a mistake of the formatter, found before it did harm.
    Unfaithful(&'static str),
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FormatError::Syntax(diagnostics) => {
                match diagnostics.iter().find(|d| d.severity == Severity::Error) {
                    Some(first) => write!(f, "the text does not parse: {}", first.message),
                    None => f.write_str("the text does not parse"),
                }
            }
            FormatError::Unfaithful(what) => write!(f, "the formatter would have changed {what}"),
        }
    }
}

impl std::error::Error for FormatError {}

/// Formats a text that belongs to no file; places in errors are of file 0.
///
/// # Errors
/// When the text does not parse.
///
/// ```
/// use setpoint_mcl::format::format;
/// assert_eq!(format("$x=42 # why").unwrap(), "$x = 42 # why\n");
/// ```
pub fn format(text: &str) -> Result<String, FormatError> {
    format_file(FileId(0), text)
}

/// Formats the text of `file`.
///
/// # Errors
/// When the text does not parse.
pub fn format_file(file: FileId, text: &str) -> Result<String, FormatError> {
    let mut diagnostics = Diagnostics::new();
    let parsed = syntax::parse(file, text, &mut diagnostics);
    if diagnostics.has_errors() {
        return Err(FormatError::Syntax(diagnostics));
    }
    printed(file, text, &parsed.ast, &parsed.comments)
}

/// Formats a text that was parsed already.
///
/// # Errors
/// When it did not parse.
pub fn format_parsed(file: FileId, parsed: &ParsedFile) -> Result<String, FormatError> {
    match parsed.syntax_errors() {
        Some(errors) => Err(FormatError::Syntax(errors.clone())),
        None => printed(file, &parsed.text, &parsed.ast, &parsed.comments),
    }
}

fn printed(file: FileId, text: &str, ast: &Ast, comments: &[Comment]) -> Result<String, FormatError> {
    let mut printed = printer::print(text, ast, comments);
    if printed == text {
        return Ok(printed);
    }
    // A comment that had to leave a type that was joined may need a second look.
    for _ in 0..3 {
        let again = verified(file, text, ast, comments, &printed)?;
        let next = printer::print(&printed, &again.ast, &again.comments);
        if next == printed {
            return Ok(printed);
        }
        printed = next;
    }
    Err(FormatError::Unfaithful("its own result when run again"))
}

/// Reads what was printed and compares it with what was read.
fn verified(
    file: FileId,
    text: &str,
    ast: &Ast,
    comments: &[Comment],
    printed: &str,
) -> Result<Parsed, FormatError> {
    let mut diagnostics = Diagnostics::new();
    let again = syntax::parse(file, printed, &mut diagnostics);
    if diagnostics.has_errors() {
        return Err(FormatError::Unfaithful("the text into one that does not parse"));
    }
    let comment = |text: &str, comment: &Comment| {
        text[comment.span.start as usize..comment.span.end as usize].to_owned()
    };
    let before = comments.iter().map(|c| comment(text, c));
    let after = again.comments.iter().map(|c| comment(printed, c));
    if !before.eq(after) {
        return Err(FormatError::Unfaithful("a comment"));
    }
    if !compare::same(ast, &again.ast) {
        return Err(FormatError::Unfaithful("the meaning of the text"));
    }
    Ok(again)
}
