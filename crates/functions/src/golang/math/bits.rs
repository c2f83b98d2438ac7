//! Functions that look at how a float is made.

/// The binary exponent of a finite number that is not 0; else what Go answers.
pub(super) fn exponent(x: f64) -> i64 {
    if x == 0.0 {
        i64::from(i32::MIN)
    } else if !x.is_finite() {
        i64::from(i32::MAX)
    } else {
        let stored = i64::try_from(x.to_bits() >> 52 & 0x7ff).unwrap_or(0);
        if stored == 0 {
            // Subnormal: the first bit of the fraction that is set.
            let fraction = x.to_bits() & ((1 << 52) - 1);
            -1011 - i64::from(fraction.leading_zeros())
        } else {
            stored - 1023
        }
    }
}

/// The binary exponent as a float.
pub(super) fn logb(x: f64) -> f64 {
    if x == 0.0 {
        f64::NEG_INFINITY
    } else if x.is_infinite() {
        f64::INFINITY
    } else if x.is_nan() {
        x
    } else {
        exponent(x) as f64
    }
}

/// `x · 2^exponent`, rounded once.
pub(super) fn scale(x: f64, exponent: i64) -> f64 {
    let mut x = x;
    let mut left = exponent.clamp(-5000, 5000);
    while left > 1023 {
        x *= 2f64.powi(1023);
        left -= 1023;
    }
    // Steps that keep 53 bits to spare above the subnormals, so that only the last one rounds.
    while left < -1022 {
        x *= f64::MIN_POSITIVE * 2f64.powi(53);
        left += 1022 - 53;
    }
    x * 2f64.powi(i32::try_from(left).unwrap_or(0))
}

/// The greater number; positive zero before negative zero, infinity before what is not a number.
pub(super) fn max(x: f64, y: f64) -> f64 {
    if x == f64::INFINITY || y == f64::INFINITY {
        f64::INFINITY
    } else if x.is_nan() || y.is_nan() {
        f64::NAN
    } else if x == 0.0 && y == 0.0 {
        if x.is_sign_negative() { y } else { x }
    } else {
        x.max(y)
    }
}

/// The lesser number; negative zero before positive zero, negative infinity before what is not a number.
pub(super) fn min(x: f64, y: f64) -> f64 {
    -max(-x, -y)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponents_are_those_of_the_number() {
        for (x, expected) in [
            (1.0, 0),
            (10.0, 3),
            (-0.5, -1),
            (f64::MIN_POSITIVE, -1022),
            (f64::from_bits(1), -1074),
        ] {
            assert_eq!(exponent(x), expected, "{x}");
        }
        assert_eq!(exponent(0.0), -2_147_483_648);
        assert_eq!(exponent(f64::NAN), 2_147_483_647);
    }

    #[test]
    fn scaling_rounds_once() {
        assert_eq!(scale(1.0, -1074), f64::from_bits(1));
        assert_eq!(scale(1.0, -1075), 0.0);
        assert_eq!(scale(1.5, -1074), f64::from_bits(2));
        assert_eq!(scale(1.0, 1024), f64::INFINITY);
        assert_eq!(scale(f64::from_bits(1), 2097), scale(1.0, 1023));
        assert_eq!(scale(3.0, i64::MIN), 0.0);
        // Just above half of the smallest: rounding twice would make it nothing.
        assert_eq!(scale(1.0 + f64::EPSILON, -1075), f64::from_bits(1));
    }

    #[test]
    fn infinity_is_greater_than_what_is_no_number() {
        assert!(max(f64::NAN, f64::INFINITY).is_infinite() && max(f64::NAN, 1.0).is_nan());
        assert!(min(0.0, -0.0).is_sign_negative());
    }
}
