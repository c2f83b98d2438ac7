//! A process that ends our commands when we no longer can.
//!
//! The kernel ends a command's leader when we die, but not what a shell has started. So a small process of ours knows the groups
//! of all running commands, and kills them when its connection to us ends.

use super::launcher::{Launcher, NAME, close_inherited};
use crate::sync::Mutex;
use rustix::process::{Pid, Signal, kill_process_group, setsid};
use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The launcher's argument that makes it a guardian.
pub(super) const DUTY: &str = "--guard-commands";

/// How long the process must have lived to be started again at once: where none can live, trying costs next to nothing.
const PAUSE: Duration = Duration::from_secs(1);

/// Our side of the guardian. If the process is killed, another one takes its place and learns of all groups.
#[derive(Debug)]
pub(super) struct Guardian(Arc<Mutex<Guarded>>);

#[derive(Debug, Default)]
struct Guarded {
    /// The groups that are to end when we do.
    leaders: BTreeSet<i32>,
    /// Our end of the connection to the process; none while there is no process.
    connection: Option<UnixStream>,
    /// Whether no guardian is needed any more.
    is_over: bool,
}

impl Guardian {
    /// # Errors
    /// When no process or no thread can be started.
    pub(super) fn start(launcher: &Launcher) -> io::Result<Guardian> {
        let mut guarded = Guarded::default();
        let process = guarded.spawn(launcher)?;
        let guarded = Arc::new(Mutex::new(guarded));
        let guardian = Guardian(guarded.clone());
        let launcher = launcher.clone();
        std::thread::Builder::new()
            .name("guardian".to_owned())
            .spawn(move || keep_alive(&launcher, &guarded, process))?;
        Ok(guardian)
    }

    /// A group that is to end when we do.
    pub(super) fn watch_over(&self, leader: i32) {
        let mut guarded = self.0.lock();
        guarded.leaders.insert(leader);
        guarded.tell(leader);
    }

    /// The group's leader was reaped: its number may soon be somebody else's.
    pub(super) fn release(&self, leader: i32) {
        let mut guarded = self.0.lock();
        guarded.leaders.remove(&leader);
        guarded.tell(-leader);
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        let mut guarded = self.0.lock();
        guarded.is_over = true;
        guarded.connection = None;
    }
}

impl Guarded {
    /// Starts the process, which learns first of what is guarded already.
    fn spawn(&mut self, launcher: &Launcher) -> io::Result<Child> {
        let (connection, theirs) = UnixStream::pair()?;
        // The guardian must never hold up this process.
        connection.set_nonblocking(true)?;
        self.connection = Some(connection);
        for leader in &self.leaders {
            self.tell(*leader);
        }
        let mut command = Command::new(launcher.path());
        command.arg0(NAME).arg(DUTY).env_clear().current_dir("/");
        command
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
    }

    fn tell(&self, record: i32) {
        if let Some(mut connection) = self.connection.as_ref() {
            // Where it fails the process has ended, and the next one learns of all leaders.
            let _ = connection.write_all(&record.to_ne_bytes());
        }
    }
}

/// Waits for the end of the process, and starts another one while one is needed.
fn keep_alive(launcher: &Launcher, guarded: &Mutex<Guarded>, mut process: Child) {
    loop {
        let begun = Instant::now();
        let _ = process.wait();
        if begun.elapsed() < PAUSE && !guarded.lock().is_over {
            std::thread::sleep(PAUSE);
        }
        process = loop {
            let mut guarded = guarded.lock();
            if guarded.is_over {
                return;
            }
            if let Ok(process) = guarded.spawn(launcher) {
                break process;
            }
            drop(guarded);
            std::thread::sleep(PAUSE);
        };
    }
}

/// The guardian's own process.
pub(super) fn main() -> ExitCode {
    // The file that it was started from is called `exe`, which says little in a list of processes.
    let _ = rustix::thread::set_name(c"setpoint-guard");
    // What is sent to our terminal or group is not meant for it.
    if setsid().is_err() || close_inherited().is_err() {
        return ExitCode::FAILURE;
    }
    let mut leaders = BTreeSet::new();
    let mut record = [0; 4];
    let mut input = std::io::stdin().lock();
    while input.read_exact(&mut record).is_ok() {
        let number = i32::from_ne_bytes(record);
        if number > 0 {
            leaders.insert(number);
        } else {
            leaders.remove(&-number);
        }
    }
    for leader in leaders.into_iter().filter_map(Pid::from_raw) {
        let _ = kill_process_group(leader, Signal::KILL);
    }
    ExitCode::SUCCESS
}
