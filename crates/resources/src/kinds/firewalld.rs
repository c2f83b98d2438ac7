//! The `firewalld` kind: services and ports of a zone of firewalld, as it has them now.
//!
//! What others open or close, a reload, another default zone and a firewalld that is started anew are heard on the bus. Rules that go around it (`nft`,
//! `iptables`) are none of its services and ports, and are not seen. Whether we may is not asked before: firewalld and polkit say so when something is to be done.

mod ports;
mod zone;

use std::fmt::Display;

use setpoint_engine::{
    Apply, Attempting, Claim, Failure, HubWatcher, IfSet, Resource, Stake, Wanted, Watch, async_trait,
};
use setpoint_graph::{Invalid, MetaParameters};
use setpoint_host::bus::{Following, Message, owner_changes, signals};

use crate::presence::Presence;
use crate::sorts::{OPENING, SERVICE, of_service_manager};
use crate::system_bus::{self, buses};
use ports::{Port, PortRange};
use zone::{DAEMON, DAEMON_INTERFACE, OBJECT, ZONE_INTERFACE, Zone};

/// Services and ports of a zone of [firewalld](https://firewalld.org), open or closed.
///
/// That is so in what firewalld does now, and not in what it does after a reload or a new start: then it is repaired. What is not named is left alone.
///
/// ```mcl
/// firewalld "web" {
///     services => ["http", "https"],
///     ports => ["8080/tcp"],
/// }
/// ```
///
/// In another zone than the default one, and closed; firewalld runs before:
///
/// ```mcl
/// svc "firewalld" {
///     state => "running",
///     startup => "enabled",
/// }
///
/// firewalld "no mail" {
///     zone => "public",
///     state => "absent",
///     services => ["smtp"],
///     ports => ["587/tcp", "465/tcp"],
/// }
/// ```
#[derive(Debug, Resource)]
#[resource(
    kind = "firewalld",
    autoedge,
    asynchronous,
    reads_back,
    constants(state(exists = "exists", absent = "absent", undefined = ""))
)]
pub(crate) struct Firewalld {
    /// The zone. Unset or empty: the default one, for which each run asks.
    zone: String,
    /// Whether they are open. Unset or empty: they are.
    state: IfSet<Presence>,
    /// Services by the names that firewalld has for them: `firewall-cmd --get-services` lists them.
    services: Vec<String>,
    /// Ports with their protocols. One that is in a range of firewalld is open, and closing it leaves the others of the range open.
    ports: Vec<Port>,
}

#[async_trait]
impl Resource for Firewalld {
    fn validate(&self, _: &MetaParameters, invalid: &mut Vec<Invalid>) {
        if self.services.iter().any(String::is_empty) {
            invalid.push(Invalid::parameter("services", "the name of a service is empty"));
        }
    }

    fn claims(&self) -> Vec<Claim> {
        let ports = self.ports.iter().map(ToString::to_string);
        let openings = self.services.iter().cloned().chain(ports);
        let state: &[u8] = if self.is_open() { b"open" } else { b"closed" };
        let zone = match self.zone.as_str() {
            "" => "the default zone",
            zone => zone,
        };
        openings
            .map(|opening| Claim::of_part(&OPENING, zone.as_bytes(), opening.as_bytes(), Stake::value(state)))
            .collect()
    }

    fn wanted(&self) -> Vec<Wanted> {
        vec![Wanted::first_of_each([of_service_manager(
            &SERVICE,
            false,
            "firewalld",
        )])]
    }

    fn watches(&self) -> Vec<Watch> {
        let concern = Concern {
            zone: self.zone.clone(),
            services: self.services.clone(),
            ports: self.ports.clone(),
        };
        vec![Watch::hub(move |watcher| concern.follow(watcher))]
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let link = buses(apply.handle())?.system.link().await;
        let link = link.attempting("ask", "firewalld")?;
        let zone = Zone::find(link, &self.zone, apply.has_sensitive()).await?;
        if !self.services.is_empty() {
            self.check_services(&zone, apply).await?;
        }
        if !self.ports.is_empty() {
            self.check_ports(&zone, apply).await?;
        }
        Ok(())
    }
}

impl Firewalld {
    /// Whether they shall be open.
    fn is_open(&self) -> bool {
        *self.state != Some(Presence::Absent)
    }

    async fn check_services(&self, zone: &Zone, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let there = zone.services().await?;
        let (open, closed): (Vec<&String>, Vec<&String>) =
            self.services.iter().partition(|service| there.contains(*service));
        if self.differs("services", &open, &closed, &self.services, apply) {
            for service in if self.is_open() { closed } else { open } {
                apply.cancellation().check("open and close services")?;
                zone.set_service(service, self.is_open()).await?;
            }
        }
        Ok(())
    }

