//! `golang/math`: numbers, as in Go. Unlike `math`, these may answer infinities and what is not a number.

use setpoint_value::{CallError, Module, function};

mod bits;
mod error_function;

pub(crate) static MODULE: Module = Module::new(
    "golang/math",
    "Numbers, as in Go's package `math`.",
    &[
        &ABS,
        &ACOS,
        &ACOSH,
        &ASIN,
        &ASINH,
        &ATAN,
        &ATAN_2,
        &ATANH,
        &CBRT,
        &CEIL,
        &COPYSIGN,
        &COS,
        &COSH,
        &DIM,
        &ERF,
        &ERFC,
        &ERFCINV,
        &ERFINV,
        &EXP,
        &EXP_2,
        &EXPM_1,
        &FLOOR,
        &FMA,
        &GAMMA,
        &HYPOT,
        &ILOGB,
        &INF,
        &IS_INF,
        &IS_NA_N,
        &J_0,
        &J_1,
        &JN,
        &LDEXP,
        &LOG,
        &LOG_10,
        &LOG_1_P,
        &LOG_2,
        &LOGB,
        &MAX,
        &MIN,
        &MOD,
        &NA_N,
        &NEXTAFTER,
        &POW,
        &POW_10,
        &REMAINDER,
        &ROUND,
        &ROUND_TO_EVEN,
        &SIGNBIT,
        &SIN,
        &SINH,
        &SQRT,
        &TAN,
        &TANH,
        &TRUNC,
        &Y_0,
        &Y_1,
        &YN,
    ],
);

