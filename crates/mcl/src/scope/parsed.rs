//! What can be said about a text alone, kept by name and content: a file that is imported often, or that did not change since it
//! was last looked at, is parsed and checked once.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use setpoint_diagnostics::{Diagnostics, FileId, SourceMap, Span};

use super::cycles::{self, FileProblems};
use super::init;
use super::nesting::Nesting;
use crate::stack::with_stack;
use crate::syntax::{self, Ast, Comment, Tokens};

/// A text with everything that follows from it alone.
#[derive(Debug)]
pub struct ParsedFile {
    /// The text.
    pub text: Arc<str>,
    /// What it says.
    pub ast: Arc<Ast>,
    /// All its tokens.
    pub tokens: Tokens,
    /// Its comments, in order.
    pub comments: Vec<Comment>,
    /// What of it did not parse.
    pub(crate) damaged: Vec<Span>,
    /// What is wrong with its syntax.
    pub(super) syntax: Diagnostics,
    /// What is wrong with single statements and strings, and classes that are there twice.
    pub(super) structure: Diagnostics,
    pub(super) nesting: Arc<Nesting>,
    /// Clashing names and circles.
    pub(super) problems: FileProblems,
}

impl ParsedFile {
    fn of(file: FileId, text: Arc<str>) -> ParsedFile {
        let mut syntax = Diagnostics::new();
        let parsed = syntax::parse(file, &text, &mut syntax);
        let mut structure = Diagnostics::new();
        init::check(&parsed.ast, &mut structure);
        if !structure.has_errors() {
            syntax::check_strings(&parsed.ast, &mut structure);
        }
        let mut duplicates = Diagnostics::new();
        let nesting = Nesting::of(&parsed.ast, &mut duplicates);
        if !structure.has_errors() {
            structure.append(duplicates);
        }
        let problems = cycles::check(&parsed.ast, &nesting);
        ParsedFile {
            text,
            ast: Arc::new(parsed.ast),
            tokens: parsed.tokens,
            comments: parsed.comments,
            damaged: parsed.damaged,
            syntax,
            structure,
            nesting: Arc::new(nesting),
            problems,
        }
    }

    /// What is wrong with its syntax, if anything is.
    pub(crate) fn syntax_errors(&self) -> Option<&Diagnostics> {
        self.syntax.has_errors().then_some(&self.syntax)
    }

    /// Whether something is wrong with the text alone, so that compiling ends before its names are looked up.
    pub(super) fn is_broken(&self) -> bool {
        self.syntax.has_errors() || self.structure.has_errors()
    }
}

/// Files as they were last parsed. Whoever analyses texts again and again keeps one.
#[derive(Debug, Default)]
pub struct ParseCache {
    /// Places in the map of texts, by name. They never change, so spans of files that stay as they are stay right.
    ids: FxHashMap<Arc<str>, FileId>,
    parsed: FxHashMap<FileId, (Arc<ParsedFile>, u64)>,
    /// Counts compilations and analyses.
    round: u64,
}

/// Files that so many rounds did not need are forgotten.
const KEPT_ROUNDS: u64 = 16;

impl ParseCache {
    /// Nothing parsed yet.
    #[must_use]
    pub fn new() -> ParseCache {
        ParseCache::default()
    }

    /// Begins a compilation or analysis.
    pub(super) fn begin(&mut self) {
        self.round += 1;
        let round = self.round;
        self.parsed.retain(|_, (_, used)| *used + KEPT_ROUNDS >= round);
    }

    /// The place of a text in the map, which then has it.
    pub(super) fn place(&mut self, sources: &mut SourceMap, key: &str, name: &str, text: &str) -> FileId {
        if let Some(id) = self.ids.get(key) {
            if *sources.file(*id).text != *text {
                sources.replace(*id, text);
            }
            return *id;
        }
        let id = sources.add(name, text);
        self.ids.insert(key.into(), id);
        id
    }

    /// A text, parsed now or before. `key` tells apart what has one name in different loaders.
    pub(super) fn parse(
        &mut self,
        sources: &mut SourceMap,
        key: &str,
        name: &str,
        text: &str,
    ) -> (FileId, Arc<ParsedFile>) {
        let id = self.place(sources, key, name, text);
        if let Some((known, used)) = self.parsed.get_mut(&id)
            && *known.text == *text
        {
            *used = self.round;
            return (id, known.clone());
        }
        let text = sources.file(id).text.clone();
        let parsed = Arc::new(with_stack(|| ParsedFile::of(id, text)));
        self.parsed.insert(id, (parsed.clone(), self.round));
        (id, parsed)
    }
}
