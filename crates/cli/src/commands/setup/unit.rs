//! A unit of systemd that a command writes, enables and starts.
//!
//! The text is that of a shipped unit with other command lines. The first line of what is written here has the checksum of the rest, so that a file that
//! somebody has changed since, or has written himself, is not replaced without being asked for it.

use std::fmt::Write;

use clap::Args;
use setpoint_diagnostics::visible;
use setpoint_host::bus::Buses;
use setpoint_host::files::{AbsolutePath, Committer, Entry, Replace};
use setpoint_host::systemd::{JobResult, ServiceManager, ServiceManagers, Unit as UnitState, UnitName};
use setpoint_programs::failure::Failure;
use setpoint_programs::report::Importance;
use sha2::{Digest, Sha256};

use crate::output::Output;

/// Where units of this machine's administrator are.
const DIRECTORY: &str = "/etc/systemd/system";

/// What is to be done about a unit.
#[derive(Debug, Args)]
pub(super) struct Actions {
    /// Write the unit, to /etc/systemd/system/
    #[arg(long)]
    install: bool,

    /// Let it start with the machine
    #[arg(long)]
    enable: bool,

    /// Start it now, and wait until it is ready; if it runs with another unit, restart it
    #[arg(long)]
    start: bool,

    /// With --install: take the place of a unit that was written or changed by hand
    #[arg(long, requires = "install")]
    force: bool,

    /// Change nothing: print the unit, and say what would be done
    #[arg(long)]
    noop: bool,
}

impl Actions {
    /// Whether anything is to be done or shown.
    pub(super) fn is_any(&self) -> bool {
        self.install || self.enable || self.start || self.noop
    }

    /// Whether the unit is to be written or shown.
    pub(super) fn is_about_text(&self) -> bool {
        self.install || self.noop
    }

    /// Whether nothing may be changed.
    pub(super) fn noop(&self) -> bool {
        self.noop
    }
}

/// Which program the unit starts.
#[derive(Debug, Args)]
pub(super) struct Binary {
    /// The program that the unit starts
    #[arg(long, value_name = "PATH", default_value = "/usr/bin/setpoint")]
    binary_path: String,
}

impl Binary {
    /// Its path.
    pub(super) fn path(&self) -> Result<&str, Failure> {
        let path = &self.binary_path;
        match AbsolutePath::new(path) {
            Ok(absolute) if absolute.names_directory() => {
                Err(Failure::usage(format!("`--binary-path {path}` is a directory")))
            }
            Ok(_) => Ok(path),
            Err(error) => Err(Failure::usage(format!("`--binary-path`: {error}: `{path}`"))),
        }
    }

    /// Why it cannot be started, as far as that can be seen.
    fn obstacle(&self) -> Option<Failure> {
        use std::os::unix::fs::PermissionsExt;
        let path = &self.binary_path;
        let why = match std::fs::metadata(path) {
            Ok(found) if found.is_file() && found.permissions().mode() & 0o111 != 0 => return None,
            Ok(_) => "it is not an executable file".to_owned(),
            Err(error) => setpoint_programs::failure::system_text(&error),
        };
        let failure = Failure::wrong(format!("`{path}` cannot be started")).because(why);
        let own = std::env::current_exe().ok();
        Some(failure.hint_if(own.map(|own| format!("this program is `--binary-path {}`", own.display()))))
    }
}

/// A unit with its text.
pub(super) struct Unit {
    name: UnitName,
    path: AbsolutePath,
    text: String,
}

/// A file at the path of a unit.
enum Found {
    Nothing,
    /// The text that the command writes.
    Same,
    /// A text of the command with other options, or of another version.
    Ours,
    /// Somebody else's.
    Foreign(Vec<u8>),
}

impl Unit {
    /// A shipped unit, by its name without `.service`, with other values for some of its settings. `command` is who writes it.
    pub(super) fn of(name: &str, command: &str, shipped: &str, settings: &[(&str, String)]) -> Unit {
        let mut text = String::with_capacity(shipped.len() + 256);
        for line in shipped.lines() {
            let other = settings.iter().find(|(setting, _)| {
                line.strip_prefix(setting)
                    .is_some_and(|rest| rest.starts_with('='))
            });
            let _ = match other {
                Some((setting, value)) => writeln!(text, "{setting}={value}"),
                None => writeln!(text, "{line}"),
            };
        }
        let name = UnitName::service(name).expect("it is one of ours");
        let path = format!("{DIRECTORY}/{name}");
        Unit {
            path: AbsolutePath::new(path).expect("it begins with a slash"),
            text: format!(
                "# Written by `{command}`, {CHECKSUM}{}\n{text}",
                checksum(text.as_bytes())
            ),
            name,
        }
    }

