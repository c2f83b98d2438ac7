//! Options of a mount, in the order in which mount(8) reads them, and the flags that follow from them.

use std::collections::BTreeMap;

/// Options with their values, in order; an option without a value has an empty one. The last of two with one name counts.
#[derive(Debug, Clone, Default)]
pub(super) struct Options(Vec<(String, String)>);

/// Options that stand for several flags. A later option overrides them, so they come first.
const STAND_FOR_FLAGS: [&str; 5] = ["defaults", "group", "owner", "user", "users"];

/// The flags that restrict a mount, each with its opposite, which is the default. The kernel lists only the first of each pair.
const FLAGS: [(&str, &str); 7] = [
    ("ro", "rw"),
    ("nosuid", "suid"),
    ("nodev", "dev"),
    ("noexec", "exec"),
    ("noatime", "atime"),
    ("nodiratime", "diratime"),
    ("sync", "async"),
];

/// One flag of a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Flag {
    /// Its name in the list of the kernel.
    pub(super) name: &'static str,
    /// The option that clears it.
    pub(super) opposite: &'static str,
    /// Whether it is set.
    pub(super) holds: bool,
    /// Whether an option sets or clears it. Else it has the default of mount(8).
    pub(super) is_written: bool,
}

impl Options {
    /// Options without an order. Those that stand for several flags come first, so that the others override them.
    pub(super) fn unordered(options: &BTreeMap<String, String>) -> Options {
        let mut all: Vec<(String, String)> = options.clone().into_iter().collect();
        all.sort_by_key(|(key, _)| !STAND_FOR_FLAGS.contains(&key.as_str()));
        Options(all)
    }

    /// Reads options as in `/etc/fstab`, without escapes.
    pub(super) fn written(text: &str) -> Options {
        let mut options = Options::default();
        for option in text.split(',').filter(|option| !option.is_empty()) {
            let (key, value) = option.split_once('=').unwrap_or((option, ""));
            options.0.retain(|(other, _)| other != key);
            options.0.push((key.to_owned(), value.to_owned()));
        }
        options
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.0.iter().any(|(other, _)| other == key)
    }

    /// The flags that follow from the options.
    pub(super) fn flags(&self) -> [Flag; FLAGS.len()] {
        let mut flags = FLAGS.map(|(name, opposite)| Flag {
            name,
            opposite,
            holds: false,
            is_written: false,
        });
        for (key, _) in self.iter() {
            for flag in &mut flags {
                let holds = match key {
                    "defaults" => false,
                    "user" | "users" if ["nosuid", "nodev", "noexec"].contains(&flag.name) => true,
                    "owner" | "group" if ["nosuid", "nodev"].contains(&flag.name) => true,
                    key if key == flag.name => true,
                    key if key == flag.opposite => false,
                    _ => continue,
                };
                flag.holds = holds;
                flag.is_written = key != "defaults";
            }
        }
        flags
    }

    /// Whether both have the same options and flags. No options at all mean `defaults`.
    pub(super) fn are_as(&self, other: &Options) -> bool {
        let set = |options: &Options| -> BTreeMap<String, String> {
            let mut set: BTreeMap<String, String> = options.0.iter().cloned().collect();
            if set.is_empty() {
                set.insert("defaults".to_owned(), String::new());
            }
            set
        };
        let held = |options: &Options| options.flags().map(|flag| flag.holds);
        set(self) == set(other) && held(self) == held(other)
    }
}

/// The text of an option.
pub(super) fn shown((key, value): (&str, &str)) -> String {
    match value {
        "" => key.to_owned(),
        value => format!("{key}={value}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holding(text: &str) -> String {
        let flags = Options::written(text).flags();
        let held = flags.iter().filter(|flag| flag.holds).map(|flag| flag.name);
        held.collect::<Vec<_>>().join(",")
    }

    #[test]
    fn the_last_option_holds_and_some_stand_for_several_flags() {
        for (options, held) in [
            ("defaults", ""),
            ("ro,nosuid", "ro,nosuid"),
            ("exec,user", "nosuid,nodev,noexec"),
            ("user,exec", "nosuid,nodev"),
            ("group,dev", "nosuid"),
            ("ro,defaults", ""),
            ("ro,rw,noatime,sync,nodiratime", "noatime,nodiratime,sync"),
        ] {
            assert_eq!(holding(options), held, "{options}");
        }
    }

    #[test]
    fn where_nobody_said_an_order_what_is_said_plainly_counts_more() {
        let options = ["user", "exec", "dev", "size"].map(|key| (key.to_owned(), String::new()));
        let options = Options::unordered(&options.into());
        let keys: Vec<&str> = options.iter().map(|(key, _)| key).collect();
        assert_eq!(keys, ["user", "dev", "exec", "size"]);
        assert!(options.are_as(&Options::written("user,exec,size,dev")));
        assert!(!options.are_as(&Options::written("exec,user,size,dev")));
    }
}
