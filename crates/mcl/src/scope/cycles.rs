//! Definitions that depend on themselves (mcl-language §4.4), found over a whole file before names are resolved.
//!
//! Nodes are what statements produce: binds, functions, classes, aliased includes. A node depends on what it mentions and on
//! what it contains, so every cycle is a strongly connected component, and every mention inside one is reported.

use std::collections::HashMap;
use std::sync::Arc;

use setpoint_diagnostics::{Diagnostic, Diagnostics, Span};

use super::codes;
use super::modules::default_alias;
use super::nesting::{Entry, Nesting};
use crate::syntax::{
    Ast, Block, BodyItemKind, Callee, ExprId, ExprKind, ImportAlias, Parameters, Piece, StmtId, StmtKind,
    interpolate,
};

/// Reports every reference that is part of a cycle, in source order.
pub(super) fn check(ast: &Ast, nesting: &Nesting, diagnostics: &mut Diagnostics) {
    let mut walk = Walk {
        ast,
        nesting,
        frames: Vec::new(),
        nodes: Vec::new(),
        edges: Vec::new(),
        inside: None,
    };
    walk.block(&ast.root, None, &[]);
    let components = components(walk.nodes.len(), &walk.edges);
    let mut found: Vec<(Span, usize)> = Vec::new();
    for edge in &walk.edges {
        let Some(span) = edge.reference else { continue };
        let looped = components.of[edge.from] == components.of[edge.to];
        if looped && (edge.from == edge.to || components.sizes[components.of[edge.from]] > 1) {
            found.push((span, edge.to));
        }
    }
    found.sort_unstable();
    found.dedup();
    for (span, node) in found {
        let node = &walk.nodes[node];
        let message = format!("{} depends on itself", node.what);
        let error = Diagnostic::error(&codes::CYCLE, span, message).label("part of the cycle");
        diagnostics.push(error.because(node.span, "defined here"));
    }
}

/// The three namespaces, and aliases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Space {
    Variable,
    Function,
    Class,
    Alias,
}

/// What names of a block mean; `None` hides an outer producer.
type Names = HashMap<(Space, Arc<str>), Option<usize>>;

struct Node {
    what: String,
    span: Span,
}

struct Dependency {
    from: usize,
    to: usize,
    /// The mention; none where `from` contains `to`.
    reference: Option<Span>,
}

struct Walk<'a> {
    ast: &'a Ast,
    nesting: &'a Nesting,
    /// What names mean, innermost last; `None` hides an outer producer.
    frames: Vec<Names>,
    nodes: Vec<Node>,
    edges: Vec<Dependency>,
    /// The innermost node around the place where the walk is.
    inside: Option<usize>,
}

