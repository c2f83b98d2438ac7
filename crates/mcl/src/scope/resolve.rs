//! Names to meanings, block by block, following imports.
//!
//! Scopes are *frames* that point outward. All names that a block produces are in its frame before anything in it is looked
//! up, which is what makes the order of statements irrelevant; that no definition needs itself was checked before.
//! A class body is resolved when it is first included; those that nothing includes may be looked at afterwards, for warnings.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use setpoint_diagnostics::{CodeInfo, Diagnostic, Diagnostics, FileId, Loader, Severity, SourceMap, Span};
use setpoint_flow::Stop;
use setpoint_graph::Library;
use smallvec::{SmallVec, smallvec};

use super::classes::{ClassSource, IncludeSource};
use super::mentions::{AliasId, Mentions};
use super::modules::{Missing, ModuleLocation, RemoteImport, enter_directory};
use super::parsed::{ParseCache, ParsedFile};
use super::ranking::{Order, RankedDiagnostic, Step, in_order};
use super::sharing::{Shared, Way, WayId};
use super::{codes, recursion};
use crate::hir::{BodyId, ClassId, DefinitionId, FunctionId, Hir, IncludeId, Owner};
use crate::syntax::{Ast, StmtKind};

/// Where a program begins.
#[derive(Debug, Clone)]
pub enum Entry {
    /// Code that was given as text, under a name for messages. Local imports are relative to the working directory.
    Code {
        /// Name for messages.
        name: String,
        /// The text.
        text: String,
    },
    /// One file, without metadata.
    File(String),
    /// A directory with a `metadata.yaml` or a `main.mcl`; empty or ending in `/`.
    Directory(String),
}

/// How far resolution goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// What a program needs. A file with errors is looked at no further.
    Program,
    /// Everything that can be told: also of files with errors, and of what nothing uses.
    Everything,
}

/// What resolution is given.
pub(crate) struct ResolveInput<'a> {
    pub(crate) entry: &'a Entry,
    pub(crate) loader: &'a dyn Loader,
    pub(crate) library: &'a Library,
    pub(crate) modules_directory: Option<&'a str>,
    pub(crate) extent: Extent,
    /// Ends it early; what it gives then is of no use.
    pub(crate) stop: &'a Stop,
}

/// What resolution gives.
#[derive(Debug, Default)]
pub(crate) struct Resolved {
    /// The program. After errors it is what could be understood.
    pub(crate) hir: Hir,
    /// Whether no definition of it needs itself.
    pub(crate) is_acyclic: bool,
    /// The same, with the classes that nothing includes.
    pub(crate) unused_is_acyclic: bool,
    /// What would be wrong with classes that nothing includes, if something did, as warnings.
    pub(crate) unused: Vec<Diagnostic>,
    /// What names mean.
    pub(crate) mentions: Mentions,
    /// Blocks and what they name.
    pub(crate) frames: Vec<Frame>,
    /// The block of each class, where it was resolved.
    pub(crate) class_frames: Vec<Option<FrameId>>,
    /// The texts of the program, each once, the entry's first.
    pub(crate) parsed: Vec<(FileId, Arc<ParsedFile>)>,
    /// Imports that were followed to a text.
    pub(crate) imports: Vec<(Span, FileId)>,
    /// Paths of all files that belong to the program (texts, metadata), for a deploy.
    pub(crate) files: Vec<String>,
    /// Imports of modules from elsewhere, in the order in which they were met.
    pub(crate) remote_imports: Vec<RemoteImport>,
    /// Whether the entry came without metadata, so that `files/` is not part of it.
    pub(crate) plain: bool,
    /// Root directory of the program.
    pub(crate) directory: String,
}

