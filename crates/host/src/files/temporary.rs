//! Temporary files beside the ones they will replace.

use super::{Directory, Entry, FileError, Stat, is_trusted_owner};
use crate::sync::Mutex;
use rustc_hash::FxHashSet;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// What the name of every temporary file of this program begins with. Globs and watches pass over them; purges only over
/// those that are being made just now, since anybody can use the name.
pub const TEMPORARY_PREFIX: &str = ".setpoint-";

/// Whether this is the name of a temporary file of this program.
pub fn is_temporary(name: impl AsRef<OsStr>) -> bool {
    name.as_ref().as_bytes().starts_with(TEMPORARY_PREFIX.as_bytes())
}

/// The names of the temporary files that this process is making just now.
static IN_THE_MAKING: Mutex<FxHashSet<OsString>> =
    Mutex::new(FxHashSet::with_hasher(rustc_hash::FxBuildHasher));

/// Whether an entry is a temporary file that this process is making just now, or that another process of this program is.
///
/// Anybody can give a file such a name. Those of this process are known; one of another process must at least belong to
/// somebody who is trusted.
pub(super) fn is_in_the_making(directory: &Directory, name: &OsStr) -> bool {
    let Some(maker) = name.as_bytes().strip_prefix(TEMPORARY_PREFIX.as_bytes()) else {
        return false;
    };
    if IN_THE_MAKING.lock().contains(name) {
        return true;
    }
    let maker = std::str::from_utf8(maker).ok().and_then(Maker::parse);
    maker.is_some_and(|maker| maker != *Maker::own() && maker.is_alive())
        && Stat::of_entry(directory, name).is_ok_and(|stat| is_trusted_owner(stat.uid))
}

/// A new file, or link, under a temporary name; removed when dropped, unless it was renamed to where it belongs.
#[derive(Debug)]
pub(super) struct Temporary {
    directory: Arc<Directory>,
    name: OsString,
    /// The random part of the name.
    number: u64,
    /// Nothing for a link, and for a file that was closed to save descriptors.
    file: Option<File>,
    /// Which file it is, for one that is opened again. Nothing while it is open.
    closed: Option<Stat>,
    renamed: bool,
}

impl Temporary {
    /// Makes an empty file that nobody else can read.
    pub(super) fn create_file(directory: &Arc<Directory>) -> Result<Self, FileError> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let (name, number, file) =
            under_fresh_name(directory, |name| rustix::fs::openat(directory, name, flags, mode))?;
        Ok(Self {
            directory: Arc::clone(directory),
            name,
            number,
            file: Some(File::from(file)),
            closed: None,
            renamed: false,
        })
    }

    /// Makes a symbolic link.
    pub(super) fn create_link(directory: &Arc<Directory>, text: &Path) -> Result<Self, FileError> {
        let (name, number, ()) =
            under_fresh_name(directory, |name| rustix::fs::symlinkat(text, directory, name))?;
        Ok(Self {
            directory: Arc::clone(directory),
            name,
            number,
            file: None,
            closed: None,
            renamed: false,
        })
    }

    pub(super) fn directory(&self) -> &Arc<Directory> {
        &self.directory
    }

    /// What tells its name from those of this process's other temporary files; see [`number_of`].
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn entry(&self) -> Entry {
        self.directory.entry(&self.name)
    }

    /// The open file; opened again, for reading, if it was closed.
    pub(super) fn file(&mut self) -> Result<&mut File, FileError> {
        if self.file.is_none() {
            // The owner of the directory can put something else under the name, such as a pipe that never opens.
            let flags =
                OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let opened = rustix::fs::openat(&self.directory, &self.name, flags, Mode::empty())
                .map_err(|error| self.entry().failed("open", error))?;
            let stat = Stat::of_descriptor(&opened).map_err(|error| self.entry().failed("open", error))?;
            if self.closed.is_none_or(|made| !made.is_same_file(&stat)) {
                return Err(FileError::Exchanged {
                    attempted: "open",
                    path: self.entry().path(),
                });
            }
            self.file = Some(File::from(opened));
        }
        Ok(self.file.as_mut().expect("was opened just above"))
    }

    /// Gives the descriptor back; the name stays.
    pub(super) fn close(&mut self) {
        if let Some(file) = self.file.take() {
            self.closed = Stat::of_descriptor(&file).ok();
        }
    }

    /// Puts it in the place of `name`, in the same directory.
    pub(super) fn rename_to(&mut self, name: &OsStr) -> rustix::io::Result<()> {
        rustix::fs::renameat(&self.directory, &self.name, &self.directory, name)?;
        self.renamed = true;
        IN_THE_MAKING.lock().remove(&self.name);
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.renamed {
            // What cannot be removed now is swept away when this directory is written to by a later process.
            let _ = rustix::fs::unlinkat(&self.directory, &self.name, AtFlags::empty());
            IN_THE_MAKING.lock().remove(&self.name);
        }
    }
}