    async fn check_ports(&self, zone: &Zone, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let there = zone.ports().await?;
        let (open, closed): (Vec<&Port>, Vec<&Port>) = self
            .ports
            .iter()
            .partition(|port| there.iter().any(|range| range.contains(port)));
        if self.differs("ports", &open, &closed, &self.ports, apply) {
            match self.is_open() {
                true => {
                    for port in closed {
                        apply.cancellation().check("open ports")?;
                        zone.open(&PortRange::from(port)).await?;
                    }
                }
                false => {
                    for port in open {
                        apply.cancellation().check("close ports")?;
                        zone.close_one(port).await?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Records how those that are managed differ from what they shall be, if they do, and answers whether to repair it.
    fn differs<T: Display>(
        &self,
        field: &'static str,
        open: &[&T],
        closed: &[&T],
        managed: &[T],
        apply: &mut Apply<'_>,
    ) -> bool {
        let listed = |all: Vec<String>| (!all.is_empty()).then(|| all.join(", "));
        let is = listed(open.iter().map(ToString::to_string).collect());
        match self.is_open() {
            true if closed.is_empty() => false,
            true => {
                let wanted = listed(managed.iter().map(ToString::to_string).collect());
                apply.existence(field, is, wanted)
            }
            false if open.is_empty() => false,
            false => apply.existence(field, is, None::<String>),
        }
    }
}

/// What a resource is about, for what hears of changes.
struct Concern {
    /// Empty: the default one, whichever that is by then.
    zone: String,
    services: Vec<String>,
    ports: Vec<Port>,
}

impl Concern {
    /// Hears what firewalld says, and whether it is there.
    fn follow(self, watcher: HubWatcher) -> Result<Following, Failure> {
        let of_zone = |member| signals(DAEMON, OBJECT, ZONE_INTERFACE, member);
        let of_daemon = |member| signals(DAEMON, OBJECT, DAEMON_INTERFACE, member);
        let rules = vec![
            of_zone("ServiceAdded"),
            of_zone("ServiceRemoved"),
            of_zone("PortAdded"),
            of_zone("PortRemoved"),
            of_zone("ZoneUpdated"),
            of_daemon("Reloaded"),
            of_daemon("DefaultZoneChanged"),
            owner_changes(DAEMON),
        ];
        system_bus::follow(watcher, "firewalld", rules, move |message| self.told(message))
    }

    /// What a signal says, if it may concern the resource: one that is about another zone, service or port does not.
    fn told(&self, message: &Message) -> Option<&'static str> {
        let body = message.body();
        let header = message.header();
        let is_zone = |zone: &str| self.zone.is_empty() || self.zone == zone;
        let is_service = |zone: &str, service: &str| {
            is_zone(zone) && self.services.iter().any(|managed| managed == service)
        };
        let is_port = |zone: &str, port: &str, protocol: &str| {
            is_zone(zone)
                && PortRange::read(port, protocol)
                    .is_none_or(|range| self.ports.iter().any(|port| range.contains(port)))
        };
        // What cannot be understood may concern anybody.
        let (concerns, told) = match header.member()?.as_str() {
            "ServiceAdded" => {
                let body = body.deserialize::<(&str, &str, i32)>();
                let concerns = body.map_or(true, |(zone, service, _)| is_service(zone, service));
                (concerns, "firewalld tells of a service")
            }
            "ServiceRemoved" => {
                let body = body.deserialize::<(&str, &str)>();
                let concerns = body.map_or(true, |(zone, service)| is_service(zone, service));
                (concerns, "firewalld tells of a service")
            }
            "PortAdded" => {
                let body = body.deserialize::<(&str, &str, &str, i32)>();
                let concerns = body.map_or(true, |(zone, port, protocol, _)| is_port(zone, port, protocol));
                (concerns, "firewalld tells of a port")
            }
            "PortRemoved" => {
                let body = body.deserialize::<(&str, &str, &str)>();
                let concerns = body.map_or(true, |(zone, port, protocol)| is_port(zone, port, protocol));
                (concerns, "firewalld tells of a port")
            }
            "DefaultZoneChanged" => (self.zone.is_empty(), "firewalld has another default zone"),
            "NameOwnerChanged" => {
                // The owners of other names are told, too, if somebody else asks for them.
                let (name, _, new) = body.deserialize::<(&str, &str, &str)>().ok()?;
                let told = match new {
                    "" => "firewalld has ended",
                    _ => "firewalld was started",
                };
                (name == DAEMON, told)
            }
            "Reloaded" => (true, "firewalld was reloaded"),
            _ => (true, "firewalld tells of a zone"),
        };
        concerns.then_some(told)
    }
}
