//! The last step: everything that is evaluated. Conditions of typedefs, defaults, conditions of `implement`, bodies of implementations,
//! annotations of relations, and the statements of files.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use setpoint_cf_syntax::ast::{self, Literal};
use setpoint_cf_syntax::compile_pattern;
use setpoint_diagnostics::{Diagnostic, Span};

use super::constructors::Wanted;
use super::mentions::Target;
use super::{Resolver, codes};
use crate::hir::{Block, Constraint, Expression, ExpressionKind, Place, Statement, StatementKind, Variable};
use crate::ids::{EntityId, NamespaceId, Symbol, TypedefId};

impl<'a> Resolver<'a> {
    pub(super) fn resolve_bodies(&mut self) {
        for at in 0..self.typedefs.len() {
            self.resolve_constraint(at);
        }
        let contradictions = std::mem::take(&mut self.contradictions);
        self.found.extend(contradictions);
        self.resolve_defaults();
        self.resolve_conditions();
        self.check_dataclasses();
        for at in 0..self.implementations.len() {
            let namespace = self.model.implementations[at].namespace;
            let tree = self.implementations[at];
            let entity = self.model.implementations[at].entity;
            let mut body = Body::new(self, namespace, Root::Instance(entity));
            self.model.implementations[at].body = body.block(&tree.body, None);
        }
        for (namespace, relation, tree) in std::mem::take(&mut self.relations) {
            let mut body = Body::new(self, namespace, Root::Namespace);
            let annotations = tree
                .annotations
                .iter()
                .map(|tree| body.expression(tree, Wanted::Anything));
            let annotations: Vec<Expression> = annotations.collect();
            self.model.relations[relation.index()].annotations = annotations;
        }
        for (namespace, item) in self.items() {
            if let ast::Item::Statement(tree) = item {
                let statement = Body::new(self, namespace, Root::Namespace).statement(tree);
                let body = &mut self.model.namespaces[namespace.index()].body;
                body.statements.push(statement);
            }
        }
        self.resolve_precedence();
    }

    fn resolve_constraint(&mut self, at: usize) {
        let tree = self.typedefs[at];
        let namespace = self.model.typedefs[at].namespace;
        self.model.typedefs[at].constraint = match &tree.constraint {
            ast::Constraint::Expression(condition) => {
                let root = Root::Typedef(tree.name.text.clone(), TypedefId(at as u32));
                Constraint::Expression(
                    Body::new(self, namespace, root).expression(condition, Wanted::Anything),
                )
            }
            ast::Constraint::Regex(regex) => match compile_pattern(&regex.pattern) {
                Ok(compiled) => Constraint::Regex(regex.clone(), Arc::new(compiled)),
                // That was told when the file was parsed.
                Err(_) => return,
            },
        };
    }

    /// The condition of an `implement` statement, whose names are those of the instance first.
    pub(super) fn resolve_condition(
        &mut self,
        namespace: NamespaceId,
        entity: EntityId,
        tree: &ast::Expression,
    ) -> Expression {
        Body::new(self, namespace, Root::Instance(entity)).expression(tree, Wanted::Anything)
    }
}

/// What is around the outermost block.
pub(super) enum Root {
    /// The namespace alone.
    Namespace,
    /// An instance of this or of what descends from it, then the namespace.
    Instance(EntityId),
    /// The value of the typedef of this name.
    Typedef(Arc<str>, TypedefId),
}

/// Something that is evaluated, while its names are looked up.
pub(super) struct Body<'r, 'a> {
    pub(super) resolver: &'r mut Resolver<'a>,
    pub(super) namespace: NamespaceId,
    root: Root,
    /// Blocks around what is looked at, the innermost last.
    blocks: Vec<Scope>,
}

/// The variables of a block.
#[derive(Default)]
struct Scope {
    variables: Vec<Variable>,
    by_name: FxHashMap<Symbol, u32>,
}

impl<'r, 'a> Body<'r, 'a> {
    pub(super) fn new(resolver: &'r mut Resolver<'a>, namespace: NamespaceId, root: Root) -> Body<'r, 'a> {
        Body {
            resolver,
            namespace,
            root,
            blocks: Vec::new(),
        }
    }

