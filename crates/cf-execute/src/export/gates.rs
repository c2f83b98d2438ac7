//! Gates: what requires a resource of another machine waits until that machine says that it is settled.
//!
//! ```text
//!  machine `db`:   pkg[postgres] ─▶ settled[db/pkg[postgres]] ── says its hash ──▶ settled/DEPLOY/db/pkg/postgres
//!                                                                                    │ in the store that machines share
//!  machine `web`:  gate[db/pkg[postgres]] ─▶ file[/etc/app.conf]      ◀── is watched ┘
//! ```
//!
//! All machines execute the same model, so each knows which of its resources others wait for, and which parameters they shall have. The
//! hash is of these as the model describes them: what is only known on a machine (a variable of its environment) counts as what it refers to.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

use serde_json::{Value as Json, json};
use setpoint_cf_names::datum::{Datum, Deferred, DeferredSource};
use setpoint_diagnostics::Span;
use setpoint_graph::{
    DesiredEdge, DesiredMembers, DesiredResource, KindSchema, Meta, MetaParameters, Parameters, ResourceId,
    StatementOutput,
};
use setpoint_value::{Marks, Value};
use sha2::{Digest, Sha256};

use super::bindings::Identity;
use super::desired::id_of;
use super::{Exported, Resource};

/// The name of the kind of what waits.
pub const GATE: &str = "gate";

/// The name of the kind of what tells others.
pub const SETTLED: &str = "settled";

/// Resources that a resource of another machine requires, with those that do.
#[derive(Debug, Default)]
pub(super) struct RequiredElsewhere(BTreeMap<usize, BTreeSet<usize>>);

impl RequiredElsewhere {
    pub(super) fn of(exported: &Exported) -> RequiredElsewhere {
        let mut found: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for (at, resource) in exported.resources.iter().enumerate() {
            for requirement in resource.requires.iter().filter(|one| one.send.is_none()) {
                let required = &exported.resources[requirement.resource];
                if required.is_of_one_machine() && required.identity.machine != resource.identity.machine {
                    found.entry(requirement.resource).or_default().insert(at);
                }
            }
        }
        RequiredElsewhere(found)
    }

    /// Those that require one.
    pub(super) fn by(&self, required: usize) -> impl Iterator<Item = usize> + '_ {
        self.0.get(&required).into_iter().flatten().copied()
    }

    pub(super) fn contains(&self, required: usize) -> bool {
        self.0.contains_key(&required)
    }
}

/// The two kinds, and where what they say to each other belongs.
#[derive(Clone, Copy)]
pub(super) struct Gates<'a> {
    deploy: &'a str,
    gate: &'static KindSchema,
    settled: &'static KindSchema,
}

impl<'a> Gates<'a> {
    /// With kinds among these; none if they are not there.
    pub(super) fn among(
        kinds: &BTreeMap<&'static str, &'static KindSchema>,
        deploy: &'a str,
    ) -> Option<Gates<'a>> {
        Some(Gates {
            deploy,
            gate: kinds.get(GATE).copied()?,
            settled: kinds.get(SETTLED).copied()?,
        })
    }

    /// What stands here for a resource of another machine.
    pub(super) fn gate(self, exported: &Exported, other: &Resource) -> StatementOutput {
        let machine = ("machine", Value::str(&*other.identity.machine));
        let said = self.said(exported, other);
        statement(
            self.gate,
            other,
            std::iter::once(machine).chain(said),
            Meta::default(),
        )
    }

    /// What tells others that a resource of this machine is settled, and comes after it.
    pub(super) fn settled(self, exported: &Exported, own: &Resource) -> StatementOutput {
        // What only reports may be wrong, so nothing is said of it.
        let meta = match own.built.resources.iter().any(|built| built.meta.noop) {
            true => MetaParameters::only_noop().into(),
            false => Meta::default(),
        };
        let mut output = statement(self.settled, own, self.said(exported, own), meta);
        let to = ResourceId::new(SETTLED, own.identity.key());
        output.edges.push(order(id_of(&own.identity), to, own.span));
        output
    }

    fn said(self, exported: &Exported, resource: &Resource) -> impl Iterator<Item = (&'static str, Value)> {
        let Identity { machine, kind, name } = &resource.identity;
        let parts = [self.deploy, machine, kind, name].map(percent_encoded);
        [
            ("resource", id_of(&resource.identity).to_string()),
            ("key", format!("settled/{}", parts.join("/"))),
            ("hash", exported.hash(resource)),
        ]
        .into_iter()
        .map(|(name, text)| (name, Value::str(text)))
    }
}

