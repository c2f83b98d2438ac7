//! Running a command to its end.

use super::group::Group;
use super::output::{Output, Stream};
use super::{Command, Finished, Processes, RunError, Signal, Stop};
use std::future::pending;
use std::pin::pin;
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout};

/// How long a command that is cancelled while it begins is waited for.
const BEGUN_WITHIN: Duration = Duration::from_secs(1);

pub(super) async fn run(command: &Command, stop: &Stop, processes: &Processes) -> Result<Finished, RunError> {
    if stop.interrupt.is_cancelled() {
        return Err(RunError::Interrupted {
            output: Box::default(),
        });
    }
    if stop.cancel.is_cancelled() {
        return Err(RunError::Cancelled {
            output: Box::default(),
        });
    }
    let mut output = Output::keeping(command.most_output);
    // A directory on a disk that hangs must not keep anybody from stopping; but what may have begun already is asked to stop like
    // any other command, and not killed.
    let mut starting = pin!(Group::start(command, processes));
    let mut group = tokio::select! {
        biased;
        () = stop.interrupt.cancelled() => return Err(RunError::Interrupted { output: Box::new(output) }),
        group = &mut starting => group?,
        () = stop.cancel.cancelled() => match timeout(BEGUN_WITHIN, starting).await {
            Ok(group) => group?,
            Err(_) => return Err(RunError::Cancelled { output: Box::new(output) }),
        },
    };
    let mut cancelled = false;
    let mut interrupted = false;
    let mut deadline: Option<Instant> = None;
    let exit = loop {
        let (mut leader, stdout, stderr) = group.parts();
        let wanted = {
            let (stdout_open, stderr_open) = (stdout.is_open(), stderr.is_open());
            tokio::select! {
                // First, so that a cancellation that comes after the end changes nothing.
                biased;
                exit = leader.wait() => break exit?,
                () = stop.interrupt.cancelled(), if !interrupted => {
                    interrupted = true;
                    Some(Signal::KILL)
                }
                () = stop.cancel.cancelled(), if !cancelled => {
                    cancelled = true;
                    deadline = stop.grace.map(|grace| Instant::now() + grace);
                    Some(stop.signal)
                }
                () = reached(deadline) => {
                    deadline = None;
                    Some(Signal::KILL)
                }
                bytes = stdout.read(), if stdout_open => {
                    output.add(Stream::Stdout, bytes);
                    None
                }
                bytes = stderr.read(), if stderr_open => {
                    output.add(Stream::Stderr, bytes);
                    None
                }
            }
        };
        if let Some(signal) = wanted {
            group.signal(signal);
        }
    };
    let rest = group.stdout.drain();
    output.add(Stream::Stdout, &rest);
    let rest = group.stderr.drain();
    output.add(Stream::Stderr, &rest);
    if interrupted {
        Err(RunError::Interrupted {
            output: Box::new(output),
        })
    } else if cancelled {
        Err(RunError::Cancelled {
            output: Box::new(output),
        })
    } else {
        Ok(Finished { exit, output })
    }
}

/// Waits for a point in time; for ever if there is none.
pub(super) async fn reached(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => pending().await,
    }
}
