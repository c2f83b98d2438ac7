//! What is wrong with the present statements, in program order: duplicates, exports, edges, cycles.

use std::collections::BTreeMap;
use std::sync::Arc;

use setpoint_diagnostics::{Diagnostic, Diagnostics, did_you_mean};
use setpoint_value::Value;

use super::duplicates::{self, Contradiction, Difference};
use super::edges::{Mismatch, mismatch};
use super::{Assembler, EdgeContributor, SlotId};
use crate::{DesiredResource, Finding, Language, Link, MetaName, Problem, ResourceId};

/// Longer values are cut in messages.
const SHOWN_LENGTH: usize = 60;

/// More resources of a kind than this are not searched for a similar name.
const SEARCHED_NAMES: usize = 10_000;

/// More steps on the way to a resource than this are counted, not shown.
const SHOWN_STEPS: usize = 8;

/// A similar name is looked for this often.
const SUGGESTIONS: usize = 16;

/// The steps in which resources become a graph.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Duplicates,
    Exports,
    Edges,
    Cycles,
}

/// A diagnostic with its place in the order.
type Found<K> = ((Phase, K, u32), Diagnostic);

impl<K: Ord + Clone> Assembler<K> {
    /// Everything that is wrong. Costs what is wrong.
    pub(super) fn problems(&self) -> Diagnostics {
        let mut found: Vec<Found<K>> = Vec::new();
        for slot in &self.broken_identities {
            self.identity_problems(*slot, &mut found);
        }
        let mut missing = BTreeMap::new();
        for (from, to) in &self.broken_edges {
            self.edge_problems(*from, *to, &mut missing, &mut found);
        }
        let missing = missing.into_iter();
        let mut missing: Vec<_> = missing
            .map(|((key, slot), contributor)| (key, contributor, &self.slots[slot as usize].id))
            .collect();
        missing.sort_by_key(|(key, contributor, id)| (*key, contributor.index, *id));
        for (number, (key, contributor, id)) in missing.into_iter().enumerate() {
            let message = format!("there is no resource `{id}` for this edge");
            let problem = Problem::MissingResource(id.clone());
            let similar = (number < SUGGESTIONS).then(|| self.similar(id)).flatten();
            let finding = at_edge(problem, contributor, message).help_if(similar);
            let place = (Phase::Edges, key.clone(), contributor.index);
            found.push((place, finding.tell(self.language)));
        }
        for slot in &self.broken_receivers {
            self.receiver_problems(*slot, &mut found);
        }
        if self.cyclic {
            for cycle in self.cycles() {
                self.cycle_problem(&cycle, &mut found);
            }
        }
        found.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| a.1.message.cmp(&b.1.message)));
        let mut diagnostics = Diagnostics::new();
        diagnostics.extend(found.into_iter().map(|(_, diagnostic)| diagnostic));
        diagnostics
    }

    fn identity_problems(&self, slot: SlotId, found: &mut Vec<Found<K>>) {
        let contributors = &self.slots[slot as usize].contributors;
        for problem in duplicates::combine(contributors).problems {
            let (first, later) = (&contributors[problem.first], &contributors[problem.later]);
            let (a, b) = (&first.resource, &later.resource);
            let id = &b.id;
            let (phase, what, message, difference) = match &problem.contradiction {
                Contradiction::Different(difference) => (
                    Phase::Duplicates,
                    Problem::DifferentDuplicate,
                    format!("`{id}` is declared twice, and not alike"),
                    Some(difference),
                ),
                Contradiction::Incompatible(difference) => (
                    Phase::Duplicates,
                    Problem::IncompatibleDuplicate,
                    format!("`{id}` is declared twice, and the two cannot be merged"),
                    Some(difference),
                ),
                Contradiction::Export(host) => (
                    Phase::Exports,
                    Problem::DifferentExports,
                    format!("`{id}` is exported to the host `{host}` twice, and not alike"),
                    None,
                ),
            };
            let says = |resource| difference.map(|what| says(resource, what, self.language));
            let finding = Finding::error(what, b.span, message);
            let finding = match (says(a).zip(says(b)), a.span == b.span) {
                (Some((first, later)), false) => finding.label(later).because(a.span, first),
                (Some((first, later)), true) => finding.label(format!("first {first}, then {later}")),
                (None, false) => finding.label("the second one").because(a.span, "the first one"),
                (None, true) => finding,
            };
            let diagnostic = with_both_chains(finding.tell(self.language), a, b);
            found.push(((phase, later.key.clone(), later.index), diagnostic));
        }
    }

    /// A statement says once of a resource that it is missing, at the first of its edges: that goes into `missing`.
    fn edge_problems<'a>(
        &'a self,
        from: SlotId,
        to: SlotId,
        missing: &mut BTreeMap<(&'a K, SlotId), &'a EdgeContributor<K>>,
        found: &mut Vec<Found<K>>,
    ) {
        let (sender, receiver) = (&self.slots[from as usize], &self.slots[to as usize]);
        let Some(edge) = sender.outgoing.get(&to) else {
            return;
        };
        for contributor in &edge.contributors {
            let place = (Phase::Edges, contributor.key.clone(), contributor.index);
            for slot in [from, to] {
                if !self.slots[slot as usize].exists() && !self.may_appear(slot) {
                    let first = missing.entry((&contributor.key, slot)).or_insert(contributor);
                    if contributor.index < first.index {
                        *first = contributor;
                    }
                }
            }
            if contributor.send.is_empty() || edge.merged.is_none() {
                continue;
            }
            if let Some(hidden) = sender.hidden.first() {
                let message = format!("`{}` is hidden and cannot send", sender.id);
                let why = format!("hidden by {}", self.language.meta_parameter(MetaName::Hidden));
                let finding = at_edge(Problem::HiddenSender, contributor, message).because(hidden.span, why);
                found.push((place.clone(), finding.tell(self.language)));
            }
            let (Some(s), Some(r)) = (sender.any(), receiver.any()) else {
                continue;
            };
            for (key, parameter) in &contributor.send {
                if let Some(mismatch) = mismatch(s.schema, r.schema, key, parameter) {
                    let message = mismatch_message(&mismatch, s, r, key, parameter);
                    let finding = at_edge(Problem::SendMismatch, contributor, message);
                    found.push((place.clone(), finding.tell(self.language)));
                }
            }
        }
    }

    /// A name of this kind that is almost the missing one.
    fn similar(&self, id: &ResourceId) -> Option<String> {
        let start = ResourceId::new(id.kind.clone(), "");
        let same_kind = self.working.resources.range(start..);
        let names = same_kind
            .map(|(other, _)| other)
            .take_while(|other| other.kind == id.kind)
            .map(|other| &*other.name);
        did_you_mean(&id.name, names.take(SEARCHED_NAMES))
    }

    fn receiver_problems(&self, to: SlotId, found: &mut Vec<Found<K>>) {
        let receiver = &self.slots[to as usize];
        let mut all: Vec<(SlotId, &EdgeContributor<K>)> = Vec::new();
        for from in &receiver.senders {
            let edge = self.slots[*from as usize].outgoing.get(&to);
            let contributors = edge.map(|edge| edge.contributors.as_slice()).unwrap_or_default();
            all.extend(contributors.iter().map(|contributor| (*from, contributor)));
        }
        all.sort_by(|a, b| (&a.1.key, a.1.index).cmp(&(&b.1.key, b.1.index)));
        let mut first: BTreeMap<&str, (SlotId, &str, &EdgeContributor<K>)> = BTreeMap::new();
        for (from, contributor) in all {
            for (key, parameter) in &contributor.send {
                let (sender, sent, before) = *first.entry(parameter).or_insert((from, key, contributor));
                if (sender, sent) == (from, &**key) {
                    continue;
                }
                let message = format!("`{parameter}` of `{}` has a second sender", receiver.id);
                let says =
                    |from: SlotId, key: &str| format!("takes `{key}` of `{}`", self.slots[from as usize].id);
                let problem = Problem::SecondSender(parameter.clone());
                let finding = at_edge(problem, contributor, message)
                    .label(says(from, key))
                    .because(before.span, says(sender, sent));
                let place = (Phase::Edges, contributor.key.clone(), contributor.index);
                found.push((place, finding.tell(self.language)));
            }
        }
    }

    fn cycle_problem(&self, cycle: &[SlotId], found: &mut Vec<Found<K>>) {
        let ids: Vec<ResourceId> = cycle
            .iter()
            .map(|slot| self.slots[*slot as usize].id.clone())
            .collect();
        let slot = |id: &ResourceId| Some(&self.slots[*self.index.get(id)? as usize]);
        let resource = |id: &ResourceId| Some(slot(id)?.any()?.span);
        let edge = |from: &ResourceId, to: &ResourceId| {
            let edge = slot(from)?.outgoing.get(self.index.get(to)?)?;
            Some(edge.contributors.first()?.span)
        };
        let contributor = self.slots[cycle[0] as usize].contributors.first();
        if let Some(contributor) = contributor
            && let Some(finding) = Finding::circle(&ids, &resource, &edge)
        {
            let place = (Phase::Cycles, contributor.key.clone(), contributor.index);
            found.push((place, finding.tell(self.language)));
        }
    }
}

