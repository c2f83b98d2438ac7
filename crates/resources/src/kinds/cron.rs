//! The `cron` kind: a timer of systemd, with its unit file, running or not, starting by itself or not.
//!
//! `cron/run.rs` has the steps of a run, `cron/times.rs` the forms of times.
//!
//! Beside what the reference has: `command`, which makes the unit that is started, too. What differs from the reference: a schedule that was changed takes effect at once;
//! `startup` holds also while the timer runs; what shall be absent is stopped, disabled and removed; `time` and the spans are judged before anything is done.

mod run;
mod times;

use std::collections::BTreeMap;
use std::path::PathBuf;

use setpoint_engine::{Apply, Failure, Identity, IfSet, Resource, Wanted, Watch, Words, async_trait};
use setpoint_graph::{Doubt, Invalid, MetaParameters, Parameters};
use setpoint_host::files::AbsolutePath;
use setpoint_host::systemd::{UnitName, own_unit_directory};
use setpoint_host::watch::{Depth, Follow};

use crate::enclosing;
use crate::presence::Presence;
use crate::sorts::{Account, FILE, TIMER_UNIT, of_service_manager};
use crate::unit_control::{self, Startup};

/// The directory of the administrator's unit files.
const DIRECTORY: &str = "/etc/systemd/system";

/// Where those are that hold until the next start of the machine.
const RUNTIME_DIRECTORY: &str = "/run/systemd/system";

/// Where the administrator's unit files for all users are.
const DIRECTORY_OF_USERS: &str = "/etc/systemd/user";

/// A timer of systemd, which starts a unit at times.
///
/// The name is that of the timer without `.timer`. Its unit file is written, and it is kept active; a schedule that is changed takes effect at once. What is changed by
/// hand, in the file or by `systemctl`, is put right when it happens.
///
/// With `command` the service that it starts is made, too:
///
/// ```mcl
/// cron "backup" {
///     trigger => $const.res.cron.trigger.on_calendar,
///     time => "*-*-* 03:00",
///     command => "/usr/local/bin/backup --all",
///     persistent => true,
/// }
/// ```
///
/// As another user, in a directory and with an environment of its own:
///
/// ```mcl
/// cron "report" {
///     trigger => "OnCalendar",
///     time => "Mon..Fri 08:30",
///     command => "/usr/local/bin/report",
///     user => "www-data",
///     cwd => "/srv/report",
///     environment => {"LANG" => "C.UTF-8", "LEVEL" => "info"},
/// }
/// ```
///
/// Without `command`, the timer starts a service that exists: one of the same name, or `unit`. A `svc` resource of it comes first. A span after the last run needs
/// a second trigger for the first run:
///
/// ```mcl
/// cron "cleanup" {
///     unit => "tmpfiles-clean.service",
///     trigger => "OnUnitActiveSec",
///     time => "1h 30min",
///     triggers => {"OnBootSec" => "15min"},
/// }
/// ```
#[derive(Debug, Clone, Resource)]
#[resource(
    kind = "cron",
    receives,
    refreshable,
    autoedge,
    asynchronous,
    constants(trigger(
        on_calendar = "OnCalendar",
        on_active_sec = "OnActiveSec",
        on_boot_sec = "OnBootSec",
        on_startup_sec = "OnStartupSec",
        on_unit_active_sec = "OnUnitActiveSec",
        on_unit_inactive_sec = "OnUnitInactiveSec"
    ))
)]
pub(crate) struct Cron {
    /// The unit that is started. Unset: the service of the resource's name.
    unit: String,
    /// Whether the timer is there.
    #[param(default = Presence::Exists)]
    state: Presence,
    /// Whether it starts by itself when the machine does. Empty: not managed.
    #[param(default = IfSet(Some(Startup::Enabled)))]
    startup: IfSet<Startup>,
    /// Whether it is a timer of the manager of our own user instead of the system's.
    session: bool,
    /// What `time` counts from, or `OnCalendar`.
    trigger: IfSet<Trigger>,
    /// A calendar event after `OnCalendar` (`Mon..Fri 08:30`), otherwise a span of time (`1h 30min`); systemd.time(7) has all forms.
    time: String,
    /// How much later than its time it may start the unit, so that several can be started together. A span of time; systemd's default is a minute.
    accuracysec: String,
    /// By how much, at random, it starts the unit later. A span of time.
    randomizeddelaysec: String,
    /// Whether what was missed while the machine was off is made up for. Only for `OnCalendar`.
    persistent: bool,
    /// Whether it wakes the machine up from sleep.
    wakesystem: bool,
    /// Whether it stays when there is no next time. One that does not stay is started again.
    #[param(default = true)]
    remainafterelapse: bool,
    /// The description of the timer. Unset: it names Setpoint; empty: there is none.
    description: Option<String>,
    /// What is run, as in `ExecStart` of systemd.service(5): an absolute path and arguments. If set, a service `NAME.service` is written that does this; what runs when the
    /// timer is removed runs to its end. An extension.
    command: Option<String>,
    /// The user that the command runs as, by name or number. Unset: root, or our own user with `session`. An extension.
    user: String,
    /// The directory in which the command runs. An extension.
    cwd: IfSet<AbsolutePath>,
    /// Variables of the environment of the command. An extension.
    environment: BTreeMap<String, String>,
    /// Further triggers, each with its time. An extension.
    triggers: BTreeMap<String, String>,
    #[name]
    name: String,
}

