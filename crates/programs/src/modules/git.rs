//! Calls of the `git` program, which knows the user's credentials and proxies.
//!
//! It has no terminal and asks nobody: what it would need to ask for makes it fail. It ends when its time is over, and with us.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Duration;

use setpoint_host::processes::{Command, Environment, Processes, RunError, Stop};
use tokio::runtime::Runtime;

use super::Problem;
use super::address::Address;

/// Variables that would turn git's attention to another repository, as a hook of one has them.
const OF_A_REPOSITORY: [&str; 17] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_NAMESPACE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];

/// Configuration of every call: no program of a repository or template runs.
const CONFIGURATION: [&str; 4] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "advice.detachedHead=false",
    "init.defaultRefFormat=files",
];

/// Calls `git`.
pub(super) struct Git {
    runtime: Runtime,
    processes: Processes,
    search_path: OsString,
    patience: Duration,
}

impl Git {
    /// Looks for it along `search_path`. No call may take longer than `patience`.
    pub(super) fn new(search_path: OsString, patience: Duration) -> std::io::Result<Git> {
        Ok(Git {
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?,
            processes: Processes::new(search_path.clone()),
            search_path,
            patience,
        })
    }

    /// Clones a repository with its submodules into a directory that is not there yet.
    pub(super) fn clone_into(&self, address: &Address, directory: &Path) -> Result<(), Problem> {
        let words = ["clone", "--quiet", "--no-recurse-submodules", "--"];
        let mut arguments: Vec<&OsStr> = words.iter().map(OsStr::new).collect();
        arguments.extend([OsStr::new(&address.url), directory.as_os_str()]);
        self.call(address, None, &arguments)?;
        self.submodules(address, directory)
    }

    /// Makes a fresh clone show this commit, with its submodules and nothing else.
    pub(super) fn check_out(&self, address: &Address, directory: &Path, commit: &str) -> Result<(), Problem> {
        self.in_directory(address, directory, &["checkout", "--quiet", "--detach", commit])?;
        self.submodules(address, directory)?;
        self.in_directory(address, directory, &["clean", "-ffdxq"])
            .map(drop)
    }

    /// Whether a fresh clone has this commit.
    pub(super) fn has_commit(&self, address: &Address, directory: &Path, commit: &str) -> bool {
        let commit = format!("{commit}^{{commit}}");
        self.in_directory(address, directory, &["cat-file", "-e", &commit])
            .is_ok()
    }

    /// The newest commit of a repository; none if it has no commits.
    pub(super) fn newest(&self, address: &Address) -> Result<Option<String>, Problem> {
        let arguments = ["ls-remote", "--", &address.url, "HEAD"];
        let arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
        let output = self.call(address, None, &arguments)?;
        Ok(output.split_whitespace().next().map(str::to_owned))
    }

    fn submodules(&self, address: &Address, directory: &Path) -> Result<(), Problem> {
        if !directory.join(".gitmodules").exists() {
            return Ok(());
        }
        let arguments = [
            "submodule",
            "--quiet",
            "update",
            "--init",
            "--recursive",
            "--force",
        ];
        self.in_directory(address, directory, &arguments).map(drop)
    }

    fn in_directory(
        &self,
        address: &Address,
        directory: &Path,
        arguments: &[&str],
    ) -> Result<String, Problem> {
        let arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
        self.call(address, Some(directory), &arguments)
    }

    /// What it prints.
    fn call(
        &self,
        address: &Address,
        directory: Option<&Path>,
        arguments: &[&OsStr],
    ) -> Result<String, Problem> {
        let shown = &address.shown;
        let failed = || Problem::new(format!("the module `{shown}` cannot be fetched"));
        let configured = CONFIGURATION.iter().flat_map(|setting| ["-c", setting]);
        let all = configured.map(OsStr::new).chain(arguments.iter().copied());
        let command = Command::new("git", all)
            .directory(directory.map(Path::to_path_buf))
            .environment(Environment::Exactly(self.environment(address)));
        let stop = Stop::default();
        let finished = self.runtime.block_on(async {
            let run = self.processes.run(&command, &stop);
            tokio::time::timeout(self.patience, run).await
        });
        let finished = match finished {
            Err(_) => {
                let seconds = self.patience.as_secs_f64();
                let problem = failed().because(format!("git did not end within {seconds} s"));
                return Err(problem.help("`--download-timeout` says how many seconds it may take"));
            }
            Ok(Err(error @ RunError::Program(_))) => {
                let problem = failed().because(error);
                return Err(problem.help("modules are fetched by `git`: install it"));
            }
            Ok(Err(error)) => return Err(failed().because(format!("failed to {error}"))),
            Ok(Ok(finished)) => finished,
        };
        if finished.exit.is_success() {
            return Ok(String::from_utf8_lossy(&finished.output.stdout()).into_owned());
        }
        let said = String::from_utf8_lossy(&finished.output.stderr()).into_owned();
        let said = address.without_password(&reason(&said));
        let problem = match said.is_empty() {
            true => failed().because(format!("git ended with {}", finished.exit)),
            false => failed().because(format!("git says: {said}")),
        };
        let asked = [
            "could not read Username",
            "could not read Password",
            "Permission denied",
        ];
        Err(match asked.iter().any(|asked| said.contains(asked)) {
            true => problem.help("git asks nobody here: let a credential helper or an SSH agent answer"),
            false => problem,
        })
    }

    fn environment(&self, address: &Address) -> BTreeMap<OsString, OsString> {
        let mut environment: BTreeMap<OsString, OsString> = std::env::vars_os()
            .filter(|(name, _)| !OF_A_REPOSITORY.iter().any(|other| name == other))
            .collect();
        let own = [
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_ASKPASS", ""),
            ("SSH_ASKPASS", ""),
            ("SSH_ASKPASS_REQUIRE", "never"),
            ("GIT_ALLOW_PROTOCOL", address.transports()),
            ("LC_ALL", "C"),
        ];
        environment.extend(own.map(|(name, value)| (name.into(), value.into())));
        environment.insert("PATH".into(), self.search_path.clone());
        environment
    }
}

/// The line of git's words that says why, with the one beside it where that knows more.
fn reason(said: &str) -> String {
    let lines: Vec<&str> = said
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let is_reason = |line: &&str| ["fatal:", "error:"].iter().any(|head| line.starts_with(head));
    let Some(at) = lines.iter().rposition(is_reason) else {
        return lines.last().copied().unwrap_or_default().to_owned();
    };
    let line = lines[at]
        .split_once(':')
        .map_or(lines[at], |(_, rest)| rest.trim());
    match lines[..at].last() {
        Some(before) if line.starts_with("Could not read from remote") => format!("{before}: {line}"),
        _ if line.ends_with(':') => format!("{line} {}", lines.get(at + 1).copied().unwrap_or_default()),
        _ => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_the_line_that_says_why() {
        let ssh = "ssh: connect to host h port 22: Connection refused\n\
                   fatal: Could not read from remote repository.\n\n\
                   Please make sure you have the correct access rights\nand the repository exists.\n";
        let wanted =
            "ssh: connect to host h port 22: Connection refused: Could not read from remote repository.";
        assert_eq!(reason(ssh), wanted);
        assert_eq!(reason("warning: x\nfatal: no\n"), "no");
        assert_eq!(
            reason("fatal: unable to connect to h:\nh[0: ::1]: refused\n"),
            "unable to connect to h: h[0: ::1]: refused"
        );
        assert_eq!(reason("something else\n"), "something else");
        assert_eq!(reason(""), "");
    }
}
