//! What inference says, in words.

use setpoint_diagnostics::{Diagnostic, Span};
use setpoint_value::{FunctionRef, Signature, StructType, Type};
use std::sync::Arc;

use super::codes;
use super::solver::Conflict;
use crate::hir::ExprId;

/// Why two types must be the same, for the message.
#[derive(Debug, Clone)]
pub(super) enum Reason {
    Element(Span),
    MapKey(Span),
    MapValue(Span),
    Condition,
    Branches(Span),
    Fallback(Span),
    /// Where a variable stands in a string.
    Interpolation(Span),
    Annotation(Span),
    /// A call of a named function.
    Call(Span),
    /// A call of a function value.
    CallValue(Span),
    /// A call of a library function; the expression, where it is known.
    LibraryCall(FunctionRef, Option<ExprId>),
    Result(Span),
    /// The operands of an operator.
    Operands(&'static str),
    /// The base of a lookup.
    LookedInto,
    /// The index of a list, where it is written.
    Index(Span),
    /// The key of a lookup in a map, where it is written.
    Key(Span),
    Parameter(Arc<str>, Arc<str>, &'static str),
    Meta(&'static str),
    MetaStruct,
    Name,
    /// Of a collect statement.
    Collected,
    List,
    Map,
    Argument(Span),
    Panic,
}

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

/// A conflict as an error.
pub(super) fn conflict_diagnostic(
    conflict: Conflict,
    expect: &Type,
    actual: &Type,
    span: Span,
    reason: &Reason,
) -> Diagnostic {
    let code = match conflict {
        Conflict::Kinds => &codes::MISMATCH,
        Conflict::ParameterCount => &codes::ARGUMENT_COUNT,
        Conflict::FieldCount => &codes::FIELD_COUNT,
        Conflict::FieldNames => &codes::FIELD_NAMES,
        Conflict::Infinite => &codes::INFINITE,
        Conflict::TooDeep => &codes::TOO_DEEP,
    };
    if conflict == Conflict::TooDeep {
        return too_deep(span);
    }
    if conflict == Conflict::Infinite {
        let error = Diagnostic::error(code, span, "this would have to be a type that contains itself");
        return error.note(format!("{actual} and {expect} cannot be the same"));
    }
    // Only `variant` is written so.
    if [expect, actual]
        .iter()
        .any(|ty| ty.any_part(&mut |part| *part == Type::Dynamic))
    {
        let error = Diagnostic::error(code, span, "no value has the type `variant`");
        return match reason {
            Reason::Annotation(bind) => error.because(*bind, "declared here"),
            _ => error,
        };
    }
    let (expect_type, actual_type) = (expect, actual);
    let (expect, actual) = (in_few_words(expect), in_few_words(actual));
    let mut label = format!("this is {actual}");
    let mut secondary: Option<(Span, String)> = None;
    let mut help = None;
    let message = match reason {
        Reason::Element(first) => {
            secondary =
                (*first != span).then(|| (*first, format!("the first element makes it a list of {expect}")));
            format!("the elements of a list have one type: {expect} and {actual} differ")
        }
        Reason::MapKey(first) => {
            secondary = (*first != span).then(|| (*first, format!("the first key is {expect}")));
            format!("the keys of a map have one type: {expect} and {actual} differ")
        }
        Reason::MapValue(first) => {
            secondary = (*first != span).then(|| (*first, format!("the first value is {expect}")));
            format!("the values of a map have one type: {expect} and {actual} differ")
        }
        Reason::Condition => format!("a condition is a bool, not {actual}"),
        Reason::Branches(then) => {
            secondary = (*then != span).then(|| (*then, format!("the other branch is {expect}")));
            format!("both branches have one type: {expect} and {actual} differ")
        }
        Reason::Fallback(left) => {
            secondary = (*left != span).then(|| (*left, format!("the left side is {expect}")));
            format!("both sides of `<|>` have one type: {expect} and {actual} differ")
        }
        Reason::Interpolation(_) => {
            help = Some(format!(
                "only a str can stand in a string; {}",
                as_text(actual_type)
            ));
            format!("a variable in a string is a str, not {actual}")
        }
        Reason::Annotation(bind) => {
            secondary = Some((*bind, format!("declared as {expect}")));
            format!("the value is {actual}, but the declared type is {expect}")
        }
        Reason::Call(call) | Reason::CallValue(call) => {
            label = format!("this is {actual}");
            secondary = Some((*call, format!("called here as {expect}")));
            if conflict == Conflict::ParameterCount {
                let count = |ty: &Type| ty.as_func().map_or(0, |f| f.parameters.len());
                let (wanted, given) = (count(actual_type), count(expect_type));
                let noun = if wanted == 1 { "argument" } else { "arguments" };
                format!("this function takes {wanted} {noun}, but is called with {given}")
            } else if actual_type.as_func().is_none() && !matches!(actual_type, Type::Variable(_)) {
                format!("{actual} is not a function and cannot be called")
            } else {
                if let Reason::CallValue(_) = reason {
                    help = Some(
                        "a function value has one type for all its calls; a `func` statement may have several"
                            .to_owned(),
                    );
                }
                match difference(actual_type, expect_type) {
                    Some((takes, given)) => format!("this function has {takes} where the call has {given}"),
                    None => "this function is not of the type that the call needs".to_owned(),
                }
            }
        }
        Reason::LibraryCall(spec, _) => {
            label = format!("called as {}", in_words(actual_type));
            help = Some(format!(
                "it is `{}`",
                with_letters(&spec.signatures().join("` or `"))
            ));
            let name = spec.called();
            match difference(expect_type, actual_type) {
                Some((takes, given)) => {
                    let (takes, given) = (in_words(&takes), in_words(&given));
                    format!("`{name}` takes {takes} where the call has {given}")
                }
                None => format!("`{name}` does not take these arguments"),
            }
        }
        Reason::Operands(operator) => {
            label = String::new();
            if let Some(f) = actual_type.as_func()
                && let [a, b] = f.parameters.as_slice()
                && a.ty != b.ty
                && *operator != "in"
            {
                help = Some(both_sides(operator, &a.ty, &b.ty));
                format!(
                    "both sides of `{operator}` have one type: {} and {} differ",
                    a.ty, b.ty
                )
            } else {
                if *operator == "not" {
                    help = Some(
                        "`not` belongs to the value right behind it; two values that differ are `$a != $b`, or `not ($a == $b)`"
                            .to_owned(),
                    );
                }
                match difference(expect_type, actual_type) {
                    Some((takes, given)) => format!("`{operator}` takes {takes} here, not {given}"),
                    None => format!("`{operator}` does not work on these"),
                }
            }
        }
        Reason::Result(declared) => {
            secondary =
                (*declared != span).then(|| (*declared, format!("{expect} is wanted because of this")));
            format!("the result is {actual}, where {expect} is needed")
        }
        Reason::LookedInto => format!("this lookup needs {expect}, but has {actual}"),
        Reason::Index(_) => {
            help = Some("what is looked up by a text is a map, `{\"key\" => …}`".to_owned())
                .filter(|_| *actual_type == Type::Str);
            format!("the index of a list is {expect}, not {actual}")
        }
        Reason::Key(_) => format!("the keys of this map are {expect}, not {actual}"),
        Reason::Parameter(kind, name, doc) => {
            help = (!doc.is_empty()).then(|| format!("`{name}`: {doc}"));
            format!("`{name}` of `{kind}` is {expect}, not {actual}")
        }
        Reason::Meta(name) => format!("`Meta:{name}` is {expect}, not {actual}"),
        Reason::MetaStruct => {
            let names = setpoint_graph::MetaName::ALL.map(setpoint_graph::MetaName::name);
            help = Some(format!(
                "a `Meta` struct whose fields are not plain has all of {}",
                names.join(", ")
            ));
            format!("a `Meta` struct cannot be {actual}")
        }
        Reason::Name => {
            help =
                Some("a name is a str or a list of str; interpolate a variable as `\"${name}\"`".to_owned());
            format!("a name is a str or a list of str, not {actual}")
        }
        Reason::Collected => {
            help = Some("`str` and `[]str` are taken where they are plain from the text".to_owned());
            format!("what `collect` asks for is computed here, so it is {expect}, not {actual}")
        }
        Reason::List => {
            if matches!(actual_type, Type::Map(_)) {
                help = Some("a map is walked with `forkv $key, $value in …`".to_owned());
            }
            format!("`for` walks a list, not {actual}")
        }
        Reason::Map => {
            if matches!(actual_type, Type::List(_)) {
                help = Some("a list is walked with `for $index, $value in …`".to_owned());
            }
            format!("`forkv` walks a map, not {actual}")
        }
        Reason::Argument(parameter) => {
            secondary = Some((*parameter, format!("declared as {expect}")));
            format!("the class takes {expect} here, given {actual}")
        }
        Reason::Panic => format!("`panic` takes a bool and a str here; {actual} is not {expect}"),
    };
    let mut diagnostic = Diagnostic::error(code, span, message).label(label).help_if(help);
    if let Reason::Interpolation(place) | Reason::Index(place) | Reason::Key(place) = reason {
        diagnostic = diagnostic.shown_at(*place);
    }
    if conflict == Conflict::FieldNames {
        diagnostic = diagnostic.help_if(order_of_fields(expect_type, actual_type));
    }
    // The help of that names all fields.
    if !matches!(reason, Reason::MetaStruct)
        && let Some(inside) = difference_inside(expect_type, actual_type)
    {
        diagnostic = diagnostic.note(inside);
    }
    if let Some((span, text)) = secondary {
        diagnostic = diagnostic.because(span, text);
    }
    diagnostic
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

/// Where two structs differ: in which fields they have, or else in the first one that is of another type.
fn difference_inside(wanted: &Type, given: &Type) -> Option<String> {
    let (Type::Struct(wanted_fields), Type::Struct(given_fields)) = (wanted, given) else {
        return None;
    };
    let lacking = |of: &StructType, in_: &StructType| {
        let names = of.fields.iter().filter(|field| in_.field(&field.name).is_none());
        let names: Vec<String> = names.map(|field| format!("`{}`", field.name)).collect();
        (!names.is_empty()).then(|| names.join(", "))
    };
    let missing = lacking(wanted_fields, given_fields).map(|names| format!("without {names}"));
    let superfluous = lacking(given_fields, wanted_fields).map(|names| format!("with {names}"));
    match (missing, superfluous) {
        (None, None) => {}
        (Some(one), None) | (None, Some(one)) => return Some(format!("the second one is {one}")),
        (Some(missing), Some(superfluous)) => {
            return Some(format!("the second one is {missing}, and {superfluous}"));
        }
    }
    let mut fields = wanted_fields.fields.iter();
    fields.find_map(|field| {
        let other = given_fields.field(&field.name)?;
        let (wanted, given) = difference(&field.ty, other)?;
        let (wanted, given) = (in_few_words(&wanted), in_few_words(&given));
        Some(format!(
            "the field `{}` differs: {wanted} and {given}",
            field.name
        ))
    })
}

/// How a value of this type becomes text.
fn as_text(ty: &Type) -> String {
    let how = match ty {
        Type::Int => "`fmt.printf(\"%d\", $number)`",
        Type::Float => "`fmt.printf(\"%f\", $number)`",
        Type::Bool => "`fmt.printf(\"%t\", $bool)`",
        _ => "`fmt.printf(\"%v\", $value)`",
    };
    format!("{how} of `import \"fmt\"` makes text of {}", in_words(ty))
}

/// What to do when the sides of an operator differ.
fn both_sides(operator: &str, left: &Type, right: &Type) -> String {
    match (left, right) {
        (Type::Str, other) | (other, Type::Str)
            if operator == "+" && matches!(other, Type::Int | Type::Float | Type::Bool) =>
        {
            as_text(other)
        }
        (Type::Int, Type::Float) | (Type::Float, Type::Int) => {
            "`convert.to_float(…)` and `convert.to_int(…)` of `import \"convert\"` make one of the other; a literal `1` can be `1.0`"
                .to_owned()
        }
        (Type::List(element), other) | (other, Type::List(element))
            if operator == "+" && (**element == *other) =>
        {
            "a list is extended by a list: `$list + [$element]`".to_owned()
        }
        _ => "nothing is converted by itself; bring both sides to one type".to_owned(),
    }
}

/// A signature in a message: its type variables as letters.
fn with_letters(signature: &str) -> String {
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

/// The first place where two types differ, in both; none when they cannot be told apart.
fn difference(one: &Type, other: &Type) -> Option<(Type, Type)> {
    match (one, other) {
        (Type::Variable(_), _) | (_, Type::Variable(_)) => None,
        (Type::List(a), Type::List(b)) => difference(a, b),
        (Type::Map(a), Type::Map(b)) => difference(&a.0, &b.0).or_else(|| difference(&a.1, &b.1)),
        (Type::Func(a), Type::Func(b)) if a.parameters.len() == b.parameters.len() => {
            let mut pairs = a.parameters.iter().zip(&b.parameters);
            pairs
                .find_map(|(a, b)| difference(&a.ty, &b.ty))
                .or_else(|| difference(&a.result, &b.result))
        }
        (a, b) if a == b => None,
        (a, b) => Some((a.clone(), b.clone())),
    }
}
