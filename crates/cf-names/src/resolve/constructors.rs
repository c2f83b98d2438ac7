//! Constructors: which entity is meant, which attributes it gets, and which of them follows from where it stands.

use setpoint_cf_syntax::ast::{self, Argument};
use setpoint_diagnostics::{Diagnostic, Span};

use super::bodies::{Body, nothing};
use super::mentions::Target;
use super::names::Definition;
use super::{codes, expressions::Keywords};
use crate::hir::{Constructor, ExpressionKind, MemberKind};
use crate::ids::{EntityId, RelationId, Symbol};

/// What is known of the place that takes the value of an expression.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wanted {
    /// Nothing.
    Anything,
    /// It is assigned to a member of this name, of an instance whose entity execution knows.
    Assigned(Symbol),
    /// It is the argument of a constructor for an attribute.
    Attribute,
    /// It is the argument of a constructor for a relation, which may be a part of an index.
    Relation(RelationId, bool),
}

impl Body<'_, '_> {
    pub(super) fn constructor(
        &mut self,
        path: &ast::Path,
        arguments: &[Argument],
        wanted: Wanted,
    ) -> ExpressionKind {
        let Some(entity) = self.constructed(path, wanted) else {
            for argument in arguments {
                let (Argument::Positional(value) | Argument::Keyword(_, value) | Argument::Dict(_, value)) =
                    argument;
                self.expression(value, Wanted::Anything);
            }
            return nothing();
        };
        let mut places = self.positional_members(entity, arguments, wanted).into_iter();
        let (mut keywords, mut dicts): (Keywords, Vec<_>) = (Vec::new(), Vec::new());
        let mut too_many: Option<Span> = None;
        for argument in arguments {
            let mut is_positional = false;
            let (symbol, place, value) = match argument {
                Argument::Dict(_, value) => {
                    dicts.push(self.expression(value, Wanted::Anything));
                    continue;
                }
                Argument::Keyword(name, value) => (Some(self.resolver.symbol(&name.text)), name.span, value),
                Argument::Positional(value) => {
                    is_positional = true;
                    (places.next(), value.span, value)
                }
            };
            let Some(symbol) = symbol else {
                too_many.get_or_insert(place);
                self.expression(value, Wanted::Anything);
                continue;
            };
            let taken_by = self.taken_by(entity, symbol);
            if taken_by.is_none() {
                self.no_attribute(entity, symbol, place);
            } else if let Some(mentions) = self.resolver.mentions.as_mut().filter(|_| is_positional) {
                mentions.positional.push((place, entity, symbol));
            } else {
                self.resolver.mention(place, Target::Member(entity, symbol));
            }
            let value = self.expression(value, taken_by.unwrap_or(Wanted::Anything));
            keywords.push((symbol, place, value));
        }
        if let Some(place) = too_many {
            self.too_many_positional(entity, arguments, wanted, place);
        }
        let mut missing = self.missing_members(entity, &keywords);
        let inferred = self.inferred(entity, &missing, wanted);
        missing.retain(|member| Some(*member) != inferred);
        if dicts.is_empty() && !missing.is_empty() {
            self.missing_index_members(entity, &missing, path.span);
        }
        ExpressionKind::Constructor(Box::new(Constructor {
            entity,
            keywords,
            dicts,
            inferred,
        }))
    }

    /// The entity that a constructor names. Where it is the argument of another one, the relation may say which is meant.
    fn constructed(&mut self, path: &ast::Path, wanted: Wanted) -> Option<EntityId> {
        let relation = match wanted {
            Wanted::Anything | Wanted::Assigned(_) => return self.resolver.find_entity(self.namespace, path),
            Wanted::Attribute => {
                let message = format!(
                    "`{}(…)` makes an instance, which no attribute can hold",
                    path.name.text
                );
                let error = Diagnostic::error(&codes::NESTED_TYPE, path.span, message);
                let error = error.of_class("TypingException").label("for an attribute");
                self.resolver
                    .found
                    .push(error.help("only relations hold instances"));
                return None;
            }
            Wanted::Relation(relation, _) => relation,
        };
        let target = self.resolver.model.relations[relation.index()].target;
        let is_below = |body: &Self, entity| body.resolver.model.is_below(entity, target);
        let names = &self.resolver.names;
        let error = match names.find_without_std(self.namespace, path) {
            Ok(Definition::Entity(entity)) if is_below(self, entity) => {
                return Some(self.meant(path, entity));
            }
            Ok(Definition::Entity(entity)) => {
                self.meant(path, entity);
                self.wrong_nested(entity, relation, path);
                return None;
            }
            Ok(other) => {
                self.resolver.wrong_sort(path, &other, "an entity");
                return None;
            }
            Err(error) => error,
        };
        if path.namespace.is_empty() {
            if let Ok(Definition::Entity(entity)) = names.find(self.namespace, path)
                && is_below(self, entity)
            {
                return Some(self.meant(path, entity));
            }
            let same = self.resolver.short_names.get(&path.name.text);
            let mut candidates = same.cloned().unwrap_or_default();
            candidates.retain(|entity| is_below(self, *entity));
            candidates.sort_by_key(|entity| &self.resolver.model.entities[entity.index()].name);
            match candidates.as_slice() {
                [] => {}
                [entity] => {
                    let entity = *entity;
                    return Some(self.meant(path, entity));
                }
                several => {
                    let several: Vec<EntityId> = several.to_vec();
                    self.ambiguous(&several, path);
                    return None;
                }
            }
        }
        self.resolver.found.push(*error);
        None
    }

