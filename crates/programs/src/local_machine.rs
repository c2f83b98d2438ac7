//! This machine, as programs and kinds see it: one place that puts its parts together.

use std::path::PathBuf;
use std::sync::Arc;

use setpoint_engine::ExportStore;
use setpoint_host::Host;
use setpoint_host::files::AbsolutePath;
use setpoint_resources::{LocalValues, ProgramFiles as RunningFiles, SharedElections, SharedStore};
use setpoint_value::{Capabilities, FunctionLog};
use setpoint_world::Store;

use crate::capabilities::{
    ProgramFiles, RealCapabilities, RealEffects, SharedWorld, SourceAccess, WhileAway, World,
    store_of_one_machine,
};
use crate::command_path::command_path;
use crate::failure::Failure;
use crate::host_key::HostKey;
use crate::report::Reporter;

/// As what this process sees what hosts share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// As one of them.
    Member,
    /// It only looks on.
    Onlooker,
}

/// This machine, as programs and kinds are given it.
#[derive(Clone)]
pub struct LocalMachine {
    /// Files, watches, processes, accounts.
    pub host: Arc<Host>,
    /// The named values that resources set.
    pub values: Arc<LocalValues>,
    /// The state directory.
    pub prefix: AbsolutePath,
    /// Its name, as programs see it.
    pub hostname: String,
    /// The files of the program that runs, for kinds.
    pub running_files: RunningFiles,
    /// What is said of calls of functions.
    log: Option<Arc<dyn FunctionLog>>,
    world: Arc<dyn World>,
    reporter: Reporter,
}

impl LocalMachine {
    /// Opens this machine for a program, with its state below `prefix`, an absolute path. `kinds` are those that resources can be exported of. Shared data is in the store, or in files
    /// below `prefix` without one. With `waits`, programs wait for a store that is away; else what they read from it fails.
    pub fn open(
        kinds: Vec<String>,
        reporter: &Reporter,
        hostname: &str,
        prefix: PathBuf,
        store: Option<Arc<dyn Store>>,
        presence: Presence,
        waits: bool,
    ) -> Result<LocalMachine, Failure> {
        let prefix = AbsolutePath::new(prefix)
            .map_err(|error| Failure::wrong("cannot use the state directory").because(error))?;
        let host = Host::new(command_path(reporter))
            .map_err(|error| Failure::io("prepare for watching files", &error))?;
        let host = Arc::new(host);
        let is_of_cluster = store.is_some();
        let (store, key) = match store {
            Some(store) => {
                let key = match presence {
                    Presence::Member => HostKey::of(prefix.as_path())?,
                    Presence::Onlooker => {
                        HostKey::existing(prefix.as_path())?.unwrap_or_else(HostKey::of_nobody)
                    }
                };
                (store, Some(key))
            }
            None => (store_of_one_machine(prefix.join("world"), &host.watches), None),
        };
        let keeps = is_of_cluster && presence == Presence::Member;
        let while_away = WhileAway {
            waits,
            remembered: keeps.then(|| (prefix.join("local/shared"), host.committer.clone())),
        };
        let world = SharedWorld::new(store, hostname, key, kinds, while_away, reporter.clone());
        let world = world.map_err(|error| Failure::io("prepare for asking the store", &error))?;
        if presence == Presence::Member {
            world.publish_key();
        }
        let world: Arc<dyn World> = Arc::new(world);
        let values = LocalValues::new(prefix.join("local/value"), host.committer.clone());
        Ok(LocalMachine {
            values: Arc::new(match presence {
                Presence::Member => values,
                Presence::Onlooker => values.reading(),
            }),
            log: None,
            running_files: RunningFiles::with_copies(format!(
                "{}/local/vardir/directory",
                prefix.as_path().display()
            )),
            world,
            hostname: hostname.to_owned(),
            prefix,
            host,
            reporter: reporter.clone(),
        })
    }

    /// With somebody who listens to what is said of calls of functions.
    pub fn with_log(mut self, log: impl FunctionLog + 'static) -> LocalMachine {
        self.log = Some(Arc::new(log));
        self
    }

    /// The store that machines share, as far as it holds what this one exports.
    pub fn export_store(&self) -> Arc<dyn ExportStore> {
        self.world.clone()
    }

    /// The store that machines share, for kinds.
    pub fn shared_store(&self) -> SharedStore {
        SharedStore::new(self.world.clone())
    }

    /// Takes back what others need not wait for, before a clean end.
    pub async fn leave(&self) {
        self.world.leave().await;
    }

    /// The elections of the machines that share it, for kinds.
    pub fn elections(&self) -> SharedElections {
        SharedElections::new(self.world.clone())
    }

    /// Below which a program keeps what it finds out about this machine, ending in `/`.
    #[must_use]
    pub fn state_of_programs(&self) -> String {
        format!("{}/local/", self.prefix.as_path().display())
    }

    /// The access of the sources of a program with these files to the machine.
    ///
    /// # Errors
    /// When the system gives no threads.
    pub fn capabilities(
        &self,
        files: ProgramFiles,
        access: SourceAccess,
    ) -> Result<Arc<dyn Capabilities>, Failure> {
        let effects = RealEffects::new(self.host.clone(), self.reporter.clone());
        let capabilities = RealCapabilities::new(&self.host, &self.hostname, files)
            .map_err(|error| Failure::io("start the clock", &error))?
            .with_values(self.values.clone())
            .with_world(self.world.clone())
            .with_log(self.log.clone())
            .with_effects(effects, access);
        Ok(Arc::new(capabilities))
    }
}
