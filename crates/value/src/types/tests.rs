//! Types are written and read.

use super::*;

#[test]
fn canonical_spellings_survive_a_round_trip() {
    for text in [
        "bool",
        "str",
        "int",
        "float",
        "[]str",
        "[][]int",
        "map{str: int}",
        "map{struct{a int; b str}: map{int: float}}",
        "struct{}",
        "struct{a int; b []str}",
        "func() str",
        "func(a int, b func(x ?1) ?2) ?1",
        "set{int}",
        "tuple(int, str)",
        "int?",
        "dynamic",
    ] {
        assert_eq!(Type::parse(text).map(|t| t.to_string()).as_deref(), Some(text));
    }
}

#[test]
fn bad_spellings_give_nothing() {
    for text in [
        "",
        " int",
        "int ",
        "map{}",
        "map{int}",
        "struct{a int; a str}",
        "func(a int, a int) int",
        "?0",
        "?x",
        "[]",
    ] {
        assert_eq!(Type::parse(text), None, "{text:?}");
    }
}

#[test]
fn field_order_counts_and_parameter_names_do_not() {
    assert_ne!(
        Type::parse("struct{a int; b str}"),
        Type::parse("struct{b str; a int}")
    );
    assert_eq!(Type::parse("func(x int) str"), Type::parse("func(y int) str"));
}

#[test]
fn types_nest_so_deep_and_no_deeper() {
    for (open, close) in [
        ("[]", ""),
        ("struct{a ", "}"),
        ("map{str: ", "}"),
        ("func(", ") int"),
        ("", "?"),
    ] {
        let nested = |depth: usize| format!("{}int{}", open.repeat(depth), close.repeat(depth));
        assert!(Type::parse(&nested(99)).is_some(), "{open}");
        assert_eq!(Type::parse(&nested(100)), None, "{open}");
        // Without the bound this takes minutes, or all of the stack.
        assert_eq!(Type::parse(&nested(20_000)), None, "{open}");
    }
}

#[test]
fn a_field_is_found_among_few_and_among_many() {
    for count in [0, 1, 15, 16, 17, 100, 1000] {
        let names = (0..count).map(|i| format!("k{}", i * 7919 % 1009));
        let ty = Type::structure(
            names
                .enumerate()
                .map(|(i, name)| (name, if i % 2 == 0 { Type::Int } else { Type::Str })),
        );
        let fields = ty.as_struct().unwrap();
        for (i, field) in fields.fields.iter().enumerate() {
            assert_eq!(fields.index(&field.name), Some(i));
            assert_eq!(fields.field(&field.name), Some(&field.ty));
        }
        assert_eq!(fields.index("k"), None);
        assert_eq!(fields.field("k1009"), None);
        assert_eq!(ty, ty.replace(&mut |_| None));
    }
}
