//! The order in which errors count: of all that is wrong with a program, the first one is what compiling rejects it for.

use setpoint_diagnostics::{Diagnostic, Diagnostics};

use super::resolve::{Frame, FrameId, Resolver};
use crate::stage;

/// An error with its place in the order in which errors count.
pub(super) struct RankedDiagnostic {
    /// Whether compiling ends before it comes to this, because of another error of the file.
    pub(super) is_beyond: bool,
    pub(super) order: Order,
    pub(super) diagnostic: Diagnostic,
}

/// Steps and places, from the outside in: of the blocks around an import that leads to the error, of the import, and so on into the
/// file that it imports; of the blocks around the error, and of the error itself.
pub(super) type Order = Vec<(Step, u32)>;

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

    /// Where a block stands in the order of errors.
    pub(super) fn order_in(&self, frame: FrameId) -> Order {
        let ways = &self.files[self.file_of(frame)].ways;
        let mut order = ways.first().map_or_else(Order::new, |way| way.order.clone());
        order.extend(self.blocks_around(frame));
        order
    }

    /// The blocks of a file around a place, from the outside in.
    fn blocks_around(&self, frame: FrameId) -> Order {
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
            let mut order = way.order.clone();
            order.extend(blocks);
            order.push((step, diagnostic.primary.span.start));
            let mut diagnostic = diagnostic.clone();
            if !way.imports.is_empty() {
                diagnostic = diagnostic.at_stage(stage::SCOPE);
                for import in &way.imports {
                    diagnostic = diagnostic.via(*import, "imported here");
                }
            }
            self.errors.push(RankedDiagnostic {
                is_beyond: file.is_broken,
                order,
                diagnostic,
            });
        }
    }
}
