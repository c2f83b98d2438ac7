//! What a file says too often or in a circle, found over the whole file before names are resolved (rules names.10 and names.13): names that
//! a block produces twice, and definitions that depend on themselves.
//!
//! Nodes are what statements produce: binds, functions, classes, aliased includes. A node depends on what it mentions and on
//! what it contains, so every cycle is a strongly connected component, and every mention inside one is reported.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use setpoint_diagnostics::{Diagnostic, Diagnostics, Span};

use super::codes;
use super::modules::default_alias;
use super::nesting::{Entry, Nesting};
use crate::syntax::{
    Ast, Block, BodyItemKind, Callee, ExprId, ExprKind, Import, ImportAlias, Parameters, StmtId, StmtKind,
    interpolated_names,
};

/// What is wrong with a file.
#[derive(Debug, Default)]
pub(super) struct FileProblems {
    /// Names that a block produces twice, at the later statement. Two imports at the top of the file are left to those who
    /// follow them.
    pub(super) clashes: Diagnostics,
    /// Every reference that is part of a cycle, in source order.
    pub(super) cycles: Diagnostics,
}

/// Looks at a whole file, classes that nothing includes among it.
pub(super) fn check(ast: &Ast, nesting: &Nesting) -> FileProblems {
    let mut walk = Walk {
        ast,
        nesting,
        frames: Vec::new(),
        nodes: Vec::new(),
        edges: Vec::new(),
        inside: None,
        found: FileProblems::default(),
    };
    walk.block(&ast.root, None, &[]);
    walk.report_cycles();
    walk.found
}

/// The three namespaces, and aliases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Space {
    Variable,
    Function,
    Class,
    Alias,
}

/// What names of a block mean, by [`Space`]; `None` hides an outer producer.
type Names = [FxHashMap<Arc<str>, Option<usize>>; 4];

struct Node {
    space: Space,
    name: Arc<str>,
    span: Span,
}

/// One node needs another.
pub(super) struct Dependency {
    pub(super) from: usize,
    pub(super) to: usize,
    /// The mention; none where `from` contains `to`.
    pub(super) reference: Option<Span>,
}

struct Walk<'a> {
    ast: &'a Ast,
    nesting: &'a Nesting,
    /// What names mean, innermost last.
    frames: Vec<Names>,
    nodes: Vec<Node>,
    edges: Vec<Dependency>,
    /// The innermost node around the place where the walk is. What is mentioned outside of all nodes cannot matter.
    inside: Option<usize>,
    found: FileProblems,
}

