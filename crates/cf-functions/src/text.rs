//! What data look like as text: in strings, as the result of `string(…)`, when printed, and in messages.
//!
//! The forms are those of the language's origins: `True` in strings and `true` from a cast, `[1, 'a', null]` for a list.

use std::fmt::Write as _;

use setpoint_cf_names::datum::{Datum, DeferredSource, InstanceId, Instances, Unknowns};
use setpoint_cf_names::hir::Model;
use setpoint_cf_names::types::{BaseType, SignatureType};
use setpoint_diagnostics::{Diagnostic, Span};
use setpoint_value::{LONGEST_TEXT, Mark, Marks};

use crate::codes::{self, class};

/// How instances are named in texts.
#[derive(Clone, Copy)]
pub struct Naming<'a> {
    /// The resolved model.
    pub model: &'a Model,
    /// The instances that there are.
    pub instances: &'a dyn Instances,
}

impl Naming<'_> {
    /// The name of an instance's entity, with its namespace.
    #[must_use]
    pub fn entity(&self, instance: InstanceId) -> &str {
        let entity = self.instances.entity(instance);
        &self.model.entities[entity.index()].name
    }
}

/// Which of its texts a datum is wanted as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Inside a string: `{{x}}`, `f"{x}"`. Floats without a fraction are written as whole numbers.
    Field,
    /// `string(x)`.
    Cast,
    /// `std::print(x)`, and in templates.
    Printed,
}

/// Why a datum has no text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoText {
    /// It, or a part of it, is not known yet.
    Unknown,
    /// It, or a part of it, is a deferred reference.
    Deferred,
    /// The text would be longer than texts may be.
    TooLong,
}

impl NoText {
    /// The error, if it is one.
    pub fn into_error(self, span: Span) -> Option<Diagnostic> {
        match self {
            NoText::Unknown => None,
            NoText::Deferred => Some(unexpected_reference(span)),
            NoText::TooLong => Some(too_long(span)),
        }
    }
}

/// A deferred reference where its value is needed.
pub(crate) fn unexpected_reference(span: Span) -> Diagnostic {
    Diagnostic::error(&codes::DEFERRED, span, "a deferred reference cannot be used here")
        .of_class(class::UNEXPECTED_REFERENCE)
        .label("its value is only known on the machine, when a resource is applied")
        .help("assign the reference itself to an attribute of a resource")
}

/// A text beyond the longest.
pub(crate) fn too_long(span: Span) -> Diagnostic {
    let message = format!("the text would be longer than {} MiB", LONGEST_TEXT >> 20);
    Diagnostic::error(&codes::TOO_LARGE, span, message).of_class(class::RUNTIME)
}

/// Makes a text out of fixed parts and data, minding unknowns and marks.
#[derive(Debug, Default)]
pub struct TextBuilder {
    text: String,
    marks: Marks,
    unknown: bool,
}

