//! What templates see and print, and how they fail.

use setpoint_cf_names::datum::UnknownId;

use super::*;
use crate::testing::{World, nowhere};

/// What a template renders as: its text, `unknown`, `unset`, or its error.
fn rendered(world: &mut World, arguments: Option<Dict>) -> String {
    match render_within(200_000, "web/t.j2", arguments.map(Arc::new), nowhere(), world) {
        Ok(Datum::Text(text)) => text.to_string(),
        Ok(other) => format!("{other:?}"),
        Err(Failure::Unknown) => "unknown".to_owned(),
        Err(Failure::Unset(cell)) => format!("unset {}", cell.0),
        Err(Failure::Model(error) | Failure::Caused(error)) => {
            let place = world.sources.positions(error.primary.span).0;
            let file = &world.sources.file(error.primary.span.file).name;
            format!(
                "{} {} {file}:{}: {}",
                error.code.code, error.class, place.line, error.message
            )
        }
        Err(Failure::Other(message) | Failure::Declared(message)) => format!("error {message}"),
    }
}

fn world(template: &str) -> World {
    let list = |items: &[Datum]| Datum::List(items.into());
    World::new()
        .with_file("/project/libs/web/templates/t.j2", template)
        .with_file("/project/libs/web/templates/part.j2", "<{{ name }}>")
        .with_file(
            "/project/templates/base.j2",
            "[{% block body %}base{% endblock %}]",
        )
        .with_variable("name", Datum::text("shop"))
        .with_variable("port", Datum::Int(80))
        .with_variable("ratio", Datum::Float(1.0))
        .with_variable("on", Datum::Bool(true))
        .with_variable("nothing", Datum::Null)
        .with_variable("later", Datum::Unknown(UnknownId(3)))
        .with_variable("host", Datum::Instance(InstanceId(0)))
        .with_variable(
            "hosts",
            list(&[Datum::Instance(InstanceId(0)), Datum::Instance(InstanceId(1))]),
        )
        .with_variable(
            "mixed",
            list(&[Datum::Int(1), Datum::text("a"), Datum::Null, Datum::Bool(false)]),
        )
        .with_variable(
            "labels",
            Datum::Dict(Arc::new(
                [(Arc::from("a"), Datum::Int(1)), (Arc::from("b"), Datum::Null)]
                    .into_iter()
                    .collect(),
            )),
        )
        .with_unset("soon", 7)
        .with_attribute(0, "name", Datum::text("one"))
        .with_attribute(1, "name", Datum::text("two"))
        .with_attribute(0, "peer", Datum::Instance(InstanceId(1)))
        .with_attribute(1, "peer", Datum::Instance(InstanceId(0)))
}

#[test]
fn what_templates_see_and_print() {
    for (template, expected) in [
        ("{{ name }}:{{ port }}", "shop:80"),
        ("{{ ratio }} {{ on }} {{ nothing }}", "1.0 True None"),
        ("{{ mixed }}", "[1, 'a', None, False]"),
        (
            "{{ labels }} {{ labels.a }} {{ labels['b'] }}",
            "{'a': 1, 'b': None} 1 None",
        ),
        (
            "{{ host.name }} {{ host.peer.name }} {{ host.peer.peer.peer.name }}",
            "one two two",
        ),
        (
            "{% for h in hosts %}{{ loop.index }}{{ h.name }}{{ h.peer.name }} {% endfor %}",
            "1onetwo 2twoone ",
        ),
        (
            "{% if host.name == 'one' %}yes{% else %}{{ soon }}{% endif %}",
            "yes",
        ),
        (
            "{{ hosts | length }} {{ hosts | map(attribute='name') | join(',') }}",
            "2 one,two",
        ),
        (
            "{% for k, v in labels.items() %}{{ k }}={{ v }};{% endfor %}",
            "a=1;b=None;",
        ),
        ("{{ name.upper() }} {{ 'a-b'.split('-') }}", "SHOP ['a', 'b']"),
        ("{% set x = 5 %}{{ x + port }}", "85"),
        ("{% macro m(a) %}({{ a }}){% endmacro %}{{ m(name) }}", "(shop)"),
        (
            "{{ missing is defined }} {{ missing | default('d') }} {{ host.none is defined }}",
            "False d False",
        ),
        (
            "{{ host is defined }} {{ host == hosts[0] }} {{ host == hosts[1] }}",
            "True True False",
        ),
        ("{{ '<a href=\"x\">' }}", "<a href=\"x\">"),
        ("a\n", "a"),
        (
            "{{ name | std.upper }} {{ name | std.replace('s', 'S') }}",
            "SHOP Shop",
        ),
        ("{{ name | std.replace(old='s', new='S') }}", "Shop"),
        ("{{ std.upper(name) }} {{ std.at(mixed, 1) }}", "SHOP a"),
        ("{{ ip.services.ssh }}", "22"),
        (
            "{% include 'web/part.j2' %} {% include './part.j2' %}",
            "<shop> <shop>",
        ),
        (
            "{% extends '/base.j2' %}{% block body %}{{ name }}{% endblock %}",
            "[shop]",
        ),
        ("{% include 'web/none.j2' ignore missing %}ok", "ok"),
        ("{% if false %}{{ later }}{{ soon }}{% endif %}ok", "ok"),
        ("{{ range(3) | list }}", "[0, 1, 2]"),
    ] {
        assert_eq!(rendered(&mut world(template), None), expected, "{template}");
    }
}

