//! The `hostname` kind: the names of the machine, through systemd-hostnamed.
//!
//! What sets them through the service or in `/etc/hostname` is heard on the bus and seen at the file; a program that tells only the kernel is seen at the kernel.
//! Where systemd does not run, or has no such service, the names are kept where that service has them (`own`).

mod own;

use crate::sorts::HOST_NAME;
use crate::system_bus::{self, buses};
use setpoint_engine::{
    Apply, Attempting, Claim, Failure, Handle, HubWatcher, Resource, Stake, Watch, Watcher, async_trait,
};
use setpoint_graph::{Invalid, MetaParameters};
use setpoint_host::bus::{Following, Link, Method, signals};
use setpoint_host::files::AbsolutePath;
use setpoint_host::kernel_hostname::KernelHostname;

const SERVICE: &str = "org.freedesktop.hostname1";
const OBJECT: &str = "/org/freedesktop/hostname1";
const STATIC: &str = "/etc/hostname";
const MACHINE_INFO: &str = "/etc/machine-info";
const KERNEL: &str = "/proc/sys/kernel/hostname";

/// It is there where systemd has started the machine (sd_booted(3)).
const SYSTEMD: &str = "/run/systemd/system";

/// What the bus says where nobody has installed a service.
const NO_SERVICE: &str = "org.freedesktop.DBus.Error.ServiceUnknown";

/// The longest host name that the kernel takes, in bytes.
const LONGEST: usize = 64;

/// The names of the machine: the static, the transient and the pretty one.
///
/// They are set through systemd-hostnamed, in the order pretty, static, transient; where it is not, in `/etc/machine-info`, `/etc/hostname` and the kernel. Each that is not written is what `hostname` says, and that is the resource's name if it is not
/// written either. An empty text leaves a name alone.
///
/// ```mcl
/// hostname "web1.example.com" {
///     pretty_hostname => "The web server",
/// }
/// ```
///
/// The static name alone:
///
/// ```mcl
/// hostname "static" {
///     static_hostname => "web1",
///     transient_hostname => "",
///     pretty_hostname => "",
/// }
/// ```
#[derive(Debug, Resource)]
#[resource(kind = "hostname", asynchronous)]
pub(crate) struct Hostname {
    /// What the three others are that are not written. Unset or empty: the resource's name.
    hostname: String,
    /// A free text, for people.
    pretty_hostname: Option<String>,
    /// What is in `/etc/hostname`, and becomes the transient one when the machine starts.
    static_hostname: Option<String>,
    /// What the kernel has. While there is a static one, systemd lets it be no other.
    transient_hostname: Option<String>,
    #[name]
    name: String,
}

/// One of the names.
struct Kept<'a> {
    /// The parameter that says it, and the field of the difference.
    parameter: &'static str,
    /// The property of the service that is it.
    property: &'static str,
    /// The method that sets it.
    method: &'static str,
    /// As it shall be.
    wanted: &'a str,
    /// The parameter that this comes from.
    source: &'static str,
}

impl Hostname {
    /// The names that are managed, in the order in which they are set.
    fn kept(&self) -> impl Iterator<Item = Kept<'_>> {
        let other = match self.hostname.as_str() {
            "" => self.name.as_str(),
            other => other,
        };
        let names = [
            (
                "pretty_hostname",
                "PrettyHostname",
                "SetPrettyHostname",
                &self.pretty_hostname,
            ),
            (
                "static_hostname",
                "StaticHostname",
                "SetStaticHostname",
                &self.static_hostname,
            ),
            (
                "transient_hostname",
                "Hostname",
                "SetHostname",
                &self.transient_hostname,
            ),
        ];
        let kept = names
            .into_iter()
            .map(move |(parameter, property, method, written)| Kept {
                parameter,
                property,
                method,
                wanted: written.as_deref().unwrap_or(other),
                source: if written.is_some() { parameter } else { "hostname" },
            });
        kept.filter(|kept| !kept.wanted.is_empty())
    }
}

#[async_trait]
impl Resource for Hostname {
    fn validate(&self, _: &MetaParameters, invalid: &mut Vec<Invalid>) {
        for kept in self.kept() {
            let wrong = match kept.parameter {
                "pretty_hostname" => kept
                    .wanted
                    .contains(char::is_control)
                    .then(|| "a pretty host name is one line of plain text".to_owned()),
                _ => why_not_a_host_name(kept.wanted),
            };
            let Some(message) = wrong else { continue };
            let own = match kept.parameter {
                "pretty_hostname" => &self.pretty_hostname,
                "static_hostname" => &self.static_hostname,
                _ => &self.transient_hostname,
            };
            // The place is where the text stands.
            let found = match (own, self.hostname.as_str()) {
                (Some(_), _) => Invalid::parameter(kept.parameter, message),
                (None, "") => Invalid::new(message).help("set `hostname` if the resource has another name"),
                (None, _) => Invalid::parameter("hostname", message),
            };
            if !invalid.contains(&found) {
                invalid.push(found);
            }
        }
        if self.kept().next().is_none() {
            let message = "no name is managed: all of them are empty";
            invalid.push(Invalid::new(message));
        }
    }

