//! Changes that are followed.

use async_trait::async_trait;

use crate::{Change, Revision, StoreError};

/// An event of a followed selection.
#[derive(Debug, Clone, PartialEq)]
pub enum Watched {
    /// It changed. Each revision comes once, in order.
    Changed(Batch),
    /// Changes were forgotten before they could be told: what there is must be read anew. What comes after has later revisions than this.
    Compacted(Revision),
    /// The store is not what it was: it has lost what it had, or has been set back to an earlier state. What there is must be read anew, and what
    /// is this host's may be missing. Revisions go on from this one, which may be lower than those before.
    SetBack(Revision),
    /// The store cannot be followed; it is tried again until it can. Told once a break, and again when the reason is another one.
    Away(StoreError),
    /// It is followed again, from where it was.
    Back,
}

/// Changes of one revision in the followed selection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// The revision.
    pub revision: Revision,
    /// The changes, in the order in which they were made; not empty.
    pub changes: Vec<Change>,
}

/// A selection that is followed, until it is dropped.
pub struct Watch(Box<dyn WatchSource>);

/// The source of events.
#[async_trait]
pub(crate) trait WatchSource: Send {
    /// The next one. Dropping the future loses nothing.
    async fn next(&mut self) -> Watched;
}

impl Watch {
    pub(crate) fn new(source: impl WatchSource + 'static) -> Watch {
        Watch(Box::new(source))
    }

    /// Waits for the next thing to hear. It may be waited for beside others: dropping the future loses nothing.
    pub async fn next(&mut self) -> Watched {
        self.0.next().await
    }
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Watch")
    }
}
