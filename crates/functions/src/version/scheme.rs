//! The schemes of versions.

use std::cmp::Ordering;
use std::str::FromStr;

use pep440_rs::Version;
use setpoint_value::CallError;

/// The rules by which versions are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scheme {
    Debian,
    Rpm,
    Semver,
    Pep440,
    Loose,
}

impl Scheme {
    const ALL: [(&'static str, Scheme); 5] = [
        ("debian", Scheme::Debian),
        ("rpm", Scheme::Rpm),
        ("semver", Scheme::Semver),
        ("pep440", Scheme::Pep440),
        ("loose", Scheme::Loose),
    ];

    pub(super) fn named(name: &str) -> Result<Scheme, CallError> {
        let found = Scheme::ALL.into_iter().find(|(known, _)| *known == name);
        found.map(|(_, scheme)| scheme).ok_or_else(|| {
            let why = format!(
                "`{name}` is not a scheme of versions; it is `debian`, `rpm`, `semver`, `pep440` or `loose`"
            );
            CallError::fatal(why)
        })
    }

    /// Compares two versions.
    pub(super) fn compare(self, a: &str, b: &str) -> Result<Ordering, CallError> {
        self.check(a)?;
        self.check(b)?;
        Ok(match self {
            Scheme::Debian => with_epochs(a, b, compare_debian),
            Scheme::Rpm => with_epochs(a, b, compare_rpm),
            Scheme::Semver => semver(a).cmp(&semver(b)),
            Scheme::Pep440 => Version::from_str(a).ok().cmp(&Version::from_str(b).ok()),
            Scheme::Loose => loose(a).cmp(&loose(b)),
        })
    }

    /// Refuses a text that is no version of the scheme.
    pub(super) fn check(self, version: &str) -> Result<(), CallError> {
        let has_signs = |signs: &str| {
            let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || signs.as_bytes().contains(&byte);
            !version.is_empty() && version.bytes().all(is_sign)
        };
        let has_epoch = || match version.split_once(':') {
            Some((epoch, rest)) => {
                !epoch.is_empty() && !rest.is_empty() && epoch.bytes().all(|byte| byte.is_ascii_digit())
            }
            None => true,
        };
        let is_valid = match self {
            Scheme::Debian => has_signs(".+~-:") && has_epoch(),
            Scheme::Rpm => has_signs("._+~^-:") && has_epoch(),
            Scheme::Semver => semver(version).is_some(),
            Scheme::Pep440 => Version::from_str(version).is_ok(),
            Scheme::Loose => version.bytes().any(|byte| byte.is_ascii_alphanumeric()),
        };
        match is_valid {
            true => Ok(()),
            false => {
                let found = Scheme::ALL.into_iter().find(|(_, scheme)| *scheme == self);
                let name = found.map_or("", |(name, _)| name);
                Err(CallError::catchable(format!(
                    "`{version}` is not a version of the scheme `{name}`"
                )))
            }
        }
    }

    /// A version of a range as a whole one: with `semver`, `1.2` means `1.2.0`.
    pub(super) fn completed(self, version: &str) -> String {
        let (numbers, rest) = version.split_at(version.find(['-', '+']).unwrap_or(version.len()));
        let missing = 3_usize.saturating_sub(numbers.split('.').count());
        match self {
            Scheme::Semver => format!("{numbers}{}{rest}", ".0".repeat(missing)),
            _ => version.to_owned(),
        }
    }

    /// The numbers that a version of an approximate range is below; none if the scheme has no such ranges.
    pub(super) fn upper_bound(self, version: &str, is_caret: bool) -> Option<Vec<u64>> {
        if matches!(self, Scheme::Debian | Scheme::Rpm) {
            return None;
        }
        let mut upper = numbers(version);
        let place = match is_caret {
            // The first number that is not 0 may not change.
            true => upper
                .iter()
                .position(|number| *number != 0)
                .unwrap_or(upper.len().checked_sub(1)?),
            false => upper.len().checked_sub(2).unwrap_or(upper.len().checked_sub(1)?),
        };
        upper.truncate(place + 1);
        upper[place] = upper[place].saturating_add(1);
        Some(upper)
    }
}

/// The numbers with which a version begins.
pub(super) fn numbers(version: &str) -> Vec<u64> {
    let version = version.strip_prefix('v').unwrap_or(version);
    let end = version
        .find(|sign: char| !sign.is_ascii_digit() && sign != '.')
        .unwrap_or(version.len());
    version[..end]
        .split('.')
        .map_while(|number| number.parse().ok())
        .collect()
}

/// Compares epochs, then versions and revisions.
fn with_epochs(a: &str, b: &str, compare: fn(&[u8], &[u8]) -> Ordering) -> Ordering {
    let parts = |version: &str| {
        let (epoch, rest) = version.split_once(':').unwrap_or(("0", version));
        let (upstream, revision) = rest.rsplit_once('-').unwrap_or((rest, ""));
        let epoch = epoch.trim_start_matches('0');
        (
            (epoch.len(), epoch.to_owned()),
            upstream.to_owned(),
            revision.to_owned(),
        )
    };
    let (a, b) = (parts(a), parts(b));
    let upstream = || compare(a.1.as_bytes(), b.1.as_bytes());
    let revision = || compare(a.2.as_bytes(), b.2.as_bytes());
    a.0.cmp(&b.0).then_with(upstream).then_with(revision)
}

/// The first run of digits, without zeros before it, and the rest.
fn digits(text: &[u8]) -> ((usize, &[u8]), &[u8]) {
    let end = text
        .iter()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(text.len());
    let (run, rest) = text.split_at(end);
    let zeros = run.iter().take_while(|byte| **byte == b'0').count();
    ((end - zeros, &run[zeros..]), rest)
}

/// Compares as deb-version(7) says: runs without digits by letters before other signs, and a tilde before the end; runs of digits as numbers.
fn compare_debian(mut a: &[u8], mut b: &[u8]) -> Ordering {
    let weight = |byte: Option<&u8>| match byte {
        None => 0,
        Some(byte) if byte.is_ascii_digit() => 0,
        Some(b'~') => -1,
        Some(byte) if byte.is_ascii_alphabetic() => i32::from(*byte),
        Some(byte) => i32::from(*byte) + 256,
    };
    while !(a.is_empty() && b.is_empty()) {
        while a.first().is_some_and(|byte| !byte.is_ascii_digit())
            || b.first().is_some_and(|byte| !byte.is_ascii_digit())
        {
            match weight(a.first()).cmp(&weight(b.first())) {
                Ordering::Equal => (a, b) = (a.get(1..).unwrap_or_default(), b.get(1..).unwrap_or_default()),
                different => return different,
            }
        }
        let ((a_run, a_rest), (b_run, b_rest)) = (digits(a), digits(b));
        match a_run.cmp(&b_run) {
            Ordering::Equal => (a, b) = (a_rest, b_rest),
            different => return different,
        }
    }
    Ordering::Equal
}

/// Compares as rpm does: runs of digits and of letters, a tilde before the end and a caret after it.
fn compare_rpm(mut a: &[u8], mut b: &[u8]) -> Ordering {
    let is_separator = |byte: &u8| !byte.is_ascii_alphanumeric() && !b"~^".contains(byte);
    loop {
        let skip = |text: &mut &[u8]| {
            let count = text.iter().take_while(|byte| is_separator(byte)).count();
            *text = &text[count..];
        };
        skip(&mut a);
        skip(&mut b);
        let (first, second) = (a.first().copied(), b.first().copied());
        match (first, second) {
            (Some(b'~'), Some(b'~')) | (Some(b'^'), Some(b'^')) => (a, b) = (&a[1..], &b[1..]),
            (Some(b'~'), _) => return Ordering::Less,
            (_, Some(b'~')) => return Ordering::Greater,
            (Some(b'^'), None) => return Ordering::Greater,
            (None, Some(b'^')) => return Ordering::Less,
            (Some(b'^'), Some(_)) => return Ordering::Less,
            (Some(_), Some(b'^')) => return Ordering::Greater,
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some(one), Some(other)) => {
                let (is_number, other_is_number) = (one.is_ascii_digit(), other.is_ascii_digit());
                let compared = match (is_number, other_is_number) {
                    (true, false) => return Ordering::Greater,
                    (false, true) => return Ordering::Less,
                    (true, true) => {
                        let ((a_run, a_rest), (b_run, b_rest)) = (digits(a), digits(b));
                        (a, b) = (a_rest, b_rest);
                        a_run.cmp(&b_run)
                    }
                    (false, false) => {
                        let letters =
                            |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
                        let ((a_run, a_rest), (b_run, b_rest)) =
                            (a.split_at(letters(a)), b.split_at(letters(b)));
                        (a, b) = (a_rest, b_rest);
                        a_run.cmp(b_run)
                    }
                };
                if compared != Ordering::Equal {
                    return compared;
                }
            }
        }
    }
}

