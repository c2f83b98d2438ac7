//! A graph in the language of Graphviz.

use std::fmt::Write;

use setpoint_value::quote;

use crate::{PrintedGraph, ResourceId};

/// The graph for `dot`. Hidden resources have dashed outlines, what undoes one that left the program dotted ones; notifying edges are bold,
/// what is sent is written on the edge; automatic edges are dotted. What is applied as part of another resource has a dotted line
/// without an arrow to it.
#[must_use]
pub fn graph_dot<'a>(graph: impl Into<PrintedGraph<'a>>) -> String {
    let PrintedGraph {
        graph,
        automatic,
        groups,
        ..
    } = graph.into();
    let mut out = String::from("digraph desired {\n    rankdir=LR;\n    node [shape=box];\n");
    for (id, resource) in &graph.resources {
        let attributes = match resource.meta.is_reversal {
            true => format!(" [style=dotted, label={}]", text(&format!("undo {id}"))),
            false => String::new(),
        };
        let _ = writeln!(out, "    {}{attributes};", node(id));
    }
    for id in graph
        .hidden
        .keys()
        .filter(|id| !graph.resources.contains_key(*id))
    {
        let _ = writeln!(out, "    {} [style=dashed];", node(id));
    }
    for edge in graph.edges.values() {
        let mut attributes = Vec::new();
        if edge.notify {
            attributes.push("style=bold".to_owned());
        }
        if !edge.send.is_empty() {
            let send = edge.send.iter().map(|(from, to)| format!("{from} -> {to}"));
            attributes.push(format!("label={}", text(&send.collect::<Vec<_>>().join(", "))));
        }
        let attributes = match attributes.is_empty() {
            true => String::new(),
            false => format!(" [{}]", attributes.join(", ")),
        };
        let _ = writeln!(out, "    {} -> {}{attributes};", node(&edge.from), node(&edge.to));
    }
    for edge in automatic {
        let _ = writeln!(
            out,
            "    {} -> {} [style=dotted];",
            node(&edge.from),
            node(&edge.to)
        );
    }
    for (id, members) in groups {
        for member in members {
            let _ = writeln!(
                out,
                "    {} -> {} [style=dotted, arrowhead=none, constraint=false];",
                node(member),
                node(id)
            );
        }
    }
    out.push_str("}\n");
    out
}

fn node(id: &ResourceId) -> String {
    text(&id.to_string())
}

/// A quoted text: characters that do not print are written as escapes, whose backslashes stay visible.
fn text(content: &str) -> String {
    let quoted = quote(content.as_bytes());
    let inner = &quoted[1..quoted.len() - 1];
    let mut out = String::with_capacity(quoted.len());
    out.push('"');
    let mut characters = inner.chars();
    while let Some(c) = characters.next() {
        match c {
            // An escaped quote is the same for dot; any other backslash would start an escape of dot's own.
            '\\' => match characters.next() {
                Some('"') => out.push_str("\\\""),
                Some('\\') => out.push_str("\\\\"),
                Some(other) => {
                    out.push_str("\\\\");
                    out.push(other);
                }
                None => out.push_str("\\\\"),
            },
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
