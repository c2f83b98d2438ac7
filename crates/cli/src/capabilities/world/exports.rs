//! What the members of the local world export.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use setpoint_engine::{ExportChange, ExportKey, ExportStore, Failure, async_trait};
use setpoint_host::files::{AbsolutePath, FileError, Replaced};
use setpoint_value::Exported;

use super::{
    EVERYONE, LocalWorld, Member, content, escaped, file_name, is_absence, remove, replacement, unescaped,
};

/// What is done with the directory of exports, in messages.
const READ: &str = "read what this host exports, at";

#[async_trait]
impl ExportStore for LocalWorld {
    async fn exported(&self) -> Result<Vec<ExportKey>, Failure> {
        let member = self.member.clone();
        let read = move || {
            let failed = |error: io::Error| {
                let at = member.path(&["exports"]);
                Failure::new(READ).on(at.as_path().display()).because(error)
            };
            member.own_exports().map_err(failed)
        };
        let read = tokio::task::spawn_blocking(read).await;
        read.unwrap_or_else(|ended| Err(Failure::new("read what this host exports").because(ended)))
    }

    async fn change(&self, changes: Vec<ExportChange>) -> Vec<Result<(), Failure>> {
        let member = self.member.clone();
        let change = move || member.change_exports(&changes);
        // After a panic there are no answers, and then all have failed.
        tokio::task::spawn_blocking(change).await.unwrap_or_default()
    }

    /// As many as are committed together.
    fn at_a_time(&self) -> usize {
        1024
    }
}

/// A record, as its file has it.
struct Record {
    to: String,
    name: String,
    data: String,
}

impl Record {
    fn write(to: &str, name: &str, data: &str) -> String {
        format!("{}\n{}\n{data}", escaped(to), escaped(name))
    }

    /// The record of a file for a host; none if there is no such file. One that nobody can read has the name of its file and no
    /// data, so that whoever collects it hears that it is damaged.
    fn read(path: &Path, to: &str) -> io::Result<Option<Record>> {
        let Some(text) = content(path)? else {
            return Ok(None);
        };
        let read = || {
            let (to, rest) = text.split_once('\n')?;
            let (name, data) = rest.split_once('\n')?;
            Some(Record {
                to: unescaped(to)?,
                name: unescaped(name)?,
                data: data.to_owned(),
            })
        };
        let file = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let file = file.unwrap_or_default();
        Ok(Some(read().unwrap_or_else(|| Record {
            to: to.to_owned(),
            name: unescaped(&file).unwrap_or(file),
            data: String::new(),
        })))
    }
}

impl Member {
    /// What others and this member export to this member or to all, by name and host.
    pub(super) fn exports(&self, kind: &str) -> io::Result<Vec<Exported>> {
        let mut found = BTreeMap::new();
        for to in [EVERYONE, &self.hostname] {
            let directory = self.path(&["exports", kind, to]);
            for host in super::names(directory.as_path())? {
                for file in entries(&directory.as_path().join(file_name(&host)))? {
                    // Whoever takes it back between is no longer there.
                    if let Some(record) = Record::read(&file, to)? {
                        found.insert((record.name, host.clone()), record.data);
                    }
                }
            }
        }
        let exported = found.into_iter().map(|((name, host), data)| Exported {
            name,
            host,
            data: data.into(),
        });
        Ok(exported.collect())
    }

    /// The records of this member.
    fn own_exports(&self) -> io::Result<Vec<ExportKey>> {
        let mut found = Vec::new();
        let directory = self.path(&["exports"]);
        for kind in super::names(directory.as_path())? {
            for directory in entries(self.path(&["exports", &kind]).as_path())? {
                let to = directory.file_name().and_then(|name| unescaped(name.to_str()?));
                for file in entries(&directory.join(file_name(&self.hostname)))? {
                    if let Some(record) = Record::read(&file, to.as_deref().unwrap_or_default())? {
                        found.push(ExportKey {
                            resource: setpoint_graph::ResourceId::new(kind.as_str(), record.name),
                            to: record.to.into(),
                        });
                    }
                }
            }
        }
        Ok(found)
    }

    fn change_exports(&self, changes: &[ExportChange]) -> Vec<Result<(), Failure>> {
        let mut results: Vec<Option<Result<(), FileError>>> = Vec::new();
        let mut requests = Vec::new();
        for ExportChange { key, data } in changes {
            let path = self.export_path(key);
            let record = data
                .as_ref()
                .map(|data| Record::write(&key.to, &key.resource.name, data));
            let request = match record {
                // What another process wrote already wakes nobody again.
                Some(record) if content(path.as_path()).is_ok_and(|there| there == Some(record.clone())) => {
                    Ok(None)
                }
                Some(record) => replacement(path, &record).map(Some),
                None => remove(&path).map(|()| None),
            };
            results.push(match request {
                Ok(Some(request)) => {
                    requests.push(request);
                    None
                }
                Ok(None) => Some(Ok(())),
                Err(error) => Some(Err(error)),
            });
        }
        let replaced = self.host.committer.replace_many(requests);
        let mut replaced = replaced
            .into_iter()
            .map(|result: Result<Replaced, FileError>| result.map(drop));
        let all = changes.iter().zip(results);
        let results = all.map(|(change, result)| {
            let result = result.or_else(|| replaced.next()).unwrap_or(Ok(()));
            let attempted = match change.data {
                Some(_) => "export",
                None => "take back",
            };
            result.map_err(|error| Failure::new(attempted).on(&change.key).because(error))
        });
        results.collect()
    }

    fn export_path(&self, key: &ExportKey) -> AbsolutePath {
        let ExportKey { resource, to } = key;
        self.path(&["exports", &resource.kind, to, &self.hostname, &resource.name])
    }
}

/// The paths of what is in a directory, but for what is being written; nothing if there is no such directory.
fn entries(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if is_absence(&error) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry
            .file_name()
            .to_str()
            .is_some_and(|name| name.starts_with('_'))
        {
            paths.push(entry.path());
        }
    }
    paths.sort();
    Ok(paths)
}
