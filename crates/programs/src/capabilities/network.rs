//! Network interfaces.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::{InterfaceFlags, if_nametoindex};
use nix::sys::socket::SockaddrStorage;
use setpoint_value::{Interface, Network, Timer, Wake};

use super::kernel::{KernelEvents, Topic};

/// The network of the machine.
pub(super) struct RealNetwork {
    kernel: Arc<KernelEvents>,
}

impl RealNetwork {
    pub(super) fn new(kernel: Arc<KernelEvents>) -> RealNetwork {
        RealNetwork { kernel }
    }
}

impl Network for RealNetwork {
    fn interfaces(&self) -> io::Result<Vec<Interface>> {
        let mut by_name: BTreeMap<String, Interface> = BTreeMap::new();
        for found in getifaddrs()? {
            let interface = by_name
                .entry(found.interface_name.clone())
                .or_insert_with(|| Interface {
                    // An interface that has gone meanwhile has no number any more.
                    index: if_nametoindex(&*found.interface_name).unwrap_or(0),
                    name: found.interface_name.clone(),
                    loopback: found.flags.contains(InterfaceFlags::IFF_LOOPBACK),
                    up: found.flags.contains(InterfaceFlags::IFF_UP),
                    mac: None,
                    addresses: Vec::new(),
                });
            let Some(address) = &found.address else { continue };
            if let Some(link) = address.as_link_addr() {
                interface.mac = link.addr().filter(|mac| *mac != [0; 6]);
            } else if let Some(own) = ip(address) {
                let length = found.netmask.as_ref().and_then(ip).map_or(0, prefix_length);
                interface.addresses.push((own, length));
            }
        }
        let mut interfaces: Vec<Interface> = by_name.into_values().filter(|found| found.index != 0).collect();
        interfaces.sort_by_key(|found| found.index);
        Ok(interfaces)
    }

    fn watch(&self, wake: Wake) -> io::Result<Timer> {
        self.kernel.listen(Topic::Network, wake)
    }
}

fn ip(address: &SockaddrStorage) -> Option<IpAddr> {
    let four = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
    four.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
}

fn prefix_length(mask: IpAddr) -> u8 {
    let bits = match mask {
        IpAddr::V4(mask) => mask.to_bits().count_ones(),
        IpAddr::V6(mask) => mask.to_bits().count_ones(),
    };
    u8::try_from(bits).unwrap_or(128)
}
