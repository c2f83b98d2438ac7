//! A store on a real etcd (API version 3).
//!
//! All keys lie below a namespace. Whatever ends a connection, it is made anew: watches go on where they were, leases are kept alive as long as
//! they live, and requests find another member. Certificates are read again for each connection, so that renewed ones are used.

mod connection;
mod endpoint;
mod following;
mod keep_alive;
mod protocol;
mod refusals;
mod rights;
mod tunnel;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use setpoint_host::files::AbsolutePath;
use setpoint_host::ssh::SshOptions;

use crate::{
    Condition, Entry, Key, Lease, LeaseId, Operation, Outcome, Put, Revision, Selection, Snapshot, State,
    Store, StoreError, Transaction, Value, Watch,
};
use connection::Connection;
pub use endpoint::EndpointPlace;
use following::Following;
use protocol::{
    CREATE, Calls, Compare, CompareWith, DeleteRangeRequest, EQUAL, GREATER, KeyValue, MOD, PutRequest,
    RangeRequest, RequestKind, RequestOp, ResponseKind, TxnRequest, TxnResponse, VALUE,
};
pub use rights::{Access, Grants, Rights, RightsChange};

/// Connection options of etcd.
#[derive(Debug, Clone)]
pub struct EtcdOptions {
    /// Its members, as URLs (`https://host:2379`); at least one.
    pub endpoints: Vec<String>,
    /// Prefix of all keys, such as `/_mgmt`.
    pub namespace: String,
    /// As whom.
    pub login: Option<Login>,
    /// TLS options; required for `https`.
    pub tls: Option<TlsFiles>,
    /// The SSH server from which the endpoints are reached; none: they are reached from here.
    pub ssh: Option<SshOptions>,
}

/// A user of etcd.
#[derive(Clone)]
pub struct Login {
    /// The name.
    pub user: String,
    /// The password, which is shown nowhere.
    pub password: String,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

/// Files of certificates, in PEM format.
#[derive(Debug, Clone, Default)]
pub struct TlsFiles {
    /// CA certificate that must have signed etcd's certificate. Without it, no certificate is trusted.
    pub authority: Option<AbsolutePath>,
    /// Client certificate of this host, and its key.
    pub identity: Option<(AbsolutePath, AbsolutePath)>,
}

/// A store on etcd. Clones share a connection.
#[derive(Clone)]
pub struct EtcdStore(Arc<Connection>);

impl EtcdStore {
    /// The store that these options describe. It is reached when it is first asked.
    ///
    /// # Errors
    /// When the options cannot lead to any store.
    pub fn new(options: EtcdOptions) -> Result<EtcdStore, StoreError> {
        Ok(EtcdStore(Arc::new(Connection::new(options)?)))
    }

    /// Transport to etcd.
    #[must_use]
    pub fn options(&self) -> &EtcdOptions {
        &self.0.options
    }

    /// Address of its first endpoint.
    #[must_use]
    pub fn first_endpoint(&self) -> Option<EndpointPlace> {
        EndpointPlace::of(self.0.options.endpoints.first()?)
    }

    /// The URLs at which its members say that clients reach them, as they say them.
    ///
    /// # Errors
    /// When no member answers.
    pub async fn advertised(&self) -> Result<Vec<String>, StoreError> {
        let ask = async || {
            self.0
                .ask(false, async |calls: Calls| calls.members().await)
                .await
        };
        let answer = match ask().await {
            // Another member may answer, and nothing was changed.
            Err(StoreError::Away { .. } | StoreError::NotLetIn { .. }) => ask().await?,
            answer => answer?,
        };
        let all = answer.members.into_iter().flat_map(|member| member.client_urls);
        Ok(all.collect())
    }
}

impl fmt::Debug for EtcdStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EtcdStore")
            .field(&self.0.options.endpoints)
            .finish()
    }
}

#[async_trait]
impl Store for EtcdStore {
    async fn read(&self, selections: &[Selection]) -> Result<Snapshot, StoreError> {
        let reads = selections.iter().map(|one| self.0.get(one, false));
        self.0.read(reads.collect()).await
    }

    async fn keys(&self, prefix: &str) -> Result<Vec<Key>, StoreError> {
        let read = self.0.get(&Selection::prefix(prefix), true);
        let found = self.0.read(vec![read]).await?;
        Ok(found.all().map(|entry| entry.key.clone()).collect())
    }

    async fn transact(&self, transaction: Transaction) -> Result<Outcome, StoreError> {
        transaction.check()?;
        let connection = &self.0;
        let request = TxnRequest {
            compare: transaction
                .conditions
                .iter()
                .map(|one| connection.compare(one))
                .collect(),
            success: transaction
                .operations
                .iter()
                .map(|one| connection.operation(one))
                .collect(),
            failure: transaction
                .otherwise_read
                .iter()
                .map(|one| connection.get(one, false))
                .collect(),
        };
        let ask = async || {
            let request = request.clone();
            connection
                .ask(true, async |calls: Calls| calls.transact(request).await)
                .await
        };
        let known = connection.known();
        let mut answer = ask().await;
        for _ in 0..connection.options.endpoints.len() {
            match &answer {
                // A login may have run out, or another member may take it: nothing was changed.
                Err(StoreError::NotLetIn { .. }) => {}
                Err(error) if error.is_passing() && !error.is_ambiguous() => {}
                _ => break,
            }
            answer = ask().await;
        }
        let answer = answer?;
        match answer.succeeded {
            true => {
                let revision = revision_of(answer.revision());
                connection.saw(revision, known.set_backs);
                Ok(Outcome::Done(revision))
            }
            false => connection.snapshot(answer).map(Outcome::Refused),
        }
    }