/// The edge from the gate that stands for a resource of another machine.
pub(super) fn gate_edge(other: &Identity, to: ResourceId, span: Span) -> DesiredEdge {
    order(ResourceId::new(GATE, other.key()), to, span)
}

fn order(from: ResourceId, to: ResourceId, span: Span) -> DesiredEdge {
    DesiredEdge {
        from,
        to,
        notify: false,
        send: Vec::new(),
        span,
        parts: None,
    }
}

fn statement(
    schema: &'static KindSchema,
    of: &Resource,
    parameters: impl Iterator<Item = (&'static str, Value)>,
    meta: Meta,
) -> StatementOutput {
    StatementOutput {
        resources: vec![Arc::new(DesiredResource {
            id: ResourceId::new(schema.kind, of.identity.key()),
            schema,
            parameters: Parameters::new(parameters),
            meta,
            span: of.span,
            parameter_spans: Arc::from([]),
            chain: None,
            members: DesiredMembers::default(),
        })],
        ..StatementOutput::default()
    }
}

impl Exported {
    /// The hash of what a resource's parameters are, which all machines that execute the model agree on.
    fn hash(&self, resource: &Resource) -> String {
        let parameters = resource.parameters.iter().map(|given| {
            let value = match given.deferred.is_empty() {
                true => given
                    .value
                    .unmark_deep(&mut Marks::default())
                    .to_json()
                    .unwrap_or(Json::Null),
                false => Json::Null,
            };
            let deferred = given.deferred.iter();
            let deferred = deferred.map(|(path, deferred)| json!([path, self.reference(deferred)]));
            json!([given.parameter.name, value, deferred.collect::<Json>()])
        });
        let text = parameters.collect::<Json>().to_string();
        let mut hash = String::new();
        for byte in Sha256::digest(text) {
            let _ = write!(hash, "{byte:02x}");
        }
        hash
    }

    /// What a deferred reference refers to.
    fn reference(&self, deferred: &Deferred) -> Json {
        let key = |instance| self.of_instance(instance).map(|of| of.identity.key());
        let number_or_name = |datum: &Datum| match datum {
            Datum::Text(text) => json!(text),
            Datum::Int(number) => json!(number),
            _ => Json::Null,
        };
        match &deferred.source {
            DeferredSource::Int(number) => json!(["int", number_or_name(number)]),
            DeferredSource::Environment(name) => json!(["environment", number_or_name(name)]),
            DeferredSource::Fact { resource, fact } => json!(["fact", key(*resource), fact]),
            DeferredSource::Send { resource, key: sent } => json!(["send", key(*resource), sent]),
        }
    }
}

/// A part of a key, with everything but letters, digits and `-._~` written as `%XX`, as in URLs (RFC 3986).
fn percent_encoded(part: &str) -> String {
    let mut encoded = String::with_capacity(part.len());
    for byte in part.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            _ => {
                let _ = write!(encoded, "%{byte:02X}");
            }
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::percent_encoded;

    #[test]
    fn parts_of_a_key_have_no_slash() {
        assert_eq!(percent_encoded("/etc/a b"), "%2Fetc%2Fa%20b");
        assert_eq!(percent_encoded("ssh:authorized_key"), "ssh%3Aauthorized_key");
        assert_eq!(percent_encoded("ä%~"), "%C3%A4%25~");
    }
}
