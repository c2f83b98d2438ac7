//! Texts that parse, in the newest style and in the older ones.

use super::super::{BodyItemKind, ImportAlias, StmtKind, TypeKind};
use super::{assert_accepted, findings, value_of};

#[test]
fn files_without_statements_parse() {
    for text in [
        "",
        "\n",
        "\n\n\t\n",
        "# only a comment",
        "#!/usr/bin/setpoint run\n# two\n",
    ] {
        assert!(assert_accepted(text).ast.root.statements.is_empty());
    }
    assert_eq!(assert_accepted("#a\n$x = 1 # b").comments.len(), 2);
}

#[test]
fn statements_of_every_form_parse() {
    for text in [
        "iffy \"x\" {}\n",
        "$ x = 1\n",
        "$map = 1",
        "Http[\"x\"]\n",
        "Http:Server:Flag[\"f\"] -> File[$l] -> Svc[\"s\"]\n",
        "A[\"x\"].k -> B [\"y\"] . p\n",
        "if $b {}\n",
        "if $b {\n\ttest \"x\" {}\n} else {\n}\n",
        "if $a {} else if $b {} else {}\n",
        "for $i, $v in [1, 2] {\n}\n",
        "forkv $k, $v in {} {\n\tinclude c($k)\n}\n",
        "class c {}\nclass d() {}\nclass a:b($x, $y int) {\n}\n",
        "include c\ninclude c()\ninclude a.b(1) as d\ninclude map\ninclude collect.x\n",
        "import \"fmt\"\nimport \"x\" as y\nimport \"z\" as *\n",
        "func f($a, $b int) str {\n\n\t\"x\"\n\n}\n",
        "func f() { 1 }\n",
        "panic(true)\npanic($b, \"why\")\npanic(\n\t$b,\n)\n",
        "collect file $names {\n}\n",
        "test map.names() {}\n",
        "a:b [\"x\", \"y\"] { p => 1, q => $c ?: 2, }\n",
        "test \"x\" {\n\n\tp => 1, q => 2,\n\n\t# why\n\tr => 3,\n}\n",
        "test \"x\" {\n\tBefore => File[\"a\"],\n\tDepend => $b ?: Pkg[$l],\n\tMeta : noop => true,\n\tMeta => $b ?: struct{noop => true},\n}\n",
    ] {
        assert_accepted(text);
    }
}

#[test]
fn containers_parse_on_one_line_and_on_several() {
    for (text, expected) in [
        ("[1, 2]", "[1 2]"),
        ("[]", "[]"),
        ("[\n]", "[]"),
        ("[\n\t1,\n\n\t# two\n\t2, # end\n]", "[1 2]"),
        ("{\n}", "{}"),
        ("{\"a\" => 1}", "{\"a\"=>1}"),
        ("{\n\t\"a\" => 1,\n}", "{\"a\"=>1}"),
        ("struct{}", "struct{}"),
        ("struct {\n}", "struct{}"),
        ("struct{\n\ta => [\n\t\t1,\n\t],\n}", "struct{a=>[1]}"),
        ("f(\n)", "(call f)"),
        ("f(\n\t1,\n\t2,\n)", "(call f 1 2)"),
        ("func(\n\t$a,\n\t$b int,\n) { $a }", "(func [$a $b] $a)"),
        ("if $c {\n\t1\n} else {\n\n\t2\n}", "(if $c 1 else 2)"),
    ] {
        assert_eq!(value_of(&format!("$x = {text}\n")), expected, "{text}");
    }
}

