//! The files of a deploy: in the store, and on a host.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde::{Deserialize, Serialize};
use setpoint_world::{Backoff, Key, Operation, Revision, Snapshot, State, StoreError, Transaction};
use sha2::{Digest, Sha256};

use super::clearing::{CLEARED, CLEARING, plain};
use super::{Deploys, Record};

const VERSION: u32 = 1;

/// What all keys of lists of files begin with.
pub const FILES: &str = "/fs/deploy/";

/// What all keys of contents begin with; the hash follows.
pub const STORAGE: &str = "/storage/{sha256}";

/// How much of a file is in one value, before it is compressed: etcd takes no request of more than 1.5 MiB.
pub(super) const PART: usize = 1 << 20;

/// How many keys are deleted at once: a transaction of etcd has at most 128 operations.
pub(super) const AT_ONCE: usize = 100;

/// No file of a deploy is larger than this, in bytes: it is in the memory of who deploys and of each host, and in the store, which is no place for large files. What
/// claims to be larger is damaged.
pub const LARGEST: u64 = 256 << 20;

/// A file of a deploy.
pub struct DeployedFile {
    /// Where it is in the deploy: `/main.mcl`.
    pub path: String,
    /// Its permissions.
    pub mode: u32,
    /// What is in it.
    pub content: Vec<u8>,
}

/// A file of a deploy, whose content is still in the store.
pub struct ListedFile {
    /// Where it is in the deploy: `/main.mcl`.
    pub path: String,
    /// Its permissions.
    pub mode: u32,
    content: Content,
}

impl ListedFile {
    /// How many bytes it has.
    pub fn size(&self) -> u64 {
        self.content.size
    }

    /// Whether both have the same in them.
    pub fn is_same(&self, other: &ListedFile) -> bool {
        self.content == other.content
    }
}

/// Which files a deploy has.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Files {
    version: u32,
    pub(super) files: Vec<File>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct File {
    pub(super) path: String,
    pub(super) mode: u32,
    #[serde(flatten)]
    pub(super) content: Content,
}

/// What is in a file: so many bytes, of this hash.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Content {
    pub(super) sha256: String,
    pub(super) size: u64,
}

impl Content {
    pub(super) fn of(bytes: &[u8]) -> Content {
        Content {
            sha256: hexadecimal(&Sha256::digest(bytes)),
            size: bytes.len() as u64,
        }
    }

    pub(super) fn part(&self, number: usize) -> Key {
        Key::new(format!("{STORAGE}{}/{number}", self.sha256)).expect("it is not empty")
    }

    pub(super) fn parts(&self) -> usize {
        let parts = self.size.div_ceil(PART as u64);
        usize::try_from(parts).unwrap_or(usize::MAX)
    }
}

/// The list of the files of a deploy, as it is stored.
fn list_of(files: &[DeployedFile]) -> Vec<u8> {
    let files = files.iter().map(|file| File {
        path: file.path.clone(),
        mode: file.mode,
        content: Content::of(&file.content),
    });
    let list = Files {
        version: VERSION,
        files: files.collect(),
    };
    serde_json::to_vec(&list).expect("it has only texts and numbers")
}

/// When files of a deploy began to be stored. What is cleared away later may be one of them, which was there already.
#[derive(Debug, Clone, Copy)]
pub struct Upload {
    /// When something was cleared away last.
    cleared: Option<Revision>,
}

impl Upload {
    /// Binds to it that nothing was cleared away since.
    pub(super) fn must_be_whole(&self, transaction: Transaction) -> Transaction {
        let is = self.cleared.map_or(State::Absent, State::Modified);
        transaction.when(plain(CLEARED), is).otherwise(plain(CLEARED))
    }

    /// Whether something was, as what was read last says.
    pub(super) fn is_void(&self, read: &Snapshot) -> bool {
        let last = read.entries.last().and_then(|entries| entries.first());
        last.map(|entry| entry.modified) != self.cleared
    }
}

/// Why files cannot be fetched.
#[derive(Debug, thiserror::Error)]
pub enum NotFetched {
    /// The store cannot be asked.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What it has is not what was stored.
    #[error("{0}")]
    Damaged(String),
    /// They cannot be written here.
    #[error("it cannot be kept in {path}: {error}")]
    Here { path: String, error: std::io::Error },
}

impl Deploys {
    /// Begins an upload. Waits for who is clearing old deploys away.
    pub async fn begin_upload(&self) -> Result<Upload, StoreError> {
        let keys = [CLEARING, CLEARED].map(|text| plain(text).into());
        let mut backoff = Backoff::default();
        loop {
            let found = self.store.read(&keys).await?;
            let [clearing, cleared] =
                [0, 1].map(|at| found.entries.get(at).and_then(|entries| entries.first()));
            if clearing.is_none() {
                return Ok(Upload {
                    cleared: cleared.map(|entry| entry.modified),
                });
            }
            tokio::time::sleep(backoff.pause()).await;
        }
    }

