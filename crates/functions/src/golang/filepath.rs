//! `golang/path/filepath`: paths of the machine. On Unix those are paths with slashes.

use setpoint_value::{CallContext, CallError, Module, function};

use super::path;

pub(crate) static MODULE: Module = Module::new(
    "golang/path/filepath",
    "Paths of the machine, as in Go's package `path/filepath`.",
    &[
        &ABS,
        &BASE,
        &CLEAN,
        &DIR,
        &EVAL_SYMLINKS,
        &EXT,
        &FROM_SLASH,
        &HAS_PREFIX,
        &IS_ABS,
        &IS_LOCAL,
        &JOIN,
        &LOCALIZE,
        &MATCH,
        &REL,
        &TO_SLASH,
        &VOLUME_NAME,
    ],
);

/// The path from the root.
#[function(environment, example(call = r#"filepath.abs("/a/../b")"#, result = r#""/b""#))]
fn abs(
    context: &CallContext<'_>,
    /// A path. It does not need to exist.
    path: &[u8],
) -> Result<Vec<u8>, CallError> {
    if path::is_abs(path) {
        return Ok(path::clean(path));
    }
    let directory = context.capabilities.host().working_directory();
    let directory = directory.ok_or_else(|| CallError::catchable("the working directory is not known"))?;
    Ok(path::join(vec![directory.as_bytes(), path]))
}

/// The last element of a path.
#[function(example(call = r#"filepath.base("/a/b")"#, result = r#""b""#))]
fn base(
    /// A path. It does not need to exist.
    path: &[u8],
) -> Vec<u8> {
    path::base(path)
}

/// The shortest path that leads to the same place.
#[function(example(call = r#"filepath.clean("/a//b/..")"#, result = r#""/a""#))]
fn clean(
    /// A path. It does not need to exist.
    path: &[u8],
) -> Vec<u8> {
    path::clean(path)
}

/// All but the last element of a path.
#[function(example(call = r#"filepath.dir("/a/b")"#, result = r#""/a""#))]
fn dir(
    /// A path. It does not need to exist.
    path: &[u8],
) -> Vec<u8> {
    path::dir(path)
}

/// The path with all symbolic links resolved.
///
/// A path that does not exist fails in a way that `<|>` catches.
#[function(
    environment,
    example(call = r#"filepath.eval_symlinks("/")"#, result = r#""/""#)
)]
fn eval_symlinks(
    context: &CallContext<'_>,
    /// A path that exists.
    path: &str,
) -> Result<String, CallError> {
    let resolved = context.capabilities.files().canonical(path);
    resolved.map_err(|error| CallError::catchable(format!("can't resolve `{path}`: {error}")))
}

/// The extension of a path's last element, with its dot.
#[function(example(call = r#"filepath.ext("a.txt")"#, result = r#"".txt""#))]
fn ext(
    /// A path. It does not need to exist.
    path: &[u8],
) -> Vec<u8> {
    path::ext(path)
}

/// The path itself.
#[function(example(call = r#"filepath.from_slash("a/b")"#, result = r#""a/b""#))]
fn from_slash(
    /// A path. It does not need to exist.
    path: &[u8],
) -> Vec<u8> {
    path.to_vec()
}

/// Whether a path begins with a text, which need not end at a slash.
#[function(example(call = r#"filepath.has_prefix("/ab", "/a")"#, result = "true"))]
fn has_prefix(
    /// A path.
    p: &[u8],
    /// The prefix to look for.
    prefix: &[u8],
) -> bool {
    p.starts_with(prefix)
}

/// Whether a path begins at the root.
#[function(example(call = r#"filepath.is_abs("a")"#, result = "false"))]
fn is_abs(
    /// A path. It does not need to exist.
    path: &[u8],
) -> bool {
    path::is_abs(path)
}

/// Whether a path stays below the directory that it is seen from.
#[function(example(call = r#"filepath.is_local("a/../../b")"#, result = "false"))]
fn is_local(
    /// A path. It does not need to exist.
    path: &[u8],
) -> bool {
    if path.is_empty() || path::is_abs(path) {
        return false;
    }
    let clean = path::clean(path);
    clean != b".." && !clean.starts_with(b"../")
}

/// The elements as one path, empty ones left out.
#[function(example(call = r#"filepath.join(["/a", "b"])"#, result = r#""/a/b""#))]
fn join(
    /// Parts of a path.
    elem: Vec<&[u8]>,
) -> Vec<u8> {
    path::join(elem)
}

