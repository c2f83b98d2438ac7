//! What the text of one file says, with the places where it says so.
//!
//! Names are not resolved here. Nesting is bounded by the parser, so that whoever walks over a tree may recurse; what a program may
//! repeat without nesting (operators of one level, `elif`) is a list.

use std::sync::Arc;

use setpoint_diagnostics::{FileId, Span};

/// One file.
#[derive(Debug, Clone)]
pub struct File {
    /// What all spans point into.
    pub file: FileId,
    /// The text before everything else, which documents the file.
    pub doc: Option<Doc>,
    /// Definitions, imports and statements, in the order of the text.
    pub items: Vec<Item>,
}

/// A name and where it stands.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Name {
    /// The name.
    pub text: Arc<str>,
    /// Its place.
    pub span: Span,
}

/// A name with its namespace: `a::b::c`. A reference to a namespace has the same form.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Path {
    /// The names before the last one.
    pub namespace: Vec<Name>,
    /// The last name.
    pub name: Name,
    /// All of it.
    pub span: Span,
}

/// A text that documents what stands before or around it. Escapes are processed, nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doc {
    /// The text.
    pub text: Arc<str>,
    /// The literal.
    pub span: Span,
}

/// What can stand at the top of a file.
#[derive(Debug, Clone)]
pub enum Item {
    /// `import a::b as c`.
    Import(Import),
    /// `entity … end`.
    Entity(Entity),
    /// `A.b [1] -- B.c [0:]`.
    Relation(Relation),
    /// `typedef t as string matching …`.
    Typedef(Typedef),
    /// `index E(a, b)`.
    Index(Index),
    /// `implementation i for E: … end`.
    Implementation(Implementation),
    /// `implement E using i when …`.
    Implement(Implement),
    /// A statement.
    Statement(Statement),
}

/// `import a::b as c`.
#[derive(Debug, Clone)]
pub struct Import {
    /// What is imported.
    pub path: Path,
    /// The name by which it is visible here, if it is another.
    pub alias: Option<Name>,
    /// The whole statement.
    pub span: Span,
}

/// `entity E extends A, b::C: … end`.
#[derive(Debug, Clone)]
pub struct Entity {
    /// Its name.
    pub name: Name,
    /// What it extends, as written.
    pub parents: Vec<Path>,
    /// Its documentation.
    pub doc: Option<Doc>,
    /// Its attributes, in the order of the text.
    pub attributes: Vec<Attribute>,
    /// The whole definition.
    pub span: Span,
}

/// `string? a = "x"` inside an entity.
#[derive(Debug, Clone)]
pub struct Attribute {
    /// Its type.
    pub ty: TypeName,
    /// Its name.
    pub name: Name,
    /// What stands behind the `=`.
    pub default: Option<Default>,
    /// The whole line.
    pub span: Span,
}

/// What an attribute is if nobody says.
#[derive(Debug, Clone)]
pub enum Default {
    /// `= undef`: an inherited default is taken away.
    Undef(Span),
    /// Any expression that can stand there. Whether it is constant is not judged by the grammar.
    Value(Expression),
}

/// The type of an attribute, as written.
#[derive(Debug, Clone)]
pub struct TypeName {
    /// The name: `string`, `dict`, `ip::port`.
    pub path: Path,
    /// `[]` behind it.
    pub list: bool,
    /// `?` behind it.
    pub nullable: bool,
    /// All of it.
    pub span: Span,
}

/// `A.b [1] -- B.c [0:]`, `A.b [1] B`, or with annotations in place of the dashes.
#[derive(Debug, Clone)]
pub struct Relation {
    /// The end at the left: its name belongs to the left entity.
    pub left: RelationEnd,
    /// The entity at the right, and the name by which it knows the left one, if it does.
    pub right: RelationTarget,
    /// Expressions in place of the dashes.
    pub annotations: Vec<Expression>,
    /// Its documentation.
    pub doc: Option<Doc>,
    /// The whole statement.
    pub span: Span,
}

/// `A.b [1]`.
#[derive(Debug, Clone)]
pub struct RelationEnd {
    /// The entity.
    pub entity: Path,
    /// The name that the entity gets.
    pub name: Name,
    /// How many.
    pub multiplicity: Multiplicity,
}

/// `B` or `B.c [0:]`.
#[derive(Debug, Clone)]
pub struct RelationTarget {
    /// The entity.
    pub entity: Path,
    /// The name that the entity gets, and how many.
    pub inverse: Option<(Name, Multiplicity)>,
}

/// `[1]`, `[0:]`, `[:2]`, `[1:2]`. Negative numbers can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Multiplicity {
    /// At least.
    pub low: i64,
    /// At most; none: any number.
    pub high: Option<i64>,
    /// With its brackets.
    pub span: Span,
}

