//! Everything that is known about a model without executing it, for editors, the linter and the reference: also of half-written texts.
//!
//! [`Workspace::analyse`] runs the stages of [`check`](crate::compile::check), but goes on behind errors, and keeps what they found: trees
//! with tokens and comments, the resolved model, what each name means. An [`Analysis`] is plain data with queries; nothing in it asks a
//! file or the library again.
//!
//! ```text
//! Workspace: texts and trees from last time ─ analyse ─▶ Analysis ─┬ diagnostics, in the order in which they count
//!                                                                  ├ names:      definition, references
//!                                                                  ├ shapes:     the entity of what a variable or expression holds
//!                                                                  ├ completion: what can stand at a place
//!                                                                  ├ describe:   entities, relations, typedefs, functions as data
//!                                                                  └ symbols:    the outline of a file
//! ```
//!
//! What only execution finds out, as a value that is set twice, is no part of it: that can read files and ask the machine.

pub mod completion;
pub mod describe;
mod names;
mod scan;
mod shapes;
mod symbols;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use setpoint_cf_functions::declared::Declared;
use setpoint_cf_names::hir::Model;
use setpoint_cf_names::ids::{EntityId, NamespaceId, Symbol};
use setpoint_cf_names::plugins::{PluginSettings, Plugins};
use setpoint_cf_names::project::{self, Loaded, MAIN};
use setpoint_cf_names::resolve;
use setpoint_cf_syntax::{Lexed, ast, lex};
use setpoint_diagnostics::{Diagnostics, FileId, Loader, MemoryLoader, NameIndex, SourceMap, Span};
use setpoint_graph::Library;

use crate::compile::{self, Functions};
use crate::ports;

pub use setpoint_cf_names::resolve::mentions::{Mention, Target};
pub use shapes::{Shape, Unknown};
pub use symbols::{Outline, OutlineKind};

/// Texts and their trees, kept from one analysis to the next: what did not change is not parsed again.
#[derive(Debug, Default)]
pub struct Workspace {
    sources: SourceMap,
    parsed: project::ParsedFiles,
}

/// Which model is analysed.
#[derive(Debug, Clone, Default)]
pub struct AnalysisOptions {
    /// The main file; `main.cf` if it is not said.
    pub main: Option<String>,
    /// Directories that are searched for modules, after those of the project.
    pub module_path: Vec<String>,
    /// Whether a directory without a `project.yml` is no project, which is an error.
    pub needs_project: bool,
}

/// More texts of earlier times than this are not kept.
const MOST_TEXTS: usize = 2000;

impl Workspace {
    /// Without texts yet.
    #[must_use]
    pub fn new() -> Workspace {
        Workspace::default()
    }

    /// Analyses the model in the directory that `loader` reads.
    pub fn analyse(&mut self, options: &AnalysisOptions, loader: &dyn Loader, library: &Library) -> Analysis {
        if self.sources.files().count() > MOST_TEXTS {
            *self = Workspace::default();
        }
        let mut diagnostics = Diagnostics::new();
        let mut load = project::Options {
            main: options.main.clone(),
            module_path: options.module_path.clone(),
            needs_project: options.needs_project,
            // Whoever only looks at a model runs nothing of it.
            plugins: PluginSettings::Named,
            parsed: std::mem::take(&mut self.parsed),
        };
        let loaded = project::load(
            loader,
            library,
            "",
            &mut load,
            &mut self.sources,
            &mut diagnostics,
        );
        self.parsed = load.parsed;
        let mut found = Diagnostics::new();
        let library = &ports::with_inputs(library, &loaded.project, &BTreeMap::new());
        let functions = Functions {
            plugins: Arc::new(Plugins::new(
                &load.plugins,
                &loaded.project.name,
                loaded.python(),
                &loaded.module_path,
                loader,
            )),
            declared: Declared::new(&loaded, loader, library, &mut self.sources, &mut diagnostics),
        };
        let (mut model, mentions) =
            resolve::resolve_as_far_as_possible(&loaded, library, &functions, &mut found);
        model.plugins = Some(functions.plugins);
        // What does not parse may have defined what is then not found.
        if !diagnostics.has_errors() {
            diagnostics.append(found);
        }
        if !diagnostics.has_errors() {
            let sources = &mut self.sources;
            let mut reads = BTreeSet::new();
            compile::bindings(
                loader,
                &loaded,
                &model,
                library,
                sources,
                &mut diagnostics,
                &mut reads,
            );
        }
        Analysis::new(self.sources.clone(), diagnostics, loaded, model, mentions)
    }
}

/// What is known of everything that is built in: the modules `std` and `setpoint`.
#[must_use]
pub fn built_in(library: &Library) -> Analysis {
    let imports: String = project::built_in_namespaces(library)
        .iter()
        .map(|name| format!("import {name}\n"))
        .collect();
    let loader = MemoryLoader::new().with("main.cf", imports);
    Workspace::new().analyse(&AnalysisOptions::default(), &loader, library)
}

