//! Fetching: what a program imports and is missing, then what that imports, and so on.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use setpoint_diagnostics::{Diagnostic, Diagnostics, visible};
use setpoint_host::files::AbsolutePath;
use setpoint_host::state::StateDirectory;
use setpoint_mcl::RemoteImport;

use super::Problem;
use super::address::Address;
use super::git::Git;
use super::lock_file::{LockFile, LockedModule, Writing, key};
use super::repository::{ModulesDirectory, commit_of, content_hash, is_empty_or_missing};
use crate::codes;
use crate::command_path::command_path;
use crate::failure::{Failure, system_text};
use crate::input::Input;
use crate::languages::compilation::{Compilation, ProgramSource};
use crate::module_policy::Fetch;
use crate::report::{Importance, Reporter};
use setpoint_host::files::{DirectoryLock, LockHolder};

/// Modules that import modules that import modules … beyond this are refused.
const MOST_MODULES: usize = 1000;

/// How often fetching begins again because another process has changed the lock file or a module meanwhile.
const MOST_ATTEMPTS: usize = 20;

/// What fetching came to.
#[derive(Debug, Default)]
pub(super) struct Fetched {
    /// Why modules cannot be fetched, by their directories in a deploy.
    problems: BTreeMap<Option<String>, Problem>,
    /// Keeps other processes from changing the lock file until the program is compiled.
    _held: Option<DirectoryLock>,
}

/// Fetches what a program imports and is missing, and writes its lock file. What goes wrong with a module is told by
/// [`Fetched::explain`], at its import.
///
/// # Errors
/// When the lock file cannot be used, or git not be called at all.
pub(super) fn fetch_missing(
    source: &ProgramSource,
    input: &Input,
    fetch: Fetch,
    reporter: &Reporter,
) -> Result<Fetched, Failure> {
    let search_path: OsString = command_path(reporter);
    let git = Git::new(search_path, fetch.patience)
        .map_err(|error| Failure::io("prepare for calling git", &error))?;
    let mut fetcher = Fetcher {
        source,
        input,
        root: PathBuf::from(&input.root),
        global: source.options.modules_directory.as_deref(),
        lock: LockFile::of(input)?,
        fetch,
        git,
        reporter,
    };
    for _ in 0..MOST_ATTEMPTS {
        let round = fetcher.bring_all();
        if !round.problems.is_empty() {
            return Ok(Fetched {
                problems: round.problems,
                _held: None,
            });
        }
        if let Settled::Here(held) = fetcher.settle(&round)? {
            return Ok(Fetched {
                problems: BTreeMap::new(),
                _held: held,
            });
        }
    }
    let failure = Failure::wrong("the modules cannot be fetched");
    Err(failure.because("other processes keep changing them or the lock file"))
}

impl Fetched {
    /// Tells, at the imports of a compilation, why their modules were not fetched.
    pub(super) fn explain(&self, compilation: &mut Compilation) {
        let global = compilation.modules_directory.clone();
        let Some(compiled) = &mut compilation.compiled else {
            return;
        };
        let mut found = std::mem::take(&mut compilation.diagnostics).into_vec();
        for import in &compiled.remote_imports {
            let Some(problem) = self.problems.get(&key(import, global.as_deref())) else {
                continue;
            };
            let diagnostic = problem.diagnostic(import.span);
            let is_of_import = |other: &&mut Diagnostic| {
                other.code.code == codes::module_not_found().code && other.primary.span == import.span
            };
            // The error that it is missing knows which imports led there.
            match found.iter_mut().find(is_of_import) {
                Some(missing) => {
                    let related = std::mem::take(&mut missing.related);
                    *missing = Diagnostic {
                        related,
                        stage: missing.stage,
                        ..diagnostic
                    };
                }
                None => found.push(diagnostic),
            }
            compiled.program = None;
        }
        let mut diagnostics = Diagnostics::new();
        diagnostics.extend(found);
        compilation.diagnostics = diagnostics;
    }
}

/// Which version of a module is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted<'a> {
    /// The newest, if there is none.
    Any,
    /// The newest.
    Newest,
    /// The one of the lock file.
    Commit(&'a str),
}

struct Fetcher<'a> {
    source: &'a ProgramSource,
    input: &'a Input,
    root: PathBuf,
    global: Option<&'a str>,
    /// As it was read last.
    lock: Option<LockFile>,
    fetch: Fetch,
    git: Git,
    reporter: &'a Reporter,
}

