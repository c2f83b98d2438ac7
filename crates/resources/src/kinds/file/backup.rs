//! What a resource keeps of what it replaces or removes: copies in a directory, below the path that they had, with the time at the end of their name. Not
//! one of mgmt's parameters.
//!
//! ```text
//! /etc/motd  ──▶  BACKUP/etc/motd.2026-11-23T14:20:01.123456Z
//! ```
//!
//! A copy is whole before what it is of goes. Of each path the newest ones stay.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use setpoint_engine::{Attempting, Failure};
use setpoint_host::files::{AbsolutePath, Content, Directory, Entry, Replace, Stat, own_uid, same_content};

use super::run::Run;

/// So many copies of each path stay.
const KEPT: usize = 10;

/// Deeper trees are not copied.
const DEEPEST: usize = 256;

/// How a time is written: in UTC, so that names sort by age.
const TIME: &str = "%Y-%m-%dT%H:%M:%S%.6fZ";
/// How many bytes that has.
const TIME_LENGTH: usize = "2026-11-23T14:20:01.123456Z".len();

impl Run<'_, '_> {
    /// Copies what is at an entry into the directory of backups, if there is one. What cannot be copied must not go.
    pub(super) fn back_up(&self, entry: &Entry) -> Result<(), Failure> {
        let Some(backup) = &*self.file.backup else {
            return Ok(());
        };
        let attempted = "keep a copy of";
        let path = entry.path();
        let Some(stat) = entry.stat().attempting(attempted, path.display())? else {
            return Ok(());
        };
        let above = path.parent().unwrap_or(&path);
        let directory = above.strip_prefix("/").unwrap_or(above);
        let directory = backup.join(directory.as_os_str());
        Entry::create_directories(&directory, 0o700, 0o700).attempting(attempted, path.display())?;
        let copies = Copies::of(entry.name(), &directory)?;
        // What is tried again and again must not push out what was there before.
        if copies.newest_holds(entry, &stat) {
            return Ok(());
        }
        let time = jiff::Timestamp::now().strftime(TIME).to_string();
        let name = [entry.name().as_bytes(), b".", time.as_bytes()].concat();
        let target = directory.join(OsStr::from_bytes(&name));
        let mut waiting = Vec::new();
        copy(entry, &stat, &target, &mut waiting, 0)?;
        for replaced in self.apply.handle().committer().replace_many(waiting) {
            replaced.attempting(attempted, path.display())?;
        }
        copies.remove_old()
    }
}

/// Copies one thing, and everything below it. Files are asked for in `waiting`.
fn copy(
    from: &Entry,
    stat: &Stat,
    to: &AbsolutePath,
    waiting: &mut Vec<Replace>,
    depth: usize,
) -> Result<(), Failure> {
    let attempted = "keep a copy of";
    let path = from.path();
    let owners = (own_uid() == 0).then_some((stat.uid, stat.gid));
    let (owner, group) = (owners.map(|owners| owners.0), owners.map(|owners| owners.1));
    if depth > DEEPEST {
        let cause = format!("it is more than {DEEPEST} directories deep");
        return Err(Failure::new(attempted).on(path.display()).because(cause));
    }
    if stat.is_regular() {
        let open = from.open().attempting(attempted, path.display())?;
        let request = Replace::new(to.clone(), Content::Copy(open));
        waiting.push(request.mode(stat.mode).owner(owner, group));
    } else if stat.is_link() {
        let text = from.read_link().attempting(attempted, path.display())?;
        waiting.push(Replace::link(to.clone(), text.unwrap_or_default()).owner(owner, group));
    } else if stat.is_directory() {
        let made = Entry::at(to).attempting(attempted, path.display())?;
        made.create_directory(0o700)
            .attempting(attempted, path.display())?;
        let inner = Arc::new(from.open_directory().attempting(attempted, path.display())?);
        for listed in inner.list().attempting(attempted, path.display())? {
            let entry = inner.entry(&*listed.name);
            // What has gone meanwhile need not be kept.
            if let Some(stat) = entry.stat().attempting(attempted, path.display())? {
                copy(&entry, &stat, &to.join(&listed.name), waiting, depth + 1)?;
            }
        }
    }
    // Of pipes, sockets and devices there is nothing to keep.
    Ok(())
}

/// The copies of what has a name in a directory.
struct Copies {
    directory: Arc<Directory>,
    /// The oldest first.
    names: Vec<OsString>,
}

impl Copies {
    fn of(name: &OsStr, directory: &AbsolutePath) -> Result<Copies, Failure> {
        let attempted = "look for copies in";
        let open = Arc::new(Directory::open(directory).attempting(attempted, directory)?);
        let is_copy = |found: &OsStr| {
            let time = found.as_bytes().strip_prefix(name.as_bytes());
            let time = time.and_then(|rest| rest.strip_prefix(b"."));
            time.is_some_and(|time| {
                time.len() == TIME_LENGTH && time.ends_with(b"Z") && time[0].is_ascii_digit()
            })
        };
        let listed = open.list().attempting(attempted, directory)?;
        // They are sorted by name, so by time.
        let names = listed.into_iter().map(|listed| listed.name);
        Ok(Copies {
            names: names.filter(|name| is_copy(name)).collect(),
            directory: open,
        })
    }

    /// Whether the newest one has the contents of a file.
    fn newest_holds(&self, entry: &Entry, stat: &Stat) -> bool {
        let Some(newest) = self.names.last().filter(|_| stat.is_regular()) else {
            return false;
        };
        let opened = self
            .directory
            .entry(newest)
            .open()
            .and_then(|copy| Ok((copy, entry.open()?)));
        opened.is_ok_and(|(mut copy, mut file)| {
            let same_mode = copy.stat().mode == file.stat().mode;
            same_mode && same_content(&mut copy, &mut file).unwrap_or(false)
        })
    }

    /// Removes all but the newest, one more of which there is since these were looked for.
    fn remove_old(self) -> Result<(), Failure> {
        let too_many = (self.names.len() + 1).saturating_sub(KEPT);
        for old in self.names.into_iter().take(too_many) {
            let old = self.directory.entry(old);
            let path = old.path();
            old.remove_tree()
                .attempting("remove the old copy", path.display())?;
        }
        Ok(())
    }
}
