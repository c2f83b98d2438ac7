//! What the engine did, as typed events, and the stream on which they are published.
//!
//! Progress display, logs, metrics, `why` and tests are consumers of [`Event`]s. The stream is a bounded ring: the
//! engine never waits for a consumer, and one that is too slow gets a [`EventKind::Gap`] in place of what it missed.
//! Nothing sensitive is in an event: values are redacted before one exists.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use setpoint_graph::ResourceId;
use tokio::sync::broadcast;

use crate::{Effect, Forecast, Level};

/// Something that happened. As JSON it is one flat object: `{"event":"drift","time":…,"seq":…,"kind":…,"name":…,…}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// What happened, with what belongs to it.
    #[serde(flatten)]
    pub what: EventKind,
    /// When, in seconds since 1970 UTC: the clock at the start of the process plus the monotonic time since then.
    #[serde(serialize_with = "seconds", deserialize_with = "from_seconds")]
    #[schemars(with = "f64")]
    pub time: Duration,
    /// Rises by one with each event of this process.
    pub seq: u64,
    /// Kind of the resource that it is about, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Arc<str>>,
    /// Name of the resource that it is about, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Arc<str>>,
    /// The resource as part of which that resource is applied, if it is in the group of another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<ResourceName>,
}

impl Event {
    /// The resource that it is about, if it is about one.
    #[must_use]
    pub fn identity(&self) -> Option<ResourceId> {
        match (&self.kind, &self.name) {
            (Some(kind), Some(name)) => Some(ResourceId {
                kind: kind.clone(),
                name: name.clone(),
            }),
            _ => None,
        }
    }

    /// The resource whose runs it belongs to, if it is about one: that as part of which the resource is applied, or itself.
    #[must_use]
    pub fn applied(&self) -> Option<ResourceId> {
        match &self.group {
            Some(group) => Some(group.id()),
            None => self.identity(),
        }
    }

    /// The event as one line of JSON, without the newline.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|error| {
            // Only a map with keys that are no strings could fail, and an event has none.
            format!("{{\"event\":\"gap\",\"lost\":1,\"error\":\"{error}\"}}")
        })
    }
}

/// Kind and name of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceName {
    /// Its kind.
    pub kind: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
}

impl ResourceName {
    /// The same as an identity.
    #[must_use]
    pub fn id(&self) -> ResourceId {
        ResourceId {
            kind: self.kind.clone(),
            name: self.name.clone(),
        }
    }
}

impl From<&ResourceId> for ResourceName {
    fn from(id: &ResourceId) -> ResourceName {
        ResourceName {
            kind: id.kind.clone(),
            name: id.name.clone(),
        }
    }
}

