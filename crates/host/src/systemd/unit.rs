//! A unit: its name, and how the manager says that it is.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;

use zbus::{OwnedVariant, Variant};

/// The longest name of a unit, in bytes.
const LONGEST: usize = 255;

/// The name of a unit with its suffix: `nginx.service`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UnitName(String);

/// A text that is not the name of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidUnitName {
    /// Longer than the manager takes.
    #[error("the name of a unit has at most {LONGEST} bytes with its suffix")]
    TooLong,
    /// Something that is in no name.
    #[error("the name of a unit consists of ASCII letters, digits and `:-_.\\@`: there is {0:?} in it")]
    Character(char),
    /// Nothing before the suffix or an `@`.
    #[error("the name of a unit has something before its suffix and before an `@`")]
    Empty,
}

impl UnitName {
    /// The service of this name, which is written without its suffix.
    ///
    /// # Errors
    /// When no unit can have the name.
    pub fn service(name: &str) -> Result<UnitName, InvalidUnitName> {
        UnitName::new(format!("{name}.service"))
    }

    /// The unit of this name.
    ///
    /// # Errors
    /// When no unit can have the name.
    pub fn new(name: String) -> Result<UnitName, InvalidUnitName> {
        let fits = |c: &char| c.is_ascii_alphanumeric() || ":-_.\\@".contains(*c);
        if let Some(strange) = name.chars().find(|c| !fits(c)) {
            return Err(InvalidUnitName::Character(strange));
        }
        if name.len() > LONGEST {
            return Err(InvalidUnitName::TooLong);
        }
        let stem = name.rsplit_once('.').map_or("", |(stem, _)| stem);
        if stem.is_empty() || stem.starts_with('@') {
            return Err(InvalidUnitName::Empty);
        }
        Ok(UnitName(name))
    }

    /// The service that this process belongs to, by its control group. None outside of services.
    #[must_use]
    pub fn of_this_process() -> Option<UnitName> {
        let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
        let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
        let service = path.rsplit('/').find(|part| part.ends_with(".service"))?;
        UnitName::new(service.to_owned()).ok()
    }

    /// The unit for a path, with this suffix: `srv-data.mount`.
    ///
    /// # Errors
    /// When the name would be longer than the manager takes.
    pub fn of_path(path: &str, suffix: &str) -> Result<UnitName, InvalidUnitName> {
        let trimmed = path.trim_matches('/');
        let mut name = String::new();
        if trimmed.is_empty() {
            name.push('-');
        }
        for (at, byte) in trimmed.bytes().enumerate() {
            match byte {
                b'/' => name.push('-'),
                b'.' if at == 0 => name.push_str("\\x2e"),
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b':' | b'_' | b'.' => name.push(char::from(byte)),
                other => name.push_str(&format!("\\x{other:02x}")),
            }
        }
        UnitName::new(format!("{name}.{suffix}"))
    }

    /// As text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The template that it is an instance of: `getty@.service` of `getty@tty1.service`.
    #[must_use]
    pub fn template(&self) -> Option<UnitName> {
        let (stem, suffix) = self.0.rsplit_once('.')?;
        let (template, instance) = stem.split_once('@')?;
        (!instance.is_empty()).then(|| UnitName(format!("{template}@.{suffix}")))
    }

    /// Whether it is a template, of which only instances can be started.
    #[must_use]
    pub fn is_template(&self) -> bool {
        self.0
            .rsplit_once('.')
            .is_some_and(|(stem, _)| stem.ends_with('@'))
    }

    /// The path of its object on the bus.
    pub(super) fn object_path(&self) -> String {
        object_path(&self.0)
    }
}

/// The path of the object of a unit on the bus.
pub(super) fn object_path(name: &str) -> String {
    let mut path = String::from(super::UNIT_PATHS);
    path.push('/');
    for (at, byte) in name.bytes().enumerate() {
        // systemd escapes what is neither letter nor digit, and a digit at the beginning.
        if byte.is_ascii_alphabetic() || (at > 0 && byte.is_ascii_digit()) {
            path.push(char::from(byte));
        } else {
            path.push_str(&format!("_{byte:02x}"));
        }
    }
    path
}

