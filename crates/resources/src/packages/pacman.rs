//! Packages of Arch Linux and its descendants, by `pacman`.
//!
//! It has one version of each package, which it checks the signature of as `SigLevel` says in its configuration: `allowuntrusted` cannot change that for one package, and there are no parts
//! of the distribution that `allownonfree` and `allowunsupported` could be about. Holding is `IgnorePkg` in `/etc/pacman.conf`.

use std::collections::HashMap;
use std::path::Path;

use setpoint_engine::{Apply, Attempting, Failure, Handle, async_trait};
use setpoint_host::files::{AbsolutePath, Replace};
use tokio::task::block_in_place;

use super::change::{Helped, Transactions};
use super::command::{Ended, run, run_with};
use super::tool::Tool;
use super::{FoundPackage, PackageState, WantedPackage};
use crate::text_lines;
use crate::turns::Turn;

/// Where pacman knows what is installed, and what can be had.
pub(crate) const INSTALLED: &str = "/var/lib/pacman/local/";
const LISTS: &str = "/var/lib/pacman/sync/";
const CONFIGURATION: &str = "/etc/pacman.conf";

/// What is not installed is no failure of those who ask.
const NOT_FOUND: &str = "was not found";

/// The packages of this machine.
pub(crate) struct Pacman;

impl Pacman {
    /// Whether this machine's packages are those of pacman.
    pub(crate) fn is_here() -> bool {
        Path::new(INSTALLED).join("ALPM_DB_VERSION").exists()
    }
}

#[async_trait]
impl Tool for Pacman {
    fn places(&self, newest: bool) -> Vec<String> {
        let places = [Some(INSTALLED), newest.then_some(LISTS)];
        places.into_iter().flatten().map(str::to_owned).collect()
    }

    async fn upgrades(&self, names: &[&str], apply: &Apply<'_>) -> Result<HashMap<String, String>, Failure> {
        let arguments: Vec<&str> = ["-Qu", "--"].iter().chain(names).copied().collect();
        // It fails, too, when there is nothing new.
        let ended = run("pacman", &arguments, "ask which versions there are", apply).await?;
        let upgrades = names
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), newer(&ended.stdout, name)?)));
        Ok(upgrades.collect())
    }

    async fn held(&self, apply: &Apply<'_>) -> Result<String, Failure> {
        let attempted = "ask which packages are held";
        let ended = run("pacman-conf", &["IgnorePkg"], attempted, apply).await?;
        Ok(self.checked(ended, Failure::new(attempted))?.stdout)
    }

    fn is_held(&self, list: &str, name: &str) -> bool {
        list.lines().any(|line| line.trim() == name)
    }

    async fn hold(&self, name: &str, hold: bool, apply: &Apply<'_>) -> Result<(), Failure> {
        let attempted = if hold { "hold" } else { "hold no longer" };
        let path = AbsolutePath::new(CONFIGURATION).attempting("use the path", CONFIGURATION)?;
        let _turn = Turn::at_file(&path, apply).await?;
        block_in_place(|| {
            let text = text_lines::read(&path)?.unwrap_or_default();
            let Some(edited) = ignoring(&String::from_utf8_lossy(&text), name, hold) else {
                let why = format!("{CONFIGURATION} has no section `[options]`");
                return Err(Failure::new(attempted).on(name).because(why));
            };
            let replaced = apply
                .handle()
                .committer()
                .replace(Replace::bytes(path, edited.into_bytes()));
            replaced.map(drop).attempting("write", CONFIGURATION)
        })
    }

    async fn files(&self, name: &str, handle: &Handle) -> Result<Vec<Vec<u8>>, Failure> {
        let attempted = "ask for the files of a package";
        let ended = run_with("pacman", &["-Qlq", "--", name], attempted, handle.processes()).await?;
        // One that is not installed has none. Directories have a slash at their end.
        let files = ended.stdout.lines().filter(|_| ended.is_success);
        Ok(files.map(|line| line.as_bytes().to_vec()).collect())
    }
}

#[async_trait]
impl Transactions for Pacman {
    const PROGRAM: &'static str = "pacman";

    async fn transaction(&self, packages: &[&WantedPackage], apply: &Apply<'_>) -> Result<Ended, Failure> {
        let state = packages.first().map(|wanted| &wanted.state);
        let is_removal = state == Some(&PackageState::Uninstalled);
        let (verb, attempted): (&[&str], &'static str) = match is_removal {
            true => (&["-R", "--cascade"], "remove packages"),
            false => (&["-S", "--needed"], "install packages"),
        };
        let names: Vec<String> = packages.iter().map(|wanted| wanted.with_version('=')).collect();
        let common = ["--noconfirm", "--noprogressbar", "--"];
        let arguments: Vec<&str> = verb
            .iter()
            .copied()
            .chain(common)
            .chain(names.iter().map(String::as_str))
            .collect();
        run("pacman", &arguments, attempted, apply).await
    }