/// What is known about a model.
#[derive(Debug)]
pub struct Analysis {
    /// All texts. A [`Workspace`] has earlier ones too; [`Analysis::files`] are those of this model.
    pub sources: SourceMap,
    /// What is wrong, as `setpoint check` says it.
    pub diagnostics: Diagnostics,
    /// Its project, modules and files.
    pub loaded: Loaded,
    /// The resolved model, as far as it could be understood.
    pub model: Model,
    files: Vec<(FileId, Lexed)>,
    /// Every name, in the order of the texts.
    index: NameIndex<Target>,
    /// What variables hold, by where they are declared.
    shapes: FxHashMap<Span, Shape>,
    unknown: Vec<(Span, Unknown)>,
    /// For each entity the number of what each of its members is: the same for one member in all entities that have it.
    members: Vec<Vec<u32>>,
    symbols: FxHashMap<Arc<str>, Symbol>,
    used_imports: FxHashSet<Span>,
    positional: Vec<(Span, EntityId, Symbol)>,
    declared: Vec<Vec<Symbol>>,
}

impl Analysis {
    fn new(
        sources: SourceMap,
        diagnostics: Diagnostics,
        loaded: Loaded,
        model: Model,
        mut mentions: resolve::mentions::Mentions,
    ) -> Analysis {
        let files = loaded.files.iter().map(|file| {
            let id = file.tree.file;
            (id, lex(id, &sources.file(id).text))
        });
        let files = files.collect();
        let found = shapes::shapes(&model, &mentions);
        mentions.list.extend(found.members);
        let symbols = model.symbols.iter().enumerate();
        let symbols = symbols.map(|(at, text)| (text.clone(), Symbol(at as u32)));
        let mut analysis = Analysis {
            symbols: symbols.collect(),
            members: names::member_classes(&model),
            files,
            index: NameIndex::default(),
            shapes: found.variables,
            unknown: found.unknown,
            used_imports: mentions.used_imports,
            positional: mentions.positional,
            declared: mentions.declared,
            sources,
            diagnostics,
            loaded,
            model,
        };
        analysis.index = names::index(&analysis, mentions.list);
        analysis
    }

    /// The texts that the model is made of, the main file's first. Those that are built in have names in angle brackets.
    pub fn files(&self) -> impl Iterator<Item = FileId> + '_ {
        self.files.iter().map(|(file, _)| *file)
    }

    /// The tokens and comments of a file of the model.
    #[must_use]
    pub fn lexed(&self, file: FileId) -> Option<&Lexed> {
        let found = self.files.iter().find(|(known, _)| *known == file);
        found.map(|(_, lexed)| lexed)
    }

    /// The tree of a file of the model.
    #[must_use]
    pub fn tree(&self, file: FileId) -> Option<&ast::File> {
        self.namespace_of(file)
            .map(|namespace| &*self.loaded.files[namespace.index()].tree)
    }

    /// The namespace that a file is.
    #[must_use]
    pub fn namespace_of(&self, file: FileId) -> Option<NamespaceId> {
        let at = self.loaded.files.iter().position(|of| of.tree.file == file)?;
        Some(NamespaceId(at as u32))
    }

    /// A namespace by its whole name.
    #[must_use]
    pub fn namespace(&self, name: &str) -> Option<NamespaceId> {
        let at = self.model.namespaces.iter().position(|of| &*of.name == name)?;
        Some(NamespaceId(at as u32))
    }

    /// A file of the model by its name.
    #[must_use]
    pub fn file_named(&self, name: &str) -> Option<FileId> {
        self.files().find(|file| &*self.sources.file(*file).name == name)
    }

    /// Whether a text belongs to the project: neither built in nor of a module that lies outside of it.
    #[must_use]
    pub fn is_own(&self, file: FileId) -> bool {
        let name = &*self.sources.file(file).name;
        !name.starts_with(['<', '/']) && !name.split('/').any(|part| part == "..")
    }

    /// Whether a namespace is the main file's.
    #[must_use]
    pub fn is_main(&self, namespace: NamespaceId) -> bool {
        &*self.model.namespaces[namespace.index()].name == MAIN
    }

    /// The number of a name that occurs in the model.
    #[must_use]
    pub fn symbol(&self, text: &str) -> Option<Symbol> {
        self.symbols.get(text).copied()
    }

    /// What a variable holds, by where it is declared.
    #[must_use]
    pub fn shape_of(&self, declared: Span) -> Option<Shape> {
        self.shapes.get(&declared).copied()
    }

    /// Names that nothing has, in no order; some twice.
    #[must_use]
    pub fn unknown(&self) -> &[(Span, Unknown)] {
        &self.unknown
    }

    /// Imports, as whole statements, that some name needs.
    #[must_use]
    pub fn used_imports(&self) -> &FxHashSet<Span> {
        &self.used_imports
    }

    /// What constructors are given by position: the value, the entity and its member.
    #[must_use]
    pub fn positional(&self) -> &[(Span, EntityId, Symbol)] {
        &self.positional
    }

    /// The text at a place.
    #[must_use]
    pub fn text_at(&self, span: Span) -> &str {
        let text = &self.sources.file(span.file).text;
        text.get(span.start as usize..span.end as usize)
            .unwrap_or_default()
    }
}
