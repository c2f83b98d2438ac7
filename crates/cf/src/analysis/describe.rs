//! What is told about the things that have names, as data: editors show it beside a name, and the reference is made of it.

use std::fmt::Write;
use std::sync::Arc;

use setpoint_cf_functions::std::{FUNCTIONS, StdFunction};
use setpoint_cf_names::hir::{FunctionImplementation, Member, MemberKind};
use setpoint_cf_names::ids::{EntityId, NamespaceId, RelationId, Symbol};
use setpoint_cf_names::kinds::parameter_of;
use setpoint_cf_names::project::MAIN;
use setpoint_cf_names::types::{AttributeType, BaseType};
use setpoint_cf_syntax::ast::{self, Multiplicity};
use setpoint_diagnostics::Span;

use super::{Analysis, Shape, Target};

/// What is told about something.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Description {
    /// As the language would write it, without its body.
    pub code: String,
    /// Its documentation.
    pub doc: String,
    /// What it has.
    pub sections: Vec<Section>,
}

/// A part of what something has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// What sort of things.
    pub title: &'static str,
    /// Each as the language would write it, with its documentation, which may be empty.
    pub entries: Vec<(String, String)>,
}

impl Description {
    fn new(code: impl Into<String>, doc: impl Into<String>) -> Description {
        Description {
            code: code.into(),
            doc: doc.into(),
            sections: Vec::new(),
        }
    }

    fn with(mut self, title: &'static str, entries: Vec<(String, String)>) -> Description {
        if !entries.is_empty() {
            self.sections.push(Section { title, entries });
        }
        self
    }
}

/// The name of something of the main file is shown without the namespace that nobody writes.
#[must_use]
pub fn shown(name: &str) -> &str {
    let own = name.strip_prefix(MAIN).and_then(|rest| rest.strip_prefix("::"));
    own.unwrap_or(name)
}

/// A function of `std`.
#[must_use]
pub fn std_function(function: &StdFunction) -> Description {
    let mut doc = function.doc.to_owned();
    match function.deprecated {
        Some("") => doc.push_str("\nDeprecated."),
        Some(instead) => {
            let _ = write!(doc, "\nDeprecated: use {instead}.");
        }
        None => {}
    }
    Description::new(format!("{}::{}", function.module, function.signature()), doc)
}

impl Analysis {
    /// What is told about something; none for functions of the shared library, which describe themselves.
    #[must_use]
    pub fn describe(&self, target: &Target) -> Option<Description> {
        Some(match target {
            Target::Primitive(base) => Description::new(self.base_text(*base), primitive_doc(*base)?),
            Target::Entity(id) => self.describe_entity(*id),
            Target::Typedef(id) => {
                let typedef = &self.model.typedefs[id.index()];
                let written = typedef.span.and_then(|span| self.written(span));
                let code = written.unwrap_or_else(|| {
                    format!("typedef {} as {}", typedef.name, self.base_text(typedef.base))
                });
                Description::new(code, text(&typedef.doc))
            }
            Target::Implementation(id) => {
                let of = &self.model.implementations[id.index()];
                let entity = self.entity_name(of.entity);
                let code = format!("implementation {} for {entity}", shown(&of.name));
                Description::new(code, text(&of.doc))
            }
            Target::Function(name, implementation) => match implementation {
                FunctionImplementation::Std(number) => std_function(FUNCTIONS.get(usize::from(*number))?),
                FunctionImplementation::Plugin(_) => {
                    Description::new(format!("{name}(…)"), "A function in Python of its module.")
                }
                // It is made for each project, so no reference of the shared library has it.
                FunctionImplementation::Library(function) if **name == *"setpoint::input" => {
                    Description::new(format!("{name}(name: string) -> any"), &*function.doc)
                }
                FunctionImplementation::Library(_) => return None,
            },
            Target::Namespace(id) | Target::Alias(_, id) => self.describe_namespace(*id),
            Target::Variable(declared) => {
                let name = self.text_at(*declared);
                let code = match self.shape_of(*declared) {
                    Some(shape) => format!("{name}: {}", self.shape_text(shape)),
                    None => name.to_owned(),
                };
                Description::new(code, "")
            }
            Target::Member(entity, symbol) => {
                let (code, doc) = self.member_entry(*entity, self.member(*entity, *symbol)?);
                Description::new(code, doc)
            }
            Target::Instance(entity) => Description::new(
                format!("self: {}", self.entity_name(*entity)),
                self.doc_of(*entity),
            ),
            Target::Value(id) => {
                let typedef = &self.model.typedefs[id.index()];
                let code = format!("self: {}", self.base_text(typedef.base));
                Description::new(code, "The value that is judged.")
            }
        })
    }

