//! Of whom debug output can be wanted.

use std::collections::BTreeSet;

use setpoint_diagnostics::did_you_mean;
use setpoint_engine::KindSpec;
use setpoint_value::Module;

use crate::Assembly;

/// The kinds and functions that there are.
pub(crate) struct Names {
    kinds: Vec<&'static KindSpec>,
    modules: Vec<&'static Module>,
}

impl Names {
    pub(crate) fn of(assembly: &Assembly) -> Names {
        Names {
            kinds: assembly.all_kinds().collect(),
            modules: assembly.modules().to_vec(),
        }
    }

    /// Whether there is a kind of this name. If not: one that is similar.
    pub(super) fn find_kind(&self, name: &str) -> Result<(), Option<String>> {
        let mut kinds = self.kinds.iter().map(|kind| kind.schema.kind);
        match kinds.clone().any(|kind| kind == name) {
            true => Ok(()),
            false => Err(did_you_mean(name, kinds.by_ref())),
        }
    }

    /// Whether there is a kind or a function of this name. If not: one that is similar.
    pub(super) fn find(&self, name: &str) -> Result<(), Option<String>> {
        let kinds = self.kinds.iter().map(|kind| kind.schema.kind.to_owned());
        let functions = self.modules.iter().flat_map(|module| module.functions);
        let functions = functions.flat_map(|function| [function.to_string(), function.called()]);
        let all: BTreeSet<String> = kinds.chain(functions).collect();
        match all.contains(name) {
            true => Ok(()),
            false => Err(did_you_mean(name, all.iter().map(String::as_str))),
        }
    }
}
