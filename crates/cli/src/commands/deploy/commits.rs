//! Deploys are bound to the commits of a git repository: each follows the one before, and has what its commit has.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use setpoint_programs::failure::Failure;

/// The number of files that an error names.
const MOST_NAMED: usize = 5;

/// The git repository that a program is in.
pub(super) struct Repository {
    /// The directory of the program.
    directory: PathBuf,
    /// The commit that is checked out, without changes.
    pub(super) head: String,
}

impl Repository {
    /// The repository of a program, by its path; of the working directory, if the program has none.
    ///
    /// # Errors
    /// When there is no repository, or it has changes that are in no commit.
    pub(super) fn of(program: &Path) -> Result<Repository, Failure> {
        let directory = match program.metadata() {
            Ok(found) if found.is_dir() => program.to_owned(),
            Ok(_) => program.parent().unwrap_or(Path::new("")).to_owned(),
            Err(_) => PathBuf::new(),
        };
        let directory = match directory.as_os_str().is_empty() {
            true => PathBuf::from("."),
            false => directory,
        };
        let mut repository = Repository {
            directory,
            head: String::new(),
        };
        let changed = repository.git(&["status", "--porcelain"])?;
        if let Some(first) = changed.lines().next() {
            let others = changed.lines().count() - 1;
            let more = match others {
                0 => String::new(),
                others => format!(", and {others} more"),
            };
            let failure = Failure::wrong("the working directory has changes that are in no commit");
            let failure = failure.because(format!("{}{more}", first.trim()));
            return Err(failure.hint("commit them, or deploy with `--no-git`"));
        }
        repository.head = repository.git(&["rev-parse", "HEAD"])?;
        Ok(repository)
    }

    /// Refuses files of a deploy that lie in the repository and not in its commit.
    ///
    /// # Errors
    /// With the names of some of them.
    pub(super) fn must_have(&self, files: &[PathBuf]) -> Result<(), Failure> {
        let top = PathBuf::from(self.git(&["rev-parse", "--show-toplevel"])?);
        let listed = self.git(&["ls-files", "-z", "--full-name", &format!("{}/", top.display())])?;
        let listed: BTreeSet<&Path> = listed.split('\0').map(Path::new).collect();
        let missing = files.iter().filter_map(|file| {
            let file = file.canonicalize().ok()?;
            let inside = file.strip_prefix(&top).ok()?;
            (!listed.contains(inside)).then(|| inside.display().to_string())
        });
        let missing: Vec<String> = missing.collect();
        if missing.is_empty() {
            return Ok(());
        }
        let named = missing
            .iter()
            .take(MOST_NAMED)
            .cloned()
            .collect::<Vec<_>>()
            .join(", ");
        let more = match missing.len().saturating_sub(MOST_NAMED) {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        let failure = Failure::wrong("the program has files that its commit lacks");
        let failure = failure.because(format!("{named}{more}"));
        Err(failure.hint(
            "git ignores them; commit them with `git add --force`, move them away, or deploy with `--no-git`",
        ))
    }

    /// Refuses to go over a deploy whose commit is no ancestor of this one.
    ///
    /// # Errors
    /// With the reason.
    pub(super) fn must_follow(&self, before: &str, deploy: u64) -> Result<(), Failure> {
        let is_ancestor = self.run(&["merge-base", "--is-ancestor", before, &self.head])?;
        if is_ancestor.status.success() {
            return Ok(());
        }
        let is_shallow = self.git(&["rev-parse", "--is-shallow-repository"])? == "true";
        let is_known = self.run(&["cat-file", "-e", &format!("{before}^{{commit}}")])?;
        let head = &self.head;
        let (why, hint) = match (is_shallow, is_known.status.success()) {
            (true, _) => (
                format!("this clone lacks the history between commit {before} of deploy {deploy} and {head}"),
                "`git fetch --unshallow` gets the history; `--force` deploys without it",
            ),
            (false, false) => (
                format!("commit {before} of deploy {deploy} is not in this repository"),
                "`git fetch` may get it; `--force` deploys over it, `--no-git` without commits",
            ),
            (false, true) => (
                format!("deploy {deploy} is of commit {before}, and {head} does not follow it"),
                "merge that commit first; `--force` deploys over it, `--no-git` without commits",
            ),
        };
        Err(Failure::wrong("failed to deploy").because(why).hint(hint))
    }

    /// The output of a command of git that succeeds.
    fn git(&self, arguments: &[&str]) -> Result<String, Failure> {
        let ran = self.run(arguments)?;
        if ran.status.success() {
            return Ok(String::from_utf8_lossy(&ran.stdout).trim().to_owned());
        }
        let said = String::from_utf8_lossy(&ran.stderr);
        let said = said.trim().lines().next().unwrap_or_default();
        let failure = Failure::wrong("git cannot find the commit of the program");
        let failure = failure.because(said.trim_start_matches("fatal: ").to_owned());
        Err(failure.hint("a deploy is made from a git repository; `--no-git` deploys without one"))
    }

    fn run(&self, arguments: &[&str]) -> Result<Output, Failure> {
        let ran = Command::new("git")
            .arg("-C")
            .arg(&self.directory)
            .args(arguments)
            .output();
        ran.map_err(|error| Failure::io("run `git`", &error).hint("`--no-git` deploys without commits"))
    }
}
