//! Stores that sources follow: the world (what all members share) and the named values of this host.

use std::collections::BTreeMap;

use super::{Timer, Wake};
use crate::Value;

/// Reading what all members share.
pub trait WorldReader: Send + Sync {
    /// Follows an answer until the feed is dropped. Returns at once; the answer may come later.
    fn follow(&self, query: &WorldQuery, wake: Wake) -> Box<dyn WorldFeed>;

    /// Whether there is a kind of resource of that name.
    fn knows_kind(&self, kind: &str) -> bool;
}

/// A question to the world.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WorldQuery {
    /// The string of a key: [`WorldAnswer::String`].
    String(String),
    /// The strings of a namespace by host: [`WorldAnswer::Strings`].
    Strings(String),
    /// The hosts that were chosen for a namespace: [`WorldAnswer::Hosts`].
    Schedule(String),
    /// Resources of a kind that are exported to this host or to all: [`WorldAnswer::Exports`].
    Exports(String),
}

/// The answer to a [`WorldQuery`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorldAnswer {
    /// The string, if there is one.
    String(Option<StoredText>),
    /// Host to string.
    Strings(BTreeMap<String, StoredText>),
    /// Names of hosts, sorted.
    Hosts(Vec<String>),
    /// Exported resources, sorted by name and host.
    Exports(Vec<Exported>),
}

/// A resource that a host exports.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Exported {
    /// Its name.
    pub name: String,
    /// The host that exports it.
    pub host: String,
    /// The resource, encoded.
    pub data: StoredText,
}

/// A text of the store.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StoredText {
    /// The text.
    pub text: String,
    /// Whether it is kept secret there, and so is a sensitive value here.
    pub is_secret: bool,
}

impl StoredText {
    /// One that is secret.
    #[must_use]
    pub fn secret(text: String) -> StoredText {
        StoredText {
            text,
            is_secret: true,
        }
    }

    /// As a value.
    #[must_use]
    pub fn into_value(self) -> Value {
        let value = Value::str(self.text);
        if self.is_secret { value.sensitive() } else { value }
    }
}

/// One that everybody may know.
impl From<String> for StoredText {
    fn from(text: String) -> StoredText {
        StoredText {
            text,
            is_secret: false,
        }
    }
}

/// A secret is not shown.
impl std::fmt::Debug for StoredText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.is_secret {
            true => f.write_str("(sensitive)"),
            false => self.text.fmt(f),
        }
    }
}

/// An answer that is followed.
pub trait WorldFeed: Send {
    /// The newest answer; none while there is none yet, or when it was given before. Never waits.
    ///
    /// # Errors
    /// Why the store cannot answer.
    fn latest(&mut self) -> Option<Result<WorldAnswer, String>>;
}

/// Named values of this host, which the kind `value` sets.
pub trait Values: Send + Sync {
    /// The value of a key.
    fn get(&self, key: &str) -> Option<Value>;

    /// Wakes when the key is set or removed, until dropped. Armed when this returns.
    fn watch(&self, key: &str, wake: Wake) -> Timer;
}

/// Answers that `http:client` resources have published.
pub trait HttpResponses: Send + Sync {
    /// Status and body; none before the first. A status of −1: the request itself failed.
    ///
    /// # Errors
    /// Why the body cannot be read.
    fn get(&self, uid: &str) -> Result<Option<(i64, Vec<u8>)>, String>;

    /// Wakes when there is another answer, until dropped. Armed when this returns.
    fn watch(&self, uid: &str, wake: Wake) -> Timer;
}
