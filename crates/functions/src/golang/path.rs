//! `golang/path`: paths with slashes, as text.

use setpoint_value::{CallError, Module, function};

pub(crate) static MODULE: Module = Module::new(
    "golang/path",
    "Paths with slashes, as in Go's package `path`.",
    &[&BASE, &CLEAN, &DIR, &EXT, &IS_ABS, &JOIN, &MATCH],
);

/// The last element of a path.
#[function(example(call = r#"path.base("/a/b/")"#, result = r#""b""#))]
pub(super) fn base(
    /// A path. It does not need to exist.
    path: &[u8],
) -> Vec<u8> {
    if path.is_empty() {
        return b".".to_vec();
    }
    let end = path.iter().rposition(|b| *b != b'/').map_or(0, |at| at + 1);
    let path = &path[..end];
    let last = path.rsplit(|b| *b == b'/').next().unwrap_or_default();
    if last.is_empty() {
        b"/".to_vec()
    } else {
        last.to_vec()
    }
}

/// The shortest path that leads to the same place.
#[function(example(call = r#"path.clean("a//b/../c/.")"#, result = r#""a/c""#))]
pub(super) fn clean(
    /// A path. It does not need to exist.
    path: &[u8],
) -> Vec<u8> {
    let rooted = path.starts_with(b"/");
    let mut elements: Vec<&[u8]> = Vec::new();
    for element in path.split(|b| *b == b'/') {
        match element {
            b"" | b"." => {}
            b".." => match elements.last() {
                Some(last) if *last != b".." => {
                    elements.pop();
                }
                _ if rooted => {}
                _ => elements.push(element),
            },
            other => elements.push(other),
        }
    }
    let mut out = if rooted { b"/".to_vec() } else { Vec::new() };
    out.extend(elements.join(&b'/'));
    if out.is_empty() { b".".to_vec() } else { out }
}

/// All but the last element of a path.
#[function(example(call = r#"path.dir("/a/b")"#, result = r#""/a""#))]
pub(super) fn dir(
    /// A path. It does not need to exist.
    path: &[u8],
) -> Vec<u8> {
    let end = path.iter().rposition(|b| *b == b'/').map_or(0, |at| at + 1);
    clean(&path[..end])
}

/// The extension of a path's last element, with its dot.
#[function(example(call = r#"path.ext("/a/b.tar.gz")"#, result = r#"".gz""#))]
pub(super) fn ext(
    /// A path. It does not need to exist.
    path: &[u8],
) -> Vec<u8> {
    let last = path.rsplit(|b| *b == b'/').next().unwrap_or_default();
    let dot = last.iter().rposition(|b| *b == b'.');
    dot.map(|at| last[at..].to_vec()).unwrap_or_default()
}

/// Whether a path begins at the root.
#[function(example(call = r#"path.is_abs("/a")"#, result = "true"))]
pub(super) fn is_abs(
    /// A path. It does not need to exist.
    path: &[u8],
) -> bool {
    path.starts_with(b"/")
}

/// The elements as one path, empty ones left out.
#[function(example(call = r#"path.join(["a", "", "../b"])"#, result = r#""b""#))]
pub(super) fn join(
    /// Parts of a path.
    elem: Vec<&[u8]>,
) -> Vec<u8> {
    let elements: Vec<&[u8]> = elem.into_iter().filter(|e| !e.is_empty()).collect();
    if elements.is_empty() {
        return Vec::new();
    }
    clean(&elements.join(&b'/'))
}

/// Whether a name fits a pattern with `*`, `?`, `[a-z]` and `\x`.
///
/// `*` and `?` stop at slashes. A malformed pattern fails in a way that `<|>` catches.
#[function(
    name = "match",
    example(call = r#"path.match("*.conf", "a.conf")"#, result = "true")
)]
fn r#match(
    /// The pattern: `*` matches any text without a slash, `?` one character, `[a-z]` one of these, `\x` an `x`.
    pattern: &[u8],
    /// The name to match, as a whole.
    name: &[u8],
) -> Result<bool, CallError> {
    matches(pattern, name)
}

/// Whether a name fits a pattern.
pub(super) fn matches(pattern: &[u8], name: &[u8]) -> Result<bool, CallError> {
    let items = compile(pattern).ok_or_else(|| CallError::catchable("syntax error in pattern"))?;
    let name: Vec<char> = super::text::runes(name).map(|(_, _, c)| c).collect();
    Ok(fits(&items, &name))
}

/// A piece of a pattern.
enum Item {
    /// Any run of characters without a slash.
    Star,
    /// One character but a slash.
    Any,
    /// This character.
    Literal(char),
    /// One character within, or without, these ranges.
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
}

