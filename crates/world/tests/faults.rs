//! Members that fail, and what a host notices of it.

use std::time::Duration;

use setpoint_testing::etcd::{EtcdCluster, has_etcd};
use setpoint_world::{
    MemoryStore, Operation, Outcome, Revision, Selection, Store, StoreError, Transaction, Watch, Watched,
};

use crate::etcd::store;
use crate::suite::{LIMIT, changed, key, put, runtime, shown, text, write};

/// Writes a number until that succeeds; whether it was written before a failed try, the key says.
async fn insist(store: &dyn Store, number: u32) {
    let name = format!("/n/{number:03}");
    loop {
        let once = Transaction::of([put(&name, "x")]).when(key(&name), setpoint_world::State::Absent);
        match store.transact(once).await {
            Ok(Outcome::Done(_) | Outcome::Refused(_)) => return,
            Err(error) => assert!(error.is_passing(), "{error}"),
        }
    }
}

/// Each number comes once, in order, whatever happens on the way.
async fn expect_all(watch: &mut Watch, count: u32) {
    let mut last = Revision(0);
    for number in 0..count {
        let batch = changed(watch).await;
        assert!(batch.revision > last);
        last = batch.revision;
        assert_eq!(shown(&batch), format!("/n/{number:03}=x"));
    }
}

pub(crate) fn in_time(work: impl Future<Output = ()>) {
    in_times(2, work);
}

/// In so many times of what anything may take.
pub(crate) fn in_times(times: u32, work: impl Future<Output = ()>) {
    runtime().block_on(async {
        tokio::time::timeout(LIMIT * times, work)
            .await
            .expect("it takes too long");
    });
}

#[test]
fn a_member_that_is_killed_is_not_missed() {
    if !has_etcd("a_member_that_is_killed_is_not_missed") {
        return;
    }
    let mut cluster = EtcdCluster::start(3);
    in_time(async {
        let store = store(&cluster, "/ns");
        let mut watch = store.watch(Selection::prefix("/n/"), Revision(0));
        let mut next = 0;
        for round in 0..6 {
            for _ in 0..5 {
                insist(&*store, next).await;
                next += 1;
            }
            // The leader each second time.
            let victim = if round % 2 == 0 {
                cluster.leader()
            } else {
                round / 2
            };
            cluster.kill_member(victim);
            for _ in 0..5 {
                insist(&*store, next).await;
                next += 1;
            }
            cluster.start_member(victim);
            cluster.wait_until_ready();
        }
        expect_all(&mut watch, next).await;
    });
}

#[test]
fn a_leader_that_is_frozen_is_left() {
    if !has_etcd("a_leader_that_is_frozen_is_left") {
        return;
    }
    let cluster = EtcdCluster::start(3);
    in_time(async {
        let store = store(&cluster, "/ns");
        let mut watch = store.watch(Selection::prefix("/n/"), Revision(0));
        insist(&*store, 0).await;
        let leader = cluster.leader();
        cluster.signal_member(leader, "STOP");
        insist(&*store, 1).await;
        expect_all(&mut watch, 2).await;
        cluster.signal_member(leader, "CONT");
        insist(&*store, 2).await;
        assert_eq!(shown(&changed(&mut watch).await), "/n/002=x");
    });
}

#[test]
fn a_store_that_is_away_is_told_of_and_found_again() {
    if !has_etcd("a_store_that_is_away_is_told_of_and_found_again") {
        return;
    }
    let mut cluster = EtcdCluster::start(1);
    in_time(async {
        let store = store(&cluster, "/ns");
        let mut watch = store.watch(Selection::prefix("/k"), Revision(0));
        let lease = store.lease(Duration::from_secs(3600)).await.unwrap();
        write(
            &*store,
            [
                put("/k", "1"),
                Operation::put_leased(key("/leased"), *b"v", lease.id()),
            ],
        )
        .await;
        assert_eq!(shown(&changed(&mut watch).await), "/k=1");
        cluster.kill_member(0);
        let Watched::Away(StoreError::Away { .. }) = watch.next().await else {
            panic!("it is away")
        };
        let error = store.read(&[]).await.unwrap_err();
        let said = error.to_string();
        let endpoint = &cluster.endpoints()[0];
        assert_eq!(
            said,
            format!("the store does not answer: Connection refused ({endpoint})")
        );
        cluster.start_member(0);
        cluster.wait_until_ready();
        // Whoever asks reaches it at once, and what was followed goes on.
        cluster.control(&["put", "/ns/k", "2"]);
        let mut is_back = false;
        loop {
            match watch.next().await {
                Watched::Back => is_back = true,
                Watched::Changed(batch) => {
                    assert!(is_back && shown(&batch) == "/k=2", "{batch:?}");
                    break;
                }
                Watched::Away(_) | Watched::Compacted(_) => {}
                Watched::SetBack(revision) => panic!("nothing is lost: {revision}"),
            }
        }
        assert!(!lease.is_lost());
        assert_eq!(text(&*store, "/leased").await.as_deref(), Some("v"));
    });
}

#[test]
fn what_was_forgotten_meanwhile_is_read_anew() {
    if !has_etcd("what_was_forgotten_meanwhile_is_read_anew") {
        return;
    }
    let cluster = EtcdCluster::start(1);
    in_time(async {
        let store = store(&cluster, "/ns");
        let seen = write(&*store, [put("/k", "1")]).await;
        write(&*store, [put("/k", "2")]).await;
        let last = write(&*store, [put("/other", "3")]).await;
        cluster.compact();
        let mut watch = store.watch(Selection::prefix("/k"), seen);
        let Watched::Compacted(up_to) = watch.next().await else {
            panic!("it was forgotten")
        };
        assert_eq!(up_to, last);
        let after = write(&*store, [put("/k", "4")]).await;
        let batch = changed(&mut watch).await;
        assert_eq!((batch.revision, shown(&batch).as_str()), (after, "/k=4"));
        // What was seen before it was forgotten is nobody's loss.
        cluster.compact();
        let mut watch = store.watch(Selection::prefix("/k"), after);
        write(&*store, [put("/k", "5")]).await;
        assert!(matches!(watch.next().await, Watched::Changed(batch) if shown(&batch) == "/k=5"));
    });
}

