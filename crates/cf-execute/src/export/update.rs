//! Resources after some members of instances have other values, without a whole export.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use setpoint_cf_functions::context::Read;
use setpoint_cf_names::datum::{DeferredSource, InstanceId};
use setpoint_cf_names::hir::Model;
use setpoint_cf_names::ids::EntityId;
use setpoint_diagnostics::{Diagnostics, Span};

use super::bindings::{Bindings, Executed};
use super::resource::{Built, build};
use super::{Exported, Resource, State, order};

impl Exported {
    /// Takes other values of some members in. Answers the numbers of the resources that are others. None: more than single resources may be
    /// others, and all of this is of no use.
    #[must_use]
    pub fn update(
        &mut self,
        model: &Model,
        executed: &dyn Executed,
        bindings: &Bindings,
        changed: &BTreeSet<(InstanceId, u32)>,
    ) -> Option<BTreeSet<usize>> {
        if changed.iter().any(|member| self.shared.contains(member)) {
            return None;
        }
        let affected = changed.iter().filter_map(|member| self.readers.get(member));
        let affected: BTreeSet<InstanceId> = affected.flatten().copied().collect();
        let watched = Watched::of(executed);
        let mut diagnostics = Diagnostics::new();
        let mut others = BTreeSet::new();
        let mut is_known_otherwise = false;
        for instance in affected {
            let built = build(model, &watched, bindings, instance, &mut diagnostics);
            for member in watched.take_read() {
                let readers = self.readers.entry(member).or_default();
                if !readers.contains(&instance) {
                    readers.push(instance);
                }
            }
            let found = self
                .resources
                .binary_search_by_key(&instance, |resource| resource.instance);
            match (built, found) {
                (Built::Resource(new), Ok(at)) => {
                    let old = &mut self.resources[at];
                    is_known_otherwise |= (old.state == State::Undefined) != is_undefined(&new);
                    *old = replaced(old, *new)?;
                    others.insert(at);
                }
                (Built::LeftOut | Built::Plain, Err(_)) => {}
                _ => return None,
            }
        }
        if !diagnostics.is_empty() {
            return None;
        }
        if is_known_otherwise {
            let before: Vec<State> = self.resources.iter().map(|resource| resource.state).collect();
            order::hold(self);
            let both = self.resources.iter().zip(before).enumerate();
            let differing = both.filter(|(_, (resource, before))| resource.state != *before);
            others.extend(differing.map(|(at, _)| at));
        }
        Some(others)
    }
}

/// A resource in the place of what it was before; none if others have to do with what is different.
fn replaced(old: &Resource, new: Resource) -> Option<Resource> {
    let is_alone = old.identity == new.identity
        && old.sends_events == new.sends_events
        && old.receives_events == new.receives_events
        && old.is_uncertain == new.is_uncertain
        && !takes_from_others(old)
        && !takes_from_others(&new);
    is_alone.then(|| Resource {
        requires: old.requires.clone(),
        set: old.set.clone(),
        state: old.state,
        ..new
    })
}

fn takes_from_others(resource: &Resource) -> bool {
    let deferred = resource
        .parameters
        .iter()
        .flat_map(|parameter| &parameter.deferred);
    let mut sources = deferred.map(|(_, deferred)| &deferred.source);
    sources.any(|source| !matches!(source, DeferredSource::Int(_) | DeferredSource::Environment(_)))
}

fn is_undefined(resource: &Resource) -> bool {
    resource.is_uncertain || resource.unknown().next().is_some() || !resource.built.unknown.is_empty()
}

/// An execution of which it is noted which members are read that may change.
pub(super) struct Watched<'a> {
    executed: &'a dyn Executed,
    read: RefCell<Vec<(InstanceId, u32)>>,
}

impl<'a> Watched<'a> {
    pub(super) fn of(executed: &'a dyn Executed) -> Watched<'a> {
        Watched {
            executed,
            read: RefCell::default(),
        }
    }

    /// What was read since this was called the last time, each member once.
    pub(super) fn take_read(&self) -> Vec<(InstanceId, u32)> {
        let mut read = std::mem::take(&mut *self.read.borrow_mut());
        read.sort_unstable();
        read.dedup();
        read
    }
}

impl Executed for Watched<'_> {
    fn count(&self) -> u32 {
        self.executed.count()
    }

    fn entity(&self, instance: InstanceId) -> EntityId {
        self.executed.entity(instance)
    }

    fn span(&self, instance: InstanceId) -> Span {
        self.executed.span(instance)
    }

    fn member(&self, instance: InstanceId, slot: u32) -> Read {
        if self.executed.may_change(instance, slot) {
            self.read.borrow_mut().push((instance, slot));
        }
        self.executed.member(instance, slot)
    }

    fn file(&self, marker: &str) -> Option<Arc<[u8]>> {
        self.executed.file(marker)
    }

    fn place(&self, instance: InstanceId, slot: u32) -> Option<Span> {
        self.executed.place(instance, slot)
    }

    fn may_change(&self, instance: InstanceId, slot: u32) -> bool {
        self.executed.may_change(instance, slot)
    }
}
