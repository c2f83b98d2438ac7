//! What this process found out about files, for the next one below the same prefix.
//!
//! It only saves reading: whatever cannot be read or written is as if it were not there.

use setpoint_host::Host;
use setpoint_host::state::StateDirectory;

const NAME: &str = "verified";
const VERSION: u32 = 1;

/// The place on disk, and since when the machine runs.
pub(crate) struct KnownFiles {
    directory: StateDirectory,
    start: String,
}

impl KnownFiles {
    /// Takes in what an earlier process has found out since the start of the machine.
    pub(crate) fn take_in(prefix: &StateDirectory, host: &Host) -> Option<KnownFiles> {
        let directory = prefix.subdirectory("engine").ok()?;
        KnownFiles::read(&directory, host)
    }

    /// The same for a process that leaves nothing.
    pub(crate) fn look_into(prefix: &StateDirectory, host: &Host) {
        if let Ok(Some(directory)) = prefix.find("engine") {
            KnownFiles::read(&directory, host);
        }
    }

    fn read(directory: &StateDirectory, host: &Host) -> Option<KnownFiles> {
        let start = setpoint_host::start_of_the_machine()?;
        if let Ok(Some(stored)) = directory.read_versioned(NAME)
            && stored.version == VERSION
        {
            host.verified.take_in(&stored.payload, &start);
        }
        Some(KnownFiles {
            directory: directory.clone(),
            start,
        })
    }

    /// Leaves what is known for a later process.
    pub(crate) fn leave(&self, host: &Host) {
        if let Some(bytes) = host.verified.to_bytes(&self.start) {
            let _ = self
                .directory
                .write_versioned(&host.committer, NAME, VERSION, &bytes);
        }
    }
}
