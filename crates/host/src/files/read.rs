//! Reading and comparing contents.

use super::{Entry, FileError, Stat, sparse};
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

const CHUNK: usize = 64 * 1024;

/// What is taken into memory whole is at most this long. A file may say that it is longer than any memory.
const LONGEST_READ: u64 = 1 << 30;

/// A regular file, open for reading, with what was known about it when it was opened.
#[derive(Debug)]
pub struct OpenFile {
    file: File,
    stat: Stat,
    path: PathBuf,
}

impl OpenFile {
    pub(super) fn open(entry: &Entry) -> Result<Self, FileError> {
        let before =
            Stat::of_entry(entry.directory(), entry.name()).map_err(|error| entry.failed("read", error))?;
        Self::open_found(entry, &before)
    }

    /// Opens what was just found at an entry. Anything but a regular file is refused.
    pub fn open_found(entry: &Entry, found: &Stat) -> Result<Self, FileError> {
        let attempted = "read";
        let wrong_type = |stat: &Stat| FileError::WrongType {
            attempted,
            path: entry.path(),
            found: stat.file_type,
        };
        if !found.is_regular() {
            return Err(wrong_type(found));
        }
        // Should something else have taken its place just now, opening must still not block.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(entry.directory(), entry.name(), flags, Mode::empty())
            .map_err(|error| entry.failed(attempted, error))?;
        let stat = Stat::of_descriptor(&opened).map_err(|error| entry.failed(attempted, error))?;
        if !stat.is_regular() {
            return Err(wrong_type(&stat));
        }
        Ok(Self {
            file: File::from(opened),
            stat,
            path: entry.path(),
        })
    }

    /// What was known when it was opened.
    pub fn stat(&self) -> &Stat {
        &self.stat
    }

    /// Where it was found, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Everything from here to the end; more than a gibibyte is refused.
    pub fn read_all(&mut self) -> Result<Vec<u8>, FileError> {
        let too_long = || {
            let cause = io::Error::new(
                io::ErrorKind::FileTooLarge,
                "it is longer than 1 GiB, which is too much to hold in memory",
            );
            FileError::new("read", &self.path, cause)
        };
        if self.stat.size > LONGEST_READ {
            return Err(too_long());
        }
        let mut bytes = Vec::with_capacity(usize::try_from(self.stat.size).unwrap_or(0));
        (&self.file)
            .take(LONGEST_READ + 1)
            .read_to_end(&mut bytes)
            .map_err(FileError::on("read", &self.path))?;
        if bytes.len() as u64 > LONGEST_READ {
            return Err(too_long());
        }
        Ok(bytes)
    }

    /// Whether the rest of the file is exactly `wanted`. Lengths first; then chunk by chunk up to the first
    /// difference, without holding the file in memory.
    ///
    /// For files whose length the file system knows. Those below `/sys` say 4096 whatever they hold; read them.
    pub fn holds(&mut self, wanted: &[u8]) -> Result<bool, FileError> {
        // `/proc` says 0 for files that have contents, so 0 is no answer.
        if self.stat.size != 0 && self.stat.size != wanted.len() as u64 {
            return Ok(false);
        }
        let mut buffer = vec![0; CHUNK.min(wanted.len() + 1)];
        let mut rest = wanted;
        loop {
            let count = read_some(&mut self.file, &mut buffer).map_err(FileError::on("read", &self.path))?;
            if count == 0 {
                return Ok(rest.is_empty());
            }
            match rest.split_at_checked(count) {
                Some((expected, after)) if expected == &buffer[..count] => rest = after,
                _ => return Ok(false),
            }
            // Where the length is known, the end is where it says, and less came than there was room for.
            if rest.is_empty() && count < buffer.len() && self.stat.size == wanted.len() as u64 {
                return Ok(true);
            }
        }
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }
}

impl Read for OpenFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read(buffer)
    }
}

impl io::Seek for OpenFile {
    fn seek(&mut self, position: io::SeekFrom) -> io::Result<u64> {
        self.file.seek(position)
    }
}

/// Whether the rests of two files are equal. The same file under two names is equal to itself; different lengths
/// need no reading.
pub fn same_content(left: &mut OpenFile, right: &mut OpenFile) -> Result<bool, FileError> {
    if left.stat.is_same_file(&right.stat) {
        return Ok(true);
    }
    if left.stat.size != right.stat.size && left.stat.size != 0 && right.stat.size != 0 {
        return Ok(false);
    }
    if left.stat.size == right.stat.size && (left.stat.has_holes() || right.stat.has_holes()) {
        return sparse::same(&left.file, &right.file, left.stat.size)
            .map_err(FileError::on("compare", &left.path));
    }
    let (mut left_chunk, mut right_chunk) = (vec![0; CHUNK], vec![0; CHUNK]);
    loop {
        let left_count = fill(&mut left.file, &mut left_chunk).map_err(FileError::on("read", &left.path))?;
        let right_count =
            fill(&mut right.file, &mut right_chunk).map_err(FileError::on("read", &right.path))?;
        if left_chunk[..left_count] != right_chunk[..right_count] {
            return Ok(false);
        }
        if left_count < CHUNK {
            return Ok(true);
        }
    }
}

fn fill(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match read_some(file, &mut buffer[filled..])? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(filled)
}

fn read_some(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match file.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}
