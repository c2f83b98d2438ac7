//! The `git` kind: a checkout of a repository. Not one of mgmt's kinds.
//!
//! A new checkout is made in a second directory, which then replaces the first one in one step. A run notes first which commit it checks out, so that the next run can complete it.

mod checkout;
mod repository;

use setpoint_engine::{Apply, Failure, Identity, IfSet, Resource, Sends, Wanted, Watch, Words, async_trait};
use setpoint_graph::{Invalid, MetaParameters};
use setpoint_host::files::{AbsolutePath, Directory};
use setpoint_host::watch::{Depth, Follow};
use tokio::task::block_in_place;

use self::repository::Access;
use crate::command_rights::CommandRights;
use crate::enclosing;
use crate::presence::Presence;
use crate::sorts::{Account, PACKAGE_FILE};
use crate::time_span::TimeSpan;

/// A checkout of a git repository.
///
/// ```mcl
/// git "/srv/app/" {
///     url => "https://git.example.org/shop/app.git",
///     branch => "main",
///     every => "5m",
/// }
/// ```
///
/// With an SSH key, as the user whose tree it is:
///
/// ```mcl
/// git "/srv/site/" {
///     url => "git@git.example.org:shop/site.git",
///     tag => "v1.2.0",
///     user => "www-data",
///     key => "/etc/setpoint/deploy_key",
///     host_key => ["git.example.org ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"],
///     local_changes => "discard",
/// }
/// ```
#[derive(Debug, Resource)]
#[resource(kind = "git", autoedge, receives, refreshable, asynchronous, sends = Sent)]
pub(crate) struct Git {
    /// The directory, with a slash at the end. Unset: the resource's name.
    path: IfSet<AbsolutePath>,
    /// Whether the checkout is there.
    #[param(default = Presence::Exists)]
    state: Presence,
    /// The repository: `https://…`, `ssh://…`, `git@HOST:PATH`, `file:///…` or an absolute path.
    url: String,
    /// The branch to follow. Set exactly one of `branch`, `tag` and `commit`.
    branch: String,
    /// The tag to check out.
    tag: String,
    /// The commit to check out, as 40 or 64 hexadecimal digits. The server is not asked once it is there.
    commit: String,
    /// How often the server is asked, such as `5m`. Unset: at the start, and when the resource is notified.
    every: IfSet<TimeSpan>,
    /// How many commits of the history are fetched. 0 means all.
    #[param(default = 1)]
    depth: u32,
    /// Whether submodules are checked out, too.
    submodules: bool,
    /// Whether files of Git LFS are fetched. Needs `git-lfs`.
    lfs: bool,
    /// The directories to check out. Unset: all.
    sparse: Vec<String>,
    /// The user who runs git and owns the tree, by name or number. Unset: our own user.
    user: String,
    /// A private key for SSH.
    key: IfSet<AbsolutePath>,
    /// The keys of the SSH server, as lines of `known_hosts`. Only these are accepted. Unset: those that the user knows.
    host_key: Vec<String>,
    /// The user for HTTPS.
    username: String,
    /// The password or token for HTTPS. Mark it as sensitive.
    token: String,
    /// Changes of files that git knows: `refuse` to go on, `discard` or `keep` them.
    #[param(default = Changes::Refuse)]
    local_changes: Changes,
    /// Files that git neither knows nor ignores: `keep` or `remove` them.
    #[param(default = Untracked::Keep)]
    untracked: Untracked,
    /// Commits that the server does not have: `refuse` to go on, or `discard` them.
    #[param(default = Commits::Refuse)]
    local_commits: Commits,
    /// A tag that names another commit than before: `refuse` or `follow` it.
    #[param(default = MovedTag::Refuse)]
    moved_tag: MovedTag,
    /// Whether the repository has no checked-out files.
    bare: bool,
    #[name]
    name: String,
    /// Whether the server was asked since the start.
    #[state]
    has_asked: bool,
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident, $one:literal, $($word:literal => $variant:ident),*) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum $name {
            $($variant),*
        }

        impl Words for $name {
            const ONE: &'static str = $one;

            fn words() -> impl Iterator<Item = (&'static str, $name)> {
                [$(($word, $name::$variant)),*].into_iter()
            }
        }
    };
}

words!(
    /// Treatment of changed files.
    Changes, "a treatment of changes", "refuse" => Refuse, "discard" => Discard, "keep" => Keep
);
words!(
    /// Treatment of files that git does not know.
    Untracked, "a treatment of files", "keep" => Keep, "remove" => Remove
);
words!(
    /// Treatment of commits that the server does not have.
    Commits, "a treatment of commits", "refuse" => Refuse, "discard" => Discard
);
words!(
    /// Treatment of a tag that moved.
    MovedTag, "a treatment of a tag", "refuse" => Refuse, "follow" => Follow
);

