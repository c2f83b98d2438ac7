//! Jobs of the manager: asked for, and waited for until the manager says how they ended.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use zbus::OwnedObjectPath;

use super::news::Followed;
use super::{SERVICE, UnitName, manager};
use crate::bus::{BusError, Link};

/// How long it may take until the end of a connection is known everywhere.
const MOMENT: Duration = Duration::from_millis(10);

/// A job that the manager does.
#[must_use = "what became of it is known only when it was waited for"]
pub struct Job {
    followed: Arc<Followed>,
    id: u32,
    ended: oneshot::Receiver<JobResult>,
}

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobResult {
    /// It was done.
    Done,
    /// Somebody took it back, or asked for the opposite.
    Canceled,
    /// It took longer than the unit allows.
    Timeout,
    /// It failed.
    Failed,
    /// Something that the unit needs failed.
    Dependency,
    /// There was nothing to do in the state that the unit is in.
    Skipped,
    /// The unit has changed so that it cannot be done.
    Invalid,
    /// What the unit asserts does not hold.
    Assert,
    /// The machine cannot do what the unit needs.
    Unsupported,
    /// The unit was unloaded.
    Collected,
    /// The unit starts only once, and did.
    Once,
    /// The unit is frozen.
    Frozen,
    /// What this version of systemd has and we do not know.
    Other,
}

/// The manager was started anew, and does not know the job any more: how the unit is says more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownJob;

impl JobResult {
    fn parse(text: &str) -> JobResult {
        match text {
            "done" => JobResult::Done,
            "canceled" => JobResult::Canceled,
            "timeout" => JobResult::Timeout,
            "failed" => JobResult::Failed,
            "dependency" => JobResult::Dependency,
            "skipped" => JobResult::Skipped,
            "invalid" => JobResult::Invalid,
            "assert" => JobResult::Assert,
            "unsupported" => JobResult::Unsupported,
            "collected" => JobResult::Collected,
            "once" => JobResult::Once,
            "frozen" => JobResult::Frozen,
            _ => JobResult::Other,
        }
    }
}

impl fmt::Display for JobResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            JobResult::Done => "its job was done",
            JobResult::Canceled => "its job was canceled: somebody asked for something else meanwhile",
            JobResult::Timeout => "its job took longer than the unit allows",
            JobResult::Failed => "its job failed; `systemctl status` and the journal say why",
            JobResult::Dependency => "something that it depends on failed",
            JobResult::Skipped => "its job was skipped, as it does not fit the state of the unit",
            JobResult::Invalid => "its job is not possible any more, because the unit has changed",
            JobResult::Assert => "an assertion of the unit does not hold",
            JobResult::Unsupported => "this machine does not support units of this sort",
            JobResult::Collected => "the unit was unloaded meanwhile",
            JobResult::Once => "the unit starts only once, and did already",
            JobResult::Frozen => "the unit is frozen",
            JobResult::Other => "its job ended in a way that is not known here",
        })
    }
}

/// The jobs that somebody waits for.
#[derive(Default)]
pub(super) struct Jobs {
    waiting: HashMap<u32, Vec<oneshot::Sender<JobResult>>>,
    /// Calls that may give a job whose end is heard before its number is known.
    calls: usize,
    /// What ended while there were such calls.
    ended: HashMap<u32, JobResult>,
}

impl Jobs {
    /// A job has ended.
    pub(super) fn ended(&mut self, id: u32, result: &str) {
        let result = JobResult::parse(result);
        for waiting in self.waiting.remove(&id).unwrap_or_default() {
            let _ = waiting.send(result);
        }
        if self.calls > 0 {
            self.ended.insert(id, result);
        }
    }

    /// From here on the ends of jobs may have been missed: who waits must ask.
    pub(super) fn forget(&mut self) {
        self.waiting.clear();
        self.ended.clear();
    }

    fn wait(&mut self, id: u32) -> oneshot::Receiver<JobResult> {
        let (sender, receiver) = oneshot::channel();
        match self.ended.get(&id) {
            Some(result) => {
                let _ = sender.send(*result);
            }
            None => self.waiting.entry(id).or_default().push(sender),
        }
        receiver
    }
}

/// Keeps what ends while it lives.
struct Call<'a>(&'a Followed);

impl<'a> Call<'a> {
    fn begin(followed: &'a Followed) -> Call<'a> {
        followed.jobs().calls += 1;
        Call(followed)
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        let mut jobs = self.0.jobs();
        jobs.calls -= 1;
        if jobs.calls == 0 {
            jobs.ended.clear();
        }
    }
}

/// Asks for a job, which fails if it contradicts one that waits.
pub(super) async fn enqueue(
    followed: Arc<Followed>,
    link: &Link,
    method: &str,
    unit: &UnitName,
) -> Result<Job, BusError> {
    let call = Call::begin(&followed);
    let path: OwnedObjectPath = link.call(manager(method), &(unit.as_str(), "fail")).await?;
    let id = number(&path)?;
    let ended = followed.jobs().wait(id);
    drop(call);
    Ok(Job { followed, id, ended })
}

/// Waits for a job that somebody else asked for; none if it has ended.
pub(super) async fn join(followed: Arc<Followed>, link: &Link, id: u32) -> Result<Option<Job>, BusError> {
    let ended = followed.jobs().wait(id);
    let known: Result<OwnedObjectPath, BusError> = link.call(manager("GetJob"), &id).await;
    match known {
        Ok(_) => Ok(Some(Job { followed, id, ended })),
        Err(error) if error.is_named(&format!("{SERVICE}.NoSuchJob")) => Ok(None),
        Err(error) => Err(error),
    }
}

impl Job {
    /// Waits until it has ended, for as long as that takes.
    ///
    /// # Errors
    /// When the manager cannot be reached any more.
    pub async fn result(self) -> Result<Result<JobResult, UnknownJob>, BusError> {
        let Job {
            followed,
            id,
            mut ended,
        } = self;
        loop {
            if let Ok(result) = ended.await {
                return Ok(Ok(result));
            }
            // The manager, or the bus, was started anew. Jobs outlive that.
            let link = followed.link().await?;
            match join(followed.clone(), &link, id).await {
                Ok(Some(job)) => ended = job.ended,
                Ok(None) => return Ok(Err(UnknownJob)),
                Err(BusError::Lost { .. }) => {
                    // The connection is gone, and a moment later whoever makes them knows it.
                    tokio::time::sleep(MOMENT).await;
                    ended = oneshot::channel().1;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// The number in the path of a job: `/org/freedesktop/systemd1/job/7`.
fn number(path: &OwnedObjectPath) -> Result<u32, BusError> {
    let last = path.as_str().rsplit('/').next().unwrap_or_default();
    last.parse().map_err(|_| BusError::Malformed {
        reason: format!("`{path}` is not the path of a job").into(),
    })
}
