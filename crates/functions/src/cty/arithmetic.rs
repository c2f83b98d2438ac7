//! Numbers. Of an int and a float the result is a float; an int that overflows is an error.

use setpoint_value::native::{FromArgument, IntoAnswer, Undecoded};
use setpoint_value::{CallError, ParameterFlags, Type, Value, compare_numbers, function, ranges, whole};

use super::{DYNAMIC, MODULE, argument, flags, not_null, outer_marks, refuse, text};

const MARKED_DYNAMIC: &[ParameterFlags] = &[flags("!#")];

/// The sum.
///
/// Of two ints one that does not fit an int fails in a way that `<|>` catches.
#[function(
    flags = DYNAMIC,
    refine = ranges::sum,
    example(call = "cty.add(1, 2)", result = "3")
)]
pub fn add(
    /// A number.
    a: Number,
    /// The number to add.
    b: Number,
) -> Result<Number, CallError> {
    combined(a, b, i64::checked_add, |a, b| a + b)
}

/// The difference.
#[function(
    flags = DYNAMIC,
    refine = ranges::difference,
    example(call = "cty.subtract(1, 2)", result = "-1")
)]
pub fn subtract(
    /// A number.
    a: Number,
    /// The number to subtract.
    b: Number,
) -> Result<Number, CallError> {
    combined(a, b, i64::checked_sub, |a, b| a - b)
}

/// The product.
#[function(
    flags = DYNAMIC,
    refine = ranges::product,
    example(call = "cty.multiply(1.5, 2.0)", result = "3.0")
)]
pub fn multiply(
    /// A number.
    a: Number,
    /// The number to multiply by.
    b: Number,
) -> Result<Number, CallError> {
    combined(a, b, i64::checked_mul, |a, b| a * b)
}

/// The quotient, always a float.
///
/// Division by zero fails in a way that `<|>` catches.
#[function(
    flags = DYNAMIC,
    refine = ranges::quotient,
    example(call = "cty.divide(7, 2)", result = "3.5")
)]
pub fn divide(
    /// The dividend.
    a: Number,
    /// The divisor, not zero.
    b: Number,
) -> Result<f64, CallError> {
    let (a, b) = (a.as_float(), b.as_float());
    if b == 0.0 {
        return refuse(1, "can't divide by zero");
    }
    Ok(a / b)
}

/// The remainder of a division, with the sign of `a`.
///
/// Division by zero fails in a way that `<|>` catches.
#[function(
    flags = DYNAMIC,
    refine = ranges::remainder,
    example(call = "cty.modulo(7, 3)", result = "1"),
    example(call = "cty.modulo(-7, 3)", result = "-1")
)]
pub fn modulo(
    /// The dividend.
    a: Number,
    /// The divisor, not zero.
    b: Number,
) -> Result<Number, CallError> {
    if b.as_float() == 0.0 {
        return refuse(1, "can't divide by zero");
    }
    // The smallest int by −1 has no quotient, but its remainder is 0.
    combined(a, b, |a, b| Some(a.wrapping_rem(b)), |a, b| a % b)
}

/// The number with the other sign.
#[function(
    signature = "func(num number) number",
    flags = MARKED_DYNAMIC,
    refine = ranges::negation,
    example(call = "cty.negate(3)", result = "-3")
)]
pub fn negate(
    /// Any number.
    num: &Value,
) -> Result<Value, CallError> {
    with_sign(num, i64::checked_neg, |f| -f)
}

/// The number without its sign.
#[function(
    signature = "func(num number) number",
    flags = MARKED_DYNAMIC,
    refine = ranges::absolute,
    example(call = "cty.absolute(-3)", result = "3")
)]
pub fn absolute(
    /// Any number.
    num: &Value,
) -> Result<Value, CallError> {
    with_sign(num, i64::checked_abs, f64::abs)
}

/// A number that keeps its marks.
fn with_sign(num: &Value, ints: fn(i64) -> Option<i64>, floats: fn(f64) -> f64) -> Result<Value, CallError> {
    let result = match num.unmarked() {
        Value::Int(int) => Value::Int(ints(*int).ok_or_else(overflow)?),
        Value::Float(float) => Value::float(floats(float.0)),
        other => return Err(CallError::fatal(format!("{} is not number", other.ty()))),
    };
    Ok(result.with_marks(&outer_marks([num])))
}

