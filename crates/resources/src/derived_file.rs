//! A file that is made of others: an archive, something compressed.
//!
//! Whether it is right is found out by making it again and comparing, which needs no memory of what was made before and sees every change, whoever
//! made it. What was found right is remembered with the stamps of all files that are concerned, so that nobody reads anything as long as none of
//! them changes. A newer version of what makes it may make it otherwise; then it is made once more.

use std::io::{self, Read, Write};

use setpoint_engine::{Apply, Attempting, Failure};
use setpoint_host::files::{
    AbsolutePath, Content, Entry, Fingerprint, OpenFile, Replace, Stat, Timestamp, umask,
};
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

/// The inputs of a file, by their stamps.
#[derive(Debug)]
pub(crate) struct Origin {
    hash: Sha256,
    /// Whether no part of it has changed so recently that another change may have the same stamp.
    is_settled: bool,
}

impl Origin {
    /// So far nothing but this: how it is made, and what is not in files.
    pub(crate) fn of(how: &[u8]) -> Origin {
        let mut origin = Origin {
            hash: Sha256::new(),
            is_settled: true,
        };
        origin.add(how);
        origin
    }

    /// Something else that it is made of.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.hash.update((bytes.len() as u64).to_le_bytes());
        self.hash.update(bytes);
    }

    /// A file that it is made of, as it is now.
    pub(crate) fn add_file(&mut self, stat: &Stat) {
        /// As on network file systems, which have other clocks.
        const SETTLED_SECONDS: i64 = 4;
        let age = Timestamp::now().seconds.saturating_sub(stat.changed.seconds);
        self.is_settled &= age >= SETTLED_SECONDS;
        for part in [stat.device, stat.inode, stat.size] {
            self.hash.update(part.to_le_bytes());
        }
        for time in [stat.modified, stat.changed] {
            self.hash.update(time.seconds.to_le_bytes());
            self.hash.update(time.nanoseconds.to_le_bytes());
        }
    }

    fn fingerprint(&self) -> Option<Fingerprint> {
        let digest = self.hash.clone().finalize();
        self.is_settled.then(|| Fingerprint::of_digest(&digest))
    }
}

/// The state of a derived file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    Nothing,
    /// Something else.
    Other,
    Right,
}

/// Whether a file is what `write` writes.
pub(crate) fn compare(
    apply: &Apply<'_>,
    path: &AbsolutePath,
    origin: &Origin,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<Found, Failure> {
    let attempted = "read";
    let entry = match Entry::at(path).and_then(|entry| entry.follow()) {
        Err(error) if error.is_not_found() => return Ok(Found::Nothing),
        entry => entry.attempting(attempted, path)?,
    };
    let Some(stat) = entry.stat().attempting(attempted, path)? else {
        return Ok(Found::Nothing);
    };
    let verified = apply.handle().verified();
    let fingerprint = origin.fingerprint();
    if fingerprint.is_some_and(|print| verified.holds(path.as_path(), stat.stamp(), print)) {
        return Ok(Found::Right);
    }
    let now = Timestamp::now();
    let there = OpenFile::open_found(&entry, &stat).attempting(attempted, path)?;
    let stamp = there.stat().stamp();
    let mut comparison = Comparison {
        there,
        buffer: Vec::new(),
        is_different: false,
        stop: apply.cancellation().token().clone(),
    };
    let written = write(&mut comparison).and_then(|()| comparison.end());
    apply.cancellation().check("compare with what it is made of")?;
    match written {
        Ok(()) => {}
        Err(_) if comparison.is_different => return Ok(Found::Other),
        Err(error) => return Err(Failure::new("compare").on(path).because(error)),
    }
    if let Some(print) = fingerprint {
        verified.record(path.as_path(), stamp, print, now);
    }
    Ok(Found::Right)
}

/// Puts what `write` writes in the place of a file.
pub(crate) fn make(
    apply: &mut Apply<'_>,
    path: &AbsolutePath,
    origin: &Origin,
    found: Found,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()> + Send + 'static,
) -> Result<(), Failure> {
    let stop = apply.cancellation().token().clone();
    let content = Content::Written(Box::new(move |file| {
        let mut writer = io::BufWriter::with_capacity(1 << 16, Stoppable { file, stop });
        write(&mut writer)?;
        writer.flush()
    }));
    let mut request = Replace::new(path.clone(), content);
    if found == Found::Nothing && apply.has_sensitive() {
        // What is secret and nobody said a mode for is for its owner alone.
        request = request.mode(0o600 & !umask());
    }
    let replaced = apply.replace_at_once(request);
    apply.cancellation().check("write")?;
    let replaced = replaced?;
    if let Some(print) = origin.fingerprint() {
        let verified = apply.handle().verified();
        verified.record_written(path.as_path(), &replaced, print, false);
    }
    Ok(())
}

/// Compares what is written with what is there.
struct Comparison {
    there: OpenFile,
    buffer: Vec<u8>,
    /// Whether a difference was found, which ends the writing with an error.
    is_different: bool,
    stop: CancellationToken,
}

impl Comparison {
    /// There is nothing more.
    fn end(&mut self) -> io::Result<()> {
        match self.there.read(&mut [0])? {
            0 => Ok(()),
            _ => Err(self.different()),
        }
    }

    fn different(&mut self) -> io::Error {
        self.is_different = true;
        io::Error::other("it is something else")
    }
}

impl Write for Comparison {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        stopped(&self.stop)?;
        self.buffer.resize(bytes.len(), 0);
        let same = match self.there.read_exact(&mut self.buffer) {
            Ok(()) => self.buffer == bytes,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => false,
            Err(error) => return Err(error),
        };
        match same {
            true => Ok(bytes.len()),
            false => Err(self.different()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes until it is told to stop.
struct Stoppable<'a> {
    file: &'a mut std::fs::File,
    stop: CancellationToken,
}

impl Write for Stoppable<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        stopped(&self.stop)?;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn stopped(stop: &CancellationToken) -> io::Result<()> {
    match stop.is_cancelled() {
        true => Err(io::Error::other("it was told to stop")),
        false => Ok(()),
    }
}
