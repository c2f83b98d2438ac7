//! Two types that must be the same and cannot be: why they must be, and what is said of it.

use std::sync::Arc;

use setpoint_diagnostics::{CodeInfo, Diagnostic, Span};
use setpoint_value::{FunctionRef, StructType, Type};

use super::codes;
use super::messages::{in_few_words, in_words, order_of_fields, too_deep, with_letters};
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
        Conflict::Infinite => {
            let text = "this would have to be a type that contains itself";
            let error = Diagnostic::error(&codes::INFINITE, span, text);
            return error.note(format!("{actual} and {expect} cannot be the same"));
        }
        Conflict::TooDeep => return too_deep(span),
    };
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
    let mismatch = Mismatch {
        conflict,
        code,
        span,
        expect,
        actual,
        expect_words: in_few_words(expect),
        actual_words: in_few_words(actual),
    };
    let mut diagnostic = mismatch.explained(reason);
    if let Reason::Interpolation(place) | Reason::Index(place) | Reason::Key(place) = reason {
        diagnostic = diagnostic.shown_at(*place);
    }
    if conflict == Conflict::FieldNames {
        diagnostic = diagnostic.help_if(order_of_fields(expect, actual));
    }
    // The help of that names all fields.
    match (reason, difference_inside(expect, actual)) {
        (Reason::MetaStruct, _) | (_, None) => diagnostic,
        (_, Some(inside)) => diagnostic.note(inside),
    }
}

/// Two types that can never be the same.
struct Mismatch<'a> {
    conflict: Conflict,
    code: &'static CodeInfo,
    span: Span,
    expect: &'a Type,
    actual: &'a Type,
    expect_words: String,
    actual_words: String,
}

