//! Cluster membership: the agent publishes its program, runs the newest deploy, and reports its state.

use std::ffi::OsString;
use std::sync::Arc;

use setpoint_engine::machine::ExitReason;
use setpoint_programs::Assembly;
use setpoint_programs::failure::Failure;
use setpoint_programs::imposed::Imposed;
use setpoint_programs::report::{Importance, Reporter};
use setpoint_world::Store;
use tokio::sync::{mpsc, oneshot, watch};

use crate::attachment::{AgentHandle, Attached, Attachment};
pub(crate) use crate::deploys::Deployed;
use crate::deploys::{Deploys, Follower, deploy_of, record_of};
use crate::first_program::FirstProgram;
use crate::membership::Reporting;
use crate::runner::{ProgramFrontend, Programs};
use crate::surroundings::Surroundings;

/// Options of a cluster member.
pub struct ClusterOptions {
    /// Whether the agent skips the deploy that exists at the start.
    pub only_later: bool,
    /// Whether the first deploy is the last.
    pub only_first: bool,
    /// Whether a deploy must be there already.
    pub only_now: bool,
    /// Settings for all resources of a program that this agent publishes.
    pub imposed: Imposed,
    /// The command that plans a program, `setpoint plan --json`, without the arguments that this crate knows.
    pub plan: Vec<OsString>,
}

/// Publishes a compiled program, unless a deploy is of this program already: a host that starts again does not take back what was deployed since.
pub(crate) async fn publish(
    deploys: &Deploys,
    program: &FirstProgram,
    imposed: &Imposed,
    reporter: &Reporter,
) -> Result<(), Failure> {
    let FirstProgram::Program(program) = program else {
        let failure = Failure::usage("models cannot be deployed yet");
        return Err(failure.hint("with `--no-deploy` it is run on this host alone"));
    };
    let failed =
        |error: &dyn std::fmt::Display| Failure::wrong("the program cannot be published").because(error);
    let newest = deploys.newest().await.map_err(|error| failed(&error))?;
    if let Some(id) = deploy_of(deploys, &program.1, imposed.clone()).await? {
        let text = match id == newest {
            true => format!("the program is deploy {id} already"),
            false => format!(
                "the program was published before, as deploy {id}; deploy {newest} is newer and is used. \
                 `setpoint deploy rollback {id}` goes back"
            ),
        };
        let importance = if id == newest {
            Importance::Info
        } else {
            Importance::Warning
        };
        reporter.say(importance, text);
        return Ok(());
    }
    let upload = deploys.begin_upload().await.map_err(|error| failed(&error))?;
    let record = record_of(deploys, &program.1, imposed.clone()).await?;
    let added = deploys.add_next(&record, &upload).await;
    let id = added.map_err(|error| failed(&error))?;
    reporter.say(Importance::Info, format!("published as deploy {id}"));
    Ok(())
}

/// Follows deploys, and reports the state of this host.
pub(crate) struct Membership {
    deploys: Deploys,
    options: ClusterOptions,
    newer: mpsc::Sender<Deployed>,
    taken: watch::Receiver<Option<u64>>,
}

/// The queue of deploys that this host accepts.
pub(crate) struct DeployQueue {
    newer: mpsc::Receiver<Deployed>,
    taken: watch::Sender<Option<u64>>,
}

impl Membership {
    pub(crate) fn new(deploys: Deploys, options: ClusterOptions) -> (Membership, DeployQueue) {
        let (sender, newer) = mpsc::channel(1);
        let (taken, taken_last) = watch::channel(None);
        let membership = Membership {
            deploys,
            options,
            newer: sender,
            taken: taken_last,
        };
        (membership, DeployQueue { newer, taken })
    }
}

impl Attachment for Membership {
    fn start(self: Box<Self>, agent: &AgentHandle) -> Result<Attached, Failure> {
        // The machine is not converged before the first deploy.
        agent.engine.sources_busy(true);
        let (begun, has_begun) = oneshot::channel();
        let follower = Follower {
            deploys: self.deploys.clone(),
            hostname: agent.machine.hostname.clone(),
            directory: agent.machine.prefix.as_path().join("deploys"),
            only_later: self.options.only_later,
            only_first: self.options.only_first,
            only_now: self.options.only_now,
            reporter: agent.reporter.clone(),
            begun: Some(begun),
        };
        let (engine, newer) = (agent.engine.clone(), self.newer);
        agent.runtime.spawn(async move {
            if let Err(why) = follower.run(newer).await {
                engine.exit(ExitReason::BackgroundFailed(why.into()));
            }
        });
        let reporting = Reporting::new(self.deploys.store(), agent, Some(self.taken));
        Ok(Attached::Finishes(agent.runtime.spawn(async move {
            // A member accepts every deploy from the moment of its report.
            let _ = has_begun.await;
            reporting.run().await;
        })))
    }
}

/// Reports the state of a host that shares the store and has a program of its own.
pub(crate) struct HostReport {
    pub(crate) store: Arc<dyn Store>,
}

impl Attachment for HostReport {
    fn start(self: Box<Self>, agent: &AgentHandle) -> Result<Attached, Failure> {
        let reporting = Reporting::new(self.store, agent, None);
        Ok(Attached::Finishes(agent.runtime.spawn(reporting.run())))
    }
}

impl DeployQueue {
    /// Adds what deploys need to run.
    pub(crate) fn taken_by(self, assembly: Assembly, surroundings: Surroundings) -> MemberPrograms {
        MemberPrograms {
            newer: self.newer,
            taken: self.taken,
            assembly,
            surroundings,
        }
    }
}

/// Runs the deploys of a cluster member.
pub(crate) struct MemberPrograms {
    pub(crate) newer: mpsc::Receiver<Deployed>,
    /// Which is the newest that was taken.
    taken: watch::Sender<Option<u64>>,
    assembly: Assembly,
    surroundings: Surroundings,
}

impl MemberPrograms {
    /// Runs a deploy. It replaces the previous one when it has a graph.
    pub(crate) fn run(&self, deployed: &Deployed, programs: &mut Option<Programs>) {
        self.taken.send_replace(Some(deployed.id));
        let Surroundings {
            machine,
            reporter,
            state,
            ..
        } = &self.surroundings;
        let source = deployed.source(&self.assembly, &machine.hostname, reporter);
        reporter.say(Importance::Notice, format!("deploy {}", deployed.id));
        if let Some(programs) = programs {
            programs.take(source);
            return;
        }
        let compilation = source.compile();
        let found = &compilation.diagnostics;
        reporter.diagnostics(found, &compilation.shown_sources());
        if found.has_errors() {
            let messages: Vec<&str> = found.iter().map(|found| found.message.as_str()).collect();
            state.set_wrong(Some(messages.join("\n")));
        } else {
            let surroundings = self.surroundings.clone();
            *programs = Some(Programs::start(surroundings.clone(), false, |sender| {
                Box::new(ProgramFrontend::new(source, compilation, surroundings, sender))
            }));
        }
    }
}
