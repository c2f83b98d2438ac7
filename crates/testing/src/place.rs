//! Places that a test makes for itself: it runs again, alone, in namespaces of its own or with another environment.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use crate::repository;

const INSIDE: &str = "SETPOINT_TEST_INSIDE";
/// What the inner run prints when it has come to its end.
const DONE: &str = "the inner test is done";

/// Where a test wants to run.
pub struct Place {
    /// Full name of the test.
    test: &'static str,
    command: Vec<String>,
    environment: Vec<(String, String)>,
    needs: Vec<&'static str>,
    needs_root: bool,
}

impl Place {
    /// A process of its own.
    #[must_use]
    pub fn process(test: &'static str) -> Place {
        Place {
            test,
            command: Vec::new(),
            environment: Vec::new(),
            needs: Vec::new(),
            needs_root: false,
        }
    }

    /// Namespaces of its own, by the options of unshare(1).
    #[must_use]
    pub fn namespaces(test: &'static str, options: &[&str]) -> Place {
        let mut place = Place::process(test).needing(&["unshare"]);
        place.command = std::iter::once("unshare")
            .chain(options.iter().copied())
            .map(str::to_owned)
            .collect();
        place.needs_root = true;
        place
    }

    /// A whole machine with a system manager.
    #[must_use]
    pub fn machine(test: &'static str) -> Place {
        let fixture = repository().join("crates/testing/fixtures/with-system-manager");
        let mut place = Place::process(test).needing(&["systemctl", "dbus-daemon", "unshare", "nsenter"]);
        place.command = vec![
            "bash".to_owned(),
            fixture
                .to_str()
                .expect("the repository lies at a path of text")
                .to_owned(),
        ];
        place.needs_root = true;
        place
    }

    /// With programs that it cannot do without.
    #[must_use]
    pub fn needing(mut self, programs: &[&'static str]) -> Place {
        self.needs.extend(programs);
        self
    }

    /// With a variable of the environment.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Place {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Runs the test there; prints why when that is not possible.
    ///
    /// # Panics
    /// When the test fails there.
    #[allow(
        clippy::print_stdout,
        clippy::print_stderr,
        reason = "the outer run reads what the inner prints, and people read why a test is skipped"
    )]
    pub fn run(self, body: impl FnOnce()) {
        if std::env::var(INSIDE).is_ok_and(|test| test == self.test) {
            body();
            println!("{DONE}");
            return;
        }
        if let Some(reason) = self.obstacle() {
            eprintln!("skipped: {}: {reason}", self.test);
            return;
        }
        let output = self.inner();
        let said = [&output.stdout[..], &output.stderr[..]]
            .map(String::from_utf8_lossy)
            .concat();
        if said.contains("Operation not permitted") && !said.contains(DONE) && said.contains("unshare") {
            eprintln!("skipped: {}: namespaces are not allowed here", self.test);
            return;
        }
        assert!(output.status.success() && said.contains(DONE), "{said}");
        // What it measured is for who looks, with `--nocapture`.
        eprint!("{}", String::from_utf8_lossy(&output.stderr));
    }

    fn obstacle(&self) -> Option<String> {
        if self.needs_root && !rustix::process::geteuid().is_root() {
            return Some("needs root".to_owned());
        }
        let missing = self.needs.iter().find(|program| find(program).is_none());
        missing.map(|program| format!("needs the program `{program}`"))
    }

    fn inner(&self) -> Output {
        let own = std::env::current_exe().expect("the system knows it");
        let mut words = self.command.clone();
        words.push("env".to_owned());
        words.push(format!("{INSIDE}={}", self.test));
        words.extend(
            self.environment
                .iter()
                .map(|(name, value)| format!("{name}={value}")),
        );
        words.push(
            own.to_str()
                .expect("the repository lies at a path of text")
                .to_owned(),
        );
        words.extend(["--exact", self.test, "--nocapture", "--test-threads=1"].map(str::to_owned));
        let (program, arguments) = words.split_first().expect("it begins with `env`");
        let command = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .output();
        command.expect("the program was found")
    }
}

/// Where a program lies.
#[must_use]
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places: Vec<PathBuf> = std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .map(|directory| directory.join(program))
        .collect();
    places.into_iter().find(|path| path.is_file())
}

/// Runs a shell command that must work, and returns what it prints.
///
/// # Panics
/// When it fails.
pub fn shell(command: &str) -> String {
    let output = Command::new("/bin/sh")
        .args(["-ec", command])
        .output()
        .expect("there is a shell");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command}: {said}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
