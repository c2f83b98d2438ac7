//! Lookups in indexes: `E[a=v]`, and `x.rel[a=v]`, which looks for an instance whose other end of the relation is `x`.

use setpoint_cf_functions::codes::{self as function_codes, class};
use setpoint_cf_functions::context::Stop;
use setpoint_cf_functions::operators;
use setpoint_cf_names::datum::Datum;
use setpoint_cf_names::hir::{Expression, ExpressionKind, MemberKind};
use setpoint_cf_names::ids::{EntityId, IndexId, Symbol};
use setpoint_cf_names::types::BaseType;
use setpoint_diagnostics::{Diagnostic, Span, did_you_mean};
use smallvec::SmallVec;

use super::cells::CellId;
use super::index::hash_key;
use super::machine::{Machine, Run};
use super::units::{Scope, UnitId};
use super::view::naming;
use super::{Instance, codes};

/// What is looked for: names with values.
type Key = SmallVec<[(Symbol, Datum); 2]>;

impl<'m> Machine<'m> {
    /// A lookup has its values, or an instance with its key may have come.
    pub(super) fn run_lookup(
        &mut self,
        unit: UnitId,
        expression: &'m Expression,
        result: CellId,
        scope: Scope,
    ) -> Run<()> {
        let (entity, key) = self.lookup_key(unit, expression, scope)?;
        let (index, values) = self.lookup_values(entity, &key, expression.span)?;
        let hash = hash_key(&values);
        match self.find_in_index(index, hash, &values) {
            Some(found) if self.model.is_below(self.entity_of(found), entity) => {
                self.finish(unit);
                self.set_result(result, Datum::Instance(found));
            }
            _ => {
                self.units.hold(unit);
                self.indexes.wait(index, hash, unit);
            }
        }
        Ok(())
    }

    /// The error that nothing has the key of a lookup.
    pub(super) fn no_match(&mut self, unit: UnitId, expression: &'m Expression) -> Diagnostic {
        let scope = self.units.get(unit).scope;
        let (entity, key) = match self.lookup_key(unit, expression, scope) {
            Ok(found) => found,
            Err(Stop::Error(error)) => return *error,
            Err(Stop::Unset(_)) => {
                return Diagnostic::error(&codes::NO_MATCH, expression.span, "no match in index")
                    .of_class(class::NOT_FOUND);
            }
        };
        let values: Vec<String> = key
            .iter()
            .map(|(name, value)| format!("{}={}", self.model.text(*name), self.shown(value)))
            .collect();
        let name = &self.model.entities[entity.index()].name;
        let message = format!("no match in index of `{name}` for ({})", values.join(", "));
        let error = Diagnostic::error(&codes::NO_MATCH, expression.span, message)
            .of_class(class::NOT_FOUND)
            .label("nothing constructs an instance with this key");
        let near = match key.as_slice() {
            [(name, Datum::Text(text))] => self.near_key(entity, *name, text),
            _ => None,
        };
        error.help_if(near)
    }

    /// A similar text that an instance of the entity has in an attribute.
    fn near_key(&self, entity: EntityId, name: Symbol, text: &str) -> Option<String> {
        /// Nobody waits for more of them to be compared.
        const MOST_COMPARED: usize = 10_000;
        let of_entity = |instance: &&Instance| self.model.is_below(instance.entity, entity);
        let found = self.instances.iter().filter(of_entity).take(MOST_COMPARED);
        let texts: Vec<&str> = found
            .filter_map(|instance| {
                let (slot, _) = self.model.entities[instance.entity.index()].member(name)?;
                match self.cells.get(instance.first.at(slot)).value.unmarked() {
                    Datum::Text(text) => Some(&**text),
                    _ => None,
                }
            })
            .collect();
        did_you_mean(text, texts)
    }

    fn lookup_key(&mut self, unit: UnitId, expression: &'m Expression, scope: Scope) -> Run<(EntityId, Key)> {
        let mut next = self.units.get(unit).parts;
        let mut key = Key::new();
        let (entity, keywords, dicts) = match &expression.kind {
            ExpressionKind::IndexLookup {
                entity,
                keywords,
                dicts,
            } => (*entity, keywords, dicts),
            ExpressionKind::SelectorLookup {
                instance,
                relation,
                keywords,
                dicts,
            } => {
                let root = self.evaluate(instance, scope, &mut next)?;
                let (entity, inverse) = self.selected(&root, *relation, expression.span, instance.span)?;
                key.push((inverse, root));
                (entity, keywords, dicts)
            }
            _ => {
                return Machine::fail(
                    Diagnostic::error(&codes::NO_MATCH, expression.span, "no lookup")
                        .of_class(class::NOT_FOUND),
                );
            }
        };
        for (name, span, value) in keywords {
            let value = self.evaluate(value, scope, &mut next)?;
            self.add_to_key(&mut key, *name, value, *span)?;
        }
        for dict in dicts {
            let value = self.evaluate(dict, scope, &mut next)?;
            let entries = naming!(self, naming => operators::keyword_dict(&value, dict.span, naming))
                .map_err(Stop::Error)?;
            let Some(entries) = entries else {
                let message =
                    "the `**` operator can only be applied to dictionaries, and this value is not known yet";
                return Machine::fail(
                    Diagnostic::error(&function_codes::OPERAND, dict.span, message).of_class(class::TYPING),
                );
            };
            for (name, value) in entries.iter() {
                let members = &self.model.entities[entity.index()].members;
                let member = members
                    .iter()
                    .find(|member| **self.model.text(member.name) == **name);
                let Some(member) = member else {
                    return Machine::fail(self.no_index(entity, &[name], expression.span));
                };
                self.add_to_key(&mut key, member.name, value.clone(), dict.span)?;
            }
        }
        Ok((entity, key))
    }

