//! Definitions that depend on themselves through an alias that is not what it seems.
//!
//! [`cycles`](super::cycles) finds circles in the text of a file, by names. But `$w.x` may mean a variable outside of the class that
//! `w` includes, if the class has none of that name; what then is a circle shows only once names are resolved. Here the resolved
//! definitions are looked at. It does not matter through which includes a definition is reached: an alias that means the same
//! definition again is the same one again.

use rustc_hash::FxHashMap;
use setpoint_diagnostics::{Diagnostic, Span, did_you_mean};

use super::codes;
use super::cycles::{Dependency, components};
use crate::hir::{Callee, DefinitionKind, Expr, ExprId, ExprKind, FunctionId, Hir, Owner};

/// Every reference that is part of a circle, in source order.
pub(super) fn check(hir: &Hir) -> Vec<Diagnostic> {
    let mut edges = Vec::new();
    for (index, definition) in hir.definitions.iter().enumerate() {
        if let DefinitionKind::Bind { value, .. } = definition.kind {
            mentions(hir, index, value, &mut edges);
        }
    }
    for (index, function) in hir.functions.iter().enumerate() {
        let from = function_node(hir, FunctionId(index as u32));
        mentions(hir, from, function.body, &mut edges);
    }
    let components = components(hir.definitions.len() + hir.functions.len(), &edges);
    let mut found: Vec<(Span, usize)> = edges
        .iter()
        .filter(|edge| components.is_circle(edge))
        .filter_map(|edge| Some((edge.reference?, edge.to)))
        .collect();
    if found.is_empty() {
        return Vec::new();
    }
    found.sort_unstable();
    found.dedup();
    let outer = outer_names(hir);
    let report = |(span, node): (Span, usize)| {
        let (what, at) = match hir.definitions.get(node) {
            Some(definition) => (format!("`${}`", definition.name), definition.span),
            None => {
                let function = &hir.functions[node - hir.definitions.len()];
                let name = function.name.as_deref().unwrap_or("this one");
                (format!("the function `{name}`"), function.span)
            }
        };
        let error = depends_on_itself(&what, span).help_if(outer.get(&span).cloned());
        // A variable that stands in its own value needs no second place.
        let is_own_value = node < hir.definitions.len()
            && at.file == span.file
            && at.start <= span.start
            && span.end <= at.end;
        match is_own_value {
            true => error,
            false => error.because(at, "defined here"),
        }
    };
    found.into_iter().map(report).collect()
}

/// S6, at a reference that is part of the circle.
pub(crate) fn depends_on_itself(what: &str, span: Span) -> Diagnostic {
    Diagnostic::error(&codes::CYCLE, span, format!("{what} depends on itself")).label("part of the cycle")
}

/// Where a name behind an alias means what is outside of the class that the alias stands for, what to say of it.
fn outer_names(hir: &Hir) -> FxHashMap<Span, String> {
    let explain = |expr: &Expr| {
        let ExprKind::Variable { path, definition } = &expr.kind else {
            return None;
        };
        let class = hir.include(*path.last()?).class;
        let (meant, owner) = (hir.definition(*definition), Owner::Class(class));
        if meant.owner == owner {
            return None;
        }
        let inside = hir
            .definitions
            .iter()
            .filter(|definition| definition.owner == owner);
        let similar = did_you_mean(&meant.name, inside.map(|definition| &*definition.name));
        let (class, name) = (&hir.class(class).name, &meant.name);
        let similar = similar.map(|similar| format!("; {similar}")).unwrap_or_default();
        let text =
            format!("the class `{class}` has no `${name}`, so this means the one outside of it{similar}");
        Some((expr.span, text))
    };
    hir.exprs.iter().filter_map(explain).collect()
}

fn function_node(hir: &Hir, function: FunctionId) -> usize {
    hir.definitions.len() + function.index()
}

/// What an expression mentions, lambdas in it included: definitions, and functions of the program.
fn mentions(hir: &Hir, from: usize, expr: ExprId, edges: &mut Vec<Dependency>) {
    hir.for_each_part(expr, |id| {
        let expr = hir.expr(id);
        let to = match &expr.kind {
            ExprKind::Variable { definition, .. } => definition.index(),
            ExprKind::Call {
                callee: Callee::Function { function, .. },
                ..
            } => function_node(hir, *function),
            _ => return,
        };
        edges.push(Dependency {
            from,
            to,
            reference: Some(expr.span),
        });
    });
}
