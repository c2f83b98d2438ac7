//! The conversation with a worker about one call.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value as Json, json};
use setpoint_cf_names::datum::{Datum, InstanceId};
use setpoint_cf_names::plugins::{Conversation, Lost, Made, Session};
use setpoint_diagnostics::Span;
use setpoint_value::Marks;

use super::Call;
use crate::context::{Context, Read, RecordError, Stop, UnsetCell};

/// Calls a function, and adds the marks of what it reads to `marks`.
pub(super) fn call(
    conversation: &Conversation,
    call: &Call<'_>,
    context: &mut dyn Context,
    marks: &mut Marks,
) -> Result<Datum, CallEnd> {
    let mut session = conversation.session();
    let mut noted = Noted::default();
    let result = exchange(&mut session, call, context, marks, &mut noted);
    if let Err(CallEnd::Lost(lost)) = result {
        let what = format!("`{}` was called", call.function.full_name());
        return Err(CallEnd::Lost(session.give_up(lost, &what)));
    }
    // Whatever a function makes of it: once the value is there, it is called again.
    if let Some(cell) = noted.unset {
        return Err(CallEnd::Unset(cell));
    }
    for line in session.take_printed().into_iter().chain(noted.printed) {
        context.print(line);
    }
    match noted.refused {
        Some(refused) => Err(CallEnd::Refused(refused)),
        None => result,
    }
}

/// Sends the call, answers reads of the worker, and receives the result.
fn exchange(
    session: &mut Session,
    call: &Call<'_>,
    context: &mut dyn Context,
    marks: &mut Marks,
    noted: &mut Noted,
) -> Result<Datum, CallEnd> {
    let Call {
        function,
        positional,
        keywords,
        span,
    } = *call;
    let (namespace, name) = function.path();
    let refused = |what: String| CallEnd::Refused(format!("an argument {what}"));
    let positional = positional
        .iter()
        .map(|value| session.given.encode(value, context.model(), context, marks));
    let positional: Vec<Json> = positional.collect::<Result<_, _>>().map_err(refused)?;
    let keywords = keywords.iter().map(|(name, value)| {
        let value = session.given.encode(value, context.model(), context, marks)?;
        Ok(json!([&**name, value]))
    });
    let keywords: Vec<Json> = keywords.collect::<Result<_, _>>().map_err(refused)?;
    session.begin()?;
    session.send(&json!({"call": {
        "namespace": namespace,
        "name": name,
        "positional": positional,
        "keywords": keywords,
        "deployment": &*context.deployment().deploy,
    }}))?;
    loop {
        match session.receive::<Message>()? {
            Message::Print(line) => noted.printed.extend(session.printed(line)),
            Message::Read(number, name) => {
                let instance = session.given.instance(number).ok_or_else(Lost::nonsense)?;
                let answer = match context.attribute(instance, &name) {
                    Read::Value(value) => match session.given.encode(&value, context.model(), context, marks)
                    {
                        Ok(value) => json!({ "value": value }),
                        Err(what) => {
                            noted.refused.get_or_insert(format!("attribute `{name}` {what}"));
                            json!({ "missing": true })
                        }
                    },
                    Read::Unset(cell) => {
                        noted.unset.get_or_insert(cell);
                        json!({ "unset": true })
                    }
                    Read::Absent => {
                        noted.absent = Some((instance, name));
                        json!({ "absent": true })
                    }
                    Read::NotFound => json!({ "missing": true }),
                };
                session.send(&answer)?;
            }
            Message::Result(value) => {
                // It will be called again.
                if noted.unset.is_some() {
                    return Ok(Datum::Null);
                }
                let mut made = MadeOfResult {
                    context,
                    marks,
                    span,
                    error: None,
                };
                let datum = session.given.decode(value, &mut made);
                return match made.error {
                    Some(RecordError::Refused(what)) => Err(CallEnd::Refused(format!("its result {what}"))),
                    Some(RecordError::Stopped(stop)) => Err(CallEnd::Stopped(stop)),
                    None => Ok(datum.ok_or_else(Lost::nonsense)?),
                };
            }
            Message::Refused(what) => return Err(CallEnd::Refused(format!("its result {what}"))),
            Message::Raised(raised) => {
                return Err(match (raised.sort, noted.absent.take()) {
                    (RaisedSort::Unknown, _) => CallEnd::Unknown,
                    (RaisedSort::Absent, Some((instance, name))) => CallEnd::Absent(instance, name),
                    (RaisedSort::Declared, _) => CallEnd::Declared(Box::new(raised)),
                    // One that was made by hand says nothing of the model.
                    (RaisedSort::Unset | RaisedSort::Absent | RaisedSort::Other, _) => {
                        CallEnd::Raised(Box::new(raised))
                    }
                });
            }
        }
    }
}

/// New values and instances in a result.
struct MadeOfResult<'a> {
    context: &'a mut dyn Context,
    /// Of all that the call was given and has read.
    marks: &'a Marks,
    span: Span,
    error: Option<RecordError>,
}

impl Made for MadeOfResult<'_> {
    fn unknown(&mut self) -> Datum {
        self.context.unknowns().create()
    }

    fn record(&mut self, entity: &str, attributes: Vec<(Arc<str>, Datum)>) -> Option<Datum> {
        let attributes = attributes.into_iter();
        let attributes = attributes.map(|(name, value)| (name, value.with_marks(self.marks)));
        let made = self.context.record(entity, attributes.collect(), self.span);
        made.map(Datum::Instance)
            .map_err(|error| self.error = Some(error))
            .ok()
    }
}

/// Why a call has no result.
pub(super) enum CallEnd {
    /// It needs what has no value yet.
    Unset(UnsetCell),
    /// It needs what is not known.
    Unknown,
    /// It read an optional relation that has no value.
    Absent(InstanceId, String),
    /// What crosses cannot.
    Refused(String),
    /// An instance that it answers cannot be made.
    Stopped(Stop),
    /// An exception that tells users something.
    Declared(Box<Raised>),
    /// Another exception.
    Raised(Box<Raised>),
    /// There is no worker, or none any more.
    Lost(Lost),
}

/// An exception.
#[derive(Debug, Deserialize)]
pub(super) struct Raised {
    sort: RaisedSort,
    /// Its class; empty where that says nothing.
    #[serde(rename = "type")]
    pub(super) ty: String,
    pub(super) message: String,
    /// Where it was raised, as the worker names the file.
    pub(super) file: Option<String>,
    pub(super) line: u32,
    pub(super) function: Option<String>,
    /// What it was raised because of.
    pub(super) cause: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RaisedSort {
    Unset,
    Unknown,
    Absent,
    Declared,
    Other,
}

/// What a worker says while it does something.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Message {
    Print(String),
    Read(u64, String),
    Result(Json),
    Refused(String),
    Raised(Raised),
}

/// What became known during a call.
#[derive(Default)]
struct Noted {
    unset: Option<UnsetCell>,
    absent: Option<(InstanceId, String)>,
    refused: Option<String>,
    printed: Vec<String>,
}

impl From<Lost> for CallEnd {
    fn from(lost: Lost) -> CallEnd {
        CallEnd::Lost(lost)
    }
}