impl TextBuilder {
    /// Adds fixed text.
    pub fn push_str(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Adds what a datum is inside a string.
    ///
    /// # Errors
    /// When it has no text and never will.
    pub fn push(&mut self, datum: &Datum, span: Span, naming: Naming<'_>) -> Result<(), Box<Diagnostic>> {
        if let Datum::Text(text) = datum {
            self.push_str(text);
            return self.check(span);
        }
        datum.collect_marks(&mut self.marks);
        match write_text(datum, Form::Field, naming, &mut self.text) {
            Ok(()) => self.check(span),
            Err(refused) => match refused.into_error(span) {
                Some(error) => Err(Box::new(error)),
                None => {
                    self.unknown = true;
                    Ok(())
                }
            },
        }
    }

    /// Makes the result unknown.
    pub(crate) fn set_unknown(&mut self) {
        self.unknown = true;
    }

    /// Takes in the marks of a datum that determines the text.
    pub(crate) fn take_marks(&mut self, datum: &Datum) {
        datum.collect_marks(&mut self.marks);
    }

    /// The text so far. None: it is not known.
    pub(crate) fn known(self) -> Option<String> {
        (!self.unknown).then_some(self.text)
    }

    /// Refuses a text that has become too long.
    pub(crate) fn check(&self, span: Span) -> Result<(), Box<Diagnostic>> {
        if self.text.len() > LONGEST_TEXT {
            return Err(Box::new(too_long(span)));
        }
        Ok(())
    }

    /// The text, or an unknown if a part was one.
    pub fn finish(self, unknowns: &mut Unknowns) -> Datum {
        if self.unknown {
            return unknowns.create();
        }
        Datum::text(self.text).with_marks(&self.marks)
    }
}

/// The text of a datum, marks aside.
///
/// # Errors
/// When it has none.
pub fn text(datum: &Datum, form: Form, naming: Naming<'_>) -> Result<String, NoText> {
    let mut text = String::new();
    write_text(datum, form, naming, &mut text)?;
    Ok(text)
}

/// Appends the text of a datum, marks aside.
///
/// # Errors
/// When it has none.
pub fn write_text(datum: &Datum, form: Form, naming: Naming<'_>, out: &mut String) -> Result<(), NoText> {
    match datum {
        Datum::Marked(marked) => return write_text(&marked.datum, form, naming, out),
        Datum::Text(text) => out.push_str(text),
        Datum::Null => out.push_str(if form == Form::Printed { "None" } else { "null" }),
        Datum::Bool(bool) => out.push_str(match (form, bool) {
            (Form::Cast, true) => "true",
            (Form::Cast, false) => "false",
            (_, true) => "True",
            (_, false) => "False",
        }),
        Datum::Float(float) if form == Form::Field && is_integral(*float) => {
            // Without a fraction and exact: what a whole number of any size looks like. There is no negative zero among them.
            let _ = write!(out, "{:.0}", float + 0.0);
        }
        Datum::Instance(instance) if form == Form::Printed => {
            out.push('@');
            write_instance(*instance, naming, out);
        }
        Datum::Instance(instance) => {
            let places = naming.instances.places(*instance).join(",");
            let _ = write!(out, "{} (instantiated at {places})", naming.entity(*instance));
        }
        Datum::Deferred(deferred) if form == Form::Printed => write_deferred(&deferred.source, naming, out)?,
        Datum::List(_) | Datum::Dict(_) => {
            if form == Form::Printed {
                out.push('@');
            }
            write_representation(datum, naming, out)?;
        }
        other => write_representation(other, naming, out)?,
    }
    if out.len() > LONGEST_TEXT {
        return Err(NoText::TooLong);
    }
    Ok(())
}

/// Appends the form that a datum has inside a list: texts in quotes.
///
/// # Errors
/// When it has none.
pub fn write_representation(datum: &Datum, naming: Naming<'_>, out: &mut String) -> Result<(), NoText> {
    match datum {
        Datum::Null => out.push_str("null"),
        Datum::Bool(bool) => out.push_str(if *bool { "True" } else { "False" }),
        Datum::Int(int) => {
            let _ = write!(out, "{int}");
        }
        Datum::Float(float) => out.push_str(&float_representation(*float)),
        Datum::Text(text) => write_quoted(text, out),
        Datum::Instance(instance) => write_instance(*instance, naming, out),
        Datum::Marked(marked) => write_representation(&marked.datum, naming, out)?,
        Datum::Unknown(_) => return Err(NoText::Unknown),
        Datum::Deferred(_) => return Err(NoText::Deferred),
        Datum::List(items) => {
            write_separated('[', items.iter(), ']', out, |item, out| {
                write_representation(item, naming, out)
            })?;
        }
        Datum::Dict(dict) => write_separated('{', dict.iter(), '}', out, |(key, value), out| {
            write_quoted(key, out);
            out.push_str(": ");
            write_representation(value, naming, out)
        })?,
    }
    if out.len() > LONGEST_TEXT {
        return Err(NoText::TooLong);
    }
    Ok(())
}

/// Writes items between two brackets, with commas between them.
pub(crate) fn write_separated<T, E>(
    open: char,
    items: impl Iterator<Item = T>,
    close: char,
    out: &mut String,
    mut write: impl FnMut(T, &mut String) -> Result<(), E>,
) -> Result<(), E> {
    out.push(open);
    for (index, item) in items.enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        write(item, out)?;
    }
    out.push(close);
    Ok(())
}

fn write_instance(instance: InstanceId, naming: Naming<'_>, out: &mut String) {
    let _ = write!(out, "{} {}", naming.entity(instance), instance.0);
}

fn write_deferred(source: &DeferredSource, naming: Naming<'_>, out: &mut String) -> Result<(), NoText> {
    match source {
        DeferredSource::Int(value) => {
            out.push_str("IntReference(");
            write_representation(value, naming, out)?;
        }
        DeferredSource::Environment(name) => {
            out.push_str("EnvironmentReference(");
            write_representation(name, naming, out)?;
        }
        DeferredSource::Fact { resource, fact } => {
            out.push_str("FactReference(");
            write_instance(*resource, naming, out);
            out.push_str(", ");
            write_quoted(fact, out);
        }
        DeferredSource::Send { resource, key } => {
            out.push_str("SendReference(");
            write_instance(*resource, naming, out);
            out.push_str(", ");
            write_quoted(key, out);
        }
    }
    out.push(')');
    Ok(())
}

