//! SSH: connections to a server whose key is known, by a key that it lets in, and what goes through them.
//!
//! A server must show a key that was given, or that a file of known hosts names; nothing is learnt by itself. Private keys come from files and from
//! an agent, and are shown nowhere. Each step has a limit of time, and a connection that gives no sign of life ends: whatever was asked of it fails
//! then, and whoever wants it makes a new one.
//!
//! | module | gives |
//! |---|---|
//! | `address` | `ssh://user@host:port/?hostkey=KEY` |
//! | `host_keys`, `known_hosts` | by which key a server is known |
//! | `identities` | private keys and the agent |
//! | `login` | which of them the server lets in |
//! | `passwords` | what is shown to one that takes no keys |
//! | `commands` | commands on the other host |
//! | `forwarding` | ports there that lead here |
//! | `signatures` | signatures of texts |
//! | `bounded_text` | text files up to a limit |
//! | `stream` | what goes through, and how it is cut |

mod address;
mod bounded_text;
mod commands;
mod forwarding;
mod host_keys;
mod identities;
mod known_hosts;
mod login;
mod passwords;
mod signatures;
mod stream;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use russh::client::{DisconnectReason, Handle, Handler, Msg, Session};
use russh::keys::PublicKeyOrCertificate;
use russh::{ChannelOpenFailure, Disconnect};
use tokio::net::TcpStream;
use tokio_util::sync::{CancellationToken, DropGuard};

pub use address::{InvalidAddress, SshAddress};
pub use commands::{RemoteCommand, RemoteExit, RemoteInput, RemoteOutput, quoted};
use forwarding::Forwarding;
use host_keys::Expected;
pub use host_keys::{HostKey, InvalidHostKey};
pub use identities::IdentityChoice;
use identities::{Identities, without_number};
pub use known_hosts::{KnownKey, known_keys};
use login::NotIn;
use passwords::Search;
pub use passwords::{Asking, Passwords};
pub use signatures::{Signers, sign};
use stream::CutStream;
pub use stream::SshTunnel;

use crate::sync::Mutex;

/// How long a server may take until there is a connection, and until it has proved who it is.
const CONNECTING: Duration = Duration::from_secs(10);
/// How long it may take to be let in; an agent may ask somebody first.
const LETTING_IN: Duration = Duration::from_secs(30);
/// How long a server may take to answer a question.
const ANSWERING: Duration = Duration::from_secs(10);
/// After how much silence a sign of life is asked for, and how many may be missing.
const SIGN_OF_LIFE: Duration = Duration::from_secs(5);
const MISSING: usize = 2;
/// How long a goodbye may take.
const CLOSING: Duration = Duration::from_secs(5);

/// The longest that opening a connection and something through it may take.
pub const OPENING: Duration =
    Duration::from_secs(2 * CONNECTING.as_secs() + LETTING_IN.as_secs() + ANSWERING.as_secs());

/// How an SSH server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshOptions {
    /// Where it is, and who one is there.
    pub address: SshAddress,
    /// The key that it has; goes before the one in the address.
    pub host_key: Option<HostKey>,
    /// The private keys.
    pub identity: IdentityChoice,
}

/// Why there is no connection, or no more. The texts are clauses that stand after a colon; nothing secret is in them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SshError {
    /// It cannot be reached, or is silent.
    #[error("the SSH server {place} cannot be reached: {reason}")]
    Away {
        /// Host and port.
        place: String,
        /// Why.
        reason: String,
    },
    /// It does not show the key by which it is known. The text says what to do.
    #[error("{0}")]
    NotTrusted(String),
    /// What it is reached with cannot be used: a key, the files of known hosts.
    #[error("{0}")]
    Unusable(String),
    /// It lets nobody in with what it was shown.
    #[error("the SSH server {place} does not let `{user}` in: {reason}")]
    NotLetIn {
        /// Host and port.
        place: String,
        /// As whom.
        user: String,
        /// Why, and what was tried.
        reason: String,
    },
    /// It does not reach what lies behind it, or forbids it.
    #[error("{target} cannot be reached through the SSH server {place}: {reason}")]
    Beyond {
        /// Host and port of the server.
        place: String,
        /// Host and port of what lies behind.
        target: String,
        /// Why.
        reason: String,
    },
    /// It does not run a command, or not to its end.
    #[error("the SSH server {place} does not run a command to its end: {reason}")]
    Command {
        /// Host and port.
        place: String,
        /// Why.
        reason: String,
    },
    /// It does not listen for us.
    #[error("the SSH server {place} does not listen at {listen}: {reason}")]
    Listening {
        /// Host and port of the server.
        place: String,
        /// Where it was asked to listen.
        listen: String,
        /// Why.
        reason: String,
    },
    /// There was a connection, and it has ended.
    #[error("the SSH connection to {place} has ended: {reason}")]
    Ended {
        /// Host and port.
        place: String,
        /// Why.
        reason: String,
    },
}

