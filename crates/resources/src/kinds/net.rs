//! The `net` kind: a network interface, as the kernel has it now and as systemd-networkd brings it up at the next start.
//!
//! What a run does is in `net/run.rs`, and which files of others networkd would take instead of ours in `net/earlier_files.rs`. All interfaces are followed over one socket: see `setpoint_host::network`.
//!
//! What differs from the reference: the interface is looked for in a run and not before, as something earlier may make it; IPv6 works as IPv4 does; what is not set is left
//! alone, also in the file; addresses that somebody keeps alive (a DHCP client, a router that advertises a network) are never taken away; a default route of another
//! interface stays beside ours instead of being replaced by it; the file ends with a newline, and a networkd that runs is told of it; `ip_forward` also
//! holds at once. The file is called `setpoint-NAME.network`; one called `mgmt-NAME.network` is removed. Another file that networkd takes instead is warned of.
//!
//! A gateway outside of every network of the interface is refused by the kernel, and is more often a slip than meant, so it is a failure that says so; `onlink`, which the reference
//! does not have, is for where it is meant. What the addresses are is not compared with it before a run: others may give the interface the network that is missing.

mod earlier_files;
mod run;

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;
use setpoint_engine::{
    Apply, Attempting, Failure, Handle, IfSet, Parameter, Resource, Watch, Watcher, Words, async_trait,
};
use setpoint_graph::{Invalid, MetaParameters, ParameterType, Parameters, TypeMismatch};
use setpoint_host::files::AbsolutePath;
use setpoint_host::network::Network;
use setpoint_value::Value;

use earlier_files::Earlier;

/// Where networkd reads what administrators write.
const DIRECTORY: &str = "/etc/systemd/network";

/// The longest name that the kernel gives an interface, in bytes.
const LONGEST: usize = 15;

/// A network interface: whether it is up, its addresses and its gateway.
///
/// The name is that of the interface. Everything holds at once, and after a start of the machine by a file for systemd-networkd, which is written when `state` is `up` and removed
/// when it is `down`. If networkd takes another file for the interface, as the first by its name counts, that is warned of. What is changed by hand is put right when it happens. An interface that is not there yet is waited for.
///
/// ```mcl
/// net "eth1" {
///     state => "up",
///     addrs => ["192.0.2.7/24", "2001:db8::7/64"],
///     gateway => "192.0.2.1",
/// }
/// ```
///
/// An address that stands alone, with a gateway that is reached all the same:
///
/// ```mcl
/// net "eth2" {
///     state => "up",
///     addrs => ["203.0.113.5/32"],
///     gateway => "172.31.1.1",
///     onlink => true,
/// }
/// ```
///
/// An interface that somebody else configures, and that shall only pass on what is not for this machine:
///
/// ```mcl
/// net "eth0" {
///     ip_forward => true,
/// }
/// ```
#[derive(Debug, Resource)]
#[resource(
    kind = "net",
    reversible,
    asynchronous,
    reads_back,
    constants(state(up = "up", down = "down", undefined = ""))
)]
pub(crate) struct Net {
    /// Whether it is up. When it is `down`, nothing else is looked at. Unset or empty: not managed, and neither is the file.
    state: IfSet<LinkState>,
    /// Its addresses, and no others. Unset: not managed. IPv6 addresses of the link itself (`fe80::…`) and those that a DHCP client or a router keeps
    /// alive stay, too.
    addrs: Option<Vec<AddressWithPrefix>>,
    /// The next hop of its default route. Unset or empty: not managed.
    gateway: IfSet<Gateway>,
    /// Whether the gateway can be reached directly though it is in no network of the interface, as with addresses that stand alone (`203.0.113.5/32`). An extension.
    onlink: bool,
    /// Whether what comes in here and is not for this machine is passed on. Unset: not managed.
    ip_forward: Option<bool>,
    #[name]
    name: String,
    /// Of which file of others was warned last.
    #[state]
    warned_of: Option<Earlier>,
}

/// Whether an interface is up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LinkState {
    Up,
    Down,
}

