//! How the store answers: every request that goes through it is measured, and one that finds out whether it is there at all.

use std::sync::Arc;
use std::time::{Duration, Instant};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::histogram::Histogram;
use setpoint_host::sync::Mutex;
use setpoint_world::{
    Key, Lease, Outcome, Revision, Selection, Snapshot, Store, StoreError, Transaction, Watch,
};
use tokio::time::{sleep, timeout};

/// Bounds of the durations of requests, in seconds.
const DURATIONS: [f64; 8] = [0.001, 0.005, 0.025, 0.1, 0.5, 1.0, 5.0, 10.0];

/// How long a store may say nothing until it is asked, and how long it may take to answer then.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is asked of a store.
#[derive(Debug, Clone, Copy)]
pub(super) enum Operation {
    Read,
    Write,
    Lease,
}

impl Operation {
    pub(super) const ALL: [(Operation, &'static str); 3] = [
        (Operation::Read, "read"),
        (Operation::Write, "write"),
        (Operation::Lease, "lease"),
    ];
}

/// How a store has answered.
#[derive(Debug, Default)]
pub(super) struct StoreMeter {
    /// By operation.
    pub(super) operations: [Requests; 3],
    last: Mutex<Option<Last>>,
}

/// What came of the requests of one operation.
#[derive(Debug)]
pub(super) struct Requests {
    pub(super) answered: Counter,
    pub(super) refused: Counter,
    /// Without an answer.
    pub(super) away: Counter,
    pub(super) durations: Histogram,
}

/// The last that was heard, or should have been.
#[derive(Debug, Clone, Copy)]
struct Last {
    at: Instant,
    has_answered: bool,
}

impl Default for Requests {
    fn default() -> Requests {
        Requests {
            answered: Counter::default(),
            refused: Counter::default(),
            away: Counter::default(),
            durations: Histogram::new(DURATIONS),
        }
    }
}

impl StoreMeter {
    /// Whether it has answered when it was last asked; none if it never was.
    pub(super) fn is_up(&self) -> Option<bool> {
        self.last.lock().map(|last| last.has_answered)
    }

    /// Asks the store for a key whenever nothing was heard of it for a while, for ever.
    pub(super) async fn probe(&self, store: &Arc<dyn Store>, key: Key) {
        let selections = [Selection::Key(key)];
        loop {
            let heard = self.last.lock().map(|last| last.at);
            let silent = heard.map_or(PATIENCE, |at| at.elapsed());
            if let Some(rest) = PATIENCE.checked_sub(silent).filter(|rest| !rest.is_zero()) {
                sleep(rest).await;
                continue;
            }
            // The store has its own patience, and it may be longer. What it answers is measured as what everybody is answered.
            if timeout(PATIENCE, store.read(&selections)).await.is_err() {
                let requests = &self.operations[Operation::Read as usize];
                requests.durations.observe(PATIENCE.as_secs_f64());
                requests.away.inc();
                self.heard(false);
            }
        }
    }

    async fn measure<T>(
        &self,
        operation: Operation,
        request: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let began = Instant::now();
        let answer = request.await;
        let requests = &self.operations[operation as usize];
        requests.durations.observe(began.elapsed().as_secs_f64());
        let has_answered = match &answer {
            Ok(_) => {
                requests.answered.inc();
                true
            }
            Err(StoreError::Away { .. }) => {
                requests.away.inc();
                false
            }
            Err(_) => {
                requests.refused.inc();
                true
            }
        };
        self.heard(has_answered);
        answer
    }

    fn heard(&self, has_answered: bool) {
        let at = Instant::now();
        *self.last.lock() = Some(Last { at, has_answered });
    }
}

/// A store whose answers are measured.
#[derive(Debug)]
pub(super) struct MeteredStore {
    store: Arc<dyn Store>,
    meter: Arc<StoreMeter>,
}

impl MeteredStore {
    pub(super) fn new(store: Arc<dyn Store>, meter: Arc<StoreMeter>) -> MeteredStore {
        MeteredStore { store, meter }
    }
}

#[setpoint_engine::async_trait]
impl Store for MeteredStore {
    async fn read(&self, selections: &[Selection]) -> Result<Snapshot, StoreError> {
        let request = self.store.read(selections);
        self.meter.measure(Operation::Read, request).await
    }

    async fn keys(&self, prefix: &str) -> Result<Vec<Key>, StoreError> {
        let request = self.store.keys(prefix);
        self.meter.measure(Operation::Read, request).await
    }

    async fn transact(&self, transaction: Transaction) -> Result<Outcome, StoreError> {
        let request = self.store.transact(transaction);
        self.meter.measure(Operation::Write, request).await
    }

    fn watch(&self, selection: Selection, after: Revision) -> Watch {
        self.store.watch(selection, after)
    }

    async fn lease(&self, time_to_live: Duration) -> Result<Lease, StoreError> {
        let request = self.store.lease(time_to_live);
        self.meter.measure(Operation::Lease, request).await
    }
}
