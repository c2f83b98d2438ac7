//! What a run of `net` does: the file for networkd, whether the interface is up, its addresses, its gateway, and whether it forwards.

use std::io;
use std::net::IpAddr;

use ipnet::IpNet;
use setpoint_diagnostics::did_you_mean;
use setpoint_engine::{Apply, Attempting, Failure, Level};
use setpoint_host::bus::{Buses, Link, Method};
use setpoint_host::files::{AbsolutePath, Entry};
use setpoint_host::network::{Address, Family, Interface, NetworkControl, Route, RouteMaker};
use tokio::task::block_in_place;

use super::earlier_files::{self, Earlier};
use super::{DIRECTORY, LinkState, Net};
use crate::written_file::WrittenFile;

/// From this version of systemd on, forwarding is said for each family.
const FORWARDING_BY_FAMILY: u32 = 256;

/// What the kernel answers about a gateway that it cannot reach.
const UNREACHABLE: i32 = 101;

impl Net {
    pub(super) async fn keep(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        self.keep_file(apply).await?;
        let control = NetworkControl::open().attempting("ask the kernel for", &self.name)?;
        let mut interface = self.interface(&control).await?;
        // Which files are for an interface is known when it is there.
        if *self.state == Some(LinkState::Up) {
            self.warn_of_another_file(apply)?;
        }
        self.keep_state(&control, &mut interface, apply).await?;
        if *self.state == Some(LinkState::Down) {
            return Ok(());
        }
        if let Some(wanted) = self.wanted_addresses() {
            self.keep_addresses(&control, &interface, &wanted, apply).await?;
        }
        if let Some(gateway) = *self.gateway {
            self.keep_gateway(&control, &interface, gateway.0, apply).await?;
        }
        if let Some(forward) = self.ip_forward {
            block_in_place(|| self.keep_forwarding(forward, apply))?;
        }
        Ok(())
    }

    async fn interface(&self, control: &NetworkControl) -> Result<Interface, Failure> {
        let found = control.interface(&self.name).await;
        if let Some(interface) = found.attempting("ask the kernel for", &self.name)? {
            return Ok(interface);
        }
        let names = control.names().await.unwrap_or_default();
        let mut why = "there is no such interface".to_owned();
        if let Some(meant) = did_you_mean(&self.name, names.iter().map(String::as_str)) {
            why = format!("{why}; {meant}");
        } else if !names.is_empty() {
            why = format!("{why}; there are: {}", names.join(", "));
        }
        Err(Failure::new("find the interface").on(&self.name).because(why))
    }

    async fn keep_file(&self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let Some(state) = *self.state else {
            return Ok(());
        };
        let path = |file: String| AbsolutePath::new(&file).attempting("use the path", file);
        let own = WrittenFile::look(path(self.file())?)?;
        let former = WrittenFile::look(path(format!("{DIRECTORY}/mgmt-{}.network", self.name))?)?;
        let mut is_changed = former.remove("file", apply)?;
        is_changed |= match state {
            LinkState::Down => own.remove("file", apply)?,
            LinkState::Up => {
                let text = self.text(apply).await;
                own.hold("file", &text, apply)?
            }
        };
        if is_changed && apply.may_repair() {
            self.reload_networkd(apply).await?;
        }
        Ok(())
    }

    /// What networkd shall read.
    async fn text(&self, apply: &Apply<'_>) -> String {
        let mut text = format!("[Match]\nName={}\n[Network]\n", self.name);
        let mut line = |key: &str, value: &str| text.push_str(&format!("{key}={value}\n"));
        for address in self.addrs.iter().flatten() {
            line("Address", &address.0.to_string());
        }
        if let Some(gateway) = (*self.gateway).filter(|_| !self.onlink) {
            line("Gateway", &gateway.0.to_string());
        }
        if let Some(forward) = self.ip_forward {
            let value = if forward { "true" } else { "false" };
            // Where no systemd tells its version, the old form is understood by all.
            if systemd_version(apply)
                .await
                .is_some_and(|version| version >= FORWARDING_BY_FAMILY)
            {
                line("IPv4Forwarding", value);
                line("IPv6Forwarding", value);
            } else {
                line("IPForward", value);
            }
        }
        if let Some(gateway) = (*self.gateway).filter(|_| self.onlink) {
            text.push_str(&format!("[Route]\nGateway={}\nGatewayOnLink=true\n", gateway.0));
        }
        text
    }

