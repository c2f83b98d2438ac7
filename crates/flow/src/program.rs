//! Programs: relocatable templates of dataflow nodes.
//!
//! A [`Template`] is a body lowered once: the entry, a function, a lambda, a class, a branch, the body of a loop. Its *slots*
//! are its inputs (parameters, then captured values of the surroundings) followed by its nodes; a node refers only to
//! smaller slots, so that instantiating is one pass. Templates nest through operations that name other templates.

use std::sync::Arc;

use setpoint_diagnostics::Span;
use setpoint_graph::{EdgeStatement, ResourceStatement};
use setpoint_value::{FunctionRef, Type, Value};

use crate::Language;

/// A lowered program. Pure data.
#[derive(Debug, Clone)]
pub struct Program {
    /// All templates; addressed by [`TemplateId`].
    pub templates: Vec<Template>,
    /// The one to start with; it has no inputs.
    pub entry: TemplateId,
    /// Its language, which tells what goes wrong.
    pub language: &'static dyn Language,
}

impl Program {
    /// The template of an id of this program.
    ///
    /// # Panics
    /// With an id of another program.
    #[must_use]
    pub fn template(&self, id: TemplateId) -> &Template {
        &self.templates[id.0 as usize]
    }

    /// Whether a body that can come to be has a resource statement, whatever the values will be.
    #[must_use]
    pub fn can_have_resources(&self) -> bool {
        let mut seen = vec![false; self.templates.len()];
        let mut open = vec![self.entry];
        while let Some(id) = open.pop() {
            if std::mem::replace(&mut seen[id.0 as usize], true) {
                continue;
            }
            for node in &self.template(id).nodes {
                if matches!(node.operation, Operation::Resource(_) | Operation::Collect { .. }) {
                    return true;
                }
                open.extend(node.operation.bodies());
            }
        }
        false
    }
}

/// A resource that a block may hold whose condition, list or map is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PossibleResource {
    /// The kind.
    pub kind: Arc<str>,
    /// The name, if it is written as text.
    pub name: Option<Arc<str>>,
    /// The statement.
    pub span: Span,
    /// The value that decides the block: `condition`, `list` or `map`.
    pub on: &'static str,
}

impl Program {
    /// The resources that the statement at a place may hold, an `if` or a loop, in the order of the text. Each statement counts once.
    #[must_use]
    pub fn possible_resources(&self, statement: Span) -> Vec<PossibleResource> {
        let mut nodes = self.templates.iter().flat_map(|template| &template.nodes);
        let block = nodes.find_map(|node| {
            let on = node.operation.head()?;
            (node.span == statement).then_some((on, &node.operation))
        });
        let Some((on, block)) = block else {
            return Vec::new();
        };
        let mut open: Vec<TemplateId> = block.bodies().collect();
        let mut seen = vec![false; self.templates.len()];
        let mut found = Vec::new();
        while let Some(id) = open.pop() {
            if std::mem::replace(&mut seen[id.0 as usize], true) {
                continue;
            }
            let template = self.template(id);
            for node in &template.nodes {
                open.extend(node.operation.bodies());
                let (Operation::Resource(statement) | Operation::Collect { statement, .. }) = &node.operation
                else {
                    continue;
                };
                let names = template.written_names(statement.name);
                found.extend(names.into_iter().map(|name| PossibleResource {
                    kind: statement.kind.clone(),
                    name,
                    span: node.span,
                    on,
                }));
            }
        }
        found.sort_by_key(|resource| resource.span);
        found
    }
}

/// A template of a [`Program`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TemplateId(pub u32);

/// An input or a node of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(pub u32);

/// A body, ready to be instantiated.
#[derive(Debug, Clone)]
pub struct Template {
    /// What it is, for messages: `class foo`, `the body of the loop`, `the entry`.
    pub name: Arc<str>,
    /// How many slots are inputs: parameters first, then captured values.
    pub inputs: u32,
    /// The nodes; node `i` is slot `inputs + i`.
    pub nodes: Vec<TemplateNode>,
    /// The value of the body, for functions, lambdas and expression branches.
    pub result: Option<Slot>,
    /// Slots that other templates reach through [`Operation::Exported`] (the variables of an included class).
    pub exports: Vec<Slot>,
}

/// A node of a template.
#[derive(Debug, Clone)]
pub struct TemplateNode {
    /// What it computes.
    pub operation: Operation,
    /// Type of its value; [`Type::Dynamic`] for statements and instances without a result.
    pub ty: Type,
    /// The expression or statement.
    pub span: Span,
}

/// A template with the slots of the surrounding template that it captures.
#[derive(Debug, Clone)]
pub struct Block {
    /// The body.
    pub template: TemplateId,
    /// Given to its last inputs.
    pub captures: Vec<Slot>,
}

