//! Several resources of one identity: hidden ones live side by side, others become one or contradict.

use std::collections::BTreeMap;
use std::sync::Arc;

use setpoint_value::{Marks, Type, Value};

use super::Contributor;
use crate::{DesiredResource, MetaName, MetaParameters, ParameterSchema, ParameterType, Parameters};

/// What the resources of an identity come to.
pub(super) struct Combined {
    pub(super) normal: Option<Arc<DesiredResource>>,
    pub(super) hidden: Vec<Arc<DesiredResource>>,
    pub(super) problems: Vec<Problem>,
}

/// Two contributors, by index, that contradict.
pub(super) struct Problem {
    pub(super) later: usize,
    pub(super) first: usize,
    pub(super) contradiction: Contradiction,
}

pub(super) enum Contradiction {
    /// Neither equal nor mergeable.
    Different(Difference),
    /// The kind's own merging refuses, or meta parameters differ.
    Incompatible(Difference),
    /// Both go to this host.
    Export(String),
}

/// The first thing in which two resources differ.
pub(super) enum Difference {
    Parameter(&'static str),
    Meta(MetaName),
}

pub(super) fn combine<K>(contributors: &[Contributor<K>]) -> Combined {
    let mut combined = Combined {
        normal: None,
        hidden: Vec::new(),
        problems: Vec::new(),
    };
    let mut first_normal = 0;
    for (index, contributor) in contributors.iter().enumerate() {
        let resource = &contributor.resource;
        if resource.meta.hidden {
            if !combined.hidden.iter().any(|other| other.is_equal(resource)) {
                combined.hidden.push(resource.clone());
            }
            continue;
        }
        let Some(so_far) = &combined.normal else {
            first_normal = index;
            combined.normal = Some(resource.clone());
            continue;
        };
        match together(so_far, resource) {
            Ok(None) => {}
            Ok(Some(merged)) => combined.normal = Some(Arc::new(merged)),
            Err(contradiction) => combined.problems.push(Problem {
                later: index,
                first: first_normal,
                contradiction,
            }),
        }
    }
    if contributors.len() > 1 {
        exports(contributors, &mut combined.problems);
    }
    combined
}

/// Two resources as one: none if the first already says everything.
fn together(
    first: &DesiredResource,
    later: &DesiredResource,
) -> Result<Option<DesiredResource>, Contradiction> {
    let kind_merges = first.schema.merge;
    let contradiction = |difference| match kind_merges {
        Some(_) => Contradiction::Incompatible(difference),
        None => Contradiction::Different(difference),
    };
    if let Some(name) = meta_difference(&first.meta, &later.meta) {
        return Err(contradiction(Difference::Meta(name)));
    }
    let parameters = match united(first, later) {
        Ok(None) => return Ok(None),
        Ok(Some(parameters)) => parameters,
        Err(name) => {
            let merged = kind_merges.and_then(|merge| merge(&first.parameters, &later.parameters));
            let mut both = first.parameters.iter().chain(later.parameters.iter());
            match merged {
                Some(parameters) => parameters,
                // What is unknown may turn out compatible.
                None if kind_merges.is_some() && both.any(|(_, value)| !value.is_wholly_known()) => {
                    return Ok(None);
                }
                None => return Err(contradiction(Difference::Parameter(name))),
            }
        }
    };
    let mut spans = first.parameter_spans.to_vec();
    for (name, span) in later.parameter_spans.iter() {
        if spans.iter().all(|(other, _)| other != name) {
            spans.push((name, *span));
        }
    }
    Ok(Some(DesiredResource {
        parameters,
        parameter_spans: spans.into(),
        ..first.clone()
    }))
}

/// `retryreset` does not count between duplicates: the first one's holds.
fn meta_difference(a: &MetaParameters, b: &MetaParameters) -> Option<MetaName> {
    if a == b {
        return None;
    }
    a.differences(b).find(|name| *name != MetaName::Retryreset)
}

/// The parameters of two resources that say the same: marks are united, an unknown gives way to a known value, one that
/// is not set equals its default. None if that is what `first` has.
///
/// # Errors
/// The first parameter in which they differ.
fn united(first: &DesiredResource, later: &DesiredResource) -> Result<Option<Parameters>, &'static str> {
    if first.parameters == later.parameters {
        return Ok(None);
    }
    let mut over: Vec<(&'static str, Value)> = Vec::new();
    for (name, value) in later.parameters.iter() {
        match first.parameters.get(name) {
            Some(other) => {
                let value = one_value(other, value).ok_or(name)?;
                if value != *other {
                    over.push((name, value));
                }
            }
            None if is_default(first, name, value) => over.push((name, value.clone())),
            None => return Err(name),
        }
    }
    for (name, value) in first.parameters.iter() {
        if later.parameters.get(name).is_none() && !is_default(first, name, value) {
            return Err(name);
        }
    }
    Ok((!over.is_empty()).then(|| first.parameters.overlaid(over)))
}

fn one_value(a: &Value, b: &Value) -> Option<Value> {
    if a == b {
        return Some(a.clone());
    }
    let mut marks = Marks::none();
    let (plain_a, plain_b) = (a.unmark_deep(&mut marks), b.unmark_deep(&mut marks));
    if plain_a == plain_b || !plain_b.is_wholly_known() {
        Some(plain_a.with_marks(&marks))
    } else if !plain_a.is_wholly_known() {
        Some(plain_b.with_marks(&marks))
    } else {
        None
    }
}

/// Whether a value says no more than leaving the parameter out. An unknown one may be left out in the end.
fn is_default(resource: &DesiredResource, name: &str, value: &Value) -> bool {
    if !value.is_wholly_known() {
        return true;
    }
    let default = resource.schema.parameter(name).and_then(default_value);
    default.is_some_and(|default| default == value.unmark_deep(&mut Marks::none()))
}

/// What holds when a parameter is not set, where the description says it as a literal. Unset and default differ for
/// optional parameters.
fn default_value(parameter: &ParameterSchema) -> Option<Value> {
    if matches!(
        parameter.parameter_type,
        ParameterType::Optional(_) | ParameterType::Any
    ) {
        return None;
    }
    let ty = parameter.parameter_type.ty();
    let text = parameter.default.trim().trim_matches(['`', '"']);
    if parameter.default.is_empty() {
        return Value::zero(&ty).filter(|_| !ty.contains_func());
    }
    match ty {
        Type::Bool => text.parse().ok().map(Value::Bool),
        Type::Int => text.parse().ok().map(Value::Int),
        Type::Float => text.parse().ok().map(Value::float),
        Type::Str => Some(Value::str(text)),
        _ => None,
    }
}

/// Exports of one identity to one host must be identical. Between two that are applied here, that has been said already.
fn exports<K>(contributors: &[Contributor<K>], problems: &mut Vec<Problem>) {
    let mut by_host: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, contributor) in contributors.iter().enumerate() {
        let resource = &contributor.resource;
        let mut reported = false;
        for host in &resource.meta.export {
            let first = *by_host.entry(host).or_insert(index);
            let other = &contributors[first].resource;
            let either_hidden = resource.meta.hidden || other.meta.hidden;
            if either_hidden && !reported && !other.is_equal(resource) {
                reported = true;
                problems.push(Problem {
                    later: index,
                    first,
                    contradiction: Contradiction::Export(host.clone()),
                });
            }
        }
    }
}
