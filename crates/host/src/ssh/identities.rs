//! As whom one comes to an SSH server: private keys in files, and those that an agent keeps.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use russh::keys::agent::AgentIdentity;
use russh::keys::agent::client::AgentClient;
use russh::keys::{PrivateKey, PublicKey};
use tokio::net::UnixStream;

use super::host_keys::shown;
use crate::files::{AbsolutePath, Entry, FileError, own_uid};
use crate::users::own_home;

/// The longest file that may be a key.
const LONGEST: u64 = 1 << 20;

/// Which private keys are shown to a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum IdentityChoice {
    /// All that lie in `~/.ssh` as `id_*` with their `.pub` beside them and are not encrypted, and all of the agent.
    #[default]
    Found,
    /// The one in this file; the agent's if it is encrypted there.
    File(AbsolutePath),
    /// None.
    None,
}

/// A key in a file.
pub(super) struct FileKey {
    pub(super) path: PathBuf,
    pub(super) key: Arc<PrivateKey>,
}

/// The keys that there are.
#[derive(Default)]
pub(super) struct Identities {
    pub(super) keys: Vec<FileKey>,
    /// Which keys of the agent are wanted: none of them, one, or all.
    pub(super) of_agent: OfAgent,
    /// What is not used, and why, as sentences.
    pub(super) skipped: Vec<String>,
    /// What only the agent can use, as sentences.
    pub(super) left_to_agent: Vec<String>,
}

/// Which keys of an agent are used.
#[derive(Default, Clone)]
pub(super) enum OfAgent {
    #[default]
    None,
    One(PublicKey),
    All,
}

impl Identities {
    /// Looks for them. Blocks.
    pub(super) fn read(choice: &IdentityChoice) -> Result<Identities, String> {
        match choice {
            IdentityChoice::None => Ok(Identities::default()),
            IdentityChoice::File(path) => Identities::of_file(path),
            IdentityChoice::Found => Identities::found(),
        }
    }

    fn of_file(path: &AbsolutePath) -> Result<Identities, String> {
        let shown = path.as_path().display();
        match read(path)? {
            Found::Key(key) => Ok(Identities {
                keys: vec![FileKey {
                    path: path.as_path().to_owned(),
                    key,
                }],
                ..Identities::default()
            }),
            Found::Encrypted(Some(public)) if agent_socket().is_some() => Ok(Identities {
                of_agent: OfAgent::One(public),
                left_to_agent: vec![format!("{shown} is encrypted, so that only the agent can use it")],
                ..Identities::default()
            }),
            Found::Encrypted(_) => Err(format!(
                "the SSH key {shown} is encrypted: load it into an agent (`ssh-add`) that `SSH_AUTH_SOCK` names, or give a key \
                 without passphrase"
            )),
            Found::Unusable(why) => Err(format!("the SSH key {shown} cannot be used: {why}")),
        }
    }

    fn found() -> Result<Identities, String> {
        let mut identities = Identities::default();
        if agent_socket().is_some() {
            identities.of_agent = OfAgent::All;
        }
        let Some(directory) = own_home().map(|home| home.join(".ssh")) else {
            return Ok(identities);
        };
        let mut names: Vec<_> = match std::fs::read_dir(&directory) {
            Ok(entries) => entries.flatten().map(|entry| entry.file_name()).collect(),
            Err(_) => return Ok(identities),
        };
        names.sort();
        for name in &names {
            let Some(text) = name.to_str().filter(|text| text.starts_with("id_")) else {
                continue;
            };
            let has_public = names.iter().any(|other| *other == *format!("{text}.pub"));
            let Some(path) = AbsolutePath::new(directory.join(name))
                .ok()
                .filter(|_| has_public)
            else {
                continue;
            };
            let shown = path.as_path().display();
            match read(&path) {
                Ok(Found::Key(key)) => identities.keys.push(FileKey {
                    path: path.as_path().to_owned(),
                    key,
                }),
                Ok(Found::Encrypted(_)) if agent_socket().is_some() => identities
                    .left_to_agent
                    .push(format!("{shown} is encrypted, so that only the agent can use it")),
                Ok(Found::Encrypted(_)) => identities.skipped.push(format!(
                    "{shown} is encrypted, and there is no agent that could use it"
                )),
                Ok(Found::Unusable(why)) | Err(why) => {
                    identities.skipped.push(format!("{shown} cannot be used: {why}"));
                }
            }
        }
        Ok(identities)
    }
}

impl fmt::Debug for Identities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identities").finish_non_exhaustive()
    }
}

/// What a file that may be a key is.
pub(super) enum Found {
    Key(Arc<PrivateKey>),
    /// Its public half, where that can be read without the passphrase.
    Encrypted(Option<PublicKey>),
    Unusable(String),
}

