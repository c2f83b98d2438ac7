//! What is particular to single functions: edges, errors, what is known of unknown results.

use setpoint_value::call::return_type;
use setpoint_value::{Bound, InferArguments, Map, Refinement, Type, Value, equals};

use super::super::{conversion, format};
use super::{call, f, i, ints, s, spec, strings, ty};

fn error(name: &str, arguments: &[Value]) -> String {
    call(name, arguments).expect_err(name)
}

fn at_least(least: f64) -> Value {
    Value::refined(
        Type::Int,
        Refinement::not_null().with_lower(Bound::inclusive(least)),
    )
}

#[test]
fn one_known_side_decides_logic() {
    let open = Value::unknown(Type::Bool);
    assert_eq!(
        call("and", &[open.clone(), Value::Bool(false)]),
        Ok(Value::Bool(false))
    );
    assert_eq!(
        call("or", &[Value::Bool(true), open.clone()]),
        Ok(Value::Bool(true))
    );
    let undecided = Value::refined(Type::Bool, Refinement::not_null());
    assert_eq!(
        call("and", &[open.clone(), Value::Bool(true)]),
        Ok(undecided.clone())
    );
    assert_eq!(call("not", &[open]), Ok(undecided));
}

#[test]
fn bounds_and_refinements_decide_comparisons() {
    let big = at_least(10.0);
    assert_eq!(call("greater_than", &[big.clone(), i(9)]), Ok(Value::Bool(true)));
    assert_eq!(call("less_than", &[big.clone(), f(9.5)]), Ok(Value::Bool(false)));
    assert_eq!(
        call("less_than_or_equal_to", &[i(10), big.clone()]),
        Ok(Value::Bool(true))
    );
    assert!(call("less_than", &[i(10), big.clone()]).unwrap().is_unknown());
    assert_eq!(call("equal", &[big.clone(), i(3)]), Ok(Value::Bool(false)));
    assert_eq!(
        call("equal", &[big, Value::Null(Type::Dynamic)]),
        Ok(Value::Bool(false))
    );
    let prefixed = Value::refined(Type::Str, Refinement::default().with_prefix("https://"));
    assert_eq!(
        call("not_equal", &[prefixed, s("http://x")]),
        Ok(Value::Bool(true))
    );
    assert_eq!(
        call(
            "equal",
            &[Value::Null(Type::Dynamic), Value::Null(Type::optional(Type::Int))]
        ),
        Ok(Value::Bool(true))
    );
}

#[test]
fn ints_stay_ints_and_meet_floats_as_floats() {
    assert_eq!(call("add", &[i(1), f(2.5)]), Ok(f(3.5)));
    assert_eq!(call("max", &[i(3), f(2.5)]), Ok(f(3.0)));
    assert_eq!(call("min", &[i(3), i(2)]), Ok(i(2)));
    assert_eq!(
        return_type(spec("subtract"), &[Type::Int, Type::Int]),
        Ok(Type::Int)
    );
    assert_eq!(
        error("add", &[i(i64::MAX), i(1)]),
        "the result does not fit an int"
    );
    assert_eq!(error("negate", &[i(i64::MIN)]), "the result does not fit an int");
    assert_eq!(error("divide", &[i(1), i(0)]), "`b`: can't divide by zero");
    assert_eq!(error("modulo", &[f(1.0), f(0.0)]), "`b`: can't divide by zero");
    assert_eq!(call("modulo", &[i(i64::MIN), i(-1)]), Ok(i(0)));
    assert_eq!(error("add", &[s("a"), i(1)]), "`a`: str is not number");
}

#[test]
fn mathematics_without_an_answer_is_an_argument_error() {
    assert_eq!(error("log", &[i(0), i(10)]), "`num`: has no logarithm");
    assert_eq!(error("log", &[i(2), i(1)]), "`base`: is not a base of logarithms");
    assert!(error("pow", &[i(-8), f(0.5)]).contains("is not a number"));
    assert!(error("int", &[f(1e300)]).contains("no whole part"));
    assert_eq!(call("int", &[i(7)]), Ok(i(7)));
    assert_eq!(error("signum", &[f(f64::NAN)]), "`num`: is not a number");
}

#[test]
fn whole_numbers_are_read_in_any_base() {
    assert_eq!(call("parse_int", &[s("-Zz"), i(36)]), Ok(i(-1295)));
    assert_eq!(call("parse_int", &[s("aA"), i(62)]), Ok(i(10 * 62 + 36)));
    assert_eq!(
        call("parse_int", &[s("-9223372036854775808"), i(10)]),
        Ok(i(i64::MIN))
    );
    assert_eq!(
        error("parse_int", &[s("9223372036854775808"), i(10)]),
        "`number`: does not fit an int"
    );
    assert_eq!(
        error("parse_int", &[s("12"), i(2)]),
        "`number`: is not a whole number in base 2"
    );
    assert_eq!(
        error("parse_int", &[s("-"), i(2)]),
        "`number`: is not a whole number in base 2"
    );
    assert_eq!(
        error("parse_int", &[s("1"), i(63)]),
        "`base`: the base is between 2 and 62"
    );
}

