//! What statements make, and the graph of all of it (rules of mcl, 7.8 and 7.9), as naively as the interpreter.

use std::collections::{BTreeMap, BTreeSet};

use setpoint_graph::{DesiredGraph, DesiredResource, MetaName};

use super::datum::Datum;
use super::interpreter::{Failure, Outcome};

/// Kind and name.
pub(crate) type Id = (String, String);

/// What an edge sends, and where it goes.
type Sent = BTreeSet<(String, String)>;

/// A graph as sorted lines: all that can be said about each resource and each edge.
pub(crate) type Graph = Vec<String>;

/// A resource that a statement makes: what it sets.
#[derive(Clone)]
pub(crate) struct Made {
    kind: String,
    pub(crate) parameters: BTreeMap<String, Datum>,
    pub(crate) meta: BTreeMap<String, Datum>,
}

/// An edge that a statement makes.
pub(crate) struct Edge {
    pub(crate) from: Id,
    pub(crate) to: Id,
    pub(crate) notify: bool,
    /// What is sent and where it goes.
    pub(crate) send: Option<(String, String)>,
}

/// Everything that statements make.
#[derive(Default)]
pub(crate) struct Output {
    pub(crate) resources: Vec<(Id, Made)>,
    pub(crate) edges: Vec<Edge>,
}

/// What holds where a program sets nothing.
fn meta_defaults() -> BTreeMap<String, Datum> {
    let of = |names: &[&str], value: &Datum| -> Vec<(String, Datum)> {
        names
            .iter()
            .map(|name| ((*name).to_owned(), value.clone()))
            .collect()
    };
    let no = [
        "noop",
        "retryreset",
        "reset",
        "rewatch",
        "realize",
        "dollar",
        "hidden",
        "reverse",
    ];
    [
        of(&no, &Datum::Bool(false)),
        of(&["autoedge", "autogroup"], &Datum::Bool(true)),
        of(&["retry", "delay", "timeout", "poll", "burst"], &Datum::Int(0)),
        of(&["limit"], &Datum::Float(f64::INFINITY)),
        of(&["sema", "export"], &Datum::List(Vec::new())),
    ]
    .into_iter()
    .flatten()
    .collect()
}

impl Made {
    pub(crate) fn new(kind: &str) -> Made {
        Made {
            kind: kind.to_owned(),
            parameters: BTreeMap::new(),
            meta: meta_defaults(),
        }
    }

    fn is(&self, meta: &str) -> bool {
        matches!(self.meta.get(meta), Some(Datum::Bool(true)))
    }

    fn number(&self, meta: &str) -> i64 {
        match self.meta.get(meta) {
            Some(Datum::Int(number)) => *number,
            _ => 0,
        }
    }

    /// What is refused whatever the kind is, and numbers that do not fit their parameter.
    fn check(&self, name: &str) -> Outcome<()> {
        let refuse = |reason: &str| Err(Failure::fatal(format!("{}[{name}]: {reason}", self.kind)));
        if name.is_empty() {
            return refuse("an empty name");
        }
        if name.starts_with('$') && !self.is("dollar") {
            return refuse("a name that begins with a dollar");
        }
        if i16::try_from(self.number("retry")).is_err() || i32::try_from(self.number("poll")).is_err() {
            return refuse("a meta parameter that does not fit");
        }
        if ["delay", "timeout", "burst"]
            .iter()
            .any(|meta| self.number(meta) < 0)
        {
            return refuse("a negative meta parameter");
        }
        let is_finite = matches!(self.meta.get("limit"), Some(Datum::Float(limit)) if limit.is_finite());
        if is_finite && self.number("burst") == 0 {
            return refuse("a limit without burst");
        }
        if let Some(Datum::List(semaphores)) = self.meta.get("sema") {
            let is_bad = |item: &Datum| match item {
                Datum::Str(text) => text.is_empty() || text.parse::<i64>().is_ok(),
                _ => true,
            };
            if semaphores.iter().any(is_bad) {
                return refuse("a semaphore without a name");
            }
        }
        for (parameter, value) in &self.parameters {
            let Datum::Int(number) = value else { continue };
            let fits = match &**parameter {
                "int8" | "int8ptr" => i8::try_from(*number).is_ok(),
                "int16" => i16::try_from(*number).is_ok(),
                "int32" => i32::try_from(*number).is_ok(),
                "uint8" => u8::try_from(*number).is_ok(),
                "uint16" => u16::try_from(*number).is_ok(),
                "uint64" => u64::try_from(*number).is_ok(),
                _ => true,
            };
            if !fits {
                return refuse("a number that does not fit");
            }
        }
        Ok(())
    }

    fn line(&self, name: &str) -> String {
        let hidden = if self.is("hidden") { "hidden " } else { "" };
        line(hidden, &self.kind, name, &self.parameters, &self.meta)
    }

    /// What two of one name must have alike.
    fn comparable(&self) -> String {
        let mut meta = self.meta.clone();
        meta.remove("retryreset");
        for list in ["sema", "export"] {
            if let Some(Datum::List(items)) = meta.get_mut(list) {
                items.sort_by(Datum::order);
            }
        }
        let says_more = |(name, value): &(&String, &Datum)| !is_default(name, value);
        let parameters = self.parameters.iter().filter(says_more);
        let parameters = parameters
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        line("", &self.kind, "", &parameters, &meta)
    }
}

/// Whether a parameter is what it would be if it were left out. Where leaving it out is something of its own, no value is.
fn is_default(name: &str, value: &Datum) -> bool {
    !(name.ends_with("ptr") || name == "interface" || name == "content")
        && match value {
            Datum::Bool(value) => !value,
            Datum::Int(value) => *value == 0,
            Datum::Float(value) => *value == 0.0,
            Datum::Str(text) => text.is_empty(),
            Datum::List(items) => items.is_empty(),
            Datum::Map(entries) => entries.is_empty(),
            Datum::Struct(_) | Datum::Func(_) => false,
        }
}

