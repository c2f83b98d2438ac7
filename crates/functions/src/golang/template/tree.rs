//! The tree of a template.

use std::collections::BTreeMap;

use super::datum::Datum;

/// A parsed text: its own nodes and the templates that it defines.
#[derive(Debug)]
pub(super) struct Template {
    pub main: Vec<Node>,
    pub defined: BTreeMap<Vec<u8>, Vec<Node>>,
}

/// Something with the line on which it begins.
#[derive(Debug)]
pub(super) struct Node {
    pub line: usize,
    pub kind: NodeKind,
}

#[derive(Debug)]
pub(super) enum NodeKind {
    Text(Vec<u8>),
    /// A pipeline whose value is printed, unless it sets a variable.
    Action(Pipe),
    If(Branches),
    With(Branches),
    Range(Branches),
    Template {
        name: Vec<u8>,
        argument: Option<Pipe>,
    },
    Break,
    Continue,
}

/// A condition, and what to do with and without it.
#[derive(Debug)]
pub(super) struct Branches {
    pub pipe: Pipe,
    pub then: Vec<Node>,
    pub otherwise: Vec<Node>,
}

/// Commands, each of which gets the value of the one before, and the variables that take the value of the last.
#[derive(Debug)]
pub(super) struct Pipe {
    pub variables: Vec<String>,
    /// `=` instead of `:=`.
    pub assigns: bool,
    pub commands: Vec<Command>,
}

/// A function, field or value with its arguments.
#[derive(Debug)]
pub(super) struct Command {
    pub words: Vec<Expression>,
}

#[derive(Debug)]
pub(super) enum Expression {
    Dot,
    Nil,
    Bool(bool),
    Number(Number),
    Str(Vec<u8>),
    /// The name of a function.
    Function(String),
    /// `.A.B`.
    Field(Vec<String>),
    /// `$x.A.B`.
    Variable(String, Vec<String>),
    /// `(…).A.B`; without names just a pipeline in parentheses.
    Chain(Box<Expression>, Vec<String>),
    Pipe(Pipe),
}

/// A number as it is written: it may serve as either kind.
#[derive(Debug, Clone, Copy)]
pub(super) struct Number {
    pub int: Option<i64>,
    pub float: f64,
    /// Whether it is written as a float.
    pub is_float: bool,
}

impl Number {
    /// The value where nothing asks for a type.
    pub(super) fn ideal(self) -> Datum {
        match self.int {
            Some(int) if !self.is_float => Datum::Int(int),
            _ => Datum::Float(self.float),
        }
    }
}
