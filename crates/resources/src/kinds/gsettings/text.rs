//! The [text form of GVariant](https://docs.gtk.org/glib/gvariant-text-format.html), as far as two texts are compared by what they mean.
//!
//! A text is taken apart into its tokens without what only says of which type something is, and texts and numbers count by their value: `@as []` is `[]`,
//! `uint32 5` is `5`, `"a"` is `'a'`.

/// A piece of a text.
#[derive(Debug, Clone, PartialEq)]
enum Token {
    /// What is in quotes.
    Text(String),
    Whole(i128),
    Fraction(f64),
    /// `true`, `nothing`, `b` before quotes.
    Word(String),
    /// A bracket, a comma.
    Sign(char),
}

/// Words that say of which type the next value is.
const TYPES: &[&str] = &[
    "boolean",
    "byte",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "handle",
    "int64",
    "uint64",
    "double",
    "string",
    "objectpath",
    "signature",
];

/// Whether a setting is what is wanted: `is` as `gsettings get` prints it, `wanted` as `gsettings set` is given it.
pub(super) fn is_same(wanted: &str, is: &str) -> bool {
    let Some(is) = tokens(is) else {
        return wanted.trim() == is.trim();
    };
    // What is no GVariant text is a text as it is, if the setting is one.
    matches!(is.as_slice(), [Token::Text(text)] if text == wanted) || tokens(wanted).as_ref() == Some(&is)
}

/// Whether it is one text in quotes, and nothing else.
pub(super) fn is_quoted(text: &str) -> bool {
    matches!(tokens(text).as_deref(), Some([Token::Text(_)])) && text.starts_with(['\'', '"'])
}

/// A text in quotes.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::from("'");
    for sign in text.chars() {
        match sign {
            '\'' | '\\' => quoted.extend(['\\', sign]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            sign if sign.is_control() => quoted.push_str(&format!("\\u{:04x}", u32::from(sign))),
            sign => quoted.push(sign),
        }
    }
    quoted + "'"
}

/// The pieces of a text that mean something; none if it is no text of GVariant.
fn tokens(text: &str) -> Option<Vec<Token>> {
    let mut rest = text.trim_start();
    let mut tokens = Vec::new();
    while let Some(first) = rest.chars().next() {
        let after = match first {
            '\'' | '"' => {
                let (text, after) = unquoted(rest)?;
                tokens.push(Token::Text(text));
                after
            }
            '@' => rest.get(1 + length_of_type(&rest[1..])..)?,
            '+' | '-' | '.' | '0'..='9' => {
                let is_inner = |sign: char| sign.is_ascii_alphanumeric() || ".+-".contains(sign);
                let (number, after) = split(rest, is_inner);
                tokens.push(number_of(number)?);
                after
            }
            sign if sign.is_ascii_alphabetic() => {
                let (word, after) = split(rest, |sign| sign.is_ascii_alphanumeric() || sign == '_');
                if !TYPES.contains(&word) {
                    tokens.push(Token::Word(word.to_owned()));
                }
                after
            }
            '[' | ']' | '(' | ')' | '{' | '}' | '<' | '>' | ',' | ':' => {
                tokens.push(Token::Sign(first));
                &rest[1..]
            }
            _ => return None,
        };
        rest = after.trim_start();
    }
    Some(tokens)
}

/// What stands at the beginning, and the rest.
fn split(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|sign| !belongs(sign)).unwrap_or(text.len()))
}

/// How many bytes of a text are a type in the letters of D-Bus: `a{sv}`. A bracket that was not opened in it belongs to what is around.
fn length_of_type(text: &str) -> usize {
    let mut open = 0_usize;
    for (at, sign) in text.char_indices() {
        match sign {
            '(' | '{' => open += 1,
            ')' | '}' if open > 0 => open -= 1,
            '*' | '?' => {}
            sign if sign.is_ascii_lowercase() => {}
            _ => return at,
        }
    }
    text.len()
}

