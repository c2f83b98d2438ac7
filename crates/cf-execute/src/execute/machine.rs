//! The running model, and the loop that runs it: units first, then, one at a time, what has to be frozen so that others can go on.

use std::cell::OnceCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use setpoint_cf_functions::context::{Cache, Stop, UnsetCell};
use setpoint_cf_names::datum::{Datum, InstanceId, Unknowns};
use setpoint_cf_names::hir::{Block, Model};
use setpoint_cf_names::ids::{EntityId, ImplementationId};
use setpoint_diagnostics::{Diagnostic, Diagnostics, Loader, SourceMap, Span};

use super::blocks::Blocks;
use super::cells::{CellId, Cells, Element, GradualKind, NONE};
use super::construct::Plans;
use super::entities::Entities;
use super::expressions::{BlockKey, Expressions};
use super::frames::Frame;
use super::index::Indexes;
use super::inputs::{Inputs, ReadKey};
use super::promises::Promises;
use super::recording::Recorder;
use super::units::{Scope, Sink, UnitId, Units, Work};
use super::{Instance, Options, codes};
use crate::export::bindings::Bindings;

/// What may go wrong while a unit runs.
pub(super) type Run<T> = Result<T, Stop>;

/// A model while it runs.
pub(super) struct Machine<'m> {
    pub(super) model: &'m Model,
    pub(super) sources: &'m mut SourceMap,
    pub(super) loader: &'m dyn Loader,
    pub(super) inputs: &'m Inputs,
    pub(super) options: &'m Options,
    /// Which instances are resources, for facts of them.
    pub(super) bindings: Option<&'m Bindings>,
    pub(super) entities: Entities,
    pub(super) cells: Cells,
    pub(super) units: Units<'m>,
    pub(super) frames: Blocks<Frame>,
    /// Found when they are needed first.
    pub(super) expressions: OnceCell<Expressions<'m>>,
    /// Notes what depends on the world outside, if somebody wants that.
    pub(super) recorder: Option<Box<Recorder>>,
    /// Where the variables of each namespace begin.
    pub(super) namespaces: Vec<CellId>,
    pub(super) instances: Blocks<Instance>,
    /// How many constructions, one inside the other, led to each of them.
    pub(super) nesting: Blocks<u32>,
    /// Places of further constructions of instances that were constructed more than once.
    pub(super) constructed_again: FxHashMap<InstanceId, Vec<Span>>,
    /// Implementations that were selected and have no bit.
    pub(super) selected: FxHashSet<(InstanceId, ImplementationId)>,
    pub(super) indexes: Indexes,
    pub(super) plans: Plans<'m>,
    pub(super) promises: Promises<'m>,
    /// Results of comprehensions that are not complete: those of each element.
    pub(super) partial: FxHashMap<UnitId, Vec<smallvec::SmallVec<[Datum; 1]>>>,
    /// Results of annotations, to be looked at in the end.
    pub(super) annotations: Vec<(CellId, Span)>,
    pub(super) unknowns: Unknowns,
    pub(super) printed: Vec<String>,
    pub(super) reads: BTreeSet<ReadKey>,
    pub(super) unknown_reads: BTreeSet<ReadKey>,
    pub(super) stored: BTreeMap<Arc<str>, String>,
    /// Contents of files by the texts that stand for them.
    pub(super) files: BTreeMap<Arc<str>, Arc<[u8]>>,
    pub(super) cache: Cache,
    pub(super) template_sources: FxHashMap<Arc<str>, setpoint_diagnostics::FileId>,
    pub(super) diagnostics: Diagnostics,
    /// How deep listeners are telling each other elements.
    pub(super) telling: u32,
    /// What is told when that has become less deep.
    pub(super) untold: VecDeque<(UnitId, Datum)>,
    /// Those that may be frozen, by rank.
    possible: Vec<VecDeque<u32>>,
    /// Those whose freezing would have let nobody go on, as they came; some have been taken out since.
    parked: Vec<u32>,
    parkings: u32,
    /// Those of them that somebody waits for by now, by when they were parked.
    parked_wanted: BTreeMap<u32, u32>,
    /// Those that may be complete but for promises.
    self_promised: Vec<u32>,
    /// Who waits for what is promised: rank, age of the unit, order of waiting.
    promised: BinaryHeap<Reverse<(u32, u32, u32, u32)>>,
    attached: u32,
    units_run: u64,
    /// What has gone wrong so far, while the rest is still looked at.
    failure: Option<Failure>,
    /// What was found after the first error.
    pub(super) further_errors: Vec<Diagnostic>,
}

