//! Models that a program imports as modules.
//!
//! ```text
//!  import "network/" ──▶ a module, written from `project.yml`: a class `model` with the inputs as parameters
//!                          │ calls
//!                          ▼
//!                        execute (a source) ──▶ the model is executed ──▶ outputs: variables of the class
//!                          │ key                                             resources, under the key
//!                          ▼                                                   │
//!                        resource `setpoint:model` ──▶ expanded while the graph is built ◀──┘
//! ```
//!
//! The module lives only here: no file is written. Models and program share one set of texts, so that a place says which text it is in
//! whatever the language. The texts of a model are texts of the program: when one changes, the program is read again. What a model reads
//! besides (templates, data) is followed by the source, which executes it anew.

mod module;
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};

use setpoint_diagnostics::{Diagnostics, Loader, SourceMap, visible};
use setpoint_flow::Expansion;
use setpoint_graph::{
    DesiredResource, KindSchema, Library, ParameterSchema, ParameterType, StatementOutput, UnknownPart,
    UnknownWhat,
};
use setpoint_host::sync::Mutex;
use setpoint_value::Value;

use crate::failure::Failure;
use crate::languages::included_programs::canonical;
use crate::languages::model::{Executed, ModelSettings, ModelSource, ModelWork};
use crate::report::{Importance, Reporter};

pub use module::ModelsAsModules;

/// The models of one compilation of a program, and what they have become. Clones are one and the same.
#[derive(Clone)]
pub struct IncludedModels(Arc<Shared>);

struct Shared {
    /// The root directory of the program, as the user can open it: empty or ending in `/`.
    root: String,
    /// What models can use.
    library: Library,
    hostname: String,
    /// How they are looked at.
    settings: ModelSettings,
    reporter: Reporter,
    /// The directories that were imported, ending in `/`.
    imported: Mutex<BTreeSet<String>>,
    texts: Mutex<Texts>,
    executions: Mutex<Executions>,
}

/// The texts of the program and of its models.
#[derive(Default)]
struct Texts {
    /// By names relative to the program's root.
    all: SourceMap,
    /// Those of the model in each directory, by the names that it knows and with the numbers that they have among all. What is not its
    /// own is there as an empty text.
    own: BTreeMap<String, SourceMap>,
}

#[derive(Default)]
struct Executions {
    newest: u64,
    by_key: BTreeMap<String, Weak<Execution>>,
    /// What is to be told of those that came since it was asked for last.
    news: Vec<News>,
}

/// Something to be told of an execution.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum News {
    /// A line that the model printed.
    Printed(String),
    /// What is not as it should be: that a resource is not applied, and why.
    Warning(String),
}

impl News {
    /// Prints what models reported, in the order in which they did.
    pub fn report(news: &[News], reporter: &Reporter) {
        for news in news {
            match news {
                News::Printed(line) => reporter.say(Importance::Info, line.clone()),
                News::Warning(text) => reporter.warning(visible(text)),
            }
        }
    }
}

/// What a model has become.
struct Execution {
    key: String,
    /// What it gives to the program; unknown if something is wrong with it.
    outputs: BTreeMap<Arc<str>, Value>,
    described: StatementOutput,
    diagnostics: Diagnostics,
    /// Files that it read besides its texts, as absolute paths or relative to where the user is.
    files: BTreeSet<String>,
}

/// The kind that stands for the resources of an execution.
static MODEL: KindSchema = KindSchema::plain(
    "setpoint:model",
    "The resources of a model that a program includes.",
    &[ParameterSchema {
        name: EXECUTION,
        yaml_name: EXECUTION,
        parameter_type: &ParameterType::Str,
        form: None,
        doc: "The execution that they come from.",
        default: "",
    }],
);

const EXECUTION: &str = "execution";

impl IncludedModels {
    /// None yet. They use what `library` has, on the host that it names; the program is below `root`.
    pub fn new(
        root: &str,
        library: &Library,
        settings: &ModelSettings,
        reporter: &Reporter,
    ) -> IncludedModels {
        let hostname = library.variables.get("hostname").and_then(Value::as_str);
        IncludedModels(Arc::new(Shared {
            root: root.to_owned(),
            hostname: hostname
                .map(|name| name.to_lossy().into_owned())
                .unwrap_or_default(),
            library: library.clone(),
            settings: settings.clone(),
            reporter: reporter.clone(),
            imported: Mutex::default(),
            texts: Mutex::default(),
            executions: Mutex::default(),
        }))
    }

    /// The library of a program that can include them.
    pub fn library(&self) -> Library {
        let mut library = self.0.library.clone();
        library.kinds.insert(MODEL.kind, &MODEL);
        if let Ok(function) = source::function(self) {
            // Nobody else has a module of this name.
            let _ = library.functions.add(function);
        }
        library
    }

    /// Resolves those that were imported, after `sources`, which their texts are added to. What is wrong is told.
    pub fn check(&self, sources: &mut SourceMap, diagnostics: &mut Diagnostics) {
        let imported = self.0.imported.lock().clone();
        *self.0.texts.lock() = Texts {
            all: sources.clone(),
            own: BTreeMap::new(),
        };
        let mut found = Diagnostics::new();
        for directory in &imported {
            if let Ok(mut work) = self.work(directory) {
                let (_, of_model) = self.with_texts(&mut work, directory, ModelWork::check);
                found.append(of_model);
            }
        }
        if !imported.is_empty() {
            *sources = self.texts();
            // What is wrong with a model may be why something is wrong with what uses it.
            found.append(std::mem::take(diagnostics));
            *diagnostics = found;
        }
    }

