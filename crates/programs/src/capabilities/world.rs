//! What hosts share, in a store of keys: those of a cluster in an etcd, the processes of one machine in a file.
//!
//! ```text
//! /strings/KEY                        a string for all                 /host-strings/HOST/KEY              one of each host
//! /exported/TO/FROM/KIND/NAME         a resource that FROM exports     /exporting/FROM/TO                  for whom it exports any
//! /scheduler/hostname/HOST/NAMESPACE  a candidate                      /keys/HOST                          to which key its secrets are encrypted
//! /scheduler/schedule/NAMESPACE       who is chosen                    /scheduler/election/LEASE           who may decide that
//! ```
//!
//! What a host writes lies below its name, but for exports, where whom they are for comes first: so rights can be given by ranges of keys.
//!
//! Parts of keys that users name are encoded, so that a slash in a name is no slash of the key. What is followed is mirrored: a host that cannot
//! reach the store goes on with what it knew last, and says so.
//!
//! On one machine it is the same, but for two things. Only root reads its file, so secrets in it are marked and not encrypted, and no resource with
//! secrets is exported. And the system tells at once when a process has ended, so it does not stand for elections for long after that.
//! In tests several hosts share the file of one machine, by a link to one directory; so may containers.

pub mod elections;
pub mod exports;
pub mod gone_host;
pub mod keys;
mod memory;
mod mirror;
mod reader;
mod secrets;
pub mod strings;
mod unencrypted;

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use setpoint_diagnostics::visible;
use setpoint_engine::Failure;
use setpoint_host::Host;
use setpoint_host::files::{AbsolutePath, Committer};
use setpoint_host::sync::Mutex;
use setpoint_host::watch::WatchHub;
use setpoint_world::{FileStore, Key, Selection, Store, StoreError};
use tokio::runtime::Runtime;

use crate::host_key::HostKey;
use crate::report::{Importance, Reporter};
use elections::Standing;
use exports::OwnExports;
use memory::{Memories, Memory};
use mirror::Mirror;
use secrets::Unreadable;
pub use secrets::{KEYS, host_of_key, key_of};

/// All watches notice the same outage within this time.
const OUTAGE_IS_FOUND: Duration = Duration::from_secs(5);

/// Within this all find out that the store has lost what it had.
const SET_BACK_IS_FOUND: Duration = Duration::from_secs(60);

/// A host of a cluster, or a process of one machine.
pub struct SharedWorld {
    member: Arc<Member>,
    kinds: BTreeSet<String>,
}

/// The behaviour of programs while the store is away.
pub struct WhileAway {
    /// Whether they wait for values that this host never read. Else what they read fails.
    pub waits: bool,
    /// The directory that keeps what they read, so that a start without the store continues with it; none: nothing is kept.
    pub remembered: Option<(AbsolutePath, Arc<Committer>)>,
}

impl WhileAway {
    /// They wait, and nothing is kept.
    #[must_use]
    pub fn waiting() -> WhileAway {
        WhileAway {
            waits: true,
            remembered: None,
        }
    }
}

struct Member {
    store: Arc<dyn Store>,
    hostname: String,
    /// With which it reads what is encrypted to it; none on one machine, where nothing is.
    key: Option<HostKey>,
    /// What is known of the exports of this host. Held while they are written.
    own_exports: tokio::sync::Mutex<OwnExports>,
    /// What is followed, as long as somebody looks at it.
    mirrors: Mutex<HashMap<Selection, Weak<Mirror>>>,
    /// Whether programs wait for a store that is away.
    waits: bool,
    /// Where what programs follow is remembered; none on one machine.
    memories: Option<Memories>,
    /// What this host stands for.
    standing: Mutex<Standing>,
    /// Changes when a candidacy of this host begins or ends.
    standing_changed: tokio::sync::watch::Sender<()>,
    telling: Arc<Telling>,
    /// Where all that waits for the store happens; none when it is over.
    runtime: Option<Runtime>,
}

