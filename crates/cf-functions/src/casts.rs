//! `int(v)`, `float(v)`, `number(v)`, `bool(v)` and `string(v)`.

use setpoint_cf_names::datum::{Datum, Unknowns};
use setpoint_cf_names::resolve::codes::CAST;
use setpoint_cf_names::types::BaseType;
use setpoint_diagnostics::{Diagnostic, Span};

use crate::codes::class;
use crate::text::{Form, Naming, base_name, shown, text, unexpected_reference};

/// Casts a datum to a primitive type. What is unknown stays unknown, and marks stay.
///
/// # Errors
/// When it cannot be cast.
pub fn cast(
    to: BaseType,
    datum: &Datum,
    span: Span,
    naming: Naming<'_>,
    unknowns: &mut Unknowns,
) -> Result<Datum, Box<Diagnostic>> {
    let plain = datum.unmarked();
    match plain {
        Datum::Unknown(_) => return Ok(unknowns.create()),
        Datum::Deferred(_) => return Err(Box::new(unexpected_reference(span))),
        _ => {}
    }
    let result = match to {
        BaseType::Int => int(plain).map(Datum::Int),
        BaseType::Float => float(plain).map(Datum::Float),
        BaseType::Number => match plain {
            Datum::Int(_) | Datum::Bool(_) => int(plain).map(Datum::Int),
            other => float(other).map(Datum::Float),
        },
        BaseType::Bool => Ok(Datum::Bool(is_true(plain))),
        BaseType::String => match text(plain, Form::Cast, naming) {
            Ok(text) => Ok(Datum::text(text)),
            Err(refused) => match refused.into_error(span) {
                Some(error) => return Err(Box::new(error)),
                None => return Ok(unknowns.create()),
            },
        },
        BaseType::List | BaseType::Dict | BaseType::Typedef(_) => Err(Refused::Type),
    };
    let result = result.map_err(|refused| Box::new(refused.at(to, datum, span, naming)))?;
    let mut marks = setpoint_value::Marks::none();
    datum.collect_marks(&mut marks);
    Ok(result.with_marks(&marks))
}

/// What is true where a condition of a typedef is tested: everything but null, zero and what is empty.
#[must_use]
pub fn is_true(datum: &Datum) -> bool {
    match datum {
        Datum::Null => false,
        Datum::Bool(bool) => *bool,
        Datum::Int(int) => *int != 0,
        Datum::Float(float) => *float != 0.0,
        Datum::Text(text) => !text.is_empty(),
        Datum::List(items) => !items.is_empty(),
        Datum::Dict(dict) => !dict.is_empty(),
        Datum::Marked(marked) => is_true(&marked.datum),
        Datum::Instance(_) | Datum::Unknown(_) | Datum::Deferred(_) => true,
    }
}

/// Why a cast fails.
enum Refused {
    /// Nothing of this type can be cast.
    Type,
    /// The text does not read as a number.
    Text,
    /// The number does not fit, or is none.
    Range,
}

impl Refused {
    fn at(self, to: BaseType, datum: &Datum, span: Span, naming: Naming<'_>) -> Diagnostic {
        let to = base_name(to, naming.model);
        let message = format!("failed to cast {} to `{to}`", in_quotes(&shown(datum, naming)));
        let label = match self {
            Refused::Type => format!("a value of this type is no `{to}`"),
            Refused::Text => format!("the text does not read as `{to}`"),
            Refused::Range => "the number does not fit 64 bits".to_owned(),
        };
        Diagnostic::error(&CAST, span, message)
            .of_class(class::RUNTIME)
            .label(label)
    }
}

/// Something for a message in backticks.
pub(crate) fn in_quotes(text: &str) -> String {
    format!("`{text}`")
}

fn int(datum: &Datum) -> Result<i64, Refused> {
    match datum {
        Datum::Int(int) => Ok(*int),
        Datum::Bool(bool) => Ok(i64::from(*bool)),
        Datum::Float(float) => {
            let whole = float.trunc();
            // Both ends are powers of two, so that the comparison is exact. NaN is refused by it.
            if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&whole) {
                Ok(whole as i64)
            } else {
                Err(Refused::Range)
            }
        }
        Datum::Text(text) => {
            let digits = text.trim();
            let unsigned = digits.strip_prefix(['+', '-']).unwrap_or(digits);
            if unsigned.is_empty() || !unsigned.bytes().all(|b| b.is_ascii_digit()) {
                return Err(Refused::Text);
            }
            digits.parse().map_err(|_| Refused::Range)
        }
        _ => Err(Refused::Type),
    }
}

