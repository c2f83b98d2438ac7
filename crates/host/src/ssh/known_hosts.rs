//! The lines of files of known hosts: sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT".

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use russh::keys::PublicKey;
use sha1::Sha1;

use super::HostKey;
use super::address::known_as;
use super::host_keys::read;

/// A key of a line that speaks of a host.
#[derive(Debug, Clone)]
pub struct KnownKey {
    /// The key.
    pub key: HostKey,
    /// Whether whoever shows it is refused.
    pub is_revoked: bool,
    /// In which line, counted from 1.
    pub line: usize,
}

/// The keys that a file of known hosts has for a host. Lines that are none are passed over, as SSH does.
#[must_use]
pub fn known_keys(text: &str, host: &str, port: u16) -> Vec<KnownKey> {
    let name = known_as(host, port);
    let lines = text.lines().enumerate();
    let keys = lines.filter_map(|(index, line)| {
        let (key, is_revoked) = key_in_line(line, &name)?;
        Some(KnownKey {
            key: HostKey::of(key),
            is_revoked,
            line: index + 1,
        })
    });
    keys.collect()
}

/// The key of a line that speaks of this host, and whether it is revoked.
fn key_in_line(line: &str, known_as: &str) -> Option<(PublicKey, bool)> {
    let mut words = line.split_whitespace();
    let first = words.next().filter(|word| !word.starts_with('#'))?;
    let (hosts, is_revoked) = match first {
        "@revoked" => (words.next()?, true),
        // Who vouches for others, which is not asked for.
        marker if marker.starts_with('@') => return None,
        hosts => (hosts, false),
    };
    if !names(hosts, known_as) {
        return None;
    }
    let _type = words.next()?;
    Some((read(words.next()?)?, is_revoked))
}

/// Whether the first word of a line is of this host: names with wildcards and commas between, `!` before those that are not meant, or a hash.
fn names(hosts: &str, known_as: &str) -> bool {
    let mut is_named = false;
    for pattern in hosts.split(',') {
        match pattern.strip_prefix('!') {
            Some(not) if matches(not, known_as) => return false,
            Some(_) => {}
            None => is_named |= matches(pattern, known_as),
        }
    }
    is_named
}

fn matches(pattern: &str, known_as: &str) -> bool {
    match pattern.strip_prefix("|1|") {
        Some(hashed) => is_hash_of(hashed, known_as).unwrap_or(false),
        None => is_like(pattern.to_ascii_lowercase().as_bytes(), known_as.as_bytes()),
    }
}

/// Whether `SALT|HASH` is of this name.
fn is_hash_of(hashed: &str, known_as: &str) -> Option<bool> {
    let (salt, hash) = hashed.split_once('|')?;
    let (salt, hash) = (STANDARD.decode(salt).ok()?, STANDARD.decode(hash).ok()?);
    let computed = Hmac::<Sha1>::new_from_slice(&salt)
        .ok()?
        .chain_update(known_as.as_bytes());
    Some(computed.verify_slice(&hash).is_ok())
}

/// Whether a text is like a pattern with `*` and `?`. Takes no more than the product of their lengths.
fn is_like(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut done) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while done < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, done));
                at += 1;
            }
            Some(letter) if *letter == b'?' || *letter == text[done] => {
                at += 1;
                done += 1;
            }
            _ => {
                let Some((of_star, from)) = star else { return false };
                star = Some((of_star, from + 1));
                (at, done) = (of_star + 1, from + 1);
            }
        }
    }
    pattern[at..].iter().all(|letter| *letter == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ";

    #[test]
    fn a_line_is_of_the_hosts_that_it_names() {
        for (hosts, known_as, is_named) in [
            ("bastion", "bastion", true),
            ("bastion", "bastion2", false),
            ("a,Bastion,10.0.0.1", "bastion", true),
            ("[bastion]:2222", "[bastion]:2222", true),
            ("bastion", "[bastion]:2222", false),
            ("*.example.com", "a.example.com", true),
            ("*.example.com,!a.example.com", "a.example.com", false),
            ("10.0.0.?", "10.0.0.7", true),
            ("10.0.0.?", "10.0.0.17", false),
            ("[10.0.0.*]:*", "[10.0.0.17]:99", true),
            // As `ssh-keygen -H` has written it.
            (
                "|1|O33ESRMWPVkMYIwJ1Uw+n877jTo=|nuuC5vEqXlEZ/8BXQR7m619W6Ak=",
                "example.com",
                true,
            ),
            (
                "|1|O33ESRMWPVkMYIwJ1Uw+n877jTo=|nuuC5vEqXlEZ/8BXQR7m619W6Ak=",
                "example.org",
                false,
            ),
            ("|1|broken", "broken", false),
        ] {
            let line = format!("{hosts}\tssh-ed25519  {KEY} comment");
            assert_eq!(
                key_in_line(&line, known_as).is_some(),
                is_named,
                "{hosts} {known_as}"
            );
        }
    }

    #[test]
    fn markers_are_understood_and_what_is_no_line_is_passed_over() {
        let revoked = key_in_line(&format!("@revoked * ssh-ed25519 {KEY}"), "bastion");
        assert!(revoked.is_some_and(|(_, is_revoked)| is_revoked));
        for line in [
            String::new(),
            format!("# bastion ssh-ed25519 {KEY}"),
            format!("@cert-authority bastion ssh-ed25519 {KEY}"),
            "bastion ssh-ed25519".to_owned(),
            "bastion ssh-ed25519 AAAA".to_owned(),
            "bastion 2048 35 1234567".to_owned(),
        ] {
            assert!(key_in_line(&line, "bastion").is_none(), "{line}");
        }
    }

    #[test]
    fn a_pattern_of_many_stars_is_soon_decided() {
        let pattern = "*a".repeat(2000);
        assert!(!is_like(pattern.as_bytes(), "a".repeat(1999).as_bytes()));
        assert!(is_like(pattern.as_bytes(), "a".repeat(2000).as_bytes()));
    }
}
