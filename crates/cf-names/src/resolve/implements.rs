//! The sixth step: which implementations an entity uses, and when.

use std::sync::Arc;

use setpoint_cf_syntax::ast::{self, Using};
use setpoint_diagnostics::Diagnostic;

use super::names::Definition;
use super::{Resolver, codes};
use crate::hir::Implement;
use crate::ids::{EntityId, ImplementationId, NamespaceId};

/// An `implement` statement whose condition is not resolved yet.
pub(super) struct Written<'a> {
    namespace: NamespaceId,
    entity: EntityId,
    using: Vec<ImplementationId>,
    parents: bool,
    tree: &'a ast::Implement,
}

impl<'a> Resolver<'a> {
    pub(super) fn resolve_implements(&mut self) {
        for (namespace, item) in self.items() {
            if let ast::Item::Implement(tree) = item
                && let Some(written) = self.resolve_implement(namespace, tree)
            {
                self.implements.push(written);
            }
        }
    }

    fn resolve_implement(&mut self, namespace: NamespaceId, tree: &'a ast::Implement) -> Option<Written<'a>> {
        let entity = self.find_entity(namespace, &tree.entity)?;
        let mut using = Vec::new();
        let mut parents = false;
        for used in &tree.using {
            let path = match used {
                Using::Implementation(path) => path,
                Using::Parents(_) => {
                    parents = true;
                    continue;
                }
            };
            match self.find(namespace, path) {
                Ok(Definition::Implementation(id)) => {
                    if self.is_for(id, entity, path) {
                        using.push(id);
                    }
                }
                Ok(other) => self.wrong_sort(path, &other, "an implementation"),
                Err(error) => self.found.push(*error),
            }
        }
        Some(Written {
            namespace,
            entity,
            using,
            parents,
            tree,
        })
    }

    /// Whether an implementation is for the entity or one that it descends from; if not, that is told.
    fn is_for(&mut self, id: ImplementationId, entity: EntityId, path: &ast::Path) -> bool {
        let implementation = &self.model.implementations[id.index()];
        if self.model.is_below(entity, implementation.entity) {
            return true;
        }
        let message = format!(
            "`{}` is an implementation for `{}`, from which `{}` does not descend",
            implementation.name,
            self.entity(implementation.entity).name,
            self.entity(entity).name
        );
        let error = Diagnostic::error(&codes::WRONG_SORT, path.span, message);
        let error = error.of_class("TypingException").label("for another entity");
        self.found.push(match implementation.span {
            Some(place) => error.because(place, "defined here"),
            None => error,
        });
        false
    }

    /// Resolves conditions, and gives each entity what it uses: its own first, then what it takes from its parents.
    pub(super) fn resolve_conditions(&mut self) {
        let mut own: Vec<(Vec<Arc<Implement>>, bool)> = vec![(Vec::new(), false); self.model.entities.len()];
        for written in std::mem::take(&mut self.implements) {
            let condition = written.tree.condition.as_ref();
            let condition =
                condition.map(|tree| self.resolve_condition(written.namespace, written.entity, tree));
            let (implements, parents) = &mut own[written.entity.index()];
            *parents |= written.parents;
            if !written.using.is_empty() {
                implements.push(Arc::new(Implement {
                    namespace: written.namespace,
                    using: written.using,
                    condition,
                    span: Some(written.tree.span),
                }));
            }
        }
        let none = self.names.namespace("std").and_then(|_| {
            let mut implementations = self.model.implementations.iter();
            let at = implementations.position(|implementation| &*implementation.name == "std::none")?;
            Some(ImplementationId(at as u32))
        });
        for at in 0..self.parents_first.len() {
            let entity = self.parents_first[at];
            let (mut implements, parents) = std::mem::take(&mut own[entity.index()]);
            if let (Some(none), Some(_)) = (none, self.entity(entity).kind) {
                implements.push(Arc::new(Implement {
                    namespace: self.entity(entity).namespace,
                    using: vec![none],
                    condition: None,
                    span: None,
                }));
            }
            if parents {
                for parent in &self.entity(entity).parents {
                    let inherited = self.entity(*parent).implements.iter();
                    let new = inherited.filter(|new| !implements.iter().any(|known| Arc::ptr_eq(known, new)));
                    let new: Vec<_> = new.cloned().collect();
                    implements.extend(new);
                }
            }
            self.model.entities[entity.index()].implements = implements;
        }
    }
}
