//! The order of versions: Debian Policy, section 5.6.12, *Version*.

use std::cmp::Ordering;

/// Which of two versions is the later one.
pub(crate) fn compare(a: &str, b: &str) -> Ordering {
    let ((epoch_a, upstream_a, revision_a), (epoch_b, upstream_b, revision_b)) = (parts(a), parts(b));
    epoch_a
        .cmp(&epoch_b)
        .then_with(|| compare_part(upstream_a, upstream_b))
        .then_with(|| compare_part(revision_a, revision_b))
}

/// Epoch, upstream version and revision. What is missing is as good as `0`.
fn parts(version: &str) -> (u64, &str, &str) {
    let (epoch, rest) = match version.split_once(':') {
        Some((epoch, rest)) => (epoch.parse().unwrap_or(0), rest),
        None => (0, version),
    };
    match rest.rsplit_once('-') {
        Some((upstream, revision)) => (epoch, upstream, revision),
        None => (epoch, rest, ""),
    }
}

/// Compares parts without digits and numbers in turn.
fn compare_part(mut a: &str, mut b: &str) -> Ordering {
    while !a.is_empty() || !b.is_empty() {
        let (text_a, rest_a) = a.split_at(a.find(|sign: char| sign.is_ascii_digit()).unwrap_or(a.len()));
        let (text_b, rest_b) = b.split_at(b.find(|sign: char| sign.is_ascii_digit()).unwrap_or(b.len()));
        let weights = |text: &str| -> Vec<i32> { text.chars().map(weight).chain([0]).collect() };
        let (weights_a, weights_b) = (weights(text_a), weights(text_b));
        let length = weights_a.len().max(weights_b.len());
        let weight_at = |weights: &[i32], at: usize| weights.get(at).copied().unwrap_or(0);
        for at in 0..length {
            let order = weight_at(&weights_a, at).cmp(&weight_at(&weights_b, at));
            if order.is_ne() {
                return order;
            }
        }
        let number = |text: &str| {
            text.find(|sign: char| !sign.is_ascii_digit())
                .unwrap_or(text.len())
        };
        let (digits_a, further_a) = rest_a.split_at(number(rest_a));
        let (digits_b, further_b) = rest_b.split_at(number(rest_b));
        let (digits_a, digits_b) = (digits_a.trim_start_matches('0'), digits_b.trim_start_matches('0'));
        let order = digits_a
            .len()
            .cmp(&digits_b.len())
            .then_with(|| digits_a.cmp(digits_b));
        if order.is_ne() {
            return order;
        }
        (a, b) = (further_a, further_b);
    }
    Ordering::Equal
}

/// A tilde comes before the end, letters before all other signs.
fn weight(sign: char) -> i32 {
    match sign {
        '~' => -1,
        letter if letter.is_ascii_alphabetic() => letter as i32,
        other => other as i32 + 256,
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "a test asks the program that decides")]
mod tests {
    use super::*;

    #[test]
    fn versions_are_in_the_order_of_the_policy() {
        let ascending = [
            "0~~", "0~~a", "0~", "0", "0a", "0+", "0.1", "1~rc1", "1", "1-0.1", "1-1", "1-1+b1", "1a", "1.0",
            "1.0.1", "1.2", "1.10", "2", "10", "1:0", "1:0.1-1", "2:0",
        ];
        for (at, one) in ascending.iter().enumerate() {
            assert_eq!(compare(one, one), Ordering::Equal);
            for other in &ascending[at + 1..] {
                assert_eq!(compare(one, other), Ordering::Less, "{one} {other}");
                assert_eq!(compare(other, one), Ordering::Greater, "{other} {one}");
            }
        }
        assert_eq!(compare("0:1.0-0", "1.0"), Ordering::Equal);
        assert_eq!(compare("1.010", "1.10"), Ordering::Equal);
    }

    /// The program that decides it has the last word.
    #[test]
    fn the_order_is_that_of_dpkg() {
        use proptest::test_runner::{Config, TestRunner};
        if std::process::Command::new("dpkg")
            .arg("--version")
            .output()
            .is_err()
        {
            return;
        }
        let holds = |a: &str, relation: &str, b: &str| {
            let status = std::process::Command::new("dpkg")
                .args(["--compare-versions", a, relation, b])
                .status();
            status.is_ok_and(|status| status.success())
        };
        let version = "([0-2]:)?[0-9][0-9a-c.+~]{0,4}(-[0-9a-c+~]{1,3})?";
        let mut runner = TestRunner::new(Config::with_cases(200));
        let checked = runner.run(&(version, version), |(a, b)| {
            let relation = match compare(&a, &b) {
                Ordering::Less => "lt",
                Ordering::Equal => "eq",
                Ordering::Greater => "gt",
            };
            proptest::prop_assert!(holds(&a, relation, &b), "{a} {relation} {b}");
            Ok(())
        });
        checked.unwrap();
    }
}
