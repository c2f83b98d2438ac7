//! What one machine keeps of the resources of all, as statements of a desired graph.
//!
//! A machine keeps what names it, what is for every machine, and what is for exactly one: as long as machines elect nobody, each is
//! the only one that there is. What requires a resource of another machine comes after a gate (`gates`); what takes a value of one is held.
//! Deferred references to the environment and to facts are answered where that is possible; what is not, is held too.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use setpoint_cf_names::datum::{Datum, DeferredSource, InstanceId};
use setpoint_diagnostics::{Diagnostic, Diagnostics, Span};
use setpoint_graph::{
    DesiredEdge, DesiredResource, KindSchema, ResourceId, StatementOutput, UnknownPart, UnknownWhat,
};
use setpoint_value::Value;

use super::bindings::Identity;
use super::convert::convert;
use super::gates::{Gates, gate_edge};
use super::order::{behind, shown};
use super::{Exported, Requirement, Resource, State, codes};

/// Answers deferred references.
pub trait Deferrals {
    /// A variable of the machine's environment.
    fn environment(&self, name: &str) -> Option<Arc<str>>;

    /// A fact, by `machine/kind[name]/fact`.
    fn fact(&self, key: &str) -> Option<Datum>;
}

/// The machine that keeps resources.
pub struct Machine<'a> {
    /// Its name.
    pub hostname: &'a str,
    /// The deployment that the model belongs to.
    pub deploy: &'a str,
    /// Kinds that no text can name. Without `gate` and `settled` what requires something of another machine is held.
    pub kinds: &'a BTreeMap<&'static str, &'static KindSchema>,
    /// Answers deferred references on it.
    pub deferrals: &'a dyn Deferrals,
}

/// Which statement of a model one is, by the number of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StatementOf {
    /// The resource that the instance is.
    Resource(InstanceId),
    /// What stands for it on a machine that is not its own.
    Gate(InstanceId),
    /// What tells other machines that it is settled.
    Settled(InstanceId),
}

/// What a machine keeps.
#[derive(Debug, Default)]
pub struct MachineOutputs {
    /// Statements of what is applied: one for each resource that is not held, and those by which machines wait for each other.
    pub outputs: Vec<(StatementOf, StatementOutput)>,
    /// What is held.
    pub held: Vec<HeldResource>,
}

/// A resource that is neither looked at nor applied.
#[derive(Debug, Clone)]
pub struct HeldResource {
    /// Which.
    pub id: ResourceId,
    /// As it would be, with what is unknown in it.
    pub resource: Option<Arc<DesiredResource>>,
    /// What comes before it, on the same machine.
    pub edges: Vec<DesiredEdge>,
    /// Its state.
    pub state: State,
    /// Why.
    pub reason: String,
    /// Where it is constructed.
    pub span: Span,
}

impl HeldResource {
    /// As a part of a graph that is not known.
    #[must_use]
    pub fn as_unknown(&self) -> UnknownPart {
        UnknownPart {
            span: self.span,
            what: UnknownWhat::Name(self.id.kind.clone()),
        }
    }
}

/// The machine of resources that belong to whatever runs the model, in Inmanta its server. Here that is each machine that runs it.
const INTERNAL: &str = "internal";

impl Resource {
    /// Whether the machine of a name keeps it.
    #[must_use]
    pub fn is_of(&self, hostname: &str) -> bool {
        [hostname, "*", INTERNAL].contains(&&*self.identity.machine)
    }

    /// Whether one machine has it that is known by name.
    pub(super) fn is_of_one_machine(&self) -> bool {
        !["*", INTERNAL].contains(&&*self.identity.machine)
    }
}

