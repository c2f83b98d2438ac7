//! The order of versions that rpm has, and pacman after it: `EPOCH:VERSION-RELEASE`, the parts of each compared one by one.

use std::cmp::Ordering;

/// Which of two versions is the higher one. What one of them leaves out (epoch, release) is 0, or does not matter.
pub(super) fn compare(one: &str, other: &str) -> Ordering {
    let (one, other) = (Parts::of(one), Parts::of(other));
    let epochs = one.epoch.cmp(&other.epoch);
    let versions = || compare_part(one.version, other.version);
    let releases = || match (one.release, other.release) {
        (Some(one), Some(other)) => compare_part(one, other),
        _ => Ordering::Equal,
    };
    epochs.then_with(versions).then_with(releases)
}

/// A version without what is 0 of it: `0:1-1` is `1-1`.
pub(super) fn plain(version: &str) -> &str {
    version.strip_prefix("0:").unwrap_or(version)
}

struct Parts<'v> {
    epoch: u64,
    version: &'v str,
    release: Option<&'v str>,
}

impl<'v> Parts<'v> {
    fn of(text: &'v str) -> Parts<'v> {
        let (epoch, rest) = match text.split_once(':') {
            Some((epoch, rest)) => (epoch.parse().unwrap_or(0), rest),
            None => (0, text),
        };
        let (version, release) = match rest.rsplit_once('-') {
            Some((version, release)) => (version, Some(release)),
            None => (rest, None),
        };
        Parts {
            epoch,
            version,
            release,
        }
    }
}

/// Compares versions, or releases: runs of digits as numbers, runs of letters as words, and nothing else counts but `~`, which comes before the end, and `^`, which comes after
/// it and before all else.
fn compare_part(one: &str, other: &str) -> Ordering {
    let (mut one, mut other) = (one.as_bytes(), other.as_bytes());
    loop {
        one = from_meaning(one);
        other = from_meaning(other);
        match (one.first(), other.first()) {
            (Some(b'~'), Some(b'~')) | (Some(b'^'), Some(b'^')) => {
                (one, other) = (&one[1..], &other[1..]);
                continue;
            }
            (Some(b'~'), _) => return Ordering::Less,
            (_, Some(b'~')) => return Ordering::Greater,
            (Some(_), None) => return Ordering::Greater,
            (None, Some(_)) => return Ordering::Less,
            (Some(b'^'), Some(_)) => return Ordering::Less,
            (Some(_), Some(b'^')) => return Ordering::Greater,
            (None, None) => return Ordering::Equal,
            (Some(_), Some(_)) => {}
        }
        let is_number = one[0].is_ascii_digit();
        let run = |text: &[u8]| {
            let belongs = |byte: &u8| match is_number {
                true => byte.is_ascii_digit(),
                false => byte.is_ascii_alphabetic(),
            };
            text.iter().take_while(|byte| belongs(byte)).count()
        };
        let (first, rest) = one.split_at(run(one));
        let (second, other_rest) = other.split_at(run(other));
        if second.is_empty() {
            // Numbers are higher than words.
            return if is_number {
                Ordering::Greater
            } else {
                Ordering::Less
            };
        }
        let order = match is_number {
            true => {
                let (first, second) = (without_zeros(first), without_zeros(second));
                first.len().cmp(&second.len()).then_with(|| first.cmp(second))
            }
            false => first.cmp(second),
        };
        if order.is_ne() {
            return order;
        }
        (one, other) = (rest, other_rest);
    }
}

/// From the first sign on that counts.
fn from_meaning(text: &[u8]) -> &[u8] {
    let counts = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'~' | b'^');
    let at = text.iter().position(counts).unwrap_or(text.len());
    &text[at..]
}

fn without_zeros(digits: &[u8]) -> &[u8] {
    let at = digits
        .iter()
        .position(|digit| *digit != b'0')
        .unwrap_or(digits.len());
    &digits[at..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_the_order_of_rpm() {
        let lowest_first = [
            "1.0~rc1-1",
            "1.0-1",
            "1.0^git1-1",
            "1.0.a-1",
            "1.0.1-1",
            "1.1-1",
            "1.1-2",
            "1.10-1",
            "2-1",
            "1:1-1",
        ];
        for (at, low) in lowest_first.iter().enumerate() {
            assert_eq!(compare(low, low), Ordering::Equal, "{low}");
            for high in &lowest_first[at + 1..] {
                assert_eq!(compare(low, high), Ordering::Less, "{low} {high}");
                assert_eq!(compare(high, low), Ordering::Greater, "{high} {low}");
            }
        }
        for (one, other) in [
            ("1.0", "1.0-5"),
            ("0:1-1", "1-1"),
            ("1.01-1", "1.1-1"),
            ("1_0-1", "1.0-1"),
        ] {
            assert_eq!(compare(one, other), Ordering::Equal, "{one} {other}");
        }
    }
}
