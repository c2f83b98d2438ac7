//! A file that several resources edit, each a part of it: its identities, its order and its claims.

use setpoint_engine::{Claim, Identity, Sort, Stake, Wanted};
use setpoint_host::files::AbsolutePath;

use crate::enclosing;
use crate::sorts::{EDITED_FILE, FILE};

/// A file as programs name it: by its path, or with `~` by whose home it is in.
#[derive(Debug, Clone)]
pub(crate) struct EditedFile {
    /// The path, or the name with `~`, which matches no path.
    file: Identity,
    is_path: bool,
}

impl EditedFile {
    pub(crate) fn named(name: &str) -> EditedFile {
        match AbsolutePath::new(name) {
            Ok(path) => EditedFile::at(&path),
            Err(_) => EditedFile {
                file: FILE.identity(name.as_bytes()),
                is_path: false,
            },
        }
    }

    pub(crate) fn at(path: &AbsolutePath) -> EditedFile {
        EditedFile {
            file: enclosing::file(path),
            is_path: true,
        }
    }

    /// Its identities, so that `purge` spares it.
    pub(crate) fn identities(&self) -> Vec<Identity> {
        let edited = Identity {
            sort: &EDITED_FILE,
            key: self.file.key.clone(),
        };
        self.is_path.then_some(edited).into_iter().collect()
    }

    /// The resources that come before an edit: one that makes the file, and the nearest that makes or mounts a directory above it.
    pub(crate) fn wanted(&self) -> Vec<Wanted> {
        match self.is_path {
            true => vec![
                Wanted::first_of_each([self.file.clone()]),
                enclosing::wanted(&self.file),
            ],
            false => Vec::new(),
        }
    }

    /// The claim of an editor, with those of the parts that it decides.
    pub(crate) fn claims(&self, parts: impl IntoIterator<Item = Claim>) -> Vec<Claim> {
        let own = Claim {
            place: self.file.clone(),
            stake: Stake::Part,
        };
        std::iter::once(own).chain(parts).collect()
    }

    /// The claim of one part.
    pub(crate) fn part(&self, sort: &'static Sort, part: &[u8], stake: Stake) -> Claim {
        Claim::of_part(sort, &self.file.key, part, stake)
    }
}
