//! The `fwattr` kind: a setting of the firmware, through the kernel's class of firmware attributes (Documentation/ABI/testing/sysfs-class-firmware-attributes).
//!
//! What a setting can be is asked of the machine in each run, and not when the program is checked: the module that knows it may be loaded by an earlier resource.
//! Lenovo's firmware takes only so many changes before the machine is started anew; they are counted for this process.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use setpoint_engine::{Apply, Attempting, Failure, Level, Resource, Watch, async_trait};
use setpoint_graph::{Invalid, MetaParameters};
use setpoint_host::files::{AbsolutePath, Directory, Entry};

/// A setting of the firmware (BIOS), by the name that the firmware gives it.
///
/// It is not needed to know the driver where there is only one. Most settings take effect when the machine is started anew.
///
/// ```mcl
/// fwattr "WakeOnLAN" {
///     value => "Disable",
/// }
/// ```
///
/// On machines of several makers, some of which lack it:
///
/// ```mcl
/// fwattr "secure boot" {
///     driver => "thinklmi",
///     key => "SecureBoot",
///     value => "Enable",
///     skip => true,
/// }
/// ```
#[derive(Debug, Resource)]
#[resource(kind = "fwattr", reads_back)]
pub(crate) struct Fwattr {
    /// The driver, such as `thinklmi` or `dell-wmi-sysman`. Unset: the only one that there is.
    driver: String,
    /// The setting, as the firmware calls it. Unset: the resource's name.
    key: String,
    /// Its value, as the kernel prints it.
    value: String,
    /// Whether the value is compared with what the firmware says it can be, before it is written.
    #[param(default = true)]
    check: bool,
    /// Whether only this very value will do, and none that means the same on some models.
    strict: bool,
    /// Whether nothing is done where there is no such setting, instead of failing.
    skip: bool,
    #[name]
    name: String,
}

/// Where the drivers are.
const CLASS: &str = "/sys/class/firmware-attributes";

/// The driver of Lenovo's, and how many changes its firmware takes.
const THINKLMI: &str = "thinklmi";
const MOST_CHANGES: u32 = 48;

/// Values that mean the same on some models of Lenovo's: the setting, the value, and what stands for it.
const SUBSTITUTES: [(&str, &str, &[&str]); 11] = [
    ("SecureBoot", "Enabled", &["Enable"]),
    ("SecureBoot", "Enable", &["Enabled"]),
    ("SecureBoot", "Disabled", &["Disable"]),
    ("SecureBoot", "Disable", &["Disabled"]),
    ("KeyboardLayout", "English", &["English_US", "English_UK"]),
    (
        "KeyboardLayout",
        "French",
        &["CanadianFrenchMultilingual", "CanadianFrench"],
    ),
    ("KeyboardLayout", "Chinese", &["TraditionalChinese"]),
    ("KeyboardLayout", "English_US", &["English"]),
    ("KeyboardLayout", "CanadianFrenchMultilingual", &["French"]),
    ("KeyboardLayout", "CanadianFrench", &["French"]),
    ("KeyboardLayout", "TraditionalChinese", &["Chinese"]),
];

/// How many settings this process has changed, by driver.
static CHANGES: Mutex<BTreeMap<String, u32>> = Mutex::new(BTreeMap::new());

#[async_trait]
impl Resource for Fwattr {
    fn validate(&self, _: &MetaParameters, invalid: &mut Vec<Invalid>) {
        for (parameter, text) in [("driver", self.driver.as_str()), ("key", self.key())] {
            if text.contains('/') || text == "." || text == ".." {
                let message = format!("`{text}` must have no slash");
                invalid.push(Invalid::parameter(parameter, message));
            }
        }
        if self.value.contains('\n') {
            invalid.push(Invalid::parameter("value", "must be one line"));
        }
    }

