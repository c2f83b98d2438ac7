//! Refinements: what is certain about an unknown, how two of them combine, and what they decide.
//!
//! A refinement only ever shrinks what an unknown can be. One that contradicts what is known is a fault of whoever
//! stated it and comes back as a [`Contradiction`].

use std::cmp::Ordering;
use std::fmt;

use unicode_segmentation::UnicodeSegmentation;

use crate::{Bound, Equality, Refinement, Set, Str, Type, Value, conforms, equals};

/// Above this an int is no longer exact as a float.
pub(crate) const EXACT: f64 = 9_007_199_254_740_992.0;

/// A list whose length is certain becomes a list of unknowns up to this length.
const LONGEST_COLLAPSED: usize = 1024;

/// A refinement that cannot be true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contradiction {
    /// What contradicts what, without values.
    pub message: String,
}

impl Contradiction {
    fn new(message: impl Into<String>) -> Contradiction {
        Contradiction {
            message: message.into(),
        }
    }
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Contradiction {}

impl Bound {
    /// The number itself is allowed.
    #[must_use]
    pub fn inclusive(value: f64) -> Bound {
        Bound {
            value,
            inclusive: true,
        }
    }

    /// The number itself is not allowed.
    #[must_use]
    pub fn exclusive(value: f64) -> Bound {
        Bound {
            value,
            inclusive: false,
        }
    }

    /// A bound that no number at or above `value` violates.
    fn not_above(value: i64) -> Bound {
        let nearest = value as f64;
        Bound::inclusive(if nearest.abs() < EXACT {
            nearest
        } else {
            nearest.next_down()
        })
    }

    /// A bound that no number at or below `value` violates.
    fn not_below(value: i64) -> Bound {
        let nearest = value as f64;
        Bound::inclusive(if nearest.abs() < EXACT {
            nearest
        } else {
            nearest.next_up()
        })
    }
}

impl Refinement {
    /// Only that it is not null.
    #[must_use]
    pub fn not_null() -> Refinement {
        Refinement {
            not_null: true,
            ..Refinement::default()
        }
    }

    /// Whether it says nothing.
    #[must_use]
    pub fn is_trivial(&self) -> bool {
        *self == Refinement::default()
    }

    /// Not null, and begins with this text, as far as what follows could not change it; see [`known_prefix`].
    #[must_use]
    pub fn with_prefix(self, prefix: impl Into<Str>) -> Refinement {
        let prefix: Str = prefix.into();
        let kept = known_prefix(prefix.as_bytes());
        Refinement {
            not_null: true,
            prefix: (!kept.is_empty()).then(|| Str::from(kept)),
            ..self
        }
    }

    /// Not null, and a number not below this.
    #[must_use]
    pub fn with_lower(self, bound: Bound) -> Refinement {
        Refinement {
            not_null: true,
            lower: Some(bound),
            ..self
        }
    }

    /// Not null, and a number not above this.
    #[must_use]
    pub fn with_upper(self, bound: Bound) -> Refinement {
        Refinement {
            not_null: true,
            upper: Some(bound),
            ..self
        }
    }

    /// Not null, and a collection of so many elements.
    #[must_use]
    pub fn with_length(self, minimum: usize, maximum: Option<usize>) -> Refinement {
        Refinement {
            not_null: true,
            minimum_length: (minimum > 0).then_some(minimum),
            maximum_length: maximum,
            ..self
        }
    }

