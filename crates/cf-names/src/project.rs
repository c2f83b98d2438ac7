//! Finds the files of a model: the project, the modules that it imports, and what those import.
//!
//! [`load`] reads through a [`Loader`] and never touches a disk. Each file is a namespace. Modules that are built in are there without
//! files: `std` and the upper part of `setpoint` are texts of this crate, the namespaces of generated entities and of the shared library's
//! functions are files without text.

mod builtin;
pub mod codes;
mod metadata;
mod modules;
mod ports;
mod requirements;
mod settings;
use setpoint_yaml::tree as yaml;

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use setpoint_cf_syntax::{self as syntax, ast};
use setpoint_diagnostics::{Diagnostic, Diagnostics, FileId, Loader, SourceFile, SourceMap, Span};
use setpoint_graph::Library;

use crate::plugins::PluginSettings;

pub use builtin::namespaces as built_in_namespaces;
pub use builtin::text as built_in_text;
pub use ports::{Port, PortType};
pub use settings::{Project, Rule, Settings};

/// The namespace of the main file.
pub const MAIN: &str = "__config__";

/// What a model is loaded with.
#[derive(Debug, Default)]
pub struct Options {
    /// The main file, in the directory of the project; `main.cf` if it is not said.
    pub main: Option<String>,
    /// Directories that are searched for modules, after those of the project.
    pub module_path: Vec<String>,
    /// Whether a directory without a `project.yml` is no project, which is an error.
    pub needs_project: bool,
    /// What runs functions in Python.
    pub plugins: PluginSettings,
    /// Files that were parsed before with the same [`SourceMap`].
    pub parsed: ParsedFiles,
}

/// Files by name with the text that was parsed, so that an unchanged file is parsed once. Goes with one [`SourceMap`].
#[derive(Debug, Default)]
pub struct ParsedFiles {
    known: FxHashMap<Arc<str>, Parsed>,
}

#[derive(Debug)]
struct Parsed {
    text: Arc<str>,
    file: FileId,
    tree: Arc<ast::File>,
    found: Diagnostics,
}

/// All that belongs to a model.
#[derive(Debug)]
pub struct Loaded {
    /// The project.
    pub project: Project,
    /// Its modules, in the order in which they were first loaded.
    pub modules: Vec<Module>,
    /// Its files: the main file first, then those of each module together, as they were first loaded.
    pub files: Vec<LoadedFile>,
    /// Paths that were read, found or not.
    pub reads: Vec<String>,
    /// The directories in which modules were looked for.
    pub module_path: Vec<String>,
}

impl Loaded {
    /// Names of the modules that have functions in Python, with the directories of these functions.
    pub fn python(&self) -> impl Iterator<Item = (Arc<str>, Arc<str>)> + '_ {
        let modules = self.modules.iter();
        modules.filter_map(|module| Some((module.name.clone(), module.python.clone()?)))
    }
}

/// A module.
#[derive(Debug)]
pub struct Module {
    /// The first part of its namespaces.
    pub name: Arc<str>,
    /// Where it is; none for what is built in.
    pub directory: Option<Arc<str>>,
    /// The directory of its functions in Python, if it has some.
    pub python: Option<Arc<str>>,
}

/// A file and the namespace that it is.
#[derive(Debug)]
pub struct LoadedFile {
    /// `__config__`, `std`, `a::b`.
    pub namespace: Arc<str>,
    /// Its tree.
    pub tree: Arc<ast::File>,
}

/// Where the directory of a project is: `directory` or the nearest above it that has a `project.yml`.
#[must_use]
pub fn find(loader: &dyn Loader, directory: &str) -> Option<String> {
    let mut directory = directory.trim_end_matches('/').to_owned();
    loop {
        if loader.is_file(&join(&directory, "project.yml")) {
            return Some(directory);
        }
        match directory.rfind('/') {
            Some(0) if directory.len() > 1 => directory.truncate(1),
            Some(slash) if slash > 0 => directory.truncate(slash),
            _ => return None,
        }
    }
}

/// A file among the sources: the one that is there already if name and text are the same, so that a model that is compiled again and again
/// does not fill them.
pub fn source_file(sources: &mut SourceMap, name: &str, text: &str) -> FileId {
    let is_same = |file: &SourceFile| *file.name == *name && *file.text == *text;
    let known = sources.files().find(|(_, file)| is_same(file)).map(|(id, _)| id);
    known.unwrap_or_else(|| sources.add(name, text))
}

/// The directories in which the project in `directory` has its modules, as far as that can be read. For those who have to let a loader
/// read there before anything is loaded.
#[must_use]
pub fn module_path(loader: &dyn Loader, directory: &str) -> Vec<String> {
    let project = read_settings(loader, directory);
    project
        .module_path
        .iter()
        .map(|entry| join(directory, entry))
        .collect()
}

