//! The whole way of a model, from files to resources.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use setpoint_cf_execute::execute::{self, Execution, Inputs, ReadKey};
use setpoint_cf_execute::export::{self, BindingFile, Bindings, ExportOptions, Exported};
use setpoint_cf_functions::declared::Declared;
use setpoint_cf_functions::std as functions;
use setpoint_cf_functions::types::check_constant;
use setpoint_cf_names::datum::Datum;
use setpoint_cf_names::hir::Model;
use setpoint_cf_names::plugins::{MissingPlugin, PluginFunction, Plugins};
use setpoint_cf_names::project::{self, Loaded, Project};
use setpoint_cf_names::resolve::{FunctionTable, resolve as resolve_names};
use setpoint_cf_names::types::AttributeType;
use setpoint_diagnostics::{Diagnostic, Diagnostics, Loader, SourceMap, Span};
use setpoint_graph::Library;
use setpoint_value::{FunctionRef, Value};

use crate::ports;

/// A model without its execution.
#[derive(Debug)]
pub struct Checked {
    /// The project that it belongs to.
    pub project: Project,
    /// Its files with all names resolved; none if something is wrong.
    pub model: Option<Model>,
    /// Which of its entities are resources.
    pub bindings: Option<Bindings>,
    /// Files that were read, or looked for.
    pub reads: BTreeSet<String>,
}

/// A model with its execution.
#[derive(Debug)]
pub struct Compiled {
    /// What it is.
    pub checked: Checked,
    /// What has become of it; none if it could not be executed.
    pub execution: Option<Execution>,
    /// The resources of all machines; none if there are errors before.
    pub exported: Option<Exported>,
    /// What the model gives as its outputs, by name; all of them if there are no errors.
    pub outputs: BTreeMap<Arc<str>, Value>,
}

/// Loads a project with all modules and resolves all names. What is wrong is told.
pub fn check(
    loader: &dyn Loader,
    library: &Library,
    options: &mut project::Options,
    sources: &mut SourceMap,
    diagnostics: &mut Diagnostics,
) -> Checked {
    let checked = resolve(loader, library, options, &BTreeMap::new(), sources, diagnostics);
    end_plugins(&checked);
    checked
}

/// Nothing is called any more.
fn end_plugins(checked: &Checked) {
    if let Some(plugins) = checked.model.as_ref().and_then(|model| model.plugins.as_ref()) {
        plugins.end();
    }
}

/// Loads and resolves, with what is given for the inputs of the project.
fn resolve(
    loader: &dyn Loader,
    library: &Library,
    options: &mut project::Options,
    given: &BTreeMap<Arc<str>, Value>,
    sources: &mut SourceMap,
    diagnostics: &mut Diagnostics,
) -> Checked {
    let loaded = project::load(loader, library, "", options, sources, diagnostics);
    let library = &ports::with_inputs(library, &loaded.project, given);
    let mut reads: BTreeSet<String> = loaded.reads.iter().cloned().collect();
    let mut table = Functions {
        plugins: Arc::new(Plugins::new(
            &options.plugins,
            &loaded.project.name,
            loaded.python(),
            &loaded.module_path,
            loader,
        )),
        declared: Declared::new(&loaded, loader, library, sources, diagnostics),
    };
    reads.extend(table.plugins.files().map(str::to_owned));
    reads.append(&mut table.declared.reads.drain(..).collect());
    let mut model = match diagnostics.has_errors() {
        true => None,
        false => resolve_names(&loaded, library, &table, diagnostics),
    };
    if let Some(model) = &mut model {
        model.plugins = Some(table.plugins);
    }
    let bindings = model
        .as_ref()
        .map(|model| bindings(loader, &loaded, model, library, sources, diagnostics, &mut reads));
    Checked {
        project: loaded.project,
        model,
        bindings,
        reads,
    }
}

/// Which entities of a resolved model are resources.
pub(crate) fn bindings(
    loader: &dyn Loader,
    loaded: &Loaded,
    model: &Model,
    library: &Library,
    sources: &mut SourceMap,
    diagnostics: &mut Diagnostics,
    reads: &mut BTreeSet<String>,
) -> Bindings {
    let files = binding_files(loader, loaded, reads, sources, diagnostics);
    let default = &loaded.project.settings.default_machine;
    Bindings::of(model, &library.kinds, &files, default, diagnostics)
}

/// The same, and executes the model. What a machine keeps of it tells [`export::machine_outputs`].
pub fn compile(
    loader: &dyn Loader,
    library: &Library,
    options: &mut project::Options,
    inputs: &Inputs,
    sources: &mut SourceMap,
    diagnostics: &mut Diagnostics,
) -> Compiled {
    let checked = resolve(loader, library, options, &inputs.given, sources, diagnostics);
    let (Some(model), Some(bindings), false) = (&checked.model, &checked.bindings, diagnostics.has_errors())
    else {
        return Compiled {
            checked,
            execution: None,
            exported: None,
            outputs: BTreeMap::new(),
        };
    };
    let settings = &checked.project.settings;
    let bounds = execute::Options {
        max_instances: settings.max_instances,
        max_units: settings.max_units,
        max_rounds: inputs
            .max_rounds
            .unwrap_or(execute::Options::default().max_rounds),
        project: checked.project.name.clone(),
        record: inputs.record,
    };
    let mut execution = execute::execute(model, sources, inputs, loader, Some(bindings), &bounds);
    end_plugins(&checked);
    diagnostics.append(std::mem::take(&mut execution.diagnostics));
    let exported = (!diagnostics.has_errors()).then(|| {
        let options = ExportOptions {
            flatten_requires: settings.flatten_requires,
        };
        export::export(model, &execution, bindings, &options, diagnostics)
    });
    let outputs = match diagnostics.has_errors() {
        true => BTreeMap::new(),
        false => ports::outputs(&checked.project, model, &execution, diagnostics),
    };
    Compiled {
        checked,
        execution: Some(execution),
        exported,
        outputs,
    }
}