    /// Both of two refinements of one value.
    ///
    /// # Errors
    /// When both cannot be true.
    pub fn combined(&self, other: &Refinement) -> Result<Refinement, Contradiction> {
        let prefix = match (&self.prefix, &other.prefix) {
            (Some(a), Some(b)) if a.as_bytes().starts_with(b.as_bytes()) => Some(a.clone()),
            (Some(a), Some(b)) if b.as_bytes().starts_with(a.as_bytes()) => Some(b.clone()),
            (Some(_), Some(_)) => return Err(Contradiction::new("two prefixes exclude each other")),
            (a, b) => a.clone().or_else(|| b.clone()),
        };
        let combined = Refinement {
            not_null: self.not_null || other.not_null,
            prefix,
            lower: tighter(self.lower, other.lower, Ordering::Greater),
            upper: tighter(self.upper, other.upper, Ordering::Less),
            minimum_length: self.minimum_length.max(other.minimum_length),
            maximum_length: match (self.maximum_length, other.maximum_length) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            },
        };
        if let (Some(lower), Some(upper)) = (combined.lower, combined.upper)
            && (lower.value > upper.value
                || (lower.value == upper.value && !(lower.inclusive && upper.inclusive)))
        {
            return Err(Contradiction::new("the lower bound is above the upper bound"));
        }
        if let (Some(minimum), Some(maximum)) = (combined.minimum_length, combined.maximum_length)
            && minimum > maximum
        {
            return Err(Contradiction::new(
                "the least number of elements is above the greatest",
            ));
        }
        Ok(combined)
    }

    /// Whether a known value is what this describes. Unknown parts of a collection do not matter.
    ///
    /// # Errors
    /// The first part that is not true.
    pub fn check(&self, value: &Value) -> Result<(), Contradiction> {
        let value = value.unmarked();
        match value {
            Value::Null(_) if self.not_null => return Err(Contradiction::new("null where null is excluded")),
            Value::Null(_) | Value::Unknown(_) => return Ok(()),
            _ => {}
        }
        if let Some(prefix) = &self.prefix
            && !matches!(value, Value::Str(s) if s.as_bytes().starts_with(prefix.as_bytes()))
        {
            return Err(Contradiction::new("another prefix than was certain"));
        }
        if self.lower.is_some_and(|bound| !above(value, bound)) {
            return Err(Contradiction::new("a number below its lower bound"));
        }
        if self.upper.is_some_and(|bound| !below(value, bound)) {
            return Err(Contradiction::new("a number above its upper bound"));
        }
        if self.minimum_length.is_some() || self.maximum_length.is_some() {
            let fits = length_range(value).is_some_and(|(least, most)| {
                self.minimum_length
                    .is_none_or(|minimum| most.is_none_or(|most| most >= minimum))
                    && self.maximum_length.is_none_or(|maximum| least <= maximum)
            });
            if !fits {
                return Err(Contradiction::new("another number of elements than was certain"));
            }
        }
        Ok(())
    }

    /// The one value of type `ty` that is left, if so; or a list of unknowns.
    pub(crate) fn collapsed(&self, ty: &Type) -> Option<Value> {
        if !self.not_null {
            return None;
        }
        match ty {
            Type::Optional(inner) => self.collapsed(inner),
            Type::Int => {
                let (lower, upper) = (self.lower?, self.upper?);
                let least = if lower.inclusive {
                    lower.value.ceil()
                } else {
                    lower.value.floor() + 1.0
                };
                let most = if upper.inclusive {
                    upper.value.floor()
                } else {
                    upper.value.ceil() - 1.0
                };
                (least == most && least.abs() < EXACT).then_some(Value::Int(least as i64))
            }
            Type::Float => {
                let (lower, upper) = (self.lower?, self.upper?);
                (lower.value == upper.value && lower.inclusive && upper.inclusive)
                    .then(|| Value::float(lower.value))
            }
            Type::List(element) => {
                let length = self.minimum_length.unwrap_or(0);
                (self.maximum_length == Some(length) && length <= LONGEST_COLLAPSED).then(|| {
                    let items = std::iter::repeat_n(Value::unknown((**element).clone()), length);
                    Value::list((**element).clone(), items)
                })
            }
            Type::Set(element) => {
                let length = self.minimum_length.unwrap_or(0);
                (self.maximum_length == Some(length) && length <= 1).then(|| {
                    let items = std::iter::repeat_n(Value::unknown((**element).clone()), length);
                    Value::Set(Set::new((**element).clone(), items))
                })
            }
            Type::Map(_) if self.maximum_length == Some(0) => Value::zero(ty),
            _ => None,
        }
    }

