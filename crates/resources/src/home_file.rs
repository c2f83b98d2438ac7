//! A file that is named by its path or by whose home it is in: `/etc/hosts`, `~/.profile`, `~ada/.ssh/authorized_keys`.

use setpoint_engine::{Apply, Attempting, Failure, Handle, Wanted, Watch};
use setpoint_graph::Invalid;
use setpoint_host::files::AbsolutePath;

use crate::edited_file::EditedFile;
use crate::sorts::{Account, USER};

/// The reason why a parameter `file` names no such file.
pub(crate) fn refused(file: &str) -> Option<Invalid> {
    if !file.starts_with(['/', '~']) {
        let message = "must be an absolute path, or begin with `~`";
        Some(Invalid::parameter("file", message))
    } else if file.ends_with('/') {
        Some(Invalid::parameter("file", "must be a file: it ends in a slash"))
    } else if file.starts_with('~') && !file.contains('/') {
        let help = format!("write `{file}/NAME`");
        Some(Invalid::parameter("file", "is a home and no file in it").help(help))
    } else {
        None
    }
}

/// The resources that come before an edit of such a file: those that make it or its directory, and the user whose home it is in.
pub(crate) fn wanted(file: &str) -> Vec<Wanted> {
    let user = file.strip_prefix('~').and_then(|rest| rest.split_once('/'));
    match user {
        // Our own home.
        Some(("", _)) => Vec::new(),
        Some((user, _)) => vec![Wanted::first_of_each([Account::written(user).identity(&USER)])],
        None => EditedFile::named(file).wanted(),
    }
}

/// Where such a file is, as far as that is known.
#[derive(Debug, Default)]
pub(crate) struct HomeFile {
    found: Option<AbsolutePath>,
}

impl HomeFile {
    /// Looks for it before the first run. The user whose home it is in may be made by an earlier resource; then each run says what is missing.
    pub(crate) fn init(&mut self, file: &str, handle: &Handle) {
        self.found = resolved(file, handle).ok();
    }

    /// Looks for it in a run; where it is elsewhere than before, that is watched from then on.
    pub(crate) fn find(&mut self, file: &str, apply: &mut Apply<'_>) -> Result<AbsolutePath, Failure> {
        let path = resolved(file, apply.handle())?;
        if self.found.as_ref() != Some(&path) {
            self.found = Some(path.clone());
            apply.watch_anew();
        }
        Ok(path)
    }

    /// Watches of the file and, if it is in a home, of the accounts.
    pub(crate) fn watches(&self, file: &str) -> Vec<Watch> {
        let is_home = file.starts_with('~');
        let accounts = is_home.then(|| AbsolutePath::new("/etc/passwd").ok()).flatten();
        let found = self.found.iter().cloned();
        found.chain(accounts).map(Watch::path).collect()
    }
}

fn resolved(file: &str, handle: &Handle) -> Result<AbsolutePath, Failure> {
    let attempted = "find the file";
    let path = match file.strip_prefix('~').and_then(|rest| rest.split_once('/')) {
        None => AbsolutePath::new(file),
        Some((name, below)) => {
            let own = setpoint_host::files::own_uid().to_string();
            let name = if name.is_empty() { own.as_str() } else { name };
            let account = handle.users().account(name).attempting(attempted, file)?;
            let account = account.ok_or_else(|| {
                let why = format!("there is no user `{name}`, whose home it would be in");
                Failure::new(attempted).on(file).because(why)
            })?;
            AbsolutePath::new(account.home.join(below))
        }
    };
    path.map_err(|error| Failure::new(attempted).on(file).because(error))
}
