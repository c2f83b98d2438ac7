//! The outline of a file: what it defines and declares, nested.

use rustc_hash::FxHashSet;
use setpoint_cf_names::project::full_name;
use setpoint_cf_syntax::ast;
use setpoint_diagnostics::{FileId, Span};

use super::Analysis;

/// An entry of the outline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    /// What kind of thing.
    pub kind: OutlineKind,
    /// What it is called.
    pub name: String,
    /// Where its name stands.
    pub name_span: Span,
    /// All of it.
    pub span: Span,
    /// What is inside.
    pub children: Vec<Outline>,
}

/// What an outline shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OutlineKind {
    /// An entity, with its attributes.
    Entity,
    /// An attribute.
    Attribute,
    /// A relation.
    Relation,
    /// A typedef.
    Typedef,
    /// An index.
    Index,
    /// An implementation.
    Implementation,
    /// An `implement`.
    Implement,
    /// A variable of the file.
    Variable,
    /// An import.
    Import,
}

impl Analysis {
    /// The outline of a file.
    #[must_use]
    pub fn outline(&self, file: FileId) -> Vec<Outline> {
        let Some(tree) = self.tree(file) else {
            return Vec::new();
        };
        let mut variables: FxHashSet<String> = FxHashSet::default();
        let entries = tree.items.iter().filter_map(|item| {
            let entry = entry(item)?;
            let is_new = entry.kind != OutlineKind::Variable || variables.insert(entry.name.clone());
            is_new.then_some(entry)
        });
        entries.collect()
    }
}

fn entry(item: &ast::Item) -> Option<Outline> {
    let (kind, name, name_span, span) = match item {
        ast::Item::Import(import) => {
            let name = full_name(&import.path);
            let name = match &import.alias {
                Some(alias) => format!("{name} as {}", alias.text),
                None => name,
            };
            (OutlineKind::Import, name, import.path.span, import.span)
        }
        ast::Item::Entity(entity) => {
            let attribute = |attribute: &ast::Attribute| Outline {
                kind: OutlineKind::Attribute,
                name: attribute.name.text.to_string(),
                name_span: attribute.name.span,
                span: attribute.span,
                children: Vec::new(),
            };
            return Some(Outline {
                kind: OutlineKind::Entity,
                name: entity.name.text.to_string(),
                name_span: entity.name.span,
                span: entity.span,
                children: entity.attributes.iter().map(attribute).collect(),
            });
        }
        ast::Item::Relation(relation) => {
            let left = format!("{}.{}", relation.left.entity.name.text, relation.left.name.text);
            let right = &relation.right.entity.name.text;
            let name = match &relation.right.inverse {
                Some((inverse, _)) => format!("{left} -- {right}.{}", inverse.text),
                None => format!("{left} -- {right}"),
            };
            (
                OutlineKind::Relation,
                name,
                relation.left.name.span,
                relation.span,
            )
        }
        ast::Item::Typedef(typedef) => {
            let name = &typedef.name;
            (
                OutlineKind::Typedef,
                name.text.to_string(),
                name.span,
                typedef.span,
            )
        }
        ast::Item::Index(index) => {
            let members: Vec<&str> = index.members.iter().map(|member| &*member.text).collect();
            let name = format!("index {}({})", full_name(&index.entity), members.join(", "));
            (OutlineKind::Index, name, index.entity.span, index.span)
        }
        ast::Item::Implementation(implementation) => {
            let name = &implementation.name;
            let whole = implementation.span;
            (
                OutlineKind::Implementation,
                name.text.to_string(),
                name.span,
                whole,
            )
        }
        ast::Item::Implement(implement) => {
            let name = format!("implement {}", full_name(&implement.entity));
            (
                OutlineKind::Implement,
                name,
                implement.entity.span,
                implement.span,
            )
        }
        ast::Item::Statement(statement) => {
            let ast::StatementKind::Assign(assignment) = &statement.kind else {
                return None;
            };
            let target = &assignment.target;
            if !target.attributes.is_empty() || !target.variable.namespace.is_empty() {
                return None;
            }
            let name = &target.variable.name;
            (
                OutlineKind::Variable,
                name.text.to_string(),
                name.span,
                statement.span,
            )
        }
    };
    Some(Outline {
        kind,
        name,
        name_span,
        span,
        children: Vec::new(),
    })
}