/// Reads a private key. What is wrong is told without anything of the file.
pub(super) fn read(path: &AbsolutePath) -> Result<Found, String> {
    let failed = |error: FileError| format!("failed to {}", without_number(&error));
    let entry = Entry::at(path).and_then(|entry| entry.follow()).map_err(failed)?;
    let Some(stat) = entry.stat().map_err(failed)? else {
        return Ok(Found::Unusable("there is no such file".to_owned()));
    };
    if stat.is_directory() {
        return Ok(Found::Unusable("it is a directory".to_owned()));
    }
    if stat.size > LONGEST {
        return Ok(Found::Unusable("it is too long for a key".to_owned()));
    }
    // As SSH itself does: of others' files nothing can be asked.
    if stat.mode & 0o077 != 0 && stat.uid == own_uid() {
        return Ok(Found::Unusable(format!(
            "others can read it, its mode is {:04o}: `chmod 600` it",
            stat.mode
        )));
    }
    let bytes = entry.read().map_err(failed)?;
    let no_key = || Ok(Found::Unusable("it is no private key".to_owned()));
    let Ok(text) = std::str::from_utf8(&bytes) else {
        return no_key();
    };
    if text.contains("BEGIN OPENSSH PRIVATE KEY") {
        return match PrivateKey::from_openssh(text) {
            Ok(key) if key.is_encrypted() => Ok(Found::Encrypted(Some(key.public_key().clone()))),
            Ok(key) => Ok(Found::Key(Arc::new(key))),
            Err(_) => Ok(Found::Unusable("it is damaged, or of an unknown type".to_owned())),
        };
    }
    if text.contains("BEGIN ENCRYPTED PRIVATE KEY") || text.contains("Proc-Type: 4,ENCRYPTED") {
        return Ok(Found::Encrypted(None));
    }
    match russh::keys::decode_secret_key(text, None) {
        Ok(key) => Ok(Found::Key(Arc::new(key))),
        Err(russh::keys::Error::KeyIsEncrypted) => Ok(Found::Encrypted(None)),
        Err(_) if text.starts_with("ssh-") || text.starts_with("ecdsa-") => {
            Ok(Found::Unusable("it is the public half of a key".to_owned()))
        }
        Err(_) => no_key(),
    }
}

/// Where the agent is, if there is one.
pub(super) fn agent_socket() -> Option<PathBuf> {
    let path = std::env::var_os("SSH_AUTH_SOCK").map(PathBuf::from);
    path.filter(|path| path.is_absolute())
}

/// An agent, and the keys of it that are wanted.
pub(super) struct Agent {
    pub(super) client: AgentClient<UnixStream>,
    pub(super) identities: Vec<AgentIdentity>,
}

/// How long an agent may take to say which keys it has.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

impl Agent {
    /// Asks the agent for its keys; `known` are those that are there anyway.
    pub(super) async fn ask(
        wanted: &OfAgent,
        known: &[FileKey],
        binding: Option<&russh::keys::agent::AgentSessionBinding>,
    ) -> Result<Option<Agent>, String> {
        let Some(socket) = agent_socket().filter(|_| !matches!(wanted, OfAgent::None)) else {
            return Ok(None);
        };
        let failed = |error: russh::keys::Error| {
            format!(
                "the agent at {} cannot be used: {}",
                socket.display(),
                told(&error)
            )
        };
        let asked = async {
            let mut client = AgentClient::connect_uds(&socket).await?;
            // Keys that may be used for some servers only are shown after this. Older agents do not know it, and need it not.
            if let Some(binding) = binding {
                let _ = client.bind_session(binding, false).await;
            }
            let identities = client.request_identities().await?;
            Ok((client, identities))
        };
        let silent = || {
            let seconds = ANSWERS_WITHIN.as_secs();
            format!("the agent at {} gives no answer in {seconds} s", socket.display())
        };
        let asked = tokio::time::timeout(ANSWERS_WITHIN, asked).await;
        let (client, mut identities) = asked.map_err(|_| silent())?.map_err(failed)?;
        identities.retain(|identity| {
            let key = identity.public_key();
            let is_wanted = match wanted {
                OfAgent::None => false,
                OfAgent::One(one) => one.key_data() == key.key_data(),
                OfAgent::All => true,
            };
            let is_known = known
                .iter()
                .any(|file| file.key.public_key().key_data() == key.key_data());
            is_wanted && !is_known
        });
        Ok(Some(Agent { client, identities }))
    }
}

fn told(error: &russh::keys::Error) -> String {
    match error {
        russh::keys::Error::IO(error) => without_number(error),
        _ => "it does not answer as agents do".to_owned(),
    }
}

/// What the system says, without its number.
pub(super) fn without_number(error: &impl fmt::Display) -> String {
    let text = error.to_string();
    match text.rfind(" (os error ") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

/// A key of an agent, for messages.
pub(super) fn shown_of_agent(identity: &AgentIdentity) -> String {
    let key = shown(&identity.public_key());
    match identity.comment() {
        "" => format!("the agent's {key}"),
        comment => format!("the agent's {key} ({comment})"),
    }
}
