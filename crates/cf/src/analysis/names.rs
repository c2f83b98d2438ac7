//! Names: what the one at a place means, where that is defined, and where else it is mentioned.

use rustc_hash::FxHashMap;
use setpoint_cf_names::hir::{Member, MemberKind, Model};
use setpoint_cf_names::ids::{EntityId, RelationId, Symbol};
use setpoint_diagnostics::{FileId, NameIndex, Span};

use super::{Analysis, Mention, Target};

impl Analysis {
    /// All names of all texts whose meaning is known, in the order of the texts.
    #[must_use]
    pub fn names(&self) -> &[Mention] {
        self.index.all()
    }

    /// The names of one text.
    #[must_use]
    pub fn names_in(&self, file: FileId) -> &[Mention] {
        self.index.of_file(file)
    }

    /// The name at a place: that around it, or the one that ends there.
    #[must_use]
    pub fn name_at(&self, file: FileId, offset: u32) -> Option<&Mention> {
        let touching = self.index.touching(file, offset);
        touching.min_by_key(|name| (name.span.end == offset, name.span.end - name.span.start))
    }

    /// Where something is defined; none for what is no part of a text.
    #[must_use]
    pub fn definition(&self, target: &Target) -> Option<Span> {
        let model = &self.model;
        match target {
            Target::Primitive(_) | Target::Function(..) | Target::Instance(_) => None,
            Target::Entity(id) => model.entities[id.index()].span,
            Target::Typedef(id) | Target::Value(id) => model.typedefs[id.index()].span,
            Target::Implementation(id) => model.implementations[id.index()].span,
            Target::Namespace(id) => {
                let file = model.namespaces[id.index()].file;
                Some(Span::new(file, 0, 0))
            }
            Target::Alias(span, _) | Target::Variable(span) => Some(*span),
            Target::Member(entity, symbol) => self.member(*entity, *symbol)?.span,
        }
    }

    /// All places where something is named, its definitions among them.
    #[must_use]
    pub fn references(&self, target: &Target) -> Vec<&Mention> {
        let same = self
            .names()
            .iter()
            .filter(|name| self.is_same(&name.target, target));
        same.collect()
    }

    /// Whether two names mean the same. A member that several entities have is one thing.
    #[must_use]
    pub fn is_same(&self, a: &Target, b: &Target) -> bool {
        match (a, b) {
            (Target::Primitive(a), Target::Primitive(b)) => a == b,
            (Target::Entity(a), Target::Entity(b)) | (Target::Instance(a), Target::Instance(b)) => a == b,
            (Target::Typedef(a), Target::Typedef(b)) | (Target::Value(a), Target::Value(b)) => a == b,
            (Target::Implementation(a), Target::Implementation(b)) => a == b,
            (Target::Function(a, _), Target::Function(b, _)) => a == b,
            (Target::Namespace(a), Target::Namespace(b)) => a == b,
            (Target::Alias(a, _), Target::Alias(b, _)) | (Target::Variable(a), Target::Variable(b)) => a == b,
            (Target::Member(entity, symbol), Target::Member(other, again)) => {
                symbol == again && self.class_of(*entity, *symbol) == self.class_of(*other, *symbol)
            }
            _ => false,
        }
    }

    /// A member of an entity, inherited ones too.
    #[must_use]
    pub fn member(&self, entity: EntityId, symbol: Symbol) -> Option<&Member> {
        let (_, member) = self.model.entities[entity.index()].member(symbol)?;
        Some(member)
    }

    fn class_of(&self, entity: EntityId, symbol: Symbol) -> Option<u32> {
        let (slot, _) = self.model.entities[entity.index()].member(symbol)?;
        self.members[entity.index()].get(slot as usize).copied()
    }

    /// Whether an entity declares an attribute itself.
    #[must_use]
    pub fn declares(&self, entity: EntityId, symbol: Symbol) -> bool {
        let declared = self.declared.get(entity.index());
        declared.is_some_and(|declared| declared.contains(&symbol))
    }
}

/// All names, in the order of the texts; what stands at one place and means the same, once. Of what is no name (in a text between braces
/// anything can stand) nothing is known.
pub(super) fn index(analysis: &Analysis, mut names: Vec<Mention>) -> NameIndex<Target> {
    names.retain(|name| {
        let text = analysis.text_at(name.span);
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        // White space and comments may stand within what names a namespace.
        matches!(name.target, Target::Namespace(_)) || !text.is_empty() && text.bytes().all(is_name)
    });
    NameIndex::new(names, |a, b| analysis.is_same(a, b))
}

/// For each entity the numbers of its members. What is declared again, or inherited on several ways, is one member.
pub(super) fn member_classes(model: &Model) -> Vec<Vec<u32>> {
    let mut classes = Classes::default();
    let mut members: Vec<Vec<u32>> = vec![Vec::new(); model.entities.len()];
    // Whoever has fewer ancestors comes before those that descend from it.
    let mut order: Vec<usize> = (0..model.entities.len()).collect();
    order.sort_by_key(|at| model.entities[*at].ancestors.len());
    let mut relations: FxHashMap<RelationId, u32> = FxHashMap::default();
    for at in order {
        let entity = &model.entities[at];
        let mut own: Vec<u32> = Vec::with_capacity(entity.members.len());
        for member in &entity.members {
            if let MemberKind::Relation(relation) = member.kind {
                own.push(*relations.entry(relation).or_insert_with(|| classes.add()));
                continue;
            }
            let inherited = entity.parents.iter().filter_map(|parent| {
                let (slot, _) = model.entities[parent.index()].member(member.name)?;
                members[parent.index()].get(slot as usize).copied()
            });
            let inherited: Vec<u32> = inherited.collect();
            let class = inherited.first().copied().unwrap_or_else(|| classes.add());
            for other in inherited {
                classes.unite(class, other);
            }
            own.push(class);
        }
        members[at] = own;
    }
    for class in members.iter_mut().flatten() {
        *class = classes.root(*class);
    }
    members
}

/// Sets that are united: each number points to one of its set.
#[derive(Default)]
struct Classes {
    above: Vec<u32>,
}

impl Classes {
    fn add(&mut self) -> u32 {
        let class = self.above.len() as u32;
        self.above.push(class);
        class
    }

    fn root(&self, mut class: u32) -> u32 {
        while self.above[class as usize] != class {
            class = self.above[class as usize];
        }
        class
    }

    fn unite(&mut self, a: u32, b: u32) {
        let (a, b) = (self.root(a), self.root(b));
        self.above[a.max(b) as usize] = a.min(b);
    }
}
