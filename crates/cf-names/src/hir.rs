//! A model with all names resolved: what is executed.
//!
//! Definitions of all files are collected first; their order does not matter. Everything lies in vectors and refers to each other by
//! number. What only execution can know (which entity an instance has, hence which attribute a name means) stays a [`Symbol`].

use std::sync::Arc;

use rustc_hash::FxHashMap;
use setpoint_cf_syntax::ast::{Literal, Multiplicity, Operator, Regex};
use setpoint_diagnostics::{FileId, Span};
use setpoint_graph::KindSchema;
use setpoint_value::FunctionRef;

use crate::ids::{EntityId, FunctionId, ImplementationId, IndexId, NamespaceId, RelationId, Symbol};
use crate::plugins::{PluginFunction, Plugins};
use crate::types::{AttributeType, BaseType};

/// All that was loaded, resolved.
#[derive(Debug, Default)]
pub struct Model {
    /// Texts of [`Symbol`]s.
    pub symbols: Vec<Arc<str>>,
    /// All namespaces, in the order in which their statements are emitted: the main file first, then as they were loaded.
    pub namespaces: Vec<Namespace>,
    /// All entities. `std::Entity` is the first.
    pub entities: Vec<Entity>,
    /// All typedefs.
    pub typedefs: Vec<Typedef>,
    /// All implementations.
    pub implementations: Vec<Implementation>,
    /// All ends of relations.
    pub relations: Vec<Relation>,
    /// All indexes, each once.
    pub indexes: Vec<Index>,
    /// All functions that some call names.
    pub functions: Vec<Function>,
    /// Which relations are frozen before which: all of `before` of an element before its `after`. Free of cycles.
    pub precedence: Vec<(RelationId, RelationId)>,
    /// The modules, with the directories that hold their `templates` and `files`; the project itself has the empty name. What is built in
    /// has no directory and is not among them.
    pub modules: FxHashMap<Arc<str>, Arc<str>>,
    /// What the modules have in Python, for those who learn of names only when they execute.
    pub plugins: Option<Arc<Plugins>>,
}

impl Model {
    /// The namespace that a prefix (`a::b`) stands for in another namespace.
    #[must_use]
    pub fn visible(&self, namespace: NamespaceId, prefix: &str) -> Option<NamespaceId> {
        let of = &self.namespaces[namespace.index()];
        if let Some(imported) = of.imports.get(prefix) {
            return Some(*imported);
        }
        (prefix == &*of.name).then_some(namespace)
    }

    /// The text of a name.
    #[must_use]
    pub fn text(&self, symbol: Symbol) -> &Arc<str> {
        &self.symbols[symbol.index()]
    }

    /// Whether `below` is `above` or descends from it.
    #[must_use]
    pub fn is_below(&self, below: EntityId, above: EntityId) -> bool {
        below == above
            || self.entities[below.index()]
                .ancestors
                .binary_search(&above)
                .is_ok()
    }
}

/// The statements of a file, and its variables.
#[derive(Debug)]
pub struct Namespace {
    /// `__config__`, `std`, `a::b`.
    pub name: Arc<str>,
    /// Its file.
    pub file: FileId,
    /// The namespace that it is a part of.
    pub parent: Option<NamespaceId>,
    /// What is visible here, by the name under which it is: imports, and `std`.
    pub imports: FxHashMap<Arc<str>, NamespaceId>,
    /// Whether it has the functions of the shared library's module of this name.
    pub has_library_functions: bool,
    /// Its variables and statements.
    pub body: Block,
}

/// Statements with the variables that exist anew each time they are executed.
#[derive(Debug, Default)]
pub struct Block {
    /// The block's variables. That of a loop is the first in its body.
    pub variables: Vec<Variable>,
    /// In the order of the text.
    pub statements: Vec<Statement>,
}

/// A variable of a block or namespace.
#[derive(Debug)]
pub struct Variable {
    /// Its name.
    pub name: Symbol,
    /// The first assignment.
    pub span: Span,
}