/// Says that the store is away, and that it is back: once for all that is followed.
struct Telling {
    reporter: Reporter,
    is_away: Mutex<bool>,
    /// When the store was seen again.
    seen_again: Mutex<Option<Instant>>,
    /// Whether it was reported that this host continues with a remembered state, and that it cannot remember.
    has_reported_recall: Mutex<bool>,
    has_reported_loss: Mutex<bool>,
    /// When it was told that the store has lost what it had.
    set_back: Mutex<Option<Instant>>,
    /// Namespaces without a decision that were reported.
    undecided: Mutex<BTreeSet<String>>,
    /// Which secrets this host cannot read, and that was told.
    unreadable: Mutex<BTreeSet<Key>>,
}

impl Telling {
    fn away(&self, error: &StoreError) {
        if !std::mem::replace(&mut *self.is_away.lock(), true) {
            let text =
                format!("cannot read the shared store: {error}; continuing with the last known values");
            self.reporter.warning(visible(&text));
        }
    }

    /// A host started while the store is away.
    fn recalled(&self, age: Duration) {
        if !std::mem::replace(&mut *self.has_reported_recall.lock(), true) {
            let text = format!(
                "this host starts with the values that it read from the store {} ago",
                shown_age(age)
            );
            self.reporter.warning(text);
        }
    }

    fn not_remembered(&self, why: &str) {
        if !std::mem::replace(&mut *self.has_reported_loss.lock(), true) {
            let text = format!(
                "cannot save values of the shared store, so they are missing after a start without the store: {why}"
            );
            self.reporter.warning(visible(&text));
        }
    }

    fn back(&self) {
        if std::mem::take(&mut *self.is_away.lock()) {
            *self.seen_again.lock() = Some(Instant::now());
            self.reporter
                .say(Importance::Notice, "the shared store is reachable again");
        }
    }

    /// Whether an outage has just ended. Each watch notices it for itself, and the last one after the first one has recovered.
    fn is_just_back(&self) -> bool {
        let seen_again = *self.seen_again.lock();
        !*self.is_away.lock() && seen_again.is_some_and(|since| since.elapsed() < OUTAGE_IS_FOUND)
    }

    /// Whoever follows something finds it out for itself.
    fn set_back(&self) {
        let mut told = self.set_back.lock();
        if told.is_some_and(|told| told.elapsed() < SET_BACK_IS_FOUND) {
            return;
        }
        *told = Some(Instant::now());
        let text =
            "the shared store has lost data: reading it again, and writing the keys of this host again";
        self.reporter.warning(text);
    }

    fn has_namesake(&self, namespace: &str) {
        let text = format!(
            "another process with the name of this host is a candidate for {namespace} too: give each host its own name with `--hostname`"
        );
        self.reporter.warning(visible(&text));
    }

    fn may_not_decide(&self) {
        let text = "this host is not allowed to decide elections: a host that is must be a candidate too";
        self.reporter.say(Importance::Info, text);
    }

    fn is_undecided(&self, namespace: &str) -> bool {
        self.undecided.lock().contains(namespace)
    }

    fn undecided(&self, namespace: &str) {
        if self.undecided.lock().insert(namespace.to_owned()) {
            let text = format!(
                "no host has decided the election of {namespace}: a host with the right to decide must be a candidate"
            );
            self.reporter.warning(visible(&text));
        }
    }

    fn decided(&self, namespace: &str) {
        self.undecided.lock().remove(namespace);
    }

    /// Something that others encrypted cannot be read here. It may be, when they have seen this host's key.
    fn unreadable(&self, key: &Key, why: &Unreadable) {
        if self.unreadable.lock().insert(key.clone()) {
            self.reporter
                .warning(visible(&format!("{key} cannot be read: {why}")));
        }
    }
}

