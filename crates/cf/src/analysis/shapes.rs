//! What expressions hold, as far as that can be told without executing them: mostly of which entity an instance is. With it attributes
//! behind a dot get a meaning.
//!
//! A variable has the shape of the first value assigned to it whose shape is known. Variables may be used before they are assigned, so the
//! model is gone through until nothing new is found.

use rustc_hash::FxHashMap;
use setpoint_cf_functions::std::{FUNCTIONS, Ty};
use setpoint_cf_names::hir::{
    Block, Constraint, Expression, ExpressionKind, FormatPart, FunctionImplementation, MemberKind, Model,
    Place, Statement, StatementKind, TextPart,
};
use setpoint_cf_names::ids::{EntityId, NamespaceId, Symbol, TypedefId};
use setpoint_cf_names::resolve::mentions::Mentions;
use setpoint_cf_names::types::{AttributeType, BaseType};
use setpoint_cf_syntax::ast::{Literal, Operator};
use setpoint_diagnostics::Span;

use super::{Mention, Target};

/// What an expression holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// An instance of this entity, or of one that descends from it.
    Instance(EntityId),
    /// A list of them.
    Instances(EntityId),
    /// A value.
    Value(AttributeType),
}

/// So often a model is gone through: a chain of variables that are used before they are assigned may be this long.
const MOST_ROUNDS: usize = 4;

/// A name that nothing has. That is an error when it is executed, and only then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    /// A variable; in an implementation also an attribute of this entity.
    Variable(Symbol, Option<EntityId>),
    /// An attribute or relation that neither this entity nor one below it has.
    Member(Symbol, EntityId),
}

/// What going through a model finds.
pub(super) struct Found {
    /// The shapes of all variables by where they are declared.
    pub(super) variables: FxHashMap<Span, Shape>,
    /// What names behind dots mean.
    pub(super) members: Vec<Mention>,
    /// Names that nothing has.
    pub(super) unknown: Vec<(Span, Unknown)>,
}

/// Goes through a model.
pub(super) fn shapes(model: &Model, mentions: &Mentions) -> Found {
    let mut walk = Walk {
        model,
        mentions,
        variables: FxHashMap::default(),
        blocks: Vec::new(),
        instance: None,
        typedef: None,
        is_last: false,
        members: Vec::new(),
        unknown: Vec::new(),
    };
    for _ in 0..MOST_ROUNDS {
        let before = walk.variables.len();
        walk.all();
        if walk.variables.len() == before {
            break;
        }
    }
    walk.is_last = true;
    walk.all();
    Found {
        variables: walk.variables,
        members: walk.members,
        unknown: walk.unknown,
    }
}

/// What a member holds.
pub(super) fn of_member(model: &Model, entity: EntityId, name: Symbol) -> Option<Shape> {
    let (_, member) = model.entities[entity.index()].member(name)?;
    Some(match &member.kind {
        MemberKind::Attribute { ty, .. } => Shape::Value(*ty),
        MemberKind::Relation(relation) => {
            let relation = &model.relations[relation.index()];
            match relation.is_list() {
                true => Shape::Instances(relation.target),
                false => Shape::Instance(relation.target),
            }
        }
    })
}

struct Walk<'m> {
    model: &'m Model,
    mentions: &'m Mentions,
    variables: FxHashMap<Span, Shape>,
    /// The variables of the blocks around what is looked at, the innermost last.
    blocks: Vec<Vec<Span>>,
    /// The entity of `self`.
    instance: Option<EntityId>,
    typedef: Option<TypedefId>,
    /// Only in the last round what is found is kept.
    is_last: bool,
    members: Vec<Mention>,
    unknown: Vec<(Span, Unknown)>,
}