    /// Whether all it says can be said about values of a type.
    fn applies_to(&self, ty: &Type) -> bool {
        let ty = match ty {
            Type::Optional(inner) => inner,
            ty => ty,
        };
        (self.prefix.is_none() || *ty == Type::Str)
            && ((self.lower.is_none() && self.upper.is_none())
                || matches!(ty, Type::Int | Type::Float | Type::Number))
            && ((self.minimum_length.is_none() && self.maximum_length.is_none())
                || matches!(ty, Type::List(_) | Type::Set(_) | Type::Map(_)))
    }
}

impl fmt::Display for Refinement {
    /// For people: `not null, begins with "ab"`; empty when it says nothing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if self.not_null {
            parts.push("not null".to_owned());
        }
        if let Some(prefix) = &self.prefix {
            parts.push(format!("begins with {}", crate::quote(prefix.as_bytes())));
        }
        let number = |value: f64| crate::format_float(value);
        if let Some(bound) = self.lower {
            let word = if bound.inclusive { "at least" } else { "above" };
            parts.push(format!("{word} {}", number(bound.value)));
        }
        if let Some(bound) = self.upper {
            let word = if bound.inclusive { "at most" } else { "below" };
            parts.push(format!("{word} {}", number(bound.value)));
        }
        match (self.minimum_length, self.maximum_length) {
            (None, None) => {}
            (Some(least), None) => parts.push(format!("{least} or more elements")),
            (least, Some(most)) => parts.push(format!("{} to {most} elements", least.unwrap_or(0))),
        }
        f.write_str(&parts.join(", "))
    }
}

impl Value {
    /// The value with a further refinement. A known value is only checked; an unknown of dynamic type stays as it is.
    ///
    /// # Errors
    /// When the refinement cannot be true.
    pub fn refine(&self, refinement: &Refinement) -> Result<Value, Contradiction> {
        match self {
            Value::Marked(inner) => Ok(inner.0.refine(refinement)?.with_marks(&inner.1)),
            Value::Unknown(unknown) if unknown.ty == Type::Dynamic => Ok(self.clone()),
            Value::Unknown(unknown) => {
                if !refinement.applies_to(&unknown.ty) {
                    let message = format!("what is certain cannot be said of {}", unknown.ty);
                    return Err(Contradiction::new(message));
                }
                let combined = unknown.refinement.combined(refinement)?;
                Ok(Value::refined(unknown.ty.clone(), combined))
            }
            known => {
                refinement.check(known)?;
                Ok(self.clone())
            }
        }
    }

    /// Whether this value, which may be or contain unknowns, can turn out to be `candidate`. Marks do not matter.
    #[must_use]
    pub fn could_become(&self, candidate: &Value) -> bool {
        match (self.unmarked(), candidate.unmarked()) {
            (Value::Unknown(unknown), candidate) => {
                if unknown.ty == Type::Dynamic {
                    return true;
                }
                let typed = match candidate {
                    Value::Null(_) => !unknown.refinement.not_null,
                    other => conforms(&other.ty(), &unknown.ty).is_ok(),
                };
                typed && unknown.refinement.check(candidate).is_ok()
            }
            (Value::List(a), Value::List(b)) => {
                a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| a.could_become(b))
            }
            (Value::Tuple(a), Value::Tuple(b)) => {
                a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| a.could_become(b))
            }
            (Value::Struct(a), Value::Struct(b)) => {
                a.fields().len() == b.fields().len()
                    && a.iter()
                        .all(|(name, value)| b.get(name).is_some_and(|other| value.could_become(other)))
            }
            (Value::Map(a), Value::Map(b)) => {
                a.len() == b.len()
                    && a.iter().zip(b.iter()).all(|((k, a), (l, b))| {
                        (k == l || equals(k, l) == Equality::Equal) && a.could_become(b)
                    })
            }
            (Value::Set(a), Value::Set(b)) if !self.is_wholly_known() => b.len() <= a.len().max(1),
            (a, b) => a == b || equals(a, b) != Equality::Unequal || (a.is_null() && b.is_null()),
        }
    }
}

