//! What an expression waits for.
//!
//! Most of an expression is evaluated in one go once its parts are there: [`Machine::require`] lets a unit wait for the variables that it
//! reads. Calls, constructors, lookups and what is evaluated lazily are *parts*: each has a unit and a cell of its own, and the expression around
//! it waits for the cell. A constructor runs in the unit that needs it, just before that unit's own work, once all requirements of both are
//! met. Resolving an attribute takes one turn of the queue, even if its value is set. Cells of parts lie side by side in the order in which the expression is walked over, which
//! [`super::evaluate`] repeats.

use setpoint_cf_names::hir::{Expression, ExpressionKind, FormatPart, MapLookup, TextPart};
use setpoint_cf_syntax::ast::Operator;

use super::cells::{CellId, GradualKind};
use super::frames::Target;
use super::machine::{Machine, Run};
use super::units::{LoopSink, RunsIn, Scope, Sink, UnitId, Work};

/// What an expression is to whoever waits for it.
fn is_part(expression: &Expression) -> bool {
    match &expression.kind {
        ExpressionKind::Call { .. }
        | ExpressionKind::Constructor(_)
        | ExpressionKind::IndexLookup { .. }
        | ExpressionKind::SelectorLookup { .. }
        | ExpressionKind::Conditional { .. }
        | ExpressionKind::Comprehension(_)
        | ExpressionKind::IsDefined(_) => true,
        ExpressionKind::Operators { rest, .. } => is_lazy(rest),
        _ => false,
    }
}

/// Whether operators are `and` or `or`, whose right operands are evaluated only if they matter.
pub(super) fn is_lazy<T, U>(rest: &[(Operator, T, U)]) -> bool {
    matches!(rest.first(), Some((Operator::And | Operator::Or, ..)))
}

/// The number of turns until a reference is resolved if all its values are set: one for each attribute.
pub(super) fn turns(reference: &Expression) -> u8 {
    let mut turns = 0_u8;
    let mut root = reference;
    while let ExpressionKind::Attribute { of, .. } = &root.kind {
        turns = turns.saturating_add(1);
        root = of;
    }
    turns
}

/// The part of a reference that ends after its first `attributes` attributes.
fn prefix(reference: &Expression, attributes: u8) -> &Expression {
    let mut prefix = reference;
    for _ in attributes..turns(reference) {
        if let ExpressionKind::Attribute { of, .. } = &prefix.kind {
            prefix = of;
        }
    }
    prefix
}

/// Calls something with each expression inside one that is evaluated together with it.
pub(super) fn each_inner<'m>(expression: &'m Expression, each: &mut dyn FnMut(&'m Expression)) {
    match &expression.kind {
        ExpressionKind::Interpolated(parts) => {
            for part in parts {
                if let TextPart::Field(field) = part {
                    each(field);
                }
            }
        }
        ExpressionKind::Format(parts) => each_format(parts, each),
        ExpressionKind::List(elements) => elements.iter().for_each(each),
        ExpressionKind::Dict(entries) => entries.iter().for_each(|(_, value)| each(value)),
        ExpressionKind::Not(inner) | ExpressionKind::Cast { value: inner, .. } => each(inner),
        ExpressionKind::Operators { first, rest } => {
            each(first);
            rest.iter().for_each(|(_, _, operand)| each(operand));
        }
        ExpressionKind::LookupIsDefined(lookup) | ExpressionKind::MapLookup(lookup) => {
            let MapLookup { dict, key } = &**lookup;
            each(dict);
            each(key);
        }
        _ => {}
    }
}

fn each_format<'m>(parts: &'m [FormatPart], each: &mut dyn FnMut(&'m Expression)) {
    for part in parts {
        if let FormatPart::Field {
            value, specification, ..
        } = part
        {
            if let Some(value) = value {
                each(value);
            }
            each_format(specification, each);
        }
    }
}

/// How many parts an expression has.
pub(super) fn count_parts(expression: &Expression) -> u32 {
    if is_part(expression) {
        return 1;
    }
    let mut count = 0;
    each_inner(expression, &mut |inner| count += count_parts(inner));
    count
}

