//! Pure functions: values, and the class of each failure.

use setpoint_value::{CallError, Implementation, InferArguments, Map, Type, Value};

use crate::machine::{pure, pure_as, spec, text};

/// Whether a failure is caught by `<|>`.
fn catchable(result: Result<Value, CallError>) -> bool {
    result.expect_err("a failure").is_catchable()
}

fn ints(numbers: &[i64]) -> Value {
    Value::list(Type::Int, numbers.iter().copied().map(Value::Int))
}

#[test]
fn strings_are_bytes_but_for_letters() {
    assert_eq!(pure("len", &[text("é")]), Ok(Value::Int(2)));
    assert_eq!(
        pure("strings.substr", &[text("é"), Value::Int(0), Value::Int(1)]),
        Ok(Value::str(&b"\xc3"[..]))
    );
    assert_eq!(
        pure("strings.split", &[text("é"), text("")]),
        Ok(Value::strings(["é"]))
    );
    assert_eq!(
        pure("strings.split", &[text(""), text(",")]),
        Ok(Value::strings([""]))
    );
    assert_eq!(
        pure("strings.split", &[text(""), text("")]),
        Ok(Value::list(Type::Str, []))
    );
    assert!(catchable(pure(
        "strings.substr",
        &[text("a"), Value::Int(1), Value::Int(0)]
    )));
    assert!(catchable(pure(
        "strings.substr",
        &[text("a"), Value::Int(-1), Value::Int(1)]
    )));
    assert!(!catchable(pure(
        "strings.left_pad",
        &[text("a"), text(""), Value::Int(3)]
    )));
    assert_eq!(
        pure("strings.left_pad", &[text("abc"), text(""), Value::Int(3)]),
        Ok(text("abc"))
    );
}

#[test]
fn conversions_refuse_what_has_no_value() {
    for (name, argument) in [
        ("convert.parse_bool", text("yes")),
        ("convert.str_to_int", text("1.0")),
        ("convert.str_to_int", text("9223372036854775808")),
        ("convert.str_to_float", text("1e999")),
        ("convert.to_int", Value::float(f64::NAN)),
        ("convert.to_int", Value::float(9.3e18)),
        ("math.sqrt", Value::float(-1.0)),
    ] {
        assert!(
            catchable(pure(name, std::slice::from_ref(&argument))),
            "{name} {argument}"
        );
    }
    assert_eq!(
        pure("convert.to_int", &[Value::float(-9_223_372_036_854_775_808.0)]),
        Ok(Value::Int(i64::MIN))
    );
    assert_eq!(pure_as("math.fortytwo", &[], "int"), Ok(Value::Int(42)));
    assert_eq!(pure_as("math.fortytwo", &[], "float"), Ok(Value::float(42.0)));
}

#[test]
fn remainders_are_exact_and_a_divisor_of_zero_is_caught() {
    let big = 9_007_199_254_740_993;
    assert_eq!(
        pure("math.mod", &[Value::Int(big), Value::Int(10)]),
        Ok(Value::Int(3))
    );
    assert_eq!(
        pure("math.mod", &[Value::Int(i64::MIN), Value::Int(-1)]),
        Ok(Value::Int(0))
    );
    assert!(catchable(pure("math.mod", &[Value::Int(1), Value::Int(0)])));
    assert!(catchable(pure(
        "math.mod",
        &[Value::float(1.0), Value::float(0.0)]
    )));
}

