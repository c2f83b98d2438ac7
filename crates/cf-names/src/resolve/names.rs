//! Namespaces: which types and variables each has, what it imports, and how a name in it is found.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use setpoint_cf_syntax::{ast, foreign_word};
use setpoint_diagnostics::{Diagnostic, Diagnostics, Span, did_you_mean};
use setpoint_graph::Library;

use super::{FunctionTable, codes};
use crate::advice::other_name;
use crate::hir::{FunctionImplementation, Namespace};
use crate::ids::{EntityId, ImplementationId, NamespaceId, TypedefId};
use crate::project::{Loaded, full_name, library_module};
use crate::types::BaseType;

/// What the name of a type stands for.
#[derive(Debug, Clone)]
pub(super) enum Definition {
    /// A type without a definition.
    Primitive(BaseType),
    /// An entity.
    Entity(EntityId),
    /// A typedef.
    Typedef(TypedefId),
    /// An implementation.
    Implementation(ImplementationId),
    /// A function, with its whole name.
    Function(Arc<str>, FunctionImplementation),
}

impl Definition {
    /// What it is, for messages: `an entity`.
    pub(super) fn sort(&self) -> &'static str {
        match self {
            Definition::Primitive(_) => "a built-in type",
            Definition::Entity(_) => "an entity",
            Definition::Typedef(_) => "a typedef",
            Definition::Implementation(_) => "an implementation",
            Definition::Function(..) => "a function",
        }
    }
}

/// All namespaces.
pub(super) struct Names<'a> {
    library: &'a Library,
    pub(super) functions: &'a dyn FunctionTable,
    spaces: Vec<Space>,
    by_name: FxHashMap<Arc<str>, NamespaceId>,
    /// Namespaces in which a type of a name is defined, for advice.
    defined: FxHashMap<Arc<str>, Vec<NamespaceId>>,
    /// How often a similar name was looked for.
    searches: Cell<u32>,
    /// Errors that a Python file causes that cannot be imported, by the reason.
    import_failures: RefCell<BTreeMap<String, Vec<Span>>>,
}

/// Similar names are looked for so often: that compares with all there are, and nobody reads more advice.
const MOST_SEARCHES: u32 = 100;

struct Space {
    name: Arc<str>,
    /// The namespace that it is a part of.
    parent: Option<NamespaceId>,
    /// What is visible under other names than the own one.
    imports: FxHashMap<Arc<str>, (NamespaceId, Span)>,
    types: FxHashMap<Arc<str>, (Definition, Option<Span>)>,
    variables: FxHashMap<Arc<str>, u32>,
    /// Whether the shared library has its functions.
    has_library_functions: bool,
    /// Whether its module has functions in Python.
    has_python: bool,
}

