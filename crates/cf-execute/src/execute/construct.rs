//! Constructors: finding or creating an instance, and setting up what it is given.
//!
//! What a constructor does for every instance that it makes is a *plan*, found once. Members of indexes are needed before the instance exists;
//! all others are *settings*: assignments on their own, defaults first.

use std::rc::Rc;

use rustc_hash::FxHashMap;
use setpoint_cf_functions::codes::class;
use setpoint_cf_functions::context::Stop;
use setpoint_cf_functions::operators;
use setpoint_cf_names::datum::{Datum, InstanceId};
use setpoint_cf_names::hir::{Constructor, Expression, ExpressionKind, MemberKind};
use setpoint_cf_names::ids::EntityId;
use setpoint_diagnostics::{Diagnostic, Span};
use smallvec::SmallVec;

use super::Instance;
use super::assign::Assignment;
use super::cells::{CellId, NONE};
use super::codes;
use super::frames::Target;
use super::index::hash_key;
use super::machine::{Machine, Run};
use super::recording::Destination;
use super::require::{count_parts, each_inner, turns};
use super::units::{RunsIn, Scope, UnitId, Work};
use super::view::naming;

/// The number of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PlanId(u32);

/// What a constructor does.
#[derive(Debug)]
pub(super) struct Plan<'m> {
    entity: EntityId,
    span: Span,
    /// Members of indexes with where their values come from.
    index: SmallVec<[(u32, Source<'m>); 2]>,
    /// All others that are given or have a default.
    settings: Vec<Setting<'m>>,
    /// What is needed before the instance exists.
    needed: SmallVec<[&'m Expression; 4]>,
}

#[derive(Debug, Clone, Copy)]
enum Source<'m> {
    Given(&'m Expression, Span),
    Default(&'m Expression),
    Inferred,
    Missing,
}

/// A member and what it is given.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setting<'m> {
    pub(super) slot: u32,
    pub(super) value: &'m Expression,
    /// The keyword; none for a default.
    keyword: Option<Span>,
}

/// Settings that follow each other and are made together.
#[derive(Debug, Clone, Copy)]
struct Group {
    first: u32,
    /// Turns that pass before.
    turns: u8,
}

/// All plans.
#[derive(Debug, Default)]
pub(super) struct Plans<'m> {
    plans: Vec<Rc<Plan<'m>>>,
    /// By constructor.
    of: FxHashMap<usize, PlanId>,
    /// Of records that functions answer, by the place of the call.
    of_records: FxHashMap<(EntityId, Span), PlanId>,
}

impl<'m> Plans<'m> {
    /// A setting of a plan.
    pub(super) fn setting(&self, plan: PlanId, setting: u32) -> Setting<'m> {
        self.plans[plan.0 as usize].settings[setting as usize]
    }

    /// What an error says of a setting.
    pub(super) fn assignment(&self, plan: PlanId, setting: Setting<'m>) -> Assignment {
        let span = self.plans[plan.0 as usize].span;
        Assignment {
            span,
            shown: setting.keyword.unwrap_or(span),
            value: setting.keyword.map(|_| setting.value.span),
        }
    }
}

