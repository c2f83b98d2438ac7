//! The `exec` kind: runs a command when its guards allow, and sends its output.
//!
//! The state of an `exec` is what its last successful run left in its private directory (`cache`): the output, and the time
//! that `mtimes` are compared with. How commands are made and stopped is in `command`; the long-running `watchcmd` in
//! `watching`.

mod cache;
mod command;
mod watching;

use std::collections::BTreeMap;

use setpoint_engine::{
    Apply, DriftValue, Failure, FailureReason, Identity, Level, Resource, Sends, Text, Wanted, WantedOrder,
    WantedReach, Watch, async_trait,
};
use setpoint_graph::{Invalid, MetaParameters};
use setpoint_host::files::AbsolutePath;
use setpoint_host::processes::{Capability, Exit, Finished, Limit, Signal};
use setpoint_host::watch::{Depth, Follow};

use cache::Cache;
use command::Line;

use crate::sorts::{Account, FILE, GROUP, PACKAGE_FILE, USER};

/// A command that runs when its guards allow.
///
/// Without a guard it runs once at the start, at each event of what is watched and at each notification. Guards run in every
/// mode, so they must have no effect. Of what it writes the first and the last half of `output_limit` are kept.
#[derive(Debug, Clone, Resource)]
#[resource(kind = "exec", refreshable, autoedge, action(done = "ran", would = "run"), asynchronous, sends = Sent)]
pub(crate) struct Exec {
    /// The program and its arguments, or a text for the shell. Unset: the resource's name.
    cmd: String,
    /// Arguments as they are; `cmd` is then only the program.
    args: Vec<Text>,
    /// The working directory; unset means ours.
    cwd: String,
    /// Runs `cmd` as a text of this shell.
    shell: String,
    /// The whole environment.
    env: BTreeMap<String, Text>,
    /// The signal that asks a command to stop, `SIGTERM` if unset.
    sig: String,
    /// A command that runs on; each line that it prints is an event.
    watchcmd: String,
    /// The working directory of `watchcmd`.
    watchcwd: String,
    /// The shell of `watchcmd`.
    watchshell: String,
    /// Paths that are watched.
    watchfiles: Vec<Text>,
    /// Guard: the command runs only if this one succeeds.
    ifcmd: String,
    /// The working directory of `ifcmd`.
    ifcwd: String,
    /// The shell of `ifcmd`.
    ifshell: String,
    /// Guard: the command does not run if `ifcmd` succeeds and prints exactly this, on both streams together.
    ifequals: Option<Text>,
    /// Guard: the command does not run if `ifcmd` succeeds and prints exactly this on standard output.
    ifequals_stdout: Option<Text>,
    /// Guard: the command does not run if this one succeeds.
    nifcmd: String,
    /// The working directory of `nifcmd`.
    nifcwd: String,
    /// The shell of `nifcmd`.
    nifshell: String,
    /// Guard: the command does not run if this path exists.
    creates: String,
    /// Paths: if one is newer than the last run, the command runs whatever the guards say.
    mtimes: Vec<Text>,
    /// Runs after success; its failure is a failure of the whole.
    donecmd: String,
    /// The working directory of `donecmd`.
    donecwd: String,
    /// The shell of `donecmd`.
    doneshell: String,
    /// Runs only when notified; in any other run nothing is started.
    refresh_only: bool,
    /// Who runs all the commands, by name or number, with the groups of that user. They can gain no other rights.
    user: String,
    /// The group that runs all the commands, by name or number, instead of the groups of `user`.
    group: String,
    /// The most that each command may use: `core`, `cpu`, `file_size`, `files`, `memory`, `processes`.
    ///
    /// As setrlimit(2) has them: bytes of a core dump, seconds of processor time, bytes of a written file, open files, bytes of
    /// address space, processes of the user.
    limits: BTreeMap<String, u64>,
    /// The only capabilities that the commands can have, like `CAP_NET_ADMIN`. Unset: those of the user.
    capabilities: Option<Vec<String>>,
    /// How many bytes are kept of each output stream; of more than that the first and the last half.
    #[param(default = 1 << 20)]
    output_limit: u32,
    /// Sent as `output` when a guard stopped the run and there is none from an earlier one.
    send_output: Option<Text>,
    /// Sent as `stdout` when a guard stopped the run and there is none from an earlier one.
    send_stdout: Option<Text>,
    /// Sent as `stderr` when a guard stopped the run and there is none from an earlier one.
    send_stderr: Option<Text>,
    #[name]
    name: String,
    /// What was sent last, if it is not kept on disk because something about it is secret.
    #[state]
    secret: Option<Sent>,
}

