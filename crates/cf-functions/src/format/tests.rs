//! Each row is what Python's `format` answers, which is the standard of this small language.

use super::*;
use crate::testing::{World, nowhere};

/// The text of a value that is no float without a fraction, for a specification.
fn formatted(datum: &Datum, specification: &str) -> Result<String, String> {
    let world = World::new();
    match field(
        Whole::Datum(datum),
        None,
        specification,
        Form::Field,
        world.naming(),
    ) {
        Ok(text) => Ok(text),
        Err(Unformatted::Specification(reason)) => Err(reason),
        Err(Unformatted::NoText(refused)) => panic!("{refused:?}"),
    }
}

#[test]
fn every_presentation() {
    let cases: &[(Datum, &str, Result<&str, &str>)] = &[
        (Datum::Int(42), "", Ok("42")),
        (Datum::Int(42), "05d", Ok("00042")),
        (Datum::Int(42), "#x", Ok("0x2a")),
        (Datum::Int(42), "#X", Ok("0X2A")),
        (Datum::Int(42), "#b", Ok("0b101010")),
        (Datum::Int(42), "#o", Ok("0o52")),
        (Datum::Int(42), ",", Ok("42")),
        (Datum::Int(42), "_", Ok("42")),
        (Datum::Int(42), "%", Ok("4200.000000%")),
        (Datum::Int(42), ">6", Ok("    42")),
        (Datum::Int(42), "<6", Ok("42    ")),
        (Datum::Int(42), "^7", Ok("  42   ")),
        (Datum::Int(42), "*^7", Ok("**42***")),
        (Datum::Int(42), "=+7", Ok("+    42")),
        (Datum::Int(42), "+", Ok("+42")),
        (Datum::Int(42), "-", Ok("42")),
        (Datum::Int(42), " ", Ok(" 42")),
        (Datum::Int(42), "010,", Ok("00,000,042")),
        (Datum::Int(42), "06,", Ok("00,042")),
        (Datum::Int(42), "08,", Ok("0,000,042")),
        (Datum::Int(42), "08_x", Ok("000_002a")),
        (Datum::Int(42), "c", Ok("*")),
        (Datum::Int(42), "n", Ok("42")),
        (Datum::Int(42), "e", Ok("4.200000e+01")),
        (Datum::Int(42), ".2f", Ok("42.00")),
        (Datum::Int(42), "g", Ok("42")),
        (Datum::Int(42), "G", Ok("42")),
        (Datum::Int(42), "#g", Ok("42.0000")),
        (
            Datum::Int(42),
            ".3",
            Err("Precision not allowed in integer format specifier"),
        ),
        (
            Datum::Int(42),
            "z",
            Err("Negative zero coercion (z) not allowed in integer format specifier"),
        ),
        (
            Datum::Int(42),
            "q",
            Err("Unknown format code 'q' for object of type 'int'"),
        ),
        (
            Datum::Int(42),
            "s",
            Err("Unknown format code 's' for object of type 'int'"),
        ),
        (
            Datum::Int(42),
            "d,",
            Err("Invalid format specifier 'd,' for object of type 'int'"),
        ),
        (
            Datum::Int(42),
            "x,",
            Err("Invalid format specifier 'x,' for object of type 'int'"),
        ),
        (
            Datum::Int(42),
            "b_",
            Err("Invalid format specifier 'b_' for object of type 'int'"),
        ),
        (Datum::Int(42), "_b", Ok("10_1010")),
        (
            Datum::Int(42),
            "+c",
            Err("Sign not allowed with integer format specifier 'c'"),
        ),
        (
            Datum::Int(42),
            "#c",
            Err("Alternate form (#) not allowed with integer format specifier 'c'"),
        ),
        (
            Datum::Int(42),
            ".2d",
            Err("Precision not allowed in integer format specifier"),
        ),
        (Datum::Int(42), ",_", Err("Cannot specify both ',' and '_'.")),
        (Datum::Int(42), "_,", Err("Cannot specify both ',' and '_'.")),
        (
            Datum::Int(42),
            "1d2",
            Err("Invalid format specifier '1d2' for object of type 'int'"),
        ),
        (Datum::Int(42), "000", Ok("42")),
        (Datum::Int(42), "<05", Ok("42000")),
        (Datum::Int(42), "^05", Ok("04200")),
        (Datum::Int(42), "=5", Ok("   42")),
        (Datum::Int(42), "é>5", Ok("ééé42")),
        (Datum::Int(42), ",d", Ok("42")),
        (Datum::Int(42), "E", Ok("4.200000E+01")),
        (Datum::Int(42), "F", Ok("42.000000")),
        (Datum::Int(42), "#.0f", Ok("42.")),
        (Datum::Int(42), "#.0e", Ok("4.e+01")),
        (Datum::Int(1234567), "_x", Ok("12_d687")),
        (Datum::Int(1234567), ",", Ok("1,234,567")),
        (Datum::Int(1234567), "_", Ok("1_234_567")),
        (Datum::Int(1234567), "#_b", Ok("0b1_0010_1101_0110_1000_0111")),
        (Datum::Int(1234567), "015,", Ok("000,001,234,567")),
        (Datum::Int(1234567), "020_b", Ok("1_0010_1101_0110_1000_0111")),
        (Datum::Int(1234567), "+,d", Ok("+1,234,567")),
        (Datum::Int(-7), "05", Ok("-0007")),
        (Datum::Int(-7), "=5", Ok("-   7")),
        (Datum::Int(-7), "#x", Ok("-0x7")),
        (Datum::Int(-1234), "09,", Ok("-0,001,234")),
        (Datum::Int(233), "c", Ok("é")),
        (Datum::Int(-1), "c", Err("%c arg not in range(0x110000)")),
        (Datum::Float(3.25617), ".2f", Ok("3.26")),
        (Datum::Float(3.25617), "e", Ok("3.256170e+00")),
        (Datum::Float(3.25617), "10.3f", Ok("     3.256")),
        (Datum::Float(3.25617), "g", Ok("3.25617")),
        (Datum::Float(3.25617), ".3g", Ok("3.26")),
        (Datum::Float(3.25617), ".3", Ok("3.26")),
        (Datum::Float(3.25617), "", Ok("3.25617")),
        (Datum::Float(3.25617), "n", Ok("3.25617")),
        (Datum::Float(3.25617), "%", Ok("325.617000%")),
        (Datum::Float(3.25617), ".1%", Ok("325.6%")),
        (Datum::Float(3.25617), "08.2f", Ok("00003.26")),
        (Datum::Float(3.25617), "+", Ok("+3.25617")),
        (Datum::Float(3.25617), "z.0f", Ok("3")),
        (Datum::Float(3.25617), ".0f", Ok("3")),
        (Datum::Float(3.25617), "#.0f", Ok("3.")),
        (Datum::Float(3.25617), ".0e", Ok("3e+00")),
        (Datum::Float(3.25617), "#.0e", Ok("3.e+00")),
        (Datum::Float(3.25617), "#g", Ok("3.25617")),
        (
            Datum::Float(3.25617),
            "d",
            Err("Unknown format code 'd' for object of type 'float'"),
        ),
        (
            Datum::Float(3.25617),
            "x",
            Err("Unknown format code 'x' for object of type 'float'"),
        ),
        (
            Datum::Float(3.25617),
            "s",
            Err("Unknown format code 's' for object of type 'float'"),
        ),
        (
            Datum::Float(3.25617),
            "c",
            Err("Unknown format code 'c' for object of type 'float'"),
        ),
        (Datum::Float(3.25617), ",.2f", Ok("3.26")),
        (Datum::Float(3.25617), "E", Ok("3.256170E+00")),
        (Datum::Float(3.25617), "G", Ok("3.25617")),
        (Datum::Float(3.25617), "012,.1f", Ok("00,000,003.3")),
        (Datum::Float(3.25617), " >8", Ok(" 3.25617")),
        (Datum::Float(3.25617), "=8", Ok(" 3.25617")),
        (Datum::Float(3.25617), ".10", Ok("3.25617")),
        (Datum::Float(3.25617), "_.3f", Ok("3.256")),
        (Datum::Float(3.25617), "f", Ok("3.256170")),
        (Datum::Float(3.25617), "F", Ok("3.256170")),
        (Datum::Float(3.25617), ".17g", Ok("3.25617")),
        (
            Datum::Float(3.25617),
            "r",
            Err("Unknown format code 'r' for object of type 'float'"),
        ),
        (Datum::Float(-0.4), "z.0f", Ok("0")),
        (Datum::Float(-0.4), ".0f", Ok("-0")),
        (Datum::Float(-0.4), "z", Ok("-0.4")),
        (Datum::Float(-0.4), "z.1e", Ok("-4.0e-01")),
        (Datum::Float(1e+16), "g", Ok("1e+16")),
        (Datum::Float(1e+16), "f", Ok("10000000000000000.000000")),
        (Datum::Float(1e+16), ".3", Ok("1e+16")),
        (Datum::Float(1e+16), "", Ok("1e+16")),
        (Datum::Float(1.5e-07), "", Ok("1.5e-07")),
        (Datum::Float(1.5e-07), "g", Ok("1.5e-07")),
        (Datum::Float(1.5e-07), ".3", Ok("1.5e-07")),
        (Datum::Float(1.5e-07), "f", Ok("0.000000")),
        (Datum::Float(1.5e-07), ".2", Ok("1.5e-07")),
        (Datum::Float(123456.789), "g", Ok("123457")),
        (Datum::Float(123456.789), ".3g", Ok("1.23e+05")),
        (Datum::Float(123456.789), ".9g", Ok("123456.789")),
        (Datum::Float(123456.789), ",", Ok("123,456.789")),
        (Datum::Float(123456.789), ".2", Ok("1.2e+05")),
        (Datum::Float(123456.789), "_", Ok("123_456.789")),
        (Datum::Float(123456.789), ".5", Ok("1.2346e+05")),
        (Datum::Float(123456.789), ".7", Ok("123456.8")),
        (Datum::Float(f64::INFINITY), "", Ok("inf")),
        (Datum::Float(f64::INFINITY), "f", Ok("inf")),
        (Datum::Float(f64::INFINITY), "F", Ok("INF")),
        (Datum::Float(f64::INFINITY), "E", Ok("INF")),
        (Datum::Float(f64::INFINITY), "05", Ok("00inf")),
        (Datum::Float(f64::INFINITY), "+", Ok("+inf")),
        (Datum::Float(f64::INFINITY), "%", Ok("inf%")),
        (Datum::Float(f64::INFINITY), "10,", Ok("       inf")),
        (Datum::Float(f64::NEG_INFINITY), "", Ok("-inf")),
        (Datum::Float(f64::NEG_INFINITY), "08", Ok("-0000inf")),
        (Datum::Float(f64::NAN), "", Ok("nan")),
        (Datum::Float(f64::NAN), "+f", Ok("+nan")),
        (Datum::Float(f64::NAN), "G", Ok("NAN")),
        (Datum::Float(1e+300), ".3e", Ok("1.000e+300")),
        (Datum::Float(1e+300), ".5g", Ok("1e+300")),
        (Datum::Float(99999.5), ".5g", Ok("1e+05")),
        (Datum::Float(99999.5), ".5", Ok("1e+05")),
        (Datum::Float(99999.5), "g", Ok("99999.5")),
        (Datum::Float(0.5), ".0f", Ok("0")),
        (Datum::Float(0.5), "%", Ok("50.000000%")),
        (Datum::Float(0.5), ".0%", Ok("50%")),
        (Datum::Float(0.5), ".0e", Ok("5e-01")),
        (Datum::Float(2.5), ".0f", Ok("2")),
        (Datum::Float(1e+22), "", Ok("1e+22")),
        (Datum::Float(0.0001234), "g", Ok("0.0001234")),
        (Datum::Float(0.0001234), "", Ok("0.0001234")),
        (Datum::Float(0.0001234), ".2", Ok("0.00012")),
        (Datum::Float(9.995), ".2f", Ok("9.99")),
        (Datum::Float(100.25), ".3g", Ok("100")),
        (Datum::Float(100.25), ".1f", Ok("100.2")),
        (Datum::Float(100.25), "#.3g", Ok("100.")),
        (Datum::text("abc"), "", Ok("abc")),
        (Datum::text("abc"), "*^9", Ok("***abc***")),
        (Datum::text("abc"), ".2", Ok("ab")),
        (Datum::text("abc"), "s", Ok("abc")),
        (Datum::text("abc"), ">5", Ok("  abc")),
        (Datum::text("abc"), "<5", Ok("abc  ")),
        (Datum::text("abc"), "05", Ok("abc00")),
        (
            Datum::text("abc"),
            "=5",
            Err("'=' alignment not allowed in string format specifier"),
        ),
        (
            Datum::text("abc"),
            "+",
            Err("Sign not allowed in string format specifier"),
        ),
        (
            Datum::text("abc"),
            "#",
            Err("Alternate form (#) not allowed in string format specifier"),
        ),
        (
            Datum::text("abc"),
            " ",
            Err("Space not allowed in string format specifier"),
        ),
        (Datum::text("abc"), ",", Err("Cannot specify ',' with 's'.")),
        (Datum::text("abc"), "_", Err("Cannot specify '_' with 's'.")),
        (
            Datum::text("abc"),
            "z",
            Err("Negative zero coercion (z) not allowed in string format specifier"),
        ),
        (
            Datum::text("abc"),
            "d",
            Err("Unknown format code 'd' for object of type 'str'"),
        ),
        (Datum::text("abc"), "^6.2", Ok("  ab  ")),
        (Datum::text("abc"), "é^7", Ok("ééabcéé")),
        (Datum::text("abc"), ".", Err("Format specifier missing precision")),
        (
            Datum::text("abc"),
            "10.x",
            Err("Format specifier missing precision"),
        ),
        (
            Datum::text("abc"),
            "-",
            Err("Sign not allowed in string format specifier"),
        ),
        (Datum::Bool(true), "", Ok("True")),
        (Datum::Bool(true), "d", Ok("1")),
        (Datum::Bool(true), "5", Ok("    1")),
        (Datum::Bool(true), ">6", Ok("     1")),
        (
            Datum::Bool(true),
            "s",
            Err("Unknown format code 's' for object of type 'bool'"),
        ),
        (Datum::Bool(true), ".1f", Ok("1.0")),
        (Datum::Bool(true), "c", Ok("")),
    ];
    for (datum, specification, expected) in cases {
        let found = formatted(datum, specification);
        let found = found.as_deref().map_err(String::as_str);
        assert_eq!(found, *expected, "{datum:?} with {specification:?}");
    }
}

