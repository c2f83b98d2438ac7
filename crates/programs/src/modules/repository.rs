//! Modules on disk: the directory that holds them, and what can be read of one without asking git.
//!
//! Git obeys the configuration of a repository, which may name programs. So in a repository that was there before we only look.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{RenameFlags, renameat_with};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use super::Problem;
use crate::failure::system_text;
use setpoint_host::files::{DirectoryLock, LockHolder};

/// How the directories begin in which modules arrive.
const ARRIVING: &str = ".setpoint-fetch-";

/// A modules directory that nobody else fetches into meanwhile.
pub(super) struct ModulesDirectory {
    path: PathBuf,
    _lock: DirectoryLock,
}

impl ModulesDirectory {
    /// Waits, but not longer than `patience`, until no other process fetches into the directory. `waiting` is called once if that
    /// takes a while.
    pub(super) fn lock(
        path: &Path,
        patience: Duration,
        waiting: impl FnMut(&LockHolder),
    ) -> Result<ModulesDirectory, Problem> {
        let lock = DirectoryLock::take(path, patience, waiting).map_err(|why| {
            let shown = path.display();
            Problem::new(format!("the modules directory `{shown}` cannot be used")).because(why)
        })?;
        let directory = ModulesDirectory {
            path: path.to_path_buf(),
            _lock: lock,
        };
        directory.remove_remains();
        Ok(directory)
    }

    /// A new directory in which a module arrives. It goes away by itself.
    pub(super) fn arrival(&self) -> Result<TempDir, Problem> {
        tempfile::Builder::new()
            .prefix(ARRIVING)
            .tempdir_in(&self.path)
            .map_err(|error| {
                let shown = self.path.display();
                Problem::new(format!(
                    "nothing can be written in the modules directory `{shown}`"
                ))
                .because(system_text(&error))
            })
    }

    /// The place of a module below the directory, with all that is above it.
    pub(super) fn place(&self, module: &str) -> Result<PathBuf, Problem> {
        let module = module.trim_end_matches('/');
        let above = module.rsplit_once('/').map_or("", |(above, _)| above);
        let mut path = self.path.clone();
        for part in above.split('/').filter(|part| !part.is_empty()) {
            path.push(part);
            match path.symlink_metadata() {
                Ok(found) if !found.is_dir() => {
                    return Err(Problem::new(format!("`{}` is not a directory", path.display())));
                }
                Ok(_) if path.join(".git").symlink_metadata().is_ok() => {
                    let problem = Problem::new(format!(
                        "the module `{module}` would lie inside of another one, `{}`",
                        path.display()
                    ));
                    return Err(problem.help("import one of them from another modules directory"));
                }
                Ok(_) => {}
                Err(_) => std::fs::create_dir(&path).map_err(|error| {
                    Problem::new(format!("the directory `{}` cannot be made", path.display()))
                        .because(system_text(&error))
                })?,
            }
        }
        Ok(self.path.join(module))
    }

    /// Moves what has arrived to its place in one step. What was there is moved to where that was.
    pub(super) fn put(&self, arrived: &Path, place: &Path) -> Result<(), Problem> {
        let moved = match is_empty_or_missing(place) {
            true => std::fs::rename(arrived, place),
            false => exchange(arrived, place),
        };
        moved.map_err(|error| {
            Problem::new(format!("the module cannot be moved to `{}`", place.display()))
                .because(system_text(&error))
        })
    }

