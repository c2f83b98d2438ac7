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

pub(super) const BUILD: Family = gauge("setpoint_build_info", "Version as a label; always 1");
pub(super) const RUNS: Family = counter(
    "setpoint_checkapply",
    "Completed runs, by kind, whether repairs were enabled, whether there was drift, and whether the run failed",
);
pub(super) const DURATIONS: Family = histogram("setpoint_run_duration_seconds", "Duration of runs");
pub(super) const DRIFTS: Family = counter("setpoint_drifts", "Drift detected");
pub(super) const REPAIRS: Family = counter("setpoint_repairs", "Drift repaired");
pub(super) const REPAIRS_FAILED: Family =
    counter("setpoint_repairs_failed", "Repairs attempted in failed runs");
pub(super) const FAILURES: Family = counter(
    "setpoint_failures",
    "Failures since the start: soft if a retry follows, hard if none is left",
);
pub(super) const FAILING: Family = gauge(
    "setpoint_failing",
    "Resources that currently fail: soft if a retry follows, hard if none is left",
);
pub(super) const CONFLICTS: Family = counter(
    "setpoint_conflicts",
    "Conflicts: another program kept undoing repairs",
);
pub(super) const SILENCES: Family = counter(
    "setpoint_unresponsive",
    "Checks without a response for 30 seconds",
);
pub(super) const RESOURCES: Family = gauge("setpoint_resources", "Resources in the running graph");
pub(super) const STANDINGS: Family = gauge(
    "setpoint_resources_standing",
    "Resources by status, as in `setpoint status`",
);
pub(super) const GRAPHS: Family = counter("setpoint_graphs", "New graphs, accepted or rejected");
pub(super) const GRAPH_START: Family = gauge(
    "setpoint_graph_start_time_seconds",
    "Time of the current graph, in seconds since 1970; 0 before the first",
);
pub(super) const CONVERGED: Family = gauge(
    "setpoint_converged",
    "Whether the agent has converged: all resources are checked and nothing is in progress. Missing if convergence is not tracked",
);
pub(super) const RIGHT: Family = gauge(
    "setpoint_right",
    "Whether all resources are in the desired state, like the exit code 0 of `setpoint status`",
);
pub(super) const PROGRAM_WRONG: Family = gauge(
    "setpoint_program_wrong",
    "Whether the newest version of the program, or its graph, is invalid and therefore not in use",
);
pub(super) const PAUSED: Family = gauge("setpoint_paused", "Whether the agent is paused");
pub(super) const NOOP: Family = gauge("setpoint_noop", "Whether all repairs are disabled");
pub(super) const STORE_UP: Family = gauge(
    "setpoint_store_up",
    "Whether etcd responds. Missing without `--etcd-endpoints`",
);
pub(super) const STORE_REQUESTS: Family = counter(
    "setpoint_store_requests",
    "Requests to etcd: answered, rejected, or without a response",
);
pub(super) const STORE_DURATIONS: Family = histogram(
    "setpoint_store_request_duration_seconds",
    "Duration of requests to etcd, with or without a response",
);
pub(super) const CPU: Family = counter("process_cpu_seconds", "CPU time of the process, all threads");
pub(super) const RESIDENT: Family = gauge("process_resident_memory_bytes", "Resident memory of the process");
pub(super) const VIRTUAL: Family = gauge("process_virtual_memory_bytes", "Address space of the process");
pub(super) const OPEN_DESCRIPTORS: Family = gauge("process_open_fds", "Open file descriptors of the process");
pub(super) const MOST_DESCRIPTORS: Family =
    gauge("process_max_fds", "Maximum number of open file descriptors");
pub(super) const THREADS: Family = gauge("process_threads", "Threads of the process");
pub(super) const STARTED: Family = gauge(
    "process_start_time_seconds",
    "Start time of the process, in seconds since 1970",
);
