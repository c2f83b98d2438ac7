//! A zone of the firewalld that runs, asked and changed over the bus.

use setpoint_engine::Failure;
use setpoint_host::bus::{BusError, Link, Method};

use super::ports::{Port, PortRange};

/// The name that firewalld has on the bus.
pub(super) const DAEMON: &str = "org.fedoraproject.FirewallD1";
pub(super) const OBJECT: &str = "/org/fedoraproject/FirewallD1";
pub(super) const DAEMON_INTERFACE: &str = "org.fedoraproject.FirewallD1";
pub(super) const ZONE_INTERFACE: &str = "org.fedoraproject.FirewallD1.zone";

/// What is opened stays so until firewalld ends or is reloaded, and not for some seconds.
const NO_TIMEOUT: i32 = 0;

/// A zone.
pub(super) struct Zone {
    link: Link,
    name: String,
    /// Whether what was asked must not be shown.
    secret: bool,
}

/// What a change came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Made,
    /// It was so, says firewalld.
    WasSo,
}

impl Zone {
    /// The zone of a name; of none, the default one.
    pub(super) async fn find(link: Link, name: &str, secret: bool) -> Result<Zone, Failure> {
        let mut zone = Zone {
            link,
            name: name.to_owned(),
            secret,
        };
        if name.is_empty() {
            let method = method(DAEMON_INTERFACE, "getDefaultZone");
            let default = zone.link.call::<String>(method, &()).await;
            zone.name =
                default.map_err(|error| zone.failed("ask firewalld for the default zone", "", &error))?;
            if zone.name.is_empty() {
                let why = "it has none: `firewall-cmd --set-default-zone` sets one";
                return Err(Failure::new("ask firewalld for the default zone").because(why));
            }
        }
        Ok(zone)
    }

    /// The services that are open.
    pub(super) async fn services(&self) -> Result<Vec<String>, Failure> {
        let method = method(ZONE_INTERFACE, "getServices");
        let services = self.link.call(method, &(self.name.as_str(),)).await;
        services
            .map_err(|error| self.failed("ask firewalld for the services of the zone", &self.name, &error))
    }

    /// The ports that are open.
    pub(super) async fn ports(&self) -> Result<Vec<PortRange>, Failure> {
        let method = method(ZONE_INTERFACE, "getPorts");
        let ports: Result<Vec<Vec<String>>, BusError> = self.link.call(method, &(self.name.as_str(),)).await;
        let ports = ports
            .map_err(|error| self.failed("ask firewalld for the ports of the zone", &self.name, &error))?;
        let read = ports.iter().filter_map(|port| match port.as_slice() {
            [ports, protocol] => PortRange::read(ports, protocol),
            _ => None,
        });
        Ok(read.collect())
    }

    /// Opens or closes a service.
    pub(super) async fn set_service(&self, service: &str, open: bool) -> Result<(), Failure> {
        let zone = self.name.as_str();
        let (attempted, answer) = match open {
            true => {
                let method = method(ZONE_INTERFACE, "addService");
                let answer = self.link.call(method, &(zone, service, NO_TIMEOUT)).await;
                ("open the service", answer)
            }
            false => {
                let method = method(ZONE_INTERFACE, "removeService");
                let answer = self.link.call(method, &(zone, service)).await;
                ("close the service", answer)
            }
        };
        self.change(attempted, service, answer).map(drop)
    }

    /// Opens ports.
    pub(super) async fn open(&self, range: &PortRange) -> Result<(), Failure> {
        let (zone, ports, protocol) = (self.name.as_str(), range.ports(), range.protocol.as_str());
        let method = method(ZONE_INTERFACE, "addPort");
        let arguments = (zone, ports.as_str(), protocol, NO_TIMEOUT);
        let answer = self.link.call(method, &arguments).await;
        self.change("open the port", &range.to_string(), answer).map(drop)
    }

