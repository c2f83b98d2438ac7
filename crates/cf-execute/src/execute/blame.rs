//! Which part of a written value an error is about: of a list, the element that is wrong.

use setpoint_cf_functions::context::Stop;
use setpoint_cf_functions::equality::is_same;
use setpoint_cf_names::datum::{Datum, InstanceId};
use setpoint_cf_names::hir::{Expression, ExpressionKind, MemberKind};
use setpoint_cf_names::types::AttributeType;
use setpoint_cf_syntax::element_places;
use setpoint_diagnostics::Span;

use super::assign::Assignment;
use super::cells::CellId;
use super::evaluate::literal;
use super::machine::{Machine, Run};

impl Machine<'_> {
    /// The place to show for a value that a member refuses: the first element that does not fit, if the value is a written list.
    pub(super) fn refused_part(
        &self,
        instance: InstanceId,
        slot: u32,
        value: &Datum,
        assignment: Assignment,
    ) -> Span {
        let whole = assignment.place();
        let Datum::List(elements) = value.unmarked() else {
            return whole;
        };
        let is_refused = |element: &Datum| match self.member(instance, slot).kind {
            MemberKind::Attribute { ty, .. } => {
                let ty = AttributeType {
                    list: false,
                    nullable: false,
                    ..ty
                };
                self.check_attribute(ty, element, whole).is_err()
            }
            MemberKind::Relation(relation) => self.check_relation(relation, element, whole).is_err(),
        };
        let Some(wrong) = elements.iter().position(is_refused) else {
            return whole;
        };
        let places = element_places(&self.sources.file(whole.file).text, whole);
        // A variable in the list may hold a list, which has become part of it.
        match places.get(wrong) {
            Some(place) if places.len() == elements.len() => *place,
            _ => whole,
        }
    }

    /// The error about an element that a relation was told, at the element where that can be found.
    pub(super) fn refuse_element(
        &mut self,
        stop: Stop,
        cell: CellId,
        list: &Expression,
        element: &Datum,
        assignment: Assignment,
    ) -> Run<()> {
        match literal_place(list, element) {
            // No relation takes a literal, so this is refused again, for the same reason.
            Some(place) => self.assign_member(
                cell,
                element,
                Assignment {
                    value: Some(place),
                    ..assignment
                },
            ),
            None => Err(stop),
        }
    }
}

/// Where an element of a list is written as a literal.
fn literal_place(list: &Expression, element: &Datum) -> Option<Span> {
    match &list.kind {
        ExpressionKind::Literal(written) => is_same(&literal(written), element).then_some(list.span),
        ExpressionKind::List(elements) => elements.iter().find_map(|inner| literal_place(inner, element)),
        _ => None,
    }
}
