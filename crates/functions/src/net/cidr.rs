//! Networks as addresses with the length of a prefix, read as Go reads them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use setpoint_value::CallError;

/// An address and the length of its network's prefix.
#[derive(Clone, Copy)]
pub(super) struct Cidr {
    /// The address as it was given.
    pub address: IpAddr,
    /// Bits of the network.
    pub prefix: u8,
}

impl Cidr {
    /// Reads `a.b.c.d/n` or the same of IPv6.
    pub(super) fn parse(text: &[u8]) -> Result<Cidr, CallError> {
        let invalid =
            || CallError::catchable(format!("invalid CIDR address: {}", String::from_utf8_lossy(text)));
        let text = std::str::from_utf8(text).map_err(|_| invalid())?;
        let (address, prefix) = text.split_once('/').ok_or_else(invalid)?;
        let address: IpAddr = address.parse().map_err(|_| invalid())?;
        if prefix.is_empty() || prefix.len() > 4 || !prefix.bytes().all(|b| b.is_ascii_digit()) {
            return Err(invalid());
        }
        let prefix: u16 = prefix.parse().map_err(|_| invalid())?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        if prefix > width {
            return Err(invalid());
        }
        Ok(Cidr {
            address,
            prefix: u8::try_from(prefix).map_err(|_| invalid())?,
        })
    }

    /// The netmask.
    pub(super) fn mask(self) -> IpAddr {
        match self.address {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from_bits(self.mask_v4())),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from_bits(self.mask_v6())),
        }
    }

    /// The address whose host bits are zero.
    pub(super) fn network(self) -> IpAddr {
        match self.address {
            IpAddr::V4(a) => IpAddr::V4(Ipv4Addr::from_bits(a.to_bits() & self.mask_v4())),
            IpAddr::V6(a) => IpAddr::V6(Ipv6Addr::from_bits(a.to_bits() & self.mask_v6())),
        }
    }

    /// The address after the given one, if it is in the network.
    pub(super) fn next(self) -> Option<IpAddr> {
        let next = match self.address {
            IpAddr::V4(a) => IpAddr::V4(Ipv4Addr::from_bits(a.to_bits().checked_add(1)?)),
            IpAddr::V6(a) => IpAddr::V6(Ipv6Addr::from_bits(a.to_bits().checked_add(1)?)),
        };
        self.contains(next).then_some(next)
    }

    /// The address whose host bits are all ones, if there are host bits.
    pub(super) fn last(self) -> Option<IpAddr> {
        match self.address {
            IpAddr::V4(a) => {
                (self.prefix < 32).then(|| IpAddr::V4(Ipv4Addr::from_bits(a.to_bits() | !self.mask_v4())))
            }
            IpAddr::V6(a) => {
                (self.prefix < 128).then(|| IpAddr::V6(Ipv6Addr::from_bits(a.to_bits() | !self.mask_v6())))
            }
        }
    }

    /// Whether an address is in the network.
    pub(super) fn contains(self, address: IpAddr) -> bool {
        match (self.address, plain(address)) {
            (IpAddr::V4(a), IpAddr::V4(b)) => (a.to_bits() ^ b.to_bits()) & self.mask_v4() == 0,
            (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits() ^ b.to_bits()) & self.mask_v6() == 0,
            _ => false,
        }
    }

    fn mask_v4(self) -> u32 {
        u32::MAX.checked_shl(32 - u32::from(self.prefix)).unwrap_or(0)
    }

    fn mask_v6(self) -> u128 {
        u128::MAX.checked_shl(128 - u32::from(self.prefix)).unwrap_or(0)
    }
}

/// Reads an address without a zone.
pub(super) fn parse_address(text: &[u8]) -> Option<IpAddr> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// An IPv4 address that is written as one of IPv6.
fn plain(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    }
}

/// An address as Go prints it.
pub(super) fn text(address: IpAddr) -> String {
    plain(address).to_string()
}
