//! The lines that go over the control socket, as types. Their JSON Schema is made from them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use setpoint_engine::Event;
use setpoint_engine::machine::{Standing, StandingCounts};

/// Version of the protocol. It rises when something that a client may rely on changes its meaning or goes away.
pub const PROTOCOL: u32 = 1;

/// Bytes that a line of a client may have.
pub(crate) const LONGEST_REQUEST: usize = 64 * 1024;

/// A line of a client.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Request {
    /// Chosen by the client; every line that answers carries it.
    pub id: u64,
    /// What is asked for.
    #[serde(flatten)]
    pub ask: Ask,
}

/// What a client asks for. Resources are named as `KIND[NAME]`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "request", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Ask {
    /// How things are: lines `resources`, in no order, then one `status`. A resource that leaves and comes back meanwhile may come twice; the
    /// later one holds.
    Status {
        /// Only these resources. One that is not there is an error.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        resources: Vec<String>,
        /// Only resources of these kinds; none: of all.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        kinds: Vec<String>,
        /// Only resources that stand so; an empty list: no resources, only the summary; absent: all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        standings: Option<Vec<Standing>>,
    },
    /// What the machine shall be: lines `graph-resources` and `graph-edges`, then one `graph`.
    Graph {},
    /// What happened: lines `event`, then one `events`. With `follow` it goes on until it is cancelled, or the process ends.
    Events {
        /// Those after the event of this number; 0: from the oldest that is kept. Absent: with `follow` only what comes, else all that are kept.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since: Option<u64>,
        /// Whether to go on with what comes.
        #[serde(default)]
        follow: bool,
        /// Only those of these resources, and of those as part of which they are applied; gaps always come. Without `follow`, one that is not there and that has no event here is an error.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        resources: Vec<String>,
        /// Only those of resources of these kinds.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        kinds: Vec<String>,
        /// Only events of these names.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        events: Vec<String>,
    },
    /// Ends another request of this client, which is answered its last line: `events`, of where it has come to, or an error `cancelled`.
    Cancel {
        /// The id of that request.
        of: u64,
    },
    /// Looks at resources again, also at those that have given up.
    Recheck {
        /// Which. If one is not there, nothing is done.
        resources: Vec<String>,
    },
    /// Begins no runs from now on.
    Pause {},
    /// Begins runs again.
    Resume {},
    /// Reads the program again. The answer comes when that is done.
    Reload {},
    /// Changes of whom debug output is wanted, and answers of whom it is. First `off`, then `on`. A resource need not be there yet.
    Debug {
        /// Kinds, resources and functions, or `all`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        on: Vec<String>,
        /// The same.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        off: Vec<String>,
    },
}

/// What every request is called.
pub(crate) const REQUESTS: [&str; 9] = [
    "status", "graph", "events", "cancel", "recheck", "pause", "resume", "reload", "debug",
];

/// A line of the process.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum Answer {
    /// The first line, without being asked.
    Hello(Hello),
    /// Some of the resources that were asked for.
    Resources {
        /// The id of the request.
        id: u64,
        /// They are.
        resources: Vec<ResourceStatus>,
    },
    /// The end of an answer to `status`.
    Status {
        /// The id of the request.
        id: u64,
        /// How things are as a whole.
        #[serde(flatten)]
        status: Box<HostStatus>,
    },
    /// Some resources of the graph, as `setpoint graph --format json` has them.
    GraphResources {
        /// The id of the request.
        id: u64,
        /// They are.
        #[schemars(with = "Vec<serde_json::Map<String, Json>>")]
        resources: Vec<Json>,
    },
    /// Some edges of the graph, as `setpoint graph --format json` has them.
    GraphEdges {
        /// The id of the request.
        id: u64,
        /// They are.
        #[schemars(with = "Vec<serde_json::Map<String, Json>>")]
        edges: Vec<Json>,
    },
    /// The end of an answer to `graph`.
    Graph {
        /// The id of the request.
        id: u64,
        /// Which of the graphs of this process it is.
        generation: u64,
    },
    /// Something that happened.
    Event {
        /// The id of the request.
        id: u64,
        /// A line of `run --json`, but for its number: this one is the engine's own.
        #[schemars(with = "serde_json::Map<String, Json>")]
        event: Box<Event>,
    },
    /// The end of an answer to `events`.
    Events {
        /// The id of the request.
        id: u64,
        /// Number of the newest event that was looked at: where to go on.
        newest: u64,
    },
    /// The request was ended, if it was under way.
    Cancel {
        /// The id of the request.
        id: u64,
        /// Whether it was under way.
        was_under_way: bool,
    },
    /// They will be looked at.
    Recheck {
        /// The id of the request.
        id: u64,
        /// Whether that waits for the end of a pause.
        paused: bool,
    },
    /// No runs begin from now on.
    Pause {
        /// The id of the request.
        id: u64,
        /// Whether that was so already.
        was_paused: bool,
    },
    /// Runs begin again.
    Resume {
        /// The id of the request.
        id: u64,
        /// Whether there was a pause.
        was_paused: bool,
        /// For how many seconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        paused_for: Option<f64>,
    },
    /// The program was read again.
    Reload {
        /// The id of the request.
        id: u64,
        /// What is wrong with it, so that the old one stays in use.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wrong: Option<String>,
    },
    /// Of whom debug output is wanted.
    Debug {
        /// The id of the request.
        id: u64,
        /// Of these.
        on: Vec<String>,
        /// Those of `off` of whom it is wanted nevertheless: because it is of all, or of all resources of their kind.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        still_on: Vec<String>,
        /// Resources that were asked for and are not there. They count when they come.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        unknown: Vec<Unknown>,
    },
    /// The request is refused. It has no further answer.
    Error {
        /// The id of the request; none when it could not be read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<u64>,
        /// Which error.
        code: ErrorCode,
        /// The same for people.
        message: String,
        /// What to do.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        help: Option<String>,
    },
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorCode {
    /// The line is no JSON, or no object with a number `id`.
    NotARequest,
    /// The line has too many bytes. The connection ends.
    TooLong,
    /// There is no request of that name.
    UnknownRequest,
    /// The request has fields that it cannot have, lacks some, or they hold what they cannot.
    Invalid,
    /// A resource is not there.
    UnknownResource,
    /// There is no event of that number yet.
    UnknownEvent,
    /// A request of this id is under way.
    IdInUse,
    /// The request was ended by `cancel`.
    Cancelled,
    /// Too many requests of this client are under way.
    TooManyRequests,
    /// Too many clients are connected. The connection ends.
    TooManyClients,
    /// The process belongs to somebody else. The connection ends.
    NotPermitted,
    /// There is no program that could be read again.
    NoProgram,
    /// The engine gives no answer.
    Unresponsive,
    /// The engine has ended.
    Ended,
}

