//! What a kind of resource is to the engine: a struct of parameters, and what it does.
//!
//! A kind is a struct with `#[derive(Resource)]`, which implements [`Described`], and an implementation of [`Resource`],
//! which is written by hand. [`KindSpec`] is both together for the table of kinds; [`Instance`] makes a
//! [`DynamicResource`] of any kind, which is all that the engine sees.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use setpoint_graph::{Invalid, KindSchema, MetaParameters, Parameters, ResourceId};
use setpoint_value::Value;
use tokio_util::sync::CancellationToken;

use crate::{Apply, Failure, Handle, Identity, LogLine, Wanted, Watch};

/// A kind, complete: its description and how an instance is made. `#[derive(Resource)]` emits one as `Self::SPEC`.
#[derive(Debug, Clone, Copy)]
pub struct KindSpec {
    /// The pure description.
    pub schema: &'static KindSchema,
    /// Makes an instance from a name and parameters; everything that does not fit is reported.
    pub decode: Decode,
    /// Whether two resources of this name are the same to the engine as far as their parameters go.
    pub same: fn(&str, &Parameters, &Parameters) -> bool,
    /// Work of the kind itself while at least one resource of it is in the graph; none for almost all kinds.
    pub background: Option<Background>,
}

impl KindSpec {
    /// The kind whose resources are `T`.
    #[must_use]
    pub const fn of<T: Resource>() -> KindSpec {
        KindSpec {
            schema: T::SCHEMA,
            decode: Instance::<T>::decode,
            same: T::same,
            background: T::BACKGROUND,
        }
    }
}

/// Makes an instance from a name and parameters.
pub type Decode = fn(&str, &Parameters) -> Result<Box<dyn DynamicResource>, Vec<Invalid>>;

/// A task of a kind, started before its first resource is added and cancelled after its last is gone. It calls
/// [`KindTask::ready`] when resources may be added. Its failure stops the program.
pub type Background = fn(KindTask) -> Pin<Box<dyn Future<Output = Result<(), Failure>> + Send>>;

/// What a kind's own task is given.
pub struct KindTask {
    /// Fires when the task is to end.
    pub cancellation: CancellationToken,
    /// Says that resources of the kind may be added.
    pub ready: Box<dyn FnOnce() + Send>,
    /// A line for the log, of the kind.
    pub log: LogLine,
}

/// How long a run may occupy a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunShape {
    /// Does its work in calls that return soon (files): runs on the pool for blocking work.
    Blocking,
    /// Waits for others (child processes, D-Bus, network): occupies no thread while it waits.
    Waiting,
}

/// What the derive writes.
pub trait Described: Sized + Send + Sync + 'static {
    /// The pure description.
    const SCHEMA: &'static KindSchema;

    /// Makes an instance.
    ///
    /// # Errors
    /// Each parameter whose value does not fit.
    fn decode(name: &str, parameters: &Parameters) -> Result<Self, Vec<Invalid>>;

    /// Sets a parameter, or with none back to its default, in a resource called `name`.
    ///
    /// # Errors
    /// When the value does not fit.
    fn set(&mut self, name: &str, parameter: &str, value: Option<&Value>) -> Result<(), Invalid>;

    /// The value that a parameter has now, without marks; none for a parameter that does not exist.
    fn get(&self, parameter: &str) -> Option<Value>;
}

/// What a kind writes by hand. All but one of the `check_apply`s has a default.
pub trait Resource: Described {
    /// Which of the two `check_apply` forms the kind has.
    const SHAPE: RunShape = RunShape::Blocking;

    /// Work of the kind itself.
    const BACKGROUND: Option<Background> = None;

    /// Refuses parameters that make no sense together. No I/O. Reports everything that is wrong.
    fn validate(&self, _meta: &MetaParameters, _invalid: &mut Vec<Invalid>) {}

