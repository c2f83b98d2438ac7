//! Types and constant values of what stands at a place.

use std::collections::BTreeMap;

use rustc_hash::{FxBuildHasher, FxHashMap};
use setpoint_diagnostics::{FileId, Span};
use setpoint_value::{Type, Value};
use smallvec::SmallVec;

use super::Analysis;
use crate::hir::{DefinitionId, DefinitionKind, ExprId, ExprKind, FunctionId, Hir, Part};
use crate::scope::Target;
use crate::types::InstanceId;

/// Definitions of definitions beyond this are not followed to a constant.
const STEPS: usize = 64;

impl Analysis {
    /// The types of what stands at a place: of the variable that is named there, or of the smallest expression around it. One for
    /// each way in which it is used, each once; none where nothing is known.
    #[must_use]
    pub fn types_at(&self, file: FileId, offset: u32) -> Vec<Type> {
        if let Some(name) = self.name_at(file, offset) {
            match &name.target {
                Target::Variable(id) => return self.types_of(*id),
                Target::Function(id) => return self.types_of_function(*id),
                Target::LibraryFunction(_)
                | Target::Class(_)
                | Target::Alias(_)
                | Target::File(_)
                | Target::Kind(_)
                | Target::Parameter { .. }
                | Target::Meta(_) => return Vec::new(),
            }
        }
        let holds = |span: Span| span.file == file && span.start <= offset && offset <= span.end;
        let exprs = self.hir.exprs.iter().enumerate();
        let around = exprs.filter(|(_, expr)| holds(expr.span));
        let Some((_, smallest)) = around
            .clone()
            .map(|(index, expr)| (index, expr.span))
            .min_by_key(|(_, span)| span.end - span.start)
        else {
            return Vec::new();
        };
        let ids: Vec<ExprId> = around
            .filter(|(_, expr)| expr.span == smallest)
            .map(|(index, _)| ExprId(index as u32))
            .collect();
        self.types_of_expressions(&ids)
    }

    /// The types of the expression that a span is, for those who look from the syntax.
    #[must_use]
    pub fn types_of_span(&self, span: Span) -> Vec<Type> {
        let exprs = self.hir.exprs.iter().enumerate();
        let ids: Vec<ExprId> = exprs
            .filter(|(_, expr)| expr.span == span)
            .map(|(index, _)| ExprId(index as u32))
            .collect();
        self.types_of_expressions(&ids)
    }

    fn types_of_expressions(&self, ids: &[ExprId]) -> Vec<Type> {
        let mut found = Types::default();
        // The variables in a string are parts of it, wherever in it they stand.
        let is_string = |id: &ExprId| matches!(self.hir.expr(*id).kind, ExprKind::Interpolation(_));
        let in_string = ids.iter().any(is_string);
        for id in ids {
            if in_string && !is_string(id) {
                continue;
            }
            match &self.hir.expr(*id).kind {
                ExprKind::Literal(value) => found.add(&value.ty()),
                ExprKind::Variable { definition, .. } => {
                    self.types_of(*definition).iter().for_each(|ty| found.add(ty));
                }
                _ => {
                    let instances = 0..self.typed.instances.len() as u32;
                    let types =
                        instances.filter_map(|instance| self.typed.types.get(&(InstanceId(instance), *id)));
                    types.for_each(|ty| found.add(ty));
                }
            }
        }
        found.finish()
    }

    /// The types of a variable, in all instances of what it is part of.
    #[must_use]
    pub fn types_of(&self, id: DefinitionId) -> Vec<Type> {
        let definition = self.hir.definition(id);
        let mut found = Types::default();
        if let DefinitionKind::Library(value) = &definition.kind {
            return vec![value.ty()];
        }
        let copies = self.copies.get(&definition.name_span);
        for instance in &self.typed.instances {
            for copy in copies.into_iter().flatten() {
                if let Some(ty) = instance.definitions.get(copy) {
                    found.add(ty);
                }
            }
        }
        if found.0.is_empty() {
            let written = match &definition.kind {
                DefinitionKind::Bind { annotation, .. }
                | DefinitionKind::ClassParameter { annotation, .. }
                | DefinitionKind::Parameter { annotation, .. } => annotation.as_ref(),
                DefinitionKind::LoopKey | DefinitionKind::LoopValue | DefinitionKind::Library(_) => None,
            };
            written.into_iter().for_each(|ty| found.add(ty));
        }
        found.finish()
    }

