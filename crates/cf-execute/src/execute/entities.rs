//! What execution wants to know of entities, found once.

use rustc_hash::FxHashMap;
use setpoint_cf_names::hir::{MemberKind, Model};
use setpoint_cf_names::ids::{ImplementationId, IndexId, RelationId};
use smallvec::SmallVec;

use super::cells::GradualKind;

/// How a slot of an instance begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    /// Which sort of gradual it is, if it is one.
    pub(super) gradual: Option<GradualKind>,
    /// The rank of its relation in the order of freezing.
    pub(super) rank: u32,
    /// One if its relation is the first of a rule of precedence.
    pub(super) bonus: u32,
    /// Whether it may be complete without an element.
    pub(super) may_be_empty: bool,
}

/// An entity, as execution sees it.
#[derive(Debug)]
pub(super) struct EntityPlan {
    /// Its members.
    pub(super) slots: Vec<Slot>,
    /// Its indexes with the slots of their members.
    pub(super) indexes: SmallVec<[(IndexId, SmallVec<[u32; 2]>); 1]>,
    /// Slots that are in an index, sorted.
    pub(super) index_slots: SmallVec<[u32; 4]>,
    /// All implementations that some `implement` names, each once.
    pub(super) implementations: Vec<ImplementationId>,
}

/// All entities.
#[derive(Debug)]
pub(super) struct Entities {
    /// By number.
    pub(super) plans: Vec<EntityPlan>,
    /// The highest rank that a relation has.
    pub(super) ranks: u32,
}

impl Entities {
    pub(super) fn of(model: &Model) -> Entities {
        let ranks = ranks(model);
        let plans = model.entities.iter().map(|entity| {
            let slots = entity.members.iter().map(|member| match &member.kind {
                MemberKind::Attribute { optional, .. } => Slot {
                    gradual: optional.then_some(GradualKind::OptionalAttribute),
                    rank: 0,
                    bonus: 0,
                    may_be_empty: true,
                },
                MemberKind::Relation(id) => {
                    let relation = &model.relations[id.index()];
                    let gradual = match () {
                        () if relation.is_optional() => Some(GradualKind::Optional),
                        () if relation.is_list() => Some(GradualKind::List),
                        () => None,
                    };
                    Slot {
                        gradual,
                        rank: ranks.get(id).copied().unwrap_or(0),
                        bonus: u32::from(model.precedence.iter().any(|(before, _)| before == id)),
                        may_be_empty: relation.multiplicity.low <= 0,
                    }
                }
            });
            let mut indexes = SmallVec::new();
            let mut index_slots: SmallVec<[u32; 4]> = SmallVec::new();
            for id in &entity.indexes {
                let members = model.indexes[id.index()].members.iter();
                // An index has members that its entity has; the resolver has seen to it.
                let slots: SmallVec<[u32; 2]> = members
                    .filter_map(|name| entity.by_name.get(name).copied())
                    .collect();
                index_slots.extend(slots.iter().copied());
                indexes.push((*id, slots));
            }
            index_slots.sort_unstable();
            index_slots.dedup();
            let mut implementations: Vec<ImplementationId> = Vec::new();
            for implement in &entity.implements {
                for id in &implement.using {
                    if !implementations.contains(id) {
                        implementations.push(*id);
                    }
                }
            }
            EntityPlan {
                slots: slots.collect(),
                indexes,
                index_slots,
                implementations,
            }
        });
        Entities {
            plans: plans.collect(),
            ranks: ranks.values().copied().max().unwrap_or(0),
        }
    }
}

/// Ranks of the relations that rules of precedence name, from 1, so that what comes before by a rule has a lower one.
fn ranks(model: &Model) -> FxHashMap<RelationId, u32> {
    let mut named: Vec<RelationId> = Vec::new();
    for (before, after) in &model.precedence {
        for id in [before, after] {
            if !named.contains(id) {
                named.push(*id);
            }
        }
    }
    let mut ranks: FxHashMap<RelationId, u32> = FxHashMap::default();
    while !named.is_empty() {
        let is_first = |id: &RelationId| {
            let mut rules = model.precedence.iter();
            !rules.any(|(before, after)| after == id && !ranks.contains_key(before))
        };
        // Rules have no cycle, so there always is one; if they had, the order would not matter.
        let next = named.iter().position(is_first).unwrap_or(0);
        let rank = ranks.len() as u32 + 1;
        ranks.insert(named.remove(next), rank);
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_respect_all_rules_and_keep_the_order_of_the_text_otherwise() {
        let id = RelationId;
        let model = Model {
            precedence: vec![(id(5), id(3)), (id(7), id(5)), (id(1), id(3))],
            ..Model::default()
        };
        let mut ranks: Vec<(u32, u32)> = ranks(&model).into_iter().map(|(id, rank)| (rank, id.0)).collect();
        ranks.sort_unstable();
        assert_eq!(ranks, [(1, 7), (2, 5), (3, 1), (4, 3)]);
    }
}
