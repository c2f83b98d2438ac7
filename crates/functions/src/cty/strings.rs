//! Text, counted in what a reader takes for characters: grapheme clusters.

use setpoint_value::{Bound, CallError, Refinement, Type, Value, function};
use unicode_segmentation::UnicodeSegmentation;

use super::{DYNAMIC, MODULE, UNKNOWN, count, flags, not_null, refuse, text};
use crate::golang::strings::title as title_of_words;
use crate::golang::text::{CharacterSet, to_lower, to_upper};
use crate::text_builder::TextBuilder;

/// Far more than any text is indented by, and little enough to be no danger.
const WIDEST_INDENT: i64 = 1000;

/// All letters in upper case.
#[function(flags = DYNAMIC, refine = not_null, example(call = r#"cty.upper("hé")"#, result = r#""HÉ""#))]
pub fn upper(
    /// Any text, as UTF-8.
    str: &str,
) -> String {
    to_upper(str.as_bytes())
}

/// All letters in lower case.
#[function(flags = DYNAMIC, refine = not_null, example(call = r#"cty.lower("HÉ")"#, result = r#""hé""#))]
pub fn lower(
    /// Any text, as UTF-8.
    str: &str,
) -> String {
    to_lower(str.as_bytes())
}

/// The characters from the last to the first.
#[function(
    flags = DYNAMIC,
    refine = not_null,
    example(call = r#"cty.reverse("abc")"#, result = r#""cba""#)
)]
pub fn reverse(
    /// Any text, as UTF-8.
    str: &str,
) -> String {
    str.graphemes(true).rev().collect()
}

/// How many characters a text has.
#[function(
    signature = "func(str str) int",
    flags = &[flags("!~")],
    refine = not_null,
    example(call = r#"cty.strlen("añb")"#, result = "3")
)]
pub fn strlen(
    /// Any text, as UTF-8.
    str: &Value,
) -> Result<Value, CallError> {
    let Some(unknown) = str.as_unknown() else {
        return Ok(count(text(std::slice::from_ref(str), 0)?.graphemes(true).count()));
    };
    let prefix = unknown
        .refinement
        .prefix
        .as_ref()
        .map_or(&b""[..], |p| p.as_bytes());
    // What follows may join the last cluster, but cannot take one away.
    let known = prefix
        .utf8_chunks()
        .next()
        .map_or(0, |chunk| chunk.valid().graphemes(true).count());
    Ok(Value::refined(
        Type::Int,
        Refinement::not_null().with_lower(Bound::inclusive(known as f64)),
    ))
}

/// `length` characters from `offset` on; a negative offset counts from the end, a negative length is the rest.
#[function(
    flags = &[flags("!"), flags("")],
    refine = not_null,
    example(call = r#"cty.substr("hello", 1, 3)"#, result = r#""ell""#),
    example(call = r#"cty.substr("hello", -2, -1)"#, result = r#""lo""#)
)]
pub fn substr(
    /// Any text, as UTF-8.
    str: &str,
    /// The first character, counted from 0; negative: from the end.
    offset: i64,
    /// The number of characters; -1, or any other negative number, for all that follow.
    length: i64,
) -> String {
    let characters: Vec<&str> = str.graphemes(true).collect();
    let total = i64::try_from(characters.len()).unwrap_or(i64::MAX);
    let start = if offset < 0 {
        (total.saturating_add(offset)).max(0)
    } else {
        offset.min(total)
    };
    let end = match length {
        0.. => start.saturating_add(length).min(total),
        _ => total,
    };
    // Both are between 0 and the number of characters.
    characters[start as usize..end as usize].concat()
}

/// The texts of all lists, one after another, with a separator between them.
#[function(
    raw,
    signature = "func(separator str, first []str, more []str…) str",
    parameters(
        /// The separator.
        separator,
        /// A list of texts.
        first,
        /// Further lists.
        more,
    ),
    refine = not_null,
    example(call = r#"cty.join(", ", ["a", "b"], ["c"])"#, result = r#""a, b, c""#)
)]
pub fn join(arguments: &[Value], _: &Type) -> Result<Value, CallError> {
    let separator = text(arguments, 0)?;
    let mut joined = TextBuilder::new();
    let mut first = true;
    for (index, list) in arguments.iter().enumerate().skip(1) {
        let Some(list) = list.as_list() else {
            return refuse(index, "is not a list");
        };
        for (position, item) in list.iter().enumerate() {
            if !first {
                joined.push_str(separator);
            }
            first = false;
            match item {
                Value::Str(item) => match item.as_str() {
                    Some(item) => joined.push_str(item),
                    None => return refuse(index, format!("element {position} is not valid UTF-8")),
                },
                Value::Unknown(_) => {
                    return Ok(Value::refined(
                        Type::Str,
                        Refinement::not_null().with_prefix(joined.finish()?),
                    ));
                }
                _ => return refuse(index, format!("element {position} is not a str")),
            }
        }
    }
    Ok(Value::str(joined.finish()?))
}

