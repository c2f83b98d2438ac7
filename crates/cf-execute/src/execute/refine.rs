//! Refinement: which implementations of an instance's entity are executed.

use std::sync::Arc;

use setpoint_cf_functions::context::Stop;
use setpoint_cf_names::datum::InstanceId;
use setpoint_cf_names::hir::Implement;
use setpoint_cf_names::ids::ImplementationId;
use setpoint_diagnostics::Diagnostic;

use super::cells::NONE;
use super::frames::Names;
use super::machine::{Machine, Run};
use super::units::{Scope, UnitId, Work};

/// The bit of an instance for all implementations that have none of their own.
const FURTHER: usize = 63;

impl<'m> Machine<'m> {
    /// Sets up all `implement` statements of an instance. Those that follow each other and can be decided are one unit.
    pub(super) fn refine(&mut self, instance: InstanceId) -> Run<()> {
        let entity = self.entity_of(instance);
        let implements: &'m [Arc<Implement>] = &self.model.entities[entity.index()].implements;
        let mut first = 0;
        for (number, implement) in implements.iter().enumerate() {
            let Some(condition) = &implement.condition else {
                continue;
            };
            let scope = self.condition_scope(instance);
            if self.turns_if_ready(condition, scope)? == Some(0) {
                continue;
            }
            self.add_refinement(&implements[first..number], instance);
            first = number + 1;
            let work = Work::Refine {
                implements: &implements[number..=number],
                instance,
            };
            let unit = self.units.add(work, scope);
            self.require_one(unit, condition, scope)?;
            self.units.release(unit);
        }
        self.add_refinement(&implements[first..], instance);
        Ok(())
    }

    fn add_refinement(&mut self, implements: &'m [Arc<Implement>], instance: InstanceId) {
        if implements.is_empty() {
            return;
        }
        let scope = Machine::scope(self.instances[instance.0 as usize].frame);
        let unit = self.units.add(Work::Refine { implements, instance }, scope);
        self.units.release(unit);
    }

    fn condition_scope(&mut self, instance: InstanceId) -> Scope {
        if self.instances[instance.0 as usize].frame == NONE {
            let frame = self.add_frame(NONE, instance.0, Names::None);
            self.instances[instance.0 as usize].frame = frame;
        }
        Machine::scope(self.instances[instance.0 as usize].frame)
    }

    /// Conditions of `implement` statements are known.
    pub(super) fn run_refine(
        &mut self,
        unit: UnitId,
        implements: &'m [Arc<Implement>],
        instance: InstanceId,
        scope: Scope,
    ) -> Run<()> {
        for implement in implements {
            let is_selected = match &implement.condition {
                None => true,
                Some(condition) => {
                    let value = self.evaluate_one(unit, condition, scope)?;
                    let holds = self.condition(&value, condition.span).map_err(conditional)?;
                    self.record_guard(unit, condition, scope, holds);
                    holds == Some(true)
                }
            };
            if is_selected {
                for implementation in &implement.using {
                    self.select(instance, *implementation)?;
                }
            }
        }
        self.finish(unit);
        Ok(())
    }

    /// Sets up the statements of an implementation, once for each instance.
    fn select(&mut self, instance: InstanceId, id: ImplementationId) -> Run<()> {
        let entity = self.entity_of(instance);
        let implementations = &self.entities.plans[entity.index()].implementations;
        let position = implementations
            .iter()
            .position(|found| *found == id)
            .unwrap_or(FURTHER);
        let bit = 1 << position.min(FURTHER);
        let data = &mut self.instances[instance.0 as usize];
        let is_new = if position < FURTHER {
            data.selected & bit == 0
        } else {
            self.selected.insert((instance, id))
        };
        data.selected |= bit;
        let body = &self.model.implementations[id.index()].body;
        if is_new && !body.statements.is_empty() {
            let frame = self.add_frame(NONE, instance.0, Names::Block(body));
            self.emit_block(body, frame)?;
        }
        Ok(())
    }
}

fn conditional(stop: Stop) -> Stop {
    match stop {
        Stop::Error(error) => Stop::from(Diagnostic {
            message: format!(
                "the condition of a conditional implementation must be a bool: {}",
                error.message
            ),
            ..*error
        }),
        stop @ Stop::Unset(_) => stop,
    }
}