impl Walk<'_> {
    fn node(&mut self, what: String, span: Span) -> usize {
        let id = self.nodes.len();
        self.nodes.push(Node { what, span });
        if let Some(container) = self.inside {
            self.edges.push(Dependency {
                from: container,
                to: id,
                reference: None,
            });
        }
        id
    }

    fn block(&mut self, block: &Block, class: Option<StmtId>, hidden: &[Arc<str>]) {
        self.hide(hidden);
        let ast = self.ast;
        let entries = self.nesting.entries(ast, block, class);
        let mut frame = HashMap::new();
        let mut nodes: Vec<Option<usize>> = Vec::with_capacity(entries.len());
        for entry in &entries {
            let statement = ast.stmt(entry.statement);
            let (key, what) = match &statement.kind {
                StmtKind::Bind(bind) => (
                    (Space::Variable, bind.name.text.clone()),
                    format!("`${}`", bind.name.text),
                ),
                StmtKind::Func(func) => (
                    (Space::Function, func.name.text.clone()),
                    format!("the function `{}`", func.name.text),
                ),
                StmtKind::Class(_) => {
                    let name = entry.class_name.clone().unwrap_or_default();
                    ((Space::Class, name.clone()), format!("the class `{name}`"))
                }
                StmtKind::Include(include) => match &include.alias {
                    Some(alias) => (
                        (Space::Alias, alias.text.clone()),
                        format!("the include of `{}`", include.class.text),
                    ),
                    None => {
                        nodes.push(None);
                        continue;
                    }
                },
                StmtKind::Import(import) => {
                    let alias = match &import.alias {
                        Some(ImportAlias::Name(name)) => Some(name.text.clone()),
                        Some(ImportAlias::All(_)) => None,
                        None => default_alias(&import.path.text).ok().map(Arc::from),
                    };
                    if let Some(alias) = alias {
                        frame.insert((Space::Alias, alias), None);
                    }
                    nodes.push(None);
                    continue;
                }
                StmtKind::If(_)
                | StmtKind::For(_)
                | StmtKind::ForKv(_)
                | StmtKind::Resource(_)
                | StmtKind::Edge(_)
                | StmtKind::Panic(_) => {
                    nodes.push(None);
                    continue;
                }
            };
            let id = self.node(what, statement.span);
            frame.insert(key, Some(id));
            nodes.push(Some(id));
        }
        self.frames.push(frame);
        for (entry, node) in entries.iter().zip(nodes) {
            let outer = self.inside;
            if node.is_some() {
                self.inside = node;
            }
            self.statement(entry);
            self.inside = outer;
        }
        self.frames.pop();
        self.frames.pop();
    }

    fn hide(&mut self, names: &[Arc<str>]) {
        self.frames.push(
            names
                .iter()
                .map(|name| ((Space::Variable, name.clone()), None))
                .collect(),
        );
    }

    fn statement(&mut self, entry: &Entry) {
        let ast = self.ast;
        let statement = ast.stmt(entry.statement);
        match &statement.kind {
            StmtKind::Bind(bind) => self.expr(bind.value),
            StmtKind::If(branches) => {
                self.expr(branches.condition);
                self.block(&branches.then_block, None, &[]);
                if let Some(block) = &branches.else_block {
                    self.block(block, None, &[]);
                }
            }
            StmtKind::For(body) | StmtKind::ForKv(body) => {
                self.expr(body.iterable);
                self.block(
                    &body.body,
                    None,
                    &[body.key.text.clone(), body.value.text.clone()],
                );
            }
            StmtKind::Resource(resource) => {
                self.expr(resource.name);
                for item in &resource.items {
                    item.condition.iter().for_each(|id| self.expr(*id));
                    match &item.kind {
                        BodyItemKind::Field { value, .. }
                        | BodyItemKind::Meta { value, .. }
                        | BodyItemKind::MetaStruct { value } => self.expr(*value),
                        BodyItemKind::EdgeProperty { half, .. } => self.expr(half.name),
                    }
                }
            }
            StmtKind::Edge(edge) => edge.halves.iter().for_each(|half| self.expr(half.name)),
            StmtKind::Class(class) => {
                let names = class.parameters.as_ref().map(names).unwrap_or_default();
                self.block(&class.body, Some(entry.statement), &names);
            }
            StmtKind::Include(include) => {
                match include.class.text.split_once('.') {
                    None => self.mention(Space::Class, &include.class.text, statement.span),
                    Some((alias, _)) => self.mention(Space::Alias, alias, statement.span),
                }
                if let Some(arguments) = &include.arguments {
                    arguments.items.iter().for_each(|id| self.expr(*id));
                }
            }
            StmtKind::Import(_) => {}
            StmtKind::Func(func) => {
                self.hide(&names(&func.function.parameters));
                self.expr(func.function.body);
                self.frames.pop();
            }
            StmtKind::Panic(arguments) => arguments.items.iter().for_each(|id| self.expr(*id)),
        }
    }

    fn expr(&mut self, id: ExprId) {
        let ast = self.ast;
        let expr = ast.expr(id);
        match &expr.kind {
            ExprKind::Variable(name) => self.variable(&name.text, expr.span),
            ExprKind::String(raw) if raw.contains("${") => {
                for piece in interpolate(raw, expr.span).unwrap_or_default() {
                    if let Piece::Variable { name, .. } = piece {
                        self.variable(&name, expr.span);
                    }
                }
            }
            ExprKind::Call(call) => match &call.callee {
                Callee::Function(name) => match name.text.split_once('.') {
                    None => self.mention(Space::Function, &name.text, expr.span),
                    Some((alias, _)) => self.mention(Space::Alias, alias, expr.span),
                },
                Callee::Variable(name) => self.variable(&name.text, expr.span),
                Callee::Lambda(_) => {}
            },
            ExprKind::Lambda(function) => {
                self.hide(&names(&function.parameters));
                self.expr(function.body);
                self.frames.pop();
                return;
            }
            _ => {}
        }
        let mut children = Vec::new();
        expr.kind.for_each_child(|child| children.push(child));
        for child in children {
            self.expr(child);
        }
    }

    fn variable(&mut self, name: &str, span: Span) {
        match name.split_once('.') {
            None => self.mention(Space::Variable, name, span),
            Some((alias, _)) => self.mention(Space::Alias, alias, span),
        }
    }

    fn mention(&mut self, space: Space, name: &str, span: Span) {
        let Some(from) = self.inside else { return };
        let key = (space, Arc::from(name));
        let found = self.frames.iter().rev().find_map(|frame| frame.get(&key));
        if let Some(Some(to)) = found {
            self.edges.push(Dependency {
                from,
                to: *to,
                reference: Some(span),
            });
        }
    }
}

fn names(parameters: &Parameters) -> Vec<Arc<str>> {
    parameters.items.iter().map(|p| p.name.text.clone()).collect()
}

struct Components {
    of: Vec<usize>,
    sizes: Vec<usize>,
}

/// Tarjan's strongly connected components, without recursion.
fn components(count: usize, edges: &[Dependency]) -> Components {
    const NONE: usize = usize::MAX;
    let mut successors: Vec<Vec<usize>> = vec![Vec::new(); count];
    for edge in edges {
        successors[edge.from].push(edge.to);
    }
    let mut result = Components {
        of: vec![NONE; count],
        sizes: Vec::new(),
    };
    let (mut index, mut low) = (vec![NONE; count], vec![0; count]);
    let (mut stack, mut next) = (Vec::new(), 0);
    for start in 0..count {
        if index[start] != NONE {
            continue;
        }
        let mut work = vec![(start, 0)];
        while let Some((node, child)) = work.pop() {
            if child == 0 {
                index[node] = next;
                low[node] = next;
                next += 1;
                stack.push(node);
            }
            if let Some(&successor) = successors[node].get(child) {
                work.push((node, child + 1));
                if index[successor] == NONE {
                    work.push((successor, 0));
                } else if result.of[successor] == NONE {
                    low[node] = low[node].min(index[successor]);
                }
                continue;
            }
            if low[node] == index[node] {
                let component = result.sizes.len();
                let mut size = 0;
                while let Some(member) = stack.pop() {
                    result.of[member] = component;
                    size += 1;
                    if member == node {
                        break;
                    }
                }
                result.sizes.push(size);
            }
            if let Some((parent, _)) = work.last() {
                low[*parent] = low[*parent].min(low[node]);
            }
        }
    }
    result
}
