//! Texts that do not parse: which rule, and where.

use super::super::{MAXIMUM_HEIGHT, MAXIMUM_NESTING};
use super::{assert_accepted, findings, first_help, read};

/// The first finding of each text.
#[track_caller]
fn rejects(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        let findings = findings(text);
        assert_eq!(
            findings.first().map(String::as_str),
            Some(*expected),
            "{text:?}: {findings:?}"
        );
    }
}

/// One finding, and no more, in each.
#[track_caller]
fn rejects_once(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_eq!(findings(text), [*expected], "{text:?}");
    }
}

#[test]
fn characters_that_start_no_token() {
    rejects_once(&[
        ("$x = 1\r\n$y = 2\r\n", "L2@1:7"),
        ("$foo_ = 1\n", "L1@1:5"),
        ("$x = _foo()\n", "L1@1:6"),
        ("$x = \"abc\n$y = 1\n", "L1@1:6"),
        ("\u{feff}$x = 1\n", "L1@1:1"),
        ("$x = 5 % 2\n", "L1@1:8"),
        ("$x = $a && $b\n", "L1@1:9"),
        ("$x = !$a\n", "L1@1:6"),
        ("$x = 'a'\n", "L1@1:6"),
        ("$x = $a | 2\n", "L1@1:9"),
        ("$größe = 1\n", "L1@1:4"),
        ("$x = 9223372036854775808\n", "L3@1:6"),
    ]);
    assert!(first_help("$x = $y || 1\n").contains("<|>"));
    assert!(first_help("$x = $y | 1\n").contains("<|>"));
    assert!(first_help("$x = $a && $b\n").contains("and"));
}

#[test]
fn strings_and_comments_hold_any_character() {
    assert_accepted("$x = \"größe\t% ' \r | \" # größe % '\r\n");
    assert_accepted("$x = \"a\nb\"\n$y = \"ends \\\\\"\n$z = \"other\"\n");
}

#[test]
fn numbers_of_other_languages() {
    rejects_once(&[
        ("$x = 1.\n", "P1@1:7"),
        ("$x = .5\n", "P1@1:6"),
        ("$x = 1e5\n", "P1@1:7"),
        ("$x = -$y\n", "P1@1:6"),
        ("$x = - 1\n", "P1@1:6"),
        ("$x = --1\n", "P1@1:6"),
        ("$x = 0x10\n", "P1@1:7"),
    ]);
}

#[test]
fn words_in_the_wrong_place() {
    rejects_once(&[
        ("$fooBar = 1\n", "P1@1:5"),
        ("$x = $fooBar\n", "P1@1:10"),
        ("HTTP[\"x\"]\n", "P1@1:2"),
        ("func map() { 1 }\n", "P1@1:6"),
        ("class map {}\n", "P1@1:7"),
        ("class collect {}\n", "P1@1:7"),
        ("import \"x\" as map\n", "P1@1:15"),
        ("$x = func($in) { 1 }\n", "P1@1:12"),
        ("$x = struct{map => 1}\n", "P1@1:13"),
        ("$x = $s->map\n", "P1@1:10"),
        ("$x = struct{in => 1}\n", "P1@1:13"),
        ("test \"x\" {\n\tstr => 1,\n}\n", "P1@2:2"),
        ("map \"x\" {}\n", "P1@1:1"),
        ("$x = foo\n", "P1@1:9"),
        ("$x = a.b\n", "P1@1:9"),
    ]);
}

