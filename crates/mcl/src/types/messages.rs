//! What inference says, in words.

use setpoint_diagnostics::{Diagnostic, Span};
use setpoint_value::{Signature, StructType, Type};

use super::codes;

/// The calls through which something came, innermost first.
#[derive(Debug, Clone, Default)]
pub(super) struct Calls(Vec<Span>);

impl Calls {
    /// So many are kept: of a long way the first and the last steps.
    const KEPT: usize = 8;

    pub(super) fn push(&mut self, call: Span) {
        if self.0.len() == Calls::KEPT {
            self.0.remove(Calls::KEPT / 2);
        }
        self.0.push(call);
    }

    /// An error with the way on which it came.
    pub(super) fn on(&self, error: Diagnostic) -> Diagnostic {
        self.0
            .iter()
            .fold(error, |error, call| error.via(*call, "called here"))
    }
}

/// How many arguments a function takes.
pub(super) fn counts(alternatives: &[Signature]) -> String {
    let mut counts: Vec<String> = alternatives
        .iter()
        .map(|a| {
            format!(
                "{}{}",
                a.parameters.len(),
                if a.variadic.is_some() { " or more" } else { "" }
            )
        })
        .collect();
    counts.dedup();
    let noun = if counts == ["1"] { "argument" } else { "arguments" };
    format!("{} {noun}", counts.join(" or "))
}

/// A type that is nested deeper than can be handled.
pub(super) fn too_deep(span: Span) -> Diagnostic {
    Diagnostic::error(
        &codes::TOO_DEEP,
        span,
        "the type of this is nested too deep to be handled",
    )
}

/// What to do when two structs have the same fields in another order.
pub(super) fn order_of_fields(wanted: &Type, given: &Type) -> Option<String> {
    let (Type::Struct(wanted), Type::Struct(given)) = (wanted, given) else {
        return None;
    };
    let same = wanted.fields.len() == given.fields.len()
        && wanted
            .fields
            .iter()
            .all(|field| given.field(&field.name).is_some());
    let names: Vec<String> = wanted
        .fields
        .iter()
        .map(|field| format!("{} => …", field.name))
        .collect();
    let names_of = |s: &StructType| {
        s.fields
            .iter()
            .map(|field| field.name.clone())
            .collect::<Vec<_>>()
    };
    (same && names_of(wanted) != names_of(given)).then(|| {
        format!(
            "the order of the fields is part of a struct's type; write `struct{{{}}}`",
            names.join(", ")
        )
    })
}

/// A signature in a message: its type variables as letters.
pub(super) fn with_letters(signature: &str) -> String {
    replace_variables(signature, |number| {
        let letter = number.checked_sub(1).and_then(|index| b"ABCDEFGH".get(index));
        letter.map_or('_', |letter| char::from(*letter))
    })
}

/// A written type with other words for its variables.
fn replace_variables(written: &str, name: impl Fn(usize) -> char) -> String {
    let mut words = String::with_capacity(written.len());
    let mut rest = written.chars().peekable();
    while let Some(char) = rest.next() {
        if char != '?' {
            words.push(char);
            continue;
        }
        let mut number = 0_usize;
        while let Some(digit) = rest.next_if(char::is_ascii_digit) {
            number = number
                .saturating_mul(10)
                .saturating_add(digit as usize - '0' as usize);
        }
        words.push(name(number));
    }
    words
}

/// A type in a message: what is not known of it is left out.
pub(super) fn in_words(ty: &Type) -> String {
    if let Type::Variable(_) = ty {
        return "any type".to_owned();
    }
    replace_variables(&ty.to_string(), |_| '_')
}

/// A type in a message that tells of nothing inside of it: its inner parts are left out where it would be too long to read.
pub(super) fn in_few_words(ty: &Type) -> String {
    const LONGEST: usize = 160;
    const DEEPEST: usize = 8;
    let written = in_words(ty);
    if written.len() <= LONGEST {
        return written;
    }
    let mut elided = (1..=DEEPEST).rev().map(|depth| elided(&written, depth));
    let fitting = elided.find(|text| text.len() <= LONGEST);
    fitting.unwrap_or_else(|| self::elided(&written, 1))
}

/// A written type without what is deeper in braces and parentheses.
fn elided(written: &str, deepest: usize) -> String {
    let mut text = String::new();
    let mut depth = 0_usize;
    for char in written.chars() {
        if matches!(char, '}' | ')') {
            depth = depth.saturating_sub(1);
        }
        if depth < deepest {
            text.push(char);
        } else if depth == deepest && !text.ends_with('…') {
            text.push('…');
        }
        if matches!(char, '{' | '(') {
            depth += 1;
        }
    }
    text
}
