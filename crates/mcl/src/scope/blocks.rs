//! Blocks: their frames, the names that their statements produce, and the statements.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use setpoint_diagnostics::{Diagnostic, Span};

use super::classes::{ClassSource, IncludeSource};
use super::codes;
use super::expressions::annotation_type;
use super::mentions::AliasDefinition;
use super::nesting::Entry as NestedEntry;
use super::resolve::{Alias, Frame, FrameId, Resolver};
use crate::hir::{
    Body, BodyId, Class, ClassId, Definition, DefinitionId, DefinitionKind, ExprId, Function, FunctionId,
    Include, IncludeId, Owner, Statement,
};
use crate::stack::with_room;
use crate::syntax::{self, Ast, Block, StmtId, StmtKind};

/// Blocks inside blocks beyond this are refused, which only included classes can reach.
const MAXIMUM_DEPTH: u32 = 5000;

impl Resolver<'_> {
    pub(super) fn new_body(&mut self, file: usize) -> BodyId {
        let module_directory = self.files[file].module_directory.clone();
        self.hir.bodies.push(Body {
            statements: Vec::new(),
            module_directory,
        });
        BodyId(self.hir.bodies.len() as u32 - 1)
    }

    pub(super) fn new_frame(
        &mut self,
        parent: Option<FrameId>,
        file: usize,
        extent: Span,
        owner: Owner,
        body: BodyId,
    ) -> FrameId {
        self.frames.push(Frame {
            extent,
            opened_at: None,
            parent,
            file,
            owner,
            body,
            variables: FxHashMap::default(),
            functions: FxHashMap::default(),
            classes: FxHashMap::default(),
            aliases: BTreeMap::new(),
            stars: Vec::new(),
        });
        FrameId(self.frames.len() - 1)
    }

    /// A frame inside another for names that an expression binds (parameters).
    pub(super) fn inner_frame(&mut self, parent: FrameId, extent: Span, owner: Owner) -> FrameId {
        let (file, body) = (self.frames[parent.0].file, self.frames[parent.0].body);
        self.new_frame(Some(parent), file, extent, owner, body)
    }

    /// The statements of a block, with the classes that moved into it.
    pub(super) fn entries(&self, file: usize, block: &Block, class: Option<StmtId>) -> Vec<NestedEntry> {
        let parsed = &self.files[file].parsed;
        parsed.nesting.entries(&parsed.ast, block, class)
    }

    pub(super) fn file_of(&self, frame: FrameId) -> usize {
        self.frames[frame.0].file
    }

    pub(super) fn owner_of(&self, frame: FrameId) -> Owner {
        self.frames[frame.0].owner
    }

    pub(super) fn ast_of(&self, frame: FrameId) -> Arc<Ast> {
        self.files[self.frames[frame.0].file].parsed.ast.clone()
    }

    pub(super) fn module_directory_of(&self, frame: FrameId) -> Arc<str> {
        self.files[self.frames[frame.0].file].module_directory.clone()
    }

    pub(super) fn define(
        &mut self,
        frame: FrameId,
        name: &syntax::Name,
        span: Span,
        kind: DefinitionKind,
    ) -> DefinitionId {
        let Frame { owner, body, .. } = self.frames[frame.0];
        self.hir.definitions.push(Definition {
            name: name.text.clone(),
            span,
            name_span: name.span,
            kind,
            owner,
            body: Some(body),
        });
        let id = DefinitionId(self.hir.definitions.len() as u32 - 1);
        self.frames[frame.0].variables.insert(name.text.clone(), id);
        id
    }

    /// Resolves the statements of a block into the frame's body.
    pub(super) fn block(&mut self, frame: FrameId, entries: &[NestedEntry]) {
        with_room(|| self.statements(frame, entries));
    }

    fn statements(&mut self, frame: FrameId, entries: &[NestedEntry]) {
        let ast = self.ast_of(frame);
        self.imports(frame, &ast, entries);
        let placeholders = self.produced_names(frame, &ast, entries);
        for (entry, placeholder) in entries.iter().zip(placeholders) {
            if self.is_stopped() {
                return;
            }
            self.statement(frame, &ast, entry.statement, placeholder);
        }
    }

    /// Enters all names that the block produces. Those that it produces twice have been reported.
    pub(super) fn produced_names(
        &mut self,
        frame: FrameId,
        ast: &Ast,
        entries: &[NestedEntry],
    ) -> Vec<Produced> {
        let Frame {
            owner, body, file, ..
        } = self.frames[frame.0];
        let mut produced = Vec::with_capacity(entries.len());
        for entry in entries {
            let statement = ast.stmt(entry.statement);
            produced.push(match &statement.kind {
                StmtKind::Bind(bind) => {
                    let annotation = bind.annotation.as_ref().map(annotation_type);
                    let kind = DefinitionKind::Bind {
                        value: ExprId(u32::MAX),
                        annotation,
                    };
                    Produced::Definition(self.define(frame, &bind.name, statement.span, kind))
                }
                StmtKind::Func(func) => {
                    let id = FunctionId(self.hir.functions.len() as u32);
                    self.hir.functions.push(Function {
                        name: Some(func.name.text.clone()),
                        parameters: Vec::new(),
                        result: func.function.result.as_ref().map(annotation_type),
                        body: ExprId(u32::MAX),
                        span: statement.span,
                        name_span: Some(func.name.span),
                        owner,
                    });
                    self.frames[frame.0].functions.insert(func.name.text.clone(), id);
                    Produced::Function(id)
                }
                StmtKind::Class(class) => {
                    let name = entry.class_name.clone().unwrap_or_default();
                    // Of `a:b`, which moved into `a`, the `b`.
                    let name_span = Span {
                        start: class.name.span.end.saturating_sub(name.len() as u32),
                        ..class.name.span
                    };
                    let id = ClassId(self.hir.classes.len() as u32);
                    self.hir.classes.push(Class {
                        name: name.clone(),
                        parameters: Vec::new(),
                        body: None,
                        span: statement.span,
                        name_span,
                        owner,
                    });
                    self.class_sources
                        .push(ClassSource::new(file, entry.statement, frame));
                    self.frames[frame.0].classes.insert(name, id);
                    Produced::Nothing
                }
                StmtKind::Include(include) => {
                    let id = IncludeId(self.hir.includes.len() as u32);
                    self.hir.includes.push(Include {
                        path: Box::default(),
                        class: ClassId(u32::MAX),
                        arguments: Vec::new(),
                        span: statement.span,
                        owner,
                        body,
                    });
                    self.include_sources
                        .push(IncludeSource::new(frame, include.class.clone()));
                    if let Some(alias) = &include.alias {
                        let definition = AliasDefinition {
                            name: Some(alias.text.clone()),
                            name_span: alias.span,
                            statement: statement.span,
                            include: Some(id),
                        };
                        self.enter_alias(frame, definition, Alias::Include(id));
                    }
                    Produced::Include(id)
                }
                StmtKind::If(_)
                | StmtKind::For(_)
                | StmtKind::ForKv(_)
                | StmtKind::Resource(_)
                | StmtKind::Edge(_)
                | StmtKind::Import(_)
                | StmtKind::Panic(_) => Produced::Nothing,
            });
        }
        produced
    }

    /// Makes known in a block what stands behind an alias, or behind `as *`.
    pub(super) fn enter_alias(&mut self, frame: FrameId, definition: AliasDefinition, alias: Alias) {
        let name = definition.name.clone();
        let id = self.mentions.alias(definition);
        let frame = &mut self.frames[frame.0];
        match name {
            Some(name) => {
                frame.aliases.insert(name, (alias, id));
            }
            None => frame.stars.push((alias, id)),
        }
    }

    pub(super) fn statement(&mut self, frame: FrameId, ast: &Ast, id: StmtId, produced: Produced) {
        let body = self.frames[frame.0].body;
        let statement = ast.stmt(id);
        let output = match (&statement.kind, produced) {
            (StmtKind::Bind(bind), Produced::Definition(definition)) => {
                let resolved = self.expr(frame, ast, bind.value);
                if let DefinitionKind::Bind { value, .. } = &mut self.hir.definitions[definition.index()].kind
                {
                    *value = resolved;
                }
                return;
            }
            (StmtKind::Func(func), Produced::Function(function)) => {
                self.function(frame, ast, &func.function, function, Owner::Function(function));
                return;
            }
            (StmtKind::Include(include), Produced::Include(id)) => {
                self.include(frame, ast, include, id, statement.span);
                Statement::Include(id)
            }
            (StmtKind::If(branches), _) => {
                let condition = self.expr(frame, ast, branches.condition);
                let then = self.child_block(frame, &branches.then_block, &[]);
                let otherwise = branches
                    .else_block
                    .as_ref()
                    .map(|block| self.child_block(frame, block, &[]).0);
                Statement::If {
                    condition,
                    then: then.0,
                    otherwise,
                    span: statement.span,
                }
            }
            (StmtKind::For(body) | StmtKind::ForKv(body), _) => {
                let iterable = self.expr(frame, ast, body.iterable);
                let (inner, definitions) = self.child_block(frame, &body.body, &[&body.key, &body.value]);
                Statement::Loop {
                    over_map: matches!(statement.kind, StmtKind::ForKv(_)),
                    iterable,
                    key: definitions[0],
                    value: definitions[1],
                    body: inner,
                    span: statement.span,
                }
            }
            (StmtKind::Resource(resource), _) => {
                Statement::Resource(Box::new(self.resource(frame, ast, resource, statement.span)))
            }
            (StmtKind::Edge(edge), _) => {
                let endpoints = edge
                    .endpoints
                    .iter()
                    .map(|endpoint| self.endpoint(frame, ast, endpoint))
                    .collect();
                Statement::Edge(Box::new(crate::hir::Edge {
                    endpoints,
                    span: statement.span,
                }))
            }
            (StmtKind::Panic(arguments), _) => {
                let arguments = arguments
                    .items
                    .iter()
                    .map(|id| self.expr(frame, ast, *id))
                    .collect();
                Statement::Panic {
                    arguments,
                    span: statement.span,
                }
            }
            (
                StmtKind::Bind(_)
                | StmtKind::Func(_)
                | StmtKind::Include(_)
                | StmtKind::Class(_)
                | StmtKind::Import(_),
                _,
            ) => {
                return;
            }
        };
        self.hir.bodies[body.index()].statements.push(output);
    }

    /// A block inside another, with the loop variables it begins with.
    fn child_block(
        &mut self,
        frame: FrameId,
        block: &Block,
        variables: &[&syntax::Name],
    ) -> (BodyId, Vec<DefinitionId>) {
        let (file, owner) = (self.frames[frame.0].file, self.frames[frame.0].owner);
        let body = self.new_body(file);
        // The variables have a frame of their own: the block may define the same names anew.
        let outer = self.new_frame(Some(frame), file, block.span, owner, body);
        let kinds = [DefinitionKind::LoopKey, DefinitionKind::LoopValue];
        let mut definitions = Vec::new();
        for (name, kind) in variables.iter().zip(kinds) {
            let span = Span {
                start: name.span.start.saturating_sub(1),
                ..name.span
            };
            definitions.push(self.define(outer, name, span, kind));
        }
        let inner = self.new_frame(Some(outer), file, block.span, owner, body);
        self.frames[inner.0].opened_at = Some(block.span.start);
        if self.depth == MAXIMUM_DEPTH {
            let message =
                format!("blocks and included classes are nested more than {MAXIMUM_DEPTH} levels deep");
            self.report(frame, Diagnostic::error(&codes::TOO_DEEP, block.span, message));
            return (body, definitions);
        }
        self.depth += 1;
        let entries = self.entries(file, block, None);
        self.block(inner, &entries);
        self.depth -= 1;
        (body, definitions)
    }
}

/// What a statement produces, found before any expression is resolved.
#[derive(Debug, Clone, Copy)]
pub(super) enum Produced {
    Nothing,
    Definition(DefinitionId),
    Function(FunctionId),
    Include(IncludeId),
}