/// A field named by nothing, whose value is given.
fn placed(conversion: Option<char>, specification: Vec<FormatPart>) -> FormatPart {
    FormatPart::Field {
        value: Some(setpoint_cf_names::hir::Expression {
            kind: setpoint_cf_names::hir::ExpressionKind::Variable(setpoint_cf_names::hir::Place::Instance),
            span: nowhere(),
        }),
        conversion,
        specification,
        span: nowhere(),
    }
}

fn fixed(text: &str) -> FormatPart {
    FormatPart::Text(text.into())
}

/// What an f-string of one field with a specification makes of a value.
fn f_string(value: Datum, conversion: Option<char>, specification: &str) -> Result<Datum, Box<Diagnostic>> {
    let specification = if specification.is_empty() {
        vec![]
    } else {
        vec![fixed(specification)]
    };
    let parts = [fixed("<"), placed(conversion, specification), fixed(">")];
    let world = World::new();
    super::format(
        &parts,
        &[value],
        nowhere(),
        world.naming(),
        &mut Unknowns::default(),
    )
}

#[test]
fn fields_of_f_strings() {
    let list = Datum::List([Datum::text("a"), Datum::Float(1.0)].into());
    for (value, conversion, specification, expected) in [
        (Datum::Int(42), None, "05d", "<00042>"),
        (Datum::Float(2.0), None, "", "<2>"),
        (Datum::Float(2.0), None, "d", "<2>"),
        (Datum::Float(2.0), None, ".2f", "<2.00>"),
        (Datum::Float(1e300), None, "x", "<17e43c8800759c00"),
        (Datum::Float(2.0), Some('r'), "", "<2>"),
        (Datum::Float(2.5), Some('r'), ">5", "<  2.5>"),
        (Datum::text("abc"), None, "*^9", "<***abc***>"),
        (Datum::text("abc"), Some('r'), "", "<'abc'>"),
        (Datum::text("é"), Some('a'), "", "<'\\xe9'>"),
        (Datum::text("abc"), None, ".2", "<ab>"),
        (Datum::Bool(true), None, "", "<True>"),
        (Datum::Bool(true), None, ">3", "<  1>"),
        (Datum::Null, None, "", "<null>"),
        (Datum::Null, Some('s'), ">5", "< null>"),
        (list.clone(), None, "", "<['a', 1.0]>"),
        (list, Some('s'), "<13", "<['a', 1.0]   >"),
    ] {
        let text = f_string(value, conversion, specification).expect("it has a text");
        let Datum::Text(text) = text else { panic!("a text") };
        assert!(text.starts_with(expected), "{text} {expected}");
        assert!(
            expected.len() == text.len() || !expected.ends_with('>'),
            "{text} {expected}"
        );
    }
}

