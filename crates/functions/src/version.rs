//! `version`: comparison of versions, by the rules of several schemes.

mod scheme;

use std::cmp::Ordering;

use setpoint_value::{CallError, Module, function};

use self::scheme::Scheme;

pub(crate) static MODULE: Module = Module::new(
    "version",
    "Comparison of versions, by the rules of a scheme: `debian`, `rpm`, `semver`, `pep440` or `loose`.",
    &[&COMPARE, &SATISFIES, &SORT],
);

/// -1 if a version is lower than another one, 1 if it is higher, 0 if both are equal.
///
/// Schemes: `debian` (deb-version(7)), `rpm`, `semver` (2.0.0), `pep440`, and `loose`, which compares runs of digits and of letters. A text that is no version of the
/// scheme fails in a way that `<|>` catches.
#[function(
    extension,
    example(call = r#"version.compare("1.0~rc1-1", "1.0-1", "debian")"#, result = "-1"),
    example(call = r#"version.compare("1.10.0", "1.9.0", "semver")"#, result = "1")
)]
fn compare(
    /// A version.
    a: &str,
    /// Another version.
    b: &str,
    /// The scheme of both.
    scheme: &str,
) -> Result<i64, CallError> {
    let ordering = Scheme::named(scheme)?.compare(a, b)?;
    Ok(ordering as i64)
}

/// Whether a version is in a range.
///
/// A range has clauses with commas between them, which must all hold: `>=1.2, <2`. The signs are `=`, `!=`, `<`, `<=`, `>` and `>=`. With `semver`, `pep440` and `loose` there
/// are also `^1.2` (below 2) and `~1.2.3` or `~=1.2.3` (below 1.3).
#[function(
    extension,
    example(call = r#"version.satisfies("1.4.2", "^1.2", "semver")"#, result = "true"),
    example(
        call = r#"version.satisfies("2:1.0-1", ">=1.5, <3:0", "debian")"#,
        result = "true"
    )
)]
fn satisfies(
    /// A version.
    version: &str,
    /// The range.
    range: &str,
    /// The scheme of both.
    scheme: &str,
) -> Result<bool, CallError> {
    let scheme = Scheme::named(scheme)?;
    scheme.check(version)?;
    let mut holds = true;
    for clause in range.split(',') {
        holds &= clause_holds(version, clause.trim(), scheme)?;
    }
    Ok(holds)
}

fn clause_holds(version: &str, clause: &str, scheme: Scheme) -> Result<bool, CallError> {
    const SIGNS: [&str; 10] = [">=", "<=", "!=", "==", "~=", ">", "<", "=", "^", "~"];
    let sign = SIGNS
        .into_iter()
        .find(|sign| clause.starts_with(sign))
        .unwrap_or("=");
    let wanted = clause.strip_prefix(sign).unwrap_or(clause).trim();
    if wanted.is_empty() {
        return Err(CallError::catchable(format!(
            "`{clause}` is not a clause of a range"
        )));
    }
    let is_approximate = matches!(sign, "^" | "~" | "~=");
    let full = scheme.completed(wanted);
    let ordering = scheme.compare(version, &full)?;
    if is_approximate {
        let upper = scheme.upper_bound(wanted, sign == "^");
        let upper = upper.ok_or_else(|| {
            CallError::catchable(format!(
                "`{clause}`: `{sign}` needs a version that begins with numbers, and another scheme"
            ))
        })?;
        return Ok(ordering != Ordering::Less && scheme::numbers(version) < upper);
    }
    Ok(match sign {
        ">=" => ordering != Ordering::Less,
        "<=" => ordering != Ordering::Greater,
        ">" => ordering == Ordering::Greater,
        "<" => ordering == Ordering::Less,
        "!=" => ordering != Ordering::Equal,
        _ => ordering == Ordering::Equal,
    })
}

/// Versions, the lowest first. Equal ones stay in their order.
#[function(
    extension,
    example(
        call = r#"version.sort(["1.10", "1.9", "1.9~rc1",], "debian")"#,
        result = r#"["1.9~rc1", "1.9", "1.10"]"#
    )
)]
fn sort(
    /// The versions.
    versions: Vec<&str>,
    /// Their scheme.
    scheme: &str,
) -> Result<Vec<String>, CallError> {
    let scheme = Scheme::named(scheme)?;
    for version in &versions {
        scheme.check(version)?;
    }
    let mut sorted = versions;
    sorted.sort_by(|a, b| scheme.compare(a, b).unwrap_or(Ordering::Equal));
    Ok(sorted.into_iter().map(str::to_owned).collect())
}