/// What happened. Texts such as `by` and `from` are identities as they are shown: `file[/etc/motd]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event")]
pub enum EventKind {
    /// A new desired graph is swapped in.
    #[serde(rename = "graph accepted")]
    GraphAccepted {
        /// Resources that are new.
        added: usize,
        /// Resources that go away.
        removed: usize,
        /// Resources that are replaced by another of their identity.
        changed: usize,
        /// Resources that stay as they are.
        kept: usize,
    },
    /// The new graph is the running graph from here on.
    #[serde(rename = "graph swapped")]
    GraphSwapped {
        /// The generation of the new graph.
        generation: u64,
    },
    /// A desired graph was refused; the old one runs on.
    #[serde(rename = "graph rejected")]
    GraphRejected {
        /// Why, as shown to the user.
        diagnostics: String,
    },
    /// A resource came into the running graph.
    #[serde(rename = "added")]
    Added {
        /// Whether it left the program, and this is what undoes it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        reversal: bool,
        /// What is applied as part of it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        members: Vec<ResourceName>,
    },
    /// Its watch is armed.
    #[serde(rename = "watching")]
    Watching,
    /// It must run.
    #[serde(rename = "dirty")]
    Dirty {
        /// Why it must run.
        cause: Cause,
    },
    /// A run began.
    #[serde(rename = "started run")]
    StartedRun {
        /// Whether repairs are forbidden.
        noop: bool,
        /// Whether a notification waits for it.
        refresh: bool,
    },
    /// A difference between what is and what shall be.
    #[serde(rename = "drift")]
    Drift {
        /// What of the resource it is about: mostly a parameter.
        field: Arc<str>,
        /// The effect of a repair.
        effect: Effect,
        /// Whether the resource was in its state before, and a watch reported the change.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        later: bool,
        /// What was found.
        is: Arc<str>,
        /// What shall be.
        want: Arc<str>,
        /// Whether the value is not known yet. Then `want` says when it will be.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unknown: bool,
        /// How two texts differ, as `diff -u` shows it, if they are not too long. None if one of them is no text, or sensitive.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        diff: Option<Arc<str>>,
        /// Further properties of a resource that is created, by name.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        attributes: BTreeMap<Arc<str>, Arc<str>>,
    },
    /// The run may repair the drift that was told last, and tries. It does not come where repairs are forbidden.
    #[serde(rename = "repairing")]
    Repairing {
        /// What of the resource it is about: mostly a parameter.
        field: Arc<str>,
    },
    /// The run has succeeded, and with it the repair: one for each `repairing` of the run.
    #[serde(rename = "repaired")]
    Repaired {
        /// What of the resource it is about: mostly a parameter.
        field: Arc<str>,
        /// The effect of the repair.
        effect: Effect,
        /// Whether the resource was in its state before, and a watch reported the change.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        later: bool,
        /// What was found.
        is: Arc<str>,
        /// What it is now.
        want: Arc<str>,
    },
    /// The run has failed: the repair was not made, or was not all that was needed.
    #[serde(rename = "not repaired")]
    NotRepaired {
        /// What of the resource it is about: mostly a parameter.
        field: Arc<str>,
        /// The effect of the repair.
        effect: Effect,
        /// What was found.
        is: Arc<str>,
        /// What shall be.
        want: Arc<str>,
    },
    /// The interval of a resource that notifies at intervals has passed.
    #[serde(rename = "tick")]
    Tick,
    /// It is going away, but its run must end first.
    #[serde(rename = "finishing")]
    Finishing,
    /// A run ended.
    #[serde(rename = "run ended")]
    RunEnded {
        /// What came of the run.
        result: RunSummary,
        /// How long it took, in seconds.
        #[serde(serialize_with = "seconds", deserialize_with = "from_seconds")]
        #[schemars(with = "f64")]
        duration: Duration,
        /// Why it failed, if it did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<Arc<str>>,
        /// Only where nothing is repaired: what follows from the other resources of the program.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        foreseen: Option<Box<Forecast>>,
    },
    /// It could not be brought into its state. It is applied as part of `group`, whose run has failed because of that.
    #[serde(rename = "member failed")]
    MemberFailed {
        /// Why.
        error: Arc<str>,
    },
    /// It published values.
    #[serde(rename = "sent")]
    Sent {
        /// Under these send keys.
        keys: Vec<String>,
    },
    /// It took a value that differs from what the parameter held.
    #[serde(rename = "received")]
    Received {
        /// The parameter that took the value.
        parameter: String,
        /// Who sent it.
        from: String,
        /// Under which send key.
        key: Arc<str>,
    },
    /// Other hosts can collect it, as it is now.
    #[serde(rename = "exported")]
    Exported {
        /// The hosts that can; `*` for all.
        to: Vec<Arc<str>>,
    },
    /// It is no longer there for other hosts to collect.
    #[serde(rename = "unexported")]
    Unexported {
        /// The hosts that could; `*` for all.
        to: Vec<Arc<str>>,
    },
    /// A notification waits for it.
    #[serde(rename = "refresh pending")]
    RefreshPending {
        /// Who was repaired.
        by: String,
    },
    /// A notification was served.
    #[serde(rename = "refresh consumed")]
    RefreshConsumed {
        /// Who had been repaired.
        by: String,
    },
    /// Its events come faster than its limit allows.
    #[serde(rename = "limited until")]
    LimitedUntil {
        /// In seconds since 1970 UTC.
        #[serde(serialize_with = "seconds", deserialize_with = "from_seconds")]
        #[schemars(with = "f64")]
        until: Duration,
    },
    /// It waits for semaphores.
    #[serde(rename = "waiting for semaphore")]
    WaitingForSemaphore {
        /// All that it needs.
        semaphores: Vec<Arc<str>>,
    },
    /// It failed and will be tried again.
    #[serde(rename = "backing off")]
    BackingOff {
        /// Why it failed.
        error: Arc<str>,
        /// When it is tried again, in seconds since 1970 UTC.
        #[serde(serialize_with = "seconds", deserialize_with = "from_seconds")]
        #[schemars(with = "f64")]
        next_try: Duration,
        /// How many tries are left after that one; none for no end of them.
        tries_left: Option<u16>,
    },
    /// It failed and no tries are left.
    #[serde(rename = "gave up")]
    GaveUp {
        /// The failure of its last try.
        error: Arc<str>,
    },
    /// It waits for something outside this machine, and goes on as soon as that comes to pass. It comes after `run ended`.
    #[serde(rename = "waiting for host")]
    WaitingForHost {
        /// What has not come to pass.
        missing: Arc<str>,
    },
    /// It must run, but something before it has given up, or waits for something outside this machine.
    #[serde(rename = "blocked by")]
    BlockedBy {
        /// What has failed or waits.
        by: String,
    },
    /// Its `init`, watch, run or `cleanup` has given no answer for long: what it looks at may lie on a disk that hangs. Everything
    /// else goes on, and so does it as soon as the disk answers.
    #[serde(rename = "unresponsive")]
    Unresponsive {
        /// For how long, in seconds.
        #[serde(serialize_with = "seconds", deserialize_with = "from_seconds")]
        #[schemars(with = "f64")]
        waited: Duration,
        /// The path at which it is at work, if that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<Arc<str>>,
    },
    /// Something else keeps undoing its repairs, which are spaced out from now on.
    #[serde(rename = "conflict")]
    Conflict {
        /// What of the resource it is about: mostly a parameter.
        field: Arc<str>,
        /// What the other side makes it.
        is: Arc<str>,
        /// What we make it.
        want: Arc<str>,
    },
    /// It left the running graph.
    #[serde(rename = "removed")]
    Removed {
        /// What was applied as part of it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        members: Vec<ResourceName>,
    },
    /// What it had made of the machine is undone, now that it is no longer in the program. That happens once.
    #[serde(rename = "undone")]
    Undone,
    /// Quiet for as long as asked.
    #[serde(rename = "converged")]
    Converged,
    /// No longer quiet.
    #[serde(rename = "unconverged")]
    Unconverged,
    /// No runs begin until `resumed`.
    #[serde(rename = "paused")]
    Paused,
    /// Runs begin again.
    #[serde(rename = "resumed")]
    Resumed,
    /// The engine is stopping.
    #[serde(rename = "stopping")]
    Stopping {
        /// 1 lets runs finish, 2 cancels them, 3 interrupts them.
        stage: u8,
        /// Whose runs are waited for.
        waiting_for: Vec<String>,
    },
    /// A line for the log.
    #[serde(rename = "log")]
    Log {
        /// How much it matters.
        level: Level,
        /// The text of the line.
        message: String,
    },
    /// This consumer was too slow and missed some events.
    #[serde(rename = "gap")]
    Gap {
        /// How many events are missing here.
        lost: u64,
    },
}