    /// Notes which entity a path means.
    fn meant(&mut self, path: &ast::Path, entity: EntityId) -> EntityId {
        self.resolver
            .mention_type(self.namespace, path, &Definition::Entity(entity));
        entity
    }

    fn wrong_nested(&mut self, entity: EntityId, relation: RelationId, path: &ast::Path) {
        let resolver = &mut *self.resolver;
        let relation = &resolver.model.relations[relation.index()];
        let (found, wanted) = (resolver.entity(entity), resolver.entity(relation.target));
        let message = format!(
            "relation `{}` expects an instance of `{}`, found `{}`",
            resolver.symbols.text(relation.name),
            wanted.name,
            found.name
        );
        let error = Diagnostic::error(&codes::NESTED_TYPE, path.span, message);
        let mut error = error.of_class("TypingException").label("another entity");
        if let Some(place) = relation.span {
            error = error.because(place, format!("holds `{}`", wanted.name));
        }
        resolver.found.push(error);
    }

    fn ambiguous(&mut self, several: &[EntityId], path: &ast::Path) {
        let resolver = &mut *self.resolver;
        let names = several
            .iter()
            .map(|entity| format!("`{}`", resolver.entity(*entity).name));
        let names: Vec<String> = names.collect();
        let message = format!(
            "`{}` can be any of {} entities: {}",
            path.name.text,
            several.len(),
            names.join(", ")
        );
        let error = Diagnostic::error(&codes::AMBIGUOUS_TYPE, path.span, message);
        let error = error.of_class("AmbiguousTypeException").label("which one?");
        let help = "import the namespace and write the whole name";
        resolver.found.push(error.help(help));
    }

    /// The members that positional arguments are for: those of the entity's first own index that are not given by name, or else the
    /// attributes without a default, its own before those that it inherits. A member that follows from where the constructor stands is left
    /// out, unless there is an argument for it too.
    fn positional_members(
        &mut self,
        entity: EntityId,
        arguments: &[Argument],
        wanted: Wanted,
    ) -> Vec<Symbol> {
        let is_positional = |argument: &&Argument| matches!(argument, Argument::Positional(_));
        let positional = arguments.iter().filter(is_positional).count();
        if positional == 0 {
            return Vec::new();
        }
        let given = arguments.iter().filter_map(|argument| match argument {
            Argument::Keyword(name, _) => Some(self.resolver.symbols.of(&name.text)),
            Argument::Positional(_) | Argument::Dict(..) => None,
        });
        let given: rustc_hash::FxHashSet<Symbol> = given.collect();
        let mut members = match self.resolver.first_index.get(&entity) {
            Some(index) => index.clone(),
            None => self.attributes_without_default(entity),
        };
        members.retain(|member| !given.contains(member));
        if members.len() != positional
            && let Some(inferred) = self.inferred(entity, &members, wanted)
        {
            members.retain(|member| *member != inferred);
        }
        members
    }

    fn attributes_without_default(&self, entity: EntityId) -> Vec<Symbol> {
        let own = &self.resolver.declared[entity.index()];
        let mut members: Vec<Symbol> = own.iter().map(|declared| declared.name).collect();
        let of = self.resolver.entity(entity);
        let inherited = of.members.iter().map(|member| member.name);
        let inherited: Vec<Symbol> = inherited.filter(|name| !members.contains(name)).collect();
        members.extend(inherited);
        members.retain(|name| {
            let member = of.member(*name).map(|(_, member)| &member.kind);
            matches!(member, Some(MemberKind::Attribute { default: None, .. }))
        });
        members
    }

    /// What is known of the value for a member; none if there is no such member.
    fn taken_by(&self, entity: EntityId, member: Symbol) -> Option<Wanted> {
        let (_, found) = self.resolver.entity(entity).member(member)?;
        Some(match found.kind {
            MemberKind::Attribute { .. } => Wanted::Attribute,
            MemberKind::Relation(relation) => Wanted::Relation(relation, self.is_in_index(entity, member)),
        })
    }

    fn is_in_index(&self, entity: EntityId, member: Symbol) -> bool {
        let mut indexes = self.resolver.entity(entity).indexes.iter();
        indexes.any(|index| {
            self.resolver.model.indexes[index.index()]
                .members
                .contains(&member)
        })
    }

