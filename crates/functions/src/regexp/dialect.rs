//! Go's dialect of regular expressions, read in full and written anew for the `regex` crate.
//!
//! Both descend from RE2 and match alike, but each has syntax that the other lacks or reads otherwise: what `\d` means,
//! octal escapes, operators inside of classes, which flags there are. So nothing is passed on as it was written: a literal
//! becomes its code point, a class its ranges, and whatever the dialect does not have is refused here.

use std::fmt::Write;

/// The most that braces may repeat, also when they are nested.
const MOST_REPETITIONS: u32 = 1000;

/// An expression for the `regex` crate.
pub(super) struct Translated {
    /// The same expression with groups that have no names.
    pub pattern: String,
    /// The names of the groups, in the order of their opening parentheses.
    pub names: Vec<Option<String>>,
}

/// The same expression for the `regex` crate, or what is wrong with it, the part in question in backticks.
pub(super) fn translate(pattern: &str) -> Result<Translated, String> {
    let mut translator = Translator {
        rest: pattern,
        out: String::with_capacity(pattern.len() * 2),
        names: Vec::new(),
        open: Vec::new(),
        last: Last::Nothing,
        heaviest: 1,
    };
    while let Some(c) = translator.rest.chars().next() {
        translator.piece(c)?;
    }
    if !translator.open.is_empty() {
        return Err(format!("a closing `)` is missing in `{pattern}`"));
    }
    Ok(Translated {
        pattern: translator.out,
        names: translator.names,
    })
}

/// What was read last, for the repetition that may follow.
#[derive(Clone, Copy)]
enum Last {
    /// Nothing that can be repeated.
    Nothing,
    /// Something, and how often braces inside it repeat their innermost part.
    Piece(u32),
    /// Something that is repeated already.
    Repeated,
}

struct Translator<'a> {
    rest: &'a str,
    out: String,
    names: Vec<Option<String>>,
    /// For each open group, how often braces repeat in what was read of the group around it.
    open: Vec<u32>,
    last: Last,
    /// How often braces repeat at most, in what was read of the innermost open group.
    heaviest: u32,
}

