//! Text files as their lines, which are edited while everything else in the file stays as it is, ends of lines included.

use setpoint_engine::{Attempting, Failure};
use setpoint_host::files::{AbsolutePath, Entry};

/// The bytes of a file; none if there is none. What a link leads to is the file.
pub(crate) fn read(path: &AbsolutePath) -> Result<Option<Vec<u8>>, Failure> {
    let attempted = "read";
    let entry = match Entry::at(path) {
        Ok(entry) => entry,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(error).attempting(attempted, path),
    };
    match entry.stat().attempting(attempted, path)? {
        None => Ok(None),
        Some(stat) if stat.is_link() => {
            let end = entry.follow().attempting(attempted, path)?;
            end.read().map(Some).attempting(attempted, path)
        }
        Some(_) => entry.read().map(Some).attempting(attempted, path),
    }
}

/// The lines of a text with their ends; the last one may have none.
pub(crate) fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

/// A line without its end.
pub(crate) fn bare(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// The end that lines of a text have: that of the first one.
pub(crate) fn end_of_lines(text: &[u8]) -> &'static [u8] {
    match lines(text).first() {
        Some(first) if first.ends_with(b"\r\n") => b"\r\n",
        _ => b"\n",
    }
}

/// Ends the last line of a text, so that another one can follow.
pub(crate) fn end_last_line(text: &mut Vec<u8>, end: &[u8]) {
    if !text.is_empty() && !text.ends_with(b"\n") {
        text.extend_from_slice(end);
    }
}
