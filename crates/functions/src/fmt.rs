//! `fmt`: text by a format.
//!
//! Where the format is known while compiling, it *is* the signature: its verbs give the number and the types of the
//! other arguments.

use std::fmt::Write as _;

use setpoint_value::{
    ArgumentError, CallError, InferArguments, Inferred, Module, ParameterFlags, Refinement, Type, Value,
    format_float, function, quote,
};

use crate::text_builder::TextBuilder;

pub(crate) static MODULE: Module = Module::new("fmt", "Text by a format.", &[&PRINTF]);

const FLAGS: &[ParameterFlags] = &[ParameterFlags {
    allow_null: true,
    allow_unknown: true,
    allow_dynamic: true,
    allow_marked: false,
}];

/// A piece of a format.
enum Piece<'a> {
    Text(&'a [u8]),
    Verb(Verb),
}

#[derive(Clone, Copy, PartialEq)]
enum Verb {
    Bool,
    Str,
    Quoted,
    Int,
    Float,
    Any,
    Type,
}

impl Verb {
    /// The type that it takes; none for any.
    fn ty(self) -> Option<Type> {
        match self {
            Verb::Bool => Some(Type::Bool),
            Verb::Str | Verb::Quoted => Some(Type::Str),
            Verb::Int => Some(Type::Int),
            Verb::Float => Some(Type::Float),
            Verb::Any | Verb::Type => None,
        }
    }
}

/// The verb that writes a type.
fn verb_for(ty: &Type) -> &'static str {
    match ty {
        Type::Str => "%s",
        Type::Int => "%d",
        Type::Float => "%f",
        Type::Bool => "%t",
        _ => "%v",
    }
}

/// Cuts a format into pieces; the position of the byte that is no verb, if there is one.
fn pieces(format: &[u8]) -> Result<Vec<Piece<'_>>, usize> {
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut at = 0;
    while at < format.len() {
        if format[at] != b'%' {
            at += 1;
            continue;
        }
        if start < at {
            pieces.push(Piece::Text(&format[start..at]));
        }
        // A single percent sign at the very end is dropped.
        let Some(letter) = format.get(at + 1) else {
            start = format.len();
            break;
        };
        pieces.push(match letter {
            b'%' => Piece::Text(b"%"),
            b't' => Piece::Verb(Verb::Bool),
            b's' => Piece::Verb(Verb::Str),
            b'q' => Piece::Verb(Verb::Quoted),
            b'd' => Piece::Verb(Verb::Int),
            b'f' => Piece::Verb(Verb::Float),
            b'v' => Piece::Verb(Verb::Any),
            b'T' => Piece::Verb(Verb::Type),
            _ => return Err(at + 1),
        });
        at += 2;
        start = at;
    }
    if start < format.len() {
        pieces.push(Piece::Text(&format[start..]));
    }
    Ok(pieces)
}

/// What is wrong with a format in which no verb stands at `at`, behind its percent sign.
fn no_verb(format: &[u8], at: usize) -> String {
    let rest = String::from_utf8_lossy(&format[at..]);
    let letter = rest.chars().next().unwrap_or(' ');
    format!(
        "`%{letter}` is not a verb; there are `%s` for text, `%d` for an int, `%f` for a float, `%t` for a bool, `%v` for anything, and `%%` \
         is a percent sign"
    )
}

/// What is wrong when a format has another number of verbs than there are values.
fn other_counts(verbs: usize, values: usize) -> String {
    let verbs = match verbs {
        0 => "no verb".to_owned(),
        1 => "1 verb".to_owned(),
        _ => format!("{verbs} verbs"),
    };
    let values = match values {
        0 => "no value follows".to_owned(),
        1 => "1 value follows".to_owned(),
        _ => format!("{values} values follow"),
    };
    format!("the format has {verbs}, but {values}; each value needs one verb, like `%s` or `%d`")
}

