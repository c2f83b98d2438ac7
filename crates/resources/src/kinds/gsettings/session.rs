//! The session of a user, and the program `gsettings` in it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use setpoint_diagnostics::did_you_mean;
use setpoint_engine::{Apply, Failure, Handle};
use setpoint_host::files::{AbsolutePath, Entry, own_uid};
use setpoint_host::processes::{Command, Environment, Finished, RunError, Stop};

use super::Setting;
use crate::command_rights::CommandRights;

/// The program.
pub(super) const PROGRAM: &str = "gsettings";

/// Where programs of the system are, for what it may start.
const SEARCH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Whose settings they are, and with whose rights they are asked and set.
#[derive(Debug, Clone)]
pub(super) struct Session {
    uid: u32,
    rights: CommandRights,
}

impl Session {
    /// That of a user by name or number, of ourselves if it is empty; none if there is no such account yet. For what is watched: it cannot run anything.
    pub(super) fn known(handle: &Handle, user: &str) -> Option<Session> {
        let uid = match user {
            "" => own_uid(),
            user => handle.users().user(user).ok()?,
        };
        Some(Session {
            uid,
            rights: CommandRights::default(),
        })
    }

    /// That of a user and a group by name or number.
    ///
    /// # Errors
    /// When there is no such account.
    pub(super) async fn find(handle: &Handle, user: &str, group: &str) -> Result<Session, Failure> {
        let rights = CommandRights::find(handle, user, group).await?;
        Ok(Session {
            uid: rights.user.unwrap_or_else(own_uid),
            rights,
        })
    }

    pub(super) fn uid(&self) -> u32 {
        self.uid
    }

    /// Where the session bus listens.
    pub(super) fn bus(&self) -> Option<AbsolutePath> {
        AbsolutePath::new(format!("/run/user/{}/bus", self.uid)).ok()
    }

    /// Whether something is where the session bus listens.
    pub(super) fn has_a_bus(&self) -> bool {
        let found = self.bus().and_then(|bus| Entry::at(&bus).ok()?.stat().ok()?);
        found.is_some()
    }

    /// What is wrong if there is no session, and what to do.
    pub(super) fn without_a_bus(&self, user: &str) -> Failure {
        let uid = self.uid;
        let (who, lingering) = match user {
            "" => ("our own user".to_owned(), uid.to_string()),
            user => (format!("the user `{user}`"), user.to_owned()),
        };
        let why = format!(
            "{who} has no session: nothing is at /run/user/{uid}/bus; it comes when that user logs in, or with `loginctl enable-linger {lingering}`"
        );
        Failure::new("find the session bus").because(why)
    }

    /// What a setting is, as GVariant writes it.
    pub(super) async fn read(&self, setting: &Setting, apply: &Apply<'_>) -> Result<String, Failure> {
        let command = self.command(["get", &setting.schema, &setting.key]);
        let finished = self.run(&command, "read", setting, apply).await?;
        if let Some(why) = unsuccessful(&finished, apply) {
            let meant = self.meant(setting, apply).await;
            let why = meant.map_or_else(|| why.clone(), |meant| format!("{why}; {meant}"));
            return Err(self.failed("read", setting, apply).because(why));
        }
        let is = String::from_utf8_lossy(&finished.output.stdout()).into_owned();
        Ok(is.trim_end_matches('\n').to_owned())
    }

    /// Sets a setting. Answers what the program complained of though it succeeded.
    pub(super) async fn write(
        &self,
        setting: &Setting,
        value: &str,
        apply: &Apply<'_>,
    ) -> Result<Option<String>, Failure> {
        let command = self.command(["set", &setting.schema, &setting.key, value]);
        let finished = self.run(&command, "set", setting, apply).await?;
        if let Some(why) = unsuccessful(&finished, apply) {
            return Err(self.failed("set", setting, apply).because(why));
        }
        Ok(complaint(&finished))
    }

