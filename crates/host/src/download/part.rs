//! Contents that arrived, in a file of a private directory. The next try continues it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use tokio::task::block_in_place;

use super::{Address, Answer, Condition, Contents, DownloadError, Request, Validators};

/// A file that a download fills, over one or several tries. Only its owner can read it.
#[derive(Debug, Clone)]
pub struct Part {
    contents: PathBuf,
    /// The address and the validator of what is in it, one in each line.
    origin: PathBuf,
}

/// The result of a download.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fetched {
    /// The server has what is known.
    Unchanged,
    /// Everything is in the file.
    Complete {
        /// How the server recognises it.
        validators: Validators,
        /// The number of bytes.
        length: u64,
    },
}

impl Part {
    /// The file with this name in a directory.
    #[must_use]
    pub fn in_directory(directory: &Path, name: &str) -> Part {
        Part {
            contents: directory.join(name),
            origin: directory.join(format!("{name}.origin")),
        }
    }

    /// Where the contents are.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.contents
    }

    /// Removes the contents.
    pub fn remove(&self) {
        for path in [&self.origin, &self.contents] {
            // A file that stays is overwritten by the next download.
            let _ = std::fs::remove_file(path);
        }
    }

    /// Fetches contents of at most so many bytes, unless the server has those with these validators. `progress` is called with the
    /// bytes that arrived and with the length, if it is known. Blocks the thread while it writes.
    ///
    /// # Errors
    /// When not everything arrived. The bytes that arrived are kept for the next try.
    pub async fn fetch(
        &self,
        request: &Request,
        known: Option<&Validators>,
        limit: u64,
        mut progress: impl FnMut(u64, Option<u64>),
    ) -> Result<Fetched, DownloadError> {
        if let Some(path) = request.address.local() {
            return block_in_place(|| self.copy(&path, limit));
        }
        let there = known.is_none().then(|| self.there(&request.address)).flatten();
        let condition = match (known, there) {
            (Some(known), _) => Condition::Changed(known.clone()),
            (None, Some((from, validator))) => Condition::Rest { from, validator },
            (None, None) => Condition::None,
        };
        let contents = match request.send(&condition).await {
            Ok(Answer::Unchanged) => return Ok(Fetched::Unchanged),
            Ok(Answer::Contents(contents)) => contents,
            // The part is as long as the contents, or they are others now.
            Err(DownloadError::Refused { status, .. }) if status.starts_with("416") => {
                self.remove();
                match request.send(&Condition::None).await? {
                    Answer::Contents(contents) => contents,
                    Answer::Unchanged => return Ok(Fetched::Unchanged),
                }
            }
            Err(error) => return Err(error),
        };
        self.receive(contents, &request.address, limit, &mut progress)
            .await
    }

    async fn receive(
        &self,
        mut contents: Box<Contents>,
        address: &Address,
        limit: u64,
        progress: &mut impl FnMut(u64, Option<u64>),
    ) -> Result<Fetched, DownloadError> {
        let failed = || DownloadError::file(self.contents.display());
        if contents.length.is_some_and(|length| length > limit) {
            return Err(DownloadError::TooLarge(limit));
        }
        let mut file = block_in_place(|| match contents.from {
            0 => self.begin(address, contents.validators.of_rest()),
            from => self.go_on(from),
        })
        .map_err(failed())?;
        let mut length = contents.from;
        while let Some(bytes) = contents.next().await? {
            length += bytes.len() as u64;
            if length > limit {
                self.remove();
                return Err(DownloadError::TooLarge(limit));
            }
            block_in_place(|| file.write_all(&bytes)).map_err(failed())?;
            progress(length, contents.length);
        }
        if contents.length.is_some_and(|wanted| wanted != length) {
            return Err(DownloadError::Failed(format!(
                "the connection ended after {length} bytes"
            )));
        }
        Ok(Fetched::Complete {
            validators: contents.validators,
            length,
        })
    }

    /// Starts from the beginning. The origin is removed first and written last, so the contents never have a wrong origin.
    fn begin(&self, address: &Address, validator: Option<&str>) -> io::Result<File> {
        self.remove();
        let file = private().create_new(true).open(&self.contents)?;
        if let Some(validator) = validator {
            let mut origin = private().create_new(true).open(&self.origin)?;
            writeln!(origin, "{address}\n{validator}")?;
        }
        Ok(file)
    }

    fn go_on(&self, from: u64) -> io::Result<File> {
        let mut file = private().open(&self.contents)?;
        file.set_len(from)?;
        file.seek(SeekFrom::End(0))?;
        Ok(file)
    }

    /// The length and the validator of what is there of an address.
    fn there(&self, address: &Address) -> Option<(u64, String)> {
        let origin = std::fs::read_to_string(&self.origin).ok()?;
        let (of, validator) = origin.strip_suffix('\n')?.split_once('\n')?;
        let length = std::fs::symlink_metadata(&self.contents).ok()?.len();
        (of == address.to_string() && length > 0).then(|| (length, validator.to_owned()))
    }

    fn copy(&self, path: &Path, limit: u64) -> Result<Fetched, DownloadError> {
        let mut source = File::open(path).map_err(DownloadError::file(path.display()))?;
        self.remove();
        let failed = || DownloadError::file(self.contents.display());
        let mut file = private()
            .create_new(true)
            .open(&self.contents)
            .map_err(failed())?;
        let length = io::copy(&mut (&mut source).take(limit + 1), &mut file).map_err(failed())?;
        match length > limit {
            true => {
                self.remove();
                Err(DownloadError::TooLarge(limit))
            }
            false => Ok(Fetched::Complete {
                validators: Validators::default(),
                length,
            }),
        }
    }
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed());
    options
}
