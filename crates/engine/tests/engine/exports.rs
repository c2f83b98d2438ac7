//! Exporting to a store that is slow, away, or in the way.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use setpoint_engine::{Event, EventKind, ExportChange, ExportKey, ExportStore, Failure, async_trait};
use setpoint_graph::MetaParameters;
use tokio::sync::Semaphore;

use super::rig::{Graph, Rig, reads};

/// A store that takes as many batches as it has permits.
struct Store {
    permits: Semaphore,
    records: Mutex<BTreeMap<String, String>>,
    batches: Mutex<Vec<usize>>,
}

impl Store {
    fn new(permits: usize) -> Arc<Store> {
        Arc::new(Store {
            permits: Semaphore::new(permits),
            records: Mutex::default(),
            batches: Mutex::default(),
        })
    }

    fn names(&self) -> Vec<String> {
        self.records.lock().unwrap().keys().cloned().collect()
    }
}

#[async_trait]
impl ExportStore for Store {
    async fn exported(&self) -> Result<Vec<ExportKey>, Failure> {
        Ok(Vec::new())
    }

    async fn change(&self, changes: Vec<ExportChange>) -> Vec<Result<(), Failure>> {
        let permit = self.permits.acquire().await;
        permit.expect("nobody closes it").forget();
        self.batches.lock().unwrap().push(changes.len());
        let mut records = self.records.lock().unwrap();
        for change in &changes {
            let name = change.key.resource.name.to_string();
            match &change.data {
                Some(data) => drop(records.insert(name, data.to_string())),
                None => drop(records.remove(&name)),
            }
        }
        changes.iter().map(|_| Ok(())).collect()
    }
}

fn rig(store: &Arc<Store>) -> Rig {
    let store: Arc<dyn ExportStore> = store.clone();
    Rig::with(|options| {
        options.exports = Some(store);
        options.machine.converge = Some(Duration::from_millis(20));
        options.threads = Some(2);
    })
}

fn exported(meta: &mut MetaParameters) {
    meta.export = vec!["*".to_owned()];
}

fn is(event: &Event, name: &str, what: &str) -> bool {
    event.name.as_deref() == Some(name) && event.what.name() == what
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_away_holds_up_who_exports_and_no_thread() {
    let store = Store::new(0);
    let mut rig = rig(&store);
    let files: Vec<String> = (0..20)
        .map(|number| rig.name(&format!("exported{number}")))
        .collect();
    let mut graph = Graph::default();
    for file in &files {
        graph = graph.keep_as(file, "x", exported);
    }
    let (alone, behind) = (rig.name("alone"), rig.name("behind"));
    let graph = graph.keep(&alone, "x").keep(&behind, "x");
    let graph = graph.edge(("keep", &files[0]), ("keep", &behind), false, false);
    rig.accept(&graph).await;
    // There are two threads, and twenty runs that wait.
    rig.run_of(&alone).await;
    std::fs::write(&alone, "drift").unwrap();
    rig.until(|event| is(event, &alone, "repaired")).await;
    // No event tells that a file is right before its export is stored.
    let is_right = async {
        while !std::fs::read_to_string(&files[3]).is_ok_and(|text| text == "x") {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let _ = tokio::time::timeout(Duration::from_secs(20), is_right).await;
    assert_eq!(
        reads(std::path::Path::new(&files[3])),
        "x",
        "what is exported is right already"
    );
    assert!(
        !std::path::Path::new(&behind).exists(),
        "it comes after what is exported"
    );
    store.permits.add_permits(100);
    rig.converged().await;
    assert_eq!(store.names().len(), 20);
    assert!(std::path::Path::new(&behind).exists());
    // All that wait while the store is at work are written together.
    let batches = store.batches.lock().unwrap().clone();
    assert!(batches.len() <= 3, "{batches:?}");
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_may_take_so_long_and_no_longer_does_not_wait_for_the_store() {
    let store = Store::new(0);
    let mut rig = rig(&store);
    let file = rig.name("file");
    let graph = Graph::default().keep_as(&file, "x", |meta| {
        exported(meta);
        (meta.timeout, meta.retry, meta.delay) = (50, -1, 10);
    });
    rig.accept(&graph).await;
    let seen = rig.until(|event| is(event, &file, "backing off")).await;
    let EventKind::BackingOff { error, .. } = &seen.last().unwrap().what else {
        panic!("it was looked for");
    };
    assert_eq!(&**error, "export: timeout after 0.05 seconds");
    store.permits.add_permits(100);
    rig.converged().await;
    assert_eq!(store.names(), [file]);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_left_the_program_while_the_store_was_away_is_not_there_in_the_end() {
    let store = Store::new(0);
    let mut rig = rig(&store);
    let (file, other) = (rig.name("file"), rig.name("other"));
    let graph = Graph::default().keep_as(&file, "x", exported);
    rig.accept(&graph).await;
    rig.until(|event| is(event, &file, "started run")).await;
    // Its run waits; it leaves the program, and then the store is back.
    rig.accept(&Graph::default().keep_as(&other, "x", exported)).await;
    store.permits.add_permits(100);
    rig.until(|event| is(event, &other, "exported")).await;
    rig.converged().await;
    // The end of the process waits until what is no longer exported has left.
    rig.stop().await;
    assert_eq!(store.names(), [other]);
}
