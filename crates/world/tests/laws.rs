//! Random histories, against a naive store.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use setpoint_world::{
    Batch, Change, Condition, MemoryStore, Operation, Outcome, Revision, Selection, State, Store,
    Transaction, Watched,
};

use crate::suite::{key, runtime};

/// What is done to a store.
#[derive(Debug, Clone)]
enum Step {
    Transact(Transaction),
    /// Forget everything up to now.
    Compact,
    /// Take this many things that the watch has heard.
    Hear(usize),
}

fn name() -> impl Strategy<Value = String> {
    "/[ab]{1,2}"
}

fn selection() -> impl Strategy<Value = Selection> {
    prop_oneof![
        name().prop_map(|name| key(&name).into()),
        Just(Selection::prefix("/a")),
        Just(Selection::prefix("")),
    ]
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        3 => (name(), 0..4_u8).prop_map(|(name, value)| Operation::put(key(&name), [value])),
        1 => selection().prop_map(Operation::Delete),
    ]
}

fn condition() -> impl Strategy<Value = Condition> {
    let state = prop_oneof![
        Just(State::Absent),
        Just(State::Present),
        (0..4_u8).prop_map(|value| State::Value([value][..].into())),
    ];
    (name(), state).prop_map(|(name, is)| Condition::new(key(&name), is))
}

fn step() -> impl Strategy<Value = Step> {
    let transaction = (
        prop::collection::vec(condition(), 0..2),
        prop::collection::vec(operation(), 0..3),
    );
    prop_oneof![
        8 => transaction.prop_map(|(conditions, operations)| {
            let transaction = Transaction { conditions, ..Transaction::of(operations) };
            Step::Transact(transaction.otherwise(Selection::prefix("")))
        }),
        1 => Just(Step::Compact),
        2 => (0..3_usize).prop_map(Step::Hear),
    ]
}

/// The naive one: a map.
#[derive(Default)]
struct Naive {
    keys: BTreeMap<String, Vec<u8>>,
}

impl Naive {
    /// What a transaction does, without revisions; none where a condition is not met.
    fn transact(&mut self, transaction: &Transaction) -> Option<bool> {
        let met = |condition: &Condition| {
            let value = self.keys.get(condition.key.as_str());
            match &condition.is {
                State::Absent => value.is_none(),
                State::Present => value.is_some(),
                State::Value(wanted) => value.is_some_and(|value| **value == **wanted),
                State::Modified(_) | State::Created(_) => unreachable!("none is made"),
            }
        };
        if !transaction.conditions.iter().all(met) {
            return None;
        }
        let mut is_changed = false;
        for operation in &transaction.operations {
            match operation {
                Operation::Put(put) => {
                    self.keys.insert(put.key.to_string(), put.value.to_vec());
                    is_changed = true;
                }
                Operation::Delete(selection) => {
                    let before = self.keys.len();
                    self.keys.retain(|name, _| !selection.holds(name));
                    is_changed |= self.keys.len() < before;
                }
            }
        }
        Some(is_changed)
    }
}