    /// Members of indexes that nothing gives a value.
    fn missing_members(&self, entity: EntityId, keywords: &Keywords) -> Vec<Symbol> {
        let mut missing: Vec<Symbol> = Vec::new();
        let of = self.resolver.entity(entity);
        for index in &of.indexes {
            for member in &self.resolver.model.indexes[index.index()].members {
                let has_default = of.member(*member).is_some_and(|(_, member)| {
                    matches!(member.kind, MemberKind::Attribute { default: Some(_), .. })
                });
                let given = keywords.iter().any(|(name, _, _)| name == member);
                if !has_default && !given && !missing.contains(member) {
                    missing.push(*member);
                }
            }
        }
        missing
    }

    /// The missing member that is the instance on whose relation the constructed one is assigned.
    ///
    /// Of an assignment only the name of the relation is known here. A member whose other end has that name is inferred, and execution finds
    /// the instance to be of the wrong entity if it is another relation.
    fn inferred(&self, entity: EntityId, missing: &[Symbol], wanted: Wanted) -> Option<Symbol> {
        let is_inverse = |member: &&Symbol| {
            let Some((_, found)) = self.resolver.entity(entity).member(**member) else {
                return false;
            };
            let MemberKind::Relation(relation) = found.kind else {
                return false;
            };
            let Some(inverse) = self.resolver.model.relations[relation.index()].inverse else {
                return false;
            };
            match wanted {
                Wanted::Anything | Wanted::Attribute | Wanted::Relation(_, true) => false,
                Wanted::Relation(assigned, false) => assigned == inverse,
                Wanted::Assigned(name) => self.resolver.model.relations[inverse.index()].name == name,
            }
        };
        missing.iter().find(is_inverse).copied()
    }

    fn no_attribute(&mut self, entity: EntityId, member: Symbol, place: Span) {
        let resolver = &mut *self.resolver;
        let name = resolver.symbols.text(member);
        let of = resolver.entity(entity);
        let message = format!("`{}` has no attribute or relation `{name}`", of.name);
        let error = Diagnostic::error(&codes::NO_ATTRIBUTE, place, message);
        let error = error.of_class("TypingException").label("no such attribute");
        let error = match of.span {
            Some(span) => error.because(span, "defined here"),
            None => error,
        };
        let near = resolver.near_member(entity, name);
        resolver.found.push(error.help_if(near));
    }

    fn too_many_positional(&mut self, entity: EntityId, arguments: &[Argument], wanted: Wanted, place: Span) {
        let places = self.positional_members(entity, arguments, wanted);
        let resolver = &mut *self.resolver;
        let name = &resolver.entity(entity).name;
        let message = match places.as_slice() {
            [] => format!("`{name}` takes no values by position here"),
            places => {
                let texts = places
                    .iter()
                    .map(|symbol| format!("`{}`", resolver.symbols.text(*symbol)));
                let texts: Vec<String> = texts.collect();
                format!(
                    "`{name}` takes {} by position here: {}",
                    count(places.len()),
                    texts.join(", ")
                )
            }
        };
        let error = Diagnostic::error(&codes::TOO_MANY_POSITIONAL, place, message);
        let help = "give the others by name: `NAME=VALUE`";
        resolver.found.push(error.label("one too many").help(help));
    }

    fn missing_index_members(&mut self, entity: EntityId, missing: &[Symbol], place: Span) {
        let resolver = &mut *self.resolver;
        let of = resolver.entity(entity);
        let sort = |member: &Symbol| {
            let found = of.member(*member).map(|(_, member)| &member.kind);
            let sort = match found {
                Some(MemberKind::Relation(_)) => "relation",
                _ => "attribute",
            };
            format!("{sort} `{}`", resolver.symbols.text(*member))
        };
        let list: Vec<String> = missing.iter().map(sort).collect();
        let message = match list.as_slice() {
            [one] => format!("`{}(…)` needs {one}, which is part of an index", of.name),
            several => format!(
                "`{}(…)` needs {}, which are part of an index",
                of.name,
                several.join(" and ")
            ),
        };
        let error = Diagnostic::error(&codes::INDEX_MEMBER_MISSING, place, message);
        let mut error = error
            .of_class("IndexAttributeMissingInConstructorException")
            .label("the key is not complete")
            .help("set it here: the index identifies the instance, so the constructor must set all of its attributes");
        for index in &of.indexes {
            let index = &resolver.model.indexes[index.index()];
            if let Some(span) = index
                .span
                .filter(|_| index.members.iter().any(|member| missing.contains(member)))
            {
                error = error.because(span, "the index");
            }
        }
        resolver.found.push(error);
    }
}

fn count(number: usize) -> String {
    match number {
        1 => "one value".to_owned(),
        number => format!("{number} values"),
    }
}
