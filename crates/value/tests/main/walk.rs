//! Walks, replacements and paths agree with each other.

use proptest::prelude::*;
use setpoint_value::{
    Bound, Descend, Equality, Map, Mark, Marks, MixedTypes, Path, PathStep, Refinement, Type, Value, equals,
};

use crate::generate::{Choices, any_value, blur, decisions, tag};

/// Every part with its path.
fn parts(value: &Value) -> Vec<(Path, Value)> {
    let mut parts = Vec::new();
    let walked: Result<(), ()> = value.walk(&mut |path, part| {
        parts.push((path.clone(), part.clone()));
        Ok(Descend::Into)
    });
    walked.unwrap();
    parts
}

/// The marks that a part has from what it is in: those of all parts at shorter beginnings of its path.
fn marks_around(parts: &[(Path, Value)], path: &Path) -> Marks {
    let mut marks = Marks::none();
    for (outer, part) in parts {
        if path.steps().starts_with(outer.steps()) {
            marks.union(&part.unmark().1);
        }
    }
    marks
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_path_of_a_visited_part_leads_to_it(
        (ty, value) in any_value(), bits in decisions(), more in decisions(),
    ) {
        let mixed = tag(&blur(&value, &ty, &mut Choices::new(bits)), &ty, &mut Choices::new(more));
        let parts = parts(&mixed);
        for (path, part) in &parts {
            let expected = part.unmarked().clone().with_marks(&marks_around(&parts, path));
            prop_assert_eq!(path.apply(&mixed), Ok(expected), "{} in {:?}", path, &mixed);
        }
    }

    #[test]
    fn what_leads_somewhere_in_a_value_leads_somewhere_in_an_unknown_that_may_become_it(
        (ty, value) in any_value(), bits in decisions(),
    ) {
        let blurred = blur(&value, &ty, &mut Choices::new(bits));
        for (path, part) in parts(&value) {
            let found = path.apply(&blurred);
            prop_assert!(found.as_ref().is_ok_and(|found| found.could_become(&part)), "{} {:?}", path, found);
        }
    }

    #[test]
    fn replacing_each_part_by_itself_changes_nothing(
        (ty, value) in any_value(), bits in decisions(), more in decisions(),
    ) {
        let mixed = tag(&blur(&value, &ty, &mut Choices::new(bits)), &ty, &mut Choices::new(more));
        let mut seen = Vec::new();
        let same: Result<Value, MixedTypes> = mixed.transform(&mut |path, part| {
            seen.push((path.clone(), part.clone()));
            Ok(part)
        });
        prop_assert_eq!(same.unwrap(), mixed.clone());
        // It meets what a walk meets, parts first.
        let mut walked = parts(&mixed);
        walked.sort_by_key(|(path, _)| path.to_string());
        seen.sort_by_key(|(path, _)| path.to_string());
        prop_assert_eq!(seen, walked);
    }

    #[test]
    fn taking_marks_off_by_replacing_is_taking_them_off_deeply((ty, value) in any_value(), bits in decisions()) {
        let tagged = tag(&value, &ty, &mut Choices::new(bits));
        let plain: Result<Value, MixedTypes> = tagged.transform(&mut |_, part| Ok(part.unmarked().clone()));
        prop_assert_eq!(plain.unwrap(), value);
    }
}

fn path(steps: impl IntoIterator<Item = PathStep>) -> Path {
    steps.into_iter().collect()
}

#[test]
fn a_walk_leaves_out_and_ends_where_it_is_told() {
    let value = Value::object([("a", Value::strings(["x"])), ("b", Value::strings(["y", "z"]))]);
    let mut seen = Vec::new();
    let walked = value.walk(&mut |path, part| {
        seen.push(path.to_string());
        match part.as_str().and_then(|text| text.as_str()) {
            Some("y") => Err("found"),
            _ if path.to_string() == ".a" => Ok(Descend::Past),
            _ => Ok(Descend::Into),
        }
    });
    assert_eq!(walked, Err("found"));
    assert_eq!(seen, ["", ".a", ".b", ".b[0]"]);
}

#[test]
fn containers_take_on_the_types_of_new_parts() {
    let counted = |value: &Value| -> Result<Value, MixedTypes> {
        value.transform(&mut |_, part| match &part {
            Value::Str(text) => Ok(Value::Int(text.as_bytes().len() as i64)),
            _ => Ok(part),
        })
    };
    let map = |ty: Type, of: Value| Map::new(Type::Str, ty, [(Value::str("k"), of)]);
    let before = Value::object([
        ("list", Value::strings(["a", "bc"])),
        ("map", Value::Map(map(Type::Str, Value::str("abc")))),
        ("set", Value::set(Type::Str, [Value::str("a"), Value::str("b")])),
        ("empty", Value::strings::<&str>([])),
    ]);
    let after = Value::object([
        ("list", Value::list(Type::Int, [Value::Int(1), Value::Int(2)])),
        ("map", Value::Map(map(Type::Int, Value::Int(3)))),
        ("set", Value::set(Type::Int, [Value::Int(1)])),
        ("empty", Value::strings::<&str>([])),
    ]);
    assert_eq!(counted(&before), Ok(after));
}