/// Resolves a program. Errors go to the sink, in the order in which they count; behind them what compiling would not come to.
pub(crate) fn resolve(
    input: &ResolveInput<'_>,
    cache: &mut ParseCache,
    sources: &mut SourceMap,
    diagnostics: &mut Diagnostics,
) -> Resolved {
    cache.begin();
    let entry = input.entry;
    let mut resolver = Resolver::new(input, cache, sources);
    let mut resolved = Resolved::default();
    let place = match entry.place(input.loader) {
        Ok(place) => place,
        Err(missing) => {
            diagnostics.push(resolver.no_entry(entry, missing));
            return resolved;
        }
    };
    resolved.plain = place.metadata.is_none();
    resolved.directory = place.directory.clone();
    let text = match entry {
        Entry::Code { name, text } => Ok((name.clone(), text.as_str().into())),
        Entry::File(_) | Entry::Directory(_) => resolver.read(&place).map(|text| (place.file.clone(), text)),
    };
    resolver.places.push(place);
    match text {
        Ok((name, text)) => resolver.entry(&name, &text),
        Err(message) => {
            let name = resolver.places[0].file.clone();
            let diagnostic = resolver.at_beginning(&name, &codes::MODULE_NOT_FOUND, message);
            resolver.errors.push(RankedDiagnostic {
                is_beyond: false,
                way: WayId(0),
                order: Order::new(),
                diagnostic,
            });
        }
    }
    resolver.finish(resolved, diagnostics)
}

impl Entry {
    /// Where the program begins.
    fn place(&self, loader: &dyn Loader) -> Result<ModuleLocation, Missing> {
        let (directory, file) = match self {
            Entry::Code { .. } => (String::new(), String::new()),
            Entry::File(path) => {
                let directory = path.rfind('/').map(|at| path[..=at].to_owned());
                (directory.unwrap_or_default(), path.clone())
            }
            Entry::Directory(directory) => return enter_directory(loader, directory, None, false),
        };
        Ok(ModuleLocation {
            directory,
            metadata: None,
            file,
            parent: None,
            embedded: false,
        })
    }
}

pub(super) struct Resolver<'a> {
    pub(super) loader: &'a dyn Loader,
    pub(super) library: &'a Library,
    pub(super) modules_directory: Option<&'a str>,
    extent: Extent,
    stop: &'a Stop,
    cache: &'a mut ParseCache,
    pub(super) sources: &'a mut SourceMap,
    pub(super) hir: Hir,
    pub(super) frames: Vec<Frame>,
    pub(super) files: Vec<File>,
    pub(super) places: Vec<ModuleLocation>,
    pub(super) class_sources: Vec<ClassSource>,
    pub(super) include_sources: Vec<IncludeSource>,
    /// Files whose imports are being followed, outermost first.
    pub(super) loading: Vec<String>,
    pub(super) library_variables: HashMap<String, DefinitionId>,
    /// How many class bodies are being resolved inside each other.
    pub(super) including: u32,
    /// How many blocks are being resolved inside each other, bodies of included classes among them.
    pub(super) depth: u32,
    pub(super) errors: Vec<RankedDiagnostic>,
    /// The ways to all files, the entry's first.
    pub(super) ways: Vec<Way>,
    touched: Vec<String>,
    /// Texts that were read.
    texts: FxHashMap<String, Arc<str>>,
    pub(super) mentions: Mentions,
    /// Aliases that the name which is looked up goes through, innermost first.
    pub(super) trail: Vec<AliasId>,
    pub(super) imports: Vec<(Span, FileId)>,
    pub(super) remote_imports: Vec<RemoteImport>,
    pub(super) shared: Shared,
}