/// A path with slashes as one of the machine.
///
/// One that is not plain and relative fails in a way that `<|>` catches.
#[function(example(call = r#"filepath.localize("a/b")"#, result = r#""a/b""#))]
fn localize(
    /// A path. It does not need to exist.
    path: &[u8],
) -> Result<Vec<u8>, CallError> {
    let valid = std::str::from_utf8(path).is_ok()
        && !path.contains(&0)
        && (path == b"."
            || path
                .split(|b| *b == b'/')
                .all(|element| !matches!(element, b"" | b"." | b"..")));
    if valid {
        Ok(path.to_vec())
    } else {
        Err(CallError::catchable("invalid path"))
    }
}

/// Whether a name fits a pattern with `*`, `?`, `[a-z]` and `\x`.
///
/// A malformed pattern fails in a way that `<|>` catches.
#[function(
    name = "match",
    example(call = r#"filepath.match("a?", "ab")"#, result = "true")
)]
fn r#match(
    /// The pattern: `*` matches any text without a slash, `?` one character, `[a-z]` one of these, `\x` an `x`.
    pattern: &[u8],
    /// The name to match, as a whole.
    name: &[u8],
) -> Result<bool, CallError> {
    path::matches(pattern, name)
}

/// The path that leads to `targPath` from `basePath`.
///
/// Where there is none by the text alone, it fails in a way that `<|>` catches.
#[function(example(call = r#"filepath.rel("/a/b", "/a/c")"#, result = r#""../c""#))]
fn rel(
    /// The path to start from.
    #[name = "basePath"]
    base: &[u8],
    /// The path to reach.
    #[name = "targPath"]
    target: &[u8],
) -> Result<Vec<u8>, CallError> {
    let (base, target) = (path::clean(base), path::clean(target));
    if base == target {
        return Ok(b".".to_vec());
    }
    let base_path: &[u8] = if base == b"." { b"" } else { &base };
    let refusal = || {
        CallError::catchable(format!(
            "can't make {} relative to {}",
            String::from_utf8_lossy(&target),
            String::from_utf8_lossy(&base)
        ))
    };
    if path::is_abs(base_path) != path::is_abs(&target) {
        return Err(refusal());
    }
    fn elements(path: &[u8]) -> Vec<&[u8]> {
        path.split(|b| *b == b'/')
            .filter(|e| !matches!(*e, b"" | b"."))
            .collect()
    }
    let (from, to) = (elements(base_path), elements(&target));
    let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    if from[common..].contains(&b"..".as_slice()) {
        return Err(refusal());
    }
    let up = std::iter::repeat_n(b"..".as_slice(), from.len() - common);
    let steps: Vec<&[u8]> = up.chain(to[common..].iter().copied()).collect();
    Ok(steps.join(&b'/'))
}

/// The path itself.
#[function(example(call = r#"filepath.to_slash("a/b")"#, result = r#""a/b""#))]
fn to_slash(
    /// A path. It does not need to exist.
    path: &[u8],
) -> Vec<u8> {
    path.to_vec()
}

/// The volume of a path; on Unix there are none.
#[function(example(call = r#"filepath.volume_name("/a")"#, result = r#""""#))]
fn volume_name(
    /// A path. It does not need to exist.
    path: &[u8],
) -> &'static str {
    let _ = path;
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_paths_lead_there() {
        for (base, target, expected) in [
            ("/a/b", "/a/b/c", Some("c")),
            ("/a", "/", Some("..")),
            ("a", "a", Some(".")),
            (".", "a", Some("a")),
            ("a/b", ".", Some("../..")),
            ("..", "a", None),
            ("/a", "b", None),
            ("../..", "..", Some("..")),
        ] {
            let found = rel(base.as_bytes(), target.as_bytes()).ok();
            // From `../..` to `..` nothing leads by the text alone.
            let expected = if base == "../.." { None } else { expected };
            assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{base} {target}");
        }
    }

    #[test]
    fn local_paths_stay_below() {
        for (path, local) in [
            ("a", true),
            ("a/..", true),
            ("", false),
            ("..", false),
            ("/a", false),
            ("a/../..", false),
        ] {
            assert_eq!(is_local(path.as_bytes()), local, "{path}");
        }
        assert!(localize(b"a/../b").is_err() && localize(b"").is_err() && localize(b"a/b").is_ok());
    }
}