    /// Whether two resources of this name are the same as far as their declared parameters go.
    fn same(_name: &str, a: &Parameters, b: &Parameters) -> bool {
        a == b
    }

    /// What it is for automatic edges. Asked before `init`.
    fn identities(&self) -> Vec<Identity> {
        Vec::new()
    }

    /// Whom it wants automatic edges with. Asked before `init`.
    fn wanted(&self) -> Vec<Wanted> {
        Vec::new()
    }

    /// Whether it takes another resource into its group. Only asked where [`Resource::members`] answers some.
    fn accepts(&self, _member: &dyn DynamicResource) -> bool {
        false
    }

    /// The members of its group, for kinds that can have any. The engine puts them in before `init`.
    fn members(&mut self) -> Option<&mut Members> {
        None
    }

    /// What to watch; asked again after each run in which a received value changed something.
    fn watches(&self) -> Vec<Watch> {
        Vec::new()
    }

    /// The parameters of the resource that undoes this one, from the state of the machine now; none if there is nothing
    /// to undo. Asked before `init`, once, and only when `Meta:reverse` is on.
    ///
    /// # Errors
    /// When it cannot be undone.
    fn reverse(&self, _handle: &Handle) -> Result<Option<Parameters>, Failure> {
        Ok(None)
    }

    /// Once, before the first run.
    ///
    /// # Errors
    /// Tried again under the retry meta parameters.
    fn init(&mut self, _handle: &Handle) -> Result<(), Failure> {
        Ok(())
    }

    /// Compares with the machine and repairs, each difference through [`Apply::drift`]. For [`RunShape::Blocking`].
    ///
    /// # Errors
    /// When it could not be brought into its state.
    fn check_apply(&mut self, _apply: &mut Apply<'_>) -> Result<(), Failure> {
        Ok(())
    }

    /// The same for [`RunShape::Waiting`].
    fn check_apply_waiting(
        &mut self,
        apply: &mut Apply<'_>,
    ) -> impl Future<Output = Result<(), Failure>> + Send {
        async move { self.check_apply(apply) }
    }

    /// After received values were put into parameters and validated, before the run.
    fn after_receive(&mut self) {}

    /// Once, after the last run, if `init` succeeded.
    fn cleanup(&mut self, _handle: &Handle) {}
}

/// A [`Resource`] of any kind, with the name it has. [`Instance`] is the one implementation.
pub trait DynamicResource: Send + Sync + Any {
    /// Its description.
    fn schema(&self) -> &'static KindSchema;
    /// Its name.
    fn name(&self) -> &str;
    /// See [`Resource::validate`].
    fn validate(&self, meta: &MetaParameters, invalid: &mut Vec<Invalid>);
    /// See [`Resource::identities`].
    fn identities(&self) -> Vec<Identity>;
    /// See [`Resource::wanted`].
    fn wanted(&self) -> Vec<Wanted>;
    /// See [`Resource::accepts`].
    fn accepts(&self, member: &dyn DynamicResource) -> bool;
    /// See [`Resource::members`].
    fn members(&mut self) -> Option<&mut Members>;
    /// See [`Resource::watches`].
    fn watches(&self) -> Vec<Watch>;
    /// See [`Resource::reverse`].
    ///
    /// # Errors
    /// As there.
    fn reverse(&self, handle: &Handle) -> Result<Option<Parameters>, Failure>;
    /// See [`Resource::init`].
    ///
    /// # Errors
    /// As there.
    fn init(&mut self, handle: &Handle) -> Result<(), Failure>;
    /// See [`Resource::SHAPE`].
    fn shape(&self) -> RunShape;
    /// See [`Resource::check_apply`].
    ///
    /// # Errors
    /// As there.
    fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure>;
    /// See [`Resource::check_apply_waiting`].
    fn check_apply_waiting<'a>(
        &'a mut self,
        apply: &'a mut Apply<'_>,
    ) -> Pin<Box<dyn Future<Output = Result<(), Failure>> + Send + 'a>>;
    /// Sets a parameter, or unsets it (back to what the program says is the engine's matter). A sensitive value makes
    /// the parameter sensitive.
    ///
    /// # Errors
    /// When the value does not fit the parameter.
    fn set_parameter(&mut self, parameter: &str, value: Option<&Value>) -> Result<(), Invalid>;
    /// Whether a parameter holds a sensitive value.
    fn is_sensitive(&self, parameter: &str) -> bool;
    /// See [`Resource::after_receive`].
    fn after_receive(&mut self);
    /// See [`Resource::cleanup`].
    fn cleanup(&mut self, handle: &Handle);
}

