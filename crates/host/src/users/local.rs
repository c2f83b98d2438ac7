//! The accounts of the local files: `/etc/passwd`, `/etc/group`, and what the shadow files say of them (passwd(5), group(5), shadow(5)).
//!
//! The files are read once and again when they have changed, however many resources ask. Lines that are none of ours stay out: those of the
//! network information service (`+`, `-`), comments, and what has too few fields.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::files::{Stamp, Stat};
use crate::sync::Mutex;

/// A line of `/etc/passwd`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalUser {
    /// The login name.
    pub name: String,
    /// The user's number.
    pub uid: u32,
    /// The number of the user's first group.
    pub gid: u32,
    /// The comment field, often the full name.
    pub comment: String,
    /// The home directory, as it is written.
    pub home: String,
    /// The login shell; empty where the field is.
    pub shell: String,
}

/// A line of `/etc/group`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalGroup {
    /// The group's name.
    pub name: String,
    /// The group's number.
    pub gid: u32,
    /// The users whose supplementary group it is.
    pub members: Vec<String>,
}

/// What `/etc/shadow` says of a user. It is secret, and nothing shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct LocalShadow {
    /// The hash of the password; `!` before it locks the account's password.
    pub password: String,
    /// When the account expires, in days since 1970; none for never.
    pub expires: Option<i64>,
}

impl std::fmt::Debug for LocalShadow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LocalShadow(..)")
    }
}

/// The accounts of the local files at one time.
#[derive(Debug, Default)]
pub struct LocalAccounts {
    users: Vec<LocalUser>,
    users_by_name: FxHashMap<String, usize>,
    groups: Vec<LocalGroup>,
    groups_by_name: FxHashMap<String, usize>,
    /// By the name of a user: the places of the groups whose member it is.
    supplementary: FxHashMap<String, Vec<usize>>,
}

impl LocalAccounts {
    /// The user of a name.
    #[must_use]
    pub fn user(&self, name: &str) -> Option<&LocalUser> {
        self.users_by_name.get(name).map(|place| &self.users[*place])
    }

    /// The first user with a number.
    #[must_use]
    pub fn user_of(&self, uid: u32) -> Option<&LocalUser> {
        self.users.iter().find(|user| user.uid == uid)
    }

    /// The group of a name.
    #[must_use]
    pub fn group(&self, name: &str) -> Option<&LocalGroup> {
        self.groups_by_name.get(name).map(|place| &self.groups[*place])
    }

    /// The first group with a number.
    #[must_use]
    pub fn group_of(&self, gid: u32) -> Option<&LocalGroup> {
        self.groups.iter().find(|group| group.gid == gid)
    }

    /// The groups whose member a user is, without its first group, sorted by name.
    #[must_use]
    pub fn supplementary_groups(&self, user: &LocalUser) -> Vec<&LocalGroup> {
        let places = self.supplementary.get(&user.name).into_iter().flatten();
        let groups = places.map(|place| &self.groups[*place]);
        let mut groups: Vec<&LocalGroup> = groups.filter(|group| group.gid != user.gid).collect();
        groups.sort_by(|a, b| a.name.cmp(&b.name));
        groups.dedup();
        groups
    }

    fn parse(passwd: &[u8], group: &[u8]) -> LocalAccounts {
        let mut accounts = LocalAccounts::default();
        for line in lines(passwd) {
            let fields: Vec<&str> = line.split(':').collect();
            if let [name, _, uid, gid, comment, home, shell, ..] = fields[..]
                && let (Ok(uid), Ok(gid)) = (uid.parse(), gid.parse())
            {
                let place = accounts.users.len();
                // Of two lines of one name the first one counts.
                accounts.users_by_name.entry(name.to_owned()).or_insert(place);
                accounts.users.push(LocalUser {
                    name: name.to_owned(),
                    uid,
                    gid,
                    comment: comment.to_owned(),
                    home: home.to_owned(),
                    shell: shell.to_owned(),
                });
            }
        }
        for line in lines(group) {
            let fields: Vec<&str> = line.split(':').collect();
            if let [name, _, gid, members, ..] = fields[..]
                && let Ok(gid) = gid.parse()
            {
                let members = members
                    .split(',')
                    .map(str::trim)
                    .filter(|member| !member.is_empty());
                let members: Vec<String> = members.map(str::to_owned).collect();
                let place = accounts.groups.len();
                for member in &members {
                    accounts
                        .supplementary
                        .entry(member.clone())
                        .or_default()
                        .push(place);
                }
                accounts.groups_by_name.entry(name.to_owned()).or_insert(place);
                accounts.groups.push(LocalGroup {
                    name: name.to_owned(),
                    gid,
                    members,
                });
            }
        }
        accounts
    }
}

