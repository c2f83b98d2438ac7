//! What changes step by step is what is found at once.

use super::*;
use crate::Managed;
use crate::Sort;

static PLACE: Sort = Sort::exact("place").managed_by_one(Managed {
    noun: "place",
    aliases: |key| vec![key.to_vec()],
});
static PART: Sort = Sort::partial("part", |wanted, other| other.starts_with(wanted));

fn id(number: u64) -> ResourceId {
    ResourceId::new("k", format!("{number:05}"))
}

fn edge(from: u64, to: u64) -> Arc<DesiredEdge> {
    let nowhere = Span::new(setpoint_diagnostics::FileId(0), 0, 0);
    automatic_edge(&id(from), &id(to), nowhere)
}

fn wanting(order: WantedOrder, reach: WantedReach, identities: Vec<Identity>) -> Wanted {
    Wanted {
        order,
        identities,
        reach,
    }
}

impl AutomaticEdges {
    fn all(&self) -> BTreeSet<Pair> {
        self.uses.keys().map(|pair| self.pair(*pair)).collect()
    }
}

fn fresh(graph: &DesiredGraph, all: &BTreeMap<u64, Interests>) -> AutomaticEdges {
    let mut edges = AutomaticEdges::default();
    let change = setpoint_graph::diff(&DesiredGraph::default(), graph);
    edges.take_written(&change, graph).unwrap();
    let all = all
        .iter()
        .map(|(number, interests)| (id(*number), interests.clone()));
    edges.update(graph, std::iter::empty(), all.collect());
    edges
}

#[test]
fn changes_one_by_one_give_what_all_at_once_gives() {
    let mut state = 11u64;
    let mut random = move |bound: u64| {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 33) % bound
    };
    for _ in 0..60 {
        let mut kept = AutomaticEdges::default();
        let mut all: BTreeMap<u64, Interests> = BTreeMap::new();
        let mut graph = DesiredGraph::default();
        let mut known: BTreeSet<Pair> = BTreeSet::new();
        for _ in 0..60 {
            let before = graph.clone();
            let (mut removed, mut changed) = (Vec::new(), Vec::new());
            match random(5) {
                0 => {
                    let (from, to) = (random(8), random(8));
                    let key = (id(from), id(to));
                    if graph.edges.remove(&key).is_none() && from < to {
                        graph.edges.insert(key, edge(from, to));
                    }
                }
                1 => {
                    let number = random(8);
                    if all.remove(&number).is_some() {
                        removed.push(id(number));
                    }
                }
                _ => {
                    let number = random(8);
                    let mut some = |sort: &'static Sort| -> Vec<Identity> {
                        let count = random(3);
                        (0..count)
                            .map(|_| sort.identity([random(4) as u8 + b'a'].as_slice()))
                            .collect()
                    };
                    let has = [some(&PLACE), some(&PART)].concat();
                    let wants = vec![
                        wanting(WantedOrder::FoundFirst, WantedReach::Each, some(&PLACE)),
                        wanting(WantedOrder::FoundAfter, WantedReach::First, some(&PLACE)),
                        wanting(WantedOrder::FoundFirst, WantedReach::First, some(&PART)),
                        wanting(WantedOrder::FoundFirst, WantedReach::All, some(&PLACE)),
                    ];
                    let takes_part = random(6) > 0;
                    let interests = Interests {
                        has,
                        wants: if takes_part { wants } else { Vec::new() },
                        takes_part,
                        untold: None,
                    };
                    all.insert(number, interests.clone());
                    changed.push((id(number), interests));
                }
            }
            let change = setpoint_graph::diff(&before, &graph);
            kept.take_written(&change, &graph).unwrap();
            let change = kept.update(&graph, removed.into_iter(), changed);
            for pair in change.removed {
                assert!(known.remove(&pair), "{pair:?} was there");
            }
            for pair in change.added {
                assert!(known.insert(pair.clone()), "{pair:?} was not there");
            }
            let at_once = fresh(&graph, &all);
            assert_eq!(known, kept.all());
            assert_eq!(kept.all(), at_once.all(), "{all:?} {graph:?}");
            assert_eq!(kept.sharing, at_once.sharing);
            assert_eq!(kept.is_to_be_found_anew, at_once.is_to_be_found_anew);
        }
    }
}

#[test]
fn one_resource_among_many_costs_a_look_at_itself_and_at_who_wants_it() {
    let graph = DesiredGraph::default();
    let directory = |key: &[u8]| PLACE.identity(key);
    let file = |number: u64| Interests {
        has: vec![PLACE.identity(format!("/d/{number}").into_bytes())],
        wants: vec![wanting(
            WantedOrder::FoundFirst,
            WantedReach::First,
            vec![directory(b"/d/"), directory(b"/")],
        )],
        takes_part: true,
        untold: None,
    };
    let mut edges = AutomaticEdges::default();
    let top = Interests {
        has: vec![directory(b"/d/")],
        wants: Vec::new(),
        takes_part: true,
        untold: None,
    };
    let mut all = vec![(id(0), top)];
    all.extend((1..=2000).map(|number| (id(number), file(number))));
    let first = edges.update(&graph, std::iter::empty(), all);
    assert_eq!((first.added.len(), first.looked_at), (2000, 2001));
    let more = edges.update(&graph, std::iter::empty(), vec![(id(3000), file(3000))]);
    assert_eq!((more.added, more.looked_at), (vec![(id(0), id(3000))], 1));
    let less = edges.update(&graph, std::iter::once(id(7)), Vec::new());
    assert_eq!((less.removed, less.looked_at), (vec![(id(0), id(7))], 0));
    assert_eq!(less.view.removed.len(), 1);
    let gone = edges.update(&graph, std::iter::once(id(0)), Vec::new());
    assert_eq!((gone.removed.len(), gone.looked_at), (2000, 2000));
    // Nothing is left of what is gone.
    let rest = (1..=3000).map(id);
    edges.update(&graph, rest, Vec::new());
    assert!(edges.identities.by_identity.is_empty() && edges.places.is_empty());
    assert!(edges.all().is_empty());
}
