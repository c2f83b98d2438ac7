//! The functions of module `std`, and the one of module `setpoint`: one table, by which calls are resolved, checked and made, and which the
//! reference documentation is made from.
//!
//! An implementation is given one datum for each parameter, of the parameter's type, without marks; what is nested in them may still be
//! unknown. A function that is only there for models of old names what replaces it.

mod lists;
mod network;
mod outside;
mod python_format;
mod table;
mod text;
pub(crate) mod validators;
mod values;

use std::sync::Arc;

use setpoint_cf_names::datum::{Datum, Dict, InstanceId};
use setpoint_cf_names::hir::FunctionImplementation;
use setpoint_cf_names::types::{AttributeType, BaseType, SignatureType};
use setpoint_diagnostics::{Diagnostic, Span};

use crate::binding::{Shape, Takes};
use crate::codes::{self, class};
use crate::context::{Context, Failure, Read};
use crate::operators::Outcome;
use crate::text::{Naming, shown, unexpected_reference};

pub use outside::file_marker;
pub(crate) use outside::{data_file, read_text};
pub use table::FUNCTIONS;
pub(crate) use values::write_json_text;

/// A function of a module of the language's own.
pub struct StdFunction {
    /// The module that it belongs to, nearly always `std`.
    pub module: &'static str,
    /// Its name, without that of the module.
    pub name: &'static str,
    /// What it does; the first line stands alone.
    pub doc: &'static str,
    /// Its parameters, in order.
    pub parameters: &'static [Parameter],
    /// What it answers.
    pub result: Ty,
    /// What replaces it, where it should not be used any more; may be empty.
    pub deprecated: Option<&'static str>,
    /// What it needs besides its arguments.
    pub kind: Kind,
    sees_marks: bool,
    /// What it does.
    pub(crate) run: fn(&mut Call<'_>) -> Result<Datum, Failure>,
}

/// What a function needs besides its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Nothing.
    Pure,
    /// It reads the model or what is outside.
    Reading,
    /// It changes something outside, so that calling it twice is not the same as once.
    Effect,
}

/// Whether calling a function twice may not be the same as calling it once.
pub(crate) fn changes_something(implementation: &FunctionImplementation) -> bool {
    match implementation {
        FunctionImplementation::Std(number) => FUNCTIONS[usize::from(*number)].kind == Kind::Effect,
        FunctionImplementation::Library(_) => false,
        // It may be called several times for one call, in Python too.
        FunctionImplementation::Plugin(_) => false,
    }
}

/// A parameter of a function of `std`.
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// What it takes.
    pub ty: Ty,
    /// What it is if it is left out. None: it must be given.
    pub default: Option<Default>,
    /// Whether deferred references are taken.
    pub references: bool,
    /// Whether unknowns are taken.
    pub unknowns: bool,
    many: Many,
}

/// What a parameter is if it is left out.
#[derive(Debug, Clone, Copy)]
pub enum Default {
    /// `null`.
    Null,
    /// A bool.
    Bool(bool),
    /// A number.
    Int(i64),
    /// A text.
    Text(&'static str),
    /// A list of texts.
    Strings(&'static [&'static str]),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Many {
    One,
    Variadic,
    Keywords,
}

/// The type of a parameter or result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ty {
    /// Everything but deferred references.
    Any,
    /// `string`.
    String,
    /// `int`.
    Int,
    /// `bool`.
    Bool,
    /// Any list.
    List,
    /// Any dict.
    Dict,
    /// `string[]`.
    Strings,
    /// `string?`.
    OptionalString,
    /// `int?`.
    OptionalInt,
    /// Any dict, or null.
    OptionalDict,
    /// Instances of the entity of this name.
    Entity(&'static str),
    /// A string of this typedef of `std`.
    Typedef(&'static str),
    /// Everything, deferred references too.
    Anything,
    /// A deferred reference.
    Reference,
}

impl Ty {
    /// As it is written.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Ty::Any | Ty::Anything => "any",
            Ty::String => "string",
            Ty::Int => "int",
            Ty::Bool => "bool",
            Ty::List => "list",
            Ty::Dict => "dict",
            Ty::Strings => "string[]",
            Ty::OptionalString => "string?",
            Ty::OptionalInt => "int?",
            Ty::OptionalDict => "dict?",
            Ty::Entity(name) | Ty::Typedef(name) => name,
            Ty::Reference => "Reference",
        }
    }

    /// The type to check against. What a typedef wants beyond a string is in [`Ty::validator`].
    pub(crate) fn resolve(self, context: &dyn Context) -> SignatureType {
        let attribute =
            |base, list, nullable| SignatureType::Attribute(AttributeType { base, list, nullable });
        match self {
            Ty::Any => SignatureType::Any,
            Ty::String | Ty::Typedef(_) => attribute(BaseType::String, false, false),
            Ty::Int => attribute(BaseType::Int, false, false),
            Ty::Bool => attribute(BaseType::Bool, false, false),
            Ty::List => SignatureType::List,
            Ty::Dict => SignatureType::Dict,
            Ty::Strings => attribute(BaseType::String, true, false),
            Ty::OptionalString => attribute(BaseType::String, false, true),
            Ty::OptionalInt => attribute(BaseType::Int, false, true),
            Ty::OptionalDict => SignatureType::Union(vec![SignatureType::Dict, SignatureType::Null]),
            Ty::Entity(name) => context
                .entity_named(name)
                .map_or(SignatureType::Any, SignatureType::Entity),
            Ty::Anything | Ty::Reference => SignatureType::Anything,
        }
    }

