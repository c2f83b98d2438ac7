//! What can happen to a store in a file, and to the processes that share it.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use setpoint_host::files::AbsolutePath;
use setpoint_host::watch::WatchHub;
use setpoint_world::{
    Change, FileStore, Key, Operation, Outcome, Revision, Selection, State, Store, StoreError, Transaction,
    Watched,
};

use crate::faults::{in_time, in_times};
use crate::suite::{changed, key, put, runtime, shown, text, write};

/// Where stores of a test lie.
pub(crate) struct Place {
    pub(crate) directory: tempfile::TempDir,
    watches: WatchHub,
}

impl Place {
    pub(crate) fn new() -> Place {
        Place {
            directory: tempfile::tempdir().unwrap(),
            watches: WatchHub::new().unwrap(),
        }
    }

    /// A store of that name; all of one name are the same.
    pub(crate) fn store(&self, name: &str) -> FileStore {
        FileStore::new(
            AbsolutePath::new(self.directory.path().join(name)).unwrap(),
            &self.watches,
        )
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name).join("store.redb")
    }
}

/// Says to a process of this test what it does.
const ROLE: &str = "STORE_TEST_ROLE";
const DIRECTORY: &str = "STORE_TEST_DIRECTORY";

/// Another process that uses a store: this test program once more, where it plays a role.
struct Other {
    child: Child,
    said: BufReader<ChildStdout>,
}

impl Other {
    fn start(role: &str, directory: &Path) -> Other {
        Other::start_by(Command::new(std::env::current_exe().unwrap()), role, directory)
    }

    fn start_by(mut program: Command, role: &str, directory: &Path) -> Other {
        let mut child = program
            .args([
                "--exact",
                "file::plays_its_role",
                "--nocapture",
                "--test-threads=1",
            ])
            .env(ROLE, role)
            .env(DIRECTORY, directory)
            .stdout(Stdio::piped())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        Other { child, said }
    }

    /// The next number that it says.
    fn number(&mut self) -> Option<u64> {
        loop {
            let mut line = String::new();
            if self.said.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            // The test harness says things of its own.
            if let Some(number) = line.rsplit("said ").next().filter(|_| line.contains("said ")) {
                return Some(number.trim().parse().unwrap());
            }
        }
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn say(number: u64) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "said {number}").unwrap();
    out.flush().unwrap();
}

/// Not a test of its own: what the other processes do.
#[test]
fn plays_its_role() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let directory = std::env::var(DIRECTORY).unwrap();
    let watches = WatchHub::new().unwrap();
    let filler = Path::new(&directory).with_file_name("filler");
    let store = FileStore::new(AbsolutePath::new(directory).unwrap(), &watches);
    runtime().block_on(async {
        match role.as_str() {
            "write" => write_for_ever(&store).await,
            "count" => count(&store, 100).await,
            "hold" => {
                let lease = store.lease(Duration::from_millis(300)).await.unwrap();
                write(&store, [Operation::put_leased(key("/held"), *b"v", lease.id())]).await;
                say(1);
                std::future::pending::<()>().await;
            }
            "fill the disk" => {
                fill_the_disk(&store, &filler).await;
                say(1);
            }
            other => panic!("{other}"),
        }
    });
}

async fn number(store: &dyn Store, name: &str) -> (u64, State) {
    let found = store.read(&[key(name).into()]).await.unwrap();
    match found.all().next() {
        Some(entry) => (
            entry.text().unwrap().parse().unwrap(),
            State::Modified(entry.modified),
        ),
        None => (0, State::Absent),
    }
}

/// Counts up as fast as it can, and says each number when it is written.
async fn write_for_ever(store: &FileStore) {
    let (mut last, _) = number(store, "/last").await;
    loop {
        last += 1;
        let padding = "x".repeat(usize::try_from(last * 37 % 9000).unwrap());
        let written = [
            put("/last", &last.to_string()),
            put(&format!("/n/{last:08}"), &padding),
            Operation::Delete(key(&format!("/n/{:08}", last.saturating_sub(20))).into()),
        ];
        write(store, written).await;
        say(last);
    }
}

