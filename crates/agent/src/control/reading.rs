//! A line of a client is read, and what is wrong with one is said: which field, and what it may hold. What requests may hold comes from the
//! schema that is made from their types, so there is nothing to keep in step here.

use std::sync::LazyLock;

use serde_json::error::Category;
use serde_json::{Map, Value as Json};
use setpoint_diagnostics::did_you_mean;

use super::protocol::{ErrorCode, REQUESTS, Request};
use super::refusal::Refusal;
use super::schema::lines_schema;

/// What a line of a client asks for; nothing, if it is blank.
pub(super) fn parse(line: &[u8]) -> Result<Option<Request>, Refusal> {
    if line.trim_ascii().is_empty() {
        return Ok(None);
    }
    let mut fields = object(line)?;
    let id = match fields.remove("id") {
        None => return Err(not_one("it has no `id`")),
        Some(id) => id
            .as_u64()
            .ok_or_else(|| not_one(format!("`id` must be {WHOLE}, and is {}", shown(&id))))?,
    };
    let name = match fields.get("request") {
        None => return Err(not_one("it has no `request`").of(id)),
        Some(Json::String(name)) => name.clone(),
        Some(other) => {
            return Err(not_one(format!("`request` must be a text, and is {}", shown(other))).of(id));
        }
    };
    if !REQUESTS.contains(&&*name) {
        let help = did_you_mean(&name, REQUESTS);
        let help = help.unwrap_or_else(|| format!("there are {}", REQUESTS.join(", ")));
        let message = format!("there is no request `{name}`");
        return Err(Refusal::new(ErrorCode::UnknownRequest, message)
            .helped(Some(help))
            .of(id));
    }
    let ask = serde_json::from_value(Json::Object(fields.clone()));
    let ask = ask.map_err(|_| wrong_field(&name, &fields).of(id))?;
    Ok(Some(Request { id, ask }))
}

/// What a client is answered at once to a line that is no request, as a line; none if it is one, or blank. For whoever tries the reading with
/// any bytes.
#[must_use]
pub fn refuse_request(line: &[u8]) -> Option<String> {
    let refusal = parse(line).err()?;
    serde_json::to_string(&refusal.answer()).ok()
}

fn not_one(why: impl std::fmt::Display) -> Refusal {
    let help = r#"a request is a line such as {"id":1,"request":"status"}"#;
    Refusal::new(ErrorCode::NotARequest, format!("this is no request: {why}")).helped(Some(help.to_owned()))
}

fn object(line: &[u8]) -> Result<Map<String, Json>, Refusal> {
    match serde_json::from_slice(line) {
        Ok(Json::Object(fields)) => Ok(fields),
        Ok(other) => Err(not_one(format!("it is {}, and must be an object", shown(&other)))),
        Err(error) if error.classify() == Category::Eof => Err(not_one("it ends amid its JSON")),
        Err(error) => Err(not_one(format!(
            "it is no JSON that can be read, from column {} on",
            error.column()
        ))),
    }
}

/// What the schema says of each request.
static REQUEST_SCHEMAS: LazyLock<Vec<Json>> = LazyLock::new(|| {
    let mut schema = lines_schema();
    match schema.pointer_mut("/$defs/request/oneOf").map(Json::take) {
        Some(Json::Array(sorts)) => sorts,
        _ => Vec::new(),
    }
});

