//! Functions that are made while the program runs, as those of plug-ins are.

use setpoint_graph::Library;
use setpoint_programs::{Assembly, DirectoryLoader};
use setpoint_value::{CallError, FunctionRef, FunctionSpec, PureFunction, Value};

use crate::machine::Machine;
use crate::program::{Followed, code, compile_with, rendered};

/// The library with `plugin.times`, which multiplies by a number that is chosen here.
fn library(factor: i64) -> Library {
    let times = PureFunction::made(move |arguments, _| {
        let number = arguments[0].as_int();
        let product = number.and_then(|number| number.checked_mul(factor));
        product
            .map(Value::Int)
            .ok_or_else(|| CallError::catchable("too large"))
    });
    let spec = FunctionSpec::made("plugin", "times", ["func(number int) int"], times).unwrap();
    let function = FunctionRef::from(spec.described("A multiple."));
    let mut library = Assembly::standard().library("host.example");
    library.functions.add(function.clone()).unwrap();
    assert_eq!(library.functions.add(function.clone()), Err(function));
    library
}

#[test]
fn a_made_function_is_typed_folded_and_called_like_any_other() {
    let machine = Machine::new();
    machine.set("factor", Value::Int(2));
    let expressions = [
        ("plugin.times(5)", "15"),
        ("plugin.times(9223372036854775807) <|> 0", "0"),
        ("plugin.times(value.get_int(\"factor\")->value)", "6"),
    ];
    for (expression, value) in expressions {
        let text = compile_with(&code(&["plugin", "value"], expression), &library(3));
        let capabilities = machine.capabilities(&text, &DirectoryLoader::new("/nonexistent"));
        let mut followed = Followed::start(text, capabilities);
        assert_eq!(followed.first().as_deref(), Ok(value), "{expression}");
    }
}

#[test]
fn a_made_function_is_checked_like_any_other() {
    let text = compile_with(&code(&["plugin"], "plugin.times(\"a\")"), &library(3));
    let errors = rendered(&text.diagnostics, &text.sources);
    assert!(errors.contains("func(number int) int"), "{errors}");
    let nothing = PureFunction::made(|_, _| Ok(Value::Int(1)));
    assert!(FunctionSpec::made("plugin", "f", ["func("], nothing.clone()).is_err());
    assert!(FunctionSpec::made("plugin", "f", [""; 0], nothing).is_err());
}
