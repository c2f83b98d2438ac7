//! Inlay hints: the types of variables and parameters for which none is written.

use lsp_types::{InlayHint, InlayHintKind, InlayHintLabel};
use serde_json::value::RawValue;
use setpoint_diagnostics::Span;
use setpoint_mcl::analysis::Target;
use setpoint_mcl::hir::{DefinitionKind, ExprKind};

use super::{Place, written};

/// Longer types would hide the program.
const LONGEST: usize = 40;

/// So many are shown at once.
const MOST: usize = 400;

pub(super) fn hints(place: &Place<'_>, span: Span) -> Option<Box<RawValue>> {
    let analysis = place.analysis();
    let names = analysis.names_in(place.file);
    let begin = names.partition_point(|name| name.span.end < span.start);
    let mut hints: Vec<InlayHint> = Vec::new();
    for name in names[begin..]
        .iter()
        .take_while(|name| name.span.start <= span.end)
    {
        let Target::Variable(id) = &name.target else {
            continue;
        };
        if !name.is_definition || hints.len() >= MOST || has_type(place, *id) {
            continue;
        }
        let types = analysis.types_of(*id);
        let shown: Vec<String> = types.iter().map(ToString::to_string).collect();
        let label = shown.join(" | ");
        if label.is_empty() || label.chars().count() > LONGEST {
            continue;
        }
        hints.push(InlayHint {
            position: place.position(name.span.end),
            label: InlayHintLabel::String(label),
            kind: Some(InlayHintKind::TYPE),
            text_edits: None,
            tooltip: None,
            padding_left: Some(true),
            padding_right: None,
            data: None,
        });
    }
    written(hints)
}

/// Whether a reader sees the type: it is written, or the value is a literal.
fn has_type(place: &Place<'_>, id: setpoint_mcl::hir::DefinitionId) -> bool {
    let hir = &place.analysis().hir;
    match &hir.definition(id).kind {
        DefinitionKind::Bind { value, annotation } => {
            let is_literal = matches!(
                hir.expr(*value).kind,
                ExprKind::Literal(_) | ExprKind::Interpolation(_)
            );
            annotation.is_some() || is_literal
        }
        DefinitionKind::ClassParameter { annotation, .. } | DefinitionKind::Parameter { annotation, .. } => {
            annotation.is_some()
        }
        DefinitionKind::LoopKey | DefinitionKind::LoopValue => false,
        DefinitionKind::Library(_) => true,
    }
}
