//! What an `exec` remembers of its last successful run: the output, and when it ended.
//!
//! Each is a file of its own in the resource's private directory; no file means nothing. Blocking calls are made on
//! threads for them, because a run of an `exec` waits and holds none.

use setpoint_engine::{Failure, Handle, Text};
use setpoint_host::files::{AbsolutePath, Entry, FileError, Replace, Timestamp};

use super::Sent;

/// What was remembered.
#[derive(Debug, Default)]
pub(super) struct Cache {
    pub(super) sent: Sent,
    /// When the last successful run ended.
    pub(super) last_run: Option<Timestamp>,
}

const OUTPUT: &str = "output";
const STDOUT: &str = "stdout";
const STDERR: &str = "stderr";
const MTIMES: &str = "mtimes";

impl Cache {
    pub(super) async fn load(handle: &Handle) -> Result<Cache, Failure> {
        let directory = handle.var_path();
        blocking(move || {
            let read = |name| -> Result<Option<Text>, Failure> {
                match Entry::at(&directory.join(name)).and_then(|entry| entry.read()) {
                    Ok(bytes) => Ok(Some(Text::new(bytes))),
                    Err(error) if error.is_not_found() => Ok(None),
                    Err(error) => Err(error.into()),
                }
            };
            let stat = present(Entry::at(&directory.join(MTIMES)).and_then(|entry| entry.stat()))?;
            Ok(Cache {
                sent: Sent {
                    output: read(OUTPUT)?,
                    stdout: read(STDOUT)?,
                    stderr: read(STDERR)?,
                },
                last_run: stat.map(|stat| stat.modified),
            })
        })
        .await
    }

    /// Remembers what was sent, and with `mtimes` that the run ended now.
    pub(super) async fn store(&self, handle: &Handle, mtimes: bool) -> Result<(), Failure> {
        let (handle, sent) = (handle.clone(), self.sent.clone());
        blocking(move || {
            let directory = handle.var_dir()?;
            if mtimes {
                let now = jiff::Timestamp::now().to_string();
                let request = Replace::bytes(directory.join(MTIMES), now).mode(0o600);
                handle.committer().replace(request)?;
            }
            for (name, text) in [
                (OUTPUT, sent.output),
                (STDOUT, sent.stdout),
                (STDERR, sent.stderr),
            ] {
                let path = directory.join(name);
                match text {
                    Some(text) => {
                        handle
                            .committer()
                            .replace(Replace::bytes(path, text).mode(0o600))?;
                    }
                    None => remove(&path)?,
                }
            }
            Ok(())
        })
        .await
    }
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

fn remove(path: &AbsolutePath) -> Result<(), Failure> {
    match Entry::at(path).and_then(|entry| entry.remove_file()) {
        Err(error) if !error.is_not_found() => Err(error.into()),
        _ => Ok(()),
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
