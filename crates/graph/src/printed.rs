//! What is printed of a graph, whatever the form.

use std::sync::Arc;

use crate::{DesiredEdge, DesiredGraph, ResourceId, UnknownPart};

/// A graph as it is printed: with the edges that the engine adds by itself, if they are known, and with what is unknown.
#[derive(Debug, Clone, Copy)]
pub struct PrintedGraph<'a> {
    /// What the program wants.
    pub graph: &'a DesiredGraph,
    /// Automatic edges that the graph does not have.
    pub automatic: &'a [Arc<DesiredEdge>],
    /// Which resources are applied as one: one of them, and those that are applied as part of it.
    pub groups: &'a [(ResourceId, Vec<ResourceId>)],
    /// What is left out of the graph because it is not known.
    pub unknown: &'a [UnknownPart],
    /// Whether each resource shows the chain through which it comes to be there.
    pub chains: bool,
}

impl<'a> From<&'a DesiredGraph> for PrintedGraph<'a> {
    fn from(graph: &'a DesiredGraph) -> PrintedGraph<'a> {
        PrintedGraph {
            graph,
            automatic: &[],
            groups: &[],
            unknown: &[],
            chains: false,
        }
    }
}
