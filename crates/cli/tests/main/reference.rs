//! The generated reference in the book is what the program says.

use std::collections::BTreeMap;
use std::path::Path;

use setpoint_testing::{Hermetic, repository};

const BINARY: &str = env!("CARGO_BIN_EXE_setpoint");

/// What begins each page that is generated.
const NOTE: &str = "<!-- Written by `setpoint docs book";

/// Every page and schema below a directory.
fn pages(directory: &Path) -> BTreeMap<String, String> {
    let read = |below: &str| {
        let entries = std::fs::read_dir(directory.join(below)).into_iter().flatten();
        let names: Vec<String> = entries
            .map(|entry| {
                format!(
                    "{below}{}",
                    entry
                        .expect("the directory is readable")
                        .file_name()
                        .to_string_lossy()
                )
            })
            .filter(|name| name.ends_with(".md") || name.ends_with(".json"))
            .collect();
        names
    };
    let names = [read(""), read("functions/")].concat();
    // The rules of the language are written by hand.
    let names: Vec<String> = names.into_iter().filter(|name| name != "mcl.md").collect();
    let text = |name: &String| std::fs::read_to_string(directory.join(name)).expect("a page is text");
    names.iter().map(|name| (name.clone(), text(name))).collect()
}

/// With `UPDATE=1` the pages are written anew.
#[test]
fn the_pages_of_functions_and_kinds_are_fresh() {
    let place = Hermetic::new();
    let kept = repository().join("docs/reference");
    let is_update = std::env::var_os("UPDATE").is_some();
    let made = if is_update {
        kept.clone()
    } else {
        place.path("reference")
    };
    let finished = place.run(BINARY, &["docs", "book", made.to_str().unwrap()]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    let (mut kept, mut made) = (pages(&kept), pages(&made));
    // The others are written by hand.
    for pages in [&mut kept, &mut made] {
        pages.retain(|name, text| text.starts_with(NOTE) || name.ends_with(".json"));
    }
    let stale: Vec<&String> = made
        .keys()
        .chain(kept.keys())
        .filter(|name| kept.get(*name) != made.get(*name))
        .collect();
    assert!(stale.is_empty(), "UPDATE=1 writes these anew: {stale:?}");
    let summary = std::fs::read_to_string(repository().join("docs/SUMMARY.md")).unwrap();
    let missing: Vec<&String> = made
        .keys()
        .filter(|name| name.ends_with(".md") && !summary.contains(&format!("(reference/{name})")))
        .collect();
    assert!(missing.is_empty(), "not in SUMMARY.md: {missing:?}");
}

#[test]
fn links_of_the_index_lead_to_headings() {
    let pages = pages(&repository().join("docs/reference"));
    let mut wrong = Vec::new();
    for link in pages["functions.md"].split("](").skip(1) {
        let link = link.split(')').next().unwrap_or_default();
        let (page, anchor) = link.split_once('#').unwrap_or((link, ""));
        let headings = pages.get(page).map(|text| {
            let headings = text.lines().filter_map(|line| line.strip_prefix("### "));
            headings
                .map(|heading| heading.to_lowercase().replace(['/', '.'], ""))
                .collect::<Vec<_>>()
        });
        if !headings.is_some_and(|all| anchor.is_empty() || all.iter().any(|heading| heading == anchor)) {
            wrong.push(link);
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn every_function_has_its_place_in_the_reference() {
    let pages = pages(&repository().join("docs/reference"));
    let headings: Vec<&str> = pages
        .values()
        .flat_map(|text| text.lines())
        .filter_map(|line| line.strip_prefix("### "))
        .collect();
    let signatures = include_str!("../../../functions/tests/signatures.tsv");
    let names = signatures
        .lines()
        .skip(1)
        .filter_map(|row| row.split('\t').next());
    let missing: Vec<&str> = names
        .chain(["sensitive", "nonsensitive"])
        .filter(|name| !headings.contains(name))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}
