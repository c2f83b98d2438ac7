//! How the store that hosts share is named on the command line.

use std::ffi::OsString;
use std::sync::Arc;

use clap::Args;
use setpoint_agent::agent::NAMESPACE;
use setpoint_host::files::{AbsolutePath, Entry};
use setpoint_host::ssh::{HostKey, IdentityChoice, SshAddress, SshOptions};
use setpoint_host::users::own_home;
use setpoint_programs::environment;
use setpoint_programs::failure::Failure;
use setpoint_world::{EtcdOptions, EtcdStore, Login, Store, TlsFiles};

use crate::headings;
use crate::output::Output;

/// The store that hosts share.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct StoreArguments {
    /// Etcd endpoints, separated by commas: https://host:2379
    ///
    /// Hosts share values, exports and elections through etcd. Also the variable SETPOINT_ETCD_ENDPOINTS [default: none; a file in the state directory is used instead]
    #[arg(long = "etcd-endpoints", alias = "seeds", value_name = "URL,…", value_parser = parse_addresses, help_heading = headings::CLUSTER)]
    seeds: Vec<String>,

    /// Prefix of all keys in etcd [default: /setpoint]
    ///
    /// Several clusters can share one etcd with different prefixes.
    #[arg(long, value_name = "TEXT", requires = "seeds", help_heading = headings::CLUSTER, hide_short_help = true)]
    etcd_namespace: Option<String>,

    /// CA certificate for verifying etcd (PEM)
    ///
    /// Also the variable ETCDCTL_CACERT
    #[arg(long, value_name = "FILE", help_heading = headings::CLUSTER)]
    etcd_ca: Option<String>,

    /// Client certificate (PEM); needs --etcd-key
    ///
    /// Also the variable ETCDCTL_CERT
    #[arg(long, value_name = "FILE", help_heading = headings::CLUSTER)]
    etcd_cert: Option<String>,

    /// Private key of the client certificate (PEM)
    ///
    /// Also the variable ETCDCTL_KEY
    #[arg(long, value_name = "FILE", help_heading = headings::CLUSTER)]
    etcd_key: Option<String>,

    /// Etcd user
    ///
    /// Also the variable ETCDCTL_USER, as `NAME` or `NAME:PASSWORD`
    #[arg(long, value_name = "NAME", help_heading = headings::CLUSTER)]
    etcd_user: Option<String>,

    /// File with the password of the etcd user
    ///
    /// The variable ETCDCTL_PASSWORD has the password itself.
    #[arg(long, value_name = "FILE", help_heading = headings::CLUSTER, hide_short_help = true)]
    etcd_password_file: Option<String>,

    /// Connect to etcd through this SSH server: USER@HOST:PORT
    ///
    /// Written as `[ssh://]USER@HOST:PORT`; the defaults are `root` and port 22. Give the endpoints as the SSH server reaches them.
    #[arg(long, value_name = "URL", help_heading = headings::CLUSTER, hide_short_help = true)]
    ssh_url: Option<String>,

    /// Host key of the SSH server, as `ssh-keyscan` prints it
    ///
    /// You can also write it in the URL: `/?hostkey=KEY` [default: from ~/.ssh/known_hosts]
    #[arg(long, value_name = "KEY", requires = "ssh_url", help_heading = headings::CLUSTER, hide_short_help = true)]
    ssh_hostkey: Option<String>,

    /// Private key for the SSH server
    ///
    /// [default: the keys ~/.ssh/id_* without a passphrase, and those of the agent]
    #[arg(long, value_name = "FILE", requires = "ssh_url", help_heading = headings::CLUSTER, hide_short_help = true)]
    ssh_id: Option<String>,
}

impl StoreArguments {
    /// The store that is named; none if none is. It is reached when it is first asked.
    pub(crate) fn open(&self, output: &Output) -> Result<Option<Arc<dyn Store>>, Failure> {
        let store = self.open_etcd(output)?;
        Ok(store.map(|store| Arc::new(store) as Arc<dyn Store>))
    }

    /// The same arguments for another process.
    pub(crate) fn words(&self) -> Vec<OsString> {
        let endpoints = (!self.seeds.is_empty()).then(|| self.seeds.join(","));
        let given = [
            ("--etcd-endpoints", endpoints.as_ref()),
            ("--etcd-namespace", self.etcd_namespace.as_ref()),
            ("--etcd-ca", self.etcd_ca.as_ref()),
            ("--etcd-cert", self.etcd_cert.as_ref()),
            ("--etcd-key", self.etcd_key.as_ref()),
            ("--etcd-user", self.etcd_user.as_ref()),
            ("--etcd-password-file", self.etcd_password_file.as_ref()),
            ("--ssh-url", self.ssh_url.as_ref()),
            ("--ssh-hostkey", self.ssh_hostkey.as_ref()),
            ("--ssh-id", self.ssh_id.as_ref()),
        ];
        given
            .into_iter()
            .filter_map(|(name, value)| Some(format!("{name}={}", value?).into()))
            .collect()
    }

