//! What sources may use of the machine, as traits. The command line fills them with the real ones, simulation and tests with
//! simulated ones; so a program's whole life is a function of its text, these, and the steps taken.

mod network;
mod stores;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::{QualifiedName, Value};

pub use network::{Interface, Network};
pub use stores::{
    Exported, HttpResponses, StoredText, Values, WorldAnswer, WorldFeed, WorldQuery, WorldReader,
};

/// Tells the owner of a subscription that there is something to take. Cheap, from any thread, never blocks.
#[derive(Clone)]
pub struct Wake(Arc<dyn Fn() + Send + Sync>);

impl Wake {
    /// Wraps what is to be done on a wake.
    #[must_use]
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Wake {
        Wake(Arc::new(wake))
    }

    /// Wakes.
    pub fn wake(&self) {
        (self.0)();
    }
}

impl fmt::Debug for Wake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Wake")
    }
}

/// Everything a source may use.
pub trait Capabilities: Send + Sync {
    /// Where to do what may have to wait for the machine.
    fn background(&self) -> &dyn Background;
    /// Time.
    fn clock(&self) -> &dyn Clock;
    /// Files of the machine.
    fn files(&self) -> &dyn Files;
    /// Facts about the machine, the process and its users.
    fn host(&self) -> &dyn HostFacts;
    /// Unpredictable bytes.
    fn random(&self) -> &dyn Random;
    /// The files that the program came with.
    fn deploy(&self) -> &dyn Deploy;
    /// Changing the machine; none in `graph`, `check` and `plan`.
    fn effects(&self) -> Option<&dyn Effects>;
    /// Running commands; none where they must not run.
    fn commands(&self) -> Option<&dyn Commands>;

    /// Network interfaces of the machine; none where they cannot be seen.
    fn network(&self) -> Option<&dyn Network> {
        None
    }

    /// What all members share; none outside a cluster.
    fn world(&self) -> Option<&dyn WorldReader> {
        None
    }

    /// The named values of this host that resources set.
    fn values(&self) -> Option<&dyn Values> {
        None
    }

    /// Answers that `http:client` resources have published.
    fn http_responses(&self) -> Option<&dyn HttpResponses> {
        None
    }

    /// Where to say what helps to search for a mistake; none where nobody listens.
    fn log(&self) -> Option<&dyn FunctionLog> {
        None
    }

    /// An option of the `provisioner` command by its function's name (`cli_network`); none when it was not given.
    fn provisioner_option(&self, name: &str) -> Option<Value> {
        let _ = name;
        None
    }
}

/// What is said of calls of functions, for those who search for a mistake.
pub trait FunctionLog: Send + Sync {
    /// Whether anything is to be said of this function.
    fn wants(&self, function: QualifiedName<'_>) -> bool;

    /// Says it: one line, without anything sensitive.
    fn debug(&self, line: String);
}

/// Somewhere else than on the thread that evaluates, which never waits.
pub trait Background: Send + Sync {
    /// Does this soon, without keeping the caller waiting for it; what is begun later may end earlier.
    fn run(&self, work: Box<dyn FnOnce() + Send>);
}

/// A background for machines that nobody has to wait for: work is done before [`Background::run`] returns.
#[derive(Debug, Clone, Copy, Default)]
pub struct AtOnce;

impl Background for AtOnce {
    fn run(&self, work: Box<dyn FnOnce() + Send>) {
        work();
    }
}

/// Time, and being woken by it.
pub trait Clock: Send + Sync {
    /// Seconds and nanoseconds since 1970 UTC.
    fn now(&self) -> Duration;

    /// Wakes every `period` from now on, until dropped. A period of zero is one nanosecond.
    fn every(&self, period: Duration, wake: Wake) -> Timer;

    /// Wakes once, `delay` from now, unless dropped.
    fn after(&self, delay: Duration, wake: Wake) -> Timer;

    /// Name of the local time zone in the IANA database; none for one that has no name.
    fn zone(&self) -> Option<String>;
}

/// A running timer, or anything else that ends when it is dropped.
pub type Timer = Box<dyn Send>;

/// A watch that ends when it is dropped.
pub type FileWatch = Box<dyn Send>;

/// How deep a watch looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WatchDepth {
    /// The path itself and, if it is a directory, its direct entries.
    Entry,
    /// Everything below, directories made later included.
    Recursive,
}

/// The largest file whose content becomes a value, in bytes.
pub const LARGEST_FILE: u64 = 64 * 1024 * 1024;

/// Reading and watching files.
///
/// All of this may wait for the machine, so it belongs into the [`Background`], [`Files::follow`] apart.
pub trait Files: Send + Sync {
    /// The whole content of a regular file, links followed as far as nobody can mislead us by them.
    ///
    /// # Errors
    /// `InvalidInput` for what is not a regular file or is reached by a link that is not to be trusted, `FileTooLarge` for
    /// more than [`LARGEST_FILE`]; both without having read anything. Otherwise as the system says.
    fn read(&self, path: &str) -> std::io::Result<Vec<u8>>;

    /// Follows the content of a file, which may come and go: its *settled* contents, as they are while nobody is in the
    /// midst of writing them. Never waits; `wake` says when there is something to take.
    fn follow(&self, path: &str, wake: Wake) -> Box<dyn FollowedFile>;

    /// Whether something is at the path, following links.
    fn exists(&self, path: &str) -> bool;

    /// The target of a link.
    ///
    /// # Errors
    /// As the system says.
    fn read_link(&self, path: &str) -> std::io::Result<String>;

    /// The path with all links and dots resolved.
    ///
    /// # Errors
    /// As the system says.
    fn canonical(&self, path: &str) -> std::io::Result<String>;