/// Counts up beside others who do.
async fn count(store: &FileStore, times: u32) {
    for _ in 0..times {
        loop {
            let (is, state) = number(store, "/count").await;
            let next = Transaction::of([put("/count", &(is + 1).to_string())]);
            if store
                .transact(next.when(key("/count"), state))
                .await
                .unwrap()
                .is_done()
            {
                break;
            }
        }
    }
    say(u64::from(times));
}

#[test]
fn who_is_killed_while_it_writes_loses_nothing_that_was_acknowledged() {
    let place = Place::new();
    let directory = place.directory.path().join("s");
    in_times(10, async {
        let mut said = 0;
        // One that has it open all the time, and follows.
        let store = place.store("s");
        let mut watch = store.watch(key("/last").into(), Revision(0));
        let mut heard = 0;
        for round in 0..200 {
            let mut other = Other::start("write", &directory);
            for _ in 0..round % 7 {
                said = other.number().unwrap();
            }
            other.kill();
            // What it said and nobody has read yet.
            while let Some(number) = other.number() {
                said = number;
            }
            // Each second time by one that opens the file anew.
            let fresh = place.store("s");
            let (last, _) = match round % 2 {
                0 => number(&store, "/last").await,
                _ => number(&fresh, "/last").await,
            };
            assert!(
                last == said || last == said + 1,
                "{last} is there, and {said} was acknowledged"
            );
            said = last;
            let snapshot = store.read(&[Selection::prefix("/n/")]).await.unwrap();
            assert_eq!(snapshot.revision.0, last, "each is a revision of its own");
            let numbers: Vec<u64> = snapshot
                .all()
                .map(|entry| entry.key.as_str()[3..].parse().unwrap())
                .collect();
            let kept: Vec<u64> = (last.saturating_sub(19).max(1)..=last).collect();
            assert_eq!(numbers, kept);
            while heard < last {
                heard += 1;
                let batch = changed(&mut watch).await;
                assert_eq!(
                    (batch.revision.0, shown(&batch)),
                    (heard, format!("/last={heard}"))
                );
            }
        }
    });
}

#[test]
fn who_is_killed_while_it_makes_the_store_leaves_none_or_a_whole_one() {
    let place = Place::new();
    in_time(async {
        for round in 0..30 {
            let name = format!("s{round}");
            let directory = place.directory.path().join(&name);
            let begun = directory.join(["store.lock", "store.redb.new", "store.redb"][round % 3]);
            let mut other = Other::start("write", &directory);
            while !begun.exists() {
                // It may have come and gone, and then there is what comes after it.
                if directory.join("store.redb").exists() {
                    break;
                }
                tokio::task::yield_now().await;
            }
            other.kill();
            let store = place.store(&name);
            let (last, _) = number(&store, "/last").await;
            let revision = write(&store, [put("/more", "1")]).await;
            assert_eq!(revision.0, last + 1);
        }
    });
}

#[test]
fn several_processes_write_one_after_the_other_and_hear_of_each_other() {
    let place = Place::new();
    let directory = place.directory.path().join("s");
    in_time(async {
        let store = place.store("s");
        let mut watch = store.watch(key("/count").into(), Revision(0));
        let mut others: Vec<Other> = (0..3).map(|_| Other::start("count", &directory)).collect();
        count(&store, 100).await;
        for other in &mut others {
            assert_eq!(other.number(), Some(100));
        }
        assert_eq!(text(&store, "/count").await.as_deref(), Some("400"));
        for number in 1..=400 {
            let batch = changed(&mut watch).await;
            assert_eq!(
                (batch.revision.0, shown(&batch)),
                (number, format!("/count={number}"))
            );
        }
    });
}

