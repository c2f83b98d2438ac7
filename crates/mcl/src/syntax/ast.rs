//! Abstract syntax: what a text says, with the places where it says so.
//!
//! Expressions and statements live in two arenas and refer to each other by number, so that later stages can keep
//! what they find out in plain vectors beside them. Forms that the language gives a meaning by rewriting
//! (operators, lookups, `<|>`, `panic`, `collect`) stay as written here.

use std::ops::Index;
use std::sync::Arc;

use setpoint_diagnostics::{FileId, Span};

/// The number of an expression in its [`Ast`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExprId(pub u32);

/// The number of a statement in its [`Ast`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StmtId(pub u32);

impl ExprId {
    /// As an index into a vector kept beside the arena.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl StmtId {
    /// As an index into a vector kept beside the arena.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The abstract syntax of one file.
#[derive(Debug, Clone)]
pub struct Ast {
    /// The file that all spans point into.
    pub file: FileId,
    /// The statements at the top of the file. Its span is the whole text.
    pub root: Block,
    pub(super) exprs: Vec<Expr>,
    pub(super) stmts: Vec<Stmt>,
}

impl Ast {
    /// An expression.
    #[inline]
    #[must_use]
    pub fn expr(&self, id: ExprId) -> &Expr {
        &self.exprs[id.index()]
    }

    /// A statement.
    #[inline]
    #[must_use]
    pub fn stmt(&self, id: StmtId) -> &Stmt {
        &self.stmts[id.index()]
    }

    /// The length of a vector that has a place for each expression. A few numbers may belong to expressions that
    /// are no part of the file, after errors.
    #[must_use]
    pub fn expr_count(&self) -> usize {
        self.exprs.len()
    }

    /// The length of a vector that has a place for each statement.
    #[must_use]
    pub fn stmt_count(&self) -> usize {
        self.stmts.len()
    }

    /// The expression without the parentheses around it.
    #[must_use]
    pub fn without_parens(&self, mut id: ExprId) -> ExprId {
        while let ExprKind::Paren(inner) = self.expr(id).kind {
            id = inner;
        }
        id
    }
}

impl Index<ExprId> for Ast {
    type Output = Expr;
    fn index(&self, id: ExprId) -> &Expr {
        self.expr(id)
    }
}

impl Index<StmtId> for Ast {
    type Output = Stmt;
    fn index(&self, id: StmtId) -> &Stmt {
        self.stmt(id)
    }
}

/// A name and where it stands.
///
/// Dotted and coloned names are joined without white space: `a.b.c`, `a:b`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Name {
    /// The name, without a `$`.
    pub text: Arc<str>,
    /// Its place, without a `$`.
    pub span: Span,
}

/// Statements in braces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// In source order.
    pub statements: Vec<StmtId>,
    /// From brace to brace.
    pub span: Span,
}

/// A statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stmt {
    /// What it says.
    pub kind: StmtKind,
    /// From its first to its last token.
    pub span: Span,
}

/// The statements of the language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StmtKind {
    /// `$x int = e`
    Bind(Bind),
    /// `if c { … } else { … }`
    If(IfStmt),
    /// `for $i, $v in l { … }`
    For(Loop),
    /// `forkv $k, $v in m { … }`
    ForKv(Loop),
    /// `file "/a" { … }`, `collect file "/a" { … }`
    Resource(Resource),
    /// `A["x"] -> B["y"]`
    Edge(Edge),
    /// `class c($a) { … }`
    Class(Class),
    /// `include c("x") as i`
    Include(Include),
    /// `import "fmt" as f`
    Import(Import),
    /// `func f($a) { e }`
    Func(Func),
    /// `panic(e)`
    Panic(Arguments),
}

impl StmtKind {
    /// The blocks that are directly in it.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = &Block> {
        let (first, second) = match self {
            StmtKind::If(branches) => (Some(&branches.then_block), branches.else_block.as_ref()),
            StmtKind::For(body) | StmtKind::ForKv(body) => (Some(&body.body), None),
            StmtKind::Class(class) => (Some(&class.body), None),
            StmtKind::Bind(_)
            | StmtKind::Resource(_)
            | StmtKind::Edge(_)
            | StmtKind::Include(_)
            | StmtKind::Import(_)
            | StmtKind::Func(_)
            | StmtKind::Panic(_) => (None, None),
        };
        first.into_iter().chain(second)
    }
}