/// What a time counts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trigger {
    Calendar,
    Active,
    Boot,
    Startup,
    UnitActive,
    UnitInactive,
}

impl Words for Trigger {
    const ONE: &'static str = "a trigger of a timer";

    fn words() -> impl Iterator<Item = (&'static str, Trigger)> {
        [
            ("OnCalendar", Trigger::Calendar),
            ("OnActiveSec", Trigger::Active),
            ("OnBootSec", Trigger::Boot),
            ("OnStartupSec", Trigger::Startup),
            ("OnUnitActiveSec", Trigger::UnitActive),
            ("OnUnitInactiveSec", Trigger::UnitInactive),
        ]
        .into_iter()
    }
}

impl Trigger {
    fn word(self) -> &'static str {
        let found = Trigger::words().find(|(_, trigger)| *trigger == self);
        found.map_or("OnCalendar", |(word, _)| word)
    }
}

#[async_trait]
impl Resource for Cron {
    fn validate(&self, _: &MetaParameters, invalid: &mut Vec<Invalid>) {
        match self.timer() {
            Err(error) => invalid.push(Invalid::new(error.to_string())),
            Ok(timer) if timer.is_template() => {
                let message = format!("`{timer}` is a template; only its instances can be managed");
                invalid.push(Invalid::new(message));
            }
            Ok(_) => {}
        }
        self.validate_unit(invalid);
        self.validate_command(invalid);
        let lines = [
            ("time", Some(&self.time)),
            ("description", self.description.as_ref()),
        ];
        for (parameter, text) in lines {
            if text.is_some_and(|text| text.contains(char::is_control)) {
                invalid.push(Invalid::parameter(parameter, "must be one line of plain text"));
            }
        }
        let spans = [
            ("accuracysec", &self.accuracysec),
            ("randomizeddelaysec", &self.randomizeddelaysec),
        ];
        for (parameter, span) in spans {
            if !span.is_empty()
                && let Some(why) = times::refused_span(span)
            {
                invalid.push(Invalid::parameter(parameter, why));
            }
        }
        self.validate_time(invalid);
        self.validate_environment(invalid);
        for (trigger, time) in &self.triggers {
            if let Some(why) = refused_trigger(trigger, time) {
                invalid.push(Invalid::parameter("triggers", why));
            }
        }
    }

