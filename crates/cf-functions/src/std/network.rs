//! Functions over addresses and networks. An address is text, so that both families go through the same functions.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use setpoint_cf_names::datum::Datum;

use super::Call;
use crate::context::Failure;

type Answer = Result<Datum, Failure>;

/// An address with the length of its network's prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Interface {
    pub(super) address: IpAddr,
    pub(super) prefix: u8,
}

impl Interface {
    /// Reads `address`, `address/prefix` or, of IPv4, `address/netmask`.
    pub(super) fn parse(text: &str) -> Option<Interface> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let prefix = match prefix {
            None => bits(address),
            Some(prefix) if !prefix.is_empty() && prefix.bytes().all(|b| b.is_ascii_digit()) => {
                prefix.parse().ok().filter(|prefix| *prefix <= bits(address))?
            }
            Some(mask) if address.is_ipv4() => prefix_of_mask(mask.parse().ok()?)?,
            Some(_) => return None,
        };
        Some(Interface { address, prefix })
    }

    /// Reads a network: an interface whose address has no bits behind the prefix.
    pub(super) fn parse_network(text: &str) -> Option<Interface> {
        Interface::parse(text).filter(|network| network.first() == to_number(network.address))
    }

    fn host_bits(self) -> u32 {
        u32::from(bits(self.address) - self.prefix)
    }

    fn host_mask(self) -> u128 {
        1u128
            .checked_shl(self.host_bits())
            .map_or(u128::MAX, |bit| bit - 1)
    }

    fn first(self) -> u128 {
        to_number(self.address) & !self.host_mask()
    }
}

fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// The length of the prefix that a netmask or a hostmask stands for.
fn prefix_of_mask(mask: Ipv4Addr) -> Option<u8> {
    let of_netmask = |mask: u32| {
        let ones = mask.leading_ones();
        (mask.checked_shl(ones).unwrap_or(0) == 0).then_some(ones)
    };
    let mask = u32::from(mask);
    let ones = of_netmask(mask).or_else(|| of_netmask(!mask))?;
    u8::try_from(ones).ok()
}

fn to_number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    }
}

/// The address of a number, in the family of another.
fn to_address(number: u128, like: IpAddr) -> Option<IpAddr> {
    match like {
        IpAddr::V4(_) => Some(Ipv4Addr::from(u32::try_from(number).ok()?).into()),
        IpAddr::V6(_) => Some(Ipv6Addr::from(number).into()),
    }
}

fn interface(call: &Call<'_>) -> Result<Interface, Failure> {
    let text = call.text(0)?;
    Interface::parse(&text).ok_or_else(|| Failure::Other(format!("`{text}` is no address")))
}

fn answer(number: u128, like: IpAddr) -> Answer {
    match to_address(number, like) {
        Some(address) => Ok(Datum::text(address.to_string())),
        None => Err(Failure::Other("there is no such address".to_owned())),
    }
}

pub(super) fn prefixlength_to_netmask(call: &mut Call<'_>) -> Answer {
    let length = call.int(0)?;
    match u32::try_from(length) {
        Ok(length @ 0..=32) => {
            let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
            Ok(Datum::text(Ipv4Addr::from(mask).to_string()))
        }
        _ => Err(Failure::Other(format!(
            "a prefix has from 0 to 32 bits, not {length}"
        ))),
    }
}

pub(super) fn prefixlen(call: &mut Call<'_>) -> Answer {
    Ok(Datum::Int(i64::from(interface(call)?.prefix)))
}

pub(super) fn network_address(call: &mut Call<'_>) -> Answer {
    let interface = interface(call)?;
    answer(interface.first(), interface.address)
}

pub(super) fn netmask(call: &mut Call<'_>) -> Answer {
    let interface = interface(call)?;
    let all = if interface.address.is_ipv4() {
        u128::from(u32::MAX)
    } else {
        u128::MAX
    };
    answer(all & !interface.host_mask(), interface.address)
}

pub(super) fn address(call: &mut Call<'_>) -> Answer {
    Ok(Datum::text(interface(call)?.address.to_string()))
}

pub(super) fn ipindex(call: &mut Call<'_>) -> Answer {
    let text = call.text(0)?;
    let Some(network) = Interface::parse_network(&text) else {
        return Err(Failure::Other(format!("`{text}` is no network")));
    };
    let (position, keep_prefix) = (call.int(1)?, call.bool(2)?);
    let last = network.host_mask();
    let offset = if position < 0 {
        // The last one is at -1.
        last.checked_sub(u128::from(position.unsigned_abs()) - 1)
    } else {
        Some(u128::from(position.unsigned_abs())).filter(|offset| *offset <= last)
    };
    let address = offset.and_then(|offset| to_address(network.first() + offset, network.address));
    let Some(address) = address else {
        return Err(Failure::Other(format!(
            "address {position} is out of range for network `{text}`"
        )));
    };
    Ok(Datum::text(if keep_prefix {
        format!("{address}/{}", network.prefix)
    } else {
        address.to_string()
    }))
}

pub(super) fn add_to_ip(call: &mut Call<'_>) -> Answer {
    let (text, offset) = (call.text(0)?, call.int(1)?);
    let address: IpAddr = text
        .parse()
        .map_err(|_| Failure::Other(format!("`{text}` is no address")))?;
    let sum = to_number(address).checked_add_signed(i128::from(offset));
    match sum.and_then(|sum| to_address(sum, address)) {
        Some(address) => Ok(Datum::text(address.to_string())),
        None => Err(Failure::Other(format!(
            "there is no address {offset} behind `{text}`"
        ))),
    }
}
