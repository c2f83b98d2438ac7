//! What a program can use: kinds, functions, constants. Put together here, and handed on by argument.

use std::sync::Arc;

use setpoint_diagnostics::MemoryLoader;
use setpoint_engine::KindSpec;
use setpoint_graph::Library;
use setpoint_resources::INTERNAL_KINDS;
use setpoint_value::{Module, Registry, Value};

use crate::languages::mcl_functions::MclFunctions;

/// Kinds and modules of functions.
#[derive(Clone)]
pub struct Assembly {
    kinds: Vec<&'static KindSpec>,
    modules: Vec<&'static Module>,
    embedded: MemoryLoader,
}

impl Assembly {
    /// Everything that comes with Setpoint.
    #[must_use]
    pub fn standard() -> Assembly {
        Assembly {
            kinds: setpoint_resources::KINDS.to_vec(),
            modules: setpoint_functions::MODULES.to_vec(),
            embedded: MemoryLoader::new(),
        }
    }

    /// With a further kind.
    #[must_use]
    pub fn with_kind(mut self, kind: &'static KindSpec) -> Assembly {
        self.kinds.push(kind);
        self
    }

    /// With further functions.
    #[must_use]
    pub fn with_module(mut self, module: &'static Module) -> Assembly {
        self.modules.push(module);
        self
    }

    /// With a further module that is written in mcl and comes with the program, imported by its name, `embedded/greeter`: its
    /// files by their paths in it, `main.mcl` among them.
    #[must_use]
    pub fn with_embedded_module<'a>(
        mut self,
        name: &str,
        files: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Assembly {
        for (file, text) in files {
            self.embedded = self.embedded.with(format!("{name}/{file}"), text);
        }
        self
    }

    /// The kinds that texts can name, in the order of the reference documentation.
    #[must_use]
    pub fn kinds(&self) -> &[&'static KindSpec] {
        &self.kinds
    }

    /// The names of those kinds.
    #[must_use]
    pub fn kind_names(&self) -> Vec<String> {
        self.kinds
            .iter()
            .map(|kind| kind.schema.kind.to_owned())
            .collect()
    }

    /// All kinds of which there may be resources in a graph.
    pub fn all_kinds(&self) -> impl Iterator<Item = &'static KindSpec> + '_ {
        self.kinds.iter().chain(INTERNAL_KINDS).copied()
    }

    /// The modules of functions, in the order of the reference documentation.
    #[must_use]
    pub fn modules(&self) -> &[&'static Module] {
        &self.modules
    }

    /// What languages are given, on the host of this name.
    #[must_use]
    pub fn library(&self, hostname: &str) -> Library {
        let functions = Registry::new(self.modules.iter().copied());
        let mut library = Library::new(functions, self.kinds.iter().map(|kind| kind.schema))
            .with_internal_kinds(INTERNAL_KINDS.iter().map(|kind| kind.schema))
            .with_variable("hostname", Value::str(hostname))
            .with_variable("purpleidea", Value::str("hello world!"));
        library.modules = Arc::new(self.embedded.clone());
        library.function_files = Some(Arc::new(MclFunctions));
        library
    }
}
