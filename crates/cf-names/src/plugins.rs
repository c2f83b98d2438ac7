//! Functions that modules have in Python.
//!
//! They are run by a *worker*, a Python process that somebody else starts ([`PluginHost`]): one for each compilation, when a name is looked
//! up that a Python file of a module could define. The worker imports the module and tells which functions it has and what they take.
//!
//! ```text
//!  Plugins ── load(module) ──▶ worker          which functions there are, what cannot be imported
//!          ── call(function) ─▶ worker ─┐
//!          ◀─ read an attribute ────────┤      as often as the function wants
//!          ── its value ───────────────▶│
//!          ◀─ result, or what was raised ┘
//! ```
//!
//! A worker is not trusted further than its result is: it names only instances that it was given, its messages and the time that it takes have
//! bounds, and the first message that is none ends the conversation for good.

mod conversation;
mod signature;
mod wire;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashSet;
use setpoint_diagnostics::Loader;

use conversation::Surroundings;
pub use conversation::{Conversation, Session};
use signature::{FoundFunction, ImportFailure};
pub use signature::{ParameterKind, PluginFunction, PluginParameter, PluginSignature, exception_text};
pub use wire::{Given, Made};

/// Starts workers.
pub trait PluginHost: fmt::Debug + Send + Sync {
    /// Starts one. It runs our own text in Python and is ended when it is dropped.
    ///
    /// # Errors
    /// Why there is none, in a few words.
    fn start(&self) -> Result<Box<dyn Worker>, String>;

    /// A path that the loader knows as the worker can open it.
    fn path(&self, path: &str) -> String;
}

/// A running worker, which takes and gives frames.
pub trait Worker: Send {
    /// From here on it has the time of one request.
    fn begin(&mut self);

    /// Sends a frame.
    ///
    /// # Errors
    /// Why that is not possible. Then nothing is any more.
    fn send(&mut self, frame: &[u8]) -> Result<(), Lost>;

    /// Waits for a frame of at most [`LONGEST_FRAME`] bytes.
    ///
    /// # Errors
    /// Why there is none. Then there will be none any more.
    fn receive(&mut self) -> Result<Vec<u8>, Lost>;
}

/// Frames are no longer than this, either way.
pub const LONGEST_FRAME: usize = 64 << 20;

/// Why a worker can no longer be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// What happened: `it did not end within 60 seconds`.
    pub reason: String,
    /// What it said last.
    pub said: Option<String>,
    /// What can be done about it.
    pub help: Option<String>,
}

/// What a worker runs first: `python3 -c BOOT`. It reads the rest from the connection, which is its standard output.
pub const BOOT: &str = include_str!("../plugins/boot.py");

/// The rest, which is sent to it: modules with their names, each after those that it imports.
const PROGRAM: &[(&str, &str)] = &[
    ("channel", include_str!("../plugins/channel.py")),
    ("values", include_str!("../plugins/values.py")),
    ("signatures", include_str!("../plugins/signatures.py")),
    ("dict_path", include_str!("../plugins/dict_path.py")),
    ("std", include_str!("../plugins/std.py")),
    ("offered", include_str!("../plugins/offered.py")),
    ("worker", include_str!("../plugins/worker.py")),
];

/// What plugins are run with.
#[derive(Debug, Clone)]
pub enum PluginSettings {
    /// They are not; a name that a Python file seems to define is taken for a function, of which nothing is known.
    Named,
    /// They are not, and why.
    Off(Arc<str>),
    /// By workers of this host.
    By(Arc<dyn PluginHost>),
}

impl Default for PluginSettings {
    fn default() -> PluginSettings {
        PluginSettings::Off("which are not run here".into())
    }
}

/// The functions in Python of all modules of a model.
#[derive(Debug)]
pub struct Plugins {
    /// Whether nothing is asked of a worker.
    by_name_alone: bool,
    modules: BTreeMap<Arc<str>, PythonModule>,
    conversation: Result<Arc<Conversation>, Arc<str>>,
    loaded: Mutex<BTreeMap<Arc<str>, Loaded>>,
}