/// Functions of one float, or two, that give one.
macro_rules! floats {
    ($(
        #[doc = $doc:literal] $name:ident(
            $(#[doc = $what:literal] $parameter:ident,)+
        ) = $body:expr; $example:literal => $result:literal
    )*) => {
        $(
            #[doc = $doc]
            #[function(example(call = $example, result = $result))]
            fn $name($(#[doc = $what] $parameter: f64),+) -> f64 {
                $body
            }
        )*
    };
}

floats! {
    /// The number without its sign.
    abs(
        /// Any number.
        x,
    ) = x.abs(); "math.abs(-1.5)" => "1.5"
    /// The arc cosine.
    acos(
        /// A number from -1 to 1.
        x,
    ) = x.acos(); "math.acos(1.0)" => "0.0"
    /// The inverse hyperbolic cosine.
    acosh(
        /// A number from 1 up.
        x,
    ) = libm::acosh(x); "math.acosh(1.0)" => "0.0"
    /// The arc sine.
    asin(
        /// A number from -1 to 1.
        x,
    ) = x.asin(); "math.asin(0.0)" => "0.0"
    /// The inverse hyperbolic sine.
    asinh(
        /// Any number.
        x,
    ) = libm::asinh(x); "math.asinh(0.0)" => "0.0"
    /// The arc tangent.
    atan(
        /// Any number.
        x,
    ) = x.atan(); "math.atan(0.0)" => "0.0"
    /// The angle of the point (x, y).
    atan_2(
        /// The vertical position of the point.
        y,
        /// The horizontal position of the point.
        x,
    ) = y.atan2(x); "math.atan_2(0.0, 1.0)" => "0.0"
    /// The inverse hyperbolic tangent.
    atanh(
        /// A number from -1 to 1.
        x,
    ) = libm::atanh(x); "math.atanh(0.0)" => "0.0"
    /// The cube root.
    cbrt(
        /// Any number.
        x,
    ) = x.cbrt(); "math.cbrt(27.0)" => "3.0"
    /// The next whole number up; a whole number stays.
    ceil(
        /// Any number.
        x,
    ) = x.ceil(); "math.ceil(1.2)" => "2.0"
    /// The size of `f` with the sign of `sign`.
    copysign(
        /// The number that provides the absolute value.
        f,
        /// The number that provides the sign.
        sign,
    ) = f.copysign(sign); "math.copysign(3.0, -1.0)" => "-3.0"
    /// The cosine.
    cos(
        /// An angle in radians.
        x,
    ) = x.cos(); "math.cos(0.0)" => "1.0"
    /// The hyperbolic cosine.
    cosh(
        /// Any number.
        x,
    ) = x.cosh(); "math.cosh(0.0)" => "1.0"
    /// `x` − `y`, or 0 if that is negative.
    dim(
        /// Any number.
        x,
        /// The number to subtract.
        y,
    ) = if x - y <= 0.0 { 0.0 } else { x - y }; "math.dim(4.0, 1.5)" => "2.5"
    /// The error function.
    erf(
        /// Any number.
        x,
    ) = libm::erf(x); "math.erf(0.0)" => "0.0"
    /// One minus the error function.
    erfc(
        /// Any number.
        x,
    ) = libm::erfc(x); "math.erfc(0.0)" => "1.0"
    /// The inverse of `erfc`.
    erfcinv(
        /// A number from 0 to 2.
        x,
    ) = error_function::inverse_complement(x); "math.erfcinv(1.0)" => "0.0"
    /// The inverse of `erf`.
    erfinv(
        /// A number from -1 to 1.
        x,
    ) = error_function::inverse(x); "math.erfinv(0.0)" => "0.0"
    /// e to the power of `x`.
    exp(
        /// Any number.
        x,
    ) = x.exp(); "math.exp(0.0)" => "1.0"
    /// 2 to the power of `x`.
    exp_2(
        /// Any number.
        x,
    ) = x.exp2(); "math.exp_2(3.0)" => "8.0"
    /// e to the power of `x`, minus 1.
    expm_1(
        /// Any number.
        x,
    ) = x.exp_m1(); "math.expm_1(0.0)" => "0.0"
    /// The next whole number down; a whole number stays.
    floor(
        /// Any number.
        x,
    ) = x.floor(); "math.floor(-1.2)" => "-2.0"
    /// `x` · `y` + `z`, rounded once.
    fma(
        /// Any number.
        x,
        /// The number to multiply by.
        y,
        /// The number to add.
        z,
    ) = x.mul_add(y, z); "math.fma(2.0, 3.0, 4.0)" => "10.0"
    /// The gamma function.
    gamma(
        /// Any number.
        x,
    ) = libm::tgamma(x); "math.gamma(5.0)" => "24.0"
    /// The length of (p, q).
    hypot(
        /// One side of a right angle.
        p,
        /// The other side.
        q,
    ) = p.hypot(q); "math.hypot(3.0, 4.0)" => "5.0"
    /// The Bessel function of the first kind of order 0.
    j_0(
        /// Any number.
        x,
    ) = libm::j0(x); "math.j_0(0.0)" => "1.0"
    /// The Bessel function of the first kind of order 1.
    j_1(
        /// Any number.
        x,
    ) = libm::j1(x); "math.j_1(0.0)" => "0.0"
    /// The natural logarithm.
    log(
        /// Any number.
        x,
    ) = x.ln(); "math.log(1.0)" => "0.0"
    /// The decimal logarithm.
    log_10(
        /// Any number.
        x,
    ) = x.log10(); "math.log_10(100.0)" => "2.0"
    /// The natural logarithm of 1 + `x`.
    log_1_p(
        /// The distance of the number from 1.
        x,
    ) = x.ln_1p(); "math.log_1_p(0.0)" => "0.0"
    /// The binary logarithm.
    log_2(
        /// Any number.
        x,
    ) = x.log2(); "math.log_2(8.0)" => "3.0"
    /// The exponent of 2 in the number, rounded down.
    logb(
        /// Any number.
        x,
    ) = bits::logb(x); "math.logb(10.0)" => "3.0"
    /// The greater number.
    max(
        /// Any number.
        x,
        /// Another number.
        y,
    ) = bits::max(x, y); "math.max(1.0, 2.0)" => "2.0"
    /// The lesser number.
    min(
        /// Any number.
        x,
        /// Another number.
        y,
    ) = bits::min(x, y); "math.min(1.0, 2.0)" => "1.0"
    /// The next float after `x` towards `y`.
    nextafter(
        /// Any number.
        x,
        /// The number to move towards.
        y,
    ) = libm::nextafter(x, y); "math.nextafter(1.0, 1.0)" => "1.0"
    /// `x` to the power of `y`.
    pow(
        /// The base.
        x,
        /// The exponent.
        y,
    ) = x.powf(y); "math.pow(2.0, 3.0)" => "8.0"
    /// The remainder of a division rounded to the nearest, as in IEEE 754.
    remainder(
        /// The dividend.
        x,
        /// The divisor.
        y,
    ) = libm::remainder(x, y); "math.remainder(7.0, 4.0)" => "-1.0"
    /// The nearest whole number, halves away from zero.
    round(
        /// Any number.
        x,
    ) = x.round(); "math.round(2.5)" => "3.0"
    /// The nearest whole number, halves to the even one.
    round_to_even(
        /// Any number.
        x,
    ) = x.round_ties_even(); "math.round_to_even(2.5)" => "2.0"
    /// The sine.
    sin(
        /// An angle in radians.
        x,
    ) = x.sin(); "math.sin(0.0)" => "0.0"
    /// The hyperbolic sine.
    sinh(
        /// Any number.
        x,
    ) = x.sinh(); "math.sinh(0.0)" => "0.0"
    /// The square root.
    sqrt(
        /// A number that is not negative.
        x,
    ) = x.sqrt(); "math.sqrt(9.0)" => "3.0"
    /// The tangent.
    tan(
        /// An angle in radians.
        x,
    ) = x.tan(); "math.tan(0.0)" => "0.0"
    /// The hyperbolic tangent.
    tanh(
        /// Any number.
        x,
    ) = x.tanh(); "math.tanh(0.0)" => "0.0"
    /// The number without its fraction.
    trunc(
        /// Any number.
        x,
    ) = x.trunc(); "math.trunc(-1.9)" => "-1.0"
    /// The Bessel function of the second kind of order 0.
    y_0(
        /// Any number.
        x,
    ) = libm::y0(x); "math.y_0(1.0) > 0.0" => "true"
    /// The Bessel function of the second kind of order 1.
    y_1(
        /// Any number.
        x,
    ) = libm::y1(x); "math.y_1(1.0) < 0.0" => "true"
}

/// The exponent of 2 in the number, rounded down, as an int.
#[function(example(call = "math.ilogb(10.0)", result = "3"))]
fn ilogb(
    /// Any number.
    x: f64,
) -> i64 {
    bits::exponent(x)
}

/// Infinity; negative if `sign` is.
#[function(example(call = "math.inf(1) > 0.0", result = "true"))]
fn inf(
    /// Negative for negative infinity; anything else for positive infinity.
    sign: i64,
) -> f64 {
    if sign >= 0 {
        f64::INFINITY
    } else {
        f64::NEG_INFINITY
    }
}

/// Whether a number is infinite, of a sign; either if `sign` is 0.
#[function(example(call = "math.is_inf(1.0, 0)", result = "false"))]
fn is_inf(
    /// Any number.
    f: f64,
    /// 1 for positive infinity, -1 for negative infinity, 0 for either.
    sign: i64,
) -> bool {
    sign >= 0 && f == f64::INFINITY || sign <= 0 && f == f64::NEG_INFINITY
}

/// Whether a number is `NaN`: one without a value, like the root of -1.
#[function(example(call = "math.is_na_n(1.0)", result = "false"))]
fn is_na_n(
    /// Any number.
    f: f64,
) -> bool {
    f.is_nan()
}

/// The Bessel function of the first kind of order `n`.
///
/// An order beyond ±1000000 fails in a way that `<|>` catches.
#[function(example(call = "math.jn(2, 0.0)", result = "0.0"))]
fn jn(
    /// The order, -1000000 to 1000000.
    n: i64,
    /// Any number.
    x: f64,
) -> Result<f64, CallError> {
    Ok(libm::jn(order(n)?, x))
}

/// `frac` · 2 to the power of `exp`.
#[function(example(call = "math.ldexp(0.5, 4)", result = "8.0"))]
fn ldexp(
    /// Any number.
    frac: f64,
    /// The exponent.
    exp: i64,
) -> f64 {
    bits::scale(frac, exp)
}

/// The remainder of a division, with the sign of the dividend.
#[function(name = "mod", example(call = "math.mod(-7.0, 3.0)", result = "-1.0"))]
fn r#mod(
    /// The dividend.
    x: f64,
    /// The divisor.
    y: f64,
) -> f64 {
    x % y
}

