//! The guards of an `exec`: whether its command runs.

use setpoint_engine::{Apply, Failure, FailureReason, Level, Text};
use setpoint_host::processes::{Exit, Finished};

use super::Exec;
use super::cache::{self, Cache};
use super::command::{CommandLine, Run};
use crate::enclosing;

/// Whether the command runs, and why.
pub(super) enum Verdict {
    Run(String),
    Skip(Skip),
}

/// Why a command does not run.
pub(super) struct Skip {
    reason: &'static str,
    /// The command that says so: its text, and what it printed. None when its work is done already.
    guard: Option<(String, String)>,
}

impl Skip {
    fn by(line: &CommandLine<'_>, finished: &Finished, reason: &'static str) -> Verdict {
        Verdict::Skip(Skip {
            reason,
            guard: Some((line.to_string(), finished.output.text())),
        })
    }

    /// Fails when a command of the program refuses to serve a notification, so that it stays pending.
    pub(super) fn refuse_notification(&self, apply: &Apply<'_>) -> Result<(), Failure> {
        let Some((guard, output)) = &self.guard else {
            return Ok(());
        };
        if !apply.refresh_pending() {
            return Ok(());
        }
        let attempted = format!("run, as {} asks", senders(apply));
        if apply.has_sensitive() {
            let reason = format!(
                "its guard refuses ({}); the notification stays pending",
                self.reason
            );
            return Err(Failure::new(attempted).because(reason));
        }
        if !output.is_empty() {
            apply.log(Level::Error, format!("the guard says: {output}"));
        }
        let reason = format!(
            "its guard `{guard}` refuses ({}); the notification stays pending",
            self.reason
        );
        Err(Failure::new(attempted).because(reason))
    }

    /// Logs why the command does not run. A notification makes it important enough for `-v`.
    pub(super) fn report(&self, apply: &Apply<'_>) {
        let reason = self.reason;
        if apply.refresh_pending() {
            let message = format!("does not run, although {} asks: {reason}", senders(apply));
            apply.log(Level::Info, message);
        } else {
            apply.log(Level::Debug, format!("does not run: {reason}"));
        }
    }
}

/// Whose notifications wait.
fn senders(apply: &Apply<'_>) -> String {
    let names = apply.notified_by().iter().map(ToString::to_string);
    names.collect::<Vec<_>>().join(", ")
}

impl Exec {
    pub(super) async fn guards(
        &self,
        run: &Run,
        apply: &mut Apply<'_>,
        cache: &Cache,
    ) -> Result<Verdict, Failure> {
        if let Some(guard) = self.only_if.line() {
            apply.uncertain(|| format!("runs if `{guard}` then succeeds"));
        } else if let Some(guard) = self.only_if_not.line() {
            apply.uncertain(|| format!("runs if `{guard}` then fails"));
        }
        if let Some(newer) = cache::newer(self.mtimes.clone(), cache.last_run).await? {
            return Ok(Verdict::Run(format!("{newer} is newer than the last run")));
        }
        let mut reasons = Vec::new();
        if apply.refresh_pending() {
            reasons.push("notified");
        }
        if let Some(guard) = self.only_if.line() {
            let finished = answer(run.finish(&guard, "run `ifcmd`", apply).await?, "run `ifcmd`")?;
            if !finished.exit.is_success() {
                return Ok(Skip::by(&guard, &finished, "`ifcmd` failed"));
            }
            if self.ifequals.is_some() || self.ifequals_stdout.is_some() {
                self.report_cut(&finished, apply);
            }
            let equals = |wanted: &Option<Text>, found: &[u8]| {
                wanted.as_ref().is_some_and(|wanted| wanted.as_bytes() == found)
            };
            if equals(&self.ifequals, &finished.output.combined()) {
                return Ok(Skip::by(
                    &guard,
                    &finished,
                    "`ifcmd` printed what `ifequals` says",
                ));
            }
            if equals(&self.ifequals_stdout, &finished.output.stdout()) {
                return Ok(Skip::by(
                    &guard,
                    &finished,
                    "`ifcmd` printed what `ifequals_stdout` says",
                ));
            }
            reasons.push("`ifcmd` succeeded");
        }
        if let Some(guard) = self.only_if_not.line() {
            let finished = answer(run.finish(&guard, "run `nifcmd`", apply).await?, "run `nifcmd`")?;
            if finished.exit.is_success() {
                return Ok(Skip::by(&guard, &finished, "`nifcmd` succeeded"));
            }
            reasons.push("`nifcmd` failed");
        }
        if let Some(path) = &*self.creates {
            let mut exists = cache::exists(path.clone()).await?;
            for created in enclosing::file_or_directory(path) {
                exists = apply.will_exist(&created, exists, || format!("runs if {path} is missing then"));
            }
            if exists {
                return Ok(Verdict::Skip(Skip {
                    reason: "what it `creates` is there",
                    guard: None,
                }));
            }
            reasons.push("what it `creates` is not there");
        }
        Ok(Verdict::Run(if reasons.is_empty() {
            "no guard".to_owned()
        } else {
            reasons.join(", ")
        }))
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
