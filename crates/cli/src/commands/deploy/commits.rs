//! Deploys are bound to the commits of a git repository: each follows the one before.

use std::process::Command;

use setpoint_agent::deploys::Commits;
use setpoint_programs::failure::Failure;

/// The commit that the working directory shows, and the one before it, which is not compared under `force`.
pub(super) fn commits(force: bool) -> Result<Commits, Failure> {
    let git = |arguments: &[&str]| -> Result<String, Failure> {
        let ran = Command::new("git").args(arguments).output();
        let ran =
            ran.map_err(|error| Failure::io("run `git`", &error).hint("`--no-git` deploys without commits"))?;
        match ran.status.success() {
            true => Ok(String::from_utf8_lossy(&ran.stdout).trim().to_owned()),
            false => {
                let said = String::from_utf8_lossy(&ran.stderr);
                let said = said.trim().trim_start_matches("fatal: ").to_owned();
                let failure =
                    Failure::wrong("the commit that is to be deployed cannot be found").because(said);
                Err(failure.hint("a deploy is made from a git repository; `--no-git` deploys without one"))
            }
        }
    };
    let changed = git(&["status", "--porcelain"])?;
    if let Some(first) = changed.lines().next() {
        let others = changed.lines().count() - 1;
        let more = if others > 0 {
            format!(", and {others} more")
        } else {
            String::new()
        };
        let failure = Failure::wrong("the working directory has changes that are in no commit");
        let failure = failure.because(format!("{}{more}", first.trim()));
        return Err(failure.hint("commit them, or deploy with `--no-git`"));
    }
    let log = git(&["log", "-n", "2", "--format=%H"])?;
    let mut commits = log.lines().map(str::to_owned);
    Ok(Commits {
        hash: commits.next(),
        previous: commits.next().filter(|_| !force),
    })
}
