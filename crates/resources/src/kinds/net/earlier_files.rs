//! Files of others that systemd-networkd takes for an interface, because their names come before that of ours.
//!
//! For each interface networkd takes one file: the first, by its name alone, whose section `[Match]` fits, systemd.network(5). One of another directory with the same name
//! replaces it, or with nothing in it switches it off. So a file that comes earlier makes ours one that is never read. That is warned of, and no failure: the interface itself is as
//! wanted until networkd configures it, and on many machines networkd never runs.
//!
//! What can be told of an interface without networkd is compared: its name, its address, its type. Alternative names are not known here, and of conditions of other sorts it is only said that the
//! file may fit.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use setpoint_engine::Failure;
use setpoint_host::files::AbsolutePath;

use crate::text_lines;

/// Where networkd looks for files, the most important directory first.
pub(super) const DIRECTORIES: [&str; 5] = [
    super::DIRECTORY,
    "/run/systemd/network",
    "/usr/local/lib/systemd/network",
    "/usr/lib/systemd/network",
    "/lib/systemd/network",
];

/// A file that comes before ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Earlier {
    pub(super) path: PathBuf,
    /// Whether it is taken for certain.
    pub(super) is_certain: bool,
}

/// What is compared of an interface.
#[derive(Debug, Default)]
struct Facts {
    name: String,
    /// Of its hardware.
    address: String,
    /// `ether`, `loopback`, `wlan`, `bridge`; empty: not known.
    kind: String,
}

/// How an interface stands to a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fits {
    No,
    Perhaps,
    Yes,
}

/// The file that networkd takes for an interface instead of the one of this name.
pub(super) fn earlier(interface: &str, own: &str) -> Result<Option<Earlier>, Failure> {
    let facts = Facts::of(interface)?;
    let mut files: BTreeMap<Vec<u8>, PathBuf> = BTreeMap::new();
    for directory in DIRECTORIES {
        // One that is missing, or that only its owner may list, has none for us.
        for file in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            let name = file.file_name().into_encoded_bytes();
            if name.ends_with(b".network") && name.as_slice() < own.as_bytes() && !name.starts_with(b".") {
                files.entry(name).or_insert_with(|| file.path());
            }
        }
    }
    let mut perhaps = None;
    for path in files.into_values() {
        // One that has gone meanwhile, or that cannot be read, is not taken by networkd either.
        let Some(text) = read(&path).ok().flatten() else {
            continue;
        };
        let found = |is_certain| Earlier {
            path: path.clone(),
            is_certain,
        };
        match facts.fit(&String::from_utf8_lossy(&text)) {
            Fits::Yes => return Ok(Some(perhaps.unwrap_or(found(true)))),
            Fits::Perhaps => {
                perhaps.get_or_insert(found(false));
            }
            Fits::No => {}
        }
    }
    Ok(perhaps)
}

/// A file's text; nothing of what is no file, as the link to `/dev/null` that switches one off.
fn read(path: &Path) -> Result<Option<Vec<u8>>, Failure> {
    match AbsolutePath::new(path) {
        Ok(path) if path.as_path().is_file() => text_lines::read(&path),
        _ => Ok(None),
    }
}

impl Facts {
    fn of(interface: &str) -> Result<Facts, Failure> {
        let fact = |name: &str| {
            let path = AbsolutePath::new(format!("/sys/class/net/{interface}/{name}")).ok();
            let text = path.map_or(Ok(None), |path| text_lines::read(&path))?;
            let text = String::from_utf8_lossy(&text.unwrap_or_default()).into_owned();
            Ok::<String, Failure>(text.trim_ascii().to_owned())
        };
        let events = fact("uevent")?;
        let sort = events.lines().find_map(|line| line.strip_prefix("DEVTYPE="));
        // Numbers of if_arp.h.
        let kind = match (sort, fact("type")?.as_str()) {
            (Some(sort), _) => sort.to_owned(),
            (None, "1") => "ether".to_owned(),
            (None, "772") => "loopback".to_owned(),
            (None, _) => String::new(),
        };
        Ok(Facts {
            name: interface.to_owned(),
            address: fact("address")?,
            kind,
        })
    }

    /// Whether the section `[Match]` of a file fits. One that says nothing fits everything; a file with nothing in it nothing.
    fn fit(&self, text: &str) -> Fits {
        let mut conditions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        let mut is_in_match = false;
        let mut is_empty = true;
        for line in text.lines().map(str::trim) {
            if line.is_empty() || line.starts_with(['#', ';']) {
                continue;
            }
            is_empty = false;
            if line.starts_with('[') {
                is_in_match = line == "[Match]";
            } else if is_in_match && let Some((key, value)) = line.split_once('=') {
                let words = conditions.entry(key.trim()).or_default();
                // Nothing takes back what was said before.
                if value.trim().is_empty() {
                    words.clear();
                }
                words.extend(value.split_whitespace());
            }
        }
        if is_empty {
            return Fits::No;
        }
        let said = conditions.iter().filter(|(_, words)| !words.is_empty());
        said.map(|(key, words)| self.fits(key, words))
            .min()
            .unwrap_or(Fits::Yes)
    }

