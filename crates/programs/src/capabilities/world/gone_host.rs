//! Removal of a host that is gone for good from the store.

use setpoint_world::{Key, Operation, Outcome, Selection, State, Store, StoreError, Transaction};

use super::elections::CANDIDATES;
use super::exports::{EXPORTED, EXPORTING};
use super::keys;
use super::secrets::key_of;
use super::strings::HOST_STRINGS;

/// So many prefixes go in one transaction, which may have 128 operations in etcd.
const TOGETHER: usize = 100;

/// The numbers of entries that a host left in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Remains {
    /// Resources that it exported.
    pub exported: usize,
    /// Strings of its own.
    pub strings: usize,
    /// Elections in which it stood.
    pub candidacies: usize,
    /// Whether its public key was there.
    pub has_key: bool,
}

impl Remains {
    /// Whether the store held none of these.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Remains::default()
    }
}

/// Removes everything that a host wrote, unless the key `alive` is there. None if it is.
///
/// # Errors
/// When the store cannot be reached, or refuses.
pub async fn remove_host(store: &dyn Store, host: &str, alive: &Key) -> Result<Option<Remains>, StoreError> {
    let noted = keys::below(EXPORTING, &[host]);
    let own = [
        Selection::prefix(keys::below(HOST_STRINGS, &[host])),
        Selection::prefix(keys::below(CANDIDATES, &[host])),
        key_of(host).into(),
    ];
    let notes = store.read(&[Selection::prefix(noted.as_str())]).await?;
    let targets = notes.all().filter_map(|entry| keys::parts(&entry.key, &noted));
    let exports: Vec<Selection> = targets
        .map(|[to]: [String; 1]| Selection::prefix(keys::below(EXPORTED, &[&to, host])))
        .collect();
    let mut remains = Remains::default();
    for some in exports.chunks(TOGETHER) {
        remains.exported += store.read(some).await?.all().count();
        if !remove(store, some.iter().cloned(), alive).await? {
            return Ok(None);
        }
    }
    let found = store.read(&own).await?;
    let count = |at: usize| found.entries.get(at).map_or(0, Vec::len);
    remains.strings = count(0);
    remains.candidacies = count(1);
    remains.has_key = count(2) > 0;
    // The notes go last: with them the rest is found again after a failure.
    let rest = own.into_iter().chain([Selection::prefix(noted)]);
    let removed = remove(store, rest, alive).await?;
    Ok(removed.then_some(remains))
}

async fn remove(
    store: &dyn Store,
    selections: impl Iterator<Item = Selection>,
    alive: &Key,
) -> Result<bool, StoreError> {
    let removed = Transaction::of(selections.map(Operation::Delete)).when(alive.clone(), State::Absent);
    Ok(matches!(store.transact(removed).await?, Outcome::Done(_)))
}
