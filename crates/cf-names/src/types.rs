//! The types of attributes, and of parameters and results of functions.

use crate::ids::{EntityId, TypedefId};

/// The type of an attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttributeType {
    /// Of what.
    pub base: BaseType,
    /// Whether it is a list of them.
    pub list: bool,
    /// Whether null is allowed.
    pub nullable: bool,
}

/// What an attribute is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BaseType {
    /// `string`.
    String,
    /// `int`.
    Int,
    /// `float`.
    Float,
    /// `number`.
    Number,
    /// `bool`.
    Bool,
    /// `list`: a list of literals.
    List,
    /// `dict`: a dict of literals.
    Dict,
    /// A typedef.
    Typedef(TypedefId),
}

impl BaseType {
    /// The basic types, by their names.
    pub const PRIMITIVES: [(&str, BaseType); 7] = [
        ("string", BaseType::String),
        ("int", BaseType::Int),
        ("float", BaseType::Float),
        ("number", BaseType::Number),
        ("bool", BaseType::Bool),
        ("list", BaseType::List),
        ("dict", BaseType::Dict),
    ];

    /// The basic type of a name.
    #[must_use]
    pub fn primitive(name: &str) -> Option<BaseType> {
        let known = BaseType::PRIMITIVES.iter().find(|(known, _)| *known == name);
        known.map(|(_, base)| *base)
    }

    /// As it is written; `typedef_name` tells how a typedef is called.
    pub fn written<'a>(self, typedef_name: impl FnOnce(TypedefId) -> &'a str) -> &'a str {
        match self {
            BaseType::String => "string",
            BaseType::Int => "int",
            BaseType::Float => "float",
            BaseType::Number => "number",
            BaseType::Bool => "bool",
            BaseType::List => "list",
            BaseType::Dict => "dict",
            BaseType::Typedef(typedef) => typedef_name(typedef),
        }
    }
}

/// The type of a parameter or result of a function.
#[derive(Debug, Clone, PartialEq)]
pub enum SignatureType {
    /// `any`: everything but deferred references.
    Any,
    /// Everything, deferred references too.
    Anything,
    /// `null`.
    Null,
    /// A type of attributes.
    Attribute(AttributeType),
    /// Any list.
    List,
    /// Any dict.
    Dict,
    /// A list of a type.
    ListOf(Box<SignatureType>),
    /// A dict with values of a type.
    DictOf(Box<SignatureType>),
    /// Instances of an entity.
    Entity(EntityId),
    /// A deferred reference to a type.
    Reference(Box<SignatureType>),
    /// One of several, the first that accepts.
    Union(Vec<SignatureType>),
}
