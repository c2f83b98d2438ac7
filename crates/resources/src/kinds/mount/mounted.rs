//! What the kernel has mounted, compared with what is wanted by what is meant: devices by their numbers, what is bound by where it comes from, options as far as the kernel tells of them.

use std::path::{Path, PathBuf};

use setpoint_diagnostics::did_you_mean;
use setpoint_engine::{Attempting, Failure};
use setpoint_host::mounts::{MountedFileSystem, is_file_system, mounted_at};

use super::fstab::Entry;
use super::options::Flag;

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
    let is_bound = is_bound(wanted);
    if is_bound {
        // If what is bound has gone meanwhile, what is mounted says more.
        if found.is_bound_from(Path::new(&wanted.device)) == Some(false) {
            let root = found.root().display();
            return Some(Differs::Device(format!("{root} of {}", found.shown())));
        }
    } else {
        if is_other_kind(&found.kind, &wanted.kind) {
            return Some(Differs::Kind(found.kind.clone()));
        }
        if is_other_device(found, &wanted.device) {
            return Some(Differs::Device(found.source.clone()));
        }
    }
    let flags = wanted
        .options
        .flags()
        .into_iter()
        .filter(|flag| flag.is_written || follows(*flag, wanted))
        .filter_map(|flag| other_flag(found, flag));
    let values = wanted
        .options
        .iter()
        .filter_map(|(key, value)| other_value(found, key, value));
    let (is, want): (Vec<String>, Vec<String>) = flags.chain(values).unzip();
    (!is.is_empty()).then(|| Differs::Options(is.join(","), want.join(",")))
}

fn is_bound(wanted: &Entry) -> bool {
    ["bind", "rbind"].iter().any(|option| wanted.options.has(option))
}

/// Whether mount(8) has a default for a flag that the program does not write. A bind mount has the flags of its source, some programs that
/// mount have defaults of their own, and some file systems are always read-only.
fn follows(flag: Flag, wanted: &Entry) -> bool {
    const READ_ONLY: [&str; 6] = ["iso9660", "udf", "squashfs", "erofs", "cramfs", "romfs"];
    let kind = wanted.kind.as_str();
    let has_own_defaults = kind.starts_with("fuse") || ["auto", "none", "ntfs-3g", "overlay"].contains(&kind);
    let is_only_read = flag.name == "ro" && READ_ONLY.contains(&kind);
    !is_bound(wanted) && !has_own_defaults && !is_only_read
}

/// The flags that the kernel should list for the mount point. Flags that the program does not decide keep their value.
pub(super) fn flags_of_point(found: &MountedFileSystem, wanted: &Entry) -> Vec<&'static str> {
    let strict = wanted.options.has("strictatime").then_some("strictatime");
    let flags = wanted.options.flags().into_iter();
    let held = flags.filter(|flag| match flag.is_written || follows(*flag, wanted) {
        true => flag.holds,
        false => holds(found, *flag),
    });
    held.map(|flag| flag.name).chain(strict).collect()
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
    let path = match link_of(wanted) {
        Some(link) => link,
        None if is_tag(wanted) => return false,
        None if wanted.starts_with("//") || wanted.contains(":/") => {
            return found.source.trim_end_matches('/') != wanted.trim_end_matches('/');
        }
        None if wanted.starts_with('/') => PathBuf::from(wanted),
        // What has no device is called as one likes.
        None => return false,
    };
    // If it is gone meanwhile, what is mounted says more.
    found.is_on(&path) == Some(false)
}

/// What devices are named by beside paths, and where links of those names are.
const TAGS: [(&str, &str); 4] = [
    ("UUID", "/dev/disk/by-uuid"),
    ("LABEL", "/dev/disk/by-label"),
    ("PARTUUID", "/dev/disk/by-partuuid"),
    ("PARTLABEL", "/dev/disk/by-partlabel"),
];

/// A device as mount(8) and systemd understand it, to whom the names of tags are upper case.
pub(super) fn normal(device: &str) -> String {
    match tag(device) {
        Some((name, _, _)) => format!("{name}{}", &device[name.len()..]),
        None => device.to_owned(),
    }
}

/// The name of the tag that names a device, where its links are, and the value.
fn tag(device: &str) -> Option<(&'static str, &'static str, &str)> {
    let (name, value) = device.split_once('=')?;
    let (known, directory) = TAGS
        .into_iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name))?;
    Some((known, directory, value.trim_matches('"')))
}