/// Values that it sends.
#[derive(Sends)]
struct Sent {
    /// The path of the directory.
    path: String,
    /// The commit that is checked out.
    version: String,
}

#[async_trait]
impl Resource for Git {
    fn validate(&self, _: &MetaParameters, invalid: &mut Vec<Invalid>) {
        match self.path() {
            Err(message) => invalid.push(Invalid::parameter("path", message)),
            Ok(path) if !path.names_directory() => {
                invalid.push(Invalid::parameter(
                    "path",
                    "must be a directory: it ends in no slash",
                ));
            }
            Ok(_) => {}
        }
        if self.state == Presence::Absent {
            return;
        }
        if let Err(why) = url_is_usable(&self.url) {
            invalid.push(Invalid::parameter("url", why));
        }
        let named = [
            ("branch", &self.branch),
            ("tag", &self.tag),
            ("commit", &self.commit),
        ];
        let set: Vec<&str> = named
            .iter()
            .filter(|(_, text)| !text.is_empty())
            .map(|(name, _)| *name)
            .collect();
        match set.as_slice() {
            [_] => {}
            [] => invalid.push(Invalid::parameter(
                "branch",
                "set one of `branch`, `tag` and `commit`",
            )),
            [first, second, ..] => {
                let message = format!("`{first}` is set, too; set one of `branch`, `tag` and `commit`");
                invalid.push(Invalid::parameter(second, message));
            }
        }
        let is_hash = self.commit.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !self.commit.is_empty() && (!is_hash || ![40, 64].contains(&self.commit.len())) {
            let message = "must be a whole hash, of 40 or 64 hexadecimal digits";
            invalid.push(Invalid::parameter("commit", message));
        }
        for (parameter, name) in [("branch", &self.branch), ("tag", &self.tag)] {
            let is_odd = name.starts_with('-')
                || name.contains(['\n', ' ', '~', '^', ':', '?', '*', '[', '\\'])
                || name.contains("..");
            if is_odd {
                invalid.push(Invalid::parameter(
                    parameter,
                    format!("`{name}` is not a name that git takes"),
                ));
            }
        }
        if self
            .host_key
            .iter()
            .any(|line| line.contains(['\n', '"', '\'', '\\', '%', '$', '`']))
        {
            invalid.push(Invalid::parameter(
                "host_key",
                "must be lines as `ssh-keyscan` prints them",
            ));
        }
        if self.username.is_empty() != self.token.is_empty() {
            invalid.push(Invalid::parameter(
                "token",
                "`username` and `token` are set together",
            ));
        }
        if self.bare && (self.submodules || self.lfs || !self.sparse.is_empty()) {
            invalid.push(Invalid::parameter("bare", "a bare repository has no files"));
        }
    }

    fn identities(&self) -> Vec<Identity> {
        let path = self.path().ok().filter(|_| self.state == Presence::Exists);
        path.iter().map(enclosing::file).collect()
    }

    fn wanted(&self) -> Vec<Wanted> {
        let path = self.path().ok();
        let directory = path.iter().map(|path| enclosing::wanted(&enclosing::file(path)));
        let key = self.key.iter().map(enclosing::file);
        let program = [PACKAGE_FILE.identity(*b"/usr/bin/git")];
        let first = Account::identities(&self.user, "").chain(key).chain(program);
        let first = first.collect::<Vec<_>>();
        directory.chain([Wanted::first_of_each(first)]).collect()
    }

    fn watches(&self) -> Vec<Watch> {
        let Ok(path) = self.path() else { return Vec::new() };
        let watched = match (self.bare, self.local_changes) {
            (false, Changes::Keep) => path.join(".git"),
            _ => path,
        };
        let mut watches = vec![Watch::Path {
            path: watched,
            depth: Depth::Recursive,
            follow: Follow::Target,
        }];
        if let Some(every) = self.every.as_ref().map(TimeSpan::length) {
            watches.push(Watch::own(move |watcher| async move {
                (watcher.event)("the time is followed");
                loop {
                    tokio::select! {
                        () = tokio::time::sleep(every) => (watcher.event)("it is time to ask the server"),
                        () = watcher.cancellation.cancelled() => return Ok(()),
                    }
                }
            }));
        }
        watches
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let path = self
            .path()
            .map_err(|why| Failure::new("use the path").because(why))?;
        let access = self.access(apply).await?;
        let is_there = block_in_place(|| look(&path, self.bare))?;
        if self.state == Presence::Absent {
            return self.remove(&path, &access, is_there, apply).await;
        }
        let memory = checkout::load(apply)?;
        let commit = match is_there {
            Place::Repository => self.keep(&path, &access, memory, apply).await?,
            Place::Free => self.clone_to(&path, &access, memory, apply).await?,
            Place::Other(why) => return Err(Failure::new("check out").on(&path).because(why)),
        };
        apply.send(Sent {
            path: path.to_string(),
            version: commit,
        });
        Ok(())
    }
}

