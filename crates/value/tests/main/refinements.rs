//! What refinements say, against definitions by enumeration.

use std::cmp::Ordering;

use setpoint_value::{
    Bound, Refinement, Type, Value, compare_numbers, known_prefix, length_range, less, number_range,
};

/// The end of a range, as a test names it: a number, and whether it belongs to the range.
type End = Option<(f64, bool)>;

/// All ranges whose ends are among `ends`, with and without the ends, and open to one side or both.
fn ranges(ends: &[f64]) -> Vec<(End, End)> {
    let ends: Vec<End> = std::iter::once(None)
        .chain(
            ends.iter()
                .flat_map(|end| [Some((*end, true)), Some((*end, false))]),
        )
        .collect();
    ends.iter()
        .flat_map(|lower| ends.iter().map(move |upper| (*lower, *upper)))
        .collect()
}

fn within((lower, upper): (End, End), number: f64) -> bool {
    lower.is_none_or(|(end, belongs)| number > end || (belongs && number == end))
        && upper.is_none_or(|(end, belongs)| number < end || (belongs && number == end))
}

fn refinement((lower, upper): (End, End)) -> Refinement {
    let bound = |(value, inclusive)| Bound { value, inclusive };
    Refinement {
        lower: lower.map(bound),
        upper: upper.map(bound),
        ..Refinement::not_null()
    }
}

/// Numbers inside, between and outside the ends that the tests use.
fn numbers() -> impl Iterator<Item = f64> + Clone {
    (-8..=16).map(|quarter| f64::from(quarter) / 4.0)
}

const ENDS: [f64; 4] = [-1.0, 0.0, 1.0, 3.0];

#[test]
fn two_ranges_combine_to_what_is_in_both_and_exclude_each_other_if_that_is_nothing() {
    for a in ranges(&ENDS) {
        for number in numbers() {
            let fits = refinement(a).check(&Value::float(number)).is_ok();
            assert_eq!(fits, within(a, number), "{number} {a:?}");
        }
        for b in ranges(&ENDS) {
            let common: Vec<f64> = numbers().filter(|n| within(a, *n) && within(b, *n)).collect();
            let combined = refinement(a).combined(&refinement(b));
            assert_eq!(combined.is_ok(), !common.is_empty(), "{a:?} {b:?}");
            let Ok(combined) = combined else { continue };
            let kept: Vec<f64> = numbers()
                .filter(|n| combined.check(&Value::float(*n)).is_ok())
                .collect();
            assert_eq!(kept, common, "{a:?} {b:?}");
        }
    }
}

#[test]
fn the_zeros_are_one_bound() {
    let at = |zero| refinement((Some((zero, true)), None));
    let expected = at(0.0).combined(&at(0.0));
    assert_eq!(expected.clone().unwrap(), at(0.0));
    for (a, b) in [(0.0, -0.0), (-0.0, 0.0), (-0.0, -0.0)] {
        assert_eq!(at(a).combined(&at(b)), expected, "{a:?} {b:?}");
    }
}

#[test]
fn an_order_of_unknown_numbers_is_decided_when_all_that_they_can_be_agree() {
    let ranges: Vec<_> = ranges(&ENDS)
        .into_iter()
        .filter(|range| numbers().any(|n| within(*range, n)))
        .collect();
    for a in &ranges {
        for b in &ranges {
            // Floats, since between two ints there may be none.
            let open = |range| Value::refined(Type::Float, refinement(range));
            for or_equal in [false, true] {
                let mut outcomes = [false; 2];
                for x in numbers().filter(|n| within(*a, *n)) {
                    for y in numbers().filter(|n| within(*b, *n)) {
                        outcomes[usize::from(if or_equal { x <= y } else { x < y })] = true;
                    }
                }
                let expected = match outcomes {
                    [true, true] => None,
                    [_, holds] => Some(holds),
                };
                assert_eq!(
                    less(&open(*a), &open(*b), or_equal),
                    expected,
                    "{a:?} {b:?} {or_equal}"
                );
            }
        }
    }
}

