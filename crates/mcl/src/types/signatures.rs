//! Calls of library functions by their signatures.

use rustc_hash::FxHashMap;
use setpoint_diagnostics::{Diagnostic, Span};
use setpoint_value::{FunctionRef, FunctionSpec, Signature, Type, operators};

use super::codes;
use super::completion::Check;
use super::conflicts::Reason;
use super::deferred::{Deferred, DeferredKind};
use super::expressions::call_type;
use super::infer::Inference;
use super::messages::counts;
use super::places::Place;

impl Inference<'_> {
    /// The result of calling a library function with arguments of these types.
    pub(super) fn library_signature(
        &mut self,
        spec: &FunctionRef,
        types: &[Type],
        span: Span,
        reason: &Reason,
    ) -> Type {
        let alternatives = spec.alternatives();
        let fits = |index: &usize| alternatives[*index].accepts_count(types.len());
        let mut candidates = (0..alternatives.len()).filter(fits);
        let Some(first) = candidates.next() else {
            let most = alternatives.iter().map(|a| a.parameters.len()).max().unwrap_or(0);
            let wanted = counts(alternatives);
            let message = format!("`{}` takes {wanted}, given {}", spec.called(), types.len());
            if types.len() > most {
                self.refuse(Diagnostic::error(&codes::TOO_MANY_ARGUMENTS, span, message));
            } else {
                self.unsolved(Diagnostic::error(&codes::ARGUMENT_COUNT, span, message));
            }
            return self.solver.fresh();
        };
        let Some(second) = candidates.next() else {
            let place = self.places.next();
            return self.use_alternative(spec, &alternatives[first], types, place, span, reason);
        };
        let candidates: Vec<usize> = [first, second].into_iter().chain(candidates).collect();
        // What all of them agree on is known at once.
        for (index, given) in types.iter().enumerate() {
            if let Some(wanted) = agreed(alternatives, &candidates, |s| Some(&s.parameter(index)?.ty)) {
                self.equate(&wanted, given, span, reason);
            }
        }
        let result = agreed(alternatives, &candidates, |s| Some(&s.result));
        let result = result.unwrap_or_else(|| self.solver.fresh());
        let place = self.places.next();
        let what = DeferredKind::Overload {
            spec: spec.clone(),
            candidates,
            call: call_type(types, result.clone()),
        };
        self.deferred.push(Deferred::new(place, span, what));
        result
    }

    /// The result of a call that is of one signature.
    pub(super) fn use_alternative(
        &mut self,
        spec: &FunctionRef,
        signature: &Signature,
        types: &[Type],
        place: Place,
        span: Span,
        reason: &Reason,
    ) -> Type {
        let mut variables = FxHashMap::default();
        let mut conflict = None;
        for (index, given) in types.iter().enumerate() {
            let Some(parameter) = signature.parameter(index) else {
                continue;
            };
            let wanted = self.instantiate(&parameter.ty, &mut variables);
            if conflict.is_none()
                && let Err(found) = self.solver.unify(&wanted, given)
            {
                conflict = Some(found);
            }
        }
        let result = self.instantiate(&signature.result, &mut variables);
        if let Some(conflict) = conflict {
            let ty = signature.func_type(types.len()).unwrap_or(Type::Dynamic);
            let wanted = self.instantiate(&ty, &mut variables);
            let call = call_type(types, result.clone());
            let error = self.conflict(conflict, &wanted, &call, span, reason);
            self.unsolved(error);
        }
        for (variable, allowed) in &signature.limits {
            if let Some(ty) = variables.get(variable) {
                self.checks
                    .push(Check::limit(place, span, spec.clone(), ty.clone(), allowed));
            }
        }
        let compares: [&FunctionSpec; 3] = [&operators::EQUAL, &operators::NOT_EQUAL, &operators::CONTAINS];
        if compares.iter().any(|compare| spec.is(compare))
            && let Some(ty) = variables.get(&1)
        {
            self.checks.push(Check::comparable(place, span, ty.clone()));
        }
        result
    }

    /// A signature's type with variables of its own. `dynamic` stands for a type of its own at each place, `number` for one
    /// and the same int or float.
    pub(super) fn instantiate(&mut self, ty: &Type, variables: &mut FxHashMap<u32, Type>) -> Type {
        let solver = &mut self.solver;
        ty.replace(&mut |part| match part {
            Type::Variable(variable) => Some(
                variables
                    .entry(*variable)
                    .or_insert_with(|| solver.fresh())
                    .clone(),
            ),
            Type::Number => Some(
                variables
                    .entry(u32::MAX)
                    .or_insert_with(|| solver.fresh())
                    .clone(),
            ),
            Type::Dynamic => Some(solver.fresh()),
            _ => None,
        })
    }
}

/// The closed type that a part of several signatures has in all of them.
fn agreed<'s>(
    alternatives: &'s [Signature],
    candidates: &[usize],
    part: impl Fn(&'s Signature) -> Option<&'s Type>,
) -> Option<Type> {
    let (first, others) = candidates.split_first()?;
    let ty = part(&alternatives[*first])?;
    let same = !ty.is_open() && others.iter().all(|other| part(&alternatives[*other]) == Some(ty));
    same.then(|| ty.clone())
}
