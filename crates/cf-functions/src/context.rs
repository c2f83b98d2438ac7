//! How functions and templates see the running model, and how a call ends.
//!
//! Execution implements [`Context`], one for each call: it knows the scope and the namespace of the call. What a call reads may have no
//! value yet; then it ends with [`Stop::Unset`], and whoever executes repeats it when the cell has one.

use std::any::{Any, TypeId};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use setpoint_cf_names::datum::{Datum, InstanceId, Instances, Unknowns};
use setpoint_cf_names::hir::{ExpressionKind, Function, FunctionImplementation, Model};
use setpoint_cf_names::ids::EntityId;
use setpoint_diagnostics::{Diagnostic, FileId, Loader, Span};
use setpoint_graph::KindSchema;
use setpoint_value::{CallError, FunctionRef, Value};

/// A variable, attribute or relation end that has no value yet: the number that execution gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UnsetCell(pub u64);

/// What is found under a name.
#[derive(Debug, Clone)]
pub enum Read {
    /// A value; an unknown is one too.
    Value(Datum),
    /// Nothing yet.
    Unset(UnsetCell),
    /// An optional relation that was left without a value.
    Absent,
    /// Nothing has this name.
    NotFound,
}

/// Why there is no instance of a record.
#[derive(Debug)]
pub enum RecordError {
    /// The dataclass does not fit the entity: a reason that continues `its result`.
    Refused(String),
    /// It could not be made.
    Stopped(Stop),
}

impl RecordError {
    /// The model has no entity of this name that is a record.
    #[must_use]
    pub fn refused(entity: &str) -> RecordError {
        RecordError::Refused(format!(
            "holds a dataclass, and the model has no entity `{entity}` below `std::Dataclass`"
        ))
    }
}

/// The running model as one call sees it.
///
/// Everything that is read of the world outside goes through it, so that it can be recorded.
pub trait Context: Instances {
    /// The resolved model.
    fn model(&self) -> &Model;

    /// Where numbers of unknowns come from.
    fn unknowns(&mut self) -> &mut Unknowns;

    /// An attribute or relation of an instance. A list relation is unset until it is frozen.
    fn attribute(&mut self, instance: InstanceId, name: &str) -> Read;

    /// What an unqualified variable of this name is in the scope of the call, attributes of the instance and `self` included.
    fn variable(&mut self, name: &str) -> Read;

    /// Whether a namespace path (`ip`, `ip::services`) is visible in the namespace of the call, or the beginning of one that is.
    fn is_namespace(&self, path: &str) -> bool;

    /// A variable of a visible namespace: `ip::services` and `ssh`.
    fn namespace_variable(&mut self, namespace: &str, name: &str) -> Read;

    /// The function of a qualified name (`std::upper`) as the namespace of the call sees it.
    fn function(&self, name: &str) -> Option<FunctionImplementation>;

    /// All names by which functions can be called from the namespace of the call. Only for advice.
    fn function_names(&self) -> Vec<Arc<str>>;