/// What fetching all of a program's modules came to.
struct Round {
    imports: Vec<RemoteImport>,
    /// How each module was left, by their directories in a deploy.
    left: BTreeMap<Option<String>, Presence>,
    problems: BTreeMap<Option<String>, Problem>,
}

/// What tells a module on disk from another one that was put in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Presence {
    directory: Option<(u64, u64)>,
    commit: Option<String>,
}

impl Presence {
    fn of(place: &Path) -> Presence {
        let found = place.symlink_metadata().ok();
        Presence {
            directory: found.map(|found| (found.dev(), found.ino())),
            commit: commit_of(place),
        }
    }
}

/// Whether what was fetched is what stays.
enum Settled {
    /// It is, and the lock file says so.
    Here(Option<DirectoryLock>),
    /// Another process wants something else.
    ChangedMeanwhile,
}

impl Fetcher<'_> {
    /// Fetches what the program imports, then what that imports, and so on.
    fn bring_all(&self) -> Round {
        let mut names = self.source.clone();
        names.options.skip_types = true;
        let mut round = Round {
            imports: Vec::new(),
            left: BTreeMap::new(),
            problems: BTreeMap::new(),
        };
        loop {
            let compilation = Compilation::of(&names, self.input.clone());
            let imports = compilation.compiled.map(|compiled| compiled.remote_imports);
            round.imports = imports.unwrap_or_default();
            let mut is_complete = true;
            for import in &round.imports {
                let key = key(import, self.global);
                if round.left.contains_key(&key) || round.problems.contains_key(&key) {
                    continue;
                }
                is_complete = false;
                let brought = match round.left.len() + round.problems.len() {
                    MOST_MODULES => Err(Problem::new(format!(
                        "more than {MOST_MODULES} modules are imported"
                    ))),
                    _ => self.bring(import),
                };
                match brought {
                    Ok(left) => drop(round.left.insert(key, left)),
                    Err(problem) => drop(round.problems.insert(key, problem)),
                }
            }
            if is_complete || !round.problems.is_empty() {
                return round;
            }
        }
    }

    /// Makes the lock file say what was fetched, if nobody has changed that or the lock file since.
    fn settle(&mut self, round: &Round) -> Result<Settled, Failure> {
        let Some(lock) = &self.lock else {
            return Ok(Settled::Here(None));
        };
        if round.imports.is_empty() && !lock.is_there() {
            return Ok(Settled::Here(None));
        }
        let held = lock.hold(self.fetch.patience, |holder| self.say_waiting(holder))?;
        let now = lock.read_again()?;
        if now != *lock {
            self.lock = Some(now);
            return Ok(Settled::ChangedMeanwhile);
        }
        let modules = self.modules(&round.imports);
        let is_as_it_was_left = |import: &RemoteImport| {
            let left = round.left.get(&key(import, self.global));
            left.is_none_or(|left| *left == Presence::of(&place_of(&self.root, import)))
        };
        if !round.imports.iter().all(is_as_it_was_left) {
            return Ok(Settled::ChangedMeanwhile);
        }
        let modules = modules?;
        if self.source.modules.locked || !lock.differs_from(&modules) {
            return Ok(Settled::Here(Some(held)));
        }
        if lock.write(modules, &held)? == Writing::Interrupted {
            self.lock = Some(lock.read_again()?);
            return Ok(Settled::ChangedMeanwhile);
        }
        let path = lock.path.display().to_string();
        self.reporter
            .say(Importance::Info, format!("wrote {}", visible(&path)));
        Ok(Settled::Here(Some(held)))
    }

    /// Sees to it that a module is there, in the version that is wanted. Answers how it was left.
    fn bring(&self, import: &RemoteImport) -> Result<Presence, Problem> {
        let address = Address::of(import)?;
        let locked = self.lock.as_ref().and_then(|lock| lock.get(import, self.global));
        if self.source.modules.locked && locked.is_none() {
            let problem = Problem::new(format!("the module `{}` is not in the lock file", address.shown));
            return Err(problem.help("`setpoint modules get` without `--locked` adds it"));
        }
        let commit = locked.and_then(|locked| locked.commit.as_deref());
        let wanted = match commit {
            _ if self.fetch.update => Wanted::Newest,
            Some(commit) => Wanted::Commit(commit),
            None => Wanted::Any,
        };
        let directory = self.modules_directory(import)?;
        let directory = ModulesDirectory::lock(&directory, self.fetch.patience, |holder| {
            self.say_waiting(holder);
        })?;
        let place = directory.place(&import.module)?;
        let module = Module {
            address,
            place,
            locked,
        };
        if is_empty_or_missing(&module.place) {
            self.bring_first(&directory, &module, wanted)?;
        } else {
            self.bring_other(&directory, &module, wanted)?;
        }
        Ok(Presence::of(&module.place))
    }

    fn bring_first(
        &self,
        directory: &ModulesDirectory,
        module: &Module<'_>,
        wanted: Wanted<'_>,
    ) -> Result<(), Problem> {
        let arrival = directory.arrival()?;
        let arrived = arrival.path().join("module");
        self.say(format!("fetching `{}`", module.address.shown));
        self.git.clone_into(&module.address, &arrived)?;
        if let Wanted::Commit(commit) = wanted {
            self.check_out(module, &arrived, commit)?;
        }
        is_module(&arrived, module)?;
        directory.put(&arrived, &module.place)
    }

    /// Replaces a module that is there, if another version is wanted. What somebody has changed in it is not thrown away.
    fn bring_other(
        &self,
        directory: &ModulesDirectory,
        module: &Module<'_>,
        wanted: Wanted<'_>,
    ) -> Result<(), Problem> {
        let Module { address, place, .. } = module;
        let shown = &address.shown;
        is_module(place, module)?;
        let Some(present) = commit_of(place) else {
            if wanted != Wanted::Any {
                self.reporter.warning(format!(
                    "`{}` is left as it is, because it is not a repository",
                    place.display()
                ));
            }
            return Ok(());
        };
        let is_wanted = match wanted {
            Wanted::Any => true,
            Wanted::Commit(commit) => commit == present,
            Wanted::Newest => self.git.newest(address)?.as_deref() == Some(&present),
        };
        if is_wanted {
            return Ok(());
        }
        let arrival = directory.arrival()?;
        let arrived = arrival.path().join("module");
        self.say(format!("fetching `{shown}`"));
        self.git.clone_into(address, &arrived)?;
        let newest = commit_of(&arrived);
        self.is_unchanged(module, &present, &arrived)?;
        let commit = match (wanted, newest.as_deref()) {
            (Wanted::Commit(commit), _) => commit,
            (_, Some(newest)) => newest,
            (_, None) => return Err(Problem::new(format!("the repository `{shown}` has no commits"))),
        };
        self.check_out(module, &arrived, commit)?;
        is_module(&arrived, module)?;
        directory.put(&arrived, place)?;
        self.say(format!(
            "`{shown}` was at {}, and is now at {}",
            short(&present),
            short(commit)
        ));
        Ok(())
    }

    fn check_out(&self, module: &Module<'_>, arrived: &Path, commit: &str) -> Result<(), Problem> {
        let shown = &module.address.shown;
        if !self.git.has_commit(&module.address, arrived, commit) {
            let problem = Problem::new(format!("`{shown}` no longer has the commit {}", short(commit)));
            return Err(problem.help("`setpoint modules update` takes the newest one into the lock file"));
        }
        self.git.check_out(&module.address, arrived, commit)
    }

    /// Whether a module that is there holds what its repository holds at that commit, and nothing of anybody's own.
    fn is_unchanged(&self, module: &Module<'_>, commit: &str, arrived: &Path) -> Result<(), Problem> {
        let Module {
            address,
            place,
            locked,
        } = module;
        let hash = |directory: &Path| {
            content_hash(directory).map_err(|error| {
                Problem::new(format!("the module `{}` cannot be read", directory.display()))
                    .because(system_text(&error))
            })
        };
        let present = hash(place)?;
        if locked.is_some_and(|locked| locked.sha256 == present && locked.commit.as_deref() == Some(commit)) {
            return Ok(());
        }
        let help = "keep what you need of it and remove the directory: then it is fetched anew";
        if !self.git.has_commit(address, arrived, commit) {
            let problem = Problem::new(format!(
                "the module `{}` is at a commit that `{}` does not have, {}",
                place.display(),
                address.shown,
                short(commit)
            ));
            return Err(problem.help(help));
        }
        self.git.check_out(address, arrived, commit)?;
        if hash(arrived)? == present {
            return Ok(());
        }
        let problem = Problem::new(format!(
            "files of the module `{}` were changed since it was fetched",
            place.display()
        ));
        Err(problem.help(help))
    }

    /// The modules directory of an import, absolute. A program can name only directories below its own, without links on the way.
    fn modules_directory(&self, import: &RemoteImport) -> Result<PathBuf, Problem> {
        let Some(directory) = &import.modules_directory else {
            let problem = Problem::new("there is no modules directory to which the module could be fetched");
            return Err(problem.help(
                "set `path` in the module's `metadata.yaml`, or give a directory with `--module-path`",
            ));
        };
        if Some(directory.as_str()) == self.global
            && let Some(prefix) = &self.source.modules.prefix
        {
            make_below(prefix)?;
        }
        let (base, rest) = match self
            .global
            .and_then(|global| Some((global, directory.strip_prefix(global)?)))
        {
            Some((global, rest)) => (PathBuf::from(global), rest),
            None => (self.root.clone(), directory.as_str()),
        };
        let base = match base.as_os_str().is_empty() {
            true => PathBuf::from("."),
            false => base,
        };
        let mut path = std::path::absolute(&base)
            .map_err(|error| Problem::new("the program's directory cannot be found").because(error))?;
        let missing = |path: &Path| {
            let shown = visible(directory).into_owned();
            let problem = Problem::new(format!("the modules directory `{shown}` does not exist"));
            problem.help(format!("make it: mkdir -p {}", path.join(rest).display()))
        };
        if !path.is_dir() {
            return Err(missing(&path));
        }
        let start = path.clone();
        for part in rest.split('/').filter(|part| !part.is_empty() && *part != ".") {
            path.push(part);
            let is_directory = match path.symlink_metadata() {
                Ok(found) => found.is_dir(),
                Err(_) => return Err(missing(&start)),
            };
            if part == ".." || !is_directory {
                let problem = Problem::new(format!("nothing is fetched to `{directory}`"));
                return Err(problem.because("it leads out of the program's directory"));
            }
        }
        Ok(path)
    }

    /// What the lock file is to hold.
    fn modules(&self, imports: &[RemoteImport]) -> Result<BTreeMap<String, LockedModule>, Failure> {
        let mut modules = BTreeMap::new();
        for import in imports.iter().filter(|import| import.is_there) {
            let Some(key) = key(import, self.global) else {
                continue;
            };
            if modules.contains_key(&key) {
                continue;
            }
            let place = place_of(&self.root, import);
            let sha256 = content_hash(&place)
                .map_err(|error| Failure::io(format_args!("read the module {}", place.display()), &error))?;
            let locked = LockedModule {
                url: Address::of(import).map_or_else(|_| import.import.to_string(), |address| address.shown),
                commit: commit_of(&place),
                sha256,
            };
            modules.insert(key, locked);
        }
        Ok(modules)
    }

    fn say_waiting(&self, holder: &LockHolder) {
        let text = format!("waiting for {holder}, which is fetching modules");
        self.reporter.say(Importance::Notice, text);
    }

    fn say(&self, text: String) {
        self.reporter.say(Importance::Info, visible(&text).into_owned());
    }
}

