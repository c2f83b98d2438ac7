//! One statement with its values.

use setpoint_diagnostics::Diagnostics;
use setpoint_graph::{
    CollectedResource, EdgeEndpoint, EdgeProperty, EdgeStatement, MetaName, MetaParameters, Parameters,
    ResourceStatement, UnknownWhat, build_collected, build_edge, build_resource, read_collect,
};
use setpoint_value::{Type, Value};

use crate::kinds::{NOOP, PACKAGE, PLAIN, at, codes, names, resource, test};

fn edges(output: &setpoint_graph::StatementOutput) -> Vec<String> {
    let edges = output.edges.iter();
    edges
        .map(|e| format!("{} -> {}{}", e.from, e.to, if e.notify { " notify" } else { "" }))
        .collect()
}

#[test]
fn a_list_of_names_makes_one_resource_for_each_distinct_element() {
    assert_eq!(names(&test(["b", "a", "b"]).output()), ["b", "a"]);
    assert!(test([]).output().resources.is_empty());
}

#[test]
fn every_name_of_a_list_gets_its_own_edges() {
    let output = test(["a", "b"])
        .edge(EdgeProperty::Depend, "noop", ["x", "y"])
        .output();
    assert_eq!(
        edges(&output),
        [
            "noop[x] -> test[a]",
            "noop[y] -> test[a]",
            "noop[x] -> test[b]",
            "noop[y] -> test[b]"
        ]
    );
}

#[test]
fn edge_properties_have_a_direction_and_notify_or_not() {
    for (property, edge) in [
        (EdgeProperty::Before, "test[a] -> noop[x]"),
        (EdgeProperty::Notify, "test[a] -> noop[x] notify"),
        (EdgeProperty::Depend, "noop[x] -> test[a]"),
        (EdgeProperty::Listen, "noop[x] -> test[a] notify"),
    ] {
        assert_eq!(edges(&test("a").edge(property, "noop", "x").output()), [edge]);
    }
}

#[test]
fn an_edge_statement_joins_neighbours_and_every_name_with_every_name() {
    let endpoint = |name: Value| EdgeEndpoint {
        kind: "noop".into(),
        name,
        span: at(0),
    };
    let statement = EdgeStatement {
        endpoints: vec![
            endpoint(Value::str("a")),
            endpoint(Value::strings(["b", "c"])),
            endpoint(Value::str("d")),
        ],
        send: None,
        span: at(0),
    };
    let output = build_edge(&statement, &Value::clone, &PLAIN, &mut Diagnostics::new());
    assert_eq!(
        edges(&output),
        [
            "noop[a] -> noop[b]",
            "noop[a] -> noop[c]",
            "noop[b] -> noop[d]",
            "noop[c] -> noop[d]"
        ]
    );
}

#[test]
fn a_false_condition_leaves_a_parameter_undefined() {
    let output = test("a")
        .set_if("stringptr", Value::Bool(false), Value::str("x"))
        .set_if("anotherstr", Value::Bool(true), Value::str(""))
        .output();
    let parameters = &output.resources[0].parameters;
    assert_eq!(parameters.get("stringptr"), None);
    assert_eq!(parameters.get("anotherstr"), Some(&Value::str("")));
}

#[test]
fn an_unknown_condition_makes_the_parameter_unknown() {
    let output = test("a")
        .set_if("anotherstr", Value::unknown(Type::Bool), Value::str("x"))
        .output();
    assert_eq!(
        output.resources[0].parameters.get("anotherstr"),
        Some(&Value::unknown(Type::Str))
    );
    assert_eq!(output.unknown[0].what, UnknownWhat::Condition("anotherstr"));
}

#[test]
fn the_marks_of_a_condition_go_to_the_parameter() {
    let output = test("a")
        .set_if("anotherstr", Value::Bool(true).sensitive(), Value::str("x"))
        .output();
    let value = output.resources[0].parameters.get("anotherstr");
    assert!(value.is_some_and(Value::is_sensitive));
}

#[test]
fn values_that_do_not_fit_are_reported_at_their_fields() {
    let (output, diagnostics) = test("a")
        .set("int8", Value::Int(128))
        .set("uint64", Value::Int(-1))
        .set("float32", Value::float(1e300))
        .set("pair", Value::list(Type::Int, [1, 2, 3].map(Value::Int)))
        .build();
    assert_eq!(codes(&diagnostics), ["value"; 4]);
    let starts: Vec<u32> = diagnostics.iter().map(|d| d.primary.span.start).collect();
    assert_eq!(starts, [1, 2, 3, 4]);
    assert_eq!(names(&output), ["a"], "edges to it shall not fail as well");
    test("a")
        .set("int8", Value::Int(-128))
        .set("float32", Value::float(f64::INFINITY))
        .output();
}

#[test]
fn a_value_that_does_not_fit_and_is_sensitive_is_not_shown() {
    let (_, diagnostics) = test("a").set("int8", Value::Int(12345).sensitive()).build();
    assert_eq!(codes(&diagnostics), ["value"]);
    assert!(!format!("{diagnostics:?}").contains("12345"));
}