#[test]
fn text_is_counted_in_what_a_reader_takes_for_characters() {
    let family = "👨\u{200d}👩\u{200d}👧e\u{301}x";
    assert_eq!(call("strlen", &[s(family)]), Ok(i(3)));
    assert_eq!(
        call("reverse", &[s(family)]),
        Ok(s("xe\u{301}👨\u{200d}👩\u{200d}👧"))
    );
    assert_eq!(call("substr", &[s(family), i(1), i(1)]), Ok(s("e\u{301}")));
    assert_eq!(call("substr", &[s("abc"), i(9), i(2)]), Ok(s("")));
    assert_eq!(call("substr", &[s("abc"), i(-9), i(2)]), Ok(s("ab")));
    let prefixed = Value::refined(Type::Str, Refinement::default().with_prefix("abc:"));
    assert_eq!(call("strlen", &[prefixed]), Ok(at_least(4.0)));
    assert_eq!(
        error("upper", &[Value::str(b"\xff".as_slice())]),
        "`str`: is not valid UTF-8"
    );
}

#[test]
fn joining_stops_at_what_is_not_known() {
    let list = Value::list(Type::Str, [s("a/"), Value::unknown(Type::Str)]);
    let joined = call("join", &[s("/"), list]).unwrap();
    assert_eq!(
        joined,
        Value::refined(Type::Str, Refinement::default().with_prefix("a//"))
    );
    let sorted = call(
        "sort",
        &[Value::list(Type::Str, [s("b"), Value::unknown(Type::Str)])],
    )
    .unwrap();
    assert_eq!(
        sorted,
        Value::list(Type::Str, [Value::unknown(Type::Str), Value::unknown(Type::Str)])
    );
}

#[test]
fn patterns_decide_the_type_of_their_matches() {
    assert_eq!(
        call("regex", &[s("(a)|(b)"), s("b")]),
        Ok(Value::tuple([Value::Null(Type::optional(Type::Str)), s("b")]))
    );
    assert_eq!(
        call("regex_all", &[s("(?P<x>[0-9])"), s("none")]).unwrap().ty(),
        ty("[]struct{x str?}")
    );
    assert_eq!(
        error("regex", &[s("a"), s("b")]),
        "the pattern matches nothing in the text"
    );
    assert!(error("regex", &[s("(?P<x>a)(b)"), s("ab")]).contains("either all groups have names or none"));
    assert!(error("regex", &[s("("), s("b")]).starts_with("`pattern`: invalid regular expression"));
    assert!(spec("regex").call(&[s("a"), s("b")]).unwrap_err().is_catchable());
    let open = call("regex", &[s("(a)"), Value::unknown(Type::Str)]).unwrap();
    assert_eq!(open, Value::refined(ty("tuple(str?)"), Refinement::not_null()));
    assert_eq!(
        call("regex", &[Value::unknown(Type::Str), s("a")]),
        Ok(Value::unknown(Type::Dynamic))
    );
}

#[test]
fn formats_write_as_gos_do() {
    for (pattern, values, wanted) in [
        (
            "%5d|%-5d|%05d|%+d|% d",
            vec![i(42), i(42), i(-42), i(42), i(42)],
            "   42|42   |-0042|+42| 42",
        ),
        (
            "%b %o %x %X %#x %#o",
            vec![i(5), i(8), i(255), i(255), i(255), i(8)],
            "101 10 ff FF 0xff 010",
        ),
        ("%.4d|%8.4d", vec![i(42), i(-42)], "0042|   -0042"),
        (
            "%f %.2f %8.3f|%-8.1f|%+.1f",
            vec![f(1.5), f(2.345), f(2.5), f(2.5), f(1.0)],
            "1.500000 2.35    2.500|2.5     |+1.0",
        ),
        (
            "%e %.2e %E",
            vec![f(123456.0), f(0.00012), f(1.0)],
            "1.234560e+05 1.20e-04 1.000000E+00",
        ),
        (
            "%g %g %g %g",
            vec![f(100000.0), f(1e6), f(0.0001), f(0.00001)],
            "100000 1e+06 0.0001 1e-05",
        ),
        (
            "%.3g %.10g %G",
            vec![f(1234567.0), f(100000.0), f(1e-10)],
            "1.23e+06 100000 1E-10",
        ),
        (
            "%s|%5s|%-5s|%.2s|%q",
            vec![s("abc"), s("é"), s("é"), s("abc"), s("a\"b")],
            "abc|    é|é    |ab|\"a\\\"b\"",
        ),
        (
            "%t %s %d %s",
            vec![s("true"), i(3), s("12"), Value::Bool(false)],
            "true 3 12 false",
        ),
        (
            "%v %v %v %v %#v %v",
            vec![
                s("a"),
                i(1),
                f(2.5),
                strings(&["x"]),
                s("<"),
                Value::Null(Type::Dynamic),
            ],
            "a 1 2.5 [\"x\"] \"\\u003c\" null",
        ),
        ("%[2]d %[1]d %d", vec![i(1), i(2)], "2 1 2"),
        ("100%%", vec![], "100%"),
        ("%f", vec![f(f64::INFINITY)], "+Inf"),
    ] {
        let arguments = [vec![s(pattern)], values].concat();
        assert_eq!(call("format", &arguments), Ok(s(wanted)), "{pattern}");
    }
}

