//! What the kinds have in common that bring units of systemd into a state: which manager a unit is of, watching it, whether it starts by itself, and jobs.

use std::pin::pin;
use std::time::Duration;

use setpoint_engine::{Apply, Attempting, Failure, Handle, HubWatcher, Level, Words};
use setpoint_host::systemd::{
    Job, JobResult, ServiceManager, ServiceManagers, Unit, UnitName, UnitNews, UnitWatch,
};
use tokio::task::block_in_place;

use crate::unit_files;

/// How long a job is waited for until that is said, again and again.
const SAID: Duration = Duration::from_secs(10);

/// Whether a unit starts by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Startup {
    Enabled,
    Disabled,
}

impl Words for Startup {
    const ONE: &'static str = "a startup of a unit";

    fn words() -> impl Iterator<Item = (&'static str, Startup)> {
        [("enabled", Startup::Enabled), ("disabled", Startup::Disabled)].into_iter()
    }
}

impl Startup {
    /// As a parameter says it, and what has to be done for it.
    pub(crate) fn word_and_verb(self) -> (&'static str, &'static str) {
        match self {
            Startup::Enabled => ("enabled", "enable"),
            Startup::Disabled => ("disabled", "disable"),
        }
    }

    /// What the startup of a unit is, unless it is as wanted.
    pub(crate) fn unless_right(self, unit: &Unit) -> Option<String> {
        let is = unit.file_state.as_str();
        let right = match self {
            Startup::Enabled => matches!(is, "enabled" | "enabled-runtime" | "alias"),
            Startup::Disabled => !matches!(is, "enabled" | "enabled-runtime" | "alias" | "generated"),
        };
        (!right).then(|| match is {
            "" => "no unit file".to_owned(),
            is => is.to_owned(),
        })
    }
}

/// The manager that a unit is of: the system's, or with `session` that of our own user.
pub(crate) fn manager(handle: &Handle, session: bool) -> Result<&ServiceManager, Failure> {
    if !ServiceManager::is_running() {
        let why = "it does not run on this machine: `/run/systemd/system` is not a directory";
        return Err(Failure::new("use systemd").because(why));
    }
    let managers = handle.extension::<ServiceManagers>()?;
    Ok(match session {
        true => &managers.session,
        false => &managers.system,
    })
}

/// Begins to watch a unit.
pub(crate) fn watch(session: bool, unit: &UnitName, watcher: HubWatcher) -> Result<UnitWatch, Failure> {
    let manager = manager(&watcher.handle, session)?.clone();
    let name = unit.clone();
    let watched = manager.watch(unit, move |news| match news {
        UnitNews::Armed => (watcher.event)("it is watched"),
        UnitNews::Changed(what) => (watcher.event)(what),
        UnitNews::Unreachable(error) => {
            (watcher.failed)(Failure::new("watch").on(&name).because(error.clone()));
        }
    });
    watched.attempting("watch", unit)
}

/// Makes the manager read all unit files again.
pub(crate) async fn reload(manager: &ServiceManager) -> Result<(), Failure> {
    let reloaded = manager.reload().await;
    reloaded.map_err(|error| Failure::new("make systemd read its unit files again").because(error))
}

/// Makes the manager read its unit files again if it has not read those of a unit as they are now.
pub(crate) async fn read_new_files(
    manager: &ServiceManager,
    name: &UnitName,
    unit: &Unit,
) -> Result<(), Failure> {
    if !unit.needs_reload {
        let attempted = "look for the unit files of";
        let directories = manager.unit_path().await.attempting(attempted, name)?;
        let differ = block_in_place(|| unit_files::differ(&directories, name, unit));
        if !differ.attempting(attempted, name)? {
            return Ok(());
        }
    }
    reload(manager).await
}

/// Has the manager do a job, and waits for its end.
pub(crate) async fn job(
    manager: &ServiceManager,
    unit: &UnitName,
    method: &str,
    attempted: &'static str,
    apply: &Apply<'_>,
) -> Result<(), Failure> {
    let job = manager.enqueue(method, unit).await;
    let job = job.attempting(attempted, unit)?;
    // systemd waits for this process to end before it continues the job, so this process must not wait for the job.
    if ends_ourselves(manager).await {
        let line = format!("systemd will {attempted} {unit}, and this program with it");
        apply.log(Level::Info, line);
        return Ok(());
    }
    match wait(job, unit, attempted, apply).await? {
        // How the unit is says whether a forgotten one was done.
        None | Some(JobResult::Done) => Ok(()),
        Some(result) => Err(Failure::new(attempted).on(unit).because(result.to_string())),
    }
}

/// Whether a job of the service that this process belongs to is under way: the service is being stopped or restarted.
async fn ends_ourselves(manager: &ServiceManager) -> bool {
    let Some(own) = UnitName::of_this_process() else {
        return false;
    };
    let unit = manager.unit(&own, false).await;
    unit.is_ok_and(|unit| unit.job.is_some())
}

/// How a job ended; nothing if the manager was started anew and has forgotten it.
pub(crate) async fn wait(
    job: Job,
    unit: &UnitName,
    attempted: &'static str,
    apply: &Apply<'_>,
) -> Result<Option<JobResult>, Failure> {
    let mut result = pin!(job.result());
    loop {
        tokio::select! {
            ended = &mut result => {
                let ended = ended.attempting(attempted, unit)?;
                return Ok(ended.ok());
            }
            () = apply.cancellation().cancelled() => {
                return Err(Failure::cancelled(attempted).on(unit));
            }
            () = tokio::time::sleep(SAID) => {
                let line = format!("waits until systemd has done its job: {attempted} {unit}");
                apply.log(Level::Info, line);
            }
        }
    }
}
