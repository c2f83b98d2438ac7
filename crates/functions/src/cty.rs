//! `cty`: the standard library of the function system, for every language.
//!
//! The functions are those of cty. They are dynamic: many accept any type, and some decide the type of their result by
//! the arguments. In `.cf` they are called through the whole protocol; in mcl those that decide the type
//! of their result take part by conversion: lists stand for tuples and sets. From Rust they
//! are functions over values: `cty::strings::UPPER.call(&[…])`.
//!
//! Each result is not null, also while it is unknown. Flags of parameters are written as the specification has them;
//! see the module `flags`.

pub mod arithmetic;
pub mod booleans;
pub mod bytes;
pub mod collections;
pub mod comparison;
pub mod conversion;
pub mod datetime;
pub mod encoding;
pub mod format;
pub mod lists;
pub mod maps;
pub mod patterns;
pub mod sets;
pub mod strings;

#[cfg(test)]
mod tests;

use setpoint_value::{ArgumentError, CallError, Marks, Module, ParameterFlags, Refinement, Type, Value};

/// Everything of this module, by group.
pub static MODULE: Module = Module::new(
    "cty",
    "Functions over values of any type, with the names and rules of the library cty.\n\n\
     What they refuse of the values that they are given is caught by `<|>`.",
    &[
        &booleans::NOT,
        &booleans::AND,
        &booleans::OR,
        &comparison::EQUAL,
        &comparison::NOT_EQUAL,
        &comparison::GREATER_THAN,
        &comparison::GREATER_THAN_OR_EQUAL_TO,
        &comparison::LESS_THAN,
        &comparison::LESS_THAN_OR_EQUAL_TO,
        &arithmetic::ADD,
        &arithmetic::SUBTRACT,
        &arithmetic::MULTIPLY,
        &arithmetic::DIVIDE,
        &arithmetic::MODULO,
        &arithmetic::NEGATE,
        &arithmetic::ABSOLUTE,
        &arithmetic::INT,
        &arithmetic::CEIL,
        &arithmetic::FLOOR,
        &arithmetic::SIGNUM,
        &arithmetic::LOG,
        &arithmetic::POW,
        &arithmetic::MIN,
        &arithmetic::MAX,
        &arithmetic::PARSE_INT,
        &strings::UPPER,
        &strings::LOWER,
        &strings::REVERSE,
        &strings::STRLEN,
        &strings::SUBSTR,
        &strings::JOIN,
        &strings::SPLIT,
        &strings::SORT,
        &strings::CHOMP,
        &strings::INDENT,
        &strings::TITLE,
        &strings::TRIM_SPACE,
        &strings::TRIM,
        &strings::TRIM_PREFIX,
        &strings::TRIM_SUFFIX,
        &strings::REPLACE,
        &patterns::REGEX_REPLACE,
        &patterns::REGEX,
        &patterns::REGEX_ALL,
        &format::FORMAT,
        &format::FORMAT_LIST,
        &datetime::FORMAT_DATE,
        &datetime::TIME_ADD,
        &encoding::JSON_ENCODE,
        &encoding::JSON_DECODE,
        &encoding::CSV_DECODE,
        &lists::CONCAT,
        &lists::RANGE,
        &collections::LENGTH,
        &collections::HAS_INDEX,
        &collections::INDEX,
        &lists::ELEMENT,
        &collections::COALESCE,
        &lists::COALESCE_LIST,
        &lists::COMPACT,
        &lists::CONTAINS,
        &lists::DISTINCT,
        &lists::CHUNKLIST,
        &lists::FLATTEN,
        &maps::KEYS,
        &maps::VALUES,
        &maps::LOOKUP,
        &maps::MERGE,
        &lists::REVERSE_LIST,
        &sets::SET_PRODUCT,
        &lists::SLICE,
        &maps::ZIPMAP,
        &collections::ASSERT_NOT_NULL,
        &sets::SET_HAS_ELEMENT,
        &sets::SET_UNION,
        &sets::SET_INTERSECTION,
        &sets::SET_SUBTRACT,
        &sets::SET_SYMMETRIC_DIFFERENCE,
        &bytes::BYTES_LEN,
        &bytes::BYTES_SLICE,
        &conversion::TO_STR,
        &conversion::TO_NUMBER,
        &conversion::TO_BOOL,
        &conversion::TO_LIST,
        &conversion::TO_SET,
        &conversion::TO_MAP,
    ],
);

