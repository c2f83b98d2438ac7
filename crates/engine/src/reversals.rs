//! Records of what undoes resources: one file for each identity in `PREFIX/engine/reversals`, so that a start reads one
//! directory and what is in it, however many resources there are.
//!
//! A record is written, and safe, before anything is made of its resource; it is replaced by none and erased once the machine is
//! as it says. It may hold what was in a file that nobody else can read, so it is readable by us alone.

use std::sync::Arc;

use serde_json::{Map, Value as Json, json};
use setpoint_diagnostics::{FileId, Span};
use setpoint_graph::{
    DesiredMembers, DesiredResource, KindSchema, MetaName, MetaParameters, Parameters, ResourceId,
};
use setpoint_host::files::{AbsolutePath, Committer, FileError};
use setpoint_host::state::{StateDirectory, Stored, identity_directory};
use setpoint_host::sync::Mutex;
use setpoint_value::Value;

use crate::resource::Kinds;
use crate::{Attempting, Failure, KindSpec};

/// Version of a record.
const VERSION: u32 = 1;
const DIRECTORY: &str = "reversals";
const SET_ASIDE: &str = ".set-aside";

/// The records below one prefix.
#[derive(Debug)]
pub(crate) struct Reversals {
    /// The engine's own directory, in which theirs is made with the first of them.
    engine: StateDirectory,
    opened: Mutex<Option<StateDirectory>>,
    committer: Arc<Committer>,
    /// Whether anything may be changed.
    writable: bool,
    /// Whether the records of earlier processes are of another program, and are left alone.
    is_hidden: bool,
}

/// What was found at the start of a process.
#[derive(Debug, Default)]
pub struct FoundReversals {
    /// What undoes a resource, sorted by identity; each is marked as a reversal.
    pub resources: Vec<Arc<DesiredResource>>,
    /// What could not be used and why, as lines for the user.
    pub unusable: Vec<String>,
}

/// What undoes those resources that are not in the program of the process that was last at work below a prefix; for those who only look.
///
/// # Errors
/// When the directory is there and cannot be read.
pub fn read_reversals(prefix: &AbsolutePath, kinds: &[KindSpec]) -> Result<FoundReversals, Failure> {
    let kinds: Kinds = kinds.iter().map(|spec| (spec.schema.kind, *spec)).collect();
    let directory = prefix.join("engine").join(DIRECTORY);
    match StateDirectory::open_existing(&directory) {
        Ok(directory) => Ok(read_all(&directory, &kinds, false)?),
        Err(error) if error.is_not_found() => Ok(FoundReversals::default()),
        Err(error) => Err(error.into()),
    }
}

impl Reversals {
    pub(crate) fn new(engine: StateDirectory, committer: Arc<Committer>, writable: bool) -> Reversals {
        Reversals {
            engine,
            opened: Mutex::default(),
            committer,
            writable,
            is_hidden: false,
        }
    }

    /// The same, if the records of earlier processes are of another program.
    pub(crate) fn hidden(mut self) -> Reversals {
        self.is_hidden = true;
        self
    }

    /// All records. What cannot be used is told, and moved out of the way if something may be changed.
    pub(crate) fn read(&self, kinds: &Kinds, may_change: bool) -> Result<FoundReversals, FileError> {
        let directory = self.engine.find(DIRECTORY)?.filter(|_| !self.is_hidden);
        let Some(directory) = directory else {
            return Ok(FoundReversals::default());
        };
        let may_change = may_change && self.writable;
        if may_change {
            directory.remove_leftovers()?;
        }
        read_all(&directory, kinds, may_change)
    }

    /// The record of an identity, complete; none if there is none. What is wrong with one is answered beside it, and it is out of the
    /// way then.
    pub(crate) fn load(&self, id: &ResourceId, kinds: &Kinds) -> Result<Loaded, FileError> {
        let directory = match self.writable {
            true => Some(self.directory()?),
            false => self.engine.find(DIRECTORY)?,
        };
        match directory {
            Some(directory) => read_one(&directory, &file_name(id), kinds, self.writable),
            None => Ok(Loaded::Nothing),
        }
    }

    /// Writes a record, and returns when it would survive a loss of power.
    pub(crate) fn write(&self, reversal: &DesiredResource) -> Result<(), Failure> {
        let id = &reversal.id;
        if self.is_hidden && self.has(id).attempting("look for what undoes", id)? {
            // It is of the program that owns the directory, and says how things were before that.
            return Ok(());
        }
        let attempted = "keep what undoes";
        let payload = encode(reversal).map_err(|why| Failure::new(attempted).on(id).because(why))?;
        let written = self.directory().and_then(|directory| {
            directory.write_versioned(&self.committer, &file_name(id), VERSION, payload.as_bytes())
        });
        written.attempting(attempted, id)
    }

