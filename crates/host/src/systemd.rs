//! The service manager (systemd): its units, asked, changed and watched over D-Bus.
//!
//! There is one manager for the system and one for each user. All resources share one connection to each, and hear of their units through one follower of
//! the bus: a watched unit is an entry in a table. What is told is a *settled* state that differs from the one that was read or told last, so the way through `activating`
//! or an automatic restart is no news, and neither is what a run has just brought about.
//!
//! As root, and for the manager of our own user, the manager's own socket takes the place of a bus that cannot be reached.

mod jobs;
mod news;
mod unit;

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use zbus::{DynamicType, OwnedVariant, Type};

pub use jobs::{Job, JobResult, UnknownJob};
pub use news::{UnitNews, UnitWatch};
pub use unit::{ActiveState, InvalidUnitName, Unit, UnitName};

use crate::bus::{ANSWERING, Bus, BusAddress, BusError, Buses, Link, Method};
use crate::sync::Mutex;
use crate::users::own_home;
use news::Followed;

/// Is a directory where systemd is the service manager.
const RUNNING: &str = "/run/systemd/system";
/// The socket of the system's manager itself, which only root may use.
const PRIVATE: &str = "/run/systemd/private";

const SERVICE: &str = "org.freedesktop.systemd1";
const MANAGER: &str = "org.freedesktop.systemd1.Manager";
const MANAGER_PATH: &str = "/org/freedesktop/systemd1";
const UNIT: &str = "org.freedesktop.systemd1.Unit";
const UNIT_PATHS: &str = "/org/freedesktop/systemd1/unit";

/// How long the manager may take to read all units again.
const RELOADING: Duration = Duration::from_secs(300);

/// Both managers.
#[derive(Debug, Clone)]
pub struct ServiceManagers {
    /// The system's.
    pub system: ServiceManager,
    /// That of our own user.
    pub session: ServiceManager,
}

/// A service manager. Clones are one and the same.
#[derive(Clone)]
pub struct ServiceManager(Arc<Shared>);

struct Shared {
    bus: Bus,
    /// The manager itself, for when there is no bus.
    direct: Option<Bus>,
    followed: Mutex<Weak<Followed>>,
    reloads: Reloads,
}

/// Reads of all units, which callers share that come before it begins.
#[derive(Default)]
struct Reloads {
    /// How often it was asked for.
    asked: AtomicU64,
    /// Of these, how many are served. Held while the manager reads.
    served: tokio::sync::Mutex<u64>,
}

/// What a change of unit files did, as the manager tells it: what it did, the link, and where that leads.
pub type UnitFileChanges = Vec<(String, String, String)>;

impl ServiceManagers {
    /// Those of this machine, over buses that others share.
    #[must_use]
    pub fn new(buses: &Buses) -> ServiceManagers {
        let direct = |path: PathBuf| Some(Bus::new(BusAddress::Direct(path)));
        let is_root = rustix::process::geteuid().is_root();
        let of_system = is_root.then(|| PathBuf::from(PRIVATE)).and_then(direct);
        let of_session = direct(runtime_directory().join("systemd/private"));
        ServiceManagers {
            system: ServiceManager::new(buses.system.clone(), of_system),
            session: ServiceManager::new(buses.session.clone(), of_session),
        }
    }
}

impl ServiceManager {
    fn new(bus: Bus, direct: Option<Bus>) -> ServiceManager {
        ServiceManager(Arc::new(Shared {
            bus,
            direct,
            followed: Mutex::default(),
            reloads: Reloads::default(),
        }))
    }

    /// Whether systemd runs on this machine. Without it there are no managers.
    #[must_use]
    pub fn is_running() -> bool {
        Path::new(RUNNING).is_dir()
    }

    /// Hears of a unit until what this answers is dropped. It is called on the thread of the bus, and must not wait.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn watch(
        &self,
        unit: &UnitName,
        hears: impl Fn(UnitNews<'_>) + Send + Sync + 'static,
    ) -> Result<UnitWatch, BusError> {
        Ok(self.followed()?.watch(unit, Box::new(hears)))
    }

    /// How a unit is. With `file_state` also whether it is enabled. Whoever watches it is told only of what differs from that.
    ///
    /// # Errors
    /// When the manager does not tell. A unit of which it finds no file is no error.
    pub async fn unit(&self, name: &UnitName, file_state: bool) -> Result<Unit, BusError> {
        let followed = self.followed()?;
        let mut tries = Tries::default();
        let unit = loop {
            let link = followed.link().await?;
            if let Some(read) = tries.take(read(&link, name, file_state).await).await {
                break read?;
            }
        };
        followed.was_read(name, &unit, file_state);
        Ok(unit)
    }

