//! What every store does. Each case has keys of its own, in a store that others may use, too.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use setpoint_world::{
    Batch, Change, Key, LeaseId, MOST_OPERATIONS, Operation, Outcome, Revision, Selection, Snapshot, State,
    Store, StoreError, Transaction, Watch, Watched,
};

/// How long anything may take before a test gives up.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

type Shared = Arc<dyn Store>;
type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

type Case = fn(Shared) -> Running;

/// All cases, by name.
const CASES: &[(&str, Case)] = &[
    ("keys are set and read with their revisions", |store| {
        Box::pin(keys(store))
    }),
    ("what changes nothing is no revision", |store| {
        Box::pin(nothing(store))
    }),
    ("conditions are met or nothing is written", |store| {
        Box::pin(conditions(store))
    }),
    ("of many who want to be first one is", |store| {
        Box::pin(first(store))
    }),
    ("a transaction that nobody could do is refused", |store| {
        Box::pin(impossible(store))
    }),
    ("changes are followed from any revision on", |store| {
        Box::pin(followed(store))
    }),
    ("a watch concerns what it selects", |store| {
        Box::pin(selected(store))
    }),
    ("keys go with their lease", |store| Box::pin(leased(store))),
    ("a lease that nobody holds runs out", |store| {
        Box::pin(runs_out(store))
    }),
    ("any bytes are a value, and any text a key", |store| {
        Box::pin(any_text(store))
    }),
    ("a million bytes are a value", |store| Box::pin(large(store))),
];

/// Runs all cases, each with a store that `make` gives by the name of the case.
pub(crate) fn run(make: impl Fn(&str) -> Shared) {
    let runtime = runtime();
    for (name, case) in CASES {
        let store = runtime.block_on(async { make(name) });
        let done = runtime.block_on(async { tokio::time::timeout(LIMIT, tokio::spawn(case(store))).await });
        match done {
            Ok(Ok(())) => {}
            Ok(Err(panic)) => panic!("{name}: {panic}"),
            Err(_) => panic!("{name}: it takes longer than {LIMIT:?}"),
        }
    }
}

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}

pub(crate) fn key(text: &str) -> Key {
    Key::new(text).unwrap()
}

pub(crate) fn put(name: &str, value: &str) -> Operation {
    Operation::put(key(name), value.as_bytes())
}

pub(crate) async fn write(store: &dyn Store, operations: impl IntoIterator<Item = Operation>) -> Revision {
    match store.transact(Transaction::of(operations)).await.unwrap() {
        Outcome::Done(revision) => revision,
        Outcome::Refused(_) => panic!("there was no condition"),
    }
}

pub(crate) async fn text(store: &dyn Store, name: &str) -> Option<String> {
    let found = store.read(&[key(name).into()]).await.unwrap();
    found.all().next().map(|entry| entry.text().unwrap().to_owned())
}

/// The next change, whatever else is heard before.
pub(crate) async fn changed(watch: &mut Watch) -> Batch {
    loop {
        if let Watched::Changed(batch) = watch.next().await {
            return batch;
        }
    }
}

/// A batch, as `KEY=VALUE` and `-KEY`.
pub(crate) fn shown(batch: &Batch) -> String {
    let shown = batch.changes.iter().map(|change| match change {
        Change::Put(entry) => format!("{}={}", entry.key, entry.text().unwrap_or("?")),
        Change::Deleted(key) => format!("-{key}"),
    });
    shown.collect::<Vec<_>>().join(" ")
}

async fn now(store: &dyn Store) -> Revision {
    store.read(&[Selection::prefix("")]).await.unwrap().revision
}

