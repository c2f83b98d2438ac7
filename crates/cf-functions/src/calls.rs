//! The protocol of calls: what is given is bound to the parameters, checked, and handed to what does the function's work; what comes back
//! is checked too.
//!
//! Arity and the types of known arguments are checked even when others are unknown. An argument that is unknown as a whole makes the result
//! unknown without a call, unless the parameter takes unknowns. Marks of arguments are on the result.

mod library;
mod plugin;

use setpoint_cf_names::datum::{Datum, Dict};
use setpoint_cf_names::hir::{Function, FunctionImplementation};
use setpoint_diagnostics::{Diagnostic, Span};
use setpoint_value::{FunctionRef, Implementation, Marks};

use crate::codes::{self, class};
use crate::context::{Arguments, Context, Failure, Site, Stop};
use crate::operators::{bounded, keyword_dict};
use crate::std::{Call, FUNCTIONS, Kind, Parameter, StdFunction};
use crate::text::Naming;

use crate::binding::{Bound, Shape, bind};

/// Whether a function needs more than its arguments, so that it cannot be called in the condition of a typedef.
pub(crate) fn needs_context(implementation: &FunctionImplementation) -> bool {
    match implementation {
        FunctionImplementation::Std(number) => FUNCTIONS[usize::from(*number)].kind != Kind::Pure,
        FunctionImplementation::Library(function) => {
            !matches!(function.implementation, Implementation::Pure(_))
        }
        FunctionImplementation::Plugin(function) => function.takes_context(),
    }
}

/// Calls a function.
///
/// # Errors
/// What is wrong with the call, or goes wrong in it; or a cell that must have a value before it can be made.
pub fn call(
    function: &Function,
    arguments: Arguments,
    site: Site<'_>,
    context: &mut dyn Context,
) -> Result<Datum, Stop> {
    let call = OneCall {
        name: &function.name,
        site,
    };
    let (arguments, unknown_keywords) = call.flatten(arguments, context)?;
    match &function.implementation {
        FunctionImplementation::Std(number) => {
            let function = &FUNCTIONS[usize::from(*number)];
            call.standard(function, arguments, unknown_keywords, context)
        }
        FunctionImplementation::Library(function) => {
            call.library(function, arguments, unknown_keywords, context)
        }
        FunctionImplementation::Plugin(function) => {
            context.note_plugin();
            call.plugin(function, arguments, unknown_keywords, context)
        }
    }
}

/// Names that were given, whichever way.
struct OneCall<'a> {
    /// The function as it is called.
    name: &'a str,
    site: Site<'a>,
}