/// `$x int = e`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bind {
    /// Never dotted.
    pub name: Name,
    /// The type that the author gave.
    pub annotation: Option<TypeExpr>,
    /// The value.
    pub value: ExprId,
}

/// An `if` statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IfStmt {
    /// The condition.
    pub condition: ExprId,
    /// The statements when it is true.
    pub then_block: Block,
    /// The statements when it is false.
    pub else_block: Option<Block>,
    /// Written `else if`: the else block holds exactly one `if` statement and spans what that spans.
    pub else_if: bool,
}

/// A `for` or `forkv` statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loop {
    /// The variable for the index or key.
    pub key: Name,
    /// The variable for the element or value.
    pub value: Name,
    /// The list or map.
    pub iterable: ExprId,
    /// What is repeated.
    pub body: Block,
}

/// A resource statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// Written with `collect` before it.
    pub collect: bool,
    /// `a:b`
    pub kind: Name,
    /// The name or names.
    pub name: ExprId,
    /// Fields, edge properties, meta parameters, in source order.
    pub items: Vec<BodyItem>,
    /// From brace to brace.
    pub body_span: Span,
}

/// One line of a resource's body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyItem {
    /// What it says.
    pub kind: BodyItemKind,
    /// What stands before `?:`.
    pub condition: Option<ExprId>,
    /// From its name to its comma.
    pub span: Span,
}

/// The forms of a body item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyItemKind {
    /// `name => value,`
    Field {
        /// The parameter.
        name: Name,
        /// Its value.
        value: ExprId,
    },
    /// `Before => Kind["name"],`
    EdgeProperty {
        /// As written: one capital in front.
        property: Name,
        /// The other end. It has no field.
        endpoint: EdgeEndpoint,
    },
    /// `Meta:name => value,`
    Meta {
        /// The meta parameter, without `Meta:`.
        name: Name,
        /// Its value.
        value: ExprId,
    },
    /// `Meta => value,`
    MetaStruct {
        /// The struct.
        value: ExprId,
    },
}

/// An edge statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    /// At least one. Either none has a field, or there are two and both have one.
    pub endpoints: Vec<EdgeEndpoint>,
}

/// `Kind["name"]` or `Kind["name"].field`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EdgeEndpoint {
    /// In lower case: `http:server` for `Http:Server`.
    pub kind: Name,
    /// The name or names.
    pub name: ExprId,
    /// What is sent, or received into.
    pub field: Option<Name>,
    /// From the kind to `]`.
    pub span: Span,
}

/// A class definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// May have colons: `a:b`.
    pub name: Name,
    /// None where there are no parentheses.
    pub parameters: Option<Parameters>,
    /// The body.
    pub body: Block,
}

/// An include statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Include {
    /// May be dotted.
    pub class: Name,
    /// None where there are no parentheses.
    pub arguments: Option<Arguments>,
    /// The name after `as`.
    pub alias: Option<Name>,
}

/// An import statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    /// The raw text between the quotes; its span has the quotes.
    pub path: Name,
    /// What stands after `as`.
    pub alias: Option<ImportAlias>,
}

/// What stands after the `as` of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImportAlias {
    /// `as name`
    Name(Name),
    /// `as *`, and where the star is.
    All(Span),
}

/// A `func` statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Func {
    /// Never dotted.
    pub name: Name,
    /// Parameters and body.
    pub function: Function,
}

/// What follows the word `func` (and the name), in a statement or lambda.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// The parameters.
    pub parameters: Parameters,
    /// The type of the result, where it is given.
    pub result: Option<TypeExpr>,
    /// The one expression of the body.
    pub body: ExprId,
    /// From brace to brace.
    pub body_span: Span,
}

/// Parameters in parentheses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameters {
    /// In source order.
    pub items: Vec<Parameter>,
    /// From parenthesis to parenthesis.
    pub span: Span,
}

