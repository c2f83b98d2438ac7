//! What holds for all resources of a program, whatever they say: what whoever deploys it wants.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use setpoint_graph::{DesiredGraph, DesiredResource, MetaParameters};

/// What holds for all resources of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Imposed {
    /// Nothing is repaired.
    #[serde(default)]
    pub noop: bool,
    /// So many resources run at a time.
    #[serde(default)]
    pub sema: Option<u32>,
    /// No automatic edges are made.
    #[serde(default)]
    pub no_autoedges: bool,
    /// Nothing is grouped.
    #[serde(default)]
    pub no_autogroup: bool,
}

impl Imposed {
    fn on(&self, resource: &Arc<DesiredResource>) -> Arc<DesiredResource> {
        let mut meta = MetaParameters::clone(&resource.meta);
        meta.noop |= self.noop;
        meta.autoedge &= !self.no_autoedges;
        meta.autogroup &= !self.no_autogroup;
        meta.sema.extend(self.sema.map(|sema| format!(":{sema}")));
        Arc::new(DesiredResource {
            meta: meta.into(),
            ..DesiredResource::clone(resource)
        })
    }
}

/// Imposes it on one graph after the other. What did not change is not made again.
pub struct Imposing {
    imposed: Imposed,
    deploy: Option<u64>,
    given: DesiredGraph,
    made: DesiredGraph,
}

impl Imposing {
    /// Of a program that is this deploy, if it is one.
    pub fn new(imposed: Imposed, deploy: Option<u64>) -> Imposing {
        Imposing {
            imposed,
            deploy,
            given: DesiredGraph::default(),
            made: DesiredGraph::default(),
        }
    }

    /// The deploy that the graphs are of, if they are of one.
    pub fn deploy(&self) -> Option<u64> {
        self.deploy
    }

    /// The graph, with what holds for all of it.
    pub fn impose(&mut self, graph: DesiredGraph) -> DesiredGraph {
        if self.imposed == Imposed::default() {
            return graph;
        }
        let mut change = setpoint_graph::diff(&self.given, &graph);
        for resource in &mut change.added {
            *resource = self.imposed.on(resource);
        }
        for (_, resource) in &mut change.changed {
            *resource = self.imposed.on(resource);
        }
        self.made = change.apply(&self.made);
        self.given = graph;
        self.made.clone()
    }
}