fn line(
    hidden: &str,
    kind: &str,
    name: &str,
    parameters: &BTreeMap<String, Datum>,
    meta: &BTreeMap<String, Datum>,
) -> String {
    let written = |values: &BTreeMap<String, Datum>| {
        let values = values
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.exact()));
        values.collect::<Vec<_>>().join(", ")
    };
    let defaults = meta_defaults();
    let is_set = |name: &String, value: &Datum| defaults.get(name).is_none_or(|d| d.exact() != value.exact());
    let meta = meta.iter().filter(|(name, value)| is_set(name, value));
    let meta = meta.map(|(name, value)| (name.clone(), value.clone())).collect();
    format!(
        "{hidden}{kind}[{name:?}] {{{}}} meta {{{}}}",
        written(parameters),
        written(&meta)
    )
}

fn edge_line(from: (&str, &str), to: (&str, &str), notify: bool, send: &Sent) -> String {
    let notify = if notify { " notifies" } else { "" };
    format!(
        "{}[{:?}] -> {}[{:?}]{notify} {send:?}",
        from.0, from.1, to.0, to.1
    )
}

impl Output {
    /// The graph, unless something about it is wrong.
    pub(crate) fn graph(self) -> Outcome<Graph> {
        let mut lines = BTreeSet::new();
        let mut normal: BTreeMap<&Id, Made> = BTreeMap::new();
        let mut hidden: BTreeSet<&Id> = BTreeSet::new();
        for (id, made) in &self.resources {
            made.check(&id.1)?;
            if made.is("hidden") {
                hidden.insert(id);
                lines.insert(made.line(&id.1));
                continue;
            }
            match normal.get_mut(id) {
                Some(other) if other.comparable() != made.comparable() => {
                    return Err(Failure::fatal(format!("two different {}[{}]", id.0, id.1)));
                }
                Some(other) => {
                    for (name, value) in &made.parameters {
                        other
                            .parameters
                            .entry(name.clone())
                            .or_insert_with(|| value.clone());
                    }
                }
                None => {
                    normal.insert(id, made.clone());
                }
            }
        }
        lines.extend(normal.iter().map(|(id, made)| made.line(&id.1)));
        let exists = |id: &Id| normal.contains_key(id) || hidden.contains(id);
        let mut edges: BTreeMap<(&Id, &Id), (bool, Sent)> = BTreeMap::new();
        let mut senders: BTreeMap<(&Id, &String), (&Id, &String)> = BTreeMap::new();
        for edge in &self.edges {
            if let Some(missing) = [&edge.from, &edge.to].into_iter().find(|id| !exists(id)) {
                return Err(Failure::fatal(format!(
                    "an edge without {}[{}]",
                    missing.0, missing.1
                )));
            }
            let merged = edges.entry((&edge.from, &edge.to)).or_default();
            merged.0 |= edge.notify;
            if let Some((key, parameter)) = &edge.send {
                merged.1.insert((key.clone(), parameter.clone()));
                if hidden.contains(&edge.from) {
                    return Err(Failure::fatal("a hidden sender"));
                }
                let sender = (&edge.from, key);
                if *senders.entry((&edge.to, parameter)).or_insert(sender) != sender {
                    return Err(Failure::fatal("two senders"));
                }
            }
        }
        for (from, to) in edges.keys() {
            if reaches(to, from, edges.keys()) {
                return Err(Failure::fatal("a cycle"));
            }
        }
        let edges = edges
            .iter()
            .map(|((from, to), (notify, send))| edge_line((&from.0, &from.1), (&to.0, &to.1), *notify, send));
        let mut edges: Vec<String> = edges.collect();
        edges.sort();
        Ok(lines.into_iter().chain(edges).collect())
    }
}

/// Whether edges lead from one resource to another.
fn reaches<'a>(from: &'a Id, to: &Id, edges: impl Iterator<Item = &'a (&'a Id, &'a Id)> + Clone) -> bool {
    let mut seen = BTreeSet::new();
    let mut open = vec![from];
    while let Some(id) = open.pop() {
        if id == to {
            return true;
        }
        if seen.insert(id) {
            open.extend(edges.clone().filter(|(from, _)| *from == id).map(|(_, to)| *to));
        }
    }
    false
}

/// The lines of a real graph.
pub(crate) fn lines(graph: &DesiredGraph) -> Graph {
    let normal = graph
        .resources
        .values()
        .map(|resource| resource_line("", resource));
    let hidden = graph
        .hidden
        .values()
        .flatten()
        .map(|resource| resource_line("hidden ", resource));
    let lines: BTreeSet<String> = normal.chain(hidden).collect();
    let edges = graph.edges.values().map(|edge| {
        let send = edge
            .send
            .iter()
            .map(|(from, to)| (from.to_string(), to.to_string()))
            .collect();
        edge_line(
            (&edge.from.kind, &edge.from.name),
            (&edge.to.kind, &edge.to.name),
            edge.notify,
            &send,
        )
    });
    let mut edges: Vec<String> = edges.collect();
    edges.sort();
    lines.into_iter().chain(edges).collect()
}

fn resource_line(hidden: &str, resource: &DesiredResource) -> String {
    let parameters = resource.parameters.iter();
    let parameters = parameters
        .map(|(name, value)| (name.to_owned(), Datum::from(value)))
        .collect();
    let meta = MetaName::ALL.into_iter();
    let meta = meta
        .map(|name| (name.name().to_owned(), Datum::from(&resource.meta.value(name))))
        .collect();
    line(hidden, &resource.id.kind, &resource.id.name, &parameters, &meta)
}
