//! What a resource looks like when it leaves for another host, and when it comes from one.

use setpoint_diagnostics::Diagnostics;
use setpoint_graph::{
    ENCRYPTED, EdgeProperty, MetaName, SECRETS, build_collect, decode_exported, encode_exported,
};
use setpoint_value::{Map, Type, Value};

use super::kinds::{NOOP, PLAIN, TEST, codes, names, test};

/// Exports of `kind` as the world gives them, each a name, a host and a text.
fn exports(list: &[(&str, &str, &str)]) -> Value {
    let ty = Type::parse("struct{name str; host str; data str}").expect("it is a type");
    let items = list.iter().map(|(name, host, data)| {
        let fields = [name, host, data].map(|text| Value::str(*text));
        Value::structure(ty.clone(), fields)
    });
    Value::list(ty.clone(), items)
}

fn exported(resource: &super::kinds::Resource) -> String {
    let exported = encode_exported(&resource.output().resources[0]);
    exported.expect("it can be exported").text
}

#[test]
fn a_resource_is_read_back_as_it_was_exported() {
    let map = Value::Map(Map::new(
        Type::Int,
        Type::list(Type::Float),
        [(
            Value::Int(7),
            Value::list(Type::Float, [Value::float(0.5), Value::float(f64::INFINITY)]),
        )],
    ));
    let inner = Type::parse("struct{a str; b map{int: []float}}").expect("it is a type");
    let value = Value::structure(inner, [Value::str(vec![0xff, b'x']), map]);
    let resource = test("a")
        .text("né\n")
        .set("interface", value)
        .set("int8", Value::Int(-3))
        .meta(MetaName::Retry, Value::Int(4))
        .meta(MetaName::Export, Value::strings(["*"]));
    let written = &resource.output().resources[0];
    let found = decode_exported(&TEST, ("a", "h"), &exported(&resource)).expect("it can be read");
    assert_eq!(found.parameters, written.parameters);
    assert_eq!(found.meta.retry, 4);
    assert!(found.meta.export.is_empty());
}

#[test]
fn what_is_sensitive_stands_by_itself_and_is_sensitive_there() {
    let secret = Value::list(Type::Str, [Value::str("hidden").sensitive(), Value::str("also")]);
    let resource = test("a").text("shown").set("slicestring", secret);
    let written = &resource.output().resources[0];
    let exported = encode_exported(written).expect("it can be exported");
    assert_eq!(exported.secret, Some("slicestring"));
    let document: serde_json::Value = serde_json::from_str(&exported.text).unwrap();
    assert!(document["parameters"].to_string().contains("shown"));
    assert!(!document["parameters"].to_string().contains("hidden"));
    assert!(document[SECRETS].to_string().contains("hidden"));
    let found = decode_exported(&TEST, ("a", "h"), &exported.text).expect("it can be read");
    let value = |name: &str| {
        found
            .parameters
            .iter()
            .find(|(is, _)| *is == name)
            .map(|(_, value)| value.clone())
    };
    let hidden = Value::strings(["hidden", "also"]).sensitive();
    assert_eq!(value("slicestring"), Some(hidden));
    assert!(
        !found
            .parameters
            .iter()
            .any(|(name, value)| name != "slicestring" && value.is_sensitive())
    );
    // What is still encrypted is not read as if it were nothing.
    let none = exported.text.replace(SECRETS, ENCRYPTED);
    assert!(decode_exported(&TEST, ("a", "h"), &none).is_err());
}

#[test]
fn exports_that_do_not_fit_here_are_refused() {
    let text = exported(&test("a").text("t"));
    assert!(decode_exported(&NOOP, ("a", "h"), &text).is_err());
    for damaged in [
        "",
        "{}",
        "[]",
        &text.replace("str", "int"),
        &text.replace("\"t\"", "7"),
    ] {
        assert!(decode_exported(&TEST, ("a", "h"), damaged).is_err(), "{damaged}");
    }
}

#[test]
fn a_collect_statement_makes_what_it_asks_for() {
    let (one, two) = (exported(&test("a").text("one")), exported(&test("a").text("two")));
    let exports = exports(&[("a", "h1", &one), ("a", "h2", &two), ("b", "h1", &one)]);
    let pair = Type::parse("struct{name str; host str}").expect("it is a type");
    let pairs = Value::list(
        pair.clone(),
        [Value::structure(pair, [Value::str("a"), Value::str("h2")])],
    );
    let collect = |asked: Value| {
        let mut statement = test("ignored").edge(EdgeProperty::Before, "test", "z").0;
        statement.name = asked;
        let mut diagnostics = Diagnostics::new();
        let output = build_collect(
            &statement,
            &exports,
            None,
            &Value::clone,
            &PLAIN,
            &mut diagnostics,
        );
        assert!(!diagnostics.has_errors());
        let left_out = diagnostics.iter().count();
        assert_eq!(output.edges.len(), output.resources.len());
        let texts = output
            .resources
            .iter()
            .map(|r| r.parameters.get("anotherstr").cloned());
        let texts = texts.flatten().collect::<Vec<Value>>();
        (names(&output).join(" "), texts, left_out)
    };
    let texts = |list: &[&str]| list.iter().map(|text| Value::str(*text)).collect::<Vec<_>>();
    // Of two hosts with one name the first holds.
    assert_eq!(collect(Value::str("a")), ("a".to_owned(), texts(&["one"]), 1));
    assert_eq!(
        collect(Value::strings(["b", "b", "none"])),
        ("b".to_owned(), texts(&["one"]), 0)
    );
    assert_eq!(collect(pairs), ("a".to_owned(), texts(&["two"]), 0));
    assert_eq!(collect(Value::str("none")), (String::new(), vec![], 0));
}

#[test]
fn a_damaged_export_is_told_at_the_statement() {
    let statement = test("a").0;
    let mut diagnostics = Diagnostics::new();
    let output = build_collect(
        &statement,
        &exports(&[("a", "h", "nonsense")]),
        None,
        &Value::clone,
        &PLAIN,
        &mut diagnostics,
    );
    assert!(output.resources.is_empty());
    assert_eq!(codes(&diagnostics), ["collect"]);
    assert!(!diagnostics.has_errors(), "the rest of the program continues");
}

#[test]
fn exports_that_are_not_known_yet_may_give_anything() {
    let statement = test("a").0;
    let mut diagnostics = Diagnostics::new();
    let unknown = Value::unknown(exports(&[]).ty());
    let output = build_collect(
        &statement,
        &unknown,
        None,
        &Value::clone,
        &PLAIN,
        &mut diagnostics,
    );
    assert!(output.resources.is_empty() && output.unknown.len() == 1);
}