    /// Closes one port, and leaves the others of the ranges open that it is in.
    ///
    /// A firewalld of version 1.0 or later takes it out of its ranges by itself. An earlier one knows only whole ranges: what stays is opened by itself before they
    /// are closed.
    pub(super) async fn close_one(&self, port: &Port) -> Result<(), Failure> {
        let alone = PortRange::from(port);
        if self.close(&alone).await? == Change::Made {
            return Ok(());
        }
        for range in self.ports().await?.iter().filter(|range| range.contains(port)) {
            for part in range.without(port) {
                self.open(&part).await?;
            }
            self.close(range).await?;
        }
        Ok(())
    }

    async fn close(&self, range: &PortRange) -> Result<Change, Failure> {
        let (zone, ports, protocol) = (self.name.as_str(), range.ports(), range.protocol.as_str());
        let method = method(ZONE_INTERFACE, "removePort");
        let answer = self.link.call(method, &(zone, ports.as_str(), protocol)).await;
        self.change("close the port", &range.to_string(), answer)
    }

    /// What a change came to, of which firewalld answers the zone.
    fn change(
        &self,
        attempted: &'static str,
        target: &str,
        answer: Result<String, BusError>,
    ) -> Result<Change, Failure> {
        match answer {
            Ok(zone) if zone == self.name => Ok(Change::Made),
            Ok(zone) => {
                let why = match self.secret {
                    true => "it was done in another zone".to_owned(),
                    false => format!("it was done in the zone `{zone}` instead of `{}`", self.name),
                };
                Err(Failure::new(attempted).on(self.shown(target)).because(why))
            }
            Err(error) if matches!(code(&error), Some("ALREADY_ENABLED" | "NOT_ENABLED")) => {
                Ok(Change::WasSo)
            }
            Err(error) => Err(self.failed(attempted, target, &error)),
        }
    }

    fn failed(&self, attempted: &'static str, target: &str, error: &BusError) -> Failure {
        let failure = match target {
            "" => Failure::new(attempted),
            target => Failure::new(attempted).on(self.shown(target)),
        };
        let zone = self.shown(&self.name);
        let named = |names: &[&str]| names.iter().any(|name| error.is_named(name));
        if named(&[
            "org.freedesktop.DBus.Error.ServiceUnknown",
            "org.freedesktop.DBus.Error.NameHasNoOwner",
        ]) {
            return failure
                .because("firewalld is not running; `svc \"firewalld\"` with the state `running` starts it");
        }
        if named(&[
            "org.fedoraproject.FirewallD1.NotAuthorizedException",
            "org.freedesktop.DBus.Error.AccessDenied",
        ]) {
            return failure.because(format!("only root may do that, or whom polkit lets: {error}"));
        }
        let why = match code(error) {
            Some("INVALID_ZONE") => {
                format!("firewalld has no zone `{zone}`; `firewall-cmd --get-zones` lists them")
            }
            Some("INVALID_SERVICE") => {
                "firewalld has no such service; `firewall-cmd --get-services` lists them".to_owned()
            }
            Some("PANIC_MODE") => {
                "firewalld drops everything now; `firewall-cmd --panic-off` ends that".to_owned()
            }
            Some(code) if self.secret => format!("firewalld refuses: {code}"),
            Some(_) => format!("firewalld refuses: {error}"),
            None if self.secret && matches!(error, BusError::Refused { .. }) => {
                "firewalld refuses".to_owned()
            }
            None => return failure.because(error.clone()),
        };
        failure.because(why)
    }

    fn shown<'a>(&self, text: &'a str) -> &'a str {
        match self.secret {
            true => "(sensitive)",
            false => text,
        }
    }
}

/// The code with which an error of firewalld begins: `INVALID_ZONE: work`.
fn code(error: &BusError) -> Option<&str> {
    match error {
        BusError::Refused { name, reason } if **name == *"org.fedoraproject.FirewallD1.Exception" => {
            Some(reason.split_once(':').map_or(reason, |(code, _)| code))
        }
        _ => None,
    }
}

fn method<'a>(interface: &'a str, name: &'a str) -> Method<'a> {
    Method {
        service: DAEMON,
        path: OBJECT,
        interface,
        name,
    }
}
