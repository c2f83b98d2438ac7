//! Resources as other hosts get them: the text that an exported one becomes, and collect statements, which read it back.
//!
//! The text is versioned JSON with a type beside each parameter, exact for everything that a resource can hold. Sensitive parameters stand by
//! themselves, so that whoever stores it can encrypt them and leave the rest readable.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustc_hash::FxHashSet;
use serde_json::{Value as Json, json};
use setpoint_diagnostics::Diagnostics;
use setpoint_value::{Map, Marks, Type, Value, format_float};

use crate::build::left_out;
use crate::{
    CollectedResource, DesiredResource, KindSchema, Language, Link, MetaName, MetaParameters, Parameters,
    ResourceId, ResourceStatement, StatementOutput, UnknownPart, UnknownWhat, build_collected, read_collect,
};

/// The version that is written; others are not read.
const VERSION: u64 = 1;

/// Where sensitive parameters stand in the text.
pub const SECRETS: &str = "secrets";

/// Where whoever stores the text puts them encrypted, instead.
pub const ENCRYPTED: &str = "encrypted";

/// The text that a resource becomes.
#[derive(Clone, PartialEq, Eq)]
pub struct ExportedText {
    /// JSON, with sensitive parameters in the clear under [`SECRETS`].
    pub text: String,
    /// A parameter that is sensitive, if one is.
    pub secret: Option<&'static str>,
}

/// A resource as the text that is exported. Its name is not part of it.
///
/// # Errors
/// Which of its values cannot be told to others.
pub fn encode_exported(resource: &DesiredResource) -> Result<ExportedText, String> {
    let of = |name: &str, value: &Value| encode(value).map_err(|problem| format!("`{name}` {problem}"));
    let (mut parameters, mut secrets, mut secret) = (Vec::new(), Vec::new(), None);
    for (name, value) in resource.parameters.iter() {
        let is_sensitive = value.is_sensitive();
        let value = value.unmark_deep(&mut Marks::none());
        let item = json!([name, value.ty().to_string(), of(name, &value)?]);
        if is_sensitive {
            secret.get_or_insert(name);
            secrets.push(item);
        } else {
            parameters.push(item);
        }
    }
    let mut meta = Vec::new();
    for name in resource.meta.written.iter() {
        if name != MetaName::Export {
            let value = resource.meta.value(name);
            if value.is_sensitive() {
                return Err(format!("`Meta:{}` is sensitive", name.name()));
            }
            meta.push(json!([name.name(), of(name.name(), &value)?]));
        }
    }
    let mut document = json!({ "version": VERSION, "parameters": parameters, "meta": meta });
    if secret.is_some() {
        document[SECRETS] = secrets.into();
    }
    Ok(ExportedText {
        text: document.to_string(),
        secret,
    })
}

/// Reads what [`encode_exported`] wrote on another host.
///
/// # Errors
/// Why it cannot be read: it is damaged, of another version, or does not fit the kind as this host knows it.
pub fn decode_exported(
    schema: &KindSchema,
    (name, host): (&str, &str),
    data: &str,
) -> Result<CollectedResource, String> {
    let document: Json = serde_json::from_str(data).map_err(|_| damaged())?;
    if document["version"] != json!(VERSION) {
        return Err("it was exported by another version".to_owned());
    }
    if !document[ENCRYPTED].is_null() {
        return Err("it is encrypted, and not for this host".to_owned());
    }
    let mut entries = Vec::new();
    let open = items(&document["parameters"])?.iter().map(|item| (item, false));
    let secrets = match &document[SECRETS] {
        Json::Null => &[],
        secrets => items(secrets)?,
    };
    for (item, is_secret) in open.chain(secrets.iter().map(|item| (item, true))) {
        let written = item[0].as_str().ok_or_else(damaged)?;
        let parameter = schema
            .parameter(written)
            .ok_or_else(|| format!("`{}` has no parameter `{written}` here", schema.kind))?;
        let ty = item[1].as_str().and_then(Type::parse).ok_or_else(damaged)?;
        let wanted = parameter.parameter_type.ty();
        if !wanted.is_open() && wanted != ty {
            return Err(format!("`{written}` is {ty} there and {wanted} here"));
        }
        let value = decode(&ty, &item[2])?;
        let mismatch = |mismatch| format!("`{written}` does not fit here: {mismatch}");
        parameter.parameter_type.check(&value).map_err(mismatch)?;
        let value = if is_secret { value.sensitive() } else { value };
        entries.push((parameter.name, value));
    }
    let mut meta = MetaParameters::default();
    for item in items(&document["meta"])? {
        let name = item[0].as_str().and_then(MetaName::parse).ok_or_else(damaged)?;
        let value = decode(&name.ty(), &item[1])?;
        meta.set(name, &value)
            .map_err(|problem| format!("`Meta:{}` {problem}", name.name()))?;
    }
    Ok(CollectedResource {
        name: name.into(),
        host: host.into(),
        parameters: Parameters::new(entries),
        meta,
    })
}

