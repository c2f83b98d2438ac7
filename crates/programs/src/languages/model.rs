//! A model, the second language: where it is, what it is given of this machine, and what it gives.

mod programs;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use setpoint_cf::analysis::{Analysis, AnalysisOptions, Workspace};
use setpoint_cf::compile::{Checked, Compiled, check, compile};
use setpoint_cf::datum::Datum;
use setpoint_cf::execute::{Inputs, Outside, ReadKey};
use setpoint_cf::export::{
    Deferrals, Exported, HeldResource, LANGUAGE, Machine, MachineOutputs, StatementOf, gates,
    machine_outputs, updated_outputs,
};
use setpoint_cf::functions::context::Deployment;
use setpoint_cf::plugins::PluginSettings;
use setpoint_cf::{ports, project};
use setpoint_diagnostics::{Diagnostics, Documents, Loader, SourceMap, did_you_mean, visible};
use setpoint_graph::{Assembler, DesiredGraph, Library, ResourceId};
use setpoint_value::{CallError, FunctionRef, Random, Value};

use crate::asked_files::{AskedFiles, Asking};
use crate::capabilities::SystemRandom;
use crate::directory_loader::DirectoryLoader;
use crate::facts::{Facts, read_facts};
use crate::failure::{Failure, system_text};
use crate::languages::included_programs::{Evaluations, IncludedPrograms, ProgramsAsModules, with_programs};
use crate::languages::installed_modules::installed_modules;
use crate::languages::model_loader::model_loader;
use crate::python::Python;
use crate::report::{Importance, Reporter, headed};

/// Which model, and what it is given.
pub struct ModelSource {
    /// The directory of its project as the user can open it: empty or ending in `/`.
    pub root: String,
    /// Its main file, relative to that.
    main: Option<String>,
    /// Whether the project must have a `project.yml`.
    needs_project: bool,
    /// Further directories of modules.
    module_path: Vec<String>,
    /// What it can use.
    library: Library,
    /// The machine whose resources are kept.
    hostname: String,
    /// The environment; none for that of this process.
    environment: Option<BTreeMap<Arc<str>, Arc<str>>>,
    /// A file with facts.
    facts_file: Option<PathBuf>,
    /// What it says. It counts more than what is published.
    facts: Facts,
    /// What resources published.
    published: Facts,
    /// What programs hold in their variables.
    of_programs: Facts,
    /// What an execution wants to outlive it that was not the last one: random texts stay what they are while programs are evaluated.
    kept: BTreeMap<Arc<str>, String>,
    /// How many rounds of freezing relations there may be.
    max_rounds: Option<u64>,
    /// What runs the functions that its modules have in Python.
    plugins: PluginSettings,
    /// Whether it is compiled again and again.
    is_followed: bool,
    /// What is given for the inputs of the project, by name.
    given: BTreeMap<Arc<str>, Value>,
    /// Programs that it imports as modules.
    programs: IncludedPrograms,
    /// What has become of them.
    evaluations: Evaluations,
}

/// What the command line says about a model, besides where it is.
#[derive(Debug, Clone, Default)]
pub struct ModelSettings {
    /// The main file, relative to where the user is, or to the project.
    pub main: Option<String>,
    /// Further directories of modules.
    pub module_path: Vec<String>,
    /// The environment; none for that of this process.
    pub environment: Option<BTreeMap<Arc<str>, Arc<str>>>,
    /// A file with facts.
    pub facts: Option<PathBuf>,
    /// Whether functions that modules have in Python are not run.
    pub no_python: bool,
    /// What is given for inputs of the project, as it was written.
    pub inputs: Vec<(String, String)>,
    /// The projects of models that include the program that includes this one: one in the other, the outermost first.
    pub including: Vec<PathBuf>,
}

