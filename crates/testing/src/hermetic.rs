//! Surroundings in which a test sees nothing of the developer's machine.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Once};

use tempfile::TempDir;

/// An empty home, an empty temporary directory, a fixed environment, and a working directory of its own. Removed when dropped.
#[derive(Debug)]
pub struct Hermetic {
    root: TempDir,
}

impl Hermetic {
    /// New surroundings.
    ///
    /// # Panics
    /// When the disk refuses.
    #[must_use]
    pub fn new() -> Hermetic {
        let root = tempfile::Builder::new().prefix("setpoint-test-").tempdir();
        let root = root.expect("a temporary directory can be made");
        for name in ["home", "tmp", "work"] {
            std::fs::create_dir(root.path().join(name)).expect("the directory is new");
        }
        Hermetic { root }
    }

    /// The working directory, in which tests put their files.
    #[must_use]
    pub fn directory(&self) -> PathBuf {
        self.root.path().join("work")
    }

    /// A path below the working directory.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory().join(name)
    }

    /// The home of what runs here.
    #[must_use]
    pub fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    /// Writes a file below the working directory, with its parents, and gives its path.
    ///
    /// # Panics
    /// When the disk refuses.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).expect("directories can be made in an empty place");
        }
        std::fs::write(&path, content).expect("files can be written there");
        path
    }

    /// A command that runs here.
    #[must_use]
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        SIGNALS.call_once(handle_hangup);
        let mut command = Command::new(program.as_ref());
        command
            .env_clear()
            .env(
                "PATH",
                "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            )
            .env("HOME", self.root.path().join("home"))
            .env("TMPDIR", self.root.path().join("tmp"))
            .env("XDG_CACHE_HOME", self.root.path().join("home/.cache"))
            .env("LANG", "C.UTF-8")
            .env("TZ", "UTC")
            .env("COLUMNS", "100")
            .current_dir(self.directory())
            .stdin(Stdio::null());
        command
    }

    /// Runs a program to its end.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn run(&self, program: impl AsRef<Path>, arguments: &[&str]) -> Finished {
        let output = self
            .command(program)
            .args(arguments)
            .output()
            .expect("the program can be started");
        Finished::new(&output, self.root.path())
    }
}

static SIGNALS: Once = Once::new();

/// Keeps programs under test from inheriting an ignored SIGHUP, as tests do that start under `nohup`: exec turns a handler into the
/// default action.
fn handle_hangup() {
    let handled = signal_hook::flag::register(signal_hook::consts::SIGHUP, Arc::default());
    handled.expect("SIGHUP can be handled");
}

impl Default for Hermetic {
    fn default() -> Hermetic {
        Hermetic::new()
    }
}

/// What a program said, with the names of the surroundings replaced: `$DIR` is the working directory.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a test that runs something asserts on what came of it"]
pub struct Finished {
    /// The exit code; −1 after a signal.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Finished {
    fn new(output: &Output, root: &Path) -> Finished {
        let text = |bytes: &[u8]| {
            let work = root.join("work");
            let text = String::from_utf8_lossy(bytes).replace(&*work.to_string_lossy(), "$DIR");
            text.replace(&*root.to_string_lossy(), "$ROOT")
        };
        Finished {
            code: output.status.code().unwrap_or(-1),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    }
}
