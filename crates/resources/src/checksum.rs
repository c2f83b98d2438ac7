//! A checksum, as a parameter: `sha256:` and hexadecimal digits.

use std::fmt;
use std::io::{self, Read};

use md5::Md5;
use setpoint_engine::Parameter;
use setpoint_graph::{ParameterType, TypeMismatch};
use setpoint_host::files::Fingerprint;
use setpoint_value::Value;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};
use tokio_util::sync::CancellationToken;

/// The checksum of contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Checksum {
    algorithm: Algorithm,
    /// Hexadecimal, in lower case.
    digest: String,
}

/// The algorithm of a checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Algorithm {
    Md5,
    Sha1,
    Sha256,
    Sha512,
}

impl Algorithm {
    const ALL: [(&'static str, Algorithm, usize); 4] = [
        ("sha256", Algorithm::Sha256, 64),
        ("sha512", Algorithm::Sha512, 128),
        ("sha1", Algorithm::Sha1, 40),
        ("md5", Algorithm::Md5, 32),
    ];

    /// The checksum of contents.
    ///
    /// # Errors
    /// When they cannot be read, or the work is cancelled.
    pub(crate) fn of(self, contents: &mut impl Read, stop: &CancellationToken) -> io::Result<Checksum> {
        let digest = match self {
            Algorithm::Md5 => digest::<Md5>(contents, stop)?,
            Algorithm::Sha1 => digest::<Sha1>(contents, stop)?,
            Algorithm::Sha256 => digest::<Sha256>(contents, stop)?,
            Algorithm::Sha512 => digest::<Sha512>(contents, stop)?,
        };
        Ok(Checksum {
            algorithm: self,
            digest,
        })
    }
}

fn digest<D: Digest>(contents: &mut impl Read, stop: &CancellationToken) -> io::Result<String> {
    let mut hash = D::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        if stop.is_cancelled() {
            return Err(io::Error::other("cancelled"));
        }
        match contents.read(&mut buffer)? {
            0 => break,
            count => hash.update(&buffer[..count]),
        }
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

impl Checksum {
    /// A checksum without the name of its algorithm, which its length says.
    pub(crate) fn of_digits(digits: &str) -> Option<Checksum> {
        let digest = digits.to_ascii_lowercase();
        let is_hexadecimal = digest.bytes().all(|byte| byte.is_ascii_hexdigit());
        let found = Algorithm::ALL
            .iter()
            .find(|(_, _, length)| *length == digest.len());
        let (_, algorithm, _) = found.filter(|_| is_hexadecimal)?;
        Some(Checksum {
            algorithm: *algorithm,
            digest,
        })
    }

    pub(crate) fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    pub(crate) fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of_digest(&Sha256::digest(self.to_string()))
    }

    /// The checksum that screens show: its first digits.
    pub(crate) fn short(&self) -> String {
        let end = self.digest.len().min(12);
        format!("{} {}…", self.name(), &self.digest[..end])
    }

    fn name(&self) -> &'static str {
        let found = Algorithm::ALL
            .iter()
            .find(|(_, algorithm, _)| *algorithm == self.algorithm);
        found.map_or("", |(name, ..)| *name)
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.name(), self.digest)
    }
}

impl Parameter for Checksum {
    const TYPE: ParameterType = ParameterType::Str;
    const FORM: Option<fn() -> String> = Some(|| {
        let digits = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
        format!("a checksum like `sha256:{digits}`; sha512, sha1 and md5 are known, too")
    });

    fn decode(value: &Value) -> Result<Checksum, TypeMismatch> {
        let text = String::decode(value)?;
        let refused = |why: String| TypeMismatch::new(format!("`{text}` is not a checksum: {why}"));
        let help = "write `sha256:` and the digits that `sha256sum` prints";
        let Some((name, digits)) = text.split_once(':') else {
            return Err(refused("the name of its algorithm is missing".to_owned()).help(help));
        };
        let Some((_, algorithm, length)) = Algorithm::ALL.iter().find(|(known, ..)| *known == name) else {
            return Err(refused(format!("`{name}` is no algorithm that it can have")).help(help));
        };
        match Checksum::of_digits(digits).filter(|checksum| checksum.algorithm == *algorithm) {
            Some(checksum) => Ok(checksum),
            None => Err(refused(format!("{name} has {length} hexadecimal digits"))),
        }
    }

    fn encode(&self) -> Value {
        Value::str(self.to_string())
    }
}

/// The checksum of a file in a list as `sha256sum` prints it, in the form of BSD, or of one checksum alone.
pub(crate) fn find_in_list(list: &str, file: &str) -> Option<Checksum> {
    let lines = || {
        list.lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
    };
    let is_named = |name: &str| {
        let name = name.trim().trim_start_matches(['*', ' ']);
        name == file || name.strip_prefix("./") == Some(file) || name.rsplit('/').next() == Some(file)
    };
    let of_line = |line: &str| {
        // `SHA256 (file) = 1a2b…`
        if let Some((head, digits)) = line.rsplit_once(") = ") {
            let (_, name) = head.split_once(" (")?;
            return is_named(name)
                .then(|| Checksum::of_digits(digits.trim()))
                .flatten();
        }
        let (digits, name) = line.split_once([' ', '\t'])?;
        is_named(name).then(|| Checksum::of_digits(digits)).flatten()
    };
    let alone = || {
        let mut lines = lines();
        let only = lines.next().filter(|_| lines.next().is_none())?;
        Checksum::of_digits(only)
    };
    lines().find_map(of_line).or_else(alone)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGITS: &str = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae";

    #[test]
    fn checksums_are_read_computed_and_refused() {
        let text = format!("sha256:{}", DIGITS.to_uppercase());
        let checksum = Checksum::decode(&Value::str(text.as_str())).unwrap();
        let stop = CancellationToken::new();
        assert_eq!(Algorithm::Sha256.of(&mut &b"foo"[..], &stop).unwrap(), checksum);
        assert_eq!(checksum.short(), "sha256 2c26b46b68ff…");
        for (text, why) in [
            (DIGITS, "the name of its algorithm is missing"),
            ("crc32:00000000", "`crc32` is no algorithm that it can have"),
            ("sha256:00", "sha256 has 64 hexadecimal digits"),
            ("md5:zz", "md5 has 32 hexadecimal digits"),
        ] {
            let refused = Checksum::decode(&Value::str(text)).unwrap_err().to_string();
            assert_eq!(refused, format!("`{text}` is not a checksum: {why}"));
        }
    }

    #[test]
    fn a_file_is_found_in_lists_of_every_form() {
        let wanted = Checksum::of_digits(DIGITS);
        assert!(wanted.is_some());
        for list in [
            format!("{DIGITS}  a.tar.gz\n"),
            format!("00112233445566778899aabbccddeeff  b\n{DIGITS} *./a.tar.gz\n"),
            format!("SHA256 (dir/a.tar.gz) = {DIGITS}"),
            format!("# of today\n{DIGITS}\n"),
        ] {
            assert_eq!(find_in_list(&list, "a.tar.gz"), wanted, "{list}");
        }
        assert_eq!(
            find_in_list(&format!("{DIGITS}  b\n{DIGITS}  c\n"), "a.tar.gz"),
            None
        );
        assert_eq!(find_in_list("", "a"), None);
    }
}