impl EventKind {
    /// What its JSON calls it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            EventKind::GraphAccepted { .. } => "graph accepted",
            EventKind::GraphSwapped { .. } => "graph swapped",
            EventKind::GraphRejected { .. } => "graph rejected",
            EventKind::Added { .. } => "added",
            EventKind::Watching => "watching",
            EventKind::Dirty { .. } => "dirty",
            EventKind::StartedRun { .. } => "started run",
            EventKind::Drift { .. } => "drift",
            EventKind::Repairing { .. } => "repairing",
            EventKind::Repaired { .. } => "repaired",
            EventKind::NotRepaired { .. } => "not repaired",
            EventKind::Tick => "tick",
            EventKind::Finishing => "finishing",
            EventKind::RunEnded { .. } => "run ended",
            EventKind::MemberFailed { .. } => "member failed",
            EventKind::Sent { .. } => "sent",
            EventKind::Received { .. } => "received",
            EventKind::Exported { .. } => "exported",
            EventKind::Unexported { .. } => "unexported",
            EventKind::RefreshPending { .. } => "refresh pending",
            EventKind::RefreshConsumed { .. } => "refresh consumed",
            EventKind::LimitedUntil { .. } => "limited until",
            EventKind::WaitingForSemaphore { .. } => "waiting for semaphore",
            EventKind::BackingOff { .. } => "backing off",
            EventKind::GaveUp { .. } => "gave up",
            EventKind::WaitingForHost { .. } => "waiting for host",
            EventKind::BlockedBy { .. } => "blocked by",
            EventKind::Unresponsive { .. } => "unresponsive",
            EventKind::Conflict { .. } => "conflict",
            EventKind::Removed { .. } => "removed",
            EventKind::Undone => "undone",
            EventKind::Converged => "converged",
            EventKind::Unconverged => "unconverged",
            EventKind::Paused => "paused",
            EventKind::Resumed => "resumed",
            EventKind::Stopping { .. } => "stopping",
            EventKind::Log { .. } => "log",
            EventKind::Gap { .. } => "gap",
        }
    }
}

