//! Looking names up, frame by frame outward, through aliases and `import … as *`.
//!
//! Dotted names are flat keys: `a.b.c` is what the alias `a` calls `b.c`, and where the nearest `a` has no such name, an outer
//! one may. What is found through an include carries the include in its path. Every lookup for a name of the text leaves a
//! [`Mention`](super::mentions::Mention) of what was found, and of the aliases on the way.

use setpoint_diagnostics::{Edit, FileId, Help, Span};
use setpoint_value::{FunctionRef, Value};

use super::classes::ClassSource;
use super::mentions::{AliasId, Target};
use super::modules::default_alias;
use super::resolve::{Alias, Frame, FrameId, Resolver};
use crate::hir::{
    BodyId, ClassId, Definition, DefinitionId, DefinitionKind, FunctionId, IncludeId, Owner, Path,
};
use crate::syntax::{Ast, Name, StmtKind};

/// The namespaces. A name can mean something different in each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Space {
    /// `$x`
    Variable,
    /// `f()`
    Function,
    /// `include c`
    Class,
}

/// What a name means.
#[derive(Debug, Clone)]
pub(super) enum Meaning {
    Variable(DefinitionId),
    Function(FunctionId),
    LibraryFunction(FunctionRef),
    Class(ClassId),
}

/// What a name means, and the includes that it goes through.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) path: Path,
    pub(super) meaning: Meaning,
}

impl From<Meaning> for Found {
    fn from(meaning: Meaning) -> Found {
        let path = Path::default();
        Found { path, meaning }
    }
}