/// What a worker says that a module has, or why it says nothing.
type Loaded = Result<Arc<LoadedModule>, String>;

/// The Python files of a module.
#[derive(Debug)]
struct PythonModule {
    files: Vec<String>,
    /// The names that they seem to define: those behind `def`, and texts that could be names.
    defined: FxHashSet<String>,
    /// Those of functions, in order, for advice and for templates.
    functions: Vec<Arc<str>>,
}

/// What a worker says that a module has.
#[derive(Debug, Default)]
struct LoadedModule {
    /// By namespace and name.
    functions: BTreeMap<(String, String), Arc<PluginFunction>>,
    /// What could not be imported.
    failures: Vec<String>,
}

/// What there is to say of a function that a module with functions in Python does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingPlugin {
    /// Why it is not there, if that is known: what Python says of the file.
    pub reason: Option<String>,
    /// A fact beside it.
    pub note: String,
}

impl Plugins {
    /// Finds the Python files of modules, which are given as pairs of name and directory. These files can import the Python of every
    /// module in `module_path`. Nothing is run yet.
    #[must_use]
    pub fn new(
        settings: &PluginSettings,
        project: &str,
        python: impl Iterator<Item = (Arc<str>, Arc<str>)>,
        module_path: &[String],
        loader: &dyn Loader,
    ) -> Plugins {
        let mut modules = BTreeMap::new();
        let mut directories = BTreeMap::new();
        for (module, directory) in python {
            let mut paths: Vec<String> = loader.list(&directory).unwrap_or_default();
            paths.retain(|path| path.ends_with(".py"));
            paths.sort_unstable();
            modules.insert(module.clone(), PythonModule::of(paths, loader));
            directories.insert(module, directory);
        }
        let conversation = match settings {
            PluginSettings::Off(reason) => Err(reason.clone()),
            PluginSettings::Named => Err("which are not run here".into()),
            PluginSettings::By(host) => {
                let surroundings = Surroundings {
                    project: project.into(),
                    directories,
                    module_path: module_path.to_vec(),
                };
                Ok(Arc::new(Conversation::new(host.clone(), surroundings)))
            }
        };
        Plugins {
            by_name_alone: matches!(settings, PluginSettings::Named),
            modules,
            conversation,
            loaded: Mutex::default(),
        }
    }

