//! The library has exactly the functions that it is said to have.

use std::collections::BTreeMap;

use setpoint_functions::registry;
use setpoint_value::{FunctionSpec, Signature};

use crate::machine::all;

/// Name and signature of each function of the reference, tab-separated, sorted.
const SIGNATURES: &str = include_str!("../signatures.tsv");

fn listed() -> BTreeMap<&'static str, &'static str> {
    let rows = SIGNATURES.lines().skip(1);
    rows.filter_map(|row| row.split_once('\t')).collect()
}

fn offered() -> BTreeMap<String, &'static FunctionSpec> {
    let specs: Vec<&'static FunctionSpec> = all().filter(|s| s.module != "cty").collect();
    specs.into_iter().map(|spec| (spec.to_string(), spec)).collect()
}

#[test]
fn every_function_is_there_with_its_signature_and_any_other_is_an_extension() {
    let (listed, offered) = (listed(), offered());
    for (name, signature) in &listed {
        let spec = offered
            .get(*name)
            .unwrap_or_else(|| panic!("`{name}` is missing"));
        let alternatives = alternatives(signature);
        let parsed: Vec<Signature> = alternatives
            .iter()
            .map(|text| Signature::parse(text).unwrap_or_else(|| panic!("`{name}`: {text}")))
            .collect();
        let named = parsed
            .into_iter()
            .zip(spec.alternatives())
            .map(with_names)
            .collect::<Vec<_>>();
        assert_eq!(spec.alternatives(), named, "`{name}`");
    }
    let wrong: Vec<&String> = offered
        .iter()
        .filter(|(name, spec)| listed.contains_key(name.as_str()) == spec.extension)
        .map(|(name, _)| name)
        .collect();
    assert!(
        wrong.is_empty(),
        "what the reference lacks is marked as `extension`, and nothing else is: {wrong:?}"
    );
    assert_eq!(listed.len(), 329);
}

/// A signature of the reference, in which the parameters that have no name there are called as here.
fn with_names((mut theirs, ours): (Signature, &Signature)) -> Signature {
    let parameters = theirs.parameters.iter_mut().chain(&mut theirs.variadic);
    let names = ours
        .parameters
        .iter()
        .chain(&ours.variadic)
        .map(|parameter| &parameter.name);
    for (parameter, name) in parameters.zip(names) {
        if parameter.name.len() == 1 {
            parameter.name.clone_from(name);
        }
    }
    theirs
}

/// `func() int | func() float` as its parts; the bars of limits stand inside brackets.
fn alternatives(text: &str) -> Vec<String> {
    let parts: Vec<&str> = text.split(" | func").collect();
    parts
        .iter()
        .enumerate()
        .map(|(index, part)| {
            if index == 0 {
                (*part).to_owned()
            } else {
                format!("func{part}")
            }
        })
        .collect()
}

#[test]
fn every_function_is_documented_with_an_example() {
    // What no expression can call, or what answers only in surroundings that examples do not have.
    let without = ["example.vumeter", "panic"];
    for (name, spec) in offered() {
        let first = spec.doc.lines().next().unwrap_or_default();
        assert!(!first.is_empty() && first.ends_with('.'), "`{name}`: {first}");
        assert!(
            !spec.examples.is_empty()
                || without.contains(&name.as_str())
                || name.starts_with("embedded/provisioner."),
            "`{name}` has no example"
        );
        for example in spec.examples {
            assert!(example.call.contains(&*spec.name), "`{name}`: {}", example.call);
        }
    }
}

#[test]
fn every_parameter_says_what_it_is_for_and_what_holds_where_it_may_be_left_out() {
    for spec in all() {
        let signatures = spec.alternatives();
        for parameter in spec.parameter_docs() {
            let said = format!("`{}` of `{spec}`: {parameter:?}", parameter.name);
            assert!(parameter.doc.ends_with('.') && parameter.doc.len() > 5, "{said}");
            let is_needed = |s: &Signature| s.parameters.iter().any(|p| p.name == parameter.name);
            let is_further = |s: &Signature| s.variadic.as_ref().is_some_and(|p| p.name == parameter.name);
            let may_be_left_out = !signatures.iter().all(|s| is_needed(s) || is_further(s));
            assert_eq!(may_be_left_out, !parameter.default.is_empty(), "{said}");
        }
    }
}

#[test]
fn modules_have_their_variables() {
    let registry = registry();
    let variables: Vec<&str> = registry.variables("os").iter().map(|(name, _)| *name).collect();
    assert_eq!(variables, ["family_redhat", "family_debian", "family_archlinux"]);
    assert!(registry.module("res").is_none());
}