    /// The typedef of `std` whose validator judges it.
    pub(crate) fn validator(self) -> Option<&'static str> {
        match self {
            Ty::Typedef(name) => Some(name),
            _ => None,
        }
    }
}

/// Refuses a text that a typedef of `std` does not accept.
pub(crate) fn validate_as(
    typedef: Option<&'static str>,
    datum: &Datum,
    span: Span,
    naming: Naming<'_>,
) -> Outcome<()> {
    let (Some(typedef), Datum::Text(text)) = (typedef, datum.unmarked()) else {
        return Ok(());
    };
    if validators::accepts_typedef(typedef, text) {
        return Ok(());
    }
    let message = format!(
        "invalid value `{}`, does not match constraint of `{typedef}`",
        shown(datum, naming)
    );
    Err(Box::new(
        Diagnostic::error(&codes::CONSTRAINT, span, message).of_class(class::RUNTIME),
    ))
}

impl Parameter {
    const fn new(name: &'static str, ty: Ty) -> Parameter {
        Parameter {
            name,
            ty,
            default: None,
            references: false,
            unknowns: false,
            many: Many::One,
        }
    }

    const fn or(mut self, default: Default) -> Parameter {
        self.default = Some(default);
        self
    }

    const fn with_references(mut self) -> Parameter {
        self.references = true;
        self
    }

    const fn with_unknowns(mut self) -> Parameter {
        self.unknowns = true;
        self
    }

    const fn variadic(mut self) -> Parameter {
        self.many = Many::Variadic;
        self
    }

    const fn keywords(mut self) -> Parameter {
        self.many = Many::Keywords;
        self
    }

    /// Whether it takes all further arguments by position.
    #[must_use]
    pub fn is_variadic(&self) -> bool {
        self.many == Many::Variadic
    }

    /// Whether it takes all further arguments by name.
    #[must_use]
    pub fn is_keywords(&self) -> bool {
        self.many == Many::Keywords
    }

    pub(crate) fn shape(&self) -> Shape<'static> {
        let takes = match (self.many, self.default) {
            (Many::Variadic, _) => Takes::Variadic,
            (Many::Keywords, _) => Takes::Keywords,
            (Many::One, Some(_)) => Takes::Optional,
            (Many::One, None) => Takes::Required,
        };
        Shape {
            name: self.name,
            takes,
        }
    }

    /// Its type for the call that `context` is of.
    pub(crate) fn resolved(&self, context: &dyn Context) -> SignatureType {
        self.ty.resolve(context)
    }

    /// Refuses what its typedef does not accept.
    pub(crate) fn validate(&self, value: &Datum, span: Span, naming: Naming<'_>) -> Outcome<()> {
        validate_as(self.ty.validator(), value, span, naming)
    }

    pub(crate) fn default_datum(&self) -> Datum {
        match self.default {
            None | Some(Default::Null) => Datum::Null,
            Some(Default::Bool(bool)) => Datum::Bool(bool),
            Some(Default::Int(int)) => Datum::Int(int),
            Some(Default::Text(text)) => Datum::text(text),
            Some(Default::Strings(texts)) => {
                Datum::List(texts.iter().map(|text| Datum::text(*text)).collect())
            }
        }
    }
}

impl StdFunction {
    const fn new(
        name: &'static str,
        doc: &'static str,
        parameters: &'static [Parameter],
        result: Ty,
        run: fn(&mut Call<'_>) -> Result<Datum, Failure>,
    ) -> StdFunction {
        StdFunction {
            module: "std",
            name,
            doc,
            parameters,
            result,
            deprecated: None,
            kind: Kind::Pure,
            sees_marks: false,
            run,
        }
    }

    const fn of(mut self, module: &'static str) -> StdFunction {
        self.module = module;
        self
    }

    const fn deprecated(mut self, replacement: &'static str) -> StdFunction {
        self.deprecated = Some(replacement);
        self
    }

    const fn reading(mut self) -> StdFunction {
        self.kind = Kind::Reading;
        self
    }

    const fn effect(mut self) -> StdFunction {
        self.kind = Kind::Effect;
        self
    }

    const fn seeing_marks(mut self) -> StdFunction {
        self.sees_marks = true;
        self
    }

    /// Whether its arguments keep their marks.
    pub(crate) fn sees_marks(&self) -> bool {
        self.sees_marks
    }

    /// Its signature, as documentation shows it: `replace(string: string, old: string, new: string) -> string`.
    #[must_use]
    pub fn signature(&self) -> String {
        let parameters: Vec<String> = self
            .parameters
            .iter()
            .map(|parameter| {
                let stars = match parameter.many {
                    Many::One => "",
                    Many::Variadic => "*",
                    Many::Keywords => "**",
                };
                let default = match parameter.default {
                    None => String::new(),
                    Some(Default::Null) => " = null".to_owned(),
                    Some(Default::Bool(bool)) => format!(" = {bool}"),
                    Some(Default::Int(int)) => format!(" = {int}"),
                    Some(Default::Text(text)) => format!(" = {text:?}"),
                    Some(Default::Strings(texts)) => format!(" = {texts:?}"),
                };
                format!("{stars}{}: {}{default}", parameter.name, parameter.ty.text())
            })
            .collect();
        format!(
            "{}({}) -> {}",
            self.name,
            parameters.join(", "),
            self.result.text()
        )
    }
}

/// A call of a function of `std`: its arguments, one for each parameter and of its type, and the running model.
pub(crate) struct Call<'a> {
    pub(crate) arguments: Vec<Datum>,
    pub(crate) context: &'a mut dyn Context,
    pub(crate) span: Span,
}

