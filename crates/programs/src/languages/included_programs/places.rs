//! Places of a program among the texts of the model that includes it.
//!
//! A program is compiled with texts of its own. Where it is told of to somebody who looks at the model, its places are those of the same
//! texts among the model's; and a place in the text that includes it, which nobody wrote, is where the model does so.

use std::sync::Arc;

use setpoint_diagnostics::{Diagnostic, Diagnostics, FileId, Label, SourceMap, Span};
use setpoint_graph::{DesiredEdge, DesiredResource, Link};

use super::ENTRY;

/// Where places are to be found.
pub struct Places {
    /// By the number of a text in the program.
    files: Vec<FileId>,
    /// The text that includes the program.
    entry: Option<FileId>,
    /// Where the model includes it.
    included: Option<Span>,
}

impl Places {
    /// Adds the texts of a program, whose names are relative to `root`, to those of a model.
    pub fn new(program: &SourceMap, root: &str, included: Option<Span>, model: &mut SourceMap) -> Places {
        let mut entry = None;
        let mut files = Vec::new();
        for (id, file) in program.files() {
            if &*file.name == ENTRY {
                entry = Some(id);
            }
            let name = match file.name.starts_with(['/', '<']) {
                true => file.name.to_string(),
                false => format!("{root}{}", file.name),
            };
            let known = model
                .files()
                .find(|(_, known)| *known.name == *name && known.text == file.text)
                .map(|(id, _)| id);
            files.push(known.unwrap_or_else(|| model.add(name, file.text.clone())));
        }
        Places {
            files,
            entry,
            included,
        }
    }

    pub(super) fn span(&self, span: Span) -> Span {
        match (Some(span.file) == self.entry, self.included) {
            (true, Some(included)) => included,
            _ => match self.files.get(span.file.0 as usize) {
                Some(file) => Span { file: *file, ..span },
                None => span,
            },
        }
    }

    /// What is wrong with the program.
    pub fn diagnostics(&self, found: &Diagnostics) -> Diagnostics {
        let mut moved = Diagnostics::new();
        moved.extend(found.iter().map(|found| self.diagnostic(found)));
        moved
    }

    fn diagnostic(&self, found: &Diagnostic) -> Diagnostic {
        let label = |label: &Label| Label {
            span: self.span(label.span),
            text: label.text.clone(),
        };
        // What leads through a text that nobody has is no help.
        let is_shown = |label: &&Label| self.included.is_some() || Some(label.span.file) != self.entry;
        let labels = |labels: &[Label]| labels.iter().filter(is_shown).map(label).collect();
        let mut moved = Diagnostic {
            primary: label(&found.primary),
            ruled: found.ruled.map(|span| self.span(span)),
            secondary: labels(&found.secondary),
            related: labels(&found.related),
            // Nobody mends a program from within a model.
            help: found
                .help
                .iter()
                .map(|help| setpoint_diagnostics::Help {
                    edit: None,
                    ..help.clone()
                })
                .collect(),
            causes: setpoint_diagnostics::Causes::default(),
            ..found.clone()
        };
        for cause in &found.causes {
            moved = moved.caused_by(self.diagnostic(cause));
        }
        moved
    }

    pub(super) fn resource(&self, resource: &DesiredResource) -> DesiredResource {
        let spans = resource.parameter_spans.iter();
        DesiredResource {
            span: self.span(resource.span),
            parameter_spans: spans.map(|(name, span)| (*name, self.span(*span))).collect(),
            chain: resource.chain.as_ref().map(|link| self.link(link)),
            ..resource.clone()
        }
    }

    pub(super) fn edge(&self, edge: &DesiredEdge) -> DesiredEdge {
        DesiredEdge {
            span: self.span(edge.span),
            ..edge.clone()
        }
    }

    /// A chain is as long as bodies are put into each other, which can be far.
    fn link(&self, innermost: &Arc<Link>) -> Arc<Link> {
        let mut links = vec![innermost];
        while let Some(outer) = links.last().and_then(|link| link.outer.as_ref()) {
            links.push(outer);
        }
        let mut outer = None;
        for link in links.into_iter().rev() {
            outer = Some(Arc::new(Link {
                cause: link.cause.clone(),
                span: self.span(link.span),
                outer,
            }));
        }
        outer.unwrap_or_else(|| innermost.clone())
    }
}
