//! Makes resources of those instances whose entities are bound to a kind.
//!
//! ```text
//! instances ─ Bindings ─▶ resources of all machines, in the order of creation ─ order ─▶ with requirements and states
//!                                          └ of one machine ─▶ statements ─ Assembler ─▶ desired graph
//! ```
//!
//! A model describes all machines, and every machine executes the same one; [`export`] gives what is described, and [`machine_outputs`]
//! what of it one machine keeps. What is not known is not applied: a resource with an unknown parameter is held, and so is everything that
//! requires it.

mod binding_file;
pub mod bindings;
pub mod codes;
mod convert;
mod desired;
pub mod gates;
mod language;
mod order;
mod resource;
mod update;

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use setpoint_cf_functions::context::Read;
use setpoint_cf_names::datum::{Datum, Deferred, DeferredSource, InstanceId};
use setpoint_cf_names::hir::Model;
use setpoint_diagnostics::{Diagnostic, Diagnostics, Span};
use setpoint_graph::{MetaName, ParameterSchema, StatementOutput};
use setpoint_value::Value;

pub use binding_file::BindingFile;
pub use bindings::{Bindings, Executed, Identified, Identity};
pub use desired::{
    Deferrals, HeldResource, Machine, MachineOutputs, StatementOf, machine_outputs, updated_outputs,
};
pub use language::{LANGUAGE, ModelLanguage};

use gates::RequiredElsewhere;
use update::Watched;

/// What may be chosen about an export.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExportOptions {
    /// Whether requirements of plain entities are followed to the resources behind them.
    pub flatten_requires: bool,
}

/// The resources of all machines.
#[derive(Debug, Default)]
pub struct Exported {
    /// In the order in which their instances were created.
    pub resources: Vec<Resource>,
    /// Of members that may change: the instances that are resources, or not, because of them.
    readers: FxHashMap<(InstanceId, u32), Vec<InstanceId>>,
    /// What resources of other machines require.
    elsewhere: RequiredElsewhere,
    /// Members that may change and were read for more than one resource.
    shared: FxHashSet<(InstanceId, u32)>,
}

impl Exported {
    /// The resource that an instance is, if it is one.
    #[must_use]
    pub fn of_instance(&self, instance: InstanceId) -> Option<&Resource> {
        let found = self
            .resources
            .binary_search_by_key(&instance, |resource| resource.instance);
        found.ok().map(|at| &self.resources[at])
    }

    /// The facts that parameters are filled with when their resources are applied: `machine/kind[name]/fact`.
    pub fn deferred_facts(&self) -> impl Iterator<Item = String> + '_ {
        let parameters = self.resources.iter().flat_map(|resource| &resource.parameters);
        let deferred = parameters.flat_map(|parameter| &parameter.deferred);
        deferred.filter_map(|(_, deferred)| match &deferred.source {
            DeferredSource::Fact { resource, fact } => {
                let of = self.of_instance(*resource)?;
                Some(format!("{}/{fact}", of.identity.key()))
            }
            _ => None,
        })
    }
}

/// A resource of some machine.
#[derive(Debug)]
pub struct Resource {
    /// The instance that it is.
    pub instance: InstanceId,
    /// Where that was constructed.
    pub span: Span,
    /// Machine, kind and name.
    pub identity: Identity,
    /// What the kind makes of it: one resource, or none if something is wrong.
    pub built: StatementOutput,
    /// What was set, in the order of the kind's parameters.
    pub parameters: Vec<SetParameter>,
    /// The meta parameters that were set.
    pub meta: Vec<(MetaName, Value)>,
    /// What must be right before it.
    pub requires: Vec<Requirement>,
    /// Whether it can be applied.
    pub state: State,
    /// The resource set that it is in.
    pub set: Option<Arc<str>>,
    /// Whether it is not known if it is to be applied at all.
    is_uncertain: bool,
    /// Whether changes of it are told to those who require it.
    sends_events: bool,
    /// Whether it is told of changes of what it requires.
    receives_events: bool,
}

impl Resource {
    /// The names of the parameters that are not known.
    pub fn unknown(&self) -> impl Iterator<Item = &'static str> + '_ {
        let unknown = self.parameters.iter().filter(|parameter| parameter.is_unknown);
        unknown.map(|parameter| parameter.parameter.name)
    }
}

/// A parameter that is set.
#[derive(Debug)]
pub struct SetParameter {
    /// Which.
    pub parameter: &'static ParameterSchema,
    /// To what. Unknown where the datum is not known, and where it is deferred.
    pub value: Value,
    /// Whether a part of it is not known.
    pub is_unknown: bool,
    /// The deferred references in it, with where they are: the empty path is the whole.
    pub deferred: Vec<(String, Arc<Deferred>)>,
    /// Where it was given its value.
    pub span: Span,
}

/// That one resource comes after another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// The number of the other among all resources.
    pub resource: usize,
    /// Whether a change of that one is told.
    pub notify: bool,
    /// What the other sends, and the parameter that takes it.
    pub send: Option<(Arc<str>, &'static str)>,
    /// The assignment that made it.
    pub span: Span,
}

/// Whether a resource can be applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Everything is known.
    Available,
    /// A parameter is not.
    Undefined,
    /// Something that it requires is not.
    SkippedForUndefined,
}