fn float(datum: &Datum) -> Result<f64, Refused> {
    match datum {
        Datum::Int(int) => Ok(*int as f64),
        Datum::Bool(bool) => Ok(f64::from(u8::from(*bool))),
        Datum::Float(float) => Ok(*float),
        Datum::Text(text) => text.trim().parse().map_err(|_| Refused::Text),
        _ => Err(Refused::Type),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use setpoint_value::Marks;

    use super::*;
    use crate::generate::scalar;
    use crate::testing::{World, nowhere};

    fn casted(to: BaseType, datum: &Datum) -> Result<Datum, String> {
        let world = World::new();
        cast(to, datum, nowhere(), world.naming(), &mut Unknowns::default()).map_err(|error| {
            assert_eq!((error.code.code, error.class), ("E0623", "RuntimeException"));
            error.message
        })
    }

    #[test]
    fn every_row_of_the_table_of_casts() {
        use BaseType::{Bool, Float, Int, Number, String};
        let cases: &[(BaseType, Datum, &str)] = &[
            (Int, Datum::Int(3), "Int(3)"),
            (Int, Datum::Bool(true), "Int(1)"),
            (Int, Datum::Float(1.9), "Int(1)"),
            (Int, Datum::Float(-1.9), "Int(-1)"),
            (Int, Datum::text(" +12 "), "Int(12)"),
            (Int, Datum::text("-7"), "Int(-7)"),
            (Float, Datum::Int(3), "Float(3.0)"),
            (Float, Datum::Bool(false), "Float(0.0)"),
            (Float, Datum::text("1e3"), "Float(1000.0)"),
            (Float, Datum::text("inf"), "Float(inf)"),
            (Number, Datum::Int(3), "Int(3)"),
            (Number, Datum::Bool(true), "Int(1)"),
            (Number, Datum::text("3"), "Float(3.0)"),
            (Number, Datum::Float(1.5), "Float(1.5)"),
            (Bool, Datum::Null, "Bool(false)"),
            (Bool, Datum::Int(0), "Bool(false)"),
            (Bool, Datum::Float(0.5), "Bool(true)"),
            (Bool, Datum::text("false"), "Bool(true)"),
            (Bool, Datum::text(""), "Bool(false)"),
            (Bool, Datum::List([].into()), "Bool(false)"),
            (String, Datum::Bool(true), "Text(\"true\")"),
            (String, Datum::Null, "Text(\"null\")"),
            (String, Datum::Float(1.0), "Text(\"1.0\")"),
            (String, Datum::text("a"), "Text(\"a\")"),
            (String, Datum::List([Datum::text("a")].into()), "Text(\"['a']\")"),
        ];
        for (to, datum, expected) in cases {
            let result = casted(*to, datum).expect("the cast succeeds");
            assert_eq!(format!("{result:?}"), *expected, "{to:?} {datum:?}");
        }
    }

    #[test]
    fn what_does_not_cast_is_told() {
        for (to, datum, expected) in [
            (BaseType::Int, Datum::Null, "failed to cast `null` to `int`"),
            (
                BaseType::Int,
                Datum::text("1.5"),
                "failed to cast `'1.5'` to `int`",
            ),
            (BaseType::Int, Datum::text(""), "failed to cast `''` to `int`"),
            (
                BaseType::Int,
                Datum::text("- 1"),
                "failed to cast `'- 1'` to `int`",
            ),
            (
                BaseType::Int,
                Datum::Float(1e19),
                "failed to cast `1e+19` to `int`",
            ),
            (
                BaseType::Int,
                Datum::Float(f64::NAN),
                "failed to cast `nan` to `int`",
            ),
            (
                BaseType::Float,
                Datum::text("x"),
                "failed to cast `'x'` to `float`",
            ),
            (BaseType::Float, Datum::Null, "failed to cast `null` to `float`"),
            (
                BaseType::Number,
                Datum::List([].into()),
                "failed to cast `[]` to `number`",
            ),
        ] {
            assert_eq!(casted(to, &datum).expect_err("the cast fails"), expected);
        }
        let secret = Datum::text("x").with_marks(&Marks::sensitive());
        assert_eq!(
            casted(BaseType::Int, &secret).expect_err("the cast fails"),
            "failed to cast `(sensitive)` to `int`"
        );
    }

    #[test]
    fn unknowns_and_marks_stay() {
        let unknown = Unknowns::default().create();
        assert!(matches!(casted(BaseType::Int, &unknown), Ok(Datum::Unknown(_))));
        let secret = Datum::text("5").with_marks(&Marks::sensitive());
        let result = casted(BaseType::Int, &secret).expect("the cast succeeds");
        assert!(result.has_marks());
    }

    proptest! {
        #[test]
        fn a_cast_twice_is_a_cast_once(datum in scalar()) {
            for to in [BaseType::Int, BaseType::Float, BaseType::Number, BaseType::Bool, BaseType::String] {
                if let Ok(once) = casted(to, &datum) {
                    let twice = casted(to, &once).expect("what was cast can be cast again");
                    prop_assert!(crate::equality::is_same(&once, &twice), "{:?} {:?}", once, twice);
                }
            }
        }

        #[test]
        fn numbers_survive_a_text(int: i64, float: f64) {
            let back = casted(BaseType::Int, &casted(BaseType::String, &Datum::Int(int)).expect("it has a text"));
            prop_assert!(matches!(back, Ok(Datum::Int(same)) if same == int));
            let back = casted(BaseType::Float, &casted(BaseType::String, &Datum::Float(float)).expect("it has a text"));
            prop_assert!(matches!(back, Ok(Datum::Float(same)) if same == float || float.is_nan()));
        }
    }
}