/// Why a resource must run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Its watch was armed.
    FirstEvent,
    /// Its watch saw a change of this.
    Watch(Arc<str>),
    /// A value that it receives changed.
    ReceivedFrom(String),
    /// It was notified.
    RefreshBy(String),
    /// Its last run or watch failed.
    Retry,
    /// It was asked for.
    Rechecked,
    /// Its interval has passed.
    Poll,
    /// Its interval has passed, and it has notified.
    Tick,
    /// A swap changed what it receives.
    Swap,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::FirstEvent => f.write_str("first event"),
            Cause::Watch(what) => write!(f, "watch of {what}"),
            Cause::ReceivedFrom(who) => write!(f, "received from {who}"),
            Cause::RefreshBy(who) => write!(f, "refresh by {who}"),
            Cause::Retry => f.write_str("retry"),
            Cause::Rechecked => f.write_str("rechecked"),
            Cause::Poll => f.write_str("poll"),
            Cause::Tick => f.write_str("tick"),
            Cause::Swap => f.write_str("swap"),
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RunSummary {
    /// Everything was right.
    Ok,
    /// Something was wrong, and was repaired if that was allowed.
    Drift,
    /// It could not be brought into its state.
    Failed,
    /// It waits for something outside this machine.
    Waiting,
    /// Nothing was repaired, and it cannot be said what a repair would do before an earlier resource has run.
    Unsure,
}

fn seconds<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    // Microseconds are as much as a double holds exactly enough for the dates of this century.
    serializer.serialize_f64((time.as_secs_f64() * 1e6).round() / 1e6)
}

fn from_seconds<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let seconds = f64::deserialize(deserializer)?;
    Duration::try_from_secs_f64(seconds).map_err(serde::de::Error::custom)
}

/// Where the engine publishes. Clones are one and the same stream.
#[derive(Debug, Clone)]
pub struct EventSink {
    sender: broadcast::Sender<Arc<Event>>,
    /// Sequence number of the newest event, for the time and number of a gap.
    newest: Arc<AtomicU64>,
}

