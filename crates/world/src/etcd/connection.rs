//! The connection to an etcd, made when it is needed and anew when it is no good any more.

use std::time::Duration;

use setpoint_host::files::{AbsolutePath, Entry};
use setpoint_host::ssh::{self, SshError};
use tokio::sync::Mutex;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

use super::endpoint::{self, EndpointPlace};
use super::protocol::{AuthenticateRequest, Calls, ResponseHeader, TxnRequest};
use super::tunnel::{self, ThroughSsh};
use super::{EtcdOptions, refusals, revision_of};
use crate::{Revision, StoreError};

/// Timeout for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Interval and timeout of keep-alives of a connection: half a minute is too long for a host that waits. etcd takes it
/// amiss more often than each 5 s.
const SIGN_OF_LIFE: Duration = Duration::from_secs(6);
const SIGN_OF_LIFE_TAKES: Duration = Duration::from_secs(3);

/// The time that a member has for its first answer, where there are others. A frozen member accepts connections and never answers.
const FIRST_ANSWER: Duration = Duration::from_millis(1500);

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) options: EtcdOptions,
    held: Mutex<Held>,
    known: setpoint_host::sync::Mutex<Known>,
}

/// State of the store, from its answers.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Known {
    /// Cluster ID, and number of leader elections. The number never decreases, unless the store was recreated. One that has lost
    /// everything and is started as before calls itself by the same number.
    origin: Option<(u64, u64)>,
    /// The highest revision that was seen of it.
    revision: Revision,
    /// Number of detected set-backs.
    pub(super) set_backs: u64,
}

impl Known {
    /// Whether the same store may answer so later.
    pub(super) fn can_become(&self, later: &ResponseHeader) -> bool {
        let is_same = self
            .origin
            .is_none_or(|(cluster, term)| cluster == later.cluster_id && term <= later.raft_term);
        is_same && self.revision <= revision_of(later.revision)
    }
}

/// To which member there is a connection.
#[derive(Debug, Default)]
struct Held {
    /// Number of connections made.
    number: u64,
    /// Index of the next endpoint.
    next: usize,
    calls: Option<Calls>,
}

impl Connection {
    pub(super) fn new(mut options: EtcdOptions) -> Result<Connection, StoreError> {
        let wrong = |reason: String| {
            Err(StoreError::Misconfigured {
                reason: reason.into(),
            })
        };
        if options.endpoints.is_empty() {
            return wrong("no endpoint of the store is given".to_owned());
        }
        for endpoint in &options.endpoints {
            let host = endpoint
                .strip_prefix("https://")
                .or_else(|| endpoint.strip_prefix("http://"));
            let no_endpoint = || {
                wrong(format!(
                    "`{endpoint}` is not an etcd endpoint: use a URL such as `http://host:2379` or `https://host:2379`"
                ))
            };
            let Some(host) = host.filter(|host| !host.is_empty()) else {
                return no_endpoint();
            };
            if host.contains('@') {
                // It is not repeated: a password may be in it.
                return wrong(
                    "the user of the store is not part of an endpoint; it has an option of its own"
                        .to_owned(),
                );
            }
            if EndpointPlace::of(endpoint).is_none() {
                return no_endpoint();
            }
            match (endpoint.starts_with("https://"), &options.tls) {
                (true, None) => {
                    return wrong(format!(
                        "`{endpoint}` needs the certificate of who has signed the store's"
                    ));
                }
                (false, Some(_)) => {
                    return wrong(format!(
                        "certificates are given, but `{endpoint}` is not `https://`: nothing would be encrypted"
                    ));
                }
                _ => {}
            }
        }
        if options.ssh.is_some()
            && let Some(endpoint) = endpoint::named_twice(&options.endpoints)
        {
            return wrong(format!("the endpoint `{endpoint}` of the store is given twice"));
        }
        for one in &mut options.endpoints {
            if let Some(complete) = endpoint::with_port(one) {
                *one = complete;
            }
        }
        Ok(Connection {
            options,
            held: Mutex::default(),
            known: setpoint_host::sync::Mutex::default(),
        })
    }

    /// Current state of the store.
    pub(super) fn known(&self) -> Known {
        *self.known.lock()
    }

    /// A revision was seen, of the store as it is after so many times that it was set back.
    pub(super) fn saw(&self, revision: Revision, set_backs: u64) {
        let mut known = self.known.lock();
        if known.set_backs == set_backs {
            known.revision = known.revision.max(revision);
        }
    }

    /// A read was answered, of which this was known when it was asked: no read sees less than what was seen before it. Answers how often the store was
    /// set back until now.
    pub(super) fn has_read(&self, before: &Known, header: &ResponseHeader) -> u64 {
        let mut known = self.known.lock();
        if known.set_backs == before.set_backs {
            let revision = revision_of(header.revision);
            known.origin = Some((header.cluster_id, header.raft_term));
            if before.can_become(header) {
                known.revision = known.revision.max(revision);
            } else {
                known.revision = revision;
                known.set_backs += 1;
            }
        }
        known.set_backs
    }