#[test]
fn statements_that_are_none() {
    rejects_once(&[
        ("$x = 1; $y = 2\n", "P1@1:7"),
        ("$x = 1 2\n", "P1@1:8"),
        ("$x = [1]]\n", "P1@1:9"),
        ("}\n$x = 1\n", "P1@1:1"),
        ("if $b {}\nelse {}\n", "P1@2:1"),
        ("class a.b {}\n", "P1@1:8"),
        ("class $x {}\n", "P1@1:7"),
        ("include $c\n", "P1@1:9"),
        ("include a:b\n", "P1@1:10"),
        ("include c as *\n", "P1@1:14"),
        ("$x.y = 1\n", "P1@1:3"),
        ("f()\n", "P1@1:3"),
        ("f(1)\n", "P1@1:5"),
        ("$f()\n", "P1@1:3"),
        ("$x == 1\n", "P7@1:1"),
        ("func f() {}\n", "P1@1:11"),
        ("func f() { $x = 1 }\n", "P1@1:15"),
        ("$x = panic(true)\n", "P1@1:6"),
        ("for $v in $l {}\n", "P1@1:8"),
        ("for $i int, $v in $l {}\n", "P1@1:8"),
        ("x = 1\n", "P1@1:3"),
        ("import fmt\n", "P1@1:8"),
        ("if $b {\n\t$x = 1\n", "P1@3:1"),
    ]);
}

#[test]
fn expressions_do_not_go_on_over_lines_outside_of_brackets() {
    rejects(&[
        ("$x =\n1\n", "P1@1:5"),
        ("$x = 1 +\n2\n", "P1@1:9"),
        ("$x = (\n1)\n", "P1@1:7"),
        ("$x = (1\n)\n", "P1@1:8"),
        ("$x = 1\n+ 2\n", "P1@2:1"),
        ("test \"x\"\n{}\n", "P1@1:9"),
        ("test \"x\" {\n\tp =>\n\t1,\n}\n", "P1@2:6"),
        ("$x = $l[\n0]\n", "P1@1:9"),
        ("$x = if $c { 1 }\nelse { 2 }\n", "P1@1:17"),
    ]);
}

#[test]
fn elements_need_their_commas() {
    for (open, close, element) in [
        ("[", "]", "1"),
        ("{", "}", "1 => 2"),
        ("struct{", "}", "a => 1"),
        ("f(", ")", "1"),
    ] {
        let column = 6 + open.len();
        let text = |inside: &str| format!("$x = {open}{inside}{close}\n");
        let first = |inside: &str| findings(&text(inside)).first().cloned();
        assert_eq!(
            first(","),
            Some(format!("P1@1:{column}")),
            "leading comma in {open}"
        );
        assert_eq!(
            first(&format!("\n{element},,\n")),
            Some(format!("P1@2:{}", element.len() + 2))
        );
        assert_eq!(
            first(&format!("{element},,")),
            Some(format!("P1@1:{}", column + element.len() + 1))
        );
        assert_eq!(
            first(&format!("\n{element}\n{element},\n")),
            Some(format!("P1@2:{}", element.len() + 1))
        );
        assert_eq!(
            first(&format!("\n{element}, {element},\n")),
            Some(format!("P1@2:{}", element.len() + 3))
        );
        assert_eq!(
            first(&format!("{element}\n")),
            Some(format!("P1@1:{}", column + element.len()))
        );
        assert_eq!(
            first(&format!("{element},\n")),
            Some(format!("P1@1:{}", column + element.len() + 1))
        );
        assert_eq!(
            first(&format!("\n{element}")),
            Some(format!("P1@2:{}", element.len() + 1))
        );
    }
    rejects(&[
        ("include c(,)\n", "P1@1:11"),
        ("class c(,) {}\n", "P1@1:9"),
        ("$f func(,) int = $g\n", "P1@1:9"),
    ]);
    assert!(first_help("$x = [\n1\n2,\n]\n").contains("comma"));
}

