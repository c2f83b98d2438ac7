//! Programs by hand: templates from operations, with names for the nodes that tests talk about.

use std::collections::BTreeMap;
use std::sync::Arc;

use setpoint_diagnostics::{FileId, Span};
use setpoint_flow::{Block, Operation, Program, Slot, Template, TemplateId, TemplateNode};
use setpoint_graph::{EdgeEndpoint, EdgeStatement, FieldItem, ResourceStatement};
use setpoint_value::{FunctionSpec, Type, Value};

use crate::library;
use crate::plain::PLAIN;

/// A program in the making.
#[derive(Default)]
pub(crate) struct ProgramBuilder {
    templates: Vec<Template>,
    /// Names of nodes that have one.
    pub(crate) names: BTreeMap<(TemplateId, Slot), String>,
    nodes: u32,
}

/// A template in the making.
pub(crate) struct TemplateBuilder {
    name: String,
    inputs: u32,
    nodes: Vec<TemplateNode>,
    names: BTreeMap<Slot, String>,
    /// The place of the first node in the pretended text.
    start: u32,
    pub(crate) exports: Vec<Slot>,
}

/// What a test gets to know of a finished program.
pub(crate) struct Built {
    pub(crate) program: Arc<Program>,
    pub(crate) names: BTreeMap<(TemplateId, Slot), String>,
}

impl Built {
    /// The span of the node of this name.
    pub(crate) fn span(&self, name: &str) -> Span {
        let (template, slot) = self.names.iter().find(|(_, n)| *n == name).unwrap().0;
        let template = self.program.template(*template);
        template.nodes[(slot.0 - template.inputs) as usize].span
    }
}

impl ProgramBuilder {
    pub(crate) fn new() -> ProgramBuilder {
        ProgramBuilder::default()
    }

    /// Begins a template with so many inputs; they are the slots from 0 on.
    pub(crate) fn template(&self, name: &str, inputs: u32) -> TemplateBuilder {
        TemplateBuilder {
            name: name.to_owned(),
            inputs,
            nodes: Vec::new(),
            names: BTreeMap::new(),
            start: self.nodes * 10,
            exports: Vec::new(),
        }
    }

    /// Takes in a finished template. Its nodes lie, in the pretended text, after those of the templates before it.
    pub(crate) fn add(&mut self, template: TemplateBuilder, result: Option<Slot>) -> TemplateId {
        let id = TemplateId(self.templates.len() as u32);
        for (slot, name) in template.names {
            self.names.insert((id, slot), name);
        }
        let mut nodes = template.nodes;
        for node in &mut nodes {
            let start = node.span.start - template.start + self.nodes * 10;
            node.span = Span::new(FileId(0), start, start + 5);
            respan(&mut node.operation, node.span);
        }
        self.nodes += nodes.len() as u32;
        self.templates.push(Template {
            name: template.name.into(),
            inputs: template.inputs,
            nodes,
            result,
            exports: template.exports,
        });
        id
    }

    /// The program that starts with this template.
    pub(crate) fn finish(mut self, entry: TemplateBuilder) -> Built {
        let entry = self.add(entry, None);
        Built {
            program: Arc::new(Program {
                templates: self.templates,
                entry,
                language: &PLAIN,
            }),
            names: self.names,
        }
    }
}

/// Statements know their own place.
fn respan(operation: &mut Operation, span: Span) {
    match operation {
        Operation::Resource(statement) => {
            let mut moved = (**statement).clone();
            moved.span = span;
            for field in &mut moved.fields {
                field.span = span;
            }
            *statement = Arc::new(moved);
        }
        Operation::Edge(statement) => {
            let mut moved = (**statement).clone();
            moved.span = span;
            for endpoint in &mut moved.endpoints {
                endpoint.span = span;
            }
            *statement = Arc::new(moved);
        }
        _ => {}
    }
}

impl TemplateBuilder {
    /// Gives the node just added a name.
    pub(crate) fn named(&mut self, name: &str, slot: Slot) -> Slot {
        self.names.insert(slot, name.to_owned());
        slot
    }

    pub(crate) fn node(&mut self, operation: Operation, ty: Type) -> Slot {
        let slot = Slot(self.inputs + self.nodes.len() as u32);
        let span = self.next_span();
        self.nodes.push(TemplateNode { operation, ty, span });
        slot
    }

    /// Where the next node is written.
    fn next_span(&self) -> Span {
        let start = self.start + self.nodes.len() as u32 * 10;
        Span::new(FileId(0), start, start + 5)
    }

    pub(crate) fn constant(&mut self, value: Value) -> Slot {
        let ty = value.ty();
        self.node(Operation::Constant(value), ty)
    }

    pub(crate) fn int(&mut self, value: i64) -> Slot {
        self.constant(Value::Int(value))
    }

    pub(crate) fn str(&mut self, value: &str) -> Slot {
        self.constant(Value::str(value))
    }

    pub(crate) fn call(&mut self, function: &'static FunctionSpec, arguments: &[Slot], ty: Type) -> Slot {
        let arguments = arguments.to_vec();
        let module_directory = "/".into();
        let operation = Operation::Call {
            function: function.into(),
            arguments,
            module_directory,
        };
        self.node(operation, ty)
    }

