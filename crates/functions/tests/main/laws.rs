//! Laws of all pure functions.

use proptest::prelude::*;
use setpoint_value::call::{self, call_typed};
use setpoint_value::{FunctionSpec, Implementation, Map, Marks, Signature, Type, Value, value_conforms};

use crate::counting_allocator::allocations;

/// The pure functions of mcl's own library, with one of their signatures.
fn pure_functions() -> Vec<(&'static FunctionSpec, &'static Signature)> {
    let specs: Vec<&'static FunctionSpec> = crate::machine::all().filter(|s| s.module != "cty").collect();
    specs
        .into_iter()
        .filter(|spec| matches!(spec.implementation, Implementation::Pure(_)))
        .flat_map(|spec| spec.alternatives().iter().map(move |signature| (spec, signature)))
        .collect()
}

/// Texts that matter to some function, and any others.
fn texts() -> impl Strategy<Value = Value> {
    prop_oneof![
        prop::sample::select(vec![
            "",
            "a",
            "é",
            "10.0.0.1/24",
            "00:11:22:33:44:55",
            "[a-",
            "%s %d",
            "http://h:1/p?q",
            "a:1",
            "1e5",
            "0x1p-2",
            "{\"a\": [1]}",
            "aGk=",
            "fedora39-x",
            "[]int",
            "&eacute;&#",
            "\"q\\n\"",
            "../a//b",
            "true",
        ])
        .prop_map(Value::str),
        prop::collection::vec(any::<u8>(), 0..12).prop_map(Value::str),
        ".{0,12}".prop_map(Value::str),
    ]
}

fn ints() -> impl Strategy<Value = Value> {
    prop_oneof![-3i64..70, any::<i64>(), Just(i64::MIN), Just(i64::MAX),].prop_map(Value::Int)
}

fn floats() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<f64>(),
        -40f64..40.0,
        prop::sample::select(vec![
            0.0,
            -0.0,
            1.0,
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::MIN_POSITIVE
        ]),
    ]
    .prop_map(Value::float)
}

/// Values of a closed type.
fn values(ty: &Type) -> BoxedStrategy<Value> {
    match ty {
        Type::Bool => any::<bool>().prop_map(Value::Bool).boxed(),
        Type::Int => ints().boxed(),
        Type::Float => floats().boxed(),
        Type::Str => texts().boxed(),
        Type::List(element) => {
            let element = (**element).clone();
            prop::collection::vec(values(&element), 0..4)
                .prop_map(move |items| Value::list(element.clone(), items))
                .boxed()
        }
        Type::Map(types) => {
            let (key, value) = (types.0.clone(), types.1.clone());
            prop::collection::vec((values(&key), values(&value)), 0..4)
                .prop_map(move |entries| Value::Map(Map::new(key.clone(), value.clone(), entries)))
                .boxed()
        }
        other => Just(Value::zero(other).expect("a closed type")).boxed(),
    }
}

/// The type with its variables replaced by str, or by what they are limited to.
fn closed(ty: &Type, signature: &Signature) -> Type {
    ty.replace(&mut |part| match part {
        Type::Variable(number) => {
            let limit = signature.limits.iter().find(|(variable, _)| variable == number);
            Some(
                limit
                    .and_then(|(_, types)| types.first().cloned())
                    .unwrap_or(Type::Str),
            )
        }
        Type::Dynamic => Some(Type::Int),
        _ => None,
    })
}

/// Arguments for a signature, and the result's type.
fn arguments(signature: &'static Signature) -> BoxedStrategy<Vec<Value>> {
    let mut strategies: Vec<BoxedStrategy<Value>> = Vec::new();
    for parameter in &signature.parameters {
        strategies.push(values(&closed(&parameter.ty, signature)));
    }
    let further = signature
        .variadic
        .as_ref()
        .map(|v| values(&closed(&v.ty, signature)));
    match further {
        Some(further) => (strategies, prop::collection::vec(further, 0..3))
            .prop_map(|(mut all, more)| {
                all.extend(more);
                all
            })
            .boxed(),
        None => strategies.boxed(),
    }
}

fn result_type(signature: &Signature) -> Type {
    closed(&signature.result, signature)
}

fn a_call() -> impl Strategy<Value = (&'static FunctionSpec, Type, Vec<Value>, u8)> {
    prop::sample::select(pure_functions()).prop_flat_map(|(spec, signature)| {
        let ty = result_type(signature);
        (Just(spec), Just(ty), arguments(signature), any::<u8>())
    })
}

