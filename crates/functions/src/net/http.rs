//! `net/http`: answers of requests that resources make.

use setpoint_value::{CallError, Class, Example, FunctionSpec, Module, Value};

use crate::follow::{Follow, text};

pub(crate) static MODULE: Module = Module::new("net/http", "Answers of HTTP requests.", &[&RESPONSE]);

static RESPONSE: FunctionSpec = FunctionSpec::source(
    MODULE.name,
    "response",
    &["func(uid str) struct{status int; output str}"],
    Class::Source,
    &Follow::new(
        |reading, arguments| {
            let uid = uid(arguments)?;
            let response = match reading.capabilities.http_responses() {
                Some(responses) => responses
                    .get(uid)
                    .map_err(|error| CallError::fatal(format!("can't read the answer: {error}")))?,
                None => None,
            };
            let (status, body) = response.unwrap_or((0, Vec::new()));
            Ok(Value::structure(
                reading.result.clone(),
                vec![Value::Int(status), Value::str(body)],
            ))
        },
        |watching, arguments| {
            let uid = uid(arguments)?;
            let responses = watching.capabilities.http_responses();
            Ok(responses.map(|r| r.watch(uid, watching.wake.clone())).into_iter().collect())
        },
    )
    .keyed(),
)
.documented(
    "Status and body of the answer that the `http:client` resource with this `uid` got. It follows changes.\n\nBefore \
     the first answer the status is 0; after a request that failed it is -1.",
    &[Example {
        call: r#"http.response("nobody asks")->status"#,
        result: "0",
    }],
);

fn uid(arguments: &[Value]) -> Result<&str, CallError> {
    let uid = text(arguments, 0)?;
    if uid.is_empty() {
        return Err(CallError::fatal("the uid must not be empty"));
    }
    Ok(uid)
}
