//! What the typedefs of `std` accept, and types of the validation library by their names there.

use std::net::{Ipv4Addr, Ipv6Addr};

use setpoint_cf_names::datum::{Datum, Dict};
use uuid::Uuid;

use super::network::Interface;
use super::text::is_base64;
use crate::text::float_representation;

/// Whether a typedef of `std` whose base is `string` accepts a text. True for a name that is none of them.
pub(crate) fn accepts_typedef(typedef: &str, text: &str) -> bool {
    let name = typedef.strip_prefix("std::").unwrap_or(typedef);
    match name {
        "date" => is_date(text),
        "time" => is_time(text),
        "datetime" => is_datetime(text),
        "ipv4_address" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6_address" => text.parse::<Ipv6Addr>().is_ok(),
        "ipv_any_address" => text.parse::<std::net::IpAddr>().is_ok(),
        "ipv4_interface" => Interface::parse(text).is_some_and(|interface| interface.address.is_ipv4()),
        "ipv6_interface" => Interface::parse(text).is_some_and(|interface| interface.address.is_ipv6()),
        "ipv_any_interface" => Interface::parse(text).is_some(),
        "ipv4_network" => Interface::parse_network(text).is_some_and(|network| network.address.is_ipv4()),
        "ipv6_network" => Interface::parse_network(text).is_some_and(|network| network.address.is_ipv6()),
        "ipv_any_network" => Interface::parse_network(text).is_some(),
        "uuid" => Uuid::parse_str(text).is_ok(),
        "email_str" => is_email(text),
        "name_email" => is_name_email(text),
        "any_url" => Url::parse(text).is_some(),
        "any_http_url" => Url::parse(text).is_some_and(|url| url.is_http()),
        "http_url" => text.chars().count() <= 2083 && Url::parse(text).is_some_and(|url| url.is_http()),
        "base64" => is_base64(text),
        _ => true,
    }
}

/// Types of the validation library that are no constrained numbers or texts, with the typedef that accepts the same.
const NAMES: &[(&str, &str)] = &[
    ("datetime.date", "date"),
    ("datetime.time", "time"),
    ("datetime.datetime", "datetime"),
    ("ipaddress.IPv4Address", "ipv4_address"),
    ("ipaddress.IPv6Address", "ipv6_address"),
    ("ipaddress.IPv4Interface", "ipv4_interface"),
    ("ipaddress.IPv6Interface", "ipv6_interface"),
    ("ipaddress.IPv4Network", "ipv4_network"),
    ("ipaddress.IPv6Network", "ipv6_network"),
    ("pydantic.IPvAnyAddress", "ipv_any_address"),
    ("pydantic.IPvAnyInterface", "ipv_any_interface"),
    ("pydantic.IPvAnyNetwork", "ipv_any_network"),
    ("uuid.UUID", "uuid"),
    ("pydantic.UUID", "uuid"),
    ("pydantic.EmailStr", "email_str"),
    ("pydantic.NameEmail", "name_email"),
    ("pydantic.AnyUrl", "any_url"),
    ("pydantic.AnyHttpUrl", "any_http_url"),
    ("pydantic.HttpUrl", "http_url"),
    ("pydantic.Base64Str", "base64"),
    ("pydantic.Base64Bytes", "base64"),
];

/// Whether a value is of a type of the validation library, with parameters that narrow it.
pub(super) fn validate(name: &str, value: &Datum, parameters: &Dict) -> Result<bool, String> {
    let Some((module, short)) = name.split_once('.') else {
        return Ok(false);
    };
    if !["pydantic", "datetime", "ipaddress", "uuid"].contains(&module) {
        return Ok(false);
    }
    if let Some((_, typedef)) = NAMES.iter().find(|(known, _)| *known == name) {
        if let Some((parameter, _)) = parameters.iter().next() {
            return Err(format!("`{name}` has no parameter `{parameter}`"));
        }
        return Ok(matches!(value, Datum::Text(text) if accepts_typedef(typedef, text)));
    }
    let number = |low: Option<f64>, high: Option<f64>, integer: bool| {
        let limits = Limits::read(name, parameters, low, high)?;
        Ok(limits.accepts(value, integer))
    };
    match (module, short) {
        ("pydantic", "constr") => constrained_text(value, parameters),
        ("pydantic", "conint") => number(None, None, true),
        ("pydantic", "confloat" | "condecimal") => number(None, None, false),
        ("pydantic", "PositiveInt") => number(Some(0.0), None, true),
        ("pydantic", "NegativeInt") => number(None, Some(0.0), true),
        ("pydantic", "PositiveFloat") => number(Some(0.0), None, false),
        ("pydantic", "NegativeFloat") => number(None, Some(0.0), false),
        _ => Err(format!("`{name}` is no type that can be validated here")),
    }
}