/// The `project.yml` of a directory, as far as it can be read. What is wrong is told when the project is loaded.
#[must_use]
pub fn read_settings(loader: &dyn Loader, directory: &str) -> Project {
    let mut reading = Reading {
        loader,
        sources: &mut SourceMap::new(),
        diagnostics: &mut Diagnostics::new(),
        parsed: &mut ParsedFiles::default(),
        reads: Vec::new(),
    };
    settings::read(&mut reading, directory, false)
}

/// Loads the project in `directory` with all that it imports. Whether it is complete says `diagnostics`.
pub fn load(
    loader: &dyn Loader,
    library: &Library,
    directory: &str,
    options: &mut Options,
    sources: &mut SourceMap,
    diagnostics: &mut Diagnostics,
) -> Loaded {
    let mut reading = Reading {
        loader,
        sources,
        diagnostics,
        parsed: &mut options.parsed,
        reads: Vec::new(),
    };
    let project = settings::read(&mut reading, directory, options.needs_project);
    let mut path: Vec<String> = project
        .module_path
        .iter()
        .map(|entry| join(directory, entry))
        .collect();
    path.extend(options.module_path.iter().cloned());
    let main = join(directory, options.main.as_deref().unwrap_or("main.cf"));
    let mut loading = Loading {
        reading,
        library,
        finder: modules::Finder::new(path.clone()),
        modules: Vec::new(),
        files: Vec::new(),
        loaded: FxHashSet::default(),
        failed: FxHashSet::default(),
        failures: Vec::new(),
        worklist: Vec::new(),
    };
    loading.main(&main);
    loading.imports();
    requirements::check(
        &project.requires,
        &loading.finder.versions,
        loading.reading.diagnostics,
    );
    let Loading {
        reading,
        modules,
        mut files,
        ..
    } = loading;
    let order: FxHashMap<&str, usize> = modules
        .iter()
        .enumerate()
        .map(|(at, m)| (&*m.name, at + 1))
        .collect();
    files.sort_by_key(|file| order.get(first_part(&file.namespace)).copied().unwrap_or(0));
    Loaded {
        project,
        files,
        reads: reading.reads,
        modules,
        module_path: path,
    }
}

/// Reads and parses, and remembers what was read.
struct Reading<'a> {
    loader: &'a dyn Loader,
    sources: &'a mut SourceMap,
    diagnostics: &'a mut Diagnostics,
    parsed: &'a mut ParsedFiles,
    reads: Vec<String>,
}

impl Reading<'_> {
    /// The text of a file.
    fn text(&mut self, path: &str) -> Result<Arc<str>, String> {
        self.reads.push(path.to_owned());
        let bytes = self.loader.read(path).map_err(|error| error.to_string())?;
        match std::str::from_utf8(&bytes) {
            Ok(text) => Ok(text.into()),
            Err(error) => Err(format!("it is not UTF-8 from byte {} on", error.valid_up_to())),
        }
    }

    /// The tree of a text. The one place where files are parsed.
    fn tree(&mut self, name: &str, text: Arc<str>) -> Arc<ast::File> {
        if let Some(known) = self.parsed.known.get(name)
            && known.text == text
            && self
                .sources
                .files()
                .nth(known.file.0 as usize)
                .is_some_and(|(_, file)| file.text == text)
        {
            self.diagnostics.append(known.found.clone());
            return known.tree.clone();
        }
        let file = self.sources.add(name, text.clone());
        let mut found = Diagnostics::new();
        let tree = Arc::new(syntax::parse(file, &text, &mut found));
        self.diagnostics.append(found.clone());
        let parsed = Parsed {
            text,
            file,
            tree: tree.clone(),
            found,
        };
        self.parsed.known.insert(name.into(), parsed);
        tree
    }
}

/// An import that waits to be followed.
struct Pending {
    /// The whole name.
    name: Arc<str>,
    /// Where it is written; none for what nobody has to write.
    span: Option<Span>,
}

struct Loading<'a> {
    reading: Reading<'a>,
    library: &'a Library,
    finder: modules::Finder,
    modules: Vec<Module>,
    files: Vec<LoadedFile>,
    /// Namespaces that are there.
    loaded: FxHashSet<Arc<str>>,
    /// Namespaces that could not be loaded, which has been said.
    failed: FxHashSet<Arc<str>>,
    /// Why.
    failures: Vec<Diagnostic>,
    worklist: Vec<Pending>,
}