/// What is in the quotes at the beginning, and what comes after them.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut signs = text.char_indices();
    let (_, quote) = signs.next()?;
    let mut inside = String::new();
    while let Some((at, sign)) = signs.next() {
        match sign {
            sign if sign == quote => return Some((inside, &text[at + sign.len_utf8()..])),
            '\\' => match signs.next()?.1 {
                'a' => inside.push('\u{7}'),
                'b' => inside.push('\u{8}'),
                'f' => inside.push('\u{c}'),
                'n' => inside.push('\n'),
                'r' => inside.push('\r'),
                't' => inside.push('\t'),
                'v' => inside.push('\u{b}'),
                '\n' => {}
                digits @ ('u' | 'U') => {
                    let count = if digits == 'u' { 4 } else { 8 };
                    let mut code = 0_u32;
                    for _ in 0..count {
                        code = code.checked_mul(16)? + signs.next()?.1.to_digit(16)?;
                    }
                    inside.push(char::from_u32(code)?);
                }
                other => inside.push(other),
            },
            sign => inside.push(sign),
        }
    }
    None
}

fn number_of(text: &str) -> Option<Token> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let whole = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(digits) => i128::from_str_radix(digits, 16).ok(),
        // As in C.
        None if digits.len() > 1
            && digits.starts_with('0')
            && digits.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            i128::from_str_radix(digits, 8).ok()
        }
        None if digits.starts_with(|first: char| first.is_ascii_digit()) => digits.parse().ok(),
        None => None,
    };
    if let Some(whole) = whole {
        return Some(Token::Whole(if is_negative { -whole } else { whole }));
    }
    let number: f64 = text.parse().ok()?;
    // `2.0` is what a setting that may have fractions prints for `2`.
    let is_whole = number.fract() == 0.0 && number.abs() < 9e15;
    #[expect(clippy::cast_possible_truncation, reason = "it is whole, and small enough")]
    Some(match is_whole {
        true => Token::Whole(number as i128),
        false => Token::Fraction(number),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn texts_are_the_same_when_they_mean_the_same() {
        for (wanted, is) in [
            ("true", "true"),
            ("5", "uint32 5"),
            ("5", "5.0"),
            ("-1", "-1.0"),
            ("0x10", "16"),
            ("010", "byte 0x08"),
            ("1e3", "1000.0"),
            ("0.5", "5e-1"),
            ("\"a\"", "'a'"),
            ("'it\\'s'", "\"it's\""),
            ("'\\u0007\\n'", "'\\a\\n'"),
            ("plain word", "'plain word'"),
            ("true", "'true'"),
            ("[]", "@as []"),
            ("['a','b']", "['a', 'b']"),
            ("[('xkb','us')]", "[('xkb', 'us')]"),
            ("{'a':<1>}", "@a{sv} {'a': <1>}"),
            ("(@i 1, 'x')", "(1, 'x')"),
            ("@(ss) ('a','b')", "('a', 'b')"),
            ("nothing", "@ms nothing"),
        ] {
            assert!(is_same(wanted, is), "{wanted} is {is}");
        }
        for (wanted, is) in [
            ("true", "false"),
            ("5", "uint32 6"),
            ("5", "'6'"),
            ("'5'", "5"),
            ("['a']", "['a', 'a']"),
            ("('a')", "['a']"),
            ("1.5", "1"),
            ("b'a'", "'a'"),
            ("", "''' "),
            ("'a", "'b'"),
            ("", "5"),
        ] {
            assert!(!is_same(wanted, is), "{wanted} is not {is}");
        }
    }

    #[test]
    fn one_text_in_quotes_is_quoted() {
        for text in ["''", "'a'", "\"a 'b'\"", "'a\\'b'"] {
            assert!(is_quoted(text), "{text}");
        }
        for text in [
            "", "a", "'a", "a'", "'a' 'b'", "@s 'a'", "['a']", "'a\\'", "'\\u12'",
        ] {
            assert!(!is_quoted(text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_quoted_is_itself(text in "[^\0]*") {
            prop_assert!(is_quoted(&quoted(&text)));
            prop_assert!(is_same(&quoted(&text), &quoted(&text)));
            prop_assert_eq!(tokens(&quoted(&text)), Some(vec![Token::Text(text)]));
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".*", other in ".*") {
            let _ = is_same(&text, &other);
            let _ = is_quoted(&text);
        }
    }
}
