//! What a resource is for automatic edges: identities it has, identities it wants.
//!
//! Both are data. The engine matches them: identities of different sorts never match.

/// Something that a resource is, for automatic edges and for the view of the graph.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Identity {
    /// A file under its effective path; directories with a trailing slash.
    File(Vec<u8>),
    /// A file that a package contains.
    PackageFile(Vec<u8>),
    /// A package by name.
    Package(String),
    /// A systemd service.
    Service {
        /// Without `.service`.
        name: String,
        /// Whether of the user's manager.
        session: bool,
    },
    /// A systemd timer, by the unit that it starts.
    TimerUnit {
        /// The unit, `x.service`.
        target: String,
        /// Whether of the user's manager.
        session: bool,
    },
    /// A user account.
    User(Account),
    /// A group of users.
    Group(Account),
    /// A remote of fwupd; none stands for any.
    FirmwareRemote(Option<String>),
    /// A device of fwupd.
    FirmwareDevice(String),
    /// The firmware of the system.
    FirmwareSystem,
}

/// An account by name, number, or both.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Account {
    /// Its name.
    pub name: Option<String>,
    /// Its number.
    pub id: Option<u32>,
}

impl Identity {
    /// Whether one that is wanted is met by one that a resource has.
    #[must_use]
    pub fn is_met_by(&self, other: &Identity) -> bool {
        match (self, other) {
            (Identity::User(a), Identity::User(b)) | (Identity::Group(a), Identity::Group(b)) => a.fits(b),
            (Identity::FirmwareRemote(a), Identity::FirmwareRemote(b)) => {
                a.is_none() || b.is_none() || a == b
            }
            (a, b) => a == b,
        }
    }
}

impl Account {
    /// Whether at least one field is known on both sides, and none of these differs.
    fn fits(&self, other: &Account) -> bool {
        let name = self.name.as_ref().zip(other.name.as_ref()).map(|(a, b)| a == b);
        let id = self.id.zip(other.id).map(|(a, b)| a == b);
        (name.is_some() || id.is_some()) && name != Some(false) && id != Some(false)
    }
}

/// What a resource wants edges with, in the order in which it is tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Which one comes first.
    pub order: WantedOrder,
    /// Whom it wants.
    pub identities: Vec<Identity>,
    /// How many of them.
    pub reach: WantedReach,
}

/// Which of the two comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WantedOrder {
    /// The one that is found.
    FoundFirst,
    /// The one that wants.
    FoundAfter,
}

/// With how many of the wanted identities there is an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WantedReach {
    /// With each that is found.
    Each,
    /// With the first that is found.
    First,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_match_only_over_a_field_that_both_have() {
        let account = |name: Option<&str>, id| {
            Identity::User(Account {
                name: name.map(str::to_owned),
                id,
            })
        };
        assert!(account(Some("www"), None).is_met_by(&account(Some("www"), Some(33))));
        assert!(!account(Some("www"), None).is_met_by(&account(None, Some(33))));
        assert!(!account(Some("www"), Some(34)).is_met_by(&account(Some("www"), Some(33))));
    }
}