    /// What all keys begin with.
    pub(crate) fn namespace(&self) -> &str {
        self.etcd_namespace.as_deref().unwrap_or(NAMESPACE)
    }

    /// The same, as what it is.
    pub(crate) fn open_etcd(&self, output: &Output) -> Result<Option<EtcdStore>, Failure> {
        let endpoints = self.endpoints();
        if endpoints.is_empty() {
            let of_store = [
                ("--etcd-ca", &self.etcd_ca),
                ("--etcd-cert", &self.etcd_cert),
                ("--etcd-key", &self.etcd_key),
                ("--etcd-user", &self.etcd_user),
                ("--etcd-password-file", &self.etcd_password_file),
                ("--ssh-url", &self.ssh_url),
            ];
            return match of_store.iter().find(|(_, given)| given.is_some()) {
                Some((name, _)) => Err(Failure::usage(format!(
                    "`{name}` means nothing without `--etcd-endpoints`"
                ))),
                None => Ok(None),
            };
        }
        let namespace = self.namespace().to_owned();
        if !namespace.starts_with('/') || namespace.ends_with('/') {
            let why = format!(
                "`{namespace}` cannot be what keys begin with: a slash is in front of it, and none behind"
            );
            return Err(Failure::usage(why));
        }
        let options = EtcdOptions {
            tls: self.tls(&endpoints)?,
            endpoints,
            namespace,
            login: self.login()?,
            ssh: self.ssh(output)?,
        };
        match EtcdStore::new(options) {
            Ok(store) => Ok(Some(store)),
            Err(error) => Err(Failure::usage(error.to_string())),
        }
    }

    fn endpoints(&self) -> Vec<String> {
        let given: Vec<String> = match self.seeds.is_empty() {
            true => environment::variable("ETCD_ENDPOINTS").into_iter().collect(),
            false => self.seeds.clone(),
        };
        let all = given.iter().flat_map(|given| given.split([',', ';', ' ']));
        all.map(str::trim)
            .filter(|one| !one.is_empty())
            .map(str::to_owned)
            .collect()
    }