impl SharedWorld {
    /// The host `hostname` of those that share a store. Where it has no key, secrets are not encrypted. `kinds` are the kinds of resources that
    /// there are; `while_away` says what programs do while the store is away.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn new(
        store: Arc<dyn Store>,
        hostname: &str,
        key: Option<HostKey>,
        kinds: impl IntoIterator<Item = String>,
        while_away: WhileAway,
        reporter: Reporter,
    ) -> io::Result<SharedWorld> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("store")
            .enable_all()
            .build()?;
        Ok(SharedWorld {
            member: Arc::new(Member {
                store,
                hostname: hostname.to_owned(),
                key,
                own_exports: tokio::sync::Mutex::default(),
                mirrors: Mutex::default(),
                waits: while_away.waits,
                memories: while_away
                    .remembered
                    .map(|(directory, committer)| Memories::new(directory, committer)),
                standing: Mutex::default(),
                standing_changed: tokio::sync::watch::Sender::new(()),
                telling: Arc::new(Telling {
                    reporter,
                    is_away: Mutex::default(),
                    seen_again: Mutex::default(),
                    has_reported_recall: Mutex::default(),
                    has_reported_loss: Mutex::default(),
                    set_back: Mutex::default(),
                    undecided: Mutex::default(),
                    unreadable: Mutex::default(),
                }),
                runtime: Some(runtime),
            }),
            kinds: kinds.into_iter().collect(),
        })
    }

    /// The host `hostname` of those that share a directory of this machine: `PREFIX/world`, which is made with the first thing in it.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn on_one_machine(
        directory: AbsolutePath,
        hostname: &str,
        host: &Host,
        kinds: impl IntoIterator<Item = String>,
        reporter: Reporter,
    ) -> io::Result<SharedWorld> {
        let store = Arc::new(FileStore::new(directory, &host.watches));
        SharedWorld::new(store, hostname, None, kinds, WhileAway::waiting(), reporter)
    }

    /// Tells all hosts the key of this one, so that secrets can be encrypted to it.
    pub(crate) fn publish_key(&self) {
        self.member.publish_key();
    }
}

impl Member {
    fn runtime(&self) -> &tokio::runtime::Handle {
        let runtime = self.runtime.as_ref().expect("it is there until this is dropped");
        runtime.handle()
    }

    /// Asks the store, where connections live as long as this does.
    async fn ask<T: Send + 'static>(
        &self,
        question: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let answer = self.runtime().spawn(question).await;
        answer.unwrap_or_else(|ended| {
            Err(StoreError::Refused {
                reason: ended.to_string().into(),
            })
        })
    }

    /// A selection as it is followed: the same one for all who look at it.
    fn mirror(self: &Arc<Self>, selection: Selection) -> Arc<Mirror> {
        let mut mirrors = self.mirrors.lock();
        if let Some(mirror) = mirrors.get(&selection).and_then(Weak::upgrade) {
            return mirror;
        }
        mirrors.retain(|_, mirror| mirror.strong_count() > 0);
        let mirror = Arc::new(Mirror::begin(
            self.runtime(),
            self.store.clone(),
            selection.clone(),
            self.memory(&selection),
            self.telling.clone(),
        ));
        mirrors.insert(selection, Arc::downgrade(&mirror));
        mirror
    }
}

impl Member {
    /// The memory of a selection that programs read. One that only kinds follow has none.
    fn memory(&self, selection: &Selection) -> Option<Memory> {
        let text = match selection {
            Selection::Key(key) => key.as_str(),
            Selection::Prefix(prefix) => prefix,
        };
        let read = [
            strings::STRINGS,
            strings::HOST_STRINGS,
            exports::EXPORTED,
            elections::SCHEDULES,
        ];
        let is_read = read.iter().any(|above| text.starts_with(above));
        let memories = self.memories.as_ref().filter(|_| is_read)?;
        Some(memories.of(selection))
    }
}

/// An age in its largest unit.
fn shown_age(age: Duration) -> String {
    let seconds = age.as_secs();
    let units = [(86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second")];
    let (count, unit) = units
        .into_iter()
        .map(|(length, unit)| (seconds / length, unit))
        .find(|(count, _)| *count > 0)
        .unwrap_or((0, "second"));
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {unit}{plural}")
}

impl Drop for Member {
    fn drop(&mut self) {
        // It may be dropped by a task, which must not wait for others to end.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// What the processes of this machine share, in a directory. What others write is noticed as long as the hub lives.
pub fn store_of_one_machine(directory: AbsolutePath, watches: &WatchHub) -> Arc<dyn Store> {
    Arc::new(FileStore::new(directory, watches))
}

/// The failure that an error of the store is.
fn failed(attempted: &'static str, what: impl std::fmt::Display, error: StoreError) -> Failure {
    Failure::new(attempted).on(what).because(error)
}
