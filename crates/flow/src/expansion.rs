//! Resources that stand for others.

use setpoint_diagnostics::Diagnostics;
use setpoint_graph::{DesiredResource, StatementOutput};

/// Knows what takes the place of resources that stand for others, which are described elsewhere: in another language.
///
/// It is asked whenever such a resource is built, so that what takes its place is matched, merged and checked as if the program had
/// said it. The answer must follow from the resource alone.
pub trait Expansion: Send + Sync {
    /// What takes the place of a resource; none for one that stands for itself. What is wrong with it, is told.
    fn expand(&self, resource: &DesiredResource, diagnostics: &mut Diagnostics) -> Option<StatementOutput>;
}
