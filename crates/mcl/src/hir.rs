//! The resolved program: every name bound to what it means, strings expanded, colon classes in their place.
//!
//! It is what scope resolution gives to type inference. A *body* is a block of statements, a *definition* anything that a
//! variable can mean. What is made anew for each use (the body of an included class, of a called function) has an
//! [`Owner`]; what belongs to it exists once for each *instance* of that owner. A reference therefore says through which
//! includes it goes ([`Path`]); the instance follows when types and templates are made.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use setpoint_diagnostics::Span;
use setpoint_value::{FunctionRef, Type, Value};

use crate::syntax::Operator;

setpoint_diagnostics::ids! {
    /// An expression.
    ExprId;
    /// A variable's meaning.
    DefinitionId;
    /// A named function or a lambda.
    FunctionId;
    /// A class.
    ClassId;
    /// An include statement.
    IncludeId;
    /// A block of statements.
    BodyId;
}

/// A resolved program.
#[derive(Debug, Default)]
pub struct Hir {
    /// Expressions.
    pub exprs: Vec<Expr>,
    /// Definitions.
    pub definitions: Vec<Definition>,
    /// Functions and lambdas.
    pub functions: Vec<Function>,
    /// Classes.
    pub classes: Vec<Class>,
    /// Includes.
    pub includes: Vec<Include>,
    /// Bodies. The entry's is the first.
    pub bodies: Vec<Body>,
    /// Where variables stand in strings, with `${` and `}`. The span of such an expression is the whole string, which the rules blame.
    pub interpolated: FxHashMap<ExprId, Span>,
}

impl Hir {
    /// An expression.
    #[must_use]
    pub fn expr(&self, id: ExprId) -> &Expr {
        &self.exprs[id.index()]
    }

    /// Where a user sees an expression.
    #[must_use]
    pub fn place(&self, id: ExprId) -> Span {
        self.interpolated
            .get(&id)
            .copied()
            .unwrap_or_else(|| self.expr(id).span)
    }

    /// A definition.
    #[must_use]
    pub fn definition(&self, id: DefinitionId) -> &Definition {
        &self.definitions[id.index()]
    }

    /// A function.
    #[must_use]
    pub fn function(&self, id: FunctionId) -> &Function {
        &self.functions[id.index()]
    }

    /// A class.
    #[must_use]
    pub fn class(&self, id: ClassId) -> &Class {
        &self.classes[id.index()]
    }

    /// An include.
    #[must_use]
    pub fn include(&self, id: IncludeId) -> &Include {
        &self.includes[id.index()]
    }

    /// A body.
    #[must_use]
    pub fn body(&self, id: BodyId) -> &Body {
        &self.bodies[id.index()]
    }
}

impl Hir {
    /// Visits an expression and all in it, bodies of lambdas included. Without recursion.
    pub(crate) fn for_each_part(&self, expr: ExprId, mut visit: impl FnMut(ExprId)) {
        self.for_each_part_but(expr, |id| {
            visit(id);
            None
        });
    }

    /// The same, but where `visit` answers a part, only that one of all parts is gone into.
    pub(crate) fn for_each_part_but(&self, expr: ExprId, mut visit: impl FnMut(ExprId) -> Option<ExprId>) {
        let mut open = vec![expr];
        while let Some(id) = open.pop() {
            if let Some(only) = visit(id) {
                open.push(only);
                continue;
            }
            match &self.expr(id).kind {
                ExprKind::Literal(_) | ExprKind::Variable { .. } => {}
                ExprKind::Interpolation(parts) => open.extend(parts.iter().filter_map(|part| match part {
                    Part::Variable(id) => Some(*id),
                    Part::Text(_) => None,
                })),
                ExprKind::List(items) | ExprKind::Unknown(items) => open.extend(items),
                ExprKind::Map(entries) => open.extend(entries.iter().flat_map(|(k, v)| [*k, *v])),
                ExprKind::Struct(fields) => open.extend(fields.iter().map(|(_, value)| *value)),
                ExprKind::Call { callee, arguments } => {
                    open.extend(arguments);
                    if let Callee::Value(callee) = callee {
                        open.push(*callee);
                    }
                }
                ExprKind::Lambda(function) => open.push(self.function(*function).body),
                ExprKind::If {
                    condition,
                    then,
                    otherwise,
                } => open.extend([*condition, *then, *otherwise]),
                ExprKind::Operator {
                    left: a, right: b, ..
                }
                | ExprKind::In { left: a, right: b }
                | ExprKind::Lookup { base: a, index: b }
                | ExprKind::FieldOr {
                    base: a, default: b, ..
                }
                | ExprKind::Except { left: a, right: b } => open.extend([*a, *b]),
                ExprKind::Not(inner) | ExprKind::Field { base: inner, .. } => open.push(*inner),
            }
        }
    }
}

/// What is made anew for each use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Owner {
    /// The top of the entry or of a module, by its body: one instance.
    Top(BodyId),
    /// The body of a class: an instance for each include.
    Class(ClassId),
    /// The body of a named function: an instance for each call.
    Function(FunctionId),
}

