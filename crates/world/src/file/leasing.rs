//! Leases: files that are locked by those who hold them.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;
use setpoint_host::files::{AbsolutePath, Entry};
use setpoint_host::start_of_the_machine;
use setpoint_host::sync::Mutex;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::Shared;
use super::requests::Question;
use super::tables::{self, Held};
use crate::lease::LeaseControl;
use crate::{Lease, LeaseId, StoreError};

/// Until when a lease lives that nobody holds: milliseconds of the monotonic clock, and of which start of the machine.
pub(super) type Deadline = (u64, u128);

/// Deadline of a lease that a running process holds.
pub(super) const NO_DEADLINE: Deadline = (u64::MAX, 0);

/// The current time, and the boot that it belongs to.
pub(super) struct Clock {
    now: u64,
    start: u128,
}

impl Clock {
    pub(super) fn now() -> Clock {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
        let start = start_of_the_machine().unwrap_or_default().replace('-', "");
        Clock {
            now: seconds * 1_000 + u64::try_from(now.tv_nsec).unwrap_or(0) / 1_000_000,
            // Where the kernel does not say, all starts are one.
            start: u128::from_str_radix(&start, 16).unwrap_or(0),
        }
    }

    /// So many milliseconds from now.
    pub(super) fn deadline(&self, milliseconds: u64) -> Deadline {
        let at = self.now.saturating_add(milliseconds).min(u64::MAX - 1);
        (at, self.start)
    }
}

/// The leases that this store holds, and the files of all.
pub(super) struct Leases {
    directory: AbsolutePath,
    own: Mutex<BTreeMap<LeaseId, Weak<Grip>>>,
}

/// A lease that is held, until this is dropped.
pub(super) struct Grip {
    file: File,
    is_lost: watch::Sender<bool>,
}

impl fmt::Debug for Grip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Grip")
    }
}

impl Drop for Grip {
    fn drop(&mut self) {
        // A command that is being started has a copy of the descriptor for a moment, so closing ours is not enough.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

impl Leases {
    pub(super) fn in_directory(directory: AbsolutePath) -> Leases {
        Leases {
            directory,
            own: Mutex::default(),
        }
    }

    fn path(&self, id: LeaseId) -> AbsolutePath {
        self.directory.join(id.to_string())
    }

    /// Holds a lease that is new; none if somebody holds one of that number.
    pub(super) fn hold(&self, id: LeaseId) -> io::Result<Option<Arc<Grip>>> {
        Entry::create_directories(&self.directory, 0o700, 0o700).map_err(io::Error::other)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::open(self.path(id).as_path(), flags, Mode::RUSR | Mode::WUSR)?;
        match flock(&opened, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        let grip = Arc::new(Grip {
            file: File::from(opened),
            is_lost: watch::Sender::new(false),
        });
        self.own.lock().insert(id, Arc::downgrade(&grip));
        Ok(Some(grip))
    }

    /// Holder of a lease that ends at a deadline.
    pub(super) fn state(&self, id: LeaseId, (at, start): Deadline, clock: &Clock) -> Held {
        if self.own.lock().get(&id).and_then(Weak::upgrade).is_some() {
            return Held::Here;
        }
        if at == NO_DEADLINE.0 || start != clock.start {
            return match self.is_held(id) {
                true => Held::Elsewhere,
                false => Held::ByNobody,
            };
        }
        match at.checked_sub(clock.now) {
            None | Some(0) => Held::Over,
            Some(left) => Held::Until(left),
        }
    }

    /// Whether somebody has a lease's file locked. Several may look at a time.
    fn is_held(&self, id: LeaseId) -> bool {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(opened) = rustix::fs::open(self.path(id).as_path(), flags, Mode::empty()) else {
            return false;
        };
        flock(&opened, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK)
    }

    /// A lease is over: its holder is told, and its file goes.
    pub(super) fn ended(&self, id: LeaseId) {
        if let Some(grip) = self.own.lock().remove(&id).and_then(|grip| grip.upgrade()) {
            grip.is_lost.send_replace(true);
        }
        // What stays there means nothing.
        let _ = Entry::at(&self.path(id)).and_then(|file| file.remove_file());
    }

    /// Tells the holders of all leases but those that there are.
    pub(super) fn lose_but(&self, is_there: impl Fn(LeaseId) -> tables::Result<bool>) -> tables::Result<()> {
        let mut own = self.own.lock();
        let mut lost = Vec::new();
        for (id, grip) in own.iter() {
            if grip.strong_count() == 0 || !is_there(*id)? {
                lost.push(*id);
            }
        }
        for id in lost {
            if let Some(grip) = own.remove(&id).and_then(|grip| grip.upgrade()) {
                grip.is_lost.send_replace(true);
            }
        }
        Ok(())
    }
}

/// A lease that somebody of this process holds from now on.
pub(super) fn lease(shared: &Arc<Shared>, id: LeaseId, time_to_live: Duration, grip: Arc<Grip>) -> Lease {
    let lost = grip.is_lost.subscribe();
    let control = Control {
        shared: shared.clone(),
        id,
        grip: Some(grip),
        looking: tokio::spawn(look(shared.clone())),
    };
    Lease::new(id, time_to_live, lost, control)
}

struct Control {
    shared: Arc<Shared>,
    id: LeaseId,
    /// Until it is dropped.
    grip: Option<Arc<Grip>>,
    /// Notices when the lease is no more.
    looking: JoinHandle<()>,
}

/// Looks whenever something was written. Whoever looks finds out which leases are gone.
async fn look(shared: Arc<Shared>) {
    let mut changed = shared.changed.subscribe();
    loop {
        changed.mark_unchanged();
        // Where it cannot be looked at now, the lease is not gone for that.
        let _ = shared.arm();
        let _ = shared.ask(Question::Read(Vec::new())).await;
        shared.stirred(&mut changed).await;
    }
}

#[async_trait]
impl LeaseControl for Control {
    async fn revoke(&self) -> Result<(), StoreError> {
        self.shared.ask(Question::Revoke(self.id)).await.map(drop)
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.looking.abort();
        drop(self.grip.take());
        // That nobody holds it any more is noted by whoever looks next.
        self.shared.wake();
    }
}
