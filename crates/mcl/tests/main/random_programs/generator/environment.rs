//! What can be mentioned at a place of a generated program.

use super::types::{Chosen, Ty};

/// The names that are visible, as templates have them: `n1‹7›`, `n2‹4›.n1‹7›`.
#[derive(Clone, Default)]
pub(crate) struct Environment {
    pub(crate) variables: Vec<(String, Ty)>,
    pub(crate) functions: Vec<Signature>,
    pub(crate) classes: Vec<Class>,
    /// Functions of the core library, and how they are called here.
    pub(crate) core: Vec<(String, String)>,
    /// A variable whose text no other instance of the surrounding class or loop has.
    pub(crate) tag: Option<String>,
    /// Whether it is inside of a loop, where nothing can be imported.
    pub(crate) in_loop: bool,
    /// Variables that keep their meaning.
    pub(crate) kept: Vec<String>,
    /// Resources that are there whenever what is here is: their kind, and their name as an expression.
    pub(crate) resources: Vec<(&'static str, String)>,
}

/// A named function.
#[derive(Clone)]
pub(crate) struct Signature {
    pub(crate) name: String,
    /// What each call decides.
    pub(crate) open: Vec<u32>,
    pub(crate) parameters: Vec<Ty>,
    pub(crate) result: Ty,
}

/// A class. Its first parameter is a text that tells its instances apart.
#[derive(Clone)]
pub(crate) struct Class {
    pub(crate) name: String,
    pub(crate) open: Vec<u32>,
    pub(crate) parameters: Vec<Ty>,
    /// What an alias of an include gives.
    pub(crate) exports: Box<Environment>,
}

/// A name without the numbers of definitions.
pub(crate) fn plain(name: &str) -> String {
    let mut text = String::new();
    let mut is_number = false;
    for character in name.chars() {
        match character {
            '‹' => is_number = true,
            '›' => is_number = false,
            other if !is_number => text.push(other),
            _ => {}
        }
    }
    text
}

impl Environment {
    pub(crate) fn add_variable(&mut self, name: String, ty: Ty) {
        self.hide_variable(&plain(&name));
        self.variables.push((name, ty));
    }

    pub(crate) fn add_function(&mut self, function: Signature) {
        let name = plain(&function.name);
        self.functions.retain(|other| plain(&other.name) != name);
        self.functions.push(function);
    }

    pub(crate) fn add_class(&mut self, class: Class) {
        let name = plain(&class.name);
        self.classes.retain(|other| plain(&other.name) != name);
        self.classes.push(class);
    }

    pub(crate) fn hide_variable(&mut self, name: &str) {
        self.variables.retain(|(other, _)| plain(other) != name);
    }

    pub(crate) fn hide_function(&mut self, name: &str) {
        self.functions.retain(|other| plain(&other.name) != name);
    }

    pub(crate) fn hide_class(&mut self, name: &str) {
        self.classes.retain(|other| plain(&other.name) != name);
    }

    /// Hides everything behind an alias.
    pub(crate) fn hide_alias(&mut self, alias: &str) {
        let is_behind = |name: &str| {
            plain(name)
                .split_once('.')
                .is_some_and(|(first, _)| first == alias)
        };
        self.variables.retain(|(name, _)| !is_behind(name));
        self.functions.retain(|function| !is_behind(&function.name));
        self.classes.retain(|class| !is_behind(&class.name));
    }

    /// Everything of another one, behind an alias or as it is.
    pub(crate) fn take_in(&mut self, exports: &Environment, alias: Option<&str>, chosen: &Chosen) {
        let named = |name: &str| alias.map_or_else(|| name.to_owned(), |alias| format!("{alias}.{name}"));
        for (name, ty) in &exports.variables {
            self.add_variable(named(name), ty.with(chosen));
        }
        for function in &exports.functions {
            self.add_function(Signature {
                name: named(&function.name),
                ..function.with(chosen)
            });
        }
        for class in &exports.classes {
            self.add_class(Class {
                name: named(&class.name),
                ..class.with(chosen)
            });
        }
    }

    /// The names of all that is here, of variables, functions and classes.
    pub(crate) fn plain_names(&self) -> Vec<String> {
        let variables = self.variables.iter().map(|(name, _)| name);
        let functions = self.functions.iter().map(|function| &function.name);
        let classes = self.classes.iter().map(|class| &class.name);
        variables
            .chain(functions)
            .chain(classes)
            .map(|name| plain(name))
            .collect()
    }

    /// What is here and was not in another one: what a block defines. Some of what the block sees is exported as well.
    pub(crate) fn without(&self, outer: &Environment) -> Environment {
        let mut own = Environment::default();
        let variables = self.variables.iter();
        let is_outer = |name: &String| outer.variables.iter().any(|(other, _)| other == name);
        own.variables = variables.filter(|(name, _)| !is_outer(name)).cloned().collect();
        let is_outer = |name: &String| outer.functions.iter().any(|other| other.name == *name);
        own.functions = self
            .functions
            .iter()
            .filter(|f| !is_outer(&f.name))
            .cloned()
            .collect();
        let is_outer = |name: &String| outer.classes.iter().any(|other| other.name == *name);
        own.classes = self
            .classes
            .iter()
            .filter(|class| !is_outer(&class.name))
            .cloned()
            .collect();
        own
    }

    /// How a function of the core library is called here.
    pub(crate) fn core(&self, name: &str) -> Option<&str> {
        self.core
            .iter()
            .find(|(other, _)| other == name)
            .map(|(_, spelling)| &**spelling)
    }
}

impl Signature {
    fn with(&self, chosen: &Chosen) -> Signature {
        Signature {
            name: self.name.clone(),
            open: self.open.clone(),
            parameters: self.parameters.iter().map(|ty| ty.with(chosen)).collect(),
            result: self.result.with(chosen),
        }
    }
}

impl Class {
    fn with(&self, chosen: &Chosen) -> Class {
        let mut exports = Environment::default();
        exports.take_in(&self.exports, None, chosen);
        Class {
            name: self.name.clone(),
            open: self.open.clone(),
            parameters: self.parameters.iter().map(|ty| ty.with(chosen)).collect(),
            exports: Box::new(exports),
        }
    }
}
