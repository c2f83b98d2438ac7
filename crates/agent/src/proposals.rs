//! Plans for proposed deploys: the agent of a member answers each proposal with what the deploy would change on its host.
//!
//! A plan is made by a process of its own, `setpoint plan`, so that its memory returns to the system, and a fault in it does not stop the agent.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use setpoint_host::processes::{Command, Processes, Stop};
use setpoint_programs::failure::Failure;
use setpoint_world::{Backoff, Change, Selection, StoreError, Watched};

use crate::attachment::{AgentHandle, Attached, Attachment};
use crate::deploys::{Answer, Deploys, PROPOSALS, Proposed, Record};

/// The time that a plan may take.
const PLAN_WITHIN: Duration = Duration::from_secs(120);

/// The largest output of a plan, in bytes.
const LARGEST_OUTPUT: usize = 32 << 20;

/// Answers proposals of deploys.
pub(crate) struct Proposals {
    pub(crate) deploys: Deploys,
    /// The command that plans a program. The state directory, the host and the program are appended to it.
    pub(crate) plan: Vec<OsString>,
}

impl Attachment for Proposals {
    fn start(self: Box<Self>, agent: &AgentHandle) -> Result<Attached, Failure> {
        let hostname = &agent.machine.hostname;
        let state_dir = agent.machine.prefix.as_path();
        let mut plan = self.plan;
        plan.extend([
            "--hostname".into(),
            hostname.into(),
            "--state-dir".into(),
            state_dir.into(),
        ]);
        let answering = Answering {
            deploys: self.deploys,
            plan,
            hostname: agent.machine.hostname.clone(),
            directory: agent.machine.prefix.as_path().join("proposed"),
            processes: agent.machine.host.processes.clone(),
            answered: BTreeSet::new(),
        };
        agent.runtime.spawn(answering.run());
        Ok(Attached::EndsWithEngine)
    }
}

struct Answering {
    deploys: Deploys,
    plan: Vec<OsString>,
    hostname: String,
    /// The directory for the files of proposals.
    directory: PathBuf,
    processes: Processes,
    /// The proposals that were answered.
    answered: BTreeSet<String>,
}

impl Answering {
    async fn run(mut self) {
        let mut backoff = Backoff::default();
        loop {
            // The membership reports a store that is away.
            let _ = self.follow(&mut backoff).await;
            tokio::time::sleep(backoff.pause()).await;
        }
    }

    async fn follow(&mut self, backoff: &mut Backoff) -> Result<(), StoreError> {
        let store = self.deploys.store();
        let selection = Selection::prefix(PROPOSALS);
        let found = store.read(std::slice::from_ref(&selection)).await?;
        let proposed: Vec<Proposed> = found.all().filter_map(Proposed::of).collect();
        self.answered
            .retain(|answered| proposed.iter().any(|proposed| proposed.name == *answered));
        for proposed in proposed {
            self.answer(proposed).await?;
        }
        let mut watch = store.watch(selection, found.revision);
        backoff.reset();
        loop {
            match watch.next().await {
                Watched::Changed(batch) => {
                    for change in batch.changes {
                        match change {
                            Change::Put(entry) => {
                                if let Some(proposed) = Proposed::of(&entry) {
                                    self.answer(proposed).await?;
                                }
                            }
                            Change::Deleted(key) => {
                                self.answered
                                    .retain(|name| !key.as_str().ends_with(name.as_str()));
                            }
                        }
                    }
                }
                Watched::Compacted(_) | Watched::Back | Watched::SetBack(_) => return Ok(()),
                Watched::Away(error) => return Err(error),
            }
        }
    }

    async fn answer(&mut self, proposed: Proposed) -> Result<(), StoreError> {
        if self.answered.contains(&proposed.name) {
            return Ok(());
        }
        let store = self.deploys.store();
        let directory = self.directory.join(&proposed.name);
        let answer = match &proposed.record {
            Ok(record) => match self.plan(record, &directory).await {
                Ok(plan) => Answer::Plan(plan),
                Err(why) => Answer::Error(why),
            },
            Err(why) => Answer::Error(why.clone()),
        };
        let _ = std::fs::remove_dir_all(&self.directory);
        proposed.answer(&*store, &self.hostname, &answer).await?;
        self.answered.insert(proposed.name);
        Ok(())
    }

    /// Plans a deploy on this host. Answers the plan as JSON.
    async fn plan(&self, record: &Record, directory: &Path) -> Result<String, String> {
        if let Some(key) = &record.files {
            let fetched = self.deploys.fetch_files(key, directory).await;
            fetched.map_err(|error| error.to_string())?;
        }
        let program = record.program(directory);
        let mut words = self.plan.clone();
        if program.is_yaml {
            words.push("yaml".into());
        }
        words.extend([
            "--module-path".into(),
            program.modules.into(),
            program.argument.into(),
        ]);
        let mut words = words.into_iter();
        let program = words.next().ok_or("this member cannot plan")?;
        let command = Command::new(program, words).most_output(LARGEST_OUTPUT);
        let stop = Stop::default();
        let finished = match tokio::time::timeout(PLAN_WITHIN, self.processes.run(&command, &stop)).await {
            Ok(finished) => finished.map_err(|error| error.to_string())?,
            Err(_) => return Err(format!("the plan takes longer than {} s", PLAN_WITHIN.as_secs())),
        };
        let printed = String::from_utf8_lossy(&finished.output.stdout())
            .trim()
            .to_owned();
        match printed.is_empty() {
            false => Ok(printed),
            true => {
                let said = String::from_utf8_lossy(&finished.output.stderr())
                    .trim()
                    .to_owned();
                Err(match said.is_empty() {
                    true => format!("`setpoint plan`: {}", finished.exit),
                    false => said,
                })
            }
        }
    }
}
