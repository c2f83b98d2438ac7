//! Copying a directory onto another one, and purging what nobody manages.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use setpoint_engine::{DriftValue, Failure, FailureReason};
use setpoint_host::files::{
    AbsolutePath, Content, Directory, Entry, Fate, FileType, OpenFile, Removal, Replace, Stat, Timestamp,
    is_temporary, same_content, umask,
};

use super::path;
use super::run::{Progress, READ_BY_OTHERS, Run, describe, extent, size_alone, source_fingerprint};
use crate::enclosing;
use crate::sorts::{EDITED_FILE, FILE};

/// Trees that are deeper are refused: each level costs descriptors.
const DEEPEST: usize = 200;
/// So many entries that cannot be copied are named.
const TOLD: usize = 5;
/// How many files are prepared before they are replaced together. Each holds its source open.
const BATCH: usize = 128;

/// A copy in progress.
struct Copying {
    /// Everything in the source, by path below it, and whether it is a directory.
    source: BTreeMap<PathBuf, bool>,
    waiting: Vec<Replace>,
    /// Entries that could not be copied. The rest is copied all the same.
    failed: Vec<Failure>,
    /// The directory that is copied to.
    destination: Stat,
}

impl Copying {
    /// Fails with what could not be copied.
    fn outcome(&mut self) -> Result<(), Failure> {
        let failed = std::mem::take(&mut self.failed);
        let [first, _, ..] = failed.as_slice() else {
            return failed.into_iter().next().map_or(Ok(()), Err);
        };
        let mut why = first.chain();
        for failure in failed[1..].iter().take(TOLD - 1) {
            why.push_str(&format!("; {}", failure.chain()));
        }
        if let Some(more @ 1..) = failed.len().checked_sub(TOLD) {
            why.push_str(&format!("; and {more} more"));
        }
        Err(Failure::new(format!("copy {} entries of the source", failed.len())).because(why))
    }
}

impl Run<'_, '_> {
    /// The step source for a directory: copies the tree and purges.
    pub(super) fn tree(&mut self) -> Result<(), Failure> {
        let source = if self.file.source.is_empty() {
            None
        } else {
            let path = path::absolute(self.file.source.as_bytes())
                .map_err(|error| Failure::new("use the source").because(error))?;
            let path = enclosing::reads(self.apply, &path);
            Some(Arc::new(Directory::open(&path)?))
        };
        if self.progress == Progress::Pending {
            // It will be made, and what it is to hold with it.
            return Ok(());
        }
        let destination = Arc::new(Directory::open(&self.path)?);
        let mut copying = Copying {
            source: BTreeMap::new(),
            waiting: Vec::new(),
            failed: Vec::new(),
            destination: destination.stat()?,
        };
        if let Some(source) = source {
            let quiet = self.progress == Progress::Made;
            self.copy_level(&mut copying, &source, Some(&destination), Path::new(""), quiet, 0)?;
            self.flush(&mut copying)?;
        }
        // Only a source that was read whole says what belongs into the copy, so nothing is purged.
        copying.outcome()?;
        if self.file.purge {
            self.purge(&copying, &destination)?;
        }
        Ok(())
    }

    /// One directory of the source. Without `destination` it would be made by a run that may not; with `quiet` this run
    /// made it, and what comes into it is no further news.
    fn copy_level(
        &mut self,
        copying: &mut Copying,
        source: &Arc<Directory>,
        destination: Option<&Arc<Directory>>,
        below: &Path,
        quiet: bool,
        depth: usize,
    ) -> Result<(), Failure> {
        if depth > DEEPEST {
            let cause = format!("it is more than {DEEPEST} directories deep");
            return Err(Failure::new("copy").on(source.path().display()).because(cause));
        }
        for listed in source.list()? {
            self.apply.cancellation().check("copy the source")?;
            if is_temporary(&listed.name) {
                continue;
            }
            let relative = below.join(&listed.name);
            let is_directory = listed.file_type == FileType::Directory;
            copying.source.insert(relative.clone(), is_directory);
            let from = source.entry(&*listed.name);
            let Some(destination) = destination else {
                if is_directory {
                    let inner = Arc::new(from.open_directory()?);
                    self.copy_level(copying, &inner, None, &relative, true, depth + 1)?;
                }
                continue;
            };
            let to = destination.entry(&*listed.name);
            // Links and mounts can lead there, whatever the paths say.
            if is_directory
                && from
                    .stat()?
                    .is_some_and(|from| from.is_same_file(&copying.destination))
            {
                let cause = "it would be copied into itself";
                return Err(Failure::new("copy").on(source.path().display()).because(cause));
            }
            let copied = match is_directory {
                true => self.copy_directory(copying, &from, &to, &relative, quiet, depth),
                false => self.copy_file(copying, &from, &to, &relative, quiet),
            };
            match copied {
                Err(failure) if failure.reason() == FailureReason::Refused => copying.failed.push(failure),
                copied => copied?,
            }
        }
        Ok(())
    }