async fn keys(store: Shared) {
    let store = &*store;
    let one = write(
        store,
        [put("/a/2", "two"), put("/a/1", "one"), put("/b", "other")],
    )
    .await;
    let two = write(store, [put("/a/1", "1")]).await;
    assert!(two > one);
    let Snapshot { revision, entries } = store
        .read(&[Selection::prefix("/a/"), key("/b").into(), key("/c").into()])
        .await
        .unwrap();
    assert_eq!(revision, two);
    let found: Vec<Vec<(String, String, Revision, Revision)>> = entries
        .iter()
        .map(|entries| {
            let entry = entries.iter();
            entry
                .map(|entry| {
                    (
                        entry.key.to_string(),
                        entry.text().unwrap().to_owned(),
                        entry.created,
                        entry.modified,
                    )
                })
                .collect()
        })
        .collect();
    let is =
        |key: &str, value: &str, created, modified| (key.to_owned(), value.to_owned(), created, modified);
    assert_eq!(
        found,
        [
            vec![is("/a/1", "1", one, two), is("/a/2", "two", one, one)],
            vec![is("/b", "other", one, one)],
            vec![]
        ]
    );
    let names = async |prefix| store.keys(prefix).await.unwrap();
    assert_eq!(names("/a/").await, [key("/a/1"), key("/a/2")]);
    assert_eq!(names("/none").await, []);
    write(store, [Operation::Delete(key("/a/1").into())]).await;
    let again = write(store, [put("/a/1", "back")]).await;
    let found = store.read(&[key("/a/1").into()]).await.unwrap();
    assert_eq!(found.all().next().unwrap().created, again, "it came anew");
}

async fn nothing(store: Shared) {
    let store = &*store;
    let before = write(store, [put("/k", "v")]).await;
    let after = write(store, [Operation::Delete(key("/none").into())]).await;
    assert_eq!(after, before);
    assert_eq!(write(store, []).await, before);
    // The same value once more is a change.
    assert_eq!(write(store, [put("/k", "v")]).await, Revision(before.0 + 1));
    let all = write(
        store,
        [
            put("/x", "1"),
            put("/y", "1"),
            Operation::Delete(Selection::prefix("/k")),
        ],
    )
    .await;
    assert_eq!(all, Revision(before.0 + 2), "one transaction is one revision");
}

async fn conditions(store: Shared) {
    let store = &*store;
    let first = write(store, [put("/k", "v")]).await;
    let second = write(store, [put("/k", "w")]).await;
    for (name, is, holds) in [
        ("/k", State::Absent, false),
        ("/none", State::Absent, true),
        ("/k", State::Present, true),
        ("/none", State::Present, false),
        ("/k", State::Value(b"w"[..].into()), true),
        ("/k", State::Value(b"v"[..].into()), false),
        ("/none", State::Value(b""[..].into()), false),
        ("/k", State::Created(first), true),
        ("/k", State::Created(second), false),
        ("/k", State::Modified(second), true),
        ("/k", State::Modified(first), false),
        ("/none", State::Modified(second), false),
    ] {
        let shown = format!("{name} {is:?}");
        let before = text(store, "/done").await;
        let transaction = Transaction::of([put("/done", &shown)])
            .when(key(name), is)
            .otherwise(key("/k"));
        match store.transact(transaction).await.unwrap() {
            Outcome::Done(_) => assert!(holds, "{shown}"),
            Outcome::Refused(found) => {
                assert!(!holds, "{shown}");
                assert_eq!(found.all().next().unwrap().text(), Some("w"));
                assert_eq!(text(store, "/done").await, before, "{shown}");
            }
        }
    }
    let both = Transaction::of([put("/done", "both")])
        .when(key("/k"), State::Present)
        .when(key("/none"), State::Present);
    assert!(!store.transact(both).await.unwrap().is_done());
}

async fn first(store: Shared) {
    let tries = (0..20).map(|number| {
        let store = store.clone();
        tokio::spawn(async move {
            let name = number.to_string();
            let mine = Transaction::of([put("/leader", &name)]).when(key("/leader"), State::Absent);
            store.transact(mine.otherwise(key("/leader"))).await.unwrap()
        })
    });
    let mut winners = 0;
    let mut seen = Vec::new();
    for done in tries.collect::<Vec<_>>() {
        match done.await.unwrap() {
            Outcome::Done(_) => winners += 1,
            Outcome::Refused(found) => seen.extend(found.all().next().unwrap().text().map(str::to_owned)),
        }
    }
    assert_eq!(winners, 1);
    let leader = text(&*store, "/leader").await.unwrap();
    assert!(seen.iter().all(|name| *name == leader), "{seen:?} {leader}");
}