impl Walk<'_> {
    fn all(&mut self) {
        let model = self.model;
        for (at, typedef) in model.typedefs.iter().enumerate() {
            self.typedef = Some(TypedefId(at as u32));
            if let Constraint::Expression(condition) = &typedef.constraint {
                self.expression(condition);
            }
        }
        self.typedef = None;
        for implementation in &model.implementations {
            self.instance = Some(implementation.entity);
            self.block(&implementation.body);
        }
        for (at, entity) in model.entities.iter().enumerate() {
            self.instance = Some(EntityId(at as u32));
            for condition in entity
                .implements
                .iter()
                .filter_map(|used| used.condition.as_ref())
            {
                self.expression(condition);
            }
        }
        self.instance = None;
        for relation in &model.relations {
            self.expressions(&relation.annotations);
        }
        for namespace in &model.namespaces {
            self.statements(&namespace.body.statements);
        }
    }

    fn block(&mut self, block: &Block) {
        let variables = block.variables.iter().map(|variable| variable.span);
        self.blocks.push(variables.collect());
        self.statements(&block.statements);
        self.blocks.pop();
    }

    fn statements(&mut self, statements: &[Statement]) {
        for statement in statements {
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &Statement) {
        match &statement.kind {
            StatementKind::AssignVariable {
                target,
                value,
                target_span,
            } => {
                self.look_up(*target, *target_span);
                let shape = self.expression(value);
                if let (Some(declared), Some(shape)) = (self.declared(*target), shape) {
                    self.variables.entry(declared).or_insert(shape);
                }
            }
            StatementKind::AssignMember {
                instance,
                member,
                member_span,
                value,
                ..
            } => {
                let shape = self.expression(instance);
                self.member(shape, *member, *member_span);
                self.expression(value);
            }
            StatementKind::For { iterable, body } => {
                let shape = self.expression(iterable);
                if let (Some(variable), Some(element)) = (body.variables.first(), element(shape)) {
                    self.variables.entry(variable.span).or_insert(element);
                }
                self.block(body);
            }
            StatementKind::If { branches, otherwise } => {
                for (condition, block) in branches {
                    self.expression(condition);
                    self.block(block);
                }
                if let Some(block) = otherwise {
                    self.block(block);
                }
            }
            StatementKind::Expression(expression) => {
                self.expression(expression);
            }
        }
    }

    /// Where a variable is declared.
    fn declared(&self, place: Place) -> Option<Span> {
        let (namespace, index) = match place {
            Place::Local { up, index } => {
                let block = self.blocks.len().checked_sub(usize::from(up) + 1)?;
                return self.blocks[block].get(index as usize).copied();
            }
            Place::Namespace { namespace, index } => (namespace, index),
            Place::Member { otherwise, .. } => otherwise?,
            Place::Instance | Place::TypedefSelf | Place::NotFound(_) => return None,
        };
        self.of_namespace(namespace, index)
    }

    fn of_namespace(&self, namespace: NamespaceId, index: u32) -> Option<Span> {
        let variables = &self.model.namespaces[namespace.index()].body.variables;
        Some(variables.get(index as usize)?.span)
    }

    fn variable(&self, place: Place) -> Option<Shape> {
        let held = || self.variables.get(&self.declared(place)?).copied();
        match place {
            Place::Instance => self.instance.map(Shape::Instance),
            Place::TypedefSelf => Some(value(self.model.typedefs[self.typedef?.index()].base)),
            Place::Member { name, .. } => {
                let entity = self.instance;
                let of_instance = entity.and_then(|entity| of_member(self.model, entity, name));
                of_instance.or_else(held)
            }
            Place::Local { .. } | Place::Namespace { .. } | Place::NotFound(_) => held(),
        }
    }

    /// Notes what a name behind a dot means. Answers what it holds.
    fn member(&mut self, of: Option<Shape>, name: Symbol, span: Span) -> Option<Shape> {
        let Some(Shape::Instance(entity)) = of else {
            return None;
        };
        let shape = of_member(self.model, entity, name);
        if self.is_last && shape.is_some() {
            self.members.push(Mention {
                span,
                target: Target::Member(entity, name),
                is_definition: false,
            });
        } else if self.is_last && !self.has_below(entity, name) {
            self.unknown.push((span, Unknown::Member(name, entity)));
        }
        shape
    }

    /// Whether an entity that descends from one has a member.
    fn has_below(&self, entity: EntityId, name: Symbol) -> bool {
        let mut below = self.model.entities[entity.index()].descendants.iter();
        below.any(|entity| self.model.entities[entity.index()].member(name).is_some())
    }

    /// Notes that a variable is none.
    fn look_up(&mut self, place: Place, span: Span) {
        if !self.is_last {
            return;
        }
        match place {
            Place::NotFound(name) => self.unknown.push((span, Unknown::Variable(name, self.instance))),
            Place::Member {
                name,
                otherwise: None,
            } => {
                let Some(entity) = self.instance else { return };
                let has = self.model.entities[entity.index()].member(name).is_some();
                if !has && !self.has_below(entity, name) {
                    self.unknown.push((span, Unknown::Variable(name, Some(entity))));
                }
            }
            _ => {}
        }
    }

    fn keywords(&mut self, keywords: &[(Symbol, Span, Expression)]) {
        for (_, _, value) in keywords {
            self.expression(value);
        }
    }

    /// The first shape that is known.
    fn expressions(&mut self, expressions: &[Expression]) -> Option<Shape> {
        let mut shape = None;
        for expression in expressions {
            let found = self.expression(expression);
            shape = shape.or(found);
        }
        shape
    }

    fn expression(&mut self, expression: &Expression) -> Option<Shape> {
        match &expression.kind {
            ExpressionKind::Literal(literal) => Some(value(match literal {
                Literal::Int(_) => BaseType::Int,
                Literal::Float(_) => BaseType::Float,
                Literal::Text(_) => BaseType::String,
                Literal::Bool(_) => BaseType::Bool,
                Literal::Null => return None,
            })),
            ExpressionKind::ConstantList(_) => Some(value(BaseType::List)),
            ExpressionKind::Matches { .. } => Some(value(BaseType::Bool)),
            ExpressionKind::Variable(place) => {
                self.look_up(*place, expression.span);
                self.variable(*place)
            }
            ExpressionKind::Attribute { of, name, name_span } => {
                let of = self.expression(of);
                self.member(of, *name, *name_span)
            }
            ExpressionKind::Interpolated(parts) => {
                for part in parts {
                    if let TextPart::Field(field) = part {
                        self.expression(field);
                    }
                }
                Some(value(BaseType::String))
            }
            ExpressionKind::Format(parts) => {
                self.format_parts(parts);
                Some(value(BaseType::String))
            }
            ExpressionKind::List(elements) => {
                let shapes: Vec<Option<Shape>> =
                    elements.iter().map(|element| self.expression(element)).collect();
                let mut shapes = shapes.into_iter();
                let first = shapes.next().flatten();
                list_of(shapes.fold(first, |all, shape| join(self.model, all, shape)))
            }
            ExpressionKind::Dict(entries) => {
                for (_, entry) in entries {
                    self.expression(entry);
                }
                Some(value(BaseType::Dict))
            }
            ExpressionKind::Comprehension(comprehension) => {
                for (_, iterable) in &comprehension.loops {
                    let shape = self.expression(iterable);
                    let variable = self.mentions.loop_variables.get(&iterable.span);
                    let variable = variable.copied().unwrap_or(iterable.span);
                    if let Some(element) = element(shape) {
                        self.variables.entry(variable).or_insert(element);
                    }
                    self.blocks.push(vec![variable]);
                }
                self.expressions(&comprehension.conditions);
                let shape = self.expression(&comprehension.value);
                self.blocks
                    .truncate(self.blocks.len() - comprehension.loops.len());
                list_of(shape)
            }
            ExpressionKind::Not(operand) | ExpressionKind::IsDefined(operand) => {
                self.expression(operand);
                Some(value(BaseType::Bool))
            }
            ExpressionKind::Operators { first, rest } => self.operators(first, rest),
            ExpressionKind::Conditional {
                condition,
                then,
                otherwise,
            } => {
                self.expression(condition);
                let shapes = (self.expression(then), self.expression(otherwise));
                match (is_null(then), is_null(otherwise)) {
                    (false, false) => join(self.model, shapes.0, shapes.1),
                    (true, _) => shapes.1,
                    (false, true) => shapes.0,
                }
            }
            ExpressionKind::LookupIsDefined(lookup) | ExpressionKind::MapLookup(lookup) => {
                self.expression(&lookup.dict);
                self.expression(&lookup.key);
                None
            }
            ExpressionKind::Cast { to, value: of } => {
                self.expression(of);
                Some(value(*to))
            }
            ExpressionKind::Call {
                function,
                positional,
                keywords,
                dicts,
                ..
            } => {
                self.expressions(positional);
                self.keywords(keywords);
                self.expressions(dicts);
                result(&self.model.functions[function.index()].implementation)
            }
            ExpressionKind::Constructor(constructor) => {
                self.keywords(&constructor.keywords);
                self.expressions(&constructor.dicts);
                Some(Shape::Instance(constructor.entity))
            }
            ExpressionKind::IndexLookup {
                entity,
                keywords,
                dicts,
            } => {
                self.keywords(keywords);
                self.expressions(dicts);
                Some(Shape::Instance(*entity))
            }
            ExpressionKind::SelectorLookup {
                instance,
                relation,
                keywords,
                dicts,
            } => {
                self.keywords(keywords);
                self.expressions(dicts);
                let of = self.expression(instance);
                let span = self.mentions.selected.get(&instance.span).copied();
                let shape = self.member(of, *relation, span.unwrap_or(instance.span))?;
                let (Shape::Instance(entity) | Shape::Instances(entity)) = shape else {
                    return None;
                };
                for (name, span, _) in keywords {
                    self.member(Some(Shape::Instance(entity)), *name, *span);
                }
                Some(Shape::Instance(entity))
            }
        }
    }

    fn operators(&mut self, first: &Expression, rest: &[(Operator, Span, Expression)]) -> Option<Shape> {
        let shape = self.expression(first);
        let mut last = None;
        for (operator, _, operand) in rest {
            self.expression(operand);
            last = Some(*operator);
        }
        match last? {
            Operator::Add | Operator::Subtract | Operator::Multiply | Operator::Remainder => shape,
            Operator::Divide | Operator::Power => None,
            _ => Some(value(BaseType::Bool)),
        }
    }

    fn format_parts(&mut self, parts: &[FormatPart]) {
        for part in parts {
            if let FormatPart::Field {
                value, specification, ..
            } = part
            {
                if let Some(value) = value {
                    self.expression(value);
                }
                self.format_parts(specification);
            }
        }
    }
}

