//! What the linter finds, in an editor: the warnings, changes that mend them, and comments that allow them.

use lsp_types::{CodeAction, Diagnostic, DiagnosticSeverity, NumberOrString, Position, Range};
use serde_json::{Value as Json, json};
use setpoint_mcl::lint::RULES;
use setpoint_testing::repository;

use crate::client::{Client, applied};

const MAIN: &str = "file:///srv/main.mcl";

fn actions(client: &mut Client, only: Option<Json>) -> Vec<CodeAction> {
    let mut context = json!({ "diagnostics": [] });
    if let Some(only) = only {
        context["only"] = only;
    }
    let whole = Range::new(Position::new(0, 0), Position::new(9999, 0));
    client.code_actions(MAIN, whole, &context)
}

fn code(diagnostic: &Diagnostic) -> &str {
    match &diagnostic.code {
        Some(NumberOrString::String(code)) => code,
        other => panic!("{other:?}"),
    }
}

/// How often each code is told.
fn count(found: &[Diagnostic], wanted: &str) -> usize {
    found.iter().filter(|found| code(found) == wanted).count()
}

/// The programs of the linter's cases that are one file.
fn cases() -> Vec<(String, String)> {
    let directory = repository().join("tests/cases/lint");
    let files = std::fs::read_dir(&directory)
        .unwrap()
        .flatten()
        .map(|entry| entry.path());
    let programs = files.filter(|path| path.extension().is_some_and(|extension| extension == "mcl"));
    let mut cases: Vec<(String, String)> = programs
        .map(|path| {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read_to_string(&path).unwrap())
        })
        .collect();
    cases.sort();
    assert!(cases.len() > 10);
    cases
}

#[test]
fn every_warning_of_the_linter_can_be_allowed_where_it_stands() {
    let mut client = Client::new();
    let mut allowed = std::collections::BTreeSet::new();
    for (case, text) in cases() {
        // Opened anew for each, over and over under one name.
        client.open(MAIN, &text);
        let found = client.diagnostics(MAIN);
        let errors = |found: &[Diagnostic]| {
            found
                .iter()
                .filter(|found| found.severity == Some(DiagnosticSeverity::ERROR))
                .count()
        };
        let offered = actions(&mut client, None);
        for action in offered
            .iter()
            .filter(|action| action.title.starts_with("allow `"))
        {
            let mended = code(&action.diagnostics.as_ref().unwrap()[0]).to_owned();
            let changed = applied(&text, action);
            client.replace(MAIN, &changed);
            let now = client.diagnostics(MAIN);
            let what = format!("{case}: {}\n{changed}\n{now:#?}", action.title);
            assert!(count(&now, &mended) < count(&found, &mended), "{what}");
            assert_eq!(errors(&now), errors(&found), "{what}");
            allowed.insert(mended);
        }
        client.close(MAIN);
    }
    for rule in RULES.iter().filter(|rule| rule.code.code.starts_with("W01")) {
        assert!(
            allowed.contains(rule.code.code),
            "no case shows that `{}` is allowed",
            rule.name
        );
    }
}

#[test]
fn what_allows_a_warning_stands_beside_what_allows_another_one() {
    let mut client = Client::new();
    let text = "if true {\n\tfunc f($a) { 1 } # setpoint: allow(unused-function, constant-condition)\n\tprint \"a\" {}\n}\n";
    client.open(MAIN, text);
    let offered = actions(&mut client, None);
    let allowing = offered
        .iter()
        .find(|action| action.title == "allow `unused-parameter` here");
    let changed = applied(text, allowing.unwrap_or_else(|| panic!("{offered:#?}")));
    assert!(
        changed.contains("{\n\t# setpoint: allow(unused-parameter)\n\tfunc f"),
        "{changed}"
    );
    client.replace(MAIN, &changed);
    let found = client.diagnostics(MAIN);
    assert_eq!(count(&found, "W0104") + count(&found, "W0105"), 0, "{found:#?}");
    // That a comment allows nothing is not to be allowed.
    assert_eq!(count(&found, "W0122"), 1, "{found:#?}");
    let offered = actions(&mut client, None);
    assert!(
        offered.iter().all(|action| !action.title.contains("W0122")),
        "{offered:#?}"
    );
}

#[test]
fn warnings_are_mended_one_by_one_or_all_at_once() {
    let mut client = Client::new();
    let text = "import \"fmt\"\nimport \"strings\"\n$flag = true\nif $flag == true {\n\tprint \"a\" {}\n}\n";
    client.open(MAIN, text);
    let found = client.diagnostics(MAIN);
    assert_eq!(count(&found, "W0102"), 2, "{found:#?}");
    let page = found[0].code_description.as_ref().unwrap().href.as_str();
    assert_eq!(page, "setpoint:/errors/W0102.md");
    let offered = actions(&mut client, Some(json!(["quickfix"])));
    let without_fmt = applied(text, &offered[0]);
    assert!(
        !without_fmt.contains("fmt") && without_fmt.contains("strings"),
        "{without_fmt}"
    );
    // All at once is for who asks for it.
    assert!(
        offered
            .iter()
            .all(|action| action.title != "mend what can be mended")
    );
    for only in ["source", "source.fixAll", "source.fixAll.setpoint"] {
        let offered = actions(&mut client, Some(json!([only])));
        assert_eq!(offered.len(), 1, "{only}");
        let mended = applied(text, &offered[0]);
        assert_eq!(mended, "$flag = true\nif $flag {\n\tprint \"a\" {}\n}\n");
    }
    assert_eq!(actions(&mut client, Some(json!(["refactor"]))), []);
    client.replace(MAIN, "$flag = true\nif $flag {\n\tprint \"a\" {}\n}\n");
    assert_eq!(actions(&mut client, Some(json!(["source.fixAll"]))), []);
}

#[test]
fn a_module_that_is_part_of_setpoint_is_not_linted() {
    let mut client = Client::new();
    client.open(MAIN, "import \"greeting\"\nprint greeting.greet(\"you\") {}\n");
    assert_eq!(client.diagnostics(MAIN), []);
    assert!(
        client.diagnostics.keys().all(|address| address == MAIN),
        "{:?}",
        client.diagnostics
    );
}

#[test]
fn a_program_that_is_too_large_when_it_runs_is_told_of() {
    let mut client = Client::new();
    let mut text = String::from("func f0($x) { $x + 1 }\n");
    for level in 1..26 {
        let before = level - 1;
        text.push_str(&format!(
            "func f{level}($x) {{ f{before}($x) + f{before}($x) }}\n"
        ));
    }
    text.push_str("panic(f25(1) == 2)\n");
    client.open(MAIN, &text);
    let told = client.diagnostics(MAIN);
    assert_eq!(count(&told, "E0220"), 1, "{told:?}");
    // The same beside something that nothing uses.
    client.replace(MAIN, &format!("{text}$unused = f1(2)\n"));
    let told = client.diagnostics(MAIN);
    assert_eq!(count(&told, "E0220"), 1, "{told:?}");
}