fn compile(pattern: &[u8]) -> Option<Vec<Item>> {
    let characters: Vec<char> = super::text::runes(pattern).map(|(_, _, c)| c).collect();
    let mut items = Vec::new();
    let mut at = 0;
    while let Some(c) = characters.get(at) {
        at += 1;
        items.push(match c {
            '*' => Item::Star,
            '?' => Item::Any,
            '\\' => {
                at += 1;
                Item::Literal(*characters.get(at - 1)?)
            }
            '[' => {
                let negated = characters.get(at) == Some(&'^');
                at += usize::from(negated);
                let mut ranges = Vec::new();
                // The first character may be a closing bracket no more than any other: an empty class is malformed.
                while ranges.is_empty() || characters.get(at) != Some(&']') {
                    let low = bound(&characters, &mut at)?;
                    let high = if characters.get(at) == Some(&'-') {
                        at += 1;
                        bound(&characters, &mut at)?
                    } else {
                        low
                    };
                    ranges.push((low, high));
                }
                at += 1;
                Item::Class { negated, ranges }
            }
            other => Item::Literal(*other),
        });
    }
    Some(items)
}

/// One end of a range in a class.
fn bound(characters: &[char], at: &mut usize) -> Option<char> {
    let c = *characters.get(*at)?;
    *at += 1;
    match c {
        '-' | ']' => None,
        '\\' => {
            *at += 1;
            characters.get(*at - 1).copied()
        }
        other => Some(other),
    }
}

/// Going back only to the last star is enough: an earlier one cannot do better. But a star cannot cross a slash.
fn fits(items: &[Item], name: &[char]) -> bool {
    let (mut item, mut at) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    loop {
        match items.get(item) {
            Some(Item::Star) => {
                star = Some((item, at));
                item += 1;
                continue;
            }
            None if at == name.len() => return true,
            Some(single) if name.get(at).is_some_and(|c| fits_one(single, *c)) => {
                item += 1;
                at += 1;
                continue;
            }
            _ => {}
        }
        match star {
            Some((star_item, star_at)) if name.get(star_at).is_some_and(|c| *c != '/') => {
                star = Some((star_item, star_at + 1));
                item = star_item + 1;
                at = star_at + 1;
            }
            _ => return false,
        }
    }
}

fn fits_one(item: &Item, c: char) -> bool {
    match item {
        Item::Star => false,
        Item::Any => c != '/',
        Item::Literal(literal) => *literal == c,
        Item::Class { negated, ranges } => {
            // In Go a class may match a slash only when it names it; a negated one takes it.
            ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != *negated
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_taken_apart_as_in_go() {
        for (path, clean_path, base_name, directory) in [
            ("", ".", ".", "."),
            ("/", "/", "/", "/"),
            ("//a", "/a", "a", "/"),
            ("/a/", "/a", "a", "/a"),
            ("a/../..", "..", "..", "."),
            ("/../a", "/a", "a", "/"),
            ("a/./b//c", "a/b/c", "c", "a/b"),
            ("a", "a", "a", "."),
            ("///", "/", "/", "/"),
        ] {
            assert_eq!(clean(path.as_bytes()), clean_path.as_bytes(), "clean {path}");
            assert_eq!(base(path.as_bytes()), base_name.as_bytes(), "base {path}");
            assert_eq!(dir(path.as_bytes()), directory.as_bytes(), "dir {path}");
        }
        assert_eq!(ext(b"a.b/c"), b"");
        assert_eq!(join(vec![]), b"");
    }

    #[test]
    fn patterns_fit_as_in_go() {
        for (pattern, name, expected) in [
            ("abc", "abc", Some(true)),
            ("*", "abc", Some(true)),
            ("*", "a/b", Some(false)),
            ("a*/b", "a/c/b", Some(false)),
            ("a*b*c", "aXbYbZc", Some(true)),
            ("a?b", "a/b", Some(false)),
            ("a?b", "aéb", Some(true)),
            ("[a-c]x", "bx", Some(true)),
            ("[^a-c]x", "bx", Some(false)),
            (r"\*", "*", Some(true)),
            (r"[\]a]", "]", Some(true)),
            ("[]a]", "]", None),
            ("[a-]", "a", None),
            ("[", "a", None),
            (r"\", "a", None),
            ("*x", "xxx", Some(true)),
            ("a*", "a", Some(true)),
            ("", "", Some(true)),
        ] {
            assert_eq!(
                matches(pattern.as_bytes(), name.as_bytes()).ok(),
                expected,
                "{pattern} {name}"
            );
        }
    }
}
