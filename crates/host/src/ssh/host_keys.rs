//! By which key an SSH server is known: the one that was given, and those in the files of known hosts.

use std::fmt;
use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use russh::keys::ssh_key::EcdsaCurve;
use russh::keys::{Algorithm, HashAlg, PublicKey};

use super::SshAddress;
use super::address::known_as;
use super::bounded_text;
use super::known_hosts::{KnownKey, known_keys};
use crate::files::AbsolutePath;
use crate::users::own_home;

/// The known hosts of the whole machine.
const OF_THE_MACHINE: &str = "/etc/ssh/ssh_known_hosts";

/// The longest file of known hosts that is read.
const LONGEST: u64 = 16 << 20;

/// Why a text is no key of a host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidHostKey {
    /// A fingerprint shows a key, but is none.
    #[error("a fingerprint is not the key: the key is the long text that `ssh-keyscan HOST` shows")]
    Fingerprint,
    /// It is no key.
    #[error("it is not the base64 text that stands behind the type of a key, as `ssh-keyscan HOST` shows it")]
    NoKey,
    /// Its type is of no use.
    #[error("keys of the type `{0}` are not supported")]
    Type(String),
}

/// The public key of a host.
#[derive(Clone, PartialEq, Eq)]
pub struct HostKey(PublicKey);

impl HostKey {
    pub(super) fn of(key: PublicKey) -> HostKey {
        HostKey(key)
    }

    /// Reads a key: the base64 text, or a whole line of which it is a part.
    ///
    /// # Errors
    /// When there is no key in it.
    pub fn parse(text: &str) -> Result<HostKey, InvalidHostKey> {
        let text = text.trim();
        if text.starts_with("SHA256:") || text.starts_with("MD5:") {
            return Err(InvalidHostKey::Fingerprint);
        }
        // All keys begin with the length of the name of their type.
        let word = text.split_whitespace().find(|word| word.starts_with("AAAA"));
        let key = read(word.ok_or(InvalidHostKey::NoKey)?).ok_or(InvalidHostKey::NoKey)?;
        match key.algorithm() {
            Algorithm::Ed25519 | Algorithm::Ecdsa { .. } | Algorithm::Rsa { .. } => Ok(HostKey(key)),
            other => Err(InvalidHostKey::Type(other.to_string())),
        }
    }
}

impl fmt::Debug for HostKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(&self.0))
    }
}

/// A key as people compare it: its type, and its fingerprint.
pub(super) fn shown(key: &PublicKey) -> String {
    format!("{} {}", key.algorithm(), key.fingerprint(HashAlg::Sha256))
}

/// The key that such a text is.
pub(super) fn read(base64: &str) -> Option<PublicKey> {
    let bytes = STANDARD
        .decode(base64)
        .or_else(|_| STANDARD_NO_PAD.decode(base64));
    russh::keys::key::parse_public_key(&bytes.ok()?).ok()
}

/// By which keys a server is known.
#[derive(Debug, Clone)]
pub(super) struct Expected {
    place: String,
    host: String,
    port: u16,
    explicit: Option<HostKey>,
    known: Vec<Known>,
    /// Which files were looked into.
    files: Vec<PathBuf>,
}

/// A key, and the file that has it.
#[derive(Debug, Clone)]
struct Known {
    file: PathBuf,
    known: KnownKey,
}

impl Expected {
    /// Reads the files of known hosts. Blocks.
    pub(super) fn read(address: &SshAddress, explicit: Option<HostKey>) -> Result<Expected, String> {
        let mut expected = Expected {
            place: address.place(),
            host: address.host.clone(),
            port: address.port,
            explicit: explicit.or_else(|| address.host_key.clone()),
            known: Vec::new(),
            files: Vec::new(),
        };
        let own = own_home().map(|home| home.join(".ssh/known_hosts"));
        for file in own.into_iter().chain([PathBuf::from(OF_THE_MACHINE)]) {
            let text = text_of(&file)?;
            expected.add(&file, &text);
        }
        Ok(expected)
    }

    fn add(&mut self, file: &std::path::Path, text: &str) {
        self.files.push(file.to_owned());
        let keys = known_keys(text, &self.host, self.port).into_iter();
        self.known.extend(keys.map(|known| Known {
            file: file.to_owned(),
            known,
        }));
    }

    fn accepted(&self) -> impl Iterator<Item = &Known> {
        self.known.iter().filter(|one| !one.known.is_revoked)
    }

