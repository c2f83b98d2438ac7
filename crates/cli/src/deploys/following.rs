//! What a member runs: always the newest deploy, and without the store the newest that it had.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use setpoint_world::{Backoff, Revision, Selection, Watched};
use tokio::sync::mpsc::Sender;

use super::files::NotFetched;
use super::{DEPLOYS, Deploys, Frontend, Record};
use crate::output::Output;

/// A deploy that is there to be run.
pub(crate) struct Deployed {
    /// Its number.
    pub(crate) id: u64,
    /// Where its files are.
    pub(crate) directory: PathBuf,
    /// What it says.
    pub(crate) record: Record,
}

/// Which deploy was the newest, in a file beside the deploys.
#[derive(Serialize, Deserialize)]
struct Newest {
    id: u64,
    record: Record,
}

/// Follows the deploys of a cluster.
pub(crate) struct Follower {
    pub(crate) deploys: Deploys,
    /// Where deploys are kept on this host: `PREFIX/deploys`.
    pub(crate) directory: PathBuf,
    /// Whether what is there when it begins is left out.
    pub(crate) only_later: bool,
    /// Whether the first one is the last.
    pub(crate) only_first: bool,
    /// Where it is said what goes wrong.
    pub(crate) output: Output,
}

/// Why this host has not got what there is.
enum NotTaken {
    Fetching(NotFetched),
    /// Nobody wants to know any more.
    Gone,
}

impl<E: Into<NotFetched>> From<E> for NotTaken {
    fn from(error: E) -> NotTaken {
        NotTaken::Fetching(error.into())
    }
}

impl Follower {
    /// Hands on each deploy that is newer than the one before, until nobody wants to know.
    pub(crate) async fn run(self, deployed: Sender<Deployed>) {
        let mut last = 0;
        let mut backoff = Backoff::default();
        let mut told = None;
        loop {
            let error = match self.follow(&mut last, &mut told, &mut backoff, &deployed).await {
                Ok(()) | Err(NotTaken::Gone) => return,
                Err(NotTaken::Fetching(error)) => error.to_string(),
            };
            if told.as_ref() != Some(&error) {
                self.output.warning(format!("new deploys are not seen: {error}"));
                told = Some(error);
            }
            if last == 0
                && !self.only_later
                && let Some(newest) = self.last_known()
            {
                self.output.warning(format!(
                    "goes on with deploy {}, the last that is known here",
                    newest.id
                ));
                last = newest.id;
                if deployed.send(newest).await.is_err() || self.only_first {
                    return;
                }
            }
            tokio::time::sleep(backoff.pause()).await;
        }
    }

    async fn follow(
        &self,
        last: &mut u64,
        told: &mut Option<String>,
        backoff: &mut Backoff,
        deployed: &Sender<Deployed>,
    ) -> Result<(), NotTaken> {
        let found = self.deploys.store.read(&[]).await?;
        let mut watch = self
            .deploys
            .store
            .watch(Selection::prefix(DEPLOYS), found.revision);
        let mut seen = Revision(0);
        if self.only_later && *last == 0 {
            *last = self.deploys.newest().await?;
        }
        loop {
            if told.take().is_some() {
                self.output.say(
                    crate::output::Importance::Info,
                    "new deploys are seen again".to_owned(),
                );
            }
            self.take_newest(last, deployed).await?;
            backoff.reset();
            if self.only_first && *last > 0 {
                return Ok(());
            }
            loop {
                match watch.next().await {
                    Watched::Changed(batch) if batch.revision > seen => {
                        seen = batch.revision;
                        break;
                    }
                    Watched::Compacted(_) | Watched::Back => break,
                    Watched::Away(error) => return Err(error.into()),
                    Watched::Changed(_) => {}
                }
                if deployed.is_closed() {
                    return Err(NotTaken::Gone);
                }
            }
        }
    }

    async fn take_newest(&self, last: &mut u64, deployed: &Sender<Deployed>) -> Result<(), NotTaken> {
        let id = self.deploys.newest().await?;
        if id <= *last {
            return Ok(());
        }
        let record = match self.deploys.get(id).await? {
            Some(Ok(record)) => record,
            Some(Err(why)) => {
                self.output.warning(format!("deploy {id} is passed over: {why}"));
                *last = id;
                return Ok(());
            }
            None => return Ok(()),
        };
        let directory = self.directory.join(id.to_string());
        match (&record.files, record.frontend) {
            (Some(key), _) => self.deploys.fetch_files(key, &directory).await?,
            (None, Frontend::Empty) => {}
            (None, Frontend::Lang | Frontend::Yaml) => {
                self.output
                    .warning(format!("deploy {id} is passed over: it has no files"));
                *last = id;
                return Ok(());
            }
        }
        let newest = Newest { id, record };
        if let Err(error) = self.remember(&newest) {
            // It runs all the same; only a start without the store would not know it.
            let at = self.directory.display();
            self.output.warning(format!(
                "which deploy is the newest cannot be kept in {at}: {error}"
            ));
        }
        *last = id;
        let Newest { id, record } = newest;
        let taken = deployed
            .send(Deployed {
                id,
                directory,
                record,
            })
            .await;
        taken.map_err(|_| NotTaken::Gone)
    }

    fn remember(&self, newest: &Newest) -> std::io::Result<()> {
        std::fs::create_dir_all(&self.directory)?;
        let text = serde_json::to_vec(newest).expect("it has only texts and numbers");
        let temporary = self.directory.join("newest.arriving");
        std::fs::write(&temporary, text)?;
        std::fs::File::open(&temporary)?.sync_all()?;
        std::fs::rename(&temporary, self.directory.join("newest"))?;
        // The one before may still be read by a program that is about to end.
        for entry in std::fs::read_dir(&self.directory)?.flatten() {
            let id: Option<u64> = entry.file_name().to_str().and_then(|name| name.parse().ok());
            if id.is_some_and(|id| id + 1 < newest.id) {
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
        Ok(())
    }

    fn last_known(&self) -> Option<Deployed> {
        let text = std::fs::read(self.directory.join("newest")).ok()?;
        let Newest { id, record } = serde_json::from_slice(&text).ok()?;
        let directory = self.directory.join(id.to_string());
        let is_there = record.files.is_none() || Path::new(&directory).is_dir();
        is_there.then_some(Deployed {
            id,
            directory,
            record,
        })
    }
}