    fn watch(&self, selection: Selection, after: Revision) -> Watch {
        Watch::new(Following::begin(self.0.clone(), selection, after))
    }

    async fn lease(&self, time_to_live: Duration) -> Result<Lease, StoreError> {
        keep_alive::grant(self.0.clone(), time_to_live).await
    }
}

impl Connection {
    fn full(&self, key: &str) -> Vec<u8> {
        [self.options.namespace.as_bytes(), key.as_bytes()].concat()
    }

    /// Start and end of a selection, in etcd's form.
    fn range(&self, selection: &Selection) -> (Vec<u8>, Vec<u8>) {
        match selection {
            Selection::Key(key) => (self.full(key.as_str()), Vec::new()),
            Selection::Prefix(prefix) => {
                let begin = self.full(prefix);
                let end = after_all_with(&begin);
                (begin, end)
            }
        }
    }

    fn get(&self, selection: &Selection, keys_only: bool) -> RequestOp {
        let (key, range_end) = self.range(selection);
        let request = RangeRequest {
            key,
            range_end,
            limit: 0,
            keys_only,
        };
        RequestOp {
            request: Some(RequestKind::Range(request)),
        }
    }

    async fn read(&self, reads: Vec<RequestOp>) -> Result<Snapshot, StoreError> {
        let request = TxnRequest {
            success: reads,
            ..TxnRequest::default()
        };
        let before = self.known();
        let ask = async || {
            let request = request.clone();
            self.ask(false, async |calls: Calls| calls.transact(request).await)
                .await
        };
        let mut answer = ask().await;
        // Another member may answer, and nothing was changed.
        for _ in 0..self.options.endpoints.len() {
            if !matches!(answer, Err(StoreError::Away { .. } | StoreError::NotLetIn { .. })) {
                break;
            }
            answer = ask().await;
        }
        let answer = answer?;
        // What reads nothing is not asked of all members, and one may be behind.
        if let Some(header) = answer.header.as_ref().filter(|_| !request.success.is_empty()) {
            self.has_read(&before, header);
        }
        self.snapshot(answer)
    }

    fn compare(&self, condition: &Condition) -> Compare {
        let number = |revision: Revision| i64::try_from(revision.0).unwrap_or(i64::MAX);
        let (result, target, with) = match &condition.is {
            State::Absent => (EQUAL, CREATE, CompareWith::CreateRevision(0)),
            State::Present => (GREATER, CREATE, CompareWith::CreateRevision(0)),
            State::Value(value) => (EQUAL, VALUE, CompareWith::Value(value.to_vec())),
            State::Modified(revision) => (EQUAL, MOD, CompareWith::ModRevision(number(*revision))),
            State::Created(revision) => (EQUAL, CREATE, CompareWith::CreateRevision(number(*revision))),
        };
        Compare {
            result,
            target,
            key: self.full(condition.key.as_str()),
            with: Some(with),
        }
    }

    fn operation(&self, operation: &Operation) -> RequestOp {
        let request = match operation {
            Operation::Put(Put { key, value, lease }) => RequestKind::Put(PutRequest {
                key: self.full(key.as_str()),
                value: value.to_vec(),
                lease: lease.map_or(0, |lease| lease.0),
            }),
            Operation::Delete(selection) => {
                let (key, range_end) = self.range(selection);
                RequestKind::DeleteRange(DeleteRangeRequest { key, range_end })
            }
        };
        RequestOp {
            request: Some(request),
        }
    }

    fn snapshot(&self, answer: TxnResponse) -> Result<Snapshot, StoreError> {
        let revision = revision_of(answer.revision());
        let mut entries = Vec::new();
        for one in answer.responses {
            let Some(ResponseKind::Range(found)) = one.response else {
                return Err(StoreError::Refused {
                    reason: "its answer is not what was asked for".into(),
                });
            };
            entries.push(
                found
                    .kvs
                    .into_iter()
                    .filter_map(|found| self.entry(found))
                    .collect(),
            );
        }
        Ok(Snapshot { revision, entries })
    }

    /// The entry of a key; none if the key is not valid UTF-8, because Setpoint never writes such keys.
    fn entry(&self, found: KeyValue) -> Option<Entry> {
        Some(Entry {
            key: self.own_key(&found.key)?,
            value: Value::from(found.value),
            created: revision_of(found.create_revision),
            modified: revision_of(found.mod_revision),
            lease: Some(found.lease).filter(|lease| *lease != 0).map(LeaseId),
        })
    }

    fn own_key(&self, full: &[u8]) -> Option<Key> {
        let own = full.strip_prefix(self.options.namespace.as_bytes())?;
        Key::new(std::str::from_utf8(own).ok()?).ok()
    }
}

/// etcd counts from 1; an empty one is at 1.
fn revision_of(number: i64) -> Revision {
    Revision(u64::try_from(number).unwrap_or(0))
}

impl TxnResponse {
    fn revision(&self) -> i64 {
        self.header.as_ref().map_or(0, |header| header.revision)
    }
}

/// The first key behind all that begin so: the last byte that can be is one more. Of what begins with nothing, etcd's word for «to the end».
fn after_all_with(begin: &[u8]) -> Vec<u8> {
    let mut end = begin.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return end;
        }
    }
    vec![0]
}