/// The includes that a dotted name goes through, outermost first.
pub type Path = Box<[IncludeId]>;

/// A variable's meaning.
#[derive(Debug)]
pub struct Definition {
    /// Its name, without a dollar.
    pub name: Arc<str>,
    /// Where it is defined: the bind statement, the parameter, the loop variable.
    pub span: Span,
    /// Where its name stands, without a dollar. Empty for variables of the library.
    pub name_span: Span,
    /// What kind of thing it is.
    pub kind: DefinitionKind,
    /// Whose instance it belongs to.
    pub owner: Owner,
    /// The body that holds it, for binds and loop variables.
    pub body: Option<BodyId>,
}

/// What a variable can mean.
#[derive(Debug)]
pub enum DefinitionKind {
    /// `$x type = value`.
    Bind {
        /// The value.
        value: ExprId,
        /// The written type.
        annotation: Option<Type>,
    },
    /// A parameter of a class.
    ClassParameter {
        /// Its position.
        index: usize,
        /// The written type.
        annotation: Option<Type>,
    },
    /// A parameter of a function or lambda.
    Parameter {
        /// The function.
        function: FunctionId,
        /// Its position.
        index: usize,
        /// The written type.
        annotation: Option<Type>,
    },
    /// The index or key of a loop.
    LoopKey,
    /// The element or value of a loop.
    LoopValue,
    /// A variable of the library.
    Library(Value),
}

/// A named function or a lambda.
#[derive(Debug)]
pub struct Function {
    /// Its name; none for lambdas.
    pub name: Option<Arc<str>>,
    /// Its parameters.
    pub parameters: Vec<DefinitionId>,
    /// The written result type.
    pub result: Option<Type>,
    /// Its body.
    pub body: ExprId,
    /// The lambda or the statement.
    pub span: Span,
    /// Where its name stands; none for lambdas.
    pub name_span: Option<Span>,
    /// Whose instance defines it.
    pub owner: Owner,
}

/// A class.
#[derive(Debug)]
pub struct Class {
    /// Its name.
    pub name: Arc<str>,
    /// Its parameters.
    pub parameters: Vec<DefinitionId>,
    /// Its body; resolved when it is first included.
    pub body: Option<BodyId>,
    /// The statement.
    pub span: Span,
    /// Where its name stands.
    pub name_span: Span,
    /// Whose instance defines it.
    pub owner: Owner,
}

/// An include statement.
#[derive(Debug)]
pub struct Include {
    /// The includes through which the class is reached.
    pub path: Path,
    /// The class.
    pub class: ClassId,
    /// Arguments, as many as the class has parameters.
    pub arguments: Vec<ExprId>,
    /// The statement.
    pub span: Span,
    /// Whose instance it is part of.
    pub owner: Owner,
    /// The body that holds it.
    pub body: BodyId,
}

/// A block of statements.
#[derive(Debug)]
pub struct Body {
    /// What gives output, in source order. Binds, functions, classes and imports are reached by use only.
    pub statements: Vec<Statement>,
    /// Directory of the module inside the deploy, ending in `/`.
    pub module_directory: Arc<str>,
}

/// A statement with output.
#[derive(Debug)]
pub enum Statement {
    /// `if`.
    If {
        /// The condition.
        condition: ExprId,
        /// When true.
        then: BodyId,
        /// When false.
        otherwise: Option<BodyId>,
        /// The statement.
        span: Span,
    },
    /// `for` and `forkv`.
    Loop {
        /// Whether it is `forkv`.
        over_map: bool,
        /// The list or map.
        iterable: ExprId,
        /// The index or key.
        key: DefinitionId,
        /// The element or value.
        value: DefinitionId,
        /// What is repeated.
        body: BodyId,
        /// The statement.
        span: Span,
    },
    /// A resource.
    Resource(Box<Resource>),
    /// Edges.
    Edge(Box<Edge>),
    /// `include`.
    Include(IncludeId),
    /// `panic(…)`.
    Panic {
        /// Its arguments.
        arguments: Vec<ExprId>,
        /// The statement.
        span: Span,
    },
}

/// A resource statement.
#[derive(Debug)]
pub struct Resource {
    /// The kind as written.
    pub kind: Arc<str>,
    /// Where it is written.
    pub kind_span: Span,
    /// Whether it is a `collect`.
    pub collect: bool,
    /// The name or names.
    pub name: ExprId,
    /// Body items in source order.
    pub items: Vec<Item>,
    /// The statement.
    pub span: Span,
}

impl Resource {
    /// Where it begins: its kind and its name.
    #[must_use]
    pub fn head(&self, hir: &Hir) -> Span {
        self.kind_span.to(hir.expr(self.name).span)
    }
}

/// A body item of a resource.
#[derive(Debug)]
pub struct Item {
    /// What it says.
    pub kind: ItemKind,
    /// What stands before `?:`.
    pub condition: Option<ExprId>,
    /// From name to comma.
    pub span: Span,
}