/// An entity.
#[derive(Debug)]
pub struct Entity {
    /// With its namespace: `__config__::Host`.
    pub name: Arc<str>,
    /// Its namespace.
    pub namespace: NamespaceId,
    /// Where its name is defined; `None` for what is built in.
    pub span: Option<Span>,
    /// What it extends, in the order of the text.
    pub parents: Vec<EntityId>,
    /// All it descends from, sorted, without itself.
    pub ancestors: Vec<EntityId>,
    /// All that descend from it, sorted, without itself.
    pub descendants: Vec<EntityId>,
    /// All attributes and relations, inherited ones too. An instance has a slot for each. Defaults are assigned in this order:
    /// inherited before own, of right parents before those of left ones.
    pub members: Vec<Member>,
    /// Where a name is in `members`.
    pub by_name: FxHashMap<Symbol, u32>,
    /// All its indexes, inherited ones too.
    pub indexes: Vec<IndexId>,
    /// Its own `implement` statements and, where it takes them, those of its parents, in the order in which they are tried.
    pub implements: Vec<Arc<Implement>>,
    /// The kind of resource that it was made from.
    pub kind: Option<&'static KindSchema>,
    /// Its documentation.
    pub doc: Option<Arc<str>>,
}

impl Entity {
    /// The member of a name, with its slot.
    #[must_use]
    pub fn member(&self, name: Symbol) -> Option<(u32, &Member)> {
        let slot = *self.by_name.get(&name)?;
        Some((slot, &self.members[slot as usize]))
    }
}

/// An attribute or relation of an entity.
#[derive(Debug, Clone)]
pub struct Member {
    /// Its name.
    pub name: Symbol,
    /// Where it is declared.
    pub span: Option<Span>,
    /// Which.
    pub kind: MemberKind,
}

/// What a member is.
#[derive(Debug, Clone)]
pub enum MemberKind {
    /// An attribute.
    Attribute {
        /// Its type.
        ty: AttributeType,
        /// What it is if nobody says: an expression of literals.
        default: Option<Arc<Expression>>,
        /// Whether it becomes null when nobody has said anything at the end. Only of entities that were made from a kind.
        optional: bool,
    },
    /// An end of a relation.
    Relation(RelationId),
}

/// `typedef t as base matching condition`.
#[derive(Debug)]
pub struct Typedef {
    /// With its namespace.
    pub name: Arc<str>,
    /// Its namespace, in which functions of the condition are looked up.
    pub namespace: NamespaceId,
    /// Where its name is defined; `None` for what is built in.
    pub span: Option<Span>,
    /// What it narrows: never a list or nullable.
    pub base: BaseType,
    /// What its values fulfil.
    pub constraint: Constraint,
    /// Its documentation.
    pub doc: Option<Arc<str>>,
}

/// What the values of a typedef fulfil.
#[derive(Debug)]
pub enum Constraint {
    /// An expression in which `self` is the value: a [`Place::TypedefSelf`].
    Expression(Expression),
    /// A pattern that matches at the start.
    Regex(Regex, Arc<fancy_regex::Regex>),
}

/// An end of a relation: a member of an entity that holds instances of another.
#[derive(Debug)]
pub struct Relation {
    /// The entity that has it.
    pub owner: EntityId,
    /// Its name there.
    pub name: Symbol,
    /// What it holds.
    pub target: EntityId,
    /// How many.
    pub multiplicity: Multiplicity,
    /// The other end, if it has a name.
    pub inverse: Option<RelationId>,
    /// Where it is declared.
    pub span: Option<Span>,
    /// Evaluated once, in the namespace of the declaration. Only at the end that is written first.
    pub annotations: Vec<Expression>,
    /// The namespace of the declaration.
    pub namespace: NamespaceId,
    /// Its documentation.
    pub doc: Option<Arc<str>>,
}

impl Relation {
    /// Whether it holds one instance, always.
    #[must_use]
    pub fn is_required_single(&self) -> bool {
        self.multiplicity.low == 1 && self.multiplicity.high == Some(1)
    }

    /// Whether it holds one instance or none.
    #[must_use]
    pub fn is_optional(&self) -> bool {
        self.multiplicity.low == 0 && self.multiplicity.high == Some(1)
    }

    /// Whether it holds a list.
    #[must_use]
    pub fn is_list(&self) -> bool {
        !self.is_required_single() && !self.is_optional()
    }
}