impl<'m> Machine<'m> {
    fn plan(&mut self, span: Span, constructor: &'m Constructor) -> PlanId {
        let key = std::ptr::from_ref(constructor).addr();
        if let Some(plan) = self.plans.of.get(&key) {
            return *plan;
        }
        let entity = &self.model.entities[constructor.entity.index()];
        let index_slots = &self.entities.plans[constructor.entity.index()].index_slots;
        let is_index = |slot: u32| index_slots.binary_search(&slot).is_ok();
        let given: SmallVec<[(u32, &'m Expression, Span); 8]> = constructor
            .keywords
            .iter()
            // The resolver has refused what the entity does not have.
            .filter_map(|(name, span, value)| entity.member(*name).map(|(slot, _)| (slot, value, *span)))
            .collect();
        let given_at = |slot: u32| given.iter().find(|(given, ..)| *given == slot);
        let default_of = |slot: u32| match &entity.members[slot as usize].kind {
            MemberKind::Attribute {
                default: Some(default),
                ..
            } => Some(&**default),
            _ => None,
        };
        let inferred = constructor
            .inferred
            .and_then(|name| entity.member(name))
            .map(|(slot, _)| slot);
        let mut plan = Plan {
            entity: constructor.entity,
            span,
            index: SmallVec::new(),
            settings: Vec::new(),
            needed: SmallVec::new(),
        };
        for slot in index_slots {
            let source = match (given_at(*slot), default_of(*slot)) {
                (Some((_, value, span)), _) => {
                    plan.needed.push(value);
                    Source::Given(value, *span)
                }
                (None, _) if inferred == Some(*slot) => Source::Inferred,
                (None, Some(default)) => Source::Default(default),
                (None, None) => Source::Missing,
            };
            plan.index.push((*slot, source));
        }
        plan.needed.extend(&constructor.dicts);
        for slot in 0..entity.members.len() as u32 {
            let Some(default) = default_of(slot).filter(|_| !is_index(slot)) else {
                continue;
            };
            plan.settings.push(match given_at(slot) {
                Some((_, value, span)) => Setting {
                    slot,
                    value,
                    keyword: Some(*span),
                },
                None => Setting {
                    slot,
                    value: default,
                    keyword: None,
                },
            });
        }
        for (slot, value, span) in &given {
            if !is_index(*slot) && default_of(*slot).is_none() {
                plan.settings.push(Setting {
                    slot: *slot,
                    value,
                    keyword: Some(*span),
                });
            }
        }
        let id = PlanId(self.plans.plans.len() as u32);
        self.plans.plans.push(Rc::new(plan));
        self.plans.of.insert(key, id);
        id
    }

    /// Sets up a constructor.
    pub(super) fn emit_constructor(
        &mut self,
        expression: &'m Expression,
        constructor: &'m Constructor,
        result: CellId,
        runs_in: RunsIn,
        scope: Scope,
    ) -> Run<()> {
        let plan = self.plan(expression.span, constructor);
        let needed = self.plans.plans[plan.0 as usize].clone();
        let unit = self
            .units
            .add(Work::Construct(expression, result, runs_in), scope);
        if let RunsIn::Consumer { unit: consumer, .. } = runs_in {
            self.units.put_within(consumer, unit);
        }
        self.require_all(unit, &needed.needed, Scope { owner: NONE, ..scope })?;
        self.units.release(unit);
        Ok(())
    }

    /// A constructor has what it needs.
    pub(super) fn run_construct(
        &mut self,
        unit: UnitId,
        expression: &'m Expression,
        result: CellId,
        scope: Scope,
    ) -> Run<()> {
        let ExpressionKind::Constructor(constructor) = &expression.kind else {
            return Ok(());
        };
        let id = self.plan(expression.span, constructor);
        let plan = self.plans.plans[id.0 as usize].clone();
        let (keys, from_dicts) = self.constructor_values(unit, &plan, constructor, scope)?;
        self.finish(unit);
        let instance = match self.find_existing(&plan, &keys)? {
            Some(existing) => {
                self.constructed_again
                    .entry(existing)
                    .or_default()
                    .push(plan.span);
                self.set_keys(existing, &plan, &keys)?;
                existing
            }
            None => self.create(&plan, &keys, scope)?,
        };
        self.set_up(instance, id, &plan, from_dicts, scope)?;
        self.refine(instance)?;
        self.set_result(result, Datum::Instance(instance));
        Ok(())
    }

    /// Makes an instance of an entity that is in no index, which a call at this place gives these attributes.
    pub(super) fn make_record(
        &mut self,
        entity: EntityId,
        given: Vec<(u32, Datum)>,
        span: Span,
        scope: Scope,
    ) -> Run<InstanceId> {
        let id = self.record_plan(entity, span);
        let plan = self.plans.plans[id.0 as usize].clone();
        let instance = self.create(&plan, &[], scope)?;
        self.set_up(instance, id, &plan, given, scope)?;
        self.refine(instance)?;
        Ok(instance)
    }

    /// A plan that sets what has a default, unless it is given.
    fn record_plan(&mut self, entity: EntityId, span: Span) -> PlanId {
        if let Some(plan) = self.plans.of_records.get(&(entity, span)) {
            return *plan;
        }
        let members = self.model.entities[entity.index()].members.iter().enumerate();
        let defaults = members.filter_map(|(slot, member)| match &member.kind {
            MemberKind::Attribute {
                default: Some(default),
                ..
            } => Some(Setting {
                slot: slot as u32,
                value: default,
                keyword: None,
            }),
            _ => None,
        });
        let plan = Plan {
            entity,
            span,
            index: SmallVec::new(),
            settings: defaults.collect(),
            needed: SmallVec::new(),
        };
        let id = PlanId(self.plans.plans.len() as u32);
        self.plans.plans.push(Rc::new(plan));
        self.plans.of_records.insert((entity, span), id);
        id
    }

    /// Values of members of indexes, and what stands behind `**` for the others.
    #[allow(clippy::type_complexity, reason = "two lists of slots with values")]
    fn constructor_values(
        &mut self,
        unit: UnitId,
        plan: &Plan<'m>,
        constructor: &'m Constructor,
        scope: Scope,
    ) -> Run<(SmallVec<[(u32, Datum); 2]>, Vec<(u32, Datum)>)> {
        let mut next = self.units.get(unit).parts;
        let mut keys: SmallVec<[(u32, Datum); 2]> = SmallVec::new();
        let inner = Scope { owner: NONE, ..scope };
        for (slot, source) in &plan.index {
            if let Source::Given(value, _) = source {
                let value = self.evaluate(value, inner, &mut next)?;
                keys.push((*slot, value));
            }
        }
        let mut from_dicts: Vec<(u32, Datum)> = Vec::new();
        for dict in &constructor.dicts {
            let value = self.evaluate(dict, inner, &mut next)?;
            self.take_dict(plan, constructor, dict.span, &value, &mut from_dicts)?;
        }
        let mut missing: SmallVec<[u32; 2]> = SmallVec::new();
        for (slot, source) in &plan.index {
            let position = from_dicts.iter().position(|(found, _)| found == slot);
            let value = match (position, source) {
                (_, Source::Given(..)) => continue,
                (Some(position), _) => from_dicts.remove(position).1,
                (None, Source::Inferred) if scope.owner != NONE => Datum::Instance(InstanceId(scope.owner)),
                (None, Source::Default(default)) => {
                    self.evaluate(default, super::machine::TOP, &mut CellId::none())?
                }
                (None, _) => {
                    missing.push(*slot);
                    continue;
                }
            };
            keys.push((*slot, value));
        }
        if !missing.is_empty() {
            return Machine::fail(self.missing_in_index(plan, &missing));
        }
        for (slot, value) in &keys {
            if let Datum::Deferred(_) = value.unmarked() {
                let name = self
                    .model
                    .text(self.model.entities[plan.entity.index()].members[*slot as usize].name);
                let message = format!("references can not be used in indexes, and `{name}` is in one");
                return Machine::fail(
                    Diagnostic::error(&codes::DEFERRED_KEY, plan.span, message).of_class(class::TYPING),
                );
            }
        }
        keys.sort_by_key(|(slot, _)| *slot);
        Ok((keys, from_dicts))
    }

    /// Takes what stands behind `**`.
    fn take_dict(
        &self,
        plan: &Plan<'m>,
        constructor: &'m Constructor,
        span: Span,
        value: &Datum,
        out: &mut Vec<(u32, Datum)>,
    ) -> Run<()> {
        let entries =
            naming!(self, naming => operators::keyword_dict(value, span, naming)).map_err(Stop::Error)?;
        let Some(entries) = entries else {
            let message =
                "the `**` operator can only be applied to dictionaries, and this value is not known yet";
            return Machine::fail(
                Diagnostic::error(&setpoint_cf_functions::codes::OPERAND, span, message)
                    .of_class(class::TYPING),
            );
        };
        let entity = &self.model.entities[plan.entity.index()];
        for (key, value) in entries.iter() {
            let member = entity
                .members
                .iter()
                .position(|member| **self.model.text(member.name) == **key);
            let Some(slot) = member.map(|slot| slot as u32) else {
                let names = entity
                    .members
                    .iter()
                    .map(|member| &**self.model.text(member.name));
                let message = format!("no attribute `{key}` on type `{}`", entity.name);
                return Machine::fail(
                    Diagnostic::error(&setpoint_cf_names::resolve::codes::NO_ATTRIBUTE, span, message)
                        .of_class(class::TYPING)
                        .help_if(setpoint_diagnostics::did_you_mean(key, names)),
                );
            };
            let name = entity.members[slot as usize].name;
            let keyword = constructor.keywords.iter().find(|(given, ..)| *given == name);
            if keyword.is_some() || out.iter().any(|(given, _)| *given == slot) {
                let message = format!(
                    "the attribute `{key}` is set twice in the constructor call of `{}`",
                    entity.name
                );
                let error = Diagnostic::error(&codes::GIVEN_TWICE, plan.span, message)
                    .of_class(class::RUNTIME)
                    .shown_at(span);
                return Machine::fail(match keyword {
                    Some((_, keyword, _)) => error.because(*keyword, "also given here"),
                    None => error,
                });
            }
            out.push((slot, value.clone()));
        }
        Ok(())
    }

    fn missing_in_index(&self, plan: &Plan<'m>, missing: &[u32]) -> Diagnostic {
        let entity = &self.model.entities[plan.entity.index()];
        let list: Vec<String> = missing
            .iter()
            .map(|slot| {
                let member = &entity.members[*slot as usize];
                let sort = match member.kind {
                    MemberKind::Relation(_) => "relation",
                    MemberKind::Attribute { .. } => "attribute",
                };
                format!("{sort} `{}`", self.model.text(member.name))
            })
            .collect();
        let verb = if list.len() == 1 { "is" } else { "are" };
        let message = format!(
            "missing {} in the constructor of `{}`, which {verb} part of an index",
            list.join(" and "),
            entity.name
        );
        Diagnostic::error(
            &setpoint_cf_names::resolve::codes::INDEX_MEMBER_MISSING,
            plan.span,
            message,
        )
        .of_class("IndexAttributeMissingInConstructorException")
    }

    /// The instance that has the keys already.
    fn find_existing(&self, plan: &Plan<'m>, keys: &[(u32, Datum)]) -> Run<Option<InstanceId>> {
        let mut hits: SmallVec<[(usize, InstanceId); 2]> = SmallVec::new();
        let indexes = &self.entities.plans[plan.entity.index()].indexes;
        for (number, (index, slots)) in indexes.iter().enumerate() {
            let values = key_values(keys, slots);
            if let Some(found) = self.find_in_index(*index, hash_key(&values), &values) {
                if self.entity_of(found) != plan.entity {
                    return Machine::fail(self.other_entity(plan, found));
                }
                hits.push((number, found));
            }
        }
        let Some((_, first)) = hits.first().copied() else {
            return Ok(None);
        };
        if hits.iter().all(|(_, hit)| *hit == first) {
            return Ok(Some(first));
        }
        let entity = &self.model.entities[plan.entity.index()];
        let message = format!(
            "inconsistent indexes: this constructor of `{}` is several instances at once",
            entity.name
        );
        let mut error =
            Diagnostic::error(&codes::KEYS_COLLIDE, plan.span, message).of_class("IndexCollisionException");
        for (number, hit) in hits {
            let members = &self.model.indexes[indexes[number].0.index()].members;
            let members: Vec<&str> = members.iter().map(|name| &**self.model.text(*name)).collect();
            let text = self.instance_text(hit);
            error = error
                .note(format!(
                    "index `{}({})` has {text}",
                    entity.name,
                    members.join(", ")
                ))
                .because(
                    self.instances[hit.0 as usize].span,
                    format!("the instance of index ({})", members.join(", ")),
                );
        }
        Machine::fail(error.help("all keys that a constructor gives must belong to one instance, or to none"))
    }

    fn other_entity(&self, plan: &Plan<'m>, found: InstanceId) -> Diagnostic {
        let wanted = &self.model.entities[plan.entity.index()].name;
        let data = &self.instances[found.0 as usize];
        let message = format!(
            "type found in index is not an exact match: the key of this `{wanted}` belongs to {}",
            self.instance_text(found)
        );
        Diagnostic::error(&codes::KEY_TAKEN, plan.span, message)
            .of_class("DuplicateException")
            .because(data.span, "constructed here")
    }

    fn create(&mut self, plan: &Plan<'m>, keys: &[(u32, Datum)], scope: Scope) -> Run<InstanceId> {
        if self.instances.len() as u64 >= self.options.max_instances {
            return Machine::fail(self.too_much("instances", self.options.max_instances));
        }
        let nesting = self
            .frames
            .get(scope.frame as usize)
            .map_or(0, |frame| frame.nesting + 1);
        if u64::from(nesting) > self.options.max_nesting() {
            return Machine::fail(self.too_deep(plan.span, plan.entity));
        }
        self.nesting.push(nesting);
        let instance = InstanceId(self.instances.len() as u32);
        let slots = self.entities.plans[plan.entity.index()].slots.len();
        let first = self.cells.add(slots, instance.0);
        self.instances.push(Instance {
            entity: plan.entity,
            first,
            span: plan.span,
            selected: 0,
            frame: NONE,
        });
        for slot in 0..slots {
            let slot_plan = self.entities.plans[plan.entity.index()].slots[slot];
            if let Some(kind) = slot_plan.gradual {
                let number =
                    self.cells
                        .make_gradual(first.at(slot as u32), kind, slot_plan.rank, slot_plan.bonus);
                if slot_plan.may_be_empty {
                    self.queue(number);
                }
            }
        }
        self.set_keys(instance, plan, keys)?;
        let count = self.entities.plans[plan.entity.index()].indexes.len();
        for number in 0..count {
            let (index, slots) = &self.entities.plans[plan.entity.index()].indexes[number];
            let values = key_values(keys, slots);
            let (index, hash) = (*index, hash_key(&values));
            self.enter_in_index(index, hash, instance);
        }
        Ok(instance)
    }

    fn set_keys(&mut self, instance: InstanceId, plan: &Plan<'m>, keys: &[(u32, Datum)]) -> Run<()> {
        let first = self.instances[instance.0 as usize].first;
        for (slot, value) in keys {
            let source = plan.index.iter().find(|(found, _)| found == slot);
            let (shown, given) = match source {
                Some((_, Source::Given(value, keyword))) => (*keyword, Some(value.span)),
                _ => (plan.span, None),
            };
            let assignment = Assignment {
                span: plan.span,
                shown,
                value: given,
            };
            self.assign_member(first.at(*slot), value, assignment)?;
        }
        Ok(())
    }

    /// Sets up assignments of all members that are in no index. Those that follow each other and need nothing else are one unit.
    fn set_up(
        &mut self,
        instance: InstanceId,
        id: PlanId,
        plan: &Plan<'m>,
        mut from_dicts: Vec<(u32, Datum)>,
        scope: Scope,
    ) -> Run<()> {
        let scope = Scope {
            owner: instance.0,
            ..scope
        };
        let mut group: Option<Group> = None;
        for (number, setting) in plan.settings.iter().enumerate() {
            let number = number as u32;
            let from_dict = from_dicts.iter().position(|(slot, _)| *slot == setting.slot);
            let cell = self.instances[instance.0 as usize].first.at(setting.slot);
            if from_dict.is_none()
                && self.cells.get(cell).gradual == NONE
                && let Some(turns) = self.turns_if_ready(setting.value, scope)?
            {
                if group.is_some_and(|group| group.turns != turns) {
                    self.end_group(&mut group, number, id, instance, scope);
                }
                group.get_or_insert(Group { first: number, turns });
                continue;
            }
            self.end_group(&mut group, number, id, instance, scope);
            if let Some(position) = from_dict {
                let (slot, value) = from_dicts.remove(position);
                self.set_later(slot, value, id, instance, scope);
                continue;
            }
            let work = Work::SetMember {
                plan: id,
                setting: number,
                instance,
            };
            let unit = self.units.add(work, scope);
            self.promise(cell);
            self.require_value(unit, cell, setting.value, scope)?;
            self.units.release(unit);
        }
        self.end_group(&mut group, plan.settings.len() as u32, id, instance, scope);
        for (slot, value) in from_dicts {
            self.set_later(slot, value, id, instance, scope);
        }
        Ok(())
    }

    fn end_group(
        &mut self,
        group: &mut Option<Group>,
        end: u32,
        plan: PlanId,
        instance: InstanceId,
        scope: Scope,
    ) {
        if let Some(Group { first, turns }) = group.take() {
            let work = Work::SetGroup {
                plan,
                first,
                end,
                instance,
            };
            let unit = self.units.add(work, scope);
            self.units.postpone(unit, turns);
            self.units.release(unit);
        }
    }

    fn set_later(&mut self, slot: u32, value: Datum, plan: PlanId, instance: InstanceId, scope: Scope) {
        let cell = self.instances[instance.0 as usize].first.at(slot);
        self.promise(cell);
        let value = Box::new(value);
        let work = Work::SetValue {
            plan,
            slot,
            instance,
            value,
        };
        let unit = self.units.add(work, scope);
        self.units.release(unit);
    }

    /// The number of turns until an expression is evaluated if it has no parts and all its values are set; otherwise none.
    pub(super) fn turns_if_ready(&self, expression: &'m Expression, scope: Scope) -> Run<Option<u8>> {
        if count_parts(expression) > 0 {
            return Ok(None);
        }
        match &expression.kind {
            ExpressionKind::Variable(_) | ExpressionKind::Attribute { .. } => {
                Ok(match self.resolve(expression, scope.frame)? {
                    Target::Value(_) => Some(0),
                    Target::Cell(cell) => self.cells.is_ready(cell).then(|| turns(expression)),
                    Target::Blocked(_) => None,
                })
            }
            ExpressionKind::Matches { .. } => Ok(None),
            _ => {
                let mut inner: SmallVec<[&'m Expression; 8]> = SmallVec::new();
                each_inner(expression, &mut |found| inner.push(found));
                let mut turns = 0;
                for found in inner {
                    match self.turns_if_ready(found, scope)? {
                        Some(needed) => turns = turns.max(needed),
                        None => return Ok(None),
                    }
                }
                Ok(Some(turns))
            }
        }
    }

    /// Assigns members that follow each other in a plan.
    pub(super) fn run_set_group(
        &mut self,
        unit: UnitId,
        plan: PlanId,
        first: u32,
        end: u32,
        instance: InstanceId,
        scope: Scope,
    ) -> Run<()> {
        for number in first..end {
            let setting = self.plans.setting(plan, number);
            let cell = self.instances[instance.0 as usize].first.at(setting.slot);
            let assignment = self.plans.assignment(plan, setting);
            let value = self
                .evaluate(setting.value, scope, &mut CellId::none())
                .map_err(|stop| self.error_of_value(stop, cell, assignment))?;
            self.record_value(None, setting.value, scope, || Destination::Attribute(cell));
            self.assign_member(cell, &value, assignment)?;
            if let Some(recorder) = &mut self.recorder {
                recorder.forget_pending();
            }
        }
        self.finish(unit);
        Ok(())
    }

    /// Assigns one member.
    pub(super) fn run_set_member(
        &mut self,
        unit: UnitId,
        plan: PlanId,
        setting: u32,
        instance: InstanceId,
        scope: Scope,
    ) -> Run<()> {
        let setting = self.plans.setting(plan, setting);
        let cell = self.instances[instance.0 as usize].first.at(setting.slot);
        let assignment = self.plans.assignment(plan, setting);
        self.assign_value(unit, cell, setting.value, assignment, scope)?;
        self.finish(unit);
        self.keep_promise(cell);
        Ok(())
    }

    /// Assigns one member whose value was behind `**`.
    pub(super) fn run_set_value(
        &mut self,
        unit: UnitId,
        plan: PlanId,
        slot: u32,
        instance: InstanceId,
        value: &Datum,
    ) -> Run<()> {
        let cell = self.instances[instance.0 as usize].first.at(slot);
        let span = self.plans.plans[plan.0 as usize].span;
        let assignment = Assignment {
            span,
            shown: span,
            value: None,
        };
        self.assign_member(cell, value, assignment)?;
        self.finish(unit);
        self.keep_promise(cell);
        Ok(())
    }
}

/// The values of an index in the order of its members.
fn key_values(keys: &[(u32, Datum)], slots: &[u32]) -> SmallVec<[Datum; 2]> {
    let value_of = |slot: &u32| {
        keys.iter()
            .find(|(found, _)| found == slot)
            .map_or(Datum::Null, |(_, value)| value.clone())
    };
    slots.iter().map(value_of).collect()
}
