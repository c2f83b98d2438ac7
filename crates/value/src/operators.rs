//! The functions behind mcl's syntax: operators, lookups, `in`, interpolation. They are bound directly, never through a
//! name that a program could redefine.

use crate::{
    CallError, Equality, FunctionSpec, LONGEST_TEXT, ParameterDoc, ParameterFlags, Refinement, TooLarge,
    Type, Value, equals, less, ranges,
};

/// All of them, for documentation and tests.
pub static OPERATORS: &[&FunctionSpec] = &[
    &ADD,
    &SUBTRACT,
    &MULTIPLY,
    &DIVIDE,
    &EQUAL,
    &NOT_EQUAL,
    &LESS,
    &LESS_OR_EQUAL,
    &GREATER,
    &GREATER_OR_EQUAL,
    &AND,
    &OR,
    &NOT,
    &CONTAINS,
    &CONCAT,
    &LIST_LOOKUP,
    &MAP_LOOKUP,
];

const UNKNOWN_INSIDE: &[ParameterFlags] = &[ParameterFlags {
    allow_null: true,
    allow_unknown: true,
    allow_dynamic: true,
    allow_marked: false,
}];

/// Of what is looked into, only the marks of what is found count, and those of the whole.
pub const LOOKED_INTO: &[ParameterFlags] = &[
    ParameterFlags {
        allow_null: false,
        allow_unknown: false,
        allow_dynamic: false,
        allow_marked: true,
    },
    ParameterFlags {
        allow_null: false,
        allow_unknown: false,
        allow_dynamic: false,
        allow_marked: false,
    },
];

const UNKNOWN: &[ParameterFlags] = &[ParameterFlags {
    allow_null: false,
    allow_unknown: true,
    allow_dynamic: true,
    allow_marked: false,
}];

/// Documentation of a parameter without a default.
const fn parameter(name: &'static str, doc: &'static str) -> ParameterDoc<'static> {
    ParameterDoc {
        name,
        doc,
        default: "",
    }
}

