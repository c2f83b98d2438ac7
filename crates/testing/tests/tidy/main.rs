//! What holds for the whole repository and no compiler checks.
#![allow(clippy::disallowed_methods, reason = "reads the files of the repository")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::TokenStream;
use setpoint_testing::repository;

mod functions;
mod modules;
mod words;

/// Files that are longer than they should be, and why.
const LONG: &[(&str, &str)] = &[];

/// More lines than this need a reason.
const LONGEST: usize = 900;

/// Crates that exist for tests: no other may need them for its own work, whatever else it may use.
const FOR_TESTS: &[&str] = &["simulated", "simulation", "testing"];

/// Crates that may use tokio.
const ASYNCHRONOUS: &[&str] = &["host", "world", "engine", "resources", "programs", "agent", "cli"];

/// Files that CONTRIBUTING.md lets its reader write.
const NOT_WRITTEN_YET: &[&str] = &["crates/resources/src/kinds/hello.rs"];

/// Names that say nothing about what is inside.
const EMPTY_NAMES: &[&str] = &["utils", "util", "common", "helpers", "misc"];

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn tokens(path: &Path) -> TokenStream {
    let text = read(path);
    text.parse()
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Files with this extension below a directory, sorted, relative to the repository.
fn files(directory: &str, extension: &str) -> Vec<PathBuf> {
    let root = repository();
    let mut found = Vec::new();
    let mut waiting = vec![root.join(directory)];
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name();
            if path.is_dir() {
                if name != "target" && name != "corpus" && name != ".git" {
                    waiting.push(path);
                }
            } else if path.extension().is_some_and(|found| found == extension) {
                found.push(path.strip_prefix(&root).unwrap_or(&path).to_owned());
            }
        }
    }
    found.sort();
    found
}

fn crates() -> Vec<String> {
    let entries = std::fs::read_dir(repository().join("crates")).expect("the folder of crates is there");
    let mut names: Vec<String> = entries
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Names in a section of a manifest.
fn section(manifest: &str, section: &str) -> Vec<String> {
    let mut inside = false;
    let mut names = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line == format!("[{section}]");
        } else if inside
            && let Some(name) = line.split(['=', '.', ' ']).next().filter(|name| !name.is_empty())
        {
            names.push(name.to_owned());
        }
    }
    names
}

fn fail_if_any(wrong: &[String]) {
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn crates_use_what_the_architecture_allows() {
    let text = read(&repository().join("ARCHITECTURE.md"));
    let mut allowed: BTreeMap<String, Option<BTreeSet<String>>> = BTreeMap::new();
    for line in text.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [name, _, uses, ..] = cells.as_slice() else {
            continue;
        };
        let name = name.trim_matches('`').to_owned();
        let uses = match *uses {
            "all" => None,
            "–" => Some(BTreeSet::new()),
            uses => Some(uses.split(',').map(|word| word.trim().to_owned()).collect()),
        };
        allowed.entry(name).or_insert(uses);
    }
    let mut wrong = Vec::new();
    for name in crates() {
        let manifest = read(&repository().join(format!("crates/{name}/Cargo.toml")));
        let Some(allowed) = allowed.get(&name) else {
            wrong.push(format!("`{name}` is not in the table of ARCHITECTURE.md"));
            continue;
        };
        let dependencies = section(&manifest, "dependencies");
        let used = dependencies
            .iter()
            .filter_map(|used| used.strip_prefix("setpoint-"));
        for used in used {
            if FOR_TESTS.contains(&used) {
                wrong.push(format!("`{name}` uses `{used}`, which is only for tests"));
            }
            if allowed.as_ref().is_some_and(|allowed| !allowed.contains(used)) {
                wrong.push(format!(
                    "`{name}` uses `{used}`, which ARCHITECTURE.md does not allow"
                ));
            }
        }
        if dependencies.iter().any(|used| used.starts_with("tokio")) && !ASYNCHRONOUS.contains(&&*name) {
            wrong.push(format!("`{name}` uses tokio"));
        }
    }
    fail_if_any(&wrong);
}

