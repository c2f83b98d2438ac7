//! SSH signatures of texts, in the form of `ssh-keygen -Y sign`.

use std::path::Path;

use russh::keys::ssh_key::{LineEnding, SshSig};
use russh::keys::{HashAlg, PublicKey};

use super::bounded_text::text_of;
use super::identities::{self, Found};
use crate::files::AbsolutePath;

/// The longest file of signers.
const LONGEST: u64 = 1 << 20;

/// Signs a text with the private key in a file.
///
/// # Errors
/// Why the key cannot be used, as a sentence.
pub fn sign(key: &Path, namespace: &str, text: &[u8]) -> Result<String, String> {
    let failed = |why: String| format!("{} cannot be used: {why}", key.display());
    let secret = match identities::read(&absolute(key)?).map_err(failed)? {
        Found::Key(secret) => secret,
        Found::Encrypted(_) => return Err(failed("it has a passphrase".to_owned())),
        Found::Unusable(why) => return Err(failed(why)),
    };
    let signature = secret
        .sign(namespace, HashAlg::Sha512, text)
        .and_then(|signature| signature.to_pem(LineEnding::LF));
    signature.map_err(|error| failed(error.to_string()))
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
    /// When the file cannot be read, or a line cannot be used, as a sentence.
    pub fn read(path: &Path, namespace: &str) -> Result<Signers, String> {
        let text = text_of(&absolute(path)?, LONGEST)?
            .ok_or_else(|| format!("there is no file {}", path.display()))?;
        let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
        let mut signers = Vec::new();
        for (line, text) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
            let signer =
                signer(text, namespace).map_err(|why| format!("{}, line {line}: {why}", path.display()))?;
            signers.extend(signer);
        }
        Ok(Signers(signers))
    }

    /// The name of the signer of a text.
    ///
    /// # Errors
    /// Why the signature is not accepted, as a sentence.
    pub fn verify(&self, namespace: &str, text: &[u8], signature: &str) -> Result<&str, &'static str> {
        let signature = SshSig::from_pem(signature).map_err(|_| "its signature is damaged")?;
        let mut of_key = self
            .0
            .iter()
            .filter(|signer| signer.key.key_data() == signature.public_key());
        let Some(signer) = of_key.next() else {
            return Err("it is signed with another key than those in the file of signers");
        };
        match signer.key.verify(namespace, text, &signature) {
            Ok(()) => Ok(&signer.name),
            Err(_) => Err("its contents differ from those that were signed"),
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

fn absolute(path: &Path) -> Result<AbsolutePath, String> {
    let path = std::path::absolute(path).map_err(|error| error.to_string())?;
    AbsolutePath::new(path).map_err(|error| error.to_string())
}
