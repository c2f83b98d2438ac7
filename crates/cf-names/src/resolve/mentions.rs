//! Which name in which text means what. Noted on the way, for those who ask afterwards: editors and the linter. Who only executes a model
//! does not pay for it.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use setpoint_cf_syntax::ast;
use setpoint_diagnostics::Span;

use super::Resolver;
use super::names::Definition;
use crate::hir::FunctionImplementation;
use crate::ids::{EntityId, ImplementationId, NamespaceId, Symbol, TypedefId};
use crate::types::BaseType;

/// What a name means.
#[derive(Debug, Clone)]
pub enum Target {
    /// A type without a definition.
    Primitive(BaseType),
    /// An entity.
    Entity(EntityId),
    /// A typedef.
    Typedef(TypedefId),
    /// An implementation.
    Implementation(ImplementationId),
    /// A function, by its whole name.
    Function(Arc<str>, FunctionImplementation),
    /// A namespace.
    Namespace(NamespaceId),
    /// A namespace under the name that an import gives it, which stands here.
    Alias(Span, NamespaceId),
    /// The variable that is declared here.
    Variable(Span),
    /// An attribute or relation of an entity.
    Member(EntityId, Symbol),
    /// `self`, an instance of this.
    Instance(EntityId),
    /// `self` in a typedef.
    Value(TypedefId),
}

/// A name in a text.
pub type Mention = setpoint_diagnostics::Name<Target>;

/// Everything that is noted.
#[derive(Debug, Default)]
pub struct Mentions {
    /// Names, in no order; some twice.
    pub list: Vec<Mention>,
    /// Imports, as whole statements, that some name needs.
    pub used_imports: FxHashSet<Span>,
    /// Variables of comprehensions, by the expressions that they go through.
    pub loop_variables: FxHashMap<Span, Span>,
    /// The relations of selector lookups, by the expressions before them.
    pub selected: FxHashMap<Span, Span>,
    /// Members that constructors are given by position: the value with the entity and the member.
    pub positional: Vec<(Span, EntityId, Symbol)>,
    /// For each entity the attributes that it declares itself.
    pub declared: Vec<Vec<Symbol>>,
}

impl Resolver<'_> {
    pub(super) fn mention(&mut self, span: Span, target: Target) {
        self.note(span, target, false);
    }

    pub(super) fn mention_definition(&mut self, span: Span, target: Target) {
        self.note(span, target, true);
    }

    fn note(&mut self, span: Span, target: Target, is_definition: bool) {
        if let Some(mentions) = &mut self.mentions
            && span.start < span.end
        {
            mentions.list.push(Mention {
                span,
                target,
                is_definition,
            });
        }
    }

    /// A variable; where it is declared is its definition.
    pub(super) fn note_variable(&mut self, span: Span, declared: Span) {
        self.note(span, Target::Variable(declared), span == declared);
    }

    /// The members of an entity that keywords name.
    pub(super) fn mention_keywords(&mut self, entity: EntityId, keywords: &super::expressions::Keywords) {
        for (symbol, span, _) in keywords {
            if self.entity(entity).member(*symbol).is_some() {
                self.mention(*span, Target::Member(entity, *symbol));
            }
        }
    }

    /// The name of a type, and the namespaces before it.
    pub(super) fn mention_type(&mut self, namespace: NamespaceId, path: &ast::Path, found: &Definition) {
        if self.mentions.is_none() {
            return;
        }
        self.mention_prefix(namespace, path);
        let target = match found {
            Definition::Primitive(base) => Target::Primitive(*base),
            Definition::Entity(id) => Target::Entity(*id),
            Definition::Typedef(id) => Target::Typedef(*id),
            Definition::Implementation(id) => Target::Implementation(*id),
            Definition::Function(name, implementation) => {
                Target::Function(name.clone(), implementation.clone())
            }
        };
        self.mention(path.name.span, target);
    }

    /// The namespaces before a name.
    pub(super) fn mention_prefix(&mut self, namespace: NamespaceId, path: &ast::Path) {
        let (Some(first), Some(last)) = (path.namespace.first(), path.namespace.last()) else {
            return;
        };
        if self.mentions.is_none() {
            return;
        }
        let span = first.span.to(last.span);
        let Some((target, import)) = self.names.prefix_of(namespace, path) else {
            return;
        };
        let alias = import.and_then(|import| self.aliases.get(&import).copied());
        if let (Some(mentions), Some(import)) = (&mut self.mentions, import) {
            mentions.used_imports.insert(import);
        }
        self.mention(
            span,
            match alias {
                Some(alias) => Target::Alias(alias, target),
                None => Target::Namespace(target),
            },
        );
    }

    /// The parts of an import, and the name that it gives.
    pub(super) fn mention_import(&mut self, import: &ast::Import, target: NamespaceId) {
        if self.mentions.is_none() {
            return;
        }
        let mut whole = String::new();
        let parts = import.path.namespace.iter().chain([&import.path.name]);
        for part in parts {
            if !whole.is_empty() {
                whole.push_str("::");
            }
            whole.push_str(&part.text);
            if let Some(of) = self.names.namespace(&whole) {
                self.mention(part.span, Target::Namespace(of));
            }
        }
        if let Some(alias) = &import.alias {
            self.aliases.insert(import.span, alias.span);
            self.mention_definition(alias.span, Target::Alias(alias.span, target));
        }
    }
}
