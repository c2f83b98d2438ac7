//! What is plain from the text before solving: evident types (mcl-language §7.1) and static values (mcl-types §9.2).

use setpoint_value::{Map, Type, Value, call, operators};

use super::InstanceId;
use super::infer::Inference;
use crate::hir::{Callee, DefinitionKind, ExprId, ExprKind};

/// How many steps from definition to definition are followed.
const PLAIN: u32 = 1000;

impl Inference<'_> {
    /// The type that the text makes evident.
    pub(super) fn evident(&mut self, instance: InstanceId, id: ExprId) -> Option<Type> {
        // Beyond a long chain of definitions nothing is plain any more.
        if self.depth > PLAIN {
            return None;
        }
        self.depth += 1;
        let found = self.evident_of(instance, id);
        self.depth -= 1;
        found
    }

    fn evident_of(&mut self, instance: InstanceId, id: ExprId) -> Option<Type> {
        let hir = self.hir;
        match &hir.expr(id).kind {
            ExprKind::Literal(value) => Some(value.ty()),
            ExprKind::Interpolation(_) => Some(Type::Str),
            ExprKind::List(items) => {
                let mut types = items.iter().map(|item| self.evident(instance, *item));
                let first = types.next()??;
                types
                    .all(|ty| ty.as_ref() == Some(&first))
                    .then(|| Type::list(first))
            }
            ExprKind::Map(entries) => {
                let mut types = entries
                    .iter()
                    .map(|(k, v)| Some((self.evident(instance, *k)?, self.evident(instance, *v)?)));
                let (key, value) = types.next()??;
                let same = types.all(|ty| ty.as_ref().is_some_and(|(k, v)| *k == key && *v == value));
                same.then(|| Type::map(key, value))
            }
            ExprKind::Struct(fields) => {
                let fields = fields
                    .iter()
                    .map(|(name, value)| Some((name.clone(), self.evident(instance, *value)?)));
                Some(Type::structure(fields.collect::<Option<Vec<_>>>()?))
            }
            ExprKind::Variable { path, definition } => {
                let holder = self.follow(instance, path, hir.definition(*definition).owner);
                match &hir.definition(*definition).kind {
                    DefinitionKind::Bind { value, annotation } => {
                        annotation.clone().or_else(|| self.evident(holder, *value))
                    }
                    DefinitionKind::ClassParameter { index, annotation } => {
                        let argument = self.argument(holder, *index);
                        annotation
                            .clone()
                            .or_else(|| argument.and_then(|(site, id)| self.evident(site, id)))
                    }
                    DefinitionKind::Parameter { annotation, .. } => annotation.clone(),
                    DefinitionKind::LoopKey | DefinitionKind::LoopValue => None,
                    DefinitionKind::Library(value) => Some(value.ty()),
                }
            }
            ExprKind::If {
                then: a,
                otherwise: b,
                ..
            }
            | ExprKind::Except { left: a, right: b } => {
                match (self.evident(instance, *a), self.evident(instance, *b)) {
                    (Some(a), Some(b)) => (a == b).then_some(a),
                    (a, b) => a.or(b),
                }
            }
            ExprKind::Call {
                callee: Callee::Value(callee),
                ..
            } => match &hir.expr(*callee).kind {
                ExprKind::Lambda(function) => {
                    let function = hir.function(*function);
                    function
                        .result
                        .clone()
                        .or_else(|| self.evident(instance, function.body))
                }
                _ => None,
            },
            ExprKind::Lambda(function) => {
                let function = hir.function(*function);
                let parameters = function.parameters.iter().map(|id| {
                    let definition = hir.definition(*id);
                    match &definition.kind {
                        DefinitionKind::Parameter {
                            annotation: Some(ty), ..
                        } => Some((definition.name.clone(), ty.clone())),
                        _ => None,
                    }
                });
                let parameters = parameters.collect::<Option<Vec<_>>>()?;
                Some(Type::func(parameters, function.result.clone()?))
            }
            ExprKind::Call { .. }
            | ExprKind::Operator { .. }
            | ExprKind::Not(_)
            | ExprKind::In { .. }
            | ExprKind::Lookup { .. }
            | ExprKind::Field { .. }
            | ExprKind::FieldOr { .. } => None,
        }
    }

    /// The value, where the text alone gives it.
    pub(super) fn static_value(&mut self, instance: InstanceId, id: ExprId) -> Option<Value> {
        // Beyond a long chain of definitions nothing is plain any more.
        if self.depth > PLAIN {
            return None;
        }
        self.depth += 1;
        let found = self.static_value_of(instance, id);
        self.depth -= 1;
        found
    }

    fn static_value_of(&mut self, instance: InstanceId, id: ExprId) -> Option<Value> {
        let hir = self.hir;
        match &hir.expr(id).kind {
            ExprKind::Literal(value) => Some(value.clone()),
            ExprKind::Interpolation(parts) => {
                let mut text = Vec::new();
                for part in parts {
                    match part {
                        crate::hir::Part::Text(piece) => text.extend_from_slice(piece.as_bytes()),
                        crate::hir::Part::Variable(id) => {
                            text.extend_from_slice(self.static_value(instance, *id)?.as_str()?.as_bytes());
                        }
                    }
                }
                Some(Value::str(text))
            }
            ExprKind::List(items) => {
                let items = items
                    .iter()
                    .map(|i| self.static_value(instance, *i))
                    .collect::<Option<Vec<_>>>()?;
                let element = items.first()?.ty();
                Some(Value::list(element, items))
            }
            ExprKind::Map(entries) => {
                let mut values = Vec::new();
                for (key, value) in entries {
                    values.push((
                        self.static_value(instance, *key)?,
                        self.static_value(instance, *value)?,
                    ));
                }
                let (key, value) = values.first().map(|(k, v)| (k.ty(), v.ty()))?;
                Some(Value::Map(Map::new(key, value, values)))
            }
            ExprKind::Struct(fields) => {
                let mut types = Vec::new();
                let mut values = Vec::new();
                for (name, field) in fields {
                    let value = self.static_value(instance, *field)?;
                    types.push((name.clone(), value.ty()));
                    values.push(value);
                }
                Some(Value::structure(Type::structure(types), values))
            }
            ExprKind::Variable { path, definition } => {
                let holder = self.follow(instance, path, hir.definition(*definition).owner);
                match &hir.definition(*definition).kind {
                    DefinitionKind::Bind { value, .. } => self.static_value(holder, *value),
                    DefinitionKind::ClassParameter { index, .. } => {
                        let (site, id) = self.argument(holder, *index)?;
                        self.static_value(site, id)
                    }
                    DefinitionKind::Library(value) => Some(value.clone()),
                    DefinitionKind::Parameter { .. }
                    | DefinitionKind::LoopKey
                    | DefinitionKind::LoopValue => None,
                }
            }
            ExprKind::If {
                condition,
                then,
                otherwise,
            } => {
                let chosen = if self.static_value(instance, *condition)?.as_bool()? {
                    then
                } else {
                    otherwise
                };
                self.static_value(instance, *chosen)
            }
            ExprKind::Lookup { base, index } => {
                let base = self.static_value(instance, *base)?;
                let arguments = [base, self.static_value(instance, *index)?];
                let spec = match arguments[0] {
                    Value::List(_) => &operators::LIST_LOOKUP,
                    Value::Map(_) => &operators::MAP_LOOKUP,
                    _ => return None,
                };
                call::call_typed(spec, &arguments, &Type::Dynamic).ok()
            }
            ExprKind::Field { base, field } => {
                let base = self.static_value(instance, *base)?;
                base.as_struct()?.get(field).cloned()
            }
            ExprKind::Operator {
                operator,
                left,
                right,
            } => {
                let arguments = [
                    self.static_value(instance, *left)?,
                    self.static_value(instance, *right)?,
                ];
                if arguments[0].ty() != arguments[1].ty() {
                    return None;
                }
                call::call_typed(super::infer::operator_spec(*operator), &arguments, &Type::Dynamic).ok()
            }
            ExprKind::Except { left, .. } => self.static_value(instance, *left),
            ExprKind::Call { .. }
            | ExprKind::Lambda(_)
            | ExprKind::Not(_)
            | ExprKind::In { .. }
            | ExprKind::FieldOr { .. } => None,
        }
    }
}
