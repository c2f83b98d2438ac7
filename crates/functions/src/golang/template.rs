//! `golang.template`: Go's `text/template`.
//!
//! A text is cut into tokens ([`lexer`]), these become a tree ([`parser`]), and that is executed on data ([`executor`]). All of
//! it is bounded: nesting, steps and the length of the output.

use setpoint_value::{CallContext, CallError, Module, Value, function};

mod builtins;
mod core;
mod datum;
mod executor;
mod lexer;
mod parser;
mod printing;
mod tree;

use datum::Datum;

pub(crate) static MODULE: Module = Module::new("golang", "Go's text templates.", &[&TEMPLATE]);

/// A text made by a template in the language of Go's `text/template`.
///
/// Fields of structs have a capital first letter in templates: `$st->http_port` is `.Http_port`. Functions of the library
/// without type variables can be called with `_` for `.` and `/`: `strings_to_upper`. Functions that follow the machine or the time, such as `datetime.now`, cannot; pass their values in `vars`. A missing key is an error. Errors
/// while the template is executed can be caught by `<|>`.
#[function(
    environment,
    module_directory,
    raw,
    signature = "func(template str) str",
    signature = "func(template str, vars ?1) str",
    parameters(
        /// The text of the template.
        template,
        /// The value of `.` in the template, usually a struct or a map.
        #[default = "nothing"]
        vars,
    ),
    example(
        call = r#"golang.template("{{ range . }}<{{ . }}>{{ end }}", ["a", "b"])"#,
        result = r#""<a><b>""#
    ),
    example(
        call = r#"golang.template("{{ .Name | strings_to_upper }}", struct{name => "x"})"#,
        result = r#""X""#
    )
)]
fn template(context: &CallContext<'_>, arguments: &[Value]) -> Result<Value, CallError> {
    let Some(text) = arguments.first().and_then(Value::as_str) else {
        return Ok(Value::unknown(context.result.clone()));
    };
    let parsed = parser::parse(text.as_bytes())
        .map_err(|problem| CallError::fatal(format!("template: parse error: {problem}")))?;
    let data = match arguments.get(1) {
        None => Datum::Nothing,
        Some(value) if !value.is_wholly_known() => return Ok(Value::unknown(context.result.clone())),
        Some(value) => Datum::from_value(value)
            .map_err(|ty| CallError::fatal(format!("can't use `{ty}` as vars input")))?,
    };
    let output = executor::execute(&parsed, data, context)
        .map_err(|problem| CallError::catchable(format!("template: execution error: {problem}")))?;
    Ok(Value::str(output))
}

#[cfg(test)]
mod tests;