/// The whole part: rounded toward zero.
#[function(
    flags = DYNAMIC,
    refine = |arguments, _| ranges::rounded(arguments, f64::trunc),
    example(call = "cty.int(-1.9)", result = "-1")
)]
pub fn int(
    /// Any number.
    num: Number,
) -> Result<i64, CallError> {
    rounded(num, f64::trunc)
}

/// The next whole number up; a whole number stays.
#[function(
    refine = |arguments, _| ranges::rounded(arguments, f64::ceil),
    example(call = "cty.ceil(1.2)", result = "2")
)]
pub fn ceil(
    /// Any number.
    num: Number,
) -> Result<i64, CallError> {
    rounded(num, f64::ceil)
}

/// The next whole number down; a whole number stays.
#[function(
    refine = |arguments, _| ranges::rounded(arguments, f64::floor),
    example(call = "cty.floor(-1.2)", result = "-2")
)]
pub fn floor(
    /// Any number.
    num: Number,
) -> Result<i64, CallError> {
    rounded(num, f64::floor)
}

fn rounded(num: Number, round: fn(f64) -> f64) -> Result<i64, CallError> {
    match num {
        Number::Int(int) => Ok(int),
        Number::Float(float) => match whole(round(float)) {
            Some(int) => Ok(int),
            None => refuse(0, "has no whole part that fits an int"),
        },
    }
}

/// −1, 0 or 1, as the number is below, at or above zero.
#[function(
    refine = |arguments, _| ranges::rounded(arguments, sign),
    example(call = "cty.signum(-2.5)", result = "-1")
)]
pub fn signum(
    /// Any number.
    num: Number,
) -> Result<i64, CallError> {
    match num {
        Number::Int(int) => Ok(int.signum()),
        Number::Float(float) => match float.partial_cmp(&0.0) {
            Some(order) => Ok(order as i64),
            None => refuse(0, "is not a number"),
        },
    }
}

/// −1, 0 or 1; 0 for the zeros, which have a sign of their own.
fn sign(number: f64) -> f64 {
    if number == 0.0 { 0.0 } else { number.signum() }
}

/// The logarithm of `num` to a base.
///
/// What has no logarithm fails in a way that `<|>` catches.
#[function(
    refine = not_null,
    example(call = "cty.log(1000, 10)", result = "3.0"),
    example(call = "cty.log(8, 2)", result = "3.0")
)]
pub fn log(
    /// Any number.
    num: Number,
    /// The base of the logarithm: positive, and not 1.
    base: Number,
) -> Result<f64, CallError> {
    let (num, base) = (num.as_float(), base.as_float());
    if num.is_nan() || num <= 0.0 {
        return refuse(0, "has no logarithm");
    }
    if base.is_nan() || base <= 0.0 || base == 1.0 {
        return refuse(1, "is not a base of logarithms");
    }
    // The usual bases exactly.
    Ok(match base {
        2.0 => num.log2(),
        10.0 => num.log10(),
        _ => num.ln() / base.ln(),
    })
}

/// `num` to a power.
#[function(
    refine = not_null,
    example(call = "cty.pow(2, 10)", result = "1024.0")
)]
pub fn pow(
    /// Any number.
    num: Number,
    /// The exponent.
    power: Number,
) -> Result<f64, CallError> {
    let (num, power) = (num.as_float(), power.as_float());
    let result = num.powf(power);
    if result.is_nan() && !num.is_nan() && !power.is_nan() {
        return refuse(1, "this power of a negative number is not a number");
    }
    Ok(result)
}

/// The least of the numbers.
#[function(
    raw,
    signature = "func(first number, more number…) number",
    parameters(
        /// A number.
        first,
        /// Further numbers.
        more,
    ),
    flags = DYNAMIC,
    refine = ranges::least,
    example(call = "cty.min(3, 1, 2)", result = "1")
)]
pub fn min(arguments: &[Value], _: &Type) -> Result<Value, CallError> {
    extreme(arguments, std::cmp::Ordering::Less)
}