    fn describe_entity(&self, id: EntityId) -> Description {
        let entity = &self.model.entities[id.index()];
        let parents: Vec<&str> = entity
            .parents
            .iter()
            .map(|parent| self.entity_name(*parent))
            .collect();
        let extends = match parents.as_slice() {
            [] | ["std::Entity"] => String::new(),
            parents => format!(" extends {}", parents.join(", ")),
        };
        let code = format!("entity {}{extends}", shown(&entity.name));
        let (mut attributes, mut relations) = (Vec::new(), Vec::new());
        for member in &entity.members {
            match &member.kind {
                MemberKind::Attribute { .. } => attributes.push(self.member_entry(id, member)),
                // Every entity has these two.
                MemberKind::Relation(relation)
                    if self.model.relations[relation.index()].owner == EntityId(0) => {}
                MemberKind::Relation(_) => relations.push(self.member_entry(id, member)),
            }
        }
        let indexes = entity.indexes.iter().map(|index| {
            let members = self.model.indexes[index.index()].members.iter();
            let members: Vec<&str> = members.map(|symbol| self.text_of(*symbol)).collect();
            let name = self.entity_name(self.model.indexes[index.index()].entity);
            (format!("index {name}({})", members.join(", ")), String::new())
        });
        let implements = entity.implements.iter().map(|used| {
            let names = used.using.iter();
            let names: Vec<&str> = names
                .map(|id| shown(&self.model.implementations[id.index()].name))
                .collect();
            let condition = used.condition.as_ref();
            let condition =
                condition.map_or(String::new(), |when| format!(" when {}", self.text_at(when.span)));
            (format!("using {}{condition}", names.join(", ")), String::new())
        });
        Description::new(code, self.doc_of(id))
            .with("Attributes", attributes)
            .with("Relations", relations)
            .with("Indexes", indexes.collect())
            .with("Implementations", implements.collect())
    }

    fn describe_namespace(&self, id: NamespaceId) -> Description {
        let name = &self.model.namespaces[id.index()].name;
        let doc = self.loaded.files[id.index()].tree.doc.as_ref();
        let doc = doc.map_or("", |doc| &*doc.text).trim();
        let code = match &**name {
            MAIN => "the main file".to_owned(),
            name => format!("import {name}"),
        };
        Description::new(code, doc)
    }

    /// An attribute or relation as it is declared, and its documentation.
    #[must_use]
    pub fn member_entry(&self, entity: EntityId, member: &Member) -> (String, String) {
        let name = self.text_of(member.name);
        match &member.kind {
            MemberKind::Attribute { ty, default, .. } => {
                let default = default.as_ref().map(|default| self.text_at(default.span));
                let default = default.filter(|text| !text.is_empty());
                let default = default.map_or(String::new(), |text| format!(" = {text}"));
                let doc = self.parameter_doc(entity, name).unwrap_or_default();
                (format!("{} {name}{default}", self.type_text(*ty)), doc.to_owned())
            }
            MemberKind::Relation(relation) => {
                let of = &self.model.relations[relation.index()];
                (self.relation_text(*relation), text(&of.doc).to_owned())
            }
        }
    }

