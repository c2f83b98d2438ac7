//! Named functions, typed once for all their calls.
//!
//! A function's body is typed when it is first called, with variables for what its parameters may be. What is left open then, and
//! what waits for it, is the function's *scheme*; each call takes a copy of that with variables of its own, and not of the body. At the
//! end there is one instance of the body for each set of types that calls come to.
//!
//! A body that decides types outside of itself (a captured lambda gets its one type from it), or that holds what must be asked anew
//! for each call, has no scheme: such a function is typed anew for each call.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use setpoint_diagnostics::Span;
use setpoint_value::Type;

use super::codes;
use super::completion::Check;
use super::deferred::{Deferred, DeferredKind, Question};
use super::infer::{Inference, MAXIMUM_CALLS, Recorded};
use super::instances::InstanceId;
use super::order::Node;
use super::sharing::Substitution;
use super::solver::{Reach, address};
use crate::hir::{ExprId, FunctionId, Owner};
use crate::stack::with_room;

/// So much may be left open in one function: a function that calls another one twice has twice what that one leaves open.
const MAXIMUM_OPEN: usize = 10_000;

/// So much may be copied for all calls together.
const MAXIMUM_COPIED: usize = 1 << 24;

/// How a function of the program is typed.
#[derive(Debug, Clone)]
pub(super) enum FunctionTyping {
    /// Once; its scheme by number.
    General(usize),
    /// For each call. The first call takes what was found when that was seen.
    Anew(Option<(InstanceId, Type)>),
    /// Not at all: it calls itself, or is too large.
    Refused,
}

/// A function's type, as far as all calls share it.
#[derive(Debug)]
pub(super) struct Scheme {
    function: FunctionId,
    parent: InstanceId,
    /// The instance that its body was typed in.
    body: InstanceId,
    ty: Type,
    /// What each call decides for itself, with the first expression whose type holds it.
    variables: Vec<(u32, ExprId)>,
    /// What waits for the variables.
    deferred: Vec<Deferred>,
    imposed: Vec<Deferred>,
    checks: Vec<Check>,
    /// Types of the expressions of the body.
    recorded: Vec<(ExprId, Type)>,
    /// Calls in the body.
    applications: Vec<Application>,
}

impl Scheme {
    /// How much each call takes a copy of.
    fn size(&self) -> usize {
        self.variables.len() + self.deferred.len() + self.imposed.len() + self.checks.len()
    }
}

/// A call of a function that has a scheme.
#[derive(Debug, Clone)]
pub(super) struct Application {
    caller: InstanceId,
    call: ExprId,
    scheme: usize,
    /// What the variables of the scheme are here.
    types: Vec<Type>,
}

/// How much there was before a body was typed.
struct Mark {
    floor: u32,
    outer_reach: Reach,
    instances: usize,
    outside: usize,
    recorded: usize,
    deferred: usize,
    imposed: usize,
    checks: usize,
    failed: usize,
    applications: usize,
}

