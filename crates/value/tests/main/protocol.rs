//! The six steps of the call protocol, one after another.

use setpoint_value::call::{
    arrange_arguments, call, call_typed, call_unpredictable, prepare, return_type, return_type_for_values,
};
use setpoint_value::{
    ArgumentError, Bound, CallError, FunctionSpec, Mark, Marks, ParameterFlags, Refinement, Type, Value,
};

const DEFAULT: ParameterFlags = ParameterFlags {
    allow_null: false,
    allow_unknown: false,
    allow_dynamic: false,
    allow_marked: false,
};

fn ty(text: &str) -> Type {
    Type::parse(text).unwrap()
}

fn message(result: Result<Value, CallError>) -> String {
    result.unwrap_err().to_string()
}

static JOIN: FunctionSpec = FunctionSpec::pure(
    "test",
    "join",
    &["func(separator str, first str, rest str…) str"],
    |arguments, _| {
        let text: Vec<String> = arguments[1..]
            .iter()
            .map(|a| a.as_str().unwrap().to_lossy().into_owned())
            .collect();
        Ok(Value::str(text.join(&arguments[0].as_str().unwrap().to_lossy())))
    },
);

static PAIR: FunctionSpec = FunctionSpec::pure("test", "pair", &["func(a str, b str) str"], |a, _| {
    Ok(a[0].clone())
});

#[test]
fn step_1_arguments_are_counted() {
    assert_eq!(
        message(call(&PAIR, &[Value::str("a"), Value::str("b"), Value::str("c")])),
        "wrong number of arguments (2 required; 3 given)"
    );
    assert_eq!(
        message(call(&JOIN, &[Value::str("-")])),
        "wrong number of arguments (at least 2 required; 1 given)"
    );
    static SEVERAL: FunctionSpec = FunctionSpec::pure(
        "test",
        "range",
        &[
            "func(end int) int",
            "func(start int, end int) int",
            "func(start int, end int, step int) int",
        ],
        |a, _| Ok(a[0].clone()),
    );
    assert_eq!(
        message(call(&SEVERAL, &[])),
        "wrong number of arguments (1, 2 or 3 required; 0 given)"
    );
    let joined = call(&JOIN, &["-", "a", "b", "c"].map(Value::str)).unwrap();
    assert_eq!(joined, Value::str("a-b-c"));
}

#[test]
fn step_2_types_are_checked_and_the_place_is_named() {
    static DEEP: FunctionSpec = FunctionSpec::pure(
        "test",
        "deep",
        &["func(x int, spec struct{a []str}) int"],
        |a, _| Ok(a[0].clone()),
    );
    let wrong = Value::object([("a", Value::list(Type::Int, [Value::Int(1)]))]);
    let error = call(&DEEP, &[Value::Int(1), wrong]).unwrap_err();
    let expected = ArgumentError {
        index: Some(1),
        parameter: Some("spec".to_owned()),
        message: "int is not str".to_owned(),
        path: ".a[0]".to_owned(),
    };
    assert_eq!(error, CallError::Argument(expected));
    assert_eq!(error.to_string(), "`spec`.a[0]: int is not str");
}

#[test]
fn step_2_null_needs_permission() {
    assert_eq!(
        message(call(&PAIR, &[Value::str("a"), Value::Null(Type::Dynamic)])),
        "`b`: must not be null"
    );
    static NULLABLE: FunctionSpec =
        FunctionSpec::pure("test", "nullable", &["func(a str, b str?) bool"], |a, _| {
            Ok(Value::Bool(a[1].is_null()))
        });
    assert_eq!(
        call(&NULLABLE, &[Value::str("a"), Value::Null(Type::Dynamic)]),
        Ok(Value::Bool(true))
    );
    assert_eq!(
        call(&NULLABLE, &[Value::str("a"), Value::str("b")]),
        Ok(Value::Bool(false))
    );
    assert!(call(&NULLABLE, &[Value::str("a"), Value::Int(1)]).is_err());
}