    /// A block with the variable that it begins with, if it is a loop.
    pub(super) fn block(&mut self, tree: &ast::Block, variable: Option<&ast::Name>) -> Block {
        let mut scope = Scope::default();
        if let Some(variable) = variable {
            self.declare(&mut scope, variable);
        }
        for statement in &tree.statements {
            if let ast::StatementKind::Assign(assignment) = &statement.kind
                && let Some(name) = plain_variable(&assignment.target)
            {
                self.declare(&mut scope, name);
            }
        }
        self.blocks.push(scope);
        let statements = tree.statements.iter().map(|tree| self.statement(tree)).collect();
        let variables = self.blocks.pop().unwrap_or_default().variables;
        Block {
            variables,
            statements,
        }
    }

    /// Evaluates something in a block of one variable.
    pub(super) fn with_variable<T>(
        &mut self,
        variable: &ast::Name,
        evaluate: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let mut scope = Scope::default();
        self.declare(&mut scope, variable);
        self.blocks.push(scope);
        let result = evaluate(self);
        self.blocks.pop();
        result
    }

    fn declare(&mut self, scope: &mut Scope, name: &ast::Name) {
        let symbol = self.resolver.symbol(&name.text);
        if scope.by_name.contains_key(&symbol) {
            return;
        }
        self.resolver.note_variable(name.span, name.span);
        scope.by_name.insert(symbol, scope.variables.len() as u32);
        scope.variables.push(Variable {
            name: symbol,
            span: name.span,
        });
        let Some(hidden) = self.variable_around(symbol, &name.text) else {
            return;
        };
        let message = format!("variable `{}` hides another one of this name", name.text);
        let warning = Diagnostic::warning(&codes::SHADOWED, name.span, message)
            .of_class("VariableShadowWarning")
            .label("another variable from here on")
            .because(hidden, "this one is hidden");
        self.resolver.found.push(warning);
    }

    /// Where a variable of a block around this place, or of the namespace, gets its value.
    fn variable_around(&self, symbol: Symbol, name: &str) -> Option<Span> {
        for scope in self.blocks.iter().rev() {
            if let Some(index) = scope.by_name.get(&symbol) {
                return Some(scope.variables[*index as usize].span);
            }
        }
        let index = self.resolver.names.variable(self.namespace, name)?;
        let variables = &self.resolver.model.namespaces[self.namespace.index()]
            .body
            .variables;
        variables.get(index as usize).map(|variable| variable.span)
    }

    pub(super) fn statement(&mut self, tree: &ast::Statement) -> Statement {
        let kind = match &tree.kind {
            ast::StatementKind::Assign(assignment) => self.assignment(assignment),
            ast::StatementKind::For {
                variable,
                iterable,
                body,
            } => StatementKind::For {
                iterable: self.expression(iterable, Wanted::Anything),
                body: self.block(body, Some(variable)),
            },
            ast::StatementKind::If { branches, otherwise } => {
                let branch = |(condition, block): &(ast::Expression, ast::Block)| {
                    (
                        self.expression(condition, Wanted::Anything),
                        self.block(block, None),
                    )
                };
                let branches = branches.iter().map(branch).collect();
                let otherwise = otherwise.as_ref().map(|block| self.block(block, None));
                StatementKind::If { branches, otherwise }
            }
            ast::StatementKind::Expression(expression) => {
                StatementKind::Expression(self.expression(expression, Wanted::Anything))
            }
        };
        Statement {
            kind,
            span: tree.span,
        }
    }

    fn assignment(&mut self, tree: &ast::Assignment) -> StatementKind {
        let target = &tree.target;
        let Some((member, before)) = target.attributes.split_last() else {
            let place = match (plain_variable(target), self.blocks.is_empty()) {
                // In a block a name is declared by any assignment to it.
                (Some(_), false) | (None, _) => self.variable(&target.variable),
                (Some(name), true) => {
                    let place = self.namespace_variable(&name.text);
                    self.mention_variable(name.span, place);
                    place
                }
            };
            return StatementKind::AssignVariable {
                target: place,
                value: self.expression(&tree.value, Wanted::Anything),
                target_span: target.span,
            };
        };
        let instance = self.access(&target.variable, before);
        let symbol = self.resolver.symbol(&member.text);
        StatementKind::AssignMember {
            instance,
            member: symbol,
            member_span: member.span,
            add: tree.add,
            value: self.expression(&tree.value, Wanted::Assigned(symbol)),
        }
    }

