//! Which program a document is part of, and what is known about it: analysed when somebody asks, kept while nothing changes.

use std::cell::OnceCell;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use setpoint_cf::analysis as model;
use setpoint_diagnostics::{Diagnostics, Documents, FileId, Loader, MemoryLoader, SourceMap};
use setpoint_flow::Stop;
use setpoint_graph::Library;
use setpoint_mcl::Entry;
use setpoint_mcl::analysis as mcl;

use crate::documents::Snapshot;
use crate::language::{Analysed, Language};
use crate::setup::Setup;
use crate::uri;

/// Programs beyond these are forgotten, those first that nobody asked for longest.
const KEPT: usize = 16;

/// So many programs may wait to be dropped.
const MOST_OUTDATED: usize = 2;

/// So many directories upward are searched for the program that a file is part of.
const UPWARD: usize = 12;

/// Where a program begins.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    /// Its directory, ending in `/`; empty for a document that is no file.
    pub(crate) root: String,
    /// The file that it begins with; none for a directory.
    pub(crate) file: Option<String>,
    /// The language of its texts.
    pub(crate) language: Language,
}

impl Key {
    fn directory(root: &str, language: Language) -> Key {
        Key {
            root: root.to_owned(),
            file: None,
            language,
        }
    }

    fn file(path: &str) -> Key {
        let root = match uri::is_file(path) {
            true => uri::directory(path),
            false => "",
        };
        Key {
            root: root.to_owned(),
            file: Some(path[root.len()..].to_owned()),
            language: Language::of(path),
        }
    }

    /// The path of a text that the program calls so.
    pub(crate) fn path(&self, name: &str) -> String {
        match uri::is_file(name) || self.root.is_empty() {
            true => name.to_owned(),
            false => uri::normalized(&format!("{}{name}", self.root)),
        }
    }
}

/// What is known of a program's text.
pub(crate) enum Analysis {
    Mcl(Box<mcl::Analysis>),
    Model(Box<model::Analysis>),
}

/// What is known about a program.
pub(crate) struct Program {
    pub(crate) analysis: Analysis,
    /// The paths of its texts.
    pub(crate) paths: Vec<(FileId, String)>,
    /// Where it begins.
    pub(crate) key: Key,
    /// What is wrong and what the linter finds, once somebody has asked.
    found: OnceCell<Diagnostics>,
}

impl Program {
    /// What is wrong, and then what the linter finds in the program's own texts.
    pub(crate) fn diagnostics(&self, library: &Library) -> &Diagnostics {
        self.found.get_or_init(|| {
            // A document that is no file is a program by itself.
            let is_own = |_| self.key.root.is_empty();
            match &self.analysis {
                Analysis::Mcl(analysis) => analysis.found(library, &is_own),
                Analysis::Model(analysis) => analysis.found(library, &is_own),
            }
        })
    }

    /// All texts.
    pub(crate) fn sources(&self) -> &SourceMap {
        match &self.analysis {
            Analysis::Mcl(analysis) => analysis.sources(),
            Analysis::Model(analysis) => analysis.sources(),
        }
    }

    /// The text at a path, if it is one of the program's.
    pub(crate) fn file(&self, path: &str) -> Option<FileId> {
        let found = self.paths.iter().find(|(_, known)| known == path);
        found.map(|(file, _)| *file)
    }

    /// The path of one of its texts.
    pub(crate) fn path(&self, file: FileId) -> Option<&str> {
        let found = self.paths.iter().find(|(known, _)| *known == file);
        found.map(|(_, path)| &**path)
    }
}

/// Texts and syntax of a program from last time.
enum Workspaces {
    Mcl(Box<mcl::Workspace>),
    Model(Box<model::Workspace>),
}

struct Known {
    workspaces: Workspaces,
    program: Option<Program>,
    /// What the program was made of: open texts, which documents were open below its root, the state of the disk.
    texts: Vec<(String, Arc<str>)>,
    open: Vec<String>,
    disk: u64,
    used: u64,
}

/// The programs that were asked for.
pub(crate) struct Programs {
    setup: Arc<Setup>,
    known: FxHashMap<Key, Known>,
    /// Where programs begin that may have a file, nearest first, by the file's path.
    candidates: FxHashMap<String, (u64, Vec<Key>)>,
    /// What newer texts have made worthless, until there is time to drop it.
    outdated: Vec<Program>,
    clock: u64,
}

impl Programs {
    pub(crate) fn new(setup: Arc<Setup>) -> Programs {
        Programs {
            setup,
            known: FxHashMap::default(),
            candidates: FxHashMap::default(),
            outdated: Vec::new(),
            clock: 0,
        }
    }