/// Whether it is named by a tag, perhaps by one that is not known here.
fn is_tag(device: &str) -> bool {
    device
        .split_once('=')
        .is_some_and(|(name, _)| !name.contains('/'))
}

/// The link of a device that is named by a tag.
fn link_of(device: &str) -> Option<PathBuf> {
    let (_, directory, value) = tag(device)?;
    Some(Path::new(directory).join(as_link(value)))
}

/// A value as the name of its link: what is neither a letter, a digit nor one of few signs as `\x20`, as udev(7) does it.
fn as_link(value: &str) -> String {
    let mut link = String::with_capacity(value.len());
    for sign in value.chars() {
        if sign.is_ascii_alphanumeric() || "#+-.:=@_".contains(sign) || !sign.is_ascii() {
            link.push(sign);
        } else {
            link.push_str(&format!("\\x{:02x}", u32::from(sign)));
        }
    }
    link
}

/// Why a device or a type cannot be mounted, as far as that can be seen.
pub(super) fn why_not_mounted(wanted: &Entry) -> Option<String> {
    let is_missing = |path: &Path| std::fs::symlink_metadata(path).is_err();
    if let Some((name, directory, value)) = tag(&wanted.device) {
        if link_of(&wanted.device).is_some_and(|link| is_missing(&link)) {
            let links = std::fs::read_dir(directory).into_iter().flatten().flatten();
            let there: Vec<String> = links
                .map(|link| link.file_name().to_string_lossy().into_owned())
                .collect();
            let why = format!("no device has the {name} `{value}`");
            let meant = did_you_mean(&as_link(value), there.iter().map(String::as_str));
            return Some(match meant {
                Some(meant) => format!("{why}; {meant}"),
                None => why,
            });
        }
    } else if wanted.device.starts_with('/') && !wanted.device.starts_with("//") {
        // One that somebody else serves is not touched for this.
        let is_of_machine = wanted.device.starts_with("/dev/");
        if is_of_machine && is_missing(Path::new(&wanted.device)) {
            return Some(format!("there is nothing at {}", wanted.device));
        }
    }
    let kind = wanted.kind.as_str();
    let has_helper = || {
        let directories = ["/sbin", "/usr/sbin", "/usr/local/sbin", "/bin", "/usr/bin"];
        let mut paths = directories
            .iter()
            .map(|directory| format!("{directory}/mount.{kind}"));
        paths.any(|path| !is_missing(Path::new(&path)))
    };
    // Those below a name of another one, and those that are not one: `fuse.sshfs`, `auto`.
    if is_file_system(kind) || has_helper() || kind.contains('.') || ["auto", "none", "swap"].contains(&kind)
    {
        return None;
    }
    let why = format!("the kernel has no file system `{kind}`, and there is no program `mount.{kind}`");
    Some(match kind {
        "nfs" | "nfs4" => format!("{why}; the package `nfs-common` (or `nfs-utils`) has it"),
        "cifs" | "smb3" => format!("{why}; the package `cifs-utils` has it"),
        _ => why,
    })
}

/// The current and the wanted form of a flag, if they differ.
fn other_flag(found: &MountedFileSystem, flag: Flag) -> Option<(String, String)> {
    let holds = holds(found, flag);
    let shown = |holds| if holds { flag.name } else { flag.opposite }.to_owned();
    (holds != flag.holds).then(|| (shown(holds), shown(flag.holds)))
}

fn holds(found: &MountedFileSystem, flag: Flag) -> bool {
    let mut listed = found.options.iter().chain(&found.system_options);
    listed.any(|option| option == flag.name)
}

/// The current and the wanted form of a value, if they differ.
fn other_value(found: &MountedFileSystem, key: &str, value: &str) -> Option<(String, String)> {
    if value.is_empty() {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_links_of_udev() {
        let link = |device: &str| link_of(device).map(|link| link.display().to_string());
        assert_eq!(link("UUID=\"AB-12\"").as_deref(), Some("/dev/disk/by-uuid/AB-12"));
        assert_eq!(
            link("label=my disk/ü").as_deref(),
            Some("/dev/disk/by-label/my\\x20disk\\x2fü")
        );
        assert_eq!(link("/dev/sda1"), None);
        assert_eq!(link("host:/a=b"), None);
        assert_eq!(normal("PartUuid=a=B"), "PARTUUID=a=B");
        assert_eq!(normal("host:/a=b"), "host:/a=b");
    }
}