impl Inference<'_> {
    /// The type of a function for one call.
    pub(super) fn called_function(
        &mut self,
        caller: InstanceId,
        call: ExprId,
        parent: InstanceId,
        id: FunctionId,
        span: Span,
    ) -> Option<Type> {
        let node = Node::Function(parent, id);
        if !self.functions.contains_key(&(parent, id)) {
            self.type_needs(node);
            self.new_function(parent, id);
            self.in_progress.remove(&node);
        }
        self.used(node);
        match self.functions.get_mut(&(parent, id)) {
            Some(FunctionTyping::General(scheme)) => {
                let scheme = *scheme;
                self.copied += self.schemes[scheme].size();
                if self.copied > MAXIMUM_COPIED {
                    self.too_much(span);
                    return None;
                }
                Some(self.apply(caller, call, scheme, span))
            }
            Some(FunctionTyping::Anew(first)) => {
                let first = first.take();
                self.typed_anew(caller, call, parent, id, first, span)
            }
            Some(FunctionTyping::Refused) | None => None,
        }
    }

    fn typed_anew(
        &mut self,
        caller: InstanceId,
        call: ExprId,
        parent: InstanceId,
        id: FunctionId,
        first: Option<(InstanceId, Type)>,
        span: Span,
    ) -> Option<Type> {
        let (inner, ty) = match first {
            Some(first) => first,
            None => {
                if self.calls >= MAXIMUM_CALLS || self.typed.instances.len() >= self.most_instances {
                    self.too_much(span);
                    return None;
                }
                let inner = self.instance(Owner::Function(id), Some(parent));
                self.calls += 1;
                let ty = self.function_type(inner, id);
                self.calls -= 1;
                (inner, ty)
            }
        };
        self.typed.instances[caller.0 as usize].calls.insert(call, inner);
        Some(ty)
    }

    /// Types a function's body, what it needs being typed, and finds out whether that holds for all calls.
    pub(super) fn new_function(&mut self, parent: InstanceId, id: FunctionId) {
        if self.functions.contains_key(&(parent, id)) {
            return;
        }
        let mark = Mark {
            floor: self.solver.count(),
            outer_reach: self.solver.begin_reach(),
            instances: self.typed.instances.len() + 1,
            outside: self.definitions_typed,
            recorded: self.recorded.len(),
            deferred: self.deferred.len(),
            imposed: self.imposed.len(),
            checks: self.checks.len(),
            failed: self.failed.len(),
            applications: self.applications.len(),
        };
        let inner = self.instance(Owner::Function(id), Some(parent));
        let ty = self.function_type(inner, id);
        let own = self.deferred.split_off(mark.deferred);
        let others = std::mem::replace(&mut self.deferred, own);
        self.resolve_deferred(false);
        let own = std::mem::replace(&mut self.deferred, others);
        let own = self.merged(own);
        let is_general = !self.solver.reaches_below(mark.floor)
            && self.typed.instances.len() == mark.instances
            && self.definitions_typed == mark.outside
            // What it calls is typed anew for each call, so it is, too.
            && self.typed.instance(inner).calls.is_empty()
            && self.failed.len() == mark.failed
            && !own
                .iter()
                .any(|deferred| matches!(deferred.what, DeferredKind::Hooked(_)));
        self.solver.end_reach(mark.outer_reach);
        // What is too large once is not copied, nor made again for each call: there may be very many.
        let typing = if self.findings.has(&codes::TOO_DEEP) {
            self.deferred.extend(own);
            FunctionTyping::Refused
        } else if is_general {
            let scheme = self.generalise(parent, id, inner, &ty, own, &mark);
            if self.schemes[scheme].size() > MAXIMUM_OPEN {
                self.too_much(self.hir.function(id).span);
            }
            FunctionTyping::General(scheme)
        } else {
            self.deferred.extend(own);
            FunctionTyping::Anew(Some((inner, ty)))
        };
        self.functions.insert((parent, id), typing);
    }

    fn generalise(
        &mut self,
        parent: InstanceId,
        function: FunctionId,
        body: InstanceId,
        ty: &Type,
        mut deferred: Vec<Deferred>,
        mark: &Mark,
    ) -> usize {
        self.solver.settle();
        let ty = self.solver.zonk(ty);
        let mut variables = Variables {
            floor: mark.floor,
            seen: FxHashSet::default(),
            walked: FxHashMap::default(),
            list: Vec::new(),
        };
        let mut recorded = Vec::new();
        for entry in self.recorded.split_off(mark.recorded) {
            let found = self.solver.zonk(&entry.ty);
            variables.take(&found, entry.expr);
            if entry.instance.is_some() {
                recorded.push((entry.expr, found));
            }
        }
        let whole = self.hir.function(function).body;
        variables.take(&ty, whole);
        for parked in &mut deferred {
            let span = parked.span;
            for ty in parked.what.types_mut() {
                *ty = self.whole(ty, span);
                variables.take(ty, whole);
            }
        }
        let (mut imposed, mut checks) = (Vec::new(), Vec::new());
        let mut seen = FxHashSet::default();
        for mut one in self.imposed.split_off(mark.imposed) {
            let mut is_open = false;
            let span = one.span;
            for ty in one.what.types_mut() {
                *ty = self.whole(ty, span);
                is_open |= variables.take(ty, whole);
            }
            let same: Vec<Type> = one.what.types_mut().into_iter().map(|ty| ty.clone()).collect();
            if !is_open {
                self.imposed.push(one);
            } else if seen.insert(same) {
                imposed.push(one);
            }
        }
        let mut seen = FxHashSet::default();
        for mut check in self.checks.split_off(mark.checks) {
            let span = check.span;
            let ty = check.ty_mut();
            *ty = self.whole(ty, span);
            if !variables.take(ty, whole) {
                self.checks.push(check);
            } else if seen.insert(check.meaning()) {
                checks.push(check);
            }
        }
        let mut applications = self.applications.split_off(mark.applications);
        for application in &mut applications {
            let span = self.hir.expr(application.call).span;
            for ty in &mut application.types {
                *ty = self.whole(ty, span);
                variables.take(ty, whole);
            }
        }
        self.solver.unsettle();
        self.schemes.push(Arc::new(Scheme {
            function,
            parent,
            body,
            ty,
            variables: variables.list,
            deferred,
            imposed,
            checks,
            recorded,
            applications,
        }));
        self.schemes.len() - 1
    }

    /// The type with everything put in that is known, unless it is too large to be handled, which is told.
    fn whole(&mut self, ty: &Type, span: Span) -> Type {
        let ty = self.bounded(ty.clone(), span);
        self.solver.zonk(&ty)
    }

    /// What waits, with those that wait for the same thing being one: what is looked up in the same container with the same index,
    /// or read from the same struct, has one type.
    fn merged(&mut self, mut waiting: Vec<Deferred>) -> Vec<Deferred> {
        loop {
            let before = waiting.len();
            let mut seen: FxHashMap<Question, Type> = FxHashMap::default();
            let mut kept = Vec::with_capacity(before);
            for deferred in waiting {
                let Some((mut question, result)) = deferred.what.question() else {
                    kept.push(deferred);
                    continue;
                };
                for ty in &mut question.asked {
                    *ty = self.solver.zonk(ty);
                }
                match seen.entry(question) {
                    Entry::Occupied(same) => {
                        if self.solver.unify(same.get(), &result).is_err() {
                            kept.push(deferred);
                        }
                    }
                    Entry::Vacant(first) => {
                        first.insert(result);
                        kept.push(deferred);
                    }
                }
            }
            waiting = kept;
            if waiting.len() == before {
                return waiting;
            }
        }
    }

    /// A function's type with variables of its own for a call.
    fn apply(&mut self, caller: InstanceId, call: ExprId, scheme: usize, span: Span) -> Type {
        let count = self.schemes[scheme].variables.len();
        let types: Vec<Type> = (0..count).map(|_| self.solver.fresh()).collect();
        let known = self.schemes[scheme].clone();
        let mut own = known.given(&types);
        let mut put = |ty: &Type| own.put(ty, &mut self.solver);
        let ty = put(&known.ty);
        let firsts: Vec<ExprId> = known.variables.iter().map(|(_, first)| *first).collect();
        let mut copies = |list: &[Deferred]| {
            let copy = |deferred: &Deferred| deferred.for_call(span, &mut put);
            list.iter().map(copy).collect::<Vec<_>>()
        };
        let (deferred, imposed) = (copies(&known.deferred), copies(&known.imposed));
        let checks: Vec<Check> = known
            .checks
            .iter()
            .map(|check| check.for_call(span, &mut put))
            .collect();
        for (expr, ty) in firsts.into_iter().zip(&types) {
            let place = self.places.next();
            self.recorded.push(Recorded {
                place,
                instance: None,
                expr,
                ty: ty.clone(),
            });
        }
        for mut one in deferred {
            one.place = self.places.next();
            self.deferred.push(one);
        }
        for mut one in imposed {
            one.place = self.places.next();
            self.imposed.push(one);
        }
        for mut check in checks {
            check.place = self.places.next();
            self.checks.push(check);
        }
        self.applications.push(Application {
            caller,
            call,
            scheme,
            types,
        });
        ty
    }

    /// Makes the instances of functions that have schemes: one for each set of types that a call came to.
    pub(super) fn instances_of_functions(&mut self, types: &mut FxHashMap<(InstanceId, ExprId), Type>) {
        let mut made: FxHashMap<(usize, Vec<Type>), InstanceId> = FxHashMap::default();
        let mut open = std::mem::take(&mut self.applications);
        for ty in open.iter_mut().flat_map(|application| &mut application.types) {
            *ty = self.solver.zonk(ty);
        }
        while let Some(application) = open.pop() {
            let Application {
                caller,
                call,
                scheme,
                types: given,
            } = application;
            let span = self.hir.expr(call).span;
            let key = (scheme, given);
            let instance = match made.get(&key) {
                Some(instance) => *instance,
                None => {
                    if self.typed.instances.len() >= self.most_instances {
                        self.too_much(span);
                        return;
                    }
                    let known = self.schemes[scheme].clone();
                    let instance = self.instance(Owner::Function(known.function), Some(known.parent));
                    let mut own = known.given(&key.1);
                    for (expr, ty) in &known.recorded {
                        let ty = own.put(ty, &mut self.solver);
                        let ty = self.whole(&ty, span);
                        types.insert((instance, *expr), ty);
                    }
                    let body = self.typed.instance(known.body).definitions.iter();
                    let parameters: Vec<_> = body.map(|(id, ty)| (*id, ty.clone())).collect();
                    for (id, ty) in parameters {
                        // The variables of the scheme are what its parameters came to; a type too large to be handled is told.
                        let ty = self.whole(&ty, span);
                        let ty = own.put(&ty, &mut self.solver);
                        let ty = self.whole(&ty, span);
                        self.typed.instances[instance.0 as usize]
                            .definitions
                            .insert(id, ty);
                    }
                    for application in &known.applications {
                        let mut given = Vec::with_capacity(application.types.len());
                        for ty in &application.types {
                            let ty = own.put(ty, &mut self.solver);
                            given.push(self.whole(&ty, span));
                        }
                        open.push(Application {
                            caller: instance,
                            types: given,
                            ..*application
                        });
                    }
                    made.insert(key, instance);
                    instance
                }
            };
            self.typed.instances[caller.0 as usize]
                .calls
                .insert(call, instance);
        }
    }
}

impl Scheme {
    /// What its variables are for a call.
    fn given(&self, types: &[Type]) -> Substitution {
        let variables = self.variables.iter().map(|(variable, _)| *variable);
        Substitution::new(variables.zip(types.iter().cloned()))
    }
}

/// The variables that are a function's own, in the order in which they are met.
struct Variables {
    /// Those below are of what is around it.
    floor: u32,
    seen: FxHashSet<u32>,
    /// Types by their address, and whether they have any.
    walked: FxHashMap<usize, (Type, bool)>,
    list: Vec<(u32, ExprId)>,
}

impl Variables {
    /// Takes those of a type; answers whether it has any.
    fn take(&mut self, ty: &Type, expr: ExprId) -> bool {
        if let Type::Variable(variable) = ty {
            if *variable >= self.floor && self.seen.insert(*variable) {
                self.list.push((*variable, expr));
            }
            return *variable >= self.floor;
        }
        let Some(address) = address(ty) else { return false };
        if let Some((_, any)) = self.walked.get(&address) {
            return *any;
        }
        let mut any = false;
        with_room(|| ty.for_each_part(&mut |part| any |= self.take(part, expr)));
        self.walked.insert(address, (ty.clone(), any));
        any
    }
}