    /// Warns, once, of a file that networkd takes instead of ours.
    fn warn_of_another_file(&mut self, apply: &Apply<'_>) -> Result<(), Failure> {
        let own = self.file_name();
        let found = block_in_place(|| earlier_files::earlier(&self.name, &own))?;
        if found == self.warned_of {
            return Ok(());
        }
        if let Some(Earlier { path, is_certain }) = &found {
            let takes = if *is_certain { "takes" } else { "may take" };
            let text = format!(
                "systemd-networkd {takes} {} for {} instead of {own}, which comes later by its name",
                path.display(),
                self.name
            );
            apply.log(Level::Warning, text);
        }
        self.warned_of = found;
        Ok(())
    }

    /// Tells networkd, if it runs. It is not started for this.
    async fn reload_networkd(&self, apply: &Apply<'_>) -> Result<(), Failure> {
        const SERVICE: &str = "org.freedesktop.network1";
        let Some(link) = bus(apply).await else {
            return Ok(());
        };
        let has_owner = Method {
            service: "org.freedesktop.DBus",
            path: "/org/freedesktop/DBus",
            interface: "org.freedesktop.DBus",
            name: "NameHasOwner",
        };
        if !link.call::<bool>(has_owner, &(SERVICE,)).await.unwrap_or(false) {
            return Ok(());
        }
        let reload = Method {
            service: SERVICE,
            path: "/org/freedesktop/network1",
            interface: "org.freedesktop.network1.Manager",
            name: "Reload",
        };
        let told = link.call::<()>(reload, &()).await;
        told.attempting("tell of its new configuration", "systemd-networkd")
    }

    async fn keep_state(
        &self,
        control: &NetworkControl,
        interface: &mut Interface,
        apply: &mut Apply<'_>,
    ) -> Result<(), Failure> {
        let Some(wanted) = *self.state else {
            return Ok(());
        };
        let up = wanted == LinkState::Up;
        let is = if interface.is_up {
            LinkState::Up
        } else {
            LinkState::Down
        };
        if is == wanted || !apply.drift("state", is.to_string(), wanted.to_string()) {
            return Ok(());
        }
        let attempted = if up { "set up" } else { "set down" };
        let set = control.set_up(interface, up).await;
        set.map_err(explained).attempting(attempted, &self.name)?;
        interface.is_up = up;
        Ok(())
    }

    async fn keep_addresses(
        &self,
        control: &NetworkControl,
        interface: &Interface,
        wanted: &[IpNet],
        apply: &mut Apply<'_>,
    ) -> Result<(), Failure> {
        let there = self.addresses(control, interface).await?;
        let is_wanted = |address: &&Address| wanted.contains(&address.net);
        if let Some(taken) = there
            .iter()
            .filter(is_wanted)
            .find(|address| address.is_duplicate)
        {
            let why = "another machine on this network has it already";
            return Err(Failure::new("use the address").on(taken.net).because(why));
        }
        let unrouted = self.without_route(control, interface, &there, wanted).await?;
        let mut managed: Vec<&Address> = there
            .iter()
            .filter(|address| is_wanted(address) || is_removable(address))
            .collect();
        managed.sort_by_key(|address| address.net);
        let is: Vec<String> = managed
            .iter()
            .filter(|address| !unrouted.contains(&address.net))
            .map(|address| address.net.to_string())
            .collect();
        let want: Vec<String> = wanted.iter().map(IpNet::to_string).collect();
        if is == want || !apply.drift("addrs", shown(&is), shown(&want)) {
            return Ok(());
        }
        for address in &managed {
            if !is_wanted(address) || unrouted.contains(&address.net) {
                let removed = control.remove_address(address).await;
                removed
                    .map_err(explained)
                    .attempting("remove the address", address.net)?;
            }
        }
        // With the first address of a network the others of that network may have gone.
        let there = self.addresses(control, interface).await?;
        for net in wanted {
            if !there.iter().any(|address| address.net == *net) {
                let added = control.add_address(interface, *net).await;
                added.map_err(explained).attempting("add the address", net)?;
            }
        }
        if unrouted.is_empty() {
            return Ok(());
        }
        let there = self.addresses(control, interface).await?;
        match self
            .without_route(control, interface, &there, wanted)
            .await?
            .first()
        {
            None => Ok(()),
            Some(still) => {
                let why = "the kernel makes no route to its network";
                Err(Failure::new("use the address").on(still).because(why))
            }
        }
    }