    /// Whether there is one.
    pub fn is_empty(&self) -> bool {
        self.0.imported.lock().is_empty()
    }

    /// All texts, by names relative to the program's root. Those that were there before have the numbers that they had.
    pub fn texts(&self) -> SourceMap {
        self.0.texts.lock().all.clone()
    }

    /// What is to be told of the executions since this was asked last.
    pub fn news(&self) -> Vec<News> {
        std::mem::take(&mut self.0.executions.lock().news)
    }

    /// Where a directory is, as the user can open it.
    fn place(&self, directory: &str) -> String {
        match directory.starts_with('/') {
            true => directory.to_owned(),
            false => format!("{}{directory}", self.0.root),
        }
    }

    /// Why the model in a directory cannot be included: it is what includes the program.
    fn cycle(&self, directory: &str) -> Option<String> {
        let including = &self.0.settings.including;
        let place = canonical(&self.place(directory)).filter(|place| including.contains(place))?;
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        Some(format!(
            "the model in `{name}` includes this program, so the program cannot include the model"
        ))
    }

    fn work(&self, directory: &str) -> Result<ModelWork, Failure> {
        let place = self.place(directory);
        let shared = &self.0;
        let (settings, library) = (shared.settings.clone(), shared.library.clone());
        let hostname = shared.hostname.clone();
        ModelSource::find(&place, settings, library, hostname, &shared.reporter).map(ModelWork::new)
    }

    /// Does something with a model while it has its texts, numbered among those of all.
    fn with_texts<T>(
        &self,
        work: &mut ModelWork,
        directory: &str,
        action: impl FnOnce(&mut ModelWork) -> T,
    ) -> T {
        let mut texts = self.0.texts.lock();
        let mut own = texts.own.remove(directory).unwrap_or_default();
        let known = texts.all.files().count();
        for _ in own.files().count()..known {
            own.add("", "");
        }
        work.sources = own;
        let answer = action(work);
        let own = std::mem::take(&mut work.sources);
        for (_, file) in own.files().skip(known) {
            let name = match file.name.starts_with(['/', '<']) {
                true => file.name.to_string(),
                false => format!("{directory}{}", file.name),
            };
            texts.all.add(name, file.text.clone());
        }
        texts.own.insert(directory.to_owned(), own);
        answer
    }

    /// Executes a model that is given these inputs. With `store` it may write what outlives executions.
    fn execute(
        &self,
        work: &mut ModelWork,
        directory: &str,
        given: BTreeMap<Arc<str>, Value>,
        store: bool,
    ) -> Arc<Execution> {
        work.give_inputs(given);
        let executed = self.with_texts(work, directory, ModelWork::execute);
        let Executed {
            compiled,
            diagnostics,
            machine,
            ..
        } = executed;
        let mut news = Vec::new();
        let mut described = StatementOutput::default();
        for line in compiled.execution.iter().flat_map(|execution| &execution.printed) {
            news.push(News::Printed(line.clone()));
        }
        if let Some(machine) = machine {
            for (_, output) in machine.outputs {
                described.resources.extend(output.resources);
                described.edges.extend(output.edges);
            }
            for held in machine.held {
                described.unknown.push(held.as_unknown());
                let text = format!("{} is held ({}): {}", held.id, held.state.name(), held.reason);
                news.push(News::Warning(text));
            }
        }
        let files = work.further_files(&compiled);
        let mut outputs = compiled.outputs.clone();
        if diagnostics.has_errors() {
            outputs.clear();
        } else if store && let Err(failure) = work.store(&compiled) {
            news.push(News::Warning(failure.to_string()));
        }
        let mut executions = self.0.executions.lock();
        executions.newest += 1;
        let execution = Arc::new(Execution {
            key: executions.newest.to_string(),
            outputs,
            described,
            diagnostics,
            files,
        });
        executions.by_key.retain(|_, known| known.strong_count() > 0);
        executions
            .by_key
            .insert(execution.key.clone(), Arc::downgrade(&execution));
        executions.news.extend(news);
        execution
    }

    fn execution(&self, key: &str) -> Option<Arc<Execution>> {
        self.0.executions.lock().by_key.get(key).and_then(Weak::upgrade)
    }

    /// The loader of a program, with a module for each directory that is a model.
    pub fn modules<L: std::ops::Deref<Target: Loader> + Send + Sync>(&self, files: L) -> ModelsAsModules<L> {
        ModelsAsModules::new(self.clone(), files)
    }

    fn note(&self, directory: &str) {
        self.0.imported.lock().insert(directory.to_owned());
    }
}

impl Expansion for IncludedModels {
    fn expand(&self, resource: &DesiredResource, diagnostics: &mut Diagnostics) -> Option<StatementOutput> {
        if &*resource.id.kind != MODEL.kind {
            return None;
        }
        let key = resource.parameters.get(EXECUTION)?.unmarked();
        if key.is_unknown() {
            let part = UnknownPart {
                span: resource.span,
                what: UnknownWhat::Block,
            };
            return Some(StatementOutput {
                unknown: vec![part],
                ..StatementOutput::default()
            });
        }
        let execution = self.execution(&key.as_str()?.to_lossy())?;
        diagnostics.extend(execution.diagnostics.iter().cloned());
        let mut described = execution.described.clone();
        for of_model in &mut described.resources {
            // Included where the program says so.
            Arc::make_mut(of_model).chain = resource.chain.clone();
        }
        Some(described)
    }
}
