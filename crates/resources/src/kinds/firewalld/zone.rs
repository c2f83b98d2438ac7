//! A zone of the firewalld that runs, asked and changed over the bus.

use setpoint_diagnostics::did_you_mean;
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
            zone.name = match zone.link.call::<String>(method, &()).await {
                Ok(default) => default,
                Err(error) => {
                    let attempted = "ask firewalld for the default zone";
                    return Err(zone.failed(attempted, "", &error).await);
                }
            };
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
        match self.link.call(method, &(self.name.as_str(),)).await {
            Ok(services) => Ok(services),
            Err(error) => {
                let attempted = "ask firewalld for the services of the zone";
                Err(self.failed(attempted, &self.name, &error).await)
            }
        }
    }

    /// The ports that are open.
    pub(super) async fn ports(&self) -> Result<Vec<PortRange>, Failure> {
        let method = method(ZONE_INTERFACE, "getPorts");
        let ports: Vec<Vec<String>> = match self.link.call(method, &(self.name.as_str(),)).await {
            Ok(ports) => ports,
            Err(error) => {
                let attempted = "ask firewalld for the ports of the zone";
                return Err(self.failed(attempted, &self.name, &error).await);
            }
        };
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
        self.change(attempted, service, answer).await.map(drop)
    }

    /// Opens ports.
    pub(super) async fn open(&self, range: &PortRange) -> Result<(), Failure> {
        let (zone, ports, protocol) = (self.name.as_str(), range.ports(), range.protocol.as_str());
        let method = method(ZONE_INTERFACE, "addPort");
        let arguments = (zone, ports.as_str(), protocol, NO_TIMEOUT);
        let answer = self.link.call(method, &arguments).await;
        self.change("open the port", &range.to_string(), answer)
            .await
            .map(drop)
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
        self.change("close the port", &range.to_string(), answer).await
    }

    /// What a change came to, of which firewalld answers the zone.
    async fn change(
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
            Err(error) => Err(self.failed(attempted, target, &error).await),
        }
    }

    async fn failed(&self, attempted: &'static str, target: &str, error: &BusError) -> Failure {
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
                let known = self.names(ZONE_INTERFACE, "getZones").await;
                let help = self.did_you_mean(&self.name, &known, "`firewall-cmd --get-zones` lists them");
                format!("firewalld has no zone `{zone}`; {help}")
            }
            Some("INVALID_SERVICE") => {
                let known = self.names(DAEMON_INTERFACE, "listServices").await;
                let help = self.did_you_mean(target, &known, "`firewall-cmd --get-services` lists them");
                format!("firewalld has no such service; {help}")
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

    /// All names that a method answers; none if it does not.
    async fn names(&self, interface: &str, name: &str) -> Vec<String> {
        let names = self.link.call(method(interface, name), &()).await;
        names.unwrap_or_default()
    }

    /// The name that is probably meant, or else where to look for it.
    fn did_you_mean(&self, name: &str, known: &[String], otherwise: &str) -> String {
        let meant = did_you_mean(name, known.iter().map(String::as_str));
        meant
            .filter(|_| !self.secret)
            .unwrap_or_else(|| otherwise.to_owned())
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
