//! Names that are asked about: of kinds, functions and resources. Of one that there is not: what may be meant.

use std::collections::BTreeSet;

use setpoint_diagnostics::{Closest, closest, did_you_mean};
use setpoint_engine::KindSpec;
use setpoint_graph::{DesiredGraph, ResourceId};
use setpoint_programs::Assembly;
use setpoint_value::Module;
use tokio::task::yield_now;

/// The kinds and functions that there are.
pub(super) struct Names {
    kinds: Vec<&'static KindSpec>,
    /// Kinds and functions, as debug output is asked for.
    speaking: BTreeSet<String>,
}

impl Names {
    pub(super) fn of(assembly: &Assembly) -> Names {
        let kinds: Vec<&'static KindSpec> = assembly.all_kinds().collect();
        let of_kinds = kinds.iter().map(|kind| kind.schema.kind.to_owned());
        let functions = assembly
            .modules()
            .iter()
            .flat_map(|module: &&Module| module.functions);
        let functions = functions.flat_map(|function| [function.to_string(), function.called()]);
        Names {
            speaking: of_kinds.chain(functions).collect(),
            kinds,
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
        match self.speaking.contains(name) {
            true => Ok(()),
            false => Err(did_you_mean(name, self.speaking.iter().map(String::as_str))),
        }
    }
}

/// The resource that is written so, `KIND[NAME]`.
pub(crate) fn resource_named(text: &str) -> Option<ResourceId> {
    let (kind, rest) = text.split_once('[')?;
    let name = rest.strip_suffix(']')?;
    let is_one = !kind.is_empty() && !name.is_empty() && !kind.contains(char::is_whitespace);
    is_one.then(|| ResourceId::new(kind.to_lowercase(), name))
}

/// Resources that are compared before others have a turn on this thread.
const COMPARED_AT_ONCE: usize = 4096;

/// What is probably meant by a resource that is not in the graph.
pub(super) async fn meant_instead(graph: &DesiredGraph, id: &ResourceId) -> Option<String> {
    let first = ResourceId::new(id.kind.clone(), "");
    let mut of_kind = graph.resources.range(first..).peekable();
    if of_kind.peek().is_some_and(|(other, _)| other.kind == id.kind) {
        let mut search = Closest::to(&id.name);
        for (at, (other, _)) in of_kind.take_while(|(other, _)| other.kind == id.kind).enumerate() {
            search.offer(&other.name);
            if at % COMPARED_AT_ONCE == COMPARED_AT_ONCE - 1 {
                yield_now().await;
            }
        }
        return search
            .found()
            .map(|name| format!("did you mean `{}[{name}]`?", id.kind));
    }
    let kinds = kinds_of(graph);
    let close = closest(&id.kind, kinds.iter().copied())?;
    Some(match graph.resource(close, &id.name) {
        Some(_) => format!("did you mean `{close}[{}]`?", id.name),
        None => format!("did you mean the kind `{close}`?"),
    })
}

/// The kinds that the graph has resources of. Each is found at once, behind all resources of the one before.
fn kinds_of(graph: &DesiredGraph) -> Vec<&str> {
    let mut kinds: Vec<&str> = Vec::new();
    let mut next = graph.resources.get_min().map(|(id, _)| id);
    while let Some(id) = next {
        kinds.push(&id.kind);
        let behind = ResourceId::new(format!("{}\0", id.kind), "");
        next = graph.resources.range(behind..).next().map(|(id, _)| id);
    }
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_resources_are_read_whatever_they_hold() {
        let read = |text: &str| resource_named(text).map(|id| id.to_string());
        assert_eq!(read("File[/a]").as_deref(), Some("file[/a]"));
        assert_eq!(read("exec[a[b] c]").as_deref(), Some("exec[a[b] c]"));
        for wrong in ["", "file", "file[", "[x]", "file[]", "a b[c]", "file[x] "] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