/// An execution that has failed.
#[derive(Debug)]
struct Failure {
    /// The first one is the one that the language tells.
    errors: Vec<Diagnostic>,
    /// How many lines were printed before it.
    printed: usize,
    /// How many units had run.
    units_run: u64,
}

impl<'m> Machine<'m> {
    pub(super) fn new(
        model: &'m Model,
        sources: &'m mut SourceMap,
        loader: &'m dyn Loader,
        inputs: &'m Inputs,
        options: &'m Options,
        bindings: Option<&'m Bindings>,
    ) -> Machine<'m> {
        let entities = Entities::of(model);
        let possible = (0..=entities.ranks).map(|_| VecDeque::new()).collect();
        Machine {
            model,
            sources,
            loader,
            inputs,
            options,
            bindings,
            entities,
            cells: Cells::new(),
            units: Units::new(),
            frames: Blocks::new(),
            expressions: OnceCell::new(),
            recorder: options.record.then(Box::default),
            namespaces: Vec::new(),
            instances: Blocks::new(),
            nesting: Blocks::new(),
            constructed_again: FxHashMap::default(),
            selected: FxHashSet::default(),
            indexes: Indexes::new(model.indexes.len()),
            plans: Plans::default(),
            promises: Promises::default(),
            partial: FxHashMap::default(),
            annotations: Vec::new(),
            unknowns: Unknowns::default(),
            printed: Vec::new(),
            reads: BTreeSet::new(),
            unknown_reads: BTreeSet::new(),
            stored: BTreeMap::new(),
            files: BTreeMap::new(),
            cache: Cache::default(),
            template_sources: FxHashMap::default(),
            diagnostics: Diagnostics::new(),
            telling: 0,
            untold: VecDeque::new(),
            possible,
            parked: Vec::new(),
            parkings: 0,
            parked_wanted: BTreeMap::new(),
            self_promised: Vec::new(),
            promised: BinaryHeap::new(),
            attached: 0,
            units_run: 0,
            failure: None,
            further_errors: Vec::new(),
        }
    }

    /// Runs everything until nothing is left to do.
    pub(super) fn run(&mut self) -> Result<(), Box<Diagnostic>> {
        self.emit_model()?;
        let mut rounds = 0;
        loop {
            self.run_units()?;
            if !self.freeze_something() {
                return Ok(());
            }
            rounds += 1;
            if rounds > self.options.max_rounds {
                return Err(Box::new(self.too_many_rounds()));
            }
        }
    }

    /// Sets up the variables of all namespaces, the annotations of relations, and all statements at the top of files.
    fn emit_model(&mut self) -> Result<(), Box<Diagnostic>> {
        for namespace in &self.model.namespaces {
            let first = self.cells.add(namespace.body.variables.len(), NONE);
            self.namespaces.push(first);
        }
        let top = TOP;
        for relation in &self.model.relations {
            for annotation in &relation.annotations {
                let cell = self.cells.add(1, NONE);
                self.annotations.push((cell, annotation.span));
                let emitted = self.evaluate_into(annotation, Sink::Cell(cell), top);
                emitted.map_err(Machine::complete_error)?;
            }
        }
        for namespace in &self.model.namespaces {
            for statement in &namespace.body.statements {
                if let Err(stop) = self.emit_statement(statement, top) {
                    // What else is wrong before anything runs, as a name that is not found, is told too.
                    let error = Machine::complete_error(stop);
                    self.fail_unit(error)?;
                }
            }
        }
        self.record_rest();
        match self.failure.take() {
            Some(failure) => Err(self.end(failure)),
            None => Ok(()),
        }
    }

    /// A cell is read: what depends on the world outside is noted.
    pub(super) fn touch(&self, cell: CellId) {
        if let Some(recorder) = &self.recorder {
            recorder.touch(cell);
        }
    }

    /// The block of a name.
    pub(super) fn block(&self, key: BlockKey) -> Option<&'m Block> {
        self.all_expressions().block(key)
    }

    /// All expressions and blocks of the model.
    pub(super) fn all_expressions(&self) -> &Expressions<'m> {
        self.expressions.get_or_init(|| Expressions::of(self.model))
    }

    /// The error of a [`Stop`] outside of units, where nothing can wait.
    pub(super) fn complete_error(stop: Stop) -> Box<Diagnostic> {
        match stop {
            Stop::Error(error) => error,
            Stop::Unset(_) => Box::new(Diagnostic::error(
                &codes::NOT_EXECUTED,
                Span::new(setpoint_diagnostics::FileId(0), 0, 0),
                "a value is needed before anything has run",
            )),
        }
    }

    /// Runs what can run. After an error what does not depend on it still runs, for what else is wrong; then the first error is the answer.
    fn run_units(&mut self) -> Result<(), Box<Diagnostic>> {
        while let Some(unit) = self.units.next() {
            self.units_run += 1;
            if self.units_run > self.options.max_units {
                return Err(Box::new(self.too_much("units of work", self.options.max_units)));
            }
            let printed = self.printed.len();
            match self.run_unit(unit) {
                Ok(()) => self.record_rest(),
                Err(Stop::Error(error)) => self.fail_unit(error)?,
                Err(Stop::Unset(UnsetCell(cell))) => {
                    // It runs again when there is a value.
                    if let Some(recorder) = &mut self.recorder {
                        recorder.take_met();
                        recorder.recording.is_final |= self.printed.len() != printed;
                    }
                    self.wait_again(unit, CellId(cell as u32));
                }
            }
        }
        match self.failure.take() {
            Some(failure) => Err(self.end(failure)),
            None => Ok(()),
        }
    }

    /// A unit has failed: it sets nothing, so whatever waits for it does not run. Answers the first error when enough has been looked at.
    fn fail_unit(&mut self, error: Box<Diagnostic>) -> Result<(), Box<Diagnostic>> {
        /// More errors than these nobody reads.
        const MOST_ERRORS: usize = 20;
        /// So much still runs after the first error.
        const MOST_UNITS: u64 = 100_000;
        let is_last = error.code == &codes::ENDLESS;
        let (printed, units_run) = (self.printed.len(), self.units_run);
        let failure = self.failure.get_or_insert_with(|| Failure {
            errors: Vec::new(),
            printed,
            units_run,
        });
        let is_new =
            |known: &Diagnostic| known.code != error.code || known.primary.span != error.primary.span;
        if failure.errors.iter().all(is_new) {
            failure.errors.push(*error);
        }
        let is_enough = failure.errors.len() >= MOST_ERRORS || units_run - failure.units_run > MOST_UNITS;
        // Whoever was telling elements has stopped in the middle.
        self.telling = 0;
        self.untold.clear();
        match self.failure.take_if(|_| is_last || is_enough) {
            Some(failure) => Err(self.end(failure)),
            None => Ok(()),
        }
    }

    /// The first error of an execution that failed; the further ones are kept. What was printed after it is not told.
    fn end(&mut self, failure: Failure) -> Box<Diagnostic> {
        self.printed.truncate(failure.printed);
        let mut errors = failure.errors.into_iter();
        let first = errors.next();
        self.further_errors = errors.collect();
        // There is at least the one that it failed with.
        first.map_or_else(|| Box::new(self.too_many_rounds()), Box::new)
    }

    /// Lets a unit that has begun to run wait for a cell.
    pub(super) fn wait_again(&mut self, unit: UnitId, cell: CellId) {
        self.units.hold(unit);
        if !self.cells.is_ready(cell) {
            self.wait(unit, cell, false);
        }
        self.units.release(unit);
    }

    /// Lets a unit wait for a cell. One that listens does not need it to be frozen.
    pub(super) fn wait(&mut self, unit: UnitId, cell: CellId, listens: bool) {
        self.units.hold(unit);
        self.cells.attach(cell, unit, listens);
        if listens {
            return;
        }
        let number = self.cells.get(cell).gradual;
        let Some(gradual) = self.cells.graduals.get(number as usize) else {
            return;
        };
        if gradual.parked != NONE {
            self.parked_wanted.insert(gradual.parked, number);
        }
        if gradual.providers > 0 {
            let key = (
                gradual.rank,
                self.units.get(unit).registered,
                self.attached,
                number,
            );
            self.attached = self.attached.wrapping_add(1);
            self.promised.push(Reverse(key));
        }
    }

    /// Promises that a relation may be added to. Answers whether it is one.
    pub(super) fn promise(&mut self, cell: CellId) -> bool {
        let number = self.cells.get(cell).gradual;
        let Some(gradual) = self.cells.graduals.get_mut(number as usize) else {
            return false;
        };
        gradual.providers += 1;
        if gradual.providers == 1 && gradual.waiters > 0 {
            let rank = gradual.rank;
            for unit in self.cells.waiters(cell) {
                let key = (rank, self.units.get(unit).registered, self.attached, number);
                self.attached = self.attached.wrapping_add(1);
                self.promised.push(Reverse(key));
            }
        }
        true
    }

    /// A promise is kept.
    pub(super) fn keep_promise(&mut self, cell: CellId) {
        let number = self.cells.get(cell).gradual;
        let Some(gradual) = self.cells.graduals.get_mut(number as usize) else {
            return;
        };
        gradual.providers = gradual.providers.saturating_sub(1);
        self.queue_if_possible(number);
    }

    /// Puts a relation on the queue of those that may be frozen if it may be complete.
    pub(super) fn queue_if_possible(&mut self, number: u32) {
        let Some(gradual) = self.cells.graduals.get(number as usize) else {
            return;
        };
        if gradual.is_queued || gradual.is_frozen || !self.has_enough(number) {
            return;
        }
        if gradual.providers == 0 {
            self.queue(number);
        } else if !gradual.is_self_promised {
            self.cells.graduals[number as usize].is_self_promised = true;
            self.self_promised.push(number);
        }
    }

    /// Puts a relation on that queue.
    pub(super) fn queue(&mut self, number: u32) {
        let gradual = &mut self.cells.graduals[number as usize];
        gradual.is_queued = true;
        self.possible[gradual.rank as usize].push_back(number);
    }

    /// Whether a relation holds as much as it must.
    pub(super) fn has_enough(&self, number: u32) -> bool {
        let gradual = &self.cells.graduals[number as usize];
        match gradual.kind {
            GradualKind::Optional | GradualKind::OptionalAttribute => true,
            GradualKind::List => gradual.elements().len() as i64 >= self.low(gradual.cell),
        }
    }

    /// Nothing is added any more; whoever waits goes on.
    pub(super) fn freeze(&mut self, cell: CellId) {
        let Some(gradual) = self.cells.gradual_mut(cell) else {
            return;
        };
        if gradual.is_frozen {
            return;
        }
        gradual.is_frozen = true;
        gradual.providers = 0;
        if gradual.kind == GradualKind::List
            && let Some(gradual) = self.cells.gradual(cell)
        {
            self.cells.get_mut(cell).value = self.cells.list(gradual);
        }
        self.wake(cell);
    }

    /// Everybody who waits for a cell waits for one thing less.
    pub(super) fn wake(&mut self, cell: CellId) {
        let units = &mut self.units;
        self.cells.take_waiters(cell, |unit| units.release(unit));
    }

    /// Freezes what lets others go on. Answers whether there was anything.
    fn freeze_something(&mut self) -> bool {
        self.freeze_possible()
            || self.freeze_wanted()
            || self.freeze_promised()
            || self.freeze_parked()
            || self.freeze_self_promised()
    }

    /// The next of the queue that somebody waits for and nobody promises to add to.
    fn freeze_possible(&mut self) -> bool {
        while let Some(number) = self.possible.iter_mut().find_map(VecDeque::pop_front) {
            let gradual = &mut self.cells.graduals[number as usize];
            if gradual.is_frozen {
                continue;
            }
            if gradual.potential() == 0 {
                gradual.parked = self.parkings;
                self.parkings = self.parkings.wrapping_add(1);
                self.parked.push(number);
                continue;
            }
            if self.freeze_unless_promised(number) {
                return true;
            }
        }
        false
    }

    fn freeze_unless_promised(&mut self, number: u32) -> bool {
        let gradual = &mut self.cells.graduals[number as usize];
        if gradual.providers > 0 {
            gradual.is_queued = false;
            self.queue_if_possible(number);
            return false;
        }
        let cell = gradual.cell;
        self.freeze(cell);
        true
    }

    /// Those that were parked and are waited for by now go back to the queue; the next of it is frozen.
    fn freeze_wanted(&mut self) -> bool {
        for number in std::mem::take(&mut self.parked_wanted).into_values() {
            let gradual = &mut self.cells.graduals[number as usize];
            if !gradual.is_frozen && gradual.potential() > 0 && gradual.parked != NONE {
                gradual.parked = NONE;
                self.queue(number);
            }
        }
        while let Some(number) = self.possible.iter_mut().find_map(VecDeque::pop_front) {
            if !self.cells.graduals[number as usize].is_frozen && self.freeze_unless_promised(number) {
                return true;
            }
        }
        false
    }

    /// Of those that somebody promises to add to, the one that the oldest unit waits for.
    fn freeze_promised(&mut self) -> bool {
        while let Some(Reverse((_, registered, _, number))) = self.promised.pop() {
            let gradual = &self.cells.graduals[number as usize];
            if gradual.is_frozen || gradual.providers == 0 || gradual.potential() == 0 {
                continue;
            }
            let cell = gradual.cell;
            if !self
                .cells
                .waiters(cell)
                .any(|unit| self.units.get(unit).registered == registered)
            {
                continue;
            }
            self.freeze(cell);
            return true;
        }
        false
    }

    /// All that nobody needed, the last one first.
    fn freeze_parked(&mut self) -> bool {
        let mut progress = false;
        while let Some(number) = self.parked.pop() {
            let gradual = &mut self.cells.graduals[number as usize];
            // Taken out since, or parked once more at a later place.
            if gradual.is_frozen || gradual.parked == NONE {
                continue;
            }
            gradual.parked = NONE;
            let cell = gradual.cell;
            self.freeze(cell);
            progress = true;
        }
        progress
    }

    /// All relations that hold enough, whose remaining promises come from units that wait for the same relations.
    fn freeze_self_promised(&mut self) -> bool {
        let mut progress = false;
        for number in std::mem::take(&mut self.self_promised) {
            self.cells.graduals[number as usize].is_self_promised = false;
            if !self.cells.graduals[number as usize].is_frozen && self.has_enough(number) {
                self.freeze(self.cells.graduals[number as usize].cell);
                progress = true;
            }
        }
        progress
    }

    /// What an element of a relation can be made of.
    pub(super) fn element(datum: &Datum) -> Option<Element> {
        match datum {
            Datum::Instance(id) => Some(Element::instance(*id)),
            Datum::Unknown(id) => Some(Element::unknown(*id)),
            _ => None,
        }
    }

    /// The error that instances construct each other without end.
    pub(super) fn too_deep(&self, constructor: Span, entity: EntityId) -> Diagnostic {
        let most = self.options.max_nesting();
        let name = &self.model.entities[entity.index()].name;
        let message = format!(
            "the model does not end: more than {most} instances construct each other, one inside the other, down to `{name}`"
        );
        let count = self
            .instances
            .iter()
            .filter(|instance| instance.span == constructor)
            .count();
        Diagnostic::error(&codes::ENDLESS, constructor, message)
            .label(format!("{count} instances were constructed here, and each leads to the next"))
            .help("end the recursion with a condition: `implement … when`, or `if` around the constructor")
            .note("if the model must be this deep, raise `setpoint.max_instances` in project.yml; the limit is a fiftieth of it")
    }

    fn too_many_rounds(&self) -> Diagnostic {
        let rounds = self.options.max_rounds;
        let span = self.unfinished_span();
        Diagnostic::error(
            &codes::TOO_MANY_ROUNDS,
            span,
            format!("the model is not complete after {rounds} rounds of freezing relations"),
        )
        .of_class("CompilerException")
        .label("this still waits")
        .help("SETPOINT_CF_MAX_ROUNDS allows more of them")
    }

    /// Where the oldest unit that has not finished comes from.
    fn unfinished_span(&self) -> Span {
        let units = self.units.unfinished();
        let span = units.iter().find_map(|unit| unit.work.span());
        span.unwrap_or(Span::new(setpoint_diagnostics::FileId(0), 0, 0))
    }

    /// The error that a model does not end.
    pub(super) fn too_much(&self, what: &str, most: u64) -> Diagnostic {
        let mut places: FxHashMap<Span, u64> = FxHashMap::default();
        for instance in self.instances.iter() {
            *places.entry(instance.span).or_default() += 1;
        }
        let mut places: Vec<(Span, u64)> = places.into_iter().collect();
        places.sort_by_key(|(span, count)| (Reverse(*count), *span));
        let span = places
            .first()
            .map_or_else(|| self.unfinished_span(), |(span, _)| *span);
        let mut error = Diagnostic::error(
            &codes::ENDLESS,
            span,
            format!("the model does not end: more than {most} {what}"),
        );
        // What constructs little is not what does not end.
        let most_of = places.first().map_or(0, |(_, count)| count / 100);
        places.retain(|(_, count)| *count > most_of);
        for (index, (place, count)) in places.iter().take(3).enumerate() {
            let text = format!("{count} instances were constructed here");
            error = if index == 0 {
                error.label(text)
            } else {
                error.because(*place, text)
            };
        }
        error.help("end the recursion with a condition, or raise `setpoint.max_instances` or `setpoint.max_units` in project.yml")
    }
}

impl Work<'_> {
    /// The text that a unit comes from.
    pub(super) fn span(&self) -> Option<Span> {
        Some(match self {
            Work::AssignVariable(statement)
            | Work::AssignMember(statement, _)
            | Work::For(statement)
            | Work::If(statement, _) => statement.span,
            Work::Evaluate(expression, _)
            | Work::Forward(expression, _)
            | Work::Call(expression, _)
            | Work::Construct(expression, ..)
            | Work::Lookup(expression, _)
            | Work::Conditional(expression, _)
            | Work::Logic(expression, ..)
            | Work::IsDefined(expression, _) => expression.span,
            _ => return None,
        })
    }
}

/// No block instance and no owner.
pub(super) const TOP: Scope = Scope {
    frame: NONE,
    owner: NONE,
};
