//! How much a program unfolds into when it runs.
//!
//! A function is lowered once for all calls with the same types, but each call is an instance of its own when the program runs. One
//! that calls two of the next, which call two of the next, is short and small here, and would take all memory there.

use setpoint_diagnostics::{Diagnostic, Span};
use setpoint_flow::{Block, Operation, Program, Template, TemplateId};

use crate::types::TOO_DEEP;

/// More instances than this take gigabytes.
const MOST: u64 = 1 << 20;

/// The error of a program that unfolds into more than can be handled.
pub(crate) fn too_large(program: &Program) -> Option<Diagnostic> {
    let Program { templates, entry, .. } = program;
    let mut sizes: Vec<Option<u64>> = vec![None; templates.len()];
    // Without recursion: what a template needs first, then the template.
    let mut open = vec![entry.0 as usize];
    while let Some(at) = open.last().copied() {
        let needed = templates[at]
            .nodes
            .iter()
            .flat_map(|node| node.operation.templates().into_iter().flatten());
        let missing: Vec<usize> = needed
            .map(|part| part.0 as usize)
            .filter(|part| sizes[*part].is_none())
            .collect();
        if missing.is_empty() {
            let nodes = templates[at].nodes.iter();
            let below = nodes.map(|node| size(&node.operation, &sizes));
            sizes[at] = Some(below.fold(1, u64::saturating_add));
            open.pop();
        } else {
            open.extend(missing);
        }
    }
    if sizes[entry.0 as usize].unwrap_or(0) <= MOST {
        return None;
    }
    let message = "this unfolds into more calls and includes than can be handled";
    let note = format!("at most {MOST} when the program runs");
    Some(Diagnostic::error(&TOO_DEEP, largest(templates, *entry, &sizes)?, message).note(note))
}

/// The call or include in the entry that unfolds into most.
fn largest(templates: &[Template], entry: TemplateId, sizes: &[Option<u64>]) -> Option<Span> {
    let nodes = templates[entry.0 as usize].nodes.iter();
    let largest = nodes.max_by_key(|node| size(&node.operation, sizes))?;
    Some(largest.span)
}

/// How many instances there are below a node. Of two branches one is there; how often a loop repeats is not known.
fn size(operation: &Operation, sizes: &[Option<u64>]) -> u64 {
    let of = |template: TemplateId| sizes[template.0 as usize].unwrap_or(0);
    let block = |block: &Block| of(block.template);
    match operation {
        Operation::If { then, otherwise, .. } => block(then).max(block(otherwise)),
        Operation::IfStatement { then, otherwise, .. } => {
            let [then, otherwise] = [then, otherwise].map(|branch| branch.as_ref().map_or(0, block));
            then.max(otherwise)
        }
        _ => operation
            .templates()
            .into_iter()
            .flatten()
            .map(of)
            .fold(0, u64::saturating_add),
    }
}
