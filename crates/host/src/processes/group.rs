//! A child process that leads a group, and the pipes to it.

use super::guardian::Guardian;
use super::launch::{Credentials, Launch, LaunchFailure, Step};
use super::starter::leader;
use super::{Command, Environment, Exit, Processes, ProgramError, RunError, Signal};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::process::{Pid, getegid, geteuid, getpid, kill_process_group};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::pipe::Receiver;
use tokio::process::Child;
use tokio::sync::OwnedSemaphorePermit;

const CHUNK: usize = 64 * 1024;

/// A started command. Dropping it kills the whole group.
#[derive(Debug)]
pub(super) struct Group {
    child: Child,
    program: PathBuf,
    /// Guards the group until the leader is reaped.
    guarded: Option<(Arc<Guardian>, i32)>,
    /// Commands end with the thread that started them.
    _processes: Processes,
    /// Others wait for its descriptors.
    _turn: Option<OwnedSemaphorePermit>,
    pub(super) stdout: Pipe,
    pub(super) stderr: Pipe,
}

impl Group {
    /// May be given up: then nothing runs.
    pub(super) async fn start(command: &Command, processes: &Processes) -> Result<Self, RunError> {
        let turn = processes.turn().await;
        let (stdout, to_stdout) = Pipe::open().map_err(|source| RunError::Start {
            program: PathBuf::from(&command.program),
            source,
        })?;
        Self::start_writing(command, processes, stdout, to_stdout, turn).await
    }

    /// The same with this as standard output.
    pub(super) async fn start_connected(
        command: &Command,
        processes: &Processes,
        stdout: OwnedFd,
    ) -> Result<Self, RunError> {
        let turn = processes.turn().await;
        Self::start_writing(command, processes, Pipe::default(), stdout.into(), turn).await
    }

    async fn start_writing(
        command: &Command,
        processes: &Processes,
        stdout: Pipe,
        to_stdout: Stdio,
        turn: Option<OwnedSemaphorePermit>,
    ) -> Result<Self, RunError> {
        let program = PathBuf::from(&command.program);
        let failed = |source: io::Error| RunError::Start {
            program: program.clone(),
            source,
        };
        let launch = launch(command, processes)?;
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().map_err(failed)?;
        let (stderr, to_stderr) = Pipe::open().map_err(failed)?;
        let starter = processes.starter().map_err(failed)?;
        let started = starter.start(theirs.into(), to_stdout, to_stderr).await;
        let started = started.map_err(failed)?;
        let guarded = started.guardian.zip(leader(&started.child));
        let mut group = Self {
            child: started.child,
            program: program.clone(),
            guarded,
            _processes: processes.clone(),
            _turn: turn,
            stdout,
            stderr,
        };
        let told = tell(ours, &launch).await;
        let refused = match told {
            Ok(None) => return Ok(group),
            Ok(Some(failure)) => of_launcher(failure, command, &launch),
            Err(source) => failed(source),
        };
        let _ = group.wait().await;
        Err(refused)
    }

    /// Sends a signal to every process of the group; nothing if the leader was reaped.
    pub(super) fn signal(&self, signal: Signal) {
        if let Some(leader) = leader(&self.child).and_then(Pid::from_raw) {
            // All of them may have ended by themselves just now.
            let _ = kill_process_group(leader, signal.raw());
        }
    }

    /// Waits until the leader has ended, and reaps it. May be given up and called again.
    pub(super) async fn wait(&mut self) -> Result<Exit, RunError> {
        wait(&mut self.child, &mut self.guarded, &self.program).await
    }

    /// The leader and its pipes, to be waited for at the same time.
    pub(super) fn parts(&mut self) -> (Leader<'_>, &mut Pipe, &mut Pipe) {
        let leader = Leader {
            child: &mut self.child,
            guarded: &mut self.guarded,
            program: &self.program,
        };
        (leader, &mut self.stdout, &mut self.stderr)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        if let Some((guardian, leader)) = self.guarded.take() {
            guardian.release(leader);
        }
    }
}

/// Tells a launcher what to become, and answers why it could not.
async fn tell(
    connection: std::os::unix::net::UnixStream,
    launch: &Launch,
) -> io::Result<Option<LaunchFailure>> {
    connection.set_nonblocking(true)?;
    let mut connection = UnixStream::from_std(connection)?;
    connection
        .write_all(&postcard::to_allocvec(launch).map_err(io::Error::other)?)
        .await?;
    connection.shutdown().await?;
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer).await?;
    // The connection ends without a word when the launcher has become the program.
    if answer.is_empty() {
        return Ok(None);
    }
    Ok(Some(postcard::from_bytes(&answer).map_err(io::Error::other)?))
}