    /// Asks, with a connection that is there or is made. `is_write` says whether it changes something.
    pub(super) async fn ask<T>(
        &self,
        is_write: bool,
        question: impl AsyncFnOnce(Calls) -> Result<T, tonic::Status>,
    ) -> Result<T, StoreError> {
        let (number, calls) = self.calls().await?;
        let endpoint = calls.endpoint();
        let error = match tokio::time::timeout(PATIENCE, question(calls)).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => refusals::told(&error, is_write),
            Err(_) => StoreError::Away {
                reason: format!("there was no answer in {} s", PATIENCE.as_secs()).into(),
                is_ambiguous: is_write,
            },
        };
        self.doubt(number, &error).await;
        Err(self.placed(error, &endpoint))
    }

    /// An error with the member that it is of, where that is what is wrong.
    pub(super) fn placed(&self, error: StoreError, endpoint: &str) -> StoreError {
        let StoreError::Away { reason, is_ambiguous } = error else {
            return error;
        };
        let hint = self.hint(&reason, endpoint);
        StoreError::Away {
            reason: format!("{reason} ({endpoint}{hint})").into(),
            is_ambiguous,
        }
    }

    /// A guess at the wrong option, where a member that has never answered refuses or hangs up.
    fn hint(&self, reason: &str, endpoint: &str) -> String {
        if self.known().origin.is_some() {
            return String::new();
        }
        let says = |words: &[&str]| words.iter().any(|word| reason.contains(word));
        let hangs_up = says(&["reset", "closed", "not ready", "broken pipe", "Broken pipe"]);
        match &self.options.tls {
            // An etcd that wants encryption hangs up on a client that begins without.
            None if hangs_up && self.options.ssh.is_none() && endpoint.starts_with("http://") => {
                ", which may want `https://`".to_owned()
            }
            None => String::new(),
            Some(tls) if says(&["UnknownIssuer", "BadSignature"]) => match &tls.authority {
                Some(file) => format!(", whose certificate is not signed by the authority in {file}"),
                None => String::new(),
            },
            Some(_) if says(&["handshake eof", "InvalidContentType"]) => {
                ", which may speak no TLS: `http://`".to_owned()
            }
            Some(tls) if tls.identity.is_none() && (hangs_up || says(&["alert", "CertificateRequired"])) => {
                ", which may want a certificate of this host, and none is given".to_owned()
            }
            Some(_) => String::new(),
        }
    }

    /// The connection, made if there is none, and its number. Each endpoint is tried once.
    pub(super) async fn calls(&self) -> Result<(u64, Calls), StoreError> {
        let mut held = self.held.lock().await;
        if let Some(calls) = &held.calls {
            return Ok((held.number, calls.clone()));
        }
        let mut last = None;
        for _ in &self.options.endpoints {
            let endpoint = &self.options.endpoints[held.next % self.options.endpoints.len()];
            let patience = self.patience_to_connect();
            let made = tokio::time::timeout(patience, self.connect_and_probe(endpoint)).await;
            let made = made.unwrap_or_else(|_| {
                Err(NotConnected::of_member(StoreError::Away {
                    reason: format!("no connection was made in {} s", patience.as_secs()).into(),
                    is_ambiguous: false,
                }))
            });
            match made {
                Ok(calls) => {
                    held.number += 1;
                    held.calls = Some(calls.clone());
                    return Ok((held.number, calls));
                }
                Err(NotConnected::Member(error)) => {
                    held.next += 1;
                    last = Some(self.placed(error, endpoint));
                }
                Err(NotConnected::Beyond(error)) => {
                    held.next += 1;
                    last = Some(error);
                }
                Err(NotConnected::All(error)) => return Err(error),
            }
        }
        Err(last.unwrap_or(StoreError::Misconfigured {
            reason: "no endpoint of the store is given".into(),
        }))
    }

    /// Does not use a connection any more of which an error says that it is no good. The next one is to another member, and has certificates and a
    /// login of its own.
    pub(super) async fn doubt(&self, number: u64, error: &StoreError) {
        if !matches!(error, StoreError::NotLetIn { .. } | StoreError::Away { .. }) {
            return;
        }
        let mut held = self.held.lock().await;
        if held.number == number && held.calls.take().is_some() {
            held.next += 1;
        }
    }

    /// Timeout of a connection; longer through SSH.
    fn patience_to_connect(&self) -> Duration {
        match self.options.ssh {
            Some(_) => PATIENCE + ssh::OPENING,
            None => PATIENCE,
        }
    }

    /// Connects to a member. Where there are others, it must give a first answer soon.
    async fn connect_and_probe(&self, url: &str) -> Result<Calls, NotConnected> {
        let calls = self.connect(url).await?;
        if self.options.endpoints.len() < 2 || self.options.ssh.is_some() {
            return Ok(calls);
        }
        // It reads nothing, so a member without a leader answers, too.
        let probe = calls.transact(TxnRequest::default());
        match tokio::time::timeout(FIRST_ANSWER, probe).await {
            Ok(_) => Ok(calls),
            Err(_) => Err(NotConnected::Member(StoreError::Away {
                reason: format!("there was no answer in {} s", FIRST_ANSWER.as_secs_f64()).into(),
                is_ambiguous: false,
            })),
        }
    }

    async fn connect(&self, url: &str) -> Result<Calls, NotConnected> {
        let misconfigured = |error: tonic::transport::Error| StoreError::Misconfigured {
            reason: format!("{url} cannot be connected to: {}", refusals::cause(&error)).into(),
        };
        let mut endpoint = Endpoint::from_shared(url.to_owned()).map_err(misconfigured)?;
        endpoint = endpoint
            .connect_timeout(self.patience_to_connect())
            .http2_keep_alive_interval(SIGN_OF_LIFE)
            .keep_alive_timeout(SIGN_OF_LIFE_TAKES)
            .keep_alive_while_idle(true);
        if let Some(files) = &self.options.tls {
            let mut tls = ClientTlsConfig::new();
            if let Some(authority) = &files.authority {
                tls = tls.ca_certificate(Certificate::from_pem(read(authority, "CERTIFICATE")?));
            }
            if let Some((certificate, key)) = &files.identity {
                let identity = (read(certificate, "CERTIFICATE")?, read(key, "PRIVATE KEY")?);
                tls = tls.identity(Identity::from_pem(identity.0, identity.1));
            }
            endpoint = endpoint.tls_config(tls).map_err(|error| {
                let why = refusals::cause(&error);
                match &files.identity {
                    Some((certificate, key)) if why.contains("KeyMismatch") => unusable(&format!(
                        "{key} is not the key of the certificate in {certificate}"
                    )),
                    _ => misconfigured(error),
                }
            })?;
        }
        let connected = match &self.options.ssh {
            Some(ssh) => endpoint.connect_with_connector(ThroughSsh(ssh.clone())).await,
            None => endpoint.connect().await,
        };
        let channel = connected.map_err(|error| match tunnel::below(&error) {
            Some(error) => NotConnected::through_ssh(error),
            None => NotConnected::Member(StoreError::Away {
                reason: refusals::cause(&error).into(),
                is_ambiguous: false,
            }),
        })?;
        let calls = Calls::new(channel, url);
        let Some(login) = &self.options.login else {
            return Ok(calls);
        };
        let request = AuthenticateRequest {
            name: login.user.clone(),
            password: login.password.clone(),
        };
        let answer = calls
            .authenticate(request)
            .await
            .map_err(|error| NotConnected::of_member(refusals::told(&error, false)))?;
        calls
            .with_token(&answer.token)
            .map_err(|error| NotConnected::of_member(refusals::told(&error, false)))
    }
}

