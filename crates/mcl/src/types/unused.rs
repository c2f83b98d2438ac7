//! What would be wrong with what nothing uses, if something did: variables, named functions, classes.
//!
//! They are typed behind the whole program, when nothing of it is left to decide, in instances of their own; so nothing of them can change
//! what the program means or which of its errors counts first. Where a parameter has no written type, what is said about types depends on
//! who will use it; there only what is wrong in any case is told.

use rustc_hash::{FxHashMap, FxHashSet};
use setpoint_diagnostics::{Diagnostic, Diagnostics, Span};
use setpoint_value::Type;

use super::codes;
use super::infer::Inference;
use super::instances::InstanceId;
use crate::hir::{ClassId, DefinitionId, DefinitionKind, ExprId, FunctionId, Owner};

impl Inference<'_> {
    /// Types what the program did not need, and answers as warnings what is wrong with that. `known` is what was said about the program.
    pub(crate) fn infer_unused(&mut self, known: &Diagnostics) -> Vec<Diagnostic> {
        // What cannot be unfolded once is not unfolded again.
        if self.hir.bodies.is_empty() || known.iter().any(|error| error.code == &codes::TOO_DEEP) {
            return Vec::new();
        }
        // What the program left open stays so.
        self.deferred.clear();
        self.checks.clear();
        self.bare_unknown_kinds.clear();
        self.solver.unsettle();
        // What nothing uses costs no more than what is used.
        let (instances, bodies) = (
            self.typed.instances.len(),
            self.hir.functions.len() + self.hir.classes.len(),
        );
        self.most_instances = instances + (4 * bodies).max(10_000);
        let open = self.unused();
        let is_nothing_new = self.recorded.is_empty() && self.imposed.is_empty() && self.findings.is_empty();
        if is_nothing_new && self.typed.instances.len() == instances {
            return Vec::new();
        }
        let found = self.finish_unused();
        let known: FxHashSet<_> = known
            .iter()
            .map(|known| (known.code.code, known.primary.span))
            .collect();
        let is_known = |error: &Diagnostic| known.contains(&(error.code.code, error.primary.span));
        let is_certain = |error: &Diagnostic| {
            let waits = [&codes::AMBIGUOUS, &codes::TOO_DEEP];
            let always = [
                &codes::UNKNOWN_KIND,
                &codes::UNKNOWN_PARAMETER,
                &codes::TOO_MANY_ARGUMENTS,
                &codes::LONELY_EDGE,
                &codes::CANNOT_SEND,
                &codes::CANNOT_RECEIVE,
                &codes::BAD_SEND,
            ];
            let inside = |open: &Span| {
                let span = error.primary.span;
                open.file == span.file && open.start <= span.start && span.end <= open.end
            };
            !waits.contains(&error.code) && (always.contains(&error.code) || !open.iter().any(inside))
        };
        let new = found
            .into_iter()
            .filter(|error| is_certain(error) && !is_known(error))
            .map(|error| {
                error.as_warning("nothing uses this yet; as soon as something does, it is an error")
            });
        new.collect()
    }

    /// Types what the program did not need. Answers where the types of parameters are open.
    fn unused(&mut self) -> Vec<Span> {
        let hir = self.hir;
        let mut open = Vec::new();
        let mut holders: FxHashMap<Owner, InstanceId> = FxHashMap::default();
        let mut used: FxHashSet<DefinitionId> = FxHashSet::default();
        for (index, instance) in self.typed.instances.iter().enumerate() {
            holders.entry(instance.owner).or_insert(InstanceId(index as u32));
            used.extend(instance.definitions.keys());
        }
        // A class stands behind the one that it is in.
        for (index, class) in hir.classes.iter().enumerate() {
            let owner = Owner::Class(ClassId(index as u32));
            let Some(body) = class.body.filter(|_| !holders.contains_key(&owner)) else {
                continue;
            };
            let parent = self.holder(&mut holders, class.owner);
            let inner = self.instance(owner, parent);
            holders.insert(owner, inner);
            let types = self.parameter_types(&class.parameters, class.span, &mut open);
            let instance = &mut self.typed.instances[inner.0 as usize];
            instance.arguments = types.into_iter().map(Some).collect();
            instance.entered = true;
            self.body(inner, body);
        }
        for (index, definition) in hir.definitions.iter().enumerate() {
            let id = DefinitionId(index as u32);
            if let DefinitionKind::Bind { value, .. } = definition.kind
                && value != ExprId(u32::MAX)
                && !used.contains(&id)
                && let Some(holder) = self.holder(&mut holders, definition.owner)
            {
                self.definition_type(holder, id);
            }
        }
        for (index, function) in hir.functions.iter().enumerate() {
            let id = FunctionId(index as u32);
            let owner = Owner::Function(id);
            let is_called = holders.contains_key(&owner);
            if function.name.is_none() || function.body == ExprId(u32::MAX) || is_called {
                continue;
            }
            let parent = self.holder(&mut holders, function.owner);
            let inner = self.instance(owner, parent);
            self.parameter_types(&function.parameters, function.span, &mut open);
            self.function_type(inner, id);
        }
        open
    }

    /// The instance in which the things of an owner are typed that nothing uses.
    fn holder(&mut self, holders: &mut FxHashMap<Owner, InstanceId>, owner: Owner) -> Option<InstanceId> {
        match owner {
            Owner::Top(body) => Some(self.top(body)),
            Owner::Class(_) | Owner::Function(_) => holders.get(&owner).copied(),
        }
    }

    /// The written types of parameters, and open ones where there are none; then the whole is noted as open.
    fn parameter_types(
        &mut self,
        parameters: &[DefinitionId],
        whole: Span,
        open: &mut Vec<Span>,
    ) -> Vec<Type> {
        let hir = self.hir;
        let mut types = Vec::new();
        for parameter in parameters {
            let written = match &hir.definition(*parameter).kind {
                DefinitionKind::ClassParameter { annotation, .. }
                | DefinitionKind::Parameter { annotation, .. } => annotation.clone(),
                DefinitionKind::Bind { .. }
                | DefinitionKind::LoopKey
                | DefinitionKind::LoopValue
                | DefinitionKind::Library(_) => None,
            };
            if written.is_none() && open.last() != Some(&whole) {
                open.push(whole);
            }
            types.push(written.unwrap_or_else(|| self.solver.fresh()));
        }
        types
    }
}
