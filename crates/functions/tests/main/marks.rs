//! Marks: of functions that see to them themselves, and in errors.

use std::collections::BTreeSet;

use setpoint_functions::registry;
use setpoint_value::call::call;
use setpoint_value::{FunctionSpec, Implementation, Map, Marks, Type, Value};

use crate::machine::text;

fn int(number: i64) -> Value {
    Value::Int(number)
}

fn hidden(number: i64) -> Value {
    Value::Int(number).sensitive()
}

fn ints(items: impl IntoIterator<Item = Value>) -> Value {
    Value::list(Type::Int, items)
}

fn map(entries: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    let entries = entries.into_iter().map(|(key, value)| (text(key), value));
    Value::Map(Map::new(Type::Str, Type::Int, entries))
}

fn sees_marks(spec: &FunctionSpec) -> bool {
    // No function has more parameters than this.
    (0..8).any(|position| spec.flags(position).allow_marked)
}

#[test]
fn every_function_that_sees_marks_puts_them_where_they_belong() {
    let yes = || Value::Bool(true);
    let no = || Value::Bool(false);
    let rows: Vec<(&str, &str, Vec<Value>, &str)> = vec![
        ("", "sensitive", vec![int(1)], "(sensitive)"),
        ("", "nonsensitive", vec![hidden(1)], "1"),
        ("cty", "not", vec![yes().sensitive()], "(sensitive)"),
        ("cty", "not", vec![yes()], "false"),
        ("cty", "and", vec![yes(), no().sensitive()], "(sensitive)"),
        ("cty", "and", vec![yes(), no()], "false"),
        ("cty", "or", vec![no().sensitive(), yes()], "(sensitive)"),
        ("cty", "greater_than", vec![int(2), hidden(1)], "(sensitive)"),
        (
            "cty",
            "greater_than_or_equal_to",
            vec![hidden(2), int(1)],
            "(sensitive)",
        ),
        ("cty", "less_than", vec![int(2), hidden(1)], "(sensitive)"),
        (
            "cty",
            "less_than_or_equal_to",
            vec![hidden(2), int(1)],
            "(sensitive)",
        ),
        ("cty", "negate", vec![hidden(2)], "(sensitive)"),
        ("cty", "absolute", vec![hidden(2)], "(sensitive)"),
        // How many there are is no secret when only elements are.
        ("cty", "length", vec![ints([hidden(1), int(2)])], "2"),
        (
            "cty",
            "length",
            vec![ints([int(1), int(2)]).sensitive()],
            "(sensitive)",
        ),
        ("cty", "element", vec![ints([hidden(1), int(2)]), int(1)], "2"),
        (
            "cty",
            "element",
            vec![ints([hidden(1), int(2)]), int(0)],
            "(sensitive)",
        ),
        (
            "cty",
            "chunklist",
            vec![ints([hidden(1), int(2)]), int(1)],
            "[[(sensitive)], [2]]",
        ),
        ("cty", "keys", vec![map([("a", hidden(1))])], "[\"a\"]"),
        (
            "cty",
            "keys",
            vec![map([("a", int(1))]).sensitive()],
            "(sensitive)",
        ),
        (
            "cty",
            "values",
            vec![map([("a", hidden(1)), ("b", int(2))])],
            "[(sensitive), 2]",
        ),
        (
            "cty",
            "lookup",
            vec![map([("a", hidden(1)), ("b", int(2))]), text("b"), int(0)],
            "2",
        ),
        (
            "cty",
            "lookup",
            vec![map([("a", hidden(1)), ("b", int(2))]), text("a"), int(0)],
            "(sensitive)",
        ),
        (
            "cty",
            "lookup",
            vec![map([("b", int(2))]), text("c"), hidden(0)],
            "(sensitive)",
        ),
        (
            "cty",
            "merge",
            vec![map([("a", hidden(1))]), map([("b", int(2))])],
            "{\"a\": (sensitive), \"b\": 2}",
        ),
        (
            "cty",
            "reverse_list",
            vec![ints([hidden(1), int(2)])],
            "[2, (sensitive)]",
        ),
        (
            "cty",
            "slice",
            vec![ints([hidden(1), int(2)]), int(1), int(2)],
            "[2]",
        ),
        (
            "cty",
            "set_product",
            vec![ints([hidden(1)]), ints([int(2)])],
            "[((sensitive), 2)]",
        ),
        (
            "cty",
            "zipmap",
            vec![Value::strings(["a"]), ints([hidden(1)])],
            "{\"a\": (sensitive)}",
        ),
        (
            "cty",
            "concat",
            vec![ints([hidden(1), int(2)]), ints([int(3)])],
            "[(sensitive), 2, 3]",
        ),
        (
            "cty",
            "concat",
            vec![ints([int(2)]).sensitive(), ints([int(3)])],
            "(sensitive)",
        ),
        (
            "cty",
            "flatten",
            vec![Value::list(
                Type::list(Type::Int),
                [ints([hidden(1), int(2)]), ints([int(3)])],
            )],
            "((sensitive), 2, 3)",
        ),
        (
            "cty",
            "flatten",
            vec![Value::list(
                Type::list(Type::Int),
                [ints([int(1)]).sensitive(), ints([int(3)])],
            )],
            "(sensitive)",
        ),
        ("cty", "index", vec![ints([hidden(1), int(2)]), int(1)], "2"),
        (
            "cty",
            "index",
            vec![ints([hidden(1), int(2)]), int(0)],
            "(sensitive)",
        ),
        ("cty", "index", vec![ints([int(1)]), hidden(0)], "(sensitive)"),
        ("cty", "has_index", vec![ints([hidden(1)]), int(0)], "true"),
        ("cty", "has_index", vec![ints([int(1)]), hidden(0)], "(sensitive)"),
        ("", "len", vec![ints([hidden(1), int(2)])], "2"),
        ("", "len", vec![map([("a", hidden(1))])], "1"),
        ("", "len", vec![ints([int(1)]).sensitive()], "(sensitive)"),
        ("", "len", vec![text("abc").sensitive()], "(sensitive)"),
        ("", "list_lookup", vec![ints([hidden(1), int(2)]), int(1)], "2"),
        (
            "",
            "list_lookup",
            vec![ints([hidden(1), int(2)]), int(0)],
            "(sensitive)",
        ),
        (
            "",
            "list_lookup",
            vec![ints([int(1), int(2)]), hidden(0)],
            "(sensitive)",
        ),
        (
            "",
            "list_lookup",
            vec![ints([int(1)]).sensitive(), int(0)],
            "(sensitive)",
        ),
        ("list", "lookup", vec![ints([hidden(1), int(2)]), int(1)], "2"),
        (
            "list",
            "concat",
            vec![ints([hidden(1)]), ints([int(2)])],
            "[(sensitive), 2]",
        ),
        (
            "list",
            "concat",
            vec![ints([int(1)]), ints([int(2)]).sensitive()],
            "(sensitive)",
        ),
        (
            "",
            "map_lookup",
            vec![map([("a", hidden(1)), ("b", int(2))]), text("b")],
            "2",
        ),
        (
            "",
            "map_lookup",
            vec![map([("a", hidden(1)), ("b", int(2))]), text("a")],
            "(sensitive)",
        ),
        (
            "",
            "map_lookup",
            vec![map([("a", int(1))]), text("a").sensitive()],
            "(sensitive)",
        ),
        (
            "map",
            "lookup",
            vec![map([("a", int(1))]).sensitive(), text("a")],
            "(sensitive)",
        ),
        (
            "map",
            "values",
            vec![map([("a", hidden(1)), ("b", int(2))])],
            "[(sensitive), 2]",
        ),
        (
            "map",
            "values",
            vec![map([("a", int(1))]).sensitive()],
            "(sensitive)",
        ),
    ];
    let registry = registry();
    for (module, name, arguments, expected) in &rows {
        let spec = registry.get(module, name).expect("a function");
        let result = call(spec, arguments).map(|value| value.to_string());
        assert_eq!(result.as_deref(), Ok(*expected), "{spec} {arguments:?}");
    }
    let tested: BTreeSet<String> = rows
        .iter()
        .map(|(module, name, ..)| registry.get(module, name).expect("a function").to_string())
        .collect();
    let see: BTreeSet<String> = registry
        .iter()
        // What is called for the elements of lists has tests of its own.
        .filter(|spec| sees_marks(spec) && !matches!(spec.implementation, Implementation::Shape(_)))
        .map(ToString::to_string)
        .collect();
    assert_eq!(tested, see);
}