/// How the program comes to either of two resources, as far as the ways differ.
fn with_both_chains(
    mut diagnostic: Diagnostic,
    first: &DesiredResource,
    later: &DesiredResource,
) -> Diagnostic {
    let steps = |resource: &DesiredResource| -> Vec<Arc<Link>> {
        let innermost = resource.chain.clone();
        std::iter::successors(innermost, |link| link.outer.clone()).collect()
    };
    let (mut first, mut later) = (steps(first), steps(later));
    while let (Some(a), Some(b)) = (first.last(), later.last())
        && (Arc::ptr_eq(a, b) || (a.span == b.span && a.cause == b.cause))
    {
        first.pop();
        later.pop();
    }
    for (which, steps) in [("the second one", later), ("the first one", first)] {
        for link in steps.iter().take(SHOWN_STEPS) {
            diagnostic = diagnostic.via(link.span, format!("{which}: {}", link.cause));
        }
        if steps.len() > SHOWN_STEPS {
            let more = steps.len() - SHOWN_STEPS;
            diagnostic = diagnostic.note(format!("{which}: {more} more steps lie around these"));
        }
    }
    diagnostic
}

/// At the statement; its item, if it is one of several, as the reason.
fn at_edge<K>(problem: Problem, contributor: &EdgeContributor<K>, message: String) -> Finding {
    match contributor.statement {
        Some(statement) if statement != contributor.span => {
            Finding::error(problem, statement, message).because(contributor.span, "this edge")
        }
        _ => Finding::error(problem, contributor.span, message),
    }
}