impl<'a> Translator<'a> {
    /// Passes so many bytes, which are at the beginning of the rest.
    fn pass(&mut self, length: usize) -> &'a str {
        let (passed, rest) = self.rest.split_at(length);
        self.rest = rest;
        passed
    }

    fn piece(&mut self, c: char) -> Result<(), String> {
        match c {
            '(' => return self.group(),
            ')' => {
                self.pass(1);
                let around = self.open.pop().ok_or("there is a `)` without its `(`")?;
                self.out.push(')');
                self.last = Last::Piece(self.heaviest);
                self.heaviest = self.heaviest.max(around);
                return Ok(());
            }
            '|' => {
                self.pass(1);
                self.out.push('|');
                self.last = Last::Nothing;
                return Ok(());
            }
            '*' | '+' | '?' => return self.repetition(1, None),
            '{' => match braces(self.rest) {
                Some((length, low, high)) => return self.repetition(length, Some((low, high))),
                None => {
                    self.pass(1);
                    literal('{', &mut self.out);
                }
            },
            '.' | '^' | '$' => {
                self.pass(1);
                self.out.push(c);
            }
            '[' => self.class()?,
            '\\' => return self.escape(),
            c => {
                self.pass(c.len_utf8());
                literal(c, &mut self.out);
            }
        }
        self.last = Last::Piece(1);
        Ok(())
    }

    /// `*`, `+`, `?` or braces, and the `?` that makes them reluctant.
    fn repetition(&mut self, length: usize, counts: Option<(u32, Option<u32>)>) -> Result<(), String> {
        let operator = self.pass(length);
        let weight = match self.last {
            Last::Piece(weight) => weight,
            Last::Nothing => return Err(format!("nothing stands before `{operator}` that it could repeat")),
            Last::Repeated => {
                return Err(format!(
                    "`{operator}` follows another repetition; a group between them says what is meant"
                ));
            }
        };
        match counts {
            None => self.out.push_str(operator),
            Some((low, high)) => {
                let most = high.unwrap_or(low);
                let weight = weight.saturating_mul(most.max(1));
                if low > MOST_REPETITIONS || most > MOST_REPETITIONS || weight > MOST_REPETITIONS {
                    return Err(format!("`{operator}` repeats more than {MOST_REPETITIONS} times"));
                }
                if high.is_some_and(|high| high < low) {
                    return Err(format!("`{operator}` has its greater number first"));
                }
                self.heaviest = self.heaviest.max(weight);
                // Leading zeros and the like are gone.
                let _ = match high {
                    Some(high) => write!(self.out, "{{{low},{high}}}"),
                    None => write!(self.out, "{{{low},}}"),
                };
            }
        }
        if self.rest.starts_with('?') {
            self.pass(1);
            self.out.push('?');
        }
        self.last = Last::Repeated;
        Ok(())
    }

    /// `(`, `(?:`, `(?P<name>`, `(?<name>`, `(?flags)` or `(?flags:`.
    fn group(&mut self) -> Result<(), String> {
        let Some(inner) = self.rest.strip_prefix("(?") else {
            self.pass(1);
            self.names.push(None);
            self.open_group("(");
            return Ok(());
        };
        if let Some(named) = inner.strip_prefix("P<").or_else(|| inner.strip_prefix('<')) {
            let end = named
                .find('>')
                .ok_or("a closing `>` is missing behind a group's name")?;
            let name = &named[..end];
            let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if name.is_empty() || !name.chars().all(word) {
                return Err(format!("`{name}` is not a name for a group"));
            }
            if self.names.iter().flatten().any(|earlier| earlier == name) {
                return Err(format!("two groups have the name `{name}`"));
            }
            self.names.push(Some(name.to_owned()));
            self.rest = &named[end + 1..];
            self.open_group("(");
            return Ok(());
        }
        let length = inner
            .find([':', ')'])
            .ok_or("a closing `)` is missing behind `(?`")?;
        let flags = &inner[..length];
        let unknown = || format!("`(?{flags}` has flags other than `i`, `m`, `s` and `U`");
        let (set, unset) = flags.split_once('-').map_or((flags, None), |(a, b)| (a, Some(b)));
        let known = |letters: &str| letters.chars().all(|c| matches!(c, 'i' | 'm' | 's' | 'U'));
        if !known(set) || unset.is_some_and(|letters| letters.is_empty() || !known(letters)) {
            return Err(unknown());
        }
        // Each letter once is all that the `regex` crate takes.
        let mut clean = String::new();
        for c in ['i', 'm', 's', 'U'] {
            if set.contains(c) && !unset.is_some_and(|letters| letters.contains(c)) {
                clean.push(c);
            }
        }
        if let Some(letters) = unset {
            clean.push('-');
            clean.extend(['i', 'm', 's', 'U'].into_iter().filter(|c| letters.contains(*c)));
        }
        let opens = inner[length..].starts_with(':');
        self.rest = &inner[length + 1..];
        if opens {
            self.open_group(&format!("(?{clean}:"));
        } else {
            if !clean.is_empty() {
                let _ = write!(self.out, "(?{clean})");
            }
            self.last = Last::Nothing;
        }
        Ok(())
    }

    fn open_group(&mut self, text: &str) {
        self.out.push_str(text);
        self.open.push(self.heaviest);
        self.heaviest = 1;
        self.last = Last::Nothing;
    }

    /// What begins with a backslash, outside of classes.
    fn escape(&mut self) -> Result<(), String> {
        let c = self.rest[1..]
            .chars()
            .next()
            .ok_or("the expression ends with a `\\`")?;
        let plain = match c {
            'A' => "\\A",
            'z' => "\\z",
            'b' => "(?-u:\\b)",
            'B' => "(?-u:\\B)",
            'Q' => {
                let inner = &self.rest[2..];
                let (text, after) = inner.split_once("\\E").unwrap_or((inner, ""));
                self.rest = after;
                for c in text.chars() {
                    literal(c, &mut self.out);
                    self.last = Last::Piece(1);
                }
                return Ok(());
            }
            _ => "",
        };
        if plain.is_empty() {
            match self.class_escape()? {
                Some(class) => {
                    let _ = write!(self.out, "[{class}]");
                }
                None => {
                    let c = self.character_escape()?;
                    literal(c, &mut self.out);
                }
            }
        } else {
            self.pass(1 + c.len_utf8());
            self.out.push_str(plain);
        }
        self.last = Last::Piece(1);
        Ok(())
    }

    /// A class that a backslash begins, as what stands between brackets; none if it is another escape.
    fn class_escape(&mut self) -> Result<Option<String>, String> {
        let plain = match self.rest[1..].chars().next() {
            Some('d') => "0-9",
            Some('D') => "[^0-9]",
            Some('w') => "0-9A-Za-z_",
            Some('W') => "[^0-9A-Za-z_]",
            Some('s') => r"\t\n\f\r ",
            Some('S') => r"[^\t\n\f\r ]",
            Some(c @ ('p' | 'P')) => return self.unicode_class(c == 'P').map(Some),
            _ => return Ok(None),
        };
        self.pass(2);
        Ok(Some(plain.to_owned()))
    }

    /// `\pL`, `\p{Greek}`, `\p{^Greek}`: a general category or a script.
    fn unicode_class(&mut self, negated: bool) -> Result<String, String> {
        let inner = &self.rest[2..];
        let (name, length) = match inner.strip_prefix('{') {
            Some(braced) => {
                let end = braced.find('}').ok_or("a closing `}` is missing behind `\\p{`")?;
                (&braced[..end], end + 2)
            }
            None => {
                let length = inner.chars().next().map_or(0, char::len_utf8);
                (&inner[..length], length)
            }
        };
        let written = self.pass(2 + length);
        let (negated, name) = match name.strip_prefix('^') {
            Some(name) => (!negated, name),
            None => (negated, name),
        };
        let unknown = || format!("`{written}` names neither a general category of Unicode nor a script");
        let simple = |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '_' | '-');
        if name.is_empty() || !name.chars().all(simple) {
            return Err(unknown());
        }
        let letter = if negated { 'P' } else { 'p' };
        ["gc", "sc"]
            .into_iter()
            .map(|property| format!("\\{letter}{{{property}={name}}}"))
            .find(|class| regex_syntax::parse(class).is_ok())
            .ok_or_else(unknown)
    }

    /// One character that a backslash begins.
    fn character_escape(&mut self) -> Result<char, String> {
        let mut characters = self.rest[1..].chars();
        let c = characters.next().ok_or("the expression ends with a `\\`")?;
        let after = characters.as_str();
        let octal = |text: &str| text.bytes().take_while(|b| matches!(b, b'0'..=b'7')).count();
        let (length, character) = match c {
            // A digit alone, except for 0, would refer to a group.
            '0' => {
                let digits = 1 + octal(after).min(2);
                (1 + digits, number(&self.rest[1..=digits], 8))
            }
            '1'..='7' if octal(after) > 0 => {
                let digits = 1 + octal(after).min(2);
                (1 + digits, number(&self.rest[1..=digits], 8))
            }
            'x' => match after.strip_prefix('{') {
                Some(braced) => match braced.find('}') {
                    Some(end) => (2 + end + 2, number(&braced[..end], 16)),
                    None => (2, None),
                },
                None => (4, after.get(..2).and_then(|digits| number(digits, 16))),
            },
            'a' => (2, Some('\u{7}')),
            'f' => (2, Some('\u{c}')),
            'n' => (2, Some('\n')),
            'r' => (2, Some('\r')),
            't' => (2, Some('\t')),
            'v' => (2, Some('\u{b}')),
            c if c.is_ascii() && !c.is_ascii_alphanumeric() => (2, Some(c)),
            _ => (1 + c.len_utf8(), None),
        };
        match character {
            Some(character) => {
                self.pass(length);
                Ok(character)
            }
            None => {
                let shown = self.rest.get(..length).unwrap_or(self.rest);
                Err(format!("there is no escape `{shown}`"))
            }
        }
    }

    /// `[…]`.
    fn class(&mut self) -> Result<(), String> {
        let whole = self.rest;
        let missing = || format!("a closing `]` is missing behind `{whole}`");
        self.pass(1);
        self.out.push('[');
        if self.rest.starts_with('^') {
            self.pass(1);
            self.out.push('^');
        }
        let mut first = true;
        loop {
            match self.rest.chars().next() {
                None => return Err(missing()),
                Some(']') if !first => {
                    self.pass(1);
                    self.out.push(']');
                    return Ok(());
                }
                Some('[') if self.rest.starts_with("[:") && self.rest.contains(":]") => self.named_class()?,
                Some('\\') => match self.class_escape()? {
                    Some(class) => self.out.push_str(&class),
                    None => self.range()?,
                },
                Some(_) => self.range()?,
            }
            first = false;
        }
    }

    /// `[:alpha:]` or `[:^alpha:]`.
    fn named_class(&mut self) -> Result<(), String> {
        let end = self.rest.find(":]").map_or(self.rest.len(), |at| at + 2);
        let written = self.pass(end);
        let name = written.trim_start_matches("[:").trim_end_matches(":]");
        let known = [
            "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
            "space", "upper", "word", "xdigit",
        ];
        if !known.contains(&name.strip_prefix('^').unwrap_or(name)) {
            return Err(format!("there is no class `{written}`"));
        }
        self.out.push_str(written);
        Ok(())
    }

    /// One character of a class, or a range of them.
    fn range(&mut self) -> Result<(), String> {
        let whole = self.rest;
        let low = self.class_character()?;
        let mut high = low;
        // Before the closing bracket a hyphen stands for itself.
        if self.rest.starts_with('-') && self.rest.len() > 1 && !self.rest.starts_with("-]") {
            self.pass(1);
            high = self.class_character()?;
            if high < low {
                let written = &whole[..whole.len() - self.rest.len()];
                return Err(format!("the range `{written}` ends before it begins"));
            }
        }
        literal(low, &mut self.out);
        if high != low {
            self.out.push('-');
            literal(high, &mut self.out);
        }
        Ok(())
    }

    fn class_character(&mut self) -> Result<char, String> {
        match self.rest.chars().next() {
            Some('\\') => self.character_escape(),
            Some(c) => {
                self.pass(c.len_utf8());
                Ok(c)
            }
            None => Err("a closing `]` is missing".to_owned()),
        }
    }
}

