//! Operators between two data, `not`, literals of lists and dicts, lookups, and what `is defined` says of a value.
//!
//! An operand that is not known makes the result unknown, and marks of operands are on the result. `and` and `or` are here for who has both
//! operands; whoever executes evaluates the right one only if the left one does not decide.

use std::cmp::Ordering;
use std::sync::Arc;

use setpoint_cf_names::datum::{Datum, Dict, Extent, Unknowns};
use setpoint_cf_syntax::ast::Operator;
use setpoint_diagnostics::{Diagnostic, Span};
use setpoint_value::{LONGEST_TEXT, MOST_PARTS, Marks};

use crate::codes::{self, class};
use crate::equality::{Number, compare_numbers, equals, number};
use crate::text::{Naming, shown, too_long, type_name, unexpected_reference};

/// The result, or an error; boxed because it is rare and large.
pub type Outcome<T = Datum> = Result<T, Box<Diagnostic>>;

/// Applies an operator. `span` is that of both operands with the operator.
///
/// # Errors
/// Operands that do not fit, or a result that is no value.
pub fn apply(
    operator: Operator,
    left: &Datum,
    right: &Datum,
    span: Span,
    naming: Naming<'_>,
    unknowns: &mut Unknowns,
) -> Outcome {
    let result = match operator {
        Operator::Or | Operator::And => {
            let decides = operator == Operator::Or;
            match condition(left, Some(operator), span, naming)? {
                None => None,
                Some(left) if left == decides => Some(Datum::Bool(left)),
                Some(_) => condition(right, Some(operator), span, naming)?.map(Datum::Bool),
            }
        }
        Operator::Equal => equals(left, right).map(Datum::Bool),
        Operator::NotEqual => equals(left, right).map(|equal| Datum::Bool(!equal)),
        Operator::In => contains(left, right, span, naming)?.map(Datum::Bool),
        Operator::NotIn => contains(left, right, span, naming)?.map(|found| Datum::Bool(!found)),
        Operator::Less | Operator::LessOrEqual | Operator::Greater | Operator::GreaterOrEqual => {
            compare(operator, left, right, span, naming)?.map(Datum::Bool)
        }
        Operator::Add
        | Operator::Subtract
        | Operator::Multiply
        | Operator::Divide
        | Operator::Remainder
        | Operator::Power => arithmetic(operator, left, right, span, naming)?,
    };
    let Some(result) = result else {
        return Ok(unknowns.create());
    };
    Ok(carry_marks(result, left, right))
}

/// The marks at the outside of both are on the result.
fn carry_marks(result: Datum, left: &Datum, right: &Datum) -> Datum {
    let mut marks = Marks::none();
    for operand in [left, right] {
        if let Datum::Marked(marked) = operand {
            marks.union(&marked.marks);
        }
    }
    result.with_marks(&marks)
}

/// `not`.
///
/// # Errors
/// What is not a bool.
pub fn not(operand: &Datum, span: Span, naming: Naming<'_>, unknowns: &mut Unknowns) -> Outcome {
    match operand.unmarked() {
        Datum::Bool(bool) => Ok(carry_marks(Datum::Bool(!bool), operand, operand)),
        Datum::Unknown(_) => Ok(unknowns.create()),
        other => {
            let message = format!("`not` takes a bool, not `{}`", shown(operand, naming));
            Err(Box::new(
                Diagnostic::error(&codes::CONDITION, span, message)
                    .of_class(class::RUNTIME)
                    .label(format!("this is of type {}", type_name(other, naming)))
                    .help("`not` binds tighter than comparison: write `not (a == b)`"),
            ))
        }
    }
}

