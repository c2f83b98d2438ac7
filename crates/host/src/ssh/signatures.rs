//! SSH signatures of texts, in the form of `ssh-keygen -Y sign`.

use std::path::{Path, PathBuf};

use russh::keys::ssh_key::{LineEnding, SshSig};
use russh::keys::{HashAlg, PrivateKey, PublicKey};

/// Why a text cannot be signed, or a signature is not accepted.
#[derive(Debug, thiserror::Error)]
pub enum SignatureError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A file holds no private key that can be used.
    #[error("{} is not a private key of OpenSSH without a passphrase: {why}", path.display())]
    NoKey {
        /// The file.
        path: PathBuf,
        /// The cause.
        why: String,
    },
    /// A line of a file of signers cannot be used.
    #[error("{}, line {line}: {why}", path.display())]
    Signers {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The cause.
        why: String,
    },
    /// The text is not signed by one of the signers.
    #[error("{0}")]
    Refused(&'static str),
}

/// Signs a text with the private key in a file.
///
/// # Errors
/// When the file has no key that can be used.
pub fn sign(key: &Path, namespace: &str, text: &[u8]) -> Result<String, SignatureError> {
    let no_key = |why: String| SignatureError::NoKey {
        path: key.to_owned(),
        why,
    };
    let secret = PrivateKey::from_openssh(read(key)?).map_err(|error| no_key(error.to_string()))?;
    if secret.is_encrypted() {
        return Err(no_key("it has a passphrase".to_owned()));
    }
    let signature = secret
        .sign(namespace, HashAlg::Sha512, text)
        .and_then(|signature| signature.to_pem(LineEnding::LF));
    signature.map_err(|error| no_key(error.to_string()))
}

/// The keys whose signatures are accepted.
#[derive(Debug)]
pub struct Signers(Vec<Signer>);

#[derive(Debug)]
struct Signer {
    name: String,
    key: PublicKey,
}

/// The options of a signer that are understood. Others are refused, as they may restrict the key.
const NAMESPACES: &str = "namespaces=";

impl Signers {
    /// Reads the signers of a namespace from a file in the form of `ssh-keygen`: a name, options and a public key on each line.
    ///
    /// # Errors
    /// When the file cannot be read, or a line cannot be used.
    pub fn read(path: &Path, namespace: &str) -> Result<Signers, SignatureError> {
        let text = String::from_utf8_lossy(&read(path)?).into_owned();
        let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
        let mut signers = Vec::new();
        for (line, text) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
            let signer = signer(text, namespace).map_err(|why| SignatureError::Signers {
                path: path.to_owned(),
                line,
                why,
            })?;
            signers.extend(signer);
        }
        Ok(Signers(signers))
    }

    /// The name of the signer of a text.
    ///
    /// # Errors
    /// When none of the signers has signed it.
    pub fn verify(&self, namespace: &str, text: &[u8], signature: &str) -> Result<&str, SignatureError> {
        let signature =
            SshSig::from_pem(signature).map_err(|_| SignatureError::Refused("its signature is damaged"))?;
        let mut of_key = self
            .0
            .iter()
            .filter(|signer| signer.key.key_data() == signature.public_key());
        let Some(signer) = of_key.next() else {
            return Err(SignatureError::Refused(
                "it is signed with another key than those in the file of signers",
            ));
        };
        match signer.key.verify(namespace, text, &signature) {
            Ok(()) => Ok(&signer.name),
            Err(_) => Err(SignatureError::Refused(
                "its contents differ from those that were signed",
            )),
        }
    }
}

/// The signer of a line; none if it is one for other namespaces.
fn signer(line: &str, namespace: &str) -> Result<Option<Signer>, String> {
    let (name, rest) = line
        .split_once(char::is_whitespace)
        .ok_or("a name and a public key are needed")?;
    let mut key = rest.trim_start();
    let mut is_for_it = true;
    while let Some((option, after)) = key.split_once(char::is_whitespace) {
        let Some(namespaces) = option.strip_prefix(NAMESPACES) else {
            break;
        };
        is_for_it &= namespaces
            .trim_matches('"')
            .split(',')
            .any(|one| one == namespace);
        key = after.trim_start();
    }
    let key = PublicKey::from_openssh(key).map_err(|error| {
        format!("no public key comes after the name, and the only option that can be used is `namespaces`: {error}")
    })?;
    Ok(is_for_it.then(|| Signer {
        name: name.to_owned(),
        key,
    }))
}

fn read(path: &Path) -> Result<Vec<u8>, SignatureError> {
    std::fs::read(path).map_err(|source| SignatureError::Unreadable {
        path: path.to_owned(),
        source,
    })
}
