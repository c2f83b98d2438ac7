//! The file itself: opened, made, locked, and what is wrong with it in words.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use redb::{Builder, ConcurrencyMode, Database};
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;
use setpoint_host::files::{AbsolutePath, Directory, Entry, LockHolder};
use setpoint_host::random;
use setpoint_host::sync::Mutex;
use tokio::time::Instant;

use super::leasing::{Clock, Leases};
use super::requests::{Answer, Question};
use super::tables::{self, Look, Reading, Writing};
use crate::StoreError;

/// Time to wait for another process that writes.
const LOCK_PATIENCE: Duration = Duration::from_secs(4);

/// Size of the page cache, in bytes.
const CACHE_BYTES: usize = 8 * 1024 * 1024;

/// Directory of the store.
pub(super) struct Place {
    directory: AbsolutePath,
    pub(super) file: AbsolutePath,
    /// Lock file of writers. Writers write to it when they are done, to wake readers.
    pub(super) lock: AbsolutePath,
    opened: Mutex<Option<Opened>>,
}

/// The file that was opened, whatever is at its path now.
struct Opened {
    database: Database,
    identity: (u64, u64),
}

/// Answers to a batch of questions.
pub(super) struct Answered {
    pub(super) answers: Vec<Result<Answer, StoreError>>,
    pub(super) is_changed: bool,
    /// Time of the next check of leases.
    pub(super) look: Option<Instant>,
}

impl Place {
    pub(super) fn new(directory: AbsolutePath) -> Place {
        Place {
            file: directory.join("store.redb"),
            lock: directory.join("store.lock"),
            directory,
            opened: Mutex::default(),
        }
    }

    /// Answers questions together: all of them, or what goes wrong with the file.
    pub(super) fn answer(&self, questions: &[Question], leases: &Leases) -> Result<Answered, StoreError> {
        let mut opened = self.opened.lock();
        let writes = questions.iter().any(Question::writes);
        let answered = self.open(&mut opened, writes).and_then(|is_there| {
            let Some(opened) = opened.as_ref().filter(|_| is_there) else {
                return Ok(Answered {
                    answers: questions
                        .iter()
                        .map(|question| Ok(tables::of_nothing(question)))
                        .collect(),
                    is_changed: false,
                    look: None,
                });
            };
            if !writes && let Some(answered) = self.read(&opened.database, questions, leases)? {
                return Ok(answered);
            }
            self.write(&opened.database, questions, leases)
        });
        // After an error the file is opened anew.
        if answered.is_err() {
            close(opened.take());
        }
        answered
    }

    /// Error for a reader that panicked.
    pub(super) fn broke_down(&self) -> StoreError {
        close(self.opened.lock().take());
        self.damaged("it is not as it was written")
    }

    /// Opens the file, or makes it where something is to be written; whether it is there then.
    fn open(&self, opened: &mut Option<Opened>, writes: bool) -> Result<bool, StoreError> {
        let there = match rustix::fs::stat(self.file.as_path()) {
            Ok(found) => Some((found.st_dev, found.st_ino)),
            Err(Errno::NOENT) => None,
            Err(error) => return Err(self.failed(error.into())),
        };
        if there.is_some() && opened.as_ref().map(|opened| opened.identity) == there {
            return Ok(true);
        }
        close(opened.take());
        if there.is_none() && !writes {
            return Ok(false);
        }
        let _lock = self.lock()?;
        if rustix::fs::stat(self.file.as_path()).err() == Some(Errno::NOENT) {
            // Another process may have made it meanwhile; then this one opens that.
            self.make()?;
        }
        let found = rustix::fs::stat(self.file.as_path()).map_err(|error| self.failed(error.into()))?;
        if found.st_size == 0 {
            return Err(self.damaged("it is empty"));
        }
        let mut builder = Builder::new();
        builder
            .set_cache_size(CACHE_BYTES)
            .set_concurrency_mode(ConcurrencyMode::MultiWriter)
            .set_check_integrity_on_open(true);
        let database = builder
            .open(self.file.as_path())
            .map_err(|error| self.told(error.into()))?;
        let format = Reading::begin(&database).and_then(|reading| reading.check_format());
        if let Err(format) = format.map_err(|error| self.told(error))? {
            let path = self.file.as_path().display();
            return Err(StoreError::Refused {
                reason: format!("{path} is of version {format}, which this program does not know").into(),
            });
        }
        *opened = Some(Opened {
            database,
            identity: (found.st_dev, found.st_ino),
        });
        Ok(true)
    }

    /// Makes the file, beside its place first.
    fn make(&self) -> Result<(), StoreError> {
        let new = self.directory.join("store.redb.new");
        let made = || -> tables::Result<()> {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            drop(rustix::fs::open(new.as_path(), flags, Mode::RUSR | Mode::WUSR).map_err(io::Error::from)?);
            let database = Builder::new().set_cache_size(CACHE_BYTES).create(new.as_path())?;
            let transaction = database.begin_write()?;
            let mut number = [0; 8];
            random::fill(&mut number);
            tables::make(&transaction, u64::from_le_bytes(number).max(1))?;
            transaction.commit()?;
            database.close()?;
            rustix::fs::rename(new.as_path(), self.file.as_path()).map_err(io::Error::from)?;
            let directory = Directory::open(&self.directory).and_then(|directory| directory.sync());
            directory.map_err(|error| io::Error::new(error.kind(), error))?;
            Ok(())
        };
        made().map_err(|error| {
            // It is half of a store, and nobody misses it.
            let _ = Entry::at(&new).and_then(|new| new.remove_file());
            self.told(error)
        })
    }

