//! Where a module is, in which of its two layouts, and which file is which of its namespaces.
//!
//! The newer layout is that of a package: a directory with a `setup.cfg`. The older one has a `module.yml`. A module of the newer layout
//! hides one of the older layout with the same name.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use setpoint_diagnostics::{Diagnostic, Loader, Span, did_you_mean};
use setpoint_graph::Library;

use super::metadata;
use super::requirements::Versions;
use super::{Reading, codes};

/// What names of packages begin with.
pub(super) const PACKAGE_PREFIX: &str = "inmanta-module-";

/// Finds modules in the directories of a module path.
pub(super) struct Finder {
    path: Vec<String>,
    known: FxHashMap<Arc<str>, ModuleFiles>,
    /// By module.
    pub(super) versions: FxHashMap<Arc<str>, Versions>,
}

/// What there is under the name of a module.
pub(super) enum Found {
    /// A directory.
    Directory(ModuleFiles),
    /// Functions of the shared library, without files.
    Functions,
    /// Nothing, or nothing that can be loaded.
    Failed(Box<Diagnostic>),
}

/// The directory of a module.
#[derive(Clone)]
pub(super) struct ModuleFiles {
    /// The directory that has its `model`, `files` and `templates`.
    pub(super) directory: String,
    /// The directory of its functions in Python, if it has some.
    pub(super) python: Option<Arc<str>>,
    name: Arc<str>,
}

impl Finder {
    pub(super) fn new(path: Vec<String>) -> Finder {
        Finder {
            path,
            known: FxHashMap::default(),
            versions: FxHashMap::default(),
        }
    }

    /// Finds a module by name. Its metadata are read when it is found for the first time.
    pub(super) fn find(
        &mut self,
        reading: &mut Reading<'_>,
        library: &Library,
        name: &str,
        import: Option<Span>,
    ) -> Found {
        if let Some(known) = self.known.get(name) {
            return Found::Directory(known.clone());
        }
        let newer = self
            .path
            .iter()
            .find_map(|entry| newer_layout(reading.loader, entry, name));
        if let Some((directory, configuration)) = newer {
            let versions = metadata::package(reading, &configuration, name, import);
            self.versions.insert(name.into(), versions);
            return self.found(reading.loader, name, directory);
        }
        let older = self.path.iter().map(|entry| super::join(entry, name));
        let older: Vec<String> = older
            .filter(|directory| reading.loader.is_directory(directory))
            .collect();
        let described = older
            .iter()
            .find(|directory| reading.loader.is_file(&super::join(directory, "module.yml")));
        if let Some(directory) = described {
            let description = super::join(directory, "module.yml");
            let versions = metadata::older_module(reading, &description, name, import);
            self.versions.insert(name.into(), versions);
            return self.found(reading.loader, name, directory.clone());
        }
        if super::has_functions(library, name) {
            return Found::Functions;
        }
        Found::Failed(Box::new(match older.first() {
            Some(directory) => {
                let reason = format!("`{directory}` has neither a `setup.cfg` nor a `module.yml`");
                codes::not_loaded(name, import, "InvalidModuleException", &reason)
            }
            None => self.missing(reading.loader, library, name, import),
        }))
    }

    fn found(&mut self, loader: &dyn Loader, name: &str, directory: String) -> Found {
        let older = super::join(&directory, "plugins");
        let newer = super::join(&directory, &format!("inmanta_plugins/{name}"));
        // Of a package that is installed, the directory is the Python package.
        let installed = loader.is_file(&super::join(&directory, "__init__.py"));
        let has_files = |path: &String| {
            let files = loader.list(path).unwrap_or_default();
            files.iter().any(|file| file.ends_with(".py"))
        };
        let python = match installed {
            true => Some(directory.as_str().into()),
            false => [older, newer]
                .iter()
                .find(|path| has_files(path))
                .map(|path| path.as_str().into()),
        };
        let files = ModuleFiles {
            directory,
            python,
            name: name.into(),
        };
        self.known.insert(name.into(), files.clone());
        Found::Directory(files)
    }

    fn missing(
        &self,
        loader: &dyn Loader,
        library: &Library,
        name: &str,
        import: Option<Span>,
    ) -> Diagnostic {
        let searched = match self.path.as_slice() {
            [] => "no `modulepath` says where modules are".to_owned(),
            path => format!("there is no module `{name}` in `{}`", path.join("`, `")),
        };
        let mut names: Vec<String> = library.functions.module_names().map(str::to_owned).collect();
        names.extend(["std".to_owned(), "setpoint".to_owned()]);
        names.extend(self.path.iter().flat_map(|entry| directories(loader, entry)));
        codes::not_loaded(name, import, "ModuleNotFoundException", &searched).help_if(
            did_you_mean(name, names.iter().map(String::as_str)).or_else(|| {
                Some(match self.path.is_empty() {
                    true => "if its directory is in `libs`, write `modulepath: libs` in project.yml".to_owned(),
                    false => format!(
                        "if `pip` installed `{PACKAGE_PREFIX}{}`, put the `python3` of its environment first in PATH",
                        name.replace('_', "-")
                    ),
                })
            }),
        )
    }
}

impl ModuleFiles {
    /// The file of one of its namespaces.
    pub(super) fn file_of(&self, loader: &dyn Loader, namespace: &str) -> String {
        let mut path = super::join(&self.directory, "model");
        for part in namespace.split("::").skip(1) {
            path.push('/');
            path.push_str(part);
        }
        if namespace == &*self.name || loader.is_directory(&path) {
            format!("{path}/_init.cf")
        } else {
            format!("{path}.cf")
        }
    }

    /// The namespaces that it has.
    pub(super) fn parts(&self, loader: &dyn Loader) -> Vec<String> {
        let model = super::join(&self.directory, "model");
        let files = loader.list(&model).unwrap_or_default();
        let part = |file: &String| {
            let inner = file
                .strip_prefix(&model)?
                .trim_start_matches('/')
                .strip_suffix(".cf")?;
            let inner = inner.strip_suffix("_init").unwrap_or(inner).trim_end_matches('/');
            let separator = if inner.is_empty() { "" } else { "::" };
            Some(format!("{}{separator}{}", self.name, inner.replace('/', "::")))
        };
        files.iter().filter_map(part).collect()
    }
}

/// The directory of a module with the newer layout below an entry of the module path, and its `setup.cfg`: of a package that is
/// developed, under its own name or that of the package, or of one that is installed.
fn newer_layout(loader: &dyn Loader, entry: &str, name: &str) -> Option<(String, String)> {
    let package = format!("{PACKAGE_PREFIX}{}", name.replace('_', "-"));
    let candidates = [name.to_owned(), package, format!("inmanta_plugins/{name}")];
    let directories = candidates.iter().map(|candidate| super::join(entry, candidate));
    let mut described = directories.map(|directory| {
        let configuration = super::join(&directory, "setup.cfg");
        (directory, configuration)
    });
    described.find(|(_, configuration)| loader.is_file(configuration))
}

/// The names of directories in a directory of modules.
fn directories(loader: &dyn Loader, entry: &str) -> Vec<String> {
    let prefix = format!("{}/", entry.trim_end_matches('/'));
    let files = loader.list(entry).unwrap_or_default();
    let first = |file: &String| {
        let (name, inner) = file.strip_prefix(&prefix)?.split_once('/')?;
        let is_module = inner == "module.yml" || inner == "setup.cfg";
        is_module.then(|| name.to_owned())
    };
    files.iter().filter_map(first).collect()
}