    /// Does what is to be done about it.
    pub(super) fn bring_about(
        &self,
        actions: &Actions,
        binary: &Binary,
        output: &Output,
    ) -> Result<(), Failure> {
        if !actions.is_any() {
            let failure = Failure::usage("it is not said what to do");
            return Err(failure.hint("`--install` writes the unit, `--enable` lets it start with the machine, `--start` starts it; `--noop` prints it"));
        }
        if actions.noop {
            output.print(&self.text)?;
        }
        // What cannot be done is found out before anything is changed.
        let found = match actions.install {
            true => Some(self.look(actions)?),
            false => None,
        };
        let obstacle = binary.obstacle().filter(|_| actions.install);
        match obstacle {
            Some(failure) if actions.start && !actions.noop => return Err(failure),
            Some(failure) => output.warning(failure.to_string()),
            None => {}
        }
        let is_running = ServiceManager::is_running();
        if (actions.enable || actions.start) && !is_running && !actions.noop {
            let what = if actions.start { "started" } else { "enabled" };
            let failure = Failure::wrong(format!("{} cannot be {what}", self.name));
            return Err(failure
                .because("systemd does not run here")
                .hint("`--install` alone writes the unit"));
        }
        let is_new = match found {
            Some(found) => self.install(&found, actions, output)?,
            None => false,
        };
        if actions.noop {
            for (is_wanted, what) in [(actions.enable, "enable"), (actions.start, "start")] {
                if is_wanted {
                    output.say(Importance::Notice, format!("would {what} {}", self.name));
                }
            }
            return Ok(());
        }
        if !is_running {
            return Ok(());
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::io("start", &error))?;
        runtime.block_on(async {
            let manager = ServiceManagers::new(&Buses::default()).system;
            if is_new {
                self.reload(&manager).await?;
            }
            if actions.enable {
                self.enable(&manager, output).await?;
            }
            if actions.start {
                self.start(&manager, is_new, output).await?;
            }
            Ok(())
        })
    }

    /// The file at its path.
    ///
    /// # Errors
    /// When it cannot be a unit, or must not be replaced.
    fn look(&self, actions: &Actions) -> Result<Found, Failure> {
        let path = &self.path;
        let failed = |error| Failure::wrong(format!("failed to look at {path}")).because(error);
        let entry = match Entry::at(path) {
            Err(error) if error.is_not_found() => {
                let failure = Failure::wrong(format!("the unit cannot be written to {path}"));
                return Err(failure.because(format!("there is no directory {DIRECTORY}")));
            }
            entry => entry.map_err(failed)?,
        };
        let Some(stat) = entry.stat().map_err(failed)? else {
            return Ok(Found::Nothing);
        };
        if stat.is_link() {
            let target = entry.read_link().map_err(failed)?.unwrap_or_default();
            let refused = Failure::wrong(format!("the unit cannot be written to {path}"));
            return Err(match target.as_os_str() == "/dev/null" {
                true => refused
                    .because("it is masked: nobody shall start it")
                    .hint(format!("`systemctl unmask {}` allows it again", self.name)),
                false => refused
                    .because(format!(
                        "it is a link to {}",
                        visible(&target.display().to_string())
                    ))
                    .hint("what it leads to may be somebody else's: take the link away, or write there"),
            });
        }
        if !stat.is_regular() {
            let refused = Failure::wrong(format!("the unit cannot be written to {path}"));
            return Err(refused.because("it is not a file"));
        }
        let there = entry.read().map_err(failed)?;
        if there == self.text.as_bytes() {
            return Ok(Found::Same);
        }
        if is_ours(&there) {
            return Ok(Found::Ours);
        }
        if !actions.force && !actions.noop {
            let refused = Failure::wrong(format!(
                "the unit {path} is there already, and somebody has written or changed it"
            ));
            return Err(refused.hint("`--noop` shows what would be written; `--force` writes it in its place; changes of your own are kept in a drop-in, `systemctl edit`"));
        }
        Ok(Found::Foreign(there))
    }

    /// Writes it, unless it is there. Whether it was not.
    fn install(&self, found: &Found, actions: &Actions, output: &Output) -> Result<bool, Failure> {
        let path = &self.path;
        let (would, done) = match found {
            Found::Same => {
                output.say(Importance::Notice, format!("{path} is as it should be"));
                return Ok(false);
            }
            Found::Nothing => ("would write", "wrote"),
            Found::Ours | Found::Foreign(_) => ("would replace", "replaced"),
        };
        if actions.noop {
            let mut text = format!("{would} {path}");
            if let Found::Foreign(there) = found {
                if !actions.force {
                    text.push_str(", with `--force`: somebody has written or changed it");
                }
                text.push_str(&difference(there, &self.text));
            }
            output.say(Importance::Notice, text);
            return Ok(false);
        }
        let request = Replace::bytes(path.clone(), self.text.clone().into_bytes()).mode(0o644);
        let replaced = Committer::new().replace(request);
        replaced.map_err(|error| {
            let failure = Failure::wrong(format!("failed to write the unit {path}")).because(&error);
            let is_root = rustix::process::geteuid().is_root();
            failure.hint_if((!is_root).then(|| "only root writes units".to_owned()))
        })?;
        output.say(Importance::Notice, format!("{done} {path}"));
        Ok(true)
    }

