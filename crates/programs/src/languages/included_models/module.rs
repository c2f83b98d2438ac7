//! The module that stands for a model: what `import` finds in a directory with a `project.yml`.

use std::ops::Deref;
use std::sync::Arc;

use setpoint_cf::ports::declared;
use setpoint_cf::project::Port;
use setpoint_diagnostics::{LoadError, Loader};
use setpoint_value::Type;

use super::source::{FUNCTION, MODULE, of_input, of_output};
use super::{EXECUTION, IncludedModels, MODEL};

/// The files of a program, with a `main.mcl` in each directory that is a model and no module.
pub struct ModelsAsModules<L> {
    models: IncludedModels,
    files: L,
}

const MAIN: &str = "main.mcl";

impl<L: Deref<Target: Loader> + Send + Sync> ModelsAsModules<L> {
    pub(super) fn new(models: IncludedModels, files: L) -> ModelsAsModules<L> {
        ModelsAsModules { models, files }
    }

    /// The directory of a model, if this is the file that stands for it.
    fn model<'a>(&self, path: &'a str) -> Option<&'a str> {
        let directory = path.strip_suffix(MAIN)?;
        let has = |name: &str| self.files.is_file(&format!("{directory}{name}"));
        let is_model = directory.ends_with('/') && has("project.yml") && !has("metadata.yaml") && !has(MAIN);
        is_model.then_some(directory)
    }
}

impl<L: Deref<Target: Loader> + Send + Sync> Loader for ModelsAsModules<L> {
    fn read(&self, path: &str) -> Result<Arc<[u8]>, LoadError> {
        let Some(directory) = self.model(path) else {
            return self.files.read(path);
        };
        if let Some(why) = self.models.cycle(directory) {
            return Err(LoadError::Unreadable(why));
        }
        self.models.note(directory);
        let (inputs, outputs) = declared(self, directory.trim_end_matches('/'));
        Ok(module(directory, &inputs, &outputs).into_bytes().into())
    }

    fn is_file(&self, path: &str) -> bool {
        self.model(path).is_some() || self.files.is_file(path)
    }

    fn is_directory(&self, path: &str) -> bool {
        self.files.is_directory(path)
    }

    fn list(&self, directory: &str) -> Result<Vec<String>, LoadError> {
        self.files.list(directory)
    }
}

/// The text of the module, in its layout.
fn module(directory: &str, inputs: &[Port], outputs: &[Port]) -> String {
    let list = |parts: Vec<String>, separator: &str| parts.join(separator);
    let parameters = inputs.iter().map(|port| format!("${} {}", port.name, ty(port)));
    let given = inputs
        .iter()
        .map(|port| format!(", {} => ${}", of_input(&port.name), port.name));
    let held = outputs
        .iter()
        .map(|port| format!("; {} {}", of_output(&port.name), ty(port)));
    let variables = outputs.iter().map(|port| {
        format!(
            "\t${} = $setpoint_execution->{}\n",
            port.name,
            of_output(&port.name)
        )
    });
    let directory = directory
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('$', "\\$");
    format!(
        "# The model in this directory, as its `project.yml` declares it.\n\
         import \"{MODULE}\" as setpoint_runtime\n\n\
         class model({parameters}) {{\n\
         \t$setpoint_execution struct{{{EXECUTION} str{held}}} = setpoint_runtime.{FUNCTION}(\"{directory}\", struct{{is_model => true{given}}})\n\
         {variables}\
         \t{kind} \"{directory}\" {{\n\
         \t\t{EXECUTION} => $setpoint_execution->{EXECUTION},\n\
         \t}}\n\
         }}\n",
        parameters = list(parameters.collect(), ", "),
        given = list(given.collect(), ""),
        held = list(held.collect(), ""),
        variables = list(variables.collect(), ""),
        kind = MODEL.kind,
    )
}

fn ty(port: &Port) -> Type {
    port.ty.value_type()
}