/// What a constrained number must fulfil.
#[derive(Default)]
struct Limits {
    above: Option<f64>,
    from: Option<f64>,
    below: Option<f64>,
    to: Option<f64>,
    multiple_of: Option<f64>,
    digits: Option<usize>,
    places: Option<usize>,
    strict: bool,
}

impl Limits {
    fn read(name: &str, parameters: &Dict, above: Option<f64>, below: Option<f64>) -> Result<Limits, String> {
        let mut limits = Limits {
            above,
            below,
            ..Limits::default()
        };
        for (parameter, value) in parameters.iter() {
            let number = || match value.unmarked() {
                Datum::Null => Ok(None),
                Datum::Int(int) => Ok(Some(*int as f64)),
                Datum::Float(float) => Ok(Some(*float)),
                _ => Err(format!("parameter `{parameter}` of `{name}` is a number")),
            };
            match &**parameter {
                "gt" => limits.above = number()?,
                "ge" => limits.from = number()?,
                "lt" => limits.below = number()?,
                "le" => limits.to = number()?,
                "multiple_of" => limits.multiple_of = number()?,
                "max_digits" => limits.digits = count(parameter, value)?,
                "decimal_places" => limits.places = count(parameter, value)?,
                "strict" => limits.strict = matches!(value.unmarked(), Datum::Bool(true)),
                _ => return Err(format!("`{name}` has no parameter `{parameter}`")),
            }
        }
        Ok(limits)
    }

    fn accepts(&self, value: &Datum, integer: bool) -> bool {
        // Unless it is strict, what reads as a number is taken for one.
        let (number, text) = match value {
            Datum::Int(int) => (*int as f64, int.to_string()),
            Datum::Float(float) if !integer || !self.strict => (*float, float_representation(*float)),
            Datum::Bool(bool) if !self.strict => (f64::from(u8::from(*bool)), u8::from(*bool).to_string()),
            Datum::Text(text) if !self.strict => match text.trim().parse::<f64>() {
                Ok(number) => (number, text.trim().to_owned()),
                Err(_) => return false,
            },
            _ => return false,
        };
        if integer && (number.fract() != 0.0 || !number.is_finite()) {
            return false;
        }
        let digits = text.trim_start_matches(['-', '+']);
        let (whole, places) = digits.split_once('.').unwrap_or((digits, ""));
        let places = places.trim_end_matches('0').len();
        let whole = whole.trim_start_matches('0').len();
        self.above.is_none_or(|limit| number > limit)
            && self.from.is_none_or(|limit| number >= limit)
            && self.below.is_none_or(|limit| number < limit)
            && self.to.is_none_or(|limit| number <= limit)
            && self.multiple_of.is_none_or(|of| is_multiple(number, of))
            && self.digits.is_none_or(|most| whole + places <= most)
            && self.places.is_none_or(|most| places <= most)
    }
}

/// Whether a number is so many times another, as far as floats can tell.
fn is_multiple(number: f64, of: f64) -> bool {
    let times = number / of;
    times.is_finite() && (times - times.round()).abs() <= 1e-9 * times.abs().max(1.0)
}

fn count(parameter: &str, value: &Datum) -> Result<Option<usize>, String> {
    match value.unmarked() {
        Datum::Null => Ok(None),
        Datum::Int(int) => usize::try_from(*int)
            .map(Some)
            .map_err(|_| format!("parameter `{parameter}` is not negative")),
        _ => Err(format!("parameter `{parameter}` is a whole number")),
    }
}

fn constrained_text(value: &Datum, parameters: &Dict) -> Result<bool, String> {
    let Datum::Text(text) = value else {
        return Ok(false);
    };
    let length = text.chars().count();
    let mut accepted = true;
    for (parameter, wanted) in parameters.iter() {
        accepted &= match (&**parameter, wanted.unmarked()) {
            ("min_length", wanted) => count(parameter, wanted)?.is_none_or(|least| length >= least),
            ("max_length", wanted) => count(parameter, wanted)?.is_none_or(|most| length <= most),
            ("regex" | "pattern", Datum::Text(pattern)) => {
                let regex = fancy_regex::Regex::new(&format!("^(?:{pattern})"))
                    .map_err(|error| format!("the pattern `{pattern}` cannot be read: {error}"))?;
                regex
                    .is_match(text)
                    .map_err(|error| format!("the pattern `{pattern}` gives no answer: {error}"))?
            }
            ("regex" | "pattern", Datum::Null) | ("strict", Datum::Bool(_)) => true,
            _ => {
                return Err(format!(
                    "`pydantic.constr` has no parameter `{parameter}` of this type"
                ));
            }
        };
    }
    Ok(accepted)
}