    fn copy_directory(
        &mut self,
        copying: &mut Copying,
        from: &Entry,
        to: &Entry,
        relative: &Path,
        quiet: bool,
        depth: usize,
    ) -> Result<(), Failure> {
        let inner = Arc::new(from.open_directory()?);
        let there = to.stat()?;
        if there.is_some_and(|there| there.is_directory()) {
            let destination = Arc::new(to.open_directory()?);
            return self.copy_level(copying, &inner, Some(&destination), relative, quiet, depth + 1);
        }
        if let Some(there) = there
            && !self.file.force
        {
            return Err(in_the_way("make the directory", to, &there));
        }
        let is = there.map(|there| there.file_type.to_string());
        let permitted = quiet || self.apply.drift(field(relative), is, "directory");
        if !permitted {
            return self.copy_level(copying, &inner, None, relative, true, depth + 1);
        }
        if there.is_some() {
            self.back_up(to)?;
            to.remove_file()?;
        }
        to.create_directory(inner.stat()?.mode & 0o777)?;
        let destination = Arc::new(to.open_directory()?);
        self.copy_level(copying, &inner, Some(&destination), relative, true, depth + 1)
    }

    fn copy_file(
        &mut self,
        copying: &mut Copying,
        from: &Entry,
        to: &Entry,
        relative: &Path,
        quiet: bool,
    ) -> Result<(), Failure> {
        let target = self.path.join(relative);
        // A link is blamed itself: where it leads to says little about where it is.
        let opened = from.follow().and_then(|source| source.open());
        let mut source = opened.map_err(|error| {
            let path = from.path();
            Failure::new("copy").on(path.display()).because(error)
        })?;
        let print = source_fingerprint(source.stat());
        let own = to.stat()?;
        let found = to.stat_following()?;
        let mut is = DriftValue::Absent;
        match found {
            Some(found) if found.is_regular() && !self.file.replace => return Ok(()),
            Some(found) if found.is_regular() => {
                let verified = self.apply.handle().verified();
                let known = print.is_some_and(|print| verified.holds(target.as_path(), found.stamp(), print));
                if known || found.is_same_file(source.stat()) {
                    return Ok(());
                }
                let now = Timestamp::now();
                let end = to.follow()?;
                let mut there = end.open()?;
                let stamp = there.stat().stamp();
                if same_content(&mut source, &mut there)? {
                    if let Some(print) = print {
                        verified.record(target.as_path(), stamp, print, now);
                    }
                    return Ok(());
                }
                let mut there = end.open()?;
                is = if self.may_show(there.stat()) {
                    describe(&mut there)?
                } else {
                    size_alone(there.stat())
                };
            }
            Some(found) if !self.file.force || !found.is_directory() => {
                return Err(in_the_way("replace the contents of", to, &found));
            }
            Some(found) => is = extent(to, &found)?,
            None => {}
        }
        let reopened = || -> Result<OpenFile, Failure> { Ok(from.follow()?.open()?) };
        if !quiet {
            let mut want = describe(&mut reopened()?)?;
            let found = found.filter(Stat::is_regular);
            let is_private = |stat: &Stat| stat.mode & READ_BY_OTHERS == 0;
            if is_private(source.stat()) || found.as_ref().is_some_and(is_private) {
                (is, want) = (is.without_text(), want.without_text());
            }
            if !self.apply.drift(field(relative), is, want) {
                return Ok(());
            }
        }
        if found.is_some() {
            self.back_up(&to.follow()?)?;
        }
        if found.is_some_and(|found| found.is_directory()) {
            if own.is_some_and(|own| own.is_directory()) {
                to.remove_tree()?;
            } else {
                to.remove_file()?;
            }
        }
        let source = reopened()?;
        let mode = source.stat().mode & 0o777 & !umask();
        copying
            .waiting
            .push(Replace::new(target, Content::Copy(source)).mode(mode));
        if copying.waiting.len() >= BATCH {
            self.flush(copying)?;
        }
        Ok(())
    }