/// A text that is part of the program; one for each import that leads to it, or one that they share.
pub(super) struct File {
    pub(super) id: FileId,
    pub(super) parsed: Arc<ParsedFile>,
    /// Whether something is wrong with the text alone, or with that of a file that imports it.
    pub(super) is_broken: bool,
    pub(super) place: usize,
    /// The ways that lead here: one, but for a file that imports share.
    pub(super) ways: SmallVec<[WayId; 1]>,
    /// Whether something was found wrong with it.
    pub(super) has_errors: bool,
    /// Whether further imports share it.
    pub(super) is_shared: bool,
    pub(super) module_directory: Arc<str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameId(pub(crate) usize);

/// The names of a block, a file, or the parameters of a function or class.
#[derive(Debug)]
pub(crate) struct Frame {
    /// The text in which its names can be used.
    pub(crate) extent: Span,
    /// Where the block begins inside of another, if it is one.
    pub(super) opened_at: Option<u32>,
    pub(crate) parent: Option<FrameId>,
    pub(super) file: usize,
    pub(super) owner: Owner,
    pub(super) body: BodyId,
    pub(crate) variables: FxHashMap<Arc<str>, DefinitionId>,
    pub(crate) functions: FxHashMap<Arc<str>, FunctionId>,
    pub(crate) classes: FxHashMap<Arc<str>, ClassId>,
    pub(crate) aliases: BTreeMap<Arc<str>, (Alias, AliasId)>,
    /// `import … as *`, in source order.
    pub(crate) stars: Vec<(Alias, AliasId)>,
}

/// What stands behind an alias.
#[derive(Debug, Clone)]
pub(crate) enum Alias {
    /// A file or module directory: its top.
    Module(FrameId),
    /// A core module: its functions and variables, and its embedded text if it has one.
    System(Arc<str>, Option<FrameId>),
    /// `include … as`.
    Include(IncludeId),
    /// An import that failed, which was reported. What it would have held is not known.
    Failed,
}

/// Drops what is said about the circle of `$x = $x + 1` where another `$x` of the block makes a name that is defined twice of it.
fn drop_circles_of_clashes(diagnostics: &mut Diagnostics) {
    let clashes: Vec<Span> = diagnostics
        .iter()
        .filter(|found| *found.code == codes::DUPLICATE_NAME)
        .map(setpoint_diagnostics::Diagnostic::rule_place)
        .collect();
    if clashes.is_empty() {
        return;
    }
    let is_inside = |span: Span| {
        let contains =
            |clash: &Span| clash.file == span.file && clash.start <= span.start && span.end <= clash.end;
        clashes.iter().any(contains)
    };
    let kept: Vec<Diagnostic> = std::mem::take(diagnostics)
        .into_iter()
        .filter(|found| *found.code != codes::CYCLE || !is_inside(found.rule_place()))
        .collect();
    diagnostics.extend(kept);
}

impl<'a> Resolver<'a> {
    fn entry(&mut self, name: &str, text: &str) {
        self.loading.push(self.places[0].file.clone());
        if let Some(file) = self.load(name, text, 0, WayId(0), false) {
            self.top(file, true);
        }
        self.loading.pop();
    }

