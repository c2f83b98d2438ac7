//! What can be wrong with resources and edges, as facts, and what the language in which they are written makes of it.
//!
//! The rules here hold for every language, and so do the messages. Which code a problem has, in which stage it counts, what to
//! write instead, and which rules there are besides, is the [`Language`]'s.

use std::fmt;
use std::sync::Arc;

use setpoint_diagnostics::{CodeInfo, Diagnostic, Label, Severity, Span};

use crate::{Doubt, Invalid, MetaName, MetaParameters, ResourceId, Written};

/// What is wrong. The message says it in words; this is for the language, which tells one problem from another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// The name of a resource is empty.
    EmptyName,
    /// The name of a resource is sensitive.
    SensitiveName,
    /// The name of a resource is no text.
    NameNotText,
    /// There is no such kind.
    UnknownKind,
    /// A value does not fit this parameter.
    ValueDoesNotFit(&'static str),
    /// A meta parameter is not valid; none where it is several or not known which.
    BadMeta(Option<MetaName>),
    /// What is to be collected stands for no resource, or cannot be read.
    BadCollect(CollectProblem),
    /// The kind refuses the resource.
    Invalid {
        /// The parameter that it blames, if it is one.
        parameter: Option<&'static str>,
    },
    /// The kind doubts that the resource is what was meant.
    Doubtful(Doubt),
    /// Two resources of one name want different things.
    DifferentDuplicate,
    /// Two resources of one name cannot be merged by their kind.
    IncompatibleDuplicate,
    /// Two resources of one name are exported to one host, and differ.
    DifferentExports,
    /// An edge leads to this resource, which does not exist.
    MissingResource(ResourceId),
    /// This parameter is sent by two.
    SecondSender(Arc<str>),
    /// A hidden resource sends.
    HiddenSender,
    /// What is sent and what receives it do not fit.
    SendMismatch,
    /// These wait for each other in a circle.
    Cycle(Vec<ResourceId>),
}

/// Why something cannot be collected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CollectProblem {
    /// A pair of name and host in which one of them says nothing.
    BadPair,
    /// What another host exports cannot be read here.
    Unreadable,
}

/// A language that describes resources.
pub trait Language: fmt::Debug + Sync {
    /// The code under which it tells a problem.
    fn code(&self, problem: &Problem) -> &'static CodeInfo;

    /// Adds what only it knows: what to write instead, what it calls such errors, which error this is the cause of.
    fn complete(&self, problem: &Problem, found: Diagnostic) -> Diagnostic {
        let _ = problem;
        found
    }

    /// How its programs write a meta parameter.
    fn meta_parameter(&self, name: MetaName) -> String;

    /// A rule of its own for names of resources: what is wrong with one that is neither empty nor sensitive.
    fn refuse_name(&self, named: &Named<'_>) -> Option<Diagnostic> {
        let _ = named;
        None
    }
}

/// A resource that has got its name.
#[derive(Debug, Clone, Copy)]
pub struct Named<'a> {
    /// Kind and name.
    pub id: &'a ResourceId,
    /// What its statement sets.
    pub meta: &'a MetaParameters,
    /// The meta parameters whose values are not known yet.
    pub unknown: &'a Written,
    /// The statement.
    pub span: Span,
}

/// A problem with its message and places, before a language has told it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Finding {
    /// What is wrong.
    pub problem: Problem,
    severity: Severity,
    message: String,
    primary: Label,
    /// The place that the rules blame, where another one is shown.
    ruled: Option<Span>,
    reasons: Vec<Label>,
    help: Option<String>,
}

impl Finding {
    pub(crate) fn error(problem: Problem, span: Span, message: impl Into<String>) -> Finding {
        Finding {
            problem,
            severity: Severity::Error,
            message: message.into(),
            primary: Label {
                span,
                text: String::new(),
            },
            ruled: None,
            reasons: Vec::new(),
            help: None,
        }
    }

    pub(crate) fn label(mut self, text: impl Into<String>) -> Finding {
        self.primary.text = text.into();
        self
    }

    /// Shows it at a place that says more than the one that the rules blame.
    pub(crate) fn shown_at(mut self, span: Span) -> Finding {
        if span != self.primary.span {
            self.ruled.get_or_insert(self.primary.span);
            self.primary.span = span;
        }
        self
    }

    pub(crate) fn because(mut self, span: Span, text: impl Into<String>) -> Finding {
        let text = text.into();
        self.reasons.push(Label { span, text });
        self
    }

    pub(crate) fn help_if(mut self, help: Option<String>) -> Finding {
        self.help = help;
        self
    }

    /// What is wrong, in words: one line without a full stop.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The diagnostic of a language.
    pub fn tell(self, language: &dyn Language) -> Diagnostic {
        let found = Diagnostic {
            severity: self.severity,
            secondary: self.reasons,
            ruled: self.ruled,
            ..Diagnostic::error(language.code(&self.problem), self.primary.span, self.message)
        };
        let found = found.label(self.primary.text).help_if(self.help);
        language.complete(&self.problem, found)
    }