/// Part of a version before the release: numbers come before texts.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    Number(u64),
    Text(String),
}

/// A version of semver.org: its numbers, whether it is a release, and what is before the release.
fn semver(version: &str) -> Option<([u64; 3], bool, Vec<Identifier>)> {
    let version = version.strip_prefix('v').unwrap_or(version);
    let (version, build) = version
        .split_once('+')
        .map_or((version, None), |(version, build)| (version, Some(build)));
    let (core, before) = version
        .split_once('-')
        .map_or((version, None), |(core, before)| (core, Some(before)));
    let is_part = |part: &str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let has_leading_zero = |part: &str| part.len() > 1 && part.starts_with('0');
    if build.is_some_and(|build| !build.split('.').all(is_part)) {
        return None;
    }
    let mut parts = core.split('.');
    let mut number = || {
        let part = parts
            .next()
            .filter(|part| is_number(part) && !has_leading_zero(part))?;
        part.parse::<u64>().ok()
    };
    let numbers = [number()?, number()?, number()?];
    if parts.next().is_some() {
        return None;
    }
    let mut identifiers = Vec::new();
    for part in before.into_iter().flat_map(|before| before.split('.')) {
        identifiers.push(match is_number(part) {
            true if has_leading_zero(part) => return None,
            true => Identifier::Number(part.parse().ok()?),
            false if is_part(part) => Identifier::Text(part.to_owned()),
            false => return None,
        });
    }
    Some((numbers, before.is_none(), identifiers))
}