/// So many digits, as a number.
fn digits(text: &str, count: usize) -> Option<i16> {
    (text.len() == count && text.bytes().all(|b| b.is_ascii_digit()))
        .then(|| text.parse().ok())
        .flatten()
}

fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts.as_slice() else {
        return false;
    };
    let (Some(year), Some(month), Some(day)) = (digits(year, 4), digits(month, 2), digits(day, 2)) else {
        return false;
    };
    let (Ok(month), Ok(day)) = (i8::try_from(month), i8::try_from(day)) else {
        return false;
    };
    year > 0 && jiff::civil::Date::new(year, month, day).is_ok()
}

fn is_time(text: &str) -> bool {
    let Some(zone) = text.find(['Z', 'z', '+', '-']) else {
        return is_clock(text);
    };
    is_clock(&text[..zone]) && is_zone(&text[zone..])
}

/// `HH:MM[:SS[.ffffff]]`.
fn is_clock(text: &str) -> bool {
    let mut parts = text.split(':');
    let (Some(hour), Some(minute)) = (parts.next(), parts.next()) else {
        return false;
    };
    let seconds = match (parts.next(), parts.next()) {
        (None, _) => true,
        (Some(_), Some(_)) => false,
        (Some(seconds), None) => {
            let (whole, fraction) = match seconds.split_once('.') {
                Some((whole, fraction)) => (whole, Some(fraction)),
                None => (seconds, None),
            };
            digits(whole, 2).is_some_and(|second| second < 60)
                && fraction.is_none_or(|fraction| {
                    (1..=6).contains(&fraction.len()) && fraction.bytes().all(|b| b.is_ascii_digit())
                })
        }
    };
    seconds
        && digits(hour, 2).is_some_and(|hour| hour < 24)
        && digits(minute, 2).is_some_and(|minute| minute < 60)
}

/// `Z`, `±HH:MM` or `±HHMM`.
fn is_zone(text: &str) -> bool {
    if matches!(text, "Z" | "z") {
        return true;
    }
    let Some(offset) = text.strip_prefix(['+', '-']) else {
        return false;
    };
    let (hour, minute) = match offset.split_once(':') {
        Some(parts) => parts,
        None if offset.len() == 4 && offset.is_ascii() => offset.split_at(2),
        None => return false,
    };
    digits(hour, 2).is_some_and(|hour| hour < 24) && digits(minute, 2).is_some_and(|minute| minute < 60)
}

fn is_datetime(text: &str) -> bool {
    let stamp = text.strip_prefix('-').unwrap_or(text);
    if stamp.bytes().next().is_some_and(|b| b.is_ascii_digit())
        && stamp.bytes().all(|b| b.is_ascii_digit() || b == b'.')
        && stamp.bytes().filter(|b| *b == b'.').count() <= 1
    {
        return true;
    }
    match (text.get(..10), text.get(10..11), text.get(11..)) {
        (Some(date), Some("T" | "t" | " " | "_"), Some(time)) => is_date(date) && is_time(time),
        _ => false,
    }
}

/// Domains that nobody can be reached at.
const SPECIAL_DOMAINS: &[&str] = &["arpa", "invalid", "local", "localhost", "onion", "test"];

fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else {
        return false;
    };
    let is_atom = |atom: &str| {
        !atom.is_empty()
            && atom
                .chars()
                .all(|c| c.is_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c))
    };
    local.len() <= 64 && local.split('.').all(is_atom) && is_mail_domain(domain)
}

fn is_mail_domain(domain: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.chars().all(|c| c.is_alphanumeric() || c == '-')
    };
    let top = domain.rsplit('.').next().unwrap_or("").to_lowercase();
    domain.len() <= 253
        && domain.contains('.')
        && domain.split('.').all(is_label)
        && !top.bytes().all(|b| b.is_ascii_digit())
        && !SPECIAL_DOMAINS.contains(&&*top)
}

