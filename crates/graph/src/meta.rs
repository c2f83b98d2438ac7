//! Meta parameters: what the engine is told about a resource (rule resources.17 of the language).

use std::ops::Deref;

use setpoint_value::{Type, Value};

/// The meta parameters of a resource, with defaults filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct MetaParameters {
    /// Check, but repair nothing.
    pub noop: bool,
    /// How often a failed watch or run is tried again; -1 forever.
    pub retry: i16,
    /// Whether a successful run refills the tries.
    pub retryreset: bool,
    /// Milliseconds before each further try.
    pub delay: u64,
    /// Milliseconds after which a run is cancelled; 0 never.
    pub timeout: u64,
    /// Seconds between checks instead of watching; 0 watches, -1 checks once.
    pub poll: i32,
    /// Events a second; infinite by default.
    pub limit: f64,
    /// Events that may come at once under a limit.
    pub burst: u64,
    /// Whether counters start anew when the resource is replaced.
    pub reset: bool,
    /// Semaphores, `id` or `id:count`.
    pub sema: Vec<String>,
    /// Whether a swap starts a failed resource again.
    pub rewatch: bool,
    /// Whether it runs before a swap takes it away.
    pub realize: bool,
    /// Whether the name may begin with `$`.
    pub dollar: bool,
    /// Whether it is kept from being applied here.
    pub hidden: bool,
    /// Hosts it is exported to, or `*`.
    pub export: Vec<String>,
    /// Whether removal from the program undoes it.
    pub reverse: bool,
    /// Whether it takes part in automatic edges.
    pub autoedge: bool,
    /// Whether it may be grouped.
    pub autogroup: bool,
    /// Which of them the program wrote.
    pub written: Written,
    /// No program says this: the resource is what undoes one that left the program.
    pub is_reversal: bool,
}

/// A set of meta parameters. Does not count in equality: what matters is the values.
#[derive(Debug, Clone, Copy, Default)]
pub struct Written(u32);

impl Written {
    /// Adds a meta parameter to the set.
    pub fn insert(&mut self, name: MetaName) {
        self.0 |= 1 << name as u32;
    }

    /// Whether one is in it.
    #[must_use]
    pub fn contains(self, name: MetaName) -> bool {
        self.0 & (1 << name as u32) != 0
    }

    /// Those of it, in the order of [`MetaName::ALL`].
    pub fn iter(self) -> impl Iterator<Item = MetaName> {
        MetaName::ALL.into_iter().filter(move |name| self.contains(*name))
    }

    /// Whether both hold the same names.
    #[must_use]
    pub fn is_same(self, other: Written) -> bool {
        self.0 == other.0
    }
}

impl PartialEq for Written {
    fn eq(&self, _: &Written) -> bool {
        true
    }
}

/// A limit is never `NaN`: [`MetaParameters::set`] refuses it.
impl Eq for MetaParameters {}

impl Eq for Written {}

impl MetaParameters {
    /// What holds where a program writes nothing.
    pub const DEFAULT: MetaParameters = MetaParameters {
        noop: false,
        retry: 0,
        retryreset: false,
        delay: 0,
        timeout: 0,
        poll: 0,
        limit: f64::INFINITY,
        burst: 0,
        reset: false,
        sema: Vec::new(),
        rewatch: false,
        realize: false,
        dollar: false,
        hidden: false,
        export: Vec::new(),
        reverse: false,
        autoedge: true,
        autogroup: true,
        written: Written(0),
        is_reversal: false,
    };
}

impl Default for MetaParameters {
    fn default() -> MetaParameters {
        MetaParameters::DEFAULT
    }
}

/// The meta parameters of one of many resources. Most write none, and then these take no memory of their own.
#[derive(Debug, Clone, Default)]
pub struct Meta(Option<Box<MetaParameters>>);

