//! Hosts that share a store: a process each, with its own working directory.

use std::time::{Duration, Instant};

use serde_json::Value as Json;
use setpoint_host::files::AbsolutePath;
use setpoint_host::watch::WatchHub;
use setpoint_testing::{Finished, Hermetic, Running};
use setpoint_world::{Entry, FileStore, Key, Operation, Selection, Store, Transaction};

const BINARY: &str = env!("CARGO_BIN_EXE_setpoint");

/// A working directory for each of the hosts `db` and `web`, with one store for both.
pub(crate) fn place() -> Hermetic {
    place_of(&["db", "web"])
}

/// The same for other hosts.
pub(crate) fn place_of(hosts: &[&str]) -> Hermetic {
    let place = Hermetic::new();
    let made = |what: std::io::Result<()>| what.expect("the place is empty and writable");
    made(std::fs::create_dir(place.path("world")));
    for host in hosts {
        made(std::fs::create_dir(place.path(host)));
        let link = place.path(host).join("world");
        made(std::os::unix::fs::symlink(place.path("world"), link));
    }
    place
}

/// What the hosts of a place share, for whoever looks at it beside them.
pub(crate) struct Shared {
    store: FileStore,
    runtime: tokio::runtime::Runtime,
    _watches: WatchHub,
}

impl Shared {
    /// In a directory, as a rule `world` of a place.
    pub(crate) fn at(directory: std::path::PathBuf) -> Shared {
        let watches = WatchHub::new().expect("files can be watched");
        let directory = AbsolutePath::new(directory).expect("places are absolute");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        Shared {
            store: FileStore::new(directory, &watches),
            runtime: runtime.expect("a runtime can be made"),
            _watches: watches,
        }
    }

    /// All keys that begin so.
    pub(crate) fn below(&self, prefix: &str) -> Vec<Entry> {
        let read = self
            .runtime
            .block_on(self.store.read(&[Selection::prefix(prefix)]));
        let read = read.expect("it can be read");
        read.all().cloned().collect()
    }

    /// The text under a key.
    pub(crate) fn text(&self, key: &str) -> Option<String> {
        let found = self
            .below(key)
            .into_iter()
            .find(|entry| entry.key.as_str() == key)?;
        found.text().map(str::to_owned)
    }

    /// Sets a key by hand, or removes it.
    pub(crate) fn set(&self, key: &str, text: Option<&str>) {
        let key = Key::new(key).expect("it is not empty");
        let operation = match text {
            Some(text) => Operation::put(key, text.as_bytes()),
            None => Operation::Delete(key.into()),
        };
        let done = self
            .runtime
            .block_on(self.store.transact(Transaction::of([operation])));
        done.expect("it can be written");
    }
}

/// What a host is run with.
pub(crate) fn arguments(place: &Hermetic, host: &str) -> Vec<String> {
    let prefix = place.path(host).display().to_string();
    [
        "run",
        "--no-raise-limits",
        "--hostname",
        host,
        "--state-dir",
        &prefix,
    ]
    .map(str::to_owned)
    .to_vec()
}

/// Runs a host to its end.
pub(crate) fn run(place: &Hermetic, host: &str, further: &[&str], program: &str) -> Finished {
    let program = write(place, host, program);
    let all = arguments(place, host);
    let further = further.iter().map(|argument| (*argument).to_owned());
    let all: Vec<String> = all.into_iter().chain(further).chain([program]).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    place.run(BINARY, &all)
}

/// The program of a host, with `PLACE/` where all its files are.
pub(crate) fn write(place: &Hermetic, host: &str, program: &str) -> String {
    let root = place.path("").display().to_string();
    let program = program.replace("PLACE/", &root);
    let path = place.write(&format!("{host}.mcl"), program);
    path.display().to_string()
}

/// A host that runs on, and its events.
pub(crate) struct Host(Running);

impl Host {
    /// Begins to run a program, and goes on.
    pub(crate) fn start(place: &Hermetic, host: &str, program: &str) -> Host {
        let program = write(place, host, program);
        let mut command = place.command(BINARY);
        command.args(arguments(place, host));
        command.args(["--json", "--watch", &program]);
        Host(Running::start(command))
    }

    /// One that was started otherwise.
    pub(crate) fn of_running(running: Running) -> Host {
        Host(running)
    }

    /// Waits for an event.
    pub(crate) fn event(&mut self, what: &str, wanted: impl Fn(&Json) -> bool) -> Json {
        let line = self.0.wait_for(what, |line| {
            let event: Json = serde_json::from_str(line).expect("every line is one JSON object");
            wanted(&event)
        });
        serde_json::from_str(&line).expect("it was read before")
    }

    /// Waits for an event of a resource.
    pub(crate) fn of(&mut self, kind: &str, name: &str, event: &str) -> Json {
        self.event(&format!("`{event}` of {kind}[{name}]"), |found| {
            found["kind"] == kind && found["name"] == name && found["event"] == event
        })
    }

    /// Waits for an event of each of these files, in whatever order they come.
    pub(crate) fn all_of(&mut self, names: &[&str], event: &str) {
        let left = std::cell::RefCell::new(names.to_vec());
        self.event(&format!("`{event}` of {names:?}"), |found| {
            let mut left = left.borrow_mut();
            if found["event"] == event {
                left.retain(|name| found["name"] != *name);
            }
            left.is_empty()
        });
    }

    /// Kills it at once.
    pub(crate) fn kill(self) {
        self.0.signal("KILL");
        let _ = self.0.finish();
    }

    /// Lets it do nothing more for now.
    pub(crate) fn freeze(&self) {
        self.0.signal("STOP");
    }

    /// Lets it go on.
    pub(crate) fn thaw(&self) {
        self.0.signal("CONT");
    }

    /// Ends it politely.
    pub(crate) fn stop(self) {
        self.0.signal("TERM");
        let (status, errors) = self.0.finish();
        assert_eq!(status.code(), Some(0), "{errors}");
    }
}

/// How long something may take on the slowest machine, also while a large binary goes to another host.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

/// Waits until something is so.
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until a file has this content.
pub(crate) fn becomes(path: &std::path::Path, content: &str) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let is = std::fs::read_to_string(path).ok();
        if is.as_deref() == Some(content) {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "{} is {is:?} and not {content:?}",
            path.display()
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}
