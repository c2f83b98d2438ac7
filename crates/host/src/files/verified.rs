//! Which files were read and found right, so that an unchanged one is not read again.

use super::{Replaced, Stamp, Timestamp};
use crate::sync::Mutex;
use rustc_hash::FxHashMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How old a change must be at least, in milliseconds, before equal times prove equal contents.
///
/// File systems stamp with the kernel's tick (at most 10 ms); two changes within one tick look the same.
const SETTLED: i64 = 50;
/// The same where times have no fraction of a second, as on FAT or some network file systems.
const SETTLED_WITHOUT_FRACTION: i64 = 3_000;
/// How long an unchanged stamp is believed. A file that somebody has mapped changes without any.
const BELIEVED: Duration = Duration::from_secs(10 * 60);
/// So many paths whose resources have gone may always be remembered, and as many as others.
const RELEASED: usize = 1_000;

/// Stands for contents that a file is compared with: two different ones are never found with the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(u128);

impl Fingerprint {
    /// Of a cryptographic digest of at least 16 bytes, whose first ones count.
    pub fn of_digest(digest: &[u8]) -> Self {
        let first = digest.iter().take(16);
        Self(first.fold(0, |all, byte| all << 8 | u128::from(*byte)))
    }
}

/// Remembers, by path, the [`Stamp`] that a file had when its contents were last compared, and with what.
///
/// The check of a file that nobody touched costs one `statx`. The change time decides: a user program can set the
/// modification time back, but not that.
///
/// A stamp whose change time lies too close to the moment of reading is not believed, because another write in the
/// same clock tick would not show in it. Such a file is simply read once more. And none is believed for long, because
/// writes through a mapping show in none.
///
/// What is remembered outlives the process ([`VerifiedFiles::to_bytes`]), but not the start of the machine: after a loss
/// of power a file may have its times without its last contents.
#[derive(Debug)]
pub struct VerifiedFiles {
    believed: Duration,
    known: Mutex<Known>,
}

impl Default for VerifiedFiles {
    fn default() -> Self {
        Self::believing_for(BELIEVED)
    }
}

#[derive(Debug, Default)]
struct Known {
    files: FxHashMap<Box<Path>, Verified>,
    /// How many of them are released.
    released: usize,
    /// Whether something is different from what was read from disk.
    changed: bool,
}

#[derive(Debug, Clone, Copy)]
struct Verified {
    stamp: Stamp,
    wanted: Fingerprint,
    /// When that was found, in the time since the start of the machine.
    since: Duration,
    /// Whether it had no access list either. One that is added changes the stamp.
    no_access_list: bool,
    interest: Interest,
}

impl Verified {
    fn is_recent(&self, believed: Duration) -> bool {
        let age = since_start().checked_sub(self.since);
        age.is_some_and(|age| age < believed)
    }
}

/// The time since the start of the machine, sleep included. Unlike the clock on the wall nobody sets it.
fn since_start() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let (seconds, nanoseconds) = (u64::try_from(now.tv_sec), u32::try_from(now.tv_nsec));
    Duration::new(seconds.unwrap_or(0), nanoseconds.unwrap_or(0))
}

