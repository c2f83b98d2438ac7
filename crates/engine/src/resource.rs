//! What a kind of resource is to the engine: a struct of parameters, and what it does.
//!
//! A kind is a struct with `#[derive(Resource)]`, which implements [`Kind`] and [`ParameterAccess`], and an
//! implementation of [`Resource`], which is written by hand. [`KindSpec`] is all of that for the table of kinds;
//! [`Instance`] is one resource of any kind with what the engine remembers beside it.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use rustc_hash::FxHashMap;
use setpoint_graph::{Invalid, KindSchema, MetaParameters, Parameters};
use setpoint_value::Value;
use tokio_util::sync::CancellationToken;

use crate::foresight::Brings;
use crate::secrets::Secrets;
use crate::sensitivity::Sensitivity;
use crate::{Apply, Claim, Failure, Grouping, Handle, Identity, LogLine, Members, Relations, Wanted, Watch};

/// A kind, complete: its description and how an instance is made. `#[derive(Resource)]` emits one as `Self::SPEC`.
#[derive(Debug, Clone, Copy)]
pub struct KindSpec {
    /// The pure description.
    pub schema: &'static KindSchema,
    /// Makes an instance from a name and parameters; everything that does not fit is reported.
    pub decode: Decode,
    /// Whether two resources of this name are the same to the engine as far as their parameters go.
    pub same: fn(&str, &Parameters, &Parameters) -> bool,
    /// Where its runs are made.
    pub shape: RunShape,
    /// Whether its resources are asked what only the machine can tell: see [`Resource::inquire`].
    pub inquires: bool,
    /// Whether the engine looks again after a repair: see [`KindSpec::reading_back`].
    pub reads_back: bool,
    /// Work of the kind itself while at least one resource of it is in the graph; none for almost all kinds.
    pub background: Option<Background>,
    /// The things that a run can create besides the resource.
    pub brings: Brings,
    /// Parameters on which nothing else depends. While one has no value, a plan still judges the rest of the resource.
    pub independent: &'static [&'static str],
    /// How what it does is told; none for a kind whose drift is told field by field.
    pub action: Option<ActionWords>,
}

/// Kinds by name.
pub(crate) type Kinds = FxHashMap<&'static str, KindSpec>;

/// How the drift of a kind is told whose repair is an action: `ran COMMAND` instead of `repaired run`. What shall be, which
/// is the action's object, follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActionWords {
    /// When it was done: `ran`.
    pub done: &'static str,
    /// When it was not allowed, after *would*: `run`.
    pub would: &'static str,
}

impl KindSpec {
    /// The kind whose resources are `T`.
    #[must_use]
    pub const fn of<T: Kind>() -> KindSpec {
        KindSpec {
            schema: T::SCHEMA,
            decode: decode::<T>,
            same: T::same,
            shape: RunShape::Blocking,
            inquires: false,
            reads_back: false,
            background: None,
            brings: Brings::Itself,
            independent: &[],
            action: None,
        }
    }

    /// Its runs wait for others: see [`RunShape::Async`].
    #[must_use]
    pub const fn asynchronous(mut self) -> KindSpec {
        self.shape = RunShape::Async;
        self
    }

    /// After a repair the engine looks again, without repairs: a tool can report success and change nothing.
    #[must_use]
    pub const fn reading_back(mut self) -> KindSpec {
        self.reads_back = true;
        self
    }

    /// Its resources are asked what only the machine can tell: see [`Resource::inquire`].
    #[must_use]
    pub const fn inquiring(mut self) -> KindSpec {
        self.inquires = true;
        self
    }

    /// What it does is told in these words: `ran`, and after *would*, `run`.
    #[must_use]
    pub const fn with_action(mut self, done: &'static str, would: &'static str) -> KindSpec {
        self.action = Some(ActionWords { done, would });
        self
    }

    /// The things that a run can create besides the resource.
    #[must_use]
    pub const fn bringing(mut self, brings: Brings) -> KindSpec {
        self.brings = brings;
        self
    }

    /// While one of these parameters has no value, a plan still judges the rest of the resource.
    #[must_use]
    pub const fn with_independent(mut self, parameters: &'static [&'static str]) -> KindSpec {
        self.independent = parameters;
        self
    }

    /// The kind has work of its own.
    #[must_use]
    pub const fn with_background(mut self, background: Background) -> KindSpec {
        self.background = Some(background);
        self
    }
}