/// Writes a character so that it means nothing but itself.
fn literal(c: char, out: &mut String) {
    if c.is_alphanumeric() {
        out.push(c);
    } else {
        // Writing to a string cannot fail.
        let _ = write!(out, "\\x{{{:X}}}", u32::from(c));
    }
}

/// The character with a number that is written in a base.
fn number(digits: &str, base: u32) -> Option<char> {
    let plain = digits.chars().all(|c| c.is_digit(base));
    u32::from_str_radix(digits, base)
        .ok()
        .filter(|_| plain)
        .and_then(char::from_u32)
}

/// `{3}`, `{3,}` or `{3,4}` at the beginning: its length and numbers. Anything else is a brace that stands for itself.
fn braces(text: &str) -> Option<(usize, u32, Option<u32>)> {
    let inner = text.strip_prefix('{')?;
    let end = inner.find('}')?;
    let count = |digits: &str| {
        let leading_zero = digits.len() > 1 && digits.starts_with('0');
        let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) && !leading_zero;
        plain.then(|| digits.parse().unwrap_or(u32::MAX))
    };
    let (low, high) = match inner[..end].split_once(',') {
        None => (count(&inner[..end])?, Some(count(&inner[..end])?)),
        Some((low, "")) => (count(low)?, None),
        Some((low, high)) => (count(low)?, Some(count(high)?)),
    };
    Some((end + 2, low, high))
}

#[cfg(test)]
mod tests;
