//! Calls of functions that modules have in Python: arguments are bound and checked here as for all others.

use std::sync::Arc;

use setpoint_cf_names::datum::Datum;
use setpoint_cf_names::plugins::{ParameterKind, PluginFunction};
use setpoint_cf_names::types::SignatureType;
use setpoint_diagnostics::Diagnostic;
use setpoint_value::Marks;

use super::{OneCall, bounded};
use crate::binding::{Bound, Shape, Takes, bind};
use crate::context::{Arguments, Context, Stop};
use crate::plugins;
use crate::text::{Naming, shown, type_text};
use crate::types::check_signature;

impl OneCall<'_> {
    pub(super) fn plugin(
        &self,
        function: &PluginFunction,
        arguments: Arguments,
        unknown_keywords: bool,
        context: &mut dyn Context,
    ) -> Result<Datum, Stop> {
        // What is not run takes anything and gives nobody knows what.
        if !function.is_run() {
            return Ok(context.unknowns().create());
        }
        // What is wrong with the signature is told with the place of the function, which needs the context for itself.
        let wrong = match function.signature(context.model()) {
            Ok(_) => None,
            Err(what) => Some(self.wrong_type(format!("the type {what}: function `{}`", self.name))),
        };
        if let Some(error) = wrong {
            return Err(plugins::at_definition(function, error, context).into());
        }
        let shapes = shapes(function);
        let Bound {
            values,
            variadic,
            keywords,
        } = match bind(self.name, &shapes, arguments, unknown_keywords) {
            Ok(bound) => bound,
            Err(message) => {
                let error = self.wrong_arguments(message);
                return Err(plugins::at_definition(function, error, context).into());
            }
        };
        let mut call = Crossing {
            unknown: unknown_keywords,
            marks: Marks::none(),
            positional: Vec::new(),
            keywords: Vec::new(),
        };
        self.cross(function, values, variadic, keywords, &mut call, context)?;
        if call.unknown {
            return Ok(context.unknowns().create());
        }
        if let Some(replacement) = function.deprecated() {
            let replacement = replacement.map(|name| format!("`{name}`"));
            context.warn(self.deprecated(replacement.as_deref().unwrap_or("")));
        }
        let Crossing {
            mut marks,
            positional,
            keywords,
            ..
        } = call;
        let call = plugins::Call {
            function,
            positional: &positional,
            keywords: &keywords,
            span: self.site.span,
        };
        let result = plugins::run(&call, context, &mut marks);
        let result = match result {
            Ok(result) => bounded(result.with_marks(&marks), self.site.span).map_err(Stop::Error)?,
            Err(None) => return Ok(context.unknowns().create()),
            Err(Some(stop)) => return Err(stop),
        };
        if let Ok(signature) = function.signature(context.model()) {
            let naming = naming(context);
            if let Err(cause) = check_signature(&signature.result, &result, self.site.span, naming) {
                let message = format!(
                    "result `{}` of function `{}` has incompatible type, expected `{}`",
                    shown(&result, naming),
                    self.name,
                    type_text(&signature.result, naming.model),
                );
                let error = self.wrong_type(message).caused_by(*cause);
                return Err(plugins::at_definition(function, error, context).into());
            }
        }
        Ok(result)
    }

    /// Checks arguments, and puts them in the order in which Python takes them: what was left out is Python's own default.
    fn cross(
        &self,
        function: &PluginFunction,
        values: Vec<Option<Datum>>,
        variadic: Vec<Datum>,
        keywords: Vec<(Arc<str>, Datum)>,
        call: &mut Crossing,
        context: &dyn Context,
    ) -> Result<(), Stop> {
        let Ok(signature) = function.signature(context.model()) else {
            return Ok(());
        };
        let mut values = values.into_iter();
        let mut in_order = true;
        let (mut variadic, mut keywords) = (Some(variadic), Some(keywords));
        for (place, (shape, ty)) in shapes(function).iter().zip(&signature.parameters).enumerate() {
            match shape.takes {
                Takes::Variadic => {
                    for (further, value) in variadic.take().unwrap_or_default().into_iter().enumerate() {
                        let given = (shape.name, place + further);
                        let value = self.take(given, ty, value, function, call, context)?;
                        call.positional.push(value);
                    }
                }
                Takes::Keywords => {
                    for (name, value) in keywords.take().unwrap_or_default() {
                        let given = (&*name, usize::MAX);
                        let value = self.take(given, ty, value, function, call, context)?;
                        call.keywords.push((name, value));
                    }
                }
                Takes::Required | Takes::Optional | Takes::RequiredKeyword | Takes::OptionalKeyword => {
                    let by_name = matches!(shape.takes, Takes::RequiredKeyword | Takes::OptionalKeyword);
                    let Some(value) = values.next().flatten() else {
                        in_order &= by_name;
                        continue;
                    };
                    let value = self.take((shape.name, place), ty, value, function, call, context)?;
                    match in_order && !by_name {
                        true => call.positional.push(value),
                        false => call.keywords.push((shape.name.into(), value)),
                    }
                }
            }
        }
        Ok(())
    }

    /// Checks one argument, of a name and place. Its marks are taken in.
    fn take(
        &self,
        (name, place): (&str, usize),
        ty: &SignatureType,
        value: Datum,
        function: &PluginFunction,
        call: &mut Crossing,
        context: &dyn Context,
    ) -> Result<Datum, Stop> {
        let naming = naming(context);
        check_signature(ty, &value, self.site.span, naming).map_err(|cause| {
            let message = format!(
                "value `{}` for argument `{name}` of function `{}` has incompatible type, expected `{}`",
                shown(&value, naming),
                self.name,
                type_text(ty, naming.model),
            );
            let span = self.site.argument(name, place, naming.model);
            let error: Diagnostic = self.wrong_type(message).shown_at(span);
            Stop::from(error.caused_by(cause.shown_at(span)))
        })?;
        call.unknown |= !function.allows_unknown() && matches!(value.unmarked(), Datum::Unknown(_));
        Ok(value.unmark_deep(&mut call.marks))
    }
}

/// Arguments on their way.
struct Crossing {
    /// Whether one of them is not known.
    unknown: bool,
    /// Of all of them.
    marks: Marks,
    positional: Vec<Datum>,
    keywords: Vec<(Arc<str>, Datum)>,
}

/// What the parameters take.
fn shapes(function: &PluginFunction) -> Vec<Shape<'_>> {
    let parameters = function.parameters().iter();
    parameters
        .map(|parameter| Shape {
            name: &parameter.name,
            takes: match (parameter.takes, parameter.optional) {
                (ParameterKind::One, false) => Takes::Required,
                (ParameterKind::One, true) => Takes::Optional,
                (ParameterKind::Keyword, false) => Takes::RequiredKeyword,
                (ParameterKind::Keyword, true) => Takes::OptionalKeyword,
                (ParameterKind::Variadic, _) => Takes::Variadic,
                (ParameterKind::Keywords, _) => Takes::Keywords,
            },
        })
        .collect()
}

fn naming(context: &dyn Context) -> Naming<'_> {
    Naming {
        model: context.model(),
        instances: context,
    }
}
