//! Ports as they are written, `80/tcp`, and as firewalld has them: by themselves or in ranges.

use std::fmt;

use setpoint_engine::{Parameter, Words};
use setpoint_graph::{ParameterType, TypeMismatch};
use setpoint_value::Value;

/// One port of a protocol, written `80/tcp`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Port {
    number: u16,
    protocol: Protocol,
}

/// What has ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Tcp,
    Udp,
    Sctp,
    Dccp,
}

impl Words for Protocol {
    const ONE: &'static str = "a protocol with ports";

    fn words() -> impl Iterator<Item = (&'static str, Protocol)> {
        let all = [
            ("tcp", Protocol::Tcp),
            ("udp", Protocol::Udp),
            ("sctp", Protocol::Sctp),
            ("dccp", Protocol::Dccp),
        ];
        all.into_iter()
    }
}

impl Protocol {
    fn word(self) -> &'static str {
        let found = Protocol::words().find(|(_, protocol)| *protocol == self);
        found.map_or("", |(word, _)| word)
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.protocol.word())
    }
}

impl Parameter for Port {
    const TYPE: ParameterType = ParameterType::Str;
    const FORM: Option<fn() -> String> = Some(|| "a port with its protocol, like `80/tcp`".to_owned());

    fn decode(value: &Value) -> Result<Port, TypeMismatch> {
        let written = String::decode(value)?;
        let Some((number, protocol)) = written.split_once('/') else {
            let message = format!("`{written}` is not a port with its protocol");
            let help = match number(&written) {
                Some(number) => format!("is it `{number}/tcp`?"),
                None => "it is written like `80/tcp`".to_owned(),
            };
            return Err(TypeMismatch::new(message).help(help));
        };
        let Some(number) = self::number(number) else {
            let message = format!("`{number}` is not the number of a port");
            let is_range = PortRange::read(number, "").is_some_and(|range| range.low < range.high);
            let help = match is_range {
                true => "a range is not managed as one: write each of its ports",
                false => "it is from 1 to 65535",
            };
            return Err(TypeMismatch::new(message).help(help));
        };
        let protocol = Protocol::decode(&Value::str(protocol))?;
        Ok(Port { number, protocol })
    }

    fn encode(&self) -> Value {
        Value::str(self.to_string())
    }
}

/// What firewalld has in its list: one port, or all from one to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PortRange {
    /// The first port.
    low: u16,
    /// The last one, not below the first.
    high: u16,
    /// Any that firewalld has.
    pub(super) protocol: String,
}

impl From<&Port> for PortRange {
    fn from(port: &Port) -> PortRange {
        PortRange {
            low: port.number,
            high: port.number,
            protocol: port.protocol.word().to_owned(),
        }
    }
}

impl PortRange {
    /// What firewalld wrote: `80` or `8000-8010`.
    pub(super) fn read(ports: &str, protocol: &str) -> Option<PortRange> {
        let (low, high) = ports.split_once('-').unwrap_or((ports, ports));
        let (low, high) = (number(low)?, number(high)?);
        (low <= high).then(|| PortRange {
            low,
            high,
            protocol: protocol.to_owned(),
        })
    }

    pub(super) fn contains(&self, port: &Port) -> bool {
        (self.low..=self.high).contains(&port.number) && self.protocol == port.protocol.word()
    }

    /// What is left of it without a port: what is below, and what is above.
    pub(super) fn without(&self, port: &Port) -> impl Iterator<Item = PortRange> + use<'_> {
        let below = port.number.checked_sub(1).map(|high| (self.low, high));
        let above = port.number.checked_add(1).map(|low| (low, self.high));
        let parts = [below, above].into_iter().flatten();
        parts
            .filter(|(low, high)| low <= high)
            .map(|(low, high)| PortRange {
                low,
                high,
                protocol: self.protocol.clone(),
            })
    }

    /// As firewalld writes it.
    pub(super) fn ports(&self) -> String {
        match self.low == self.high {
            true => self.low.to_string(),
            false => format!("{}-{}", self.low, self.high),
        }
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.ports(), self.protocol)
    }
}

/// The number of a port.
fn number(text: &str) -> Option<u16> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| is_plain && *number > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(text: &str) -> Port {
        Port::decode(&Value::str(text)).expect("it is right")
    }

    #[test]
    fn a_port_is_taken_out_of_a_range_and_the_rest_stays() {
        let range = |text: &str| PortRange::read(text, "tcp").expect("it is right");
        let rest = |of: &str, without: &str| {
            let (of, without) = (range(of), port(without));
            let rest = of.without(&without);
            rest.map(|part| part.ports()).collect::<Vec<_>>()
        };
        assert_eq!(rest("10-20", "15/tcp"), ["10-14", "16-20"]);
        assert_eq!(rest("10-20", "10/tcp"), ["11-20"]);
        assert_eq!(rest("10-20", "19/tcp"), ["10-18", "20"]);
        assert_eq!(rest("1-65535", "65535/tcp"), ["1-65534"]);
        assert_eq!(rest("7", "7/tcp"), [""; 0]);
    }

    #[test]
    fn a_range_contains_what_is_of_its_protocol_and_between_its_ends() {
        let range = PortRange::read("8000-8010", "tcp").expect("it is right");
        for (text, contained) in [
            ("8000/tcp", true),
            ("8010/tcp", true),
            ("7999/tcp", false),
            ("8011/tcp", false),
            ("8005/udp", false),
        ] {
            assert_eq!(range.contains(&port(text)), contained, "{text}");
        }
        for wrong in ["", "http", "0", "9-8", "1-65536", "-1", "1-", "+1"] {
            assert_eq!(PortRange::read(wrong, "tcp"), None, "{wrong}");
        }
    }
}
