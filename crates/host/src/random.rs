//! Unpredictable bytes, of the kernel's generator.

use rustix::rand::{GetRandomFlags, getrandom};

/// Fills a buffer. It waits only while the machine starts and has none yet.
///
/// # Panics
/// When the kernel has no `getrandom(2)`, which every one since 3.17 has: predictable bytes in the place of random ones would be worse than no
/// answer.
pub fn fill(buffer: &mut [u8]) {
    let mut filled = 0;
    while filled < buffer.len() {
        // Asked directly, because `/dev/urandom` may be missing, or be something else.
        match getrandom(&mut buffer[filled..], GetRandomFlags::empty()) {
            Ok(count) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => panic!("getrandom(2), which every kernel since 3.17 has, fails: {error}"),
        }
    }
}

/// A text of so many characters of an alphabet, each as likely as every other.
///
/// # Panics
/// As [`fill`]; and when the alphabet has no characters or more than 256.
#[must_use]
pub fn text(length: usize, alphabet: &[u8]) -> String {
    assert!((1..=256).contains(&alphabet.len()), "an alphabet of bytes");
    // What lies above the last whole multiple of the alphabet would make its first characters likelier.
    let bound = 256 - 256 % alphabet.len();
    let mut text = String::with_capacity(length);
    let mut bytes = [0; 64];
    while text.len() < length {
        fill(&mut bytes);
        let fair = bytes
            .iter()
            .map(|byte| usize::from(*byte))
            .filter(|byte| *byte < bound);
        let rest = length - text.len();
        text.extend(
            fair.take(rest)
                .map(|byte| char::from(alphabet[byte % alphabet.len()])),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_of_all_characters_and_never_the_same() {
        let alphabet = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
        let one = text(10_000, alphabet);
        assert_eq!(one.len(), 10_000);
        for sign in alphabet {
            let count = one.bytes().filter(|byte| byte == sign).count();
            // 192 on average; a fair one is never so far off.
            assert!((96..384).contains(&count), "{}: {count}", char::from(*sign));
        }
        assert_eq!(one.bytes().filter(|byte| !alphabet.contains(byte)).count(), 0);
        assert_ne!(one, text(10_000, alphabet));
        assert_eq!(text(0, alphabet), "");
    }
}