impl Words for LinkState {
    const ONE: &'static str = "a state of an interface";

    fn words() -> impl Iterator<Item = (&'static str, LinkState)> {
        [("up", LinkState::Up), ("down", LinkState::Down)].into_iter()
    }
}

/// An address with the length of its network's prefix. Compared as the number that it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct AddressWithPrefix(IpNet);

impl Parameter for AddressWithPrefix {
    const TYPE: ParameterType = ParameterType::Str;
    const FORM: Option<fn() -> String> =
        Some(|| "an address with the length of its network's prefix, like `192.0.2.7/24`".to_owned());

    fn decode(value: &Value) -> Result<AddressWithPrefix, TypeMismatch> {
        let text = String::decode(value)?;
        if let Ok(address) = text.parse::<IpAddr>() {
            let message = format!("`{text}` has no length of its network's prefix");
            let length = if address.is_ipv4() { 24 } else { 64 };
            return Err(TypeMismatch::new(message).help(format!("write it after a slash: `{text}/{length}`")));
        }
        let net: IpNet = text.parse().map_err(|_| {
            TypeMismatch::new(format!(
                "`{text}` is not an address with the length of its network's prefix"
            ))
        })?;
        usable(net.addr()).map_err(TypeMismatch::new)?;
        Ok(AddressWithPrefix(net))
    }

    fn encode(&self) -> Value {
        Value::str(self.0.to_string())
    }
}

/// The address of a gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Gateway(IpAddr);

impl Parameter for Gateway {
    const TYPE: ParameterType = ParameterType::Str;
    const FORM: Option<fn() -> String> = Some(|| "an address, like `192.0.2.1`".to_owned());

    fn decode(value: &Value) -> Result<Gateway, TypeMismatch> {
        let text = String::decode(value)?;
        if let Ok(net) = text.parse::<IpNet>() {
            let message = format!("`{text}` is more than an address");
            return Err(TypeMismatch::new(message).help(format!("write `{}`", net.addr())));
        }
        let address = text
            .parse()
            .map_err(|_| TypeMismatch::new(format!("`{text}` is not an address")))?;
        usable(address).map_err(TypeMismatch::new)?;
        Ok(Gateway(address))
    }

    fn encode(&self) -> Value {
        Value::str(self.0.to_string())
    }
}

/// Why no machine can have an address.
fn usable(address: IpAddr) -> Result<(), String> {
    if address.is_unspecified() {
        Err(format!("`{address}` stands for no machine"))
    } else if address.is_multicast() {
        Err(format!("`{address}` stands for many machines"))
    } else {
        Ok(())
    }
}

#[async_trait]
impl Resource for Net {
    fn validate(&self, _: &MetaParameters, invalid: &mut Vec<Invalid>) {
        if let Some(why) = why_not_an_interface(&self.name) {
            let message = format!("`{}` cannot be an interface: {why}", self.name);
            invalid.push(Invalid::new(message));
        }
        if self.onlink && self.gateway.is_none() {
            let message = "it says how `gateway` is reached, which is not set";
            invalid.push(Invalid::parameter("onlink", message));
        }
    }

    /// Addresses are a set: neither their order matters, nor how they are written, nor how often.
    fn same(name: &str, a: &Parameters, b: &Parameters) -> bool {
        match (decoded(name, a), decoded(name, b)) {
            (Some(a), Some(b)) => {
                *a.state == *b.state
                    && a.wanted_addresses() == b.wanted_addresses()
                    && *a.gateway == *b.gateway
                    && a.onlink == b.onlink
                    && a.ip_forward == b.ip_forward
            }
            _ => false,
        }
    }

