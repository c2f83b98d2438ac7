//! Templates, each by its text, its data and what comes out.

use std::sync::Arc;

use setpoint_simulated::SimulatedCapabilities;
use setpoint_value::{CallContext, CallSite, Implementation, Map, Type, Value, Wake};

use super::TEMPLATE;

/// The output, or the error's message.
fn run(template: &str, data: Option<Value>) -> Result<String, String> {
    let machine = SimulatedCapabilities::new();
    machine.set_environment("HOME", Some("/root"));
    let capabilities = machine.shared();
    let context = CallContext {
        capabilities: &capabilities,
        wake: Wake::new(|| {}),
        site: CallSite {
            id: 1,
            module_directory: Arc::from("/"),
        },
        result: &Type::Str,
    };
    let Implementation::Source(source) = &TEMPLATE.implementation else {
        panic!("a source");
    };
    let arguments: Vec<Value> = std::iter::once(Value::str(template)).chain(data).collect();
    let mut subscription = source.open(&context, &arguments).map_err(|e| e.to_string())?;
    let value = subscription
        .take()
        .expect("a first value")
        .map_err(|e| e.to_string())?;
    Ok(value.as_str().expect("a string").to_lossy().into_owned())
}

fn structure(fields: &[(&str, Value)]) -> Value {
    let ty = Type::structure(fields.iter().map(|(name, value)| (*name, value.ty())));
    Value::structure(ty, fields.iter().map(|(_, v)| v.clone()).collect::<Vec<_>>())
}

fn data() -> Value {
    structure(&[
        ("name", Value::str("Ann <b>")),
        ("http_port", Value::Int(80)),
        ("ratio", Value::float(1.5)),
        ("on", Value::Bool(true)),
        ("list", Value::strings(["a", "b", "c"])),
        ("empty", Value::list(Type::Str, [])),
        (
            "ports",
            Value::Map(Map::new(
                Type::Str,
                Type::Int,
                [
                    (Value::str("ssh"), Value::Int(22)),
                    (Value::str("dns"), Value::Int(53)),
                ],
            )),
        ),
        (
            "by_number",
            Value::Map(Map::new(
                Type::Int,
                Type::Str,
                [(Value::Int(2), Value::str("two"))],
            )),
        ),
    ])
}

#[test]
fn templates_print_what_go_prints() {
    for (template, expected) in [
        ("plain }} text", "plain }} text"),
        (
            "{{ .Name }} {{.Http_port}} {{ .Ratio }} {{ .On }}",
            "Ann <b> 80 1.5 true",
        ),
        (
            "{{ .List }} {{ .Empty }} {{ .Ports }}",
            "[a b c] [] map[dns:53 ssh:22]",
        ),
        ("a {{- 1 -}} b {{/* c */}}c {{- /* d */ -}} d", "a1b cd"),
        ("{{ if .On }}yes{{ else }}no{{ end }}", "yes"),
        ("{{ if .Empty }}a{{ else if not .On }}b{{ else }}c{{ end }}", "c"),
        ("{{ range .List }}<{{ . }}>{{ else }}none{{ end }}", "<a><b><c>"),
        ("{{ range .Empty }}x{{ else }}none{{ end }}", "none"),
        (
            "{{ range $i, $e := .List }}{{ $i }}={{ $e }} {{ end }}",
            "0=a 1=b 2=c ",
        ),
        (
            "{{ range $k, $v := .Ports }}{{ $k }}:{{ $v }};{{ end }}",
            "dns:53;ssh:22;",
        ),
        ("{{ range 3 }}{{ . }}{{ end }}", "012"),
        (
            "{{ range .List }}{{ if eq . \"b\" }}{{ continue }}{{ end }}{{ . }}{{ end }}",
            "ac",
        ),
        (
            "{{ range .List }}{{ if eq . \"b\" }}{{ break }}{{ end }}{{ . }}{{ end }}",
            "a",
        ),
        ("{{ with .Name }}{{ . }}/{{ $.Http_port }}{{ end }}", "Ann <b>/80"),
        ("{{ with .Empty }}x{{ else with .On }}{{ . }}{{ end }}", "true"),
        ("{{ $x := 1 }}{{ if .On }}{{ $x = 2 }}{{ end }}{{ $x }}", "2"),
        (
            "{{ define \"T\" }}[{{ . }}]{{ end }}{{ template \"T\" .Name }}{{ template \"T\" }}",
            "[Ann <b>][<no value>]",
        ),
        ("{{ block \"B\" .Http_port }}{{ . }}{{ end }}", "80"),
        (
            "{{ .Ports.ssh }} {{ (index .Ports \"dns\") }} {{ index .List 1 }}",
            "22 53 b",
        ),
        (
            "{{ index .Ports \"none\" }} {{ index .By_number 2 }} [{{ index .By_number 3 }}]",
            "<no value> two []",
        ),
        (
            "{{ slice .List 1 3 }} {{ slice .Name 0 3 }} {{ len .List }} {{ len .Name }}",
            "[b c] Ann 3 7",
        ),
        (
            "{{ and .On .Empty }} {{ or .Empty 7 }} {{ not .On }}",
            "[] 7 false",
        ),
        (
            "{{ eq 1 2 1 }} {{ ne 1 2 }} {{ lt 1 2 }} {{ le \"a\" \"a\" }} {{ gt 1.5 2.5 }} {{ ge 2 2 }}",
            "true true true true false true",
        ),
        (
            "{{ print 1 2 \"a\" \"b\" 3 }}|{{ println 1 \"a\" }}",
            "1 2ab3|1 a\n",
        ),
        (
            "{{ html .Name }} {{ .Name | html }} {{ js \"it's <\" }} {{ urlquery \"a b&c\" }}",
            "Ann &lt;b&gt; Ann &lt;b&gt; it\\'s \\u003C a+b%26c",
        ),
        (
            "{{ printf \"%s %d %5.2f|%-5s|%05d|%x|%q|%v|%T\" \"a\" 1 2.345 \"b\" 42 255 \"q\" .List 1 }}",
            "a 1  2.35|b    |00042|ff|\"q\"|[a b c]|int64",
        ),
        (
            "{{ printf \"%d %s\" \"a\" }} {{ printf \"%d\" 1 2 }} {{ printf \"%[2]d %[1]d\" 1 2 }}",
            "%!d(string=a) %!s(MISSING) 1%!(EXTRA int64=2) 2 1",
        ),
        (
            "{{ printf \"%g %g %e %v\" 1000000.0 0.5 12345.678 1e21 }}",
            "1e+06 0.5 1.234568e+04 1e+21",
        ),
        (
            "{{ 'a' }} {{ 0x10 }} {{ 1_000 }} {{ 1e3 }} {{ `raw\\n` }} {{ \"\\u00e9\" }}",
            "97 16 1000 1000 raw\\n é",
        ),
        (
            "{{ strings_to_upper .Name }} {{ .Name | golang_strings_trim_suffix \"x\" }}",
            "ANN <B> x",
        ),
        (
            "{{ sys_getenv \"HOME\" }} {{ _concat \"a\" \"b\" }} {{ math_minus1 3 }} {{ math_sqrt 9 }}",
            "/root ab 2 3",
        ),
        ("{{ (net_split_hostport \"h:80\").Port }}", "80"),
        ("é{{ \"ü\" }}", "éü"),
    ] {
        assert_eq!(run(template, Some(data())).as_deref(), Ok(expected), "{template}");
    }
    assert_eq!(run("[{{ . }}]", None).as_deref(), Ok("[<no value>]"));
}