/// Who asks about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Interest {
    /// An earlier process did.
    Earlier,
    /// A resource does.
    Present,
    /// A resource did that has gone.
    Released,
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
            known: Mutex::default(),
        }
    }

    /// Whether the file with this stamp was found to hold what `wanted` stands for, the caller's fingerprint of the contents
    /// that it compares with.
    pub fn holds(&self, path: &Path, stamp: Stamp, wanted: Fingerprint) -> bool {
        let mut known = self.known.lock();
        let Some(file) = known.files.get_mut(path) else {
            return false;
        };
        let interest = std::mem::replace(&mut file.interest, Interest::Present);
        let holds = file.stamp == stamp && file.wanted == wanted && file.is_recent(self.believed);
        known.released -= usize::from(interest == Interest::Released);
        holds
    }

    /// Remembers that the contents were compared and are as wanted.
    ///
    /// `stamp` must have been taken *before* reading, `now` is the time at which reading began.
    pub fn record(&self, path: &Path, stamp: Stamp, wanted: Fingerprint, now: Timestamp) {
        self.put(path, is_settled(stamp, now).then_some((stamp, wanted)));
    }

    /// Remembers what was just written, perhaps with the wish that it has no access list.
    pub fn record_written(
        &self,
        path: &Path,
        replaced: &Replaced,
        wanted: Fingerprint,
        without_access_list: bool,
    ) {
        self.put(path, replaced.is_proof.then(|| (replaced.stat.stamp(), wanted)));
        if without_access_list {
            self.record_no_access_list(path, replaced.stat.stamp());
        }
    }

    fn put(&self, path: &Path, found: Option<(Stamp, Fingerprint)>) {
        let mut known = self.known.lock();
        known.changed = true;
        let old = match found {
            Some((stamp, wanted)) => known.files.insert(
                path.into(),
                Verified {
                    stamp,
                    wanted,
                    since: since_start(),
                    no_access_list: false,
                    interest: Interest::Present,
                },
            ),
            None => known.files.remove(path),
        };
        known.released -= usize::from(old.is_some_and(|old| old.interest == Interest::Released));
        if known.released > RELEASED.max(known.files.len() / 2) {
            known.files.retain(|_, file| file.interest != Interest::Released);
            known.released = 0;
        }
    }

    /// Whether the file with this stamp was found to have no access list.
    pub fn has_no_access_list(&self, path: &Path, stamp: Stamp) -> bool {
        let known = self.known.lock();
        let file = known.files.get(path);
        file.is_some_and(|file| file.stamp == stamp && file.no_access_list)
    }

    /// Remembers that a file whose contents are known has no access list. `stamp` must have been taken before that was
    /// looked for.
    pub fn record_no_access_list(&self, path: &Path, stamp: Stamp) {
        let mut known = self.known.lock();
        if let Some(file) = known.files.get_mut(path)
            && file.stamp == stamp
            && !std::mem::replace(&mut file.no_access_list, true)
        {
            known.changed = true;
        }
    }

    /// Forgets one file, because it is gone.
    pub fn forget(&self, path: &Path) {
        self.put(path, None);
    }

    /// The resource that asked about this file has gone. Another one may come, or another process.
    pub fn release(&self, path: &Path) {
        let mut known = self.known.lock();
        if let Some(file) = known.files.get_mut(path)
            && std::mem::replace(&mut file.interest, Interest::Released) != Interest::Released
        {
            known.released += 1;
        }
    }

    /// Everything that resources of this process have asked about, for a later process; nothing if that is what was read.
    /// `start` says since when the machine runs.
    pub fn to_bytes(&self, start: &str) -> Option<Vec<u8>> {
        let known = self.known.lock();
        let is_kept = |file: &Verified| file.interest != Interest::Earlier;
        if !known.changed && known.files.values().all(is_kept) {
            return None;
        }
        let mut files: Vec<_> = known.files.iter().filter(|(_, file)| is_kept(file)).collect();
        files.sort_unstable_by_key(|(path, _)| *path);
        let mut bytes = Vec::with_capacity(128 * files.len() + 64);
        put_text(&mut bytes, start.as_bytes());
        for (path, file) in files {
            put_text(&mut bytes, path.as_os_str().as_bytes());
            let stamp = file.stamp;
            for number in [stamp.device, stamp.inode, stamp.size] {
                bytes.extend_from_slice(&number.to_le_bytes());
            }
            for time in [stamp.modified, stamp.changed] {
                bytes.extend_from_slice(&time.seconds.to_le_bytes());
                bytes.extend_from_slice(&time.nanoseconds.to_le_bytes());
            }
            bytes.extend_from_slice(&file.wanted.0.to_le_bytes());
            let since = u64::try_from(file.since.as_millis()).unwrap_or(0);
            bytes.extend_from_slice(&since.to_le_bytes());
            bytes.push(u8::from(file.no_access_list));
        }
        Some(bytes)
    }

    /// Takes in what an earlier process has written, if the machine has run since then. What cannot be read is not known.
    pub fn take_in(&self, bytes: &[u8], start: &str) {
        let mut reader = Reader(bytes);
        let mut known = self.known.lock();
        if reader.text() != Some(start.as_bytes()) {
            known.changed = true;
            return;
        }
        while !reader.0.is_empty() {
            let Some((path, verified)) = reader.verified() else {
                // Half of it is as good as none.
                *known = Known {
                    changed: true,
                    ..Known::default()
                };
                return;
            };
            known.files.entry(path).or_insert(verified);
        }
    }
}

fn put_text(bytes: &mut Vec<u8>, text: &[u8]) {
    bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
    bytes.extend_from_slice(text);
}

