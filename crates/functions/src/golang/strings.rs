//! `golang/strings`: text, as in Go.

use std::cmp::Ordering;

use bstr::ByteSlice;
use setpoint_value::{CallError, Module, function};

use super::text::{self, CharacterSet};
use crate::text_builder::{self, TextBuilder};

pub(crate) static MODULE: Module = Module::new(
    "golang/strings",
    "Text, as in Go's package `strings`.",
    &[
        &CLONE,
        &COMPARE,
        &CONTAINS,
        &CONTAINS_ANY,
        &COUNT,
        &EQUAL_FOLD,
        &HAS_PREFIX,
        &HAS_SUFFIX,
        &INDEX,
        &INDEX_ANY,
        &JOIN,
        &LAST_INDEX,
        &LAST_INDEX_ANY,
        &REPEAT,
        &REPLACE,
        &REPLACE_ALL,
        &TITLE,
        &TO_LOWER,
        &TO_TITLE,
        &TO_UPPER,
        &TO_VALID_UTF_8,
        &TRIM,
        &TRIM_LEFT,
        &TRIM_PREFIX,
        &TRIM_RIGHT,
        &TRIM_SPACE,
        &TRIM_SUFFIX,
    ],
);

/// The text itself.
#[function(example(call = r#"strings.clone("a")"#, result = r#""a""#))]
fn clone(
    /// The text.
    s: &[u8],
) -> Vec<u8> {
    s.to_vec()
}

/// −1, 0 or 1: which text is first by its bytes.
#[function(example(call = r#"strings.compare("a", "b")"#, result = "-1"))]
fn compare(
    /// The first text.
    a: &[u8],
    /// The second text.
    b: &[u8],
) -> i64 {
    match a.cmp(b) {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    }
}

/// Whether `substr` is somewhere in `s`.
#[function(
    alias = "strings",
    example(call = r#"strings.contains("hello", "ell")"#, result = "true")
)]
pub(crate) fn contains(
    /// The text.
    s: &[u8],
    /// The text to look for.
    substr: &[u8],
) -> bool {
    text::find(s, substr).is_some()
}

/// Whether a character of `chars` is somewhere in `s`.
#[function(example(call = r#"strings.contains_any("hello", "xyo")"#, result = "true"))]
fn contains_any(
    /// The text.
    s: &[u8],
    /// The characters to look for.
    chars: &[u8],
) -> bool {
    index_any(s, chars) >= 0
}

/// How often `substr` is in `s`, without overlaps; an empty one once more than there are characters.
#[function(example(call = r#"strings.count("cheese", "e")"#, result = "3"))]
fn count(
    /// The text.
    s: &[u8],
    /// The text to look for.
    substr: &[u8],
) -> i64 {
    let count = if substr.is_empty() {
        text::runes(s).count() + 1
    } else {
        s.find_iter(substr).count()
    };
    place(Some(count))
}

/// Whether two texts differ at most in the case of their letters.
#[function(example(call = r#"strings.equal_fold("Straße", "STRAßE")"#, result = "true"))]
fn equal_fold(
    /// The text.
    s: &[u8],
    /// The text to compare it with.
    t: &[u8],
) -> bool {
    let folded = |text| text::runes(text).map(|(_, _, c)| text::folded(c));
    folded(s).eq(folded(t))
}

/// Whether `s` begins with `prefix`.
#[function(
    alias = "strings",
    example(call = r#"strings.has_prefix("hello", "he")"#, result = "true")
)]
pub(crate) fn has_prefix(
    /// The text.
    s: &[u8],
    /// The prefix to look for.
    prefix: &[u8],
) -> bool {
    s.starts_with(prefix)
}

/// Whether `s` ends with `suffix`.
#[function(
    alias = "strings",
    example(call = r#"strings.has_suffix("hello", "lo")"#, result = "true"),
    example(call = r#"strings.has_suffix("hello", "he")"#, result = "false")
)]
pub(crate) fn has_suffix(
    /// The text.
    s: &[u8],
    /// The suffix to look for.
    suffix: &[u8],
) -> bool {
    s.ends_with(suffix)
}

/// At which byte `substr` begins first; −1 if nowhere.
#[function(example(call = r#"strings.index("chicken", "ken")"#, result = "4"))]
fn index(
    /// The text.
    s: &[u8],
    /// The text to look for.
    substr: &[u8],
) -> i64 {
    place(text::find(s, substr))
}

