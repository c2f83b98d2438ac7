//! Comprehensions. Each loop is a unit, and so is each element of the innermost one, since its conditions and its value may have to wait.
//!
//! Where somebody takes elements as they come, results are told as they come. Everywhere else what is gone through must be complete, and the
//! results are put together in its order.

use setpoint_cf_functions::codes::{self as function_codes, class};
use setpoint_cf_functions::context::Stop;
use setpoint_cf_functions::operators;
use setpoint_cf_names::datum::Datum;
use setpoint_cf_names::hir::{Comprehension, ExpressionKind};
use setpoint_diagnostics::Diagnostic;
use smallvec::SmallVec;

use super::cells::NONE;
use super::frames::Names;
use super::machine::{Machine, Run};
use super::units::{LoopSink, Scope, Sink, UnitId, Work};

impl<'m> Machine<'m> {
    /// Sets up a loop of a comprehension.
    pub(super) fn emit_loop(
        &mut self,
        comprehension: &'m Comprehension,
        level: u32,
        sink: LoopSink,
        scope: Scope,
    ) -> Run<()> {
        let work = Work::Loop {
            comprehension,
            level,
            is_open: true,
            sink,
        };
        let unit = self.units.add(work, scope);
        let iterable = &comprehension.loops[level as usize].1;
        let inner = Scope { owner: NONE, ..scope };
        match sink {
            LoopSink::Gradual { .. } => self.require_gradually(unit, iterable, inner)?,
            LoopSink::Cell(_) | LoopSink::Parent(..) => self.require_one(unit, iterable, inner)?,
        }
        self.units.release(unit);
        Ok(())
    }

    /// What a loop goes through is complete, or all its elements are.
    pub(super) fn run_loop(
        &mut self,
        unit: UnitId,
        comprehension: &'m Comprehension,
        level: u32,
        is_open: bool,
        sink: LoopSink,
        scope: Scope,
    ) -> Run<()> {
        if !is_open {
            return self.close_loop(unit, comprehension, sink);
        }
        let iterable = &comprehension.loops[level as usize].1;
        let is_gradual = matches!(sink, LoopSink::Gradual { .. });
        let inner = Scope { owner: NONE, ..scope };
        let elements = if is_gradual && self.is_told(iterable, inner)? {
            Vec::new()
        } else {
            let value = self.evaluate_one(unit, iterable, inner)?;
            match value.unmarked() {
                Datum::List(elements) => elements.to_vec(),
                // The conditions decide about the elements, whatever they are.
                Datum::Unknown(_) if is_gradual || !comprehension.conditions.is_empty() => vec![value],
                Datum::Unknown(_) => {
                    self.finish(unit);
                    return self.put_loop(sink, SmallVec::from_iter([value]), comprehension);
                }
                _ => {
                    let message = format!(
                        "a list comprehension goes through a list, not {}",
                        self.described(&value)
                    );
                    return Machine::fail(
                        Diagnostic::error(&function_codes::OPERAND, iterable.span, message)
                            .of_class(class::TYPING)
                            .label("this is no list"),
                    );
                }
            }
        };
        self.give_parts_back(unit);
        self.units.get_mut(unit).work = Work::Loop {
            comprehension,
            level,
            is_open: false,
            sink,
        };
        self.units.hold(unit);
        if !is_gradual {
            self.partial.insert(unit, vec![SmallVec::new(); elements.len()]);
        }
        for (position, element) in elements.into_iter().enumerate() {
            self.emit_element(unit, comprehension, level, sink, position as u32, element, scope)?;
        }
        self.units.release(unit);
        Ok(())
    }

    /// A loop that takes elements as they come is told one.
    pub(super) fn tell_loop(
        &mut self,
        unit: UnitId,
        comprehension: &'m Comprehension,
        level: u32,
        sink: LoopSink,
        element: Datum,
        scope: Scope,
    ) -> Run<()> {
        self.emit_element(unit, comprehension, level, sink, 0, element, scope)
    }

