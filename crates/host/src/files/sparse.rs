//! Files with holes: a few bytes that say they are terabytes.
//!
//! Reading a hole gives zeros for as long as it says to be. So copying and comparing skip what holds no data, and
//! cost what the data costs.

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::fs::FileExt;

const CHUNK: usize = 64 * 1024;

/// Copies everything, from the beginning, leaving holes where the source has some.
pub(super) fn copy(source: &File, target: &File) -> io::Result<()> {
    let length = source.metadata()?.len();
    let mut at = 0;
    while let Some(start) = next_data(source, at)? {
        let end = match seek(source, SeekFrom::Hole(start)) {
            Ok(end) => end,
            Err(Errno::INVAL | Errno::NXIO) => u64::MAX,
            Err(error) => return Err(error.into()),
        };
        let (mut source, mut target) = (source, target);
        source.seek(io::SeekFrom::Start(start))?;
        target.seek(io::SeekFrom::Start(start))?;
        // The standard library's copy uses `copy_file_range(2)` where it can.
        let copied = io::copy(&mut source.take(end.saturating_sub(start)), &mut target)?;
        at = start + copied;
        if copied == 0 {
            break;
        }
    }
    // A hole at the end is made by the length alone. Files of `/proc` have more data than length.
    target.set_len(length.max(at))
}

/// Whether two files of one length hold the same.
pub(super) fn same(left: &File, right: &File, length: u64) -> io::Result<bool> {
    let (mut left_chunk, mut right_chunk) = (vec![0; CHUNK], vec![0; CHUNK]);
    let mut at = 0;
    loop {
        // Where both have a hole, both read as zeros.
        let next = [next_data(left, at)?, next_data(right, at)?];
        let Some(start) = next.into_iter().flatten().min() else {
            return Ok(true);
        };
        let left_count = fill(left, &mut left_chunk, start)?;
        let right_count = fill(right, &mut right_chunk, start)?;
        if left_chunk[..left_count] != right_chunk[..right_count] {
            return Ok(false);
        }
        at = start + left_count as u64;
        if left_count < CHUNK || at >= length {
            return Ok(true);
        }
    }
}

/// Where the next data is; nothing if only a hole follows.
fn next_data(file: &File, at: u64) -> io::Result<Option<u64>> {
    match seek(file, SeekFrom::Data(at)) {
        Ok(start) => Ok(Some(start)),
        Err(Errno::NXIO) => Ok(None),
        // Not every file system knows of holes.
        Err(Errno::INVAL) => Ok(Some(at)),
        Err(error) => Err(error.into()),
    }
}

fn fill(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], at + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