/// What holds one or the other, if that is one thing.
fn join(model: &Model, a: Option<Shape>, b: Option<Shape>) -> Option<Shape> {
    let above = |a: EntityId, b: EntityId| match (model.is_below(a, b), model.is_below(b, a)) {
        (true, _) => Some(b),
        (_, true) => Some(a),
        (false, false) => None,
    };
    match (a?, b?) {
        (Shape::Instance(a), Shape::Instance(b)) => above(a, b).map(Shape::Instance),
        (Shape::Instances(a), Shape::Instances(b) | Shape::Instance(b))
        | (Shape::Instance(a), Shape::Instances(b)) => above(a, b).map(Shape::Instances),
        (a, b) => (a == b).then_some(a),
    }
}

fn is_null(expression: &Expression) -> bool {
    matches!(expression.kind, ExpressionKind::Literal(Literal::Null))
}

fn value(base: BaseType) -> Shape {
    Shape::Value(AttributeType {
        base,
        list: false,
        nullable: false,
    })
}

fn list_of(element: Option<Shape>) -> Option<Shape> {
    Some(match element {
        Some(Shape::Instance(entity) | Shape::Instances(entity)) => Shape::Instances(entity),
        Some(Shape::Value(_)) | None => value(BaseType::List),
    })
}

/// What a loop over something gives.
fn element(shape: Option<Shape>) -> Option<Shape> {
    match shape? {
        Shape::Instances(entity) => Some(Shape::Instance(entity)),
        Shape::Value(ty) if ty.list => Some(value(ty.base)),
        // Neither is a list, which is told when it is executed.
        Shape::Instance(_) | Shape::Value(_) => None,
    }
}

/// What a function of `std` answers.
fn result(function: &FunctionImplementation) -> Option<Shape> {
    let FunctionImplementation::Std(number) = function else {
        return None;
    };
    let ty = FUNCTIONS.get(usize::from(*number))?.result;
    let of = |base, list, nullable| Shape::Value(AttributeType { base, list, nullable });
    Some(match ty {
        Ty::String | Ty::Typedef(_) => value(BaseType::String),
        Ty::Int => value(BaseType::Int),
        Ty::Bool => value(BaseType::Bool),
        Ty::List => value(BaseType::List),
        Ty::Dict => value(BaseType::Dict),
        Ty::Strings => of(BaseType::String, true, false),
        Ty::OptionalString => of(BaseType::String, false, true),
        Ty::OptionalInt => of(BaseType::Int, false, true),
        Ty::OptionalDict => of(BaseType::Dict, false, true),
        Ty::Any | Ty::Anything | Ty::Entity(_) | Ty::Reference => return None,
    })
}