/// Whether an argument names a model: a `.cf` file, a `project.yml`, or a directory that has one and is no program of the first language.
pub(crate) fn is_model(argument: &str) -> bool {
    if argument.contains(char::is_whitespace) && !Path::new(argument).exists() {
        return false;
    }
    let has = |name: &str| Path::new(argument).join(name).is_file();
    argument.ends_with(".cf")
        || argument == "project.yml"
        || argument.ends_with("/project.yml")
        || has("project.yml") && !has("metadata.yaml") && !has("main.mcl")
}

impl ModelSource {
    /// Finds the project of a model: that of the directory, or of the directory of the file, or one above.
    ///
    /// # Errors
    /// When there is no such file or directory.
    pub fn find(
        argument: &str,
        settings: ModelSettings,
        library: Library,
        hostname: String,
        reporter: &Reporter,
    ) -> Result<ModelSource, Failure> {
        let path = Path::new(argument);
        let metadata = std::fs::metadata(path).map_err(|error| {
            Failure::wrong(format!("`{argument}` cannot be read: {}", system_text(&error)))
        })?;
        let (directory, file) = match (metadata.is_dir(), path.file_name().and_then(|name| name.to_str())) {
            (true, _) => (path.to_path_buf(), None),
            (false, Some("project.yml")) => (parent_of(path), None),
            (false, name) => (parent_of(path), name.map(str::to_owned)),
        };
        let above = project_above(&directory);
        let (root, main) = match (&above, file.or(settings.main)) {
            (Some((root, below)), Some(file)) => (root.clone(), Some(format!("{below}{file}"))),
            (Some((root, _)), None) => (root.clone(), None),
            (None, file) => (directory, file),
        };
        let mut module_path = Vec::new();
        for directory in settings.module_path {
            let absolute = std::path::absolute(&directory).map_err(|error| {
                Failure::io(
                    format_args!("find the working directory for `{directory}`"),
                    &error,
                )
            })?;
            module_path.push(absolute.to_string_lossy().trim_end_matches('/').to_owned());
        }
        module_path.extend(installed_modules());
        let mut root = root.to_string_lossy().into_owned();
        if root == "." {
            root.clear();
        }
        if !root.is_empty() && !root.ends_with('/') {
            root.push('/');
        }
        let no_python = settings.no_python;
        let plugins = match no_python || Python::is_off() {
            true => PluginSettings::Off("which are turned off".into()),
            false => PluginSettings::By(Arc::new(Python::new(&root, reporter)?)),
        };
        let given = given(&root, &settings.inputs)?;
        let programs = IncludedPrograms::new(&root, &library, no_python, settings.including, reporter);
        let evaluations = Evaluations::new(programs.clone(), reporter);
        Ok(ModelSource {
            root,
            plugins,
            programs,
            evaluations,
            of_programs: Facts::new(),
            kept: BTreeMap::new(),
            needs_project: above.is_none() && main.is_none(),
            main,
            module_path,
            library: with_programs(&library),
            hostname,
            given,
            max_rounds: max_rounds(settings.environment.as_ref())?,
            environment: settings.environment,
            facts: settings
                .facts
                .as_deref()
                .map(read_facts)
                .transpose()?
                .unwrap_or_default(),
            facts_file: settings.facts,
            published: Facts::new(),
            is_followed: false,
        })
    }

    fn all_facts(&self) -> Facts {
        let mut facts = self.published.clone();
        facts.extend(
            self.of_programs
                .iter()
                .map(|(key, value)| (key.clone(), value.clone())),
        );
        facts.extend(self.facts.iter().map(|(key, value)| (key.clone(), value.clone())));
        facts
    }