    /// Replaces what waits, with syncs shared.
    fn flush(&mut self, copying: &mut Copying) -> Result<(), Failure> {
        let waiting = std::mem::take(&mut copying.waiting);
        if waiting.is_empty() {
            return Ok(());
        }
        for replaced in self.apply.handle().committer().replace_many(waiting) {
            match replaced.map_err(Failure::from) {
                Err(failure) if failure.reason() == FailureReason::Refused => copying.failed.push(failure),
                replaced => drop(replaced?),
            }
        }
        Ok(())
    }

    // Purge

    fn purge(&mut self, copying: &Copying, destination: &Arc<Directory>) -> Result<(), Failure> {
        let protected = self.protected();
        let fate = |relative: &Path| match copying.source.get(relative) {
            Some(true) => Fate::Descend,
            Some(false) => Fate::Keep,
            None => match protected.range(relative.to_path_buf()..).next() {
                Some((managed, ())) if managed == relative => Fate::Keep,
                Some((managed, ())) if managed.starts_with(relative) => Fate::Descend,
                _ => Fate::Remove,
            },
        };
        let mut purged = destination.purge(Removal::Preview, fate)?;
        let mut permitted = false;
        for extra in &purged.removed {
            let field = format!("purge {}", self.path.join(&extra.path));
            let is = extra.extent.to_string();
            permitted = self.apply.existence(field, is, DriftValue::Absent);
        }
        if permitted {
            for extra in &purged.removed {
                self.back_up(&Entry::at(&self.path.join(&extra.path))?)?;
            }
            self.apply.cancellation().check("purge")?;
            purged = destination.purge(Removal::Perform, fate)?;
            for removed in &purged.removed {
                self.apply
                    .done(&format!("purge {}", self.path.join(&removed.path)));
            }
        }
        match purged.leftovers.into_first() {
            None => Ok(()),
            Some((error, 0)) => Err(error.into()),
            Some((error, more)) => Err(self
                .failed("purge all of")
                .because(format!("{error}, and {more} more such errors"))),
        }
    }

    /// What other resources manage below the path, relative to it.
    fn protected(&self) -> BTreeMap<PathBuf, ()> {
        let handle = self.apply.handle();
        let directory = self.path.as_bytes();
        let directory = directory.strip_suffix(b"/").unwrap_or(directory);
        let managed = [&FILE, &EDITED_FILE]
            .into_iter()
            .flat_map(|sort| handle.graph().beginning_with(sort, directory));
        let managed: Vec<_> = managed.collect();
        managed
            .iter()
            .filter(|(_, id)| id != handle.id())
            .filter_map(|(path, _)| AbsolutePath::new(OsStr::from_bytes(path)).ok())
            .filter_map(|path| Some((relative_to(&self.path, &path)?, ())))
            .collect()
    }
}

/// A path below another one, component by component.
fn relative_to(above: &AbsolutePath, path: &AbsolutePath) -> Option<PathBuf> {
    let (above, path) = (above.cleaned(), path.cleaned());
    if !path.is_at_or_under(&above) {
        return None;
    }
    Some(path.components().skip(above.components().count()).collect())
}

fn in_the_way(attempted: &'static str, to: &Entry, there: &Stat) -> Failure {
    Failure::new(attempted).on(to.path().display()).because(format!(
        "a {} is in the way, and `force` does not help or is not set",
        there.file_type
    ))
}

/// The drift field of an entry.
fn field(relative: &Path) -> String {
    format!(
        "source {}",
        OsStr::from_bytes(relative.as_os_str().as_bytes()).display()
    )
}
