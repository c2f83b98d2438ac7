//! Instances as texts of values and type checks see them, apart from the rest of the machine.

use rustc_hash::FxHashMap;
use setpoint_cf_names::datum::{InstanceId, Instances};
use setpoint_cf_names::ids::EntityId;
use setpoint_diagnostics::{SourceMap, Span};

use super::Instance;
use super::blocks::Blocks;

/// The part of a machine that names instances.
pub(super) struct InstanceView<'a> {
    pub(super) instances: &'a Blocks<Instance>,
    pub(super) constructed_again: &'a FxHashMap<InstanceId, Vec<Span>>,
    pub(super) sources: &'a SourceMap,
}

impl Instances for InstanceView<'_> {
    fn entity(&self, instance: InstanceId) -> EntityId {
        self.instances[instance.0 as usize].entity
    }

    fn places(&self, instance: InstanceId) -> Vec<String> {
        let first = self.instances[instance.0 as usize].span;
        let again = self.constructed_again.get(&instance).into_iter().flatten();
        std::iter::once(&first)
            .chain(again)
            .map(|span| place_text(self.sources, *span))
            .collect()
    }
}

/// `file:line`.
pub(super) fn place_text(sources: &SourceMap, span: Span) -> String {
    match sources.files().nth(span.file.0 as usize) {
        Some((_, file)) => format!("{}:{}", file.name, file.position(span.start).line),
        None => "?".to_owned(),
    }
}

/// Evaluates something with a [`setpoint_cf_functions::text::Naming`] of a machine's instances, while the machine's other fields stay free.
macro_rules! naming {
    ($machine:expr, $naming:ident => $body:expr) => {{
        let view = $crate::execute::view::InstanceView {
            instances: &$machine.instances,
            constructed_again: &$machine.constructed_again,
            sources: &$machine.sources,
        };
        let $naming = setpoint_cf_functions::text::Naming {
            model: $machine.model,
            instances: &view,
        };
        $body
    }};
}

pub(super) use naming;
