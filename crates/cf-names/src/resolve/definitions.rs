//! The first step: what each namespace defines and imports.

use std::sync::Arc;

use setpoint_cf_syntax::ast::{self, Literal, StatementKind};
use setpoint_diagnostics::Diagnostic;

use super::mentions::Target;
use super::names::Definition;
use super::{Resolver, codes};
use crate::hir::{Block, Constraint, Entity, Expression, ExpressionKind, Implementation, Typedef, Variable};
use crate::ids::{EntityId, ImplementationId, NamespaceId, TypedefId};
use crate::kinds;
use crate::project::full_name;
use crate::types::BaseType;

impl<'a> Resolver<'a> {
    pub(super) fn register(&mut self) {
        let root = self.register_root();
        for (namespace, item) in self.items() {
            match item {
                ast::Item::Import(import) => self.register_import(namespace, import),
                ast::Item::Entity(entity) => {
                    if root.is_none_or(|root| !std::ptr::eq(root, entity)) {
                        self.register_entity(namespace, entity);
                    }
                }
                ast::Item::Typedef(typedef) => self.register_typedef(namespace, typedef),
                ast::Item::Implementation(implementation) => {
                    self.register_implementation(namespace, implementation);
                }
                ast::Item::Statement(statement) => self.declare_variable(namespace, statement),
                ast::Item::Relation(_) | ast::Item::Index(_) | ast::Item::Implement(_) => {}
            }
        }
        self.register_kinds();
    }

