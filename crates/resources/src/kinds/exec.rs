//! The `exec` kind: runs a command when its guards allow, and sends its output.
//!
//! The state of an `exec` is what its last successful run left in its private directory (`cache`): the output, and the time
//! that `mtimes` are compared with. How commands are made and stopped is in `command`, whether they run in `guards`, the long-running `watchcmd` in
//! `watching`.

mod cache;
mod command;
mod guards;
mod watching;

use std::collections::BTreeMap;

use setpoint_engine::{
    Apply, CancelCause, DriftValue, Effect, Failure, Identity, IfSet, Kind as _, Level, Resource, Sends,
    Text, Wanted, Watch, async_trait,
};
use setpoint_graph::{Doubt, Invalid, MetaParameters, Parameters};
use setpoint_host::files::AbsolutePath;
use setpoint_host::processes::{Finished, Signal};
use setpoint_host::watch::{Depth, Follow};

use cache::Cache;
use command::{CommandLine, CommandParameters, RightsParameters, Variable};
use guards::Verdict;

use crate::enclosing;
use crate::sorts::{Account, FILE, PACKAGE_FILE};

/// A command that runs when its guards allow.
///
/// Without a guard it runs once at the start, at each event of what is watched and at each notification. Guards run in every
/// mode, so they must have no effect. Of what it writes the first and the last half of `output_limit` are kept.
///
/// A process that the command leaves in the background is not waited for. Under the service it belongs to the control group of the
/// service, so it ends when the service is stopped or restarted; after a run by hand it stays.
#[derive(Debug, Clone, Resource)]
#[resource(kind = "exec", brings = anything, refreshable, autoedge, action(done = "ran", would = "run"), asynchronous, sends = Sent)]
pub(crate) struct Exec {
    /// The program and its arguments, or a text for the shell. Unset: the resource's name.
    #[param(flatten(cmd, cwd, shell))]
    main: CommandParameters,
    /// Arguments as they are; `cmd` is then only the program.
    args: Vec<Text>,
    /// The whole environment. Nothing of ours is in it; the programs themselves are looked for along our `PATH`.
    env: BTreeMap<Variable, Text>,
    /// The signal that asks a command to stop, `SIGTERM` if unset.
    sig: IfSet<Signal>,
    /// A command that runs on; each line that it prints is an event.
    #[param(flatten(cmd = "watchcmd", cwd = "watchcwd", shell = "watchshell"))]
    watch: CommandParameters,
    /// Paths that are watched.
    watchfiles: Vec<AbsolutePath>,
    /// Guard: the command runs only if this one succeeds.
    #[param(flatten(cmd = "ifcmd", cwd = "ifcwd", shell = "ifshell"))]
    only_if: CommandParameters,
    /// Guard: the command does not run if `ifcmd` succeeds and prints exactly this, on both streams together.
    ifequals: Option<Text>,
    /// Guard: the command does not run if `ifcmd` succeeds and prints exactly this on standard output.
    ifequals_stdout: Option<Text>,
    /// Guard: the command does not run if this one succeeds.
    #[param(flatten(cmd = "nifcmd", cwd = "nifcwd", shell = "nifshell"))]
    only_if_not: CommandParameters,
    /// Guard: the command does not run if this path exists.
    creates: IfSet<AbsolutePath>,
    /// Paths: if one is newer than the last run, the command runs whatever the guards say.
    mtimes: Vec<AbsolutePath>,
    /// Runs after success; its failure is a failure of the whole.
    #[param(flatten(cmd = "donecmd", cwd = "donecwd", shell = "doneshell"))]
    done: CommandParameters,
    /// Runs only when notified; in any other run nothing is started. A notification that `ifcmd` or `nifcmd` refuses is a failure: it stays pending and is tried again.
    refresh_only: bool,
    #[param(flatten(user, group, limits, capabilities))]
    rights: RightsParameters,
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
    /// What is run.
    fn main(&self) -> CommandLine<'_> {
        let text = match self.main.cmd.as_str() {
            "" => &self.name,
            text => text,
        };
        CommandLine {
            text,
            arguments: &self.args,
            directory: &self.main.cwd,
            shell: &self.main.shell,
        }
    }

    /// All the commands that are set, by the parameter that says them.
    fn lines(&self) -> impl Iterator<Item = (&'static str, CommandLine<'_>)> {
        let others = [
            ("watchcmd", &self.watch),
            ("ifcmd", &self.only_if),
            ("nifcmd", &self.only_if_not),
            ("donecmd", &self.done),
        ];
        let others = others.into_iter();
        let others = others.filter_map(|(parameter, command)| Some((parameter, command.line()?)));
        std::iter::once(("cmd", self.main())).chain(others)
    }
}

