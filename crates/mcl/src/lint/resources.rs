//! Rules about resources and edges.

use std::collections::HashMap;

use setpoint_diagnostics::{Diagnostic, Span, visible};

use super::{Linter, blocks, codes};
use crate::syntax::{Ast, Block, BodyItemKind, Edge, EdgeEndpoint, ExprKind, Resource, StmtKind};

impl Linter<'_> {
    /// Edges, notifications and loops of a file.
    pub(super) fn edges_and_loops(&mut self, ast: &Ast) {
        for (owner, block) in blocks(ast) {
            let mut seen: HashMap<String, Span> = HashMap::new();
            for id in &block.statements {
                let statement = ast.stmt(*id);
                match &statement.kind {
                    StmtKind::Resource(resource) => self.notifications(resource),
                    StmtKind::Edge(edge) => {
                        let Some(key) = key_of(ast, edge) else { continue };
                        match seen.get(&key) {
                            None => {
                                seen.insert(key, statement.span);
                            }
                            Some(first) => {
                                let message = "this edge is there already";
                                let span = statement.span;
                                let warning = Diagnostic::warning(&codes::DUPLICATE_EDGE, span, message);
                                self.warn(warning.because(*first, "here").help("take one of them away"));
                            }
                        }
                    }
                    _ => {}
                }
            }
            let loops = owner.map(|owner| &ast.stmt(owner).kind);
            if let Some(StmtKind::For(body) | StmtKind::ForKv(body)) = loops {
                self.same_names(ast, block, [&*body.key.text, &*body.value.text]);
            }
        }
    }

    /// Notifications to kinds that do the same with and without one.
    fn notifications(&mut self, resource: &Resource) {
        for item in &resource.items {
            let BodyItemKind::EdgeProperty { property, endpoint } = &item.kind else {
                continue;
            };
            let (kind, instead) = match &*property.text {
                "Notify" => (endpoint.kind.text.to_lowercase(), "Before"),
                "Listen" => (resource.kind.text.to_string(), "Depend"),
                _ => continue,
            };
            let Some(schema) = self.library.kinds.get(&*kind) else {
                continue;
            };
            if schema.refreshable {
                continue;
            }
            let message = format!("a notification makes no resource of the kind `{kind}` do anything");
            let warning = Diagnostic::warning(&codes::NOTIFICATION_WITHOUT_EFFECT, property.span, message);
            let help = format!("the order is all that is left of it: write `{instead}`");
            self.warn(warning.fix(help, property.span, instead));
        }
    }

    /// Resources of a loop whose name and parameters are the same in each round.
    fn same_names(&mut self, ast: &Ast, block: &Block, variables: [&str; 2]) {
        for id in &block.statements {
            let statement = ast.stmt(*id);
            let StmtKind::Resource(resource) = &statement.kind else {
                continue;
            };
            let name = ast.expr(resource.name);
            let ExprKind::String(raw) = &name.kind else {
                continue;
            };
            // Edges may differ from round to round.
            let has_edges =
                (resource.items.iter()).any(|item| matches!(item.kind, BodyItemKind::EdgeProperty { .. }));
            if resource.collect || has_edges || raw.contains("${") {
                continue;
            }
            let message = format!(
                "each round of the loop makes the resource `{}` again",
                visible(raw)
            );
            let warning = Diagnostic::warning(&codes::SAME_NAME_IN_LOOP, name.span, message);
            let help = format!(
                "put what differs into its name: `\"{raw}-${{{}}}\"`",
                variables[1]
            );
            self.warn(warning.help(help));
        }
    }
}

/// What tells an edge from others, where all its names are written out.
fn key_of(ast: &Ast, edge: &Edge) -> Option<String> {
    let mut key = String::new();
    for endpoint in &edge.endpoints {
        let EdgeEndpoint {
            kind, name, field, ..
        } = endpoint;
        let field = field.as_ref().map(|field| &*field.text).unwrap_or_default();
        let name = match &ast.expr(*name).kind {
            ExprKind::String(raw) => format!("{raw:?}"),
            ExprKind::Variable(name) => format!("${}", name.text),
            _ => return None,
        };
        key.push_str(&format!("{}[{name}].{field} -> ", kind.text));
    }
    Some(key)
}
