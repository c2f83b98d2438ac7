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

use crate::codes;
use crate::directory_loader::DirectoryLoader;
use crate::failure::Failure;
use crate::imposed::Imposed;
use crate::included_models::IncludedModels;
use crate::input::{BadInput, Input};
use crate::model::ModelSettings;
use crate::modules::{ModulePolicy, fetch_missing, verify};
use crate::output::Output;
use crate::yaml::YAML;

/// Which program, and how it is compiled: as often as its text changes.
#[derive(Clone)]
pub(crate) struct ProgramSource {
    /// What the command line says.
    pub(crate) argument: String,
    /// Whether it says that this is a graph in YAML.
    pub(crate) is_yaml: bool,
    /// How to compile.
    pub(crate) options: CompileOptions,
    /// What the program can use.
    pub(crate) library: Library,
    /// Whether it is also said what is probably not meant so.
    pub(crate) lint: bool,
    /// What is done about modules from elsewhere.
    pub(crate) modules: ModulePolicy,
    /// How the models that it imports are looked at.
    pub(crate) model_settings: ModelSettings,
    /// What holds for all of its resources.
    pub(crate) imposed: Imposed,
    /// The deploy that it is, if it is one.
    pub(crate) deploy: Option<u64>,
    /// Where what they say goes.
    pub(crate) output: Output,
}

impl ProgramSource {
    /// Finds and compiles the program as it is now. Nothing is fetched.
    pub(crate) fn compile(&self) -> Compilation {
        match self.find() {
            Ok(input) => self.locked(Compilation::of(self, input)),
            Err(bad) => Compilation::without_input(self, bad),
        }
    }

    /// Finds and compiles the program, after its modules from elsewhere were fetched, if that is asked for.
    ///
    /// # Errors
    /// When nothing can be fetched at all.
    pub(crate) fn fetch_and_compile(&self, output: &Output) -> Result<Compilation, Failure> {
        let Some(fetch) = self.modules.fetch else {
            return Ok(self.compile());
        };
        let input = match self.find() {
            Ok(input) => input,
            Err(bad) => return Ok(Compilation::without_input(self, bad)),
        };
        let fetched = fetch_missing(self, &input, fetch, output)?;
        let mut compilation = Compilation::of(self, input);
        fetched.explain(&mut compilation);
        Ok(self.locked(compilation))
    }

    fn find(&self) -> Result<Input, BadInput> {
        let mut stdin = std::io::stdin().lock();
        match self.is_yaml {
            true => Input::find_yaml(&self.argument, &mut stdin),
            false => Input::find(&self.argument, &mut stdin),
        }
    }

    fn locked(&self, mut compilation: Compilation) -> Compilation {
        if self.modules.locked {
            verify(&mut compilation);
        }
        compilation
    }
}

/// A compilation.
pub(crate) struct Compilation {
    /// The input; none when it could not be found.
    pub(crate) input: Option<Input>,
    /// Where its files are.
    pub(crate) loader: DirectoryLoader,
    /// The directory of modules from elsewhere, ending in `/`.
    pub(crate) modules_directory: Option<String>,
    /// Texts, named relative to the program's root directory.
    pub(crate) sources: SourceMap,
    /// What is wrong.
    pub(crate) diagnostics: Diagnostics,
    /// What compiling gave; none when there was no input.
    pub(crate) compiled: Option<Compiled>,
    /// What else is known, where it was looked at for the linter.
    pub(crate) analysis: Option<Analysis>,
    /// Models that it imports as modules.
    pub(crate) models: IncludedModels,
    /// What holds for all of its resources.
    pub(crate) imposed: Imposed,
    /// The deploy that it is, if it is one.
    pub(crate) deploy: Option<u64>,
}

/// A program with what can be said of its texts.
pub(crate) struct Runnable {
    /// The program.
    pub(crate) program: Arc<Program>,
    /// Its texts, under names that the user can open.
    pub(crate) sources: SourceMap,
    /// The models that it imports. When they are executed, there may be more texts.
    pub(crate) models: IncludedModels,
    input: Option<Input>,
}

impl Runnable {
    /// Adds texts that there are since its models were executed.
    pub(crate) fn refresh(&mut self) {
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
pub(crate) struct Version {
    /// As [`Compilation::files`] says.
    pub(crate) files: Option<Vec<PathBuf>>,
    /// Whether it is wrong.
    pub(crate) has_errors: bool,
    /// Equal in versions of the same texts.
    pub(crate) texts: u64,
}

impl Compilation {
    /// The program that is no file here, if it is that: text of the command line or of standard input.
    pub(crate) fn code(&self) -> Option<&str> {
        match self.input.as_ref() {
            Some(Input {
                entry: Entry::Code { text, .. },
                is_yaml: false,
                ..
            }) => Some(text),
            _ => None,
        }
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
            models: IncludedModels::new("", &source.library, &source.model_settings, &source.output),
            imposed: source.imposed.clone(),
            deploy: source.deploy,
        }
    }

    fn without_input(source: &ProgramSource, bad: BadInput) -> Compilation {
        let mut compilation = Compilation::empty(source);
        let file = compilation.sources.add(source.argument.as_str(), "");
        let error = Diagnostic::error(codes::module_not_found(), Span::new(file, 0, 0), bad.message);
        compilation.diagnostics.push(error.help_if(bad.help));
        compilation
    }

    /// Compiles what was found.
    pub(crate) fn of(source: &ProgramSource, input: Input) -> Compilation {
        let compilation = Compilation::empty(source);
        let loader = DirectoryLoader::new(&input.root).with_modules(compilation.modules_directory.as_deref());
        let loader = match &input.entry {
            Entry::File(file) => loader.with_entry(file),
            Entry::Directory(_) | Entry::Code { .. } => loader,
        };
        Compilation::with_loader(source, input, loader.clone(), &loader)
    }

    /// Compiles from files as `texts` has them, which lie where `loader` says.
    pub(crate) fn with_loader(
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
            &source.output,
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
    pub(crate) fn is_own(&self, name: &str) -> bool {
        self.compiled
            .as_ref()
            .is_some_and(|compiled| compiled.is_own(name))
    }

    /// The texts under names that the user can open.
    pub(crate) fn shown_sources(&self) -> SourceMap {
        let mut shown = SourceMap::new();
        for (_, file) in self.sources.files() {
            shown.add(self::shown(self.input.as_ref(), &file.name), file.text.clone());
        }
        shown
    }

    /// Adds texts that there are since its models were executed.
    pub(crate) fn refresh(&mut self) {
        if !self.models.is_empty() {
            self.sources = self.models.texts();
        }
    }

    /// What running it takes; none if it is wrong.
    pub(crate) fn into_program(self) -> Option<Runnable> {
        let sources = self.shown_sources();
        Some(Runnable {
            program: self.compiled?.program?,
            sources,
            models: self.models,
            input: self.input,
        })
    }

    /// Says what is wrong, with all of it.
    pub(crate) fn report(&self, output: &Output) {
        output.diagnostics(&self.diagnostics, &self.shown_sources());
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
    pub(crate) fn version(&self) -> Version {
        Version {
            files: self.files(),
            has_errors: self.diagnostics.has_errors(),
            texts: self.texts(),
        }
    }

    /// The files on disk that the program is made of, as absolute paths; none for a program that was given as text, which cannot
    /// change.
    pub(crate) fn files(&self) -> Option<Vec<PathBuf>> {
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
