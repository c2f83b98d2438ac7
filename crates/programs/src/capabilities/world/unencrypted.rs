//! Secrets in the store of one machine: only root reads that, so they are marked and not encrypted.

use setpoint_resources::{Secrecy, SharedString};
use setpoint_value::StoredText;

/// What a secret string begins with. Another one that begins so is written behind the second of these.
const SECRET: &str = "\0secret\0";
const OPEN: &str = "\0open\0";

/// A string as it lies in the store.
pub(super) fn written(text: &str, secrecy: Secrecy) -> String {
    match secrecy {
        Secrecy::Secret => format!("{SECRET}{text}"),
        Secrecy::Open if text.starts_with('\0') => format!("{OPEN}{text}"),
        Secrecy::Open => text.to_owned(),
    }
}

/// The string that lies there.
pub(super) fn string(written: String) -> SharedString {
    if let Some(text) = written.strip_prefix(SECRET) {
        return SharedString {
            secrecy: Secrecy::Secret,
            ..SharedString::open(text.to_owned())
        };
    }
    let text = written.strip_prefix(OPEN).map(str::to_owned);
    SharedString::open(text.unwrap_or(written))
}

/// The same, for programs.
pub(super) fn text(written: String) -> StoredText {
    let SharedString { text, secrecy, .. } = string(written);
    StoredText {
        text: text.unwrap_or_default(),
        is_secret: secrecy == Secrecy::Secret,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_string_is_read_back_with_its_secrecy() {
        for text in ["", "a", "\0", "\0secret\0x", "\0open\0", "ä\n"] {
            for secrecy in [Secrecy::Open, Secrecy::Secret] {
                let read = string(written(text, secrecy));
                assert_eq!((read.text.as_deref(), read.secrecy), (Some(text), secrecy));
            }
        }
    }
}