/// `Name <local@domain>`, or the address alone.
fn is_name_email(text: &str) -> bool {
    match text
        .trim()
        .strip_suffix('>')
        .and_then(|rest| rest.split_once('<'))
    {
        Some((name, address)) => !name.contains(['@', '>']) && is_email(address.trim()),
        None => is_email(text.trim()),
    }
}

/// A URL, as far as it is judged.
struct Url {
    scheme: String,
}

impl Url {
    fn parse(text: &str) -> Option<Url> {
        let (scheme, rest) = text.split_once(':')?;
        let valid = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"+.-".contains(&b));
        if !valid || rest.is_empty() || text.chars().any(|c| c.is_control() || c == ' ') {
            return None;
        }
        let scheme = scheme.to_ascii_lowercase();
        let needs_host = matches!(&*scheme, "http" | "https" | "ws" | "wss" | "ftp");
        let authority = rest.strip_prefix("//").map(|rest| {
            let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
            &rest[..end]
        });
        let has_host = authority.is_some_and(|authority| {
            let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
            is_host_with_port(host)
        });
        let accepted = match authority {
            _ if needs_host => has_host,
            Some("") | None => true,
            Some(_) => has_host,
        };
        accepted.then_some(Url { scheme })
    }

    fn is_http(&self) -> bool {
        matches!(&*self.scheme, "http" | "https")
    }
}