#[test]
fn formats_that_do_not_fit_their_arguments_are_refused() {
    assert_eq!(error("format", &[s("%d %d"), i(1)]), "`%d` wants argument 2 of 1");
    assert_eq!(
        error("format", &[s("%d"), i(1), i(2)]),
        "the number of arguments is 2, and the format has verbs for 1"
    );
    assert_eq!(
        error("format", &[s("%d"), s("x")]),
        "argument 2: the str \"x\" is not a number"
    );
    assert_eq!(error("format", &[s("%y"), i(1)]), "there is no verb `%y`");
    assert_eq!(error("format", &[s("%"), i(1)]), "the format ends inside a verb");
    assert_eq!(
        error("format", &[s("%s"), Value::Null(Type::Dynamic)]),
        "argument 2: null has no form for `%s`"
    );
    assert!(error("format", &[s("%99999d"), i(1)]).contains("more than 1000"));
    assert!(
        error("format_list", &[s("%s%s"), strings(&["a"]), strings(&["a", "b"])]).contains("has 2 elements")
    );
}

#[test]
fn a_format_is_certain_up_to_the_first_unknown() {
    let unknown = Value::unknown(Type::Str);
    let open = call("format", &[s("https://%s:%d"), unknown.clone(), i(1)]);
    assert_eq!(
        open,
        Ok(Value::refined(
            Type::Str,
            Refinement::default().with_prefix("https://")
        ))
    );
    let list = Value::list(Type::Str, [s("a"), unknown.clone()]);
    let rows = call("format_list", &[s("<%s"), list]).unwrap();
    assert_eq!(
        rows,
        Value::list(
            Type::Str,
            [s("<a"), Value::refined(Type::Str, Refinement::not_null())]
        )
    );
    let open = call("format_list", &[s("%s"), Value::unknown(ty("[]str"))]).unwrap();
    assert_eq!(open, Value::refined(ty("[]str"), Refinement::not_null()));
    assert!(format::FORMAT.call(&[unknown, i(1)]).unwrap().is_unknown());
}

#[test]
fn points_in_time_are_read_strictly_and_written_freely() {
    let format = |pattern: &str, time: &str| call("format_date", &[s(pattern), s(time)]);
    let time = "2026-02-08T00:05:09.25-03:30";
    assert_eq!(
        format("YY M MMMM EEEE hh h HH H aa m s", time),
        Ok(s("26 2 February Sunday 00 0 12 12 am 5 9"))
    );
    assert_eq!(
        format("ZZZZZ ZZZZ ZZZ Z", time),
        Ok(s("-03:30 -0330 -0330 -03:30"))
    );
    assert_eq!(
        format("Z ZZZ '''o''' ''", "2026-02-08T00:05:09Z"),
        Ok(s("Z UTC 'o' '"))
    );
    assert!(format("Q", time).unwrap_err().contains("`Q` is not a part"));
    assert!(format("'a", time).unwrap_err().contains("a quote is not closed"));
    for wrong in [
        "2026-02-30T00:00:00Z",
        "2026-02-08 00:05:09Z",
        "2026-02-08T00:05:09",
        "2026-02-08T24:00:00Z",
        "é026-02-08T00:05:09Z",
        "",
    ] {
        assert!(format("D", wrong).unwrap_err().contains("RFC 3339"), "{wrong}");
    }
    let add = |duration: &str| call("time_add", &[s("2024-02-28T23:00:00+01:00"), s(duration)]);
    assert_eq!(add("24h"), Ok(s("2024-02-29T23:00:00+01:00")));
    assert_eq!(add("-1.5h30m0.5s"), Ok(s("2024-02-28T20:59:59+01:00")));
    assert_eq!(add("0"), Ok(s("2024-02-28T23:00:00+01:00")));
    for wrong in ["1", "h", "1x", "", "9999999999h", "1h 2m"] {
        assert!(add(wrong).unwrap_err().contains("is not a duration"), "{wrong}");
    }
    assert!(
        call("time_add", &[s("9999-12-31T23:00:00Z"), s("2h")])
            .unwrap_err()
            .contains("years 0 to 9999")
    );
}

