//! What comes before what, and what is held because of it.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use setpoint_cf_functions::context::Read;
use setpoint_cf_names::datum::{Datum, DeferredSource, InstanceId};
use setpoint_cf_names::hir::Model;
use setpoint_cf_names::ids::Symbol;
use setpoint_diagnostics::{Diagnostic, Diagnostics, Span};

use super::bindings::{Bindings, Executed, Reader};
use super::{Exported, Fate, Requirement, State, codes};

/// Finds the requirements of resources.
pub(super) struct Order<'a> {
    pub model: &'a Model,
    pub executed: &'a dyn Executed,
    pub bindings: &'a Bindings,
    pub fates: &'a [Fate],
    /// Whether requirements of plain entities are followed.
    pub flatten: bool,
    pub diagnostics: &'a mut Diagnostics,
}

impl Order<'_> {
    /// The requirements of all resources: what their instances require, and what sends them values.
    pub(super) fn find_requirements(&mut self, exported: &mut Exported) {
        let requires = self.bindings.symbol("requires");
        for at in 0..exported.resources.len() {
            let mut found = requires
                .map(|requires| self.required(exported, at, requires))
                .unwrap_or_default();
            self.find_sends(exported, at, &mut found);
            exported.resources[at].requires = found;
        }
    }

    /// What is in the relation `requires` of a resource's instance.
    fn required(&mut self, exported: &mut Exported, at: usize, requires: Symbol) -> Vec<Requirement> {
        let instance = exported.resources[at].instance;
        let (members, span) = self.members(instance, requires);
        let mut found: Vec<Requirement> = Vec::new();
        let mut seen: FxHashSet<usize> = FxHashSet::default();
        let mut plain = None;
        let count = members.len();
        let mut waiting: VecDeque<(Datum, Span)> = members.into_iter().map(|member| (member, span)).collect();
        let mut followed: FxHashSet<InstanceId> = FxHashSet::default();
        while let Some((member, span)) = waiting.pop_front() {
            let required = match member {
                Datum::Instance(required) => required,
                // Whatever it is must be right before: nothing is done until that is known.
                Datum::Unknown(_) => {
                    exported.resources[at].is_uncertain = true;
                    continue;
                }
                _ => continue,
            };
            match self.fates[required.0 as usize] {
                Fate::Resource(other) => {
                    if other != at && seen.insert(other) {
                        let notify =
                            exported.resources[other].sends_events && exported.resources[at].receives_events;
                        found.push(Requirement {
                            resource: other,
                            notify,
                            send: None,
                            span,
                        });
                    } else if other == at && required == instance {
                        self.tell_own_requirement(exported, at, span);
                    }
                }
                Fate::LeftOut => {}
                Fate::Plain => {
                    plain.get_or_insert(required);
                    if self.flatten && followed.insert(required) {
                        let (behind, place) = self.members(required, requires);
                        waiting.extend(behind.into_iter().map(|member| (member, place)));
                    }
                }
            }
        }
        if let Some(plain) = plain.filter(|_| found.is_empty()) {
            self.tell_plain(exported, at, plain, count, span);
        }
        found
    }

    fn members(&self, instance: InstanceId, relation: Symbol) -> (Vec<Datum>, Span) {
        let reader = Reader {
            model: self.model,
            executed: self.executed,
        };
        let own = self.executed.span(instance);
        let Some(slot) = reader.slot(instance, relation) else {
            return (Vec::new(), own);
        };
        let members = match self.executed.member(instance, slot) {
            Read::Value(Datum::List(items)) => items.to_vec(),
            _ => Vec::new(),
        };
        (members, self.executed.place(instance, slot).unwrap_or(own))
    }

    fn tell_own_requirement(&mut self, exported: &Exported, at: usize, span: Span) {
        let id = shown(exported, at, false);
        let error = Diagnostic::error(&codes::CYCLE, span, format!("`{id}` requires itself"));
        self.diagnostics.push(error.of_class("DependencyCycleException"));
    }

    fn tell_plain(&mut self, exported: &Exported, at: usize, plain: InstanceId, count: usize, span: Span) {
        let id = shown(exported, at, false);
        let entity = &self.model.entities[self.executed.entity(plain).index()].name;
        let what = match count {
            1 => format!("an instance of `{entity}`, which is no resource"),
            count => format!("{count} instances that are no resources, of `{entity}` for example"),
        };
        let warning = Diagnostic::warning(&codes::PLAIN_REQUIRES, span, format!("`{id}` requires {what}"))
            .label("this orders nothing")
            .because(self.executed.span(plain), "what it requires");
        let help = match self.flatten {
            true => "let it require the resources that are meant",
            false => {
                "let it require the resources that are meant, or set `flatten_requires` in project.yml, so that what such instances require counts"
            }
        };
        self.diagnostics.push(warning.help(help));
    }

    /// Resources that send something to a parameter come before it.
    fn find_sends(&mut self, exported: &Exported, at: usize, found: &mut Vec<Requirement>) {
        let resource = &exported.resources[at];
        for parameter in &resource.parameters {
            for (path, deferred) in &parameter.deferred {
                let DeferredSource::Send {
                    resource: sender,
                    key,
                } = &deferred.source
                else {
                    continue;
                };
                let name = parameter.parameter.name;
                let span = parameter.span;
                let refuse = |message: String| {
                    let error = Diagnostic::error(&codes::UNFIT, span, message).of_class("ResourceException");
                    error.because(resource.span, "the resource is constructed here")
                };
                let Fate::Resource(other) = self.fates[sender.0 as usize] else {
                    let entity = &self.model.entities[self.executed.entity(*sender).index()].name;
                    let message =
                        format!("`{name}` is sent by an instance of `{entity}`, which is no resource");
                    self.diagnostics.push(refuse(message));
                    continue;
                };
                if !path.is_empty() {
                    let message = format!(
                        "what `{name}` gets from another resource cannot be a part of it, at `{path}`"
                    );
                    self.diagnostics.push(refuse(message));
                    continue;
                }
                found.push(Requirement {
                    resource: other,
                    notify: false,
                    send: Some((Arc::clone(key), name)),
                    span,
                });
            }
        }
    }

    /// Tells which resources require each other in circles.
    pub(super) fn find_cycles(&mut self, exported: &Exported) {
        let mut left = in_circles(exported);
        for _ in 0..MOST_CYCLES {
            let Some(first) = left.iter().min().copied() else {
                return;
            };
            match way_round(exported, first, &left) {
                Some(cycle) => {
                    self.tell_cycle(exported, &cycle);
                    for at in cycle {
                        left.remove(&at);
                    }
                }
                // Between two circles.
                None => {
                    left.remove(&first);
                }
            }
        }
    }

    /// Each requires the next, and the last the first.
    fn tell_cycle(&mut self, exported: &Exported, cycle: &[usize]) {
        let machines: FxHashSet<&str> = cycle
            .iter()
            .map(|at| &*exported.resources[*at].identity.machine)
            .collect();
        let name = |at: usize| shown(exported, at, machines.len() > 1);
        let mut path: Vec<String> = cycle.iter().take(SHOWN_STEPS).map(|at| name(*at)).collect();
        if cycle.len() > SHOWN_STEPS {
            path.push(format!("… ({} more)", cycle.len() - SHOWN_STEPS));
        }
        path.push(name(cycle[0]));
        let step_of = |index: usize| {
            let next = cycle[(index + 1) % cycle.len()];
            let resource = &exported.resources[cycle[index]];
            let mut requires = resource.requires.iter();
            requires.find(|requirement| requirement.resource == next)
        };
        let is_sent = |index: usize| step_of(index).is_some_and(|step| step.send.is_some());
        // What is sent all the way round would have to be known before it is.
        let (code, class, what) = match (0..cycle.len()).all(is_sent) {
            true => (
                &codes::REFERENCE_CYCLE,
                "ReferenceCycleException",
                "a deferred reference contains itself",
            ),
            false => (
                &codes::CYCLE,
                "DependencyCycleException",
                "resources require each other in a circle",
            ),
        };
        let message = format!("{what}: {}", path.join(" -> "));
        let steps = cycle.iter().enumerate().take(SHOWN_STEPS).map(|(index, at)| {
            let next = cycle[(index + 1) % cycle.len()];
            let resource = &exported.resources[*at];
            let step = step_of(index);
            let verb = match step {
                Some(Requirement { send: Some(_), .. }) => "is sent a value by",
                _ => "requires",
            };
            let text = format!("`{}` {verb} `{}`", name(*at), name(next));
            (step.map_or(resource.span, |step| step.span), text)
        });
        let mut error: Option<Diagnostic> = None;
        for (span, text) in steps {
            error = Some(match error {
                None => Diagnostic::error(code, span, message.clone())
                    .of_class(class)
                    .label(text),
                Some(error) => error.because(span, text),
            });
        }
        self.diagnostics.extend(error);
    }
}

