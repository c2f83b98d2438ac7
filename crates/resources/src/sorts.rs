//! The sorts of identities by which kinds find each other for automatic edges.

use setpoint_engine::{Identity, Managed, Sort};

use crate::enclosing;

/// Files under their effective path, directories with a trailing slash.
pub static FILE: Sort = Sort::exact("file")
    .managed_by_one(Managed {
        noun: "path",
        aliases: with_and_without_slash,
    })
    .held_by(|path| enclosing::ancestors(path).collect());

/// Files that resources edit, each some of it, by path.
pub static EDITED_FILE: Sort = Sort::exact("edited file");

/// Directories at which something is mounted, with a trailing slash.
pub static MOUNT_POINT: Sort = Sort::exact("mount point");

/// Directories at which nothing is mounted any more, with a trailing slash.
pub static UNMOUNTED: Sort = Sort::exact("unmounted directory");

/// Files by the directory of drop-ins that they are in, with its trailing slash.
pub static DROP_IN: Sort = Sort::exact("file in a directory of drop-ins");

/// Services of a service manager.
pub static SERVICE: Sort = Sort::exact("service");

/// Timer units by the unit that they start.
pub static TIMER_UNIT: Sort = Sort::exact("timer unit");

/// A name that means something on one service manager: the system's, or with `session` that of our own user.
#[must_use]
pub fn of_service_manager(sort: &'static Sort, session: bool, name: &str) -> Identity {
    let manager = if session { "session" } else { "system" };
    sort.identity(format!("{manager}:{name}").into_bytes())
}

/// Sources of packages. All packages may come from any of them.
pub static REPOSITORY: Sort = Sort::exact("repository of packages");

/// What hosts stand for in elections, by namespace.
pub static ELECTION: Sort = Sort::exact("namespace");

/// Lines of files, by file and text.
pub static LINE: Sort = Sort::exact("line");

/// Entries of documents, by document and the path in it.
pub static ENTRY: Sort = Sort::exact("entry");

/// Keys of SSH, by file and key.
pub static SSH_KEY: Sort = Sort::exact("key");

/// Parameters of the kernel by their dotted names, and what files say of them for the next start.
pub static KERNEL_PARAMETER: Sort = Sort::exact("kernel parameter");

/// The names of the machine.
pub static HOST_NAME: Sort = Sort::exact("parameter");

/// Open services and ports of firewalld, by zone.
pub static OPENING: Sort = Sort::exact("opening");

/// Settings of users, by user.
pub static SETTING: Sort = Sort::exact("setting");

/// Files that a package contains, by path.
pub static PACKAGE_FILE: Sort = Sort::exact("file of a package");

/// Remotes of fwupd by their ids; one that is empty stands for any.
pub static FWUPD_REMOTE: Sort =
    Sort::partial("remote of fwupd", |a, b| a.is_empty() || b.is_empty() || a == b);

/// Devices of fwupd, as they are named.
pub static FWUPD_DEVICE: Sort = Sort::exact("device of fwupd");

/// The firmware of the machine.
pub static FWUPD_SYSTEM: Sort = Sort::exact("firmware of the machine");

/// Accounts of users.
pub static USER: Sort = Sort::partial("user", accounts_fit);

/// Groups of users.
pub static GROUP: Sort = Sort::partial("group", accounts_fit);

/// An account by name, number, or both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The name, if it is known.
    pub name: Option<String>,
    /// The number, if it is known.
    pub id: Option<u32>,
}

impl Account {
    /// The user and the group that are written somewhere, if they are.
    pub(crate) fn identities<'t>(user: &'t str, group: &'t str) -> impl Iterator<Item = Identity> + 't {
        let written = [(user, &USER), (group, &GROUP)].into_iter();
        written
            .filter(|(account, _)| !account.is_empty())
            .map(|(account, sort)| Account::written(account).identity(sort))
    }

    /// One that is written as a name or a number.
    #[must_use]
    pub fn written(text: &str) -> Account {
        match text.parse() {
            Ok(id) => Account {
                name: None,
                id: Some(id),
            },
            Err(_) => Account {
                name: Some(text.to_owned()),
                id: None,
            },
        }
    }

    /// It as an identity of a sort.
    #[must_use]
    pub fn identity(&self, sort: &'static Sort) -> Identity {
        let id = self.id.map(|id| id.to_string()).unwrap_or_default();
        let name = self.name.as_deref().unwrap_or_default();
        // A number holds no colon, and a name may hold what it likes after it.
        sort.identity(format!("{id}:{name}").into_bytes())
    }
}

/// Whether at least one of name and number is known on both sides, and neither differs.
fn accounts_fit(a: &[u8], b: &[u8]) -> bool {
    let parts = |key: &[u8]| {
        let at = key.iter().position(|byte| *byte == b':').unwrap_or(key.len());
        let part = |bytes: &[u8]| (!bytes.is_empty()).then(|| bytes.to_vec());
        (part(&key[..at]), part(key.get(at + 1..).unwrap_or_default()))
    };
    let ((id_a, name_a), (id_b, name_b)) = (parts(a), parts(b));
    let id = id_a.zip(id_b).map(|(a, b)| a == b);
    let name = name_a.zip(name_b).map(|(a, b)| a == b);
    (name.is_some() || id.is_some()) && name != Some(false) && id != Some(false)
}

fn with_and_without_slash(path: &[u8]) -> Vec<Vec<u8>> {
    let path = path.strip_suffix(b"/").unwrap_or(path);
    vec![path.to_vec(), [path, b"/"].concat()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_match_only_over_a_field_that_both_have() {
        let account = |name: Option<&str>, id| {
            let name = name.map(str::to_owned);
            Account { name, id }.identity(&USER).key
        };
        let fits = |a: &[u8], b: &[u8]| accounts_fit(a, b);
        assert!(fits(&account(Some("www"), None), &account(Some("www"), Some(33))));
        assert!(!fits(&account(Some("www"), None), &account(None, Some(33))));
        assert!(!fits(
            &account(Some("www"), Some(34)),
            &account(Some("www"), Some(33))
        ));
        assert!(fits(
            &Account::written("33").identity(&USER).key,
            &account(Some("www"), Some(33))
        ));
    }

    #[test]
    fn a_path_means_the_same_with_a_slash_and_without() {
        assert_eq!(with_and_without_slash(b"/a/"), with_and_without_slash(b"/a"));
    }
}
