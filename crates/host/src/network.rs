//! Network interfaces: what the kernel knows of them and is told, over its route sockets (rtnetlink(7)).
//!
//! [`NetworkControl`] asks and changes; [`Network`] tells whoever follows an interface that something about it changed, all of them from one
//! socket.

mod changes;

use std::io;
use std::net::IpAddr;

use futures_util::{StreamExt, TryStreamExt};
use ipnet::IpNet;
use rtnetlink::Handle;
use rtnetlink::packet_core::{
    NLM_F_ACK, NLM_F_APPEND, NLM_F_CREATE, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload,
};
use rtnetlink::packet_route::address::{AddressAttribute, AddressFlags, AddressMessage};
use rtnetlink::packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use rtnetlink::packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteNextHop, RouteProtocol,
    RouteType,
};
use rtnetlink::packet_route::{AddressFamily, RouteNetlinkMessage};
use tokio::task::AbortHandle;

pub use changes::{InterfaceChanges, Network};

/// What the kernel answers about an interface that is not there.
const NO_SUCH_DEVICE: i32 = 19;

/// A socket over which the kernel is asked about interfaces and told to change them.
#[derive(Debug)]
pub struct NetworkControl {
    handle: Handle,
    /// Reads and writes for it.
    driver: AbortHandle,
}

/// A network interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// The kernel's number for it.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Whether somebody has set it up; it may be without a carrier all the same.
    pub is_up: bool,
    /// Whether it leads to this machine alone.
    pub is_loopback: bool,
}

/// An address of an interface.
#[derive(Debug, Clone)]
pub struct Address {
    /// The address with the length of its network's prefix.
    pub net: IpNet,
    /// Whether it stays until somebody removes it. Others are kept alive by whoever made them: a DHCP client, or a router that advertises a network.
    pub is_permanent: bool,
    /// Whether another machine was found to have it already (IPv6).
    pub is_duplicate: bool,
    /// Whether the kernel makes a route to its network.
    pub makes_route: bool,
    message: AddressMessage,
}

/// A way out of an interface: a route, or the part of one of several that leads through the interface.
#[derive(Debug, Clone)]
pub struct Route {
    /// Where it leads to; nothing for everything that has no other route.
    pub destination: Option<IpNet>,
    /// Whether it is in the table that is used when no rule says otherwise.
    pub is_in_main_table: bool,
    /// The machine that passes on; none if the destination is on the same network.
    pub gateway: Option<IpAddr>,
    /// Who made it.
    pub maker: RouteMaker,
    interface: u32,
    /// What names it to the kernel.
    message: RouteMessage,
}

/// Who made a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteMaker {
    /// The kernel, for an address.
    Kernel,
    /// The kernel, as a router advertises itself.
    Advertised,
    /// Anybody else.
    Other,
}