/// Templates, each with what Jinja2 3.1.6 makes of it.
const RENDERED_BY_JINJA: &str = include_str!("rendered_by_jinja.json");

#[test]
fn templates_become_what_jinja_makes_of_them() {
    let templates: Vec<(String, String)> = serde_json::from_str(RENDERED_BY_JINJA).expect("they are pairs");
    let entries = |pairs: Vec<(&str, Datum)>| {
        let pairs = pairs.into_iter().map(|(key, value)| (Arc::from(key), value));
        Datum::Dict(Arc::new(pairs.collect::<Dict>()))
    };
    let list = vec![Datum::Int(1), Datum::Float(2.5), Datum::Null, Datum::Bool(true)];
    for (template, expected) in templates {
        let mut world = world(&template)
            .with_variable("s", Datum::text("a/b c?d=é&e"))
            .with_variable(
                "t",
                Datum::text("The quick brown fox-hunter jumps over the lazy dog and runs away"),
            )
            .with_variable(
                "d",
                entries(vec![
                    ("port", Datum::Int(80)),
                    ("name", Datum::text("a<b'c")),
                    ("list", Datum::List(list.clone().into())),
                    ("B", entries(vec![("x", Datum::text("é"))])),
                ]),
            );
        assert_eq!(rendered(&mut world, None), expected, "{template}");
    }
}

#[test]
fn what_templates_cannot_do_is_said() {
    for (template, expected) in [
        ("{{ 'ab'|truncate(2) }}", "`length` is 2, and `...` is longer"),
        (
            "{{ mixed.append(1) }}",
            "`append` would change a list, and templates change nothing",
        ),
        ("{{ labels.update({}) }}", "`update` would change a dict"),
        ("{{ 'a'.index('b') }}", "`b` is not in `a`"),
        ("{{ mixed.index('b') }}", "the value is not in the list"),
        ("{{ name|truncate(1, length=2) }}", "`length` is given twice"),
        ("{{ name|center(2, 3) }}", "too many arguments"),
        (
            "{{ name|center(width=2, height=3) }}",
            "unknown keyword argument 'height'",
        ),
        (
            "{{ name|center(999999999) }}",
            "the text would be longer than 64 MiB",
        ),
        (
            "{{ 'a\tb'.expandtabs(99999999) }}",
            "the text would be longer than 64 MiB",
        ),
        ("{{ name|int(0, 1) }}", "`base` is a number from 2 to 36"),
        ("{{ port|dictsort }}", "expected a dict, not a number"),
        ("{{ labels|dictsort(by='size') }}", "`by` is `key` or `value`"),
        ("{{ {'a b': 1}|xmlattr }}", "`a b` is no name of an attribute"),
        ("{{ [host]|tojson }}", "has no form in JSON"),
        ("{{ 'a'.partition('') }}", "the separator is empty"),
        ("{{ 'a'.rjust(3, 'xy') }}", "exactly one character"),
        ("{{ debug() }}", "unknown"),
        ("{{ missing|int }}", "undefined"),
    ] {
        let found = rendered(&mut world(template), None);
        assert!(found.contains(expected), "{template}: {found}");
    }
}

