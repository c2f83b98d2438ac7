//! Names that are known at a place, and those behind an alias: what completion offers.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;
use setpoint_diagnostics::FileId;
use setpoint_graph::Library;
use setpoint_value::Value;

use super::Analysis;
use crate::scope::{Alias, Frame, FrameId, Space, Target};

/// A name that is known somewhere.
#[derive(Debug, Clone, PartialEq)]
pub struct Visible {
    /// As it is written there, without a dollar.
    pub name: String,
    /// What it means; none for a variable of the library.
    pub target: Option<Target>,
    /// The value of a variable of the library.
    pub value: Option<Value>,
}

impl Analysis {
    /// The names of a namespace that are known at a place, by name; what an inner block hides is left out. Behind `qualifier`, as in
    /// `fmt.` or `a.b.`, those of what that alias stands for; without one also the aliases themselves.
    #[must_use]
    pub fn visible(
        &self,
        file: FileId,
        offset: u32,
        space: Space,
        qualifier: Option<&str>,
        library: &Library,
    ) -> Vec<Visible> {
        let mut found = Names::default();
        let frames = self.frames_at(file, offset);
        match qualifier {
            None => {
                for frame in frames {
                    self.names_of(frame, space, library, true, &mut found);
                }
                library_names(space, "", library, &mut found);
            }
            Some(qualifier) => {
                for frame in frames {
                    self.behind(frame, qualifier, space, library, &mut found);
                }
                library_names(space, &format!("{qualifier}."), library, &mut found);
            }
        }
        found.0.into_values().collect()
    }

    /// The blocks around a place, innermost first.
    fn frames_at(&self, file: FileId, offset: u32) -> Vec<FrameId> {
        let holds = |frame: &Frame| {
            frame.extent.file == file && frame.extent.start <= offset && offset <= frame.extent.end
        };
        let mut at = self
            .frames
            .iter()
            .enumerate()
            .filter(|(_, frame)| holds(frame))
            // Of two blocks of one size the later is inside of the other.
            .min_by_key(|(index, frame)| (frame.extent.end - frame.extent.start, std::cmp::Reverse(*index)))
            .map(|(index, _)| FrameId(index));
        let mut around = Vec::new();
        while let Some(id) = at {
            around.push(id);
            at = self.frames[id.0].parent;
        }
        around
    }

    /// What a block names, with what its `import … as *` give.
    fn names_of(&self, id: FrameId, space: Space, library: &Library, aliases: bool, found: &mut Names) {
        let mut open = vec![id];
        let mut seen = FxHashSet::default();
        while let Some(id) = open.pop() {
            if !seen.insert(id.0) {
                continue;
            }
            let frame = &self.frames[id.0];
            let mut names: Vec<&str> = frame.names(space).collect();
            names.sort_unstable();
            for name in names {
                let target = match space {
                    Space::Variable => frame.variables.get(name).map(|id| Target::Variable(*id)),
                    Space::Function => frame.functions.get(name).map(|id| Target::Function(*id)),
                    Space::Class => frame.classes.get(name).map(|id| Target::Class(*id)),
                };
                found.offer(name, target, None);
            }
            if aliases {
                for (name, (_, id)) in &frame.aliases {
                    found.offer(name, Some(Target::Alias(*id)), None);
                }
            }
            for (star, _) in frame.stars.iter().rev() {
                match star {
                    Alias::Module(top) => open.push(*top),
                    Alias::System(module, top) => {
                        open.extend(top);
                        module_names(space, module, library, found);
                    }
                    Alias::Include(_) | Alias::Failed => {}
                }
            }
        }
    }

    /// What stands behind a dotted alias that a block has.
    fn behind(&self, frame: FrameId, qualifier: &str, space: Space, library: &Library, found: &mut Names) {
        let (alias, rest) = match qualifier.split_once('.') {
            Some((alias, rest)) => (alias, Some(rest)),
            None => (qualifier, None),
        };
        let Some((alias, _)) = self.frames[frame.0].aliases.get(alias) else {
            return;
        };
        let inside: Vec<FrameId> = match alias {
            Alias::Module(top) => vec![*top],
            Alias::System(module, top) => {
                if rest.is_none() {
                    module_names(space, module, library, found);
                }
                top.iter().copied().collect()
            }
            Alias::Include(include) => {
                let class = self.hir.include(*include).class;
                let inner = self.class_frames.get(class.index()).copied().flatten();
                // Its parameters are names of it too.
                let parameters = inner.and_then(|inner| self.frames[inner.0].parent);
                inner.into_iter().chain(parameters).collect()
            }
            Alias::Failed => Vec::new(),
        };
        for frame in inside {
            match rest {
                None => self.names_of(frame, space, library, true, found),
                Some(rest) => self.behind(frame, rest, space, library, found),
            }
        }
    }
}

/// Names by name; the first that is offered hides the others.
#[derive(Default)]
struct Names(BTreeMap<String, Visible>);

impl Names {
    fn offer(&mut self, name: &str, target: Option<Target>, value: Option<Value>) {
        if !self.0.contains_key(name) {
            let name = name.to_owned();
            self.0.insert(name.clone(), Visible { name, target, value });
        }
    }
}

/// Names of every program, behind a prefix that is left out.
fn library_names(space: Space, prefix: &str, library: &Library, found: &mut Names) {
    match space {
        Space::Variable => {
            let from = library.variables.range(prefix.to_owned()..);
            for (name, value) in from.take_while(|(name, _)| name.starts_with(prefix)) {
                found.offer(&name[prefix.len()..], None, Some(value.clone()));
            }
        }
        Space::Function if prefix.is_empty() => module_names(space, "", library, found),
        Space::Function | Space::Class => {}
    }
}

fn module_names(space: Space, module: &str, library: &Library, found: &mut Names) {
    match space {
        Space::Variable => {
            for (name, text) in library.functions.variables(module) {
                found.offer(name, None, Some(Value::str(*text)));
            }
        }
        Space::Function => {
            for (name, function) in library.functions.module(module).into_iter().flatten() {
                found.offer(name, Some(Target::LibraryFunction(function.clone())), None);
            }
        }
        Space::Class => {}
    }
}
