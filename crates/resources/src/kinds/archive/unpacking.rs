//! Unpacking an archive into a directory.

use std::collections::HashSet;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use globset::GlobSet;
use setpoint_engine::{Attempting, Failure};
use setpoint_host::files::{
    AbsolutePath, Directory, Entry, FileError, NewTree, OpenFile, exchange_directory, own_gid, own_uid, umask,
};
use sha2::{Digest, Sha256};

use super::manifest::{Item, Manifest, Sort, key_of, path_of, stamp};
use super::reader::{Format, Limits, Member, What, each, stays_inside};
use crate::file_mode::Mode;
use crate::replaced_directory::places;

/// The options of unpacking an archive.
pub(super) struct Unpacking<'a> {
    pub(super) path: &'a AbsolutePath,
    pub(super) owner: Option<u32>,
    pub(super) group: Option<u32>,
    pub(super) mode: Option<Mode>,
    pub(super) strip: usize,
    /// None for all.
    pub(super) only: Option<GlobSet>,
    pub(super) exclude: GlobSet,
    pub(super) keep: GlobSet,
    pub(super) links_stay_inside: bool,
    pub(super) set_id: bool,
    pub(super) limits: Limits,
}

impl Unpacking<'_> {
    /// Unpacks into a second directory, which then replaces the first one. `store` keeps the manifest before that, so that a crash leaves no
    /// directory without a manifest. Answers whether it was replaced in one step.
    ///
    /// # Errors
    /// When nothing was replaced.
    pub(super) fn whole(
        &self,
        archive: OpenFile,
        format: Format,
        manifest: &mut Manifest,
        store: impl FnOnce(&Manifest) -> Result<(), Failure>,
    ) -> Result<bool, Failure> {
        let (place, new) = places(self.path)?;
        let mut tree = NewTree::create(&new)?;
        let unpacked = self.fill(&mut tree, archive, format, manifest);
        let filled = unpacked.and_then(|()| {
            self.carry_over(&mut tree, &place)?;
            self.finish(&mut tree, &new, manifest)?;
            tree.sync()?;
            store(manifest)
        });
        if let Err(failure) = filled {
            let _ = new.remove_tree();
            return Err(failure);
        }
        Ok(exchange_directory(&new, &place)?)
    }

    /// Unpacks into a directory in which others write, too, and removes what an earlier archive brought and this one does not.
    ///
    /// # Errors
    /// As the system says. Members before the failing one are there.
    pub(super) fn merge(
        &self,
        archive: OpenFile,
        format: Format,
        manifest: &mut Manifest,
        former: Option<&Manifest>,
    ) -> Result<(), Failure> {
        let (place, _) = places(self.path)?;
        let mut tree = NewTree::open(&place)?;
        self.fill(&mut tree, archive, format, manifest)?;
        self.finish(&mut tree, &place, manifest)?;
        let gone = former.into_iter().flat_map(|former| former.items.iter());
        let gone = gone.filter(|(key, _)| !manifest.items.contains_key(*key));
        let mut gone: Vec<(&String, &Item)> = gone.collect();
        gone.reverse();
        for (key, item) in gone {
            let entry = self.below(&path_of(key))?;
            let Some(stat) = entry.stat()? else { continue };
            match &item.sort {
                // Others may have something in it.
                Sort::Directory => drop(entry.remove_directory()),
                // A file that was changed since belongs to who changed it.
                Sort::File(_) if stamp(&stat) != item.stamp => {}
                Sort::File(_) | Sort::Link(_) => entry.remove_file()?,
            }
        }
        Ok(())
    }

    fn below(&self, path: &Path) -> Result<Entry, Failure> {
        let path = self.path.join(path);
        Entry::at(&path).attempting("look at", &path)
    }

    /// Writes the members.
    fn fill(
        &self,
        tree: &mut NewTree,
        archive: OpenFile,
        format: Format,
        manifest: &mut Manifest,
    ) -> Result<(), Failure> {
        let mut files = HashSet::new();
        let mut visit = |member: Member, contents: &mut dyn Read| {
            let Some(path) = self.path_of_member(&member.path) else {
                return Ok(());
            };
            self.write(tree, &path, member, contents, manifest, &mut files)
        };
        each(archive, format, &self.limits, &mut visit)
            .map_err(|why| Failure::new("unpack into").on(self.path).because(why))
    }

    /// The path of a member in the tree; none if it is left out.
    fn path_of_member(&self, path: &Path) -> Option<PathBuf> {
        let path: PathBuf = path.components().skip(self.strip).collect();
        let is_named = |globs: &GlobSet| path.ancestors().any(|above| globs.is_match(above));
        let is_wanted = self.only.as_ref().is_none_or(is_named) && !is_named(&self.exclude);
        (is_wanted && !path.as_os_str().is_empty()).then_some(path)
    }

    fn write(
        &self,
        tree: &mut NewTree,
        path: &Path,
        member: Member,
        contents: &mut dyn Read,
        manifest: &mut Manifest,
        files: &mut HashSet<PathBuf>,
    ) -> Result<(), String> {
        let told = |error: FileError| error.to_string();
        for above in path
            .ancestors()
            .skip(1)
            .filter(|above| !above.as_os_str().is_empty())
        {
            let implied = || self.item(Sort::Directory, 0o755);
            manifest.items.entry(key_of(above)).or_insert_with(implied);
        }
        let item = match member.what {
            What::Directory => {
                tree.directory(path).map_err(told)?;
                self.item(Sort::Directory, member.mode)
            }
            What::File => {
                let mut hashed = Hashed {
                    contents,
                    hash: Sha256::new(),
                };
                let mode = self.mode_of(member.mode, false);
                // Its bits come when it belongs to its owner.
                tree.file(path, mode & 0o777, &mut hashed).map_err(told)?;
                files.insert(path.to_path_buf());
                self.item(Sort::File(hashed.sum()), member.mode)
            }
            What::HardLink(target) => {
                let target = self
                    .path_of_member(&target)
                    .filter(|target| files.contains(target));
                let target = target.ok_or("it is a link to a file that the archive did not bring before")?;
                tree.hard_link(path, &target).map_err(told)?;
                files.insert(path.to_path_buf());
                let same = manifest.items.get(&key_of(&target)).cloned();
                same.unwrap_or_else(|| self.item(Sort::File(String::new()), member.mode))
            }
            What::Link(text) => {
                let directory = path.parent().unwrap_or(Path::new(""));
                if self.links_stay_inside && !stays_inside(directory, &text) {
                    let text = text.to_string_lossy();
                    return Err(format!(
                        "it is a link to {text}, outside of the directory; `links => \"any\"` allows that"
                    ));
                }
                tree.link(path, &text).map_err(told)?;
                self.item(Sort::Link(key_of(Path::new(&text))), 0o777)
            }
        };
        manifest.items.insert(key_of(path), item);
        Ok(())
    }

    fn item(&self, sort: Sort, mode: u32) -> Item {
        Item {
            mode: self.mode_of(mode, sort == Sort::Directory),
            owner: self.owner.unwrap_or_else(own_uid),
            group: self.group.unwrap_or_else(own_gid),
            sort,
            stamp: String::new(),
        }
    }

    fn mode_of(&self, archived: u32, is_directory: bool) -> u32 {
        let archived = match self.set_id {
            true => archived & 0o7777,
            false => archived & 0o777,
        };
        match &self.mode {
            Some(Mode::Octal(mode)) if is_directory => mode | (mode & 0o444) >> 2,
            Some(mode) => mode.of(archived),
            None => archived & !umask(),
        }
    }

    /// Takes over what others may change, from the directory that is replaced.
    fn carry_over(&self, tree: &mut NewTree, place: &Entry) -> Result<(), Failure> {
        if self.keep.is_empty() {
            return Ok(());
        }
        let directory = match place.open_directory() {
            Ok(directory) => Arc::new(directory),
            Err(error) if error.is_not_found() => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        self.carry(tree, &directory, Path::new(""), false)
    }

    fn carry(
        &self,
        tree: &mut NewTree,
        directory: &Arc<Directory>,
        below: &Path,
        is_kept: bool,
    ) -> Result<(), Failure> {
        for listed in directory.list()? {
            let path = below.join(&listed.name);
            let entry = directory.entry(listed.name);
            let is_kept = is_kept || self.keep.is_match(&path);
            let Some(stat) = entry.stat()? else { continue };
            if is_kept {
                tree.take_over(&path, &entry)?;
            }
            if stat.is_directory() {
                self.carry(tree, &Arc::new(entry.open_directory()?), &path, is_kept)?;
            }
        }
        Ok(())
    }

    /// Sets owners and modes, those of directories last, and notes the stamps of files.
    fn finish(&self, tree: &mut NewTree, root: &Entry, manifest: &mut Manifest) -> Result<(), Failure> {
        let directory = Arc::new(root.open_directory()?);
        if root.name().to_string_lossy().ends_with(".setpoint-new") {
            let own = self.item(Sort::Directory, 0o755);
            tree.owner(Path::new(""), own.owner, own.group)?;
            tree.mode(Path::new(""), own.mode)?;
        }
        for (key, item) in manifest.items.iter_mut().rev() {
            let path = path_of(key);
            if self.keep.is_match(&path) {
                continue;
            }
            if (item.owner, item.group) != (own_uid(), own_gid()) {
                tree.owner(&path, item.owner, item.group)?;
            }
            if !matches!(item.sort, Sort::Link(_)) {
                tree.mode(&path, item.mode)?;
            }
            if let Sort::File(_) = item.sort {
                let stat = entry_below(&directory, &path)?.stat()?;
                item.stamp = stat.as_ref().map(stamp).unwrap_or_default();
            }
        }
        Ok(())
    }
}