    async fn reload(&self, manager: &ServiceManager) -> Result<(), Failure> {
        let reloaded = manager.reload().await;
        reloaded.map_err(|error| {
            Failure::wrong("failed to make systemd read its unit files again").because(error)
        })
    }

    async fn enable(&self, manager: &ServiceManager, output: &Output) -> Result<(), Failure> {
        let name = &self.name;
        let failed = |error| Failure::wrong(format!("failed to enable {name}")).because(error);
        self.state(manager, "enable").await?;
        let changes = manager.enable(name).await.map_err(failed)?;
        if changes.is_empty() {
            output.say(Importance::Notice, format!("{name} is enabled already"));
            return Ok(());
        }
        // Who starts it has to hear of it.
        self.reload(manager).await?;
        output.say(Importance::Notice, format!("enabled {name}"));
        Ok(())
    }

    async fn start(&self, manager: &ServiceManager, is_new: bool, output: &Output) -> Result<(), Failure> {
        let name = &self.name;
        let is_running = self.state(manager, "start").await?.active_state.is_running();
        if is_running && !is_new {
            output.say(Importance::Notice, format!("{name} runs already"));
            return Ok(());
        }
        let failed = |why: &dyn std::fmt::Display| {
            let failure = Failure::wrong(format!("failed to start {name}")).because(why);
            failure.hint(format!("`journalctl -u {name}` has what it said"))
        };
        let method = if is_running { "RestartUnit" } else { "StartUnit" };
        let job = manager
            .enqueue(method, name)
            .await
            .map_err(|error| failed(&error))?;
        let ended = job.result().await.map_err(|error| failed(&error))?;
        match ended {
            Ok(JobResult::Done) | Err(_) => {}
            Ok(other) => {
                let why = manager.result(name).await.ok();
                let why = why.filter(|why| !why.is_empty() && why != "success");
                let why = why.unwrap_or_else(|| other.to_string());
                return Err(failed(&in_words(&why)));
            }
        }
        let state = self.state(manager, "start").await?;
        if !state.active_state.is_running() {
            return Err(failed(&format!("it is {}", state.running())));
        }
        let done = if is_running { "started anew" } else { "started" };
        output.say(Importance::Notice, format!("{done} {name}"));
        Ok(())
    }

    /// How systemd has it, if something can be done with it.
    async fn state(&self, manager: &ServiceManager, what: &str) -> Result<UnitState, Failure> {
        let name = &self.name;
        let failed = || Failure::wrong(format!("failed to {what} {name}"));
        let state = manager.unit(name, true).await;
        let state = state.map_err(|error| failed().because(error))?;
        if state.is_masked() {
            let failure = failed().because("it is masked: nobody shall start it");
            return Err(failure.hint(format!("`systemctl unmask {name}` allows it again")));
        }
        if !state.is_found() {
            return Err(failed()
                .because("there is no such unit")
                .hint("`--install` writes it"));
        }
        match state.load_error.as_str() {
            "" => Ok(state),
            error => Err(failed().because(error)),
        }
    }
}

/// How a start has ended, of which systemd has one word (systemd.exec(5), `$SERVICE_RESULT`).
fn in_words(result: &str) -> &str {
    match result {
        "exit-code" => "it ended with an error",
        "protocol" => "it ended before it was ready",
        "timeout" => "it was not ready in time",
        "signal" | "core-dump" => "it was killed",
        "oom-kill" => "it was killed, for there was not enough memory",
        "start-limit-hit" => "it has failed too often",
        other => other,
    }
}

/// What stands before the checksum.
const CHECKSUM: &str = "checksum ";

fn checksum(text: &[u8]) -> String {
    let digest = Sha256::digest(text);
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a text was written here, and by nobody changed since.
fn is_ours(text: &[u8]) -> bool {
    let Some(end) = text.iter().position(|byte| *byte == b'\n') else {
        return false;
    };
    let (first, rest) = (&text[..end], &text[end + 1..]);
    first.ends_with(format!("{CHECKSUM}{}", checksum(rest)).as_bytes())
}

/// What replacing changes, line by line.
fn difference(there: &[u8], text: &str) -> String {
    let there = String::from_utf8_lossy(there);
    let difference = similar::TextDiff::from_lines(&*there, text);
    let mut lines = String::new();
    for change in difference.iter_all_changes() {
        let sign = match change.tag() {
            similar::ChangeTag::Delete => '-',
            similar::ChangeTag::Insert => '+',
            similar::ChangeTag::Equal => continue,
        };
        let _ = write!(lines, "\n{sign} {}", visible(change.value().trim_end()));
    }
    lines
}