    fn inputs(&self, loader: &dyn Loader) -> Inputs {
        let environment = self.environment.clone().unwrap_or_else(|| {
            let text = |text: std::ffi::OsString| text.into_string().ok().map(Arc::from);
            std::env::vars_os()
                .filter_map(|(name, value)| Some((text(name)?, text(value)?)))
                .collect()
        });
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let mut stored = BTreeMap::new();
        if loader.is_directory(STORED) {
            for path in loader.list(STORED).unwrap_or_default() {
                let text = loader
                    .read(&path)
                    .ok()
                    .and_then(|bytes| String::from_utf8(bytes.to_vec()).ok());
                stored.extend(text.map(|text| (Arc::from(path), Arc::from(text))));
            }
        }
        for (path, text) in &self.kept {
            stored.entry(path.clone()).or_insert_with(|| text.as_str().into());
        }
        Inputs {
            deployment: Deployment {
                deploy: DEPLOY.into(),
                ..Deployment::default()
            },
            environment,
            facts: self.all_facts(),
            max_rounds: self.max_rounds,
            root: std::path::absolute(if self.root.is_empty() { "." } else { &self.root }).map_or_else(
                |_| self.root.as_str().into(),
                |root| root.to_string_lossy().into(),
            ),
            given: self.given.clone(),
            unix_time: since.ok().and_then(|since| since.as_secs().try_into().ok()),
            stored,
            outside: Some(Box::new(ThisMachine)),
            record: self.is_followed,
        }
    }
}

/// The variable of the environment that says how many rounds of freezing relations there may be.
const MAX_ROUNDS: &str = "SETPOINT_CF_MAX_ROUNDS";

/// What that variable says: the one that the model is given, or that of this process.
fn max_rounds(environment: Option<&BTreeMap<Arc<str>, Arc<str>>>) -> Result<Option<u64>, Failure> {
    let given = environment.and_then(|environment| environment.get(MAX_ROUNDS));
    let text = given
        .map(ToString::to_string)
        .or_else(|| std::env::var(MAX_ROUNDS).ok());
    let parse = |text: String| match text.parse() {
        Ok(rounds) => Ok(rounds),
        Err(_) => Err(Failure::wrong(format!(
            "{MAX_ROUNDS} is a whole number from 0 up, not `{}`",
            visible(&text)
        ))),
    };
    text.map(parse).transpose()
}

/// What is given for the inputs that a project declares.
fn given(root: &str, written: &[(String, String)]) -> Result<BTreeMap<Arc<str>, Value>, Failure> {
    if written.is_empty() {
        return Ok(BTreeMap::new());
    }
    let (declared, _) = ports::declared(&DirectoryLoader::new(root), "");
    let value = |(name, text): &(String, String)| {
        let Some(port) = declared.iter().find(|port| *port.name == **name) else {
            let failure = Failure::usage(format!("the model has no input `{name}`"));
            let names = declared.iter().map(|port| &*port.name);
            return Err(match did_you_mean(name, names) {
                Some(near) => failure.hint(near),
                None => failure.hint("a project declares its inputs in `project.yml`, in `setpoint.inputs`"),
            });
        };
        let value = port.ty.value_of(text);
        let value =
            value.map_err(|what| Failure::usage(format!("the input `{name}` cannot be this: {what}")))?;
        Ok((port.name.clone(), value))
    };
    written.iter().map(value).collect()
}

/// Where models keep what outlives executions.
const STORED: &str = "data";

/// The directory that a file is in; the working directory is `.`.
fn parent_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

/// The project that a directory belongs to, and the way from there back to the directory, empty or ending in `/`.
fn project_above(directory: &Path) -> Option<(PathBuf, String)> {
    let absolute = std::path::absolute(directory).ok()?;
    let found = absolute.ancestors().find(|at| at.join("project.yml").is_file())?;
    let below = absolute.strip_prefix(found).ok()?;
    let mut way = String::new();
    let mut root = directory.to_path_buf();
    for component in below.components() {
        if let Component::Normal(name) = component {
            way.push_str(name.to_str()?);
            way.push('/');
            root.push("..");
        }
    }
    // A path that the user knows, where that is possible.
    Some((
        if way.is_empty() {
            directory.to_path_buf()
        } else {
            found.to_path_buf()
        },
        way,
    ))
}