/// A module that is being fetched.
struct Module<'a> {
    address: Address,
    place: PathBuf,
    locked: Option<&'a LockedModule>,
}

/// The directory of a module, below the program's root where it is not absolute.
pub(super) fn place_of(root: &Path, import: &RemoteImport) -> PathBuf {
    let directory = import.modules_directory.as_deref().unwrap_or_default();
    root.join(format!("{directory}{}", import.module))
}

/// The first letters of a commit, as people know it.
pub(super) fn short(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}

fn is_module(directory: &Path, module: &Module<'_>) -> Result<(), Problem> {
    let metadata = directory.join("metadata.yaml");
    if metadata.symlink_metadata().is_ok() {
        return Ok(());
    }
    let problem = match directory == module.place {
        true => Problem::new(format!("`{}` is there, but is not a module", directory.display())),
        false => Problem::new(format!(
            "the repository `{}` is not a module",
            module.address.shown
        )),
    };
    Err(problem.because("it has no `metadata.yaml` at its top"))
}

/// Makes the modules directory of a prefix.
fn make_below(prefix: &Path) -> Result<(), Problem> {
    let failed = || {
        Problem::new(format!(
            "no modules directory can be made below `{}`",
            prefix.display()
        ))
    };
    let path = AbsolutePath::new(prefix).map_err(|error| failed().because(error))?;
    let prefix = StateDirectory::open(&path).map_err(|error| failed().because(error))?;
    prefix
        .subdirectory("modules")
        .map(drop)
        .map_err(|error| failed().because(error))
}