#[test]
fn no_crate_allows_unsafe_code() {
    let without = crates().into_iter().filter(|name| {
        let library = repository().join(format!("crates/{name}/src/lib.rs"));
        !read(&library).contains("#![forbid(unsafe_code)]")
    });
    let without: Vec<String> = without.collect();
    fail_if_any(&without);
}

#[test]
fn every_module_begins_with_what_it_is() {
    let mut wrong = Vec::new();
    for path in files("crates", "rs") {
        if !read(&repository().join(&path)).starts_with("//! ") {
            wrong.push(format!("{} has no first line of documentation", path.display()));
        }
    }
    fail_if_any(&wrong);
}

#[test]
fn every_file_is_declared() {
    let mut wrong = Vec::new();
    for path in files("crates", "rs") {
        let (Some(stem), Some(folder)) = (path.file_stem(), path.parent()) else {
            continue;
        };
        let stem = stem.to_string_lossy();
        let folder_name = folder.file_name().unwrap_or_default().to_string_lossy();
        let is_root = matches!(&*stem, "lib" | "main" | "build")
            || matches!(&*folder_name, "tests" | "benches" | "examples") && folder.components().count() == 3
            || folder.ends_with("src/bin");
        // Inputs of the test of derive errors are compiled one by one.
        if is_root
            || path
                .components()
                .any(|part| part.as_os_str() == "refused" || part.as_os_str() == "ui")
        {
            continue;
        }
        // `a/b.rs` is declared in `a.rs`, or in the root file of the folder.
        let parents = [
            folder.with_extension("rs"),
            folder.join("lib.rs"),
            folder.join("main.rs"),
            folder.join("mod.rs"),
        ];
        let declared = parents.iter().filter(|parent| **parent != path).any(|parent| {
            let text = std::fs::read_to_string(repository().join(parent)).unwrap_or_default();
            let declaration = format!("mod {stem};");
            text.lines().any(|line| line.trim_start().ends_with(&declaration))
        });
        if !declared {
            wrong.push(format!("{} is compiled by nobody", path.display()));
        }
    }
    fail_if_any(&wrong);
}

#[test]
fn files_are_short_or_have_a_reason() {
    let mut wrong = Vec::new();
    for path in files("crates", "rs") {
        let lines = read(&repository().join(&path)).lines().count();
        let has_reason = LONG.iter().any(|(long, _)| Path::new(long) == path);
        if lines > LONGEST && !has_reason {
            wrong.push(format!("{} has {lines} lines", path.display()));
        } else if lines <= LONGEST && has_reason {
            wrong.push(format!("{} needs its reason no more", path.display()));
        }
    }
    fail_if_any(&wrong);
}

#[test]
fn modules_have_names_that_say_something() {
    // The core module `util` has its name from the language.
    let allowed = [Path::new("crates/functions/src/util.rs")];
    let wrong: Vec<String> = files("crates", "rs")
        .into_iter()
        .filter(|path| !allowed.contains(&path.as_path()))
        .filter(|path| {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            EMPTY_NAMES.contains(&&*stem)
        })
        .map(|path| path.display().to_string())
        .collect();
    fail_if_any(&wrong);
}

#[test]
fn nothing_is_left_for_later_without_a_word() {
    // Spelt in halves, so that this file does not find itself.
    let words = [["TO", "DO"], ["FIX", "ME"], ["XX", "X"], ["HA", "CK"]].map(|halves| halves.concat());
    let mut wrong = Vec::new();
    for path in files("crates", "rs") {
        for (number, line) in read(&repository().join(&path)).lines().enumerate() {
            let found = words.iter().any(|word| {
                line.split(|c: char| !c.is_ascii_alphanumeric())
                    .any(|part| part == word)
            });
            if found {
                wrong.push(format!("{}:{}: {}", path.display(), number + 1, line.trim()));
            }
        }
    }
    fail_if_any(&wrong);
}