/// Whether the function sees to marks and unknowns itself.
fn is_special(spec: &FunctionSpec) -> bool {
    matches!(&*spec.name, "sensitive" | "nonsensitive")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn well_typed_arguments_never_panic_and_give_the_type((spec, ty, arguments, _) in a_call()) {
        match call_typed(spec, &arguments, &ty) {
            Ok(value) => {
                prop_assert!(value_conforms(&value, &ty).is_ok(), "`{spec}`: {value} is no {ty}");
                prop_assert!(value.is_wholly_known(), "`{spec}` is unknown for {arguments:?}");
            }
            Err(error) => {
                prop_assert!(!matches!(error, setpoint_value::CallError::Panicked { .. }), "`{spec}`: {error}");
            }
        }
    }

    #[test]
    fn an_unknown_argument_gives_an_unknown_of_the_type((spec, ty, mut arguments, which) in a_call()) {
        if arguments.is_empty() || is_special(spec) {
            return Ok(());
        }
        let known = call_typed(spec, &arguments, &ty);
        let which = usize::from(which) % arguments.len();
        arguments[which] = Value::unknown(arguments[which].ty());
        // A format may be wrong, or print nothing, whatever the arguments are.
        match call_typed(spec, &arguments, &ty) {
            Ok(Value::Unknown(unknown)) => {
                prop_assert_eq!(&unknown.ty, &ty, "`{}`", spec);
                // What is certain about it must hold for what it stands for.
                if let (Some(prefix), Ok(Value::Str(text))) = (&unknown.refinement.prefix, &known) {
                    prop_assert!(text.as_bytes().starts_with(prefix.as_bytes()), "`{spec}`: {text:?}");
                }
            }
            Ok(value) => prop_assert_eq!(Ok(value), known, "`{}`", spec),
            Err(error) => prop_assert!(known.is_err(), "`{spec}`: {error}"),
        }
    }

    #[test]
    fn a_mark_on_an_argument_is_on_the_result((spec, ty, mut arguments, which) in a_call()) {
        if arguments.is_empty() || is_special(spec) {
            return Ok(());
        }
        let plain = call_typed(spec, &arguments, &ty);
        let which = usize::from(which) % arguments.len();
        arguments[which] = arguments[which].clone().sensitive();
        match (call_typed(spec, &arguments, &ty), plain) {
            (Ok(value), Ok(plain)) => prop_assert_eq!(value, plain.with_marks(&Marks::sensitive()), "`{}`", spec),
            (Err(_), Err(_)) => {}
            (marked, plain) => prop_assert!(false, "`{spec}`: {marked:?} and {plain:?}"),
        }
    }
}

#[test]
fn every_pure_function_is_called_with_each_of_its_signatures() {
    // What the properties pick at random is picked here in turn.
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for (spec, signature) in pure_functions() {
        let strategy = arguments(signature);
        let ty = result_type(signature);
        for _ in 0..30 {
            let arguments = strategy.new_tree(&mut runner).expect("values").current();
            let result = call_typed(spec, &arguments, &ty);
            assert!(
                !matches!(result, Err(setpoint_value::CallError::Panicked { .. })),
                "`{spec}` {arguments:?}: {result:?}"
            );
            // Without arguments only use can decide between signatures.
            let is_decided = spec.alternatives().len() == 1 || !arguments.is_empty();
            if is_decided && spec.result_type.is_none() && !signature.result.is_open() {
                let prepared = call::prepare(spec, &arguments).map(|p| p.result);
                assert_eq!(prepared.as_ref(), Ok(&ty), "`{spec}` {arguments:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_call_allocates_nothing_beside_what_the_function_itself_does((spec, ty, arguments, _) in a_call()) {
        let Implementation::Pure(implementation) = &spec.implementation else {
            return Ok(());
        };
        // Messages of errors are put together outside of the function; and what it remembers it has after the first call.
        if call_typed(spec, &arguments, &ty).is_err() {
            return Ok(());
        }
        let (own, alone) = allocations(|| implementation.run(&arguments, &ty));
        let (called, whole) = allocations(|| call_typed(spec, &arguments, &ty));
        prop_assert_eq!(own.is_ok(), called.is_ok());
        prop_assert_eq!(whole, alone, "{}", spec);
    }
}
