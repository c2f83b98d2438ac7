//! Files that all their imports share.
//!
//! Each import of a file has what the file defines for itself. Where nobody could tell, the file is resolved once, so that a library costs
//! the same however many modules import it. One could tell where a use decides what type a variable at its top has, or where something
//! is wrong, which is told for each way that leads there; whatever the file imports must be shared as well.

use rustc_hash::FxHashMap;
use setpoint_diagnostics::{FileId, Span};
use std::sync::Arc;

use super::modules::ModuleLocation;
use super::ranking::Order;
use super::resolve::{Alias, FrameId, Resolver};
use crate::syntax::{Ast, ExprId, ExprKind, StmtKind};

/// The tops of files that are shared: by place, and by the directory that code in them is in, which functions can ask for.
pub(super) type Shared = FxHashMap<(String, Arc<str>), FrameId>;

/// How the entry, or an import, leads to a file. Ways share what they have in common, for there may be very many, and long ones.
pub(super) struct Way {
    /// The import statement, and the way to the file that it is in; none of the entry.
    pub(super) import: Option<(WayId, Span)>,
    /// Where the import stands in the order of errors of its file.
    pub(super) order: Order,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WayId(pub(super) u32);

impl WayId {
    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }
}

impl Resolver<'_> {
    /// The top of a file that was imported before, if this import can have it too.
    pub(super) fn shared_top(
        &mut self,
        place: &ModuleLocation,
        way: impl FnOnce(&mut Self) -> WayId,
    ) -> Option<FrameId> {
        let key = (place.key(), self.module_directory(place));
        let top = *self.shared.get(&key)?;
        let file = self.file_of(top);
        // What was found wrong meanwhile, in a class of it, is told for each import.
        if self.files[file].has_errors {
            return None;
        }
        let way = way(self);
        self.note_import(way, self.files[file].id);
        self.files[file].ways.push(way);
        Some(top)
    }

    /// Notes to which text an import was followed.
    pub(super) fn note_import(&mut self, way: WayId, text: FileId) {
        let import = self.ways[way.index()].import;
        self.imports
            .extend(import.map(|(_, statement)| (statement, text)));
    }

    /// Notes a file whose names are all known, if further imports can share it.
    pub(super) fn share(&mut self, top: FrameId) {
        let file = &self.files[self.file_of(top)];
        if file.is_broken || file.has_errors || !is_alike_for_all(&file.parsed.ast) {
            return;
        }
        let frame = &self.frames[top.0];
        let mut imported = frame.aliases.values().chain(&frame.stars);
        let is_shared = |alias: &Alias| match alias {
            Alias::System(_, None) => true,
            Alias::Module(top) | Alias::System(_, Some(top)) => self.files[self.file_of(*top)].is_shared,
            Alias::Include(_) | Alias::Failed => false,
        };
        if !imported.all(|(alias, _)| is_shared(alias)) {
            return;
        }
        let place = &self.places[file.place];
        let key = (place.key(), file.module_directory.clone());
        let file = self.file_of(top);
        self.files[file].is_shared = true;
        self.shared.insert(key, top);
    }
}

/// Whether all that a text defines is the same for each import: its types are decided by the text itself, and only its top imports.
fn is_alike_for_all(ast: &Ast) -> bool {
    let all = (0..ast.stmt_count() as u32).map(|index| ast.stmt(crate::syntax::StmtId(index)));
    let imports = all.filter(|statement| matches!(statement.kind, StmtKind::Import(_)));
    let mut at_top = 0;
    for id in &ast.root.statements {
        match &ast.stmt(*id).kind {
            StmtKind::Bind(bind) if is_plain(ast, bind.value, bind.annotation.is_some()) => {}
            StmtKind::Func(_) | StmtKind::Class(_) => {}
            StmtKind::Import(_) => at_top += 1,
            _ => return false,
        }
    }
    imports.count() == at_top
}

/// Whether a value has one type, whoever uses it. What is called could leave some of it open, and so does an empty list without a
/// written type.
fn is_plain(ast: &Ast, value: ExprId, has_annotation: bool) -> bool {
    let mut open = vec![value];
    while let Some(id) = open.pop() {
        let kind = &ast.expr(id).kind;
        let is_plain = match kind {
            ExprKind::Call(_) | ExprKind::Lambda(_) | ExprKind::Unfinished(_) => false,
            ExprKind::List(items) => has_annotation || !items.is_empty(),
            ExprKind::Map(entries) => has_annotation || !entries.is_empty(),
            ExprKind::Bool(_)
            | ExprKind::Integer(_)
            | ExprKind::Float(_)
            | ExprKind::String(_)
            | ExprKind::Struct(_)
            | ExprKind::Variable(_)
            | ExprKind::If(_)
            | ExprKind::Paren(_)
            | ExprKind::Operator { .. }
            | ExprKind::Not(_)
            | ExprKind::In { .. }
            | ExprKind::Lookup { .. }
            | ExprKind::StructLookup { .. }
            | ExprKind::StructLookupOptional { .. }
            | ExprKind::Except { .. } => true,
        };
        if !is_plain {
            return false;
        }
        kind.for_each_child(|child| open.push(child));
    }
    true
}