#[test]
fn the_comma_behind_the_last_element_is_optional() {
    for (text, expected) in [
        ("[6, 7, 8,]", "[6 7 8]"),
        ("{\"a\" => 1,}", "{\"a\"=>1}"),
        ("struct{a => 1,}", "struct{a=>1}"),
        ("f(1,)", "(call f 1)"),
        ("func($a,) { 1 }", "(func [$a] 1)"),
        ("[\n\t1,\n\t2\n]", "[1 2]"),
        ("{\n\t\"a\" => 1 # c\n\n}", "{\"a\"=>1}"),
        ("struct{\n\ta => 1\n}", "struct{a=>1}"),
        ("f(\n\t1\n)", "(call f 1)"),
        ("func(\n\t$a\n) { 1 }", "(func [$a] 1)"),
    ] {
        assert_eq!(value_of(&format!("$x = {text}\n")), expected, "{text}");
    }
    assert_accepted("include c(1,)\nclass c($a,) {}\n$f func(int,) str = $g\n$f func(\n\tint\n) str = $g\n");
}

#[test]
fn bodies_and_statements_may_share_a_line() {
    for (text, count) in [
        ("if $b { test \"x\" {} }\n", 1),
        ("class c { $x = 1 }\n", 1),
        ("class c { $x = 1 $y = 2 test \"x\" { a => $x, } }\n", 1),
        ("$x = 1 $y = 2\n", 2),
        ("$x = $y test \"a\" {}\n", 2),
        ("import \"fmt\" import \"x\" as *\n", 2),
        ("include c include d\n", 2),
        ("$x = $s A[\"x\"] -> B[\"y\"]\n", 2),
        ("class a {} class b {} if $c {} $x = 1", 4),
        ("$x = true panic(true)\n", 2),
        ("$x = 1 -1 $y = 2 -1\n", 2),
    ] {
        assert_eq!(assert_accepted(text).ast.root.statements.len(), count, "{text}");
    }
}

#[test]
fn types_parse_with_their_older_spellings() {
    for (annotation, shown) in [
        ("map{str: int}", "map"),
        ("{str: float}", "map"),
        ("{[]str: {str: int}}", "map"),
        ("[][]{str: int}", "list"),
        ("struct{}", "struct"),
        ("struct{a int; b []str}", "struct"),
        ("func() int", "func"),
        ("func($s str, int) int", "func"),
        ("func(s str) int", "func"),
        ("func(bool, []str, {str: float}) struct{foo str; bar int}", "func"),
        (
            "func(\n\tint,\n\t# second\n\t$b str,\n) func(int) {str: int}",
            "func",
        ),
    ] {
        let text = format!("$x {annotation} = $y\n");
        let parsed = assert_accepted(&text);
        let StmtKind::Bind(bind) = &parsed.ast.stmt(parsed.ast.root.statements[0]).kind else {
            panic!()
        };
        let kind = match bind.annotation.as_ref().expect("a type").kind {
            TypeKind::Map { .. } => "map",
            TypeKind::List(_) => "list",
            TypeKind::Struct(_) => "struct",
            TypeKind::Func { .. } => "func",
            TypeKind::Bool | TypeKind::Str | TypeKind::Int | TypeKind::Float | TypeKind::Variant => "simple",
        };
        assert_eq!(kind, shown, "{annotation}");
    }
}

#[test]
fn a_brace_behind_parameters_is_a_type_only_if_it_clearly_is_one() {
    for (text, has_result) in [
        ("func f($x) {str: int} { {\"a\" => $x} }\n", true),
        ("func f($x) { {\"a\" => $x} }\n", false),
        ("func f() { { 1 => 2 } }\n", false),
        ("func f() map{str: int} { {} }\n", true),
        ("func f() []{str: int} { [] }\n", true),
        ("func f() { [] }\n", false),
    ] {
        let parsed = assert_accepted(text);
        let StmtKind::Func(func) = &parsed.ast.stmt(parsed.ast.root.statements[0]).kind else {
            panic!()
        };
        assert_eq!(func.function.result.is_some(), has_result, "{text}");
    }
    assert_eq!(findings("func f() {[]str: int} { 1 }\n"), ["P1@1:13"]);
}

#[test]
fn map_keys_may_be_of_any_type_without_functions() {
    assert_accepted("$x map{[]str: int} = $y\n$z map{map{int: int}: struct{}} = {}\n");
    assert_eq!(findings("$x map{func() int: int} = $y\n"), ["P4@1:27"]);
}

