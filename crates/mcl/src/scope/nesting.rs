//! Colon classes: `class a:b` beside `class a` lives inside `a` as `class b` (rule classes.15).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use setpoint_diagnostics::{Diagnostic, Diagnostics};

use super::codes;
use crate::syntax::{Ast, Block, StmtId, StmtKind};

/// Which classes moved where.
#[derive(Debug, Default)]
pub(super) struct Nesting {
    /// Classes that moved into a class, with the name that they have there.
    moved: HashMap<StmtId, Vec<Entry>>,
    away: HashSet<StmtId>,
}

/// A statement of a block, with the class name that nesting left of it.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) statement: StmtId,
    /// For classes, the name in this block.
    pub(super) class_name: Option<Arc<str>>,
}

impl Nesting {
    /// Nests the classes of a whole file and reports duplicates (T3).
    pub(super) fn of(ast: &Ast, diagnostics: &mut Diagnostics) -> Nesting {
        let mut nesting = Nesting::default();
        nesting.block(ast, &ast.root, None, diagnostics);
        nesting
    }

    /// The statements of a block, those moved into it included. `class` is the class whose body it is.
    pub(super) fn entries(&self, ast: &Ast, block: &Block, class: Option<StmtId>) -> Vec<Entry> {
        let own = block
            .statements
            .iter()
            .filter(|id| !self.away.contains(id))
            .map(|id| Entry {
                statement: *id,
                class_name: match &ast.stmt(*id).kind {
                    StmtKind::Class(class) => Some(class.name.text.clone()),
                    _ => None,
                },
            });
        let moved = class
            .and_then(|id| self.moved.get(&id))
            .into_iter()
            .flatten()
            .cloned();
        own.chain(moved).collect()
    }

    fn block(&mut self, ast: &Ast, block: &Block, class: Option<StmtId>, diagnostics: &mut Diagnostics) {
        let entries = self.entries(ast, block, class);
        let mut by_name: HashMap<Arc<str>, StmtId> = HashMap::new();
        for entry in &entries {
            let Some(name) = &entry.class_name else { continue };
            if let Some(first) = by_name.get(name) {
                let span = ast.stmt(entry.statement).span;
                let message = format!("the class `{name}` is defined twice");
                let error = Diagnostic::error(&codes::DUPLICATE_CLASS, span, message);
                diagnostics.push(error.because(ast.stmt(*first).span, "the first one"));
            } else {
                by_name.insert(name.clone(), entry.statement);
            }
        }
        for entry in &entries {
            let Some((parent, rest)) = entry.class_name.as_deref().and_then(|name| name.split_once(':'))
            else {
                continue;
            };
            if let Some(parent) = by_name.get(parent) {
                let inner = Entry {
                    statement: entry.statement,
                    class_name: Some(rest.into()),
                };
                self.moved.entry(*parent).or_default().push(inner);
                self.away.insert(entry.statement);
                // A class that had moved here already moves on.
                if let Some(here) = class.and_then(|id| self.moved.get_mut(&id)) {
                    here.retain(|e| e.statement != entry.statement);
                }
            }
        }
        for entry in self.entries(ast, block, class) {
            let kind = &ast.stmt(entry.statement).kind;
            let class = matches!(kind, StmtKind::Class(_)).then_some(entry.statement);
            for block in kind.blocks() {
                self.block(ast, block, class, diagnostics);
            }
        }
    }
}