/// `index E(a, b)`.
#[derive(Debug)]
pub struct Index {
    /// The entity that declares it.
    pub entity: EntityId,
    /// Its members, as declared.
    pub members: Vec<Symbol>,
    /// The statement; `None` for what is built in.
    pub span: Option<Span>,
}

/// `implementation i for E: … end`.
#[derive(Debug)]
pub struct Implementation {
    /// With its namespace.
    pub name: Arc<str>,
    /// The namespace in which it is written.
    pub namespace: NamespaceId,
    /// The entity that it is for.
    pub entity: EntityId,
    /// Where its name is defined; `None` for what is built in.
    pub span: Option<Span>,
    /// What it does.
    pub body: Block,
    /// Its documentation.
    pub doc: Option<Arc<str>>,
}

/// `implement E using i when condition`, without `parents`, which is resolved.
#[derive(Debug)]
pub struct Implement {
    /// The namespace in which it is written.
    pub namespace: NamespaceId,
    /// What it selects, in the order of the text.
    pub using: Vec<ImplementationId>,
    /// When: names are attributes of the instance first, then variables of the namespace.
    pub condition: Option<Expression>,
    /// The statement; `None` for what is built in.
    pub span: Option<Span>,
}

/// A function that a call can name.
#[derive(Debug, Clone)]
pub struct Function {
    /// As it is called: `std::upper`.
    pub name: Arc<str>,
    /// What does it.
    pub implementation: FunctionImplementation,
}

/// What does a function's work.
#[derive(Debug, Clone)]
pub enum FunctionImplementation {
    /// A function of the language's own module `std`: its number in that table.
    Std(u16),
    /// A function of the shared library.
    Library(FunctionRef),
    /// A function that a module has in Python.
    Plugin(Arc<PluginFunction>),
}

/// A statement.
#[derive(Debug)]
pub struct Statement {
    /// Which.
    pub kind: StatementKind,
    /// All of it.
    pub span: Span,
}

/// The sorts of statements.
#[derive(Debug)]
pub enum StatementKind {
    /// `x = e`.
    AssignVariable {
        /// A variable of a block or namespace.
        target: Place,
        /// The value.
        value: Expression,
        /// The target as written.
        target_span: Span,
    },
    /// `r.a = e`, `r.a += e`.
    AssignMember {
        /// The instance.
        instance: Expression,
        /// Its attribute or relation.
        member: Symbol,
        /// Where that is written.
        member_span: Span,
        /// Whether `+=` was written.
        add: bool,
        /// The value.
        value: Expression,
    },
    /// `for x in e: … end`.
    For {
        /// What is gone through.
        iterable: Expression,
        /// What is done for each; the first variable is that of the loop.
        body: Block,
    },
    /// `if … elif … else … end`.
    If {
        /// Conditions with what is done if they are the first that hold.
        branches: Vec<(Expression, Block)>,
        /// What is done if none holds.
        otherwise: Option<Block>,
    },
    /// An expression for its effects.
    Expression(Expression),
}

/// Where a name leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A variable of the block that is `up` blocks outwards: 0 is the innermost. Loops, branches, comprehensions and bodies of implementations
    /// are blocks; namespaces are not.
    Local {
        /// How many blocks outwards.
        up: u16,
        /// Which of its variables.
        index: u32,
    },
    /// A variable of a namespace.
    Namespace {
        /// Whose.
        namespace: NamespaceId,
        /// Which of its variables.
        index: u32,
    },
    /// `self` in an implementation or a condition of `implement`.
    Instance,
    /// In an implementation or a condition of `implement`: an attribute or relation of the instance if it has one of this name, else a
    /// variable of the namespace, else not found.
    Member {
        /// The name.
        name: Symbol,
        /// The variable of the namespace.
        otherwise: Option<(NamespaceId, u32)>,
    },
    /// `self` in a typedef, or a variable with the typedef's own name, which is never bound.
    TypedefSelf,
    /// Nothing has this name: an error when it is executed.
    NotFound(Symbol),
}

/// An expression.
#[derive(Debug)]
pub struct Expression {
    /// Which.
    pub kind: ExpressionKind,
    /// All of it.
    pub span: Span,
}

