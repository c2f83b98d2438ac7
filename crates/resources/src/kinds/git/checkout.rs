//! Checking out: from asking the server to reading back what git did.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use setpoint_engine::{Apply, DriftValue, Failure};
use setpoint_host::files::{AbsolutePath, Directory, Entry, Timestamp, exchange_directory};
use setpoint_host::processes::{Command, Stop};
use setpoint_host::state::Stored;
use tokio::task::block_in_place;

use super::repository::{Access, Reference, Repository};
use super::{Changes, Commits, Git, MovedTag, Place, Untracked};
use crate::replaced_directory::{places, remove_leftover};

/// Where the wanted commit is kept in a repository.
const TARGET: &str = "refs/setpoint/target";

/// The name and the version of what a resource remembers.
const MEMORY: (&str, u32) = ("checkout", 1);

/// So many changed files are named.
const NAMED: usize = 10;

/// The answer of the server that a resource remembers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Memory {
    url: String,
    /// The name that the commit had on the server.
    reference: String,
    commit: String,
    object: String,
    /// When the server was asked last, in seconds since 1970.
    asked: u64,
    /// Whether a checkout of this commit began and has not ended.
    #[serde(default)]
    is_under_way: bool,
}

/// The state of the directory.
pub(super) struct Found {
    head: Option<String>,
    branch: Option<String>,
    url: Option<String>,
    /// Changed files that git knows.
    changed: Vec<String>,
    untracked: Vec<String>,
}

impl Git {
    /// The name of the wanted commit on the server.
    pub(super) fn reference(&self) -> String {
        if !self.branch.is_empty() {
            format!("refs/heads/{}", self.branch)
        } else if !self.tag.is_empty() {
            format!("refs/tags/{}", self.tag)
        } else {
            self.commit.to_ascii_lowercase()
        }
    }

    /// The commit to check out: the given one, or the one that the server has, or had when it was asked last.
    pub(super) async fn target(
        &mut self,
        repository: &Repository<'_, '_>,
        memory: Option<&Memory>,
    ) -> Result<Reference, Failure> {
        let reference = self.reference();
        if !self.commit.is_empty() {
            return Ok(Reference {
                commit: reference.clone(),
                object: reference,
            });
        }
        let remembered = memory.filter(|memory| memory.url == self.url && memory.reference == reference);
        let is_over = |memory: &Memory| {
            let elapsed = Duration::from_secs(now().saturating_sub(memory.asked));
            self.every
                .as_ref()
                .is_some_and(|every| elapsed + Duration::from_secs(1) >= every.length())
        };
        let is_due = repository.apply.refresh_pending() || !self.has_asked || remembered.is_none_or(is_over);
        if let Some(memory) = remembered.filter(|_| !is_due) {
            return Ok(Reference {
                commit: memory.commit.clone(),
                object: memory.object.clone(),
            });
        }
        let found = repository.on_server(&self.url, &reference).await?;
        let missing = || {
            let what = if self.tag.is_empty() { "branch" } else { "tag" };
            let name = if self.tag.is_empty() {
                &self.branch
            } else {
                &self.tag
            };
            Failure::new("check out")
                .on(&self.url)
                .because(format!("it has no {what} `{name}`"))
        };
        let found = found.ok_or_else(missing)?;
        self.has_asked = true;
        let moved = remembered.filter(|memory| !self.tag.is_empty() && memory.object != found.object);
        if let Some(before) = moved.filter(|_| self.moved_tag == MovedTag::Refuse) {
            let why = format!(
                "the tag `{}` was {} and is {} now; `moved_tag => \"follow\"` accepts that",
                self.tag,
                short(&before.commit),
                short(&found.commit)
            );
            return Err(Failure::new("check out").on(&self.url).because(why));
        }
        Ok(found)
    }

    pub(super) fn memory(&self, target: &Reference, is_under_way: bool) -> Memory {
        Memory {
            url: self.url.clone(),
            reference: self.reference(),
            commit: target.commit.clone(),
            object: target.object.clone(),
            asked: now(),
            is_under_way,
        }
    }

