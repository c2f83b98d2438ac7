//! Tests of the formatter: text in, text out; and laws over generated programs.

mod laws;

use super::{FormatError, format};

#[track_caller]
fn formats(text: &str, expected: &str) {
    match format(text) {
        Ok(formatted) => assert_eq!(formatted, expected),
        Err(error) => panic!("{error}: {text}"),
    }
}

#[track_caller]
fn keeps(text: &str) {
    formats(text, text);
}

#[test]
fn spaces_are_normal() {
    formats("$x=42 # c\n", "$x = 42 # c\n");
    formats("$  x   =  1+2  *3\n", "$x = 1 + 2 * 3\n");
    formats(
        "$x=$ a . b [ 0 ] -> f<|>not   $c\n",
        "$x = $a.b[0]->f <|> not $c\n",
    );
    formats("$x=f ( 1 ,2,3 , )in[ 1,2 ]\n", "$x = f(1, 2, 3) in [1, 2]\n");
    formats(
        "$x={ 1=>2 , 3=>4 }\n$y=struct { a=>1 }\n",
        "$x = {1 => 2, 3 => 4}\n$y = struct{a => 1}\n",
    );
    formats(
        "$x=func( $a,$b int )str{$a}\n",
        "$x = func($a, $b int) str { $a }\n",
    );
    formats("$x=if $c{1}else{2}\n", "$x = if $c { 1 } else { 2 }\n");
    formats(
        "A[\"x\"]->B[\"y\"]\nA[\"x\"] . k->B[\"y\"].l\n",
        "A[\"x\"] -> B[\"y\"]\nA[\"x\"].k -> B[\"y\"].l\n",
    );
    formats("Http : Server[ \"a\" ]\n", "Http:Server[\"a\"]\n");
    formats(
        "import  \"x\"as*\nimport \"y\"  as  z\n",
        "import \"x\" as *\nimport \"y\" as z\n",
    );
    formats(
        "for $i,$v in$l{}\nforkv $k,$v in {}{}\n",
        "for $i, $v in $l {}\nforkv $k, $v in {} {}\n",
    );
    formats(
        "class a : b( $x ){}\ninclude a.b ( 1 )as c\n",
        "class a:b($x) {}\ninclude a.b(1) as c\n",
    );
    formats("panic ( $b,\"why\" )\n", "panic($b, \"why\")\n");
    formats("collect  file $n{}\n", "collect file $n {}\n");
}

#[test]
fn parentheses_are_kept_and_not_added() {
    keeps("$x = (1 + (2)) * 3\n$y = ($s->a) <|> 0\n$z = 1 + $s->a <|> 2\n");
    keeps("include c()\ninclude c\nclass d() {}\nclass e {}\n");
}

#[test]
fn literals_have_one_form() {
    formats(
        "$x = [01134, -0, 1.50, 42.0, -0.0, 007.250]\n",
        "$x = [1134, 0, 1.5, 42.0, -0.0, 7.25]\n",
    );
    keeps("$x = 100000000000000000000000.0\n$y = 0.000000000000000000001\n");
    keeps("$x = \"a\\z  \t ${q}\nb\n\n\n  c\" + \"d\"\n");
}

#[test]
fn blank_lines_collapse_and_ends_are_trimmed() {
    formats("\n\n$x = 1\n\n\n\n$y = 2\n\n\n", "$x = 1\n\n$y = 2\n");
    formats("$x = 1", "$x = 1\n");
    formats("", "");
    formats("\n \n", "");
    formats("# only", "# only\n");
    formats("\n\n# a\n\n\n# b\n\n", "# a\n\n# b\n");
    formats("if $b {\n\n\n\t$x = 1\n\n\n}\n", "if $b {\n\n\t$x = 1\n\n}\n");
}

#[test]
fn bodies_have_one_line_an_item() {
    formats(
        "file \"/a\" { content=>\"b\", mode => $c?:\"0600\", Meta:noop=>true, Before=>$b ?: File[\"x\"], }\n",
        "file \"/a\" {\n\tcontent => \"b\",\n\tmode => $c ?: \"0600\",\n\tMeta:noop => true,\n\tBefore => $b ?: File[\"x\"],\n}\n",
    );
    formats("test \"x\" {\n\n}\n", "test \"x\" {}\n");
    formats("test \"x\" { # why\n}\n", "test \"x\" { # why\n}\n");
    keeps("test \"x\" {\n\tMeta => struct{\n\t\tnoop => true,\n\t},\n}\n");
}

#[test]
fn blocks_are_indented_and_empty_ones_short() {
    formats(
        "class c { $x=1 if $x==1{test \"a\" {}}else{} }\n",
        "class c {\n\t$x = 1\n\tif $x == 1 {\n\t\ttest \"a\" {}\n\t} else {}\n}\n",
    );
    formats("if $c {\n} else {\n$x = 1\n}\n", "if $c {} else {\n\t$x = 1\n}\n");
    formats(
        "if $a {} else if $b { $x = 1 } else {}\n",
        "if $a {} else if $b {\n\t$x = 1\n} else {}\n",
    );
    formats("$x = 1 $y = 2 # both\n", "$x = 1\n$y = 2 # both\n");
    formats("class c { $x = 1 } # end\n", "class c {\n\t$x = 1\n} # end\n");
}