/// What it sends: the output of the last successful run, also across restarts.
#[derive(Debug, Clone, Default, PartialEq, Sends)]
struct Sent {
    /// Both streams, in the order in which the pieces came; unset if there was nothing.
    output: Option<Text>,
    /// Standard output; unset if there was none.
    stdout: Option<Text>,
    /// Standard error; unset if there was none.
    stderr: Option<Text>,
}

impl Exec {
    fn effective_command(&self) -> &str {
        if self.cmd.is_empty() {
            &self.name
        } else {
            &self.cmd
        }
    }

    /// What is run.
    fn main(&self) -> Line<'_> {
        Line {
            text: self.effective_command(),
            arguments: &self.args,
            directory: &self.cwd,
            shell: &self.shell,
        }
    }

    /// All the commands that are set, by the parameter that says them.
    fn lines(&self) -> impl Iterator<Item = (&'static str, Line<'_>)> {
        let helpers = [
            ("watchcmd", &self.watchcmd, &self.watchcwd, &self.watchshell),
            ("ifcmd", &self.ifcmd, &self.ifcwd, &self.ifshell),
            ("nifcmd", &self.nifcmd, &self.nifcwd, &self.nifshell),
            ("donecmd", &self.donecmd, &self.donecwd, &self.doneshell),
        ];
        let helpers = helpers
            .into_iter()
            .filter_map(|(parameter, text, directory, shell)| {
                Some((parameter, Exec::helper(text, directory, shell)?))
            });
        std::iter::once(("cmd", self.main())).chain(helpers)
    }

    fn helper<'a>(text: &'a str, directory: &'a str, shell: &'a str) -> Option<Line<'a>> {
        (!text.is_empty()).then_some(Line {
            text,
            arguments: &[],
            directory,
            shell,
        })
    }

    fn signal(&self) -> Signal {
        Signal::parse(&self.sig).unwrap_or(Signal::TERM)
    }
}

#[async_trait]
impl Resource for Exec {
    fn validate(&self, _: &MetaParameters, invalid: &mut Vec<Invalid>) {
        let words = self.effective_command().split_whitespace().count();
        if words == 0 {
            invalid.push(Invalid::parameter("cmd", "there is no command"));
        }
        if !self.args.is_empty() {
            if !self.shell.is_empty() {
                invalid.push(Invalid::parameter(
                    "args",
                    "a shell takes its command from `cmd` alone",
                ));
            } else if words > 1 {
                let message = "the arguments are either in `cmd` or in `args`";
                invalid.push(Invalid::parameter("args", message));
            }
        }
        for (parameter, line) in self.lines() {
            if let Some(word) = line.word_for_a_shell() {
                let program = line.text.split_whitespace().next().unwrap_or_default();
                let message =
                    format!("`{parameter}` has no shell, so `{word}` is just an argument of `{program}`");
                let shell = match parameter {
                    "cmd" => "shell".to_owned(),
                    other => other.replace("cmd", "shell"),
                };
                let help = format!("write `{shell} => \"/bin/sh\"` if a shell is meant to understand it");
                invalid.push(Invalid::warning(parameter, message).help(help));
            }
        }
        for name in self.env.keys().filter(|name| !is_variable(name)) {
            let message = format!("`{name}` is not a name of an environment variable");
            invalid.push(Invalid::parameter("env", message));
        }
        if !self.sig.is_empty()
            && let Err(error) = Signal::parse(&self.sig)
        {
            let refused = Invalid::parameter("sig", error.to_string());
            invalid.push(match error.suggestion {
                Some(suggestion) => refused.help(format!("did you mean `{suggestion}`?")),
                None => refused,
            });
        }
        for name in self.limits.keys().filter(|name| Limit::parse(name).is_none()) {
            let known: Vec<&str> = Limit::ALL.iter().map(|(known, _)| *known).collect();
            let refused = Invalid::parameter("limits", format!("there is no limit `{name}`"));
            invalid.push(refused.help(format!("the limits are {}", known.join(", "))));
        }
        for name in self.capabilities.iter().flatten() {
            if Capability::parse(name).is_none() {
                let refused = Invalid::parameter("capabilities", format!("there is no capability `{name}`"));
                let meant = format!("CAP_{}", name.to_ascii_uppercase().trim_start_matches("CAP_"));
                invalid.push(match Capability::parse(&meant) {
                    Some(_) => refused.help(format!("did you mean `{meant}`?")),
                    None => refused.help("capabilities(7) lists them"),
                });
            }
        }
        let mut absolute = |parameter, path: &[u8]| {
            if !path.starts_with(b"/") || path.contains(&0) {
                let message = format!("`{}` is not an absolute path", String::from_utf8_lossy(path));
                invalid.push(Invalid::parameter(parameter, message));
            }
        };
        for path in &self.watchfiles {
            absolute("watchfiles", path.as_bytes());
        }
        for path in &self.mtimes {
            absolute("mtimes", path.as_bytes());
        }
        if !self.creates.is_empty() {
            absolute("creates", self.creates.as_bytes());
        }
    }