/// The pieces between the separators; with an empty separator, the characters.
#[function(
    refine = not_null,
    example(call = r#"cty.split(",", "a,b,c")"#, result = r#"["a", "b", "c"]"#)
)]
pub fn split(
    /// The separator.
    separator: &str,
    /// Any text, as UTF-8.
    str: &str,
) -> Vec<String> {
    if separator.is_empty() {
        return str.chars().map(String::from).collect();
    }
    str.split(separator).map(str::to_owned).collect()
}

/// The texts in the order of their characters' numbers.
#[function(
    signature = "func(list []str) []str",
    flags = UNKNOWN,
    refine = not_null,
    example(call = r#"cty.sort(["b", "c", "a"])"#, result = r#"["a", "b", "c"]"#)
)]
pub fn sort(
    /// A list of texts.
    list: &Value,
    ty: &Type,
) -> Result<Value, CallError> {
    if !list.is_wholly_known() {
        let (least, most) = setpoint_value::length_range(list).unwrap_or((0, None));
        return Ok(Value::refined(
            ty.clone(),
            Refinement::not_null().with_length(least, most),
        ));
    }
    let Value::List(list) = list else {
        return refuse(0, "is not a list");
    };
    let mut items: Vec<Value> = list.iter().cloned().collect();
    items.sort_by(setpoint_value::compare);
    Ok(Value::list(Type::Str, items))
}

/// The text without the ends of lines at its end.
#[function(refine = not_null, example(call = r#"cty.chomp("a\n\n")"#, result = r#""a""#))]
pub fn chomp(
    /// Any text, as UTF-8.
    str: &str,
) -> String {
    str.trim_end_matches(['\n', '\r']).to_owned()
}

/// All lines but the first with so many blanks before them.
///
/// Fewer than 0 or more than 1000 fail in a way that `<|>` catches.
#[function(refine = not_null, example(call = r#"cty.indent(2, "a\nb")"#, result = r#""a\n  b""#))]
pub fn indent(
    /// The number of spaces, 0 to 1000.
    spaces: i64,
    /// Any text, as UTF-8.
    str: &str,
) -> Result<Vec<u8>, CallError> {
    let width = match usize::try_from(spaces) {
        Ok(width) if spaces <= WIDEST_INDENT => width,
        _ => return refuse(0, format!("an indent is between 0 and {WIDEST_INDENT}")),
    };
    let mut out = TextBuilder::new();
    for line in str.split_inclusive('\n') {
        out.push_str(line);
        if line.ends_with('\n') {
            out.push_repeated(b" ", width);
        }
    }
    Ok(out.finish()?)
}

/// The first letter of each word in title case.
#[function(
    refine = not_null,
    example(call = r#"cty.title("one two_x 3d")"#, result = r#""One Two_x 3d""#)
)]
pub fn title(
    /// Any text, as UTF-8.
    str: &str,
) -> String {
    title_of_words(str.as_bytes())
}

/// The text without blanks at its ends.
#[function(refine = not_null, example(call = r#"cty.trim_space("  a b\n")"#, result = r#""a b""#))]
pub fn trim_space(
    /// Any text, as UTF-8.
    str: &str,
) -> String {
    str.trim().to_owned()
}

/// The text without any of the characters in `cutset` at its ends.
#[function(refine = not_null, example(call = r#"cty.trim("?!hello?", "!?")"#, result = r#""hello""#))]
pub fn trim(
    /// Any text, as UTF-8.
    str: &str,
    /// The characters to remove, in any order.
    cutset: &str,
) -> String {
    let set = CharacterSet::of(cutset.as_bytes());
    str.trim_matches(|c| set.contains(c)).to_owned()
}

/// The text without `prefix`, if it begins so.
#[function(refine = not_null, example(call = r#"cty.trim_prefix("hello", "he")"#, result = r#""llo""#))]
pub fn trim_prefix(
    /// Any text, as UTF-8.
    str: &str,
    /// The prefix to remove.
    prefix: &str,
) -> String {
    str.strip_prefix(prefix).unwrap_or(str).to_owned()
}

/// The text without `suffix`, if it ends so.
#[function(refine = not_null, example(call = r#"cty.trim_suffix("hello", "lo")"#, result = r#""hel""#))]
pub fn trim_suffix(
    /// Any text, as UTF-8.
    str: &str,
    /// The suffix to remove.
    suffix: &str,
) -> String {
    str.strip_suffix(suffix).unwrap_or(str).to_owned()
}

/// The text with something else for each `substr`.
#[function(
    refine = not_null,
    example(call = r#"cty.replace("a-b-c", "-", "+")"#, result = r#""a+b+c""#)
)]
pub fn replace(
    /// Any text, as UTF-8.
    str: &str,
    /// The text to look for.
    substr: &str,
    /// The replacement.
    by: &str,
) -> Result<Vec<u8>, CallError> {
    crate::golang::text::replace(str.as_bytes(), substr.as_bytes(), by.as_bytes(), -1)
}
