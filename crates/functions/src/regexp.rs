//! `regexp`: regular expressions in Go's dialect.

use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;

use regex::{Regex, RegexBuilder};
use setpoint_value::{ArgumentError, CallError, InferArguments, Inferred, Module, Type, Value, function};

mod dialect;

pub(crate) static MODULE: Module = Module::new("regexp", "Regular expressions.", &[&MATCH]);

/// Whether a regular expression matches somewhere in `s`.
///
/// The expression is written as for Go's package `regexp` (RE2's syntax). Where it is known while compiling, a mistake in
/// it is reported there.
#[function(
    name = "match",
    infer = infer,
    example(call = r#"regexp.match("^h.l+o$", "hello")"#, result = "true"),
    example(call = r#"regexp.match("[0-9]", "none")"#, result = "false")
)]
fn r#match(
    /// A regular expression in the syntax of RE2.
    pattern: &[u8],
    /// The text to look through.
    s: &[u8],
) -> Result<bool, CallError> {
    let text = with_replacements(s);
    with_compiled(pattern, |compiled| compiled.regex.is_match(&text)).map_err(CallError::fatal)
}

/// The text with a replacement character for each byte that is not valid UTF-8: so Go's expressions see it.
fn with_replacements(text: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(text) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => {
            let mut replaced = String::with_capacity(text.len());
            for chunk in text.utf8_chunks() {
                replaced.push_str(chunk.valid());
                replaced.extend(std::iter::repeat_n('\u{fffd}', chunk.invalid().len()));
            }
            Cow::Owned(replaced)
        }
    }
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

/// An expression that is ready to match.
///
/// It matches characters, never parts of one: an empty match is between characters.
pub(crate) struct Compiled {
    /// The expression; its groups have no names.
    pub regex: Regex,
    /// The names of the groups, without the one that is the whole match.
    pub names: Vec<Option<String>>,
}

thread_local! {
    /// The expressions used last, newest first: programs match many texts with few of them, and compiling takes a thousand
    /// times as long as matching. Nothing but speed depends on it.
    static COMPILED: RefCell<Vec<(Vec<u8>, Rc<Compiled>)>> = const { RefCell::new(Vec::new()) };
}

const REMEMBERED: usize = 16;

/// Runs something with the expression of a pattern.
///
/// # Errors
/// What is wrong with the pattern.
pub(crate) fn with_compiled<T>(pattern: &[u8], run: impl FnOnce(&Compiled) -> T) -> Result<T, String> {
    let compiled = COMPILED.with_borrow_mut(|compiled| -> Result<_, String> {
        match compiled.iter().position(|(known, _)| known == pattern) {
            Some(0) => {}
            Some(at) => compiled[..=at].rotate_right(1),
            None => {
                let new = compile(pattern)?;
                compiled.truncate(REMEMBERED - 1);
                compiled.insert(0, (pattern.to_vec(), Rc::new(new)));
            }
        }
        Ok(compiled[0].1.clone())
    })?;
    Ok(run(&compiled))
}

/// What a compiled expression may take at most, in bytes.
const LARGEST: usize = 64 << 20;

fn compile(pattern: &[u8]) -> Result<Compiled, String> {
    let invalid = |problem: &str| format!("invalid regular expression: {problem}");
    let pattern = std::str::from_utf8(pattern).map_err(|_| invalid("it is not valid UTF-8"))?;
    let translated = dialect::translate(pattern).map_err(|problem| invalid(&problem))?;
    let regex = RegexBuilder::new(&translated.pattern)
        .size_limit(LARGEST)
        .build()
        .map_err(|error| match error {
            // The last line says what is wrong; the ones before show the translated pattern.
            regex::Error::Syntax(text) => {
                let last = text.lines().last().unwrap_or_default();
                invalid(last.trim_start_matches("error: "))
            }
            regex::Error::CompiledTooBig(_) => invalid("it is too large"),
            other => invalid(&other.to_string()),
        })?;
    Ok(Compiled {
        regex,
        names: translated.names,
    })
}