    fn wanted(&self) -> Vec<Wanted> {
        let programs = self.lines().filter_map(|(_, line)| line.program());
        let mut identities: Vec<Identity> = programs
            .flat_map(|program| {
                let path = program.as_bytes();
                [PACKAGE_FILE.identity(path), FILE.identity(path)]
            })
            .collect();
        if !self.user.is_empty() {
            identities.push(Account::written(&self.user).identity(&USER));
        }
        if !self.group.is_empty() {
            identities.push(Account::written(&self.group).identity(&GROUP));
        }
        vec![Wanted {
            order: WantedOrder::FoundFirst,
            identities,
            reach: WantedReach::Each,
        }]
    }

    fn watches(&self) -> Vec<Watch> {
        let paths = self.mtimes.iter().chain(&self.watchfiles).map(Text::as_bytes);
        let creates = Some(self.creates.as_bytes()).filter(|path| !path.is_empty());
        let mut watches: Vec<Watch> = paths
            .chain(creates)
            .filter_map(|path| {
                let recursive = path.ends_with(b"/");
                Some(Watch::Path {
                    path: absolute(path)?,
                    depth: if recursive { Depth::Recursive } else { Depth::Entry },
                    follow: Follow::Target,
                })
            })
            .collect();
        watches.extend(self.watch_command());
        watches
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let (mut cache, warning) = Cache::load(apply.handle()).await?;
        if let Some(warning) = warning {
            apply.log(Level::Warning, warning);
        }
        if apply.has_sensitive() {
            cache.sent = self.secret.clone().unwrap_or_default();
        }
        if self.refresh_only && !apply.refresh_pending() {
            apply.send(self.filled(cache.sent));
            return Ok(());
        }
        let run = self.run(apply).await?;
        let allowed = match self.guards(&run, apply, &cache).await? {
            Verdict::Run(reason) => reason,
            Verdict::Skip(reason) => {
                apply.log(Level::Debug, format!("does not run: {reason}"));
                apply.send(self.filled(cache.sent));
                return Ok(());
            }
        };
        let line = DriftValue::Text(self.main().to_string());
        if !apply.drift("run", allowed, line) {
            // What was never run has nothing to send, which is not the same as having printed nothing.
            if cache.sent != Sent::default() {
                apply.send(cache.sent);
            }
            return Ok(());
        }
        let finished = run.finish(&self.main(), "run", apply).await?;
        self.expect_success(&self.main(), "run", &finished, apply)?;
        if let Some(done) = Exec::helper(&self.donecmd, &self.donecwd, &self.doneshell) {
            let finished = run.finish(&done, "run `donecmd`", apply).await?;
            self.expect_success(&done, "run `donecmd`", &finished, apply)?;
        }
        self.report_cut(&finished, apply);
        cache.sent = Sent::of(&finished);
        if apply.has_sensitive() {
            self.secret = Some(std::mem::take(&mut cache.sent));
        }
        // What is secret leaves nothing of an earlier run behind either.
        cache.store(apply.handle(), !self.mtimes.is_empty()).await?;
        if let Some(secret) = self.secret.clone().filter(|_| apply.has_sensitive()) {
            cache.sent = secret;
        }
        apply.send(cache.sent);
        Ok(())
    }
}

