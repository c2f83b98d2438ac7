//! Entities below `std::Dataclass` are records: they have attributes and nothing else.

use setpoint_diagnostics::Diagnostic;

use super::{Resolver, codes};
use crate::hir::MemberKind;
use crate::ids::EntityId;

impl Resolver<'_> {
    pub(super) fn check_dataclasses(&mut self) {
        let mut entities = self.model.entities.iter();
        let Some(above) = entities.position(|entity| &*entity.name == "std::Dataclass") else {
            return;
        };
        for entity in self.model.entities[above].descendants.clone() {
            if let Some(error) = self.more_than_a_record(entity) {
                self.found.push(error);
            }
        }
    }

    fn more_than_a_record(&self, id: EntityId) -> Option<Diagnostic> {
        let entity = self.entity(id);
        let relation = entity.members.iter().find(|member| match member.kind {
            MemberKind::Attribute { .. } => false,
            // What every entity has does not count.
            MemberKind::Relation(relation) => self.model.relations[relation.index()].owner != EntityId(0),
        });
        let index = entity
            .indexes
            .first()
            .map(|index| &self.model.indexes[index.index()]);
        let other = entity.implements.iter().find(|implement| {
            let mut using = implement.using.iter();
            using.any(|id| &*self.model.implementations[id.index()].name != "std::none")
        });
        let (reason, place) = if let Some(relation) = relation {
            let name = self.symbols.text(relation.name);
            (format!("it has a relation `{name}`"), relation.span)
        } else if let Some(index) = index {
            ("it has an index".to_owned(), index.span)
        } else {
            let implement = other?;
            (
                "it uses an implementation other than `std::none`".to_owned(),
                implement.span,
            )
        };
        let span = entity.span?;
        let message = format!("`{}` descends from `std::Dataclass`, but {reason}", entity.name);
        let error = Diagnostic::error(&codes::DATACLASS, span, message);
        let error = error.of_class("DataClassException").label("no record");
        Some(match place {
            Some(place) => error.because(place, reason),
            None => error,
        })
    }
}
