//! What an `exec` remembers of its last successful run: the output, and when it ended.
//!
//! Each is a file of its own in the resource's private directory, which says its version; no file means nothing. Blocking calls are made on
//! threads for them, because a run of an `exec` waits and holds none.

use setpoint_engine::{Apply, Failure, Handle, Level, Text};
use setpoint_host::files::{AbsolutePath, Entry, FileError, Timestamp};
use setpoint_host::state::{StateDirectory, Stored};

use super::Sent;

/// What was remembered.
#[derive(Debug, Default)]
pub(super) struct Cache {
    pub(super) sent: Sent,
    /// When the last successful run ended.
    pub(super) last_run: Option<Timestamp>,
}

/// All that was sent, in one file, so that no crash leaves the output of one run beside that of another.
const SENT: &str = "sent";
const SENT_VERSION: u32 = 1;
const MTIMES: &str = "mtimes";
const MTIMES_VERSION: u32 = 1;
/// How many times in a row the end of the program interrupted the command while it served a notification: one byte each.
const INTERRUPTED: &str = "interrupted";
const INTERRUPTED_VERSION: u32 = 1;
/// A command that is interrupted so often is what ends the program.
const MOST_INTERRUPTIONS: usize = 2;

impl Cache {
    /// With a line for the log when what is there cannot be used.
    pub(super) async fn load(handle: &Handle) -> Result<(Cache, Option<String>), Failure> {
        let handle = handle.clone();
        blocking(move || {
            let (sent, warning) = match handle.load(SENT, SENT_VERSION)? {
                Stored::Payload(payload) => (decode(&payload), None),
                Stored::Nothing => (None, None),
                Stored::Unusable(why) => (None, Some(why)),
            };
            let stat = present(Entry::at(&handle.var_path().join(MTIMES)).and_then(|entry| entry.stat()))?;
            let cache = Cache {
                sent: sent.unwrap_or_default(),
                last_run: stat.map(|stat| stat.modified),
            };
            Ok((cache, warning))
        })
        .await
    }

    /// Remembers what was sent, and with `mtimes` that the run ended now.
    pub(super) async fn store(&self, handle: &Handle, mtimes: bool) -> Result<(), Failure> {
        let (handle, sent) = (handle.clone(), self.sent.clone());
        blocking(move || {
            if mtimes {
                let now = jiff::Timestamp::now().to_string();
                handle.store(MTIMES, MTIMES_VERSION, now.as_bytes())?;
            }
            if !sent.is_empty() {
                handle.store(SENT, SENT_VERSION, &encode(&sent))?;
            } else if let Some(own) = present(StateDirectory::open_existing(&handle.var_path()).map(Some))? {
                own.remove(SENT)?;
            }
            Ok(())
        })
        .await
    }
}

/// The end of the program interrupted a command that serves a notification. At the next start it is served again, unless that happened time and again: then
/// the command restarts this very program, and the notification counts as served.
pub(super) async fn note_interruption(apply: &Apply<'_>, failure: Failure) -> Result<(), Failure> {
    let handle = apply.handle().clone();
    let interrupted = blocking(move || {
        let before = match handle.load(INTERRUPTED, INTERRUPTED_VERSION)? {
            Stored::Payload(payload) => payload.len(),
            Stored::Nothing | Stored::Unusable(_) => 0,
        };
        handle.store(INTERRUPTED, INTERRUPTED_VERSION, &vec![b'x'; before + 1])?;
        Ok(before + 1)
    })
    .await;
    if !interrupted.is_ok_and(|interrupted| interrupted >= MOST_INTERRUPTIONS) {
        return Err(failure);
    }
    forget_interruptions(apply.handle()).await?;
    let message = "the end of this program interrupted the command again, so the command seems to restart this program; \
                   its notification counts as served";
    apply.log(Level::Warning, message);
    Ok(())
}

/// The command was not interrupted.
pub(super) async fn forget_interruptions(handle: &Handle) -> Result<(), Failure> {
    let handle = handle.clone();
    blocking(move || {
        if let Some(own) = present(StateDirectory::open_existing(&handle.var_path()).map(Some))? {
            own.remove(INTERRUPTED)?;
        }
        Ok(())
    })
    .await
}

/// Each text as its length in 8 bytes, the lowest first, and its bytes; the length of one that is unset has all bits set.
fn encode(sent: &Sent) -> Vec<u8> {
    let mut bytes = Vec::new();
    for text in [&sent.output, &sent.stdout, &sent.stderr] {
        let text = text.as_ref().map(Text::as_bytes);
        let length = text.map_or(u64::MAX, |text| text.len() as u64);
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(text.unwrap_or_default());
    }
    bytes
}

fn decode(mut bytes: &[u8]) -> Option<Sent> {
    let mut next = || -> Option<Option<Text>> {
        let (length, rest) = bytes.split_first_chunk::<8>()?;
        bytes = rest;
        let length = u64::from_le_bytes(*length);
        if length == u64::MAX {
            return Some(None);
        }
        let (text, rest) = bytes.split_at_checked(usize::try_from(length).ok()?)?;
        bytes = rest;
        Some(Some(Text::new(text)))
    };
    Some(Sent {
        output: next()?,
        stdout: next()?,
        stderr: next()?,
    })
}

/// The first path that is newer than the last run. Each must exist.
pub(super) async fn newer(
    paths: Vec<AbsolutePath>,
    last_run: Option<Timestamp>,
) -> Result<Option<AbsolutePath>, Failure> {
    if paths.is_empty() {
        return Ok(None);
    }
    blocking(move || {
        let mut found = None;
        for path in paths {
            let stat = Entry::at(&path)?.stat_following()?.ok_or_else(|| {
                Failure::new("read the time of")
                    .on(&path)
                    .because("it does not exist")
            })?;
            if found.is_none() && last_run.is_none_or(|last| stat.modified > last) {
                found = Some(path);
            }
        }
        Ok(found)
    })
    .await
}

/// Whether something is at the path, following links.
pub(super) async fn exists(path: AbsolutePath) -> Result<bool, Failure> {
    blocking(move || {
        let stat = present(Entry::at(&path).and_then(|entry| entry.stat_following()))?;
        Ok(stat.is_some())
    })
    .await
}

fn present<T>(found: Result<Option<T>, FileError>) -> Result<Option<T>, Failure> {
    match found {
        Err(error) if error.is_not_found() => Ok(None),
        found => Ok(found?),
    }
}

/// Makes calls that block on a thread for them.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(Failure::new("look at the machine").because(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_is_read_as_it_was_written() {
        for stdout in [None, Some(Text::new("")), Some(Text::new(vec![0, 255, b'\n']))] {
            let sent = Sent {
                output: Some(Text::new("both")),
                stdout: stdout.clone(),
                stderr: None,
            };
            let bytes = encode(&sent);
            let read = decode(&bytes).unwrap();
            assert_eq!(
                (read.output, read.stdout, read.stderr),
                (sent.output, stdout, None)
            );
            for end in 0..bytes.len() {
                assert!(decode(&bytes[..end]).is_none(), "{end}");
            }
        }
    }
}