#[test]
fn json_goes_there_and_back() {
    let value = Value::object([
        ("b", Value::tuple([i(1), f(2.5), Value::Null(Type::Dynamic)])),
        ("a", s("x<\n\u{1}é")),
    ]);
    let json = call("json_encode", std::slice::from_ref(&value)).unwrap();
    assert_eq!(json, s("{\"a\":\"x\\u003c\\n\\u0001é\",\"b\":[1,2.5,null]}"));
    let back = call("json_decode", &[json]).unwrap();
    assert_eq!(
        back.as_struct().unwrap().get("a"),
        value.as_struct().unwrap().get("a")
    );
    assert!(error("json_decode", &[s("[1,")]).starts_with("`str`: is not JSON"));
    assert!(error("json_encode", &[f(f64::NAN)]).contains("neither NaN nor"));
    assert_eq!(
        call("json_decode", &[Value::unknown(Type::Str)]),
        Ok(Value::unknown(Type::Dynamic))
    );
    let open = call(
        "json_encode",
        &[Value::list(Type::Int, [Value::unknown(Type::Int)])],
    )
    .unwrap();
    assert_eq!(
        open,
        Value::refined(Type::Str, Refinement::default().with_prefix("["))
    );
    let nullable = call("json_encode", &[Value::unknown(ty("[]int"))]).unwrap();
    assert_eq!(nullable, Value::refined(Type::Str, Refinement::not_null()));
}

#[test]
fn csv_needs_names_that_differ_and_rows_of_their_length() {
    let decode = |text: &str| call("csv_decode", &[s(text)]);
    assert_eq!(
        decode("a,b\n\"x,y\",\"\"\"\"\n").unwrap().to_string(),
        r#"[struct{a: "x,y"; b: "\""}]"#
    );
    assert_eq!(decode("a,b\n").unwrap().ty(), ty("[]struct{a str; b str}"));
    assert!(
        decode("a,a\n1,2\n")
            .unwrap_err()
            .contains("two columns have the name `a`")
    );
    assert!(
        decode("a,b\n1\n")
            .unwrap_err()
            .contains("line 2 has 1 fields where the first has 2")
    );
    assert!(decode("").unwrap_err().contains("a row of names is missing"));
}

#[test]
fn sequences_keep_lists_where_they_can() {
    assert_eq!(
        call("concat", &[ints(&[1]), Value::list(Type::Float, [f(0.5)])])
            .unwrap()
            .ty(),
        ty("[]float")
    );
    let mixed = call("concat", &[ints(&[1]), Value::tuple([s("x")])]).unwrap();
    assert_eq!(mixed, Value::tuple([i(1), s("x")]));
    let lists = call(
        "concat",
        &[ints(&[1]), Value::list(Type::Bool, [Value::Bool(true)])],
    )
    .unwrap();
    assert_eq!(lists, Value::tuple([i(1), Value::Bool(true)]));
    assert_eq!(call("range", &[i(-3)]), Ok(ints(&[0, -1, -2])));
    assert_eq!(
        call("range", &[i(1), f(2.0), f(0.5)]),
        Ok(Value::list(Type::Float, [f(1.0), f(1.5)]))
    );
    assert_eq!(call("range", &[i(2), i(2), i(-1)]), Ok(ints(&[])));
    assert!(error("range", &[i(0), i(5), i(-1)]).contains("leads away"));
    assert!(error("range", &[i(0), i(5), i(0)]).contains("leads nowhere"));
    assert!(error("range", &[i(1025)]).contains("at most 1024"));
    assert_eq!(call("range", &[i(1024)]).unwrap().as_list().unwrap().len(), 1024);
}

#[test]
fn lengths_are_known_as_far_as_they_can_be() {
    let length = |value: Value| call("length", &[value]);
    assert_eq!(length(Value::unknown(ty("tuple(int, str)"))), Ok(i(2)));
    assert_eq!(
        length(Value::list(Type::Str, [Value::unknown(Type::Str)])),
        Ok(i(1))
    );
    assert_eq!(length(Value::unknown(ty("[]int"))), Ok(at_least(0.0)));
    assert_eq!(length(Value::unknown(Type::Dynamic)), Ok(at_least(0.0)));
    let open = Value::set(Type::Int, [i(1), Value::unknown(Type::Int)]);
    let between = Refinement::not_null()
        .with_lower(Bound::inclusive(1.0))
        .with_upper(Bound::inclusive(2.0));
    assert_eq!(length(open), Ok(Value::refined(Type::Int, between)));
    assert_eq!(error("length", &[s("abc")]), "`value`: str has no length");
    // How long a list is does not tell what is in it.
    assert_eq!(length(Value::list(Type::Str, [s("x").sensitive()])), Ok(i(1)));
    assert_eq!(length(strings(&["x"]).sensitive()), Ok(i(1).sensitive()));
}