/// Runs of digits and of letters: letters come before digits.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Run {
    Letters(String),
    Digits(usize, String),
}

fn loose(version: &str) -> Vec<Run> {
    let mut runs = Vec::new();
    let mut rest = version.as_bytes();
    while let Some(first) = rest.first() {
        let is_alike = |byte: &u8| match first.is_ascii_digit() {
            true => byte.is_ascii_digit(),
            false => byte.is_ascii_alphabetic(),
        };
        let end = rest.iter().take_while(|byte| is_alike(byte)).count();
        let run = String::from_utf8_lossy(&rest[..end]).to_ascii_lowercase();
        match end {
            0 => {}
            _ if first.is_ascii_digit() => {
                let number = run.trim_start_matches('0').to_owned();
                runs.push(Run::Digits(number.len(), number));
            }
            _ => runs.push(Run::Letters(run)),
        }
        rest = &rest[end.max(1)..];
    }
    runs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn ascend(scheme: Scheme, versions: &[&str]) {
        for (at, lower) in versions.iter().enumerate() {
            assert_eq!(scheme.compare(lower, lower).unwrap(), Ordering::Equal);
            for higher in &versions[at + 1..] {
                assert_eq!(
                    scheme.compare(lower, higher).unwrap(),
                    Ordering::Less,
                    "{lower} {higher}"
                );
                assert_eq!(
                    scheme.compare(higher, lower).unwrap(),
                    Ordering::Greater,
                    "{lower} {higher}"
                );
            }
        }
    }

    #[test]
    fn versions_ascend() {
        ascend(
            Scheme::Debian,
            &[
                "1.0~~", "1.0~~a", "1.0~", "1.0", "1.0-1", "1.0a", "1.0+b", "1.0.1", "1.09.2", "1.10",
                "1:0.1",
            ],
        );
        ascend(
            Scheme::Rpm,
            &[
                "1.0~rc1", "1.0", "1.0^git1", "1.0a", "1.0.1", "1.1", "1.010", "1.11", "2:0",
            ],
        );
        ascend(
            Scheme::Semver,
            &[
                "1.0.0-1",
                "1.0.0-alpha",
                "1.0.0-alpha.1",
                "1.0.0-alpha.beta",
                "1.0.0-beta",
                "1.0.0",
                "1.0.1",
                "1.10.0",
            ],
        );
        ascend(
            Scheme::Pep440,
            &["1.0.dev1", "1.0a1", "1.0", "1.0.post1", "1!0.1"],
        );
        ascend(Scheme::Loose, &["1", "1.rc", "1.0", "1.2", "1.10"]);
    }

    #[test]
    fn other_texts_are_refused() {
        for (scheme, version) in [
            (Scheme::Debian, ""),
            (Scheme::Debian, "1 2"),
            (Scheme::Debian, ":1"),
            (Scheme::Semver, "1.2"),
            (Scheme::Semver, "1.2.03"),
            (Scheme::Semver, "1.2.3-"),
            (Scheme::Pep440, "1.0-x-y"),
            (Scheme::Loose, "--"),
        ] {
            assert!(scheme.check(version).is_err(), "{scheme:?} {version}");
        }
    }

    /// The answer of `dpkg`; none without this program.
    #[expect(clippy::disallowed_methods, reason = "it is the oracle of a test")]
    fn dpkg(a: &str, b: &str) -> Option<Ordering> {
        let holds = |sign: &str| {
            let run = std::process::Command::new("dpkg")
                .args(["--compare-versions", a, sign, b])
                .status();
            run.ok().map(|status| status.success())
        };
        Some(match (holds("lt")?, holds("eq")?) {
            (true, _) => Ordering::Less,
            (_, true) => Ordering::Equal,
            _ => Ordering::Greater,
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// The order is the same as in dpkg.
        #[test]
        fn debian_versions_are_compared_as_dpkg_does(a in "[0-9][0-9a~.+]{0,4}(-[0-9a~]{1,2})?", b in "[0-9][0-9a~.+]{0,4}(-[0-9a~]{1,2})?") {
            if let Some(expected) = dpkg(&a, &b) {
                prop_assert_eq!(Scheme::Debian.compare(&a, &b).unwrap(), expected);
            }
        }

        /// Each scheme has a total order.
        #[test]
        fn orders_are_consistent(versions in prop::collection::vec("[0-9a-b~^.-]{1,5}", 3)) {
            for (_, scheme) in Scheme::ALL {
                let compare = |a: usize, b: usize| scheme.compare(&versions[a], &versions[b]);
                let (Ok(ab), Ok(ba), Ok(bc), Ok(ac)) = (compare(0, 1), compare(1, 0), compare(1, 2), compare(0, 2)) else { continue };
                prop_assert_eq!(ab, ba.reverse());
                if ab == bc && ab != Ordering::Equal {
                    prop_assert_eq!(ac, ab);
                }
            }
        }
    }
}
