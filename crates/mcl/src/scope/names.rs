//! Looking names up, frame by frame outward, through aliases and `import … as *`.
//!
//! Dotted names are flat keys: `a.b.c` is what the alias `a` calls `b.c`, and where the nearest `a` has no such name, an outer
//! one may. What is found through an include carries the include in its path.

use setpoint_value::Value;

use super::modules::default_alias;
use super::resolve::{Alias, FoundFunction, Frame, FrameId, Resolver};
use crate::hir::{BodyId, ClassId, Definition, DefinitionId, DefinitionKind, IncludeId, Owner, Path};
use setpoint_diagnostics::Span;

impl Resolver<'_> {
    /// A variable by its (perhaps dotted) name.
    pub(super) fn find_variable(&mut self, frame: FrameId, name: &str) -> Option<(Path, DefinitionId)> {
        if is_too_long(name) {
            return None;
        }
        let mut at = Some(frame);
        while let Some(id) = at {
            if let Some(found) = self.variable_in(id, name) {
                return Some(found);
            }
            at = self.frames[id.0].parent;
        }
        self.library_variable(name).map(|id| (Path::default(), id))
    }

    fn variable_in(&mut self, frame: FrameId, name: &str) -> Option<(Path, DefinitionId)> {
        if let Some(found) = self.frames[frame.0].variables.get(name) {
            return Some((Path::default(), *found));
        }
        if let Some((alias, rest)) = name.split_once('.')
            && let Some(alias) = self.frames[frame.0].aliases.get(alias).cloned()
            && let Some(found) = self.variable_through(&alias, rest)
        {
            return Some(found);
        }
        let stars = self.frames[frame.0].stars.clone();
        stars
            .iter()
            .rev()
            .find_map(|star| self.variable_through(star, name))
    }

    fn variable_through(&mut self, alias: &Alias, name: &str) -> Option<(Path, DefinitionId)> {
        match alias {
            Alias::Module(top) => self.variable_in(*top, name),
            Alias::System(module, top) => {
                if let Some(found) = top.and_then(|top| self.variable_in(top, name)) {
                    return Some(found);
                }
                let text = self
                    .library
                    .functions
                    .variables(module)
                    .iter()
                    .find(|(n, _)| *n == name)?
                    .1;
                let key = format!("{module}.{name}");
                Some((Path::default(), self.library_definition(&key, Value::str(text))))
            }
            Alias::Include(include) => {
                let class = self.linked_class(*include)?;
                let inner = self.class_frame(class)?;
                let (path, found) = self.find_variable(inner, name)?;
                Some((prefixed(*include, &path), found))
            }
            Alias::Failed => None,
        }
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
        self.hir.definitions.push(Definition {
            name: key.into(),
            span: Span::new(setpoint_diagnostics::FileId(0), 0, 0),
            kind: DefinitionKind::Library(value),
            owner: Owner::Top(BodyId(0)),
            body: None,
        });
        self.library_variables.insert(key.to_owned(), id);
        id
    }

    /// A function by its (perhaps dotted) name.
    pub(super) fn find_function(&mut self, frame: FrameId, name: &str) -> Option<FoundFunction> {
        if is_too_long(name) {
            return None;
        }
        let mut at = Some(frame);
        while let Some(id) = at {
            if let Some(found) = self.function_in(id, name) {
                return Some(found);
            }
            at = self.frames[id.0].parent;
        }
        let spec = self.library.functions.get("", name)?;
        Some(FoundFunction::Library(spec.clone()))
    }

    fn function_in(&mut self, frame: FrameId, name: &str) -> Option<FoundFunction> {
        if let Some(found) = self.frames[frame.0].functions.get(name) {
            return Some(FoundFunction::Program(Path::default(), *found));
        }
        if let Some((alias, rest)) = name.split_once('.')
            && let Some(alias) = self.frames[frame.0].aliases.get(alias).cloned()
            && let Some(found) = self.function_through(&alias, rest)
        {
            return Some(found);
        }
        let stars = self.frames[frame.0].stars.clone();
        stars
            .iter()
            .rev()
            .find_map(|star| self.function_through(star, name))
    }

    fn function_through(&mut self, alias: &Alias, name: &str) -> Option<FoundFunction> {
        match alias {
            Alias::Module(top) => self.function_in(*top, name),
            Alias::System(module, top) => top.and_then(|top| self.function_in(top, name)).or_else(|| {
                self.library
                    .functions
                    .get(module, name)
                    .cloned()
                    .map(FoundFunction::Library)
            }),
            Alias::Include(include) => {
                let class = self.linked_class(*include)?;
                let inner = self.class_frame(class)?;
                Some(match self.find_function(inner, name)? {
                    FoundFunction::Program(path, id) => FoundFunction::Program(prefixed(*include, &path), id),
                    library @ FoundFunction::Library(_) => library,
                })
            }
            Alias::Failed => None,
        }
    }

    pub(super) fn find_class(&mut self, frame: FrameId, name: &str) -> Option<(Path, ClassId)> {
        if is_too_long(name) {
            return None;
        }
        let mut at = Some(frame);
        while let Some(id) = at {
            if let Some(found) = self.class_in(id, name) {
                return Some(found);
            }
            at = self.frames[id.0].parent;
        }
        None
    }

    fn class_in(&mut self, frame: FrameId, name: &str) -> Option<(Path, ClassId)> {
        if let Some(found) = self.frames[frame.0].classes.get(name) {
            return Some((Path::default(), *found));
        }
        if let Some((alias, rest)) = name.split_once('.')
            && let Some(alias) = self.frames[frame.0].aliases.get(alias).cloned()
            && let Some(found) = self.class_through(&alias, rest)
        {
            return Some(found);
        }
        let stars = self.frames[frame.0].stars.clone();
        stars.iter().rev().find_map(|star| self.class_through(star, name))
    }

    fn class_through(&mut self, alias: &Alias, name: &str) -> Option<(Path, ClassId)> {
        match alias {
            Alias::Module(top) | Alias::System(_, Some(top)) => self.class_in(*top, name),
            Alias::System(_, None) | Alias::Failed => None,
            Alias::Include(include) => {
                let class = self.linked_class(*include)?;
                let inner = self.class_frame(class)?;
                let (path, class) = self.find_class(inner, name)?;
                Some((prefixed(*include, &path), class))
            }
        }
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
            Alias::Module(top) | Alias::System(_, Some(top)) => self.failed_in(*top, name),
            // One whose class is not known.
            Alias::Include(include) => self.hir.include(*include).class == ClassId(u32::MAX),
            Alias::System(_, None) => false,
        };
        let by_alias = name
            .split_once('.')
            .is_some_and(|(alias, rest)| frame.aliases.get(alias).is_some_and(|alias| through(alias, rest)));
        by_alias || frame.stars.iter().any(|star| through(star, name))
    }

    /// Whether a suggestion is still worth its search. Nobody reads on after so many errors.
    fn suggests(&self) -> bool {
        const SUGGESTIONS: usize = 50;
        self.errors.len() < SUGGESTIONS
    }

    /// Names that could have been meant for an unknown variable.
    pub(super) fn variable_names(&self, frame: FrameId) -> Vec<String> {
        if !self.suggests() {
            return Vec::new();
        }
        let mut names: Vec<String> = self.library.variables.keys().cloned().collect();
        self.outward(frame, |f| {
            names.extend(f.variables.keys().map(ToString::to_string));
            for (alias, target) in &f.aliases {
                if let Alias::Module(top) = target {
                    names.extend(
                        self.frames[top.0]
                            .variables
                            .keys()
                            .map(|v| format!("{alias}.{v}")),
                    );
                }
            }
        });
        names.sort_unstable();
        names
    }

    /// Names that could have been meant for an unknown function.
    pub(super) fn function_names(&self, frame: FrameId) -> Vec<String> {
        if !self.suggests() {
            return Vec::new();
        }
        let top = self.library.functions.module("");
        let mut names: Vec<String> = top
            .into_iter()
            .flatten()
            .map(|(name, _)| name.clone().into_owned())
            .collect();
        self.outward(frame, |f| {
            names.extend(f.functions.keys().map(ToString::to_string));
            for (alias, target) in &f.aliases {
                match target {
                    Alias::Module(top) => {
                        names.extend(
                            self.frames[top.0]
                                .functions
                                .keys()
                                .map(|v| format!("{alias}.{v}")),
                        );
                    }
                    Alias::System(module, _) => {
                        let functions = self.library.functions.module(module).into_iter().flatten();
                        names.extend(functions.map(|(name, _)| format!("{alias}.{name}")));
                    }
                    Alias::Include(_) | Alias::Failed => {}
                }
            }
        });
        names.sort_unstable();
        names
    }

    pub(super) fn class_names(&self, frame: FrameId) -> Vec<String> {
        if !self.suggests() {
            return Vec::new();
        }
        let mut names: Vec<String> = Vec::new();
        self.outward(frame, |f| {
            names.extend(f.classes.keys().map(ToString::to_string));
            for (alias, target) in &f.aliases {
                if let Alias::Module(top) = target {
                    names.extend(self.frames[top.0].classes.keys().map(|c| format!("{alias}.{c}")));
                }
            }
        });
        names.sort_unstable();
        names
    }

    fn outward(&self, frame: FrameId, mut visit: impl FnMut(&Frame)) {
        let mut at = Some(frame);
        while let Some(id) = at {
            visit(&self.frames[id.0]);
            at = self.frames[id.0].parent;
        }
    }

    /// The import that would make an unknown dotted function known, if its module exists.
    pub(super) fn import_hint(&self, name: &str) -> Option<String> {
        let (alias, function) = name.rsplit_once('.')?;
        let module = self.library.functions.module_names().find(|module| {
            default_alias(module).is_ok_and(|a| a == alias)
                && self.library.functions.get(module, function).is_some()
        })?;
        Some(format!("write `import \"{module}\"` in this file"))
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