#[test]
fn containers_and_types_of_other_languages() {
    rejects_once(&[
        ("$x = {\"a\": 1}\n", "P1@1:10"),
        ("$x = struct{\"a\" => 1}\n", "P1@1:13"),
        ("$x struct{a int, b str} = $y\n", "P1@1:16"),
        ("$x struct{a int;} = $y\n", "P1@1:17"),
        ("$x struct{x int; x int} = $y\n", "P5@1:23"),
        ("$x func($a int, $a int) str = $y\n", "P6@1:27"),
        ("$x func(a int, a int) str = $y\n", "P6@1:25"),
        ("$x func(int) = $y\n", "P1@1:14"),
        ("$x [?3] = $y\n", "L1@1:5"),
        ("$x = f()()\n", "P1@1:9"),
        ("$x = $l[0]()\n", "P1@1:11"),
        ("$x = (func() { 1 })()\n", "P1@1:20"),
        ("$x = func() { 1 }()()\n", "P1@1:20"),
    ]);
}

#[test]
fn comparisons_do_not_chain() {
    rejects_once(&[
        ("$x = $a == $b == $c\n", "P1@1:15"),
        ("$x = $a in $b == $c\n", "P1@1:15"),
        ("$x = 1 < 2 < 3\n", "P1@1:12"),
    ]);
    assert_accepted("$x = (1 < 2) == true and 1 == 1\n");
}

#[test]
fn body_items_end_in_a_comma() {
    rejects_once(&[
        ("test \"x\" {\n\tp => 1 + 2\n}\n", "P2@2:11"),
        ("test \"x\" {\n\tp => \"v\"\n\tq => 1,\n}\n", "P2@2:7"),
        ("test \"x\" { p => \"v\" }\n", "P2@1:17"),
        ("test \"x\" {\n\tp => $c ?: $v.w\n}\n", "P2@2:13"),
        ("test \"x\" {\n\tBefore => File[\"a\"]\n}\n", "P2@2:12"),
        ("test \"x\" {\n\tMeta:noop => true\n}\n", "P2@2:15"),
        ("test \"x\" {\n\tp => 1 q => 2,\n}\n", "P1@2:9"),
        ("test \"x\" {\n\tp = 1,\n}\n", "P1@2:4"),
        ("test \"x\" {\n\tFoo:noop => true,\n}\n", "P3@2:2"),
        ("test \"x\" {\n\tFoo => 1,\n}\n", "P3@2:2"),
        ("test \"x\" {\n\tMeta:map => 1,\n}\n", "P1@2:7"),
        ("test \"x\" {\n\tBefore => File[\"a\"].k,\n}\n", "P1@2:21"),
    ]);
    assert_accepted("test \"x\" {\n\tFoo => X[\"a\"],\n}\n");
}

#[test]
fn edges_with_one_field() {
    rejects_once(&[
        ("A[\"x\"].k -> B[\"y\"]\n", "P1@1:19"),
        ("A[\"x\"] -> B[\"y\"].k\n", "P1@1:17"),
        ("A[\"x\"].k\n", "P1@1:9"),
        ("A[\"x\"].k -> B[\"y\"].k -> C[\"z\"].k\n", "P1@1:22"),
        ("A[\"x\"] -> file[\"y\"]\n", "P1@1:11"),
    ]);
}

#[test]
fn annotations_that_a_literal_cannot_have() {
    rejects_once(&[
        ("$x int = \"a\"\n", "P4@1:10"),
        ("$x float = 1\n", "P4@1:12"),
        ("$x str = (1)\n", "P4@1:10"),
        ("$x []int = true\n", "P4@1:12"),
        ("$x variant = 1\n", "P4@1:14"),
        ("$f = func($m map{func() int: str}) int { 1 }\n", "P4@1:6"),
    ]);
    assert_accepted("$x int = 1\n$x str = \"${y}\"\n$x float = 1.0\n$x variant = $y\n$x int = [1]\n");
}

#[test]
fn every_mistake_of_a_file_is_reported() {
    let text = "$x = [1, 2\n$y = 3 +\ntest \"a\" {\n\tp = 1,\n\tq => 2,\n\tr => ),\n}\nif $b {\n\t$z == 1\n\t$w = 5 5\n}\n$v = %\n";
    assert_eq!(
        findings(text),
        [
            "P1@1:11", "P1@2:9", "P1@4:4", "P1@6:7", "P7@9:2", "P1@10:9", "L1@12:6"
        ]
    );
}

