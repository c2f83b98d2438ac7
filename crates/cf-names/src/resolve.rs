//! Names to what they mean: the trees of all files become one [`Model`].
//!
//! Definitions of all files are collected before anything is looked up, so their order does not matter. This goes in steps: types and
//! imports, typedefs, entities, relations and implementations, indexes, `implement` statements, then bodies. A step that finds errors
//! tells all of them, in the order in which the language meets them, and is the last.

mod bodies;
pub mod codes;
mod constants;
mod constructors;
mod dataclasses;
mod definitions;
mod entities;
mod expressions;
mod implements;
mod indexes;
mod members;
pub mod mentions;
mod names;
mod precedence;
mod relations;
mod typedefs;

use std::sync::Arc;

use rustc_hash::FxHashMap;
use setpoint_cf_syntax::ast;
use setpoint_diagnostics::{Diagnostic, Diagnostics, Span};
use setpoint_graph::Library;
use setpoint_value::FunctionRef;

use crate::datum::Datum;
use crate::hir::{Block, Entity, FunctionImplementation, Model, Namespace};
use crate::ids::{EntityId, FunctionId, ImplementationId, NamespaceId, RelationId, Symbol, TypedefId};
use crate::plugins::{MissingPlugin, PluginFunction};
use crate::project::Loaded;
use crate::types::AttributeType;
use mentions::Mentions;
use names::{Definition, Names};

/// Functions outside the shared library, and the type check of constants, which may call them.
pub trait FunctionTable {
    /// The number of a function of a namespace that is built in.
    fn native(&self, namespace: &str, name: &str) -> Option<u16>;

    /// The function that the module of a namespace declares in mcl.
    fn declared(&self, _namespace: &str, _name: &str) -> Option<FunctionRef> {
        None
    }

    /// The function in Python of a name in a namespace.
    fn plugin(&self, _namespace: &str, _name: &str) -> Option<Arc<PluginFunction>> {
        None
    }

    /// What there is to say of the functions in Python of a namespace's module, where a name was not found.
    fn missing_plugin(&self, namespace: &str, name: &str) -> Option<MissingPlugin> {
        let module = namespace.split("::").next().unwrap_or(namespace);
        Some(MissingPlugin {
            reason: None,
            note: format!(
                "module `{module}` has functions in Python, of which nothing provides `{namespace}::{name}`"
            ),
        })
    }

    /// Checks that a constant, which is written at `span`, is of a type. This includes the conditions of typedefs.
    ///
    /// # Errors
    /// The constant is not of the type.
    fn check_constant(
        &self,
        model: &Model,
        ty: AttributeType,
        constant: &Datum,
        span: Span,
    ) -> Result<(), Box<Diagnostic>>;

    /// The names of all functions of a namespace, for advice.
    fn names(&self, namespace: &str) -> Vec<Arc<str>>;
}

/// Resolves all names. None if that is not possible; why says `diagnostics`.
pub fn resolve(
    loaded: &Loaded,
    library: &Library,
    functions: &dyn FunctionTable,
    diagnostics: &mut Diagnostics,
) -> Option<Model> {
    let mut resolver = Resolver::new(loaded, library, functions);
    for step in steps() {
        step(&mut resolver);
        if resolver.found.has_errors() {
            diagnostics.append(resolver.names.tell_import_failures_once(resolver.found));
            return None;
        }
    }
    diagnostics.append(std::mem::take(&mut resolver.found));
    Some(resolver.finish().0)
}

/// Resolves all names as far as that is possible, and notes what each means. What is wrong is told as [`resolve`] tells it: a step
/// behind one that finds errors adds nothing, for what it finds may only follow from them.
pub fn resolve_as_far_as_possible(
    loaded: &Loaded,
    library: &Library,
    functions: &dyn FunctionTable,
    diagnostics: &mut Diagnostics,
) -> (Model, Mentions) {
    let mut resolver = Resolver::new(loaded, library, functions);
    resolver.mentions = Some(Mentions::default());
    let mut is_right = true;
    for step in steps() {
        step(&mut resolver);
        let found = std::mem::take(&mut resolver.found);
        if is_right {
            is_right = !found.has_errors();
            diagnostics.append(resolver.names.tell_import_failures_once(found));
        }
    }
    resolver.finish()
}

/// The steps, each of which needs those before it.
fn steps<'a>() -> [fn(&mut Resolver<'a>); 7] {
    [
        Resolver::register,
        Resolver::resolve_typedefs,
        Resolver::resolve_entities,
        Resolver::resolve_relations,
        Resolver::resolve_indexes,
        Resolver::resolve_implements,
        Resolver::resolve_bodies,
    ]
}

