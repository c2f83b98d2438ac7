//! A process that ends our commands when we no longer can.
//!
//! The kernel ends a command's leader when we die, but not what a shell has started. So a small process of ours knows the groups
//! of all running commands, and kills them when its connection to us ends.

use super::launcher::{Launcher, NAME, close_inherited};
use rustix::process::{Pid, Signal, kill_process_group, setsid};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode, Stdio};

/// The launcher's argument that makes it a guardian.
pub(super) const DUTY: &str = "--guard-commands";

/// Our end of the connection.
#[derive(Debug)]
pub(super) struct Guardian {
    connection: UnixStream,
    process: Child,
}

impl Guardian {
    pub(super) fn start(launcher: &Launcher) -> std::io::Result<Guardian> {
        let (connection, theirs) = UnixStream::pair()?;
        // Who guards must never hold up who is guarded.
        connection.set_nonblocking(true)?;
        let mut command = Command::new(launcher.path());
        command.arg0(NAME).arg(DUTY).env_clear().current_dir("/");
        command
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let process = command.spawn()?;
        Ok(Guardian { connection, process })
    }

    /// A group that is to end when we do.
    pub(super) fn watch_over(&self, leader: i32) {
        self.tell(leader);
    }

    /// The group's leader was reaped: its number may soon be somebody else's.
    pub(super) fn release(&self, leader: i32) {
        self.tell(-leader);
    }

    fn tell(&self, record: i32) {
        // Without a guardian everything goes on, with one safeguard less.
        let _ = (&self.connection).write_all(&record.to_ne_bytes());
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        let _ = self.connection.shutdown(std::net::Shutdown::Both);
        let _ = self.process.wait();
    }
}

/// The guardian's own process.
pub(super) fn main() -> ExitCode {
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