/// Why there is no connection to a member.
enum NotConnected {
    /// It is away; others may be there.
    Member(StoreError),
    /// The same of a member behind an SSH server, which the error names.
    Beyond(StoreError),
    /// With no other member it would be otherwise.
    All(StoreError),
}

impl NotConnected {
    fn of_member(error: StoreError) -> NotConnected {
        match error.is_passing() {
            true => NotConnected::Member(error),
            false => NotConnected::All(error),
        }
    }

    fn through_ssh(error: &SshError) -> NotConnected {
        match error {
            SshError::Beyond { .. } => NotConnected::Beyond(tunnel::told(error)),
            _ => NotConnected::All(tunnel::told(error)),
        }
    }
}

/// An error in the options.
impl From<StoreError> for NotConnected {
    fn from(error: StoreError) -> NotConnected {
        NotConnected::of_member(error)
    }
}

/// Reads a file in the form PEM, which must have such a part.
fn read(path: &AbsolutePath, part: &str) -> Result<Vec<u8>, StoreError> {
    let read = Entry::at(path)
        .and_then(|entry| entry.follow())
        .and_then(|entry| entry.read());
    let bytes = read.map_err(|error| unusable(refusals::without_number(&format!("failed to {error}"))))?;
    // `-----BEGIN RSA PRIVATE KEY-----` is the key of an older form.
    let has_part = String::from_utf8_lossy(&bytes)
        .lines()
        .any(|line| line.starts_with("-----BEGIN ") && line.trim_end().ends_with(&format!("{part}-----")));
    match has_part {
        true => Ok(bytes),
        false => Err(unusable(&format!(
            "there is no {} in {path}",
            part.to_lowercase()
        ))),
    }
}

fn unusable(why: &str) -> StoreError {
    StoreError::Misconfigured {
        reason: format!("the certificates cannot be used: {why}").into(),
    }
}