    fn tls(&self, endpoints: &[String]) -> Result<Option<TlsFiles>, Failure> {
        let of =
            |given: &Option<String>, variable: &str| given.clone().or_else(|| variable_of_etcd(variable));
        let authority = of(&self.etcd_ca, "CACERT").map(path).transpose()?;
        let certificate = of(&self.etcd_cert, "CERT").map(path).transpose()?;
        let key = of(&self.etcd_key, "KEY").map(path).transpose()?;
        let identity = match (certificate, key) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            (Some(_), None) => {
                return Err(Failure::usage(
                    "a certificate is given without its key, `--etcd-key`",
                ));
            }
            (None, Some(_)) => {
                return Err(Failure::usage(
                    "a key is given without its certificate, `--etcd-cert`",
                ));
            }
        };
        if let Some((_, key)) = &identity {
            // A group may read it, as on systems that have one for the keys of their services.
            private(key, 0o007, "the key of the certificate cannot be used")?;
        }
        let is_wanted = authority.is_some() || identity.is_some();
        if is_wanted && authority.is_none() {
            let why = "it is not said who must have signed the certificate of the store: `--etcd-ca`";
            return Err(Failure::usage(why));
        }
        // What only the environment says is not meant for a store without encryption.
        let is_said = self.etcd_ca.is_some() || self.etcd_cert.is_some();
        let is_encrypted = endpoints.iter().any(|endpoint| endpoint.starts_with("https://"));
        let tls = TlsFiles { authority, identity };
        Ok((is_wanted && (is_said || is_encrypted)).then_some(tls))
    }

    fn ssh(&self, output: &Output) -> Result<Option<SshOptions>, Failure> {
        let Some(url) = &self.ssh_url else {
            return Ok(None);
        };
        let wrong = |what: &str, error: &dyn std::error::Error| {
            Failure::usage(format!("`{what}` cannot be used: {error}"))
        };
        let address = SshAddress::parse(url).map_err(|error| wrong("--ssh-url", &error))?;
        if address.password.is_some() {
            // It is not repeated.
            let why = "a password has no place in `--ssh-url`, where others can read it";
            return Err(Failure::usage(why).hint("the SSH server lets keys in: `--ssh-id`"));
        }
        let host_key = self.ssh_hostkey.as_deref().map(HostKey::parse).transpose();
        let options = SshOptions {
            address,
            host_key: host_key.map_err(|error| wrong("--ssh-hostkey", &error))?,
            identity: match &self.ssh_id {
                Some(file) if file.is_empty() => {
                    return Err(Failure::usage("`--ssh-id` names no file"));
                }
                Some(file) => IdentityChoice::File(path(below_home(file))?),
                None => IdentityChoice::Found,
            },
        };
        let looked = options.look_at_keys();
        let notices = looked.map_err(|error| Failure::wrong(error.to_string()))?;
        for notice in notices {
            output.warning(format!("SSH: {notice}"));
        }
        Ok(Some(options))
    }

    fn login(&self) -> Result<Option<Login>, Failure> {
        let (user, in_user) = match (&self.etcd_user, variable_of_etcd("USER")) {
            (Some(user), _) => (user.clone(), None),
            (None, Some(user)) => match user.split_once(':') {
                Some((user, password)) => (user.to_owned(), Some(password.to_owned())),
                None => (user, None),
            },
            (None, None) if self.etcd_password_file.is_some() => {
                return Err(Failure::usage(
                    "a password is given without its user, `--etcd-user`",
                ));
            }
            (None, None) => return Ok(None),
        };
        let from_file = self.etcd_password_file.clone().map(|file| {
            let path = path(file)?;
            let unread = "the password for the store cannot be read";
            let failed = |error| Failure::wrong(unread).because(error);
            let bytes = private(&path, 0o077, unread)?.read().map_err(failed)?;
            let text = String::from_utf8(bytes);
            let text = text.map_err(|_| Failure::wrong("the password for the store is no text"))?;
            Ok(text.trim_end_matches(['\n', '\r']).to_owned())
        });
        let password = from_file
            .transpose()?
            .or(in_user)
            .or_else(|| variable_of_etcd("PASSWORD"));
        let Some(password) = password else {
            // A password that stands behind the name is not repeated.
            let name = user.split(':').next().unwrap_or_default();
            let why =
                format!("there is no password for the user `{name}` of the store: `--etcd-password-file`");
            return Err(Failure::usage(why));
        };
        Ok(Some(Login { user, password }))
    }
}

/// A file with a secret. None of these bits of its mode may be set.
fn private(path: &AbsolutePath, refused: u32, what: &str) -> Result<Entry, Failure> {
    let failed = |error| Failure::wrong(what).because(error);
    let entry = Entry::at(path).and_then(|entry| entry.follow()).map_err(failed)?;
    let stat = entry.stat().map_err(failed)?;
    if stat.is_some_and(|stat| stat.is_regular() && stat.mode & refused != 0) {
        let failure = Failure::wrong(what).because("others can read or change the file");
        return Err(failure.hint(format!(
            "`chmod {:o} {}`",
            0o640 & !refused,
            path.as_path().display()
        )));
    }
    Ok(entry)
}

/// Takes addresses as they are, but not the word that begins the program: then the addresses were forgotten.
pub(crate) fn parse_addresses(text: &str) -> Result<String, String> {
    match ["lang", "yaml", "empty"].contains(&text) {
        true => Err(format!(
            "addresses are missing, with an equals sign between, as in `--etcd-endpoints=https://host:2379 {text}`"
        )),
        false => Ok(text.to_owned()),
    }
}

/// A variable that etcd's own program reads, too.
fn variable_of_etcd(name: &str) -> Option<String> {
    let value = std::env::var(format!("ETCDCTL_{name}")).ok();
    value.filter(|value| !value.is_empty())
}

/// A path with the home for its `~`, which a shell leaves alone behind a `=`.
pub(crate) fn below_home(given: &str) -> String {
    let home = own_home().and_then(|home| home.into_os_string().into_string().ok());
    match (given.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => format!("{home}/{rest}"),
        _ => given.to_owned(),
    }
}

fn path(given: String) -> Result<AbsolutePath, Failure> {
    let absolute =
        std::path::absolute(&given).map_err(|error| Failure::io(format_args!("find `{given}`"), &error))?;
    AbsolutePath::new(absolute).map_err(|error| Failure::usage(format!("{error}: `{given}`")))
}
