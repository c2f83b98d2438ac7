//! Many statements, and what changes of them come to.

use std::sync::Arc;

use setpoint_diagnostics::Diagnostics;
use setpoint_graph::{
    Assembler, DesiredGraph, EdgeProperty, MetaName, StatementOutput, UnknownPart, UnknownWhat, diff,
};
use setpoint_value::{Type, Value};

use crate::kinds::{
    PACKAGE, PLAIN, Resource, assemble, at, chain, codes, edge_statement, resource, send, shared, test,
};

fn good(outputs: Vec<StatementOutput>) -> DesiredGraph {
    let graph = assemble(outputs).expect("it is right");
    graph.check().expect("it keeps the rules");
    graph
}

fn bad(outputs: Vec<StatementOutput>) -> Diagnostics {
    assemble(outputs).expect_err("it is wrong")
}

fn only(resource: &Resource) -> StatementOutput {
    resource.output()
}

fn hosts(list: &[&str]) -> Value {
    Value::strings(list.iter().copied())
}

fn package(state: &str) -> StatementOutput {
    resource(&PACKAGE, "p").set("state", Value::str(state)).output()
}

#[test]
fn equal_resources_collapse_with_all_their_edges() {
    let graph = good(vec![
        only(&test("x")),
        only(&test("y")),
        only(&test("a").edge(EdgeProperty::Before, "test", "x")),
        only(&test("a").edge(EdgeProperty::Depend, "test", "y")),
    ]);
    assert_eq!((graph.resources.len(), graph.edges.len()), (3, 2));
}

#[test]
fn different_resources_of_one_name_are_an_error_at_the_later() {
    let diagnostics = bad(vec![
        only(&test("a").text("one").span(100)),
        only(&test("a").text("two").span(200)),
    ]);
    assert_eq!(codes(&diagnostics), ["different"]);
    let diagnostic = diagnostics.iter().next().expect("there is one");
    assert_eq!(diagnostic.primary.span, at(200));
    assert_eq!(diagnostic.primary.text, "`anotherstr` is `\"two\"`");
    assert_eq!(diagnostic.secondary[0].span, at(100));
}

#[test]
fn different_meta_parameters_are_a_difference_but_not_retryreset_nor_the_order_of_lists() {
    let yes = || Value::Bool(true);
    let one = |resource: Resource| only(&resource);
    assert_eq!(
        codes(&bad(vec![
            one(test("a")),
            one(test("a").meta(MetaName::Noop, yes()))
        ])),
        ["different"]
    );
    good(vec![
        one(test("a").meta(MetaName::Retryreset, yes())),
        one(test("a")),
    ]);
    good(vec![
        one(test("a").meta(MetaName::Sema, hosts(&["x", "y"]))),
        one(test("a").meta(MetaName::Sema, hosts(&["y", "x"]))),
    ]);
}

#[test]
fn leaving_out_a_parameter_equals_its_default_unless_it_is_optional() {
    let graph = good(vec![only(&test("a")), only(&test("a").text(""))]);
    assert!(graph.resource("test", "a").is_some());
    let optional = test("a").set("stringptr", Value::str(""));
    assert_eq!(
        codes(&bad(vec![only(&test("a")), only(&optional)])),
        ["different"]
    );
}

#[test]
fn marks_of_equal_resources_are_united() {
    let graph = good(vec![
        only(&test("a").text("x")),
        only(&test("a").set("anotherstr", Value::str("x").sensitive())),
    ]);
    let value = graph
        .resource("test", "a")
        .and_then(|r| r.parameters.get("anotherstr"));
    assert!(value.is_some_and(Value::is_sensitive));
}

#[test]
fn an_unknown_parameter_contradicts_nothing() {
    let unknown = test("a").set("anotherstr", Value::unknown(Type::Str));
    for outputs in [
        vec![only(&unknown), only(&test("a").text("x"))],
        vec![only(&test("a").text("x")), only(&unknown)],
    ] {
        let graph = good(outputs);
        let value = graph
            .resource("test", "a")
            .and_then(|r| r.parameters.get("anotherstr").cloned());
        assert_eq!(value, Some(Value::str("x")));
    }
}