impl fmt::Display for UnitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether a unit runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ActiveState {
    /// It runs, or did what it is for and is kept as done.
    Active,
    /// It runs and reads its configuration again.
    Reloading,
    /// It runs and its file systems are made anew.
    Refreshing,
    /// It does not run.
    Inactive,
    /// It does not run because something went wrong.
    Failed,
    /// On its way to running; also while it waits to be restarted.
    Activating,
    /// On its way to not running.
    Deactivating,
    /// Not running, and being looked after.
    Maintenance,
    /// What this version of systemd has and we do not know.
    Other(String),
}

impl ActiveState {
    pub(super) fn parse(text: &str) -> ActiveState {
        match text {
            "active" => ActiveState::Active,
            "reloading" => ActiveState::Reloading,
            "refreshing" => ActiveState::Refreshing,
            "inactive" => ActiveState::Inactive,
            "failed" => ActiveState::Failed,
            "activating" => ActiveState::Activating,
            "deactivating" => ActiveState::Deactivating,
            "maintenance" => ActiveState::Maintenance,
            other => ActiveState::Other(other.to_owned()),
        }
    }

    /// Whether it runs.
    #[must_use]
    pub fn is_running(&self) -> bool {
        matches!(
            self,
            ActiveState::Active | ActiveState::Reloading | ActiveState::Refreshing
        )
    }

    /// What it stays until something happens; none while it is on its way to somewhere.
    pub(super) fn settled(&self) -> Option<Settled> {
        match self {
            running if running.is_running() => Some(Settled::Running),
            ActiveState::Failed => Some(Settled::Failed),
            ActiveState::Activating | ActiveState::Deactivating => None,
            _ => Some(Settled::Stopped),
        }
    }

    /// In the words of systemd.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            ActiveState::Active => "active",
            ActiveState::Reloading => "reloading",
            ActiveState::Refreshing => "refreshing",
            ActiveState::Inactive => "inactive",
            ActiveState::Failed => "failed",
            ActiveState::Activating => "activating",
            ActiveState::Deactivating => "deactivating",
            ActiveState::Maintenance => "maintenance",
            ActiveState::Other(text) => text,
        }
    }
}

/// A state that is left only when something happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Settled {
    Running,
    Stopped,
    Failed,
}

/// How a unit is.
#[derive(Debug, Clone)]
pub struct Unit {
    /// Its own name, which is another one than that asked for if that is an alias.
    pub id: String,
    /// `loaded`, `not-found`, `bad-setting`, `error`, `masked`, …
    pub load_state: String,
    /// Why it could not be loaded; empty if it could.
    pub load_error: String,
    /// Whether it runs.
    pub active_state: ActiveState,
    /// The same, finer and by the sort of unit: `auto-restart`.
    pub sub_state: String,
    /// Whether it is enabled: `enabled`, `static`, `masked`, …; empty if it has no file.
    pub file_state: String,
    /// Whether its files were changed since the manager has read them. Of directories that were made since then the manager does not know.
    pub needs_reload: bool,
    /// The file that the manager has read; none if the unit has none.
    pub file: Option<PathBuf>,
    /// The files beside its own one that the manager has read, and that change it.
    pub drop_ins: Vec<PathBuf>,
    /// The number of the job that waits or is done for it.
    pub job: Option<u32>,
    /// Whether what its file makes a condition held when it was started last, as far as that is known.
    pub conditions_held: bool,
    /// Whether it knows how to read its configuration again.
    pub can_reload: bool,
}

