//! The store that machines share, as kinds see it: strings by key.

use std::fmt;
use std::sync::Arc;

use setpoint_engine::{Failure, Watch, async_trait};

/// Where in the store a string is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharedKey<'a> {
    /// One string for all.
    ForAll(&'a str),
    /// One of each host, under a common key: that of this host.
    OfThisHost(&'a str),
    /// That of a host: its name, and the key.
    OfHost(&'a str, &'a str),
}

/// A string of the store.
#[derive(Clone, PartialEq, Eq)]
pub struct SharedString {
    /// The string; none where it is not for this host.
    pub text: Option<String>,
    /// How it lies there.
    pub secrecy: Secrecy,
    /// Whether those who shall be able to read it are those who can. What is for all always is.
    pub is_current: bool,
}

/// Who can read a string of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Secrecy {
    /// Whoever can read the store.
    Open,
    /// The hosts that share it, and nobody else. A store that only this machine's administrator can read need not encrypt it.
    Secret,
}

impl Secrecy {
    /// That of a value which is sensitive, or not.
    #[must_use]
    pub fn of(is_sensitive: bool) -> Secrecy {
        if is_sensitive {
            Secrecy::Secret
        } else {
            Secrecy::Open
        }
    }
}

impl SharedString {
    /// One that everybody may know.
    #[must_use]
    pub fn open(text: String) -> SharedString {
        SharedString {
            text: Some(text),
            secrecy: Secrecy::Open,
            is_current: true,
        }
    }

    /// Who shall be able to read it, where others can, or not all of them: those who can, and those who shall.
    #[must_use]
    pub fn misses(&self, wanted: Secrecy) -> Option<(&'static str, &'static str)> {
        let readers = |secrecy, is_current| match (secrecy, is_current) {
            (Secrecy::Open, _) => "everybody",
            (Secrecy::Secret, true) => "the hosts that there are",
            (Secrecy::Secret, false) => "other hosts",
        };
        let is_right = self.secrecy == wanted && (self.is_current || wanted == Secrecy::Open);
        (!is_right).then(|| (readers(self.secrecy, self.is_current), readers(wanted, true)))
    }
}

/// A secret is not shown.
impl std::fmt::Debug for SharedString {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.secrecy {
            Secrecy::Open => self.text.fmt(f),
            Secrecy::Secret => f.write_str("(sensitive)"),
        }
    }
}

/// Strings by key that all machines see.
#[async_trait]
pub trait SharedStrings: Send + Sync {
    /// The string of a key, if there is one.
    ///
    /// # Errors
    /// When the store cannot be read.
    async fn get(&self, key: SharedKey<'_>) -> Result<Option<SharedString>, Failure>;

    /// Sets the string of a key, or removes it.
    ///
    /// # Errors
    /// When the store cannot be written.
    async fn set(&self, key: SharedKey<'_>, value: Option<&str>, secrecy: Secrecy) -> Result<(), Failure>;

    /// Sets the string of a key if it still is what was read. Answers whether it was.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    async fn set_if(
        &self,
        key: SharedKey<'_>,
        was: Option<&str>,
        value: &str,
        secrecy: Secrecy,
    ) -> Result<bool, Failure>;

    /// How changes of a key are seen.
    fn watch(&self, key: SharedKey<'_>) -> Watch;
}

/// The store as a service of kinds. Clones are one and the same.
#[derive(Clone)]
pub struct SharedStore(Arc<dyn SharedStrings>);

impl SharedStore {
    /// This one.
    #[must_use]
    pub fn new(strings: Arc<dyn SharedStrings>) -> SharedStore {
        SharedStore(strings)
    }
}

impl std::ops::Deref for SharedStore {
    type Target = dyn SharedStrings;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl fmt::Debug for SharedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedStore")
    }
}
