//! Laws of values, conversion and unknowns.

use std::cmp::Ordering;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use proptest::prelude::*;
use setpoint_value::{
    CallError, Equality, FunctionSpec, List, Map, Mark, ParameterFlags, Refinement, Type, Value, call,
    compare, conforms, convert, converted_type, converts_safely, equals, operators, unify, value_conforms,
};

use crate::generate::{Choices, any_type, any_value, blur, decisions, tag, value_of};

fn hash(value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn pair() -> impl Strategy<Value = (Type, Value, Value)> {
    any_type().prop_flat_map(|ty| (Just(ty.clone()), value_of(&ty), value_of(&ty)))
}

fn triple() -> impl Strategy<Value = [Value; 3]> {
    any_type().prop_flat_map(|ty| [value_of(&ty), value_of(&ty), value_of(&ty)])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn identity_hash_and_order_agree((ty, a, b) in pair(), bits in decisions()) {
        let (tagged, again) = (
            tag(&a, &ty, &mut Choices::new(bits.clone())),
            tag(&a, &ty, &mut Choices::new(bits)),
        );
        prop_assert_eq!(&tagged, &again);
        prop_assert_eq!(hash(&tagged), hash(&again));
        if a == b {
            prop_assert_eq!(hash(&a), hash(&b));
            prop_assert_eq!(compare(&a, &b), Ordering::Equal);
        }
        prop_assert_eq!(compare(&a, &b), compare(&b, &a).reverse());
        if equals(&a, &b) == Equality::Equal {
            prop_assert_eq!(compare(&a, &b), Ordering::Equal);
        }
    }

    #[test]
    fn the_order_is_transitive([a, b, c] in triple()) {
        if compare(&a, &b).is_le() && compare(&b, &c).is_le() {
            prop_assert!(compare(&a, &c).is_le(), "{} {} {}", a, b, c);
        }
    }

    #[test]
    fn maps_are_ordered_by_key_and_the_last_of_equal_keys_stays(
        entries in prop::collection::vec((-5i64..5, any::<i64>()), 0..20)
    ) {
        let map = Map::new(Type::Int, Type::Int, entries.iter().map(|(k, v)| (Value::Int(*k), Value::Int(*v))));
        let found: Vec<_> = map.iter().map(|(k, v)| (k.as_int().unwrap(), v.as_int().unwrap())).collect();
        let wanted: Vec<_> = entries.iter().copied().collect::<std::collections::BTreeMap<_, _>>().into_iter().collect();
        prop_assert_eq!(found, wanted);
    }

    #[test]
    fn containers_remember_what_is_inside((ty, a) in any_value(), bits in decisions(), more in decisions()) {
        let mixed = tag(&blur(&a, &ty, &mut Choices::new(bits)), &ty, &mut Choices::new(more));
        prop_assert_eq!(mixed.has_marks(), mixed.any_part(&mut |v| matches!(v, Value::Marked(_))));
        prop_assert_eq!(mixed.is_wholly_known(), !mixed.any_part(&mut |v| matches!(v, Value::Unknown(_))));
    }

    #[test]
    fn a_changed_copy_knows_what_is_inside_it(
        states in prop::collection::vec(0u8..3, 0..6), index in 0usize..8, new in 0u8..3, asked in any::<bool>()
    ) {
        let value = |state: u8| match state {
            0 => Value::Int(1),
            1 => Value::unknown(Type::Int),
            _ => Value::Int(1).sensitive(),
        };
        let items: Vec<Value> = states.iter().map(|s| value(*s)).collect();
        let list = if asked {
            List::new(Type::Int, items.clone())
        } else {
            List::from_vector(Type::Int, items.iter().cloned().collect())
        };
        let entries = items.iter().enumerate().map(|(i, v)| (Value::Int(i as i64), v.clone()));
        let map = Map::new(Type::Int, Type::Int, entries);
        if asked {
            let _ = Value::Map(map.clone()).has_marks();
        }
        let changed = [
            Value::List(list.with_item(index, value(new))),
            Value::Map(map.with_entry(Value::Int(index as i64), value(new))),
        ];
        for changed in changed {
            prop_assert_eq!(changed.has_marks(), changed.any_part(&mut |v| matches!(v, Value::Marked(_))));
            prop_assert_eq!(changed.is_wholly_known(), !changed.any_part(&mut |v| matches!(v, Value::Unknown(_))));
        }
    }

    #[test]
    fn marks_come_back_where_they_were((ty, a) in any_value(), bits in decisions()) {
        let tagged = tag(&a, &ty, &mut Choices::new(bits));
        let (plain, marks) = tagged.unmark_deep_with_paths();
        prop_assert_eq!(&plain, &a);
        prop_assert_eq!(plain.with_marks_at(&marks), tagged);
    }

    #[test]
    fn equality_is_symmetric_and_unknowns_never_decide_it_wrongly(
        (ty, a, b) in pair(), bits in decisions(), more in decisions()
    ) {
        prop_assert_eq!(equals(&a, &b), equals(&b, &a));
        let (x, y) = (blur(&a, &ty, &mut Choices::new(bits)), blur(&b, &ty, &mut Choices::new(more)));
        let open = equals(&x, &y);
        prop_assert_eq!(open, equals(&y, &x));
        if open != Equality::Unknown {
            prop_assert_eq!(open, equals(&a, &b), "{} {}", x, y);
        }
    }

    #[test]
    fn a_blurred_value_could_become_what_it_was((ty, a) in any_value(), bits in decisions()) {
        let blurred = blur(&a, &ty, &mut Choices::new(bits));
        prop_assert!(blurred.could_become(&a), "{} {}", blurred, a);
    }

    #[test]
    fn safe_conversions_never_fail_and_give_the_promised_type((from, value) in any_value(), to in any_type()) {
        prop_assert!(value_conforms(&value, &from).is_ok());
        if converts_safely(&from, &to) {
            let converted = convert(&value, &to);
            prop_assert!(converted.is_ok(), "{} to {}: {:?}", from, to, converted);
            prop_assert!(value_conforms(&converted.unwrap(), &converted_type(&from, &to)).is_ok());
        }
    }

    #[test]
    fn conversion_there_and_back_keeps_the_value_where_both_are_safe((from, value) in any_value(), to in any_type()) {
        if converts_safely(&from, &to) && converts_safely(&to, &from) && !drops_fields(&from, &to) {
            let there = convert(&value, &to).unwrap();
            prop_assert_eq!(convert(&there, &from).unwrap(), value);
        }
    }

    #[test]
    fn whatever_converts_conforms_and_whatever_does_not_says_so((from, value) in any_value(), to in any_type()) {
        if let Ok(converted) = convert(&value, &to) {
            prop_assert!(value_conforms(&converted, &to).is_ok(), "{} to {}: {}", value, to, converted);
        }
        if conforms(&from, &to).is_ok() {
            prop_assert!(converts_safely(&from, &to), "{} {}", from, to);
        }
    }

    #[test]
    fn conversion_of_unknowns_is_sound((from, value) in any_value(), to in any_type(), bits in decisions()) {
        let blurred = blur(&value, &from, &mut Choices::new(bits));
        if let Ok(known) = convert(&value, &to) {
            let open = convert(&blurred, &to);
            prop_assert!(open.is_ok(), "{} to {}: {:?}", blurred, to, open);
            let open = open.unwrap();
            prop_assert!(open.could_become(&known), "{} of {} could become {}", open, blurred, known);
        }
    }

    #[test]
    fn unify_is_symmetric_idempotent_and_fits_all(a in any_type(), b in any_type(), c in any_type()) {
        prop_assert_eq!(unify(&[a.clone(), a.clone()]), Ok(a.clone()));
        let forwards = unify(&[a.clone(), b.clone(), c.clone()]);
        let backwards = unify(&[c.clone(), b.clone(), a.clone()]);
        prop_assert_eq!(forwards.as_ref().ok(), backwards.as_ref().ok());
        if let Ok(unified) = forwards {
            for ty in [a, b, c] {
                prop_assert!(converts_safely(&ty, &unified), "{} to {}", ty, unified);
                prop_assert_eq!(unify(&[ty, unified.clone()]), Ok(unified.clone()));
            }
        }
    }

    #[test]
    fn refinements_combine_to_what_both_say((_, a, b) in pair(), bits in decisions(), more in decisions()) {
        let refinement = |value: &Value, bits: &Vec<u8>| {
            let ty = value.ty();
            match blur(value, &ty, &mut Choices::new([vec![0], bits.clone()].concat())) {
                Value::Unknown(unknown) => unknown.refinement.clone(),
                _ => Refinement::default(),
            }
        };
        let (r, s) = (refinement(&a, &bits), refinement(&b, &more));
        match r.combined(&s) {
            Ok(both) => {
                prop_assert_eq!(Ok(both.clone()), s.combined(&r));
                for value in [&a, &b] {
                    let each = r.check(value).is_ok() && s.check(value).is_ok();
                    prop_assert_eq!(both.check(value).is_ok(), each, "{} {}", both, value);
                }
            }
            Err(_) => prop_assert!(s.check(&a).is_err() && r.check(&b).is_err()),
        }
    }

    #[test]
    fn operators_are_sound_about_unknowns(
        (ty, a, b) in pair(),
        which in 0..operators::OPERATORS.len(),
        bits in decisions(),
        more in decisions(),
        tags in decisions(),
    ) {
        // mcl has no optional types, and the two sides of an operator have one type.
        if ty.any_part(&mut |part| matches!(part, Type::Optional(_))) {
            return Ok(());
        }
        let spec = operators::OPERATORS[which];
        let count = spec.alternatives()[0].parameters.len();
        let known = &[a.clone(), b.clone()][..count];
        let Ok(result) = call::call(spec, known) else { return Ok(()) };
        prop_assert!(result.is_wholly_known());
        let blurred = [
            blur(&a, &ty, &mut Choices::new(bits)),
            blur(&b, &ty, &mut Choices::new(more)),
        ];
        let open = call::call(spec, &blurred[..count]);
        prop_assert!(open.is_ok(), "{spec} {:?}: {:?}", blurred, open);
        prop_assert!(open.clone().unwrap().could_become(&result), "{spec} {:?}: {:?} {}", blurred, open, result);
        let tagged = [tag(&a, &ty, &mut Choices::new(tags.clone())), tag(&b, &ty, &mut Choices::new(tags))];
        let sensitive = tagged[..count].iter().any(Value::is_sensitive);
        let marked = call::call(spec, &tagged[..count]).unwrap();
        prop_assert_eq!(marked.unmark().1.contains(&Mark::Sensitive), sensitive);
        prop_assert_eq!(marked.unmarked(), &result);
    }
}

/// An argument in one of the states that the protocol tells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Known,
    Null,
    Unknown,
    Untyped,
}