/// The function of a name (`upper`, `std::upper`) as a namespace of a resolved model sees it: for those who learn of names only when
/// they execute.
#[must_use]
pub fn function_of(
    model: &Model,
    library: &Library,
    functions: &dyn FunctionTable,
    namespace: NamespaceId,
    name: &str,
) -> Option<FunctionImplementation> {
    let own = |of: NamespaceId, name: &str| {
        let of = &model.namespaces[of.index()];
        names::function(library, functions, &of.name, of.has_library_functions, name)
    };
    if let Some((prefix, name)) = name.rsplit_once("::") {
        return own(model.visible(namespace, prefix)?, name);
    }
    let mut at = Some(namespace);
    while let Some(outer) = at {
        if let Some(found) = own(outer, name) {
            return Some(found);
        }
        at = model.namespaces[outer.index()].parent;
    }
    own(model.visible(namespace, "std")?, name)
}

/// The model as far as it is made, and what is needed to make it.
struct Resolver<'a> {
    loaded: &'a Loaded,
    library: &'a Library,
    names: Names<'a>,
    symbols: Symbols,
    model: Model,
    found: Diagnostics,
    /// The trees of entities; none for those that are made from kinds.
    entities: Vec<Option<&'a ast::Entity>>,
    /// Entities, parents before those that extend them.
    parents_first: Vec<EntityId>,
    typedefs: Vec<&'a ast::Typedef>,
    implementations: Vec<&'a ast::Implementation>,
    relations: Vec<(NamespaceId, RelationId, &'a ast::Relation)>,
    /// Attributes that an entity declares itself, with what is said about their defaults.
    declared: Vec<Vec<entities::Declared>>,
    /// Relations that an entity has of its own.
    own_relations: Vec<Vec<RelationId>>,
    /// Contradictions between what an entity has and what it inherits, which are told when entities are checked.
    contradictions: Vec<Diagnostic>,
    /// The first index that is declared for an entity itself.
    first_index: FxHashMap<EntityId, Vec<Symbol>>,
    implements: Vec<implements::Written<'a>>,
    functions: FxHashMap<Arc<str>, FunctionId>,
    /// Entities by their names without namespaces.
    short_names: FxHashMap<Arc<str>, Vec<EntityId>>,
    /// What names mean, if somebody wants to know; then steps go on behind errors.
    mentions: Option<Mentions>,
    /// The names that imports give, by the statements.
    aliases: FxHashMap<Span, Span>,
}

