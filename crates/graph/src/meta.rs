//! Meta parameters: what the engine is told about a resource (mcl-language §7.3).

use setpoint_value::Type;

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
}

/// A set of meta parameters. Does not count in equality: what matters is the values.
#[derive(Debug, Clone, Copy, Default)]
pub struct Written(u32);

impl Written {
    /// Adds one.
    pub fn insert(&mut self, name: MetaName) {
        self.0 |= 1 << name as u32;
    }

    /// Whether one is in it.
    #[must_use]
    pub fn contains(self, name: MetaName) -> bool {
        self.0 & (1 << name as u32) != 0
    }
}

impl PartialEq for Written {
    fn eq(&self, _: &Written) -> bool {
        true
    }
}

impl Default for MetaParameters {
    fn default() -> MetaParameters {
        MetaParameters {
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
            written: Written::default(),
        }
    }
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
