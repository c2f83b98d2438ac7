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

use clap::Args;
use setpoint_engine::{Engine, EventListener};
use setpoint_world::{Key, Store};

use crate::failure::Failure;
use crate::program_state::ProgramState;
use counting::Counting;
use exposition::Exposition;
use server::Listener;
use store::{MeteredStore, StoreMeter};

/// Where it listens if nobody says otherwise.
const ADDRESS: &str = "127.0.0.1:9233";

/// Whether figures are given to Prometheus, and where.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct MetricsArguments {
    /// Give figures to Prometheus, as `http://127.0.0.1:9233/metrics`
    #[arg(long)]
    prometheus: bool,

    /// Where to listen for it: an address of this machine and a port; port 0 is one that is free, and is said [default: 127.0.0.1:9233]
    #[arg(long, value_name = "ADDRESS:PORT", requires = "prometheus")]
    prometheus_listen: Option<String>,
}

/// The figures of one run, and the socket at which they are asked for.
pub(crate) struct Metrics {
    listener: Listener,
    counting: Arc<Counting>,
    store: Arc<StoreMeter>,
}

impl Metrics {
    /// Listens, if that is wanted; who asks is answered from [`Metrics::serve`] on. `kinds` are all kinds that resources can have.
    ///
    /// # Errors
    /// When it cannot listen there.
    pub(crate) fn listen(
        arguments: &MetricsArguments,
        kinds: impl IntoIterator<Item = &'static str>,
    ) -> Result<Option<Metrics>, Failure> {
        if !arguments.prometheus {
            return Ok(None);
        }
        let address = arguments.prometheus_listen.as_deref().unwrap_or(ADDRESS);
        Ok(Some(Metrics {
            listener: Listener::bind(address)?,
            counting: Arc::new(Counting::of(kinds)),
            store: Arc::default(),
        }))
    }

    /// Where it listens, as an address that can be asked.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/metrics", self.listener.address())
    }

    /// Who is to be told of each event.
    pub(crate) fn event_listener(&self) -> EventListener {
        let counting = self.counting.clone();
        Arc::new(move |event| counting.count(event))
    }

    /// The same store, whose answers are measured.
    pub(crate) fn measure(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        Arc::new(MeteredStore::new(store, self.store.clone()))
    }

    /// Answers who asks, until it is dropped. With `probed`, a store is asked for a key now and then, so that it is known to be away also while
    /// nobody needs it.
    pub(crate) async fn serve(
        self,
        engine: Engine,
        program: ProgramState,
        probed: Option<(Arc<dyn Store>, Key)>,
    ) {
        let meter = self.store.clone();
        let probing = async move {
            match probed {
                Some((store, key)) => meter.probe(&store, key).await,
                None => std::future::pending().await,
            }
        };
        let exposition = Arc::new(Exposition::new(self.counting, self.store, engine, program));
        tokio::select! {
            () = self.listener.serve(exposition) => {}
            () = probing => {}
        }
    }
}