#[test]
fn a_bracket_that_is_never_closed_spares_the_statements_at_the_margin() {
    let text = "class c {\n\ttest \"a\" {\n\t\tp => [1, 2,\n\t\tq => 3,\n\n$x = 1\n$y == 2\n";
    let found = findings(text);
    assert_eq!(found.first().map(String::as_str), Some("P1@3:14"));
    assert_eq!(found.last().map(String::as_str), Some("P7@7:1"));
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn an_unclosed_bracket_is_shown_where_it_was_opened() {
    let (_, diagnostics) = read("if $b {\n\t$x = [1, 2\n}\n");
    let first = diagnostics.iter().next().expect("an error");
    assert_eq!(first.secondary[0].span.start, 14);
    let (_, diagnostics) = read("if $b {\n");
    assert_eq!(
        diagnostics.iter().next().expect("an error").secondary[0]
            .span
            .start,
        6
    );
}

#[test]
fn nesting_is_bounded() {
    let nested = |open: &str, inner: &str, close: &str, depth: usize| {
        format!("$x = {}{inner}{}\n", open.repeat(depth), close.repeat(depth))
    };
    for (open, inner, close) in [
        ("(", "1", ")"),
        ("[", "1", "]"),
        ("{1 => ", "1", "}"),
        ("struct{a => ", "1", "}"),
        ("f(", "1", ")"),
        ("func() { ", "1", " }"),
        ("if $c { ", "1", " } else { 2 }"),
        ("not ", "$x", ""),
        ("$l[", "1", "]"),
    ] {
        assert_accepted(&nested(open, inner, close, MAXIMUM_NESTING - 1));
        let (_, diagnostics) = read(&nested(open, inner, close, 50_000));
        assert_eq!(
            diagnostics.iter().next().map(|d| d.code.code),
            Some("E0017"),
            "{open}"
        );
    }
    for (text, depth) in [
        ("if $c {\n", 255),
        ("class c {\n", 255),
        ("for $i, $v in $l {\n", 255),
    ] {
        assert_accepted(&format!("{}{}", text.repeat(depth), "}\n".repeat(depth)));
        let (_, diagnostics) = read(&text.repeat(20_000));
        assert_eq!(
            diagnostics.iter().next().map(|d| d.code.code),
            Some("E0017"),
            "{text}"
        );
    }
    for text in [
        format!("$x {}int = $y\n", "[]".repeat(50_000)),
        format!("$x {}int = $y\n", "func() ".repeat(50_000)),
        format!("if $a {{}} {}\n", "else if $a {} ".repeat(50_000)),
        format!("$x = if $a {{ 1 }} {}\n", "else if $a { 1 } ".repeat(50_000)),
        format!("$x = 1 {}\n", "+ 1 ".repeat(50_000)),
        format!("$x = $l{}\n", "[0]".repeat(50_000)),
        format!("$x = {}1\n", "$s->f <|> ".repeat(50_000)),
        format!("$x = {}1\n", "$l[0] || ".repeat(50_000)),
    ] {
        let (_, diagnostics) = read(&text);
        let error = diagnostics.iter().find(|d| d.code.code.starts_with('E'));
        assert_eq!(error.map(|d| d.code.code), Some("E0017"), "{}", &text[..40]);
    }
    assert_accepted(&format!("$x = 1{}\n", " + 1".repeat(MAXIMUM_HEIGHT - 1)));
}

#[test]
fn the_deepest_text_fits_a_small_stack() {
    // Per level as many of the parser's functions as there are precedence levels.
    let text = format!("$x = {}1\n", "1 <|> 1 or 1 and 1 == 1 + 1 * (".repeat(50_000));
    let thread = std::thread::Builder::new().stack_size(2 << 20);
    let found = thread
        .spawn(move || findings(&text))
        .expect("a thread")
        .join()
        .expect("no overflow");
    assert_eq!(found.len(), 1);
}