    /// Makes a checkout in a second directory, which then replaces the first one.
    pub(super) async fn clone_to(
        &mut self,
        path: &AbsolutePath,
        access: &Access,
        memory: Option<Memory>,
        apply: &mut Apply<'_>,
    ) -> Result<String, Failure> {
        let target = {
            let server = Repository {
                path: AbsolutePath::new("/").expect("it is absolute"),
                access,
                apply,
            };
            self.target(&server, memory.as_ref()).await?
        };
        let attributes = vec![
            ("url", DriftValue::from(self.url.as_str())),
            ("commit", short(&target.commit).into()),
        ];
        if !apply.create(attributes) {
            return Ok(String::new());
        }
        let (place, new) = block_in_place(|| places(path))?;
        block_in_place(|| {
            new.remove_tree()?;
            new.create_directory(0o755)?;
            match access.rights.user {
                Some(user) => new.set_owner(Some(user), None),
                None => Ok(()),
            }
        })?;
        let made = async {
            let new_path =
                AbsolutePath::new(new.path()).map_err(|error| Failure::new("clone").because(error))?;
            let repository = Repository {
                path: new_path,
                access,
                apply,
            };
            let mut init = vec!["init", "--quiet"];
            init.extend(self.bare.then_some("--bare"));
            repository.git("clone", &init).await?;
            repository
                .git("clone", &["remote", "add", "origin", &self.url])
                .await?;
            self.fetch(&repository).await?;
            if !self.bare {
                self.check_out(&repository, &target, false).await?;
            } else {
                self.set_branches(&repository).await?;
            }
            self.read_back(&repository, &target).await
        };
        if let Err(failure) = made.await {
            let _ = block_in_place(|| new.remove_tree());
            return Err(failure);
        }
        block_in_place(|| exchange_directory(&new, &place))?;
        store(&self.memory(&target, false), apply)?;
        Ok(target.commit)
    }

