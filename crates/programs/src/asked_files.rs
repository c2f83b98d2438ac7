//! What a model asked of the disk, with what was answered, so that it can be seen later whether anything is different.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use setpoint_diagnostics::{LoadError, Loader};
use setpoint_host::sync::Mutex;

/// Questions with hashes of their answers.
#[derive(Debug, Default)]
pub(crate) struct AskedFiles(BTreeMap<Question, u64>);

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Question {
    Read(String),
    IsFile(String),
    IsDirectory(String),
    List(String),
}

impl AskedFiles {
    /// Asks everything again. Answers the paths about which something else is said now.
    pub(crate) fn ask_again(&mut self, loader: &dyn Loader) -> BTreeSet<String> {
        let mut changed = BTreeSet::new();
        for (question, known) in &mut self.0 {
            let (path, answer) = match question {
                Question::Read(path) => (path, hash(&told(&loader.read(path)))),
                Question::IsFile(path) => (path, hash(&loader.is_file(path))),
                Question::IsDirectory(path) => (path, hash(&loader.is_directory(path))),
                Question::List(path) => (path, hash(&told(&loader.list(path)))),
            };
            if *known != answer {
                *known = answer;
                changed.insert(path.clone());
            }
        }
        changed
    }
}

/// A hash of anything that can be answered.
fn hash(answer: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    answer.hash(&mut hasher);
    hasher.finish()
}

/// What an answer is as far as it matters: why something cannot be read is a text.
fn told<T>(answer: &Result<T, LoadError>) -> Result<&T, String> {
    answer.as_ref().map_err(ToString::to_string)
}

/// A loader that notes what it is asked.
pub(crate) struct Asking<'a> {
    loader: &'a dyn Loader,
    asked: Mutex<AskedFiles>,
}

impl<'a> Asking<'a> {
    /// Besides what was asked before.
    pub(crate) fn of(loader: &'a dyn Loader, asked: AskedFiles) -> Asking<'a> {
        Asking {
            loader,
            asked: Mutex::new(asked),
        }
    }

    /// All that was asked.
    pub(crate) fn into_asked(self) -> AskedFiles {
        std::mem::take(&mut self.asked.lock())
    }

    fn note(&self, question: Question, answer: u64) {
        self.asked.lock().0.insert(question, answer);
    }
}

impl Loader for Asking<'_> {
    fn read(&self, path: &str) -> Result<Arc<[u8]>, LoadError> {
        let answer = self.loader.read(path);
        self.note(Question::Read(path.to_owned()), hash(&told(&answer)));
        answer
    }

    fn is_file(&self, path: &str) -> bool {
        let answer = self.loader.is_file(path);
        self.note(Question::IsFile(path.to_owned()), hash(&answer));
        answer
    }

    fn is_directory(&self, path: &str) -> bool {
        let answer = self.loader.is_directory(path);
        self.note(Question::IsDirectory(path.to_owned()), hash(&answer));
        answer
    }

    fn list(&self, directory: &str) -> Result<Vec<String>, LoadError> {
        let answer = self.loader.list(directory);
        self.note(Question::List(directory.to_owned()), hash(&told(&answer)));
        answer
    }
}

#[cfg(test)]
mod tests {
    use setpoint_diagnostics::MemoryLoader;

    use super::*;

    #[test]
    fn what_is_answered_otherwise_is_told_once() {
        let before = MemoryLoader::new().with("a", "1").with("d/x", "1");
        let asking = Asking::of(&before, AskedFiles::default());
        let _ = (
            asking.read("a"),
            asking.read("b"),
            asking.is_file("c"),
            asking.list("d"),
        );
        let mut asked = asking.into_asked();
        assert_eq!(asked.ask_again(&before), BTreeSet::new());
        let after = MemoryLoader::new()
            .with("a", "1")
            .with("b", "2")
            .with("d/x", "2")
            .with("d/y", "");
        let names = ["b", "d"].map(str::to_owned);
        assert_eq!(asked.ask_again(&after), BTreeSet::from(names));
        assert_eq!(asked.ask_again(&after), BTreeSet::new());
    }
}