impl State {
    /// `available`, `undefined`, `skipped_for_undefined`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            State::Available => "available",
            State::Undefined => "undefined",
            State::SkippedForUndefined => "skipped_for_undefined",
        }
    }
}

/// The resources of an executed model, with what is wrong with them.
pub fn export(
    model: &Model,
    executed: &dyn Executed,
    bindings: &Bindings,
    options: &ExportOptions,
    diagnostics: &mut Diagnostics,
) -> Exported {
    let mut exported = Exported::default();
    let watched = Watched::of(executed);
    let executed = &watched;
    let mut fates = vec![Fate::Plain; executed.count() as usize];
    for number in 0..executed.count() {
        let instance = InstanceId(number);
        let built = resource::build(model, executed, bindings, instance, diagnostics);
        fates[number as usize] = match built {
            resource::Built::Resource(resource) => {
                exported.resources.push(*resource);
                Fate::Resource(exported.resources.len() - 1)
            }
            resource::Built::LeftOut => Fate::LeftOut,
            resource::Built::Plain => Fate::Plain,
        };
        for member in watched.take_read() {
            exported.readers.entry(member).or_default().push(instance);
        }
    }
    find_duplicates(&exported, diagnostics);
    find_sets(model, executed, bindings, &fates, &mut exported, diagnostics);
    let mut order = order::Order {
        model,
        executed,
        bindings,
        fates: &fates,
        flatten: options.flatten_requires,
        diagnostics,
    };
    order.find_requirements(&mut exported);
    order.find_cycles(&exported);
    order::hold(&mut exported);
    exported.elsewhere = RequiredElsewhere::of(&exported);
    exported.shared.extend(watched.take_read());
    exported
}

/// What became of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It is this resource.
    Resource(usize),
    /// It would be one, but it is not managed, its binding says no, or its name is not known.
    LeftOut,
    /// It is none.
    Plain,
}

/// Two resources of one name meet on a machine also if one of them is for all machines.
fn find_duplicates(exported: &Exported, diagnostics: &mut Diagnostics) {
    let mut by_id: FxHashMap<(&str, &str), Vec<&Resource>> = FxHashMap::default();
    for resource in &exported.resources {
        let identity = &resource.identity;
        let others = by_id.entry((&identity.kind, &identity.name)).or_default();
        let meets = |other: &&&Resource| machines_meet(&other.identity.machine, &identity.machine);
        match others.iter().find(meets) {
            Some(first) => diagnostics.push(twice(first, resource)),
            // One of each machine is enough to find the others.
            None => others.push(resource),
        }
    }
}

fn twice(first: &Resource, second: &Resource) -> Diagnostic {
    let Identity { machine, kind, name } = &second.identity;
    let place = match &**machine {
        "*" => "on every machine".to_owned(),
        machine => format!("on the machine `{machine}`"),
    };
    let message = format!("the resource `{kind}[{name}]` exists more than once {place}");
    let error = Diagnostic::error(&codes::SAME_RESOURCE, second.span, message)
        .of_class("CompilerException")
        .label("the second one");
    let error = match first.span == second.span {
        true => error.note("both are constructed at the same place"),
        false => error.because(first.span, "the first one"),
    };
    error.help("an `index` makes two constructions with the same key one instance")
}

/// Whether a resource of one machine and one of another can be on the same.
fn machines_meet(a: &str, b: &str) -> bool {
    a == b || a == "*" || b == "*"
}

fn find_sets(
    model: &Model,
    executed: &dyn Executed,
    bindings: &Bindings,
    fates: &[Fate],
    exported: &mut Exported,
    diagnostics: &mut Diagnostics,
) {
    let Some(sets) = bindings.sets else { return };
    let (Some(name), Some(members)) = (bindings.symbol("name"), bindings.symbol("resources")) else {
        return;
    };
    let mut first: FxHashMap<usize, Span> = FxHashMap::default();
    for number in 0..executed.count() {
        let set = InstanceId(number);
        if !model.is_below(executed.entity(set), sets) {
            continue;
        }
        let reader = bindings::Reader { model, executed };
        let read = |symbol| reader.slot(set, symbol).map(|slot| executed.member(set, slot));
        let (Some(Read::Value(name)), Some(Read::Value(Datum::List(items)))) = (read(name), read(members))
        else {
            continue;
        };
        let Datum::Text(name) = name.unmarked() else {
            continue;
        };
        for item in items.iter() {
            let Datum::Instance(instance) = item else { continue };
            let Fate::Resource(at) = fates[instance.0 as usize] else {
                continue;
            };
            let resource = &mut exported.resources[at];
            match (&resource.set, first.get(&at)) {
                (Some(other), Some(place)) if other != name => {
                    let id = format!("{}[{}]", resource.identity.kind, resource.identity.name);
                    let message = format!("`{id}` is in the resource sets `{other}` and `{name}`");
                    let error = Diagnostic::error(&codes::TWO_SETS, executed.span(set), message)
                        .of_class("CompilerException")
                        .label("the second set")
                        .because(*place, "the first set")
                        .because(resource.span, "the resource");
                    diagnostics.push(error);
                }
                _ => {
                    resource.set = Some(name.clone());
                    first.insert(at, executed.span(set));
                }
            }
        }
    }
}
