//! Debian's packages: what is installed is read from the files of dpkg, what could be is asked of `apt-cache`, and changes are made by `apt-get`.
//!
//! `apt-get` ends with the same status whatever went wrong, so whom to blame is read from what it says. Those are left out, and the others are tried again; where
//! it names nobody, each is tried by itself. Nothing is asked: questions about configuration get their default answers, and files of configuration that were
//! edited stay. Nothing else is removed so that something can be installed.

mod blame;
mod database;
mod version;

use std::cmp::Ordering;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use setpoint_engine::{Apply, Attempting, Failure, Handle, Level, Watch, async_trait};
use setpoint_host::files::{AbsolutePath, Entry};
use tokio::time::Instant;

use super::command::{Ended, run};
use super::{FoundPackage, PackageManager, PackageState, WantedPackage};
pub(crate) use database::STATUS;
use database::{Database, Status};

/// The packages of this machine.
pub(crate) struct Apt;

/// Where the lists are of what can be had.
const LISTS: &str = "/var/lib/apt/lists/";

/// How long between two tries while somebody else changes packages.
const UNTIL_NEXT_TRY: Duration = Duration::from_millis(500);

/// How long lists that were just fetched count as new.
const FRESH: Duration = Duration::from_secs(60);

/// When the lists were fetched last by this process.
static REFRESHED: Mutex<Option<Instant>> = Mutex::new(None);

/// What all calls of `apt-get` have in common.
const OPTIONS: [&str; 8] = [
    "-q",
    "-y",
    "-o",
    "Dpkg::Use-Pty=0",
    "-o",
    "Dpkg::Options::=--force-confdef",
    "-o",
    "Dpkg::Options::=--force-confold",
];

/// Parts of distributions that are not free, and those that are not supported.
const NONFREE: [&str; 5] = [
    "non-free",
    "non-free-firmware",
    "contrib",
    "restricted",
    "multiverse",
];
const UNSUPPORTED: [&str; 2] = ["universe", "multiverse"];

#[async_trait]
impl PackageManager for Apt {
    fn watches(&self, newest: bool) -> Vec<Watch> {
        let paths = [Some(STATUS), newest.then_some(LISTS)];
        let paths = paths.into_iter().flatten();
        paths
            .filter_map(|path| AbsolutePath::new(path).ok())
            .map(Watch::path)
            .collect()
    }

    async fn look(&self, wanted: &[WantedPackage], apply: &Apply<'_>) -> Result<Vec<FoundPackage>, Failure> {
        let database = database().await?;
        let asked = wanted
            .iter()
            .filter(|wanted| wanted.state == PackageState::Newest);
        let names: Vec<&str> = asked.map(|wanted| wanted.name.as_str()).collect();
        let candidates = candidates(&names, apply).await?;
        let found = wanted.iter().map(|wanted| {
            let mut found = installed(&database, &wanted.name);
            found.newest = candidates
                .get(wanted.name.as_str())
                .map(|candidate| candidate.version.clone());
            // What is installed may be newer than what can be had.
            if let (Some(version), Some(newest)) = (&found.version, &found.newest)
                && version::compare(version, newest) == Ordering::Greater
            {
                found.newest = found.version.clone();
            }
            found
        });
        Ok(found.collect())
    }

    async fn change(
        &self,
        wanted: &[WantedPackage],
        apply: &Apply<'_>,
    ) -> Result<Vec<Option<Failure>>, Failure> {
        let mut change = Change {
            wanted,
            apply,
            failures: wanted.iter().map(|_| None).collect(),
            mended: false,
            refreshed: false,
        };
        let all = (0..wanted.len()).collect();
        let all = change.only_permitted(all).await?;
        change.make(all).await?;
        let database = database().await?;
        for (wanted, failure) in wanted.iter().zip(&mut change.failures) {
            if failure.is_none() && !is_right(&installed(&database, &wanted.name), &wanted.state) {
                let why = "`apt-get` says that all went well, and it is not so";
                *failure = Some(failed(wanted, why));
            }
        }
        Ok(change.failures)
    }

    async fn hold(&self, name: &str, hold: bool, apply: &Apply<'_>) -> Result<(), Failure> {
        let (verb, attempted) = match hold {
            true => ("hold", "hold"),
            false => ("unhold", "hold no longer"),
        };
        let ended = locked("apt-mark", &[verb, name], attempted, apply).await?;
        match ended.is_success {
            true => Ok(()),
            false => Err(Failure::new(attempted).on(name).because(blame::said(&ended))),
        }
    }

