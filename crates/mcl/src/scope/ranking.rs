//! The order in which errors count: of all that is wrong with a program, the first one is what compiling rejects it for.

use setpoint_diagnostics::{Diagnostic, Diagnostics};
use smallvec::SmallVec;

use super::resolve::{Frame, FrameId, Resolver};
use super::sharing::{Way, WayId};
use crate::stage;

/// An error with its place in the order in which errors count.
pub(super) struct RankedDiagnostic {
    /// Whether compiling ends before it comes to this, because of another error of the file.
    pub(super) is_beyond: bool,
    /// The way to its file.
    pub(super) way: WayId,
    /// Its place in the file.
    pub(super) order: Order,
    pub(super) diagnostic: Diagnostic,
}

/// Steps and places within a file, from the outside in: of the blocks around an import or an error, and of that itself.
pub(super) type Order = SmallVec<[(Step, u32); 2]>;

/// The steps of resolving a block, in the order in which their errors count (rule names.22).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    /// Its imports are followed.
    Imports,
    /// Names that a block produces twice are looked for, in the whole file.
    Clashes,
    /// Definitions that need themselves are looked for, in the whole file.
    Cycles,
    /// Names are looked up.
    Names,
}

impl Resolver<'_> {
    /// Reports what can be said about a text alone.
    pub(super) fn report_all(&mut self, step: Step, found: &Diagnostics, file: usize) {
        for diagnostic in found {
            self.push(step, diagnostic, file, &[]);
        }
    }

    /// Reports what is wrong with a name in a block.
    pub(super) fn report(&mut self, frame: FrameId, diagnostic: Diagnostic) {
        self.report_in(Step::Names, frame, diagnostic);
    }

    pub(super) fn report_in(&mut self, step: Step, frame: FrameId, diagnostic: Diagnostic) {
        let blocks = self.blocks_around(frame);
        self.push(step, &diagnostic, self.file_of(frame), &blocks);
    }

    /// The blocks of a file around a place, from the outside in.
    pub(super) fn blocks_around(&self, frame: FrameId) -> Order {
        let mut order = Order::new();
        let mut at = Some(frame);
        while let Some(id) = at {
            let Frame {
                parent, opened_at, ..
            } = self.frames[id.0];
            order.extend(opened_at.map(|start| (Step::Names, start)));
            at = parent;
        }
        order.reverse();
        order
    }

    /// Notes an error, for each way that leads to its file.
    fn push(&mut self, step: Step, diagnostic: &Diagnostic, file: usize, blocks: &[(Step, u32)]) {
        let file = &mut self.files[file];
        file.has_errors = true;
        for way in &file.ways {
            let mut order = Order::from_slice(blocks);
            order.push((step, diagnostic.primary.span.start));
            self.errors.push(RankedDiagnostic {
                is_beyond: file.is_broken,
                way: *way,
                order,
                diagnostic: with_imports(diagnostic.clone(), *way, &self.ways),
            });
        }
    }
}

/// An error with the imports that lead to it, innermost first: of a long way the first and the last ones.
fn with_imports(mut diagnostic: Diagnostic, way: WayId, ways: &[Way]) -> Diagnostic {
    /// So many are told at each end.
    const TOLD: usize = 8;
    let mut imports = Vec::new();
    let mut at = way;
    while let Some((outer, import)) = ways[at.index()].import {
        imports.push(import);
        at = outer;
    }
    if imports.is_empty() {
        return diagnostic;
    }
    diagnostic = diagnostic.at_stage(stage::SCOPE);
    let left_out = imports.len().saturating_sub(2 * TOLD);
    for (index, import) in imports.iter().enumerate() {
        if left_out == 0 || index < TOLD {
            diagnostic = diagnostic.via(*import, "imported here");
        } else if index == TOLD + left_out {
            diagnostic = diagnostic.via(*import, format!("imported here, after {left_out} more imports"));
        } else if index > TOLD + left_out {
            diagnostic = diagnostic.via(*import, "imported here");
        }
    }
    diagnostic
}

/// The errors, those first that count first: those of a file and of what it imports in the order of their places in it.
pub(super) fn in_order(errors: Vec<RankedDiagnostic>, ways: &[Way]) -> Vec<Diagnostic> {
    /// What stands at a place: an error, or what is found on a way that begins there.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    enum Found {
        Error(usize),
        Behind(usize),
    }
    if errors.is_empty() {
        return Vec::new();
    }
    let mut inside: Vec<Vec<(&Order, Found)>> = vec![Vec::new(); ways.len()];
    for (index, error) in errors.iter().enumerate() {
        inside[error.way.index()].push((&error.order, Found::Error(index)));
    }
    for (index, way) in ways.iter().enumerate() {
        if let Some((outer, _)) = way.import {
            inside[outer.index()].push((&way.order, Found::Behind(index)));
        }
    }
    let mut ranks = vec![0; errors.len()];
    let mut open = vec![Found::Behind(0)];
    let mut rank = 0;
    while let Some(found) = open.pop() {
        match found {
            Found::Error(index) => {
                ranks[index] = rank;
                rank += 1;
            }
            Found::Behind(way) => {
                let list = &mut inside[way];
                list.sort_unstable();
                open.extend(list.drain(..).rev().map(|(_, found)| found));
            }
        }
    }
    let mut ranked: Vec<_> = ranks.into_iter().zip(errors).collect();
    ranked.sort_unstable_by_key(|(rank, error)| (error.is_beyond, *rank));
    ranked.into_iter().map(|(_, error)| error.diagnostic).collect()
}
