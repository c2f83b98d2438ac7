//! Functions that read what is outside of the model: files, the environment, facts, passwords; and deferred references.

use std::sync::Arc;

use setpoint_cf_names::datum::{Datum, Deferred, DeferredSource};
use setpoint_cf_names::kinds::attribute_type;
use setpoint_cf_names::types::{AttributeType, BaseType, SignatureType};
use setpoint_diagnostics::did_you_mean;
use setpoint_value::{Mark, Marks};

use super::Call;
use crate::context::{Context, Fact, Failure, Sender};
use crate::templates;

type Answer = Result<Datum, Failure>;

pub(super) fn template(call: &mut Call<'_>) -> Answer {
    let path = call.text(0)?;
    let arguments = call.dict(1)?;
    templates::render(
        &path,
        (!arguments.is_empty()).then_some(arguments),
        call.span,
        call.context,
    )
}

/// A file of a module: where it is, and what names it.
pub(crate) struct DataFile {
    /// The module; empty for the project itself.
    pub(crate) module: Arc<str>,
    /// Below the directory of the module's files or templates.
    pub(crate) path: String,
    /// The whole path.
    pub(crate) place: String,
}

/// Finds what a path `module/file`, `/file` or `./file` names below `directory` (`files` or `templates`) of a module.
pub(crate) fn data_file(path: &str, directory: &str, context: &dyn Context) -> Result<DataFile, Failure> {
    let (module, file) = match path.split_once('/') {
        Some((".", file)) => (context.calling_module(), file),
        Some((module, file)) => (Arc::from(module), file),
        None => (Arc::from(path), ""),
    };
    let Some(root) = context.module_directory(&module) else {
        return Err(Failure::Other(format!(
            "there is no module `{module}`, which `{path}` names"
        )));
    };
    if file.split('/').any(|part| part == "..") {
        return Err(Failure::Other(format!(
            "`{path}` leads out of the module's files"
        )));
    }
    let file = file.trim_matches('/');
    let mut place = match &*root {
        "" | "." => directory.to_owned(),
        root => format!("{root}/{directory}"),
    };
    if !file.is_empty() {
        place.push('/');
        place.push_str(file);
    }
    Ok(DataFile {
        module,
        path: file.to_owned(),
        place,
    })
}

/// Reads a file as text.
pub(crate) fn read_text(file: &DataFile, context: &mut dyn Context) -> Result<String, Failure> {
    context.record_file(&file.place);
    let bytes = context
        .loader()
        .read(&file.place)
        .map_err(|reason| Failure::Other(format!("cannot read `{}`: {reason}", file.place)))?;
    match std::str::from_utf8(&bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(Failure::Other(format!("`{}` is not UTF-8", file.place))),
    }
}

pub(super) fn source(call: &mut Call<'_>) -> Answer {
    let file = data_file(&call.text(0)?, "files", call.context)?;
    read_text(&file, call.context).map(Datum::text)
}

/// What the mark of a text begins with that stands for the content of a file.
const FILE_MARK: &str = "file";

/// Splits a text that stands for the content of a file from what says so: the text, and its other marks.
pub fn file_marker(datum: &Datum) -> Option<(&Arc<str>, Marks)> {
    let Datum::Marked(marked) = datum else { return None };
    let Datum::Text(marker) = &marked.datum else {
        return None;
    };
    let is_file = |mark: &&Mark| match mark {
        Mark::Named(name) => name.starts_with(FILE_MARK) && name[FILE_MARK.len()..].starts_with('('),
        Mark::Sensitive => false,
    };
    let mark = marked.marks.iter().find(is_file)?;
    Some((marker, marked.marks.without(mark)))
}

pub(super) fn file(call: &mut Call<'_>) -> Answer {
    let file = data_file(&call.text(0)?, "files", call.context)?;
    call.context.record_file(&file.place);
    if !call.context.loader().is_file(&file.place) {
        return Err(Failure::Other(format!("there is no file `{}`", file.place)));
    }
    let content = call.context.loader().read(&file.place);
    let content =
        content.map_err(|reason| Failure::Other(format!("cannot read `{}`: {reason}", file.place)))?;
    let mark = Mark::Named(format!("{FILE_MARK}({}, {})", file.module, file.path).into());
    let marker = call.context.keep_file(&file.place, content);
    Ok(Datum::Text(marker).with_marks(&Marks::from_iter([mark])))
}

