//! Users and groups of the machine, by name or number.
//!
//! A text is looked up as a number first, then as a name, and a decimal number that has no entry is used as it is.
//! So a user *named* `1000` loses against uid 1000, and files can belong to a number without an account. Lookups
//! go through the system's name service, whatever sources it is configured with.

mod local;

pub use local::{LocalAccounts, LocalGroup, LocalShadow, LocalUser};

use crate::files::{Stamp, Stat};
use crate::sync::Mutex;
use nix::unistd::{Gid, Group, Uid, User, getgrouplist};
use rustc_hash::FxHashMap;
use std::ffi::CString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Accounts that are not in the local files may change without a trace; so nothing is remembered for longer.
const REMEMBERED: Duration = Duration::from_secs(1);
/// A change of these is seen at once.
const LOCAL_FILES: [&str; 3] = ["/etc/passwd", "/etc/group", "/etc/nsswitch.conf"];

/// A user's account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The user's name.
    pub name: String,
    /// The user's number.
    pub uid: u32,
    /// The number of the user's first group.
    pub gid: u32,
    /// The home directory.
    pub home: PathBuf,
    /// The program that runs when the user logs in.
    pub shell: PathBuf,
}

/// A lookup that failed.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    /// Neither name nor number.
    #[error("there is no user `{name}`")]
    NoUser {
        /// What was looked up.
        name: String,
    },
    /// Neither name nor number.
    #[error("there is no group `{name}`")]
    NoGroup {
        /// What was looked up.
        name: String,
    },
    /// The name service did not answer.
    #[error("look up `{name}`: {source}")]
    System {
        /// What was looked up.
        name: String,
        /// Its answer.
        source: io::Error,
    },
}

/// The home of who we are: what the environment says, else what our account does. None if there is no absolute path.
#[must_use]
pub fn own_home() -> Option<PathBuf> {
    let said = std::env::var_os("HOME").map(PathBuf::from);
    let of_account = || Some(User::from_uid(nix::unistd::geteuid()).ok()??.dir);
    said.filter(|home| home.is_absolute())
        .or_else(of_account)
        .filter(|home| home.is_absolute())
}

/// Looks accounts up, and remembers what it found for as long as that is certain to hold.
///
/// A check of thousands of files with one owner asks the name service once. What was not found is asked for again
/// each time, because an earlier resource may just have created it.
#[derive(Debug, Default)]
pub struct Users {
    known: Mutex<Known>,
    local: local::LocalFiles,
    changing: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Known {
    users: FxHashMap<String, u32>,
    groups: FxHashMap<String, u32>,
    files: [Option<Stamp>; LOCAL_FILES.len()],
    since: Option<Instant>,
}

impl Users {
    /// Nothing is known yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of a user given by name or number.
    pub fn user(&self, text: &str) -> Result<u32, AccountError> {
        self.number(
            text,
            |known| &mut known.users,
            |number| Ok(User::from_uid(Uid::from_raw(number))?.map(|user| user.uid.as_raw())),
            |name| Ok(User::from_name(name)?.map(|user| user.uid.as_raw())),
        )?
        .ok_or_else(|| AccountError::NoUser {
            name: text.to_owned(),
        })
    }

    /// The number of a group given by name or number.
    pub fn group(&self, text: &str) -> Result<u32, AccountError> {
        self.number(
            text,
            |known| &mut known.groups,
            |number| Ok(Group::from_gid(Gid::from_raw(number))?.map(|group| group.gid.as_raw())),
            |name| Ok(Group::from_name(name)?.map(|group| group.gid.as_raw())),
        )?
        .ok_or_else(|| AccountError::NoGroup {
            name: text.to_owned(),
        })
    }