fn says(resource: &DesiredResource, difference: &Difference, language: &dyn Language) -> String {
    match difference {
        Difference::Parameter(name) => match resource.parameters.get(name) {
            Some(value) => format!("`{name}` is {}", shown(value)),
            None => format!("`{name}` is not set"),
        },
        Difference::Meta(name) => {
            let value = resource.meta.value(*name);
            format!("{} is {}", language.meta_parameter(*name), shown(&value))
        }
    }
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN_LENGTH) {
        Some((at, _)) => format!("`{}…`", &text[..at]),
        None => format!("`{text}`"),
    }
}

fn mismatch_message(
    mismatch: &Mismatch,
    sender: &DesiredResource,
    receiver: &DesiredResource,
    key: &Arc<str>,
    parameter: &Arc<str>,
) -> String {
    let (sends, receives) = (&sender.id.kind, &receiver.id.kind);
    match mismatch {
        Mismatch::NoKey => format!("the kind `{sends}` does not send `{key}`"),
        Mismatch::NotReceiving => format!("the kind `{receives}` receives nothing"),
        Mismatch::NoParameter => format!("the kind `{receives}` has no parameter `{parameter}`"),
        Mismatch::Types(from, to) => {
            format!(
                "`{key}` of `{sends}` ({}) does not fit `{parameter}` of `{receives}` ({})",
                from.describe(),
                to.describe()
            )
        }
    }
}