#[async_trait]
impl Resource for Exec {
    fn validate(&self, _: &MetaParameters, invalid: &mut Vec<Invalid>) {
        let words = self.main().text.split_whitespace().count();
        if words == 0 {
            invalid.push(Invalid::parameter("cmd", "there is no command"));
        }
        if !self.args.is_empty() {
            if !self.main.shell.is_empty() {
                invalid.push(Invalid::parameter(
                    "args",
                    "a shell takes its command from `cmd` alone",
                ));
            } else if words > 1 {
                let message = "the arguments are either in `cmd` or in `args`";
                invalid.push(Invalid::parameter("args", message));
            }
        }
    }

    fn doubt(name: &str, parameters: &Parameters, invalid: &mut Vec<Invalid>) {
        if !parameters.iter().all(|(_, value)| value.is_wholly_known()) {
            return;
        }
        let exec = Exec::decode(name, parameters, &mut Vec::new());
        for (parameter, line) in exec.lines() {
            if line.continues_in_the_background() {
                let message = "the command continues in the background, and ends when the service of Setpoint is stopped or restarted";
                let help = "a unit of systemd with the kind `svc` keeps a program running; `systemd-run` starts one that outlives the service";
                invalid.push(Invalid::doubt(Doubt::Meaning, parameter, message).help(help));
            }
            if let Some(word) = line.word_for_a_shell() {
                let program = line.text.split_whitespace().next().unwrap_or_default();
                let message =
                    format!("`{parameter}` has no shell, so `{word}` is just an argument of `{program}`");
                let shell = match parameter {
                    "cmd" => "shell".to_owned(),
                    other => other.replace("cmd", "shell"),
                };
                let help = format!("set `{shell}` to `/bin/sh` if a shell is meant to understand it");
                invalid.push(Invalid::doubt(Doubt::Meaning, parameter, message).help(help));
            }
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
        let RightsParameters { user, group, .. } = &self.rights;
        identities.extend(Account::identities(user, group));
        let mut wanted = vec![Wanted::first_of_each(identities)];
        let directories = self
            .lines()
            .filter_map(|(_, line)| AbsolutePath::new(line.directory).ok());
        wanted.extend(directories.map(|directory| enclosing::wanted_in(&directory)));
        wanted
    }

    fn watches(&self) -> Vec<Watch> {
        let paths = self
            .mtimes
            .iter()
            .chain(&self.watchfiles)
            .chain(self.creates.iter());
        let mut watches: Vec<Watch> = paths
            .map(|path| Watch::Path {
                path: path.clone(),
                depth: match path.names_directory() {
                    true => Depth::Recursive,
                    false => Depth::Entry,
                },
                follow: Follow::Target,
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
            Verdict::Skip(skip) => {
                if self.refresh_only {
                    skip.refuse_notification(apply)?;
                }
                skip.report(apply);
                apply.send(self.filled(cache.sent));
                return Ok(());
            }
        };
        let line = DriftValue::Text(self.main().to_string());
        if !apply.act(Effect::Run, "run", allowed, line) {
            // What was never run has nothing to send, which is not the same as having printed nothing.
            if cache.sent != Sent::default() {
                apply.send(cache.sent);
            }
            return Ok(());
        }
        let finished = match run.finish(&self.main(), "run", apply).await {
            Err(failure) if apply.refresh_pending() && is_stopping(apply) => {
                return cache::note_interruption(apply, failure).await;
            }
            finished => finished?,
        };
        if apply.refresh_pending() {
            cache::forget_interruptions(apply.handle()).await?;
        }
        self.expect_success(&self.main(), "run", &finished, apply)?;
        if let Some(done) = self.done.line() {
            let finished = run.finish(&done, "run `donecmd`", apply).await?;
            self.expect_success(&done, "run `donecmd`", &finished, apply)?;
        }
        self.report_cut(&finished, apply);
        cache.sent = Sent::of(&finished);
        if apply.has_sensitive() {
            self.secret = Some(std::mem::take(&mut cache.sent));
        }
        // What is secret leaves nothing of an earlier run behind either.
        // The command has done its work: that this cannot be kept does not make it run again.
        if let Err(failure) = cache.store(apply.handle(), !self.mtimes.is_empty()).await {
            let failure = failure.chain();
            let message = format!("ran, but its output is not kept for the next start: failed to {failure}");
            apply.log(Level::Warning, message);
        }
        if let Some(secret) = self.secret.clone().filter(|_| apply.has_sensitive()) {
            cache.sent = secret;
        }
        apply.send(cache.sent);
        Ok(())
    }
}

impl Exec {
    fn expect_success(
        &self,
        line: &CommandLine<'_>,
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
            // Of the command itself it goes without saying.
            let message = match attempted {
                "run" => output,
                guarded => format!("{guarded}: {output}"),
            };
            apply.log(Level::Error, message);
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

/// Whether the program ends.
fn is_stopping(apply: &Apply<'_>) -> bool {
    apply.cancellation().cause() == Some(CancelCause::Stopping)
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