#[test]
fn an_unknown_that_can_be_only_one_number_is_that_number() {
    for range in ranges(&[-1.0, -0.5, 0.5, 1.0, 1.5]) {
        let (lower, upper) = range;
        let ints: Vec<i64> = (-9..=9).filter(|i| within(range, *i as f64)).collect();
        let int = Value::refined(Type::Int, refinement(range));
        match ints.as_slice() {
            [only] => assert_eq!(int, Value::Int(*only), "{range:?}"),
            _ => assert!(int.is_unknown(), "{range:?} {int}"),
        }
        let float = Value::refined(Type::Float, refinement(range));
        match (lower, upper) {
            (Some((a, true)), Some((b, true))) if a == b => assert_eq!(float, Value::float(a)),
            _ => assert!(float.is_unknown(), "{range:?} {float}"),
        }
        let or_null = Refinement {
            not_null: false,
            ..refinement(range)
        };
        assert!(Value::refined(Type::Int, or_null).is_unknown());
    }
    // From here on several ints share one float.
    let limit = 9_007_199_254_740_992.0;
    let at = |number| {
        Value::refined(
            Type::Int,
            refinement((Some((number, true)), Some((number, true)))),
        )
    };
    assert_eq!(at(limit - 1.0), Value::Int(9_007_199_254_740_991));
    assert_eq!(at(1.0 - limit), Value::Int(-9_007_199_254_740_991));
    assert!(at(limit).is_unknown() && at(-limit).is_unknown());
}

#[test]
fn an_unknown_collection_of_certain_length_is_a_collection_of_unknowns() {
    let of_length =
        |ty: Type, least, most| Value::refined(ty, Refinement::default().with_length(least, most));
    let unknown = || Value::unknown(Type::Int);
    let list = Type::list(Type::Int);
    let set = Type::set(Type::Int);
    let map = Type::map(Type::Str, Type::Int);
    for length in [0, 1, 2, 1024] {
        let items = std::iter::repeat_n(unknown(), length);
        assert_eq!(
            of_length(list.clone(), length, Some(length)),
            Value::list(Type::Int, items)
        );
    }
    assert_eq!(
        of_length(Type::optional(list.clone()), 1, Some(1)),
        Value::list(Type::Int, [unknown()])
    );
    assert_eq!(of_length(set.clone(), 0, Some(0)), Value::set(Type::Int, []));
    assert_eq!(
        of_length(set.clone(), 1, Some(1)),
        Value::set(Type::Int, [unknown()])
    );
    assert_eq!(
        of_length(map.clone(), 0, Some(0)),
        Value::map(Type::Str, Type::Int, [])
    );
    let open = [
        // So long a list is cheaper as one unknown.
        (&list, 1025, Some(1025)),
        (&list, 1, Some(2)),
        (&list, 0, Some(1)),
        (&list, 1, None),
        // The two could be one.
        (&set, 2, Some(2)),
        (&set, 0, Some(1)),
        // Its keys are not known.
        (&map, 1, Some(1)),
        (&map, 0, Some(1)),
        (&map, 0, None),
    ];
    for (ty, least, most) in open {
        let value = of_length(ty.clone(), least, most);
        assert!(value.is_unknown(), "{value}");
        assert_eq!(length_range(&value), Some((least, most)));
    }
}

#[test]
fn lengths_are_within_their_range_and_two_ranges_combine_to_what_is_in_both() {
    let lengths =
        || (0usize..4).flat_map(|least| [None, Some(0), Some(1), Some(2), Some(3)].map(|most| (least, most)));
    let fits = |(least, most): (usize, Option<usize>), length| {
        length >= least && most.is_none_or(|most| length <= most)
    };
    let list = |length| Value::list(Type::Int, (0..length as i64).map(Value::Int));
    let refinement = |(least, most)| Refinement::default().with_length(least, most);
    for a in lengths() {
        for length in 0..5 {
            let items = list(length);
            let set = Value::set(Type::Int, (0..length as i64).map(Value::Int));
            let map = Value::map(
                Type::Int,
                Type::Int,
                (0..length as i64).map(|i| (Value::Int(i), Value::Int(i))),
            );
            for value in [items, set, map] {
                assert_eq!(
                    refinement(a).check(&value).is_ok(),
                    fits(a, length),
                    "{a:?} {value}"
                );
            }
        }
        for b in lengths() {
            let common: Vec<usize> = (0..5).filter(|n| fits(a, *n) && fits(b, *n)).collect();
            let combined = refinement(a).combined(&refinement(b));
            assert_eq!(combined.is_ok(), !common.is_empty(), "{a:?} {b:?}");
            let Ok(combined) = combined else { continue };
            let kept: Vec<usize> = (0..5).filter(|n| combined.check(&list(*n)).is_ok()).collect();
            assert_eq!(kept, common, "{a:?} {b:?}");
        }
    }
    assert!(refinement((0, None)).check(&Value::Int(1)).is_ok());
    assert!(refinement((1, None)).check(&Value::Int(1)).is_err());
    assert!(refinement((0, Some(1))).check(&Value::Int(1)).is_err());
}

