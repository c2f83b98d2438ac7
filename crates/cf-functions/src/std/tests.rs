//! Each function with a normal and an edge case.

use std::sync::Arc;

use setpoint_cf_names::datum::{Datum, InstanceId, UnknownId};
use setpoint_cf_names::hir::{Function, FunctionImplementation};

use crate::calls::call;
use crate::context::{Arguments, Read, Site, Stop};
use crate::testing::{World, nowhere};
use crate::text::write_representation;

/// What a call answers, as text: the representation of its result, `unknown`, `unset`, or its error.
fn answer(world: &mut World, name: &str, positional: Vec<Datum>) -> String {
    answer_with(world, name, positional, &[])
}

fn answer_with(world: &mut World, name: &str, positional: Vec<Datum>, keywords: &[(&str, Datum)]) -> String {
    let number = super::number("std", name).expect("there is such a function");
    let function = Function {
        name: format!("std::{name}").into(),
        implementation: FunctionImplementation::Std(number),
    };
    let arguments = Arguments {
        positional,
        keywords: keywords
            .iter()
            .map(|(name, value)| (Arc::from(*name), value.clone()))
            .collect(),
        dicts: Vec::new(),
    };
    let site = Site {
        span: nowhere(),
        name: nowhere(),
        written: None,
    };
    match call(&function, arguments, site, world) {
        Ok(Datum::Unknown(_)) => "unknown".to_owned(),
        Ok(Datum::Deferred(deferred)) => format!("{:?}", deferred.source),
        Ok(result) => {
            let mut text = String::new();
            write_representation(&result, world.naming(), &mut text).expect("the result is known");
            text
        }
        Err(Stop::Unset(cell)) => format!("unset {}", cell.0),
        Err(Stop::Error(error)) => {
            let prefix = format!("function `std::{name}` failed: ");
            format!(
                "error {}",
                error.message.strip_prefix(&prefix).unwrap_or(&error.message)
            )
        }
    }
}

fn s(text: &str) -> Datum {
    Datum::text(text)
}

fn i(int: i64) -> Datum {
    Datum::Int(int)
}

fn l(items: impl IntoIterator<Item = Datum>) -> Datum {
    Datum::List(items.into_iter().collect())
}

fn d(entries: &[(&str, Datum)]) -> Datum {
    let entries = entries
        .iter()
        .map(|(key, value)| (Arc::from(*key), value.clone()));
    Datum::Dict(Arc::new(entries.collect()))
}

const UNKNOWN: Datum = Datum::Unknown(UnknownId(9));

fn instance(number: u32) -> Datum {
    Datum::Instance(InstanceId(number))
}

#[test]
fn texts() {
    let mut world = World::new();
    for (name, arguments, expected) in [
        ("split", vec![s("a,b,,c"), s(",")], "['a', 'b', '', 'c']"),
        ("split", vec![s("a"), s("")], "error empty separator"),
        ("replace", vec![s("abcabc"), s("b"), s("-")], "'a-ca-c'"),
        ("replace", vec![s("ab"), s(""), s("-")], "'-a-b-'"),
        ("capitalize", vec![s("hELLO wORLD")], "'Hello world'"),
        ("capitalize", vec![s("")], "''"),
        ("upper", vec![s("straße")], "'STRASSE'"),
        ("lower", vec![s("ÄB")], "'äb'"),
        ("limit", vec![s("héllo"), i(2)], "'hé'"),
        ("limit", vec![s("hello"), i(-2)], "'hel'"),
        ("limit", vec![s("hello"), i(i64::MIN)], "''"),
        ("length", vec![s("héllo")], "5"),
        ("length", vec![s("")], "0"),
        (
            "unique_file",
            vec![s("a-"), s("seed"), s(".txt")],
            "'a-fe4c0f30aa359c41d9f9a5f69c8c4192.txt'",
        ),
        ("is_base64_encoded", vec![s("YWI=")], "True"),
        ("is_base64_encoded", vec![s("YWI")], "False"),
        ("hostname", vec![s("web1.example.org")], "'web1'"),
        ("hostname", vec![s("web1")], "'web1'"),
    ] {
        assert_eq!(answer(&mut world, name, arguments), expected, "{name}");
    }
}