/// A bool that decides. None: it is not known. With an operator, the bool is an operand of it.
///
/// # Errors
/// What is not a bool.
pub fn condition(
    datum: &Datum,
    operator: Option<Operator>,
    span: Span,
    naming: Naming<'_>,
) -> Outcome<Option<bool>> {
    match datum.unmarked() {
        Datum::Bool(bool) => Ok(Some(*bool)),
        Datum::Unknown(_) => Ok(None),
        Datum::Deferred(_) => Err(Box::new(unexpected_reference(span))),
        other => {
            let value = shown(datum, naming);
            let message = match operator {
                Some(operator) => format!("`{}` takes bools, not `{value}`", symbol(operator)),
                None => format!("a condition is a bool, not `{value}`"),
            };
            let help = match other {
                Datum::List(_) => Some("`std::count(list) > 0` says whether it has elements"),
                Datum::Text(_) => Some("`x != \"\"` says whether it is empty"),
                Datum::Int(_) | Datum::Float(_) => Some("`x != 0` says whether it is zero"),
                Datum::Dict(_) => Some("`x != {}` says whether it has entries"),
                Datum::Null => Some("`x != null` says whether there is a value"),
                Datum::Instance(_) => Some("`x is defined` says whether there is one"),
                _ => None,
            };
            Err(Box::new(
                Diagnostic::error(&codes::CONDITION, span, message)
                    .of_class(class::RUNTIME)
                    .label(format!("this is of type {}", type_name(other, naming)))
                    .help_if(help.map(str::to_owned)),
            ))
        }
    }
}

/// An operator as it is written.
#[must_use]
pub fn symbol(operator: Operator) -> &'static str {
    match operator {
        Operator::Or => "or",
        Operator::And => "and",
        Operator::Equal => "==",
        Operator::NotEqual => "!=",
        Operator::Less => "<",
        Operator::LessOrEqual => "<=",
        Operator::Greater => ">",
        Operator::GreaterOrEqual => ">=",
        Operator::Add => "+",
        Operator::Subtract => "-",
        Operator::Multiply => "*",
        Operator::Divide => "/",
        Operator::Remainder => "%",
        Operator::Power => "**",
        Operator::In => "in",
        Operator::NotIn => "not in",
    }
}

fn typing(span: Span, message: impl Into<String>) -> Box<Diagnostic> {
    Box::new(Diagnostic::error(&codes::OPERAND, span, message).of_class(class::TYPING))
}

/// Whether an operand is unknown; a deferred reference is an error.
fn known(left: &Datum, right: &Datum, span: Span) -> Outcome<bool> {
    let mut known = true;
    for operand in [left, right] {
        match operand.unmarked() {
            Datum::Unknown(_) => known = false,
            Datum::Deferred(_) => return Err(Box::new(unexpected_reference(span))),
            _ => {}
        }
    }
    Ok(known)
}

fn compare(
    operator: Operator,
    left: &Datum,
    right: &Datum,
    span: Span,
    naming: Naming<'_>,
) -> Outcome<Option<bool>> {
    if !known(left, right, span)? {
        return Ok(None);
    }
    if number(left).is_none() || number(right).is_none() {
        let message = format!(
            "can only compare numbers, not `{}` and `{}` with `{}`",
            shown(left, naming),
            shown(right, naming),
            symbol(operator),
        );
        let error = typing(span, message);
        let both_texts = [left, right]
            .iter()
            .all(|operand| matches!(operand.unmarked(), Datum::Text(_)));
        return Err(match both_texts {
            true => Box::new(error.help("texts have no order; they are equal (`==`) or not (`!=`)")),
            false => error,
        });
    }
    // What is no number (`nan`) is in no order with anything.
    let order = compare_numbers(left, right);
    Ok(Some(match operator {
        Operator::Less => order == Some(Ordering::Less),
        Operator::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        Operator::Greater => order == Some(Ordering::Greater),
        _ => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
    }))
}

fn contains(element: &Datum, container: &Datum, span: Span, naming: Naming<'_>) -> Outcome<Option<bool>> {
    if matches!(element.unmarked(), Datum::Unknown(_)) {
        return Ok(None);
    }
    match container.unmarked() {
        Datum::Unknown(_) => Ok(None),
        Datum::Dict(dict) => Ok(Some(match element.unmarked() {
            Datum::Text(key) => dict.get(key).is_some(),
            _ => false,
        })),
        Datum::List(items) => {
            let mut unknown = false;
            for item in items.iter() {
                match equals(element, item) {
                    Some(true) => return Ok(Some(true)),
                    Some(false) => {}
                    None => unknown = true,
                }
            }
            Ok((!unknown).then_some(false))
        }
        other => {
            let message = format!(
                "`in` looks into lists and dicts, not into {} `{}`",
                type_name(other, naming),
                shown(container, naming)
            );
            let error = typing(span, message);
            Err(match other {
                Datum::Text(_) => Box::new(
                    error.help("what is in a text says a typedef: `typedef web as string matching /.*web/`"),
                ),
                _ => error,
            })
        }
    }
}