#[test]
fn the_number_of_elements_is_known_of_every_collection_and_of_nothing_else() {
    let pair = [Value::Int(1), Value::Int(2)];
    let exactly = |length| Some((length, Some(length)));
    let structure = Type::parse("struct{a int; b int; c int}").unwrap();
    let unknown = |ty: &str| Value::unknown(Type::parse(ty).unwrap());
    let cases = [
        (Value::list(Type::Int, pair.clone()), exactly(2)),
        (Value::set(Type::Int, pair.clone()), exactly(2)),
        (
            Value::map(Type::Int, Type::Int, [pair.clone().into()]),
            exactly(1),
        ),
        (Value::tuple(pair.to_vec()), exactly(2)),
        (Value::object([("a", Value::Int(1))]), exactly(1)),
        (Value::list(Type::Int, pair).sensitive(), exactly(2)),
        (unknown("[]int"), Some((0, None))),
        (unknown("map{str: int}"), Some((0, None))),
        (Value::unknown(Type::set(Type::Int)), Some((0, None))),
        (Value::unknown(Type::tuple([Type::Int, Type::Str])), exactly(2)),
        (Value::unknown(structure), exactly(3)),
        (unknown("str"), None),
        (Value::unknown(Type::Dynamic), None),
        (Value::str("ab"), None),
        (Value::Int(2), None),
        (Value::Null(Type::list(Type::Int)), None),
    ];
    for (value, expected) in cases {
        assert_eq!(length_range(&value), expected, "{value}");
    }
}

#[test]
fn a_known_number_is_within_its_own_range_and_ints_up_to_2_to_the_53_exactly() {
    let exact = 1i64 << 53;
    for int in [
        0,
        1,
        -1,
        exact - 1,
        1 - exact,
        exact,
        exact + 1,
        -exact,
        -exact - 1,
        i64::MAX,
        i64::MIN,
    ] {
        let (Some(lower), Some(upper)) = number_range(&Value::Int(int)) else {
            panic!("{int} has bounds");
        };
        let order = |bound: Bound| compare_numbers(&Value::float(bound.value), &Value::Int(int)).unwrap();
        assert!(lower.inclusive && upper.inclusive, "{int}");
        if int.abs_diff(0) < exact as u64 {
            assert!(order(lower).is_eq() && order(upper).is_eq(), "{int}");
        } else {
            assert!(order(lower).is_lt() && order(upper).is_gt(), "{int}");
        }
    }
    let half = Some(Bound::inclusive(0.5));
    assert_eq!(number_range(&Value::float(0.5)), (half, half));
    let above = Value::refined(Type::Float, refinement((Some((0.5, true)), None)));
    assert_eq!(number_range(&above), (half, None));
    for nothing in [Value::float(f64::NAN), Value::str("1"), Value::unknown(Type::Int)] {
        assert_eq!(number_range(&nothing), (None, None), "{nothing}");
    }
}

#[test]
fn ints_and_floats_are_in_the_order_of_the_numbers_that_they_are() {
    let exact = 1i64 << 53;
    let ints = [
        0,
        1,
        -1,
        2,
        exact,
        exact + 1,
        -exact,
        -exact - 1,
        i64::MAX,
        i64::MAX - 1,
        i64::MIN,
        i64::MIN + 1,
    ];
    let mut floats = vec![
        0.0,
        0.5,
        -0.5,
        1.5,
        f64::INFINITY,
        f64::NEG_INFINITY,
        1e300,
        -1e300,
    ];
    for int in ints {
        let near = int as f64;
        floats.extend([near, near.next_up(), near.next_down()]);
    }
    for int in ints {
        for float in &floats {
            let whole = float.floor();
            // The cast is exact for what is near an int, and stays outside for the rest.
            let expected = i128::from(int).cmp(&(whole as i128)).then(if *float > whole {
                Ordering::Less
            } else {
                Ordering::Equal
            });
            let (int, float) = (Value::Int(int), Value::float(*float));
            assert_eq!(compare_numbers(&int, &float), Some(expected), "{int} {float}");
            assert_eq!(
                compare_numbers(&float, &int),
                Some(expected.reverse()),
                "{float} {int}"
            );
            assert_eq!(less(&int, &float, false), Some(expected.is_lt()));
            assert_eq!(less(&int, &float, true), Some(expected.is_le()));
        }
    }
    assert_eq!(
        compare_numbers(&Value::float(1.0), &Value::float(2.0)),
        Some(Ordering::Less)
    );
    for not_a_number in [Value::float(f64::NAN), Value::str("1"), Value::unknown(Type::Int)] {
        assert_eq!(compare_numbers(&Value::Int(1), &not_a_number), None);
        assert_eq!(compare_numbers(&not_a_number, &Value::float(1.0)), None);
    }
}