#[test]
fn format_strings() {
    let mut world = World::new().with_attribute(0, "name", s("web"));
    let keywords = [
        ("n", Datum::Float(2.5)),
        ("y", d(&[("a", l([i(7)]))])),
        ("h", instance(0)),
        ("w", i(6)),
    ];
    for (template, expected) in [
        ("{} {} {}", "'1 b None'"),
        ("{2}{0}", "'None1'"),
        ("{n:.3f} {y[a][0]} {h.name!r}", "\"2.500 7 'web'\""),
        ("{{}} {n:>{w}}|", "'{}    2.5|'"),
        ("{0:x^{w}}", "'xx1xxx'"),
        ("{!s:>3}", "'  1'"),
        (
            "{3}",
            "error Replacement index 3 out of range for positional args tuple",
        ),
        ("{m}", "error there is no argument `m`"),
        (
            "{0}{}",
            "error cannot switch from manual field specification to automatic field numbering",
        ),
        (
            "{}{0}",
            "error cannot switch from automatic field numbering to manual field specification",
        ),
        ("}", "error Single '}' encountered in format string"),
        ("{", "error Single '{' encountered in format string"),
        ("{n", "error expected '}' before end of string"),
        ("{y[b]}", "error there is no element `b` in `{'a': [7]}`"),
        ("{1:d}", "error Unknown format code 'd' for object of type 'str'"),
        ("{0!x}", "error Unknown conversion specifier 'x'"),
        ("{0:{1:{2}}}", "error Max string recursion exceeded"),
    ] {
        let arguments = vec![s(template), i(1), s("b"), Datum::Null];
        assert_eq!(
            answer_with(&mut world, "format", arguments, &keywords),
            expected,
            "{template}"
        );
    }
    assert_eq!(
        answer(&mut world, "format", vec![s("{[0]}"), l([UNKNOWN])]),
        "unknown"
    );
}

#[test]
fn lists_and_dicts() {
    let mut world = World::new()
        .with_attribute(0, "name", s("b"))
        .with_attribute(1, "name", s("a"))
        .with_attribute(0, "port", i(2))
        .with_attribute(1, "port", Datum::Float(2.0));
    let hosts = || l([instance(0), instance(1)]);
    for (name, arguments, expected) in [
        ("count", vec![l([i(1), UNKNOWN])], "2"),
        ("count", vec![l([])], "0"),
        ("len", vec![l([i(1), i(1)])], "2"),
        ("len", vec![l([i(1), UNKNOWN])], "unknown"),
        ("at", vec![l([i(1), i(2)]), i(-1)], "2"),
        (
            "at",
            vec![l([i(1)]), i(1)],
            "error index 1 is out of range: the list has 1 elements",
        ),
        (
            "item",
            vec![l([l([i(1), i(2)]), l([i(3), i(4)])]), i(1)],
            "[2, 4]",
        ),
        ("item", vec![l([i(1)]), i(0)], "error `1` is not a list"),
        ("select", vec![hosts(), s("name")], "['b', 'a']"),
        (
            "select",
            vec![l([i(1)]), s("name")],
            "error `1` is not an instance",
        ),
        ("filter", vec![hosts(), instance(0)], "[__config__::Host 1]"),
        ("filter", vec![l([]), instance(0)], "[]"),
        (
            "key_sort",
            vec![hosts(), s("name")],
            "[__config__::Host 1, __config__::Host 0]",
        ),
        (
            "key_sort",
            vec![hosts(), s("port")],
            "[__config__::Host 0, __config__::Host 1]",
        ),
        (
            "key_sort",
            vec![hosts(), l([s("port"), s("name")])],
            "[__config__::Host 1, __config__::Host 0]",
        ),
        (
            "key_sort",
            vec![hosts(), i(1)],
            "error `1` is no name of an attribute",
        ),
        ("unique", vec![l([i(1), i(2), s("1")])], "True"),
        ("unique", vec![l([i(1), Datum::Float(1.0)])], "False"),
        ("unique", vec![l([l([Datum::Bool(true)]), l([i(1)])])], "False"),
        ("flatten", vec![l([l([i(1)]), l([l([i(2)])])])], "[1, [2]]"),
        ("flatten", vec![l([i(1)])], "error `1` is not a list"),
        ("sequence", vec![i(3)], "[0, 1, 2]"),
        ("sequence", vec![i(2), i(5)], "[5, 6]"),
        ("sequence", vec![i(-1)], "[]"),
        (
            "sequence",
            vec![i(i64::MAX)],
            "error the list would have more than 16777216 elements",
        ),
        ("dict_keys", vec![d(&[("b", i(1)), ("a", i(2))])], "['b', 'a']"),
        ("dict_keys", vec![d(&[])], "[]"),
        ("dict_get", vec![d(&[("b", s("x"))]), s("b")], "'x'"),
        ("dict_get", vec![d(&[]), s("b")], "error there is no key `b`"),
        ("contains", vec![d(&[("b", UNKNOWN)]), s("b")], "True"),
        ("contains", vec![d(&[]), s("b")], "False"),
    ] {
        assert_eq!(answer(&mut world, name, arguments), expected, "{name}");
    }
}

