//! The `svc` kind: a service of systemd, running or not, starting by itself or not.
//!
//! What a run does is in `svc/run.rs`. Watching costs a service an entry in a table: see `setpoint_host::systemd`.
//!
//! Beside what the reference has: `masked` and `on_refresh`. Where systemd's words leave room: a unit counts as enabled when it is `enabled`, `enabled-runtime` or
//! `alias`; as disabled when no link of its own starts it, so `static` and `masked` are right too. A unit that cannot be enabled or disabled is an error
//! instead of a difference that comes back for ever.

mod init_script;
mod run;

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use setpoint_engine::{
    Apply, Failure, Identity, IfSet, Resource, Wanted, WantedOrder, WantedReach, Watch, Words, async_trait,
};
use setpoint_graph::{Doubt, Invalid, MetaParameters, Parameters};
use setpoint_host::files::AbsolutePath;
use setpoint_host::systemd::{SYSTEM_UNIT_DIRECTORIES, UnitName, own_unit_directory};
use setpoint_host::watch::{Depth, Follow};

use crate::sorts::{DROP_IN, FILE, SERVICE, TIMER_UNIT, of_service_manager};
use crate::unit_control::{self, Startup};

/// A service of systemd: running or not, enabled or not.
///
/// The name is that of the unit without `.service`, also of an instance: `getty@tty1`. What is not set is left alone. Changes of the service are seen when they happen.
///
/// A notification (`Notify`, `Listen`) makes the service read its configuration again, if it runs; a run that has just started it has served the
/// notification. When unit files were changed, systemd reads them before anything is started, stopped or reloaded.
///
/// `file` resources of the unit file, of its drop-ins (`NAME.service.d/`) and of the template of an instance come before it by themselves.
///
/// ```mcl
/// file "/etc/systemd/system/hello.service" {
///     content => "[Service]\nExecStart=/usr/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n",
///
///     Notify => Svc["hello"],
/// }
///
/// svc "hello" {
///     state => "running",
///     startup => "enabled",
///     on_refresh => "restart",
/// }
/// ```
///
/// What shall never run, whoever asks for it:
///
/// ```mcl
/// svc "telnet" {
///     state => "stopped",
///     masked => true,
/// }
/// ```
#[derive(Debug, Clone, Resource)]
#[resource(kind = "svc", brings = anything, refreshable, autoedge, asynchronous)]
pub(crate) struct Svc {
    /// Whether it runs. Unset or empty: not managed.
    #[param(independent)]
    state: IfSet<State>,
    /// Whether it starts by itself. Unset or empty: not managed.
    #[param(independent)]
    startup: IfSet<Startup>,
    /// Whether it is a service of the manager of our own user instead of the system's.
    session: bool,
    /// Whether it is made impossible to start it. Unset: not managed. An extension.
    #[param(independent)]
    masked: Option<bool>,
    /// What a notification does, `reload-or-restart` if unset. All but `restart` leave a service alone that does not run. An extension.
    on_refresh: IfSet<OnRefresh>,
    #[name]
    name: String,
}

/// Whether a service runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    Stopped,
}

impl Words for State {
    const ONE: &'static str = "a state of a service";

    fn words() -> impl Iterator<Item = (&'static str, State)> {
        [("running", State::Running), ("stopped", State::Stopped)].into_iter()
    }
}

/// What a notification does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OnRefresh {
    ReloadOrRestart,
    Reload,
    Restart,
    TryRestart,
}

impl Words for OnRefresh {
    const ONE: &'static str = "what a notification can do";

    fn words() -> impl Iterator<Item = (&'static str, OnRefresh)> {
        [
            ("reload-or-restart", OnRefresh::ReloadOrRestart),
            ("reload", OnRefresh::Reload),
            ("restart", OnRefresh::Restart),
            ("try-restart", OnRefresh::TryRestart),
        ]
        .into_iter()
    }
}

/// Endings of units that are no services, and what to write for some of them.
const OTHER_UNITS: [(&str, Option<&str>); 6] = [
    ("timer", Some("`cron` is for timers")),
    ("mount", Some("`mount` is for file systems that are mounted")),
    ("socket", None),
    ("target", None),
    ("path", None),
    ("slice", None),
];

#[async_trait]
impl Resource for Svc {
    fn validate(&self, _: &MetaParameters, invalid: &mut Vec<Invalid>) {
        match UnitName::service(&self.name) {
            Err(error) => invalid.push(Invalid::new(error.to_string())),
            Ok(unit) if unit.is_template() => {
                let message = format!("`{unit}` is a template; only its instances can be managed");
                let help = format!("name an instance: `{}NAME`", self.name);
                invalid.push(Invalid::new(message).help(help));
            }
            Ok(_) => {}
        }
        if self.masked == Some(true) {
            if *self.state == Some(State::Running) {
                let message = "what is masked cannot be `running`, as nothing can start it";
                invalid.push(Invalid::parameter("masked", message));
            }
            if *self.startup == Some(Startup::Enabled) {
                let message = "what is masked cannot be `enabled`";
                invalid.push(Invalid::parameter("masked", message));
            }
        }
        if *self.on_refresh == Some(OnRefresh::Restart) && *self.state == Some(State::Stopped) {
            let message = "`restart` would start a service whose state is `stopped`";
            let help = "`try-restart` leaves a service alone that does not run";
            invalid.push(Invalid::parameter("on_refresh", message).help(help));
        }
    }