#[test]
fn lines_end_in_one_character() {
    assert_eq!(
        rendered(&mut world("a\r\nb\rc{{ missing is defined }}\r\n"), None),
        "a\nb\ncFalse"
    );
    let found = rendered(&mut world("a\r\n{{ missing }}"), None);
    assert!(found.contains("t.j2:2:"), "{found}");
}

#[test]
fn what_is_not_there_yet_ends_the_call() {
    for (template, expected) in [
        ("{{ soon }}", "unset 7"),
        ("{% if on %}{{ soon }}{% endif %}", "unset 7"),
        ("{{ name }}{{ later }}", "unknown"),
        ("{{ later | std.upper }}", "unknown"),
        ("{% if later %}{% endif %}", "unknown"),
    ] {
        assert_eq!(rendered(&mut world(template), None), expected, "{template}");
    }
}

#[test]
fn errors_are_told_at_the_place_in_the_template() {
    let file = "/project/libs/web/templates/t.j2";
    for (template, expected) in [
        (
            "a\n{{ missing }}",
            format!("E0601 NotFoundException {file}:2: an undefined name is used in template `web/t.j2`:"),
        ),
        (
            "a\n\n{{ host.none }}",
            format!("E0601 NotFoundException {file}:3: an undefined name is used in template `web/t.j2`:"),
        ),
        (
            "a\n{% if %}",
            format!("E0627 ExternalException {file}:2: template `web/t.j2` cannot be rendered: "),
        ),
        (
            "{{ name | std.nothing }}",
            format!("E0627 ExternalException {file}:1: template `web/t.j2` cannot be rendered: "),
        ),
        ("{{ mixed | std.upper }}", "E0621 PluginTypeException".to_owned()),
        (
            "{% include 'web/none.j2' %}",
            format!("E0627 ExternalException {file}:1: "),
        ),
    ] {
        let found = rendered(&mut world(template), None);
        assert!(found.starts_with(&expected), "{template}: {found}");
    }
    let mut nowhere = World::new();
    let found = rendered(&mut nowhere, None);
    assert!(
        found.starts_with("E0627 TemplateNotFound ")
            && found.ends_with(": cannot read `/project/libs/web/templates/t.j2`: no such file"),
        "{found}"
    );
}

#[test]
fn with_arguments_there_is_nothing_else() {
    let arguments: Dict = [(Arc::from("x"), Datum::text("given"))].into_iter().collect();
    assert_eq!(
        rendered(&mut world("{{ x }}{{ name is defined }}"), Some(arguments)),
        "givenFalse"
    );
}

#[test]
fn what_a_template_needs_is_read_in_few_passes() {
    let mut world = world("{% for h in hosts %}{{ h.name }}{{ h.peer.name }}{% endfor %}");
    rendered(&mut world, None);
    // The list, then both names and peers; the names of the peers are known then.
    assert_eq!(world.reads, 5);
}

#[test]
fn what_functions_change_is_changed_once() {
    let mut world = world(
        "{% if host.peer.name == 'two' %}{{ name | std.print }}{% else %}{{ port | std.print }}{% endif %}",
    );
    assert_eq!(rendered(&mut world, None), "None");
    assert_eq!(world.printed, ["shop"]);
}

#[test]
fn marks_of_what_was_read_are_on_the_text() {
    let secret = Datum::text("s").with_marks(&Marks::sensitive());
    let mut world = world("{{ secret }}").with_variable("secret", secret);
    let text = render("web/t.j2", None, nowhere(), &mut world).expect("it renders");
    assert!(text.has_marks());
}

#[test]
fn templates_without_end_are_stopped() {
    for template in [
        "{% for a in range(99999) %}{% for b in range(99999) %}x{% endfor %}{% endfor %}",
        "{% include 'web/t.j2' %}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% set ns = namespace(x='aaaaaaaaaaaaaaaa') %}{% for a in range(99) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
    ] {
        let found = rendered(&mut world(template), None);
        assert!(
            found.contains("E0627") || found.contains("longer than"),
            "{template}: {found}"
        );
    }
}
