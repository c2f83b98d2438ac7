//! From a name to where it is defined and to where else it stands.

use lsp_types::{DocumentHighlight, DocumentHighlightKind, Location};
use serde_json::Value as Json;
use setpoint_mcl::analysis::Name;

use super::{Place, to_json};

pub(super) fn definition(place: &Place<'_>) -> Option<Json> {
    let name = place.analysis().name_at(place.file, place.offset)?;
    let span = place.analysis().definition(&name.target)?;
    to_json(place.location(span)?)
}

pub(super) fn references(place: &Place<'_>, with_declaration: bool) -> Option<Json> {
    let name = place.analysis().name_at(place.file, place.offset)?;
    let found = place.analysis().references(&name.target).into_iter();
    let wanted = found.filter(|name| with_declaration || !name.is_definition);
    let locations: Vec<Location> = wanted.filter_map(|name| place.location(name.span)).collect();
    to_json(locations)
}

pub(super) fn highlights(place: &Place<'_>) -> Option<Json> {
    let analysis = place.analysis();
    let name = analysis.name_at(place.file, place.offset)?;
    let highlight = |name: &Name| DocumentHighlight {
        range: place.range(name.span),
        kind: Some(match name.is_definition {
            true => DocumentHighlightKind::WRITE,
            false => DocumentHighlightKind::READ,
        }),
    };
    let found = analysis.references(&name.target).into_iter();
    let here: Vec<_> = found
        .filter(|name| name.span.file == place.file)
        .map(highlight)
        .collect();
    to_json(here)
}