    /// The directories in which the manager looks for unit files, the most important first.
    ///
    /// # Errors
    /// When the manager does not tell.
    pub async fn unit_path(&self) -> Result<Vec<PathBuf>, BusError> {
        let link = self.followed()?.link().await?;
        let get = Method {
            service: SERVICE,
            path: MANAGER_PATH,
            interface: "org.freedesktop.DBus.Properties",
            name: "Get",
        };
        let value: OwnedVariant = link.call(get, &(MANAGER, "UnitPath")).await?;
        Ok(unit::paths(&value))
    }

    /// How the last start or stop of a unit ended, in the words of the manager: `success`, `timeout`, `exit-code`. For units of mounts and services.
    ///
    /// # Errors
    /// When the manager does not tell.
    pub async fn result(&self, unit: &UnitName) -> Result<String, BusError> {
        self.text_property(unit, "Result").await
    }

    /// When a service counts as started, in the words of the manager: `simple`, `oneshot`, `notify`.
    ///
    /// # Errors
    /// When the manager does not tell.
    pub async fn service_type(&self, unit: &UnitName) -> Result<String, BusError> {
        self.text_property(unit, "Type").await
    }

    /// A property that units of one sort have.
    async fn text_property(&self, unit: &UnitName, name: &str) -> Result<String, BusError> {
        let sort = match unit.as_str().rsplit_once('.') {
            Some((_, "mount")) => "org.freedesktop.systemd1.Mount",
            Some((_, "automount")) => "org.freedesktop.systemd1.Automount",
            _ => "org.freedesktop.systemd1.Service",
        };
        let link = self.followed()?.link().await?;
        let property = Method {
            service: SERVICE,
            path: &unit.object_path(),
            interface: sort,
            name,
        };
        link.text_property(property).await
    }

    /// Asks for a job: `StartUnit`, `StopUnit`, `ReloadOrTryRestartUnit`.
    ///
    /// # Errors
    /// When the manager refuses it. How it ends is the job's to tell.
    pub async fn enqueue(&self, method: &str, unit: &UnitName) -> Result<Job, BusError> {
        let followed = self.followed()?;
        let mut tries = Tries::default();
        loop {
            let link = followed.link().await?;
            let job = jobs::enqueue(followed.clone(), &link, method, unit).await;
            if let Some(job) = tries.take(job).await {
                return job;
            }
        }
    }

    /// Keeps a unit loaded that nothing else keeps, so that what came of its start can be read, until [`ServiceManager::release`].
    ///
    /// # Errors
    /// When the manager refuses it, as it does where there is no bus.
    pub async fn hold(&self, unit: &UnitName) -> Result<(), BusError> {
        self.ask("RefUnit", &unit.as_str()).await
    }

    /// Lets a unit go that was held.
    ///
    /// # Errors
    /// When the manager refuses it.
    pub async fn release(&self, unit: &UnitName) -> Result<(), BusError> {
        self.ask("UnrefUnit", &unit.as_str()).await
    }

    /// The job that a unit waits for, to be waited for too.
    ///
    /// # Errors
    /// When the manager cannot be reached.
    pub async fn job(&self, unit: &Unit) -> Result<Option<Job>, BusError> {
        let Some(id) = unit.job else { return Ok(None) };
        let followed = self.followed()?;
        let link = followed.link().await?;
        jobs::join(followed, &link, id).await
    }

    /// Makes links to unit files as they ask for it, and replaces those in the way. None changed anything: the answer is empty.
    ///
    /// # Errors
    /// When the manager refuses it.
    pub async fn enable(&self, unit: &UnitName) -> Result<UnitFileChanges, BusError> {
        let arguments = (&[unit.as_str()][..], false, true);
        let answer: (bool, UnitFileChanges) = self.ask("EnableUnitFiles", &arguments).await?;
        Ok(answer.1)
    }

    /// Removes links to a unit file: those that last, or those until the next start of the machine.
    ///
    /// # Errors
    /// When the manager refuses it.
    pub async fn disable(&self, unit: &UnitName, runtime: bool) -> Result<UnitFileChanges, BusError> {
        self.ask("DisableUnitFiles", &(&[unit.as_str()][..], runtime))
            .await
    }

    /// Makes it impossible to start a unit.
    ///
    /// # Errors
    /// When the manager refuses it.
    pub async fn mask(&self, unit: &UnitName) -> Result<UnitFileChanges, BusError> {
        self.ask("MaskUnitFiles", &(&[unit.as_str()][..], false, true))
            .await
    }

    /// Forgets that a unit has failed. One that nobody knows has not.
    ///
    /// # Errors
    /// When the manager refuses it.
    pub async fn reset_failed(&self, unit: &UnitName) -> Result<(), BusError> {
        match self.ask("ResetFailedUnit", &unit.as_str()).await {
            Err(error) if error.is_named("org.freedesktop.systemd1.NoSuchUnit") => Ok(()),
            other => other,
        }
    }

