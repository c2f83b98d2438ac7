//! Defaults of attributes: constant, of the right type, and inherited.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use setpoint_cf_syntax::ast;
use setpoint_diagnostics::{Diagnostic, Span};

use super::{Resolver, codes};
use crate::datum::Datum;
use crate::hir::{Expression, ExpressionKind, MemberKind};
use crate::ids::{EntityId, Symbol};
use crate::types::AttributeType;

/// Which entity declares the member of a name that an entity has.
type Declarers = FxHashMap<(EntityId, Symbol), EntityId>;

impl Resolver<'_> {
    /// Gives all attributes their defaults. The most derived declaration counts: that of the entity itself, then one that no other inherited
    /// declaration overrides; of several, the one of the leftmost parent. A declaration without a default takes an inherited one away.
    pub(super) fn resolve_defaults(&mut self) {
        let mut declarers = Declarers::default();
        for at in 0..self.parents_first.len() {
            let entity = self.parents_first[at];
            for slot in 0..self.entity(entity).members.len() {
                let name = self.entity(entity).members[slot].name;
                let own = self.declared[entity.index()]
                    .iter()
                    .find(|declared| declared.name == name);
                let (declarer, default) = match own.map(|declared| (declared.tree, declared.ty)) {
                    Some((Some(tree), ty)) => (entity, self.own_default(entity, tree, ty)),
                    Some((None, _)) => (entity, None),
                    None => self.inherited_default(entity, name, &declarers),
                };
                declarers.insert((entity, name), declarer);
                let member = &mut self.model.entities[entity.index()].members[slot];
                if let MemberKind::Attribute { default: place, .. } = &mut member.kind {
                    *place = default;
                }
            }
        }
    }

    /// The default that an entity inherits, and which entity declares it.
    fn inherited_default(
        &self,
        entity: EntityId,
        name: Symbol,
        declarers: &Declarers,
    ) -> (EntityId, Option<Arc<Expression>>) {
        let parents = self.entity(entity).parents.iter();
        let declared: Vec<(EntityId, EntityId)> = parents
            .filter_map(|parent| Some((*declarers.get(&(*parent, name))?, *parent)))
            .collect();
        let is_overridden = |of: EntityId| {
            declared
                .iter()
                .any(|(other, _)| self.entity(*other).ancestors.binary_search(&of).is_ok())
        };
        let most_derived = declared.iter().find(|(declarer, _)| !is_overridden(*declarer));
        let Some((declarer, parent)) = most_derived else {
            return (entity, None);
        };
        let member = self.entity(*parent).member(name);
        let default = member.and_then(|(_, member)| match &member.kind {
            MemberKind::Attribute { default, .. } => default.clone(),
            MemberKind::Relation(_) => None,
        });
        (*declarer, default)
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
            let help = "a default must be a literal, or a list or dict of literals; assign computed values in an implementation";
            self.found.push(error.help(help));
            return None;
        };
        if let Err(cause) = self.check_default(&value_of(&default.kind), ty, tree.span) {
            // The condition of the type is wrong, and not the default.
            if cause.rule_place() != tree.span {
                self.found
                    .push(cause.because(tree.span, "found while this default was checked"));
                return Some(Arc::new(default));
            }
            let message = format!(
                "the default of `{}` does not fit its type `{}`: {}",
                name.text,
                self.type_text(ty),
                cause.message
            );
            let error = Diagnostic::error(&codes::DEFAULT_TYPE, name.span, message)
                .of_class(cause.class)
                .because(tree.span, "the default");
            self.found.push(error.caused_by(*cause));
        }
        Some(Arc::new(default))
    }

    /// Whether a constant is of a type, conditions of typedefs included.
    fn check_default(&mut self, value: &Datum, ty: AttributeType, span: Span) -> Result<(), Box<Diagnostic>> {
        // Who checks may have to name something that is not found, so the model needs its names.
        std::mem::swap(&mut self.model.symbols, &mut self.symbols.texts);
        let checked = self.names.functions.check_constant(&self.model, ty, value, span);
        std::mem::swap(&mut self.model.symbols, &mut self.symbols.texts);
        checked
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
                    ExpressionKind::Literal(literal) => flat.push(Datum::from(&literal)),
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

/// The value of a constant.
fn value_of(constant: &ExpressionKind) -> Datum {
    match constant {
        ExpressionKind::Literal(literal) => Datum::from(literal),
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
