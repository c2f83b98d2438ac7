//! The fifth step: indexes.

use setpoint_cf_syntax::ast;
use setpoint_diagnostics::Diagnostic;

use super::mentions::Target;
use super::{Resolver, codes};
use crate::hir::{Index, MemberKind};
use crate::ids::{EntityId, IndexId, NamespaceId, Symbol};

impl Resolver<'_> {
    pub(super) fn resolve_indexes(&mut self) {
        let mut own: Vec<Vec<Index>> = Vec::new();
        own.resize_with(self.model.entities.len(), Vec::new);
        for (namespace, item) in self.items() {
            if let ast::Item::Index(tree) = item
                && let Some(index) = self.resolve_index(namespace, tree)
            {
                own[index.entity.index()].push(index);
            }
        }
        // The name comes first, so that it is what `setpoint::File("/etc/motd")` gives by position.
        let names = ["name".into(), "machine".into()].map(|name| self.symbol(&name));
        for (at, entity) in self.model.entities.iter().enumerate() {
            if entity.kind.is_some() {
                own[at].push(Index {
                    entity: EntityId(at as u32),
                    members: names.to_vec(),
                    span: None,
                });
            }
        }
        for at in 0..self.parents_first.len() {
            let entity = self.parents_first[at];
            if let Some(first) = own[entity.index()].first() {
                self.first_index.insert(entity, first.members.clone());
            }
            let mut indexes: Vec<IndexId> = Vec::new();
            for parent in &self.entity(entity).parents {
                indexes.extend(&self.entity(*parent).indexes);
            }
            indexes.sort_unstable();
            indexes.dedup();
            for index in std::mem::take(&mut own[entity.index()]) {
                let set = sorted(&index.members);
                let same = |id: &IndexId| sorted(&self.model.indexes[id.index()].members) == set;
                if !indexes.iter().any(same) {
                    indexes.push(IndexId(self.model.indexes.len() as u32));
                    self.model.indexes.push(index);
                }
            }
            self.model.entities[entity.index()].indexes = indexes;
        }
    }

    fn resolve_index(&mut self, namespace: NamespaceId, tree: &ast::Index) -> Option<Index> {
        let entity = self.find_entity(namespace, &tree.entity)?;
        let mut members: Vec<Symbol> = Vec::new();
        for name in &tree.members {
            let symbol = self.symbol(&name.text);
            let Some((_, member)) = self.entity(entity).member(symbol) else {
                let message = format!(
                    "`{}` is in an index of `{}`, which has no such attribute or relation",
                    name.text,
                    self.entity(entity).name
                );
                let error = Diagnostic::error(&codes::NO_INDEX_MEMBER, name.span, message);
                let error = error.of_class("NotFoundException").label("not found");
                let near = self.near_member(entity, &name.text);
                self.found.push(error.help_if(near));
                continue;
            };
            let member = member.clone();
            self.mention(name.span, Target::Member(entity, symbol));
            let reason = match &member.kind {
                MemberKind::Attribute { ty, .. } if ty.list => Some("it is a list"),
                MemberKind::Attribute { .. } => None,
                MemberKind::Relation(relation) => {
                    let relation = &self.model.relations[relation.index()];
                    let is_optional = relation.multiplicity.low == 0 && relation.multiplicity.high == Some(1);
                    match is_optional {
                        true => Some("it is optional"),
                        false if relation.is_list() => Some("it is a list"),
                        false => None,
                    }
                }
            };
            if let Some(reason) = reason {
                let message = format!("`{}` cannot be in an index: {reason}", name.text);
                let error = Diagnostic::error(&codes::BAD_INDEX_MEMBER, name.span, message);
                let error = error
                    .of_class("IndexException")
                    .label(reason.trim_start_matches("it is "));
                let declared = member.span;
                self.found.push(match declared {
                    Some(place) => error.because(place, "declared here"),
                    None => error,
                });
                continue;
            }
            if !members.contains(&symbol) {
                members.push(symbol);
            }
        }
        Some(Index {
            entity,
            members,
            span: Some(tree.span),
        })
    }
}

fn sorted(members: &[Symbol]) -> Vec<Symbol> {
    let mut sorted = members.to_vec();
    sorted.sort_unstable();
    sorted
}
