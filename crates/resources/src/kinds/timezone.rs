//! The `timezone` kind: the time zone of the machine. Not one of mgmt's kinds.

use setpoint_diagnostics::did_you_mean;
use setpoint_engine::{Apply, Attempting, Claim, DriftValue, Failure, Resource, Stake, Watch, async_trait};
use setpoint_graph::{Invalid, MetaParameters};
use setpoint_host::files::{AbsolutePath, Entry, Replace};
use setpoint_host::watch::{Depth, Follow};

use crate::enclosing;
use crate::text_lines::read;

/// The link that names the time zone.
const LINK: &str = "/etc/localtime";

/// The file in which Debian keeps the name, too.
const NAME: &str = "/etc/timezone";

/// The directory of the time zones.
const ZONES: &str = "/usr/share/zoneinfo";

/// The time zone of the machine.
///
/// Programs that run read it when they start. So notify services that must know it at once.
///
/// ```mcl
/// timezone "Europe/Berlin" {}
/// ```
#[derive(Debug, Resource)]
#[resource(kind = "timezone", receives)]
pub(crate) struct Timezone {
    /// The time zone, such as `Europe/Berlin`. Unset: the resource's name.
    #[param(default_from = "name")]
    zone: String,
}

#[async_trait]
impl Resource for Timezone {
    fn validate(&self, _: &MetaParameters, invalid: &mut Vec<Invalid>) {
        let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b"_+-/".contains(&byte);
        let is_name = !self.zone.starts_with('/') && self.zone.split('/').all(|part| !part.is_empty());
        if !is_name || !self.zone.bytes().all(is_sign) {
            let message = format!("`{}` is not the name of a time zone", self.zone);
            invalid.push(Invalid::parameter("zone", message).help("write it as `Europe/Berlin`"));
        }
    }

    fn claims(&self) -> Vec<Claim> {
        vec![Claim {
            place: enclosing::file(&absolute(LINK)),
            stake: Stake::value(self.zone.as_bytes()),
        }]
    }

    fn watches(&self) -> Vec<Watch> {
        let watched = |path: &str, follow: Follow| Watch::Path {
            path: absolute(path),
            depth: Depth::Entry,
            follow,
        };
        vec![watched(LINK, Follow::Link), watched(NAME, Follow::Target)]
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let link = absolute(LINK);
        let target = Entry::at(&link).and_then(|entry| match entry.stat()? {
            Some(stat) if stat.is_link() => entry.read_link(),
            _ => Ok(None),
        });
        let target = target.attempting("read", &link)?;
        let is = target.as_ref().map(|target| {
            let target = target.to_string_lossy();
            let zone = target.split_once("zoneinfo/").map(|(_, zone)| zone.to_owned());
            zone.unwrap_or_else(|| target.into_owned())
        });
        let is_right_link = is.as_ref() == Some(&self.zone);
        let name = absolute(NAME);
        // Other distributions have no such file.
        let named = read(&name)?.map(|text| String::from_utf8_lossy(&text).trim().to_owned());
        let is_right_name = named.as_ref().is_none_or(|named| *named == self.zone);
        if is_right_link && is_right_name {
            return Ok(());
        }
        self.must_exist()?;
        let shown = |zone: &str| DriftValue::from(format!("zoneinfo/{zone}"));
        if !is_right_link && apply.drift("link", is.as_deref().map(shown), shown(&self.zone)) {
            let relative = format!("..{ZONES}/{}", self.zone);
            apply.replace_at_once(Replace::link(link, relative))?;
        }
        if !is_right_name && apply.drift("timezone", named, self.zone.as_str()) {
            apply.replace_at_once(Replace::bytes(name, format!("{}\n", self.zone).into_bytes()))?;
        }
        Ok(())
    }
}

impl Timezone {
    /// Refuses a time zone that the machine does not have.
    fn must_exist(&self) -> Result<(), Failure> {
        let path = absolute(&format!("{ZONES}/{}", self.zone));
        let found = Entry::at(&path)
            .and_then(|entry| entry.follow())
            .and_then(|entry| entry.stat());
        match found {
            Ok(Some(stat)) if stat.is_regular() => return Ok(()),
            Err(error) if !error.is_not_found() => return Err(error.into()),
            _ => {}
        }
        let table = read(&absolute(&format!("{ZONES}/zone1970.tab")))?.unwrap_or_default();
        let table = String::from_utf8_lossy(&table).into_owned();
        let lines = table.lines().filter(|line| !line.starts_with('#'));
        let known: Vec<&str> = lines.filter_map(|line| line.split('\t').nth(2)).collect();
        let hint = match known.is_empty() {
            true => "; the package `tzdata` brings them".to_owned(),
            false => did_you_mean(&self.zone, known)
                .map(|hint| format!("; {hint}"))
                .unwrap_or_default(),
        };
        let why = format!("there is no time zone `{}` on this machine{hint}", self.zone);
        Err(Failure::new("set the time zone").because(why))
    }
}

fn absolute(path: &str) -> AbsolutePath {
    AbsolutePath::new(path).expect("it begins with a slash")
}
