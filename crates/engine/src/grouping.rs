//! Which resources can be applied as one: what a kind declares, and the members that it is then given.
//!
//! A resource *takes* others in under some keys, and *joins* others under some keys; where two keys are equal, the one can be a
//! member of the other. Keys are data, and opaque to the engine, so that whom a resource fits is found without asking each of them.

use std::borrow::Cow;
use std::fmt;

use setpoint_graph::{Meta, ResourceId};
use smallvec::SmallVec;

use crate::{Apply, Failure, Handle, Instance, Kind, MemberApply, Resource};

/// Under what resources find each other: a sort, which kinds agree on, and which one of the sort.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GroupKey {
    sort: &'static str,
    key: Cow<'static, str>,
}

/// With whom a resource can be applied as one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grouping {
    pub(crate) takes: SmallVec<[GroupKey; 1]>,
    pub(crate) joins: SmallVec<[GroupKey; 1]>,
    /// What is to be said if nobody takes it in.
    pub(crate) alone: Option<&'static str>,
}

impl Grouping {
    /// With nobody.
    #[must_use]
    pub fn none() -> Grouping {
        Grouping::default()
    }

    /// With all that say the same: any of them takes in the others.
    #[must_use]
    pub fn with_equals(sort: &'static str, key: impl Into<Cow<'static, str>>) -> Grouping {
        let key = key.into();
        Grouping::none().taking(sort, key.clone()).joining(sort, key)
    }

    /// Takes in those that join under this key.
    #[must_use]
    pub fn taking(mut self, sort: &'static str, key: impl Into<Cow<'static, str>>) -> Grouping {
        let key = key.into();
        self.takes.push(GroupKey { sort, key });
        self
    }

    /// Goes into those that take in under this key.
    #[must_use]
    pub fn joining(mut self, sort: &'static str, key: impl Into<Cow<'static, str>>) -> Grouping {
        let key = key.into();
        self.joins.push(GroupKey { sort, key });
        self
    }

    /// A resource that nobody takes in does nothing; the user is warned with this, which goes on after its name: `serves
    /// nothing, because …`.
    #[must_use]
    pub fn useless_alone(mut self, why: &'static str) -> Grouping {
        self.alone = Some(why);
        self
    }

    /// Whether it is grouped with nobody, whatever the others are.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.takes.is_empty() && self.joins.is_empty()
    }
}

/// A resource that is applied as part of another one.
pub struct Member {
    id: ResourceId,
    instance: Instance,
    meta: Meta,
    handle: Handle,
    initialised: bool,
}

impl Member {
    /// One that was not initialised yet, with what it is given for its life.
    #[must_use]
    pub fn new(instance: Instance, meta: Meta, handle: Handle) -> Member {
        Member {
            id: handle.id().clone(),
            instance,
            meta,
            handle,
            initialised: false,
        }
    }

    /// Kind and name.
    #[must_use]
    pub fn id(&self) -> &ResourceId {
        &self.id
    }