/// Lines of accounts; a file without a last line feed has a last line too.
fn lines(bytes: &[u8]) -> impl Iterator<Item = String> + '_ {
    let lines = bytes.split(|byte| *byte == b'\n');
    let lines =
        lines.map(|line| String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)).into_owned());
    lines.filter(|line| !line.is_empty() && !line.starts_with(['#', '+', '-', ' ', ':']))
}

/// Reads the local files, and remembers what is in them for as long as they are the same.
#[derive(Debug, Default)]
pub(super) struct LocalFiles {
    read: Mutex<Option<Read>>,
}

#[derive(Debug)]
struct Read {
    stamps: [Option<Stamp>; 2],
    accounts: Arc<LocalAccounts>,
}

const PASSWD: &str = "/etc/passwd";
const GROUP: &str = "/etc/group";
const SHADOW: &str = "/etc/shadow";

impl LocalFiles {
    /// What is in the files now.
    pub(super) fn accounts(&self) -> io::Result<Arc<LocalAccounts>> {
        let stamps = || {
            [PASSWD, GROUP].map(|path| {
                Stat::of_entry(rustix::fs::CWD, path)
                    .ok()
                    .map(|stat| stat.stamp())
            })
        };
        let before = stamps();
        let mut read = self.read.lock();
        if let Some(read) = read.as_ref().filter(|read| read.stamps == before) {
            return Ok(read.accounts.clone());
        }
        let accounts = LocalAccounts::parse(&std::fs::read(PASSWD)?, &content(GROUP)?);
        let accounts = Arc::new(accounts);
        // What changed while it was read is read again by whoever asks next.
        *read = (stamps() == before).then(|| Read {
            stamps: before,
            accounts: accounts.clone(),
        });
        Ok(accounts)
    }
}

/// What the shadow file says of a user; nothing if it says nothing. Only root can read it. Never remembered, as it is secret.
pub(super) fn shadow(name: &str) -> io::Result<Option<LocalShadow>> {
    let bytes = content(SHADOW)?;
    let found = lines(&bytes).find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let own = fields.first() == Some(&name);
        own.then(|| LocalShadow {
            password: (*fields.get(1).unwrap_or(&"")).to_owned(),
            expires: fields.get(7).and_then(|field| field.parse().ok()),
        })
    });
    Ok(found)
}

/// The bytes of a file that need not be there.
fn content(path: &str) -> io::Result<Vec<u8>> {
    match std::fs::read(Path::new(path)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        read => read,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_account_is_left_out() {
        let passwd = b"# a comment\nroot:x:0:0:root:/root:/bin/bash\n+::::::\n-x::::::\nshort:x:1\n\nweb:x:33:33::/var/www/:\r\nweb:x:34:34::/:/bin/sh\nlast:x:1000:1000:L,,,:/home/last:/bin/zsh";
        let group = b"root:x:0:\nweb:x:33:\nadm:x:4:last, web,\naudio:x:29:last\nlast:x:1000:last\n+:::\n";
        let accounts = LocalAccounts::parse(passwd, group);
        let names: Vec<&str> = accounts.users.iter().map(|user| &*user.name).collect();
        assert_eq!(names, ["root", "web", "web", "last"]);
        let web = accounts.user("web").unwrap();
        assert_eq!((web.uid, &*web.home, &*web.shell), (33, "/var/www/", ""));
        assert_eq!(accounts.user_of(34).map(|user| &*user.name), Some("web"));
        let last = accounts.user("last").unwrap();
        let groups = accounts.supplementary_groups(last);
        let groups: Vec<&str> = groups.iter().map(|group| &*group.name).collect();
        assert_eq!(groups, ["adm", "audio"], "the first group is none of them");
        assert_eq!(accounts.group_of(29).map(|group| &*group.name), Some("audio"));
        assert_eq!(accounts.user("+"), None);
    }
}