#[test]
fn a_list_of_several_types_is_refused_with_its_place() {
    let value = Value::object([("a", Value::strings(["x", "y"]))]);
    let mixed: Result<Value, MixedTypes> = value.transform(&mut |path, part| {
        Ok(if path.to_string() == ".a[1]" {
            Value::Int(1)
        } else {
            part
        })
    });
    let message = mixed.unwrap_err().to_string();
    assert_eq!(message, ".a: the parts must be of one type, and are str and int");
}

#[test]
fn marks_of_new_elements_move_to_the_set_and_open_elements_leave_its_size_open() {
    let set = Value::set(Type::Int, [Value::Int(1), Value::Int(2)]);
    let marked: Result<Value, MixedTypes> = set.transform(&mut |_, part| {
        Ok(if part == Value::Int(1) {
            part.sensitive()
        } else {
            part
        })
    });
    assert_eq!(marked, Ok(set.clone().sensitive()));
    let open: Result<Value, MixedTypes> = set.transform(&mut |_, part| {
        Ok(if part == Value::Int(1) {
            Value::unknown(Type::Int)
        } else {
            part
        })
    });
    let open = open.unwrap();
    assert!(open.is_unknown() && open.could_become(&set), "{open:?}");
}

#[test]
fn marks_of_containers_and_keys_stay_on_what_is_taken_out() {
    let ours = Marks::from_iter([Mark::Named("ours".into())]);
    let map = Map::new(
        Type::Str,
        Type::Int,
        [(Value::str("k"), Value::Int(1).with_marks(&ours))],
    );
    let found = path([PathStep::Key(Value::str("k").sensitive())]).apply(&Value::Map(map));
    assert_eq!(found, Ok(Value::Int(1).with_marks(&ours).sensitive()));
}

#[test]
fn what_is_not_there_is_told_without_values() {
    let value = Value::object([("a", Value::strings(["hunter2"]).sensitive())]);
    let error = path([
        PathStep::Field("a".into()),
        PathStep::Index(3),
        PathStep::Index(0),
    ])
    .apply(&value);
    assert_eq!(
        error.unwrap_err().to_string(),
        ".a[3] does not exist in a value of type []str"
    );
    let null = Value::Null(Type::optional(Type::list(Type::Int)));
    let error = path([PathStep::Index(0)]).apply(&null).unwrap_err();
    assert_eq!(
        error.to_string(),
        "[0] does not exist: what it would be part of is null"
    );
    for (value, step) in [
        (Value::Int(1), PathStep::Index(0)),
        (Value::strings(["a"]), PathStep::Field("a".into())),
        (
            Value::set(Type::Int, [Value::Int(1)]),
            PathStep::Key(Value::Int(2)),
        ),
        (
            Value::map(Type::Str, Type::Int, []),
            PathStep::Key(Value::str("k")),
        ),
    ] {
        assert!(path([step.clone()]).apply(&value).is_err(), "{value:?}{step}");
        let unknown = path([step]).apply(&Value::unknown(Type::Dynamic));
        assert_eq!(unknown, Ok(Value::unknown(Type::Dynamic)));
    }
}

#[test]
fn an_unknown_that_is_too_short_has_no_such_part() {
    let short = Refinement::not_null().with_length(1, Some(3));
    let list = Value::refined(Type::list(Type::Int), short);
    assert_eq!(
        path([PathStep::Index(2)]).apply(&list),
        Ok(Value::unknown(Type::Int))
    );
    assert!(path([PathStep::Index(3)]).apply(&list).is_err());
}

#[test]
fn an_unknown_key_leads_to_an_unknown() {
    let map = Map::new(Type::Int, Type::Str, [(Value::Int(1), Value::str("x"))]);
    let key = Value::refined(
        Type::Int,
        Refinement::not_null().with_lower(Bound::inclusive(0.0)),
    );
    let found = path([PathStep::Key(key)]).apply(&Value::Map(map)).unwrap();
    assert_eq!(found, Value::unknown(Type::Str));
    assert_eq!(equals(&found, &Value::str("x")), Equality::Unknown);
}
