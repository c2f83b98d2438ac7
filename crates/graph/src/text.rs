//! A graph as a listing for people.

use std::fmt::Write;

use setpoint_diagnostics::{SourceMap, Span};
use setpoint_value::quote;

use crate::json::place;
use crate::{DesiredResource, Link, PrintedGraph, ResourceId};

/// Resources with what the program sets, hidden ones after the others, then edges, then groups, then what is unknown. Places are shown when
/// `sources` has them.
///
/// ```text
/// file "/etc/motd"  # main.mcl:3:1
///     content => "hello"
///     Meta:noop => true
///
/// pkg "nginx" -> file "/etc/motd"  (notifies)
/// ```
#[must_use]
pub fn graph_text<'a>(graph: impl Into<PrintedGraph<'a>>, sources: Option<&SourceMap>) -> String {
    let PrintedGraph {
        graph,
        automatic,
        groups,
        unknown,
        chains,
    } = graph.into();
    let mut out = String::new();
    let hidden = graph.hidden.values().flatten();
    for resource in graph.resources.values().chain(hidden) {
        if !out.is_empty() {
            out.push('\n');
        }
        write_resource(resource, chains, sources, &mut out);
    }
    let has_edges = !graph.edges.is_empty() || !automatic.is_empty();
    if !out.is_empty() && has_edges {
        out.push('\n');
    }
    for edge in graph.edges.values() {
        let mut remarks = Vec::new();
        if edge.notify {
            remarks.push("notifies".to_owned());
        }
        for (from, to) in &edge.send {
            remarks.push(format!("sends {from} as {to}"));
        }
        let remarks = match remarks.is_empty() {
            true => String::new(),
            false => format!("  ({})", remarks.join(", ")),
        };
        let _ = writeln!(out, "{} -> {}{remarks}", name(&edge.from), name(&edge.to));
    }
    for edge in automatic {
        let _ = writeln!(out, "{} -> {}  (automatic)", name(&edge.from), name(&edge.to));
    }
    if !out.is_empty() && !groups.is_empty() {
        out.push('\n');
    }
    for (id, members) in groups {
        let _ = write!(out, "{} is applied together with", name(id));
        for (place, member) in members.iter().enumerate() {
            let before = match place {
                0 => " ",
                place if place + 1 == members.len() => " and ",
                _ => ", ",
            };
            let _ = write!(out, "{before}{}", name(member));
        }
        out.push('\n');
    }
    if !out.is_empty() && !unknown.is_empty() {
        out.push('\n');
    }
    for part in unknown {
        let _ = write!(out, "unknown: {}", part.what);
        write_place(part.span, sources, &mut out);
    }
    out
}

fn write_resource(resource: &DesiredResource, chains: bool, sources: Option<&SourceMap>, out: &mut String) {
    out.push_str(&name(&resource.id));
    if resource.meta.hidden {
        out.push_str(" (hidden)");
    }
    if resource.meta.is_reversal {
        out.push_str(" (undone, because it left the program)");
    }
    write_place(resource.span, sources, out);
    let innermost = resource.chain.as_deref().filter(|_| chains);
    for link in innermost.into_iter().flat_map(Link::outwards) {
        let _ = write!(out, "    # {}", link.cause);
        if let Some((file, start, _)) = sources.and_then(|sources| place(link.span, sources)) {
            let _ = write!(out, ": {file}:{}:{}", start.line, start.column);
        }
        out.push('\n');
    }
    for (name, value) in resource.parameters.iter() {
        let _ = writeln!(out, "    {name} => {value}");
    }
    for name in resource.meta.written.iter() {
        let _ = writeln!(out, "    Meta:{} => {}", name.name(), resource.meta.value(name));
    }
}

/// Ends a line, with a place if there is one.
fn write_place(span: Span, sources: Option<&SourceMap>, out: &mut String) {
    if let Some((file, start, _)) = sources.and_then(|sources| place(span, sources)) {
        let _ = write!(out, "  # {file}:{}:{}", start.line, start.column);
    }
    out.push('\n');
}

fn name(id: &ResourceId) -> String {
    format!("{} {}", id.kind, quote(id.name.as_bytes()))
}
