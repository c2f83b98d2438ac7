//! The order in which definitions and functions are lowered: what one needs comes before it, so that no chain of them is deep.

use super::Lowering;
use crate::hir::{Callee, DefinitionId, DefinitionKind, ExprId, ExprKind};
use crate::types::{Argument, Form, InstanceId};

/// What is lowered once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// A definition of an instance.
    Definition(InstanceId, DefinitionId),
    /// An instance of a named function.
    Function(InstanceId),
}

impl Lowering<'_> {
    /// Lowers all that something needs and that is not lowered yet.
    pub(super) fn lower_needs(&mut self, of: Need) {
        let mut open = vec![(of, false)];
        while let Some((need, seen)) = open.pop() {
            if self.is_lowered(need) {
                continue;
            }
            if seen {
                if need != of {
                    self.lower_ahead(need);
                }
                continue;
            }
            open.push((need, true));
            if let Some((instance, expr)) = self.body_of(need) {
                self.needs(instance, expr, &mut open);
            }
        }
    }

    fn is_lowered(&self, need: Need) -> bool {
        match need {
            Need::Definition(holder, id) => self.slots.contains_key(&(holder, id)),
            Need::Function(instance) => self.functions.contains_key(&instance),
        }
    }

    fn lower_ahead(&mut self, need: Need) {
        match need {
            Need::Definition(holder, id) => {
                self.new_definition(holder, id);
            }
            Need::Function(instance) => {
                self.new_function(instance);
            }
        }
    }

    fn body_of(&self, need: Need) -> Option<(InstanceId, ExprId)> {
        match need {
            Need::Definition(holder, id) => match &self.hir.definition(id).kind {
                DefinitionKind::Bind { value, .. } => Some((holder, *value)),
                DefinitionKind::ClassParameter { index, .. } => {
                    let Argument { site, value, .. } = self.program.argument(holder, *index);
                    Some((site, value))
                }
                DefinitionKind::Parameter { .. }
                | DefinitionKind::LoopKey
                | DefinitionKind::LoopValue
                | DefinitionKind::Library(_) => None,
            },
            Need::Function(instance) => {
                let function = self.program.function_of(instance);
                Some((instance, self.hir.function(function).body))
            }
        }
    }

    /// What an expression mentions and uses, from left to right when it is taken from the end.
    fn needs(&mut self, instance: InstanceId, expr: ExprId, open: &mut Vec<(Need, bool)>) {
        let hir = self.hir;
        hir.for_each_part_but(expr, |part| {
            match &hir.expr(part).kind {
                ExprKind::Variable { path, definition } => {
                    let known = hir.definition(*definition);
                    if let DefinitionKind::Bind { .. } | DefinitionKind::ClassParameter { .. } = known.kind {
                        let holder = self.follow(instance, path, known.owner);
                        open.push((Need::Definition(holder, *definition), false));
                    }
                }
                ExprKind::Call {
                    callee: Callee::Function { .. },
                    ..
                } => {
                    if let Form::Function {
                        path,
                        function,
                        called,
                        ..
                    } = self.program.form(instance, part)
                    {
                        self.follow(instance, path, hir.function(function).owner);
                        open.push((Need::Function(called), false));
                    }
                }
                // Types have decided which of the two it is.
                ExprKind::FieldOr { .. } => match self.program.form(instance, part) {
                    Form::Field { base: only, .. } | Form::Same(only) => return Some(only),
                    _ => {}
                },
                _ => {}
            }
            None
        });
    }
}
