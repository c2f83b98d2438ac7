//! Laws that hold for every function of the library, tried on its examples and on all combinations of a pool of values.

use setpoint_value::{
    Bound, CallError, FunctionSpec, Map, Marks, Refinement, Type, Value, convert_arguments, length_range,
};

use super::super::MODULE;
use super::examples;
use super::{f, i, ints, s, strings};

/// Values of every kind, the awkward ones among them.
fn pool() -> Vec<Value> {
    let set = |items: &[&str]| Value::set(Type::Str, items.iter().map(|t| Value::str(*t)));
    let map = |entries: &[(&str, i64)]| {
        Value::Map(Map::new(
            Type::Str,
            Type::Int,
            entries.iter().map(|(k, v)| (Value::str(*k), Value::Int(*v))),
        ))
    };
    vec![
        Value::Bool(true),
        i(0),
        i(-1),
        i(2),
        i(i64::MIN),
        f(1.5),
        f(f64::NAN),
        s(""),
        s("a(b)c %d 'q"),
        s("{\"a\": [1, null]}"),
        s("a,b\n1,2\n"),
        s("2026-02-28T23:59:59.5+01:00"),
        s("e\u{301}\n"),
        Value::str(b"\xff".as_slice()),
        Value::Null(Type::Dynamic),
        Value::Null(Type::optional(Type::Int)),
        strings(&[]),
        strings(&["b", "a", ""]),
        ints(&[3, 1]),
        Value::list(Type::list(Type::Int), [ints(&[1]), ints(&[])]),
        set(&[]),
        set(&["a", "b"]),
        map(&[("a", 1), ("b", 2)]),
        Value::tuple([]),
        Value::tuple([i(1), s("x")]),
        Value::object([("a", i(1)), ("b", s("x"))]),
        super::super::bytes::bytes(*b"abc"),
    ]
}