    fn doubt(name: &str, parameters: &Parameters, invalid: &mut Vec<Invalid>) {
        let text = |name| {
            parameters
                .get(name)
                .and_then(|value| value.unmarked().as_str()?.as_str().map(str::to_owned))
        };
        let is_there = text("state").is_none_or(|state| state != "absent");
        if let Some(trigger) = text("trigger").filter(|trigger| AFTER_THE_UNIT.contains(&trigger.as_str()))
            && is_there
            && parameters.get("triggers").is_none()
        {
            let message = format!(
                "`{trigger}` counts from a run of the unit, so a unit that did not run since the start of the machine never starts"
            );
            let help = "write `triggers => {\"OnBootSec\" => \"5min\",},` for the first run";
            invalid.push(Invalid::doubt(Doubt::Meaning, "trigger", message).help(help));
        }
        if let Some(stem) = name.strip_suffix(".timer") {
            let message = format!("the timer is `{name}.timer`: the name is written without `.timer`");
            let doubt = Invalid {
                doubt: Some(Doubt::Meaning),
                ..Invalid::new(message)
            };
            invalid.push(doubt.help(format!("write `{stem}`")));
        }
    }

    fn identities(&self) -> Vec<Identity> {
        let file = |path: AbsolutePath| FILE.identity(path.cleaned().as_bytes());
        let mut identities: Vec<Identity> = self.timer_file().into_iter().map(file).collect();
        if self.command.is_some() {
            // Whoever manages that service needs its unit file, and so comes after this and not before.
            identities.extend(self.service_file().map(file));
        } else {
            identities.push(of_service_manager(&TIMER_UNIT, self.session, &self.starts()));
        }
        identities
    }

    fn wanted(&self) -> Vec<Wanted> {
        let accounts = Wanted::first_of_each(Account::identities(&self.user, ""));
        let directory = self.cwd.iter().map(enclosing::wanted_in);
        std::iter::once(accounts).chain(directory).collect()
    }

    fn watches(&self) -> Vec<Watch> {
        let Ok(timer) = self.timer() else {
            return Vec::new();
        };
        // What is changed beside the file changes the schedule as well.
        let drop_ins = self.drop_in_directories(&timer);
        let drop_ins = drop_ins
            .into_iter()
            .filter_map(|path| AbsolutePath::new(path).ok());
        let watch = |path, depth| Watch::Path {
            path,
            depth,
            follow: Follow::Target,
        };
        let service = self.service_file();
        let files = self.timer_file().into_iter().chain(service);
        let mut watches: Vec<Watch> = files.map(|path| watch(path, Depth::Entry)).collect();
        watches.extend(drop_ins.map(|path| watch(path, Depth::Children)));
        let session = self.session;
        watches.push(Watch::hub(move |watcher| {
            unit_control::watch(session, &timer, watcher)
        }));
        watches
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let manager = unit_control::manager(apply.handle(), self.session)?;
        run::run(self, manager, apply).await
    }
}

impl Cron {
    fn validate_unit(&self, invalid: &mut Vec<Invalid>) {
        if self.unit.is_empty() {
            return;
        }
        if !self.unit.contains('.') {
            let message = format!("`{}` does not say what sort of unit it is", self.unit);
            let help = format!("write `{}.service`", self.unit);
            invalid.push(Invalid::parameter("unit", message).help(help));
            return;
        }
        match UnitName::new(self.unit.clone()) {
            Err(error) => invalid.push(Invalid::parameter("unit", error.to_string())),
            Ok(unit) if unit.is_template() => {
                let message = format!("`{unit}` is a template, of which only instances can be started");
                invalid.push(Invalid::parameter("unit", message));
            }
            Ok(_) if self.unit.ends_with(".timer") => {
                invalid.push(Invalid::parameter("unit", "a timer cannot start a timer"));
            }
            Ok(_) => {}
        }
    }

    fn validate_command(&self, invalid: &mut Vec<Invalid>) {
        let Some(command) = &self.command else { return };
        let own = format!("{}.service", self.name);
        if !self.unit.is_empty() && self.unit != own {
            let message = format!("with `command` the unit that is started is `{own}`");
            invalid.push(Invalid::parameter("unit", message).help("leave `unit` out"));
        }
        // In front of the path systemd has signs of its own.
        let path = command.trim_start_matches(['@', '-', ':', '+', '!', '|']);
        let refused = if command.trim().is_empty() {
            "must not be empty"
        } else if command.contains(char::is_control) {
            "must be one line of plain text"
        } else if command.ends_with('\\') {
            "must not end in a backslash, which would take the next line in"
        } else if !path.starts_with(['/', '"', '\'', '%']) {
            "must begin with the absolute path of a program"
        } else {
            return;
        };
        let help = "a line of the shell is written `/bin/sh -c 'a | b'`";
        invalid.push(Invalid::parameter("command", refused).help(help));
    }

