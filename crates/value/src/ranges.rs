//! The range of the result of arithmetic while an operand is unknown. It follows from the ranges of the operands.
//!
//! Each of these functions is the `refine` of a function of the language. The range holds for every result, whatever the unknowns
//! become. A float can be NaN, which is in no range. So there is a range only if the operands cannot make a NaN: an operand with a
//! bound is not NaN, and infinity minus infinity and zero times infinity have no range.

use crate::refine::EXACT;
use crate::{Bound, Refinement, Type, Value, number_range};

/// The numbers that an operand can be, both ends included; infinite where nothing is certain.
#[derive(Debug, Clone, Copy)]
struct Range {
    least: f64,
    greatest: f64,
    /// It is an int, which is neither infinite nor NaN.
    is_int: bool,
}

impl Range {
    /// None where it can be NaN, or is no number.
    fn of(value: &Value) -> Option<Range> {
        let is_int = value.ty() == Type::Int;
        let (lower, upper) = number_range(value);
        if !is_int && lower.is_none() && upper.is_none() {
            return None;
        }
        let end = |bound: Option<Bound>, open: f64, next: fn(f64) -> f64| match bound {
            None => open,
            Some(bound) if bound.inclusive || !is_int => bound.value,
            Some(bound) => next(bound.value),
        };
        Some(Range {
            least: end(lower, f64::NEG_INFINITY, |excluded| excluded.floor() + 1.0),
            greatest: end(upper, f64::INFINITY, |excluded| excluded.ceil() - 1.0),
            is_int,
        })
    }

    fn is_bounded(self) -> bool {
        self.least.is_finite() && self.greatest.is_finite()
    }

    /// Whether it can be infinite; of an int nothing is, also where its end is not known.
    fn can_be_infinite(self) -> bool {
        !self.is_int && !self.is_bounded()
    }

    fn contains_zero(self) -> bool {
        self.least <= 0.0 && self.greatest >= 0.0
    }

    fn ends(self) -> [f64; 2] {
        [self.least, self.greatest]
    }
}

/// A range as a refinement. Ends beyond what ints are exact as floats are moved outward.
fn between(least: f64, greatest: f64) -> Refinement {
    let mut refinement = Refinement::not_null();
    let outward = |end: f64, next: fn(f64) -> f64| if end.abs() < EXACT { end } else { next(end) };
    if least.is_finite() {
        refinement = refinement.with_lower(Bound::inclusive(outward(least, f64::next_down) + 0.0));
    }
    if greatest.is_finite() {
        refinement = refinement.with_upper(Bound::inclusive(outward(greatest, f64::next_up) + 0.0));
    }
    refinement
}

/// The refinement for two operands. At least one is unknown.
fn of_two(arguments: &[Value], range: impl FnOnce(Range, Range) -> Option<Refinement>) -> Refinement {
    let ranges = match arguments {
        [a, b] if a.is_unknown() || b.is_unknown() => Range::of(a).zip(Range::of(b)),
        _ => None,
    };
    ranges
        .and_then(|(a, b)| range(a, b))
        .unwrap_or_else(Refinement::not_null)
}

/// The refinement for one unknown operand.
fn of_one(arguments: &[Value], range: impl FnOnce(Range) -> Refinement) -> Refinement {
    match arguments {
        [a, ..] if a.unmarked().is_unknown() => Range::of(a.unmarked()).map(range),
        _ => None,
    }
    .unwrap_or_else(Refinement::not_null)
}

/// Of `a + b`.
#[must_use]
pub fn sum(arguments: &[Value], _: &Type) -> Refinement {
    of_two(arguments, |a, b| {
        let is_certain = !(a.can_be_infinite() && b.can_be_infinite());
        is_certain.then(|| between(a.least + b.least, a.greatest + b.greatest))
    })
}

/// Of `a - b`.
#[must_use]
pub fn difference(arguments: &[Value], _: &Type) -> Refinement {
    of_two(arguments, |a, b| {
        let is_certain = !(a.can_be_infinite() && b.can_be_infinite());
        is_certain.then(|| between(a.least - b.greatest, a.greatest - b.least))
    })
}

/// Of `a * b`.
#[must_use]
pub fn product(arguments: &[Value], _: &Type) -> Refinement {
    of_two(arguments, |a, b| {
        if a.can_be_infinite() && b.contains_zero() || b.can_be_infinite() && a.contains_zero() {
            return None;
        }
        // Zero times an end that is not known is zero: no value is infinite then.
        corners(a, b, |a, b| if a == 0.0 || b == 0.0 { 0.0 } else { a * b })
    })
}

/// Of `a / b`.
#[must_use]
pub fn quotient(arguments: &[Value], _: &Type) -> Refinement {
    of_two(arguments, |a, b| {
        if b.contains_zero() || a.can_be_infinite() && b.can_be_infinite() {
            return None;
        }
        corners(a, b, |a, b| a / b)
    })
}

/// The range between the least and the greatest result of two ends; none where one of them is no number.
fn corners(a: Range, b: Range, operation: impl Fn(f64, f64) -> f64) -> Option<Refinement> {
    let results = a.ends().map(|a| b.ends().map(|b| operation(a, b)));
    let results = results.as_flattened();
    if results.iter().any(|result| result.is_nan()) {
        return None;
    }
    let least = results.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = results.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Some(between(least, greatest))
}

