//! The folder `editors`: it fits together, and its snippets are those of the kinds.

use std::collections::BTreeSet;

use serde_json::Value as Json;
use setpoint_cf::syntax::TokenKind as ModelToken;
use setpoint_mcl::syntax::TokenKind;
use setpoint_testing::repository;

use crate::client::library;

fn read(path: &str) -> String {
    std::fs::read_to_string(repository().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn the_extension_names_files_that_are_there() {
    let package: Json = serde_json::from_str(&read("editors/vscode/package.json")).unwrap();
    let mut named = vec![package["main"].as_str().unwrap()];
    let contributes = &package["contributes"];
    let all = |what: &str, key: &str| -> Vec<&str> {
        let list = contributes[what].as_array().unwrap().iter();
        list.map(|entry| entry[key].as_str().unwrap()).collect()
    };
    named.extend(all("languages", "configuration"));
    named.extend(all("snippets", "path"));
    for name in named {
        let text = read(&format!("editors/vscode/{}", name.trim_start_matches("./")));
        if name.ends_with(".json") {
            serde_json::from_str::<Json>(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
    let grammars = all("grammars", "path").into_iter();
    for (path, scope) in grammars.zip(all("grammars", "scopeName")) {
        let text = read(&format!("editors/vscode/{}", path.trim_start_matches("./")));
        let grammar: Json = serde_json::from_str(&text).unwrap();
        assert_eq!(grammar["scopeName"], scope);
    }
    // The server says by the ending of a file in which language it is.
    let endings = contributes["languages"].as_array().unwrap().iter();
    let endings: Vec<&str> = endings
        .map(|entry| entry["extensions"][0].as_str().unwrap())
        .collect();
    assert_eq!(endings, [".mcl", ".cf"]);
    let script = read("editors/vscode/extension.js");
    for language in all("languages", "id") {
        assert!(script.contains(&format!("\"{language}\"")), "{language}");
    }
}

#[test]
fn the_extension_shows_our_addresses_and_names_what_it_declares() {
    let package: Json = serde_json::from_str(&read("editors/vscode/package.json")).unwrap();
    let script = read("editors/vscode/extension.js");
    for said in [
        "registerTextDocumentContentProvider(\"setpoint\"",
        "sendRequest(\"setpoint/text\"",
    ] {
        assert!(script.contains(said), "{said}");
    }
    let contributes = &package["contributes"];
    for command in contributes["commands"].as_array().unwrap() {
        let said = format!("registerCommand({}", command["command"]);
        assert!(script.contains(&said), "{said}");
    }
    for setting in contributes["configuration"]["properties"]
        .as_object()
        .unwrap()
        .keys()
    {
        let said = format!("settings.get(\"{}\")", setting.trim_start_matches("setpoint."));
        assert!(script.contains(&said), "{said}");
    }
}

#[test]
fn snippets_are_those_of_the_kinds() {
    let path = "editors/vscode/snippets/mcl.json";
    let wanted = format!("{:#}\n", setpoint_lsp::kind_snippets(&library()));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(repository().join(path), &wanted).unwrap();
    }
    assert_eq!(
        read(path),
        wanted,
        "`UPDATE=1 cargo test -p setpoint-lsp snippets` writes it anew"
    );
}

#[test]
fn vim_knows_every_word_of_the_language() {
    let text = read("editors/vim/syntax/mcl.vim");
    let keywords: BTreeSet<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("syntax keyword mcl"))
        .filter(|line| !line.starts_with("Todo"))
        .flat_map(|line| line.split_whitespace().skip(1))
        .collect();
    let words = "if else and or not in for forkv bool str int float map struct func variant class include import as panic collect true false";
    let words: BTreeSet<&str> = words.split(' ').collect();
    assert!(words.iter().all(|word| TokenKind::of_word(word).is_some()));
    assert_eq!(keywords, words);
}

#[test]
fn vim_knows_every_word_of_models() {
    let text = read("editors/vim/syntax/cfmodel.vim");
    let keywords: BTreeSet<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("syntax keyword cfmodel"))
        .filter(|line| !line.starts_with("Todo") && !line.starts_with("Self"))
        .flat_map(|line| line.split_whitespace().skip(1))
        .collect();
    let words = "typedef as entity extends end in implementation for matching index implement using when and or not true false import is defined dict null undef parents if else elif";
    let words: BTreeSet<&str> = words.split(' ').collect();
    assert!(words.iter().all(|word| ModelToken::of_word(word).is_some()));
    assert_eq!(keywords, words);
    assert!(read("editors/vim/ftdetect/cfmodel.vim").contains("*.cf setlocal filetype=cfmodel"));
}
