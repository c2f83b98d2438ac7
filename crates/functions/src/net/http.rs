//! `net/http`: answers of requests that resources make.

use setpoint_value::native::text;
use setpoint_value::{CallContext, CallError, Module, Timer, Type, Value, function};

pub(crate) static MODULE: Module = Module::new("net/http", "Answers of HTTP requests.", &[&RESPONSE]);

/// Status and body of the answer that the `http:client` resource with this `uid` got.
///
/// Before the first answer the status is 0; after a request that failed it is -1.
#[function(
    watch = watch,
    keyed,
    signature = "func(uid str) struct{status int; output str}",
    example(call = r#"http.response("nobody asks")->status"#, result = "0")
)]
fn response(
    context: &CallContext<'_>,
    /// The `uid` of the resource. It must not change while the program runs.
    uid: &str,
    result: &Type,
) -> Result<Value, CallError> {
    let response = match context.capabilities.http_responses() {
        Some(responses) => responses
            .get(uid)
            .map_err(|error| CallError::fatal(format!("can't read the answer: {error}")))?,
        None => None,
    };
    let (status, body) = response.unwrap_or((0, Vec::new()));
    Ok(Value::structure(
        result.clone(),
        vec![Value::Int(status), Value::str(body)],
    ))
}

fn watch(context: &CallContext<'_>, arguments: &[Value]) -> Result<Vec<Timer>, CallError> {
    let uid = uid(arguments)?;
    let responses = context.capabilities.http_responses();
    Ok(responses
        .map(|r| r.watch(uid, context.wake.clone()))
        .into_iter()
        .collect())
}

fn uid(arguments: &[Value]) -> Result<&str, CallError> {
    let uid = text(arguments, 0)?;
    if uid.is_empty() {
        return Err(CallError::fatal("the uid must not be empty"));
    }
    Ok(uid)
}
