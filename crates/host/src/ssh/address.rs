//! Where an SSH server is, and as whom one comes there: `ssh://user@host:port/?hostkey=KEY`.

use std::fmt;

use percent_encoding::percent_decode_str;

use super::HostKey;

/// The port of SSH servers.
const PORT: u16 = 22;
/// Who one is where nobody says otherwise.
const USER: &str = "root";

/// Why a text names no SSH server. What it says repeats no password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidAddress {
    /// It is of something else.
    #[error("`{0}://` is not SSH: an address is `ssh://user@host:port`")]
    Scheme(String),
    /// There is no host in it.
    #[error("there is no host in it: an address is `ssh://user@host:port`")]
    NoHost,
    /// The user is nothing.
    #[error("there is no user before the `@`")]
    NoUser,
    /// A name or password is no text, or has characters that none has.
    #[error(
        "its {0} is no text that can be one; other characters than letters and digits are written as `%XX`"
    )]
    Text(&'static str),
    /// The port is none.
    #[error("`{0}` is no port: a number from 1 to 65535")]
    Port(String),
    /// Behind the host is what means nothing.
    #[error("`{0}` means nothing behind the host: only `?hostkey=KEY` does")]
    Rest(String),
    /// The key in it is none.
    #[error("its host key cannot be used: {0}")]
    HostKey(super::InvalidHostKey),
}

/// An SSH server, and who one is there.
#[derive(Clone, PartialEq, Eq)]
pub struct SshAddress {
    /// Who one is.
    pub user: String,
    /// A password that was written into the address.
    pub password: Option<String>,
    /// Its name or number; a number of IPv6 without brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The key that it must have.
    pub host_key: Option<HostKey>,
}

impl SshAddress {
    /// Reads `[ssh://][user[:password]@]host[:port][/][?hostkey=KEY]`.
    ///
    /// # Errors
    /// When it names no server.
    pub fn parse(text: &str) -> Result<SshAddress, InvalidAddress> {
        let rest = match text.split_once("://") {
            Some(("ssh", rest)) => rest,
            Some((scheme, _)) => return Err(InvalidAddress::Scheme(scheme.to_owned())),
            None => text,
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, behind) = rest.split_at(end);
        let (who, place) = match authority.rsplit_once('@') {
            Some((who, place)) => (Some(who), place),
            None => (None, authority),
        };
        let (user, password) = match who.map(|who| who.split_once(':').ok_or(who)) {
            None => (USER.to_owned(), None),
            Some(Err(user)) => (decoded(user, "user")?, None),
            Some(Ok((user, password))) => (decoded(user, "user")?, Some(decoded(password, "password")?)),
        };
        if user.is_empty() {
            return Err(InvalidAddress::NoUser);
        }
        let (host, port) = host_and_port(place)?;
        let mut query = behind.strip_prefix('/').unwrap_or(behind);
        let mut host_key = None;
        if let Some(text) = query.strip_prefix("?hostkey=") {
            // In a query a plus may have been meant as a blank by who wrote it down; a key has none.
            let key = decoded(text, "host key")?.replace(' ', "+");
            host_key = Some(HostKey::parse(&key).map_err(InvalidAddress::HostKey)?);
            query = "";
        }
        if !query.is_empty() {
            return Err(InvalidAddress::Rest(query.to_owned()));
        }
        Ok(SshAddress {
            user,
            password,
            host,
            port,
            host_key,
        })
    }

    /// Host and port, for messages.
    pub(super) fn place(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

/// Host and port as files of known hosts write them: the port only where it is another than 22.
pub(super) fn known_as(host: &str, port: u16) -> String {
    let host = host.to_ascii_lowercase();
    match port {
        PORT => host,
        port => format!("[{host}]:{port}"),
    }
}

/// The address without password and key.
impl fmt::Display for SshAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ssh://{}@{}", self.user, self.place())
    }
}

impl fmt::Debug for SshAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn host_and_port(place: &str) -> Result<(String, u16), InvalidAddress> {
    let (host, port) = match place.strip_prefix('[') {
        Some(inner) => {
            let (host, port) = inner.split_once(']').ok_or(InvalidAddress::NoHost)?;
            match port.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None if port.is_empty() => (host, None),
                None => return Err(InvalidAddress::Rest(port.to_owned())),
            }
        }
        None => match place.rsplit_once(':') {
            // More than one colon without brackets is a number of IPv6.
            Some((host, _)) if host.contains(':') => (place, None),
            Some((host, port)) => (host, Some(port)),
            None => (place, None),
        },
    };
    if host.is_empty() {
        return Err(InvalidAddress::NoHost);
    }
    let is_possible = |letter: char| letter.is_alphanumeric() || ".-_:%".contains(letter);
    if !host.chars().all(is_possible) {
        return Err(InvalidAddress::Text("host"));
    }
    let port = match port {
        None => PORT,
        Some(text) => match text.parse() {
            Ok(port) if port > 0 => port,
            _ => return Err(InvalidAddress::Port(text.to_owned())),
        },
    };
    Ok((host.to_owned(), port))
}

fn decoded(text: &str, what: &'static str) -> Result<String, InvalidAddress> {
    let text = percent_decode_str(text)
        .decode_utf8()
        .map_err(|_| InvalidAddress::Text(what))?;
    match text.chars().any(char::is_control) {
        true => Err(InvalidAddress::Text(what)),
        false => Ok(text.into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> String {
        match SshAddress::parse(text) {
            Ok(address) => address.to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn an_address_has_defaults_for_all_but_the_host() {
        for (text, is) in [
            ("bastion", "ssh://root@bastion:22"),
            ("ssh://bastion", "ssh://root@bastion:22"),
            ("me@bastion:2222", "ssh://me@bastion:2222"),
            ("ssh://me@bastion:2222/", "ssh://me@bastion:2222"),
            ("ssh://a%40b@[fd00::1]:23/", "ssh://a@b@[fd00::1]:23"),
            ("fd00::1", "ssh://root@[fd00::1]:22"),
        ] {
            assert_eq!(parsed(text), is, "{text}");
        }
    }

    #[test]
    fn what_is_no_address_is_told_without_its_password() {
        for (text, is) in [
            (
                "https://bastion",
                "`https://` is not SSH: an address is `ssh://user@host:port`",
            ),
            ("", "there is no host in it: an address is `ssh://user@host:port`"),
            (
                "ssh://me@:22",
                "there is no host in it: an address is `ssh://user@host:port`",
            ),
            ("@bastion", "there is no user before the `@`"),
            ("bastion:0", "`0` is no port: a number from 1 to 65535"),
            ("bastion:ssh", "`ssh` is no port: a number from 1 to 65535"),
            (
                "bastion/path",
                "`path` means nothing behind the host: only `?hostkey=KEY` does",
            ),
            (
                "bastion?user=me",
                "`?user=me` means nothing behind the host: only `?hostkey=KEY` does",
            ),
            (
                "two words",
                "its host is no text that can be one; other characters than letters and digits are written as `%XX`",
            ),
        ] {
            assert_eq!(parsed(text), is, "{text}");
        }
        assert!(!parsed("ssh://me:hush@bastion:x").contains("hush"));
        let address = SshAddress::parse("ssh://me:hush@bastion").expect("it is one");
        assert!(!format!("{address} {address:?}").contains("hush"));
        assert_eq!(address.password.as_deref(), Some("hush"));
    }
}
