//! Each row of the tables of arithmetic, comparison, membership and lookups.

use proptest::prelude::*;
use setpoint_cf_names::datum::{InstanceId, UnknownId};

use super::*;
use crate::generate::{datum, known as known_data};
use crate::testing::{World, nowhere};

fn applied(operator: Operator, left: &Datum, right: &Datum) -> Result<Datum, String> {
    let world = World::new();
    apply(
        operator,
        left,
        right,
        nowhere(),
        world.naming(),
        &mut Unknowns::default(),
    )
    .map_err(|error| format!("{} {}: {}", error.code.code, error.class, error.message))
}

fn int(value: i64) -> Datum {
    Datum::Int(value)
}

fn float(value: f64) -> Datum {
    Datum::Float(value)
}

fn items(items: impl IntoIterator<Item = Datum>) -> Datum {
    Datum::List(items.into_iter().collect())
}

fn entries<const N: usize>(entries: [(&str, Datum); N]) -> Datum {
    let entries = entries.map(|(key, value)| (Arc::from(key), value));
    Datum::Dict(Arc::new(entries.into_iter().collect()))
}

const UNKNOWN: Datum = Datum::Unknown(UnknownId(7));

#[test]
fn arithmetic() {
    use Operator::{Add, Divide, Multiply, Power, Remainder, Subtract};
    for (left, operator, right, expected) in [
        (int(1), Add, int(2), "Int(3)"),
        (int(1), Add, float(2.0), "Float(3.0)"),
        (Datum::Bool(true), Add, Datum::Bool(true), "Int(2)"),
        (Datum::text("a"), Add, Datum::text("b"), "Text(\"ab\")"),
        (int(1), Subtract, int(2), "Int(-1)"),
        (int(3), Multiply, float(0.5), "Float(1.5)"),
        (int(5), Divide, int(2), "Float(2.5)"),
        (int(4), Divide, int(2), "Float(2.0)"),
        (int(-7), Remainder, int(3), "Int(2)"),
        (int(7), Remainder, int(-3), "Int(-2)"),
        (int(i64::MIN), Remainder, int(-1), "Int(0)"),
        (float(-7.5), Remainder, int(2), "Float(0.5)"),
        (float(-4.0), Remainder, int(2), "Float(0.0)"),
        (int(2), Power, int(10), "Int(1024)"),
        (int(2), Power, int(-1), "Float(0.5)"),
        (int(-1), Power, int(i64::MAX), "Int(-1)"),
        (int(0), Power, int(0), "Int(1)"),
        (float(4.0), Power, float(0.5), "Float(2.0)"),
    ] {
        let result = applied(operator, &left, &right).expect("there is a result");
        assert_eq!(format!("{result:?}"), expected, "{left:?} {operator:?} {right:?}");
    }
}

#[test]
fn arithmetic_that_has_no_result() {
    use Operator::{Add, Divide, Multiply, Power, Remainder, Subtract};
    for (left, operator, right, expected) in [
        (
            Datum::text("a"),
            Add,
            int(1),
            "can only add a string to a string, not int `1`",
        ),
        (
            int(1),
            Add,
            Datum::text("a"),
            "unsupported operands for `+`: int `1` and string `'a'`",
        ),
        (
            items([]),
            Add,
            items([]),
            "unsupported operands for `+`: list `[]` and list `[]`",
        ),
        (
            Datum::text("a"),
            Multiply,
            int(2),
            "unsupported operands for `*`: string `'a'` and int `2`",
        ),
        (
            Datum::Null,
            Subtract,
            int(2),
            "unsupported operands for `-`: null `null` and int `2`",
        ),
        (int(1), Divide, int(0), "division by zero: `1 / 0`"),
        (float(1.0), Remainder, float(0.0), "division by zero: `1.0 % 0.0`"),
        (int(0), Power, int(-1), "division by zero: `0 ** -1`"),
        (
            int(i64::MAX),
            Add,
            int(1),
            "the result does not fit 64 bits: `9223372036854775807 + 1`",
        ),
        (
            int(2),
            Power,
            int(63),
            "the result does not fit 64 bits: `2 ** 63`",
        ),
        (
            float(10.0),
            Power,
            int(400),
            "the result is too large for a float: `10.0 ** 400`",
        ),
        (
            float(-1.0),
            Power,
            float(0.5),
            "a negative number has no power with a fraction: `-1.0 ** 0.5`",
        ),
    ] {
        let error = applied(operator, &left, &right).expect_err("there is no result");
        assert_eq!(error, format!("E0608 TypingException: {expected}"));
    }
}