/// The resources and edges of a collect statement. `exports` is what the world has of the kind: a list of structs with `name`,
/// `host` and `data`.
pub fn build_collect<S>(
    statement: &ResourceStatement<S>,
    exports: &Value,
    chain: Option<&Arc<Link>>,
    value: &dyn Fn(&S) -> Value,
    language: &dyn Language,
    diagnostics: &mut Diagnostics,
) -> StatementOutput {
    let requests = read_collect(&value(&statement.name), statement.span, language, diagnostics);
    let Some(exports) = exports.unmarked().as_list() else {
        return StatementOutput {
            unknown: vec![UnknownPart {
                span: statement.span,
                what: UnknownWhat::Block,
            }],
            span: Some(statement.span),
            ..StatementOutput::default()
        };
    };
    let requests: FxHashSet<(Arc<str>, Option<Arc<str>>)> = requests
        .into_iter()
        .map(|request| (request.name, request.host))
        .collect();
    let mut found = Vec::new();
    for export in exports.iter() {
        let text = |field: &str| {
            let text = export.as_struct()?.get(field)?.unmarked().as_str()?.to_lossy();
            Some(text.into_owned())
        };
        let (Some(name), Some(host), Some(data)) = (text("name"), text("host"), text("data")) else {
            continue;
        };
        let (any, this) = (
            (name.as_str().into(), None),
            (name.as_str().into(), Some(host.as_str().into())),
        );
        if !requests.contains(&any) && !requests.contains(&this) {
            continue;
        }
        let Some(schema) = statement.schema else { continue };
        match decode_exported(schema, (&name, &host), &data) {
            Ok(collected) => found.push(collected),
            Err(why) => {
                let id = ResourceId::new(schema.kind, name);
                diagnostics.push(left_out(&id, &host, &why, statement.span, language));
            }
        }
    }
    build_collected(statement, &found, chain, value, language, diagnostics)
}

fn damaged() -> String {
    "its text is damaged".to_owned()
}

fn items(list: &Json) -> Result<&[Json], String> {
    list.as_array().map(Vec::as_slice).ok_or_else(damaged)
}

fn encode(value: &Value) -> Result<Json, String> {
    let all = |values: &mut dyn Iterator<Item = &Value>| {
        let encoded: Result<Vec<Json>, String> = values.map(encode).collect();
        encoded.map(Json::Array)
    };
    Ok(match value.unmarked() {
        Value::Bool(value) => Json::Bool(*value),
        Value::Int(value) => (*value).into(),
        Value::Float(value) => {
            serde_json::Number::from_f64(value.0).map_or_else(|| format_float(value.0).into(), Json::Number)
        }
        Value::Str(text) => match text.as_str() {
            Some(text) => text.into(),
            None => json!({ "$bytes": STANDARD.encode(text.as_bytes()) }),
        },
        Value::List(list) => all(&mut list.iter())?,
        Value::Struct(fields) => all(&mut fields.iter().map(|(_, value)| value))?,
        Value::Map(map) => {
            let pairs = map
                .iter()
                .map(|(key, value)| Ok(json!([encode(key)?, encode(value)?])));
            Json::Array(pairs.collect::<Result<Vec<Json>, String>>()?)
        }
        Value::Unknown(_) => return Err("is not known yet".to_owned()),
        Value::Func(_)
        | Value::Null(_)
        | Value::Opaque(_)
        | Value::Set(_)
        | Value::Tuple(_)
        | Value::Marked(_) => return Err(format!("is of type {}, which cannot be exported", value.ty())),
    })
}

fn decode(ty: &Type, json: &Json) -> Result<Value, String> {
    Ok(match ty {
        Type::Bool => Value::Bool(json.as_bool().ok_or_else(damaged)?),
        Type::Int => Value::Int(json.as_i64().ok_or_else(damaged)?),
        Type::Float => Value::float(match json.as_str() {
            Some("NaN") => f64::NAN,
            Some("+Inf") => f64::INFINITY,
            Some("-Inf") => f64::NEG_INFINITY,
            _ => json.as_f64().ok_or_else(damaged)?,
        }),
        Type::Str => match (json.as_str(), json["$bytes"].as_str()) {
            (Some(text), _) => Value::str(text),
            (None, Some(bytes)) => Value::str(STANDARD.decode(bytes).map_err(|_| damaged())?),
            (None, None) => return Err(damaged()),
        },
        Type::List(element) => {
            let values = items(json)?.iter().map(|item| decode(element, item));
            Value::list(
                (**element).clone(),
                values.collect::<Result<Vec<Value>, String>>()?,
            )
        }
        Type::Map(kv) => {
            let pairs = items(json)?
                .iter()
                .map(|pair| Ok((decode(&kv.0, &pair[0])?, decode(&kv.1, &pair[1])?)));
            let pairs = pairs.collect::<Result<Vec<(Value, Value)>, String>>()?;
            Value::Map(Map::new(kv.0.clone(), kv.1.clone(), pairs))
        }
        Type::Struct(fields) => {
            let values = items(json)?;
            if values.len() != fields.fields.len() {
                return Err(damaged());
            }
            let values = fields.fields.iter().zip(values).map(|(f, v)| decode(&f.ty, v));
            Value::structure(ty.clone(), values.collect::<Result<Vec<Value>, String>>()?)
        }
        _ => return Err(damaged()),
    })
}
