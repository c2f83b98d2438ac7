//! The protocol of calls, and functions of the shared library.

use std::sync::Arc;

use setpoint_cf_names::datum::{InstanceId, UnknownId, to_datum, to_value};
use setpoint_value::{CallError, FunctionSpec, PureFunction, Type, Value};

use super::*;
use crate::context::UnsetCell;
use crate::testing::{World, nowhere};

fn std_function(name: &str) -> Function {
    let number = crate::std::number("std", name).expect("there is such a function");
    Function {
        name: format!("std::{name}").into(),
        implementation: FunctionImplementation::Std(number),
    }
}

fn called(
    world: &mut World,
    function: &Function,
    positional: Vec<Datum>,
    keywords: Vec<(&str, Datum)>,
    dicts: Vec<Datum>,
) -> Result<Datum, Stop> {
    let arguments = Arguments {
        positional,
        keywords: keywords
            .into_iter()
            .map(|(name, value)| (Arc::from(name), value))
            .collect(),
        dicts,
    };
    let site = Site {
        span: nowhere(),
        name: nowhere(),
        written: None,
    };
    call(function, arguments, site, world)
}

/// Code, class and message of the error of a call, and the message of what caused it.
fn refused(
    name: &str,
    positional: Vec<Datum>,
    keywords: Vec<(&str, Datum)>,
    dicts: Vec<Datum>,
) -> [String; 3] {
    let mut world = World::new();
    match called(&mut world, &std_function(name), positional, keywords, dicts) {
        Err(Stop::Error(error)) => [
            format!("{} {}", error.code.code, error.class),
            error.message.clone(),
            error
                .causes
                .iter()
                .next()
                .map_or_else(String::new, |cause| cause.message.clone()),
        ],
        other => panic!("{other:?}"),
    }
}

fn text(text: &str) -> Datum {
    Datum::text(text)
}

fn dict(key: &str, value: Datum) -> Datum {
    Datum::Dict(Arc::new([(Arc::from(key), value)].into_iter().collect()))
}

const UNKNOWN: Datum = Datum::Unknown(UnknownId(9));

#[test]
fn arguments_are_bound_checked_and_told() {
    let arity = "E0620 RuntimeException";
    for (found, expected) in [
        (
            refused("upper", vec![text("a"), text("b")], vec![], vec![]),
            [
                arity,
                "std::upper() takes 1 positional argument but 2 were given",
                "",
            ],
        ),
        (
            refused("upper", vec![], vec![], vec![]),
            [
                arity,
                "std::upper() missing 1 required positional argument: 'string'",
                "",
            ],
        ),
        (
            refused("upper", vec![text("a")], vec![("sting", text("b"))], vec![]),
            [
                arity,
                "std::upper() got an unexpected keyword argument 'sting' (did you mean 'string'?)",
                "",
            ],
        ),
        (
            refused("upper", vec![text("a")], vec![("string", text("b"))], vec![]),
            [
                arity,
                "std::upper() got multiple values for argument 'string'",
                "",
            ],
        ),
        (
            refused(
                "upper",
                vec![],
                vec![("string", text("b"))],
                vec![dict("string", text("c"))],
            ),
            [arity, "keyword argument `string` repeated", ""],
        ),
        (
            refused("upper", vec![], vec![], vec![Datum::Int(1)]),
            [
                "E0608 TypingException",
                "the `**` operator can only be applied to dictionaries, not to int `1`",
                "",
            ],
        ),
        (
            refused("upper", vec![Datum::Int(1)], vec![], vec![]),
            [
                "E0621 PluginTypeException",
                "value `1` for argument `string` of function `std::upper` has incompatible type, expected `string`",
                "invalid value `1`, expected `string`",
            ],
        ),
        (
            refused("prefixlen", vec![text("10.0.0.1/33")], vec![], vec![]),
            [
                "E0621 PluginTypeException",
                "value `'10.0.0.1/33'` for argument `addr` of function `std::prefixlen` has incompatible type, \
                 expected `std::ipv_any_interface`",
                "invalid value `'10.0.0.1/33'`, does not match constraint of `std::ipv_any_interface`",
            ],
        ),
        (
            refused(
                "dict_get",
                vec![dict("k", Datum::Int(1)), text("k")],
                vec![],
                vec![],
            ),
            [
                "E0621 PluginTypeException",
                "result `1` of function `std::dict_get` has incompatible type",
                "invalid value `1`, expected `string`",
            ],
        ),
        (
            refused("split", vec![text("a"), text("")], vec![], vec![]),
            [
                "E0622 ExternalException",
                "function `std::split` failed: empty separator",
                "",
            ],
        ),
        (
            refused(
                "attr",
                vec![Datum::Instance(InstanceId(0)), text("nme")],
                vec![],
                vec![],
            ),
            [
                "E0622 WrappingRuntimeException",
                "function `std::attr` failed: could not find attribute `nme` on `__config__::Host`",
                "could not find attribute `nme` on `__config__::Host`",
            ],
        ),
    ] {
        assert_eq!(found, expected);
    }
}