#[test]
fn step_2_marks_are_taken_off_deeply_and_come_back_on_the_result() {
    static PLAIN: FunctionSpec = FunctionSpec::pure("test", "plain", &["func(list []str) bool"], |a, _| {
        Ok(Value::Bool(!a[0].has_marks()))
    });
    static MARKED: FunctionSpec = FunctionSpec::pure("test", "marked", &["func(list []str) bool"], |a, _| {
        Ok(Value::Bool(a[0].has_marks()))
    })
    .with_flags(&[ParameterFlags {
        allow_marked: true,
        ..DEFAULT
    }]);
    let inner = Value::list(Type::Str, [Value::str("x").sensitive(), Value::str("y")]);
    let application = Marks::from_iter([Mark::Named("later".into())]);
    let argument = inner.clone().with_marks(&application);
    let both = Value::Bool(true).sensitive().with_marks(&application);
    assert_eq!(call(&PLAIN, std::slice::from_ref(&argument)), Ok(both.clone()));
    assert_eq!(call_typed(&PLAIN, &[argument], &Type::Bool), Ok(both));
    assert_eq!(call(&MARKED, &[inner]), Ok(Value::Bool(true)));
}

#[test]
fn step_2_an_argument_of_unknown_type_makes_the_result_one() {
    static TYPED: FunctionSpec =
        FunctionSpec::pure("test", "typed", &["func(a dynamic, b int) dynamic"], |_, _| {
            panic!("not to be run")
        })
        .typed_by(|_| panic!("not to be run"));
    let unknown = Value::unknown(Type::Dynamic);
    assert_eq!(
        call(&TYPED, &[unknown.clone(), Value::Int(1)]),
        Ok(unknown.clone())
    );
    assert_eq!(
        return_type_for_values(&TYPED, &[unknown.clone(), Value::Int(1)]),
        Ok(Type::Dynamic)
    );
    // The other arguments are checked all the same, and their marks kept.
    assert_eq!(
        message(call(&TYPED, &[unknown.clone(), Value::str("x")])),
        "`b`: str is not int"
    );
    let marked = call(&TYPED, &[unknown.clone(), Value::Int(1).sensitive()]).unwrap();
    assert_eq!(marked, unknown.sensitive());
}

#[test]
fn step_2_variables_are_bound_by_the_first_argument_and_limited() {
    static SAME: FunctionSpec = FunctionSpec::pure(
        "test",
        "same",
        &["func(a ?1: int | float, b ?1) []?1"],
        |a, result| Ok(Value::list(result.element().unwrap().clone(), a.to_vec())),
    );
    assert_eq!(
        call(&SAME, &[Value::Int(1), Value::Int(2)]).unwrap().ty(),
        ty("[]int")
    );
    assert_eq!(
        message(call(&SAME, &[Value::Int(1), Value::float(2.0)])),
        "`b`: float is not int"
    );
    assert_eq!(
        message(call(&SAME, &[Value::str("a"), Value::str("b")])),
        "`a`: str is not int or float"
    );
    assert_eq!(return_type(&SAME, &[Type::Float, Type::Float]), Ok(ty("[]float")));
}

#[test]
fn step_2_a_result_of_number_is_the_widest_argument() {
    static SUM: FunctionSpec =
        FunctionSpec::pure("test", "sum", &["func(a number, b number) number"], |a, _| {
            Ok(a[0].clone())
        });
    assert_eq!(return_type(&SUM, &[Type::Int, Type::Int]), Ok(Type::Int));
    assert_eq!(return_type(&SUM, &[Type::Int, Type::Float]), Ok(Type::Float));
    assert_eq!(return_type(&SUM, &[Type::Float, Type::Int]), Ok(Type::Float));
}

