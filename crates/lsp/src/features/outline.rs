//! Symbols of a document and of all programs that are open.

use lsp_types::{DocumentSymbol, Location, SymbolInformation};
use serde_json::Value as Json;
use serde_json::value::RawValue;

use super::{Answer, Context, Place, to_json, written};
use crate::language::{Analysed, Symbol};
use crate::positions::Text;
use crate::programs::Analysis;
use crate::uri;

/// So many symbols are found in a workspace.
const MOST: usize = 1000;

pub(super) fn document<A: Analysed>(place: &Place<'_, A>) -> Option<Box<RawValue>> {
    let symbols = place.analysis.symbols_of(place.file);
    if place.client.nested_symbols {
        let symbols: Vec<DocumentSymbol> = symbols.iter().map(|symbol| nested(place, symbol)).collect();
        return written(symbols);
    }
    let mut flat = Vec::new();
    let uri = uri::uri(place.program.path(place.file)?)?;
    let mut open: Vec<(&Symbol, Option<String>)> =
        symbols.iter().rev().map(|symbol| (symbol, None)).collect();
    while let Some((symbol, container)) = open.pop() {
        let location = Location::new(uri.clone(), place.range(symbol.span));
        flat.push(information(symbol, location, container));
        open.extend(
            symbol
                .children
                .iter()
                .rev()
                .map(|child| (child, Some(symbol.name.clone()))),
        );
    }
    written(flat)
}

#[expect(
    deprecated,
    reason = "the structure of the protocol has a field that it deprecates"
)]
fn nested<A: Analysed>(place: &Place<'_, A>, symbol: &Symbol) -> DocumentSymbol {
    let children: Vec<DocumentSymbol> = symbol.children.iter().map(|child| nested(place, child)).collect();
    DocumentSymbol {
        name: symbol.name.clone(),
        detail: None,
        kind: symbol.kind,
        tags: None,
        deprecated: None,
        range: place.range(symbol.span),
        selection_range: place.range(symbol.name_span),
        children: (!children.is_empty()).then_some(children),
    }
}

#[expect(
    deprecated,
    reason = "the structure of the protocol has a field that it deprecates"
)]
fn information(symbol: &Symbol, location: Location, container_name: Option<String>) -> SymbolInformation {
    SymbolInformation {
        name: symbol.name.clone(),
        kind: symbol.kind,
        tags: None,
        deprecated: None,
        location,
        container_name,
    }
}

/// What is called like the query, in the programs of open documents and of the directories that the client has open.
pub(super) fn workspace(context: &mut Context<'_>, params: &Json) -> Answer {
    let query = params
        .get("query")
        .and_then(Json::as_str)
        .unwrap_or_default()
        .to_lowercase();
    let mut paths: Vec<String> = context.snapshot.documents.keys().cloned().collect();
    for folder in &context.client.folders {
        for main in ["main.mcl", "main.cf"] {
            let main = format!("{}/{main}", folder.trim_end_matches('/'));
            if context.setup.files.is_file(&main) {
                paths.push(main);
            }
        }
    }
    let mut found: Vec<SymbolInformation> = Vec::new();
    for path in paths {
        let Some(program) = context.programs.of(&path, context.snapshot, context.stop) else {
            return Answer::Stopped;
        };
        for (file, path) in &program.paths {
            let Some(uri) = uri::uri(path) else { continue };
            if found.iter().any(|known| known.location.uri == uri) {
                continue;
            }
            let text = Text::new(program.sources().file(*file).text.clone());
            let symbols = match &program.analysis {
                Analysis::Mcl(analysis) => analysis.symbols_of(*file),
                Analysis::Model(analysis) => analysis.symbols_of(*file),
            };
            let mut open: Vec<(&Symbol, Option<String>)> =
                symbols.iter().rev().map(|symbol| (symbol, None)).collect();
            while let Some((symbol, container)) = open.pop() {
                open.extend(
                    symbol
                        .children
                        .iter()
                        .rev()
                        .map(|child| (child, Some(symbol.name.clone()))),
                );
                if found.len() >= MOST || !is_like(&symbol.name, &query) {
                    continue;
                }
                let range = text.range(
                    symbol.name_span.start,
                    symbol.name_span.end,
                    context.client.encoding,
                );
                found.push(information(symbol, Location::new(uri.clone(), range), container));
            }
        }
    }
    Answer::Result(to_json(found).unwrap_or_default())
}

/// Whether all letters of the query stand in the name, in their order.
fn is_like(name: &str, query: &str) -> bool {
    let mut letters = name.chars().flat_map(char::to_lowercase);
    query.chars().all(|wanted| letters.any(|letter| letter == wanted))
}