#[test]
fn arity_and_known_types_are_checked_beside_unknowns() {
    let mut world = World::new();
    let replace = std_function("replace");
    let result = called(
        &mut world,
        &replace,
        vec![UNKNOWN, text("a"), text("b")],
        vec![],
        vec![],
    );
    assert!(matches!(result, Ok(Datum::Unknown(id)) if id != UnknownId(9)));
    assert!(
        called(
            &mut world,
            &replace,
            vec![UNKNOWN, Datum::Int(1), text("b")],
            vec![],
            vec![]
        )
        .is_err()
    );
    assert!(called(&mut world, &replace, vec![UNKNOWN], vec![], vec![]).is_err());
    // Of a dict that is not known, anything may come.
    assert!(matches!(
        called(&mut world, &replace, vec![], vec![], vec![UNKNOWN]),
        Ok(Datum::Unknown(_))
    ));
    let inside = Datum::List([UNKNOWN].into());
    assert!(matches!(
        called(
            &mut world,
            &std_function("flatten"),
            vec![inside.clone()],
            vec![],
            vec![]
        ),
        Ok(Datum::Unknown(_))
    ));
    assert!(matches!(
        called(&mut world, &std_function("count"), vec![inside], vec![], vec![]),
        Ok(Datum::Int(1))
    ));
}

#[test]
fn marks_of_arguments_are_on_the_result_and_never_in_messages() {
    let mut world = World::new();
    let secret = || text("secret").with_marks(&Marks::sensitive());
    let upper = called(&mut world, &std_function("upper"), vec![secret()], vec![], vec![]).expect("a text");
    assert!(upper.has_marks() && matches!(upper.unmarked(), Datum::Text(text) if &**text == "SECRET"));
    called(&mut world, &std_function("print"), vec![secret()], vec![], vec![]).expect("it prints");
    assert_eq!(world.printed, ["(sensitive)"]);
    let Err(Stop::Error(error)) = called(
        &mut world,
        &std_function("json_loads"),
        vec![secret()],
        vec![],
        vec![],
    ) else {
        panic!("it is no JSON");
    };
    assert!(!error.message.contains("secret"), "{}", error.message);
}

#[test]
fn a_call_that_needs_a_value_is_made_again() {
    let mut world = World::new();
    world
        .attributes
        .insert((0, "name".to_owned()), crate::context::Read::Unset(UnsetCell(5)));
    let arguments = vec![Datum::Instance(InstanceId(0)), text("name")];
    let result = called(&mut world, &std_function("attr"), arguments, vec![], vec![]);
    assert!(matches!(result, Err(Stop::Unset(UnsetCell(5)))));
}

#[test]
fn deprecated_functions_warn() {
    let mut world = World::new();
    called(
        &mut world,
        &std_function("invert"),
        vec![Datum::Bool(true)],
        vec![],
        vec![],
    )
    .expect("a bool");
    let warning = &world.warnings[0];
    assert_eq!(
        (warning.code.code, warning.class),
        ("W0602", "PluginDeprecationWarning")
    );
    assert_eq!(warning.message, "function `std::invert` is deprecated");
}

fn library(name: &str, signatures: &[&str], run: fn(&[Value]) -> Result<Value, CallError>) -> Function {
    let spec = FunctionSpec::made(
        "some",
        name,
        signatures.iter().copied(),
        PureFunction::made(move |arguments, _| run(arguments)),
    )
    .expect("the signature is right");
    Function {
        name: format!("some::{name}").into(),
        implementation: FunctionImplementation::Library(spec.into()),
    }
}

