//! What resources may see of the graph: the paths of its files.

use std::collections::BTreeSet;
use std::sync::Arc;

use setpoint_graph::ResourceId;
use setpoint_host::files::AbsolutePath;
use setpoint_host::sync::RwLock;

use crate::GraphView;

/// The paths of all files of the running graph, sorted.
#[derive(Debug, Default)]
pub(crate) struct GraphFiles(RwLock<Arc<Paths>>);

/// Paths with whose they are.
pub(crate) type Paths = BTreeSet<(Vec<u8>, ResourceId)>;

impl GraphFiles {
    pub(crate) fn replace(&self, files: Paths) {
        *self.0.write() = Arc::new(files);
    }
}

impl GraphView for GraphFiles {
    fn files_under(&self, directory: &AbsolutePath, except: &ResourceId) -> Vec<AbsolutePath> {
        let files = self.0.read().clone();
        let directory = directory.as_bytes();
        let directory = directory.strip_suffix(b"/").unwrap_or(directory);
        let from = (directory.to_vec(), ResourceId::new("", ""));
        let below = files
            .range(from..)
            .take_while(|(path, _)| path.starts_with(directory));
        let mut found: Vec<AbsolutePath> = below
            // Not what only begins alike: `/etc/conf.d` is not below `/etc/conf`.
            .filter(|(path, id)| matches!(path.get(directory.len()), None | Some(b'/')) && id != except)
            .filter_map(|(path, _)| {
                let text = <std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(path.clone());
                AbsolutePath::new(text).ok()
            })
            .collect();
        found.dedup();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_under_a_directory_are_those_at_it_and_below_but_for_the_asker() {
        let files = GraphFiles::default();
        let names = [
            "/etc/conf",
            "/etc/conf.d/x",
            "/etc/conf/",
            "/etc/conf/a",
            "/etc/conf/b/c",
            "/etc/d",
        ];
        let all = names.map(|name| (name.as_bytes().to_vec(), ResourceId::new("file", name)));
        files.replace(all.into_iter().collect());
        let directory = AbsolutePath::new("/etc/conf/").unwrap();
        let found = files.files_under(&directory, &ResourceId::new("file", "/etc/conf/"));
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found, ["/etc/conf", "/etc/conf/a", "/etc/conf/b/c"]);
    }
}
