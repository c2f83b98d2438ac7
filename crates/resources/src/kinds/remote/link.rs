//! The connection to the other host: made when it is needed, and shared between runs and the watch while somebody holds it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use setpoint_engine::Failure;
use setpoint_host::ssh::{Passwords, SshConnection, SshError, SshOptions};
use tokio::sync::Mutex;

use super::there::Place;

/// How the other host is reached, and the connection to it while there is one.
#[derive(Debug)]
pub(super) struct Link {
    options: SshOptions,
    passwords: Passwords,
    place: Place,
    held: Mutex<Weak<SshConnection>>,
    /// Whether the program ran there when that was looked at last.
    runs: AtomicBool,
}

impl Link {
    pub(super) fn new(options: SshOptions, passwords: Passwords, place: Place) -> Link {
        Link {
            options,
            passwords,
            place,
            held: Mutex::default(),
            runs: AtomicBool::new(false),
        }
    }

    /// Where everything is there.
    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// The connection, made if there is none. It lives as long as somebody has it.
    pub(super) async fn connect(&self) -> Result<Arc<SshConnection>, Failure> {
        let mut held = self.held.lock().await;
        if let Some(connection) = held.upgrade().filter(|connection| !connection.is_over()) {
            return Ok(connection);
        }
        let opened = SshConnection::open_with(&self.options, &self.passwords).await;
        let connection = Arc::new(opened.map_err(|error| self.failed("connect to", &error))?);
        *held = Arc::downgrade(&connection);
        Ok(connection)
    }

    /// Gives the connection back; whoever is the last says goodbye.
    pub(super) async fn release(connection: Arc<SshConnection>) {
        if let Some(connection) = Arc::into_inner(connection) {
            connection.close().await;
        }
    }

    /// A failure of this connection.
    pub(super) fn failed(&self, attempted: &'static str, error: &SshError) -> Failure {
        Failure::new(attempted)
            .on(&self.options.address)
            .because(error.to_string())
    }

    /// Notes whether the program runs there. Answers whether that is news.
    pub(super) fn note(&self, runs: bool) -> bool {
        self.runs.swap(runs, Ordering::AcqRel) != runs
    }
}
