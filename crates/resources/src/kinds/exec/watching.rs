//! `watchcmd`: a command that runs on, whose lines are events.

use setpoint_engine::{Failure, Level, Watch, Watcher};
use setpoint_host::processes::{Command, LineEvent, Signal};

use super::Exec;
use super::command::GRACE;

impl Exec {
    /// The watch of `watchcmd`, if it is set.
    pub(super) fn watch_command(&self) -> Option<Watch> {
        self.watch.line()?;
        // What the loop needs is copied: the loop outlives the borrow of the resource.
        let copy = self.clone();
        Some(Watch::own(move |watcher| copy.follow_watch(watcher)))
    }

    async fn follow_watch(self, watcher: Watcher) -> Result<(), Failure> {
        let Some(line) = self.watch.line() else {
            return Ok(());
        };
        let run = self.run_with(&watcher.handle, watcher.has_sensitive).await?;
        follow(run.command(&line)?, run.signal(), watcher).await
    }
}

async fn follow(command: Command, signal: Signal, watcher: Watcher) -> Result<(), Failure> {
    let failed = || Failure::new("watch with `watchcmd`");
    let mut lines = watcher
        .handle
        .processes()
        .start_lines(&command)
        .await
        .map_err(|error| failed().because(error))?;
    (watcher.event)("`watchcmd` was started");
    loop {
        let event = tokio::select! {
            event = lines.next() => event.map_err(|error| failed().because(error))?,
            () = watcher.cancellation.cancelled() => {
                // How it ends no longer matters.
                let _ = lines.stop(signal, Some(GRACE)).await;
                return Ok(());
            }
        };
        match event {
            LineEvent::Line(line) if line.is_empty() => {}
            LineEvent::Line(_) => (watcher.event)("`watchcmd` printed a line"),
            LineEvent::ErrorLine(_) if watcher.has_sensitive => {}
            LineEvent::ErrorLine(line) => {
                let text = String::from_utf8_lossy(&line);
                (watcher.log)(Level::Info, &format!("`watchcmd`: {text}"));
            }
            LineEvent::Ended(exit) => return Err(failed().because(format!("it ended with {exit}"))),
        }
    }
}
