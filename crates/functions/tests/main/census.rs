//! The library has exactly the functions that it is said to have.

use std::collections::BTreeMap;

use setpoint_functions::registry;
use setpoint_value::{FunctionSpec, Signature};

/// Name and signature of each function of the reference, tab-separated, sorted.
const SIGNATURES: &str = include_str!("../signatures.tsv");

fn listed() -> BTreeMap<&'static str, &'static str> {
    let rows = SIGNATURES.lines().skip(1);
    rows.filter_map(|row| row.split_once('\t')).collect()
}

fn offered() -> BTreeMap<String, &'static FunctionSpec> {
    let specs: Vec<&'static FunctionSpec> = crate::machine::all().filter(|s| s.module != "cty").collect();
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
        assert_eq!(spec.alternatives(), parsed, "`{name}`");
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
    let without = [
        "example.vumeter",
        "panic",
        "embedded/provisioner.cli_interface",
        "embedded/provisioner.cli_password",
        "embedded/provisioner.cli_prefix",
        "embedded/provisioner.cli_version",
    ];
    for (name, spec) in offered() {
        let first = spec.doc.lines().next().unwrap_or_default();
        assert!(!first.is_empty() && first.ends_with('.'), "`{name}`: {first}");
        assert!(
            !spec.examples.is_empty() || without.contains(&name.as_str()),
            "`{name}` has no example"
        );
        for example in spec.examples {
            assert!(example.call.contains(&*spec.name), "`{name}`: {}", example.call);
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
