//! What can stand at a place: told from the tokens before it alone, so that a statement that is being written is no obstacle. What names
//! mean there comes from the analysis.

use std::collections::BTreeMap;

use setpoint_cf_functions::std::FUNCTIONS;
use setpoint_cf_names::hir::{FunctionImplementation, MemberKind};
use setpoint_cf_names::ids::{EntityId, ImplementationId, NamespaceId, TypedefId};
use setpoint_cf_names::project;
use setpoint_cf_names::types::BaseType;
use setpoint_cf_syntax::TokenKind as K;
use setpoint_diagnostics::{FileId, Span};
use setpoint_graph::Library;

use super::scan::{Bracket, Scan, Scope};
use super::{Analysis, Shape, Target, shapes};
use crate::ports;

/// What can stand at a place.
#[derive(Debug, Clone)]
pub struct Completion {
    /// What is replaced by what is chosen.
    pub replaced: Span,
    /// What can be chosen, the likeliest first.
    pub items: Vec<Item>,
    /// Whether it is the module of an import: also those can be chosen that only the disk knows of.
    pub is_module: bool,
}

/// Something that can be chosen.
#[derive(Debug, Clone)]
pub struct Item {
    /// Its name.
    pub label: String,
    /// What sort of thing.
    pub sort: Sort,
    /// What it means, if it is no word of the language.
    pub target: Option<Target>,
    /// What is written in its place, as a snippet with `$1`; the label without it.
    pub snippet: Option<String>,
}

/// Sorts of what can be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// A word of the language.
    Keyword,
    /// An entity.
    Entity,
    /// A typedef or a built-in type.
    Type,
    /// An implementation.
    Implementation,
    /// A function.
    Function,
    /// A namespace.
    Namespace,
    /// A variable.
    Variable,
    /// An attribute.
    Attribute,
    /// A relation.
    Relation,
}

/// What is looked for where a name is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Entity,
    Type,
    Implementation,
    Value,
    Statement,
    Import,
    Nothing,
}

/// Statements and definitions with what follows them.
const DEFINITIONS: [(&str, &str); 6] = [
    ("entity", "entity ${1:Name}:\n\t$0\nend"),
    ("typedef", "typedef ${1:name} as ${2:string} matching $0"),
    (
        "implementation",
        "implementation ${1:name} for ${2:Entity}:\n\t$0\nend",
    ),
    ("implement", "implement ${1:Entity} using ${2:implementation}"),
    ("index", "index ${1:Entity}(${2:attribute})"),
    ("import", "import ${1:module}"),
];
const STATEMENTS: [(&str, &str); 2] = [
    ("for", "for ${1:element} in ${2:list}:\n\t$0\nend"),
    ("if", "if ${1:condition}:\n\t$0\nend"),
];
const VALUES: [&str; 4] = ["true", "false", "null", "not"];

impl Analysis {
    /// What can stand at a place; none where only new names, texts and comments can.
    #[must_use]
    pub fn complete(&self, file: FileId, offset: u32, library: &Library) -> Option<Completion> {
        let lexed = self.lexed(file)?;
        let text = &self.sources.file(file).text;
        let scan = Scan::of(file, text, lexed, offset)?;
        let mut list = List {
            analysis: self,
            library,
            namespace: self.namespace_of(file)?,
            scan: &scan,
            items: Vec::new(),
        };
        list.fill();
        Some(Completion {
            replaced: scan.replaced,
            is_module: scan.wanted() == Wanted::Import && scan.qualifier.is_none(),
            items: list.items,
        })
    }