/// `typedef t as base matching condition`.
#[derive(Debug, Clone)]
pub struct Typedef {
    /// Its name.
    pub name: Name,
    /// What it narrows.
    pub base: Path,
    /// What its values fulfil.
    pub constraint: Constraint,
    /// Its documentation.
    pub doc: Option<Doc>,
    /// The whole statement.
    pub span: Span,
}

/// What the values of a typedef fulfil.
#[derive(Debug, Clone)]
pub enum Constraint {
    /// `matching EXPRESSION`.
    Expression(Expression),
    /// `matching /…/`.
    Regex(Regex),
}

/// `/…/` behind `matching`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Regex {
    /// What stands between the slashes, `\/` as it is written.
    pub pattern: Arc<str>,
    /// From the first slash to the last.
    pub span: Span,
}

/// `index E(a, b)`.
#[derive(Debug, Clone)]
pub struct Index {
    /// The entity.
    pub entity: Path,
    /// Its members.
    pub members: Vec<Name>,
    /// The whole statement.
    pub span: Span,
}

/// `implementation i for E: … end`.
#[derive(Debug, Clone)]
pub struct Implementation {
    /// Its name.
    pub name: Name,
    /// The entity that it is for.
    pub entity: Path,
    /// Its documentation.
    pub doc: Option<Doc>,
    /// What it does.
    pub body: Block,
    /// The whole definition.
    pub span: Span,
}

/// `implement E using i, parents when condition`.
#[derive(Debug, Clone)]
pub struct Implement {
    /// The entity.
    pub entity: Path,
    /// What it uses, in the order of the text.
    pub using: Vec<Using>,
    /// When.
    pub condition: Option<Expression>,
    /// Its documentation.
    pub doc: Option<Doc>,
    /// The whole statement.
    pub span: Span,
}

/// One of what an `implement` uses.
#[derive(Debug, Clone)]
pub enum Using {
    /// An implementation.
    Implementation(Path),
    /// `parents`.
    Parents(Span),
}

/// Statements up to `end`, `elif` or `else`.
#[derive(Debug, Clone)]
pub struct Block {
    /// In the order of the text.
    pub statements: Vec<Statement>,
    /// From the first to the last; empty at the place where they would stand if there are none.
    pub span: Span,
}

/// A statement.
#[derive(Debug, Clone)]
pub struct Statement {
    /// Which.
    pub kind: StatementKind,
    /// All of it.
    pub span: Span,
}

/// The sorts of statements.
#[derive(Debug, Clone)]
pub enum StatementKind {
    /// `x = e`, `a::x = e`, `a.b.c = e`.
    Assign(Assignment),
    /// `for x in e: … end`.
    For {
        /// The loop variable.
        variable: Name,
        /// What is gone through.
        iterable: Expression,
        /// What is done for each.
        body: Block,
    },
    /// `if … elif … else … end`.
    If {
        /// Conditions with what is done if they are the first that hold. Never empty.
        branches: Vec<(Expression, Block)>,
        /// What is done if none holds.
        otherwise: Option<Block>,
    },
    /// An expression for its effects.
    Expression(Expression),
}

/// `target = value`, `target += value`.
#[derive(Debug, Clone)]
pub struct Assignment {
    /// What gets the value.
    pub target: Reference,
    /// Whether `+=` was written.
    pub add: bool,
    /// The value.
    pub value: Expression,
}

/// `a::b.c.d`: a variable, then attributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The variable.
    pub variable: Path,
    /// Attributes, outermost last.
    pub attributes: Vec<Name>,
    /// All of it.
    pub span: Span,
}

/// An expression.
#[derive(Debug, Clone)]
pub struct Expression {
    /// Which.
    pub kind: ExpressionKind,
    /// All of it, without parentheses around it.
    pub span: Span,
}