/// `$x int`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// Never dotted.
    pub name: Name,
    /// The type that the author gave.
    pub annotation: Option<TypeExpr>,
    /// From the `$` to the end of the type.
    pub span: Span,
}

/// Arguments in parentheses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arguments {
    /// In source order.
    pub items: Vec<ExprId>,
    /// From parenthesis to parenthesis.
    pub span: Span,
}

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    /// What it says.
    pub kind: ExprKind,
    /// From its first to its last token.
    pub span: Span,
}

/// The expressions of the language.
#[derive(Debug, Clone, PartialEq)]
pub enum ExprKind {
    /// What does not parse, which was reported; with whatever was understood of it.
    Unfinished(Vec<ExprId>),
    /// `true`, `false`
    Bool(bool),
    /// `42`, `-13`
    Integer(i64),
    /// `4.2`
    Float(f64),
    /// The raw text between the quotes: escapes and `${…}` are still in it, see [`super::interpolate`].
    String(Arc<str>),
    /// `[1, 2]`
    List(Vec<ExprId>),
    /// `{"a" => 1}`
    Map(Vec<MapEntry>),
    /// `struct{a => 1}`
    Struct(Vec<StructField>),
    /// `$a.b`
    Variable(Name),
    /// `f(1)`, `$f(1)`, `func() { 1 }()`
    Call(Box<Call>),
    /// `func($x) { $x }`
    Lambda(Box<Function>),
    /// `if c { 1 } else { 2 }`
    If(Box<IfExpr>),
    /// `(e)`
    Paren(ExprId),
    /// `a + b`
    Operator {
        /// Which one.
        operator: Operator,
        /// Where it stands.
        operator_span: Span,
        /// The left operand.
        left: ExprId,
        /// The right operand.
        right: ExprId,
    },
    /// `not a`
    Not(ExprId),
    /// `a in b`
    In {
        /// The element.
        left: ExprId,
        /// The list.
        right: ExprId,
    },
    /// `a[i]`
    Lookup {
        /// The list or map.
        base: ExprId,
        /// The index or key.
        index: ExprId,
    },
    /// `a->f`
    StructLookup {
        /// The struct.
        base: ExprId,
        /// The field.
        field: Name,
    },
    /// `a->f <|> d`
    StructLookupOptional {
        /// The struct.
        base: ExprId,
        /// The field.
        field: Name,
        /// The value if the struct's type has no such field.
        default: ExprId,
        /// Written `||`.
        old: bool,
    },
    /// `a <|> b`
    Except {
        /// The value.
        left: ExprId,
        /// The value while the left one has failed.
        right: ExprId,
        /// Written `||`, which attaches to the lookup on its left.
        old: bool,
    },
}

impl ExprKind {
    /// Calls `visit` with each expression directly below this one, in source order. The body of a lambda and the
    /// arguments of a call are among them.
    pub fn for_each_child(&self, mut visit: impl FnMut(ExprId)) {
        match self {
            ExprKind::Bool(_)
            | ExprKind::Integer(_)
            | ExprKind::Float(_)
            | ExprKind::String(_)
            | ExprKind::Variable(_) => {}
            ExprKind::List(elements) | ExprKind::Unfinished(elements) => {
                elements.iter().copied().for_each(visit);
            }
            ExprKind::Map(entries) => {
                for entry in entries {
                    visit(entry.key);
                    visit(entry.value);
                }
            }
            ExprKind::Struct(fields) => fields.iter().for_each(|field| visit(field.value)),
            ExprKind::Call(call) => {
                if let Callee::Lambda(lambda) = call.callee {
                    visit(lambda);
                }
                call.arguments.items.iter().copied().for_each(visit);
            }
            ExprKind::Lambda(function) => visit(function.body),
            ExprKind::If(branches) => {
                visit(branches.condition);
                visit(branches.then_branch);
                visit(branches.else_branch);
            }
            ExprKind::Paren(inner) | ExprKind::Not(inner) | ExprKind::StructLookup { base: inner, .. } => {
                visit(*inner);
            }
            ExprKind::Operator { left, right, .. }
            | ExprKind::In { left, right }
            | ExprKind::Lookup {
                base: left,
                index: right,
            }
            | ExprKind::StructLookupOptional {
                base: left,
                default: right,
                ..
            }
            | ExprKind::Except { left, right, .. } => {
                visit(*left);
                visit(*right);
            }
        }
    }
}