/// At which byte the first character is that is in `chars`; −1 if nowhere.
#[function(example(call = r#"strings.index_any("golang", "gy")"#, result = "0"))]
fn index_any(
    /// The text.
    s: &[u8],
    /// The characters to look for.
    chars: &[u8],
) -> i64 {
    let set = CharacterSet::of(chars);
    let mut runes = text::runes(s);
    place(runes.find(|(_, _, c)| set.contains(*c)).map(|(at, _, _)| at))
}

/// The elements with `sep` between them.
#[function(example(call = r#"strings.join(["a", "", "b"], "-")"#, result = r#""a--b""#))]
fn join(
    /// The texts to join.
    elems: Vec<&[u8]>,
    /// The separator.
    sep: &[u8],
) -> Result<Vec<u8>, CallError> {
    Ok(text_builder::join(elems, sep)?)
}

/// At which byte `substr` begins last; −1 if nowhere.
#[function(example(call = r#"strings.last_index("go gopher", "go")"#, result = "3"))]
fn last_index(
    /// The text.
    s: &[u8],
    /// The text to look for.
    substr: &[u8],
) -> i64 {
    place(text::find_last(s, substr))
}

/// At which byte the last character is that is in `chars`; −1 if nowhere.
#[function(example(call = r#"strings.last_index_any("golang", "go")"#, result = "5"))]
fn last_index_any(
    /// The text.
    s: &[u8],
    /// The characters to look for.
    chars: &[u8],
) -> i64 {
    let set = CharacterSet::of(chars);
    let found = text::runes(s).filter(|(_, _, c)| set.contains(*c)).last();
    place(found.map(|(at, _, _)| at))
}

/// The text so many times.
///
/// A negative number is an error that `<|>` does not catch; a result of more than 64 MiB fails in a way that it catches.
#[function(example(call = r#"strings.repeat("na", 2)"#, result = r#""nana""#))]
fn repeat(
    /// The text.
    s: &[u8],
    /// The number of repetitions; not negative.
    count: i64,
) -> Result<Vec<u8>, CallError> {
    let count = usize::try_from(count).map_err(|_| CallError::fatal("negative repeat count"))?;
    text::repeat(s, count)
}

/// `s` with the first `n` `old`s replaced by `new`; all if `n` is negative.
#[function(example(
    call = r#"strings.replace("oink oink", "k", "ky", 1)"#,
    result = r#""oinky oink""#
))]
fn replace(
    /// The text.
    s: &[u8],
    /// The text to look for.
    old: &[u8],
    /// The replacement.
    new: &[u8],
    /// The maximum number of replacements; negative for all.
    n: i64,
) -> Result<Vec<u8>, CallError> {
    text::replace(s, old, new, n)
}

/// `s` with every `old` replaced by `new`, from left to right.
///
/// An empty `old` is found before each character and at the end.
#[function(
    alias = "strings",
    example(call = r#"strings.replace_all("banana", "an", "o")"#, result = r#""booa""#),
    example(call = r#"strings.replace_all("ab", "", "-")"#, result = r#""-a-b-""#)
)]
pub(crate) fn replace_all(
    /// The text.
    s: &[u8],
    /// The text to look for.
    old: &[u8],
    /// The replacement.
    new: &[u8],
) -> Result<Vec<u8>, CallError> {
    text::replace(s, old, new, -1)
}

/// The first letter of each word in title case.
#[function(example(
    call = r#"strings.title("her royal highness")"#,
    result = r#""Her Royal Highness""#
))]
pub(crate) fn title(
    /// The text.
    s: &[u8],
) -> String {
    let mut before = ' ';
    text::runes(s)
        .map(|(_, _, c)| {
            let written = if separates(before) { text::title(c) } else { c };
            before = c;
            written
        })
        .collect()
}

/// Every letter in lower case.
#[function(
    alias = "strings",
    example(call = r#"strings.to_lower("ÄB")"#, result = r#""äb""#)
)]
pub(crate) fn to_lower(
    /// The text.
    s: &[u8],
) -> String {
    text::to_lower(s)
}

/// Every letter in title case.
#[function(example(call = r#"strings.to_title("äb")"#, result = r#""ÄB""#))]
fn to_title(
    /// The text.
    s: &[u8],
) -> String {
    text::runes(s).map(|(_, _, c)| text::title(c)).collect()
}

