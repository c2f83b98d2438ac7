//! The real machine with a place of its own for everything that is kept.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use setpoint_diagnostics::{Diagnostics, SourceMap};
use setpoint_engine::{ExportChange, ExportKey, ExportStore};
use setpoint_graph::ResourceId;
use setpoint_host::Host;
use setpoint_host::files::AbsolutePath;
use setpoint_host::processes::Launcher;
use setpoint_mcl::Entry;
use setpoint_programs::report::{Report, Reporter, Said};
use setpoint_programs::{
    Assembly, DirectoryLoader, ProgramFiles, PublishedResponses, RealCapabilities, RealEffects, SharedWorld,
    SourceAccess,
};
use setpoint_resources::{LocalValues, Secrecy, SharedKey, SharedStrings};
use setpoint_value::{Capabilities, Value};
use tempfile::TempDir;

use crate::program::{Followed, Text, code, compile_code, compile_entry};

/// A process on the real machine. Its directory is removed when it is dropped.
pub(crate) struct Machine {
    directory: Option<TempDir>,
    prefix: PathBuf,
    hostname: String,
    bus: Option<String>,
    pub(crate) host: Arc<Host>,
    pub(crate) values: Arc<LocalValues>,
    pub(crate) world: Arc<SharedWorld>,
    pub(crate) responses: Arc<PublishedResponses>,
}

impl Machine {
    /// A new one.
    pub(crate) fn new() -> Machine {
        let directory = tempfile::Builder::new()
            .prefix("setpoint-sources-")
            .tempdir()
            .unwrap();
        let mut machine = Machine::at(directory.path(), "host.example");
        machine.directory = Some(directory);
        machine
    }

    /// One that begins with what another one left at the place.
    pub(crate) fn at(directory: &Path, hostname: &str) -> Machine {
        let prefix = directory.join("prefix");
        let path = |name: &str| AbsolutePath::new(prefix.join(name)).unwrap();
        let mut host = Host::new("/usr/bin:/bin").unwrap();
        let launcher = Launcher::program(env!("CARGO_BIN_EXE_setpoint-test-launcher-of-programs"));
        host.processes = host.processes.launched_by(launcher);
        let host = Arc::new(host);
        let kinds = Assembly::standard();
        let kinds = kinds.kinds().iter().map(|kind| kind.schema.kind.to_owned());
        Machine {
            directory: None,
            hostname: hostname.to_owned(),
            bus: None,
            values: Arc::new(LocalValues::new(path("local/value"), host.committer.clone())),
            world: Arc::new(
                SharedWorld::on_one_machine(path("world"), hostname, &host, kinds, reporter()).unwrap(),
            ),
            responses: Arc::default(),
            host,
            prefix,
        }
    }

    /// With a message bus of its own.
    pub(crate) fn with_bus(mut self, address: &str) -> Machine {
        self.bus = Some(address.to_owned());
        self
    }

    /// The directory above everything that it keeps.
    pub(crate) fn directory(&self) -> &Path {
        self.prefix.parent().unwrap()
    }

    /// A path in it.
    pub(crate) fn path(&self, name: &str) -> String {
        self.directory().join(name).to_str().unwrap().to_owned()
    }

    /// Exports a resource, encoded, to a host or to all (`*`), or takes it back.
    pub(crate) fn export(&self, to: &str, kind: &str, name: &str, data: Option<&str>) {
        let change = ExportChange {
            key: ExportKey {
                resource: ResourceId::new(kind, name),
                to: to.into(),
            },
            data: data.map(Into::into),
        };
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let results = runtime.block_on(self.world.change(vec![change]));
        assert!(matches!(&results[..], [Ok(())]), "{results:?}");
    }

    /// Sets what all or others see, or removes it.
    pub(crate) fn share(&self, key: SharedKey<'_>, value: Option<&str>) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let set = runtime.block_on(self.world.set(key, value, Secrecy::Open));
        assert!(set.is_ok(), "{set:?}");
    }

    /// What sources of a program are given.
    pub(crate) fn capabilities(&self, text: &Text, loader: &DirectoryLoader) -> Arc<dyn Capabilities> {
        let state = format!("{}/local/", self.prefix.display());
        let files = ProgramFiles::new(&text.compiled, loader, None, state);
        let capabilities = RealCapabilities::new(&self.host, &self.hostname, files)
            .unwrap()
            .with_effects(
                RealEffects::new(self.host.clone(), reporter()),
                SourceAccess::Change,
            )
            .with_values(self.values.clone())
            .with_world(self.world.clone())
            .with_http_responses(self.responses.clone());
        Arc::new(match &self.bus {
            Some(address) => capabilities.with_system_bus(address),
            None => capabilities,
        })
    }

    /// Follows the value of an expression.
    pub(crate) fn follow(&self, imports: &[&str], expression: &str) -> Followed {
        self.run(&code(imports, expression))
    }

    /// Follows the one value of a program.
    pub(crate) fn run(&self, code: &str) -> Followed {
        let text = compile_code(code);
        let capabilities = self.capabilities(&text, &DirectoryLoader::new("/nonexistent"));
        Followed::start(text, capabilities)
    }

    /// Follows the one value of a program that lies in a directory.
    pub(crate) fn run_directory(&self, directory: &Path) -> Followed {
        let loader = DirectoryLoader::new(directory);
        let library = Assembly::standard().library(&self.hostname);
        let text = compile_entry(&Entry::Directory(String::new()), &loader, &library);
        let capabilities = self.capabilities(&text, &loader);
        Followed::start(text, capabilities)
    }

    /// Sets a text of this host, as the kind `value` does.
    pub(crate) fn set_text(&self, key: &str, text: &str) {
        self.set(key, Value::str(text));
    }

    /// Sets a value of this host.
    pub(crate) fn set(&self, key: &str, value: Value) {
        self.values.set(key, &value).unwrap();
    }
}

/// Replaces a file as careful programs do: a new one, moved over it.
pub(crate) fn replace(path: &str, content: &str) {
    let new = format!("{path}.new");
    std::fs::write(&new, content).unwrap();
    std::fs::rename(new, path).unwrap();
}

/// Reports nothing: tests look at values.
struct Silent;

impl Report for Silent {
    fn say(&self, _: Vec<Said>) {}

    fn diagnostics(&self, _: &Diagnostics, _: &SourceMap) {}
}

fn reporter() -> Reporter {
    Reporter::new(Arc::new(Silent))
}
