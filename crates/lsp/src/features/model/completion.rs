//! Completion: what can stand at a place, with documentation and, where the client knows them, snippets.

use serde_json::{Value as Json, json};
use setpoint_cf::analysis::completion::{Item, Sort};

use super::{Place, hover};
use crate::library_text::first_line;

/// More entries help nobody; the client asks again when more letters are there.
const MOST: usize = 2000;

/// Documentation of so many is told at once; that of more would make each keystroke slow.
const MOST_DOCUMENTED: usize = 400;

pub(in crate::features) fn completion(place: &Place<'_>) -> Option<Json> {
    let library = &place.setup.library;
    let completion = place.analysis.complete(place.file, place.offset, library)?;
    let range = place.range(completion.replaced);
    let is_incomplete = completion.items.len() > MOST;
    let is_documented = completion.items.len() <= MOST_DOCUMENTED;
    let items = completion.items.iter().take(MOST).enumerate();
    let mut items: Vec<Json> = items
        .map(|(rank, item)| {
            let snippet = item.snippet.as_ref().filter(|_| place.client.snippets);
            let text = match (snippet, &item.snippet) {
                (Some(snippet), _) => snippet.clone(),
                (None, Some(snippet)) => plain(item, snippet),
                (None, None) => item.label.clone(),
            };
            let mut entry = json!({
                "label": item.label,
                "kind": number(item.sort),
                "sortText": format!("{rank:05}"),
                "insertTextFormat": if snippet.is_some() { 2 } else { 1 },
                "textEdit": { "range": range, "newText": text },
            });
            if let Some(target) = &item.target {
                if let Some(description) = place.analysis.describe(target) {
                    entry["detail"] = first_line(&description.code).into();
                }
                if is_documented && let Some(about) = hover::about(place, target) {
                    entry["documentation"] = json!({ "kind": "markdown", "value": about.trim_end() });
                }
            }
            entry
        })
        .collect();
    if completion.is_module {
        for name in modules_on_disk(place) {
            let is_known = completion.items.iter().any(|item| item.label == name);
            if !is_known {
                let edit = json!({ "range": range, "newText": name });
                items.push(json!({ "label": name, "kind": number(Sort::Namespace), "textEdit": edit }));
            }
        }
    }
    Some(json!({ "isIncomplete": is_incomplete, "items": items }))
}

/// The modules in the directories that the project names, which nothing imports yet.
fn modules_on_disk(place: &Place<'_>) -> Vec<String> {
    let files = &place.setup.files;
    let mut found = Vec::new();
    for directory in &place.analysis.loaded.project.module_path {
        let directory = place.program.key.path(directory);
        for name in files.names(&format!("{directory}/")) {
            let Some(name) = name.strip_suffix('/') else {
                continue;
            };
            let is_module = |file: &&str| files.is_file(&format!("{directory}/{name}/{file}"));
            if ["module.yml", "setup.cfg"].iter().any(is_module) && !found.contains(&name.to_owned()) {
                found.push(name.to_owned());
            }
        }
    }
    found
}

/// What is written for a client that knows no snippets: the name with what belongs to it (`name=`, `std::`), but no brackets.
fn plain(item: &Item, snippet: &str) -> String {
    match snippet.strip_prefix(&*item.label) {
        Some(rest) if rest.starts_with('=') => format!("{}=", item.label),
        Some("::") => snippet.to_owned(),
        _ => item.label.clone(),
    }
}

/// The protocol's number of a sort of entry.
fn number(sort: Sort) -> u8 {
    match sort {
        Sort::Function => 3,
        Sort::Attribute => 5,
        Sort::Variable => 6,
        Sort::Entity => 7,
        Sort::Namespace => 9,
        Sort::Relation => 10,
        Sort::Keyword => 14,
        Sort::Type => 22,
        Sort::Implementation => 2,
    }
}
