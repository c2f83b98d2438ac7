//! Packages of Fedora and its descendants: what is installed is asked of `rpm`, what could be of `dnf`, which also makes the changes. Both `dnf` 4 and 5 are used in the words that they
//! have in common.
//!
//! Parts of the distribution that are not free or not supported are sources of their own here, which are there or not: `allownonfree` and
//! `allowunsupported` have nothing to decide. Holding is the plug-in `versionlock`.

use std::collections::HashMap;
use std::path::Path;

use setpoint_engine::{Apply, Failure, Handle, async_trait};

use super::change::{Helped, Transactions};
use super::command::{Ended, run, run_with};
use super::rpm_version::{compare, plain};
use super::tool::Tool;
use super::{FoundPackage, PackageState, WantedPackage, directories_marked};

/// Where the database of rpm is, of newer and of older distributions.
const DATABASES: [&str; 2] = ["/usr/lib/sysimage/rpm/", "/var/lib/rpm/"];
/// Its file.
const DATABASE_FILES: [&str; 3] = ["rpmdb.sqlite", "Packages.db", "Packages"];
/// Where sources are described. Not the lists of what they have: asking for newer versions writes those.
const SOURCES: &str = "/etc/yum.repos.d/";

/// How rpm prints a package: name, architecture, and version with epoch.
const FORMAT: &str = "%{NAME}\t%{ARCH}\t%{EPOCHNUM}:%{VERSION}-%{RELEASE}\n";

/// The packages of this machine.
pub(crate) struct Dnf;

impl Dnf {
    /// Whether this machine's packages are those of rpm.
    pub(crate) fn is_here() -> bool {
        database().is_some()
    }
}

/// The file of the database of rpm, if there is one.
fn database() -> Option<String> {
    let files = DATABASES
        .iter()
        .flat_map(|directory| DATABASE_FILES.map(|file| format!("{directory}{file}")));
    let mut files = files.filter(|file| Path::new(file).is_file());
    files.next()
}

#[async_trait]
impl Tool for Dnf {
    fn places(&self, newest: bool) -> Vec<String> {
        let sources = newest.then(|| SOURCES.to_owned());
        database().into_iter().chain(sources).collect()
    }

    async fn upgrades(&self, names: &[&str], apply: &Apply<'_>) -> Result<HashMap<String, String>, Failure> {
        let attempted = "ask which versions there are";
        let arguments = [
            "-q",
            "repoquery",
            "--upgrades",
            "--qf",
            "%{name}\t%{arch}\t%{evr}\n",
            "--",
        ];
        let arguments: Vec<&str> = arguments.iter().chain(names).copied().collect();
        let ended = run("dnf", &arguments, attempted, apply).await?;
        Ok(versions(&self.checked(ended, Failure::new(attempted))?.stdout))
    }

    async fn held(&self, apply: &Apply<'_>) -> Result<String, Failure> {
        let attempted = "ask which packages are held";
        let ended = run("dnf", &["-q", "versionlock", "list"], attempted, apply).await?;
        Ok(self.checked(ended, Failure::new(attempted))?.stdout)
    }

    fn is_held(&self, list: &str, name: &str) -> bool {
        is_locked(list, name)
    }

    async fn hold(&self, name: &str, hold: bool, apply: &Apply<'_>) -> Result<(), Failure> {
        let (verb, attempted) = match hold {
            true => ("add", "hold"),
            false => ("delete", "hold no longer"),
        };
        let ended = run(
            "dnf",
            &["-y", "-q", "versionlock", verb, "--", name],
            attempted,
            apply,
        )
        .await?;
        self.checked(ended, Failure::new(attempted).on(name)).map(drop)
    }

    async fn files(&self, name: &str, handle: &Handle) -> Result<Vec<Vec<u8>>, Failure> {
        let attempted = "ask for the files of a package";
        let ended = run_with("rpm", &["-ql", "--", name], attempted, handle.processes()).await?;
        // One that is not installed has none.
        Ok(match ended.is_success {
            true => directories_marked(ended.stdout.lines().map(|line| line.as_bytes().to_vec())),
            false => Vec::new(),
        })
    }
}