impl<'a> Resolver<'a> {
    fn new(loaded: &'a Loaded, library: &'a Library, functions: &'a dyn FunctionTable) -> Resolver<'a> {
        let namespace = |file: &crate::project::LoadedFile| Namespace {
            name: file.namespace.clone(),
            file: file.tree.file,
            parent: None,
            imports: FxHashMap::default(),
            has_library_functions: false,
            body: Block::default(),
        };
        let directory =
            |module: &crate::project::Module| Some((module.name.clone(), module.directory.clone()?));
        let own = ("".into(), loaded.project.directory.as_str().into());
        let model = Model {
            namespaces: loaded.files.iter().map(namespace).collect(),
            modules: loaded.modules.iter().filter_map(directory).chain([own]).collect(),
            ..Model::default()
        };
        Resolver {
            loaded,
            library,
            names: Names::new(loaded, library, functions),
            symbols: Symbols::default(),
            model,
            found: Diagnostics::new(),
            entities: Vec::new(),
            parents_first: Vec::new(),
            typedefs: Vec::new(),
            implementations: Vec::new(),
            relations: Vec::new(),
            declared: Vec::new(),
            own_relations: Vec::new(),
            contradictions: Vec::new(),
            first_index: FxHashMap::default(),
            implements: Vec::new(),
            functions: FxHashMap::default(),
            short_names: FxHashMap::default(),
            mentions: None,
            aliases: FxHashMap::default(),
        }
    }

    fn finish(mut self) -> (Model, Mentions) {
        self.model.symbols = self.symbols.texts;
        self.names.describe(&mut self.model.namespaces);
        let mut mentions = self.mentions.unwrap_or_default();
        let own = |declared: &Vec<entities::Declared>| declared.iter().map(|one| one.name).collect();
        mentions.declared = self.declared.iter().map(own).collect();
        (self.model, mentions)
    }

    /// All items of all files, with their namespaces, in the order in which they count.
    fn items(&self) -> impl Iterator<Item = (NamespaceId, &'a ast::Item)> + use<'a> {
        let files = self.loaded.files.iter().enumerate();
        files.flat_map(|(at, file)| {
            file.tree
                .items
                .iter()
                .map(move |item| (NamespaceId(at as u32), item))
        })
    }

    fn symbol(&mut self, text: &Arc<str>) -> Symbol {
        self.symbols.of(text)
    }

    fn entity(&self, entity: EntityId) -> &Entity {
        &self.model.entities[entity.index()]
    }

    /// Finds the entity of a name; anything else is an error.
    fn find_entity(&mut self, namespace: NamespaceId, path: &ast::Path) -> Option<EntityId> {
        match self.find(namespace, path) {
            Ok(Definition::Entity(entity)) => Some(entity),
            Ok(other) => {
                self.wrong_sort(path, &other, "an entity");
                None
            }
            Err(error) => {
                self.found.push(*error);
                None
            }
        }
    }

    /// Finds a type, and notes what its name means.
    fn find(&mut self, namespace: NamespaceId, path: &ast::Path) -> Result<Definition, Box<Diagnostic>> {
        let found = self.names.find(namespace, path)?;
        self.mention_type(namespace, path, &found);
        Ok(found)
    }

    fn wrong_sort(&mut self, path: &ast::Path, found: &Definition, wanted: &str) {
        let name = crate::project::full_name(path);
        let message = format!("`{name}` is {}, where {wanted} is needed", found.sort());
        let error = Diagnostic::error(&codes::WRONG_SORT, path.span, message);
        let error = error.of_class("TypingException").label(format!("not {wanted}"));
        self.found.push(match self.place_of(found) {
            Some(place) => error.because(place, "defined here"),
            None => error,
        });
    }

    /// Where something is defined.
    fn place_of(&self, definition: &Definition) -> Option<Span> {
        match definition {
            Definition::Primitive(_) | Definition::Function(..) => None,
            Definition::Entity(EntityId(at)) => self.model.entities[*at as usize].span,
            Definition::Typedef(TypedefId(at)) => self.model.typedefs[*at as usize].span,
            Definition::Implementation(ImplementationId(at)) => self.model.implementations[*at as usize].span,
        }
    }

    /// The number of a function, which it gets when it is called for the first time.
    fn function(&mut self, name: Arc<str>, implementation: FunctionImplementation) -> FunctionId {
        if let Some(known) = self.functions.get(&name) {
            return *known;
        }
        let id = FunctionId(self.model.functions.len() as u32);
        self.model.functions.push(crate::hir::Function {
            name: name.clone(),
            implementation,
        });
        self.functions.insert(name, id);
        id
    }
}

/// Names with their numbers.
#[derive(Debug, Default)]
struct Symbols {
    texts: Vec<Arc<str>>,
    known: FxHashMap<Arc<str>, Symbol>,
}

impl Symbols {
    fn of(&mut self, text: &Arc<str>) -> Symbol {
        if let Some(known) = self.known.get(text) {
            return *known;
        }
        let symbol = Symbol(self.texts.len() as u32);
        self.texts.push(text.clone());
        self.known.insert(text.clone(), symbol);
        symbol
    }

    fn text(&self, symbol: Symbol) -> &Arc<str> {
        &self.texts[symbol.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project::{Options, load};
    use setpoint_diagnostics::{MemoryLoader, SourceMap};
    use setpoint_value::Registry;

    struct NoFunctions;

    impl FunctionTable for NoFunctions {
        fn native(&self, namespace: &str, name: &str) -> Option<u16> {
            (namespace == "std" && ["validate_type", "is_base64_encoded"].contains(&name)).then_some(0)
        }

        fn names(&self, _: &str) -> Vec<Arc<str>> {
            Vec::new()
        }

        fn check_constant(
            &self,
            _: &Model,
            _: AttributeType,
            _: &Datum,
            _: Span,
        ) -> Result<(), Box<Diagnostic>> {
            Ok(())
        }
    }

    fn resolved(text: &str) -> (Option<Model>, Vec<(&'static str, String)>) {
        let loader = MemoryLoader::new().with("main.cf", text);
        let library = Library::new(Registry::new(&[]), []);
        let mut found = Diagnostics::new();
        let mut options = Options::default();
        let loaded = load(
            &loader,
            &library,
            "",
            &mut options,
            &mut SourceMap::new(),
            &mut found,
        );
        let model = resolve(&loaded, &library, &NoFunctions, &mut found);
        (
            model,
            found.iter().map(|d| (d.code.code, d.message.clone())).collect(),
        )
    }

    #[test]
    fn too_many_entities_or_typedefs_above_one_are_refused() {
        let chain = |first: &str, next: &dyn Fn(u32) -> String| {
            (1..400).fold(first.to_owned(), |text, at| text + &next(at))
        };
        let next = |at: u32| format!("entity E{at} extends E{}:\nend\n", at - 1);
        let (model, found) = resolved(&chain("entity E0:\nend\n", &next));
        assert!(model.is_none());
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, "E0548");
        let next = |at: u32| format!("typedef t{at} as t{} matching self > {at}\n", at - 1);
        let (model, found) = resolved(&chain("typedef t0 as int matching self > 0\n", &next));
        assert!(model.is_none());
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, "E0548");
    }

    #[test]
    fn slots_of_ancestors_are_found_by_name() {
        let (model, found) = resolved(
            "entity A:\n  string a\nend\nentity B extends A:\n  string b\nend\nA.r [0:] -- B.s [1]\n",
        );
        let model = model.unwrap_or_else(|| panic!("{found:?}"));
        let entity = model
            .entities
            .iter()
            .find(|entity| &*entity.name == "__config__::B");
        let entity = entity.expect("it is defined");
        for (slot, member) in entity.members.iter().enumerate() {
            assert_eq!(entity.by_name[&member.name], slot as u32);
        }
        let names: Vec<&str> = entity
            .members
            .iter()
            .map(|member| &**model.text(member.name))
            .collect();
        assert_eq!(names, ["requires", "provides", "a", "r", "b", "s"]);
    }
}
