//! A machine of one's own: a directory, real host services, and runs of one resource without an engine.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use setpoint_engine::{
    Apply, Busy, Cancellation, Drift, Extensions, Failure, Handle, Instance, KindSpec, Level, Member,
    Observer, Received, Resource, RunInput, Sent, Services, Watch, async_trait,
};
use setpoint_graph::{Invalid, MetaParameters, Parameters, ResourceId};
use setpoint_host::files::{AbsolutePath, Committer, VerifiedFiles};
use setpoint_host::processes::{Launcher, Processes};
use setpoint_host::users::Users;
use setpoint_resources::{
    KINDS, LocalValues, ProgramExit, ProgramFiles, Secrecy, SharedKey, SharedStore, SharedString,
    SharedStrings,
};
use setpoint_value::{Map, Type, Value};

/// A directory with everything that a resource needs.
pub(crate) struct Bench {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) services: Arc<Services>,
    pub(crate) exits: Arc<Mutex<Vec<u8>>>,
    /// What hosts share.
    pub(crate) store: Arc<MemoryStore>,
}

impl Bench {
    pub(crate) fn new() -> Bench {
        Bench::with_writable(true)
    }

    /// As `plan` has it: nothing may be written below the prefix.
    pub(crate) fn planning() -> Bench {
        Bench::with_writable(false)
    }

    fn with_writable(writable: bool) -> Bench {
        let directory = tempfile::tempdir().unwrap();
        let exits = Arc::<Mutex<Vec<u8>>>::default();
        let requested = exits.clone();
        let exit = ProgramExit::new(move |code| requested.lock().unwrap().push(code));
        let committer = Arc::new(Committer::new());
        let prefix = AbsolutePath::new(directory.path().join("prefix")).unwrap();
        let store = Arc::<MemoryStore>::default();
        let services = Services {
            program: "setpoint".to_owned(),
            version: "0".to_owned(),
            hostname: "here".to_owned(),
            debug: Arc::default(),
            writable,
            extensions: Extensions::default()
                .with(Arc::new(LocalValues::new(
                    prefix.join("local/value"),
                    committer.clone(),
                )))
                .with(Arc::new(exit))
                .with(Arc::new(SharedStore::new(store.clone())))
                .with(Arc::new(ProgramFiles::default())),
            committer,
            verified: Arc::new(VerifiedFiles::new()),
            processes: Processes::new("/usr/bin:/bin").launched_by(Launcher::program(env!(
                "CARGO_BIN_EXE_setpoint-test-launcher-of-resources"
            ))),
            users: Arc::new(Users::new()),
            graph: Arc::default(),
            busy: Busy::default(),
        };
        Bench {
            directory,
            services: Arc::new(services),
            exits,
            store,
        }
    }

    /// A path in the directory, as text.
    pub(crate) fn path(&self, relative: &str) -> String {
        format!("{}/{relative}", self.directory.path().display())
    }

    /// The local values.
    pub(crate) fn values(&self) -> &LocalValues {
        self.services.extensions.get().unwrap()
    }

    /// The files of the program that runs.
    pub(crate) fn program_files(&self) -> &ProgramFiles {
        self.services.extensions.get().unwrap()
    }

    /// Another resource manages a file.
    pub(crate) fn manages(&self, path: &str) {
        let id = ResourceId::new("file", path);
        let identity = setpoint_resources::sorts::FILE.identity(path.as_bytes());
        self.services.graph.insert(identity, id);
    }

