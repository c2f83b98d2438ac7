//! Debian's packages: what is installed is read from the files of dpkg, what could be is asked of `apt-cache`, and changes are made by `apt-get`.
//!
//! `apt-get` ends with the same status whatever went wrong, so whom to blame is read from what it says. Nothing is asked: questions about configuration get their default answers, and files of configuration that were
//! edited stay. Nothing else is removed so that something can be installed.

mod age;
mod blame;
mod database;
mod version;

use std::cmp::Ordering;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use setpoint_engine::{Apply, Attempting, Failure, Handle, Level, Watch, async_trait};
use setpoint_host::files::{AbsolutePath, Directory, Entry};
use tokio::time::Instant;

use super::change::{Helped, Transactions, change, failed};
use super::command::{Ended, run};
use super::{FoundPackage, PackageManager, PackageState, WantedPackage, directories_marked, watches};
use crate::turns::Turn;
pub(crate) use database::STATUS;
use database::{Database, Status};

/// The packages of this machine.
pub(crate) struct Apt;

impl Apt {
    /// Whether this machine's packages are those of dpkg: it knows of some.
    pub(crate) fn is_here() -> bool {
        Path::new(STATUS).metadata().is_ok_and(|list| list.len() > 0)
    }
}

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
        let mut watches = watches(paths.into_iter().flatten().map(str::to_owned));
        watches.extend(newest.then(age::watch));
        watches
    }

    async fn look(&self, wanted: &[WantedPackage], apply: &Apply<'_>) -> Result<Vec<FoundPackage>, Failure> {
        let asked = wanted
            .iter()
            .filter(|wanted| wanted.state == PackageState::Newest);
        let names: Vec<&str> = asked.map(|wanted| wanted.name.as_str()).collect();
        if !names.is_empty() && apply.may_repair() {
            age::refresh_if_old(apply).await?;
        }
        let database = database().await?;
        let mut names = names;
        if apply.is_plan() {
            // A run would fail to install one that no list has.
            let is_new = |wanted: &&WantedPackage| {
                wanted.state == PackageState::Installed
                    && installed(&database, &wanted.name).version.is_none()
            };
            names.extend(wanted.iter().filter(is_new).map(|wanted| wanted.name.as_str()));
        }
        let candidates = candidates(&names, apply).await?;
        let missing: Vec<&str> = names
            .iter()
            .copied()
            .filter(|name| !candidates.contains_key(*name))
            .collect();
        let unknown = match apply.is_plan() {
            true => unknown(&missing, apply).await?,
            false => Vec::new(),
        };
        let found = wanted.iter().map(|wanted| {
            let mut found = installed(&database, &wanted.name);
            found.is_unknown = wanted.state == PackageState::Installed && unknown.contains(&wanted.name);
            let candidate = candidates.get(wanted.name.as_str());
            let candidate = candidate.filter(|_| wanted.state == PackageState::Newest);
            found.newest = candidate.map(|candidate| candidate.version.clone());
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
        let forbidden = forbidden(wanted, apply).await?;
        change(self, wanted, forbidden, apply).await
    }

    async fn hold(&self, name: &str, hold: bool, apply: &Apply<'_>) -> Result<(), Failure> {
        let (verb, attempted) = match hold {
            true => ("hold", "hold"),
            false => ("unhold", "hold no longer"),
        };
        let ended = locked("apt-mark", &[verb, name], attempted, apply).await?;
        self.checked(ended, Failure::new(attempted).on(name)).map(drop)
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
        let files = list.split(|byte| *byte == b'\n').map(<[u8]>::to_vec);
        let is_path = |file: &Vec<u8>| file.starts_with(b"/") && file != b"/.";
        Ok(directories_marked(files.filter(is_path)))
    }
}

/// Whom nobody has allowed what they come from, and why not.
async fn forbidden(wanted: &[WantedPackage], apply: &Apply<'_>) -> Result<Vec<Option<Failure>>, Failure> {
    let is_asked = |wanted: &WantedPackage| wanted.state != PackageState::Uninstalled;
    let asked = wanted.iter().filter(|wanted| is_asked(wanted));
    let names: Vec<&str> = asked.map(|wanted| wanted.name.as_str()).collect();
    let candidates = candidates(&names, apply).await?;
    let is_without = |name: &&str| !candidates.contains_key(*name);
    let without: Vec<&str> = names.iter().copied().filter(is_without).collect();
    let providers = providers(&without, apply).await?;
    let refused = wanted.iter().map(|wanted| {
        if let Some(providers) = providers.get(&wanted.name) {
            let names = providers.join(", ");
            let why = format!("it is a virtual package; name one of those that provide it: {names}");
            return Some(failed(wanted, why));
        }
        let component = candidates
            .get(wanted.name.as_str())
            .map_or("", |found| &found.component);
        let parameter = if is_asked(wanted) && !wanted.allow_nonfree && NONFREE.contains(&component) {
            "allownonfree"
        } else if is_asked(wanted) && !wanted.allow_unsupported && UNSUPPORTED.contains(&component) {
            "allowunsupported"
        } else {
            return None;
        };
        let why =
            format!("it is in the part `{component}` of the distribution; `{parameter} => true` allows that");
        Some(failed(wanted, why))
    });
    Ok(refused.collect())
}

#[async_trait]
impl Transactions for Apt {
    const PROGRAM: &'static str = "apt-get";

    async fn transaction(&self, packages: &[&WantedPackage], apply: &Apply<'_>) -> Result<Ended, Failure> {
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
        let names: Vec<String> = packages.iter().map(|wanted| wanted.with_version('=')).collect();
        arguments.extend(names.iter().map(String::as_str));
        // Only these may change although they are held: an option of `apt-get` would hold for all that the transaction changes.
        let database = database().await?;
        let is_held = |wanted: &&&WantedPackage| {
            wanted.hold.is_some() && database.package(&wanted.name).is_some_and(|entered| entered.held)
        };
        let held: Vec<&&WantedPackage> = packages.iter().filter(is_held).collect();
        for wanted in &held {
            self.hold(&wanted.name, false, apply).await?;
        }
        let ended = locked("apt-get", &arguments, attempted, apply).await;
        for wanted in held {
            if wanted.hold == Some(true) && !is_removal {
                self.hold(&wanted.name, true, apply).await?;
            }
        }
        ended
    }

    async fn installed(
        &self,
        wanted: &[&WantedPackage],
        _: &Apply<'_>,
    ) -> Result<Vec<FoundPackage>, Failure> {
        let database = database().await?;
        let found = wanted.iter().map(|wanted| installed(&database, &wanted.name));
        Ok(found.collect())
    }

    fn blamed(&self, ended: &Ended, names: &[&str]) -> Vec<Option<String>> {
        blame::blamed(ended, names)
    }

    fn said(&self, ended: &Ended) -> String {
        blame::said(ended)
    }

    async fn help(&self, ended: &Ended, helped: &mut Helped, apply: &Apply<'_>) -> Result<bool, Failure> {
        if !helped.mended && blame::was_interrupted(ended) {
            helped.mended = true;
            let message = "dpkg was interrupted before; what it had begun is brought to its end";
            apply.log(Level::Warning, message);
            let arguments = ["--configure", "-a", "--force-confdef", "--force-confold"];
            locked("dpkg", &arguments, "bring to its end what dpkg had begun", apply).await?;
            return Ok(true);
        }
        if !helped.refreshed && blame::may_be_outdated(ended) {
            helped.refreshed = true;
            return refresh(apply).await;
        }
        Ok(false)
    }
}

/// Fetches the lists of what can be had, unless that was done just now. Answers whether they may be newer now.
async fn refresh(apply: &Apply<'_>) -> Result<bool, Failure> {
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
    Apt.checked(ended, Failure::new(attempted).on(source.display()))
        .map(drop)
}

/// Runs a command that changes packages. While somebody else does, it waits, and names who that is.
pub(crate) async fn locked(
    program: &str,
    arguments: &[&str],
    attempted: &'static str,
    apply: &Apply<'_>,
) -> Result<Ended, Failure> {
    let _turn = Turn::at_packages(apply).await?;
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

/// The names for which no list has a package or a provider. None if there are no lists, because a run fetches them first.
async fn unknown(names: &[&str], apply: &Apply<'_>) -> Result<Vec<String>, Failure> {
    // With an architecture, apt writes the name in another form.
    let names: Vec<&str> = names.iter().copied().filter(|name| !name.contains(':')).collect();
    if names.is_empty() || !has_lists().await? {
        return Ok(Vec::new());
    }
    let providers = providers(&names, apply).await?;
    let unknown = names.into_iter().filter(|name| !providers.contains_key(*name));
    Ok(unknown.map(str::to_owned).collect())
}

/// Whether there are lists of packages.
async fn has_lists() -> Result<bool, Failure> {
    blocking("look for lists of packages", || {
        let attempted = "look for lists of packages in";
        let directory = AbsolutePath::new(LISTS).attempting(attempted, LISTS)?;
        let listed = match Directory::open(&directory) {
            Err(error) if error.is_not_found() => return Ok(false),
            opened => opened.attempting(attempted, LISTS)?.list(),
        };
        let listed = listed.attempting(attempted, LISTS)?;
        Ok(listed
            .iter()
            .any(|entry| entry.name.to_string_lossy().contains("_Packages")))
    })
    .await
}

/// The packages that provide each of these virtual packages. Unknown names are not in it.
async fn providers(names: &[&str], apply: &Apply<'_>) -> Result<HashMap<String, Vec<String>>, Failure> {
    if names.is_empty() {
        return Ok(HashMap::new());
    }
    let attempted = "ask what provides a package";
    let arguments: Vec<&str> = ["showpkg", "--"].iter().chain(names).copied().collect();
    let ended = run("apt-cache", &arguments, attempted, apply).await?;
    match ended.is_success {
        true => Ok(read_providers(&ended.stdout)),
        false => Err(Failure::new(attempted).because(blame::said(&ended))),
    }
}

/// Reads what `apt-cache showpkg` prints.
fn read_providers(text: &str) -> HashMap<String, Vec<String>> {
    let mut providers: HashMap<String, Vec<String>> = HashMap::new();
    let (mut package, mut is_list) = ("", false);
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("Package: ") {
            (package, is_list) = (name.trim(), false);
        } else if line.starts_with("Reverse Provides:") {
            is_list = true;
        } else if let Some(provider) = line.split(' ').next().filter(|name| is_list && !name.is_empty()) {
            let found = providers.entry(package.to_owned()).or_default();
            if !found.iter().any(|name| name == provider) {
                found.push(provider.to_owned());
            }
        }
    }
    providers
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
        is_unknown: false,
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

    #[test]
    fn the_providers_of_virtual_packages_are_read() {
        let text = "\
Package: mail
Versions: 

Reverse Depends: 
  cron,mail
Dependencies: 
Provides: 
Reverse Provides: 
postfix 3.7 (= )
exim 4.9 (= )
exim 4.8 (= )
Package: hello
Versions: 
2.10 (/lists/x)
Reverse Depends: 
Dependencies: 
2.10 - libc (0 (null)) 
Provides: 
2.10 - 
Reverse Provides: 
";
        let found = read_providers(text);
        assert_eq!(found["mail"], ["postfix", "exim"]);
        assert_eq!(found.len(), 1);
    }
}
