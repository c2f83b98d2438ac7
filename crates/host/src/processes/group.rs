//! A child process that leads a group, and the pipes to it.

use super::{Command, Environment, Exit, RunError, Signal};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::process::{Pid, getegid, geteuid, kill_process_group};
use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::net::unix::pipe::Receiver;
use tokio::process::Child;

const CHUNK: usize = 64 * 1024;

/// A started command. Dropping it kills the whole group.
#[derive(Debug)]
pub(super) struct Group {
    child: Child,
    program: PathBuf,
    pub(super) stdout: Pipe,
    pub(super) stderr: Pipe,
}

impl Group {
    pub(super) fn start(command: &Command, search_path: &OsStr) -> Result<Self, RunError> {
        let program = super::program::find(&command.program, command.directory.as_deref(), search_path)?;
        let failed = |source: io::Error| RunError::Start {
            program: program.clone(),
            source,
        };
        let mut start = tokio::process::Command::new(&program);
        start.arg0(&command.program).args(&command.arguments);
        start.stdin(Stdio::null()).process_group(0).kill_on_drop(true);
        if let Some(directory) = &command.directory {
            // Starting fails in one way for a missing program and a missing directory.
            match std::fs::metadata(directory) {
                Ok(found) if found.is_dir() => {}
                Ok(_) => {
                    let (directory, source) = (directory.clone(), Errno::NOTDIR.into());
                    return Err(RunError::Directory { directory, source });
                }
                Err(source) => {
                    return Err(RunError::Directory {
                        directory: directory.clone(),
                        source,
                    });
                }
            }
            start.current_dir(directory);
        }
        if let Environment::Exactly(variables) = &command.environment {
            start.env_clear().envs(variables);
        }
        if let Some((user, group)) = credentials(command)? {
            start.uid(user).gid(group);
        }
        let (stdout, to_stdout) = Pipe::open(command.captures_stdout).map_err(failed)?;
        let (stderr, to_stderr) = Pipe::open(command.captures_stderr).map_err(failed)?;
        start.stdout(to_stdout).stderr(to_stderr);
        let child = start.spawn().map_err(failed)?;
        // Our copies of the writing ends go with `start`, at the end of this function.
        Ok(Self {
            child,
            program,
            stdout,
            stderr,
        })
    }

    /// Sends a signal to every process of the group; nothing if the leader was reaped.
    pub(super) fn signal(&self, signal: Signal) {
        let leader = self
            .child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw);
        if let Some(leader) = leader {
            // All of them may have ended by themselves just now.
            let _ = kill_process_group(leader, signal.raw());
        }
    }

    /// Waits until the leader has ended, and reaps it. May be given up and called again.
    pub(super) async fn wait(&mut self) -> Result<Exit, RunError> {
        wait(&mut self.child, &self.program).await
    }

    /// The leader and its pipes, to be waited for at the same time.
    pub(super) fn parts(&mut self) -> (Leader<'_>, &mut Pipe, &mut Pipe) {
        let leader = Leader {
            child: &mut self.child,
            program: &self.program,
        };
        (leader, &mut self.stdout, &mut self.stderr)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// The process that leads a group.
pub(super) struct Leader<'a> {
    child: &'a mut Child,
    program: &'a Path,
}

impl Leader<'_> {
    /// As [`Group::wait`].
    pub(super) async fn wait(&mut self) -> Result<Exit, RunError> {
        wait(self.child, self.program).await
    }
}

async fn wait(child: &mut Child, program: &Path) -> Result<Exit, RunError> {
    match child.wait().await {
        Ok(status) => Ok(Exit::of(status)),
        Err(source) => Err(RunError::Wait {
            program: program.to_path_buf(),
            source,
        }),
    }
}

/// Whom the command is to be run as, if not as us.
fn credentials(command: &Command) -> Result<Option<(u32, u32)>, RunError> {
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
    Ok(Some((user, group)))
}

/// The reading end of a pipe; nothing once it has ended.
#[derive(Debug)]
pub(super) struct Pipe {
    descriptor: Option<Receiver>,
    buffer: Vec<u8>,
}

impl Pipe {
    /// A pipe and its other end; or none and the null device.
    fn open(captures: bool) -> io::Result<(Self, Stdio)> {
        if !captures {
            return Ok((
                Self {
                    descriptor: None,
                    buffer: Vec::new(),
                },
                Stdio::null(),
            ));
        }
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
