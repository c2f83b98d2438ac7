//! The folder `editors`: it fits together, and its snippets are those of the kinds.

use std::collections::BTreeSet;

use serde_json::Value as Json;
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
    named.push(contributes["languages"][0]["configuration"].as_str().unwrap());
    named.push(contributes["grammars"][0]["path"].as_str().unwrap());
    named.push(contributes["snippets"][0]["path"].as_str().unwrap());
    for name in named {
        let text = read(&format!("editors/vscode/{}", name.trim_start_matches("./")));
        if name.ends_with(".json") {
            serde_json::from_str::<Json>(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
    let scope = contributes["grammars"][0]["scopeName"].as_str();
    let grammar: Json = serde_json::from_str(&read("editors/vscode/syntaxes/mcl.tmLanguage.json")).unwrap();
    assert_eq!(grammar["scopeName"].as_str(), scope);
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