    /// The types that a function of the program is called with.
    #[must_use]
    pub fn types_of_function(&self, id: FunctionId) -> Vec<Type> {
        let function = self.hir.function(id);
        let mut found = Types::default();
        for (index, instance) in self.typed.instances.iter().enumerate() {
            let parameters: Option<Vec<_>> = function
                .parameters
                .iter()
                .map(|id| {
                    let name = self.hir.definition(*id).name.clone();
                    Some((name, instance.definitions.get(id)?.clone()))
                })
                .collect();
            let result = match &self.hir.expr(function.body).kind {
                ExprKind::Literal(value) => Some(value.ty()),
                ExprKind::Variable { definition, .. } => instance.definitions.get(definition).cloned(),
                _ => {
                    let key = (InstanceId(index as u32), function.body);
                    self.typed.types.get(&key).cloned()
                }
            };
            if let (Some(parameters), Some(result)) = (parameters, result.or_else(|| function.result.clone()))
                && instance.owner == crate::hir::Owner::Function(id)
            {
                found.add(&Type::func(parameters, result));
            }
        }
        found.finish()
    }

    /// The value of a variable, where the text alone says it.
    #[must_use]
    pub fn value_of(&self, id: DefinitionId) -> Option<Value> {
        self.constant_definition(id, STEPS)
    }

    /// What an expression is, if that follows from the text alone.
    pub(crate) fn constant_value(&self, id: ExprId) -> Option<Value> {
        self.constant(id, STEPS)
    }

    fn constant_definition(&self, id: DefinitionId, steps: usize) -> Option<Value> {
        match &self.hir.definition(id).kind {
            DefinitionKind::Bind { value, .. } => self.constant(*value, steps.checked_sub(1)?),
            DefinitionKind::Library(value) => Some(value.clone()),
            DefinitionKind::ClassParameter { .. }
            | DefinitionKind::Parameter { .. }
            | DefinitionKind::LoopKey
            | DefinitionKind::LoopValue => None,
        }
    }

    fn constant(&self, id: ExprId, steps: usize) -> Option<Value> {
        match &self.hir.exprs.get(id.index())?.kind {
            ExprKind::Literal(value) => Some(value.clone()),
            ExprKind::Variable { definition, .. } => self.constant_definition(*definition, steps),
            ExprKind::Interpolation(parts) => {
                let inside = steps.checked_sub(1)?;
                Part::expanded(parts, |id| self.constant(id, inside))
            }
            _ => None,
        }
    }
}

/// Definitions by the places of their names.
pub(super) type Copies = FxHashMap<Span, SmallVec<[DefinitionId; 2]>>;

/// The definitions by the places of their names. What is resolved for each import of its file is one variable.
pub(super) fn copies(hir: &Hir) -> Copies {
    let mut copies = Copies::with_capacity_and_hasher(hir.definitions.len(), FxBuildHasher);
    for (index, definition) in hir.definitions.iter().enumerate() {
        let id = DefinitionId(index as u32);
        copies.entry(definition.name_span).or_default().push(id);
    }
    copies
}

/// Types, each once, in the order in which they came.
#[derive(Default)]
struct Types(BTreeMap<String, (usize, Type)>);

impl Types {
    fn add(&mut self, ty: &Type) {
        if ty.any_part(&mut |part| matches!(part, Type::Variable(_))) {
            return;
        }
        let next = self.0.len();
        self.0.entry(ty.to_string()).or_insert_with(|| (next, ty.clone()));
    }

    fn finish(self) -> Vec<Type> {
        let mut types: Vec<_> = self.0.into_values().collect();
        types.sort_by_key(|(order, _)| *order);
        types.into_iter().map(|(_, ty)| ty).collect()
    }
}
