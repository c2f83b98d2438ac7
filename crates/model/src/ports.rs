//! Named inputs and outputs of a project: where a model meets whatever includes it.
//!
//! `project.yml` declares them with their types. What is given for an input is read by the function `setpoint::input`; an output is the
//! variable of that name in the main file. Only what every language has values of can be a type.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use setpoint_diagnostics::{Diagnostic, Diagnostics, Loader, Span, did_you_mean};
use setpoint_graph::Library;
use setpoint_value::{
    ArgumentError, CallError, FunctionRef, FunctionSpec, ParameterFlags, PureFunction, ResultType, Type,
    Value,
};

use crate::datum::Datum;
use crate::execute::{Execution, Slot};
use crate::functions::calls::to_value;
use crate::hir::Model;
use crate::project::{self, Project, codes};

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
        let datum = serde_json::from_str(text).map(|json| crate::json::datum(&json));
        let value = datum.ok().and_then(|datum| self.checked(&datum).ok());
        value.ok_or_else(|| format!("`{text}` is no `{self}`"))
    }

    /// A datum as a value of this type.
    fn checked(self, datum: &Datum) -> Result<Value, String> {
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

/// The inputs and the outputs that the project in a directory declares, as far as that can be read. For those who include it.
#[must_use]
pub fn declared(loader: &dyn Loader, directory: &str) -> (Vec<Port>, Vec<Port>) {
    let settings = project::read_settings(loader, directory).settings;
    (settings.inputs, settings.outputs)
}

/// The library of a model, with the function by which it reads its inputs.
pub(crate) fn with_inputs(
    library: &Library,
    project: &Project,
    given: &BTreeMap<Arc<str>, Value>,
) -> Library {
    let mut library = library.clone();
    if let Ok(function) = input_function(project, given) {
        // A library that has one of this name already is given by somebody who knows better.
        let _ = library.functions.add(function);
    }
    library
}

fn input_function(project: &Project, given: &BTreeMap<Arc<str>, Value>) -> Result<FunctionRef, String> {
    let known: BTreeMap<Arc<str>, Value> = project
        .settings
        .inputs
        .iter()
        .map(|port| {
            let value = given.get(&port.name).cloned();
            let value = value.unwrap_or_else(|| Value::unknown(port.ty.value_type()));
            (port.name.clone(), value)
        })
        .collect();
    let find = move |arguments: &[Value]| -> Result<Value, ArgumentError> {
        let name = arguments.first().and_then(Value::as_str);
        let name = name.map(|name| name.to_lossy().into_owned()).unwrap_or_default();
        known.get(name.as_str()).cloned().ok_or_else(|| {
            let mut message = format!("the project has no input `{name}`");
            match did_you_mean(&name, known.keys().map(|name| &**name)) {
                Some(near) => message = format!("{message}: {near}"),
                None if known.is_empty() => message.push_str("; `project.yml` declares none"),
                None => {}
            }
            ArgumentError::whole(message)
        })
    };
    let typed = find.clone();
    let implementation = PureFunction::made(move |arguments: &[Value], _: &Type| {
        find(arguments).map_err(|error| CallError::catchable(error.message))
    });
    let mut spec = FunctionSpec::made("setpoint", "input", ["func(name str) ?1"], implementation)?
        .described("What whoever includes this model gives for an input that `project.yml` declares.")
        .typed_by_made(ResultType::made(move |arguments: &[Value]| {
            // That there is none is told by the call itself.
            Ok(typed(arguments).map_or(Type::Dynamic, |value| value.ty()))
        }));
    spec.parameters = vec![ParameterFlags::default()].into();
    Ok(FunctionRef::from(spec))
}

/// What the main file holds under the names of the outputs.
pub fn outputs(
    project: &Project,
    model: &Model,
    execution: &Execution,
    diagnostics: &mut Diagnostics,
) -> BTreeMap<Arc<str>, Value> {
    let mut found = BTreeMap::new();
    for port in &project.settings.outputs {
        match output(port, model, execution) {
            Ok(value) => {
                found.insert(port.name.clone(), value);
            }
            Err(error) => diagnostics.push(*error),
        }
    }
    found
}

fn output(port: &Port, model: &Model, execution: &Execution) -> Result<Value, Box<Diagnostic>> {
    let name = &port.name;
    let Some((_, slot)) = execution.variables.iter().find(|(known, _)| known == name) else {
        let names = execution.variables.iter().map(|(known, _)| &**known);
        let message = format!("there is no variable `{name}` in the main file, which is an output");
        let error = codes::bad_field(port.span, message).help_if(did_you_mean(name, names));
        return Err(Box::new(error));
    };
    let refused = |message: String| {
        let error = codes::bad_field(port.span, message);
        let main = model
            .namespaces
            .iter()
            .find(|space| *space.name == *project::MAIN);
        let variables = main.into_iter().flat_map(|main| &main.body.variables);
        let mut assigned = variables.filter(|variable| **model.text(variable.name) == **name);
        Box::new(match assigned.next() {
            Some(variable) => error.because(variable.span, "assigned here"),
            None => error,
        })
    };
    match slot {
        Slot::Value(datum) => port.ty.checked(datum).map_err(|reason| {
            refused(format!(
                "the output `{name}` is declared as `{}`: {reason}",
                port.ty
            ))
        }),
        Slot::Unset(_) => Err(refused(format!("the output `{name}` has no value"))),
    }
}