#[async_trait]
impl Transactions for Dnf {
    const PROGRAM: &'static str = "dnf";

    async fn transaction(&self, packages: &[&WantedPackage], apply: &Apply<'_>) -> Result<Ended, Failure> {
        let mut options = vec!["-y", "-q"];
        if packages.iter().any(|wanted| wanted.allow_untrusted) {
            options.push("--nogpgcheck");
        }
        let state = packages.first().map(|wanted| &wanted.state);
        if state == Some(&PackageState::Uninstalled) {
            options.extend(["--setopt=clean_requirements_on_remove=False", "remove", "--"]);
            options.extend(packages.iter().map(|wanted| wanted.name.as_str()));
            return run("dnf", &options, "remove packages", apply).await;
        }
        let found = self.installed(packages, apply).await?;
        let mut verbs: [(&str, Vec<String>); 3] =
            [("install", vec![]), ("upgrade", vec![]), ("downgrade", vec![])];
        for (wanted, found) in packages.iter().zip(&found) {
            let at = match (&wanted.state, &found.version) {
                (PackageState::Version(version), Some(there)) if compare(version, there).is_lt() => 2,
                (PackageState::Newest, Some(_)) => 1,
                _ => 0,
            };
            verbs[at].1.push(wanted.with_version('-'));
        }
        let mut last = None;
        for (verb, what) in verbs.iter().filter(|(_, what)| !what.is_empty()) {
            let names = what.iter().map(String::as_str);
            let arguments: Vec<&str> = options
                .iter()
                .copied()
                .chain([*verb, "--"])
                .chain(names)
                .collect();
            let ended = run("dnf", &arguments, "install packages", apply).await?;
            if !ended.is_success {
                return Ok(ended);
            }
            last = Some(ended);
        }
        last.ok_or_else(|| Failure::new("install packages").because("there is none to install"))
    }

    async fn installed(
        &self,
        packages: &[&WantedPackage],
        apply: &Apply<'_>,
    ) -> Result<Vec<FoundPackage>, Failure> {
        let names = packages.iter().map(|wanted| wanted.name.as_str());
        let arguments: Vec<&str> = ["-q", "--qf", FORMAT, "--"].into_iter().chain(names).collect();
        let attempted = "ask which packages are installed";
        let ended = run("rpm", &arguments, attempted, apply).await?;
        // It fails, too, when one of them is not installed.
        if !ended.is_success && ended.stdout.is_empty() {
            return Err(Failure::new(attempted).because(self.said(&ended)));
        }
        let versions = versions(&ended.stdout);
        let found = packages.iter().map(|wanted| FoundPackage {
            version: versions.get(wanted.name.as_str()).cloned(),
            ..FoundPackage::default()
        });
        Ok(found.collect())
    }

    fn blamed(&self, ended: &Ended, names: &[&str]) -> Vec<Option<String>> {
        let said: Vec<&str> = ended.stdout.lines().chain(ended.stderr.lines()).collect();
        let blamed = |name: &&str| {
            let is_unknown = said.iter().any(|line| {
                let argument = line
                    .strip_prefix("No match for argument: ")
                    .or_else(|| line.strip_prefix("Error: Unable to find a match: "));
                // With a version it is `NAME-VERSION`.
                let mut words = argument.unwrap_or_default().split_whitespace();
                words.any(|word| {
                    word == *name || word.strip_prefix(name).is_some_and(|rest| rest.starts_with('-'))
                })
            });
            is_unknown.then(|| "no source of packages has one of this name and version".to_owned())
        };
        names.iter().map(blamed).collect()
    }

    fn said(&self, ended: &Ended) -> String {
        let mut said: Vec<&str> = Vec::new();
        for line in ended.stderr.lines().chain(ended.stdout.lines()) {
            let line = line
                .trim()
                .trim_start_matches("Error:")
                .trim_start_matches("- ")
                .trim();
            let is_noise = line.is_empty()
                || line.starts_with("Unable to detect release version")
                || line.starts_with("(try to add")
                || line.starts_with("You can try to add");
            if !is_noise && !said.contains(&line) {
                said.push(line);
            }
        }
        ended.summary(said)
    }