/// More circles than this are not told: the first ones are enough to begin with.
const MOST_CYCLES: usize = 10;

/// More steps of a circle than this are counted, not shown.
const SHOWN_STEPS: usize = 20;

/// A resource as texts name it.
pub(super) fn shown(exported: &Exported, at: usize, with_machine: bool) -> String {
    let identity = &exported.resources[at].identity;
    match with_machine {
        true => identity.key(),
        false => format!("{}[{}]", identity.kind, identity.name),
    }
}

/// The resources that are in circles, or between them: what is left when those are taken away that require nothing, and those that
/// nothing requires, again and again.
fn in_circles(exported: &Exported) -> FxHashSet<usize> {
    let count = exported.resources.len();
    let mut required_by: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (at, resource) in exported.resources.iter().enumerate() {
        for requirement in &resource.requires {
            required_by[requirement.resource].push(at);
        }
    }
    let requires = |at: usize| {
        exported.resources[at]
            .requires
            .iter()
            .map(|requirement| requirement.resource)
    };
    let mut outgoing: Vec<usize> = (0..count).map(|at| requires(at).count()).collect();
    let mut incoming: Vec<usize> = required_by.iter().map(Vec::len).collect();
    let mut is_gone = vec![false; count];
    let mut ready: Vec<usize> = (0..count)
        .filter(|at| outgoing[*at] == 0 || incoming[*at] == 0)
        .collect();
    while let Some(at) = ready.pop() {
        if std::mem::replace(&mut is_gone[at], true) {
            continue;
        }
        for &other in &required_by[at] {
            outgoing[other] -= 1;
            if outgoing[other] == 0 {
                ready.push(other);
            }
        }
        for other in requires(at) {
            incoming[other] -= 1;
            if incoming[other] == 0 {
                ready.push(other);
            }
        }
    }
    (0..count).filter(|at| !is_gone[*at]).collect()
}