#[test]
fn values_and_instances() {
    let mut world = World::new()
        .with_attribute(0, "name", s("web"))
        .with_attribute(0, "later", UNKNOWN)
        .with_attribute(2, "name", s("fedora"))
        .with_attribute(2, "family", instance(3))
        .with_attribute(3, "name", s("linux"));
    world.attributes.insert((3, "family".to_owned()), Read::Absent);
    world.attributes.insert((0, "none".to_owned()), Read::Absent);
    for (name, arguments, expected) in [
        ("is_unknown", vec![UNKNOWN], "True"),
        ("is_unknown", vec![l([UNKNOWN])], "False"),
        ("is_instance", vec![instance(4), s("std::Resource")], "True"),
        ("is_instance", vec![instance(0), s("std::Resource")], "False"),
        ("is_instance", vec![i(1), s("std::Entity")], "False"),
        (
            "is_instance",
            vec![i(1), s("std::Nothing")],
            "error could not find type `std::Nothing`",
        ),
        ("isset", vec![i(0)], "True"),
        ("isset", vec![Datum::Null], "False"),
        ("getattr", vec![instance(0), s("name")], "'web'"),
        ("getattr", vec![instance(0), s("nme"), i(5)], "5"),
        ("getattr", vec![instance(0), s("later"), i(5)], "5"),
        (
            "getattr",
            vec![instance(0), s("later"), i(5), Datum::Bool(false)],
            "unknown",
        ),
        (
            "getattr",
            vec![instance(0), s("none")],
            "error optional variable accessed that has no value: `none` of `__config__::Host`",
        ),
        ("attr", vec![instance(0), s("name")], "'web'"),
        ("attr", vec![instance(0), s("later")], "unknown"),
        ("objid", vec![instance(0)], "'@0;'"),
        ("objid", vec![i(0)], "'i0;'"),
        (
            "type",
            vec![i(0)],
            "error there is no value whose type it answers",
        ),
        ("assert", vec![Datum::Bool(true)], "null"),
        (
            "assert",
            vec![Datum::Bool(false), s("no")],
            "error assertion failed: no",
        ),
        ("equals", vec![i(1), Datum::Float(1.0)], "null"),
        (
            "equals",
            vec![i(1), i(2), s("so")],
            "error `1` is not equal to `2`: so",
        ),
        ("inlineif", vec![Datum::Bool(true), i(1), i(2)], "1"),
        ("inlineif", vec![Datum::Bool(false), i(1), i(2)], "2"),
        ("invert", vec![Datum::Bool(true)], "False"),
        ("invert", vec![Datum::Bool(false)], "True"),
        ("familyof", vec![instance(2), s("linux")], "True"),
        ("familyof", vec![instance(3), s("linux")], "True"),
        ("familyof", vec![instance(2), s("windows")], "False"),
        (
            "json_loads",
            vec![s("{\"a\": [1, 2.0, [null, true]]}")],
            "{'a': [1, 2.0, [null, True]]}",
        ),
        (
            "json_loads",
            vec![s("18446744073709551615")],
            "error the number 18446744073709551615 does not fit 64 bits",
        ),
        (
            "json_loads",
            vec![s(
                "{\"1\\\"99999999999999999999\": [1e20, -9223372036854775808, 2.5], \"b\": -99999999999999999999}",
            )],
            "error the number -99999999999999999999 does not fit 64 bits",
        ),
        (
            "json_loads",
            vec![s("[\"99999999999999999999\\\\\", 9223372036854775807, 1e20]")],
            "['99999999999999999999\\\\', 9223372036854775807, 1e+20]",
        ),
        (
            "json_dumps",
            vec![d(&[("a", l([i(1), Datum::Null, s("é\n\"")]))])],
            "'{\"a\": [1, null, \"\\\\u00e9\\\\n\\\\\"\"]}'",
        ),
        ("json_dumps", vec![Datum::Float(1.0)], "'1.0'"),
        (
            "json_dumps",
            vec![instance(0)],
            "error `__config__::Host 0` has no form in JSON",
        ),
        ("json_dumps", vec![l([UNKNOWN])], "unknown"),
        (
            "validate_type",
            vec![s("pydantic.conint"), i(3), d(&[("ge", i(3))])],
            "True",
        ),
        (
            "validate_type",
            vec![s("ipaddress.IPv4Address"), s("10.0.0")],
            "False",
        ),
    ] {
        assert_eq!(answer(&mut world, name, arguments), expected, "{name}");
    }
    assert!(answer(&mut world, "json_loads", vec![s("{")]).starts_with("error this is no JSON: "));
}

