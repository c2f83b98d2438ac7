//! How old the lists are of what can be had. Nothing fetches them by itself on most machines, so what is the newest is known only to whoever fetches them now and then.

use std::path::Path;
use std::time::Duration;

use setpoint_engine::{Apply, Failure, Watch};
use setpoint_host::files::{AbsolutePath, Entry, Timestamp};
use setpoint_host::state::Stored;

use super::{LISTS, blocking, refresh};

/// How old lists may become before they are fetched again.
const OLD: Duration = Duration::from_secs(24 * 60 * 60);

/// How often it is looked whether they are that old.
const LOOK: Duration = Duration::from_secs(60 * 60);

/// The name and version of what says when we fetched them: what is not new leaves no trace in the lists themselves.
const FETCHED: &str = "lists";
const FETCHED_VERSION: u32 = 1;

/// Looks now and then.
pub(super) fn watch() -> Watch {
    Watch::own(|watcher| async move {
        (watcher.event)("the age of the lists of packages is looked at now and then");
        loop {
            tokio::select! {
                () = watcher.cancellation.cancelled() => return Ok(()),
                () = tokio::time::sleep(LOOK) => {}
            }
            (watcher.event)("the lists of packages may have become old");
        }
    })
}

/// Fetches the lists if nobody has done so for a day. What cannot be fetched is warned of, and what is known already counts.
pub(super) async fn refresh_if_old(apply: &Apply<'_>) -> Result<(), Failure> {
    let attempted = "look how old the lists of packages are";
    let handle = apply.handle().clone();
    let fetched = move || {
        let stored = handle.load(FETCHED, FETCHED_VERSION)?;
        let of_ours = match &stored {
            Stored::Payload(payload) => std::str::from_utf8(payload).ok().and_then(|at| at.parse().ok()),
            _ => None,
        };
        let of_others = [LISTS, "/var/lib/apt/lists/partial/"].map(changed);
        Ok(of_others.into_iter().flatten().chain(of_ours).max())
    };
    let fetched: Option<i64> = blocking(attempted, fetched).await?;
    let now = Timestamp::now().seconds;
    // A time to come is one of a clock that was wrong.
    let is_old = fetched.is_none_or(|at| at > now || now - at > OLD.as_secs().cast_signed());
    if !is_old || !refresh(apply).await? {
        return Ok(());
    }
    let handle = apply.handle().clone();
    let store = move || handle.store(FETCHED, FETCHED_VERSION, now.to_string().as_bytes());
    blocking("remember when the lists of packages were fetched", store).await
}

/// When something in a directory was changed.
fn changed(directory: &str) -> Option<i64> {
    let path = AbsolutePath::new(Path::new(directory)).ok()?;
    let found = Entry::at(&path).and_then(|entry| entry.stat_following()).ok()??;
    Some(found.modified.seconds)
}