    fn doubt(name: &str, _: &Parameters, invalid: &mut Vec<Invalid>) {
        if let Some(stem) = name.strip_suffix(".service") {
            let message = format!("the unit is `{name}.service`: the name is written without `.service`");
            let help = format!("write `{stem}`");
            let doubt = Invalid {
                doubt: Some(Doubt::Meaning),
                ..Invalid::new(message)
            };
            invalid.push(doubt.help(help));
        } else if let Some((_, sort)) = name.rsplit_once('.')
            && let Some((_, better)) = OTHER_UNITS.iter().find(|(other, _)| *other == sort)
        {
            let doubt = Invalid {
                doubt: Some(Doubt::Meaning),
                ..Invalid::new(format!("the unit is `{name}.service`: only services are managed"))
            };
            invalid.push(doubt.help_if(better.map(str::to_owned)));
        }
    }

    fn identities(&self) -> Vec<Identity> {
        vec![of_service_manager(&SERVICE, self.session, &self.name)]
    }

    fn wanted(&self) -> Vec<Wanted> {
        let Ok(unit) = UnitName::service(&self.name) else {
            return Vec::new();
        };
        let wanted = |order, reach, identities| Wanted {
            order,
            identities,
            reach,
        };
        let mut all = Vec::new();
        let directories = unit_directories(self.session);
        let path = |directory: &Path, name: &str| directory.join(name).as_os_str().as_bytes().to_owned();
        for name in std::iter::once(&unit).chain(&unit.template()) {
            let files = directories
                .iter()
                .map(|directory| FILE.identity(path(directory, name.as_str())));
            all.push(wanted(
                WantedOrder::FoundFirst,
                WantedReach::First,
                files.collect(),
            ));
            let drop_ins = directories
                .iter()
                .map(|directory| path(directory, &format!("{name}.d/")));
            let (of_files, of_directories): (Vec<Identity>, Vec<Identity>) = drop_ins
                .map(|path| (DROP_IN.identity(path.as_slice()), FILE.identity(path)))
                .unzip();
            all.push(wanted(WantedOrder::FoundFirst, WantedReach::Each, of_directories));
            all.push(wanted(WantedOrder::FoundFirst, WantedReach::All, of_files));
        }
        let timer = of_service_manager(&TIMER_UNIT, self.session, unit.as_str());
        all.push(wanted(WantedOrder::FoundAfter, WantedReach::First, vec![timer]));
        all
    }

    fn watches(&self) -> Vec<Watch> {
        let Ok(unit) = UnitName::service(&self.name) else {
            return Vec::new();
        };
        // A file that appears is seen although nobody has told systemd of it yet.
        let paths = unit_directories(self.session).into_iter().filter_map({
            let unit = unit.clone();
            move |directory| {
                Some(Watch::Path {
                    path: AbsolutePath::new(directory.join(unit.as_str())).ok()?,
                    depth: Depth::Entry,
                    follow: Follow::Link,
                })
            }
        });
        let session = self.session;
        let news = Watch::hub(move |watcher| unit_control::watch(session, &unit, watcher));
        paths.chain([news]).collect()
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let manager = unit_control::manager(apply.handle(), self.session)?;
        run::run(self, manager, apply).await
    }
}

/// Where unit files are, the most important directory first.
fn unit_directories(session: bool) -> Vec<std::path::PathBuf> {
    if session {
        own_unit_directory().into_iter().collect()
    } else {
        SYSTEM_UNIT_DIRECTORIES.into_iter().map(Into::into).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn svc(name: &str, session: bool) -> Svc {
        Svc {
            state: IfSet(None),
            startup: IfSet(None),
            session,
            masked: None,
            on_refresh: IfSet(None),
            name: name.to_owned(),
        }
    }

    fn keys(wanted: &Wanted) -> Vec<String> {
        let keys = wanted.identities.iter();
        keys.map(|identity| format!("{} {:?}", identity.sort.name, identity.key))
            .collect()
    }

    #[test]
    fn an_instance_wants_its_files_those_of_its_template_and_their_drop_ins() {
        let wanted = svc("getty@tty1", false).wanted();
        let first: Vec<String> = wanted.iter().map(|wanted| keys(wanted)[0].clone()).collect();
        assert_eq!(
            first,
            [
                r#"file "/etc/systemd/system/getty@tty1.service""#,
                r#"file "/etc/systemd/system/getty@tty1.service.d/""#,
                r#"file in a directory of drop-ins "/etc/systemd/system/getty@tty1.service.d/""#,
                r#"file "/etc/systemd/system/getty@.service""#,
                r#"file "/etc/systemd/system/getty@.service.d/""#,
                r#"file in a directory of drop-ins "/etc/systemd/system/getty@.service.d/""#,
                r#"timer unit "system:getty@tty1.service""#,
            ]
        );
        assert_eq!(wanted.last().unwrap().order, WantedOrder::FoundAfter);
    }

    #[test]
    fn services_of_one_name_on_both_managers_are_two() {
        assert_ne!(svc("a", false).identities(), svc("a", true).identities());
    }
}
