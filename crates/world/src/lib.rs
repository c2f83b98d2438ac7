//! What hosts share, as a store of keys: consistent reads, transactions, watches that resume, leases.
//!
//! One trait, [`Store`], and what stands behind it: a real etcd ([`EtcdStore`]) for a cluster, a file ([`FileStore`]) for the processes of one
//! machine, or the memory of a process ([`MemoryStore`]) for tests and for simulated clusters. All count revisions alike and pass the same suite
//! of cases, so what is built on the trait knows no difference.
//! Nothing here knows what the keys mean.

#![forbid(unsafe_code)]

mod backoff;
mod error;
mod etcd;
mod file;
mod lease;
mod memory;
mod store;
mod watch;

pub use backoff::Backoff;
pub use error::StoreError;
pub use etcd::{
    Access, EndpointPlace, EtcdOptions, EtcdStore, Grants, Login, Rights, RightsChange, TlsFiles,
};
pub use file::FileStore;
pub use lease::{Lease, LeaseId};
pub use memory::MemoryStore;
pub use store::{
    Change, Condition, Entry, InvalidKey, Key, MOST_OPERATIONS, Operation, Outcome, Put, Revision, Selection,
    Snapshot, State, Store, Transaction, Value,
};
pub use watch::{Batch, Watch, Watched};