/// A shortest way from a resource along requirements back to it, within some.
fn way_round(exported: &Exported, first: usize, within: &FxHashSet<usize>) -> Option<Vec<usize>> {
    let mut came_from: FxHashMap<usize, usize> = FxHashMap::default();
    let mut queue = VecDeque::from([first]);
    while let Some(at) = queue.pop_front() {
        for requirement in &exported.resources[at].requires {
            let to = requirement.resource;
            if to == first {
                let mut path = vec![at];
                while let Some(before) = path.last().and_then(|last| came_from.get(last)) {
                    path.push(*before);
                }
                path.reverse();
                return Some(path);
            }
            if within.contains(&to) && !came_from.contains_key(&to) {
                came_from.insert(to, at);
                queue.push_back(to);
            }
        }
    }
    None
}

/// Holds resources that are not known, and those that require them.
pub(super) fn hold(exported: &mut Exported) {
    for resource in &mut exported.resources {
        let is_unknown = resource.is_uncertain
            || resource.unknown().next().is_some()
            || !resource.built.unknown.is_empty();
        resource.state = match is_unknown {
            true => State::Undefined,
            false => State::Available,
        };
    }
    let first: Vec<usize> = (0..exported.resources.len())
        .filter(|at| exported.resources[*at].state == State::Undefined)
        .collect();
    let held = behind(exported, first);
    for (at, resource) in exported.resources.iter_mut().enumerate() {
        if held.contains(&at) && resource.state == State::Available {
            resource.state = State::SkippedForUndefined;
        }
    }
}

/// Some resources, and all that require them.
pub(super) fn behind(exported: &Exported, first: Vec<usize>) -> FxHashSet<usize> {
    let mut found: FxHashSet<usize> = first.iter().copied().collect();
    if first.is_empty() {
        return found;
    }
    let mut required_by: Vec<Vec<usize>> = vec![Vec::new(); exported.resources.len()];
    for (at, resource) in exported.resources.iter().enumerate() {
        for requirement in &resource.requires {
            required_by[requirement.resource].push(at);
        }
    }
    let mut waiting = first;
    while let Some(at) = waiting.pop() {
        let new = required_by[at].iter().filter(|other| found.insert(**other));
        waiting.extend(new);
    }
    found
}
