//! Floats and strings as values hold them.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A float whose equality and hash go by its bits.
#[derive(Clone, Copy)]
pub struct FloatBits(pub f64);

impl PartialEq for FloatBits {
    fn eq(&self, other: &FloatBits) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Eq for FloatBits {}

impl Hash for FloatBits {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

/// Shared bytes that remember whether they are UTF-8.
#[derive(Clone)]
pub struct Str {
    bytes: Arc<[u8]>,
    utf8: bool,
}

impl Str {
    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The text, when the bytes are UTF-8.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        // The flag makes the refusal cheap; the check of valid text is a linear scan that vectorises well.
        if self.utf8 {
            std::str::from_utf8(&self.bytes).ok()
        } else {
            None
        }
    }

    /// The text, with `�` for what is not UTF-8.
    #[must_use]
    pub fn to_lossy(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The shared bytes.
    #[must_use]
    pub fn shared(&self) -> Arc<[u8]> {
        self.bytes.clone()
    }
}

impl From<&str> for Str {
    fn from(text: &str) -> Str {
        Str {
            bytes: text.as_bytes().into(),
            utf8: true,
        }
    }
}

impl From<String> for Str {
    fn from(text: String) -> Str {
        Str {
            bytes: text.into_bytes().into(),
            utf8: true,
        }
    }
}

impl From<&[u8]> for Str {
    fn from(bytes: &[u8]) -> Str {
        Str {
            utf8: std::str::from_utf8(bytes).is_ok(),
            bytes: bytes.into(),
        }
    }
}

impl From<Vec<u8>> for Str {
    fn from(bytes: Vec<u8>) -> Str {
        Str {
            utf8: std::str::from_utf8(&bytes).is_ok(),
            bytes: bytes.into(),
        }
    }
}

impl From<Arc<[u8]>> for Str {
    fn from(bytes: Arc<[u8]>) -> Str {
        Str {
            utf8: std::str::from_utf8(&bytes).is_ok(),
            bytes,
        }
    }
}

impl PartialEq for Str {
    fn eq(&self, other: &Str) -> bool {
        Arc::ptr_eq(&self.bytes, &other.bytes) || self.bytes == other.bytes
    }
}

impl Eq for Str {}

impl Hash for Str {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bytes.hash(state);
    }
}

impl PartialOrd for Str {
    fn partial_cmp(&self, other: &Str) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Str {
    fn cmp(&self, other: &Str) -> std::cmp::Ordering {
        self.bytes.cmp(&other.bytes)
    }
}

impl fmt::Debug for Str {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::quote(&self.bytes))
    }
}
