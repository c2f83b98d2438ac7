//! The inside of strings.

use setpoint_diagnostics::{FileId, Span};

use super::super::{Piece, StringErrorKind, interpolate};

fn span(raw: &str) -> Span {
    Span::new(FileId(0), 100, 102 + raw.len() as u32)
}

/// The pieces, variables in angle brackets.
fn pieces(raw: &str) -> Vec<String> {
    let pieces = interpolate(raw, span(raw)).unwrap_or_else(|error| panic!("{raw}: {error:?}"));
    let shown = pieces.into_iter().map(|piece| match piece {
        Piece::Text(text) => text,
        Piece::Variable { name, .. } => format!("<{name}>"),
    });
    shown.collect()
}

#[test]
fn variables_and_texts_take_turns() {
    for (raw, expected) in [
        ("", vec![""]),
        ("plain", vec!["plain"]),
        ("${x}", vec!["<x>"]),
        ("x: ${x}", vec!["x: ", "<x>"]),
        ("${x}${y}", vec!["<x>", "<y>"]),
        ("a${a.b_c.d2}b", vec!["a", "<a.b_c.d2>", "b"]),
        ("${a_}", vec!["<a_>"]),
        ("${a__b}", vec!["<a__b>"]),
        ("größe ${x} größe", vec!["größe ", "<x>", " größe"]),
    ] {
        assert_eq!(pieces(raw), expected, "{raw}");
    }
}

#[test]
fn a_dollar_without_a_brace_is_a_dollar() {
    for (raw, expected) in [
        ("$", vec!["$"]),
        ("$$", vec!["$$"]),
        ("$$$", vec!["$$$"]),
        ("$ {x}", vec!["$ {x}"]),
        ("costs $5", vec!["costs $5"]),
        ("$foo", vec!["$foo"]),
        ("$${x}", vec!["$", "<x>"]),
        ("$$${x}", vec!["$$", "<x>"]),
    ] {
        assert_eq!(pieces(raw), expected, "{raw}");
    }
}

#[test]
fn escapes_stand_for_one_character() {
    for (raw, expected) in [
        (r"\a\b\f\n\r\t\v", vec!["\u{7}\u{8}\u{c}\n\r\t\u{b}"]),
        (r#"\\ \" \$"#, vec!["\\ \" $"]),
        (r"\${x}", vec!["${x}"]),
        (r"\\${x}", vec!["\\", "<x>"]),
        (r"\\\${x}", vec![r"\${x}"]),
        (r"\\\$", vec![r"\$"]),
        ("a\nb", vec!["a\nb"]),
    ] {
        assert_eq!(pieces(raw), expected, "{raw}");
    }
}

#[test]
fn anything_but_a_variable_in_braces_is_an_error() {
    for (raw, unclosed) in [
        ("${}", false),
        ("${foo()}", false),
        ("${42}", false),
        ("${3.1}", false),
        ("${Foo}", false),
        ("${ foo }", false),
        ("${a b}", false),
        ("${x ${y} z}", false),
        ("${a..b}", false),
        ("${a.}", false),
        ("${bad +}", false),
        ("${foo", true),
        ("${", true),
    ] {
        let error = interpolate(raw, span(raw)).expect_err(raw);
        let expected = if unclosed {
            StringErrorKind::Unclosed
        } else {
            StringErrorKind::NotAVariable
        };
        assert_eq!(error.kind, expected, "{raw}");
        let diagnostic = error.diagnostic(raw);
        assert_eq!((diagnostic.code.rule, diagnostic.rule_place()), ("T1", span(raw)));
        assert_eq!(diagnostic.primary.span, error.inner);
    }
}

#[test]
fn unknown_escapes_are_errors_at_the_string_with_the_place_inside() {
    for (raw, inner) in [
        (r"\z", 101..103),
        (r"\0", 101..103),
        (r"he\ llo", 103..105),
        (r"\x41", 101..103),
        ("\\ü", 101..104),
    ] {
        let error = interpolate(raw, span(raw)).expect_err(raw);
        assert_eq!(error.inner.start..error.inner.end, inner, "{raw}");
        let diagnostic = error.diagnostic(raw);
        assert_eq!((diagnostic.code.rule, diagnostic.rule_place()), ("T2", span(raw)));
        assert_eq!(diagnostic.primary.span, error.inner);
    }
    assert!(interpolate("a\\\nb", span("....")).is_err());
}
