//! One compilation: an input, what is known about its text, and what is wrong with it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::Arc;

use setpoint_diagnostics::{Diagnostic, Diagnostics, Loader, Severity, SourceMap, Span};
use setpoint_flow::Program;
use setpoint_graph::Library;
use setpoint_mcl::analysis::{Analysis, AnalysisOptions, analyse};
use setpoint_mcl::lint::lint;
use setpoint_mcl::{CompileOptions, Compiled, Entry, compile};
use setpoint_value::{Type, Value};

use crate::capabilities::ProgramFiles;
use crate::codes;
use crate::directory_loader::DirectoryLoader;
use crate::failure::Failure;
use crate::imposed::Imposed;
use crate::input::{BadInput, Input};
use crate::languages::included_models::IncludedModels;
use crate::languages::model::ModelSettings;
use crate::module_policy::ModulePolicy;
use crate::report::Reporter;
use crate::yaml::YAML;

/// Which program, and how it is compiled: as often as its text changes.
#[derive(Clone)]
pub struct ProgramSource {
    /// What the command line says.
    pub argument: String,
    /// Whether it says that this is a graph in YAML.
    pub is_yaml: bool,
    /// How to compile.
    pub options: CompileOptions,
    /// What the program can use.
    pub library: Library,
    /// Whether it is also said what is probably not meant so.
    pub lint: bool,
    /// What is done about modules from elsewhere.
    pub modules: ModulePolicy,
    /// How the models that it imports are looked at.
    pub model_settings: ModelSettings,
    /// What holds for all of its resources.
    pub imposed: Imposed,
    /// The deploy that it is, if it is one.
    pub deploy: Option<u64>,
    /// Where what they say goes.
    pub reporter: Reporter,
}

impl ProgramSource {
    /// Leaves the name of the machine unknown.
    pub fn without_hostname(&mut self) {
        let name = Value::unknown(Type::Str);
        self.library.variables.insert("hostname".to_owned(), name);
    }

    /// Finds the program.
    pub(crate) fn find(&self) -> Result<Input, BadInput> {
        let mut stdin = std::io::stdin().lock();
        match self.is_yaml {
            true => Input::find_yaml(&self.argument, &mut stdin),
            false => Input::find(&self.argument, &mut stdin),
        }
    }
}

/// A compilation.
pub struct Compilation {
    /// The input; none when it could not be found.
    pub input: Option<Input>,
    /// Where its files are.
    pub loader: DirectoryLoader,
    /// The directory of modules from elsewhere, ending in `/`.
    pub modules_directory: Option<String>,
    /// Texts, named relative to the program's root directory.
    pub sources: SourceMap,
    /// What is wrong.
    pub diagnostics: Diagnostics,
    /// What compiling gave; none when there was no input.
    pub compiled: Option<Compiled>,
    /// What else is known, where it was looked at for the linter.
    pub analysis: Option<Analysis>,
    /// Models that it imports as modules.
    pub models: IncludedModels,
    /// What holds for all of its resources.
    pub imposed: Imposed,
    /// The deploy that it is, if it is one.
    pub deploy: Option<u64>,
}

/// A program with what can be said of its texts.
pub struct Runnable {
    /// The program.
    pub program: Arc<Program>,
    /// Its texts, under names that the user can open.
    pub sources: SourceMap,
    /// The models that it imports. When they are executed, there may be more texts.
    pub models: IncludedModels,
    input: Option<Input>,
}

impl Runnable {
    /// Adds texts that there are since its models were executed.
    pub fn refresh(&mut self) {
        if self.models.is_empty() {
            return;
        }
        let known = self.sources.files().count();
        for (_, file) in self.models.texts().files().skip(known) {
            self.sources
                .add(shown(self.input.as_ref(), &file.name), file.text.clone());
        }
    }
}

/// A text of a program as the user can open it.
fn shown(input: Option<&Input>, name: &str) -> String {
    match input {
        Some(input) => input.shown(name),
        None => name.to_owned(),
    }
}