/// What the guards say, and why.
enum Verdict {
    Run(String),
    Skip(&'static str),
}

impl Exec {
    async fn guards(&self, run: &command::Run, apply: &Apply<'_>, cache: &Cache) -> Result<Verdict, Failure> {
        let mtimes = self
            .mtimes
            .iter()
            .filter_map(|path| absolute(path.as_bytes()))
            .collect();
        if let Some(newer) = cache::newer(mtimes, cache.last_run).await? {
            return Ok(Verdict::Run(format!("{newer} is newer than the last run")));
        }
        let mut reasons = Vec::new();
        if apply.refresh_pending() {
            reasons.push("notified");
        }
        if let Some(guard) = Exec::helper(&self.ifcmd, &self.ifcwd, &self.ifshell) {
            let finished = answer(run.finish(&guard, "run `ifcmd`", apply).await?, "run `ifcmd`")?;
            if !finished.exit.is_success() {
                return Ok(Verdict::Skip("`ifcmd` failed"));
            }
            if self.ifequals.is_some() || self.ifequals_stdout.is_some() {
                self.report_cut(&finished, apply);
            }
            let equals = |wanted: &Option<Text>, found: &[u8]| {
                wanted.as_ref().is_some_and(|wanted| wanted.as_bytes() == found)
            };
            if equals(&self.ifequals, &finished.output.combined()) {
                return Ok(Verdict::Skip("`ifcmd` printed what `ifequals` says"));
            }
            if equals(&self.ifequals_stdout, &finished.output.stdout()) {
                return Ok(Verdict::Skip("`ifcmd` printed what `ifequals_stdout` says"));
            }
            reasons.push("`ifcmd` succeeded");
        }
        if let Some(guard) = Exec::helper(&self.nifcmd, &self.nifcwd, &self.nifshell) {
            let finished = answer(run.finish(&guard, "run `nifcmd`", apply).await?, "run `nifcmd`")?;
            if finished.exit.is_success() {
                return Ok(Verdict::Skip("`nifcmd` succeeded"));
            }
            reasons.push("`nifcmd` failed");
        }
        if let Some(path) = absolute(self.creates.as_bytes()) {
            if cache::exists(path).await? {
                return Ok(Verdict::Skip("what it `creates` is there"));
            }
            reasons.push("what it `creates` is not there");
        }
        Ok(Verdict::Run(if reasons.is_empty() {
            "no guard".to_owned()
        } else {
            reasons.join(", ")
        }))
    }

    fn expect_success(
        &self,
        line: &Line<'_>,
        attempted: &'static str,
        finished: &Finished,
        apply: &Apply<'_>,
    ) -> Result<(), Failure> {
        if finished.exit.is_success() {
            return Ok(());
        }
        let secret = apply.has_sensitive();
        let output = finished.output.text();
        if !secret && !output.is_empty() {
            apply.log(Level::Error, format!("{attempted}: {output}"));
        }
        Err(line.failed(attempted, secret).because(finished.exit.to_string()))
    }

    /// Says that what is kept of an output is not all of it.
    fn report_cut(&self, finished: &Finished, apply: &Apply<'_>) {
        let (written, left_out) = finished.output.written_and_left_out();
        if left_out > 0 {
            let limit = self.output_limit;
            let message = format!(
                "the output is {written} bytes long: {left_out} of them are left out, because `output_limit` is {limit}"
            );
            apply.log(Level::Warning, message);
        }
    }

    /// What is sent when a guard stopped the run.
    fn filled(&self, cached: Sent) -> Sent {
        Sent {
            output: cached.output.or_else(|| self.send_output.clone()),
            stdout: cached.stdout.or_else(|| self.send_stdout.clone()),
            stderr: cached.stderr.or_else(|| self.send_stderr.clone()),
        }
    }
}

impl Sent {
    fn is_empty(&self) -> bool {
        self.output.is_none() && self.stdout.is_none() && self.stderr.is_none()
    }

    fn of(finished: &Finished) -> Sent {
        let text = |bytes: &[u8]| (!bytes.is_empty()).then(|| Text::new(bytes));
        Sent {
            output: text(&finished.output.combined()),
            stdout: text(&finished.output.stdout()),
            stderr: text(&finished.output.stderr()),
        }
    }
}

/// A guard that was killed gave no answer.
fn answer(finished: Finished, attempted: &'static str) -> Result<Finished, Failure> {
    match finished.exit {
        Exit::Code(_) => Ok(finished),
        Exit::Signal(_) => Err(Failure::new(attempted)
            .because(finished.exit.to_string())
            .reasoned(FailureReason::Refused)),
    }
}

fn is_variable(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// The path; none for the empty text, or one that validation refused.
fn absolute(path: &[u8]) -> Option<AbsolutePath> {
    use std::os::unix::ffi::OsStrExt;
    AbsolutePath::new(std::ffi::OsStr::from_bytes(path)).ok()
}