impl From<MetaParameters> for Meta {
    fn from(meta: MetaParameters) -> Meta {
        let is_default = meta == MetaParameters::DEFAULT && meta.written.is_same(Written(0));
        Meta((!is_default).then(|| Box::new(meta)))
    }
}

impl Deref for Meta {
    type Target = MetaParameters;

    fn deref(&self) -> &MetaParameters {
        static DEFAULT: MetaParameters = MetaParameters::DEFAULT;
        self.0.as_deref().unwrap_or(&DEFAULT)
    }
}

impl PartialEq for Meta {
    fn eq(&self, other: &Meta) -> bool {
        **self == **other
    }
}

impl Eq for Meta {}

impl MetaParameters {
    /// Nothing is written but `noop`.
    #[must_use]
    pub fn only_noop() -> MetaParameters {
        let mut meta = MetaParameters {
            noop: true,
            ..MetaParameters::DEFAULT
        };
        meta.written.insert(MetaName::Noop);
        meta
    }

    /// Sets one from a known value and notes that it was written.
    ///
    /// # Errors
    /// What is wrong with the value: a text that goes on after the name of the meta parameter. Nothing is set then.
    pub fn set(&mut self, name: MetaName, value: &Value) -> Result<(), String> {
        match name {
            MetaName::Noop => self.noop = boolean(value)?,
            MetaName::Retry => {
                self.retry = integer(value)?
                    .try_into()
                    .map_err(|_| format!("does not fit 16 bits: {value}"))?;
            }
            MetaName::Retryreset => self.retryreset = boolean(value)?,
            MetaName::Delay => self.delay = natural(value)?,
            MetaName::Timeout => self.timeout = natural(value)?,
            MetaName::Poll => {
                self.poll = integer(value)?
                    .try_into()
                    .map_err(|_| format!("does not fit 32 bits: {value}"))?;
            }
            MetaName::Limit => match value.as_float() {
                Some(limit) if limit.is_nan() => return Err("is not a number".to_owned()),
                Some(limit) => self.limit = limit,
                None => return Err(wrong_type(value, "float")),
            },
            MetaName::Burst => self.burst = natural(value)?,
            MetaName::Reset => self.reset = boolean(value)?,
            MetaName::Sema => {
                let list = strings(value)?;
                if list.iter().any(String::is_empty) {
                    return Err("contains an empty name".to_owned());
                }
                if let Some(bare) = list.iter().find(|id| id.parse::<i64>().is_ok()) {
                    return Err(format!(
                        "contains the bare number \"{bare}\" where a name, or a name and a count, must stand"
                    ));
                }
                self.sema = list;
            }
            MetaName::Rewatch => self.rewatch = boolean(value)?,
            MetaName::Realize => self.realize = boolean(value)?,
            MetaName::Dollar => self.dollar = boolean(value)?,
            MetaName::Hidden => self.hidden = boolean(value)?,
            MetaName::Export => {
                let list = strings(value)?;
                if list.iter().any(String::is_empty) {
                    return Err("contains an empty host".to_owned());
                }
                self.export = list;
            }
            MetaName::Reverse => self.reverse = boolean(value)?,
            MetaName::Autoedge => self.autoedge = boolean(value)?,
            MetaName::Autogroup => self.autogroup = boolean(value)?,
        }
        self.written.insert(name);
        Ok(())
    }

    /// The value of one, as mcl has it.
    #[must_use]
    pub fn value(&self, name: MetaName) -> Value {
        let natural = |number: u64| Value::Int(i64::try_from(number).unwrap_or(i64::MAX));
        match name {
            MetaName::Noop => Value::Bool(self.noop),
            MetaName::Retry => Value::Int(self.retry.into()),
            MetaName::Retryreset => Value::Bool(self.retryreset),
            MetaName::Delay => natural(self.delay),
            MetaName::Timeout => natural(self.timeout),
            MetaName::Poll => Value::Int(self.poll.into()),
            MetaName::Limit => Value::float(self.limit),
            MetaName::Burst => natural(self.burst),
            MetaName::Reset => Value::Bool(self.reset),
            MetaName::Sema => Value::strings(self.sema.iter().map(String::as_str)),
            MetaName::Rewatch => Value::Bool(self.rewatch),
            MetaName::Realize => Value::Bool(self.realize),
            MetaName::Dollar => Value::Bool(self.dollar),
            MetaName::Hidden => Value::Bool(self.hidden),
            MetaName::Export => Value::strings(self.export.iter().map(String::as_str)),
            MetaName::Reverse => Value::Bool(self.reverse),
            MetaName::Autoedge => Value::Bool(self.autoedge),
            MetaName::Autogroup => Value::Bool(self.autogroup),
        }
    }

