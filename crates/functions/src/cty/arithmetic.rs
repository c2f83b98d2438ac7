//! Numbers. Of an int and a float the result is a float; an int that overflows is an error.

use setpoint_value::{CallError, ParameterFlags, Type, Value, compare_numbers, function, whole};

use super::{DYNAMIC, MODULE, argument, flags, not_null, outer_marks, refuse, text};

const MARKED_DYNAMIC: &[ParameterFlags] = &[flags("!#")];

/// The sum.
///
/// Of two ints one that does not fit an int fails in a way that `<|>` catches.
#[function(
    raw,
    signature = "func(a number, b number) number",
    parameters(
        /// A number.
        a,
        /// What is added to it.
        b,
    ),
    flags = DYNAMIC,
    refine = not_null,
    example(call = "cty.add(1, 2)", result = "3")
)]
pub fn add(arguments: &[Value], _: &Type) -> Result<Value, CallError> {
    combined(arguments, i64::checked_add, |a, b| a + b)
}

/// The difference.
#[function(
    raw,
    signature = "func(a number, b number) number",
    parameters(
        /// A number.
        a,
        /// What is taken from it.
        b,
    ),
    flags = DYNAMIC,
    refine = not_null,
    example(call = "cty.subtract(1, 2)", result = "-1")
)]
pub fn subtract(arguments: &[Value], _: &Type) -> Result<Value, CallError> {
    combined(arguments, i64::checked_sub, |a, b| a - b)
}

/// The product.
#[function(
    raw,
    signature = "func(a number, b number) number",
    parameters(
        /// A number.
        a,
        /// How many times to take it.
        b,
    ),
    flags = DYNAMIC,
    refine = not_null,
    example(call = "cty.multiply(1.5, 2.0)", result = "3.0")
)]
pub fn multiply(arguments: &[Value], _: &Type) -> Result<Value, CallError> {
    combined(arguments, i64::checked_mul, |a, b| a * b)
}

/// The quotient, always a float.
///
/// Division by zero fails in a way that `<|>` catches.
#[function(
    raw,
    signature = "func(a number, b number) float",
    parameters(
        /// The dividend.
        a,
        /// The divisor, not zero.
        b,
    ),
    flags = DYNAMIC,
    refine = not_null,
    example(call = "cty.divide(7, 2)", result = "3.5")
)]
pub fn divide(arguments: &[Value], _: &Type) -> Result<Value, CallError> {
    let (a, b) = (float(arguments, 0)?, float(arguments, 1)?);
    if b == 0.0 {
        return refuse(1, "can't divide by zero");
    }
    Ok(Value::float(a / b))
}

/// The remainder of a division, with the sign of `a`.
///
/// Division by zero fails in a way that `<|>` catches.
#[function(
    raw,
    signature = "func(a number, b number) number",
    parameters(
        /// The dividend.
        a,
        /// The divisor, not zero.
        b,
    ),
    flags = DYNAMIC,
    refine = not_null,
    example(call = "cty.modulo(7, 3)", result = "1"),
    example(call = "cty.modulo(-7, 3)", result = "-1")
)]
pub fn modulo(arguments: &[Value], _: &Type) -> Result<Value, CallError> {
    if float(arguments, 1)? == 0.0 {
        return refuse(1, "can't divide by zero");
    }
    // The smallest int by −1 has no quotient, but its remainder is 0.
    combined(arguments, |a, b| Some(a.wrapping_rem(b)), |a, b| a % b)
}

/// The number with the other sign.
#[function(
    raw,
    signature = "func(num number) number",
    parameters(
        /// Any number.
        num,
    ),
    flags = MARKED_DYNAMIC,
    refine = not_null,
    example(call = "cty.negate(3)", result = "-3")
)]
pub fn negate(arguments: &[Value], _: &Type) -> Result<Value, CallError> {
    with_sign(arguments, i64::checked_neg, |f| -f)
}

/// The number without its sign.
#[function(
    raw,
    signature = "func(num number) number",
    parameters(
        /// Any number.
        num,
    ),
    flags = MARKED_DYNAMIC,
    refine = not_null,
    example(call = "cty.absolute(-3)", result = "3")
)]
pub fn absolute(arguments: &[Value], _: &Type) -> Result<Value, CallError> {
    with_sign(arguments, i64::checked_abs, f64::abs)
}

fn with_sign(
    arguments: &[Value],
    ints: fn(i64) -> Option<i64>,
    floats: fn(f64) -> f64,
) -> Result<Value, CallError> {
    let result = match argument(arguments, 0)? {
        Value::Int(int) => Value::Int(ints(*int).ok_or_else(overflow)?),
        other => Value::float(floats(as_float(other).ok_or_else(|| not_a_number(other))?)),
    };
    Ok(result.with_marks(&outer_marks(arguments)))
}

/// The whole part: rounded toward zero.
#[function(
    raw,
    signature = "func(num number) int",
    parameters(
        /// Any number.
        num,
    ),
    flags = DYNAMIC,
    refine = not_null,
    example(call = "cty.int(-1.9)", result = "-1")
)]
pub fn int(arguments: &[Value], _: &Type) -> Result<Value, CallError> {
    rounded(arguments, f64::trunc)
}