/// What a body item says.
#[derive(Debug)]
pub enum ItemKind {
    /// `parameter => value,`.
    Field {
        /// The parameter.
        name: Arc<str>,
        /// Where its name stands.
        name_span: Span,
        /// The value.
        value: ExprId,
    },
    /// `Before => Kind[name],`.
    EdgeProperty {
        /// Which.
        property: setpoint_graph::EdgeProperty,
        /// The other end.
        endpoint: Endpoint,
    },
    /// `Meta:name => value,`.
    Meta {
        /// Which.
        name: setpoint_graph::MetaName,
        /// The value.
        value: ExprId,
    },
    /// `Meta => struct{…},`.
    MetaStruct {
        /// The struct.
        value: ExprId,
    },
}

/// An edge statement.
#[derive(Debug)]
pub struct Edge {
    /// One or more endpoints.
    pub endpoints: Vec<Endpoint>,
    /// The statement.
    pub span: Span,
}

/// One end of an edge.
#[derive(Debug)]
pub struct Endpoint {
    /// The kind, lower case.
    pub kind: Arc<str>,
    /// The name or names.
    pub name: ExprId,
    /// The send key or parameter.
    pub field: Option<Arc<str>>,
    /// From kind to `]`.
    pub span: Span,
}

/// An expression.
#[derive(Debug)]
pub struct Expr {
    /// What it says.
    pub kind: ExprKind,
    /// Where.
    pub span: Span,
}

/// The forms of expressions.
#[derive(Debug)]
pub enum ExprKind {
    /// A name that means nothing here, or what was not understood. That was reported; nothing more is to be said about its
    /// value. Never part of a program without errors.
    Unknown(Vec<ExprId>),
    /// A bool, int or float, or a string without variables.
    Literal(Value),
    /// A string with variables.
    Interpolation(Vec<Part>),
    /// A list.
    List(Vec<ExprId>),
    /// A map.
    Map(Vec<(ExprId, ExprId)>),
    /// A struct.
    Struct(Vec<(Arc<str>, ExprId)>),
    /// A variable.
    Variable {
        /// The includes it goes through.
        path: Path,
        /// What it means.
        definition: DefinitionId,
    },
    /// A call.
    Call {
        /// What is called.
        callee: Callee,
        /// With what.
        arguments: Vec<ExprId>,
    },
    /// A lambda.
    Lambda(FunctionId),
    /// `if c { a } else { b }`.
    If {
        /// The condition.
        condition: ExprId,
        /// When true.
        then: ExprId,
        /// When false.
        otherwise: ExprId,
    },
    /// `a + b` and so on.
    Operator {
        /// Which.
        operator: Operator,
        /// Left.
        left: ExprId,
        /// Right.
        right: ExprId,
    },
    /// `not a`.
    Not(ExprId),
    /// `a in b`.
    In {
        /// The element.
        left: ExprId,
        /// The list.
        right: ExprId,
    },
    /// `a[b]`.
    Lookup {
        /// List or map.
        base: ExprId,
        /// Index or key.
        index: ExprId,
    },
    /// `a->f`.
    Field {
        /// The struct.
        base: ExprId,
        /// The field.
        field: Arc<str>,
    },
    /// `a->f <|> d`, decided by the type of `a`.
    FieldOr {
        /// The struct.
        base: ExprId,
        /// The field.
        field: Arc<str>,
        /// When there is no such field.
        default: ExprId,
    },
    /// `a <|> b`.
    Except {
        /// Left.
        left: ExprId,
        /// Right.
        right: ExprId,
    },
}

/// A piece of an interpolated string.
#[derive(Debug)]
pub enum Part {
    /// Text, escapes resolved.
    Text(Arc<str>),
    /// A variable.
    Variable(ExprId),
}

/// Constant texts of more bytes are not put together ahead of time: each step of a chain of definitions would keep one.
pub(crate) const LONGEST_CONSTANT: usize = 1 << 12;

impl Part {
    /// The text of a string whose variables have these values; none where one has none or is not a text, and none of a text that is
    /// longer than [`LONGEST_CONSTANT`].
    pub(crate) fn expanded(parts: &[Part], mut value: impl FnMut(ExprId) -> Option<Value>) -> Option<Value> {
        let mut text = Vec::new();
        for part in parts {
            match part {
                Part::Text(piece) => text.extend_from_slice(piece.as_bytes()),
                Part::Variable(id) => text.extend_from_slice(value(*id)?.as_str()?.as_bytes()),
            }
            if text.len() > LONGEST_CONSTANT {
                return None;
            }
        }
        Some(Value::str(text))
    }
}

/// What is called.
#[derive(Debug)]
pub enum Callee {
    /// A function of the program.
    Function {
        /// The includes it is reached through.
        path: Path,
        /// Which.
        function: FunctionId,
    },
    /// A function of the library; with the directory of the module whose text calls.
    Library(FunctionRef, Arc<str>),
    /// A function value: a variable or a lambda.
    Value(ExprId),
}
