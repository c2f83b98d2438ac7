//! `net`: addresses and names of the network.

use std::net::IpAddr;

use setpoint_value::native::{shown, text};
use setpoint_value::{CallContext, CallError, Interface, Module, Timer, Type, Value, function};

mod cidr;
pub(crate) mod http;
mod url;

use cidr::Cidr;

pub(crate) static MODULE: Module = Module::new(
    "net",
    "Addresses and names of the network.",
    &[
        &CIDR_TO_FIRST,
        &CIDR_TO_IP,
        &CIDR_TO_LAST,
        &CIDR_TO_MASK,
        &CIDR_TO_NETWORK,
        &CIDR_TO_PREFIX,
        &INTERFACE_CIDR,
        &IP_IN_CIDR,
        &IS_MAC,
        &MACFMT,
        &MACS,
        &OLDMACFMT,
        &SPLIT_HOSTPORT,
        &URL_PARSER,
        &WIRED_INTERFACE,
    ],
);

/// The address after the one given, within the network.
///
/// Where there is none, it fails in a way that `<|>` catches.
#[function(
    example(call = r#"net.cidr_to_first("10.0.0.5/24")"#, result = r#""10.0.0.6""#),
    example(call = r#"net.cidr_to_first("10.0.0.0/32") <|> """#, result = r#""""#)
)]
fn cidr_to_first(
    /// An address with the length of its prefix: `10.0.0.5/24`.
    a: &[u8],
) -> Result<String, CallError> {
    let next = Cidr::parse(a)?.next();
    next.map(cidr::text)
        .ok_or_else(|| CallError::catchable("no usable next address"))
}

/// The address before the slash.
#[function(example(call = r#"net.cidr_to_ip("10.0.0.5/24")"#, result = r#""10.0.0.5""#))]
fn cidr_to_ip(
    /// An address with the length of its prefix: `10.0.0.5/24`.
    a: &[u8],
) -> Result<String, CallError> {
    Ok(cidr::text(Cidr::parse(a.trim_ascii())?.address()))
}

/// The last address of the network; of IPv4 the broadcast address.
#[function(example(call = r#"net.cidr_to_last("10.0.0.0/30")"#, result = r#""10.0.0.3""#))]
fn cidr_to_last(
    /// An address with the length of its prefix: `10.0.0.5/24`.
    a: &[u8],
) -> Result<String, CallError> {
    let last = Cidr::parse(a)?.last();
    last.map(cidr::text)
        .ok_or_else(|| CallError::catchable("no usable last address"))
}

/// The netmask.
#[function(example(call = r#"net.cidr_to_mask("10.0.0.5/24")"#, result = r#""255.255.255.0""#))]
fn cidr_to_mask(
    /// An address with the length of its prefix: `10.0.0.5/24`.
    a: &[u8],
) -> Result<String, CallError> {
    Ok(Cidr::parse(a.trim_ascii())?.mask().to_string())
}

/// The address of the network, with the prefix.
#[function(example(call = r#"net.cidr_to_network("10.0.0.5/24")"#, result = r#""10.0.0.0/24""#))]
fn cidr_to_network(
    /// An address with the length of its prefix: `10.0.0.5/24`.
    a: &[u8],
) -> Result<String, CallError> {
    Ok(Cidr::parse(a.trim_ascii())?.network().to_string())
}

/// The length of the prefix.
#[function(example(call = r#"net.cidr_to_prefix("10.0.0.5/24")"#, result = r#""24""#))]
fn cidr_to_prefix(
    /// An address with the length of its prefix: `10.0.0.5/24`.
    a: &[u8],
) -> Result<String, CallError> {
    Ok(Cidr::parse(a.trim_ascii())?.prefix().to_string())
}

/// The first IPv4 address of an interface with the length of its prefix.
///
/// A missing interface or address fails in a way that `<|>` catches.
#[function(
    watch = watch,
    signature = "func(interface str) str",
    example(call = r#"net.interface_cidr("no such interface") <|> "none""#, result = r#""none""#)
)]
fn interface_cidr(
    context: &CallContext<'_>,
    /// The interface's name, as `eth0`.
    interface: &Value,
) -> Result<String, CallError> {
    let name = text(std::slice::from_ref(interface), 0)?;
    let problem = |problem: &str| CallError::catchable(format!("{problem} `{}`", shown(interface)));
    let interfaces = interfaces(context)?;
    let found = interfaces.iter().find(|i| i.name == name);
    let found = found.ok_or_else(|| problem("there is no interface"))?;
    let mut addresses = found.addresses.iter();
    let address = addresses.find(|(address, _)| matches!(address, IpAddr::V4(v4) if is_global_unicast(*v4)));
    let (address, prefix) = address.ok_or_else(|| problem("there is no address at interface"))?;
    Ok(format!("{address}/{prefix}"))
}

/// Whether an address is in a network.
#[function(example(call = r#"net.ip_in_cidr("10.0.0.7", "10.0.0.0/24")"#, result = "true"))]
fn ip_in_cidr(
    /// An address, of version 4 or 6.
    ip: &[u8],
    /// A network: `10.0.0.0/24`.
    cidr: &[u8],
) -> Result<bool, CallError> {
    let address = cidr::parse_address(ip)
        .ok_or_else(|| CallError::catchable(format!("invalid IP: {}", String::from_utf8_lossy(ip))))?;
    Ok(Cidr::parse(cidr)?.contains(address))
}

/// Whether a text is a MAC address in lower case with colons.
#[function(
    example(call = r#"net.is_mac("00:11:22:aa:bb:cc")"#, result = "true"),
    example(call = r#"net.is_mac("00-11-22-AA-BB-CC")"#, result = "false")
)]
fn is_mac(
    /// Any text.
    a: &[u8],
) -> bool {
    a.len() == 17
        && a.iter().enumerate().all(|(index, byte)| match index % 3 {
            2 => *byte == b':',
            _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
        })
}