impl Compiled {
    /// Takes changed answers of the world outside in: all those, of what was asked, that are others now. Answers which resources are
    /// others. None: the model has to be compiled as a whole.
    #[must_use]
    pub fn update(
        self,
        loader: &dyn Loader,
        inputs: &Inputs,
        sources: &mut SourceMap,
        changed: &BTreeSet<ReadKey>,
    ) -> Option<(Compiled, Updated)> {
        let (model, bindings) = (self.checked.model.as_ref()?, self.checked.bindings.as_ref()?);
        let replayed = self
            .execution?
            .replay(model, sources, inputs, loader, Some(bindings), changed);
        let (execution, changes) = replayed?;
        let mut exported = self.exported?;
        let resources = exported.update(model, &execution, bindings, &changes.members)?;
        let mut found = Diagnostics::new();
        let outputs = ports::outputs(&self.checked.project, model, &execution, &mut found);
        if found.has_errors() {
            return None;
        }
        let compiled = Compiled {
            checked: self.checked,
            execution: Some(execution),
            exported: Some(exported),
            outputs,
        };
        let asks_otherwise = changes.asks_otherwise;
        Some((
            compiled,
            Updated {
                resources,
                asks_otherwise,
            },
        ))
    }
}

/// What is different after changed answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Updated {
    /// Numbers of resources that are others.
    pub resources: BTreeSet<usize>,
    /// Whether other things are asked than before.
    pub asks_otherwise: bool,
}

/// The binding files of the modules, then those of the project, which count more.
fn binding_files(
    loader: &dyn Loader,
    loaded: &Loaded,
    reads: &mut BTreeSet<String>,
    sources: &mut SourceMap,
    diagnostics: &mut Diagnostics,
) -> Vec<BindingFile> {
    let own = std::iter::once(("setpoint.yml".to_owned(), None));
    let named = loaded.project.settings.bindings.iter();
    let named = named.map(|(path, span)| (path.to_string(), Some(*span)));
    let of_modules = loaded.modules.iter().filter_map(|module| {
        let directory = module.directory.as_ref()?;
        Some((format!("{directory}/setpoint.yml"), None))
    });
    let mut files = Vec::new();
    for (path, named) in own.chain(named).chain(of_modules) {
        reads.insert(path.clone());
        if named.is_none() && !loader.is_file(&path) {
            continue;
        }
        let read = loader.read(&path).map_err(|error| error.to_string());
        let text = read.and_then(|bytes| match std::str::from_utf8(&bytes) {
            Ok(text) => Ok(Arc::<str>::from(text)),
            Err(_) => Err("it is not UTF-8 text".to_owned()),
        });
        match text {
            Ok(text) => {
                let file = project::source_file(sources, &path, &text);
                files.push(BindingFile { file, text });
            }
            Err(reason) => {
                let span = named.unwrap_or_else(|| Span::new(project::source_file(sources, &path, ""), 0, 0));
                let message = format!("the binding file `{path}` cannot be read: {reason}");
                diagnostics.push(
                    Diagnostic::error(&export::codes::BAD_BINDING, span, message).of_class("InvalidMetadata"),
                );
            }
        }
    }
    files
}

/// The functions of the language's own modules, and those that modules have in other languages.
#[derive(Debug)]
pub(crate) struct Functions {
    pub(crate) plugins: Arc<Plugins>,
    pub(crate) declared: Declared,
}

impl FunctionTable for Functions {
    fn native(&self, namespace: &str, name: &str) -> Option<u16> {
        functions::number(namespace, name)
    }

    fn declared(&self, namespace: &str, name: &str) -> Option<FunctionRef> {
        self.declared.function(namespace, name).cloned()
    }

    fn plugin(&self, namespace: &str, name: &str) -> Option<Arc<PluginFunction>> {
        self.plugins.function(namespace, name)
    }

    fn missing_plugin(&self, namespace: &str, name: &str) -> Option<MissingPlugin> {
        self.plugins.why_missing(namespace, name)
    }

    fn check_constant(
        &self,
        model: &Model,
        ty: AttributeType,
        constant: &Datum,
        span: Span,
    ) -> Result<(), Box<Diagnostic>> {
        check_constant(ty, constant, span, model)
    }

    fn names(&self, namespace: &str) -> Vec<Arc<str>> {
        functions::names(namespace)
            .into_iter()
            .chain(self.declared.names(namespace))
            .chain(self.plugins.names(namespace))
            .collect()
    }
}