/// Every letter in upper case.
#[function(
    alias = "strings",
    example(call = r#"strings.to_upper("äb")"#, result = r#""ÄB""#)
)]
pub(crate) fn to_upper(
    /// The text.
    s: &[u8],
) -> String {
    text::to_upper(s)
}

/// `s` with each run of bytes that are not UTF-8 replaced.
#[function(example(call = r#"strings.to_valid_utf_8("abc", "?")"#, result = r#""abc""#))]
fn to_valid_utf_8(
    /// The text.
    s: &[u8],
    /// The replacement.
    replacement: &[u8],
) -> Result<Vec<u8>, CallError> {
    let mut out = TextBuilder::new();
    let mut in_run = false;
    for chunk in s.utf8_chunks() {
        if !chunk.valid().is_empty() {
            out.push_str(chunk.valid());
            in_run = false;
        }
        if !chunk.invalid().is_empty() && !in_run {
            out.push_bytes(replacement);
            in_run = true;
        }
    }
    Ok(out.finish()?)
}

/// `s` without the characters at both ends that are in `cutset`.
#[function(example(call = r#"strings.trim("¡¡Hello!!", "!¡")"#, result = r#""Hello""#))]
fn trim(
    /// The text.
    s: &[u8],
    /// The characters to remove, in any order.
    cutset: &[u8],
) -> Vec<u8> {
    let set = CharacterSet::of(cutset);
    let s = text::trim_start(s, |c| set.contains(c));
    text::trim_end(s, |c| set.contains(c)).to_vec()
}

/// `s` without the characters at the beginning that are in `cutset`.
#[function(example(call = r#"strings.trim_left("xxa", "x")"#, result = r#""a""#))]
fn trim_left(
    /// The text.
    s: &[u8],
    /// The characters to remove, in any order.
    cutset: &[u8],
) -> Vec<u8> {
    let set = CharacterSet::of(cutset);
    text::trim_start(s, |c| set.contains(c)).to_vec()
}

/// `s` without `prefix` at its beginning.
#[function(example(call = r#"strings.trim_prefix("xxa", "x")"#, result = r#""xa""#))]
fn trim_prefix(
    /// The text.
    s: &[u8],
    /// The prefix to remove.
    prefix: &[u8],
) -> Vec<u8> {
    s.strip_prefix(prefix).unwrap_or(s).to_vec()
}

/// `s` without the characters at the end that are in `cutset`.
#[function(example(call = r#"strings.trim_right("axx", "x")"#, result = r#""a""#))]
fn trim_right(
    /// The text.
    s: &[u8],
    /// The characters to remove, in any order.
    cutset: &[u8],
) -> Vec<u8> {
    let set = CharacterSet::of(cutset);
    text::trim_end(s, |c| set.contains(c)).to_vec()
}

/// `s` without the blanks at both ends.
#[function(
    alias = "strings",
    example(call = r#"strings.trim_space(" a ")"#, result = r#""a""#)
)]
pub(crate) fn trim_space(
    /// The text.
    s: &[u8],
) -> Vec<u8> {
    text::trim_space(s).to_vec()
}

/// `s` without `suffix` at its end.
#[function(example(call = r#"strings.trim_suffix("axx", "x")"#, result = r#""ax""#))]
fn trim_suffix(
    /// The text.
    s: &[u8],
    /// The suffix to remove.
    suffix: &[u8],
) -> Vec<u8> {
    s.strip_suffix(suffix).unwrap_or(s).to_vec()
}

/// Whether a word begins after this character.
fn separates(c: char) -> bool {
    if c.is_ascii() {
        !c.is_ascii_alphanumeric() && c != '_'
    } else {
        c.is_whitespace()
    }
}

/// A position as Go gives it.
fn place(at: Option<usize>) -> i64 {
    at.map_or(-1, |at| i64::try_from(at).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Comparing each character with each of the set would take minutes.
    #[test]
    fn long_sets_of_characters_are_searched_quickly() {
        let text = b"a".repeat(300_000);
        let other: String = ('b'..='z').cycle().take(300_000).collect();
        assert!(!contains_any(&text, other.as_bytes()));
        assert_eq!(last_index_any(&text, other.as_bytes()), -1);
        assert_eq!(trim(&text, format!("{other}a").as_bytes()), b"");
        assert_eq!(trim(&text, other.as_bytes()), text);
    }
}