/// What a machine keeps.
pub fn machine_outputs(
    exported: &Exported,
    machine: &Machine<'_>,
    diagnostics: &mut Diagnostics,
) -> MachineOutputs {
    let is_kept = |resource: &Resource| resource.is_of(machine.hostname);
    let gates = Gates::among(machine.kinds, machine.deploy);
    let kept: Vec<usize> = (0..exported.resources.len())
        .filter(|at| is_kept(&exported.resources[*at]))
        .collect();
    let mut reasons: Vec<(usize, String)> = Vec::new();
    let mut built = Vec::with_capacity(kept.len());
    for &at in &kept {
        let resource = &exported.resources[at];
        let mut elsewhere = resource
            .requires
            .iter()
            .filter(|other| !is_kept(&exported.resources[other.resource]));
        if let Some(other) = elsewhere.find(|other| other.send.is_some() || gates.is_none()) {
            tell_other_machine(exported, at, other, diagnostics);
            let shown = shown(exported, other.resource, true);
            let reason = match &other.send {
                Some((_, parameter)) => {
                    format!("`{parameter}` is sent by `{shown}`, which is on another machine")
                }
                None => format!("it requires `{shown}`, which is on another machine"),
            };
            reasons.push((at, reason));
        }
        let (output, unanswered) = with_answers(exported, resource, machine.deferrals, diagnostics);
        reasons.extend(unanswered.map(|reason| (at, reason)));
        built.push(output);
    }
    let further = behind(exported, reasons.iter().map(|(at, _)| *at).collect());
    let mut outputs = MachineOutputs::default();
    let mut waited_for: BTreeSet<usize> = BTreeSet::new();
    let is_held = |at: usize| exported.resources[at].state != State::Available || further.contains(&at);
    for (&at, mut output) in kept.iter().zip(built) {
        let resource = &exported.resources[at];
        if !is_held(at) {
            output.edges = edges(exported, at, is_kept, true);
            outputs
                .outputs
                .push((StatementOf::Resource(resource.instance), output));
            outputs.outputs.extend(settled(exported, at, gates));
            let elsewhere = resource.requires.iter().map(|other| other.resource);
            waited_for.extend(elsewhere.filter(|other| !is_kept(&exported.resources[*other])));
            continue;
        }
        let own = reasons
            .iter()
            .find(|(other, _)| *other == at)
            .map(|(_, reason)| reason.clone());
        let state = match (resource.state, &own) {
            (State::Available, None) => State::SkippedForUndefined,
            (State::Available, Some(_)) => State::Undefined,
            (state, _) => state,
        };
        let reason = own.unwrap_or_else(|| match state {
            State::SkippedForUndefined => "something that it requires is held".to_owned(),
            _ => {
                let names: Vec<String> = resource.unknown().map(|name| format!("`{name}`")).collect();
                match names.is_empty() {
                    true => "whether it is to be applied is not known".to_owned(),
                    false => format!("{} is not known", names.join(", ")),
                }
            }
        });
        outputs.held.push(HeldResource {
            id: id_of(&resource.identity),
            resource: output.resources.pop(),
            edges: edges(exported, at, is_kept, false),
            state,
            reason,
            span: resource.span,
        });
    }
    if let Some(gates) = gates {
        let waited_for = waited_for.into_iter().map(|at| {
            let other = &exported.resources[at];
            (StatementOf::Gate(other.instance), gates.gate(exported, other))
        });
        outputs.outputs.extend(waited_for);
    }
    outputs
}

/// The statements of some resources that are others now, on a machine that kept what it kept. None: not only these are others.
#[must_use]
pub fn updated_outputs(
    exported: &Exported,
    changed: &BTreeSet<usize>,
    held: &[HeldResource],
    machine: &Machine<'_>,
) -> Option<Vec<(StatementOf, StatementOutput)>> {
    let is_kept = |resource: &Resource| resource.is_of(machine.hostname);
    let is_held = |resource: &Resource| {
        let id = id_of(&resource.identity);
        held.iter().any(|held| held.id == id)
    };
    let gates = Gates::among(machine.kinds, machine.deploy);
    let mut outputs = Vec::new();
    for &at in changed {
        let resource = &exported.resources[at];
        if !is_kept(resource) {
            let mut waiting = exported.elsewhere.by(at).map(|at| &exported.resources[at]);
            if let Some(gates) = gates
                && waiting.any(|waiting| is_kept(waiting) && !is_held(waiting))
            {
                let gate = gates.gate(exported, resource);
                outputs.push((StatementOf::Gate(resource.instance), gate));
            }
            continue;
        }
        let mut diagnostics = Diagnostics::new();
        let (mut output, unanswered) = with_answers(exported, resource, machine.deferrals, &mut diagnostics);
        let is_available =
            resource.state == State::Available && unanswered.is_none() && diagnostics.is_empty();
        if !is_available || is_held(resource) {
            return None;
        }
        output.edges = edges(exported, at, is_kept, true);
        outputs.push((StatementOf::Resource(resource.instance), output));
        outputs.extend(settled(exported, at, gates));
    }
    Some(outputs)
}

/// What tells others that a resource is settled, if others wait for it.
fn settled(
    exported: &Exported,
    at: usize,
    gates: Option<Gates<'_>>,
) -> Option<(StatementOf, StatementOutput)> {
    let gates = gates.filter(|_| exported.elsewhere.contains(at))?;
    let resource = &exported.resources[at];
    Some((
        StatementOf::Settled(resource.instance),
        gates.settled(exported, resource),
    ))
}