impl Mismatch<'_> {
    /// What is said of it where the types must be the same for this reason.
    fn explained(&self, reason: &Reason) -> Diagnostic {
        let (expect, actual) = (&self.expect_words, &self.actual_words);
        match reason {
            Reason::Element(first) => {
                let rule = "the elements of a list have one type";
                self.differing(*first, rule, "the first element makes it a list of")
            }
            Reason::MapKey(first) => {
                self.differing(*first, "the keys of a map have one type", "the first key is")
            }
            Reason::MapValue(first) => {
                self.differing(*first, "the values of a map have one type", "the first value is")
            }
            Reason::Branches(then) => {
                self.differing(*then, "both branches have one type", "the other branch is")
            }
            Reason::Fallback(left) => {
                self.differing(*left, "both sides of `<|>` have one type", "the left side is")
            }
            Reason::Call(call) => self.of_call().because(*call, format!("called here as {expect}")),
            Reason::CallValue(call) => self
                .of_call_of_value()
                .because(*call, format!("called here as {expect}")),
            Reason::LibraryCall(spec, _) => self.of_library_call(spec),
            Reason::Operands(operator) => self.of_operands(operator).label(""),
            Reason::Condition => self.error(format!("a condition is a bool, not {actual}")),
            Reason::Interpolation(_) => {
                let help = format!("only a str can stand in a string; {}", as_text(self.actual));
                self.error(format!("a variable in a string is a str, not {actual}"))
                    .help(help)
            }
            Reason::Annotation(bind) => self
                .error(format!(
                    "the value is {actual}, but the declared type is {expect}"
                ))
                .because(*bind, format!("declared as {expect}")),
            Reason::Result(declared) => {
                let error = self.error(format!("the result is {actual}, where {expect} is needed"));
                self.because_elsewhere(error, *declared, format!("{expect} is wanted because of this"))
            }
            Reason::Argument(parameter) => self
                .error(format!("the class takes {expect} here, given {actual}"))
                .because(*parameter, format!("declared as {expect}")),
            Reason::LookedInto => self.error(format!("this lookup needs {expect}, but has {actual}")),
            Reason::Index(_) => {
                let error = self.error(format!("the index of a list is {expect}, not {actual}"));
                match self.actual {
                    Type::Str => error.help("what is looked up by a text is a map, `{\"key\" => …}`"),
                    _ => error,
                }
            }
            Reason::Key(_) => self.error(format!("the keys of this map are {expect}, not {actual}")),
            Reason::Parameter(kind, name, doc) => self
                .error(format!("`{name}` of `{kind}` is {expect}, not {actual}"))
                .help_if((!doc.is_empty()).then(|| format!("`{name}`: {doc}"))),
            Reason::Meta(name) => self.error(format!("`Meta:{name}` is {expect}, not {actual}")),
            Reason::MetaStruct => {
                let names = setpoint_graph::MetaName::ALL.map(setpoint_graph::MetaName::name);
                self.error(format!("a `Meta` struct cannot be {actual}"))
                    .help(format!(
                        "a `Meta` struct whose fields are not plain has all of {}",
                        names.join(", ")
                    ))
            }
            Reason::Name => self
                .error(format!("a name is a str or a list of str, not {actual}"))
                .help("a name is a str or a list of str; interpolate a variable as `\"${name}\"`"),
            Reason::Collected => self
                .error(format!(
                    "what `collect` asks for is computed here, so it is {expect}, not {actual}"
                ))
                .help("`str` and `[]str` are taken where they are plain from the text"),
            Reason::List => {
                let is_map = matches!(self.actual, Type::Map(_));
                let help = "a map is walked with `forkv $key, $value in …`".to_owned();
                self.error(format!("`for` walks a list, not {actual}"))
                    .help_if(is_map.then_some(help))
            }
            Reason::Map => {
                let is_list = matches!(self.actual, Type::List(_));
                let help = "a list is walked with `for $index, $value in …`".to_owned();
                self.error(format!("`forkv` walks a map, not {actual}"))
                    .help_if(is_list.then_some(help))
            }
            Reason::Panic => self.error(format!(
                "`panic` takes a bool and a str here; {actual} is not {expect}"
            )),
        }
    }

    fn error(&self, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(self.code, self.span, message).label(format!("this is {}", self.actual_words))
    }

    /// An error with what led to it, unless that is where the error is.
    fn because_elsewhere(&self, error: Diagnostic, place: Span, text: String) -> Diagnostic {
        match place == self.span {
            true => error,
            false => error.because(place, text),
        }
    }

    /// Things that have one type, which the first of them decides.
    fn differing(&self, first: Span, rule: &str, said: &str) -> Diagnostic {
        let (expect, actual) = (&self.expect_words, &self.actual_words);
        let error = self.error(format!("{rule}: {expect} and {actual} differ"));
        self.because_elsewhere(error, first, format!("{said} {expect}"))
    }

    /// A named function that is called as it is not.
    fn of_call(&self) -> Diagnostic {
        if self.conflict == Conflict::ParameterCount {
            let count = |ty: &Type| ty.as_func().map_or(0, |f| f.parameters.len());
            let (wanted, given) = (count(self.actual), count(self.expect));
            let noun = if wanted == 1 { "argument" } else { "arguments" };
            return self.error(format!(
                "this function takes {wanted} {noun}, but is called with {given}"
            ));
        }
        if !self.is_of_function() {
            let actual = &self.actual_words;
            return self.error(format!("{actual} is not a function and cannot be called"));
        }
        self.error(match difference(self.actual, self.expect) {
            Some((takes, given)) => format!("this function has {takes} where the call has {given}"),
            None => "this function is not of the type that the call needs".to_owned(),
        })
    }

    fn of_call_of_value(&self) -> Diagnostic {
        let has_types = self.conflict != Conflict::ParameterCount && self.is_of_function();
        let help = "a function value has one type for all its calls; a `func` statement may have several";
        self.of_call().help_if(has_types.then(|| help.to_owned()))
    }

    /// Whether what is called may be a function.
    fn is_of_function(&self) -> bool {
        matches!(self.actual, Type::Func(_) | Type::Variable(_))
    }

    fn of_library_call(&self, spec: &FunctionRef) -> Diagnostic {
        let name = spec.called();
        let message = match difference(self.expect, self.actual) {
            Some((takes, given)) => {
                let (takes, given) = (in_words(&takes), in_words(&given));
                format!("`{name}` takes {takes} where the call has {given}")
            }
            None => format!("`{name}` does not take these arguments"),
        };
        let signatures = with_letters(&spec.signatures().join("` or `"));
        self.error(message)
            .label(format!("called as {}", in_words(self.actual)))
            .help(format!("it is `{signatures}`"))
    }

    fn of_operands(&self, operator: &str) -> Diagnostic {
        if let Some(f) = self.actual.as_func()
            && let [a, b] = f.parameters.as_slice()
            && a.ty != b.ty
            && operator != "in"
        {
            let message = format!(
                "both sides of `{operator}` have one type: {} and {} differ",
                a.ty, b.ty
            );
            return self.error(message).help(both_sides(operator, &a.ty, &b.ty));
        }
        let error = self.error(match difference(self.expect, self.actual) {
            Some((takes, given)) => format!("`{operator}` takes {takes} here, not {given}"),
            None => format!("`{operator}` does not work on these"),
        });
        match operator {
            "not" => error.help(
                "`not` belongs to the value right behind it; two values that differ are `$a != $b`, or `not ($a == $b)`",
            ),
            _ => error,
        }
    }
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