/// What of a prefix stays as it is whatever follows: without a last grapheme cluster that a combining character could
/// join, and without bytes that are not (yet) text. Control characters always end a cluster, and nothing composes with a
/// blank or with ASCII punctuation, `<`, `=` and `>` apart; so usual delimiters are kept.
///
/// ```
/// use setpoint_value::known_prefix;
/// assert_eq!(known_prefix(b"https://"), b"https://");
/// assert_eq!(known_prefix(b"cafe"), b"caf");
/// ```
#[must_use]
pub fn known_prefix(bytes: &[u8]) -> &[u8] {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => match std::str::from_utf8(&bytes[..error.valid_up_to()]) {
            Ok(text) if error.error_len().is_none() => text,
            // What follows an invalid byte is not text in any case; bytes before it are certain.
            _ => return &bytes[..error.valid_up_to()],
        },
    };
    match text.chars().next_back() {
        None => b"",
        Some(last) if ends_its_cluster(last) => text.as_bytes(),
        Some(_) => {
            let start = text
                .grapheme_indices(true)
                .next_back()
                .map_or(0, |(start, _)| start);
            &text.as_bytes()[..start]
        }
    }
}

fn ends_its_cluster(c: char) -> bool {
    // A carriage return forms one cluster with a line feed.
    (c.is_ascii_control() && c != '\r')
        || c == ' '
        || (c.is_ascii_punctuation() && !matches!(c, '<' | '=' | '>'))
}

/// How many elements a collection has: at least, and at most if that is certain. None for what is no collection.
#[must_use]
pub fn length_range(value: &Value) -> Option<(usize, Option<usize>)> {
    let exactly = |length| Some((length, Some(length)));
    match value.unmarked() {
        Value::List(list) => exactly(list.len()),
        Value::Map(map) => exactly(map.len()),
        Value::Set(set) => exactly(set.len()),
        Value::Tuple(items) => exactly(items.len()),
        Value::Struct(s) => exactly(s.fields().len()),
        Value::Unknown(unknown) => match &unknown.ty {
            Type::List(_) | Type::Set(_) | Type::Map(_) => Some((
                unknown.refinement.minimum_length.unwrap_or(0),
                unknown.refinement.maximum_length,
            )),
            Type::Tuple(types) => exactly(types.len()),
            Type::Struct(s) => exactly(s.fields.len()),
            _ => None,
        },
        _ => None,
    }
}

/// The ends of the range in which a number is, known or not. A known int beyond 2⁵³ has bounds a little outside it.
#[must_use]
pub fn number_range(value: &Value) -> (Option<Bound>, Option<Bound>) {
    match value.unmarked() {
        Value::Int(i) => (Some(Bound::not_above(*i)), Some(Bound::not_below(*i))),
        Value::Float(f) if !f.0.is_nan() => (Some(Bound::inclusive(f.0)), Some(Bound::inclusive(f.0))),
        Value::Unknown(unknown) => (unknown.refinement.lower, unknown.refinement.upper),
        _ => (None, None),
    }
}

/// The exact order of two known numbers, of whichever type; none with `NaN` or something that is no known number.
#[must_use]
pub fn compare_numbers(a: &Value, b: &Value) -> Option<Ordering> {
    match (a.unmarked(), b.unmarked()) {
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
        (Value::Float(a), Value::Float(b)) => a.0.partial_cmp(&b.0),
        (Value::Int(a), Value::Float(b)) => int_with_float(*a, b.0),
        (Value::Float(a), Value::Int(b)) => int_with_float(*b, a.0).map(Ordering::reverse),
        _ => None,
    }
}