    /// The documentation of the parameter of a kind that an attribute stands for.
    fn parameter_doc(&self, entity: EntityId, name: &str) -> Option<&'static str> {
        let of = &self.model.entities[entity.index()];
        let above = of.ancestors.iter().map(|id| &self.model.entities[id.index()]);
        let mut kinds = std::iter::once(of).chain(above).filter_map(|entity| entity.kind);
        kinds.find_map(|schema| Some(parameter_of(schema, name)?.doc.trim()))
    }

    /// `Host.files [0:] -- File.host [1]`.
    #[must_use]
    pub fn relation_text(&self, id: RelationId) -> String {
        let relation = &self.model.relations[id.index()];
        let end = |id: RelationId| {
            let of = &self.model.relations[id.index()];
            let (owner, name) = (self.entity_name(of.owner), self.text_of(of.name));
            format!("{owner}.{name} {}", multiplicity(of.multiplicity))
        };
        let other = match relation.inverse {
            Some(inverse) => end(inverse),
            None => self.entity_name(relation.target).to_owned(),
        };
        format!("{} -- {other}", end(id))
    }

    /// The name of an entity.
    #[must_use]
    pub fn entity_name(&self, id: EntityId) -> &str {
        shown(&self.model.entities[id.index()].name)
    }

    fn doc_of(&self, id: EntityId) -> &str {
        text(&self.model.entities[id.index()].doc)
    }

    /// The text of a name.
    #[must_use]
    pub fn text_of(&self, symbol: Symbol) -> &str {
        self.model.text(symbol)
    }

    /// What something holds, as it is written.
    #[must_use]
    pub fn shape_text(&self, shape: Shape) -> String {
        match shape {
            Shape::Instance(entity) => self.entity_name(entity).to_owned(),
            Shape::Instances(entity) => format!("{}[]", self.entity_name(entity)),
            Shape::Value(ty) => self.type_text(ty),
        }
    }

    fn type_text(&self, ty: AttributeType) -> String {
        let list = if ty.list { "[]" } else { "" };
        let nullable = if ty.nullable { "?" } else { "" };
        format!("{}{list}{nullable}", self.base_text(ty.base))
    }

    fn base_text(&self, base: BaseType) -> &str {
        base.written(|id| shown(&self.model.typedefs[id.index()].name))
    }

    /// A typedef as it is written, on one line.
    fn written(&self, name: Span) -> Option<String> {
        let items = &self.tree(name.file)?.items;
        let typedef = items.iter().find_map(|item| match item {
            ast::Item::Typedef(typedef) if typedef.name.span == name => Some(typedef),
            _ => None,
        })?;
        let end = typedef
            .doc
            .as_ref()
            .map_or(typedef.span.end, |doc| doc.span.start);
        let code = self.text_at(Span::new(name.file, typedef.span.start, end));
        Some(code.split_whitespace().collect::<Vec<_>>().join(" "))
    }
}

fn text(doc: &Option<Arc<str>>) -> &str {
    doc.as_deref().unwrap_or_default().trim()
}

fn multiplicity(multiplicity: Multiplicity) -> String {
    match (multiplicity.low, multiplicity.high) {
        (low, Some(high)) if low == high => format!("[{low}]"),
        (low, Some(high)) => format!("[{low}:{high}]"),
        (low, None) => format!("[{low}:]"),
    }
}

/// What a type without a definition holds; none for a typedef.
fn primitive_doc(base: BaseType) -> Option<&'static str> {
    Some(match base {
        BaseType::String => "A text. As a function: the text of a value.",
        BaseType::Int => {
            "A whole number of 64 bits; `true` and `false` count too. As a function: a value as a whole number."
        }
        BaseType::Float => "A number with a point. As a function: a value as such a number.",
        BaseType::Number => "A number, with or without a point. Deprecated: use `int` or `float`.",
        BaseType::Bool => "`true` or `false`. As a function: whether a value is neither empty nor zero.",
        BaseType::List => "A list of values, without instances.",
        BaseType::Dict => "A dict of values, without instances, whose keys are texts.",
        BaseType::Typedef(_) => return None,
    })
}