/// An entry of a tree of our own.
fn entry_below(directory: &Arc<Directory>, path: &Path) -> Result<Entry, Failure> {
    let mut parts = path
        .components()
        .map(|part| part.as_os_str().to_owned())
        .collect::<Vec<_>>();
    let name = parts.pop().unwrap_or_default();
    let mut directory = directory.clone();
    for part in parts {
        directory = Arc::new(directory.entry(part).open_directory()?);
    }
    Ok(directory.entry(name))
}

/// Reads, and computes the SHA-256 of what is read.
struct Hashed<'a> {
    contents: &'a mut dyn Read,
    hash: Sha256,
}

impl Hashed<'_> {
    fn sum(self) -> String {
        let digest = self.hash.finalize();
        let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("sha256:{digits}")
    }
}

impl Read for Hashed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.contents.read(buffer)?;
        self.hash.update(&buffer[..count]);
        Ok(count)
    }
}

/// The entries of a manifest that are there, each behind those in it.
///
/// # Errors
/// As the system says.
pub(super) fn there(path: &AbsolutePath, manifest: &Manifest) -> Result<Vec<Entry>, Failure> {
    let mut entries = Vec::new();
    for key in manifest.items.keys().rev() {
        let path = path.join(path_of(key));
        match Entry::at(&path) {
            Ok(entry) if entry.stat()?.is_some() => entries.push(entry),
            Err(error) if !error.is_not_found() => return Err(error.into()),
            _ => {}
        }
    }
    Ok(entries)
}

/// Removes entries, and directories that are empty then; with `whole`, also the directory itself.
///
/// # Errors
/// As the system says.
pub(super) fn remove(path: &AbsolutePath, entries: &[Entry], whole: bool) -> Result<(), Failure> {
    for entry in entries {
        match entry.stat()? {
            Some(stat) if stat.is_directory() => drop(entry.remove_directory()),
            Some(_) => entry.remove_file()?,
            None => {}
        }
    }
    if whole {
        // It stays if others have something in it.
        let (place, _) = places(path)?;
        let _ = place.remove_directory();
    }
    Ok(())
}