fn int_with_float(int: i64, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    // Both limits are exact as floats, so that the truncation below is in range.
    if float >= 9_223_372_036_854_775_808.0 {
        return Some(Ordering::Less);
    }
    if float < -9_223_372_036_854_775_808.0 {
        return Some(Ordering::Greater);
    }
    let whole = float.trunc();
    Some(
        int.cmp(&(whole as i64))
            .then_with(|| 0.0.partial_cmp(&(float - whole)).unwrap_or(Ordering::Equal)),
    )
}

/// Whether `a < b` (or `a <= b`), as far as what is known of the two numbers decides it. Comparisons with `NaN` are
/// false.
#[must_use]
pub fn less(a: &Value, b: &Value, or_equal: bool) -> Option<bool> {
    if !a.is_unknown() && !b.is_unknown() {
        let order = compare_numbers(a, b);
        return Some(order.is_some_and(|o| o.is_lt() || (or_equal && o.is_eq())));
    }
    let ((a_lower, a_upper), (b_lower, b_upper)) = (number_range(a), number_range(b));
    // Whether every number up to `upper` is below every one from `lower`.
    let apart = |upper: Option<Bound>, lower: Option<Bound>, touching: bool| match (upper, lower) {
        (Some(upper), Some(lower)) => {
            upper.value < lower.value
                || (upper.value == lower.value && (touching || !(upper.inclusive && lower.inclusive)))
        }
        _ => false,
    };
    if apart(a_upper, b_lower, or_equal) {
        Some(true)
    } else if apart(b_upper, a_lower, !or_equal) {
        Some(false)
    } else {
        None
    }
}

fn tighter(a: Option<Bound>, b: Option<Bound>, wanted: Ordering) -> Option<Bound> {
    let tighter = match (a, b) {
        (Some(a), Some(b)) => match a.value.partial_cmp(&b.value) {
            Some(Ordering::Equal) if a.inclusive => b,
            Some(Ordering::Equal) => a,
            Some(order) if order == wanted => a,
            _ => b,
        },
        (a, b) => return a.or(b),
    };
    // The zeros are one bound.
    Some(Bound {
        value: tighter.value + 0.0,
        ..tighter
    })
}

fn above(value: &Value, bound: Bound) -> bool {
    compare_numbers(value, &Value::float(bound.value))
        .is_some_and(|o| o.is_gt() || (bound.inclusive && o.is_eq()))
}

