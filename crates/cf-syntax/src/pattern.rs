//! Regular expressions: Python's syntax, as the engine wants it.
//!
//! Most is written the same. What is not is translated: `\Z` and `$`, octal numbers, braces and brackets that stand for themselves, and
//! what the engine's classes could take for operators. What it cannot express is refused.

use std::fmt;
use std::iter::Peekable;
use std::str::Chars;

/// Why a text is no regular expression: one line without a full stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadPattern(pub String);

impl fmt::Display for BadPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadPattern {}

/// A regular expression that matches at the beginning of a text.
///
/// # Errors
/// When it is malformed, or says what the engine cannot do.
pub fn compile(pattern: &str) -> Result<fancy_regex::Regex, BadPattern> {
    let translated = Translator {
        rest: pattern.chars().peekable(),
        out: String::with_capacity(pattern.len() + 8),
    }
    .translate()?;
    let anchored = format!(r"\A(?:{translated})");
    fancy_regex::Regex::new(&anchored).map_err(|error| BadPattern(reason(&error)))
}

/// The engine's text without its places, which count in what was translated.
fn reason(error: &fancy_regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    let reason = last.rsplit_once(": ").map_or(last, |(_, reason)| reason);
    reason.trim_end_matches('.').to_lowercase()
}

struct Translator<'p> {
    rest: Peekable<Chars<'p>>,
    out: String,
}