async fn impossible(store: Shared) {
    let store = &*store;
    let before = now(store).await;
    let twice = Transaction::of([put("/k", "1"), put("/k", "2")]);
    let error = store.transact(twice).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the store says: /k is changed twice in one transaction"
    );
    let overlapping = Transaction::of([put("/k/1", "1"), Operation::Delete(Selection::prefix("/k/"))]);
    assert!(matches!(
        store.transact(overlapping).await,
        Err(StoreError::Refused { .. })
    ));
    let many = (0..=MOST_OPERATIONS).map(|number| put(&format!("/many/{number}"), ""));
    assert!(matches!(
        store.transact(Transaction::of(many)).await,
        Err(StoreError::TooLarge { .. })
    ));
    let most = (0..MOST_OPERATIONS).map(|number| put(&format!("/many/{number}"), ""));
    assert_eq!(now(store).await, before);
    write(store, most).await;
    let nobodys = Operation::put_leased(key("/k"), *b"v", LeaseId(987_654_321));
    let error = store.transact(Transaction::of([nobodys])).await.unwrap_err();
    assert_eq!(error, StoreError::LeaseEnded);
}

async fn followed(store: Shared) {
    let store = &*store;
    let before = now(store).await;
    let mut early = store.watch(Selection::prefix("/f/"), before);
    let one = write(store, [put("/f/b", "1"), put("/f/a", "1")]).await;
    let two = write(store, [put("/f/a", "2")]).await;
    let three = write(store, [Operation::Delete(Selection::prefix("/f/"))]).await;
    let wanted = [(one, "/f/b=1 /f/a=1"), (two, "/f/a=2"), (three, "-/f/a -/f/b")];
    for after in 0..=wanted.len() {
        // From before everything, and from after each of them.
        let from = after.checked_sub(1).map_or(before, |index| wanted[index].0);
        let mut late = store.watch(Selection::prefix("/f/"), from);
        for (revision, changes) in &wanted[after..] {
            let batch = changed(&mut late).await;
            assert_eq!((batch.revision, shown(&batch).as_str()), (*revision, *changes));
        }
        if after == wanted.len() {
            let four = write(store, [put("/f/c", "new")]).await;
            assert_eq!(changed(&mut late).await.revision, four);
        }
    }
    for (revision, changes) in wanted {
        let batch = changed(&mut early).await;
        assert_eq!((batch.revision, shown(&batch).as_str()), (revision, changes));
    }
    assert_eq!(shown(&changed(&mut early).await), "/f/c=new");
}

async fn selected(store: Shared) {
    let store = &*store;
    let before = now(store).await;
    let mut key_alone = store.watch(key("/s/a").into(), before);
    let mut below = store.watch(Selection::prefix("/s/a/"), before);
    let mut all = store.watch(Selection::prefix(""), before);
    write(store, [put("/s/a", "1"), put("/s/a/x", "1"), put("/s/ab", "1")]).await;
    write(store, [put("/s/ab", "2")]).await;
    write(store, [put("/s/a", "3"), put("/s/a/x", "3")]).await;
    assert_eq!(shown(&changed(&mut key_alone).await), "/s/a=1");
    assert_eq!(shown(&changed(&mut key_alone).await), "/s/a=3");
    assert_eq!(shown(&changed(&mut below).await), "/s/a/x=1");
    assert_eq!(shown(&changed(&mut below).await), "/s/a/x=3");
    assert_eq!(shown(&changed(&mut all).await), "/s/a=1 /s/a/x=1 /s/ab=1");
    assert_eq!(shown(&changed(&mut all).await), "/s/ab=2");
    assert_eq!(shown(&changed(&mut all).await), "/s/a=3 /s/a/x=3");
}