    pub(crate) fn write(&self, relative: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(relative);
        std::fs::create_dir_all(PathBuf::from(&path).parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn make_directory(&self, relative: &str) -> String {
        let path = self.path(relative);
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    pub(crate) fn read(&self, relative: &str) -> String {
        String::from_utf8_lossy(&std::fs::read(self.path(relative)).unwrap()).into_owned()
    }

    /// Something in the private directory of the only resource that has made one.
    pub(crate) fn own(&self, inside: &str) -> String {
        const STATE: &str = "prefix/engine/state";
        let mut all = std::fs::read_dir(self.path(STATE)).unwrap();
        let own = all.next().expect("a resource has kept something").unwrap();
        assert!(all.next().is_none(), "only one resource has kept something");
        format!("{STATE}/{}/{inside}", own.file_name().display())
    }

    pub(crate) fn exists(&self, relative: &str) -> bool {
        std::fs::symlink_metadata(self.path(relative)).is_ok()
    }

    pub(crate) fn mode(&self, relative: &str) -> u32 {
        let metadata = std::fs::symlink_metadata(self.path(relative)).unwrap();
        std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o7777
    }

    pub(crate) fn set_mode(&self, relative: &str, mode: u32) {
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(self.path(relative), permissions).unwrap();
    }

    /// Everything below a directory with its contents, sorted.
    pub(crate) fn tree(&self, relative: &str) -> Vec<String> {
        fn walk(path: &std::path::Path, below: &str, all: &mut Vec<String>) {
            for entry in std::fs::read_dir(path).unwrap() {
                let entry = entry.unwrap();
                let name = format!("{below}{}", entry.file_name().to_string_lossy());
                let kind = entry.file_type().unwrap();
                if kind.is_dir() {
                    all.push(format!("{name}/"));
                    walk(&entry.path(), &format!("{name}/"), all);
                } else if kind.is_symlink() {
                    let target = std::fs::read_link(entry.path()).unwrap();
                    all.push(format!("{name} -> {}", target.display()));
                } else if kind.is_file() {
                    let bytes = std::fs::read(entry.path()).unwrap();
                    all.push(format!("{name}={}", String::from_utf8_lossy(&bytes)));
                } else {
                    all.push(format!("{name} (special)"));
                }
            }
        }
        let mut all = Vec::new();
        walk(self.path(relative).as_ref(), "", &mut all);
        all.sort();
        all
    }

    /// A resource that passed its checks.
    pub(crate) fn resource(&self, kind: &str, name: &str, parameters: &[(&str, Value)]) -> Subject {
        let spec = spec(kind);
        let parameters = given(spec, parameters);
        let invalid = (spec.schema.check)(name, &parameters, &MetaParameters::default());
        let refused = invalid.iter().any(Invalid::is_error);
        assert!(!refused, "{kind}[{name}] is valid: {invalid:?}");
        let id = ResourceId::new(kind, name);
        let directories = AbsolutePath::new(self.directory.path().join("prefix/engine/state")).unwrap();
        let handle = Handle::new(self.services.clone(), id, Arc::new(directories));
        let mut instance = Instance::new(spec, name, &parameters).unwrap();
        instance.resource_mut().init(&handle).unwrap();
        Subject {
            instance,
            handle,
            refresh: false,
            received: Vec::new(),
            cancellation: Cancellation::new(),
        }
    }
}

/// A store in memory, which nobody watches: strings by key, and after a slash those of this host.
#[derive(Default)]
pub(crate) struct MemoryStore(
    pub(crate) Mutex<BTreeMap<String, String>>,
    /// What another host writes just before the next one that sets what it has read.
    pub(crate) Mutex<Option<String>>,
    /// Which of them are secret.
    pub(crate) Mutex<std::collections::BTreeSet<String>>,
);

impl MemoryStore {
    fn place(key: SharedKey<'_>) -> String {
        match key {
            SharedKey::ForAll(key) => key.to_owned(),
            SharedKey::OfThisHost(key) => format!("{key}/here"),
            SharedKey::OfHost(host, key) => format!("{key}/{host}"),
        }
    }

    fn keep(&self, key: SharedKey<'_>, secrecy: Secrecy) {
        let (mut secrets, place) = (self.2.lock().unwrap(), MemoryStore::place(key));
        match secrecy {
            Secrecy::Secret => secrets.insert(place),
            Secrecy::Open => secrets.remove(&place),
        };
    }
}

#[async_trait]
impl SharedStrings for MemoryStore {
    async fn get(&self, key: SharedKey<'_>) -> Result<Option<SharedString>, Failure> {
        let text = self.0.lock().unwrap().get(&MemoryStore::place(key)).cloned();
        let secrecy = Secrecy::of(self.2.lock().unwrap().contains(&MemoryStore::place(key)));
        Ok(text.map(|text| SharedString {
            secrecy,
            ..SharedString::open(text)
        }))
    }

    async fn set_if(
        &self,
        key: SharedKey<'_>,
        was: Option<&str>,
        value: &str,
        secrecy: Secrecy,
    ) -> Result<bool, Failure> {
        let mut strings = self.0.lock().unwrap();
        // Another host is faster, once.
        if let Some(other) = self.1.lock().unwrap().take() {
            strings.insert(MemoryStore::place(key), other);
        }
        let is_so = strings.get(&MemoryStore::place(key)).map(String::as_str) == was;
        if is_so {
            strings.insert(MemoryStore::place(key), value.to_owned());
            self.keep(key, secrecy);
        }
        Ok(is_so)
    }

    async fn set(&self, key: SharedKey<'_>, value: Option<&str>, secrecy: Secrecy) -> Result<(), Failure> {
        self.keep(key, secrecy);
        let mut strings = self.0.lock().unwrap();
        match value {
            Some(value) => strings.insert(MemoryStore::place(key), value.to_owned()),
            None => strings.remove(&MemoryStore::place(key)),
        };
        Ok(())
    }

    fn watch(&self, _: SharedKey<'_>) -> Watch {
        Watch::Tick(std::time::Duration::from_secs(3600))
    }
}

/// The kinds, and the one that CONTRIBUTING.md adds to them.
pub(crate) fn kinds() -> impl Iterator<Item = &'static KindSpec> {
    KINDS
        .iter()
        .copied()
        .chain(crate::kind_walk_through::KINDS.iter().copied())
}

pub(crate) fn spec(kind: &str) -> &'static KindSpec {
    kinds().find(|spec| spec.schema.kind == kind).unwrap()
}

/// Parameters by the names of the schema.
pub(crate) fn given(spec: &KindSpec, parameters: &[(&str, Value)]) -> Parameters {
    let named = |name: &str| {
        spec.schema
            .parameter(name)
            .unwrap_or_else(|| panic!("no parameter {name}"))
            .name
    };
    Parameters::new(
        parameters
            .iter()
            .map(|(name, value)| (named(name), value.clone())),
    )
}

/// What the checks of a kind refuse, as `parameter: message`.
pub(crate) fn refused(kind: &str, name: &str, parameters: &[(&str, Value)]) -> Vec<String> {
    let spec = spec(kind);
    let invalid = (spec.schema.check)(name, &given(spec, parameters), &MetaParameters::default());
    let shown = |invalid: &Invalid| format!("{}: {}", invalid.parameter.unwrap_or(""), invalid.message);
    invalid.iter().map(shown).collect()
}

/// A resource under test.
pub(crate) struct Subject {
    pub(crate) instance: Instance,
    pub(crate) handle: Handle,
    pub(crate) refresh: bool,
    pub(crate) received: Vec<Received>,
    pub(crate) cancellation: Cancellation,
}

/// What a run did.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) result: Result<(), Failure>,
    pub(crate) drifts: Vec<Drift>,
    pub(crate) sent: Option<Sent>,
    pub(crate) restart_interval: bool,
    pub(crate) log: Vec<(Level, String)>,
    pub(crate) displayed: Vec<String>,
}