    /// Removes what processes that were killed have left.
    fn remove_remains(&self) {
        for entry in std::fs::read_dir(&self.path).into_iter().flatten().flatten() {
            if entry
                .file_name()
                .as_encoded_bytes()
                .starts_with(ARRIVING.as_bytes())
            {
                // What cannot be removed is in nobody's way.
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
    }
}

fn exchange(arrived: &Path, place: &Path) -> std::io::Result<()> {
    let here = rustix::fs::CWD;
    match renameat_with(here, arrived, here, place, RenameFlags::EXCHANGE) {
        // Some file systems cannot do it in one step.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS | rustix::io::Errno::OPNOTSUPP) => {
            std::fs::rename(place, arrived.with_extension("old"))?;
            std::fs::rename(arrived, place)
        }
        done => done.map_err(Into::into),
    }
}

/// Whether nothing is at a place, or an empty directory.
pub(super) fn is_empty_or_missing(place: &Path) -> bool {
    match (place.symlink_metadata(), std::fs::read_dir(place)) {
        (Err(_), _) => true,
        (Ok(found), Ok(mut entries)) => found.is_dir() && entries.next().is_none(),
        (Ok(_), Err(_)) => false,
    }
}

/// The commit that a repository shows; none if it is no repository.
pub fn commit_of(module: &Path) -> Option<String> {
    let directory = module.join(".git");
    if !directory.symlink_metadata().ok()?.is_dir() {
        return None;
    }
    let head = short_text(&directory.join("HEAD"))?;
    let commit = match head.trim().strip_prefix("ref: ") {
        None => head.trim().to_owned(),
        Some(name) => {
            let is_name = name.starts_with("refs/") && !name.split('/').any(|part| part == "..");
            let loose = is_name.then(|| short_text(&directory.join(name))).flatten();
            match loose {
                Some(commit) => commit.trim().to_owned(),
                None => packed(&directory, name)?,
            }
        }
    };
    let is_commit = matches!(commit.len(), 40 | 64) && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_commit.then_some(commit)
}

fn packed(directory: &Path, name: &str) -> Option<String> {
    let refs = short_text(&directory.join("packed-refs"))?;
    let mut lines = refs.lines().filter_map(|line| line.split_once(' '));
    lines
        .find(|(_, other)| *other == name)
        .map(|(commit, _)| commit.to_owned())
}

/// The text of a regular file that is not absurdly large.
fn short_text(path: &Path) -> Option<String> {
    const MOST: u64 = 16 << 20;
    if !path.symlink_metadata().ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    File::open(path).ok()?.take(MOST).read_to_string(&mut text).ok()?;
    Some(text)
}

/// What the files of a module hold, as one number: names, links, whether they can be executed, contents. Git's own files do not count,
/// nor do modules that lie inside.
pub(super) fn content_hash(module: &Path) -> std::io::Result<String> {
    let mut files = Vec::new();
    list(module, String::new(), &mut files)?;
    files.sort();
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 64 << 10];
    for name in files {
        let path = module.join(&name);
        let found = path.symlink_metadata()?;
        hash.update(format!("{} {name}\n", name.len()));
        if found.is_symlink() {
            let target = std::fs::read_link(&path)?;
            hash.update("link ");
            hash.update(target.as_os_str().as_encoded_bytes());
        } else if found.is_file() {
            let kind = if found.permissions().mode() & 0o100 == 0 {
                "file"
            } else {
                "program"
            };
            hash.update(format!("{kind} {}\n", found.len()));
            let mut file = File::open(&path)?;
            loop {
                match file.read(&mut buffer)? {
                    0 => break,
                    read => hash.update(&buffer[..read]),
                }
            }
        } else {
            hash.update("other");
        }
        hash.update("\n");
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

fn list(module: &Path, below: String, files: &mut Vec<String>) -> std::io::Result<()> {
    let mut waiting = vec![below];
    while let Some(below) = waiting.pop() {
        for entry in std::fs::read_dir(module.join(&below))? {
            let entry = entry?;
            let name = entry.file_name();
            if name == ".git" {
                continue;
            }
            let Some(name) = name.to_str() else {
                let text = format!("the name of {} is not UTF-8", entry.path().display());
                return Err(std::io::Error::other(text));
            };
            let name = if below.is_empty() {
                name.to_owned()
            } else {
                format!("{below}/{name}")
            };
            let path = entry.path();
            if !entry.file_type()?.is_dir() {
                files.push(name);
            } else if !path.join(".git").is_dir() {
                waiting.push(name);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_are_read_from_a_branch_a_packed_branch_and_none() {
        let place = tempfile::tempdir().unwrap();
        let (one, two) = ("1".repeat(40), "2".repeat(40));
        let write = |name: &str, text: &str| {
            let path = place.path().join(".git").join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        assert_eq!(commit_of(place.path()), None);
        write("HEAD", "ref: refs/heads/main\n");
        assert_eq!(commit_of(place.path()), None);
        write("packed-refs", &format!("# pack-refs\n{one} refs/heads/main\n"));
        assert_eq!(commit_of(place.path()), Some(one.clone()));
        write("refs/heads/main", &format!("{two}\n"));
        assert_eq!(commit_of(place.path()), Some(two));
        write("HEAD", &format!("{one}\n"));
        assert_eq!(commit_of(place.path()), Some(one));
        write("HEAD", "ref: refs/../../secret\n");
        assert_eq!(commit_of(place.path()), None);
    }

    #[test]
    fn the_hash_sees_contents_names_links_and_modes_and_nothing_of_git() {
        let place = tempfile::tempdir().unwrap();
        let hash = || content_hash(place.path()).unwrap();
        std::fs::create_dir(place.path().join("sub")).unwrap();
        std::fs::write(place.path().join("sub/a"), "1").unwrap();
        let mut seen = vec![hash()];
        std::fs::create_dir(place.path().join(".git")).unwrap();
        std::fs::create_dir_all(place.path().join("vendor/h/.git")).unwrap();
        std::fs::write(place.path().join("vendor/h/x"), "").unwrap();
        std::fs::write(place.path().join(".git/config"), "x").unwrap();
        assert_eq!(hash(), seen[0]);
        std::fs::write(place.path().join("sub/a"), "2").unwrap();
        seen.push(hash());
        std::fs::rename(place.path().join("sub/a"), place.path().join("sub/b")).unwrap();
        seen.push(hash());
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(place.path().join("sub/b"), executable).unwrap();
        seen.push(hash());
        std::os::unix::fs::symlink("/etc/passwd", place.path().join("l")).unwrap();
        seen.push(hash());
        let count = seen.len();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), count);
    }
}