impl Resolver<'_> {
    /// The meaning of a (perhaps dotted) name that stands in the text at `span`.
    pub(super) fn find_mentioned(
        &mut self,
        frame: FrameId,
        space: Space,
        name: &str,
        span: Span,
    ) -> Option<Found> {
        // Looking a name up may resolve the body of a class, which looks up names of its own.
        let outer = std::mem::take(&mut self.trail);
        let found = self.find(frame, space, name);
        let trail = std::mem::replace(&mut self.trail, outer);
        let found = found?;
        let target = match &found.meaning {
            Meaning::Variable(id) => Target::Variable(*id),
            Meaning::Function(id) => Target::Function(*id),
            Meaning::LibraryFunction(function) => Target::LibraryFunction(function.clone()),
            Meaning::Class(id) => Target::Class(*id),
        };
        self.mentions.record(name, span, &trail, target);
        Some(found)
    }

    /// The meaning of a (perhaps dotted) name.
    pub(super) fn find(&mut self, frame: FrameId, space: Space, name: &str) -> Option<Found> {
        if is_too_long(name) {
            return None;
        }
        let mut at = Some(frame);
        while let Some(id) = at {
            if let Some(found) = self.find_in(id, space, name) {
                return Some(found);
            }
            at = self.frames[id.0].parent;
        }
        let found = match space {
            Space::Variable => Meaning::Variable(self.library_variable(name)?),
            Space::Function => Meaning::LibraryFunction(self.library.functions.get("", name)?.clone()),
            Space::Class => return None,
        };
        Some(found.into())
    }

    fn find_in(&mut self, frame: FrameId, space: Space, name: &str) -> Option<Found> {
        if let Some(own) = self.frames[frame.0].own(space, name) {
            return Some(own.into());
        }
        if let Some((alias, rest)) = name.split_once('.')
            && let Some((alias, id)) = self.frames[frame.0].aliases.get(alias).cloned()
            && let Some(found) = self.find_through(&alias, id, space, rest)
        {
            return Some(found);
        }
        let stars = self.frames[frame.0].stars.clone();
        stars
            .iter()
            .rev()
            .find_map(|(star, id)| self.find_through(star, *id, space, name))
    }

    fn find_through(&mut self, alias: &Alias, id: AliasId, space: Space, name: &str) -> Option<Found> {
        let found = match alias {
            Alias::Module(top) => self.find_in(*top, space, name),
            Alias::System(module, top) => {
                let in_text = top.and_then(|top| self.find_in(top, space, name));
                in_text.or_else(|| self.find_in_library(module, space, name))
            }
            Alias::Include(include) => {
                let class = self.linked_class(*include)?;
                let inner = self.class_frame(class)?;
                self.find(inner, space, name).map(|found| match found.meaning {
                    Meaning::LibraryFunction(_) => found,
                    Meaning::Variable(_) | Meaning::Function(_) | Meaning::Class(_) => Found {
                        path: prefixed(*include, &found.path),
                        ..found
                    },
                })
            }
            Alias::Failed => None,
        };
        if found.is_some() {
            self.trail.push(id);
        }
        found
    }

    /// What a module of the library has under a name.
    fn find_in_library(&mut self, module: &str, space: Space, name: &str) -> Option<Found> {
        let found = match space {
            Space::Variable => {
                let variables = self.library.functions.variables(module);
                let text = variables.iter().find(|(n, _)| *n == name)?.1;
                let key = format!("{module}.{name}");
                Meaning::Variable(self.library_definition(&key, Value::str(text)))
            }
            Space::Function => Meaning::LibraryFunction(self.library.functions.get(module, name)?.clone()),
            Space::Class => return None,
        };
        Some(found.into())
    }

    fn library_variable(&mut self, name: &str) -> Option<DefinitionId> {
        let value = self.library.variables.get(name)?.clone();
        Some(self.library_definition(name, value))
    }

    fn library_definition(&mut self, key: &str, value: Value) -> DefinitionId {
        if let Some(found) = self.library_variables.get(key) {
            return *found;
        }
        let id = DefinitionId(self.hir.definitions.len() as u32);
        let nowhere = Span::new(setpoint_diagnostics::FileId(0), 0, 0);
        self.hir.definitions.push(Definition {
            name: key.into(),
            span: nowhere,
            name_span: nowhere,
            kind: DefinitionKind::Library(value),
            owner: Owner::Top(BodyId(0)),
            body: None,
        });
        self.library_variables.insert(key.to_owned(), id);
        id
    }

    /// Whether a name that is not found may be one of an import that failed: then nothing more is to be said.
    pub(super) fn may_have_failed(&self, frame: FrameId, name: &str) -> bool {
        let mut at = Some(frame);
        while let Some(id) = at {
            if self.failed_in(id, name) {
                return true;
            }
            at = self.frames[id.0].parent;
        }
        false
    }

    fn failed_in(&self, frame: FrameId, name: &str) -> bool {
        let frame = &self.frames[frame.0];
        let through = |alias: &Alias, name: &str| match alias {
            Alias::Failed => true,
            // A text with errors may lack what it should have.
            Alias::Module(top) | Alias::System(_, Some(top)) => {
                self.files[self.file_of(*top)].parsed.is_broken() || self.failed_in(*top, name)
            }
            // One whose class is not known.
            Alias::Include(include) => self.hir.include(*include).class == ClassId(u32::MAX),
            Alias::System(_, None) => false,
        };
        let by_alias = name.split_once('.').is_some_and(|(alias, rest)| {
            let alias = frame.aliases.get(alias);
            alias.is_some_and(|(alias, _)| through(alias, rest))
        });
        by_alias || frame.stars.iter().any(|(star, _)| through(star, name))
    }

    /// Whether a suggestion is still worth its search. Nobody reads on after so many errors.
    fn suggests(&self) -> bool {
        const SUGGESTIONS: usize = 50;
        self.errors.len() < SUGGESTIONS
    }

    /// Names that could have been meant for an unknown one.
    pub(super) fn similar_names(&self, frame: FrameId, space: Space) -> Vec<String> {
        if !self.suggests() {
            return Vec::new();
        }
        let mut names: Vec<String> = match space {
            Space::Variable => self.library.variables.keys().cloned().collect(),
            Space::Function => {
                let top = self.library.functions.module("").into_iter().flatten();
                top.map(|(name, _)| name.clone().into_owned()).collect()
            }
            Space::Class => Vec::new(),
        };
        let mut at = Some(frame);
        while let Some(id) = at {
            let frame = &self.frames[id.0];
            names.extend(frame.names(space).map(str::to_owned));
            for (alias, (target, _)) in &frame.aliases {
                match target {
                    Alias::Module(top) => {
                        let behind = self.frames[top.0].names(space);
                        names.extend(behind.map(|name| format!("{alias}.{name}")));
                    }
                    Alias::System(module, _) if space == Space::Function => {
                        let functions = self.library.functions.module(module).into_iter().flatten();
                        names.extend(functions.map(|(name, _)| format!("{alias}.{name}")));
                    }
                    Alias::Include(include) => {
                        let class = self.hir.include(*include).class;
                        let body = self
                            .class_sources
                            .get(class.index())
                            .and_then(ClassSource::resolved);
                        // The parameters are in the frame around the body's.
                        let around = body.and_then(|body| self.frames[body.0].parent);
                        for frame in body.into_iter().chain(around) {
                            let behind = self.frames[frame.0].names(space);
                            names.extend(behind.map(|name| format!("{alias}.{name}")));
                        }
                    }
                    Alias::System(..) | Alias::Failed => {}
                }
            }
            at = frame.parent;
        }
        names.sort_unstable();
        names
    }

    /// The import that would make an unknown dotted function known, if its module exists.
    pub(super) fn import_hint(&self, frame: FrameId, ast: &Ast, called: &Name) -> Option<Help> {
        let (alias, function) = called.text.rsplit_once('.')?;
        let module = self.library.functions.module_names().find(|module| {
            default_alias(module).is_ok_and(|a| a == alias)
                && self.library.functions.get(module, function).is_some()
        })?;
        let mut at = Some(frame);
        let mut is_taken = false;
        while let Some(id) = at {
            let frame = &self.frames[id.0];
            is_taken |= frame.aliases.contains_key(alias);
            let mut aliases = frame.aliases.iter();
            let known = aliases.find(
                |(_, (target, _))| matches!(target, Alias::System(imported, _) if **imported == *module),
            );
            if let Some((alias, _)) = known {
                let text = format!("it is imported as `{alias}`: `{alias}.{function}`");
                return Some(Help::from(text));
            }
            at = frame.parent;
        }
        if is_taken {
            let other = module.replace('/', "_");
            return Some(Help::from(format!(
                "write `import \"{module}\" as {other}` in this file, and `{other}.{function}` here"
            )));
        }
        Some(Help {
            text: format!("write `import \"{module}\"` in this file"),
            edit: Some(self.new_import(ast, called.span.file, module)),
        })
    }

    /// The edit that adds an import: before the first one, or where there is none at the top, below a comment about the whole file.
    fn new_import(&self, ast: &Ast, file: FileId, module: &str) -> Edit {
        let statements = ast.root.statements.iter().map(|id| ast.stmt(*id));
        let first = statements
            .into_iter()
            .find(|statement| matches!(statement.kind, StmtKind::Import(_)));
        let line = format!("import \"{module}\"\n");
        let (at, replacement) = match first {
            Some(import) => (import.span.start, line),
            None => {
                let text = &*self.sources.file(file).text;
                (below_head_comment(text), format!("{line}\n"))
            }
        };
        Edit {
            span: Span::new(file, at, at),
            replacement,
        }
    }
}