#[test]
fn a_lease_ends_with_the_process_that_holds_it() {
    let place = Place::new();
    let mut other = Other::start("hold", &place.directory.path().join("s"));
    in_time(async {
        let store = place.store("s");
        assert_eq!(other.number(), Some(1));
        let found = store.read(&[key("/held").into()]).await.unwrap();
        let mut watch = store.watch(key("/held").into(), found.revision);
        assert_eq!(found.all().count(), 1, "it is held, whatever its time is");
        other.kill();
        assert_eq!(shown(&changed(&mut watch).await), "-/held");
        assert_eq!(
            std::fs::read_dir(place.directory.path().join("s/leases"))
                .unwrap()
                .count(),
            0
        );
    });
}

#[test]
fn a_lease_outlives_the_store_that_nobody_has_open_for_its_time() {
    let place = Place::new();
    in_time(async {
        let store = place.store("s");
        let lease = store.lease(Duration::from_secs(3600)).await.unwrap();
        write(&store, [Operation::put_leased(key("/held"), *b"v", lease.id())]).await;
        drop((lease, store));
        let store = place.store("s");
        assert_eq!(text(&store, "/held").await.as_deref(), Some("v"));
        let short = store.lease(Duration::from_millis(1)).await.unwrap();
        let revision = write(&store, [Operation::put_leased(key("/short"), *b"v", short.id())]).await;
        drop((short, store));
        let store = place.store("s");
        let mut watch = store.watch(key("/short").into(), revision);
        assert_eq!(shown(&changed(&mut watch).await), "-/short");
    });
}

#[test]
fn a_lease_whose_store_is_taken_away_is_lost() {
    let place = Place::new();
    in_time(async {
        let store = place.store("s");
        let lease = store.lease(Duration::from_secs(3600)).await.unwrap();
        let mut watch = store.watch(Selection::prefix("/"), Revision(0));
        write(&store, [put("/k", "1")]).await;
        assert_eq!(shown(&changed(&mut watch).await), "/k=1");
        std::fs::remove_dir_all(place.directory.path().join("s")).unwrap();
        let again = place.store("s");
        write(&again, [put("/k", "2")]).await;
        lease.lost().await;
        assert!(matches!(watch.next().await, Watched::Compacted(_)));
        write(&again, [put("/k", "3")]).await;
        assert_eq!(shown(&changed(&mut watch).await), "/k=3");
    });
}

#[test]
fn a_store_that_another_process_keeps_locked_is_away_and_named() {
    let place = Place::new();
    in_time(async {
        let store = place.store("s");
        write(&store, [put("/k", "1")]).await;
        let lock = place.directory.path().join("s/store.lock");
        let held = std::fs::OpenOptions::new().write(true).open(&lock).unwrap();
        held.lock().unwrap();
        assert_eq!(text(&store, "/k").await.as_deref(), Some("1"), "it can be read");
        let error = store
            .transact(Transaction::of([put("/k", "2")]))
            .await
            .unwrap_err();
        let said = error.to_string();
        let process = format!("the store does not answer: process {} (`", std::process::id());
        assert!(said.starts_with(&process), "{said}");
        assert!(
            said.ends_with(&format!("has {} locked", lock.display())),
            "{said}"
        );
        assert!(error.is_passing() && !error.is_ambiguous());
        drop(held);
        write(&store, [put("/k", "2")]).await;
    });
}

/// Something of each sort in a store.
async fn fill(store: &FileStore) -> Vec<(Key, Vec<u8>)> {
    let all: Vec<(Key, Vec<u8>)> = (0..300_u32)
        .map(|number| {
            let size = usize::try_from(number * 7919 % 4000).unwrap();
            (
                key(&format!("/k/{number:03}")),
                vec![number.to_le_bytes()[0]; size],
            )
        })
        .collect();
    for some in all.chunks(50) {
        let puts = some
            .iter()
            .map(|(key, value)| Operation::put(key.clone(), value.clone()));
        write(store, puts).await;
    }
    all
}

