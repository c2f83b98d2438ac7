//! Which figures there are: their names, sorts, labels, and what they mean. The page of the book on monitoring is checked against this table.

use prometheus_client::metrics::MetricType;

/// A figure, for each combination of its labels.
#[derive(Debug)]
pub(super) struct Family {
    /// As it is asked for, but for the `_total` that counters get.
    pub(super) name: &'static str,
    pub(super) sort: MetricType,
    /// What it means.
    pub(super) help: &'static str,
}

const fn counter(name: &'static str, help: &'static str) -> Family {
    let sort = MetricType::Counter;
    Family { name, sort, help }
}

const fn gauge(name: &'static str, help: &'static str) -> Family {
    let sort = MetricType::Gauge;
    Family { name, sort, help }
}

const fn histogram(name: &'static str, help: &'static str) -> Family {
    let sort = MetricType::Histogram;
    Family { name, sort, help }
}

pub(super) const BUILD: Family = gauge(
    "setpoint_build_info",
    "The version that runs, as a label. Always 1",
);
pub(super) const RUNS: Family = counter(
    "setpoint_checkapply",
    "Runs that ended: by kind, whether repairs were allowed, whether something was wrong, and whether it failed",
);
pub(super) const DURATIONS: Family = histogram("setpoint_run_duration_seconds", "How long runs took");
pub(super) const DRIFTS: Family = counter(
    "setpoint_drifts",
    "Differences between what is and what shall be that were found",
);
pub(super) const REPAIRS: Family = counter("setpoint_repairs", "Differences that were repaired");
pub(super) const REPAIRS_FAILED: Family = counter(
    "setpoint_repairs_failed",
    "Repairs that were tried in runs that failed",
);
pub(super) const FAILURES: Family = counter(
    "setpoint_failures",
    "Failures since the start: soft, to be tried again, or hard, with no tries left",
);
pub(super) const FAILING: Family = gauge(
    "setpoint_failing",
    "Resources that could not be brought into their state: soft, to be tried again, or hard, with no tries left",
);
pub(super) const FIGHTS: Family = counter(
    "setpoint_fights",
    "How often something else was seen to undo repairs again and again",
);
pub(super) const SILENCES: Family = counter(
    "setpoint_not_answering",
    "How often what a resource looks at gave no answer for long",
);
pub(super) const RESOURCES: Family = gauge("setpoint_resources", "Resources in the running graph");
pub(super) const STANDINGS: Family = gauge(
    "setpoint_resources_standing",
    "Resources by how they stand, as `setpoint status` tells it",
);
pub(super) const GRAPHS: Family = counter(
    "setpoint_graphs",
    "New graphs that were taken, or rejected as wrong",
);
pub(super) const GRAPH_START: Family = gauge(
    "setpoint_graph_start_time_seconds",
    "When the running graph came, in seconds since 1970; 0 before the first",
);
pub(super) const CONVERGED: Family = gauge(
    "setpoint_converged",
    "Whether the machine is quiet: everything was looked at and nothing is under way. Not there where nobody wants to know",
);
pub(super) const RIGHT: Family = gauge(
    "setpoint_right",
    "Whether everything is right, as the exit code 0 of `setpoint status` says",
);
pub(super) const PROGRAM_WRONG: Family = gauge(
    "setpoint_program_wrong",
    "Whether the newest text of the program, or what it makes, is wrong and therefore not in use",
);
pub(super) const PAUSED: Family = gauge("setpoint_paused", "Whether somebody asked for a pause");
pub(super) const NOOP: Family = gauge("setpoint_noop", "Whether all repairs are forbidden");
pub(super) const STORE_UP: Family = gauge(
    "setpoint_store_up",
    "Whether the store of `--seeds` answers. Not there without one",
);
pub(super) const STORE_REQUESTS: Family = counter(
    "setpoint_store_requests",
    "Requests to the store of `--seeds`: answered, refused, or without an answer",
);
pub(super) const STORE_DURATIONS: Family = histogram(
    "setpoint_store_request_duration_seconds",
    "How long requests to the store of `--seeds` took, with or without an answer",
);
pub(super) const CPU: Family = counter(
    "process_cpu_seconds",
    "Processor time that the process took, of all its threads",
);
pub(super) const RESIDENT: Family = gauge(
    "process_resident_memory_bytes",
    "Memory of the process that is resident",
);
pub(super) const VIRTUAL: Family = gauge("process_virtual_memory_bytes", "Address space of the process");
pub(super) const OPEN_DESCRIPTORS: Family = gauge("process_open_fds", "Open descriptors of the process");
pub(super) const MOST_DESCRIPTORS: Family =
    gauge("process_max_fds", "Descriptors that the process may have open");
pub(super) const THREADS: Family = gauge("process_threads", "Threads of the process");
pub(super) const STARTED: Family = gauge(
    "process_start_time_seconds",
    "When the process began, in seconds since 1970",
);