/// Makes a resource from a name and parameters.
pub type Decode = fn(&str, &Parameters) -> Result<Box<dyn Resource>, Vec<Invalid>>;

fn decode<T: Kind>(name: &str, parameters: &Parameters) -> Result<Box<dyn Resource>, Vec<Invalid>> {
    let mut invalid = Vec::new();
    let decoded = T::decode(name, parameters, &mut invalid);
    if invalid.is_empty() {
        Ok(Box::new(decoded))
    } else {
        Err(invalid)
    }
}

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

/// Where the runs of a kind are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunShape {
    /// Work in calls that return soon (files): on the pool for blocking work.
    Blocking,
    /// Waits for others (child processes, D-Bus, network): a task, which occupies no thread while it waits and must not
    /// make calls that block.
    Async,
}

/// What is known of a kind without a resource of it. Written by the derive.
pub trait Kind: Resource + Sized {
    /// The pure description.
    const SCHEMA: &'static KindSchema;

    /// Makes a resource. Each parameter whose value does not fit is told, and then as if it were not set, so that what else is
    /// wrong can be told too.
    fn decode(name: &str, parameters: &Parameters, invalid: &mut Vec<Invalid>) -> Self;
}

/// The parameters of a resource by name. Written by the derive.
pub trait ParameterAccess {
    /// The description of its kind.
    fn schema(&self) -> &'static KindSchema;

    /// Sets a parameter, or with none back to its default, in a resource called `name`.
    ///
    /// # Errors
    /// When the value does not fit.
    fn set(&mut self, name: &str, parameter: &str, value: Option<&Value>) -> Result<(), Invalid>;

    /// The value that a parameter has now, without marks; none for a parameter that does not exist.
    fn get(&self, parameter: &str) -> Option<Value>;
}

/// What a kind writes by hand: [`Resource::check_apply`], and what else differs from the defaults.
#[async_trait]
pub trait Resource: ParameterAccess + Any + Send + Sync {
    /// Compares with the machine and repairs, each difference through [`Apply::drift`]. A kind that awaits in here says
    /// `asynchronous` in its `#[resource(…)]`, and makes no calls that block.
    ///
    /// # Errors
    /// When it could not be brought into its state.
    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure>;

    /// Refuses parameters that make no sense together. No I/O. Reports everything that is wrong; doubts are those of
    /// [`Resource::doubt`].
    fn validate(&self, _meta: &MetaParameters, _invalid: &mut Vec<Invalid>) {}

    /// Doubts parameters as the program writes them. Some may not be known yet, but whether they are sensitive is. No I/O.
    fn doubt(_name: &str, _parameters: &Parameters, _invalid: &mut Vec<Invalid>)
    where
        Self: Sized,
    {
    }

    /// Whether two resources of this name are the same as far as their declared parameters go.
    fn same(_name: &str, a: &Parameters, b: &Parameters) -> bool
    where
        Self: Sized,
    {
        a == b
    }

    /// What it is for automatic edges. Asked before `init`.
    fn identities(&self) -> Vec<Identity> {
        Vec::new()
    }

    /// The places that this resource decides. No other resource of the program may decide otherwise. Asked before `init`.
    fn claims(&self) -> Vec<Claim> {
        Vec::new()
    }

    /// The values that this resource decides of the thing that it manages, by name. Asked before `init`, and only if another resource
    /// manages the same thing. Two resources that decide different values would undo each other.
    fn decides(&self) -> Vec<(&'static str, Vec<u8>)> {
        Vec::new()
    }

    /// Whom it wants automatic edges with. Asked before `init`.
    fn wanted(&self) -> Vec<Wanted> {
        Vec::new()
    }

    /// What it is and whom it wants automatic edges with, as far as only the machine can tell it (the files of a package). Asked of
    /// kinds that say `inquires` in their `#[resource(…)]`, of a resource of its own made for this, before `init`, and again only when
    /// its parameters differ. It may take a minute; it must not make calls that block. Without an answer there are no such edges, which
    /// is told.
    ///
    /// # Errors
    /// When the machine does not tell.
    async fn inquire(&self, _handle: &Handle) -> Result<Relations, Failure> {
        Ok(Relations::default())
    }