    #[allow(
        clippy::too_many_arguments,
        reason = "a loop and where one of its elements goes"
    )]
    fn emit_element(
        &mut self,
        parent: UnitId,
        comprehension: &'m Comprehension,
        level: u32,
        sink: LoopSink,
        position: u32,
        element: Datum,
        scope: Scope,
    ) -> Run<()> {
        let is_last = level as usize + 1 == comprehension.loops.len();
        if matches!(element.unmarked(), Datum::Unknown(_))
            && (!is_last || comprehension.conditions.is_empty())
        {
            return self.put_element(parent, sink, position, element);
        }
        let frame = self.add_frame(
            scope.frame,
            self.instance_of(scope.frame),
            Names::Loop(comprehension.loops[level as usize].0),
        );
        self.nest_in_element(frame, &element);
        let variable = self.frames[frame as usize].first;
        self.set_result(variable, element);
        let inner = Scope { frame, ..scope };
        self.units.hold(parent);
        if !is_last {
            let sink = match sink {
                LoopSink::Gradual { target, .. } => LoopSink::Gradual {
                    target,
                    closes: parent,
                },
                LoopSink::Cell(_) | LoopSink::Parent(..) => LoopSink::Parent(parent, position),
            };
            return self.emit_loop(comprehension, level + 1, sink, inner);
        }
        let work = Work::Element {
            comprehension,
            parent,
            position,
            condition: 0,
        };
        let unit = self.units.add(work, inner);
        if comprehension.conditions.is_empty() && self.is_told_at_once(parent, comprehension, inner)? {
            return self.run_element(unit, comprehension, parent, position, 0, inner);
        }
        self.require_element(unit, comprehension, parent, 0, inner)?;
        self.units.release(unit);
        Ok(())
    }

    /// Whether the value of an element is a variable that is set, in a loop that passes elements on as they arrive.
    fn is_told_at_once(&self, parent: UnitId, comprehension: &'m Comprehension, scope: Scope) -> Run<bool> {
        let value = &comprehension.value;
        Ok(matches!(self.loop_sink(parent), LoopSink::Gradual { .. })
            && matches!(value.kind, ExpressionKind::Variable(_))
            && self.turns_if_ready(value, scope)? == Some(0))
    }

    fn require_element(
        &mut self,
        unit: UnitId,
        comprehension: &'m Comprehension,
        parent: UnitId,
        condition: u32,
        scope: Scope,
    ) -> Run<()> {
        match comprehension.conditions.get(condition as usize) {
            Some(condition) => self.require_one(unit, condition, Scope { owner: NONE, ..scope }),
            None if matches!(self.loop_sink(parent), LoopSink::Gradual { .. }) => {
                self.require_gradually(unit, &comprehension.value, scope)
            }
            None => self.require_one(unit, &comprehension.value, scope),
        }
    }

    /// Where the elements of a loop go.
    fn loop_sink(&self, unit: UnitId) -> LoopSink {
        match self.units.get(unit).work {
            Work::Loop { sink, .. } => sink,
            // A loop finishes after its elements.
            _ => LoopSink::Cell(super::cells::CellId::NONE),
        }
    }

    /// A condition or the value of an element is known.
    pub(super) fn run_element(
        &mut self,
        unit: UnitId,
        comprehension: &'m Comprehension,
        parent: UnitId,
        position: u32,
        condition: u32,
        scope: Scope,
    ) -> Run<()> {
        let sink = self.loop_sink(parent);
        let Some(guard) = comprehension.conditions.get(condition as usize) else {
            let is_told =
                matches!(sink, LoopSink::Gradual { .. }) && self.is_told(&comprehension.value, scope)?;
            let value = match is_told {
                true => None,
                false => Some(self.evaluate_one(unit, &comprehension.value, scope)?),
            };
            return self.close_element(unit, parent, position, value);
        };
        let value = self.evaluate_one(unit, guard, Scope { owner: NONE, ..scope })?;
        let holds = self.condition(&value, guard.span)?;
        self.record_guard(unit, guard, Scope { owner: NONE, ..scope }, holds);
        let variable = self.frames[scope.frame as usize].first;
        self.touch(variable);
        let element = self.cells.get(variable).value.clone();
        let is_unknown = matches!(element.unmarked(), Datum::Unknown(_));
        match holds {
            Some(false) => self.close_element(unit, parent, position, None),
            None if is_unknown => self.close_element(unit, parent, position, Some(element)),
            None => {
                let unknown = self.unknowns.create();
                self.close_element(unit, parent, position, Some(unknown))
            }
            Some(true) if is_unknown && condition as usize + 1 == comprehension.conditions.len() => {
                self.close_element(unit, parent, position, Some(element))
            }
            Some(true) => {
                self.give_parts_back(unit);
                self.units.get_mut(unit).work = Work::Element {
                    comprehension,
                    parent,
                    position,
                    condition: condition + 1,
                };
                let is_last = condition as usize + 1 == comprehension.conditions.len();
                if is_last && self.is_told_at_once(parent, comprehension, scope)? {
                    return self.run_element(unit, comprehension, parent, position, condition + 1, scope);
                }
                self.units.hold(unit);
                self.require_element(unit, comprehension, parent, condition + 1, scope)?;
                self.units.release(unit);
                Ok(())
            }
        }
    }

    fn close_element(
        &mut self,
        unit: UnitId,
        parent: UnitId,
        position: u32,
        value: Option<Datum>,
    ) -> Run<()> {
        let conditions = match self.units.get(unit).work {
            Work::Element { condition, .. } => condition,
            _ => 0,
        };
        self.finish(unit);
        let sink = self.loop_sink(parent);
        if let Some(value) = value {
            self.put_element(parent, sink, position, value)?;
        }
        if !matches!(sink, LoopSink::Gradual { .. }) {
            // Each condition takes one turn.
            self.units
                .postpone(parent, conditions.min(u32::from(u8::MAX)) as u8);
        }
        self.units.release(parent);
        Ok(())
    }

    /// An element that takes its own value as it comes is told a part of it.
    pub(super) fn tell_result(&mut self, parent: UnitId, value: Datum) -> Run<()> {
        match self.loop_sink(parent) {
            LoopSink::Gradual { target, .. } => self.tell(target, value),
            LoopSink::Cell(_) | LoopSink::Parent(..) => Ok(()),
        }
    }

    /// Takes the value of an element; that of a list is spliced.
    fn put_element(&mut self, parent: UnitId, sink: LoopSink, position: u32, value: Datum) -> Run<()> {
        if let LoopSink::Gradual { target, .. } = sink {
            return self.tell_all(target, &value);
        }
        if let Some(results) = self.partial.get_mut(&parent) {
            results[position as usize].push(value);
        }
        Ok(())
    }

    fn close_loop(&mut self, unit: UnitId, comprehension: &'m Comprehension, sink: LoopSink) -> Run<()> {
        let results = self.partial.remove(&unit).unwrap_or_default();
        self.finish(unit);
        self.put_loop(sink, results.into_iter().flatten().collect(), comprehension)
    }

    /// All elements of a loop are known.
    fn put_loop(
        &mut self,
        sink: LoopSink,
        values: SmallVec<[Datum; 1]>,
        comprehension: &'m Comprehension,
    ) -> Run<()> {
        match sink {
            LoopSink::Cell(cell) => {
                let list =
                    operators::list(values.into_vec(), comprehension.value.span).map_err(Stop::Error)?;
                self.put(Sink::Cell(cell), list)
            }
            LoopSink::Parent(parent, position) => {
                if let Some(results) = self.partial.get_mut(&parent) {
                    results[position as usize].extend(values);
                }
                self.units.postpone(parent, 1);
                self.units.release(parent);
                Ok(())
            }
            LoopSink::Gradual { closes, .. } => {
                self.units.release(closes);
                Ok(())
            }
        }
    }
}
