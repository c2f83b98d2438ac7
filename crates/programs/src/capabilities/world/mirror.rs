//! A part of the store as it is followed: always the whole of it, as it was at one revision.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use setpoint_world::{Backoff, Change, Entry, Key, Revision, Selection, Store, StoreError, Watched};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::Telling;
use super::memory::{Memory, WRITE_EVERY};

/// A watch recovers within this time from an outage that is over.
const LATE_NOTICE: Duration = Duration::from_secs(2);

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
        memory: Option<Memory>,
        telling: Arc<Telling>,
    ) -> Mirror {
        let (sender, seen) = watch::channel(Seen::default());
        Mirror {
            seen,
            task: runtime.spawn(follow(store, selection, sender, memory, telling)),
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
    memory: Option<Memory>,
    telling: Arc<Telling>,
) {
    let mut backoff = Backoff::default();
    let mut keeper = Keeper::new(memory, telling.clone());
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
                    let is_first = seen.borrow().entries.is_none();
                    let recalled = match is_first && error.is_passing() {
                        true => keeper.recall().await,
                        false => None,
                    };
                    seen.send_modify(|seen| {
                        seen.away = Some(error);
                        if let Some(entries) = recalled {
                            seen.entries = Some(Arc::new(entries));
                        }
                    });
                    sleep(backoff.pause()).await;
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
        keeper.keep(&entries);
        let mut watch = store.watch(selection.clone(), revision);
        // An outage that others have seen end already, and that this watch notices only now.
        let mut late: Option<StoreError> = None;
        loop {
            let watched = tokio::select! {
                watched = watch.next() => {
                    late = None;
                    watched
                }
                () = sleep(LATE_NOTICE), if late.is_some() => {
                    if let Some(error) = late.take() {
                        telling.away(&error);
                    }
                    continue;
                }
                () = keeper.due() => {
                    keeper.write(&entries).await;
                    continue;
                }
            };
            match watched {
                Watched::Changed(batch) => {
                    let known = Arc::make_mut(&mut entries);
                    for change in batch.changes {
                        match change {
                            Change::Put(entry) => drop(known.insert(entry.key.clone(), entry)),
                            Change::Deleted(key) => drop(known.remove(&key)),
                        }
                    }
                    keeper.keep(&entries);
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
                    match telling.is_just_back() {
                        true => late = Some(error.clone()),
                        false => telling.away(&error),
                    }
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

/// Keeps the last seen state for a start without the store.
struct Keeper {
    memory: Option<Memory>,
    telling: Arc<Telling>,
    /// The time of the next write, if one is due.
    due: Option<Instant>,
    /// The state of the last write.
    written: Option<Arc<BTreeMap<Key, Entry>>>,
}

impl Keeper {
    fn new(memory: Option<Memory>, telling: Arc<Telling>) -> Keeper {
        Keeper {
            memory,
            telling,
            due: None,
            written: None,
        }
    }

    /// The state that an earlier process saw.
    async fn recall(&self) -> Option<BTreeMap<Key, Entry>> {
        let memory = self.memory.clone()?;
        let recalled = tokio::task::spawn_blocking(move || memory.recall())
            .await
            .ok()??;
        self.telling.recalled(recalled.age);
        Some(recalled.entries)
    }

    /// Schedules a write.
    fn keep(&mut self, entries: &Arc<BTreeMap<Key, Entry>>) {
        if self.memory.is_some() && self.due.is_none() && self.written.as_ref() != Some(entries) {
            self.due = Some(Instant::now() + WRITE_EVERY);
        }
    }

    /// Waits until a write is due.
    async fn due(&self) {
        match self.due {
            Some(due) => tokio::time::sleep_until(due).await,
            None => std::future::pending().await,
        }
    }

    async fn write(&mut self, entries: &Arc<BTreeMap<Key, Entry>>) {
        self.due = None;
        let Some(memory) = self.memory.clone() else {
            return;
        };
        self.written = Some(entries.clone());
        let entries = entries.clone();
        let written = tokio::task::spawn_blocking(move || memory.remember(&entries)).await;
        if let Ok(Err(why)) = written {
            self.telling.not_remembered(&why);
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