#[test]
fn syntax_knows_no_other_stage() {
    let mut wrong = Vec::new();
    // Which stages there are, its own among them, stands in one place.
    let own = ["crate::syntax", "crate::stage"];
    for path in files("crates/mcl/src/syntax", "rs") {
        for line in read(&repository().join(&path)).lines() {
            let is_own = own.iter().any(|own| line.contains(own));
            let foreign = line.contains("crate::") && !is_own && line.contains("use ");
            if foreign && !line.trim_start().starts_with("//") {
                wrong.push(format!("{}: {}", path.display(), line.trim()));
            }
        }
    }
    fail_if_any(&wrong);
}

/// Lines of a document outside of blocks of code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        is_code ^= line.starts_with("```");
        !is_code
    })
}

#[test]
fn links_in_documents_lead_somewhere() {
    let mut wrong = Vec::new();
    let mut documents = files("docs", "md");
    documents.extend(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(PathBuf::from));
    for path in documents {
        let text = read(&repository().join(&path));
        for line in prose(&text) {
            for (at, _) in line.match_indices("](") {
                let target = line[at + 2..].split(')').next().unwrap_or_default();
                let target = target.split('#').next().unwrap_or_default();
                if target.is_empty() || target.contains("://") || target.starts_with("mailto:") {
                    continue;
                }
                let folder = path.parent().unwrap_or(Path::new(""));
                if !repository().join(folder).join(target).exists() {
                    wrong.push(format!("{}: {target}", path.display()));
                }
            }
        }
    }
    fail_if_any(&wrong);
}

/// A path in backticks that begins with `crates/`. The name of an item can follow it: `crates/x/src/y.rs::name`.
#[test]
fn paths_in_development_documents_exist() {
    let mut wrong = Vec::new();
    let mut documents = files("docs/dev", "md");
    documents.extend(["ARCHITECTURE.md", "CONTRIBUTING.md"].map(PathBuf::from));
    for document in documents {
        let text = read(&repository().join(&document));
        // Every second part of a line is between backticks.
        let code = prose(&text).flat_map(|line| line.split('`').skip(1).step_by(2));
        for path in code.filter(|code| code.starts_with("crates/")) {
            let file = path.split("::").next().unwrap_or(path);
            if !NOT_WRITTEN_YET.contains(&file) && !repository().join(file).exists() {
                wrong.push(format!("{}: `{path}` does not exist", document.display()));
            }
        }
    }
    fail_if_any(&wrong);
}

/// The index of the development pages names every crate.
#[test]
fn the_index_of_development_pages_names_every_crate() {
    let index = read(&repository().join("docs/dev/README.md"));
    let missing = crates()
        .into_iter()
        .filter(|name| !index.contains(&format!("`{name}`")));
    let missing: Vec<String> = missing
        .map(|name| format!("docs/dev/README.md does not name `{name}`"))
        .collect();
    fail_if_any(&missing);
}

/// Whoever clones the repository can look up everything that it refers to.
#[test]
fn comments_refer_to_texts_that_are_here() {
    let mut wrong = Vec::new();
    for path in files("crates", "rs") {
        let text = read(&repository().join(&path));
        let references = text
            .lines()
            .enumerate()
            .filter(|(_, line)| line.trim_start().starts_with("//") && line.contains('§'));
        wrong.extend(references.map(|(number, line)| {
            format!(
                "{}:{}: refers to a section of a text that is not in the repository; docs/reference/language has the rules: {line}",
                path.display(),
                number + 1
            )
        }));
    }
    fail_if_any(&wrong);
}

/// Page and number of a rule, from `names.7`.
fn page_and_number(rule: &str) -> Option<(&str, u32)> {
    let (page, number) = rule.split_once('.')?;
    Some((page, number.parse().ok()?))
}

