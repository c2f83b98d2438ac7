//! A resource as the socket tells it.

use setpoint_engine::machine::{VertexState, VertexStatus};

use super::protocol::{Doing, Place, ResourceStatus, seconds};
use crate::program_state::Accepted;

/// Bytes of an error that a row shows. The events have all of it.
const LONGEST_ERROR: usize = 4096;

/// How a resource is, and where its statement stands in the program.
pub(super) fn row(status: &VertexStatus, accepted: Option<&Accepted>) -> ResourceStatus {
    let wanted = accepted.and_then(|accepted| {
        let graph = &accepted.graph;
        let visible = graph.resources.get(&status.id).filter(|_| !status.hidden);
        visible.or_else(|| graph.hidden.get(&status.id)?.first())
    });
    let place = wanted.and_then(|wanted| {
        let (file, position) = accepted?.places.place(wanted.span)?;
        Some(Place {
            file: file.to_owned(),
            line: position.line,
            col: position.column,
        })
    });
    let (mut until, mut behind, mut semaphores) = (None, None, Vec::new());
    let does = match &status.state {
        VertexState::WaitingToBeAdded => Doing::WaitingToBeAdded,
        VertexState::Starting => Doing::Starting,
        VertexState::Clean => Doing::Watching,
        VertexState::WaitingFor(other) | VertexState::BlockedBy(other) => {
            behind = Some(other.to_string());
            Doing::WaitingForAnother
        }
        VertexState::WaitingForHost => Doing::WaitingForHost,
        VertexState::Ready => Doing::Ready,
        VertexState::WaitingForSemaphore => {
            semaphores = wanted.map(|wanted| wanted.meta.sema.clone()).unwrap_or_default();
            Doing::WaitingForSemaphore
        }
        VertexState::LimitedUntil(moment) => {
            until = Some(seconds(*moment));
            Doing::Limited
        }
        VertexState::BackingOffUntil(moment) => {
            until = Some(seconds(*moment));
            Doing::BackingOff
        }
        VertexState::Running(_) => Doing::Running,
        VertexState::GaveUp => Doing::Failed,
        VertexState::Finishing => Doing::Finishing,
    };
    ResourceStatus {
        kind: status.id.kind.to_string(),
        name: status.id.name.to_string(),
        group: status.group.as_ref().map(ToString::to_string),
        standing: status.standing,
        since: seconds(status.since),
        does,
        error: status.error.as_deref().map(shortened),
        until,
        behind,
        behind_awaits: status.behind_awaits,
        semaphores,
        noop: status.noop,
        hidden: status.hidden,
        reversal: status.reversal,
        refresh_pending: status.refresh_pending,
        place,
    }
}

fn shortened(error: &str) -> String {
    if error.len() <= LONGEST_ERROR {
        return error.to_owned();
    }
    let mut end = LONGEST_ERROR;
    while !error.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &error[..end])
}
