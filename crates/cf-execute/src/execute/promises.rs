//! Promises that control statements make in advance for the assignments inside them.
//!
//! Before it is known whether a branch is taken, what it adds to a relation must not be forgotten when relations are frozen. So `if` and `for`
//! promise, from the moment they are set up until they have decided, for each relation that an assignment inside them may add to.

use rustc_hash::FxHashMap;
use setpoint_cf_functions::codes as function_codes;
use setpoint_cf_functions::context::Stop;
use setpoint_cf_names::datum::Datum;
use setpoint_cf_names::hir::{Block, Expression, ExpressionKind, Place, Statement, StatementKind};
use setpoint_cf_names::ids::Symbol;
use setpoint_diagnostics::Span;
use smallvec::SmallVec;
use std::rc::Rc;

use super::cells::CellId;
use super::frames::Target;
use super::machine::{Machine, Run};
use super::units::{Scope, UnitId, Work};

/// One assignment that a control statement promises: in which list, and where there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Promised {
    list: u32,
    index: u32,
}

/// An assignment inside a control statement.
#[derive(Debug)]
struct Inner<'m> {
    /// The instance.
    instance: &'m Expression,
    /// How many blocks lie between it and the control statement.
    lift: u16,
    /// Its member.
    member: Symbol,
    /// The name of the member.
    member_span: Span,
}

/// All promises of control statements.
#[derive(Debug, Default)]
pub(super) struct Promises<'m> {
    lists: Vec<Rc<[Inner<'m>]>>,
    /// By statement and branch.
    list_of: FxHashMap<(usize, u32), u32>,
    /// What units have promised.
    held: FxHashMap<UnitId, SmallVec<[CellId; 2]>>,
}

impl<'m> Promises<'m> {
    fn list_of(&mut self, statement: &'m Statement, branch: u32) -> u32 {
        let key = (std::ptr::from_ref(statement).addr(), branch);
        if let Some(list) = self.list_of.get(&key) {
            return *list;
        }
        let mut inner = Vec::new();
        collect_statement(statement, branch as usize, 0, &mut inner);
        let list = self.lists.len() as u32;
        self.lists.push(inner.into());
        self.list_of.insert(key, list);
        list
    }
}

/// The assignments in the blocks of a statement that concern what is declared outside of it.
fn collect_statement<'m>(statement: &'m Statement, branch: usize, lift: u16, out: &mut Vec<Inner<'m>>) {
    match &statement.kind {
        StatementKind::For { body, .. } => collect_block(body, lift + 1, out),
        StatementKind::If { branches, otherwise } => {
            let blocks = branches.iter().skip(branch).map(|(_, block)| block);
            for block in blocks.chain(otherwise) {
                collect_block(block, lift + 1, out);
            }
        }
        StatementKind::AssignMember {
            instance,
            member,
            member_span,
            ..
        } if lift > 0 && is_outside(instance, lift) => out.push(Inner {
            instance,
            lift,
            member: *member,
            member_span: *member_span,
        }),
        _ => {}
    }
}

fn collect_block<'m>(block: &'m Block, lift: u16, out: &mut Vec<Inner<'m>>) {
    for statement in &block.statements {
        collect_statement(statement, 0, lift, out);
    }
}

/// Whether the first name of a reference is declared at least so many blocks outwards.
fn is_outside(reference: &Expression, lift: u16) -> bool {
    let mut root = reference;
    while let ExpressionKind::Attribute { of, .. } = &root.kind {
        root = of;
    }
    match root.kind {
        ExpressionKind::Variable(Place::Local { up, .. }) => up >= lift,
        _ => true,
    }
}

impl<'m> Machine<'m> {
    /// A control statement promises for the assignments inside it, from one of its branches on.
    pub(super) fn promise_inner(
        &mut self,
        unit: UnitId,
        statement: &'m Statement,
        branch: u32,
        scope: Scope,
    ) -> Run<()> {
        let list = self.promises.list_of(statement, branch);
        let count = self.promises.lists[list as usize].len() as u32;
        for index in 0..count {
            self.acquire(unit, Promised { list, index }, scope)?;
        }
        Ok(())
    }

    /// Promises for one assignment as soon as its target is known. Answers the cell to wait for, if there is one. A member that the
    /// target lacks is an error, although the branch may never be taken. Without a holder it promises nothing.
    fn try_acquire(
        &mut self,
        holder: Option<UnitId>,
        promised: Promised,
        scope: Scope,
    ) -> Run<Option<CellId>> {
        let list = self.promises.lists[promised.list as usize].clone();
        let inner = &list[promised.index as usize];
        // The assignment reports all other errors of its target when it runs.
        let owner = match self.resolve_from(inner.instance, scope.frame, inner.lift) {
            Ok(Target::Blocked(cell)) => return Ok(Some(cell)),
            Ok(Target::Cell(cell)) if !self.cells.is_ready(cell) => return Ok(Some(cell)),
            Ok(Target::Cell(cell)) => {
                if let Some(recorder) = &self.recorder {
                    recorder.touch_way(cell);
                }
                self.cells.get(cell).value.clone()
            }
            Ok(Target::Value(value)) => value,
            Err(Stop::Error(error)) if error.code == &function_codes::NOT_FOUND => {
                return Err(Stop::Error(error));
            }
            Err(_) => return Ok(None),
        };
        let Datum::Instance(owner) = owner else {
            return Ok(None);
        };
        let (cell, _) = self.member_cell(owner, inner.member, inner.member_span)?;
        if let Some(holder) = holder
            && !self.cells.is_ready(cell)
            && self.promise(cell)
        {
            self.promises.held.entry(holder).or_default().push(cell);
        }
        Ok(None)
    }

    fn acquire(&mut self, holder: UnitId, promised: Promised, scope: Scope) -> Run<()> {
        if let Some(cell) = self.try_acquire(Some(holder), promised, scope)? {
            let registered = self.units.get(holder).registered;
            let work = Work::Acquire {
                promised,
                holder,
                registered,
            };
            let unit = self.units.add(work, scope);
            // A promise needs nothing to be frozen.
            self.wait(unit, cell, true);
            self.units.release(unit);
        }
        Ok(())
    }

    /// What a promise needs is known.
    pub(super) fn run_acquire(
        &mut self,
        unit: UnitId,
        promised: Promised,
        holder: UnitId,
        registered: u32,
        scope: Scope,
    ) -> Run<()> {
        let found = self.units.get(holder);
        let is_undecided =
            found.registered == registered && matches!(found.work, Work::For(_) | Work::If(..));
        match self.try_acquire(is_undecided.then_some(holder), promised, scope)? {
            Some(cell) => {
                self.units.hold(unit);
                self.wait(unit, cell, true);
                self.units.release(unit);
            }
            None => self.units.remove(unit),
        }
        Ok(())
    }

    /// A control statement has decided.
    pub(super) fn release_promises(&mut self, unit: UnitId) {
        if self.promises.held.is_empty() {
            return;
        }
        for cell in self.promises.held.remove(&unit).unwrap_or_default() {
            self.keep_promise(cell);
        }
    }
}