    /// The lookup that users and groups have in common.
    fn number(
        &self,
        text: &str,
        table: impl Fn(&mut Known) -> &mut FxHashMap<String, u32>,
        by_number: impl FnOnce(u32) -> nix::Result<Option<u32>>,
        by_name: impl FnOnce(&str) -> nix::Result<Option<u32>>,
    ) -> Result<Option<u32>, AccountError> {
        let files = local_files();
        let mut known = self.known.lock();
        let fresh = known.since.is_some_and(|since| since.elapsed() < REMEMBERED);
        if !fresh || known.files != files {
            *known = Known {
                files,
                since: Some(Instant::now()),
                ..Known::default()
            };
        }
        if let Some(number) = table(&mut known).get(text) {
            return Ok(Some(*number));
        }
        drop(known);
        let number = decimal(text);
        let mut found = match number {
            Some(number) => by_number(number).map_err(|error| system(text, error))?,
            None => None,
        };
        if found.is_none() {
            found = by_name(text).map_err(|error| system(text, error))?.or(number);
        }
        if let Some(found) = found {
            let mut known = self.known.lock();
            // Unless the files have changed while we asked.
            if known.files == files {
                table(&mut known).insert(text.to_owned(), found);
            }
        }
        Ok(found)
    }

    /// The account of a user given by number or name; nothing if there is none. Never remembered.
    pub fn account(&self, text: &str) -> Result<Option<Account>, AccountError> {
        let failed = |error: nix::Error| system(text, error);
        let by_number = match decimal(text) {
            Some(number) => User::from_uid(Uid::from_raw(number)).map_err(failed)?,
            None => None,
        };
        let user = match by_number {
            Some(user) => Some(user),
            None => User::from_name(text).map_err(failed)?,
        };
        Ok(user.map(|user| Account {
            name: user.name,
            uid: user.uid.as_raw(),
            gid: user.gid.as_raw(),
            home: user.dir,
            shell: user.shell,
        }))
    }

    /// A user given by name or number with the groups that a login would give: the first one, and all, the first one among them.
    /// Never remembered.
    pub fn with_groups(&self, text: &str) -> Result<(Account, Vec<u32>), AccountError> {
        let account = self.account(text)?.ok_or_else(|| AccountError::NoUser {
            name: text.to_owned(),
        })?;
        let groups = CString::new(account.name.as_bytes())
            .map_err(|_| nix::Error::EINVAL)
            .and_then(|name| getgrouplist(&name, Gid::from_raw(account.gid)))
            .map_err(|error| system(text, error))?;
        Ok((account, groups.into_iter().map(Gid::as_raw).collect()))
    }

    /// The accounts of the local files. They are read again when they have changed. Blocks.
    pub fn local(&self) -> io::Result<Arc<LocalAccounts>> {
        self.local.accounts()
    }

    /// What the local shadow file says of a user; nothing if it says nothing. Only root can read it. Blocks.
    pub fn local_shadow(&self, name: &str) -> io::Result<Option<LocalShadow>> {
        local::shadow(name)
    }

    /// The turn to change accounts: the tools that do lock the files, and do not wait long for each other.
    pub async fn turn_to_change(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.changing.lock().await
    }

    /// What to call a user in a message: the name, or the number if there is none.
    pub fn user_name(&self, uid: u32) -> String {
        match User::from_uid(Uid::from_raw(uid)) {
            Ok(Some(user)) => user.name,
            Ok(None) | Err(_) => uid.to_string(),
        }
    }

    /// What to call a group in a message: the name, or the number if there is none.
    pub fn group_name(&self, gid: u32) -> String {
        match Group::from_gid(Gid::from_raw(gid)) {
            Ok(Some(group)) => group.name,
            Ok(None) | Err(_) => gid.to_string(),
        }
    }
}

fn local_files() -> [Option<Stamp>; LOCAL_FILES.len()] {
    LOCAL_FILES.map(|path| {
        Stat::of_entry(rustix::fs::CWD, path)
            .ok()
            .map(|stat| stat.stamp())
    })
}

/// A user or group number in decimal digits alone; the highest one means «unchanged» to the kernel and is none.
fn decimal(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| digits && *number != u32::MAX)
}

fn system(name: &str, error: nix::Error) -> AccountError {
    AccountError::System {
        name: name.to_owned(),
        source: io::Error::from_raw_os_error(error as i32),
    }
}
