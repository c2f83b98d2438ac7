//! From a part of the tree to a value of a parameter.
//!
//! What is written decides: a text that looks like a number is the text that stands there, so that `mode: 0644` is `0644`. Nothing else is
//! converted.

use setpoint_diagnostics::{Diagnostic, did_you_mean};
use setpoint_graph::ParameterType;
use setpoint_value::{Type, Value};

use crate::codes;
use crate::tree::{Key, Node, Yaml};

/// A value of this type, for what messages call `name`; what is wrong is told at the part that does not fit.
pub(crate) fn value(
    node: &Node,
    to: &ParameterType,
    name: &str,
    text: &str,
) -> Result<Value, Box<Diagnostic>> {
    let wrong = |help: Option<&str>| {
        let message = format!("`{name}` is {}, not {}", to.describe(), node.value.sort());
        let error = Diagnostic::error(&codes::VALUE_DOES_NOT_FIT, node.span, message);
        Err(Box::new(error.help_if(help.map(str::to_owned))))
    };
    match (to, &node.value) {
        (ParameterType::Optional(inner), _) => value(node, inner, name, text),
        (ParameterType::Any, _) => Ok(natural(node)),
        (ParameterType::Bool, Yaml::Bool(value)) => Ok(Value::Bool(*value)),
        (ParameterType::Bool, Yaml::Text(_)) => wrong(Some("the truth values are `true` and `false`")),
        (ParameterType::Str, Yaml::Text(written)) => Ok(Value::str(&**written)),
        (ParameterType::Str, Yaml::Bool(_) | Yaml::Int(_) | Yaml::Number(_)) => {
            let written = text.get(node.span.start as usize..node.span.end as usize);
            Ok(Value::str(written.unwrap_or_default().trim()))
        }
        (ParameterType::Int { .. }, Yaml::Int(number)) => Ok(Value::Int(*number)),
        (ParameterType::Float { .. }, Yaml::Int(number)) => Ok(Value::float(*number as f64)),
        (ParameterType::Float { .. }, Yaml::Number(number)) => match number.parse() {
            Ok(number) => Ok(Value::float(number)),
            Err(_) => wrong(None),
        },
        (ParameterType::List(element) | ParameterType::Array(element, _), Yaml::List(items)) => {
            let items = items.iter().enumerate();
            let values: Result<Vec<Value>, Box<Diagnostic>> = items
                .map(|(index, item)| value(item, element, &format!("{name}[{index}]"), text))
                .collect();
            Ok(Value::list(element.ty(), values?))
        }
        (ParameterType::Map(key_type, element), Yaml::Map(entries)) => {
            let entry = |(key, node): &(Key, Node)| {
                let inside = format!("{name}.{}", key.text);
                Ok((
                    map_key(key, key_type, name)?,
                    value(node, element, &inside, text)?,
                ))
            };
            let entries: Result<Vec<(Value, Value)>, Box<Diagnostic>> = entries.iter().map(entry).collect();
            Ok(Value::map(key_type.ty(), element.ty(), entries?))
        }
        (ParameterType::Struct(fields), Yaml::Map(entries)) => {
            let names = || fields.iter().map(|(name, _)| *name);
            if let Some((key, _)) = entries
                .iter()
                .find(|(key, _)| names().all(|name| name != &*key.text))
            {
                let message = format!("`{name}` has no key `{}`", key.text);
                let error = Diagnostic::error(&codes::VALUE_DOES_NOT_FIT, key.span, message);
                return Err(Box::new(error.help_if(did_you_mean(&key.text, names()))));
            }
            let field = |(field, ty): &(&'static str, &'static ParameterType)| match (
                entries.iter().find(|(key, _)| &*key.text == *field),
                ty,
            ) {
                (Some((_, node)), _) => value(node, ty, &format!("{name}.{field}"), text),
                (None, ParameterType::Optional(inner)) => Ok(Value::Null(inner.ty())),
                (None, _) => {
                    let message = format!("`{name}` needs the key `{field}`");
                    Err(Box::new(Diagnostic::error(
                        &codes::VALUE_DOES_NOT_FIT,
                        node.span,
                        message,
                    )))
                }
            };
            let values: Result<Vec<Value>, Box<Diagnostic>> = fields.iter().map(field).collect();
            Ok(Value::structure(to.ty(), values?))
        }
        (ParameterType::Func(_), _) => wrong(Some("a function cannot be written in YAML")),
        (ParameterType::Int { .. }, Yaml::Number(_)) => {
            wrong(Some("it takes no fraction, and no more than 64 bits"))
        }
        _ => wrong(None),
    }
}

/// The key of a map, which is a text in the tree.
fn map_key(key: &Key, to: &ParameterType, name: &str) -> Result<Value, Box<Diagnostic>> {
    let value = match to {
        ParameterType::Str => Some(Value::str(&*key.text)),
        ParameterType::Int { .. } => key.text.parse().ok().map(Value::Int),
        ParameterType::Float { .. } => key.text.parse().ok().map(Value::float),
        ParameterType::Bool => key.text.parse().ok().map(Value::Bool),
        _ => None,
    };
    value.ok_or_else(|| {
        let message = format!(
            "the keys of `{name}` are {}, and `{}` is not",
            to.describe(),
            key.text
        );
        Box::new(Diagnostic::error(&codes::VALUE_DOES_NOT_FIT, key.span, message))
    })
}

/// The value that follows from what is written alone.
pub(crate) fn natural(node: &Node) -> Value {
    match &node.value {
        Yaml::Null => Value::Null(Type::Dynamic),
        Yaml::Bool(value) => Value::Bool(*value),
        Yaml::Int(number) => Value::Int(*number),
        Yaml::Number(number) => match number.parse() {
            Ok(number) => Value::float(number),
            Err(_) => Value::str(&**number),
        },
        Yaml::Text(text) => Value::str(&**text),
        Yaml::List(items) => {
            let values: Vec<Value> = items.iter().map(natural).collect();
            match common_type(&values) {
                Some(ty) => Value::list(ty, values),
                None => Value::tuple(values),
            }
        }
        Yaml::Map(entries) => {
            let values: Vec<Value> = entries.iter().map(|(_, node)| natural(node)).collect();
            let keys = entries.iter().map(|(key, _)| key.text.clone());
            match common_type(&values) {
                Some(ty) => {
                    let keys = keys.map(|key| Value::str(&*key));
                    Value::map(Type::Str, ty, keys.zip(values))
                }
                None => Value::object(keys.zip(values)),
            }
        }
    }
}

/// The type of all of them, texts if there are none; none if they differ.
fn common_type(values: &[Value]) -> Option<Type> {
    let Some(first) = values.first().map(Value::ty) else {
        return Some(Type::Str);
    };
    values.iter().all(|value| value.ty() == first).then_some(first)
}
