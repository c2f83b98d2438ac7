//! The host name that the kernel has, followed. Nothing but the kernel says when a program sets it.

use std::fs::File;
use std::io;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Where the kernel says it, and can be waited for.
const PATH: &str = "/proc/sys/kernel/hostname";

/// Follows the host name of the kernel, from when it is made on.
#[derive(Debug)]
pub struct KernelHostname(AsyncFd<File>);

impl KernelHostname {
    /// Begins to follow it. For tasks of a runtime with input and output.
    #[expect(
        deprecated,
        reason = "its replacement is for what may lie about its descriptor, and unsafe; a file keeps its own while it lives"
    )]
    pub fn follow() -> io::Result<KernelHostname> {
        let file = File::open(PATH)?;
        AsyncFd::with_interest(file, Interest::PRIORITY).map(KernelHostname)
    }

    /// Waits until it was set, to whatever.
    pub async fn was_set(&mut self) -> io::Result<()> {
        let mut ready = self.0.ready(Interest::PRIORITY).await?;
        ready.clear_ready();
        Ok(())
    }
}
