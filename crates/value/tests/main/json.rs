//! What is written as JSON comes back the same.

use proptest::prelude::*;
use setpoint_value::{JsonProblem, List, Map, Mark, Marks, Path, PathStep, Type, Value, value_conforms};

use crate::generate::{Choices, any_type, any_value, blur, decisions, tag};

/// Through text, as another process would read it.
fn through_text(json: &serde_json::Value) -> serde_json::Value {
    serde_json::from_str(&json.to_string()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn types_come_back(ty in any_type()) {
        prop_assert_eq!(Type::from_json(&through_text(&ty.to_json())), Ok(ty));
    }

    #[test]
    fn values_come_back_with_their_type((ty, value) in any_value()) {
        let json = through_text(&value.to_json().unwrap());
        prop_assert_eq!(Value::from_json(&json), Ok(value.clone()));
        for reader in [ty, Type::Dynamic, Type::optional(Type::Dynamic)] {
            let json = through_text(&value.to_json_as(&reader).unwrap());
            prop_assert_eq!(Value::from_json_as(&reader, &json), Ok(value.clone()));
        }
    }

    #[test]
    fn what_is_read_as_a_type_is_of_that_type((_, value) in any_value(), other in any_type()) {
        for json in [value.to_json(), value.to_json_as(&value.ty()), value.to_json_as(&Type::Dynamic)] {
            if let Ok(read) = Value::from_json_as(&other, &json.unwrap()) {
                prop_assert!(read.is_null() || value_conforms(&read, &other).is_ok(), "{} as {}", read, other);
            }
        }
        if value_conforms(&value, &other).is_err() {
            prop_assert!(value.to_json_as(&other).is_err(), "{} as {}", value, other);
        }
    }

    #[test]
    fn marks_and_unknowns_are_refused_wherever_they_are(
        (ty, value) in any_value(), bits in decisions(), more in decisions(),
    ) {
        let tagged = tag(&value, &ty, &mut Choices::new(bits));
        prop_assert_eq!(tagged.to_json().is_err(), tagged.has_marks());
        let blurred = blur(&value, &ty, &mut Choices::new(more));
        prop_assert_eq!(blurred.to_json().is_err(), !blurred.is_wholly_known());
        // Who says what becomes of the marks loses nothing.
        let (plain, marks) = tagged.unmark_deep_with_paths();
        let read = Value::from_json(&plain.to_json().unwrap()).unwrap();
        prop_assert_eq!(read.with_marks_at(&marks), tagged);
    }
}

#[test]
fn types_whose_spelling_is_ambiguous_come_back() {
    for ty in [
        Type::list(Type::optional(Type::Int)),
        Type::optional(Type::list(Type::Int)),
        Type::structure([("a b; c", Type::Bool), ("", Type::Number)]),
        Type::func(
            [("x", Type::Variable(7)), ("1", Type::Dynamic)],
            Type::optional(Type::Dynamic),
        ),
        Type::Opaque("a)".into()),
        Type::tuple([]),
    ] {
        let read = Type::from_json(&through_text(&ty.to_json())).unwrap();
        assert_eq!(read, ty);
        assert_eq!(read.to_json(), ty.to_json());
    }
}

#[test]
fn what_is_no_type_is_refused() {
    for text in [
        "1",
        "{}",
        "[]",
        r#""integer""#,
        r#"["list"]"#,
        r#"["map","str"]"#,
        r#"["struct",["a","int"],["a","str"]]"#,
        r#"["variable",-1]"#,
    ] {
        let read = Type::from_json(&serde_json::from_str(text).unwrap());
        assert_eq!(
            read.map_err(|error| error.problem),
            Err(JsonProblem::NotAType),
            "{text}"
        );
    }
}

#[test]
fn open_places_and_odd_floats_come_back() {
    let open = Type::structure([("a", Type::Dynamic), ("b", Type::list(Type::Number))]);
    let numbers = List::new(Type::Number, [Value::Int(1), Value::float(1.0)]);
    for value in [
        Value::structure(open, vec![Value::str("x"), Value::List(numbers)]),
        Value::list(
            Type::optional(Type::Dynamic),
            [Value::Int(5), Value::Null(Type::optional(Type::Dynamic))],
        ),
        Value::list(
            Type::Dynamic,
            [Value::Null(Type::Int), Value::Null(Type::Dynamic)],
        ),
        Value::list(Type::optional(Type::Int), [Value::Null(Type::Int)]),
        Value::Null(Type::Int),
        Value::float(-f64::NAN),
        Value::float(f64::from_bits(f64::NAN.to_bits() | 5)),
        Value::float(f64::MIN_POSITIVE / 8.0),
    ] {
        let json = through_text(&value.to_json().unwrap());
        assert_eq!(Value::from_json(&json), Ok(value), "{json}");
    }
}

#[test]
fn what_was_tampered_with_is_refused() {
    let cases = [
        ("int", r#"1.5"#),
        ("int", r#"9223372036854775808"#),
        ("float", r#"1.5"#),
        ("str", r#"{"base64":"?"}"#),
        ("[]int", r#"[1,{"type":"str","value":"x"}]"#),
        ("[]int", r#"{"0":1}"#),
        ("map{str: int}", r#"[["a"]]"#),
        ("struct{a int}", r#"[1,2]"#),
        ("tuple(int, int)", r#"[1]"#),
        ("dynamic", r#"1"#),
        ("func() int", r#"1"#),
    ];
    for (ty, text) in cases {
        let read = Value::from_json_as(&Type::parse(ty).unwrap(), &serde_json::from_str(text).unwrap());
        assert!(read.is_err(), "{text} was read as {ty}: {read:?}");
    }
}

#[test]
fn an_error_names_the_place_and_shows_no_value() {
    let secret = Value::str("hunter2").with_marks(&Marks::from_iter([Mark::Named("ours".into())]));
    let value = Value::object([("a", Value::list(Type::Str, [Value::str("x"), secret]))]);
    let error = value.to_json().unwrap_err();
    let path: Path = [PathStep::Field("a".into()), PathStep::Index(1)]
        .into_iter()
        .collect();
    assert_eq!(error.path, path);
    assert_eq!(error.problem, JsonProblem::Marked);
    assert_eq!(
        error.to_string(),
        ".a[1]: the value is marked; say first what becomes of the marks"
    );
    let map = Map::new(
        Type::Str,
        Type::Int,
        [(Value::str("k"), Value::unknown(Type::Int))],
    );
    let error = Value::Map(map).to_json().unwrap_err();
    assert_eq!(error.to_string(), "[\"k\"]: the value is not known yet");
}