fn arithmetic(
    operator: Operator,
    left: &Datum,
    right: &Datum,
    span: Span,
    naming: Naming<'_>,
) -> Outcome<Option<Datum>> {
    if !known(left, right, span)? {
        return Ok(None);
    }
    if operator == Operator::Add {
        if let (Datum::Text(left), Datum::Text(right)) = (left.unmarked(), right.unmarked()) {
            if left.len() + right.len() > LONGEST_TEXT {
                return Err(Box::new(too_long(span)));
            }
            let mut text = String::with_capacity(left.len() + right.len());
            text.push_str(left);
            text.push_str(right);
            return Ok(Some(Datum::text(text)));
        }
        if matches!(left.unmarked(), Datum::Text(_)) {
            let message = format!(
                "can only add a string to a string, not {} `{}`",
                type_name(right, naming),
                shown(right, naming)
            );
            let error = typing(span, message);
            return Err(Box::new(error.help("`string(…)` makes a string of a value")));
        }
    }
    let (Some(a), Some(b)) = (number(left), number(right)) else {
        let message = format!(
            "unsupported operands for `{}`: {} `{}` and {} `{}`",
            symbol(operator),
            type_name(left, naming),
            shown(left, naming),
            type_name(right, naming),
            shown(right, naming),
        );
        let error = typing(span, message);
        let help = match (operator, left.unmarked(), right.unmarked()) {
            (Operator::Add, Datum::List(_), Datum::List(_)) => {
                Some("a list in a list becomes a part of it: `[a, b]` has the elements of both")
            }
            (Operator::Add, _, Datum::Text(_)) => Some("`string(…)` makes a string of a value"),
            (Operator::Remainder, Datum::Text(_), _) => {
                Some("values are put into a text by name: `f\"web{number:02d}\"`, or `\"web{{number}}\"`")
            }
            _ => None,
        };
        return Err(Box::new(error.help_if(help.map(str::to_owned))));
    };
    let result = match (a, b) {
        (Number::Int(a), Number::Int(b)) => ints(operator, a, b),
        (a, b) => floats(operator, a.to_float(), b.to_float()),
    };
    result.map(Some).map_err(|refused| {
        let message = match refused {
            Refused::DivisionByZero => "division by zero",
            Refused::IntRange => "the result does not fit 64 bits",
            Refused::FloatRange => "the result is too large for a float",
            Refused::NotReal => "a negative number has no power with a fraction",
        };
        let operation = format!(
            "`{} {} {}`",
            shown(left, naming),
            symbol(operator),
            shown(right, naming)
        );
        Box::new(typing(span, format!("{message}: {operation}")).label("here"))
    })
}

enum Refused {
    DivisionByZero,
    IntRange,
    FloatRange,
    NotReal,
}

fn ints(operator: Operator, a: i64, b: i64) -> Result<Datum, Refused> {
    let result = match operator {
        Operator::Add => a.checked_add(b),
        Operator::Subtract => a.checked_sub(b),
        Operator::Multiply => a.checked_mul(b),
        Operator::Remainder if b == 0 => return Err(Refused::DivisionByZero),
        Operator::Remainder => {
            // The rest of the smallest number by -1 is 0, though the quotient does not fit.
            let rest = a.wrapping_rem(b);
            Some(if rest != 0 && (rest < 0) != (b < 0) {
                rest + b
            } else {
                rest
            })
        }
        Operator::Power if b >= 0 => power(a, b),
        _ => return floats(operator, a as f64, b as f64),
    };
    result.map(Datum::Int).ok_or(Refused::IntRange)
}

