//! Everything that happens in an etcd, as its own client sees it.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value as Json;

use super::EtcdCluster;
use crate::history::Recorded;

/// How long the end may take to be seen.
const LIMIT: Duration = Duration::from_secs(60);

/// Records from when it is started, and before that from the first revision.
#[derive(Debug)]
pub struct Recording {
    process: Child,
    lines: Receiver<(Duration, String)>,
    namespace: String,
    begin: Instant,
    /// The last revision that was recorded.
    last: u64,
    recorded: Vec<Recorded>,
    ends: usize,
}

impl Recording {
    /// Of what is below a namespace: `/setpoint`.
    ///
    /// # Panics
    /// When there is no `etcdctl`.
    #[must_use]
    pub fn start(cluster: &EtcdCluster, namespace: &str) -> Recording {
        let begin = Instant::now();
        let (process, lines) = follow(cluster, namespace, 1, begin);
        Recording {
            process,
            lines,
            namespace: namespace.to_owned(),
            begin,
            last: 0,
            recorded: Vec::new(),
            ends: 0,
        }
    }

    /// Goes on where it was: `etcdctl` gives up when the member that it follows is cut off.
    fn resume(&mut self, cluster: &EtcdCluster) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        (self.process, self.lines) = follow(cluster, &self.namespace, self.last + 1, self.begin);
    }

    /// All until now, which the store itself says by a change that is left out.
    ///
    /// # Panics
    /// When the store cannot be asked, or has forgotten what is to be recorded.
    pub fn until_now(&mut self, cluster: &EtcdCluster) -> &[Recorded] {
        self.ends += 1;
        let end = format!("{}-{}", self.process.id(), self.ends);
        let key = format!("{}/~end", self.namespace);
        cluster.control(&["put", &key, &end]);
        let deadline = Instant::now() + LIMIT;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let (at, line) = match self.lines.recv_timeout(left) {
                Ok(line) => line,
                Err(RecvTimeoutError::Timeout) => panic!("the end is not recorded in time"),
                Err(RecvTimeoutError::Disconnected) => {
                    self.resume(cluster);
                    continue;
                }
            };
            let answer: Json = serde_json::from_str(&line).expect("`etcdctl` prints JSON");
            assert_eq!(
                answer["CompactRevision"], 0,
                "what was to be recorded is forgotten"
            );
            if answer["Canceled"] == true {
                self.resume(cluster);
                continue;
            }
            let mut is_end = false;
            for event in answer["Events"].as_array().into_iter().flatten() {
                let change = self.change(event, at);
                self.last = change.revision;
                if change.key == "/~end" {
                    is_end |= change.value.as_deref() == Some(&*end);
                } else {
                    self.recorded.push(change);
                }
            }
            if is_end {
                return &self.recorded;
            }
        }
    }

    fn change(&self, event: &Json, at: Duration) -> Recorded {
        let found = &event["kv"];
        let text = |name: &str| {
            let bytes = STANDARD.decode(found[name].as_str().unwrap_or_default());
            String::from_utf8_lossy(&bytes.expect("it is base64")).into_owned()
        };
        let key = text("key");
        Recorded {
            revision: found["mod_revision"].as_u64().expect("it has a revision"),
            key: key.strip_prefix(&self.namespace).unwrap_or(&key).to_owned(),
            value: (event["type"] != 1).then(|| text("value")),
            lease: found["lease"].as_i64().unwrap_or(0),
            at: Some(at),
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// `etcdctl` from a revision on, and the lines that it prints, with when they came.
fn follow(
    cluster: &EtcdCluster,
    namespace: &str,
    from: u64,
    begin: Instant,
) -> (Child, Receiver<(Duration, String)>) {
    let from = from.to_string();
    let mut process = cluster
        .client(&["watch", "--prefix", namespace, "--rev", &from, "--write-out=json"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("there is an `etcdctl`");
    let output = process.stdout.take().expect("it was piped");
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines() {
            let Ok(line) = line else { break };
            if sender.send((begin.elapsed(), line)).is_err() {
                break;
            }
        }
    });
    (process, lines)
}
