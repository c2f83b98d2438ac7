//! The fourth step: relations, and which entity each implementation is for.

use std::sync::Arc;

use setpoint_cf_syntax::ast::{self, Multiplicity};
use setpoint_diagnostics::{Diagnostic, Span};

use super::mentions::Target;
use super::{Resolver, codes};
use crate::hir::Relation;
use crate::ids::{EntityId, NamespaceId, RelationId, Symbol};

impl<'a> Resolver<'a> {
    pub(super) fn resolve_relations(&mut self) {
        let mut implementation = 0;
        for (namespace, item) in self.items() {
            match item {
                ast::Item::Relation(relation) => self.resolve_relation(namespace, relation),
                ast::Item::Implementation(tree) => {
                    let entity = self.find_entity(namespace, &tree.entity);
                    // A second one of the same name is not registered.
                    let registered = self.implementations.get(implementation);
                    if !registered.is_some_and(|known| std::ptr::eq(*known, tree)) {
                        continue;
                    }
                    if let Some(entity) = entity {
                        self.model.implementations[implementation].entity = entity;
                    }
                    implementation += 1;
                }
                _ => {}
            }
        }
        self.flatten_members();
    }

    fn resolve_relation(&mut self, namespace: NamespaceId, tree: &'a ast::Relation) {
        let owner = self.find_entity(namespace, &tree.left.entity);
        let target = self.find_entity(namespace, &tree.right.entity);
        let (Some(owner), Some(target)) = (owner, target) else {
            return;
        };
        let inverse = tree.right.inverse.as_ref();
        let multiplicities = [
            Some(tree.left.multiplicity),
            inverse.map(|(_, multiplicity)| *multiplicity),
        ];
        for multiplicity in multiplicities.into_iter().flatten() {
            self.check_multiplicity(multiplicity);
        }
        let doc: Option<Arc<str>> = tree.doc.as_ref().map(|doc| doc.text.clone());
        let name = self.symbol(&tree.left.name.text);
        let first = self.add_relation(Relation {
            owner,
            name,
            target,
            multiplicity: tree.left.multiplicity,
            inverse: None,
            span: Some(tree.left.name.span),
            annotations: Vec::new(),
            namespace,
            doc: doc.clone(),
        });
        if let Some(first) = first {
            self.mention_definition(tree.left.name.span, Target::Member(owner, name));
            self.relations.push((namespace, first, tree));
        }
        let (Some(first), Some((other, multiplicity))) = (first, inverse) else {
            return;
        };
        if owner == target && other.text == tree.left.name.text {
            let left = tree.left.multiplicity;
            if (left.low, left.high) != (multiplicity.low, multiplicity.high) {
                let message = format!(
                    "both ends of `{}` are one, so both have one multiplicity",
                    other.text
                );
                let error = Diagnostic::error(&codes::DUPLICATE_MEMBER, multiplicity.span, message);
                let error = error.of_class("DuplicateException").label("differs");
                self.found.push(error.because(left.span, "from this"));
            }
            self.model.relations[first.index()].inverse = Some(first);
            self.mention(other.span, Target::Member(owner, name));
            return;
        }
        let name = self.symbol(&other.text);
        let second = self.add_relation(Relation {
            owner: target,
            name,
            target: owner,
            multiplicity: *multiplicity,
            inverse: Some(first),
            span: Some(other.span),
            annotations: Vec::new(),
            namespace,
            doc,
        });
        if second.is_some() {
            self.mention_definition(other.span, Target::Member(target, name));
        }
        self.model.relations[first.index()].inverse = second;
    }

    fn check_multiplicity(&mut self, multiplicity: Multiplicity) {
        let Multiplicity { low, high, span } = multiplicity;
        let message = match high {
            _ if low < 0 => format!("a relation cannot have {low} values at least"),
            Some(high) if high < low => {
                format!("a relation cannot have at least {low} and at most {high} values")
            }
            Some(_) | None => return,
        };
        let error = Diagnostic::error(&codes::DUPLICATE_MEMBER, span, message);
        self.found
            .push(error.of_class("DuplicateException").label("at least, at most"));
    }

    /// Gives an entity a relation, unless it has something of that name itself, which is told.
    fn add_relation(&mut self, relation: Relation) -> Option<RelationId> {
        if let Some((sort, place)) = self.own_member(relation.owner, relation.name) {
            let owner = &self.entity(relation.owner).name;
            let name = self.symbols.text(relation.name);
            let message = format!("`{owner}` has {sort} `{name}` already");
            let span = relation.span.unwrap_or(relation.multiplicity.span);
            let error = Diagnostic::error(&codes::DUPLICATE_MEMBER, place.unwrap_or(span), message)
                .of_class("DuplicateException")
                .shown_at(span)
                .label("again");
            self.found.push(match place {
                Some(place) => error.because(place, "declared here first"),
                None => error,
            });
            return None;
        }
        let id = RelationId(self.model.relations.len() as u32);
        self.own_relations[relation.owner.index()].push(id);
        self.model.relations.push(relation);
        Some(id)
    }

    fn own_member(&self, entity: EntityId, name: Symbol) -> Option<(&'static str, Option<Span>)> {
        let attribute = self.declared[entity.index()]
            .iter()
            .find(|declared| declared.name == name);
        if let Some(attribute) = attribute {
            return Some(("an attribute", attribute.span));
        }
        let mut relations = self.own_relations[entity.index()].iter();
        let relation = relations.find(|id| self.model.relations[id.index()].name == name)?;
        Some(("a relation", self.model.relations[relation.index()].span))
    }
}