#[test]
fn printing() {
    let mut world = World::new();
    for message in [s("a"), i(1), Datum::Null, instance(0), l([s("a")])] {
        assert_eq!(answer(&mut world, "print", vec![message]), "null");
    }
    assert_eq!(answer(&mut world, "print", vec![l([UNKNOWN])]), "unknown");
    assert_eq!(world.printed, ["a", "1", "None", "@__config__::Host 0", "@['a']"]);
}

#[test]
fn networks() {
    let mut world = World::new();
    for (name, arguments, expected) in [
        ("prefixlength_to_netmask", vec![i(24)], "'255.255.255.0'"),
        ("prefixlength_to_netmask", vec![i(0)], "'0.0.0.0'"),
        (
            "prefixlength_to_netmask",
            vec![i(33)],
            "error a prefix has from 0 to 32 bits, not 33",
        ),
        ("prefixlen", vec![s("10.0.0.1/255.255.0.0")], "16"),
        ("prefixlen", vec![s("::1")], "128"),
        ("network_address", vec![s("10.1.2.3/8")], "'10.0.0.0'"),
        ("network_address", vec![s("2001:db8::5/32")], "'2001:db8::'"),
        ("netmask", vec![s("10.1.2.3/9")], "'255.128.0.0'"),
        ("netmask", vec![s("::1/16")], "'ffff::'"),
        ("ip_address_from_interface", vec![s("10.1.2.3/8")], "'10.1.2.3'"),
        ("ip_address_from_interface", vec![s("::1")], "'::1'"),
        ("ipindex", vec![s("10.0.0.0/24"), i(5)], "'10.0.0.5'"),
        (
            "ipindex",
            vec![s("10.0.0.0/24"), i(-1), Datum::Bool(true)],
            "'10.0.0.255/24'",
        ),
        (
            "ipindex",
            vec![s("10.0.0.0/24"), i(256)],
            "error address 256 is out of range for network `10.0.0.0/24`",
        ),
        (
            "ipindex",
            vec![s("10.0.0.0/24"), i(-257)],
            "error address -257 is out of range for network `10.0.0.0/24`",
        ),
        (
            "ipindex",
            vec![s("::/0"), i(i64::MIN)],
            "'ffff:ffff:ffff:ffff:8000::'",
        ),
        ("add_to_ip", vec![s("10.0.0.255"), i(1)], "'10.0.1.0'"),
        ("add_to_ip", vec![s("::1"), i(-1)], "'::'"),
        (
            "add_to_ip",
            vec![s("255.255.255.255"), i(1)],
            "error there is no address 1 behind `255.255.255.255`",
        ),
        (
            "add_to_ip",
            vec![s("0.0.0.0"), i(-1)],
            "error there is no address -1 behind `0.0.0.0`",
        ),
    ] {
        assert_eq!(answer(&mut world, name, arguments), expected, "{name}");
    }
}