impl<'a> Names<'a> {
    pub(super) fn new(loaded: &Loaded, library: &'a Library, functions: &'a dyn FunctionTable) -> Names<'a> {
        let mut names = Names {
            library,
            functions,
            spaces: Vec::with_capacity(loaded.files.len()),
            by_name: FxHashMap::default(),
            defined: FxHashMap::default(),
            searches: Cell::new(0),
            import_failures: RefCell::default(),
        };
        for (at, file) in loaded.files.iter().enumerate() {
            let name = &file.namespace;
            let whole = name.split("::").next().unwrap_or(name);
            let module = loaded.modules.iter().find(|module| *module.name == *whole);
            let mut python = loaded.modules.iter().filter(|module| module.python.is_some());
            names.by_name.insert(name.clone(), NamespaceId(at as u32));
            names.spaces.push(Space {
                name: name.clone(),
                parent: None,
                imports: FxHashMap::default(),
                types: FxHashMap::default(),
                variables: FxHashMap::default(),
                has_library_functions: module.is_some_and(|m| m.directory.is_none() && &*m.name != "std"),
                has_python: python.any(|module| *module.name == *whole),
            });
        }
        for at in 0..names.spaces.len() {
            let parent = names.spaces[at].name.rsplit_once("::").map(|(parent, _)| parent);
            names.spaces[at].parent = parent.and_then(|parent| names.by_name.get(parent)).copied();
        }
        names
    }

    /// The name of a namespace.
    pub(super) fn name(&self, space: NamespaceId) -> &Arc<str> {
        &self.spaces[space.index()].name
    }

    /// A namespace by its whole name.
    pub(super) fn namespace(&self, name: &str) -> Option<NamespaceId> {
        self.by_name.get(name).copied()
    }

    /// Makes a namespace visible in another one. Answers where the name is taken already.
    pub(super) fn import(
        &mut self,
        space: NamespaceId,
        name: Arc<str>,
        target: NamespaceId,
        span: Span,
    ) -> Option<Span> {
        let imports = &mut self.spaces[space.index()].imports;
        if let Some((_, earlier)) = imports.get(&name) {
            return Some(*earlier);
        }
        imports.insert(name, (target, span));
        None
    }

    /// Defines a type. Answers what has the name already.
    pub(super) fn define(
        &mut self,
        space: NamespaceId,
        name: &Arc<str>,
        definition: Definition,
        span: Option<Span>,
    ) -> Option<(Definition, Option<Span>)> {
        let taken = self.own(space, name);
        if let Some(taken) = taken.filter(|(taken, _)| !is_guess(taken)) {
            return Some(taken);
        }
        self.defined.entry(name.clone()).or_default().push(space);
        let types = &mut self.spaces[space.index()].types;
        types.insert(name.clone(), (definition, span));
        None
    }

    /// Declares a variable.
    pub(super) fn declare(&mut self, space: NamespaceId, name: Arc<str>, index: u32) {
        self.spaces[space.index()].variables.insert(name, index);
    }

    /// A variable of a namespace itself.
    pub(super) fn variable(&self, space: NamespaceId, name: &str) -> Option<u32> {
        self.spaces[space.index()].variables.get(name).copied()
    }

    /// A type of a namespace itself.
    fn own(&self, space: NamespaceId, name: &str) -> Option<(Definition, Option<Span>)> {
        let of = &self.spaces[space.index()];
        if let Some(defined) = of.types.get(name) {
            return Some(defined.clone());
        }
        let function = function(
            self.library,
            self.functions,
            &of.name,
            of.has_library_functions,
            name,
        );
        function.map(|function| {
            let whole = format!("{}::{name}", of.name).into();
            (Definition::Function(whole, function), None)
        })
    }

    /// Tells the model what is visible where.
    pub(super) fn describe(&self, namespaces: &mut [Namespace]) {
        let std = self.namespace("std");
        for (namespace, space) in namespaces.iter_mut().zip(&self.spaces) {
            namespace.parent = space.parent;
            namespace.has_library_functions = space.has_library_functions;
            let imports = space
                .imports
                .iter()
                .map(|(name, (target, _))| (name.clone(), *target));
            namespace.imports = imports.collect();
            if let Some(std) = std {
                namespace.imports.entry("std".into()).or_insert(std);
            }
        }
    }

    /// Whether a similar name may be looked for once more.
    pub(super) fn may_search(&self) -> bool {
        let searches = self.searches.get();
        self.searches.set(searches.saturating_add(1));
        searches < MOST_SEARCHES
    }

    /// The namespace that a prefix stands for.
    fn visible(&self, space: NamespaceId, prefix: &str) -> Option<NamespaceId> {
        let of = &self.spaces[space.index()];
        if let Some((target, _)) = of.imports.get(prefix) {
            return Some(*target);
        }
        if prefix == &*of.name {
            return Some(space);
        }
        self.by_name.get(prefix).copied().filter(|_| prefix == "std")
    }

    /// The namespace before a name, and the import that makes it visible, if one does.
    pub(super) fn prefix_of(
        &self,
        space: NamespaceId,
        path: &ast::Path,
    ) -> Option<(NamespaceId, Option<Span>)> {
        let prefix = prefix(path);
        let target = self.visible(space, &prefix)?;
        let import = self.spaces[space.index()].imports.get(&*prefix);
        Some((target, import.map(|(_, span)| *span)))
    }

    /// Finds a type. Unqualified names of `std` are found last.
    pub(super) fn find(&self, space: NamespaceId, path: &ast::Path) -> Result<Definition, Box<Diagnostic>> {
        self.find_without_std(space, path).or_else(|error| {
            let std = self.by_name.get("std").filter(|_| path.namespace.is_empty());
            let found = std.and_then(|std| self.own(*std, &path.name.text));
            found.map(|(definition, _)| definition).ok_or(error)
        })
    }

    /// Finds a type without looking for unqualified names in `std`.
    pub(super) fn find_without_std(
        &self,
        space: NamespaceId,
        path: &ast::Path,
    ) -> Result<Definition, Box<Diagnostic>> {
        let name = &path.name.text;
        if path.namespace.is_empty() {
            if let Some(primitive) = BaseType::primitive(name) {
                return Ok(Definition::Primitive(primitive));
            }
            let mut at = Some(space);
            while let Some(outer) = at {
                if let Some((definition, _)) = self.own(outer, name) {
                    return Ok(definition);
                }
                at = self.spaces[outer.index()].parent;
            }
            return Err(Box::new(self.no_type(space, space, path)));
        }
        let prefix = prefix(path);
        let Some(target) = self.visible(space, &prefix) else {
            let message = format!(
                "could not find type `{}`: namespace `{prefix}` is not imported here",
                full_name(path)
            );
            let error = Diagnostic::error(&codes::MISSING_IMPORT, path.span, message);
            let error = error.of_class("MissingImportException").label("not visible");
            return Err(Box::new(self.with_import_advice(error, space, path, &prefix)));
        };
        let found = self.own(target, name).map(|(definition, _)| definition);
        found.ok_or_else(|| Box::new(self.no_type(space, target, path)))
    }

    /// Where a qualified variable is: `None` if the namespace is visible and has none of this name.
    pub(super) fn qualified_variable(
        &self,
        space: NamespaceId,
        path: &ast::Path,
    ) -> Result<Option<(NamespaceId, u32)>, Box<Diagnostic>> {
        let prefix = prefix(path);
        let Some(target) = self.visible(space, &prefix) else {
            let message = format!("namespace `{prefix}` is not imported here");
            let error = Diagnostic::error(&codes::NO_NAMESPACE, path.span, message);
            let error = error.of_class("NotFoundException").label("not visible");
            return Err(Box::new(self.with_import_advice(error, space, path, &prefix)));
        };
        let variable = self.variable(target, &path.name.text);
        Ok(variable.map(|index| (target, index)))
    }

    fn no_type(&self, space: NamespaceId, searched: NamespaceId, path: &ast::Path) -> Diagnostic {
        let name = &path.name.text;
        let of = &self.spaces[searched.index()];
        let message = format!("could not find type `{name}` in namespace `{}`", of.name);
        let error = Diagnostic::error(&codes::NO_TYPE, path.span, message)
            .of_class("TypeNotFoundException")
            .label("not found");
        if of.has_python
            && !name.starts_with(|first: char| first.is_ascii_uppercase())
            && let Some(missing) = self.functions.missing_plugin(&of.name, name)
        {
            let told = match missing.reason {
                Some(reason) => {
                    let message = format!(
                        "could not find function `{name}` in namespace `{}`: {reason}",
                        of.name
                    );
                    let told = Diagnostic { message, ..error };
                    let help = missing_package(&reason).map(|package| {
                        format!("install the package of `{package}` for the `python3` that is first in PATH")
                    });
                    let mut failures = self.import_failures.borrow_mut();
                    failures.entry(reason).or_default().push(path.span);
                    told.help_if(help)
                }
                None => error,
            };
            return told.note(missing.note);
        }
        if !self.may_search() {
            return error;
        }
        let mut near: Vec<&str> = of.types.keys().map(|name| &**name).collect();
        if path.namespace.is_empty() {
            near.extend(BaseType::PRIMITIVES.iter().map(|(name, _)| *name));
            let mut outer = of.parent.or_else(|| self.namespace("std"));
            while let Some(at) = outer {
                near.extend(self.spaces[at.index()].types.keys().map(|name| &**name));
                let std = self.namespace("std").filter(|std| *std != at);
                outer = self.spaces[at.index()].parent.or(std);
            }
        }
        let natives = self.functions.names(&of.name);
        near.extend(natives.iter().map(|name| &**name));
        let module = self
            .library
            .functions
            .module(&library_module(&of.name))
            .filter(|_| of.has_library_functions);
        near.extend(
            module
                .into_iter()
                .flat_map(|functions| functions.keys().map(|name| &**name)),
        );
        near.sort_unstable();
        if let Some(elsewhere) = self.elsewhere(space, searched, name) {
            return error.help(elsewhere);
        }
        if let Some(word) = foreign_word(name) {
            return error.help(word);
        }
        if let Some(meant) = self.other_name(space, searched, path) {
            return error.help(format!("did you mean `{meant}`?"));
        }
        match did_you_mean(name, near) {
            Some(meant) => error.help(meant),
            None if of.has_library_functions && !path.namespace.is_empty() => error.note(format!(
                "`{}` is the module of functions here: the project has no module of this name",
                of.name
            )),
            None => error,
        }
    }

    /// Leaves one error for each Python file that cannot be imported, with the number of those that follow from the same reason.
    pub(super) fn tell_import_failures_once(&self, found: Diagnostics) -> Diagnostics {
        let failures = self.import_failures.borrow();
        let mut told = Diagnostics::new();
        for error in found.into_vec() {
            let is_it = |spans: &&Vec<Span>| {
                std::ptr::eq(error.code, &codes::NO_TYPE) && spans.contains(&error.primary.span)
            };
            match failures.values().find(is_it) {
                None => told.push(error),
                Some(spans) if spans.first() != Some(&error.primary.span) => {}
                Some(spans) => told.push(match spans.len() - 1 {
                    0 => error,
                    1 => error.note("one more name is not found for the same reason"),
                    more => error.note(format!("{more} more names are not found for the same reason")),
                }),
            }
        }
        told
    }

    /// What somebody means who uses the name that another language or tool has for it.
    fn other_name(&self, space: NamespaceId, searched: NamespaceId, path: &ast::Path) -> Option<String> {
        let is_there = |name: &str| match name.rsplit_once("::") {
            Some((prefix, name)) => self
                .visible(space, prefix)
                .is_some_and(|target| self.own(target, name).is_some()),
            None => {
                self.own(searched, name).is_some()
                    || path.namespace.is_empty() && (BaseType::primitive(name).is_some() || name == "dict")
            }
        };
        let meant = other_name(&path.name.text, &is_there)?;
        Some(match path.namespace.is_empty() || meant.contains("::") {
            true => meant.to_owned(),
            false => format!("{}::{meant}", prefix(path)),
        })
    }

    /// Advice for a name that another namespace has.
    fn elsewhere(&self, space: NamespaceId, searched: NamespaceId, name: &str) -> Option<String> {
        let others = self.defined.get(name)?;
        let other = *others.iter().find(|other| **other != searched)?;
        let other_name = self.name(other);
        if &**other_name == crate::project::MAIN {
            return None;
        }
        let imports = &self.spaces[space.index()].imports;
        let visible = imports.iter().filter(|(_, (target, _))| *target == other);
        match visible.map(|(visible, _)| visible).min() {
            Some(visible) => Some(format!("did you mean `{visible}::{name}`?")),
            None if &**other_name == "std" => Some(format!("did you mean `std::{name}`?")),
            None => Some(format!(
                "`{other_name}` has one: `import {other_name}` and write `{other_name}::{name}`"
            )),
        }
    }

    fn with_import_advice(
        &self,
        error: Diagnostic,
        space: NamespaceId,
        path: &ast::Path,
        prefix: &str,
    ) -> Diagnostic {
        let of = &self.spaces[space.index()];
        let names = path
            .namespace
            .first()
            .map(|first| first.span)
            .into_iter()
            .chain(path.namespace.last().map(|l| l.span));
        let place = names.reduce(Span::to).unwrap_or(path.span);
        if let Some(target) = self.by_name.get(prefix) {
            let known = of.imports.iter().filter(|(_, (imported, _))| imported == target);
            if let Some(alias) = known.map(|(alias, _)| alias).min() {
                let text = format!("`{prefix}` is visible as `{alias}` here");
                return error.fix(text, place, alias.to_string());
            }
            return error.help(format!("add `import {prefix}` to this file"));
        }
        let visible = of.imports.keys().map(|name| &**name).chain(["std", &*of.name]);
        let mut visible: Vec<&str> = visible.collect();
        visible.sort_unstable();
        match setpoint_diagnostics::closest(prefix, visible) {
            Some(near) => error.fix(format!("did you mean `{near}`?"), place, near),
            None => error.help(format!("add `import {prefix}` to this file")),
        }
    }
}

