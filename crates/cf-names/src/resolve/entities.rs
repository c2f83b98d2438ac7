//! The third step: what entities extend, and the attributes that they declare.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use setpoint_cf_syntax::ast;
use setpoint_diagnostics::{Diagnostic, Span, did_you_mean};

use super::mentions::Target;
use super::{Resolver, codes};
use crate::advice::{other_name, unnamed_end};
use crate::ids::{EntityId, Symbol};
use crate::kinds;
use crate::types::AttributeType;

/// So many entities or typedefs may be above one another. Nobody needs as many, and what an entity inherits is held for each.
pub(super) const MOST_LEVELS: usize = 250;

/// An attribute that an entity declares itself.
#[derive(Debug, Clone)]
pub(super) struct Declared {
    /// Its name.
    pub(super) name: Symbol,
    /// Its place.
    pub(super) span: Option<Span>,
    /// Its type.
    pub(super) ty: AttributeType,
    /// Which attribute of the tree it is; none for those of kinds, which are optional and have no default.
    pub(super) tree: Option<usize>,
}

impl Resolver<'_> {
    pub(super) fn resolve_entities(&mut self) {
        for at in 0..self.entities.len() {
            let entity = EntityId(at as u32);
            match self.entities[at] {
                Some(tree) => self.find_parents(entity, tree),
                None => self.take_parent_of_kinds(entity),
            }
        }
        self.order_entities();
        if self.found.has_errors() && self.mentions.is_none() {
            return;
        }
        for at in 0..self.parents_first.len() {
            let entity = self.parents_first[at];
            match self.entities[entity.index()] {
                Some(tree) => self.declare_attributes(entity, tree),
                None => self.declare_parameters(entity),
            }
        }
    }

    fn find_parents(&mut self, entity: EntityId, tree: &ast::Entity) {
        let namespace = self.entity(entity).namespace;
        let mut parents: Vec<EntityId> = Vec::new();
        for path in &tree.parents {
            let Some(parent) = self.find_entity(namespace, path) else {
                continue;
            };
            if parents.contains(&parent) {
                let message = format!(
                    "`{}` extends `{}` twice",
                    tree.name.text,
                    self.entity(parent).name
                );
                let error = Diagnostic::error(&codes::WRONG_SORT, path.span, message);
                self.found.push(error.of_class("TypingException").label("again"));
                continue;
            }
            parents.push(parent);
        }
        if parents.is_empty() && entity != EntityId(0) {
            parents.push(EntityId(0));
        }
        self.model.entities[entity.index()].parents = parents;
    }

    /// Entities of kinds extend `setpoint::Resource`.
    fn take_parent_of_kinds(&mut self, entity: EntityId) {
        let of_kinds = self.entity(entity).kind.is_some();
        let resource = self
            .model
            .entities
            .iter()
            .position(|known| &*known.name == "setpoint::Resource");
        if let Some(resource) = resource.filter(|_| of_kinds) {
            self.model.entities[entity.index()].parents = vec![EntityId(resource as u32)];
        }
    }

    /// Puts parents before what extends them, and finds out who descends from whom. What extends itself is told.
    fn order_entities(&mut self) {
        let count = self.model.entities.len();
        let mut children: Vec<Vec<EntityId>> = vec![Vec::new(); count];
        let mut waits: Vec<usize> = Vec::with_capacity(count);
        for (at, entity) in self.model.entities.iter().enumerate() {
            waits.push(entity.parents.len());
            for parent in &entity.parents {
                children[parent.index()].push(EntityId(at as u32));
            }
        }
        let mut order: Vec<EntityId> = Vec::with_capacity(count);
        order.extend(
            (0..count)
                .filter(|at| waits[*at] == 0)
                .map(|at| EntityId(at as u32)),
        );
        let mut depths: Vec<usize> = vec![0; count];
        let mut done = 0;
        while let Some(entity) = order.get(done).copied() {
            done += 1;
            let parents = &self.model.entities[entity.index()].parents;
            let depth = parents
                .iter()
                .map(|parent| depths[parent.index()] + 1)
                .max()
                .unwrap_or(0);
            depths[entity.index()] = depth;
            if depth > MOST_LEVELS {
                self.too_deep(entity);
                return;
            }
            let mut ancestors: Vec<EntityId> = Vec::new();
            for parent in &self.model.entities[entity.index()].parents {
                ancestors.push(*parent);
                ancestors.extend(&self.model.entities[parent.index()].ancestors);
            }
            ancestors.sort_unstable();
            ancestors.dedup();
            self.model.entities[entity.index()].ancestors = ancestors;
            for child in &children[entity.index()] {
                waits[child.index()] -= 1;
                if waits[child.index()] == 0 {
                    order.push(*child);
                }
            }
        }
        if order.len() < count {
            self.tell_cycles(&waits);
        }
        for at in 0..count {
            for above in self.model.entities[at].ancestors.clone() {
                self.model.entities[above.index()]
                    .descendants
                    .push(EntityId(at as u32));
            }
        }
        self.parents_first = order;
    }

    fn too_deep(&mut self, entity: EntityId) {
        let of = self.entity(entity);
        let message = format!("`{}` has more than {MOST_LEVELS} entities above it", of.name);
        if let Some(span) = of.span {
            let error = Diagnostic::error(&codes::TOO_DEEP, span, message);
            self.found.push(error.of_class("TypingException"));
        }
    }

    /// Each cycle once, at the entity whose parent closes it: the way begins at the first entity of the text.
    fn tell_cycles(&mut self, waits: &[usize]) {
        let mut told = vec![false; waits.len()];
        for start in 0..waits.len() {
            if waits[start] == 0 || told[start] {
                continue;
            }
            // Something that waits has a parent that waits, so this comes back to where it was.
            let mut way: Vec<usize> = Vec::new();
            let mut at = start;
            let mut position: FxHashMap<usize, usize> = FxHashMap::default();
            while !told[at] && !position.contains_key(&at) {
                position.insert(at, way.len());
                way.push(at);
                let parents = &self.model.entities[at].parents;
                match parents.iter().find(|parent| waits[parent.index()] > 0) {
                    Some(parent) => at = parent.index(),
                    None => break,
                }
            }
            let cycle = position
                .get(&at)
                .filter(|_| !told[at])
                .map_or(way.len(), |from| *from);
            let mut circle = way[cycle..].to_vec();
            if let Some(last) = circle.last().copied() {
                circle.rotate_right(1);
                let names: Vec<&str> = circle.iter().map(|at| &*self.model.entities[*at].name).collect();
                let message = format!(
                    "`{}` extends itself: {} → {}",
                    names[0],
                    names.join(" → "),
                    names[0]
                );
                if let Some(tree) = self.entities[last] {
                    let error = Diagnostic::error(&codes::CYCLE, tree.name.span, message)
                        .of_class("CycleException")
                        .label("is its own ancestor");
                    let others = circle[1..].iter().take(4);
                    let others = others.filter_map(|at| self.entities[*at]);
                    let error = others.fold(error, |error, other| {
                        error.because(other.name.span, "this one is in the circle, too")
                    });
                    self.found.push(error);
                }
            }
            for at in way {
                told[at] = true;
            }
        }
    }

    fn declare_attributes(&mut self, entity: EntityId, tree: &ast::Entity) {
        let namespace = self.entity(entity).namespace;
        let mut known: FxHashMap<Arc<str>, Span> = FxHashMap::default();
        for (at, attribute) in tree.attributes.iter().enumerate() {
            let name = &attribute.name;
            if let Some(first) = known.get(&name.text) {
                let message = format!("`{}` has two attributes `{}`", tree.name.text, name.text);
                let error = Diagnostic::error(&codes::DUPLICATE_MEMBER, *first, message);
                let error = error.of_class("DuplicateException").shown_at(name.span);
                self.found
                    .push(error.label("again").because(*first, "declared here first"));
                continue;
            }
            known.insert(name.text.clone(), name.span);
            let Some(base) = self.find_base(namespace, &attribute.ty.path) else {
                continue;
            };
            let ty = AttributeType {
                base,
                list: attribute.ty.list,
                nullable: attribute.ty.nullable,
            };
            let symbol = self.symbol(&name.text);
            self.mention_definition(name.span, Target::Member(entity, symbol));
            self.declared[entity.index()].push(Declared {
                name: symbol,
                span: Some(name.span),
                ty,
                tree: Some(at),
            });
        }
    }

    fn declare_parameters(&mut self, entity: EntityId) {
        let Some(schema) = self.entity(entity).kind else {
            return;
        };
        for parameter in schema.parameters {
            let Some(ty) = kinds::attribute_type(parameter.parameter_type) else {
                continue;
            };
            let name = self.symbol(&kinds::attribute_name(parameter.name).into());
            self.declared[entity.index()].push(Declared {
                name,
                span: None,
                ty,
                tree: None,
            });
        }
    }

    /// Advice for the name of a member that an entity does not have.
    pub(super) fn near_member(&self, entity: EntityId, name: &str) -> Option<String> {
        if !self.names.may_search() {
            return None;
        }
        let text = |symbol| &**self.symbols.text(symbol);
        if let Some(unnamed) = unnamed_end(&self.model, entity, name, &text) {
            return Some(unnamed);
        }
        let of = self.entity(entity);
        let is_there = |name: &str| of.members.iter().any(|member| text(member.name) == name);
        if let Some(meant) = other_name(name, &is_there) {
            return Some(format!("did you mean `{meant}`?"));
        }
        let members = self.entity(entity).members.iter();
        did_you_mean(name, members.map(|member| &**self.symbols.text(member.name)))
    }
}