fn power(base: i64, exponent: i64) -> Option<i64> {
    match base {
        0 | 1 => Some(if exponent == 0 { 1 } else { base }),
        -1 => Some(if exponent % 2 == 0 { 1 } else { -1 }),
        _ => base.checked_pow(u32::try_from(exponent).ok()?),
    }
}

fn floats(operator: Operator, a: f64, b: f64) -> Result<Datum, Refused> {
    let result = match operator {
        Operator::Add => a + b,
        Operator::Subtract => a - b,
        Operator::Multiply => a * b,
        Operator::Divide | Operator::Remainder if b == 0.0 => return Err(Refused::DivisionByZero),
        Operator::Divide => a / b,
        Operator::Remainder => {
            let rest = a % b;
            match rest {
                0.0 => 0.0_f64.copysign(b),
                rest if (rest < 0.0) != (b < 0.0) => rest + b,
                rest => rest,
            }
        }
        _ if a == 0.0 && b < 0.0 => return Err(Refused::DivisionByZero),
        _ => {
            let power = a.powf(b);
            if power.is_nan() && !a.is_nan() && !b.is_nan() {
                return Err(Refused::NotReal);
            }
            if power.is_infinite() && a.is_finite() && b.is_finite() {
                return Err(Refused::FloatRange);
            }
            power
        }
    };
    Ok(Datum::Float(result))
}

/// The list that a literal makes of its elements: those that are lists are spliced, one level of them.
///
/// # Errors
/// A list that is larger than data may be.
pub fn list(elements: Vec<Datum>, span: Span) -> Outcome {
    let spliced = |datum: &Datum| matches!(datum.unmarked(), Datum::List(_));
    if !elements.iter().any(spliced) {
        return bounded(Datum::List(elements.into()), span);
    }
    let mut flat = Vec::with_capacity(elements.len());
    for element in elements {
        match &element {
            Datum::List(items) => flat.extend(items.iter().cloned()),
            Datum::Marked(marked) => match &marked.datum {
                Datum::List(items) => {
                    flat.extend(items.iter().map(|item| item.clone().with_marks(&marked.marks)));
                }
                _ => flat.push(element),
            },
            _ => flat.push(element),
        }
        if flat.len() > MOST_PARTS {
            return Err(Box::new(too_large(span)));
        }
    }
    bounded(Datum::List(flat.into()), span)
}

/// The dict of these entries. No key is there twice.
///
/// # Errors
/// A dict that is larger than data may be.
pub fn dict(entries: impl IntoIterator<Item = (Arc<str>, Datum)>, span: Span) -> Outcome {
    let dict: Dict = entries.into_iter().collect();
    bounded(Datum::Dict(Arc::new(dict)), span)
}

/// Refuses what is larger than data may be.
pub(crate) fn bounded(datum: Datum, span: Span) -> Outcome {
    if datum.extent().is_allowed() {
        return Ok(datum);
    }
    Err(Box::new(too_large(span)))
}

fn too_large(span: Span) -> Diagnostic {
    let message = format!(
        "the value would have more than {MOST_PARTS} parts, or nest deeper than {} levels",
        Extent::DEEPEST
    );
    Diagnostic::error(&codes::TOO_LARGE, span, message).of_class(class::RUNTIME)
}

/// `d["k"]`.
///
/// # Errors
/// What is not a dict, a key that is not a string, or that the dict does not have.
pub fn lookup(dict: &Datum, key: &Datum, span: Span, naming: Naming<'_>, unknowns: &mut Unknowns) -> Outcome {
    let Some((entries, name)) = lookup_operands(dict, key, span, naming)? else {
        return Ok(unknowns.create());
    };
    match entries.get(name) {
        Some(value) => Ok(carry_marks(value.clone(), dict, key)),
        None => {
            let keys: Vec<&str> = entries.iter().map(|(key, _)| &**key).collect();
            let message = format!("key `{}` not found in dict", shown(key, naming));
            let note = match keys.as_slice() {
                [] => "the dict is empty".to_owned(),
                keys => format!("its keys are `{}`", keys.join("`, `")),
            };
            Err(Box::new(
                Diagnostic::error(&codes::MISSING_KEY, span, message)
                    .of_class(class::KEY)
                    .note(note)
                    .help_if(setpoint_diagnostics::did_you_mean(name, keys)),
            ))
        }
    }
}

