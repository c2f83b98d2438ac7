//! Properties over random programs and random histories.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::{prop_assert, prop_assert_eq, proptest};
use setpoint_graph::{
    Assembler, DesiredGraph, EdgeProperty, MetaName, StatementOutput, UnknownPart, UnknownWhat, diff,
};
use setpoint_value::{Type, Value};

use crate::kinds::{PLAIN, Resource, assemble, at, chain, resource, send, test};

/// Few names, so that duplicates, edges and cycles are common.
const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

fn name() -> impl Strategy<Value = &'static str> {
    (0..NAMES.len()).prop_map(|i| NAMES[i])
}

fn statement() -> impl Strategy<Value = StatementOutput> {
    let base = (vec(name(), 1..3), 0..8u8).prop_map(|(names, variant)| {
        let names = Value::strings(names);
        let package =
            |state: &str| resource(&crate::kinds::PACKAGE, names.clone()).set("state", Value::str(state));
        match variant {
            0 => test(names).text("other"),
            1 => test(names).hidden(),
            2 => test(names)
                .text("hidden")
                .hidden()
                .meta(MetaName::Export, Value::strings(["h"])),
            3 => package("newest"),
            4 => package("installed"),
            5 => package("absent"),
            6 => test(names).set("anotherstr", Value::unknown(Type::Str)),
            _ => test(names),
        }
    });
    let property = prop_oneof![
        Just(EdgeProperty::Before),
        Just(EdgeProperty::Notify),
        Just(EdgeProperty::Depend),
        Just(EdgeProperty::Listen)
    ];
    let kind = prop_oneof![4 => Just("test"), 1 => Just("pkg")];
    let with_edges = (base, vec((property, kind, name()), 0..2), 0..50u32).prop_map(
        |(resource, edges, start): (Resource, Vec<_>, u32)| {
            let resource = resource.span(start);
            let add = |r: Resource, (property, kind, name)| r.edge(property, kind, name);
            edges.into_iter().fold(resource, add).output()
        },
    );
    let chains = vec(name(), 2..4).prop_map(|names| {
        let endpoints: Vec<(&str, &str)> = names.into_iter().map(|name| ("test", name)).collect();
        chain(&endpoints)
    });
    let key = prop_oneof![Just("hello"), Just("answer")];
    let sends = (name(), key, name()).prop_map(|(from, key, to)| send(from, key, to, "interface"));
    let unknown = any::<bool>().prop_map(|is_block| StatementOutput {
        unknown: vec![UnknownPart {
            span: at(0),
            what: if is_block {
                UnknownWhat::Block
            } else {
                UnknownWhat::Name("test".into())
            },
        }],
        ..StatementOutput::default()
    });
    prop_oneof![10 => with_edges, 3 => chains, 2 => sends, 1 => unknown]
}

type Changes = Vec<(u8, Option<Arc<StatementOutput>>)>;

fn history() -> impl Strategy<Value = Vec<Changes>> {
    let change = (
        0..8u8,
        proptest::option::weighted(0.7, statement().prop_map(Arc::new)),
    );
    vec(vec(change, 0..4), 1..12)
}

/// Programs without edges against the order of names are mostly free of errors.
fn graph() -> impl Strategy<Value = DesiredGraph> {
    let resources = vec((name(), proptest::option::of(0..3u8), any::<bool>()), 0..8);
    let edges = vec((0..NAMES.len(), 0..NAMES.len(), any::<bool>()), 0..6);
    (resources, edges).prop_map(|(resources, edges)| {
        let mut statements: BTreeMap<String, StatementOutput> = BTreeMap::new();
        for name in NAMES {
            statements.insert(name.to_owned(), test(name).output());
        }
        for (name, text, is_hidden) in resources {
            let mut r = test(name);
            if let Some(text) = text {
                r = r.text(&text.to_string());
            }
            if is_hidden {
                statements.insert(format!("hidden {name} {text:?}"), r.hidden().output());
            } else {
                statements.insert(name.to_owned(), r.output());
            }
        }
        for (i, j, is_send) in edges {
            let (low, high) = (NAMES[i.min(j)], NAMES[i.max(j)]);
            let hides = statements.contains_key(&format!("hidden {low} None"));
            if i != j && !(is_send && hides) {
                statements.insert(
                    format!("edge {low} {high}"),
                    chain(&[("test", low), ("test", high)]),
                );
            }
        }
        assemble(statements.into_values()).expect("it is made to be right")
    })
}

