//! `example/nested`: a module within a module.

use setpoint_value::{Module, function};

pub(crate) static MODULE: Module = Module::new("example/nested", "A module within a module.", &[&HELLO]);

/// A greeting.
#[function(example(call = "nested.hello()", result = r#""Hello!""#))]
fn hello() -> &'static str {
    "Hello!"
}
