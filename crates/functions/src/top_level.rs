//! Functions that need no import.

use setpoint_value::operators::{CONCAT, CONTAINS, LIST_LOOKUP, LOOKED_INTO, MAP_LOOKUP};
use setpoint_value::{CallError, Mark, Marks, Module, ParameterFlags, Value, function};

mod history;
mod random;

use history::HISTORY;
use random::RANDOM1;

pub(crate) static MODULE: Module = Module::new(
    "",
    "Functions that need no import.",
    &[
        &CONCAT,
        &CONTAINS,
        &LEN,
        &LIST_LOOKUP,
        &MAP_LOOKUP,
        &HISTORY,
        &PANIC,
        &PANIC_DEBUG,
        &RANDOM1,
        &SENSITIVE,
        &NONSENSITIVE,
    ],
);

/// Everything reaches the function as it is.
const ANYTHING: &[ParameterFlags] = &[ParameterFlags {
    allow_null: true,
    allow_unknown: true,
    allow_dynamic: true,
    allow_marked: true,
}];

/// How long something is: bytes of a string, elements of a list, entries of a map.
#[function(
    signature = "func(value str) int",
    signature = "func(value []?1) int",
    signature = "func(value map{?1: ?2}) int",
    flags = LOOKED_INTO,
    example(call = r#"len("é")"#, result = "2"),
    example(call = "len([7, 8, 9])", result = "3"),
    example(call = r#"len({"a" => 1})"#, result = "1")
)]
fn len(
    /// A string, a list or a map.
    value: &Value,
) -> Result<Value, CallError> {
    // How long a list is tells nothing of what is in it.
    let length = match value.unmarked() {
        Value::Str(text) => text.len(),
        Value::List(list) => list.len(),
        Value::Map(map) => map.len(),
        _ => return Err(CallError::fatal("only a string, list or map has a length")),
    };
    Ok(Value::Int(i64::try_from(length).unwrap_or(i64::MAX)).with_marks(&value.own_marks()))
}

/// Stops the program when its argument is true or a text that is not empty.
///
/// Otherwise it gives false. Nothing catches it. In mcl it is a statement, `panic($broken)`.
#[function(signature = "func(x bool) bool", signature = "func(x str) bool")]
fn panic(
    /// True, or a text that is not empty, to stop the program.
    x: &Value,
) -> Result<bool, CallError> {
    match x {
        Value::Bool(true) => Err(CallError::fatal("bool panic occurred")),
        Value::Str(text) if !text.is_empty() => Err(CallError::fatal(format!(
            "str panic occurred: {}",
            text.to_lossy()
        ))),
        _ => Ok(false),
    }
}

/// Stops the program with a message when its first argument is true.
#[function(example(call = r#"panic_debug(false, "no")"#, result = "false"))]
fn panic_debug(
    /// Whether to stop the program.
    x: bool,
    /// The message to show when the program stops.
    err: &[u8],
) -> Result<bool, CallError> {
    if x {
        let text = String::from_utf8_lossy(err);
        return Err(CallError::fatal(format!("bool panic occurred: {text}")));
    }
    Ok(false)
}

/// The value, marked so that it is never shown, logged or stored in the clear.
#[function(
    extension,
    flags = ANYTHING,
    signature = "func(value ?1) ?1",
    example(call = r#"len(sensitive("abc"))"#, result = "")
)]
fn sensitive(
    /// Any value.
    value: &Value,
) -> Value {
    value.clone().sensitive()
}

/// The value without the mark that hides it.
#[function(
    extension,
    flags = ANYTHING,
    signature = "func(value ?1) ?1",
    example(call = r#"nonsensitive(sensitive("abc"))"#, result = r#""abc""#)
)]
fn nonsensitive(
    /// Any value. The caller must ensure that the value may be shown.
    value: &Value,
) -> Value {
    let mut marks = Marks::none();
    let value = value.unmark_deep(&mut marks);
    value.with_marks(&marks.without(&Mark::Sensitive))
}
