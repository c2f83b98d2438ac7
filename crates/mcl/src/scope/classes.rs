//! Classes and includes: which class an include means, and the body of a class, resolved when it is first needed, or at the very end.

use setpoint_diagnostics::{Diagnostic, Span, did_you_mean};

use super::codes;
use super::expressions::annotation_type;
use super::names::{Meaning, Space};
use super::resolve::{FrameId, Resolver};
use crate::hir::{ClassId, DefinitionKind, ExprId, IncludeId, Owner};
use crate::stack::with_room;
use crate::syntax::{self, Ast, Name, StmtId, StmtKind};

/// Includes inside included classes beyond this are refused.
const MAXIMUM_INCLUDES: u32 = 200;

/// What a class says, until its body is resolved.
pub(super) struct ClassSource {
    file: usize,
    statement: StmtId,
    defined_in: FrameId,
    state: ClassState,
}

/// What an include says, until its class is looked for.
pub(super) struct IncludeSource {
    frame: FrameId,
    class: Name,
    state: IncludeState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IncludeState {
    Untouched,
    InProgress,
    Done,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClassState {
    Untouched,
    InProgress,
    Done(FrameId),
}

impl ClassSource {
    /// A class that nothing has needed yet.
    pub(super) fn new(file: usize, statement: StmtId, defined_in: FrameId) -> ClassSource {
        ClassSource {
            file,
            statement,
            defined_in,
            state: ClassState::Untouched,
        }
    }

    /// The frame of the body, if something has needed it.
    pub(super) fn resolved(&self) -> Option<FrameId> {
        match self.state {
            ClassState::Done(frame) => Some(frame),
            ClassState::Untouched | ClassState::InProgress => None,
        }
    }
}

impl IncludeSource {
    /// An include in a frame, of a class by its name there.
    pub(super) fn new(frame: FrameId, class: Name) -> IncludeSource {
        IncludeSource {
            frame,
            class,
            state: IncludeState::Untouched,
        }
    }
}

impl Resolver<'_> {
    /// The class of an include, looked for when it is first needed: by its statement, or by a name behind its alias, which may
    /// stand before it. None where there is none, which is reported.
    pub(super) fn linked_class(&mut self, id: IncludeId) -> Option<ClassId> {
        if self.include_sources[id.index()].state == IncludeState::Untouched {
            with_room(|| self.link_class(id));
        }
        let class = self.hir.include(id).class;
        (class != ClassId(u32::MAX)).then_some(class)
    }

    fn link_class(&mut self, id: IncludeId) {
        let source = &mut self.include_sources[id.index()];
        source.state = IncludeState::InProgress;
        let (frame, name) = (source.frame, source.class.clone());
        let found = self.find_mentioned(frame, Space::Class, &name.text, name.span);
        if let Some((path, Meaning::Class(class))) = found.map(|found| (found.path, found.meaning)) {
            let entry = &mut self.hir.includes[id.index()];
            entry.path = path;
            entry.class = class;
        } else {
            self.unknown_class(frame, &name.text, self.hir.include(id).span);
        }
        self.include_sources[id.index()].state = IncludeState::Done;
    }

    fn unknown_class(&mut self, frame: FrameId, name: &str, span: Span) {
        if self.may_have_failed(frame, name) {
            return;
        }
        let names = self.similar_names(frame, Space::Class);
        let help = did_you_mean(name, names.iter().map(String::as_str)).unwrap_or_else(|| match name.split_once('.') {
            Some((before, _)) => format!(
                "a class behind `{before}.` belongs to what is imported or included as `{before}`"
            ),
            None => format!(
                "a class is defined in this file with `class {name} {{ … }}`, or comes from an import: `include module.{name}`"
            ),
        });
        let message = format!("there is no class `{name}` here");
        let error = Diagnostic::error(&codes::UNKNOWN_CLASS, span, message).label("not defined");
        self.report(frame, error.help(help));
    }

    pub(super) fn include(
        &mut self,
        frame: FrameId,
        ast: &Ast,
        include: &syntax::Include,
        id: IncludeId,
        span: Span,
    ) {
        let items = include
            .arguments
            .as_ref()
            .map(|a| a.items.as_slice())
            .unwrap_or_default();
        let arguments: Vec<ExprId> = items.iter().map(|id| self.expr(frame, ast, *id)).collect();
        let given = arguments.len();
        self.hir.includes[id.index()].arguments = arguments;
        let Some(class) = self.linked_class(id) else {
            return;
        };
        let source = &self.class_sources[class.index()];
        let class_ast = self.files[source.file].parsed.ast.clone();
        let StmtKind::Class(definition) = &class_ast.stmt(source.statement).kind else {
            return;
        };
        let wanted = definition.parameters.as_ref().map_or(0, |p| p.items.len());
        let unfinished = |id: &syntax::ExprId| matches!(ast.expr(*id).kind, syntax::ExprKind::Unfinished(_));
        if given != wanted && !items.iter().any(unfinished) {
            let message = format!(
                "the class `{}` takes {}, given {given}",
                include.class.text,
                count(wanted)
            );
            let error = Diagnostic::error(&codes::INCLUDE_ARGUMENTS, span, message);
            let parameters = definition.parameters.iter().flat_map(|p| &p.items);
            let missing: Vec<_> = parameters.skip(given).collect();
            let error = match missing.as_slice() {
                [] => error.because(self.hir.class(class).span, "the class"),
                missing => missing
                    .iter()
                    .fold(error, |error, parameter| error.because(parameter.span, "missing")),
            };
            self.report(frame, error);
            return;
        }
        if source.state == ClassState::InProgress {
            let message = format!("the class `{}` includes itself", include.class.text);
            self.report(frame, Diagnostic::error(&codes::RECURSIVE_CLASS, span, message));
            return;
        }
        self.class_frame(class);
    }

    /// Resolves the body of a class, the first time.
    pub(super) fn class_frame(&mut self, class: ClassId) -> Option<FrameId> {
        match self.class_sources[class.index()].state {
            ClassState::Done(frame) => Some(frame),
            ClassState::InProgress => None,
            ClassState::Untouched => with_room(|| self.new_class_frame(class)),
        }
    }

    fn new_class_frame(&mut self, class: ClassId) -> Option<FrameId> {
        let source = &self.class_sources[class.index()];
        let (file, statement, parent) = (source.file, source.statement, source.defined_in);
        if self.including >= MAXIMUM_INCLUDES {
            let message = format!("classes include each other more than {MAXIMUM_INCLUDES} levels deep");
            let span = self.hir.class(class).span;
            self.report(parent, Diagnostic::error(&codes::TOO_DEEP, span, message));
            return None;
        }
        self.class_sources[class.index()].state = ClassState::InProgress;
        let ast = self.files[file].parsed.ast.clone();
        let StmtKind::Class(definition) = &ast.stmt(statement).kind else {
            return None;
        };
        let body = self.new_body(file);
        let owner = Owner::Class(class);
        let extent = match &definition.parameters {
            Some(parameters) => parameters.span.to(definition.body.span),
            None => definition.body.span,
        };
        let outer = self.new_frame(Some(parent), file, extent, owner, body);
        let mut parameters = Vec::new();
        for (index, parameter) in definition.parameters.iter().flat_map(|p| &p.items).enumerate() {
            let annotation = parameter.annotation.as_ref().map(annotation_type);
            let kind = DefinitionKind::ClassParameter { index, annotation };
            parameters.push(self.define(outer, &parameter.name, parameter.span, kind));
        }
        let inner = self.new_frame(Some(outer), file, definition.body.span, owner, body);
        self.frames[inner.0].opened_at = Some(definition.body.span.start);
        self.hir.classes[class.index()].parameters = parameters;
        self.hir.classes[class.index()].body = Some(body);
        let entries = self.entries(file, &definition.body, Some(statement));
        // Names first: what includes this class under an alias may already ask for them.
        self.imports(inner, &ast, &entries);
        let produced = self.produced_names(inner, &ast, &entries);
        self.class_sources[class.index()].state = ClassState::Done(inner);
        self.including += 1;
        self.depth += 1;
        for (entry, produced) in entries.iter().zip(produced) {
            if self.is_stopped() {
                break;
            }
            self.statement(inner, &ast, entry.statement, produced);
        }
        self.depth -= 1;
        self.including -= 1;
        Some(inner)
    }

    /// Resolves the classes that nothing includes, and those in them. What is wrong with them is no error before something does.
    pub(super) fn unused_classes(&mut self) -> Vec<Diagnostic> {
        let mut next = 0;
        let mut warnings = Vec::new();
        while next < self.class_sources.len() && !self.is_stopped() {
            let class = ClassId(next as u32);
            self.class_frame(class);
            let name = self.hir.class(class).name.clone();
            let note =
                format!("nothing includes the class `{name}` yet; with its first include this is an error");
            let found = std::mem::take(&mut self.errors);
            warnings.extend(found.into_iter().map(|error| error.diagnostic.as_warning(&note)));
            next += 1;
        }
        warnings
    }

    /// The block of each class, where it was resolved.
    pub(super) fn class_frames(&self) -> Vec<Option<FrameId>> {
        let frame = |source: &ClassSource| match source.state {
            ClassState::Done(frame) => Some(frame),
            ClassState::Untouched | ClassState::InProgress => None,
        };
        self.class_sources.iter().map(frame).collect()
    }
}

fn count(parameters: usize) -> String {
    match parameters {
        0 => "no arguments".to_owned(),
        1 => "1 argument".to_owned(),
        n => format!("{n} arguments"),
    }
}
