//! Bessel functions of whole order.
//!
//! Small arguments go by Miller's backward recurrence, which gives the functions of all orders at once, and by Neumann's series
//! of those for the second kind; great ones by Hankel's asymptotic expansion. Other orders follow by the recurrence
//! in the direction in which errors do not grow.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_PI, PI};

/// From here on Hankel's expansion is as good as a float.
const GREAT: f64 = 30.0;

/// Orders beyond this would take too long.
const GREATEST_ORDER: u64 = 10_000_000;

const EULER: f64 = 0.577_215_664_901_532_9;

/// J₀(x).
pub(super) fn j0(x: f64) -> f64 {
    let size = x.abs();
    if size.is_nan() {
        size
    } else if size.is_infinite() {
        0.0
    } else if size < GREAT {
        first_kinds(size)[0]
    } else {
        hankel(0, size).0
    }
}

/// J₁(x).
pub(super) fn j1(x: f64) -> f64 {
    let size = x.abs();
    let value = if size.is_nan() {
        size
    } else if size.is_infinite() {
        0.0
    } else if size < GREAT {
        first_kinds(size)[1]
    } else {
        hankel(1, size).0
    };
    if x.is_sign_negative() { -value } else { value }
}

/// Y₀(x).
pub(super) fn y0(x: f64) -> f64 {
    if x < 0.0 || x.is_nan() {
        f64::NAN
    } else if x == 0.0 {
        f64::NEG_INFINITY
    } else if x.is_infinite() {
        0.0
    } else if x < GREAT {
        let j = first_kinds(x);
        let sum: f64 = (1..)
            .map_while(|k| j.get(2 * k).map(|value| alternating(k) * value / k as f64))
            .sum();
        FRAC_2_PI * (((x / 2.0).ln() + EULER) * j[0] - 2.0 * sum)
    } else {
        hankel(0, x).1
    }
}

/// Y₁(x).
pub(super) fn y1(x: f64) -> f64 {
    if x < 0.0 || x.is_nan() {
        f64::NAN
    } else if x == 0.0 {
        f64::NEG_INFINITY
    } else if x.is_infinite() {
        0.0
    } else if x < GREAT {
        let j = first_kinds(x);
        let sum: f64 = (1..)
            .map_while(|k| {
                let weight = (2 * k + 1) as f64 / (k * (k + 1)) as f64;
                j.get(2 * k + 1).map(|value| alternating(k) * weight * value)
            })
            .sum();
        FRAC_2_PI * (-j[0] / x + ((x / 2.0).ln() + EULER - 1.0) * j[1] - sum)
    } else {
        hankel(1, x).1
    }
}

/// Jₙ(x); none for an order that would take too long.
pub(super) fn jn(n: i64, x: f64) -> Option<f64> {
    // Jₙ(−x) = J₋ₙ(x) = (−1)ⁿ Jₙ(x)
    let negative = (n < 0) != x.is_sign_negative() && n % 2 != 0;
    let (order, size) = (n.unsigned_abs(), x.abs());
    let value = if x.is_nan() {
        return Some(x);
    } else if order == 0 {
        j0(size)
    } else if order == 1 {
        j1(size)
    } else if size == 0.0 || size.is_infinite() {
        0.0
    } else if order as f64 <= size {
        upwards(order, size, j0(size), j1(size))?
    } else {
        // (x/2)ⁿ/n! is an upper bound; by Stirling's formula its logarithm:
        let n = order as f64;
        let logarithm = n * (size / 2.0).ln() - n * n.ln() + n;
        if logarithm < -750.0 {
            0.0
        } else {
            downwards(order, size)?
        }
    };
    Some(if negative { -value } else { value })
}

/// Yₙ(x); none for an order that would take too long.
pub(super) fn yn(n: i64, x: f64) -> Option<f64> {
    let order = n.unsigned_abs();
    let negative = n < 0 && n % 2 != 0;
    let value = if x < 0.0 || x.is_nan() {
        return Some(f64::NAN);
    } else if x == 0.0 {
        f64::NEG_INFINITY
    } else if x.is_infinite() {
        0.0
    } else if order == 0 {
        y0(x)
    } else {
        upwards(order, x, y0(x), y1(x))?
    };
    Some(if negative { -value } else { value })
}

fn alternating(k: usize) -> f64 {
    if k.is_multiple_of(2) { 1.0 } else { -1.0 }
}

/// The recurrence from orders 0 and 1 up.
fn upwards(order: u64, x: f64, zero: f64, one: f64) -> Option<f64> {
    if order > GREATEST_ORDER {
        return None;
    }
    let (mut before, mut value) = (zero, one);
    for k in 1..order {
        (before, value) = (value, 2.0 * k as f64 / x * value - before);
        if value.is_infinite() {
            break;
        }
    }
    Some(value)
}