async fn check(store: Arc<dyn Store>, compact: impl AsyncFn(), steps: Vec<Step>) {
    let mut naive = Naive::default();
    let start = store.read(&[]).await.map_or(Revision(0), |found| found.revision);
    let mut revision = start;
    let mut watch = store.watch(Selection::prefix(""), start);
    let mut heard = BTreeMap::new();
    let mut told = start;
    for step in steps {
        match step {
            Step::Compact => compact().await,
            Step::Hear(count) => {
                for _ in 0..count {
                    if told >= revision {
                        break;
                    }
                    match watch.next().await {
                        Watched::SetBack(revision) => panic!("it loses nothing: {revision}"),
                        Watched::Changed(batch) => {
                            assert!(batch.revision > told, "each revision once, in order");
                            told = batch.revision;
                            apply(&mut heard, &batch);
                        }
                        Watched::Compacted(up_to) => {
                            let found = store.read(&[Selection::prefix("")]).await.unwrap();
                            let all = found
                                .all()
                                .map(|entry| (entry.key.to_string(), entry.value.to_vec()));
                            heard = all.collect();
                            told = told.max(up_to);
                        }
                        Watched::Away(_) | Watched::Back => {}
                    }
                }
            }
            Step::Transact(transaction) => {
                let answer = store.transact(transaction.clone()).await;
                let Ok(answer) = answer else {
                    // What nobody could do changes nothing.
                    continue;
                };
                let wanted = naive.transact(&transaction);
                match (answer, wanted) {
                    (Outcome::Done(is), Some(is_changed)) => {
                        assert_eq!(is.0, revision.0 + u64::from(is_changed), "{transaction:?}");
                        revision = is;
                    }
                    (Outcome::Refused(found), None) => {
                        assert_eq!(found.revision, revision);
                        assert_eq!(found.entries[0].len(), naive.keys.len());
                    }
                    (answer, wanted) => panic!("{answer:?} where {wanted:?} was right"),
                }
                let found = store.read(&[Selection::prefix("")]).await.unwrap();
                let all = found
                    .all()
                    .map(|entry| (entry.key.to_string(), entry.value.to_vec()));
                assert_eq!(all.collect::<BTreeMap<_, _>>(), naive.keys);
            }
        }
    }
    // In the end whoever follows knows what there is.
    let last = store
        .transact(Transaction::of([Operation::put(key("/end"), *b"x")]))
        .await
        .unwrap();
    let Outcome::Done(last) = last else {
        unreachable!("it has no condition")
    };
    while told < last {
        match watch.next().await {
            Watched::SetBack(revision) => panic!("it loses nothing: {revision}"),
            Watched::Changed(batch) => {
                assert!(batch.revision > told);
                told = batch.revision;
                apply(&mut heard, &batch);
            }
            Watched::Compacted(up_to) => {
                let found = store.read(&[Selection::prefix("")]).await.unwrap();
                heard = found
                    .all()
                    .map(|entry| (entry.key.to_string(), entry.value.to_vec()))
                    .collect();
                told = told.max(up_to);
            }
            Watched::Away(_) | Watched::Back => {}
        }
    }
    naive.keys.insert("/end".to_owned(), b"x".to_vec());
    assert_eq!(heard, naive.keys);
}

fn apply(keys: &mut BTreeMap<String, Vec<u8>>, batch: &Batch) {
    for change in &batch.changes {
        match change {
            Change::Put(entry) => drop(keys.insert(entry.key.to_string(), entry.value.to_vec())),
            Change::Deleted(key) => drop(keys.remove(key.as_str())),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_store_in_memory_is_as_a_naive_one(steps in prop::collection::vec(step(), 0..40)) {
        let store = MemoryStore::new();
        let compacted = store.clone();
        runtime().block_on(check(Arc::new(store), async || compacted.compact(), steps));
    }
}

#[test]
fn a_store_in_a_file_is_as_a_naive_one() {
    let place = crate::file::Place::new();
    let runtime = runtime();
    let mut runner = TestRunner::deterministic();
    for number in 0..60 {
        let steps = prop::collection::vec(step(), 0..40).new_tree(&mut runner);
        // What one writes, another one hears, too.
        let (store, other) = (place.store(&number.to_string()), place.store(&number.to_string()));
        runtime.block_on(async {
            let steps = steps.unwrap().current();
            check(Arc::new(store), async || other.compact().await.unwrap(), steps).await;
        });
    }
}

#[test]
fn an_etcd_is_as_a_naive_one() {
    if !setpoint_testing::etcd::has_etcd("an_etcd_is_as_a_naive_one") {
        return;
    }
    let cluster = setpoint_testing::etcd::EtcdCluster::start(1);
    let runtime = runtime();
    let mut runner = TestRunner::deterministic();
    for number in 0..20 {
        let steps = prop::collection::vec(step(), 30)
            .new_tree(&mut runner)
            .unwrap()
            .current();
        runtime.block_on(async {
            let store = crate::etcd::store(&cluster, &format!("/law{number}"));
            check(store, async || cluster.compact(), steps).await;
        });
    }
}