#[test]
fn a_kind_that_merges_takes_compatible_duplicates_and_refuses_others() {
    let edge = resource(&PACKAGE, "p")
        .set("state", Value::str("installed"))
        .edge(EdgeProperty::Before, "test", "x");
    let graph = good(vec![package("newest"), only(&edge), only(&test("x"))]);
    let merged = graph.resource("pkg", "p").expect("it is there");
    assert_eq!(merged.parameters.get("state"), Some(&Value::str("newest")));
    assert_eq!(graph.edges.len(), 1);
    assert_eq!(
        codes(&bad(vec![package("newest"), package("absent")])),
        ["incompatible"]
    );
}

#[test]
fn hidden_resources_stand_beside_each_other_and_a_normal_one() {
    let graph = good(vec![
        only(&test("a").text("one").hidden()),
        only(&test("a").text("two").hidden()),
        only(&test("a").text("two").hidden()),
        only(&test("a").text("three")),
    ]);
    assert_eq!(graph.resources.len(), 1);
    assert_eq!(graph.hidden.values().map(Vec::len).sum::<usize>(), 2);
}

#[test]
fn an_edge_finds_a_resource_that_is_only_hidden() {
    let graph = good(vec![
        only(&test("a").hidden()),
        only(&test("b").edge(EdgeProperty::Depend, "test", "a")),
    ]);
    assert_eq!(graph.edges.len(), 1);
}

#[test]
fn different_exports_to_one_host_are_an_error_even_when_hidden() {
    let export = |text, list: &[&str]| {
        let resource = test("a").text(text).hidden();
        only(&resource.meta(MetaName::Export, hosts(list)))
    };
    let diagnostics = bad(vec![export("one", &["h", "i"]), export("two", &["i"])]);
    assert_eq!(codes(&diagnostics), ["exports"]);
    good(vec![export("one", &["h"]), export("two", &["i"])]);
    good(vec![export("one", &["h"]), export("one", &["h"])]);
}

#[test]
fn a_missing_end_is_reported_at_the_statement_once() {
    let diagnostics = bad(vec![only(&test(["a", "b"]).span(100).edge(
        EdgeProperty::Depend,
        "test",
        "nope",
    ))]);
    assert_eq!(codes(&diagnostics), ["missing"]);
    let diagnostic = diagnostics.iter().next().expect("there is one");
    assert_eq!(diagnostic.primary.span, at(100));
    let diagnostics = bad(vec![chain(&[("test", "x"), ("test", "y")])]);
    assert_eq!(
        codes(&diagnostics),
        ["missing", "missing"],
        "both ends are missing"
    );
}

#[test]
fn a_missing_end_with_a_similar_name_is_suggested() {
    let diagnostics = bad(vec![
        only(&test("network")),
        only(&test("b").edge(EdgeProperty::Depend, "test", "netwrok")),
    ]);
    let help = diagnostics.iter().flat_map(|d| &d.help).next();
    assert_eq!(
        help.map(|help| help.text.as_str()),
        Some("did you mean `network`?")
    );
}

#[test]
fn an_end_that_may_still_turn_up_is_no_error() {
    let edge = only(&test("b").edge(EdgeProperty::Depend, "test", "a"));
    let unnamed = test(Value::unknown(Type::Str)).output();
    let graph = good(vec![edge.clone(), unnamed]);
    assert!(graph.edges.is_empty());
    let block = StatementOutput {
        unknown: vec![UnknownPart {
            span: at(0),
            what: UnknownWhat::Block,
        }],
        ..StatementOutput::default()
    };
    let mut assembler = Assembler::new(&PLAIN);
    assert!(
        assembler
            .apply(vec![(1, shared(edge)), (2, shared(block))])
            .is_ok()
    );
    assert_eq!(assembler.unknown().count(), 1);
    let diagnostics = assembler.apply(vec![(2, None)]).expect_err("it is missing now");
    assert_eq!(codes(&diagnostics), ["missing"]);
}

