//! What the parameters of a `remote` say, taken apart, and what is wrong with them.

use std::time::Duration;

use setpoint_graph::Invalid;
use setpoint_host::files::AbsolutePath;
use setpoint_host::ssh::{Asking, HostKey, IdentityChoice, Passwords, SshAddress, SshOptions};
use setpoint_host::users::own_home;

use super::Remote;

/// Where the other host listens for us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TunnelAddress {
    pub(super) host: String,
    /// 0: any.
    pub(super) port: u16,
}

impl TunnelAddress {
    /// Reads `host:port`, where a number of IPv6 stands in brackets.
    pub(super) fn parse(text: &str) -> Result<TunnelAddress, String> {
        let wrong = || format!("`{text}` is not an address like `127.0.0.1:2379`");
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let bare = match host.strip_prefix('[') {
            Some(inner) => inner.strip_suffix(']').ok_or_else(wrong)?,
            None if host.contains(':') => return Err(wrong()),
            None => host,
        };
        let is_possible = |letter: char| letter.is_ascii_alphanumeric() || ".-_:".contains(letter);
        if bare.is_empty() || !bare.chars().all(is_possible) {
            return Err(wrong());
        }
        let port = port
            .parse()
            .map_err(|_| format!("`{port}` is no port: a number up to 65535, and 0 for any that is free"))?;
        Ok(TunnelAddress {
            host: bare.to_owned(),
            port,
        })
    }

    /// How the program on that host reaches it, when the port is this one.
    pub(super) fn url(&self, scheme: &str, port: u16) -> String {
        match &*self.host {
            "0.0.0.0" => format!("{scheme}://127.0.0.1:{port}"),
            "::" => format!("{scheme}://[::1]:{port}"),
            host if host.contains(':') => format!("{scheme}://[{host}]:{port}"),
            host => format!("{scheme}://{host}:{port}"),
        }
    }
}

impl Remote {
    /// The connection URL, or the name in its place.
    pub(super) fn url(&self) -> &str {
        match self.remote.is_empty() {
            true => &self.name,
            false => &self.remote,
        }
    }

    pub(super) fn tunnel(&self) -> Result<TunnelAddress, String> {
        TunnelAddress::parse(&self.tunnel_addr)
    }

    /// How the other host is reached.
    pub(super) fn options(&self) -> Result<(SshOptions, Passwords), Invalid> {
        let address = self.address()?;
        let host_key = match self.hostkey.is_empty() {
            true => None,
            false => Some(
                HostKey::parse(&self.hostkey)
                    .map_err(|error| Invalid::parameter("hostkey", error.to_string()))?,
            ),
        };
        let asking = self.interactive.then(|| Asking {
            limit: u64::try_from(self.interactive_timeout)
                .ok()
                .filter(|seconds| *seconds > 0)
                .map(Duration::from_secs),
            tries: u32::try_from(self.max_password_tries)
                .ok()
                .filter(|tries| *tries > 0),
        });
        let passwords = Passwords::new(address.password.clone(), asking);
        let identity = self.identity()?;
        Ok((
            SshOptions {
                address,
                host_key,
                identity,
            },
            passwords,
        ))
    }

    pub(super) fn address(&self) -> Result<SshAddress, Invalid> {
        let refused = |message: String| match self.remote.is_empty() {
            true => Invalid::new(message),
            false => Invalid::parameter("remote", message),
        };
        SshAddress::parse(self.url()).map_err(|error| refused(error.to_string()))
    }

    fn identity(&self) -> Result<IdentityChoice, Invalid> {
        let Some(given) = &self.ssh_id else {
            return Ok(IdentityChoice::Found);
        };
        if given.is_empty() {
            return Ok(IdentityChoice::None);
        }
        let path = match given.strip_prefix("~/") {
            Some(rest) => match own_home() {
                Some(home) => home.join(rest),
                None => {
                    let message = "there is no home directory for `~`";
                    return Err(Invalid::parameter("ssh_id", message));
                }
            },
            None => given.into(),
        };
        AbsolutePath::new(path).map(IdentityChoice::File).map_err(|_| {
            let message = format!("`{given}` is not the path of a private key");
            let help =
                "it begins with a slash or with `~/`; unset, keys are found in `~/.ssh`, and \"\" means none";
            Invalid::parameter("ssh_id", message).help(help)
        })
    }