/// Which version of a program was compiled. The texts themselves, and what was made of them, belong to the program that runs, which
/// frees them when it needs them no longer.
pub struct Version {
    /// As [`Compilation::files`] says.
    pub files: Option<Vec<PathBuf>>,
    /// Whether it is wrong.
    pub has_errors: bool,
    /// Equal in versions of the same texts.
    pub texts: u64,
}

impl Compilation {
    /// The program that is no file here, if it is that: text of the command line or of standard input.
    pub fn code(&self) -> Option<&str> {
        match self.input.as_ref() {
            Some(Input {
                entry: Entry::Code { text, .. },
                is_yaml: false,
                ..
            }) => Some(text),
            _ => None,
        }
    }

    /// The files that it came with. `state` is where the program keeps what it finds out, ending in `/`.
    ///
    /// # Errors
    /// When there is no program.
    pub fn program_files(&self, state: String) -> Result<ProgramFiles, Failure> {
        let Some(compiled) = &self.compiled else {
            return Err(Failure::wrong("there is no program"));
        };
        let directory = self.modules_directory.as_deref();
        Ok(ProgramFiles::new(compiled, &self.loader, directory, state).with_code(self.code()))
    }

    fn empty(source: &ProgramSource) -> Compilation {
        Compilation {
            input: None,
            loader: DirectoryLoader::new(""),
            modules_directory: source.options.modules_directory.clone(),
            sources: SourceMap::new(),
            diagnostics: Diagnostics::new(),
            compiled: None,
            analysis: None,
            models: IncludedModels::new("", &source.library, &source.model_settings, &source.reporter),
            imposed: source.imposed.clone(),
            deploy: source.deploy,
        }
    }

    /// A compilation of an input that cannot be found.
    pub(crate) fn without_input(source: &ProgramSource, bad: BadInput) -> Compilation {
        let mut compilation = Compilation::empty(source);
        let file = compilation.sources.add(source.argument.as_str(), "");
        let error = Diagnostic::error(codes::module_not_found(), Span::new(file, 0, 0), bad.message);
        compilation.diagnostics.push(error.help_if(bad.help));
        compilation
    }

    /// Compiles what was found.
    pub fn of(source: &ProgramSource, input: Input) -> Compilation {
        let compilation = Compilation::empty(source);
        let loader = DirectoryLoader::new(&input.root).with_modules(compilation.modules_directory.as_deref());
        let loader = match &input.entry {
            Entry::File(file) => loader.with_entry(file),
            Entry::Directory(_) | Entry::Code { .. } => loader,
        };
        Compilation::with_loader(source, input, loader.clone(), &loader)
    }

    /// Compiles from files as `texts` has them, which lie where `loader` says.
    pub fn with_loader(
        source: &ProgramSource,
        input: Input,
        loader: DirectoryLoader,
        texts: &dyn Loader,
    ) -> Compilation {
        let mut compilation = Compilation::empty(source);
        compilation.loader = loader;
        if input.is_yaml {
            compilation.compile_yaml(source, &input.entry, texts);
        } else {
            compilation.compile_program(source, &input, texts);
        }
        compilation.input = Some(input);
        compilation
    }

    /// Compiles a program, and resolves the models that it imports.
    fn compile_program(&mut self, source: &ProgramSource, input: &Input, texts: &dyn Loader) {
        let models = IncludedModels::new(
            &input.root,
            &source.library,
            &source.model_settings,
            &source.reporter,
        );
        let library = models.library();
        let texts = models.modules(texts);
        if source.lint {
            self.analyse(source, &library, &input.entry, &texts);
        } else {
            self.compiled = Some(compile(
                &input.entry,
                &source.options,
                &texts,
                &library,
                &mut self.sources,
                &mut self.diagnostics,
            ));
        }
        models.check(&mut self.sources, &mut self.diagnostics);
        self.models = models;
    }