/// J of an order above its argument, by Miller's recurrence from far above.
fn downwards(order: u64, x: f64) -> Option<f64> {
    if order > GREATEST_ORDER {
        return None;
    }
    let start = order + 40 + (order as f64 * 40.0).sqrt() as u64;
    let start = start + start % 2;
    let (mut above, mut value) = (0.0, f64::MIN_POSITIVE);
    let (mut wanted, mut sum) = (0.0, 0.0);
    for k in (1..=start).rev() {
        (above, value) = (value, 2.0 * k as f64 / x * value - above);
        // `value` is now that of order k − 1.
        if k - 1 == order {
            wanted = value;
        }
        if (k - 1).is_multiple_of(2) && k > 1 {
            sum += 2.0 * value;
        }
        if value.abs() > 1e250 {
            let shrink = 1e-250;
            above *= shrink;
            value *= shrink;
            wanted *= shrink;
            sum *= shrink;
        }
    }
    Some(wanted / (sum + value))
}

/// J₀(x), J₁(x), … until they vanish, for 0 ≤ x < 30.
fn first_kinds(x: f64) -> Vec<f64> {
    if x == 0.0 {
        return vec![1.0, 0.0];
    }
    let start = (x as usize + 50).next_multiple_of(2);
    let mut values = vec![0.0; start + 2];
    values[start] = 1e-300;
    for k in (1..=start).rev() {
        values[k - 1] = 2.0 * k as f64 / x * values[k] - values[k + 1];
        if values[k - 1].abs() > 1e200 {
            for value in &mut values[k - 1..] {
                *value *= 1e-300;
            }
        }
    }
    // J₀ + 2 J₂ + 2 J₄ + … = 1
    let sum: f64 = values[0] + 2.0 * values.iter().skip(2).step_by(2).sum::<f64>();
    for value in &mut values {
        *value /= sum;
    }
    values
}

/// Jᵥ(x) and Yᵥ(x) of order 0 or 1 for great arguments.
fn hankel(order: u32, x: f64) -> (f64, f64) {
    let mu = f64::from(4 * order * order);
    let (mut p, mut q) = (0.0, 0.0);
    let mut term: f64 = 1.0;
    for k in 0..60u32 {
        match k % 4 {
            0 => p += term,
            1 => q += term,
            2 => p -= term,
            _ => q -= term,
        }
        let odd = f64::from(2 * k + 1);
        let next = term * (mu - odd * odd) / (f64::from(k + 1) * 8.0 * x);
        if next.abs() < 1e-18 || next.abs() >= term.abs() {
            break;
        }
        term = next;
    }
    // The phase x − π/4 − order · π/2, by the sums of angles, which keep the digits of great arguments.
    let (sine, cosine) = x.sin_cos();
    let (cosine, sine) = match order {
        0 => ((cosine + sine) * FRAC_1_SQRT_2, (sine - cosine) * FRAC_1_SQRT_2),
        _ => ((sine - cosine) * FRAC_1_SQRT_2, (-sine - cosine) * FRAC_1_SQRT_2),
    };
    let scale = (2.0 / (PI * x)).sqrt();
    (scale * (p * cosine - q * sine), scale * (p * sine + q * cosine))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64, what: &str) {
        assert!(
            (found - expected).abs() < 2e-15 * expected.abs().max(1.0),
            "{what}: {found} is not {expected}"
        );
    }

    #[test]
    fn known_values_are_met() {
        close(j0(1.0), 0.765_197_686_557_966_6, "J0(1)");
        close(j0(10.0), -0.245_935_764_451_348_3, "J0(10)");
        close(j1(1.0), 0.440_050_585_744_933_5, "J1(1)");
        close(j1(-1.0), -0.440_050_585_744_933_5, "J1(-1)");
        close(y0(1.0), 0.088_256_964_215_676_96, "Y0(1)");
        close(y1(1.0), -0.781_212_821_300_288_7, "Y1(1)");
        close(y0(10.0), 0.055_671_167_283_599_395, "Y0(10)");
        close(y1(10.0), 0.249_015_424_206_953_9, "Y1(10)");
        close(jn(2, 1.0).expect("small order"), 0.114_903_484_931_900_5, "J2(1)");
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
        assert_eq!(jn(3, 0.0), Some(0.0));
        assert_eq!(jn(1_000_000_000, 1.0), Some(0.0));
        assert_eq!(jn(i64::MIN, 1e300), None);
        assert_eq!(y0(0.0), f64::NEG_INFINITY);
        assert!(y0(-1.0).is_nan());
    }

    #[test]
    fn both_ways_agree_where_they_meet() {
        for order in [0u32, 1] {
            let (j, y) = hankel(order, 30.0);
            let below = first_kinds(30.0)[order as usize];
            assert!((j - below).abs() < 1e-15, "order {order}: {j} and {below}");
            let wronskian = {
                let (j0, y0) = hankel(0, 30.0);
                let (j1, y1) = hankel(1, 30.0);
                j1 * y0 - j0 * y1
            };
            assert!((wronskian - 2.0 / (PI * 30.0)).abs() < 1e-16, "{y}");
        }
    }
}
