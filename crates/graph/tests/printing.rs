//! JSON, DOT and the listing.

use std::sync::Arc;

use serde_json::json;
use setpoint_diagnostics::{Diagnostic, Diagnostics, FileId, SourceMap, Span};
use setpoint_graph::json::{diagnostics_json, graph_json, value_json};
use setpoint_graph::{
    Cause, DesiredGraph, DesiredResource, EdgeProperty, Link, MetaName, PrintedGraph, StatementOutput, dot,
    text,
};
use setpoint_value::{Map, Type, Value};

use crate::kinds::{assemble, send, test};
use crate::plain::{CYCLE, EMPTY_NAME};

fn graph() -> DesiredGraph {
    assemble([
        test("b").hidden().output(),
        test("c\"\n")
            .text("hi")
            .edge(EdgeProperty::Listen, "test", "a")
            .output(),
        test("a")
            .set("int8", Value::Int(1))
            .meta(MetaName::Noop, Value::Bool(true))
            .output(),
        send("a", "hello", "c\"\n", "anotherstr"),
    ])
    .expect("it is right")
}

fn sources() -> SourceMap {
    let mut sources = SourceMap::new();
    sources.add("main.mcl", "ä = 1\nsecond line\n");
    sources
}

#[test]
fn a_graph_is_printed_as_json() {
    let printed = graph_json(&graph(), &Diagnostics::new(), &sources());
    let span = json!({"file": "main.mcl", "line": 1, "col": 1});
    let a = json!({"kind": "test", "name": "a"});
    let c = json!({"kind": "test", "name": "c\"\n"});
    let expected = json!({
        "resources": [
            {"kind": "test", "name": "a", "params": {"int8": 1}, "meta": {"noop": true}, "span": span},
            {"kind": "test", "name": "c\"\n", "params": {"anotherstr": "hi"}, "meta": {}, "span": span},
            {"kind": "test", "name": "b", "params": {}, "meta": {"hidden": true}, "span": span},
        ],
        "edges": [
            {"from": a, "to": c, "notify": true, "send": [{"from": "hello", "to": "anotherstr"}]},
        ],
        "diagnostics": [],
    });
    assert_eq!(printed, expected);
    let keys = |value: &serde_json::Value| match value {
        serde_json::Value::Object(object) => object.keys().cloned().collect(),
        _ => Vec::new(),
    };
    assert_eq!(keys(&printed), ["resources", "edges", "diagnostics"]);
}

#[test]
fn values_that_json_lacks_have_a_form_of_their_own() {
    let ints = [(Value::Int(1), Value::str("x"))];
    let texts = |key: &str| Value::Map(Map::new(Type::Str, Type::Int, [(Value::str(key), Value::Int(1))]));
    let pair = Type::parse("struct{a int; b float}").expect("it is a type");
    for (value, expected) in [
        (
            Value::structure(pair, [Value::Int(1), Value::float(1.5)]),
            json!({"a": 1, "b": 1.5}),
        ),
        (texts("k"), json!({"k": 1})),
        (texts("$map"), json!({"$map": [["$map", 1]]})),
        (
            Value::Map(Map::new(Type::Int, Type::Str, ints)),
            json!({"$map": [[1, "x"]]}),
        ),
        (Value::float(f64::NAN), json!("NaN")),
        (Value::float(f64::NEG_INFINITY), json!("-Inf")),
        (Value::float(f64::INFINITY), json!("+Inf")),
        (Value::str(vec![0xff, 0x00]), json!({"$bytes": "/wA="})),
        (
            Value::unknown(Type::list(Type::Str)),
            json!({"$unknown": "[]str"}),
        ),
        (
            Value::list(Type::Str, [Value::str("secret").sensitive()]),
            json!([{"$sensitive": true}]),
        ),
    ] {
        assert_eq!(value_json(&value), expected);
    }
}

#[test]
fn diagnostics_are_rows_with_places_from_one() {
    let file = FileId(0);
    let span = Span::new(file, 3, 4);
    let diagnostic = Diagnostic::error(&EMPTY_NAME, span, "no name")
        .because(Span::new(file, 7, 13), "this")
        .via(Span::new(file, 0, 2), "imported here")
        .help("give it one");
    let mut diagnostics = Diagnostics::new();
    diagnostics.push(diagnostic);
    diagnostics.push(Diagnostic::warning(
        &CYCLE,
        Span::new(FileId(9), 0, 1),
        "elsewhere",
    ));
    assert_eq!(
        diagnostics_json(&diagnostics, &sources()),
        json!([
            {
                "severity": "error", "stage": "build", "code": "empty-name", "message": "no name",
                "file": "main.mcl", "line": 1, "col": 3, "end_line": 1, "end_col": 4, "help": "give it one",
                "related": [
                    {"file": "main.mcl", "line": 1, "col": 1, "message": "imported here"},
                    {"file": "main.mcl", "line": 2, "col": 1, "message": "this"},
                ],
            },
            {
                "severity": "warning", "stage": "build", "code": "cycle", "message": "elsewhere",
                "file": null, "line": null, "col": null, "end_line": null, "end_col": null, "help": null,
            },
        ])
    );
}