/// `d["k"] is defined`: whether there is a value, and it is neither null nor the empty list.
///
/// # Errors
/// What is not a dict, or a key that is not a string.
pub fn lookup_is_defined(
    dict: &Datum,
    key: &Datum,
    span: Span,
    naming: Naming<'_>,
    unknowns: &mut Unknowns,
) -> Outcome {
    let Some((entries, name)) = lookup_operands(dict, key, span, naming)? else {
        return Ok(unknowns.create());
    };
    match entries.get(name).map_or(Some(false), is_defined) {
        Some(defined) => Ok(carry_marks(Datum::Bool(defined), dict, key)),
        None => Ok(unknowns.create()),
    }
}

/// The dict and the key of a lookup. None: one of them is not known.
fn lookup_operands<'a>(
    dict: &'a Datum,
    key: &'a Datum,
    span: Span,
    naming: Naming<'_>,
) -> Outcome<Option<(&'a Dict, &'a str)>> {
    let entries = match dict.unmarked() {
        Datum::Unknown(_) => return Ok(None),
        Datum::Dict(entries) => entries,
        other => {
            let message = format!(
                "only dicts are looked up with `[…]`, not {} `{}`",
                type_name(other, naming),
                shown(dict, naming)
            );
            let error = typing(span, message);
            return Err(match other {
                Datum::List(_) => {
                    Box::new(error.help("`std::at(list, 0)` gives the first element of a list"))
                }
                _ => error,
            });
        }
    };
    match key.unmarked() {
        Datum::Unknown(_) => Ok(None),
        Datum::Text(key) => Ok(Some((entries, key))),
        other => {
            let message = format!(
                "keys of dicts are strings, not {} `{}`",
                type_name(other, naming),
                shown(key, naming)
            );
            Err(typing(span, message))
        }
    }
}

/// What `is defined` says of a value: neither null nor an empty list. None: that is not known.
#[must_use]
pub fn is_defined(datum: &Datum) -> Option<bool> {
    match datum.unmarked() {
        Datum::Null => Some(false),
        Datum::Unknown(_) => None,
        Datum::List(items) if items.is_empty() => Some(false),
        Datum::List(items) => {
            let known = |item: &Datum| !matches!(item.unmarked(), Datum::Unknown(_));
            items.iter().any(known).then_some(true)
        }
        _ => Some(true),
    }
}

/// The entries of what stands behind `**`. None: it is not known.
///
/// # Errors
/// What is not a dict.
pub fn keyword_dict<'a>(datum: &'a Datum, span: Span, naming: Naming<'_>) -> Outcome<Option<&'a Dict>> {
    match datum.unmarked() {
        Datum::Unknown(_) => Ok(None),
        Datum::Dict(dict) => Ok(Some(dict)),
        other => {
            let message = format!(
                "the `**` operator can only be applied to dictionaries, not to {} `{}`",
                type_name(other, naming),
                shown(datum, naming)
            );
            Err(typing(span, message))
        }
    }
}

/// Whether a pattern matches at the start of a text. None: the text is not known.
///
/// # Errors
/// What is not a string, or a pattern that takes too many steps.
pub fn matches(
    regex: &fancy_regex::Regex,
    datum: &Datum,
    span: Span,
    naming: Naming<'_>,
) -> Outcome<Option<bool>> {
    match datum.unmarked() {
        Datum::Unknown(_) => Ok(None),
        Datum::Text(text) => match regex.find_from_pos(text, 0) {
            Ok(found) => Ok(Some(found.is_some_and(|found| found.start() == 0))),
            Err(error) => {
                let message = format!(
                    "the pattern gives no answer for `{}`: {error}",
                    shown(datum, naming)
                );
                Err(Box::new(
                    Diagnostic::error(&codes::OPERAND, span, message).of_class(class::RUNTIME),
                ))
            }
        },
        other => {
            let message = format!(
                "a pattern is matched against strings, not {} `{}`",
                type_name(other, naming),
                shown(datum, naming)
            );
            Err(typing(span, message))
        }
    }
}

#[cfg(test)]
mod tests;