#[test]
fn mistakes_in_a_template_are_found_before_it_runs() {
    for (template, problem) in [
        ("{{ nosuch 1 }}", "function \"nosuch\" not defined"),
        ("{{ $x }}", "undefined variable \"$x\""),
        ("{{ if true }}", "unexpected EOF"),
        ("{{ end }}", "unexpected {{end}}"),
        ("{{ ", "unclosed action"),
        ("{{ (1 }}", "unclosed left paren"),
        ("{{ 1) }}", "unexpected right paren"),
        ("{{ \"a }}", "unterminated quoted string"),
        ("{{/* a }}", "unclosed comment"),
        ("{{ break }}", "{{break}} outside {{range}}"),
        ("{{ 1 | 2 }}", "non executable command in pipeline"),
        ("{{ }}", "missing value for command"),
        ("\n\n{{ if }}{{ end }}", "template:3: missing value for if"),
        (
            "{{ len .X }}{{ fmt_printf }}",
            "function \"fmt_printf\" not defined",
        ),
        ("{{ datetime_now }}", "function \"datetime_now\" not defined"),
        ("{{ 99999999999999999999 }}", "integer overflow"),
        ("{{ .Name.1 }}", "unexpected number in operand"),
    ] {
        let message = run(template, Some(data())).expect_err(template);
        assert!(
            message.starts_with("template: parse error: "),
            "{template}: {message}"
        );
        assert!(message.contains(problem), "{template}: {message}");
    }
    let deep = "{{ if true }}".repeat(10_000);
    assert!(
        run(&deep, None)
            .expect_err("too deep")
            .contains("nested more than")
    );
}

#[test]
fn mistakes_on_the_data_are_errors_of_execution() {
    for (template, problem) in [
        ("{{ .Missing }}", "map has no entry for key \"Missing\""),
        (
            "{{ .name }}",
            "map has no entry for key \"name\"; in a template the field of a struct begins with a capital letter: `.Name`",
        ),
        ("{{ .Name.X }}", "can't evaluate field X in type string"),
        (
            "{{ index .List 9 }}",
            "error calling index: index out of range: 9",
        ),
        ("{{ template \"none\" }}", "template \"none\" not defined"),
        ("{{ range .Name }}{{ end }}", "range can't iterate over Ann <b>"),
        ("{{ eq 1 \"a\" }}", "incompatible types for comparison"),
        ("{{ lt true false }}", "invalid type for comparison"),
        ("{{ .Name 1 }}", "Name is not a method but has arguments"),
        ("{{ 1 | .Name }}", "Name is not a method but has arguments"),
        ("{{ nil }}", "nil is not a command"),
        (
            "{{ strings_to_upper 1 }}",
            "wrong type for value; expected string; got int64",
        ),
        (
            "{{ strings_to_upper }}",
            "wrong number of args for strings_to_upper: want 1 got 0",
        ),
        (
            "{{ sys_getenv \"NOPE\" }}",
            "function `sys_getenv` errored: environment variable not set: NOPE",
        ),
        (
            "{{ define \"L\" }}{{ template \"L\" }}{{ end }}{{ template \"L\" }}",
            "call each other more than",
        ),
        ("{{ range 99999999999 }}{{ end }}", "more than"),
    ] {
        let message = run(template, Some(data())).expect_err(template);
        assert!(
            message.starts_with("template: execution error: "),
            "{template}: {message}"
        );
        assert!(message.contains(problem), "{template}: {message}");
    }
    assert!(
        run("{{ .X }}", None)
            .expect_err("no data")
            .contains("nil data; no entry for key \"X\"")
    );
}