fn tell_other_machine(exported: &Exported, at: usize, other: &Requirement, diagnostics: &mut Diagnostics) {
    let (own, shown) = (shown(exported, at, false), shown(exported, other.resource, true));
    let (message, label) = match &other.send {
        Some((_, parameter)) => (
            format!(
                "`{own}` is held: `{parameter}` is sent by `{shown}`, and values do not go from machine to machine"
            ),
            "a value of another machine",
        ),
        None => (
            format!(
                "`{own}` is held: it requires `{shown}`, and nobody tells here when something is right there"
            ),
            "a requirement on another machine",
        ),
    };
    let warning = Diagnostic::warning(&codes::NOT_POSSIBLE, other.span, message).label(label);
    diagnostics.push(warning.because(exported.resources[at].span, "the resource that is held"));
}

/// What comes before a resource, among what is there; with gates, what is elsewhere too.
fn edges(
    exported: &Exported,
    at: usize,
    is_kept: impl Fn(&Resource) -> bool,
    gates: bool,
) -> Vec<DesiredEdge> {
    let resource = &exported.resources[at];
    let to = id_of(&resource.identity);
    let edge = |requirement: &Requirement| {
        let other = &exported.resources[requirement.resource];
        if !is_kept(other) {
            return gates.then(|| gate_edge(&other.identity, to.clone(), requirement.span));
        }
        Some(DesiredEdge {
            from: id_of(&other.identity),
            to: to.clone(),
            notify: requirement.notify,
            send: requirement
                .send
                .iter()
                .map(|(key, parameter)| (key.clone(), (*parameter).into()))
                .collect(),
            span: requirement.span,
            parts: None,
        })
    };
    resource.requires.iter().filter_map(edge).collect()
}

/// The identity within one machine.
pub(super) fn id_of(identity: &Identity) -> ResourceId {
    ResourceId::new(identity.kind.clone(), identity.name.clone())
}

/// The statement of a resource with the answers to its deferred references, and what has no answer, in words.
fn with_answers(
    exported: &Exported,
    resource: &Resource,
    deferrals: &dyn Deferrals,
    diagnostics: &mut Diagnostics,
) -> (StatementOutput, Option<String>) {
    let mut output = resource.built.clone();
    let mut unanswered = None;
    let mut answers: Vec<(&'static str, Value)> = Vec::new();
    let mut received: Vec<&'static str> = Vec::new();
    for parameter in resource
        .parameters
        .iter()
        .filter(|parameter| !parameter.deferred.is_empty())
    {
        let name = parameter.parameter.name;
        for (path, deferred) in &parameter.deferred {
            let (what, answer) = match &deferred.source {
                // The link that the requirement becomes fills it.
                DeferredSource::Send { .. } => {
                    received.push(name);
                    continue;
                }
                DeferredSource::Int(datum) => ("a number".to_owned(), Some(datum.clone())),
                DeferredSource::Environment(Datum::Text(variable)) => (
                    format!("the variable `{variable}` of the environment"),
                    deferrals.environment(variable).map(Datum::Text),
                ),
                DeferredSource::Environment(_) => ("a variable of the environment".to_owned(), None),
                DeferredSource::Fact { resource: of, fact } => {
                    let of = exported.of_instance(*of);
                    let key = of.map(|of| format!("{}/{fact}", of.identity.key()));
                    let answer = key.as_ref().and_then(|key| deferrals.fact(key));
                    (
                        format!("the fact `{}`", key.unwrap_or_else(|| fact.to_string())),
                        answer,
                    )
                }
            };
            let answer = answer.filter(|answer| !matches!(answer, Datum::Unknown(_) | Datum::Deferred(_)));
            match answer.filter(|_| path.is_empty()) {
                None => {
                    let reason = match path.is_empty() {
                        true => format!("`{name}` takes {what}, which is not there"),
                        false => format!("`{name}` takes {what} at `{path}`, which is not possible yet"),
                    };
                    unanswered = Some(reason);
                }
                Some(datum) => match convert(&datum, parameter.parameter.parameter_type) {
                    Ok(converted) => answers.push((name, converted.value)),
                    Err(mismatch) => {
                        let message = format!("{what} cannot be the parameter `{name}`: {mismatch}");
                        let error = Diagnostic::error(&codes::UNFIT, parameter.span, message);
                        diagnostics.push(error.of_class("ResourceException"));
                    }
                },
            }
        }
    }
    if !answers.is_empty() || !received.is_empty() {
        for built in &mut output.resources {
            let kept = built
                .parameters
                .iter()
                .filter(|(name, _)| !received.contains(name));
            let entries = kept
                .map(|(name, value)| (name, value.clone()))
                .chain(answers.iter().cloned());
            let parameters = setpoint_graph::Parameters::new(entries);
            *built = Arc::new(DesiredResource {
                parameters,
                ..(**built).clone()
            });
        }
    }
    (output, unanswered)
}
