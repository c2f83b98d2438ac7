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
}

/// Strings by key that all machines see.
#[async_trait]
pub trait SharedStrings: Send + Sync {
    /// The string of a key, if there is one.
    ///
    /// # Errors
    /// When the store cannot be read.
    async fn get(&self, key: SharedKey<'_>) -> Result<Option<String>, Failure>;

    /// Sets the string of a key, or removes it.
    ///
    /// # Errors
    /// When the store cannot be written.
    async fn set(&self, key: SharedKey<'_>, value: Option<&str>) -> Result<(), Failure>;

    /// Sets the string of a key if it still is what was read. Answers whether it was.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    async fn set_if(&self, key: SharedKey<'_>, was: Option<&str>, value: &str) -> Result<bool, Failure>;

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
