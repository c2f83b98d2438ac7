//! The outline of a file: what it defines and declares, nested.

use std::sync::Arc;

use setpoint_diagnostics::{FileId, Span};

use super::Analysis;
use crate::syntax::{Ast, Block, ExprKind, ImportAlias, StmtId, StmtKind};

/// An entry of the outline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// What kind of thing.
    pub kind: SymbolKind,
    /// What it is called.
    pub name: String,
    /// Where its name stands.
    pub name_span: Span,
    /// All of it.
    pub span: Span,
    /// What is inside.
    pub children: Vec<Symbol>,
}

/// What an outline shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SymbolKind {
    /// A bind.
    Variable,
    /// A named function.
    Function,
    /// A class.
    Class,
    /// A resource.
    Resource,
    /// An import.
    Import,
    /// An include.
    Include,
}

impl Analysis {
    /// The outline of a file.
    #[must_use]
    pub fn symbols(&self, file: FileId) -> Vec<Symbol> {
        self.parsed(file)
            .map(|parsed| block(&parsed.ast, &parsed.ast.root))
            .unwrap_or_default()
    }
}

fn block(ast: &Ast, block: &Block) -> Vec<Symbol> {
    block
        .statements
        .iter()
        .flat_map(|id| statement(ast, *id))
        .collect()
}

fn statement(ast: &Ast, id: StmtId) -> Vec<Symbol> {
    let statement = ast.stmt(id);
    let symbol = |kind, name: String, name_span| Symbol {
        kind,
        name,
        name_span,
        span: statement.span,
        children: Vec::new(),
    };
    match &statement.kind {
        StmtKind::Bind(bind) => {
            let name = format!("${}", bind.name.text);
            vec![symbol(SymbolKind::Variable, name, bind.name.span)]
        }
        StmtKind::Func(func) => vec![symbol(
            SymbolKind::Function,
            func.name.text.to_string(),
            func.name.span,
        )],
        StmtKind::Class(class) => vec![Symbol {
            children: block(ast, &class.body),
            ..symbol(SymbolKind::Class, class.name.text.to_string(), class.name.span)
        }],
        StmtKind::Resource(resource) => {
            let name = match &ast.expr(resource.name).kind {
                ExprKind::String(text) => format!("{}[\"{text}\"]", resource.kind.text),
                _ => resource.kind.text.to_string(),
            };
            vec![symbol(SymbolKind::Resource, name, resource.kind.span)]
        }
        StmtKind::Import(import) => {
            let name: Arc<str> = match &import.alias {
                Some(ImportAlias::Name(alias)) => alias.text.clone(),
                Some(ImportAlias::All(_)) | None => import.path.text.clone(),
            };
            vec![symbol(SymbolKind::Import, name.to_string(), import.path.span)]
        }
        StmtKind::Include(include) => {
            let name = include.alias.as_ref().unwrap_or(&include.class);
            vec![symbol(SymbolKind::Include, name.text.to_string(), name.span)]
        }
        // What stands in a branch or a loop is shown where these are.
        StmtKind::If(branches) => {
            let mut inside = block(ast, &branches.then_block);
            if let Some(otherwise) = &branches.else_block {
                inside.extend(block(ast, otherwise));
            }
            inside
        }
        StmtKind::For(body) | StmtKind::ForKv(body) => block(ast, &body.body),
        StmtKind::Edge(_) | StmtKind::Panic(_) => Vec::new(),
    }
}
