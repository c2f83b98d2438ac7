//! What this host exports.

use setpoint_engine::{ExportChange, ExportKey, ExportStore, Failure, async_trait};
use setpoint_graph::ResourceId;
use setpoint_world::{Key, MOST_OPERATIONS, Operation, Selection, StoreError, Transaction};

use super::{ClusterWorld, Member, failed, keys};

pub(super) const EXPORTED: &str = "/exported";

/// Who stands for all hosts in an export.
pub(super) const EVERYONE: &str = "*";

#[async_trait]
impl ExportStore for ClusterWorld {
    async fn exported(&self) -> Result<Vec<ExportKey>, Failure> {
        let (store, begin) = (self.member.store.clone(), format!("{EXPORTED}/"));
        let all = Selection::prefix(begin.clone());
        let read = self.member.ask(async move { store.read(&[all]).await }).await;
        let read = read.map_err(|error| failed("read what this host exports, below", EXPORTED, error))?;
        let own = read.all().filter_map(|entry| {
            let [to, from, kind, name] = keys::parts(&entry.key, &begin)?;
            (from == self.member.hostname).then(|| ExportKey {
                resource: ResourceId::new(kind.as_str(), name),
                to: to.into(),
            })
        });
        Ok(own.collect())
    }

    async fn change(&self, changes: Vec<ExportChange>) -> Vec<Result<(), Failure>> {
        match self.member.change(&changes).await {
            Ok(()) => changes.iter().map(|_| Ok(())).collect(),
            // One of them may be to blame, and the others are not.
            Err(error) if changes.len() > 1 && !error.is_passing() => {
                let mut results = Vec::new();
                for change in &changes {
                    let result = self.member.change(std::slice::from_ref(change)).await;
                    results.push(result.map_err(|error| refused(change, error)));
                }
                results
            }
            Err(error) => changes
                .iter()
                .map(|change| Err(refused(change, error.clone())))
                .collect(),
        }
    }

    fn at_a_time(&self) -> usize {
        MOST_OPERATIONS
    }
}

fn refused(change: &ExportChange, error: StoreError) -> Failure {
    let attempted = match change.data {
        Some(_) => "export",
        None => "take back",
    };
    failed(attempted, &change.key, error)
}

impl Member {
    /// Writes what is not so yet, in one transaction.
    async fn change(&self, changes: &[ExportChange]) -> Result<(), StoreError> {
        let keys: Vec<Key> = changes.iter().map(|change| self.exported(&change.key)).collect();
        let (store, selections) = (
            self.store.clone(),
            keys.iter().cloned().map(Selection::from).collect::<Vec<_>>(),
        );
        let there = self.ask(async move { store.read(&selections).await }).await?;
        let there = there.entries.iter().map(|found| found.first());
        let differing = changes
            .iter()
            .zip(&keys)
            .zip(there)
            .filter_map(|((change, key), there)| {
                let is = there.map(|entry| &*entry.value);
                let wanted = change.data.as_ref().map(|data| data.as_bytes());
                (is != wanted).then(|| match wanted {
                    Some(data) => Operation::put(key.clone(), data),
                    None => Operation::Delete(key.clone().into()),
                })
            });
        let operations: Vec<Operation> = differing.collect();
        if operations.is_empty() {
            return Ok(());
        }
        let store = self.store.clone();
        self.ask(async move { store.transact(Transaction::of(operations)).await })
            .await
            .map(drop)
    }

    fn exported(&self, key: &ExportKey) -> Key {
        let ExportKey { resource, to } = key;
        keys::key(EXPORTED, &[to, &self.hostname, &resource.kind, &resource.name])
    }
}
