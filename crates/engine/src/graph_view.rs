//! What resources may see of the graph: who is what.

use std::collections::BTreeSet;
use std::sync::Arc;

use setpoint_graph::ResourceId;
use setpoint_host::sync::RwLock;

use crate::{Identity, Key, Sort};

/// The identities of all resources of the running graph, by sort and key. The engine keeps it; kinds look.
#[derive(Debug, Default)]
pub struct GraphView(RwLock<BTreeSet<Known>>);

/// Sort, key, and whose it is.
type Known = (&'static str, Key, ResourceId);

/// What changed from one graph to the next.
#[derive(Debug, Default)]
pub(crate) struct ViewChange {
    /// Nothing of before holds any more.
    pub(crate) is_anew: bool,
    pub(crate) removed: Vec<(Identity, ResourceId)>,
    pub(crate) added: Vec<(Identity, ResourceId)>,
}

impl GraphView {
    /// A resource has an identity from now on.
    pub fn insert(&self, identity: Identity, id: ResourceId) {
        self.0.write().insert((identity.sort.name, identity.key, id));
    }

    pub(crate) fn apply(&self, change: ViewChange) {
        let mut all = self.0.write();
        if change.is_anew {
            all.clear();
        }
        for (identity, id) in change.removed {
            all.remove(&(identity.sort.name, identity.key, id));
        }
        for (identity, id) in change.added {
            all.insert((identity.sort.name, identity.key, id));
        }
    }

    /// Whose a key of a sort is.
    pub(crate) fn holders(&self, sort: &Sort, key: &[u8]) -> Vec<ResourceId> {
        let all = self.0.read();
        let key = Key::from(Arc::from(key));
        let from = (sort.name, key.clone(), ResourceId::new("", ""));
        let found = all
            .range(from..)
            .take_while(|(name, other, _)| *name == sort.name && *other == key);
        found.map(|(.., id)| id.clone()).collect()
    }

    /// The keys of a sort that begin with these bytes, sorted, with whose they are.
    #[must_use]
    pub fn beginning_with(&self, sort: &Sort, prefix: &[u8]) -> Vec<(Key, ResourceId)> {
        let all = self.0.read();
        let from = (sort.name, Key::from(Arc::from(prefix)), ResourceId::new("", ""));
        let found = all.range(from..);
        found
            .take_while(|(name, key, _)| *name == sort.name && key.starts_with(prefix))
            .map(|(_, key, id)| (key.clone(), id.clone()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static FILE: Sort = Sort::exact("file");
    static OTHER: Sort = Sort::exact("filet");

    #[test]
    fn keys_are_found_by_their_beginning_within_their_sort() {
        let view = GraphView::default();
        let id = |name: &str| ResourceId::new("file", name);
        for name in ["/etc/conf", "/etc/conf.d/x", "/etc/d", "/a"] {
            view.insert(FILE.identity(name.as_bytes()), id(name));
        }
        view.insert(OTHER.identity(b"/etc/conf/x".as_slice()), id("other"));
        let names = |prefix: &str| -> Vec<String> {
            let found = view.beginning_with(&FILE, prefix.as_bytes());
            found.iter().map(|(_, id)| id.name.to_string()).collect()
        };
        assert_eq!(names("/etc/conf"), ["/etc/conf", "/etc/conf.d/x"]);
        view.apply(ViewChange {
            is_anew: false,
            removed: vec![(FILE.identity(b"/etc/conf".as_slice()), id("/etc/conf"))],
            added: vec![(FILE.identity(b"/etc/conf/new".as_slice()), id("new"))],
        });
        assert_eq!(names("/etc/conf"), ["/etc/conf.d/x", "new"]);
        view.apply(ViewChange {
            is_anew: true,
            ..ViewChange::default()
        });
        assert_eq!(names(""), Vec::<String>::new());
    }
}