/// Calls each function with all combinations of two values of the pool, and with some of three.
fn each_call(mut see: impl FnMut(&'static FunctionSpec, &[Value])) {
    let pool = pool();
    for spec in MODULE.functions {
        for (at, a) in pool.iter().enumerate() {
            see(spec, std::slice::from_ref(a));
            for (second, b) in pool.iter().enumerate() {
                let two = [a.clone(), b.clone()];
                see(spec, &two);
                let third = &pool[(at * 7 + second * 3) % pool.len()];
                see(spec, &[a.clone(), b.clone(), third.clone()]);
                see(spec, &[a.clone(), b.clone(), i(1)]);
            }
        }
    }
}

fn is_bug(error: &CallError) -> bool {
    matches!(error, CallError::Panicked { .. }) || error.to_string().contains("this is a bug")
}

#[test]
fn known_arguments_give_known_results_and_nothing_panics() {
    each_call(|spec, arguments| {
        for arguments in [arguments.to_vec(), convert_arguments(spec, arguments)] {
            match spec.call(&arguments) {
                Ok(value) => assert!(value.is_wholly_known(), "{spec}{arguments:?} gives {value}"),
                Err(error) => assert!(!is_bug(&error), "{spec}{arguments:?}: {error}"),
            }
        }
    });
}

#[test]
fn unknown_arguments_give_unknowns_that_could_become_the_result() {
    let check = |spec: &FunctionSpec, arguments: &[Value], blurred: &[Value], known: &Value| {
        let open = spec
            .call(blurred)
            .unwrap_or_else(|e| panic!("{spec}{blurred:?}: {e}"));
        assert!(
            open.could_become(known),
            "{spec}{blurred:?} gives {open}, but {arguments:?} give {known}"
        );
    };
    let mut seen = 0;
    let mut try_all = |spec: &FunctionSpec, arguments: &[Value]| {
        let arguments = convert_arguments(spec, arguments);
        let Ok(known) = spec.call(&arguments) else { return };
        seen += 1;
        for position in 0..arguments.len() {
            for replacement in blurs(&arguments[position]) {
                let mut blurred = arguments.clone();
                blurred[position] = replacement;
                check(spec, &arguments, &blurred, &known);
            }
        }
        let all: Vec<Value> = arguments.iter().map(|a| Value::unknown(a.ty())).collect();
        check(spec, &arguments, &all, &known);
    };
    for (spec, arguments, _) in examples::all() {
        try_all(spec, &arguments);
    }
    each_call(|spec, arguments| try_all(spec, arguments));
    assert!(seen > 3000, "{seen}");
}

/// Unknowns that could become a value: of its type, of no known type, refined, and with a part of it unknown.
fn blurs(value: &Value) -> Vec<Value> {
    let ty = value.ty();
    let mut blurs = vec![Value::unknown(Type::Dynamic)];
    if value.is_null() {
        blurs.push(Value::unknown(ty));
        return blurs;
    }
    blurs.push(Value::unknown(ty.clone()));
    blurs.push(Value::refined(ty.clone(), Refinement::not_null()));
    match value {
        Value::Str(text) => {
            let half = text.as_bytes()[..text.len() / 2].to_vec();
            blurs.push(Value::refined(
                Type::Str,
                Refinement::not_null().with_prefix(half),
            ));
        }
        Value::Int(int) if int.unsigned_abs() < 1 << 50 => {
            let bound = Bound::inclusive(*int as f64);
            blurs.push(Value::refined(
                Type::Int,
                Refinement::not_null().with_lower(bound),
            ));
            blurs.push(Value::refined(
                Type::Int,
                Refinement::not_null().with_upper(bound),
            ));
        }
        Value::List(list) => {
            let element = list.element_type();
            let unknowns = list.iter().map(|_| Value::unknown(element.clone()));
            blurs.push(Value::list(element.clone(), unknowns));
            let last = list.iter().enumerate().map(|(at, item)| match at {
                0 => item.clone(),
                _ => Value::unknown(element.clone()),
            });
            blurs.push(Value::list(element.clone(), last));
        }
        Value::Tuple(items) => {
            blurs.push(Value::tuple(items.iter().map(|item| Value::unknown(item.ty()))));
            blurs.push(Value::tuple(items.iter().map(|_| Value::unknown(Type::Dynamic))));
        }
        Value::Struct(s) => {
            blurs.push(Value::object(
                s.iter().map(|(name, item)| (name, Value::unknown(item.ty()))),
            ));
        }
        Value::Map(map) => {
            let value = map.value_type();
            let entries = map
                .iter()
                .map(|(key, _)| (key.clone(), Value::unknown(value.clone())));
            blurs.push(Value::Map(Map::new(
                map.key_type().clone(),
                value.clone(),
                entries,
            )));
        }
        Value::Set(set) => {
            let unknowns = set.iter().map(|_| Value::unknown(set.element_type().clone()));
            blurs.push(Value::set(set.element_type().clone(), unknowns));
        }
        _ => {}
    }
    if matches!(ty, Type::List(_) | Type::Set(_) | Type::Map(_)) {
        let (least, most) = length_range(value).unwrap_or((0, None));
        blurs.push(Value::refined(
            ty,
            Refinement::not_null().with_length(least, most),
        ));
    }
    blurs
}

#[test]
fn a_sensitive_argument_makes_a_sensitive_result_of_the_same_value() {
    each_call(|spec, arguments| {
        let arguments = convert_arguments(spec, arguments);
        let Ok(known) = spec.call(&arguments) else { return };
        for position in 0..arguments.len() {
            // What is taken from elsewhere does not tell of a default, or of what comes after.
            let unused = matches!((&*spec.name, position), ("lookup", 2));
            let mut marked = arguments.clone();
            marked[position] = marked[position].clone().sensitive();
            let result = spec
                .call(&marked)
                .unwrap_or_else(|e| panic!("{spec}{marked:?}: {e}"));
            assert!(unused || result.is_sensitive(), "{spec}{marked:?} gives {result}");
            // Opaque values are equal only to themselves.
            let plain = result.unmark_deep(&mut Marks::none());
            assert!(
                plain == known || matches!(known, Value::Opaque(_)),
                "{spec}{marked:?} gives {plain}"
            );
            // While it is not known either.
            marked[position] = Value::unknown(arguments[position].ty()).sensitive();
            if let Ok(result) = spec.call(&marked) {
                assert!(unused || result.is_sensitive(), "{spec}{marked:?} gives {result}");
            }
        }
    });
}

#[test]
fn marks_inside_an_argument_are_not_lost_unless_the_result_tells_nothing_of_it() {
    each_call(|spec, arguments| {
        let arguments = convert_arguments(spec, arguments);
        if spec.call(&arguments).is_err() {
            return;
        }
        for position in 0..arguments.len() {
            let flags = spec.flags(position);
            let Some(inside) = marked_inside(&arguments[position]) else {
                continue;
            };
            let mut marked = arguments.clone();
            marked[position] = inside;
            let result = spec
                .call(&marked)
                .unwrap_or_else(|e| panic!("{spec}{marked:?}: {e}"));
            assert!(
                flags.allow_marked || result.is_sensitive(),
                "{spec}{marked:?} gives {result}"
            );
        }
    });
}

fn marked_inside(value: &Value) -> Option<Value> {
    match value {
        Value::List(list) if !list.is_empty() => Some(Value::list(
            list.element_type().clone(),
            list.iter().map(|v| v.clone().sensitive()),
        )),
        Value::Tuple(items) if !items.is_empty() => {
            Some(Value::tuple(items.iter().map(|v| v.clone().sensitive())))
        }
        Value::Map(map) => {
            let entries = map.iter().map(|(k, v)| (k.clone(), v.clone().sensitive()));
            Some(Value::Map(Map::new(
                map.key_type().clone(),
                map.value_type().clone(),
                entries,
            )))
        }
        _ => None,
    }
}

#[test]
fn an_error_never_shows_a_sensitive_argument() {
    let canaries = [
        s("canary[").sensitive(),
        Value::list(Type::Str, [s("canary("), s("x")]).sensitive(),
        Value::list(Type::Str, [s("canary(").sensitive()]),
        Value::object([("a", s("canary"))]).sensitive(),
        Value::tuple([s("canary").sensitive(), i(1)]),
    ];
    let other = [s("%d"), i(70), strings(&["a", "b", "c"]), Value::Bool(true)];
    let mut errors = 0;
    let mut check = |spec: &FunctionSpec, arguments: &[Value]| {
        for arguments in [arguments.to_vec(), convert_arguments(spec, arguments)] {
            if let Err(error) = spec.call(&arguments) {
                errors += 1;
                assert!(
                    !format!("{error} {error:?}").contains("canary"),
                    "{spec}: {error}"
                );
            }
        }
    };
    for spec in MODULE.functions {
        for canary in &canaries {
            check(spec, std::slice::from_ref(canary));
            for other in &other {
                check(spec, &[canary.clone(), other.clone()]);
                check(spec, &[other.clone(), canary.clone()]);
                check(spec, &[canary.clone(), other.clone(), canary.clone()]);
                check(spec, &[other.clone(), canary.clone(), other.clone()]);
            }
        }
    }
    assert!(errors > 1000);
}
