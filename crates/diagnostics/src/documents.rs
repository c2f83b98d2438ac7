//! Texts that an editor has open: newer than what is on disk, and known by version.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::{LoadError, Loader};

/// The documents that an editor has open, by path.
#[derive(Debug, Clone, Default)]
pub struct Documents {
    open: BTreeMap<String, Document>,
}

/// A text that an editor has open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Counts its changes, as the editor does.
    pub version: i32,
    /// Its text.
    pub text: Arc<str>,
}

impl Documents {
    /// None yet.
    #[must_use]
    pub fn new() -> Documents {
        Documents::default()
    }

    /// Opens a document or changes its text. Answers whether that is news: a version that is older than what is known is not taken.
    pub fn set(&mut self, path: impl Into<String>, version: i32, text: impl Into<Arc<str>>) -> bool {
        let path = path.into();
        if self.open.get(&path).is_some_and(|known| known.version > version) {
            return false;
        }
        let text = text.into();
        self.open.insert(path, Document { version, text });
        true
    }

    /// Closes a document: from now on what is on disk counts.
    pub fn close(&mut self, path: &str) -> Option<Document> {
        self.open.remove(path)
    }

    /// A document that is open.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<&Document> {
        self.open.get(path)
    }

    /// All that are open, by path.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Document)> {
        self.open.iter().map(|(path, document)| (path.as_str(), document))
    }

    /// A loader that reads open documents as they are in the editor, and all else from `below`. Paths of both are the same.
    #[must_use]
    pub fn over<'a>(&'a self, below: &'a dyn Loader) -> Overlay<'a> {
        let documents = self;
        Overlay { documents, below }
    }
}

/// What [`Documents::over`] gives.
pub struct Overlay<'a> {
    documents: &'a Documents,
    below: &'a dyn Loader,
}

impl Loader for Overlay<'_> {
    fn read(&self, path: &str) -> Result<Arc<[u8]>, LoadError> {
        match self.documents.get(path) {
            Some(document) => Ok(document.text.as_bytes().into()),
            None => self.below.read(path),
        }
    }

    fn is_file(&self, path: &str) -> bool {
        self.documents.get(path).is_some() || self.below.is_file(path)
    }

    fn is_directory(&self, path: &str) -> bool {
        let prefix = format!("{}/", path.trim_end_matches('/'));
        let mut open = self.documents.iter();
        self.below.is_directory(path) || open.any(|(path, _)| path.starts_with(&prefix))
    }

    fn list(&self, directory: &str) -> Result<Vec<String>, LoadError> {
        let mut files = match self.below.list(directory) {
            Ok(files) => files,
            Err(LoadError::NotFound) => Vec::new(),
            Err(error) => return Err(error),
        };
        let prefix = format!("{}/", directory.trim_end_matches('/'));
        let open = self.documents.iter().map(|(path, _)| path);
        files.extend(open.filter(|path| path.starts_with(&prefix)).map(str::to_owned));
        files.sort();
        files.dedup();
        if files.is_empty() && !self.is_directory(directory) {
            return Err(LoadError::NotFound);
        }
        Ok(files)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryLoader;

    #[test]
    fn an_open_document_hides_what_is_on_disk_until_it_is_closed() {
        let disk = MemoryLoader::new().with("a/main.mcl", "old");
        let mut documents = Documents::new();
        assert!(documents.set("a/main.mcl", 2, "new"));
        assert!(!documents.set("a/main.mcl", 1, "late"));
        assert!(documents.set("a/other.mcl", 1, "x"));
        let loader = documents.over(&disk);
        assert_eq!(loader.read("a/main.mcl").as_deref(), Ok("new".as_bytes()));
        assert_eq!(
            loader.list("a/"),
            Ok(vec!["a/main.mcl".to_owned(), "a/other.mcl".to_owned()])
        );
        documents.close("a/main.mcl");
        let loader = documents.over(&disk);
        assert_eq!(loader.read("a/main.mcl").as_deref(), Ok("old".as_bytes()));
    }
}
