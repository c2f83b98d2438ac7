//! What the scripts of one start have said.

use std::time::{SystemTime, UNIX_EPOCH};

use setpoint_diagnostics::without_system_numbers;
use setpoint_host::files::{AbsolutePath, Entry};

/// A log file of its own for each start, made with the first line.
pub(super) struct Log {
    path: AbsolutePath,
    /// Whether it was said that it cannot be written.
    is_given_up: bool,
}

impl Log {
    /// In a directory that is there.
    pub(super) fn in_directory(directory: &AbsolutePath) -> Log {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Log {
            path: directory.join(format!("setpoint-firstboot-{}.log", now.as_nanos())),
            is_given_up: false,
        }
    }

    /// Appends.
    ///
    /// # Errors
    /// The first time that it cannot be written: a line that says so.
    pub(super) fn append(&mut self, text: &[u8]) -> Result<(), String> {
        if self.is_given_up {
            return Ok(());
        }
        let appended = Entry::at(&self.path).and_then(|entry| entry.append(text, 0o600));
        appended.map_err(|error| {
            self.is_given_up = true;
            format!(
                "what the scripts say is not logged: {}",
                without_system_numbers(&error.to_string())
            )
        })
    }
}
