//! The program that this process is, as it was when it began: also when the file on disk is another one by now.

use std::fs::File;
use std::io::{self, Read};
use std::sync::OnceLock;

use sha2::{Digest, Sha256};

/// What this process runs.
const OWN: &str = "/proc/self/exe";

/// Opens it. Blocks.
///
/// # Errors
/// When the system does not give it.
pub fn open() -> io::Result<File> {
    File::open(OWN)
}

/// Its SHA-256, in hexadecimal digits. Computed once. Blocks.
///
/// # Errors
/// When it cannot be read.
pub fn sha256() -> io::Result<&'static str> {
    static HASH: OnceLock<String> = OnceLock::new();
    if let Some(hash) = HASH.get() {
        return Ok(hash);
    }
    let (mut program, mut hasher) = (open()?, Sha256::new());
    let mut buffer = vec![0; 1 << 16];
    loop {
        match program.read(&mut buffer)? {
            0 => break,
            count => hasher.update(&buffer[..count]),
        }
    }
    let digits = hasher
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    Ok(HASH.get_or_init(|| digits))
}
