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
    /// The names in the order of their numbers.
    const NAMES: [&'static str; 41] = [
        "CAP_CHOWN",
        "CAP_DAC_OVERRIDE",
        "CAP_DAC_READ_SEARCH",
        "CAP_FOWNER",
        "CAP_FSETID",
        "CAP_KILL",
        "CAP_SETGID",
        "CAP_SETUID",
        "CAP_SETPCAP",
        "CAP_LINUX_IMMUTABLE",
        "CAP_NET_BIND_SERVICE",
        "CAP_NET_BROADCAST",
        "CAP_NET_ADMIN",
        "CAP_NET_RAW",
        "CAP_IPC_LOCK",
        "CAP_IPC_OWNER",
        "CAP_SYS_MODULE",
        "CAP_SYS_RAWIO",
        "CAP_SYS_CHROOT",
        "CAP_SYS_PTRACE",
        "CAP_SYS_PACCT",
        "CAP_SYS_ADMIN",
        "CAP_SYS_BOOT",
        "CAP_SYS_NICE",
        "CAP_SYS_RESOURCE",
        "CAP_SYS_TIME",
        "CAP_SYS_TTY_CONFIG",
        "CAP_MKNOD",
        "CAP_LEASE",
        "CAP_AUDIT_WRITE",
        "CAP_AUDIT_CONTROL",
        "CAP_SETFCAP",
        "CAP_MAC_OVERRIDE",
        "CAP_MAC_ADMIN",
        "CAP_SYSLOG",
        "CAP_WAKE_ALARM",
        "CAP_BLOCK_SUSPEND",
        "CAP_AUDIT_READ",
        "CAP_PERFMON",
        "CAP_BPF",
        "CAP_CHECKPOINT_RESTORE",
    ];

    /// All of them with their names in capabilities(7), like `CAP_NET_ADMIN`.
    pub fn all() -> impl Iterator<Item = (&'static str, Capability)> {
        Self::NAMES.into_iter().zip((0..).map(Capability))
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
            let found = Capability::all().find(|(known, _)| *known == name);
            assert_eq!(found.unwrap().1.set(), expected, "{name}");
        }
        assert_eq!(
            Capability::all().count(),
            CapabilitySet::all().iter_names().count()
        );
    }
}