#[test]
fn a_damaged_file_is_reported_and_left_alone() {
    let place = Place::new();
    let runtime = runtime();
    let all = runtime.block_on(async {
        let store = place.store("whole");
        fill(&store).await
    });
    let whole = std::fs::read(place.file("whole")).unwrap();
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 11).unwrap() % below
    };
    let mut told = 0;
    for number in 0..200 {
        let mut bytes = whole.clone();
        match number % 4 {
            0 => bytes.truncate(random(whole.len())),
            1 => (0..16).for_each(|_| bytes[random(whole.len())] ^= 1 << random(8)),
            2 => {
                // A part that was never written.
                let at = random(whole.len() / 4096) * 4096;
                bytes[at..at + 4096].fill(0);
            }
            _ => (0..4).for_each(|_| bytes[random(512)] = random(256).to_le_bytes()[0]),
        }
        let name = format!("damaged-{number}");
        std::fs::create_dir(place.directory.path().join(&name)).unwrap();
        std::fs::write(place.file(&name), &bytes).unwrap();
        let store = place.store(&name);
        let read = runtime.block_on(async {
            tokio::time::timeout(crate::suite::LIMIT, store.read(&[Selection::prefix("/k/")])).await
        });
        match read.expect("it takes too long") {
            Ok(found) => {
                // It hit what nobody needs.
                let found = found.all().map(|entry| (entry.key.clone(), entry.value.to_vec()));
                assert_eq!(found.collect::<Vec<_>>(), all, "{name}");
            }
            Err(error) => {
                let said = error.to_string();
                assert!(said.contains(&place.file(&name).display().to_string()), "{said}");
                assert!(
                    matches!(error, StoreError::Damaged { .. } | StoreError::Refused { .. }),
                    "{error:?}"
                );
                let error = runtime.block_on(store.transact(Transaction::of([put("/k/new", "1")])));
                assert!(error.is_err(), "{name}: nothing is written to it either");
                assert_eq!(
                    std::fs::metadata(place.file(&name)).unwrap().len(),
                    bytes.len() as u64
                );
                told += 1;
            }
        }
    }
    assert!(told > 50, "{told}");
}

#[test]
fn a_file_that_is_no_store_is_reported_and_left_alone() {
    let place = Place::new();
    let runtime = runtime();
    for content in ["", "no store", &"text\n".repeat(100_000)] {
        let name = format!("other-{}", content.len());
        std::fs::create_dir(place.directory.path().join(&name)).unwrap();
        std::fs::write(place.file(&name), content).unwrap();
        let store = place.store(&name);
        let error = runtime.block_on(store.read(&[])).unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
        let after = std::fs::read(place.file(&name)).unwrap();
        assert_eq!(after, content.as_bytes());
    }
}

#[test]
fn what_goes_wrong_with_a_file_is_told_to_who_follows_and_is_over_when_it_is() {
    let place = Place::new();
    in_time(async {
        let store = place.store("s");
        write(&store, [put("/k", "1")]).await;
        let mut watch = store.watch(key("/k").into(), Revision(0));
        assert_eq!(shown(&changed(&mut watch).await), "/k=1");
        let (file, aside) = (place.file("s"), place.directory.path().join("aside"));
        std::fs::rename(&file, &aside).unwrap();
        std::fs::write(&file, "damaged").unwrap();
        // Nothing says so until somebody writes.
        let error = store
            .transact(Transaction::of([put("/k", "2")]))
            .await
            .unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
        let Watched::Away(StoreError::Damaged { .. }) = watch.next().await else {
            panic!("it is damaged")
        };
        std::fs::rename(&aside, &file).unwrap();
        assert_eq!(watch.next().await, Watched::Back);
        write(&store, [put("/k", "3")]).await;
        assert_eq!(shown(&changed(&mut watch).await), "/k=3");
    });
}