    async fn files(&self, name: &str, _: &Handle) -> Result<Vec<Vec<u8>>, Failure> {
        let database = database().await?;
        let Some(entered) = database
            .package(name)
            .filter(|entered| entered.status == Status::Installed)
        else {
            return Ok(Vec::new());
        };
        let bare = name.split(':').next().unwrap_or(name).to_owned();
        let places = [
            format!("{bare}.list"),
            format!("{bare}:{}.list", entered.architecture),
        ];
        let read = move || {
            for place in places {
                let path = AbsolutePath::new(format!("/var/lib/dpkg/info/{place}"));
                let path =
                    path.map_err(|error| Failure::new("read the files of a package").because(error))?;
                match Entry::at(&path).and_then(|entry| entry.read()) {
                    Err(error) if error.is_not_found() => {}
                    read => return read.attempting("read the files of a package in", &path),
                }
            }
            Ok(Vec::new())
        };
        let list: Vec<u8> = blocking("read the files of a package", read).await?;
        let mut files: Vec<Vec<u8>> = list.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        files.retain(|file| file.starts_with(b"/") && file != b"/.");
        files.sort();
        // A path that is above another one is a directory.
        for at in 0..files.len().saturating_sub(1) {
            let (file, next) = (&files[at], &files[at + 1]);
            if next.starts_with(file) && next.get(file.len()) == Some(&b'/') {
                files[at].push(b'/');
            }
        }
        Ok(files)
    }
}

/// Changes that are being made.
struct Change<'c, 'a> {
    wanted: &'c [WantedPackage],
    apply: &'c Apply<'a>,
    failures: Vec<Option<Failure>>,
    /// Whether what was interrupted has been brought to its end.
    mended: bool,
    /// Whether the lists of what can be had have been fetched.
    refreshed: bool,
}

impl Change<'_, '_> {
    /// Leaves out what comes from parts of the distribution that nobody allowed.
    async fn only_permitted(&mut self, packages: Vec<usize>) -> Result<Vec<usize>, Failure> {
        let is_asked = |wanted: &WantedPackage| {
            wanted.state != PackageState::Uninstalled && !(wanted.allow_nonfree && wanted.allow_unsupported)
        };
        let asked = packages
            .iter()
            .map(|at| &self.wanted[*at])
            .filter(|wanted| is_asked(wanted));
        let names: Vec<&str> = asked.map(|wanted| wanted.name.as_str()).collect();
        let candidates = candidates(&names, self.apply).await?;
        let mut permitted = Vec::new();
        for at in packages {
            let wanted = &self.wanted[at];
            let component = candidates
                .get(wanted.name.as_str())
                .map_or("", |found| &found.component);
            let refused = if is_asked(wanted) && !wanted.allow_nonfree && NONFREE.contains(&component) {
                Some("allownonfree")
            } else if is_asked(wanted) && !wanted.allow_unsupported && UNSUPPORTED.contains(&component) {
                Some("allowunsupported")
            } else {
                None
            };
            match refused {
                None => permitted.push(at),
                Some(parameter) => {
                    let why = format!(
                        "it is in the part `{component}` of the distribution; `{parameter} => true` allows that"
                    );
                    self.failures[at] = Some(failed(wanted, why));
                }
            }
        }
        Ok(permitted)
    }

    /// Makes them together; without those who are to blame if that fails.
    async fn make(&mut self, mut rest: Vec<usize>) -> Result<(), Failure> {
        while !rest.is_empty() {
            let ended = self.transaction(&rest).await?;
            if ended.is_success || self.can_be_helped(&ended).await? {
                if ended.is_success {
                    return Ok(());
                }
                continue;
            }
            // Others may have been brought into their state all the same.
            let database = database().await?;
            let names: Vec<&str> = rest.iter().map(|at| self.wanted[*at].name.as_str()).collect();
            let blamed = blame::blamed(&ended, &names);
            let before = rest.len();
            let mut left = Vec::new();
            for (at, blamed) in rest.into_iter().zip(blamed) {
                let wanted = &self.wanted[at];
                match blamed {
                    Some(why) => self.failures[at] = Some(failed(wanted, why)),
                    None if is_right(&installed(&database, &wanted.name), &wanted.state)
                        && wanted.state != PackageState::Newest => {}
                    None => left.push(at),
                }
            }
            rest = left;
            if rest.len() < before {
                continue;
            }
            if let [one] = rest[..] {
                self.failures[one] = Some(failed(&self.wanted[one], blame::said(&ended)));
                return Ok(());
            }
            for one in std::mem::take(&mut rest) {
                Box::pin(self.make(vec![one])).await?;
            }
        }
        Ok(())
    }