impl Loading<'_> {
    fn main(&mut self, path: &str) {
        self.worklist.push(Pending {
            name: "std".into(),
            span: None,
        });
        match self.reading.text(path) {
            Ok(text) => self.add(MAIN.into(), path, text),
            Err(reason) => {
                let file = source_file(self.reading.sources, path, "");
                let error = Diagnostic::error(
                    &codes::MODULE,
                    Span::new(file, 0, 0),
                    format!("the main file `{path}` cannot be read: {reason}"),
                );
                let mut error = error.of_class("ModuleLoadingException");
                if !self.reading.loader.is_file(path) {
                    error = error.help("`-f FILE` names another main file");
                }
                self.reading.diagnostics.push(error);
            }
        }
    }

    /// Follows imports, the last one first.
    fn imports(&mut self) {
        while let Some(pending) = self.worklist.pop() {
            let ends = pending.name.match_indices("::").map(|(at, _)| at);
            let ends: Vec<usize> = ends.chain([pending.name.len()]).collect();
            for end in ends {
                let name = &pending.name[..end];
                if self.loaded.contains(name) {
                    continue;
                }
                if self.failed.contains(name) {
                    break;
                }
                if let Err(error) = self.namespace(name, pending.span) {
                    self.failed.insert(name.into());
                    self.failures.push(*error);
                    break;
                }
            }
        }
        // Told in the order in which the imports are written.
        self.failures
            .sort_by_key(|error| (error.primary.span.file.0, error.primary.span.start));
        for error in self.failures.drain(..) {
            self.reading.diagnostics.push(error);
        }
    }

    /// Loads a namespace whose parents are loaded.
    fn namespace(&mut self, name: &str, import: Option<Span>) -> Result<(), Box<Diagnostic>> {
        let module = first_part(name);
        if let Some(text) = builtin::text(self.library, name) {
            self.module(module, None, None);
            self.add(name.into(), &format!("<{name}>"), text.into());
            return Ok(());
        }
        if matches!(module, "std" | "setpoint") {
            let parts = builtin::namespaces(self.library);
            let reason = format!("`{module}`, which is built in, has no part of this name");
            let error = codes::not_loaded(name, import, "InvalidModuleException", &reason);
            let near = setpoint_diagnostics::did_you_mean(name, parts.iter().map(String::as_str));
            return Err(Box::new(error.help_if(near)));
        }
        let found = self.finder.find(&mut self.reading, self.library, module, import);
        let files = match found {
            modules::Found::Directory(files) => files,
            modules::Found::Functions if has_functions(self.library, name) => {
                self.module(module, None, None);
                self.add(name.into(), &format!("<{name}>"), "".into());
                return Ok(());
            }
            modules::Found::Functions => {
                let reason = format!("`{module}` is a module of functions, which has no part of this name");
                let error = codes::not_loaded(name, import, "InvalidModuleException", &reason);
                let known = self.library.functions.module_names();
                let known: Vec<String> = known.map(|known| known.replace('/', "::")).collect();
                let near = setpoint_diagnostics::did_you_mean(name, known.iter().map(String::as_str));
                return Err(Box::new(error.help_if(near)));
            }
            modules::Found::Failed(error) => return Err(error),
        };
        let path = files.file_of(self.reading.loader, name);
        let text = self.reading.text(&path).map_err(|reason| {
            let reason = match reason.as_str() {
                "no such file" => format!("there is no `{path}`"),
                reason => format!("`{path}` cannot be read: {reason}"),
            };
            let error = codes::not_loaded(name, import, "InvalidModuleException", &reason);
            let parts = files.parts(self.reading.loader);
            let near = setpoint_diagnostics::did_you_mean(name, parts.iter().map(String::as_str));
            Box::new(error.help_if(near))
        })?;
        self.module(
            module,
            Some(files.directory.as_str().into()),
            files.python.clone(),
        );
        self.add(name.into(), &path, text);
        Ok(())
    }

    fn module(&mut self, name: &str, directory: Option<Arc<str>>, python: Option<Arc<str>>) {
        if self.modules.iter().all(|known| &*known.name != name) {
            self.modules.push(Module {
                name: name.into(),
                directory,
                python,
            });
        }
    }

    /// Takes in a file. Its imports are followed later.
    fn add(&mut self, namespace: Arc<str>, path: &str, text: Arc<str>) {
        let tree = self.reading.tree(path, text);
        for item in &tree.items {
            if let ast::Item::Import(import) = item
                && !has_hyphen(&import.path)
            {
                self.worklist.push(Pending {
                    name: full_name(&import.path).into(),
                    span: Some(import.span),
                });
            }
        }
        self.loaded.insert(namespace.clone());
        self.files.push(LoadedFile { namespace, tree });
    }
}

/// The module of the function library that a namespace stands for: `golang/strings` for `golang::strings`.
#[must_use]
pub fn library_module(namespace: &str) -> String {
    namespace.replace("::", "/")
}