#[test]
fn the_parts_of_statements_are_kept() {
    let parsed = assert_accepted("import \"x\" as y import \"z\" as *\nHttp:Server[\"a\"].k -> B[\"b\"].l\n");
    let kinds: Vec<_> = parsed
        .ast
        .root
        .statements
        .iter()
        .map(|id| &parsed.ast[*id].kind)
        .collect();
    let StmtKind::Import(first) = kinds[0] else {
        panic!()
    };
    assert_eq!(&*first.path.text, "x");
    assert!(matches!(&first.alias, Some(ImportAlias::Name(name)) if &*name.text == "y"));
    let StmtKind::Edge(edge) = kinds[2] else { panic!() };
    assert_eq!(&*edge.endpoints[0].kind.text, "http:server");
    assert_eq!(
        edge.endpoints[1].field.as_ref().map(|name| &*name.text),
        Some("l")
    );
}

#[test]
fn body_items_span_from_name_to_comma_and_keep_their_condition() {
    let text = "a:b \"x\" {\n\tp => $c ?: 1 ,\n\tMeta:noop => true,\n\tBefore => $c ?: File[\"a\"],\n\tMeta => $m,\n}\n";
    let parsed = assert_accepted(text);
    let StmtKind::Resource(resource) = &parsed.ast[parsed.ast.root.statements[0]].kind else {
        panic!()
    };
    assert_eq!(&*resource.kind.text, "a:b");
    let item = |index: usize| &resource.items[index];
    let source = |index: usize| &text[item(index).span.start as usize..item(index).span.end as usize];
    assert_eq!(source(0), "p => $c ?: 1 ,");
    assert!(item(0).condition.is_some());
    assert!(matches!(&item(1).kind, BodyItemKind::Meta { name, .. } if &*name.text == "noop"));
    assert!(
        matches!(&item(2).kind, BodyItemKind::EdgeProperty { property, .. } if &*property.text == "Before")
    );
    assert!(item(2).condition.is_some());
    assert!(matches!(item(3).kind, BodyItemKind::MetaStruct { .. }));
}

#[test]
fn the_samples_of_the_language_guides_parse() {
    for text in [
        "$x = {\"boiling\" => 100, \"freezing\" => 0, \"house\" => 22, \"canada\" => -30,}",
        "$x = struct{answer => \"42\", james => \"awesome\", is_mgmt_awesome => true,}",
        "file \"/tmp/hello\" {\n\tcontent => \"world\",\n\tmode => \"o=rwx\",\n}",
        "file \"/tmp/hello\" { content => \"world\", mode => \"o=rwx\", }",
        "import \"fmt\" as *\t# contents namespaced into top-level names\n",
        "import \"git://github.com/purpleidea/mgmt-example1/\"\n",
        "file \"/tmp/f1\" {\n\tcontent => \"hello!\\n\",\n\n\tMeta => $b ?: struct{\n\t\tnoop => false,\n\t\tretry => -1,\n\t\tsema => [\"foo:1\", \"bar:3\",],\n\t},\n}\n",
        "class c1($a, $b) {\n\t# nested\n\tclass c2($c) {\n\t\ttest $a {\n\t\t\tstringptr => fmt.printf(\"%s is %d\", $b, $c),\n\t\t}\n\t}\n\n\tif $a == \"t1\" {\n\t\tinclude c2(42)\n\t}\n}\n",
        "class base() {\n}\nclass base:inner:deepest() {\n}\n",
        "include c1 as i1\ninclude i1.c0 as i0\n",
        "$x = if $b {\n\t42\n} else {\n\t-13\n}\n",
        "$b = true # for example purposes\nif $b {\n\tpkg \"drbd\" {\n\t\tstate => \"installed\",\n\n\t\t# multiple\n\t\tBefore => File[\"/etc/drbd.conf\"],\n\t\tBefore => Svc[\"drbd\"],\n\t}\n}\n",
        "file \"/tmp/mgmt-elvis\" {\n\tstate => $const.res.file.state.exists,\n}\n",
    ] {
        assert_accepted(text);
    }
}