#[test]
fn comparison_is_of_numbers() {
    use Operator::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
    for (left, operator, right, expected) in [
        (int(1), Less, float(1.5), true),
        (Datum::Bool(true), LessOrEqual, int(1), true),
        (int(2), Greater, int(2), false),
        (int(2), GreaterOrEqual, int(2), true),
        (float(f64::NAN), LessOrEqual, int(1), false),
        (int(1), Equal, float(1.0), true),
        (Datum::text("5"), NotEqual, int(5), true),
        (
            Datum::Instance(InstanceId(0)),
            Equal,
            Datum::Instance(InstanceId(1)),
            false,
        ),
    ] {
        let result = applied(operator, &left, &right).expect("they compare");
        assert!(
            matches!(result, Datum::Bool(is) if is == expected),
            "{left:?} {operator:?} {right:?}"
        );
    }
    let error = applied(Less, &Datum::text("a"), &Datum::text("b")).expect_err("texts have no order");
    assert_eq!(
        error,
        "E0608 TypingException: can only compare numbers, not `'a'` and `'b'` with `<`"
    );
}

#[test]
fn membership() {
    let list = items([int(1), Datum::text("a")]);
    let half_known = items([int(1), UNKNOWN]);
    let dict = entries([("a", UNKNOWN)]);
    for (element, container, expected) in [
        (float(1.0), &list, Some(true)),
        (int(2), &list, Some(false)),
        (int(1), &half_known, Some(true)),
        (int(2), &half_known, None),
        (UNKNOWN, &list, None),
        (int(1), &UNKNOWN, None),
        (Datum::text("a"), &dict, Some(true)),
        (int(2), &dict, Some(false)),
    ] {
        let found = match applied(Operator::In, &element, container).expect("it can be told") {
            Datum::Bool(found) => Some(found),
            _ => None,
        };
        assert_eq!(found, expected, "{element:?} in {container:?}");
        let not = applied(Operator::NotIn, &element, container).expect("it can be told");
        assert!(match (not, expected) {
            (Datum::Bool(not), Some(found)) => not != found,
            (Datum::Unknown(_), None) => true,
            _ => false,
        });
    }
    let error = applied(Operator::In, &Datum::text("a"), &Datum::text("abc")).expect_err("no container");
    assert_eq!(
        error,
        "E0608 TypingException: `in` looks into lists and dicts, not into string `'abc'`"
    );
}

#[test]
fn bools_decide_from_the_left() {
    use Operator::{And, Or};
    let (yes, no) = (Datum::Bool(true), Datum::Bool(false));
    for (left, operator, right, expected) in [
        (&yes, Or, &UNKNOWN, Some(true)),
        (&no, And, &UNKNOWN, Some(false)),
        (&yes, And, &UNKNOWN, None),
        (&UNKNOWN, Or, &yes, None),
        (&no, Or, &yes, Some(true)),
        (&yes, And, &no, Some(false)),
    ] {
        let result = match applied(operator, left, right).expect("these are bools") {
            Datum::Bool(result) => Some(result),
            _ => None,
        };
        assert_eq!(result, expected);
    }
    let error = applied(And, &int(1), &yes).expect_err("no bool");
    assert_eq!(error, "E0610 RuntimeException: `and` takes bools, not `1`");
    let world = World::new();
    let error = not(&int(1), nowhere(), world.naming(), &mut Unknowns::default()).expect_err("no bool");
    assert_eq!(error.message, "`not` takes a bool, not `1`");
}

#[test]
fn what_is_unknown_or_marked_shows_in_the_result() {
    let secret = Datum::text("s").with_marks(&Marks::sensitive());
    let joined = applied(Operator::Add, &Datum::text("a"), &secret).expect("texts add");
    assert!(joined.has_marks());
    let equal = applied(Operator::Equal, &secret, &Datum::text("s")).expect("texts compare");
    assert!(matches!(equal.unmarked(), Datum::Bool(true)) && equal.has_marks());
    for operator in [Operator::Add, Operator::Power, Operator::Less, Operator::Equal] {
        assert!(matches!(
            applied(operator, &UNKNOWN, &int(1)),
            Ok(Datum::Unknown(_))
        ));
    }
    // What can be of no type that adds is not looked at before it is known.
    assert!(matches!(
        applied(Operator::Add, &UNKNOWN, &Datum::Null),
        Ok(Datum::Unknown(_))
    ));
}

#[test]
fn literals_of_lists_are_flat_by_one_level() {
    let nested = items([items([int(1)]), items([int(2)])]);
    let flat = list(vec![int(0), nested, items([])], nowhere()).expect("small enough");
    assert_eq!(
        format!("{flat:?}"),
        "List([Int(0), List([Int(1)]), List([Int(2)])])"
    );
    let secret = items([int(1)]).with_marks(&Marks::sensitive());
    let Ok(Datum::List(flat)) = list(vec![secret], nowhere()) else {
        panic!("a literal is a list");
    };
    assert!(flat[0].has_marks());
}