impl EventSink {
    /// A stream that remembers this many events for slow consumers.
    #[must_use]
    pub fn new(capacity: usize) -> EventSink {
        EventSink {
            sender: broadcast::Sender::new(capacity.max(1)),
            newest: Arc::default(),
        }
    }

    /// Publishes. Never waits.
    pub fn publish(&self, event: Arc<Event>) {
        self.newest.store(event.seq, Ordering::Relaxed);
        // An error only says that nobody listens.
        let _ = self.sender.send(event);
    }

    /// Everything that is published from now on.
    #[must_use]
    pub fn subscribe(&self) -> EventStream {
        EventStream {
            receiver: self.sender.subscribe(),
            last_time: Duration::ZERO,
            last_seq: self.newest.load(Ordering::Relaxed),
        }
    }
}

/// The events, for one consumer.
#[derive(Debug)]
pub struct EventStream {
    receiver: broadcast::Receiver<Arc<Event>>,
    last_time: Duration,
    last_seq: u64,
}

impl EventStream {
    /// The next event; none after the engine has ended.
    pub async fn next(&mut self) -> Option<Arc<Event>> {
        match self.receiver.recv().await {
            Ok(event) => Some(self.took(event)),
            Err(broadcast::error::RecvError::Lagged(lost)) => Some(self.gap(lost)),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }

    /// The next event if there is one already.
    pub fn try_next(&mut self) -> Option<Arc<Event>> {
        match self.receiver.try_recv() {
            Ok(event) => Some(self.took(event)),
            Err(broadcast::error::TryRecvError::Lagged(lost)) => Some(self.gap(lost)),
            Err(broadcast::error::TryRecvError::Empty | broadcast::error::TryRecvError::Closed) => None,
        }
    }

    fn took(&mut self, event: Arc<Event>) -> Arc<Event> {
        self.last_time = event.time;
        self.last_seq = event.seq;
        event
    }

    fn gap(&mut self, lost: u64) -> Arc<Event> {
        self.last_seq += lost;
        Arc::new(Event {
            what: EventKind::Gap { lost },
            time: self.last_time,
            seq: self.last_seq,
            kind: None,
            name: None,
            group: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(seq: u64, what: EventKind) -> Event {
        Event {
            what,
            time: Duration::from_millis(1_500),
            seq,
            kind: Some("file".into()),
            name: Some("/etc/motd".into()),
            group: None,
        }
    }

    #[test]
    fn an_event_is_one_flat_object() {
        let drift = event(
            7,
            EventKind::Drift {
                field: "mode".into(),
                effect: Effect::Change,
                later: false,
                is: "0600".into(),
                want: "0644".into(),
                unknown: false,
                diff: None,
                attributes: BTreeMap::new(),
            },
        );
        let json = drift.to_json();
        assert_eq!(
            json,
            r#"{"event":"drift","field":"mode","effect":"change","is":"0600","want":"0644","time":1.5,"seq":7,"kind":"file","name":"/etc/motd"}"#
        );
        assert_eq!(serde_json::from_str::<Event>(&json).unwrap(), drift);
        assert!(json.starts_with(&format!("{{\"event\":\"{}\"", drift.what.name())));
        let dirty = event(
            8,
            EventKind::Dirty {
                cause: Cause::Watch("/etc/motd".into()),
            },
        );
        assert_eq!(serde_json::from_str::<Event>(&dirty.to_json()).unwrap(), dirty);
    }

    #[test]
    fn a_consumer_that_never_reads_gets_a_gap_and_then_the_newest() {
        let sink = EventSink::new(4);
        let mut slow = sink.subscribe();
        for seq in 1..=100 {
            sink.publish(Arc::new(event(seq, EventKind::Watching)));
        }
        let first = slow.try_next().unwrap();
        assert_eq!((first.seq, &first.what), (96, &EventKind::Gap { lost: 96 }));
        let rest: Vec<u64> = std::iter::from_fn(|| slow.try_next()).map(|e| e.seq).collect();
        assert_eq!(rest, [97, 98, 99, 100]);
    }
}