/// Texts that functions refuse in different ways.
const CANARIES: &[&str] = &[
    "canary",
    "/canary",
    "canary/",
    "../canary/",
    "[canary",
    "{{canary",
    "{{ .canary }}",
    "{\"canary\": canary",
    "\"canary\"",
    "%d canary %y",
    "10.0.0.0/canary",
    "00:11:22:33:44:canary",
    "canary://",
    "~canary/",
    "canary:1",
];

/// A value of a type, whose texts are the secret one.
fn filled(ty: &Type, secret: &Value) -> Value {
    match ty {
        Type::Str | Type::Variable(_) | Type::Dynamic => secret.clone(),
        Type::List(element) => {
            let item = filled(element, secret);
            Value::list(item.ty(), [item])
        }
        Type::Map(types) => {
            let (key, value) = (filled(&types.0, secret), filled(&types.1, secret));
            // A key is no secret by itself; the whole map is.
            let key = key.unmark_deep(&mut Marks::none());
            Value::Map(Map::new(key.ty(), value.ty(), [(key, value)])).sensitive()
        }
        Type::Int | Type::Number => int(-1),
        Type::Float => Value::float(-1.0),
        other => Value::zero(other).unwrap_or_else(|| Value::unknown(other.clone())),
    }
}

/// Whatever a function does with secret texts, no failure tells them. Of sources it is the evaluator that sees to that.
#[test]
fn no_failure_of_any_pure_function_shows_a_sensitive_argument() {
    let mut failures = 0;
    let registry = registry();
    let pure = registry
        .iter()
        .filter(|spec| matches!(spec.implementation, Implementation::Pure(_)));
    for spec in pure {
        for canary in CANARIES {
            let secret = text(canary).sensitive();
            for signature in spec.alternatives() {
                let mut arguments: Vec<Value> = signature
                    .parameters
                    .iter()
                    .map(|parameter| filled(&parameter.ty, &secret))
                    .collect();
                arguments.extend(
                    signature
                        .variadic
                        .iter()
                        .map(|further| filled(&further.ty, &secret)),
                );
                if let Err(error) = call(spec, &arguments) {
                    let said = format!("{error} {error:?}");
                    failures += 1;
                    assert!(!said.contains("canary"), "{spec}: {said}");
                }
            }
        }
    }
    assert!(failures > 1000, "{failures}");
}