/// A MAC address in lower case with colons.
#[function(example(
    call = r#"net.macfmt("00-11-22-AA-BB-CC")"#,
    result = r#""00:11:22:aa:bb:cc""#
))]
fn macfmt(
    /// A MAC address with colons or hyphens.
    a: &[u8],
) -> Result<String, CallError> {
    mac_with(a, ':')
}

/// The MAC addresses of the machine's interfaces.
#[function(watch = watch, example(call = "net.macs()", result = ""))]
fn macs(context: &CallContext<'_>) -> Result<Vec<String>, CallError> {
    let interfaces = interfaces(context)?;
    let macs = interfaces.iter().filter(|i| !i.loopback).filter_map(|i| i.mac);
    Ok(macs.map(|mac| mac_text(&mac)).collect())
}

/// A MAC address in lower case with hyphens.
#[function(example(
    call = r#"net.oldmacfmt("00:11:22:AA:BB:CC")"#,
    result = r#""00-11-22-aa-bb-cc""#
))]
fn oldmacfmt(
    /// A MAC address with colons or hyphens.
    a: &[u8],
) -> Result<String, CallError> {
    mac_with(a, '-')
}

/// Host and port of `host:port` or `[host]:port`.
///
/// A text without a port fails in a way that `<|>` catches.
#[function(
    signature = "func(hostport str) struct{host str; port str}",
    example(call = r#"net.split_hostport("[::1]:80")->host"#, result = r#""::1""#)
)]
fn split_hostport(
    /// `host:port`, or `[host]:port` where the host has colons.
    hostport: &[u8],
    result: &Type,
) -> Result<Value, CallError> {
    let (host, port) = url::split_host_port(hostport).map_err(|problem| {
        let text = String::from_utf8_lossy(hostport);
        CallError::catchable(format!("address {text}: {problem}"))
    })?;
    Ok(Value::structure(
        result.clone(),
        vec![Value::str(host), Value::str(port)],
    ))
}

/// The parts of a URL; the host with its port.
///
/// A text that is no URL or has no scheme fails in a way that `<|>` catches.
#[function(
    signature = "func(url str) struct{scheme str; host str; path str; raw_query str}",
    example(
        call = r#"net.url_parser("https://a.example:8080/x?y=z")->host"#,
        result = r#""a.example:8080""#
    )
)]
fn url_parser(
    /// A URL with its scheme.
    url: &[u8],
    result: &Type,
) -> Result<Value, CallError> {
    let parts =
        url::parse(url).map_err(|problem| CallError::catchable(format!("can't parse the URL: {problem}")))?;
    let parts = [parts.scheme, parts.host, parts.path, parts.query];
    Ok(Value::structure(result.clone(), parts.map(Value::str).to_vec()))
}

/// The name of the first wired interface, one that is up if there is any.
///
/// Without one it fails in a way that `<|>` catches.
#[function(watch = watch, example(call = "net.wired_interface()", result = ""))]
fn wired_interface(context: &CallContext<'_>) -> Result<String, CallError> {
    let interfaces = interfaces(context)?;
    let files = context.capabilities.files();
    let wired: Vec<&Interface> = interfaces
        .iter()
        .filter(|i| !i.loopback && i.mac.is_some())
        .filter(|i| !files.exists(&format!("/sys/class/net/{}/wireless", i.name)))
        .collect();
    let chosen = wired.iter().find(|i| i.up).or(wired.first());
    chosen
        .map(|i| i.name.clone())
        .ok_or_else(|| CallError::catchable("there is no wired interface"))
}

/// The interfaces that can be seen.
pub(crate) fn interfaces(context: &CallContext<'_>) -> Result<Vec<Interface>, CallError> {
    let network = context.capabilities.network();
    let network = network.ok_or_else(|| CallError::catchable("the network can't be seen from here"))?;
    network
        .interfaces()
        .map_err(|error| CallError::fatal(format!("can't list network interfaces: {error}")))
}

fn watch(context: &CallContext<'_>, _: &[Value]) -> Result<Vec<Timer>, CallError> {
    let Some(network) = context.capabilities.network() else {
        return Ok(Vec::new());
    };
    let watch = network.watch(context.wake.clone());
    let watch =
        watch.map_err(|error| CallError::fatal(format!("can't watch network interfaces: {error}")))?;
    Ok(vec![watch])
}

/// What Go calls a global unicast address; private ones are.
fn is_global_unicast(address: std::net::Ipv4Addr) -> bool {
    !address.is_broadcast()
        && !address.is_unspecified()
        && !address.is_loopback()
        && !address.is_multicast()
        && !address.is_link_local()
}

/// A MAC address in lower case with colons.
pub(crate) fn mac_text(mac: &[u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

fn mac_with(text: &[u8], separator: char) -> Result<String, CallError> {
    let shown = String::from_utf8_lossy(text);
    if text.len() != 17 {
        return Err(CallError::catchable(format!(
            "invalid MAC address length: {shown}"
        )));
    }
    let mark = text[2];
    let fits = matches!(mark, b':' | b'-')
        && text.iter().enumerate().all(|(index, byte)| match index % 3 {
            2 => *byte == mark,
            _ => byte.is_ascii_hexdigit(),
        });
    if !fits {
        return Err(CallError::catchable(format!("invalid MAC address: {shown}")));
    }
    let plain = shown.to_ascii_lowercase();
    Ok(plain.replace(char::from(mark), &separator.to_string()))
}