    /// Compiles a graph in YAML.
    fn compile_yaml(&mut self, source: &ProgramSource, entry: &Entry, texts: &dyn Loader) {
        let (name, text) = match entry {
            Entry::Code { name, text } => (name, Ok(text.clone())),
            Entry::File(name) | Entry::Directory(name) => {
                let read = texts.read(name).map_err(|error| error.to_string());
                let text = read.and_then(|bytes| match std::str::from_utf8(&bytes) {
                    Ok(text) => Ok(text.to_owned()),
                    Err(error) => Err(format!("it is not UTF-8 from byte {} on", error.valid_up_to())),
                });
                (name, text)
            }
        };
        let file = self.sources.add(name.as_str(), text.clone().unwrap_or_default());
        let program = match text {
            Ok(text) => {
                let (library, diagnostics) = (&source.library, &mut self.diagnostics);
                setpoint_yaml::compile(file, &text, library, &YAML, diagnostics)
            }
            Err(why) => {
                let message = format!("`{name}` cannot be read: {why}");
                let error = Diagnostic::error(codes::module_not_found(), Span::new(file, 0, 0), message);
                self.diagnostics.push(error);
                None
            }
        };
        self.compiled = Some(Compiled {
            program: program.map(Arc::new),
            files: vec![name.clone()],
            plain: true,
            ..Compiled::default()
        });
    }

    /// Compiles, and says also what is probably not meant so.
    fn analyse(&mut self, source: &ProgramSource, library: &Library, entry: &Entry, texts: &dyn Loader) {
        let options = AnalysisOptions {
            modules_directory: source.options.modules_directory.clone(),
            ..AnalysisOptions::default()
        };
        let Some(mut analysis) = analyse(entry, &options, texts, library) else {
            return;
        };
        let errors = analysis.diagnostics.iter();
        let errors = errors.filter(|found| found.severity == Severity::Error);
        self.diagnostics.extend(errors.cloned());
        let found = lint(&analysis, library, &|file| analysis.is_own(file));
        self.diagnostics.append(found);
        self.sources = analysis.sources.clone();
        self.compiled = Some(std::mem::take(&mut analysis.compiled));
        self.analysis = Some(analysis);
    }

    /// Whether a file of the program is its own: neither compiled in nor of a module from elsewhere.
    pub fn is_own(&self, name: &str) -> bool {
        self.compiled
            .as_ref()
            .is_some_and(|compiled| compiled.is_own(name))
    }

    /// The texts under names that the user can open.
    pub fn shown_sources(&self) -> SourceMap {
        let mut shown = SourceMap::new();
        for (_, file) in self.sources.files() {
            shown.add(self::shown(self.input.as_ref(), &file.name), file.text.clone());
        }
        shown
    }

    /// Adds texts that there are since its models were executed.
    pub fn refresh(&mut self) {
        if !self.models.is_empty() {
            self.sources = self.models.texts();
        }
    }

    /// What running it takes; none if it is wrong.
    pub fn into_program(self) -> Option<Runnable> {
        let sources = self.shown_sources();
        Some(Runnable {
            program: self.compiled?.program?,
            sources,
            models: self.models,
            input: self.input,
        })
    }

    /// Says what is wrong, with all of it.
    pub fn report(&self, reporter: &Reporter) {
        reporter.diagnostics(&self.diagnostics, &self.shown_sources());
    }

    /// What tells its texts from others.
    fn texts(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for (_, file) in self.sources.files() {
            (&file.name, &file.text).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// What is kept of it while its program runs.
    pub fn version(&self) -> Version {
        Version {
            files: self.files(),
            has_errors: self.diagnostics.has_errors(),
            texts: self.texts(),
        }
    }

    /// The files on disk that the program is made of, as absolute paths; none for a program that was given as text, which cannot
    /// change.
    pub fn files(&self) -> Option<Vec<PathBuf>> {
        let input = self.input.as_ref()?;
        if matches!(input.entry, Entry::Code { .. }) {
            return None;
        }
        let listed = self
            .compiled
            .iter()
            .flat_map(|compiled| compiled.files.iter().map(String::as_str));
        let read = self.sources.files().map(|(_, file)| &*file.name);
        let mut files: Vec<PathBuf> = listed
            .chain(read)
            .filter(|name| !name.starts_with('<'))
            .filter_map(|name| std::path::absolute(input.shown(name)).ok())
            .collect();
        files.sort();
        files.dedup();
        Some(files)
    }
}
