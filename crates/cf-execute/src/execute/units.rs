//! Units of work, and who of them can run.
//!
//! A unit counts what it still waits for. It begins with one, which is taken away when it has been set up, so that nothing can run before it
//! is complete. At none it goes to the end of the run queue. Numbers of finished units are used again; `registered` tells them apart.

use std::collections::VecDeque;

use setpoint_cf_names::datum::{Datum, InstanceId};
use setpoint_cf_names::hir::{Comprehension, Expression, Implement, Statement};

use super::blocks::Blocks;
use super::cells::CellId;
use super::construct::PlanId;
use super::promises::Promised;

/// The number of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct UnitId(pub u32);

/// Where an expression is evaluated: the innermost block instance, and the instance on whose relation what it constructs is put.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scope {
    /// The number of the block instance; [`super::cells::NONE`] at the top of a file.
    pub(super) frame: u32,
    /// For index members of constructors that are inferred.
    pub(super) owner: u32,
}

/// Where the value of an expression goes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Sink {
    /// Nowhere: it is evaluated for its effects.
    Nowhere,
    /// Into a cell, complete.
    Cell(CellId),
    /// Element by element to a unit that takes them as they come.
    Gradual(UnitId),
}

/// Where a constructor runs.
#[derive(Debug, Clone, Copy)]
pub(super) enum RunsIn {
    /// In a unit of its own.
    OwnUnit,
    /// In the unit that evaluates the expression around it. `next` is the constructor after it.
    Consumer { unit: UnitId, next: Option<UnitId> },
}

