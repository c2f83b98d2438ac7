//! Block devices: what the kernel says of them below `/sys/class/block`.

use std::path::{Path, PathBuf};

/// A block device.
pub(super) struct BlockDevice {
    /// Its node: `/dev/vda2`.
    path: String,
}

/// Where on a disk it is.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Partition {
    /// The node of the disk.
    pub(super) disk: String,
    pub(super) number: String,
}

const KNOWN: &str = "/sys/class/block";

impl BlockDevice {
    /// The one to which a path leads.
    pub(super) fn at(path: &str) -> BlockDevice {
        // What leads nowhere is told by who opens it.
        let real = std::fs::canonicalize(path).unwrap_or_else(|_| PathBuf::from(path));
        BlockDevice {
            path: real.display().to_string(),
        }
    }

    /// Its node.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// As the kernel calls it, where slashes are exclamation marks.
    fn name(&self) -> String {
        self.path
            .strip_prefix("/dev/")
            .unwrap_or(&self.path)
            .replace('/', "!")
    }

    fn known(&self) -> PathBuf {
        Path::new(KNOWN).join(self.name())
    }

    /// The device that it encrypts, if it is one of the device mapper.
    ///
    /// # Errors
    /// Why it is of no use: it does something else, or over several.
    pub(super) fn below(&self) -> Result<Option<BlockDevice>, String> {
        let name = self.name();
        if !name.strip_prefix("dm-").is_some_and(is_number) {
            return Ok(None);
        }
        let path = &self.path;
        // `CRYPT-LUKS2-…`, `LVM-…`
        let sort = std::fs::read_to_string(self.known().join("dm/uuid")).unwrap_or_default();
        if let Some((sort, _)) = sort.split_once('-')
            && sort != "CRYPT"
        {
            let what = if sort == "LVM" {
                "a logical volume".to_owned()
            } else {
                format!("of the sort {sort}")
            };
            return Err(format!("{path} is {what}, and not an encrypted partition"));
        }
        let slaves = std::fs::read_dir(self.known().join("slaves"));
        let slaves = slaves.map_err(|error| {
            format!(
                "what is below {path} cannot be found: {}",
                setpoint_programs::failure::system_text(&error)
            )
        })?;
        let mut names: Vec<String> = slaves
            .filter_map(|slave| slave.ok()?.file_name().into_string().ok())
            .collect();
        names.sort();
        match names.as_slice() {
            [only] => Ok(Some(BlockDevice {
                path: format!("/dev/{}", only.replace('!', "/")),
            })),
            [] => Err(format!("there is no device below {path}")),
            several => Err(format!("{path} lies on several devices: {}", several.join(", "))),
        }
    }

    /// Which partition it is; none if it is a whole disk.
    pub(super) fn partition(&self) -> Option<Partition> {
        let known = self.known();
        if !known.exists() {
            return named(&self.path);
        }
        let number = std::fs::read_to_string(known.join("partition")).ok()?;
        let real = std::fs::canonicalize(known).ok()?;
        let disk = real.parent()?.file_name()?.to_str()?.replace('!', "/");
        Some(Partition {
            disk: format!("/dev/{disk}"),
            number: number.trim().to_owned(),
        })
    }
}

/// Which partition a device is as its name says it: the number, and before it a `p` if the disk's name ends in a digit itself.
fn named(path: &str) -> Option<Partition> {
    let disk = path.trim_end_matches(|sign: char| sign.is_ascii_digit());
    let number = &path[disk.len()..];
    let before = disk
        .strip_suffix('p')
        .filter(|before| before.ends_with(|sign: char| sign.is_ascii_digit()));
    // `/dev/nvme0n1`, `/dev/loop0`: disks whose partitions have a `p`.
    let has_p = ["nvme", "mmcblk", "loop", "nbd", "md", "zram", "dm-"]
        .iter()
        .any(|sort| {
            path.strip_prefix("/dev/")
                .is_some_and(|name| name.starts_with(sort))
        });
    match (before, number) {
        (_, "") => None,
        (Some(disk), number) => Some(Partition {
            disk: disk.to_owned(),
            number: number.to_owned(),
        }),
        (None, _) if has_p => None,
        (None, number) => Some(Partition {
            disk: disk.to_owned(),
            number: number.to_owned(),
        }),
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_is_known_by_its_name() {
        let of = |path: &str| named(path).map(|found| format!("{} {}", found.disk, found.number));
        assert_eq!(of("/dev/sda1").as_deref(), Some("/dev/sda 1"));
        assert_eq!(of("/dev/vdb12").as_deref(), Some("/dev/vdb 12"));
        assert_eq!(of("/dev/nvme0n1p3").as_deref(), Some("/dev/nvme0n1 3"));
        assert_eq!(of("/dev/mmcblk0p2").as_deref(), Some("/dev/mmcblk0 2"));
        assert_eq!(of("/dev/loop7p1").as_deref(), Some("/dev/loop7 1"));
        for whole in [
            "/dev/sda",
            "/dev/nvme0n1",
            "/dev/loop0",
            "/dev/md127",
            "/dev/dm-0",
        ] {
            assert_eq!(of(whole), None, "{whole}");
        }
        // A disk whose name ends in a `p`.
        assert_eq!(of("/dev/sdp1").as_deref(), Some("/dev/sdp 1"));
    }
}