#[test]
fn data_that_grow_without_end_are_refused() {
    let mut nested = Datum::Null;
    let mut refused = None;
    for level in 0..1000 {
        match dict([(Arc::from("k"), nested.clone())], nowhere()) {
            Ok(deeper) => nested = deeper,
            Err(error) => {
                refused = Some((level, error.code.code));
                break;
            }
        }
    }
    assert_eq!(refused, Some((200, "E0691")));
    let mut wide = Datum::Null;
    let refused = (0..100).find_map(|_| {
        let entries = [(Arc::from("a"), wide.clone()), (Arc::from("b"), wide.clone())];
        match dict(entries, nowhere()) {
            Ok(wider) => {
                wide = wider;
                None
            }
            Err(error) => Some(error.code.code),
        }
    });
    assert_eq!(refused, Some("E0691"));
}

#[test]
fn lookups() {
    let world = World::new();
    let mut unknowns = Unknowns::default();
    let some = entries([
        ("k", int(1)),
        ("none", Datum::Null),
        ("empty", items([])),
        ("later", UNKNOWN),
    ]);
    let mut look = |dict: &Datum, key: &Datum| {
        lookup(dict, key, nowhere(), world.naming(), &mut unknowns)
            .map_err(|error| (error.code.code, error.class, error.message, error.notes))
    };
    assert!(matches!(look(&some, &Datum::text("k")), Ok(Datum::Int(1))));
    assert!(matches!(look(&some, &UNKNOWN), Ok(Datum::Unknown(_))));
    assert!(matches!(look(&UNKNOWN, &int(1)), Ok(Datum::Unknown(_))));
    let (code, class, message, notes) = look(&some, &Datum::text("x")).expect_err("no such key");
    assert_eq!((code, class), ("E0609", "KeyException"));
    assert_eq!(message, "key `'x'` not found in dict");
    assert_eq!(notes, ["its keys are `k`, `none`, `empty`, `later`"]);
    let (code, class, message, _) = look(&items([]), &Datum::text("x")).expect_err("no dict");
    assert_eq!((code, class), ("E0608", "TypingException"));
    assert_eq!(message, "only dicts are looked up with `[…]`, not list `[]`");
    let (_, _, message, _) = look(&some, &int(1)).expect_err("no string");
    assert_eq!(message, "keys of dicts are strings, not int `1`");
    let mut defined = |key: &str| {
        let found = lookup_is_defined(&some, &Datum::text(key), nowhere(), world.naming(), &mut unknowns);
        match found.expect("the key is a string") {
            Datum::Bool(defined) => Some(defined),
            _ => None,
        }
    };
    assert_eq!(
        ["k", "none", "empty", "x", "later"].map(&mut defined),
        [Some(true), Some(false), Some(false), Some(false), None]
    );
}

#[test]
fn patterns_match_at_the_start() {
    let world = World::new();
    let regex = fancy_regex::Regex::new("b+").expect("a pattern");
    let matched = |text: &Datum| matches(&regex, text, nowhere(), world.naming());
    assert_eq!(matched(&Datum::text("bba")).expect("a text"), Some(true));
    assert_eq!(matched(&Datum::text("abb")).expect("a text"), Some(false));
    assert_eq!(matched(&UNKNOWN).expect("it may be a text"), None);
    assert_eq!(matched(&int(1)).expect_err("no text").class, "TypingException");
}

proptest! {
    #[test]
    fn any_operator_with_any_operands_ends(left in datum(), right in datum()) {
        for operator in [
            Operator::Or, Operator::And, Operator::Equal, Operator::NotEqual, Operator::Less, Operator::LessOrEqual,
            Operator::Greater, Operator::GreaterOrEqual, Operator::Add, Operator::Subtract, Operator::Multiply,
            Operator::Divide, Operator::Remainder, Operator::Power, Operator::In, Operator::NotIn,
        ] {
            if let Err(message) = applied(operator, &left, &right) {
                prop_assert!(!message.contains('\n'), "{}", message);
            }
        }
    }

    #[test]
    fn an_element_of_a_list_is_in_it(elements in prop::collection::vec(known_data(), 1..4), at: prop::sample::Index) {
        let element = at.get(&elements).clone();
        let found = applied(Operator::In, &element, &items(elements));
        prop_assert!(matches!(found, Ok(Datum::Bool(true))));
    }

    #[test]
    fn quotient_and_remainder_make_the_number(a: i32, b in prop::num::i32::ANY.prop_filter("not zero", |b| *b != 0)) {
        let rest = applied(Operator::Remainder, &int(a.into()), &int(b.into()));
        let Ok(Datum::Int(rest)) = rest else { panic!("a number") };
        prop_assert!(rest.abs() < i64::from(b).abs());
        prop_assert!(rest == 0 || (rest < 0) == (b < 0));
        prop_assert_eq!((i64::from(a) - rest) % i64::from(b), 0);
    }
}
