//! Running a command to its end.

use super::group::Group;
use super::output::{Output, Stream};
use super::{Command, Finished, Processes, RunError, Signal, Stop};
use std::future::pending;
use tokio::time::{Instant, sleep_until};

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
    // A directory on a disk that hangs must not keep anybody from stopping.
    let mut group = tokio::select! {
        biased;
        () = stop.interrupt.cancelled() => return Err(RunError::Interrupted { output: Box::new(output) }),
        () = stop.cancel.cancelled() => return Err(RunError::Cancelled { output: Box::new(output) }),
        group = Group::start(command, processes) => group?,
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
