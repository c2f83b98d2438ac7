//! Functions that modules declare in a file `functions.mcl`: in another language, which the [`Library`] compiles.

use std::collections::BTreeMap;
use std::sync::Arc;

use setpoint_cf_names::project::{Loaded, join};
use setpoint_diagnostics::{Diagnostics, Loader, SourceMap};
use setpoint_graph::Library;
use setpoint_value::FunctionRef;

/// The name of such a file, in the directory of its module.
pub const FILE: &str = "functions.mcl";

/// The functions of all such files of a model.
#[derive(Debug, Default)]
pub struct Declared {
    /// By the names of their modules and their own.
    functions: BTreeMap<(Arc<str>, Arc<str>), FunctionRef>,
    /// The files, and those that they need.
    pub reads: Vec<String>,
}

impl Declared {
    /// Compiles the files of all modules. What is wrong with them is told.
    #[must_use]
    pub fn new(
        loaded: &Loaded,
        loader: &dyn Loader,
        library: &Library,
        sources: &mut SourceMap,
        diagnostics: &mut Diagnostics,
    ) -> Declared {
        let mut declared = Declared::default();
        let Some(files) = &library.function_files else {
            return declared;
        };
        for module in &loaded.modules {
            let Some(directory) = &module.directory else {
                continue;
            };
            let path = join(directory, FILE);
            if !loader.is_file(&path) {
                continue;
            }
            let found = files.functions(&module.name, &path, loader, library, sources, diagnostics);
            declared.reads.extend(found.reads);
            for function in found.functions {
                let name = Arc::from(&*function.name);
                declared.functions.insert((module.name.clone(), name), function);
            }
        }
        declared
    }

    /// The function of a name in a module.
    #[must_use]
    pub fn function(&self, module: &str, name: &str) -> Option<&FunctionRef> {
        self.functions.get(&(Arc::from(module), Arc::from(name)))
    }

    /// The names of the functions of a module.
    pub fn names<'a>(&'a self, module: &'a str) -> impl Iterator<Item = Arc<str>> + 'a {
        let all = self.functions.keys().filter(move |(of, _)| &**of == module);
        all.map(|(_, name)| name.clone())
    }
}
