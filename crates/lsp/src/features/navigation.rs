//! From a name to where it is defined and to where else it stands.

use lsp_types::{DocumentHighlight, DocumentHighlightKind, Location};
use serde_json::Value as Json;

use super::{Place, to_json};
use crate::language::Analysed;

pub(super) fn definition<A: Analysed>(place: &Place<'_, A>) -> Option<Json> {
    let (_, target) = place.analysis.name(place.file, place.offset)?;
    let span = place.analysis.defined(target)?;
    to_json(place.location(span)?)
}

pub(super) fn references<A: Analysed>(place: &Place<'_, A>, with_declaration: bool) -> Option<Json> {
    let (_, target) = place.analysis.name(place.file, place.offset)?;
    let found = place.analysis.mentioned(target).into_iter();
    let wanted = found.filter(|(_, is_definition)| with_declaration || !is_definition);
    let locations: Vec<Location> = wanted.filter_map(|(span, _)| place.location(span)).collect();
    to_json(locations)
}

pub(super) fn highlights<A: Analysed>(place: &Place<'_, A>) -> Option<Json> {
    let (_, target) = place.analysis.name(place.file, place.offset)?;
    let found = place.analysis.mentioned(target).into_iter();
    let here = found.filter(|(span, _)| span.file == place.file);
    let here: Vec<_> = here
        .map(|(span, is_definition)| DocumentHighlight {
            range: place.range(span),
            kind: Some(match is_definition {
                true => DocumentHighlightKind::WRITE,
                false => DocumentHighlightKind::READ,
            }),
        })
        .collect();
    to_json(here)
}
