//! From text to what it gives, in memory.

use std::sync::Arc;

use setpoint_cf::datum::Datum;
use setpoint_cf::execute::{self, Execution, Inputs, Options};
use setpoint_cf::functions::context::Deployment;
use setpoint_cf::functions::std::{names, number};
use setpoint_cf::functions::types::check_constant;
use setpoint_cf::hir::Model;
use setpoint_cf::types::AttributeType;
use setpoint_cf::{project, resolve};
use setpoint_diagnostics::{Diagnostic, Diagnostics, Loader, SourceMap, Span};
use setpoint_graph::Library;

/// What a model gave.
pub(crate) struct Outcome {
    /// Its texts.
    pub(crate) sources: SourceMap,
    /// What was found before it was executed.
    pub(crate) found: Diagnostics,
    /// What came of it, if it was right so far.
    pub(crate) executed: Option<(Model, Execution)>,
}

impl Outcome {
    /// All that was found.
    pub(crate) fn diagnostics(&self) -> impl Iterator<Item = &Diagnostic> {
        let executed = self
            .executed
            .iter()
            .flat_map(|(_, execution)| execution.diagnostics.iter());
        self.found.iter().chain(executed)
    }
}

/// The environment of all cases.
pub(crate) fn inputs() -> Inputs {
    Inputs {
        environment: [("HOME".into(), Arc::from("/root"))].into(),
        root: "/project".into(),
        deployment: Deployment {
            deploy: "live".into(),
            ..Deployment::default()
        },
        ..Inputs::default()
    }
}

/// Loads, resolves and executes the project in the root directory.
pub(crate) fn run(loader: &dyn Loader, inputs: &Inputs) -> Outcome {
    run_with(loader, inputs, &Options::default())
}

/// The same within other bounds.
pub(crate) fn run_with(loader: &dyn Loader, inputs: &Inputs, options: &Options) -> Outcome {
    let library = Library::new(
        setpoint_functions::registry(),
        setpoint_resources::KINDS.iter().map(|kind| kind.schema),
    );
    let mut sources = SourceMap::new();
    let mut found = Diagnostics::new();
    let loaded = project::load(
        loader,
        &library,
        "",
        &mut project::Options::default(),
        &mut sources,
        &mut found,
    );
    let options = Options {
        project: loaded.project.name.clone(),
        ..options.clone()
    };
    let model = match found.has_errors() {
        true => None,
        false => resolve::resolve(&loaded, &library, &Std, &mut found),
    };
    let executed = model.map(|model| {
        let execution = execute::execute(&model, &mut sources, inputs, loader, None, &options);
        (model, execution)
    });
    Outcome {
        sources,
        found,
        executed,
    }
}

/// The functions of the language's own modules.
struct Std;

impl resolve::FunctionTable for Std {
    fn native(&self, namespace: &str, name: &str) -> Option<u16> {
        number(namespace, name)
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
        names(namespace)
    }
}