#[test]
fn errors_of_a_statement_come_in_the_order_in_which_it_is_rejected() {
    let (_, diagnostics) = test(["", "$x"])
        .meta(MetaName::Limit, Value::float(1.0))
        .set("int8", Value::Int(1000))
        .build();
    assert_eq!(
        codes(&diagnostics),
        ["value", "empty-name", "meta", "refused-name"]
    );
}

#[test]
fn an_unknown_kind_is_reported_at_the_statement() {
    let mut statement = test("a").0;
    statement.schema = None;
    statement.kind = "nosuch".into();
    let mut diagnostics = Diagnostics::new();
    let output = build_resource(&statement, None, &Value::clone, &PLAIN, &mut diagnostics);
    assert_eq!(codes(&diagnostics), ["kind"]);
    assert!(output.resources.is_empty());
}

#[test]
fn bad_meta_parameters_are_reported_at_the_resource() {
    for (name, value) in [
        (MetaName::Retry, Value::Int(40_000)),
        (MetaName::Delay, Value::Int(-1)),
        (MetaName::Timeout, Value::Int(-1)),
        (MetaName::Poll, Value::Int(3_000_000_000)),
        (MetaName::Limit, Value::float(1.0)),
        (MetaName::Limit, Value::float(f64::NAN)),
        (MetaName::Burst, Value::Int(-3)),
        (MetaName::Sema, Value::strings([""])),
        (MetaName::Sema, Value::strings(["foo", "42"])),
        (MetaName::Export, Value::strings([""])),
        (MetaName::Export, Value::strings(["host"]).sensitive()),
    ] {
        let (_, diagnostics) = test("a").meta(name, value.clone()).build();
        assert_eq!(codes(&diagnostics), ["meta"], "{name:?} {value}");
        let diagnostic = diagnostics.iter().next().expect("there is one");
        assert_eq!(diagnostic.rule_place(), at(0));
        assert_ne!(diagnostic.primary.span, at(0), "it is shown where it is set");
    }
}

#[test]
fn meta_parameters_in_their_ranges_are_taken_and_noted_as_written() {
    let output = test("a")
        .meta(MetaName::Retry, Value::Int(-1))
        .meta(MetaName::Limit, Value::float(0.5))
        .meta(MetaName::Burst, Value::Int(3))
        .meta(MetaName::Sema, Value::strings(["foo:2", ":4"]))
        .output();
    let meta = &output.resources[0].meta;
    assert_eq!((meta.retry, meta.limit, meta.burst), (-1, 0.5, 3));
    assert_eq!(meta.sema, ["foo:2", ":4"]);
    let written: Vec<MetaName> = meta.written.iter().collect();
    assert_eq!(
        written,
        [MetaName::Retry, MetaName::Limit, MetaName::Burst, MetaName::Sema]
    );
}

#[test]
fn a_meta_struct_is_read_by_field_names() {
    let output = test("a")
        .meta_struct(&[("poll", Value::Int(5)), ("noop", Value::Bool(true))])
        .output();
    let meta = &output.resources[0].meta;
    assert!(meta.noop && meta.poll == 5 && meta.autoedge);
    assert!(meta.written.contains(MetaName::Poll) && !meta.written.contains(MetaName::Retry));
}

#[test]
fn an_unknown_meta_parameter_keeps_its_default_and_is_noted() {
    let output = test("a")
        .meta(MetaName::Noop, Value::unknown(Type::Bool))
        .output();
    assert!(!output.resources[0].meta.noop);
    assert_eq!(output.unknown[0].what, UnknownWhat::Meta(Some(MetaName::Noop)));
}

#[test]
fn a_language_may_refuse_names_that_it_is_asked_about_with_their_meta_parameters() {
    let (_, diagnostics) = test("$foo").build();
    assert_eq!(codes(&diagnostics), ["refused-name"]);
    let unknown = test("$foo").meta(MetaName::Dollar, Value::unknown(Type::Bool));
    assert!(unknown.build().1.is_empty());
    let output = test("$foo").meta(MetaName::Dollar, Value::Bool(true)).output();
    assert_eq!(names(&output), ["$foo"]);
}

#[test]
fn the_kind_validates_once_for_all_names_and_not_when_hidden() {
    let bad = || test(["a", "b"]).set("validateerror", Value::str("oh no"));
    let (_, diagnostics) = bad().build();
    assert_eq!(codes(&diagnostics), ["invalid"]);
    let diagnostic = diagnostics.iter().next().expect("there is one");
    assert_eq!(diagnostic.rule_place(), at(0));
    assert_eq!(diagnostic.primary.span.start, 1, "it is shown at the parameter");
    assert_eq!(diagnostic.help[0].text, "leave it empty");
    bad().hidden().output();
}

#[test]
fn what_is_unknown_does_not_fail_validation() {
    let (_, missing) = resource(&PACKAGE, "a").build();
    assert_eq!(codes(&missing), ["invalid"]);
    resource(&PACKAGE, "a")
        .set("state", Value::unknown(Type::Str))
        .output();
}

