//! The inside of a string: escapes and `${variable}`.

use setpoint_diagnostics::{Diagnostic, Diagnostics, Span};

use super::ast::{Ast, ExprId, ExprKind};
use super::codes;

/// A part of a string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Text, with its escapes replaced.
    Text(String),
    /// `${name}`
    Variable {
        /// The name, which may be dotted.
        name: String,
        /// From `$` to `}`.
        span: Span,
    },
}

/// Why a string has no meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StringError {
    /// What is wrong.
    pub kind: StringErrorKind,
    /// The place inside of the string.
    pub inner: Span,
    /// The whole string, with its quotes.
    pub literal: Span,
}

/// What can be wrong with a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StringErrorKind {
    /// `${` that is never closed.
    Unclosed,
    /// Something other than the name of a variable between `${` and `}`.
    NotAVariable,
    /// A backslash before this character.
    UnknownEscape(char),
}

impl StringError {
    /// In words, at the part of the string that is wrong. The rules blame the whole string, whose raw text is `raw`.
    pub fn diagnostic(&self, raw: &str) -> Diagnostic {
        let literal_dollar = "for the two characters themselves write `\\${`";
        match self.kind {
            StringErrorKind::Unclosed => Diagnostic::error(
                &codes::BAD_INTERPOLATION,
                self.literal,
                "a `${` in this string has no `}` behind the name of a variable",
            )
            .shown_at(self.inner)
            .label("begins here")
            .help("write `${name}`; a computed value is bound to a variable first")
            .help(literal_dollar),
            StringErrorKind::NotAVariable => {
                let message = "only the name of a variable can stand between `${` and `}`";
                let error = Diagnostic::error(&codes::BAD_INTERPOLATION, self.literal, message)
                    .shown_at(self.inner)
                    .label("not the name of a variable");
                self.instead_of_expression(error, raw).help(literal_dollar)
            }
            StringErrorKind::UnknownEscape(character) => {
                let message = match character {
                    '\n' => "a backslash stands at the end of a line, where it escapes nothing".to_owned(),
                    other if other.is_control() => format!("there is no escape `\\{}`", other.escape_debug()),
                    other => format!("there is no escape `\\{other}`"),
                };
                let diagnostic = Diagnostic::error(&codes::BAD_ESCAPE, self.literal, message)
                .shown_at(self.inner)
                .label("unknown escape")
                .note(
                    "the escapes are `\\a`, `\\b`, `\\f`, `\\n`, `\\r`, `\\t`, `\\v`, `\\\\`, `\\\"`, `\\$`",
                );
                let backslash = Span {
                    end: self.inner.start + 1,
                    ..self.inner
                };
                diagnostic.fix("for a backslash write two", backslash, "\\\\")
            }
        }
    }

    /// What to write in place of what stands between the braces.
    fn instead_of_expression(&self, error: Diagnostic, raw: &str) -> Diagnostic {
        let begin = self.literal.start + 1;
        let (from, to) = (self.inner.start + 2 - begin, self.inner.end.max(1) - 1 - begin);
        let inside = raw.get(from as usize..to as usize).unwrap_or("");
        let name = inside.trim().trim_start_matches('$');
        let bytes = name.as_bytes();
        if !bytes.is_empty() && variable_length(bytes) == bytes.len() {
            return error.fix(
                "the name stands there alone, without a `$` and without spaces",
                self.inner,
                format!("${{{name}}}"),
            );
        }
        if let Some((base, field)) = name.split_once("->")
            && variable_length(field.as_bytes()) == field.len()
        {
            return error.help(format!(
                "give the field a name first: `${field} = ${base}->{field}`, and write `${{{field}}}`"
            ));
        }
        error.help("bind a computed value to a variable first: `$value = …`, and write `${value}`")
    }
}

/// Takes apart the raw text of the string that stands, with its quotes, at `literal`.
///
/// Texts that touch are one piece; an empty string is one empty text.
///
/// # Errors
/// The first thing that is wrong, from the left.
///
/// ```
/// use setpoint_diagnostics::{FileId, Span};
/// use setpoint_mcl::syntax::{Piece, interpolate};
/// let span = Span::new(FileId(0), 0, 12);
/// let pieces = interpolate(r"a\t${x.y}", span).unwrap();
/// assert_eq!(pieces[0], Piece::Text("a\t".to_owned()));
/// assert!(matches!(&pieces[1], Piece::Variable { name, .. } if name == "x.y"));
/// ```
pub fn interpolate(raw: &str, literal: Span) -> Result<Vec<Piece>, StringError> {
    let mut pieces = Vec::new();
    let mut text = String::new();
    scan(raw, literal, |part| match part {
        Scanned::Text(part) => text.push_str(part),
        Scanned::Escape(character) => text.push(character),
        Scanned::Variable { name, span } => {
            if !text.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut text)));
            }
            let name = name.to_owned();
            pieces.push(Piece::Variable { name, span });
        }
    })?;
    if !text.is_empty() || pieces.is_empty() {
        pieces.push(Piece::Text(text));
    }
    Ok(pieces)
}

