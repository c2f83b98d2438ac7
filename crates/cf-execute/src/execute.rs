//! Executes a model: a dataflow in which each statement runs when the values that it needs are there, whatever the order of the text.
//!
//! Values are in `cells`, which are given one once. `units` of work wait for cells and run in the order in which they become able to.
//! What is complete cannot be seen of a relation that holds a list or nothing: `machine` guesses, one relation at a time and only when
//! nothing else can go on, and an addition that comes later is an error. `require` finds what an expression waits for, `evaluate` its value
//! when all is there, `statements`, `lazy`, `comprehensions`, `construct`, `refine` and `lookup` do what their names say, `promises` keeps
//! relations open for branches that are not decided yet, `assign` writes cells, and `complete` looks for what is missing in the end.
//!
//! Nothing recurses over data: chains of instances may be as long as memory allows. Only expressions nest, as deep as the parser lets them.
//! After the first error that a statement meets what can run without it still runs, so that further errors are told, but nothing is frozen
//! any more; what is incomplete in the end is told all at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use blocks::Blocks;
use setpoint_cf_functions::codes::class;
use setpoint_cf_functions::context::{Read, UnsetCell};
use setpoint_cf_names::datum::{Datum, InstanceId};
use setpoint_cf_names::hir::Model;
use setpoint_cf_names::ids::EntityId;
use setpoint_diagnostics::{Diagnostics, Loader, SourceMap, Span};

pub use inputs::{Inputs, Outside, ReadKey};

use crate::export::bindings::{Bindings, Executed};
use cells::{CellId, Cells, GradualKind};
use machine::Machine;
use replay::Kept;

pub use replay::Changes;

mod assign;
mod blame;
pub mod blocks;
mod calls;
mod cells;
pub mod codes;
mod complete;
mod comprehensions;
mod construct;
mod context;
mod entities;
mod evaluate;
mod expressions;
mod frames;
pub mod importance;
mod index;
mod inputs;
pub mod json;
mod lazy;
mod lookup;
mod machine;
mod promises;
mod recording;
mod refine;
mod replay;
mod require;
mod statements;
#[cfg(test)]
mod tests;
mod units;
mod view;

/// What bounds an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// More instances than this are an error.
    pub max_instances: u64,
    /// More units of work than this are an error.
    pub max_units: u64,
    /// More rounds of freezing relations than this are an error.
    pub max_rounds: u64,
    /// The name of the project, for models that ask.
    pub project: Arc<str>,
    /// Whether it is noted what depends on the world outside, for [`Execution::replay`].
    pub record: bool,
}

impl Options {
    /// Instances that construct each other, one inside the other, are stopped at this depth: long before there are too many of them, for
    /// they would fill the memory first.
    fn max_nesting(&self) -> u64 {
        (self.max_instances / 50).max(1_000)
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            max_instances: 5_000_000,
            max_units: 500_000_000,
            max_rounds: 100_000,
            project: "".into(),
            record: false,
        }
    }
}

/// What a model has become.
#[derive(Debug)]
pub struct Execution {
    /// All instances, in the order in which they were created.
    pub instances: Blocks<Instance>,
    /// Members of all instances, among others.
    cells: Cells,
    /// What changed answers need, if that was wanted.
    kept: Option<Box<Kept>>,
    /// Variables of the main file with their names.
    pub variables: Vec<(Arc<str>, Slot)>,
    /// Lines that were printed.
    pub printed: Vec<String>,
    /// What was asked of the world outside.
    pub reads: BTreeSet<ReadKey>,
    /// What of that is not known yet.
    pub unknown_reads: BTreeSet<ReadKey>,
    /// Files that were changed, with their new texts.
    pub stored: BTreeMap<Arc<str>, String>,
    /// Contents of files by the texts that stand for them.
    files: BTreeMap<Arc<str>, Arc<[u8]>>,
    /// What went wrong, and warnings. An execution with an error is not to be used for anything but to be looked at.
    pub diagnostics: Diagnostics,
}

impl Execution {
    /// What a member of an instance came to hold, by its place among those of the entity.
    ///
    /// # Panics
    /// With an instance of another execution.
    #[must_use]
    pub fn slot(&self, instance: InstanceId, slot: u32) -> Slot {
        slot_of(&self.cells, self.cell(instance, slot))
    }

    fn cell(&self, instance: InstanceId, slot: u32) -> CellId {
        self.instances[instance.0 as usize].first.at(slot)
    }
}

/// What a cell came to hold.
fn slot_of(cells: &Cells, cell: CellId) -> Slot {
    let found = cells.get(cell);
    match cells.gradual(cell) {
        _ if found.is_set() => Slot::Value(found.value.clone()),
        Some(gradual) if gradual.is_frozen && gradual.kind == GradualKind::Optional => {
            Slot::Unset(class::OPTIONAL_VALUE)
        }
        Some(gradual) if gradual.is_frozen => Slot::Value(found.value.clone()),
        _ => Slot::Unset("UnsetException"),
    }
}

impl Executed for Execution {
    fn count(&self) -> u32 {
        self.instances.len() as u32
    }

    fn entity(&self, instance: InstanceId) -> EntityId {
        self.instances[instance.0 as usize].entity
    }

    fn span(&self, instance: InstanceId) -> Span {
        self.instances[instance.0 as usize].span
    }

    fn member(&self, instance: InstanceId, slot: u32) -> Read {
        match self.slot(instance, slot) {
            Slot::Value(value) => Read::Value(value),
            Slot::Unset(class::OPTIONAL_VALUE) => Read::Absent,
            // Nothing runs any more that could give it a value.
            Slot::Unset(_) => Read::Unset(UnsetCell(u64::MAX)),
        }
    }

    fn file(&self, marker: &str) -> Option<Arc<[u8]>> {
        self.files.get(marker).cloned()
    }

    fn place(&self, instance: InstanceId, slot: u32) -> Option<Span> {
        self.cells.place(self.cell(instance, slot))
    }

    fn may_change(&self, instance: InstanceId, slot: u32) -> bool {
        let cell = self.cell(instance, slot);
        self.kept
            .as_ref()
            .is_some_and(|kept| kept.recording.of_cell.contains_key(&cell))
    }
}

/// An instance.
#[derive(Debug)]
pub struct Instance {
    /// What it is an instance of.
    pub entity: EntityId,
    /// The constructor that created it first.
    pub span: Span,
    /// Its members lie side by side from here on.
    first: CellId,
    /// Which implementations of its entity were selected: one bit each for the first ones.
    selected: u64,
    /// Its block instance for conditions of `implement`; [`cells::NONE`] if none was needed.
    frame: u32,
}

/// What a variable or member came to hold.
#[derive(Debug, Clone)]
pub enum Slot {
    /// A value.
    Value(Datum),
    /// Nothing, and what the language calls the error of reading it.
    Unset(&'static str),
}

/// Executes a model. Templates that are read become sources, so that errors can point into them. Facts are of what `bindings` makes
/// resources.
#[must_use]
pub fn execute(
    model: &Model,
    sources: &mut SourceMap,
    inputs: &Inputs,
    loader: &dyn Loader,
    bindings: Option<&Bindings>,
    options: &Options,
) -> Execution {
    let mut machine = Machine::new(model, sources, loader, inputs, options, bindings);
    let ended = machine.run().and_then(|()| machine.check_complete());
    if let Err(error) = ended {
        machine.diagnostics.push(*error);
        let further = std::mem::take(&mut machine.further_errors);
        machine.diagnostics.extend(further);
    }
    machine.into_execution()
}
