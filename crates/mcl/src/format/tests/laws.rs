//! Generated programs, with line breaks, comments and blanks in every place that takes them.

use proptest::prelude::*;
use setpoint_diagnostics::Severity;

use super::super::format;

/// What may stand where a newline must.
fn newline() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "\n",
        "\n",
        " # c\n",
        "\n\n\n",
        "\n\t# own line\n",
        " #\n \n# two\n\n",
        " \t\n",
    ])
    .prop_map(str::to_owned)
}

/// What may stand between two tokens.
fn space() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["", " ", "  \t"])
}

/// Elements in brackets, in one of the forms that the language has.
fn sequence(
    open: &'static str,
    element: BoxedStrategy<String>,
    close: &'static str,
) -> BoxedStrategy<String> {
    let one_line = (
        prop::collection::vec((element.clone(), space()), 0..3),
        any::<bool>(),
    )
        .prop_map(move |(elements, comma)| {
            let texts: Vec<String> = elements
                .iter()
                .map(|(text, space)| format!("{space}{text}"))
                .collect();
            let comma = if comma && !texts.is_empty() { "," } else { "" };
            format!("{open}{}{comma}{close}", texts.join(","))
        });
    let several = (
        newline(),
        prop::collection::vec((element, newline()), 0..3),
        any::<bool>(),
    )
        .prop_map(move |(first, elements, comma)| {
            let mut text = format!("{open}{first}");
            let count = elements.len();
            for (index, (element, newline)) in elements.into_iter().enumerate() {
                let comma = if comma || index + 1 < count { "," } else { "" };
                text.push_str(&format!("{element}{comma}{newline}"));
            }
            text + close
        });
    prop_oneof![one_line, several].boxed()
}

fn annotation() -> BoxedStrategy<String> {
    let leaf = prop::sample::select(vec!["int", "str", "bool", "float", "struct{}", "variant"]);
    leaf.prop_map(str::to_owned)
        .prop_recursive(2, 8, 2, |inner| {
            let names = prop::sample::select(vec!["$a ", "b ", ""]);
            let argument = (names, inner.clone())
                .prop_map(|(name, inner)| format!("{name}{inner}"))
                .boxed();
            prop_oneof![
                inner.clone().prop_map(|inner| format!("[]{inner}")),
                (inner.clone(), inner.clone()).prop_map(|(k, v)| format!("map{{{k}:{v}}}")),
                inner.clone().prop_map(|v| format!("{{str : {v}}}")),
                (inner.clone(), inner.clone()).prop_map(|(k, v)| format!("struct {{a {k};b {v}}}")),
                // One argument each: two of one name are an error.
                argument.prop_flat_map(move |argument| {
                    let inner = inner.clone();
                    (Just(argument), newline(), any::<bool>(), inner).prop_map(
                        |(argument, newline, long, r)| {
                            if long {
                                format!("func({newline}{argument},{newline}) {r}")
                            } else {
                                format!("func({argument}) {r}")
                            }
                        },
                    )
                }),
            ]
        })
        .boxed()
}

fn optional_annotation() -> BoxedStrategy<String> {
    prop_oneof![
        Just(String::new()),
        annotation().prop_map(|annotation| format!(" {annotation}"))
    ]
    .boxed()
}

fn parameters() -> BoxedStrategy<String> {
    let parameter = optional_annotation().prop_map(|annotation| format!("$p{annotation}"));
    sequence("(", parameter.boxed(), ")")
}

fn braces(inner: BoxedStrategy<String>) -> BoxedStrategy<String> {
    prop_oneof![
        inner.clone().prop_map(|inner| format!("{{{inner}}}")),
        (newline(), inner.clone(), newline()).prop_map(|(a, inner, b)| format!("{{{a}{inner}{b}}}")),
        (inner.clone(), newline()).prop_map(|(inner, newline)| format!("{{ {inner}{newline}}}")),
        (newline(), inner).prop_map(|(newline, inner)| format!("{{{newline}{inner} }}")),
    ]
    .boxed()
}

