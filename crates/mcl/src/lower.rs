//! From typed programs to dataflow templates.
//!
//! Each body that can exist more than once, or not at all, becomes a template: branches, loop bodies, lambdas, included classes,
//! called functions. A definition is lowered where it lives, at its first use, so that it is one node however often
//! it is used; a template that needs a node of its surroundings captures it, and one that needs a node inside an included
//! class asks the include's instance to export it.

mod codes;
mod expressions;
mod order;
mod size;
mod statements;
mod templates;

pub(crate) use codes::CODES;

use rustc_hash::FxHashMap;
use setpoint_diagnostics::Diagnostics;
use setpoint_flow::{Operation, Program, Slot, TemplateId};
use setpoint_graph::Library;
use setpoint_value::{FunctionRef, Type};

use crate::hir::{BodyId, DefinitionId, DefinitionKind, Hir, IncludeId, Owner};
use crate::types::{InstanceId, Typed};
use order::Need;
use templates::{BuilderId, Builders};

/// Lowers a program without type errors.
pub(crate) fn lower(hir: &Hir, typed: &Typed, library: &Library, diagnostics: &mut Diagnostics) -> Program {
    let mut builders = Builders::default();
    let entry = builders.open("the program", None, 0);
    // Room for all that may go there. What is not used of it is never touched, and so costs nothing; growing would copy.
    builders.reserve(
        entry,
        hir.exprs.len() + hir.bodies.first().map_or(0, |body| body.statements.len()),
    );
    let mut lowering = Lowering {
        hir,
        typed,
        library,
        builders,
        slots: FxHashMap::default(),
        bodies: FxHashMap::default(),
        functions: FxHashMap::default(),
        adapted: FxHashMap::default(),
        entry,
        diagnostics,
    };
    if let Some(top) = typed.tops.get(&BodyId(0)) {
        lowering.body_statements(entry, *top, BodyId(0));
    }
    let templates = lowering.builders.finish();
    diagnostics.extend(size::too_large(&templates, TemplateId(0)));
    Program {
        templates,
        entry: TemplateId(0),
    }
}

struct Lowering<'a> {
    hir: &'a Hir,
    typed: &'a Typed,
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
    diagnostics: &'a mut Diagnostics,
}

impl Lowering<'_> {
    /// The template that the statements of a body belong to. The tops of files all live in the entry.
    fn home(&mut self, instance: InstanceId, body: BodyId) -> BuilderId {
        if let Some(found) = self.bodies.get(&(instance, body)) {
            return *found;
        }
        if let Some((site, include)) = self.typed.instance(instance).site {
            self.ensure_include(site, include);
            if let Some(found) = self.bodies.get(&(instance, body)) {
                return *found;
            }
        }
        self.entry
    }

    /// The instance that a path leads to, with all includes on the way lowered.
    fn through(&mut self, from: InstanceId, path: &[IncludeId]) -> InstanceId {
        let mut at = from;
        for include in path {
            let holder = self
                .typed
                .outward(at, self.hir.include(*include).owner)
                .unwrap_or(at);
            self.ensure_include(holder, *include);
            at = self
                .typed
                .instance(holder)
                .includes
                .get(include)
                .copied()
                .unwrap_or(holder);
        }
        at
    }

    /// The slot of a definition in `to`.
    fn definition(&mut self, from: InstanceId, path: &[IncludeId], id: DefinitionId, to: BuilderId) -> Slot {
        let definition = self.hir.definition(id);
        let reached = self.through(from, path);
        if let DefinitionKind::Library(value) = &definition.kind {
            return self.builders.push(
                to,
                Operation::Constant(value.clone()),
                value.ty(),
                definition.span,
            );
        }
        let holder = self.typed.outward(reached, definition.owner).unwrap_or(reached);
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
                let argument = self.typed.instance(holder).site.and_then(|(site, include)| {
                    let include = self.hir.include(include);
                    include
                        .arguments
                        .get(*index)
                        .map(|argument| (site, include.body, *argument))
                });
                match argument {
                    Some((site, body, argument)) => {
                        let home = self.home(site, body);
                        (home, self.expr(home, site, argument))
                    }
                    None => (self.entry, self.nothing(id)),
                }
            }
            // Parameters and loop variables are entered with their body, before anything in it is lowered.
            DefinitionKind::Parameter { .. }
            | DefinitionKind::LoopKey
            | DefinitionKind::LoopValue
            | DefinitionKind::Library(_) => (self.entry, self.nothing(id)),
        };
        self.slots.insert((holder, id), found);
        found
    }

    /// Stands for a definition that cannot be reached; inference and resolution exclude it.
    fn nothing(&mut self, id: DefinitionId) -> Slot {
        debug_assert!(
            false,
            "`${}` is reachable from its uses",
            self.hir.definition(id).name
        );
        let value = setpoint_value::Value::Null(Type::Dynamic);
        self.builders.push(
            self.entry,
            Operation::Constant(value),
            Type::Dynamic,
            self.hir.definition(id).span,
        )
    }

    /// Lowers an include, once: by its statement, or by the first use of its alias.
    fn ensure_include(&mut self, holder: InstanceId, id: IncludeId) {
        let include = self.hir.include(id);
        let Some(instance) = self.typed.instance(holder).includes.get(&id).copied() else {
            return;
        };
        let class = self.hir.class(include.class);
        let Some(body) = class.body else { return };
        if self.bodies.contains_key(&(instance, body)) {
            return;
        }
        self.through(holder, &include.path);
        let parent = self.home(holder, include.body);
        let builder = self
            .builders
            .open(&format!("the class `{}`", class.name), Some(parent), 0);
        self.bodies.insert((instance, body), builder);
        self.body_statements(builder, instance, body);
        // Whatever is used of it from outside is lowered now, so that nothing new is captured once the instance is there.
        let mut used: Vec<DefinitionId> = self
            .typed
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