    fn watches(&self) -> Vec<Watch> {
        let place = self.place().ok().flatten();
        let file = place.map(|(_, attribute)| attribute.join("current_value"));
        file.into_iter().map(Watch::path).collect()
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let Some((driver, attribute)) = self.place()? else {
            apply.log(
                Level::Warning,
                format!(
                    "this machine has no setting `{}` of the firmware; nothing is done",
                    self.key()
                ),
            );
            return Ok(());
        };
        let attempted = "read the setting of the firmware";
        let Some(is) = text(&attribute, "current_value").attempting(attempted, self.key())? else {
            let why = format!("the driver {driver} has none of this name");
            return Err(Failure::new(attempted).on(self.key()).because(why));
        };
        let value = match self.check {
            true => self.fitting(&driver, &attribute)?,
            false => self.value.clone(),
        };
        if is != value && apply.drift("value", is, value.as_str()) {
            self.write(&driver, &attribute, &value)?;
        }
        let pending = text(&attribute_directory(&driver)?, "pending_reboot");
        if apply.may_repair() && matches!(pending, Ok(Some(pending)) if pending == "1") {
            apply.log(
                Level::Warning,
                "settings of the firmware take effect when the machine is started anew",
            );
        }
        Ok(())
    }
}

impl Fwattr {
    fn key(&self) -> &str {
        match self.key.is_empty() {
            true => &self.name,
            false => &self.key,
        }
    }

    /// The driver and the directory of the setting; none if there is no such thing and that is allowed.
    fn place(&self) -> Result<Option<(String, AbsolutePath)>, Failure> {
        let attempted = "find the driver of the firmware's settings";
        let drivers = drivers().attempting(attempted, CLASS)?;
        let driver = match self.driver.as_str() {
            "" => match drivers.as_slice() {
                [driver] => Some(driver.clone()),
                [] => None,
                several => {
                    let why = format!("there are several: {}; `driver` says which", several.join(", "));
                    return Err(Failure::new(attempted).because(why));
                }
            },
            wanted => drivers.iter().find(|driver| *driver == wanted).cloned(),
        };
        let Some(driver) = driver else {
            if self.skip {
                return Ok(None);
            }
            let why = match (self.driver.as_str(), drivers.as_slice()) {
                (_, []) => "this machine has none: its module is not loaded, or its firmware has no settings that Linux knows".to_owned(),
                (wanted, others) => format!("there is no `{wanted}`, only {}", others.join(", ")),
            };
            return Err(Failure::new(attempted).because(why));
        };
        let attribute = attribute_directory(&driver)?.join(self.key());
        let exists = text(&attribute, "current_value")
            .attempting("look at", &attribute)?
            .is_some();
        Ok((exists || !self.skip).then_some((driver, attribute)))
    }

    /// The value to be written, when the firmware takes it.
    fn fitting(&self, driver: &str, attribute: &AbsolutePath) -> Result<String, Failure> {
        let attempted = "check the value of";
        let refused = |why: String| Failure::new(attempted).on(self.key()).because(why);
        let read = |name: &str| text(attribute, name).attempting("look at", attribute);
        let number = |name: &str| -> Result<Option<i64>, Failure> {
            Ok(read(name)?.and_then(|text| text.parse().ok()))
        };
        let Some(sort) = read("type")? else {
            return match self.skip {
                true => Ok(self.value.clone()),
                false => Err(refused(
                    "the driver does not say of what type it is; `check => false` writes it all the same"
                        .to_owned(),
                )),
            };
        };
        match sort.as_str() {
            "enumeration" => {
                let possible = read("possible_values")?.unwrap_or_default();
                let possible: Vec<&str> = possible
                    .split(';')
                    .map(str::trim)
                    .filter(|value| !value.is_empty())
                    .collect();
                let mut wanted = vec![self.value.as_str()];
                if !self.strict && driver == THINKLMI {
                    let same = SUBSTITUTES
                        .iter()
                        .filter(|(key, value, _)| *key == self.key() && *value == self.value);
                    wanted.extend(same.flat_map(|(_, _, others)| others.iter().copied()));
                }
                let found = wanted.into_iter().find(|value| possible.contains(value));
                found
                    .map(ToOwned::to_owned)
                    .ok_or_else(|| refused(format!("`{}` is none of {}", self.value, possible.join(", "))))
            }
            "integer" => {
                let value: i64 = self
                    .value
                    .parse()
                    .map_err(|_| refused(format!("`{}` is no whole number", self.value)))?;
                let (least, most) = (number("min_value")?, number("max_value")?);
                if least.is_some_and(|least| value < least) || most.is_some_and(|most| value > most) {
                    let bound =
                        |bound: Option<i64>| bound.map_or("any".to_owned(), |bound| bound.to_string());
                    return Err(refused(format!(
                        "{value} is not from {} to {}",
                        bound(least),
                        bound(most)
                    )));
                }
                if let (Some(step), Some(least)) =
                    (number("scalar_increment")?.filter(|step| *step > 0), least)
                    && (value - least) % step != 0
                {
                    return Err(refused(format!(
                        "{value} is not {least} and a multiple of {step}"
                    )));
                }
                Ok(self.value.clone())
            }
            "string" => {
                let (least, most) = (number("min_length")?, number("max_length")?);
                let length = i64::try_from(self.value.len()).unwrap_or(i64::MAX);
                if least.is_some_and(|least| length < least) || most.is_some_and(|most| length > most) {
                    return Err(refused(format!(
                        "it has {length} characters, which is not from {} to {}",
                        least.unwrap_or(0),
                        most.unwrap_or(i64::MAX)
                    )));
                }
                Ok(self.value.clone())
            }
            other => Err(refused(format!(
                "it is of the type `{other}`, which is not known here; `check => false` writes it all the same"
            ))),
        }
    }

