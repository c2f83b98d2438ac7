//! Entities that are made from kinds of resources, so that each kind can be constructed: `setpoint::File` is of kind `file`.
//!
//! The parts of a kind's name before the last one are namespaces below `setpoint`, the last one is the entity, in capitals: kind
//! `http:server:file` is `setpoint::http::server::File`. Each parameter that the language can express is an optional attribute.

use std::borrow::Cow;

use setpoint_cf_syntax::TokenKind;
use setpoint_graph::{KindSchema, Library, ParameterSchema, ParameterType};

use crate::types::{AttributeType, BaseType};

/// What every resource has.
const MEMBERS: &[&str] = &[
    "requires",
    "provides",
    "send_event",
    "receive_events",
    "report_only",
    "purged",
    "purge_on_delete",
    "managed",
    "name",
    "machine",
    "meta",
];

/// The namespace and the name of the entity of a kind.
#[must_use]
pub fn entity_of(kind: &str) -> (String, String) {
    let mut namespace = "setpoint".to_owned();
    let mut parts = kind.split(':').peekable();
    let mut last = "";
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            last = part;
        } else {
            namespace.push_str("::");
            namespace.push_str(part);
        }
    }
    let mut name = String::new();
    for word in last.split('_') {
        let mut characters = word.chars();
        name.extend(characters.next().map(|first| first.to_ascii_uppercase()));
        name.push_str(characters.as_str());
    }
    (namespace, name)
}

/// Whether some kind has its entity in this namespace or below it.
pub(crate) fn is_namespace(library: &Library, namespace: &str) -> bool {
    library.kinds.keys().any(|kind| {
        let (of, _) = entity_of(kind);
        of.strip_prefix(namespace)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    })
}

/// All namespaces that entities of kinds are in.
pub(crate) fn namespaces(library: &Library) -> Vec<String> {
    let mut found: Vec<String> = library.kinds.keys().map(|kind| entity_of(kind).0).collect();
    found.sort();
    found.dedup();
    found
}

/// The attribute that stands for a parameter.
#[must_use]
pub fn attribute_name(parameter: &str) -> Cow<'_, str> {
    if is_reserved(parameter) {
        Cow::Owned(format!("{parameter}_"))
    } else {
        Cow::Borrowed(parameter)
    }
}

/// The parameter that an attribute of a kind's entity stands for.
#[must_use]
pub fn parameter_of(schema: &KindSchema, attribute: &str) -> Option<&'static ParameterSchema> {
    match attribute.strip_suffix('_') {
        Some(reserved) if is_reserved(reserved) => schema.parameter(reserved),
        _ if is_reserved(attribute) => None,
        _ => schema.parameter(attribute),
    }
}

fn is_reserved(name: &str) -> bool {
    TokenKind::of_word(name).is_some() || MEMBERS.contains(&name)
}

/// The type of the attribute for a parameter; none where the language cannot express the values.
#[must_use]
pub fn attribute_type(parameter: &ParameterType) -> Option<AttributeType> {
    let of = |base| AttributeType {
        base,
        list: false,
        nullable: true,
    };
    Some(match parameter {
        ParameterType::Str => of(BaseType::String),
        ParameterType::Bool => of(BaseType::Bool),
        ParameterType::Int { .. } => of(BaseType::Int),
        ParameterType::Float { .. } => of(BaseType::Float),
        ParameterType::List(element) | ParameterType::Array(element, _) => match element {
            ParameterType::Str
            | ParameterType::Bool
            | ParameterType::Int { .. }
            | ParameterType::Float { .. } => AttributeType {
                list: true,
                ..attribute_type(element)?
            },
            ParameterType::Any | ParameterType::Func(_) => return None,
            ParameterType::List(_)
            | ParameterType::Array(..)
            | ParameterType::Map(..)
            | ParameterType::Struct(_)
            | ParameterType::Optional(_) => of(BaseType::List),
        },
        ParameterType::Map(..) | ParameterType::Struct(_) => of(BaseType::Dict),
        ParameterType::Optional(inner) => return attribute_type(inner),
        ParameterType::Any | ParameterType::Func(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_kind_says_where_its_entity_is() {
        let entity = |kind| {
            let (namespace, name) = entity_of(kind);
            format!("{namespace}::{name}")
        };
        assert_eq!(entity("file"), "setpoint::File");
        assert_eq!(entity("http:server"), "setpoint::http::Server");
        assert_eq!(entity("http:server:file"), "setpoint::http::server::File");
        assert_eq!(entity("ssh:authorized_key"), "setpoint::ssh::AuthorizedKey");
    }

    #[test]
    fn what_every_resource_has_is_told_apart_from_parameters() {
        assert_eq!(attribute_name("path"), "path");
        assert_eq!(attribute_name("in"), "in_");
        assert_eq!(attribute_name("name"), "name_");
    }
}