    /// Whether both tell the engine the same: lists without regard to order.
    #[must_use]
    pub fn is_same(&self, other: &MetaParameters) -> bool {
        self == other || (self.is_reversal == other.is_reversal && self.differences(other).next().is_none())
    }

    /// Whether both leave the same to the engine: a retry or delay of zero that is not written is a value of its own.
    #[must_use]
    pub fn leaves_alike(&self, other: &MetaParameters) -> bool {
        let leaves = |meta: &MetaParameters| {
            let left = |name, is_zero| is_zero && !meta.written.contains(name);
            (
                left(MetaName::Retry, meta.retry == 0),
                left(MetaName::Delay, meta.delay == 0),
            )
        };
        leaves(self) == leaves(other)
    }

    /// Those that differ, lists compared without regard to order.
    pub fn differences<'a>(&'a self, other: &'a MetaParameters) -> impl Iterator<Item = MetaName> + 'a {
        MetaName::ALL.into_iter().filter(move |name| match name {
            MetaName::Sema => sorted(&self.sema) != sorted(&other.sema),
            MetaName::Export => sorted(&self.export) != sorted(&other.export),
            name => self.value(*name) != other.value(*name),
        })
    }
}

fn sorted(list: &[String]) -> Vec<&str> {
    let mut list: Vec<&str> = list.iter().map(String::as_str).collect();
    list.sort_unstable();
    list
}

fn wrong_type(value: &Value, wanted: &str) -> String {
    format!("is of type {} and must be {wanted}", value.ty())
}

fn boolean(value: &Value) -> Result<bool, String> {
    value.as_bool().ok_or_else(|| wrong_type(value, "bool"))
}

fn integer(value: &Value) -> Result<i64, String> {
    value.as_int().ok_or_else(|| wrong_type(value, "int"))
}

fn natural(value: &Value) -> Result<u64, String> {
    integer(value)?
        .try_into()
        .map_err(|_| format!("must not be negative: {value}"))
}

/// Texts of a list. Whatever they name is shown everywhere, so that they cannot be secret.
fn strings(value: &Value) -> Result<Vec<String>, String> {
    if value.is_sensitive() {
        return Err("must not be sensitive".to_owned());
    }
    let list = value.as_list().ok_or_else(|| wrong_type(value, "[]str"))?;
    list.iter()
        .map(|item| {
            let text = item.as_str().ok_or_else(|| wrong_type(value, "[]str"))?;
            let text = text
                .as_str()
                .ok_or_else(|| "contains bytes that are not text".to_owned())?;
            Ok(text.to_owned())
        })
        .collect()
}

/// The name of a meta parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the fields of `MetaParameters` say what they mean")]
pub enum MetaName {
    Noop,
    Retry,
    Retryreset,
    Delay,
    Timeout,
    Poll,
    Limit,
    Burst,
    Reset,
    Sema,
    Rewatch,
    Realize,
    Dollar,
    Hidden,
    Export,
    Reverse,
    Autoedge,
    Autogroup,
}

