//! Names: what the one at a place means, where that is defined, where else it is mentioned, and what nothing mentions.

use rustc_hash::{FxHashMap, FxHashSet};
use setpoint_diagnostics::{FileId, NameIndex, Span};

use super::Analysis;
use crate::hir::DefinitionKind;
use crate::scope::{AliasId, Target};
use crate::syntax::StmtKind;

/// A name in a text.
pub type Name = setpoint_diagnostics::Name<Target>;

/// Something that nothing mentions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unused {
    /// What it is. Of an import, its alias.
    pub target: Target,
    /// Its name.
    pub name: Span,
    /// The statement that defines it; of parameters and loop variables, these.
    pub statement: Span,
    /// Whether it stands at the top of its file, where those who import the file find it.
    pub is_at_top: bool,
}

/// A variable that hides another one of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Shadowing {
    /// The name that hides.
    pub inner: Span,
    /// The name that is hidden.
    pub outer: Span,
}

impl Analysis {
    /// All names of all texts whose meaning is known, in the order of the texts.
    #[must_use]
    pub fn names(&self) -> &[Name] {
        self.index.all()
    }

    /// The names of one text.
    #[must_use]
    pub fn names_in(&self, file: FileId) -> &[Name] {
        self.index.of_file(file)
    }

    /// The name at a place: that around it, or the one that ends there; on a dollar, the one behind it.
    #[must_use]
    pub fn name_at(&self, file: FileId, offset: u32) -> Option<&Name> {
        self.name_around(file, offset).or_else(|| {
            let rest = self.sources.file(file).text.get(offset as usize..)?;
            let dollar = ["${", "$"].into_iter().find(|dollar| rest.starts_with(dollar))?;
            self.name_around(file, offset + dollar.len() as u32)
        })
    }

    fn name_around(&self, file: FileId, offset: u32) -> Option<&Name> {
        let touching = self.index.touching(file, offset);
        // Of an import without `as`, the path is also what its alias is called by: the file is the better answer.
        touching.min_by_key(|name| {
            (
                name.span.end - name.span.start,
                matches!(name.target, Target::Alias(_)),
            )
        })
    }

    /// Where something is defined; none for what is no part of a text.
    #[must_use]
    pub fn definition(&self, target: &Target) -> Option<Span> {
        let span = match target {
            Target::Variable(id) => self.hir.definition(*id).name_span,
            Target::Function(id) => self.hir.function(*id).name_span?,
            Target::Class(id) => self.hir.class(*id).name_span,
            Target::Alias(id) => self.alias(*id).name_span,
            Target::File(file) => Span::new(*file, 0, 0),
            Target::LibraryFunction(_) | Target::Kind(_) | Target::Parameter { .. } | Target::Meta(_) => {
                return None;
            }
        };
        let is_place = span.end > span.start || matches!(target, Target::File(_));
        is_place.then_some(span)
    }

    /// All places where something is named, its definition among them, each once.
    #[must_use]
    pub fn references(&self, target: &Target) -> Vec<&Name> {
        let mut found: Vec<&Name> = Vec::new();
        for name in self.names() {
            let is_new = found.last().is_none_or(|last| last.span != name.span);
            if is_new && self.is_same(&name.target, target) {
                found.push(name);
            }
        }
        found
    }

    /// Whether two names mean the same. What is resolved for each import of its file is still one thing.
    #[must_use]
    pub fn is_same(&self, a: &Target, b: &Target) -> bool {
        if a == b {
            return true;
        }
        std::mem::discriminant(a) == std::mem::discriminant(b)
            && self
                .definition(a)
                .is_some_and(|place| Some(place) == self.definition(b))
    }

