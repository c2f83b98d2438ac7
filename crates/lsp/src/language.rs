//! The languages that the server speaks, by the endings of files, and what it needs of the analysis of each. What is the same for all of
//! them (navigation, outlines, renaming, diagnostics, their quick fixes) is written once, on [`Analysed`].

use setpoint_cf::analysis as model;
use setpoint_cf::lint::LINTER;
use setpoint_diagnostics::{Diagnostic, Diagnostics, FileId, Severity, SourceMap, Span};
use setpoint_graph::Library;
use setpoint_mcl::analysis as mcl;
use setpoint_mcl::lint::RULES;
use setpoint_mcl::syntax::TokenKind;

/// A language.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Language {
    /// mcl, which every document is in that is not known to be in another one.
    Mcl,
    /// The model language.
    Model,
}

impl Language {
    /// The language of a document, by its path or address.
    pub(crate) fn of(path: &str) -> Language {
        match path.ends_with(".cf") {
            true => Language::Model,
            false => Language::Mcl,
        }
    }

    /// Files that make a directory a program, the likelier first.
    pub(crate) fn beginnings(self) -> &'static [&'static str] {
        match self {
            Language::Mcl => &["metadata.yaml", "main.mcl"],
            Language::Model => &["project.yml"],
        }
    }

    /// The name of the linter's rule that a code belongs to.
    pub(crate) fn rule_of(code: &str) -> Option<&'static str> {
        let rule = RULES.iter().find(|rule| rule.code.code == code);
        rule.map(|rule| rule.name).or_else(|| LINTER.rule_of(code))
    }
}

/// An entry of an outline.
#[derive(Debug)]
pub(crate) struct Symbol {
    pub(crate) kind: lsp_types::SymbolKind,
    pub(crate) name: String,
    pub(crate) name_span: Span,
    pub(crate) span: Span,
    pub(crate) children: Vec<Symbol>,
}

/// What is known about a program, whatever its language.
pub(crate) trait Analysed {
    /// What a name means.
    type Target;

    /// All texts.
    fn sources(&self) -> &SourceMap;

    /// What is wrong, and what the linter finds in the texts that `is_own` accepts besides those that the language itself knows to be.
    fn found(&self, library: &Library, is_own: &dyn Fn(FileId) -> bool) -> Diagnostics;

    /// The name at a place, with what it means.
    fn name(&self, file: FileId, offset: u32) -> Option<(Span, &Self::Target)>;

    /// Where something is defined.
    fn defined(&self, target: &Self::Target) -> Option<Span>;

    /// All places where something is named, and whether it is defined there.
    fn mentioned(&self, target: &Self::Target) -> Vec<(Span, bool)>;

    /// The outline of a file.
    fn symbols_of(&self, file: FileId) -> Vec<Symbol>;

    /// Whether a place is inside of a text that began before it.
    fn is_in_text(&self, file: FileId, offset: u32) -> bool;
}

impl Analysed for mcl::Analysis {
    type Target = mcl::Target;

    fn sources(&self) -> &SourceMap {
        &self.sources
    }

    fn found(&self, library: &Library, is_own: &dyn Fn(FileId) -> bool) -> Diagnostics {
        let mut found = errors(&self.diagnostics);
        found.extend(self.too_large(library));
        found.append(setpoint_mcl::lint::lint(self, library, &|file| {
            is_own(file) || self.is_own(file)
        }));
        found
    }

    fn name(&self, file: FileId, offset: u32) -> Option<(Span, &mcl::Target)> {
        self.name_at(file, offset).map(|name| (name.span, &name.target))
    }

    fn defined(&self, target: &mcl::Target) -> Option<Span> {
        self.definition(target)
    }

    fn mentioned(&self, target: &mcl::Target) -> Vec<(Span, bool)> {
        let names = self.references(target).into_iter();
        names.map(|name| (name.span, name.is_definition)).collect()
    }