    /// With whom it can be applied as one. Asked before `init`.
    fn grouping(&self) -> Grouping {
        Grouping::none()
    }

    /// Where its members are, for kinds that take in others. The engine puts them in and initialises them before its own `init`, and
    /// cleans them up after its own `cleanup`. What they watch is watched only if [`Resource::watches`] says so, and they are looked at by
    /// its `check_apply` or not at all.
    fn members(&mut self) -> Option<&mut Members> {
        None
    }

    /// What to watch; asked again after each run in which a received value changed something, or that says so ([`Apply::watch_anew`]).
    fn watches(&self) -> Vec<Watch> {
        Vec::new()
    }

    /// The parameters of the resource that undoes this one, from the state of the machine now; none if there is nothing
    /// to undo. Asked before `init`, and only when `Meta:reverse` is on and nothing undoes it yet. Parameters that `received` names
    /// will be set to values that are not known yet.
    ///
    /// # Errors
    /// When it cannot be undone.
    fn reverse(&self, _handle: &Handle, _received: &[&str]) -> Result<Option<Parameters>, Failure> {
        Ok(None)
    }

    /// Once, before the first run.
    ///
    /// # Errors
    /// Tried again under the retry meta parameters.
    fn init(&mut self, _handle: &Handle) -> Result<(), Failure> {
        Ok(())
    }

    /// After received values were put into parameters and validated, before the run.
    fn after_receive(&mut self) {}

    /// Once, after the last run, if `init` succeeded.
    fn cleanup(&mut self, _handle: &Handle) {}
}

impl dyn Resource {
    /// The kind's own struct, if it is of kind `T`.
    #[must_use]
    pub fn downcast_ref<T: Kind>(&self) -> Option<&T> {
        (self as &dyn Any).downcast_ref()
    }

    /// The kind's own struct, if it is of kind `T`.
    #[must_use]
    pub fn downcast_mut<T: Kind>(&mut self) -> Option<&mut T> {
        (self as &mut dyn Any).downcast_mut()
    }
}

/// One resource of any kind, and what the engine remembers of it: its name, and which parameters are sensitive.
pub struct Instance {
    resource: Box<dyn Resource>,
    name: Arc<str>,
    sensitivity: Sensitivity,
}

impl Instance {
    /// Makes one.
    ///
    /// # Errors
    /// Each parameter whose value does not fit. No sensitive value is in what is said.
    pub fn new(
        spec: &KindSpec,
        name: impl Into<Arc<str>>,
        parameters: &Parameters,
    ) -> Result<Instance, Vec<Invalid>> {
        let name = name.into();
        let mut sensitivity = Sensitivity::default();
        for (index, parameter) in spec.schema.parameters.iter().enumerate() {
            if parameters.get(parameter.name).is_some_and(Value::is_sensitive) {
                sensitivity.insert(index);
            }
        }
        match (spec.decode)(&name, parameters) {
            Ok(resource) => Ok(Instance {
                resource,
                name,
                sensitivity,
            }),
            Err(mut invalid) => {
                Secrets::of_parameters(parameters).hide_in_all(&mut invalid);
                Err(invalid)
            }
        }
    }

    /// The kind's own struct.
    #[must_use]
    pub fn resource(&self) -> &dyn Resource {
        &*self.resource
    }

    /// The kind's own struct.
    #[must_use]
    pub fn resource_mut(&mut self) -> &mut dyn Resource {
        &mut *self.resource
    }

    /// The name of the resource, as the program gives it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// See [`Resource::validate`]. No sensitive value is in what is said.
    pub fn validate(&self, meta: &MetaParameters, invalid: &mut Vec<Invalid>) {
        let known = invalid.len();
        self.resource.validate(meta, invalid);
        if !self.sensitivity.now.is_empty() {
            self.secrets().hide_in_all(&mut invalid[known..]);
        }
    }

