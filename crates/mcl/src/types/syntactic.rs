//! What is plain from the text before solving: evident types (rule typing.8) and static values.

use rustc_hash::FxHashMap;
use setpoint_diagnostics::Span;
use setpoint_value::{Map, Type, Value, call, check_size, operators};

use super::InstanceId;
use super::infer::Inference;
use crate::hir::{Callee, DefinitionId, DefinitionKind, ExprId, ExprKind, LONGEST_CONSTANT, Part};
use crate::stack::with_room;

/// What was found, by definition.
#[derive(Debug, Default)]
pub(super) struct SyntacticFacts {
    types: FxHashMap<(InstanceId, DefinitionId), Option<Type>>,
    values: FxHashMap<(InstanceId, DefinitionId), Option<Value>>,
}

/// A bind whose value is plainly not of the type that is written for it.
pub(super) struct Contradiction {
    pub(super) written: Type,
    pub(super) found: Type,
    pub(super) value: Span,
    pub(super) bind: Span,
}

impl Inference<'_> {
    /// The type that the text makes evident.
    pub(super) fn syntactic_type(&mut self, instance: InstanceId, id: ExprId) -> Option<Type> {
        // Literals are most of what is asked.
        if let ExprKind::Literal(value) = &self.hir.expr(id).kind {
            return Some(value.ty());
        }
        with_room(|| self.evident_of(instance, id))
    }

    /// The evident type of a bind or a class parameter.
    fn evident_definition(&mut self, holder: InstanceId, id: DefinitionId) -> Option<Type> {
        if let Some(found) = self.syntactic.types.get(&(holder, id)) {
            return found.clone();
        }
        self.fact((holder, id), |this| &mut this.syntactic.types, Self::find_evident)
    }

    fn find_evident(&mut self, holder: InstanceId, id: DefinitionId) -> Option<Type> {
        let found = self.evident_in_definition(holder, id);
        // What is too deep is refused by what uses it.
        found.filter(|ty| self.solver.is_shallow(ty))
    }

    fn evident_in_definition(&mut self, holder: InstanceId, id: DefinitionId) -> Option<Type> {
        let hir = self.hir;
        match &hir.definition(id).kind {
            DefinitionKind::Bind { value, annotation } => {
                annotation.clone().or_else(|| self.syntactic_type(holder, *value))
            }
            DefinitionKind::ClassParameter { index, annotation } => {
                let argument = self.argument(holder, *index);
                let plain = argument.and_then(|(site, id)| self.syntactic_type(site, id));
                plain.or_else(|| annotation.clone())
            }
            DefinitionKind::Parameter { annotation, .. } => annotation.clone(),
            DefinitionKind::LoopKey | DefinitionKind::LoopValue => None,
            DefinitionKind::Library(value) => Some(value.ty()),
        }
    }

    fn evident_of(&mut self, instance: InstanceId, id: ExprId) -> Option<Type> {
        let hir = self.hir;
        match &hir.expr(id).kind {
            ExprKind::Literal(value) => Some(value.ty()),
            ExprKind::Interpolation(_) => Some(Type::Str),
            ExprKind::List(items) => {
                let mut types = items.iter().map(|item| self.syntactic_type(instance, *item));
                let first = types.next()??;
                types
                    .all(|ty| ty.as_ref() == Some(&first))
                    .then(|| Type::list(first))
            }
            ExprKind::Map(entries) => {
                let mut types = entries.iter().map(|(k, v)| {
                    Some((
                        self.syntactic_type(instance, *k)?,
                        self.syntactic_type(instance, *v)?,
                    ))
                });
                let (key, value) = types.next()??;
                let same = types.all(|ty| ty.as_ref().is_some_and(|(k, v)| *k == key && *v == value));
                same.then(|| Type::map(key, value))
            }
            ExprKind::Struct(fields) => {
                let fields = fields
                    .iter()
                    .map(|(name, value)| Some((name.clone(), self.syntactic_type(instance, *value)?)));
                Some(Type::structure(fields.collect::<Option<Vec<_>>>()?))
            }
            ExprKind::Variable { path, definition } => {
                let holder = self.follow(instance, path, hir.definition(*definition).owner);
                self.evident_definition(holder, *definition)
            }
            ExprKind::If {
                then: a,
                otherwise: b,
                ..
            }
            | ExprKind::Except { left: a, right: b } => {
                match (
                    self.syntactic_type(instance, *a),
                    self.syntactic_type(instance, *b),
                ) {
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
                        .or_else(|| self.syntactic_type(instance, function.body))
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
            ExprKind::Unknown(_)
            | ExprKind::Call { .. }
            | ExprKind::Operator { .. }
            | ExprKind::Not(_)
            | ExprKind::In { .. }
            | ExprKind::Lookup { .. }
            | ExprKind::Field { .. }
            | ExprKind::FieldOr { .. } => None,
        }
    }

    /// What a variable stands for, through further variables, up to the first one of which `ends` holds: there, or at what is no
    /// variable, it stops.
    pub(super) fn meaning(
        &mut self,
        mut instance: InstanceId,
        mut id: ExprId,
        ends: impl Fn(&DefinitionKind) -> bool,
    ) -> (InstanceId, ExprId) {
        let hir = self.hir;
        while let ExprKind::Variable { path, definition } = &hir.expr(id).kind {
            let found = hir.definition(*definition);
            if ends(&found.kind) {
                break;
            }
            let holder = self.follow(instance, path, found.owner);
            let Some(next) = self.value_of(holder, *definition) else {
                break;
            };
            (instance, id) = next;
        }
        (instance, id)
    }

    /// Whether the text of a value, or of the bind or argument that it is, is a struct with its fields.
    pub(super) fn is_struct_literal(&mut self, instance: InstanceId, id: ExprId) -> bool {
        let (_, id) = self.meaning(instance, id, |_| false);
        matches!(self.hir.expr(id).kind, ExprKind::Struct(_))
    }

    /// What is said to be of one type by the text of its definition, and is of another one by its value.
    pub(super) fn contradiction(&mut self, instance: InstanceId, id: ExprId) -> Option<Contradiction> {
        let hir = self.hir;
        let written = |kind: &DefinitionKind| match kind {
            DefinitionKind::Bind { annotation, .. } => annotation.is_some(),
            _ => false,
        };
        let (instance, id) = self.meaning(instance, id, written);
        let ExprKind::Variable { path, definition } = &hir.expr(id).kind else {
            return None;
        };
        let bind = hir.definition(*definition);
        let DefinitionKind::Bind {
            annotation: Some(written),
            value,
        } = &bind.kind
        else {
            return None;
        };
        let holder = self.follow(instance, path, bind.owner);
        let found = self.static_definition(holder, *definition)?.ty();
        (found != *written).then(|| Contradiction {
            written: written.clone(),
            found,
            value: hir.expr(*value).span,
            bind: bind.span,
        })
    }

    /// The value, where the text alone gives it.
    pub(super) fn static_value(&mut self, instance: InstanceId, id: ExprId) -> Option<Value> {
        if let ExprKind::Literal(value) = &self.hir.expr(id).kind {
            return Some(value.clone());
        }
        with_room(|| self.static_value_of(instance, id))
    }

    /// The static value of a bind or a class parameter.
    fn static_definition(&mut self, holder: InstanceId, id: DefinitionId) -> Option<Value> {
        if let Some(found) = self.syntactic.values.get(&(holder, id)) {
            return found.clone();
        }
        self.fact((holder, id), |this| &mut this.syntactic.values, Self::find_static)
    }

    fn find_static(&mut self, holder: InstanceId, id: DefinitionId) -> Option<Value> {
        let found = self.static_in_definition(holder, id);
        found.filter(|value| self.solver.is_shallow(&value.ty()))
    }

    fn static_in_definition(&mut self, holder: InstanceId, id: DefinitionId) -> Option<Value> {
        let hir = self.hir;
        match &hir.definition(id).kind {
            DefinitionKind::Bind { value, .. } => self.static_value(holder, *value),
            DefinitionKind::ClassParameter { index, .. } => {
                let argument = self.argument(holder, *index);
                argument.and_then(|(site, id)| self.static_value(site, id))
            }
            DefinitionKind::Library(value) => Some(value.clone()),
            DefinitionKind::Parameter { .. } | DefinitionKind::LoopKey | DefinitionKind::LoopValue => None,
        }
    }

    fn static_value_of(&mut self, instance: InstanceId, id: ExprId) -> Option<Value> {
        let hir = self.hir;
        match &hir.expr(id).kind {
            ExprKind::Literal(value) => Some(value.clone()),
            ExprKind::Interpolation(parts) => Part::expanded(parts, |id| self.static_value(instance, id)),
            ExprKind::List(items) => {
                let items = items
                    .iter()
                    .map(|i| self.static_value(instance, *i))
                    .collect::<Option<Vec<_>>>()?;
                let element = items.first()?.ty();
                sized(Value::list(element, items))
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
                sized(Value::Map(Map::new(key, value, values)))
            }
            ExprKind::Struct(fields) => {
                let mut types = Vec::new();
                let mut values = Vec::new();
                for (name, field) in fields {
                    let value = self.static_value(instance, *field)?;
                    types.push((name.clone(), value.ty()));
                    values.push(value);
                }
                sized(Value::structure(Type::structure(types), values))
            }
            ExprKind::Variable { path, definition } => {
                let holder = self.follow(instance, path, hir.definition(*definition).owner);
                self.static_definition(holder, *definition)
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
                let found = call::call_typed(
                    super::expressions::operator_spec(*operator),
                    &arguments,
                    &Type::Dynamic,
                );
                let is_short = |value: &Value| {
                    value
                        .as_str()
                        .is_none_or(|text| text.as_bytes().len() <= LONGEST_CONSTANT)
                };
                found.ok().filter(is_short)
            }
            ExprKind::Except { left, .. } => self.static_value(instance, *left),
            ExprKind::Unknown(_)
            | ExprKind::Call { .. }
            | ExprKind::Lambda(_)
            | ExprKind::Not(_)
            | ExprKind::In { .. }
            | ExprKind::FieldOr { .. } => None,
        }
    }
}

/// A container, unless it has more parts than a value may have; then whoever evaluates the program says so.
fn sized(container: Value) -> Option<Value> {
    check_size(&container).is_ok().then_some(container)
}
