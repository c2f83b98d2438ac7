//! Commands that run on and speak in lines.

use super::group::Group;
use super::output::Stream;
use super::run::reached;
use super::{Command, Exit, Processes, RunError, Signal};
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

/// How much of a line is kept. It may be longer; the rest of it is not.
const KEPT: usize = 64 * 1024;

/// What a running command did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineEvent {
    /// It printed a line. Of a very long one the beginning is given.
    Line(Vec<u8>),
    /// It wrote a line that is not empty to standard error.
    ErrorLine(Vec<u8>),
    /// It ended.
    Ended(Exit),
}

/// A command that runs on. Dropping it kills its process group.
///
/// Both streams are read while [`Lines::next`] is waited for, so that a command that talks much on one of them
/// does not block.
#[derive(Debug)]
pub struct Lines {
    group: Group,
    stdout: Splitter,
    stderr: Splitter,
    ready: VecDeque<LineEvent>,
    exit: Option<Exit>,
}

impl Lines {
    pub(super) async fn start(command: &Command, processes: &Processes) -> Result<Self, RunError> {
        Ok(Self {
            group: Group::start(command, processes).await?,
            stdout: Splitter::default(),
            stderr: Splitter::default(),
            ready: VecDeque::new(),
            exit: None,
        })
    }

    /// The next thing that happens. May be given up and called again without losing anything. After the end it
    /// answers the end, again and again.
    pub async fn next(&mut self) -> Result<LineEvent, RunError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(event);
            }
            if let Some(exit) = self.exit {
                return Ok(LineEvent::Ended(exit));
            }
            let (mut leader, stdout, stderr) = self.group.parts();
            let (stdout_open, stderr_open) = (stdout.is_open(), stderr.is_open());
            tokio::select! {
                // The end first: a descendant that never stops writing must not hide it.
                biased;
                exit = leader.wait() => {
                    self.exit = Some(exit?);
                    let rest = self.group.stdout.drain();
                    self.stdout.take(Stream::Stdout, &rest, &mut self.ready);
                    self.stdout.finish(Stream::Stdout, &mut self.ready);
                    let rest = self.group.stderr.drain();
                    self.stderr.take(Stream::Stderr, &rest, &mut self.ready);
                    self.stderr.finish(Stream::Stderr, &mut self.ready);
                }
                bytes = stdout.read(), if stdout_open => self.stdout.take(Stream::Stdout, bytes, &mut self.ready),
                bytes = stderr.read(), if stderr_open => self.stderr.take(Stream::Stderr, bytes, &mut self.ready),
            }
        }
    }

    /// Asks the process group to end, waits, and kills it if it has not ended after `grace`.
    pub async fn stop(mut self, signal: Signal, grace: Option<Duration>) -> Result<Exit, RunError> {
        if let Some(exit) = self.exit {
            return Ok(exit);
        }
        self.group.signal(signal);
        let deadline = grace.map(|grace| Instant::now() + grace);
        loop {
            tokio::select! {
                // Its streams are read on, or it might never get to its end.
                event = self.next() => if let LineEvent::Ended(exit) = event? { return Ok(exit) },
                () = reached(deadline) => {
                    self.group.signal(Signal::KILL);
                    return self.group.wait().await;
                }
            }
        }
    }
}

/// Cuts a stream into lines.
#[derive(Debug, Default)]
struct Splitter {
    /// The beginning of the line that is not finished.
    line: Vec<u8>,
}

impl Splitter {
    fn take(&mut self, stream: Stream, bytes: &[u8], ready: &mut VecDeque<LineEvent>) {
        let mut pieces = bytes.split(|byte| *byte == b'\n');
        // The last piece has no end yet.
        let unfinished = pieces.next_back().unwrap_or_default();
        for piece in pieces {
            self.keep(piece);
            self.end_line(stream, ready);
        }
        self.keep(unfinished);
    }

    fn keep(&mut self, piece: &[u8]) {
        let room = KEPT.saturating_sub(self.line.len());
        self.line.extend_from_slice(&piece[..piece.len().min(room)]);
    }

    fn finish(&mut self, stream: Stream, ready: &mut VecDeque<LineEvent>) {
        if !self.line.is_empty() {
            self.end_line(stream, ready);
        }
    }

    fn end_line(&mut self, stream: Stream, ready: &mut VecDeque<LineEvent>) {
        let line = std::mem::take(&mut self.line);
        match stream {
            Stream::Stdout => ready.push_back(LineEvent::Line(line)),
            Stream::Stderr if line.is_empty() => {}
            Stream::Stderr => ready.push_back(LineEvent::ErrorLine(line)),
        }
    }
}
