//! What a command may use and may do at most.

use rustix::process::Resource;
use rustix::thread::CapabilitySet;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A resource of which a command gets only so much: it and each process that it starts, as setrlimit(2) has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Limit {
    /// Bytes of a core dump.
    Core,
    /// Seconds of processor time.
    Cpu,
    /// Bytes of a file that it writes.
    FileSize,
    /// Open files.
    Files,
    /// Bytes of memory, as address space.
    Memory,
    /// Processes of its user. Does not bind root.
    Processes,
}

impl Limit {
    /// All of them with their names.
    pub const ALL: [(&'static str, Limit); 6] = [
        ("core", Limit::Core),
        ("cpu", Limit::Cpu),
        ("file_size", Limit::FileSize),
        ("files", Limit::Files),
        ("memory", Limit::Memory),
        ("processes", Limit::Processes),
    ];

    /// The limit of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Limit> {
        let found = Self::ALL.iter().find(|(known, _)| *known == name);
        found.map(|(_, limit)| *limit)
    }

    pub(super) fn resource(self) -> Resource {
        match self {
            Limit::Core => Resource::Core,
            Limit::Cpu => Resource::Cpu,
            Limit::FileSize => Resource::Fsize,
            Limit::Files => Resource::Nofile,
            Limit::Memory => Resource::As,
            Limit::Processes => Resource::Nproc,
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = Self::ALL.iter().find(|(_, limit)| limit == self);
        formatter.write_str(found.map_or("", |(name, _)| name))
    }
}

/// A right that root has and others have not, one by one: see capabilities(7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Capability(u8);

impl Capability {
    /// The names in the order of their numbers, without `CAP_`.
    const NAMES: [&'static str; 41] = [
        "CHOWN",
        "DAC_OVERRIDE",
        "DAC_READ_SEARCH",
        "FOWNER",
        "FSETID",
        "KILL",
        "SETGID",
        "SETUID",
        "SETPCAP",
        "LINUX_IMMUTABLE",
        "NET_BIND_SERVICE",
        "NET_BROADCAST",
        "NET_ADMIN",
        "NET_RAW",
        "IPC_LOCK",
        "IPC_OWNER",
        "SYS_MODULE",
        "SYS_RAWIO",
        "SYS_CHROOT",
        "SYS_PTRACE",
        "SYS_PACCT",
        "SYS_ADMIN",
        "SYS_BOOT",
        "SYS_NICE",
        "SYS_RESOURCE",
        "SYS_TIME",
        "SYS_TTY_CONFIG",
        "MKNOD",
        "LEASE",
        "AUDIT_WRITE",
        "AUDIT_CONTROL",
        "SETFCAP",
        "MAC_OVERRIDE",
        "MAC_ADMIN",
        "SYSLOG",
        "WAKE_ALARM",
        "BLOCK_SUSPEND",
        "AUDIT_READ",
        "PERFMON",
        "BPF",
        "CHECKPOINT_RESTORE",
    ];

    /// A capability by its name in capabilities(7), like `CAP_NET_ADMIN`.
    #[must_use]
    pub fn parse(name: &str) -> Option<Capability> {
        let bare = name.strip_prefix("CAP_")?;
        let at = Self::NAMES.iter().position(|known| *known == bare)?;
        u8::try_from(at).ok().map(Capability)
    }

    /// All names, for suggestions.
    pub fn names() -> impl Iterator<Item = String> {
        Self::NAMES.iter().map(|name| format!("CAP_{name}"))
    }

    pub(super) fn set(self) -> CapabilitySet {
        CapabilitySet::from_bits_retain(1 << self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_numbers() {
        for (name, expected) in [
            ("CAP_CHOWN", CapabilitySet::CHOWN),
            ("CAP_SYS_ADMIN", CapabilitySet::SYS_ADMIN),
            ("CAP_CHECKPOINT_RESTORE", CapabilitySet::CHECKPOINT_RESTORE),
        ] {
            assert_eq!(Capability::parse(name).unwrap().set(), expected, "{name}");
        }
        assert_eq!(Capability::parse("CHOWN"), None);
        assert_eq!(
            Capability::names().count(),
            CapabilitySet::all().iter_names().count()
        );
        for (name, limit) in Limit::ALL {
            assert_eq!(
                (Limit::parse(name), limit.to_string().as_str()),
                (Some(limit), name)
            );
        }
    }
}
