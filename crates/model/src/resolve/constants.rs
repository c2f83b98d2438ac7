//! Defaults of attributes: constant, of the right type, and inherited.

use std::sync::Arc;

use setpoint_diagnostics::Diagnostic;

use super::{Resolver, codes};
use crate::datum::Datum;
use crate::hir::{AttributeType, BaseType, EntityId, Expression, ExpressionKind, MemberKind};
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
        if let Err(reason) = self.fits(&default, ty) {
            let message = format!(
                "the default of `{}` does not fit its type `{}`: {reason}",
                name.text,
                self.type_text(ty)
            );
            let error = Diagnostic::error(&codes::DEFAULT_TYPE, name.span, message);
            let error = error.of_class("RuntimeException").because(tree.span, reason);
            self.found.push(error);
        }
        Some(Arc::new(default))
    }

    /// Whether a constant fits a type; if not, why.
    fn fits(&self, value: &Expression, ty: AttributeType) -> Result<(), String> {
        if ty.nullable && matches!(value.kind, ExpressionKind::Literal(Literal::Null)) {
            return Ok(());
        }
        if !ty.list {
            return self.base_fits(value, ty.base);
        }
        let ExpressionKind::ConstantList(elements) = &value.kind else {
            return Err(format!("it is {}, where a list is needed", sort(value)));
        };
        for element in elements.iter() {
            let element = Expression {
                kind: ExpressionKind::Literal(literal(element)),
                span: value.span,
            };
            self.base_fits(&element, ty.base)?;
        }
        Ok(())
    }

    fn base_fits(&self, value: &Expression, base: BaseType) -> Result<(), String> {
        let fits = match (base, &value.kind) {
            // Typedefs do not go on for ever: that was refused before.
            (BaseType::Typedef(id), _) => return self.base_fits(value, self.model.typedefs[id.index()].base),
            (BaseType::String, ExpressionKind::Literal(literal)) => matches!(literal, Literal::Text(_)),
            (BaseType::Int, ExpressionKind::Literal(literal)) => {
                matches!(literal, Literal::Int(_) | Literal::Bool(_))
            }
            (BaseType::Float, ExpressionKind::Literal(literal)) => matches!(literal, Literal::Float(_)),
            (BaseType::Number, ExpressionKind::Literal(literal)) => {
                matches!(literal, Literal::Int(_) | Literal::Float(_) | Literal::Bool(_))
            }
            (BaseType::Bool, ExpressionKind::Literal(literal)) => matches!(literal, Literal::Bool(_)),
            (BaseType::List, kind) => matches!(kind, ExpressionKind::ConstantList(_)),
            (BaseType::Dict, kind) => matches!(kind, ExpressionKind::Dict(_)),
            _ => false,
        };
        if fits {
            Ok(())
        } else {
            Err(format!("it is {}", sort(value)))
        }
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
                    _ => return None,
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

/// The literal of a value that came from one.
fn literal(datum: &Datum) -> Literal {
    match datum {
        Datum::Int(number) => Literal::Int(*number),
        Datum::Float(number) => Literal::Float(*number),
        Datum::Text(text) => Literal::Text(text.clone()),
        Datum::Bool(value) => Literal::Bool(*value),
        _ => Literal::Null,
    }
}

/// What a constant is, for messages.
fn sort(value: &Expression) -> String {
    match &value.kind {
        ExpressionKind::Literal(literal) => match literal {
            Literal::Int(number) => format!("the whole number `{number}`"),
            Literal::Float(number) => format!("the float `{number:?}`"),
            Literal::Text(text) => format!("the text \"{text}\""),
            Literal::Bool(value) => format!("the truth value `{value}`"),
            Literal::Null => "`null`".to_owned(),
        },
        ExpressionKind::ConstantList(_) => "a list".to_owned(),
        ExpressionKind::Dict(_) => "a dict".to_owned(),
        _ => "no constant".to_owned(),
    }
}