#[test]
fn step_2_alternatives_are_tried_by_arity_then_by_type() {
    static LEN: FunctionSpec = FunctionSpec::pure(
        "test",
        "len",
        &[
            "func(text str) int",
            "func(list []?1) str",
            "func(a int, b int) bool",
        ],
        |_, result| Ok(Value::zero(result).unwrap()),
    )
    .with_flags(&[ParameterFlags {
        allow_dynamic: true,
        ..DEFAULT
    }]);
    assert_eq!(call(&LEN, &[Value::str("x")]), Ok(Value::Int(0)));
    assert_eq!(call(&LEN, &[Value::strings(["x"])]), Ok(Value::str("")));
    assert_eq!(
        call(&LEN, &[Value::Int(1), Value::Int(1)]),
        Ok(Value::Bool(false))
    );
    assert!(call(&LEN, &[Value::Bool(true)]).is_err());
    // Which alternative it will be shows only later.
    assert_eq!(return_type(&LEN, &[Type::Dynamic]), Ok(Type::Dynamic));
    assert_eq!(return_type(&LEN, &[ty("[]dynamic")]), Ok(Type::Str));
    static SIZE: FunctionSpec = FunctionSpec::pure(
        "test",
        "size",
        &["func(text str) int", "func(list []?1) int"],
        |_, _| Ok(Value::Int(1)),
    )
    .with_flags(&[ParameterFlags {
        allow_dynamic: true,
        ..DEFAULT
    }]);
    // All that are left have one result.
    assert_eq!(return_type(&SIZE, &[Type::Dynamic]), Ok(Type::Int));
}

#[test]
fn step_2_the_alternative_that_got_furthest_says_what_is_wrong() {
    static EITHER: FunctionSpec = FunctionSpec::pure(
        "test",
        "either",
        &[
            "func(number int, a int, b int) int",
            "func(text str, c str, d str) int",
            "func(number int, e int, f str) int",
        ],
        |_, _| Ok(Value::Int(1)),
    );
    let wrong = |arguments: [Value; 3]| message(call(&EITHER, &arguments));
    let (int, text, flag) = (Value::Int(1), Value::str("x"), Value::Bool(true));
    assert_eq!(
        wrong([int.clone(), int.clone(), flag.clone()]),
        "`b`: bool is not int"
    );
    assert_eq!(wrong([int, text.clone(), text.clone()]), "`a`: str is not int");
    assert_eq!(wrong([text.clone(), text, flag.clone()]), "`d`: bool is not str");
    assert_eq!(
        wrong([flag.clone(), flag.clone(), flag]),
        "`number`: bool is not int"
    );
}

static BY_NAME: FunctionSpec = FunctionSpec::pure(
    "test",
    "by_name",
    &["func(kind str, value dynamic) dynamic"],
    |a, ty| {
        Ok(if *ty == Type::Int {
            Value::Int(1)
        } else {
            a[0].clone()
        })
    },
)
.with_flags(&[
    DEFAULT,
    ParameterFlags {
        allow_dynamic: true,
        ..DEFAULT
    },
])
.typed_by(|arguments| match arguments[0].as_str().and_then(|s| s.as_str()) {
    Some("int") => Ok(Type::Int),
    Some("str") => Ok(Type::Str),
    Some("panic") => panic!("canary"),
    Some(other) => Err(ArgumentError::at(0, format!("there is no kind {other}"))),
    None => Ok(Type::Dynamic),
});

#[test]
fn step_3_the_type_function_decides_and_may_refuse() {
    let call_with = |kind: &str| call(&BY_NAME, &[Value::str(kind), Value::Bool(true)]);
    assert_eq!(call_with("int"), Ok(Value::Int(1)));
    assert_eq!(call_with("str"), Ok(Value::str("str")));
    assert_eq!(message(call_with("other")), "`kind`: there is no kind other");
    assert_eq!(
        call_with("panic"),
        Err(CallError::Panicked {
            function: "test.by_name".to_owned(),
            message: "canary".to_owned()
        })
    );
}

#[test]
fn step_3_dynamic_without_unknown_keeps_a_static_type() {
    let arguments = [Value::str("int"), Value::unknown(Type::Dynamic)];
    assert_eq!(call(&BY_NAME, &arguments), Ok(Value::unknown(Type::Int)));
    assert_eq!(return_type_for_values(&BY_NAME, &arguments), Ok(Type::Int));
}

