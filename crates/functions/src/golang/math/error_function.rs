//! The error function, its complement and their inverses.

use std::f64::consts::PI;

/// erf(x).
pub(super) fn erf(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    let size = x.abs();
    let value = if size < 2.0 {
        series(size)
    } else {
        1.0 - fraction(size)
    };
    value.copysign(x)
}

/// erfc(x) = 1 − erf(x), precise where that is small.
pub(super) fn erfc(x: f64) -> f64 {
    if x < 1.0 || x.is_nan() {
        if x < -1.0 {
            2.0 - fraction(-x)
        } else {
            1.0 - erf(x)
        }
    } else {
        fraction(x)
    }
}

/// erf of a number from 0 to 2: all terms have one sign, so that nothing cancels.
fn series(x: f64) -> f64 {
    let mut term = x;
    let mut sum = x;
    let mut n = 1.0;
    while term > sum * 1e-17 {
        term *= 2.0 * x * x / (2.0 * n + 1.0);
        sum += term;
        n += 1.0;
    }
    2.0 / PI.sqrt() * (-x * x).exp() * sum
}

/// erfc of a number from 1 up, by the continued fraction, evaluated from its end.
fn fraction(x: f64) -> f64 {
    if x > 27.3 {
        return 0.0;
    }
    let terms = (600.0 / (x * x)) as u32 + 20;
    let tail = (1..=terms)
        .rev()
        .fold(0.0, |tail, n| f64::from(n) / 2.0 / (x + tail));
    // The square of a number with few bits is exact; the rest of the exponent is small.
    let coarse = (x * 16.0).floor() / 16.0;
    let power = (-coarse * coarse).exp() * (-(x - coarse) * (x + coarse)).exp();
    power / (PI.sqrt() * (x + tail))
}

/// The x for which erf(x) = y.
pub(super) fn inverse(y: f64) -> f64 {
    if y.is_nan() || y.abs() > 1.0 {
        return f64::NAN;
    }
    if y.abs() == 1.0 {
        return f64::INFINITY.copysign(y);
    }
    if y.abs() <= 0.5 {
        return solve(y, guess(y), |x| erf(x) - y);
    }
    // Near the ends the complement has the digits.
    inverse_complement(1.0 - y.abs()).copysign(y)
}

/// The x for which erfc(x) = y.
pub(super) fn inverse_complement(y: f64) -> f64 {
    if y.is_nan() || !(0.0..=2.0).contains(&y) {
        return f64::NAN;
    }
    if y == 0.0 {
        return f64::INFINITY;
    }
    if y == 2.0 {
        return f64::NEG_INFINITY;
    }
    if y > 1.0 {
        return -inverse_complement(2.0 - y);
    }
    if y >= 0.5 {
        return inverse(1.0 - y);
    }
    let start = if y > 1e-10 {
        guess(1.0 - y)
    } else {
        // erfc(x) ≈ exp(−x²) / (x √π)
        let logarithm = -(y * PI.sqrt()).ln();
        (logarithm - logarithm.sqrt().ln()).max(1.0).sqrt()
    };
    solve(y, start, |x| y - erfc(x))
}

/// Winitzki's approximation, good to three digits.
fn guess(y: f64) -> f64 {
    const A: f64 = 0.147;
    let logarithm = ((1.0 - y) * (1.0 + y)).ln();
    let term = 2.0 / (PI * A) + logarithm / 2.0;
    ((term * term - logarithm / A).sqrt() - term)
        .max(0.0)
        .sqrt()
        .copysign(y)
}

/// Halley's iteration on a function whose derivative is that of erf.
fn solve(y: f64, start: f64, error: impl Fn(f64) -> f64) -> f64 {
    if y == 0.0 {
        return y;
    }
    let mut x = start;
    for _ in 0..8 {
        let slope = 2.0 / PI.sqrt() * (-x * x).exp();
        if slope == 0.0 {
            break;
        }
        let step = error(x) / slope;
        let next = x - step / (1.0 + x * step);
        if next == x || !next.is_finite() {
            break;
        }
        x = next;
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64, what: &str) {
        assert!(
            ((found - expected) / expected).abs() < 5e-15,
            "{what}: {found} is not {expected}"
        );
    }

    #[test]
    fn known_values_are_met() {
        close(erf(0.5), 0.520_499_877_813_046_5, "erf(0.5)");
        close(erf(1.0), 0.842_700_792_949_714_9, "erf(1)");
        close(erf(-2.5), -0.999_593_047_982_555, "erf(-2.5)");
        close(erfc(1.0), 0.157_299_207_050_285_13, "erfc(1)");
        close(erfc(3.0), 2.209_049_699_858_544e-5, "erfc(3)");
        close(erfc(10.0), 2.088_487_583_762_545e-45, "erfc(10)");
        close(erfc(-1.5), 1.966_105_146_475_310_8, "erfc(-1.5)");
        assert_eq!(erf(f64::INFINITY), 1.0);
        assert_eq!(erfc(f64::NEG_INFINITY), 2.0);
        assert_eq!(erfc(30.0), 0.0);
    }

    #[test]
    fn inverses_lead_back() {
        for y in [-0.999, -0.6, -0.3, 1e-9, 0.25, 0.5, 0.75, 0.99, 1.0 - 1e-12] {
            assert!((erf(inverse(y)) - y).abs() < 1e-15, "{y}");
        }
        for y in [1e-300, 1e-100, 1e-20, 1e-5, 0.1, 0.5, 1.5, 1.999] {
            assert!(((erfc(inverse_complement(y)) - y) / y).abs() < 1e-12, "{y}");
        }
        assert_eq!(inverse(1.0), f64::INFINITY);
        assert!(inverse(1.5).is_nan() && inverse_complement(-0.1).is_nan());
        assert_eq!(inverse_complement(2.0), f64::NEG_INFINITY);
    }
}