    fn has(&self, id: &ResourceId) -> Result<bool, FileError> {
        match self.engine.find(DIRECTORY)? {
            Some(directory) => Ok(directory.read(&file_name(id))?.is_some()),
            None => Ok(false),
        }
    }

    /// Erases records, and returns when they would not come back after a loss of power. Fine where there is none.
    pub(crate) fn erase<'a>(&self, ids: impl IntoIterator<Item = &'a ResourceId>) -> Result<(), FileError> {
        let directory = self.directory()?;
        for id in ids {
            directory.remove(&file_name(id))?;
        }
        directory.sync()
    }

    fn directory(&self) -> Result<StateDirectory, FileError> {
        let mut opened = self.opened.lock();
        match &*opened {
            Some(directory) => Ok(directory.clone()),
            None => {
                let directory = self.engine.subdirectory(DIRECTORY)?;
                self.engine.sync()?;
                Ok(opened.insert(directory).clone())
            }
        }
    }
}

/// One record that was read.
pub(crate) enum Loaded {
    Nothing,
    Reversal(Arc<DesiredResource>),
    /// A line for the user says why.
    Unusable(String),
}

fn file_name(id: &ResourceId) -> String {
    identity_directory(&id.kind, &id.name)
}

fn read_all(
    directory: &StateDirectory,
    kinds: &Kinds,
    may_change: bool,
) -> Result<FoundReversals, FileError> {
    let mut found = FoundReversals::default();
    for name in directory.files()? {
        let Some(name) = name.to_str().filter(|name| !name.ends_with(SET_ASIDE)) else {
            continue;
        };
        match read_one(directory, name, kinds, may_change)? {
            Loaded::Nothing => {}
            Loaded::Reversal(resource) => found.resources.push(resource),
            Loaded::Unusable(why) => found.unusable.push(why),
        }
    }
    found.resources.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(found)
}

fn read_one(
    directory: &StateDirectory,
    name: &str,
    kinds: &Kinds,
    may_change: bool,
) -> Result<Loaded, FileError> {
    let payload = match directory.load(name, VERSION, may_change)? {
        Stored::Nothing => return Ok(Loaded::Nothing),
        Stored::Payload(payload) => payload,
        Stored::Unusable(why) => return Ok(Loaded::Unusable(why)),
    };
    let decoded = decode(&payload, kinds).and_then(|resource| match file_name(&resource.id) == name {
        true => Ok(resource),
        false => Err(format!("it is the record of {}", resource.id)),
    });
    match decoded {
        Ok(resource) => Ok(Loaded::Reversal(Arc::new(resource))),
        Err(why) => match directory.set_aside(name, &why, may_change)? {
            Stored::Unusable(why) => Ok(Loaded::Unusable(why)),
            Stored::Nothing | Stored::Payload(_) => Ok(Loaded::Nothing),
        },
    }
}

/// What undoes `resource`: of its kind and name, with these parameters, of which those are sensitive that `is_sensitive` says. How
/// often it is tried, how long it may take and the like is as with the resource.
pub(crate) fn reversal_of(
    resource: &DesiredResource,
    parameters: &Parameters,
    is_sensitive: impl Fn(&str) -> bool,
) -> DesiredResource {
    let mut meta = (*resource.meta).clone();
    let default = MetaParameters::DEFAULT;
    meta.reverse = false;
    meta.hidden = default.hidden;
    meta.export = default.export;
    meta.realize = default.realize;
    meta.noop = default.noop;
    meta.dollar = default.dollar;
    meta.autoedge = false;
    meta.autogroup = false;
    let reversal = marked(resource.id.clone(), resource.schema, parameters.clone(), meta);
    with_sensitive(&reversal, is_sensitive)
}

/// The same, with more of its parameters sensitive.
pub(crate) fn with_sensitive(
    reversal: &DesiredResource,
    is_sensitive: impl Fn(&str) -> bool,
) -> DesiredResource {
    let parameters = reversal.parameters.iter().map(|(name, value)| {
        let value = match is_sensitive(name) && !value.is_sensitive() {
            true => value.clone().sensitive(),
            false => value.clone(),
        };
        (name, value)
    });
    let parameters = Parameters::new(parameters);
    DesiredResource {
        parameters,
        ..reversal.clone()
    }
}