fn infer(arguments: &InferArguments<'_>) -> Result<Inferred, ArgumentError> {
    let count = arguments.types.len();
    if count == 0 {
        return Err(ArgumentError::whole("a format is needed"));
    }
    let mut types: Vec<Option<Type>> = vec![None; count - 1];
    let format = arguments.values.first().and_then(Option::as_ref);
    if let Some(format) = format.and_then(Value::as_str) {
        let pieces =
            pieces(format.as_bytes()).map_err(|at| ArgumentError::at(0, no_verb(format.as_bytes(), at)))?;
        let verbs: Vec<Verb> = pieces
            .iter()
            .filter_map(|piece| match piece {
                Piece::Verb(verb) => Some(*verb),
                Piece::Text(_) => None,
            })
            .collect();
        if verbs.len() != types.len() {
            return Err(ArgumentError::whole(other_counts(verbs.len(), types.len())));
        }
        types = verbs.into_iter().map(Verb::ty).collect();
    }
    for (index, wanted) in types.iter().enumerate() {
        let evident = arguments.types.get(index + 1).and_then(Option::as_ref);
        match (wanted, evident) {
            (Some(wanted), Some(evident)) if !evident.is_open() && wanted != evident => {
                let (takes, meant) = (verb_for(wanted), verb_for(evident));
                return Err(ArgumentError::at(
                    index + 1,
                    format!("`{takes}` in the format takes {wanted}, this is {evident}; write `{meant}`"),
                ));
            }
            (None, Some(Type::Func(_))) => {
                return Err(ArgumentError::at(index + 1, "a function can't be printed"));
            }
            _ => {}
        }
    }
    let mut parameters = vec![("format".to_owned(), Type::Str)];
    for (index, ty) in types.into_iter().enumerate() {
        let variable = u32::try_from(index + 1).unwrap_or(u32::MAX);
        parameters.push((format!("a{}", index + 1), ty.unwrap_or(Type::Variable(variable))));
    }
    Ok(Inferred {
        signature: Type::func(parameters, Type::Str),
    })
}

/// The format with its verbs replaced by the other arguments, in order.
///
/// `%t` takes a bool, `%s` a str, `%q` a str and quotes it, `%d` an int, `%f` a float, `%v` anything, `%T` anything and
/// prints its type; `%%` is a percent sign. There are no flags, widths or precisions.
#[function(
    raw,
    infer = infer,
    flags = FLAGS,
    signature = "func(format str, …) str",
    parameters(
        /// Text with verbs.
        format,
        /// The values for the verbs, one argument each.
        args,
    ),
    example(call = r#"fmt.printf("%s is %d", "answer", 42)"#, result = r#""answer is 42""#),
    example(call = r#"fmt.printf("%v of %T at 100%%", [1, 2], [1, 2])"#, result = r#""[1, 2] of []int at 100%""#)
)]
fn printf(arguments: &[Value], _: &Type) -> Result<Value, CallError> {
    let Some((format, values)) = arguments.split_first() else {
        return Err(CallError::fatal("a format is needed"));
    };
    let Value::Str(format) = format else {
        return if format.is_unknown() {
            Ok(Value::unknown(Type::Str))
        } else {
            Err(CallError::fatal("the format is not a string"))
        };
    };
    let pieces = pieces(format.as_bytes()).map_err(|at| {
        let why = no_verb(format.as_bytes(), at);
        CallError::fatal(format!("invalid format string at {at}: {why}"))
    })?;
    let verbs = pieces.iter().filter(|p| matches!(p, Piece::Verb(_))).count();
    if verbs > values.len() {
        return Err(CallError::fatal(format!(
            "more specifiers ({verbs}) than values ({}): each verb needs a value",
            values.len()
        )));
    }
    let mut values = values.iter();
    let mut out = TextBuilder::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) => out.push_bytes(text),
            Piece::Verb(verb) => {
                let Some(value) = values.next() else { break };
                if !value.is_wholly_known() {
                    return Ok(beginning_with(out.finish()?));
                }
                print(verb, value, &mut out)?;
            }
        }
    }
    Ok(Value::str(out.finish()?))
}

/// The text that is certain, and something unknown after it.
fn beginning_with(prefix: Vec<u8>) -> Value {
    Value::refined(
        Type::Str,
        Refinement {
            not_null: true,
            prefix: (!prefix.is_empty()).then(|| prefix.into()),
            ..Refinement::default()
        },
    )
}

/// Adds what something displays as. That there was no room is told at the end.
fn show(out: &mut TextBuilder, shown: &dyn std::fmt::Display) {
    let _ = write!(out, "{shown}");
}

fn print(verb: Verb, value: &Value, out: &mut TextBuilder) -> Result<(), CallError> {
    match (verb, value) {
        (Verb::Bool | Verb::Any, Value::Bool(value)) => show(out, value),
        (Verb::Str | Verb::Any, Value::Str(value)) => out.push_bytes(value.as_bytes()),
        (Verb::Quoted, Value::Str(value)) => out.push_str(&quote(value.as_bytes())),
        (Verb::Int | Verb::Any, Value::Int(value)) => show(out, value),
        (Verb::Float | Verb::Any, Value::Float(value)) => {
            out.push_str(&format_float(value.0));
        }
        (Verb::Any, value) => show(out, value),
        (Verb::Type, value) => show(out, &value.ty()),
        (_, value) => {
            return Err(CallError::fatal(format!("unexpected type: {}", value.ty())));
        }
    }
    Ok(())
}