fn below(value: &Value, bound: Bound) -> bool {
    compare_numbers(value, &Value::float(bound.value))
        .is_some_and(|o| o.is_lt() || (bound.inclusive && o.is_eq()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_refinements_give_the_tighter_of_each_part() {
        let a = Refinement::not_null()
            .with_lower(Bound::inclusive(1.0))
            .with_upper(Bound::inclusive(9.0));
        let b = Refinement::default()
            .with_lower(Bound::exclusive(1.0))
            .with_upper(Bound::exclusive(12.0));
        let both = a.combined(&b).unwrap();
        assert_eq!(both.lower, Some(Bound::exclusive(1.0)));
        assert_eq!(both.upper, Some(Bound::inclusive(9.0)));
        assert_eq!(both, b.combined(&a).unwrap());
        let long = Refinement::default().with_prefix("a/b/");
        let short = Refinement::default().with_prefix("a/");
        assert_eq!(long.combined(&short).unwrap(), long);
    }

    #[test]
    fn what_cannot_be_true_is_refused() {
        let low = Refinement::default().with_upper(Bound::inclusive(1.0));
        let high = Refinement::default().with_lower(Bound::exclusive(1.0));
        assert!(low.combined(&high).is_err());
        let prefix = Refinement::default().with_prefix("a/");
        assert!(prefix.combined(&Refinement::default().with_prefix("b/")).is_err());
        assert!(Value::str("b").refine(&prefix).is_err());
        assert!(Value::Null(Type::Str).refine(&Refinement::not_null()).is_err());
        assert!(Value::unknown(Type::Int).refine(&prefix).is_err());
        assert!(Value::Int(3).refine(&low).is_err());
        let three = Refinement::default().with_length(3, Some(3));
        assert!(Value::strings(["a"]).refine(&three).is_err());
        assert!(Value::unknown(Type::Dynamic).refine(&three).is_ok());
    }

    #[test]
    fn a_refinement_that_leaves_one_value_gives_it() {
        let between = Refinement::default()
            .with_lower(Bound::exclusive(1.0))
            .with_upper(Bound::exclusive(3.0));
        assert_eq!(Value::refined(Type::Int, between.clone()), Value::Int(2));
        assert!(Value::refined(Type::Float, between.clone()).is_unknown());
        let nullable = Refinement {
            not_null: false,
            ..between
        };
        assert!(Value::refined(Type::Int, nullable).is_unknown());
        let two = Refinement::default().with_length(2, Some(2));
        let list = Value::refined(Type::list(Type::Str), two.clone());
        assert_eq!(
            list,
            Value::list(Type::Str, [Value::unknown(Type::Str), Value::unknown(Type::Str)])
        );
        assert!(Value::refined(Type::set(Type::Str), two).is_unknown());
        let none = Refinement::default().with_length(0, Some(0));
        assert_eq!(
            Value::refined(Type::map(Type::Str, Type::Int), none),
            Value::map(Type::Str, Type::Int, [])
        );
    }

    #[test]
    fn a_prefix_ends_where_a_combining_character_could_not_reach() {
        assert_eq!(known_prefix("cafe".as_bytes()), b"caf");
        assert_eq!(known_prefix("cafe\u{301}".as_bytes()), b"caf");
        assert_eq!(known_prefix(b"a="), b"a");
        assert_eq!(known_prefix(b"{"), b"{");
        assert_eq!(known_prefix(b"Hello, "), b"Hello, ");
        assert_eq!(known_prefix(b"line\n"), b"line\n");
        assert_eq!(known_prefix(b"line\r"), b"line");
        assert_eq!(known_prefix("\u{1100}".as_bytes()), b"");
        assert_eq!(known_prefix(b"abc\xc3"), b"ab");
        assert_eq!(known_prefix(b"abc\xff"), b"abc");
    }

    #[test]
    fn bounds_of_unknowns_decide_comparisons() {
        let small = Value::refined(Type::Int, Refinement::default().with_upper(Bound::inclusive(4.0)));
        let big = Value::refined(Type::Int, Refinement::default().with_lower(Bound::inclusive(4.0)));
        assert_eq!(less(&small, &Value::Int(5), false), Some(true));
        assert_eq!(less(&small, &big, true), Some(true));
        assert_eq!(less(&small, &big, false), None);
        assert_eq!(less(&big, &Value::Int(4), false), Some(false));
        assert_eq!(less(&big, &Value::Int(4), true), None);
        assert_eq!(less(&Value::Int(3), &Value::float(f64::NAN), true), Some(false));
    }

    #[test]
    fn ints_and_floats_compare_exactly() {
        let big = 9_007_199_254_740_993;
        assert_eq!(
            compare_numbers(&Value::Int(big), &Value::float(EXACT)),
            Some(Ordering::Greater)
        );
        assert_eq!(
            compare_numbers(&Value::float(1e300), &Value::Int(i64::MAX)),
            Some(Ordering::Greater)
        );
        assert_eq!(
            compare_numbers(&Value::Int(-1), &Value::float(-1.5)),
            Some(Ordering::Greater)
        );
        assert_eq!(
            compare_numbers(&Value::Int(i64::MIN), &Value::float(-9.3e18)),
            Some(Ordering::Greater)
        );
    }
}