    /// Keeps a checkout that is there.
    pub(super) async fn keep(
        &mut self,
        path: &AbsolutePath,
        access: &Access,
        memory: Option<Memory>,
        apply: &mut Apply<'_>,
    ) -> Result<String, Failure> {
        let (found, target, is_local) = {
            let repository = Repository {
                path: path.clone(),
                access,
                apply,
            };
            let found = self.find(&repository).await?;
            let target = self.target(&repository, memory.as_ref()).await?;
            let is_local = self.has_local_commits(&repository, &found, &target).await?;
            (found, target, is_local)
        };
        let is_ours = memory.as_ref().is_some_and(|memory| memory.is_under_way);
        let failed = |why: String| Failure::new("check out").on(path).because(why);
        if is_local && self.local_commits == Commits::Refuse && !is_ours {
            let why =
                "there are commits that the server does not have; `local_commits => \"discard\"` drops them";
            return Err(failed(why.to_owned()));
        }
        let owner = self.wrong_owner(path, access)?;
        let is_moved = found.head.as_deref() != Some(&target.commit);
        let is_on_branch =
            self.bare || self.branch.is_empty() || found.branch.as_deref() == Some(&*self.branch);
        if !found.changed.is_empty() && self.local_changes == Changes::Refuse && !is_ours {
            let files = named(&found.changed);
            let why = format!("files are changed: {files}; `local_changes` can `discard` or `keep` that");
            return Err(failed(why));
        }
        let mut may_repair = true;
        let mut differs = false;
        let mut tell = |field: &'static str, is: DriftValue, want: DriftValue| {
            differs = true;
            may_repair &= apply.drift(field, is, want);
        };
        if let Some((is, want)) = owner {
            tell("owner", is.into(), want.into());
        }
        if found.url.as_deref() != Some(&*self.url) {
            tell("url", found.url.clone().into(), self.url.as_str().into());
        }
        if is_moved {
            tell(
                "commit",
                found.head.as_deref().map(short).into(),
                short(&target.commit).into(),
            );
        } else if !is_on_branch {
            tell("branch", found.branch.clone().into(), self.branch.as_str().into());
        }
        let discards = !found.changed.is_empty() && (self.local_changes == Changes::Discard || is_ours);
        if discards {
            tell("changes", named(&found.changed).into(), DriftValue::Absent);
        }
        let removes = !found.untracked.is_empty() && self.untracked == Untracked::Remove;
        if removes {
            tell("untracked", named(&found.untracked).into(), DriftValue::Absent);
        }
        if !differs {
            if apply.may_repair() {
                block_in_place(|| remove_leftover(path))?;
            }
            if apply.may_repair()
                && memory
                    .as_ref()
                    .is_none_or(|memory| memory.is_under_way || self.has_asked)
            {
                store(&self.memory(&target, false), apply)?;
            }
            return Ok(target.commit);
        }
        if !may_repair {
            return Ok(found.head.unwrap_or_default());
        }
        store(&self.memory(&target, true), apply)?;
        self.repair(
            path,
            access,
            &found,
            &target,
            (is_moved || !is_on_branch || discards, removes),
            apply,
        )
        .await?;
        store(&self.memory(&target, false), apply)?;
        Ok(target.commit)
    }

    pub(super) async fn repair(
        &self,
        path: &AbsolutePath,
        access: &Access,
        found: &Found,
        target: &Reference,
        (checks_out, removes): (bool, bool),
        apply: &Apply<'_>,
    ) -> Result<(), Failure> {
        let repository = Repository {
            path: path.clone(),
            access,
            apply,
        };
        if let Some((_, owner)) = self.wrong_owner(path, access)? {
            take_ownership(path, &owner, apply).await?;
        }
        if found.url.as_deref() != Some(&*self.url) {
            let set = if found.url.is_some() { "set-url" } else { "add" };
            repository
                .git("set the address of", &["remote", set, "origin", &self.url])
                .await?;
        }
        if checks_out {
            // A killed run left it.
            let lock = path.join(if self.bare {
                "index.lock"
            } else {
                ".git/index.lock"
            });
            block_in_place(|| match Entry::at(&lock) {
                Ok(entry) if entry.stat()?.is_some() => entry.remove_file(),
                _ => Ok(()),
            })?;
            self.fetch(&repository).await?;
            match self.bare {
                true => self.set_branches(&repository).await?,
                false => {
                    let discards = self.local_changes != Changes::Keep;
                    self.check_out(&repository, target, discards).await?;
                }
            }
        }
        if removes {
            repository.git("clean", &["clean", "--quiet", "-ffd"]).await?;
        }
        self.read_back(&repository, target).await
    }

    /// Looks at the checkout.
    pub(super) async fn find(&self, repository: &Repository<'_, '_>) -> Result<Found, Failure> {
        let head = repository
            .ask(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])
            .await?;
        let branch = repository
            .ask(&["symbolic-ref", "--quiet", "--short", "HEAD"])
            .await?;
        let url = repository.ask(&["config", "--get", "remote.origin.url"]).await?;
        let mut found = Found {
            head,
            branch,
            url,
            changed: Vec::new(),
            untracked: Vec::new(),
        };
        if self.bare {
            return Ok(found);
        }
        let untracked = match self.untracked {
            Untracked::Remove => "--untracked-files=normal",
            Untracked::Keep => "--untracked-files=no",
        };
        let ignored = if self.submodules {
            "--ignore-submodules=none"
        } else {
            "--ignore-submodules=all"
        };
        let status = repository
            .git("look at", &["status", "--porcelain=v2", "-z", untracked, ignored])
            .await?;
        let mut parts = status.split('\0').filter(|part| !part.is_empty());
        while let Some(part) = parts.next() {
            // Columns before the path: eight for a change, nine for a rename, whose old name follows, ten for a conflict.
            let (columns, has_old_name) = match part.as_bytes().first() {
                Some(b'1') => (8, false),
                Some(b'2') => (9, true),
                Some(b'u') => (10, false),
                Some(b'?') => (1, false),
                _ => continue,
            };
            let path = part
                .splitn(columns + 1, ' ')
                .last()
                .unwrap_or_default()
                .to_owned();
            if has_old_name {
                parts.next();
            }
            match columns {
                1 => found.untracked.push(path),
                _ => found.changed.push(path),
            }
        }
        Ok(found)
    }

    /// Whether the checkout has commits that no server has, as far as that is known here.
    pub(super) async fn has_local_commits(
        &self,
        repository: &Repository<'_, '_>,
        found: &Found,
        target: &Reference,
    ) -> Result<bool, Failure> {
        let Some(head) = found.head.as_deref().filter(|head| *head != target.commit) else {
            return Ok(false);
        };
        let known = repository
            .ask(&["rev-parse", "--verify", "--quiet", TARGET])
            .await?;
        let mut arguments = vec!["rev-list", "--max-count=1", head, "--not", "--remotes", "--tags"];
        arguments.extend(known.as_deref());
        let local = repository.ask(&arguments).await?;
        Ok(local.is_some_and(|commits| !commits.is_empty()))
    }

    /// Fetches the wanted commit.
    pub(super) async fn fetch(&self, repository: &Repository<'_, '_>) -> Result<(), Failure> {
        let depth = format!("--depth={}", self.depth);
        let mut arguments = vec!["fetch", "--quiet", "--no-tags", "--force"];
        if self.depth > 0 {
            arguments.push(&depth);
        } else if repository
            .ask(&["rev-parse", "--is-shallow-repository"])
            .await?
            .as_deref()
            == Some("true")
        {
            arguments.push("--unshallow");
        }
        let reference = self.reference();
        let kept = format!("+{reference}:{TARGET}");
        let tracked = format!("+refs/heads/{0}:refs/remotes/origin/{0}", self.branch);
        let tagged = format!("+{reference}:{reference}");
        arguments.extend(["origin", &kept]);
        if !self.branch.is_empty() {
            arguments.push(&tracked);
        } else if !self.tag.is_empty() {
            arguments.push(&tagged);
        }
        let fetched = repository.git("fetch", &arguments).await;
        match fetched {
            Err(_) if !self.commit.is_empty() => {
                // Some servers give no commit by its hash alone.
                let all = [
                    "fetch",
                    "--quiet",
                    "--force",
                    "--tags",
                    "origin",
                    "+refs/heads/*:refs/remotes/origin/*",
                ];
                repository.git("fetch", &all).await?;
                let update = ["update-ref", TARGET, &reference];
                repository.git("fetch", &update).await.map(|_| ())
            }
            fetched => fetched.map(|_| ()),
        }
    }

    pub(super) async fn check_out(
        &self,
        repository: &Repository<'_, '_>,
        target: &Reference,
        discards: bool,
    ) -> Result<(), Failure> {
        if !self.sparse.is_empty() {
            let mut sparse = vec!["sparse-checkout", "set", "--cone"];
            sparse.extend(self.sparse.iter().map(String::as_str));
            repository.git("check out", &sparse).await?;
        }
        let mut arguments = vec!["checkout", "--quiet"];
        arguments.extend(discards.then_some("--force"));
        match self.branch.as_str() {
            "" => arguments.extend(["--detach", &target.commit]),
            branch => arguments.extend(["-B", branch, &target.commit]),
        }
        repository.git("check out", &arguments).await?;
        if !self.branch.is_empty() {
            let upstream = format!("--set-upstream-to=origin/{}", self.branch);
            // Only who works in the tree needs it.
            let _ = repository.ask(&["branch", "--quiet", &upstream]).await?;
        }
        if self.submodules {
            let mut update = vec![
                "submodule",
                "update",
                "--init",
                "--recursive",
                "--force",
                "--quiet",
            ];
            let depth = format!("--depth={}", self.depth);
            if self.depth > 0 {
                update.push(&depth);
            }
            repository
                .git(
                    "check out the submodules of",
                    &["submodule", "sync", "--recursive", "--quiet"],
                )
                .await?;
            repository.git("check out the submodules of", &update).await?;
        }
        if self.lfs {
            repository
                .git("fetch the large files of", &["lfs", "pull"])
                .await?;
        }
        Ok(())
    }

    /// Has the branch of a bare repository be the fetched commit.
    pub(super) async fn set_branches(&self, repository: &Repository<'_, '_>) -> Result<(), Failure> {
        let (name, value) = match self.branch.as_str() {
            "" => ("HEAD".to_owned(), TARGET),
            branch => (format!("refs/heads/{branch}"), TARGET),
        };
        let mut update = vec!["update-ref"];
        update.extend(self.branch.is_empty().then_some("--no-deref"));
        update.extend([name.as_str(), value]);
        let value = repository
            .git(
                "check out",
                &["rev-parse", "--verify", &format!("{TARGET}^{{commit}}")],
            )
            .await?;
        *update.last_mut().expect("it has words") = &value;
        repository.git("check out", &update).await?;
        if !self.branch.is_empty() {
            repository
                .git("check out", &["symbolic-ref", "HEAD", &name])
                .await?;
        }
        Ok(())
    }

    /// Checks that what git did is what was wanted.
    pub(super) async fn read_back(
        &self,
        repository: &Repository<'_, '_>,
        target: &Reference,
    ) -> Result<(), Failure> {
        let head = repository
            .ask(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])
            .await?;
        match head.as_deref() == Some(&target.commit) {
            true => Ok(()),
            false => {
                let is = head.as_deref().map_or("nothing".to_owned(), short);
                let why = format!(
                    "git reports success, and {is} is checked out instead of {}",
                    short(&target.commit)
                );
                Err(Failure::new("check out").on(&repository.path).because(why))
            }
        }
    }

    /// The owner of the tree and the wanted one, if they differ.
    pub(super) fn wrong_owner(
        &self,
        path: &AbsolutePath,
        access: &Access,
    ) -> Result<Option<(String, String)>, Failure> {
        let Some(wanted) = access.rights.user else {
            return Ok(None);
        };
        let stat = block_in_place(|| Directory::open(path).and_then(|directory| directory.stat()))?;
        Ok((stat.uid != wanted).then(|| (stat.uid.to_string(), wanted.to_string())))
    }

    pub(super) async fn remove(
        &self,
        path: &AbsolutePath,
        access: &Access,
        place: Place,
        apply: &mut Apply<'_>,
    ) -> Result<(), Failure> {
        let Place::Repository = place else { return Ok(()) };
        let found = {
            let repository = Repository {
                path: path.clone(),
                access,
                apply,
            };
            let found = self.find(&repository).await?;
            let none = Reference {
                commit: String::new(),
                object: String::new(),
            };
            let is_local = self.has_local_commits(&repository, &found, &none).await?;
            if is_local && self.local_commits == Commits::Refuse {
                let why = "there are commits that the server does not have; `local_commits => \"discard\"` drops them";
                return Err(Failure::new("remove").on(path).because(why));
            }
            found
        };
        if !found.changed.is_empty() && self.local_changes != Changes::Discard {
            let why = format!(
                "files are changed: {}; `local_changes => \"discard\"` drops that",
                named(&found.changed)
            );
            return Err(Failure::new("remove").on(path).because(why));
        }
        let is = found.head.as_deref().map_or_else(
            || "a repository".to_owned(),
            |head| format!("a checkout of {}", short(head)),
        );
        if apply.remove(is) {
            let (place, _) = block_in_place(|| places(path))?;
            block_in_place(|| place.remove_tree())?;
        }
        Ok(())
    }
}