/// `key => value`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MapEntry {
    /// The key.
    pub key: ExprId,
    /// The value.
    pub value: ExprId,
}

/// `name => value`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StructField {
    /// The field.
    pub name: Name,
    /// Its value.
    pub value: ExprId,
}

/// A call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// What is called.
    pub callee: Callee,
    /// With what.
    pub arguments: Arguments,
}

/// What can be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Callee {
    /// A function: `fmt.printf`.
    Function(Name),
    /// A variable: `$f`, `$a.f`. The name has no `$`.
    Variable(Name),
    /// A lambda, called where it is written; the expression is an [`ExprKind::Lambda`].
    Lambda(ExprId),
}

/// An `if` expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IfExpr {
    /// The condition.
    pub condition: ExprId,
    /// The value when it is true.
    pub then_branch: ExprId,
    /// From brace to brace.
    pub then_span: Span,
    /// The value when it is false.
    pub else_branch: ExprId,
    /// From brace to brace; with `else if`, what the inner `if` spans.
    pub else_span: Span,
    /// Written `else if`: the else branch is an [`ExprKind::If`].
    pub else_if: bool,
}

/// Operators with two operands, but for `in` and `<|>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "`Operator::text` gives the spelling")]
pub enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Equal,
    NotEqual,
    Less,
    Greater,
    LessEqual,
    GreaterEqual,
    And,
    Or,
}

impl Operator {
    /// How it is written.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Operator::Add => "+",
            Operator::Subtract => "-",
            Operator::Multiply => "*",
            Operator::Divide => "/",
            Operator::Equal => "==",
            Operator::NotEqual => "!=",
            Operator::Less => "<",
            Operator::Greater => ">",
            Operator::LessEqual => "<=",
            Operator::GreaterEqual => ">=",
            Operator::And => "and",
            Operator::Or => "or",
        }
    }
}

/// A type as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeExpr {
    /// What it says.
    pub kind: TypeKind,
    /// From its first to its last token.
    pub span: Span,
}

impl TypeExpr {
    /// The first thing that `find` finds in this type or in a part of it, outermost first and in the order of the text.
    pub(crate) fn walk<T>(&self, find: &mut dyn FnMut(&TypeExpr) -> Option<T>) -> Option<T> {
        if let Some(found) = find(self) {
            return Some(found);
        }
        match &self.kind {
            TypeKind::Bool | TypeKind::Str | TypeKind::Int | TypeKind::Float | TypeKind::Variant => None,
            TypeKind::List(element) => element.walk(find),
            TypeKind::Map { key, value } => key.walk(find).or_else(|| value.walk(find)),
            TypeKind::Struct(fields) => fields.iter().find_map(|field| field.annotation.walk(find)),
            TypeKind::Func { arguments, result } => {
                let mut arguments = arguments.iter();
                let found = arguments.find_map(|argument| argument.annotation.walk(find));
                found.or_else(|| result.walk(find))
            }
        }
    }
}

/// The forms of a type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TypeKind {
    /// `bool`
    Bool,
    /// `str`
    Str,
    /// `int`
    Int,
    /// `float`
    Float,
    /// `variant`
    Variant,
    /// `[]T`
    List(Box<TypeExpr>),
    /// `map{K: V}`
    Map {
        /// The keys' type.
        key: Box<TypeExpr>,
        /// The values' type.
        value: Box<TypeExpr>,
    },
    /// `struct{a T; b U}`. The names are distinct, unless that was reported.
    Struct(Vec<TypeField>),
    /// `func($a T, U) R`. The names are distinct, unless that was reported.
    Func {
        /// The arguments.
        arguments: Vec<TypeArgument>,
        /// The result.
        result: Box<TypeExpr>,
    },
}

/// A field of a struct type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeField {
    /// Its name.
    pub name: Name,
    /// Its type.
    pub annotation: TypeExpr,
}

/// An argument of a function type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeArgument {
    /// Its name, which means nothing.
    pub name: Option<Name>,
    /// Its type.
    pub annotation: TypeExpr,
}