fn of_launcher(failure: LaunchFailure, command: &Command, launch: &Launch) -> RunError {
    let source = io::Error::from_raw_os_error(failure.error);
    let program = command.program.clone();
    match failure.step {
        Step::Isolate => RunError::Isolate { source },
        Step::Find => ProgramError::NotFound { program }.into(),
        Step::FindInRelative(entry) => ProgramError::RelativeEntry {
            program,
            entry: entry.into(),
        }
        .into(),
        Step::Credentials => {
            let (user, group) = launch
                .credentials
                .as_ref()
                .map_or((0, 0), |as_whom| (as_whom.user, as_whom.group));
            RunError::TakeCredentials { user, group, source }
        }
        Step::Limit(limit) => RunError::Limit { limit, source },
        Step::Capabilities => RunError::Capabilities { source },
        Step::Directory => RunError::Directory {
            directory: command.directory.clone().unwrap_or_default(),
            source,
        },
        Step::Start(program) => RunError::Start {
            program: program.into(),
            source,
        },
    }
}

fn launch(command: &Command, processes: &Processes) -> Result<Launch, RunError> {
    let environment = match &command.environment {
        Environment::Inherited => std::env::vars_os()
            .chain([("PATH".into(), processes.search_path.clone())])
            .collect(),
        Environment::Exactly(variables) => variables.clone(),
    };
    Ok(Launch {
        parent: getpid().as_raw_nonzero().get(),
        program: command.program.clone(),
        arguments: command.arguments.clone(),
        environment,
        directory: command.directory.clone().map(PathBuf::into_os_string),
        search_path: processes.search_path.clone(),
        credentials: credentials(command)?,
        limits: command.limits.clone(),
        capabilities: command.capabilities.clone(),
    })
}

/// The process that leads a group.
pub(super) struct Leader<'a> {
    child: &'a mut Child,
    guarded: &'a mut Option<(Arc<Guardian>, i32)>,
    program: &'a Path,
}

impl Leader<'_> {
    /// As [`Group::wait`].
    pub(super) async fn wait(&mut self) -> Result<Exit, RunError> {
        wait(self.child, self.guarded, self.program).await
    }
}

async fn wait(
    child: &mut Child,
    guarded: &mut Option<(Arc<Guardian>, i32)>,
    program: &Path,
) -> Result<Exit, RunError> {
    match child.wait().await {
        Ok(status) => {
            if let Some((guardian, leader)) = guarded.take() {
                guardian.release(leader);
            }
            Ok(Exit::of(status))
        }
        Err(source) => Err(RunError::Wait {
            program: program.to_path_buf(),
            source,
        }),
    }
}

/// Whom the command is to be run as, if not as us.
fn credentials(command: &Command) -> Result<Option<Credentials>, RunError> {
    let (own_user, own_group) = (geteuid().as_raw(), getegid().as_raw());
    let (user, group) = (
        command.user.unwrap_or(own_user),
        command.group.unwrap_or(own_group),
    );
    if (user, group) == (own_user, own_group) {
        return Ok(None);
    }
    if own_user != 0 {
        return Err(RunError::Credentials { user, group });
    }
    Ok(Some(Credentials {
        user,
        group,
        groups: command.groups.clone(),
    }))
}

/// The reading end of a pipe; nothing once it has ended.
#[derive(Debug, Default)]
pub(super) struct Pipe {
    descriptor: Option<Receiver>,
    buffer: Vec<u8>,
}

impl Pipe {
    /// A pipe and its other end.
    fn open() -> io::Result<(Self, Stdio)> {
        let (reader, writer) = io::pipe()?;
        let reader = OwnedFd::from(reader);
        // This makes reading non-blocking for us alone: the writing end stays as programs expect it.
        let descriptor = Some(Receiver::from_owned_fd(reader)?);
        Ok((
            Self {
                descriptor,
                buffer: Vec::new(),
            },
            Stdio::from(writer),
        ))
    }

    pub(super) fn is_open(&self) -> bool {
        self.descriptor.is_some()
    }

    /// The next piece; empty at the end. May be given up and called again without losing anything.
    pub(super) async fn read(&mut self) -> &[u8] {
        let Some(descriptor) = &self.descriptor else {
            return &[];
        };
        self.buffer.resize(CHUNK, 0);
        let count = loop {
            if descriptor.readable().await.is_err() {
                break 0;
            }
            match descriptor.try_read(&mut self.buffer) {
                Ok(count) => break count,
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(_) => break 0,
            }
        };
        if count == 0 {
            self.close();
        }
        &self.buffer[..count]
    }

    /// What is in the pipe at this moment, without waiting. The pipe is closed then: whoever still holds the
    /// other end writes for nobody.
    pub(super) fn drain(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        if let Some(descriptor) = &self.descriptor {
            // Past the runtime's idea of what is ready, which may be a moment old. And not a byte more than was
            // there, or a descendant that never stops would never let us.
            let reader = descriptor.as_fd();
            let present = rustix::io::ioctl_fionread(reader).unwrap_or(0);
            rest.resize(usize::try_from(present).unwrap_or(0), 0);
            let mut filled = 0;
            while filled < rest.len() {
                match rustix::io::read(reader, &mut rest[filled..]) {
                    Ok(0) => break,
                    Ok(count) => filled += count,
                    Err(Errno::INTR) => {}
                    Err(_) => break,
                }
            }
            rest.truncate(filled);
        }
        self.close();
        rest
    }

    fn close(&mut self) {
        self.descriptor = None;
    }
}