/// Removes the temporary files that processes which are no more have left in a directory.
pub(super) fn sweep(directory: &Directory) -> Result<(), FileError> {
    for listed in directory.list()? {
        let Some(maker) = listed.name.as_bytes().strip_prefix(TEMPORARY_PREFIX.as_bytes()) else {
            continue;
        };
        let abandoned = std::str::from_utf8(maker)
            .ok()
            .and_then(Maker::parse)
            .is_some_and(|maker| maker != *Maker::own() && !maker.is_alive());
        if abandoned {
            match rustix::fs::unlinkat(directory, &listed.name, AtFlags::empty()) {
                // Not worth failing a write for.
                Ok(()) | Err(_) => {}
            }
        }
    }
    Ok(())
}

fn under_fresh_name<T>(
    directory: &Directory,
    mut make: impl FnMut(&OsStr) -> rustix::io::Result<T>,
) -> Result<(OsString, u64, T), FileError> {
    for _ in 0..16 {
        let maker = Maker::own();
        // The standard library seeds each state from the system's randomness.
        let random = RandomState::new().build_hasher().finish();
        let name = OsString::from(format!(
            "{TEMPORARY_PREFIX}{:x}-{:x}-{random:016x}",
            maker.process, maker.started
        ));
        IN_THE_MAKING.lock().insert(name.clone());
        match make(&name) {
            Ok(made) => return Ok((name, random, made)),
            Err(error) => {
                IN_THE_MAKING.lock().remove(&name);
                if error != Errno::EXIST {
                    return Err(FileError::new("create a file in", directory.path(), error));
                }
            }
        }
    }
    Err(FileError::new("create a file in", directory.path(), Errno::EXIST))
}

/// The number in the name of a temporary file of this process; nothing for any other name.
pub(crate) fn number_of(name: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(name.strip_prefix(TEMPORARY_PREFIX.as_bytes())?).ok()?;
    if Maker::parse(text)? != *Maker::own() {
        return None;
    }
    u64::from_str_radix(text.rsplit('-').next()?, 16).ok()
}

/// Which process made a temporary file. The number alone could be another process's by now; with the time at which
/// it was started it is unique until the machine starts anew.
#[derive(Debug, PartialEq, Eq)]
struct Maker {
    process: u32,
    started: u64,
}

impl Maker {
    fn own() -> &'static Self {
        static OWN: OnceLock<Maker> = OnceLock::new();
        OWN.get_or_init(|| {
            let process = std::process::id();
            Self {
                process,
                started: started(process).unwrap_or(0),
            }
        })
    }

    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let process = u32::from_str_radix(parts.next()?, 16).ok()?;
        let started = u64::from_str_radix(parts.next()?, 16).ok()?;
        u64::from_str_radix(parts.next()?, 16).ok()?;
        parts.next().is_none().then_some(Self { process, started })
    }

    fn is_alive(&self) -> bool {
        started(self.process) == Some(self.started)
    }
}

/// When a process was started, in ticks since the machine was (`proc_pid_stat(5)`, field 22).
fn started(process: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let after_name = &stat[stat.rfind(')')? + 1..];
    after_name.split_ascii_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::AbsolutePath;

    #[test]
    fn what_replaces_a_closed_temporary_file_is_not_opened() {
        let place = tempfile::tempdir().expect("a directory for the test");
        let path = AbsolutePath::new(place.path()).expect("it is absolute");
        let directory = Arc::new(Directory::open(&path).expect("it is there"));
        let mut temporary = Temporary::create_file(&directory).expect("it can be made");
        temporary.close();
        temporary.file().expect("nothing has replaced it");
        temporary.close();
        let own = place.path().join(&temporary.name);
        std::fs::rename(&own, place.path().join("aside")).expect("it is there");
        // A pipe without a writer would never open.
        rustix::fs::mknodat(
            &directory,
            &temporary.name,
            rustix::fs::FileType::Fifo,
            Mode::RUSR,
            0,
        )
        .expect("a pipe can be made");
        let error = temporary.file().expect_err("it is another file");
        assert!(matches!(error, FileError::Exchanged { .. }), "{error}");
    }
}