impl NetworkControl {
    /// Opens one.
    ///
    /// # Errors
    /// When the system gives none.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn open() -> io::Result<NetworkControl> {
        // Strict checking: the kernel gives one interface's addresses and routes only, and not those of all.
        let (connection, handle, _) = rtnetlink::new_connection_with_strict_check()?;
        let driver = tokio::spawn(connection).abort_handle();
        Ok(NetworkControl { handle, driver })
    }

    /// The interface of this name, if there is one.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub async fn interface(&self, name: &str) -> io::Result<Option<Interface>> {
        let request = self.handle.link().get().match_name(name);
        match request.execute().try_next().await {
            Ok(found) => Ok(found.and_then(|message| interface(&message))),
            Err(error) if is_no_such_device(&error) => Ok(None),
            Err(error) => Err(told(error)),
        }
    }

    /// The names of all interfaces.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub async fn names(&self) -> io::Result<Vec<String>> {
        let all = self.handle.link().get().execute().try_collect::<Vec<_>>().await;
        let all = all.map_err(told)?;
        Ok(all.iter().filter_map(interface).map(|found| found.name).collect())
    }

    /// Sets an interface up or down.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub async fn set_up(&self, interface: &Interface, up: bool) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = interface.index;
        message.header.change_mask = LinkFlags::Up;
        if up {
            message.header.flags = LinkFlags::Up;
        }
        self.handle.link().set(message).execute().await.map_err(told)
    }

    /// The addresses of an interface, in the kernel's order.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub async fn addresses(&self, interface: &Interface) -> io::Result<Vec<Address>> {
        let mut request = self.handle.address().get();
        request = request.set_link_index_filter(interface.index);
        request.message_mut().header.index = interface.index;
        let all = request.execute().try_collect::<Vec<_>>().await.map_err(told)?;
        Ok(all.into_iter().filter_map(Address::of).collect())
    }

    /// Gives an interface an address, which stays.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub async fn add_address(&self, interface: &Interface, net: IpNet) -> io::Result<()> {
        let request = self
            .handle
            .address()
            .add(interface.index, net.addr(), net.prefix_len());
        request.execute().await.map_err(told)
    }

    /// Takes an address away. One that has gone already is no error.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub async fn remove_address(&self, address: &Address) -> io::Result<()> {
        gone(self.handle.address().del(address.message.clone()).execute().await)
    }

    /// The routes of one family that lead out of an interface, of all tables.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub async fn routes(&self, interface: &Interface, family: Family) -> io::Result<Vec<Route>> {
        let mut asked = RouteMessage::default();
        asked.header.address_family = family.of_kernel();
        asked.attributes.push(RouteAttribute::Oif(interface.index));
        let all = self.handle.route().get(asked).execute();
        let all = all.try_collect::<Vec<_>>().await.map_err(told)?;
        let routes = all.into_iter().flat_map(Route::all_of);
        Ok(routes
            .filter(|route| route.interface == interface.index)
            .collect())
    }

    /// Sends everything that has no other route through an interface to a gateway, beside the default routes that there are. With `onlink` the gateway need not be in a
    /// network of the interface.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub async fn add_default_route(
        &self,
        interface: &Interface,
        gateway: IpAddr,
        onlink: bool,
    ) -> io::Result<()> {
        let mut message = route_to_all(Family::of(gateway), interface.index, Some(gateway));
        if onlink {
            message.header.flags |= RouteFlags::Onlink;
        }
        message.header.table = RouteHeader::RT_TABLE_MAIN;
        message.header.protocol = RouteProtocol::Static;
        let mut request = NetlinkMessage::from(RouteNetlinkMessage::NewRoute(message));
        request.header.flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_APPEND;
        let mut answers = self.handle.clone().request(request).map_err(told)?;
        while let Some(answer) = answers.next().await {
            if let NetlinkPayload::Error(answer) = answer.payload
                && answer.code.is_some()
            {
                return Err(answer.to_io());
            }
        }
        Ok(())
    }

    /// Removes a route. One that has gone already is no error.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub async fn remove_route(&self, route: &Route) -> io::Result<()> {
        gone(self.handle.route().del(route.message.clone()).execute().await)
    }
}

impl Drop for NetworkControl {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// A family of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// That of an address.
    #[must_use]
    pub fn of(address: IpAddr) -> Family {
        match address {
            IpAddr::V4(_) => Family::V4,
            IpAddr::V6(_) => Family::V6,
        }
    }

    fn of_kernel(self) -> AddressFamily {
        match self {
            Family::V4 => AddressFamily::Inet,
            Family::V6 => AddressFamily::Inet6,
        }
    }
}

impl Address {
    fn of(message: AddressMessage) -> Option<Address> {
        let (mut own, mut shared) = (None, None);
        let mut flags = AddressFlags::from_bits_retain(u32::from(message.header.flags.bits()));
        for attribute in &message.attributes {
            match attribute {
                // With somebody at the other end, this one is the own address, and the other one theirs.
                AddressAttribute::Local(address) => own = Some(*address),
                AddressAttribute::Address(address) => shared = Some(*address),
                AddressAttribute::Flags(all) => flags = *all,
                _ => {}
            }
        }
        let net = IpNet::new(own.or(shared)?, message.header.prefix_len).ok()?;
        Some(Address {
            net,
            is_permanent: flags.contains(AddressFlags::Permanent),
            is_duplicate: flags.contains(AddressFlags::Dadfailed),
            makes_route: !flags.contains(AddressFlags::Noprefixroute)
                && net.prefix_len() < net.max_prefix_len(),
            message,
        })
    }
}