    /// What the outside says under a key.
    pub(crate) fn outside(&mut self, key: &str, ty: Type) -> Slot {
        let key_slot = self.str(key);
        let slot = self.call(&library::OUTSIDE, &[key_slot], ty);
        self.named(key, slot)
    }

    pub(crate) fn add(&mut self, a: Slot, b: Slot) -> Slot {
        self.call(&setpoint_value::operators::ADD, &[a, b], Type::Int)
    }

    pub(crate) fn concat(&mut self, a: Slot, b: Slot) -> Slot {
        self.call(&setpoint_value::operators::CONCAT, &[a, b], Type::Str)
    }

    pub(crate) fn text_of(&mut self, a: Slot) -> Slot {
        self.call(&library::TO_STR, &[a], Type::Str)
    }

    /// `a / b` of ints, catchable.
    pub(crate) fn divide(&mut self, a: Slot, b: Slot) -> Slot {
        self.call(&library::DIVIDE, &[a, b], Type::Int)
    }

    pub(crate) fn list(&mut self, element: Type, items: &[Slot]) -> Slot {
        self.node(Operation::List(items.to_vec()), Type::list(element))
    }

    pub(crate) fn if_(&mut self, condition: Slot, then: Block, otherwise: Block, ty: Type) -> Slot {
        let operation = Operation::If {
            condition,
            then,
            otherwise,
        };
        self.node(operation, ty)
    }

    pub(crate) fn if_statement(
        &mut self,
        condition: Slot,
        then: Option<Block>,
        otherwise: Option<Block>,
    ) -> Slot {
        let head = self.next_span();
        let operation = Operation::IfStatement {
            condition,
            then,
            otherwise,
            head,
        };
        self.node(operation, Type::Dynamic)
    }

    pub(crate) fn except(&mut self, value: Slot, fallback: Block, ty: Type) -> Slot {
        self.node(Operation::Except { value, fallback }, ty)
    }

    pub(crate) fn closure(&mut self, block: Block, ty: Type) -> Slot {
        self.node(Operation::Closure(block), ty)
    }

    pub(crate) fn apply(&mut self, function: Slot, arguments: &[Slot], ty: Type) -> Slot {
        let arguments = arguments.to_vec();
        self.node(Operation::Apply { function, arguments }, ty)
    }

    pub(crate) fn instance(&mut self, template: TemplateId, arguments: &[Slot], ty: Type) -> Slot {
        let arguments = arguments.to_vec();
        self.node(Operation::Instance { template, arguments }, ty)
    }

    pub(crate) fn exported(&mut self, instance: Slot, export: u32, ty: Type) -> Slot {
        self.node(Operation::Exported { instance, export }, ty)
    }

    pub(crate) fn for_(&mut self, list: Slot, body: Block) -> Slot {
        let head = self.next_span();
        self.node(Operation::For { list, body, head }, Type::Dynamic)
    }

    pub(crate) fn for_kv(&mut self, map: Slot, body: Block) -> Slot {
        let head = self.next_span();
        self.node(Operation::ForKv { map, body, head }, Type::Dynamic)
    }

    pub(crate) fn panic(&mut self, condition: Slot, message: Option<Slot>) -> Slot {
        self.node(Operation::Panic { condition, message }, Type::Dynamic)
    }

    /// A resource of kind `test` with this value.
    pub(crate) fn resource(&mut self, name: Slot, value: Slot) -> Slot {
        self.resource_if(name, value, None)
    }

    pub(crate) fn resource_if(&mut self, name: Slot, value: Slot, condition: Option<Slot>) -> Slot {
        let span = Span::new(FileId(0), 0, 1);
        let statement = ResourceStatement {
            kind: "test".into(),
            schema: Some(&library::TEST),
            name,
            fields: vec![FieldItem {
                parameter: &library::TEST.parameters[0],
                value,
                condition,
                span,
            }],
            meta: Vec::new(),
            edges: Vec::new(),
            head: span,
            span,
        };
        self.node(Operation::Resource(Arc::new(statement)), Type::Dynamic)
    }

    /// `Test[from] -> Test[to]`.
    pub(crate) fn edge(&mut self, from: Slot, to: Slot) -> Slot {
        let span = Span::new(FileId(0), 0, 1);
        let endpoint = |name| EdgeEndpoint {
            kind: "test".into(),
            name,
            span,
        };
        let statement = EdgeStatement {
            endpoints: vec![endpoint(from), endpoint(to)],
            send: None,
            span,
        };
        self.node(Operation::Edge(Arc::new(statement)), Type::Dynamic)
    }
}

/// A block that captures these slots of the surroundings.
pub(crate) fn block(template: TemplateId, captures: &[Slot]) -> Block {
    Block {
        template,
        captures: captures.to_vec(),
    }
}

/// `func(int) int`.
pub(crate) fn int_to_int() -> Type {
    Type::func([("x", Type::Int)], Type::Int)
}
