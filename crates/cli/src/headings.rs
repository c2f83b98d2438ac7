//! Headings of options in `--help`. Most options of `run` are also options of other commands, under the same heading.

/// The program, its inputs and its modules.
pub(crate) const PROGRAM: &str = "Program";
/// The state directory, and when to change something and to exit.
pub(crate) const RUN: &str = "Run";
/// Limits and defaults for resources.
pub(crate) const ENGINE: &str = "Engine";
/// Messages, metrics and images.
pub(crate) const OUTPUT: &str = "Output";
/// Etcd and deploys.
pub(crate) const CLUSTER: &str = "Cluster";