#[test]
fn functions_of_the_library_take_and_give_data() {
    let mut world = World::new();
    let join = library("join", &["func(first str, second str) str"], |arguments| {
        let text = |index: usize| arguments[index].as_str().map(|text| text.to_lossy().into_owned());
        Ok(Value::str(
            text(0).unwrap_or_default() + &text(1).unwrap_or_default(),
        ))
    });
    let by_name = called(
        &mut world,
        &join,
        vec![text("a")],
        vec![("second", text("b"))],
        vec![],
    );
    assert!(matches!(by_name, Ok(Datum::Text(text)) if &*text == "ab"));
    let Err(Stop::Error(error)) = called(&mut world, &join, vec![text("a")], vec![], vec![]) else {
        panic!("an argument is missing");
    };
    assert_eq!(
        (error.code.code, &*error.message),
        (
            "E0620",
            "some::join() missing 1 required positional argument: 'second'"
        )
    );
    let unknown = called(&mut world, &join, vec![text("a"), UNKNOWN], vec![], vec![]);
    assert!(matches!(unknown, Ok(Datum::Unknown(_))));
    let list = Datum::List([Datum::Int(1)].into());
    let Err(Stop::Error(error)) = called(&mut world, &join, vec![text("a"), list], vec![], vec![]) else {
        panic!("a list is no text");
    };
    assert_eq!((error.code.code, error.class), ("E0621", "PluginTypeException"));
}

#[test]
fn what_a_function_of_the_library_refuses_is_external() {
    let mut world = World::new();
    let fail = library("fail", &["func(x int) int"], |_| {
        Err(CallError::catchable("no such thing"))
    });
    let Err(Stop::Error(error)) = called(&mut world, &fail, vec![Datum::Int(1)], vec![], vec![]) else {
        panic!("it fails");
    };
    assert_eq!((error.code.code, error.class), ("E0622", "ExternalException"));
    assert_eq!(error.message, "function `some::fail` failed: no such thing");
    let map = library("map", &["func(f func(int) int) int"], |_| Ok(Value::Int(1)));
    assert!(called(&mut world, &map, vec![Datum::Int(1)], vec![], vec![]).is_err());
}

#[test]
fn data_survive_the_way_to_the_library_and_back() {
    let mut world = World::new();
    let data = [
        Datum::Null,
        Datum::Bool(true),
        Datum::Int(-3),
        Datum::Float(0.5),
        text("é"),
        Datum::Instance(InstanceId(1)),
        Datum::List([Datum::Int(1), Datum::Int(2)].into()),
        Datum::List([text("a"), dict("k", Datum::Null)].into()),
        dict("k", Datum::List([].into())),
        text("s").with_marks(&Marks::sensitive()),
    ];
    for datum in data {
        let value = to_value(&datum).expect("the library knows it");
        let back = to_datum(&value, world.unknowns()).expect("the language knows it");
        assert!(crate::equality::is_same(&datum, &back), "{datum:?} {back:?}");
        assert_eq!(datum.has_marks(), back.has_marks());
    }
    let mixed = Datum::List([Datum::Int(1), dict("k", Datum::Null)].into());
    assert!(matches!(to_value(&mixed), Ok(Value::Tuple(_))));
    assert!(matches!(to_value(&dict("k", Datum::Int(1))), Ok(Value::Map(_))));
    assert!(matches!(
        to_value(&UNKNOWN).map(|value| value.ty()),
        Ok(Type::Dynamic)
    ));
}

#[test]
fn functions_that_read_the_model_need_a_context() {
    assert!(!needs_context(&std_function("upper").implementation));
    assert!(needs_context(&std_function("getattr").implementation));
}

#[test]
fn functions_of_the_real_library_answer_as_they_do_elsewhere() {
    let mut world = World::new();
    let registry = setpoint_functions::registry();
    let text = |text: &str| Value::str(text);
    for (module, name, keyword, arguments) in [
        ("strings", "contains", "substr", [text("hello"), text("ell")]),
        ("strings", "has_prefix", "prefix", [text("hello"), text("lo")]),
        (
            "strings",
            "join_nonempty",
            "sep",
            [Value::strings(["a", "", "b"]), text("-")],
        ),
    ] {
        let function = registry
            .get(module, name)
            .expect("there is such a function")
            .clone();
        let elsewhere = function.call(&arguments).expect("it answers");
        let function = Function {
            name: format!("{module}::{name}").into(),
            implementation: FunctionImplementation::Library(function),
        };
        let data: Vec<Datum> = arguments
            .iter()
            .map(|argument| to_datum(argument, world.unknowns()).expect("the language knows it"))
            .collect();
        let by_position = called(&mut world, &function, data.clone(), vec![], vec![]);
        let by_name = called(
            &mut world,
            &function,
            data[..1].to_vec(),
            vec![(keyword, data[1].clone())],
            vec![],
        );
        for result in [by_position, by_name] {
            let result = to_value(&result.expect("it answers")).expect("the library knows it");
            assert_eq!(result, elsewhere, "{module}::{name}");
        }
    }
}