/// Whether the function library has a module for a namespace, or modules below it.
fn has_functions(library: &Library, namespace: &str) -> bool {
    let module = library_module(namespace);
    let mut names = library.functions.module_names();
    names.any(|name| {
        let rest = name.strip_prefix(&*module);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

/// Whether a path has a hyphen in it, so that it is the name of no module; the parser has said so.
fn has_hyphen(path: &ast::Path) -> bool {
    let mut names = path.namespace.iter().chain([&path.name]);
    names.any(|name| name.text.contains('-'))
}

/// `a::b::c` of a path.
#[must_use]
pub fn full_name(path: &ast::Path) -> String {
    let mut name = String::new();
    for part in &path.namespace {
        name.push_str(&part.text);
        name.push_str("::");
    }
    name.push_str(&path.name.text);
    name
}

/// `a` of `a::b::c`.
pub(crate) fn first_part(namespace: &str) -> &str {
    namespace.split("::").next().unwrap_or(namespace)
}

/// A path below a directory. An absolute one stays what it is.
#[must_use]
pub fn join(directory: &str, path: &str) -> String {
    if path.starts_with('/') || directory.is_empty() || directory == "." {
        return path.to_owned();
    }
    match path {
        "." | "" => directory.to_owned(),
        path => format!("{}/{path}", directory.trim_end_matches('/')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use setpoint_diagnostics::MemoryLoader;
    use setpoint_value::Registry;

    fn library() -> Library {
        Library::new(Registry::new(&[]), [])
    }

    #[test]
    fn an_unchanged_file_is_parsed_once() {
        let (library, mut sources, mut options) = (library(), SourceMap::new(), Options::default());
        let mut load = |text: &str, sources: &mut SourceMap| {
            let loader = MemoryLoader::new().with("p/main.cf", text);
            let mut found = Diagnostics::new();
            let loaded = load(&loader, &library, "p", &mut options, sources, &mut found);
            assert!(found.is_empty(), "{found:?}");
            loaded.files.into_iter().map(|file| file.tree).collect::<Vec<_>>()
        };
        let first = load("x = 1\n", &mut sources);
        let again = load("x = 1\n", &mut sources);
        assert!(
            first
                .iter()
                .zip(&again)
                .all(|(first, again)| Arc::ptr_eq(first, again))
        );
        let count = sources.files().count();
        let changed = load("x = 2\n", &mut sources);
        assert_eq!(sources.files().count(), count + 1);
        assert!(!Arc::ptr_eq(&first[0], &changed[0]));
        assert!(Arc::ptr_eq(&first[1], &changed[1]));
        // What another map was parsed with is not taken for what is in this one.
        load("x = 2\n", &mut SourceMap::new());
    }

    #[test]
    fn what_cannot_be_read_is_the_same_error_each_time() {
        let (library, mut sources, mut options) = (library(), SourceMap::new(), Options::default());
        let mut load = |loader: MemoryLoader| {
            let mut found = Diagnostics::new();
            load(&loader, &library, "p", &mut options, &mut sources, &mut found);
            assert!(found.has_errors());
            found
        };
        let without_main = || MemoryLoader::new().with("p/project.yml", "name: p\n");
        assert_eq!(load(without_main()), load(without_main()));
        let without_project = || MemoryLoader::new().with("p/nothing", "");
        assert_eq!(load(without_project()), load(without_project()));
    }

    #[test]
    fn what_is_read_is_told() {
        let loader = MemoryLoader::new()
            .with("project.yml", "name: p\nmodulepath: [libs, more]\n")
            .with("main.cf", "import a\n")
            .with(
                "more/a/setup.cfg",
                "[metadata]\nname = inmanta-module-a\nversion = 1.0\nlicense = MIT\n",
            )
            .with("more/a/model/_init.cf", "\n");
        let mut found = Diagnostics::new();
        let mut options = Options::default();
        let loaded = load(
            &loader,
            &library(),
            "",
            &mut options,
            &mut SourceMap::new(),
            &mut found,
        );
        assert!(found.is_empty(), "{found:?}");
        let read = [
            "project.yml",
            "main.cf",
            "more/a/setup.cfg",
            "more/a/model/_init.cf",
        ];
        assert_eq!(loaded.reads, read);
    }

    #[test]
    fn a_project_is_found_upwards() {
        let loader = MemoryLoader::new()
            .with("/a/project.yml", "name: p\n")
            .with("/a/b/c/x", "");
        assert_eq!(find(&loader, "/a/b/c/").as_deref(), Some("/a"));
        assert_eq!(find(&loader, "/a").as_deref(), Some("/a"));
        assert_eq!(find(&loader, "/b"), None);
        let here = MemoryLoader::new().with("project.yml", "name: p\n");
        assert_eq!(find(&here, "").as_deref(), Some(""));
    }
}