#[test]
fn a_store_that_has_lost_what_it_had_is_told_of_by_all_that_follow_it() {
    if !has_etcd("a_store_that_has_lost_what_it_had_is_told_of_by_all_that_follow_it") {
        return;
    }
    let mut cluster = EtcdCluster::start(1);
    in_time(async {
        let store = store(&cluster, "/ns");
        let early = write(&*store, [put("/quiet/k", "1")]).await;
        // The one has seen little of what there was, and more is soon there again; the other one has seen all of it.
        let mut quiet = store.watch(Selection::prefix("/quiet/"), early);
        let mut busy = store.watch(Selection::prefix("/n/"), early);
        for number in 0..30 {
            insist(&*store, number).await;
        }
        expect_all(&mut busy, 30).await;
        cluster.kill_member(0);
        cluster.lose_data(0);
        cluster.start_member(0);
        cluster.wait_until_ready();
        for number in 0..5 {
            cluster.control(&["put", "/ns/other", &number.to_string()]);
        }
        for watch in [&mut busy, &mut quiet] {
            loop {
                match watch.next().await {
                    Watched::SetBack(revision) => {
                        assert!(revision < Revision(30), "{revision}");
                        break;
                    }
                    Watched::Away(_) | Watched::Back => {}
                    other => panic!("{other:?}"),
                }
            }
        }
        // They go on with what comes then, and a restart that loses nothing is none of this.
        write(&*store, [put("/quiet/k", "2")]).await;
        assert_eq!(shown(&changed(&mut quiet).await), "/quiet/k=2");
        cluster.kill_member(0);
        cluster.start_member(0);
        cluster.wait_until_ready();
        write(&*store, [put("/quiet/k", "3")]).await;
        loop {
            match quiet.next().await {
                Watched::Changed(batch) => {
                    assert_eq!(shown(&batch), "/quiet/k=3");
                    break;
                }
                Watched::Away(_) | Watched::Back => {}
                other => panic!("{other:?}"),
            }
        }
    });
}

#[test]
fn a_member_that_is_behind_the_others_is_not_one_that_has_lost_anything() {
    if !has_etcd("a_member_that_is_behind_the_others_is_not_one_that_has_lost_anything") {
        return;
    }
    let mut cluster = EtcdCluster::start(3);
    in_time(async {
        let store = store(&cluster, "/ns");
        let mut watch = store.watch(Selection::prefix("/n/"), Revision(0));
        let mut next = 0;
        for round in 0..4 {
            let behind = round % 3;
            cluster.signal_member(behind, "STOP");
            for _ in 0..20 {
                insist(&*store, next).await;
                next += 1;
            }
            // Whoever follows comes to it at once.
            cluster.signal_member(behind, "CONT");
            let other = (behind + 1) % 3;
            cluster.kill_member(other);
            insist(&*store, next).await;
            next += 1;
            cluster.start_member(other);
            cluster.wait_until_ready();
        }
        // Nothing else is heard, or comes twice.
        expect_all(&mut watch, next).await;
    });
}

#[test]
fn a_lease_that_may_have_ended_is_lost() {
    if !has_etcd("a_lease_that_may_have_ended_is_lost") {
        return;
    }
    let mut cluster = EtcdCluster::start(1);
    in_time(async {
        let store = store(&cluster, "/ns");
        // One that the store ends.
        let ended = store.lease(Duration::from_secs(2)).await.unwrap();
        cluster.control(&["lease", "revoke", &ended.id().to_string()]);
        ended.lost().await;
        // One that nothing is heard of for as long as it lives.
        let silent = store.lease(Duration::from_secs(3)).await.unwrap();
        let long = store.lease(Duration::from_secs(3600)).await.unwrap();
        cluster.signal_member(0, "STOP");
        silent.lost().await;
        assert!(!long.is_lost());
        cluster.signal_member(0, "CONT");
        cluster.kill_member(0);
        cluster.start_member(0);
        cluster.wait_until_ready();
        long.revoke().await.unwrap();
    });
}

#[test]
fn a_store_in_memory_fails_as_it_is_told_to() {
    in_time(async {
        let store = MemoryStore::new();
        let mut watch = store.watch(Selection::prefix("/k"), Revision(0));
        let lease = store.lease(Duration::from_secs(3600)).await.unwrap();
        write(&store, [Operation::put_leased(key("/k"), *b"1", lease.id())]).await;
        assert_eq!(shown(&changed(&mut watch).await), "/k=1");
        store.set_away(true);
        assert!(matches!(watch.next().await, Watched::Away(_)));
        assert!(store.read(&[]).await.unwrap_err().is_passing());
        store.end_leases();
        lease.lost().await;
        store.set_away(false);
        assert_eq!(watch.next().await, Watched::Back);
        assert_eq!(shown(&changed(&mut watch).await), "-/k");
        write(&store, [put("/k", "2")]).await;
        store.compact();
        assert!(matches!(watch.next().await, Watched::Compacted(_)));
        write(&store, [put("/k", "3")]).await;
        assert_eq!(shown(&changed(&mut watch).await), "/k=3");
    });
}