#[test]
fn sensitive_names_are_refused_without_showing_them() {
    let secret = Value::list(Type::Str, [Value::str("hunter2").sensitive()]);
    let (output, diagnostics) = test(secret.clone()).build();
    assert_eq!(codes(&diagnostics), ["sensitive-name"]);
    assert!(output.resources.is_empty() && !format!("{diagnostics:?}").contains("hunter2"));
    let (output, diagnostics) = test("a").edge(EdgeProperty::Before, "test", secret).build();
    assert_eq!(codes(&diagnostics), ["sensitive-name"]);
    assert!(output.edges.is_empty());
}

#[test]
fn a_name_that_is_not_utf8_is_refused() {
    let (output, diagnostics) = test(Value::str(vec![b'a', 0xff])).build();
    assert_eq!(codes(&diagnostics), ["not-text"]);
    assert!(output.resources.is_empty());
}

#[test]
fn an_unknown_name_builds_nothing_and_is_noted() {
    let output = test(Value::unknown(Type::Str)).text("x").output();
    assert!(output.resources.is_empty());
    assert_eq!(output.unknown[0].what, UnknownWhat::Name("test".into()));
    let endpoint = Value::list(Type::Str, [Value::str("a"), Value::unknown(Type::Str)]);
    let output = test(endpoint).output();
    assert_eq!((names(&output), output.unknown.len()), (vec!["a"], 1));
    let unknown = Value::unknown(Type::Str);
    let output = test("a").edge(EdgeProperty::Before, "test", unknown).output();
    assert!(output.edges.is_empty());
    assert_eq!(output.unknown[0].what, UnknownWhat::EdgeName);
}

#[test]
fn an_edge_exists_while_its_condition_is_true() {
    let with = |condition| {
        test("a")
            .edge_if(EdgeProperty::Before, "test", "b", Some(condition))
            .output()
    };
    assert_eq!(with(Value::Bool(true)).edges.len(), 1);
    assert!(with(Value::Bool(false)).edges.is_empty());
    let output = with(Value::unknown(Type::Bool));
    assert!(output.edges.is_empty());
    assert_eq!(output.unknown[0].what, UnknownWhat::EdgeCondition);
}

#[test]
fn collecting_sets_the_body_over_what_was_found() {
    let mut meta = MetaParameters::default();
    for (name, value) in [
        (MetaName::Hidden, Value::Bool(true)),
        (MetaName::Export, Value::strings(["*"])),
        (MetaName::Retry, Value::Int(3)),
    ] {
        meta.set(name, &value).expect("it is valid");
    }
    let found = CollectedResource {
        host: "h".into(),
        name: "a".into(),
        parameters: Parameters::new([("anotherstr", Value::str("far")), ("int8", Value::Int(1))]),
        meta,
    };
    let statement: ResourceStatement<Value> = test("ignored").text("near").0;
    let mut diagnostics = Diagnostics::new();
    let output = build_collected(
        &statement,
        &[found],
        None,
        &Value::clone,
        &PLAIN,
        &mut diagnostics,
    );
    let collected = &output.resources[0];
    assert_eq!(&*collected.id.name, "a");
    assert_eq!(collected.parameters.get("anotherstr"), Some(&Value::str("near")));
    assert_eq!(collected.parameters.get("int8"), Some(&Value::Int(1)));
    assert_eq!(collected.meta.retry, 3);
    assert!(collected.meta.export.is_empty() && !collected.meta.hidden);
    assert!(diagnostics.is_empty());
}

#[test]
fn a_collect_statement_asks_for_names_or_for_pairs() {
    let ty = Type::parse("struct{name str; host str}").expect("it is a type");
    let pair = |name, host| Value::structure(ty.clone(), [Value::str(name), Value::str(host)]);
    let read = |names: Value| {
        let mut diagnostics = Diagnostics::new();
        let requests = read_collect(&names, at(0), &PLAIN, &mut diagnostics);
        let requests: Vec<String> = requests
            .iter()
            .map(|r| format!("{}@{}", r.name, r.host.as_deref().unwrap_or("any")))
            .collect();
        (requests.join(" "), codes(&diagnostics))
    };
    assert_eq!(read(Value::str("a")), ("a@any".to_owned(), vec![]));
    assert_eq!(
        read(Value::strings(["a", "b"])),
        ("a@any b@any".to_owned(), vec![])
    );
    let pairs = [pair("a", "h"), pair("", "h"), pair("a", ""), pair("a", "*")];
    let (requests, found) = read(Value::list(ty.clone(), pairs));
    assert_eq!((requests.as_str(), found), ("a@h", vec!["collect"; 3]));
}

#[test]
fn conditions_that_are_false_are_not_evaluated_further() {
    let statement = resource(&NOOP, "a")
        .set_if("comment", Value::Bool(false), Value::Int(7))
        .0;
    let asked = |value: &Value| {
        assert_ne!(value, &Value::Int(7));
        value.clone()
    };
    let output = build_resource(&statement, None, &asked, &PLAIN, &mut Diagnostics::new());
    assert_eq!(names(&output), ["a"]);
}