#[test]
fn one_line_and_several_lines_stay_as_written() {
    keeps("$x = [1, 2]\n$y = [\n\t1,\n\t2,\n]\n");
    keeps("$x = f([\n\t1,\n], {\n\t\"a\" => [2],\n})\n");
    keeps("$x = func(\n\t$a,\n\t$b int,\n) str {\n\t$a\n}\n");
    keeps("$x = if $c {\n\t1\n} else {\n\t2\n}\n");
    keeps("$x = if $a {\n\t1\n} else if $b {\n\t2\n} else {\n\t3\n}\n");
    formats(
        "$x = if $c {\n1 } else { 2 }\n",
        "$x = if $c {\n\t1\n} else {\n\t2\n}\n",
    );
    formats("$x = if $c { 1 } else {\n2\n}\n", "$x = if $c { 1 } else { 2 }\n");
    formats(
        "$x = [\n\t1\n]\n$y = f(\n1\n)\n",
        "$x = [\n\t1,\n]\n$y = f(\n\t1,\n)\n",
    );
    formats(
        "$x = [1, 2,]\n$y = [\n]\n$z = struct{\n}\n",
        "$x = [1, 2]\n$y = []\n$z = struct{}\n",
    );
    formats("func f() {\n\n\n1\n\n}\n", "func f() {\n\n\t1\n\n}\n");
}

#[test]
fn older_spellings_become_the_newest() {
    formats("$x = 1 + $l[0] || 2\n", "$x = 1 + ($l[0] <|> 2)\n");
    formats(
        "$x = $l[0] || $l[1] || 2 + 3\n",
        "$x = $l[0] <|> ($l[1] <|> 2 + 3)\n",
    );
    formats(
        "$x = $s->f || $m[\"a\"] || 1\n",
        "$x = $s->f <|> ($m[\"a\"] <|> 1)\n",
    );
    formats("$x = $l[0] || 1 <|> 2\n", "$x = $l[0] <|> 1 <|> 2\n");
    formats("$x = not $l[0] || true\n", "$x = not ($l[0] <|> true)\n");
    formats("$x = $i-1\n$y = 2 -1.5\n", "$x = $i - 1\n$y = 2 - 1.5\n");
    formats(
        "$x func(s str, {str: int}) int = $y\n",
        "$x func($s str, map{str: int}) int = $y\n",
    );
    formats("func f() {str: int} { {} }\n", "func f() map{str: int} { {} }\n");
}

#[test]
fn types_take_one_line() {
    keeps("$x struct{a int; b []func() map{str: float}} = $y\n");
    formats(
        "$x func(\n\tint,\n\t$b str,\n) bool = $y\n",
        "$x func(int, $b str) bool = $y\n",
    );
    formats(
        "$x func(\n\tint, # one\n\t# two\n\tstr,\n) bool = $y # end\n",
        "# one\n# two\n$x func(int, str) bool = $y # end\n",
    );
}

#[test]
fn comments_stay_where_they_are() {
    keeps("# first\n\n#!second  \n$x = 1 #third\n# fourth\n\n# fifth\n");
    keeps("$x = [ # a\n\t# b\n\t1, # c\n\n\t# d\n\t2, # e\n\t# f\n] # g\n");
    keeps("$x = [ # a\n]\n$y = {\n\t# b\n}\n$z = struct{ # c\n}\n$w = f(\n\t# d\n)\n");
    keeps("if $c { # a\n\t# b\n} else { # c\n\t$x = 1 # d\n\t# e\n} # f\n");
    keeps("$x = if $c { # a\n\t1 # b\n\t# c\n} else { # d\n\t2 # e\n} # f\n");
    keeps("class c($a, $b) { # a\n\t# b\n}\nclass d(\n\t# a\n\t$a, # b\n\n\t$b int, # c\n\t# d\n) {}\n");
    keeps("test \"x\" { # a\n\n\tp => 1, # b\n\t# c\n\tq => [ # d\n\t\t2, # e\n\t], # f\n\n\t# g\n} # h\n");
    keeps("$x = f(func($a) {\n\t# why\n\t$a\n}, 1)\n");
    formats(
        "$x = if $c { 1 } else { # why\n2 }\n",
        "$x = if $c {\n\t1\n} else { # why\n\t2\n}\n",
    );
    formats("$x = [\n1 # a\n]\n", "$x = [\n\t1, # a\n]\n");
    formats("$x = [\n1 , # a\n]\n", "$x = [\n\t1, # a\n]\n");
    formats("func f() { 1 # a\n}\n", "func f() {\n\t1 # a\n}\n");
    formats("        # deep\n$x = 1\n", "# deep\n$x = 1\n");
}

#[test]
fn a_text_that_does_not_parse_is_left_alone() {
    let Err(FormatError::Syntax(diagnostics)) = format("$x = \n") else {
        panic!("formatted")
    };
    assert_eq!(diagnostics.len(), 1);
}

#[test]
fn the_deepest_text_formats_on_a_small_stack() {
    let text = format!(
        "{}$x = {}1{}{}\n{}",
        "if $c {\n".repeat(100),
        "f(".repeat(150),
        " + 1".repeat(300),
        ")".repeat(150),
        "}\n".repeat(100)
    );
    let thread = std::thread::Builder::new().stack_size(2 << 20);
    let formatted = thread
        .spawn(move || format(&text))
        .expect("a thread")
        .join()
        .expect("no overflow");
    assert!(formatted.is_ok());
}