#[test]
fn indexes_find_parts_of_anything() {
    let object = Value::object([("a", i(1)), ("b", s("x"))]);
    assert_eq!(call("index", &[object.clone(), s("b")]), Ok(s("x")));
    assert!(error("index", &[object.clone(), s("c")]).contains("there is not such field"));
    assert_eq!(call("index", &[Value::tuple([i(1), s("x")]), i(1)]), Ok(s("x")));
    assert!(
        spec("index")
            .call(&[ints(&[1]), i(1)])
            .unwrap_err()
            .is_catchable()
    );
    assert_eq!(error("index", &[ints(&[1]), s("a")]), "`key`: str is not int");
    assert_eq!(call("has_index", &[object, s("c")]), Ok(Value::Bool(false)));
    assert_eq!(call("element", &[ints(&[1, 2]), i(5)]), Ok(i(2)));
    for (index, found) in [(-1, 2), (-2, 1), (-3, 2), (i64::MIN, 1), (i64::MAX, 2)] {
        assert_eq!(
            call("element", &[ints(&[1, 2]), i(index)]),
            Ok(i(found)),
            "{index}"
        );
    }
    // Only the element that is taken, and the list, count.
    let list = Value::list(Type::Str, [s("a").sensitive(), s("b")]);
    assert_eq!(call("element", &[list.clone(), i(1)]), Ok(s("b")));
    assert_eq!(call("element", &[list, i(0)]), Ok(s("a").sensitive()));
}

#[test]
fn the_first_that_is_there_wins() {
    let null = Value::Null(Type::Dynamic);
    assert_eq!(call("coalesce", &[null.clone(), i(1), f(2.5)]), Ok(f(1.0)));
    assert_eq!(
        error("coalesce", &[null.clone(), null.clone()]),
        "all arguments are null"
    );
    assert!(
        call("coalesce", &[Value::unknown(Type::Int), i(1)])
            .unwrap()
            .is_unknown()
    );
    let certain = at_least(3.0);
    assert_eq!(call("coalesce", &[certain.clone(), i(1)]), Ok(certain));
    assert_eq!(
        call("coalesce_list", &[Value::tuple([]), Value::tuple([s("x")])]),
        Ok(Value::tuple([s("x")]))
    );
    assert_eq!(error("assert_not_null", &[null]), "`v`: must not be null");
}

#[test]
fn lists_are_searched_thinned_and_cut() {
    let open = Value::list(Type::Str, [s("a"), Value::unknown(Type::Str)]);
    assert_eq!(call("contains", &[open.clone(), s("a")]), Ok(Value::Bool(true)));
    assert!(call("contains", &[open.clone(), s("b")]).unwrap().is_unknown());
    let thinned = call("distinct", &[open]).unwrap();
    assert_eq!(
        thinned,
        Value::refined(ty("[]str"), Refinement::not_null().with_length(1, Some(2)))
    );
    let nested = Value::tuple([
        ints(&[1]),
        Value::set(Type::Int, [i(2)]),
        Value::tuple([s("x"), ints(&[])]),
    ]);
    assert_eq!(call("flatten", &[nested]), Ok(Value::tuple([i(1), i(2), s("x")])));
    let hidden = Value::tuple([i(1), Value::unknown(ty("[]int"))]);
    assert_eq!(call("flatten", &[hidden]), Ok(Value::unknown(Type::Dynamic)));
    assert_eq!(
        call("chunklist", &[ints(&[]), i(2)])
            .unwrap()
            .as_list()
            .unwrap()
            .len(),
        0
    );
    assert_eq!(
        error("chunklist", &[ints(&[1]), i(-1)]),
        "`size`: a size is not negative"
    );
    assert_eq!(
        call("reverse_list", &[Value::tuple([i(1), s("x")])]),
        Ok(Value::tuple([s("x"), i(1)]))
    );
    assert_eq!(
        call("slice", &[Value::tuple([i(1), s("x")]), i(1), i(2)]),
        Ok(Value::tuple([s("x")]))
    );
    assert!(error("slice", &[ints(&[1]), i(0), i(2)]).contains("between 0 and 1"));
    assert!(error("slice", &[ints(&[1]), i(1), i(0)]).contains("the start is after the end"));
}

