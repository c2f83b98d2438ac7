//! What one machine keeps of the resources of all, as statements of a desired graph.
//!
//! A machine keeps what names it, what is for every machine, and what is for exactly one: as long as machines share nothing, each is
//! the only one that there is. For the same reason what requires a resource of another machine is held: when that one is right cannot
//! be seen from here. Deferred references to the environment and to facts are answered where that is possible; what is not, is held too.

use std::collections::BTreeSet;
use std::sync::Arc;

use setpoint_diagnostics::{Diagnostic, Diagnostics, Span};
use setpoint_graph::{DesiredEdge, DesiredResource, ResourceId, StatementOutput, UnknownPart, UnknownWhat};
use setpoint_value::Value;

use super::bindings::Identity;
use super::convert::convert;
use super::order::{behind, shown};
use super::{Exported, Resource, State, codes};
use crate::datum::{Datum, DeferredSource, InstanceId};

/// Answers deferred references.
pub trait Deferrals {
    /// A variable of the machine's environment.
    fn environment(&self, name: &str) -> Option<Arc<str>>;

    /// A fact, by `machine/kind[name]/fact`.
    fn fact(&self, key: &str) -> Option<Datum>;
}

/// What a machine keeps.
#[derive(Debug, Default)]
pub struct MachineOutputs {
    /// A statement for each resource, by the number of its instance. Those that are held are not among them.
    pub outputs: Vec<(InstanceId, StatementOutput)>,
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

/// The machine of resources that exactly one machine has.
const EXACTLY_ONE: &str = "internal";

impl Resource {
    /// Whether the machine of a name keeps it.
    #[must_use]
    pub fn is_of(&self, hostname: &str) -> bool {
        [hostname, "*", EXACTLY_ONE].contains(&&*self.identity.machine)
    }
}

/// What the machine of a name keeps.
pub fn machine_outputs(
    exported: &Exported,
    hostname: &str,
    deferrals: &dyn Deferrals,
    diagnostics: &mut Diagnostics,
) -> MachineOutputs {
    let is_kept = |resource: &Resource| resource.is_of(hostname);
    let kept: Vec<usize> = (0..exported.resources.len())
        .filter(|at| is_kept(&exported.resources[*at]))
        .collect();
    let mut reasons: Vec<(usize, String)> = Vec::new();
    let mut built = Vec::with_capacity(kept.len());
    for &at in &kept {
        let resource = &exported.resources[at];
        if let Some(other) = resource
            .requires
            .iter()
            .find(|other| !is_kept(&exported.resources[other.resource]))
        {
            tell_other_machine(exported, at, other.resource, other.span, diagnostics);
            let other = shown(exported, other.resource, true);
            reasons.push((at, format!("it requires `{other}`, which is on another machine")));
        }
        let (output, unanswered) = with_answers(exported, resource, deferrals, diagnostics);
        reasons.extend(unanswered.map(|reason| (at, reason)));
        built.push(output);
    }
    let further = behind(exported, reasons.iter().map(|(at, _)| *at).collect());
    let mut machine = MachineOutputs::default();
    let is_held = |at: usize| exported.resources[at].state != State::Available || further.contains(&at);
    for (&at, mut output) in kept.iter().zip(built) {
        let resource = &exported.resources[at];
        let edges = edges(exported, at, is_kept);
        if !is_held(at) {
            output.edges = edges;
            machine.outputs.push((resource.instance, output));
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
        machine.held.push(HeldResource {
            id: id_of(&resource.identity),
            resource: output.resources.pop(),
            edges,
            state,
            reason,
            span: resource.span,
        });
    }
    machine
}

/// The statements of some resources that are others now, on a machine that kept what it kept. None: not only these are others.
#[must_use]
pub fn updated_outputs(
    exported: &Exported,
    changed: &BTreeSet<usize>,
    held: &[HeldResource],
    hostname: &str,
    deferrals: &dyn Deferrals,
) -> Option<Vec<(InstanceId, StatementOutput)>> {
    let is_kept = |resource: &Resource| resource.is_of(hostname);
    let mut outputs = Vec::new();
    for &at in changed {
        let resource = &exported.resources[at];
        if !is_kept(resource) {
            continue;
        }
        let id = id_of(&resource.identity);
        let mut diagnostics = Diagnostics::new();
        let (mut output, unanswered) = with_answers(exported, resource, deferrals, &mut diagnostics);
        let is_available =
            resource.state == State::Available && unanswered.is_none() && diagnostics.is_empty();
        if !is_available || held.iter().any(|held| held.id == id) {
            return None;
        }
        output.edges = edges(exported, at, is_kept);
        outputs.push((resource.instance, output));
    }
    Some(outputs)
}

fn tell_other_machine(
    exported: &Exported,
    at: usize,
    other: usize,
    span: Span,
    diagnostics: &mut Diagnostics,
) {
    let (own, other) = (shown(exported, at, false), shown(exported, other, true));
    let message = format!(
        "`{own}` is held: it requires `{other}`, and machines do not tell each other yet when something is right"
    );
    let warning =
        Diagnostic::warning(&codes::NOT_POSSIBLE, span, message).label("a requirement on another machine");
    diagnostics.push(warning.because(exported.resources[at].span, "the resource that is held"));
}

/// What comes before a resource, among those that are there.
fn edges(exported: &Exported, at: usize, is_kept: impl Fn(&Resource) -> bool) -> Vec<DesiredEdge> {
    let resource = &exported.resources[at];
    let to = id_of(&resource.identity);
    let requires = resource
        .requires
        .iter()
        .filter(|requirement| is_kept(&exported.resources[requirement.resource]));
    requires
        .map(|requirement| DesiredEdge {
            from: id_of(&exported.resources[requirement.resource].identity),
            to: to.clone(),
            notify: requirement.notify,
            send: requirement
                .send
                .iter()
                .map(|(key, parameter)| (key.clone(), (*parameter).into()))
                .collect(),
            span: requirement.span,
        })
        .collect()
}

/// The identity within one machine.
fn id_of(identity: &Identity) -> ResourceId {
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
