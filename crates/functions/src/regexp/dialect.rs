//! From Go's dialect of regular expressions to that of the `regex` crate. Both are RE2 by descent; they differ in what `\d`
//! and its kin mean, in `\Q…\E`, in braces that repeat nothing, and in operators inside classes.

/// The same expression in the other dialect. What is wrong in one is wrong in the other.
pub(super) fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        rest = match c {
            '\\' => escape(after, &mut out, false),
            '[' => class(after, &mut out),
            '{' if !repeats(after) => {
                out.push_str("\\{");
                after
            }
            c => {
                out.push(c);
                after
            }
        };
    }
    out
}

/// What follows a backslash; gives what is left.
fn escape<'a>(rest: &'a str, out: &mut String, in_class: bool) -> &'a str {
    let Some(c) = rest.chars().next() else {
        out.push('\\');
        return rest;
    };
    let after = &rest[c.len_utf8()..];
    let plain = match (c, in_class) {
        ('d', false) => "[0-9]",
        ('d', true) => "0-9",
        ('D', _) => "[^0-9]",
        ('w', false) => "[0-9A-Za-z_]",
        ('w', true) => "0-9A-Za-z_",
        ('W', _) => "[^0-9A-Za-z_]",
        ('s', false) => "[\\t\\n\\f\\r ]",
        ('s', true) => "\\t\\n\\f\\r ",
        ('S', _) => "[^\\t\\n\\f\\r ]",
        ('b', false) => "(?-u:\\b)",
        ('B', false) => "(?-u:\\B)",
        ('Q', _) => {
            let (literal, after) = after.split_once("\\E").unwrap_or((after, ""));
            out.push_str(&regex::escape(literal));
            return after;
        }
        ('E', _) => "",
        _ => {
            out.push('\\');
            out.push(c);
            // The braces of `\p{Greek}` and `\x{41}` belong to the escape.
            let braces = after.strip_prefix('{').filter(|_| "pPx".contains(c));
            if let Some(end) = braces.and_then(|inner| inner.find('}')) {
                out.push_str(&after[..end + 2]);
                return &after[end + 2..];
            }
            return after;
        }
    };
    out.push_str(plain);
    after
}

/// What follows the opening bracket of a class; gives what is left.
fn class<'a>(rest: &'a str, out: &mut String) -> &'a str {
    out.push('[');
    let mut rest = rest;
    if let Some(after) = rest.strip_prefix('^') {
        out.push('^');
        rest = after;
    }
    let mut first = true;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        rest = match c {
            ']' if !first => {
                out.push(']');
                return after;
            }
            ']' => {
                out.push_str("\\]");
                after
            }
            '\\' => escape(after, out, true),
            '[' => match named_class(rest) {
                Some(name) => {
                    out.push_str(name);
                    &rest[name.len()..]
                }
                None => {
                    out.push_str("\\[");
                    after
                }
            },
            '&' | '~' => {
                out.push('\\');
                out.push(c);
                after
            }
            // Two in a row would be a difference of classes.
            '-' if after.starts_with('-') => {
                out.push_str("\\-");
                after
            }
            c => {
                out.push(c);
                after
            }
        };
        first = false;
    }
    rest
}

/// `[:alpha:]` or `[:^alpha:]` at the beginning.
fn named_class(text: &str) -> Option<&str> {
    let inner = text.strip_prefix("[:")?;
    let end = inner.find(":]")?;
    let name = inner[..end].trim_start_matches('^');
    name.chars()
        .all(|c| c.is_ascii_lowercase())
        .then(|| &text[..2 + end + 2])
}

/// Whether what follows an opening brace is a repetition: `3}`, `3,}` or `3,4}`.
fn repeats(text: &str) -> bool {
    let Some((inner, _)) = text.split_once('}') else {
        return false;
    };
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    match inner.split_once(',') {
        Some((low, high)) => digits(low) && (high.is_empty() || digits(high)),
        None => digits(inner),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_they_mean_in_go() {
        for (pattern, text, matches) in [
            (r"^\d+$", "12", true),
            (r"^\d+$", "١٢", false),
            (r"^\w$", "é", false),
            (r"\Qa.b\E.", "a.bc", true),
            (r"\Qa.b\E.", "axbc", false),
            ("a{,2}", "a{,2}", true),
            ("x{2}", "xx", true),
            (r"[[a]", "[", true),
            (r"[a&&b]", "&", true),
            (r"[^\D5]", "5", false),
            (r"[^\D5]", "4", true),
            (r"[[:alpha:]\d]", "7", true),
            (r"\bfoo\b", "a foo b", true),
            (r"\bfoo\b", "éfoo", true),
            ("(?i)ÄB", "äb", true),
            (r"\p{Greek}", "α", true),
            ("[]a]", "]", true),
            ("(?s).", "\u{fffd}", true),
            ("(?P<name>a)(?:b)", "ab", true),
        ] {
            let regex = regex::bytes::Regex::new(&translate(pattern)).expect("valid");
            assert_eq!(regex.is_match(text.as_bytes()), matches, "{pattern} on {text}");
        }
    }
}