    /// The program, as the user would run it in the session.
    pub(super) fn command<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        let runtime = format!("/run/user/{}/", self.uid);
        let variables = [
            ("DBUS_SESSION_BUS_ADDRESS", format!("unix:path={runtime}bus")),
            ("XDG_RUNTIME_DIR", runtime),
            ("PATH", SEARCH.to_owned()),
            ("LC_ALL", "C.UTF-8".to_owned()),
        ];
        let environment: BTreeMap<OsString, OsString> = variables
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        let command = Command::new(PROGRAM, arguments.into_iter().map(OsStr::new))
            .directory(std::path::PathBuf::from("/"))
            .environment(Environment::Exactly(environment));
        self.rights.give(command)
    }

    pub(super) fn failed(&self, attempted: &'static str, setting: &Setting, apply: &Apply<'_>) -> Failure {
        let failure = Failure::new(attempted);
        match apply.has_sensitive() {
            true => failure.on("(sensitive)"),
            false => failure.on(setting),
        }
    }

    /// The key or the schema that is probably meant instead of one that cannot be read.
    async fn meant(&self, setting: &Setting, apply: &Apply<'_>) -> Option<String> {
        if apply.has_sensitive() {
            return None;
        }
        if let Some(keys) = self.list(["list-keys", &setting.schema], setting, apply).await {
            return did_you_mean(&setting.key, keys.lines());
        }
        let schemas = match setting.schema.contains(':') {
            true => "list-relocatable-schemas",
            false => "list-schemas",
        };
        let schemas = self.list([schemas], setting, apply).await?;
        let (schema, _) = setting.schema.split_once(':').unwrap_or((&setting.schema, ""));
        did_you_mean(schema, schemas.lines())
    }

    /// What the program lists, if it does.
    async fn list<const N: usize>(
        &self,
        arguments: [&str; N],
        setting: &Setting,
        apply: &Apply<'_>,
    ) -> Option<String> {
        let finished = self.run(&self.command(arguments), "list", setting, apply).await;
        let finished = finished.ok().filter(|finished| finished.exit.is_success())?;
        Some(String::from_utf8_lossy(&finished.output.stdout()).into_owned())
    }

    /// Runs a command to its end.
    async fn run(
        &self,
        command: &Command,
        attempted: &'static str,
        setting: &Setting,
        apply: &Apply<'_>,
    ) -> Result<Finished, Failure> {
        let cancellation = apply.cancellation();
        let stop = Stop {
            cancel: cancellation.token().clone(),
            interrupt: cancellation.interrupt_token().clone(),
            ..Stop::default()
        };
        let finished = apply.handle().processes().run(command, &stop).await;
        cancellation.check(attempted)?;
        finished.map_err(|error| {
            let failure = self.failed(attempted, setting, apply);
            match error {
                RunError::Program(error) => failure.because(format!(
                    "{error}; the package `libglib2.0-bin` has it (`glib2` on Fedora)"
                )),
                error => failure.because(error),
            }
        })
    }
}

/// Why a command did not succeed, if it did not.
fn unsuccessful(finished: &Finished, apply: &Apply<'_>) -> Option<String> {
    if finished.exit.is_success() {
        return None;
    }
    // It may quote what it was given.
    let said = complaint(finished).filter(|_| !apply.has_sensitive());
    Some(said.unwrap_or_else(|| format!("`{PROGRAM}` ended with {}", finished.exit)))
}

/// What the program says on standard error, in one line: what it says itself, or else the last of the warnings of its libraries.
fn complaint(finished: &Finished) -> Option<String> {
    let said = String::from_utf8_lossy(&finished.output.stderr()).into_owned();
    let is_mark = |line: &str| line.chars().all(|sign| ['^', '-', ' '].contains(&sign));
    let lines = said.lines().map(str::trim).filter(|line| !is_mark(line));
    let (warnings, own): (Vec<&str>, Vec<&str>) = lines.partition(|line| line.contains(" **: "));
    if !own.is_empty() {
        return Some(own.join(" "));
    }
    // `(process:254): dconf-WARNING **: 17:23:11.756: failed to commit changes to dconf`
    let (_, last) = warnings.last()?.split_once(" **: ")?;
    Some(last.split_once(": ").map_or(last, |(_, last)| last).to_owned())
}