#[test]
fn a_format_prints_each_verb_and_keeps_what_is_not_ascii() {
    let printf = |format: &str, values: &[Value]| {
        let arguments: Vec<Value> = std::iter::once(text(format))
            .chain(values.iter().cloned())
            .collect();
        pure("fmt.printf", &arguments)
    };
    assert_eq!(printf("é %s", &[text("é")]), Ok(text("é é")));
    assert_eq!(
        printf(
            "%t %s %q %d %f %v %T %%",
            &[
                Value::Bool(true),
                text("a"),
                text("b\""),
                Value::Int(-1),
                Value::float(42.0),
                Value::strings(["x"]),
                Value::strings(["x"]),
            ]
        ),
        Ok(text(r#"true a "b\"" -1 42 ["x"] []str %"#))
    );
    assert_eq!(printf("100%", &[]), Ok(text("100")));
    assert!(!catchable(printf("%d", &[text("a")])));
    assert!(!catchable(printf("%d %d", &[Value::Int(1)])));
    assert!(!catchable(printf("%z", &[Value::Int(1)])));
    assert_eq!(printf("a", &[Value::Int(1)]), Ok(text("a")));
}

#[test]
fn a_known_format_is_the_signature() {
    let infer = spec("fmt.printf").infer.expect("a hook");
    let ask = |format: &str, types: &[Option<Type>]| {
        let mut all = vec![Some(Type::Str)];
        all.extend(types.iter().cloned());
        let mut values = vec![None; all.len()];
        values[0] = Some(text(format));
        infer(&InferArguments {
            types: &all,
            values: &values,
        })
        .map(|inferred| inferred.signature.to_string())
        .map_err(|error| error.message)
    };
    assert_eq!(
        ask("%s %d %v", &[None, None, None]).as_deref(),
        Ok("func(format str, a1 str, a2 int, a3 ?1) str")
    );
    assert_eq!(
        ask("%s %d %d", &[None, None]),
        Err(
            "the format has 3 verbs, but 2 values follow; each value needs one verb, like `%s` or `%d`"
                .to_owned()
        )
    );
    assert_eq!(
        ask("%d", &[Some(Type::Str)]),
        Err("`%d` in the format takes int, this is str; write `%s`".to_owned())
    );
    assert!(ask("a%y", &[None]).is_err_and(|message| message.starts_with("`%y` is not a verb")));
    let nothing = InferArguments {
        types: &[],
        values: &[],
    };
    assert!(infer(&nothing).is_err());
}

#[test]
fn what_is_certain_of_a_partly_unknown_text_is_kept() {
    let result = pure(
        "fmt.printf",
        &[text("a %d-%s"), Value::Int(1), Value::unknown(Type::Str)],
    );
    let Ok(Value::Unknown(unknown)) = result else {
        panic!("unknown: {result:?}");
    };
    assert_eq!(unknown.ty, Type::Str);
    assert_eq!(unknown.refinement.prefix, Some("a 1-".into()));
}

#[test]
fn json_becomes_values_of_the_type_that_is_wanted() {
    let strict = |data: &str, ty: &str| pure_as("encoding.decode_json", &[text(data)], ty);
    let flexible = |data: &str, ty: &str| pure_as("encoding.decode_json_flexible", &[text(data)], ty);
    assert_eq!(strict(" [1, -2] ", "[]int"), Ok(ints(&[1, -2])));
    assert_eq!(strict("1", "float"), Ok(Value::float(1.0)));
    let map = Map::new(Type::Str, Type::Bool, [(text("a"), Value::Bool(true))]);
    assert_eq!(strict(r#"{"a": true}"#, "map{str: bool}"), Ok(Value::Map(map)));
    let ty = Type::parse("struct{a int; b str}").expect("a type");
    let value = Value::structure(ty.clone(), vec![Value::Int(1), text("x")]);
    assert_eq!(strict(r#"{"b": "x", "a": 1}"#, "struct{a int; b str}"), Ok(value));
    let value = Value::structure(ty, vec![Value::Int(0), text("x")]);
    assert_eq!(
        flexible(r#"{"b": "x", "c": 1}"#, "struct{a int; b str}"),
        Ok(value)
    );
    for (data, ty) in [
        ("1.0", "int"),
        ("1e3", "int"),
        ("null", "str"),
        ("[1, 2] x", "[]int"),
        (r#"{"a": 1}"#, "struct{a int; b str}"),
        (r#"{"a": 1, "b": "", "c": 1}"#, "struct{a int; b str}"),
        (r#"{"a": 1}"#, "map{int: int}"),
        ("{", "str"),
    ] {
        assert!(catchable(strict(data, ty)), "{data} as {ty}");
    }
    assert!(catchable(flexible("null", "str")));
    let Err(CallError::Failed { message, .. }) = strict(r#"{"a": [1, "x"]}"#, "map{str: []int}") else {
        panic!("a failure");
    };
    assert_eq!(
        message,
        r#"could not decode JSON at ["a"][1]: a string is not int"#
    );
}

#[test]
fn the_type_argument_of_json_decides_the_signature() {
    let infer = spec("encoding.decode_json").infer.expect("a hook");
    let ask = |ty: Option<Value>| {
        infer(&InferArguments {
            types: &[None, None],
            values: &[None, ty],
        })
        .map(|inferred| inferred.signature.to_string())
    };
    assert_eq!(
        ask(Some(text("map{str: int}"))).as_deref(),
        Ok("func(data str, type str) map{str: int}")
    );
    assert!(ask(Some(text("nonsense"))).is_err());
    assert!(ask(None).is_err());
    let open = infer(&InferArguments {
        types: &[None],
        values: &[None],
    });
    assert_eq!(
        open.map(|i| i.signature.to_string()).as_deref(),
        Ok("func(data str) ?1")
    );
}

#[test]
fn addresses_are_computed_in_both_families() {
    let with = |name: &str, argument: &str| pure(&format!("net.{name}"), &[text(argument)]);
    for (name, argument, expected) in [
        ("cidr_to_ip", " 10.0.0.5/24 ", "10.0.0.5"),
        ("cidr_to_network", "10.0.0.5/24", "10.0.0.0/24"),
        ("cidr_to_network", "2001:db8::5/64", "2001:db8::/64"),
        ("cidr_to_mask", "10.0.0.0/30", "255.255.255.252"),
        ("cidr_to_mask", "2001:db8::/32", "ffff:ffff::"),
        ("cidr_to_prefix", "10.0.0.0/8", "8"),
        ("cidr_to_first", "10.0.0.5/24", "10.0.0.6"),
        ("cidr_to_first", "2001:db8::/64", "2001:db8::1"),
        ("cidr_to_last", "10.0.0.0/30", "10.0.0.3"),
        ("cidr_to_last", "2001:db8::/126", "2001:db8::3"),
        ("macfmt", "00-11-22-AA-BB-CC", "00:11:22:aa:bb:cc"),
        ("oldmacfmt", "00:11:22:AA:BB:CC", "00-11-22-aa-bb-cc"),
    ] {
        assert_eq!(with(name, argument), Ok(text(expected)), "{name} {argument}");
    }
    for (name, argument) in [
        ("cidr_to_first", "10.0.0.0/32"),
        ("cidr_to_first", "10.0.0.255/24"),
        ("cidr_to_last", "10.0.0.0/32"),
        ("cidr_to_ip", "10.0.0.5"),
        ("cidr_to_ip", "10.0.0.5/33"),
        ("cidr_to_ip", "10.0.0.05/24"),
        ("cidr_to_first", " 10.0.0.5/24"),
        ("macfmt", "00:11:22:AA:BB"),
        ("macfmt", "00:11:22:AA:BB:CG"),
        ("split_hostport", "host"),
        ("url_parser", "/no/scheme"),
    ] {
        assert!(catchable(with(name, argument)), "{name} {argument}");
    }
    assert!(catchable(pure(
        "net.ip_in_cidr",
        &[text("x"), text("10.0.0.0/8")]
    )));
    assert_eq!(
        pure("net.ip_in_cidr", &[text("11.0.0.1"), text("10.0.0.0/8")]),
        Ok(Value::Bool(false))
    );
}

#[test]
fn distributions_are_taken_apart() {
    let ask = |uid: &str| {
        let value = pure("os.parse_distro_uid", &[text(uid)]).expect("a struct");
        let parts = value.as_struct().expect("a struct").fields().to_vec();
        parts
            .iter()
            .map(|p| p.as_str().expect("text").to_lossy().into_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(ask("fedora39-x86_64"), ["fedora", "39", "x86_64"]);
    for other in ["fedora-x86_64", "39-x86_64", "fedora39", "fedora39-", ""] {
        assert_eq!(ask(other), ["", "", ""], "{other}");
    }
}

#[test]
fn ranges_end_even_at_the_ends_of_int() {
    let range = |numbers: &[i64]| {
        let arguments: Vec<Value> = numbers.iter().copied().map(Value::Int).collect();
        pure("iter.range", &arguments)
    };
    assert_eq!(range(&[0]), Ok(ints(&[])));
    assert_eq!(range(&[5, 1]), Ok(ints(&[])));
    assert_eq!(range(&[1, 6, 2]), Ok(ints(&[1, 3, 5])));
    assert_eq!(range(&[3, 0, -1]), Ok(ints(&[3, 2, 1])));
    assert_eq!(range(&[i64::MAX - 2, i64::MAX, 3]), Ok(ints(&[i64::MAX - 2])));
    assert_eq!(
        range(&[i64::MIN + 1, i64::MIN, i64::MIN]),
        Ok(ints(&[i64::MIN + 1]))
    );
    assert!(!catchable(range(&[0, 1, 0])));
    assert!(!catchable(range(&[i64::MIN, i64::MAX, 1])));
    assert!(range(&[1_000_000]).is_ok());
}

#[test]
fn maps_give_their_keys_in_order() {
    let map = Value::Map(Map::new(
        Type::Str,
        Type::Int,
        ["c", "a", "b"].map(|key| (text(key), Value::Int(i64::from(key.as_bytes()[0])))),
    ));
    assert_eq!(
        pure("map.keys", std::slice::from_ref(&map)),
        Ok(Value::strings(["a", "b", "c"]))
    );
    assert_eq!(
        pure("map.values", std::slice::from_ref(&map)),
        Ok(ints(&[97, 98, 99]))
    );
    assert_eq!(pure("map.lookup", &[map.clone(), text("b")]), Ok(Value::Int(98)));
    assert!(catchable(pure("map.lookup", &[map, text("z")])));
    assert!(catchable(pure("list.lookup", &[ints(&[1]), Value::Int(1)])));
}

#[test]
fn panics_are_fatal_and_secrets_stay_secret() {
    assert!(!catchable(pure("panic", &[Value::Bool(true)])));
    assert!(!catchable(pure("panic", &[text("no")])));
    assert!(!catchable(pure("panic_debug", &[Value::Bool(true), text("no")])));
    let secret = pure("sensitive", &[text("canary")]).expect("a value");
    assert!(secret.is_sensitive());
    let upper = pure("strings.to_upper", std::slice::from_ref(&secret)).expect("a value");
    assert!(upper.is_sensitive());
    assert_eq!(pure("nonsensitive", &[upper]), Ok(text("CANARY")));
    let error = pure("convert.str_to_int", &[secret])
        .expect_err("no number")
        .to_string();
    assert!(!error.contains("canary"), "{error}");
}

#[test]
fn go_functions_fail_catchably_where_the_input_is_data() {
    for (name, arguments) in [
        ("golang/strconv.atoi", vec![text("x")]),
        (
            "golang/strconv.parse_int",
            vec![text("1"), Value::Int(99), Value::Int(64)],
        ),
        ("golang/strconv.unquote", vec![text("x")]),
        ("golang/path.match", vec![text("["), text("a")]),
        ("golang/path/filepath.rel", vec![text("a"), text("/b")]),
        ("encoding.base64_decode", vec![text("a")]),
        ("deploy.bootstrap_packages", vec![text("x")]),
    ] {
        assert!(catchable(pure(name, &arguments)), "{name}");
    }
    assert!(!catchable(pure(
        "golang/strconv.format_int",
        &[Value::Int(1), Value::Int(1)]
    )));
    assert!(!catchable(pure(
        "golang/strings.repeat",
        &[text("a"), Value::Int(-1)]
    )));
    assert!(catchable(pure(
        "golang/strings.repeat",
        &[text("a"), Value::Int(i64::MAX)]
    )));
    assert!(!catchable(pure("regexp.match", &[text("("), text("a")])));
}

#[test]
fn a_bad_pattern_is_reported_where_it_is_written() {
    let infer = spec("regexp.match").infer.expect("a hook");
    let ask = |pattern: &str| {
        infer(&InferArguments {
            types: &[Some(Type::Str), Some(Type::Str)],
            values: &[Some(text(pattern)), None],
        })
    };
    assert!(ask("a+").is_ok());
    assert_eq!(ask("(").map(|_| ()).map_err(|e| e.index), Err(Some(0)));
}

#[test]
fn pure_functions_are_pure_by_their_description() {
    for name in [
        "golang/os.getpid",
        "golang/math/rand.int",
        "golang/runtime.num_cpu",
        "datetime.format",
    ] {
        assert!(
            matches!(spec(name).implementation, Implementation::Source(_)),
            "{name}"
        );
    }
}