/// A model that is looked at, once or again and again.
pub struct ModelWork {
    source: ModelSource,
    options: project::Options,
    /// Texts, named relative to the project.
    pub sources: SourceMap,
    assembler: Assembler<StatementOf>,
}

/// A model that was compiled.
pub struct ModelCompilation {
    /// What came of it.
    pub compiled: Compiled,
    /// What is wrong.
    pub diagnostics: Diagnostics,
    /// What a machine keeps of it; none if something is wrong.
    pub desired: Option<Desired>,
    /// What it was given.
    inputs: Inputs,
    /// What it asked of the disk.
    asked: AskedFiles,
}

/// A model that was executed.
pub struct Executed {
    /// What came of it.
    pub compiled: Compiled,
    /// What is wrong.
    pub diagnostics: Diagnostics,
    /// What this machine keeps, as statements; none if something is wrong.
    pub machine: Option<MachineOutputs>,
    inputs: Inputs,
    asked: AskedFiles,
}

/// What a machine keeps of a model.
pub struct Desired {
    /// What is applied.
    pub graph: DesiredGraph,
    /// What is not, because something is not known.
    pub held: Vec<HeldResource>,
    /// The resource sets that resources are in.
    pub sets: BTreeMap<ResourceId, Arc<str>>,
}

impl ModelCompilation {
    /// The files that it was made of, or would have been, as the model names them.
    pub fn files(&self) -> impl Iterator<Item = String> + '_ {
        let loaded = self.compiled.checked.reads.iter().cloned();
        let asked = self
            .compiled
            .execution
            .iter()
            .flat_map(|execution| &execution.reads);
        let read = asked.filter_map(|key| match key {
            ReadKey::File(path) => Some(path.to_string()),
            _ => None,
        });
        loaded.chain(read).filter(|name| !name.starts_with('<'))
    }

    /// The facts that it asked for, or that a resource of it takes: `machine/kind[name]/fact`.
    pub fn asked_facts(&self) -> BTreeSet<Arc<str>> {
        let executed = self.compiled.execution.iter();
        let read = executed
            .flat_map(|execution| &execution.reads)
            .filter_map(|key| match key {
                ReadKey::Fact(key) => Some(key.clone()),
                _ => None,
            });
        let exported = self.compiled.exported.iter();
        let deferred = exported.flat_map(Exported::deferred_facts).map(Arc::from);
        read.chain(deferred).collect()
    }
}

impl Desired {
    /// The graph with what is held in it: for looking at, not for applying.
    pub fn with_held(&self) -> DesiredGraph {
        let mut graph = self.graph.clone();
        for held in &self.held {
            if let Some(resource) = &held.resource {
                graph.resources.insert(held.id.clone(), resource.clone());
            }
        }
        for edge in self.held.iter().flat_map(|held| &held.edges) {
            graph
                .edges
                .insert((edge.from.clone(), edge.to.clone()), Arc::new(edge.clone()));
        }
        graph
    }