    /// Names in a directory, sorted.
    ///
    /// # Errors
    /// As the system says.
    fn list(&self, path: &str) -> std::io::Result<Vec<String>>;

    /// Whether there is a regular file that the process may execute, following links.
    fn is_executable(&self, path: &str) -> bool {
        self.exists(path)
    }

    /// Wakes whenever the path, or what leads to it, changes. Armed when this returns.
    ///
    /// # Errors
    /// When the system allows no more watches.
    fn watch(&self, path: &str, depth: WatchDepth, wake: Wake) -> std::io::Result<FileWatch>;
}

/// A file that is followed until this is dropped.
pub trait FollowedFile: Send {
    /// The newest content since the last call, or why there is none, as [`Files::read`] says it and `InvalidInput` for a path
    /// that is not absolute; nothing when there is nothing new.
    fn take(&mut self) -> Option<std::io::Result<Vec<u8>>>;
}

/// Facts that are read when asked for.
pub trait HostFacts: Send + Sync {
    /// Name of this member.
    fn hostname(&self) -> String;
    /// The machine's own host name.
    fn system_hostname(&self) -> String;
    /// The process's environment. Not UTF-8: replaced.
    fn environment(&self) -> BTreeMap<String, String>;
    /// The process's arguments, program name first.
    fn arguments(&self) -> Vec<String>;
    /// Path of the running program.
    fn executable(&self) -> Option<String>;
    /// The working directory.
    fn working_directory(&self) -> Option<String>;
    /// Load averages over 1, 5 and 15 minutes.
    fn load(&self) -> Option<[f64; 3]>;
    /// Time since boot.
    fn uptime(&self) -> Option<Duration>;
    /// Home directory of a user by name; of the process's own user for the empty name.
    fn home(&self, user: &str) -> Option<String>;
    /// Numeric id of a user by name.
    fn user_id(&self, user: &str) -> Option<u32>;
    /// Real user, effective user, real group, effective group of the process.
    fn ids(&self) -> [u32; 4];
    /// Process id and parent's process id.
    fn process_ids(&self) -> [u32; 2];
    /// Size of a page of memory in bytes.
    fn page_size(&self) -> usize;
    /// Our own version.
    fn version(&self) -> String;

    /// Whether a device waits for a restart of the machine to finish its firmware update.
    fn firmware_reboot_needed(&self) -> bool {
        false
    }

    /// Wakes when a fact may have changed, until dropped; none where that cannot be followed.
    fn watch(&self, fact: HostFact, wake: Wake) -> Option<Timer> {
        let _ = (fact, wake);
        None
    }
}

/// A fact that changes by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HostFact {
    /// [`HostFacts::system_hostname`], beyond changes of `/etc/hostname`.
    Hostname,
    /// Which processors are online.
    Processors,
    /// Which modules of the kernel are loaded.
    Modules,
    /// [`HostFacts::firmware_reboot_needed`].
    FirmwareReboot,
}

/// Unpredictable bytes.
pub trait Random: Send + Sync {
    /// Fills the buffer from a cryptographic source.
    fn fill(&self, buffer: &mut [u8]);
}

/// The files that the program came with. Paths begin with `/`, the root of the deploy.
pub trait Deploy: Send + Sync {
    /// The content of a file.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn read(&self, path: &str) -> Result<Vec<u8>, String>;
    /// Whether there is such a file.
    fn exists(&self, path: &str) -> bool;
    /// Permission bits of a file.
    fn mode(&self, path: &str) -> u32 {
        let _ = path;
        0o644
    }
    /// Files below a directory, sorted, as paths from the root.
    fn list(&self, directory: &str) -> Vec<String>;
    /// Whether the program was given without a `metadata.yaml`, so that its `files/` did not come along.
    fn is_plain_file(&self) -> bool;
    /// Where a program's own state lies on the local disk, with a trailing `/`: the prefix's `local/`.
    fn state_directory(&self) -> String;
}

/// Running commands, which can change the machine.
pub trait Commands: Send + Sync {
    /// Has `sh -c command` run in its own process group. Returns at once; `wake` is called when [`RunningCommand::lines`] has
    /// something.
    fn run_shell(&self, command: &str, wake: Wake) -> Box<dyn RunningCommand>;
}

/// Changing the machine. Only while running for real. All of this may wait for the machine, so it belongs into the [`Background`].
pub trait Effects: Send + Sync {
    /// Creates a directory and its parents with these permission bits.
    ///
    /// # Errors
    /// As the system says.
    fn create_directory(&self, path: &str, mode: u32) -> std::io::Result<()>;
    /// Replaces a file atomically.
    ///
    /// # Errors
    /// As the system says.
    fn write_file(&self, path: &str, content: &[u8], mode: u32) -> std::io::Result<()>;
    /// Removes a file or an empty directory.
    ///
    /// # Errors
    /// As the system says.
    fn remove(&self, path: &str) -> std::io::Result<()>;
    /// Creates a file that must not exist yet, with this content.
    ///
    /// # Errors
    /// As the system says.
    fn create_new(&self, path: &str, content: &[u8]) -> std::io::Result<()>;
}

/// A command that runs until it ends or this is dropped, which has its process group killed. Nothing here waits.
pub trait RunningCommand: Send {
    /// The lines of standard output since the last call, without their newlines; and how it ended, when it has: `exit status 3`.
    ///
    /// # Errors
    /// Once, why it does not run.
    fn lines(&mut self) -> std::io::Result<(Vec<Vec<u8>>, Option<String>)>;

    /// Has the process group killed, and another command run when it has ended. Only of the new one there are lines from now on.
    fn replace(&mut self, command: &str);
}