    fn symbols_of(&self, file: FileId) -> Vec<Symbol> {
        self.symbols(file).into_iter().map(of_mcl).collect()
    }

    fn is_in_text(&self, file: FileId, offset: u32) -> bool {
        self.parsed(file).is_some_and(|parsed| {
            let token = parsed.tokens.at(offset);
            parsed.tokens.kind(token) == TokenKind::String && parsed.tokens.range(token).start < offset
        })
    }
}

impl Analysed for model::Analysis {
    type Target = model::Target;

    fn sources(&self) -> &SourceMap {
        &self.sources
    }

    fn found(&self, _: &Library, _: &dyn Fn(FileId) -> bool) -> Diagnostics {
        let mut found = errors(&self.diagnostics);
        found.append(setpoint_cf::lint::lint(self));
        found
    }

    fn name(&self, file: FileId, offset: u32) -> Option<(Span, &model::Target)> {
        self.name_at(file, offset).map(|name| (name.span, &name.target))
    }

    fn defined(&self, target: &model::Target) -> Option<Span> {
        self.definition(target)
    }

    fn mentioned(&self, target: &model::Target) -> Vec<(Span, bool)> {
        let names = self.references(target).into_iter();
        names.map(|name| (name.span, name.is_definition)).collect()
    }

    fn symbols_of(&self, file: FileId) -> Vec<Symbol> {
        self.outline(file).into_iter().map(of_model).collect()
    }

    fn is_in_text(&self, file: FileId, offset: u32) -> bool {
        self.lexed(file).is_some_and(|lexed| {
            let mut tokens = lexed.tokens.iter();
            tokens.any(|token| token.kind.is_string() && token.start < offset && offset < token.end)
        })
    }
}

fn errors(found: &Diagnostics) -> Diagnostics {
    let is_error = |found: &&Diagnostic| found.severity == Severity::Error;
    let mut errors = Diagnostics::new();
    errors.extend(found.iter().filter(is_error).cloned());
    errors
}

fn of_mcl(symbol: mcl::Symbol) -> Symbol {
    Symbol {
        kind: match symbol.kind {
            mcl::SymbolKind::Variable => lsp_types::SymbolKind::VARIABLE,
            mcl::SymbolKind::Function => lsp_types::SymbolKind::FUNCTION,
            mcl::SymbolKind::Class => lsp_types::SymbolKind::CLASS,
            mcl::SymbolKind::Resource => lsp_types::SymbolKind::OBJECT,
            mcl::SymbolKind::Import => lsp_types::SymbolKind::MODULE,
            mcl::SymbolKind::Include => lsp_types::SymbolKind::CONSTRUCTOR,
        },
        name: symbol.name,
        name_span: symbol.name_span,
        span: symbol.span,
        children: symbol.children.into_iter().map(of_mcl).collect(),
    }
}

fn of_model(entry: model::Outline) -> Symbol {
    Symbol {
        kind: match entry.kind {
            model::OutlineKind::Entity => lsp_types::SymbolKind::CLASS,
            model::OutlineKind::Attribute => lsp_types::SymbolKind::FIELD,
            model::OutlineKind::Relation => lsp_types::SymbolKind::PROPERTY,
            model::OutlineKind::Typedef => lsp_types::SymbolKind::TYPE_PARAMETER,
            model::OutlineKind::Index => lsp_types::SymbolKind::KEY,
            model::OutlineKind::Implementation => lsp_types::SymbolKind::METHOD,
            model::OutlineKind::Implement => lsp_types::SymbolKind::EVENT,
            model::OutlineKind::Variable => lsp_types::SymbolKind::VARIABLE,
            model::OutlineKind::Import => lsp_types::SymbolKind::MODULE,
        },
        name: entry.name,
        name_span: entry.name_span,
        span: entry.span,
        children: entry.children.into_iter().map(of_model).collect(),
    }
}