impl Call<'_> {
    pub(crate) fn argument(&self, index: usize) -> &Datum {
        self.arguments.get(index).map_or(&Datum::Null, Datum::unmarked)
    }

    fn text(&self, index: usize) -> Result<Arc<str>, Failure> {
        match self.argument(index) {
            Datum::Text(text) => Ok(text.clone()),
            other => Err(unusable(other, self.span)),
        }
    }

    fn int(&self, index: usize) -> Result<i64, Failure> {
        match self.argument(index) {
            Datum::Int(int) => Ok(*int),
            Datum::Bool(bool) => Ok(i64::from(*bool)),
            other => Err(unusable(other, self.span)),
        }
    }

    fn bool(&self, index: usize) -> Result<bool, Failure> {
        match self.argument(index) {
            Datum::Bool(bool) => Ok(*bool),
            other => Err(unusable(other, self.span)),
        }
    }

    fn list(&self, index: usize) -> Result<Arc<[Datum]>, Failure> {
        match self.argument(index) {
            Datum::List(items) => Ok(items.clone()),
            other => Err(unusable(other, self.span)),
        }
    }

    fn dict(&self, index: usize) -> Result<Arc<Dict>, Failure> {
        match self.argument(index) {
            Datum::Dict(dict) => Ok(dict.clone()),
            other => Err(unusable(other, self.span)),
        }
    }

    pub(crate) fn naming(&self) -> Naming<'_> {
        Naming {
            model: self.context.model(),
            instances: self.context,
        }
    }

    fn shown(&self, datum: &Datum) -> String {
        shown(datum, self.naming())
    }

    /// A part of an argument, which may still be unknown.
    fn known<'d>(&self, datum: &'d Datum) -> Result<&'d Datum, Failure> {
        match datum.unmarked() {
            unusable_part @ (Datum::Unknown(_) | Datum::Deferred(_)) => {
                Err(unusable(unusable_part, self.span))
            }
            known => Ok(known),
        }
    }

    /// An instance among the parts of an argument.
    fn instance(&self, datum: &Datum) -> Result<InstanceId, Failure> {
        match self.known(datum)? {
            Datum::Instance(instance) => Ok(*instance),
            other => Err(Failure::Other(format!(
                "`{}` is not an instance",
                self.shown(other)
            ))),
        }
    }

    /// An attribute of an instance that must be there.
    fn attribute(&mut self, instance: InstanceId, name: &str) -> Result<Datum, Failure> {
        match self.context.attribute(instance, name) {
            Read::Value(value) => Ok(value),
            Read::Unset(cell) => Err(Failure::Unset(cell)),
            Read::Absent => Err(self.absent(instance, name).into()),
            Read::NotFound => {
                let message = format!(
                    "could not find attribute `{name}` on `{}`",
                    self.naming().entity(instance)
                );
                Err(Diagnostic::error(&codes::NOT_FOUND, self.span, message)
                    .of_class(class::NOT_FOUND)
                    .into())
            }
        }
    }

    fn absent(&self, instance: InstanceId, name: &str) -> Diagnostic {
        let message = format!(
            "optional variable accessed that has no value: `{name}` of `{}`",
            self.naming().entity(instance)
        );
        Diagnostic::error(&codes::NO_VALUE, self.span, message).of_class(class::OPTIONAL_VALUE)
    }
}

/// Why a datum cannot be used where a value is needed.
fn unusable(datum: &Datum, span: Span) -> Failure {
    match datum {
        Datum::Deferred(_) => unexpected_reference(span).into(),
        _ => Failure::Unknown,
    }
}

/// The number of a function of a module in [`FUNCTIONS`].
#[must_use]
pub fn number(module: &str, name: &str) -> Option<u16> {
    let is_it = |function: &StdFunction| function.module == module && function.name == name;
    u16::try_from(FUNCTIONS.iter().position(is_it)?).ok()
}

/// The names of the functions of a module.
#[must_use]
pub fn names(module: &str) -> Vec<Arc<str>> {
    let all = FUNCTIONS.iter().filter(|function| function.module == module);
    all.map(|function| function.name.into()).collect()
}

#[cfg(test)]
mod tests;