    /// Whether something could be done about what went wrong, so that it can be tried again.
    async fn can_be_helped(&mut self, ended: &Ended) -> Result<bool, Failure> {
        if !self.mended && blame::was_interrupted(ended) {
            self.mended = true;
            let message = "dpkg was interrupted before; what it had begun is brought to its end";
            self.apply.log(Level::Warning, message);
            let arguments = ["--configure", "-a", "--force-confdef", "--force-confold"];
            locked(
                "dpkg",
                &arguments,
                "bring to its end what dpkg had begun",
                self.apply,
            )
            .await?;
            return Ok(true);
        }
        if !self.refreshed && blame::may_be_outdated(ended) {
            self.refreshed = true;
            return refresh(self.apply).await;
        }
        Ok(false)
    }

    async fn transaction(&self, packages: &[usize]) -> Result<Ended, Failure> {
        let packages: Vec<&WantedPackage> = packages.iter().map(|at| &self.wanted[*at]).collect();
        let any = |holds: fn(&WantedPackage) -> bool| packages.iter().any(|wanted| holds(wanted));
        let mut arguments: Vec<&str> = OPTIONS.to_vec();
        let is_removal = packages
            .first()
            .is_some_and(|wanted| wanted.state == PackageState::Uninstalled);
        if any(|wanted| wanted.allow_downgrade && matches!(wanted.state, PackageState::Version(_))) {
            arguments.push("--allow-downgrades");
        }
        if any(|wanted| wanted.allow_untrusted) {
            arguments.push("--allow-unauthenticated");
        }
        if any(|wanted| wanted.hold.is_some()) {
            arguments.push("--allow-change-held-packages");
        }
        let attempted = match is_removal {
            true => {
                arguments.push("remove");
                "remove packages"
            }
            false => {
                arguments.extend(["--no-remove", "install"]);
                "install packages"
            }
        };
        arguments.push("--");
        let names: Vec<String> = packages
            .iter()
            .map(|wanted| match &wanted.state {
                PackageState::Version(version) => format!("{}={version}", wanted.name),
                PackageState::Installed | PackageState::Uninstalled | PackageState::Newest => {
                    wanted.name.clone()
                }
            })
            .collect();
        arguments.extend(names.iter().map(String::as_str));
        locked("apt-get", &arguments, attempted, self.apply).await
    }
}

fn failed(wanted: &WantedPackage, why: impl Into<String>) -> Failure {
    let attempted = match wanted.state {
        PackageState::Uninstalled => "remove",
        PackageState::Newest => "bring to its newest version",
        PackageState::Installed | PackageState::Version(_) => "install",
    };
    let target = match &wanted.state {
        PackageState::Version(version) => format!("{} in the version {version}", wanted.name),
        PackageState::Installed | PackageState::Uninstalled | PackageState::Newest => wanted.name.clone(),
    };
    Failure::new(attempted).on(target).because(why.into())
}

/// Fetches the lists of what can be had, unless that was done just now. Answers whether they may be newer now.
pub(crate) async fn refresh(apply: &Apply<'_>) -> Result<bool, Failure> {
    {
        let refreshed = REFRESHED.lock().unwrap_or_else(PoisonError::into_inner);
        if refreshed.is_some_and(|at| at.elapsed() < FRESH) {
            return Ok(false);
        }
    }
    let ended = locked("apt-get", &["-q", "update"], "fetch the lists of packages", apply).await?;
    if !ended.is_success {
        apply.log(
            Level::Warning,
            format!(
                "not all lists of packages could be fetched: {}",
                blame::said(&ended)
            ),
        );
    }
    *REFRESHED.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    Ok(true)
}

/// Fetches the lists of one source, which a file describes.
pub(crate) async fn refresh_source(source: &Path, apply: &Apply<'_>) -> Result<(), Failure> {
    let attempted = "fetch the lists of packages of";
    let source_list = format!("Dir::Etc::sourcelist={}", source.display());
    let arguments = [
        "-q",
        "-o",
        &source_list,
        "-o",
        "Dir::Etc::sourceparts=-",
        "-o",
        "APT::Get::List-Cleanup=0",
        // Without it a source that cannot be reached would count as one that has nothing new.
        "-o",
        "APT::Update::Error-Mode=any",
        "update",
    ];
    let ended = locked("apt-get", &arguments, attempted, apply).await?;
    match ended.is_success {
        true => Ok(()),
        false => Err(Failure::new(attempted)
            .on(source.display())
            .because(blame::said(&ended))),
    }
}

/// Runs a command that changes packages. While somebody else does, it waits, and names who that is.
pub(crate) async fn locked(
    program: &str,
    arguments: &[&str],
    attempted: &'static str,
    apply: &Apply<'_>,
) -> Result<Ended, Failure> {
    let mut is_told = false;
    loop {
        let ended = run(program, arguments, attempted, apply).await?;
        let Some(holder) = blame::holder_of_the_lock(&ended).filter(|_| !ended.is_success) else {
            return Ok(ended);
        };
        if !std::mem::replace(&mut is_told, true) {
            apply.log(
                Level::Warning,
                format!("{holder} changes packages just now; waits"),
            );
        }
        tokio::select! {
            () = tokio::time::sleep(UNTIL_NEXT_TRY) => {}
            () = apply.cancellation().cancelled() => {}
        }
    }
}