/// A function of a namespace itself.
pub(super) fn function(
    library: &Library,
    functions: &dyn FunctionTable,
    namespace: &str,
    has_library_functions: bool,
    name: &str,
) -> Option<FunctionImplementation> {
    if let Some(number) = functions.native(namespace, name) {
        return Some(FunctionImplementation::Std(number));
    }
    if let Some(function) = functions.declared(namespace, name) {
        return Some(FunctionImplementation::Library(function));
    }
    if let Some(plugin) = functions.plugin(namespace, name) {
        return Some(FunctionImplementation::Plugin(plugin));
    }
    let shared = library
        .functions
        .get(&library_module(namespace), name)
        .filter(|_| has_library_functions);
    shared.cloned().map(FunctionImplementation::Library)
}

/// The Python package that an import lacks.
fn missing_package(reason: &str) -> Option<&str> {
    let (_, rest) = reason.split_once("ModuleNotFoundError: No module named '")?;
    let (module, _) = rest.split_once('\'')?;
    module.split('.').next()
}

/// Whether it is a function that Setpoint knows by name alone. The Python file may use that name for something else.
fn is_guess(definition: &Definition) -> bool {
    match definition {
        Definition::Function(_, FunctionImplementation::Plugin(plugin)) => !plugin.is_run(),
        _ => false,
    }
}

/// What stands before the last name.
fn prefix(path: &ast::Path) -> String {
    let parts: Vec<&str> = path.namespace.iter().map(|part| &*part.text).collect();
    parts.join("::")
}