impl SshOptions {
    /// What of the keys is not used, and why: sentences for whoever starts something. Blocks.
    ///
    /// # Errors
    /// When the key that was asked for cannot be used.
    pub fn look_at_keys(&self) -> Result<Vec<String>, SshError> {
        let identities = Identities::read(&self.identity).map_err(SshError::Unusable)?;
        Ok(identities.skipped)
    }
}

/// A connection to an SSH server that has shown who it is and has let us in.
pub struct SshConnection {
    handle: Handle<Client>,
    place: String,
    ended: Arc<Mutex<Option<String>>>,
    /// Fires when it has ended.
    over: CancellationToken,
    /// Ends whatever still goes over the wire.
    cut: CancellationToken,
    /// Where connections that the server takes for us are led.
    forwarding: Arc<Mutex<Option<Arc<Forwarding>>>>,
}

impl SshConnection {
    /// Makes a connection.
    ///
    /// # Errors
    /// When the server is not reached, not the one that is meant, or lets nobody in.
    pub async fn open(options: &SshOptions) -> Result<SshConnection, SshError> {
        SshConnection::open_with(options, &Passwords::default()).await
    }

    /// The same with passwords for a server that takes no key. It may ask somebody at the terminal, who may take long.
    ///
    /// # Errors
    /// As [`SshConnection::open`].
    pub async fn open_with(options: &SshOptions, passwords: &Passwords) -> Result<SshConnection, SshError> {
        let mut search = Search::default();
        loop {
            match SshConnection::attempt(options, passwords, &mut search).await {
                Err(NotIn::EndedWhileAsking) => {}
                Err(NotIn::Failed(error)) => return Err(error),
                Ok(connection) => return Ok(connection),
            }
        }
    }

    async fn attempt(
        options: &SshOptions,
        passwords: &Passwords,
        search: &mut Search,
    ) -> Result<SshConnection, NotIn> {
        let place = options.address.place();
        let read = {
            let options = options.clone();
            tokio::task::spawn_blocking(move || {
                let expected = Expected::read(&options.address, options.host_key.clone())?;
                Ok((expected, Identities::read(&options.identity)?))
            })
        };
        let read = read
            .await
            .unwrap_or_else(|_| Err("reading the keys of SSH was given up".to_owned()));
        let (expected, identities) = read.map_err(SshError::Unusable)?;
        let away = |reason: String| SshError::Away {
            place: place.clone(),
            reason,
        };
        let silent = |limit: Duration| away(format!("it gives no answer in {} s", limit.as_secs()));
        let target = (options.address.host.as_str(), options.address.port);
        let connected = tokio::time::timeout(CONNECTING, TcpStream::connect(target)).await;
        let socket = connected
            .map_err(|_| silent(CONNECTING))?
            .map_err(|error| away(without_number(&error)))?;
        let _ = socket.set_nodelay(true);

        let cut = CancellationToken::new();
        // Whoever gives up waiting leaves nothing behind.
        let guard = cut.clone().drop_guard();
        let ended = Arc::new(Mutex::new(None));
        let mut preferred = russh::Preferred::DEFAULT;
        preferred.key = expected.algorithms().into();
        let config = russh::client::Config {
            preferred,
            keepalive_interval: Some(SIGN_OF_LIFE),
            keepalive_max: MISSING,
            ..russh::client::Config::default()
        };
        let (over, forwarding) = (CancellationToken::new(), Arc::default());
        let client = Client {
            expected,
            ended: ended.clone(),
            forwarding: Arc::clone(&forwarding),
            _over: over.clone().drop_guard(),
        };
        let stream = CutStream::new(socket, &cut);
        let begun = russh::client::connect_stream(Arc::new(config), stream, client);
        let handle = match tokio::time::timeout(CONNECTING, begun).await {
            Err(_) => return Err(silent(CONNECTING).into()),
            Ok(Err(ClientError::NotTrusted(why))) => return Err(SshError::NotTrusted(why).into()),
            Ok(Err(ClientError::Protocol(error))) => return Err(away(told(&error)).into()),
            Ok(Ok(handle)) => handle,
        };
        let mut connection = SshConnection {
            handle,
            place: place.clone(),
            ended,
            over,
            cut: guard.disarm(),
            forwarding,
        };
        login::log_in(&mut connection, &options.address, &identities, passwords, search).await?;
        Ok(connection)
    }

