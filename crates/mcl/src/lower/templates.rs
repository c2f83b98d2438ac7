//! Templates under construction: slots, captures, exports.

use rustc_hash::FxHashMap;
use setpoint_diagnostics::Span;
use setpoint_flow::{Block, Operation, Slot, Template, TemplateId, TemplateNode};
use setpoint_graph::ResourceStatement;
use setpoint_value::Type;
use std::sync::Arc;

use crate::stack::with_room;
use crate::types::missing;

/// A template under construction; also its number in the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct BuilderId(usize);

impl BuilderId {
    pub(super) fn template(self) -> TemplateId {
        TemplateId(self.0 as u32)
    }
}

/// While inputs may still be added, a slot with this bit is a node, without it an input.
const NODE: u32 = 1 << 31;

/// All templates of a program.
#[derive(Debug, Default)]
pub(super) struct Builders {
    list: Vec<Builder>,
}

#[derive(Debug)]
struct Builder {
    name: Arc<str>,
    /// The template around it.
    parent: Option<BuilderId>,
    /// Whether it is the body of a named function. Many calls use it, so nothing is around it, and it takes what it needs from
    /// wherever that is.
    is_function: bool,
    /// Whether it is one, or inside of one.
    is_in_function: bool,
    parameters: u32,
    /// What is known of each parameter: what it is, and where it is written.
    described: Vec<(Type, Span)>,
    /// Slots of other templates that are inputs here, after the parameters: of the parent, if there is one.
    captures: Vec<(BuilderId, Slot)>,
    captured: FxHashMap<(BuilderId, Slot), Slot>,
    /// Slots of any template that were reached from here before, and what they are here.
    reached: FxHashMap<(BuilderId, Slot), Slot>,
    nodes: Vec<TemplateNode>,
    result: Option<Slot>,
    exports: Vec<Slot>,
    exported: FxHashMap<Slot, u32>,
    /// Where the instance of it is, for included classes.
    place: Option<(BuilderId, Slot)>,
    /// Nodes of this template that stand for exports of instances in it.
    imported: FxHashMap<(Slot, u32), Slot>,
}

impl Builders {
    /// The template of the program, with room for all nodes that may go there. What is not used of it is never touched, and so costs
    /// nothing; growing would copy.
    pub(super) fn open_program(&mut self, nodes: usize) -> BuilderId {
        let program = self.open("the program", None, 0);
        self.list[program.0].nodes = Vec::with_capacity(nodes);
        program
    }

    pub(super) fn open(&mut self, name: &str, parent: Option<BuilderId>, parameters: u32) -> BuilderId {
        let is_in_function = parent.is_some_and(|parent| self.list[parent.0].is_in_function);
        self.list.push(Builder {
            name: name.into(),
            parent,
            is_function: false,
            is_in_function,
            parameters,
            described: Vec::new(),
            captures: Vec::new(),
            captured: FxHashMap::default(),
            reached: FxHashMap::default(),
            nodes: Vec::new(),
            result: None,
            exports: Vec::new(),
            exported: FxHashMap::default(),
            place: None,
            imported: FxHashMap::default(),
        });
        BuilderId(self.list.len() - 1)
    }

    /// The body of a named function.
    pub(super) fn open_function(&mut self, name: &str, parameters: u32) -> BuilderId {
        let builder = self.open(name, None, parameters);
        self.list[builder.0].is_function = true;
        self.list[builder.0].is_in_function = true;
        builder
    }

    pub(super) fn push(&mut self, to: BuilderId, operation: Operation, ty: Type, span: Span) -> Slot {
        let nodes = &mut self.list[to.0].nodes;
        nodes.push(TemplateNode { operation, ty, span });
        Slot(NODE | (nodes.len() as u32 - 1))
    }

    /// A parameter of a template.
    pub(super) fn parameter(index: u32) -> Slot {
        Slot(index)
    }

    /// Says what the parameters of a template are.
    pub(super) fn describe_parameters(&mut self, of: BuilderId, described: Vec<(Type, Span)>) {
        self.list[of.0].described = described;
    }

    pub(super) fn set_result(&mut self, of: BuilderId, slot: Slot) {
        self.list[of.0].result = Some(slot);
    }

