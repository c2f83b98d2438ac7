//! Packages of Alpine Linux, by `apk`: what is installed is read from its own file, changes are made by the program.
//!
//! Parts of the distribution that are not free or not supported are sources of their own here, which are there or not: `allownonfree` and
//! `allowunsupported` have nothing to decide. A package is held by naming its version among those that shall be there (`/etc/apk/world`).

use std::collections::HashMap;
use std::path::Path;

use setpoint_engine::{Apply, Attempting, Failure, Handle, async_trait};
use setpoint_host::files::{AbsolutePath, Entry};
use tokio::task::block_in_place;

use super::change::{Helped, Transactions, later_is_installed};
use super::command::{Ended, run};
use super::tool::Tool;
use super::{FoundPackage, PackageState, WantedPackage, directories_marked};

/// Where apk writes what is installed, of newer and of older releases.
const DATABASES: [&str; 2] = ["/usr/lib/apk/db/installed", "/lib/apk/db/installed"];
/// Where the names are of what shall be there, each with what else is wanted of it.
const WORLD: &str = "/etc/apk/world";
/// Where the lists are of what can be had.
const LISTS: &str = "/var/cache/apk/";

/// How long it waits for somebody else who changes packages, in seconds.
const WAIT: [&str; 2] = ["--wait", "600"];

/// The packages of this machine.
pub(crate) struct Apk;

impl Apk {
    /// Whether this machine's packages are those of apk.
    pub(crate) fn is_here() -> bool {
        database().is_some()
    }
}

fn database() -> Option<&'static str> {
    DATABASES.into_iter().find(|path| Path::new(path).is_file())
}

#[async_trait]
impl Tool for Apk {
    fn places(&self, newest: bool) -> Vec<String> {
        let lists = newest.then_some(LISTS).filter(|path| Path::new(path).is_dir());
        let places = database().into_iter().chain([WORLD]).chain(lists);
        places.map(str::to_owned).collect()
    }

    async fn upgrades(&self, names: &[&str], apply: &Apply<'_>) -> Result<HashMap<String, String>, Failure> {
        let attempted = "ask which versions there are";
        let arguments: Vec<&str> = ["version", "-l", "<", "--"]
            .iter()
            .chain(names)
            .copied()
            .collect();
        let ended = run("apk", &arguments, attempted, apply).await?;
        let printed = self.checked(ended, Failure::new(attempted))?.stdout;
        let upgrades = names
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), newer(&printed, name)?)));
        Ok(upgrades.collect())
    }

    async fn held(&self, _: &Apply<'_>) -> Result<String, Failure> {
        read(WORLD)
    }

    fn is_held(&self, list: &str, name: &str) -> bool {
        list.split_whitespace().any(|word| {
            let rest = word.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with('='))
        })
    }

    async fn refused(
        &self,
        wanted: &WantedPackage,
        found: &FoundPackage,
        apply: &Apply<'_>,
    ) -> Result<Option<Failure>, Failure> {
        let (PackageState::Version(version), Some(there)) = (&wanted.state, &found.version) else {
            return Ok(None);
        };
        if wanted.allow_downgrade {
            return Ok(None);
        }
        let asked = ["version", "-t", version, there];
        let ended = run("apk", &asked, "compare versions", apply).await?;
        Ok((ended.stdout.trim() == "<").then(|| later_is_installed(wanted, there)))
    }

    async fn hold(&self, name: &str, hold: bool, apply: &Apply<'_>) -> Result<(), Failure> {
        let attempted = if hold { "hold" } else { "hold no longer" };
        let wanted = match packages(&read_database()?).remove(name) {
            Some(installed) if hold => format!("{name}={}", installed.version),
            _ => name.to_owned(),
        };
        let arguments: Vec<&str> = ["add"].into_iter().chain(WAIT).chain(["--", &wanted]).collect();
        let ended = run("apk", &arguments, attempted, apply).await?;
        self.checked(ended, Failure::new(attempted).on(name)).map(drop)
    }

    async fn files(&self, name: &str, _: &Handle) -> Result<Vec<Vec<u8>>, Failure> {
        let text = read_database()?;
        let files = packages(&text).remove(name).map(|package| package.files);
        let files = files.unwrap_or_default().into_iter().map(String::into_bytes);
        Ok(directories_marked(files))
    }
}

#[async_trait]
impl Transactions for Apk {
    const PROGRAM: &'static str = "apk";

    async fn transaction(&self, packages: &[&WantedPackage], apply: &Apply<'_>) -> Result<Ended, Failure> {
        let state = packages.first().map(|wanted| &wanted.state);
        let mut arguments: Vec<&str> = Vec::new();
        let attempted = match state {
            Some(PackageState::Uninstalled) => {
                arguments.extend(["del", "--rdepends"]);
                "remove packages"
            }
            state => {
                arguments.push("add");
                if state == Some(&PackageState::Newest) {
                    arguments.push("--upgrade");
                }
                if packages.iter().any(|wanted| wanted.allow_untrusted) {
                    arguments.push("--allow-untrusted");
                }
                "install packages"
            }
        };
        arguments.extend(WAIT);
        arguments.push("--");
        let names: Vec<String> = packages.iter().map(|wanted| wanted.with_version('=')).collect();
        arguments.extend(names.iter().map(String::as_str));
        run("apk", &arguments, attempted, apply).await
    }