#[test]
fn what_is_certain_can_be_said_only_of_types_that_have_it() {
    let prefix = Refinement::default().with_prefix("a/");
    let lower = Refinement::default().with_lower(Bound::inclusive(0.0));
    let upper = Refinement::default().with_upper(Bound::inclusive(9.0));
    let least = Refinement::default().with_length(1, None);
    let most = Refinement::default().with_length(0, Some(3));
    let refinements = [prefix, lower, upper, least, most];
    let cases = [
        (Type::Str, [true, false, false, false, false]),
        (Type::Int, [false, true, true, false, false]),
        (Type::Float, [false, true, true, false, false]),
        (Type::Number, [false, true, true, false, false]),
        (Type::list(Type::Int), [false, false, false, true, true]),
        (Type::set(Type::Int), [false, false, false, true, true]),
        (Type::map(Type::Str, Type::Int), [false, false, false, true, true]),
        (Type::Bool, [false; 5]),
        (Type::tuple([Type::Int]), [false; 5]),
    ];
    for (ty, expected) in cases {
        for (refinement, can) in refinements.iter().zip(expected) {
            for ty in [ty.clone(), Type::optional(ty.clone())] {
                let refined = Value::unknown(ty.clone()).refine(refinement);
                assert_eq!(refined.is_ok(), can, "{ty} {refinement}");
                if can {
                    assert_eq!(refined.unwrap(), Value::refined(ty, refinement.clone()));
                }
            }
        }
        let not_null = Value::unknown(ty).refine(&Refinement::not_null());
        assert!(not_null.is_ok());
    }
}

#[test]
fn a_statement_about_a_value_says_that_it_is_not_null() {
    let null = Value::Null(Type::Dynamic);
    let statements = [
        Refinement::not_null(),
        Refinement::default().with_prefix("a/"),
        Refinement::default().with_lower(Bound::inclusive(0.0)),
        Refinement::default().with_upper(Bound::exclusive(0.0)),
        Refinement::default().with_length(0, Some(2)),
    ];
    for statement in statements {
        assert!(!statement.is_trivial());
        assert!(statement.check(&null).is_err(), "{statement}");
    }
    assert!(Refinement::default().is_trivial());
    assert!(Refinement::default().check(&null).is_ok());
}

#[test]
fn a_prefix_is_kept_as_far_as_it_is_certain_and_two_must_not_exclude_each_other() {
    let with = |prefix: &str| Refinement::default().with_prefix(prefix);
    assert_eq!(with("a/b").prefix, Some("a/".into()));
    assert_eq!(with("a").prefix, None);
    let texts = ["", "a", "a/", "a/b/", "a/b/c", "b/"];
    for a in ["a/", "a/b/", "b/"] {
        for text in texts {
            let fits = with(a).check(&Value::str(text)).is_ok();
            assert_eq!(fits, text.starts_with(a), "{text} {a}");
        }
        for b in ["a/", "a/b/", "b/"] {
            match with(a).combined(&with(b)) {
                Ok(both) => assert_eq!(both.prefix, Some(a.max(b).into())),
                Err(_) => assert_ne!(a.as_bytes()[0], b.as_bytes()[0]),
            }
        }
    }
    assert!(with("a/").check(&Value::Int(1)).is_err());
    for (prefix, certain) in [
        ("a<", "a"),
        ("a>", "a"),
        ("a-", "a-"),
        ("a\t", "a\t"),
        ("a\u{85}", "a\u{85}"),
        ("", ""),
    ] {
        assert!(
            certain.as_bytes().starts_with(known_prefix(prefix.as_bytes())),
            "{prefix:?}"
        );
    }
}

#[test]
fn refinements_are_shown_in_words() {
    let default = Refinement::default;
    let cases = [
        (default(), ""),
        (Refinement::not_null(), "not null"),
        (default().with_prefix("ab/"), "not null, begins with \"ab/\""),
        (
            default().with_lower(Bound::inclusive(1.0)),
            "not null, at least 1",
        ),
        (default().with_lower(Bound::exclusive(1.5)), "not null, above 1.5"),
        (default().with_upper(Bound::inclusive(1.0)), "not null, at most 1"),
        (default().with_upper(Bound::exclusive(1.0)), "not null, below 1"),
        (default().with_length(2, None), "not null, 2 or more elements"),
        (default().with_length(0, Some(3)), "not null, 0 to 3 elements"),
        (default().with_length(2, Some(3)), "not null, 2 to 3 elements"),
    ];
    for (refinement, words) in cases {
        assert_eq!(refinement.to_string(), words);
    }
}