/// The newest version of a package that can be had, and from which part of the distribution.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Candidate {
    version: String,
    component: String,
}

/// What could be installed of each name; nothing of a name that is not known.
async fn candidates(names: &[&str], apply: &Apply<'_>) -> Result<HashMap<String, Candidate>, Failure> {
    if names.is_empty() {
        return Ok(HashMap::new());
    }
    let attempted = "ask which versions there are";
    let arguments: Vec<&str> = ["policy", "--"].iter().chain(names).copied().collect();
    let ended = run("apt-cache", &arguments, attempted, apply).await?;
    match ended.is_success {
        true => Ok(read_policy(&ended.stdout)),
        false => Err(Failure::new(attempted).because(blame::said(&ended))),
    }
}

/// Reads what `apt-cache policy` prints.
fn read_policy(text: &str) -> HashMap<String, Candidate> {
    let mut candidates: HashMap<String, Candidate> = HashMap::new();
    let (mut name, mut version, mut is_of_candidate) = (None, "", false);
    for line in text.lines() {
        if let Some(package) = line.strip_suffix(':').filter(|line| !line.starts_with(' ')) {
            (name, version, is_of_candidate) = (Some(package), "", false);
        } else if let Some(candidate) = line.strip_prefix("  Candidate: ") {
            version = candidate.trim();
            if let Some(name) = name.filter(|_| version != "(none)") {
                let (version, component) = (version.to_owned(), String::new());
                candidates.insert(name.to_owned(), Candidate { version, component });
            }
        } else if line.starts_with(" *** ") || (line.starts_with("     ") && !line.starts_with("      ")) {
            let shown = line.get(5..).and_then(|rest| rest.split(' ').next());
            is_of_candidate = shown == Some(version);
        } else if is_of_candidate && let Some(suite) = line.split_whitespace().nth(2) {
            let component = suite
                .rsplit('/')
                .next()
                .filter(|_| suite.contains('/'))
                .unwrap_or_default();
            if let Some(candidate) = name.and_then(|name| candidates.get_mut(name))
                && candidate.component.is_empty()
            {
                component.clone_into(&mut candidate.component);
            }
        }
    }
    candidates
}

async fn database() -> Result<Arc<Database>, Failure> {
    blocking("read which packages there are", || {
        Database::read().attempting("read which packages there are in", STATUS)
    })
    .await
}

async fn blocking<T: Send + 'static>(
    attempted: &'static str,
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let result = tokio::task::spawn_blocking(work).await;
    result.unwrap_or_else(|ended| Err(Failure::new(attempted).because(ended)))
}

/// What the database says of a package.
fn installed(database: &Database, name: &str) -> FoundPackage {
    let Some(entered) = database.package(name) else {
        return FoundPackage::default();
    };
    FoundPackage {
        version: (entered.status == Status::Installed).then(|| entered.version.to_string()),
        broken: match &entered.status {
            Status::Between(state) => Some(state.to_string()),
            Status::Installed | Status::Absent => None,
        },
        newest: None,
        held: entered.held,
    }
}

/// Whether a package is in its state, as far as what is installed tells.
fn is_right(found: &FoundPackage, state: &PackageState) -> bool {
    match state {
        PackageState::Installed | PackageState::Newest => found.version.is_some(),
        PackageState::Uninstalled => found.version.is_none() && found.broken.is_none(),
        PackageState::Version(version) => found.version.as_ref() == Some(version),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_are_read_with_the_part_that_they_are_in() {
        let text = "\
hello:
  Installed: 1.0
  Candidate: 2.10-3
  Version table:
     2.10-3 500
        500 http://deb.example/debian bookworm/main amd64 Packages
 *** 1.0 100
        100 /var/lib/dpkg/status
firmware:
  Installed: (none)
  Candidate: 7
  Version table:
     7 500
        500 http://deb.example/debian bookworm/non-free-firmware amd64 Packages
flat:
  Installed: (none)
  Candidate: 1
  Version table:
     1 500
        500 file:/repo ./ Packages
virtual:
  Installed: (none)
  Candidate: (none)
  Version table:
";
        let found = read_policy(text);
        let of = |name: &str| {
            found
                .get(name)
                .map(|found| (found.version.as_str(), found.component.as_str()))
        };
        assert_eq!(of("hello"), Some(("2.10-3", "main")));
        assert_eq!(of("firmware"), Some(("7", "non-free-firmware")));
        assert_eq!(of("flat"), Some(("1", "")));
        assert_eq!(of("virtual"), None);
    }
}
