//! Threads for what may have to wait for the machine, so that the evaluator never does.

use std::io;

use setpoint_value::Background;
use tokio::runtime::{Builder, Runtime};

/// More than this many readings at a time wait for each other. Only those that hang come to so many.
const MOST_THREADS: usize = 64;

/// Threads that come when there is work and go when there is none for a while.
pub(super) struct Threads {
    runtime: Option<Runtime>,
}

impl Threads {
    /// No thread yet.
    ///
    /// # Errors
    /// When the system gives no descriptors for the runtime.
    pub(super) fn new() -> io::Result<Threads> {
        let runtime = Builder::new_current_thread()
            .max_blocking_threads(MOST_THREADS)
            .thread_name("sources")
            .build()?;
        Ok(Threads {
            runtime: Some(runtime),
        })
    }
}

impl Background for Threads {
    fn run(&self, work: Box<dyn FnOnce() + Send>) {
        if let Some(runtime) = &self.runtime {
            drop(runtime.spawn_blocking(work));
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        // What hangs must not keep the process: it ends with it.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