    /// Which wanted addresses are there without the route to their network that the kernel made with them: somebody has removed it.
    async fn without_route(
        &self,
        control: &NetworkControl,
        interface: &Interface,
        there: &[Address],
        wanted: &[IpNet],
    ) -> Result<Vec<IpNet>, Failure> {
        let has_one =
            |address: &&Address| address.is_permanent && address.makes_route && wanted.contains(&address.net);
        let of: Vec<&Address> = there.iter().filter(has_one).collect();
        // An interface that is down has none, and those of the loopback interface lead to this machine, in a table of their own.
        if of.is_empty() || !interface.is_up || interface.is_loopback {
            return Ok(Vec::new());
        }
        let mut to = Vec::new();
        for family in [Family::V4, Family::V6] {
            if of.iter().any(|address| Family::of(address.net.addr()) == family) {
                let routes = self.routes(control, interface, family).await?;
                to.extend(routes.into_iter().filter_map(|route| route.destination));
            }
        }
        let unrouted = of
            .into_iter()
            .filter(|address| !to.contains(&address.net.trunc()));
        Ok(unrouted.map(|address| address.net).collect())
    }

    async fn keep_gateway(
        &self,
        control: &NetworkControl,
        interface: &Interface,
        gateway: IpAddr,
        apply: &mut Apply<'_>,
    ) -> Result<(), Failure> {
        let there = self.default_routes(control, interface, gateway).await?;
        let is_right = |route: &Route| route.gateway == Some(gateway);
        if matches!(there.as_slice(), [only] if is_right(only)) {
            return Ok(());
        }
        let is: Vec<String> = there
            .iter()
            .map(|route| route.gateway.map_or("directly".to_owned(), |by| by.to_string()))
            .collect();
        if !apply.drift("gateway", shown(&is), gateway.to_string()) {
            return Ok(());
        }
        // The new one first, so that there is a way all the time.
        if !there.iter().any(is_right) {
            let added = control.add_default_route(interface, gateway, self.onlink).await;
            if let Err(error) = added {
                return Err(self.unreachable(control, interface, gateway, error).await);
            }
        }
        let mut is_kept = false;
        for route in self.default_routes(control, interface, gateway).await? {
            if is_right(&route) && !is_kept {
                is_kept = true;
                continue;
            }
            let removed = control.remove_route(&route).await;
            removed
                .map_err(explained)
                .attempting("remove another default route of", &self.name)?;
        }
        Ok(())
    }

    async fn unreachable(
        &self,
        control: &NetworkControl,
        interface: &Interface,
        gateway: IpAddr,
        error: io::Error,
    ) -> Failure {
        let failure = Failure::new("use the gateway").on(gateway);
        if error.raw_os_error() != Some(UNREACHABLE) {
            return failure.because(explained(error));
        }
        let family = Family::of(gateway);
        let there = self.addresses(control, interface).await.unwrap_or_default();
        let there: Vec<String> = there
            .iter()
            .filter(|address| Family::of(address.net.addr()) == family)
            .map(|address| address.net.to_string())
            .collect();
        let name = &self.name;
        failure.because(match there.as_slice() {
            [] => format!("{name} has no address of its family"),
            there => format!(
                "it is in no network of {name}, which has {}; `onlink => true` says that it is reached all the same",
                there.join(", ")
            ),
        })
    }