/// Whether a float has no fraction.
pub(crate) fn is_integral(float: f64) -> bool {
    float.is_finite() && float.fract() == 0.0
}

/// The shortest text that reads back as the float: `1.0`, `0.1`, `1e+16`, `1e-05`.
#[must_use]
pub fn float_representation(float: f64) -> String {
    if !float.is_finite() {
        return non_finite(float).to_owned();
    }
    let scientific = format!("{float:e}");
    let (digits, exponent) = scientific
        .split_once('e')
        .expect("the scientific form has an exponent");
    let exponent: i32 = exponent.parse().expect("an exponent is a small number");
    if (-4..16).contains(&exponent) {
        let plain = format!("{float}");
        return if plain.contains('.') { plain } else { plain + ".0" };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// `nan`, `inf`, `-inf`.
pub(crate) fn non_finite(float: f64) -> &'static str {
    match float {
        _ if float.is_nan() => "nan",
        _ if float > 0.0 => "inf",
        _ => "-inf",
    }
}

/// Appends a text in quotes, with escapes for what cannot be seen.
pub fn write_quoted(text: &str, out: &mut String) {
    let quote = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    out.push(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c if is_printable(c) => out.push(c),
            c => write_escape(c, out),
        }
    }
    out.push(quote);
}

/// Appends a character by its number.
pub(crate) fn write_escape(c: char, out: &mut String) {
    let number = u32::from(c);
    let _ = match number {
        0..=0xff => write!(out, "\\x{number:02x}"),
        0x100..=0xffff => write!(out, "\\u{number:04x}"),
        _ => write!(out, "\\U{number:08x}"),
    };
}

/// Whether a character shows itself: no control, no blank but the space, nothing that only steers layout, nothing for private use.
fn is_printable(c: char) -> bool {
    let hidden = matches!(c,
        '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{e000}'..='\u{f8ff}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}'
        | '\u{fffe}' | '\u{ffff}' | '\u{e0000}'..='\u{10ffff}');
    !hidden && !c.is_control() && (c == ' ' || !c.is_whitespace())
}

/// A datum for a message: short, and never what is sensitive.
#[must_use]
pub fn shown(datum: &Datum, naming: Naming<'_>) -> String {
    /// More says less.
    const LONGEST: usize = 120;
    let mut marks = Marks::none();
    datum.collect_marks(&mut marks);
    if marks.contains(&Mark::Sensitive) {
        return "(sensitive)".to_owned();
    }
    if datum.extent().parts > 1000 {
        return format!("a {} of many elements", type_name(datum, naming));
    }
    let mut text = String::new();
    match datum.unmarked() {
        Datum::Unknown(_) => return "an unknown value".to_owned(),
        Datum::Deferred(_) => return "a deferred reference".to_owned(),
        datum => {
            if write_representation(datum, naming, &mut text).is_err() {
                return format!("a {} with parts that are not known", type_name(datum, naming));
            }
        }
    }
    if text.chars().count() > LONGEST {
        text = text.chars().take(LONGEST).chain("…".chars()).collect();
    }
    text
}

/// The name of a datum's type for a message.
#[must_use]
pub fn type_name(datum: &Datum, naming: Naming<'_>) -> String {
    match datum.unmarked() {
        Datum::Null => "null".to_owned(),
        Datum::Bool(_) => "bool".to_owned(),
        Datum::Int(_) => "int".to_owned(),
        Datum::Float(_) => "float".to_owned(),
        Datum::Text(_) => "string".to_owned(),
        Datum::List(_) => "list".to_owned(),
        Datum::Dict(_) => "dict".to_owned(),
        Datum::Instance(instance) => naming.entity(*instance).to_owned(),
        Datum::Unknown(_) => "unknown".to_owned(),
        Datum::Deferred(deferred) => format!("Reference[{}]", type_text(&deferred.ty, naming.model)),
        Datum::Marked(_) => "marked".to_owned(),
    }
}

/// A base type as it is written.
#[must_use]
pub fn base_name(base: BaseType, model: &Model) -> &str {
    base.written(|typedef| &model.typedefs[typedef.index()].name)
}