pub(super) fn list_files(call: &mut Call<'_>) -> Answer {
    let directory = data_file(&call.text(0)?, "files", call.context)?.place;
    call.context.record_file(&directory);
    if !call.context.loader().is_directory(&directory) {
        return Err(Failure::Other(format!("there is no directory `{directory}`")));
    }
    let files = call
        .context
        .loader()
        .list(&directory)
        .map_err(|reason| Failure::Other(format!("cannot read `{directory}`: {reason}")))?;
    let prefix = format!("{directory}/");
    let mut names: Vec<&str> = files
        .iter()
        .filter_map(|file| file.strip_prefix(&prefix))
        .filter(|name| !name.contains('/'))
        .collect();
    names.sort_unstable();
    Ok(Datum::List(names.into_iter().map(Datum::text).collect()))
}

pub(super) fn get_env(call: &mut Call<'_>) -> Answer {
    let name = call.text(0)?;
    match (call.context.environment(&name), call.argument(1)) {
        (Some(value), _) => Ok(Datum::Text(value)),
        (None, Datum::Null) => Err(Failure::Unknown),
        (None, default) => Ok(default.clone()),
    }
}

pub(super) fn get_env_int(call: &mut Call<'_>) -> Answer {
    let name = call.text(0)?;
    match (call.context.environment(&name), call.argument(1)) {
        (Some(value), _) => match value.trim().parse() {
            Ok(int) => Ok(Datum::Int(int)),
            Err(_) => Err(Failure::Other(format!(
                "the value of `{name}` in the environment is no number"
            ))),
        },
        (None, Datum::Null) => Err(Failure::Unknown),
        (None, default) => Ok(default.clone()),
    }
}

pub(super) fn getfact(call: &mut Call<'_>) -> Answer {
    let resource = call.instance(call.argument(0))?;
    let name = call.text(1)?;
    match call.context.fact(resource, &name) {
        Fact::Value(value) => Ok(value),
        Fact::Unset(cell) => Err(Failure::Unset(cell)),
        Fact::NotAResource => Err(Failure::Other(format!(
            "facts are of resources, and `{}` is none",
            call.naming().entity(resource)
        ))),
        Fact::Unknown => match call.argument(2) {
            Datum::Null => Err(Failure::Unknown),
            default => Ok(default.clone()),
        },
    }
}

pub(super) fn environment(call: &mut Call<'_>) -> Answer {
    Ok(Datum::Text(call.context.deployment().deploy))
}

pub(super) fn environment_name(call: &mut Call<'_>) -> Answer {
    Ok(Datum::Text(call.context.deployment().project))
}

pub(super) fn environment_server(call: &mut Call<'_>) -> Answer {
    match call.context.deployment().server {
        Some(server) => Ok(Datum::Text(server)),
        None => Err(Failure::Unknown),
    }
}

pub(super) fn empty(_: &mut Call<'_>) -> Answer {
    Ok(Datum::text(""))
}

pub(super) fn no(_: &mut Call<'_>) -> Answer {
    Ok(Datum::Bool(false))
}

pub(super) fn zero(_: &mut Call<'_>) -> Answer {
    Ok(Datum::Int(0))
}

pub(super) fn timestamp(call: &mut Call<'_>) -> Answer {
    call.context.unix_time().map(Datum::Int).ok_or(Failure::Unknown)
}

/// Where passwords are kept: one `id=password` on each line.
const PASSWORDS: &str = "data/std/passwordfile.txt";

/// The letters and digits of passwords.
const ALPHABET: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

pub(super) fn generate_password(call: &mut Call<'_>) -> Answer {
    /// Nobody needs a longer one.
    const LONGEST: i64 = 4096;
    let (id, length) = (password_id(call)?, call.int(1)?);
    let stored = call.context.stored_text(PASSWORDS);
    if let Some(password) = stored.as_deref().and_then(|stored| find_password(stored, &id)) {
        return Ok(secret(password));
    }
    let length = match usize::try_from(length) {
        Ok(count) if (1..=LONGEST).contains(&length) => count,
        _ => {
            return Err(Failure::Other(format!(
                "a password has from 1 to {LONGEST} characters, not {length}"
            )));
        }
    };
    let mut password = String::with_capacity(length);
    let mut bytes = [0u8; 64];
    // A source of bytes that never gives a usable one would have this go on for ever.
    for _ in 0..1000 {
        call.context.random(&mut bytes).map_err(Failure::Other)?;
        // Only bytes below the greatest multiple of 62 make all characters equally likely.
        let usable = bytes.iter().filter(|byte| **byte < 248);
        let missing = length - password.len();
        password.extend(
            usable
                .take(missing)
                .map(|byte| char::from(ALPHABET[usize::from(byte % 62)])),
        );
        if password.len() == length {
            let mut text = stored.map_or_else(String::new, |stored| stored.to_string());
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&format!("{id}={password}\n"));
            call.context.store_text(PASSWORDS, text).map_err(Failure::Other)?;
            return Ok(secret(&password));
        }
    }
    Err(Failure::Other(
        "there are no random characters for a password".to_owned(),
    ))
}