    /// Whether it has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.over.is_cancelled()
    }

    /// Waits until it has ended, and answers why.
    pub async fn ended(&self) -> SshError {
        self.over.cancelled().await;
        self.has_ended(&russh::Error::Disconnect)
    }

    /// A connection of the server's to somewhere, as bytes. It takes this connection with it: when it is dropped, both end.
    ///
    /// # Errors
    /// When the server does not reach it, or forbids it.
    pub async fn into_tunnel(self, host: &str, port: u16) -> Result<SshTunnel, SshError> {
        let target = match host.contains(':') {
            true => format!("[{host}]:{port}"),
            false => format!("{host}:{port}"),
        };
        let beyond = |reason: String| SshError::Beyond {
            place: self.place.clone(),
            target,
            reason,
        };
        let opened = self
            .handle
            .channel_open_direct_tcpip(host, port.into(), "127.0.0.1", 0);
        let channel = match tokio::time::timeout(ANSWERING, opened).await {
            Ok(Ok(channel)) => channel,
            Ok(Err(russh::Error::ChannelOpenFailure(failure))) => return Err(beyond(refused(&failure))),
            Ok(Err(error)) => return Err(self.has_ended(&error)),
            Err(_) => {
                let reason = format!("it gives no answer in {} s", ANSWERING.as_secs());
                return Err(beyond(reason));
            }
        };
        Ok(SshTunnel::new(channel.into_stream(), self))
    }

    /// Says goodbye, and ends it in any case after a short while.
    pub async fn close(mut self) {
        let goodbye = async {
            let said = self.handle.disconnect(Disconnect::ByApplication, "", "en").await;
            if said.is_ok() {
                let _ = (&mut self.handle).await;
            }
        };
        let _ = tokio::time::timeout(CLOSING, goodbye).await;
    }

    /// Why it has ended, if it has.
    fn end(&self) -> Option<SshError> {
        let reason = self.ended.lock().clone()?;
        Some(SshError::Ended {
            place: self.place.clone(),
            reason,
        })
    }

    fn has_ended(&self, error: &russh::Error) -> SshError {
        self.end().unwrap_or_else(|| SshError::Ended {
            place: self.place.clone(),
            reason: told(error),
        })
    }
}

impl Drop for SshConnection {
    fn drop(&mut self) {
        self.cut.cancel();
    }
}

impl fmt::Debug for SshConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SshConnection({})", self.place)
    }
}

/// What we are to the server: it is asked who it is, and may open nothing here but what it was asked to lead here.
struct Client {
    expected: Expected,
    ended: Arc<Mutex<Option<String>>>,
    forwarding: Arc<Mutex<Option<Arc<Forwarding>>>>,
    /// Tells that the connection has ended, since this ends with it.
    _over: DropGuard,
}

/// What ends a connection.
#[derive(Debug)]
enum ClientError {
    NotTrusted(String),
    Protocol(russh::Error),
}

