//! What the kernel has mounted, compared with what is wanted by what is meant: devices by their numbers, options as far as the kernel tells of them.

use std::path::Path;

use setpoint_engine::{Attempting, Failure};
use setpoint_host::mounts::{MountedFileSystem, mounted_at};

use super::fstab::Entry;

/// In what a mounted file system differs: what is, and for options what is wanted of them.
pub(super) enum Differs {
    Device(String),
    Kind(String),
    Options(String, String),
}

impl Differs {
    pub(super) fn shown(&self) -> String {
        match self {
            Differs::Device(is) => format!("the device `{is}`"),
            Differs::Kind(is) => format!("the type `{is}`"),
            // What they are may be secret.
            Differs::Options(..) => "other options".to_owned(),
        }
    }
}

/// What is mounted at a point, and on top there.
pub(super) fn find(point: &str) -> Result<Option<MountedFileSystem>, Failure> {
    mounted_at(Path::new(point)).attempting("look for what is mounted at", point)
}

/// The first thing in which a mounted file system is not as it shall be.
pub(super) fn differs(found: &MountedFileSystem, wanted: &Entry) -> Option<Differs> {
    let is_bound = ["bind", "rbind"]
        .iter()
        .any(|option| wanted.options.contains_key(*option));
    if !is_bound {
        if is_other_kind(&found.kind, &wanted.kind) {
            return Some(Differs::Kind(found.kind.clone()));
        }
        if is_other_device(found, &wanted.device) {
            return Some(Differs::Device(found.source.clone()));
        }
    }
    let (is, want): (Vec<String>, Vec<String>) = wanted
        .options
        .iter()
        .filter_map(|(key, value)| other_option(found, key, value))
        .unzip();
    (!is.is_empty()).then(|| Differs::Options(is.join(","), want.join(",")))
}

fn is_other_kind(is: &str, wanted: &str) -> bool {
    let is_same = is == wanted
        || wanted == "auto"
        || wanted == "none"
        || (wanted == "nfs" && is == "nfs4")
        || is.strip_prefix("fuse.").is_some_and(|inner| inner == wanted)
        || (wanted == "ntfs-3g" && is == "fuseblk");
    !is_same
}

fn is_other_device(found: &MountedFileSystem, wanted: &str) -> bool {
    let path = match wanted.split_once('=') {
        Some((tag, value)) if !tag.contains('/') => {
            let directory = match tag.to_ascii_uppercase().as_str() {
                "UUID" => "by-uuid",
                "LABEL" => "by-label",
                "PARTUUID" => "by-partuuid",
                "PARTLABEL" => "by-partlabel",
                _ => return false,
            };
            format!("/dev/disk/{directory}/{}", value.trim_matches('"'))
        }
        _ if wanted.starts_with("//") || wanted.contains(":/") => {
            return found.source.trim_end_matches('/') != wanted.trim_end_matches('/');
        }
        _ if wanted.starts_with('/') => wanted.to_owned(),
        // What has no device is called as one likes.
        _ => return false,
    };
    // If it is gone meanwhile, what is mounted says more.
    found.is_on(Path::new(&path)) == Some(false)
}

/// An option that the kernel has otherwise: how it is, and how it shall be.
fn other_option(found: &MountedFileSystem, key: &str, value: &str) -> Option<(String, String)> {
    let has = |option: &str| found.options.iter().any(|is| is == option);
    // The kernel lists the first of these, or nothing.
    let opposites = [
        ("ro", "rw"),
        ("nosuid", "suid"),
        ("nodev", "dev"),
        ("noexec", "exec"),
        ("noatime", "atime"),
        ("nodiratime", "diratime"),
        ("sync", "async"),
    ];
    if value.is_empty() {
        for (listed, opposite) in opposites {
            if key == listed && !has(listed) {
                return Some((opposite.to_owned(), listed.to_owned()));
            }
            if key == opposite && has(listed) {
                return Some((listed.to_owned(), opposite.to_owned()));
            }
        }
        return None;
    }
    let of_system = found.system_options.iter().find_map(|option| {
        let (name, is) = option.split_once('=')?;
        (name == key).then_some(is)
    })?;
    let is_same = of_system == value
        || in_bytes(of_system).is_some_and(|is| in_bytes(value) == Some(is))
        || (key == "mode" && of_system.trim_start_matches('0') == value.trim_start_matches('0'))
        // Relative to the memory, or a name of an account.
        || value.ends_with('%')
        || (["uid", "gid"].contains(&key) && value.parse::<u32>().is_err());
    (!is_same).then(|| (format!("{key}={of_system}"), format!("{key}={value}")))
}

/// A size: `64m`, `65536k`.
fn in_bytes(text: &str) -> Option<u64> {
    let shift = match text.chars().last()?.to_ascii_lowercase() {
        'k' => 10,
        'm' => 20,
        'g' => 30,
        't' => 40,
        _ => return text.parse().ok(),
    };
    let number: u64 = text[..text.len() - 1].parse().ok()?;
    number.checked_mul(1 << shift)
}
