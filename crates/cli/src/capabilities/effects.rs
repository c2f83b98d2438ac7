//! Changing the machine on behalf of sources: commands that run on, and their small files.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::process::{Pid, Signal, kill_process_group};
use setpoint_host::Host;
use setpoint_host::files::{AbsolutePath, Replace, TEMPORARY_PREFIX};
use setpoint_value::{Effects, RunningCommand, Wake};

/// How many lines of a command may wait to be taken; older ones are dropped, since only the newest value counts.
const MOST_LINES: usize = 4096;

/// Leave to change the machine.
pub struct RealEffects {
    host: Arc<Host>,
}

impl RealEffects {
    /// Files are replaced by the committer of `host`.
    #[must_use]
    pub fn new(host: Arc<Host>) -> RealEffects {
        RealEffects { host }
    }
}

impl Effects for RealEffects {
    fn spawn_shell(&self, command: &str, wake: Wake) -> io::Result<Box<dyn RunningCommand>> {
        let mut child = Command::new("/bin/sh")
            .arg("-c")
            .arg(command)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let output = child
            .stdout
            .take()
            .ok_or_else(|| io::Error::other("the command has no output"))?;
        let taken: Arc<Mutex<Taken>> = Arc::default();
        let running = Shell {
            child,
            taken: taken.clone(),
        };
        std::thread::Builder::new()
            .name("command output".to_owned())
            .spawn(move || {
                for line in BufReader::new(output).split(b'\n') {
                    let Ok(line) = line else { break };
                    let mut taken = taken.lock().unwrap_or_else(PoisonError::into_inner);
                    if taken.lines.len() >= MOST_LINES {
                        taken.lines.remove(0);
                    }
                    taken.lines.push(line);
                    drop(taken);
                    wake.wake();
                }
                taken.lock().unwrap_or_else(PoisonError::into_inner).ended = true;
                wake.wake();
            })?;
        Ok(Box::new(running))
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

#[derive(Default)]
struct Taken {
    lines: Vec<Vec<u8>>,
    ended: bool,
}

struct Shell {
    child: Child,
    taken: Arc<Mutex<Taken>>,
}

impl RunningCommand for Shell {
    fn lines(&mut self) -> (Vec<Vec<u8>>, bool) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        (std::mem::take(&mut taken.lines), taken.ended)
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}