    /// What a template captures of the one around it. Nothing may be captured afterwards.
    pub(super) fn close(&mut self, builder: BuilderId) -> Vec<Slot> {
        self.list[builder.0]
            .captures
            .iter()
            .map(|(_, slot)| *slot)
            .collect()
    }

    /// What the body of a function captures, as seen from a call in `at`.
    pub(super) fn captures_of_call(&mut self, function: BuilderId, at: BuilderId) -> Vec<Slot> {
        let captures = self.list[function.0].captures.clone();
        captures
            .into_iter()
            .map(|(home, slot)| self.access(home, slot, at))
            .collect()
    }

    /// Closes a template into a block.
    pub(super) fn block(&mut self, builder: BuilderId) -> Block {
        Block {
            template: builder.template(),
            captures: self.close(builder),
        }
    }

    /// Says where the instance of a closed template is.
    pub(super) fn placed(&mut self, builder: BuilderId, parent: BuilderId, slot: Slot) {
        self.list[builder.0].place = Some((parent, slot));
    }

    /// A slot of one template in another one: captured on the way inward, exported on the way out of an included class.
    pub(super) fn access(&mut self, home: BuilderId, slot: Slot, to: BuilderId) -> Slot {
        if home == to {
            return slot;
        }
        if let Some(found) = self.list[to.0].reached.get(&(home, slot)) {
            return *found;
        }
        let found = self.reach(home, slot, to);
        self.list[to.0].reached.insert((home, slot), found);
        found
    }

    fn reach(&mut self, home: BuilderId, slot: Slot, to: BuilderId) -> Slot {
        if self.list[to.0].is_function {
            return self.capture(to, home, slot);
        }
        if (self.list[to.0].is_in_function || self.is_around(home, to))
            && let Some(parent) = self.list[to.0].parent
        {
            let outer = with_room(|| self.access(home, slot, parent));
            return self.capture(to, parent, outer);
        }
        let Some((parent, instance)) = self.list[home.0].place else {
            missing(format_args!(
                "{slot:?} is used outside of its template and is not exported"
            ));
        };
        let export = self.export(home, slot);
        let here = match self.list[parent.0].imported.get(&(instance, export)) {
            Some(found) => *found,
            None => {
                let (ty, span) = self.describe(home, slot);
                let node = self.push(parent, Operation::Exported { instance, export }, ty, span);
                self.list[parent.0].imported.insert((instance, export), node);
                node
            }
        };
        with_room(|| self.access(parent, here, to))
    }

    fn is_around(&self, outer: BuilderId, inner: BuilderId) -> bool {
        let mut at = Some(inner);
        while let Some(id) = at {
            if id == outer {
                return true;
            }
            at = self.list[id.0].parent;
        }
        false
    }

    fn capture(&mut self, to: BuilderId, home: BuilderId, outer: Slot) -> Slot {
        let builder = &mut self.list[to.0];
        if let Some(found) = builder.captured.get(&(home, outer)) {
            return *found;
        }
        let slot = Slot(builder.parameters + builder.captures.len() as u32);
        builder.captures.push((home, outer));
        builder.captured.insert((home, outer), slot);
        slot
    }

    fn export(&mut self, of: BuilderId, slot: Slot) -> u32 {
        let builder = &mut self.list[of.0];
        if let Some(found) = builder.exported.get(&slot) {
            return *found;
        }
        builder.exports.push(slot);
        let export = builder.exports.len() as u32 - 1;
        builder.exported.insert(slot, export);
        export
    }

    fn describe(&self, of: BuilderId, slot: Slot) -> (Type, Span) {
        let builder = &self.list[of.0];
        if slot.0 & NODE != 0 {
            let node = &builder.nodes[(slot.0 & !NODE) as usize];
            return (node.ty.clone(), node.span);
        }
        let captured = (slot.0 as usize).checked_sub(builder.parameters as usize);
        match captured.and_then(|index| builder.captures.get(index)) {
            Some((home, outer)) => with_room(|| self.describe(*home, *outer)),
            // A class inside of a loop or a function may export what it takes from there.
            None => match builder.described.get(slot.0 as usize) {
                Some(described) => described.clone(),
                None => missing(format_args!("the parameter {slot:?} is not described")),
            },
        }
    }

