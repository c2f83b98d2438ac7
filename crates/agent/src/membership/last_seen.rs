//! When hosts were seen last: what stays of a member that is gone.
//!
//! ```text
//! /last-seen/HOST   when it has reported last, JSON; written with each report, and when the host ends
//! ```

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use setpoint_world::{Entry, Key, Operation, Selection};

const VERSION: u32 = 1;

/// Seconds by which clocks that are kept right may differ.
const CLOCKS_DIFFER: u64 = 60;

/// What all of these keys begin with.
pub const LAST_SEEN: &str = "/last-seen/";

/// What a host was when it was seen last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastSeen {
    version: u32,
    /// When it has written this, in seconds since 1970. A host that has nothing new to say writes nothing, so it may have been there for longer.
    at: i64,
    /// The version of the program that ran there.
    pub program: String,
    /// The deploy whose graph it kept.
    pub running: Option<u64>,
    /// Whether it has ended, as it was told to.
    pub has_ended: bool,
}

impl LastSeen {
    /// As it is now.
    pub fn now(running: Option<u64>, has_ended: bool) -> LastSeen {
        LastSeen {
            version: VERSION,
            at: Timestamp::now().as_second(),
            program: env!("CARGO_PKG_VERSION").to_owned(),
            running,
            has_ended,
        }
    }

    /// When that was.
    pub fn at(&self) -> Timestamp {
        Timestamp::from_second(self.at).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// How far the clock of the host is ahead of the clock here, if it was more than a minute ahead.
    pub fn clock_is_ahead_by(&self, now: Timestamp) -> Option<Duration> {
        let ahead = u64::try_from(self.at - now.as_second()).ok()?;
        (ahead > CLOCKS_DIFFER).then_some(Duration::from_secs(ahead))
    }

    /// How it is said that it is not there.
    pub fn state(&self) -> &'static str {
        match self.has_ended {
            true => "ended",
            false => "gone",
        }
    }

    /// Writes it.
    pub fn put(&self, host: &str) -> Operation {
        let text = serde_json::to_vec(self).expect("it has only texts and numbers");
        Operation::put(key_of_last_seen(host), text)
    }

    /// The host of a key, and what is under it, if it is one of these. What cannot be read is passed over.
    pub fn of(entry: &Entry) -> Option<(String, LastSeen)> {
        let host = entry.key.as_str().strip_prefix(LAST_SEEN)?;
        let seen: LastSeen = serde_json::from_slice(&entry.value).ok()?;
        (seen.version == VERSION).then(|| (host.to_owned(), seen))
    }
}

/// Where it is.
pub fn key_of_last_seen(host: &str) -> Key {
    Key::new(format!("{LAST_SEEN}{host}")).expect("it is not empty")
}

/// Where all are.
pub fn all_last_seen() -> Selection {
    Selection::prefix(LAST_SEEN)
}