    /// Forgets everything, after something went wrong in the midst of it.
    pub(crate) fn forget(&mut self) {
        self.known.clear();
        self.candidates.clear();
    }

    /// Drops what is of no use any more.
    pub(crate) fn drop_outdated(&mut self) {
        self.outdated.clear();
    }

    /// The program that a document is part of: the nearest upward whose files have it, else the one that it is by itself. None if
    /// it was stopped.
    pub(crate) fn of(&mut self, path: &str, snapshot: &Snapshot, stop: &Stop) -> Option<&Program> {
        for key in self.candidates(path, snapshot) {
            if self.analysed(&key, snapshot, stop)?.file(path).is_some() {
                return self.known.get(&key)?.program.as_ref();
            }
        }
        self.analysed(&Key::file(path), snapshot, stop)
    }

    fn candidates(&mut self, path: &str, snapshot: &Snapshot) -> Vec<Key> {
        if !uri::is_file(path) {
            return Vec::new();
        }
        if let Some((disk, keys)) = self.candidates.get(path)
            && *disk == snapshot.disk
        {
            return keys.clone();
        }
        let files = &self.setup.files;
        let language = Language::of(path);
        let mut modules = None;
        let mut keys = Vec::new();
        let mut directory = uri::directory(path);
        for _ in 0..UPWARD {
            let is_there = |name: &&str| {
                let file = format!("{directory}{name}");
                snapshot.get(&file).is_some() || files.is_file(&file)
            };
            if language.beginnings().iter().any(&is_there) {
                keys.push(Key::directory(directory, language));
                if language == Language::Model {
                    // What the main file does not import is still part of the project.
                    keys.push(Key {
                        file: Some(path[directory.len()..].to_owned()),
                        ..Key::directory(directory, language)
                    });
                }
            }
            if directory.len() < 2 {
                break;
            }
            // `…/NAME/model/` of a module that is in no project: the directory above `NAME` stands for one.
            let of_module = ["module.yml", "setup.cfg"];
            if language == Language::Model
                && modules.is_none()
                && of_module.iter().any(is_there)
                && path[directory.len()..].starts_with("model/")
            {
                let above = uri::directory(&directory[..directory.len() - 1]);
                modules = Some(Key {
                    file: Some(path[above.len()..].to_owned()),
                    ..Key::directory(above, language)
                });
            }
            directory = uri::directory(&directory[..directory.len() - 1]);
        }
        keys.extend(modules);
        if self.candidates.len() > 4096 {
            self.candidates.clear();
        }
        self.candidates
            .insert(path.to_owned(), (snapshot.disk, keys.clone()));
        keys
    }

    fn analysed(&mut self, key: &Key, snapshot: &Snapshot, stop: &Stop) -> Option<&Program> {
        self.clock += 1;
        if self.known.len() >= KEPT && !self.known.contains_key(key) {
            let oldest = self.known.iter().min_by_key(|(_, known)| known.used);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                self.known.remove(&oldest);
            }
        }
        let known = self.known.entry(key.clone()).or_insert_with(|| Known {
            workspaces: match key.language {
                Language::Mcl => Workspaces::Mcl(Box::default()),
                Language::Model => Workspaces::Model(Box::default()),
            },
            program: None,
            texts: Vec::new(),
            open: Vec::new(),
            disk: 0,
            used: 0,
        });
        known.used = self.clock;
        let open = open_below(key, snapshot);
        if known.is_current(snapshot, &open) {
            return known.program.as_ref();
        }
        if self.outdated.len() >= MOST_OUTDATED {
            self.outdated.clear();
        }
        self.outdated.extend(known.program.take());
        let mut documents = Documents::new();
        for (path, document) in &*snapshot.documents {
            let name = path.strip_prefix(&key.root).unwrap_or(path);
            documents.set(name, document.version, document.text.shared());
        }
        let (analysis, paths) = match &mut known.workspaces {
            Workspaces::Mcl(workspace) => analyse(workspace, key, snapshot, &documents, &self.setup, stop)?,
            Workspaces::Model(workspace) => analyse_model(workspace, key, snapshot, &documents, &self.setup),
        };
        if stop.is_stopped() {
            return None;
        }
        let text = |(_, path): &(FileId, String)| {
            let document = snapshot.get(path)?;
            Some((path.clone(), document.text.shared()))
        };
        known.texts = paths.iter().filter_map(text).collect();
        known.open = open;
        known.disk = snapshot.disk;
        known.program = Some(Program {
            analysis,
            paths,
            key: key.clone(),
            found: OnceCell::new(),
        });
        known.program.as_ref()
    }
}

