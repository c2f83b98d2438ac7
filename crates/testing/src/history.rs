//! What happened in the store of a cluster, and whether it may have.
//!
//! [`check`] is pure. It is given each change from the first revision on and what each process of a host said that it ran, and answers which of
//! the things that hold in a cluster, whatever fails in it, did not hold. It is written apart from the product and knows only its keys.

mod rules;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use rules::State;

/// A change of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// With which revision.
    pub revision: u64,
    /// Which key, below the namespace: `/deploy/1/payload`.
    pub key: String,
    /// What is under it from then on; none: it is gone.
    pub value: Option<String>,
    /// The lease that it goes with; 0: none.
    pub lease: i64,
    /// When it was heard of, where that is known.
    pub at: Option<Duration>,
}

/// The deploys that one process of a host ran, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// The host.
    pub host: String,
    /// Their numbers.
    pub deploys: Vec<u64>,
}

/// What else must hold.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// Deploys of which it was said that they are published.
    pub published: BTreeSet<u64>,
    /// What must never be deleted once it is there: the beginnings of keys.
    pub kept: Vec<String>,
    /// What must be under keys in the end; none: nothing.
    pub in_the_end: BTreeMap<String, Option<String>>,
    /// The beginnings of keys of which there must be none in the end but those of `in_the_end`.
    pub nothing_else_below: Vec<String>,
    /// Hosts that must run the newest deploy in the end, and have it right.
    pub right_in_the_end: BTreeSet<String>,
    /// How long a host may be chosen that does not stand any more.
    pub out_within: Option<Duration>,
}

/// Something that did not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Broken {
    /// A revision is not behind the one before it.
    Disorder {
        /// Which.
        revision: u64,
    },
    /// A deploy came before the one before it.
    Gap {
        /// Its number.
        deploy: u64,
    },
    /// What a deploy says is another thing than before.
    Rewritten {
        /// Its number.
        deploy: u64,
        /// When.
        revision: u64,
    },
    /// A deploy that was published is not there.
    Lost {
        /// Its number.
        deploy: u64,
    },
    /// A process ran a deploy after that one or a later one.
    RanAgain {
        /// Which host.
        host: String,
        /// The number.
        deploy: u64,
    },
    /// A host ran a deploy that nobody has published.
    RanUnknown {
        /// Which host.
        host: String,
        /// The number.
        deploy: u64,
    },
    /// More hosts were chosen than were wanted.
    TooMany {
        /// For what.
        namespace: String,
        /// When.
        revision: u64,
    },
    /// A host was chosen twice at once.
    Twice {
        /// For what.
        namespace: String,
        /// When.
        revision: u64,
    },
    /// A host was chosen that has never stood.
    NeverStood {
        /// For what.
        namespace: String,
        /// Which.
        host: String,
    },
    /// A result was written when nobody could decide.
    NobodyDecides {
        /// For what.
        namespace: String,
        /// When.
        revision: u64,
    },
    /// A host was still chosen too long after it had stood last.
    StaysChosen {
        /// For what.
        namespace: String,
        /// Which.
        host: String,
        /// How long; none: to the end.
        after: Option<Duration>,
    },
    /// What is to go with a host does not.
    NoLease {
        /// Which key.
        key: String,
    },
    /// What must stay was deleted.
    Deleted {
        /// Which key.
        key: String,
        /// When.
        revision: u64,
    },
    /// In the end something else is there than must be.
    Wrong {
        /// Which key.
        key: String,
        /// What is there.
        is: Option<String>,
    },
    /// A host has not got the newest deploy right in the end.
    NotRight {
        /// Which.
        host: String,
        /// What it says of itself.
        says: Option<String>,
    },
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Looks at a whole history, and answers what did not hold in it.
#[must_use]
pub fn check(changes: &[Recorded], ran: &[Ran], wanted: &Wanted) -> Vec<Broken> {
    let mut state = State::default();
    let mut broken = Vec::new();
    let mut last = 0;
    // What one revision changes is there at once.
    for batch in changes.chunk_by(|one, other| one.revision == other.revision) {
        if batch[0].revision <= last {
            broken.push(Broken::Disorder {
                revision: batch[0].revision,
            });
        }
        last = batch[0].revision;
        state.take(batch, wanted, &mut broken);
    }
    state.end(ran, wanted, &mut broken);
    broken
}

#[cfg(test)]
mod tests;
