//! The thread that starts all commands.
//!
//! It is a thread of its own because a command gets a signal when the *thread* that started it ends, and threads of a
//! runtime come and go. It does nothing that could take long: files are looked at by the launcher.

use super::guardian::Guardian;
use super::launcher::{DUTY, Launcher, NAME};
use std::io;
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// Starts launchers. Commands that were started by it end with it.
#[derive(Debug)]
pub(super) struct Starter {
    requests: Sender<Request>,
}

/// A launcher that waits to be told what to become, guarded against our death.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) child: Child,
    pub(super) guardian: Option<Arc<Guardian>>,
}

struct Request {
    input: OwnedFd,
    output: Stdio,
    errors: Stdio,
    /// Who will wait for the process.
    runtime: Handle,
    answer: oneshot::Sender<io::Result<Started>>,
}

impl Starter {
    pub(super) fn new(launcher: Launcher) -> io::Result<Self> {
        let (requests, receiver) = channel();
        std::thread::Builder::new()
            .name("start commands".to_owned())
            .spawn(move || serve(&launcher, &receiver))?;
        Ok(Self { requests })
    }

    pub(super) async fn start(&self, input: OwnedFd, output: Stdio, errors: Stdio) -> io::Result<Started> {
        let (answer, started) = oneshot::channel();
        let request = Request {
            input,
            output,
            errors,
            runtime: Handle::current(),
            answer,
        };
        let gone = || io::Error::other("the thread that starts commands has ended");
        self.requests.send(request).map_err(|_| gone())?;
        started.await.map_err(|_| gone())?
    }
}

fn serve(launcher: &Launcher, requests: &Receiver<Request>) {
    let mut guardian = None;
    while let Ok(request) = requests.recv() {
        // A missing guardian is tried again with the next command, and its absence is no reason not to run this one.
        if guardian.is_none() {
            guardian = Guardian::start(launcher).ok().map(Arc::new);
        }
        let mut command = Command::new(launcher.path());
        command.arg0(NAME).arg(DUTY).env_clear().kill_on_drop(true);
        command
            .stdin(request.input)
            .stdout(request.output)
            .stderr(request.errors);
        let child = {
            let _runtime = request.runtime.enter();
            command.spawn()
        };
        let started = child.map(|child| {
            if let (Some(guardian), Some(id)) = (&guardian, leader(&child)) {
                guardian.watch_over(id);
            }
            Started {
                child,
                guardian: guardian.clone(),
            }
        });
        // If nobody waits any more, dropping the child ends it.
        let _ = request.answer.send(started);
    }
}

/// The process number, which is that of the group and of the session too; none once it was reaped.
pub(super) fn leader(child: &Child) -> Option<i32> {
    child.id().and_then(|id| i32::try_from(id).ok())
}