    /// Whether a condition holds: one of its words fits, or, if it begins with `!`, none.
    fn fits(&self, key: &str, words: &[&str]) -> Fits {
        let is = match key {
            "Name" => self.name.as_str(),
            "MACAddress" => self.address.as_str(),
            "Type" if !self.kind.is_empty() => self.kind.as_str(),
            _ => return Fits::Perhaps,
        };
        let negated = words[0].starts_with('!');
        let fits = |word: &&str| {
            let word = word.strip_prefix('!').unwrap_or(word);
            match key {
                // With colons, hyphens or points between its digits.
                "MACAddress" => digits(word) == digits(is),
                _ => is_like(word.as_bytes(), is.as_bytes()),
            }
        };
        match words.iter().any(fits) == negated {
            true => Fits::No,
            false => Fits::Yes,
        }
    }
}

fn digits(address: &str) -> String {
    let digits = address.chars().filter(char::is_ascii_hexdigit);
    digits.map(|digit| digit.to_ascii_lowercase()).collect()
}

/// Whether a text is like a pattern of the shell, glob(7): `*`, `?`, `[ab]`, `[!a-c]`.
fn is_like(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern.split_first(), text.split_first()) {
        (None, None) => true,
        // Several in a row mean the same as one, and would be tried in all ways.
        (Some((b'*', [b'*', ..])), _) => is_like(&pattern[1..], text),
        (Some((b'*', rest)), _) => (0..=text.len()).any(|skipped| is_like(rest, &text[skipped..])),
        (Some((b'?', rest)), Some((_, after))) => is_like(rest, after),
        (Some((b'[', set)), Some((first, after))) => match one_of(set, *first) {
            Some((is_in, rest)) => is_in && is_like(rest, after),
            None => *first == b'[' && is_like(set, after),
        },
        (Some((b'\\', [escaped, rest @ ..])), Some((first, after))) => {
            escaped == first && is_like(rest, after)
        }
        (Some((sign, rest)), Some((first, after))) => sign == first && is_like(rest, after),
        _ => false,
    }
}

/// Whether a sign is in a set whose `[` was read, and what follows it; none if nothing ends it.
fn one_of(set: &[u8], sign: u8) -> Option<(bool, &[u8])> {
    let (negated, set) = match set {
        [b'!' | b'^', rest @ ..] => (true, rest),
        set => (false, set),
    };
    // A bracket that comes first is in the set.
    let end = 1 + set.get(1..)?.iter().position(|byte| *byte == b']')?;
    let mut rest = &set[..end];
    let mut is_in = false;
    while let [first, after @ ..] = rest {
        match after {
            [b'-', last, after @ ..] => {
                is_in |= (*first..=*last).contains(&sign);
                rest = after;
            }
            _ => {
                is_in |= *first == sign;
                rest = after;
            }
        }
    }
    Some((is_in != negated, &set[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_fit_by_what_is_known() {
        let facts = Facts {
            name: "eth0".to_owned(),
            address: "02:00:5e:00:53:01".to_owned(),
            kind: "ether".to_owned(),
        };
        for (section, fits) in [
            ("", Fits::No),
            ("# nothing", Fits::No),
            ("[Network]\nDHCP=yes", Fits::Yes),
            ("[Match]\nName=eth0\n[Network]\nName=no", Fits::Yes),
            ("[Match]\nName=eth1 eth*", Fits::Yes),
            ("[Match]\nName=eth1\nName=eth0", Fits::Yes),
            ("[Match]\nName=eth0\nName=\nName=eth1", Fits::No),
            ("[Match]\nName=!eth0", Fits::No),
            ("[Match]\nName=!wlan0 wlan1", Fits::Yes),
            ("[Match]\nName=e[a-t]h?", Fits::Yes),
            ("[Match]\nName=e[!t]h0", Fits::No),
            ("[Match]\nName=eth0[", Fits::No),
            ("[Match]\nMACAddress=02-00-5E-00-53-01", Fits::Yes),
            ("[Match]\nMACAddress=0200.5e00.5301", Fits::Yes),
            ("[Match]\nMACAddress=02:00:5e:00:53:02", Fits::No),
            ("[Match]\nName=******************************x", Fits::No),
            ("[Match]\nType=ether\nName=*", Fits::Yes),
            ("[Match]\nType=wlan\nWLANInterfaceType=ad-hoc", Fits::No),
            ("[Match]\nDriver=virtio_net", Fits::Perhaps),
            ("[Match]\nDriver=virtio_net\nName=eth1", Fits::No),
        ] {
            assert_eq!(facts.fit(section), fits, "{section}");
        }
    }
}
