//! Changing the machine on behalf of sources: commands that run on, and their small files.

use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use setpoint_diagnostics::visible;
use setpoint_host::Host;
use setpoint_host::files::{AbsolutePath, Replace, TEMPORARY_PREFIX};
use setpoint_host::processes::{Command, LineEvent, Signal};
use setpoint_value::{Effects, RunningCommand, Wake};
use tokio_util::sync::CancellationToken;

use crate::output::{Importance, Output};

/// Leave to change the machine.
pub struct RealEffects {
    host: Arc<Host>,
    output: Output,
}

impl RealEffects {
    /// Files are replaced by the committer of `host`. What commands complain about goes to standard error.
    #[must_use]
    pub fn new(host: Arc<Host>) -> RealEffects {
        RealEffects::saying(host, Output::default())
    }

    /// The same, with what commands complain about where the command prints.
    pub(crate) fn saying(host: Arc<Host>, output: Output) -> RealEffects {
        RealEffects { host, output }
    }
}

impl Effects for RealEffects {
    fn spawn_shell(&self, command: &str, wake: Wake) -> io::Result<Box<dyn RunningCommand>> {
        let newest = Arc::new(Mutex::new(Newest::default()));
        let stop = CancellationToken::new();
        let follower = Follower {
            command: Command::shell("/bin/sh", command),
            host: self.host.clone(),
            output: self.output.clone(),
            newest: newest.clone(),
            stop: stop.clone(),
            wake,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (started, answer) = std::sync::mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("command output".to_owned())
            .spawn(move || runtime.block_on(follower.follow(&started)))?;
        let gone = || io::Error::other("the thread that follows the command has ended");
        answer.recv().map_err(|_| gone())??;
        Ok(Box::new(Shell {
            newest,
            stop,
            thread: Some(thread),
        }))
    }

    fn create_directory(&self, path: &str, mode: u32) -> io::Result<()> {
        std::fs::DirBuilder::new().recursive(true).mode(mode).create(path)
    }

    fn write_file(&self, path: &str, content: &[u8], mode: u32) -> io::Result<()> {
        let path =
            AbsolutePath::new(path).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let request = Replace::bytes(path, content.to_vec()).mode(mode);
        self.host
            .committer
            .replace(request)
            .map(drop)
            .map_err(io::Error::other)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        match std::fs::symlink_metadata(path)?.is_dir() {
            true => std::fs::remove_dir(path),
            false => std::fs::remove_file(path),
        }
    }

    fn create_new(&self, path: &str, content: &[u8]) -> io::Result<()> {
        // Whoever sees the file sees all of it: it gets its name when it is complete.
        let directory = Path::new(path).parent().unwrap_or(Path::new("/"));
        let mut file = tempfile::Builder::new()
            .prefix(TEMPORARY_PREFIX)
            .tempfile_in(directory)?;
        file.write_all(content)?;
        file.as_file().sync_all()?;
        file.persist_noclobber(path)?;
        Ok(())
    }
}

/// What a command has printed and nobody has taken. One line is enough: only the newest value counts.
#[derive(Default)]
struct Newest {
    line: Option<Vec<u8>>,
    ended: bool,
}

/// Reads what a command prints, on a thread of its own.
struct Follower {
    command: Command,
    host: Arc<Host>,
    output: Output,
    newest: Arc<Mutex<Newest>>,
    stop: CancellationToken,
    wake: Wake,
}

impl Follower {
    async fn follow(self, started: &std::sync::mpsc::Sender<io::Result<()>>) {
        let mut lines = match self.host.processes.start_lines(&self.command).await {
            Ok(lines) => lines,
            Err(error) => {
                // Whoever waits for the answer tells it.
                let _ = started.send(Err(io::Error::other(error)));
                return;
            }
        };
        let _ = started.send(Ok(()));
        loop {
            let event = tokio::select! {
                event = lines.next() => event,
                () = self.stop.cancelled() => {
                    let _ = lines.stop(Signal::KILL, None).await;
                    return;
                }
            };
            let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
            match event {
                Ok(LineEvent::Line(line)) => newest.line = Some(line),
                Ok(LineEvent::ErrorLine(line)) => {
                    drop(newest);
                    let line = String::from_utf8_lossy(&line);
                    let text = format!("os.system: {}", visible(line.trim_end_matches(['\n', '\r'])));
                    self.output.say(Importance::Warning, text);
                    continue;
                }
                Ok(LineEvent::Ended(_)) | Err(_) => newest.ended = true,
            }
            let ended = newest.ended;
            drop(newest);
            self.wake.wake();
            if ended {
                return;
            }
        }
    }
}

struct Shell {
    newest: Arc<Mutex<Newest>>,
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

impl RunningCommand for Shell {
    fn lines(&mut self) -> (Vec<Vec<u8>>, bool) {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        (newest.line.take().into_iter().collect(), newest.ended)
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
