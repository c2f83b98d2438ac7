//! What a resource is given for its whole life: its place on disk, and the services that all resources share.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use setpoint_graph::ResourceId;
use setpoint_host::files::{AbsolutePath, Committer, Entry, FileError, VerifiedFiles};
use setpoint_host::processes::Processes;
use setpoint_host::state::{StateDirectory, Stored, identity_directory};
use setpoint_host::users::Users;
use tokio::sync::watch;

use crate::debug_output::DebugOutput;
use crate::{Extensions, Failure, GraphView};

/// What all resources share. One object a process.
pub struct Services {
    /// Name of the program.
    pub program: String,
    /// Version of the program.
    pub version: String,
    /// Name of this member.
    pub hostname: String,
    /// Of whom debug output is wanted.
    pub debug: Arc<DebugOutput>,
    /// Whether anything may be written below the prefix; not in `plan`.
    pub writable: bool,
    /// Replaces files, with syncs shared between all that do.
    pub committer: Arc<Committer>,
    /// Remembers which files were read and found right.
    pub verified: Arc<VerifiedFiles>,
    /// Starts commands, and knows the groups of those that run.
    pub processes: Processes,
    /// Looks accounts up.
    pub users: Arc<Users>,
    /// What resources may see of the graph.
    pub graph: Arc<GraphView>,
    /// What else kinds are given.
    pub extensions: Extensions,
    /// Counts who keeps the host from being quiet.
    pub busy: Busy,
}

impl fmt::Debug for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Services")
            .field("program", &self.program)
            .field("hostname", &self.hostname)
            .finish_non_exhaustive()
    }
}

/// What one resource is given. Cheap to clone.
#[derive(Clone)]
pub struct Handle {
    services: Arc<Services>,
    id: ResourceId,
    directories: Arc<AbsolutePath>,
}

impl Handle {
    /// For the resource `id`, whose own directory is below `directories` (below the prefix; made when needed).
    #[must_use]
    pub fn new(services: Arc<Services>, id: ResourceId, directories: Arc<AbsolutePath>) -> Handle {
        Handle {
            services,
            id,
            directories,
        }
    }

    /// Its own directory.
    fn state(&self) -> AbsolutePath {
        let name = identity_directory(&self.id.kind, &self.id.name);
        self.directories.join(name)
    }

    /// Kind and name.
    #[must_use]
    pub fn id(&self) -> &ResourceId {
        &self.id
    }

    /// What all resources share.
    #[must_use]
    pub fn services(&self) -> &Services {
        &self.services
    }

    /// The private, persistent directory, made with mode 0700 if it is not there. Not for runs that may not repair:
    /// they read below [`Handle::var_path`], where a missing directory counts as empty.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn var_dir(&self) -> Result<AbsolutePath, Failure> {
        let path = self.var_path();
        if self.services.writable {
            let state = self.state();
            Entry::create_directories(&state, 0o700, 0o700)?;
            let own = StateDirectory::open_existing(&state)?;
            write_name(&own, &self.id, &self.services.committer)?;
            Entry::create_directories(&path, 0o700, 0o700)?;
        }
        Ok(path)
    }

    /// What [`Handle::store`] wrote under a name in this version. What is damaged or of another version is set aside, and
    /// a line for the log says so.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn load(&self, name: &str, version: u32) -> Result<Stored, Failure> {
        match StateDirectory::open_existing(&self.var_path()) {
            Ok(directory) => Ok(directory.load(name, version, self.services.writable)?),
            Err(error) if error.is_not_found() => Ok(Stored::Nothing),
            Err(error) => Err(error.into()),
        }
    }

    /// Keeps something under a name in the private directory, replaced whole, with the version of its form. Nothing
    /// sensitive is kept. Nothing happens where nothing may be written.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn store(&self, name: &str, version: u32, payload: &[u8]) -> Result<(), Failure> {
        if self.services.writable {
            let directory = StateDirectory::open_existing(&self.var_dir()?)?;
            directory.write_versioned(&self.services.committer, name, version, payload)?;
        }
        Ok(())
    }

    /// Where the private directory is or would be.
    #[must_use]
    pub fn var_path(&self) -> AbsolutePath {
        self.state().join("var")
    }

    /// Name of this member.
    #[must_use]
    pub fn hostname(&self) -> &str {
        &self.services.hostname
    }

    /// Name of the program.
    #[must_use]
    pub fn program(&self) -> &str {
        &self.services.program
    }

    /// Version of the program.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.services.version
    }

    /// Whether debug output of this resource is on.
    #[must_use]
    pub fn debug(&self) -> bool {
        self.services.debug.is_on(&self.id)
    }

    /// Replaces files, with syncs shared between all that do.
    #[must_use]
    pub fn committer(&self) -> &Committer {
        &self.services.committer
    }

    /// Remembers which files were read and found right.
    #[must_use]
    pub fn verified(&self) -> &VerifiedFiles {
        &self.services.verified
    }

    /// What commands are started with.
    #[must_use]
    pub fn processes(&self) -> &Processes {
        &self.services.processes
    }

    /// Looks accounts up.
    #[must_use]
    pub fn users(&self) -> &Users {
        &self.services.users
    }

    /// What resources may see of the graph.
    #[must_use]
    pub fn graph(&self) -> &GraphView {
        &self.services.graph
    }

    /// The service of type `T`.
    ///
    /// # Errors
    /// When whoever assembled the program registered none.
    pub fn extension<T: Any + Send + Sync>(&self) -> Result<&T, Failure> {
        let found = self.services.extensions.get();
        found.ok_or_else(|| {
            Failure::new("find a service that this kind needs")
                .because(format!("{} was not registered", std::any::type_name::<T>()))
                .reasoned(crate::FailureReason::Bug)
        })
    }

    /// Keeps the host from being quiet until the guard is dropped.
    #[must_use]
    pub fn busy(&self) -> BusyGuard {
        self.services.busy.guard()
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handle({})", self.id)
    }
}

/// The file that says whose a directory is.
const NAME: &str = "name";

/// Makes sure that the directory of a resource says whose it is: its own name may be hashed.
pub(crate) fn write_name(
    directory: &StateDirectory,
    id: &ResourceId,
    committer: &Committer,
) -> Result<(), FileError> {
    match directory.entry(NAME).stat()? {
        Some(_) => Ok(()),
        None => directory.write(committer, NAME, id.to_string()),
    }
}

/// Counts those who are busy with something that no vertex shows. Clones are one and the same.
#[derive(Debug, Clone)]
pub struct Busy(Arc<watch::Sender<usize>>);

impl Default for Busy {
    fn default() -> Busy {
        Busy(Arc::new(watch::Sender::new(0)))
    }
}

impl Busy {
    /// One more, until the guard is dropped.
    #[must_use]
    pub fn guard(&self) -> BusyGuard {
        self.0.send_modify(|count| *count += 1);
        BusyGuard(self.clone())
    }

    /// Whether anybody is busy.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        *self.0.borrow() > 0
    }

    /// Follows how many are.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<usize> {
        self.0.subscribe()
    }
}

/// Somebody is busy while this lives.
#[derive(Debug)]
pub struct BusyGuard(Busy);

impl Drop for BusyGuard {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count = count.saturating_sub(1));
    }
}
