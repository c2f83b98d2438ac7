//! Text files of SSH, read up to a limit.

use crate::files::{AbsolutePath, Entry, FileError};

use super::identities::without_number;

/// The text of a file. None if there is none.
///
/// # Errors
/// Why it cannot be read, or that it has more than `longest` bytes, as a sentence.
pub(super) fn text_of(path: &AbsolutePath, longest: u64) -> Result<Option<String>, String> {
    let failed = |error: FileError| format!("failed to {}", without_number(&error));
    let entry = match Entry::at(path).and_then(|entry| entry.follow()) {
        Ok(entry) => entry,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    match entry.stat().map_err(failed)? {
        None => Ok(None),
        Some(stat) if stat.size > longest => Err(format!("{path} is longer than {} MB", longest >> 20)),
        Some(_) => {
            let bytes = entry.read().map_err(failed)?;
            Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
        }
    }
}