#[test]
fn fields_inside_of_specifications() {
    let parts = [
        placed(
            None,
            vec![
                fixed(">"),
                placed(None, vec![]),
                fixed("."),
                placed(None, vec![]),
                fixed("f"),
            ],
        ),
        fixed("|"),
        placed(None, vec![]),
    ];
    let values = [
        Datum::Float(1.25),
        Datum::Int(6),
        Datum::Float(1.0),
        Datum::text("end"),
    ];
    let world = World::new();
    let text = super::format(
        &parts,
        &values,
        nowhere(),
        world.naming(),
        &mut Unknowns::default(),
    );
    assert!(matches!(text, Ok(Datum::Text(text)) if &*text == "   1.2|end"));
}

#[test]
fn f_strings_that_cannot_be_made() {
    let told = |result: Result<Datum, Box<Diagnostic>>| {
        let error = result.expect_err("it cannot be made");
        format!("{} {}: {}", error.code.code, error.class, error.message)
    };
    assert_eq!(
        told(f_string(Datum::text("a"), None, "d")),
        "E0624 RuntimeException: invalid f-string: Unknown format code 'd' for object of type 'str'"
    );
    assert_eq!(
        told(f_string(Datum::Null, None, ">5")),
        "E0624 RuntimeException: invalid f-string: unsupported format string passed to null"
    );
    assert_eq!(
        told(f_string(Datum::Int(1), None, "99999999999")),
        "E0691 RuntimeException: the text would be longer than 64 MiB"
    );
    let empty = FormatPart::Field {
        value: None,
        conversion: None,
        specification: vec![],
        span: nowhere(),
    };
    let world = World::new();
    let naming = world.naming();
    assert_eq!(
        told(super::format(
            &[empty],
            &[],
            nowhere(),
            naming,
            &mut Unknowns::default()
        )),
        "E0624 RuntimeException: positional substitution is not supported in f-strings"
    );
}

