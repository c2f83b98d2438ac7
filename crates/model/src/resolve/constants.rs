//! Defaults of attributes: constant, of the right type, and inherited.

use std::sync::Arc;

use setpoint_diagnostics::{Diagnostic, Span};

use super::{Resolver, codes};
use crate::datum::{Datum, InstanceId};
use crate::functions::context::Instances;
use crate::functions::operators::Outcome;
use crate::functions::text::Naming;
use crate::functions::types::check_attribute;
use crate::hir::{AttributeType, EntityId, Expression, ExpressionKind, MemberKind};
use crate::syntax::ast::{self, Literal};

impl Resolver<'_> {
    /// Gives all attributes their defaults. The nearest declaration counts: that of the entity itself, then that of its leftmost parent
    /// that has the attribute. A declaration without a default takes an inherited one away.
    pub(super) fn resolve_defaults(&mut self) {
        for at in 0..self.parents_first.len() {
            let entity = self.parents_first[at];
            for slot in 0..self.entity(entity).members.len() {
                let name = self.entity(entity).members[slot].name;
                let own = self.declared[entity.index()]
                    .iter()
                    .find(|declared| declared.name == name);
                let default = match own.map(|declared| (declared.tree, declared.ty)) {
                    Some((Some(tree), ty)) => self.own_default(entity, tree, ty),
                    Some((None, _)) => None,
                    None => self.inherited_default(entity, name),
                };
                let member = &mut self.model.entities[entity.index()].members[slot];
                if let MemberKind::Attribute { default: place, .. } = &mut member.kind {
                    *place = default;
                }
            }
        }
    }

    fn inherited_default(&self, entity: EntityId, name: crate::hir::Symbol) -> Option<Arc<Expression>> {
        let mut parents = self.entity(entity).parents.iter();
        let (_, member) = parents.find_map(|parent| self.entity(*parent).member(name))?;
        match &member.kind {
            MemberKind::Attribute { default, .. } => default.clone(),
            MemberKind::Relation(_) => None,
        }
    }

    fn own_default(&mut self, entity: EntityId, at: usize, ty: AttributeType) -> Option<Arc<Expression>> {
        let attribute = self.entities[entity.index()]?.attributes.get(at)?;
        let Some(ast::Default::Value(tree)) = &attribute.default else {
            return None;
        };
        let name = &attribute.name;
        let Some(default) = constant(tree) else {
            let message = format!("the default of `{}` is not a constant", name.text);
            let error = Diagnostic::error(&codes::DEFAULT_NOT_CONSTANT, tree.span, message);
            let error = error.of_class("RuntimeException").label("not constant");
            let help = "a default is a literal, or a list or dict of literals; what has to be computed is assigned in an implementation";
            self.found.push(error.help(help));
            return None;
        };
        if let Err(cause) = self.check_default(&value_of(&default.kind), ty, tree.span) {
            let message = format!(
                "the default of `{}` does not fit its type `{}`: {}",
                name.text,
                self.type_text(ty),
                cause.message
            );
            let error = Diagnostic::error(&codes::DEFAULT_TYPE, name.span, message)
                .of_class("RuntimeException")
                .because(tree.span, "the default");
            self.found.push(error.caused_by(*cause));
        }
        Some(Arc::new(default))
    }

    /// Whether a constant is of a type, conditions of typedefs included.
    fn check_default(&mut self, value: &Datum, ty: AttributeType, span: Span) -> Outcome<()> {
        // Who checks may have to name something that is not found, so the model needs its names.
        std::mem::swap(&mut self.model.symbols, &mut self.symbols.texts);
        let naming = Naming {
            model: &self.model,
            instances: &NoInstances,
        };
        let checked = check_attribute(ty, value, span, naming);
        std::mem::swap(&mut self.model.symbols, &mut self.symbols.texts);
        checked
    }
}

/// Constants hold no instances.
struct NoInstances;

impl Instances for NoInstances {
    fn entity(&self, _: InstanceId) -> EntityId {
        EntityId(0)
    }

    fn places(&self, _: InstanceId) -> Vec<String> {
        Vec::new()
    }
}

/// A literal, or a list or dict of literals.
fn constant(tree: &ast::Expression) -> Option<Expression> {
    let kind = match &tree.kind {
        ast::ExpressionKind::Literal(literal) => ExpressionKind::Literal(literal.clone()),
        ast::ExpressionKind::List(elements) => {
            let mut flat: Vec<Datum> = Vec::new();
            for element in elements {
                match constant(element)?.kind {
                    ExpressionKind::Literal(literal) => flat.push(datum(&literal)),
                    ExpressionKind::ConstantList(inner) => flat.extend(inner.iter().cloned()),
                    dict => flat.push(value_of(&dict)),
                }
            }
            ExpressionKind::ConstantList(flat.into())
        }
        ast::ExpressionKind::Dict(entries) => {
            let entry =
                |(key, value): &(ast::DictKey, ast::Expression)| Some((key.text.clone(), constant(value)?));
            ExpressionKind::Dict(entries.iter().map(entry).collect::<Option<_>>()?)
        }
        _ => return None,
    };
    Some(Expression {
        kind,
        span: tree.span,
    })
}

/// The value of a literal.
pub(super) fn datum(literal: &Literal) -> Datum {
    match literal {
        Literal::Int(number) => Datum::Int(*number),
        Literal::Float(number) => Datum::Float(*number),
        Literal::Text(text) => Datum::Text(text.clone()),
        Literal::Bool(value) => Datum::Bool(*value),
        Literal::Null => Datum::Null,
    }
}

/// The value of a constant.
fn value_of(constant: &ExpressionKind) -> Datum {
    match constant {
        ExpressionKind::Literal(literal) => datum(literal),
        ExpressionKind::ConstantList(elements) => Datum::List(elements.clone()),
        ExpressionKind::Dict(entries) => {
            let entries = entries
                .iter()
                .map(|(key, value)| (key.clone(), value_of(&value.kind)));
            Datum::Dict(Arc::new(entries.collect()))
        }
        // Nothing else is constant.
        _ => Datum::Null,
    }
}
