//! Values that pass from one resource to another: what a run publishes, and what it receives.

use std::sync::Arc;

use setpoint_graph::ResourceId;
use setpoint_value::Value;

/// A parameter that is received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// The parameter that takes the value.
    pub parameter: &'static str,
    /// Who sent it.
    pub from: ResourceId,
    /// Under which send key.
    pub key: Arc<str>,
    /// Whether it changed since the last successful run.
    pub changed: bool,
}

/// What a run published: values by send key; none for a key that is withheld.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sent {
    /// By key, in the order of the schema.
    pub keys: Vec<(&'static str, Option<Value>)>,
    /// Whether it holds although the run found drift that it may not have repaired (`plan`).
    pub is_final: bool,
}

impl Sent {
    /// The value of a key; the inner none says that it is withheld.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Option<&Value>> {
        self.keys
            .iter()
            .find(|(name, _)| *name == key)
            .map(|(_, value)| value.as_ref())
    }
}

/// What a run is given for a member of the resource.
#[derive(Debug, Clone, PartialEq)]
pub struct MemberRequest {
    /// Which one.
    pub id: ResourceId,
    /// Values for its parameters, as in [`RunRequest::transfer`](crate::machine::RunRequest::transfer).
    pub transfer: Vec<(&'static str, Option<Value>)>,
    /// All its received parameters, as in [`RunRequest::received`](crate::machine::RunRequest::received).
    pub received: Vec<Received>,
}
