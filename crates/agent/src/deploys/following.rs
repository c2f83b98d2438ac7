//! What a member runs: always the newest deploy that it may take, and without the store the newest that it had.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use setpoint_programs::report::Reporter;
use setpoint_world::{Backoff, Revision, Selection, Watched};
use tokio::sync::mpsc::Sender;
use tokio::sync::oneshot;

use super::files::NotFetched;
use super::{DEPLOYS, Deploys, Frontend, Record, Stored};

/// A deploy that is there to be run.
pub struct Deployed {
    /// Its number.
    pub id: u64,
    /// Where its files are.
    pub directory: PathBuf,
    /// What it says.
    pub record: Record,
}

/// Which deploy was the newest, in a file beside the deploys.
#[derive(Serialize, Deserialize)]
struct Newest {
    id: u64,
    record: Record,
}

/// Follows the deploys of a cluster.
pub struct Follower {
    /// The deploys.
    pub deploys: Deploys,
    /// This host.
    pub hostname: String,
    /// Where deploys are kept on this host: `PREFIX/deploys`.
    pub directory: PathBuf,
    /// Whether what is there when it begins is left out.
    pub only_later: bool,
    /// Whether the first one is the last.
    pub only_first: bool,
    /// Whether it is not waited for where there is none.
    pub only_now: bool,
    /// Where it is said what goes wrong.
    pub reporter: Reporter,
    /// Told when it is known what is later.
    pub begun: Option<oneshot::Sender<()>>,
}

/// How far a host is.
#[derive(Default)]
struct Progress {
    /// Whether what was there when it began is known, where that is left out.
    has_begun: bool,
    /// The newest that was taken; 0: none yet.
    last: u64,
    /// What that says; none where it was left out.
    record: Option<Record>,
    /// Those that cannot be, which was told.
    passed_over: BTreeSet<u64>,
    /// What was told that is wrong with the store.
    told: Option<String>,
}

impl Progress {
    /// Whether the deploy that was taken last is not what the store has now, so that its numbers have begun anew; and why.
    fn why_set_back(&self, all: &[Stored]) -> Option<String> {
        let last = self.last;
        let newest = all.last()?;
        if newest.id < last {
            return Some(format!("deploy {last} is not there any more"));
        }
        let same = all.iter().find(|stored| stored.id == last)?;
        match (&self.record, &same.record) {
            (Some(known), Ok(is)) if known != is => Some(format!("deploy {last} is another one than before")),
            _ => None,
        }
    }
}

/// Why this host has not got what there is.
enum NotTaken {
    Fetching(NotFetched),
    /// Nobody wants to know any more.
    Gone,
    /// There is none.
    Nothing,
}

impl<E: Into<NotFetched>> From<E> for NotTaken {
    fn from(error: E) -> NotTaken {
        NotTaken::Fetching(error.into())
    }
}

impl Follower {
    /// Hands on each deploy that is newer than the one before, until nobody wants to know.
    ///
    /// # Errors
    /// Why there is none, where that is not waited for.
    pub async fn run(mut self, deployed: Sender<Deployed>) -> Result<(), String> {
        let mut progress = Progress::default();
        let mut backoff = Backoff::default();
        loop {
            let error = match self.follow(&mut progress, &mut backoff, &deployed).await {
                Ok(()) | Err(NotTaken::Gone) => return Ok(()),
                Err(NotTaken::Nothing) => return Err("there is no deploy for this host yet".to_owned()),
                Err(NotTaken::Fetching(error)) => error.to_string(),
            };
            if self.only_now && progress.last == 0 && self.last_known().is_none() {
                return Err(format!("no deploy is known here: {error}"));
            }
            if progress.told.as_ref() != Some(&error) {
                self.reporter
                    .warning(format!("new deploys are not seen: {error}"));
                progress.told = Some(error);
            }
            if progress.last == 0
                && !self.only_later
                && let Some(newest) = self.last_known()
            {
                self.reporter.warning(format!(
                    "goes on with deploy {}, the last that is known here",
                    newest.id
                ));
                progress.last = newest.id;
                progress.record = Some(newest.record.clone());
                if deployed.send(newest).await.is_err() || self.only_first {
                    return Ok(());
                }
            }
            tokio::time::sleep(backoff.pause()).await;
        }
    }

    async fn follow(
        &mut self,
        progress: &mut Progress,
        backoff: &mut Backoff,
        deployed: &Sender<Deployed>,
    ) -> Result<(), NotTaken> {
        let found = self.deploys.store.read(&[]).await?;
        let mut watch = self
            .deploys
            .store
            .watch(Selection::prefix(DEPLOYS), found.revision);
        let mut seen = Revision(0);
        if self.only_later && !progress.has_begun {
            progress.last = self.deploys.newest().await?;
        }
        progress.has_begun = true;
        if let Some(begun) = self.begun.take() {
            let _ = begun.send(());
        }
        loop {
            self.take_newest(progress, deployed).await?;
            if progress.told.take().is_some() {
                self.reporter.say(
                    setpoint_programs::report::Importance::Info,
                    "new deploys are seen again".to_owned(),
                );
            }
            if self.only_now && progress.last == 0 {
                return Err(NotTaken::Nothing);
            }
            backoff.reset();
            if self.only_first && progress.last > 0 {
                return Ok(());
            }
            loop {
                match watch.next().await {
                    Watched::Changed(batch) if batch.revision > seen => {
                        seen = batch.revision;
                        break;
                    }
                    Watched::Compacted(_) | Watched::Back => break,
                    Watched::SetBack(_) => {
                        seen = Revision(0);
                        break;
                    }
                    Watched::Away(error) => return Err(error.into()),
                    Watched::Changed(_) => {}
                }
                if deployed.is_closed() {
                    return Err(NotTaken::Gone);
                }
            }
        }
    }

    async fn take_newest(
        &self,
        progress: &mut Progress,
        deployed: &Sender<Deployed>,
    ) -> Result<(), NotTaken> {
        let all = self.deploys.all().await?;
        if let Some(why) = progress.why_set_back(&all) {
            self.reporter.warning(format!(
                "{why}: the store has lost deploys, and what it has holds"
            ));
            progress.last = 0;
            progress.passed_over.clear();
        }
        let newer = all
            .into_iter()
            .rev()
            .take_while(|stored| stored.id > progress.last);
        for Stored { id, record, .. } in newer.filter(|stored| stored.lets(&self.hostname)) {
            let why = match record {
                Ok(record) if record.files.is_some() || record.frontend == Frontend::Empty => {
                    return self.take(progress, Newest { id, record }, deployed).await;
                }
                Ok(_) => "it has no files".to_owned(),
                Err(why) => why,
            };
            if progress.passed_over.insert(id) {
                self.reporter
                    .warning(format!("deploy {id} is passed over: {why}"));
            }
        }
        Ok(())
    }

    async fn take(
        &self,
        progress: &mut Progress,
        newest: Newest,
        deployed: &Sender<Deployed>,
    ) -> Result<(), NotTaken> {
        let directory = self.directory.join(newest.id.to_string());
        if let Some(key) = &newest.record.files {
            self.deploys.fetch_files(key, &directory).await?;
        }
        if let Err(error) = self.remember(&newest) {
            // It runs all the same; only a start without the store would not know it.
            let at = self.directory.display();
            self.reporter.warning(format!(
                "which deploy is the newest cannot be kept in {at}: {error}"
            ));
        }
        let Newest { id, record } = newest;
        progress.last = id;
        progress.record = Some(record.clone());
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
