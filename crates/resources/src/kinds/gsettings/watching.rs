//! What happens to a setting: `gsettings monitor`, which prints a line when it is set.
//!
//! The bus of the session lets in nobody but its user, so it is followed with that user's rights. It is one small process for each setting: one for all
//! settings of a schema would be fewer, and would have to be found and shared between resources that come and go.

use std::time::Duration;

use setpoint_engine::{Failure, Watcher};
use setpoint_host::processes::{LineEvent, Lines, Signal};

use super::Setting;
use super::session::Session;

/// How long until the program is started again, at first and at most: it ends with the session, and where there is no such setting.
const AGAIN: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(30));

/// How long the program takes at most, on a slow machine, until it hears: it does not say when it does. What was set before is seen by looking then.
const LISTENING: Duration = Duration::from_secs(2);

/// How long the program may take to end.
const GRACE: Duration = Duration::from_secs(5);

/// What is followed.
pub(super) struct Monitor {
    pub(super) setting: Setting,
    pub(super) user: String,
    pub(super) group: String,
}

impl Monitor {
    /// Follows the setting until it is cancelled. That there is no session, setting or program is no failure here: each run says it.
    pub(super) async fn follow(self, watcher: Watcher) -> Result<(), Failure> {
        let mut again = AGAIN.0;
        let mut is_armed = false;
        loop {
            let lines = self.start(&watcher).await;
            if lines.is_some() || !is_armed {
                (watcher.event)("the setting is followed");
                is_armed = true;
            }
            if let Some(lines) = lines
                && hear(lines, &watcher).await
            {
                again = AGAIN.0;
            }
            tokio::select! {
                () = watcher.cancellation.cancelled() => return Ok(()),
                () = tokio::time::sleep(again) => again = (again * 2).min(AGAIN.1),
            }
        }
    }

    /// The program, if there is a session in which it can run.
    async fn start(&self, watcher: &Watcher) -> Option<Lines> {
        let session = Session::find(&watcher.handle, &self.user, &self.group)
            .await
            .ok()
            .filter(Session::has_a_bus)?;
        let command = session.command(["monitor", &self.setting.schema, &self.setting.key]);
        let started = watcher.handle.processes().start_lines(&command).await;
        started.ok()
    }
}

/// Tells of each line until the program ends or nobody listens any more. Answers whether it ran long enough to hear something.
async fn hear(mut lines: Lines, watcher: &Watcher) -> bool {
    let mut listens = false;
    let mut listening = std::pin::pin!(tokio::time::sleep(LISTENING));
    loop {
        let event = tokio::select! {
            event = lines.next() => event,
            () = &mut listening, if !listens => {
                listens = true;
                (watcher.event)("the setting may have been set before it was followed");
                continue;
            }
            () = watcher.cancellation.cancelled() => {
                // How it ends no longer matters.
                let _ = lines.stop(Signal::TERM, Some(GRACE)).await;
                return listens;
            }
        };
        match event {
            Ok(LineEvent::Line(_)) => (watcher.event)("the setting was set"),
            // What libraries complain of.
            Ok(LineEvent::ErrorLine(_)) => {}
            Ok(LineEvent::Ended(_)) | Err(_) => return listens,
        }
    }
}
