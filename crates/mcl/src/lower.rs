//! From typed programs to dataflow templates.
//!
//! Each body that can exist more than once, or not at all, becomes a template: branches, loop bodies, lambdas, included classes,
//! called functions. A definition is lowered where it lives, at its first use, so that it is one node however often
//! it is used; a template that needs a node of its surroundings captures it, and one that needs a node inside an included
//! class asks the include's instance to export it.

mod expressions;
mod order;
mod size;
mod statements;
mod templates;

pub(crate) use size::too_large;

use rustc_hash::FxHashMap;
use setpoint_flow::{Operation, Program, Slot, TemplateId};
use setpoint_graph::Library;
use setpoint_value::{FunctionRef, Type};

use crate::Mcl;
use crate::hir::{BodyId, DefinitionId, DefinitionKind, Hir, IncludeId, Owner};
use crate::stack::with_room;
use crate::types::{Argument, InstanceId, TypedProgram, missing};
use order::Need;
use templates::{BuilderId, Builders};

/// Lowers a program.
pub(crate) fn lower(program: TypedProgram<'_>, library: &Library) -> Program {
    let hir = program.hir();
    let mut builders = Builders::default();
    let entry = builders.open_program(hir.exprs.len());
    let mut lowering = Lowering {
        hir,
        program,
        library,
        builders,
        slots: FxHashMap::default(),
        bodies: FxHashMap::default(),
        functions: FxHashMap::default(),
        adapted: FxHashMap::default(),
        entry,
    };
    if let Some(top) = program.entry() {
        lowering.body_statements(entry, top, BodyId(0));
    }
    Program {
        templates: lowering.builders.finish(),
        entry: TemplateId(0),
        language: &Mcl,
    }
}

struct Lowering<'a> {
    hir: &'a Hir,
    program: TypedProgram<'a>,
    library: &'a Library,
    builders: Builders,
    /// Where definitions are, once they are lowered.
    slots: FxHashMap<(InstanceId, DefinitionId), (BuilderId, Slot)>,
    /// The templates of bodies.
    bodies: FxHashMap<(InstanceId, BodyId), BuilderId>,
    /// The templates of named functions.
    functions: FxHashMap<InstanceId, BuilderId>,
    /// What is called in place of functions that take part by conversion.
    adapted: FxHashMap<FunctionRef, FunctionRef>,
    entry: BuilderId,
}

impl Lowering<'_> {
    /// The template that the statements of a body belong to. The tops of files all live in the entry.
    fn home(&mut self, instance: InstanceId, body: BodyId) -> BuilderId {
        if let Some(found) = self.bodies.get(&(instance, body)) {
            return *found;
        }
        let Some((site, include)) = self.program.instance(instance).site else {
            return self.entry;
        };
        self.ensure_include(site, include);
        match self.bodies.get(&(instance, body)) {
            Some(found) => *found,
            None => missing(format_args!("{body:?} is not in the class of {instance:?}")),
        }
    }

    /// The instance that a path leads to and in which `owner`'s things are, with all includes on the way lowered.
    fn follow(&mut self, from: InstanceId, path: &[IncludeId], owner: Owner) -> InstanceId {
        let program = self.program;
        program.follow(from, path, owner, |holder, include| {
            self.ensure_include(holder, include);
        })
    }

    /// The slot of a definition in `to`.
    fn definition(&mut self, from: InstanceId, path: &[IncludeId], id: DefinitionId, to: BuilderId) -> Slot {
        let definition = self.hir.definition(id);
        if let DefinitionKind::Library(value) = &definition.kind {
            return self.builders.push(
                to,
                Operation::Constant(value.clone()),
                value.ty(),
                definition.span,
            );
        }
        let holder = self.follow(from, path, definition.owner);
        if let Some((home, slot)) = self.slots.get(&(holder, id)).copied() {
            return self.builders.access(home, slot, to);
        }
        self.lower_needs(Need::Definition(holder, id));
        let (home, slot) = self.new_definition(holder, id);
        self.builders.access(home, slot, to)
    }

    /// Lowers a definition, what it needs being lowered. Answers where it is.
    fn new_definition(&mut self, holder: InstanceId, id: DefinitionId) -> (BuilderId, Slot) {
        let definition = self.hir.definition(id);
        if let Some(found) = self.slots.get(&(holder, id)) {
            return *found;
        }
        let found = match &definition.kind {
            DefinitionKind::Bind { value, .. } => {
                let home = definition.body.map_or(self.entry, |body| self.home(holder, body));
                (home, self.expr(home, holder, *value))
            }
            DefinitionKind::ClassParameter { index, .. } => {
                let Argument { site, body, value } = self.program.argument(holder, *index);
                let home = self.home(site, body);
                (home, self.expr(home, site, value))
            }
            // Parameters and loop variables are entered with their body, before anything in it is lowered.
            DefinitionKind::Parameter { .. }
            | DefinitionKind::LoopKey
            | DefinitionKind::LoopValue
            | DefinitionKind::Library(_) => {
                missing(format_args!("`${}` is used outside of its body", definition.name))
            }
        };
        self.slots.insert((holder, id), found);
        found
    }

    /// Lowers an include, once: by its statement, or by the first use of its alias.
    fn ensure_include(&mut self, holder: InstanceId, id: IncludeId) {
        let include = self.hir.include(id);
        let instance = self.program.included(holder, id);
        let class = self.hir.class(include.class);
        let Some(body) = class.body else {
            missing(format_args!("the class `{}` has no body", class.name));
        };
        if self.bodies.contains_key(&(instance, body)) {
            return;
        }
        let parent = with_room(|| {
            self.follow(holder, &include.path, class.owner);
            self.home(holder, include.body)
        });
        let builder = self
            .builders
            .open(&format!("the class `{}`", class.name), Some(parent), 0);
        self.bodies.insert((instance, body), builder);
        self.body_statements(builder, instance, body);
        // Whatever is used of it from outside is lowered now, so that nothing new is captured once the instance is there.
        let mut used: Vec<DefinitionId> = self
            .program
            .instance(instance)
            .definitions
            .keys()
            .copied()
            .collect();
        used.sort_unstable();
        for id in used {
            let definition = self.hir.definition(id);
            let own = definition.body == Some(body) && definition.owner == Owner::Class(include.class);
            match definition.kind {
                DefinitionKind::Bind { .. } if own => self.definition(instance, &[], id, builder),
                // Functions of the class may be the only ones to use it, and be called from outside.
                DefinitionKind::ClassParameter { .. } if own => self.definition(instance, &[], id, parent),
                _ => continue,
            };
        }
        let arguments = self.builders.close(builder);
        let operation = Operation::Instance {
            template: builder.template(),
            arguments,
        };
        let slot = self.builders.push(parent, operation, Type::Dynamic, include.span);
        self.builders.placed(builder, parent, slot);
    }
}