/// The rules that the pages of the language's reference define, with their texts. A line that begins with `**names.7** ` begins one.
fn rules_of_the_language() -> BTreeMap<String, String> {
    let mut rules: BTreeMap<String, String> = BTreeMap::new();
    for path in files("docs/reference/language", "md") {
        let page = path.file_stem().unwrap_or_default().to_string_lossy();
        let mut last: Option<String> = None;
        for line in read(&repository().join(&path)).lines() {
            let begins = line.strip_prefix("**").and_then(|rest| rest.split_once("** "));
            if let Some((rule, _)) = begins {
                let number = page_and_number(rule).filter(|(named, _)| *named == page);
                let before = last.as_deref().and_then(page_and_number);
                assert!(
                    number.is_some() && number > before,
                    "{}: `{rule}` should be `{page}.` and a number greater than those before it",
                    path.display()
                );
                last = Some(rule.to_owned());
            }
            if let Some(rule) = last.as_ref().filter(|_| !line.starts_with('#')) {
                let text = rules.entry(rule.clone()).or_default();
                text.push_str(line);
                text.push('\n');
            }
        }
    }
    rules
}

/// `tests/rules.tsv` has a line for each rule: the rule, a tab, the names of the cases that show it. What no case can show is a
/// test, as `crates/x/tests/y.rs::its_name`.
#[test]
fn every_rule_of_the_language_has_a_case() {
    let mut wrong = Vec::new();
    let mut without: BTreeSet<String> = rules_of_the_language().into_keys().collect();
    for line in read(&repository().join("tests/rules.tsv")).lines() {
        let (rule, cases) = line.split_once('\t').unwrap_or((line, ""));
        if !without.remove(rule) {
            wrong.push(format!(
                "{rule}: the reference does not have it, or the table has it twice"
            ));
        }
        if cases.trim().is_empty() {
            wrong.push(format!("{rule}: there is no case"));
        }
        for case in cases.split_whitespace().filter(|case| !is_there(case)) {
            wrong.push(format!("{rule}: the case `{case}` does not exist"));
        }
    }
    let forgotten = without.iter();
    wrong.extend(forgotten.map(|rule| format!("{rule}: the table does not have it")));
    fail_if_any(&wrong);
}

/// Whether a case, or a test as `crates/x/tests/y.rs::its_name`, exists.
fn is_there(case: &str) -> bool {
    match case.split_once("::") {
        Some((file, test)) => std::fs::read_to_string(repository().join(file))
            .is_ok_and(|text| text.contains(&format!("fn {test}("))),
        None => {
            let path = repository().join("tests/cases").join(case);
            path.join("expect").is_file() || path.with_extension("expect").is_file()
        }
    }
}

/// What is wrong with the table `tests/rules.tsv` of a crate: a line for each thing that it promises, with its number, what it is, and the tests
/// and cases that show it; a hyphen where there is none yet.
fn wrong_promises(package: &str, count: usize, without: usize) -> Vec<String> {
    let (mut wrong, mut not_shown) = (Vec::new(), 0);
    let table = read(&repository().join("crates").join(package).join("tests/rules.tsv"));
    for (line, number) in table.lines().zip(1..) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [given, rule, cases] = fields.as_slice() else {
            wrong.push(format!("line {number} has {} fields, not 3", fields.len()));
            continue;
        };
        if *given != number.to_string() || rule.is_empty() || cases.trim().is_empty() {
            wrong.push(format!("line {number} is that of {given}, or lacks something"));
        }
        if cases.trim() == "-" {
            not_shown += 1;
            continue;
        }
        for case in cases.split_whitespace().filter(|case| !is_there(case)) {
            wrong.push(format!("{number}: the case `{case}` does not exist"));
        }
    }
    let found = (table.lines().count(), not_shown);
    if found != (count, without) {
        wrong.push(format!(
            "{package}: lines, and those without a test: {found:?}, not {count} and {without}"
        ));
    }
    wrong
}

#[test]
fn everything_that_the_engine_promises_has_a_test() {
    fail_if_any(&wrong_promises("engine", 40, 0));
}

#[test]
fn everything_that_the_command_line_promises_has_a_test() {
    fail_if_any(&wrong_promises("cli", 112, 0));
}

