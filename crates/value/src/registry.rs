//! The functions of a library, by module and name.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::{FunctionRef, FunctionSpec};

/// The functions and variables of one module of a library, in the order of the reference documentation.
pub struct Module {
    /// Import name, `golang/strings`; empty for what needs no import.
    pub name: &'static str,
    /// One line about it.
    pub doc: &'static str,
    /// Its functions.
    pub functions: &'static [&'static FunctionSpec],
    /// Its variables: name and text value.
    pub variables: &'static [(&'static str, &'static str)],
}

impl Module {
    /// A module of functions only.
    #[must_use]
    pub const fn new(
        name: &'static str,
        doc: &'static str,
        functions: &'static [&'static FunctionSpec],
    ) -> Module {
        Module {
            name,
            doc,
            functions,
            variables: &[],
        }
    }

    /// With variables: name and text value.
    #[must_use]
    pub const fn with_variables(mut self, variables: &'static [(&'static str, &'static str)]) -> Module {
        self.variables = variables;
        self
    }
}

/// All functions that a language may call, by module and name.
#[derive(Clone, Default)]
pub struct Registry {
    modules: BTreeMap<Cow<'static, str>, BTreeMap<Cow<'static, str>, FunctionRef>>,
    variables: BTreeMap<&'static str, Vec<(&'static str, &'static str)>>,
}

impl Registry {
    /// The functions of these modules.
    ///
    /// # Panics
    /// When two functions of one module have one name, or a function names another module than the one that lists it.
    #[must_use]
    pub fn new<'a>(modules: impl IntoIterator<Item = &'a Module>) -> Registry {
        let mut registry = Registry::default();
        for module in modules {
            registry.modules.entry(module.name.into()).or_default();
            for spec in module.functions {
                assert_eq!(spec.module, module.name, "`{spec}` is listed by its own module");
                registry
                    .add(FunctionRef::from(*spec))
                    .unwrap_or_else(|again| panic!("`{again}` is listed once"));
            }
            registry
                .variables
                .entry(module.name)
                .or_default()
                .extend(module.variables);
        }
        registry
    }

    /// Adds a function, with its module if that is new.
    ///
    /// # Errors
    /// The function back, if there is one of that name already.
    pub fn add(&mut self, function: FunctionRef) -> Result<(), FunctionRef> {
        let module = self.modules.entry(function.module.clone()).or_default();
        match module.entry(function.name.clone()) {
            Entry::Occupied(_) => Err(function),
            Entry::Vacant(place) => {
                place.insert(function);
                Ok(())
            }
        }
    }

    /// A function by module (empty: no import needed) and name.
    #[must_use]
    pub fn get(&self, module: &str, name: &str) -> Option<&FunctionRef> {
        self.modules.get(module)?.get(name)
    }

    /// The functions of a module, by name; none if there is no such module.
    #[must_use]
    pub fn module(&self, name: &str) -> Option<&BTreeMap<Cow<'static, str>, FunctionRef>> {
        self.modules.get(name)
    }

    /// The variables of a module: name and text value.
    #[must_use]
    pub fn variables(&self, module: &str) -> &[(&'static str, &'static str)] {
        self.variables.get(module).map(Vec::as_slice).unwrap_or_default()
    }

    /// Names of all modules.
    pub fn module_names(&self) -> impl Iterator<Item = &str> {
        self.modules.keys().map(|name| &**name)
    }

    /// All functions, by module and name.
    pub fn iter(&self) -> impl Iterator<Item = &FunctionRef> {
        self.modules.values().flat_map(BTreeMap::values)
    }
}
