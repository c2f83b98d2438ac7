//! The documents that the client has open, as they are at one moment.

use std::collections::BTreeMap;
use std::sync::Arc;

use lsp_types::TextDocumentContentChangeEvent;

use crate::positions::{Encoding, Text};

/// A text that the client has open.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    pub(crate) version: i32,
    /// Tells it apart from one that was closed: the generation in which it was opened.
    pub(crate) opened: u64,
    pub(crate) text: Text,
}

/// What requests are answered from. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Snapshot {
    /// By path, or by address for what is no file.
    pub(crate) documents: Arc<BTreeMap<String, Document>>,
    /// Counts changes of texts.
    pub(crate) generation: u64,
    /// Counts what was heard of files on disk.
    pub(crate) disk: u64,
}

impl Snapshot {
    pub(crate) fn get(&self, path: &str) -> Option<&Document> {
        self.documents.get(path)
    }

    /// Opens a document.
    pub(crate) fn open(&mut self, path: String, version: i32, text: String) {
        let document = Document {
            version,
            opened: self.generation,
            text: Text::new(text),
        };
        Arc::make_mut(&mut self.documents).insert(path, document);
        self.generation += 1;
    }

    /// Changes a document, one change upon the other. What is not open is not changed.
    pub(crate) fn change(
        &mut self,
        path: &str,
        version: i32,
        changes: Vec<TextDocumentContentChangeEvent>,
        encoding: Encoding,
    ) {
        let Some(document) = Arc::make_mut(&mut self.documents).get_mut(path) else {
            return;
        };
        for change in changes {
            document.text = match change.range {
                Some(range) => document.text.replaced(range, &change.text, encoding),
                None => Text::new(change.text),
            };
        }
        document.version = version;
        self.generation += 1;
    }

    /// Closes a document: from now on what is on disk counts.
    pub(crate) fn close(&mut self, path: &str) {
        if Arc::make_mut(&mut self.documents).remove(path).is_some() {
            self.generation += 1;
        }
    }

    /// Notes that files on disk may be other ones.
    pub(crate) fn touch(&mut self) {
        self.disk += 1;
        self.generation += 1;
    }
}
