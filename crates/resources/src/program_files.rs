//! The files of the program that runs, as kinds see them: all that its deploy consists of.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use setpoint_host::files::AbsolutePath;
use setpoint_host::sync::Mutex;

/// A file of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramFile {
    /// Where it is in the deploy: `/main.mcl`, `/files/motd`.
    pub path: String,
    /// What is in it.
    pub content: ProgramFileContent,
}

/// What is in a file of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramFileContent {
    /// What lies at this path.
    At(AbsolutePath),
    /// These bytes, which lie nowhere: code of a command line, metadata that was made up.
    Bytes(Arc<[u8]>),
}

/// Which program runs, by its files. Whoever starts another one says so here before its graph runs. Clones are one and the same.
#[derive(Clone, Default)]
pub struct ProgramFiles(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    /// The directory of the copies that `deploy.directory` makes.
    copies: String,
    files: Option<Arc<[ProgramFile]>>,
    followers: BTreeMap<u64, Arc<dyn Fn() + Send + Sync>>,
    next: u64,
}

impl ProgramFiles {
    /// Of a machine on which `deploy.directory` copies files of the program below this directory.
    #[must_use]
    pub fn with_copies(directory: String) -> ProgramFiles {
        let files = ProgramFiles::default();
        files.0.lock().copies = directory;
        files
    }

    /// The file or directory of the program whose copy a path names. A plan makes no copies, and reads the original.
    #[must_use]
    pub(crate) fn original(&self, path: &AbsolutePath) -> Option<AbsolutePath> {
        let known = self.0.lock();
        let path = path.as_path().to_str()?;
        let inside = path
            .strip_prefix(&known.copies)
            .filter(|inside| inside.starts_with('/'))?;
        let files = known.files.as_ref()?;
        files.iter().find_map(|file| {
            let ProgramFileContent::At(real) = &file.content else {
                return None;
            };
            let rest = file.path.strip_prefix(inside)?;
            match inside.ends_with('/') || rest.is_empty() {
                true => AbsolutePath::new(real.as_path().to_str()?.strip_suffix(rest)?).ok(),
                false => None,
            }
        })
    }

    /// Those of the program that runs; none if what runs came without.
    #[must_use]
    pub fn current(&self) -> Option<Arc<[ProgramFile]>> {
        self.0.lock().files.clone()
    }

    /// Those of another program run from now on. Answers those of the one before. Giving the same list again tells nobody.
    pub fn replace(&self, files: Option<Arc<[ProgramFile]>>) -> Option<Arc<[ProgramFile]>> {
        let (before, followers) = {
            let mut known = self.0.lock();
            let is_same = match (&known.files, &files) {
                // Another program may have the same paths, with other contents.
                (Some(is), Some(new)) => Arc::ptr_eq(is, new),
                (None, None) => true,
                _ => false,
            };
            if is_same {
                return files;
            }
            let followers: Vec<_> = known.followers.values().cloned().collect();
            (std::mem::replace(&mut known.files, files), followers)
        };
        for follower in followers {
            follower();
        }
        before
    }

    /// Calls back whenever they are replaced, until the answer is dropped.
    pub(crate) fn follow(&self, hears: impl Fn() + Send + Sync + 'static) -> FollowedFiles {
        let mut known = self.0.lock();
        let number = known.next;
        known.next += 1;
        known.followers.insert(number, Arc::new(hears));
        FollowedFiles {
            files: self.clone(),
            number,
        }
    }
}

impl fmt::Debug for ProgramFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProgramFiles")
    }
}

/// Ends the following when it is dropped.
pub(crate) struct FollowedFiles {
    files: ProgramFiles,
    number: u64,
}

impl Drop for FollowedFiles {
    fn drop(&mut self) {
        self.files.0.lock().followers.remove(&self.number);
    }
}