/// `NaN`: what has no value as a number.
#[function(example(call = "math.is_na_n(math.na_n())", result = "true"))]
fn na_n() -> f64 {
    f64::NAN
}

/// 10 to the power of `n`.
#[function(example(call = "math.pow_10(2)", result = "100.0"))]
fn pow_10(
    /// The exponent.
    n: i64,
) -> f64 {
    match n {
        -323..=308 => format!("1e{n}").parse().unwrap_or(f64::NAN),
        309.. => f64::INFINITY,
        _ => 0.0,
    }
}

/// Whether a number is negative, or negative zero.
#[function(example(call = "math.signbit(-1.0)", result = "true"))]
fn signbit(
    /// Any number.
    x: f64,
) -> bool {
    x.is_sign_negative()
}

/// The Bessel function of the second kind of order `n`.
///
/// An order beyond ±1000000 fails in a way that `<|>` catches.
#[function(example(call = "math.yn(2, 1.0) < 0.0", result = "true"))]
fn yn(
    /// The order, -1000000 to 1000000.
    n: i64,
    /// Any number.
    x: f64,
) -> Result<f64, CallError> {
    Ok(libm::yn(order(n)?, x))
}

/// Orders beyond this are refused: the time that they take grows with them.
const GREATEST_ORDER: i32 = 1_000_000;