pub(super) fn password(call: &mut Call<'_>) -> Answer {
    let id = password_id(call)?;
    let stored = call.context.stored_text(PASSWORDS);
    match stored.as_deref().and_then(|stored| find_password(stored, &id)) {
        Some(password) => Ok(secret(password)),
        None => Err(Failure::Other(format!(
            "there is no password for `{id}` in `{PASSWORDS}`"
        ))),
    }
}

fn password_id(call: &Call<'_>) -> Result<Arc<str>, Failure> {
    let id = call.text(0)?;
    if id.contains(['=', '\n', '\r']) {
        return Err(Failure::Other(
            "the id of a password cannot contain `=` or the end of a line".to_owned(),
        ));
    }
    Ok(id)
}

fn find_password<'s>(stored: &'s str, id: &str) -> Option<&'s str> {
    stored
        .lines()
        .filter_map(|line| line.split_once('='))
        .find_map(|(known, password)| (known.trim() == id).then(|| password.trim()))
}

fn secret(password: &str) -> Datum {
    Datum::text(password).with_marks(&Marks::sensitive())
}

fn reference(source: DeferredSource, base: BaseType) -> Datum {
    let ty = SignatureType::Attribute(AttributeType {
        base,
        list: false,
        nullable: false,
    });
    Datum::Deferred(Arc::new(Deferred { source, ty }))
}

pub(super) fn int_reference(call: &mut Call<'_>) -> Answer {
    let value = call.arguments.first().cloned().unwrap_or(Datum::Null);
    match value.unmarked() {
        Datum::Int(_) | Datum::Bool(_) | Datum::Deferred(_) => {
            Ok(reference(DeferredSource::Int(value), BaseType::Int))
        }
        other => Err(Failure::Other(format!("`{}` is no number", call.shown(other)))),
    }
}

pub(super) fn environment_reference(call: &mut Call<'_>) -> Answer {
    let name = call.arguments.first().cloned().unwrap_or(Datum::Null);
    Ok(reference(DeferredSource::Environment(name), BaseType::String))
}

pub(super) fn fact_reference(call: &mut Call<'_>) -> Answer {
    let resource = call.instance(call.argument(0))?;
    let fact = call.text(1)?;
    Ok(reference(
        DeferredSource::Fact { resource, fact },
        BaseType::String,
    ))
}

pub(super) fn send(call: &mut Call<'_>) -> Answer {
    let resource = call.instance(call.argument(0))?;
    let key = call.text(1)?;
    let schema = match call.context.sender(resource) {
        Sender::Kind(schema) => schema,
        Sender::Unset(cell) => return Err(Failure::Unset(cell)),
        Sender::Unknown => return Err(Failure::Unknown),
        Sender::NotAResource => {
            let naming = call.naming();
            let entity = naming.entity(resource);
            return Err(Failure::Other(format!(
                "resources send something, and `{entity}` is none"
            )));
        }
    };
    let Some(sent) = schema.send_key(&key) else {
        let known = schema.sends.iter().map(|sent| sent.name);
        let reason = match (schema.sends.is_empty(), did_you_mean(&key, known.clone())) {
            (true, _) => "it sends nothing".to_owned(),
            (false, Some(near)) => near,
            (false, None) => format!(
                "it sends {}",
                known
                    .map(|name| format!("`{name}`"))
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
        };
        return Err(Failure::Other(format!(
            "`{}` sends no `{key}`: {reason}",
            schema.kind
        )));
    };
    let ty = match attribute_type(sent.parameter_type) {
        Some(ty) => SignatureType::Attribute(AttributeType {
            nullable: false,
            ..ty
        }),
        None => SignatureType::Any,
    };
    let source = DeferredSource::Send { resource, key };
    Ok(Datum::Deferred(Arc::new(Deferred { source, ty })))
}