    /// A variable, then attributes.
    pub(super) fn access(&mut self, variable: &ast::Path, attributes: &[ast::Name]) -> Expression {
        let place = self.variable(variable);
        let mut expression = Expression {
            kind: ExpressionKind::Variable(place),
            span: variable.span,
        };
        for attribute in attributes {
            let span = expression.span.to(attribute.span);
            expression = Expression {
                kind: ExpressionKind::Attribute {
                    of: Box::new(expression),
                    name: self.resolver.symbol(&attribute.text),
                    name_span: attribute.span,
                },
                span,
            };
        }
        expression
    }

    /// Where the name of a variable leads.
    fn variable(&mut self, path: &ast::Path) -> Place {
        if path.namespace.is_empty() {
            let place = self.unqualified(&path.name.text);
            self.mention_variable(path.name.span, place);
            return place;
        }
        self.resolver.mention_prefix(self.namespace, path);
        let whole: Arc<str> = crate::project::full_name(path).into();
        match self.resolver.names.qualified_variable(self.namespace, path) {
            Ok(Some((namespace, index))) => {
                let place = Place::Namespace { namespace, index };
                self.mention_variable(path.name.span, place);
                place
            }
            Ok(None) => Place::NotFound(self.resolver.symbol(&whole)),
            Err(error) => {
                self.resolver.found.push(*error);
                Place::NotFound(self.resolver.symbol(&whole))
            }
        }
    }

    pub(super) fn unqualified(&mut self, name: &Arc<str>) -> Place {
        let symbol = self.resolver.symbol(name);
        for (up, scope) in self.blocks.iter().rev().enumerate() {
            if let Some(index) = scope.by_name.get(&symbol) {
                // Nesting is bounded by the parser.
                let Ok(up) = u16::try_from(up) else {
                    return Place::NotFound(symbol);
                };
                return Place::Local { up, index: *index };
            }
        }
        match &self.root {
            Root::Namespace => self.namespace_variable(name),
            Root::Typedef(own, _) if &**name == "self" || name == own => Place::TypedefSelf,
            Root::Typedef(..) => Place::NotFound(symbol),
            Root::Instance(_) if &**name == "self" => Place::Instance,
            Root::Instance(_) => {
                let otherwise = self.resolver.names.variable(self.namespace, name);
                Place::Member {
                    name: symbol,
                    otherwise: otherwise.map(|index| (self.namespace, index)),
                }
            }
        }
    }

    /// Notes what the name of a variable means.
    fn mention_variable(&mut self, span: Span, place: Place) {
        if self.resolver.mentions.is_none() {
            return;
        }
        let of_namespace = |namespace: NamespaceId, index: u32| {
            let variables = &self.resolver.model.namespaces[namespace.index()].body.variables;
            variables.get(index as usize).map(|variable| variable.span)
        };
        let declared = match (place, &self.root) {
            (Place::Local { up, index }, _) => {
                let scope = self.blocks.len().checked_sub(usize::from(up) + 1);
                let scope = scope.and_then(|at| self.blocks.get(at));
                scope.and_then(|scope| Some(scope.variables.get(index as usize)?.span))
            }
            (Place::Namespace { namespace, index }, _) => of_namespace(namespace, index),
            (Place::Instance, Root::Instance(entity)) => {
                return self.resolver.mention(span, Target::Instance(*entity));
            }
            (Place::TypedefSelf, Root::Typedef(_, typedef)) => {
                return self.resolver.mention(span, Target::Value(*typedef));
            }
            (Place::Member { name, otherwise }, Root::Instance(entity)) => {
                if self.resolver.entity(*entity).member(name).is_some() {
                    return self.resolver.mention(span, Target::Member(*entity, name));
                }
                otherwise.and_then(|(namespace, index)| of_namespace(namespace, index))
            }
            _ => None,
        };
        if let Some(declared) = declared {
            self.resolver.note_variable(span, declared);
        }
    }

    fn namespace_variable(&mut self, name: &Arc<str>) -> Place {
        match self.resolver.names.variable(self.namespace, name) {
            Some(index) => Place::Namespace {
                namespace: self.namespace,
                index,
            },
            None => Place::NotFound(self.resolver.symbol(name)),
        }
    }
}

/// The name of a target that is a variable of the block or file itself.
fn plain_variable(target: &ast::Reference) -> Option<&ast::Name> {
    let is_plain = target.attributes.is_empty() && target.variable.namespace.is_empty();
    is_plain.then_some(&target.variable.name)
}

/// What stands for an expression that is wrong, which has been told.
pub(super) fn nothing() -> ExpressionKind {
    ExpressionKind::Literal(Literal::Null)
}
