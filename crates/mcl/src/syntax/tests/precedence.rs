//! How operators group.

use super::{findings, value_of};

#[track_caller]
fn groups(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_eq!(value_of(&format!("$x = {text}\n")), *expected, "{text}");
    }
}

#[test]
fn arithmetic_binds_tighter_than_comparison_and_comparison_than_logic() {
    groups(&[
        ("4 + 3 * 12", "(+ 4 (* 3 12))"),
        ("3 * 12 + 4", "(+ (* 3 12) 4)"),
        ("3 * (12 + 4)", "(* 3 <(+ 12 4)>)"),
        ("1 - 2 - 3", "(- (- 1 2) 3)"),
        ("3 + 4 > 5", "(> (+ 3 4) 5)"),
        ("3 > 4 + 5", "(> 3 (+ 4 5))"),
        ("7 < 4 and true", "(and (< 7 4) true)"),
        ("true or false and false", "(or true (and false false))"),
        ("1 + 2 in [3]", "(in (+ 1 2) [3])"),
        ("\"a\" + \"b\" in [\"ab\"]", "(in (+ \"a\" \"b\") [\"ab\"])"),
    ]);
}

#[test]
fn not_binds_tighter_than_everything_but_lookups() {
    groups(&[
        ("not 3 > 4", "(> (not 3) 4)"),
        ("not $a and $b", "(and (not $a) $b)"),
        ("not not $a", "(not (not $a))"),
        ("not $a == $b", "(== (not $a) $b)"),
        ("not $a->b[0]", "(not (at (field $a b) 0))"),
        ("1 + not $b", "(+ 1 (not $b))"),
    ]);
}

#[test]
fn lookups_chain_and_apply_to_any_operand() {
    groups(&[
        ("$a->b->c", "(field (field $a b) c)"),
        ("$a[0][1]", "(at (at $a 0) 1)"),
        ("f()->a[0]", "(at (field (call f) a) 0)"),
        ("[1, 2][0]", "(at [1 2] 0)"),
        ("struct{a => 1}->a", "(field struct{a=>1} a)"),
        ("$m[\"k\"]->x[0]", "(at (field (at $m \"k\") x) 0)"),
        ("if $c { 1 } else { 2 } + 3", "(+ (if $c 1 else 2) 3)"),
        ("func() { 1 }()", "(call (func [] 1))"),
        ("func($f) { $f }(2)", "(call (func [$f] $f) 2)"),
        ("1 + 2 -> f", "(+ 1 (field 2 f))"),
    ]);
}

#[test]
fn except_binds_least_but_belongs_to_a_field_directly_before_it() {
    groups(&[
        ("1 + $s->a <|> 2", "(+ 1 (field $s a or 2))"),
        ("1 + $l[0] <|> 2", "(except (+ 1 (at $l 0)) 2)"),
        ("$s->a <|> 2 + 3", "(field $s a or (+ 2 3))"),
        ("1 + $s->a <|> 2 + 3", "(+ 1 (field $s a or (+ 2 3)))"),
        ("$s->a <|> $x <|> 0", "(except (field $s a or $x) 0)"),
        ("$l[0] <|> $s->a <|> 0", "(except (at $l 0) (field $s a or 0))"),
        ("($s->a) <|> 0", "(except <(field $s a)> 0)"),
        (
            "$l[41] <|> $l[42] <|> \"d\"",
            "(except (except (at $l 41) (at $l 42)) \"d\")",
        ),
        (
            "$m[\"k\"] <|> \"b\" + \"c\"",
            "(except (at $m \"k\") (+ \"b\" \"c\"))",
        ),
        ("$s->a <|> $t->b <|> 0", "(field $s a or (field $t b or 0))"),
        (
            "not $s->a <|> true and false",
            "(not (field $s a or (and true false)))",
        ),
        ("$a == $s->f <|> $b == $c", "(== $a (field $s f or (== $b $c)))"),
    ]);
}

#[test]
fn the_older_default_belongs_to_the_lookup_before_it() {
    groups(&[
        ("1 + $l[0] || 2", "(+ 1 (except (at $l 0) 2))"),
        ("$l[0] || 2 + 3", "(except (at $l 0) (+ 2 3))"),
        ("$l[0] || $l[1] || 2", "(except (at $l 0) (except (at $l 1) 2))"),
        ("1 + $s->f || 2", "(+ 1 (field $s f or 2))"),
        ("not $m[\"a\"] || true", "(not (except (at $m \"a\") true))"),
    ]);
    assert_eq!(findings("$x = $l[0] || 2\n"), ["W0001@1:12"]);
    assert_eq!(findings("$x = $s->f || 2\n"), ["W0001@1:12"]);
    assert_eq!(findings("$x = ($l[0]) || 2\n"), ["L1@1:14"]);
    assert_eq!(findings("$x = $y || 2\n"), ["L1@1:9"]);
    assert_eq!(findings("$x = $l[0] || 2 || 3\n"), ["W0001@1:12", "L1@1:17"]);
}

#[test]
fn a_minus_at_a_number_subtracts_where_an_operator_must_stand() {
    groups(&[
        ("$i - 1", "(- $i 1)"),
        ("$i -1", "(- $i 1)"),
        ("$i-1", "(- $i 1)"),
        ("2-1", "(- 2 1)"),
        ("f()-1", "(- (call f) 1)"),
        ("$l[0] -1", "(- (at $l 0) 1)"),
        ("2-1*3", "(- 2 (* 1 3))"),
        ("2*3-1", "(- (* 2 3) 1)"),
        ("1-2-3", "(- (- 1 2) 3)"),
        ("1 - -1", "(- 1 -1)"),
        ("1--1", "(- 1 -1)"),
        ("-1 * 4", "(* -1 4)"),
        ("-25.5 + 32.5", "(+ -25.5 32.5)"),
        ("3 > 2-1.5", "(> 3 (- 2 1.5))"),
        ("[1 -1, -1]", "[(- 1 1) -1]"),
        ("-0", "0"),
        ("-0.0", "-0.0"),
        ("01134", "1134"),
        ("-9223372036854775808", "-9223372036854775808"),
    ]);
    assert_eq!(findings("$x = 1 -9223372036854775808\n"), ["L3@1:9"]);
    assert_eq!(findings("$x = 9223372036854775808\n"), ["L3@1:6"]);
    let long = "9".repeat(400);
    assert_eq!(findings(&format!("$x = {long}.0\n")), ["L4@1:6"]);
}

#[test]
fn branches_and_names_keep_what_was_written() {
    groups(&[
        (
            "if $a { 1 } else if $b { 2 } else { 3 }",
            "(if $a 1 elif (if $b 2 else 3))",
        ),
        ("$ foo . bar", "$foo.bar"),
        ("a. b .c()", "(call a.b.c)"),
        ("$a.b.c(1)", "(call $a.b.c 1)"),
        ("$map", "$map"),
        ("$collect", "$collect"),
        ("map.lookup($m, 1)", "(call map.lookup $m 1)"),
        ("collect.res(\"k\")", "(call collect.res \"k\")"),
        ("iter.map($l, $f)", "(call iter.map $l $f)"),
        ("contains($a, $b)", "(call contains $a $b)"),
        ("trueish()", "(call trueish)"),
        ("\"a\\\\\" + \"b\"", "(+ \"a\\\\\\\\\" \"b\")"),
        ("\"# no comment\"", "\"# no comment\""),
    ]);
}
