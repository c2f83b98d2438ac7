//! Detached signatures: of OpenPGP, which `gpgv` checks, and of minisign.

use std::ffi::OsString;
use std::io::Read;

use minisign_verify::{PublicKey, Signature};
use setpoint_engine::{Apply, Attempting, Failure};
use setpoint_host::files::{AbsolutePath, Entry, Replace};
use setpoint_host::processes::{Command, Environment, Stop};
use tokio::task::block_in_place;

/// The program that checks signatures of OpenPGP.
const GPGV: &str = "/usr/bin/gpgv";

/// The key that must have made a signature.
pub(super) enum Signer {
    /// A key ring.
    OpenPgp(AbsolutePath),
    Minisign(Box<PublicKey>),
}

impl Signer {
    pub(super) fn read(text: &str) -> Result<Signer, String> {
        if text.starts_with('/') {
            return AbsolutePath::new(text)
                .map(Signer::OpenPgp)
                .map_err(|error| error.to_string());
        }
        match PublicKey::from_base64(text) {
            Ok(key) => Ok(Signer::Minisign(Box::new(key))),
            Err(error) => Err(format!(
                "it is neither the absolute path of a key ring, nor a public key of minisign: {error}"
            )),
        }
    }

    /// Checks the signature of a file.
    ///
    /// # Errors
    /// When this key has not made it.
    pub(super) async fn check(
        &self,
        file: &AbsolutePath,
        signature: &[u8],
        apply: &Apply<'_>,
    ) -> Result<(), Failure> {
        match self {
            Signer::Minisign(key) => block_in_place(|| minisign(key, file, signature)),
            Signer::OpenPgp(ring) => gpgv(ring, file, signature, apply).await,
        }
    }
}

fn failed() -> Failure {
    Failure::new("check the signature")
}

fn minisign(key: &PublicKey, file: &AbsolutePath, signature: &[u8]) -> Result<(), Failure> {
    let text = std::str::from_utf8(signature).map_err(|_| failed().because("it is no text"))?;
    let signature = Signature::decode(text).map_err(|error| failed().because(error))?;
    let mut contents = Entry::at(file)
        .and_then(|entry| entry.open())
        .attempting("read", file)?;
    let Ok(mut verifier) = key.verify_stream(&signature) else {
        // Signatures of an older form are of the contents, and not of their hash.
        let contents = contents.read_all()?;
        let checked = key.verify(&contents, &signature, true);
        return checked.map_err(|error| failed().because(error));
    };
    let mut buffer = vec![0; 1 << 16];
    loop {
        match contents
            .read(&mut buffer)
            .map_err(|error| failed().because(error))?
        {
            0 => break,
            count => verifier.update(&buffer[..count]),
        }
    }
    verifier.finalize().map_err(|error| failed().because(error))
}

async fn gpgv(
    ring: &AbsolutePath,
    file: &AbsolutePath,
    signature: &[u8],
    apply: &Apply<'_>,
) -> Result<(), Failure> {
    let path = apply.handle().var_dir()?.join("signature");
    let copy = Replace::bytes(path.clone(), signature.to_vec());
    block_in_place(|| apply.handle().committer().replace(copy))?;
    let paths = [ring, &path, file].map(|path| path.as_path().as_os_str().to_owned());
    let words = std::iter::once(OsString::from("--keyring")).chain(paths);
    let variables = [
        ("LC_ALL", "C"),
        ("PATH", "/usr/bin:/bin"),
        ("HOME", "/nonexistent"),
    ];
    let variables = variables.map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let command =
        Command::new(GPGV, words).environment(Environment::Exactly(variables.into_iter().collect()));
    let cancellation = apply.cancellation();
    let stop = Stop {
        cancel: cancellation.token().clone(),
        interrupt: cancellation.interrupt_token().child_token(),
        ..Stop::default()
    };
    let finished = apply.handle().processes().run(&command, &stop).await;
    let finished = finished.map_err(|error| failed().because(error))?;
    if finished.exit.is_success() {
        return Ok(());
    }
    let said = finished.output.text();
    let said: Vec<&str> = said
        .lines()
        .map(|line| line.trim_start_matches("gpgv: "))
        .collect();
    Err(failed().because(format!("gpgv refuses it: {}", said.join("; "))))
}