impl Translator<'_> {
    fn translate(mut self) -> Result<String, BadPattern> {
        while let Some(character) = self.rest.next() {
            match character {
                '\\' => self.escape()?,
                '[' => self.class()?,
                '{' => self.brace(),
                '}' | ']' => self.literal(character),
                '$' => self.end(),
                '(' => self.group()?,
                character => self.out.push(character),
            }
        }
        Ok(self.out)
    }

    /// `$`, which matches before a line end that ends the text, too. Nobody asks what was matched, so at the end of a pattern that line end
    /// may be taken, which the engine does without going back.
    fn end(&mut self) {
        let is_last = self.rest.clone().all(|character| character == ')') && !self.out.contains("(?<");
        self.out
            .push_str(if is_last { r"(?:$|\n\z)" } else { r"(?:$|(?=\n\z))" });
    }

    /// A character that stands for itself.
    fn literal(&mut self, character: char) {
        if r"\.+*?()|[]{}^$#&-~".contains(character) {
            self.out.push('\\');
        }
        match character {
            // It would be left out where blanks mean nothing.
            ' ' => self.out.push_str(r"\x20"),
            character => self.out.push(character),
        }
    }

    /// What begins with `(`, up to where its inside begins.
    fn group(&mut self) -> Result<(), BadPattern> {
        self.out.push('(');
        if self.rest.next_if_eq(&'?').is_none() {
            return Ok(());
        }
        if self.rest.next_if_eq(&'#').is_some() {
            self.out.pop();
            return match self.rest.find(|character| *character == ')') {
                Some(_) => Ok(()),
                None => Err(BadPattern("the comment is not closed".to_owned())),
            };
        }
        self.out.push('?');
        let mut is_of_flags = false;
        while let Some(flag) = self.rest.next_if(|c| c.is_ascii_alphabetic() || *c == '-') {
            is_of_flags = true;
            match flag {
                'a' | 'L' => return Err(BadPattern(format!("the flag `{flag}` is not supported"))),
                // A text is Unicode anyway.
                'u' => {}
                // What follows is a name, not a flag.
                'P' => {
                    self.out.push('P');
                    return Ok(());
                }
                flag => self.out.push(flag),
            }
        }
        if is_of_flags && self.out.ends_with('?') && self.rest.next_if_eq(&')').is_some() {
            // Flags that say nothing.
            self.out.truncate(self.out.len() - 2);
        }
        Ok(())
    }

    /// `{`: a number of times, or a brace.
    fn brace(&mut self) {
        let mut look = self.rest.clone();
        let mut inside = String::new();
        while let Some(character) = look.next_if(|c| c.is_ascii_digit() || *c == ',') {
            inside.push(character);
        }
        let is_closed = look.next() == Some('}');
        let commas = inside.matches(',').count();
        if !is_closed || inside.is_empty() || commas > 1 {
            self.literal('{');
            return;
        }
        self.rest = look;
        let from_zero = if inside.starts_with(',') { "0" } else { "" };
        self.out.push_str(&format!("{{{from_zero}{inside}}}"));
    }

    /// What follows a backslash outside of a class.
    fn escape(&mut self) -> Result<(), BadPattern> {
        let Some(character) = self.rest.next() else {
            return Err(BadPattern("nothing follows the backslash".to_owned()));
        };
        match character {
            'A' | 'b' | 'B' | 'd' | 'D' | 's' | 'S' | 'w' | 'W' => {
                self.out.push('\\');
                self.out.push(character);
            }
            'Z' => self.out.push_str(r"\z"),
            '1'..='9' => self.reference(character),
            character => {
                let character = self.character(character)?;
                self.literal(character);
            }
        }
        Ok(())
    }

    /// A reference to a group, or three octal digits.
    fn reference(&mut self, first: char) {
        let mut number = String::from(first);
        let second = self.rest.next_if(char::is_ascii_digit);
        number.extend(second);
        let is_octal = |digits: &str| digits.bytes().all(|digit| digit < b'8');
        if second.is_some()
            && first < '4'
            && is_octal(&number)
            && let Some(third) = self.rest.next_if(|c| ('0'..'8').contains(c))
        {
            number.push(third);
            let code = u32::from_str_radix(&number, 8).unwrap_or(0);
            self.literal(char::from_u32(code).unwrap_or('\0'));
            return;
        }
        // In a group of its own, so that a digit behind it is none of its.
        self.out.push_str(&format!(r"(?:\{number})"));
    }

    /// The character that an escape stands for, of which the first letter has been taken.
    fn character(&mut self, first: char) -> Result<char, BadPattern> {
        Ok(match first {
            'a' => '\u{7}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            '0'..='7' => {
                let mut code = first.to_digit(8).unwrap_or(0);
                for _ in 0..2 {
                    let Some(digit) = self.rest.next_if(|c| ('0'..'8').contains(c)) else {
                        break;
                    };
                    code = code * 8 + digit.to_digit(8).unwrap_or(0);
                }
                char::from_u32(code).unwrap_or('\0')
            }
            'x' => self.hexadecimal(2)?,
            'u' => self.hexadecimal(4)?,
            'U' => self.hexadecimal(8)?,
            letter if letter.is_ascii_alphanumeric() => {
                return Err(BadPattern(format!("`\\{letter}` is no escape")));
            }
            character => character,
        })
    }

    fn hexadecimal(&mut self, digits: usize) -> Result<char, BadPattern> {
        let mut code = 0_u32;
        for _ in 0..digits {
            let digit = self.rest.next().and_then(|character| character.to_digit(16));
            let Some(digit) = digit else {
                return Err(BadPattern(format!("{digits} hexadecimal digits must follow")));
            };
            code = (code << 4) | digit;
        }
        char::from_u32(code).ok_or_else(|| BadPattern("there is no character with this number".to_owned()))
    }

    /// `[…]`, in which only `^` at the beginning, `-` between two, `\` and the closing bracket mean something.
    fn class(&mut self) -> Result<(), BadPattern> {
        self.out.push('[');
        if self.rest.next_if_eq(&'^').is_some() {
            self.out.push('^');
        }
        let mut is_first = true;
        loop {
            let character = self.next_in_class()?;
            if character == ']' && !is_first {
                self.out.push(']');
                return Ok(());
            }
            is_first = false;
            self.in_class(character)?;
            let mut behind = self.rest.clone();
            if behind.next() == Some('-') && behind.next().is_some_and(|upper| upper != ']') {
                self.rest.next();
                self.out.push('-');
                let upper = self.next_in_class()?;
                self.in_class(upper)?;
            }
        }
    }

    fn next_in_class(&mut self) -> Result<char, BadPattern> {
        let unclosed = || BadPattern("the class of characters is not closed".to_owned());
        self.rest.next().ok_or_else(unclosed)
    }

    /// One character in a class, or a class in it.
    fn in_class(&mut self, character: char) -> Result<(), BadPattern> {
        if character == '\\' {
            return self.escape_in_class();
        }
        self.literal(character);
        Ok(())
    }

    fn escape_in_class(&mut self) -> Result<(), BadPattern> {
        let Some(character) = self.rest.next() else {
            return Err(BadPattern("nothing follows the backslash".to_owned()));
        };
        match character {
            'd' | 'D' | 's' | 'S' | 'w' | 'W' => {
                self.out.push('\\');
                self.out.push(character);
            }
            'b' => self.out.push_str(r"\x08"),
            character => {
                let character = self.character(character)?;
                self.literal(character);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::compile;

    #[test]
    fn patterns_match_as_in_python() {
        let matching = [
            (r"[a-z]+", "abc1", true),
            (r"[a-z]+", "1abc", false),
            (r"[a-z]+$", "abc\n", true),
            (r"[a-z]+\Z", "abc\n", false),
            (r"[a-z]+\Z", "abc", true),
            (r"(?P<q>['\x22])x(?P=q)", "'x'", true),
            (r"(?P<q>['\x22])x(?P=q)", "'x\"", false),
            (r"(a)(b)\2\1$", "abba", true),
            (r"(?i)ABC", "abc", true),
            (r"(?u)é", "é", true),
            (r"a{,2}$", "aa", true),
            (r"a{,2}$", "aaa", false),
            (r"a{x}", "a{x}", true),
            (r"a}]", "a}]", true),
            (r"[a&&b]+$", "a&b", true),
            (r"[[:]+$", "[:", true),
            (r"[+--]+$", "+,-", true),
            (r"[a-]+$", "a-", true),
            (r"[a-c-9]+$", "b-9", true),
            (r"[a-c-9]+$", "d", false),
            (r"(a$|b)c?", "a\n", true),
            (r"[]a]+$", "]a", true),
            (r"[^]a]", "]", false),
            (r"[\w.-]+$", "a.b-c", true),
            (r"[\b]", "\u{8}", true),
            (r"\101\x42\u0043", "ABC", true),
            (r"\/\-\ \#", "/- #", true),
            (r"a(?#comment)b", "ab", true),
            (r"(?=.*\d)[a-z0-9]+$", "abc1", true),
            (r"(?<!x)a|b", "b", true),
            (r"\0", "\0", true),
        ];
        for (pattern, text, expected) in matching {
            let regex = compile(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
            assert_eq!(regex.is_match(text).unwrap(), expected, "{pattern} on {text:?}");
        }
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for pattern in [
            "(", ")", "[a", "*", r"\q", "(?a)b", r"\x4", r"\uD800", "(?#", "(?P<a", r"[\q]", "[z-a]",
        ] {
            assert!(compile(pattern).is_err(), "{pattern}");
        }
        assert_eq!(compile(r"(?L)a").unwrap_err().0, "the flag `L` is not supported");
    }
}
