//! A part of the store as it is followed: always the whole of it, as it was at one revision.

use std::collections::BTreeMap;
use std::sync::Arc;

use setpoint_world::{Backoff, Change, Entry, Key, Revision, Selection, Store, StoreError, Watched};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::Telling;

/// A part of the store.
pub(super) struct Mirror {
    seen: watch::Receiver<Seen>,
    task: JoinHandle<()>,
}

/// How it was seen.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    /// What there was, by key; none as long as the store has not answered.
    pub(super) entries: Option<Arc<BTreeMap<Key, Entry>>>,
    /// Why the store cannot be followed now, if it cannot.
    pub(super) away: Option<StoreError>,
    /// How often the store was found to have lost what it had: then what is this host's may be missing.
    pub(super) set_backs: u64,
}

impl Mirror {
    pub(super) fn begin(
        runtime: &Handle,
        store: Arc<dyn Store>,
        selection: Selection,
        telling: Arc<Telling>,
    ) -> Mirror {
        let (sender, seen) = watch::channel(Seen::default());
        Mirror {
            seen,
            task: runtime.spawn(follow(store, selection, sender, telling)),
        }
    }

    /// How it is seen, from now on.
    pub(super) fn look(&self) -> watch::Receiver<Seen> {
        self.seen.clone()
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn follow(
    store: Arc<dyn Store>,
    selection: Selection,
    seen: watch::Sender<Seen>,
    telling: Arc<Telling>,
) {
    let mut backoff = Backoff::default();
    let mut set_backs = 0;
    let mut entries: Arc<BTreeMap<Key, Entry>>;
    loop {
        // All of it, and then what follows.
        let revision;
        (entries, revision) = loop {
            match read(&*store, &selection).await {
                Ok(read) => break read,
                Err(error) => {
                    telling.away(&error);
                    seen.send_modify(|seen| seen.away = Some(error));
                    tokio::time::sleep(backoff.pause()).await;
                }
            }
        };
        backoff.reset();
        telling.back();
        seen.send_replace(Seen {
            entries: Some(entries.clone()),
            away: None,
            set_backs,
        });
        let mut watch = store.watch(selection.clone(), revision);
        loop {
            match watch.next().await {
                Watched::Changed(batch) => {
                    let known = Arc::make_mut(&mut entries);
                    for change in batch.changes {
                        match change {
                            Change::Put(entry) => drop(known.insert(entry.key.clone(), entry)),
                            Change::Deleted(key) => drop(known.remove(&key)),
                        }
                    }
                    let entries = Some(entries.clone());
                    seen.send_modify(|seen| seen.entries = entries);
                }
                Watched::Compacted(_) => break,
                Watched::SetBack(_) => {
                    telling.set_back();
                    set_backs += 1;
                    break;
                }
                Watched::Away(error) => {
                    telling.away(&error);
                    seen.send_modify(|seen| seen.away = Some(error));
                }
                Watched::Back => {
                    telling.back();
                    seen.send_modify(|seen| seen.away = None);
                }
            }
        }
    }
}

async fn read(
    store: &dyn Store,
    selection: &Selection,
) -> Result<(Arc<BTreeMap<Key, Entry>>, Revision), StoreError> {
    let found = store.read(std::slice::from_ref(selection)).await?;
    let entries = found.all().map(|entry| (entry.key.clone(), entry.clone()));
    Ok((Arc::new(entries.collect()), found.revision))
}
