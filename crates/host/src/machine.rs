//! Everything that is shared, in one place to hand around.

use crate::bus::Buses;
use crate::files::{Committer, VerifiedFiles};
use crate::network::Network;
use crate::processes::Processes;
use crate::systemd::ServiceManagers;
use crate::users::Users;
use crate::watch::WatchHub;
use std::ffi::OsString;
use std::io;
use std::sync::Arc;

/// The machine as resources see it. One for the whole process.
#[derive(Debug)]
pub struct Host {
    /// Replaces files.
    pub committer: Arc<Committer>,
    /// Knows which files were found right.
    pub verified: Arc<VerifiedFiles>,
    /// Watches paths.
    pub watches: WatchHub,
    /// Runs commands.
    pub processes: Processes,
    /// Knows users and groups.
    pub users: Arc<Users>,
    /// The message buses.
    pub buses: Arc<Buses>,
    /// The service managers.
    pub service_managers: Arc<ServiceManagers>,
    /// What changes about network interfaces.
    pub network: Arc<Network>,
}

impl Host {
    /// The real machine. Programs are looked up along `search_path`, which has the form of the variable `PATH`.
    pub fn new(search_path: impl Into<OsString>) -> io::Result<Self> {
        let buses = Arc::new(Buses::default());
        Ok(Self {
            committer: Arc::new(Committer::new()),
            verified: Arc::new(VerifiedFiles::new()),
            watches: WatchHub::new()?,
            processes: Processes::new(search_path),
            users: Arc::new(Users::new()),
            service_managers: Arc::new(ServiceManagers::new(&buses)),
            buses,
            network: Arc::default(),
        })
    }
}

/// Lets this process open as many files as the system allows it to, which is mostly far more than it starts with.
/// Thousands of commands at a time need that. Answers the limit.
///
/// Child processes inherit it.
pub fn raise_open_file_limit() -> io::Result<Option<u64>> {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        limit.current = limit.maximum;
        setrlimit(Resource::Nofile, limit)?;
    }
    Ok(limit.current)
}

/// What tells this start of the machine from every other; nothing if the kernel does not say.
pub fn start_of_the_machine() -> Option<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}