    /// Leaves only what is in some of these resource sets.
    ///
    /// # Errors
    /// When one of them has no resource.
    pub fn keep_sets(&mut self, names: &[String]) -> Result<(), Failure> {
        if names.is_empty() {
            return Ok(());
        }
        let known: BTreeSet<&str> = self.sets.values().map(|name| &**name).collect();
        if let Some(unknown) = names.iter().find(|name| !known.contains(name.as_str())) {
            let failure = Failure::wrong(format!(
                "no resource of this machine is in a resource set `{unknown}`"
            ));
            let known: Vec<&str> = known.into_iter().collect();
            return Err(match known.is_empty() {
                true => failure.hint("a set is made with `std::ResourceSet(name=…, resources=…)`"),
                false => failure.hint(format!("there is `{}`", known.join("`, `"))),
            });
        }
        let sets = &self.sets;
        let is_named = |id: &ResourceId| {
            sets.get(id)
                .is_some_and(|set| names.iter().any(|name| **name == **set))
        };
        // What one of them waits for, and what tells others of it.
        let edges = self.graph.edges.keys();
        let beside: BTreeSet<ResourceId> = edges
            .filter_map(|(from, to)| match (&*from.kind, &*to.kind) {
                (gates::GATE, _) if is_named(to) => Some(from.clone()),
                (_, gates::SETTLED) if is_named(from) => Some(to.clone()),
                _ => None,
            })
            .collect();
        let is_kept = |id: &ResourceId| is_named(id) || beside.contains(id);
        let resources = self.graph.resources.iter().filter(|(id, _)| is_kept(id));
        let resources = resources.map(|(id, resource)| (id.clone(), resource.clone()));
        let edges = self.graph.edges.iter();
        let edges = edges.filter(|((from, to), _)| is_kept(from) && is_kept(to));
        let edges = edges.map(|(ends, edge)| (ends.clone(), edge.clone()));
        (self.graph.resources, self.graph.edges) = (resources.collect(), edges.collect());
        self.held.retain(|held| is_kept(&held.id));
        for held in &mut self.held {
            held.edges.retain(|edge| is_kept(&edge.from) && is_kept(&edge.to));
        }
        Ok(())
    }

    /// Says what is held, and why.
    pub fn say_held(&self, reporter: &Reporter) {
        for held in &self.held {
            let text = format!("{} is held ({}): {}", held.id, held.state.name(), held.reason);
            reporter.say(Importance::Warning, headed(Importance::Warning, &visible(&text)));
        }
    }
}

impl ModelWork {
    /// Nothing is looked at yet.
    pub fn new(source: ModelSource) -> ModelWork {
        ModelWork {
            options: project::Options {
                main: source.main.clone(),
                module_path: source.module_path.clone(),
                needs_project: source.needs_project,
                plugins: source.plugins.clone(),
                ..project::Options::default()
            },
            source,
            sources: SourceMap::new(),
            assembler: Assembler::new(&LANGUAGE),
        }
    }

    /// Resolves the model, without executing it.
    pub fn check(&mut self) -> (Checked, Diagnostics) {
        let loader = self.loader();
        let mut diagnostics = Diagnostics::new();
        self.source.programs.begin();
        let checked = check(
            &loader,
            &self.source.library,
            &mut self.options,
            &mut self.sources,
            &mut diagnostics,
        );
        self.source.programs.report(&mut self.sources, &mut diagnostics);
        (checked, diagnostics)
    }

    /// Everything that is known without executing it; files that `changed` has are as they are there.
    pub fn analyse(&self, changed: &BTreeMap<String, String>) -> Analysis {
        let loader = self.loader();
        let mut documents = Documents::new();
        for (path, text) in changed {
            documents.set(path.clone(), 0, text.as_str());
        }
        let options = AnalysisOptions {
            main: self.options.main.clone(),
            module_path: self.options.module_path.clone(),
            needs_project: self.options.needs_project,
        };
        self.source.programs.begin();
        let library = &self.source.library;
        let mut analysis = Workspace::new().analyse(&options, &documents.over(&loader), library);
        self.source
            .programs
            .report(&mut analysis.sources, &mut analysis.diagnostics);
        analysis
    }

    /// The files of the model: also below directories of modules that the project says lie outside of it.
    fn loader(&self) -> ProgramsAsModules {
        let files = model_loader(&self.source.root, &self.source.module_path);
        self.source.programs.modules(files)
    }

    /// Executes the model as it is now, and takes what this machine keeps.
    pub fn compile(&mut self) -> ModelCompilation {
        let compilation = self.compile_once();
        self.with_programs(compilation)
    }

