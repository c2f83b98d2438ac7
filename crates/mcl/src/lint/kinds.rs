//! What kinds doubt about resources whose parameters are written out.

use setpoint_diagnostics::{Diagnostics, Severity};
use setpoint_graph::{FieldItem, KindSchema, Parameters, ResourceStatement, build_resource};
use setpoint_value::{Type, Value};

use super::Linter;
use crate::Mcl;
use crate::hir::{Callee, ExprId, ExprKind, Item, ItemKind, Resource, Statement};

impl Linter<'_> {
    /// Asks each kind about the resources of the program. What is not written out counts as set and as right.
    pub(super) fn doubts(&mut self) {
        let analysis = self.analysis;
        let mut found = Diagnostics::new();
        for body in &analysis.hir.bodies {
            for statement in &body.statements {
                let Statement::Resource(resource) = statement else {
                    continue;
                };
                let Some(schema) = self.library.kinds.get(&*resource.kind) else {
                    continue;
                };
                if resource.collect {
                    continue;
                }
                let statement = self.statement(resource, schema);
                if has_doubts(&statement, schema) {
                    build_resource(&statement, None, &Value::clone, &Mcl, &mut found);
                }
            }
        }
        // What is wrong was found by those who know types, or is found when the values are there.
        let doubts = found
            .into_iter()
            .filter(|found| found.severity == Severity::Warning);
        self.found.extend(doubts);
    }

    fn statement(&self, resource: &Resource, schema: &'static KindSchema) -> ResourceStatement<Value> {
        ResourceStatement {
            kind: resource.kind.clone(),
            schema: Some(schema),
            name: self.value(resource.name, Type::Str),
            fields: resource
                .items
                .iter()
                .filter_map(|item| self.field(item, schema))
                .collect(),
            meta: Vec::new(),
            edges: Vec::new(),
            head: resource.head(&self.analysis.hir),
            span: resource.span,
        }
    }

    fn field(&self, item: &Item, schema: &KindSchema) -> Option<FieldItem<Value>> {
        let ItemKind::Field { name, value, .. } = &item.kind else {
            return None;
        };
        let parameter = schema.parameter(name)?;
        Some(FieldItem {
            parameter,
            value: self.value(*value, parameter.parameter_type.ty()),
            condition: item.condition.map(|condition| self.value(condition, Type::Bool)),
            span: item.span,
        })
    }

    /// The value of an expression if it is written out, and an unknown one of this type otherwise.
    fn value(&self, id: ExprId, ty: Type) -> Value {
        if let Some(value) = self.analysis.constant_value(id) {
            return value;
        }
        match &self.analysis.hir.expr(id).kind {
            ExprKind::List(items) => {
                let items: Option<Vec<Value>> = items
                    .iter()
                    .map(|item| self.analysis.constant_value(*item))
                    .collect();
                match items {
                    Some(items) => {
                        let element = items.first().map_or(Type::Str, Value::ty);
                        Value::list(element, items)
                    }
                    None => Value::unknown(ty),
                }
            }
            ExprKind::Call {
                callee: Callee::Library(function, _),
                arguments,
            } if function.called() == "sensitive" => {
                let inner = arguments.first().and_then(|id| self.analysis.constant_value(*id));
                inner.unwrap_or_else(|| Value::unknown(ty)).sensitive()
            }
            _ => Value::unknown(ty),
        }
    }
}

/// Whether the kind doubts any of the resources. What it says is put together only then.
fn has_doubts(statement: &ResourceStatement<Value>, schema: &KindSchema) -> bool {
    let set = statement.fields.iter().filter_map(|field| {
        match field.condition.as_ref().map_or(Some(true), Value::as_bool) {
            Some(true) => Some((field.parameter.name, field.value.clone())),
            Some(false) => None,
            None => {
                let unknown = Value::unknown(field.parameter.parameter_type.ty());
                Some((field.parameter.name, unknown))
            }
        }
    });
    let parameters = Parameters::new(set);
    let names = match statement.name.as_list() {
        Some(list) => list.iter().collect(),
        None => vec![&statement.name],
    };
    let mut names = names.into_iter().filter_map(|name| name.as_str()?.as_str());
    names.any(|name| (schema.has_doubts)(name, &parameters))
}