impl MetaName {
    /// All, in the order that the full struct form has.
    pub const ALL: [MetaName; 18] = [
        MetaName::Noop,
        MetaName::Retry,
        MetaName::Retryreset,
        MetaName::Delay,
        MetaName::Timeout,
        MetaName::Poll,
        MetaName::Limit,
        MetaName::Burst,
        MetaName::Reset,
        MetaName::Sema,
        MetaName::Rewatch,
        MetaName::Realize,
        MetaName::Dollar,
        MetaName::Hidden,
        MetaName::Export,
        MetaName::Reverse,
        MetaName::Autoedge,
        MetaName::Autogroup,
    ];

    /// As it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            MetaName::Noop => "noop",
            MetaName::Retry => "retry",
            MetaName::Retryreset => "retryreset",
            MetaName::Delay => "delay",
            MetaName::Timeout => "timeout",
            MetaName::Poll => "poll",
            MetaName::Limit => "limit",
            MetaName::Burst => "burst",
            MetaName::Reset => "reset",
            MetaName::Sema => "sema",
            MetaName::Rewatch => "rewatch",
            MetaName::Realize => "realize",
            MetaName::Dollar => "dollar",
            MetaName::Hidden => "hidden",
            MetaName::Export => "export",
            MetaName::Reverse => "reverse",
            MetaName::Autoedge => "autoedge",
            MetaName::Autogroup => "autogroup",
        }
    }

    /// The one of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<MetaName> {
        MetaName::ALL.into_iter().find(|m| m.name() == name)
    }

    /// What it means, for people: one sentence.
    #[must_use]
    pub const fn doc(self) -> &'static str {
        match self {
            MetaName::Noop => "Only say what would be done.",
            MetaName::Retry => {
                "The number of further tries after a failed run or watch; `-1` for ever. Without it, the resource is tried until it is right, at growing intervals."
            }
            MetaName::Retryreset => "Whether a run that succeeds gives all tries back.",
            MetaName::Delay => "Milliseconds before each further try.",
            MetaName::Timeout => "Milliseconds that a run may take; `0` is as long as it wants.",
            MetaName::Poll => "Look every so many seconds instead of watching; `0` watches, `-1` looks once.",
            MetaName::Limit => "How many events a second may lead to a run.",
            MetaName::Burst => "How many events may come at once under a limit.",
            MetaName::Reset => "Whether used-up tries are forgotten when the resource is changed.",
            MetaName::Sema => "Names of semaphores: `\"disk:2\"` lets two run at once.",
            MetaName::Rewatch => {
                "Whether the next graph starts it again if it has given up, although nothing was changed."
            }
            MetaName::Realize => {
                "Run at least once, even if the next graph takes it away. If a resource before it has not finished by then, it is dropped."
            }
            MetaName::Dollar => "Whether the name may begin with a `$`.",
            MetaName::Hidden => "Keep it from being applied on this host.",
            MetaName::Export => "The hosts that it is exported to; `\"*\"` for all.",
            MetaName::Reverse => "Undo it when it leaves the program, for kinds that can.",
            MetaName::Autoedge => "Whether it takes part in automatic edges.",
            MetaName::Autogroup => "Whether it may be grouped with others.",
        }
    }

    /// The value that holds where none is written, as people read it.
    #[must_use]
    pub fn default_text(self) -> String {
        match self {
            MetaName::Retry => "no limit".to_owned(),
            name => MetaParameters::DEFAULT.value(name).to_string(),
        }
    }

    /// Its type in mcl.
    #[must_use]
    pub fn ty(self) -> Type {
        match self {
            MetaName::Retry | MetaName::Delay | MetaName::Timeout | MetaName::Poll | MetaName::Burst => {
                Type::Int
            }
            MetaName::Limit => Type::Float,
            MetaName::Sema | MetaName::Export => Type::list(Type::Str),
            MetaName::Noop
            | MetaName::Retryreset
            | MetaName::Reset
            | MetaName::Rewatch
            | MetaName::Realize
            | MetaName::Dollar
            | MetaName::Hidden
            | MetaName::Reverse
            | MetaName::Autoedge
            | MetaName::Autogroup => Type::Bool,
        }
    }
}
