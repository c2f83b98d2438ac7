//! Everything that is known about a program, for editors and linters: also of half-written texts and of what nothing uses.
//!
//! [`Workspace::analyse`] runs the stages of [`compile()`](crate::compile()), but goes on behind errors, and keeps what they found: syntax with
//! tokens and comments, blocks and the names that are known in them, what each name means, types. An [`Analysis`] is plain data with
//! queries; nothing in it asks a file or the library again.
//!
//! ```text
//! Workspace: texts and syntax from last time ─ analyse ─▶ Analysis ─┬ diagnostics, in the order in which they count
//!                                                                   ├ names:      definition, references, what nothing uses
//!                                                                   ├ visible:    names known at a place, and behind an alias
//!                                                                   ├ types:      of what stands at a place, in all instances
//!                                                                   ├ completion: what can stand at a place
//!                                                                   └ symbols:    the outline of a file
//! ```

mod completion;
mod consequences;
mod names;
mod symbols;
mod types;
mod visible;

use std::sync::Arc;

use setpoint_diagnostics::{Diagnostic, Diagnostics, FileId, Loader, NameIndex, SourceMap, Span};
use setpoint_flow::Stop;
use setpoint_graph::Library;

use crate::compile::{Compiled, lowered};
use crate::hir::Hir;
use crate::scope::{Extent, Frame, FrameId, Mentions, ParseCache, ResolveInput, resolve};
use crate::stack::with_stack;
use crate::types::{Inference, Typed};

pub use crate::scope::{AliasDefinition, AliasId, Entry, Mention, ParsedFile, Space, Target};
pub use completion::{CallAt, Expected, QualifiedName};
pub use names::{Name, Shadowing, Unused};
pub use symbols::{Symbol, SymbolKind};
pub use visible::Visible;

/// How to analyse.
#[derive(Debug, Clone, Default)]
pub struct AnalysisOptions {
    /// The global modules directory, ending in `/`.
    pub modules_directory: Option<String>,
    /// Ends the analysis early, from any thread: a newer text makes it worthless.
    pub stop: Stop,
    /// Whether to leave out what a program is made into, which only [`Analysis::too_large`] then tells of.
    pub without_program: bool,
}

/// Texts and their syntax, kept from one analysis to the next: what did not change is not parsed again.
#[derive(Debug, Default)]
pub struct Workspace {
    cache: ParseCache,
    sources: SourceMap,
}

impl Workspace {
    /// Without texts yet.
    #[must_use]
    pub fn new() -> Workspace {
        Workspace::default()
    }

    /// Analyses a program. None if it was stopped.
    pub fn analyse(
        &mut self,
        entry: &Entry,
        options: &AnalysisOptions,
        loader: &dyn Loader,
        library: &Library,
    ) -> Option<Analysis> {
        let input = ResolveInput {
            entry,
            loader,
            library,
            modules_directory: options.modules_directory.as_deref(),
            extent: Extent::Everything,
            stop: &options.stop,
        };
        with_stack(|| self.stages(&input, options.without_program))
    }

    fn stages(&mut self, input: &ResolveInput<'_>, without_program: bool) -> Option<Analysis> {
        let (library, stop) = (input.library, input.stop);
        let mut diagnostics = Diagnostics::new();
        let resolved = resolve(input, &mut self.cache, &mut self.sources, &mut diagnostics);
        if stop.is_stopped() {
            return None;
        }
        let mut inference = Inference::new(&resolved.hir, library);
        let mut program = None;
        if resolved.is_acyclic {
            inference.infer_program(&mut diagnostics, true);
        }
        if resolved.is_acyclic && !without_program {
            program = lowered(&resolved.hir, inference.typed(), library, &mut diagnostics);
        }
        diagnostics.merge(&self.sources);
        if stop.is_stopped() {
            return None;
        }
        diagnostics.extend(resolved.unused);
        if resolved.unused_is_acyclic {
            let warnings = inference.infer_unused(&diagnostics);
            diagnostics.extend(warnings);
        }
        let typed = inference.into_typed();
        let files = resolved.parsed.iter().map(|(_, parsed)| &**parsed);
        consequences::drop_consequences(&mut diagnostics, files, &self.sources);
        let mut analysis = Analysis {
            sources: self.sources.clone(),
            diagnostics,
            compiled: Compiled {
                program,
                files: resolved.files,
                plain: resolved.plain,
                directory: resolved.directory,
                remote_imports: resolved.remote_imports,
            },
            hir: resolved.hir,
            typed,
            files: resolved.parsed,
            imports: resolved.imports,
            mentions: resolved.mentions,
            frames: resolved.frames,
            class_frames: resolved.class_frames,
            index: NameIndex::default(),
            copies: types::Copies::default(),
        };
        analysis.index = names::index(&analysis);
        analysis.copies = types::copies(&analysis.hir);
        (!stop.is_stopped()).then_some(analysis)
    }
}