fn is_host_with_port(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((host, rest)) if host.parse::<Ipv6Addr>().is_ok() => {
                ("v6", rest.strip_prefix(':').or((!rest.is_empty()).then_some("-")))
            }
            _ => return false,
        },
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let forbidden = |c: char| "<>\"{}|\\^`[]%".contains(c);
    !host.is_empty()
        && !host.contains(forbidden)
        && port.is_none_or(|port| port.is_empty() || port.parse::<u16>().is_ok())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// What a typedef accepts, and what it refuses.
    const CASES: &[(&str, &[&str], &[&str])] = &[
        (
            "date",
            &["2024-02-29"],
            &["2023-02-29", "2024-2-9", "20240229", "0000-01-01", ""],
        ),
        (
            "time",
            &[
                "09:30",
                "23:59:59",
                "23:59:59.5",
                "09:30Z",
                "09:30:00+02:00",
                "09:30-0130",
            ],
            &["9:30", "24:00", "09:60", "09:30:00.", "09:30+2"],
        ),
        (
            "datetime",
            &[
                "2024-01-31T09:30",
                "2024-01-31 09:30:00Z",
                "2024-01-31_09:30+01:00",
                "1700000000",
                "-1.5",
            ],
            &["2024-01-31", "2024-01-31X09:30", "now", "1.2.3"],
        ),
        (
            "ipv4_address",
            &["10.0.0.1"],
            &["10.0.0.1/8", "10.0.0", "010.0.0.1", "::1"],
        ),
        ("ipv6_address", &["::1", "2001:db8::1"], &["10.0.0.1", "::1/64"]),
        ("ipv_any_address", &["10.0.0.1", "::1"], &["host"]),
        (
            "ipv4_interface",
            &[
                "10.0.0.1",
                "10.0.0.1/8",
                "10.0.0.1/255.0.0.0",
                "10.0.0.1/0.255.255.255",
            ],
            &["10.0.0.1/33", "10.0.0.1/255.0.255.0", "10.0.0.1/", "::1"],
        ),
        ("ipv6_interface", &["::1/64", "::1"], &["::1/129", "::1/ffff::"]),
        ("ipv_any_interface", &["::1/64", "10.0.0.1/8"], &["x/8"]),
        (
            "ipv4_network",
            &["10.0.0.0/8", "0.0.0.0/0", "10.1.2.3"],
            &["10.0.0.1/8"],
        ),
        ("ipv6_network", &["2001:db8::/32", "::/0"], &["2001:db8::1/32"]),
        ("ipv_any_network", &["10.0.0.0/8", "::/0"], &["10.0.0.1/8"]),
        (
            "uuid",
            &[
                "67e55044-10b1-426f-9247-bb680e5fe0c8",
                "67e5504410b1426f9247bb680e5fe0c8",
                "{67e55044-10b1-426f-9247-bb680e5fe0c8}",
                "urn:uuid:67e55044-10b1-426f-9247-bb680e5fe0c8",
            ],
            &["67e55044", ""],
        ),
        (
            "email_str",
            &["a.b+c@example.org"],
            &[
                "a@b",
                "@example.org",
                "a..b@example.org",
                "a@example.test",
                "a@-x.org",
                "a",
            ],
        ),
        (
            "name_email",
            &["Ann Example <ann@example.org>", "ann@example.org"],
            &["Ann <ann>", "Ann ann@example.org"],
        ),
        (
            "any_url",
            &[
                "ftp://example.org/x",
                "mailto:a@example.org",
                "redis://localhost:6379/0",
            ],
            &["example.org", "http://", "://x", "x: y"],
        ),
        (
            "any_http_url",
            &["http://localhost:8080/x?y#z", "https://[::1]:443/"],
            &["ftp://example.org", "http://:80", "http://a:99999/"],
        ),
        (
            "http_url",
            &["https://user:secret@example.org"],
            &["ftp://example.org", "http://a b/"],
        ),
        ("base64", &["", "YQ==", "YWJj"], &["YQ", "YQ=", "a b=", "YQ==\n"]),
    ];

    #[test]
    fn each_typedef_accepts_and_refuses() {
        for (typedef, accepted, refused) in CASES {
            for text in *accepted {
                assert!(accepts_typedef(typedef, text), "{typedef} accepts {text:?}");
            }
            for text in *refused {
                assert!(!accepts_typedef(typedef, text), "{typedef} refuses {text:?}");
            }
        }
    }

    fn dict(entries: &[(&str, Datum)]) -> Dict {
        entries
            .iter()
            .map(|(key, value)| (Arc::from(*key), value.clone()))
            .collect()
    }

    #[test]
    fn types_of_the_validation_library_go_by_name() {
        let none = Dict::default();
        let valid = |name: &str, value: Datum, parameters: &[(&str, Datum)]| {
            validate(name, &value, &dict(parameters))
        };
        for (name, typedef) in NAMES {
            let (_, accepted, refused) = CASES
                .iter()
                .find(|(known, ..)| known == typedef)
                .expect("it has a case");
            assert_eq!(
                validate(name, &Datum::text(accepted[0]), &none),
                Ok(true),
                "{name}"
            );
            assert_eq!(
                validate(name, &Datum::text(refused[0]), &none),
                Ok(false),
                "{name}"
            );
        }
        assert_eq!(
            valid(
                "pydantic.conint",
                Datum::Int(5),
                &[("ge", Datum::Int(5)), ("lt", Datum::Int(6))]
            ),
            Ok(true)
        );
        assert_eq!(
            valid("pydantic.conint", Datum::Int(5), &[("gt", Datum::Int(5))]),
            Ok(false)
        );
        assert_eq!(valid("pydantic.conint", Datum::Float(5.5), &[]), Ok(false));
        assert_eq!(valid("pydantic.conint", Datum::text("5"), &[]), Ok(true));
        assert_eq!(
            valid(
                "pydantic.conint",
                Datum::text("5"),
                &[("strict", Datum::Bool(true))]
            ),
            Ok(false)
        );
        assert_eq!(
            valid(
                "pydantic.confloat",
                Datum::Float(0.3),
                &[("multiple_of", Datum::Float(0.1))]
            ),
            Ok(true)
        );
        assert_eq!(
            valid(
                "pydantic.condecimal",
                Datum::text("12.345"),
                &[("max_digits", Datum::Int(5))]
            ),
            Ok(true)
        );
        assert_eq!(
            valid(
                "pydantic.condecimal",
                Datum::text("12.345"),
                &[("decimal_places", Datum::Int(2))]
            ),
            Ok(false)
        );
        assert_eq!(
            valid(
                "pydantic.constr",
                Datum::text("ab"),
                &[("min_length", Datum::Int(2)), ("regex", Datum::text("[a-z]"))]
            ),
            Ok(true)
        );
        assert_eq!(
            valid(
                "pydantic.constr",
                Datum::text("1b"),
                &[("pattern", Datum::text("[a-z]"))]
            ),
            Ok(false)
        );
        assert_eq!(valid("pydantic.constr", Datum::Int(1), &[]), Ok(false));
        assert_eq!(valid("pydantic.PositiveInt", Datum::Int(0), &[]), Ok(false));
        assert_eq!(valid("pydantic.NegativeFloat", Datum::Float(-0.5), &[]), Ok(true));
        assert_eq!(valid("builtins.int", Datum::Int(0), &[]), Ok(false));
        assert!(valid("pydantic.SecretStr", Datum::text(""), &[]).is_err());
        assert!(valid("pydantic.conint", Datum::Int(0), &[("least", Datum::Int(0))]).is_err());
    }
}