    fn new(input: &ResolveInput<'a>, cache: &'a mut ParseCache, sources: &'a mut SourceMap) -> Resolver<'a> {
        Resolver {
            loader: input.loader,
            library: input.library,
            modules_directory: input.modules_directory,
            extent: input.extent,
            stop: input.stop,
            cache,
            sources,
            hir: Hir::default(),
            frames: Vec::new(),
            files: Vec::new(),
            places: Vec::new(),
            class_sources: Vec::new(),
            include_sources: Vec::new(),
            loading: Vec::new(),
            library_variables: HashMap::new(),
            including: 0,
            depth: 0,
            errors: Vec::new(),
            ways: vec![Way {
                import: None,
                order: Order::new(),
            }],
            touched: Vec::new(),
            texts: FxHashMap::default(),
            mentions: Mentions::default(),
            trail: Vec::new(),
            imports: Vec::new(),
            remote_imports: Vec::new(),
            shared: Shared::default(),
        }
    }

    /// That there is nothing with which the program could begin.
    fn no_entry(&mut self, entry: &Entry, missing: Missing) -> Diagnostic {
        let (code, message) = match missing {
            Missing::NotFound(message) => (&codes::MODULE_NOT_FOUND, message),
            Missing::BadMetadata(message) => {
                (&codes::BAD_METADATA, format!("bad `metadata.yaml`: {message}"))
            }
        };
        let name = match entry {
            Entry::Directory(directory) => format!("{directory}metadata.yaml"),
            Entry::File(path) => path.clone(),
            Entry::Code { name, .. } => name.clone(),
        };
        self.at_beginning(&name, code, message)
    }

    /// An error about a file whose text is not known.
    fn at_beginning(&mut self, name: &str, code: &'static CodeInfo, message: String) -> Diagnostic {
        let file = self.cache.place(self.sources, name, name, "");
        Diagnostic::error(code, Span::new(file, 0, 0), message)
    }

    /// Ends resolution: what was found, those errors first that count first.
    fn finish(mut self, mut resolved: Resolved, diagnostics: &mut Diagnostics) -> Resolved {
        if self.is_stopped() {
            // Not everything has its meaning.
            return resolved;
        }
        let errors = std::mem::take(&mut self.errors);
        let failed = errors
            .iter()
            .any(|error| error.diagnostic.severity == Severity::Error);
        diagnostics.extend(in_order(errors, &self.ways));
        if !failed || self.extent == Extent::Everything {
            let circles = recursion::check(&self.hir);
            let cyclic =
                |diagnostic: &Diagnostic| [&codes::CYCLE, &codes::RECURSIVE_CLASS].contains(&diagnostic.code);
            resolved.is_acyclic = circles.is_empty() && !diagnostics.iter().any(cyclic);
            diagnostics.extend(circles);
        }
        drop_circles_of_clashes(diagnostics);
        // What nothing uses may import more, which is no part of the program.
        resolved.files = std::mem::take(&mut self.touched);
        resolved.remote_imports = std::mem::take(&mut self.remote_imports);
        if self.extent == Extent::Everything {
            let used = self.class_frames().iter().flatten().count();
            resolved.unused = self.unused_classes();
            if self.is_stopped() {
                return resolved;
            }
            let is_same = self.class_frames().iter().flatten().count() == used;
            resolved.unused_is_acyclic =
                resolved.is_acyclic && (is_same || recursion::check(&self.hir).is_empty());
        }
        let mut seen = FxHashSet::default();
        let new = self.files.iter().filter(|file| seen.insert(file.id));
        resolved.parsed = new.map(|file| (file.id, file.parsed.clone())).collect();
        resolved.class_frames = self.class_frames();
        resolved.hir = self.hir;
        resolved.mentions = self.mentions;
        resolved.frames = self.frames;
        resolved.imports = self.imports;
        resolved
    }

    pub(super) fn read(&mut self, place: &ModuleLocation) -> Result<Arc<str>, String> {
        let key = place.key();
        if let Some(text) = self.texts.get(&key) {
            return Ok(text.clone());
        }
        let loader: &dyn Loader = if place.embedded {
            &*self.library.modules
        } else {
            self.loader
        };
        let bytes = loader
            .read(&place.file)
            .map_err(|error| format!("`{}`: {error}", place.file))?;
        if !place.embedded {
            self.touched.push(place.file.clone());
            if place.metadata.is_some() {
                self.touched.push(format!("{}metadata.yaml", place.directory));
            }
        }
        let text = std::str::from_utf8(&bytes)
            .map_err(|error| not_text(&place.file, &bytes, error.valid_up_to()))?;
        let text: Arc<str> = text.into();
        self.texts.insert(key, text.clone());
        Ok(text)
    }

    /// Takes in a text for the place with that number: what can be said about it alone is reported. None where that ends
    /// resolution of it.
    pub(super) fn load(
        &mut self,
        name: &str,
        text: &str,
        place: usize,
        way: WayId,
        importer_is_broken: bool,
    ) -> Option<usize> {
        let key = match name {
            "" => String::new(),
            _ if self.places[place].file.is_empty() => format!("<{name}"),
            _ => self.places[place].key(),
        };
        let (id, parsed) = self.cache.parse(self.sources, &key, name, text);
        self.note_import(way, id);
        let module_directory = self.module_directory(&self.places[place]);
        self.files.push(File {
            id,
            parsed: parsed.clone(),
            is_broken: importer_is_broken,
            place,
            ways: smallvec![way],
            has_errors: false,
            is_shared: false,
            module_directory,
        });
        let file = self.files.len() - 1;
        self.report_all(Step::Imports, &parsed.syntax, file);
        if parsed.syntax.has_errors() {
            if self.extent == Extent::Program {
                return None;
            }
            self.files[file].is_broken = true;
        }
        self.report_all(Step::Imports, &parsed.structure, file);
        if parsed.is_broken() {
            if self.extent == Extent::Program {
                return None;
            }
            self.files[file].is_broken = true;
        }
        // Names are still looked up in a file with cycles, but no class is entered twice, so this ends.
        self.report_all(Step::Clashes, &parsed.problems.clashes, file);
        self.report_all(Step::Cycles, &parsed.problems.cycles, file);
        // A text has about as many expressions here as there; only names in strings are more.
        self.hir.exprs.reserve(parsed.ast.expr_count());
        Some(file)
    }

    /// The directory of a place inside the deploy: relative to the entry's, with slashes on both ends.
    pub(super) fn module_directory(&self, place: &ModuleLocation) -> Arc<str> {
        let root = &self.places[0].directory;
        let own = match &place.metadata {
            Some(_) => place.directory.clone(),
            None => place.base(),
        };
        // The global modules directory is `/modules/` there, wherever it lies here.
        let global = self.modules_directory.and_then(|global| own.strip_prefix(global));
        if let Some(module) = global {
            return format!("/modules/{module}").into();
        }
        let relative = own.strip_prefix(root.as_str()).unwrap_or(&own);
        let relative = relative.trim_matches('/');
        if relative.is_empty() {
            "/".into()
        } else {
            format!("/{relative}/").into()
        }
    }

    /// Resolves the top of a file and gives its frame.
    pub(super) fn top(&mut self, file: usize, is_entry: bool) -> FrameId {
        let body = self.new_body(file);
        let ast = self.files[file].parsed.ast.clone();
        let frame = self.new_frame(None, file, ast.root.span, Owner::Top(body), body);
        if !is_entry {
            self.check_module_statements(frame, &ast);
        }
        let entries = self.entries(file, &ast.root, None);
        self.block(frame, &entries);
        frame
    }

    fn check_module_statements(&mut self, frame: FrameId, ast: &Ast) {
        for id in &ast.root.statements {
            let statement = ast.stmt(*id);
            let what = match &statement.kind {
                StmtKind::Bind(_) | StmtKind::Class(_) | StmtKind::Import(_) | StmtKind::Func(_) => continue,
                StmtKind::If(_) => "an `if`",
                StmtKind::For(_) => "a `for`",
                StmtKind::ForKv(_) => "a `forkv`",
                StmtKind::Resource(resource) if resource.collect => "a `collect`",
                StmtKind::Resource(_) => "a resource",
                StmtKind::Edge(_) => "an edge",
                StmtKind::Include(_) => "an `include`",
                StmtKind::Panic(_) => "a `panic`",
            };
            let message = format!("{what} at the top of an imported file has no effect");
            let error = Diagnostic::error(&codes::MODULE_STATEMENT, statement.span, message);
            let error = error.help("put it into a class, and include that where it is wanted");
            self.report(frame, error);
        }
    }

    /// Whether somebody no longer wants to know.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.is_stopped()
    }
}

/// Joins a directory (empty or ending in `/`) with a relative path and resolves `..` lexically.
pub(super) fn join(base: &str, path: &str) -> String {
    let joined = format!("{base}{path}");
    let mut parts: Vec<&str> = Vec::new();
    for part in joined.split('/') {
        match part {
            ".." if parts.last().is_some_and(|p| !p.is_empty() && *p != "..") => {
                parts.pop();
            }
            "." => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}
/// Says where a file has the first byte that is no UTF-8.
fn not_text(file: &str, bytes: &[u8], at: usize) -> String {
    let before = &bytes[..at];
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let begin = before
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |end| end + 1);
    let column = String::from_utf8_lossy(&before[begin..]).chars().count() + 1;
    let byte = bytes.get(at).copied().unwrap_or_default();
    format!(
        "`{file}` is not UTF-8 text: the byte 0x{byte:02x} in line {line}, column {column} is no part of it"
    )
}
