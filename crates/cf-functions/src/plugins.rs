//! Calls of functions in Python. Arguments, bound to their parameters, go to the worker; its answer becomes a value or an error at the call.

mod conversation;

use std::sync::Arc;

use setpoint_cf_names::datum::Datum;
use setpoint_cf_names::plugins::{Lost, PluginFunction, exception_text};
use setpoint_diagnostics::{Diagnostic, Span};
use setpoint_value::{Mark, Marks};

use crate::codes::{self, class};
use crate::context::{Context, Stop};
use conversation::{CallEnd, Raised};

/// A call of a function, whose arguments are bound to its parameters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) function: &'a PluginFunction,
    pub(crate) positional: &'a [Datum],
    pub(crate) keywords: &'a [(Arc<str>, Datum)],
    pub(crate) span: Span,
}

/// Calls a function, and adds the marks of what it reads to `marks`.
///
/// # Errors
/// Why it has no result; `None` if that is unknown.
pub(crate) fn run(
    call: &Call<'_>,
    context: &mut dyn Context,
    marks: &mut Marks,
) -> Result<Datum, Option<Stop>> {
    let Call { function, span, .. } = *call;
    let Some(conversation) = function.conversation() else {
        return Err(None);
    };
    let end = match conversation::call(conversation, call, context, marks) {
        Ok(result) => return Ok(result),
        Err(end) => end,
    };
    let is_secret = marks.contains(&Mark::Sensitive);
    Err(Some(Stop::from(match end {
        CallEnd::Unknown => return Err(None),
        CallEnd::Stopped(stop) => return Err(Some(stop)),
        CallEnd::Unset(cell) => return Err(Some(Stop::Unset(cell))),
        CallEnd::Absent(instance, name) => {
            let entity = context.entity(instance);
            let entity = &context.model().entities[entity.index()].name;
            let reason = format!("optional variable accessed that has no value: `{name}` of `{entity}`");
            let cause =
                Diagnostic::error(&codes::NO_VALUE, span, reason.clone()).of_class(class::OPTIONAL_VALUE);
            failed(function, class::WRAPPING, &reason, span).caused_by(cause)
        }
        CallEnd::Refused(what) => failed(function, class::EXTERNAL, &what, span),
        CallEnd::Declared(exception) => raised(
            function,
            class::EXPLICIT_PLUGIN,
            &exception,
            span,
            is_secret,
            context,
        ),
        CallEnd::Raised(exception) => raised(function, class::EXTERNAL, &exception, span, is_secret, context),
        CallEnd::Lost(reason) => lost(function, reason, span),
    })))
}

/// Adds where the function is written to an error, if that can be shown.
pub(crate) fn at_definition(
    function: &PluginFunction,
    error: Diagnostic,
    context: &mut dyn Context,
) -> Diagnostic {
    let (file, line) = function.place();
    at_line(function, error, file, line, "the function is here", context)
}

fn failed(function: &PluginFunction, class: &'static str, reason: &str, span: Span) -> Diagnostic {
    let message = format!("function `{}` failed: {reason}", function.full_name());
    Diagnostic::error(&codes::CALL_FAILED, span, message)
        .of_class(class)
        .label("in this call")
}

fn lost(function: &PluginFunction, lost: Lost, span: Span) -> Diagnostic {
    let mut error = failed(function, class::EXTERNAL, &lost.reason, span);
    if let Some(said) = lost.said {
        error = error.note(format!("it said last: {said}"));
    }
    error.help_if(lost.help)
}

fn raised(
    function: &PluginFunction,
    class: &'static str,
    raised: &Raised,
    span: Span,
    is_secret: bool,
    context: &mut dyn Context,
) -> Diagnostic {
    let reason = match is_secret {
        true => "the reason is not shown because an argument is sensitive".to_owned(),
        false => exception_text(&raised.ty, &raised.message),
    };
    let mut error = failed(function, class, &reason, span);
    if let Some(file) = &raised.file {
        let label = match raised.function.as_deref() {
            Some(inner) if inner != function.path().1 && !inner.starts_with('<') => {
                format!("raised here, in `{inner}`")
            }
            _ => "raised here".to_owned(),
        };
        error = at_line(function, error, file, raised.line, &label, context);
    }
    if is_secret {
        return error;
    }
    for line in raised.message.lines().skip(1).take(20) {
        if !line.trim().is_empty() {
            error = error.note(line.trim_end().to_owned());
        }
    }
    match &raised.cause {
        Some(cause) => error.note(format!("because of {}", cause.lines().next().unwrap_or_default())),
        None => error,
    }
}

/// Points into a Python file too, or names the place where the text is not at hand.
fn at_line(
    function: &PluginFunction,
    error: Diagnostic,
    file: &str,
    line: u32,
    label: &str,
    context: &mut dyn Context,
) -> Diagnostic {
    let path = function
        .conversation()
        .map(|conversation| conversation.loaded_path(file));
    let path = path.unwrap_or_else(|| file.to_owned());
    let text = context
        .loader()
        .read(&path)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes.to_vec()).ok());
    let range = text.as_deref().and_then(|text| line_range(text, line));
    match (text, range) {
        (Some(text), Some((start, end))) => {
            let file = context.add_source(&path, &text);
            error.because(Span::new(file, start, end), label)
        }
        _ => error.note(format!("{label}: {path}:{line}")),
    }
}

/// Where the text of a line begins and ends, without the blanks around it.
fn line_range(text: &str, number: u32) -> Option<(u32, u32)> {
    let mut start = 0;
    let line = text.split_inclusive('\n').nth(number.checked_sub(1)? as usize)?;
    for before in text.split_inclusive('\n').take(number as usize - 1) {
        start += before.len();
    }
    let begin = start + (line.len() - line.trim_start().len());
    let end = (start + line.trim_end().len()).max(begin);
    Some((u32::try_from(begin).ok()?, u32::try_from(end).ok()?))
}
