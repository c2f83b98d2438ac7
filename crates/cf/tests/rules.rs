//! `tests/rules.tsv` has a line for each rule of the language: its number, the rule, and the cases that show it, with ` | ` between them.
//!
//! `execute/TOPIC: NAME` is a case of `tests/execute/TOPIC.cases`, `resolve/NAME` one of `tests/resolve`, `model/NAME` one of `tests/cases` of
//! the repository, `syntax/NAME` one of `tests/cases/syntax`, and `FILE::NAME` a test.

#![expect(clippy::disallowed_methods, reason = "the table and the cases are files")]

use std::path::Path;

use setpoint_testing::repository;

/// How many rules there are.
const RULES: usize = 229;

#[test]
fn every_rule_of_the_language_has_a_case() {
    let package = repository().join("crates/cf");
    let table = read(&package.join("tests/rules.tsv"));
    let mut wrong = Vec::new();
    for (line, number) in table.lines().zip(1..) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [given, rule, cases] = fields.as_slice() else {
            wrong.push(format!("line {number} has {} fields, not 3", fields.len()));
            continue;
        };
        if *given != number.to_string() || rule.is_empty() {
            wrong.push(format!("line {number} is that of rule {given}"));
        }
        for case in cases.split(" | ") {
            if !is_there(&package, case) {
                wrong.push(format!("{number}: the case `{case}` does not exist"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(table.lines().count(), RULES);
}

fn is_there(package: &Path, case: &str) -> bool {
    if let Some((file, test)) = case.rsplit_once("::")
        && file.ends_with(".rs")
    {
        return read(&repository().join(file)).contains(&format!("fn {test}("));
    }
    if let Some((topic, name)) = case.split_once(": ") {
        let text = read(&package.join(format!("tests/{topic}.cases")));
        return text.lines().any(|line| line.strip_prefix("=== ") == Some(name));
    }
    let folder = match case.split('/').next() {
        Some("model") => repository().join("tests/cases"),
        Some("syntax") => package.join("tests/cases"),
        _ => package.join("tests"),
    };
    let path = folder.join(case);
    path.join("expect").is_file() || path.with_extension("expect").is_file()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}
