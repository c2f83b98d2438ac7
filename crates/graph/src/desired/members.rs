//! Groups: resources that are applied as part of another one, and the edges that they bring with them.

use std::sync::Arc;

use crate::{DesiredEdge, DesiredResource, ResourceId};

/// The resources that are applied as part of another one, sorted by identity. Most resources have none, and then this takes no
/// memory of its own. No program writes them: the engine puts them here.
#[derive(Debug, Clone, Default)]
pub struct DesiredMembers(Option<Arc<List>>);

#[derive(Debug)]
struct List {
    members: Box<[Arc<DesiredResource>]>,
    /// The places of those that have members themselves.
    parents: Box<[u32]>,
    /// The semaphores of all of them, members of members included, without repeats.
    sema: Box<[String]>,
    /// How many they are, members of members included.
    count: usize,
}

impl DesiredMembers {
    /// From resources in any order.
    #[must_use]
    pub fn new(members: impl IntoIterator<Item = Arc<DesiredResource>>) -> DesiredMembers {
        let mut members: Vec<Arc<DesiredResource>> = members.into_iter().collect();
        if members.is_empty() {
            return DesiredMembers::default();
        }
        members.sort_by(|a, b| a.id.cmp(&b.id));
        let parents = members.iter().zip(0..).filter(|(m, _)| !m.members.is_empty());
        let parents = parents.map(|(_, place)| place).collect();
        let sema = members.iter().flat_map(|member| member.semaphores());
        let mut sema: Vec<String> = sema.map(str::to_owned).collect();
        sema.sort_unstable();
        sema.dedup();
        let count = members.iter().map(|member| 1 + member.members.count()).sum();
        DesiredMembers(Some(Arc::new(List {
            members: members.into(),
            parents,
            sema: sema.into(),
            count,
        })))
    }

    /// The members, sorted by identity, without members of members.
    #[must_use]
    pub fn direct(&self) -> &[Arc<DesiredResource>] {
        self.0.as_ref().map_or(&[], |list| &list.members)
    }

    /// How many there are, members of members included.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.as_ref().map_or(0, |list| list.count)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// A member, or a member of one, by identity.
    #[must_use]
    pub fn get(&self, id: &ResourceId) -> Option<&Arc<DesiredResource>> {
        let list = self.0.as_ref()?;
        match list.members.binary_search_by(|member| member.id.cmp(id)) {
            Ok(at) => Some(&list.members[at]),
            Err(_) => list
                .parents
                .iter()
                .find_map(|place| list.members[*place as usize].members.get(id)),
        }
    }

    /// All members with the members that they have, each before its own.
    #[must_use]
    pub fn all(&self) -> Vec<&Arc<DesiredResource>> {
        let mut all = Vec::with_capacity(self.direct().len());
        let mut left: Vec<&Arc<DesiredResource>> = self.direct().iter().rev().collect();
        while let Some(next) = left.pop() {
            all.push(next);
            left.extend(next.members.direct().iter().rev());
        }
        all
    }

    /// Whether both are the same resources.
    pub(crate) fn is_equal(&self, other: &DesiredMembers) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(a), Some(b)) => {
                Arc::ptr_eq(a, b)
                    || a.members.len() == b.members.len()
                        && a.members
                            .iter()
                            .zip(&b.members)
                            .all(|(a, b)| Arc::ptr_eq(a, b) || a.is_equal(b))
            }
            _ => false,
        }
    }
}

impl PartialEq for DesiredMembers {
    fn eq(&self, other: &DesiredMembers) -> bool {
        self.direct() == other.direct()
    }
}

impl Eq for DesiredMembers {}

impl DesiredResource {
    /// The semaphores that a run of it takes: its own, then those of its members; without repeats of its own.
    pub fn semaphores(&self) -> impl Iterator<Item = &str> {
        let own = &self.meta.sema;
        let of_members = self.members.0.as_ref().map_or(&[][..], |list| &list.sema);
        let of_members = of_members.iter().filter(|id| !own.contains(id));
        own.iter().chain(of_members).map(String::as_str)
    }

    /// The resource of this identity: it, or one of its members.
    #[must_use]
    pub fn part(&self, id: &ResourceId) -> Option<&DesiredResource> {
        if self.id == *id {
            return Some(self);
        }
        self.members.get(id).map(|member| &**member)
    }
}

/// One value that is sent over an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sending<'a> {
    /// Who sends: the beginning of the edge, or a member of it.
    pub from: &'a ResourceId,
    /// Under which send key.
    pub key: &'a Arc<str>,
    /// Who receives: the end of the edge, or a member of it.
    pub to: &'a ResourceId,
    /// The parameter that takes the value.
    pub parameter: &'a Arc<str>,
}

impl DesiredEdge {
    /// The edges of members that it stands for, sorted.
    #[must_use]
    pub fn parts(&self) -> &[Arc<DesiredEdge>] {
        self.parts.as_deref().unwrap_or_default()
    }

    /// What is sent over it, by the ends themselves and by members.
    pub fn sendings(&self) -> impl Iterator<Item = Sending<'_>> {
        let of_parts = self.parts().iter().map(|part| &**part);
        std::iter::once(self).chain(of_parts).flat_map(|edge| {
            edge.send.iter().map(|(key, parameter)| Sending {
                from: &edge.from,
                key,
                to: &edge.to,
                parameter,
            })
        })
    }

    /// Whether anything is sent over it.
    #[must_use]
    pub fn sends(&self) -> bool {
        !self.send.is_empty() || self.parts().iter().any(|part| !part.send.is_empty())
    }
}