fn order(n: i64) -> Result<i32, CallError> {
    i32::try_from(n)
        .ok()
        .filter(|n| (-GREATEST_ORDER..=GREATEST_ORDER).contains(n))
        .ok_or_else(|| {
            CallError::catchable(format!(
                "an order is between -{GREATEST_ORDER} and {GREATEST_ORDER}"
            ))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64, what: &str) {
        let error = if expected == 0.0 {
            found.abs()
        } else {
            ((found - expected) / expected).abs()
        };
        assert!(error < 4e-15, "{what}: {found} is not {expected}");
    }

    #[test]
    fn known_values_are_met() {
        close(erf(0.5), 0.520_499_877_813_046_5, "erf(0.5)");
        close(erfc(10.0), 2.088_487_583_762_545e-45, "erfc(10)");
        close(gamma(0.5), 1.772_453_850_905_516, "gamma(0.5)");
        close(gamma(-1.5), 2.363_271_801_207_355, "gamma(-1.5)");
        close(gamma(5.0), 24.0, "gamma(5)");
        assert!(gamma(-1.0).is_nan());
        assert_eq!(gamma(-0.0), f64::NEG_INFINITY);
        assert_eq!(gamma(172.0), f64::INFINITY);
        close(j_0(1.0), 0.765_197_686_557_966_6, "J0(1)");
        close(j_1(-1.0), -0.440_050_585_744_933_5, "J1(-1)");
        close(y_0(10.0), 0.055_671_167_283_599_395, "Y0(10)");
        close(y_1(1.0), -0.781_212_821_300_288_7, "Y1(1)");
        close(
            jn(5, 10.0).expect("small order"),
            -0.234_061_528_186_793_6,
            "J5(10)",
        );
        close(
            yn(2, 1.0).expect("small order"),
            -1.650_682_606_816_254_4,
            "Y2(1)",
        );
    }

    #[test]
    fn the_ends_of_the_range_have_values() {
        let tiny = f64::from_bits(1);
        assert_eq!(j_0(tiny), 1.0);
        assert!(j_1(tiny) >= 0.0 && j_1(1e-300) > 0.0);
        assert!(y_0(1e-300) < -400.0 && y_0(1e-300).is_finite());
        assert!(y_1(1e-300) < -1e299);
        assert_eq!(y_1(tiny), f64::NEG_INFINITY);
        assert_eq!(jn(3, 1e-300), Ok(0.0));
        assert_eq!(yn(3, 1e-300), Ok(f64::NEG_INFINITY));
        close(
            acosh(f64::MAX),
            710.475_860_073_943_9,
            "acosh of the largest float",
        );
        close(
            asinh(f64::MAX),
            710.475_860_073_943_9,
            "asinh of the largest float",
        );
        close(asinh(-1e-300), -1e-300, "asinh of a tiny float");
        assert!(jn(i64::MAX, 1.0).is_err_and(|error| error.is_catchable()));
        assert!(yn(-1_000_001, 1.0).is_err());
    }
}
