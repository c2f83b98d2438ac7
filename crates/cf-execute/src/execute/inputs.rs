//! What a model is given of the world outside, and what it took of it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use setpoint_cf_functions::context::Deployment;
use setpoint_cf_names::datum::Datum;
use setpoint_value::{CallError, FunctionRef, Value};

/// A snapshot of the world outside. The same snapshot gives the same result.
#[derive(Default)]
pub struct Inputs {
    /// What is known of the deployment.
    pub deployment: Deployment,
    /// Variables of the environment.
    pub environment: BTreeMap<Arc<str>, Arc<str>>,
    /// How many rounds of freezing relations there may be, if somebody has said so.
    pub max_rounds: Option<u64>,
    /// Facts of resources: by `machine/kind[name]/fact`.
    pub facts: BTreeMap<Arc<str>, Datum>,
    /// Seconds since the beginning of 1970; none while planning.
    pub unix_time: Option<i64>,
    /// Files of the project's that outlive executions, by path.
    pub stored: BTreeMap<Arc<str>, Arc<str>>,
    /// The directory of the project, absolute, for texts that say where a file is.
    pub root: Arc<str>,
    /// What is given for the inputs that the project declares, by name.
    pub given: BTreeMap<Arc<str>, Value>,
    /// What cannot be known beforehand.
    pub outside: Option<Box<dyn Outside>>,
    /// Whether it is noted what depends on all this, so that changed answers need not mean a whole execution.
    pub record: bool,
}

impl fmt::Debug for Inputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inputs")
            .field("deployment", &self.deployment)
            .field("environment", &self.environment)
            .field("facts", &self.facts)
            .field("unix_time", &self.unix_time)
            .finish_non_exhaustive()
    }
}

/// Answers that no snapshot can hold.
pub trait Outside: Send + Sync {
    /// Bytes that nobody can foresee.
    ///
    /// # Errors
    /// Why there are none, in a few words.
    fn random(&self, bytes: &mut [u8]) -> Result<(), String>;

    /// The first value of a function of the shared library that follows something outside.
    ///
    /// # Errors
    /// What the function answers.
    fn source(&self, function: &FunctionRef, arguments: &[Value]) -> Result<Value, CallError>;
}

/// Something outside that a model asked for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReadKey {
    /// A file.
    File(Arc<str>),
    /// A variable of the environment.
    Environment(Arc<str>),
    /// A fact of a resource: `machine/kind[name]/fact`.
    Fact(Arc<str>),
    /// A function that follows something outside, with its arguments.
    Function(Arc<str>),
    /// The time.
    Clock,
}

impl fmt::Display for ReadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadKey::File(path) => write!(f, "file:{path}"),
            ReadKey::Environment(name) => write!(f, "env:{name}"),
            ReadKey::Fact(key) => write!(f, "fact:{key}"),
            ReadKey::Function(call) => write!(f, "function:{call}"),
            ReadKey::Clock => f.write_str("clock"),
        }
    }
}