fn expression() -> BoxedStrategy<String> {
    let leaf = prop::sample::select(vec![
        "1",
        "-1",
        "2.50",
        "true",
        "\"s\"",
        "\"a ${x}\n\n b\"",
        "$x",
        "$ a . b",
        "007",
        "$map",
        "f()",
        "[]",
    ]);
    leaf.prop_map(str::to_owned)
        .prop_recursive(3, 24, 3, |inner| {
            let operators = prop::sample::select(vec![
                "+", " - ", "*", "/", " and ", " or ", "<|>", "==", "<", " in ",
            ]);
            let entry = (inner.clone(), inner.clone())
                .prop_map(|(k, v)| format!("{k}=>{v}"))
                .boxed();
            let field = inner.clone().prop_map(|value| format!("f => {value}")).boxed();
            prop_oneof![
                (inner.clone(), operators, inner.clone()).prop_map(|(a, o, b)| format!("({a}{o}{b})")),
                // No parentheses: some of these chain comparisons and are skipped.
                (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a} <|> {b}")),
                (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a}[0] || {b}")),
                (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a} + {b}")),
                (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a}->g || {b}")),
                (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a} -> g<|>{b}")),
                inner.clone().prop_map(|a| format!("not {a}")),
                inner.clone().prop_map(|a| format!("{a} -1")),
                inner.clone().prop_map(|a| format!("{a}->g[\"k\"]")),
                sequence("[", inner.clone().boxed(), "]"),
                sequence("{", entry, "}"),
                sequence("struct{", field, "}"),
                sequence("m.f(", inner.clone().boxed(), ")"),
                (parameters(), optional_annotation(), braces(inner.clone().boxed()))
                    .prop_map(|(parameters, result, body)| format!("func{parameters}{result} {body}")),
                (
                    inner.clone(),
                    braces(inner.clone().boxed()),
                    braces(inner.clone().boxed())
                )
                    .prop_map(|(c, a, b)| format!("if {c} {a} else {b}")),
                (
                    inner.clone(),
                    braces(inner.clone().boxed()),
                    braces(inner.boxed())
                )
                    .prop_map(|(c, a, b)| format!("if $b {a} else if {c} {b} else {a}")),
            ]
        })
        .boxed()
}

fn resource() -> BoxedStrategy<String> {
    let names = prop::sample::select(vec!["p =>", "Meta:noop=>", "Meta => $c?:", "q=>true ?: "]);
    let field = (names, expression()).prop_map(|(name, value)| format!("{name}{value},"));
    let edge = expression().prop_map(|name| format!("Before => Http : Server[{name}],"));
    let separator = prop_oneof![Just(String::new()), newline()];
    let items = prop::collection::vec((prop_oneof![field, edge], separator.clone()), 0..3);
    (separator, items)
        .prop_map(|(first, items)| {
            let items: String = items
                .into_iter()
                .map(|(item, separator)| item + &separator)
                .collect();
            format!("a : b \"n\" {{{first}{items}}}")
        })
        .boxed()
}

fn statements() -> BoxedStrategy<String> {
    let leaf = prop_oneof![
        (space(), optional_annotation(), expression())
            .prop_map(|(space, annotation, value)| format!("${space}v{annotation}={value}")),
        resource(),
        resource().prop_map(|resource| format!("collect {resource}")),
        sequence("include c.d(", expression(), ") as e"),
        sequence("panic(", expression(), ")"),
        Just("import  \"x\"as *".to_owned()),
        Just("include c".to_owned()),
        expression().prop_map(|name| format!("A[{name}]->B[\"x\"]")),
        (parameters(), braces(expression()))
            .prop_map(|(parameters, body)| format!("func f{parameters}{body}")),
    ];
    let list = |statement: BoxedStrategy<String>| {
        prop::collection::vec((statement, newline()), 0..3).prop_map(|list| {
            list.into_iter()
                .map(|(statement, newline)| statement + &newline)
                .collect::<String>()
        })
    };
    let nested = leaf.prop_recursive(2, 12, 3, move |inner| {
        let block = prop_oneof![
            (newline(), list(inner.clone().boxed()))
                .prop_map(|(newline, list)| format!("{{{newline}{list}}}")),
            inner.clone().prop_map(|statement| format!("{{ {statement} }}")),
            Just("{}".to_owned()),
        ];
        prop_oneof![
            (expression(), block.clone()).prop_map(|(c, block)| format!("if {c} {block}")),
            (block.clone(), block.clone()).prop_map(|(a, b)| format!("if $c {a} else {b}")),
            (block.clone(), block.clone()).prop_map(|(a, b)| format!("if $c {a}else if $d {b} else {a}")),
            (expression(), block.clone()).prop_map(|(l, block)| format!("for $i,$v in {l} {block}")),
            (parameters(), block).prop_map(|(parameters, block)| format!("class c{parameters}{block}")),
        ]
    });
    list(nested.boxed()).boxed()
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        max_shrink_iters: 5_000,
        ..ProptestConfig::with_cases(500)
    })]

    #[test]
    fn generated_programs_format_once_and_for_all(text in statements()) {
        // `format` itself checks comments, meaning and that its result parses.
        match format(&text) {
            Ok(once) => {
                let twice = format(&once);
                prop_assert_eq!(twice, Ok(once));
            }
            // The generator does not know that comparisons do not chain and what a literal's type can be.
            Err(super::FormatError::Syntax(diagnostics)) => {
                let first = diagnostics.iter().find(|d| d.severity == Severity::Error).expect("a reason");
                let known = first.code.rule == "P4" || first.message.contains("the end of the comparison");
                prop_assert!(known, "{}", first.message);
            }
            Err(error) => prop_assert!(false, "{error}"),
        }
    }
}