    fn compile_once(&mut self) -> ModelCompilation {
        let Executed {
            compiled,
            mut diagnostics,
            machine,
            inputs,
            asked,
        } = self.execute();
        let mut desired = None;
        if let (Some(machine), Some(exported)) = (machine, &compiled.exported) {
            match self.assembler.replace_all(machine.outputs) {
                Ok(graph) => {
                    desired = Some(Desired {
                        graph,
                        held: machine.held,
                        sets: self.sets(exported),
                    });
                }
                Err(found) => diagnostics.append(found),
            }
        }
        ModelCompilation {
            compiled,
            diagnostics,
            desired,
            asked,
            inputs,
        }
    }

    /// Executes the model as it is now.
    pub fn execute(&mut self) -> Executed {
        let loader = self.loader();
        let inputs = self.source.inputs(&loader);
        let mut diagnostics = Diagnostics::new();
        let asking = Asking::of(&loader, AskedFiles::default());
        self.source.programs.begin();
        let compiled = compile(
            &asking,
            &self.source.library,
            &mut self.options,
            &inputs,
            &mut self.sources,
            &mut diagnostics,
        );
        self.source.programs.report(&mut self.sources, &mut diagnostics);
        let exported = compiled.exported.as_ref().filter(|_| !diagnostics.has_errors());
        let machine = exported.map(|exported| {
            let answers = Answers(&inputs);
            let this = this_machine(&self.source.library, &self.source.hostname, &answers);
            let mut machine = machine_outputs(exported, &this, &mut diagnostics);
            let (evaluations, sources) = (&mut self.source.evaluations, &mut self.sources);
            evaluations.replace(exported, &mut machine, sources, &mut diagnostics);
            machine
        });
        let machine = machine.filter(|_| !diagnostics.has_errors());
        Executed {
            compiled,
            diagnostics,
            machine,
            asked: asking.into_asked(),
            inputs,
        }
    }

    /// The files that an execution read besides the model's texts, as the user can open them.
    pub(crate) fn further_files(&self, compiled: &Compiled) -> BTreeSet<String> {
        let asked = compiled.execution.iter().flat_map(|execution| &execution.reads);
        let files = asked.filter_map(|key| match key {
            ReadKey::File(path) if !compiled.checked.reads.contains(&**path) => Some(path),
            _ => None,
        });
        let absolute = files.filter_map(|path| std::path::absolute(self.shown(path)).ok());
        absolute.map(|path| path.to_string_lossy().into_owned()).collect()
    }

    /// The inputs that nobody gives a value, as what was read and is not known.
    pub fn missing_inputs(&self, compiled: &Compiled) -> Vec<String> {
        let declared = compiled.checked.project.settings.inputs.iter();
        let missing = declared.filter(|port| !self.source.given.contains_key(&port.name));
        missing.map(|port| format!("input:{}", port.name)).collect()
    }

    /// Gives the model these for the inputs that it declares.
    pub(crate) fn give_inputs(&mut self, given: BTreeMap<Arc<str>, Value>) {
        self.source.given = given;
    }

    /// From now on it is compiled again and again: what its results depend on is noted.
    pub fn follow(&mut self) {
        self.source.is_followed = true;
    }

    /// What has become of a compilation now. Where answers have changed whose values it only passes on, nothing else is done anew.
    pub fn update(&mut self, before: ModelCompilation) -> ModelCompilation {
        let compilation = self.update_once(before);
        self.with_programs(compilation)
    }

    fn update_once(&mut self, before: ModelCompilation) -> ModelCompilation {
        self.try_update(before).unwrap_or_else(|| self.compile_once())
    }

