//! The agent that uses the planned state directory. The plan shows which of its resources the new program does not have.

use std::path::PathBuf;

use rustc_hash::FxHashSet;
use setpoint_agent::control::client::Client;
use setpoint_agent::control::protocol::{Ask, ResourceStatus};
use setpoint_graph::ResourceId;
use setpoint_plan::{Action, Row, Running};
use setpoint_programs::failure::Failure;

use super::super::status::ask;

/// An agent with its resources.
pub(super) struct RunningAgent {
    pub(super) running: Running,
    resources: Vec<ResourceStatus>,
}

impl RunningAgent {
    /// Asks the agent that uses a state directory; none if none runs.
    ///
    /// # Errors
    /// When the agent does not answer.
    pub(super) fn find(state_dir: PathBuf) -> Result<Option<RunningAgent>, Failure> {
        if !Client::has_listener(&state_dir) {
            return Ok(None);
        }
        let mut client = Client::connect(state_dir, true)?;
        let everything = Ask::Status {
            resources: Vec::new(),
            kinds: Vec::new(),
            standings: None,
        };
        let (host, resources) = ask(&mut client, everything)?;
        Ok(Some(RunningAgent {
            running: Running {
                pid: client.hello.pid,
                program: host.program,
            },
            resources,
        }))
    }

    /// Rows for the resources that are not in these rows: they leave the program, and stay.
    pub(super) fn let_go(&self, rows: &[Row]) -> Vec<Row> {
        let id = |kind: &str, name: &str| ResourceId::new(kind, name);
        let known: FxHashSet<ResourceId> = rows.iter().map(Row::id).collect();
        let leaving = self.resources.iter().filter(|resource| {
            !resource.hidden && !resource.reversal && !known.contains(&id(&resource.kind, &resource.name))
        });
        let mut leaving: Vec<Row> = leaving
            .map(|resource| Row::new(&id(&resource.kind, &resource.name), Action::LetGo, None))
            .collect();
        leaving.sort_by(|a, b| (&a.kind, &a.name).cmp(&(&b.kind, &b.name)));
        leaving
    }
}