/// `crates/cli/tests/promises.tsv` has promises of the guide to clusters, word by word, each with the tests that hold it.
#[test]
fn the_promises_of_the_guide_to_clusters_have_tests() {
    let in_one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let guide = in_one_line(&read(&repository().join("docs/guide/cluster.md")));
    let mut wrong = Vec::new();
    for line in read(&repository().join("crates/cli/tests/promises.tsv")).lines() {
        let (promise, tests) = line.split_once('\t').unwrap_or((line, ""));
        if !guide.contains(&in_one_line(promise)) {
            wrong.push(format!("the guide does not promise: {promise}"));
        }
        if tests.trim().is_empty() {
            wrong.push(format!("no test holds: {promise}"));
        }
        for test in tests.split_whitespace().filter(|test| !is_there(test)) {
            wrong.push(format!("{promise}: the test `{test}` does not exist"));
        }
    }
    fail_if_any(&wrong);
}

/// The page of a code ends with the rules that name it.
#[test]
fn pages_of_errors_name_the_rules_behind_them() {
    let mut rules: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (rule, text) in rules_of_the_language() {
        let links = text.split("](../../errors/").skip(1);
        let codes: BTreeSet<&str> = links
            .filter_map(|rest| rest.split_once(".md)"))
            .map(|(code, _)| code)
            .collect();
        for code in codes {
            rules.entry(code.to_owned()).or_default().push(rule.clone());
        }
    }
    let mut wrong = Vec::new();
    for path in files("docs/errors", "md") {
        let code = path.file_stem().unwrap_or_default().to_string_lossy();
        let page = read(&repository().join(&path));
        let last = page.lines().last().unwrap_or_default();
        let line = rules.remove(code.as_ref()).map(|mut rules| {
            rules.sort_by(|a, b| page_and_number(a).cmp(&page_and_number(b)));
            let rules: Vec<String> = rules.iter().map(|rule| format!("`{rule}`")).collect();
            format!(
                "Rules of [the reference](../reference/mcl.md): {}.",
                rules.join(", ")
            )
        });
        let is_right = match &line {
            Some(line) => last == line,
            None => !last.starts_with("Rules of "),
        };
        if !is_right {
            wrong.push(format!("{}: should end with {line:?}", path.display()));
        }
    }
    wrong.extend(
        rules
            .keys()
            .map(|code| format!("rules name {code}, which has no page")),
    );
    fail_if_any(&wrong);
}

/// Comments, pages and cases refer to rules by name, as in `names.7`.
#[test]
fn references_to_rules_lead_to_rules() {
    let rules = rules_of_the_language();
    let pages: BTreeSet<&str> = rules
        .keys()
        .filter_map(|rule| Some(page_and_number(rule)?.0))
        .collect();
    let is_wrong = |word: &str| {
        page_and_number(word).is_some_and(|(page, _)| pages.contains(page)) && !rules.contains_key(word)
    };
    let mut wrong = Vec::new();
    for (folder, extension) in [("docs", "md"), ("crates", "rs"), ("tests/cases", "mcl")] {
        for path in files(folder, extension) {
            for (number, line) in read(&repository().join(&path)).lines().enumerate() {
                if extension == "rs" && !line.trim_start().starts_with("//") {
                    continue;
                }
                let words = line.split(|c: char| !c.is_ascii_alphanumeric() && !"._-$/".contains(c));
                for word in words
                    .map(|word| word.trim_end_matches('.'))
                    .filter(|word| is_wrong(word))
                {
                    wrong.push(format!(
                        "{}:{}: there is no rule `{word}`",
                        path.display(),
                        number + 1
                    ));
                }
            }
        }
    }
    fail_if_any(&wrong);
}

/// The README and the guides start the program with `cargo run` at the root, which must know which program is meant.
#[test]
fn the_program_that_is_run_at_the_root_is_the_one_for_users() {
    let manifest = read(&repository().join("Cargo.toml"));
    assert!(manifest.contains("default-members = [\"crates/cli\"]"));
    let programs = files("crates/cli/src/bin", "rs");
    assert!(
        programs.is_empty(),
        "a second program beside setpoint: {programs:?}"
    );
}