/// What a node computes.
#[derive(Debug, Clone)]
pub enum Operation {
    /// This value.
    Constant(Value),
    /// A list of the slots' values.
    List(Vec<Slot>),
    /// A map; a later equal key wins.
    Map(Vec<(Slot, Slot)>),
    /// A struct; one slot a field, in the order of the type.
    Struct(Vec<Slot>),
    /// The field at an index of a struct.
    Field {
        /// The struct.
        of: Slot,
        /// Position in its type.
        index: u32,
    },
    /// A call of a library function, pure, source or shape as its specification says.
    Call {
        /// Which.
        function: FunctionRef,
        /// Its arguments.
        arguments: Vec<Slot>,
        /// Directory, inside the deploy, of the module whose text calls; ends with `/`.
        module_directory: Arc<str>,
    },
    /// A function value: the body with the values it captures. The body's first inputs are the parameters.
    Closure(Block),
    /// A call of a function value.
    Apply {
        /// The function value.
        function: Slot,
        /// Its arguments.
        arguments: Vec<Slot>,
    },
    /// A body put in place: a call of a named function, an included class. Lives and dies with this template's instance;
    /// its value is the body's result, if it has one.
    Instance {
        /// The body.
        template: TemplateId,
        /// Given to its inputs, captured values included.
        arguments: Vec<Slot>,
    },
    /// A slot that an instance exports. Costs nothing: it is the same node.
    Exported {
        /// An [`Operation::Instance`] of this template (or an input or export that is one: never a value).
        instance: Slot,
        /// Index into the instance's exports.
        export: u32,
    },
    /// `if` as an expression: the result of one of two bodies. Only the chosen one exists.
    If {
        /// A bool.
        condition: Slot,
        /// Without inputs but captures.
        then: Block,
        /// The same.
        otherwise: Block,
    },
    /// `value <|> fallback`: the fallback exists only while the value fails in a way that may be caught.
    Except {
        /// The left side, always there.
        value: Slot,
        /// The right side, without inputs but captures.
        fallback: Block,
    },
    /// `if` as a statement. Only the chosen body exists.
    IfStatement {
        /// A bool.
        condition: Slot,
        /// Without inputs but captures; none for an empty block.
        then: Option<Block>,
        /// The same.
        otherwise: Option<Block>,
        /// Where the condition is written.
        head: Span,
    },
    /// `for`: one instance of the body for each element, with the index and the element as first inputs.
    For {
        /// A list.
        list: Slot,
        /// The body.
        body: Block,
        /// Where the list is written.
        head: Span,
    },
    /// `forkv`: one instance of the body for each entry, with the key and the value as first inputs.
    ForKv {
        /// A map.
        map: Slot,
        /// The body.
        body: Block,
        /// Where the map is written.
        head: Span,
    },
    /// A resource statement.
    Resource(Arc<ResourceStatement<Slot>>),
    /// A collect statement: a resource statement that begins from what the world has.
    Collect {
        /// Its name is what is asked for.
        statement: Arc<ResourceStatement<Slot>>,
        /// What is exported of the kind: a call of [`EXPORTS`](crate::EXPORTS).
        exports: Slot,
    },
    /// An edge statement.
    Edge(Arc<EdgeStatement<Slot>>),
    /// `panic(…)`: fails for good, with this span, when the argument is true or not empty. The second slot is the
    /// message of `panic(condition, message)`.
    Panic {
        /// A bool or a str.
        condition: Slot,
        /// A str.
        message: Option<Slot>,
    },
}

impl Template {
    /// The names that a slot stands for: those that are written as text, or none for one that is not.
    fn written_names(&self, slot: Slot) -> Vec<Option<Arc<str>>> {
        let node = |slot: Slot| self.nodes.get(slot.0.checked_sub(self.inputs)? as usize);
        let written = |value: &Value| match value {
            Value::Str(text) => text.as_str().map(Into::into),
            _ => None,
        };
        match node(slot).map(|node| &node.operation) {
            Some(Operation::Constant(Value::List(list))) => list.iter().map(written).collect(),
            Some(Operation::Constant(value)) => vec![written(value)],
            Some(Operation::List(slots)) => slots.iter().flat_map(|slot| self.written_names(*slot)).collect(),
            _ => vec![None],
        }
    }
}

impl Operation {
    /// The bodies of statements that it makes instances of, or may. Bodies of expressions have no statements.
    fn bodies(&self) -> impl Iterator<Item = TemplateId> {
        let bodies = match self {
            Operation::Instance { .. }
            | Operation::IfStatement { .. }
            | Operation::For { .. }
            | Operation::ForKv { .. } => self.templates(),
            _ => [None, None],
        };
        bodies.into_iter().flatten()
    }

    /// The value that decides its bodies, for a statement with a block.
    fn head(&self) -> Option<&'static str> {
        match self {
            Operation::IfStatement { .. } => Some("condition"),
            Operation::For { .. } => Some("list"),
            Operation::ForKv { .. } => Some("map"),
            _ => None,
        }
    }

    /// The templates that it makes instances of, or may.
    #[must_use]
    pub fn templates(&self) -> [Option<TemplateId>; 2] {
        match self {
            Operation::Closure(block) => [Some(block.template), None],
            Operation::Instance { template, .. } => [Some(*template), None],
            Operation::If { then, otherwise, .. } => [Some(then.template), Some(otherwise.template)],
            Operation::Except { fallback, .. } => [Some(fallback.template), None],
            Operation::IfStatement { then, otherwise, .. } => [
                then.as_ref().map(|block| block.template),
                otherwise.as_ref().map(|block| block.template),
            ],
            Operation::For { body, .. } | Operation::ForKv { body, .. } => [Some(body.template), None],
            Operation::Constant(_)
            | Operation::List(_)
            | Operation::Map(_)
            | Operation::Struct(_)
            | Operation::Field { .. }
            | Operation::Call { .. }
            | Operation::Apply { .. }
            | Operation::Exported { .. }
            | Operation::Resource(_)
            | Operation::Collect { .. }
            | Operation::Edge(_)
            | Operation::Panic { .. } => [None, None],
        }
    }
}
