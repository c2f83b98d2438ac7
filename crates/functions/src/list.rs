//! `list`: lists.

use setpoint_value::operators::{LIST_LOOKUP, LOOKED_INTO};
use setpoint_value::{
    CallError, FunctionSpec, Implementation, List, Marks, Module, ParameterFlags, Type, Value, function,
};

pub(crate) static MODULE: Module = Module::new("list", "Lists.", &[&CONCAT, &LOOKUP]);

/// Elements keep their own marks.
const LOOKED_INTO_ALL: &[ParameterFlags] = &[LOOKED_INTO[0]];

/// The elements of all lists, one list after another.
#[function(
    raw,
    signature = "func(list []?1, …) []?1",
    flags = LOOKED_INTO_ALL,
    parameters(
        /// A list, followed by further lists.
        list,
    ),
    example(call = "list.concat([1], [], [2, 3])", result = "[1, 2, 3]")
)]
fn concat(arguments: &[Value], ty: &Type) -> Result<Value, CallError> {
    let mut lists = arguments.iter().map(|value| {
        value
            .as_list()
            .ok_or_else(|| CallError::fatal("only lists can be joined"))
    });
    let Some(first) = lists.next() else {
        return Err(CallError::fatal("at least one list is needed"));
    };
    let mut items = first?.items().clone();
    for list in lists {
        items.append(list?.items().clone());
    }
    let mut marks = Marks::none();
    for list in arguments {
        marks.union(&list.own_marks());
    }
    let element = ty.element().cloned().unwrap_or(Type::Dynamic);
    Ok(Value::List(List::from_vector(element, items)).with_marks(&marks))
}

/// The element at `index`, counted from 0.
///
/// A missing or negative index fails in a way that `<|>` catches.
#[function(
    raw,
    signature = "func(list []?1, index int) ?1",
    flags = LOOKED_INTO,
    parameters(
        /// The list to look into.
        list,
        /// The index of the element, counted from 0.
        index,
    ),
    example(call = r#"list.lookup(["a", "b"], 1)"#, result = r#""b""#)
)]
fn lookup(arguments: &[Value], ty: &Type) -> Result<Value, CallError> {
    same_as(&LIST_LOOKUP, arguments, ty)
}

/// What another pure function answers.
pub(crate) fn same_as(spec: &FunctionSpec, arguments: &[Value], ty: &Type) -> Result<Value, CallError> {
    match &spec.implementation {
        Implementation::Pure(implementation) => implementation.run(arguments, ty),
        Implementation::Source(_) | Implementation::Shape(_) => {
            Err(CallError::fatal(format!("`{spec}` cannot be called directly")))
        }
    }
}