#[test]
fn unknowns_references_and_marks_in_strings() {
    use setpoint_cf_names::datum::{Deferred, DeferredSource, UnknownId};
    let unknown = Datum::Unknown(UnknownId(3));
    assert!(matches!(
        f_string(unknown.clone(), None, "d"),
        Ok(Datum::Unknown(_))
    ));
    let inside = Datum::List([unknown].into());
    assert!(matches!(f_string(inside, None, ""), Ok(Datum::Unknown(_))));
    let reference = Datum::Deferred(std::sync::Arc::new(Deferred {
        source: DeferredSource::Int(Datum::Int(1)),
        ty: setpoint_cf_names::types::SignatureType::Any,
    }));
    let error = f_string(reference, None, "").expect_err("it is not known here");
    assert_eq!((error.code.code, error.class), ("E0625", "UnexpectedReference"));
    let secret = Datum::text("s").with_marks(&setpoint_value::Marks::sensitive());
    assert!(f_string(secret, None, ">5").expect("it has a text").has_marks());
}

#[test]
fn places_in_strings_are_filled_once() {
    let field = || {
        TextPart::Field(setpoint_cf_names::hir::Expression {
            kind: setpoint_cf_names::hir::ExpressionKind::Variable(setpoint_cf_names::hir::Place::Instance),
            span: nowhere(),
        })
    };
    let parts = [field(), TextPart::Text("-".into()), field()];
    let values = [Datum::text("{{x}}"), Datum::Float(3.0)];
    let world = World::new();
    let text = interpolate(
        &parts,
        &values,
        nowhere(),
        world.naming(),
        &mut Unknowns::default(),
    );
    assert!(matches!(text, Ok(Datum::Text(text)) if &*text == "{{x}}-3"));
}

proptest::proptest! {
    #[test]
    fn any_specification_ends(specification in "[<>=^*+ z#0-9,_.bcdeEfFgGnosxX%-]{0,8}", int: i64, float: f64) {
        for value in [Datum::Int(int), Datum::Float(float), Datum::text("é")] {
            let _ = formatted(&value, &specification);
        }
    }

    #[test]
    fn what_is_formatted_reads_back(int: i64, float: f64) {
        proptest::prop_assert_eq!(formatted(&Datum::Int(int), "d"), Ok(int.to_string()));
        let hexadecimal = formatted(&Datum::Int(int), "x").expect("a number");
        proptest::prop_assert_eq!(i128::from_str_radix(&hexadecimal, 16), Ok(i128::from(int)));
        if float.is_finite() {
            let scientific = formatted(&Datum::Float(float), ".17e").expect("a number");
            proptest::prop_assert_eq!(scientific.parse::<f64>(), Ok(float));
            let general = formatted(&Datum::Float(float), ".17g").expect("a number");
            proptest::prop_assert_eq!(general.parse::<f64>(), Ok(float));
        }
    }
}