impl Walk<'_> {
    fn report_cycles(&mut self) {
        let components = components(self.nodes.len(), &self.edges);
        let mut looped: Vec<(Span, usize)> = Vec::new();
        for edge in &self.edges {
            let Some(span) = edge.reference else { continue };
            if components.is_circle(edge) {
                looped.push((span, edge.to));
            }
        }
        looped.sort_unstable();
        looped.dedup();
        for (span, node) in looped {
            let Node {
                space,
                name,
                span: at,
            } = &self.nodes[node];
            let what = match space {
                Space::Variable => format!("`${name}`"),
                Space::Function => format!("the function `{name}`"),
                Space::Class => format!("the class `{name}`"),
                Space::Alias => format!("the include as `{name}`"),
            };
            let error = Diagnostic::error(&codes::CYCLE, span, format!("{what} depends on itself"));
            let mut error = error.label("part of the cycle").because(*at, "defined here");
            if at.start <= span.start && span.end <= at.end {
                error = match space {
                    Space::Variable => {
                        error.secondary.clear();
                        error.label("this is the value that is being defined").help(
                            "a name is bound once and cannot be made of itself; give the new value another name, or go through a list with \
                             `iter.map` or `iter.reduce`",
                        )
                    }
                    Space::Function => error.help(
                        "no function calls itself; `iter.map`, `iter.filter` and `iter.reduce` go through lists",
                    ),
                    Space::Class | Space::Alias => error,
                };
            }
            self.found.cycles.push(error);
        }
    }

    fn block(&mut self, block: &Block, class: Option<StmtId>, hidden: &[Arc<str>]) {
        let is_top = self.frames.is_empty();
        self.hide(hidden);
        let ast = self.ast;
        let entries = self.nesting.entries(ast, block, class);
        let mut frame = Names::default();
        let mut imports: FxHashMap<Arc<str>, (&Import, Span)> = FxHashMap::default();
        let mut nodes: Vec<Option<usize>> = Vec::with_capacity(entries.len());
        for entry in &entries {
            let statement = ast.stmt(entry.statement);
            let (space, name) = match &statement.kind {
                StmtKind::Bind(bind) => (Space::Variable, &bind.name.text),
                StmtKind::Func(func) => (Space::Function, &func.name.text),
                StmtKind::Class(class) => (
                    Space::Class,
                    entry.class_name.as_ref().unwrap_or(&class.name.text),
                ),
                StmtKind::Include(include) if let Some(alias) = &include.alias => (Space::Alias, &alias.text),
                StmtKind::Import(import) => {
                    nodes.push(None);
                    let Some(alias) = alias_of(import) else { continue };
                    if let Some((first, span)) = imports.get(&alias) {
                        if !is_top {
                            self.import_clash(&alias, import, statement.span, first, *span);
                        }
                    } else if let Some(Some(node)) = frame[Space::Alias as usize].get(&alias) {
                        self.clash(Space::Alias, &alias, statement.span, self.nodes[*node].span);
                    } else {
                        frame[Space::Alias as usize].insert(alias.clone(), None);
                        imports.insert(alias, (import, statement.span));
                    }
                    continue;
                }
                StmtKind::Include(_)
                | StmtKind::If(_)
                | StmtKind::For(_)
                | StmtKind::ForKv(_)
                | StmtKind::Resource(_)
                | StmtKind::Edge(_)
                | StmtKind::Panic(_) => {
                    nodes.push(None);
                    continue;
                }
            };
            let id = self.node(space, name, statement.span);
            nodes.push(Some(id));
            // A class that is there twice was reported with the nesting of classes.
            if space == Space::Class {
                frame[space as usize].insert(name.clone(), Some(id));
            } else if let Some(before) = frame[space as usize].insert(name.clone(), Some(id)) {
                let before = match before {
                    Some(node) => self.nodes[node].span,
                    None => imports.get(name).map_or(statement.span, |(_, span)| *span),
                };
                self.clash(space, name, statement.span, before);
            }
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

    fn node(&mut self, space: Space, name: &Arc<str>, span: Span) -> usize {
        let id = self.nodes.len();
        let name = name.clone();
        self.nodes.push(Node { space, name, span });
        if let Some(container) = self.inside {
            self.edges.push(Dependency {
                from: container,
                to: id,
                reference: None,
            });
        }
        id
    }

    fn clash(&mut self, space: Space, name: &str, span: Span, before: Span) {
        let sigil = if space == Space::Variable { "$" } else { "" };
        let message = format!("`{sigil}{name}` is defined twice in this block");
        let error = Diagnostic::error(&codes::DUPLICATE_NAME, span, message);
        let error = error.because(before, "the first one");
        self.found.clashes.push(match space {
            Space::Variable => {
                error.help("a variable has one value in its block and is never changed; give the second one a name of its own")
            }
            Space::Function | Space::Class | Space::Alias => error.help("give one of them another name"),
        });
    }

    fn import_clash(&mut self, alias: &str, import: &Import, span: Span, first: &Import, before: Span) {
        let error = if import.path.text == first.path.text {
            import_twice(&import.path.text, span)
        } else {
            alias_twice(alias, span)
        };
        self.found.clashes.push(error.because(before, "the first one"));
    }

    fn hide(&mut self, names: &[Arc<str>]) {
        let mut frame = Names::default();
        frame[Space::Variable as usize].extend(names.iter().map(|name| (name.clone(), None)));
        self.frames.push(frame);
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
                if self.inside.is_none() {
                    return;
                }
                self.expr(resource.name);
                for item in &resource.items {
                    item.condition.iter().for_each(|id| self.expr(*id));
                    match &item.kind {
                        BodyItemKind::Field { value, .. }
                        | BodyItemKind::Meta { value, .. }
                        | BodyItemKind::MetaStruct { value } => self.expr(*value),
                        BodyItemKind::EdgeProperty { endpoint, .. } => self.expr(endpoint.name),
                    }
                }
            }
            StmtKind::Edge(edge) => edge
                .endpoints
                .iter()
                .for_each(|endpoint| self.expr(endpoint.name)),
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
        if self.inside.is_none() {
            return;
        }
        let ast = self.ast;
        let expr = ast.expr(id);
        match &expr.kind {
            ExprKind::Variable(name) => self.variable(&name.text, expr.span),
            ExprKind::String(raw) => {
                for name in interpolated_names(raw, expr.span) {
                    self.variable(&name, expr.span);
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
        expr.kind.for_each_child(|child| self.expr(child));
    }

    fn variable(&mut self, name: &str, span: Span) {
        match name.split_once('.') {
            None => self.mention(Space::Variable, name, span),
            Some((alias, _)) => self.mention(Space::Alias, alias, span),
        }
    }

    fn mention(&mut self, space: Space, name: &str, span: Span) {
        let Some(from) = self.inside else { return };
        let mut frames = self.frames.iter().rev();
        let found = frames.find_map(|frame| frame[space as usize].get(name));
        if let Some(Some(to)) = found {
            self.edges.push(Dependency {
                from,
                to: *to,
                reference: Some(span),
            });
        }
    }
}

/// The alias that an import produces, if it has one.
pub(super) fn alias_of(import: &Import) -> Option<Arc<str>> {
    match &import.alias {
        None => default_alias(&import.path.text).ok().map(Arc::from),
        Some(ImportAlias::Name(name)) => Some(name.text.clone()),
        Some(ImportAlias::All(_)) => None,
    }
}

/// M1.
pub(super) fn import_twice(path: &str, span: Span) -> Diagnostic {
    let message = format!("`{path}` is imported twice in this block");
    Diagnostic::error(&codes::DUPLICATE_IMPORT, span, message)
}

/// M2.
pub(super) fn alias_twice(alias: &str, span: Span) -> Diagnostic {
    let message = format!("two imports of this block are called `{alias}`");
    let error = Diagnostic::error(&codes::DUPLICATE_ALIAS, span, message);
    error.help("give one of them another name with `as`")
}

fn names(parameters: &Parameters) -> Vec<Arc<str>> {
    parameters.items.iter().map(|p| p.name.text.clone()).collect()
}

/// The strongly connected components of a graph.
pub(super) struct Components {
    of: Vec<usize>,
    sizes: Vec<usize>,
}

impl Components {
    /// Whether what an edge leads to needs where it comes from.
    pub(super) fn is_circle(&self, edge: &Dependency) -> bool {
        let component = self.of[edge.from];
        component == self.of[edge.to] && (edge.from == edge.to || self.sizes[component] > 1)
    }
}

/// Tarjan's strongly connected components, without recursion.
pub(super) fn components(count: usize, edges: &[Dependency]) -> Components {
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