/// The sorts of expressions.
#[derive(Debug, Clone)]
pub enum ExpressionKind {
    /// A literal without fields.
    Literal(Literal),
    /// `/…/` with `matching` before it, outside a typedef: whether the variable `self` matches.
    Regex(Regex),
    /// A text with `{{…}}`.
    Interpolated(Vec<TextPart>),
    /// `f"…"`, also without fields.
    Format(Vec<FormatPart>),
    /// A variable, or attributes of one.
    Reference(Reference),
    /// `(e)`.
    Parentheses(Box<Expression>),
    /// `[a, b]`.
    List(Vec<Expression>),
    /// `{"k": a}`.
    Dict(Vec<(DictKey, Expression)>),
    /// `[e for x in l if c]`.
    Comprehension(Box<Comprehension>),
    /// `not e`.
    Not(Box<Expression>),
    /// Operators of one level that associate to the left: `((first op a) op b) op c`. `and` and `or` too.
    Operators {
        /// The leftmost operand.
        first: Box<Expression>,
        /// The others with the operators before them. Never empty.
        rest: Vec<(Operator, Span, Expression)>,
    },
    /// `c ? a : b`.
    Conditional {
        /// What decides.
        condition: Box<Expression>,
        /// If it holds.
        then: Box<Expression>,
        /// If not.
        otherwise: Box<Expression>,
    },
    /// `a.b is defined`.
    IsDefined(Reference),
    /// `d["k"] is defined`.
    LookupIsDefined(Box<MapLookup>),
    /// `f(a, k=b, **c)`.
    Call {
        /// The function or primitive type.
        function: Path,
        /// What it is given, in the order of the text.
        arguments: Vec<Argument>,
    },
    /// `E(a, k=b, **c)`.
    Constructor {
        /// The entity.
        entity: Path,
        /// What it is given, in the order of the text.
        arguments: Vec<Argument>,
    },
    /// `E[k=a]`.
    IndexLookup {
        /// The entity.
        entity: Path,
        /// Keywords and `**`.
        arguments: Vec<Argument>,
    },
    /// `x.rel[k=a]`.
    SelectorLookup {
        /// The instance and the relation, which is the last attribute.
        relation: Reference,
        /// Keywords and `**`.
        arguments: Vec<Argument>,
    },
    /// `d["k"]`.
    MapLookup(Box<MapLookup>),
    /// Something that was no expression; it has been reported.
    Missing,
}

/// `d["k"]`, `d["k"]["l"]`.
#[derive(Debug, Clone)]
pub struct MapLookup {
    /// A reference, or another lookup.
    pub dict: Expression,
    /// The key.
    pub key: Expression,
}

/// A literal.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    /// A whole number.
    Int(i64),
    /// A number with a point.
    Float(f64),
    /// A text, escapes processed.
    Text(Arc<str>),
    /// `true`, `false`.
    Bool(bool),
    /// `null`.
    Null,
}

/// A part of a text with `{{…}}`.
#[derive(Debug, Clone)]
pub enum TextPart {
    /// Text, escapes processed.
    Text(Arc<str>),
    /// `{{ a.b }}`. The names may be no names (`{{ 1 }}`): nothing is found under them then.
    Field(Reference),
}

/// A part of an f-string.
#[derive(Debug, Clone)]
pub enum FormatPart {
    /// Text, escapes processed.
    Text(Arc<str>),
    /// `{a.b!r:>10}`.
    Field {
        /// What is formatted.
        value: FormatValue,
        /// `r`, `s` or `a` behind a `!`.
        conversion: Option<char>,
        /// What stands behind the `:`; only texts and fields without a specification of their own.
        specification: Vec<FormatPart>,
        /// From brace to brace.
        span: Span,
    },
}

/// What a field of an f-string formats.
#[derive(Debug, Clone)]
pub enum FormatValue {
    /// A variable or attributes of one. Names are as written, and may be no names (`a[x]`): nothing is found under them then.
    Reference(Reference),
    /// `{}` or `{0}`, which is refused when the string is made.
    Positional,
}

/// The key in a literal of a dict: a text without fields.
#[derive(Debug, Clone)]
pub struct DictKey {
    /// The key.
    pub text: Arc<str>,
    /// The literal.
    pub span: Span,
}

/// `[value for x in l for y in m if c if d]`.
#[derive(Debug, Clone)]
pub struct Comprehension {
    /// What each element becomes.
    pub value: Expression,
    /// Variables with what they go through, outermost first. Never empty.
    pub loops: Vec<(Name, Expression)>,
    /// All must hold.
    pub conditions: Vec<Expression>,
}

/// What a call, a constructor or a lookup is given.
#[derive(Debug, Clone)]
pub enum Argument {
    /// `e`.
    Positional(Expression),
    /// `k=e`.
    Keyword(Name, Expression),
    /// `**e`; the place is that of the stars.
    Dict(Span, Expression),
}

/// An operator between two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operator {
    /// `or`.
    Or,
    /// `and`.
    And,
    /// `==`.
    Equal,
    /// `!=`.
    NotEqual,
    /// `<`.
    Less,
    /// `<=`.
    LessOrEqual,
    /// `>`.
    Greater,
    /// `>=`.
    GreaterOrEqual,
    /// `+`.
    Add,
    /// `-`.
    Subtract,
    /// `*`.
    Multiply,
    /// `/`.
    Divide,
    /// `%`.
    Remainder,
    /// `**`.
    Power,
    /// `in`.
    In,
    /// `not in`.
    NotIn,
}