/// Where the statements of a text begin whose first lines are a comment that an empty line follows. Without such a comment at its start,
/// or below the line that names an interpreter.
fn below_head_comment(text: &str) -> u32 {
    let mut end = 0;
    let interpreter = text
        .split_inclusive('\n')
        .next()
        .filter(|line| line.starts_with("#!"));
    for line in text.split_inclusive('\n') {
        end += line.len();
        if line.trim().is_empty() {
            return end as u32;
        }
        if !line.starts_with('#') {
            break;
        }
    }
    interpreter.map_or(0, str::len) as u32
}

impl Frame {
    /// What this very block calls so.
    fn own(&self, space: Space, name: &str) -> Option<Meaning> {
        Some(match space {
            Space::Variable => Meaning::Variable(*self.variables.get(name)?),
            Space::Function => Meaning::Function(*self.functions.get(name)?),
            Space::Class => Meaning::Class(*self.classes.get(name)?),
        })
    }

    /// The names that this very block produces, in no order.
    pub(crate) fn names(&self, space: Space) -> Box<dyn Iterator<Item = &str> + '_> {
        match space {
            Space::Variable => Box::new(self.variables.keys().map(|name| &**name)),
            Space::Function => Box::new(self.functions.keys().map(|name| &**name)),
            Space::Class => Box::new(self.classes.keys().map(|name| &**name)),
        }
    }
}

/// Whether a name has more parts than any chain of aliases can have.
fn is_too_long(name: &str) -> bool {
    const PARTS: usize = 256;
    name.len() > PARTS && name.bytes().filter(|byte| *byte == b'.').count() > PARTS
}

fn prefixed(include: IncludeId, path: &[IncludeId]) -> Path {
    std::iter::once(include).chain(path.iter().copied()).collect()
}