impl Known {
    fn is_current(&self, snapshot: &Snapshot, open: &[String]) -> bool {
        let is_same = |(path, text): &(String, Arc<str>)| {
            let now = snapshot.get(path).map(|document| document.text.shared());
            now.is_some_and(|now| Arc::ptr_eq(&now, text) || now == *text)
        };
        self.program.is_some()
            && self.disk == snapshot.disk
            && self.open == open
            && self.texts.iter().all(is_same)
    }
}

/// What is known of a program, with the paths of its texts.
type Found = (Analysis, Vec<(FileId, String)>);

fn analyse(
    workspace: &mut mcl::Workspace,
    key: &Key,
    snapshot: &Snapshot,
    documents: &Documents,
    setup: &Setup,
    stop: &Stop,
) -> Option<Found> {
    let entry = entry(key, snapshot);
    let below = setup.files.open(&key.root, key.file.as_deref());
    let options = mcl::AnalysisOptions {
        modules_directory: setup.modules_directory.clone(),
        stop: stop.clone(),
        without_program: true,
    };
    let loader = documents.over(&*below);
    let library = &setup.library;
    let analysis = workspace.analyse(&entry, &options, &loader, library)?;
    let is_embedded =
        |name: &str| library.modules.is_file(name) && !below.is_file(name) && documents.get(name).is_none();
    let path = |file: FileId| {
        let name = &*analysis.sources.file(file).name;
        let path = match is_embedded(name) {
            true => format!("{}modules/{name}", uri::EMBEDDED),
            false => key.path(name),
        };
        (file, path)
    };
    let paths = analysis.files().map(|(file, _)| path(file)).collect();
    Some((Analysis::Mcl(Box::new(analysis)), paths))
}

/// A model is not executed here: an editor must not wait for what a model computes, nor make it ask the machine for something.
fn analyse_model(
    workspace: &mut model::Workspace,
    key: &Key,
    snapshot: &Snapshot,
    documents: &Documents,
    setup: &Setup,
) -> Found {
    let below: Box<dyn Loader> = match (&key.file, key.root.is_empty()) {
        (Some(name), true) => {
            let text = snapshot.get(name).map(|document| document.text.shared());
            Box::new(MemoryLoader::new().with(name.as_str(), text.as_deref().unwrap_or_default()))
        }
        _ => setup.files.open_model(&key.root),
    };
    let mut options = model::AnalysisOptions {
        main: key.file.clone(),
        module_path: setup.files.module_path(),
        ..model::AnalysisOptions::default()
    };
    if key.file.as_deref().is_some_and(is_of_module) {
        // A module that belongs to no project is found beside those that it imports.
        options.module_path.insert(0, String::new());
    }
    let loader = documents.over(&*below);
    let analysis = workspace.analyse(&options, &loader, &setup.model_library);
    let path = |file: FileId| {
        let name = &*analysis.sources.file(file).name;
        let built_in = name.strip_prefix('<').and_then(|name| name.strip_suffix('>'));
        let path = match built_in {
            Some(namespace) => format!("{}models/{namespace}.cf", uri::EMBEDDED),
            None => key.path(name),
        };
        (file, path)
    };
    let mut paths: Vec<(FileId, String)> = analysis.files().map(path).collect();
    // Settings can be wrong, too: those that something is told of.
    for found in &analysis.diagnostics {
        let file = found.primary.span.file;
        if paths.iter().all(|(known, _)| *known != file) {
            paths.push(path(file));
        }
    }
    (Analysis::Model(Box::new(analysis)), paths)
}

/// Whether a file is one of a module: `NAME/model/…`.
fn is_of_module(name: &str) -> bool {
    name.split('/').nth(1) == Some("model")
}

/// The documents that a program could read, if it imported them.
fn open_below(key: &Key, snapshot: &Snapshot) -> Vec<String> {
    let paths = snapshot.documents.keys();
    paths
        .filter(|path| path.starts_with(&key.root))
        .cloned()
        .collect()
}

fn entry(key: &Key, snapshot: &Snapshot) -> Entry {
    match &key.file {
        None => Entry::Directory(String::new()),
        Some(name) if key.root.is_empty() => Entry::Code {
            name: name.clone(),
            text: snapshot
                .get(name)
                .map(|document| document.text.as_str().to_owned())
                .unwrap_or_default(),
        },
        Some(name) => Entry::File(name.clone()),
    }
}