/// Flags as the specification writes them: `?` null, `~` unknown, `!` of unknown type, `#` marked.
const fn flags(letters: &str) -> ParameterFlags {
    let letters = letters.as_bytes();
    let mut flags = ParameterFlags {
        allow_null: false,
        allow_unknown: false,
        allow_dynamic: false,
        allow_marked: false,
    };
    let mut index = 0;
    while index < letters.len() {
        match letters[index] {
            b'?' => flags.allow_null = true,
            b'~' => flags.allow_unknown = true,
            b'!' => flags.allow_dynamic = true,
            _ => flags.allow_marked = true,
        }
        index += 1;
    }
    flags
}

const DYNAMIC: &[ParameterFlags] = &[flags("!")];
const UNKNOWN: &[ParameterFlags] = &[flags("~")];
const MARKED: &[ParameterFlags] = &[flags("#")];
const MARKED_FIRST: &[ParameterFlags] = &[flags("#"), flags("")];

/// What holds for every result of nearly every function here.
fn not_null(_: &[Value], _: &Type) -> Refinement {
    Refinement::not_null()
}

/// An argument error of the implementation.
fn refuse<T>(index: usize, message: impl Into<String>) -> Result<T, CallError> {
    Err(ArgumentError::at(index, message).into())
}

/// The argument at a position, without its outermost marks.
fn argument(arguments: &[Value], index: usize) -> Result<&Value, CallError> {
    match arguments.get(index) {
        Some(value) => Ok(value.unmarked()),
        None => refuse(index, "is missing"),
    }
}

/// The text at a position, which must be UTF-8.
fn text(arguments: &[Value], index: usize) -> Result<&str, CallError> {
    match argument(arguments, index)? {
        Value::Str(text) => match text.as_str() {
            Some(text) => Ok(text),
            None => refuse(index, "is not valid UTF-8"),
        },
        other => refuse(index, format!("{} is not str", other.ty())),
    }
}

/// The whole number at a position.
fn whole_number(arguments: &[Value], index: usize) -> Result<i64, CallError> {
    match argument(arguments, index)? {
        Value::Int(int) => Ok(*int),
        Value::Float(float) => match setpoint_value::whole(float.0) {
            Some(int) => Ok(int),
            None => refuse(index, "is not a whole number"),
        },
        other => refuse(index, format!("{} is not int", other.ty())),
    }
}

/// Whether this is a list or set without elements and without a type of elements. It combines with any other collection.
fn is_untyped_and_empty(collection: &Value) -> bool {
    let ty = collection.ty();
    plain(&ty).element() == Some(&Type::Dynamic) && elements(collection).is_some_and(|items| items.is_empty())
}

/// The elements of a known list, set or tuple.
fn elements(value: &Value) -> Option<Vec<&Value>> {
    match value.unmarked() {
        Value::List(list) => Some(list.iter().collect()),
        Value::Set(set) => Some(set.iter().collect()),
        Value::Tuple(items) => Some(items.iter().collect()),
        _ => None,
    }
}

/// Marks of the arguments themselves, not of what is inside them.
fn outer_marks<'a>(arguments: impl IntoIterator<Item = &'a Value>) -> Marks {
    let mut marks = Marks::none();
    for argument in arguments {
        marks.union(&argument.own_marks());
    }
    marks
}

/// The type, not optional.
fn plain(ty: &Type) -> &Type {
    match ty {
        Type::Optional(inner) => inner,
        ty => ty,
    }
}

/// The type of an argument of a type function, not optional.
fn type_at(arguments: &[Value], index: usize) -> Type {
    arguments
        .get(index)
        .map_or(Type::Dynamic, |value| match value.ty() {
            Type::Optional(inner) => (*inner).clone(),
            ty => ty,
        })
}

/// A number of elements or of characters as an int.
fn count(length: usize) -> Value {
    Value::Int(i64::try_from(length).unwrap_or(i64::MAX))
}