#[test]
fn step_4_an_unknown_argument_makes_an_unknown_of_the_decided_type_with_all_marks() {
    let result = call(
        &JOIN,
        &[
            Value::unknown(Type::Str),
            Value::str("a"),
            Value::str("b").sensitive(),
        ],
    );
    assert_eq!(result, Ok(Value::unknown(Type::Str).sensitive()));
    let marked = call(&PAIR, &[Value::unknown(Type::Str).sensitive(), Value::str("a")]);
    assert_eq!(marked, Ok(Value::unknown(Type::Str).sensitive()));
    static KEEPS: FunctionSpec =
        FunctionSpec::pure("test", "keeps", &["func(a str, b []str) str"], |a, _| {
            Ok(a[0].clone())
        })
        .with_flags(&[ParameterFlags {
            allow_marked: true,
            ..DEFAULT
        }]);
    let inner = Value::list(Type::Str, [Value::str("x").sensitive()]);
    assert_eq!(
        call(&KEEPS, &[Value::unknown(Type::Str), inner.clone()]),
        Ok(Value::unknown(Type::Str).sensitive())
    );
    assert_eq!(
        call_typed(&KEEPS, &[Value::unknown(Type::Str), inner], &Type::Str),
        Ok(Value::unknown(Type::Str).sensitive())
    );
}

#[test]
fn step_4_an_unknown_inside_a_known_collection_reaches_the_implementation() {
    static COUNT: FunctionSpec = FunctionSpec::pure("test", "count", &["func(list []str) int"], |a, _| {
        Ok(Value::Int(a[0].as_list().unwrap().len() as i64))
    });
    let list = Value::list(Type::Str, [Value::unknown(Type::Str), Value::str("a")]);
    assert_eq!(call(&COUNT, &[list]), Ok(Value::Int(2)));
}

#[test]
fn step_5_a_panic_is_an_error_that_names_the_function() {
    static CRASH: FunctionSpec = FunctionSpec::pure("test", "crash", &["func(list []int) int"], |a, _| {
        let list = a[0].as_list().unwrap();
        Ok(Value::Int(
            10 / list.iter().map(|v| v.as_int().unwrap()).sum::<i64>(),
        ))
    });
    let zero = Value::list(Type::Int, [Value::Int(0)]);
    let error = call(&CRASH, std::slice::from_ref(&zero)).unwrap_err();
    assert!(
        matches!(&error, CallError::Panicked { function, .. } if function == "test.crash"),
        "{error}"
    );
    assert!(!error.is_catchable());
    assert_eq!(call_typed(&CRASH, &[zero], &Type::Int), Err(error));
}

#[test]
fn step_6_the_result_is_what_was_promised() {
    static LIAR: FunctionSpec = FunctionSpec::pure("test", "liar", &["func(a int) []str"], |a, _| {
        Ok(Value::list(Type::Int, [a[0].clone()]))
    });
    let error = call(&LIAR, &[Value::Int(1)]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`test.liar` gave something else than it promised: [0]: int is not str (this is a bug in the function)"
    );
    assert!(!error.is_catchable());
    assert_eq!(call_typed(&LIAR, &[Value::Int(1)], &ty("[]str")), Err(error));
}

#[test]
fn step_6_refinements_hold_for_known_and_unknown_results() {
    static POSITIVE: FunctionSpec =
        FunctionSpec::pure("test", "positive", &["func(a int) int"], |a, _| Ok(a[0].clone()))
            .refined_by(|_, _| Refinement::not_null().with_lower(Bound::inclusive(0.0)));
    let refined = Value::refined(
        Type::Int,
        Refinement::not_null().with_lower(Bound::inclusive(0.0)),
    );
    assert_eq!(call(&POSITIVE, &[Value::unknown(Type::Int)]), Ok(refined.clone()));
    assert_eq!(
        call_typed(&POSITIVE, &[Value::unknown(Type::Int)], &Type::Int),
        Ok(refined)
    );
    assert_eq!(call(&POSITIVE, &[Value::Int(3)]), Ok(Value::Int(3)));
    let error = call(&POSITIVE, &[Value::Int(-3)]).unwrap_err();
    assert!(
        error.to_string().contains("a number below its lower bound"),
        "{error}"
    );
}

