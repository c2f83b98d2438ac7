//! What entities have, with what they inherit.
//!
//! An instance has a slot for each member. A member that is declared again keeps its slot, so each has one place however many ways
//! lead to it. Contradictions are noted here and told when entities are checked.

use rustc_hash::FxHashMap;
use setpoint_diagnostics::{Diagnostic, Span};

use super::{Resolver, codes};
use crate::hir::{Member, MemberKind};
use crate::ids::{EntityId, Symbol};
use crate::types::AttributeType;

impl Resolver<'_> {
    /// Gives all entities their members. Defaults are not known yet.
    pub(super) fn flatten_members(&mut self) {
        for at in 0..self.parents_first.len() {
            let entity = self.parents_first[at];
            let mut members: Vec<Member> = Vec::new();
            let mut by_name: FxHashMap<Symbol, u32> = FxHashMap::default();
            let parents = self.entity(entity).parents.clone();
            // Right parents before left ones, which overwrite what they say.
            for parent in parents.into_iter().rev() {
                for slot in 0..self.entity(parent).members.len() {
                    let member = self.entity(parent).members[slot].clone();
                    self.take_member(entity, &mut members, &mut by_name, member, true);
                }
            }
            for declared in self.declared[entity.index()].clone() {
                let optional = declared.tree.is_none();
                let member = Member {
                    name: declared.name,
                    span: declared.span,
                    kind: MemberKind::Attribute {
                        ty: declared.ty,
                        default: None,
                        optional,
                    },
                };
                self.take_member(entity, &mut members, &mut by_name, member, false);
            }
            for relation in self.own_relations[entity.index()].clone() {
                let of = &self.model.relations[relation.index()];
                let member = Member {
                    name: of.name,
                    span: of.span,
                    kind: MemberKind::Relation(relation),
                };
                self.take_member(entity, &mut members, &mut by_name, member, false);
            }
            let of = &mut self.model.entities[entity.index()];
            of.members = members;
            of.by_name = by_name;
        }
    }

    fn take_member(
        &mut self,
        entity: EntityId,
        members: &mut Vec<Member>,
        by_name: &mut FxHashMap<Symbol, u32>,
        member: Member,
        inherited: bool,
    ) {
        let Some(slot) = by_name.get(&member.name).copied() else {
            by_name.insert(member.name, members.len() as u32);
            members.push(member);
            return;
        };
        let known = &mut members[slot as usize];
        match (&mut known.kind, &member.kind) {
            (
                MemberKind::Attribute { ty, optional, .. },
                MemberKind::Attribute {
                    ty: again,
                    optional: optional_again,
                    ..
                },
            ) if ty == again => {
                *optional |= *optional_again;
                known.span = member.span;
            }
            (MemberKind::Relation(relation), MemberKind::Relation(again)) if relation == again => {}
            // An entity's own attribute takes the place of a relation that it inherits, and of two parents the left one's member counts.
            (MemberKind::Relation(_), MemberKind::Attribute { .. }) => *known = member,
            (_, MemberKind::Relation(_)) if inherited => *known = member,
            _ => {
                let contradiction = self.contradiction(entity, &members[slot as usize], &member, inherited);
                self.contradictions.push(contradiction);
                if inherited {
                    // The left one counts.
                    members[slot as usize] = member;
                }
            }
        }
    }

    fn contradiction(
        &self,
        entity: EntityId,
        known: &Member,
        member: &Member,
        inherited: bool,
    ) -> Diagnostic {
        let owner = self.entity(entity);
        let name = self.symbols.text(member.name);
        let message = if inherited {
            format!("`{}` inherits two different members `{name}`", owner.name)
        } else {
            match (&known.kind, &member.kind) {
                (MemberKind::Attribute { ty, .. }, MemberKind::Attribute { ty: again, .. }) => format!(
                    "attribute `{name}` of `{}` is of type `{}`, but `{}` where it is inherited from",
                    owner.name,
                    self.type_text(*again),
                    self.type_text(*ty)
                ),
                (MemberKind::Attribute { .. }, MemberKind::Relation(_)) => {
                    format!(
                        "`{}` inherits an attribute `{name}`, so it cannot have a relation of this name",
                        owner.name
                    )
                }
                (MemberKind::Relation(_), _) => {
                    format!(
                        "`{}` inherits a relation `{name}`, so it cannot have another one of this name",
                        owner.name
                    )
                }
            }
        };
        let place = if inherited { owner.span } else { member.span };
        let place = place.or(member.span).or(known.span);
        let file = setpoint_diagnostics::FileId(0);
        let error = Diagnostic::error(
            &codes::DUPLICATE_MEMBER,
            place.unwrap_or(Span::new(file, 0, 0)),
            message,
        );
        let mut error = error.of_class("DuplicateException").label("contradicts");
        let others = [known.span, member.span.filter(|_| inherited)];
        for other in others.into_iter().flatten().filter(|other| Some(*other) != place) {
            error = error.because(other, "declared here");
        }
        error
    }

    /// A type as it is written.
    pub(super) fn type_text(&self, ty: AttributeType) -> String {
        let base = ty.base.written(|id| &self.model.typedefs[id.index()].name);
        let list = if ty.list { "[]" } else { "" };
        let nullable = if ty.nullable { "?" } else { "" };
        format!("{base}{list}{nullable}")
    }
}
