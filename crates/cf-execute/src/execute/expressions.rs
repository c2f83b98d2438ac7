//! All expressions and blocks of a model, so that what outlives an execution can name them.
//!
//! An expression is named by where it lies in memory. A model does not change and its expressions do not move while it lives; a name is only
//! ever looked up, so one of another model finds nothing, or something else that the model has.

use rustc_hash::FxHashMap;
use setpoint_cf_names::hir::{
    Block, Constraint, Expression, ExpressionKind, FormatPart, MemberKind, Model, Statement, StatementKind,
    TextPart,
};

/// The name of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ExpressionKey(usize);

impl ExpressionKey {
    pub(super) fn of(expression: &Expression) -> ExpressionKey {
        ExpressionKey(std::ptr::from_ref(expression).addr())
    }
}

/// The name of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct BlockKey(usize);

impl BlockKey {
    pub(super) fn of(block: &Block) -> BlockKey {
        BlockKey(std::ptr::from_ref(block).addr())
    }
}

/// The expressions and blocks of a model by their names.
#[derive(Debug, Default)]
pub(super) struct Expressions<'m> {
    expressions: FxHashMap<ExpressionKey, &'m Expression>,
    blocks: FxHashMap<BlockKey, &'m Block>,
}

impl<'m> Expressions<'m> {
    pub(super) fn of(model: &'m Model) -> Expressions<'m> {
        let mut all = Expressions::default();
        for namespace in &model.namespaces {
            all.add_block(&namespace.body);
        }
        for implementation in &model.implementations {
            all.add_block(&implementation.body);
        }
        for entity in &model.entities {
            for implement in &entity.implements {
                all.add_all(&implement.condition);
            }
            for member in &entity.members {
                if let MemberKind::Attribute {
                    default: Some(default),
                    ..
                } = &member.kind
                {
                    all.add(default);
                }
            }
        }
        for relation in &model.relations {
            all.add_all(&relation.annotations);
        }
        for typedef in &model.typedefs {
            if let Constraint::Expression(condition) = &typedef.constraint {
                all.add(condition);
            }
        }
        all
    }

    pub(super) fn expression(&self, key: ExpressionKey) -> Option<&'m Expression> {
        self.expressions.get(&key).copied()
    }

    pub(super) fn block(&self, key: BlockKey) -> Option<&'m Block> {
        self.blocks.get(&key).copied()
    }

    fn add_block(&mut self, block: &'m Block) {
        self.blocks.insert(BlockKey::of(block), block);
        for statement in &block.statements {
            self.add_statement(statement);
        }
    }

    fn add_statement(&mut self, statement: &'m Statement) {
        match &statement.kind {
            StatementKind::AssignVariable { value, .. } => self.add(value),
            StatementKind::AssignMember { instance, value, .. } => {
                self.add(instance);
                self.add(value);
            }
            StatementKind::For { iterable, body } => {
                self.add(iterable);
                self.add_block(body);
            }
            StatementKind::If { branches, otherwise } => {
                for (condition, block) in branches {
                    self.add(condition);
                    self.add_block(block);
                }
                if let Some(block) = otherwise {
                    self.add_block(block);
                }
            }
            StatementKind::Expression(expression) => self.add(expression),
        }
    }

    fn add_all(&mut self, expressions: impl IntoIterator<Item = &'m Expression>) {
        expressions
            .into_iter()
            .for_each(|expression| self.add(expression));
    }

    fn add(&mut self, expression: &'m Expression) {
        self.expressions.insert(ExpressionKey::of(expression), expression);
        match &expression.kind {
            ExpressionKind::Literal(_)
            | ExpressionKind::ConstantList(_)
            | ExpressionKind::Matches { .. }
            | ExpressionKind::Variable(_) => {}
            ExpressionKind::Attribute { of: inner, .. }
            | ExpressionKind::Not(inner)
            | ExpressionKind::IsDefined(inner)
            | ExpressionKind::Cast { value: inner, .. } => self.add(inner),
            ExpressionKind::Interpolated(parts) => {
                for part in parts {
                    if let TextPart::Field(field) = part {
                        self.add(field);
                    }
                }
            }
            ExpressionKind::Format(parts) => self.add_format(parts),
            ExpressionKind::List(elements) => self.add_all(elements),
            ExpressionKind::Dict(entries) => self.add_all(entries.iter().map(|(_, value)| value)),
            ExpressionKind::Comprehension(comprehension) => {
                self.add(&comprehension.value);
                self.add_all(comprehension.loops.iter().map(|(_, iterable)| iterable));
                self.add_all(&comprehension.conditions);
            }
            ExpressionKind::Operators { first, rest } => {
                self.add(first);
                self.add_all(rest.iter().map(|(_, _, operand)| operand));
            }
            ExpressionKind::Conditional {
                condition,
                then,
                otherwise,
            } => self.add_all([&**condition, &**then, &**otherwise]),
            ExpressionKind::LookupIsDefined(lookup) | ExpressionKind::MapLookup(lookup) => {
                self.add_all([&lookup.dict, &lookup.key]);
            }
            ExpressionKind::Call {
                positional,
                keywords,
                dicts,
                ..
            } => {
                self.add_all(positional);
                self.add_all(keywords.iter().map(|(_, _, value)| value));
                self.add_all(dicts);
            }
            ExpressionKind::Constructor(constructor) => {
                self.add_all(constructor.keywords.iter().map(|(_, _, value)| value));
                self.add_all(&constructor.dicts);
            }
            ExpressionKind::IndexLookup { keywords, dicts, .. } => {
                self.add_all(keywords.iter().map(|(_, _, value)| value));
                self.add_all(dicts);
            }
            ExpressionKind::SelectorLookup {
                instance,
                keywords,
                dicts,
                ..
            } => {
                self.add(instance);
                self.add_all(keywords.iter().map(|(_, _, value)| value));
                self.add_all(dicts);
            }
        }
    }

    fn add_format(&mut self, parts: &'m [FormatPart]) {
        for part in parts {
            if let FormatPart::Field {
                value, specification, ..
            } = part
            {
                self.add_all(value);
                self.add_format(specification);
            }
        }
    }
}