/// A resource of kind `T` with what the engine needs beside it.
#[derive(Debug)]
pub struct Instance<T> {
    resource: T,
    name: Arc<str>,
    sensitive: ParameterSet,
}

impl<T: Resource> Instance<T> {
    /// Makes one.
    ///
    /// # Errors
    /// Each parameter whose value does not fit.
    pub fn new(name: &str, parameters: &Parameters) -> Result<Instance<T>, Vec<Invalid>> {
        let mut sensitive = ParameterSet::default();
        for (index, parameter) in T::SCHEMA.parameters.iter().enumerate() {
            if parameters.get(parameter.name).is_some_and(Value::is_sensitive) {
                sensitive.insert(index);
            }
        }
        Ok(Instance {
            resource: T::decode(name, parameters)?,
            name: name.into(),
            sensitive,
        })
    }

    fn decode(name: &str, parameters: &Parameters) -> Result<Box<dyn DynamicResource>, Vec<Invalid>> {
        Ok(Box::new(Instance::<T>::new(name, parameters)?))
    }

    /// The kind's own struct.
    #[must_use]
    pub fn resource(&self) -> &T {
        &self.resource
    }

    /// The kind's own struct.
    #[must_use]
    pub fn resource_mut(&mut self) -> &mut T {
        &mut self.resource
    }
}

impl<T: Resource> DynamicResource for Instance<T> {
    fn schema(&self) -> &'static KindSchema {
        T::SCHEMA
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn validate(&self, meta: &MetaParameters, invalid: &mut Vec<Invalid>) {
        self.resource.validate(meta, invalid);
    }

    fn identities(&self) -> Vec<Identity> {
        self.resource.identities()
    }

    fn wanted(&self) -> Vec<Wanted> {
        self.resource.wanted()
    }

    fn accepts(&self, member: &dyn DynamicResource) -> bool {
        self.resource.accepts(member)
    }

    fn members(&mut self) -> Option<&mut Members> {
        self.resource.members()
    }

    fn watches(&self) -> Vec<Watch> {
        self.resource.watches()
    }

    fn reverse(&self, handle: &Handle) -> Result<Option<Parameters>, Failure> {
        self.resource.reverse(handle)
    }

    fn init(&mut self, handle: &Handle) -> Result<(), Failure> {
        self.resource.init(handle)
    }

    fn shape(&self) -> RunShape {
        T::SHAPE
    }

    fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        apply.describe(T::SCHEMA, self.sensitive);
        self.resource.check_apply(apply)
    }

    fn check_apply_waiting<'a>(
        &'a mut self,
        apply: &'a mut Apply<'_>,
    ) -> Pin<Box<dyn Future<Output = Result<(), Failure>> + Send + 'a>> {
        apply.describe(T::SCHEMA, self.sensitive);
        Box::pin(self.resource.check_apply_waiting(apply))
    }

    fn set_parameter(&mut self, parameter: &str, value: Option<&Value>) -> Result<(), Invalid> {
        self.resource.set(&self.name, parameter, value)?;
        if let Some(index) = T::SCHEMA.parameters.iter().position(|p| p.name == parameter) {
            if value.is_some_and(Value::is_sensitive) {
                self.sensitive.insert(index);
            } else {
                self.sensitive.remove(index);
            }
        }
        Ok(())
    }

    fn is_sensitive(&self, parameter: &str) -> bool {
        let index = T::SCHEMA.parameters.iter().position(|p| p.name == parameter);
        index.is_some_and(|index| self.sensitive.contains(index))
    }

    fn after_receive(&mut self) {
        self.resource.after_receive();
    }

    fn cleanup(&mut self, handle: &Handle) {
        self.resource.cleanup(handle);
    }
}

