//! Drift: what a run found wrong, field by field.

use std::borrow::Cow;
use std::fmt;

use setpoint_value::Value;

/// One difference between what is and what shall be. Sensitive values are redacted before one exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drift {
    /// The field of the kind's documentation.
    pub field: Cow<'static, str>,
    /// What was found.
    pub is: DriftValue,
    /// What shall be.
    pub want: DriftValue,
    /// Whether the run was allowed to repair it.
    pub repaired: bool,
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} → {}", self.field, self.is, self.want)
    }
}

/// One side of a [`Drift`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DriftValue {
    /// There is nothing.
    Absent,
    /// A word or a line.
    Text(String),
    /// Contents.
    Content {
        /// How many bytes.
        size: u64,
        /// Their SHA-256 in hexadecimal, when it was computed.
        digest: Option<String>,
        /// The bytes as text, when they are few and printable.
        text: Option<String>,
    },
    /// Not to be shown.
    Sensitive,
}

/// Up to this many bytes, contents are kept in a drift as text.
const SHOWN_CONTENT: usize = 16 * 1024;

/// Up to this many bytes, contents stand in a line as they are.
const SHOWN_IN_LINE: u64 = 60;

impl DriftValue {
    /// Contents that are in memory, without a digest.
    #[must_use]
    pub fn content(bytes: &[u8]) -> DriftValue {
        let text = (bytes.len() <= SHOWN_CONTENT && !bytes.contains(&0))
            .then(|| std::str::from_utf8(bytes).ok().map(str::to_owned))
            .flatten();
        DriftValue::Content {
            size: bytes.len() as u64,
            digest: None,
            text,
        }
    }

    /// Permission bits.
    #[must_use]
    pub fn mode(bits: u32) -> DriftValue {
        DriftValue::Text(format!("{bits:04o}"))
    }
}

impl fmt::Display for DriftValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DriftValue::Absent => f.write_str("(absent)"),
            DriftValue::Text(text) => f.write_str(text),
            DriftValue::Content {
                text: Some(text),
                size,
                ..
            } if *size <= SHOWN_IN_LINE => f.write_str(&setpoint_value::quote(text.as_bytes())),
            DriftValue::Content { size, digest, .. } => {
                write!(f, "{size} byte{}", if *size == 1 { "" } else { "s" })?;
                match digest {
                    Some(digest) => write!(f, " (sha256 {digest})"),
                    None => Ok(()),
                }
            }
            DriftValue::Sensitive => f.write_str("(sensitive)"),
        }
    }
}

impl From<&str> for DriftValue {
    fn from(text: &str) -> DriftValue {
        DriftValue::Text(text.to_owned())
    }
}

impl From<String> for DriftValue {
    fn from(text: String) -> DriftValue {
        DriftValue::Text(text)
    }
}

impl From<&Value> for DriftValue {
    fn from(value: &Value) -> DriftValue {
        if value.is_sensitive() {
            DriftValue::Sensitive
        } else {
            DriftValue::Text(value.to_string())
        }
    }
}

impl<T: Into<DriftValue>> From<Option<T>> for DriftValue {
    fn from(value: Option<T>) -> DriftValue {
        value.map_or(DriftValue::Absent, Into::into)
    }
}

macro_rules! printed {
    ($($ty:ty)*) => {
        $(impl From<$ty> for DriftValue {
            fn from(value: $ty) -> DriftValue {
                DriftValue::Text(value.to_string())
            }
        })*
    };
}

printed! { bool u8 u16 u32 u64 usize i32 i64 }