/// The same without parameters: enough to know that it is there.
pub(crate) fn without_parameters(reversal: &DesiredResource) -> Arc<DesiredResource> {
    let mut shell = reversal.clone();
    shell.parameters = Parameters::default();
    Arc::new(shell)
}

fn marked(
    id: ResourceId,
    schema: &'static KindSchema,
    parameters: Parameters,
    mut meta: MetaParameters,
) -> DesiredResource {
    meta.is_reversal = true;
    DesiredResource {
        id,
        schema,
        parameters,
        meta: meta.into(),
        // No program says it.
        span: Span::new(FileId(u32::MAX), 0, 0),
        parameter_spans: Arc::new([]),
        chain: None,
        members: DesiredMembers::default(),
    }
}

/// Those meta parameters that a record keeps.
const KEPT: [MetaName; 9] = [
    MetaName::Retry,
    MetaName::Retryreset,
    MetaName::Delay,
    MetaName::Timeout,
    MetaName::Poll,
    MetaName::Limit,
    MetaName::Burst,
    MetaName::Sema,
    MetaName::Rewatch,
];

fn encode(reversal: &DesiredResource) -> Result<String, String> {
    let mut parameters = Map::new();
    let mut sensitive = Vec::new();
    for (name, value) in reversal.parameters.iter() {
        if value.is_sensitive() {
            sensitive.push(name);
        }
        let (plain, _) = value.unmark_deep_with_paths();
        let value = plain.to_json().map_err(|error| error.to_string())?;
        parameters.insert(name.to_owned(), value);
    }
    let mut meta = Map::new();
    for name in KEPT
        .into_iter()
        .filter(|name| reversal.meta.written.contains(*name))
    {
        let value = reversal.meta.value(name).to_json();
        meta.insert(name.name().to_owned(), value.map_err(|error| error.to_string())?);
    }
    let record = json!({
        "kind": &*reversal.id.kind,
        "name": &*reversal.id.name,
        "parameters": parameters,
        "sensitive": sensitive,
        "meta": meta,
    });
    Ok(format!("{record}\n"))
}

fn decode(payload: &[u8], kinds: &Kinds) -> Result<DesiredResource, String> {
    let damaged = || "it is damaged".to_owned();
    let record: Json = serde_json::from_slice(payload).map_err(|_| damaged())?;
    let text = |field: &str| record[field].as_str().ok_or_else(damaged);
    let (kind, name) = (text("kind")?, text("name")?);
    let spec = kinds
        .get(kind)
        .ok_or_else(|| format!("there is no kind `{kind}`"))?;
    let is_sensitive = |name: &str| {
        let mut sensitive = record["sensitive"].as_array().into_iter().flatten();
        sensitive.any(|other| other == name)
    };
    let mut parameters = Vec::new();
    for (name, value) in record["parameters"].as_object().ok_or_else(damaged)? {
        let schema = spec.schema.parameter(name);
        let schema = schema.ok_or_else(|| format!("`{kind}` has no parameter `{name}`"))?;
        let value = Value::from_json(value).map_err(|_| damaged())?;
        let value = if is_sensitive(name) {
            value.sensitive()
        } else {
            value
        };
        parameters.push((schema.name, value));
    }
    let mut meta = MetaParameters {
        autoedge: false,
        autogroup: false,
        ..MetaParameters::DEFAULT
    };
    for (name, value) in record["meta"].as_object().ok_or_else(damaged)? {
        let name = MetaName::parse(name).ok_or_else(damaged)?;
        let value = Value::from_json(value).map_err(|_| damaged())?;
        meta.set(name, &value).map_err(|_| damaged())?;
    }
    let id = ResourceId::new(kind, name);
    let resource = marked(id, spec.schema, Parameters::new(parameters), meta);
    // What another version of this program wrote may not fit any more.
    match crate::Instance::new(spec, resource.id.name.clone(), &resource.parameters) {
        Ok(instance) => {
            let mut invalid = Vec::new();
            instance.validate(&resource.meta, &mut invalid);
            match invalid.into_iter().find(setpoint_graph::Invalid::is_error) {
                Some(invalid) => Err(invalid.message),
                None => Ok(resource),
            }
        }
        Err(invalid) => Err(invalid
            .into_iter()
            .next()
            .map_or_else(damaged, |invalid| invalid.message)),
    }
}
