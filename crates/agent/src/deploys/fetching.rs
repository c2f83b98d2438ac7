//! The files of a deploy, fetched from the store. A content that an earlier deploy has left on this host is copied from there.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use flate2::read::ZlibDecoder;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use setpoint_world::{Entry, MOST_OPERATIONS};

use super::Deploys;
use super::files::{Content, File, Files, LARGEST, NotFetched, PART};

/// The ending of directories and files that are not complete yet.
pub(super) const ARRIVING: &str = "arriving";

/// The bytes that one read fetches, at most, unless one content alone has more.
const BYTES_AT_ONCE: u64 = 4 << 20;

impl Deploys {
    /// Fetches the files under a key into a directory of the directory of deploys: all of them, or nothing.
    ///
    /// # Errors
    /// When the store cannot be asked, has damaged files, or the directory cannot be written.
    pub async fn fetch_files(&self, key: &str, directory: &Path) -> Result<(), NotFetched> {
        let temporary = directory.with_extension(ARRIVING);
        let here = |error| NotFetched::Here {
            path: temporary.display().to_string(),
            error,
        };
        remove_arriving(directory.parent().unwrap_or(Path::new("/"))).map_err(here)?;
        let (_, files) = self.files(key).await?;
        let fetched = self.fetch_into(&files, &temporary, directory, here).await;
        if fetched.is_err() {
            // It would take the room that a later deploy needs.
            let _ = remove(&temporary);
        }
        fetched
    }

    async fn fetch_into(
        &self,
        files: &Files,
        temporary: &Path,
        directory: &Path,
        here: impl Fn(io::Error) -> NotFetched,
    ) -> Result<(), NotFetched> {
        std::fs::create_dir_all(temporary).map_err(&here)?;
        let mut wanted: BTreeMap<&Content, Vec<&File>> = BTreeMap::new();
        for file in &files.files {
            wanted.entry(&file.content).or_default().push(file);
        }
        let known = Known::beside(directory);
        let write_all = |bytes: &[u8], files: &[&File]| {
            files
                .iter()
                .try_for_each(|file| write(&temporary.join(&file.path[1..]), bytes, file.mode))
        };
        let mut missing: Vec<&Content> = Vec::new();
        for (content, files) in &wanted {
            match known.find(content) {
                Some(bytes) => write_all(&bytes, files).map_err(&here)?,
                None => missing.push(content),
            }
        }
        for batch in batches(&missing) {
            for (content, bytes) in batch.iter().zip(self.contents_of(batch).await?) {
                write_all(&bytes, &wanted[content]).map_err(&here)?;
            }
        }
        put_in_place(temporary, directory).map_err(here)
    }

    /// Fetches one content.
    pub(super) async fn content(&self, content: &Content) -> Result<Vec<u8>, NotFetched> {
        let mut found = self.contents_of(&[content]).await?;
        Ok(found.pop().unwrap_or_default())
    }

    /// Fetches contents in one read; one with many parts in several.
    async fn contents_of(&self, contents: &[&Content]) -> Result<Vec<Vec<u8>>, NotFetched> {
        if let Some(large) = contents.iter().find(|content| content.size > LARGEST) {
            return Err(damaged(large, "it is too large"));
        }
        let parts: Vec<_> = contents
            .iter()
            .flat_map(|content| (0..content.parts()).map(|number| content.part(number).into()))
            .collect();
        // A batch fits into one read. One large content does not.
        let at_once = match contents {
            [_] => BYTES_AT_ONCE as usize / PART,
            _ => MOST_OPERATIONS,
        };
        let mut entries: Vec<Option<Entry>> = Vec::with_capacity(parts.len());
        for some in parts.chunks(at_once) {
            let found = self.store.read(some).await?;
            entries.extend(found.entries.into_iter().map(|found| found.into_iter().next()));
        }
        let mut entries = entries.into_iter();
        contents
            .iter()
            .map(|content| assembled(content, entries.by_ref().take(content.parts())))
            .collect()
    }
}

/// The bytes of a content, of its parts.
fn assembled(content: &Content, parts: impl Iterator<Item = Option<Entry>>) -> Result<Vec<u8>, NotFetched> {
    let mut bytes = Vec::new();
    for part in parts {
        let part = part.ok_or_else(|| damaged(content, "a part of it is missing"))?;
        ZlibDecoder::new(&part.value[..])
            .take(PART as u64 + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| damaged(content, &error.to_string()))?;
    }
    match Content::of(&bytes) == *content {
        true => Ok(bytes),
        false => Err(damaged(content, "it has another hash")),
    }
}

fn damaged(content: &Content, why: &str) -> NotFetched {
    NotFetched::Damaged(format!(
        "the file {} in the store is damaged: {why}",
        content.sha256
    ))
}

/// Splits contents into batches that one read can fetch.
fn batches<'a, 'c>(contents: &'a [&'c Content]) -> Vec<&'a [&'c Content]> {
    let mut batches = Vec::new();
    let (mut begin, mut size, mut parts) = (0, 0, 0);
    for (at, content) in contents.iter().enumerate() {
        let is_full = size + content.size > BYTES_AT_ONCE || parts + content.parts() > MOST_OPERATIONS;
        if at > begin && is_full {
            batches.push(&contents[begin..at]);
            (begin, size, parts) = (at, 0, 0);
        }
        size += content.size;
        parts += content.parts();
    }
    if begin < contents.len() {
        batches.push(&contents[begin..]);
    }
    batches
}