impl dyn DynamicResource {
    /// The kind's own struct, if it is of kind `T`.
    #[must_use]
    pub fn downcast_ref<T: Resource>(&self) -> Option<&T> {
        (self as &dyn Any)
            .downcast_ref::<Instance<T>>()
            .map(Instance::resource)
    }

    /// The kind's own struct, if it is of kind `T`.
    #[must_use]
    pub fn downcast_mut<T: Resource>(&mut self) -> Option<&mut T> {
        (self as &mut dyn Any)
            .downcast_mut::<Instance<T>>()
            .map(Instance::resource_mut)
    }
}

/// The resources that were grouped into another one, sorted by identity.
#[derive(Default)]
pub struct Members(Vec<(ResourceId, Box<dyn DynamicResource>)>);

impl Members {
    /// Takes one in.
    pub fn insert(&mut self, id: ResourceId, member: Box<dyn DynamicResource>) {
        match self.0.binary_search_by(|(other, _)| other.cmp(&id)) {
            Ok(at) => self.0[at].1 = member,
            Err(at) => self.0.insert(at, (id, member)),
        }
    }

    /// One by identity, to put received values into.
    pub fn get_mut(&mut self, id: &ResourceId) -> Option<&mut dyn DynamicResource> {
        let at = self.0.binary_search_by(|(other, _)| other.cmp(id)).ok()?;
        Some(&mut *self.0[at].1)
    }

    /// All.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&ResourceId, &mut dyn DynamicResource)> {
        self.0.iter_mut().map(|(id, member)| (&*id, &mut **member))
    }

    /// All of kind `T`.
    pub fn of<T: Resource>(&self) -> impl Iterator<Item = (&ResourceId, &T)> {
        self.0
            .iter()
            .filter_map(|(id, member)| Some((id, member.downcast_ref::<T>()?)))
    }

    /// All of kind `T`.
    pub fn of_mut<T: Resource>(&mut self) -> impl Iterator<Item = (&ResourceId, &mut T)> {
        self.0
            .iter_mut()
            .filter_map(|(id, member)| Some((&*id, member.downcast_mut::<T>()?)))
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl std::fmt::Debug for Members {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set()
            .entries(self.0.iter().map(|(id, _)| id.to_string()))
            .finish()
    }
}

/// [`KindSchema::check`] of kind `T`: decodes and validates. What is not known yet is not judged.
#[must_use]
pub fn check<T: Resource>(name: &str, parameters: &Parameters, meta: &MetaParameters) -> Vec<Invalid> {
    if parameters.iter().any(|(_, value)| !value.is_wholly_known()) {
        return Vec::new();
    }
    match T::decode(name, parameters) {
        Ok(resource) => {
            let mut invalid = Vec::new();
            resource.validate(meta, &mut invalid);
            invalid
        }
        Err(invalid) => invalid,
    }
}

/// Some parameters of a kind, by their place in its schema. No kind has more than 63; from there on places are one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ParameterSet(u64);

impl ParameterSet {
    fn bit(index: usize) -> u64 {
        1 << index.min(63)
    }

    fn insert(&mut self, index: usize) {
        self.0 |= ParameterSet::bit(index);
    }

    fn remove(&mut self, index: usize) {
        // The shared last place is never cleared: better redacted once too often.
        if index < 63 {
            self.0 &= !ParameterSet::bit(index);
        }
    }

    pub(crate) fn contains(self, index: usize) -> bool {
        self.0 & ParameterSet::bit(index) != 0
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }
}