/// The entry at the path.
enum Place {
    Repository,
    /// Nothing, or an empty directory.
    Free,
    /// Something that is not replaced.
    Other(String),
}

impl Git {
    fn path(&self) -> Result<AbsolutePath, String> {
        match &*self.path {
            Some(path) => Ok(path.clone()),
            None => AbsolutePath::new(&self.name).map_err(|error| format!("{error}: `{}`", self.name)),
        }
    }

    async fn access(&self, apply: &Apply<'_>) -> Result<Access, Failure> {
        let handle = apply.handle();
        let rights = CommandRights::find(handle, &self.user, "").await?;
        let name = match self.user.as_str() {
            "" => setpoint_host::files::own_uid().to_string(),
            name => name.to_owned(),
        };
        let account = block_in_place(|| handle.users().account(&name)).ok().flatten();
        Ok(Access {
            rights,
            home: account.map(|account| account.home.into_os_string()),
            ssh: self.ssh(),
            login: (!self.username.is_empty()).then(|| (self.username.clone(), self.token.clone())),
        })
    }

    /// The command for SSH.
    fn ssh(&self) -> Option<String> {
        if self.key.is_none() && self.host_key.is_empty() {
            return None;
        }
        let mut command = "ssh -o BatchMode=yes -o StrictHostKeyChecking=yes".to_owned();
        if let Some(key) = &*self.key {
            command.push_str(&format!(" -i {} -o IdentitiesOnly=yes", quoted(&key.to_string())));
        }
        if !self.host_key.is_empty() {
            // The keys come from a command, so the user needs no file to read.
            let lines = self.host_key.join("\\\\n");
            let known = format!("KnownHostsCommand=/usr/bin/printf \"{lines}\\\\n\"");
            command.push_str(" -o UserKnownHostsFile=none -o GlobalKnownHostsFile=none -o ");
            command.push_str(&quoted(&known));
        }
        Some(command)
    }
}

fn look(path: &AbsolutePath, is_bare: bool) -> Result<Place, Failure> {
    let directory = match Directory::open(path) {
        Ok(directory) => directory,
        Err(error) if error.is_not_found() => return Ok(Place::Free),
        Err(error) => return Err(error.into()),
    };
    let names: Vec<String> = directory
        .list()?
        .into_iter()
        .map(|entry| entry.name.to_string_lossy().into_owned())
        .collect();
    let has = |name: &str| names.iter().any(|known| known == name);
    let is_repository = if is_bare {
        has("HEAD") && has("objects")
    } else {
        has(".git")
    };
    Ok(match (is_repository, names.as_slice()) {
        (true, _) => Place::Repository,
        (false, []) => Place::Free,
        (false, [one]) => Place::Other(format!("it holds {one}, and is no checkout")),
        (false, [first, ..]) => Place::Other(format!(
            "it holds {} entries, such as {first}, and is no checkout",
            names.len()
        )),
    })
}

/// Whether git can use an address without a login in it.
fn url_is_usable(url: &str) -> Result<(), String> {
    if url.is_empty() {
        return Err("the address is missing".to_owned());
    }
    if url.starts_with('-') || url.contains(['\n', ' ']) {
        return Err(format!("`{url}` is not an address"));
    }
    let Some((scheme, rest)) = url.split_once("://") else {
        return match url.starts_with('/') || url.contains(':') {
            true => Ok(()),
            false => Err(format!("`{url}` is neither an address nor an absolute path")),
        };
    };
    let host = rest.split('/').next().unwrap_or_default();
    match scheme {
        "https" | "http" if host.contains('@') => {
            Err("it holds a user, which would be shown in messages; set `username` and `token`".to_owned())
        }
        "https" | "http" | "ssh" | "file" | "git" => Ok(()),
        other => Err(format!(
            "`{other}:` is not supported, only `https:`, `ssh:` and `file:`"
        )),
    }
}

/// A word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
