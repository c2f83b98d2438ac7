//! Named inputs and outputs of a project: where a model meets whatever includes it.
//!
//! `project.yml` declares them with their types. What is given for an input is read by the function `setpoint::input`; an output is the
//! variable of that name in the main file. Only what every language has values of can be a type.

use std::collections::BTreeMap;
use std::sync::Arc;

use setpoint_cf_execute::execute::{Execution, Slot};
use setpoint_cf_names::hir::Model;
use setpoint_cf_names::project::{self, Port, Project, codes};
use setpoint_diagnostics::{Diagnostic, Diagnostics, Loader, did_you_mean};
use setpoint_graph::Library;
use setpoint_value::{
    ArgumentError, CallError, FunctionRef, FunctionSpec, ParameterFlags, PureFunction, ResultType, Type,
    Value,
};

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