/// What is left to be read.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    fn number(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(text)
    }

    fn time(&mut self) -> Option<Timestamp> {
        Some(Timestamp {
            seconds: i64::from_le_bytes(self.array()?),
            nanoseconds: u32::from_le_bytes(self.array()?),
        })
    }

    fn verified(&mut self) -> Option<(Box<Path>, Verified)> {
        let path = PathBuf::from(OsString::from_vec(self.text()?.to_vec())).into_boxed_path();
        let stamp = Stamp {
            device: self.number()?,
            inode: self.number()?,
            size: self.number()?,
            modified: self.time()?,
            changed: self.time()?,
        };
        let verified = Verified {
            stamp,
            wanted: Fingerprint(u128::from_le_bytes(self.array()?)),
            since: Duration::from_millis(self.number()?),
            no_access_list: self.array::<1>()? == [1],
            interest: Interest::Earlier,
        };
        Some((path, verified))
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

    fn contents(number: u8) -> Fingerprint {
        Fingerprint::of_digest(&[number; 16])
    }

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
        files.record(Path::new("/a"), stamp(changed), contents(7), soon);
        assert!(!files.holds(Path::new("/a"), stamp(changed), contents(7)));

        let later = Timestamp {
            seconds: 101,
            nanoseconds: 90_000_000,
        };
        files.record(Path::new("/a"), stamp(changed), contents(7), later);
        assert!(files.holds(Path::new("/a"), stamp(changed), contents(7)));
        assert!(
            !files.holds(Path::new("/a"), stamp(changed), contents(8)),
            "other contents are wanted now"
        );
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
            contents(7),
            Timestamp {
                seconds: 102,
                nanoseconds: 0,
            },
        );
        assert!(!files.holds(Path::new("/a"), stamp(changed), contents(7)));
        files.record(
            Path::new("/a"),
            stamp(changed),
            contents(7),
            Timestamp {
                seconds: 103,
                nanoseconds: 0,
            },
        );
        assert!(files.holds(Path::new("/a"), stamp(changed), contents(7)));
    }

    #[test]
    fn an_unchanged_file_is_not_believed_for_ever() {
        let changed = Timestamp {
            seconds: 100,
            nanoseconds: 5,
        };
        let later = Timestamp {
            seconds: 102,
            nanoseconds: 0,
        };
        for (believed, holds) in [(Duration::ZERO, false), (Duration::from_secs(3600), true)] {
            let files = VerifiedFiles::believing_for(believed);
            files.record(Path::new("/a"), stamp(changed), contents(7), later);
            let found = files.holds(Path::new("/a"), stamp(changed), contents(7));
            assert_eq!(found, holds, "{believed:?}");
        }
    }

    #[test]
    fn what_is_known_outlives_the_process_but_not_the_start_of_the_machine() {
        let time = |seconds| Timestamp {
            seconds,
            nanoseconds: 5,
        };
        let files = VerifiedFiles::new();
        let (a, b) = (Path::new("/a"), Path::new("/b"));
        files.record(a, stamp(time(100)), contents(7), time(200));
        files.record_no_access_list(a, stamp(time(100)));
        files.record(b, stamp(time(100)), contents(8), time(200));
        files.release(b);
        let bytes = files.to_bytes("this start").unwrap();

        let later = VerifiedFiles::new();
        later.take_in(&bytes, "this start");
        assert!(later.holds(a, stamp(time(100)), contents(7)));
        assert!(later.has_no_access_list(a, stamp(time(100))));
        assert!(!later.has_no_access_list(b, stamp(time(100))));
        assert!(later.holds(b, stamp(time(100)), contents(8)));
        assert!(!later.holds(b, stamp(time(101)), contents(8)));
        assert_eq!(later.to_bytes("this start"), None, "nothing is different");

        // What nobody asks about any more is left out.
        let third = VerifiedFiles::new();
        third.take_in(&bytes, "this start");
        assert!(third.holds(a, stamp(time(100)), contents(7)));
        let shorter = third.to_bytes("this start").unwrap();
        assert!(shorter.len() < bytes.len());

        for (bytes, start) in [
            (&bytes[..], "another start"),
            (&bytes[..bytes.len() - 1], "this start"),
            (b"nonsense that is long enough", "this start"),
            (b"", "this start"),
        ] {
            let empty = VerifiedFiles::new();
            empty.take_in(bytes, start);
            assert!(!empty.holds(a, stamp(time(100)), contents(7)));
        }
    }
}
