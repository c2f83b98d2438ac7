//! A small file whose whole text a resource writes itself, beside what else it is about: unit files of systemd.
//!
//! A link in the place of such a file is another name of some other unit, or the mask of this one, and never what is meant to be written to: it is replaced, and what it
//! leads to stays as it is.
//!
//! For kinds that wait for others and so run as tasks: what blocks here, which is short, makes room for other tasks.

use std::path::PathBuf;

use memchr::memmem;
use setpoint_engine::{Apply, Attempting, DriftValue, Failure};
use setpoint_host::files::{AbsolutePath, Entry, Replace};
use tokio::task::block_in_place;

/// What a link to nothing means to systemd: that its unit is never started.
const MASK: &str = "/dev/null";

/// Such a file, as it was found.
pub(crate) struct WrittenFile {
    path: AbsolutePath,
    found: Option<Found>,
}

/// What is there.
enum Found {
    Text(Vec<u8>),
    Mask,
    /// A link to this path.
    Link(PathBuf),
}

impl WrittenFile {
    /// Reads what is there.
    pub(crate) fn look(path: AbsolutePath) -> Result<WrittenFile, Failure> {
        let found = block_in_place(|| look(&path))?;
        Ok(WrittenFile { path, found })
    }

    /// Whether there is a link to `/dev/null` in its place.
    pub(crate) fn is_mask(&self) -> bool {
        matches!(self.found, Some(Found::Mask))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &AbsolutePath {
        &self.path
    }

    /// Whether a text is there that has these words.
    pub(crate) fn has(&self, words: &str) -> bool {
        match &self.found {
            Some(Found::Text(text)) => memmem::find(text, words.as_bytes()).is_some(),
            _ => false,
        }
    }

    /// Whether a text is there that lacks these words, by which a kind knows its own.
    pub(crate) fn is_of_others(&self, words: &str) -> bool {
        matches!(self.found, Some(Found::Text(_))) && !self.has(words)
    }

    /// Brings the file to hold this text. Whether something was wrong. What is new can be read by all, unless a parameter is secret.
    pub(crate) fn hold(
        &self,
        field: &'static str,
        text: &str,
        apply: &mut Apply<'_>,
    ) -> Result<bool, Failure> {
        if matches!(&self.found, Some(Found::Text(is)) if is == text.as_bytes()) {
            return Ok(false);
        }
        if apply.existence(field, self.shown(), DriftValue::content(text.as_bytes())) {
            let mode = if apply.has_sensitive() { 0o600 } else { 0o644 };
            let is_new = !matches!(self.found, Some(Found::Text(_)));
            let request = Replace::bytes(self.path.clone(), text.as_bytes().to_vec());
            let request = request.mode(is_new.then_some(mode));
            block_in_place(|| {
                if matches!(self.found, Some(Found::Link(_))) {
                    let removed = Entry::at(&self.path).and_then(|entry| entry.remove_file());
                    removed.attempting("remove the link", &self.path)?;
                }
                apply.replace_at_once(request)
            })?;
        }
        Ok(true)
    }

    /// Brings it to be absent. Whether it was there. A link is removed, and not what it leads to.
    pub(crate) fn remove(&self, field: &'static str, apply: &mut Apply<'_>) -> Result<bool, Failure> {
        if self.found.is_none() {
            return Ok(false);
        }
        if apply.existence(field, self.shown(), DriftValue::Absent) {
            let removed = block_in_place(|| Entry::at(&self.path).and_then(|entry| entry.remove_file()));
            removed.attempting("remove", &self.path)?;
        }
        Ok(true)
    }

    fn shown(&self) -> DriftValue {
        match &self.found {
            None => DriftValue::Absent,
            Some(Found::Text(text)) => DriftValue::content(text),
            Some(Found::Mask) => DriftValue::from("masked"),
            Some(Found::Link(target)) => DriftValue::from(format!("a link to {}", target.display())),
        }
    }
}

fn look(path: &AbsolutePath) -> Result<Option<Found>, Failure> {
    let attempted = "read";
    let entry = match Entry::at(path) {
        Err(error) if error.is_not_found() => return Ok(None),
        entry => entry.attempting(attempted, path)?,
    };
    let Some(stat) = entry.stat().attempting(attempted, path)? else {
        return Ok(None);
    };
    if stat.is_link() {
        let target = entry.read_link().attempting(attempted, path)?;
        return Ok(target.map(|target| match target.as_os_str() == MASK {
            true => Found::Mask,
            false => Found::Link(target),
        }));
    }
    let text = entry.read().attempting(attempted, path)?;
    Ok(Some(Found::Text(text)))
}