async fn leased(store: Shared) {
    let store = &*store;
    let lease = store.lease(Duration::from_secs(30)).await.unwrap();
    assert!(lease.time_to_live() >= Duration::from_secs(30) && !lease.is_lost());
    let other = store.lease(Duration::from_secs(30)).await.unwrap();
    assert_ne!(lease.id(), other.id());
    let id = lease.id();
    let leased = |name: &str, id| Operation::put_leased(key(name), *b"v", id);
    write(
        store,
        [
            leased("/l/1", id),
            leased("/l/2", id),
            leased("/l/3", other.id()),
            put("/l/4", "v"),
        ],
    )
    .await;
    // Who sets it without a lease keeps it.
    let before = write(store, [put("/l/2", "kept")]).await;
    let found = store
        .read(&[key("/l/1").into(), key("/l/2").into()])
        .await
        .unwrap();
    let leases: Vec<_> = found.all().map(|entry| entry.lease).collect();
    assert_eq!(leases, [Some(id), None]);
    let mut watch = store.watch(Selection::prefix("/l/"), before);
    lease.revoke().await.unwrap();
    assert_eq!(shown(&changed(&mut watch).await), "-/l/1");
    let left = store.read(&[Selection::prefix("/l/")]).await.unwrap();
    let left: Vec<String> = left.all().map(|entry| entry.key.to_string()).collect();
    assert_eq!(left, ["/l/2", "/l/3", "/l/4"]);
    let late = store.transact(Transaction::of([leased("/l/5", id)])).await;
    assert_eq!(late, Err(StoreError::LeaseEnded));
    assert!(!other.is_lost());
}

async fn runs_out(store: Shared) {
    let store = &*store;
    let kept = store.lease(Duration::from_secs(1)).await.unwrap();
    let dropped = store.lease(Duration::from_secs(1)).await.unwrap();
    let before = write(
        store,
        [
            Operation::put_leased(key("/r/kept"), *b"v", kept.id()),
            Operation::put_leased(key("/r/dropped"), *b"v", dropped.id()),
        ],
    )
    .await;
    let mut watch = store.watch(Selection::prefix("/r/"), before);
    drop(dropped);
    assert_eq!(shown(&changed(&mut watch).await), "-/r/dropped");
    assert!(!kept.is_lost());
    assert_eq!(text(store, "/r/kept").await.as_deref(), Some("v"));
}

async fn any_text(store: Shared) {
    let store = &*store;
    let bytes = [0, 255, 10, 13, 0, 128];
    write(
        store,
        [
            Operation::put(key("/t/ä\n\0 😀"), bytes),
            put("/t/", "slash"),
            put("/t/\u{10FFFF}", "last"),
        ],
    )
    .await;
    let found = store.read(&[Selection::prefix("/t/")]).await.unwrap();
    let found: Vec<(&str, &[u8])> = found
        .all()
        .map(|entry| (entry.key.as_str(), &*entry.value))
        .collect();
    assert_eq!(
        found,
        [
            ("/t/", &b"slash"[..]),
            ("/t/ä\n\0 😀", &bytes),
            ("/t/\u{10FFFF}", b"last")
        ]
    );
    write(store, [put("/u", "")]).await;
    assert_eq!(text(store, "/u").await.as_deref(), Some(""));
    assert!(Key::new("").is_err());
}

async fn large(store: Shared) {
    let store = &*store;
    let before = now(store).await;
    let value: Vec<u8> = (0..1_000_000_u32).map(|number| (number % 251) as u8).collect();
    let many = (0..8).map(|number| (format!("/large/{number}"), value.clone()));
    let mut watch = store.watch(Selection::prefix("/large/"), before);
    for (name, value) in many {
        write(store, [Operation::put(key(&name), value)]).await;
    }
    // More than a message has by default, in one answer.
    let found = store.read(&[Selection::prefix("/large/")]).await.unwrap();
    assert!(found.entries[0].len() == 8 && found.all().all(|entry| *entry.value == *value));
    for _ in 0..8 {
        let batch = changed(&mut watch).await;
        assert!(matches!(&batch.changes[0], Change::Put(entry) if *entry.value == *value));
    }
}