    /// Stores the files of a deploy, and answers under which key. What is there already is not stored again.
    pub async fn store_files(&self, files: &[DeployedFile]) -> Result<String, StoreError> {
        let mut own = Vec::new();
        let stored = self.store_all(files, &mut own).await;
        if let Err(StoreError::Full { .. }) = stored {
            // What takes up the room is of no use to anybody, as nobody else can have added a deploy with it.
            for some in own.chunks(AT_ONCE) {
                let delete = some.iter().map(|key: &Key| Operation::Delete(key.clone().into()));
                if self.store.transact(Transaction::of(delete)).await.is_err() {
                    break;
                }
            }
        }
        stored
    }

    /// The same; `own` gets the keys that were not there before.
    async fn store_all(&self, files: &[DeployedFile], own: &mut Vec<Key>) -> Result<String, StoreError> {
        for file in files {
            self.store_content(&file.content, own).await?;
        }
        // The list may itself be too long for one value.
        let list = self.store_content(&list_of(files), own).await?;
        let key = format!("{FILES}{}", hexadecimal(&random()));
        let value = serde_json::to_vec(&list).expect("it has only texts and numbers");
        let put = Operation::put(Key::new(key.as_str()).expect("it is not empty"), value);
        self.store.transact(Transaction::of([put])).await?;
        Ok(key)
    }

    /// The newest deploy that is of the same program and files, with the same settings, as a record that has no files yet.
    pub(super) async fn of_same_program(
        &self,
        record: &Record,
        files: &[DeployedFile],
    ) -> Result<Option<u64>, StoreError> {
        let wanted = Content::of(&list_of(files));
        for stored in self.all().await?.into_iter().rev() {
            let Ok(found) = stored.record else { continue };
            let list = match found.files.as_deref().map(Key::new) {
                Some(Ok(key)) => self.store.read(&[key.into()]).await?,
                _ => continue,
            };
            let list = list.all().next();
            let list = list.and_then(|entry| serde_json::from_slice::<Content>(&entry.value).ok());
            if list.as_ref() == Some(&wanted) && found.without_files().text() == record.text() {
                return Ok(Some(stored.id));
            }
        }
        Ok(None)
    }

    async fn store_content(&self, bytes: &[u8], own: &mut Vec<Key>) -> Result<Content, StoreError> {
        let content = Content::of(bytes);
        for (number, part) in bytes.chunks(PART).enumerate() {
            let key = content.part(number);
            let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
            let compressed = encoder.write_all(part).and_then(|()| encoder.finish());
            let compressed = compressed.expect("memory takes everything");
            let put = Operation::put(key.clone(), compressed);
            let put = Transaction::of([put]).when(key.clone(), State::Absent);
            if self.store.transact(put).await?.is_done() {
                own.push(key);
            }
        }
        Ok(content)
    }

    /// The files under a key.
    pub(super) async fn files(&self, key: &str) -> Result<(Content, Files), NotFetched> {
        let damaged = |why: &str| NotFetched::Damaged(format!("the files of the deploy are damaged: {why}"));
        let key = Key::new(key).map_err(|_| damaged("it has none"))?;
        let found = self.store.read(&[key.clone().into()]).await?;
        let entry = found
            .all()
            .next()
            .ok_or_else(|| damaged(&format!("{key} is not there")))?;
        let list: Content =
            serde_json::from_slice(&entry.value).map_err(|error| damaged(&error.to_string()))?;
        let text = self.content(&list).await?;
        let files: Files = serde_json::from_slice(&text).map_err(|error| damaged(&error.to_string()))?;
        if files.version != VERSION {
            return Err(damaged(&format!("they are of version {}", files.version)));
        }
        match files.files.iter().find(|file| !is_inside(&file.path)) {
            Some(outside) => Err(damaged(&format!("`{}` is no path in it", outside.path))),
            None => Ok((list, files)),
        }
    }

    /// The hashes of all that is stored for the files under a key.
    pub(super) async fn contents(&self, key: &str) -> Result<Vec<String>, NotFetched> {
        let (list, files) = self.files(key).await?;
        let all = files.files.into_iter().map(|file| file.content);
        Ok(all.chain([list]).map(|content| content.sha256).collect())
    }

