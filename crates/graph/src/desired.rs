//! The desired graph: pure data, printable, comparable, and shared from one version to the next.

mod members;

use std::fmt;
use std::sync::Arc;

use setpoint_diagnostics::Span;

use crate::{Cause, KindSchema, Link, Meta, Parameters};

pub use members::{DesiredMembers, Sending};

/// Identity of a resource: its kind and its name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResourceId {
    /// The kind, `file`.
    pub kind: Arc<str>,
    /// The name, which is never empty.
    pub name: Arc<str>,
}

impl ResourceId {
    /// The identity of the resource `kind[name]`.
    #[must_use]
    pub fn new(kind: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> ResourceId {
        ResourceId {
            kind: kind.into(),
            name: name.into(),
        }
    }
}

impl fmt::Display for ResourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]", self.kind, self.name)
    }
}

/// A resource that shall be. Shared by reference from one graph to the next while nothing about it changes.
#[derive(Debug, Clone)]
pub struct DesiredResource {
    /// Kind and name.
    pub id: ResourceId,
    /// Description of its kind.
    pub schema: &'static KindSchema,
    /// What the program sets.
    pub parameters: Parameters,
    /// What the engine is told.
    pub meta: Meta,
    /// The statement that made it.
    pub span: Span,
    /// Spans of the parameters that are set, by name, for messages.
    pub parameter_spans: Arc<[(&'static str, Span)]>,
    /// Through which includes, loops and conditions the statement came to be there; none at the top of the program.
    pub chain: Option<Arc<Link>>,
    /// What is applied as part of it.
    pub members: DesiredMembers,
}

impl DesiredResource {
    /// Whether another host exports the resource, so that its parameters may be those of that host.
    #[must_use]
    pub fn is_collected(&self) -> bool {
        let innermost = self.chain.as_deref();
        innermost.is_some_and(|link| matches!(link.cause, Cause::Collect(_)))
    }

    /// Whether both want the same: kind, name, parameters and meta parameters, the lists among these without regard to
    /// order, and members. Where it was written does not count.
    #[must_use]
    pub fn is_equal(&self, other: &DesiredResource) -> bool {
        self.is_equal_alone(other) && self.members.is_equal(&other.members)
    }

    /// The same without regard to members.
    #[must_use]
    pub fn is_equal_alone(&self, other: &DesiredResource) -> bool {
        self.id == other.id && self.parameters == other.parameters && self.meta.is_same(&other.meta)
    }

    /// Whether a running resource can go on as it is when it shall be this one: both are equal, and where they leave retries to the
    /// engine, both do.
    #[must_use]
    pub fn is_unchanged(&self, new: &DesiredResource) -> bool {
        self.is_equal(new) && self.meta.leaves_alike(&new.meta)
    }

    /// Whether both are equal and come from the same place in the same way, so that one can stand for the other in everything that
    /// is shown.
    #[must_use]
    pub fn is_interchangeable(&self, other: &DesiredResource) -> bool {
        self == other
            && self.span == other.span
            && self.parameter_spans == other.parameter_spans
            && self.chain == other.chain
    }

    /// Where a parameter was written, else the statement.
    #[must_use]
    pub fn parameter_span(&self, name: &str) -> Span {
        self.parameter_spans
            .iter()
            .find(|(n, _)| *n == name)
            .map_or(self.span, |(_, span)| *span)
    }
}

/// Equal means equal in everything that the program says, the order of lists included, wherever it says so;
/// [`DesiredResource::is_equal`] is what matters to a machine.
impl PartialEq for DesiredResource {
    fn eq(&self, other: &DesiredResource) -> bool {
        self.id == other.id
            && self.schema.is_same(other.schema)
            && self.parameters == other.parameters
            && self.meta == other.meta
            && self.meta.written.is_same(other.meta.written)
            && self.members == other.members
    }
}

impl Eq for DesiredResource {}

/// An edge between two resources: `from` comes first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DesiredEdge {
    /// The one that comes first.
    pub from: ResourceId,
    /// The one that waits.
    pub to: ResourceId,
    /// Whether a repair of `from` refreshes `to`.
    pub notify: bool,
    /// Send keys of `from` with the parameters of `to` that take them, sorted.
    pub send: Vec<(Arc<str>, Arc<str>)>,
    /// The statement, or the item of a resource statement, that made it (the first, where several did).
    pub span: Span,
    /// The edges of members that it stands for, sorted; none for an edge between two resources that are in no group. It notifies if
    /// any of them does.
    pub parts: Option<Box<[Arc<DesiredEdge>]>>,
}

impl DesiredEdge {
    /// Whether both are the same edge, wherever they were written.
    #[must_use]
    pub fn is_equal(&self, other: &DesiredEdge) -> bool {
        self.from == other.from
            && self.to == other.to
            && self.notify == other.notify
            && self.send == other.send
            && self.parts().len() == other.parts().len()
            && self
                .parts()
                .iter()
                .zip(other.parts())
                .all(|(a, b)| Arc::ptr_eq(a, b) || a.is_equal(b))
    }
}

/// Everything that shall be. A clone is cheap; two versions share what did not change, so that comparing them costs what
/// changed.
#[derive(Debug, Clone, Default)]
pub struct DesiredGraph {
    /// Rises with each version; the engine refuses an older one.
    pub generation: u64,
    /// Resources that are applied here.
    pub resources: imbl::OrdMap<ResourceId, Arc<DesiredResource>>,
    /// Hidden resources; any number of one identity.
    pub hidden: imbl::OrdMap<ResourceId, Vec<Arc<DesiredResource>>>,
    /// Edges by their ends.
    pub edges: imbl::OrdMap<(ResourceId, ResourceId), Arc<DesiredEdge>>,
}

impl DesiredGraph {
    /// The resource of this kind and name that is applied here.
    #[must_use]
    pub fn resource(&self, kind: &str, name: &str) -> Option<&Arc<DesiredResource>> {
        self.resources.get(&ResourceId::new(kind, name))
    }

    /// The edge between these two, if there is one.
    #[must_use]
    pub fn edge(&self, from: &ResourceId, to: &ResourceId) -> Option<&Arc<DesiredEdge>> {
        self.edges.get(&(from.clone(), to.clone()))
    }
}