    fn claims(&self) -> Vec<Claim> {
        let claim = |kept: Kept<'_>| Claim {
            place: HOST_NAME.identity(kept.parameter.as_bytes()),
            stake: Stake::value(kept.wanted.as_bytes()),
        };
        self.kept().map(claim).collect()
    }

    fn watches(&self) -> Vec<Watch> {
        let files = [STATIC, MACHINE_INFO].into_iter();
        let mut watches: Vec<Watch> = files
            .filter_map(|file| AbsolutePath::new(file).ok())
            .map(Watch::path)
            .collect();
        if has_systemd() {
            watches.push(Watch::hub(follow_service));
        }
        if self.kept().any(|kept| kept.parameter == "transient_hostname") {
            watches.push(Watch::own(follow_kernel));
        }
        watches
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let link = link(apply.handle()).await?;
        for kept in self.kept() {
            let is = match &link {
                Some(link) => kept.read(link).await?,
                None => kept.read_own()?,
            };
            if is != kept.wanted && apply.drift_of(kept.source, kept.parameter, is, kept.wanted) {
                match &link {
                    Some(link) => kept.set(link).await?,
                    None => kept.set_own(apply).await?,
                }
            }
        }
        Ok(())
    }
}

impl Kept<'_> {
    async fn read(&self, link: &Link) -> Result<String, Failure> {
        let is = link.text_property(object(self.property)).await;
        is.attempting("ask systemd-hostnamed for", self.property)
    }

    async fn set(&self, link: &Link) -> Result<(), Failure> {
        // Nobody is there whom it could ask for a password.
        let interactive = false;
        let set = link
            .call::<()>(object(self.method), &(self.wanted, interactive))
            .await;
        set.attempting("set", self.parameter)?;
        let is = self.read(link).await?;
        if is == self.wanted {
            return Ok(());
        }
        let why = match self.parameter {
            "transient_hostname" => {
                format!(
                    "it is `{is}` all the same: while there is a static host name, that is the transient one too"
                )
            }
            _ => format!("it is `{is}` all the same"),
        };
        Err(Failure::new("set").on(self.parameter).because(why))
    }
}

/// A member of the one object of the service.
fn object(name: &str) -> Method<'_> {
    Method {
        service: SERVICE,
        path: OBJECT,
        interface: SERVICE,
        name,
    }
}

/// The way to the service; none where there is no such service.
async fn link(handle: &Handle) -> Result<Option<Link>, Failure> {
    if !has_systemd() {
        return Ok(None);
    }
    let link = buses(handle)?.system.link().await;
    let link = link.attempting("ask", "systemd-hostnamed")?;
    match link.text_property(object("StaticHostname")).await {
        Err(error) if error.is_named(NO_SERVICE) => Ok(None),
        // Whatever else is wrong is told where a name is asked for.
        _ => Ok(Some(link)),
    }
}

fn has_systemd() -> bool {
    std::path::Path::new(SYSTEMD).is_dir()
}

/// Hears what the service says.
fn follow_service(watcher: HubWatcher) -> Result<Following, Failure> {
    let rule = signals(
        SERVICE,
        OBJECT,
        "org.freedesktop.DBus.Properties",
        "PropertiesChanged",
    );
    let told = |_: &_| Some("systemd-hostnamed tells of a change");
    system_bus::follow(watcher, "systemd-hostnamed", vec![rule], told)
}

/// Hears when the kernel is told another one.
async fn follow_kernel(watcher: Watcher) -> Result<(), Failure> {
    let followed = KernelHostname::follow();
    let mut followed = followed.attempting("follow", "the host name of the kernel")?;
    (watcher.event)("the host name of the kernel is followed");
    loop {
        tokio::select! {
            () = watcher.cancellation.cancelled() => return Ok(()),
            set = followed.was_set() => set.attempting("follow", "the host name of the kernel")?,
        }
        (watcher.event)("the host name of the kernel was set");
    }
}

/// Why a text cannot be a static or transient host name: such ones are made fit by the service, and would never be right.
fn why_not_a_host_name(text: &str) -> Option<String> {
    if text.len() > LONGEST {
        return Some(format!(
            "a host name has at most {LONGEST} bytes, and this one {}",
            text.len()
        ));
    }
    let is_plain = |label: &str| {
        label
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    for label in text.split('.') {
        let why = if label.is_empty() {
            "there is nothing between two dots, or at an end"
        } else if !is_plain(label) {
            "its parts consist of ASCII letters, digits and hyphens"
        } else if label.starts_with('-') || label.ends_with('-') {
            "its parts neither begin nor end with a hyphen"
        } else {
            continue;
        };
        return Some(format!("`{text}` is no host name: {why}"));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_names_are_those_that_the_service_leaves_as_they_are() {
        for right in ["a", "web-1", "Web1.example.com", "1"] {
            assert_eq!(why_not_a_host_name(right), None, "{right}");
        }
        for wrong in ["a b", "a_b", "-a", "a-", "a..b", ".a", "a.", "ä", &"a".repeat(65)] {
            assert!(why_not_a_host_name(wrong).is_some(), "{wrong}");
        }
    }
}
