//! Commands that are talked with: both ways, in frames.
//!
//! The command's standard output is one end of a connection, which is read as well as written. A frame is four bytes that say how
//! long the rest is, the most significant first, and the rest.

use super::group::Group;
use super::run::reached;
use super::{Command, Exit, Processes, RunError};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::Instant;

/// How much is kept of the end of what it wrote to standard error.
const KEPT: usize = 4 * 1024;

/// How long the end of a command is waited for that has closed its connection.
const UNTIL_REAPED: Duration = Duration::from_secs(2);

/// A command that is talked with. Dropping it kills its process group.
#[derive(Debug)]
pub struct Conversation {
    group: Group,
    connection: UnixStream,
    /// The end of what it wrote to standard error.
    said: Vec<u8>,
    /// What has arrived of the frame that is not complete.
    arrived: Vec<u8>,
}

/// A conversation that came to its end.
#[derive(Debug, thiserror::Error)]
pub enum ConversationError {
    /// Nothing more came until the time was over.
    #[error("no answer in time")]
    TimedOut,
    /// A frame is longer than was asked for.
    #[error("an answer of {0} bytes")]
    TooLong(u64),
    /// The command ended, or closed its connection.
    #[error("it ended")]
    Ended {
        /// How, if it ended.
        exit: Option<Exit>,
        /// The end of what it wrote to standard error.
        said: Vec<u8>,
    },
    /// The system refused.
    #[error(transparent)]
    System(#[from] io::Error),
}

impl Conversation {
    pub(super) async fn start(command: &Command, processes: &Processes) -> Result<Self, RunError> {
        let failed = |source: io::Error| RunError::Start {
            program: command.program.clone().into(),
            source,
        };
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().map_err(failed)?;
        ours.set_nonblocking(true).map_err(failed)?;
        let connection = UnixStream::from_std(ours).map_err(failed)?;
        let group = Group::start_connected(command, processes, theirs.into()).await?;
        Ok(Self {
            group,
            connection,
            said: Vec::new(),
            arrived: Vec::new(),
        })
    }

    /// Sends a frame.
    ///
    /// # Errors
    /// When it could not be sent until `deadline`; then nothing more can be said.
    pub async fn send(&mut self, frame: &[u8], deadline: Option<Instant>) -> Result<(), ConversationError> {
        let length =
            u32::try_from(frame.len()).map_err(|_| ConversationError::TooLong(frame.len() as u64))?;
        let mut whole = Vec::with_capacity(frame.len() + 4);
        whole.extend_from_slice(&length.to_be_bytes());
        whole.extend_from_slice(frame);
        let mut rest = whole.as_slice();
        while !rest.is_empty() {
            let (_, _, stderr) = self.group.parts();
            let open = stderr.is_open();
            tokio::select! {
                biased;
                () = reached(deadline) => return Err(ConversationError::TimedOut),
                written = self.connection.write(rest) => match written {
                    Ok(0) | Err(_) => return Err(self.end().await),
                    Ok(written) => rest = &rest[written..],
                },
                bytes = stderr.read(), if open => keep_end(&mut self.said, bytes),
            }
        }
        Ok(())
    }

    /// The next frame, of at most so many bytes.
    ///
    /// # Errors
    /// When none came until `deadline`, or none will come. After that nothing is to be waited for.
    pub async fn receive(
        &mut self,
        most: usize,
        deadline: Option<Instant>,
    ) -> Result<Vec<u8>, ConversationError> {
        let mut wanted = 4;
        let mut is_length = true;
        loop {
            while self.arrived.len() < wanted {
                let room = (wanted - self.arrived.len()).min(64 * 1024);
                let mut chunk = vec![0; room];
                let (_, _, stderr) = self.group.parts();
                let open = stderr.is_open();
                tokio::select! {
                    biased;
                    read = self.connection.read(&mut chunk) => match read {
                        Ok(0) | Err(_) => return Err(self.end().await),
                        Ok(read) => self.arrived.extend_from_slice(&chunk[..read]),
                    },
                    bytes = stderr.read(), if open => keep_end(&mut self.said, bytes),
                    () = reached(deadline) => return Err(ConversationError::TimedOut),
                }
                // One that never stops talking is stopped too.
                if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                    return Err(ConversationError::TimedOut);
                }
            }
            let frame = std::mem::take(&mut self.arrived);
            if !is_length {
                return Ok(frame);
            }
            let length = frame
                .iter()
                .fold(0, |length, byte| length << 8 | u64::from(*byte));
            match usize::try_from(length) {
                Ok(length) if length <= most => wanted = length,
                _ => return Err(ConversationError::TooLong(length)),
            }
            is_length = false;
        }
    }

    /// Kills the command's process group and waits until its leader is no more.
    pub async fn close(mut self) {
        self.group.signal(super::Signal::KILL);
        // Nobody wants to know how it ended.
        let _ = self.group.wait().await;
    }

    /// What is left to be known of a command that said its last word.
    async fn end(&mut self) -> ConversationError {
        let waited = tokio::time::timeout(UNTIL_REAPED, self.group.wait()).await;
        let exit = waited.ok().and_then(Result::ok);
        let rest = self.group.stderr.drain();
        keep_end(&mut self.said, &rest);
        ConversationError::Ended {
            exit,
            said: std::mem::take(&mut self.said),
        }
    }
}

fn keep_end(said: &mut Vec<u8>, bytes: &[u8]) {
    said.extend_from_slice(bytes);
    let surplus = said.len().saturating_sub(KEPT);
    said.drain(..surplus);
}
