//! Drift: what a run found wrong, field by field.

use std::borrow::Cow;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use setpoint_graph::ResourceId;
use setpoint_value::Value;

/// How a repair changes the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// The resource does not exist, and is created.
    Create,
    /// A field of the resource has another value, or the resource is replaced.
    Change,
    /// The resource exists, and is removed.
    Remove,
    /// A command runs, or a message is sent.
    Run,
    /// A service reloads its configuration.
    Reload,
    /// A service restarts.
    Restart,
}

impl Effect {
    /// Whether something is done rather than given a value.
    #[must_use]
    pub fn is_deed(self) -> bool {
        matches!(self, Effect::Run | Effect::Reload | Effect::Restart)
    }
}

/// One difference between what is and what shall be. Sensitive values are redacted before one exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drift {
    /// The member of the resource that it is of, if it is of one.
    pub member: Option<ResourceId>,
    /// The field of the kind's documentation.
    pub field: Cow<'static, str>,
    /// The effect of a repair.
    pub effect: Effect,
    /// What was found.
    pub is: DriftValue,
    /// What shall be.
    pub want: DriftValue,
    /// Further properties of a resource that is created, by name: shown, and not compared.
    pub attributes: Vec<(&'static str, DriftValue)>,
    /// Whether the run was allowed to repair it.
    pub repaired: bool,
    /// Whether it is repaired even if the run fails later.
    pub is_done: bool,
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} → {}", self.field, self.is, self.want)
    }
}

impl Drift {
    /// How two texts differ, in the form of `diff -u` without its head: a few lines around each change.
    /// All lines of a new text are new. None when one of the two is no text, or is not shown.
    #[must_use]
    pub fn difference(&self) -> Option<String> {
        let text = |value: &DriftValue| match value {
            DriftValue::Content { text, .. } => text.clone(),
            _ => None,
        };
        let (is, want) = match (&self.is, &self.want) {
            (DriftValue::Absent, want) => (String::new(), text(want)?),
            (is, want) => (text(is)?, text(want)?),
        };
        let difference = similar::TextDiff::configure()
            .timeout(std::time::Duration::from_millis(100))
            .diff_lines(&is, &want);
        let text = difference.unified_diff().context_radius(2).to_string();
        // The place of a change says nothing where there was no text.
        let head = usize::from(self.is == DriftValue::Absent);
        let lines: Vec<&str> = text.lines().skip(head).collect();
        Some(lines.join("\n"))
    }
}

/// One side of a [`Drift`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DriftValue {
    /// There is nothing.
    Absent,
    /// A word or a line.
    Text(String),
    /// Contents, which are told by their size and hash.
    Content {
        /// How many bytes.
        size: u64,
        /// Their SHA-256 in hexadecimal, when it was computed.
        digest: Option<String>,
        /// The bytes as text, when they are few and printable.
        text: Option<String>,
    },
    /// Not known before something else has run. The text says what: `known after exec[token] has run`.
    Unknown(String),
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

    /// Without the contents: their length and digest remain.
    #[must_use]
    pub fn without_text(self) -> DriftValue {
        match self {
            DriftValue::Content { size, digest, .. } => DriftValue::Content {
                size,
                digest,
                text: None,
            },
            other => other,
        }
    }

    /// Permission bits, as four octal digits.
    #[must_use]
    pub fn mode(bits: u32) -> DriftValue {
        DriftValue::Text(format!("{bits:04o}"))
    }
}

impl fmt::Display for DriftValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DriftValue::Absent => f.write_str("(absent)"),
            DriftValue::Text(text) | DriftValue::Unknown(text) => f.write_str(text),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(is: DriftValue, want: DriftValue) -> Option<String> {
        let drift = Drift {
            member: None,
            field: "content".into(),
            effect: Effect::Change,
            is,
            want,
            attributes: Vec::new(),
            repaired: false,
            is_done: false,
        };
        drift.difference()
    }

    #[test]
    fn two_texts_differ_in_the_lines_that_are_shown() {
        let text = |middle: &str| DriftValue::content(format!("a\nb\nc\n{middle}\nd\ne\nf\n").as_bytes());
        assert_eq!(
            difference(text("old"), text("new")).as_deref(),
            Some("@@ -2,5 +2,5 @@\n b\n c\n-old\n+new\n d\n e")
        );
        let long: String = (0..200).map(|n| format!("{n}\n")).collect();
        let shown = difference(DriftValue::content(b"x\n"), DriftValue::content(long.as_bytes())).unwrap();
        assert_eq!(shown.lines().count(), 202, "{shown}");
    }

    #[test]
    fn what_is_no_text_or_not_to_be_seen_has_no_difference() {
        let text = || DriftValue::content(b"text\n");
        for other in [DriftValue::Sensitive, DriftValue::content(b"\0")] {
            assert_eq!(difference(text(), other.clone()), None);
            assert_eq!(difference(other, text()), None);
        }
        assert_eq!(difference(text(), DriftValue::Absent), None);
        assert_eq!(difference(DriftValue::Absent, text()).as_deref(), Some("+text"));
    }
}