    async fn installed(
        &self,
        packages: &[&WantedPackage],
        apply: &Apply<'_>,
    ) -> Result<Vec<FoundPackage>, Failure> {
        let names = packages.iter().map(|wanted| wanted.name.as_str());
        let arguments: Vec<&str> = ["-Q", "--"].into_iter().chain(names).collect();
        let attempted = "ask which packages are installed";
        let ended = run("pacman", &arguments, attempted, apply).await?;
        let unexpected = |line: &str| line.starts_with("error:") && !line.contains(NOT_FOUND);
        if !ended.is_success && ended.stderr.lines().any(unexpected) {
            return Err(Failure::new(attempted).because(self.said(&ended)));
        }
        let found = packages.iter().map(|wanted| FoundPackage {
            version: second_word(&ended.stdout, &wanted.name).map(str::to_owned),
            ..FoundPackage::default()
        });
        Ok(found.collect())
    }

    fn blamed(&self, ended: &Ended, names: &[&str]) -> Vec<Option<String>> {
        let lines: Vec<&str> = ended.stderr.lines().chain(ended.stdout.lines()).collect();
        let blamed = |name: &&str| {
            let is_it = |word: &str| {
                word == *name || word.strip_prefix(name).is_some_and(|rest| rest.starts_with('='))
            };
            lines.iter().find_map(|line| {
                if let Some(target) = line.strip_prefix("error: target not found: ") {
                    let why = "no source of packages has one of this name and version";
                    return is_it(target.trim()).then(|| why.to_owned());
                }
                let (_, dependency) = line.split_once("unable to satisfy dependency '")?;
                let (missing, by) = dependency.split_once("' required by ")?;
                is_it(by.trim()).then(|| format!("it needs `{missing}`, which cannot be had"))
            })
        };
        names.iter().map(blamed).collect()
    }

    fn said(&self, ended: &Ended) -> String {
        if ended.stderr.contains("unable to lock database") {
            return "somebody else changes packages just now; if nobody does, what was interrupted has left /var/lib/pacman/db.lck"
                .to_owned();
        }
        let lines = ended.stderr.lines().chain(ended.stdout.lines());
        let errors = lines.filter_map(|line| {
            line.strip_prefix("error: ")
                .or_else(|| line.strip_prefix(":: unable "))
        });
        ended.summary(errors)
    }

    async fn help(&self, ended: &Ended, helped: &mut Helped, apply: &Apply<'_>) -> Result<bool, Failure> {
        let may_be_outdated = ["target not found", "failed retrieving file"];
        match may_be_outdated.iter().any(|sign| ended.stderr.contains(sign)) {
            true => self.fetch_lists(&["-Sy", "--noprogressbar"], helped, apply).await,
            false => Ok(false),
        }
    }
}

/// The second word of the line that begins with a name.
fn second_word<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        (words.next() == Some(name)).then(|| words.next()).flatten()
    })
}

/// The version that takes the place of an installed one: `NAME 1-1 -> 2-1`.
fn newer(printed: &str, name: &str) -> Option<String> {
    printed.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [of, _, "->", newer, ..] if *of == name => Some((*newer).to_owned()),
            _ => None,
        }
    })
}

/// The configuration with a name in its `IgnorePkg`, or without it. None if there is no place for it.
fn ignoring(text: &str, name: &str, hold: bool) -> Option<String> {
    let mut edited = String::with_capacity(text.len() + name.len() + 16);
    let (mut is_in_options, mut is_placed) = (false, !hold);
    for line in text.split_inclusive('\n') {
        let section = line.trim();
        if section.starts_with('[') {
            is_in_options = section == "[options]";
        }
        let key = line
            .split_once('=')
            .filter(|(key, _)| is_in_options && key.trim() == "IgnorePkg");
        let Some((_, value)) = key else {
            edited.push_str(line);
            if is_in_options && section == "[options]" && !is_placed {
                if !line.ends_with('\n') {
                    edited.push('\n');
                }
                edited.push_str(&format!("IgnorePkg = {name}\n"));
                is_placed = true;
            }
            continue;
        };
        let rest: Vec<&str> = value.split_whitespace().filter(|word| *word != name).collect();
        if !rest.is_empty() {
            edited.push_str(&format!("IgnorePkg = {}\n", rest.join(" ")));
        }
    }
    is_placed.then_some(edited)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_prints_is_read() {
        assert_eq!(second_word("foo-bar 3-1\nfoo 1-1\n", "foo"), Some("1-1"));
        assert_eq!(second_word("foo-bar 3-1\n", "foo"), None);
        assert_eq!(newer("foo 1-1 -> 2-1 [ignored]\n", "foo").as_deref(), Some("2-1"));
        assert_eq!(newer("foo 1-1 -> 2-1\n", "fo"), None);
    }

    #[test]
    fn names_are_ignored_and_no_longer() {
        let before = "# mine\n[options]\nIgnorePkg = a  b\n#IgnorePkg =\n[core]\nIgnorePkg = x\n";
        let with = "# mine\n[options]\nIgnorePkg = c\nIgnorePkg = a b\n#IgnorePkg =\n[core]\nIgnorePkg = x\n";
        assert_eq!(ignoring(before, "c", true).as_deref(), Some(with));
        let without = "# mine\n[options]\nIgnorePkg = a b\n#IgnorePkg =\n[core]\nIgnorePkg = x\n";
        assert_eq!(ignoring(with, "c", false).as_deref(), Some(without));
        assert_eq!(
            ignoring("[options]", "c", true).as_deref(),
            Some("[options]\nIgnorePkg = c\n")
        );
        assert_eq!(ignoring("[core]\n", "c", true), None);
    }
}
