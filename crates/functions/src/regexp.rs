//! `regexp`: regular expressions in Go's dialect.

use std::cell::RefCell;

use regex::bytes::{Regex, RegexBuilder};
use setpoint_value::{ArgumentError, CallError, InferArguments, Inferred, Module, Type, Value, function};

mod dialect;

pub(crate) static MODULE: Module = Module::new("regexp", "Regular expressions.", &[&MATCH]);

/// Whether a regular expression (RE2, as in Go) matches somewhere in `s`.
#[function(
    module = "regexp",
    name = "match",
    infer = infer,
    example(call = r#"regexp.match("^h.l+o$", "hello")"#, result = "true"),
    example(call = r#"regexp.match("[0-9]", "none")"#, result = "false")
)]
fn r#match(pattern: &[u8], s: &[u8]) -> Result<bool, CallError> {
    // Bytes that are no UTF-8 match as the one character that stands for them.
    let text = String::from_utf8_lossy(s);
    with_compiled(pattern, |regex| regex.is_match(text.as_bytes())).map_err(CallError::fatal)
}

/// Reports a bad pattern where it is written.
fn infer(arguments: &InferArguments<'_>) -> Result<Inferred, ArgumentError> {
    let pattern = arguments.values.first().and_then(Option::as_ref);
    if let Some(pattern) = pattern.and_then(Value::as_str) {
        compile(pattern.as_bytes()).map_err(|problem| ArgumentError::at(0, problem))?;
    }
    if arguments.types.len() != 2 {
        return Err(ArgumentError::whole("a pattern and a text are needed"));
    }
    Ok(Inferred {
        signature: Type::func([("pattern", Type::Str), ("s", Type::Str)], Type::Bool),
    })
}

thread_local! {
    /// The expressions used last, newest first: programs match many texts with few of them, and compiling takes a thousand
    /// times as long as matching. Nothing but speed depends on it.
    static COMPILED: RefCell<Vec<(Vec<u8>, Regex)>> = const { RefCell::new(Vec::new()) };
}

const REMEMBERED: usize = 16;

pub(crate) fn with_compiled<T>(pattern: &[u8], run: impl FnOnce(&Regex) -> T) -> Result<T, String> {
    COMPILED.with_borrow_mut(|compiled| {
        match compiled.iter().position(|(known, _)| known == pattern) {
            Some(0) => {}
            Some(at) => compiled[..=at].rotate_right(1),
            None => {
                let regex = compile(pattern)?;
                compiled.truncate(REMEMBERED - 1);
                compiled.insert(0, (pattern.to_vec(), regex));
            }
        }
        Ok(run(&compiled[0].1))
    })
}

fn compile(pattern: &[u8]) -> Result<Regex, String> {
    let pattern = std::str::from_utf8(pattern).map_err(|_| "the pattern is not valid UTF-8".to_owned())?;
    RegexBuilder::new(&dialect::translate(pattern))
        .build()
        .map_err(|error| match error {
            regex::Error::Syntax(text) => {
                // The last line says what is wrong; the ones before show the translated pattern.
                let last = text.lines().last().unwrap_or_default();
                format!(
                    "invalid regular expression: {}",
                    last.trim_start_matches("error: ")
                )
            }
            other => format!("invalid regular expression: {other}"),
        })
}