    async fn help(&self, ended: &Ended, helped: &mut Helped, apply: &Apply<'_>) -> Result<bool, Failure> {
        let may_be_outdated = [
            "Unable to find a match",
            "No match for argument",
            "Failed to download",
            "Status code: 404",
        ];
        match may_be_outdated.iter().any(|sign| ended.says(sign)) {
            true => {
                self.fetch_lists(&["-q", "makecache", "--refresh"], helped, apply)
                    .await
            }
            false => Ok(false),
        }
    }
}

/// Fetches the lists of one source.
pub(crate) async fn refresh_source(name: &str, apply: &Apply<'_>) -> Result<(), Failure> {
    let attempted = "fetch the lists of packages of";
    // A source that cannot be reached would be passed over.
    let skip = format!("--setopt={name}.skip_if_unavailable=False");
    let arguments = ["-y", "-q", "makecache", "--refresh", "--repo", name, &skip];
    let ended = run("dnf", &arguments, attempted, apply).await?;
    Dnf.checked(ended, Failure::new(attempted).on(name)).map(drop)
}

/// The highest version of each name in what rpm or dnf prints, and of each name with its architecture: `glibc.i686`.
fn versions(printed: &str) -> HashMap<String, String> {
    let mut versions: HashMap<String, String> = HashMap::new();
    for line in printed.lines() {
        let mut cells = line.split('\t');
        let (Some(name), Some(architecture), Some(version)) = (cells.next(), cells.next(), cells.next())
        else {
            continue;
        };
        let version = plain(version.trim());
        for name in [name.to_owned(), format!("{name}.{architecture}")] {
            let known = versions.entry(name).or_insert_with(|| version.to_owned());
            if compare(known, version).is_lt() {
                version.clone_into(known);
            }
        }
    }
    versions
}

/// Whether a list of `versionlock` names a package: `NAME-EPOCH:VERSION-RELEASE.*` in dnf 4, `Package name: NAME` in dnf 5.
fn is_locked(list: &str, name: &str) -> bool {
    list.lines().any(|line| {
        let line = line.trim();
        if let Some(locked) = line.strip_prefix("Package name: ") {
            return locked.trim() == name;
        }
        let rest = line.strip_prefix(name).and_then(|rest| rest.strip_prefix('-'));
        rest.is_some_and(|rest| {
            rest.starts_with(|first: char| first.is_ascii_digit()) && !line.starts_with('!')
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_version_of_each_name_is_read() {
        let printed = "package nope is not installed\nkernel\tx86_64\t0:6.1-2\nkernel\tx86_64\t0:6.10-1\nglibc\tx86_64\t2:2.3-1\nglibc\ti686\t2:2.2-1\n\n";
        let versions = versions(printed);
        let of = |name: &str| versions.get(name).map(String::as_str);
        assert_eq!(of("kernel"), Some("6.10-1"));
        assert_eq!(of("glibc"), Some("2:2.3-1"));
        assert_eq!(of("glibc.i686"), Some("2:2.2-1"));
        assert_eq!(of("nope"), None);
    }

    #[test]
    fn what_is_held_is_found_in_the_lists_of_both() {
        assert!(is_locked(
            "Last metadata expiration check: 0:00:01 ago\nfoo-0:1-1.*\n",
            "foo"
        ));
        assert!(is_locked(
            "# Added by 'versionlock add' command\nPackage name: foo\nevr = 1-1\n",
            "foo"
        ));
        for other in ["foo-bar-0:1-1.*", "!foo-0:1-1.*", "Package name: foobar", ""] {
            assert!(!is_locked(other, "foo"), "{other}");
        }
    }

    #[test]
    fn who_cannot_be_found_is_blamed() {
        let ended = Ended {
            is_success: false,
            stdout: String::new(),
            stderr: "No match for argument: nope\nError: Unable to find a match: nope other-1-1\n".to_owned(),
            how: "status 1".to_owned(),
        };
        let blamed = Dnf.blamed(&ended, &["nope", "other", "good"]);
        assert_eq!(
            blamed.iter().map(Option::is_some).collect::<Vec<bool>>(),
            [true, true, false]
        );
    }
}