    async fn installed(
        &self,
        wanted: &[&WantedPackage],
        _: &Apply<'_>,
    ) -> Result<Vec<FoundPackage>, Failure> {
        let text = read_database()?;
        let mut packages = packages(&text);
        let found = wanted.iter().map(|wanted| FoundPackage {
            version: packages
                .remove(wanted.name.as_str())
                .map(|package| package.version),
            ..FoundPackage::default()
        });
        Ok(found.collect())
    }

    fn blamed(&self, ended: &Ended, names: &[&str]) -> Vec<Option<String>> {
        let lines: Vec<&str> = ended
            .stdout
            .lines()
            .chain(ended.stderr.lines())
            .map(str::trim)
            .collect();
        let blamed = |name: &&str| {
            // `NAME (no such package):`, and `NAME-VERSION:` with what is wrong with it after it.
            let at = lines.iter().position(|line| {
                let rest = line.strip_prefix(name);
                rest.is_some_and(|rest| {
                    rest.ends_with(':') && (rest.starts_with(" (no such package)") || rest.starts_with('-'))
                })
            })?;
            Some(match lines[at].contains("(no such package)") {
                true => "no source of packages has one of this name".to_owned(),
                false => lines
                    .get(at + 1)
                    .map_or_else(String::new, |why| (*why).to_owned()),
            })
        };
        names.iter().map(blamed).collect()
    }

    fn said(&self, ended: &Ended) -> String {
        let lines = ended.stderr.lines().chain(ended.stdout.lines());
        let lines = lines.map(|line| line.trim().trim_start_matches("ERROR: "));
        let is_news =
            |line: &&str| !line.is_empty() && !line.starts_with("OK: ") && !line.starts_with("fetch ");
        ended.summary(lines.filter(is_news))
    }

    async fn help(&self, ended: &Ended, helped: &mut Helped, apply: &Apply<'_>) -> Result<bool, Failure> {
        let may_be_outdated = ["no such package", "breaks: world", "unable to select packages"];
        if !may_be_outdated.iter().any(|sign| ended.says(sign)) {
            return Ok(false);
        }
        let arguments: Vec<&str> = ["update"].into_iter().chain(WAIT).collect();
        self.fetch_lists(&arguments, helped, apply).await
    }
}

/// What the database says of a package.
struct Installed {
    version: String,
    files: Vec<String>,
}

fn read_database() -> Result<String, Failure> {
    read(database().unwrap_or(DATABASES[1]))
}

fn read(path: &str) -> Result<String, Failure> {
    let attempted = "read";
    let path = AbsolutePath::new(path).attempting("use the path", path)?;
    let bytes = match block_in_place(|| Entry::at(&path).and_then(|entry| entry.read())) {
        Err(error) if error.is_not_found() => Vec::new(),
        bytes => bytes.attempting(attempted, &path)?,
    };
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads the database: of each package its lines `P:` and `V:`, and `F:` for a directory with `R:` for each file in it.
fn packages(text: &str) -> HashMap<&str, Installed> {
    let mut all = HashMap::new();
    for paragraph in text.split("\n\n") {
        let (mut name, mut version, mut directory) = (None, None, "");
        let mut files = Vec::new();
        for line in paragraph.lines() {
            match line.split_once(':') {
                Some(("P", is)) => name = Some(is),
                Some(("V", is)) => version = Some(is),
                Some(("F", is)) => {
                    directory = is;
                    files.push(format!("/{is}"));
                }
                Some(("R", is)) => files.push(match directory {
                    "" => format!("/{is}"),
                    directory => format!("/{directory}/{is}"),
                }),
                _ => {}
            }
        }
        if let (Some(name), Some(version)) = (name, version) {
            let version = version.to_owned();
            all.insert(name, Installed { version, files });
        }
    }
    all
}

/// The version that takes the place of an installed one: `NAME-1.0-r0 < 1.1-r0`.
fn newer(printed: &str, name: &str) -> Option<String> {
    printed.lines().find_map(|line| {
        let (installed, newer) = line.split_once(" < ")?;
        let version = installed.trim().strip_prefix(name)?.strip_prefix('-')?;
        let is_version = version.starts_with(|first: char| first.is_ascii_digit());
        is_version.then(|| newer.trim().to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATABASE: &str =
        "C:Q1abc=\nP:foo\nV:1.0-r0\nA:x86_64\nF:usr\nF:usr/share/foo\nR:v\nZ:Q1x=\n\nP:foo-doc\nV:1.0-r1\n\n";

    #[test]
    fn the_database_is_read() {
        let packages = packages(DATABASE);
        assert_eq!(packages["foo"].version, "1.0-r0");
        assert_eq!(
            packages["foo"].files,
            ["/usr", "/usr/share/foo", "/usr/share/foo/v"]
        );
        assert_eq!(packages["foo-doc"].version, "1.0-r1");
    }

    #[test]
    fn newer_versions_are_read() {
        let printed = "Installed:                                Available:\nfoo-doc-1.0-r1       < 1.2-r0 \nfoo-1.0-r0           < 1.1-r0 \n";
        assert_eq!(newer(printed, "foo").as_deref(), Some("1.1-r0"));
        assert_eq!(newer(printed, "foo-doc").as_deref(), Some("1.2-r0"));
        assert_eq!(newer(printed, "fo"), None);
    }
}