#[test]
fn parallel_edges_become_one_that_notifies_if_any_does() {
    let graph = good(vec![
        only(&test("a").edge(EdgeProperty::Before, "test", "b")),
        only(&test("b").edge(EdgeProperty::Listen, "test", "a")),
        send("a", "hello", "b", "stringptr"),
        send("a", "hello", "b", "anotherstr"),
        send("a", "hello", "b", "anotherstr"),
    ]);
    assert_eq!(graph.edges.len(), 1);
    let edge = graph.edges.values().next().expect("there is one");
    let sent: Vec<&str> = edge.send.iter().map(|(_, to)| &**to).collect();
    assert!(edge.notify);
    assert_eq!(sent, ["anotherstr", "stringptr"]);
}

#[test]
fn a_parameter_has_one_sender() {
    let all = || vec![only(&test("a")), only(&test("b")), only(&test("c"))];
    let mut twice = all();
    twice.extend([
        send("a", "hello", "c", "anotherstr"),
        send("b", "hello", "c", "anotherstr"),
    ]);
    assert_eq!(codes(&bad(twice)), ["second-sender"]);
    let mut two_keys = all();
    two_keys.extend([
        send("a", "hello", "c", "interface"),
        send("a", "answer", "c", "interface"),
    ]);
    assert_eq!(codes(&bad(two_keys)), ["second-sender"]);
}

#[test]
fn a_hidden_resource_cannot_send() {
    let diagnostics = bad(vec![
        only(&test("a").hidden()),
        only(&test("b")),
        send("a", "hello", "b", "anotherstr"),
    ]);
    assert_eq!(codes(&diagnostics), ["hidden-sender"]);
}

#[test]
fn what_is_sent_fits_what_receives() {
    let with = |key, parameter| {
        assemble(vec![
            only(&test("a")),
            only(&test("b")),
            send("a", key, "b", parameter),
        ])
    };
    assert!(with("answer", "int64").is_ok());
    assert!(with("answer", "interface").is_ok());
    assert!(
        with("hello", "int8").is_ok(),
        "optional is converted when it moves"
    );
    for (key, parameter) in [("answer", "int8"), ("nope", "int64"), ("answer", "nope")] {
        let diagnostics = with(key, parameter).expect_err("it does not fit");
        assert_eq!(codes(&diagnostics), ["mismatch"], "{key} {parameter}");
    }
}

#[test]
fn a_cycle_is_reported_with_its_path_and_its_edges() {
    let diagnostics = bad(vec![
        only(&test("a").span(100)),
        only(&test("b").span(200)),
        only(&test("c").span(300).edge(EdgeProperty::Before, "test", "a")),
        chain(&[("test", "a"), ("test", "b"), ("test", "c")]),
    ]);
    assert_eq!(codes(&diagnostics), ["cycle"]);
    let diagnostic = diagnostics.iter().next().expect("there is one");
    assert_eq!(
        diagnostic.message,
        "resources wait for each other: test[a] -> test[b] -> test[c] -> test[a]"
    );
    let starts: Vec<u32> = diagnostic
        .secondary
        .iter()
        .map(|label| label.span.start)
        .collect();
    assert_eq!(starts, [200, 300, 500, 501, 301]);
    assert_eq!(diagnostic.primary.span, at(100));
}

#[test]
fn a_resource_that_waits_for_itself_is_a_cycle() {
    let diagnostics = bad(vec![only(&test("a").edge(EdgeProperty::Before, "test", "a"))]);
    assert_eq!(codes(&diagnostics), ["cycle"]);
}