    fn add_to_key(&self, key: &mut Key, name: Symbol, value: Datum, span: Span) -> Run<()> {
        let text = self.model.text(name);
        if key.iter().any(|(given, _)| *given == name) {
            let message = format!("`{text}` is given twice in the lookup");
            return Machine::fail(
                Diagnostic::error(&codes::GIVEN_TWICE, span, message).of_class(class::RUNTIME),
            );
        }
        if let Datum::Deferred(_) = value.unmarked() {
            let message = format!("references can not be used in indexes, and `{text}` is in one");
            return Machine::fail(
                Diagnostic::error(&codes::DEFERRED_KEY, span, message).of_class(class::TYPING),
            );
        }
        key.push((name, value));
        Ok(())
    }

    /// The entity that a relation holds, and the name of its other end.
    fn selected(
        &self,
        root: &Datum,
        relation: Symbol,
        span: Span,
        root_span: Span,
    ) -> Run<(EntityId, Symbol)> {
        let name = self.model.text(relation);
        let refuse = |message: String| {
            Machine::fail(Diagnostic::error(&codes::SELECTOR, span, message).of_class(class::TYPING))
        };
        let Datum::Instance(instance) = root else {
            return refuse(format!(
                "a lookup through `{name}` needs an entity, not {}",
                self.described(root)
            ));
        };
        let (_, slot) = self.member_cell(*instance, relation, root_span)?;
        match self.member(*instance, slot).kind {
            MemberKind::Attribute { .. } => refuse(format!(
                "a lookup goes through a relation, and `{name}` is an attribute"
            )),
            MemberKind::Relation(id) => {
                let relation = &self.model.relations[id.index()];
                match relation.inverse {
                    Some(inverse) => Ok((relation.target, self.model.relations[inverse.index()].name)),
                    None => refuse(format!(
                        "a lookup goes through a relation with two ends, and `{name}` has one"
                    )),
                }
            }
        }
    }

    /// The index of exactly these names, and the values in its order.
    fn lookup_values(&self, entity: EntityId, key: &Key, span: Span) -> Run<(IndexId, SmallVec<[Datum; 2]>)> {
        let found = &self.model.entities[entity.index()];
        let fits = |id: &&IndexId| {
            let members = &self.model.indexes[id.index()].members;
            members.len() == key.len() && key.iter().all(|(name, _)| members.contains(name))
        };
        let Some(index) = found.indexes.iter().find(fits) else {
            let names: Vec<&str> = key.iter().map(|(name, _)| &**self.model.text(*name)).collect();
            return Machine::fail(self.no_index(entity, &names, span));
        };
        let members = self.model.indexes[index.index()].members.iter();
        let values = members.map(|name| {
            let value = key
                .iter()
                .find(|(given, _)| given == name)
                .map_or(Datum::Null, |(_, value)| value.clone());
            let is_float = found.member(*name).is_some_and(|(_, member)| match &member.kind {
                MemberKind::Attribute { ty, .. } => ty.base == BaseType::Float,
                MemberKind::Relation(_) => false,
            });
            match value.unmarked() {
                Datum::Int(int) if is_float => Datum::Float(*int as f64),
                _ => value,
            }
        });
        Ok((*index, values.collect()))
    }

    fn no_index(&self, entity: EntityId, names: &[&str], span: Span) -> Diagnostic {
        let found = &self.model.entities[entity.index()];
        let message = format!("no index defined on `{}` for ({})", found.name, names.join(", "));
        let indexes = found.indexes.iter().map(|id| {
            let members = self.model.indexes[id.index()].members.iter();
            let names: Vec<&str> = members.map(|name| &**self.model.text(*name)).collect();
            format!("({})", names.join(", "))
        });
        let indexes: Vec<String> = indexes.collect();
        let error = Diagnostic::error(&codes::NO_MATCH, span, message).of_class(class::NOT_FOUND);
        match indexes.is_empty() {
            true => {
                let short = found
                    .name
                    .rsplit_once("::")
                    .map_or(&*found.name, |(_, short)| short);
                let help = format!(
                    "instances are found by an index: `index {short}({})`",
                    names.join(", ")
                );
                error.note("it has no index").help(help)
            }
            false => error.note(format!("its indexes are {}", indexes.join(", "))),
        }
    }
}