/// The files of earlier deploys on this host, by size.
struct Known(BTreeMap<u64, Vec<PathBuf>>);

impl Known {
    /// Looks through the directories next to one. An unreadable file counts as missing.
    fn beside(directory: &Path) -> Known {
        let mut known = Known(BTreeMap::new());
        let is_deploy = |path: &Path| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.parse::<u64>().is_ok())
        };
        let entries = directory.parent().map(std::fs::read_dir);
        for entry in entries.into_iter().flatten().flatten().flatten() {
            if is_deploy(&entry.path()) {
                known.add_all(&entry.path());
            }
        }
        known
    }

    fn add_all(&mut self, directory: &Path) {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            // Links are not followed.
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => self.add_all(&entry.path()),
                Ok(metadata) if metadata.is_file() => {
                    self.0.entry(metadata.len()).or_default().push(entry.path());
                }
                _ => {}
            }
        }
    }

    /// The bytes of a content, if one of the files has them.
    fn find(&self, content: &Content) -> Option<Vec<u8>> {
        let candidates = self.0.get(&content.size)?.iter();
        let mut read = candidates.filter_map(|path| std::fs::read(path).ok());
        read.find(|bytes| Content::of(bytes) == *content)
    }
}

fn write(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    let mut options = std::fs::OpenOptions::new();
    // No more than a file of a program needs: it comes from elsewhere.
    let file = options
        .write(true)
        .create_new(true)
        .mode(mode & 0o755 | 0o400)
        .open(path);
    let mut file = file?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Replaces a directory, or makes it, in one step. After a crash one of the two is there, and complete.
fn put_in_place(new: &Path, directory: &Path) -> io::Result<()> {
    match renameat_with(CWD, new, CWD, directory, RenameFlags::EXCHANGE) {
        // The exchange moved the old directory to the other place.
        Ok(()) => remove(new)?,
        Err(Errno::NOENT) => std::fs::rename(new, directory)?,
        // Some file systems cannot exchange.
        Err(Errno::INVAL | Errno::NOSYS) => {
            remove(directory)?;
            std::fs::rename(new, directory)?;
        }
        Err(error) => return Err(error.into()),
    }
    let parent = directory.parent().unwrap_or(Path::new("/"));
    std::fs::File::open(parent)?.sync_all()
}

fn remove(directory: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Removes what earlier fetches have left: this process is the only one that fetches into the directory.
fn remove_arriving(directory: &Path) -> io::Result<()> {
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() && path.extension().is_some_and(|extension| extension == ARRIVING) {
            remove(&path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_takes_the_place_of_another_one_or_of_none() {
        let root = tempfile::tempdir().unwrap();
        let place = root.path().join("1");
        for text in ["one", "two"] {
            let new = root.path().join("1.arriving");
            write(&new.join("below/main.mcl"), text.as_bytes(), 0o644).unwrap();
            put_in_place(&new, &place).unwrap();
            assert_eq!(
                std::fs::read_to_string(place.join("below/main.mcl")).unwrap(),
                text
            );
            assert_eq!(
                std::fs::read_dir(root.path()).unwrap().count(),
                1,
                "nothing else is left"
            );
        }
    }

    #[test]
    fn contents_that_an_earlier_deploy_has_are_found_by_their_hash() {
        let root = tempfile::tempdir().unwrap();
        write(&root.path().join("3/files/a"), b"one", 0o644).unwrap();
        write(&root.path().join("4.arriving/files/b"), b"two", 0o644).unwrap();
        let known = Known::beside(&root.path().join("5"));
        assert_eq!(
            known.find(&Content::of(b"one")).as_deref(),
            Some(b"one".as_slice())
        );
        assert_eq!(
            known.find(&Content::of(b"eno")),
            None,
            "the same size is not enough"
        );
        assert_eq!(known.find(&Content::of(b"two")), None);
        remove_arriving(root.path()).unwrap();
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_batch_is_one_read() {
        let content = |size: u64| Content {
            sha256: size.to_string(),
            size,
        };
        let contents: Vec<Content> = [1, BYTES_AT_ONCE, 2, 3, 2 * BYTES_AT_ONCE, 0].map(content).into();
        let contents: Vec<&Content> = contents.iter().collect();
        let sizes: Vec<Vec<u64>> = batches(&contents)
            .iter()
            .map(|batch| batch.iter().map(|content| content.size).collect())
            .collect();
        assert_eq!(
            sizes,
            [
                vec![1],
                vec![BYTES_AT_ONCE],
                vec![2, 3],
                vec![2 * BYTES_AT_ONCE],
                vec![0]
            ]
        );
        let small = vec![contents[0]; 300];
        let counts: Vec<usize> = batches(&small).iter().map(|batch| batch.len()).collect();
        assert_eq!(counts, [128, 128, 44]);
    }
}