    /// The finished templates, in the order of their numbers.
    pub(super) fn finish(self) -> Vec<Template> {
        self.list.into_iter().map(Builder::finish).collect()
    }
}

impl Builder {
    fn finish(self) -> Template {
        let inputs = self.parameters + self.captures.len() as u32;
        let place = move |slot: Slot| {
            if slot.0 & NODE == 0 {
                slot
            } else {
                Slot(inputs + (slot.0 & !NODE))
            }
        };
        let nodes = self.nodes.into_iter().map(|node| TemplateNode {
            operation: renumbered(node.operation, &place),
            ty: node.ty,
            span: node.span,
        });
        Template {
            name: self.name,
            inputs,
            nodes: nodes.collect(),
            result: self.result.map(place),
            exports: self.exports.into_iter().map(place).collect(),
        }
    }
}

fn renumbered(operation: Operation, place: &impl Fn(Slot) -> Slot) -> Operation {
    let all = |slots: Vec<Slot>| slots.into_iter().map(place).collect::<Vec<_>>();
    let block = |block: Block| Block {
        template: block.template,
        captures: all(block.captures),
    };
    match operation {
        Operation::Constant(value) => Operation::Constant(value),
        Operation::List(slots) => Operation::List(all(slots)),
        Operation::Map(pairs) => {
            Operation::Map(pairs.into_iter().map(|(k, v)| (place(k), place(v))).collect())
        }
        Operation::Struct(slots) => Operation::Struct(all(slots)),
        Operation::Field { of, index } => Operation::Field { of: place(of), index },
        Operation::Call {
            function,
            arguments,
            module_directory,
        } => Operation::Call {
            function,
            arguments: all(arguments),
            module_directory,
        },
        Operation::Closure(inner) => Operation::Closure(block(inner)),
        Operation::Apply { function, arguments } => Operation::Apply {
            function: place(function),
            arguments: all(arguments),
        },
        Operation::Instance { template, arguments } => Operation::Instance {
            template,
            arguments: all(arguments),
        },
        Operation::Exported { instance, export } => Operation::Exported {
            instance: place(instance),
            export,
        },
        Operation::If {
            condition,
            then,
            otherwise,
        } => Operation::If {
            condition: place(condition),
            then: block(then),
            otherwise: block(otherwise),
        },
        Operation::Except { value, fallback } => Operation::Except {
            value: place(value),
            fallback: block(fallback),
        },
        Operation::IfStatement {
            condition,
            then,
            otherwise,
            head,
        } => Operation::IfStatement {
            condition: place(condition),
            then: then.map(block),
            otherwise: otherwise.map(block),
            head,
        },
        Operation::For { list, body, head } => Operation::For {
            list: place(list),
            body: block(body),
            head,
        },
        Operation::ForKv { map, body, head } => Operation::ForKv {
            map: place(map),
            body: block(body),
            head,
        },
        Operation::Resource(mut statement) => {
            renumber_resource(Arc::make_mut(&mut statement), place);
            Operation::Resource(statement)
        }
        Operation::Collect {
            mut statement,
            exports,
        } => {
            renumber_resource(Arc::make_mut(&mut statement), place);
            Operation::Collect {
                statement,
                exports: place(exports),
            }
        }
        Operation::Edge(mut statement) => {
            for endpoint in &mut Arc::make_mut(&mut statement).endpoints {
                endpoint.name = place(endpoint.name);
            }
            Operation::Edge(statement)
        }
        Operation::Panic { condition, message } => Operation::Panic {
            condition: place(condition),
            message: message.map(place),
        },
    }
}

fn renumber_resource(statement: &mut ResourceStatement<Slot>, place: &impl Fn(Slot) -> Slot) {
    statement.name = place(statement.name);
    for item in &mut statement.fields {
        item.value = place(item.value);
        item.condition = item.condition.map(place);
    }
    for item in &mut statement.meta {
        item.value = place(item.value);
        item.condition = item.condition.map(place);
    }
    for item in &mut statement.edges {
        item.endpoint.name = place(item.endpoint.name);
        item.condition = item.condition.map(place);
    }
}