#[test]
fn errors_come_by_step_and_then_in_program_order() {
    let mut assembler = Assembler::new(&PLAIN);
    let diagnostics = assembler
        .apply(vec![
            (
                5,
                shared(only(&test("z").edge(EdgeProperty::Before, "test", "z"))),
            ),
            (4, shared(only(&test("a").text("other")))),
            (3, shared(chain(&[("test", "z"), ("test", "gone")]))),
            (
                2,
                shared(edge_statement(&[("test", "nope"), ("test", "z")], None, 700)),
            ),
            (1, shared(only(&test("a")))),
        ])
        .expect_err("there is much wrong");
    assert_eq!(codes(&diagnostics), ["different", "missing", "missing", "cycle"]);
    let starts: Vec<u32> = diagnostics.iter().map(|d| d.primary.span.start).collect();
    assert_eq!(starts[1..3], [700, 500]);
}

#[test]
fn an_assembler_goes_on_after_errors_and_reports_what_is_left_of_them() {
    let mut assembler = Assembler::new(&PLAIN);
    let first = assembler
        .apply(vec![(1, shared(only(&test("a").text("x"))))])
        .expect("it is right");
    assert_eq!(first.generation, 1);
    assert!(
        assembler
            .apply(vec![(2, shared(only(&test("a").text("y"))))])
            .is_err()
    );
    assert!(
        assembler.apply(vec![(3, shared(only(&test("b"))))]).is_err(),
        "the contradiction is still there"
    );
    let mended = assembler.apply(vec![(2, None)]).expect("it is mended");
    assert_eq!((mended.generation, mended.resources.len()), (2, 2));
}

#[test]
fn the_generation_rises_only_when_something_changed() {
    let mut assembler = Assembler::new(&PLAIN);
    assert_eq!(assembler.graph().generation, 0);
    let generation = |result: Result<DesiredGraph, Diagnostics>| result.map(|g| g.generation).ok();
    let a = || shared(only(&test("a").text("x")));
    assert_eq!(
        generation(assembler.apply(Vec::new())),
        Some(1),
        "the empty program"
    );
    assert_eq!(generation(assembler.apply(vec![(1, a())])), Some(2));
    assert_eq!(generation(assembler.apply(vec![(1, a())])), Some(2));
    assert_eq!(generation(assembler.apply(vec![(2, a())])), Some(2));
    let contradiction = shared(only(&test("a").text("y")));
    assert_eq!(generation(assembler.apply(vec![(3, contradiction)])), None);
    assert_eq!(
        generation(assembler.apply(vec![(3, None)])),
        Some(2),
        "taken back"
    );
    assert_eq!(generation(assembler.apply(vec![(1, None), (2, None)])), Some(3));
}

#[test]
fn what_did_not_change_keeps_its_place_in_memory() {
    let mut assembler = Assembler::new(&PLAIN);
    let changes = (0..100).map(|i| (i, shared(only(&test(format!("r{i}").as_str())))));
    let before = assembler.apply(changes.collect()).expect("it is right");
    let after = assembler
        .apply(vec![(7, shared(only(&test("r7").text("new"))))])
        .expect("it is right");
    for (id, resource) in &before.resources {
        let same = Arc::ptr_eq(resource, &after.resources[id]);
        assert_eq!(same, &*id.name != "r7");
    }
    let change = diff(&before, &after);
    assert_eq!(
        (change.changed.len(), change.added.len(), change.removed.len()),
        (1, 0, 0)
    );
}

#[test]
fn an_edge_comes_and_goes_with_its_ends() {
    let mut assembler = Assembler::new(&PLAIN);
    let edge = || shared(chain(&[("test", "a"), ("test", "b")]));
    let (a, b) = (|| shared(only(&test("a"))), || shared(only(&test("b"))));
    assembler
        .apply(vec![(1, a()), (2, b()), (3, edge())])
        .expect("it is right");
    assert!(assembler.apply(vec![(2, None)]).is_err());
    let graph = assembler.apply(vec![(2, b())]).expect("it is right");
    assert_eq!(graph.edges.len(), 1);
    let graph = assembler.apply(vec![(2, None), (3, None)]).expect("it is right");
    assert_eq!((graph.resources.len(), graph.edges.len()), (1, 0));
}
