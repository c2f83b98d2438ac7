//! Which files were read and found right, so that an unchanged one is not read again.

use super::{Replaced, Stamp, Timestamp};
use crate::sync::Mutex;
use rustc_hash::FxHashMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// How old a change must be at least, in milliseconds, before equal times prove equal contents.
///
/// File systems stamp with the kernel's tick (at most 10 ms); two changes within one tick look the same.
const SETTLED: i64 = 50;
/// The same where times have no fraction of a second, as on FAT or some network file systems.
const SETTLED_WITHOUT_FRACTION: i64 = 3_000;

/// How long an unchanged stamp is believed. A file that somebody has mapped changes without any.
const BELIEVED: Duration = Duration::from_secs(10 * 60);

/// Remembers, by path, the [`Stamp`] that a file had when its contents were last compared by this process, and
/// with what.
///
/// The second check that our own repair causes costs one `statx`, as does every later one of a file that nobody
/// touched. The change time decides: a user program can set the modification time back, but not that.
///
/// A stamp whose change time lies too close to the moment of reading is not believed, because another write in the
/// same clock tick would not show in it. Such a file is simply read once more. And none is believed for long, because
/// writes through a mapping show in none.
#[derive(Debug)]
pub struct VerifiedFiles {
    believed: Duration,
    files: Mutex<FxHashMap<Box<Path>, Verified>>,
}

impl Default for VerifiedFiles {
    fn default() -> Self {
        Self::believing_for(BELIEVED)
    }
}

#[derive(Debug, Clone, Copy)]
struct Verified {
    stamp: Stamp,
    wanted: u64,
    since: Instant,
}

impl VerifiedFiles {
    /// Nothing is known.
    pub fn new() -> Self {
        Self::default()
    }

    /// Nothing is known, and what will be is believed for so long.
    pub fn believing_for(believed: Duration) -> Self {
        Self {
            believed,
            files: Mutex::default(),
        }
    }

    /// Whether the file with this stamp was found to hold what `wanted` stands for.
    ///
    /// `wanted` is the caller's fingerprint of the contents it compares with.
    pub fn holds(&self, path: &Path, stamp: Stamp, wanted: u64) -> bool {
        let files = self.files.lock();
        files.get(path).is_some_and(|known| {
            known.stamp == stamp && known.wanted == wanted && known.since.elapsed() < self.believed
        })
    }

    /// Remembers that the contents were compared and are as wanted.
    ///
    /// `stamp` must have been taken *before* reading, `now` is the time at which reading began.
    pub fn record(&self, path: &Path, stamp: Stamp, wanted: u64, now: Timestamp) {
        let mut files = self.files.lock();
        if is_settled(stamp, now) {
            let since = Instant::now();
            files.insert(path.into(), Verified { stamp, wanted, since });
        } else {
            files.remove(path);
        }
    }

    /// Remembers what was just written.
    pub fn record_written(&self, path: &Path, replaced: &Replaced, wanted: u64) {
        let mut files = self.files.lock();
        if replaced.is_proof {
            let stamp = replaced.stat.stamp();
            let since = Instant::now();
            files.insert(path.into(), Verified { stamp, wanted, since });
        } else {
            files.remove(path);
        }
    }

    /// Forgets one file, when its resource goes.
    pub fn forget(&self, path: &Path) {
        self.files.lock().remove(path);
    }
}

fn is_settled(stamp: Stamp, now: Timestamp) -> bool {
    let whole_seconds = stamp.changed.nanoseconds == 0 && stamp.modified.nanoseconds == 0;
    let limit = if whole_seconds {
        SETTLED_WITHOUT_FRACTION
    } else {
        SETTLED
    };
    now.milliseconds_since(stamp.changed) >= limit
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(changed: Timestamp) -> Stamp {
        Stamp {
            device: 1,
            inode: 2,
            size: 3,
            modified: changed,
            changed,
        }
    }

    #[test]
    fn a_file_changed_in_the_tick_of_its_reading_is_not_believed() {
        let files = VerifiedFiles::new();
        let changed = Timestamp {
            seconds: 100,
            nanoseconds: 990_000_000,
        };
        let soon = Timestamp {
            seconds: 101,
            nanoseconds: 0,
        };
        files.record(Path::new("/a"), stamp(changed), 7, soon);
        assert!(!files.holds(Path::new("/a"), stamp(changed), 7));

        let later = Timestamp {
            seconds: 101,
            nanoseconds: 90_000_000,
        };
        files.record(Path::new("/a"), stamp(changed), 7, later);
        assert!(files.holds(Path::new("/a"), stamp(changed), 7));
        assert!(
            !files.holds(Path::new("/a"), stamp(changed), 8),
            "other contents are wanted now"
        );
    }

    #[test]
    fn an_unchanged_file_is_not_believed_for_ever() {
        let changed = Timestamp {
            seconds: 100,
            nanoseconds: 0,
        };
        let later = Timestamp {
            seconds: 200,
            nanoseconds: 0,
        };
        for (believed, holds) in [(Duration::ZERO, false), (Duration::from_secs(3600), true)] {
            let files = VerifiedFiles::believing_for(believed);
            files.record(Path::new("/a"), stamp(changed), 7, later);
            assert_eq!(
                files.holds(Path::new("/a"), stamp(changed), 7),
                holds,
                "{believed:?}"
            );
        }
    }

    #[test]
    fn times_without_fractions_need_seconds_to_settle() {
        let files = VerifiedFiles::new();
        let changed = Timestamp {
            seconds: 100,
            nanoseconds: 0,
        };
        files.record(
            Path::new("/a"),
            stamp(changed),
            7,
            Timestamp {
                seconds: 102,
                nanoseconds: 0,
            },
        );
        assert!(!files.holds(Path::new("/a"), stamp(changed), 7));
        files.record(
            Path::new("/a"),
            stamp(changed),
            7,
            Timestamp {
                seconds: 103,
                nanoseconds: 0,
            },
        );
        assert!(files.holds(Path::new("/a"), stamp(changed), 7));
    }
}