    /// Everything that is wrong.
    pub(super) fn check(&self, invalid: &mut Vec<Invalid>) {
        let address = self.address();
        let has_password = address.as_ref().is_ok_and(|address| address.password.is_some());
        if has_password && !self.allow_cleartext_password {
            let message = "there is a password in the URL, which is not allowed";
            let wrong = match self.remote.is_empty() {
                true => Invalid::new(message),
                false => Invalid::parameter("remote", message),
            };
            invalid.push(wrong.help("use a key, or write `allow_cleartext_password => true,`"));
        }
        match self.options() {
            Err(wrong) => invalid.push(wrong),
            // What is wrong with the password was said.
            Ok((options, passwords)) => {
                if options.identity == IdentityChoice::None && passwords.is_empty() {
                    let message =
                        "there is nothing to log in with: no key, no password, and nobody is asked for one";
                    let help = "name a key, leave `ssh_id` out to have keys found in `~/.ssh`, or write `interactive => true,`";
                    invalid.push(Invalid::parameter("ssh_id", message).help(help));
                }
            }
        }
        if !self.hostname.is_empty()
            && let Err(message) = check_hostname(&self.hostname)
        {
            invalid.push(Invalid::parameter("hostname", message));
        }
        if self.interactive_timeout < 0 {
            let message = format!(
                "{} is no number of seconds: 0 is without end",
                self.interactive_timeout
            );
            invalid.push(Invalid::parameter("interactive_timeout", message));
        }
        if let Err(message) = self.tunnel() {
            invalid.push(Invalid::parameter("tunnel_addr", message));
        }
        if self.tunnelled && !self.transient {
            let message =
                "a tunnel lasts as long as we wait for the end of the program, which is not expected to end";
            let help = "write `tunnelled => false,`, so that the program reaches the store by itself";
            invalid.push(Invalid::parameter("transient", message).help(help));
        }
        match self.converger_timeout {
            Some(seconds) if seconds < 0 => {
                let message = format!("{seconds} is no number of seconds");
                invalid.push(Invalid::parameter("converger_timeout", message));
            }
            Some(_) if !self.transient => {
                let message = "a program that ends when nothing is left to do is `transient`";
                invalid.push(Invalid::parameter("converger_timeout", message));
            }
            _ => {}
        }
    }
}

/// Whether a host of a cluster can have this name.
pub(super) fn check_hostname(name: &str) -> Result<(), String> {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let is_possible = (1..=253).contains(&name.len())
        && name.bytes().all(is_letter)
        && name.bytes().any(|byte| byte.is_ascii_alphanumeric())
        && !name.starts_with(['.', '-']);
    match is_possible {
        true => Ok(()),
        false => Err(format!(
            "`{name}` is not a host name: it takes 1 to 253 letters, digits, dots, dashes and underscores, and neither a dot nor a dash in front"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_a_tunnel_has_a_host_and_a_port() {
        for (text, url) in [
            ("127.0.0.1:2379", "http://127.0.0.1:9"),
            ("[::1]:0", "http://[::1]:9"),
            ("localhost:1", "http://localhost:9"),
            ("0.0.0.0:1", "http://127.0.0.1:9"),
            ("[::]:1", "http://[::1]:9"),
        ] {
            let parsed = TunnelAddress::parse(text).expect("it is an address");
            assert_eq!(parsed.url("http", 9), url, "{text}");
        }
        for text in [
            "",
            "2379",
            ":2379",
            "::1:2379",
            "a b:1",
            "host:",
            "host:65536",
            "[::1:1",
            "host:x",
        ] {
            assert!(TunnelAddress::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_host_name_is_one_that_a_host_of_a_cluster_can_have() {
        for name in ["a", "web-1.example.com", "_x", "1"] {
            assert_eq!(check_hostname(name), Ok(()), "{name}");
        }
        for name in ["", "a b", "-a", ".a", "a/b", "...", &"a".repeat(254)] {
            assert!(check_hostname(name).is_err(), "{name}");
        }
    }
}