#[test]
fn reading_makes_no_store() {
    let place = Place::new();
    in_time(async {
        assert_eq!(text(&place.store("none"), "/k").await, None);
        assert!(!place.directory.path().join("none").exists());
    });
}

#[test]
fn the_history_is_bounded() {
    let place = Place::new();
    in_time(async {
        let store = place.store("s");
        let many = |round: u32| (0..100).map(move |number| put(&format!("/{number}"), &round.to_string()));
        let mut last = Revision(0);
        for round in 0..120 {
            last = write(&store, many(round)).await;
        }
        let mut watch = store.watch(Selection::prefix("/"), Revision(1));
        assert_eq!(watch.next().await, Watched::Compacted(Revision(20)));
        let mut count = 20;
        while count < last.0 {
            count += 1;
            let batch = changed(&mut watch).await;
            assert!(batch.revision.0 == count && batch.changes.len() == 100);
        }
        // And in bytes.
        let large = vec![7; 1_000_000];
        for _ in 0..40 {
            last = write(&store, [Operation::put(key("/large"), large.clone())]).await;
        }
        let mut watch = store.watch(Selection::prefix("/"), Revision(1));
        let Watched::Compacted(until) = watch.next().await else {
            panic!("it was forgotten")
        };
        assert_eq!(last.0 - until.0, 16);
        for _ in 0..16 {
            let batch = changed(&mut watch).await;
            assert!(matches!(&batch.changes[..], [Change::Put(entry)] if entry.value.len() == large.len()));
        }
        drop((watch, store));
        let size = std::fs::metadata(place.file("s")).unwrap().len();
        assert!(size < 64_000_000, "{size}");
    });
}

#[test]
fn a_full_disk_is_told_of_and_is_no_harm_afterwards() {
    const SMALL: &str = "mount -t tmpfs -o size=4m tmpfs \"$0\"";
    let directory = tempfile::tempdir().unwrap();
    let mut here = Command::new("unshare");
    here.args(["--mount", "sh", "-c", SMALL])
        .arg(directory.path())
        .stderr(Stdio::null());
    if !here.status().is_ok_and(|status| status.success()) {
        eprintln!("skipped: a_full_disk_is_told_of_and_is_no_harm_afterwards: nothing can be mounted");
        return;
    }
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh", "-c", &format!("{SMALL} && exec \"$@\"")])
        .arg(directory.path())
        .arg(std::env::current_exe().unwrap());
    let mut other = Other::start_by(command, "fill the disk", &directory.path().join("s"));
    assert_eq!(other.number(), Some(1), "it says what is wrong above");
}

async fn fill_the_disk(store: &FileStore, filler: &Path) {
    let before = write(store, [put("/small", "1")]).await;
    let mut watch = store.watch(Selection::prefix("/"), before);
    std::fs::write(filler, vec![1; 2_000_000]).unwrap();
    let mut written = 0;
    let error = loop {
        let large = Operation::put(key(&format!("/large/{written}")), vec![written; 200_000]);
        match store.transact(Transaction::of([large])).await {
            Ok(Outcome::Done(_)) => written += 1,
            Ok(Outcome::Refused(_)) => panic!("there is no condition"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
    assert_eq!(text(store, "/small").await.as_deref(), Some("1"));
    std::fs::remove_file(filler).unwrap();
    write(store, [put("/small", "2")]).await;
    let found = store.read(&[Selection::prefix("/large/")]).await.unwrap();
    assert!(written > 0 && found.entries[0].len() == usize::from(written));
    // Who follows has missed nothing and heard of nothing that is not there.
    for number in 0..written {
        let batch = changed(&mut watch).await;
        let wanted = key(&format!("/large/{number}"));
        assert!(matches!(&batch.changes[..], [Change::Put(entry)] if entry.key == wanted));
    }
    assert_eq!(shown(&changed(&mut watch).await), "/small=2");
}