    fn try_update(&mut self, before: ModelCompilation) -> Option<ModelCompilation> {
        let ModelCompilation {
            compiled,
            diagnostics,
            desired,
            inputs: old,
            mut asked,
        } = before;
        let desired = desired?;
        let loader = self.loader();
        let inputs = self.source.inputs(&loader);
        let execution = compiled.execution.as_ref()?;
        if old.stored != inputs.stored || !execution.is_repeatable() {
            return None;
        }
        let mut changed = BTreeSet::new();
        for path in asked.ask_again(&loader) {
            let key = ReadKey::File(path.as_str().into());
            if !execution.reads.contains(&key) || compiled.checked.reads.contains(&path) {
                return None;
            }
            changed.insert(key);
        }
        let is_same_fact = |key: &str| match (old.facts.get(key), inputs.facts.get(key)) {
            (None, None) => true,
            (Some(old), Some(new)) => old.is_identical(new),
            _ => false,
        };
        let is_changed = |key: &&ReadKey| match key {
            ReadKey::Environment(name) => old.environment.get(name) != inputs.environment.get(name),
            ReadKey::Fact(key) => !is_same_fact(key),
            ReadKey::Clock => old.unix_time != inputs.unix_time,
            ReadKey::Function(_) => true,
            ReadKey::File(_) => false,
        };
        changed.extend(execution.reads.iter().filter(is_changed).cloned());
        if !compiled
            .exported
            .as_ref()?
            .deferred_facts()
            .all(|key| is_same_fact(&key))
        {
            return None;
        }
        if changed.is_empty() && !self.has_programs() {
            return Some(ModelCompilation {
                compiled,
                diagnostics,
                desired: Some(desired),
                inputs,
                asked,
            });
        }
        let asking = Asking::of(&loader, asked);
        let (compiled, resources) = match changed.is_empty() {
            true => (compiled, BTreeSet::new()),
            false => {
                let updated = compiled.update(&asking, &inputs, &mut self.sources, &changed);
                let (compiled, updated) = updated?;
                (compiled, updated.resources)
            }
        };
        let exported = compiled.exported.as_ref()?;
        let answers = Answers(&inputs);
        let this = this_machine(&self.source.library, &self.source.hostname, &answers);
        // What stands in the place of an instance may be something else although the instance is the same.
        let outputs = match self.has_programs() {
            true => None,
            false => updated_outputs(exported, &resources, &desired.held, &this),
        };
        let (graph, held) = match outputs {
            Some(outputs) => {
                let outputs = outputs.into_iter();
                let changes = outputs.map(|(statement, reporter)| (statement, Some(Arc::new(reporter))));
                (self.assembler.apply(changes.collect()).ok()?, desired.held)
            }
            None => {
                let mut found = Diagnostics::new();
                let mut machine = machine_outputs(exported, &this, &mut found);
                let (evaluations, sources) = (&mut self.source.evaluations, &mut self.sources);
                evaluations.replace(exported, &mut machine, sources, &mut found);
                if !found.is_empty() {
                    return None;
                }
                (self.assembler.replace_all(machine.outputs).ok()?, machine.held)
            }
        };
        let sets = match self.has_programs() {
            true => self.sets(exported),
            false => desired.sets,
        };
        Some(ModelCompilation {
            compiled,
            diagnostics,
            desired: Some(Desired { graph, held, sets }),
            asked: asking.into_asked(),
            inputs,
        })
    }

    /// The resource sets of what this machine keeps; what stands in the place of an instance is in the set of that.
    fn sets(&self, exported: &Exported) -> BTreeMap<ResourceId, Arc<str>> {
        let resources = exported.resources.iter();
        let kept = resources.filter(|resource| resource.is_of(&self.source.hostname));
        let mut sets = BTreeMap::new();
        for resource in kept {
            let Some(set) = &resource.set else { continue };
            let id = ResourceId::new(resource.identity.kind.clone(), resource.identity.name.clone());
            let instead = self.source.evaluations.stands_for(&id).iter();
            sets.extend(instead.map(|id| (id.clone(), set.clone())));
            sets.insert(id, set.clone());
        }
        sets
    }

    /// The texts under names that the user can open.
    pub fn shown_sources(&self) -> SourceMap {
        self.shown_names(&self.sources)
    }

    /// Texts of the model under names that the user can open.
    pub fn shown_names(&self, sources: &SourceMap) -> SourceMap {
        let mut shown = SourceMap::new();
        for (_, file) in sources.files() {
            shown.add(self.shown(&file.name), file.text.clone());
        }
        shown
    }

