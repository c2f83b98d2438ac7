//! Statements to nodes.

use std::sync::Arc;

use setpoint_flow::{Block, EXPORTS, Operation, Slot};
use setpoint_graph::{
    EdgeEndpoint, EdgeItem, EdgeStatement, FieldItem, MetaItem, MetaName, ResourceStatement,
};
use setpoint_value::{Type, Value};

use super::Lowering;
use super::templates::BuilderId;
use crate::hir::{BodyId, Edge, Endpoint, ExprId, Item, ItemKind, Resource, Statement};
use crate::stack::with_room;
use crate::types::{InstanceId, missing};

impl Lowering<'_> {
    pub(super) fn body_statements(&mut self, at: BuilderId, instance: InstanceId, body: BodyId) {
        self.bodies.insert((instance, body), at);
        let hir = self.hir;
        with_room(|| {
            for statement in &hir.body(body).statements {
                self.statement(at, instance, statement);
            }
        });
    }

    fn statement(&mut self, at: BuilderId, instance: InstanceId, statement: &Statement) {
        let (operation, span) = match statement {
            Statement::If {
                condition,
                then,
                otherwise,
                span,
            } => {
                let head = self.hir.expr(*condition).span;
                let condition = self.expr(at, instance, *condition);
                let then = self.optional_block(at, instance, *then, "the body of an `if`");
                let otherwise =
                    otherwise.and_then(|body| self.optional_block(at, instance, body, "an `else`"));
                (
                    Operation::IfStatement {
                        condition,
                        then,
                        otherwise,
                        head,
                    },
                    *span,
                )
            }
            Statement::Loop {
                over_map,
                iterable,
                key,
                value,
                body,
                span,
            } => {
                let head = self.hir.expr(*iterable).span;
                let iterable = self.expr(at, instance, *iterable);
                let builder = self.builders.open("the body of a loop", Some(at), 2);
                self.enter(builder, instance, &[*key, *value]);
                self.body_statements(builder, instance, *body);
                let body = self.builders.block(builder);
                let operation = if *over_map {
                    Operation::ForKv {
                        map: iterable,
                        body,
                        head,
                    }
                } else {
                    Operation::For {
                        list: iterable,
                        body,
                        head,
                    }
                };
                (operation, *span)
            }
            Statement::Resource(resource) => (self.resource(at, instance, resource), resource.span),
            Statement::Edge(edge) => (self.edge(at, instance, edge), edge.span),
            Statement::Include(include) => {
                self.ensure_include(instance, *include);
                return;
            }
            Statement::Panic { arguments, span } => {
                let slots: Vec<Slot> = arguments.iter().map(|id| self.expr(at, instance, *id)).collect();
                let Some((condition, rest)) = slots.split_first() else {
                    missing(format_args!("a panic without a condition"));
                };
                (
                    Operation::Panic {
                        condition: *condition,
                        message: rest.first().copied(),
                    },
                    *span,
                )
            }
        };
        self.builders.push(at, operation, Type::Dynamic, span);
    }

    fn optional_block(
        &mut self,
        at: BuilderId,
        instance: InstanceId,
        body: BodyId,
        name: &str,
    ) -> Option<Block> {
        if self.hir.body(body).statements.is_empty() {
            return None;
        }
        let builder = self.builders.open(name, Some(at), 0);
        self.body_statements(builder, instance, body);
        Some(self.builders.block(builder))
    }

    fn resource(&mut self, at: BuilderId, instance: InstanceId, resource: &Resource) -> Operation {
        let schema = self.library.kinds.get(&*resource.kind).copied();
        let name = self.expr(at, instance, resource.name);
        let mut statement = ResourceStatement {
            kind: resource.kind.clone(),
            schema,
            name,
            // Nearly every item is one.
            fields: Vec::with_capacity(resource.items.len()),
            meta: Vec::new(),
            edges: Vec::new(),
            head: resource.head(self.hir),
            span: resource.span,
        };
        for item in &resource.items {
            let condition = |this: &mut Self| item.condition.map(|id| this.expr(at, instance, id));
            match &item.kind {
                ItemKind::Field { name, value, .. } => {
                    let Some(parameter) = schema.and_then(|schema| schema.parameter(name)) else {
                        missing(format_args!("`{}` has no parameter `{name}`", resource.kind));
                    };
                    let value = self.expr(at, instance, *value);
                    let condition = condition(self);
                    statement.fields.push(FieldItem {
                        parameter,
                        value,
                        condition,
                        span: item.span,
                    });
                }
                ItemKind::EdgeProperty { property, endpoint } => {
                    let endpoint = self.endpoint(at, instance, endpoint);
                    let condition = condition(self);
                    statement.edges.push(EdgeItem {
                        property: *property,
                        endpoint,
                        condition,
                        span: item.span,
                    });
                }
                ItemKind::Meta { name, value } => {
                    self.meta(at, instance, &mut statement, Some(*name), *value, item);
                }
                ItemKind::MetaStruct { value } => self.meta(at, instance, &mut statement, None, *value, item),
            }
        }
        let statement = Arc::new(statement);
        if !resource.collect {
            return Operation::Resource(statement);
        }
        let exports = self.exports(at, resource);
        Operation::Collect { statement, exports }
    }

    /// What the world has of the kind of a collect statement.
    fn exports(&mut self, at: BuilderId, resource: &Resource) -> Slot {
        let span = resource.span;
        let kind = Operation::Constant(Value::str(&*resource.kind));
        let kind = self.builders.push(at, kind, Type::Str, span);
        let call = Operation::Call {
            function: (&EXPORTS).into(),
            arguments: vec![kind],
            module_directory: "/".into(),
        };
        let ty = EXPORTS.alternatives()[0].result.clone();
        self.builders.push(at, call, ty, span)
    }

    fn meta(
        &mut self,
        at: BuilderId,
        instance: InstanceId,
        statement: &mut ResourceStatement<Slot>,
        name: Option<MetaName>,
        value: ExprId,
        item: &Item,
    ) {
        let value = self.expr(at, instance, value);
        let condition = item.condition.map(|id| self.expr(at, instance, id));
        statement.meta.push(MetaItem {
            name,
            value,
            condition,
            span: item.span,
        });
    }

    fn endpoint(&mut self, at: BuilderId, instance: InstanceId, endpoint: &Endpoint) -> EdgeEndpoint<Slot> {
        EdgeEndpoint {
            kind: endpoint.kind.clone(),
            name: self.expr(at, instance, endpoint.name),
            span: endpoint.span,
        }
    }

    fn edge(&mut self, at: BuilderId, instance: InstanceId, edge: &Edge) -> Operation {
        let endpoints: Vec<_> = edge
            .endpoints
            .iter()
            .map(|endpoint| self.endpoint(at, instance, endpoint))
            .collect();
        let send = match edge.endpoints.as_slice() {
            [from, to] => from.field.clone().zip(to.field.clone()),
            _ => None,
        };
        Operation::Edge(Arc::new(EdgeStatement {
            endpoints,
            send,
            span: edge.span,
        }))
    }
}
