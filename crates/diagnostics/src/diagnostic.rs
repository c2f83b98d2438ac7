//! What is wrong with a text, as data.

use crate::{Causes, CodeInfo, Span, Stage};

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// Nothing is done with the program.
    Error,
    /// Worth a look; the program runs.
    Warning,
}

impl Severity {
    /// `error`, `warning`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
    }
}

/// A span and what is to be said there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// The place.
    pub span: Span,
    /// Text beside the underline; may be empty.
    pub text: String,
}

/// A change of the text that removes the cause for certain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// What is replaced.
    pub span: Span,
    /// By what.
    pub replacement: String,
}

/// What the user can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Help {
    /// One sentence, no full stop.
    pub text: String,
    /// The change, when it is certain.
    pub edit: Option<Edit>,
}

/// Advice without an edit.
impl From<String> for Help {
    fn from(text: String) -> Help {
        Help { text, edit: None }
    }
}

/// One thing that is wrong: a code, a message that stands alone, a place, reasons and help.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Diagnostic {
    /// What kind of mistake.
    pub code: &'static CodeInfo,
    /// The stage that rejects. It is the code's own, unless the language says otherwise.
    pub stage: Stage,
    /// What the language calls errors of this sort, where it has names for them besides codes; else empty.
    pub class: &'static str,
    /// How bad.
    pub severity: Severity,
    /// One line without a full stop, understandable alone.
    pub message: String,
    /// Where the user must look.
    pub primary: Label,
    /// The place that the rules of the language blame, where that is another one. Programs that judge errors by their place
    /// compare this one.
    pub ruled: Option<Span>,
    /// Places that explain why.
    pub secondary: Vec<Label>,
    /// The import or call statements on the way from the entry to `primary`, innermost first.
    pub related: Vec<Label>,
    /// Facts worth knowing.
    pub notes: Vec<String>,
    /// What to do.
    pub help: Vec<Help>,
    /// What led to it: complete diagnostics, each with causes of its own. For languages in which one error wraps another.
    pub causes: Causes,
}

impl Diagnostic {
    /// An error of kind `code` at `span`.
    pub fn error(code: &'static CodeInfo, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            code,
            stage: code.stage,
            class: "",
            severity: Severity::Error,
            message: message.into(),
            primary: Label {
                span,
                text: String::new(),
            },
            ruled: None,
            secondary: Vec::new(),
            related: Vec::new(),
            notes: Vec::new(),
            help: Vec::new(),
            causes: Causes::default(),
        }
    }

    /// A warning of kind `code` at `span`.
    pub fn warning(code: &'static CodeInfo, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Warning,
            ..Diagnostic::error(code, span, message)
        }
    }

    /// Says something beside the primary span.
    pub fn label(mut self, text: impl Into<String>) -> Diagnostic {
        self.primary.text = text.into();
        self
    }

    /// Shows the mistake at a place that says more than the one that the rules blame.
    pub fn shown_at(mut self, span: Span) -> Diagnostic {
        if span != self.primary.span {
            self.ruled = Some(self.rule_place());
            self.primary.span = span;
        }
        self
    }

    /// Says which place the rules of the language blame, where the mistake is shown at another one.
    pub fn ruled_at(mut self, span: Span) -> Diagnostic {
        self.ruled = (span != self.primary.span).then_some(span);
        self
    }

    /// The place that the rules of the language blame.
    #[must_use]
    pub fn rule_place(&self) -> Span {
        self.ruled.unwrap_or(self.primary.span)
    }

    /// Shows a second place, with the reason why.
    pub fn because(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.secondary.push(Label {
            span,
            text: text.into(),
        });
        self
    }

    /// Adds a step of the way that led here (an import, an include, a call).
    pub fn via(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.related.push(Label {
            span,
            text: text.into(),
        });
        self
    }

    /// Says what the language calls an error of this sort.
    pub fn of_class(mut self, class: &'static str) -> Diagnostic {
        self.class = class;
        self
    }

    /// Adds another diagnostic as a cause of this one.
    pub fn caused_by(mut self, cause: Diagnostic) -> Diagnostic {
        self.causes.push(cause);
        self
    }

    /// Adds a fact.
    pub fn note(mut self, text: impl Into<String>) -> Diagnostic {
        self.notes.push(text.into());
        self
    }

    /// Adds advice.
    pub fn help(mut self, text: impl Into<String>) -> Diagnostic {
        self.help.push(Help::from(text.into()));
        self
    }

    /// Adds advice if there is any.
    pub fn help_if(mut self, help: Option<impl Into<Help>>) -> Diagnostic {
        self.help.extend(help.map(Into::into));
        self
    }

    /// Adds advice with the edit that follows it.
    pub fn fix(mut self, text: impl Into<String>, span: Span, replacement: impl Into<String>) -> Diagnostic {
        let edit = Edit {
            span,
            replacement: replacement.into(),
        };
        self.help.push(Help {
            text: text.into(),
            edit: Some(edit),
        });
        self
    }

    /// The same as a warning, if it is an error, with a note that says why it is none.
    pub fn as_warning(self, why: &str) -> Diagnostic {
        match self.severity {
            Severity::Warning => self,
            Severity::Error => Diagnostic {
                severity: Severity::Warning,
                ..self
            }
            .note(why),
        }
    }

    /// Moves it to another stage.
    pub fn at_stage(mut self, stage: Stage) -> Diagnostic {
        self.stage = stage;
        self
    }
}

/// Where stages put what they find. Keeps the order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
}

impl Diagnostics {
    /// An empty sink.
    #[must_use]
    pub fn new() -> Diagnostics {
        Diagnostics::default()
    }

    /// Takes one.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.list.push(diagnostic);
    }

    /// Takes all of another sink.
    pub fn append(&mut self, other: Diagnostics) {
        self.list.extend(other.list);
    }

    /// Whether one of them is an error.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.list.iter().any(|d| d.severity == Severity::Error)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How many there are. With [`Diagnostics::truncate`] it lets a caller try something and take it back.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Forgets all but the first `len`.
    pub fn truncate(&mut self, len: usize) {
        self.list.truncate(len);
    }

    /// All, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.list.iter()
    }

    /// All, in order, as a vector.
    #[must_use]
    pub fn into_vec(self) -> Vec<Diagnostic> {
        self.list
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;
    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;
    fn into_iter(self) -> Self::IntoIter {
        self.list.iter()
    }
}

impl Extend<Diagnostic> for Diagnostics {
    fn extend<T: IntoIterator<Item = Diagnostic>>(&mut self, iter: T) {
        self.list.extend(iter);
    }
}
