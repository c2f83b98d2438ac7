//! Changing the machine on behalf of sources: commands that run on, and their small files.

use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;

use setpoint_diagnostics::visible;
use setpoint_flow::Evaluator;
use setpoint_host::Host;
use setpoint_host::files::{AbsolutePath, Replace, TEMPORARY_PREFIX};
use setpoint_host::processes::{Command, LineEvent, Lines, RunError, Signal};
use setpoint_host::sync::Mutex;
use setpoint_value::{Commands, Effects, RunningCommand, Wake};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::report::{Importance, Reporter};

/// The access of the sources of a program to the machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SourceAccess {
    /// To read it only.
    #[default]
    Read,
    /// To run the commands of the program, too.
    RunCommands,
    /// To change it.
    Change,
}

impl SourceAccess {
    /// An evaluator whose sources have this access: what they may not do gives unknowns.
    #[must_use]
    pub fn limit(self, evaluator: Evaluator) -> Evaluator {
        match self {
            SourceAccess::Change => evaluator,
            SourceAccess::RunCommands => evaluator.predicting(true),
            SourceAccess::Read => evaluator.predicting(false),
        }
    }
}

/// Changes the machine, and runs commands.
pub struct RealEffects {
    host: Arc<Host>,
    reporter: Reporter,
    /// To the thread that follows commands; none before the first one.
    followers: Mutex<Option<UnboundedSender<Follower>>>,
}

impl RealEffects {
    /// Files are replaced by the committer of `host`. What commands write to standard error is reported.
    #[must_use]
    pub fn new(host: Arc<Host>, reporter: Reporter) -> RealEffects {
        RealEffects {
            host,
            reporter,
            followers: Mutex::default(),
        }
    }

    /// Has a command followed. Nobody waits for anything.
    fn follow(&self, follower: Follower) -> io::Result<()> {
        let mut followers = self.followers.lock();
        let sender = match &mut *followers {
            Some(sender) => sender,
            none => none.insert(start_following()?),
        };
        sender
            .send(follower)
            .map_err(|_| io::Error::other("the thread that follows commands has ended"))
    }
}

/// Starts the thread that follows all commands. It ends when nobody can start further ones and all have ended.
fn start_following() -> io::Result<UnboundedSender<Follower>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (sender, followers) = unbounded_channel();
    std::thread::Builder::new()
        .name("command output".to_owned())
        .spawn(move || runtime.block_on(follow_all(followers)))?;
    Ok(sender)
}

async fn follow_all(mut followers: UnboundedReceiver<Follower>) {
    let mut running = JoinSet::new();
    loop {
        tokio::select! {
            follower = followers.recv() => match follower {
                Some(follower) => drop(running.spawn(follower.follow())),
                None => break,
            },
            Some(_) = running.join_next() => {}
        }
    }
    running.join_all().await;
}

impl Commands for RealEffects {
    fn run_shell(&self, command: &str, wake: Wake) -> Box<dyn RunningCommand> {
        let newest = Arc::new(Mutex::new(Newest::default()));
        let (wanted, wanting) = watch::channel(command.to_owned());
        let follower = Follower {
            wanted: wanting,
            host: self.host.clone(),
            reporter: self.reporter.clone(),
            newest: newest.clone(),
            wake,
        };
        if let Err(error) = self.follow(follower) {
            newest.lock().failure = Some(error);
        }
        Box::new(Shell { newest, wanted })
    }
}

impl Effects for RealEffects {
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
    /// How it ended.
    end: Option<String>,
    /// Why it does not run, until somebody was told.
    failure: Option<io::Error>,
}

/// Runs the command that is wanted, and reads what it prints.
struct Follower {
    /// Closed when none is wanted any more.
    wanted: watch::Receiver<String>,
    host: Arc<Host>,
    reporter: Reporter,
    newest: Arc<Mutex<Newest>>,
    wake: Wake,
}

impl Follower {
    async fn follow(mut self) {
        loop {
            let text = self.wanted.borrow_and_update().clone();
            let command = Command::shell("/bin/sh", text);
            let started = tokio::select! {
                started = self.host.processes.start_lines(&command) => Some(started),
                _ = self.wanted.changed() => None,
            };
            match started {
                Some(Ok(lines)) => self.read(lines).await,
                Some(Err(error)) => {
                    self.tell(|newest| newest.failure = Some(io::Error::other(error)));
                    let _ = self.wanted.changed().await;
                }
                None => {}
            }
            if self.wanted.has_changed().is_err() {
                return;
            }
        }
    }

    /// Reads what a command prints until another one is wanted, or none; then this one has ended.
    async fn read(&mut self, mut lines: Lines) {
        loop {
            let event = tokio::select! {
                event = lines.next() => event,
                _ = self.wanted.changed() => {
                    // It ends before another one begins: two must not work on the same thing at once.
                    let _ = lines.stop(Signal::KILL, None).await;
                    return;
                }
            };
            if self.take(event) {
                let _ = self.wanted.changed().await;
                return;
            }
        }
    }

    /// Takes what a command has done; answers whether that was its end.
    fn take(&self, event: Result<LineEvent, RunError>) -> bool {
        match event {
            Ok(LineEvent::Line(line)) => self.tell(|newest| newest.line = Some(line)),
            Ok(LineEvent::ErrorLine(line)) => {
                let line = String::from_utf8_lossy(&line);
                let text = format!("os.system: {}", visible(line.trim_end_matches(['\n', '\r'])));
                self.reporter.say(Importance::Warning, text);
            }
            Ok(LineEvent::Ended(exit)) => {
                self.tell(|newest| newest.end = Some(exit.to_string()));
                return true;
            }
            Err(error) => {
                self.tell(|newest| newest.failure = Some(io::Error::other(error)));
                return true;
            }
        }
        false
    }

    /// Leaves something of the command that is wanted; of another one nobody wants to know.
    fn tell(&self, change: impl FnOnce(&mut Newest)) {
        let mut newest = self.newest.lock();
        if self.wanted.has_changed().is_ok_and(|is_another| !is_another) {
            change(&mut newest);
            drop(newest);
            self.wake.wake();
        }
    }
}

/// A command that is wanted until this is dropped.
struct Shell {
    newest: Arc<Mutex<Newest>>,
    wanted: watch::Sender<String>,
}

impl RunningCommand for Shell {
    fn lines(&mut self) -> io::Result<(Vec<Vec<u8>>, Option<String>)> {
        let mut newest = self.newest.lock();
        match newest.failure.take() {
            Some(failure) => Err(failure),
            None => Ok((newest.line.take().into_iter().collect(), newest.end.clone())),
        }
    }

    fn replace(&mut self, command: &str) {
        // Under the lock, so that nothing of the old command is left after it.
        let mut newest = self.newest.lock();
        *newest = Newest::default();
        self.wanted.send_replace(command.to_owned());
    }
}
