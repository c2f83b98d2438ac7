//! The key pair of a host, with which secrets in the store are encrypted to it.
//!
//! It is an [age](https://age-encryption.org/v1) identity of X25519, in the form in which `age-keygen` writes it, in `keys/host.age` below the prefix: made at the first start
//! with a store, and read only by its owner. Whoever has it reads what is encrypted to this host. If it is lost another one is made at the next start, and those who share
//! secrets with this host encrypt them to that one.

use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;
use std::str::FromStr;

use age::secrecy::ExposeSecret;
use age::x25519::Identity;

use crate::failure::Failure;

/// The key pair of a host.
#[derive(Clone)]
pub struct HostKey(Identity);

impl HostKey {
    /// That of the host with this prefix; made if there is none yet.
    ///
    /// # Errors
    /// When it cannot be read or written, is none, or can be read by others.
    pub fn of(prefix: &Path) -> Result<HostKey, Failure> {
        let path = path(prefix);
        if let Some(key) = HostKey::read(&path)? {
            return Ok(key);
        }
        let key = HostKey(Identity::generate());
        match key.write(&path) {
            Ok(()) => Ok(key),
            // Another process was faster.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => HostKey::of(prefix),
            Err(error) => {
                let attempted = format!("write the key of this host, {}", path.display());
                Err(Failure::io(attempted, &error))
            }
        }
    }

    /// That of the host with this prefix, if it has one.
    ///
    /// # Errors
    /// As [`HostKey::of`].
    pub fn existing(prefix: &Path) -> Result<Option<HostKey>, Failure> {
        HostKey::read(&path(prefix))
    }

    /// One of nobody, to whom nothing is encrypted.
    pub(crate) fn of_nobody() -> HostKey {
        HostKey(Identity::generate())
    }

    /// The half of it that others know: `age1…`.
    pub fn public(&self) -> String {
        self.0.to_public().to_string()
    }

    /// What was encrypted to it, among others.
    pub(super) fn decrypt(&self, encrypted: &[u8]) -> Result<Vec<u8>, age::DecryptError> {
        age::decrypt(&self.0, encrypted)
    }

    fn read(path: &Path) -> Result<Option<HostKey>, Failure> {
        let attempted = || format!("read the key of this host, {}", path.display());
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Failure::io(attempted(), &error)),
        };
        let mode = std::fs::metadata(path).map_err(|error| Failure::io(attempted(), &error))?;
        let mode = mode.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            let failure = Failure::wrong(format!("failed to {}", attempted()));
            let failure = failure.because(format!("its mode is {mode:04o}, so others can read or change it"));
            return Err(failure.hint(
                "if nobody has read it, give it the mode 0600; otherwise remove it, and another one is made",
            ));
        }
        let lines = text.lines().map(str::trim);
        let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        let identity = lines.next().and_then(|line| Identity::from_str(line).ok());
        match identity {
            Some(identity) => Ok(Some(HostKey(identity))),
            None => {
                let failure = Failure::wrong(format!("failed to {}", attempted()));
                let failure =
                    failure.because("there is no age identity of the form `AGE-SECRET-KEY-1…` in it");
                Err(failure.hint("restore it, or remove it: then another one is made"))
            }
        }
    }

    /// Writes it, if there is none. It is there as a whole, or not at all.
    fn write(&self, path: &Path) -> std::io::Result<()> {
        let directory = path.parent().unwrap_or(Path::new("/"));
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(directory)?;
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        let secret = self.0.to_string();
        writeln!(
            file,
            "# public key: {}\n{}",
            self.public(),
            secret.expose_secret()
        )?;
        file.as_file().sync_all()?;
        file.persist_noclobber(path).map_err(|error| error.error)?;
        std::fs::File::open(directory)?.sync_all()
    }
}

fn path(prefix: &Path) -> std::path::PathBuf {
    prefix.join("keys/host.age")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_once_and_nobody_else_reads_it() {
        let place = tempfile::tempdir().unwrap();
        assert!(HostKey::existing(place.path()).unwrap().is_none());
        let made = HostKey::of(place.path()).unwrap();
        assert_eq!(HostKey::of(place.path()).unwrap().public(), made.public());
        let path = path(place.path());
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
        assert!(HostKey::of(place.path()).is_err());
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        std::fs::write(&path, "# only this\n").unwrap();
        assert!(HostKey::of(place.path()).is_err());
    }
}