    /// `std::Entity` is the first entity, wherever the file stands.
    fn register_root(&mut self) -> Option<&'a ast::Entity> {
        let std = self.names.namespace("std");
        let root = self.items().find_map(|(namespace, item)| match item {
            ast::Item::Entity(entity) if Some(namespace) == std && &*entity.name.text == "Entity" => {
                Some(entity)
            }
            _ => None,
        });
        match (std, root) {
            (Some(std), Some(root)) => self.register_entity(std, root),
            _ => {
                self.new_entity(NamespaceId(0), "std::Entity".into(), None, None);
            }
        }
        root
    }

    fn register_import(&mut self, namespace: NamespaceId, import: &ast::Import) {
        let name = full_name(&import.path);
        let Some(target) = self.names.namespace(&name) else {
            return;
        };
        let visible = import
            .alias
            .as_ref()
            .map_or_else(|| name.into(), |alias| alias.text.clone());
        self.mention_import(import, target);
        let Some(earlier) = self.names.import(namespace, visible.clone(), target, import.span) else {
            return;
        };
        let message = format!("two imports have the name `{visible}`");
        let error = Diagnostic::error(&codes::DUPLICATE_IMPORT, import.span, message)
            .of_class("DuplicateException")
            .label("the second one")
            .because(earlier, "the first one")
            .help("`as` gives an import another name");
        self.found.push(error);
    }

    fn register_entity(&mut self, namespace: NamespaceId, entity: &'a ast::Entity) {
        let id = EntityId(self.model.entities.len() as u32);
        if self.define(namespace, &entity.name, Definition::Entity(id), "entity") {
            self.mention_definition(entity.name.span, Target::Entity(id));
            let name = self.qualified(namespace, &entity.name.text);
            self.new_entity(
                namespace,
                name,
                Some(entity),
                entity.doc.as_ref().map(|doc| doc.text.clone()),
            );
        }
    }

    pub(super) fn new_entity(
        &mut self,
        namespace: NamespaceId,
        name: Arc<str>,
        tree: Option<&'a ast::Entity>,
        doc: Option<Arc<str>>,
    ) -> EntityId {
        let id = EntityId(self.model.entities.len() as u32);
        let short = name.rsplit_once("::").map_or(&*name, |(_, short)| short);
        self.short_names.entry(short.into()).or_default().push(id);
        self.model.entities.push(Entity {
            name,
            namespace,
            span: tree.map(|tree| tree.name.span),
            parents: Vec::new(),
            ancestors: Vec::new(),
            descendants: Vec::new(),
            members: Vec::new(),
            by_name: rustc_hash::FxHashMap::default(),
            indexes: Vec::new(),
            implements: Vec::new(),
            kind: None,
            doc,
        });
        self.entities.push(tree);
        self.declared.push(Vec::new());
        self.own_relations.push(Vec::new());
        id
    }

    fn register_typedef(&mut self, namespace: NamespaceId, typedef: &'a ast::Typedef) {
        if BaseType::primitive(&typedef.name.text).is_some() {
            let message = format!(
                "typedef `{}` has the name of a built-in type, which hides it",
                typedef.name.text
            );
            let warning = Diagnostic::warning(&codes::BUILTIN_NAME, typedef.name.span, message);
            self.found.push(
                warning
                    .of_class("CompilerRuntimeWarning")
                    .label("never found under this name"),
            );
        }
        let id = TypedefId(self.model.typedefs.len() as u32);
        if !self.define(namespace, &typedef.name, Definition::Typedef(id), "typedef") {
            return;
        }
        self.mention_definition(typedef.name.span, Target::Typedef(id));
        let name = self.qualified(namespace, &typedef.name.text);
        self.model.typedefs.push(Typedef {
            name,
            namespace,
            span: Some(typedef.name.span),
            base: BaseType::String,
            constraint: Constraint::Expression(Expression {
                kind: ExpressionKind::Literal(Literal::Bool(true)),
                span: typedef.span,
            }),
            doc: typedef.doc.as_ref().map(|doc| doc.text.clone()),
        });
        self.typedefs.push(typedef);
    }

    fn register_implementation(&mut self, namespace: NamespaceId, implementation: &'a ast::Implementation) {
        let id = ImplementationId(self.model.implementations.len() as u32);
        let definition = Definition::Implementation(id);
        if !self.define(namespace, &implementation.name, definition, "implementation") {
            return;
        }
        self.mention_definition(implementation.name.span, Target::Implementation(id));
        let name = self.qualified(namespace, &implementation.name.text);
        self.model.implementations.push(Implementation {
            name,
            namespace,
            entity: EntityId(0),
            span: Some(implementation.name.span),
            body: Block::default(),
            doc: implementation.doc.as_ref().map(|doc| doc.text.clone()),
        });
        self.implementations.push(implementation);
    }

    /// A variable is declared by each assignment to it; the first one counts as its place.
    fn declare_variable(&mut self, namespace: NamespaceId, statement: &ast::Statement) {
        let StatementKind::Assign(assignment) = &statement.kind else {
            return;
        };
        let target = &assignment.target;
        if !target.attributes.is_empty() || !target.variable.namespace.is_empty() {
            return;
        }
        let name = &target.variable.name;
        if self.names.variable(namespace, &name.text).is_some() {
            return;
        }
        let symbol = self.symbol(&name.text);
        let variables = &mut self.model.namespaces[namespace.index()].body.variables;
        let index = variables.len() as u32;
        variables.push(Variable {
            name: symbol,
            span: name.span,
        });
        self.names.declare(namespace, name.text.clone(), index);
    }

    fn register_kinds(&mut self) {
        let library = self.library;
        for schema in library.kinds.values() {
            let (namespace, name) = kinds::entity_of(schema.kind);
            let Some(namespace) = self.names.namespace(&namespace) else {
                continue;
            };
            let id = EntityId(self.model.entities.len() as u32);
            let name: Arc<str> = name.into();
            // What the module itself defines goes before a kind of the same name.
            if self
                .names
                .define(namespace, &name, Definition::Entity(id), None)
                .is_none()
            {
                let whole = self.qualified(namespace, &name);
                self.new_entity(namespace, whole, None, Some(schema.doc.into()));
                self.model.entities[id.index()].kind = Some(schema);
            }
        }
    }

    /// Takes a name in a namespace. Answers whether it was free; if not, that has been told.
    fn define(
        &mut self,
        namespace: NamespaceId,
        name: &ast::Name,
        definition: Definition,
        sort: &str,
    ) -> bool {
        let Some((taken, place)) = self
            .names
            .define(namespace, &name.text, definition, Some(name.span))
        else {
            return true;
        };
        let space = self.names.name(namespace);
        let message = match taken {
            Definition::Function(..) => {
                format!("{sort} `{}` has the name of a function of `{space}`", name.text)
            }
            _ => format!(
                "`{}` is already defined in `{space}`, as {}",
                name.text,
                taken.sort()
            ),
        };
        let error = Diagnostic::error(&codes::DUPLICATE_TYPE, name.span, message)
            .of_class("DuplicateException")
            .label("defined again");
        self.found.push(match place {
            Some(place) => error.because(place, "defined here first"),
            None => error,
        });
        false
    }

    fn qualified(&self, namespace: NamespaceId, name: &str) -> Arc<str> {
        format!("{}::{name}", self.names.name(namespace)).into()
    }
}
