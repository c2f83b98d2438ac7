//! Regular expressions, RE2 as in Go.

use regex::Captures;
use setpoint_value::{ArgumentError, CallError, Type, Value, function};

use super::{MODULE, argument, not_null};
use crate::regexp::{Compiled, with_compiled};
use crate::text_builder::TextBuilder;

/// The text with something else for each match of a pattern.
///
/// In `by`, `$1` and `${name}` stand for what a group matched, and `$$` for a dollar sign.
#[function(
    refine = not_null,
    example(call = r#"cty.regex_replace("2026-08-01", "(\\d+)-(\\d+)", "$2/$1")"#, result = r#""08/2026-01""#)
)]
pub fn regex_replace(
    /// Any text, as UTF-8.
    str: &str,
    /// A regular expression, as for `regexp.match`.
    pattern: &str,
    /// The replacement for each match.
    by: &str,
) -> Result<Vec<u8>, CallError> {
    matched(pattern.as_bytes(), |compiled| {
        let pieces = replacement(by, &compiled.names);
        let mut out = TextBuilder::new();
        let mut end = 0;
        for found in compiled.regex.captures_iter(str) {
            let whole = found.get_match();
            if out.is_full() {
                break;
            }
            out.push_str(&str[end..whole.start()]);
            for piece in &pieces {
                match piece {
                    Piece::Text(text) => out.push_str(text),
                    Piece::Group(index) => {
                        out.push_str(found.get(*index).map_or("", |group| group.as_str()));
                    }
                }
            }
            end = whole.end();
        }
        out.push_str(&str[end..]);
        Ok(out.finish()?)
    })?
}

/// A part of a replacement.
enum Piece<'a> {
    Text(&'a str),
    /// What the group with this number matched.
    Group(usize),
}

/// Cuts a replacement into its parts. A group that does not exist stands for nothing; a dollar sign that begins no group
/// stands for itself.
fn replacement<'a>(by: &'a str, names: &[Option<String>]) -> Vec<Piece<'a>> {
    let mut pieces = Vec::new();
    let mut rest = by;
    while let Some(at) = rest.find('$') {
        pieces.push(Piece::Text(&rest[..at]));
        let after = &rest[at + 1..];
        if let Some(after) = after.strip_prefix('$') {
            pieces.push(Piece::Text("$"));
            rest = after;
            continue;
        }
        let braced = after.strip_prefix('{');
        let inner = braced.unwrap_or(after);
        let length = inner
            .find(|c: char| !(c.is_alphanumeric() || c == '_'))
            .unwrap_or(inner.len());
        let name = &inner[..length];
        let closed = braced.is_none() || inner[length..].starts_with('}');
        if name.is_empty() || !closed {
            pieces.push(Piece::Text("$"));
            rest = after;
            continue;
        }
        rest = &inner[length + usize::from(braced.is_some())..];
        let leading_zero = name.len() > 1 && name.starts_with('0');
        let index = match name.parse::<usize>() {
            Ok(index) if !leading_zero => Some(index),
            _ => names
                .iter()
                .position(|known| known.as_deref() == Some(name))
                .map(|at| at + 1),
        };
        if let Some(index) = index.filter(|index| *index <= names.len()) {
            pieces.push(Piece::Group(index));
        }
    }
    pieces.push(Piece::Text(rest));
    pieces
}

/// What the pattern matches first.
///
/// Without groups that is a str; with groups a tuple (in mcl a list) of what they matched; with named groups a struct. A
/// group that took no part gives null; in mcl, which has no null, such a match fails in a way that `<|>` catches, as no match
/// at all does. In mcl the pattern is known while compiling, because it decides the type.
#[function(
    signature = "func(pattern str, str str) dynamic",
    result_type = match_type,
    refine = not_null,
    example(call = r#"cty.regex("[a-z]+", "12abc3")"#, result = r#""abc""#),
    example(call = r#"cty.regex("(\\d+)-(\\d+)", "10-20")"#, result = r#"["10", "20"]"#),
    example(call = r#"cty.regex("(?P<key>\\w+)=(?P<value>\\w+)", "a=b")"#, result = r#"struct{key => "a", value => "b"}"#)
)]
pub fn regex(
    /// A regular expression, as for `regexp.match`.
    pattern: &str,
    /// Any text, as UTF-8.
    str: &str,
    ty: &Type,
) -> Result<Value, CallError> {
    let found = matched(pattern.as_bytes(), |Compiled { regex, .. }| {
        regex.captures(str).map(|found| match_value(&found, ty))
    })?;
    found.ok_or_else(|| CallError::catchable("the pattern matches nothing in the text"))
}

/// Everything that the pattern matches, as a list of what `cty.regex` gives.
#[function(
    signature = "func(pattern str, str str) []dynamic",
    result_type = |arguments| Ok(Type::list(match_type(arguments)?)),
    refine = not_null,
    example(call = r#"cty.regex_all("[0-9]+", "1 and 22")"#, result = r#"["1", "22"]"#)
)]
pub fn regex_all(
    /// A regular expression, as for `regexp.match`.
    pattern: &str,
    /// Any text, as UTF-8.
    str: &str,
    ty: &Type,
) -> Result<Value, CallError> {
    let element = ty.element().cloned().unwrap_or(Type::Dynamic);
    let items: Vec<Value> = matched(pattern.as_bytes(), |Compiled { regex, .. }| {
        regex
            .captures_iter(str)
            .map(|found| match_value(&found, &element))
            .collect()
    })?;
    Ok(Value::list(element, items))
}

fn matched<T>(pattern: &[u8], run: impl FnOnce(&Compiled) -> T) -> Result<T, CallError> {
    with_compiled(pattern, run).map_err(wrong_pattern)
}

/// A pattern is a part of the program, not of its data: a mistake in it is not caught.
fn wrong_pattern(problem: String) -> CallError {
    CallError::fatal(problem)
}

/// The type of one match, by the groups of the pattern; dynamic while that is not known.
fn match_type(arguments: &[Value]) -> Result<Type, ArgumentError> {
    let Ok(Value::Str(pattern)) = argument(arguments, 0) else {
        return Ok(Type::Dynamic);
    };
    let names = with_compiled(pattern.as_bytes(), |compiled| compiled.names.clone())
        .map_err(|problem| ArgumentError::at(0, problem))?;
    let group = || Type::optional(Type::Str);
    match names.iter().filter(|name| name.is_some()).count() {
        _ if names.is_empty() => Ok(Type::Str),
        0 => Ok(Type::tuple(names.iter().map(|_| group()))),
        named if named == names.len() => Ok(Type::structure(
            names.into_iter().flatten().map(|name| (name, group())),
        )),
        _ => Err(ArgumentError::at(0, "either all groups have names or none")),
    }
}

fn match_value(found: &Captures<'_>, ty: &Type) -> Value {
    let group = |index: usize| match found.get(index) {
        Some(part) => Value::str(part.as_str()),
        None => Value::Null(Type::optional(Type::Str)),
    };
    let groups = || (1..found.len()).map(group).collect::<Vec<_>>();
    match ty {
        Type::Struct(_) => Value::structure(ty.clone(), groups()),
        Type::Tuple(_) => Value::tuple(groups()),
        _ => group(0),
    }
}