impl Run {
    /// It succeeded and found nothing wrong.
    #[track_caller]
    pub(crate) fn is_ok(&self) {
        assert!(self.result.is_ok(), "{}", self.failure());
        assert_eq!(self.fields(), Vec::<String>::new());
    }

    /// It succeeded and found exactly these fields wrong.
    #[track_caller]
    pub(crate) fn drifted(&self, fields: &[&str]) -> &Run {
        assert!(self.result.is_ok(), "{}", self.failure());
        assert_eq!(self.fields(), fields);
        self
    }

    pub(crate) fn fields(&self) -> Vec<String> {
        self.drifts.iter().map(|drift| drift.field.to_string()).collect()
    }

    /// The failure in one line.
    #[track_caller]
    pub(crate) fn failure(&self) -> String {
        match &self.result {
            Ok(()) => "(succeeded)".to_owned(),
            Err(failure) => failure.chain(),
        }
    }

    /// Drifts of a member, as text.
    pub(crate) fn report_of(&self, member: &ResourceId) -> Vec<String> {
        let drifts = self.drifts.iter();
        let drifts = drifts.filter(|drift| drift.member.as_ref() == Some(member));
        drifts.map(ToString::to_string).collect()
    }

    /// Drifts as text, without whether they were repaired.
    pub(crate) fn report(&self) -> Vec<String> {
        self.drifts.iter().map(ToString::to_string).collect()
    }