impl OneCall<'_> {
    /// Puts the entries of dicts among the keywords. Also whether one of the dicts is not known.
    fn flatten(&self, arguments: Arguments, context: &dyn Context) -> Result<(Arguments, bool), Stop> {
        let mut unknown = false;
        let Arguments {
            positional,
            mut keywords,
            dicts,
        } = arguments;
        for dict in &dicts {
            let naming = Naming {
                model: context.model(),
                instances: context,
            };
            let Some(entries) = keyword_dict(dict, self.site.span, naming).map_err(Stop::Error)? else {
                unknown = true;
                continue;
            };
            let mut marks = Marks::none();
            if let Datum::Marked(marked) = dict {
                marks.union(&marked.marks);
            }
            for (name, value) in entries.iter() {
                if keywords.iter().any(|(given, _)| given == name) {
                    return Err(self
                        .wrong_arguments(format!("keyword argument `{name}` repeated"))
                        .into());
                }
                keywords.push((name.clone(), value.clone().with_marks(&marks)));
            }
        }
        let arguments = Arguments {
            positional,
            keywords,
            dicts: Vec::new(),
        };
        Ok((arguments, unknown))
    }

    /// Calls a function of a module of the language's own.
    fn standard(
        &self,
        function: &'static StdFunction,
        arguments: Arguments,
        unknown_keywords: bool,
        context: &mut dyn Context,
    ) -> Result<Datum, Stop> {
        let shapes: Vec<Shape<'_>> = function.parameters.iter().map(Parameter::shape).collect();
        let Bound {
            values,
            variadic,
            keywords,
        } = bind(self.name, &shapes, arguments, unknown_keywords).map_err(|message| {
            let error = self.wrong_arguments(message);
            Stop::from(error.note(format!(
                "the function is `{}::{}`",
                function.module,
                function.signature()
            )))
        })?;
        let mut marks = Marks::none();
        let mut unknown = unknown_keywords;
        let mut bound = Vec::with_capacity(function.parameters.len());
        let mut given = values.into_iter();
        let (mut variadic, mut keywords) = (Some(variadic), Some(keywords));
        for (place, parameter) in function.parameters.iter().enumerate() {
            let is_unknown = |datum: &Datum| matches!(datum.unmarked(), Datum::Unknown(_));
            let argument = if parameter.is_variadic() {
                let items = variadic.take().unwrap_or_default();
                unknown |= items.iter().any(is_unknown);
                for (further, item) in items.iter().enumerate() {
                    let span = self
                        .site
                        .argument(parameter.name, place + further, context.model());
                    self.check(parameter.name, span, parameter, item, context)?;
                }
                Datum::List(items.into())
            } else if parameter.is_keywords() {
                let entries = keywords.take().unwrap_or_default();
                unknown |= entries.iter().any(|(_, value)| is_unknown(value));
                for (name, value) in &entries {
                    let span = self.site.argument(name, usize::MAX, context.model());
                    self.check(name, span, parameter, value, context)?;
                }
                Datum::Dict(std::sync::Arc::new(entries.into_iter().collect::<Dict>()))
            } else {
                match given.next().flatten() {
                    Some(value) => {
                        let span = self.site.argument(parameter.name, place, context.model());
                        self.check(parameter.name, span, parameter, &value, context)?;
                        unknown |= !parameter.unknowns && is_unknown(&value);
                        value
                    }
                    None => parameter.default_datum(),
                }
            };
            bound.push(if function.sees_marks() {
                argument
            } else {
                argument.unmark_deep(&mut marks)
            });
        }
        if unknown {
            return Ok(context.unknowns().create());
        }
        if let Some(replacement) = function.deprecated {
            context.warn(self.deprecated(replacement));
        }
        let result = (function.run)(&mut Call {
            arguments: bound,
            context,
            span: self.site.span,
        });
        let result = self.finish(result, &marks, context)?;
        let ty = function.result.resolve(context);
        self.check_result(&ty, function.result.validator(), &result, context)?;
        Ok(result)
    }

    /// Calls a function of the shared library.
    fn library(
        &self,
        function: &FunctionRef,
        arguments: Arguments,
        unknown_keywords: bool,
        context: &mut dyn Context,
    ) -> Result<Datum, Stop> {
        let result = library::call_library(self.name, function, arguments, unknown_keywords, context);
        match result {
            Ok(result) => bounded(result, self.site.span).map_err(Stop::Error),
            Err(library::Refused::Arguments(message)) => Err(self.wrong_arguments(message).into()),
            Err(library::Refused::Type(message)) => Err(self.wrong_type(message).into()),
            Err(library::Refused::Failure(failure)) => self.finish(Err(failure), &Marks::none(), context),
        }
    }

    /// Turns what an implementation answered into what a call answers.
    fn finish(
        &self,
        result: Result<Datum, Failure>,
        marks: &Marks,
        context: &mut dyn Context,
    ) -> Result<Datum, Stop> {
        let name = self.name;
        let failed = |class: &'static str, reason: &str| {
            let message = format!("function `{name}` failed: {reason}");
            Diagnostic::error(&codes::CALL_FAILED, self.site.span, message)
                .of_class(class)
                .label("in this call")
        };
        match result {
            Ok(result) => bounded(result.with_marks(marks), self.site.span).map_err(Stop::Error),
            Err(Failure::Unknown) => Ok(context.unknowns().create()),
            Err(Failure::Unset(cell)) => Err(Stop::Unset(cell)),
            Err(Failure::Declared(reason)) => {
                Err(failed(class::EXPLICIT_PLUGIN, &hidden(reason, marks)).into())
            }
            Err(Failure::Other(reason)) => Err(failed(class::EXTERNAL, &hidden(reason, marks)).into()),
            Err(Failure::Caused(cause)) => {
                let reason = hidden(cause.message.clone(), marks);
                Err(failed(class::EXTERNAL, &reason).caused_by(*cause).into())
            }
            Err(Failure::Model(mut cause)) => {
                // What is not placed yet, is at the call.
                if cause.code == &codes::DEFERRED {
                    cause.primary.span = self.site.span;
                }
                let reason = hidden(cause.message.clone(), marks);
                Err(failed(class::WRAPPING, &reason).caused_by(*cause).into())
            }
        }
    }

    fn check(
        &self,
        name: &str,
        span: Span,
        parameter: &Parameter,
        value: &Datum,
        context: &dyn Context,
    ) -> Result<(), Stop> {
        let ty = parameter.resolved(context);
        // A default may be null where null may not be given.
        if parameter.references && matches!(value.unmarked(), Datum::Deferred(_)) {
            return Ok(());
        }
        let naming = Naming {
            model: context.model(),
            instances: context,
        };
        let checked = crate::types::check_signature(&ty, value, self.site.span, naming);
        let checked = checked.and_then(|()| parameter.validate(value, self.site.span, naming));
        checked.map_err(|cause| {
            let message = format!(
                "value `{}` for argument `{name}` of function `{}` has incompatible type, expected `{}`",
                crate::text::shown(value, naming),
                self.name,
                parameter.ty.text(),
            );
            let error = self.wrong_type(message).shown_at(span);
            Stop::from(error.caused_by(cause.shown_at(span)))
        })
    }

    fn check_result(
        &self,
        ty: &setpoint_cf_names::types::SignatureType,
        validator: Option<&'static str>,
        result: &Datum,
        context: &dyn Context,
    ) -> Result<(), Stop> {
        let naming = Naming {
            model: context.model(),
            instances: context,
        };
        let checked = crate::types::check_signature(ty, result, self.site.span, naming);
        let checked =
            checked.and_then(|()| crate::std::validate_as(validator, result, self.site.span, naming));
        checked.map_err(|cause| {
            let message = format!(
                "result `{}` of function `{}` has incompatible type",
                crate::text::shown(result, naming),
                self.name,
            );
            Stop::from(self.wrong_type(message).caused_by(*cause))
        })
    }

    fn wrong_arguments(&self, message: String) -> Diagnostic {
        Diagnostic::error(&codes::CALL_ARGUMENTS, self.site.span, message).of_class(class::RUNTIME)
    }

    fn wrong_type(&self, message: String) -> Diagnostic {
        Diagnostic::error(&codes::ARGUMENT_TYPE, self.site.span, message).of_class(class::PLUGIN_TYPE)
    }

    fn deprecated(&self, replacement: &str) -> Diagnostic {
        let message = format!("function `{}` is deprecated", self.name);
        let warning = Diagnostic::warning(&codes::DEPRECATED, self.site.name, message)
            .of_class(class::PLUGIN_DEPRECATION);
        if replacement.is_empty() {
            return warning;
        }
        warning.help(format!("use {replacement}"))
    }
}

/// A reason without its wording where that could show what is sensitive.
fn hidden(reason: String, marks: &Marks) -> String {
    if marks.contains(&setpoint_value::Mark::Sensitive) {
        return "the reason is not shown because an argument is sensitive".to_owned();
    }
    reason
}

#[cfg(test)]
mod tests;
