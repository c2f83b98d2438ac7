//! Everything a language is given from outside.

use std::collections::BTreeMap;
use std::sync::Arc;

use setpoint_diagnostics::{Diagnostics, Loader, MemoryLoader, SourceMap};
use setpoint_value::{FunctionRef, Registry, Value};

use crate::{ConstantValue, KindSchema};

/// Functions, kinds, constants and embedded modules. A test passes three functions and two kinds.
#[derive(Clone)]
pub struct Library {
    /// Functions and module variables.
    pub functions: Registry,
    /// Kinds by name.
    pub kinds: BTreeMap<&'static str, &'static KindSchema>,
    /// Kinds by name of which no text can make a resource: an export does.
    pub internal_kinds: BTreeMap<&'static str, &'static KindSchema>,
    /// Variables of every program's base scope: `hostname`, `const.res.file.state.exists`, ….
    pub variables: BTreeMap<String, Value>,
    /// Modules that are compiled in, at `NAME/main.mcl` and so on.
    pub modules: Arc<dyn Loader>,
    /// Compiles files of functions in another language than the program's; none where no file is one.
    pub function_files: Option<Arc<dyn FunctionFiles>>,
}

/// Compiles files that declare functions, for programs in another language.
pub trait FunctionFiles: Send + Sync {
    /// What the file `path` declares, for the module of this name. If something is wrong with it, that is told, and its texts go to
    /// `sources`.
    fn functions(
        &self,
        module: &str,
        path: &str,
        loader: &dyn Loader,
        library: &Library,
        sources: &mut SourceMap,
        diagnostics: &mut Diagnostics,
    ) -> FunctionFile;
}

/// What a file of functions has.
#[derive(Debug, Default)]
pub struct FunctionFile {
    /// Its functions.
    pub functions: Vec<FunctionRef>,
    /// The file, and those that it needs.
    pub reads: Vec<String>,
}

impl Library {
    /// A library of these functions and kinds, with the constants that the kinds register and no embedded modules.
    #[must_use]
    pub fn new(functions: Registry, kinds: impl IntoIterator<Item = &'static KindSchema>) -> Library {
        let kinds: BTreeMap<_, _> = kinds.into_iter().map(|schema| (schema.kind, schema)).collect();
        let mut variables = BTreeMap::new();
        for schema in kinds.values() {
            for constant in schema.constants {
                let name = format!(
                    "const.res.{}.{}.{}",
                    schema.kind, constant.parameter, constant.name
                );
                let value = match constant.value {
                    ConstantValue::Str(text) => Value::str(text),
                    ConstantValue::Int(number) => Value::Int(number),
                };
                variables.insert(name, value);
            }
        }
        Library {
            functions,
            kinds,
            internal_kinds: BTreeMap::new(),
            variables,
            modules: Arc::new(MemoryLoader::new()),
            function_files: None,
        }
    }

    /// With kinds that no text can name.
    #[must_use]
    pub fn with_internal_kinds(mut self, kinds: impl IntoIterator<Item = &'static KindSchema>) -> Library {
        let kinds = kinds.into_iter().map(|schema| (schema.kind, schema));
        self.internal_kinds.extend(kinds);
        self
    }

    /// With a variable in every program's base scope.
    #[must_use]
    pub fn with_variable(mut self, name: impl Into<String>, value: Value) -> Library {
        self.variables.insert(name.into(), value);
        self
    }
}
