//! Networks as addresses with the length of a prefix, read as Go reads them.

use std::net::IpAddr;

use ipnet::IpNet;
use setpoint_value::CallError;

/// An address and the length of its network's prefix.
#[derive(Clone, Copy)]
pub(super) struct Cidr {
    /// As it was given.
    given: IpNet,
    /// The same; as a network of IPv4 where it is one that is written in IPv6.
    plain: IpNet,
}

impl Cidr {
    /// Reads `a.b.c.d/n` or the same of IPv6.
    pub(super) fn parse(text: &[u8]) -> Result<Cidr, CallError> {
        let invalid =
            || CallError::catchable(format!("invalid CIDR address: {}", String::from_utf8_lossy(text)));
        let text = std::str::from_utf8(text).map_err(|_| invalid())?;
        let (address, prefix) = text.split_once('/').ok_or_else(invalid)?;
        let address: IpAddr = address.parse().map_err(|_| invalid())?;
        // Leading zeros are allowed, as long as they are few; signs are not.
        if prefix.is_empty() || prefix.len() > 4 || !prefix.bytes().all(|b| b.is_ascii_digit()) {
            return Err(invalid());
        }
        let prefix: u8 = prefix.parse().map_err(|_| invalid())?;
        let given = IpNet::new(address, prefix).map_err(|_| invalid())?;
        let mapped = plain(address);
        let plain = match prefix.checked_sub(96) {
            // Of a shorter prefix the part that says that it is IPv4 is not fixed.
            Some(prefix) if mapped != address => IpNet::new(mapped, prefix).map_err(|_| invalid())?,
            _ => given,
        };
        Ok(Cidr { given, plain })
    }

    /// The address before the slash.
    pub(super) fn address(self) -> IpAddr {
        self.given.addr()
    }

    /// The number behind the slash.
    pub(super) fn prefix(self) -> u8 {
        self.given.prefix_len()
    }

    /// The netmask, as long as the address was written.
    pub(super) fn mask(self) -> IpAddr {
        self.given.netmask()
    }

    /// The network, host bits zero.
    pub(super) fn network(self) -> IpNet {
        self.plain.trunc()
    }

    /// The address after the given one, if it is in the network.
    pub(super) fn next(self) -> Option<IpAddr> {
        let next = match self.plain.addr() {
            IpAddr::V4(v4) => IpAddr::V4(v4.to_bits().checked_add(1)?.into()),
            IpAddr::V6(v6) => IpAddr::V6(v6.to_bits().checked_add(1)?.into()),
        };
        self.contains(next).then_some(next)
    }

    /// The address whose host bits are all ones, if there are host bits.
    pub(super) fn last(self) -> Option<IpAddr> {
        (self.plain.prefix_len() < self.plain.max_prefix_len()).then(|| self.plain.broadcast())
    }

    /// Whether an address is in the network.
    pub(super) fn contains(self, address: IpAddr) -> bool {
        self.plain.contains(&plain(address))
    }
}

/// Reads an address without a zone.
pub(super) fn parse_address(text: &[u8]) -> Option<IpAddr> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// An IPv4 address that is written as one of IPv6.
fn plain(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

/// An address as Go prints it.
pub(super) fn text(address: IpAddr) -> String {
    plain(address).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cidr(text: &str) -> Cidr {
        Cidr::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn networks_of_ipv4_written_in_ipv6_are_networks_of_ipv4() {
        let mapped = cidr("::ffff:10.0.0.5/120");
        assert_eq!(mapped.network().to_string(), "10.0.0.0/24");
        assert_eq!(mapped.next().map(text).as_deref(), Some("10.0.0.6"));
        assert_eq!(mapped.last().map(text).as_deref(), Some("10.0.0.255"));
        assert_eq!(mapped.prefix(), 120);
        for (address, inside) in [("10.0.0.9", true), ("::ffff:10.0.0.9", true), ("10.0.1.0", false)] {
            let address = parse_address(address.as_bytes()).expect("an address");
            assert_eq!(mapped.contains(address), inside, "{address}");
            assert_eq!(cidr("10.0.0.0/24").contains(address), inside, "{address}");
        }
        // A prefix that does not cover what says that it is IPv4.
        let wide = cidr("::ffff:10.0.0.5/90");
        assert_eq!(wide.network().to_string(), "::ffc0:0:0/90");
        assert_eq!(wide.mask().to_string(), "ffff:ffff:ffff:ffff:ffff:ffc0::");
    }

    #[test]
    fn the_ends_of_networks_are_found() {
        assert_eq!(cidr("10.0.0.255/24").next(), None);
        assert_eq!(cidr("255.255.255.255/0").next(), None);
        assert_eq!(cidr("10.0.0.1/32").last(), None);
        assert_eq!(
            cidr("fe80::1/64").last().map(text).as_deref(),
            Some("fe80::ffff:ffff:ffff:ffff")
        );
        assert_eq!(
            cidr("0.0.0.0/0").last().map(text).as_deref(),
            Some("255.255.255.255")
        );
        for wrong in [
            "10.0.0.1",
            "10.0.0.1/33",
            "10.0.0.1/+8",
            "10.0.0.1/00008",
            "fe80::1%eth0/64",
            "/8",
        ] {
            assert!(Cidr::parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