    /// The Python files.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        let files = self.modules.values().flat_map(|module| &module.files);
        files.map(String::as_str)
    }

    /// The function of a namespace. Asks the worker only when a file of the module looks as if it had one of this name.
    #[must_use]
    pub fn function(&self, namespace: &str, name: &str) -> Option<Arc<PluginFunction>> {
        let module = first_part(namespace);
        if !self.modules.get(module)?.may_define(name) {
            return None;
        }
        if self.by_name_alone {
            return Some(Arc::new(PluginFunction::named(namespace, name)));
        }
        let loaded = self.loaded(module).ok()?;
        loaded
            .functions
            .get(&(namespace.to_owned(), name.to_owned()))
            .cloned()
    }

    /// The names of the functions that the files of a namespace's module seem to define.
    #[must_use]
    pub fn names(&self, namespace: &str) -> Vec<Arc<str>> {
        match self.modules.get(first_part(namespace)) {
            Some(module) => module.functions.clone(),
            None => Vec::new(),
        }
    }

    /// Why a namespace does not have this function, if there is more to say than that it is not there.
    #[must_use]
    pub fn why_missing(&self, namespace: &str, name: &str) -> Option<MissingPlugin> {
        let module = first_part(namespace);
        let has_functions = |found: &str| format!("module `{module}` has functions in Python{found}");
        let is_named = self.modules.get(module)?.may_define(name);
        if self.by_name_alone {
            return None;
        }
        // Nothing is run for the name of something else.
        let loaded = match (&self.conversation, is_named) {
            (Err(reason), _) => Err(reason.to_string()),
            (Ok(_), true) => self.loaded(module),
            (Ok(_), false) => return None,
        };
        match loaded {
            Err(reason) => Some(MissingPlugin {
                reason: None,
                note: has_functions(&format!(", {reason}, so nothing provides `{namespace}::{name}`")),
            }),
            Ok(loaded) => Some(MissingPlugin {
                reason: Some(format!("Python cannot import {}", loaded.failures.first()?)),
                note: has_functions(", of which some cannot be imported"),
            }),
        }
    }

    /// Ends the worker, if there is one: nothing is called any more.
    pub fn end(&self) {
        if let Ok(conversation) = &self.conversation {
            conversation.end();
        }
    }

    /// What the worker says of a module; or why it says nothing.
    fn loaded(&self, module: &str) -> Loaded {
        if let Some(known) = self.all_loaded().get(module) {
            return known.clone();
        }
        let loaded = self.load(module);
        self.all_loaded().insert(module.into(), loaded.clone());
        loaded
    }

    fn load(&self, module: &str) -> Loaded {
        let conversation = self.conversation.as_ref().map_err(ToString::to_string)?;
        let found = conversation
            .load(module)
            .map_err(|lost| format!("which cannot be used: {}", lost.sentence()))?;
        let function = |found: FoundFunction| {
            let key = (found.namespace.clone(), found.name.clone());
            (key, Arc::new(PluginFunction::new(found, conversation.clone())))
        };
        Ok(Arc::new(LoadedModule {
            functions: found.functions.into_iter().map(function).collect(),
            failures: found.failed.iter().map(ImportFailure::sentence).collect(),
        }))
    }

    fn all_loaded(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Loaded>> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PythonModule {
    fn of(files: Vec<String>, loader: &dyn Loader) -> PythonModule {
        let mut module = PythonModule {
            files,
            defined: FxHashSet::default(),
            functions: Vec::new(),
        };
        for path in &module.files {
            let Ok(bytes) = loader.read(path) else { continue };
            let text = String::from_utf8_lossy(&bytes);
            for line in text.lines() {
                let defined = line.trim_start().strip_prefix("def ").and_then(name_at);
                let texts = line
                    .split(['"', '\''])
                    .filter(|text| name_at(text) == Some(*text));
                module
                    .defined
                    .extend(defined.into_iter().chain(texts).map(str::to_owned));
                // `def name(…)`, `@plugin("name")`
                let function = line.strip_prefix("def ").and_then(name_at);
                let named = line
                    .strip_prefix("@plugin(")
                    .and_then(|rest| rest.split(['"', '\'']).nth(1));
                let name = function.or(named.and_then(name_at));
                module.functions.extend(name.map(Arc::from));
            }
        }
        module
    }

    /// Whether one of the files has a definition of this name, or the name as a text.
    fn may_define(&self, name: &str) -> bool {
        // No function has a name that only entities can have.
        !name.starts_with(|first: char| first.is_ascii_uppercase()) && self.defined.contains(name)
    }
}

/// The name that a text begins with.
fn name_at(text: &str) -> Option<&str> {
    let text = text.trim_start();
    let end = text
        .find(|letter: char| letter != '_' && !letter.is_alphanumeric())
        .unwrap_or(text.len());
    (end > 0 && !text.starts_with(|first: char| first.is_ascii_digit())).then(|| &text[..end])
}

impl Lost {
    /// Because of this.
    #[must_use]
    pub fn because(reason: impl Into<String>) -> Lost {
        Lost {
            reason: reason.into(),
            said: None,
            help: None,
        }
    }

    /// Its answer is not a message.
    #[must_use]
    pub fn nonsense() -> Lost {
        Lost::because("the Python process answered what is no answer")
    }

    /// The reason with what was said last.
    fn sentence(&self) -> String {
        match &self.said {
            Some(said) => format!("{} ({said})", self.reason),
            None => self.reason.clone(),
        }
    }
}

fn first_part(namespace: &str) -> &str {
    namespace.split("::").next().unwrap_or(namespace)
}
