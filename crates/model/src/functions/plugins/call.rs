//! A call of a function in Python: arguments at their parameters cross, and what comes back becomes a value or an error at the call.

use std::sync::Arc;

use setpoint_diagnostics::{Diagnostic, Span};
use setpoint_value::{Mark, Marks};

use super::conversation::{CallEnd, Raised};
use super::signature::exception_text;
use super::{Lost, PluginFunction};
use crate::datum::Datum;
use crate::functions::codes::{self, class};
use crate::functions::context::{Context, Stop};

impl PluginFunction {
    /// Calls it. Marks of what it reads are taken in.
    ///
    /// # Errors
    /// Why it has no result; `None` if that is unknown.
    pub(in crate::functions) fn run(
        &self,
        positional: &[Datum],
        keywords: &[(Arc<str>, Datum)],
        span: Span,
        context: &mut dyn Context,
        marks: &mut Marks,
    ) -> Result<Datum, Option<Stop>> {
        let Some(conversation) = self.conversation() else {
            return Err(None);
        };
        let end = match conversation.call(self, positional, keywords, context, marks) {
            Ok(result) => return Ok(result),
            Err(end) => end,
        };
        let is_secret = marks.contains(&Mark::Sensitive);
        Err(Some(Stop::from(match end {
            CallEnd::Unknown => return Err(None),
            CallEnd::Unset(cell) => return Err(Some(Stop::Unset(cell))),
            CallEnd::Absent(instance, name) => {
                let entity = context.entity(instance);
                let entity = &context.model().entities[entity.index()].name;
                let reason = format!("optional variable accessed that has no value: `{name}` of `{entity}`");
                let cause =
                    Diagnostic::error(&codes::NO_VALUE, span, reason.clone()).of_class(class::OPTIONAL_VALUE);
                self.failed(class::WRAPPING, &reason, span).caused_by(cause)
            }
            CallEnd::Refused(what) => self.failed(class::EXTERNAL, &what, span),
            CallEnd::Declared(raised) => {
                self.raised(class::EXPLICIT_PLUGIN, &raised, span, is_secret, context)
            }
            CallEnd::Raised(raised) => self.raised(class::EXTERNAL, &raised, span, is_secret, context),
            CallEnd::Lost(lost) => self.lost(lost, span),
        })))
    }

    /// Where it is written, if that can be shown.
    pub(in crate::functions) fn at_definition(
        &self,
        error: Diagnostic,
        context: &mut dyn Context,
    ) -> Diagnostic {
        let (file, line) = self.place();
        self.at_line(error, file, line, "the function is here", context)
    }

    fn failed(&self, class: &'static str, reason: &str, span: Span) -> Diagnostic {
        let message = format!("function `{}` failed: {reason}", self.full_name);
        Diagnostic::error(&codes::CALL_FAILED, span, message)
            .of_class(class)
            .label("in this call")
    }

    fn lost(&self, lost: Lost, span: Span) -> Diagnostic {
        let mut error = self.failed(class::EXTERNAL, &lost.reason, span);
        if let Some(said) = lost.said {
            error = error.note(format!("it said last: {said}"));
        }
        error.help_if(lost.help)
    }

    fn raised(
        &self,
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
        let mut error = self.failed(class, &reason, span);
        if let Some(file) = &raised.file {
            let label = match raised.function.as_deref() {
                Some(function) if function != self.path().1 && !function.starts_with('<') => {
                    format!("raised here, in `{function}`")
                }
                _ => "raised here".to_owned(),
            };
            error = self.at_line(error, file, raised.line, &label, context);
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
        &self,
        error: Diagnostic,
        file: &str,
        line: u32,
        label: &str,
        context: &mut dyn Context,
    ) -> Diagnostic {
        let path = self
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