    /// There is no kind of a resource's name.
    pub fn unknown_kind(kind: &str, span: Span) -> Finding {
        let message = format!("there is no kind of resource `{kind}`");
        Finding::error(Problem::UnknownKind, span, message)
    }

    /// A kind refuses a resource or doubts it. It is shown at `place`: where the parameter was written that the kind blames, or else where
    /// the resource begins, and then it is not written.
    pub fn invalid(id: &ResourceId, invalid: Invalid, statement: Span, place: (Span, bool)) -> Finding {
        let (place, is_written) = place;
        let Invalid {
            parameter,
            doubt,
            message,
            help,
        } = invalid;
        let found = match doubt {
            None => {
                // Where it is not written, there is no place to point at that would say which one is meant.
                let unwritten = parameter
                    .filter(|_| !is_written)
                    .map(|name| format!("`{name}`"))
                    .filter(|name| !message.contains(name.as_str()))
                    .map_or(String::new(), |name| format!("{name}: "));
                let text = format!("`{id}` is not valid: {unwritten}{message}");
                Finding::error(Problem::Invalid { parameter }, statement, text)
            }
            Some(doubt) => Finding {
                severity: Severity::Warning,
                ..Finding::error(Problem::Doubtful(doubt), statement, format!("`{id}`: {message}"))
            },
        };
        found.help_if(help).shown_at(place)
    }

    /// A resource manages what only one of a program can, and another one does already.
    pub fn one_too_many(
        noun: &str,
        key: &str,
        (id, span): (&ResourceId, Span),
        other: (&ResourceId, Span),
    ) -> Finding {
        let message = format!("`{id}` is not valid: `{}` has the {noun} {key} already", other.0);
        Finding::error(Problem::Invalid { parameter: None }, span, message)
            .because(other.1, "the other one")
            .help_if(Some(format!(
                "one resource of a program can have a {noun}; keep one of the two"
            )))
    }

    /// A resource wants something else of what another one decides, too: `what` is `the line `a` in /b`.
    pub fn disagreement(what: &str, (id, span): (&ResourceId, Span), other: (&ResourceId, Span)) -> Finding {
        let message = format!(
            "`{id}` is not valid: `{}` wants something else of {what}",
            other.0
        );
        Finding::error(Problem::Invalid { parameter: None }, span, message)
            .because(other.1, "the other one")
            .help_if(Some(
                "they would undo each other for ever; keep one of the two, or let both want the same"
                    .to_owned(),
            ))
    }

    /// A resource edits a file that another one writes as a whole.
    pub fn edits_a_whole(path: &str, (id, span): (&ResourceId, Span), whole: (&ResourceId, Span)) -> Finding {
        let message = format!(
            "`{id}` is not valid: it edits {path}, and `{}` writes all of it",
            whole.0
        );
        Finding::error(Problem::Invalid { parameter: None }, span, message)
            .because(whole.1, "the one that writes all of it")
            .help_if(Some(
                "they would undo each other for ever; put the edit into the contents, or keep one of the two"
                    .to_owned(),
            ))
    }

    /// Resources wait for each other: each comes before the next, and the last before the first. `resource` gives where one of them was
    /// written, and `edge` where an edge between two was. None where that is not known of any.
    #[must_use]
    pub fn circle(
        circle: &[ResourceId],
        resource: &dyn Fn(&ResourceId) -> Option<Span>,
        edge: &dyn Fn(&ResourceId, &ResourceId) -> Option<Span>,
    ) -> Option<Finding> {
        let first = circle.first()?;
        let shown = || circle.iter().enumerate().take(SHOWN_CYCLE);
        let mut path: Vec<String> = shown().map(|(_, id)| id.to_string()).collect();
        if circle.len() > SHOWN_CYCLE {
            path.push(format!("… ({} more)", circle.len() - SHOWN_CYCLE));
        }
        path.push(first.to_string());
        let message = format!("resources wait for each other: {}", path.join(" -> "));
        let after = |index: usize| &circle[(index + 1) % circle.len()];
        let places = shown().filter_map(|(index, id)| {
            let text = format!("`{id}` comes before `{}`", after(index));
            Some((resource(id)?, text))
        });
        let edges = shown().filter_map(|(index, id)| {
            let text = format!("the edge from `{id}` to `{}`", after(index));
            Some((edge(id, after(index))?, text))
        });
        let mut places = places.chain(edges);
        let (span, text) = places.next()?;
        let found = Finding::error(Problem::Cycle(circle.to_vec()), span, message).label(text);
        Some(places.fold(found, |found, (span, text)| found.because(span, text)))
    }
}

/// More resources of a circle than this are counted, not shown.
const SHOWN_CYCLE: usize = 40;