/// A type as it is written in signatures.
#[must_use]
pub fn type_text(ty: &SignatureType, model: &Model) -> String {
    match ty {
        SignatureType::Any | SignatureType::Anything => "any".to_owned(),
        SignatureType::Null => "null".to_owned(),
        SignatureType::Attribute(attribute) => {
            let list = if attribute.list { "[]" } else { "" };
            let nullable = if attribute.nullable { "?" } else { "" };
            format!("{}{list}{nullable}", base_name(attribute.base, model))
        }
        SignatureType::List => "list".to_owned(),
        SignatureType::Dict => "dict".to_owned(),
        SignatureType::ListOf(element) => format!("{}[]", type_text(element, model)),
        SignatureType::DictOf(value) => format!("dict[string, {}]", type_text(value, model)),
        SignatureType::Entity(entity) => model.entities[entity.index()].name.to_string(),
        SignatureType::Reference(of) => format!("Reference[{}]", type_text(of, model)),
        SignatureType::Union(members) => {
            let members: Vec<String> = members.iter().map(|member| type_text(member, model)).collect();
            members.join(" | ")
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::testing::World;
    use setpoint_cf_names::datum::{Dict, UnknownId};

    fn texts(datum: &Datum) -> [String; 3] {
        let world = World::new();
        [Form::Field, Form::Cast, Form::Printed]
            .map(|form| text(datum, form, world.naming()).expect("it has a text"))
    }

    #[test]
    fn every_row_of_the_table_of_texts() {
        let list = Datum::List([Datum::Int(1), Datum::text("a"), Datum::Null, Datum::Bool(true)].into());
        let dict: Dict = [(Arc::from("a"), Datum::Int(1))].into_iter().collect();
        let cases: &[(Datum, [&str; 3])] = &[
            (Datum::text("x y"), ["x y", "x y", "x y"]),
            (Datum::Int(-3), ["-3", "-3", "-3"]),
            (Datum::Float(1.0), ["1", "1.0", "1.0"]),
            (Datum::Float(-0.0), ["0", "-0.0", "-0.0"]),
            (Datum::Float(1e22), ["10000000000000000000000", "1e+22", "1e+22"]),
            (Datum::Float(0.1), ["0.1", "0.1", "0.1"]),
            (Datum::Bool(true), ["True", "true", "True"]),
            (Datum::Bool(false), ["False", "false", "False"]),
            (Datum::Null, ["null", "null", "None"]),
            (
                list,
                [
                    "[1, 'a', null, True]",
                    "[1, 'a', null, True]",
                    "@[1, 'a', null, True]",
                ],
            ),
            (Datum::Dict(Arc::new(dict)), ["{'a': 1}", "{'a': 1}", "@{'a': 1}"]),
            (
                Datum::Instance(InstanceId(0)),
                [
                    "__config__::Host (instantiated at main.cf:3)",
                    "__config__::Host (instantiated at main.cf:3)",
                    "@__config__::Host 0",
                ],
            ),
        ];
        for (datum, expected) in cases {
            assert_eq!(&texts(datum), expected, "{datum:?}");
        }
    }

    #[test]
    fn unknowns_and_references_have_no_text() {
        let world = World::new();
        let unknown = Datum::Unknown(UnknownId(0));
        assert_eq!(text(&unknown, Form::Field, world.naming()), Err(NoText::Unknown));
        let inside = Datum::List([unknown].into());
        assert_eq!(text(&inside, Form::Cast, world.naming()), Err(NoText::Unknown));
    }

    #[test]
    fn quotes_are_chosen_and_escapes_written() {
        let quoted = |text: &str| {
            let mut out = String::new();
            write_quoted(text, &mut out);
            out
        };
        for (text, expected) in [
            ("a", "'a'"),
            ("it's", "\"it's\""),
            ("'\"", "'\\'\"'"),
            ("a\\b\n\t\r", "'a\\\\b\\n\\t\\r'"),
            ("é", "'é'"),
            (
                "\u{0}\u{7f}\u{a0}\u{2028}\u{e0001}",
                "'\\x00\\x7f\\xa0\\u2028\\U000e0001'",
            ),
        ] {
            assert_eq!(quoted(text), expected);
        }
    }

    #[test]
    fn floats_are_as_short_as_they_can_be() {
        for (float, expected) in [
            (1.0, "1.0"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.5e300, "1.5e+300"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN, "nan"),
        ] {
            assert_eq!(float_representation(float), expected);
        }
    }

    #[test]
    fn messages_never_show_what_is_sensitive() {
        let world = World::new();
        let secret = Datum::text("secret").with_marks(&Marks::sensitive());
        assert_eq!(shown(&secret, world.naming()), "(sensitive)");
        assert_eq!(
            shown(&Datum::List([secret].into()), world.naming()),
            "(sensitive)"
        );
    }

    proptest! {
        #[test]
        fn the_text_of_a_float_reads_back(float: f64) {
            prop_assume!(float.is_finite());
            prop_assert_eq!(float_representation(float).parse::<f64>().ok(), Some(float));
        }
    }
}