#[test]
fn dot_and_the_listing_escape_names() {
    let graph = graph();
    let printed = dot::graph_dot(&graph);
    assert!(
        printed.contains(r#""test[a]" -> "test[c\"\\n]" [style=bold, label="hello -> anotherstr"];"#),
        "{printed}"
    );
    assert!(printed.contains(r#""test[b]" [style=dashed];"#), "{printed}");
    assert_eq!(
        text::graph_text(&graph, Some(&sources())),
        concat!(
            "test \"a\"  # main.mcl:1:1\n    int8 => 1\n    Meta:noop => true\n\n",
            "test \"c\\\"\\n\"  # main.mcl:1:1\n    anotherstr => \"hi\"\n\n",
            "test \"b\" (hidden)  # main.mcl:1:1\n    Meta:hidden => true\n\n",
            "test \"a\" -> test \"c\\\"\\n\"  (notifies, sends hello as anotherstr)\n",
        )
    );
}

/// A statement that comes to be there through a loop in a class, over a key that is not to be seen.
fn put_in_place(output: &StatementOutput) -> StatementOutput {
    let span = Span::new(FileId(0), 7, 13);
    let link = |cause, outer| Some(Arc::new(Link { cause, span, outer }));
    let include = link(Cause::Include("the class `c`".into()), None);
    let chain = link(Cause::Key(Value::str("hunter2").sensitive()), include);
    let with_chain = |resource: &Arc<DesiredResource>| {
        let resource = (**resource).clone();
        let chain = chain.clone();
        Arc::new(DesiredResource { chain, ..resource })
    };
    StatementOutput {
        resources: output.resources.iter().map(with_chain).collect(),
        ..output.clone()
    }
}

#[test]
fn chains_are_shown_where_they_are_asked_for() {
    let graph = assemble([put_in_place(&test("a").output())]).expect("it is right");
    let mut printed = PrintedGraph::from(&graph);
    assert_eq!(
        text::graph_text(printed, Some(&sources())),
        "test \"a\"  # main.mcl:1:1\n"
    );
    printed.chains = true;
    assert_eq!(
        text::graph_text(printed, Some(&sources())),
        concat!(
            "test \"a\"  # main.mcl:1:1\n",
            "    # for the key `(sensitive)`: main.mcl:2:1\n",
            "    # in the class `c`, included here: main.mcl:2:1\n",
        )
    );
    let printed = graph_json(printed, &Diagnostics::new(), &sources());
    let span = json!({"file": "main.mcl", "line": 2, "col": 1});
    let expected = json!([
        {"step": "for the key `(sensitive)`", "span": span},
        {"step": "in the class `c`, included here", "span": span},
    ]);
    assert_eq!(printed["resources"][0]["chain"], expected);
}

#[test]
fn resources_that_come_about_in_other_ways_want_the_same() {
    let (plain, inside) = (test("a").output(), put_in_place(&test("a").output()));
    let (a, b) = (&plain.resources[0], &inside.resources[0]);
    assert!(a == b && a.is_equal(b) && !a.is_interchangeable(b));
    let graphs = [assemble([plain]), assemble([inside])].map(|graph| graph.expect("it is right"));
    assert!(graphs[0].is_equal(&graphs[1]));
}

#[test]
fn sensitive_values_are_shown_nowhere() {
    let secret = test("a").set("anotherstr", Value::str("hunter2").sensitive());
    let other = test("a").set("anotherstr", Value::str("swordfish").sensitive());
    let graph = assemble([secret.output()]).expect("it is right");
    let clash = assemble([secret.output(), other.output()]).expect_err("they differ");
    let all = [
        graph_json(&graph, &clash, &sources()).to_string(),
        text::graph_text(&graph, None),
        dot::graph_dot(&graph),
        format!("{graph:?}"),
    ];
    for printed in all {
        assert!(
            !printed.contains("hunter2") && !printed.contains("swordfish"),
            "{printed}"
        );
    }
    let resource = graph.resource("test", "a").map(Arc::strong_count);
    assert!(resource.is_some());
}