    pub(crate) fn sent(&self, key: &str) -> Option<Value> {
        self.sent.as_ref()?.get(key).flatten().cloned()
    }
}

#[derive(Default)]
struct Listener {
    log: Mutex<Vec<(Level, String)>>,
    displayed: Mutex<Vec<String>>,
}

impl Observer for Listener {
    fn log(&self, member: Option<&ResourceId>, level: Level, message: &str) {
        let message = match member {
            Some(member) => format!("{member}: {message}"),
            None => message.to_owned(),
        };
        match level {
            Level::Display => self.displayed.lock().unwrap().push(message),
            level => self.log.lock().unwrap().push((level, message)),
        }
    }
}

impl Subject {
    /// The kind's own side of it.
    pub(crate) fn resource(&self) -> &dyn Resource {
        self.instance.resource()
    }

    pub(crate) fn resource_mut(&mut self) -> &mut dyn Resource {
        self.instance.resource_mut()
    }

    /// Takes another one into its group.
    pub(crate) fn take_in(&mut self, member: Subject) -> ResourceId {
        let id = member.handle.id().clone();
        let member = Member::new(member.instance, MetaParameters::default().into(), member.handle);
        self.resource_mut().members().unwrap().insert(member);
        id
    }

    /// A run that repairs.
    pub(crate) fn apply(&mut self) -> Run {
        self.run(true)
    }

    /// A run that only looks.
    pub(crate) fn check(&mut self) -> Run {
        self.run(false)
    }

    fn run(&mut self, repair: bool) -> Run {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(self.run_in_runtime(repair))
    }

    pub(crate) async fn run_in_runtime(&mut self, repair: bool) -> Run {
        let listener = Listener::default();
        let senders = [ResourceId::new("file", "/etc/config")];
        let input = RunInput {
            handle: &self.handle,
            repair,
            undoes: false,
            refresh: if self.refresh { &senders } else { &[] },
            received: &self.received,
            members: &[],
            cancellation: &self.cancellation,
            observer: &listener,
        };
        let mut apply = Apply::new(input);
        let result = self.instance.check_apply(&mut apply).await;
        let outcome = apply.finish();
        Run {
            result,
            drifts: outcome.drifts,
            sent: outcome.sent,
            restart_interval: outcome.restart_interval,
            log: listener.log.into_inner().unwrap(),
            displayed: listener.displayed.into_inner().unwrap(),
        }
    }

    /// Takes a received value, as the engine does.
    pub(crate) fn receive(&mut self, parameter: &'static str, value: &Value) {
        self.instance.set_parameter(parameter, Some(value)).unwrap();
        self.instance.resource_mut().after_receive();
        self.received.retain(|received| received.parameter != parameter);
        self.received.push(Received {
            parameter,
            from: ResourceId::new("test", "sender"),
            key: "key".into(),
            changed: true,
        });
    }
}

pub(crate) fn text(text: impl AsRef<str>) -> Value {
    Value::str(text.as_ref())
}

pub(crate) fn yes() -> Value {
    Value::Bool(true)
}

pub(crate) fn texts(items: &[&str]) -> Value {
    Value::strings(items.iter().copied())
}

pub(crate) fn map(entries: &[(&str, &str)]) -> Value {
    Value::Map(Map::new(
        Type::Str,
        Type::Str,
        entries.iter().map(|(key, value)| (text(key), text(value))),
    ))
}

pub(crate) fn is_root() -> bool {
    std::fs::read_to_string("/proc/self/status")
        .unwrap()
        .contains("Uid:\t0\t0")
}