/// What a unit does.
#[derive(Debug, Clone)]
pub(super) enum Work<'m> {
    /// Nothing: the number is free.
    Free,
    /// `x = e`.
    AssignVariable(&'m Statement),
    /// `r.a = e`; the cell once it is found.
    AssignMember(&'m Statement, CellId),
    /// `for`; whether what it goes through is told by listeners.
    For(&'m Statement),
    /// `if`, at one of its conditions.
    If(&'m Statement, u32),
    /// Evaluates an expression and puts its value somewhere.
    Evaluate(&'m Expression, Sink),
    /// Passes elements of an expression on as they come.
    Forward(&'m Expression, UnitId),
    /// A call.
    Call(&'m Expression, CellId),
    /// A constructor.
    Construct(&'m Expression, CellId, RunsIn),
    /// A lookup in an index.
    Lookup(&'m Expression, CellId),
    /// `c ? a : b`, before its condition is known.
    Conditional(&'m Expression, Sink),
    /// `and`, `or`, at one of its operands.
    Logic(&'m Expression, u32, CellId),
    /// `is defined`.
    IsDefined(&'m Expression, CellId),
    /// A loop of a comprehension.
    Loop {
        comprehension: &'m Comprehension,
        level: u32,
        /// Whether the elements that are gone through have been handed out.
        is_open: bool,
        sink: LoopSink,
    },
    /// An element of a comprehension, at one of its conditions, or behind them.
    Element {
        comprehension: &'m Comprehension,
        /// The loop, and which of its elements this is.
        parent: UnitId,
        position: u32,
        condition: u32,
    },
    /// Follows a reference by one attribute, for a unit that waits for what it leads to.
    Hop {
        reference: &'m Expression,
        /// Number of attributes that are resolved.
        attributes: u8,
        target: UnitId,
        /// Whether the unit takes elements as they come.
        is_gradual: bool,
    },
    /// Makes a promise as soon as the relation is found.
    Acquire {
        promised: Promised,
        holder: UnitId,
        registered: u32,
    },
    /// Gives an instance some of its attributes: those of a plan that need nothing else.
    SetGroup {
        plan: PlanId,
        first: u32,
        end: u32,
        instance: InstanceId,
    },
    /// Gives an instance one attribute.
    SetMember {
        plan: PlanId,
        setting: u32,
        instance: InstanceId,
    },
    /// Gives an instance an attribute whose value is known.
    SetValue {
        plan: PlanId,
        slot: u32,
        instance: InstanceId,
        value: Box<Datum>,
    },
    /// Refines an instance by `implement` statements that follow each other.
    Refine {
        implements: &'m [std::sync::Arc<Implement>],
        instance: InstanceId,
    },
}

/// Where elements of a comprehension go.
#[derive(Debug, Clone, Copy)]
pub(super) enum LoopSink {
    /// All together into a cell.
    Cell(CellId),
    /// All together into a place of the loop around it.
    Parent(UnitId, u32),
    /// Each for itself to a unit, and when there are no more, a unit waits for one thing less.
    Gradual { target: UnitId, closes: UnitId },
}

/// A unit of work.
#[derive(Debug)]
pub(super) struct Unit<'m> {
    pub(super) work: Work<'m>,
    pub(super) scope: Scope,
    /// How much it still waits for.
    pub(super) waiting: u32,
    /// Turns that it lets pass once it can run.
    delay: u8,
    /// When it came to be: units are told apart by it, and ordered.
    pub(super) registered: u32,
    /// Results of parts of its expressions.
    pub(super) parts: CellId,
    pub(super) part_count: u32,
    /// The first and the last of the constructors that it runs before its own work.
    inner: Option<(UnitId, UnitId)>,
}

/// All units.
#[derive(Debug)]
pub(super) struct Units<'m> {
    units: Blocks<Unit<'m>>,
    free: Vec<UnitId>,
    queue: VecDeque<UnitId>,
    registered: u32,
}

impl<'m> Units<'m> {
    pub(super) fn new() -> Units<'m> {
        Units {
            units: Blocks::new(),
            free: Vec::new(),
            queue: VecDeque::new(),
            registered: 0,
        }
    }

    /// A new unit that waits until it is released.
    pub(super) fn add(&mut self, work: Work<'m>, scope: Scope) -> UnitId {
        self.registered = self.registered.wrapping_add(1);
        let unit = Unit {
            work,
            scope,
            waiting: 1,
            registered: self.registered,
            parts: CellId::NONE,
            part_count: 0,
            delay: 0,
            inner: None,
        };
        match self.free.pop() {
            Some(id) => {
                self.units[id.0 as usize] = unit;
                id
            }
            None => {
                self.units.push(unit);
                UnitId(self.units.len() as u32 - 1)
            }
        }
    }

    /// Gives the number of a finished unit back.
    pub(super) fn remove(&mut self, id: UnitId) {
        self.units[id.0 as usize].work = Work::Free;
        self.free.push(id);
    }

    pub(super) fn get(&self, id: UnitId) -> &Unit<'m> {
        &self.units[id.0 as usize]
    }

    pub(super) fn get_mut(&mut self, id: UnitId) -> &mut Unit<'m> {
        &mut self.units[id.0 as usize]
    }

    /// A unit waits for one thing more.
    pub(super) fn hold(&mut self, id: UnitId) {
        self.get_mut(id).waiting += 1;
    }

    /// A unit waits for one thing less.
    pub(super) fn release(&mut self, id: UnitId) {
        let unit = self.get_mut(id);
        if unit.waiting > 1 {
            // The turns pass while it waits.
            unit.delay = 0;
        }
        self.release_in_time(id);
    }

    /// Releases a unit without giving up the turns that it lets pass.
    fn release_in_time(&mut self, id: UnitId) {
        let unit = self.get_mut(id);
        unit.waiting -= 1;
        if unit.waiting > 0 {
            return;
        }
        match unit.work {
            Work::Construct(_, _, RunsIn::Consumer { unit: consumer, .. }) => {
                let delay = std::mem::take(&mut unit.delay);
                self.postpone(consumer, delay);
                self.release_in_time(consumer);
            }
            _ => self.queue.push_back(id),
        }
    }

    /// Makes a unit let at least `turns` turns pass once it can run.
    pub(super) fn postpone(&mut self, id: UnitId, turns: u8) {
        let unit = self.get_mut(id);
        unit.delay = unit.delay.max(turns);
    }

    /// The next one that can run.
    pub(super) fn next(&mut self) -> Option<UnitId> {
        loop {
            let id = self.queue.pop_front()?;
            let unit = self.get_mut(id);
            if unit.delay == 0 {
                return Some(id);
            }
            unit.delay -= 1;
            self.queue.push_back(id);
        }
    }

    /// Makes a unit run a constructor before its own work, after the constructors that it has.
    pub(super) fn put_within(&mut self, consumer: UnitId, constructor: UnitId) {
        self.hold(consumer);
        let inner = &mut self.get_mut(consumer).inner;
        let last = inner.map(|(_, last)| last);
        *inner = Some((inner.map_or(constructor, |(first, _)| first), constructor));
        if let Some(last) = last
            && let Work::Construct(_, _, RunsIn::Consumer { next, .. }) = &mut self.get_mut(last).work
        {
            *next = Some(constructor);
        }
    }

    /// The first constructor that a unit has not run yet, and what comes after it.
    pub(super) fn first_within(&self, consumer: UnitId) -> Option<(UnitId, Option<UnitId>)> {
        let (first, _) = self.get(consumer).inner?;
        match self.get(first).work {
            Work::Construct(_, _, RunsIn::Consumer { next, .. }) => Some((first, next)),
            _ => None,
        }
    }

    /// A unit has run the first of its constructors.
    pub(super) fn go_on_within(&mut self, consumer: UnitId, next: Option<UnitId>) {
        let inner = &mut self.get_mut(consumer).inner;
        *inner = inner.and_then(|(_, last)| next.map(|next| (next, last)));
    }

    /// All that have not finished, in the order in which they came to be.
    pub(super) fn unfinished(&self) -> Vec<&Unit<'m>> {
        let mut units: Vec<&Unit<'m>> = self
            .units
            .iter()
            .filter(|unit| !matches!(unit.work, Work::Free))
            .collect();
        units.sort_by_key(|unit| unit.registered);
        units
    }
}
