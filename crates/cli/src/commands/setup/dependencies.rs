//! What Setpoint calls on a machine and does not bring with it: one table, by the packages of the distributions.

use clap::ValueEnum;

/// The distributions whose packages are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Distribution {
    /// Fedora and what follows it
    Fedora,
    /// Debian and what follows it
    Debian,
}

/// Programs or services of other packages.
pub(super) struct Dependency {
    /// What is called: names of programs, or of services on the system's bus.
    pub(super) called: &'static [&'static str],
    /// What cannot be done without.
    pub(super) for_what: &'static str,
    debian: &'static str,
    fedora: &'static str,
}

impl Dependency {
    /// The package in which it is.
    pub(super) fn package(&self, distribution: Distribution) -> &'static str {
        match distribution {
            Distribution::Fedora => self.fedora,
            Distribution::Debian => self.debian,
        }
    }
}

/// All of them. Managers of packages are not among them, for who installs these has one; nor are services that a machine has by its own choice, and that
/// kinds only speak with (firewalld, fwupd).
pub(super) const DEPENDENCIES: &[Dependency] = &[
    Dependency {
        called: &["augtool"],
        for_what: "the kind `augeas`",
        debian: "augeas-tools",
        fedora: "augeas",
    },
    Dependency {
        called: &["org.freedesktop.systemd1", "org.freedesktop.hostname1"],
        for_what: "the kinds `svc`, `timer`, `cron`, `mount` and `hostname`, which speak with systemd over the system's bus",
        debian: "dbus",
        fedora: "dbus",
    },
    Dependency {
        called: &[
            "useradd", "usermod", "userdel", "groupadd", "groupmod", "groupdel", "gpasswd",
        ],
        for_what: "the kinds `user` and `group`",
        debian: "passwd",
        fedora: "shadow-utils",
    },
    Dependency {
        called: &["mkhomedir_helper"],
        for_what: "homes of the kind `user` that are missing",
        debian: "libpam-modules-bin",
        fedora: "pam",
    },
    Dependency {
        called: &["mount", "umount"],
        for_what: "the kind `mount`",
        debian: "mount",
        fedora: "util-linux",
    },
    Dependency {
        called: &["gsettings"],
        for_what: "the kind `gsettings`",
        debian: "libglib2.0-bin",
        fedora: "glib2",
    },
    Dependency {
        called: &["org.freedesktop.machine1"],
        for_what: "the kind `nspawn`",
        debian: "systemd-container",
        fedora: "systemd-container",
    },
    Dependency {
        called: &["git"],
        for_what: "modules that are imported by their addresses, and `deploy`",
        debian: "git",
        fedora: "git-core",
    },
    Dependency {
        called: &["dot"],
        for_what: "`--graphviz`",
        debian: "graphviz",
        fedora: "graphviz",
    },
    Dependency {
        called: &["python3"],
        for_what: "functions of models in Python",
        debian: "python3",
        fedora: "python3",
    },
    Dependency {
        called: &["findmnt"],
        for_what: "`disk grow`",
        debian: "util-linux",
        fedora: "util-linux-core",
    },
    Dependency {
        called: &["growpart"],
        for_what: "`disk grow`",
        debian: "cloud-guest-utils",
        fedora: "cloud-utils-growpart",
    },
    Dependency {
        called: &["resize2fs"],
        for_what: "`disk grow` of ext4",
        debian: "e2fsprogs",
        fedora: "e2fsprogs",
    },
    Dependency {
        called: &["xfs_growfs"],
        for_what: "`disk grow` of XFS",
        debian: "xfsprogs",
        fedora: "xfsprogs",
    },
    Dependency {
        called: &["cryptsetup"],
        for_what: "`disk grow` of an encrypted partition",
        debian: "cryptsetup-bin",
        fedora: "cryptsetup",
    },
];

/// In which packages a program is, to be told to who does not have it.
pub(in crate::commands) fn packages_of(program: &str) -> Option<String> {
    let dependency = DEPENDENCIES
        .iter()
        .find(|dependency| dependency.called.contains(&program))?;
    let (debian, fedora) = (dependency.debian, dependency.fedora);
    Some(match debian == fedora {
        true => format!("it is in the package `{debian}`"),
        false => format!("it is in the package `{debian}` of Debian, `{fedora}` of Fedora"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_in_one_row_of_the_table() {
        let mut all: Vec<&str> = DEPENDENCIES
            .iter()
            .flat_map(|dependency| dependency.called)
            .copied()
            .collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
        assert!(
            DEPENDENCIES
                .iter()
                .all(|dependency| !dependency.for_what.is_empty())
        );
    }
}