    /// How many files were read.
    pub fn own_files(&self) -> usize {
        self.sources
            .files()
            .filter(|(_, file)| !file.name.starts_with('<'))
            .count()
    }

    /// What this machine is called.
    pub fn hostname(&self) -> &str {
        &self.source.hostname
    }

    /// Takes facts from a file from now on.
    ///
    /// # Errors
    /// When it holds none.
    pub fn take_facts(&mut self, file: PathBuf) -> Result<(), Failure> {
        self.source.facts = read_facts(&file)?;
        self.source.facts_file = Some(file);
        Ok(())
    }

    /// Reads that file anew. What it said before stays if that is not possible.
    ///
    /// # Errors
    /// When it holds no facts any more.
    pub fn reread_facts(&mut self) -> Result<(), Failure> {
        match self.source.facts_file.clone() {
            Some(file) => self.take_facts(file),
            None => Ok(()),
        }
    }

    /// That file.
    pub fn facts_file(&self) -> Option<&Path> {
        self.source.facts_file.as_deref()
    }

    /// Gives the model what resources published.
    pub fn give_facts(&mut self, published: Facts) {
        self.source.published = published;
    }

    /// What the model was given of facts.
    pub fn given_facts(&self) -> Facts {
        self.source.all_facts()
    }

    /// Lets the model see nothing of this machine.
    pub fn without_machine(&mut self) {
        self.source.environment = Some(BTreeMap::new());
    }

    /// A file of the model as the user can open it.
    pub fn shown(&self, name: &str) -> String {
        match name.starts_with(['/', '<']) {
            true => name.to_owned(),
            false => format!("{}{name}", self.source.root),
        }
    }

    /// Writes what outlives executions.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn store(&mut self, compiled: &Compiled) -> Result<(), Failure> {
        let stored = compiled.execution.iter().flat_map(|execution| &execution.stored);
        let stored = self.source.kept.iter().chain(stored);
        for (path, text) in stored {
            let place = PathBuf::from(self.shown(path));
            let write = || {
                std::fs::create_dir_all(parent_of(&place))?;
                let mut options = std::fs::OpenOptions::new();
                // It may hold passwords.
                std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
                let mut file = options.write(true).create(true).truncate(true).open(&place)?;
                std::io::Write::write_all(&mut file, text.as_bytes())
            };
            write().map_err(|error| Failure::io(format_args!("write `{}`", place.display()), &error))?;
        }
        self.source.kept.clear();
        Ok(())
    }
}

/// The deployment that every model belongs to, while there is no other way than to bring its text to each machine.
const DEPLOY: &str = "local";

/// The machine whose resources are kept.
fn this_machine<'a>(library: &'a Library, hostname: &'a str, deferrals: &'a Answers<'a>) -> Machine<'a> {
    Machine {
        hostname,
        deploy: DEPLOY,
        kinds: &library.internal_kinds,
        deferrals,
    }
}

/// The answers to deferred references on this machine.
struct Answers<'a>(&'a Inputs);

impl Deferrals for Answers<'_> {
    fn environment(&self, name: &str) -> Option<Arc<str>> {
        self.0.environment.get(name).cloned()
    }

    fn fact(&self, key: &str) -> Option<Datum> {
        self.0.facts.get(key).cloned()
    }
}

/// What no snapshot can hold.
struct ThisMachine;

impl Outside for ThisMachine {
    fn random(&self, bytes: &mut [u8]) -> Result<(), String> {
        SystemRandom.fill(bytes);
        Ok(())
    }

    fn source(&self, function: &FunctionRef, _: &[Value]) -> Result<Value, CallError> {
        let message = format!(
            "`{}` follows something outside, which models cannot do yet",
            function.called()
        );
        Err(CallError::catchable(message))
    }
}
