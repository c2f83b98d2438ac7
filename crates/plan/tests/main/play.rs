//! Runs of a program on a machine in memory, with the real engine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use setpoint_engine::machine::Options;
use setpoint_engine::{
    Busy, Engine, EngineOptions, Event, EventKind, Extensions, Permits, Services, Submitted,
};
use setpoint_graph::ResourceId;
use setpoint_host::files::{Committer, VerifiedFiles};
use setpoint_host::processes::Processes;
use setpoint_host::users::Users;
use setpoint_host::watch::WatchHub;
use setpoint_plan::{Builder, Known, Row};

use crate::host::{Machine, Things};
use crate::kinds::KINDS;
use crate::programs::Program;

/// The parts that all engines of a test share.
pub(crate) struct Stage {
    runtime: tokio::runtime::Runtime,
    committer: Arc<Committer>,
    hub: WatchHub,
}

/// The end of a run.
pub(crate) struct Played {
    pub(crate) things: Things,
    pub(crate) deeds: BTreeMap<ResourceId, Deeds>,
}

/// The things that a run did for one resource.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Deeds {
    /// The fields that it changed, with their values before and after.
    pub(crate) fields: BTreeSet<[Arc<str>; 3]>,
    pub(crate) failure: Option<Arc<str>>,
    /// The resource that fails, so that this one does not run.
    pub(crate) blocked_by: Option<String>,
}

impl Stage {
    pub(crate) fn new() -> Stage {
        Stage {
            runtime: tokio::runtime::Builder::new_multi_thread()
                .worker_threads(1)
                .enable_all()
                .build()
                .unwrap(),
            committer: Arc::new(Committer::new()),
            hub: WatchHub::new().unwrap(),
        }
    }

    /// Plans a program: the rows. Nothing may change.
    pub(crate) fn plan(&self, program: &Program, things: &Things) -> Vec<Row> {
        let builder: Arc<Mutex<Builder>> = Arc::default();
        let listener = builder.clone();
        let after = self.run(program, things, None, true, move |event| {
            listener.lock().unwrap().take(event);
        });
        assert_eq!(after, *things, "a plan changes nothing");
        let builder = std::mem::take(&mut *builder.lock().unwrap());
        let is_off = |id: &ResourceId| program.is_off(id);
        let (rows, _) = builder.rows(|id| Known {
            is_off: is_off(id),
            ..Known::default()
        });
        rows
    }

    /// Runs a program, with these permits.
    pub(crate) fn keep(&self, program: &Program, things: &Things, permits: Option<Permits>) -> Played {
        let deeds: Arc<Mutex<BTreeMap<ResourceId, Deeds>>> = Arc::default();
        let listener = deeds.clone();
        let things = self.run(program, things, permits, false, {
            let drift = Mutex::default();
            move |event| note(&listener, &mut drift.lock().unwrap(), event)
        });
        let deeds = std::mem::take(&mut *deeds.lock().unwrap());
        Played { things, deeds }
    }

    /// The events of a run, for who reads a failure.
    pub(crate) fn history(&self, program: &Program, things: &Things) -> Vec<String> {
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let listener = lines.clone();
        self.run(program, things, None, false, move |event| {
            listener.lock().unwrap().push(event.to_json());
        });
        std::mem::take(&mut *lines.lock().unwrap())
    }

    fn run(
        &self,
        program: &Program,
        things: &Things,
        permits: Option<Permits>,
        noop: bool,
        listener: impl Fn(&Event) + Send + Sync + 'static,
    ) -> Things {
        let machine = Arc::new(Machine::new(things.clone()));
        let services = Services {
            program: "setpoint".to_owned(),
            version: "0".to_owned(),
            hostname: "here".to_owned(),
            debug: Arc::default(),
            writable: false,
            committer: self.committer.clone(),
            verified: Arc::new(VerifiedFiles::new()),
            processes: Processes::new(""),
            users: Arc::new(Users::new()),
            graph: Arc::default(),
            extensions: Extensions::default().with(machine.clone()),
            busy: Busy::default(),
        };
        let options = EngineOptions {
            machine: Options {
                noop,
                converge: Some(Duration::ZERO),
                exit_when_converged: true,
                keep_trying: false,
                ..Options::default()
            },
            threads: Some(1),
            watches: false,
            on_event: Some(Arc::new(listener)),
            permits: permits.map(Arc::new),
            ..EngineOptions::default()
        };
        let handle = self.runtime.handle().clone();
        self.runtime.block_on(async {
            let engine = Engine::start(options, KINDS, services, &self.hub, handle);
            let submitted = engine.submit(program.graph()).await.unwrap();
            assert!(
                matches!(submitted, Submitted::Accepted),
                "{submitted:?}\n{program:#?}"
            );
            tokio::time::timeout(Duration::from_secs(60), engine.wait())
                .await
                .unwrap_or_else(|_| panic!("a run has no end: {program:#?}\n{things:#?}"));
        });
        machine.lock().clone()
    }
}

fn note(
    deeds: &Mutex<BTreeMap<ResourceId, Deeds>>,
    drift: &mut BTreeMap<ResourceId, [Arc<str>; 3]>,
    event: &Event,
) {
    let Some(id) = event.identity() else { return };
    let mut deeds = deeds.lock().unwrap();
    let done = deeds.entry(id.clone()).or_default();
    match &event.what {
        EventKind::Drift { field, is, want, .. } => {
            drift.insert(id, [field.clone(), is.clone(), want.clone()]);
        }
        EventKind::Repairing { .. } => done.fields.extend(drift.remove(&id)),
        EventKind::GaveUp { error } => done.failure = Some(error.clone()),
        EventKind::RunEnded { error, .. } => done.failure.clone_from(error),
        EventKind::BlockedBy { by } => done.blocked_by = Some(by.clone()),
        EventKind::StartedRun { .. } => done.blocked_by = None,
        _ => {}
    }
}