/// Says which field of a request is wrong, and what it may be.
fn wrong_field(name: &str, fields: &Map<String, Json>) -> Refusal {
    let schema = REQUEST_SCHEMAS.iter().find(|schema| schema["title"] == name);
    let known = schema.and_then(|schema| schema["properties"].as_object());
    let own = known.into_iter().flatten();
    let own: Vec<(&str, &Json)> = own
        .filter(|(field, _)| !["id", "request"].contains(&field.as_str()))
        .map(|(field, schema)| (field.as_str(), schema))
        .collect();
    let invalid = |message: String| Refusal::new(ErrorCode::Invalid, message);
    let given = fields.iter().filter(|(field, _)| *field != "request");
    // Many fields may be `null`, so that is blamed last.
    let (nulls, others): (Vec<_>, Vec<_>) = given.partition(|(_, value)| value.is_null());
    for (field, value) in others.into_iter().chain(nulls) {
        let Some((_, schema)) = own.iter().find(|(known, _)| known == field) else {
            let names = own.iter().map(|(known, _)| *known);
            let all = names.clone().map(|name| format!("`{name}`")).collect::<Vec<_>>();
            let help = did_you_mean(field, names).unwrap_or_else(|| match all.as_slice() {
                [] => "it has only `id` and `request`".to_owned(),
                all => format!("besides `id` and `request`, it has {}", all.join(", ")),
            });
            return invalid(format!("the request `{name}` has no field `{field}`")).helped(Some(help));
        };
        if let Some((why, help)) = wrong_value(schema, value) {
            return invalid(format!("`{field}` of the request `{name}` {why}")).helped(help);
        }
    }
    let missing = own.iter().find(|(field, _)| {
        let required = schema.and_then(|schema| schema["required"].as_array());
        required.is_some_and(|required| required.iter().any(|one| one == field))
            && !fields.contains_key(*field)
    });
    match missing {
        Some((field, schema)) => invalid(format!(
            "the request `{name}` lacks `{field}`, {}",
            wanted(schema)
        )),
        None => invalid(format!("the request `{name}` cannot be read")),
    }
}

const WHOLE: &str = "a whole number that is not negative";

/// What a field must be.
fn wanted(schema: &Json) -> &'static str {
    match schema["type"].as_str() {
        Some("array") if schema["items"]["oneOf"].is_array() => "a list of words",
        Some("array") => "a list of texts",
        Some("integer") => WHOLE,
        Some("boolean") => "`true` or `false`",
        _ => "a text",
    }
}

/// What is wrong with the value of a field, if anything is, and what helps.
fn wrong_value(schema: &Json, value: &Json) -> Option<(String, Option<String>)> {
    let must = |value: &Json| {
        let why = format!("must be {}, and is {}", wanted(schema), shown(value));
        Some((why, None))
    };
    match (schema["type"].as_str(), value) {
        (Some("array"), Json::Array(items)) => {
            let words = schema.pointer("/items/oneOf").and_then(Json::as_array);
            let words = words.into_iter().flatten();
            let words: Vec<&str> = words.filter_map(|word| word["const"].as_str()).collect();
            for item in items {
                let Some(text) = item.as_str() else {
                    let why = format!("must be {}, and holds {}", wanted(schema), shown(item));
                    return Some((why, None));
                };
                if !words.is_empty() && !words.contains(&text) {
                    let help = did_you_mean(text, words.iter().copied());
                    let help = help.unwrap_or_else(|| format!("there are {}", words.join(", ")));
                    return Some((format!("holds `{text}`, which is none"), Some(help)));
                }
            }
            None
        }
        (Some("integer"), value) if value.as_u64().is_some() => None,
        (Some("boolean"), Json::Bool(_)) | (Some("string"), Json::String(_)) => None,
        (_, value) => must(value),
    }
}