/// A resource that is not there.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Unknown {
    /// Which, `KIND[NAME]`.
    pub resource: String,
    /// What is probably meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

/// Who answers.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Hello {
    /// Version of the protocol.
    pub protocol: u32,
    /// The program that runs.
    pub program: String,
    /// Its version.
    pub version: String,
    /// Number of the process.
    pub pid: u32,
    /// Name of this host, as the program sees it.
    pub hostname: String,
    /// When the process began, in seconds since 1970 UTC.
    pub started: f64,
}

/// How things are as a whole. Moments are in seconds since 1970 UTC.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct HostStatus {
    /// When it was so.
    pub time: f64,
    /// How many resources stand how.
    pub counts: StandingCounts,
    /// Whether the host is converged; absent if that is not followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub converged: Option<bool>,
    /// Whether no runs begin, because somebody asked for a pause.
    pub paused: bool,
    /// Since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_since: Option<f64>,
    /// Whether all repairs are forbidden.
    pub noop: bool,
    /// Whether a new graph is on its way.
    pub new_graph: bool,
    /// Whether something else is under way that keeps the host from being converged.
    pub busy: bool,
    /// The stage of stopping, from 1 to 3, if the process is stopping.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopping: Option<u8>,
    /// What is kept: a file, a directory, or where it was taken from. Absent without a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Since when this version of its text is in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program_since: Option<f64>,
    /// What is wrong with its newest text or values, so that the machine is kept as those before want it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program_wrong: Option<String>,
    /// Which of the graphs of this process is running, if there is one yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
    /// Since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) graph_since: Option<f64>,
    /// How many runs have repaired something since the process began.
    pub repairs: u64,
    /// When the last of these ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repaired: Option<f64>,
    /// Number of the newest event; 0 before the first.
    pub newest_event: u64,
}

/// How a resource is. Moments are in seconds since 1970 UTC.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ResourceStatus {
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// The resource as part of which it is applied, if it is in the group of another one; it stands as that one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// How it stands.
    pub standing: Standing,
    /// Since when it stands so.
    pub since: f64,
    /// What it does.
    pub does: Doing,
    /// Why it failed last, if it has not succeeded since: it reads after «failed to».
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// When it is tried again, or may run, if it waits for a moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<f64>,
    /// The resource that it waits for, or that blocks it, `KIND[NAME]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind: Option<String>,
    /// Whether what blocks it has not failed, but waits for something outside this machine.
    #[serde(default, skip_serializing_if = "is_false")]
    pub behind_awaits: bool,
    /// The semaphores that it needs, if it waits for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub semaphores: Vec<String>,
    /// Whether it may not repair.
    #[serde(default, skip_serializing_if = "is_false")]
    pub noop: bool,
    /// Whether it is one of the hidden resources.
    #[serde(default, skip_serializing_if = "is_false")]
    pub hidden: bool,
    /// Whether it left the program, and this is what undoes it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub reversal: bool,
    /// Whether a notification waits for it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub refresh_pending: bool,
    /// The statement that it comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
}

/// What a resource does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Doing {
    /// Nothing: what its watch sees makes it run.
    Watching,
    /// It waits until another one is gone.
    WaitingToBeAdded,
    /// It is prepared, and its watch armed.
    Starting,
    /// It waits for one that comes before it.
    WaitingForAnother,
    /// It may run, but there is a pause or the jobs are used up.
    Ready,
    /// It waits for something outside this machine.
    WaitingForHost,
    /// It waits for semaphores.
    WaitingForSemaphore,
    /// Its events come faster than its limit allows, or somebody undoes its repairs.
    Limited,
    /// It failed and waits for its next try.
    BackingOff,
    /// It is looked at, or repaired.
    Running,
    /// It failed and is not tried again.
    Failed,
    /// It is going away.
    Finishing,
}

/// A place in the text of a program.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Place {
    /// The file.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub col: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde wants it")]
fn is_false(value: &bool) -> bool {
    !value
}

/// A moment as it goes over the socket.
pub fn seconds(time: std::time::Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e6
}
