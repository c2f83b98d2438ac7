//! Requests to a running agent (signals and deploys), and how the run ended.

use setpoint_engine::Engine;
use setpoint_engine::machine::{ExitReason, ExitReport, StopStage};
use setpoint_programs::report::{Importance, Reporter};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::cluster::{Deployed, MemberPrograms};
use crate::runner::Programs;
use crate::signals::{Request, Signals, StopSignal};

/// How a run ended.
#[derive(Default)]
pub struct Ended {
    /// The report of the engine; none if it never started.
    pub report: Option<ExitReport>,
    /// Whether the program is wrong, which was reported.
    pub program_is_wrong: bool,
    /// Whether resources of other hosts could not be collected, which was reported.
    pub lacks_collected: bool,
    /// The first signal that requested the end.
    pub signal: Option<StopSignal>,
}

impl Ended {
    /// The end of a run that never started because its program is wrong.
    #[must_use]
    pub fn of_wrong_program() -> Ended {
        Ended {
            program_is_wrong: true,
            ..Ended::default()
        }
    }
}

/// Serves the requests to a run.
pub(crate) struct Requests {
    engine: Engine,
    member: Option<MemberPrograms>,
    signals: Signals,
    reporter: Reporter,
    /// Whether the newest graph lacks resources of other hosts.
    lacks_collected: Arc<AtomicBool>,
    /// The stage of stopping.
    stage: Option<StopStage>,
    ended: Ended,
}

impl Requests {
    pub(crate) fn new(
        engine: Engine,
        member: Option<MemberPrograms>,
        signals: Signals,
        reporter: Reporter,
        lacks_collected: Arc<AtomicBool>,
    ) -> Requests {
        Requests {
            engine,
            member,
            signals,
            reporter,
            lacks_collected,
            stage: None,
            ended: Ended::default(),
        }
    }

    /// Waits for the end of the engine. The programs end with it.
    pub(crate) async fn serve(mut self, mut programs: Option<Programs>) -> Ended {
        loop {
            tokio::select! {
                Some(deployed) = next_deploy(self.member.as_mut()) => {
                    if let Some(member) = &self.member {
                        tokio::task::block_in_place(|| member.run(&deployed, &mut programs));
                    }
                }
                () = wrong_program(programs.as_ref()), if self.stage.is_none() => {
                    if self.member.is_none() {
                        self.engine.exit(ExitReason::Stopped);
                        self.ended.program_is_wrong = true;
                        self.ended.report = Some(self.engine.wait().await);
                        return self.ended;
                    }
                    // In a cluster, the next deploy fixes the program.
                    tokio::task::block_in_place(|| programs = None);
                }
                report = self.engine.wait() => {
                    self.ended.report = Some(report);
                    self.ended.lacks_collected = self.lacks_collected.load(Ordering::Relaxed);
                    return self.ended;
                }
                request = self.signals.next() => match request {
                    Request::Stop(signal) => self.stop(signal),
                    Request::Reload => self.reload(programs.as_ref()),
                    Request::Look => self.look().await,
                },
            }
        }
    }

    fn reload(&self, programs: Option<&Programs>) {
        match programs {
            Some(programs) => programs.reload(),
            None => self
                .reporter
                .warning("there is no program that could be read again"),
        }
    }

    async fn look(&self) {
        for vertex in self.engine.status().await.into_iter().flatten() {
            self.engine.recheck(vertex.id);
        }
    }

    /// Asks the engine to stop; the next signal asks more firmly.
    fn stop(&mut self, signal: StopSignal) {
        let (next, what) = match self.stage {
            None => (StopStage::Finish, "stopping"),
            Some(StopStage::Finish) => (StopStage::Cancel, "cancelling what still runs"),
            Some(StopStage::Cancel | StopStage::Interrupt) => {
                (StopStage::Interrupt, "killing what still runs")
            }
        };
        // Act first, then report. A service manager signals only once, so further stages follow automatically.
        self.engine.stop(next, signal.comes_once());
        self.stage = Some(next);
        self.ended.signal.get_or_insert(signal);
        let text = format!("{what}: interrupted by {}", signal.name());
        self.reporter.say(Importance::Notice, text);
    }
}

async fn wrong_program(programs: Option<&Programs>) {
    match programs {
        Some(programs) => programs.ended().await,
        None => std::future::pending().await,
    }
}

async fn next_deploy(member: Option<&mut MemberPrograms>) -> Option<Deployed> {
    match member {
        Some(member) => member.newer.recv().await,
        None => None,
    }
}