    /// Its name, as the program gives it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.id.name
    }

    /// The kind's own struct, if it is of kind `T`.
    #[must_use]
    pub fn get<T: Kind>(&self) -> Option<&T> {
        self.instance.resource().downcast_ref()
    }

    /// The kind's own struct, if it is of kind `T`.
    pub fn get_mut<T: Kind>(&mut self) -> Option<&mut T> {
        self.instance.resource_mut().downcast_mut()
    }

    /// The resource, of whatever kind.
    #[must_use]
    pub fn resource(&self) -> &dyn Resource {
        self.instance.resource()
    }

    /// The resource with what the engine remembers of it.
    #[must_use]
    pub fn instance(&self) -> &Instance {
        &self.instance
    }

    /// The same, to put received values into.
    pub fn instance_mut(&mut self) -> &mut Instance {
        &mut self.instance
    }

    /// What it is given for its life: its own directory among others.
    #[must_use]
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Its own meta parameters. But for `noop`, those of the resource that it is part of hold.
    #[must_use]
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Whether it may not be repaired although the resource that it is part of may.
    #[must_use]
    pub fn is_noop(&self) -> bool {
        self.meta.noop
    }

    /// Its own `check_apply`, as a part of the run of the resource that it is part of: what it finds, sends and says is told of it.
    ///
    /// # Errors
    /// When it could not be brought into its state.
    pub async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let Member {
            id,
            instance,
            meta,
            handle,
            ..
        } = self;
        let mut part = apply.part(id, handle, meta.noop);
        instance.check_apply(&mut part).await
    }

    /// Initialises it, after its own members, if that was not done yet.
    pub(crate) fn init(&mut self) -> Result<(), Failure> {
        if let Some(members) = self.instance.resource_mut().members() {
            members.init()?;
        }
        if !self.initialised {
            let initialised = self.instance.resource_mut().init(&self.handle);
            initialised
                .map_err(|failure| failure.of_member(&self.id))
                .map(|()| self.initialised = true)?;
        }
        Ok(())
    }

    /// Cleans up, before its own members, if it was initialised.
    pub(crate) fn cleanup(&mut self) {
        if std::mem::take(&mut self.initialised) {
            self.instance.resource_mut().cleanup(&self.handle);
        }
        if let Some(members) = self.instance.resource_mut().members() {
            members.cleanup();
        }
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.id)
    }
}

impl Apply<'_> {
    /// The part of the run that is about a member: what is found, sent and said through it is told of that member, and repairs are
    /// allowed only if the member may be repaired too.
    #[must_use = "it is for what is said of the member"]
    pub fn member<'s>(&'s mut self, member: &'s Member) -> MemberApply<'s> {
        let mut part = self.part(member.id(), member.handle(), member.is_noop());
        let (schema, sensitivity, secrets) = member.instance().confidence();
        part.describe(schema, sensitivity, secrets);
        part
    }
}

/// The resources that are applied as part of another one, sorted by identity.
#[derive(Debug, Default)]
pub struct Members(Vec<Member>);

impl Members {
    /// Takes one in.
    pub fn insert(&mut self, member: Member) {
        match self.place(&member.id) {
            Ok(at) => self.0[at] = member,
            Err(at) => self.0.insert(at, member),
        }
    }

    /// One by identity.
    #[must_use]
    pub fn get(&self, id: &ResourceId) -> Option<&Member> {
        Some(&self.0[self.place(id).ok()?])
    }

    /// One by identity; also one that is a member of a member.
    pub fn get_mut(&mut self, id: &ResourceId) -> Option<&mut Member> {
        if let Ok(at) = self.place(id) {
            return Some(&mut self.0[at]);
        }
        self.0
            .iter_mut()
            .find_map(|member| member.instance.resource_mut().members()?.get_mut(id))
    }

    fn place(&self, id: &ResourceId) -> Result<usize, usize> {
        self.0.binary_search_by(|member| member.id.cmp(id))
    }

    /// All members, sorted by identity.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Member> {
        self.0.iter()
    }

    /// All members, sorted by identity.
    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = &mut Member> {
        self.0.iter_mut()
    }

    /// All of kind `T`.
    pub fn of<T: Kind>(&self) -> impl Iterator<Item = (&Member, &T)> {
        self.0.iter().filter_map(|member| Some((member, member.get()?)))
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The `check_apply` of each, one after the other. What fails keeps the others from nothing; the run fails in the end, and says
    /// which members are to blame.
    pub async fn check_apply(&mut self, apply: &mut Apply<'_>) {
        for member in &mut self.0 {
            if let Err(failure) = member.check_apply(apply).await {
                apply.member_failed(&member.id, failure);
            }
        }
    }

    /// Initialises all that were not yet.
    pub(crate) fn init(&mut self) -> Result<(), Failure> {
        self.0.iter_mut().try_for_each(Member::init)
    }

    /// Cleans up all that were initialised.
    pub(crate) fn cleanup(&mut self) {
        for member in &mut self.0 {
            member.cleanup();
        }
    }
}
