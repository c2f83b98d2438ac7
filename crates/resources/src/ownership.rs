//! Owner, group and mode of a file that a resource manages, as parameters.

use setpoint_engine::{Apply, DriftValue, Failure, Identity, IfSet, ParameterGroup};
use setpoint_host::files::{AbsolutePath, Entry, Stat};

use crate::file_mode::Mode;
use crate::sorts::{Account, GROUP, USER};

/// The parameters.
#[derive(Debug, Clone, ParameterGroup)]
pub(crate) struct Ownership {
    /// The owner, by name or number. Unset: unchanged; a new file belongs to our own user.
    pub(crate) owner: String,
    /// The group, by name or number. Unset: unchanged; a new file gets our own group.
    pub(crate) group: String,
    /// The permissions. Unset: those of the file, or 0644 less the umask for a new one.
    pub(crate) mode: IfSet<Mode>,
}

/// Wanted owner and group, as numbers.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Owners {
    pub(crate) owner: Option<u32>,
    pub(crate) group: Option<u32>,
}

impl Ownership {
    /// The accounts, which come first.
    pub(crate) fn identities(&self) -> impl Iterator<Item = Identity> + '_ {
        Account::identities(&self.owner, &self.group)
    }

    /// Looks the accounts up. In a plan, an account that an earlier resource creates has no number yet.
    ///
    /// # Errors
    /// When there is no such account.
    pub(crate) fn find(&self, apply: &mut Apply<'_>, path: &AbsolutePath) -> Result<Owners, Failure> {
        let mut owners = Owners::default();
        if !self.owner.is_empty() {
            owners.owner = match apply.user(&self.owner) {
                Ok(user) => Some(user),
                Err(_)
                    if foresees(
                        apply,
                        "user",
                        Account::written(&self.owner).identity(&USER),
                        &self.owner,
                    ) =>
                {
                    None
                }
                Err(error) => return Err(Failure::new("find the owner of").on(path).because(error)),
            };
        }
        if !self.group.is_empty() {
            owners.group = match apply.group(&self.group) {
                Ok(group) => Some(group),
                Err(_)
                    if foresees(
                        apply,
                        "group",
                        Account::written(&self.group).identity(&GROUP),
                        &self.group,
                    ) =>
                {
                    None
                }
                Err(error) => return Err(Failure::new("find the group of").on(path).because(error)),
            };
        }
        Ok(owners)
    }

    /// The mode of a file: the wanted one, or what it has.
    pub(crate) fn mode_of(&self, found: Option<&Stat>, new: u32) -> Option<u32> {
        let start = found.map_or(new, |found| found.mode);
        match (&*self.mode, found) {
            (Some(mode), _) => Some(mode.of(start)),
            (None, None) => Some(new),
            (None, Some(_)) => None,
        }
    }

    /// Compares a file that exists, and repairs what differs.
    ///
    /// # Errors
    /// When it cannot be changed.
    pub(crate) fn keep(
        &self,
        owners: Owners,
        entry: &Entry,
        found: &Stat,
        apply: &mut Apply<'_>,
    ) -> Result<(), Failure> {
        let users = apply.handle().users();
        let owner = owners.owner.filter(|owner| *owner != found.uid);
        let group = owners.group.filter(|group| *group != found.gid);
        let names = (users.user_name(found.uid), users.group_name(found.gid));
        let owner = owner.filter(|_| apply.drift("owner", names.0, self.owner.as_str()));
        let group = group.filter(|_| apply.drift("group", names.1, self.group.as_str()));
        if owner.is_some() || group.is_some() {
            entry.set_owner(owner, group)?;
        }
        let Some(wanted) = self.mode.as_ref().map(|mode| mode.of(found.mode)) else {
            return Ok(());
        };
        let is_wrong = wanted != found.mode;
        let may_set = match is_wrong {
            true => apply.drift("mode", DriftValue::mode(found.mode), DriftValue::mode(wanted)),
            // A new owner takes bits away.
            false => owner.is_some() || group.is_some(),
        };
        if may_set {
            entry.set_mode(wanted)?;
        }
        Ok(())
    }
}

fn foresees(apply: &mut Apply<'_>, noun: &str, identity: Identity, name: &str) -> bool {
    apply.foresees(&identity, format!("{noun} {name}"))
}
