//! What a program can use: kinds, functions, constants. Put together here, and handed on by argument.

use std::collections::BTreeMap;
use std::sync::Arc;

use setpoint_diagnostics::MemoryLoader;
use setpoint_engine::KindSpec;
use setpoint_graph::Library;
use setpoint_resources::INTERNAL_KINDS;
use setpoint_value::{Module, Registry, Value};

use crate::mcl_functions::MclFunctions;

/// Kinds and modules of functions.
#[derive(Clone)]
pub struct Assembly {
    kinds: Vec<&'static KindSpec>,
    modules: Vec<&'static Module>,
    embedded: MemoryLoader,
}

/// Constants of kinds that are not there yet, so that programs that mention them in other kinds' parameters keep their meaning:
/// kind, parameter, name, value.
const FOREIGN_TEXTS: &[(&str, &str, &str, &str)] = &[
    ("net", "state", "up", "up"),
    ("net", "state", "down", "down"),
    ("net", "state", "undefined", ""),
];

/// The same for numbers.
const FOREIGN_NUMBERS: &[(&str, &str, &str, i64)] = &[
    ("tar", "format", "unknown", 0),
    ("tar", "format", "ustar", 2),
    ("tar", "format", "pax", 4),
    ("tar", "format", "gnu", 8),
    ("gzip", "level", "no_compression", 0),
    ("gzip", "level", "best_speed", 1),
    ("gzip", "level", "best_compression", 9),
    ("gzip", "level", "default_compression", -1),
    ("gzip", "level", "huffman_only", -2),
];

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
        let texts = FOREIGN_TEXTS
            .iter()
            .map(|(kind, parameter, name, text)| (kind, parameter, name, Value::str(*text)));
        let numbers = FOREIGN_NUMBERS
            .iter()
            .map(|(kind, parameter, name, n)| (kind, parameter, name, Value::Int(*n)));
        let foreign: BTreeMap<String, Value> = texts
            .chain(numbers)
            .map(|(kind, parameter, name, value)| (format!("const.res.{kind}.{parameter}.{name}"), value))
            .collect();
        for (name, value) in foreign {
            library.variables.entry(name).or_insert(value);
        }
        library.modules = Arc::new(self.embedded.clone());
        library.function_files = Some(Arc::new(MclFunctions));
        library
    }
}