    fn write(&self, driver: &str, attribute: &AbsolutePath, value: &str) -> Result<(), Failure> {
        let attempted = "set the firmware's";
        let failed = |why: String| Failure::new(attempted).on(self.key()).because(why);
        let mut changes = CHANGES.lock().unwrap_or_else(PoisonError::into_inner);
        let count = changes.entry(driver.to_owned()).or_default();
        if driver == THINKLMI && *count >= MOST_CHANGES {
            return Err(failed(format!(
                "it takes {MOST_CHANGES} changes, and then the machine has to be started anew"
            )));
        }
        let entry = Entry::at(&attribute.join("current_value")).attempting(attempted, self.key())?;
        let written = entry.write_parameter(format!("{value}\n").as_bytes());
        written.map_err(|error| match has_password(driver) {
            true => failed(format!("{error}: an administrator's password is set, which has to be given below `authentication/` first")),
            false => Failure::new(attempted).on(self.key()).because(error),
        })?;
        *count += 1;
        Ok(())
    }
}

/// The names of the drivers that there are, sorted.
fn drivers() -> Result<Vec<String>, setpoint_host::files::FileError> {
    let Ok(class) = AbsolutePath::new(CLASS) else {
        return Ok(Vec::new());
    };
    match Directory::open(&class).and_then(|directory| directory.list()) {
        Err(error) if error.is_not_found() => Ok(Vec::new()),
        listed => Ok(listed?
            .into_iter()
            .map(|listed| listed.name.to_string_lossy().into_owned())
            .collect()),
    }
}

fn attribute_directory(driver: &str) -> Result<AbsolutePath, Failure> {
    let path = format!("{CLASS}/{driver}/attributes");
    AbsolutePath::new(path).map_err(|error| Failure::new("use the driver").on(driver).because(error))
}

/// The text of a file, without its end of line; none if there is no such file.
fn text(directory: &AbsolutePath, name: &str) -> Result<Option<String>, setpoint_host::files::FileError> {
    match Entry::at(&directory.join(name)).and_then(|entry| entry.read()) {
        Err(error) if error.is_not_found() => Ok(None),
        bytes => bytes.map(|bytes| Some(String::from_utf8_lossy(&bytes).trim_end_matches('\n').to_owned())),
    }
}

/// Whether the firmware asks for a password before it takes settings.
fn has_password(driver: &str) -> bool {
    let Ok(place) = AbsolutePath::new(format!("{CLASS}/{driver}/authentication")) else {
        return false;
    };
    let roles = Directory::open(&place)
        .and_then(|directory| directory.list())
        .unwrap_or_default();
    let mut roles = roles.into_iter();
    roles.any(
        |role| matches!(text(&place.join(&role.name), "is_enabled"), Ok(Some(enabled)) if enabled == "1"),
    )
}