impl From<russh::Error> for ClientError {
    fn from(error: russh::Error) -> ClientError {
        ClientError::Protocol(error)
    }
}

impl Handler for Client {
    type Error = ClientError;

    async fn check_server_key(&mut self, shown: &PublicKeyOrCertificate) -> Result<bool, ClientError> {
        let checked = self.expected.check(&shown.public_key());
        checked.map(|()| true).map_err(ClientError::NotTrusted)
    }

    async fn server_channel_open_forwarded_tcpip(
        &mut self,
        channel: russh::Channel<Msg>,
        _: &str,
        _: u32,
        _: &str,
        _: u32,
        reply: russh::client::ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), ClientError> {
        let forwarding = self.forwarding.lock().clone();
        let forwarding = forwarding.ok_or(ChannelOpenFailure::AdministrativelyProhibited);
        match forwarding.and_then(|forwarding| Ok((forwarding.admit()?, forwarding))) {
            Ok((room, forwarding)) => {
                reply.accept().await;
                tokio::spawn(forwarding.lead(channel, room));
            }
            Err(why) => reply.reject(why).await,
        }
        Ok(())
    }

    async fn server_channel_open_forwarded_streamlocal(
        &mut self,
        _: russh::Channel<Msg>,
        _: &str,
        reply: russh::client::ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), ClientError> {
        reply.reject(ChannelOpenFailure::AdministrativelyProhibited).await;
        Ok(())
    }

    async fn server_channel_open_agent_forward(
        &mut self,
        _: russh::Channel<Msg>,
        reply: russh::client::ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), ClientError> {
        reply.reject(ChannelOpenFailure::AdministrativelyProhibited).await;
        Ok(())
    }

    async fn disconnected(&mut self, reason: DisconnectReason<ClientError>) -> Result<(), ClientError> {
        let text = match reason {
            DisconnectReason::ReceivedDisconnect(info) if info.message.is_empty() => {
                "the server has ended it".to_owned()
            }
            DisconnectReason::ReceivedDisconnect(info) => {
                format!("the server has ended it: {}", info.message.trim())
            }
            DisconnectReason::Error(ClientError::NotTrusted(why)) => why,
            DisconnectReason::Error(ClientError::Protocol(error)) => told(&error),
        };
        self.ended.lock().get_or_insert(text);
        Ok(())
    }
}

fn refused(failure: &ChannelOpenFailure) -> String {
    match failure {
        ChannelOpenFailure::AdministrativelyProhibited => {
            "it forbids that (`AllowTcpForwarding`, `PermitOpen`)".to_owned()
        }
        ChannelOpenFailure::ConnectFailed => "nobody answers it there".to_owned(),
        ChannelOpenFailure::UnknownChannelType => "it cannot do that".to_owned(),
        ChannelOpenFailure::ResourceShortage => "it has too much to do".to_owned(),
        ChannelOpenFailure::Other { reason, .. } => reason.clone(),
    }
}

/// What went wrong with a connection, in words.
fn told(error: &russh::Error) -> String {
    match error {
        russh::Error::IO(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            "it has closed the connection".to_owned()
        }
        russh::Error::IO(error) => without_number(error),
        russh::Error::HUP | russh::Error::Disconnect | russh::Error::SendError | russh::Error::RecvError => {
            "it has closed the connection".to_owned()
        }
        russh::Error::KeepaliveTimeout => {
            let silence = SIGN_OF_LIFE.as_secs() * (MISSING as u64 + 1);
            format!("no sign of life came for {silence} s")
        }
        russh::Error::Version => "what answers there is no SSH server".to_owned(),
        russh::Error::NoCommonAlgo { kind, theirs, .. } => {
            let what = match kind {
                russh::AlgorithmKind::Kex => "exchange of keys",
                russh::AlgorithmKind::Key => "type of host key",
                russh::AlgorithmKind::Cipher => "cipher",
                russh::AlgorithmKind::Compression => "compression",
                russh::AlgorithmKind::Mac => "authentication code",
            };
            format!("it has no {what} that is known here, only {}", theirs.join(", "))
        }
        other => format!("its SSH is not understood: {other}"),
    }
}