    /// Makes it possible again.
    ///
    /// # Errors
    /// When the manager refuses it.
    pub async fn unmask(&self, unit: &UnitName, runtime: bool) -> Result<UnitFileChanges, BusError> {
        self.ask("UnmaskUnitFiles", &(&[unit.as_str()][..], runtime))
            .await
    }

    /// Makes the manager read all unit files again (`daemon-reload`). Those who ask while others wait for it share one.
    ///
    /// # Errors
    /// When the manager refuses it.
    pub async fn reload(&self) -> Result<(), BusError> {
        let reloads = &self.0.reloads;
        let own = reloads.asked.fetch_add(1, Ordering::AcqRel) + 1;
        let mut served = reloads.served.lock().await;
        if *served >= own {
            return Ok(());
        }
        let all = reloads.asked.load(Ordering::Acquire);
        let () = self.ask_within(RELOADING, "Reload", &()).await?;
        *served = all;
        Ok(())
    }

    async fn ask<A: DeserializeOwned + Type>(
        &self,
        method: &str,
        arguments: &(impl Serialize + DynamicType + Sync),
    ) -> Result<A, BusError> {
        self.ask_within(ANSWERING, method, arguments).await
    }

    async fn ask_within<A: DeserializeOwned + Type>(
        &self,
        limit: Duration,
        method: &str,
        arguments: &(impl Serialize + DynamicType + Sync),
    ) -> Result<A, BusError> {
        let followed = self.followed()?;
        let mut tries = Tries::default();
        loop {
            let link = followed.link().await?;
            let answer = link.call_within(limit, manager(method), arguments).await;
            if let Some(answer) = tries.take(answer).await {
                return answer;
            }
        }
    }

    fn followed(&self) -> Result<Arc<Followed>, BusError> {
        let mut known = self.0.followed.lock();
        if let Some(followed) = known.upgrade() {
            return Ok(followed);
        }
        let followed = Followed::start(&self.0.bus, self.0.direct.as_ref())?;
        *known = Arc::downgrade(&followed);
        Ok(followed)
    }
}

/// A method of the manager itself.
fn manager(name: &str) -> Method<'_> {
    Method {
        service: SERVICE,
        path: MANAGER_PATH,
        interface: MANAGER,
        name,
    }
}

/// How often something is asked that gets no answer because the manager or the bus is started anew, and the pause before each further time.
const TRIES: u32 = 20;
const MOMENT: Duration = Duration::from_millis(50);

/// Counts how often something was asked. All that the manager is asked here is as right when it is asked twice.
#[derive(Default)]
struct Tries(u32);

impl Tries {
    /// The answer, unless it is to be asked for again, after a moment that has passed then.
    async fn take<T>(&mut self, answer: Result<T, BusError>) -> Option<Result<T, BusError>> {
        self.0 += 1;
        if self.0 == TRIES || !matches!(answer, Err(BusError::Lost { .. })) {
            return Some(answer);
        }
        tokio::time::sleep(MOMENT).await;
        None
    }
}

async fn read(link: &Link, name: &UnitName, file_state: bool) -> Result<Unit, BusError> {
    let method = Method {
        service: SERVICE,
        path: &name.object_path(),
        interface: "org.freedesktop.DBus.Properties",
        name: "GetAll",
    };
    let mut unit = Unit::read(link.call(method, &UNIT).await?);
    if file_state {
        // What the unit itself says of it may be from before somebody changed it.
        unit.file_state = file_state_of(link, name).await?;
    }
    Ok(unit)
}

/// Whether a unit is enabled, in the words of the manager; empty if it has no file.
async fn file_state_of(link: &Link, name: &UnitName) -> Result<String, BusError> {
    let state = link.call(manager("GetUnitFileState"), &name.as_str()).await;
    match state {
        Err(error) if error.is_named("org.freedesktop.DBus.Error.FileNotFound") => Ok(String::new()),
        other => other,
    }
}

/// Where the sockets of our own user are.
fn runtime_directory() -> PathBuf {
    let said = std::env::var_os("XDG_RUNTIME_DIR").filter(|path| path.as_encoded_bytes().starts_with(b"/"));
    said.map_or_else(
        || PathBuf::from(format!("/run/user/{}", rustix::process::geteuid().as_raw())),
        PathBuf::from,
    )
}

/// The directories in which the system's manager looks for unit files, the most important first.
pub const SYSTEM_UNIT_DIRECTORIES: [&str; 4] = [
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];

/// The directory of unit files of our own user; none if there is no home.
#[must_use]
pub fn own_unit_directory() -> Option<PathBuf> {
    let absolute = |path: &OsString| path.as_encoded_bytes().starts_with(b"/");
    let configuration = std::env::var_os("XDG_CONFIG_HOME").filter(absolute);
    let base = match configuration {
        Some(path) => PathBuf::from(path),
        None => own_home()?.join(".config"),
    };
    Some(base.join("systemd/user"))
}

impl fmt::Debug for ServiceManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServiceManager({:?})", self.0.bus)
    }
}