    /// All types of a namespace itself: entities, typedefs, implementations and functions, by their names without it.
    pub fn each_of(
        &self,
        namespace: NamespaceId,
        library: &Library,
        visit: &mut dyn FnMut(&str, Sort, Target),
    ) {
        let model = &self.model;
        let short = |name: &str| name.rsplit("::").next().unwrap_or_default().to_owned();
        for (at, entity) in model.entities.iter().enumerate() {
            if entity.namespace == namespace {
                let id = EntityId(at as u32);
                visit(&short(&entity.name), Sort::Entity, Target::Entity(id));
            }
        }
        for (at, typedef) in model.typedefs.iter().enumerate() {
            if typedef.namespace == namespace {
                let id = TypedefId(at as u32);
                visit(&short(&typedef.name), Sort::Type, Target::Typedef(id));
            }
        }
        for (at, implementation) in model.implementations.iter().enumerate() {
            if implementation.namespace == namespace {
                let target = Target::Implementation(ImplementationId(at as u32));
                visit(&short(&implementation.name), Sort::Implementation, target);
            }
        }
        let of = &model.namespaces[namespace.index()];
        let own = FUNCTIONS.iter().enumerate();
        for (number, function) in own.filter(|(_, function)| *function.module == *of.name) {
            let whole = format!("{}::{}", of.name, function.name).into();
            let implementation = FunctionImplementation::Std(number as u16);
            visit(
                function.name,
                Sort::Function,
                Target::Function(whole, implementation),
            );
        }
        let plugins = model.plugins.as_ref().filter(|_| !of.name.contains("::"));
        for name in plugins.iter().flat_map(|plugins| plugins.names(&of.name)) {
            if let Some(function) = plugins.and_then(|plugins| plugins.function(&of.name, &name)) {
                let whole = format!("{}::{name}", of.name).into();
                let implementation = FunctionImplementation::Plugin(function);
                visit(&name, Sort::Function, Target::Function(whole, implementation));
            }
        }
        let with_inputs;
        let library = match &*of.name {
            // Where the function is that reads the inputs of the project.
            "setpoint" => {
                with_inputs = ports::with_inputs(library, &self.loaded.project, &BTreeMap::new());
                &with_inputs
            }
            _ => library,
        };
        let shared = library.functions.module(&project::library_module(&of.name));
        let shared = shared.filter(|_| of.has_library_functions).into_iter().flatten();
        for (name, function) in shared.filter(|(name, _)| !name.starts_with('_')) {
            let whole = format!("{}::{name}", of.name).into();
            let implementation = FunctionImplementation::Library(function.clone());
            visit(name, Sort::Function, Target::Function(whole, implementation));
        }
    }

    /// The function or entity whose arguments are around a place, and which argument the place is in, from 0.
    #[must_use]
    pub fn call_at(&self, file: FileId, offset: u32, library: &Library) -> Option<(Target, usize)> {
        let lexed = self.lexed(file)?;
        let text = &self.sources.file(file).text;
        let scan = Scan::of(file, text, lexed, offset)?;
        let bracket = scan.brackets.iter().rev().find(|bracket| bracket.is_call())?;
        let list = List {
            analysis: self,
            library,
            namespace: self.namespace_of(file)?,
            scan: &scan,
            items: Vec::new(),
        };
        let path = bracket.path.as_deref()?;
        Some((list.find(path)?, bracket.commas))
    }
}

struct List<'a> {
    analysis: &'a Analysis,
    library: &'a Library,
    namespace: NamespaceId,
    scan: &'a Scan<'a>,
    items: Vec<Item>,
}