/// The names of the variables in the raw text of a string, as far as it is right.
pub(crate) fn interpolated_names(raw: &str, literal: Span) -> impl Iterator<Item = String> {
    // Most strings have none.
    let pieces = raw.contains("${").then(|| interpolate(raw, literal));
    let pieces = pieces.and_then(Result::ok).unwrap_or_default();
    pieces.into_iter().filter_map(|piece| match piece {
        Piece::Variable { name, .. } => Some(name),
        Piece::Text(_) => None,
    })
}

/// Looks for what is wrong with the raw text of a string, without taking it apart.
///
/// # Errors
/// The first thing that is wrong, from the left.
fn check_string(raw: &str, literal: Span) -> Result<(), StringError> {
    scan(raw, literal, |_| ())
}

/// Looks at every string of a file (T1, T2).
pub(crate) fn check_strings(ast: &Ast, diagnostics: &mut Diagnostics) {
    let mut errors = Vec::new();
    for id in (0..ast.expr_count() as u32).map(ExprId) {
        let expr = ast.expr(id);
        if let ExprKind::String(raw) = &expr.kind
            && raw.contains(['$', '\\'])
            && let Err(error) = check_string(raw, expr.span)
        {
            errors.push((error, raw));
        }
    }
    errors.sort_by_key(|(error, _)| error.literal);
    diagnostics.extend(errors.iter().map(|(error, raw)| error.diagnostic(raw)));
}

enum Scanned<'t> {
    Text(&'t str),
    Escape(char),
    Variable { name: &'t str, span: Span },
}

fn scan<'t>(raw: &'t str, literal: Span, mut found: impl FnMut(Scanned<'t>)) -> Result<(), StringError> {
    let place = |start: usize, end: usize| {
        let offset = literal.start + 1;
        Span::new(literal.file, offset + start as u32, offset + end as u32)
    };
    let error = |kind, start, end| StringError {
        kind,
        inner: place(start, end),
        literal,
    };
    let bytes = raw.as_bytes();
    let mut position = 0;
    while position < raw.len() {
        let plain = bytes[position..]
            .iter()
            .position(|byte| matches!(byte, b'$' | b'\\'));
        let special = plain.map_or(raw.len(), |length| position + length);
        if special > position {
            found(Scanned::Text(&raw[position..special]));
        }
        position = special;
        match (bytes.get(position), bytes.get(position + 1)) {
            (None, _) => {}
            (Some(b'$'), Some(b'{')) => {
                let name_start = position + 2;
                let name_end = name_start + variable_length(&bytes[name_start..]);
                if name_end == name_start || bytes.get(name_end) != Some(&b'}') {
                    let end = raw[name_start..].find('}').map(|length| name_start + length + 1);
                    return Err(match end {
                        Some(end) => error(StringErrorKind::NotAVariable, position, end),
                        None => error(StringErrorKind::Unclosed, position, name_start),
                    });
                }
                found(Scanned::Variable {
                    name: &raw[name_start..name_end],
                    span: place(position, name_end + 1),
                });
                position = name_end + 1;
            }
            (Some(b'$'), _) => {
                found(Scanned::Text("$"));
                position += 1;
            }
            (Some(_), _) => {
                let escaped = raw[position + 1..].chars().next().unwrap_or('\\');
                let Some(character) = unescape(escaped) else {
                    let end = position + 1 + escaped.len_utf8();
                    return Err(error(StringErrorKind::UnknownEscape(escaped), position, end));
                };
                found(Scanned::Escape(character));
                position += 2;
            }
        }
    }
    Ok(())
}

fn unescape(character: char) -> Option<char> {
    Some(match character {
        'a' => '\u{07}',
        'b' => '\u{08}',
        'f' => '\u{0c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{0b}',
        '\\' | '"' | '$' => character,
        _ => return None,
    })
}

/// How many bytes a variable's name has here. A dot belongs to it only with something behind.
fn variable_length(bytes: &[u8]) -> usize {
    let part = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'_';
    if !bytes.first().is_some_and(u8::is_ascii_lowercase) {
        return 0;
    }
    let mut length = 1;
    loop {
        match bytes.get(length) {
            Some(byte) if part(byte) => length += 1,
            Some(b'.') if bytes.get(length + 1).is_some_and(part) => length += 2,
            _ => return length,
        }
    }
}