impl Route {
    /// All that one message of the kernel tells: one for each way.
    fn all_of(message: RouteMessage) -> Vec<Route> {
        let header = &message.header;
        if header.kind != RouteType::Unicast {
            return Vec::new();
        }
        let family = match header.address_family {
            AddressFamily::Inet6 => Family::V6,
            _ => Family::V4,
        };
        let mut table = u32::from(header.table);
        let (mut destination, mut interface, mut gateway, mut priority) = (None, 0, None, None);
        let mut parts = None;
        for attribute in &message.attributes {
            match attribute {
                RouteAttribute::Table(number) => table = *number,
                RouteAttribute::Destination(to) => destination = ip(to),
                RouteAttribute::Oif(index) => interface = *index,
                RouteAttribute::Gateway(by) => gateway = ip(by),
                RouteAttribute::Priority(number) => priority = Some(*number),
                RouteAttribute::MultiPath(several) => parts = Some(several.clone()),
                _ => {}
            }
        }
        // What leads everywhere is written as `0.0.0.0/0` by some, and left out by others.
        let length = header.destination_prefix_length;
        let to = destination
            .filter(|_| length > 0)
            .and_then(|to| IpNet::new(to, length).ok());
        let route = Route {
            destination: to,
            is_in_main_table: table == u32::from(RouteHeader::RT_TABLE_MAIN),
            gateway,
            maker: match header.protocol {
                RouteProtocol::Kernel => RouteMaker::Kernel,
                RouteProtocol::Ra => RouteMaker::Advertised,
                _ => RouteMaker::Other,
            },
            interface,
            message: message.clone(),
        };
        let Some(parts) = parts else {
            return vec![route];
        };
        let of_part = |part: RouteNextHop| {
            let gateway = part.attributes.iter().find_map(|attribute| match attribute {
                RouteAttribute::Gateway(by) => ip(by),
                _ => None,
            });
            let mut named = route_to_all(family, part.interface_index, gateway);
            named.header.destination_prefix_length = length;
            let to = destination.map(|to| RouteAttribute::Destination(to.into()));
            named.attributes.extend(to);
            named.attributes.push(RouteAttribute::Table(table));
            named.attributes.extend(priority.map(RouteAttribute::Priority));
            Route {
                gateway,
                interface: part.interface_index,
                message: named,
                ..route.clone()
            }
        };
        parts.into_iter().map(of_part).collect()
    }
}

/// A route from everywhere to everywhere.
fn route_to_all(family: Family, interface: u32, gateway: Option<IpAddr>) -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header.address_family = family.of_kernel();
    message.header.kind = RouteType::Unicast;
    message.attributes.push(RouteAttribute::Oif(interface));
    let gateway = gateway.map(|gateway| RouteAttribute::Gateway(gateway.into()));
    message.attributes.extend(gateway);
    message
}

fn ip(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(address) => Some((*address).into()),
        RouteAddress::Inet6(address) => Some((*address).into()),
        _ => None,
    }
}

fn interface(message: &LinkMessage) -> Option<Interface> {
    let name = message.attributes.iter().find_map(|attribute| match attribute {
        LinkAttribute::IfName(name) => Some(name.clone()),
        _ => None,
    });
    Some(Interface {
        index: message.header.index,
        name: name?,
        is_up: message.header.flags.contains(LinkFlags::Up),
        is_loopback: message.header.flags.contains(LinkFlags::Loopback),
    })
}

fn is_no_such_device(error: &rtnetlink::Error) -> bool {
    matches!(error, rtnetlink::Error::NetlinkError(refused) if refused.raw_code() == -NO_SUCH_DEVICE)
}

/// Success, too, if what shall go is not there.
fn gone(result: Result<(), rtnetlink::Error>) -> io::Result<()> {
    // No such address, route, process or device.
    const MISSING: [i32; 3] = [99, 3, NO_SUCH_DEVICE];
    match result {
        Err(rtnetlink::Error::NetlinkError(refused)) if MISSING.contains(&-refused.raw_code()) => Ok(()),
        result => result.map_err(told),
    }
}

/// What the kernel says, as the system's own error.
fn told(error: rtnetlink::Error) -> io::Error {
    match error {
        rtnetlink::Error::NetlinkError(refused) => refused.to_io(),
        other => io::Error::other(other.to_string()),
    }
}