fn argument() -> impl Strategy<Value = (State, bool, ParameterFlags)> {
    let states = [State::Known, State::Null, State::Unknown, State::Untyped];
    let flags = any::<[bool; 4]>().prop_map(|[allow_null, allow_unknown, allow_dynamic, allow_marked]| {
        ParameterFlags {
            allow_null,
            allow_unknown,
            allow_dynamic,
            allow_marked,
        }
    });
    (prop::sample::select(states.to_vec()), any::<bool>(), flags)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_protocol_decides_by_flags_and_states_alone(arguments in prop::collection::vec(argument(), 1..4)) {
        let flags: Vec<ParameterFlags> = arguments.iter().map(|(_, _, flags)| *flags).collect();
        // A description is static; a few thousand small ones may stay.
        let spec: &'static FunctionSpec = Box::leak(Box::new(
            FunctionSpec::pure("test", "any", &["func(args int…) str"], |seen, _| {
                let marked = seen.iter().any(Value::has_marks);
                Ok(Value::str(if marked { "ran, marked" } else { "ran" }))
            })
            .with_flags(flags.leak()),
        ));
        let values: Vec<Value> = arguments
            .iter()
            .map(|(state, marked, _)| {
                let value = match state {
                    State::Known => Value::Int(1),
                    State::Null => Value::Null(Type::Dynamic),
                    State::Unknown => Value::unknown(Type::Int),
                    State::Untyped => Value::unknown(Type::Dynamic),
                };
                if *marked { value.sensitive() } else { value }
            })
            .collect();
        let result = call::call(spec, &values);
        let any = |test: fn(State, ParameterFlags) -> bool| arguments.iter().any(|(s, _, f)| test(*s, *f));
        if any(|s, f| s == State::Null && !f.allow_null) {
            prop_assert!(matches!(result, Err(CallError::Argument(_))), "{result:?}");
            return Ok(());
        }
        let result = result.expect("nothing else is refused");
        let expected = if any(|s, f| s == State::Untyped && !f.allow_dynamic) {
            Some(Type::Dynamic)
        } else {
            any(|s, f| matches!(s, State::Unknown | State::Untyped) && !f.allow_unknown).then_some(Type::Str)
        };
        let kept = arguments.iter().any(|(_, marked, f)| *marked && f.allow_marked);
        let taken = arguments.iter().any(|(_, marked, f)| *marked && !f.allow_marked);
        match expected {
            Some(ty) => {
                prop_assert_eq!(result.unmarked(), &Value::unknown(ty));
                prop_assert_eq!(result.is_sensitive(), kept || taken);
            }
            None => {
                prop_assert_eq!(result.unmarked(), &Value::str(if kept { "ran, marked" } else { "ran" }));
                prop_assert_eq!(result.is_sensitive(), taken);
            }
        }
    }
}

/// Whether a conversion leaves out fields, or invents them as null.
fn drops_fields(from: &Type, to: &Type) -> bool {
    match (from, to) {
        (Type::Struct(a), Type::Struct(b)) => {
            a.fields.len() != b.fields.len()
                || a.fields
                    .iter()
                    .any(|f| b.field(&f.name).is_none_or(|other| drops_fields(&f.ty, other)))
        }
        (
            Type::List(a) | Type::Set(a) | Type::Optional(a),
            Type::List(b) | Type::Set(b) | Type::Optional(b),
        ) => drops_fields(a, b),
        (Type::Map(a), Type::Map(b)) => drops_fields(&a.1, &b.1),
        (Type::Tuple(a), Type::Tuple(b)) => a.iter().zip(b.iter()).any(|(a, b)| drops_fields(a, b)),
        _ => false,
    }
}