#[test]
fn an_open_value_could_become_only_what_agrees_with_all_that_is_known_of_it() {
    let unknown = || Value::unknown(Type::Int);
    let ints = |values: &[i64]| Value::list(Type::Int, values.iter().copied().map(Value::Int));
    let list = |items: Vec<Value>| Value::list(Type::Int, items);
    let set = |items: Vec<Value>| Value::set(Type::Int, items);
    let map = |key: Value, value| Value::map(Type::Dynamic, Type::Int, [(key, value)]);
    let small = Value::refined(Type::Int, refinement((None, Some((3.0, true)))));
    let null = || Value::Null(Type::Int);
    let cases = [
        (Value::unknown(Type::Dynamic), Value::str("x"), true),
        (unknown(), Value::Int(1), true),
        (unknown(), Value::str("x"), false),
        (unknown(), null(), true),
        (small.clone(), Value::Int(3), true),
        (small.clone(), Value::Int(4), false),
        (small, null(), false),
        (list(vec![Value::Int(1), unknown()]), ints(&[1, 2]), true),
        (list(vec![Value::Int(1), unknown()]), ints(&[2, 2]), false),
        (list(vec![Value::Int(1), unknown()]), ints(&[1]), false),
        (
            Value::tuple(vec![Value::Int(1), unknown()]),
            Value::tuple(vec![Value::Int(1), Value::Int(2)]),
            true,
        ),
        (
            Value::tuple(vec![Value::Int(1), unknown()]),
            Value::tuple(vec![Value::Int(2), Value::Int(2)]),
            false,
        ),
        (
            Value::tuple(vec![Value::Int(1), unknown()]),
            Value::tuple(vec![Value::Int(1)]),
            false,
        ),
        (
            Value::object([("a", unknown())]),
            Value::object([("a", Value::Int(1))]),
            true,
        ),
        (
            Value::object([("a", unknown())]),
            Value::object([("b", Value::Int(1))]),
            false,
        ),
        (
            Value::object([("a", Value::Int(1))]),
            Value::object([("a", Value::Int(2))]),
            false,
        ),
        (
            Value::object([("a", unknown())]),
            Value::object([("a", Value::Int(1)), ("b", Value::Int(1))]),
            false,
        ),
        (
            map(Value::str("k"), unknown()),
            map(Value::str("k"), Value::Int(1)),
            true,
        ),
        (
            map(Value::str("k"), unknown()),
            map(Value::str("l"), Value::Int(1)),
            false,
        ),
        (
            map(Value::str("k"), Value::Int(2)),
            map(Value::str("k"), Value::Int(1)),
            false,
        ),
        (
            map(Value::float(-0.0), unknown()),
            map(Value::float(0.0), Value::Int(1)),
            true,
        ),
        (
            map(Value::str("k"), unknown()),
            Value::map(Type::Dynamic, Type::Int, []),
            false,
        ),
        // Elements that are not known may turn out to be equal, but none comes in addition.
        (set(vec![unknown()]), set(vec![Value::Int(1)]), true),
        (
            set(vec![Value::Int(1), unknown()]),
            set(vec![Value::Int(1)]),
            true,
        ),
        (
            set(vec![unknown()]),
            set(vec![Value::Int(1), Value::Int(2)]),
            false,
        ),
        (set(vec![Value::Int(1)]), set(vec![Value::Int(1)]), true),
        (set(vec![Value::Int(1)]), set(vec![Value::Int(2)]), false),
        (Value::Int(1), Value::Int(1), true),
        (Value::float(-0.0), Value::float(0.0), true),
        (Value::Int(1), Value::Int(2), false),
        (Value::float(f64::NAN), Value::float(f64::NAN), true),
        (null(), Value::Null(Type::Str), true),
        (null(), Value::Int(1), false),
        (Value::Int(1), null(), false),
        (unknown().sensitive(), Value::Int(1), true),
        (Value::Int(1).sensitive(), Value::Int(1), true),
    ];
    for (open, candidate, expected) in cases {
        assert_eq!(open.could_become(&candidate), expected, "{open} {candidate}");
    }
}