impl List<'_> {
    fn fill(&mut self) {
        let scan = self.scan;
        if let Some(chain) = &scan.chain {
            if let Some(Shape::Instance(entity) | Shape::Instances(entity)) = self.shape(chain) {
                self.members(entity, &[], false);
            }
            return;
        }
        let wanted = scan.wanted();
        if let Some(prefix) = &scan.qualifier {
            return match wanted {
                Wanted::Import => self.imports(Some(prefix)),
                wanted => {
                    if let Some(of) = self.analysis.model.visible(self.namespace, prefix) {
                        self.names_of(of, wanted);
                        self.variables_of(of, wanted);
                    }
                }
            };
        }
        match wanted {
            Wanted::Nothing => {}
            Wanted::Import => self.imports(None),
            Wanted::Entity | Wanted::Type | Wanted::Implementation => self.types(wanted),
            Wanted::Value => {
                if let Some((entity, present)) =
                    scan.brackets.last().and_then(|bracket| self.keywords(bracket))
                {
                    self.members(entity, &present, true);
                }
                if scan.is_index() {
                    return;
                }
                self.variables();
                self.types(Wanted::Value);
                for word in VALUES {
                    self.word(word, None);
                }
            }
            Wanted::Statement => {
                self.variables();
                for (word, snippet) in STATEMENTS {
                    self.word(word, Some(snippet));
                }
                match scan.scopes.is_empty() {
                    true => DEFINITIONS
                        .iter()
                        .for_each(|(word, snippet)| self.word(word, Some(snippet))),
                    false => self.word("end", None),
                }
                self.types(Wanted::Value);
            }
        }
    }

    fn word(&mut self, word: &str, snippet: Option<&str>) {
        self.items.push(Item {
            label: word.to_owned(),
            sort: Sort::Keyword,
            target: None,
            snippet: snippet.map(str::to_owned),
        });
    }

    fn push(&mut self, label: &str, sort: Sort, target: Target, snippet: Option<String>) {
        if self
            .items
            .iter()
            .all(|item| item.label != label || item.sort != sort)
        {
            self.items.push(Item {
                label: label.to_owned(),
                sort,
                target: Some(target),
                snippet,
            });
        }
    }

    /// The members of an entity that are not there yet.
    fn members(&mut self, entity: EntityId, present: &[String], as_keywords: bool) {
        let analysis = self.analysis;
        let of = &analysis.model.entities[entity.index()];
        // What the entity declares itself before what it inherits.
        let mut members: Vec<_> = of.members.iter().collect();
        members.sort_by_key(|member| match &member.kind {
            MemberKind::Attribute { .. } => !analysis.declares(entity, member.name),
            MemberKind::Relation(id) => analysis.model.relations[id.index()].owner != entity,
        });
        for member in members {
            let name = analysis.text_of(member.name);
            if present.iter().any(|known| known == name) {
                continue;
            }
            let sort = match member.kind {
                MemberKind::Attribute { .. } => Sort::Attribute,
                MemberKind::Relation(_) => Sort::Relation,
            };
            let snippet = as_keywords.then(|| format!("{name}=$1"));
            let snippet = snippet.filter(|_| !self.scan.is_index());
            self.push(name, sort, Target::Member(entity, member.name), snippet);
        }
    }

    /// The entity whose members the arguments in a bracket name, with those that are given.
    fn keywords(&self, bracket: &Bracket) -> Option<(EntityId, Vec<String>)> {
        if !self.scan.begins_argument() {
            return None;
        }
        let entity = match &bracket.chain {
            Some(chain) => match self.shape(chain)? {
                Shape::Instances(entity) | Shape::Instance(entity) => entity,
                Shape::Value(_) => return None,
            },
            None => match self.find(bracket.path.as_deref()?)? {
                Target::Entity(entity) => entity,
                _ => return None,
            },
        };
        Some((entity, bracket.keywords.clone()))
    }

    /// What a variable and attributes of it hold.
    fn shape(&self, chain: &[String]) -> Option<Shape> {
        let (first, rest) = chain.split_first()?;
        let mut shape = self.variable(first)?;
        for name in rest {
            let Shape::Instance(entity) = shape else {
                return None;
            };
            shape = shapes::of_member(&self.analysis.model, entity, self.analysis.symbol(name)?)?;
        }
        Some(shape)
    }

    fn variable(&self, path: &str) -> Option<Shape> {
        let analysis = self.analysis;
        if let Some((prefix, name)) = path.rsplit_once("::") {
            let namespace = analysis.model.visible(self.namespace, prefix)?;
            return self.variable_of(namespace, name);
        }
        for scope in self.scan.scopes.iter().rev() {
            if let Some((_, declared)) = scope.variables.iter().find(|(known, _)| known == path) {
                return analysis.shape_of(*declared);
            }
        }
        if let Some(entity) = self.instance() {
            if path == "self" {
                return Some(Shape::Instance(entity));
            }
            let symbol = analysis.symbol(path);
            let member = symbol.and_then(|symbol| shapes::of_member(&analysis.model, entity, symbol));
            if member.is_some() {
                return member;
            }
        }
        self.variable_of(self.namespace, path)
    }

    fn variable_of(&self, namespace: NamespaceId, name: &str) -> Option<Shape> {
        let analysis = self.analysis;
        let mut variables = analysis.model.namespaces[namespace.index()].body.variables.iter();
        let found = variables.find(|variable| analysis.text_of(variable.name) == name)?;
        analysis.shape_of(found.span)
    }

    /// The entity of `self` at the place.
    fn instance(&self) -> Option<EntityId> {
        let of = self
            .scan
            .scopes
            .iter()
            .find_map(|scope: &Scope| scope.entity.as_deref());
        match self.find(of.or(self.scan.condition_of.as_deref())?)? {
            Target::Entity(entity) => Some(entity),
            _ => None,
        }
    }

    /// The type of a name, as it is found at the place.
    fn find(&self, path: &str) -> Option<Target> {
        let model = &self.analysis.model;
        if let Some((prefix, name)) = path.rsplit_once("::") {
            return self.own(model.visible(self.namespace, prefix)?, name);
        }
        let mut at = Some(self.namespace);
        while let Some(namespace) = at {
            if let Some(found) = self.own(namespace, path) {
                return Some(found);
            }
            at = model.namespaces[namespace.index()].parent;
        }
        self.own(self.analysis.namespace("std")?, path)
    }

    fn own(&self, namespace: NamespaceId, name: &str) -> Option<Target> {
        let mut found = None;
        self.analysis
            .each_of(namespace, self.library, &mut |label, _, target| {
                if label == name && found.is_none() {
                    found = Some(target);
                }
            });
        found
    }

    fn names_of(&mut self, namespace: NamespaceId, wanted: Wanted) {
        let mut found = Vec::new();
        self.analysis
            .each_of(namespace, self.library, &mut |label, sort, target| {
                let is_wanted = matches!(
                    (wanted, sort),
                    (Wanted::Entity | Wanted::Value | Wanted::Statement, Sort::Entity)
                        | (Wanted::Type, Sort::Type)
                        | (Wanted::Implementation, Sort::Implementation)
                        | (Wanted::Value | Wanted::Statement, Sort::Function)
                );
                if is_wanted {
                    found.push((label.to_owned(), sort, target));
                }
            });
        for (label, sort, target) in found {
            let snippet = match (wanted, sort) {
                (Wanted::Value | Wanted::Statement, Sort::Entity | Sort::Function) => {
                    Some(format!("{label}($1)"))
                }
                _ => None,
            };
            self.push(&label, sort, target, snippet);
        }
    }

    /// Types as they are found without a namespace, and namespaces.
    fn types(&mut self, wanted: Wanted) {
        let mut at = Some(self.namespace);
        while let Some(namespace) = at {
            self.names_of(namespace, wanted);
            at = self.analysis.model.namespaces[namespace.index()].parent;
        }
        if let Some(std) = self.analysis.namespace("std") {
            self.names_of(std, wanted);
        }
        for (name, base) in BaseType::PRIMITIVES {
            match wanted {
                Wanted::Type => self.push(name, Sort::Type, Target::Primitive(base), None),
                Wanted::Value if !matches!(base, BaseType::List | BaseType::Dict) => {
                    self.push(
                        name,
                        Sort::Type,
                        Target::Primitive(base),
                        Some(format!("{name}($1)")),
                    );
                }
                _ => {}
            }
        }
        if wanted == Wanted::Implementation {
            self.word("parents", None);
        }
        let imports = &self.analysis.model.namespaces[self.namespace.index()].imports;
        let mut imports: Vec<_> = imports.iter().collect();
        imports.sort();
        for (name, namespace) in imports {
            let target = Target::Namespace(*namespace);
            self.push(name, Sort::Namespace, target, Some(format!("{name}::")));
        }
    }

    /// Variables that are visible at the place, the nearest first.
    fn variables(&mut self) {
        let scan = self.scan;
        if scan.is_in_typedef {
            return self.word("self", None);
        }
        for scope in scan.scopes.iter().rev() {
            for (name, declared) in &scope.variables {
                self.push(name, Sort::Variable, Target::Variable(*declared), None);
            }
        }
        if let Some(entity) = self.instance() {
            self.push("self", Sort::Variable, Target::Instance(entity), None);
            self.members(entity, &[], false);
        }
        self.variables_of(self.namespace, Wanted::Value);
    }

    fn variables_of(&mut self, namespace: NamespaceId, wanted: Wanted) {
        if !matches!(wanted, Wanted::Value | Wanted::Statement) {
            return;
        }
        let analysis = self.analysis;
        for variable in &analysis.model.namespaces[namespace.index()].body.variables {
            let name = analysis.text_of(variable.name);
            // What is being written is no help.
            if variable.span != self.scan.replaced {
                self.push(name, Sort::Variable, Target::Variable(variable.span), None);
            }
        }
    }

    /// Namespaces that can be imported.
    fn imports(&mut self, prefix: Option<&str>) {
        let model = &self.analysis.model;
        let mut names: Vec<String> = model.namespaces.iter().map(|of| of.name.to_string()).collect();
        names.extend(project::built_in_namespaces(self.library));
        let modules = self.library.functions.module_names();
        names.extend(modules.map(|module| module.replace('/', "::")));
        names.retain(|name| name != project::MAIN && !name.is_empty());
        names.sort();
        names.dedup();
        let before = prefix.map_or(String::new(), |prefix| format!("{prefix}::"));
        for name in names {
            let Some(rest) = name.strip_prefix(&before) else {
                continue;
            };
            self.items.push(Item {
                label: rest.to_owned(),
                sort: Sort::Namespace,
                target: self.analysis.namespace(&name).map(Target::Namespace),
                snippet: None,
            });
        }
    }
}

impl Scan<'_> {
    /// Whether the members of an index are named here.
    fn is_index(&self) -> bool {
        self.brackets.last().is_some_and(|bracket| bracket.is_index)
    }

    /// Whether an argument can begin here.
    fn begins_argument(&self) -> bool {
        matches!(
            self.before(0),
            Some(K::LeftParenthesis | K::LeftBracket | K::Comma)
        )
    }
}