    /// Variables, functions, classes and imports that nothing mentions, in the order of the texts.
    #[must_use]
    pub fn unused(&self) -> Vec<Unused> {
        let mentioned: FxHashSet<Span> = self
            .names()
            .iter()
            .filter(|name| !name.is_definition)
            .filter_map(|name| self.definition(&name.target))
            .collect();
        let used_aliases: FxHashSet<Span> = (self.mentions.used_aliases.iter())
            .map(|id| self.alias(*id).name_span)
            .collect();
        let tops = self.top_statements();
        let mut found: Vec<Unused> = Vec::new();
        let mut offer = |target: Target, name: Span, statement: Span| {
            if name.end > name.start && !mentioned.contains(&name) {
                found.push(Unused {
                    target,
                    name,
                    statement,
                    is_at_top: tops.contains(&statement),
                });
            }
        };
        for (index, definition) in self.hir.definitions.iter().enumerate() {
            let target = Target::Variable(crate::hir::DefinitionId(index as u32));
            offer(target, definition.name_span, definition.span);
        }
        for (index, function) in self.hir.functions.iter().enumerate() {
            if let Some(name) = function.name_span {
                let target = Target::Function(crate::hir::FunctionId(index as u32));
                offer(target, name, function.span);
            }
        }
        for (index, class) in self.hir.classes.iter().enumerate() {
            let target = Target::Class(crate::hir::ClassId(index as u32));
            offer(target, class.name_span, class.span);
        }
        for (index, alias) in self.mentions.aliases.iter().enumerate() {
            if !used_aliases.contains(&alias.name_span) {
                offer(
                    Target::Alias(AliasId(index as u32)),
                    alias.name_span,
                    alias.statement,
                );
            }
        }
        found.sort_by_key(|unused| unused.name);
        found.dedup_by_key(|unused| unused.name);
        found
    }

    /// Variables that hide another one of an outer block of the same text.
    #[must_use]
    pub fn shadowing(&self) -> Vec<Shadowing> {
        let mut found = Vec::new();
        for frame in &self.frames {
            #[expect(clippy::iter_over_hash_type, reason = "sorted below")]
            for (name, inner) in &frame.variables {
                let mut at = frame.parent;
                while let Some(outer) = at.map(|id| &self.frames[id.0]) {
                    if let Some(hidden) = outer.variables.get(name) {
                        found.push(Shadowing {
                            inner: self.hir.definition(*inner).name_span,
                            outer: self.hir.definition(*hidden).name_span,
                        });
                        break;
                    }
                    at = outer.parent;
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    fn top_statements(&self) -> FxHashSet<Span> {
        let statements = |parsed: &super::ParsedFile| {
            let ast = parsed.ast.clone();
            let spans: Vec<Span> = ast.root.statements.iter().map(|id| ast.stmt(*id).span).collect();
            spans
        };
        self.files().flat_map(|(_, parsed)| statements(parsed)).collect()
    }
}

/// All names, in the order of the texts; what stands at one place and means the same, once.
pub(super) fn index(analysis: &Analysis) -> NameIndex<Target> {
    let hir = &analysis.hir;
    let mut names: Vec<Name> = Vec::with_capacity(analysis.mentions.list.len() + hir.definitions.len());
    let mut define = |span: Span, target: Target| {
        if span.end > span.start {
            names.push(Name {
                span,
                target,
                is_definition: true,
            });
        }
    };
    for (index, definition) in hir.definitions.iter().enumerate() {
        if !matches!(definition.kind, DefinitionKind::Library(_)) {
            define(
                definition.name_span,
                Target::Variable(crate::hir::DefinitionId(index as u32)),
            );
        }
    }
    for (index, function) in hir.functions.iter().enumerate() {
        if let Some(span) = function.name_span {
            define(span, Target::Function(crate::hir::FunctionId(index as u32)));
        }
    }
    for (index, class) in hir.classes.iter().enumerate() {
        define(class.name_span, Target::Class(crate::hir::ClassId(index as u32)));
    }
    for (index, alias) in analysis.mentions.aliases.iter().enumerate() {
        if alias.name.is_some() {
            define(alias.name_span, Target::Alias(AliasId(index as u32)));
        }
    }
    let mention = |span, target| Name {
        span,
        target,
        is_definition: false,
    };
    let paths = import_paths(analysis);
    for (statement, file) in &analysis.imports {
        if let Some(path) = paths.get(statement) {
            names.push(mention(*path, Target::File(*file)));
        }
    }
    let mentions = &analysis.mentions.list;
    names.extend(mentions.iter().map(|m| mention(m.span, m.target.clone())));
    NameIndex::new(names, |a, b| analysis.is_same(a, b))
}

/// Where the path of each import stands, by its statement.
fn import_paths(analysis: &Analysis) -> FxHashMap<Span, Span> {
    let mut paths = FxHashMap::default();
    for (_, parsed) in analysis.files() {
        for index in 0..parsed.ast.stmt_count() as u32 {
            let statement = parsed.ast.stmt(crate::syntax::StmtId(index));
            if let StmtKind::Import(import) = &statement.kind {
                paths.insert(statement.span, import.path.span);
            }
        }
    }
    paths
}
