//! What a program says about resources and edges, with values still to be filled in.
//!
//! `V` is whatever stands for a value: a slot of a dataflow template in a program. [`StatementOutput`] is what a statement
//! gives once its values are there.

use std::fmt;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use setpoint_diagnostics::Span;

use crate::{DesiredEdge, DesiredResource, KindSchema, MetaName, ParameterSchema, ResourceId};

/// `kind name { … }`.
#[derive(Debug, Clone)]
pub struct ResourceStatement<V> {
    /// The kind as written.
    pub kind: Arc<str>,
    /// Its description; none for an unknown kind, which is an error only when the graph is built (R3).
    pub schema: Option<&'static KindSchema>,
    /// A str or a list of str.
    pub name: V,
    /// What the statement sets, in the order of the text.
    pub fields: Vec<FieldItem<V>>,
    /// The meta parameters that it sets, in the order of the text.
    pub meta: Vec<MetaItem<V>>,
    /// The edges that it writes inside its braces.
    pub edges: Vec<EdgeItem<V>>,
    /// Where it begins: its kind and its name. What is wrong with it as a whole is shown there.
    pub head: Span,
    /// The place of the whole statement.
    pub span: Span,
}

/// `parameter => value,` or `parameter => condition ?: value,`.
#[derive(Debug, Clone)]
pub struct FieldItem<V> {
    /// The parameter of the kind that it sets.
    pub parameter: &'static ParameterSchema,
    /// What it is set to.
    pub value: V,
    /// Whether it is set at all.
    pub condition: Option<V>,
    /// The place of the item, without its comma.
    pub span: Span,
}

/// `Meta:name => value,`; the struct form has one for each of its fields, and `None` as name for a struct that is only known
/// as a value (it then holds all fields, by name).
#[derive(Debug, Clone)]
pub struct MetaItem<V> {
    /// Which one; none for a whole struct.
    pub name: Option<MetaName>,
    /// What it is set to.
    pub value: V,
    /// Whether it is set at all.
    pub condition: Option<V>,
    /// The place of the item, without its comma.
    pub span: Span,
}

/// `Before => Kind[name],` and its kin.
#[derive(Debug, Clone)]
pub struct EdgeItem<V> {
    /// Which way, and whether it notifies.
    pub property: EdgeProperty,
    /// The other end.
    pub endpoint: EdgeEndpoint<V>,
    /// Whether the edge exists.
    pub condition: Option<V>,
    /// The place of the item, without its comma.
    pub span: Span,
}

/// The four edge properties.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EdgeProperty {
    /// This one first.
    Before,
    /// This one first, and it notifies.
    Notify,
    /// The other first.
    Depend,
    /// The other first, and it notifies.
    Listen,
}

/// One end of an edge, `Kind[name]`, or several where the name is a list.
#[derive(Debug, Clone)]
pub struct EdgeEndpoint<V> {
    /// The kind, lower case.
    pub kind: Arc<str>,
    /// A str or a list of str.
    pub name: V,
    /// The place of kind and name.
    pub span: Span,
}

/// `A[…] -> B[…] -> …` or `A[…].key -> B[…].parameter`.
#[derive(Debug, Clone)]
pub struct EdgeStatement<V> {
    /// Two or more.
    pub endpoints: Vec<EdgeEndpoint<V>>,
    /// Send key and parameter; then there are exactly two endpoints.
    pub send: Option<(Arc<str>, Arc<str>)>,
    /// The place of the whole statement.
    pub span: Span,
}

/// What one statement gives for its current values.
#[derive(Debug, Clone, Default)]
pub struct StatementOutput {
    /// A resource for each name, in the order of the names.
    pub resources: Vec<Arc<DesiredResource>>,
    /// Edges, whose ends need not exist yet.
    pub edges: Vec<DesiredEdge>,
    /// What could not be built because a value is not known yet.
    pub unknown: Vec<UnknownPart>,
    /// The statement: where mistakes of its edges are reported. Without it they are reported at the edge's own span.
    pub span: Option<Span>,
}

impl StatementOutput {
    /// Takes from an older output whatever is the same in both, so that it is one in memory and need not be compared again. Answers
    /// whether that is everything.
    #[must_use]
    pub fn share(&mut self, old: &StatementOutput) -> bool {
        let mut by_id: Option<FxHashMap<&ResourceId, &Arc<DesiredResource>>> = None;
        let mut is_same = old.resources.len() == self.resources.len();
        for (at, resource) in self.resources.iter_mut().enumerate() {
            let known = match old.resources.get(at) {
                Some(known) if known.id == resource.id => Some(known),
                _ => {
                    is_same = false;
                    by_id
                        .get_or_insert_with(|| old.resources.iter().map(|known| (&known.id, known)).collect())
                        .get(&resource.id)
                        .copied()
                }
            };
            match known {
                Some(known) if known.is_interchangeable(resource) => *resource = known.clone(),
                _ => is_same = false,
            }
        }
        is_same && self.is_same_but_for_resources(old)
    }

    /// Whether both want the same, in the same places. What they share is not compared.
    #[must_use]
    pub fn is_same(&self, other: &StatementOutput) -> bool {
        let mut pairs = self.resources.iter().zip(&other.resources);
        self.resources.len() == other.resources.len()
            && self.is_same_but_for_resources(other)
            && pairs.all(|(a, b)| Arc::ptr_eq(a, b) || a.is_interchangeable(b))
    }

    fn is_same_but_for_resources(&self, other: &StatementOutput) -> bool {
        self.edges == other.edges && self.unknown == other.unknown && self.span == other.span
    }
}

/// A part of a statement that is unknown until it is applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownPart {
    /// The item or statement.
    pub span: Span,
    /// What of it is unknown.
    pub what: UnknownWhat,
}

/// Which part of a statement is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnknownWhat {
    /// The statements of a block whose condition, list or map is unknown: it may hold any resource.
    Block,
    /// The name of a resource of this kind: nothing is built from it.
    Name(Arc<str>),
    /// The name at an end of an edge: that edge is left out.
    EdgeName,
    /// The condition of an edge: the edge is left out.
    EdgeCondition,
    /// The condition of a parameter: the parameter is an unknown.
    Condition(&'static str),
    /// A meta parameter, or the whole struct of them: the default is assumed.
    Meta(Option<MetaName>),
}

impl fmt::Display for UnknownWhat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnknownWhat::Block => f.write_str("what this block describes, if anything"),
            UnknownWhat::Name(kind) => write!(f, "names, and so resources, of the kind `{kind}`"),
            UnknownWhat::EdgeName => f.write_str("an end of an edge, which is left out"),
            UnknownWhat::EdgeCondition => f.write_str("whether there is an edge, which is left out"),
            UnknownWhat::Condition(parameter) => write!(f, "whether `{parameter}` is set"),
            UnknownWhat::Meta(Some(name)) => write!(f, "`Meta:{}`, whose default is assumed", name.name()),
            UnknownWhat::Meta(None) => f.write_str("meta parameters, whose defaults are assumed"),
        }
    }
}