impl<'m> Machine<'m> {
    /// Lets a unit wait for all that some expressions need; cells for their parts are the unit's.
    pub(super) fn require_all(
        &mut self,
        unit: UnitId,
        expressions: &[&'m Expression],
        scope: Scope,
    ) -> Run<()> {
        let count = expressions.iter().map(|expression| count_parts(expression)).sum();
        let mut next = self.cells.borrow(count);
        let work = self.units.get_mut(unit);
        (work.parts, work.part_count) = (next, count);
        for expression in expressions {
            self.require(unit, expression, scope, &mut next)?;
        }
        Ok(())
    }

    /// The same for one.
    pub(super) fn require_one(&mut self, unit: UnitId, expression: &'m Expression, scope: Scope) -> Run<()> {
        self.require_all(unit, &[expression], scope)
    }

    /// Gives the cells of the parts of a unit's expressions back.
    pub(super) fn give_parts_back(&mut self, unit: UnitId) {
        let work = self.units.get_mut(unit);
        let (parts, count) = (work.parts, work.part_count);
        (work.parts, work.part_count) = (CellId::NONE, 0);
        self.give_cells_back(parts, count);
    }

    /// Gives cells back that were borrowed.
    pub(super) fn give_cells_back(&mut self, first: CellId, count: u32) {
        if let Some(recorder) = &mut self.recorder {
            (0..count).for_each(|offset| recorder.forget(first.at(offset)));
        }
        self.cells.give_back(first, count);
    }

    /// A unit has done all that it had to.
    pub(super) fn finish(&mut self, unit: UnitId) {
        self.give_parts_back(unit);
        self.units.remove(unit);
    }

    fn require(
        &mut self,
        unit: UnitId,
        expression: &'m Expression,
        scope: Scope,
        next: &mut CellId,
    ) -> Run<()> {
        if is_part(expression) {
            let cell = *next;
            *next = next.at(1);
            if let ExpressionKind::Constructor(constructor) = &expression.kind {
                let within = RunsIn::Consumer { unit, next: None };
                return self.emit_constructor(expression, constructor, cell, within, scope);
            }
            self.emit_part(expression, Sink::Cell(cell), scope)?;
            if !self.cells.is_ready(cell) {
                self.wait(unit, cell, false);
            }
            return Ok(());
        }
        match &expression.kind {
            ExpressionKind::Literal(_) | ExpressionKind::ConstantList(_) => Ok(()),
            ExpressionKind::Variable(_) | ExpressionKind::Attribute { .. } => {
                self.require_reference(unit, expression, scope, false)
            }
            ExpressionKind::Matches { place, .. } => {
                if let Target::Cell(cell) = self.place(*place, scope.frame, expression.span)?
                    && !self.cells.is_ready(cell)
                {
                    self.wait(unit, cell, false);
                }
                Ok(())
            }
            _ => {
                let mut inner = smallvec::SmallVec::<[&'m Expression; 8]>::new();
                each_inner(expression, &mut |found| inner.push(found));
                for found in inner {
                    self.require(unit, found, scope, next)?;
                }
                Ok(())
            }
        }
    }

    /// Lets a unit wait for what a reference leads to. A unit that takes elements as they come listens to a list.
    fn require_reference(
        &mut self,
        unit: UnitId,
        reference: &'m Expression,
        scope: Scope,
        is_gradual: bool,
    ) -> Run<()> {
        let turns = turns(reference);
        match self.resolve(reference, scope.frame)? {
            Target::Value(_) => {}
            Target::Cell(cell) if self.cells.is_ready(cell) && !(is_gradual && self.is_list(cell)) => {
                self.units.postpone(unit, turns);
            }
            Target::Cell(cell) if turns == 0 => self.require_cell(unit, cell, is_gradual)?,
            Target::Cell(_) | Target::Blocked(_) => {
                let hop = Work::Hop {
                    reference,
                    attributes: 0,
                    target: unit,
                    is_gradual,
                };
                let hop = self.units.add(hop, scope);
                self.units.hold(unit);
                self.wait_for_prefix(hop, reference, 0, scope)?;
                self.units.release(hop);
            }
        }
        Ok(())
    }

    /// Lets a unit wait for a cell, or listen to it if it takes elements as they come and the cell holds a list.
    fn require_cell(&mut self, unit: UnitId, cell: CellId, is_gradual: bool) -> Run<()> {
        if is_gradual && self.is_list(cell) {
            return self.listen(unit, cell);
        }
        if !self.cells.is_ready(cell) {
            self.wait(unit, cell, false);
        }
        Ok(())
    }

    /// Lets a hop wait for the part of a reference that ends after its first `attributes` attributes.
    fn wait_for_prefix(
        &mut self,
        hop: UnitId,
        reference: &'m Expression,
        attributes: u8,
        scope: Scope,
    ) -> Run<()> {
        let prefix = prefix(reference, attributes);
        match self.resolve(prefix, scope.frame)? {
            Target::Cell(cell) | Target::Blocked(cell) if !self.cells.is_ready(cell) => {
                self.wait(hop, cell, false);
            }
            _ => {}
        }
        Ok(())
    }

    /// A reference has come one attribute further.
    pub(super) fn run_hop(
        &mut self,
        hop: UnitId,
        reference: &'m Expression,
        attributes: u8,
        target: UnitId,
        is_gradual: bool,
        scope: Scope,
    ) -> Run<()> {
        let attributes = attributes + 1;
        if attributes < turns(reference) {
            self.units.get_mut(hop).work = Work::Hop {
                reference,
                attributes,
                target,
                is_gradual,
            };
            self.units.hold(hop);
            self.wait_for_prefix(hop, reference, attributes, scope)?;
            self.units.release(hop);
            return Ok(());
        }
        match self.resolve(reference, scope.frame)? {
            Target::Cell(cell) => self.require_cell(target, cell, is_gradual)?,
            Target::Value(_) => {}
            Target::Blocked(cell) => {
                self.wait_again(hop, cell);
                return Ok(());
            }
        }
        self.units.remove(hop);
        self.units.release(target);
        Ok(())
    }

    /// Whether a cell holds a list relation.
    pub(super) fn is_list(&self, cell: CellId) -> bool {
        self.cells
            .gradual(cell)
            .is_some_and(|gradual| gradual.kind == GradualKind::List)
    }

    /// A unit is told all elements of a list relation, and waits until there are no more.
    pub(super) fn listen(&mut self, unit: UnitId, cell: CellId) -> Run<()> {
        let present = match self.cells.gradual(cell) {
            Some(gradual) => gradual.elements().to_vec(),
            None => Vec::new(),
        };
        if !self.cells.is_ready(cell) {
            self.cells.listen(cell, unit);
            self.wait(unit, cell, true);
        }
        for element in present {
            self.tell(unit, element.datum())?;
        }
        Ok(())
    }

    /// Lets a unit take the elements of an expression as they come, as far as the expression has a way to tell them. What the unit is not told
    /// it evaluates when it runs: see [`Machine::is_told`].
    pub(super) fn require_gradually(
        &mut self,
        unit: UnitId,
        expression: &'m Expression,
        scope: Scope,
    ) -> Run<()> {
        match &expression.kind {
            ExpressionKind::Variable(_) | ExpressionKind::Attribute { .. } => {
                self.require_reference(unit, expression, scope, true)
            }
            ExpressionKind::List(elements) => {
                for element in elements {
                    self.units.hold(unit);
                    let forward = self.units.add(Work::Forward(element, unit), scope);
                    self.require_gradually(forward, element, scope)?;
                    self.units.release(forward);
                }
                Ok(())
            }
            ExpressionKind::Conditional { .. } | ExpressionKind::Comprehension(_) => {
                self.units.hold(unit);
                self.emit_part(expression, Sink::Gradual(unit), scope)
            }
            _ => self.require_one(unit, expression, scope),
        }
    }

    /// Whether the elements of an expression have been told when a unit that takes them as they come runs.
    pub(super) fn is_told(&self, expression: &'m Expression, scope: Scope) -> Run<bool> {
        Ok(match &expression.kind {
            ExpressionKind::List(_)
            | ExpressionKind::Conditional { .. }
            | ExpressionKind::Comprehension(_) => true,
            ExpressionKind::Variable(_) | ExpressionKind::Attribute { .. } => {
                matches!(self.resolve(expression, scope.frame)?, Target::Cell(cell) if self.is_list(cell))
            }
            _ => false,
        })
    }

    /// Sets up the unit of a part of an expression.
    pub(super) fn emit_part(&mut self, expression: &'m Expression, sink: Sink, scope: Scope) -> Run<()> {
        let cell = match sink {
            Sink::Cell(cell) => cell,
            Sink::Nowhere | Sink::Gradual(_) => CellId::NONE,
        };
        match &expression.kind {
            ExpressionKind::Call {
                positional,
                keywords,
                dicts,
                ..
            } => {
                let unit = self.units.add(Work::Call(expression, cell), scope);
                let keywords = keywords.iter().map(|(_, _, value)| value);
                let inner: smallvec::SmallVec<[&'m Expression; 8]> =
                    positional.iter().chain(keywords).chain(dicts).collect();
                self.require_all(
                    unit,
                    &inner,
                    Scope {
                        owner: super::cells::NONE,
                        ..scope
                    },
                )?;
                self.units.release(unit);
            }
            ExpressionKind::Constructor(constructor) => {
                self.emit_constructor(expression, constructor, cell, RunsIn::OwnUnit, scope)?;
            }
            ExpressionKind::IndexLookup { keywords, dicts, .. } => {
                let unit = self.units.add(Work::Lookup(expression, cell), scope);
                let keywords = keywords.iter().map(|(_, _, value)| value);
                let inner: smallvec::SmallVec<[&'m Expression; 4]> = keywords.chain(dicts).collect();
                self.require_all(unit, &inner, scope)?;
                self.units.release(unit);
            }
            ExpressionKind::SelectorLookup {
                instance,
                keywords,
                dicts,
                ..
            } => {
                let unit = self.units.add(Work::Lookup(expression, cell), scope);
                let keywords = keywords.iter().map(|(_, _, value)| value);
                let inner: smallvec::SmallVec<[&'m Expression; 4]> = std::iter::once(&**instance)
                    .chain(keywords)
                    .chain(dicts)
                    .collect();
                self.require_all(unit, &inner, scope)?;
                self.units.release(unit);
            }
            ExpressionKind::Conditional { condition, .. } => {
                let unit = self.units.add(Work::Conditional(expression, sink), scope);
                self.require_one(
                    unit,
                    condition,
                    Scope {
                        owner: super::cells::NONE,
                        ..scope
                    },
                )?;
                self.units.release(unit);
            }
            ExpressionKind::Comprehension(comprehension) => {
                let sink = match sink {
                    Sink::Gradual(target) => LoopSink::Gradual {
                        target,
                        closes: target,
                    },
                    Sink::Cell(_) | Sink::Nowhere => LoopSink::Cell(cell),
                };
                self.emit_loop(comprehension, 0, sink, scope)?;
            }
            ExpressionKind::IsDefined(_) => {
                let unit = self.units.add(Work::IsDefined(expression, cell), scope);
                self.begin_is_defined(unit, expression, scope)?;
                self.units.release(unit);
            }
            ExpressionKind::Operators { first, .. } => {
                let unit = self.units.add(Work::Logic(expression, 0, cell), scope);
                self.require_one(unit, first, scope)?;
                self.units.release(unit);
            }
            _ => {}
        }
        Ok(())
    }

    /// Sets up a unit that evaluates an expression and puts its value somewhere.
    pub(super) fn evaluate_into(&mut self, expression: &'m Expression, sink: Sink, scope: Scope) -> Run<()> {
        match sink {
            // A part is a unit already. If a cell takes the value, another unit puts it there one turn later.
            Sink::Nowhere if is_part(expression) => self.emit_part(expression, sink, scope),
            Sink::Nowhere | Sink::Cell(_) => {
                let unit = self.units.add(Work::Evaluate(expression, sink), scope);
                self.require_one(unit, expression, scope)?;
                self.units.release(unit);
                Ok(())
            }
            Sink::Gradual(target) => {
                let unit = self.units.add(Work::Forward(expression, target), scope);
                self.require_gradually(unit, expression, scope)?;
                self.units.release(unit);
                Ok(())
            }
        }
    }
}
