//! Declared inputs and outputs of a project. Their types are those that every language has values of.

use std::fmt;
use std::sync::Arc;

use setpoint_diagnostics::Span;
use setpoint_value::{Type, Value};

use crate::datum::{Datum, from_json, to_value};

/// An input or output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// Its name, which is one in every language: small letters, digits and `_`, a letter first.
    pub name: Arc<str>,
    /// What it holds.
    pub ty: PortType,
    /// Where it is declared.
    pub span: Span,
}

/// The type of an input or output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortType {
    element: Element,
    is_list: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Element {
    Text,
    Int,
    Float,
    Bool,
}

const ELEMENTS: &[(&str, Element)] = &[
    ("string", Element::Text),
    ("int", Element::Int),
    ("float", Element::Float),
    ("bool", Element::Bool),
];

impl PortType {
    /// All of them, for messages.
    pub(crate) const ALL: &'static str =
        "`string`, `int`, `float`, `bool`, or a list of one of them, `string[]`";

    /// Reads a type as it is written in models.
    pub(crate) fn parse(text: &str) -> Option<PortType> {
        let (name, is_list) = match text.strip_suffix("[]") {
            Some(name) => (name, true),
            None => (text, false),
        };
        let (_, element) = ELEMENTS.iter().find(|(known, _)| *known == name)?;
        Some(PortType {
            element: *element,
            is_list,
        })
    }

    /// The type of its values outside of models.
    #[must_use]
    pub fn value_type(self) -> Type {
        let element = match self.element {
            Element::Text => Type::Str,
            Element::Int => Type::Int,
            Element::Float => Type::Float,
            Element::Bool => Type::Bool,
        };
        match self.is_list {
            true => Type::list(element),
            false => element,
        }
    }

    /// The type whose values these are, if there is one.
    #[must_use]
    pub fn of_value_type(ty: &Type) -> Option<PortType> {
        let elements = ELEMENTS.iter().map(|(_, element)| *element);
        let mut all = elements.flat_map(|element| [false, true].map(|is_list| PortType { element, is_list }));
        all.find(|port| port.value_type() == *ty)
    }

    /// A value that came out of a model, where an int may stand for a float, as one of this type.
    #[must_use]
    pub fn fitted(self, value: &Value) -> Option<Value> {
        let (plain, marks) = value.unmark();
        let fitted = match (self.is_list, plain) {
            (true, Value::List(items)) => {
                let element = PortType {
                    is_list: false,
                    ..self
                };
                let items: Option<Vec<Value>> = items.iter().map(|item| element.fitted(item)).collect();
                Value::list(element.value_type(), items?)
            }
            (false, Value::Int(number)) if self.element == Element::Float => Value::float(*number as f64),
            _ if plain.ty() == self.value_type() => plain.clone(),
            _ => return None,
        };
        Some(fitted.with_marks(&marks))
    }

    /// A value as somebody writes it on a command line: a text as it is, anything else as JSON.
    ///
    /// # Errors
    /// That it is of another type.
    pub fn value_of(self, text: &str) -> Result<Value, String> {
        if self
            == (PortType {
                element: Element::Text,
                is_list: false,
            })
        {
            return Ok(Value::str(text));
        }
        let datum = serde_json::from_str(text).map(|json| from_json(&json));
        let value = datum.ok().and_then(|datum| self.checked(&datum).ok());
        value.ok_or_else(|| format!("`{text}` is no `{self}`"))
    }

    /// Converts a datum to a value of this type.
    ///
    /// # Errors
    /// The datum is of another type.
    pub fn checked(self, datum: &Datum) -> Result<Value, String> {
        let element = PortType {
            is_list: false,
            ..self
        };
        Ok(match datum {
            Datum::Unknown(_) => Value::unknown(self.value_type()),
            Datum::Marked(marked) => self.checked(&marked.datum)?.with_marks(&marked.marks),
            Datum::List(items) if self.is_list => {
                let items = items.iter().map(|item| element.checked(item));
                Value::list(element.value_type(), items.collect::<Result<Vec<_>, _>>()?)
            }
            Datum::Int(number)
                if self
                    == (PortType {
                        element: Element::Float,
                        is_list: false,
                    }) =>
            {
                Value::float(*number as f64)
            }
            _ => {
                let value = to_value(datum)
                    .ok()
                    .filter(|value| value.ty() == self.value_type());
                value.ok_or_else(|| format!("{} is no `{self}`", described(datum)))?
            }
        })
    }
}

impl fmt::Display for PortType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = ELEMENTS.iter().find(|(_, element)| *element == self.element);
        let name = name.map_or("", |(name, _)| name);
        write!(f, "{name}{}", if self.is_list { "[]" } else { "" })
    }
}

fn described(datum: &Datum) -> &'static str {
    match datum {
        Datum::Null => "`null`",
        Datum::Bool(_) => "a bool",
        Datum::Int(_) => "an int",
        Datum::Float(_) => "a float",
        Datum::Text(_) => "a string",
        Datum::List(_) => "a list",
        Datum::Dict(_) => "a dict",
        Datum::Instance(_) => "an instance",
        Datum::Deferred(_) => "a deferred reference",
        Datum::Unknown(_) | Datum::Marked(_) => "this",
    }
}
