//! Programs that a model imports as modules.
//!
//! ```text
//!  import site ──▶ a module of the model, written from the classes of `libs/site/main.mcl`: an entity each, of kind `program`
//!                    │ its instances
//!                    ▼
//!                  evaluated (evaluations) ──▶ resources, in the place of the instance (replacement)
//!                                              outputs: facts of the instance ──▶ the model is executed again
//! ```
//!
//! The module lives only here: no file is written. A program is compiled once for each class that the model has instances of, with texts of
//! its own; its places are told among the model's (places). Evaluating takes a machine that is asked: who only looks at a model gives
//! none, and then all instances are held.

mod evaluations;
mod interface;
mod interface_places;
mod module;
mod places;
mod replacement;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use setpoint_cf::syntax::ast;
use setpoint_diagnostics::{Diagnostic, Diagnostics, LoadError, Loader, SourceMap, Span};
use setpoint_graph::{KindSchema, Library, ParameterSchema, ParameterType};
use setpoint_host::sync::Mutex;
use setpoint_value::{CallContext, Shared as SharedSource, Source, Subscription, Value};
use setpoint_value::{CallError, Class, FunctionSpec, Implementation};

use crate::languages::model::ModelSettings;
use crate::languages::model_loader::ModelLoader;
use crate::report::Reporter;

pub use evaluations::{Evaluating, Evaluations};
use interface_places::InterfacePlaces;
use module::ProgramModule;
pub use places::Places;

/// The programs that one model imports. Clones are one and the same.
#[derive(Clone)]
pub struct IncludedPrograms(Arc<Shared>);

struct Shared {
    surrounding: Surrounding,
    modules: Mutex<Modules>,
}

#[derive(Default)]
struct Modules {
    /// By directory, as the model names it.
    known: BTreeMap<String, Arc<ProgramModule>>,
    /// Those that were read since the model was begun to be loaded.
    imported: BTreeSet<String>,
}

impl Modules {
    fn imported(&self) -> impl Iterator<Item = &Arc<ProgramModule>> {
        self.imported
            .iter()
            .filter_map(|directory| self.known.get(directory))
    }
}

/// What programs are compiled with.
struct Surrounding {
    /// The directory of the model's project as the user can open it: empty or ending in `/`.
    root: String,
    library: Library,
    /// How models are looked at that a program includes in turn.
    settings: ModelSettings,
    reporter: Reporter,
}

/// The name of the text that includes a program.
const ENTRY: &str = "<model>";

/// The module by which that text is given what the model gives. Nobody else imports it.
const RUNTIME: &str = "setpoint/program";
const INPUT: &str = "input";

/// The name of the kind of an instance that stands for a program.
pub const KIND: &str = "program";

/// That kind.
static PROGRAM: KindSchema = KindSchema::plain(
    KIND,
    "A class of a program in mcl, whose resources take the place of this one.",
    &[
        parameter(MODULE, &ParameterType::Str, "The directory of the program."),
        parameter(CLASS, &ParameterType::Str, "The class."),
        parameter(
            INPUTS,
            &ParameterType::Map(&ParameterType::Str, &ParameterType::Any),
            "Its parameters.",
        ),
    ],
);

const MODULE: &str = "module";
const CLASS: &str = "class";
const INPUTS: &str = "inputs";

/// The kind by which a program says what its outputs are. There is none of it in any graph.
static OUTPUT: KindSchema = KindSchema::plain(
    "setpoint:output",
    "A variable of a class that a model includes.",
    &[parameter(VALUE, &ParameterType::Any, "What it holds.")],
);

const VALUE: &str = "value";

const fn parameter(name: &'static str, ty: &'static ParameterType, doc: &'static str) -> ParameterSchema {
    ParameterSchema {
        name,
        yaml_name: name,
        parameter_type: ty,
        form: None,
        doc,
        default: "",
    }
}