    /// The default routes of this interface, without those that routers advertise.
    async fn default_routes(
        &self,
        control: &NetworkControl,
        interface: &Interface,
        gateway: IpAddr,
    ) -> Result<Vec<Route>, Failure> {
        let routes = self.routes(control, interface, Family::of(gateway)).await?;
        let is_one = |route: &Route| {
            route.destination.is_none() && route.is_in_main_table && route.maker != RouteMaker::Advertised
        };
        Ok(routes.into_iter().filter(is_one).collect())
    }

    async fn addresses(
        &self,
        control: &NetworkControl,
        interface: &Interface,
    ) -> Result<Vec<Address>, Failure> {
        let all = control.addresses(interface).await;
        all.attempting("read the addresses of", &self.name)
    }

    async fn routes(
        &self,
        control: &NetworkControl,
        interface: &Interface,
        family: Family,
    ) -> Result<Vec<Route>, Failure> {
        let all = control.routes(interface, family).await;
        all.attempting("read the routes of", &self.name)
    }

    fn keep_forwarding(&self, forward: bool, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let wanted: &[u8] = if forward { b"1" } else { b"0" };
        let attempted = "read whether it forwards";
        let mut wrong = Vec::new();
        for family in ["ipv4", "ipv6"] {
            let path = format!("/proc/sys/net/{family}/conf/{}/forwarding", self.name);
            let path = AbsolutePath::new(path).attempting("use the name", &self.name)?;
            let entry = match Entry::at(&path) {
                // Without IPv6 there is nothing to forward.
                Err(error) if error.is_not_found() => continue,
                entry => entry.attempting(attempted, &self.name)?,
            };
            if entry.stat().attempting(attempted, &self.name)?.is_none() {
                continue;
            }
            let is = entry.read().attempting(attempted, &self.name)?;
            if is.trim_ascii() != wanted {
                wrong.push(entry);
            }
        }
        if wrong.is_empty() || !apply.drift("ip_forward", (!forward).to_string(), forward.to_string()) {
            return Ok(());
        }
        wrong.into_iter().try_for_each(|entry| {
            let written = entry.write_parameter(wanted);
            written.attempting("set whether it forwards", &self.name)
        })
    }
}

/// Whether an address may be taken away: nobody else keeps it alive, and it is not the link's own.
fn is_removable(address: &Address) -> bool {
    let is_of_link = matches!(address.net.addr(), IpAddr::V6(own) if own.is_unicast_link_local());
    address.is_permanent && !is_of_link
}

fn shown(list: &[String]) -> String {
    match list {
        [] => "none".to_owned(),
        list => list.join(", "),
    }
}

/// What the kernel refuses, with what it means here.
fn explained(error: io::Error) -> io::Error {
    let why = match error.raw_os_error() {
        Some(1) => "it needs the right to administer the network (CAP_NET_ADMIN)",
        Some(13) => "IPv6 is switched off for this interface (net.ipv6.conf.NAME.disable_ipv6)",
        Some(100) => "the interface is down",
        _ => return error,
    };
    io::Error::other(why)
}

/// The system bus, if there is one.
async fn bus(apply: &Apply<'_>) -> Option<Link> {
    let buses = apply.handle().extension::<Buses>().ok()?;
    buses.system.link().await.ok()
}

/// The version of the systemd that runs.
async fn systemd_version(apply: &Apply<'_>) -> Option<u32> {
    let version = Method {
        service: "org.freedesktop.systemd1",
        path: "/org/freedesktop/systemd1",
        interface: "org.freedesktop.systemd1.Manager",
        name: "Version",
    };
    let text = bus(apply).await?.text_property(version).await.ok()?;
    let digits = text
        .trim_start_matches('v')
        .split(|sign: char| !sign.is_ascii_digit())
        .next()?;
    digits.parse().ok()
}