/// Whether all resources of two graphs are written in the same places.
fn same_places(a: &DesiredGraph, b: &DesiredGraph) -> bool {
    let all = |graph: &DesiredGraph| -> Vec<_> {
        let hidden = graph.hidden.values().flatten();
        graph.resources.values().chain(hidden).cloned().collect()
    };
    let (a, b) = (all(a), all(b));
    a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| a.is_interchangeable(b))
}

proptest! {
    #[test]
    fn assembling_step_by_step_gives_what_assembling_at_once_gives(history in history()) {
        let mut assembler = Assembler::new(&PLAIN);
        let mut present: BTreeMap<u8, Arc<StatementOutput>> = BTreeMap::new();
        let mut generation = 0;
        let mut published = DesiredGraph::default();
        for changes in history {
            for (key, output) in &changes {
                match output {
                    Some(output) => present.insert(*key, output.clone()),
                    None => present.remove(key),
                };
            }
            let step = assembler.apply(changes);
            let all = present.iter().map(|(key, output)| (*key, Some(output.clone())));
            let at_once = Assembler::new(&PLAIN).apply(all.collect());
            match (step, at_once) {
                (Ok(step), Ok(at_once)) => {
                    prop_assert_eq!(&step.resources, &at_once.resources);
                    prop_assert_eq!(&step.hidden, &at_once.hidden);
                    prop_assert_eq!(&step.edges, &at_once.edges);
                    prop_assert_eq!(step.check(), Ok(()));
                    let is_another = generation == 0
                        || !same_places(&step, &published)
                        || step.resources != published.resources
                        || step.hidden != published.hidden
                        || step.edges != published.edges;
                    prop_assert_eq!(step.generation, generation + u64::from(is_another));
                    generation = step.generation;
                    published = step;
                }
                (Err(step), Err(at_once)) => prop_assert_eq!(step, at_once),
                (step, at_once) => {
                    prop_assert!(false, "step by step: {:?}\nat once: {:?}", step, at_once);
                }
            }
        }
    }

    #[test]
    fn applying_the_difference_gives_the_other_graph(a in graph(), b in graph()) {
        let change = diff(&a, &b);
        let applied = change.apply(&a);
        prop_assert!(applied.is_equal(&b));
        prop_assert_eq!(applied.generation, b.generation);
        prop_assert!(diff(&a, &a).is_empty());
        let back = diff(&b, &a);
        prop_assert_eq!(change.added.len(), back.removed.len());
        prop_assert_eq!(change.edges_added.len(), back.edges_removed.len());
    }

    #[test]
    fn edges_that_come_and_go_are_refused_exactly_while_they_form_a_circle(
        toggles in vec((0..12u8, 0..12u8), 1..60),
    ) {
        let name = |number: u8| format!("r{number}");
        let mut assembler = Assembler::new(&PLAIN);
        let resources = (0..12).map(|i| ((0, i, 0), Some(Arc::new(test(name(i).as_str()).output()))));
        assembler.apply(resources.collect()).expect("there are no edges yet");
        let mut present = std::collections::BTreeSet::new();
        for (from, to) in toggles {
            let output = present.insert((from, to)).then(|| {
                Arc::new(chain(&[("test", &name(from)), ("test", &name(to))]))
            });
            if output.is_none() {
                present.remove(&(from, to));
            }
            let result = assembler.apply(vec![((1, from, to), output)]);
            let mut left = present.clone();
            loop {
                let waiting: Vec<u8> = left.iter().map(|(_, to)| *to).collect();
                let before = left.len();
                left.retain(|(from, _)| waiting.contains(from));
                if left.len() == before {
                    break;
                }
            }
            prop_assert_eq!(result.is_ok(), left.is_empty(), "{:?}", present);
        }
    }

    #[test]
    fn a_reported_cycle_is_one(endpoints in vec((0..6usize, 0..6usize), 1..14)) {
        let names = ["a", "b", "c", "d", "e", "f"];
        let mut outputs: Vec<StatementOutput> = names.iter().map(|name| test(*name).output()).collect();
        outputs.extend(endpoints.iter().map(|(i, j)| chain(&[("test", names[*i]), ("test", names[*j])])));
        if let Err(diagnostics) = assemble(outputs) {
            for diagnostic in diagnostics {
                let path = diagnostic.message.rsplit(": ").next().unwrap_or_default();
                let path: Vec<usize> = path
                    .split(" -> ")
                    .map(|id| names.iter().position(|name| id == format!("test[{name}]")).unwrap())
                    .collect();
                prop_assert_eq!(path.first(), path.last());
                prop_assert!(path.len() > 1);
                for pair in path.windows(2) {
                    prop_assert!(endpoints.contains(&(pair[0], pair[1])));
                }
            }
        }
    }
}
