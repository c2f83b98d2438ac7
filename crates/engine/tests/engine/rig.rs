//! An engine on a temporary directory.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use setpoint_diagnostics::{FileId, Span};
use setpoint_engine::machine::{ExitReport, StopStage};
use setpoint_engine::{
    Busy, Engine, EngineOptions, Event, EventKind, EventStream, Extensions, Services, StateFiles, Submitted,
};
use setpoint_graph::{
    DesiredEdge, DesiredGraph, DesiredMembers, DesiredResource, MetaParameters, Parameters, ResourceId,
};
use setpoint_host::files::{AbsolutePath, Committer, VerifiedFiles};
use setpoint_host::processes::Processes;
use setpoint_host::state::{PrefixLock, StateDirectory};
use setpoint_host::users::Users;
use setpoint_host::watch::WatchHub;
use setpoint_value::Value;

use super::kinds::KINDS;

pub(crate) struct Rig {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) engine: Engine,
    pub(crate) events: EventStream,
    pub(crate) busy: Busy,
    generation: u64,
    _hub: WatchHub,
}

impl Rig {
    pub(crate) fn new() -> Rig {
        Rig::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut EngineOptions)) -> Rig {
        Rig::on(tempfile::tempdir().unwrap(), false, change)
    }

    /// On a directory that may have been used before, with state on disk or without.
    pub(crate) fn on(
        directory: tempfile::TempDir,
        state: bool,
        change: impl FnOnce(&mut EngineOptions),
    ) -> Rig {
        let mut options = EngineOptions::default();
        let committer = Arc::new(Committer::new());
        let prefix = AbsolutePath::new(directory.path().join("prefix")).unwrap();
        if state {
            let prefix = StateDirectory::open(&prefix).unwrap();
            let lock = PrefixLock::acquire(&prefix).unwrap();
            options.state = Some(StateFiles::open(&prefix, lock, committer.clone()).unwrap());
        }
        change(&mut options);
        let busy = Busy::default();
        let services = Services {
            program: "setpoint".to_owned(),
            version: "0".to_owned(),
            hostname: "here".to_owned(),
            debug: Arc::default(),
            writable: state,
            committer,
            verified: Arc::new(VerifiedFiles::new()),
            processes: Processes::new(""),
            users: Arc::new(Users::new()),
            graph: Arc::default(),
            extensions: Extensions::default(),
            busy: busy.clone(),
        };
        let hub = WatchHub::new().unwrap();
        let runtime = tokio::runtime::Handle::current();
        let engine = Engine::start(options, KINDS, services, &hub, runtime);
        Rig {
            events: engine.events(),
            directory,
            engine,
            busy,
            generation: 0,
            _hub: hub,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The name of a `keep` for this file.
    pub(crate) fn name(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    pub(crate) async fn submit(&mut self, graph: &Graph) -> Submitted {
        self.generation += 1;
        let mut graph = graph.0.clone();
        graph.generation = self.generation;
        self.engine.submit(graph).await.unwrap()
    }

    pub(crate) async fn accept(&mut self, graph: &Graph) {
        let submitted = self.submit(graph).await;
        assert!(matches!(submitted, Submitted::Accepted), "{submitted:?}");
    }

    /// Waits for an event.
    pub(crate) async fn until(&mut self, what: impl Fn(&Event) -> bool) -> Vec<Arc<Event>> {
        let mut seen = Vec::new();
        loop {
            let next = tokio::time::timeout(Duration::from_secs(30), self.events.next()).await;
            let Ok(Some(event)) = next else {
                let said: Vec<String> = seen.iter().map(|event: &Arc<Event>| event.to_json()).collect();
                panic!("it never came after:\n{}", said.join("\n"));
            };
            seen.push(event.clone());
            if what(&event) {
                return seen;
            }
        }
    }

    /// Waits until a resource's run has ended.
    pub(crate) async fn run_of(&mut self, name: &str) -> Vec<Arc<Event>> {
        let name = name.to_owned();
        self.until(move |event| {
            event.name.as_deref() == Some(&name) && matches!(event.what, EventKind::RunEnded { .. })
        })
        .await
    }

    pub(crate) async fn converged(&mut self) -> Vec<Arc<Event>> {
        self.until(|event| matches!(event.what, EventKind::Converged))
            .await
    }

    pub(crate) async fn ends(&self) -> ExitReport {
        tokio::time::timeout(Duration::from_secs(30), self.engine.wait())
            .await
            .expect("it ends")
    }

    pub(crate) async fn stop(&self) -> ExitReport {
        self.engine.stop(StopStage::Finish, true);
        self.ends().await
    }
}

pub(crate) fn reads(path: impl AsRef<std::path::Path>) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// A desired graph that is being written down.
#[derive(Clone, Default)]
pub(crate) struct Graph(DesiredGraph);

impl Graph {
    pub(crate) fn with(
        mut self,
        kind: &str,
        name: &str,
        parameters: &[(&'static str, Value)],
        change: impl FnOnce(&mut MetaParameters),
    ) -> Graph {
        let spec = KINDS.iter().find(|spec| spec.schema.kind == kind).unwrap();
        let mut meta = MetaParameters::default();
        change(&mut meta);
        let id = ResourceId::new(kind, name);
        let resource = DesiredResource {
            id: id.clone(),
            schema: spec.schema,
            parameters: Parameters::new(parameters.iter().cloned()),
            meta: meta.into(),
            span: Span::new(FileId(0), 0, 0),
            parameter_spans: Arc::new([]),
            chain: None,
            members: DesiredMembers::default(),
        };
        self.0.resources.insert(id, Arc::new(resource));
        self
    }

    pub(crate) fn keep(self, name: &str, content: &str) -> Graph {
        self.keep_as(name, content, |_| {})
    }

    pub(crate) fn keep_as(
        self,
        name: &str,
        content: &str,
        change: impl FnOnce(&mut MetaParameters),
    ) -> Graph {
        self.with("keep", name, &[("content", Value::str(content))], change)
    }

    pub(crate) fn edge(mut self, from: (&str, &str), to: (&str, &str), notify: bool, send: bool) -> Graph {
        let (from, to) = (ResourceId::new(from.0, from.1), ResourceId::new(to.0, to.1));
        let send = if send {
            vec![("content".into(), "content".into())]
        } else {
            Vec::new()
        };
        let edge = DesiredEdge {
            from: from.clone(),
            to: to.clone(),
            notify,
            send,
            span: Span::new(FileId(0), 0, 0),
            parts: None,
        };
        self.0.edges.insert((from, to), Arc::new(edge));
        self
    }

    pub(crate) fn without(mut self, kind: &str, name: &str) -> Graph {
        self.0.resources.remove(&ResourceId::new(kind, name));
        self
    }
}

impl Graph {
    pub(crate) fn desired(self) -> DesiredGraph {
        self.0
    }
}