impl Unit {
    pub(super) fn read(properties: HashMap<String, OwnedVariant>) -> Unit {
        let text = |name: &str| match properties.get(name).map(|value| &**value) {
            Some(Variant::Str(text)) => text.as_str().to_owned(),
            _ => String::new(),
        };
        let truth = |name: &str| {
            matches!(
                properties.get(name).map(|value| &**value),
                Some(Variant::Bool(true))
            )
        };
        let number = |name: &str| match properties.get(name).map(|value| &**value) {
            Some(Variant::U64(number)) => *number,
            _ => 0,
        };
        // Pairs: the number of a job and its path, the name of an error and its text.
        let pair = |name: &str| match properties.get(name).map(|value| &**value) {
            Some(Variant::Structure(pair)) => pair.fields().to_vec(),
            _ => Vec::new(),
        };
        let job = match pair("Job").first() {
            Some(Variant::U32(id)) if *id != 0 => Some(*id),
            _ => None,
        };
        let load_error = match pair("LoadError").get(1) {
            Some(Variant::Str(text)) => text.as_str().trim_end_matches('.').to_owned(),
            _ => String::new(),
        };
        Unit {
            id: text("Id"),
            load_state: text("LoadState"),
            load_error,
            active_state: ActiveState::parse(&text("ActiveState")),
            sub_state: text("SubState"),
            file_state: text("UnitFileState"),
            needs_reload: truth("NeedDaemonReload"),
            file: Some(PathBuf::from(text("FragmentPath"))).filter(|path| !path.as_os_str().is_empty()),
            drop_ins: properties
                .get("DropInPaths")
                .map(|value| paths(value))
                .unwrap_or_default(),
            job,
            // Of a unit that was not started since it was loaded nothing is known.
            conditions_held: truth("ConditionResult") || number("ConditionTimestamp") == 0,
            can_reload: truth("CanReload"),
        }
    }

    /// Whether the manager has found it.
    #[must_use]
    pub fn is_found(&self) -> bool {
        self.load_state != "not-found"
    }

    /// Whether it was made impossible to start it.
    #[must_use]
    pub fn is_masked(&self) -> bool {
        self.load_state == "masked" || self.file_state.starts_with("masked")
    }

    /// How it runs, in the words of systemd: `activating (auto-restart)`.
    #[must_use]
    pub fn running(&self) -> String {
        format!("{} ({})", self.active_state.as_str(), self.sub_state)
    }
}

/// The paths of a property that is a list of them.
pub(super) fn paths(value: &Variant<'_>) -> Vec<PathBuf> {
    let Variant::Array(paths) = value else {
        return Vec::new();
    };
    let paths = paths.iter().filter_map(|path| match path {
        Variant::Str(path) => Some(PathBuf::from(path.as_str())),
        _ => None,
    });
    paths.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_for_the_bus_as_systemd_does() {
        let path = |name: &str| UnitName::service(name).unwrap().object_path();
        let base = "/org/freedesktop/systemd1/unit/";
        assert_eq!(path("nginx"), format!("{base}nginx_2eservice"));
        assert_eq!(path("getty@tty1"), format!("{base}getty_40tty1_2eservice"));
        assert_eq!(path("9p-x_y"), format!("{base}_39p_2dx_5fy_2eservice"));
    }

    #[test]
    fn units_of_paths_are_named_as_systemd_escapes_them() {
        let unit = |path: &str| UnitName::of_path(path, "mount").unwrap().as_str().to_owned();
        assert_eq!(unit("/"), "-.mount");
        assert_eq!(unit("/srv/data"), "srv-data.mount");
        assert_eq!(unit("/srv/a-b c"), "srv-a\\x2db\\x20c.mount");
        assert_eq!(unit("/.snapshots/v1.2"), "\\x2esnapshots-v1.2.mount");
    }

    #[test]
    fn what_is_no_name_is_refused() {
        let refused = |name: &str| UnitName::service(name).unwrap_err();
        assert_eq!(refused("a b"), InvalidUnitName::Character(' '));
        assert_eq!(refused("a/b"), InvalidUnitName::Character('/'));
        assert_eq!(refused("ä"), InvalidUnitName::Character('ä'));
        assert_eq!(refused(""), InvalidUnitName::Empty);
        assert_eq!(refused("@x"), InvalidUnitName::Empty);
        assert_eq!(refused(&"a".repeat(248)), InvalidUnitName::TooLong);
        assert!(UnitName::service(&"a".repeat(247)).is_ok());
    }

    #[test]
    fn instances_have_a_template() {
        let template = |name: &str| UnitName::service(name).unwrap().template();
        assert_eq!(template("getty@tty1").unwrap().as_str(), "getty@.service");
        assert_eq!(template("getty"), None);
        assert_eq!(template("getty@"), None);
        assert!(UnitName::service("getty@").unwrap().is_template());
    }
}