#[test]
fn files() {
    let mut world = World::new()
        .with_file("/project/files/motd", "hello\n")
        .with_file("/project/libs/web/files/b.conf", "b")
        .with_file("/project/libs/web/files/a.conf", "a")
        .with_file("/project/libs/web/files/more/c.conf", "c");
    for (name, arguments, expected) in [
        ("source", vec![s("/motd")], "'hello\\n'"),
        ("source", vec![s("web/more/c.conf")], "'c'"),
        ("source", vec![s("./a.conf")], "'a'"),
        (
            "source",
            vec![s("web/x")],
            "error cannot read `/project/libs/web/files/x`: no such file",
        ),
        (
            "source",
            vec![s("db/x")],
            "error there is no module `db`, which `db/x` names",
        ),
        (
            "source",
            vec![s("web/../x")],
            "error `web/../x` leads out of the module's files",
        ),
        (
            "file",
            vec![s("web/a.conf")],
            "'imp-module-source:file:///project/libs/web/files/a.conf'",
        ),
        (
            "file",
            vec![s("web/x")],
            "error there is no file `/project/libs/web/files/x`",
        ),
        ("list_files", vec![s("web")], "['a.conf', 'b.conf']"),
        ("list_files", vec![s("web/more")], "['c.conf']"),
        (
            "list_files",
            vec![s("web/less")],
            "error there is no directory `/project/libs/web/files/less`",
        ),
        (
            "template",
            vec![s("web/x")],
            "error cannot read `/project/libs/web/templates/x`: no such file",
        ),
    ] {
        assert_eq!(answer(&mut world, name, arguments), expected, "{name}");
    }
    assert!(world.recorded.contains(&"/project/libs/web/files/x".to_owned()));
}

#[test]
fn surroundings() {
    let mut world = World::new();
    world.environment.insert("HOME".to_owned(), "/root".to_owned());
    world.environment.insert("PORT".to_owned(), "80".to_owned());
    world.facts.insert("version".to_owned(), s("1.2"));
    for (name, arguments, expected) in [
        ("get_env", vec![s("HOME")], "'/root'"),
        ("get_env", vec![s("NONE"), s("x")], "'x'"),
        ("get_env", vec![s("NONE")], "unknown"),
        ("get_env_int", vec![s("PORT")], "80"),
        ("get_env_int", vec![s("NONE"), i(1)], "1"),
        ("get_env_int", vec![s("NONE")], "unknown"),
        (
            "get_env_int",
            vec![s("HOME")],
            "error the value of `HOME` in the environment is no number",
        ),
        ("getfact", vec![instance(4), s("version")], "'1.2'"),
        ("getfact", vec![instance(4), s("none"), i(1)], "1"),
        ("getfact", vec![instance(4), s("none")], "unknown"),
        (
            "getfact",
            vec![instance(0), s("none")],
            "error facts are of resources, and `__config__::Host` is none",
        ),
        ("environment", vec![], "'live'"),
        ("environment_name", vec![], "'shop'"),
        ("environment_server", vec![], "unknown"),
        ("server_ca", vec![], "''"),
        ("server_ssl", vec![], "False"),
        ("server_port", vec![], "0"),
        ("server_token", vec![], "''"),
        ("server_token", vec![l([s("api")])], "''"),
        ("timestamp", vec![], "1700000000"),
        ("timestamp", vec![i(1)], "1700000000"),
        ("create_int_reference", vec![i(1)], "Int(Int(1))"),
        ("create_int_reference", vec![s("a")], "error `'a'` is no number"),
        (
            "create_environment_reference",
            vec![s("HOME")],
            "Environment(Text(\"HOME\"))",
        ),
        (
            "create_fact_reference",
            vec![instance(4), s("v")],
            "Fact { resource: InstanceId(4), fact: \"v\" }",
        ),
    ] {
        assert_eq!(answer(&mut world, name, arguments), expected, "{name}");
    }
}

#[test]
fn passwords_are_made_once_and_are_secret() {
    let mut world = World::new();
    assert_eq!(
        answer(&mut world, "password", vec![s("db")]),
        "error there is no password for `db` in `data/std/passwordfile.txt`"
    );
    let first = answer(&mut world, "generate_password", vec![s("db"), i(12)]);
    assert_eq!(first.len(), 14);
    assert!(
        first
            .trim_matches('\'')
            .bytes()
            .all(|b| b.is_ascii_alphanumeric())
    );
    assert_eq!(answer(&mut world, "generate_password", vec![s("db")]), first);
    assert_eq!(answer(&mut world, "password", vec![s("db")]), first);
    assert_ne!(
        answer(&mut world, "generate_password", vec![s("web")]).len(),
        first.len()
    );
    assert_eq!(world.stored["data/std/passwordfile.txt"].lines().count(), 2);
    assert_eq!(
        answer(&mut world, "generate_password", vec![s("a=b")]),
        "error the id of a password cannot contain `=` or the end of a line"
    );
    assert_eq!(
        answer(&mut world, "generate_password", vec![s("x"), i(0)]),
        "error a password has from 1 to 4096 characters, not 0"
    );
}