    /// Which files are under a key, without what is in them.
    pub async fn listed_files(&self, key: &str) -> Result<Vec<ListedFile>, NotFetched> {
        let (_, files) = self.files(key).await?;
        let listed = files.files.into_iter().map(|file| ListedFile {
            path: file.path,
            mode: file.mode,
            content: file.content,
        });
        Ok(listed.collect())
    }

    /// What is in a file.
    pub async fn file_content(&self, file: &ListedFile) -> Result<Vec<u8>, NotFetched> {
        self.content(&file.content).await
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn random() -> [u8; 16] {
    let mut bytes = [0; 16];
    setpoint_host::random::fill(&mut bytes);
    bytes
}

/// Whether a path stays in the deploy.
fn is_inside(path: &str) -> bool {
    let parts = path.strip_prefix('/').map(|rest| rest.split('/'));
    parts.is_some_and(|mut parts| parts.all(|part| !["", ".", ".."].contains(&part) && !part.contains('\0')))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use setpoint_world::{MemoryStore, Selection, Store};

    use super::*;

    fn file(path: &str, mode: u32, content: &[u8]) -> DeployedFile {
        DeployedFile {
            path: path.to_owned(),
            mode,
            content: content.to_vec(),
        }
    }

    #[tokio::test]
    async fn files_come_as_they_went_and_are_stored_once() {
        use std::os::unix::fs::PermissionsExt;
        let store = MemoryStore::new();
        let deploys = Deploys::new(Arc::new(store.clone()));
        let large: Vec<u8> = (0..3_000_000_u32)
            .flat_map(u32::to_le_bytes)
            .take(2_500_000)
            .collect();
        let files = [
            file("/main.mcl", 0o644, b"noop \"a\" {}\n"),
            file("/files/large", 0o4755, &large),
            file("/files/empty", 0o600, b""),
            file("/files/same", 0o644, b"noop \"a\" {}\n"),
        ];
        let key = deploys.store_files(&files).await.unwrap();
        let stored = async || {
            store
                .read(&[Selection::prefix("/storage/")])
                .await
                .unwrap()
                .all()
                .count()
        };
        let before = stored().await;
        assert_eq!(
            before,
            1 + 3 + 1,
            "two files of one content, one in three parts, the list"
        );
        deploys.store_files(&files).await.unwrap();
        assert_eq!(stored().await, before);
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("7");
        deploys.fetch_files(&key, &directory).await.unwrap();
        assert_eq!(std::fs::read(directory.join("files/large")).unwrap(), large);
        assert_eq!(std::fs::read(directory.join("files/empty")).unwrap(), b"");
        let mode = std::fs::metadata(directory.join("files/large"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(
            mode & 0o7777,
            0o755,
            "nothing that comes from elsewhere runs as its owner"
        );
        // Again, over what is there.
        deploys.fetch_files(&key, &directory).await.unwrap();
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
    }

    #[tokio::test]
    async fn what_is_damaged_leaves_nothing_behind() {
        let store = MemoryStore::new();
        let deploys = Deploys::new(Arc::new(store.clone()));
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("7");
        let outside = [file("/../escaped", 0o644, b"x")];
        let key = deploys.store_files(&outside).await.unwrap();
        let why = deploys
            .fetch_files(&key, &directory)
            .await
            .unwrap_err()
            .to_string();
        assert_eq!(
            why,
            "the files of the deploy are damaged: `/../escaped` is no path in it"
        );
        let key = deploys
            .store_files(&[file("/main.mcl", 0o644, b"right")])
            .await
            .unwrap();
        let part = Content::of(b"right").part(0);
        store
            .transact(Transaction::of([Operation::put(part.clone(), *b"wrong")]))
            .await
            .unwrap();
        let why = deploys
            .fetch_files(&key, &directory)
            .await
            .unwrap_err()
            .to_string();
        assert!(why.contains("in the store is damaged: "), "{why}");
        store
            .transact(Transaction::of([Operation::Delete(part.into())]))
            .await
            .unwrap();
        let why = deploys
            .fetch_files(&key, &directory)
            .await
            .unwrap_err()
            .to_string();
        assert!(why.contains("a part of it is missing"), "{why}");
        let why = deploys
            .fetch_files("/fs/deploy/none", &directory)
            .await
            .unwrap_err()
            .to_string();
        assert!(why.contains("/fs/deploy/none is not there"), "{why}");
        assert!(!directory.exists() && !place.path().join("escaped").exists());
    }

    #[test]
    fn paths_stay_inside() {
        for inside in ["/a", "/a/b.c", "/..a"] {
            assert!(is_inside(inside), "{inside}");
        }
        for outside in ["", "/", "a", "//a", "/a/", "/../a", "/a/..", "/a/./b", "/a\0"] {
            assert!(!is_inside(outside), "{outside}");
        }
    }
}