    /// The other state; nothing else is brought back.
    fn reverse(&self, _: &Handle, received: &[&str]) -> Result<Option<Parameters>, Failure> {
        if received.contains(&"state") {
            let why = "whether it shall be up is not known before it is received";
            return Err(Failure::new("reverse").on(&self.name).because(why));
        }
        let Some(state) = *self.state else {
            return Ok(None);
        };
        let other = match state {
            LinkState::Up => LinkState::Down,
            LinkState::Down => LinkState::Up,
        };
        let addresses = self.addrs.as_ref().map(|all| ("addrs", all.encode()));
        let gateway = (*self.gateway).map(|gateway| ("gateway", gateway.encode()));
        let onlink = self.onlink.then_some(("onlink", Value::Bool(true)));
        let forward = self
            .ip_forward
            .map(|forward| ("ip_forward", Value::Bool(forward)));
        let all = [
            Some(("state", other.encode())),
            addresses,
            gateway,
            onlink,
            forward,
        ];
        Ok(Some(Parameters::new(all.into_iter().flatten())))
    }

    fn watches(&self) -> Vec<Watch> {
        let name = self.name.clone();
        let mut watches = vec![Watch::own(move |watcher| follow(name, watcher))];
        if self.state.is_some() {
            watches.extend(AbsolutePath::new(self.file()).ok().map(Watch::path));
        }
        if *self.state == Some(LinkState::Up) {
            // Those of packages come with whoever installs them.
            let directories =
                [DIRECTORY, "/run/systemd/network"].map(|path| AbsolutePath::new(format!("{path}/")));
            watches.extend(directories.into_iter().flatten().map(Watch::path));
        }
        watches
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        self.keep(apply).await
    }
}

impl Net {
    /// The file that networkd reads.
    fn file(&self) -> String {
        format!("{DIRECTORY}/{}", self.file_name())
    }

    fn file_name(&self) -> String {
        format!("setpoint-{}.network", self.name)
    }

    /// Each address that it shall have once, in an order of its own.
    fn wanted_addresses(&self) -> Option<Vec<IpNet>> {
        let mut all: Vec<IpNet> = self.addrs.as_ref()?.iter().map(|address| address.0).collect();
        all.sort_unstable();
        all.dedup();
        Some(all)
    }
}

impl fmt::Display for LinkState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LinkState::Up => "up",
            LinkState::Down => "down",
        })
    }
}

/// The resource that parameters make, if they make one.
fn decoded(name: &str, parameters: &Parameters) -> Option<Net> {
    fn one<T: Parameter>(parameters: &Parameters, name: &str) -> Option<Option<T>> {
        match parameters.get(name) {
            None => Some(None),
            Some(value) => T::decode(value).ok().map(Some),
        }
    }
    Some(Net {
        state: one(parameters, "state")?.unwrap_or_default(),
        addrs: one(parameters, "addrs")?,
        gateway: one(parameters, "gateway")?.unwrap_or_default(),
        onlink: one(parameters, "onlink")?.unwrap_or_default(),
        ip_forward: one(parameters, "ip_forward")?,
        name: name.to_owned(),
        warned_of: None,
    })
}

/// Hears what changes about the interface.
async fn follow(name: String, watcher: Watcher) -> Result<(), Failure> {
    let attempted = "follow the interface";
    let network = watcher.handle.extension::<Network>()?;
    let mut changes = network.follow(&name).attempting(attempted, &name)?;
    (watcher.event)("the interface is followed");
    loop {
        tokio::select! {
            () = watcher.cancellation.cancelled() => return Ok(()),
            changed = changes.changed() => changed.attempting(attempted, &name)?,
        }
        (watcher.event)("the interface, its addresses or its routes changed");
    }
}

/// Why a text cannot be the name of an interface that is managed here.
fn why_not_an_interface(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        Some("it has no name")
    } else if name.len() > LONGEST {
        Some("such names have at most 15 bytes")
    } else if matches!(name, "." | "..") || name.contains(['/', ':']) {
        Some("such names contain neither `/` nor `:`, and are not `.` or `..`")
    } else if name.contains(|sign: char| sign.is_whitespace() || sign.is_control()) {
        Some("such names contain no blanks")
    } else if matches!(name, "all" | "default") {
        Some("the kernel has that word for all interfaces")
    } else if name.contains(['*', '?', '[', ']', '!', '\\', '%', '"', '\'']) {
        Some("systemd-networkd gives a meaning of its own to one of its signs")
    } else {
        None
    }
}