    /// Answers those who only read; nothing where leases are to be changed before.
    fn read(
        &self,
        database: &Database,
        questions: &[Question],
        leases: &Leases,
    ) -> Result<Option<Answered>, StoreError> {
        let read = || -> tables::Result<Option<Answered>> {
            let reading = Reading::begin(database)?;
            let look = reading.look_at(leases, &Clock::now())?;
            if look.is_due {
                return Ok(None);
            }
            let mut answers = Vec::with_capacity(questions.len());
            for question in questions {
                answers.push(Ok(reading.answer(question)?));
            }
            Ok(Some(Answered {
                answers,
                is_changed: false,
                look: at(&look),
            }))
        };
        read().map_err(|error| self.told(error))
    }

    fn write(
        &self,
        database: &Database,
        questions: &[Question],
        leases: &Leases,
    ) -> Result<Answered, StoreError> {
        let lock = self.lock()?;
        let write = || -> tables::Result<Answered> {
            let transaction = database.begin_write()?;
            let mut writing = Writing::open(&transaction)?;
            let look = writing.look_at(leases, &Clock::now())?;
            let mut answers = Vec::with_capacity(questions.len());
            for question in questions {
                answers.push(writing.answer(question, leases)?);
            }
            let is_changed = writing.is_changed;
            drop(writing);
            match is_changed {
                true => transaction.commit()?,
                false => transaction.abort()?,
            }
            Ok(Answered {
                answers,
                is_changed,
                look: at(&look),
            })
        };
        let answered = write().map_err(|error| self.told(error))?;
        if answered.is_changed {
            // Others are woken by it; where that fails, by its closing.
            let _ = (&lock.file).write_all(b".");
        }
        Ok(answered)
    }

    /// Keeps other writers out, until it is dropped.
    #[expect(
        clippy::disallowed_methods,
        reason = "no event tells that a lock is free, and this thread is there for waiting"
    )]
    fn lock(&self) -> Result<Locked, StoreError> {
        Entry::create_directories(&self.directory, 0o700, 0o700)
            .map_err(|error| self.failed(io::Error::new(error.kind(), error.reason())))?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::open(self.lock.as_path(), flags, Mode::RUSR | Mode::WUSR);
        let file = File::from(opened.map_err(|error| self.failed(error.into()))?);
        let since = Instant::now();
        let mut pause = Duration::from_micros(100);
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Locked { file }),
                Err(Errno::WOULDBLOCK | Errno::INTR) if since.elapsed() < LOCK_PATIENCE => {
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(Duration::from_millis(10));
                }
                Err(Errno::WOULDBLOCK | Errno::INTR) => {
                    let (path, holder) = (self.lock.as_path(), LockHolder::at(self.lock.as_path()));
                    return Err(StoreError::Away {
                        reason: format!("{holder} has {} locked", path.display()).into(),
                        is_ambiguous: false,
                    });
                }
                Err(error) => return Err(self.failed(error.into())),
            }
        }
    }

    fn damaged(&self, why: &str) -> StoreError {
        let path = self.file.as_path().display();
        let reason = format!("{path}: {why}; if it is moved away, what is shared begins anew");
        StoreError::Damaged {
            reason: reason.into(),
        }
    }

    /// An error of the system.
    fn failed(&self, error: io::Error) -> StoreError {
        let reason = format!("{}: {}", self.file.as_path().display(), words(&error)).into();
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
                StoreError::Full { reason }
            }
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => StoreError::Denied { reason },
            ErrorKind::InvalidData | ErrorKind::UnexpectedEof => self.damaged(&words(&error)),
            // Nobody mends that by waiting.
            ErrorKind::NotADirectory | ErrorKind::IsADirectory | ErrorKind::InvalidFilename => {
                StoreError::Refused { reason }
            }
            _ => StoreError::Away {
                reason,
                is_ambiguous: true,
            },
        }
    }

    /// An error of the file.
    fn told(&self, error: redb::Error) -> StoreError {
        use redb::Error;
        match error {
            Error::Io(error) => self.failed(error),
            Error::Corrupted(why) => self.damaged(&why),
            Error::TableDoesNotExist(_)
            | Error::TableTypeMismatch { .. }
            | Error::TypeDefinitionChanged { .. } => self.damaged("it is no store of Setpoint"),
            Error::DatabaseAlreadyOpen => {
                let path = self.file.as_path();
                StoreError::Away {
                    reason: format!("{} has {} open for itself", LockHolder::at(path), path.display()).into(),
                    is_ambiguous: false,
                }
            }
            error => StoreError::Refused {
                reason: format!("{}: {error}", self.file.as_path().display()).into(),
            },
        }
    }
}

/// The lock of who writes.
struct Locked {
    file: File,
}

impl Drop for Locked {
    fn drop(&mut self) {
        // A command that is being started has a copy of the descriptor for a moment, so closing ours is not enough.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

fn at(look: &Look) -> Option<Instant> {
    look.again
        .map(|milliseconds| Instant::now() + Duration::from_millis(milliseconds))
}

/// Closes a file, of which nothing is awaited any more: what was answered is on the disk.
fn close(opened: Option<Opened>) {
    // What broke down may do so once more.
    let _ = catch_unwind(AssertUnwindSafe(move || drop(opened)));
}

/// An error without its number.
fn words(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}