/// The next whole number up; a whole number stays.
#[function(
    raw,
    signature = "func(num number) int",
    parameters(
        /// Any number.
        num,
    ),
    refine = not_null,
    example(call = "cty.ceil(1.2)", result = "2")
)]
pub fn ceil(arguments: &[Value], _: &Type) -> Result<Value, CallError> {
    rounded(arguments, f64::ceil)
}

/// The next whole number down; a whole number stays.
#[function(
    raw,
    signature = "func(num number) int",
    parameters(
        /// Any number.
        num,
    ),
    refine = not_null,
    example(call = "cty.floor(-1.2)", result = "-2")
)]
pub fn floor(arguments: &[Value], _: &Type) -> Result<Value, CallError> {
    rounded(arguments, f64::floor)
}

fn rounded(arguments: &[Value], round: fn(f64) -> f64) -> Result<Value, CallError> {
    match argument(arguments, 0)? {
        Value::Int(int) => Ok(Value::Int(*int)),
        other => match as_float(other).and_then(|f| whole(round(f))) {
            Some(int) => Ok(Value::Int(int)),
            None => refuse(0, "has no whole part that fits an int"),
        },
    }
}

/// −1, 0 or 1, as the number is below, at or above zero.
#[function(
    raw,
    signature = "func(num number) int",
    parameters(
        /// Any number.
        num,
    ),
    refine = not_null,
    example(call = "cty.signum(-2.5)", result = "-1")
)]
pub fn signum(arguments: &[Value], _: &Type) -> Result<Value, CallError> {
    match compare_numbers(argument(arguments, 0)?, &Value::Int(0)) {
        Some(order) => Ok(Value::Int(order as i64)),
        None => refuse(0, "is not a number"),
    }
}

/// The logarithm of `num` to a base.
///
/// What has no logarithm fails in a way that `<|>` catches.
#[function(
    raw,
    signature = "func(num number, base number) float",
    parameters(
        /// Any number.
        num,
        /// The base of the logarithm: positive, and not 1.
        base,
    ),
    refine = not_null,
    example(call = "cty.log(1000, 10)", result = "3.0"),
    example(call = "cty.log(8, 2)", result = "3.0")
)]
pub fn log(arguments: &[Value], _: &Type) -> Result<Value, CallError> {
    let (num, base) = (float(arguments, 0)?, float(arguments, 1)?);
    if num.is_nan() || num <= 0.0 {
        return refuse(0, "has no logarithm");
    }
    if base.is_nan() || base <= 0.0 || base == 1.0 {
        return refuse(1, "is not a base of logarithms");
    }
    // The usual bases exactly.
    Ok(Value::float(match base {
        2.0 => num.log2(),
        10.0 => num.log10(),
        _ => num.ln() / base.ln(),
    }))
}

/// `num` to a power.
#[function(
    raw,
    signature = "func(num number, power number) float",
    parameters(
        /// Any number.
        num,
        /// The exponent.
        power,
    ),
    refine = not_null,
    example(call = "cty.pow(2, 10)", result = "1024.0")
)]
pub fn pow(arguments: &[Value], _: &Type) -> Result<Value, CallError> {
    let (num, power) = (float(arguments, 0)?, float(arguments, 1)?);
    let result = num.powf(power);
    if result.is_nan() && !num.is_nan() && !power.is_nan() {
        return refuse(1, "this power of a negative number is not a number");
    }
    Ok(Value::float(result))
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
    refine = not_null,
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
    refine = not_null,
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
    raw,
    signature = "func(number str, base int) int",
    signature = "func(number int, base int) int",
    parameters(
        /// The digits as text, with a sign if need be; or an int, whose decimal digits are read.
        number,
        /// The base, 2 to 62.
        base,
    ),
    refine = not_null,
    example(call = r#"cty.parse_int("ff", 16)"#, result = "255"),
    example(call = "cty.parse_int(101, 2)", result = "5")
)]
pub fn parse_int(arguments: &[Value], _: &Type) -> Result<Value, CallError> {
    let base = super::whole_number(arguments, 1)?;
    if !(2..=62).contains(&base) {
        return refuse(1, "the base is between 2 and 62");
    }
    let spelt = match argument(arguments, 0)? {
        Value::Int(int) => int.to_string(),
        _ => text(arguments, 0)?.to_owned(),
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
        Ok(int) => Ok(Value::Int(int)),
        Err(_) => refuse(0, "does not fit an int"),
    }
}

fn combined(
    arguments: &[Value],
    ints: fn(i64, i64) -> Option<i64>,
    floats: fn(f64, f64) -> f64,
) -> Result<Value, CallError> {
    match arguments {
        [Value::Int(a), Value::Int(b)] => ints(*a, *b).map(Value::Int).ok_or_else(overflow),
        _ => Ok(Value::float(floats(float(arguments, 0)?, float(arguments, 1)?))),
    }
}

fn overflow() -> CallError {
    CallError::catchable("the result does not fit an int")
}

fn not_a_number(value: &Value) -> CallError {
    CallError::fatal(format!("{} is not number", value.ty()))
}

fn float(arguments: &[Value], index: usize) -> Result<f64, CallError> {
    let value = argument(arguments, index)?;
    as_float(value).ok_or_else(|| not_a_number(value))
}

fn as_float(value: &Value) -> Option<f64> {
    match value {
        Value::Int(int) => Some(*int as f64),
        Value::Float(float) => Some(float.0),
        _ => None,
    }
}
