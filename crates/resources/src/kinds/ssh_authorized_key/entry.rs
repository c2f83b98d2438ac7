//! An entry of a file of authorized keys: sshd(8), *AUTHORIZED_KEYS FILE FORMAT*. The key itself is that of RFC 4253, section 6.6: its first field is
//! its type.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// An entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyEntry {
    options: Vec<String>,
    key_type: String,
    blob: Vec<u8>,
    comment: String,
}

impl KeyEntry {
    /// Reads a line. What is said when it is none goes after a colon.
    pub(super) fn read(line: &[u8]) -> Result<KeyEntry, String> {
        let line = std::str::from_utf8(line).map_err(|_| "it is not valid UTF-8".to_owned())?;
        let line = line.trim_matches([' ', '\t', '\r']);
        if line.is_empty() {
            return Err("it is empty".to_owned());
        }
        if line.starts_with('#') {
            return Err("it is a comment".to_owned());
        }
        if line.contains(['\n', '\r', '\0']) {
            return Err("it is more than one line".to_owned());
        }
        let (first, rest) = word(line);
        // The first word is the type of the key if a key of that type follows; else it is options.
        if let Ok(entry) = KeyEntry::of_fields(first, rest) {
            return Ok(entry);
        }
        let end = end_of_options(line)?;
        let (options, rest) = line.split_at(end);
        let rest = rest.trim_start_matches([' ', '\t']);
        if rest.is_empty() {
            // There is but one word, or none that ends.
            return Err(KeyEntry::of_fields(first, "").err().unwrap_or_default());
        }
        let (key_type, rest_of_key) = word(rest);
        let entry = KeyEntry::of_fields(key_type, rest_of_key);
        let mut entry = match entry {
            Ok(entry) => entry,
            // What is wrong is better said of the words that were meant.
            Err(_) if looks_like_a_type(first) => return KeyEntry::of_fields(first, word(line).1),
            Err(why) => return Err(why),
        };
        for option in split_options(options) {
            entry.add_option(option)?;
        }
        Ok(entry)
    }

    /// The type, the key, and a comment.
    fn of_fields(key_type: &str, rest: &str) -> Result<KeyEntry, String> {
        let (key, comment) = word(rest);
        if key.is_empty() {
            return Err(format!("after `{key_type}` the key is missing"));
        }
        let mut entry = KeyEntry::of_key(key)?;
        if entry.key_type != key_type {
            return Err(format!(
                "it says `{key_type}`, and its key is of type `{}`",
                entry.key_type
            ));
        }
        entry.set_comment(comment.trim())?;
        Ok(entry)
    }

    /// Of a key in Base64 alone.
    pub(super) fn of_key(key: &str) -> Result<KeyEntry, String> {
        let blob = STANDARD
            .decode(key)
            .map_err(|_| "the key is not Base64".to_owned())?;
        let length = blob.first_chunk::<4>().map(|length| u32::from_be_bytes(*length));
        let length = length.and_then(|length| usize::try_from(length).ok());
        let name = length.and_then(|length| blob.get(4..4usize.checked_add(length)?));
        let name = name.and_then(|name| std::str::from_utf8(name).ok());
        let whole = name.is_some_and(|name| blob.len() > 4 + name.len());
        match name.filter(|name| whole && looks_like_a_type(name)) {
            Some(name) => Ok(KeyEntry {
                options: Vec::new(),
                key_type: name.to_owned(),
                comment: String::new(),
                blob,
            }),
            None => Err("the key is cut off, or no key of SSH".to_owned()),
        }
    }

    /// The type, as the key itself says it.
    pub(super) fn key_type(&self) -> &str {
        &self.key_type
    }

    /// The key as it is written: Base64 has but one way for it.
    pub(super) fn written_key(&self) -> String {
        STANDARD.encode(&self.blob)
    }

    pub(super) fn is_of_same_key(&self, other: &KeyEntry) -> bool {
        self.blob == other.blob
    }

    /// Adds what the key may do.
    pub(super) fn add_option(&mut self, option: &str) -> Result<(), String> {
        if option.is_empty() {
            return Err("an option must not be empty".to_owned());
        }
        if option.contains(['\n', '\r', '\0']) {
            return Err("an option is no more than one line".to_owned());
        }
        // A comma or a blank outside of quotes would make more options of it, and a quote that is open would take in the key.
        match end_of_options(option)? == option.len() && split_options(option).len() == 1 {
            true => {
                self.options.push(option.to_owned());
                Ok(())
            }
            false => Err("blanks and commas stand in quotes, and each option by itself".to_owned()),
        }
    }

    pub(super) fn set_comment(&mut self, comment: &str) -> Result<(), String> {
        if comment.contains(['\n', '\r', '\0']) {
            return Err("the comment is more than one line".to_owned());
        }
        comment.trim().clone_into(&mut self.comment);
        Ok(())
    }
}