/// Analyses a program once. None if it was stopped.
#[must_use]
pub fn analyse(
    entry: &Entry,
    options: &AnalysisOptions,
    loader: &dyn Loader,
    library: &Library,
) -> Option<Analysis> {
    Workspace::new().analyse(entry, options, loader, library)
}

/// What is known about a program.
#[derive(Debug)]
pub struct Analysis {
    /// All texts. A [`Workspace`] that has analysed other programs has theirs too; [`Analysis::files`] are those of this one.
    pub sources: SourceMap,
    /// What is wrong: first what [`compile()`](crate::compile()) says, in its order, then what it would not have come to; as warnings
    /// also what would be wrong with things that nothing uses, if something did.
    pub diagnostics: Diagnostics,
    /// What compiling gives.
    pub compiled: Compiled,
    /// The resolved program, as far as it could be understood.
    pub hir: Hir,
    /// Types of it.
    pub typed: Typed,
    files: Vec<(FileId, Arc<ParsedFile>)>,
    imports: Vec<(Span, FileId)>,
    mentions: Mentions,
    frames: Vec<Frame>,
    class_frames: Vec<Option<FrameId>>,
    /// Every name, in the order of the texts.
    index: NameIndex<Target>,
    /// The definitions whose name stands at a place: several where its file is resolved for each of its imports.
    copies: types::Copies,
}

impl Analysis {
    /// The texts that the program is made of, each once, the entry's first.
    pub fn files(&self) -> impl Iterator<Item = (FileId, &ParsedFile)> {
        self.files.iter().map(|(id, parsed)| (*id, &**parsed))
    }

    /// A text of the program with its syntax.
    #[must_use]
    pub fn parsed(&self, file: FileId) -> Option<&ParsedFile> {
        self.files().find(|(id, _)| *id == file).map(|(_, parsed)| parsed)
    }

    /// A text of the program by its name.
    #[must_use]
    pub fn file_named(&self, name: &str) -> Option<FileId> {
        self.files()
            .map(|(id, _)| id)
            .find(|id| &*self.sources.file(*id).name == name)
    }

    /// The imports that were followed to a text: statement and text.
    #[must_use]
    pub fn imports(&self) -> &[(Span, FileId)] {
        &self.imports
    }

    /// That a program without errors would be too large when it runs, where that was left out.
    #[must_use]
    pub fn too_large(&self, library: &Library) -> Option<Diagnostic> {
        if self.diagnostics.has_errors() || self.compiled.program.is_some() {
            return None;
        }
        let mut found = Diagnostics::new();
        with_stack(|| lowered(&self.hir, &self.typed, library, &mut found));
        found.into_iter().next()
    }

    /// Whether a text is the program's own: neither compiled in nor of a module from elsewhere.
    #[must_use]
    pub fn is_own(&self, file: FileId) -> bool {
        self.compiled.is_own(&self.sources.file(file).name)
    }

    /// An import or include that gives a name to something.
    #[must_use]
    pub fn alias(&self, id: AliasId) -> &AliasDefinition {
        &self.mentions.aliases[id.0 as usize]
    }
}

#[cfg(test)]
mod tests;
