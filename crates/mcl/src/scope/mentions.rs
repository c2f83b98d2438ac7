//! What each name of the texts means, noted while names are looked up: for go to definition, references, rename, and to know what
//! nothing uses.

use std::sync::Arc;

use rustc_hash::FxHashSet;
use setpoint_diagnostics::{FileId, Span};
use setpoint_graph::MetaName;
use setpoint_value::FunctionRef;

use crate::hir::{ClassId, DefinitionId, FunctionId, IncludeId};

/// An alias: of an import or an include.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AliasId(pub u32);

/// What a name means.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Target {
    /// A variable, of the program or of the library.
    Variable(DefinitionId),
    /// A function of the program.
    Function(FunctionId),
    /// A function of the library.
    LibraryFunction(FunctionRef),
    /// A class.
    Class(ClassId),
    /// What an import or an include is called.
    Alias(AliasId),
    /// A file that is imported.
    File(FileId),
    /// A kind of resource.
    Kind(Arc<str>),
    /// A parameter of a kind of resource, or something that it sends.
    Parameter {
        /// The kind.
        kind: Arc<str>,
        /// The parameter.
        name: Arc<str>,
    },
    /// A meta parameter.
    Meta(MetaName),
}

/// A name in a text, and what it means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention {
    /// Exactly the name: no dollar, no quotes, of a dotted name the part that this is about.
    pub span: Span,
    /// What it means.
    pub target: Target,
}

/// An import or include that gives a name to something, or all names of something.
#[derive(Debug, Clone)]
pub struct AliasDefinition {
    /// The name; none for `as *`.
    pub name: Option<Arc<str>>,
    /// What is written for it: the name behind `as`, the star, or else the path of the import with its quotes.
    pub name_span: Span,
    /// The import or include statement.
    pub statement: Span,
    /// The include, if it is none of an import.
    pub include: Option<IncludeId>,
}

/// All mentions of the texts of a program, in the order in which they were found. What is resolved more than once is there more
/// than once.
#[derive(Debug, Default)]
pub struct Mentions {
    /// Names and what they mean.
    pub list: Vec<Mention>,
    /// Aliases.
    pub aliases: Vec<AliasDefinition>,
    /// Aliases through which something was found; for `as *`, the only trace of it.
    pub used_aliases: FxHashSet<AliasId>,
}

impl Mentions {
    /// Notes an alias.
    pub(super) fn alias(&mut self, alias: AliasDefinition) -> AliasId {
        self.aliases.push(alias);
        AliasId(self.aliases.len() as u32 - 1)
    }

    /// Notes what a name that is no path means.
    pub(super) fn plain(&mut self, span: Span, target: Target) {
        self.list.push(Mention { span, target });
    }

    /// Notes what a dotted name means that was found through aliases, innermost first.
    pub(super) fn record(&mut self, name: &str, span: Span, trail: &[AliasId], target: Target) {
        // A name with white space between its parts is longer in the text than by itself.
        let is_tight = (span.end - span.start) as usize == name.len();
        let mut start = 0;
        for alias in trail.iter().rev() {
            self.used_aliases.insert(*alias);
            if self.aliases[alias.0 as usize].name.is_none() {
                continue;
            }
            let length = name[start..].find('.').unwrap_or(name.len() - start);
            if is_tight || start == 0 {
                let at = span.start + start as u32;
                let span = Span::new(span.file, at, at + length as u32);
                self.plain(span, Target::Alias(*alias));
            }
            start = (start + length + 1).min(name.len());
        }
        let start = match is_tight {
            true => span.start + start as u32,
            false => {
                let last = name.rsplit('.').next().unwrap_or(name);
                span.end.saturating_sub(last.len() as u32)
            }
        };
        self.plain(Span { start, ..span }, target);
    }
}
