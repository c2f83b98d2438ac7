//! `world/collect`: what members export.

use setpoint_value::{Module, Value, WorldAnswer, WorldQuery, function};

use super::Ask;

pub(crate) static MODULE: Module = Module::new(
    "world/collect",
    "What the members of a cluster export; alone, there is nothing in it.",
    &[&RES],
);

/// Names and hosts of what is exported of a kind to this host or to all.
#[function(
    signature = "func(kind str) []struct{name str; host str}",
    parameters(
        /// A kind of resource, as `file`. It must not change while the program runs.
        kind,
    ),
    example(call = r#"len(collect.res("file"))"#, result = "0")
)]
static RES: Ask = Ask {
    query: WorldQuery::Exports,
    answer: |answer, ty| match (answer, ty.element()) {
        (WorldAnswer::Exports(exports), Some(element)) => {
            let items = exports.into_iter().map(|export| {
                let fields = vec![Value::str(export.name), Value::str(export.host)];
                Value::structure(element.clone(), fields)
            });
            Some(Value::list(element.clone(), items))
        }
        _ => None,
    },
    nothing: || WorldAnswer::Exports(Vec::new()),
    is_kind: true,
};