/// Of the remainder of `a / b`, which has the sign of `a`.
#[must_use]
pub fn remainder(arguments: &[Value], _: &Type) -> Refinement {
    of_two(arguments, |a, b| {
        if a.can_be_infinite() {
            return None;
        }
        let size = b.least.abs().max(b.greatest.abs());
        let least = if a.least >= 0.0 { 0.0 } else { a.least.max(-size) };
        let greatest = if a.greatest <= 0.0 {
            0.0
        } else {
            a.greatest.min(size)
        };
        Some(between(least, greatest))
    })
}

/// Of `-a`.
#[must_use]
pub fn negation(arguments: &[Value], _: &Type) -> Refinement {
    of_one(arguments, |a| between(-a.greatest, -a.least))
}

/// Of `a` without its sign.
#[must_use]
pub fn absolute(arguments: &[Value], _: &Type) -> Refinement {
    of_one(arguments, |a| {
        let (one, other) = (a.least.abs(), a.greatest.abs());
        let least = if a.contains_zero() { 0.0 } else { one.min(other) };
        between(least, one.max(other))
    })
}

/// Of `a` rounded by a function that keeps the order of numbers.
pub fn rounded(arguments: &[Value], round: fn(f64) -> f64) -> Refinement {
    of_one(arguments, |a| between(round(a.least), round(a.greatest)))
}

/// Of the least of the arguments.
#[must_use]
pub fn least(arguments: &[Value], _: &Type) -> Refinement {
    extreme(arguments, f64::min)
}

/// Of the greatest of the arguments.
#[must_use]
pub fn greatest(arguments: &[Value], _: &Type) -> Refinement {
    extreme(arguments, f64::max)
}

fn extreme(arguments: &[Value], chosen: fn(f64, f64) -> f64) -> Refinement {
    if !arguments.iter().any(Value::is_unknown) {
        return Refinement::not_null();
    }
    let ranges: Option<Vec<Range>> = arguments.iter().map(Range::of).collect();
    let combined = ranges.and_then(|ranges| {
        ranges
            .into_iter()
            .map(|range| (range.least, range.greatest))
            .reduce(|a, b| (chosen(a.0, b.0), chosen(a.1, b.1)))
    });
    combined.map_or_else(Refinement::not_null, |(least, greatest)| between(least, greatest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unknown(ty: Type, lower: Option<Bound>, upper: Option<Bound>) -> Value {
        let refinement = Refinement {
            not_null: true,
            lower,
            upper,
            ..Refinement::default()
        };
        Value::refined(ty, refinement)
    }

    fn shown(refine: fn(&[Value], &Type) -> Refinement, arguments: &[Value]) -> String {
        refine(arguments, &arguments[0].ty()).to_string()
    }

    #[test]
    fn ranges_of_ints_follow_from_those_of_the_operands() {
        let above_two = || unknown(Type::Int, Some(Bound::exclusive(2.0)), None);
        let small = || {
            unknown(
                Type::Int,
                Some(Bound::inclusive(-2.0)),
                Some(Bound::exclusive(5.0)),
            )
        };
        let any = || Value::unknown(Type::Int);
        let cases = [
            (shown(sum, &[above_two(), Value::Int(3)]), "not null, at least 6"),
            (
                shown(sum, &[small(), small()]),
                "not null, at least -4, at most 8",
            ),
            (
                shown(difference, &[Value::Int(10), small()]),
                "not null, at least 6, at most 12",
            ),
            (
                shown(product, &[Value::Int(3), above_two()]),
                "not null, at least 9",
            ),
            (
                shown(product, &[Value::Int(-3), above_two()]),
                "not null, at most -9",
            ),
            (
                shown(product, &[Value::Int(0), any()]),
                "not null, at least 0, at most 0",
            ),
            (
                shown(product, &[small(), small()]),
                "not null, at least -8, at most 16",
            ),
            (shown(product, &[any(), any()]), "not null"),
            (
                shown(quotient, &[above_two(), Value::Int(2)]),
                "not null, at least 1.5",
            ),
            (
                shown(quotient, &[small(), Value::Int(-2)]),
                "not null, at least -2, at most 1",
            ),
            (shown(quotient, &[Value::Int(1), small()]), "not null"),
            (shown(quotient, &[Value::Int(1), any()]), "not null"),
            (
                shown(remainder, &[any(), Value::Int(3)]),
                "not null, at least -3, at most 3",
            ),
            (
                shown(remainder, &[above_two(), Value::Int(-3)]),
                "not null, at least 0, at most 3",
            ),
            (shown(negation, &[small()]), "not null, at least -4, at most 2"),
            (shown(absolute, &[any()]), "not null, at least 0"),
            (shown(absolute, &[small()]), "not null, at least 0, at most 4"),
            (
                shown(least, &[above_two(), small()]),
                "not null, at least -2, at most 4",
            ),
            (shown(greatest, &[above_two(), any()]), "not null, at least 3"),
        ];
        for (found, wanted) in cases {
            assert_eq!(found, wanted);
        }
    }

    #[test]
    fn nothing_is_certain_where_a_float_can_become_nan() {
        let positive = || unknown(Type::Float, Some(Bound::inclusive(0.0)), None);
        let any = || Value::unknown(Type::Float);
        let zero = || Value::float(0.0);
        for (refine, arguments) in [
            (sum as fn(&[Value], &Type) -> Refinement, [any(), zero()]),
            (difference, [positive(), positive()]),
            (product, [zero(), positive()]),
            (quotient, [positive(), positive()]),
            (remainder, [positive(), Value::float(3.0)]),
            (greatest, [any(), zero()]),
        ] {
            assert_eq!(shown(refine, &arguments), "not null");
        }
        assert_eq!(shown(absolute, &[any()]), "not null");
        assert_eq!(
            shown(sum, &[positive(), Value::float(2.0)]),
            "not null, at least 2"
        );
    }
}
