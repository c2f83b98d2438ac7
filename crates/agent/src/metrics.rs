//! Figures for Prometheus: what the engine has done, how the machine stands, how the store answers, what the process takes.
//!
//! ```text
//!  engine ── each event, as it is made ──▶ counters ─┐
//!  engine, program: asked when somebody looks ───────┼─▶ exposition ──▶ server ──▶ GET /metrics
//!  store ── each request, and a probe ───▶ meter ────┘
//! ```
//!
//! Labels are kinds, and words that stand in this module: never names of resources, values, addresses or keys. So there are as many time series
//! as kinds allow, and nothing secret. All of them are there from the start, at 0.

mod counting;
mod exposition;
mod families;
mod process;
mod server;
mod store;

use std::sync::Arc;

use setpoint_engine::EventListener;
use setpoint_programs::failure::Failure;
use setpoint_programs::report::Importance;
use setpoint_world::{Key, Store};

use crate::attachment::{AgentHandle, Attached, Attachment};
use counting::Counting;
use exposition::Exposition;
use server::Listener;
use store::{MeteredStore, StoreMeter};

/// Where it listens if nobody says otherwise.
pub const ADDRESS: &str = "127.0.0.1:9233";

/// The figures of one run, and the socket at which they are asked for.
pub struct Metrics {
    listener: Listener,
    counting: Arc<Counting>,
    store: Arc<StoreMeter>,
}

impl Metrics {
    /// Listens at an address; requests are answered once the agent has started. `kinds` are all kinds that resources can have.
    ///
    /// # Errors
    /// When it cannot listen there.
    pub fn listen(address: &str, kinds: impl IntoIterator<Item = &'static str>) -> Result<Metrics, Failure> {
        Ok(Metrics {
            listener: Listener::bind(address)?,
            counting: Arc::new(Counting::of(kinds)),
            store: Arc::default(),
        })
    }

    /// Where it listens, as an address that can be asked.
    fn url(&self) -> String {
        format!("http://{}/metrics", self.listener.address())
    }

    /// Who is to be told of each event.
    pub fn event_listener(&self) -> EventListener {
        let counting = self.counting.clone();
        Arc::new(move |event| counting.count(event))
    }

    /// The same store, whose answers are measured.
    pub fn measure(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        Arc::new(MeteredStore::new(store, self.store.clone()))
    }
}

/// Gives metrics to Prometheus.
pub(crate) struct MetricsServer {
    pub(crate) metrics: Metrics,
    /// A store that is probed regularly, so that an outage is visible even if nothing uses the store.
    pub(crate) probed: Option<(Arc<dyn Store>, Key)>,
}

impl Attachment for MetricsServer {
    fn start(self: Box<Self>, agent: &AgentHandle) -> Result<Attached, Failure> {
        let MetricsServer { metrics, probed } = *self;
        let text = format!("gives figures at {}", metrics.url());
        agent.reporter.say(Importance::Notice, text);
        let meter = metrics.store.clone();
        let probing = async move {
            match probed {
                Some((store, key)) => meter.probe(&store, key).await,
                None => std::future::pending().await,
            }
        };
        let exposition = Exposition::new(
            metrics.counting,
            metrics.store,
            agent.engine.clone(),
            agent.state.clone(),
        );
        agent.runtime.spawn(async move {
            tokio::select! {
                () = metrics.listener.serve(Arc::new(exposition)) => {}
                () = probing => {}
            }
        });
        Ok(Attached::EndsWithEngine)
    }
}
