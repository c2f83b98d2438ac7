//! Rows for the parts of a program that are not known before it is applied.

use rustc_hash::FxHashSet;
use setpoint_agent::program_state::Unknown;
use setpoint_diagnostics::Span;
use setpoint_graph::{ResourceId, UnknownWhat};
use setpoint_plan::{Action, Place, Row, SOME_NAME, Summary};

use crate::output::Output;

/// Adds rows for the resources that unknown blocks may hold. One that leaves the program is not said to leave if such a block may
/// hold it.
pub(super) fn add_rows(
    unknown: &Unknown,
    rows: &mut Vec<Row>,
    summary: &mut Summary,
    place: impl Fn(Span) -> Option<Place>,
) {
    let mut possible: Vec<Row> = Vec::new();
    for (block, resource) in &unknown.resources {
        let why = match place(*block) {
            Some(at) => format!(
                "depends on the {} at {}:{}, which is not known yet",
                resource.on, at.file, at.line
            ),
            None => format!("depends on a {} that is not known yet", resource.on),
        };
        let name = resource.name.clone().unwrap_or_else(|| SOME_NAME.into());
        let id = ResourceId::new(resource.kind.clone(), name);
        possible.push(row(&id, place(resource.span), why));
    }
    for part in &unknown.parts {
        if let UnknownWhat::Name(kind) = &part.what {
            let id = ResourceId::new(kind.clone(), SOME_NAME);
            possible.push(row(&id, place(part.span), "its name is not known yet".to_owned()));
        }
    }
    rows.retain(|row| {
        let stays = row.action != Action::LetGo || !possible.iter().any(|other| may_be(other, row));
        summary.let_go -= usize::from(!stays);
        stays
    });
    for row in rows.iter_mut().filter(|row| row.action == Action::Undo) {
        if let Some(other) = possible.iter().find(|other| may_be(other, row)) {
            row.action = Action::Unknown;
            row.why.clone_from(&other.why);
            summary.undone -= 1;
            summary.unknown += 1;
        }
    }
    let known: FxHashSet<ResourceId> = rows.iter().map(Row::id).collect();
    possible.retain(|row| !known.contains(&row.id()));
    possible.dedup();
    summary.unknown += possible.len();
    rows.extend(possible);
    rows.sort_by(setpoint_plan::compare);
}

fn row(id: &ResourceId, place: Option<Place>, why: String) -> Row {
    Row {
        why: Some(why),
        ..Row::new(id, Action::Unknown, place)
    }
}

/// Whether a resource can be one that a block may hold.
fn may_be(possible: &Row, row: &Row) -> bool {
    possible.kind == row.kind && (*possible.name == *SOME_NAME || possible.name == row.name)
}

/// Warns of the other parts that a plan leaves out.
pub(super) fn warn(unknown: &Unknown, output: &Output, place: impl Fn(Span) -> Option<Place>) {
    for part in &unknown.parts {
        if matches!(part.what, UnknownWhat::Block | UnknownWhat::Name(_)) {
            continue;
        }
        let at = place(part.span).map(|at| format!("{}:{}: ", at.file, at.line));
        output.warning(format!(
            "{}not known in a plan: {}",
            at.unwrap_or_default(),
            part.what
        ));
    }
}