/// The sorts of expressions.
#[derive(Debug)]
pub enum ExpressionKind {
    /// A literal.
    Literal(Literal),
    /// A list of literals only, already flat.
    ConstantList(Arc<[crate::datum::Datum]>),
    /// Whether the variable at the place matches.
    Matches {
        /// `self`.
        place: Place,
        /// The pattern.
        regex: Arc<fancy_regex::Regex>,
    },
    /// A variable.
    Variable(Place),
    /// `e.a`.
    Attribute {
        /// The instance.
        of: Box<Expression>,
        /// The name.
        name: Symbol,
        /// Where that is written.
        name_span: Span,
    },
    /// A text with `{{…}}`.
    Interpolated(Vec<TextPart>),
    /// An f-string.
    Format(Vec<FormatPart>),
    /// `[a, b]`.
    List(Vec<Expression>),
    /// `{"k": a}`.
    Dict(Vec<(Arc<str>, Expression)>),
    /// `[e for x in l if c]`: each loop is a block of one variable, inside the one before it.
    Comprehension(Box<Comprehension>),
    /// `not e`.
    Not(Box<Expression>),
    /// Operators of one level that associate to the left.
    Operators {
        /// The leftmost operand.
        first: Box<Expression>,
        /// The others with the operators before them.
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
    /// `x is defined`, `a.b is defined`.
    IsDefined(Box<Expression>),
    /// `d["k"] is defined`.
    LookupIsDefined(Box<MapLookup>),
    /// `d["k"]`.
    MapLookup(Box<MapLookup>),
    /// `int(e)`.
    Cast {
        /// To what.
        to: BaseType,
        /// What.
        value: Box<Expression>,
    },
    /// A function.
    Call {
        /// Which.
        function: FunctionId,
        /// By position, in the order of the text.
        positional: Vec<Expression>,
        /// By name, in the order of the text.
        keywords: Vec<(Symbol, Span, Expression)>,
        /// Behind `**`.
        dicts: Vec<Expression>,
        /// Where its name is written.
        name_span: Span,
        /// The namespace of the call: where templates look for names and files.
        namespace: NamespaceId,
    },
    /// `E(k=a)`.
    Constructor(Box<Constructor>),
    /// `E[k=a]`.
    IndexLookup {
        /// The entity.
        entity: EntityId,
        /// By name.
        keywords: Vec<(Symbol, Span, Expression)>,
        /// Behind `**`.
        dicts: Vec<Expression>,
    },
    /// `x.rel[k=a]`.
    SelectorLookup {
        /// The instance.
        instance: Box<Expression>,
        /// The relation.
        relation: Symbol,
        /// By name.
        keywords: Vec<(Symbol, Span, Expression)>,
        /// Behind `**`.
        dicts: Vec<Expression>,
    },
}

/// A part of a text with `{{…}}`.
#[derive(Debug)]
pub enum TextPart {
    /// Text.
    Text(Arc<str>),
    /// What is put in place.
    Field(Expression),
}

/// A part of an f-string.
#[derive(Debug)]
pub enum FormatPart {
    /// Text.
    Text(Arc<str>),
    /// What is put in place.
    Field {
        /// What; none for `{}` and `{0}`, which are refused.
        value: Option<Expression>,
        /// `r`, `s` or `a`.
        conversion: Option<char>,
        /// Texts and fields without a specification of their own.
        specification: Vec<FormatPart>,
        /// From brace to brace.
        span: Span,
    },
}

/// `d["k"]`.
#[derive(Debug)]
pub struct MapLookup {
    /// The dict.
    pub dict: Expression,
    /// The key.
    pub key: Expression,
}

/// `[value for x in l for y in m if c if d]`.
#[derive(Debug)]
pub struct Comprehension {
    /// What each element becomes.
    pub value: Expression,
    /// What is gone through, outermost first, with the names of the variables. Each sees the variables of those before it.
    pub loops: Vec<(Symbol, Expression)>,
    /// All must hold.
    pub conditions: Vec<Expression>,
}

/// `E(k=a, **d)`.
#[derive(Debug)]
pub struct Constructor {
    /// The entity.
    pub entity: EntityId,
    /// What is given by name, positional ones included, in the order of the text.
    pub keywords: Vec<(Symbol, Span, Expression)>,
    /// Behind `**`.
    pub dicts: Vec<Expression>,
    /// The index member that is the instance on whose relation this constructor is assigned, if it can be inferred and is not given.
    pub inferred: Option<Symbol>,
}