impl IncludedPrograms {
    /// None yet. They use what `library` has; the model is in `root`, and included by programs that `including` include.
    pub fn new(
        root: &str,
        library: &Library,
        no_python: bool,
        including: Vec<PathBuf>,
        reporter: &Reporter,
    ) -> IncludedPrograms {
        let mut of_programs = library.clone();
        of_programs.kinds.insert(OUTPUT.kind, &OUTPUT);
        if let Ok(function) = input_function() {
            // Nobody else has a module of this name.
            let _ = of_programs.functions.add(function.into());
        }
        let settings = ModelSettings {
            no_python,
            including: including.into_iter().chain(canonical(root)).collect(),
            ..ModelSettings::default()
        };
        IncludedPrograms(Arc::new(Shared {
            surrounding: Surrounding {
                root: root.to_owned(),
                library: of_programs,
                settings,
                reporter: reporter.clone(),
            },
            modules: Mutex::default(),
        }))
    }

    /// The files of a model, with a module in each directory that has a program and is no module of a model.
    pub fn modules(&self, files: ModelLoader) -> ProgramsAsModules {
        ProgramsAsModules {
            programs: self.clone(),
            files,
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.modules.lock().imported.is_empty()
    }

    /// The model is about to be loaded, and says anew what it imports.
    pub fn begin(&self) {
        self.0.modules.lock().imported.clear();
    }

    /// Says what is wrong with the programs, and why the model cannot name what it names. Where a program is wrong the model cannot be judged.
    pub fn report(&self, sources: &mut SourceMap, diagnostics: &mut Diagnostics) {
        let modules: Vec<Arc<ProgramModule>> = self.0.modules.lock().imported().cloned().collect();
        let mut found = Diagnostics::new();
        for module in modules.iter().filter(|module| module.is_wrong()) {
            let import = import_of(sources, &module.directory);
            found.append(module.found(import, sources));
        }
        if found.has_errors() {
            *diagnostics = found;
            return;
        }
        if modules.is_empty() || diagnostics.is_empty() {
            return;
        }
        let explained = std::mem::take(diagnostics).into_vec().into_iter();
        let explained: Vec<Diagnostic> = explained.map(|error| explain(error, &modules, sources)).collect();
        let interfaces = InterfacePlaces::new(&modules, sources);
        diagnostics.extend(explained.into_iter().map(|error| interfaces.in_programs(error)));
    }

    /// The files that the programs are made of, as absolute paths.
    pub fn files(&self) -> Vec<PathBuf> {
        let modules = self.0.modules.lock();
        modules.imported().flat_map(|module| module.files()).collect()
    }

    fn module(&self, directory: &str) -> Option<Arc<ProgramModule>> {
        self.0.modules.lock().known.get(directory).cloned()
    }

    /// The program in a directory, compiled if its texts are not those of before.
    fn load(&self, directory: &str, files: &ModelLoader) -> Arc<ProgramModule> {
        let known = self.module(directory).filter(|known| known.is_current(files));
        // Compiled while nothing is locked: a program may include a model, which is loaded in turn.
        let module = known.unwrap_or_else(|| Arc::new(ProgramModule::new(&self.0.surrounding, directory)));
        let mut modules = self.0.modules.lock();
        modules.known.insert(directory.to_owned(), module.clone());
        modules.imported.insert(directory.to_owned());
        module
    }
}

/// The library of a model that can include programs.
pub fn with_programs(library: &Library) -> Library {
    let mut library = library.clone();
    library.kinds.insert(KIND, &PROGRAM);
    library
}

/// A directory as everybody knows it who finds it on the disk.
pub fn canonical(directory: &str) -> Option<PathBuf> {
    std::fs::canonicalize(if directory.is_empty() { "." } else { directory }).ok()
}

/// The statement that imports a module of this directory.
fn import_of(sources: &SourceMap, directory: &str) -> Option<Span> {
    let name = directory.rsplit('/').next().unwrap_or_default();
    sources.files().find_map(|(id, file)| {
        if !file.name.ends_with(".cf") {
            return None;
        }
        let parsed = setpoint_cf::syntax::parse(id, &file.text, &mut Diagnostics::new());
        parsed.items.iter().find_map(|item| match item {
            ast::Item::Import(import) if sources.text(first_name(&import.path).span) == name => {
                Some(import.span)
            }
            _ => None,
        })
    })
}

/// The module of a path.
fn first_name(path: &ast::Path) -> &ast::Name {
    path.namespace.first().unwrap_or(&path.name)
}

/// Says of a name that nothing has that a class of this name stays inside its program, and why.
fn explain(error: Diagnostic, modules: &[Arc<ProgramModule>], sources: &mut SourceMap) -> Diagnostic {
    let text = sources.text(error.primary.span).to_owned();
    let Some((_, entity)) = text.rsplit_once("::") else {
        return error;
    };
    let why = modules.iter().find_map(|module| module.inner(entity, sources));
    match why {
        Some((span, reason)) => error.because(span, reason),
        None => error,
    }
}

/// The function by which an entry reads what the model gives: a call of it is replaced by the value before anything is evaluated.
fn input_function() -> Result<FunctionSpec, String> {
    let never = setpoint_value::PureFunction::made(|_, _| Err(CallError::fatal(UNGIVEN)));
    let mut spec = FunctionSpec::made(RUNTIME, INPUT, ["func(name str) ?1"], never)?
        .described("What a model gives for a parameter of a class that it includes.");
    // Nothing computes it ahead.
    spec.class = Class::Source;
    spec.implementation = Implementation::Source(SharedSource::Static(&Ungiven));
    Ok(spec)
}

const UNGIVEN: &str = "only a model gives this";

struct Ungiven;

impl Source for Ungiven {
    fn open(&self, _: &CallContext<'_>, _: &[Value]) -> Result<Box<dyn Subscription>, CallError> {
        Err(CallError::fatal(UNGIVEN))
    }
}

/// The files of a model, in which programs are modules.
pub struct ProgramsAsModules {
    programs: IncludedPrograms,
    files: ModelLoader,
}

/// What such a module has, besides what the program has.
const DESCRIPTION: &str = "setup.cfg";
const CLASSES: &str = "model/_init.cf";

impl ProgramsAsModules {
    /// The directory of a program, if this is a file that its module has.
    fn program<'a>(&self, path: &'a str, file: &str) -> Option<&'a str> {
        let directory = path.strip_suffix(file)?.strip_suffix('/')?;
        let has = |name: &str| self.files.is_file(&format!("{directory}/{name}"));
        let is_program = (has("main.mcl") || has("metadata.yaml")) && !has(DESCRIPTION) && !has("module.yml");
        is_program.then_some(directory)
    }
}

impl Loader for ProgramsAsModules {
    fn read(&self, path: &str) -> Result<Arc<[u8]>, LoadError> {
        if let Some(directory) = self.program(path, DESCRIPTION) {
            let name = Path::new(directory)
                .file_name()
                .unwrap_or_default()
                .to_string_lossy();
            let package = name.replace('_', "-");
            let text =
                format!("[metadata]\nname = inmanta-module-{package}\nversion = 1.0.0\nlicense = none\n");
            return Ok(text.into_bytes().into());
        }
        if let Some(directory) = self.program(path, CLASSES) {
            let module = self.programs.load(directory, &self.files);
            return Ok(module.interface.text.as_bytes().into());
        }
        self.files.read(path)
    }

    fn is_file(&self, path: &str) -> bool {
        self.files.is_file(path)
            || self.program(path, DESCRIPTION).is_some()
            || self.program(path, CLASSES).is_some()
    }

    fn is_directory(&self, path: &str) -> bool {
        self.files.is_directory(path)
    }

    fn list(&self, directory: &str) -> Result<Vec<String>, LoadError> {
        self.files.list(directory)
    }
}
