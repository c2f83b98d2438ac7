//! Regular expressions, RE2 as in Go.

use regex::bytes::{Captures, Regex};
use setpoint_value::{ArgumentError, CallError, Type, Value, function, infer_adapted};

use super::{argument, not_null, refuse, text};
use crate::regexp::with_compiled;

/// The text with something else for each match of a pattern.
///
/// In `by`, `$1` and `${name}` stand for what a group matched, and `$$` for a dollar sign.
#[function(
    module = "cty",
    refine = not_null,
    example(call = r#"cty.regex_replace("2026-08-01", "(\\d+)-(\\d+)", "$2/$1")"#, result = r#""08/2026-01""#)
)]
pub fn regex_replace(str: &str, pattern: &str, by: &str) -> Result<Vec<u8>, CallError> {
    matched(1, pattern.as_bytes(), |regex| {
        regex.replace_all(str.as_bytes(), by.as_bytes()).into_owned()
    })
}

/// What the pattern matches first.
///
/// Without groups that is a str; with groups a tuple of what they matched, null for one that took no part; with named
/// groups a struct. In mcl the pattern is a constant. No match fails in a way that `<|>` catches.
#[function(
    module = "cty",
    raw,
    signature = "func(pattern str, str str) dynamic",
    result_type = match_type,
    adapted = |arguments| infer_adapted(&REGEX, arguments),
    refine = not_null,
    example(call = r#"cty.regex("[a-z]+", "12abc3")"#, result = r#""abc""#),
    example(call = r#"cty.regex("(\\d+)-(\\d+)", "10-20")"#, result = r#"["10", "20"]"#),
    example(call = r#"cty.regex("(?P<key>\\w+)=(?P<value>\\w+)", "a=b")"#, result = r#"struct{key => "a", value => "b"}"#)
)]
pub fn regex(arguments: &[Value], ty: &Type) -> Result<Value, CallError> {
    let subject = text(arguments, 1)?;
    let found = with_pattern(arguments, |regex| {
        regex
            .captures(subject.as_bytes())
            .map(|found| match_value(regex, &found, ty))
    })?;
    found.ok_or_else(|| CallError::catchable("the pattern matches nothing in the text"))
}

/// Everything that the pattern matches, as a list of what `regex` gives.
#[function(
    module = "cty",
    raw,
    signature = "func(pattern str, str str) []dynamic",
    result_type = |arguments| Ok(Type::list(match_type(arguments)?)),
    adapted = |arguments| infer_adapted(&REGEX_ALL, arguments),
    refine = not_null,
    example(call = r#"cty.regex_all("[0-9]+", "1 and 22")"#, result = r#"["1", "22"]"#)
)]
pub fn regex_all(arguments: &[Value], ty: &Type) -> Result<Value, CallError> {
    let subject = text(arguments, 1)?;
    let element = ty.element().cloned().unwrap_or(Type::Dynamic);
    let items: Vec<Value> = with_pattern(arguments, |regex| {
        regex
            .captures_iter(subject.as_bytes())
            .map(|found| match_value(regex, &found, &element))
            .collect()
    })?;
    Ok(Value::list(element, items))
}

fn with_pattern<T>(arguments: &[Value], run: impl FnOnce(&Regex) -> T) -> Result<T, CallError> {
    matched(0, text(arguments, 0)?.as_bytes(), run)
}

fn matched<T>(index: usize, pattern: &[u8], run: impl FnOnce(&Regex) -> T) -> Result<T, CallError> {
    with_compiled(pattern, run).or_else(|problem| refuse(index, problem))
}

/// The type of one match, by the groups of the pattern; dynamic while that is not known.
fn match_type(arguments: &[Value]) -> Result<Type, ArgumentError> {
    let Ok(Value::Str(pattern)) = argument(arguments, 0) else {
        return Ok(Type::Dynamic);
    };
    let names = with_compiled(pattern.as_bytes(), |regex| {
        regex
            .capture_names()
            .skip(1)
            .map(|name| name.map(str::to_owned))
            .collect::<Vec<_>>()
    })
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

fn match_value(regex: &Regex, found: &Captures<'_>, ty: &Type) -> Value {
    let group = |index: usize| match found.get(index) {
        Some(part) => Value::str(part.as_bytes()),
        None => Value::Null(Type::optional(Type::Str)),
    };
    let groups = || (1..regex.captures_len()).map(group).collect::<Vec<_>>();
    match ty {
        Type::Struct(_) => Value::structure(ty.clone(), groups()),
        Type::Tuple(_) => Value::tuple(groups()),
        _ => group(0),
    }
}