    fn validate_time(&self, invalid: &mut Vec<Invalid>) {
        let trigger = match *self.trigger {
            Some(trigger) => trigger,
            None if self.state == Presence::Absent => return,
            None => {
                let message = "`trigger` must be set: it says what `time` means";
                let help = "write `trigger => \"OnCalendar\",` for times of the day";
                invalid.push(Invalid::parameter("trigger", message).help(help));
                return;
            }
        };
        if self.time.trim().is_empty() {
            let example = match trigger {
                Trigger::Calendar => "write `time => \"daily\",`, for example",
                _ => "write `time => \"15min\",`, for example",
            };
            invalid.push(Invalid::parameter("time", "`time` must be set").help(example));
            return;
        }
        // Specifiers are replaced by systemd.
        if self.time.contains('%') {
            return;
        }
        let refused = match trigger {
            Trigger::Calendar => times::refused_event(&self.time),
            _ => times::refused_span(&self.time),
        };
        let Some(why) = refused else { return };
        let is_other = match trigger {
            Trigger::Calendar => times::refused_span(&self.time).is_none(),
            _ => times::refused_event(&self.time).is_none(),
        };
        let help = match (is_other, trigger) {
            (true, Trigger::Calendar) => {
                "it is a span of time: for `OnActiveSec`, `OnBootSec` and the other triggers that end in `Sec`"
            }
            (true, _) => "it is a calendar event: for `trigger => \"OnCalendar\"`",
            (false, _) => {
                "systemd.time(7) says how they are written; `systemd-analyze calendar` and `timespan` try them"
            }
        };
        invalid.push(Invalid::parameter("time", why).help(help));
    }

    fn validate_environment(&self, invalid: &mut Vec<Invalid>) {
        let set = [
            ("user", !self.user.is_empty()),
            ("cwd", self.cwd.is_some()),
            ("environment", !self.environment.is_empty()),
        ];
        if self.command.is_none() && self.state == Presence::Exists {
            for (parameter, _) in set.into_iter().filter(|(_, is_set)| *is_set) {
                let message = "has no effect without `command`: the unit that the timer starts decides it";
                invalid.push(Invalid::parameter(parameter, message));
            }
        }
        if self.session && !self.user.is_empty() {
            let message = "a timer of our own user runs commands as that user";
            invalid.push(Invalid::parameter("user", message));
        }
        if self
            .user
            .contains(|sign: char| sign.is_whitespace() || sign.is_control())
        {
            let message = format!("`{}` is not the name of a user", self.user);
            invalid.push(Invalid::parameter("user", message));
        }
        for (name, value) in &self.environment {
            let is_name = !name.is_empty()
                && !name.starts_with(|first: char| first.is_ascii_digit())
                && name
                    .chars()
                    .all(|sign| sign == '_' || sign.is_ascii_alphanumeric());
            if !is_name {
                let message = format!("`{name}` is not the name of a variable");
                invalid.push(Invalid::parameter("environment", message));
            } else if value.contains(char::is_control) {
                let message = format!("the value of `{name}` must be one line of plain text");
                invalid.push(Invalid::parameter("environment", message));
            }
        }
    }

    fn timer(&self) -> Result<UnitName, setpoint_host::systemd::InvalidUnitName> {
        UnitName::new(format!("{}.timer", self.name))
    }

    /// The unit that it starts.
    fn starts(&self) -> String {
        match self.unit.as_str() {
            "" => format!("{}.service", self.name),
            unit => unit.to_owned(),
        }
    }

    /// A file of the directory of unit files; none if it is that of our own user and there is no home.
    fn file(&self, name: &str) -> Option<AbsolutePath> {
        let directory = match self.session {
            true => own_unit_directory()?,
            false => DIRECTORY.into(),
        };
        AbsolutePath::new(directory.join(name)).ok()
    }

