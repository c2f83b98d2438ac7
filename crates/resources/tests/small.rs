//! The kinds that touch little: `print`, `noop`, `timer`, `value`, `test`, `exit`, `_panic`.

use setpoint_engine::{Level, Watch};
use setpoint_graph::{ConstantValue, ParameterType};
use setpoint_resources::KINDS;
use setpoint_value::{Type, Value, Values as _};

use crate::harness::{Bench, given, refused, spec, text, texts, yes};

#[test]
fn print_shows_a_message_once_and_again_when_it_changes() {
    let bench = Bench::new();
    let mut print = bench.resource("print", "p", &[("msg", text("hello"))]);
    let run = print.apply();
    assert_eq!(run.drifted(&["msg"]).displayed, ["hello"]);
    print.apply().is_ok();
    print.receive("msg", &text(""));
    assert_eq!(print.apply().drifted(&["msg"]).displayed, ["<empty>"]);
}

#[test]
fn print_under_noop_shows_nothing_and_forgets_that_it_looked() {
    let bench = Bench::new();
    let mut print = bench.resource("print", "p", &[("msg", text("hello"))]);
    for _ in 0..2 {
        let run = print.check();
        assert_eq!(run.drifted(&["msg"]).displayed, Vec::<String>::new());
    }
    assert_eq!(print.apply().displayed, ["hello"]);
}

#[test]
fn print_with_refresh_only_waits_for_a_notification() {
    let bench = Bench::new();
    let mut print = bench.resource("print", "p", &[("msg", text("again")), ("refresh_only", yes())]);
    print.apply().is_ok();
    print.refresh = true;
    assert_eq!(print.apply().displayed, ["again"]);
    assert_eq!(print.apply().displayed, ["again"]);
}

#[test]
fn a_changed_member_shows_the_whole_group() {
    let bench = Bench::new();
    let mut leader = bench.resource("print", "b", &[("msg", text("one"))]);
    let member = bench.resource("print", "a", &[("msg", text("two"))]);
    let shy = bench.resource("print", "c", &[("refresh_only", yes())]);
    assert_eq!(leader.resource().grouping(), member.resource().grouping());
    assert!(!leader.resource().grouping().is_none());
    assert!(shy.resource().grouping().is_none());
    let id = leader.take_in(member);
    let run = leader.apply();
    assert_eq!(run.displayed, ["one", "print[a]: two"]);
    assert_eq!(run.report_of(&id), ["msg: (absent) → two"]);
    leader.apply().is_ok();
    let member = leader.resource_mut().members().unwrap().get_mut(&id).unwrap();
    let changed = text("three").sensitive();
    member
        .instance_mut()
        .set_parameter("msg", Some(&changed))
        .unwrap();
    assert_eq!(leader.check().drifted(&["msg"]).displayed, Vec::<String>::new());
    let run = leader.apply();
    assert_eq!(run.displayed, ["one", "print[a]: (sensitive)"]);
    assert_eq!(
        run.report_of(&id),
        ["msg: (sensitive) → (sensitive)"],
        "what is shown again without a change is no difference"
    );
}

#[test]
fn noop_does_nothing_and_takes_any_other_into_its_group() {
    let bench = Bench::new();
    let mut noop = bench.resource("noop", "n", &[("comment", text("c"))]);
    noop.refresh = true;
    let run = noop.apply();
    run.is_ok();
    assert_eq!(run.log, [(Level::Info, "received a notification".to_owned())]);
    let other = bench.resource("noop", "m", &[]);
    assert_eq!(noop.resource().grouping(), other.resource().grouping());
    noop.take_in(other);
    noop.apply().is_ok();
}

#[test]
fn timer_drifts_only_when_notified_and_then_begins_anew() {
    let bench = Bench::new();
    let mut timer = bench.resource("timer", "t", &[("interval", Value::Int(5))]);
    assert!(matches!(timer.resource().watches()[..], [Watch::Tick(period)] if period.as_secs() == 5));
    timer.apply().is_ok();
    timer.refresh = true;
    assert!(timer.apply().drifted(&["refresh"]).restart_interval);
    assert!(!timer.check().drifted(&["refresh"]).restart_interval);
    assert_eq!(
        refused("timer", "t", &[]),
        ["interval: must be at least 1 second"]
    );
    assert_eq!(
        refused("timer", "t", &[("interval", Value::Int(-1))]),
        ["interval: -1 does not fit 32 bits without a sign"]
    );
}

#[test]
fn value_keeps_what_it_is_given_and_sends_it_on() {
    let bench = Bench::new();
    let list = Value::strings(["a", "b"]);
    let mut value = bench.resource("value", "some/key", &[("any", list.clone())]);
    let run = value.check();
    assert_eq!(run.drifted(&["any"]).sent("any"), Some(list.clone()));
    assert_eq!(bench.values().get("some/key"), None);
    value.apply().drifted(&["any"]);
    let run = value.apply();
    run.is_ok();
    assert!(run.sent.as_ref().unwrap().is_final);
    assert_eq!(bench.values().get("some/key"), Some(list));

    value.receive("any", &Value::Int(7));
    value.apply().drifted(&["any"]);
    assert_eq!(bench.values().get("some/key"), Some(Value::Int(7)));
    value.received.clear();
    value.apply().is_ok();

    let mut unset = bench.resource("value", "some/key", &[]);
    assert!(unset.apply().drifted(&["any"]).sent("any").unwrap().is_null());
    assert_eq!(bench.values().get("some/key"), None);
    unset.apply().is_ok();
}