impl fmt::Display for KeyEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.options.is_empty() {
            write!(f, "{} ", self.options.join(","))?;
        }
        write!(f, "{} {}", self.key_type, self.written_key())?;
        match self.comment.as_str() {
            "" => Ok(()),
            comment => write!(f, " {comment}"),
        }
    }
}

/// The first word and what follows it.
fn word(text: &str) -> (&str, &str) {
    let text = text.trim_start_matches([' ', '\t']);
    let end = text.find([' ', '\t']).unwrap_or(text.len());
    (&text[..end], &text[end..])
}

/// Where options end: at the first blank that is not in quotes.
fn end_of_options(text: &str) -> Result<usize, String> {
    let (mut quoted, mut escaped) = (false, false);
    for (at, sign) in text.char_indices() {
        match sign {
            ' ' | '\t' if !quoted => return Ok(at),
            '"' if !escaped => quoted = !quoted,
            _ => {}
        }
        escaped = sign == '\\' && !escaped;
    }
    match quoted {
        true => Err("a quote is not closed".to_owned()),
        false => Ok(text.len()),
    }
}

/// Options, of which commas outside of quotes are between.
fn split_options(options: &str) -> Vec<&str> {
    let (mut quoted, mut escaped) = (false, false);
    let mut all = Vec::new();
    let mut begin = 0;
    for (at, sign) in options.char_indices() {
        match sign {
            ',' if !quoted => {
                all.push(&options[begin..at]);
                begin = at + 1;
            }
            '"' if !escaped => quoted = !quoted,
            _ => {}
        }
        escaped = sign == '\\' && !escaped;
    }
    all.push(&options[begin..]);
    all
}

/// Whether a word is written as types of keys are: `ssh-ed25519`, `sk-ssh-ed25519@openssh.com`.
fn looks_like_a_type(word: &str) -> bool {
    let is_sign = |sign: char| sign.is_ascii_alphanumeric() || ['-', '.', '@', '_'].contains(&sign);
    word.contains('-') && word.chars().all(is_sign) && !word.starts_with("no-")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KEY: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";

    fn read(text: &str) -> Result<String, String> {
        KeyEntry::read(text.as_bytes()).map(|entry| entry.to_string())
    }

    #[test]
    fn entries_are_read_however_they_are_written_and_are_written_in_one_way() {
        let plain = format!("ssh-ed25519 {KEY}");
        for (text, expected) in [
            (plain.clone(), plain.clone()),
            (
                format!(" \tssh-ed25519\t {KEY}  a comment of words "),
                format!("{plain} a comment of words"),
            ),
            (format!("no-pty {plain}"), format!("no-pty {plain}")),
            (
                format!("from=\"10.0.0.0/8,!10.1.0.0/16\",command=\"echo \\\"a b\\\"\"  {plain} x"),
                format!("from=\"10.0.0.0/8,!10.1.0.0/16\",command=\"echo \\\"a b\\\"\" {plain} x"),
            ),
            (format!("{plain}\r"), plain.clone()),
        ] {
            assert_eq!(read(&text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_entry_is_told() {
        for (text, why) in [
            (String::new(), "it is empty"),
            ("# ssh-ed25519".to_owned(), "it is a comment"),
            ("ssh-ed25519".to_owned(), "after `ssh-ed25519` the key is missing"),
            ("ssh-ed25519 AAAA?".to_owned(), "the key is not Base64"),
            (
                "ssh-ed25519 AAAA comment".to_owned(),
                "the key is cut off, or no key of SSH",
            ),
            (
                format!("ssh-rsa {KEY}"),
                "it says `ssh-rsa`, and its key is of type `ssh-ed25519`",
            ),
            (format!("command=\"x ssh-ed25519 {KEY}"), "a quote is not closed"),
            (
                format!("ssh-ed25519 {KEY}\nssh-ed25519 {KEY}"),
                "it is more than one line",
            ),
        ] {
            assert_eq!(read(&text), Err(why.to_owned()), "{text}");
        }
    }

    #[test]
    fn an_option_is_one() {
        let mut entry = KeyEntry::of_key(KEY).unwrap();
        for option in ["no-pty", "from=\"a,b c\""] {
            entry.add_option(option).unwrap();
        }
        for option in ["", "a b", "a,b", "command=\"x", "a\nb"] {
            assert!(entry.add_option(option).is_err(), "{option:?}");
        }
    }

    proptest! {
        /// No line makes it fail in another way, and what is written is read as the same.
        #[test]
        fn any_line_is_read_or_refused(line in "[ -~\\t]{0,80}", options in "[a-z=\",\\\\ ]{0,20}", comment in "[ -~]{0,10}") {
            for text in [line, format!("{options} ssh-ed25519 {KEY} {comment}")] {
                if let Ok(entry) = KeyEntry::read(text.as_bytes()) {
                    prop_assert_eq!(KeyEntry::read(entry.to_string().as_bytes()), Ok(entry));
                }
            }
        }
    }
}