#[test]
fn flattening_is_typed_beforehand_whatever_the_lengths() {
    let hook = spec("flatten").infer.unwrap();
    let inferred = hook(&InferArguments {
        types: &[Some(ty("[][][]int"))],
        values: &[None],
    });
    assert_eq!(inferred.unwrap().signature, ty("func([][][]int) []int"));
}

#[test]
fn maps_and_structs_mix() {
    let object = Value::object([("b", s("x")), ("a", i(1))]);
    let map = Value::Map(Map::new(Type::Str, Type::Int, [(s("c"), i(3))]));
    assert_eq!(
        call("keys", &[Value::unknown(object.ty())]),
        Ok(Value::tuple([s("a"), s("b")]))
    );
    assert_eq!(
        call("values", std::slice::from_ref(&object)),
        Ok(Value::tuple([i(1), s("x")]))
    );
    let merged = call(
        "merge",
        &[object.clone(), map.clone(), Value::Null(Type::Dynamic)],
    )
    .unwrap();
    assert_eq!(merged.to_string(), r#"struct{b: "x"; a: 1; c: 3}"#);
    assert_eq!(call("merge", &[]), Ok(Value::object::<&str>([])));
    let other = Value::Map(Map::new(Type::Str, Type::Float, [(s("c"), f(0.5))]));
    assert_eq!(
        call("merge", &[map.clone(), other]).unwrap().to_string(),
        r#"{"c": 0.5}"#
    );
    assert_eq!(call("lookup", &[object.clone(), s("z"), i(0)]), Ok(i(0)));
    assert_eq!(
        call("lookup", &[map.clone(), s("z"), s("none")]),
        Err("`default`: str does not convert to int".to_owned())
    );
    let zipped = call("zipmap", &[strings(&["a", "b"]), Value::tuple([i(1), s("x")])]).unwrap();
    assert!(equals(&zipped, &Value::object([("a", i(1)), ("b", s("x"))])) == setpoint_value::Equality::Equal);
    assert!(error("zipmap", &[strings(&["a"]), ints(&[])]).contains("0 values for 1 keys"));
    // Which keys there are does not tell what their values are.
    let marked = Value::Map(Map::new(Type::Str, Type::Int, [(s("c"), i(3).sensitive())]));
    assert_eq!(call("keys", std::slice::from_ref(&marked)), Ok(strings(&["c"])));
    assert_eq!(
        call("values", &[marked]),
        Ok(Value::list(Type::Int, [i(3).sensitive()]))
    );
}

#[test]
fn sets_take_elements_of_types_that_have_one_in_common() {
    let a = Value::set(Type::Int, [i(1), i(2)]);
    let b = Value::set(Type::Float, [f(2.0), f(3.5)]);
    let set = |items: &[f64]| Value::set(Type::Float, items.iter().copied().map(Value::float));
    assert_eq!(
        call("set_union", &[a.clone(), b.clone()]),
        Ok(set(&[1.0, 2.0, 3.5]))
    );
    assert_eq!(call("set_intersection", &[a.clone(), b.clone()]), Ok(set(&[2.0])));
    assert_eq!(call("set_subtract", &[a.clone(), b.clone()]), Ok(set(&[1.0])));
    assert_eq!(
        call("set_symmetric_difference", &[a.clone(), b.clone()]),
        Ok(set(&[1.0, 3.5]))
    );
    assert_eq!(
        call("set_has_element", &[a.clone(), s("x")]),
        Ok(Value::Bool(false))
    );
    let product = call("set_product", &[a.clone(), ints(&[7])]).unwrap();
    assert_eq!(product.ty(), ty("[]tuple(int, int)"));
    assert_eq!(call("set_product", &[a, b]).unwrap().as_set().unwrap().len(), 4);
    let unknown = Value::refined(ty("[]int"), Refinement::default().with_length(2, Some(3)));
    let open = call("set_product", &[unknown, ints(&[7, 8])]).unwrap();
    assert_eq!(
        open,
        Value::refined(
            ty("[]tuple(int, int)"),
            Refinement::default().with_length(4, Some(6))
        )
    );
}

#[test]
fn bytes_are_opaque_values_or_strings() {
    let bytes = super::super::bytes::bytes(*b"hello");
    assert_eq!(call("bytes_len", std::slice::from_ref(&bytes)), Ok(i(5)));
    let part = call("bytes_slice", &[bytes.clone(), i(1), i(3)]).unwrap();
    assert_eq!(part.ty(), ty("opaque(bytes)"));
    assert_eq!(call("bytes_len", &[part]), Ok(i(3)));
    assert!(error("bytes_slice", &[bytes, i(4), i(3)]).contains("beyond the 5 bytes"));
}

#[test]
fn conversions_say_what_does_not_convert() {
    assert_eq!(call("to_number", &[s("12")]), Ok(i(12)));
    assert_eq!(
        call("to_number", &[Value::unknown(Type::Str)]),
        Ok(Value::refined(Type::Number, Refinement::not_null()))
    );
    assert_eq!(
        call("to_str", &[Value::unknown(Type::Dynamic)]),
        Ok(Value::refined(Type::Str, Refinement::not_null()))
    );
    assert_eq!(
        error("to_bool", &[s("yes")]),
        "`v`: the str \"yes\" is not a bool"
    );
    assert_eq!(error("to_bool", &[i(1)]), "`v`: int does not convert to bool");
    let hook = spec("to_number").infer.unwrap();
    let inferred = hook(&InferArguments {
        types: &[Some(Type::Str)],
        values: &[Some(s("12"))],
    });
    assert_eq!(inferred.unwrap().signature, ty("func(str) float"));
}

#[test]
fn an_unpredictable_function_is_checked_and_unknown() {
    let result = conversion::unpredictable(spec("upper"), &[s("a").sensitive()]);
    assert_eq!(
        result,
        Ok(Value::refined(Type::Str, Refinement::not_null()).sensitive())
    );
    assert!(conversion::unpredictable(spec("upper"), &[i(1)]).is_err());
}

/// An unknown number with these bounds, both included.
fn number_between(ty: Type, least: f64, greatest: f64) -> Value {
    let refinement = Refinement::not_null()
        .with_lower(Bound::inclusive(least))
        .with_upper(Bound::inclusive(greatest));
    Value::refined(ty, refinement)
}

fn refinement(value: &Result<Value, String>) -> String {
    let unknown = value.as_ref().expect("a value").as_unknown().expect("an unknown");
    format!("{} {}", unknown.ty, unknown.refinement)
}

#[test]
fn arithmetic_with_what_may_be_any_number_is_a_number() {
    let open = Value::unknown(Type::Dynamic);
    for name in ["add", "subtract", "multiply", "modulo", "min", "max"] {
        let result = call(name, &[open.clone(), i(1)]);
        assert_eq!(refinement(&result), "number not null", "{name}");
    }
    for name in ["negate", "absolute"] {
        assert_eq!(
            refinement(&call(name, std::slice::from_ref(&open))),
            "number not null"
        );
    }
    let number = call("add", &[open.clone(), i(1)]).unwrap();
    assert_eq!(
        refinement(&call("add", &[number.clone(), f(1.5)])),
        "number not null"
    );
    assert_eq!(
        refinement(&call("parse_int", &[number.clone(), i(10)])),
        "int not null"
    );
    assert_eq!(call("equal", &[number.clone(), s("1")]), Ok(Value::Bool(false)));
    assert!(error("upper", &[number]).contains("number is not str"));
    assert_eq!(
        refinement(&call("to_number", &[Value::unknown(Type::Str)])),
        "number not null"
    );
}

#[test]
fn bounds_of_numbers_are_computed_with() {
    let some = || number_between(Type::Int, 2.0, 4.0);
    for (name, arguments, wanted) in [
        ("add", vec![some(), i(3)], "int not null, at least 5, at most 7"),
        (
            "multiply",
            vec![some(), i(-3)],
            "int not null, at least -12, at most -6",
        ),
        (
            "divide",
            vec![some(), i(2)],
            "float not null, at least 1, at most 2",
        ),
        (
            "modulo",
            vec![some(), i(3)],
            "int not null, at least 0, at most 3",
        ),
        ("negate", vec![some()], "int not null, at least -4, at most -2"),
        (
            "absolute",
            vec![Value::unknown(Type::Int)],
            "int not null, at least 0",
        ),
        (
            "floor",
            vec![number_between(Type::Float, 1.5, 3.5)],
            "int not null, at least 1, at most 3",
        ),
        ("max", vec![some(), i(3)], "int not null, at least 3, at most 4"),
        (
            "signum",
            vec![number_between(Type::Int, -1.0, 9.0)],
            "int not null, at least -1, at most 1",
        ),
    ] {
        assert_eq!(refinement(&call(name, &arguments)), wanted, "{name}");
    }
    assert_eq!(call("multiply", &[i(0), Value::unknown(Type::Int)]), Ok(i(0)));
    assert_eq!(call("signum", &[some()]), Ok(i(1)));
    let sum = call("add", &[some(), i(3)]).unwrap();
    assert_eq!(call("greater_than", &[sum, i(4)]), Ok(Value::Bool(true)));
}

#[test]
fn types_decide_whether_there_is_an_index() {
    let unknown = |text: &str| Value::unknown(ty(text));
    for (collection, key, wanted) in [
        (unknown("[]str"), s("a"), false),
        (unknown("[]str"), i(-1), false),
        (unknown("[]str"), f(0.5), false),
        (unknown("tuple(str)"), i(0), true),
        (unknown("tuple(str)"), i(1), false),
        (unknown("map{str: int}"), i(1), false),
        (unknown("struct{a int}"), s("a"), true),
        (unknown("struct{a int}"), s("b"), false),
        (strings(&[]), unknown("int"), false),
        (strings(&["a"]), unknown("str"), false),
    ] {
        let shown = format!("{collection} {key}");
        assert_eq!(
            call("has_index", &[collection, key]),
            Ok(Value::Bool(wanted)),
            "{shown}"
        );
    }
    for (collection, key) in [
        (unknown("dynamic"), i(0)),
        (unknown("[]str"), i(0)),
        (unknown("map{str: int}"), s("a")),
        (strings(&["a"]), unknown("dynamic")),
        (strings(&["a"]), unknown("int")),
    ] {
        assert_eq!(
            refinement(&call("has_index", &[collection, key])),
            "bool not null"
        );
    }
    let found = call("index", &[strings(&["a"]), unknown("dynamic")]).unwrap();
    assert_eq!(found.ty(), Type::Str);
}

#[test]
fn the_beginning_of_json_decides_its_type() {
    let begins = |text: &str| Value::refined(Type::Str, Refinement::not_null().with_prefix(text));
    for (text, wanted) in [
        ("\"", "str not null"),
        ("tru", "bool not null"),
        ("false", "bool not null"),
        ("-1.", "number not null"),
        (" 12", "number not null"),
        ("{\"", "dynamic "),
        ("\n[", "dynamic "),
        ("nul", "dynamic "),
        (" ", "dynamic "),
        ("t", "dynamic "),
    ] {
        assert_eq!(
            refinement(&call("json_decode", &[begins(text)])),
            wanted,
            "{text}"
        );
    }
    assert!(error("json_decode", &[begins("]")]).contains("no document begins with `]`"));
}

#[test]
fn a_collection_without_elements_or_type_goes_with_any_other() {
    let nothing = || Value::list(Type::Dynamic, []);
    let none = || Value::set(Type::Dynamic, []);
    let texts = || Value::set(Type::Str, [s("a")]);
    assert_eq!(call("concat", &[nothing(), strings(&["a"])]), Ok(strings(&["a"])));
    assert_eq!(call("concat", &[strings(&["a"]), nothing()]), Ok(strings(&["a"])));
    assert_eq!(call("set_union", &[none(), texts()]), Ok(texts()));
    assert_eq!(call("set_subtract", &[texts(), none()]), Ok(texts()));
    assert_eq!(
        call("set_intersection", &[texts(), none()]),
        Ok(Value::set(Type::Str, []))
    );
    assert_eq!(
        call("coalesce_list", &[strings(&[]), ints(&[3, 4])]),
        Ok(ints(&[3, 4]))
    );
    let null = || Value::Null(Type::optional(Type::list(Type::Str)));
    assert_eq!(call("coalesce_list", &[null(), ints(&[3])]), Ok(ints(&[3])));
    assert_eq!(
        error("coalesce_list", &[null(), nothing()]),
        "all lists are empty"
    );
    let open = Value::unknown(Type::list(Type::Str));
    assert_eq!(
        call("coalesce_list", &[open.clone(), ints(&[3])]).unwrap().ty(),
        Type::Dynamic
    );
    assert_eq!(
        call("coalesce_list", &[open, strings(&["a"])]).unwrap().ty(),
        Type::list(Type::Str)
    );
}

#[test]
fn a_negative_length_is_the_rest_and_tuples_of_different_lengths_do_not_go_together() {
    assert_eq!(call("substr", &[s("hello"), i(1), i(-2)]), Ok(s("ello")));
    assert_eq!(call("substr", &[s("hello"), i(-3), i(-5)]), Ok(s("llo")));
    let pair = Value::unknown(ty("tuple(str, str)"));
    let one = Value::unknown(ty("tuple(str)"));
    let refused = error("format_list", &[s("%s%s"), pair.clone(), one]);
    assert!(
        refused.contains("has 1 elements where another has 2"),
        "{refused}"
    );
    let refused = error("format_list", &[s("%s%s"), pair, strings(&["a"])]);
    assert!(
        refused.contains("has 1 elements where another has 2"),
        "{refused}"
    );
    let hello = call("format", &[s("Hello, %s"), Value::unknown(Type::Str)]);
    assert_eq!(refinement(&hello), "str not null, begins with \"Hello, \"");
}