#[test]
fn a_received_value_that_is_stored_already_still_counts_as_news() {
    let bench = Bench::new();
    bench.values().set("k", &Value::Int(1)).unwrap();
    let mut value = bench.resource("value", "k", &[]);
    value.receive("any", &Value::Int(1));
    value.apply().drifted(&["any"]);
}

#[test]
fn exit_asks_for_the_end_unless_it_may_not() {
    let bench = Bench::new();
    let mut exit = bench.resource("exit", "e", &[("code", Value::Int(3))]);
    exit.check().drifted(&["exit"]);
    assert!(bench.exits.lock().unwrap().is_empty());
    exit.apply().drifted(&["exit"]);
    assert_eq!(*bench.exits.lock().unwrap(), [3]);
    assert_eq!(
        refused("exit", "e", &[("code", Value::Int(126))]),
        ["code: an exit status is between 0 and 125"]
    );
    assert_eq!(
        refused("exit", "e", &[("code", Value::Int(256))]),
        ["code: 256 does not fit 8 bits without a sign"]
    );
}

#[test]
fn panic_is_always_right_and_always_the_same() {
    let bench = Bench::new();
    bench.resource("_panic", "_panic", &[]).apply().is_ok();
}

#[test]
fn the_schema_of_test_has_the_widths_of_its_documentation() {
    let parameter_type = |name: &str| *spec("test").schema.parameter(name).unwrap().parameter_type;
    let int = |bits, signed| ParameterType::Int { bits, signed };
    for (name, wanted) in [
        ("int", int(64, true)),
        ("int8", int(8, true)),
        ("int16", int(16, true)),
        ("rune", int(32, true)),
        ("byte", int(8, false)),
        ("uint", int(64, false)),
        ("uint16", int(16, false)),
        ("float32", ParameterType::Float { bits: 32 }),
        ("interface", ParameterType::Optional(&ParameterType::Any)),
        ("func1", ParameterType::Func("func(int) str")),
    ] {
        assert_eq!(parameter_type(name), wanted, "{name}");
    }
    assert_eq!(
        parameter_type("mixedstruct").ty().to_string(),
        "struct{somebool bool; somestr str; someint int; somefloat float}"
    );
    assert_eq!(parameter_type("int8ptrptrptr").ty(), Type::Int);
    let schema = spec("test").schema;
    assert_eq!(schema.parameter("boolptr").unwrap().yaml_name, "bool_ptr");
    assert_eq!(schema.send_key("hello").unwrap().parameter_type.ty(), Type::Str);
    assert_eq!(schema.send_key("answer").unwrap().parameter_type.ty(), Type::Int);
}

#[test]
fn test_logs_what_it_is_asked_to_show_and_sends() {
    let bench = Bench::new();
    let mut test = bench.resource(
        "test",
        "t",
        &[
            ("anotherstr", text("x")),
            ("int8", Value::Int(-8)),
            ("sendvalue", text("hi")),
            ("onlyshow", texts(&["Another_Str", "Int8"])),
        ],
    );
    let run = test.check();
    run.is_ok();
    assert_eq!(run.displayed, ["int8: -8", "anotherstr: \"x\""]);
    assert_eq!(run.sent("hello"), Some(text("hi")));
    assert_eq!(run.sent("answer"), Some(Value::Int(42)));
}

#[test]
fn test_fails_where_it_is_told_to() {
    let bench = Bench::new();
    assert_eq!(refused("test", "t", &[("validatebool", yes())]).len(), 1);
    assert_eq!(
        refused("test", "t", &[("validateerror", text("so there"))]),
        ["validateerror: so there"]
    );
    assert_eq!(
        refused("test", "t", &[("int8", Value::Int(128))]),
        ["int8: 128 does not fit 8 bits"]
    );

    let mut expecting = bench.resource("test", "t", &[("expectrecv", texts(&["int8"]))]);
    assert_eq!(
        expecting.apply().failure(),
        "receive what is expected: 0 came, 1 were expected"
    );
    expecting.receive("int8", &Value::Int(1));
    expecting.apply().is_ok();

    let mut failing = bench.resource("test", "t", &[("waitforerror", Value::Int(1))]);
    assert_eq!(failing.apply().failure(), "succeed: it fails as it was told to");
    let mut stopped = bench.resource("test", "t", &[("waitforerror", Value::Int(1_000_000))]);
    stopped
        .cancellation
        .cancel(setpoint_engine::CancelCause::Stopping);
    assert_eq!(stopped.apply().failure(), "wait for the error");
}

#[test]
fn test_compares_as_it_is_told_to() {
    let spec = spec("test");
    let (plain, failing) = (
        given(spec, &[("int8", Value::Int(1))]),
        given(spec, &[("comparefail", yes())]),
    );
    assert!((spec.same)("t", &plain, &plain));
    assert!(!(spec.same)("t", &plain, &failing));
    assert!(!(spec.same)("t", &failing, &failing));
}

#[test]
fn a_sensitive_value_of_a_print_is_in_no_report() {
    let bench = Bench::new();
    let mut print = bench.resource("print", "p", &[("msg", text("hunter2").sensitive())]);
    let run = print.apply();
    assert_eq!(run.report(), ["msg: (absent) → (sensitive)"]);
    assert_eq!(run.displayed, ["(sensitive)"]);
    assert!(!format!("{run:?}").contains("hunter2"));
}

#[test]
fn the_table_names_each_kind_once_and_constants_have_values() {
    let mut names: Vec<_> = KINDS.iter().map(|spec| spec.schema.kind).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), KINDS.len());
    let constants = spec("file").schema.constants;
    let undefined = constants
        .iter()
        .find(|constant| constant.name == "undefined")
        .unwrap();
    assert_eq!(undefined.value, ConstantValue::Str(""));
}