    /// A run: see [`Resource::check_apply`]. What it says and sends is treated as its sensitive parameters demand.
    ///
    /// # Errors
    /// When it could not be brought into its state.
    pub async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let (schema, sensitivity, mut secrets) = self.confidence();
        if let Some(members) = self.resource.members() {
            // What it says in its own words may be of any of them.
            for member in members.iter().filter(|member| member.instance().has_sensitive()) {
                secrets.add(&member.instance().secrets());
            }
        }
        apply.describe(schema, sensitivity, secrets);
        let result = self.resource.check_apply(apply).await;
        result.map_err(|failure| apply.secrets().hide_in_failure(failure))
    }

    /// Sets a parameter, or unsets it (back to what the program says is the engine's matter). A sensitive value makes
    /// the parameter sensitive.
    ///
    /// # Errors
    /// When the value does not fit the parameter.
    pub fn set_parameter(&mut self, parameter: &str, value: Option<&Value>) -> Result<(), Invalid> {
        if let Err(mut invalid) = self.resource.set(&self.name, parameter, value) {
            let sensitive = value.filter(|value| value.is_sensitive());
            let name = self
                .place_of(parameter)
                .map(|index| self.resource.schema().parameters[index].name);
            Secrets::of(name.zip(sensitive)).hide_in(&mut invalid);
            return Err(invalid);
        }
        if let Some(index) = self.place_of(parameter) {
            if value.is_some_and(Value::is_sensitive) {
                self.sensitivity.insert(index);
            } else {
                self.sensitivity.now.remove(index);
            }
        }
        Ok(())
    }

    /// Whether any parameter holds a sensitive value.
    pub(crate) fn has_sensitive(&self) -> bool {
        !self.sensitivity.now.is_empty()
    }

    /// Whether a parameter holds a sensitive value.
    #[must_use]
    pub fn is_sensitive(&self, parameter: &str) -> bool {
        self.place_of(parameter)
            .is_some_and(|index| self.sensitivity.now.contains(index))
    }

    fn place_of(&self, parameter: &str) -> Option<usize> {
        let mut parameters = self.resource.schema().parameters.iter();
        parameters.position(|p| p.name == parameter)
    }

    /// A failure of it with no sensitive value in it.
    pub(crate) fn hide(&self, failure: Failure) -> Failure {
        self.secrets().hide_in_failure(failure)
    }

    /// What a run of it must not say.
    pub(crate) fn confidence(&self) -> (&'static KindSchema, Sensitivity, Secrets) {
        (self.resource.schema(), self.sensitivity, self.secrets())
    }

    /// The texts of the sensitive parameters.
    fn secrets(&self) -> Secrets {
        if self.sensitivity.now.is_empty() {
            return Secrets::default();
        }
        let parameters = self.resource.schema().parameters.iter().enumerate();
        let sensitive = parameters.filter(|(index, _)| self.sensitivity.now.contains(*index));
        let values: Vec<(&'static str, Value)> = sensitive
            .filter_map(|(_, parameter)| Some((parameter.name, self.resource.get(parameter.name)?)))
            .collect();
        Secrets::of(values.iter().map(|(name, value)| (*name, value)))
    }
}

impl std::fmt::Debug for Instance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}[{}]", self.resource.schema().kind, self.name)
    }
}

/// [`KindSchema::check`] of kind `T`: doubts, decodes and validates. What is not known yet is not decoded.
#[must_use]
pub fn check<T: Kind>(name: &str, parameters: &Parameters, meta: &MetaParameters) -> Vec<Invalid> {
    let mut invalid = Vec::new();
    T::doubt(name, parameters, &mut invalid);
    if parameters.iter().all(|(_, value)| value.is_wholly_known()) {
        let mut refused = Vec::new();
        let decoded = T::decode(name, parameters, &mut refused);
        let mut more = Vec::new();
        decoded.validate(meta, &mut more);
        // What stands in the place of a refused value is nobody's mistake.
        more.retain(|found| refused.iter().all(|refused| refused.parameter != found.parameter));
        invalid.extend(refused.into_iter().chain(more));
    }
    if !invalid.is_empty() {
        Secrets::of_parameters(parameters).hide_in_all(&mut invalid);
    }
    invalid
}

/// [`KindSchema::has_doubts`] of kind `T`.
#[must_use]
pub fn has_doubts<T: Kind>(name: &str, parameters: &Parameters) -> bool {
    let mut doubts = Vec::new();
    T::doubt(name, parameters, &mut doubts);
    !doubts.is_empty()
}
