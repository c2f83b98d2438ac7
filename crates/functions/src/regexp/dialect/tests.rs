//! What the dialect has, and what it has not.

use super::*;

fn compiled(pattern: &str) -> Result<regex::Regex, String> {
    let translated = translate(pattern)?;
    Ok(regex::Regex::new(&translated.pattern)
        .unwrap_or_else(|error| panic!("{pattern} became {}: {error}", translated.pattern)))
}

#[test]
fn patterns_mean_what_they_mean_in_go() {
    for (pattern, text, matches) in [
        (r"^\d+$", "12", true),
        (r"^\d+$", "١٢", false),
        (r"^\w$", "é", false),
        (r"\Qa.b\E.", "a.bc", true),
        (r"\Qa.b\E.", "axbc", false),
        (r"^\Qab\E+$", "abbb", true),
        ("a{,2}", "a{,2}", true),
        ("^a{01}$", "a{01}", true),
        ("x{2}", "xx", true),
        ("^x{0,1}$", "", true),
        (r"[[a]", "[", true),
        (r"[a&&b]", "&", true),
        (r"[^\D5]", "5", false),
        (r"[^\D5]", "4", true),
        (r"[[:alpha:]\d]", "7", true),
        (r"[[:^alpha:]]", "7", true),
        (r"^[[:foo]$", "[", true),
        (r"\bfoo\b", "a foo b", true),
        (r"\bfoo\b", "éfoo", true),
        (r"\<foo\>", "<foo>", true),
        (r"\<foo", "foo", false),
        (r"^\101\x42\x{43}$", "ABC", true),
        (r"^\0$", "\0", true),
        (r"^\08$", "\u{0}8", true),
        ("(?i)ÄB", "äb", true),
        (r"\p{Greek}", "α", true),
        (r"\p{^Greek}", "α", false),
        (r"\P{^Greek}", "α", true),
        (r"^[\p{^Lu}x]$", "A", false),
        (r"^\pL$", "é", true),
        (r"^\p{Any}$", "é", true),
        ("[]a]", "]", true),
        (r"^[+--]$", ",", true),
        (r"^[a-]$", "-", true),
        (r"^[\d-z]$", "-", true),
        ("(?s).", "\u{fffd}", true),
        ("(?P<name>a)(?:b)", "ab", true),
        ("(?<name>a)", "a", true),
        ("(?P<1st>a)", "a", true),
        ("^(?)a(?i-s:B)$", "ab", true),
        ("(?ii)A", "a", true),
        ("a b", "ab", false),
        ("^#$", "#", true),
        ("(^*)a", "a", true),
        ("(?:a{10}){10}", "a", false),
    ] {
        let regex = compiled(pattern).unwrap_or_else(|problem| panic!("{pattern}: {problem}"));
        assert_eq!(regex.is_match(text), matches, "{pattern} on {text}");
    }
}

#[test]
fn what_the_dialect_lacks_is_refused() {
    for (pattern, problem) in [
        ("(?x)a", "flags other than"),
        ("(?u)a", "flags other than"),
        ("(?R)a", "flags other than"),
        ("(?i-)a", "flags other than"),
        ("(?=a)", "flags other than"),
        ("(?i", "closing `)` is missing"),
        ("(?P=name)", "flags other than"),
        ("a**", "`*` follows another repetition"),
        ("a{2}{3}", "`{3}` follows another repetition"),
        ("a*+", "follows another repetition"),
        ("*a", "nothing stands before `*`"),
        ("a|*", "nothing stands before `*`"),
        ("{2}", "nothing stands before `{2}`"),
        ("a{1001}", "more than 1000 times"),
        ("(a{100}){11}", "more than 1000 times"),
        ("a{3,2}", "greater number first"),
        ("[a--b]", "the range `a--` ends before it begins"),
        ("[b-a]", "the range `b-a` ends before it begins"),
        ("[[:foo:]]", "there is no class `[:foo:]`"),
        (r"[\b]", r"there is no escape `\b`"),
        (r"[a-\d]", r"there is no escape `\d`"),
        (r"\p{Emoji}", r"`\p{Emoji}` names neither"),
        (r"\p{gc=Lu}", "names neither"),
        (r"\1", r"there is no escape `\1`"),
        (r"\8", r"there is no escape `\8`"),
        (r"\E", r"there is no escape `\E`"),
        (r"\C", r"there is no escape `\C`"),
        (r"\Z", r"there is no escape `\Z`"),
        (r"\u0041", r"there is no escape `\u`"),
        (r"\é", r"there is no escape `\é`"),
        (r"\x{}", r"there is no escape `\x{}`"),
        (r"\x4", r"there is no escape `\x4`"),
        ("a\\", "ends with a `\\`"),
        ("(a", "closing `)` is missing"),
        ("a)", "without its `(`"),
        ("[a", "closing `]` is missing"),
        ("[]", "closing `]` is missing"),
        ("(?P<a>x)(?P<a>y)", "two groups have the name `a`"),
        ("(?P<a b>x)", "is not a name for a group"),
    ] {
        match compiled(pattern) {
            Ok(_) => panic!("{pattern} is accepted"),
            Err(said) => assert!(said.contains(problem), "{pattern}: {said}"),
        }
    }
}

#[test]
fn names_are_in_the_order_of_their_groups() {
    let names = translate("(a)(?P<x>b(?:c)(?<y>d))").expect("valid").names;
    assert_eq!(names, [None, Some("x".to_owned()), Some("y".to_owned())]);
}