    /// Which types of keys the server is asked for, the best first: that of the key that was given, those by which it is known, all others, and
    /// RSA with SHA-1 last.
    pub(super) fn algorithms(&self) -> Vec<Algorithm> {
        let all = [
            Algorithm::Ed25519,
            Algorithm::Ecdsa {
                curve: EcdsaCurve::NistP256,
            },
            Algorithm::Ecdsa {
                curve: EcdsaCurve::NistP384,
            },
            Algorithm::Ecdsa {
                curve: EcdsaCurve::NistP521,
            },
            Algorithm::Rsa {
                hash: Some(HashAlg::Sha512),
            },
            Algorithm::Rsa {
                hash: Some(HashAlg::Sha256),
            },
        ];
        let is_of = |algorithm: &Algorithm, key: &PublicKey| match algorithm {
            Algorithm::Rsa { .. } => matches!(key.algorithm(), Algorithm::Rsa { .. }),
            other => key.algorithm() == *other,
        };
        let rank = |algorithm: &Algorithm| {
            if self.explicit.as_ref().is_some_and(|key| is_of(algorithm, &key.0)) {
                0
            } else if self.accepted().any(|one| is_of(algorithm, &one.known.key.0)) {
                1
            } else {
                2
            }
        };
        let mut ordered = Vec::from(all);
        ordered.sort_by_key(rank);
        ordered.push(Algorithm::Rsa { hash: None });
        ordered
    }

    /// Whether the server that shows this key is the one that is meant; else why not, and what to do.
    pub(super) fn check(&self, key: &PublicKey) -> Result<(), String> {
        let place = &self.place;
        let shows = shown(key);
        let is = |one: &&Known| one.known.key.0.key_data() == key.key_data();
        let at = |one: &Known| format!("{}, line {}", one.file.display(), one.known.line);
        if let Some(revoked) = self.known.iter().filter(|one| one.known.is_revoked).find(is) {
            return Err(format!(
                "the SSH server {place} shows the key {shows}, which is revoked ({}): whoever has it may be somebody else; give \
                 the server a new key",
                at(revoked)
            ));
        }
        if self
            .explicit
            .as_ref()
            .is_some_and(|explicit| explicit.0.key_data() == key.key_data())
        {
            return Ok(());
        }
        if self.accepted().any(|one| is(&one)) {
            return Ok(());
        }
        let compare = format!(
            "the fingerprint of its true key is what `ssh-keygen -lf /etc/ssh/ssh_host_{}_key.pub` shows on that host",
            file_word(&key.algorithm())
        );
        if let Some(explicit) = &self.explicit {
            return Err(format!(
                "the SSH server {place} shows the key {shows}, and not the given {}: somebody may stand in between, or the host \
                 has a new key; {compare}, and if that is the one, give the new key",
                shown(&explicit.0)
            ));
        }
        let is_of_its_type = |one: &&Known| one.known.key.0.algorithm() == key.algorithm();
        if let Some(known) = self.accepted().find(is_of_its_type) {
            return Err(format!(
                "the SSH server {place} shows the key {shows}, but is known by {} ({}): somebody may stand in between, or the \
                 host has a new key; {compare}, and if that is the one, forget the old one: `ssh-keygen -R '{}'`",
                shown(&known.known.key.0),
                at(known),
                known_as(&self.host, self.port)
            ));
        }
        if let Some(known) = self.accepted().next() {
            return Err(format!(
                "the SSH server {place} shows the key {shows}, but is known by one of another type, {} ({}); {compare}, and if \
                 that is the one, add it there",
                shown(&known.known.key.0),
                at(known)
            ));
        }
        let files: Vec<String> = self.files.iter().map(|file| file.display().to_string()).collect();
        Err(format!(
            "the SSH server {place} is not known: it shows the key {shows}, and neither {} nor an option says that this is its \
             key; {compare}, and if that is the one, add the line that `ssh-keyscan{} {}` shows to {}",
            files.join(" nor "),
            match self.port {
                22 => String::new(),
                port => format!(" -p {port}"),
            },
            self.host,
            files.first().map_or("~/.ssh/known_hosts", String::as_str)
        ))
    }
}

fn text_of(file: &std::path::Path) -> Result<String, String> {
    let Ok(path) = AbsolutePath::new(file) else {
        return Ok(String::new());
    };
    let text = bounded_text::text_of(&path, LONGEST);
    let text = text.map_err(|why| format!("the known hosts of SSH cannot be used: {why}"))?;
    Ok(text.unwrap_or_default())
}

/// How the files of a host's own keys are called.
fn file_word(algorithm: &Algorithm) -> &'static str {
    match algorithm {
        Algorithm::Ed25519 => "ed25519",
        Algorithm::Ecdsa { .. } => "ecdsa",
        _ => "rsa",
    }
}