    fn timer_file(&self) -> Option<AbsolutePath> {
        self.file(&format!("{}.timer", self.name))
    }

    fn service_file(&self) -> Option<AbsolutePath> {
        self.file(&format!("{}.service", self.name))
    }

    /// Where people put files that change the timer, the most important directory first. Each ends in a slash: it is a directory, or is not there.
    fn drop_in_directories(&self, timer: &UnitName) -> Vec<PathBuf> {
        let bases: Vec<PathBuf> = match self.session {
            true => own_unit_directory()
                .into_iter()
                .chain([PathBuf::from(DIRECTORY_OF_USERS)])
                .collect(),
            false => vec![DIRECTORY.into(), RUNTIME_DIRECTORY.into()],
        };
        let directories = bases.into_iter().map(|base| base.join(format!("{timer}.d/")));
        directories.collect()
    }

    /// The unit file of the timer.
    fn timer_text(&self) -> String {
        let mut text = String::new();
        let description = match &self.description {
            Some(description) => description.as_str(),
            None => "timer generated by Setpoint",
        };
        if !description.is_empty() {
            text.push_str(&format!("[Unit]\nDescription={description}\n\n"));
        }
        text.push_str("[Timer]\n");
        let mut line = |key: &str, value: &str| {
            if !value.is_empty() {
                text.push_str(&format!("{key}={value}\n"));
            }
        };
        line(self.trigger.map_or("OnCalendar", Trigger::word), &self.time);
        for (trigger, time) in &self.triggers {
            line(trigger, time);
        }
        line("AccuracySec", &self.accuracysec);
        line("RandomizedDelaySec", &self.randomizeddelaysec);
        line("Unit", &self.unit);
        line("Persistent", if self.persistent { "true" } else { "" });
        line("WakeSystem", if self.wakesystem { "true" } else { "" });
        line(
            "RemainAfterElapse",
            if self.remainafterelapse { "" } else { "false" },
        );
        text.push_str("\n[Install]\nWantedBy=timers.target\n");
        text
    }

    /// The unit file of the service that runs a command.
    fn service_text(&self, command: &str) -> String {
        let mut text = format!(
            "[Unit]\nDescription={}, {GENERATED}\n\n[Service]\nType=oneshot\nExecStart={command}\n",
            self.name
        );
        if !self.user.is_empty() {
            text.push_str(&format!("User={}\n", self.user));
        }
        if let Some(directory) = &*self.cwd {
            let directory = directory.to_string().replace('%', "%%");
            text.push_str(&format!("WorkingDirectory={directory}\n"));
        }
        for (name, value) in &self.environment {
            let value = value
                .replace('\\', "\\\\")
                .replace('"', "\\\"")
                .replace('%', "%%");
            text.push_str(&format!("Environment=\"{name}={value}\"\n"));
        }
        text
    }
}

/// The words in the description of a service that tell that this kind has written it.
const GENERATED: &str = "started by a timer generated by Setpoint";

/// Triggers that count from a run of the unit.
const AFTER_THE_UNIT: [&str; 2] = ["OnUnitActiveSec", "OnUnitInactiveSec"];

/// Why a further trigger is refused.
fn refused_trigger(trigger: &str, time: &str) -> Option<String> {
    let Some((_, known)) = Trigger::words().find(|(word, _)| *word == trigger) else {
        let words: Vec<&str> = Trigger::words().map(|(word, _)| word).collect();
        return Some(format!(
            "`{trigger}` is not a trigger: there are {}",
            words.join(", ")
        ));
    };
    let refused = match known {
        _ if time.trim().is_empty() => Some("the time is missing".to_owned()),
        _ if time.contains(char::is_control) => Some("the time must be one line of plain text".to_owned()),
        _ if time.contains('%') => None,
        Trigger::Calendar => times::refused_event(time),
        _ => times::refused_span(time),
    };
    refused.map(|why| format!("`{trigger}`: {why}"))
}
