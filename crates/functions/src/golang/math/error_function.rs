//! The inverses of the error function and its complement.

use std::f64::consts::PI;

use libm::{erf, erfc};

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