/// The greatest of the numbers.
#[function(
    raw,
    signature = "func(first number, more number…) number",
    parameters(
        /// A number.
        first,
        /// Further numbers.
        more,
    ),
    flags = DYNAMIC,
    refine = ranges::greatest,
    example(call = "cty.max(3.5, 1.0)", result = "3.5")
)]
pub fn max(arguments: &[Value], _: &Type) -> Result<Value, CallError> {
    extreme(arguments, std::cmp::Ordering::Greater)
}

fn extreme(arguments: &[Value], wanted: std::cmp::Ordering) -> Result<Value, CallError> {
    let mut found = argument(arguments, 0)?;
    for candidate in arguments.iter().skip(1) {
        match compare_numbers(candidate, found) {
            Some(order) if order == wanted => found = candidate,
            Some(_) => {}
            None => return Ok(Value::float(f64::NAN)),
        }
    }
    // Beside a float an int becomes one.
    match found {
        Value::Int(int) if arguments.iter().any(|a| matches!(a, Value::Float(_))) => {
            Ok(Value::float(*int as f64))
        }
        found => Ok(found.clone()),
    }
}

/// The int that a text spells in a base from 2 to 62.
///
/// Up to base 36 letters count in either case; above, capitals follow the small ones. Other text, or a number that does not
/// fit an int, fails in a way that `<|>` catches.
#[function(
    signature = "func(number str, base int) int",
    signature = "func(number int, base int) int",
    refine = not_null,
    example(call = r#"cty.parse_int("ff", 16)"#, result = "255"),
    example(call = "cty.parse_int(101, 2)", result = "5")
)]
pub fn parse_int(
    /// The digits as text, with an optional sign; or an int, whose decimal digits are read.
    number: &Value,
    /// The base, 2 to 62.
    base: i64,
) -> Result<i64, CallError> {
    if !(2..=62).contains(&base) {
        return refuse(1, "the base is between 2 and 62");
    }
    let spelt = match number {
        Value::Int(int) => int.to_string(),
        _ => text(std::slice::from_ref(number), 0)?.to_owned(),
    };
    let (negative, digits) = match spelt.as_bytes() {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    let mut result: Option<i128> = (!digits.is_empty()).then_some(0);
    for digit in digits {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'z' => digit - b'a' + 10,
            b'A'..=b'Z' if base <= 36 => digit - b'A' + 10,
            b'A'..=b'Z' => digit - b'A' + 36,
            _ => u8::MAX,
        };
        result = result.filter(|_| i64::from(value) < base);
        result = result.map(|r| r * i128::from(base) + i128::from(value));
        if result.is_some_and(|r| r > i128::from(i64::MAX) + 1) {
            return refuse(0, "does not fit an int");
        }
    }
    let Some(result) = result else {
        return refuse(0, format!("is not a whole number in base {base}"));
    };
    match i64::try_from(if negative { -result } else { result }) {
        Ok(int) => Ok(int),
        Err(_) => refuse(0, "does not fit an int"),
    }
}

/// The result of two ints or of two floats.
fn combined(
    a: Number,
    b: Number,
    ints: fn(i64, i64) -> Option<i64>,
    floats: fn(f64, f64) -> f64,
) -> Result<Number, CallError> {
    match (a, b) {
        (Number::Int(a), Number::Int(b)) => ints(a, b).map(Number::Int).ok_or_else(overflow),
        _ => Ok(Number::Float(floats(a.as_float(), b.as_float()))),
    }
}

fn overflow() -> CallError {
    CallError::catchable("the result does not fit an int")
}

/// An argument or result of type `number`.
#[derive(Clone, Copy)]
pub enum Number {
    /// A value of type `int`.
    Int(i64),
    /// A value of type `float`.
    Float(f64),
}

impl Number {
    fn as_float(self) -> f64 {
        match self {
            Number::Int(int) => int as f64,
            Number::Float(float) => float,
        }
    }
}

impl<'a> FromArgument<'a> for Number {
    fn from_argument(value: &'a Value) -> Result<Self, Undecoded> {
        match value.unmarked() {
            Value::Float(float) => Ok(Number::Float(float.0)),
            other => i64::from_argument(other).map(Number::Int),
        }
    }
}

impl IntoAnswer for Number {
    fn into_answer(self, ty: &Type) -> Result<Value, CallError> {
        match self {
            Number::Int(int) => int.into_answer(ty),
            Number::Float(float) => float.into_answer(ty),
        }
    }
}