/// Gives a tree to a user.
async fn take_ownership(path: &AbsolutePath, owner: &str, apply: &Apply<'_>) -> Result<(), Failure> {
    let command = Command::new("chown", ["-R", "-h", "--", owner, &path.to_string()]);
    let failed = || Failure::new("set the owner of").on(path);
    let finished = apply.handle().processes().run(&command, &Stop::default()).await;
    let finished = finished.map_err(|error| failed().because(error))?;
    match finished.exit.is_success() {
        true => Ok(()),
        false => Err(failed().because(finished.output.text().trim().to_owned())),
    }
}

pub(super) fn load(apply: &Apply<'_>) -> Result<Option<Memory>, Failure> {
    let stored = block_in_place(|| apply.handle().load(MEMORY.0, MEMORY.1))?;
    Ok(match stored {
        Stored::Payload(payload) => serde_json::from_slice(&payload).ok(),
        Stored::Nothing | Stored::Unusable(_) => None,
    })
}

fn store(memory: &Memory, apply: &Apply<'_>) -> Result<(), Failure> {
    let payload = serde_json::to_vec(memory).expect("it has only texts and numbers");
    block_in_place(|| apply.handle().store(MEMORY.0, MEMORY.1, &payload))
}

fn short(commit: &str) -> String {
    commit[..commit.len().min(12)].to_owned()
}

/// The first of some names, and how many there are.
fn named(names: &[String]) -> String {
    let shown: Vec<&str> = names.iter().take(NAMED).map(String::as_str).collect();
    let more = names.len().saturating_sub(NAMED);
    match more {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

fn now() -> u64 {
    Timestamp::now().seconds.unsigned_abs()
}