#[test]
fn an_error_never_shows_a_sensitive_argument() {
    static FAILS: FunctionSpec = FunctionSpec::pure("test", "fails", &["func(a str, b str) str"], |a, _| {
        match a[1].as_str().and_then(|s| s.as_str()) {
            Some("panic") => panic!("{}", a[0]),
            Some("argument") => Err(ArgumentError {
                path: format!(".{}", a[0]),
                ..ArgumentError::at(0, format!("no {}", a[0]))
            }
            .into()),
            _ => Err(CallError::catchable(format!("no {}", a[0]))),
        }
    });
    for how in ["panic", "argument", "catchable"] {
        let shown = call(&FAILS, &[Value::str("canary"), Value::str(how)]).unwrap_err();
        assert!(shown.to_string().contains("canary"), "{shown}");
        let arguments = [Value::str("canary").sensitive(), Value::str(how)];
        let hidden = call(&FAILS, &arguments).unwrap_err();
        assert!(!format!("{hidden} {hidden:?}").contains("canary"), "{hidden}");
        assert_eq!(hidden.is_catchable(), shown.is_catchable());
        assert_eq!(call_typed(&FAILS, &arguments, &Type::Str), Err(hidden));
    }
    let error = call(&BY_NAME, &[Value::str("canary").sensitive(), Value::Int(1)]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`kind`: does not fit; the reason is not shown because an argument is sensitive"
    );
}

#[test]
fn an_unpredictable_call_is_checked_and_unknown() {
    let arguments = [Value::str("-"), Value::str("a").sensitive()];
    assert_eq!(
        call_unpredictable(&JOIN, &arguments),
        Ok(Value::unknown(Type::Str).sensitive())
    );
    assert!(call_unpredictable(&JOIN, &[Value::Int(1), Value::str("a")]).is_err());
}

#[test]
fn preparing_takes_marks_off_and_says_whether_to_run() {
    let prepared = prepare(&PAIR, &[Value::str("a").sensitive(), Value::str("b")]).unwrap();
    assert_eq!(prepared.arguments, [Value::str("a"), Value::str("b")]);
    assert!(prepared.marks.contains(&Mark::Sensitive) && !prepared.unknown);
    assert!(
        prepare(&PAIR, &[Value::unknown(Type::Str), Value::str("b")])
            .unwrap()
            .unknown
    );
}

#[test]
fn arguments_by_name_find_their_parameters() {
    let named = |names: &[(&str, &str)]| {
        names
            .iter()
            .map(|(n, v)| ((*n).to_owned(), Value::str(*v)))
            .collect()
    };
    let arranged = arrange_arguments(&JOIN, vec![Value::str("-")], named(&[("first", "a")]));
    assert_eq!(arranged, Ok(vec![Value::str("-"), Value::str("a")]));
    let error = |positional: Vec<Value>, names: &[(&str, &str)]| {
        arrange_arguments(&PAIR, positional, named(names))
            .unwrap_err()
            .to_string()
    };
    assert_eq!(error(vec![], &[("b", "x")]), "`a` is missing");
    assert_eq!(error(vec![Value::str("x")], &[("a", "x")]), "`a` is given twice");
    assert_eq!(error(vec![], &[("z", "x")]), "there is no parameter `z`");
}

#[test]
fn marks_are_a_sorted_set() {
    let named = |name: &str| Mark::Named(name.into());
    let mut marks = Marks::from_iter([named("b"), Mark::Sensitive, named("a"), named("b")]);
    let all = [Mark::Sensitive, named("a"), named("b")];
    assert!(marks.iter().eq(&all));
    assert_eq!(format!("{marks:?}"), r#"{Sensitive, Named("a"), Named("b")}"#);
    assert!(all.iter().all(|mark| marks.contains(mark)) && !marks.contains(&named("c")));
    assert_eq!(
        marks.without(&named("a")),
        Marks::from_iter([named("b"), Mark::Sensitive])
    );
    marks.union(&Marks::from_iter([named("c"), named("a")]));
    assert_eq!(marks, all.into_iter().chain([named("c")]).collect());
    let mut none = Marks::none();
    none.union(&Marks::none());
    assert!(none.is_empty() && none.iter().next().is_none());
    none.union(&Marks::sensitive());
    assert_eq!(none, Marks::from_iter([Mark::Sensitive]));
}
