//! Keys of the store, and what they say.

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use setpoint_world::Key;

/// What is encoded in the parts of a key: what would end a part, and what would be no line on a terminal.
const ENCODED: &AsciiSet = &CONTROLS.add(b'/').add(b'%');

/// The key of these parts, the first of which is written as it is.
pub(super) fn key(beginning: &'static str, parts: &[&str]) -> Key {
    let mut text = beginning.to_owned();
    for part in parts {
        text.push('/');
        text.extend(utf8_percent_encode(part, ENCODED));
    }
    Key::new(text).expect("its beginning is not empty")
}

/// What all keys below these parts begin with.
pub fn below(beginning: &'static str, parts: &[&str]) -> String {
    format!("{}/", key(beginning, parts))
}

/// The parts of a key below what it begins with; none if it is none of these, or was written by nobody of ours.
pub fn parts<const COUNT: usize>(key: &Key, begin: &str) -> Option<[String; COUNT]> {
    let parts = key.as_str().strip_prefix(begin)?.split('/');
    let parts: Option<Vec<String>> = parts
        .map(|part| Some(percent_decode_str(part).decode_utf8().ok()?.into_owned()))
        .collect();
    parts?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_is_one_part_of_a_key() {
        for text in ["a", "a/b", "%2F", "", "ä\n", "*", "../.."] {
            let key = key("/strings", &[text, "x"]);
            assert_eq!(key.as_str().matches('/').count(), 3, "{key}");
            assert_eq!(
                parts::<2>(&key, "/strings/"),
                Some([text.to_owned(), "x".to_owned()])
            );
            assert_eq!(parts::<1>(&key, "/strings/"), None);
            assert!(key.as_str().starts_with(&below("/strings", &[text])));
        }
    }
}