macro_rules! operator {
    ($(#[$doc:meta])* $static:ident, $name:literal, $signature:literal, unknown $implementation:expr) => {
        $(#[$doc])*
        pub static $static: FunctionSpec =
            FunctionSpec::pure("", $name, &[$signature], $implementation).with_flags(UNKNOWN);
    };
    ($(#[$doc:meta])* $static:ident, $name:literal, $signature:literal, refined $refine:expr, $implementation:expr) => {
        $(#[$doc])*
        pub static $static: FunctionSpec =
            FunctionSpec::pure("", $name, &[$signature], $implementation).refined_by($refine);
    };
    ($(#[$doc:meta])* $static:ident, $name:literal, $signature:literal, $implementation:expr) => {
        $(#[$doc])*
        pub static $static: FunctionSpec = FunctionSpec::pure("", $name, &[$signature], $implementation);
    };
}

operator!(
    /// `a + b`: sum, or concatenation of strings. Overflow of ints is catchable.
    ADD, "+", "func(?1: str | int | float, ?1) ?1", refined range_or_beginning, add
);
operator!(
    /// `a - b`.
    SUBTRACT, "-", "func(?1: int | float, ?1) ?1", refined ranges::difference,
    |a, _| arithmetic(a, i64::checked_sub, |a, b| a - b)
);
operator!(
    /// `a * b`.
    MULTIPLY, "*", "func(?1: int | float, ?1) ?1", refined ranges::product,
    |a, _| arithmetic(a, i64::checked_mul, |a, b| a * b)
);
operator!(
    /// `a / b`: always a float. Division by zero is catchable.
    DIVIDE, "/", "func(?1: int | float, ?1) float", refined ranges::quotient, divide
);
/// `a == b`.
pub static EQUAL: FunctionSpec =
    FunctionSpec::pure("", "==", &["func(?1, ?1) bool"], |a, _| Ok(equality(a, false)))
        .with_flags(UNKNOWN_INSIDE);
/// `a != b`.
pub static NOT_EQUAL: FunctionSpec =
    FunctionSpec::pure("", "!=", &["func(?1, ?1) bool"], |a, _| Ok(equality(a, true)))
        .with_flags(UNKNOWN_INSIDE);
operator!(
    /// `a < b`; false with NaN.
    LESS, "<", "func(?1: int | float, ?1) bool", unknown |a, _| ordered(a, false, false)
);
operator!(
    /// `a <= b`; false with NaN.
    LESS_OR_EQUAL, "<=", "func(?1: int | float, ?1) bool", unknown |a, _| ordered(a, false, true)
);
operator!(
    /// `a > b`; false with NaN.
    GREATER, ">", "func(?1: int | float, ?1) bool", unknown |a, _| ordered(a, true, false)
);
operator!(
    /// `a >= b`; false with NaN.
    GREATER_OR_EQUAL, ">=", "func(?1: int | float, ?1) bool", unknown |a, _| ordered(a, true, true)
);
operator!(
    /// `a and b`; both sides are evaluated.
    AND, "and", "func(a bool, b bool) bool", unknown |a, _| decided_by(a, false)
);
operator!(
    /// `a or b`; both sides are evaluated.
    OR, "or", "func(a bool, b bool) bool", unknown |a, _| decided_by(a, true)
);
operator!(
    /// `not a`.
    NOT, "not", "func(a bool) bool", |a, _| Ok(Value::Bool(!bool_at(a, 0)?))
);
/// `needle in haystack`, and the function `contains`: whether a list has an equal element.
pub static CONTAINS: FunctionSpec =
    FunctionSpec::pure("", "contains", &["func(needle ?1, haystack []?1) bool"], contains)
        .with_flags(UNKNOWN_INSIDE)
        .documented(
            "Whether a list has an element equal to `needle`. The operator `in` is the same function.",
            &[
                parameter("needle", "The element to look for."),
                parameter("haystack", "The list to look into."),
            ],
            &[crate::Example {
                call: "contains(2, [1, 2, 3])",
                result: "true",
            }],
        );
/// One string after another, and the function `concat`; what an interpolated string is made of.
pub static CONCAT: FunctionSpec = FunctionSpec::pure("", "concat", &["func(a str, b str) str"], add)
    .refined_by(beginning)
    .documented(
        "The bytes of `a`, then those of `b`.",
        &[
            parameter("a", "The first text."),
            parameter("b", "The second text."),
        ],
        &[crate::Example {
            call: "concat(\"a\", \"b\")",
            result: "\"ab\"",
        }],
    );
/// `list[index]`, and the function `list_lookup`.
pub static LIST_LOOKUP: FunctionSpec = FunctionSpec::pure(
    "",
    "list_lookup",
    &["func(list []?1, index int) ?1"],
    list_lookup,
)
.with_flags(LOOKED_INTO)
.documented(
    "The element at `index`, counted from 0. A missing or negative index fails in a way that `<|>` catches.",
    &[
        parameter("list", "The list to look into."),
        parameter("index", "The index of the element, counted from 0."),
    ],
    &[crate::Example {
        call: "list_lookup([\"a\", \"b\"], 1)",
        result: "\"b\"",
    }],
);
/// `map[key]`, and the function `map_lookup`.
pub static MAP_LOOKUP: FunctionSpec = FunctionSpec::pure(
    "",
    "map_lookup",
    &["func(map map{?1: ?2}, key ?1) ?2"],
    map_lookup,
)
.with_flags(LOOKED_INTO)
.documented(
    "The value of `key`. A missing key fails in a way that `<|>` catches.",
    &[
        parameter("map", "The map to look into."),
        parameter("key", "The key to look for."),
    ],
    &[crate::Example {
        call: "map_lookup({\"a\" => 1}, \"a\")",
        result: "1",
    }],
);

fn add(arguments: &[Value], _: &Type) -> Result<Value, CallError> {
    match arguments {
        [Value::Str(a), Value::Str(b)] => {
            if b.is_empty() {
                return Ok(Value::Str(a.clone()));
            }
            if a.as_bytes().len() + b.as_bytes().len() > LONGEST_TEXT {
                return Err(TooLarge::Text.into());
            }
            match (a.as_str(), b.as_str()) {
                (Some(a), Some(b)) => Ok(Value::str(format!("{a}{b}"))),
                _ => Ok(Value::str([a.as_bytes(), b.as_bytes()].concat())),
            }
        }
        _ => arithmetic(arguments, i64::checked_add, |a, b| a + b),
    }
}

/// The refinement of `a + b`: a range for numbers, a prefix for texts.
fn range_or_beginning(arguments: &[Value], ty: &Type) -> Refinement {
    match ty {
        Type::Str => beginning(arguments, ty),
        _ => ranges::sum(arguments, ty),
    }
}

/// Two texts begin as the first one does.
fn beginning(arguments: &[Value], _: &Type) -> Refinement {
    match arguments {
        [Value::Str(a), Value::Unknown(_)] => Refinement::not_null().with_prefix(a.clone()),
        [Value::Unknown(a), _] => Refinement {
            not_null: true,
            prefix: a.refinement.prefix.clone(),
            ..Refinement::default()
        },
        _ => Refinement::not_null(),
    }
}

fn arithmetic(
    arguments: &[Value],
    ints: fn(i64, i64) -> Option<i64>,
    floats: fn(f64, f64) -> f64,
) -> Result<Value, CallError> {
    match arguments {
        [Value::Int(a), Value::Int(b)] => ints(*a, *b)
            .map(Value::Int)
            .ok_or_else(|| CallError::catchable("the result does not fit an int")),
        [Value::Float(a), Value::Float(b)] => Ok(Value::float(floats(a.0, b.0))),
        _ => Err(mismatch()),
    }
}

fn divide(arguments: &[Value], _: &Type) -> Result<Value, CallError> {
    let (a, b) = match arguments {
        [Value::Int(a), Value::Int(b)] => (*a as f64, *b as f64),
        [Value::Float(a), Value::Float(b)] => (a.0, b.0),
        _ => return Err(mismatch()),
    };
    if b == 0.0 {
        Err(CallError::catchable("can't divide by zero"))
    } else {
        Ok(Value::float(a / b))
    }
}

fn equality(arguments: &[Value], negate: bool) -> Value {
    match equals(&arguments[0], &arguments[1]) {
        Equality::Equal => Value::Bool(!negate),
        Equality::Unequal => Value::Bool(negate),
        Equality::Unknown => Value::unknown(Type::Bool),
    }
}

/// `a < b`, `a <= b`, or with the sides swapped; bounds of unknowns may decide it.
fn ordered(arguments: &[Value], swapped: bool, or_equal: bool) -> Result<Value, CallError> {
    let [a, b] = arguments else {
        return Err(mismatch());
    };
    let (a, b) = if swapped { (b, a) } else { (a, b) };
    let number = |v: &Value| v.is_unknown() || matches!(v, Value::Int(_) | Value::Float(_));
    if !number(a) || !number(b) {
        return Err(mismatch());
    }
    Ok(less(a, b, or_equal).map_or_else(|| Value::unknown(Type::Bool), Value::Bool))
}

/// `and` and `or`: one side that is `decisive` decides, even when the other is unknown.
fn decided_by(arguments: &[Value], decisive: bool) -> Result<Value, CallError> {
    let mut unknown = false;
    for argument in arguments {
        match argument {
            Value::Bool(side) if *side == decisive => return Ok(Value::Bool(decisive)),
            Value::Bool(_) => {}
            Value::Unknown(_) => unknown = true,
            _ => return Err(mismatch()),
        }
    }
    Ok(if unknown {
        Value::unknown(Type::Bool)
    } else {
        Value::Bool(!decisive)
    })
}

fn contains(arguments: &[Value], _: &Type) -> Result<Value, CallError> {
    let list = match &arguments[1] {
        Value::List(list) => list,
        Value::Unknown(_) => return Ok(Value::unknown(Type::Bool)),
        _ => return Err(mismatch()),
    };
    let mut open = false;
    for item in list.iter() {
        match equals(&arguments[0], item) {
            Equality::Equal => return Ok(Value::Bool(true)),
            Equality::Unknown => open = true,
            Equality::Unequal => {}
        }
    }
    Ok(if open {
        Value::unknown(Type::Bool)
    } else {
        Value::Bool(false)
    })
}

fn list_lookup(arguments: &[Value], _: &Type) -> Result<Value, CallError> {
    let [whole, Value::Int(index)] = arguments else {
        return Err(mismatch());
    };
    let list = whole.as_list().ok_or_else(mismatch)?;
    if *index < 0 {
        return Err(CallError::catchable(format!("list index is negative: {index}")));
    }
    usize::try_from(*index)
        .ok()
        .and_then(|i| list.get(i))
        .map(|found| found.clone().with_marks(&whole.own_marks()))
        .ok_or_else(|| {
            CallError::catchable(format!("list has no index {index}, its length is {}", list.len()))
        })
}

fn map_lookup(arguments: &[Value], _: &Type) -> Result<Value, CallError> {
    let [whole, key] = arguments else {
        return Err(mismatch());
    };
    let map = whole.as_map().ok_or_else(mismatch)?;
    map.get(key)
        .map(|found| found.clone().with_marks(&whole.own_marks()))
        .ok_or_else(|| CallError::catchable(format!("map has no key {key}")))
}

fn bool_at(arguments: &[Value], index: usize) -> Result<bool, CallError> {
    arguments.get(index).and_then(Value::as_bool).ok_or_else(mismatch)
}

/// What inference excludes.
fn mismatch() -> CallError {
    CallError::fatal("the operand types do not fit")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_a_text_is_that_of_its_first_part() {
        let of = |a: Value| beginning(&[a, Value::unknown(Type::Str)], &Type::Str).to_string();
        assert_eq!(of(Value::str("host: ")), "not null, begins with \"host: \"");
        let begun = Value::refined(Type::Str, Refinement::not_null().with_prefix("a/"));
        assert_eq!(of(begun), "not null, begins with \"a/\"");
        assert_eq!(of(Value::unknown(Type::Str)), "not null");
    }
}