    /// Calls another function in the scope of this call.
    ///
    /// # Errors
    /// As those of [`calls::call`](crate::calls::call).
    fn call(&mut self, function: &Function, arguments: Arguments, site: Site<'_>) -> Result<Datum, Stop>;

    /// Names by which functions in Python can perhaps be called from there. Whether there is one is only known when Python is run.
    fn python_names(&self) -> Vec<Arc<str>> {
        Vec::new()
    }

    /// An entity by its full name.
    fn entity_named(&self, name: &str) -> Option<EntityId>;

    /// Reads files. Whoever reads one tells [`Context::record_file`].
    fn loader(&self) -> &dyn Loader;

    /// Notes that a file was read, or looked for.
    fn record_file(&mut self, path: &str);

    /// Gives a file that was read a place in the sources, so that errors can point into it. The same path gives the same file.
    fn add_source(&mut self, path: &str, text: &str) -> FileId;

    /// The directory that holds `templates/` and `files/` of a module, without a slash at the end. The project's own is that of the empty
    /// name. None: there is no such module.
    fn module_directory(&self, module: &str) -> Option<Arc<str>>;

    /// The module of the namespace of the call; empty for the project's own files.
    fn calling_module(&self) -> Arc<str>;

    /// Values that functions keep between calls, if the caller keeps them.
    fn cache(&mut self) -> Option<&mut Cache> {
        None
    }

    /// Makes an instance of an entity below `std::Dataclass`, which is given these attributes in a call at this place.
    ///
    /// # Errors
    /// When the model has no such record, or another one that does not fit.
    fn record(
        &mut self,
        entity: &str,
        _attributes: Vec<(Arc<str>, Datum)>,
        _span: Span,
    ) -> Result<InstanceId, RecordError> {
        Err(RecordError::refused(entity))
    }

    /// Notes that something is called of which nobody knows what it does and whether it answers the same another time.
    fn note_plugin(&mut self) {}

    /// Writes a line to where the model prints.
    fn print(&mut self, line: String);

    /// Takes a warning.
    fn warn(&mut self, warning: Diagnostic);

    /// A variable of the environment.
    fn environment(&mut self, name: &str) -> Option<Arc<str>>;

    /// A fact of a resource.
    fn fact(&mut self, resource: InstanceId, name: &str) -> Fact;

    /// The kind of a resource, which says what it sends.
    fn sender(&mut self, resource: InstanceId) -> Sender;

    /// Seconds since the beginning of 1970; none if time is not known (while planning).
    fn unix_time(&mut self) -> Option<i64>;

    /// What is known of the deployment.
    fn deployment(&self) -> Deployment;

    /// A file of the project's that outlives executions (`data/std/passwordfile.txt`); none if there is none yet.
    fn stored_text(&mut self, path: &str) -> Option<Arc<str>>;

    /// Replaces such a file.
    ///
    /// # Errors
    /// Why that is not possible, in a few words.
    fn store_text(&mut self, path: &str, text: String) -> Result<(), String>;

    /// Keeps the content of a file for whoever applies a resource that takes it. Answers the text that stands for it.
    fn keep_file(&mut self, path: &str, content: Arc<[u8]>) -> Arc<str>;

    /// Bytes that nobody can foresee.
    ///
    /// # Errors
    /// Why there are none, in a few words.
    fn random(&mut self, bytes: &mut [u8]) -> Result<(), String>;

    /// The first value of a function of the shared library that follows something outside.
    ///
    /// # Errors
    /// What the function answers.
    fn source(&mut self, function: &FunctionRef, arguments: &[Value]) -> Result<Value, CallError>;
}

/// Values that functions keep between the calls of an execution: at most one of each type.
#[derive(Debug, Default)]
pub struct Cache(FxHashMap<TypeId, Box<dyn Any + Send>>);

impl Cache {
    /// Returns the value of a type, and creates it on first use.
    pub fn get<T: Any + Default + Send>(&mut self) -> &mut T {
        let kept = self.0.entry(TypeId::of::<T>());
        let kept = kept.or_insert_with(|| Box::new(T::default()));
        kept.downcast_mut().expect("each value has the type of its key")
    }
}

/// A fact of a resource, as far as it is known.
#[derive(Debug, Clone)]
pub enum Fact {
    /// Its value.
    Value(Datum),
    /// Nobody has published it; that was noted.
    Unknown,
    /// What names the resource has no value yet.
    Unset(UnsetCell),
    /// The instance is no resource.
    NotAResource,
}

/// The kind of a resource, as far as it is known.
#[derive(Debug, Clone, Copy)]
pub enum Sender {
    /// This one.
    Kind(&'static KindSchema),
    /// The instance names its kind, and the name is not known.
    Unknown,
    /// What names its kind has no value yet.
    Unset(UnsetCell),
    /// The instance is no resource.
    NotAResource,
}

/// What is known of the deployment that a model belongs to.
#[derive(Debug, Clone, Default)]
pub struct Deployment {
    /// The name of the deployment.
    pub deploy: Arc<str>,
    /// The name of the project.
    pub project: Arc<str>,
    /// Where the world is reached, if that is known.
    pub server: Option<Arc<str>>,
}

/// Where a call stands.
#[derive(Debug, Clone, Copy)]
pub struct Site<'a> {
    /// All of it.
    pub span: Span,
    /// The name of the function.
    pub name: Span,
    /// The call as it is written, if it is written in the model.
    pub written: Option<&'a ExpressionKind>,
}

impl Site<'_> {
    /// Where the argument of a name or place stands; all of the call if that is not known.
    pub(crate) fn argument(&self, name: &str, place: usize, model: &Model) -> Span {
        let Some(ExpressionKind::Call {
            positional, keywords, ..
        }) = self.written
        else {
            return self.span;
        };
        let named = keywords.iter().find(|(given, ..)| **model.text(*given) == *name);
        let value = named.map(|(_, _, value)| value).or(positional.get(place));
        value.map_or(self.span, |value| value.span)
    }
}

/// What a call is given.
#[derive(Debug, Clone, Default)]
pub struct Arguments {
    /// By position.
    pub positional: Vec<Datum>,
    /// By name, in the order of the text.
    pub keywords: Vec<(Arc<str>, Datum)>,
    /// Behind `**`.
    pub dicts: Vec<Datum>,
}

/// Why an implementation of a function has no result.
#[derive(Debug, Clone)]
pub enum Failure {
    /// An error of the model's, met while it was read.
    Model(Box<Diagnostic>),
    /// An error that the function tells its users: one line.
    Declared(String),
    /// Anything else that went wrong: one line.
    Other(String),
    /// Anything else that went wrong, with a place of its own.
    Caused(Box<Diagnostic>),
    /// It needs what is not known yet. The result is unknown.
    Unknown,
    /// It needs what has no value yet. The call is made again.
    Unset(UnsetCell),
}

/// Why a call, an operator or a check has no value for whoever executes.
#[derive(Debug, Clone)]
pub enum Stop {
    /// An error.
    Error(Box<Diagnostic>),
    /// A cell without a value is needed: do it again when it has one.
    Unset(UnsetCell),
}

impl From<Diagnostic> for Stop {
    fn from(error: Diagnostic) -> Stop {
        Stop::Error(Box::new(error))
    }
}

impl From<Diagnostic> for Failure {
    fn from(error: Diagnostic) -> Failure {
        Failure::Model(Box::new(error))
    }
}
