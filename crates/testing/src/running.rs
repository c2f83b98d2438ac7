//! A program that stays, followed by what it prints.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long anything may take before a test gives up. Generous: machines of CI are slow.
const LIMIT: Duration = Duration::from_secs(60);

/// A program that runs. Killed when dropped.
#[derive(Debug)]
pub struct Running {
    child: Child,
    lines: Receiver<String>,
    /// Everything it printed until now, for messages.
    seen: Vec<String>,
    stderr: Option<JoinHandle<String>>,
}

impl Running {
    /// Starts a command and follows its standard output, line by line.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn start(mut command: Command) -> Running {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program can be started");
        let stdout = child.stdout.take().expect("it was piped");
        let mut errors = child.stderr.take().expect("it was piped");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                let Ok(line) = line else { break };
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let stderr = std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = errors.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        Running {
            child,
            lines,
            seen: Vec::new(),
            stderr: Some(stderr),
        }
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for a line that `wanted` accepts, and gives it.
    ///
    /// # Panics
    /// When none comes in a minute, or the program ends before.
    pub fn wait_for(&mut self, what: &str, mut wanted: impl FnMut(&str) -> bool) -> String {
        let deadline = Instant::now() + LIMIT;
        loop {
            match self
                .lines
                .recv_timeout(deadline.saturating_duration_since(Instant::now()))
            {
                Ok(line) => {
                    self.seen.push(line.clone());
                    if wanted(&line) {
                        return line;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    panic!("no {what} in time; seen:\n{}", self.seen.join("\n"))
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let _ = self.child.kill();
                    let errors = self
                        .stderr
                        .take()
                        .and_then(|thread| thread.join().ok())
                        .unwrap_or_default();
                    panic!("ended before {what}; seen:\n{}\n{errors}", self.seen.join("\n"));
                }
            }
        }
    }

    /// Lines that are there already.
    pub fn drain(&mut self) -> Vec<String> {
        let lines: Vec<String> = self.lines.try_iter().collect();
        self.seen.extend(lines.iter().cloned());
        lines
    }

    /// All lines that were read so far.
    #[must_use]
    pub fn seen(&self) -> &[String] {
        &self.seen
    }

    /// Sends a signal by its name, `TERM`.
    ///
    /// # Panics
    /// When there is no `kill` command.
    pub fn signal(&self, name: &str) {
        let status = Command::new("kill")
            .arg(format!("-{name}"))
            .arg(self.id().to_string())
            .status();
        assert!(status.expect("there is a `kill`").success(), "signal {name}");
    }

    /// Waits for its end and gives its status and what it printed on standard error.
    ///
    /// # Panics
    /// When it does not end in a minute.
    pub fn finish(mut self) -> (ExitStatus, String) {
        let deadline = Instant::now() + LIMIT;
        let status = loop {
            // Draining keeps it from blocking on a full pipe; a closed pipe means that it ended or is about to.
            match self.lines.recv_timeout(Duration::from_millis(20)) {
                Ok(line) => self.seen.push(line),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            if let Some(status) = self.child.try_wait().expect("the child is ours") {
                break status;
            }
            assert!(
                Instant::now() < deadline,
                "does not end; seen:\n{}",
                self.seen.join("\n")
            );
        };
        let errors = self
            .stderr
            .take()
            .and_then(|thread| thread.join().ok())
            .unwrap_or_default();
        (status, errors)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