/// A value, as it is told.
fn shown(value: &Json) -> String {
    match value {
        Json::Null => "`null`".to_owned(),
        Json::Bool(value) => format!("`{value}`"),
        Json::Number(number) => format!("`{number}`"),
        Json::String(_) => "a text".to_owned(),
        Json::Array(_) => "a list".to_owned(),
        Json::Object(_) => "an object".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::protocol::Ask;
    use super::*;

    /// What a client is told of a line, and for which request.
    fn refused(line: &str) -> (Option<u64>, ErrorCode, String) {
        let refusal = parse(line.as_bytes()).expect_err(line);
        let help = refusal.help.map(|help| format!("; {help}"));
        let text = format!("{}{}", refusal.message, help.unwrap_or_default());
        (refusal.id, refusal.code, text)
    }

    #[test]
    fn what_is_no_request_is_said_to_be_none() {
        let example = r#"; a request is a line such as {"id":1,"request":"status"}"#;
        for (line, id, why) in [
            (
                "garbage",
                None,
                "it is no JSON that can be read, from column 1 on",
            ),
            (r#"{"id":1"#, None, "it ends amid its JSON"),
            ("[1]", None, "it is a list, and must be an object"),
            ("7", None, "it is `7`, and must be an object"),
            (r#"{"request":"status"}"#, None, "it has no `id`"),
            (
                r#"{"id":-1,"request":"status"}"#,
                None,
                "`id` must be a whole number that is not negative, and is `-1`",
            ),
            (r#"{"id":7}"#, Some(7), "it has no `request`"),
            (
                r#"{"id":7,"request":[]}"#,
                Some(7),
                "`request` must be a text, and is a list",
            ),
        ] {
            let wanted = format!("this is no request: {why}{example}");
            assert_eq!(refused(line), (id, ErrorCode::NotARequest, wanted));
        }
        let text = "there is no request `statsu`; did you mean `status`?".to_owned();
        assert_eq!(
            refused(r#"{"id":7,"request":"statsu"}"#),
            (Some(7), ErrorCode::UnknownRequest, text)
        );
        assert!(
            refused(r#"{"id":7,"request":"halt"}"#)
                .2
                .contains("there are status, graph")
        );
    }

    #[test]
    fn of_a_wrong_request_the_field_is_said_and_what_it_may_hold() {
        for (line, wanted) in [
            (
                r#""status","kindd":[]"#,
                "the request `status` has no field `kindd`; did you mean `kinds`?",
            ),
            (
                r#""recheck","what":[]"#,
                "the request `recheck` has no field `what`; besides `id` and `request`, it has `resources`",
            ),
            (
                r#""pause","for":3"#,
                "the request `pause` has no field `for`; it has only `id` and `request`",
            ),
            (
                r#""recheck""#,
                "the request `recheck` lacks `resources`, a list of texts",
            ),
            (
                r#""cancel""#,
                "the request `cancel` lacks `of`, a whole number that is not negative",
            ),
            (
                r#""recheck","resources":"x""#,
                "`resources` of the request `recheck` must be a list of texts, and is a text",
            ),
            (
                r#""recheck","resources":["x",3]"#,
                "`resources` of the request `recheck` must be a list of texts, and holds `3`",
            ),
            (
                r#""recheck","resources":null"#,
                "`resources` of the request `recheck` must be a list of texts, and is `null`",
            ),
            (
                r#""events","since":-1"#,
                "`since` of the request `events` must be a whole number that is not negative, and is `-1`",
            ),
            (
                r#""events","since":1.5"#,
                "`since` of the request `events` must be a whole number that is not negative, and is `1.5`",
            ),
            (
                r#""events","follow":"yes""#,
                "`follow` of the request `events` must be `true` or `false`, and is a text",
            ),
            (
                r#""status","standings":["faild"]"#,
                "`standings` of the request `status` holds `faild`, which is none; did you mean `failed`?",
            ),
            (
                r#""status","standings":[{}]"#,
                "`standings` of the request `status` must be a list of words, and holds an object",
            ),
        ] {
            let line = format!(r#"{{"id":7,"request":{line}}}"#);
            assert_eq!(refused(&line), (Some(7), ErrorCode::Invalid, wanted.to_owned()));
        }
        let standings = refused(r#"{"id":7,"request":"status","standings":["x"]}"#).2;
        assert!(
            standings.ends_with("would_change, right, running, waiting, starting"),
            "{standings}"
        );
    }

    #[test]
    fn lines_are_read_and_blank_ones_are_nothing() {
        for blank in ["", "  ", "\t\r\n"] {
            assert!(matches!(parse(blank.as_bytes()), Ok(None)));
        }
        let right = parse(b" {\"id\":7,\"request\":\"events\",\"follow\":true,\"since\":null}\r\n");
        assert!(matches!(
            right,
            Ok(Some(Request {
                id: 7,
                ask: Ask::Events {
                    follow: true,
                    since: None,
                    ..
                }
            }))
        ));
    }
}
